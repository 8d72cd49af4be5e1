"""Measuring retrieval the TREC way: queries, qrels, runs, figures."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

_HOMES = {
    "Qrels": "trec",
    "Query": "trec",
    "Run": "trec",
    "batch_query": "metrics",
    "compare_runs": "metrics",
    "evaluate_run": "metrics",
    "hardest": "analysis",
    "measures": "metrics",
    "plot_runs": "analysis",
    "read_qrels": "trec",
    "read_queries": "trec",
    "read_run": "trec",
    "save_plot": "analysis",
    "write_qrels": "trec",
    "write_run": "trec",
}
__all__ = sorted(_HOMES)

if TYPE_CHECKING:
    from legal_rag.evaluation.analysis import hardest as hardest
    from legal_rag.evaluation.analysis import plot_runs as plot_runs
    from legal_rag.evaluation.analysis import save_plot as save_plot
    from legal_rag.evaluation.metrics import batch_query as batch_query
    from legal_rag.evaluation.metrics import compare_runs as compare_runs
    from legal_rag.evaluation.metrics import evaluate_run as evaluate_run
    from legal_rag.evaluation.metrics import measures as measures
    from legal_rag.evaluation.trec import Qrels as Qrels
    from legal_rag.evaluation.trec import Query as Query
    from legal_rag.evaluation.trec import Run as Run
    from legal_rag.evaluation.trec import read_qrels as read_qrels
    from legal_rag.evaluation.trec import read_queries as read_queries
    from legal_rag.evaluation.trec import read_run as read_run
    from legal_rag.evaluation.trec import write_qrels as write_qrels
    from legal_rag.evaluation.trec import write_run as write_run
else:
    __getattr__ = lazy_exports(__name__, _HOMES)
