"""Cite decisions and articles as French lawyers do: "Cass. 2e civ., 5 oct. 2023, n° 20-23.523, publié"."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice, takewhile
from typing import Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import within_sentence
from legal_rag.law import SERIES, find_cases, find_courts, find_dates, read_letterhead
from legal_rag.law.articles import CODE_FORMS, CODE_NAME, article_value, code_in_full
from legal_rag.law.courts import CHAMBERS, Court, court_at_start, words_of_value
from legal_rag.law.keys import DocumentLike
from legal_rag.law.reading import EMAIL
from legal_rag.law.scanning import NO_BREAK, read_table, spaced
from legal_rag.law.words import ORDINALS, SHORT_MONTHS

FIELD_CHARS = 400  # read of a title or a column
HEAD_CHARS = 800  # of the text, where a decision names its court, its number and how it is published
TITLE_CHARS = 160  # of a title used as citation
PART_CHARS = 40  # a number or formation that is longer is cut or left out
_TABLES = read_table("citation.toml")
CASSATION, CONSTITUTIONAL = "Cass.", f"Cons.{NO_BREAK}const."


@displayed
class Link(NamedTuple):
    """A public page about a document; its address is a column's, or built from an id or a number, and not checked."""

    name: str  # "Légifrance", "Judilibre", "Conseil constitutionnel", "ArianeWeb"
    url: str


@displayed
@dataclass(frozen=True, kw_only=True)
class LegalCitation:
    """A document's citation and its parts; a part is empty where neither columns nor letterhead give it."""

    text: str  # "Cass. 2e civ., 5 oct. 2023, n° 20-23.523, publié", with no-break spaces; never empty
    links: tuple[Link, ...] = ()
    court: str = ""  # "Cass.", "CE", "CA Toulouse"; of an article, its code: "C. trav."
    formation: str = ""  # "2e civ.", "ass."
    date: str = ""  # ISO 8601
    number: str = ""  # "20-23.523", "93-1213 AN"; of an article, "L. 1237-11"
    publication: str = ""  # "publié", "inédit", "FS-P+B"
    name: str = ""  # of the case, if the title gives one: "A.N., Haute-Loire (1ère circ.)"

    @property
    def with_name(self) -> str:
        """The citation, with the name of the case if it has one."""
        return ", ".join(filter(None, (self.text, self.name)))

    @property
    def reference(self) -> str:
        """The citation as it follows a quotation, without its publication: "Cass. soc., 3 mai 2018, n° 16-26.437"."""
        return self.text.removesuffix(f", {self.publication}") if self.publication else self.text

    @property
    def plain(self) -> str:
        """The same with ordinary blanks, for a model: a no-break space costs it tokens."""
        return self.with_name.replace(NO_BREAK, " ")


def legal_citation(document: DocumentLike) -> LegalCitation:
    """Cite a document from its columns, and from its title and letterhead where these are empty.

    A document whose court and code are unknown is cited by its title, or else its id, with its date.
    """
    citation = _cite_article(document) or _cite_decision(document) or _cite_other(document)
    given = list(_given_links(document))
    built = (link for link in citation.links if link.name not in [named.name for named in given])
    return replace(citation, links=(*given, *built))


def _given_links(document: DocumentLike) -> Iterator[Link]:
    """Yield the public page that a document's columns name."""
    urls = (_column_line(document.extra.get(column)) for column in _TABLES["url_columns"])
    for url in islice((url for url in urls if _URL.fullmatch(url)), 1):
        host = url.split("/")[2]
        yield Link(next((row["name"] for row in _TABLES["links"] if row["url"].split("/")[2] == host), host), url)


_URL = re.compile(r"https?://[\w.-]+/[^\s<>\"']*")


def legal_date(iso: str) -> str:
    """Write an ISO 8601 date as law reviews do, "5 oct. 2023"; empty for an invalid date."""
    try:
        day = date.fromisoformat(iso)
    except ValueError:
        return ""
    return f"{'1er' if day.day == 1 else day.day}{NO_BREAK}{SHORT_MONTHS[day.month - 1]}{NO_BREAK}{day.year}"


