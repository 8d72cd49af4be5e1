"""One request to a model's server: one deadline for the whole reply, bounds on its size and form, keys masked."""

import json
import logging
import os
import re
import threading
import urllib.request
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import httpcore

from legal_rag.base import deadline
from legal_rag.base.text import storable
from legal_rag.llm.models import (
    Completion,
    Endpoint,
    Message,
    ModelError,
    Usage,
    is_reasoning,
    tokens_in,
    told_windows,
    window_of,
)

logger = logging.getLogger(__name__)

MAX_BODY = 4_000_000  # bytes of a reply, decompressed
MAX_ERROR = 65_536  # bytes read of a reply that says what went wrong
MAX_VALUES = 200_000  # commas and opening brackets of a reply: the memory that decoding takes grows with them
MAX_TEXT, MAX_MESSAGE = 200_000, 2_000  # characters kept of a model's text, and of an error's
MAX_TOKENS = 10**7  # believed of a reply's usage: no model reads or writes more at once
LONGEST_WAIT = 3_600.0  # seconds that a server may ask to wait
CONNECT_SECONDS = 10.0
OPTIONAL = ("seed", "temperature", "response_format", "max_tokens", "max_completion_tokens", "stop", "top_p")
_KINDS = {401: "auth", 402: "billing", 403: "auth", 404: "unknown model", 408: "timeout", 409: "server",
          413: "context", 425: "server", 429: "rate limit"}  # fmt: skip
_CODES = {"insufficient_quota": "billing", "invalid_api_key": "auth", "model_not_found": "unknown model"}
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|prompt is too long|too many (?:input )?tokens", re.IGNORECASE
)
_WINDOW = re.compile(r"(?:context length is|context size \(|context window (?:is|of)|tokens >)\s*(\d[\d,]{2,12})")
_refused: dict[tuple[str, str], set[str]] = {}  # parameters that servers refused, by address and model


def complete(endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
    """Ask a server once, within the endpoint's timeout and the deadline around the call.

    Parameters that the server refuses by name are left out from then on. Where it says how large its window is, the
    reply may be as long as there is room.

    Raises:
        ModelError: If there is no reply, or none that can be used.
    """
    if endpoint.key_variable:
        raise ModelError("configuration", endpoint.key_variable)
    place, keys = (endpoint.api_base, endpoint.model), keys_of_environment() | {endpoint.api_key}
    refused = _refused.setdefault(place, set())
    asked = _request_body(endpoint, messages, refused)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "legal-rag"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    sent = json.dumps(asked, ensure_ascii=False).encode()
    try:
        with deadline.within(endpoint.timeout):
            reply = _posted(f"{endpoint.api_base}/chat/completions", headers, sent, keys)
        return _completion(reply, messages, keys)
    except ModelError as error:
        named = {name for name in OPTIONAL if name in asked and name in error.said}
        if error.kind == "request" and named:
            logger.warning("%s takes no %s: it is left out", endpoint.model, ", ".join(sorted(named)))
            refused |= named
            return complete(endpoint, messages)
        if error.kind == "context" and (match := _WINDOW.search(error.said)) and place not in told_windows:
            told_windows[place] = int(match[1].replace(",", ""))
            if tokens_in(messages) < told_windows[place]:  # then it was the length of the reply that was refused
                return complete(endpoint, messages)
        raise


def _request_body(endpoint: Endpoint, messages: Sequence[Message], refused: set[str]) -> dict[str, Any]:
    limit, window = endpoint.max_tokens, window_of(endpoint)
    if limit and window:
        limit = max(1, min(limit, window - tokens_in(messages)))
    body = {
        "model": endpoint.name,
        "messages": list(messages),
        "max_completion_tokens" if is_reasoning(endpoint.name) else "max_tokens": limit,
        "temperature": endpoint.temperature,
        "seed": endpoint.seed,
        **endpoint.extra,
    }
    return {name: value for name, value in body.items() if value is not None and name not in refused}


class _Reply(NamedTuple):
    status: int
    retry_after: float | None
    data: bytearray


def _posted(url: str, headers: Mapping[str, str], body: bytes, keys: frozenset[str]) -> _Reply:
    try:
        pool, wait = _connection_pool(os.getpid(), _proxy_for(url)), {"timeout": {"pool": _socket_timeout()}}
        written = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        with pool.stream("POST", url, headers=written, content=body, extensions=wait) as response:
            response_headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            most, data = (MAX_ERROR if response.status >= 400 else MAX_BODY), bytearray()
            for chunk in _decoded(response.iter_stream(), response_headers.get(b"content-encoding", ""), most + 1):
                data += chunk
                if len(data) > most:
                    break
    except (httpcore.TimeoutException, deadline.DeadlineError):
        raise ModelError("timeout") from None
    # No value is named: it may be a key.
    except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, ValueError):
        raise ModelError("configuration", "the key or the address has characters that HTTP does not take") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        raise ModelError("transport", mask_keys(str(error)[:MAX_MESSAGE], keys)) from None
    if response.status < 400 and len(data) > most:
        raise ModelError("unreadable", f"more than {most:,} bytes")
    return _Reply(response.status, _wait_in(response_headers.get(b"retry-after", "")), data)


