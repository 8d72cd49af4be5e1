"""Results of work that runs beside its caller."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def results_of(futures: Iterable[Future[T]], ahead: int) -> Iterator[T]:
    """Yield in order the results of futures made as they are drawn, `ahead` of them before the first is waited for."""
    under_way: deque[Future[T]] = deque()
    for future in futures:  # `Executor.map(buffersize=ahead)` does this from Python 3.14 on
        under_way.append(future)
        if len(under_way) >= ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
