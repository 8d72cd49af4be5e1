"""Separate process for parsing untrusted files, which may crash, exhaust memory or hang.

It reads JSON, Parquet, PDF, Word and saved datasets, within limits of memory and time, and writes their rows as JSON
lines: a crash, a memory error or a timeout costs one file.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

READER_SECONDS = 120.0  # for one file, or for the next row of a long one
READER_BYTES = 1_000_000_000  # of memory beyond the process's baseline
PROLOGUE = "import sys; sys.path[:] = {!r}; from legal_rag.corpus.reader_process import run_reader; run_reader()"
ERRORS: dict[str, type[Exception]] = {error.__name__: error for error in (FileNotFoundError, ValueError)}


class ReaderProcess:
    """Runs the readers of `legal_rag.corpus.sources` in a child; started on first use, for one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._too_late = 0.0  # deadline on the monotonic clock; 0: not waiting
        self._was_late = False

    def lines(self, reader: str, arguments: list[str], most: int) -> Iterator[str]:
        """Yield a reader's records, one JSON value a line.

        Args:
            reader: Its name in `legal_rag.corpus.sources.PROCESS_READERS`.
            arguments: Its arguments.
            most: Characters of a line at most.

        Raises:
            FileNotFoundError: As the reader does; also ValueError.
            ChildProcessError: If the reader crashes or times out; the message gives the reason.
        """
        process = self._process = self._process or self._started()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):  # detected below, by the end of its output
            process.stdin.write(json.dumps([reader, *arguments]) + "\n")
            process.stdin.flush()
        ended = False
        try:
            while not ended:
                self._too_late = time.monotonic() + READER_SECONDS
                line = process.stdout.readline(most)
                self._too_late = 0.0
                ended = line == "\n"
                if not line.endswith("\n"):
                    raise ChildProcessError(self._describe_failure())
                if line.startswith("!"):
                    name, _, message = json.loads(line[1:]).partition(" ")
                    raise ERRORS.get(name, ValueError)(message)
                if not ended:
                    yield line
        finally:
            if not ended:  # the rest of its output is not needed
                self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> "subprocess.Popen[str]":
        self._was_late = False
        process = subprocess.Popen(  # noqa: S603 - this interpreter and this module
            [sys.executable, "-c", PROLOGUE.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own exceeds the limit at once
        )
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()
        return process

    def _watch(self, process: "subprocess.Popen[str]") -> None:
        while process.poll() is None:
            if self._too_late and time.monotonic() > self._too_late:
                self._was_late = True
                process.kill()
            time.sleep(0.05)

    def _describe_failure(self) -> str:
        return f"it took more than {READER_SECONDS:.0f} seconds" if self._was_late else "its parser crashed"


def run_reader() -> None:
    """Answer the requests on stdin until it ends."""
    from legal_rag.corpus.sources import PROCESS_READERS

    answers, sys.stdout = sys.stdout, sys.stderr  # parsers may print
    answers.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    _limit_memory()
    for request in sys.stdin:
        _limit_seconds()
        name, *arguments = json.loads(request)
        try:
            for row in PROCESS_READERS[name](*arguments):
                answers.write(json.dumps(row, ensure_ascii=False) + "\n")
                _limit_seconds()
        except tuple(ERRORS.values()) as error:
            answers.write("!" + json.dumps(f"{type(error).__name__} {error}") + "\n")
        answers.write("\n")
        answers.flush()


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (READER_BYTES, READER_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_seconds() -> None:
    """Limit CPU time, so that the system ends this process if its parent is gone."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        used = time.process_time()
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + 2 * READER_SECONDS), hard))
