"""Articles that decisions name without their code, or with "du même code": the code that is read, against readers'.

Run: python benchmarks/article_references.py --data FOLDER

FOLDER holds `decisions.jsonl.gz`. `data/article_references.jsonl` has references drawn at random from it, with the code
that a reader of the text found meant; empty: another text's article, or none. Rules were made by the half `dev`. Also
counted: the decisions that name article L. 2314-30 of the code du travail, of 27 found by reading.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from legal_rag.corpus import read_documents
from legal_rag.law.keys import cited_identifiers, document_keys

REFERENCES = Path(__file__).parent / "data" / "article_references.jsonl"
ARTICLE = "article:L2314-30 code du travail"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    references: dict[str, list[dict]] = {}
    for line in REFERENCES.read_text("utf-8").splitlines():
        one = json.loads(line)
        references.setdefault(one["id"], []).append(one)
    counts: dict[str, Counter[str]] = {"dev": Counter(), "held-out": Counter()}
    n_found = 0
    for document in read_documents(arguments.data / "decisions.jsonl.gz"):
        n_found += ARTICLE in document_keys(document)
        codes = {}
        if document.id in references:
            codes = {(one.start, one.value): one.code for one in cited_identifiers(document)}
        for one in references.get(document.id, ()):
            found = codes.get((one["start"], one["article"]), "").removeprefix("nouveau ")
            counts[one["half"]] += Counter(
                references=1, meant=bool(one["code"]), given=bool(found), right=found == one["code"] != ""
            )
    figures: dict[str, object] = {half: scores(of_half) for half, of_half in counts.items()}
    print(json.dumps({**figures, "decisions on L. 2314-30": n_found}, indent=1, ensure_ascii=False))


def scores(counts: Counter[str]) -> dict[str, float]:
    """Precision: of the codes given, those that are right; recall: of the codes meant."""
    right = counts["right"]
    return {**counts, "precision": round(right / counts["given"], 3), "recall": round(right / counts["meant"], 3)}


if __name__ == "__main__":
    main()
