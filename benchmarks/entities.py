"""Entities by rules: how many, how fast, how right, and what they do for questions that name facts.

Run: python benchmarks/entities.py --data FOLDER [--documents N] [--questions 50]

FOLDER holds `decisions.jsonl.gz`. Printed as JSON:

- scores: precision and recall of each class on the windows annotated by hand in `tests/annotations`;
- counts: entities of each class, and how many are not the text at their place (none should be);
- speed: documents a second of process time, for the rules alone and through LangExtract, and of the whole command;
- facts: recall@1 of `bm25` for questions that name a party, an amount or a day, before and after extraction. Right is
  every decision that has the fact among its entities; the questions are made of entities drawn at random.
"""

import argparse
import json
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
    annotated = scores({one.id: one for one in documents})
    documents = documents[: arguments.documents]
    found, counted = counts(documents)
    with tempfile.TemporaryDirectory() as folder:
        speed = command(documents, folder)
        named = facts(found, folder, arguments.questions)
    figures = {"scores": annotated, **counted, "extract, documents a second": speed, "recall@1": named}
    print(json.dumps(figures, indent=1))


def scores(documents: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return precision and recall on the annotated windows."""
    sys.path.insert(0, str(TESTS))
    from support.entity_scores import ANNOTATIONS
    from support.entity_scores import scores as scored

    names = {"60 windows": "entities.jsonl", "24 held out": "held_out.jsonl"}
    tables = {label: scored(ANNOTATIONS / file, documents) for label, file in names.items()}
    return {
        label: {one: {"P": cell[0], "R": cell[1]} for one, cell in table.items() if cell}
        for label, table in tables.items()
    }


def counts(documents: list[Any]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Find all entities by the rules alone, check each, and count them; and how fast they were found."""
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
    counted = {
        "entities": classes.total(),
        "not the text at their place": wrong,
        "classes": dict(classes.most_common()),
    }
    return found, {**counted, "rules alone, documents a second": len(documents) / seconds}


def command(documents: list[Any], folder: str) -> float:
    """Return how fast `legal-rag extract` fills a Library and writes its files."""
    from legal_rag.extraction import ExtractionSettings
    from legal_rag.indexer import IndexConfig, build_index, extract_library
    from legal_rag.library import Library

    rows = [one.row() for one in documents]
    build_index(IndexConfig(source=rows, index_folder=folder, index_name="before", n_bits=0))
    build_index(IndexConfig(source=rows, index_folder=folder, index_name="after", n_bits=0))
    started = time.process_time()
    report = extract_library(Library(Path(folder, "after")), ExtractionSettings())
    return report.documents / (time.process_time() - started)


def facts(found: dict[str, list[Any]], folder: str, n_questions: int) -> dict[str, dict[str, float]]:
    """Return recall@1 for questions that name facts, without and with entities."""
    from legal_rag.library import Library
    from legal_rag.retriever import build_retriever

    retrievers = {name: build_retriever(Library(Path(folder, name))) for name in ("before", "after")}
    recalls: dict[str, dict[str, float]] = {}
    for extraction_class, question in FACTS.items():
        holders: dict[str, set[str]] = {}
        for id_, some in found.items():
            for one in some:
                if one["extraction_class"] == extraction_class:
                    holders.setdefault(" ".join(one["extraction_text"].split()), set()).add(id_)
        rare = sorted(text for text, ids in holders.items() if len(ids) <= MOST_HOLDERS and 6 <= len(text) <= 60)
        chosen = random.Random(1).sample(rare, n_questions)
        right = {
            name: sum(
                bool(hits := retriever.search(question.format(text), 1, mode="bm25"))
                and hits[0].doc_id in holders[text]
                for text in chosen
            )
            for name, retriever in retrievers.items()
        }
        recalls[extraction_class] = {name: n / len(chosen) for name, n in right.items()}
    return recalls


if __name__ == "__main__":
    main()
