"""The reserve: what of a run's budget reading leaves for writing the answer.

In: a model and the run's meter. Out: the same model, refused a little before the budget's limits.
"""

import dataclasses
import threading

from legal_rag.budget import Budget, BudgetExceededError, Usage
from legal_rag.deep_read.models import Meter, SubModel

KEPT_SHARE = 0.1  # of each limit
KEPT_CALLS = 2  # an answer, and a second try at it


class ReservingModel:
    """A model that keeps out of the reserve; threads may share it."""

    def __init__(self, model: SubModel, meter: Meter) -> None:
        """Take a model whose calls the meter counts."""
        self._model, self._meter, self._within = model, meter, budget_without_reserve(meter.budget)
        self._lock, self._under_way = threading.Lock(), 0

    @property
    def name(self) -> str:
        """The model's id."""
        return str(getattr(self._model, "name", "model"))

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; see `legal_rag.deep_read.models.SubModel`."""
        with self._lock:
            usage = self._meter.usage
            if limit := self._within.reached(usage.plus(Usage(calls=self._under_way)), self._meter.seconds):
                raise BudgetExceededError(limit, self._meter.budget, usage)
            self._under_way += 1
        try:
            return self._model.query(prompt)
        finally:
            with self._lock:
                self._under_way -= 1


def budget_without_reserve(budget: Budget) -> Budget:
    """Return what of a budget may be used for reading; one call at the least."""
    share = 1 - KEPT_SHARE
    return dataclasses.replace(
        budget,
        model_calls=max(1, min(int(budget.model_calls * share), budget.model_calls - KEPT_CALLS)),
        tokens=max(1, int(budget.tokens * share)),
        seconds=budget.seconds * share,
        cost=None if budget.cost is None else budget.cost * share,
    )
