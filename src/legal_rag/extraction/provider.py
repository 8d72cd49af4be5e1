"""The rules as a language model that LangExtract can ask, here and in any other program: `model_id="rules"`.

LangExtract finds it by the entry point `langextract.providers`. In: prompts. Out: replies as a model would write them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langextract.core.base_model import BaseLanguageModel
from langextract.core.types import ScoredOutput
from langextract.providers import router

from legal_rag.extraction.entities import OCCURRENCE
from legal_rag.extraction.reading import ATTRIBUTES, piece_of, reply_of
from legal_rag.extraction.rules import find_entities

PATTERNS = (r"^rules$", r"^legal-rag-rules$")


@router.register(*PATTERNS, priority=20)
class RulesLanguageModel(BaseLanguageModel):
    """Finds the entities of French decisions by patterns; it knows no other classes than those of `jurisprudence`.

    Each entity has an attribute `legal_rag_occurrence`: which one it is, from 0, of the equal texts of the piece that
    it was found in, so that its place is certain.
    """

    def __init__(self, model_id: str = "rules", **_: Any) -> None:
        super().__init__()
        self.model_id = model_id

    @classmethod
    def get_model_patterns(cls) -> tuple[str, ...]:
        """Return what a model's id looks like that stands for these rules."""
        return PATTERNS

    @property
    def requires_fence_output(self) -> bool:
        """Tell whether replies stand between fences: only where the caller wants it."""
        return bool(self._fence_output_override)

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            reply = _reply(piece_of(prompt))
            yield [ScoredOutput(score=1.0, output=f"```json\n{reply}\n```" if self.requires_fence_output else reply)]


def _reply(piece: str) -> str:
    last: dict[str, tuple[int, int]] = {}  # for each text, where it was looked for last, and how many began before
    items = []
    for one in find_entities(piece):
        text, start = one["extraction_text"], one["char_start"]
        at, number = last.get(text, (0, 0))
        number += _count_overlapping(piece, text, at, start)
        last[text] = (start, number)
        attributes = {**one["attributes"], OCCURRENCE: str(number)}
        items.append({one["extraction_class"]: text, f"{one['extraction_class']}{ATTRIBUTES}": attributes})
    return reply_of(items)


def _count_overlapping(piece: str, text: str, start: int, end: int) -> int:
    """Count where a text begins from `start` on and before `end`."""
    count, at = 0, piece.find(text, start)
    while 0 <= at < end:
        count, at = count + 1, piece.find(text, at + 1)
    return count
