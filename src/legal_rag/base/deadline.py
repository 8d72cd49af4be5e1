"""One deadline for a piece of work, known to every blocking call within it.

Work is limited with `within`; code that loops or waits calls `check`, or waits no longer than `seconds_left`.
A deadline belongs to its context (PEP 567): threads started within it know it where they run in a copy of the context.
"""

import contextlib
import contextvars
import math
import time
from collections.abc import Iterator

_ends: contextvars.ContextVar[float] = contextvars.ContextVar("ends", default=math.inf)  # on the monotonic clock


class DeadlineError(Exception):
    """The time that the work around a call had is over."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit what is done in this context to some seconds from now; an earlier deadline around it stays in force."""
    before = _ends.set(min(_ends.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _ends.reset(before)


def seconds_left() -> float:
    """Return the seconds until the deadline: infinite without one, negative past it."""
    return _ends.get() - time.monotonic()


def check() -> None:
    """Raise DeadlineError past the deadline."""
    if seconds_left() <= 0:
        raise DeadlineError
