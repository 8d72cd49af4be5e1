"""Articles in their versions: which was in force on a day, which there are, what changed from one to the next."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, one_line
from legal_rag.corpus.documents import Document
from legal_rag.law import Identifier, legal_citation, long_date
from legal_rag.law.keys import ParsedQuery, candidate_keys
from legal_rag.law.versions import ENDINGS, NEVER, Force, order_of
from legal_rag.law.wordings import stated_wording
from legal_rag.library.library import Library, today

MOST_SAID = 8  # versions that a sentence lists
TRANSFERRED = "TRANSFERE"  # DILA's state of a version whose words went to another article
# DILA's types of links of an article to the one that has its words since, or had them before.
TRANSFERS, CONCORDANCES = frozenset(("TRANSFERT", TRANSFERRED)), frozenset(("CONCORDE", "CONCORDANCE"))
LEAD_WORDS = 6
TITLE_CHARS = 100  # of a link, in a sentence


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


@displayed
class NotInForce(NamedTuple):
    """An article that a text names, and of which no version is in force on a day."""

    said: str  # in French: that, why, and which versions there are
    doc_ids: tuple[str, ...]  # the version nearest to the day, then those in which its words went on


def versions_of(named: str, library: Library) -> list[Version]:
    """Return all versions of the article that a text names, in the order of their days; none of what has none.

    It is named by the id of a version, or as "L. 1233-4 du code du travail". Versions from before a renumbering have
    another number, and those of the articles that its words were transferred to follow; a number without its code may
    name several articles, given one after the other.
    """
    versions: dict[str, Version] = {}
    for doc_ids in library.articles_of(_named(named, library)).values():
        _add_versions(versions, None, _in_order(doc_ids, library), library)
    return list(versions.values())


def _add_versions(
    versions: dict[str, Version], before: Document | None, documents: Sequence[Document], library: Library
) -> None:
    for document in documents:
        if document.id in versions:
            return
        changes = word_changes(before.content, document.content) if before else ()
        versions[document.id] = Version(document, changes)
        before = before if document.extra.get("state") == NEVER else document
    for heir in heirs_of(before, library) if before else ():
        _add_versions(versions, before, heir, library)


def _in_order(doc_ids: Sequence[str], library: Library) -> list[Document]:
    return sorted(map(library.document, doc_ids), key=lambda document: order_of(document.extra))


def heirs_of(version: Document, library: Library) -> list[list[Document]]:
    """Return the articles that have the words of one from the day on which a version of it ended without another.

    That is the same one under another number, else those to which its source's links lead, or whose links lead to it,
    and which have a version that begins on that day; each in its versions from then on.
    """
    if not version.force or not version.force.ending:
        return []
    ended, linked = version.force.until, [link["id"] for link in _links_on(version) if link.get("id")]
    heirs = []
    for doc_ids in library.articles_of([version.id, *linked, *_linking(version, ended, library)]).values():
        later = [
            one
            for one in _in_order(doc_ids, library)
            if one.force and ended <= one.force.first and not one.force.is_empty
        ]
        if later and later[0].force and later[0].force.first == ended:
            heirs.append(later)
    return heirs


def _links_on(version: Document) -> Iterator[Mapping[str, Any]]:
    """Yield its source's links to articles that have its words; a transfer has one to the act that made it, too."""
    for link in _links(version):
        of_text = link.get("nature") == "CODE" or link.get("text_id") == version.extra.get("text_id")
        if link.get("type") in CONCORDANCES or (link.get("type") in TRANSFERS and of_text):
            yield link


def _linking(version: Document, day: date, library: Library) -> list[str]:
    """Return the articles with a version that begins on a day and whose links say that they have the words of one."""
    held = {version.id, *_all_versions([version.id], library)}
    begun = map(library.document, library.beginning(day, sorted(held)))
    moved = TRANSFERS | CONCORDANCES
    return [
        one.id for one in begun if any(link.get("id") in held and link.get("type") in moved for link in _links(one))
    ]


def _links(document: Document) -> Iterator[Mapping[str, Any]]:
    return (link for link in document.extra.get("links") or () if isinstance(link, Mapping))  # else of another source


def _named(named: str, library: Library) -> list[str]:
    doc_id = named.strip()
    return [doc_id] if doc_id in library else _bearing(candidate_keys(ParsedQuery(named)), library)


def _bearing(several: Sequence[Sequence[str]], library: Library) -> list[str]:
    """Return the documents that have one of some keys, of each list by the first that any has."""
    held = library.ids_named(key for keys in several for key in keys)
    return [doc_id for keys in several for doc_id in next((held[key] for key in keys if key in held), [])]


def _all_versions(doc_ids: Sequence[str], library: Library) -> list[str]:
    return [doc_id for versions in library.articles_of(doc_ids).values() for doc_id in versions]


def none_in_force(query: ParsedQuery, library: Library, day: date) -> tuple[NotInForce, ...]:
    """Return of the articles that a text names those that have no version in force on a day, but on others."""
    named = _articles_named(query, library).values()
    lacking = (not_in_force(name, ids, library, day) for name, ids in named if ids and not library.in_force(ids, day))
    return tuple(dict.fromkeys(lacking))


