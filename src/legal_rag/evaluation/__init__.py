"""Measuring retrieval the TREC way: queries, qrels, runs, figures."""

from typing import TYPE_CHECKING

from legal_rag.lazy import lazy_exports

if TYPE_CHECKING:
    from legal_rag.evaluation.analysis import hardest, plot_runs, sampled, save_plot
    from legal_rag.evaluation.metrics import batch_query, caution, compare_runs, evaluate_run, measures
    from legal_rag.evaluation.trec import (
        Qrels,
        Query,
        Run,
        find_trec_python,
        read_qrels,
        read_queries,
        read_run,
        trec_eval,
        trec_python,
        write_qrels,
        write_run,
    )
else:
    __all__, __getattr__ = lazy_exports(__name__, __file__)