def _column_line(value: Any) -> str:
    """Return a column as one printable line of bounded length, lists joined by commas; markup stays text."""
    if isinstance(value, list | tuple):
        value = ", ".join(str(item)[:FIELD_CHARS] for item in value[:10])
    text = str(value if value is not None else "")[:FIELD_CHARS]
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _add_links(citation: LegalCitation, doc_id: str) -> LegalCitation:
    values = {**vars(citation), "id": doc_id}
    links = []
    for row in _TABLES["links"]:
        matches = [re.fullmatch(row[field], values[field]) for field in ("id", "court", "number") if field in row]
        groups = {key: group for match in matches if match for key, group in match.groupdict().items()}
        if all(matches) and (citation.date or "{date" not in row["url"]):
            links.append(Link(row["name"], row["url"].format(**{**values, **groups})))
    return replace(citation, links=tuple(links))


def _cite_other(document: DocumentLike) -> LegalCitation:
    title, day = _column_line(document.title), _column_line(document.decision_date)
    title_dates = {match.value.isoformat() for match in find_dates(title)}
    parts = [
        _cut_title(title) or _column_line(document.id) or "document",
        "" if day in title_dates else legal_date(day),
    ]
    return _add_links(LegalCitation(text=", ".join(filter(None, parts)), date=legal_date(day) and day), document.id)


_ARTICLE_WORD = r"(?:articles?|art\.)_"
_ARTICLE_TITLES = tuple(
    re.compile(spaced(pattern), re.IGNORECASE)
    for pattern in (
        rf"(?P<code>{CODE_NAME})_[,:]?_{_ARTICLE_WORD}(?P<number>\S.{{0,{PART_CHARS * 2}}})",
        rf"{_ARTICLE_WORD}(?P<number>\S.{{0,{PART_CHARS}}}?) du (?P<code>{CODE_NAME})",
    )
)
_CODE_FIRST = re.compile(spaced(rf"(?P<code>{CODE_NAME})(?!\w)"), re.IGNORECASE)
_ARTICLE_IDS = ("LEGIARTI", "KALIARTI")
_NUMBER_OF_ARTICLE = re.compile(r"(?<!\w)(?:L\.?\s?O|[LRDA])\.?\s?(?:\*{1,2}\s?)?\d[\d\w. -]*", re.IGNORECASE)


def _cite_article(document: DocumentLike) -> LegalCitation | None:
    title = _column_line(document.title)
    named = next(filter(None, (pattern.fullmatch(title) for pattern in _ARTICLE_TITLES)), None)
    number = named["number"] if named else _column_line(document.extra.get("number"))
    code = named or (_CODE_FIRST.match(_column_line(document.extra.get("section"))) if is_article(document) else None)
    if code is None or not number:
        return None
    name = " ".join(code["code"].replace("’", "'").split())
    form = CODE_FORMS.get(code_in_full(name), name)
    number = _NUMBER_OF_ARTICLE.sub(lambda match: spaced_number(match.group()), number)
    is_annex = number.lower().startswith("annexe")
    sign = "" if is_annex else f"art.{NO_BREAK}"
    number = number[0].lower() + number[1:] if is_annex else number
    return _add_links(LegalCitation(text=f"{form}, {sign}{number}", court=form, number=number), document.id)


def is_article(document: DocumentLike) -> bool:
    """Is a document an article of a code or a statute, judging by its id?"""
    return not document.juridiction and document.id.startswith(_ARTICLE_IDS)


def spaced_number(number: str) -> str:
    """Write "L1237-11" as "L. 1237-11", "LO128" as "LO 128", "R*123-4" as "R.* 123-4"."""
    value = article_value(number.replace("*", ""))
    letters, figures = re.match(r"([A-Z]*)(.*)", value).groups()  # type: ignore[union-attr]
    stars = "*" * number.count("*")
    return f"{letters}{'' if letters == 'LO' else '.'}{stars}{NO_BREAK}{figures}" if letters else figures


