"""Precision and recall of the rules' entities on windows annotated by hand."""

import json
from collections import Counter
from pathlib import Path

from legal_rag.corpus import Document
from legal_rag.extraction.entities import JURISPRUDENCE
from legal_rag.extraction.rules import find_entities
from support import TESTS

ANNOTATIONS = TESTS / "annotations"


def scores(path: Path, documents: dict[str, Document]) -> dict[str, tuple[float, float]]:
    """Return the precision and the recall of each class that the windows of a file hold."""
    right, wrong, missed = Counter(), Counter(), Counter()
    for line in path.read_text("utf-8").splitlines():
        window = json.loads(line)
        content = documents[window["id"]].content
        start, end = window["start"], window["end"]
        gold = {tuple(one) for one in window["entities"]}
        told = {
            (one["extraction_class"], one["char_start"], one["char_end"])
            for one in find_entities(content)
            if start <= one["char_start"] and one["char_end"] <= end
        }
        # What the window's edge cuts was not annotated, as nobody could tell where it ends.
        told = {
            one for one in told
            if one in gold or not ((one[1] == start and start) or (one[2] == end and end < len(content)))
        }  # fmt: skip
        right.update(one[0] for one in gold & told)
        wrong.update(one[0] for one in told - gold)
        missed.update(one[0] for one in gold - told)
    return {
        name: (right[name] / max(right[name] + wrong[name], 1), right[name] / max(right[name] + missed[name], 1))
        for name in JURISPRUDENCE
        if right[name] + missed[name]
    }
