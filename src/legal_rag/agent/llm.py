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
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import dspy

logger = logging.getLogger(__name__)


DEFAULT_MODEL = "mistralai/Magistral-Small-2509"
SCHEMES = ("http://", "https://")
PROVIDERS = ("anthropic/", "gemini/", "mistral/", "ollama_chat/")  # LiteLLM finds their keys and addresses itself
SEEDLESS = ("anthropic/",)  # refuse a request with a seed


def build_language_model(
    student_model: str | None = None,
    api_key: str | None = None,
    api_base: str | None = None,
    max_tokens: int = 8000,
    temperature: float = 0.2,
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
        student_model: A model id; with a provider before it (`openai/…`, `huggingface/…`) it is taken as LiteLLM's.
            None reads GENERATOR_MODEL_ID, else takes the default model.
        api_key: None reads GENERATOR_API_KEY, then HF_TOKEN for the Hugging Face router.
        api_base: Address of an OpenAI-compatible server; None reads GENERATOR_API_BASE, and without one the
            Hugging Face router is asked.
        max_tokens: Of each reply.
        temperature: 0 to 2.
        timeout: Seconds that a request may take.
        num_retries: Further attempts after a failed request.
        cache: Take the reply to a request that was answered before from DSPy's cache.
        seed: Distinguishes requests in the cache; also sent to the server, which may make its replies repeatable.

    Raises:
        ValueError: If the address is not a URL.
    """
    use_local_prices()
    import dspy

    model = student_model or os.environ.get("GENERATOR_MODEL_ID") or DEFAULT_MODEL
    api_base = api_base or os.environ.get("GENERATOR_API_BASE") or None
    api_key = api_key or os.environ.get("GENERATOR_API_KEY") or None
    if api_base:
        if not api_base.startswith(SCHEMES):
            raise ValueError(f"invalid api_base {api_base!r} (expected a URL such as 'http://127.0.0.1:8000/v1')")
        model = model if model.startswith("openai/") else f"openai/{model}"
        api_key = api_key or "none"  # servers of one's own mostly ask for no key, but the client wants one
    elif not model.startswith(("huggingface/", "openai/", *PROVIDERS)):
        model = f"huggingface/{model}"
        api_key = api_key or os.environ.get("HF_TOKEN") or None
    if cache and temperature == 0:  # DSPy warns that rollout_id does not change replies, which is not its purpose
        warnings.filterwarnings("ignore", message="rollout_id has no effect when temperature=0")
    return dspy.LM(
        model,
        api_key=api_key,
        api_base=api_base,
        max_tokens=max_tokens,
        temperature=temperature,
        timeout=timeout,
        num_retries=num_retries,
        cache=cache,
        rollout_id=_rollout_id(_address_of(model, api_base), seed) if cache else None,
        **({} if seed is None or model.startswith(SEEDLESS) else {"seed": seed}),
    )


def has_endpoint(api_key: str | None = None, api_base: str | None = None, model: str | None = None) -> bool:
    """Tell whether a model can be asked: by a key, an address, or a provider that LiteLLM knows how to reach.

    HF_TOKEN, which other tools set for downloads, counts only where a model is named: by `model` or GENERATOR_MODEL_ID.
    """
    named = model or os.environ.get("GENERATOR_MODEL_ID") or ""
    if named.startswith(PROVIDERS):
        return True
    names = ("GENERATOR_API_BASE", "GENERATOR_API_KEY", *(["HF_TOKEN"] if named else []))
    return bool(api_key or api_base or any(os.environ.get(name) for name in names))


def _address_of(model: str, api_base: str | None) -> str:
    """Return the server's address where it is not the provider's default."""
    provider = model.split("/")[0].removesuffix("_chat").upper()
    own = os.environ.get(f"{provider}_API_BASE") or os.environ.get(f"{provider}_BASE_URL")
    return (api_base or own or "").rstrip("/")


def _rollout_id(address: str, seed: int | None) -> int | None:
    """Return a cache key that tells requests to other addresses or with other seeds apart.

    DSPy's cache leaves the address out of its keys: two servers with one model name would give each other's replies.
    `rollout_id` is in the keys, and is not sent.
    """
    if not address and seed is None:
        return None
    digest = hashlib.sha256(json.dumps([address, seed]).encode()).digest()
    return int.from_bytes(digest[:6])


def use_local_prices() -> None:
    """Make LiteLLM use its bundled price list; call before importing it, as it fetches one then."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


T = TypeVar("T")

REPLIES = "replies.sqlite"
MOST_REPLIES = 20_000  # kept on disk, of some kilobytes each; what was not asked for longest goes
FORGET_EVERY = 500  # replies written by one process between two looks at how many there are
PATIENCE_SECONDS = 5.0  # that a write waits for another process's
SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, used REAL NOT NULL, reply TEXT NOT NULL)"
RUN_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT, number INTEGER, reply TEXT NOT NULL, PRIMARY KEY (key, number))"
)
PRIVATE = 0o600
DSPY = "_dspy_format"  # marks what DSPy writes down itself
LITELLM = "litellm_reply"  # marks what LiteLLM gave, which comes back as an object of its own


