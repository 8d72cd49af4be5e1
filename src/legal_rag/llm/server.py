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
    listed_window,
    tokens_in,
)

logger = logging.getLogger(__name__)

MAX_BODY = 4_000_000  # bytes of a reply, decompressed
MAX_ERROR = 65_536  # bytes read of a reply that says what went wrong
MAX_VALUES = 200_000  # commas and opening brackets of a reply: the memory that decoding takes grows with them
MAX_TEXT, MAX_MESSAGE = 200_000, 2_000  # characters kept of a model's text, and of an error's
MAX_TOKENS = 10**7  # believed of a reply's usage: no model reads or writes more at once
LONGEST_WAIT = 3_600.0  # seconds that a server may ask to wait
CONNECT_SECONDS, PROBE_SECONDS = 10.0, 2.0
SHORTEST_REPLY = 300  # tokens that a prompt must leave of a model's window
BLIND_REPLY = 1000  # tokens of a reply that is asked for again where nothing says how many there is room for
# Tokens of a prompt that is checked for whether it was read whole; a server that says fewer were read counts nothing.
CHECKED_PROMPT, LEAST_COUNTED = 1000, 100
CUT_IN_SILENCE = (
    "Le serveur de %s dit n'avoir lu que %d jetons d'une demande d'environ %d : il coupe sans doute en silence ce qui"
    " dépasse son contexte. Agrandissez celui-ci (Ollama : num_ctx), ou dites-le par --context-tokens."
)
OPTIONAL = ("seed", "temperature", "response_format", "max_tokens", "max_completion_tokens", "stop", "top_p")
_KINDS = {401: "auth", 402: "billing", 403: "auth", 404: "unknown model", 408: "server", 409: "server",
          413: "context", 425: "server", 429: "rate limit"}  # fmt: skip
_CODES = {"insufficient_quota": "billing", "invalid_api_key": "auth", "model_not_found": "unknown model"}
_COUNT = r"(\d[\d,]{0,12})"
# Words of a refusal because prompt and reply together, or the prompt alone, have more tokens than the model takes.
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|prompt (?:is )?too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|maximum (?:model|prompt|input) length|maximum number of tokens"
    r"|max_new_tokens. must be|must have less than \d+ tokens|input (?:is|was) too long|input tokens exceed"
    r"|reduce the length of",
    re.IGNORECASE,
)
# The window that such a refusal names, by preference.
_WINDOWS = tuple(
    re.compile(pattern.replace("N", _COUNT), re.IGNORECASE)
    for pattern in (
        r"context (?:length|size|window)(?: is| of|:)?(?: only)? \(?N",  # OpenAI, vLLM, SGLang, llama.cpp, LM Studio
        r"with N maximum context length",  # Mistral
        r"> N(?: maximum|, decrease)",  # Anthropic
        r"(?:must be <=|must have less than|cannot exceed) N",  # TGI, Together, Cohere
        r"maximum (?:number of tokens allowed|model length|prompt length)(?: of| is)? \(?N",  # Gemini, vLLM, xAI
        r"\blimit (?:is|of) N",  # Cerebras, OpenAI
    )
)
# How many tokens it says the prompt has.
_PROMPTS = tuple(
    re.compile(pattern.replace("N", _COUNT), re.IGNORECASE)
    for pattern in (
        r"N (?:tokens )?(?:in|from|of) (?:the (?:input )?messages|text input)",  # OpenAI, vLLM, SGLang, OpenRouter
        r"N `?inputs?`? tokens",  # vLLM, TGI
        r"(?:resulted in |contains |request \(|input \(|token count \()N",  # OpenAI, Mistral, llama.cpp, SGLang, Gemini
        r"(?:too long: |prompt \(length )N",  # Anthropic, vLLM
        r"N \+ \d+ >",  # Anthropic
    )
)
_refused: dict[tuple[str, str], set[str]] = {}  # parameters that servers refused, by address and model
_told_windows: dict[tuple[str, str], int] = {}  # that servers named when they refused a prompt, likewise
_served: dict[tuple[str, str], "Served"] = {}  # what servers said of themselves, likewise
_probing = threading.Lock()
_suspected: set[tuple[str, str]] = set()  # of cutting prompts, likewise


