"""Reference keys: the names by which a document is cited, and those it cites."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from legal_rag.base.html import displayed
from legal_rag.base.text import normalized
from legal_rag.law import (
    MONTHS,
    SERIES,
    Identifier,
    Reading,
    Statute,
    decision_identifiers,
    find_amounts,
    find_dates,
    find_identifiers,
    find_statute_articles,
    find_statutes,
    find_typed_identifiers,
    find_typed_statutes,
    is_statute,
    with_codes,
)
from legal_rag.law.articles import named_no_law, named_text
from legal_rag.law.mentions import find_european_cases

CONSTITUTIONAL = "cc"  # kind of a decision of the Conseil constitutionnel of any series
MOST_RECTIFIED = 3  # times
NO_CODE = "?"  # of an article cited by number alone
# Figures that count something or belong to a date: not an article's number.
MEASURE = re.compile(
    r"\d+(?:(?:[ \u00a0\u202f.]\d{3})+(?!\d)|,\d{1,2}(?!\d)|\s*[%€]|/\d{1,2}/"
    rf"|(?:er)?\s*(?:ans?|années?|mois|semaines?|jours?|heures?|h|minutes?|{'|'.join(MONTHS)})\b)",
    re.IGNORECASE,
)


class DocumentLike(Protocol):
    """A text and what is known of it, as a `corpus.Document` has it."""

    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def content(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def decision_date(self) -> str: ...  # noqa: D102
    @property
    def juridiction(self) -> str: ...  # noqa: D102
    @property
    def formation(self) -> str: ...  # noqa: D102
    @property
    def applied_laws(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def extra(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def reading(self) -> Reading: ...  # noqa: D102


@displayed
@dataclass(frozen=True)
class ParsedQuery:
    """A question in Unicode NFC, as documents are, with the references it contains, parsed once on demand."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", normalized(self.text))

    @classmethod
    def of(cls, query: "str | ParsedQuery") -> "ParsedQuery":
        """Return a parsed query unchanged, or wrap a text."""
        return query if isinstance(query, ParsedQuery) else ParsedQuery(query)

    @cached_property
    def identifiers(self) -> list[Identifier]:
        """The decisions and articles that it names, in any form, in text order."""
        return find_typed_identifiers(self.text)

    @cached_property
    def keyed_identifiers(self) -> list[tuple[Identifier, str]]:
        """The decisions and articles that it names, each with its relaxed key."""
        return [(name, _relaxed(name)) for name in self.identifiers]

    @cached_property
    def statutes(self) -> list[Statute]:
        """The statutes that it names, by number, date or usual name."""
        return find_typed_statutes(self.text)

    @cached_property
    def keys(self) -> list[str]:
        """The relaxed keys of what it names, then of its dates and those of its statutes, each once."""
        names = [key for _, key in self.keyed_identifiers]
        days = [*(day.value for day in find_dates(self.text)), *(law.date for law in self.statutes if law.date)]
        return list(dict.fromkeys([*names, *(f"date:{day.isoformat()}" for day in days)]))


def all_reference_keys(text: str) -> list[str]:
    """Return the canonical and relaxed keys of each decision and article that a text names.

    A text that begins with an article's number names that article; "3 000 €" and "24 mai 2019" name none.
    """
    return _both_keys(find_identifiers(text) or _bare_articles(text))


def _bare_articles(text: str) -> list[Identifier]:
    text = text.strip()
    starts = [*(day.start for day in find_dates(text)), *(amount.start for amount in find_amounts(text))]
    if MEASURE.match(text) or 0 in starts:
        return []
    return find_identifiers(f"article {text}")


def document_keys(document: DocumentLike) -> dict[str, bool]:
    """Return the relaxed and canonical keys of what a document cites and is, and whether each is its own."""
    own_identifiers = _own_identifiers(document)
    cited = _cited_identifiers(document, own_identifiers)
    keys = dict.fromkeys((key for name in cited for key in (_relaxed(name), canonical_key(name))), False)
    return keys | dict.fromkeys(_both_keys([*own_identifiers, *_other_names(document, own_identifiers)]), True)


def cited_identifiers(document: DocumentLike) -> list[Identifier]:
    """Find what a document cites in its text, law column or summary, in this order.

    Offsets are those of its content; references from columns have offsets past its end. An article that cites others
    without a code means its own code; for a decision see `with_codes`.
    """
    return _cited_identifiers(document, _own_identifiers(document))


