"""The settings of a run that makes questions: apart, so that the command line knows them without loading the rest."""

from dataclasses import dataclass
from typing import Final

STRATEGIES: Final = ("refine", "best-of-n", "refine+best-of-n")
WORKERS: Final = 8  # requests to a model under way at once; changes nothing in what is kept
LOWEST_THRESHOLD: Final = 0.5  # exclusive: what is not grounded, not French or out of form is never kept


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """Everything that decides which questions are kept; saved in the checkpoint and on the card."""

    seed: int = 0  # of the documents drawn, the windows, the splits and the model's sampling
    strategy: str = "refine"  # see `legal_rag.questions.writer.Writer`
    tries: int = 3  # for each document, at most
    threshold: float = 1.0  # of `qa_reward`, above 0.5 and at most 1
    context_chars: int = 8000  # of a document that the model is shown
    must_retrieve: int = 0  # the document is among the first so many that the question finds; 0: not checked
    hard_negatives: int = 0  # ids kept of other documents that the question finds

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"no strategy {self.strategy!r} (there are: {', '.join(STRATEGIES)})")
        if not LOWEST_THRESHOLD < self.threshold <= 1:
            raise ValueError(f"threshold must be above {LOWEST_THRESHOLD} and at most 1, got {self.threshold}")
        for name, least in (("tries", 1), ("context_chars", 500), ("must_retrieve", 0), ("hard_negatives", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
