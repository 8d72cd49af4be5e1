"""Canonical keys: the same decision, article, court or name has one key, however it is written.

Keys of decisions and articles are those of `legal_rag.corpus.references`; `doc:` and a document's id is the key of a
document of the Library.
"""

import re
from typing import NamedTuple

from legal_rag.corpus.abbreviated_articles import find_abbreviated_articles
from legal_rag.corpus.legal_citations import NO_BREAK, spaced_number
from legal_rag.corpus.patterns import SERIES, Identifier, find_courts, find_dates, find_identifiers, find_texts
from legal_rag.corpus.patterns.courts import words_of_value
from legal_rag.corpus.references import canonical_key, relaxed_key
from legal_rag.extraction.rules.organisations import LEAD
from legal_rag.extraction.terms import FORMS, SMALL_WORDS, TITLES, name_words, singular, words_of

DOCUMENT, COURT, STATUTE, NAME, TERM, LOWER = "doc:", "court:", "statute:", "name:", "term:", "lower:"
NAMED_TYPES = frozenset(("party", "person", "organization", "judge_or_counsel"))
MOST_CHARS = 300  # of a name
_COURT_ABBREVIATION = re.compile(r"\b(?:Cass|CE|CA|CAA|TA|TJ|TGI|CPH|CJUE|CEDH|Cons)\b\.?")
_NUMBER = re.compile(r"(?<!\d)((?:19|20)?\d\d)\s?[-‐‑–/]\s?(\d{1,5})(?!\d)")
_LEADING_ARTICLE = re.compile(r"(?:l['’]|l[ae]s?\b)\s*", re.IGNORECASE)
_FORMER = re.compile(r"^(?:nouveau|ancien) ")
_STATUTE_KINDS = ("decret loi", "loi", "ordonnance", "decret", "arrete", "circulaire", "directive", "reglement")


class Named(NamedTuple):
    """A node as it is named: its key, its type, and the name to show."""

    key: str
    type: str  # one of `NODE_TYPES`
    name: str


def document_node(doc_id: str, *, is_article: bool = False) -> Named:
    """Return the node of a document of the Library."""
    return Named(DOCUMENT + doc_id, "article" if is_article else "decision", doc_id)


def identifier_node(one: Identifier) -> Named:
    """Return the node of a decision or an article, as a text refers to it."""
    if one.kind == "article":
        code = one.code.removeprefix("nouveau ")  # the code de procédure civile was the new one until 2007
        return Named(canonical_key(one._replace(code=code)), "article", _article_name(one.value, code))
    key = relaxed_key(canonical_key(one)) if one.kind == "number" else canonical_key(one)
    return Named(key, "decision", _decision_name(one))


def court_node(*written: str) -> Named | None:
    """Return the node of a court, perhaps with its chamber: 'Cass. soc.' is 'Cour de cassation', 'Chambre sociale'."""
    parts = [" ".join(part.split()) for part in written if part.strip()]
    words = sorted(words_of_value(" ".join(parts)))
    if not words:
        return None
    first, *chambers = (part if part[:1] != part[:2] else part.capitalize() for part in parts)
    return Named(
        COURT + " ".join(words), "court", ", ".join([first, *(part[:1].lower() + part[1:] for part in chambers)])
    )


def statute_node(written: str) -> Named | None:
    """Return the node of a code, a statute or a treaty: one with a number by its kind and number."""
    words = _FORMER.sub("", " ".join(words_of(written)))
    if not words:
        return None
    kind = next((kind for kind in _STATUTE_KINDS if re.search(rf"\b{kind}\b", words)), "")
    number, dates = _NUMBER.search(written), find_dates(written)
    if kind and number:
        year = number[1][2:] if number[1].startswith("19") and len(number[1]) == 4 else number[1]
        return Named(f"{STATUTE}{kind} {year}-{int(number[2])}", "statute", _shown(written))
    if kind and len(dates) == 1:
        return Named(f"{STATUTE}{kind} {dates[0].value.isoformat()}", "statute", _shown(written))
    return Named(STATUTE + words, "statute", _shown(written))


def article_of_statute(number: str, statute: Named) -> Named:
    """Return the node of an article of a text that is no code: article 59 of the Constitution."""
    key = f"article:{number} {statute.key.removeprefix(STATUTE)}"
    return Named(key, "article", f"article {spaced_number(number).replace(NO_BREAK, ' ')}, {statute.name}")


