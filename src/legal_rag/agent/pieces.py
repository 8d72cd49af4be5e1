"""Numbered pieces of decisions shown to a model, and quotations written where its answer points at them.

A model that points at « [P3] » cannot misquote: the quotation and its offsets are taken from the decision. Whether a
piece says what the sentence beside it says is checked with all other citations, by `legal_rag.citations`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

from legal_rag.agent.replies import PIECE_NAME, piece_names
from legal_rag.base.text import Span, fold_text, one_line
from legal_rag.citations.markers import MarkedReference, format_marker
from legal_rag.corpus.documents import Document
from legal_rag.law.sentences import split_sentences, without_blanks
from legal_rag.library.bm25 import lexical_words

MAX_CITED = 200  # citations of an answer; a runaway model may write thousands
QUOTED_CHARS = 400  # of a piece beside a sentence: whole sentences, one at least
NAMED_SHARE = 0.3  # of a sentence's words that a piece may have less than another one, and still be its evidence
COPIED_WORDS = 5  # of a sentence that stands in a piece: a shorter one proves nothing by itself
QUOTES = ("«", "»", "“", "”", '"')
_POINTER = re.compile(  # no match begins within a run of blanks, so that long ones take linear time
    rf"(?<![ \u00a0])[ \u00a0]*[\[(]\s*(?:passages?\s+|source\s?:\s?)?"
    rf"({PIECE_NAME}(?:\s*(?:,|;|et|-|–)\s*{PIECE_NAME})*)\s*[\])]",
    re.IGNORECASE,
)
_FORGED = re.compile(r"\[(?=\s?P\s?\d)", re.IGNORECASE)  # in a decision, it would pass for a piece's name
_OPENING = re.compile(r"^\W*(?:\d{1,3}[.°]? +)?(?:considerant|attendu)?,? ?(?:qu['’e] ?)?")  # of a folded reason
_ANALYSIS = re.compile(r"\W*\[analy", re.IGNORECASE)
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


class ShownPiece(NamedTuple):
    """A span of a document that the model was shown."""

    doc_id: str
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]

    @property
    def marker(self) -> str:
        """The source marker of the whole piece."""
        return format_marker(self.doc_id, self.char_start, self.char_end)


class Pieces:
    """The pieces shown for one answer, named P1, P2… in the order in which they were shown."""

    def __init__(self) -> None:
        self._by_name: dict[str, ShownPiece] = {}
        self._names: dict[tuple[str, int, int], str] = {}
        self.quoted: dict[MarkedReference, str] = {}  # by the last `cite`, beside sentences in the model's own words

    @property
    def names(self) -> list[str]:
        """The names so far, in order."""
        return list(self._by_name)

    def show(self, document: Document, start: int, end: int, speaker: str = "") -> str:
        """Return a span as the model is to read it, on one line after its name; it keeps the name it has."""
        name = self._names.setdefault((document.id, start, end), f"P{len(self._names) + 1}")
        text = document.content[start:end]
        self._by_name[name] = ShownPiece(document.id, start, end, text)
        shown = without_names(" ".join(text.split()))
        return f"[{name}]{f' ({speaker})' if speaker else ''} {shown}"

    def is_shown(self, doc_id: str, start: int, end: int) -> bool:
        """Tell whether a piece shown before overlaps a span."""
        return any(
            piece.doc_id == doc_id and piece.char_start < end and start < piece.char_end
            for piece in self._by_name.values()
        )

    def first_of(self, doc_id: str) -> ShownPiece | None:
        """Return the first piece of a document that was shown; None without any."""
        return next((piece for piece in self._by_name.values() if piece.doc_id == doc_id), None)

    def cite(self, answer: str, evidence: Iterable[str] = ()) -> str:
        """Write quotations and source markers in an answer for its pointers « [P3] », also « (P1, P2) ».

        Where it has none, nor quotations, each sentence gets the piece of `evidence` (names) that has most of its
        words. A sentence that quotes gets the marker alone; one that is a piece's text itself is put between
        guillemets. Names of no piece become markers of no document, which the check removes and counts.
        """
        self.quoted = {}
        if not _POINTER.search(answer) and "[Source" not in answer and "«" not in answer:
            answer = self._point(answer, [name for name in evidence if name in self._by_name])
        written, done, claim, left = list[str](), 0, "", MAX_CITED
        for pointer in _POINTER.finditer(answer):
            names = piece_names(pointer[1])[:left]
            text, claim = self._cited(answer[done : pointer.start()], names, claim)
            written.append(text)
            done, left = pointer.end(), left - len(names)
        return "".join([*written, answer[done:]]).removeprefix(" ")

    def _cited(self, text: str, names: Iterable[str], claim: str) -> tuple[str, str]:
        """Add the citation of pieces after the last sentence of a text, before its full stop; return both.

        A text without any sentence stands between two pointers at the same `claim`.
        """
        body = text.rstrip().rstrip(".!?…").rstrip()
        stop = text[len(body) :]
        start = _last_sentence(body)
        claim = body[start:] or claim
        markers = []
        for name in names:
            piece = self._by_name.get(name)
            if piece is None:
                markers.append(f"[Source: {name}]")
            elif any(mark in claim for mark in QUOTES) or _ANALYSIS.match(claim):
                markers.append(piece.marker)
            elif _begins_sentence(claim, piece.text):
                claim = f"« {claim.strip()} »"
                body = body[:start] + claim
                markers.append(piece.marker)
            else:
                first, last = best_sentences(piece.text, claim)
                place = piece.char_start + first, piece.char_start + last
                self.quoted[MarkedReference(piece.doc_id, place)] = piece.text[first:last]
                markers.append(f"« {piece.text[first:last]} » {format_marker(piece.doc_id, *place)}")
        cited = " ".join(["", *markers])
        return (f"{body}{cited}{stop}" if body else f"{text}{cited}"), claim

    def _point(self, answer: str, evidence: Sequence[str]) -> str:
        """Point each sentence at the piece that has most of its words; one named as evidence before others."""
        if not evidence:
            return answer
        words = {name: frozenset(lexical_words(piece.text)) for name, piece in self._by_name.items()}
        pointed, done = "", 0
        for start, end in without_blanks(answer, split_sentences(answer)):
            sentence = answer[start:end]
            claimed = frozenset(lexical_words(sentence))
            if claimed and not _ANALYSIS.match(sentence) and not any(mark in sentence for mark in QUOTES):
                shares = {name: len(claimed & words[name]) / len(claimed) for name in words}
                name = max(shares, key=lambda name: shares[name] + NAMED_SHARE * (name in evidence))
                pointed, done = f"{pointed}{answer[done:end]} [{name}]", end
        return pointed + answer[done:]


def without_names(text: str) -> str:
    """Return a document's text without what reads like the name of a piece."""
    return _FORGED.sub("⟦", text)


