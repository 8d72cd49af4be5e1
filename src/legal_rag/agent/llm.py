"""Build the language model, and cache its replies as plain JSON."""

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from legal_rag.agent.budget import Budget, BudgetExceededError
from legal_rag.agent.failures import REMEDIES, ModelFailureError, reason_in_french
from legal_rag.files import cache_folder
from legal_rag.lazy import require
from legal_rag.sqlite import connect_as_allowed, connect_to_write, transaction

if TYPE_CHECKING:
    import dspy

logger = logging.getLogger(__name__)


DEFAULT_MODEL = "mistralai/Magistral-Small-2509"
SCHEMES = ("http://", "https://")
HUGGING_FACE = "huggingface/"
ORGANISATIONS = ("databricks", "tencent")  # of the hub, though LiteLLM has providers of that name
ROUTER_KEYS = ("HF_TOKEN", "HUGGINGFACE_API_KEY")
ROUTER = "https://router.huggingface.co/v1"  # Hugging Face's, compatible with OpenAI
MAX_TOKENS, TEMPERATURE = 8000, 0.2  # of a reply; a reasoning model of OpenAI has its own
SEEDLESS = ("anthropic/",)  # refuse a request with a seed

REPLIES = "replies.sqlite"
MAX_REPLIES = 20_000  # kept on disk, of some kilobytes each; the least recently used go
FORGET_EVERY = 500  # replies written by one process between two checks of how many there are
PATIENCE_SECONDS = 5.0  # that a write waits for another process's
CACHE_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, used REAL NOT NULL, reply TEXT NOT NULL)"
JOURNAL_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT, number INTEGER, reply TEXT NOT NULL, PRIMARY KEY (key, number))"
)
PRIVATE = 0o600
DSPY = "_dspy_format"  # marks what DSPy serialises itself
LITELLM = "litellm_reply"  # marks what LiteLLM returned, which is rebuilt as its class

T = TypeVar("T")


