"""Exchanges with the servers of language models: one deadline for a whole reply, whose size and form are bounded.

Whatever client asks a model is given `ModelConnections` by an adapter of its kind: `agent.bounded` for those of DSPy,
`extraction.langextract` for those of LangExtract. What reaches the client is a reply that was read whole, in time and
within bounds, with the keys of servers masked.
"""

import http.client
import io
import json
import math
import os
import re
import select
import socket
import ssl
import threading
import urllib.request
import weakref
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from legal_rag import deadline
from legal_rag.model_keys import keys_of_environment, mask_keys

MAX_BODY = 20_000_000  # bytes of a reply, decompressed
MAX_ERROR = 65_536  # bytes read of a reply that says what went wrong
MAX_OVERHEAD = 1_000_000  # bytes on the wire beside the body: status, headers, sizes of chunks
MAX_VALUES = 200_000  # of a JSON reply: numbers, texts, lists, objects
MAX_NESTING = 64
MAX_TEXT = 250_000  # characters kept of one text of a reply; of an error's, `MAX_MESSAGE`
MAX_MESSAGE = 2_000
MAX_CHOICES = 16  # kept of a reply; one is asked for
MAX_TOKENS = 10**7  # believed of a reply's usage: no model reads or writes more at once
MAX_NUMBER = 10**15
LONGEST_WAIT = 3_600.0  # seconds that a server may ask to wait
CONNECT_SECONDS = 10.0
MAX_IDLE = 16  # connections kept to one server
CHUNK = 65_536
LARGE, N_LARGE = 1_000_000, 2  # bytes of a body; so many larger ones are read and decoded at once, others wait
KEPT_HEADERS = ("content-type", "retry-after", "x-request-id", "request-id")
KEY_HEADERS = ("authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie")
USAGES = ("usage", "usageMetadata", "usage_metadata", "prompt_eval_count", "eval_count")
CHOICES = ("choices", "candidates")
UNENCODED = ("", "identity")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_UNWRITABLE = re.compile(r"[^\t\x20-\x7e\xa0-\xff]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # also one that never ends: linear
_BRACKETS = re.compile(r"[^\[\]{}]+")

Headers = Iterable[tuple[str, str]]


class ExchangeError(Exception):
    """No reply of the server's can be used."""


class NotSentError(ExchangeError):
    """Nothing may be sent here."""


class ServerTimeoutError(ExchangeError):
    """The reply was not complete in time."""


class UnreachableServerError(ExchangeError):
    """The server cannot be reached, or broke off."""


class BadReplyError(ExchangeError):
    """The reply is not one that a model's server may send: asking again is of no use."""


class Reply(NamedTuple):
    """What came back: cleaned JSON where it is JSON, else text."""

    status: int
    headers: tuple[tuple[str, str], ...]  # those of `KEPT_HEADERS`
    body: bytes  # UTF-8


class ModelConnections:
    """HTTP/1.1 client of model servers, which keeps connections; thread-safe.

    No redirect is followed: the key goes to the address that the user named.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[Any, ...], list[_Connection]] = {}
        self._lock = threading.Lock()
        self._ended = weakref.finalize(self, _close_all, self._idle)

    def close(self) -> None:
        """Close the connections that are not in use; it may be used again."""
        with self._lock:
            _close_all(self._idle)

    def send(self, method: str, url: str, headers: Headers, body: bytes, seconds: float = math.inf) -> Reply:
        """Send a request and return the whole reply, within some seconds and the deadline around the call.

        Raises:
            ServerTimeoutError: If the reply is not complete in time.
            UnreachableServerError: If there is no connection, or it breaks off.
            NotSentError: Within `sending_nothing`.
            BadReplyError: If the reply is not HTTP, redirects, is larger than the bounds of this module, is compressed
                other than by gzip or deflate, is JSON beyond its bounds, or the request cannot be written as HTTP.
        """
        _sent.count += 1
        if not _sent.may_send:
            raise NotSentError("nothing may be sent")
        headers = [(name, value) for name, value in headers if name.lower() not in ("accept-encoding", "connection")]
        keys = keys_of_environment() | _keys_in(url, headers)
        try:
            with deadline.within(seconds), _Room() as room:
                status, kept, data = self._exchange(method, url, headers, body, room)
                text = cleaned(data, keys, is_error=status >= 400)
        except ExchangeError as error:
            error.args = (mask_keys(str(error), keys)[:MAX_MESSAGE],)
            raise
        except deadline.DeadlineError:
            raise ServerTimeoutError("the server's reply timed out") from None
        harmless = tuple((name, value) for name, value in kept if value.isascii() and mask_keys(value, keys) == value)
        return Reply(status, harmless, text)

    def _exchange(
        self, method: str, url: str, headers: Headers, body: bytes, room: "_Room"
    ) -> tuple[int, Any, bytearray]:
        target = urlsplit(url)
        if target.scheme not in ("http", "https") or not target.hostname:
            raise BadReplyError(f"not an address of a server: {url!r}")
        origin = (os.getpid(), target.scheme, target.hostname, target.port, _proxy_for(target))
        while True:
            connection, is_new = self._take(origin)
            try:
                reply = connection.exchange(method, target, headers, body, room)
            except BaseException as error:
                connection.close()
                # The server had closed a connection that was kept: nothing of a reply came.
                if isinstance(error, UnreachableServerError) and not is_new and not connection.received:
                    continue
                raise
            if connection.is_reusable:
                self._keep(origin, connection)
            else:
                connection.close()
            return reply

    def _take(self, origin: tuple[Any, ...]) -> tuple["_Connection", bool]:
        with self._lock:
            idle = self._idle.get(origin, [])
            while idle:
                connection = idle.pop()
                if connection.is_quiet():
                    return connection, False
                connection.close()
        return _Connection(*origin[1:]), True

    def _keep(self, origin: tuple[Any, ...], connection: "_Connection") -> None:
        with self._lock:
            idle = self._idle.setdefault(origin, [])
            if len(idle) < MAX_IDLE:
                idle.append(connection)
                return
        connection.close()


class _Sent(threading.local):
    count = 0  # of this thread
    may_send = True


_sent = _Sent()


def requests_sent() -> int:
    """Return how many requests this thread has asked to send so far."""
    return _sent.count


@contextmanager
def sending_nothing() -> Iterator[None]:
    """Have this thread send no request: NotSentError is raised instead."""
    _sent.may_send = False
    try:
        yield
    finally:
        _sent.may_send = True


def httpx_transport(module: Any, connections: ModelConnections, seconds: float = math.inf) -> Any:
    """Return a transport for clients of `httpx` or `httpx2`, whose requests may take so many seconds, or their own."""

    class Transport(module.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            own = (request.extensions.get("timeout") or {}).get("read")
            body = b"".join(request.stream)
            most = seconds if own is None else min(own, seconds)
            try:
                reply = connections.send(request.method, str(request.url), request.headers.multi_items(), body, most)
            except ServerTimeoutError as error:
                raise module.ReadTimeout(str(error), request=request) from error
            except UnreachableServerError as error:
                raise module.ConnectError(str(error), request=request) from error
            return module.Response(reply.status, headers=reply.headers, content=reply.body, request=request)

        def close(self) -> None:
            connections.close()

    return Transport()


class _Connection:
    """Connection to one server, or to a proxy before it."""

    def __init__(self, scheme: str, host: str, port: int | None, proxy: str | None) -> None:
        self._host, self._port = host, port or (443 if scheme == "https" else 80)
        self._is_tls, self._proxy = scheme == "https", urlsplit(proxy) if proxy else None
        self.sock: Any = None  # a connected socket, from the first exchange on
        self.received, self.most = 0, 0  # bytes of the last reply: so far, and allowed so far
        self.is_reusable = False

    def is_quiet(self) -> bool:
        """Tell whether the server neither closed the connection nor sent what was not asked for."""
        try:
            return self.sock is not None and not select.select([self.sock], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close the connection."""
        if self.sock is not None:
            with suppress(OSError):
                self.sock.close()

    def exchange(
        self, method: str, target: SplitResult, headers: Headers, body: bytes, room: "_Room"
    ) -> tuple[int, Any, bytearray]:
        """Send a request and read its reply; raises as `ModelConnections.send` does."""
        self.received, self.is_reusable = 0, False
        head = self._head(method, target, headers, len(body))
        try:
            if self.sock is None:
                self._connect()
            self._write(head + body)
            return self._read(self._begun(method), room)
        except TimeoutError:
            raise ServerTimeoutError("the server's reply timed out") from None
        except (ConnectionError, http.client.IncompleteRead) as error:
            raise UnreachableServerError(f"the connection broke off ({type(error).__name__})") from error
        except ssl.SSLError as error:  # some are ValueErrors too
            raise UnreachableServerError(f"no connection to {self._host}:{self._port}: {error}") from error
        except (http.client.HTTPException, zlib.error, ValueError) as error:
            raise BadReplyError(f"not a reply in HTTP: {type(error).__name__}: {error}") from None
        except OSError as error:
            raise UnreachableServerError(f"no connection to {self._host}:{self._port}: {error}") from error

    def _connect(self) -> None:
        near = self._proxy
        host, port = (near.hostname or "", near.port or 80) if near else (self._host, self._port)
        self.sock = _connected(host, port)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if near and self._is_tls:
            self._write(
                _written(f"CONNECT {_authority(self._host, self._port)} HTTP/1.1", _proxy_headers(near).items())
            )
            if (status := self._begun("CONNECT").status) != 200:
                raise ConnectionError(f"the proxy answers {status}")
        if self._is_tls:
            self.sock.settimeout(_left())
            self.sock = _tls().wrap_socket(self.sock, server_hostname=self._host)

    def _head(self, method: str, target: SplitResult, headers: Headers, length: int) -> bytes:
        host = target.netloc.rpartition("@")[2]
        path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
        own = {"Host": host, "Accept-Encoding": "identity", "Content-Length": str(length)}
        if self._proxy and not self._is_tls:
            path, own = f"http://{host}{path}", own | _proxy_headers(self._proxy)
        names = {name.lower() for name in own}
        given = [(name, value) for name, value in headers if name.lower() not in names]
        return _written(f"{method} {path} HTTP/1.1", [*own.items(), *given])

    def _write(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK):
            self.sock.settimeout(_left())
            self.sock.sendall(data[start : start + CHUNK])

    def _begun(self, method: str) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(_Reader(self), method=method)  # type: ignore[arg-type]
        self.most = MAX_OVERHEAD
        response.begin()
        self.most = MAX_OVERHEAD + MAX_BODY
        return response

    def _read(self, response: http.client.HTTPResponse, room: "_Room") -> tuple[int, Any, bytearray]:
        status = response.status
        if status < 200:
            raise BadReplyError(f"a reply of status {status}")
        if 300 <= status < 400:
            raise BadReplyError(f"the server redirects ({status}), which is not followed: name its final address")
        most = MAX_ERROR if status >= 400 else MAX_BODY
        decoder, body = _Decoder(response.headers.get_all("content-encoding") or [], most), bytearray()
        while data := response.read(CHUNK):
            body += decoder.decode(data)
            if len(body) > LARGE:
                room.take()
            if decoder.is_full:
                break
        is_whole = response.isclosed() and not response.length and decoder.is_whole
        if decoder.is_full and status < 400:
            raise BadReplyError(f"a reply of more than {most:,} bytes")
        if not decoder.is_full and not is_whole:
            raise UnreachableServerError("the connection broke off in the midst of a reply")
        self.is_reusable = is_whole and not response.will_close
        del body[most:]
        kept = [(name.lower(), value[:MAX_MESSAGE]) for name, value in response.getheaders()]
        return status, tuple((name, value) for name, value in kept if _is_kept(name, value)), body


class _Reader(io.RawIOBase):
    """Socket to read from, in the place of one."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def makefile(self, *_: Any) -> io.BufferedReader:
        """Return itself, buffered."""
        return io.BufferedReader(self, CHUNK)

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is, within the deadline and the bounds."""
        self._connection.sock.settimeout(_left())
        count: int = self._connection.sock.recv_into(buffer)
        self._connection.received += count
        if self._connection.received > self._connection.most:
            raise BadReplyError(f"a reply of more than {self._connection.most:,} bytes")
        return count


class _Room:
    """Memory for one large reply, where it comes to that."""

    _slots = threading.Semaphore(N_LARGE)

    def __init__(self) -> None:
        self._is_taken = False

    def take(self) -> None:
        """Wait, within the deadline, until there is room."""
        if not self._is_taken:
            self._is_taken = self._slots.acquire(timeout=_left())
            if not self._is_taken:
                raise deadline.DeadlineError

    def __enter__(self) -> "_Room":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_taken:
            self._slots.release()


class _Decoder:
    """Undoes a reply's compression, never beyond the bound."""

    def __init__(self, codings: list[str], most: int) -> None:
        named = [one for one in (one.strip().lower() for one in ",".join(codings).split(",")) if one not in UNENCODED]
        if named not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            raise BadReplyError(f"a reply compressed by {', '.join(named)[:60]!r}, which was not asked for")
        self._coding, self._left = "".join(named), most + 1
        self._inflater: Any = None

    @property
    def is_full(self) -> bool:
        """Whether there is more than the bound."""
        return self._left <= 0

    @property
    def is_whole(self) -> bool:
        """Whether the compressed data came to its end."""
        return self._inflater is None or bool(self._inflater.eof)

    def decode(self, data: bytes) -> bytes:
        """Return what some bytes stand for, as far as there is room."""
        if not self._coding:
            found = data[: self._left]
            self._left -= len(found)
            return found
        found = b""
        while data and self._left > 0:
            if self._inflater is None or (self._inflater.eof and self._coding != "deflate"):
                # Deflate has a header of zlib's, or none.
                raw = self._coding == "deflate" and data[0] & 0x0F != 8
                self._inflater = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
            found += self._inflater.decompress(data, self._left - len(found))
            if len(found) >= self._left:
                break
            data = self._inflater.unconsumed_tail or self._inflater.unused_data.lstrip(b"\0")
            if self._inflater.eof and self._coding == "deflate":
                break
        self._left -= len(found)
        return found


def cleaned(body: bytes | bytearray, keys: Iterable[str] = (), *, is_error: bool = False) -> bytes:
    """Return a reply's body with keys masked; JSON is decoded within bounds, cleaned and written again.

    Of JSON, choices are at most `MAX_CHOICES` and usage figures whole numbers from 0 to `MAX_TOKENS`; others are
    left out. Long texts are cut, and text that is no Unicode is replaced.

    Raises:
        BadReplyError: If it is JSON nested deeper than `MAX_NESTING`, of more than `MAX_VALUES` values, or with a
            number that is not finite or beyond `MAX_NUMBER`.
    """
    text = body.decode("utf-8-sig", "replace")
    clean = _Cleaner(frozenset(keys), MAX_MESSAGE if is_error else MAX_TEXT)
    if text.lstrip().startswith(("data:", "event:", ":")):
        return "\n".join(clean.event_line(line) for line in text.splitlines()).encode() + b"\n\n"
    found = clean.json(text)
    return (clean.text(text[:MAX_ERROR]) if found is None else found).encode()


class _Cleaner:
    def __init__(self, keys: frozenset[str], most: int) -> None:
        self._keys, self._most, self._values = keys, most, 0

    def event_line(self, line: str) -> str:
        """Clean a line of a stream of events."""
        name, colon, data = line.partition(":")
        found = self.json(data) if name == "data" and data.strip() else None
        return self.text(line) if found is None else f"{name}{colon} {found}"

    def json(self, text: str) -> str | None:
        """Clean JSON; None if it is not."""
        if text.count('"') - text.count('\\"') > 4 * MAX_VALUES:  # the structure alone would take too much memory
            raise BadReplyError(f"a reply of more than {MAX_VALUES:,} values")
        structure = _STRING.sub("", text)
        self._values += structure.count(",") + structure.count("{") + structure.count("[")
        if self._values > MAX_VALUES:
            raise BadReplyError(f"a reply of more than {MAX_VALUES:,} values")
        depth = 0
        for sign in _BRACKETS.sub("", structure):
            depth += 1 if sign in "[{" else -1
            if depth > MAX_NESTING:
                raise BadReplyError(f"a reply nested more than {MAX_NESTING} deep")
        del structure
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # RecursionError: of what is no JSON at all
            return None
        return json.dumps(self._clean(value), ensure_ascii=False, allow_nan=False)

    def text(self, text: str) -> str:
        """Clean a text."""
        if len(text) > self._most:
            text = text[: self._most]
        return mask_keys(_SURROGATE.sub("\ufffd", text), self._keys)

    def _clean(self, value: Any) -> Any:
        deadline.check()
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            counts = {name: _counts(value[name]) for name in USAGES if name in value}
            lists = {name: value[name][:MAX_CHOICES] for name in CHOICES if isinstance(value.get(name), list)}
            kept = {**value, **lists, **counts}
            return {
                self.text(name): self._clean(one) for name, one in kept.items() if counts.get(name, one) is not None
            }
        if isinstance(value, list):
            return [self._clean(one) for one in value]
        if isinstance(value, int | float) and not -MAX_NUMBER <= value <= MAX_NUMBER:  # NaN too
            raise BadReplyError("a reply with a number beyond all bounds")
        return value


def _counts(value: Any) -> Any:
    """Return the counts of tokens that can be believed."""
    if isinstance(value, dict):
        return {name: one for name, one in ((name, _counts(one)) for name, one in value.items()) if one is not None}
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


def _is_kept(name: str, value: str) -> bool:
    if name != "retry-after":
        return name in KEPT_HEADERS
    with suppress(ValueError):
        return 0 <= float(value) <= LONGEST_WAIT
    return bool(re.fullmatch(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT", value))


def _keys_in(url: str, headers: Headers) -> set[str]:
    target = urlsplit(url)
    said = [value for name, value in headers if name.lower() in KEY_HEADERS]
    asked = [part.partition("=")[2] for part in target.query.split("&") if "key" in part.partition("=")[0].lower()]
    return {*(value.rpartition(" ")[2] for value in said), *map(unquote, asked), unquote(target.password or "")}


def _written(request: str, headers: Headers) -> bytes:
    """Write the head of a request."""
    lines = [request, *(f"{name}: {value}" for name, value in headers)]
    if any(_UNWRITABLE.search(line) for line in lines):  # no value is named: it may be a key
        raise BadReplyError("the key, a header or the address has characters that HTTP does not take")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _connected(host: str, port: int) -> socket.socket:
    """Connect to the first of a host's addresses that answers; the system's look-up of them has its own limits."""
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(min(_left() or CONNECT_SECONDS, CONNECT_SECONDS))
            sock.connect(address)
            return sock
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            failure = error
    raise failure


def _left() -> float | None:
    """Return the seconds until the deadline, as a socket takes them."""
    left = deadline.seconds_left()
    if left <= 0:
        raise deadline.DeadlineError
    return None if math.isinf(left) else left


def _close_all(idle: dict[tuple[Any, ...], list[_Connection]]) -> None:
    for connections in idle.values():
        for connection in connections:
            connection.close()
    idle.clear()


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not os.environ.get("SSL_CERT_FILE"):  # some Pythons find no store of the system's
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def _proxy_for(target: SplitResult) -> str | None:
    proxies = urllib.request.getproxies()
    host = target.netloc.rpartition("@")[2]
    if not proxies or urllib.request.proxy_bypass(host):
        return None
    found = proxies.get(target.scheme) or proxies.get("all")
    return (found if "://" in found else f"http://{found}") if found else None


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    said = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(said.encode()).decode()}"}