def _cited_identifiers(document: DocumentLike, own_identifiers: Iterable[Identifier]) -> list[Identifier]:
    start, columns = len(document.content), "\n".join(["", *document.applied_laws, document.summary])
    cited = [
        *document.reading.identifiers,
        *(name._replace(start=start + name.start, end=start + name.end) for name in find_identifiers(columns)),
    ]
    cited += (Identifier(*case) for case in find_european_cases(document.content + columns))
    codes = {name.code for name in own_identifiers if name.kind == "article"}
    if len(codes) == 1:
        (code,) = codes
        return [name._replace(code=name.code or code) if name.kind == "article" else name for name in cited]
    return with_codes(document.content + columns, cited)


def resolve_key(key: str) -> tuple[str, bool] | None:
    """Resolve a cited key to the key of a document.

    Returns:
        The key, and whether it is complete (with code or series); None if the citation's other key is more specific.
    """
    kind, _, value = key.partition(":")
    if kind == "article":
        number, _, code = value.partition(" ")
        return None if not code else (f"article:{number}", False) if code == NO_CODE else (key, True)
    if kind == "number":
        return f"{CONSTITUTIONAL}:{value}", False
    return None if kind == CONSTITUTIONAL else (key, True)


def relaxed_key(key: str) -> str:
    """Return the key without code or series, the same for every spelling of a reference."""
    kind, _, value = key.partition(":")
    if kind == "article":
        return f"article:{value.partition(' ')[0]}"
    return f"{CONSTITUTIONAL}:{value}" if kind in (*SERIES, "number") else key


def own_keys(document: DocumentLike) -> list[str]:
    """Return a document's own keys: its numbers and ECLI, or the article that it is."""
    own_identifiers = _own_identifiers(document)
    return _both_keys([*own_identifiers, *_other_names(document, own_identifiers)])


def _other_names(document: DocumentLike, own_identifiers: Iterable[Identifier]) -> list[Identifier]:
    """Return the names by which a statute's article is cited too: with its statute's day alone."""
    statute = _statute_of(document)
    if statute is None or not statute.date:
        return []
    # Of one without a number also a name of its own: others of its day have that day's name too.
    codes = [f"{statute.nature} du {statute.date}", *([] if statute.number else [_without_number(statute)])]
    return [name._replace(code=code) for code in codes for name in own_identifiers if name.kind == "article"]


def _without_number(statute: Statute) -> str:
    return f"{statute.nature} n° {NO_CODE} du {statute.date}"


def _statute_of(document: DocumentLike) -> Statute | None:
    """Return the statute of which a document is an article, by the column that names it; None if it is of a code."""
    text_title = _column_text(document, "text_title")
    statutes = find_statutes(text_title, find_dates(text_title)) if text_title else []
    return statutes[0] if statutes and not statutes[0].start else None


def _own_identifiers(document: DocumentLike) -> list[Identifier]:
    ecli, nature = _column_text(document, "ecli"), _column_text(document, "nature")
    number = _column_text(document, "numbers") or _column_text(document, "number")  # all, where there are several
    if number[:1].isdigit() and document.extra.get("text_title"):  # article 3 of a decree is no decision n° 3
        number = ""
    in_columns = [*decision_identifiers(number, nature, document.juridiction), *find_identifiers(ecli)]
    if _EUROPEAN_COURT.match(document.juridiction or document.title):
        of_court = find_european_cases(f"{document.juridiction}, n° {number}, {document.title}")
        in_columns += (Identifier(*case) for case in of_court)
    title = document.title
    in_title = [
        *find_identifiers(title),
        *(Identifier("article", *article) for article in find_statute_articles(title, find_dates(title))),
    ]
    if statute := _statute_of(document):  # its subject stands before the article's number, and may name other texts
        of_text = _column_text(document, "text_title")
        first = len(of_text) if title.startswith(of_text) else 0
        articles = {name.value: name for name in in_title if name.kind == "article" and name.start >= first}
        in_title = [name._replace(code=statute.key) for name in articles.values()]
    if any(name.kind not in ("number", "article") for name in in_columns):  # a decision's title may cite an article
        in_title = [name for name in in_title if name.kind != "article"]
    return [*in_columns, *in_title]