def build_language_model(
    student_model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    *,
    timeout: float = 120.0,
    num_retries: int = 2,
    cache: bool = True,
    seed: int | None = None,
) -> "dspy.LM":
    """Configure a language model for DSPy; no request is sent.

    With `cache`, a repeated request costs nothing: DSPy returns the reply from its process-wide cache
    (`dspy.configure_cache`). DSPy's default cache holds pickles, in DSPY_CACHEDIR or `~/.dspy_cache`;
    `legal_rag.agent.use_reply_cache` replaces it by one of JSON. Another model, address, seed, temperature or
    limit makes another request.

    Args:
        student_model: A model id; with a provider of LiteLLM before it (`openai/…`, `openrouter/…`, `azure/…`) it is
            taken as LiteLLM's, which finds the provider's key and address; so is a bare name that it lists (`gpt-5`).
            None reads GENERATOR_MODEL_ID, else takes
            the default model.
        api_key: None reads GENERATOR_API_KEY, then HF_TOKEN for the Hugging Face router, or the provider's own
            variable (OPENAI_API_KEY).
        api_base: Address of an OpenAI-compatible server; None reads GENERATOR_API_BASE, and without one the
            Hugging Face router is asked.
        max_tokens: Of each reply; None is 8,000, or a reasoning model's own.
        temperature: 0 to 2; None is 0.2, or a reasoning model's own.
        timeout: Seconds that a whole reply may take.
        num_retries: Further attempts after a failed request.
        cache: Take the reply to a request that was answered before from DSPy's cache.
        seed: Distinguishes requests in the cache; also sent to the server, which may make its replies repeatable.

    Raises:
        ValueError: If the address is not a URL, or the model does not take the limit or temperature.
    """
    use_local_prices()
    require("dspy")
    import dspy
    from dspy.utils.exceptions import LMConfigurationError

    model = student_model or os.environ.get("GENERATOR_MODEL_ID") or DEFAULT_MODEL
    api_base = api_base or os.environ.get("GENERATOR_API_BASE") or None
    api_key = api_key or os.environ.get("GENERATOR_API_KEY") or None
    if api_base:
        if not api_base.startswith(SCHEMES):
            raise ValueError(f"invalid api_base {api_base!r} (expected a URL such as 'http://127.0.0.1:8000/v1')")
        model = model if model.startswith("openai/") else f"openai/{model}"
        api_key = api_key or "none"  # local servers mostly need no key, but the client wants one
    elif not _has_provider(model := _with_provider(model)):
        # Asked as an OpenAI-compatible server: LiteLLM's own provider looks the model up on the hub at every call.
        model, api_base = f"openai/{_router_id(model.removeprefix(HUGGING_FACE))}", ROUTER
        # Never none: LiteLLM would send the router a key of OpenAI's from the environment.
        api_key = api_key or next(filter(None, map(os.environ.get, ROUTER_KEYS)), "none")
    if cache and temperature == 0:  # DSPy warns that rollout_id does not change replies, which is not its purpose
        warnings.filterwarnings("ignore", message="rollout_id has no effect when temperature=0")
    build = partial(
        dspy.LM,
        model,
        timeout=timeout,
        num_retries=num_retries,
        cache=cache,
        rollout_id=_rollout_id(_address_of(model, api_base), seed) if cache else None,
        # DSPy reads a provider's own variable only where no key is passed: None is an empty key.
        **{name: value for name, value in (("api_key", api_key), ("api_base", api_base)) if value},
        **({} if seed is None or model.startswith(SEEDLESS) else {"seed": seed}),
    )
    try:
        return build(
            max_tokens=MAX_TOKENS if max_tokens is None else max_tokens,
            temperature=TEMPERATURE if temperature is None else temperature,
        )
    except LMConfigurationError:  # a reasoning model, which takes large limits and its own temperature only
        try:
            return build(max_tokens=max_tokens, temperature=temperature)
        except LMConfigurationError as error:
            found = f"temperature {temperature}, max_tokens {max_tokens}"
            raise ValueError(
                f"{model} does not take {found} (expected temperature 1, 16000 tokens, or none)"
            ) from error


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
    """Tell whether a model is to be asked, see `has_endpoint`; refuse one that is named and cannot be.

    Raises:
        ValueError: If a model is named, by `model` or GENERATOR_MODEL_ID, and there is no endpoint.
    """
    if has_endpoint(api_key, api_base, model):
        return True
    if named := model or os.environ.get("GENERATOR_MODEL_ID"):
        expected = ", ".join(["--api-base", "GENERATOR_API_KEY", *_missing_keys(named)])
        raise ValueError(f"no endpoint to ask {named!r} at (expected one of {expected})")
    return False


def check_model(lm: "dspy.BaseLM", seconds: float = 60.0) -> str | None:
    """Send a model a short request; return None if it replies, else a French sentence: what failed, what to mend."""
    require("dspy")
    import dspy

    from legal_rag.agent.model_calls import BudgetedLM, UsageTracker

    tracker = UsageTracker(Budget(seconds=seconds))
    try:
        BudgetedLM(lm.copy(cache=False, num_retries=0), tracker)("Répondez par un seul mot : prêt.")
    except BudgetExceededError:
        return f"Le modèle de langage n'a pas répondu en {seconds:.0f} secondes."
    except (ModelFailureError, dspy.LMError) as error:
        reason = reason_in_french(error)
        mended = next((f" : {remedy}" for kind, remedy in REMEDIES.items() if kind in reason), "")
        return f"{reason}{mended}."
    return None


def _missing_keys(model: str) -> list[str]:
    """Return the variables of which one must hold a model's key, if none does; other credentials are not checked."""
    model = _with_provider(model)
    if not _has_provider(model):
        return [] if any(map(os.environ.get, ROUTER_KEYS)) else [ROUTER_KEYS[0]]
    import litellm

    missing: list[str] = litellm.validate_environment(model)["missing_keys"]
    return missing if all(name.endswith("_API_KEY") for name in missing) else []


def _router_id(model: str) -> str:
    """Write LiteLLM's `provider/organisation/model` as the router's `organisation/model:provider`."""
    provider, *rest = model.split("/")
    return f"{'/'.join(rest)}:{provider}" if len(rest) == 2 else model


