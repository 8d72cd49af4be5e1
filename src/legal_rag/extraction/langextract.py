"""LangExtract: rules as a provider, a faster tokenizer, model calls in parallel, cached and retried."""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NoReturn

import regex
from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceConfigError, InferenceError, InferenceRuntimeError
from langextract.core.tokenizer import CharInterval, Token, TokenizedText, Tokenizer, TokenType
from langextract.core.types import ScoredOutput
from langextract.providers import router
from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event, stop_after_attempt
from tenacity.wait import wait_random_exponential

from legal_rag.extraction.entities import OCCURRENCE, Entity, ExtractionResult, in_order
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
from legal_rag.extraction.schemas import KEY_VARIABLE, RULES, ExtractionSettings, Schema

# As in LangExtract's `RegexTokenizer`, with the same library, to which accents apart are letters too.
_TOKEN = regex.compile(r"(?P<letters>[^\W\d_]+)|(?P<figures>\d+)|(?P<sign>[^\w\s]|_)(?P=sign)*")
_TYPES = {"letters": TokenType.WORD, "figures": TokenType.NUMBER, "sign": TokenType.PUNCTUATION}


class QuickTokenizer(Tokenizer):
    """Finds the same tokens as LangExtract's `RegexTokenizer`, and those of the last texts without looking again."""

    def tokenize(self, text: str) -> TokenizedText:
        """Split a text into letters, figures and signs, each with its place."""
        return _short(text) if len(text) < SHORT_CHARS else _long(text)


SHORT_CHARS = 300  # an entity; LangExtract asks for the tokens of each more than once, and of the document, too


def _tokenized(text: str) -> TokenizedText:
    tokens, last = [], 0
    for index, match in enumerate(_TOKEN.finditer(text)):
        start, end = match.span()
        after_newline = start - last > 0 and index > 0 and ("\n" in (gap := text[last:start]) or "\r" in gap)
        tokens.append(Token(index, _TYPES[match.lastgroup or "sign"], CharInterval(start, end), after_newline))
        last = end
    return TokenizedText(text=text, tokens=tokens)


_short, _long = lru_cache(maxsize=1024)(_tokenized), lru_cache(maxsize=4)(_tokenized)


PATTERNS = (r"^rules$", r"^legal-rag-rules$")


@router.register(*PATTERNS, priority=20)
class RulesLanguageModel(BaseLanguageModel):
    """Finds the entities of French decisions by patterns; it knows no other classes than those of `jurisprudence`.

    Each entity has an attribute `legal_rag_occurrence`: which one it is, from 0, of the equal texts of the piece that
    it was found in, so that its place is certain.
    """

    def __init__(self, model_id: str = "rules", **_: Any) -> None:
        super().__init__()
        self.model_id = model_id

    @classmethod
    def get_model_patterns(cls) -> tuple[str, ...]:
        """Return what a model's id looks like that stands for these rules."""
        return PATTERNS

    @property
    def requires_fence_output(self) -> bool:
        """Tell whether replies stand between fences: only where the caller wants it."""
        return bool(self._fence_output_override)

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            reply = _reply(piece_of(prompt))
            yield [ScoredOutput(score=1.0, output=f"```json\n{reply}\n```" if self.requires_fence_output else reply)]


def _reply(piece: str) -> str:
    last: dict[str, tuple[int, int]] = {}  # for each text, where it was looked for last, and how many began before
    items = []
    for one in find_entities(piece):
        text, start = one["extraction_text"], one["char_start"]
        at, number = last.get(text, (0, 0))
        number += _count_overlapping(piece, text, at, start)
        last[text] = (start, number)
        attributes = {**one["attributes"], OCCURRENCE: str(number)}
        items.append({one["extraction_class"]: text, f"{one['extraction_class']}{ATTRIBUTES}": attributes})
    return reply_of(items)


def _count_overlapping(piece: str, text: str, start: int, end: int) -> int:
    """Count where a text begins from `start` on and before `end`."""
    count, at = 0, piece.find(text, start)
    while 0 <= at < end:
        count, at = count + 1, piece.find(text, at + 1)
    return count


FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds before trying again; doubled from time to time, at random below that
MOST_ASKED_WAIT = 900.0  # seconds that a server may ask to wait
LATER = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # HTTP: the same request may succeed another time
_WRITTEN_STATUS = re.compile(r"^Bad status code from Ollama: (?P<status>\d{3})$")  # it is told in no other way


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a provider's error is about, if any."""
    seen: BaseException | None = error
    while seen is not None:
        for name in ("status_code", "code"):
            value = getattr(seen, name, None)
            if isinstance(value, int):
                return value
        seen = getattr(seen, "original", None) or seen.__cause__
    written = _WRITTEN_STATUS.search(str(error))
    return int(written["status"]) if written else None


def may_pass(error: BaseException) -> bool:
    """Tell whether the same request may succeed later: a server that is away or asks to wait, a lost connection."""
    if not isinstance(error, InferenceRuntimeError):
        return False
    if (status := status_of(error)) is not None:
        return status in LATER
    names = {kind.__name__ for kind in type(getattr(error, "original", None)).__mro__}
    return bool(names & {"APIConnectionError", "APITimeoutError", "ConnectionError", "Timeout", "TransportError"})


def wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else at random up to a limit that doubles (full jitter)."""
    error = state.outcome.exception() if state.outcome else None
    response = getattr(getattr(error, "original", None), "response", None)
    asked = response.headers.get("retry-after") if response is not None and hasattr(response, "headers") else None
    if asked is not None and asked.replace(".", "", 1).isdecimal():
        return min(float(asked), MOST_ASKED_WAIT)
    return wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)(state)


SMALLEST_PIECE = 200  # characters; a piece no longer than twice that is not halved
ATTEMPTS = 8  # of a request that a server refuses for now
MOST_FAILURES = 5  # pieces in a row that a server which has replied before leaves without a reply
LATER_TEMPERATURE = 0.7  # of the passes after the first: asked the same way, many models say the same again
REQUEST_SECONDS = 120.0
DELIMITER = "\u241f"  # LangExtract's own, which must not stand in an extraction
REFUSED = {
    401: "the key was refused",
    402: "the account is empty",
    403: "the key may not use it",
    404: "there is no such model or address",
}
NO_TEMPERATURE = ("o1", "o3", "o4", "gpt-5")  # models that refuse any temperature but their own

Memory = tuple[Callable[[str], str | None], Callable[[str, str], None]]  # get and put a reply, by its prompt


class LostPieceError(Exception):
    """A server leaves one request without a reply, however often it is asked, and answers others."""


class Slots:
    """What all documents' requests share: how many are under way, and how the server has done so far."""

    def __init__(self, at_once: int) -> None:
        self.semaphore = threading.Semaphore(at_once)
        self.options: dict[str, Any] = {}  # of every request
        self.has_replied = False
        self.failures = 0  # pieces in a row without a reply
        self.refusal: ValueError | ConnectionError | None = None  # why no further request is made
        self.under_way: set[threading.Event] = set()  # of each document: set, nobody waits for another attempt

    def count_reply(self) -> None:
        """Take note that the server replied."""
        self.has_replied, self.failures = True, 0

    def count_failure(self, status: int | None) -> None:
        """Take note that it did not.

        Raises:
            LostPieceError: If it may be the request's own fault.
            ConnectionError: If the server is away.
        """
        self.failures += 1
        if self.has_replied and self.failures < MOST_FAILURES:
            raise LostPieceError
        self.refuse(ConnectionError(f"the model's server does not answer{f' ({status})' if status else ''}"))

    def refuse(self, refusal: ValueError | ConnectionError) -> NoReturn:
        """Make no further request, for a reason that holds for all."""
        self.refusal = refusal
        for cancelled in list(self.under_way):
            cancelled.set()
        raise refusal from None  # what the server says may hold the key