def _articles_named(query: ParsedQuery, library: Library) -> dict[Span, tuple[str, list[str]]]:
    """Return the articles that a text names, as written and with the ids of their versions, by where they stand."""
    named: dict[Span, tuple[str, list[str]]] = {}
    for one, keys in zip(query.identifiers, candidate_keys(query) if library.has_versions else (), strict=False):
        if one.kind == "article":  # "1233-4 du code du travail" is read with each letter
            _, ids = named.setdefault((one.start, one.end), (as_written(one, query), []))
            ids += _bearing([keys], library)
    return named


def day_asked(query: ParsedQuery, library: Library) -> tuple[date, str] | None:
    """Return the day whose law a text asks for by what it says of an article, and what is said of it in French.

    None if it states none, or several, or the Library has no versions. Of a period it is the last day, today at the
    latest; of an act the first day of the version that it wrote. Other versions that may be meant are said.
    """
    asked: dict[date, str] = {}
    for (start, end), (_, ids) in _articles_named(query, library).items():
        stated = stated_wording(query.text, start, end)
        if stated is None or stated.first is None:
            continue
        documents = _in_order(_all_versions(ids, library), library)
        forces = stated.versions(one.force for one in documents if one.force and not one.force.is_empty)
        is_act = stated.meaning == "act"
        day = max((force.first for force in forces), default=None) if is_act else stated.last_by(today())
        if day:
            others = [one for one in documents if one.force in forces and one.force and not one.force.holds(day)]
            listed = " ; ".join(map(_named_version, others[-MOST_SAID:]))
            also = f" Ces mots peuvent aussi viser : {listed}." if listed else ""
            words = query.text[stated.start : stated.end].strip(" ,(")
            said = (
                f"Articles au {long_date(day)}, jour lu dans la question (« {words} ») ; --at en fixe un autre.{also}"
            )
            asked.setdefault(day, said)
    return next(iter(asked.items())) if len(asked) == 1 else None


def as_written(article: Identifier, query: ParsedQuery) -> str:
    """Return an article as a text names it, up to the statute that it is of."""
    laws = [law for law in query.statutes if law.key == article.code]
    of = min(laws, key=lambda law: abs(law.start - article.start), default=article)
    return query.text[min(article.start, of.start) : max(article.end, of.end)]


def not_in_force(name: str, doc_ids: Sequence[str], library: Library, day: date) -> NotInForce:
    """Say of an article, named by the ids of its versions, that none of them is in force on a day."""
    versions = _in_order(doc_ids, library)
    ended = [one for one in versions if one.force and one.force.first <= one.force.until <= day]
    shown = max(ended, key=lambda one: one.force.until if one.force else day) if ended else versions[0]
    why = (_why_ended(shown.force) if ended else _why_not_yet(shown.force)) if shown.force else ""
    heirs = heirs_of(shown, library) if ended else []
    current = [next((one for one in heir if one.force and one.force.holds(day)), heir[0]) for heir in heirs]
    known = _in_order(_all_versions(doc_ids, library), library)
    listed = " ; ".join(map(_named_version, known[:MOST_SAID])) + " ; etc" * (len(known) > MOST_SAID)
    said = f"Aucune version de « {name} » n'est en vigueur le {long_date(day)}{f' : {why}' if why else ''}."
    said = f"{said} L'index a : {listed}.{_said_of_heirs(shown, current) if ended else ''}"
    return NotInForce(said, (shown.id, *(heir.id for heir in current)))


def _why_ended(force: Force) -> str:
    """Say how the last version before a day ended: "article abrogé depuis le 19 juin 2008"; '' if it is not known."""
    if force.state not in ENDINGS or force.is_empty:
        return force.ending
    return f"article {ENDINGS[force.state]} depuis le {long_date(force.until)}"


def _why_not_yet(force: Force) -> str:
    return force.in_french if force.is_empty else "pas encore en vigueur"


def _said_of_heirs(version: Document, heirs: Sequence[Document]) -> str:
    """Say to which articles the words of a version that ended went, even those of which the index has no version."""
    titles = [one_line(str(link["title"]))[:TITLE_CHARS] for link in _links_on(version) if link.get("title")]
    of_source = [f"{title}, que l'index n'a pas" for title in titles]
    gone = " ; ".join([*map(_named_version, heirs)] or of_source)
    led = "Transféré à" if version.extra.get("state") == TRANSFERRED else "Concordance"
    return f" {led} : {gone}." if gone else ""


def _named_version(version: Document) -> str:
    return f"{version.id} ({legal_citation(version).plain}, {version.in_force})"


def word_changes(before: str, after: str) -> tuple[Change, ...]:
    """Return what changed between two texts, by words, in text order."""
    one, other = before.split(), after.split()
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return tuple(
        Change(" ".join(one[max(a - LEAD_WORDS, 0) : a]), " ".join(one[a:b]), " ".join(other[c:d]))
        for tag, a, b, c, d in codes
        if tag != "equal"
    )
