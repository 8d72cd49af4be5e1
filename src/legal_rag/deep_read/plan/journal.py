"""The journal: what models answered in a run, one line of JSON each, so that a killed run asks nothing twice.

In: answers by what was asked. Out: the same answers, in this run or a later one. Lines are only ever added; one that a
kill cut off, or that is damaged, is passed over, and is asked for again.
"""

import hashlib
import json
import os
import threading
from pathlib import Path
from types import TracebackType

from legal_rag.folders import sync

KEY, REPLY = "key", "reply"


def key_of(model: str, prompt: str) -> str:
    """Return what stands for a prompt to a model: the question, the text that is shown, and how it is asked."""
    return hashlib.sha256(json.dumps([model, prompt]).encode()).hexdigest()


class FindingsJournal:
    """A file of answers, open for adding; any number of threads may share it.

    In memory are the keys, and where each one's line begins.
    """

    def __init__(self, path: Path) -> None:
        """Open a file, or begin it; its folder exists.

        Raises:
            OSError: If it cannot be read and written.
        """
        self._places: dict[str, int] = {}
        self._lock = threading.Lock()
        is_new = not path.exists()
        self._file = path.open("ab", buffering=0)
        self._reader = path.open("rb")
        if is_new:
            sync(path.parent)
        self._needs_line_end = self._read()

    def get(self, key: str) -> str | None:
        """Return what was answered, or None if nothing was, or nothing that can be read."""
        with self._lock:
            place = self._places.get(key)
            if place is None:
                return None
            self._reader.seek(place)
            entry = _entry(self._reader.readline())
        return entry[1] if entry and entry[0] == key else None

    def put(self, key: str, reply: str) -> None:
        """Write down an answer; it is on the disk itself when this returns.

        Args:
            key: See `key_of`.
            reply: What was answered.
        """
        line = json.dumps({KEY: key, REPLY: reply}).encode() + b"\n"
        with self._lock:
            before = b"\n" if self._needs_line_end else b""
            place = self._file.seek(0, os.SEEK_END) + len(before)
            self._file.write(before + line)  # in one piece, so that another process's lines stay whole too
            os.fsync(self._file.fileno())
            self._needs_line_end = False
            self._places[key] = place

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._reader.close()

    def __enter__(self) -> "FindingsJournal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> bool:
        """Take note of the lines that are there; tell whether the last one was cut off."""
        line, place = b"\n", 0
        for line in self._reader:
            if entry := _entry(line):
                self._places[entry[0]] = place
            place += len(line)
        return not line.endswith(b"\n")


def _entry(line: bytes) -> tuple[str, str] | None:
    try:
        entry = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):  # damaged: as good as not there
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get(KEY), str) or not isinstance(entry.get(REPLY), str):
        return None
    return entry[KEY], entry[REPLY]
