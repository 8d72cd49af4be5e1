"""The terms that documents are found by when a question or a filter names them: 'pourvoi:16-86735', 'date:2023-11-08'.

In: text, or a document. Out: terms. A decision of the Conseil constitutionnel has a term with its series and one
without, since texts often leave the series out; an article has one with its code and one without, likewise.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from legal_rag.corpus import Document
from legal_rag.legal_patterns import (
    MONTHS,
    SERIES,
    Identifier,
    decision_identifiers,
    find_amounts,
    find_dates,
    find_identifiers,
)

CONSTITUTIONAL = "cc"  # kind of a decision of the Conseil constitutionnel, whatever its series
NO_CODE = "?"  # of an article that goes by its number alone
# Figures that count something, or are of a day: no article's number.
MEASURE = re.compile(
    r"\d+(?:(?:[ \u00a0\u202f.]\d{3})+(?!\d)|,\d{1,2}(?!\d)|\s*[%€]|/\d{1,2}/"
    rf"|(?:er)?\s*(?:ans?|années?|mois|semaines?|jours?|heures?|h|minutes?|{'|'.join(MONTHS)})\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedQuery:
    """A question in Unicode NFC, as documents are, with what it names: found once, when first asked for."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", unicodedata.normalize("NFC", self.text))

    @classmethod
    def of(cls, query: "str | ParsedQuery") -> "ParsedQuery":
        """Return a query as it is, or parse a text."""
        return query if isinstance(query, ParsedQuery) else ParsedQuery(query)

    @cached_property
    def identifiers(self) -> list[Identifier]:
        """The decisions and articles that it names, in the order of the text."""
        return find_identifiers(self.text)

    @cached_property
    def names(self) -> list[str]:
        """The terms of what it names, as `names_in` gives them."""
        return _names(self.identifiers, self.text)


def names_in(text: str) -> list[str]:
    """Return the terms of the decisions, articles and days that a text names, each once, in the order of the text."""
    return _names(find_identifiers(text), text)


def _names(identifiers: Iterable[Identifier], text: str) -> list[str]:
    names = [_loosest(one) for one in identifiers]
    return list(dict.fromkeys([*names, *(f"date:{one.value.isoformat()}" for one in find_dates(text))]))


def all_names_in(text: str) -> list[str]:
    """Return all terms of the decisions and articles that a text names, of each the narrowest first, then the loosest.

    A text that begins with an article's number names that article; "3 000 €" and "24 mai 2019" name none.
    """
    found = find_identifiers(text) or _bare_articles(text)
    return list(dict.fromkeys(term for one in found for term in (term_of(one), _loosest(one))))


def _bare_articles(text: str) -> list[Identifier]:
    text = text.strip()
    starts = [*(day.start for day in find_dates(text)), *(amount.start for amount in find_amounts(text))]
    if MEASURE.match(text) or 0 in starts:
        return []
    return find_identifiers(f"article {text}")


def cited_by(document: Document) -> list[str]:
    """Return the terms of the decisions and articles that a document names in its text, its summary or its law column.

    Articles have one with their code and one without; those cited by an article without a code are of its own.
    """
    found = find_identifiers("\n".join([document.content, *document.applied_laws, document.summary]))
    codes = {one.code for one in _own_identifiers(document) if one.kind == "article"}
    if len(codes) == 1:
        (code,) = codes
        found = [one._replace(code=one.code or code) if one.kind == "article" else one for one in found]
    return list(dict.fromkeys(term for one in found for term in (_loosest(one), term_of(one))))


def lead_of(term: str) -> tuple[str, bool] | None:
    """Return the name that a term of `cited_by` leads to, and whether it is a whole name; None if another says more."""
    kind, _, value = term.partition(":")
    if kind == "article":
        number, _, code = value.partition(" ")
        return None if not code else (f"article:{number}", False) if code == NO_CODE else (term, True)
    if kind == "number":
        return f"{CONSTITUTIONAL}:{value}", False
    return None if kind == CONSTITUTIONAL else (term, True)


def loosest_of(term: str) -> str:
    """Return the form of a term that `names_in` gives for any way of writing the name."""
    kind, _, value = term.partition(":")
    if kind == "article":
        return f"article:{value.partition(' ')[0]}"
    return f"{CONSTITUTIONAL}:{value}" if kind in (*SERIES, "number") else term


def own_names(document: Document) -> list[str]:
    """Return the terms of a document's own names: its number or numbers and its ECLI, or the article that it is."""
    found = _own_identifiers(document)
    return list(dict.fromkeys(term for one in found for term in (term_of(one), _loosest(one))))


def _own_identifiers(document: Document) -> list[Identifier]:
    number, ecli, nature = (_column(document, name) for name in ("number", "ecli", "nature"))
    in_columns = [*decision_identifiers(number, nature), *find_identifiers(ecli)]
    in_title = find_identifiers(document.title)
    if any(one.kind not in ("number", "article") for one in in_columns):  # a decision, whose title may cite an article
        in_title = [one for one in in_title if one.kind != "article"]
    return [*in_columns, *in_title]


def _column(document: Document, name: str) -> str:
    """Return a column's text, the parts of a list one after the other; empty where there is none."""
    value = document.extra.get(name) or ""
    return " ; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def lookups(query: ParsedQuery) -> list[list[str]]:
    """Return, for each decision or article that a question names, the terms to look it up by, the best first."""
    return [_lookup(one) for one in query.identifiers]


def number_lookups(number: str) -> list[list[str]]:
    """Return, for each of a decision's numbers as a user writes them, the terms to look it up by, the best first."""
    return [_lookup(one) for one in decision_identifiers(number, "") or find_identifiers(number)]


def case_terms(query: ParsedQuery) -> list[str]:
    """Return the terms that texts have which name one of the decisions that a question names."""
    return [_loosest(one) for one in query.identifiers if one.kind != "article"]


def article_terms(text: str) -> list[str]:
    """Return the terms of what cites an article, given as 'L. 1152-1', '1240' or 'L. 1152-1 du code du travail'.

    With a code: those that name it, and those that name none.

    Raises:
        ValueError: If the text names no article, or several.
    """
    found = find_identifiers(text) + find_identifiers(f"article {text}")
    articles = [one for one in found if one.kind == "article"]
    if not articles:
        raise ValueError(f"not an article: {text!r} (expected e.g. 'L. 1152-1 du code du travail')")
    if len({one.value for one in articles}) > 1:
        raise ValueError(f"several articles: {text!r} (expected one, e.g. 'L. 1152-1 du code du travail')")
    one = articles[-1]
    return [term_of(one), term_of(one._replace(code=""))] if one.code else [_loosest(one)]


def _lookup(one: Identifier) -> list[str]:
    if one.kind == "article" and one.code:
        return [term_of(one), term_of(one._replace(code=""))]  # never the same number in another code
    return list(dict.fromkeys([term_of(one), _loosest(one)]))


def term_of(one: Identifier) -> str:
    """Return the term of a name as it is written: with its code or series, if it names one."""
    if one.kind == "article":
        return f"article:{one.value} {one.code or NO_CODE}"
    return f"{one.kind}:{one.value}"


def _loosest(one: Identifier) -> str:
    kind = CONSTITUTIONAL if one.kind in (*SERIES, "number") else one.kind
    return f"{kind}:{one.value}"
