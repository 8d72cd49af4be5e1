"""The child process: sets up isolation, then runs programs on request."""

import _socket
import builtins
import io
import os
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any

from legal_rag.deep_read.sandbox.child import imports, kernel, wire

if TYPE_CHECKING:
    from traceback import TracebackException


DESCRIPTORS = 64
SOURCE = "<bloc "  # begins the name that a program goes by in tracebacks
MOST_TRACEBACK = 4_000  # characters
BUFFERED = 1_000  # characters printed without an end of line
DELAY_S = 0.05  # for which they are held back at most, as long as more come


class ParentChannel:
    """The child's end of the socket."""

    def __init__(self, connection: _socket.socket) -> None:
        self._connection = connection

    def send(self, kind: str, **content: Any) -> None:
        """Send a message that is no call."""
        self._connection.sendall(wire.frame(kind, wire.body(content, wire.KINDS[kind])))

    def print(self, text: str) -> None:
        """Send what was printed, in as many messages as that takes."""
        for start in range(0, len(text), wire.MOST_PRINTED):
            piece = text[start : start + wire.MOST_PRINTED].encode("utf-8", "replace")
            self._connection.sendall(wire.frame("printed", piece))

    def call(self, name: str, most: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Call a function of the other side and return its answer.

        Raises:
            WireError: If an argument is not plain, or there is more than `most` bytes of them.
        """
        body = wire.body({"arguments": arguments, "named": named}, most)
        self._connection.sendall(wire.frame("call", body, name))
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """Wait for the next message; the process ends where there is none."""
        return wire.read(self._exactly(int.from_bytes(self._exactly(wire.HEADER), "big")))

    def _exactly(self, count: int) -> bytes:
        data = bytearray(count)
        view, got = memoryview(data), 0
        while got < count:
            if not (more := self._connection.recv_into(view[got:])):
                os._exit(0)
            got += more
        return bytes(data)


class Printed(io.TextIOBase):
    """What programs print: sent as it comes, up to a limit; what is beyond is counted."""

    def __init__(self, channel: ParentChannel, most: int) -> None:
        self._channel, self._most = channel, most
        self._held: list[str] = []
        self._n_held = self._n_sent = self.n_beyond = 0
        self._next_flush = 0.0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take what is printed."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        piece = text[: self._most - self._n_sent - self._n_held]
        self.n_beyond += len(text) - len(piece)
        if piece:
            self._held.append(piece)
            self._n_held += len(piece)
            full = self._n_held >= BUFFERED or self._n_sent + self._n_held >= self._most
            if full or "\n" in piece or monotonic() >= self._next_flush:
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            text, count = "".join(self._held), self._n_held
            self._held, self._n_held = [], 0
            self._n_sent += count
            self._next_flush = monotonic() + DELAY_S
            self._channel.print(text)

    def begin(self) -> None:
        """Count anew."""
        self._held = []
        self._n_held = self._n_sent = self.n_beyond = 0


class Runner:
    """Runs programs, one after the other, in one namespace."""

    def __init__(self, channel: ParentChannel, setup: dict[str, Any]) -> None:
        self._channel = channel
        self._sources: dict[str, str] = {}
        self._printed = Printed(channel, setup["output_chars"])
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        self._names = vars(module)
        self._names["__builtins__"] = builtins
        for name, doc in setup["functions"].items():
            self._names[name] = self._function(name, doc, setup["most_bytes"][name])
        self._names.update(setup["values"])

    def run(self, code: str) -> None:
        """Run a program and tell how it ended."""
        name = f"{SOURCE}{len(self._sources) + 1}>"
        self._sources[name] = code
        self._printed.begin()
        sys.stdout = sys.stderr = self._printed
        sys.stdin = io.StringIO()
        error = None
        try:
            exec(compile(code, name, "exec", dont_inherit=True), self._names)  # noqa: S102
        except BaseException as raised:  # also SystemExit: a program ends, the process does not
            error = _told(raised, self._sources)
        self._printed.flush()
        self._channel.send("done", error=error, beyond=self._printed.n_beyond)

    def _function(self, name: str, doc: str, most: int) -> Callable[..., Any]:
        def function(*arguments: Any, **named: Any) -> Any:
            self._printed.flush()
            try:
                answer = self._channel.call(name, most, arguments, named)
            except wire.WireError as error:
                raise ValueError(f"{name}(…) : {error}") from None
            if answer["kind"] == "raised":
                raise _error(answer["name"], answer["arguments"])
            return answer["value"]

        function.__name__ = function.__qualname__ = name
        function.__doc__ = doc
        return function


def main(descriptor: int, lifeline: int, parent: int) -> None:
    """Begin as the first message says, then run programs for as long as there are any.

    Args:
        descriptor: Of the socket to the other side.
        lifeline: Of the pipe whose other end is closed when that side is no more.
        parent: The process on that side.
    """
    with suppress(OSError, AttributeError):  # not everywhere; `_walls` looks again
        kernel.die_with_parent(parent)
    connection = _socket.socket(fileno=descriptor)
    channel = ParentChannel(connection)
    imports.offer_only()
    setup = channel.receive()
    walls = _walls(connection, lifeline, parent, setup)
    imports.shut(os.getcwd())  # noqa: PTH109 (pathlib would cost a program's start 5 ms)
    runner = Runner(channel, setup)
    channel.send("ready", walls=walls)
    try:
        while True:
            runner.run(channel.receive()["code"])
    except MemoryError:  # not even enough to tell
        os._exit(wire.OUT_OF_MEMORY)
    except BaseException:  # a program has changed what runs here
        os._exit(wire.BROKEN)


def _walls(connection: _socket.socket, lifeline: int, parent: int, setup: dict[str, Any]) -> dict[str, Any]:
    """Put up the walls that the system has; returns what each came to, and why one did not."""
    walls: dict[str, Any] = {}

    def put_up(name: str, wall: Callable[..., Any], *arguments: Any) -> Any:
        try:
            walls[name] = wall(*arguments) or True
            return walls[name]
        except (
            OSError,
            AttributeError,
            ValueError,
            OverflowError,
        ) as error:  # unknown to this system, or refused by it
            walls[name], walls[f"no {name}"] = False, str(error)
            return False

    scratch = os.open(".", os.O_RDONLY)
    if setup["user"] is not None:
        put_up("user", kernel.become, setup["user"])
    else:
        walls["user"] = os.geteuid() != 0
    address_space = kernel.address_space()
    put_up("namespaces", kernel.leave_namespaces)
    put_up("root", kernel.shut_into, scratch)
    put_up("privileges", kernel.give_up_privileges)
    put_up("landlock", kernel.restrict_files, scratch)
    put_up("capabilities", kernel.drop_capabilities)
    os.close(scratch)
    put_up("lifeline", kernel.die_with_parent, parent)
    walls["lifeline"] = put_up("pipe", kernel.die_with_pipe, lifeline, setup["first_kept"]) and walls["lifeline"]
    memory = address_space + setup["memory"]
    put_up("limits", kernel.limit_resources, memory, setup["disk"], DESCRIPTORS, setup["cpu_s"])
    os.dup2(1, 2)  # what goes wrong up to here is told on stderr; programs get the null device
    if setup["seccomp"] is not None:
        put_up("quota", _share_listener, connection, setup)
        allowed = setup["strict" if walls["quota"] else "read_only"]
        put_up("seccomp", kernel.filter_calls, setup["seccomp"], bytes.fromhex(allowed))
    return walls


def _share_listener(connection: _socket.socket, setup: dict[str, Any]) -> None:
    """Let the other side decide on what is written: it counts."""
    passed = []
    try:
        listener = kernel.filter_calls(setup["seccomp"], bytes.fromhex(setup["counted"]), listen=True)
        passed.append((_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [listener])))
    finally:
        connection.sendmsg([b"\0"], passed)
    os.close(listener)


def _error(name: str, arguments: list[Any]) -> Exception:
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(*arguments)
        except TypeError:  # an error whose making takes other arguments
            pass
    return RuntimeError(*arguments)


def _told(raised: BaseException, sources: dict[str, str]) -> str:
    """Return an error as Python tells it, with the programs' own lines only."""
    try:
        import linecache
        import traceback

        for name, code in sources.items():
            linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        whole = traceback.TracebackException.from_exception(raised)
        _without_others(whole, set())
        text = "".join(whole.format()).rstrip("\n")
    except BaseException as error:  # the program's own __str__ may do anything; its memory may be full
        text = f"{type(raised).__name__} ({type(error).__name__})"
    if len(text) <= MOST_TRACEBACK:
        return text
    half = MOST_TRACEBACK // 2
    return f"{text[:half]}\n… [{len(text) - MOST_TRACEBACK} caractères de moins]\n{text[-half:]}"


def _without_others(told: "TracebackException | None", seen: set[int]) -> None:
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if frame.filename.startswith(SOURCE)]
    for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
        _without_others(other, seen)
