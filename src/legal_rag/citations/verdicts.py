"""What became of each reference of a text: a status, what was checked, what is right, and what there is to read."""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, NamedTuple

from legal_rag.base.html import Rows, displayed
from legal_rag.base.text import json_safe
from legal_rag.law.citation import Link

# confirmed: a Library has it, and all that the text says of it was checked and is right.
# wrong: a Library has it, and something that the text says of it is not so.
# ambiguous: several documents fit what the text says; or an article is in force in another version than that quoted.
# absent: the Libraries hold this court's decisions, or this code, and lack this one.
# out_of_scope: of a court, a code or a kind of text of which no Library holds anything.
# unread: it looks like a reference and could not be parsed, or resolved to one document.
Status = Literal["confirmed", "wrong", "ambiguous", "absent", "out_of_scope", "unread"]
STATUSES: tuple[Status, ...] = ("wrong", "absent", "ambiguous", "unread", "out_of_scope", "confirmed")
IN_FRENCH: Mapping[Status, str] = {
    "wrong": "faux",
    "absent": "absent de l'index",
    "ambiguous": "ambigu",
    "unread": "non lu",
    "out_of_scope": "hors du champ",
    "confirmed": "confirmé",
}
PLURALS: Mapping[Status, str] = {
    "absent": "absents de l'index",
    "ambiguous": "ambigus",
    "unread": "non lus",
    "confirmed": "confirmés",
}
Kind = Literal["decision", "article", "law", "quotation"]
What = Literal[
    "date", "court", "outcome", "number", "article", "words", "source", "speaker", "point", "version", "fate"
]
WHAT_IN_FRENCH: Mapping[What, str] = {
    "date": "date",
    "court": "juridiction",
    "outcome": "solution",
    "number": "numéro",
    "article": "article",
    "words": "texte cité",
    "source": "source",
    "speaker": "auteur des mots",
    "point": "paragraphe",
    "version": "version",
    "fate": "sort",
}


@displayed
class Correction(NamedTuple):
    """One thing that a text states of a reference, and what is right."""

    what: What
    stated: str
    right: str  # empty: the Library only shows that it is wrong


@displayed
class Nearest(NamedTuple):
    """A document of a Library that is close to one that it lacks, or has to do with one that it holds."""

    doc_id: str
    title: str
    why: str  # in French
    library: str = ""  # name of its Library


@displayed
class CitedSource(NamedTuple):
    """The document that a reference was checked against."""

    library: str  # name of its Library
    doc_id: str
    title: str  # its citation
    court: str = ""
    date: str = ""  # ISO 8601
    outcome: str = ""
    publication: str = ""  # "publié", "inédit"
    links: tuple[Link, ...] = ()  # to Légifrance, Judilibre


@displayed
class ToRead(NamedTuple):
    """A passage of a document near to what the text says; whether it bears it out is for the reader to judge."""

    char_start: int
    char_end: int
    text: str
    said_by: str = ""  # in French; empty: not known


@displayed
@dataclass(frozen=True)
class Reference:
    """What a text refers to, and what became of it."""

    kind: Kind
    start: int  # characters of `Verification.text`
    end: int
    place: str  # in French: "page 3", "note 12", "ligne 40"
    text: str  # as the text has it
    status: Status
    explanation: str  # a French sentence
    checked: tuple[What, ...] = ()  # what the text states of it and was compared
    corrections: tuple[Correction, ...] = ()  # of a wrong one
    source: CitedSource | None = None  # the document it was checked against
    char_start: int | None = None  # of the words quoted, in that document
    char_end: int | None = None
    around: tuple[str, str] = ("", "")  # the document's words before and after them
    said_by: str = ""  # who speaks there, in French
    nearest: tuple[Nearest, ...] = ()
    fate: tuple[Nearest, ...] = ()  # later decisions that quashed, confirmed, rectified or overruled it
    supports: str = ""  # the sentence of the text that it is given for
    to_read: tuple[ToRead, ...] = ()  # passages of the source nearest to that sentence, the likeliest first
    link: Link | None = None  # of a European text or case: its page on EUR-Lex or HUDOC

    @property
    def doc_id(self) -> str:
        """Id of the document it was checked against; empty: there is none."""
        return self.source.doc_id if self.source else ""

    @property
    def title(self) -> str:
        """Citation of the document it was checked against; empty: there is none."""
        return self.source.title if self.source else ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        value: dict[str, Any] = json_safe(self)
        return value


@dataclass(frozen=True, repr=False)
class Verification:
    """A text, and what became of all that it refers to."""

    text: str  # as it was read; offsets count its characters
    references: tuple[Reference, ...]  # in text order
    notices: tuple[str, ...] = ()  # French sentences: what a reader should know
    unread: tuple[str, ...] = ()  # French sentences: what was not read or not checked

    @property
    def complete(self) -> bool:
        """Whether all of the text was read and checked."""
        return not self.unread

    @property
    def counts(self) -> dict[Status, int]:
        """How many references have each status."""
        counts = Counter(reference.status for reference in self.references)
        return {status: counts[status] for status in STATUSES}

    def of_status(self, *statuses: Status) -> tuple[Reference, ...]:
        """Return the references that have one of the statuses."""
        return tuple(reference for reference in self.references if reference.status in statuses)

    @property
    def by_status(self) -> tuple[Reference, ...]:
        """The references in the order of `STATUSES`: wrong ones first."""
        return tuple(sorted(self.references, key=lambda reference: STATUSES.index(reference.status)))

    @property
    def wrong(self) -> tuple[Reference, ...]:
        """The references that are wrong."""
        return self.of_status("wrong")

    @property
    def status(self) -> int:
        """0: all is confirmed; 1: something is wrong or absent; 3: neither, but something is left to be read by hand."""
        if self.of_status("wrong", "absent"):
            return 1
        return 3 if self.unread or self.of_status("ambiguous", "out_of_scope", "unread") else 0

    def to_pandas(self) -> Any:
        """Return a data frame of the references; see `Rows.to_pandas`."""
        return Rows(self.references).to_pandas()

    def __repr__(self) -> str:
        counts = ", ".join(f"{status}: {n}" for status, n in self.counts.items() if n)
        return f"Verification({counts or 'no reference'}; complete={self.complete}, text={reprlib.repr(self.text)})"

    def _repr_html_(self) -> str:
        lines = [*self.unread, counted(self.references)]
        rows = [
            {"lieu": ref.place, "statut": IN_FRENCH[ref.status], "référence": ref.text, "explication": ref.explanation}
            for ref in self.by_status
            if ref.status != "confirmed"
        ]
        return "".join(f"<p>{escape(line)}</p>" for line in lines) + Rows(rows)._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, with the text that offsets count in."""
        rest = {"complete": self.complete, "notices": list(self.notices), "unread": list(self.unread)}
        references = [reference.to_json() for reference in self.references]
        return {"status": self.status, "counts": dict(self.counts), **rest, "references": references, "text": self.text}


def counted(references: Sequence[Reference]) -> str:
    """Say in French how many references have each status."""
    counts = Counter(reference.status for reference in references)
    several = {status: PLURALS.get(status, IN_FRENCH[status]) for status in STATUSES}
    named = ((n, (several if n > 1 else IN_FRENCH)[status]) for status in STATUSES if (n := counts[status]))
    return ", ".join(f"{n} {words}" for n, words in named)
