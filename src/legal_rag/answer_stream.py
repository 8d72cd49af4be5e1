"""An answer on its way: the events of a run as they happen, then the prediction.

In: a run that goes on only while it is asked for its next event. Out: events, and what it came to.
"""

from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Self

from legal_rag.prediction import Event, Prediction


class AnswerStream(Iterator[Event]):
    """Iterate for events; `prediction` runs to the end. Closing it, or its block, stops the run where it is."""

    def __init__(self, run: Generator[Event, None, Prediction]) -> None:
        self._run = run
        self._prediction: Prediction | None = None
        self._stopped = False

    def __next__(self) -> Event:
        if self._stopped:
            self.close()
        try:
            return next(self._run)
        except StopIteration as end:
            if end.value is not None:  # an exhausted run ends again, with nothing
                self._prediction = end.value
            raise

    @property
    def prediction(self) -> Prediction:
        """What the run came to; it goes on to its end first.

        Raises:
            RuntimeError: If it was stopped before.
        """
        for _ in self:
            pass
        if self._prediction is None:
            raise RuntimeError("the run was stopped before its end: there is no prediction")
        return self._prediction

    def close(self) -> None:
        """Stop the run, from the thread that iterates: nothing further is searched or asked."""
        self._run.close()

    def stop(self) -> None:
        """Stop the run after the event it is working on, from any thread."""
        self._stopped = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