def _cite_decision(document: DocumentLike) -> LegalCitation | None:
    title = _column_line(document.title)
    notice, title = _NOTICE.match(title).groups()  # type: ignore[union-attr]
    court = _read_court(document, title)
    if not court:
        return None
    day = _read_date(document, title)
    number = _read_number(document, title, court)
    if not (number or (day and (document.juridiction or not title))):  # a title may name another court
        return None
    formation = _formation(document, title, court)
    publication = _publication(document, title, court)
    sign = NO_BREAK if court == CASSATION else ", "
    parts = (sign.join(filter(None, (court, formation))), legal_date(day), _format_number(number), publication)
    return _add_links(
        LegalCitation(
            text=f"{notice}{', '.join(filter(None, parts))}",
            court=court,
            formation=formation,
            date=day,
            number=number,
            publication=publication,
            name=_case_name(title),
        ),
        document.id,
    )


def _case_name(title: str) -> str:
    """Return the rest of a title without court, formation, date, number and publication."""
    if not court_at_start(title) and not _cassation([title.partition(",")[0]], ""):
        return _cut_title(title)
    segments = _without_dates(title).split(",")
    known = [n for n, segment in enumerate(segments) if not segment.strip() or _NUMBER_SEGMENT.fullmatch(segment)]
    rest = (segment.strip() for segment in segments[known[-1] + 1 :]) if known else ()
    return _cut_title(", ".join(segment for segment in rest if not _is_known_part(segment)))


def _is_known_part(segment: str) -> bool:
    return bool(_published(segment) or segment.isdigit() or _FORMATION_WORD.search(segment))


def _cut_title(text: str) -> str:
    return text if len(text) <= TITLE_CHARS else text[: TITLE_CHARS - 1].rstrip() + "…"


# "[Décision fictive] Cour de cassation, …": a notice that a citation must not lose.
_NOTICE = re.compile(rf"(\[[^\]]{{1,{PART_CHARS}}}\] ?|)(.*)")
_OF = re.compile(r"\s*(?:de la |de l['’]|de |du |des |d['’ ])?\s*(?P<town>[^,;(\d\n]*[^,;(\d\n\s–-])", re.IGNORECASE)
_SMALL_WORDS = frozenset("de du des la le les en sur sous lès les l d et".split())


def _read_court(document: DocumentLike, title: str) -> str:
    given = _column_line(document.juridiction)
    court, name = _named_court(given)
    if given and not court:
        return "" if any(map(str.isdigit, given)) else given[: PART_CHARS * 2]  # not a code such as "tj75056"
    if court and (name != court.cite or not court.has_town):
        return name
    for text in (title, _court_of_head(document) if court or not title else ""):
        other, name = _named_court(text)
        if other and court in (None, other) and (name != other.cite or not other.has_town):
            return name
    return court.cite if court else ""


def _named_court(text: str) -> tuple[Court | None, str]:
    """Return the court that a text begins with, and its citation form with its town."""
    court, end = court_at_start(text) or (None, 0)
    if not court or not court.cite:
        return None, ""
    town = _OF.match(text, end) if court.has_town else None
    return court, f"{court.cite} {_town(town['town']) if town else ''}".strip()


def _town(name: str) -> str:
    """Convert an all-capitals town to title case: "AIX-EN-PROVENCE" to "Aix-en-Provence"."""
    if not name.isupper():
        return name.strip()
    words = re.split(r"([\s'’-]+)", name.strip().lower())
    return "".join(word if word in _SMALL_WORDS and place else word.capitalize() for place, word in enumerate(words))


def _court_of_head(document: DocumentLike) -> str:
    """Return the court that the text names in capitals at the beginning of a line, as letterheads do."""
    if document.extra.get("nature") == EMAIL:
        return ""
    head = document.content[:HEAD_CHARS]
    for start, end in find_courts(head):
        line = head.rfind("\n", 0, start) + 1
        if _LEAD_OF_COURT.fullmatch(head, line, start) and head[start : start + 5].isupper():
            return head[start:end]
    return ""


_LEAD_OF_COURT = re.compile(r"[\W_]*(?:L[AE] )?")


def _read_date(document: DocumentLike, title: str) -> str:
    given = _column_line(document.decision_date)
    for text in (given, title):
        if dates := find_dates(text):
            return dates[0].value.isoformat()
    return "" if given else read_letterhead(document.content).date


