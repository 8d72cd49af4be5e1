"""Entities by rules: how many, how fast, how right, and what they do for questions that name facts.

Run: python benchmarks/entities.py --data FOLDER [--documents N] [--questions 50]

FOLDER holds `decisions.jsonl.gz`. Tables:

- scores: precision and recall of each class on the windows annotated by hand in `tests/annotations`;
- counts: entities of each class, and how many are not the text at their place (none should be);
- speed: documents a second of process time, for the rules alone and through LangExtract, and of the whole command;
- facts: recall@1 of `bm25` for questions that name a party, an amount or a day, before and after extraction. Right is
  every decision that has the fact among its entities; the questions are made of entities drawn at random.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
FACTS = {
    "partie": "Dans quelle affaire {} était-il en cause ?",
    "montant": "Dans quelle affaire la somme de {} est-elle en cause ?",
    "date": "Que s'est-il passé le {} ?",
}
MOST_HOLDERS = 5  # decisions that a fact of a question may lead to: what hundreds have, asks for none of them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--questions", type=int, default=50)
    arguments = parser.parse_args()
    from legal_rag.corpus import read_documents

    documents = list(read_documents(arguments.data / "decisions.jsonl.gz"))
    scores({one.id: one for one in documents})
    documents = documents[: arguments.documents]
    found = counts(documents)
    with tempfile.TemporaryDirectory() as folder:
        command(documents, folder)
        facts(documents, found, folder, arguments.questions)


def scores(documents: dict[str, Any]) -> None:
    """Print precision and recall on the annotated windows."""
    sys.path.insert(0, str(TESTS))
    from support.entity_scores import ANNOTATIONS
    from support.entity_scores import scores as scored

    names = {"60 windows": "entities.jsonl", "24 held out": "held_out.jsonl"}
    tables = {label: scored(ANNOTATIONS / file, documents) for label, file in names.items()}
    print(f"{'class':20} " + " ".join(f"{label:>24}" for label in tables))
    for name in dict.fromkeys(name for table in tables.values() for name in table):
        cells = [table.get(name) for table in tables.values()]
        print(f"{name:20} " + " ".join(f"{f'P {p:.3f} R {r:.3f}' if (p, r) else '':>24}" for p, r in cells))


def counts(documents: list[Any]) -> dict[str, list[Any]]:
    """Find all entities by the rules alone, check each, and print how many there are and how fast they were found."""
    from legal_rag.extraction.rules import find_entities

    find_entities(documents[0].content)
    started = time.process_time()
    found = {one.id: find_entities(one.content) for one in documents}
    seconds = time.process_time() - started
    contents = {one.id: one.content for one in documents}
    classes = Counter(entity["extraction_class"] for some in found.values() for entity in some)
    wrong = sum(
        contents[id_][entity["char_start"] : entity["char_end"]] != entity["extraction_text"]
        for id_, some in found.items()
        for entity in some
    )
    print(f"\n{len(documents)} documents, {classes.total()} entities, {wrong} not the text at their place")
    print(", ".join(f"{name} {n}" for name, n in classes.most_common()))
    print(f"rules alone: {len(documents) / seconds:.0f} documents a second of process time")
    return found


def command(documents: list[Any], folder: str) -> None:
    """Print how fast `legal-rag extract` fills a Library and writes its files."""
    from legal_rag.extraction import ExtractionSettings
    from legal_rag.indexer import IndexConfig, build_index, extract_library
    from legal_rag.library import Library

    rows = [one.row() for one in documents]
    build_index(IndexConfig(source=rows, index_folder=folder, index_name="before", n_bits=0))
    build_index(IndexConfig(source=rows, index_folder=folder, index_name="after", n_bits=0))
    started = time.process_time()
    report = extract_library(Library(Path(folder, "after")), ExtractionSettings())
    print(
        f"legal-rag extract, files and all: {report.documents / (time.process_time() - started):.0f} documents a second"
    )


def facts(documents: list[Any], found: dict[str, list[Any]], folder: str, n_questions: int) -> None:
    """Print recall@1 for questions that name facts, and what a search takes."""
    from legal_rag.library import Library
    from legal_rag.retriever import build_retriever

    retrievers = {name: build_retriever(Library(Path(folder, name))) for name in ("before", "after")}
    for extraction_class, question in FACTS.items():
        holders: dict[str, set[str]] = {}
        for id_, some in found.items():
            for one in some:
                if one["extraction_class"] == extraction_class:
                    holders.setdefault(" ".join(one["extraction_text"].split()), set()).add(id_)
        rare = sorted(text for text, ids in holders.items() if len(ids) <= MOST_HOLDERS and 6 <= len(text) <= 60)
        chosen = random.Random(1).sample(rare, n_questions)
        cells = []
        for name, retriever in retrievers.items():
            right, seconds = 0, []
            for text in chosen:
                started = time.perf_counter()
                hits = retriever.search(question.format(text), 1, mode="bm25")
                seconds.append(time.perf_counter() - started)
                right += bool(hits) and hits[0].doc_id in holders[text]
            cells.append(f"{name} {right / len(chosen):.3f} ({sorted(seconds)[len(seconds) // 2] * 1000:.1f} ms)")
        print(f"recall@1, {extraction_class:8} " + ", ".join(cells))


if __name__ == "__main__":
    main()
