"""Letterheads: author and date of an e-mail, a letter or a contract, from its first and last lines."""

import re
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from legal_rag.law.dates import find_dates
from legal_rag.law.words import WEEKDAYS

HEAD_CHARS, TAIL_CHARS = 3000, 2000  # read of a text: its header and parties, its signatures
TITLE_CHARS = 800  # where a decision gives its own date; later dates are cited ones
AUTHOR_CHARS = 120
EMAIL = "courriel"  # the `nature` of a text file with an e-mail header
_AUTHOR_FIELDS = {"de", "from", "expéditeur", "auteur", "author", "rédacteur"}
_DATE_FIELDS = {"date", "date d'envoi", "envoyé", "envoyé le", "sent"}
_TO_FIELDS, _SUBJECT_FIELDS = {"à", "to", "destinataire"}, {"objet", "subject"}
_NAMES = "|".join(sorted(_AUTHOR_FIELDS | _DATE_FIELDS | _TO_FIELDS | _SUBJECT_FIELDS, key=len, reverse=True))
_FIELD = re.compile(rf"^[ \t>*_]*(?P<name>{_NAMES})[ *_]*:[ *_]*(?P<value>\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_ADDRESS = re.compile(r"\s*(?:<[^>\n]*>|\[[^\]\n]*\])")
# The first party to a contract: a contract's author, up to its legal form, its address or the like.
_PARTY = re.compile(
    r"\bentre les (?:parties )?soussignée?(?:\(e\))?s?\b[\s:,*–-]*(?:(?:d['’]une part|\d[.)°])[\s:,*–-]*)?"
    rf"(?P<party>\w[^,;(\n]{{1,{AUTHOR_CHARS}}})",
    re.IGNORECASE,
)
_DAY = f"(?:(?:{'|'.join(WEEKDAYS)}) )?"
# What precedes a text's date in its line, most reliable first: signature, delivery, writing, decision.
_SIGNED = re.compile(rf"\W{{0,9}}(?:fait|signé|établi)\b.{{0,120}}\ble {_DAY}", re.IGNORECASE)
_DELIVERED = re.compile(
    r".{0,400}\b(?:dans s(?:a|es) séances?|en son audience publique|rendue? publi(?:c|que)"
    rf"|prononcée? (?:à l['’]audience publique|par mise à disposition au greffe)) (?:du|le)(?: ?:)? {_DAY}",
    re.IGNORECASE,
)
_WRITTEN = re.compile(rf"\W{{0,9}}(?:[^\W\d][\w' ’-]{{1,60}}, )?(?:(?:publié )?le )?{_DAY}", re.IGNORECASE)
_DECIDED = re.compile(
    r"\W{0,9}(?:(?:audience publique|arrêt|jugement|ordonnance|décision)\b.{0,40} du|prononcée? le) ", re.IGNORECASE
)


class Letterhead(NamedTuple):
    """A text's own metadata; empty where it gives none."""

    date: str = ""  # ISO 8601
    author: str = ""
    is_email: bool = False


def read_letterhead(text: str) -> Letterhead:
    """Read who wrote a text and when: fields such as "De :" and "Date :", "Fait à Lyon, le …", "Paris, le …"."""
    head = text[:HEAD_CHARS]
    fields: dict[str, str] = {}
    for field in _FIELD.finditer(head):
        fields.setdefault(field["name"].lower(), field["value"].strip())
    author, sent, to, subject = (
        next((value for name, value in fields.items() if name in names), "")
        for names in (_AUTHOR_FIELDS, _DATE_FIELDS, _TO_FIELDS, _SUBJECT_FIELDS)
    )
    party = _PARTY.search(head)
    return Letterhead(
        _date_of_field(sent) or _date_in_lines(f"{head}\n{text[HEAD_CHARS:][-TAIL_CHARS:]}"),
        _name_of(author) or (party["party"].strip() if party else ""),
        bool(author and to and (subject or sent)),
    )


def _date_of_field(value: str) -> str:
    if dates := find_dates(value):
        return dates[0].value.isoformat()
    try:
        return parsedate_to_datetime(value).date().isoformat()  # "Tue, 4 Feb 2025 09:14:00 +0100"
    except (ValueError, TypeError, IndexError):
        return ""


def _date_in_lines(text: str) -> str:
    dates_by_rank: dict[int, str] = {}
    for day in find_dates(text):
        line = text.rfind("\n", 0, day.start) + 1
        end = text.find("\n", day.end)
        alone = not text[day.end : end if end >= 0 else len(text)].strip(" .,;:")
        lead = text[line : day.start]
        if _SIGNED.fullmatch(lead):
            dates_by_rank[0] = day.value.isoformat()  # the last signature counts
        elif _DELIVERED.fullmatch(lead):
            dates_by_rank[1] = day.value.isoformat()  # it may be read in public after the session
        elif alone and _WRITTEN.fullmatch(lead):
            dates_by_rank.setdefault(2, day.value.isoformat())
        elif line < TITLE_CHARS and _DECIDED.fullmatch(lead):
            dates_by_rank.setdefault(3, day.value.isoformat())
    return dates_by_rank[min(dates_by_rank)] if dates_by_rank else ""


def _name_of(value: str) -> str:
    name = _ADDRESS.sub("", value).strip(" \t\"'«»*_")
    return (name or value.strip(" <>[]"))[:AUTHOR_CHARS]
