"""LangExtract: the rules as its provider, and models asked in parallel, with retries and saved replies."""

import contextvars
import importlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import requests
from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceConfigError, InferenceError, InferenceRuntimeError
from langextract.core.tokenizer import RegexTokenizer, TokenizedText
from langextract.core.types import ScoredOutput
from langextract.providers import router
from tenacity import RetryCallState, Retrying, retry_if_exception, sleep_using_event
from tenacity.wait import wait_random_exponential

from legal_rag import deadline
from legal_rag.corpus.folding import find_exact
from legal_rag.exchange import (
    BadReplyError,
    ModelConnections,
    ServerTimeoutError,
    UnreachableServerError,
    httpx_transport,
)
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

SHORT_CHARS = 300  # of a text that is likely an entity
PATTERNS = (r"^rules$", r"^legal-rag-rules$")
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds of back-off
MAX_RETRY_AFTER = 900.0  # seconds that a server may ask to wait
TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # HTTP: the same request may succeed later
_OLLAMA_STATUS = re.compile(r"^Bad status code from Ollama: (?P<status>\d{3})$")  # the error has no other trace of it
SMALLEST_PIECE = 200  # characters; a piece shorter than twice that is not halved
ATTEMPTS = 8  # of a request, at transient errors
MAX_FAILURES = 5  # pieces in a row without a reply, from a server that has replied before
LATER_TEMPERATURE = 0.7  # of the passes after the first: at 0 they would repeat it
REQUEST_SECONDS = 120.0  # that a whole reply may take
DELIMITER = "\u241f"  # LangExtract's own, which must not stand in an extraction
REFUSED = {
    401: "the key was refused",
    402: "the account is empty",
    403: "the key may not use it",
    404: "there is no such model or address",
}
NO_TEMPERATURE = ("o1", "o3", "o4", "gpt-5")  # models that accept only their default temperature
SavedReplies = tuple[Callable[[str], str | None], Callable[[str, str], None]]  # get and put, by prompt
# No fuzzy alignment: grounding does without guesses.
RESOLVER = {"enable_fuzzy_alignment": False, "accept_match_lesser": False, "suppress_parse_errors": True}


class FunctionLanguageModel(BaseLanguageModel):
    """Any function as a model of LangExtract."""

    def __init__(
        self,
        ask: Callable[[str], str],
        failures: tuple[type[Exception], ...] = (),
        stops: tuple[type[Exception], ...] = (),
    ) -> None:
        """Wrap `ask`.

        Args:
            ask: Returns the reply to a prompt.
            failures: Its errors that cost one reply, and are passed on as LangExtract's own.
            stops: Its errors that end the extraction, kept as `stopped`: LangExtract may wrap them in another.
        """
        super().__init__()
        self._ask, self._failures, self._stops = ask, failures, stops
        self.stopped: Exception | None = None

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            try:
                reply = self._ask(prompt)
            except self._stops as error:
                self.stopped = error
                raise
            except self._failures as error:
                raise InferenceRuntimeError(str(error)) from error
            yield [ScoredOutput(score=1.0, output=reply)]


@router.register(*PATTERNS, priority=20)
class RulesLanguageModel(BaseLanguageModel):
    """The rules as a LangExtract model; its classes are those of `jurisprudence`.

    The attribute `legal_rag_occurrence` numbers, from 0, equal texts of a piece, so that each extraction has one place.
    """

    def __init__(self, model_id: str = "rules", **_: Any) -> None:
        super().__init__()
        self.model_id = model_id

    @classmethod
    def get_model_patterns(cls) -> tuple[str, ...]:
        """Return the patterns of the model ids that name the rules."""
        return PATTERNS

    @property
    def requires_fence_output(self) -> bool:
        """Tell whether replies are fenced: only where the caller asks for it."""
        return bool(self._fence_output_override)

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt."""
        for prompt in batch_prompts:
            reply = _reply(piece_of(prompt))
            yield [ScoredOutput(score=1.0, output=f"```json\n{reply}\n```" if self.requires_fence_output else reply)]


class CachedTokenizer(RegexTokenizer):
    """LangExtract's tokenizer, with a cache: it tokenises each entity, and the document, more than once."""

    _short = staticmethod(lru_cache(maxsize=1024)(RegexTokenizer().tokenize))
    _long = staticmethod(lru_cache(maxsize=4)(RegexTokenizer().tokenize))

    def tokenize(self, text: str) -> TokenizedText:
        """Split a text into letters, figures and signs."""
        return self._short(text) if len(text) < SHORT_CHARS else self._long(text)