class PersistentModel(BaseLanguageModel):
    """A language model that reads one document once, piece by piece.

    Args:
        model: LangExtract's, which is asked.
        prefix: What stands before the piece in each prompt.
        slots: Shared with the other documents.
        memory: Where replies are kept; None keeps none.
        workers: Pieces asked about at once.
        options: Of each request, for the provider; such as a temperature.
    """

    def __init__(
        self,
        model: BaseLanguageModel,
        prefix: str,
        slots: Slots,
        memory: Memory | None = None,
        workers: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._options, self._cancelled = dict(options or {}), threading.Event()
        self._model, self._prefix, self._slots, self._workers = model, prefix, slots, workers
        self._get, self._put = memory or (lambda _: None, lambda _, __: None)
        self.pieces: list[str] = []  # of the document, in its order
        self.dropped: set[int] = set()  # numbers of those of which a part has no usable reply

    @property
    def requires_fence_output(self) -> bool:
        """Tell LangExtract that replies come without fences: they are taken off here."""
        return False

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt, in their order."""
        first = len(self.pieces)
        self.pieces += [without_answer(prompt.removeprefix(self._prefix)) for prompt in batch_prompts]
        numbers = range(first, len(self.pieces))
        self._slots.under_way.add(self._cancelled)
        with ThreadPoolExecutor(max(min(self._workers, len(numbers)), 1)) as pool:
            try:
                for number, items in zip(numbers, pool.map(self._read, numbers), strict=True):
                    yield [ScoredOutput(score=1.0, output=reply_of(_numbered(items, number)))]
            except BaseException:  # an interruption, too
                self._cancelled.set()
                raise
            finally:
                self._slots.under_way.discard(self._cancelled)

    def places(self, text: str) -> list[Piece]:
        """Return the pieces at their places in the document that they are of."""
        found, at = [], 0
        for piece in self.pieces:
            at = max(text.find(piece, at), at)
            found.append(Piece(text, at, at + len(piece)))
            at += len(piece)
        return found

    def _read(self, number: int) -> list[dict[str, Any]]:
        piece = self.pieces[number]
        if not piece.strip():
            return []
        items = self._entities(number, piece)
        return [item for item in items if not any(DELIMITER in value for value in item.values())]

    def _entities(self, number: int, piece: str) -> list[dict[str, Any]]:
        prompt = f"{self._prefix}{piece}{ANSWER}"
        kept = self._get(prompt)
        if kept is not None:
            return extractions_of(kept)
        if self._get(_halved_mark(prompt)) is None:
            for _ in range(2):
                try:
                    items = extractions_of(reply := self._ask(prompt))
                except LostPieceError:
                    self.dropped.add(number)
                    return []
                except (UnreadableExtractionError, InferenceError):
                    continue
                self._put(prompt, reply)
                return items
        halves = _halves(piece)
        if halves is None:
            self.dropped.add(number)
            return []
        self._put(_halved_mark(prompt), "[]")
        return [item for half in halves for item in self._entities(number, half)]

    def _ask(self, prompt: str) -> str:
        retrying = Retrying(
            retry=retry_if_exception(may_pass),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait,
            sleep=sleep_using_event(self._cancelled),
            reraise=True,
        )
        try:
            reply = str(retrying(self._request, prompt))
        except InferenceConfigError as error:  # such as a model that Ollama does not have: LangExtract's own words
            self._slots.refuse(ValueError(f"the model cannot be asked: {error}"))
        except InferenceError as error:
            status = status_of(error)
            if status in REFUSED or (status == 400 and not self._slots.has_replied):
                why = REFUSED.get(status or 0, "the request was refused (400)")
                self._slots.refuse(ValueError(f"the model cannot be asked: {why}"))
            if may_pass(error):
                self._slots.count_failure(status)
            raise
        self._slots.count_reply()
        return reply

    def _request(self, prompt: str) -> str:
        with self._slots.semaphore:
            if self._slots.refusal is not None:
                raise self._slots.refusal
            if self._cancelled.is_set():
                raise LostPieceError
            (outputs,) = self._infer(prompt)
        reply = outputs[0].output if outputs else None
        if reply is None:
            raise UnreadableExtractionError("an empty reply")
        return reply.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be kept

    def _infer(self, prompt: str) -> list[Sequence[ScoredOutput]]:
        try:
            return list(self._model.infer([prompt], **self._slots.options, **self._options))
        except InferenceError as error:
            # Some servers know no JSON mode; they are asked for plain text, which is read just as well.
            if status_of(error) != 400 or "response_format" not in str(error) or self._slots.options:
                raise
            self._slots.options = {"response_format": {"type": "text"}}
            return list(self._model.infer([prompt], **self._slots.options, **self._options))


def takes_temperature(model_id: str) -> bool:
    """Tell whether a model may be asked for another temperature than its own."""
    return not model_id.removeprefix("openai/").startswith(NO_TEMPERATURE)


def build_model(settings: ExtractionSettings, examples: Sequence[Any]) -> BaseLanguageModel:
    """Make LangExtract's model that settings name.

    Args:
        settings: `model_id` is 'rules', a model of Gemini's or OpenAI's, 'ollama/<model>', or any with `api_base`.
        examples: Of the schema, by which a model that can is held to its form.

    Raises:
        ValueError: If there is no key for it, or no provider.
    """
    import langextract.factory as factory

    if settings.model_id == RULES:
        return RulesLanguageModel()
    name, provider = settings.model_id, None
    key = settings.api_key or os.environ.get(KEY_VARIABLE) or None
    kwargs: dict[str, Any] = {"api_key": settings.api_key, "max_workers": 1}
    if takes_temperature(name):
        kwargs["temperature"] = 0.0
    if name.startswith("ollama/"):
        name, provider = name.removeprefix("ollama/"), "OllamaLanguageModel"
        kwargs |= {"model_url": settings.api_base, "timeout": int(REQUEST_SECONDS)}
    elif settings.api_base:
        name, provider = name.removeprefix("openai/"), "OpenAILanguageModel"
        kwargs |= {"api_key": key or "none", "base_url": settings.api_base}
    elif name.startswith("openai/"):
        name, provider = name.removeprefix("openai/"), "OpenAILanguageModel"
        kwargs["api_key"] = settings.api_key or os.environ.get("OPENAI_API_KEY") or key
    elif name.startswith("gemini"):
        kwargs["max_retries"] = 0  # the attempts are counted here
    given = {key: value for key, value in kwargs.items() if value is not None}
    config = factory.ModelConfig(model_id=name, provider=provider, provider_kwargs=given)
    try:
        # Servers of one's own seldom know a schema for replies; those of the makers do.
        model: Any = factory.create_model(config, examples, use_schema_constraints=not settings.api_base)
    except InferenceConfigError as error:
        if "key" in str(error).lower():
            raise ValueError(
                f"no key for {settings.model_id!r} (expected --extract-api-key or {KEY_VARIABLE})"
            ) from None
        raise ValueError(f"no model {settings.model_id!r}: {type(error).__name__}") from None
    client: Any = getattr(model, "_client", None)
    if hasattr(client, "with_options"):  # the attempts are counted here
        model._client = client.with_options(max_retries=0, timeout=REQUEST_SECONDS)
    if client is not None:
        model.api_key = None  # the client has it, and does not show it
    made: BaseLanguageModel = model
    return made


def _numbered(items: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Give entities the number of their piece, by which grounding knows where to look."""
    return [
        {name: value | {PIECE: str(number)} if isinstance(value, dict) else value for name, value in item.items()}
        for item in items
    ]


def _halves(piece: str) -> tuple[str, str] | None:
    """Cut a piece in two, behind the sentence, line or word that ends nearest its middle; None if it is too short."""
    if len(piece) < 2 * SMALLEST_PIECE:
        return None
    middle, least = len(piece) // 2, len(piece) // 4
    for sign in ("\n", ". ", " ; ", " "):
        before, after = piece.rfind(sign, least, middle), piece.find(sign, middle, len(piece) - least)
        found = [at + len(sign) for at in (before, after) if at >= 0]
        if found:
            cut = min(found, key=lambda at: abs(at - middle))
            return piece[:cut], piece[cut:]
    return piece[:middle], piece[middle:]


def _halved_mark(prompt: str) -> str:
    """Return under what it is noted that a prompt's piece was halved, so that a later run begins with the halves."""
    return f"halved\n{prompt}"


# What LangExtract itself would guess: left to grounding, which does not.
RESOLVER = {"enable_fuzzy_alignment": False, "accept_match_lesser": False, "suppress_parse_errors": True}


def extract_with_langextract(
    text: str,
    doc_name: str,
    schema: Schema,
    model: BaseLanguageModel,
    settings: ExtractionSettings,
    *,
    slots: Slots | None = None,
    memory: Callable[[int], Memory | None] = lambda _: None,
    max_char_buffer: int | None = None,
) -> ExtractionResult:
    """Extract one document.

    Args:
        text: The document; its offsets are those of the entities.
        doc_name: Its name.
        schema: What to look for.
        model: LangExtract's; see `legal_rag.extraction.langextract.build_model`.
        settings: Passes, workers, length of a piece.
        slots: Shared with other documents under way.
        memory: Gives, for the number of a pass, where replies are kept.
        max_char_buffer: In place of that of the settings.

    Raises:
        ValueError: If the model refuses to be asked.
        ConnectionError: If its server does not answer.
    """
    slots, before = slots or Slots(settings.max_workers), prompt_before_piece(schema)
    found: list[Entity] = []
    counts, dropped, chunks = Grounded(), set[int](), 0
    for number in range(settings.passes):
        is_warm = number > 0 and takes_temperature(settings.model_id)
        options = {"temperature": LATER_TEMPERATURE} if is_warm else {}
        reader = PersistentModel(model, before, slots, memory(number), settings.max_workers, options)
        asked = settings.model_id != RULES
        document = _annotated(text, doc_name, schema, reader, max_char_buffer or settings.max_char_buffer, asked=asked)
        grounded = ground(document.extractions or [], text, reader.places(text), schema)
        found += [one for one in grounded.entities if not _overlaps_any(one, found)] if number else grounded.entities
        counts.ungrounded += grounded.ungrounded
        counts.echoed += grounded.echoed
        counts.wrong_class += grounded.wrong_class
        dropped, chunks = dropped | reader.dropped, len(reader.pieces)
    return ExtractionResult(
        doc_name=doc_name,
        extractions=in_order(found),
        schema_name=schema.name,
        model_id=settings.model_id,
        chunks=chunks,
        dropped_chunks=len(dropped),
        ungrounded=counts.ungrounded,
        echoed=counts.echoed,
        wrong_class=counts.wrong_class,
    )


def _annotated(
    text: str, doc_name: str, schema: Schema, reader: PersistentModel, max_char_buffer: int, *, asked: bool
) -> Any:
    """Run LangExtract; its slower alignment is for a model that is asked, the rules say themselves where they found."""
    import langextract as lx
    from langextract.prompt_validation import PromptValidationLevel

    (document,) = lx.extract(
        text_or_documents=[lx.data.Document(text=text, document_id=doc_name)],
        prompt_description=schema.prompt,
        examples=schema.lx_examples(),
        model=reader,
        max_char_buffer=max_char_buffer,
        batch_length=max(len(text) // max_char_buffer + 1, 64),  # all pieces of most documents at once
        max_workers=1,
        use_schema_constraints=False,  # the model has them already
        resolver_params=RESOLVER | ({} if asked else {"exact_alignment_algorithm": "difflib"}),
        prompt_validation_level=PromptValidationLevel.OFF,
        show_progress=False,
        fetch_urls=False,
        tokenizer=QuickTokenizer(),
    )
    return document


def prompt_before_piece(schema: Schema) -> str:
    """Return what LangExtract writes before the piece in each prompt: the task, the examples, and 'Q: '."""
    from langextract.core.data import FormatType
    from langextract.core.format_handler import FormatHandler
    from langextract.prompting import PromptTemplateStructured, QAPromptGenerator

    template = PromptTemplateStructured(description=schema.prompt, examples=schema.lx_examples())
    handler = FormatHandler(format_type=FormatType.JSON, use_wrapper=True, use_fences=False)
    return without_answer(QAPromptGenerator(template, handler).render(""))


def _overlaps_any(one: Entity, others: list[Entity]) -> bool:
    return any(
        one["extraction_class"] == other["extraction_class"]
        and one["char_start"] < other["char_end"]
        and other["char_start"] < one["char_end"]
        for other in others
    )
