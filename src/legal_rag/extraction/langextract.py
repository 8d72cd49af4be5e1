"""Ask language models for the entities of documents, in LangExtract's pieces and with its prompts, and ground them."""

import contextvars
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from legal_rag.base.text import Folded, Span, find_exact, find_folded, fold, fold_text, is_whole
from legal_rag.extraction.class_tests import ClassTests
from legal_rag.extraction.entities import Alignment, Entity, ExtractionResult, in_order
from legal_rag.extraction.schemas import KEY_VARIABLE, ExtractionSettings, Schema
from legal_rag.law.sentences import split_sentences
from legal_rag.llm import HOPELESS, ROUTER, ModelError, Throttle, ask, endpoint_of, is_reasoning, json_in

SMALLEST_PIECE = 200  # characters; pieces shorter than twice that are not halved
TRIES = 2  # per piece with unreadable replies
MAX_FAILURES = 5  # pieces in a row without a reply
LATER_TEMPERATURE = 0.7  # of the passes after the first: at 0 they would repeat it
REPLY_TOKENS = 3000  # of a piece's entities: some five times what the piece itself has
JSON_MODE = {"response_format": {"type": "json_object"}}
EXTRACTIONS, ATTRIBUTES = "extractions", "_attributes"  # LangExtract's own keys
SYSTEM = "You are a helpful assistant that responds in JSON format."

# Returns the reply to a prompt and a try, from 0; raises LostPieceError without a reply, TooLongError if the prompt is
# too long for the model. Other errors end the extraction.
AskPiece = Callable[[str, int], str]


class Extraction(NamedTuple):
    """What a model says it found in a piece."""

    extraction_class: str
    text: str
    attributes: dict[str, str]


class UnreadableExtractionError(ValueError):
    """A reply that is not LangExtract's JSON, for example because it was cut off."""


class LostPieceError(Exception):
    """A piece has no reply."""


class TooLongError(Exception):
    """A piece is too long for the model."""


class ModelPieces:
    """A model, asked about pieces of any number of documents at once; ValueError if unknown or without a key."""

    def __init__(self, settings: ExtractionSettings, *, cache: bool = True) -> None:
        name, key = settings.model_id, settings.api_key or os.environ.get(KEY_VARIABLE) or None
        extra = {**JSON_MODE, **settings.model_options}
        how = {"temperature": None if is_reasoning(name) else 0.0, "cache": cache, "extra": extra}
        endpoint = endpoint_of(name, key, settings.api_base, timeout=settings.timeout, **how)
        if endpoint is None or (endpoint.api_base == ROUTER and "/" not in name):
            raise ValueError(f"no model {name!r} (expected Gemini's, OpenAI's, 'ollama/…', or an api_base as well)")
        if endpoint.key_variable:
            raise ValueError(f"no key for {name!r} (expected it in {KEY_VARIABLE})")
        self._endpoint, self._throttle = endpoint, Throttle(at_once=settings.max_workers, most_failures=MAX_FAILURES)

    def asking(self, number: int) -> AskPiece:
        """Return the function that asks in pass `number`, from 0; it raises ValueError or ConnectionError to stop."""
        is_warm = number > 0 and self._endpoint.temperature is not None
        endpoint = replace(self._endpoint, temperature=LATER_TEMPERATURE) if is_warm else self._endpoint

        def asked(prompt: str, attempt: int) -> str:
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
            how: dict[str, Any] = {"attempt": attempt + number * TRIES, "reply_tokens": REPLY_TOKENS}
            try:
                return ask(endpoint, messages, throttle=self._throttle, keeps=_is_readable, **how).text
            except ModelError as error:
                if isinstance(stopped := self._throttle.error, ModelError):
                    kind = ValueError if stopped.kind in {*HOPELESS, "request"} else ConnectionError
                    raise kind(f"the model cannot be asked: {stopped}") from None
                raise TooLongError if error.kind == "context" else LostPieceError from error

        return asked