def complete(endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
    """Ask a server once, within the endpoint's timeout and the deadline around the call.

    Parameters that the server refuses, by name or by taking the request without them, are left out from then on. Where
    prompt and reply are too long together, the reply is asked for again in the tokens that the prompt leaves.
    ModelError if there is no reply, or none that can be used; of the kind "context" where the prompt is too long.
    """
    if endpoint.key_variable:
        raise ModelError("configuration", endpoint.key_variable)
    place = endpoint.api_base, endpoint.model
    refused = _refused.setdefault(place, set())
    body = _request_body(endpoint, messages, refused)
    try:
        return _reply_to(body, endpoint, messages)
    except ModelError as error:
        named = {name for name in OPTIONAL if name in body and name in error.said}
        if error.kind == "request" and named:
            logger.warning("%s takes no %s: it is left out", endpoint.model, ", ".join(sorted(named)))
            refused |= named
            return complete(endpoint, messages)
        if error.window:
            _told_windows[place] = error.window
        limit = _limit_name(endpoint)
        if error.kind == "context" and (room := _room_for_reply(error, endpoint, messages, body.get(limit))):
            return _reply_to({**body, limit: room}, endpoint, messages)
        if error.status not in (400, 422, 500) or error.kind == "context" or "response_format" not in body:
            raise
        may_break = error.status == 500  # a failure of another kind, or of one form: not the end of all forms
    body.pop("response_format")
    reply = _reply_to(body, endpoint, messages)
    if not may_break:
        logger.warning("%s takes no response_format: it is left out", endpoint.model)
        refused.add("response_format")
    return reply


def window_of(endpoint: Endpoint) -> int | None:
    """Return a model's context window: as set, as its server says, or as listed; None if unknown.

    A server of one's own is asked for it once.
    """
    told = _told_windows.get((endpoint.api_base, endpoint.model))
    return endpoint.window or told or served(endpoint).window or listed_window(endpoint.model)


class Served(NamedTuple):
    """What a server says of itself."""

    window: int | None = None  # tokens of a request, prompt and reply
    slots: int | None = None  # requests that it works on at once; further ones wait


def served(endpoint: Endpoint) -> Served:
    """Return what a server of one's own says of itself; it is asked once, by at most two requests."""
    place = endpoint.api_base, endpoint.model
    if not endpoint.is_own:
        return Served()
    with _probing:
        if place not in _served:
            answer = _probe(endpoint)
            if answer is None or deadline.seconds_left() <= 0:  # it may say more later
                return Served()
            _served[place] = answer
        return _served[place]


def _probe(endpoint: Endpoint) -> Served | None:
    """Ask a server by llama.cpp's /props, else by OpenAI's list of models; None if it is not there yet."""
    try:
        props = _fetched(f"{endpoint.api_base.removesuffix('/v1')}/props", endpoint)
        window, slots = _number_at(props, "default_generation_settings", "n_ctx"), _number_at(props, "total_slots")
        return Served(window or _listed_by(_fetched(f"{endpoint.api_base}/models", endpoint), endpoint.name), slots)
    except ModelError as error:
        return Served() if error.kind in ("timeout", "unreadable") else None


def _fetched(url: str, endpoint: Endpoint) -> Any:
    """Return the JSON at an address; None if there is none."""
    with deadline.within(PROBE_SECONDS):
        reply = _exchanged("GET", url, endpoint)
    text, value = _decoded_json(reply)
    if reply.status == 503:
        raise _failure(reply, value, text, _keys(endpoint))
    return value


def _listed_by(models: Any, name: str) -> int | None:
    """Return the window of a model in a server's list, not the one that it was trained with."""
    rows = models.get("data") if isinstance(models, dict) else None
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    row = next((row for row in rows if row.get("id") == name), rows[0] if len(rows) == 1 else {})
    names = (("max_model_len",), ("context_length",), ("context_window",), ("max_context_length",), ("meta", "n_ctx"))
    return next(filter(None, (_number_at(row, *path) for path in names)), None)


def _number_at(value: Any, *path: str) -> int | None:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if _check_token_count(value, 0) else None


def _room_for_reply(
    error: ModelError, endpoint: Endpoint, messages: Sequence[Message], asked: int | None
) -> int | None:
    """Return the tokens that the prompt leaves for a reply, if that is fewer than were asked for, and enough."""
    if (window := error.window or window_of(endpoint)) is None:
        return BLIND_REPLY if asked and asked > BLIND_REPLY else None
    room = window - (error.prompt_tokens or tokens_in(messages))
    is_enough = room >= min(SHORTEST_REPLY, asked or SHORTEST_REPLY)
    return room if is_enough and (asked is None or room < asked) else None


def _limit_name(endpoint: Endpoint) -> str:
    return "max_completion_tokens" if is_reasoning(endpoint.name) else "max_tokens"


def _request_body(endpoint: Endpoint, messages: Sequence[Message], refused: set[str]) -> dict[str, Any]:
    limit, window = endpoint.max_tokens, window_of(endpoint)
    if limit and window:
        limit = max(1, min(limit, window - tokens_in(messages)))
    body = {
        "model": endpoint.name,
        "messages": list(messages),
        _limit_name(endpoint): limit,
        "temperature": endpoint.temperature,
        "seed": endpoint.seed,
        **endpoint.extra,
    }
    return {name: value for name, value in body.items() if value is not None and name not in refused}


def _reply_to(body: Mapping[str, Any], endpoint: Endpoint, messages: Sequence[Message]) -> Completion:
    sent = json.dumps(body, ensure_ascii=False).encode()
    with deadline.within(endpoint.timeout):
        reply = _exchanged("POST", f"{endpoint.api_base}/chat/completions", endpoint, sent)
    return _completion(reply, messages, endpoint)


def _keys(endpoint: Endpoint) -> frozenset[str]:
    return keys_of_environment() | {endpoint.api_key}


class _Reply(NamedTuple):
    status: int
    retry_after: float | None
    data: bytearray


def _exchanged(method: str, url: str, endpoint: Endpoint, body: bytes | None = None) -> _Reply:
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "legal-rag"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    try:
        pool, wait = _connection_pool(os.getpid(), _proxy_for(url)), {"timeout": {"pool": _socket_timeout()}}
        written = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        with pool.stream(method, url, headers=written, content=body, extensions=wait) as response:
            response_headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            most, data = (MAX_ERROR if response.status >= 400 else MAX_BODY), bytearray()
            for chunk in _decoded(response.iter_stream(), response_headers.get(b"content-encoding", ""), most + 1):
                data += chunk
                if len(data) > most:
                    break
    except httpcore.ConnectTimeout:
        raise ModelError("transport" if deadline.seconds_left() > 0 else "timeout", "no connection in time") from None
    except (httpcore.TimeoutException, deadline.DeadlineError):
        raise ModelError("timeout") from None
    # No value is named: it may be a key.
    except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol, ValueError):
        raise ModelError("configuration", "the key or the address has characters that HTTP does not take") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
        raise ModelError("transport", mask_keys(str(error)[:MAX_MESSAGE], _keys(endpoint))) from None
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