def _has_provider(model: str) -> bool:
    """Tell whether a model's id begins with a provider that LiteLLM knows; its name for Hugging Face is not used."""
    prefix, slash, _ = model.partition("/")
    if not slash or prefix in ORGANISATIONS or model.startswith(HUGGING_FACE):
        return False
    use_local_prices()
    require("litellm")
    import litellm

    return prefix in {str(getattr(one, "value", one)) for one in litellm.provider_list}


def _with_provider(model: str) -> str:
    """Name the provider of a bare id on LiteLLM's list ("gpt-5"): those of Hugging Face's router have a slash."""
    if "/" in model:
        return model
    use_local_prices()
    require("litellm")
    import litellm

    provider = litellm.model_cost.get(model, {}).get("litellm_provider", "")
    return f"{provider}/{model}" if _has_provider(f"{provider}/") else model


def _address_of(model: str, api_base: str | None) -> str:
    """Return the server's address where it is not the provider's default."""
    provider = model.split("/")[0].removesuffix("_chat").upper()
    own = os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")
    return (api_base or own or "").rstrip("/")


def _rollout_id(address: str, seed: int | None) -> int | None:
    """Return a cache key that tells requests to other addresses or with other seeds apart.

    DSPy's cache leaves the address out of its keys; `rollout_id` is in them, and is not sent.
    """
    if not address and seed is None:
        return None
    digest = hashlib.sha256(json.dumps([address, seed]).encode()).digest()
    return int.from_bytes(digest[:6])


