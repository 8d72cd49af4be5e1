"""The same work on many things at once, with results in their order, as if it were done one by one.

In: things, and what to do with each. Out: what came of each; where one of them ended the work, what there was by then.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

One = TypeVar("One")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Done(Generic[Result]):
    """What came of some work."""

    results: dict[int, Result]  # by the number of the thing, from 0, in order; those done
    error: BaseException | None = None  # what ended the work before its time: that of the first thing that raised


def in_parallel(work: Callable[[One], Result], things: Sequence[One], workers: int) -> Done[Result]:
    """Do some work on each of many things, so many at once.

    When one raises, no other is begun, and those under way are waited for: what they bring is not lost.

    Args:
        work: Called from several threads.
        things: Taken in their order.
        workers: At once; 1 works in the calling thread.
    """
    state = _State[Result]()
    if workers == 1 or len(things) < 2:
        for number, one in enumerate(things):
            state.run(work, number, one)
    else:
        _in_threads(state, work, things, workers)
    error = state.errors[min(state.errors)] if state.errors else None
    return Done(dict(sorted(state.results.items())), error)


class _State(Generic[Result]):
    """What the threads have come to so far."""

    def __init__(self) -> None:
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self.stopped = threading.Event()

    def run(self, work: Callable[[One], Result], number: int, one: One) -> None:
        """Do the work on one thing, unless it was stopped."""
        if self.stopped.is_set():
            return
        try:
            self.results[number] = work(one)
        except BaseException as error:  # whatever it is, the thread that asked for the work raises it
            self.errors[number] = error
            self.stopped.set()


def _in_threads(state: _State[Result], work: Callable[[One], Result], things: Sequence[One], workers: int) -> None:
    with ThreadPoolExecutor(min(workers, len(things)), thread_name_prefix="ask") as pool:
        futures = [pool.submit(state.run, work, number, one) for number, one in enumerate(things)]
        try:
            wait(futures)
        except BaseException:  # an interruption of this thread: nothing more is begun
            state.stopped.set()
            raise