class RequestLimiter:
    """Limit on concurrent requests and health of the server, shared by all documents."""

    def __init__(self, max_requests: int) -> None:
        self.semaphore = threading.Semaphore(max_requests)
        self.options: dict[str, Any] = {}  # of every request
        self.has_replied = False
        self.failures = 0  # pieces in a row without a reply
        self.refusal: ValueError | ConnectionError | None = None  # why no further request is made
        self.cancellations: set[threading.Event] = set()  # one a document: when set, retries stop waiting

    def count_reply(self) -> None:
        """Note that the server replied."""
        self.has_replied, self.failures = True, 0

    def count_failure(self, status: int | None) -> None:
        """Note that a request failed.

        Raises:
            LostPieceError: If it may be the request's own fault.
            ConnectionError: If the server is down.
        """
        self.failures += 1
        if self.has_replied and self.failures < MAX_FAILURES:
            raise LostPieceError
        self.refuse(ConnectionError(f"the model's server does not answer{f' ({status})' if status else ''}"))

    def refuse(self, refusal: ValueError | ConnectionError) -> NoReturn:
        """Stop all requests."""
        self.refusal = refusal
        for cancelled in list(self.cancellations):
            cancelled.set()
        raise refusal from None  # the server's message may contain the key


class LostPieceError(Exception):
    """A server answers other requests, but not this one."""


class RetryingModel(BaseLanguageModel):
    """A LangExtract model for one pass over one document: retries, halves unreadable pieces, saves replies.

    `prefix` is the prompt before the piece; `options` of each request are the provider's, such as a temperature.
    """

    def __init__(
        self,
        model: BaseLanguageModel,
        prefix: str,
        limiter: RequestLimiter,
        saved: SavedReplies | None = None,
        workers: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._options, self._cancelled = dict(options or {}), threading.Event()
        self._model, self._prefix, self._limiter, self._workers = model, prefix, limiter, workers
        self._get, self._put = saved or (lambda _: None, lambda _, __: None)
        self.pieces: list[str] = []  # in document order
        self.dropped: set[int] = set()  # numbers of the pieces without a usable reply, in whole or part

    @property
    def requires_fence_output(self) -> bool:
        """Tell LangExtract that replies are bare JSON: fences are removed here."""
        return False

    def infer(self, batch_prompts: Sequence[str], **_: Any) -> Iterator[Sequence[ScoredOutput]]:
        """Yield one reply for each prompt, in order."""
        first = len(self.pieces)
        self.pieces += [without_answer(prompt.removeprefix(self._prefix)) for prompt in batch_prompts]
        numbers = range(first, len(self.pieces))
        self._limiter.cancellations.add(self._cancelled)
        tasks = [(contextvars.copy_context(), number) for number in numbers]  # which have the deadline
        with ThreadPoolExecutor(max(min(self._workers, len(numbers)), 1)) as pool:
            try:
                read = pool.map(lambda task: task[0].run(self._read, task[1]), tasks)
                for number, items in zip(numbers, read, strict=True):
                    yield [ScoredOutput(score=1.0, output=reply_of(_numbered(items, number)))]
            except BaseException:  # an interruption, too
                self._cancelled.set()
                raise
            finally:
                self._limiter.cancellations.discard(self._cancelled)

    def located_pieces(self, text: str) -> list[Piece]:
        """Locate the pieces in their document."""
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
        if (saved := self._get(prompt)) is not None:
            return extractions_of(saved)
        halved = f"halved\n{prompt}"  # saved so that a resumed extraction begins with the halves
        if self._get(halved) is None:
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
        self._put(halved, "[]")
        return [item for half in halves for item in self._entities(number, half)]

    def _ask(self, prompt: str) -> str:
        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            stop=lambda state: (
                state.attempt_number >= ATTEMPTS or state.upcoming_sleep >= max(0.0, deadline.seconds_left())
            ),
            wait=wait,
            sleep=sleep_using_event(self._cancelled),
            reraise=True,
        )
        try:
            reply = str(retrying(self._request, prompt))
        except InferenceConfigError as error:  # LangExtract's own words, such as for a model that Ollama lacks
            self._limiter.refuse(ValueError(f"the model cannot be asked: {error}"))
        except InferenceError as error:
            deadline.check()  # then it was what cut the request short
            status = status_of(error)
            if status in REFUSED or (status == 400 and not self._limiter.has_replied):
                why = REFUSED.get(status or 0, "the request was refused (400)")
                self._limiter.refuse(ValueError(f"the model cannot be asked: {why}"))
            bad = next((one for one in _causes(error) if isinstance(one, BadReplyError)), None)
            if bad is not None and not self._limiter.has_replied:
                self._limiter.refuse(ValueError(f"the model cannot be asked: {bad}"))
            if is_transient(error):
                self._limiter.count_failure(status)
            raise
        self._limiter.count_reply()
        return reply

    def _request(self, prompt: str) -> str:
        with self._limiter.semaphore:
            if self._limiter.refusal is not None:
                raise self._limiter.refusal
            if self._cancelled.is_set():
                raise LostPieceError
            deadline.check()
            (outputs,) = self._infer(prompt)
        reply = outputs[0].output if outputs else None
        if not isinstance(reply, str):
            raise UnreadableExtractionError("a reply without a text")
        return reply.encode("utf-8", "replace").decode()  # SQLite takes no lone surrogate

    def _infer(self, prompt: str) -> list[Sequence[ScoredOutput]]:
        try:
            return list(self._model.infer([prompt], **self._limiter.options, **self._options))
        except InferenceError as error:
            # The server lacks a JSON mode: ask for plain text.
            if status_of(error) != 400 or "response_format" not in str(error) or self._limiter.options:
                raise
            self._limiter.options = {"response_format": {"type": "text"}}
            return list(self._model.infer([prompt], **self._limiter.options, **self._options))


