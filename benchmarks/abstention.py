"""Say how evidence mode grades questions with and without an answer: where its thresholds come from.

Run: python benchmarks/abstention.py --set NAME QUESTIONS… [--set …] [--split tune|held] [--index-folder DIR]

Each set is a built Library's name and files of questions; those of off_topic_questions.jsonl, that no Library here
answers, are asked of each too. They are not those of abstention.toml, by which a corpus's background is measured. For
each file, the numbers of questions without a passage and of each grade are printed as JSON, and of those whose first
document is the right one, where the file says which.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from legal_rag.agent import EvidenceAgent
from legal_rag.agent.doubt import background_of, is_relevant
from legal_rag.library import DEFAULT_FOLDER, Library
from legal_rag.retriever import build_retriever

OFF_TOPIC = Path(__file__).parent / "data" / "off_topic_questions.jsonl"
GRADES = ("abstained", "unsure", "close", "answers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--set", nargs="+", action="append", required=True, metavar="NAME QUESTIONS", dest="sets")
    parser.add_argument("--split", help="of the questions that have one")
    arguments = parser.parse_args()
    figures: dict[str, dict[str, dict[str, int]]] = {}
    for name, *files in arguments.sets:
        retriever = build_retriever(Library.open(arguments.index_folder, name))
        agent, background = EvidenceAgent(retriever), background_of(retriever)
        for file in [*map(Path, files), OFF_TOPIC]:
            rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            rows = [row for row in rows if arguments.split in (None, row.get("split", arguments.split))]
            counts = Counter[str](questions=len(rows), **dict.fromkeys(GRADES, 0), first_right=0)
            for row in rows:
                findings = agent.find(row["question"])
                relevant = bool(findings.hits) and is_relevant(findings.signs, background)
                counts[background.grade(findings.signs) if relevant else "abstained"] += 1
                counts["first_right"] += bool(findings.hits) and findings.hits[0].doc_id == row.get("doc_id")
            figures.setdefault(name, {})[file.stem] = counts
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