def _decoded_json(reply: _Reply) -> tuple[str, Any]:
    """Return a body's text, and its value if it is JSON, else None."""
    if sum(map(reply.data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ModelError("unreadable", f"more than {MAX_VALUES:,} values")
    text = reply.data.decode("utf-8-sig", "replace")
    try:
        return text, json.loads(text)
    except (ValueError, RecursionError):  # a number may be too long, brackets too deep
        return text, None


def _completion(reply: _Reply, messages: Sequence[Message], endpoint: Endpoint) -> Completion:
    (text, value), keys = _decoded_json(reply), _keys(endpoint)
    if not 200 <= reply.status < 300 or (isinstance(value, dict) and "error" in value and "choices" not in value):
        raise _failure(reply, value, text, keys)
    try:
        choice, usage = value["choices"][0], value.get("usage")
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if part.get("type") == "text")
        if calls := message.get("tool_calls"):
            content = "\n".join(filter(None, [content, _written_calls(calls)]))
        answer = sanitized(content or "", keys)
    except (LookupError, TypeError, AttributeError):
        raise ModelError("server", f"no completion: {mask_keys(text[:200], keys)!r}") from None
    usage = usage if isinstance(usage, dict) else {}
    estimate = tokens_in(messages)
    read = _check_token_count(usage.get("prompt_tokens"), estimate)
    written = _check_token_count(usage.get("completion_tokens"), tokens_in(answer))
    cached = _number_at(usage, "prompt_tokens_details", "cached_tokens") or 0  # some servers do not count them as read
    if LEAST_COUNTED < read + cached < estimate / 2 and estimate > CHECKED_PROMPT:
        _warn_of_cut(endpoint, read + cached, estimate)
    # Where thoughts are sent apart from the text, their names differ.
    thinks = bool(
        message.get("reasoning_content")
        or message.get("reasoning")
        or _number_at(usage, "completion_tokens_details", "reasoning_tokens")
    )
    cut_off = choice.get("finish_reason") == "length"
    return Completion(answer, Usage(1, 0, read, written), cut_off=cut_off, thinks=thinks)


def _written_calls(calls: Sequence[Any]) -> str:
    """Write OpenAI's tool calls as one JSON object, as models without them write theirs."""
    functions = [call["function"] for call in calls]
    rows = [{"name": function["name"], "arguments": _arguments_of(function)} for function in functions]
    return json.dumps({"tool_calls": rows}, ensure_ascii=False)


def _arguments_of(function: Mapping[str, Any]) -> Any:
    arguments = function.get("arguments")
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _warn_of_cut(endpoint: Endpoint, read: int, estimate: int) -> None:
    place = endpoint.api_base, endpoint.model
    if place not in _suspected:
        _suspected.add(place)
        logger.warning(CUT_IN_SILENCE, endpoint.model, read, estimate)


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
        if status == 503 and "loading" in detail.lower():
            kind = "loading"
        if (kind == "request" or status == 500) and _TOO_LONG.search(f"{detail} {error.get('type')} {code}"):
            kind = "context"
    window = prompt_tokens = None
    if kind == "context":
        window = _number_at(error, "n_ctx") or _number_in(_WINDOWS, detail)
        prompt_tokens = _number_at(error, "n_prompt_tokens") or _number_in(_PROMPTS, detail)
    after = reply.retry_after
    return ModelError(kind, detail, status=status, retry_after=after, window=window, prompt_tokens=prompt_tokens)


def _number_in(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    match = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return int(match[1].replace(",", "")) if match else None


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
