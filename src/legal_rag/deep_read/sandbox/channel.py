"""The parent's end of the channel: checked messages, deadlines."""

import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from legal_rag import deadline
from legal_rag.deep_read.sandbox.child import wire

NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)  # where a broken pipe would end this process
LONGEST_WAIT_S = 3_600.0  # before the clock is looked at again
PIECE = 1 << 18  # bytes read at once
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "ready": {"walls": dict},
    "call": {"arguments": list, "named": dict},
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
            DeadlineError: If the time of the work that wants the child is over.
        """
        wall, processor = self._wall_left(), self._cpu_end - self._spent()
        if wall <= 0:
            raise OutOfTimeError(f"plus de {self._wall_s:g} s")
        if processor <= 0:
            raise OutOfTimeError(f"plus de {self._cpu_s:g} s de calcul")
        if (around := deadline.seconds_left()) <= 0:
            raise deadline.DeadlineError
        return min(wall, processor, around)

    def _wall_left(self) -> float:
        return self._left - (time.monotonic() - self._since if self._since is not None else 0.0)


class Channel:
    """Messages to and from a child that may do anything."""

    def __init__(self, connection: socket.socket, bounds: Mapping[str, int]) -> None:
        """Begin.

        Args:
            connection: Our end of the socket; it becomes non-blocking.
            bounds: The functions that may be called, with the most bytes that a call of each may have.
        """
        connection.setblocking(False)
        self._connection, self._bounds = connection, bounds
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
        """Return the next message: its kind, and the fields that this kind has; what it may hold is known by then.

        Raises:
            ChildGoneError: If nobody is there.
            ForgedMessageError: If it is no message of the code that should be running there.
            OutOfTimeError: If none comes in time.
        """
        if self._got:
            clock.left()  # else `_take` looks at it
        number, n_name, *length = self._take(wire.FRAME, clock)
        if number >= len(wire.KINDS):
            raise ForgedMessageError(f"un message d'un genre inconnu : {number}")
        kind = list(wire.KINDS)[number]
        called = {"name": self._called(self._take(n_name, clock))} if kind == "call" else {}
        most = self._bounds[called["name"]] if called else wire.KINDS[kind]
        if (n_bytes := int.from_bytes(length, "big")) > most or (n_name and not called):
            raise ForgedMessageError(f"un message « {kind} » de {n_bytes:,} octets")
        data = self._take(n_bytes, clock)
        try:
            return kind, called | ({"text": data.decode()} if kind == "printed" else _fields(kind, data))
        except (wire.WireError, UnicodeDecodeError) as error:
            raise ForgedMessageError(str(error)) from error

    def _called(self, name: bytes) -> str:
        called = name.decode(errors="replace")
        if called not in self._bounds:
            raise ForgedMessageError(f"l'appel d'une fonction qui n'a pas été donnée : {called!r:.50}")
        return called

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

    def _take(self, count: int, clock: Clock) -> bytes:
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
        taken = bytes(memoryview(self._got)[:count])
        del self._got[:count]
        return taken

    def _wait(self, clock: Clock) -> None:
        """Wait until something arrives, and answer what else is asked meanwhile."""
        while True:
            events = dict(self._arriving.poll(_milliseconds(clock)))
            asked = events.pop(self._listener, 0)
            if events:
                return
            if asked & select.POLLIN:
                try:
                    self._answer()
                except OSError as error:
                    raise ChildGoneError from error
            elif asked:  # nobody is left who could ask
                raise ChildGoneError


def _milliseconds(clock: Clock) -> int:
    return int(min(clock.left(), LONGEST_WAIT_S) * 1000) + 1


def _fields(kind: str, data: bytes) -> dict[str, Any]:
    content, fields = wire.checked(data), FIELDS[kind]
    if content.keys() != fields.keys():
        raise ForgedMessageError(f"un message « {kind} » sans ses champs, ou avec d'autres")
    for name, value in content.items():
        if not isinstance(value, fields[name]) or isinstance(value, bool):
            raise ForgedMessageError(f"un message « {kind} » dont le champ « {name} » n'est pas ce qu'il doit être")
    return content