def _formation(document: DocumentLike, title: str, court: str) -> str:
    if court == CONSTITUTIONAL:
        return ""
    given, named = _FORMATION_CODE.sub("", _column_line(document.formation)), _formations_of_title(title)
    if court == CASSATION:
        return _cassation([given, *named], _column_line(document.extra.get("ecli")))
    text = given or ", ".join(named[1:] if named and court_at_start(named[0]) else named)
    text = _ORDINAL.sub(lambda match: "1re" if (rank := ORDINALS[match.group().lower()]) == 1 else f"{rank}e", text)
    for row in _TABLES["formations"]:
        text = re.sub(row["words"], row["form"], text, flags=re.IGNORECASE)
    text = " ".join(text.split())
    return within_sentence(text) if len(text) <= PART_CHARS else ""


_FORMATION_CODE = re.compile(r"^[A-Z]{2}\d{4}$")  # of courts of appeal in DILA's archives: CT0028
_ORDINAL = re.compile("|".join(word for word in ORDINALS if word not in ("premier", "second")), re.IGNORECASE)


def _formations_of_title(title: str) -> list[str]:
    """Return the segments of a title, up to its first date or number, that name a formation."""
    dates = find_dates(title)
    segments = title[: dates[0].start if dates else len(title)].split(",")
    before = takewhile(lambda segment: not _NUMBER_SEGMENT.fullmatch(segment), segments)
    return [segment.strip() for segment in before if _FORMATION_WORD.search(segment)]


_FORMATION_WORD = re.compile(
    r"\b(?:chambres?|ch\.|p[oô]le|assemblée|ass\.|(?:sous-)?sections?|ssr|référés|cass\.)(?!\w)", re.IGNORECASE
)


def _cassation(names: Sequence[str], ecli: str) -> str:
    for words in map(words_of_value, names):
        for chamber in CHAMBERS:
            if chamber.words <= words:
                return chamber.cite
    code = _ECLI.match(ecli)
    return next((chamber.cite for chamber in CHAMBERS if code and code[1].upper().startswith(chamber.ecli)), "")


_ECLI = re.compile(r"ECLI:FR:CCASS:\d{4}:(\w{3})", re.IGNORECASE)


_NUMBER = (
    r"(?:\d\d-\d\d[. ]?\d{3}|(?:\d\d)?\d\d-\d{1,5}(?:/\d{1,5})*R?(?: [A-Z]{2,4}\b)?|(?:\d\d)?\d\d ?/ ?\d{1,6}"
    r"|\d\d[A-Z]{2}\d{5}|\d{5,10}|C\d{4})"
)
_NUMBER_SEGMENT = re.compile(
    rf"\s*(?:[^\W\d]+\.? )?(?:n[°ºo]s? ?)?(?P<list>{_NUMBER}(?:(?: et | ){_NUMBER})*)(?: du)?\s*"
)
_ONE_NUMBER = re.compile(_NUMBER)
_POURVOI = re.compile(r"(\d\d)[-‐‑](\d\d)[. \u00a0\u202f]?(\d{3})")
# Label before a decision's own number in its letterhead, from the start of the line.
_LABEL = re.compile(
    r"\W*(?:(?:pourvois?|affaires?|requ[eê]tes?|décision|dossier)\s)?\s*(?:n[°ºo]s?\s*)?(?:[A-Z] )?", re.IGNORECASE
)


def _read_number(document: DocumentLike, title: str, court: str) -> str:
    """Return a decision's number as cited, the first of several with "et a."."""
    column = _column_line(document.extra.get("numbers") or document.extra.get("number"))
    given = [number for number in re.split(r"[,;]", column) if number.strip(" /")]
    raw_numbers = given or _numbers_of_title(title) or _numbers_of_head(document, court)
    numbers = [_normalise_number(number, document, court) for number in raw_numbers]
    return " et ".join(numbers) if len(numbers) <= 2 else f"{numbers[0]} et a."


def _format_number(number: str) -> str:
    sign = "nos" if " et " in number and not number.endswith(" et a.") else "n°"
    return f"{sign}{NO_BREAK}{number}" if number else ""


