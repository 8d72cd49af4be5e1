"""Milliseconds a search takes in each mode, with and without filters; and whether names and filters do what they say.

Run: python benchmarks/modes.py --index-name NAME --queries FILE [--seed 0]

Encoding the question is measured apart: searching starts from its vectors and words. The narrow filter keeps one
document in a hundred, chosen at random. Names: a hundred identifiers that one document goes by, drawn at random, each
asked for in a sentence; the document must come first. Filters: courts, outcomes and years that occur, drawn at random,
each compared with a scan of all documents.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from legal_rag.base.sqlite import connect_to_read
from legal_rag.evaluation import read_queries
from legal_rag.law import SERIES
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Filters, Library
from legal_rag.library.filters import fitting
from legal_rag.library.library import STORE
from legal_rag.retriever import MODES, Retriever, build_retriever
from legal_rag.retriever.ranking import QueryFeatures

K, ROUNDS = 10, 3
NAMES, FILTERS = 100, 100
SENTENCES = {
    "pourvoi": "Que dit l'arrêt rendu sur le pourvoi n° {} ?",
    "ecli": "Que décide {} ?",
    "rg": "Que juge la cour dans l'affaire n° RG {} ?",
}
OTHER_SENTENCE = "Que dit la décision n° {} ?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    library = Library.open(arguments.index_folder, arguments.index_name)
    retriever = build_retriever(library)
    generator = random.Random(arguments.seed)
    texts = [query.text for query in read_queries(arguments.queries)[0]]
    figures = {
        "milliseconds": latencies(retriever, texts, generator),
        "names": names_first(retriever, library, generator),
        "filters": filters_right(library, generator),
    }
    print(json.dumps(figures, indent=1))


def latencies(retriever: Retriever, texts: list[str], generator: random.Random) -> dict[str, dict[str, float]]:
    """Return the median and the 95th percentile of each mode, over the questions, by turns."""
    ids = list(retriever.corpus)  # type: ignore[call-overload]
    narrow = retriever.corpus.positions(Filters(doc_ids=generator.sample(ids, max(len(ids) // 100, 1))))
    encode = [_timed(partial(retriever.encoder.encode_queries, [text])) for text in texts]
    questions = [QueryFeatures(question.query, question.vectors) for question in retriever._questions(texts, "hybrid")]
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for question in questions:
            for mode in MODES:
                for name, subsets in (("", None), ("1 %", narrow)):
                    spent = _timed(partial(retriever._ranker.rank, [question], K, mode, subsets))
                    times.setdefault((mode, name), []).append(spent)
    return {
        f"{mode}, {name}".removesuffix(", "): {
            "p50": statistics.median(spent),
            "p95": statistics.quantiles(spent, n=20)[-1],
        }
        for (mode, name), spent in {("encoding", ""): encode, **times}.items()
    }


def names_first(retriever: Retriever, library: Library, generator: random.Random) -> dict[str, int]:
    """Count how often a document comes first for its name."""
    query = (
        "SELECT term, MIN(id) FROM names JOIN documents USING (document_key)"
        " WHERE own AND removed IS NULL AND term NOT LIKE 'cc:%' AND term NOT LIKE 'article:%'"
        " GROUP BY term HAVING COUNT(*) = 1 ORDER BY term"
    )
    with closing(connect_to_read(library.path / STORE)) as connection:
        held = connection.execute(query).fetchall()
    chosen = generator.sample(held, min(NAMES, len(held)))
    right = 0
    for term, doc_id in chosen:
        kind, _, value = term.partition(":")
        shown = f"{value} {kind.upper()}" if kind in SERIES else value
        question = SENTENCES.get(kind, OTHER_SENTENCE).format(shown)
        right += retriever.search(question, 1)[0].doc_id == doc_id
    return {"asked": len(chosen), "first": right}


def filters_right(library: Library, generator: random.Random) -> dict[str, int]:
    """Count the filters by which the documents that pass are those that a scan finds."""
    rows = [document.row() for document in library.documents()]
    right = 0
    for number in range(FILTERS):
        row = generator.choice(rows)
        filters, passes = _a_filter(row, number)
        found = {chunk.doc_id for chunk in library.chunks_at(_places(library, filters))}
        right += found == {str(other["id"]) for other in rows if passes(other)}
    return {"tried": FILTERS, "right": right}


def _a_filter(row: dict[str, object], number: int) -> tuple[Filters, Callable[[dict[str, object]], bool]]:
    court, outcome, day = (str(row.get(name) or "") for name in ("juridiction", "solution", "decision_date"))
    if number % 3 == 0 and day:
        year = day[:4]
        return Filters(date_from=year, date_to=year), lambda other: str(other.get("decision_date") or "")[:4] == year
    column, value = ("solution", outcome) if number % 3 == 1 and outcome else ("juridiction", court)
    return Filters(**{column: value}), lambda other: _fits(value, column, other)


def _fits(value: str, column: str, row: dict[str, object]) -> bool:
    columns = ("juridiction", "formation") if column == "juridiction" else (column,)
    return bool(fitting(value, [tuple(str(row.get(name) or "") for name in columns)]))


def _places(library: Library, filters: Filters) -> list[tuple[int, int]]:
    return [(shard, int(one)) for shard, some in enumerate(library.positions(filters)) for one in some]


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
