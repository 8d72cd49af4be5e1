"""Map: one part of a document at a time is read by a model, which answers with quotations; each is checked at once.

In: a question, a document, a window of it. Out: what the part brings, with quotations at their exact places.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from legal_rag.citation_checks import Citation
from legal_rag.claims import Quotation, is_evidence
from legal_rag.corpus import Document
from legal_rag.deep_read.models import SubCallError
from legal_rag.deep_read.plan.asked import AskedModel, Judged, is_too_long
from legal_rag.deep_read.plan.findings import Finding, Span
from legal_rag.deep_read.plan.prompts import map_prompt
from legal_rag.deep_read.plan.replies import MARKS, Reading, read_reply
from legal_rag.deep_read.plan.settings import PlanSettings
from legal_rag.deep_read.plan.windows import windows_of
from legal_rag.sentences import cut_at_blanks
from legal_rag.source_texts import SourceText
from legal_rag.tool_outputs import as_data

SHORTEST_WINDOW = 1500  # characters: what a model finds too long is not halved below
LONGEST_QUOTE = 2500  # characters; of a longer one the beginning is kept
SHOWN_INVENTED = 3  # quotations that a model is told of
NO_QUOTE = 'elle ne donne aucune citation : recopiez mot pour mot, dans "citations", la phrase du texte qui le prouve'
INVENTED = "aucune citation ne se trouve mot pour mot dans le texte : {}"
TOO_SHORT = "ses citations sont trop courtes pour prouver quoi que ce soit : recopiez la phrase entière"


class PartRead(NamedTuple):
    """What a part of a document brings."""

    findings: tuple[Finding, ...] = ()  # none if it is not pertinent; several if it had to be read in parts
    dropped: int = 0  # quotations that stand nowhere in the document, or prove nothing


class ReadableDocument:
    """A document that is read part by part, maybe by several threads."""

    def __init__(self, document: Document, settings: PlanSettings) -> None:
        """Take a document, and cut it."""
        self.document = document
        self.windows = windows_of(document.content, settings.window_chars, settings.overlap_chars)

    @cached_property
    def shown(self) -> SourceText:
        """The text as models are shown it, character by character: what they copy stands in this one."""
        return SourceText(self.document.id, as_data(self.document.content))


class PartReader:
    """Reads parts of documents for one question."""

    def __init__(self, question: str, model: AskedModel, settings: PlanSettings) -> None:
        """Take a question, and the model that is asked."""
        self._question, self._model, self._settings = question, model, settings

    def read(self, readable: ReadableDocument, window: Span) -> PartRead:
        """Read a part; one that is too long for the model, in halves.

        Raises:
            SubCallError: If the model fails, or its replies cannot be read.
            BudgetExceededError: If the budget has no room for a call.
        """
        prompt = map_prompt(self._question, readable.document, window)
        try:
            return self._model.ask(prompt, lambda reply: judge_reply(reply, readable, window))
        except SubCallError as error:
            half = -(-(window[1] - window[0]) * 5 // 8)  # two of these hold the whole, and what they share
            if not is_too_long(error) or half < SHORTEST_WINDOW:
                raise
        overlap = min(self._settings.overlap_chars, half // 4)
        parts = [self.read(readable, part) for part in windows_of(readable.document.content, half, overlap, window)]
        return PartRead(tuple(one for part in parts for one in part.findings), sum(part.dropped for part in parts))


def judge_reply(reply: str, readable: ReadableDocument, window: Span) -> Judged[PartRead]:
    """Read a reply and check its quotations; where none stands in the document, say so."""
    reading = read_reply(reply)
    if reading.problem:
        return Judged(None, reading.problem)
    if not reading.pertinent:
        return Judged(PartRead())
    citations = verified_quotes(reading.quotes, readable, window)
    held = tuple(dict.fromkeys(one for one in citations if one is not None))
    dropped = reading.left_out + sum(one is None for one in citations)
    finding = Finding(readable.document.id, window, reading.answer, held)
    return Judged(PartRead((finding,), dropped), "" if held else _problem(reading, readable))


def verified_quotes(quotes: Iterable[str], readable: ReadableDocument, window: Span) -> list[Citation | None]:
    """Return each quotation as the document has it, or None where it stands nowhere or proves nothing.

    Of several places one within the window is taken.
    """
    content = readable.document.content
    citations: list[Citation | None] = []
    for quote in quotes:
        spans = _spans(quote, readable.shown)
        inside = (span for span in spans if window[0] <= span[0] and span[1] <= window[1])
        span = next(inside, spans[0] if spans else (0, 0))
        start, end = next(cut_at_blanks(content, *span, LONGEST_QUOTE))
        text = content[start:end].rstrip()
        telling = is_evidence(Quotation(start, end, text))
        citations.append(
            Citation(readable.document.id, start, start + len(text), text, "verified") if telling else None
        )
    return citations


def _spans(quote: str, source: SourceText) -> Sequence[Span]:
    """Return where a quotation stands; marks around it may be the model's."""
    tries = (source.quotation_spans(one) for one in dict.fromkeys((quote.strip(), quote.strip(MARKS))) if one)
    return next(filter(None, tries), [])


def _problem(reading: Reading, readable: ReadableDocument) -> str:
    if not reading.quotes:
        return NO_QUOTE
    if any(_spans(quote, readable.shown) for quote in reading.quotes):
        return TOO_SHORT
    return INVENTED.format(", ".join(f"« {quote[:200]} »" for quote in reading.quotes[:SHOWN_INVENTED]))
