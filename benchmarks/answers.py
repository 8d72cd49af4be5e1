"""Measure what evidence mode shows for questions whose answer is known, over a whole Library.

Run: python benchmarks/answers.py --index-folder FOLDER --index-name NAME QUERIES [--split tune|held] [--sheet FILE]

QUERIES is a JSONL of questions with doc_id, and char_start and char_end of the expected answer or `passages` with them.
Printed are, as JSON, how many questions' expected answers overlap the first passage, or any of those shown; how many
first passages are of the right decision; and what is shown: passages, characters, decisions other than the right one,
quashed reasoning, abstentions, and passages that a reader has marked (data/client_questions/read.jsonl).
The sheet has `JUDGED` of the questions, drawn by a fixed seed, with what is shown for each: what a reader judges by
data/answers/guideline.md.
"""

import argparse
import json
import random
import time
from pathlib import Path

from legal_rag.agent.evidence import EvidenceAgent
from legal_rag.citations.checks import Citation
from legal_rag.library.library import Library
from legal_rag.retriever.retriever import build_retriever

JUDGED, SEED = 30, 20261124
MARKED = Path(__file__).parent / "data" / "client_questions" / "read.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default="index")
    parser.add_argument("--index-name", default="legal_french_index")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--split", help="of the questions that have one")
    parser.add_argument("--sheet", type=Path)
    arguments = parser.parse_args()
    agent = EvidenceAgent(
        build_retriever(Library.open(arguments.index_folder, arguments.index_name)), match_words=False
    )
    queries = _read(arguments.queries)
    queries = [query for query in queries if arguments.split in (None, query.get("split"))]
    started = time.process_time()
    answers = [agent(query["question"]) for query in queries]
    shown = [answer.citations for answer in answers]
    seconds = time.process_time() - started
    overlaps = [[_overlaps(one, query) for one in some] for some, query in zip(shown, queries, strict=True)]
    right = [some[0].doc_id == query["doc_id"] for some, query in zip(shown, queries, strict=True) if some]
    others = sum(one.doc_id != query["doc_id"] for some, query in zip(shown, queries, strict=True) for one in some)
    n, passages = len(queries), sum(map(len, shown))
    chars = [sum(len(one.quote) for one in some) for some in shown]
    if arguments.sheet:
        drawn = random.Random(SEED).sample(range(n), JUDGED)
        judged = [f"=== {queries[i]['qid']}: {queries[i]['question']}\n\n{answers[i].answer}" for i in sorted(drawn)]
        arguments.sheet.write_text("\n\n".join(judged) + "\n", encoding="utf-8")
    read = _read(MARKED)
    marks = list(
        filter(None, (_marks(one, query, read) for some, query in zip(shown, queries, strict=True) for one in some))
    )
    figures = {
        "questions": n,
        "first passage overlaps the expected answer": sum(any(some[:1]) for some in overlaps),
        "any passage shown does": sum(map(any, overlaps)),
        "first passage of the right decision": sum(right),
        "passages shown": passages,
        "of other decisions": others,
        "characters": sum(chars),
        "most characters of a first passage": max(len(some[0].quote) for some in shown if some),
        "passages that a reader has marked": len(marks),
        "of these off the question": sum(max(of) == 0 for of in marks),
        "quashed reasoning": sum(one.censured for some in shown for one in some),
        "abstained": shown.count([]),
        "seconds of processor a question": seconds / n,
    }
    print(json.dumps(figures, indent=1))


def _read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _overlaps(one: Citation, query: dict) -> bool:
    passages = query.get("passages") or [query]
    return one.doc_id == query["doc_id"] and any(_holds_of(one, passage) for passage in passages)


def _holds_of(one: Citation, passage: dict) -> bool:
    return one.char_start < passage["char_end"] and passage["char_start"] < one.char_end


def _marks(one: Citation, query: dict, read: list[dict]) -> list[int]:
    """Return the marks of what a passage shown holds; joined paragraphs may have several."""
    return [
        row["mark"]
        for row in read
        if row["qid"] == query["qid"] and row["doc_id"] == one.doc_id and _holds_of(one, row)
    ]


if __name__ == "__main__":
    main()
