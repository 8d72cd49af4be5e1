"""Articles in their versions: which was in force on a day, which there are, what changed from one to the next."""

from collections.abc import Sequence
from datetime import date
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from legal_rag.base.html import displayed
from legal_rag.corpus.documents import Document
from legal_rag.law import legal_citation, long_date
from legal_rag.law.keys import ParsedQuery, candidate_keys
from legal_rag.library.library import Library

MOST_SAID = 8  # versions that a sentence lists
LEAD_WORDS = 6


@displayed
class Change(NamedTuple):
    """Words that a version has in the place of those of the version before; either may be empty."""

    lead: str  # the words before them, `LEAD_WORDS` at most
    before: str
    after: str


@displayed
class Version(NamedTuple):
    """A version of an article, and what changed since the one before."""

    document: Document
    changes: tuple[Change, ...]  # none: the first one, or the same words


def version_at(named: str, day: date, library: Library) -> Document | None:
    """Return the version in force on a day of the article that a text names; None if none is.

    It is named as for `versions_of`; by a number, only versions of that number count.
    """
    ids = _named(named, library)
    if ids == [named.strip()]:
        ids = _all_versions(ids, library)
    documents = [library.document(doc_id) for doc_id in library.in_force(ids, day)]
    return max((one for one in documents if one.force), key=lambda one: one.force or (), default=None)


def versions_of(named: str, library: Library) -> list[Version]:
    """Return all versions of the article that a text names, in the order of their days; none of what has none.

    It is named by the id of a version, or as "L. 1233-4 du code du travail". Versions from before a renumbering have
    another number; a number without its code may name several articles, given one after the other.
    """
    versions: list[Version] = []
    for articles in library.articles_of(_named(named, library)).values():
        documents = [library.document(doc_id) for doc_id in articles]
        changes = (word_changes(one.content, other.content) for one, other in pairwise(documents))
        versions += map(Version, documents, [(), *changes])
    return versions


def _named(named: str, library: Library) -> list[str]:
    doc_id = named.strip()
    return [doc_id] if doc_id in library else _bearing(candidate_keys(ParsedQuery(named)), library)


def _bearing(several: Sequence[Sequence[str]], library: Library) -> list[str]:
    """Return the documents that have one of some keys, of each list by the first that any has."""
    held = library.ids_named(key for keys in several for key in keys)
    return [doc_id for keys in several for doc_id in next((held[key] for key in keys if key in held), [])]


def _all_versions(doc_ids: Sequence[str], library: Library) -> list[str]:
    return [doc_id for versions in library.articles_of(doc_ids).values() for doc_id in versions]


def none_in_force(query: ParsedQuery, library: Library, day: date) -> tuple[str, ...]:
    """Say in French of each article named that has no version in force on a day which versions it has."""
    named = zip(query.identifiers, candidate_keys(query) if library.has_versions else (), strict=False)
    written = {
        query.text[one.start : one.end]: _bearing([keys], library) for one, keys in named if one.kind == "article"
    }
    return tuple(
        say_lacking(name, ids, library, day) for name, ids in written.items() if ids and not library.in_force(ids, day)
    )


def say_lacking(name: str, doc_ids: Sequence[str], library: Library, day: date) -> str:
    """Say in French that no version of an article is in force on a day, and which versions there are."""
    versions = [library.document(doc_id) for doc_id in _all_versions(doc_ids, library)]
    listed = " ; ".join(
        f"{version.id} ({legal_citation(version).plain}, {version.force.in_french})"
        for version in versions[:MOST_SAID]
        if version.force
    )
    more = " ; etc" if len(versions) > MOST_SAID else ""
    return f"Aucune version de « {name} » n'est en vigueur le {long_date(day)}. L'index a : {listed}{more}."


def word_changes(before: str, after: str) -> tuple[Change, ...]:
    """Return what changed between two texts, by words, in text order."""
    one, other = before.split(), after.split()
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return tuple(
        Change(" ".join(one[max(a - LEAD_WORDS, 0) : a]), " ".join(one[a:b]), " ".join(other[c:d]))
        for tag, a, b, c, d in codes
        if tag != "equal"
    )
