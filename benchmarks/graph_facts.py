"""False tags: is what a model says false ever given as a fact of the graph, and what it says true recognised?

Run: python benchmarks/graph_facts.py --library FOLDER [--documents N] [--seed N]

FOLDER is a Library with entities and a graph; it is copied, and nothing is written to it. Of decisions drawn at random,
true relationships are read from the text by patterns of this file, which know nothing of the graph's rules, and false
ones are made of them. Each goes through `add_answer` as a model's tag would. Printed as JSON:

- true: how many are recognised as facts, or at least as stated in the text, by kind;
- false: how many are given as facts (none should be), as stated (the names stand together in what was read: shown as
  the model's word), and as unsupported, by kind; those given as facts are listed.
"""

import argparse
import json
import random
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from legal_rag.corpus import Document
from legal_rag.extraction.entities import ENTITIES
from legal_rag.graph import ExtractedEntity, ExtractedRelationship, ExtractionResult, add_answer
from legal_rag.library import Library
from legal_rag.library.library import STORE

CODES = "travail|commerce|procédure civile|procédure pénale|la sécurité sociale|la consommation|assurances"
ARTICLE = re.compile(
    rf"[Aa]rticle ((?:L\.O\.|[LRD]\.) ?)?(\d+(?:-\d+)*) (du code (?:civil|pénal|électoral|de (?:{CODES})))"
)
POURVOI = re.compile(r"(?:Soc\.|Civ\.|Com\.|Crim\.),? \d+(?:er)? \w+ \d{4}, pourvoi n° (\d\d-\d\d\.\d{3})")
NAME = r"(?:M\.|Mme) [A-ZÉ][\w-]+ [A-ZÉ][A-ZÉ-]{2,}"
REQUEST = re.compile(rf"(?:requête présentée par|situation de) ({NAME})(?=,)")
COUNSEL = re.compile(r"(Me [A-ZÉ][\w-]+ [A-ZÉ][\w-]+), avocat au barreau")
FIRM = re.compile(r"observations de la (SCP [A-Z][\w-]+(?:, [A-Z][\w-]+)* et [A-Z][\w-]+), avocat")
BELOW = re.compile(
    r"contre (?:l'arrêt|le jugement) rendu le (\d+(?:er)? \w+ \d{4}) par (?:la |le )([a-zé' ]+ de [A-Z]\w+)(?= \()"
)
COMPANY = re.compile(
    r"La (société [A-Z]\w+(?: \w+)?), société (?:anonyme|par actions simplifiée)[^.;]{0,60} a formé le pourvoi"
)
LOOKALIKES = str.maketrans("aeocpxM", "аеосрхМ")  # Cyrillic
OTHER_COURTS = (
    "Cour de cassation, chambre criminelle",
    "Conseil d'État",
    "CAA de Lyon",
    "tribunal de Paris",
    "TA de Lyon",
)


class Tag(NamedTuple):
    """A relationship as a model gives it, and whether it is true."""

    kind: str
    source: str
    target: str
    type: str
    types: tuple[str, str]  # of the two ends
    read: tuple[str, ...]  # ids
    is_true: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--list", action="store_true", help="the true ones missed and the false ones stated")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        library = Library(shutil.copytree(arguments.library, Path(folder) / "copy", ignore=_left_out))
        tags = list(_all_tags(library, rng, arguments.documents))
        results = {tag: _support(library, tag) for tag in tags}
    for tag, support in results.items():
        if arguments.list and (support != "facts" if tag.is_true else support == "stated"):
            print(f"{support}:", tag, file=sys.stderr)
        if support == "facts" and not tag.is_true:
            print("GIVEN AS A FACT:", tag, file=sys.stderr)
    figures = {"true": _counts(results, is_true=True), "false": _counts(results, is_true=False)}
    print(json.dumps(figures, indent=1))


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Leave out what no answer's facts need: pages and vectors."""
    return [
        one for one in names if one.startswith(("entities", "extraction", "shards", "fast_plaid")) and one != ENTITIES
    ]


def _support(library: Library, tag: Tag) -> str:
    entities = [ExtractedEntity(*pair) for pair in zip((tag.source, tag.target), tag.types, strict=True)]
    result = ExtractionResult(entities, [ExtractedRelationship(tag.source, tag.target, tag.type)])
    found = add_answer(library, "benchmark", result, tag.read)
    unsupported = found.unsupported - (len(entities) - found.entities)
    return "facts" if found.facts else "stated" if found.stated else "unsupported" if unsupported else "left out"


def _counts(results: dict[Tag, str], *, is_true: bool) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for tag, support in results.items():
        if tag.is_true == is_true:
            counts[tag.kind].update(["tags", support])
    total = sum(counts.values(), Counter[str]())
    columns = ("tags", "facts", "stated", "unsupported", "left out")
    return {kind: {one: some[one] for one in columns} for kind, some in {"all": total, **counts}.items()}


