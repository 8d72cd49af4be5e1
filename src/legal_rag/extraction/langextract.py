"""Ask language models for the entities of documents, in LangExtract's pieces and with its prompts."""

import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from legal_rag.extraction.entities import Entity, ExtractionResult, in_order
from legal_rag.extraction.grounding import Extraction, Grounded, Piece, UnreadableExtractionError, extractions_of
from legal_rag.extraction.schemas import KEY_VARIABLE, ExtractionSettings, Schema
from legal_rag.llm import HOPELESS, ROUTER, ModelError, Throttle, ask, endpoint_of, is_reasoning

SMALLEST_PIECE = 200  # characters; pieces shorter than twice that are not halved
TRIES = 2  # per piece with unreadable replies
MAX_FAILURES = 5  # pieces in a row without a reply
LATER_TEMPERATURE = 0.7  # of the passes after the first: at 0 they would repeat it
JSON_MODE = {"response_format": {"type": "json_object"}}
SYSTEM = "You are a helpful assistant that responds in JSON format."

# Returns the reply to a prompt and a try, from 0; raises LostPieceError without a reply, TooLongError if the prompt is
# too long for the model. Other errors end the extraction.
AskPiece = Callable[[str, int], str]


class LostPieceError(Exception):
    """A piece has no reply."""


class TooLongError(Exception):
    """A piece is too long for the model."""


class ModelPieces:
    """A model that is asked about pieces of any number of documents concurrently.

    Raises:
        ValueError: If the model is unknown, or has no key.
    """

    def __init__(self, settings: ExtractionSettings, *, cache: bool = True) -> None:
        name, key = settings.model_id, settings.api_key or os.environ.get(KEY_VARIABLE) or None
        options = {"temperature": None if is_reasoning(name) else 0.0, "cache": cache, "extra": JSON_MODE}
        endpoint = endpoint_of(name, key, settings.api_base, **options)
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
            attempt += number * TRIES
            try:
                return ask(endpoint, messages, throttle=self._throttle, attempt=attempt, keeps=_is_readable).text
            except ModelError as error:
                if isinstance(stopped := self._throttle.error, ModelError):
                    kind = ValueError if stopped.kind in {*HOPELESS, "request"} else ConnectionError
                    raise kind(f"the model cannot be asked: {stopped}") from None
                raise TooLongError if error.kind == "context" else LostPieceError from error

        return asked


def extract_with_langextract(
    text: str, doc_name: str, schema: Schema, asking: Callable[[int], AskPiece], settings: ExtractionSettings
) -> ExtractionResult:
    """Extract the entities of one document.

    Args:
        text: The document.
        doc_name: For the result.
        schema: What to look for.
        asking: Returns, for the number of a pass from 0, the function that asks about a piece; see `AskPiece`.
        settings: Passes, piece size, concurrent requests.
    """
    reader = _DocumentReader(text, schema, settings)
    kept: list[Entity] = []
    grounded = Grounded()
    for number in range(settings.passes):
        earlier = len(grounded.entities)
        for span, extractions in zip(reader.spans, reader.read(asking(number)), strict=True):
            grounded.add(extractions, Piece(text, *span), schema)
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
        """Return what the model extracts from each piece, in order."""
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
    """Split a piece at the line, sentence or word end nearest its middle; None if it is too short."""
    if len(piece) < 2 * SMALLEST_PIECE:
        return None
    middle, least = len(piece) // 2, len(piece) // 4
    for sign in ("\n", ". ", " ; ", " "):
        before, after = piece.rfind(sign, least, middle), piece.find(sign, middle, len(piece) - least)
        cuts = [at + len(sign) for at in (before, after) if at >= 0]
        if cuts:
            cut = min(cuts, key=lambda at: abs(at - middle))
            return piece[:cut], piece[cut:]
    return piece[:middle], piece[middle:]