def person_node(node_type: str, written: str, within: str) -> Named | None:
    """Return the node of a person or an organisation; None of a name that says nothing ("M. X...").

    Organisations have one node; two persons of one name are not taken for one, so theirs is one of a document.

    Args:
        node_type: One of `NAMED_TYPES`.
        written: The name, perhaps with title or legal form.
        within: The document it stands in.
    """
    words = name_words(written)
    if not words or all(word.isdecimal() for word in words):
        return None
    is_person = node_type == "person" or TITLES.intersection(words_of(written)[:1])
    is_known = not is_person and (node_type == "organization" or is_organisation(written))
    return Named(NAME + " ".join(words) + ("" if is_known else f" @{within}"), node_type, _shown(written))


def is_organisation(written: str) -> bool:
    """Tell whether a name is written as one of a company, a public body or an association."""
    name = _LEADING_ARTICLE.sub("", written.strip())
    return LEAD.match(name) is not None or bool(FORMS.intersection(words_of(name)[:1]))


def term_node(node_type: str, written: str) -> Named | None:
    """Return the node of a notion, an event or the like, by its words in the singular."""
    folded = words_of(written)
    words = [singular(word) for word in folded if word not in SMALL_WORDS] or folded
    return Named(TERM + " ".join(words), node_type, _shown(written)) if words else None


def node_of(node_type: str, written: str, within: str = "") -> Named | None:
    """Return the node of a name of some type; None of a name that says nothing.

    A decision or an article that the name does not identify by a number is a term.

    Args:
        node_type: One of `NODE_TYPES`.
        written: The name.
        within: The document in which it stands, for persons.
    """
    if node_type in ("decision", "article"):
        found = {identifier_node(one) for one in identifiers_in(written, bare=node_type == "article")}
        of_type = sorted(one for one in found if one.type == node_type)
        return of_type[0] if len(of_type) == 1 else term_node(node_type, written)
    if node_type == "court":
        return court_node(written)
    if node_type == "statute":
        return statute_node(written)
    if node_type in NAMED_TYPES:
        return person_node(node_type, written, within)
    return term_node(node_type, written)


def identifiers_in(text: str, *, bare: bool = False) -> list[Identifier]:
    """Find the decisions and articles that a name identifies, also by a code's abbreviation; `bare`: "1240" too.

    An article without a code has the only code that the name holds: "article L1152-1 Code du travail".
    """
    abbreviated = [Identifier("article", *one) for one in find_abbreviated_articles(text)]
    found = [one for one in find_identifiers(text) if not any(one.value == other.value for other in abbreviated)]
    found = [*abbreviated, *found] or (find_identifiers(f"article {text}") if bare else [])
    codes = {" ".join(text[one.start : one.end].lower().split()) for one in find_texts(text, []) if one.kind == "code"}
    if len(codes) == 1:
        (code,) = codes
        found = [one._replace(code=one.code or code) if one.kind == "article" else one for one in found]
    return found


def guessed_type(written: str) -> str:
    """Return the type that a name has by its form, 'concept' where its form does not tell."""
    found = identifiers_in(written)
    if found:
        return "article" if all(one.kind == "article" for one in found) else "decision"
    if find_courts(written) or _COURT_ABBREVIATION.match(written):
        return "court"
    if find_texts(written, find_dates(written)):
        return "statute"
    words = words_of(written)[:1]
    return "party" if TITLES.intersection(words) or is_organisation(written) else "concept"


def is_reference(key: str) -> bool:
    """Tell whether a key is one that documents have as their own: see `legal_rag.corpus.references.own_keys`."""
    return not key.startswith((DOCUMENT, COURT, STATUTE, NAME, TERM, LOWER))


def is_of_one_document(key: str) -> bool:
    """Tell whether a key is that of a person, who is known within one document only."""
    return key.startswith(NAME) and " @" in key


def _article_name(value: str, code: str) -> str:
    number = spaced_number(value).replace(NO_BREAK, " ")
    if not code:
        return f"article {number}"
    return f"article {number} {'des' if code.startswith('livre des') else 'du'} {code}".replace("des livre", "du livre")


def _decision_name(one: Identifier) -> str:
    if one.kind == "ecli":
        return one.value
    if one.kind == "pourvoi":
        return f"pourvoi n° {one.value[:5]}.{one.value[5:]}"
    if one.kind == "rg":
        return f"RG n° {one.value}"
    return f"décision n° {one.value}{f' {one.kind.upper()}' if one.kind in SERIES else ''}"


def _shown(written: str) -> str:
    return " ".join(written.split())[:MOST_CHARS]
