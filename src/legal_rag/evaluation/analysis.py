"""Analyse runs: hits and misses, the hardest queries, mismatched ids, scores, plots."""

import random
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.base.extras import install_command
from legal_rag.corpus.chunking import parse_chunk_id
from legal_rag.evaluation.trec import Qrels, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
MISSING = f"plots need matplotlib: {install_command('eval')}"


class QueryOutcome(NamedTuple):
    """What a run returned for a question."""

    qid: str
    first_rank: int | None  # of a document that answers it
    wanted: list[str]  # document ids
    returned: list[str]  # document ids, best first


class Overlap(NamedTuple):
    """How far judgements and a run cover the same queries and documents."""

    queries: int  # in both
    only_judged: int  # queries without results
    only_run: int  # queries without judgements
    wanted: int  # relevant documents, query by query
    returned: int  # of them, those that the run has at any rank


class Mismatch(NamedTuple):
    """Ids that differ between judgements and run, and would be equal if written alike."""

    why: str
    n: int
    judged: str  # the first such id in the judgements
    found: str  # and in the run


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
    """Return for each depth the mean share of a question's relevant documents that are ranked within it."""
    curve = []
    for depth in depths:
        shares = []
        for qid, judged in qrels.items():
            relevant = set(_relevant(judged))
            retrieved = {doc_id for doc_id, _ in run.get(qid, [])[:depth]}
            shares.append(len(relevant & retrieved) / len(relevant) if relevant else 0.0)
        curve.append((depth, sum(shares) / len(shares) if shares else 0.0))
    return curve


def hardest(qrels: Qrels, run: Run, n: int = 10, shown: int = 5) -> list[QueryOutcome]:
    """Return the `n` questions that are answered last, those never answered first, each with the documents returned."""
    ranks = first_hit_ranks(qrels, run)
    worst = sorted(ranks, key=lambda qid: (-(ranks[qid] or float("inf")), qid))[:n]
    return [_make_outcome(qid, ranks[qid], qrels, run, shown) for qid in worst]


def sampled(qrels: Qrels, run: Run, n: int = 5, shown: int = 1, seed: int = 0) -> list[QueryOutcome]:
    """Return `n` judged questions drawn at random, answered or not."""
    ranks = first_hit_ranks(qrels, run)
    drawn = random.Random(seed).sample(sorted(ranks), min(n, len(ranks)))  # noqa: S311 - a sample, no secret
    return [_make_outcome(qid, ranks[qid], qrels, run, shown) for qid in drawn]


def _make_outcome(qid: str, rank: int | None, qrels: Qrels, run: Run, shown: int) -> QueryOutcome:
    return QueryOutcome(qid, rank, _relevant(qrels[qid]), [doc_id for doc_id, _ in run.get(qid, [])[:shown]])


def _relevant(judged: Mapping[str, int]) -> list[str]:
    return [doc_id for doc_id, relevance in judged.items() if relevance > 0]


def overlap(qrels: Qrels, run: Run) -> Overlap:
    """Count the queries and relevant documents that judgements and run have in common."""
    relevant = {(qid, doc_id) for qid, judged in qrels.items() for doc_id in _relevant(judged)}
    returned = {(qid, doc_id) for qid, ranked in run.items() for doc_id, _ in ranked}
    shared = len(qrels.keys() & run.keys())
    return Overlap(shared, len(qrels) - shared, len(run) - shared, len(relevant), len(relevant & returned))


def id_mismatches(qrels: Qrels, run: Run) -> list[Mismatch]:
    """Find judged ids that the run lacks as they are written, but has in another case, or as chunk ids."""
    relevant = {doc_id for judged in qrels.values() for doc_id in _relevant(judged)}
    returned = {doc_id for ranked in run.values() for doc_id, _ in ranked}
    mismatches = [
        _find_mismatch("query ids differ in case", qrels.keys(), run.keys(), str.casefold, str.casefold),
        _find_mismatch("document ids differ in case", relevant, returned, str.casefold, str.casefold),
        _find_mismatch("document ids are the run's chunk ids less their numbers", relevant, returned, str, _parent_id),
        _find_mismatch("document ids are chunk ids, the run's are not", relevant, returned, _parent_id, str),
    ]
    return [mismatch for mismatch in mismatches if mismatch is not None]


def _find_mismatch(
    why: str, judged: Set[str], returned: Set[str], of_judged: Callable[[str], str], of_returned: Callable[[str], str]
) -> Mismatch | None:
    """Pair judged ids that the run lacks with returned ids that are the same in another form."""
    forms = {of_returned(name): name for name in sorted(returned, reverse=True)}
    pairs = [(name, forms[form]) for name in sorted(judged - returned) if (form := of_judged(name)) in forms]
    return Mismatch(why, len(pairs), *pairs[0]) if pairs else None


def _parent_id(doc_id: str) -> str:
    """Return the document of a chunk id; '' for any other id."""
    try:
        return parse_chunk_id(doc_id)[0]
    except ValueError:
        return ""


def scores_by_relevance(qrels: Qrels, run: Run) -> dict[str, list[float]]:
    """Return the scores of the relevant documents and those of the others, in judged queries."""
    scores: dict[str, list[float]] = {"relevant": [], "others": []}
    for qid in qrels.keys() & run.keys():
        for doc_id, score in run[qid]:
            scores["relevant" if qrels[qid].get(doc_id, 0) > 0 else "others"].append(score)
    return scores


def absences(qrels: Qrels, corpus: Any) -> list[Absence]:
    """Return the relevant documents that a corpus lacks, with the likely reason; it has `in` and `nearest_id`."""
    relevant = {doc_id for judged in qrels.values() for doc_id in _relevant(judged)}
    return [Absence(doc_id, _why_absent(doc_id, corpus)) for doc_id in sorted(relevant) if doc_id not in corpus]


def _why_absent(doc_id: str, corpus: Any) -> str:
    if (parent := _parent_id(doc_id)) and parent in corpus:
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
        ranks = list(first_hit_ranks(qrels, run).values())
        counts = [sum(rank is not None and low <= rank <= high for rank in ranks) for _, low, high in groups]
        counts.append(len(ranks) - sum(counts))
        axes.bar([place + i * width for place in range(len(counts))], counts, width, label=name)
    middle = 0.4 - width / 2
    axes.set_xticks([place + middle for place in range(len(groups) + 1)], [*(group[0] for group in groups), "au-delà"])
    axes.set(xlabel="rang de la première bonne décision", ylabel="questions", title="Première bonne décision")