def _all_tags(library: Library, rng: random.Random, most: int) -> Iterator[Tag]:
    documents = _drawn(library, rng, most)
    for document in documents:
        other = rng.choice([one for one in documents if one.id != document.id])
        for make in (_articles, _decisions, _courts, _parties, _counsel, _below):
            yield from dict.fromkeys(make(document, other, rng))


def _drawn(library: Library, rng: random.Random, most: int) -> list[Document]:
    """Draw as many documents of each court as there are, up to a third of `most`: one court has most of them."""
    with sqlite3.connect(library.path / STORE) as connection:
        rows = connection.execute("SELECT id, juridiction FROM documents WHERE removed IS NULL ORDER BY id").fetchall()
    by_court: dict[str, list[str]] = defaultdict(list)
    for doc_id, court in rows:
        by_court["cour d'appel" if court.startswith("Cour d'appel") else court].append(doc_id)
    drawn = [one for some in by_court.values() for one in rng.sample(some, min(len(some), most // 3))]
    return [library.document(one) for one in drawn]


def _articles(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    cited = sorted({match.groups("") for match in ARTICLE.finditer(document.content)})
    ends, read = ("decision", "article"), (document.id, other.id)
    for letter, number, code in rng.sample(cited, min(3, len(cited))):
        name = f"article {letter}{number} {code}"
        yield Tag("article cited", document.id, name, "cites", ends, read, is_true=True)
        digits = f"{number[:-1]}{(int(number[-1]) + rng.randint(1, 9)) % 10}"
        letters = rng.choice([one for one in ("L. ", "R. ", "D. ") if one != letter]) + number
        false = {
            "number off by a digit": f"article {letter}{digits} {code}",
            "number with another end": f"article {letter}{number}-99 {code}",
            "another letter": f"article {letters} {code}",
            "of a law of that number": f"article {letter}{number} de la loi n° 2099-{number.replace('-', '')[:3]}",
        }
        for kind, wrong in false.items():
            if not _names_article(document, wrong):
                yield Tag(f"article: {kind}", document.id, wrong, "cites", ends, read)
                yield Tag(f"article applied: {kind}", document.id, wrong, "applies", ends, read)
        unread = [one for one in ("rural", "minier", "de la route") if f"code {one}" not in document.content.lower()]
        if unread:
            wrong = f"article {letter}{number} du code {rng.choice(unread)}"
            yield Tag("article: another code", document.id, wrong, "cites", ends, read)
        if not _names_article(other, name) and not _names_article(document, f"article {number}-"):
            yield Tag("article of the other document read", other.id, name, "cites", ends, read)
        yield Tag("article cites the decision", name, document.id, "cites", ("article", "decision"), read)


def _names_article(document: Document, name: str) -> bool:
    """Tell whether an article's number stands anywhere in a document, with whatever code."""
    number = re.search(r"((?:L\.O|[LRD])\. ?)?(\d+(?:-\d+)*)", name)
    letter, digits = number.group(1) or "", number.group(2)
    text = "\n".join([document.content, *document.applied_laws, document.summary])
    pattern = rf"{letter[:1]}[. \u00a0O]*{digits}(?![\d-]\d)" if letter else rf"(?<![-\d.])(?<![LRD] ){digits}(?![\d-])"
    return re.search(pattern, text) is not None


def _decisions(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    cited = sorted(set(POURVOI.findall(document.content)))
    ends, read = ("decision", "decision"), (document.id, other.id)
    for number in rng.sample(cited, min(2, len(cited))):
        yield Tag("decision cited", document.id, f"pourvoi n° {number}", "cites", ends, read, is_true=True)
        last = f"{number[:-1]}{(int(number[-1]) + rng.randint(1, 9)) % 10}"
        if last not in document.content:
            yield Tag("decision: number off by a digit", document.id, f"pourvoi n° {last}", "cites", ends, read)
        if number not in other.content:
            yield Tag("decision of the other document", other.id, f"pourvoi n° {number}", "cites", ends, read)
        yield Tag("decision: cites reversed", f"pourvoi n° {number}", document.id, "cites", ends, read)
        yield Tag("decision: a decree of that number", document.id, f"décret n° {number}", "cites", ends, read)
        yield Tag(
            "decision: related to another", document.id, f"arrêt cassé par l'arrêt n° {number}", "cites", ends, read
        )
    own = str(document.extra.get("number", ""))
    if own and other.id != document.id:
        yield Tag("own number cited", document.id, own, "cites", ends, read)
        if own not in other.content:
            yield Tag("uncited decision", other.id, document.id, "cites", ends, read)
            yield Tag("uncited decision overruled", other.id, document.id, "overrules", ends, read)
    yield Tag("own RG number cited", document.id, "RG n° 19/01234", "cites", ends, read)


def _courts(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    ends, read = ("decision", "court"), (document.id, other.id)
    if document.juridiction and "de" in document.juridiction:
        chamber = f", {document.formation.lower()}" if document.formation else ""
        yield Tag("court", document.id, document.juridiction + chamber, "decided_by", ends, read, is_true=True)
    for wrong in OTHER_COURTS:
        if document.formation.lower() not in wrong or not document.formation:
            yield Tag("court: another", document.id, wrong, "decided_by", ends, read)
    yield Tag("court decides in the wrong direction", document.juridiction, document.id, "decided_by", ends[::-1], read)
    if document.juridiction != other.juridiction:
        yield Tag("court of the other document", document.id, other.juridiction, "decided_by", ends, read)
    town = document.juridiction.rpartition(" de ")[2]
    if document.juridiction.startswith("Cour d'appel de "):
        yield Tag("court: first instance of the town", document.id, f"tribunal de {town}", "decided_by", ends, read)
        yield Tag("court: administrative, of the town", document.id, f"CAA de {town}", "decided_by", ends, read)
        yield Tag("court: a town alone", document.id, town, "decided_by", ends, read)


def _parties(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    ends, read = ("party", "decision"), (document.id, other.id)
    names = [match[1] for pattern in (REQUEST, COMPANY) for match in pattern.finditer(document.content)][:1]
    for name in names:
        yield Tag("party", name, document.id, "party_to", ends, read, is_true=True)
        title, last = name.split(" ")[0], name.split(" ")[-1]
        false: dict[str, str] = {
            "surname lengthened": f"{name}IER",
            "surname cut": name[:-2],
            "part of a double name": name.replace(last, f"Saint-{last}"),
            "look-alike letters": name.translate(LOOKALIKES),
            "very long": f"{name} {'et autres ' * 400}",
            "a key as name": f"name:{name.lower()} @{other.id}",
            "a document as name": f"doc:{other.id}",
            "stands nowhere": "M. Abélard Quillerou-Pontignac",
        }
        if title in ("M.", "Mme"):
            false["of another sex"] = name.replace(title, "Mme" if title == "M." else "M.", 1)
            false["company of that name"] = f"SARL {last.title()}"
        for kind, wrong in false.items():
            if wrong not in document.content:
                yield Tag(f"party: {kind}", wrong, document.id, "party_to", ends, read)
        if last.lower() not in other.content.lower():
            yield Tag("party of the other document", name, other.id, "party_to", ends, read)
        yield Tag("party: wrong direction", document.id, name, "party_to", ends[::-1], read)
        yield Tag("party given as counsel", name, document.id, "pleads_in", ends, read)


def _counsel(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    ends, read = ("judge_or_counsel", "decision"), (document.id, other.id)
    for name in [match[1] for pattern in (COUNSEL, FIRM) for match in pattern.finditer(document.content)][:1]:
        kind = "counsel" if name.startswith("Me") else "firm"
        yield Tag(kind, name, document.id, "pleads_in", ends, read, is_true=True)
        yield Tag(f"{kind} given as party", name, document.id, "party_to", ends, read)
        if name.split(" ")[-1] not in other.content:
            yield Tag(f"{kind} in the other document", name, other.id, "pleads_in", ends, read)


def _below(document: Document, other: Document, rng: random.Random) -> Iterator[Tag]:
    found = sorted(set(BELOW.findall(document.content)))
    solution = document.solution.lower()
    if (
        document.juridiction != "Cour de cassation"
        or len(found) != 1
        or not solution.startswith(("cassation", "rejet"))
    ):
        return
    ((day, court),) = found
    kind, wrong = ("overrules", "upholds") if solution.startswith("cassation") else ("upholds", "overrules")
    ends, read = ("decision", "decision"), (document.id, other.id)
    name = f"arrêt de la {court} du {day}" if court.startswith("cour") else f"jugement du {court} du {day}"
    yield Tag("decision below", document.id, name, kind, ends, read, is_true=True)
    yield Tag("decision below: the other ruling", document.id, name, wrong, ends, read)
    yield Tag("decision below: of another day", document.id, re.sub(r"\d{4}", "1999", name), kind, ends, read)
    yield Tag(
        "decision below: of another town", document.id, name.replace(court, "cour d'appel de Cayenne"), kind, ends, read
    )
    yield Tag("decision below: reversed", name, document.id, kind, ends, read)
    yield Tag("decision below: by the other document", other.id, name, kind, ends, read)
    yield Tag("decision below: its court decides", document.id, court, "decided_by", ("decision", "court"), read)


if __name__ == "__main__":
    main()
