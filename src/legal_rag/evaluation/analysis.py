"""Analyse runs: compare, find the hardest queries, plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.evaluation.trec import Qrels, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
MISSING = "plots need matplotlib: pip install 'legal-rag[eval]'"


class Failure(NamedTuple):
    """A question that a run answers late or not at all."""

    qid: str
    first_rank: int | None  # of a document that answers it
    wanted: list[str]  # document ids
    returned: list[str]  # document ids, best first


class Absence(NamedTuple):
    """A document judged relevant that is not in the index."""

    doc_id: str
    why: str


def first_hit_ranks(qrels: Qrels, run: Run) -> dict[str, int | None]:
    """Return for each judged question the rank, from 1, of the first document that answers it; None if none does."""
    ranks: dict[str, int | None] = {}
    for qid, judged in qrels.items():
        hits = (rank for rank, (doc_id, _) in enumerate(run.get(qid, []), start=1) if judged.get(doc_id, 0) > 0)
        ranks[qid] = next(hits, None)
    return ranks


def recall_curve(qrels: Qrels, run: Run, depths: Sequence[int] = DEPTHS) -> list[tuple[int, float]]:
    """Return for each depth the mean share of a question's relevant documents that are ranked so high."""
    curve = []
    for depth in depths:
        shares = []
        for qid, judged in qrels.items():
            wanted = {doc_id for doc_id, relevance in judged.items() if relevance > 0}
            found = {doc_id for doc_id, _ in run.get(qid, [])[:depth]}
            shares.append(len(wanted & found) / len(wanted) if wanted else 0.0)
        curve.append((depth, sum(shares) / len(shares) if shares else 0.0))
    return curve


def hardest(qrels: Qrels, run: Run, n: int = 10, shown: int = 5) -> list[Failure]:
    """Return the `n` questions that are answered last, those never answered first, each with what was returned."""
    ranks = first_hit_ranks(qrels, run)
    worst = sorted(ranks, key=lambda qid: (-(ranks[qid] or float("inf")), qid))[:n]
    return [
        Failure(
            qid=qid,
            first_rank=ranks[qid],
            wanted=[doc_id for doc_id, relevance in qrels[qid].items() if relevance > 0],
            returned=[doc_id for doc_id, _ in run.get(qid, [])[:shown]],
        )
        for qid in worst
    ]


def absences(qrels: Qrels, corpus: Any) -> list[Absence]:
    """Return the relevant documents that a corpus lacks, with the likely reason; it has `in` and `nearest_id`."""
    wanted = {doc_id for judged in qrels.values() for doc_id, relevance in judged.items() if relevance > 0}
    return [Absence(doc_id, _why_absent(doc_id, corpus)) for doc_id in sorted(wanted) if doc_id not in corpus]


def _why_absent(doc_id: str, corpus: Any) -> str:
    try:
        parent, _ = parse_chunk_id(doc_id)
    except ValueError:
        parent = ""
    if parent and parent in corpus:
        return f"this is the id of a chunk; its document {parent!r} is indexed"
    for candidate in (doc_id.strip(), doc_id.upper(), doc_id.lower()):
        if candidate != doc_id and candidate in corpus:
            return f"indexed as {candidate!r}"
    nearest = corpus.nearest_id(doc_id)
    return f"not indexed; the nearest id is {nearest!r}" if nearest else "not indexed"


def plot_runs(qrels: Qrels, runs: Mapping[str, Run]) -> "Figure":
    """Draw how recall grows with depth, and how many questions have their first hit at which rank, for each run.

    Raises:
        ValueError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(MISSING) from error

    figure = Figure(figsize=(10, 4), layout="constrained")
    curves, ranks = figure.subplots(1, 2)
    for name, run in runs.items():
        depths, recalls = zip(*recall_curve(qrels, run), strict=True)
        curves.plot(depths, recalls, marker="o", label=name)
    curves.set(xscale="log", ylim=(0, 1.02), xlabel="rang k", ylabel="rappel à k", title="Rappel")
    curves.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS], minor=False)
    curves.legend()
    _draw_ranks(ranks, qrels, runs)
    return figure


def save_plot(figure: "Figure", path: str | Path) -> None:
    """Write a figure as PNG."""
    figure.savefig(Path(path).expanduser(), format="png", dpi=150)


def _draw_ranks(axes: Any, qrels: Qrels, runs: Mapping[str, Run]) -> None:
    """Draw bars: first hit at rank 1, 2 to 5, 6 to 10, 11 to 100, beyond or never."""
    groups = (("1", 1, 1), ("2-5", 2, 5), ("6-10", 6, 10), ("11-100", 11, 100))
    width = 0.8 / max(len(runs), 1)
    for i, (name, run) in enumerate(runs.items()):
        found = list(first_hit_ranks(qrels, run).values())
        counts = [sum(rank is not None and low <= rank <= high for rank in found) for _, low, high in groups]
        counts.append(len(found) - sum(counts))
        axes.bar([place + i * width for place in range(len(counts))], counts, width, label=name)
    middle = 0.4 - width / 2
    axes.set_xticks([place + middle for place in range(len(groups) + 1)], [*(group[0] for group in groups), "au-delà"])
    axes.set(xlabel="rang de la première bonne décision", ylabel="questions", title="Première bonne décision")
