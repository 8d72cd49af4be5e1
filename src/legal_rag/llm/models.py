"""Models: endpoints, keys, replies and their usage, prices, context windows and errors."""

import json
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from legal_rag.base.html import displayed
from legal_rag.base.text import read_toml

DEFAULT_MODEL = "mistralai/Magistral-Small-2509"
SCHEMES = ("http://", "https://")
HUB, OLLAMA = "huggingface", ("ollama", "ollama_chat")
TOKEN_BYTES = 3.5  # of UTF-8, on the average of French and of several tokenizers
TABLE = "model_prices_and_context_window_backup.json"  # in LiteLLM's package
_ROWS = read_toml("legal_rag.llm", "providers.toml")
ROUTER = _ROWS[HUB]["api_base"]  # Hugging Face's
LITELLM = frozenset(_ROWS.pop("litellm")["providers"].split())
_REASONING = re.compile(r"(?:o[134]|gpt-5(?!.*-chat))\b")  # have a temperature and a limit of their own

Message = Mapping[str, str]  # "role" and "content", as OpenAI's API has them


@displayed
class Usage(NamedTuple):
    """Sum over model calls."""

    calls: int = 0  # requests sent
    cached: int = 0  # stored replies, which cost nothing
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None once a price is unknown

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(*map(operator.add, self[:4], other[:4]))._replace(cost=cost)

    def minus(self, earlier: "Usage") -> "Usage":
        """Return the usage since an earlier state of the same tracker."""
        cost = None if self.cost is None or earlier.cost is None else max(0.0, self.cost - earlier.cost)
        return Usage(*map(operator.sub, self[:4], earlier[:4]))._replace(cost=cost)


@displayed
class Completion(NamedTuple):
    """A model's text: the reply to one request, or an answer."""

    text: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    cut_off: bool = False  # it ended at the model's token limit
    thinks: bool = False  # the model also wrote thoughts, which are left out and count as tokens


class Words(NamedTuple):
    """Names of a kind of failure."""

    english: str
    french: str
    remedy: str = ""  # in French


KINDS = {
    "timeout": Words("no reply in time", "délai dépassé"),
    "auth": Words("the key was refused", "clé refusée", "vérifiez la clé"),
    "billing": Words("the account is empty", "crédit épuisé"),
    "rate limit": Words("too many requests", "trop de demandes"),
    "context": Words("the text is too long for the model", "texte trop long pour lui"),
    "loading": Words(
        "the model is still being loaded",
        "son serveur le charge encore",
        "attendez qu'il l'ait chargé, puis redemandez",
    ),
    "unknown model": Words(
        "there is no such model or address",
        "modèle inconnu du serveur",
        "vérifiez le nom du modèle, et l'adresse, qui finit d'ordinaire par /v1",
    ),
    "request": Words("the request was refused", "demande refusée par le serveur", "vérifiez le nom du modèle"),
    "server": Words("the server failed", "erreur du serveur"),
    "transport": Words(
        "the server does not answer", "serveur injoignable", "vérifiez l'adresse, et que le serveur y est en marche"
    ),
    "redirect": Words("the server redirects", "adresse redirigée", "donnez l'adresse finale du serveur"),
    "configuration": Words("a setting is missing", "réglage incomplet"),
    "unreadable": Words("the reply cannot be read", "réponse illisible"),
    "empty": Words("the reply is empty", "réponse vide"),
    "client": Words("its client failed", "erreur"),
}
# The same request may succeed. What took too long to write would again: a server without a free slot only gets slower.
TRANSIENT = frozenset(("rate limit", "server", "transport", "loading"))
HOPELESS = frozenset(("auth", "billing", "unknown model", "redirect", "configuration"))  # every request will fail