def extract_with_langextract(
    text: str, doc_name: str, schema: Schema, asking: Callable[[int], AskPiece], settings: ExtractionSettings
) -> ExtractionResult:
    """Extract the entities of one document; `asking` returns the function that asks in a pass, from 0."""
    reader = _DocumentReader(text, schema, settings)
    kept: list[Entity] = []
    grounded = Grounded(text, schema)
    for number in range(settings.passes):
        earlier = len(grounded.entities)
        for span, extractions in zip(reader.spans, reader.read(asking(number)), strict=True):
            grounded.add(extractions, Piece(text, *span))
        new = grounded.entities[earlier:]
        kept += [entity for entity in new if not _overlaps_any(entity, kept)] if number else new
    return ExtractionResult(
        doc_name=doc_name,
        extractions=in_order(kept),
        schema_name=schema.name,
        model_id=settings.model_id,
        chunks=len(reader.spans),
        dropped_chunks=len(reader.dropped),
        ungrounded=grounded.ungrounded,
        echoed=grounded.echoed,
        wrong_class=grounded.wrong_class,
    )


class _DocumentReader:
    """Asks about the pieces of one document, several at once; a piece without a readable reply is halved."""

    def __init__(self, text: str, schema: Schema, settings: ExtractionSettings) -> None:
        from langextract.chunking import ChunkIterator
        from langextract.core.data import FormatType
        from langextract.core.format_handler import FormatHandler
        from langextract.core.tokenizer import RegexTokenizer
        from langextract.prompting import PromptTemplateStructured, QAPromptGenerator

        chunks = (chunk.char_interval for chunk in ChunkIterator(text, settings.max_char_buffer, RegexTokenizer()))
        self.spans = [(chunk.start_pos or 0, chunk.end_pos or 0) for chunk in chunks]  # of the pieces
        self.dropped: set[int] = set()  # numbers of the pieces without a usable reply, in whole or part
        handler = FormatHandler(format_type=FormatType.JSON, use_wrapper=True, use_fences=False)
        template = PromptTemplateStructured(schema.prompt, schema.lx_examples())
        self._prompt_of = QAPromptGenerator(template, handler).render
        self._text, self._workers = text, settings.max_workers
        self._is_cancelled = threading.Event()

    def read(self, asking: AskPiece) -> list[list[Extraction]]:
        pieces = [self._text[slice(*span)] for span in self.spans]
        # The contexts carry the deadline.
        tasks = [(contextvars.copy_context(), number, piece) for number, piece in enumerate(pieces)]
        with ThreadPoolExecutor(max(min(self._workers, len(tasks)), 1)) as pool:
            try:
                return list(pool.map(lambda task: task[0].run(self._read_piece, asking, *task[1:]), tasks))
            except BaseException:  # also an interruption
                self._is_cancelled.set()
                raise

    def _read_piece(self, asking: AskPiece, number: int, piece: str) -> list[Extraction]:
        if not piece.strip():
            return []
        for attempt in range(TRIES):
            if self._is_cancelled.is_set():
                return []
            try:
                return extractions_of(asking(self._prompt_of(piece), attempt))
            except LostPieceError:
                self.dropped.add(number)
                return []
            except TooLongError:
                break
            except UnreadableExtractionError:
                continue
        halves = _halves(piece)
        if halves is None:
            self.dropped.add(number)
            return []
        return [extraction for half in halves for extraction in self._read_piece(asking, number, half)]


def _is_readable(reply: str) -> bool:
    try:
        extractions_of(reply)
    except UnreadableExtractionError:
        return False
    return True


def _overlaps_any(entity: Entity, others: list[Entity]) -> bool:
    return any(
        entity["extraction_class"] == other["extraction_class"]
        and entity["char_start"] < other["char_end"]
        and other["char_start"] < entity["char_end"]
        for other in others
    )


def _halves(piece: str) -> tuple[str, str] | None:
    """Split a piece at the sentence or line nearest its middle; None if it is too short."""
    if len(piece) < 2 * SMALLEST_PIECE:
        return None
    middle = len(piece) // 2
    starts = (start for start, _ in split_sentences(piece) if start)
    cut = min(starts, key=lambda start: abs(start - middle), default=middle)
    return piece[:cut], piece[cut:]