def use_local_prices() -> None:
    """Make LiteLLM use its bundled price list; call before importing it, as it fetches one then."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def use_reply_cache(folder: str | Path | None = None) -> Path:
    """Have DSPy keep the replies of all models in a folder, in place of its own cache, and return their file.

    The command line does so; in a notebook, where DSPy's settings are the user's, it is for the user to call. None is
    DSPy's own setting DSPY_CACHEDIR, or `replies` in the cache folder. Where the file cannot be read or written,
    replies are remembered until the process ends.
    """
    import dspy

    file = (replies_folder() if folder is None else Path(folder).expanduser()) / REPLIES
    cache = dspy.clients.Cache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=None)
    cache.disk_cache, cache.enable_disk_cache = ReplyCache(file, dspy.__version__), True
    dspy.cache = cache
    return file


def replies_folder() -> Path:
    """Return the default folder of replies, see `use_reply_cache`."""
    return Path(os.environ.get("DSPY_CACHEDIR") or cache_folder() / "replies")


class ReplyCache:
    """Replies on disk by the hash of their request, in DSPy's protocol; threads and processes may share the file.

    No method fails: a reply that cannot be read is requested again, and one that cannot be written is not kept, with
    one warning.
    """

    def __init__(self, file: Path, version: str, most: int = MAX_REPLIES) -> None:
        """Name the SQLite file, which need not exist; replies that another version of DSPy wrote are not read."""
        self._file, self._version, self._most = file, version, most
        self._written, self._has_warned = 0, False

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> Any:
        """Return the reply to a request, or None if there is none."""
        reply = self._try(lambda connection: self._read(connection, key)) if self._file.is_file() else None
        if reply is not None:  # the time of use only decides what is dropped first: no waiting for other writers
            with suppress(sqlite3.Error), closing(connect_to_write(self._file, 0)) as connection:
                connection.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), self._row_key(key)))
        return reply

    def set(self, key: str, reply: Any) -> None:
        """Store the reply to a request."""
        self._try(lambda connection: self._write(connection, key, reply))

    def delete(self, key: str) -> None:
        """Forget a reply."""
        self._try(lambda connection: connection.execute("DELETE FROM replies WHERE key = ?", (self._row_key(key),)))

    def _row_key(self, key: str) -> str:
        return f"{self._version} {key}"

    def _read(self, connection: sqlite3.Connection, key: str) -> Any:
        row = connection.execute("SELECT reply FROM replies WHERE key = ?", (self._row_key(key),)).fetchone()
        return None if row is None else _loaded(row[0])

    def _write(self, connection: sqlite3.Connection, key: str, reply: Any) -> None:
        connection.execute(CACHE_SCHEMA)
        with transaction(connection):
            # DSPy's replies are plain values, LiteLLM's are pydantic models.
            plain = {LITELLM: reply.model_dump(mode="json")} if hasattr(reply, "model_dump") else reply
            row = (self._row_key(key), time.time(), json.dumps(plain, ensure_ascii=False))
            connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", row)
            if self._written % FORGET_EVERY == 0:
                old = "SELECT key FROM replies ORDER BY used DESC LIMIT -1 OFFSET ?"
                connection.execute(f"DELETE FROM replies WHERE key IN ({old})", (self._most,))  # noqa: S608
        self._written += 1

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(connect_as_allowed(self._file, PATIENCE_SECONDS)) as connection:
                return work(connection)
        # The file may hold anything: JSON that is no reply, or nested too deeply to parse.
        except (OSError, sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            if not self._has_warned:
                logger.warning("replies are not kept in %s (%s); if it is damaged, delete it", self._file, error)
            self._has_warned = True
            return None


class ReplyJournal:
    """Replies paid for by one deep read, kept until it ends: an attempt that resumes it replays each of them once.

    Nothing is dropped before the end. A request made twice has two replies, replayed in the order they came. Threads
    and processes may share the file.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, or create it in a folder that exists; a damaged one is emptied, with a warning.

        Raises:
            OSError: If it cannot be read and written.
        """
        self._file = file
        self._next: dict[str, int] = {}  # by key: number of the next reply to replay
        self._lock = threading.Lock()
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE))
        try:
            self._execute(JOURNAL_SCHEMA)
        except sqlite3.OperationalError as error:  # such as a full disk, or another process's lock
            raise OSError(f"cannot keep replies in {file}: {error}") from error
        except sqlite3.DatabaseError as error:
            logger.warning("%s is damaged (%s); its replies are asked for again", file, error)
            os.truncate(file, 0)
            self._execute(JOURNAL_SCHEMA)

    def take(self, key: str) -> dict[str, Any] | None:
        """Return the next stored reply to a request, or None if this attempt has replayed all of them."""
        look_up = "SELECT number, reply FROM replies WHERE key = ? AND number >= ? ORDER BY number"
        with self._lock:
            for number, text in self._try(look_up, key, self._next.get(key, 0)):
                self._next[key] = number + 1
                if (reply := _object(text)) is not None:
                    return reply
            return None

    def keep(self, key: str, reply: dict[str, Any]) -> None:
        """Store a new reply; it is on the disk when this returns, or a warning is logged."""
        add = "INSERT INTO replies SELECT ?, coalesce(max(number) + 1, 0), ? FROM replies WHERE key = ?"
        with self._lock:
            for (number,) in self._try(f"{add} RETURNING number", key, json.dumps(reply), key):
                self._next[key] = number + 1

    def _try(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._execute(statement, *values)
        except sqlite3.Error as error:  # the deep read goes on, and pays again if it is interrupted
            logger.warning("replies are not kept in %s (%s)", self._file, error)
            return []

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        # A connection each: threads of an interrupted attempt may still bring replies that were paid for.
        with closing(connect_to_write(self._file, PATIENCE_SECONDS, create=False)) as connection:
            return connection.execute(statement, values).fetchall()


def _object(text: Any) -> dict[str, Any] | None:
    """Parse a journalled reply; None if it is damaged."""
    try:
        reply = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = isinstance(reply, dict) and isinstance(reply.get("text"), str) and isinstance(reply.get("cut_off"), bool)
    return reply if whole else None


def _loaded(text: str) -> Any:
    plain = json.loads(text)
    if not isinstance(plain, dict) or not {LITELLM, DSPY} & plain.keys():
        raise ValueError(f"not a reply: {text[:60]!r}")
    if DSPY in plain:
        return plain
    from litellm import ModelResponse

    return ModelResponse(**plain[LITELLM])
