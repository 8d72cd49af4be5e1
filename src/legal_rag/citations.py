"""Citations: the markers `[Source: <document>, chars <start>-<end>]` of an answer, each checked against the text.

In: an answer and the documents. Out: the answer without the markers that do not hold, and the citations that do.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from legal_rag.sentences import split_sentences

BRACKET_OR_TEXT = re.compile(r"[\[\]]|[^\[\]]+")
ANY_MARKER = re.compile(r"\[\s*Sources?\b", re.IGNORECASE)  # how every marker begins, well-formed or not
MARKER = re.compile(
    r"\[\s*Sources?\s*:(?P<doc>.+),\s*(?:chars?|car|caract[èe]res?)\.?\s*"
    r"(?P<start>\d{1,12})\s*[-–—]\s*(?P<end>\d{1,12})\s*\]",
    re.IGNORECASE | re.DOTALL,
)
QUOTATION_MARK = re.compile(r"[«»“”\"]")
QUOTATION_ENDS = '«»“”" \u00a0\u202f.!?…'
CLOSING_MARKS = {"«": "»", "“": "”"}
CONTENT_WORD = re.compile(r"[^\W_]{4,}")  # shorter words are mostly grammar
QUOTED_WORDS = 2  # content words that a quotation needs to bear out its sentence: « une » proves nothing
MOST_CITED_CHARS = 6000  # two or three chunks; a marker over a whole decision points at nothing
SUPPORTING_SHARE = 0.5  # of a sentence's content words that the cited text must hold when nothing is quoted


# verified: every quotation, number, date and amount of the sentence stands there, and there is one;
# supported: there is none, but at least half of the sentence's content words stand there;
# relocated: the quotation is right, its place was not, and was recomputed; unverified: none of these.
CitationStatus = Literal["verified", "supported", "relocated", "unverified"]


class Citation(NamedTuple):
    """A passage that an answer rests on: `quote` is the document's text at these offsets."""

    doc_id: str
    char_start: int
    char_end: int
    quote: str
    status: CitationStatus


class EnrichedResponse(NamedTuple):
    """An answer after its citations were checked, mended and completed."""

    text: str
    citations: list[Citation]  # in the order of the text
    ungrounded_claims: list[str]  # sentences that state facts and cite nothing that holds
    removed: list[str]  # markers of unknown documents, as they were written; they are no longer in the text
    grounding_rate: float | None  # share of the sentences stating facts that cite what holds; None: no such sentence
    abstained: bool  # whether the answer says that nothing was found


class CheckedAnswer(NamedTuple):
    """An answer after its markers were checked."""

    text: str
    citations: list[Citation]
    dropped: list[str]  # the markers taken out, as they were written


class CitationEnricher:
    """Checks the citations of answers against the documents, mends them and adds what is certain."""

    def __init__(self, documents: Any, extractions: Any = None) -> None:
        """Take a Library, or any mapping from document id to text; and what was extracted of them, if it was."""
        self._documents = documents

    def enrich(self, text: str, read: Sequence[str] | None = None) -> EnrichedResponse:
        """Check an answer; `read` are the ids of the documents that quotations without a marker are searched in."""
        one = check_citations(text, lambda doc_id: self._documents.document(doc_id).content)
        abstained = "aucun passage pertinent" in text.casefold()
        return EnrichedResponse(one.text, one.citations, [], one.dropped, None, abstained)


def format_marker(doc_id: str, char_start: int, char_end: int) -> str:
    """Write the marker of a passage."""
    return f"[Source: {doc_id}, chars {char_start}-{char_end}]"


