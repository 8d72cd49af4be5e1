"""Asking a language model for entities so that nothing is lost: replies kept, failures tried again, broken ones halved.

In: LangExtract's prompts. Out: replies that LangExtract can read. What a server refuses for now is asked again later;
a reply that is no JSON is asked for once more, then for each half of its piece; what is left without one is counted.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceConfigError, InferenceError
from langextract.core.types import ScoredOutput
from tenacity import Retrying, retry_if_exception, sleep_using_event, stop_after_attempt

from legal_rag.extraction.grounding import PIECE, Piece
from legal_rag.extraction.model_failures import may_pass, status_of, wait
from legal_rag.extraction.reading import ANSWER, UnreadableReplyError, extractions_of, reply_of, without_answer
from legal_rag.extraction.settings import KEY_VARIABLE, RULES, ExtractionSettings

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
                except (UnreadableReplyError, InferenceError):
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
            raise UnreadableReplyError("an empty reply")
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
        from legal_rag.extraction.provider import RulesLanguageModel

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
