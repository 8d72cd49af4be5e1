"""LangExtract: asks models piece by piece through `legal_rag.llm`; offers the rules as a provider."""

import contextvars
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from langextract.core.base_model import BaseLanguageModel
from langextract.core.types import ScoredOutput
from langextract.providers import router

from legal_rag.extraction.entities import Entity, ExtractionResult, in_order
from legal_rag.extraction.grounding import (
    ANSWER,
    ATTRIBUTES,
    PIECE,
    Grounded,
    Piece,
    UnreadableExtractionError,
    extractions_of,
    ground,
    piece_of,
    reply_of,
    without_answer,
)
from legal_rag.extraction.rules.rules import find_entities
from legal_rag.extraction.schemas import KEY_VARIABLE, ExtractionSettings, Schema
from legal_rag.llm import HOPELESS, ROUTER, ModelError, Throttle, ask, endpoint_of, is_reasoning

SMALLEST_PIECE = 200  # characters; pieces shorter than twice that are not halved
TRIES = 2  # per piece with unreadable replies
MAX_FAILURES = 5  # pieces in a row without a reply
LATER_TEMPERATURE = 0.7  # of the passes after the first: at 0 they would repeat it
DELIMITER = "\u241f"  # LangExtract's own, not allowed in an extraction
JSON_MODE = {"response_format": {"type": "json_object"}}
SYSTEM = "You are a helpful assistant that responds in JSON format."
# No fuzzy alignment: grounding does not guess.
RESOLVER = {"enable_fuzzy_alignment": False, "accept_match_lesser": False, "suppress_parse_errors": True}

# Returns the reply to a prompt and a try, from 0; raises LostPieceError without a reply, TooLongError if the prompt is
# too long for the model. Other errors end the extraction.
AskPiece = Callable[[str, int], str]


class LostPieceError(Exception):
    """A piece has no reply."""


class TooLongError(Exception):
    """A piece is too long for the model."""


@router.register("^rules$", "^legal-rag-rules$", priority=20)
class RulesLanguageModel(BaseLanguageModel):
    """The rules as a LangExtract model; its classes are those of `jurisprudence`."""

    def __init__(self, model_id: str = "rules", **_: Any) -> None:
        super().__init__()
        self.model_id = model_id

    @property
    def requires_fence_output(self) -> bool:
        """Whether replies are fenced: only on the caller's request."""
        return bool(self._fence_output_override)

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            pairs = ((hit["extraction_class"], hit) for hit in find_entities(piece_of(prompt)))
            items = [{name: hit["extraction_text"], f"{name}{ATTRIBUTES}": hit["attributes"]} for name, hit in pairs]
            reply = reply_of(items)
            yield [ScoredOutput(score=1.0, output=f"```json\n{reply}\n```" if self.requires_fence_output else reply)]


