"""Make the open pack: five briefs over the sample corpus with some 200 references, and their key; or our verdicts.

Run: python benchmarks/briefs/make_pack.py              writes `pack/` anew
     python benchmarks/briefs/make_pack.py --verdicts F  writes what `verify_text` says of it; its score, as JSON
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from layouts import LAYOUTS, UNSEEN, Layout
from material import Material
from pack.score import read_lines, score, shares_of, squash
from references import (
    MAKERS,
    Mention,
    Passage,
    ecli,
    identifier,
    invented_ecli,
    invented_identifier,
    passages,
    unrelated,
)

from legal_rag.corpus import read_documents
from legal_rag.encoder import bundled_encoder
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library

PACK = Path(__file__).with_name("pack")
SEED = 78
PER_BRIEF = 42  # references
WRITTEN_AS = ["text, 72 wide", "Markdown", "HTML", "DOCX, notes and revisions", "DOCX, tables, boxes, controls"]
FOREIGN = (ecli, invented_ecli, identifier, invented_identifier)  # the sample's ids and ECLIs are of no court


def write_pack() -> None:
    """Write the documents and their key."""
    material = Material(list(read_documents("sample")), "", random.Random(SEED))
    drawn = passages(material, {maker: weight for maker, weight in MAKERS.items() if maker not in FOREIGN})
    keys: list[dict[str, Any]] = []
    for number, layout in enumerate((layout for layout in LAYOUTS if layout.name in WRITTEN_AS), 1):
        brief = _distinct(unrelated(material, drawn))
        path = PACK / f"brief-{number}.{layout.suffix}"
        layout.write(brief, path, material.rng)
        keys += keys_of(path.name, layout, brief)
    (PACK / "keys.jsonl").write_text("".join(json.dumps(key, ensure_ascii=False) + "\n" for key in keys), "utf-8")


def _distinct(drawn: Iterable[Passage]) -> list[Passage]:
    """Take passages none of whose references has the words of another: a verdict belongs to one by its words alone."""
    brief: list[Passage] = []
    taken: list[str] = []
    for passage in drawn:
        words = [squash(mention.text) for mention in passage.mentions]
        if any(text in other or other in text for text in words for other in taken):
            continue
        taken += words
        brief.append(passage)
        if len(taken) >= PER_BRIEF:
            return brief
    return brief


def keys_of(name: str, layout: Layout, brief: Sequence[Passage]) -> list[dict[str, Any]]:
    """Return what a verifier should say of each reference of a document."""
    keys = [
        {"document": name, "text": " ".join(mention.text.split()), **key_of(mention)}
        for passage in brief
        for mention in passage.mentions
    ]
    unseen = {"document": name, "text": UNSEEN, **key_of(Mention("struck out or hidden", UNSEEN, "none"))}
    return keys + [unseen] * layout.hides


def key_of(mention: Mention) -> dict[str, Any]:
    """Return what is to be said of a reference."""
    names = ("sorts", "kind", "status", "what", "right", "doc_id")
    return {name: getattr(mention, name) for name in names}


def verdicts(library: Library) -> list[dict[str, Any]]:
    """Return what `verify_text` says of the pack's references."""
    from measure import verification_of

    return [
        {"document": path.name, "text": reference.text, "kind": reference.kind, "status": reference.status,
         "what": [correction.what for correction in reference.corrections]}
        for path in sorted(PACK.glob("brief-*"))
        for reference in verification_of(path, [library]).references
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verdicts", type=Path)
    arguments = parser.parse_args()
    if not arguments.verdicts:
        write_pack()
        return
    with tempfile.TemporaryDirectory() as folder:
        build_index(IndexConfig(source="sample", n_bits=0, index_folder=folder), bundled_encoder())
        rows = verdicts(Library.open(folder))
    arguments.verdicts.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    print(json.dumps(shares_of(score(read_lines(PACK / "keys.jsonl"), rows)), indent=1))


if __name__ == "__main__":
    main()