_EUROPEAN_COURT = re.compile(
    r"CJ[CU]E|CEDH|Cour (?:de justice|EDH|européenne)|Trib(?:unal|\.) (?:de l['’]Union européenne|UE)", re.IGNORECASE
)


def _column_text(document: DocumentLike, name: str) -> str:
    value = document.extra.get(name) or ""
    return " ; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def candidate_keys(query: ParsedQuery) -> list[list[str]]:
    """Return the look-up keys of each decision or article that a question names, best first.

    An article of no code or law, but of a contract, an agreement or a text by its name, is no other text's of its
    number.
    """
    numbered = {law.key: _without_number(law) for law in query.statutes if law.number and law.date}
    return [
        [
            *([canonical_key(name)] if _is_of_another(name, query.text) else _keys_to_try(name)),
            *([canonical_key(name._replace(code=numbered[name.code]))] if name.code in numbered else []),
        ]
        for name in query.identifiers
    ]


def _is_of_another(name: Identifier, text: str) -> bool:
    is_bare = name.kind == "article" and not name.code
    return is_bare and bool(named_no_law(text, name.start, name.end) or named_text(text, name.end))


def citing_keys(query: ParsedQuery) -> list[list[str]]:
    """Return the same for what texts cite, where an article of a statute is known by its number alone."""
    return [_keys_to_try(name._replace(code="") if is_statute(name.code) else name) for name in query.identifiers]


def candidate_keys_of_number(number: str) -> list[list[str]]:
    """Return the look-up keys of each of a decision's numbers as a user writes them, best first."""
    return [_keys_to_try(name) for name in decision_identifiers(number, "") or find_typed_identifiers(number)]


def rectification_keys(keys: Sequence[str]) -> list[str]:
    """Return the keys of what rectifies a decision of the Conseil constitutionnel: 'cc:1993-1213R' and so on."""
    own = [key for key in keys if key.partition(":")[0] == CONSTITUTIONAL and key[-1].isdecimal()]
    return [f"{key}R{rank}" for key in own for rank in ("", *range(1, MOST_RECTIFIED + 1))]


def decision_keys(query: ParsedQuery) -> list[str]:
    """Return the relaxed keys of the decisions that a question names, by which citing texts are found."""
    return [_relaxed(name) for name in query.identifiers if name.kind != "article"]


def article_keys(text: str) -> list[str]:
    """Return the keys of citations of one article, given as '1240' or 'L. 1152-1 du code du travail'.

    With a code, citations without any code count too.

    Raises:
        ValueError: If the text names no article, or several.
    """
    names = find_identifiers(text) + find_identifiers(f"article {text}")
    articles = [name for name in names if name.kind == "article"]
    if not articles:
        raise ValueError(f"not an article: {text!r:.200} (expected e.g. 'L. 1152-1 du code du travail')")
    if len({article.value for article in articles}) > 1:
        raise ValueError(f"several articles: {text!r:.200} (expected one, e.g. 'L. 1152-1 du code du travail')")
    article = articles[-1]
    return _keys_to_try(article) if article.code else [_relaxed(article)]


def _keys_to_try(name: Identifier) -> list[str]:
    if name.kind == "article" and is_statute(name.code):
        return [canonical_key(name)]  # each has an article of this number
    if name.kind == "article" and name.code:
        return [canonical_key(name), canonical_key(name._replace(code=""))]  # never the same number in another code
    return _both_keys([name])


def _both_keys(names: Iterable[Identifier]) -> list[str]:
    return list(dict.fromkeys(key for name in names for key in (canonical_key(name), _relaxed(name))))


def canonical_key(one: Identifier) -> str:
    """Return the key of a reference as written, with its code or series if it has one."""
    if one.kind == "article":
        return f"article:{one.value} {one.code or NO_CODE}"
    return f"{one.kind}:{one.value}"


def article_of_key(key: str) -> tuple[str, str] | None:
    """Split the key of an article into its number and its code or statute; None if it is of neither."""
    match = _ARTICLE_KEY.fullmatch(key)
    return (match[1], match[2]) if match else None


_ARTICLE_KEY = re.compile(r"article:(.+?) ((?:code|livre|loi|ordonnance|décret|arrêté) .+)")


def _relaxed(name: Identifier) -> str:
    kind = CONSTITUTIONAL if name.kind in (*SERIES, "number") else name.kind
    return f"{kind}:{name.value}"