def _begins_sentence(claim: str, text: str) -> bool:
    """Tell whether a claim is the text of a sentence of a piece, or its beginning: what stands before may turn it."""
    copied = fold_text(one_line(claim))
    sentences = (_OPENING.sub("", fold_text(one_line(text[start:end]))) for start, end in split_sentences(text))
    return len(claim.split()) >= COPIED_WORDS and any(map(str.startswith, sentences, repeat(_OPENING.sub("", copied))))


def best_sentences(text: str, claim: str) -> Span:
    """Return the span of the whole sentences of a text, of `QUOTED_CHARS` or one, that have most words of a claim."""
    if len(text) <= QUOTED_CHARS:
        return 0, len(text)
    claimed, spans = frozenset(lexical_words(claim)), without_blanks(text, split_sentences(text))
    shared = [claimed.intersection(lexical_words(text[start:end])) for start, end in spans]

    def worth(run: Span) -> tuple[int, int]:
        return len(frozenset().union(*shared[slice(*run)])), spans[run[0]][0] - spans[run[1] - 1][1]

    first, after = max(_runs(spans), key=worth)
    return spans[first][0], spans[after - 1][1]


def _runs(sentences: Sequence[Span]) -> Iterator[Span]:
    """Yield each sentence, and each run of them that is short enough to be quoted, by numbers."""
    for first, (start, _) in enumerate(sentences):
        yield first, first + 1
        for after in range(first + 2, len(sentences) + 1):
            if sentences[after - 1][1] - start > QUOTED_CHARS:
                break
            yield first, after


def _last_sentence(text: str) -> int:
    """Return where the last sentence of a text begins, after the mark of a list."""
    spans = without_blanks(text, split_sentences(text))
    start, end = spans[-1] if spans else (len(text), len(text))
    mark = _LIST_MARK.match(text[start:end])
    return start + (mark.end() if mark else 0)
