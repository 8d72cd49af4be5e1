"""What a dataset of questions is to DSPy's optimisers: examples, and a metric for programs that write queries."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.base.extras import require
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever

if TYPE_CHECKING:
    import dspy


def read_examples(folder: str | Path, split: str = "train") -> "list[dspy.Example]":
    """Read a split ('train', 'dev' or 'test') as examples, whose input is `question`; the other columns are labels.

    No two splits share a document. FileNotFoundError if there is no dataset in the folder, ValueError if it lacks the
    split.
    """
    require("datasets")
    require("dspy")
    import dspy
    from datasets import load_from_disk

    saved = load_from_disk(str(Path(folder).expanduser()))
    if split not in saved:
        raise ValueError(f"no split {split!r} in {folder} (there are: {', '.join(saved)})")
    return [dspy.Example(**row).with_inputs("question") for row in saved[split]]


def search_metric(retriever: Retriever, k: int = 10, *, mode: Mode | None = None) -> Callable[..., float]:
    """Return a metric of DSPy: the reciprocal rank of the right document in a search for a program's `query`.

    It is 0 where `doc_id`, of the example, is not among the first `k` documents, and for a query that is empty or
    longer than the encoder reads.
    """

    def reciprocal_rank(example: Any, prediction: Any, trace: Any = None) -> float:
        try:
            query = retriever.query(prediction.query or "")
        except ValueError:
            return 0.0
        hits = retriever.search(query, k, mode=mode, by_document=True)
        return next((1 / hit.rank for hit in hits if hit.doc_id == example.doc_id), 0.0)

    return reciprocal_rank