def build_model(settings: ExtractionSettings, examples: Sequence[Any]) -> BaseLanguageModel:
    """Build the LangExtract model that the settings name.

    Args:
        settings: `model_id` is 'rules', a model of Gemini's or OpenAI's, 'ollama/<model>', or any with `api_base`.
        examples: Of the schema, from which providers derive the form of replies.

    Raises:
        ValueError: If the model has no key or no provider.
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
        kwargs["max_retries"] = 0  # retries are ours
        kwargs["http_options"] = {"httpx_client": _bounded_client(importlib.import_module("httpx"))}
    given = {key: value for key, value in kwargs.items() if value is not None}
    config = factory.ModelConfig(model_id=name, provider=provider, provider_kwargs=given)
    try:
        # Self-hosted servers seldom support schema constraints.
        model: Any = factory.create_model(config, examples, use_schema_constraints=not settings.api_base)
    except InferenceConfigError as error:
        if "key" in str(error).lower():
            raise ValueError(
                f"no key for {settings.model_id!r} (expected --extract-api-key or {KEY_VARIABLE})"
            ) from None
        raise ValueError(f"no model {settings.model_id!r}: {type(error).__name__}") from None
    client: Any = getattr(model, "_client", None)
    if hasattr(client, "with_options"):  # retries are ours
        bounded = _bounded_client(_http_library(client._client))
        model._client = client.with_options(max_retries=0, timeout=REQUEST_SECONDS, http_client=bounded)
    if hasattr(model, "_requests"):
        model._requests = _bounded_requests()
    if client is not None:
        model.api_key = None  # the client has it, and hides it
    return cast("BaseLanguageModel", model)


def _http_library(client: Any) -> Any:
    """Return the library that a client is of: `httpx`, or `httpx2` in newer SDKs."""
    names = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    return importlib.import_module("httpx2" if "httpx2" in names else "httpx")


def _bounded_client(httpx: Any) -> Any:
    return httpx.Client(transport=httpx_transport(httpx, ModelConnections(), REQUEST_SECONDS))


def _bounded_requests() -> Any:
    """Return what LangExtract uses of `requests`, with bounded replies."""
    session, adapter = requests.Session(), _RequestsAdapter(ModelConnections())
    session.trust_env = False  # proxies are the connections' own affair
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return SimpleNamespace(post=session.post, exceptions=requests.exceptions)


class _RequestsAdapter(requests.adapters.BaseAdapter):
    def __init__(self, connections: ModelConnections) -> None:
        super().__init__()
        self._connections = connections

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        body = request.body.encode() if isinstance(request.body, str) else request.body or b""
        sent = (str(request.method), str(request.url), request.headers.items(), body)
        try:
            reply = self._connections.send(*sent, seconds=REQUEST_SECONDS)
        except ServerTimeoutError as error:
            raise requests.ReadTimeout(str(error)) from error
        except UnreachableServerError as error:
            raise requests.ConnectionError(str(error)) from error
        except BadReplyError as error:
            raise requests.exceptions.ContentDecodingError(str(error)) from error
        response = requests.Response()
        response.status_code, response._content, response.encoding = reply.status, reply.body, "utf-8"
        response.headers.update(reply.headers)
        response.url, response.request = str(request.url), request
        return response

    def close(self) -> None:
        self._connections.close()


def extract_with_langextract(
    text: str,
    doc_name: str,
    schema: Schema,
    model: BaseLanguageModel,
    settings: ExtractionSettings,
    *,
    limiter: RequestLimiter | None = None,
    saved: Callable[[int], SavedReplies | None] = lambda _: None,
) -> ExtractionResult:
    """Extract the entities of one document through LangExtract.

    `limiter` is shared with documents that are extracted at the same time; `saved` gives the saved replies of a pass,
    by its number from 0.

    Raises:
        ValueError: If the model refuses requests.
        ConnectionError: If its server does not answer.
    """
    limiter, before = limiter or RequestLimiter(settings.max_workers), _prompt_before_piece(schema)
    found: list[Entity] = []
    passes, dropped, chunks = list[Grounded](), set[int](), 0
    for number in range(settings.passes):
        is_warm = number > 0 and takes_temperature(settings.model_id)
        options = {"temperature": LATER_TEMPERATURE} if is_warm else {}
        reader = RetryingModel(model, before, limiter, saved(number), settings.max_workers, options)
        document = _annotated(text, doc_name, schema, reader, settings)
        grounded = ground(document.extractions or [], text, reader.located_pieces(text), schema)
        found += [one for one in grounded.entities if not _overlaps_any(one, found)] if number else grounded.entities
        passes.append(grounded)
        dropped, chunks = dropped | reader.dropped, len(reader.pieces)
    return ExtractionResult(
        doc_name=doc_name,
        extractions=in_order(found),
        schema_name=schema.name,
        model_id=settings.model_id,
        chunks=chunks,
        dropped_chunks=len(dropped),
        ungrounded=sum(one.ungrounded for one in passes),
        echoed=sum(one.echoed for one in passes),
        wrong_class=sum(one.wrong_class for one in passes),
    )


def _annotated(text: str, doc_name: str, schema: Schema, reader: RetryingModel, settings: ExtractionSettings) -> Any:
    import langextract as lx
    from langextract.prompt_validation import PromptValidationLevel

    # The rules know their offsets: the faster alignment is enough for them.
    alignment = {"exact_alignment_algorithm": "difflib"} if settings.model_id == RULES else {}
    (document,) = lx.extract(
        text_or_documents=[lx.data.Document(text=text, document_id=doc_name)],
        prompt_description=schema.prompt,
        examples=schema.lx_examples(),
        model=reader,
        max_char_buffer=settings.max_char_buffer,
        batch_length=max(len(text) // settings.max_char_buffer + 1, 64),  # all pieces of most documents at once
        max_workers=1,
        use_schema_constraints=False,  # the model has them already
        resolver_params=RESOLVER | alignment,
        prompt_validation_level=PromptValidationLevel.OFF,
        show_progress=False,
        fetch_urls=False,
        tokenizer=CachedTokenizer(),
    )
    return document


def _prompt_before_piece(schema: Schema) -> str:
    """Return LangExtract's prompt up to the piece: the task, the examples, and 'Q: '."""
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