def use_reply_cache(folder: str | Path | None = None) -> Path:
    """Have DSPy keep the replies of all models in this process here, in place of its own cache.

    The command line does so; in a notebook, where DSPy's settings are the user's, it is for the user to call.

    Args:
        folder: Where the replies lie; None takes `replies_folder()`.

    Returns:
        The file they lie in. Where it cannot be read or written, replies are remembered until the process ends.
    """
    import dspy

    file = (replies_folder() if folder is None else Path(folder).expanduser()) / REPLIES
    cache = dspy.clients.Cache(enable_disk_cache=False, enable_memory_cache=True, disk_cache_dir=None)
    cache.disk_cache, cache.enable_disk_cache = Replies(file, dspy.__version__), True
    dspy.cache = cache
    return file


def replies_folder() -> Path:
    """Return the folder that replies lie in: DSPy's own setting DSPY_CACHEDIR, or one in the cache folder."""
    from legal_rag.files import cache_folder

    return Path(os.environ.get("DSPY_CACHEDIR") or cache_folder() / "replies")


class Replies:
    """Replies on disk by the hash of their request, for any number of threads and processes.

    Nothing of it ever fails: a reply that cannot be read is asked for again, and one that cannot be written is not
    kept, which is told once.
    """

    def __init__(self, file: Path, version: str, most: int = MOST_REPLIES) -> None:
        """Name the file, which need not exist.

        Args:
            file: An SQLite file.
            version: Of DSPy: what one version wrote, another need not understand.
            most: Replies kept.
        """
        self._file, self._version, self._most = file, version, most
        self._written, self._told = 0, False

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> Any:
        """Return the reply to a request, or None if there is none."""
        if not self._file.is_file():
            return None
        reply = self._try(lambda connection: self._read(connection, key), self._connect_to_read)
        if reply is not None:
            self._touch(key)
        return reply

    def set(self, key: str, reply: Any) -> None:
        """Keep the reply to a request."""
        self._try(lambda connection: self._write(connection, key, reply))

    def delete(self, key: str) -> None:
        """Forget a reply."""
        self._try(lambda connection: connection.execute("DELETE FROM replies WHERE key = ?", (self._named(key),)))

    def _named(self, key: str) -> str:
        return f"{self._version} {key}"

    def _read(self, connection: sqlite3.Connection, key: str) -> Any:
        row = connection.execute("SELECT reply FROM replies WHERE key = ?", (self._named(key),)).fetchone()
        return None if row is None else _loaded(row[0])

    def _touch(self, key: str) -> None:
        """Note the time of use, which only decides what is dropped first: never waits, and may fail."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._file, timeout=0)) as connection, connection:
            connection.execute("UPDATE replies SET used = ? WHERE key = ?", (time.time(), self._named(key)))

    def _write(self, connection: sqlite3.Connection, key: str, reply: Any) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (self._named(key), time.time(), _dumped(reply))
        )
        if self._written % FORGET_EVERY == 0:
            old = "SELECT key FROM replies ORDER BY used DESC LIMIT -1 OFFSET ?"
            connection.execute(f"DELETE FROM replies WHERE key IN ({old})", (self._most,))  # noqa: S608
        self._written += 1

    def _connect_to_read(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._file.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE_SECONDS)

    def _connect_to_write(self) -> sqlite3.Connection:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._file, timeout=PATIENCE_SECONDS)
        connection.execute(SCHEMA)
        return connection

    def _try(
        self, work: Callable[[sqlite3.Connection], T], connect: Callable[[], sqlite3.Connection] | None = None
    ) -> T | None:
        try:
            with closing((connect or self._connect_to_write)()) as connection, connection:
                return work(connection)
        except (
            OSError,
            sqlite3.Error,
            ValueError,
            TypeError,
            RecursionError,
        ) as error:  # what lies there may be anything
            if not self._told:
                logger.warning("replies are not kept in %s (%s); if it is damaged, delete it", self._file, error)
            self._told = True
            return None


class RunReplies:
    """Replies paid for by one run, kept until it ends however it was interrupted, each given once per attempt.

    The file belongs to the run alone, so that nothing is dropped from it before the run has ended. The same request
    made twice has two replies, which are given in the order they came. Threads and processes may share the file.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, or begin it; its folder exists. One that is damaged is begun anew, with a warning.

        Raises:
            OSError: If it cannot be read and written.
        """
        self._file = file
        self._given: dict[str, int] = {}  # by key: number of the next reply to give
        self._lock = threading.Lock()
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE))
        try:
            self._execute(RUN_SCHEMA)
        except sqlite3.OperationalError as error:  # such as a full disk, or another process that does not let go
            raise OSError(f"cannot keep replies in {file}: {error}") from error
        except sqlite3.DatabaseError as error:
            logger.warning("%s is damaged (%s); its replies are asked for again", file, error)
            os.truncate(file, 0)
            self._execute(RUN_SCHEMA)

    def take(self, key: str) -> dict[str, Any] | None:
        """Return the next stored reply to a request, or None if all were given in this attempt."""
        look_up = "SELECT number, reply FROM replies WHERE key = ? AND number >= ? ORDER BY number"
        with self._lock:
            for number, text in self._try(look_up, key, self._given.get(key, 0)):
                self._given[key] = number + 1
                if (reply := _object(text)) is not None:
                    return reply
            return None

    def keep(self, key: str, reply: dict[str, Any]) -> None:
        """Store a reply, which was just given; it is on the disk when this returns, or a warning is logged."""
        add = (
            "INSERT INTO replies SELECT ?, coalesce(max(number) + 1, 0), ? FROM replies WHERE key = ? RETURNING number"
        )
        with self._lock:
            for (number,) in self._try(add, key, json.dumps(reply), key):
                self._given[key] = number + 1

    def _try(self, statement: str, *values: Any) -> list[Any]:
        try:
            return self._execute(statement, *values)
        except sqlite3.Error as error:  # the run goes on, and pays again where it is interrupted
            logger.warning("replies are not kept in %s (%s)", self._file, error)
            return []

    def _execute(self, statement: str, *values: Any) -> list[Any]:
        # A connection each time: threads of a run that was interrupted may still bring replies that were paid for.
        address = f"{self._file.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE_SECONDS)) as connection, connection:
            return connection.execute(statement, values).fetchall()


def _object(text: Any) -> dict[str, Any] | None:
    """Return a stored reply, or None if it is damaged."""
    try:
        reply = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = isinstance(reply, dict) and isinstance(reply.get("text"), str) and isinstance(reply.get("cut_off"), bool)
    return reply if whole else None


def _dumped(reply: Any) -> str:
    """Write a reply down: DSPy's are plain values, LiteLLM's are pydantic models."""
    plain = {LITELLM: reply.model_dump(mode="json")} if hasattr(reply, "model_dump") else reply
    return json.dumps(plain, ensure_ascii=False)


def _loaded(text: str) -> Any:
    plain = json.loads(text)
    if not isinstance(plain, dict) or not {LITELLM, DSPY} & plain.keys():
        raise ValueError(f"not a reply: {text[:60]!r}")
    if DSPY in plain:
        return plain
    from litellm import ModelResponse

    return ModelResponse(**plain[LITELLM])
