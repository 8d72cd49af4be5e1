"""Source markers in an answer: every spelling, parsed, written and removed."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from legal_rag.base.text import Span, fold_text, normalized
from legal_rag.citations.plain import legible, read_plain, without_hidden
from legal_rag.citations.sources import SourceTexts
from legal_rag.corpus.chunking import parse_chunk_id

_WORD = r"(?:chars?|characters?|car|caract[èe]res?|offsets?|positions?|pos)"
_PLACE = (
    rf"(?:{_WORD}\b\.?\s*[=:]?\s*)?\[?(?P<start>\d{{1,12}})\s*(?:[-–—−‐‑﹣~→:]|à|a|to|\.\.)\s*(?P<end>\d{{1,12}})\]?"
)
# What ends a reference: one place, or more of them. Only after a comma or a blank, and only the last in its text.
PLACE_AT_END = re.compile(rf"(?:^|[,;:\s(])\s*{_PLACE}\s*\)?$", re.IGNORECASE)
_HEAD = r"[*_]{0,2}(?:(?:cf\.?|voir|v\.|réf\.?|d['’]après)\s{1,3})?(?:Sources?\b|réf\.?(?=\s?:))[*_]{0,2}"
_UNVERIFIED = r"(?:\s+non\s+(?:v[ée]rifi|confirm)[ée]e?s?)?"
HEAD = re.compile(rf"^\s*{_HEAD}{_UNVERIFIED}\s*(?:[:=]|[–-](?=\s))?\s*", re.IGNORECASE)
NAMED_PLACE = re.compile(rf"(?:^|[,;\s])\s*{_WORD}\b\.?\s*[=:]?\s*\d{{1,12}}\s*[-–—−]\s*\d{{1,12}}\s*$", re.IGNORECASE)
# Markers in other brackets, escaped, encoded or never closed; the marker itself has no brackets.
_OPEN = r"(?:\\\[|[(\[（［【〔{⟦<]|&(?:#91|lbrack|lsqb);)"
_INSIDE = r"[^()\[\]（）［］【】〔〕{}⟦⟧<>\n\\&]"
_MARKED = rf"(?P<head>\s{{0,3}}{_HEAD}{_UNVERIFIED}\s{{0,3}}(?:[:=]|[–-](?=\s))){_INSIDE}"
ODD_MARKER = re.compile(
    rf"{_OPEN}(?P<inside>{_MARKED}{{1,300}}?)"
    r"(?P<close>\\?\]|[)）］】〕}⟧>]|&(?:#93|rbrack|rsqb);|(?<=\d)(?=[ .;,]{0,3}(?:\n|\Z|\[)))",
    re.IGNORECASE,
)
_ODD_OPENING = re.compile(rf"{_OPEN}(?={_MARKED}{{0,300}}\Z)", re.IGNORECASE)
_SEPARATOR = re.compile(r"[;|\n]|\b(?:et|and)\b|,(?=\s*Sources?\b)", re.IGNORECASE)  # of references in one marker
BRACKET_OR_TEXT = re.compile(r"[\[\]]|[^\[\]]+")
HEAD_CHARS = 60  # at either end of a bracket, enough to recognise a marker
MOST_PLACES = 20  # in one reference
# The marker of a receipt, "[Calcul : r3]" or "[Calcul : r3 = 60]", on the skeleton of a text, where lookalikes are equal.
_GAP = r"[^\w\[\]]{0,300}"
_RECEIPT = re.compile(
    rf"\[{_GAP}ca[li1|]cu[li1|]s?{_GAP}(?:recu{_GAP})?r?{_GAP}(?P<n>[0-9li|o]{{1,9}})"
    rf"(?P<more>(?:{_GAP}(?:et{_GAP})?r{_GAP}[0-9li|o]{{1,9}}){{0,20}}){_GAP}(?:=[^\[\]]{{0,200}})?\]"
)
NO_SUCH_SOURCE = "[source inexistante retirée]"  # in place of a marker of an unknown document
NOT_A_RECEIPT = "[calcul non vérifié]"
_RECEIPT_WRITTEN = re.compile(r"\s?\[Calcul : r\d+ = [^\[\]]*\]|\s?\[calcul non vérifié\]")
BEFORE_CHARS = 500  # of a text before a marker
_BLANK_RUN = re.compile(r"\s+")
MOST_PIECES = 40  # in one marker: an id may hold brackets, but not so many
LONGEST_MARKER = 2000  # characters; longer ones refer to nothing
BLANKS = " \u00a0\u202f"


class MarkedReference(NamedTuple):
    """What a marker points to: a document, and a place in it where one is given; neither is checked."""

    doc_id: str
    place: Span | None


class Marker(NamedTuple):
    """A marker taken out of a text."""

    offset: int  # in the text without markers
    references: list[MarkedReference]


class MarkedText(NamedTuple):
    """A text without its markers, and the markers."""

    plain: str
    markers: list[Marker]  # in order
    removed: list[str]  # markers of unknown documents, as they were written
    removed_at: list[int]  # their offsets in `plain`, and those of `NO_SUCH_SOURCE`


def format_marker(doc_id: str, char_start: int, char_end: int, *, verified: bool = True) -> str:
    """Write the marker of a passage; `verified` is false if it does not support its sentence."""
    head = "Source" if verified else "Source non vérifiée"
    place = f", chars {char_start}-{char_end}" if verified or char_end > char_start else ""
    return f"[{head}: {doc_id}{place}]"


def take_out_markers(text: str, resolve: Callable[[str], str | None]) -> MarkedText:
    """Take the markers out of an answer; `resolve` returns the id of the document that a name refers to, or None."""
    reader = _MarkerReader(resolve)
    text = without_hidden(text)
    for match in BRACKET_OR_TEXT.finditer(_normalise_brackets(text)):
        reader.take(match.group())
    return reader.marked_text()


class _MarkerReader:
    """Parses brackets; classifies each when it closes, the inner ones before the outer."""

    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        self._resolve = resolve
        self._pieces: list[str | list[MarkedReference] | None] = []  # None: a marker was removed here
        self._opened: list[int] = []  # brackets not closed yet, as numbers of pieces
        self._removed: list[str] = []

    def take(self, piece: str) -> None:
        self._pieces.append(piece)
        if piece == "[":
            self._opened.append(len(self._pieces) - 1)
        elif piece == "]" and self._opened:
            self._close_bracket(self._opened.pop())

    def _close_bracket(self, first: int) -> None:
        inside = self._pieces[first + 1 : -1] if len(self._pieces) - first <= MOST_PIECES else None
        if inside is None or any(isinstance(piece, list) for piece in inside):
            return
        written = _BLANK_RUN.sub(" ", "".join(piece for piece in inside if isinstance(piece, str)))
        if not _is_marker(written):
            return
        # What is left around removed markers is not a marker.
        unreadable = None in inside or len(written) > LONGEST_MARKER
        references, unknown = ([], []) if unreadable else _parse_references(written, self._resolve)
        if not references and not HEAD.match(written):
            return
        del self._pieces[first:]
        if references:
            self._pieces += [references, None] if unknown else [references]
            self._removed += [f"[Source: {name}]" for name in unknown]
            return
        if f"[{written}]" != NO_SUCH_SOURCE:
            self._removed.append(f"[{written}]")
        if self._pieces and isinstance(last := self._pieces[-1], str) and last not in "[]":
            self._pieces[-1] = _ODD_OPENING.sub("", last.rstrip(BLANKS))
        self._pieces.append(None)

    def marked_text(self) -> MarkedText:
        plain, markers, removed_at, length = [], [], [], 0
        left = next((at for at in reversed(range(len(self._pieces))) if self._pieces[at] is None), 0)
        # Without what was removed in it, a marker that is not closed could be completed: its brackets go too.
        dropped: set[int] = set()
        for at in reversed(self._opened):
            if at < left and (at + 1 in dropped or HEAD.match(self._following(at))):
                dropped.add(at)
        for number, piece in enumerate(self._pieces):
            if piece is None:
                removed_at.append(length)
            elif not isinstance(piece, str):
                markers.append(Marker(length, piece))
            elif number not in dropped:
                plain.append(piece)
                length += len(piece)
        return MarkedText("".join(plain), markers, self._removed, removed_at)

    def _following(self, number: int) -> str:
        return next((piece for piece in self._pieces[number + 1 : number + 3] if isinstance(piece, str)), "")


def _normalise_brackets(text: str) -> str:
    """Rewrite markers in other brackets or look-alike letters with square brackets."""
    pieces, done = [], 0
    for match in ODD_MARKER.finditer(legible(text)):
        if not match["close"] and not NAMED_PLACE.search(match["inside"][-HEAD_CHARS:]):
            continue
        inside = match["head"] + text[match.end("head") : match.end("inside")]
        pieces += [text[done : match.start()], f"[{inside}]"]
        done = match.end()
    return "".join([*pieces, text[done:]])


def _is_marker(inside: str) -> bool:
    """Does bracketed text begin as a marker does, or end in a place that is named as one?"""
    return bool(HEAD.match(inside[:HEAD_CHARS]) or NAMED_PLACE.search(inside[-HEAD_CHARS:]))


def _parse_references(inside: str, resolve: Callable[[str], str | None]) -> tuple[list[MarkedReference], list[str]]:
    """Return a marker's references and its unknown parts; longest names first, since an id may hold any sign."""
    head = HEAD.match(inside)
    body = inside[head.end() :] if head else inside
    if whole := list(_parse_reference(body, resolve)):
        return whole, []
    references: list[MarkedReference] = []
    unknown: list[str] = []
    for part in (HEAD.sub("", part, count=1).strip(" ,") for part in _SEPARATOR.split(body)):
        place = PLACE_AT_END.fullmatch(part)
        if parsed := list(_parse_reference(part, resolve)):
            references += parsed
        elif place and references:
            last = references[-1] if references[-1].place else references.pop()
            references.append(MarkedReference(last.doc_id, _parse_place(place)))
        elif part:
            unknown.append(part)
    return references, unknown


