"""Extraction within a deep read: classes of a program's own, found in a document by the sub-model.

In: a text, classes, what to look for. Out: entities at their exact places. LangExtract asks, the sub-model answers, and
the run's budget holds. It is apart because importing LangExtract takes a second.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceRuntimeError
from langextract.core.types import ScoredOutput

from legal_rag.budget import BudgetExceededError
from legal_rag.deep_read.models import SubCallError, SubModel
from legal_rag.extraction.annotate import extract_with_langextract
from legal_rag.extraction.engine import schema_of_classes
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.settings import ExtractionSettings


class AskedModel(BaseLanguageModel):
    """The sub-model as LangExtract asks one."""

    def __init__(self, sub: SubModel) -> None:
        super().__init__()
        self._sub = sub
        self.stopped: BudgetExceededError | None = None  # what LangExtract may make another error of

    @property
    def requires_fence_output(self) -> bool:
        """Tell LangExtract that fences are taken off elsewhere."""
        return False

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            try:
                reply = self._sub.query(prompt)
            except BudgetExceededError as error:
                self.stopped = error
                raise
            except SubCallError as error:
                raise InferenceRuntimeError(str(error)) from error
            yield [ScoredOutput(score=1.0, output=reply)]


def extract_on_demand(text: str, classes: Sequence[str], description: str, sub: SubModel, workers: int) -> list[Entity]:
    """Find entities of some classes in a text, each at its place; pieces without a usable reply bring none.

    Args:
        text: Of the document.
        classes: What entities are to be called.
        description: What to look for, in French.
        sub: Which is asked.
        workers: Pieces at once.

    Raises:
        BudgetExceededError: If the run's budget has no room for a call.
    """
    model = AskedModel(sub)
    settings = ExtractionSettings(model_id="sub-model", extraction_passes=1, max_workers=workers)
    try:
        result = extract_with_langextract(text, "document", schema_of_classes(description, classes), model, settings)
    except Exception:
        if model.stopped is not None:  # whatever LangExtract says of it
            raise model.stopped from None
        raise
    return [one for one in result.extractions if one["extraction_class"] in classes]