class Piece:
    """A part of a document that a model read in one prompt."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.text = start, text[start:end]
        self.end = 0  # of the last extraction located in it
        self.taken: defaultdict[str, set[Span]] = defaultdict(set)  # spans already grounded, by class

    @cached_property
    def folded(self) -> Folded:
        """The part's text, folded."""
        return fold(self.text)

    def locate(self, extraction: Extraction) -> tuple[int, int, Alignment] | None:
        """Return the offsets of an extraction in the piece, and how it was found."""
        passage = extraction.text.strip()
        if span := self._free_span(extraction.extraction_class, find_exact(passage, self.text)):
            return (*span, "exact")
        if span := self._free_span(extraction.extraction_class, find_folded(passage, self.folded)):
            return (*span, "folded")
        return None

    def _free_span(self, extraction_class: str, spans: Sequence[Span]) -> Span | None:
        """Take the first free occurrence behind the extraction before it, as replies follow the text; else any."""
        taken = self.taken[extraction_class]
        free = [span for span in spans if span not in taken and is_whole(self.text, span)]
        if not free:
            return None
        span = next((span for span in free if span[0] >= self.end), free[0])
        taken.add(span)
        self.end = span[1]
        return span


class Grounded:
    """The grounded entities of a document, and how many extractions were dropped."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.entities: list[Entity] = []
        self.ungrounded = 0  # not found in its piece
        self.echoed = 0  # copied from the prompt's examples
        self.wrong_class = 0  # not a class of the schema, or a passage that cannot be of its class
        self._schema, self._tests = schema, ClassTests(text, schema)
        shown = (item for example in schema.examples for item in example.extractions)
        self._examples = {fold_text(item.extraction_text) for item in shown}

    def add(self, extractions: Iterable[Extraction], piece: Piece) -> None:
        """Find the exact offsets of each extraction of a piece, in the order of the reply, or drop it.

        A text that does not occur verbatim is searched folded: case, apostrophes, ligatures, accents, blanks, line
        breaks.
        """
        for extraction in extractions:
            name = extraction.extraction_class
            if name not in self._schema.classes:
                self.wrong_class += 1
            elif located := piece.locate(extraction):
                start, end, alignment = located
                span = piece.start + start, piece.start + end
                if self._tests.refuses(name, span):
                    self.wrong_class += 1
                    continue
                entity = Entity(
                    extraction_class=name,
                    extraction_text=piece.text[start:end],
                    char_start=span[0],
                    char_end=span[1],
                    attributes=self._tests.attributes(name, span, extraction.attributes),
                    alignment=alignment,
                )
                self.entities.append(entity)
            elif fold_text(extraction.text).strip() in self._examples:
                self.echoed += 1
            else:
                self.ungrounded += 1


def extractions_of(reply: str) -> list[Extraction]:
    """Parse the well-formed items `{class: text, class_attributes: {…}}` of a reply; or UnreadableExtractionError."""
    value = json_in(reply, repair=False)
    if isinstance(value, dict):
        value = value.get(EXTRACTIONS)
    if not isinstance(value, list):
        raise UnreadableExtractionError(f"no list of {EXTRACTIONS!r} in the reply")
    return [extraction for item in value if isinstance(item, dict) for extraction in _extractions_in(item)]


def _extractions_in(item: dict[str, Any]) -> Iterator[Extraction]:
    if isinstance(item.get("extraction_class"), str):  # LangExtract's own field names, which models copy
        name, attributes = item["extraction_class"], item.get("attributes")
        item = {name: item.get("extraction_text"), f"{name}{ATTRIBUTES}": attributes}
    for name, text in item.items():
        if name and not name.endswith(ATTRIBUTES) and isinstance(text, str | int | float) and str(text).strip():
            yield Extraction(name, str(text), _attributes_as_text(item.get(f"{name}{ATTRIBUTES}")))


def _attributes_as_text(attributes: Any) -> dict[str, str]:
    """Convert attributes to text: lists are joined, empty values dropped."""
    if not isinstance(attributes, dict):
        return {}
    texts = {
        str(name): ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in attributes.items()
        if value not in (None, "", [], {})
    }
    return {name: text for name, text in texts.items() if text}