def _parse_reference(text: str, resolve: Callable[[str], str | None]) -> Iterator[MarkedReference]:
    """Yield the document with each of the places that a reference names; nothing if it is unknown."""
    rest, places = text.strip(), list[Span]()
    while rest and len(places) <= MOST_PLACES:
        if doc_id := resolve(_normalise_name(rest)):
            yield from [MarkedReference(doc_id, place) for place in reversed(places)] or [MarkedReference(doc_id, None)]
            return
        place = PLACE_AT_END.search(rest)
        if place is None:
            return
        places.append(_parse_place(place))
        rest = rest[: place.start()].rstrip(" ,;:(=")


def _parse_place(match: re.Match[str]) -> Span:
    return int(match["start"]), int(match["end"])


def _normalise_name(text: str) -> str:
    return " ".join(text.strip(" ,:;").split())


_LEAD = re.compile(r"^(?:documents?|décision|arrêt|doc(?:_id)?|id)\s*[:=]?\s+", re.IGNORECASE)
SHORTEST_TITLE = 10  # characters of a title that may identify a document


class DocumentNames:
    """Resolves the names that models write: ids, chunk ids, titles of documents that were read."""

    def __init__(self, sources: SourceTexts, read: Sequence[str]) -> None:
        """Take the documents, and the ids of those whose titles are known as names."""
        self._sources, self._read_ids = sources, read

    def document(self, name: str) -> str | None:
        """Return the id of the document that a name refers to, or None."""
        bare = name.strip(" «»“”\"'*`<>()")
        try:
            doc_id, _ = parse_chunk_id(bare)
        except ValueError:
            doc_id = ""
        known = (candidate for candidate in (name, bare, doc_id) if candidate and self._sources.get(candidate))
        return next(known, None) or self._ids_by_title.get(fold_text(_LEAD.sub("", bare)))

    @cached_property
    def _ids_by_title(self) -> Mapping[str, str | None]:
        """The ids of the documents read by their folded titles; None for a title that two of them have."""
        titles: dict[str, str | None] = {}
        for source in filter(None, map(self._sources.get, self._read_ids)):
            titles.setdefault(fold_text(source.doc_id), source.doc_id)
            if len(source.title) >= SHORTEST_TITLE:
                title = fold_text(source.title)
                titles[title] = source.doc_id if title not in titles else None
        return titles