class ModelError(Exception):
    """A model gave no usable reply.

    `kind` is one of `KINDS`, `said` the details in one line (a server's own words, without keys), `status` HTTP's,
    `retry_after` the seconds that the server asks to wait; of a text that is too long, `window` and `prompt_tokens` are
    what the server takes and counts, where it says so. `reason` replaces, in French without a full stop, what the kind
    says.
    """

    def __init__(
        self,
        kind: str,
        said: str = "",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        window: int | None = None,
        prompt_tokens: int | None = None,
        reason: str = "",
    ) -> None:
        self.kind, self.said, self.status, self.retry_after, self._reason = kind, said, status, retry_after, reason
        self.window, self.prompt_tokens = window, prompt_tokens
        code = f" ({status})" if status else ""
        super().__init__(f"{KINDS[kind].english}{code}{f': {said}' if said else ''}")

    @property
    def reason(self) -> str:
        """What failed, in French without a full stop; a server's own words are for the log."""
        is_named = self.kind == "configuration" and self.said.isidentifier()  # the variable that lacks a key
        detail = f" : {self.said}" if is_named else f" {self.said.partition(':')[0]}" if self.kind == "client" else ""
        return self._reason or f"Le modèle de langage n'a pas pu répondre ({KINDS[self.kind].french}{detail})"

    @property
    def advice(self) -> str:
        """What failed and how to mend it, a French sentence."""
        remedy = KINDS[self.kind].remedy
        return f"{self.reason}{f' : {remedy}' if remedy else ''}."


class TextModel(Protocol):
    """Answers a prompt with a text; a `ChatModel` is one."""

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; raises as `ask` does, also where it is empty."""


@displayed
@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A model and its server, which speaks OpenAI's chat completions, or a `sender` of its own."""

    model: str  # its id, with its provider: "openai/gpt-5"
    name: str  # as the server knows it
    api_base: str
    is_own: bool = False  # a server of one's own, not a provider's: it may be asked what it takes
    api_key: str = field(default="", repr=False)
    key_variable: str = ""  # which should hold the key, where one is needed and there is none
    max_tokens: int | None = None  # of a reply
    temperature: float | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # further parameters of a request
    timeout: float = 120.0  # seconds that a whole reply may take
    num_retries: int = 2  # further attempts after a failed request
    cache: bool = True  # a request that was answered before is answered from the store
    window: int | None = None  # tokens that it takes at most; None is what its server says, or LiteLLM lists
    workers: int | None = None  # requests at once; None is as many as its server has slots, if it says so
    sender: "Sender | None" = field(default=None, repr=False)

    @property
    def sampling(self) -> dict[str, Any]:
        """Settings that make replies to one prompt differ, those that are set."""
        settings = {"seed": self.seed, "temperature": self.temperature, "max_tokens": self.max_tokens, **self.extra}
        return {name: value for name, value in settings.items() if value is not None}


Sender = Callable[[Endpoint, Sequence[Message]], Completion]  # makes one request within the deadline; raises ModelError


def endpoint_of(
    model: str, api_key: str | None = None, api_base: str | None = None, **settings: Any
) -> Endpoint | None:
    """Return a model's endpoint, with further `settings` of `Endpoint`; None where only LiteLLM knows its provider.

    Args:
        model: An id; with a provider before it (`openai/…`), or a name that begins as one of a provider's do (`gpt-5`),
            it is that provider's, else one of Hugging Face's router.
        api_key: None reads the provider's own variable, such as OPENAI_API_KEY; a server of one's own gets none.
        api_base: Address of an OpenAI-compatible server, or of Ollama; None is the provider's. ValueError if no URL.
    """
    if api_base and not api_base.startswith(SCHEMES):
        raise ValueError(f"invalid api_base {api_base!r} (expected a URL such as 'http://127.0.0.1:8000/v1')")
    provider, name = _provider_of(model)
    if api_base and provider not in ("openai", *OLLAMA):
        provider, name = "openai", model
    if provider in LITELLM:
        return None
    row = _ROWS[provider]
    own = api_base or _own_address(provider) or (row["api_base"] if provider in OLLAMA else "")
    address = (own or row["api_base"]).rstrip("/")
    if provider in OLLAMA and not address.endswith("/v1"):
        address += "/v1"
    variables = () if api_base else row.get("keys", ())
    key = api_key or next(filter(None, map(os.environ.get, variables)), "")
    return Endpoint(
        model=f"{'openai' if provider == HUB else provider}/{name}",
        name=name,
        api_base=address,
        is_own=bool(own),
        api_key=key,
        key_variable="" if key or not variables else variables[0],
        **settings,
    )


