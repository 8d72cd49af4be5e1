"""Asking a language model for entities so that nothing is lost: replies kept, failures tried again, broken ones halved.

In: LangExtract's prompts. Out: replies that LangExtract can read. What a server refuses for now is asked again later;
a reply that is no JSON is asked for once more, then for each half of its piece; what is left without one is counted.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langextract.core.base_model import BaseLanguageModel
from langextract.core.exceptions import InferenceConfigError, InferenceError, InferenceRuntimeError
from langextract.core.types import ScoredOutput
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from legal_rag.extraction.grounding import PIECE, Piece
from legal_rag.extraction.reading import ANSWER, ATTRIBUTES, UnreadableReplyError, extractions_of, reply_of
from legal_rag.extraction.settings import KEY_VARIABLE, RULES, ExtractionSettings

SMALLEST_PIECE = 200  # characters; a piece no longer than twice that is not halved
ATTEMPTS = 6  # of a request that a server refuses for now
FIRST_WAIT, LONGEST_WAIT = 0.25, 60.0  # seconds before trying again; doubled from time to time, at random below that
MOST_ASKED_WAIT = 900.0  # seconds that a server may ask to wait
REQUEST_SECONDS = 120.0
DELIMITER = "\u241f"  # LangExtract's own, which must not stand in an extraction
REFUSED = {401: "the key was refused", 403: "the key may not use it", 404: "there is no such model or address"}
LATER = {408, 409, 425, 429, 500, 502, 503, 504}  # HTTP: the same request may succeed another time
NO_TEMPERATURE = ("o1", "o3", "o4", "gpt-5")  # models that refuse any temperature but their own

Memory = tuple[Callable[[str], str | None], Callable[[str, str], None]]  # get and put a reply, by its prompt


class Slots:
    """What all documents' requests share: how many are under way, and whether the model ever replied."""

    def __init__(self, at_once: int) -> None:
        self.semaphore = threading.Semaphore(at_once)
        self.has_replied = False
        self.refusal: ValueError | None = None  # why no further request is made


class PersistentModel(BaseLanguageModel):
    """A language model that reads one document once, piece by piece.

    Args:
        model: LangExtract's, which is asked.
        prefix: What stands before the piece in each prompt.
        slots: Shared with the other documents.
        memory: Where replies are kept; None keeps none.
        workers: Pieces asked about at once.
    """

    def __init__(
        self, model: BaseLanguageModel, prefix: str, slots: Slots, memory: Memory | None = None, workers: int = 1
    ) -> None:
        super().__init__()
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
        self.pieces += [
            prompt.removeprefix(self._prefix).removesuffix(" ").removesuffix("\nA:") for prompt in batch_prompts
        ]
        numbers = range(first, len(self.pieces))
        with ThreadPoolExecutor(max(min(self._workers, len(numbers)), 1)) as pool:
            for number, items in zip(numbers, pool.map(self._read, numbers), strict=True):
                for item in items:
                    name = next(iter(item))
                    item[f"{name}{ATTRIBUTES}"] = {**item[f"{name}{ATTRIBUTES}"], PIECE: str(number)}
                yield [ScoredOutput(score=1.0, output=reply_of(items))]

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
        if self._slots.refusal is not None:
            raise self._slots.refusal
        retrying = Retrying(
            retry=retry_if_exception(_may_pass), stop=stop_after_attempt(ATTEMPTS), wait=_wait, reraise=True
        )
        try:
            reply = str(retrying(self._request, prompt))
        except InferenceError as error:
            status = status_of(error)
            if status in REFUSED or (status == 400 and not self._slots.has_replied):
                why = REFUSED.get(status or 0, "the request was refused (400)")
                self._slots.refusal = ValueError(f"the model cannot be asked: {why}")
                raise self._slots.refusal from None  # what the server says may hold the key
            if _may_pass(error):
                raise ConnectionError(f"the model's server does not answer{f' ({status})' if status else ''}") from None
            raise
        self._slots.has_replied = True
        return reply

    def _request(self, prompt: str) -> str:
        with self._slots.semaphore:
            (outputs,) = self._model.infer([prompt])
        reply = outputs[0].output if outputs else None
        if reply is None:
            raise UnreadableReplyError("an empty reply")
        return reply


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
    kwargs: dict[str, Any] = {"api_key": settings.api_key, "max_workers": 1}
    if not name.removeprefix("openai/").startswith(NO_TEMPERATURE):
        kwargs["temperature"] = 0.0
    if name.startswith("ollama/"):
        name, provider = name.removeprefix("ollama/"), "OllamaLanguageModel"
        kwargs["model_url"] = settings.api_base
    elif settings.api_base:
        name, provider = name.removeprefix("openai/"), "OpenAILanguageModel"
        kwargs |= {"api_key": settings.api_key or "none", "base_url": settings.api_base}
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
    made: BaseLanguageModel = model
    return made


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that a provider's error is about, if any."""
    seen: BaseException | None = error
    while seen is not None:
        for name in ("status_code", "code"):
            value = getattr(seen, name, None)
            if isinstance(value, int):
                return value
        seen = getattr(seen, "original", None) or seen.__cause__
    return None


def _may_pass(error: BaseException) -> bool:
    """Tell whether the same request may succeed later: a server that is away or asks to wait, a lost connection."""
    if not isinstance(error, InferenceRuntimeError):
        return False
    if (status := status_of(error)) is not None:
        return status in LATER
    names = {kind.__name__ for kind in type(getattr(error, "original", None)).__mro__}
    return bool(names & {"APIConnectionError", "APITimeoutError", "ConnectionError", "Timeout", "TransportError"})


_exponential = wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT, min=FIRST_WAIT / 2)


def _wait(state: RetryCallState) -> float:
    """Wait as long as the server asks, else at random up to a limit that doubles (full jitter)."""
    error = state.outcome.exception() if state.outcome else None
    response = getattr(getattr(error, "original", None), "response", None)
    asked = response.headers.get("retry-after") if response is not None and hasattr(response, "headers") else None
    if asked is not None and asked.replace(".", "", 1).isdecimal():
        return min(float(asked), MOST_ASKED_WAIT)
    return _exponential(state)


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