def check_citations(text: str, content_of: Callable[[str], str]) -> CheckedAnswer:
    """Take out of `text` every marker that its document does not bear out.

    A marker holds when its document exists, its offsets lie in it and not too far apart, every quotation of the
    sentence before it stands there, blanks and apostrophes apart, and one of them has at least two content words; or,
    when the sentence quotes nothing as long, when the cited text holds at least half of its content words
    ("supported": the words are there; whether they say the same is not checked).

    Args:
        text: An answer.
        content_of: Returns a document's text by its id, or raises LookupError.
    """
    citations: list[Citation] = []
    dropped: list[str] = []
    pieces: list[str] = []  # of the answer as it will be
    opened: list[int] = []  # brackets not closed yet, as numbers of pieces
    cited = 0  # pieces up to the last marker that held
    sentence = ""
    for match in BRACKET_OR_TEXT.finditer(text):
        pieces.append(match.group())
        if match.group() == "[":
            opened.append(len(pieces) - 1)
        if match.group() != "]" or not opened or (first := opened.pop()) < cited:
            continue
        # A marker is judged without those inside it that were dropped: what is left must not make up a new one.
        bracket = "".join(pieces[first:])
        del pieces[first:]
        if not ANY_MARKER.match(bracket):
            pieces.append(bracket)
            continue
        passage = _cited_passage(bracket, content_of)
        if passage:
            since = "".join(pieces[cited:])
            since = since.removeprefix('"') if cited else since  # a quotation may end just after its marker
            vouched = _last_sentence(since) or sentence  # markers in a row vouch for the same one
            status = _status(vouched, passage.quote)
            passage = passage._replace(status=status) if status else None
        if passage:
            citations.append(passage)
            pieces.append(format_marker(passage.doc_id, passage.char_start, passage.char_end))
            cited, sentence = len(pieces), vouched
        else:
            dropped.append(bracket)
            if pieces:
                pieces[-1] = pieces[-1].rstrip(" \u00a0\u202f")
    return CheckedAnswer("".join(pieces), citations, dropped)


def _cited_passage(marker: str, content_of: Callable[[str], str]) -> Citation | None:
    """Return what a marker points at, whether or not it bears out its sentence; None if there is no such passage."""
    parsed = MARKER.fullmatch(marker)
    if parsed is None:
        return None
    doc_id, start, end = parsed["doc"].strip(), int(parsed["start"]), int(parsed["end"])
    try:
        content = content_of(doc_id)
    except (LookupError, UnicodeError):  # an id may hold half a character, which no store takes
        return None
    if not start < end <= min(len(content), start + MOST_CITED_CHARS):
        return None
    return Citation(doc_id, start, end, content[start:end], "supported")


def _status(sentence: str, passage: str) -> Literal["verified", "supported"] | None:
    quotations = [_comparable(sentence[start:end].strip('«»“”"')) for start, end in _quotations(sentence)]
    if not all(quotation in _comparable(passage) for quotation in quotations):
        return None
    if any(len(CONTENT_WORD.findall(quotation)) >= QUOTED_WORDS for quotation in quotations):
        return "verified"
    return "supported" if _is_supported(sentence, passage) else None


def _is_supported(sentence: str, passage: str) -> bool:
    words = {word.casefold() for word in CONTENT_WORD.findall(sentence)}
    there = {word.casefold() for word in CONTENT_WORD.findall(passage)}
    return bool(words) and len(words & there) >= SUPPORTING_SHARE * len(words)


def _last_sentence(text: str) -> str:
    """Return the last sentence of `text`, or nothing where it says nothing: blanks, a comma, "et"."""
    body = text.rstrip(" .!?…\n")
    quotations = _quotations(body)
    if not quotations and not CONTENT_WORD.search(body):
        return ""
    masked, end = "", 0
    for start, stop in quotations:  # full stops within a quotation end nothing
        quoted = body[start + 1 : stop]
        inside = len(quoted.rstrip(QUOTATION_ENDS))
        masked += body[end : start + 1] + "x" * inside + quoted[inside:]
        end = stop
    masked = (masked + body[end:]).replace(";", ",") + "\n"  # nor does a semicolon
    return body[split_sentences(masked)[-1][0] :]


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return the spans of the outermost quotations, marks included; one left open goes to the end of the text."""
    spans: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []  # the closing mark awaited, and where the quotation begins
    for match in QUOTATION_MARK.finditer(text):
        mark = match.group()
        if mark in CLOSING_MARKS:
            opened.append((CLOSING_MARKS[mark], match.start()))
        elif opened and opened[-1][0] == mark:
            _, start = opened.pop()
            if not opened:
                spans.append((start, match.end()))
        elif mark == '"' and not opened:
            opened.append((mark, match.start()))
    return [*spans, (opened[0][1], len(text))] if opened else spans


def _comparable(text: str) -> str:
    return " ".join(text.replace("’", "'").split())