def has_endpoint(api_key: str | None = None, api_base: str | None = None, model: str | None = None) -> bool:
    """Tell whether a model can be asked: by a key, an address, or the key of the provider of the model named.

    A provider's key in the environment, such as HF_TOKEN, which other tools set too, counts only where a model of that
    provider is named: by `model` or GENERATOR_MODEL_ID.
    """
    if api_key or api_base or os.environ.get("GENERATOR_API_BASE") or os.environ.get("GENERATOR_API_KEY"):
        return True
    named = model or os.environ.get("GENERATOR_MODEL_ID")
    return bool(named) and not _missing_keys(str(named))


def is_asked(api_key: str | None = None, api_base: str | None = None, model: str | None = None) -> bool:
    """Return whether a model is configured, see `has_endpoint`; ValueError if one is named, without an endpoint."""
    if has_endpoint(api_key, api_base, model):
        return True
    if named := model or os.environ.get("GENERATOR_MODEL_ID"):
        expected = ", ".join(["--api-base", "GENERATOR_API_KEY", *_missing_keys(named)])
        raise ValueError(f"no endpoint to ask {named!r} at (expected one of {expected})")
    return False


def is_reasoning(model: str) -> bool:
    """Return whether a model is one of OpenAI's with a fixed temperature and no small token limit."""
    return _REASONING.match(model.rpartition("/")[2]) is not None


@displayed
class Price(NamedTuple):
    """Dollars for a million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of some tokens, in dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_of(model: str) -> Price | None:
    """Return a model's price in LiteLLM's list; None if it is not listed, or the list is not installed."""
    return _read_price_list().get(model, (None, None))[0]


def listed_window(model: str) -> int | None:
    """Return a model's context window in LiteLLM's list; None as for `price_of`."""
    return _read_price_list().get(model, (None, None))[1]


def tokens_in(messages: Sequence[Message] | str) -> int:
    """Estimate the tokens of a conversation or a text."""
    texts = [messages] if isinstance(messages, str) else [message["content"] for message in messages]
    return sum(round(len(text.encode("utf-8", "replace")) / TOKEN_BYTES) for text in texts)


@cache
def _read_price_list() -> Mapping[str, tuple[Price | None, int | None]]:
    """Read price and window of each model, by its id with its provider, from LiteLLM's list; LiteLLM stays unloaded."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        rows = json.loads(Path(spec.origin).with_name(TABLE).read_bytes())
    except (OSError, ValueError):
        return {}
    return {_listed_id(name, row): (_price(row), row.get("max_input_tokens")) for name, row in rows.items()}


def _listed_id(name: str, row: Mapping[str, Any]) -> str:
    provider = f"{row.get('litellm_provider')}/"
    return name if name.startswith(provider) else provider + name


def _price(row: Mapping[str, Any]) -> Price | None:
    costs = row.get("input_cost_per_token"), row.get("output_cost_per_token")
    return Price(1e6 * costs[0], 1e6 * costs[1]) if costs[0] is not None and costs[1] is not None else None


def _provider_of(model: str) -> tuple[str, str]:
    """Split an id into its provider and the name that the provider's server knows."""
    provider, slash, name = model.partition("/")
    if not slash:
        known = (candidate for candidate, row in _ROWS.items() if model.startswith(tuple(row.get("bare", ()))))
        return next(known, HUB), model
    if provider in LITELLM or (provider in _ROWS and provider != HUB):
        return provider, name
    first, *rest = model.removeprefix(f"{HUB}/").split("/")
    # LiteLLM writes provider/organisation/model, the router organisation/model:provider.
    return HUB, f"{'/'.join(rest)}:{first}" if len(rest) == 2 else "/".join([first, *rest])


def _own_address(provider: str) -> str | None:
    name = provider.removesuffix("_chat").upper()
    return os.environ.get(f"{name}_API_BASE") or os.environ.get(f"{name}_BASE_URL")


def _missing_keys(model: str) -> list[str]:
    """Return the variable that should hold a model's key, if none does; what LiteLLM needs is not checked."""
    endpoint = endpoint_of(model)
    return [endpoint.key_variable] if endpoint and endpoint.key_variable else []
