"""A server that sends bytes as it likes, on 127.0.0.1: what no HTTP library would."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

RESET, STAY = "reset", "stay"  # break the connection; keep it open and silent
Step = bytes | float | str  # bytes to send, seconds to wait, or one of these two
Behaviour = Callable[[bytes], Iterable[Step]]  # of a request, which is there when it begins


class RawServer:
    """Serves a behaviour, once a connection, until the `with` block ends; leaves no thread."""

    def __init__(self, behaviour: Behaviour, *, listens_before: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.sent = 0  # bytes
        self._behaviour, self._reads, self._tls = behaviour, listens_before, tls
        self._stopping, self._threads, self._open = threading.Event(), list[threading.Thread](), list[socket.socket]()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        self.api_base = f"http{'s' if tls else ''}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "RawServer":
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()  # wakes the one that accepts
        self._listening.close()
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in list(self._threads):
            thread.join()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            with suppress(OSError):
                connection, _ = self._listening.accept()
                self._open.append(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), self._tls.wrap_socket(connection, True) if self._tls else connection as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            request = _request(connection) if self._reads else b""
            self.requests.append(request)
            for step in self._behaviour(request):
                if self._stopping.is_set():
                    return
                if isinstance(step, bytes):
                    connection.sendall(step)
                    self.sent += len(step)
                elif isinstance(step, float):
                    self._stopping.wait(step)
                elif step == RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return
                else:
                    self._stopping.wait()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    if not (data := connection.recv(65_536)):
        raise OSError("closed")
    return data


def response(
    body: bytes, *headers: str, status: str = "200 OK", version: str = "HTTP/1.1", length: object = None
) -> bytes:
    """Write an HTTP reply whose Content-Length may be a lie; "" leaves it out."""
    said = len(body) if length is None else length
    lines = [f"{version} {status}", "Content-Type: application/json", *headers]
    lines += [] if said == "" else [f"Content-Length: {said}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def completion(content: object = "Aucun passage pertinent.", **changes: object) -> bytes:
    """Write a chat completion, with some members changed; `message` and `choices` replace whole ones."""
    message = changes.pop("message", {"role": "assistant", "content": content})
    choice = {"index": 0, "finish_reason": changes.pop("finish_reason", "stop"), "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(whole | changes).encode()


def dripped(data: bytes, seconds: float, size: int = 1) -> Iterable[Step]:
    """Send some bytes every so often."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
        yield seconds
