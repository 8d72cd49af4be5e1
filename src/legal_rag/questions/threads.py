"""Several threads that do the same work until there is none left, run in DSPy's own way.

In: the work, and the pace that it keeps. Out: nothing; whatever one thread fails of stops them all.
"""

import contextlib
import io
import logging
import threading
from collections.abc import Callable

import dspy

from legal_rag.questions.pacing import Pace, tuned_for_waiting

logger = logging.getLogger(__name__)


def run_in_threads(work: Callable[[], None], n_threads: int, pace: Pace) -> None:
    """Call `work` in each of several threads, with the DSPy settings of this one, and wait until all have returned.

    An interruption stops the pace and is raised when what was under way is done: it is paid for.

    Raises:
        Exception: What stopped the pace.
    """
    workers = _Workers(work, pace)
    # Nothing is begun twice: the executor's own second start of what takes long is off.
    parallel = dspy.Parallel(num_threads=n_threads, max_errors=1, disable_progress_bar=True, timeout=0)
    # Refine and BestOfN print each reply that they could not read.
    with contextlib.redirect_stdout(_LogOut()), tuned_for_waiting():
        try:
            parallel([(workers.work, {})] * n_threads)
        finally:
            pace.stop()
            workers.wait()
    if pace.error is not None:
        raise pace.error


class _Workers:
    """Threads at work, and how many."""

    def __init__(self, work: Callable[[], None], pace: Pace) -> None:
        self._work, self._pace = work, pace
        self._active, self._changed = 0, threading.Condition()

    def work(self) -> None:
        """Do the work; an error stops the pace, which the other threads keep too."""
        with self._changed:
            self._active += 1
        try:
            self._work()
        # Whatever it is, it is raised where the threads were started.
        except Exception as error:
            self._pace.stop(error)
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait until no thread is at work."""
        with self._changed:
            self._changed.wait_for(lambda: not self._active)


class _LogOut(io.TextIOBase):
    """What is written to it goes to the log, for whoever looks there."""

    def write(self, text: str) -> int:
        logger.debug("%s", text)
        return len(text)
