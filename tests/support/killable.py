"""Work in processes that are killed: each forked from one that has imported, once, what takes seconds to import."""

import faulthandler
import multiprocessing
import os
import pkgutil
import signal
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

# Not OpenVINO, whose telemetry starts a thread: caught by a fork amid an import, it would leave the process waiting.
IMPORTED = ["chonkie", "datasets", "dspy", "legal_rag.cli", "legal_rag.indexer.build"]
N_DOCUMENTS = 15  # of a build that is cut off
ATTEMPTS = 6  # to start a process
LONGEST_S = 240  # a process that stands still says where, and ends


class Killable:
    """A process that does some work once it has said that it is ready."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        """Start it: `work` gets a function to call when it is ready, and then the arguments."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTED)
        self._ready, ready = context.Pipe(duplex=False)
        for attempt in range(ATTEMPTS):
            self._process = context.Process(target=_work, args=(work, ready, arguments))
            try:
                self._process.start()
                break
            except (EOFError, ConnectionError):
                # filelock 3.32 now and then refuses the server to fork, which ends it; then another one starts.
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(2**attempt / 4)
        ready.close()

    def wait_until_ready(self) -> None:
        """Wait for it to say so; an EOFError if it ends before."""
        if not self._ready.poll(LONGEST_S):
            self._process.kill()
            raise TimeoutError(f"the process is not ready after {LONGEST_S} s")
        self._ready.recv()

    def is_running(self) -> bool:
        """Tell whether it has not ended."""
        return self._process.is_alive()

    def killed_after(self, seconds: float) -> bool:
        """Kill it unless it ends within some seconds; tell whether it was killed. What fails by itself raises."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        if self._process.exitcode not in (0, -signal.SIGKILL):
            raise AssertionError(f"the process ended with {self._process.exitcode}")
        return self._process.exitcode != 0


def build_and_log(
    ready: Callable[[], None], source: Path, model: Path, folder: Path, shard_chunks: int, window: int, log: Path
) -> None:
    """Index some documents, and log a line for each chunk that is begun."""
    from legal_rag.encoder import build_encoder
    from legal_rag.indexer import IndexConfig, build_index, pipeline

    pipeline.BATCH_CHUNKS, pipeline.SAMPLE_BATCHES = window, 2
    encoder = build_encoder(str(model))
    encode = encoder.encode_documents

    def encode_and_log(texts: list[str]) -> Any:
        with log.open("a") as file:
            file.write("".join(f"{zlib.crc32(text.encode())}\n" for text in texts))
        return encode(texts)

    encoder.encode_documents = encode_and_log  # type: ignore[method-assign]
    ready()
    config = IndexConfig(source=source, shard_chunks=shard_chunks, index_folder=str(folder), seed=3, limit=N_DOCUMENTS)
    build_index(config, encoder)


def run_command(ready: Callable[[], None], *argv: str) -> None:
    """Run the program with some arguments."""
    from legal_rag.cli import main

    ready()
    sys.exit(main(list(argv)))


def run_until(
    ready: Callable[[], None], place: str, argument: str, work: Callable[..., object], *arguments: Any
) -> None:
    """Do some work until it calls a function of `legal_rag`, its first argument ending so; then kill the process."""
    called = pkgutil.resolve_name(f"legal_rag.{place}")

    def call(*given: Any, **named: Any) -> Any:
        if str(given[0]).endswith(argument):
            os.kill(os.getpid(), signal.SIGKILL)
        return called(*given, **named)

    with mock.patch(f"legal_rag.{place}", call):
        ready()
        work(*arguments)


def _work(work: Callable[..., None], ready: Any, arguments: tuple[Any, ...]) -> None:
    faulthandler.dump_traceback_later(LONGEST_S, exit=True, file=sys.__stderr__)
    work(lambda: ready.send("ready"), *arguments)