def _decoded(chunks: Iterable[bytes], coding: str, most: int) -> Iterator[bytes]:
    """Decompress a body; each part has at most `most` bytes."""
    if coding in ("", "identity"):
        yield from chunks
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ModelError("unreadable", f"compressed by {coding[:60]!r}, which was not asked for")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        for chunk in chunks:
            yield inflater.decompress(chunk, most)
    except zlib.error as error:
        raise ModelError("unreadable", f"not compressed as it says: {error}") from None


def _completion(reply: _Reply, messages: Sequence[Message], keys: frozenset[str]) -> Completion:
    if sum(map(reply.data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ModelError("unreadable", f"more than {MAX_VALUES:,} values")
    text = reply.data.decode("utf-8-sig", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a number may be too long, brackets too deep
        value = None
    if not 200 <= reply.status < 300 or (isinstance(value, dict) and "error" in value and "choices" not in value):
        raise _failure(reply, value, text, keys)
    try:
        choice, usage = value["choices"][0], value.get("usage")
        content = choice["message"].get("content")
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if part.get("type") == "text")
        answer = sanitized(content or "", keys)
    except (LookupError, TypeError, AttributeError):
        raise ModelError("server", f"no completion: {mask_keys(text[:200], keys)!r}") from None
    usage = usage if isinstance(usage, dict) else {}
    read = _check_token_count(usage.get("prompt_tokens"), tokens_in(messages))
    written = _check_token_count(usage.get("completion_tokens"), tokens_in(answer))
    return Completion(answer, Usage(1, 0, read, written), cut_off=choice.get("finish_reason") == "length")


def _check_token_count(reported: Any, estimated: int) -> int:
    is_sound = isinstance(reported, int) and not isinstance(reported, bool) and 0 <= reported <= MAX_TOKENS
    return reported if is_sound else estimated


def _failure(reply: _Reply, value: Any, text: str, keys: frozenset[str]) -> ModelError:
    error = value.get("error") if isinstance(value, dict) else None
    error = error if isinstance(error, dict) else {"message": error}
    detail = str(error.get("message") or text)[:MAX_MESSAGE]
    detail = mask_keys(storable(" ".join(detail.split())), keys)
    code, status = error.get("code"), reply.status
    if status < 400 and isinstance(code, int) and 400 <= code < 600:  # some gateways send errors as successes
        status = code
    if 300 <= status < 400:
        kind = "redirect"
    elif isinstance(code, str) and code in _CODES:
        kind = _CODES[code]
    else:
        kind = _KINDS.get(status) or ("request" if 400 <= status < 500 else "server")
        if kind == "request" and (_TOO_LONG.search(detail) or code == "context_length_exceeded"):
            kind = "context"
    return ModelError(kind, detail, status=status, retry_after=reply.retry_after)


def _wait_in(after: str) -> float | None:
    return min(float(after), LONGEST_WAIT) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", after, re.ASCII) else None


# --- connections


class _Stream(httpcore.NetworkStream):
    """Connection whose timeouts end at the deadline around the call."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _socket_timeout())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _socket_timeout())

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _socket_timeout()))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Network(httpcore.SyncBackend):
    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *rest: Any, **more: Any) -> Any:
        most = min(_socket_timeout() or CONNECT_SECONDS, CONNECT_SECONDS)
        return _Stream(super().connect_tcp(host, port, most, *rest, **more))


def _socket_timeout() -> float | None:
    """Return the seconds until the deadline; None if a socket cannot wait that long."""
    deadline.check()
    left = deadline.seconds_left()
    return left if left < threading.TIMEOUT_MAX else None


@cache
def _connection_pool(_process: int, proxy: str | None) -> httpcore.ConnectionPool:
    """Return the connections of this process, which are kept for further requests."""
    settings: dict[str, Any] = {
        "ssl_context": httpcore.default_ssl_context(),
        "max_connections": None,
        "max_keepalive_connections": 16,
        "keepalive_expiry": 60.0,
        "network_backend": _Network(),
    }
    if proxy is None:
        return httpcore.ConnectionPool(**settings)
    target = urlsplit(proxy)
    login = (unquote(target.username), unquote(target.password or "")) if target.username else None
    return httpcore.HTTPProxy(f"{target.scheme}://{target.netloc.rpartition('@')[2]}", proxy_auth=login, **settings)


def _proxy_for(url: str) -> str | None:
    target, proxies = urlsplit(url), urllib.request.getproxies()
    if not proxies or urllib.request.proxy_bypass(target.netloc.rpartition("@")[2]):
        return None
    proxy = proxies.get(target.scheme) or proxies.get("all")
    return (proxy if "://" in proxy else f"http://{proxy}") if proxy else None


# --- keys

MASK = "[clé masquée]"
# Ends of the names of variables that hold keys.
KEY_VARIABLES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_ACCESS_KEY", "_PASSWORD")

# Between two characters of a key that is spread out: spaces, marks of no width, line ends as JSON and URLs write them.
_GAP = r"(?:[\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\\{1,16}+[nrt]|%20|%0[9ad])*+"
_ESCAPE = re.compile(rb"%[0-9a-f]{2}|\\u00|&#|\\[nrt]")


def keys_of_environment() -> frozenset[str]:
    """Return the values of the process's variables that hold keys."""
    return frozenset(value for name, value in os.environ.items() if name.upper().endswith(KEY_VARIABLES))


def sanitized(text: str, keys: Iterable[str]) -> str:
    """Return a model's text as the rest of the package may use it: cut to `MAX_TEXT`, storable, without keys."""
    return mask_keys(storable(text[:MAX_TEXT]), keys)


def mask_keys(text: str, keys: Iterable[str]) -> str:
    """Replace keys in a text by `MASK`.

    A key is found as it is; URL-encoded, as HTML or JSON escapes (nested ones too), with spaces or marks of no width
    between its characters; backwards; in base64 and in hexadecimal, also within a longer text so encoded.
    """
    secrets = frozenset(filter(_is_key, keys))
    if not secrets:
        return text
    pattern, forms = _search_for(secrets)
    plain = text.encode("ascii", "ignore").translate(None, b" \t\r\n\v\f").lower()  # rules most texts out quickly
    return pattern.sub(MASK, text) if _ESCAPE.search(plain) or any(form in plain for form in forms) else text


def _is_key(text: str) -> bool:
    """Tell keys from placeholders, which occur in ordinary text: "none", "EMPTY", "placeholder", "********"."""
    return len(text) >= (20 if text.isalpha() else 8) and len(set(text)) >= 4


@lru_cache(maxsize=32)
def _search_for(keys: frozenset[str]) -> tuple[re.Pattern[str], tuple[bytes, ...]]:
    """Return a pattern of keys in all forms, and substrings that any text it matches has, blanks aside."""
    forms = [form for key in sorted(keys, key=len, reverse=True) for form in _forms(key)]
    pattern = "|".join(_GAP.join(map(_sign, form)) for form in forms)
    return re.compile(pattern), tuple(form.encode("ascii", "ignore").lower() for form in forms)


def _forms(key: str) -> Iterator[str]:
    data = key.encode()
    yield from (key, key[::-1], data.hex(), data.hex().upper())
    for before in range(3):  # base64 of a longer text holds a key in three ways: less the signs it shares with others
        first, last = -(-8 * before // 6), (8 * (before + len(data))) // 6
        core = b64encode(bytes(before) + data + bytes(2)).decode()[first:last]
        yield from {core, core.translate(str.maketrans("+/", "-_"))}


def _sign(sign: str) -> str:
    coded = "".join(f"%{byte:02x}" for byte in sign.encode())
    if sign.isascii():
        number = ord(sign)
        coded += rf"|(?<!\\)\\{{1,16}}+u00{number:02x}|&#0{{0,5}}+{number};|&#x0{{0,5}}+{number:x};"
    return f"(?:{re.escape(sign)}|(?i:{coded}))"
