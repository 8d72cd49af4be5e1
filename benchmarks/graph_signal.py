"""Hybrid ranking with and without connections in the knowledge graph, on questions with known answers.

Run: python benchmarks/graph_signal.py --index-name NAME --queries FILE [--qrels FILE] [--weight 1] [--all]

The Library must have a graph. Each line is a definition of the signal and a weight: the differences from the ranking
without it, each with its 95 % interval (bootstrap over queries) and the p-value of a two-sided randomisation test of
pairs; then what reading the graph takes for a question. `--all` adds the definitions that were tried beside the one
that `graph_weight` means.
"""

import argparse
import math
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from ir_measures import RR, R
from scipy import stats

from legal_rag.evaluation import compare_runs, evaluate_run, read_qrels, read_queries
from legal_rag.evaluation.metrics import CONFIDENCE, RESAMPLES, SEED, Evaluation
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library, SearchSettings
from legal_rag.retriever import Retriever, build_retriever, ranking

DEPTH = 100  # documents ranked for each query
WEIGHTS = (0.3, 1.0, 3.0)
MEASURES = [R @ 1, R @ 5, R @ 10, RR @ 10]
Named = Mapping[int, Set[int]]
Density = Callable[[Mapping[int, float], Named, Mapping[int, int]], dict[int, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--qrels", type=Path)
    parser.add_argument("--weight", type=float, action="append")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    library = Library.open(arguments.index_folder, arguments.index_name)
    queries, qrels = read_queries(arguments.queries)
    qrels = read_qrels(arguments.qrels) if arguments.qrels else qrels
    without = build_retriever(library)
    encoded = {query.qid: without.query(query.text) for query in queries}

    def measured(retriever: Retriever) -> Evaluation:
        found = retriever.search_batch(list(encoded.values()), DEPTH, by_document=True)
        run = {qid: [(hit.doc_id, hit.score) for hit in hits] for qid, hits in zip(encoded, found, strict=True)}
        return evaluate_run(qrels, run, MEASURES)

    base = measured(without)
    print(f"{library.n_documents:,} documents, {len(queries)} queries")
    print(f"{'without':20}" + "".join(f"{one.measure:>8} {one.mean:.4f}" for one in base.figures), flush=True)
    for name, density in (DENSITIES if arguments.all else {"shared names": ranking.connection_densities}).items():
        for weight in arguments.weight or WEIGHTS:
            with_it = build_retriever(library, without.encoder, settings=SearchSettings(graph_weight=weight))
            spent = _timed(with_it._ranker, density)
            found = measured(with_it)
            print(f"{name:14} {weight:4g}", *_differences(found, base), sep="  ", end="  ")
            print(
                f"{statistics.median(spent):.1f} ms (at most {max(spent):.1f}); load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


def _timed(ranker: Any, density: Density) -> list[float]:
    """Let a ranker use a definition; return the list to which it adds what reading and scoring take, in ms."""
    read, spent = ranker._shared_names, []

    def timed(documents: Sequence[int]) -> tuple[Named, Mapping[int, int]]:
        started = time.perf_counter()
        found = read(documents)
        spent.append((time.perf_counter() - started) * 1000)
        return found

    ranker._shared_names, ranking.connection_densities = timed, density
    return spent


def _differences(one: Evaluation, other: Evaluation) -> list[str]:
    differences = []
    for compared in compare_runs(one, other):
        name = compared.measure
        by_query = np.array([one.by_query[qid][name] - other.by_query[qid][name] for qid in one.by_query])
        low = high = 0.0
        if by_query.any():
            options = {"confidence_level": CONFIDENCE, "n_resamples": RESAMPLES, "method": "percentile", "rng": SEED}
            low, high = stats.bootstrap((by_query,), np.mean, batch=500, **options).confidence_interval
        differences.append(f"{name} {compared.difference:+.4f} [{low:+.3f}, {high:+.3f}] p={compared.p_value:.2f}")
    return differences


def _surplus(scores: Mapping[int, float]) -> dict[int, float]:
    best = sorted(scores, key=lambda key: (-scores[key], key))[: ranking.CONNECTED_DOCUMENTS]
    return {key: scores[key] - scores[best[-1]] for key in best}


def cosine(scores: Mapping[int, float], named: Named, degrees: Mapping[int, int]) -> dict[int, float]:
    """Average the cosine with the best others, of what both name weighed as above."""
    surplus = _surplus(scores)
    vectors = {key: {node: 1 / math.log(2 + degrees[node]) for node in sorted(nodes)} for key, nodes in named.items()}
    norms = {key: math.sqrt(sum(value**2 for value in vector.values())) for key, vector in vectors.items()}
    centre: dict[int, float] = defaultdict(float)
    for key, own in surplus.items():
        for node, value in vectors.get(key, {}).items():
            centre[node] += own * value / norms[key]
    total, found = sum(surplus.values()), {}
    for key, vector in vectors.items():
        own = surplus.get(key, 0.0)
        if vector and total > own:
            shared = sum(value * centre.get(node, 0.0) for node, value in vector.items()) / norms[key]
            found[key] = (shared - own) / (total - own)
    return found


def walk(scores: Mapping[int, float], named: Named, degrees: Mapping[int, int]) -> dict[int, float]:
    """Walk two steps at random from the best: to what they name, and on to what names it too."""
    surplus = _surplus(scores)
    reached: dict[int, float] = defaultdict(float)
    for key, own in surplus.items():
        for node in named.get(key, ()):
            reached[node] += own / len(named[key])
    return {
        key: sum((reached[node] - surplus.get(key, 0.0) / len(nodes)) / degrees[node] for node in sorted(nodes))
        for key, nodes in named.items()
        if nodes
    }


def degree(scores: Mapping[int, float], named: Named, degrees: Mapping[int, int]) -> dict[int, float]:
    """Count what a document names that any other candidate names: a prior, whatever the others score."""
    return {key: math.log1p(len(nodes)) for key, nodes in named.items()}


DENSITIES: dict[str, Density] = {
    "shared names": ranking.connection_densities,
    "their cosine": cosine,
    "two-step walk": walk,
    "degree": degree,
}


if __name__ == "__main__":
    main()
