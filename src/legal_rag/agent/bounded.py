"""DSPy's models, asked through bounded exchanges: by DSPy's own engine, and by LiteLLM where that one cannot."""

import contextlib
import contextvars
import logging
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import dspy
import httpx
from dspy._vendor.lm15.transports import ConnectError, ReadTimeout, TransportRequest, TransportResponse

from legal_rag.exchange import (
    ModelConnections,
    ServerTimeoutError,
    UnreachableServerError,
    httpx_transport,
)

logger = logging.getLogger(__name__)


READ_SECONDS = 600.0  # that a whole reply may take where the model has no setting
_are_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("are_ours", default=False)
_fitted: "weakref.WeakKeyDictionary[dspy.BaseLM, _Engines]" = weakref.WeakKeyDictionary()
_warned: set[str] = set()


def is_bounded(lm: "dspy.BaseLM") -> bool:
    """Tell whether a model's requests can be bounded: one that DSPy connects to, not an engine of somebody's own."""
    return isinstance(lm, dspy.LM) and isinstance(lm.engine, str)


def fit(copied: "dspy.BaseLM", lm: "dspy.BaseLM") -> None:
    """Have a copy of a model ask by bounded exchanges; copies of one model share connections, as long as it lives."""
    if not is_bounded(lm):
        return
    from dspy.clients.backend_selection import select_backend

    copied._engine_store = _fitted.setdefault(lm, _Engines())
    if not select_backend(lm).native:
        import litellm  # noqa: F401 - before its first request


@contextlib.contextmanager
def bounded_requests(lm: "dspy.BaseLM") -> Iterator[None]:
    """Bound the requests that a fitted model makes in this context."""
    if not is_bounded(lm):
        yield
        return
    if "litellm" in sys.modules:
        _fit_litellm()
    token = _are_ours.set(True)
    try:
        yield
    finally:
        _are_ours.reset(token)


def warn_of_unbounded(lm: "dspy.BaseLM") -> None:
    """Warn, once, of a model that was asked by a client that is not bounded."""
    if is_bounded(lm) and lm.model not in _warned:
        _warned.add(lm.model)
        logger.warning("the client of %s is none that can be bounded: its replies may be late or large", lm.model)


class _Engines(dict[Any, Any]):
    """The engines that DSPy keeps for a model; it builds them itself, and those of its own are given our transport."""

    def __setitem__(self, key: Any, engine: Any) -> None:
        timeouts = engine.config.timeouts
        engine.router._transport = _Transport(READ_SECONDS if timeouts is None else timeouts.read)
        super().__setitem__(key, engine)


class _Transport:
    """Transport of DSPy's own engine."""

    def __init__(self, seconds: float) -> None:
        self._connections, self._seconds = ModelConnections(), seconds

    def stream(self, request: TransportRequest) -> TransportResponse:
        """Send a request; the reply is whole when this returns."""
        try:
            reply = self._connections.send(request.method, request.url, request.headers, request.body, self._seconds)
        except ServerTimeoutError as error:
            raise ReadTimeout(str(error)) from error
        except UnreachableServerError as error:
            raise ConnectError(str(error)) from error
        return TransportResponse(
            status=reply.status,
            reason="",
            headers=list(reply.headers),
            http_version="HTTP/1.1",
            chunks=iter([reply.body]),
            release=lambda _: None,
        )

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


class _OursOnly(httpx.BaseTransport):
    """Transport of LiteLLM's clients, which the process shares: what others ask of it goes its usual way."""

    def __init__(self) -> None:
        self._ours, self._plain = httpx_transport(httpx, ModelConnections()), httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        transport: httpx.BaseTransport = self._ours if _are_ours.get() else self._plain
        return transport.handle_request(request)


def _fit_litellm() -> None:
    litellm: Any = sys.modules["litellm"]
    if getattr(litellm, "sync_transport", None) is None:
        litellm.sync_transport = _OursOnly()
    if litellm.client_session is None:
        litellm.client_session = httpx.Client(transport=litellm.sync_transport, timeout=None)  # noqa: S113 - of each request
