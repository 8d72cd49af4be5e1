"""A language model that says what a test tells it to, behind a real OpenAI-compatible server on 127.0.0.1.

What it replies depends on what it is asked and on how often it was asked the same, never on the order of arrival.
"""

import hashlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What the server sends: a chat message, or something worse."""

    content: str = ""
    status: int = 200
    raw_body: str | None = None  # in place of a well-formed completion
    hangs: bool = False  # never answers, until the server stops
    seconds: float = 0.0  # that it takes
    finish_reason: str = "stop"
    headers: tuple[tuple[str, str], ...] = ()
    breaks_off: bool = False  # closes the connection in the midst of its answer


Script = Callable[[str, int], Reply]  # (the whole prompt, attempt from 0) to the reply


class ScriptedServer:
    """Serves `script` on a free port until the `with` block ends."""

    def __init__(self, script: Script, pages: Mapping[str, Any] | None = None) -> None:
        """Serve also `pages`, by the end of their address: JSON values, or an HTTP status."""
        self.prompts: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.pages, self.fetched = dict(pages or {}), list[str]()  # addresses
        self.slept = 0.0  # seconds, over all replies
        self._script, self._attempts = script, Counter[str]()
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        # An address of its own, though ports come round again: no test gets replies that were cached in another one.
        self.api_base = f"http://127.0.0.1:{self._server.server_port}/{uuid.uuid4().hex}/v1"

    def __enter__(self) -> "ScriptedServer":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def reply(self, request: dict[str, Any]) -> Reply:
        prompt = "\n".join(str(message.get("content")) for message in request["messages"])
        key = hashlib.sha256(prompt.encode()).hexdigest()
        with self._lock:
            attempt = self._attempts[key]
            self._attempts[key] += 1
            self.prompts.append(prompt)
            self.requests.append(request)
        reply = self._script(prompt, attempt)
        if reply.hangs:
            self._stopping.wait()
        if reply.seconds:
            started = time.perf_counter()
            self._stopping.wait(reply.seconds)
            with self._lock:
                self.slept += time.perf_counter() - started
        return reply


def fields(**values: Any) -> Reply:
    """Reply with the output fields that DSPy's chat adapter reads."""
    lines = [
        f"[[ ## {name} ## ]]\n{value if isinstance(value, str) else json.dumps(value)}"
        for name, value in values.items()
    ]
    return Reply("\n\n".join([*lines, "[[ ## completed ## ]]"]))


def step(tool: str, **arguments: Any) -> Reply:
    """Reply with one ReAct step."""
    return Reply(json.dumps({"thought": f"J'appelle {tool}.", "tool": tool, **arguments}))


def answer(text: str, *evidence: str) -> Reply:
    """Reply with an answer, and the names of the pieces it rests on."""
    return Reply(json.dumps({"evidence": evidence, "answer": text}))


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1  # headers and body leave in one write: two would cost 40 ms a call
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.fetched.append(self.path)
            value = next((page for end, page in server.pages.items() if self.path.endswith(end)), 404)
            data = json.dumps({} if isinstance(value, int) else value).encode()
            self.send_response(value if isinstance(value, int) else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            reply = server.reply(json.loads(body))
            text = reply.raw_body if reply.raw_body is not None else json.dumps(_completion(reply))
            data = text.encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if reply.breaks_off else data)
            self.wfile.flush()
            self.close_connection = self.close_connection or reply.breaks_off

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _completion(reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content}
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": reply.finish_reason, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
