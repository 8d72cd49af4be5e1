"""Replies: stored by the hash of their request; tolerant parsing."""

import hashlib
import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from legal_rag.base.files import cache_folder
from legal_rag.base.sqlite import connect_as_allowed, transaction
from legal_rag.base.text import json_safe
from legal_rag.llm.models import Completion, Endpoint, Message, Usage

logger = logging.getLogger(__name__)

REPLIES = "replies.sqlite"  # in the folder that DSPy's own variable names, else the cache folder
MAX_REPLIES = 20_000  # kept, of some kilobytes each; the oldest go
FORGET_EVERY = 500  # replies written by one process between two checks of how many there are
PATIENCE_SECONDS = 5.0  # that a write waits for another process's
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, used REAL NOT NULL, text TEXT NOT NULL, cut_off INTEGER)"
)
MAX_REPAIR = 1_000_000  # characters times brackets left open: json_repair may take a second or two for so much
FIELD_MARK = re.compile(r"\[\[ ## \w+ ## \]\]")
_FENCED = re.compile(
    r"\s*(?P<mark>`{3,}|~{3,})[\w+-]*[ \t]*\n(?P<text>.*?)(?:(?:\n|(?<=\n))[ \t]*(?P=mark)[ \t]*)?\s*", re.DOTALL
)
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_THOUGHT_TAG = re.compile(r"(</?think(?:ing)?>|\[/?THINK\])", re.IGNORECASE)

T = TypeVar("T")


def request_key(model: Endpoint, messages: Sequence[Message], attempt: int = 0) -> str:
    """Return the hash of a request; `attempt` tells deliberate repetitions of one apart."""
    turns = [(message["role"], message["content"]) for message in messages]
    request = [model.model, model.api_base, model.sampling, turns, attempt]
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


class ReplyStore:
    """Replies on disk by the hash of their request, the oldest dropped; threads and processes share it.

    No method fails: a reply that cannot be read is asked for again, one that cannot be written is not kept, with one
    warning.
    """

    def __init__(self, file: Path | None = None, most: int = MAX_REPLIES) -> None:
        """Name the SQLite file, which need not exist; None is that of DSPY_CACHEDIR or the cache folder."""
        self._file, self._most = file, most
        self._written, self._has_warned = 0, False

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self._file or Path(os.environ.get("DSPY_CACHEDIR") or cache_folder()) / REPLIES

    def get(self, key: str) -> Completion | None:
        """Return the reply to a request, or None."""
        select = "SELECT text, cut_off FROM replies WHERE key = ?"
        row = self._try(lambda db: db.execute(select, (key,)).fetchone()) if self.file.is_file() else None
        return row and Completion(without_thoughts(row[0]), Usage(cached=1), cut_off=bool(row[1]))

    def put(self, key: str, reply: Completion) -> None:
        """Store the reply to a request."""
        self._try(lambda db: self._insert_row(db, (key, time.time(), reply.text, reply.cut_off)))

    def forget(self, keys: Sequence[str]) -> None:
        """Delete the replies to requests."""
        self._try(lambda db: self._delete_rows(db, keys))

    def _delete_rows(self, connection: sqlite3.Connection, keys: Sequence[str]) -> None:
        connection.execute(SCHEMA)
        with transaction(connection):
            connection.executemany("DELETE FROM replies WHERE key = ?", [(key,) for key in keys])

    def _insert_row(self, connection: sqlite3.Connection, row: tuple[Any, ...]) -> None:
        connection.execute(SCHEMA)
        with transaction(connection):
            connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", row)
            if self._written % FORGET_EVERY == 0:
                old = "SELECT key FROM replies ORDER BY used DESC LIMIT -1 OFFSET ?"
                connection.execute(f"DELETE FROM replies WHERE key IN ({old})", (self._most,))  # noqa: S608
        self._written += 1

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with closing(connect_as_allowed(self.file, PATIENCE_SECONDS)) as connection:
                return work(connection)
        except (OSError, sqlite3.Error) as error:
            if not self._has_warned:
                logger.warning("replies are not kept in %s (%s); if it is damaged, delete it", self.file, error)
            self._has_warned = True
            return None


def unfenced(text: str) -> str:
    """Strip the code fence around a whole text, also one that is never closed; fences within a text are part of it."""
    fenced = _FENCED.fullmatch(text)
    return fenced["text"].strip() if fenced and not _FENCE_LINE.search(fenced["text"]) else text


def json_in(text: str, *, repair: bool = True) -> dict[str, Any] | list[Any] | None:
    """Return the first JSON object or list of a reply, field marks and fences aside; None without one.

    What is nearly JSON is repaired (json_repair), unless that would take seconds: brackets left open cost the rest of
    the text each. Its texts can be stored: escapes may stand for characters that cannot.
    """
    text = FIELD_MARK.sub("", text)
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return None
    text = text[start:]
    try:
        return json_safe(json.JSONDecoder(strict=False).raw_decode(text)[0], keep_nan=True)
    except (ValueError, RecursionError):  # a number may be too long, brackets too deep
        if not repair or len(text) * (text.count("{") + text.count("[")) > MAX_REPAIR:
            return None
    import json_repair

    try:
        value = json_safe(json_repair.loads(text), keep_nan=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and value else None


def without_thoughts(text: str) -> str:
    """Strip reasoning between <think> and </think>; if it is never closed, a field begun within it is the reply."""
    reply, thinking, part = "", False, ""
    for part in _THOUGHT_TAG.split(text):
        if not _THOUGHT_TAG.fullmatch(part):
            reply += "" if thinking else part
        elif "/" not in part:
            thinking = True
        else:  # one that was never opened ends all before it
            reply, thinking = reply if thinking else "", False
    begun = FIELD_MARK.search(part) if thinking else None
    return reply + part[begun.start() :] if begun else reply
