"""Evaluate rankings: figures with confidence intervals, hits and misses, the hardest queries, mismatched ids, plots."""

import random
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legal_rag.base.extras import require
from legal_rag.base.files import progress
from legal_rag.base.html import Rows, displayed
from legal_rag.encoder.encoder import Encoder
from legal_rag.evaluation.trec import NO_MODEL, Qrels, Query, Run, falling
from legal_rag.library.filters import Filters
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever

if TYPE_CHECKING:
    from ir_measures import Measure
    from matplotlib.figure import Figure as Plot


BATCH_QUERIES = 32  # encoded and searched together
SEED, RESAMPLES = 0, 10_000  # of confidence intervals and of significance tests
RESAMPLING: dict[str, Any] = {"n_resamples": RESAMPLES, "batch": 500, "rng": SEED}  # held in memory: a batch
CONFIDENCE = 0.95
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)


@displayed
class Figure(NamedTuple):
    """A measure's mean over queries, and the interval that it lies in with 95 % confidence."""

    measure: str
    mean: float
    low: float
    high: float


@displayed
@dataclass(frozen=True)
class Evaluation:
    """A run's measures: means with confidence intervals, and values by query."""

    figures: list[Figure]
    by_query: dict[str, dict[str, float]]  # query id: measure: value

    def to_pandas(self) -> Any:
        """Return a data frame with a row for each measure; see `Rows.to_pandas`."""
        return Rows(self.figures).to_pandas()

    def _repr_html_(self) -> str:
        return Rows(self.figures)._repr_html_()


@displayed
class RunComparison(NamedTuple):
    """Two runs over the same queries, by one measure."""

    measure: str
    difference: float  # mean of the first less mean of the second
    p_value: float  # two-sided, of a paired randomisation test


def measures(k: int | None = None) -> "list[Measure]":
    """Return the default measures; none that looks below rank `k`.

    Recall, nDCG, reciprocal rank, average precision; bpref, which ignores what nobody judged (Buckley and Voorhees,
    2004); and the share of the first ten that is judged.
    """
    from ir_measures import AP, RR, Bpref, Judged, R, nDCG

    known = [R @ 1, R @ 5, R @ 10, R @ 100, nDCG @ 10, RR, AP, Bpref, Judged @ 10]
    return [measure for measure in known if k is None or measure.params.get("cutoff", 0) <= k]


def batch_query(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int = 100,
    *,
    mode: Mode | None = None,
    filters: Filters | None = None,
) -> Run:
    """Rank at most `k` documents for each question, encoded and searched in batches.

    A question that is empty or longer than the encoder reads is a ValueError that names it.
    """
    check_queries(retriever.encoder, queries)
    run: Run = {}
    with progress("Searching", unit=" queries", total=len(queries)) as bar:
        for start in range(0, len(queries), BATCH_QUERIES):
            batch = queries[start : start + BATCH_QUERIES]
            texts = [query.text for query in batch]
            results = retriever.search_batch(texts, k, mode=mode, filters=filters, by_document=True)
            for query, hits in zip(batch, results, strict=True):
                run[query.qid] = [(hit.doc_id, hit.score) for hit in hits]
            bar.update(len(batch))
    return run


def check_queries(encoder: Encoder, queries: Iterable[Query]) -> None:
    """Raise ValueError for a question that an encoder does not read whole; it names the question."""
    for query in queries:
        try:
            encoder.check_query(query.text)
        except ValueError as error:
            raise ValueError(f"query {query.qid!r}: {error}") from error


def evaluate_run(qrels: Qrels, run: Run, wanted: "Sequence[Measure] | None" = None) -> Evaluation:
    """Measure a run over all judged queries, of which there must be some.

    A query without results counts 0, as with trec_eval's -c. Intervals are of the mean, by the bootstrap over queries
    (Efron; percentile method, fixed seed).
    """
    import ir_measures

    if not qrels:
        raise ValueError("no judgements: nothing to measure")
    wanted = measures() if wanted is None else wanted
    as_read = {qid: dict(falling(ranked)) for qid, ranked in run.items() if ranked}  # by trec_eval
    by_query: dict[str, dict[str, float]] = {qid: {str(measure): 0.0 for measure in wanted} for qid in qrels}
    for value in ir_measures.iter_calc(wanted, qrels, as_read):
        by_query[value.query_id][str(value.measure)] = value.value
    figures = [_figure(str(measure), [values[str(measure)] for values in by_query.values()]) for measure in wanted]
    return Evaluation(figures, by_query)


def caution(queries: Sequence[Query]) -> str | None:
    """Return a caution about figures over questions that no model wrote; None if there are none."""
    n = sum(query.model.startswith(NO_MODEL) for query in queries)
    text = f"{n} of {len(queries)} questions are official summaries, in their decisions' own words: the figures flatter"
    return text if n else None


