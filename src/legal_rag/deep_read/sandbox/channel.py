"""The parent's end of the channel: checked messages, deadlines."""

import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from legal_rag.deep_read.sandbox.child import wire

NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)  # where a broken pipe would end this process
LONGEST_WAIT_S = 3_600.0  # before the clock is looked at again
PIECE = 1 << 18  # bytes read at once
KINDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "ready": {"walls": dict},
    "printed": {"text": str},
    "call": {"name": str, "arguments": list, "named": dict},
    "done": {"error": (str, type(None)), "beyond": int},
}


class ForgedMessageError(Exception):
    """The child has sent what the code running in it never sends; the message says what."""


class ChildGoneError(Exception):
    """The child has closed its end."""


class OutOfTimeError(Exception):
    """A clock has run out; the message says which, in French."""


class Clock:
    """How much longer a child may run: by the wall, and by its own processor time.

    It stands still while the child does, and counts what `spent` says.
    """

    def __init__(self, wall_s: float, cpu_s: float, spent: Callable[[], float]) -> None:
        """Begin standing still.

        Args:
            wall_s: Seconds.
            cpu_s: Seconds of processor time from now on.
            spent: Returns the seconds of processor time that the child has used in its life.
        """
        self._wall_s, self._cpu_s, self._spent = wall_s, cpu_s, spent
        self._left, self._cpu_end = wall_s, spent() + cpu_s
        self._since: float | None = None

    def go(self) -> None:
        """Count from now on."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """Stand still."""
        self._left, self._since = self._wall_left(), None

    def left(self) -> float:
        """Return for how many seconds the child can surely be left alone.

        Raises:
            OutOfTimeError: If that is none.
        """
        wall, processor = self._wall_left(), self._cpu_end - self._spent()
        if wall <= 0:
            raise OutOfTimeError(f"plus de {self._wall_s:g} s")
        if processor <= 0:
            raise OutOfTimeError(f"plus de {self._cpu_s:g} s de calcul")
        return min(wall, processor)

    def _wall_left(self) -> float:
        return self._left - (time.monotonic() - self._since if self._since is not None else 0.0)


class Channel:
    """Messages to and from a child that may do anything."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._arriving, self._leaving = select.poll(), select.poll()
        self._arriving.register(connection, select.POLLIN)
        self._leaving.register(connection, select.POLLOUT)
        self._got = bytearray()
        self._listener = -1
        self._answer: Callable[[], None] = lambda: None

    def listen(self, listener: int, answer: Callable[[], None]) -> None:
        """Also call `answer` whenever a descriptor has something to tell, as long as messages are waited for."""
        self._listener, self._answer = listener, answer
        self._arriving.register(listener, select.POLLIN)

    def send(self, clock: Clock, data: bytes) -> None:
        """Send a message, as `wire.message` has made it.

        Raises:
            ChildGoneError: If nobody is there.
            OutOfTimeError: If the child does not take it in time.
        """
        view = memoryview(data)
        while view:
            try:
                view = view[self._connection.send(view, NO_SIGNAL) :]
            except BlockingIOError:
                self._leaving.poll(_milliseconds(clock))
            except OSError as error:
                raise ChildGoneError from error

    def receive(self, clock: Clock) -> tuple[str, Mapping[str, Any]]:
        """Return the next message: its kind, and the fields that this kind has.

        Raises:
            ChildGoneError: If nobody is there.
            ForgedMessageError: If it is no message of the code that should be running there.
            OutOfTimeError: If none comes in time.
        """
        length = int.from_bytes(self._take(wire.HEADER, clock), "big")
        if length > wire.MOST_BYTES_BACK:
            raise ForgedMessageError(f"un message de {length:,} octets")
        try:
            return _of_its_kind(wire.checked(bytes(self._take(length, clock))))
        except wire.WireError as error:
            raise ForgedMessageError(str(error)) from error

    def receive_descriptor(self, clock: Clock) -> int | None:
        """Return the descriptor that comes with a single byte; None if none came."""
        self._wait(clock)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._connection, 1, 1)
        except OSError as error:
            raise ChildGoneError from error
        if not data:
            raise ChildGoneError
        return descriptors[0] if descriptors else None

    def _take(self, count: int, clock: Clock) -> bytearray:
        while len(self._got) < count:
            self._wait(clock)
            try:
                piece = self._connection.recv(PIECE)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ChildGoneError from error
            if not piece:
                raise ChildGoneError
            self._got += piece
        taken = self._got[:count]
        del self._got[:count]
        return taken

    def _wait(self, clock: Clock) -> None:
        """Wait until something arrives, and answer what else is asked meanwhile."""
        while True:
            for descriptor, event in self._arriving.poll(_milliseconds(clock)):
                if descriptor != self._listener:
                    return
                if event & select.POLLIN:
                    self._answer()


def _milliseconds(clock: Clock) -> int:
    return int(min(clock.left(), LONGEST_WAIT_S) * 1000) + 1


def _of_its_kind(content: dict[str, Any]) -> tuple[str, Mapping[str, Any]]:
    kind = content.pop("kind", None)
    fields = KINDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise ForgedMessageError(f"un message d'un genre inconnu : {kind!r:.50}")
    if content.keys() != fields.keys():
        raise ForgedMessageError(f"un message « {kind} » sans ses champs, ou avec d'autres")
    for name, value in content.items():
        if not isinstance(value, fields[name]) or isinstance(value, bool):
            raise ForgedMessageError(f"un message « {kind} » dont le champ « {name} » n'est pas ce qu'il doit être")
    return kind, content
