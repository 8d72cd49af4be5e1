"""Recall of search beside BM25, on questions with known answers.

Run: python benchmarks/retrieval.py --index-name NAME --queries FILE [--qrels FILE]

The Library must be built. BM25 is bm25s with its defaults and Snowball's French stemmer, over the same documents,
whole, title first. Figures are document level, from ir_measures: a document's rank is its best chunk's.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bm25s
import ir_measures
import Stemmer
from ir_measures import RR, Qrel, R, ScoredDoc

from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.retriever import Retriever, build_retriever

MEASURES = [R @ 1, R @ 5, R @ 10, R @ 100, RR]
DEPTH = 100  # documents ranked for each query


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--qrels", type=Path)
    arguments = parser.parse_args()

    library = Library.open(arguments.index_folder, arguments.index_name)
    queries = [json.loads(line) for line in arguments.queries.read_text(encoding="utf-8").splitlines()]
    qrels = list(_read_qrels(arguments.qrels)) if arguments.qrels else [Qrel(q["qid"], q["doc_id"], 1) for q in queries]
    qrels = [qrel for qrel in qrels if qrel.doc_id in library]
    print(f"{library.n_documents} documents, {len(queries)} queries, {len(qrels)} judgements")
    print(f"{'':18}{''.join(f'{measure!s:>9}' for measure in MEASURES)}{'ms/query':>10}")
    retriever = build_retriever(library)
    _print_row("BM25 (bm25s)", _bm25(library), queries, qrels)
    _print_row("late interaction", _late_interaction(retriever), queries, qrels)


def _print_row(
    name: str, search: Callable[[str], list[tuple[str, float]]], queries: list[dict[str, str]], qrels: list[Qrel]
) -> None:
    search(queries[0]["question"])  # warm
    started = time.perf_counter()
    run = [ScoredDoc(q["qid"], doc, score) for q in queries for doc, score in search(q["question"])]
    milliseconds = (time.perf_counter() - started) / len(queries) * 1000
    figures = ir_measures.calc_aggregate(MEASURES, qrels, run)
    print(f"{name:18}{''.join(f'{figures[measure]:9.3f}' for measure in MEASURES)}{milliseconds:10.0f}")


def _bm25(library: Library) -> Callable[[str], list[tuple[str, float]]]:
    documents = list(library.documents())
    ids = [document.id for document in documents]
    stemmer = Stemmer.Stemmer("french")

    def tokens(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="fr", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(
        tokens([f"{d.title}\n{d.extra.get('section', '')}\n{d.content}" for d in documents]), show_progress=False
    )

    def search(query: str) -> list[tuple[str, float]]:
        numbers, scores = index.retrieve(tokens([query]), k=min(DEPTH, len(ids)), show_progress=False)
        return [(ids[number], float(score)) for number, score in zip(numbers[0], scores[0], strict=True)]

    return search


def _late_interaction(retriever: Retriever) -> Callable[[str], list[tuple[str, float]]]:
    return lambda query: [(hit.doc_id, hit.score) for hit in retriever.search(query, DEPTH, by_document=True)]


def _read_qrels(path: Path) -> Iterator[Qrel]:
    for line in path.read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, relevance = line.split()
        yield Qrel(query_id, doc_id, int(relevance))


if __name__ == "__main__":
    main()