def _normalise_number(number: str, document: DocumentLike, court: str) -> str:
    number = re.sub(r"\s*/\s*", "/", " ".join(number.split())).strip(" /")
    number, others = re.subn(r" et autres?$", "", re.sub(r"^n[°ºo]\s*", "", number))
    pourvoi = _POURVOI.fullmatch(number) if court == CASSATION else None
    number = f"{pourvoi[1]}-{pourvoi[2]}.{pourvoi[3]}" if pourvoi else number[:PART_CHARS]
    if court == CONSTITUTIONAL and not re.search(r"[A-Z]{2}", number):
        number = f"{number} {_series(document)}".strip()
    return f"{number} et a." if others else number


def _series(document: DocumentLike) -> str:
    named = [_column_line(document.extra.get("nature")), _column_line(document.extra.get("ecli")).rpartition(".")[2]]
    return next((series.upper() for series in named if series.lower() in SERIES), "")


def _numbers_of_title(title: str) -> list[str]:
    lists = (_NUMBER_SEGMENT.fullmatch(segment) for segment in _without_dates(title).split(","))
    return next((_ONE_NUMBER.findall(match["list"]) for match in lists if match), [])


def _without_dates(title: str) -> str:
    for day in reversed(find_dates(title)):
        title = f"{title[: day.start]},,{title[day.end :]}"
    return title


def _numbers_of_head(document: DocumentLike, court: str) -> list[str]:
    """Return the letterhead's number if it has the court's form; others are numbers of cited decisions."""
    kinds = {CASSATION: ("pourvoi",), CONSTITUTIONAL: SERIES}.get(court, ("rg", "number", "conflits"))
    head = document.content[:HEAD_CHARS]
    for case in find_cases(head):
        line = head.rfind("\n", 0, case.start) + 1
        if case.kind in kinds and (case.kind == "rg" or _LABEL.fullmatch(head, line, case.start)):
            written = _ONE_NUMBER.search(head, case.start, case.end)
            return [written.group() if written else case.value]
    return []


_LETTERHEAD_CODE = re.compile(r"Arr[êe]t\s+n[°ºo]s?\s*\d{1,6}\s+(?P<code>F[SP]?-[PBRIDL](?:\+[PBRIDL])*)(?![\w+-])")


def _publication(document: DocumentLike, title: str, court: str) -> str:
    given = _column_line(document.extra.get("publication"))
    if form := _published(given) or _published(title):
        return form
    codes = {code.strip().lower() for code in given.split(",")}
    if form := next((row["form"] for row in _TABLES["publication_codes"] if row["code"] in codes), ""):
        return str(form)
    marked = _LETTERHEAD_CODE.search(document.content[:HEAD_CHARS]) if court == CASSATION else None
    return marked["code"] if marked else ""


def is_published(document: DocumentLike) -> bool:
    """Tell whether a decision is published: in a Bulletin or the Recueil Lebon, in a report or a letter of its court.

    By its column, its title or its letterhead: "B", "FS-B", "P+B+R+I", "A" or "B" of JADE, "oui" of DILA's Bulletin;
    "D" is for those of interest to the parties alone.
    """
    form = legal_citation(document).publication
    given = _column_line(document.extra.get("publication")).upper()
    marks = set(re.split(r"[^A-Z]+", form.upper())) | set(re.split(r"[^A-ZÉ]+", given))
    if form and not _LETTERHEAD_MARK.fullmatch(form):
        return form in _PUBLISHED_FORMS
    return not marks.isdisjoint(_PUBLISHED_MARKS)


_LETTERHEAD_MARK = re.compile(r"F[SP]?-[PBRIDL](?:\+[PBRIDL])*")
_PUBLISHED_MARKS = frozenset(("A", "B", "P", "R", "L", "OUI"))
_PUBLISHED_FORMS = frozenset(row["form"] for row in _TABLES["publication"]) - {"inédit"}


def _published(text: str) -> str:
    """Return how a segment of a text, between commas, says that a decision is published; empty if none does."""
    for row in _TABLES["publication"]:
        if re.search(rf"(?:^|,)\s*(?:{row['words']})(?!\w)", text, re.IGNORECASE):
            return str(row["form"])
    return ""