class PieceReader(BaseLanguageModel):
    """A LangExtract model for one pass over one document; asks through a function, halves unreadable pieces.

    `prefix` is the prompt before the piece.
    """

    def __init__(self, asking: AskPiece, prefix: str, workers: int) -> None:
        super().__init__()
        self._asking, self._prefix, self._workers = asking, prefix, workers
        self._is_cancelled = threading.Event()
        self.pieces: list[str] = []  # in document order
        self.dropped: set[int] = set()  # numbers of the pieces without a usable reply, in whole or part
        self.stopped: BaseException | None = None  # ended the extraction; LangExtract may wrap it in another error

    @property
    def requires_fence_output(self) -> bool:
        """False: replies are bare JSON, as fences are removed here."""
        return False

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt, in order."""
        first = len(self.pieces)
        self.pieces += [without_answer(prompt.removeprefix(self._prefix)) for prompt in batch_prompts]
        numbers = range(first, len(self.pieces))
        tasks = [(contextvars.copy_context(), number) for number in numbers]  # the contexts carry the deadline
        with ThreadPoolExecutor(max(min(self._workers, len(numbers)), 1)) as pool:
            try:
                read = pool.map(lambda task: task[0].run(self._read_piece, task[1]), tasks)
                for number, items in zip(numbers, read, strict=True):
                    yield [ScoredOutput(score=1.0, output=reply_of(_mark_piece_number(items, number)))]
            except BaseException as error:  # also an interruption
                self.stopped = self.stopped or error
                self._is_cancelled.set()
                raise

    def located_pieces(self, text: str) -> list[Piece]:
        """Locate the pieces in their document."""
        pieces, at = [], 0
        for piece in self.pieces:
            at = max(text.find(piece, at), at)
            pieces.append(Piece(text, at, at + len(piece)))
            at += len(piece)
        return pieces

    def _read_piece(self, number: int) -> list[dict[str, Any]]:
        items = self._extract_items(number, self.pieces[number])
        return [item for item in items if not any(DELIMITER in value for value in item.values())]

    def _extract_items(self, number: int, piece: str) -> list[dict[str, Any]]:
        if not piece.strip():
            return []
        for attempt in range(TRIES):
            if self._is_cancelled.is_set():
                return []
            try:
                return extractions_of(self._asking(f"{self._prefix}{piece}{ANSWER}", attempt))
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
        return [item for half in halves for item in self._extract_items(number, half)]


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
    """Extract the entities of one document through LangExtract.

    Args:
        text: The document.
        doc_name: For the result.
        schema: What to look for.
        asking: Returns, for the number of a pass from 0, the function that asks about a piece; see `AskPiece`.
        settings: Passes, piece size, concurrent requests.
    """
    before = _prompt_before_piece(schema)
    kept: list[Entity] = []
    passes, dropped, chunks = list[Grounded](), set[int](), 0
    for number in range(settings.passes):
        reader = PieceReader(asking(number), before, settings.max_workers)
        document = _annotated(text, doc_name, schema, reader, settings)
        grounded = ground(document.extractions or [], text, reader.located_pieces(text), schema)
        kept += [new for new in grounded.entities if not _overlaps_any(new, kept)] if number else grounded.entities
        passes.append(grounded)
        dropped, chunks = dropped | reader.dropped, len(reader.pieces)
    return ExtractionResult(
        doc_name=doc_name,
        extractions=in_order(kept),
        schema_name=schema.name,
        model_id=settings.model_id,
        chunks=chunks,
        dropped_chunks=len(dropped),
        ungrounded=sum(result.ungrounded for result in passes),
        echoed=sum(result.echoed for result in passes),
        wrong_class=sum(result.wrong_class for result in passes),
    )


def _annotated(text: str, doc_name: str, schema: Schema, reader: PieceReader, settings: ExtractionSettings) -> Any:
    import langextract as lx
    from langextract.prompt_validation import PromptValidationLevel

    try:
        (document,) = lx.extract(
            text_or_documents=[lx.data.Document(text=text, document_id=doc_name)],
            prompt_description=schema.prompt,
            examples=schema.lx_examples(),
            model=reader,
            max_char_buffer=settings.max_char_buffer,
            batch_length=max(len(text) // settings.max_char_buffer + 1, 64),  # all pieces of most documents at once
            max_workers=1,
            use_schema_constraints=False,
            resolver_params=RESOLVER,
            prompt_validation_level=PromptValidationLevel.OFF,
            show_progress=False,
            fetch_urls=False,
        )
    except Exception:
        if reader.stopped is not None:
            raise reader.stopped from None
        raise
    return document


def _prompt_before_piece(schema: Schema) -> str:
    """Return LangExtract's prompt up to the piece: the task, the examples, and 'Q: '."""
    from langextract.core.data import FormatType
    from langextract.core.format_handler import FormatHandler
    from langextract.prompting import PromptTemplateStructured, QAPromptGenerator

    template = PromptTemplateStructured(description=schema.prompt, examples=schema.lx_examples())
    handler = FormatHandler(format_type=FormatType.JSON, use_wrapper=True, use_fences=False)
    return without_answer(QAPromptGenerator(template, handler).render(""))


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


def _mark_piece_number(items: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [
        {name: value | {PIECE: str(number)} if isinstance(value, dict) else value for name, value in item.items()}
        for item in items
    ]


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
