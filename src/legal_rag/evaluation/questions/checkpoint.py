"""Checkpoint of a generation: an append-only JSONL file, each record on disk before the next document begins."""

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from legal_rag.base.files import sync
from legal_rag.llm import Usage


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """Outcome of one document."""

    doc_id: str
    content_hash: str  # of the document
    status: Literal["accepted", "rejected", "failed"]  # failed: the model was not reached; a later run tries again
    reason: str = ""  # why not accepted
    row: dict[str, Any] | None = None  # of the dataset, where accepted
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None where the price is not known
    seconds: float = 0.0

    @property
    def usage(self) -> Usage:
        """The model's usage, as the agent counts it."""
        return Usage(self.replies, 0, self.prompt_tokens, self.completion_tokens, self.cost)


RecordMaker = Callable[[str], CheckpointRecord]  # of a document's id


class Checkpoint:
    """A JSONL file of records, open for appending. Thread-safe."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Open or create a file in a folder that exists; `settings` are what decides the records.

        Raises:
            ValueError: If the file has other settings, or is not a checkpoint.
        """
        self._path, self._settings = path, json.loads(json.dumps(settings))
        self._records: dict[str, CheckpointRecord] = {}  # the last of each document
        self._lock = threading.Lock()
        self._file = path.open("a+b")
        try:
            self._load_records()
        except BaseException:
            self._file.close()
            raise

    def is_finished(self, doc_id: str, content_hash: str) -> bool:
        """Tell whether a document, as it is now, was accepted or rejected."""
        record = self._records.get(doc_id)
        return record is not None and record.status != "failed" and record.content_hash == content_hash

    def record(self, doc_id: str) -> CheckpointRecord:
        """Return a document's record; KeyError if it has none."""
        return self._records[doc_id]

    def add(self, record: CheckpointRecord) -> None:
        """Append a record and sync it to disk; the cost of an earlier failure is added to its own."""
        with self._lock:
            if before := self._records.get(record.doc_id):
                spent, seconds = record.usage.plus(before.usage), record.seconds + before.seconds
                record = replace(record, **usage_columns(spent), seconds=seconds)
            self._append_line(_json_line(asdict(record)))
            self._records[record.doc_id] = record

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _load_records(self) -> None:
        self._file.seek(0)
        first = self._file.readline()
        header = _json_line({"settings": self._settings})
        if not first.endswith(b"\n") and header.startswith(first):  # new, or killed while its header was written
            self._file.truncate(0)
            self._append_line(header)
            sync(self._path.parent)
            return
        self._check_settings(first)
        offset = self._file.tell()
        for line in iter(self._file.readline, b""):
            if not line.endswith(b"\n"):
                self._file.truncate(offset)
                break
            record = self._parse_record(line)
            self._records[record.doc_id] = record
            offset += len(line)

    def _check_settings(self, first: bytes) -> None:
        try:
            stored = json.loads(first)["settings"]
            stored.items()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self._path} does not begin with settings: {first[:60]!r}") from error
        for name, value in self._settings.items():
            if stored.get(name) != value:
                begun = f"{self._path.parent} was begun with {name} {stored.get(name)!r}"
                raise ValueError(f"{begun}, now {value!r}: choose another folder")

    def _append_line(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _parse_record(self, line: bytes) -> CheckpointRecord:
        try:
            return CheckpointRecord(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise ValueError(f"damaged line in {self._path}: {line[:60]!r}") from error


def usage_columns(usage: Usage) -> dict[str, Any]:
    """Write usage under the names that records and reports give it."""
    return {
        "replies": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }


def _json_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
