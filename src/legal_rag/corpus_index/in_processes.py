"""The same work on many things by several processes: results in order, few of them in memory at once.

In: things, and what to do with each. Out: what came of each. The processes end with the one that started them, also
where it is killed.
"""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cached_property
from types import TracebackType
from typing import Self, TypeVar

One = TypeVar("One")
Result = TypeVar("Result")

AHEAD = 2  # things for each process that are begun before the first one's result is taken


class Workers:
    """Processes that work for this one, until it leaves the context; none is started before there is work for two.

    Args:
        n: How many; 1 is this process itself.
    """

    def __init__(self, n: int) -> None:
        self._n = n

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if "_pool" in self.__dict__:
            self._pool.shutdown(cancel_futures=True)

    def are_others_for(self, things: Sequence[object]) -> bool:
        """Tell whether other processes than this one work on so many things."""
        return self._n > 1 and len(things) > 1

    def map(self, work: Callable[[One], Result], things: Sequence[One]) -> Iterator[Result]:
        """Yield what a function of a module returns for each of many things, in their order.

        Args:
            work: It goes to the processes, as the things and the results do: all must be picklable.
            things: Begun as results are taken, some ahead.
        """
        if not self.are_others_for(things):
            yield from map(work, things)
            return
        begun: deque[Future[Result]] = deque()
        for one in things:
            begun.append(self._pool.submit(work, one))
            if len(begun) > AHEAD * self._n:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        # A fresh interpreter each: this one may have threads of torch, which no copy of a process survives.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._n, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this process with its parent: one that was killed tells nobody, and its pool would wait for ever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