@lru_cache(4096)
def _skeleton(character: str) -> str:
    """Return a character as a small letter without accents, or a square bracket."""
    base = normalized(legible(character), "NFKD")[0].lower()[0]
    kind = unicodedata.category(base)
    return "[" if kind == "Ps" and base != "(" else "]" if kind == "Pe" and base != ")" else base


def without_markers(text: str) -> str:
    """Return a text without its source markers, whatever they name."""
    return take_out_markers(text, lambda name: None).plain


def without_receipts(text: str) -> str:
    """Return a text without markers of receipts, right or wrong."""
    return _RECEIPT_WRITTEN.sub("", check_receipts(text, lambda before, name: ""))


def n_receipts(text: str) -> int:
    """Count the confirmed markers of receipts in a text that `check_receipts` wrote; 0 where one is not confirmed."""
    return 0 if NOT_A_RECEIPT in text else len(_RECEIPT_WRITTEN.findall(text))


def check_receipts(text: str, bears_out: Callable[[str, str], str | None] = lambda before, name: None) -> str:
    """Write confirmed markers of receipts with the receipt's value, `[Calcul : r3 = 60]`, and mark the others.

    `bears_out` returns the value of the receipt named ("r3") if the text before its marker ends in it, else None.
    """
    plain, pieces, done = read_plain(text), [], 0
    for match in _RECEIPT.finditer("".join(map(_skeleton, plain.text))):
        start, end = plain.starts[match.start()], plain.written(match.end())
        before = plain.text[max(0, match.start() - BEFORE_CHARS) : match.start()]
        is_one = match["n"].isdecimal() and not match["more"]
        value = bears_out(before, f"r{int(match['n'])}") if is_one else None
        pieces += [text[done:start], NOT_A_RECEIPT if value is None else f"[Calcul : r{int(match['n'])} = {value}]"]
        done = end
    return "".join([*pieces, text[done:]])