def compare_runs(first: Evaluation, second: Evaluation) -> Rows[RunComparison]:
    """Compare two runs by each measure that both have, over the queries that both were measured on.

    The test exchanges the runs' values query by query at random (Fisher; Smucker, Allan and Carterette, 2007).
    ValueError if they have no query in common.
    """
    from scipy import stats

    shared = [qid for qid in first.by_query if qid in second.by_query]
    if not shared:
        raise ValueError("the two runs were measured on different queries")
    names = [figure.measure for figure in first.figures if figure.measure in second.by_query[shared[0]]]
    comparisons = Rows[RunComparison]()
    for name in names:
        values, others = (np.array([run.by_query[qid][name] for qid in shared]) for run in (first, second))
        difference = values - others
        p_value = 1.0
        if difference.any():
            test = stats.permutation_test((difference,), np.mean, permutation_type="samples", **RESAMPLING)
            p_value = float(test.pvalue)
        comparisons.append(RunComparison(name, float(difference.mean()), p_value))
    return comparisons


def _figure(name: str, values: Sequence[float]) -> Figure:
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2 or len(set(values)) == 1:
        return Figure(name, mean, mean, mean)
    how: dict[str, Any] = {"confidence_level": CONFIDENCE, "method": "percentile", **RESAMPLING}
    interval = stats.bootstrap((np.array(values),), np.mean, **how).confidence_interval
    return Figure(name, mean, float(interval.low), float(interval.high))


@displayed
class QueryOutcome(NamedTuple):
    """What a run returned for a question."""

    qid: str
    first_rank: int | None  # of a document that answers it
    wanted: list[str]  # document ids
    returned: list[str]  # document ids, best first


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
            relevant = set(relevant_documents(judged))
            retrieved = {doc_id for doc_id, _ in run.get(qid, [])[:depth]}
            shares.append(len(relevant & retrieved) / len(relevant) if relevant else 0.0)
        curve.append((depth, sum(shares) / len(shares) if shares else 0.0))
    return curve


def hardest(qrels: Qrels, run: Run, n: int = 10, shown: int = 5) -> Rows[QueryOutcome]:
    """Return the `n` questions that are answered last, those never answered first, each with the documents returned."""
    ranks = first_hit_ranks(qrels, run)
    worst = sorted(ranks, key=lambda qid: (-(ranks[qid] or float("inf")), qid))[:n]
    return Rows(_make_outcome(qid, ranks[qid], qrels, run, shown) for qid in worst)


def sampled(qrels: Qrels, run: Run, n: int = 5, shown: int = 1, seed: int = 0) -> Rows[QueryOutcome]:
    """Return `n` judged questions drawn at random, answered or not."""
    ranks = first_hit_ranks(qrels, run)
    drawn = random.Random(seed).sample(sorted(ranks), min(n, len(ranks)))  # noqa: S311 - a sample, no secret
    return Rows(_make_outcome(qid, ranks[qid], qrels, run, shown) for qid in drawn)


def _make_outcome(qid: str, rank: int | None, qrels: Qrels, run: Run, shown: int) -> QueryOutcome:
    return QueryOutcome(qid, rank, relevant_documents(qrels[qid]), [doc_id for doc_id, _ in run.get(qid, [])[:shown]])


def relevant_documents(judged: Mapping[str, int]) -> list[str]:
    """Return the ids of the relevant among the documents judged for a query."""
    return [doc_id for doc_id, relevance in judged.items() if relevance > 0]


def absent_documents(qrels: Qrels, corpus: Container[str]) -> list[str]:
    """Return the ids of the relevant documents that a corpus lacks, sorted."""
    return sorted(
        {doc_id for judged in qrels.values() for doc_id in relevant_documents(judged) if doc_id not in corpus}
    )


def plot_runs(qrels: Qrels, runs: Mapping[str, Run]) -> "Plot":
    """Draw how recall grows with depth, and how many questions have their first hit at which rank, for each run."""
    require("matplotlib")
    from matplotlib.figure import Figure as Plot

    figure = Plot(figsize=(10, 4), layout="constrained")
    curves, ranks = figure.subplots(1, 2)
    for name, run in runs.items():
        depths, recalls = zip(*recall_curve(qrels, run), strict=True)
        curves.plot(depths, recalls, marker="o", label=name)
    curves.set(xscale="log", ylim=(0, 1.02), xlabel="rang k", ylabel="rappel à k", title="Rappel")
    curves.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS], minor=False)
    curves.legend()
    _draw_ranks(ranks, qrels, runs)
    return figure


def save_plot(figure: "Plot", path: str | Path) -> None:
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