def _numbered(items: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Add the number of the piece to the attributes, for grounding."""
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
        found = [at + len(sign) for at in (before, after) if at >= 0]
        if found:
            cut = min(found, key=lambda at: abs(at - middle))
            return piece[:cut], piece[cut:]
    return piece[:middle], piece[middle:]


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind a provider's error, if any."""
    for seen in _causes(error):
        for name in ("status_code", "code"):
            value = getattr(seen, name, None)
            if isinstance(value, int):
                return value
    found = _OLLAMA_STATUS.search(str(error))
    return int(found["status"]) if found else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = getattr(error, "original", None) or error.__cause__


def is_transient(error: BaseException) -> bool:
    """Tell whether an error is transient: rate limit, overload, lost connection."""
    if not isinstance(error, InferenceRuntimeError) or any(isinstance(one, BadReplyError) for one in _causes(error)):
        return False
    if (status := status_of(error)) is not None:
        return status in TRANSIENT
    names = {kind.__name__ for kind in type(getattr(error, "original", None)).__mro__}
    return bool(names & {"APIConnectionError", "APITimeoutError", "ConnectionError", "Timeout", "TransportError"})


def wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else exponentially with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    response = getattr(getattr(error, "original", None), "response", None)
    asked = response.headers.get("retry-after") if response is not None and hasattr(response, "headers") else None
    if asked is not None and asked.replace(".", "", 1).isdecimal():
        return min(float(asked), MAX_RETRY_AFTER)
    return wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)(state)


def takes_temperature(model_id: str) -> bool:
    """Tell whether a model accepts a temperature."""
    return not model_id.removeprefix("openai/").startswith(NO_TEMPERATURE)


def _reply(piece: str) -> str:
    numbers: dict[str, dict[int, int]] = {}  # of the occurrences of each text, by their starts
    items = []
    for one in find_entities(piece):
        name, text = one["extraction_class"], one["extraction_text"]
        if text not in numbers:
            numbers[text] = {start: number for number, (start, _) in enumerate(find_exact(text, piece))}
        attributes = {**one["attributes"], OCCURRENCE: str(numbers[text][one["char_start"]])}
        items.append({name: text, f"{name}{ATTRIBUTES}": attributes})
    return reply_of(items)
