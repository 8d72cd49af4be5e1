"""Evaluate rankings: batch queries, recall, nDCG, MRR, MAP with confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legal_rag.base.files import progress
from legal_rag.base.html import Rows, displayed
from legal_rag.evaluation.trec import NO_MODEL, Qrels, Query, Run, falling
from legal_rag.library.filters import Filters
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever

if TYPE_CHECKING:
    from ir_measures import Measure


BATCH_QUERIES = 32  # encoded and searched together
SEED, RESAMPLES = 0, 10_000  # of confidence intervals and of significance tests
BATCH_RESAMPLES = 500  # held in memory at a time
CONFIDENCE = 0.95


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


class RunComparison(NamedTuple):
    """Two runs over the same queries, by one measure."""

    measure: str
    difference: float  # mean of the first less mean of the second
    p_value: float  # two-sided, of a paired randomisation test


def measures(k: int | None = None) -> "list[Measure]":
    """Return the default measures: recall, nDCG, reciprocal rank, average precision; none that looks below rank `k`."""
    from ir_measures import AP, RR, R, nDCG

    known = [R @ 1, R @ 5, R @ 10, R @ 100, nDCG @ 10, RR, AP]
    return [measure for measure in known if k is None or measure.params.get("cutoff", 0) <= k]


def batch_query(
    retriever: Retriever,
    queries: Sequence[Query],
    k: int = 100,
    *,
    mode: Mode | None = None,
    filters: Filters | None = None,
) -> Run:
    """Rank at most `k` documents for each question; questions are encoded and searched in batches.

    Raises:
        ValueError: If a question is empty or longer than the encoder reads; the message names it.
    """
    for query in queries:
        try:
            retriever.encoder.check_query(query.text)
        except ValueError as error:
            raise ValueError(f"query {query.qid!r}: {error}") from error
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


def evaluate_run(qrels: Qrels, run: Run, wanted: "Sequence[Measure] | None" = None) -> Evaluation:
    """Measure a run over all judged queries; a query without results counts 0, as with trec_eval's -c.

    Intervals are of the mean, by the bootstrap over queries (Efron; percentile method, fixed seed).

    Raises:
        ValueError: If there are no judgements.
    """
    import ir_measures

    if not qrels:
        raise ValueError("no judgements: nothing to measure")
    wanted = measures() if wanted is None else wanted
    as_read = {qid: dict(falling(ranked)) for qid, ranked in run.items()}  # by trec_eval
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


def compare_runs(first: Evaluation, second: Evaluation) -> list[RunComparison]:
    """Compare two runs by each measure that both have, over the queries that both were measured on.

    The test exchanges the runs' values query by query at random (Fisher; Smucker, Allan and Carterette, 2007).

    Raises:
        ValueError: If they have no query in common.
    """
    from scipy import stats

    shared = [qid for qid in first.by_query if qid in second.by_query]
    if not shared:
        raise ValueError("the two runs were measured on different queries")
    names = [figure.measure for figure in first.figures if figure.measure in second.by_query[shared[0]]]
    comparisons = []
    for name in names:
        values, others = (np.array([run.by_query[qid][name] for qid in shared]) for run in (first, second))
        difference = values - others
        p_value = 1.0
        if difference.any():
            test = stats.permutation_test(
                (difference,),
                np.mean,
                permutation_type="samples",
                n_resamples=RESAMPLES,
                batch=BATCH_RESAMPLES,
                rng=SEED,
            )
            p_value = float(test.pvalue)
        comparisons.append(RunComparison(name, float(difference.mean()), p_value))
    return comparisons


def _figure(name: str, values: Sequence[float]) -> Figure:
    from scipy import stats

    mean = float(np.mean(values))
    if len(values) < 2 or len(set(values)) == 1:
        return Figure(name, mean, mean, mean)
    interval = stats.bootstrap(
        (np.array(values),),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        batch=BATCH_RESAMPLES,
        method="percentile",
        rng=SEED,
    ).confidence_interval
    return Figure(name, mean, float(interval.low), float(interval.high))
