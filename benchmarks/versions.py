"""Make a simulated LEGI, articles in several versions each, and measure what its versions cost a search.

Run: python benchmarks/versions.py --out FOLDER [--articles 25000] [--versions 4] [--questions 100] [--seed 0]

Articles are made of words drawn by Zipf's law; each version replaces a tenth of the words of the one before and takes
its place on a day of its own. The Library has a store and words alone: BM25 ranks, and the filter by day is the same in
all modes. Searches are timed by turns: over all versions, as of a Library without versions; of those in force today, as
by default; and of those of another day each time. Bytes are those of the files, and of the table of versions with its
indexes alone.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from legal_rag.base.files import progress
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import Chunk
from legal_rag.corpus.documents import read_documents
from legal_rag.indexer import IndexConfig, build_index, commit
from legal_rag.library import Filters, Library, version_at
from legal_rag.library.library import STORE, is_library
from legal_rag.library.store import StoreWriter
from legal_rag.retriever import Retriever

NAME = "legi"
N_WORDS, WORDS_OF_ARTICLE = 20_000, (40, 160)
CHANGED = 0.1  # share of words that a version replaces
FIRST, LAST = date(1990, 1, 1), date(2026, 1, 1)
K = 10


def main() -> None:
    """Build the Library unless it is there, and print what it costs as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--articles", type=int, default=25_000)
    parser.add_argument("--versions", type=int, default=4)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not is_library(arguments.out / NAME):
        make(arguments.out, arguments.articles, arguments.versions, random.Random(arguments.seed))
    library = Library.open(arguments.out, NAME)
    figures = {"documents": library.n_documents, **stored_bytes(library)}
    rng = random.Random(arguments.seed + 1)
    print(json.dumps(figures | timings(library, arguments.questions, rng), indent=1))


def make(out: Path, n_articles: int, n_versions: int, rng: random.Random) -> None:
    """Write a Library of the versions of simulated articles, each one chunk."""
    build_index(IndexConfig(source=[{"id": "a", "content": "Un."}], index_folder=str(out), index_name="one", n_bits=0))
    manifest = Library.open(out, "one").manifest
    folder = out / NAME
    folder.mkdir(parents=True, exist_ok=True)
    total = n_articles * n_versions
    with closing(StoreWriter(folder / STORE, shard_chunks=manifest["plaid"]["shard_chunks"])) as writer:
        rows = read_documents(simulated_rows(n_articles, n_versions, rng))
        for document in progress("Simulating", iterable=rows, total=total, unit=" documents"):
            writer.add(document, [Chunk(document.id, 0, 0, len(document.content), document.content)])
        writer.finish()
        counts = {"documents": writer.n_documents, "chunks": writer.n_chunks, "bad_records": 0}
        n_shards = writer.n_shards
    fields = {name: manifest[name] for name in ("encoder", "chunks", "source", "plaid")}
    commit.finish_library(folder, {"commit": 1, **fields, "counts": counts, "built": {}}, n_shards)


def simulated_rows(n_articles: int, n_versions: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the versions of articles as rows, those of one article together."""
    words, weights = vocabulary(rng)
    for article in range(n_articles):
        text = rng.choices(words, cum_weights=weights, k=rng.randint(*WORDS_OF_ARTICLE))
        days = sorted(rng.sample(range((LAST - FIRST).days), n_versions))
        bounds = [(FIRST + timedelta(day)).isoformat() for day in days]
        for n, (first, until) in enumerate(zip(bounds, [*bounds[1:], None], strict=True)):
            number = f"L{1000 + article // 20}-{1 + article % 20}"
            yield {
                "id": f"LEGIARTI{article * n_versions + n:012}",
                "title": f"Code du travail, article {number}",
                "content": f"{' '.join(text)}.",
                "number": number,
                "text_title": "Code du travail",
                "article_id": f"LEGIARTI{article * n_versions:012}",
                "valid_from": first,
                "valid_until": until,
                "state": "MODIFIE" if until else "VIGUEUR",
            }
            for place in rng.sample(range(len(text)), max(int(CHANGED * len(text)), 1)):
                text[place] = rng.choices(words, cum_weights=weights)[0]


def vocabulary(rng: random.Random) -> tuple[list[str], list[float]]:
    """Return made-up words and their cumulative weights by Zipf's law."""
    syllables = [one + other for one in "bcdfglmnprstv" for other in ("a", "e", "i", "o", "u", "an", "on")]
    words = list(dict.fromkeys("".join(rng.choices(syllables, k=rng.randint(2, 5))) for _ in range(N_WORDS)))
    return words, list(accumulate(1 / rank for rank in range(1, len(words) + 1)))


def stored_bytes(library: Library) -> dict[str, int]:
    """Return the bytes of all files, of the store, and of the table of versions with its index."""
    files = [file for file in library.path.rglob("*") if file.is_file()]
    connection = connect_to_read(library.path / STORE)
    pages = "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE 'versions%'"
    (versions,) = connection.execute(pages).fetchone()
    connection.close()
    sizes = {"all_bytes": sum(file.stat().st_size for file in files)}
    return {**sizes, "store_bytes": (library.path / STORE).stat().st_size, "versions_bytes": versions}


def timings(library: Library, n_questions: int, rng: random.Random) -> dict[str, Any]:
    """Return milliseconds, median and 95th percentile, of searches and look-ups by day."""
    without = Library(library.path)
    without.has_versions = False
    retriever, of_all = Retriever(library), Retriever(without)
    ids = list(library)
    questions = [" ".join(rng.sample(library.document(rng.choice(ids)).content.split(), 5)) for _ in range(n_questions)]
    titles = [library.document(rng.choice(ids)).title for _ in questions]
    days = [FIRST + timedelta(rng.randrange((LAST - FIRST).days)) for _ in questions]
    ways: dict[str, Callable[[int], object]] = {
        "all versions": lambda n: of_all.search(questions[n], K, mode="bm25"),
        "in force today": lambda n: retriever.search(questions[n], K, mode="bm25"),
        "in force on another day": lambda n: retriever.search(
            questions[n], K, mode="bm25", filters=Filters(at=days[n])
        ),
        "one article on a day": lambda n: version_at(titles[n], days[n], library),
    }
    for way in ways.values():
        way(0)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(n_questions):
        for name, way in ways.items():
            started = time.process_time()
            way(n)
            taken[name].append(1000 * (time.process_time() - started))
    return {
        name: {"median_ms": round(statistics.median(ms), 1), "p95_ms": round(statistics.quantiles(ms, n=20)[-1], 1)}
        for name, ms in taken.items()
    }


if __name__ == "__main__":
    main()
