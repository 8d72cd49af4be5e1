"""Run untrusted Python programs in a contained child process."""

import inspect
import platform
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, NamedTuple

from legal_rag.deep_read.sandbox.channel import ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox.child import wire
from legal_rag.deep_read.sandbox.child.wire import BROKEN, OUT_OF_MEMORY
from legal_rag.deep_read.sandbox.process import LIFE_PROGRAMS, MOST_CPU_S, START_S, Child, StartError

Status = Literal["ok", "error", "timeout", "killed", "refused"]
MOST_ERROR = 10_000  # characters of what is told of an error
MOST_ERROR_ARGUMENTS = 5  # that are told one by one


class SandboxResult(NamedTuple):
    """How a program ended."""

    status: Status
    output: str  # what it printed, to stdout and stderr, up to the limit; then how many characters more there were
    error: str | None = None  # its traceback, or one line in French that says what stopped it


class Output:
    """What a program printed, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most, self._pieces, self._count = most, list[str](), 0
        self._n_beyond = 0

    def add(self, text: str) -> None:
        """Take a piece.

        Raises:
            ForgedMessageError: If it is empty or goes beyond the limit: its child sends no such piece.
        """
        self._count += len(text)
        if not text or self._count > self._most:
            raise ForgedMessageError(f"plus de {self._most:,} caractères imprimés")
        self._pieces.append(text)

    def text(self, *, cut_off: bool = False) -> str:
        """Return what there is.

        Args:
            cut_off: The program was stopped: had it printed more than may be kept, its child could not tell how much.
        """
        if self._n_beyond:
            return f"{''.join(self._pieces)}\n… [{self._n_beyond} caractères de plus]"
        if cut_off and self._count >= self._most:
            return f"{''.join(self._pieces)}\n… [la suite n'a pas été conservée]"
        return "".join(self._pieces)

    def result(self, error: str | None, beyond: int) -> SandboxResult:
        """Return how the program ended, as the child tells it."""
        self._n_beyond += max(0, beyond)
        if error is None:
            return SandboxResult("ok", self.text())
        return SandboxResult("error", self.text(), error[:MOST_ERROR])


def end_in_french(code: int | None) -> str:
    """Say how a child ended.

    Args:
        code: Its exit code, negative for a signal; None if it did not end, but closed the channel.
    """
    if code is None:
        return "le programme a fermé le canal"
    if code == OUT_OF_MEMORY:
        return "la mémoire était épuisée"
    if code == -signal.SIGKILL:
        return "le système a tué le processus du programme, sans doute faute de mémoire"
    if code == BROKEN:
        return "le programme a endommagé son propre processus"
    if code == -signal.SIGXCPU:
        return "trop de calcul"
    if code < 0:
        return f"le processus du programme s'est effondré ({_signal_name(-code)})"
    return f"le programme a mis fin à son processus (code {code})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


@dataclass(frozen=True)
class Walls:
    """The walls that stood around a child when it was ready."""

    system: str  # such as "Linux 6.1 (x86_64)"
    seccomp: bool = False  # only the system calls that are named
    landlock: int = 0  # version; no files but the scratch folder's; 0 if there is none
    root: bool = False  # the scratch folder is the root of all paths
    namespaces: tuple[str, ...] = ()  # what is not shared with the host
    quota: bool = False  # what is written is counted; without it nothing can be written
    limits: bool = False  # memory, file size, descriptors, processor time
    user: bool = False  # it is not root
    lifeline: bool = False  # the kernel kills it with its parent

    @property
    def missing(self) -> tuple[str, ...]:
        """What must be there and is not, in French; empty where programs may run."""
        files = self.landlock or self.root
        return tuple(
            name
            for name, stands in (
                ("seccomp (libseccomp.so.2)", self.seccomp),
                ("Landlock ou espaces de noms d'utilisateur", files),
                ("limites de ressources", self.limits),
                ("utilisateur sans droits", self.user),
                ("fin avec le processus parent", self.lifeline),
            )
            if not stands
        )

    def refusal(self) -> str | None:
        """Return why no program is run here and how to run one all the same, in French; None where one may be."""
        if not self.missing:
            return None
        return (
            f"refusé : sur ce système ({self.system}), le bac à sable n'a pas tous ses murs ; il manque : "
            f"{' ; '.join(self.missing)}. Un programme écrit par un modèle pourrait lire vos fichiers ou joindre le "
            "réseau. Pour l'accepter : accept_no_walls=True ; sinon, --plan map lit sans programme."
        )


def walls_of(told: Mapping[str, Any]) -> Walls:
    """Return the walls that a child told of."""
    return Walls(
        system_name(),
        told.get("seccomp") is True,
        int(told.get("landlock") or 0),
        told.get("root") is True,
        tuple(told.get("namespaces") or ()),
        told.get("quota") is True,
        told.get("limits") is True,
        told.get("user") is True,
        told.get("lifeline") is True,
    )


def walls() -> Walls:
    """Return the walls of this system, tried out by a child process that runs no program."""
    if sys.platform == "win32":
        return Walls(system_name())
    try:
        return _tried_out()
    except (StartError, OSError):
        return Walls(system_name())


@cache
def _tried_out() -> Walls:
    child = Child()
    try:
        return walls_of(child.begin(_setup({}, {}, {}, Limits()), 0))
    finally:
        child.end()


def system_name() -> str:
    """Return the system's name, version and architecture."""
    return f"{platform.system()} {platform.release()} ({platform.machine()})"


MOST_CODE = 200_000  # characters of one program
MOST_NAME = 255  # bytes
LOST = "les variables sont perdues, le prochain programme repart de zéro"
WINDOWS = "refusé : sous Windows il n'y a pas de bac à sable ; WSL y supplée, --plan map lit sans programme"


@dataclass(frozen=True)
class Limits:
    """What programs may take."""

    memory_mb: int = 512  # beyond what Python itself takes
    cpu_s: float = 10.0  # each program
    wall_s: float = 20.0  # each program, the functions' own time not counted
    output_chars: int = 20_000  # each program; what is beyond is counted, not kept
    disk_mb: int = 16  # all programs of a sandbox together, in blocks begun, what they deleted included

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < float("inf"):
                raise ValueError(f"a sandbox's {field.name} must be above 0 and finite, got {value}")


def _setup(
    functions: Mapping[str, Callable[..., Any]],
    values: Mapping[str, Any],
    most_bytes: Mapping[str, int],
    limits: Limits,
) -> dict[str, Any]:
    """Return what a child is told first."""
    return {
        "functions": {name: inspect.getdoc(function) or "" for name, function in functions.items()},
        "most_bytes": {name: most_bytes.get(name, wire.KINDS["call"]) for name in functions},
        "values": values,
        "output_chars": limits.output_chars,
        "memory": int(limits.memory_mb * (1 << 20)),
        "cpu_s": int(min(START_S + LIFE_PROGRAMS * limits.cpu_s, MOST_CPU_S)),
    }


class Sandbox:
    """Runs programs, one at a time; a context manager."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        limits: Limits | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        most_bytes: Mapping[str, int] | None = None,
        accept_no_walls: bool = False,
    ) -> None:
        """Start a sandbox; its child gets ready while others do something else.

        Args:
            functions: What programs may call, by name; they run here, one at a time, in the thread that calls `run`.
                Their arguments are None, bool, int, float, str, and lists and dicts by texts of such.
            limits: What programs may take; None takes the defaults.
            values: What programs find, by name: None, bool, int, float, str, and lists, tuples and dicts of such.
            most_bytes: For functions that take long texts, the bytes of JSON that the arguments of one call may take;
                2 million for others.
            accept_no_walls: Run programs even where this system cannot contain them.

        Raises:
            ValueError: If a name is none, or a value is not plain, or there is too much of it.
        """
        for name in (*functions, *(values or {})):
            if not name.isidentifier() or len(name.encode()) > MOST_NAME:
                raise ValueError(f"not a name that a program can use: {name!r:.300}")
        self._functions, self._limits = dict(functions), limits or Limits()
        self._accept_no_walls = accept_no_walls
        setup = _setup(functions, dict(values or {}), dict(most_bytes or {}), self._limits)
        self._setup = wire.read(wire.message(setup)[wire.HEADER :])  # a copy: every new child begins with the same
        self._lock, self._closed = threading.Lock(), False
        self._child: Child | None = None
        self._ready = False
        self._ending: weakref.finalize | None = None
        if sys.platform != "win32":
            with suppress(OSError):  # `run` tries again, and tells
                self._start()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child and delete what it wrote. May be called again.

        A program that another thread is running ends, and that thread deletes what is left.
        """
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._end_child()
            finally:
                self._lock.release()
        elif (child := self._child) is not None:
            child.kill()

    def run(self, code: str) -> SandboxResult:
        """Run a program to its end, or to a limit.

        Raises:
            ValueError: If the sandbox is closed, or is running a program already.
            BaseException: What a function raises that is no `Exception`; the child is killed.
        """
        if not self._lock.acquire(blocking=False):
            raise ValueError("this sandbox is running a program already")
        try:
            if self._closed:
                raise ValueError("this sandbox is closed")
            return self._run(code)
        except BaseException:
            self._end_child()
            raise
        finally:
            self._lock.release()
            if self._closed:  # meanwhile
                self.close()

    def _run(self, code: str) -> SandboxResult:
        if sys.platform == "win32":
            return SandboxResult("refused", "", WINDOWS)
        if len(code) > MOST_CODE:
            return SandboxResult("refused", "", f"refusé : {len(code)} caractères de code, au plus {MOST_CODE}")
        try:
            child = self._child if self._child is not None and self._child.is_ours else self._start()
            if not self._ready and (refusal := self._begin(child)):
                self._end_child()
                return SandboxResult("refused", "", refusal)
        except (StartError, OSError) as error:
            self._end_child()
            return SandboxResult("refused", "", f"refusé : {error}")
        output = Output(self._limits.output_chars)
        try:
            return self._converse(child, code, output)
        except OutOfTimeError as error:
            return self._lost("timeout", output, str(error))
        except ForgedMessageError as error:
            return self._lost("killed", output, f"le programme a contrefait un message ({error})")
        except ChildGoneError:
            if self._closed:  # by another thread
                return self._lost("killed", output, "le bac à sable a été fermé")
            ended = child.exit_code()
            return self._lost("timeout" if ended == -signal.SIGXCPU else "killed", output, end_in_french(ended))

    def _start(self) -> Child:
        self._child, self._ready = Child(), False
        self._ending = weakref.finalize(self, self._child.end)
        return self._child

    def _begin(self, child: Child) -> str | None:
        """Wait for the child to be ready; returns why no program may run in it, in French."""
        stand = walls_of(child.begin(self._setup, self._limits.disk_mb << 20))
        self._ready = True
        return None if self._accept_no_walls else stand.refusal()

    def _converse(self, child: Child, code: str, output: Output) -> SandboxResult:
        clock = child.clock(self._limits.wall_s, self._limits.cpu_s)
        answer: bytes | None = wire.message({"code": code})
        clock.go()
        while True:
            if self._closed:  # by another thread, which may not have met this child
                raise ChildGoneError
            if answer is not None:
                child.release()
                child.channel.send(clock, answer)
                answer = None
            kind, content = child.channel.receive(clock)
            if kind == "printed":
                output.add(content["text"])
            elif kind == "call":
                child.wait_for_function()
                answer = self._answer(clock, **content)
            elif kind == "done":
                child.hold()
                return output.result(**content)
            else:
                raise ForgedMessageError(f"un message « {kind} » au milieu d'un programme")

    def _answer(self, clock: Clock, name: str, arguments: list[Any], named: dict[str, Any]) -> bytes:
        """Call a function, whose own time is not the program's."""
        try:
            clock.stop()
            try:
                value = self._functions[name](*arguments, **named)
            finally:
                clock.go()
            return wire.message({"kind": "returned", "value": value})
        except Exception as error:  # whatever goes wrong in a function is told to the program that called it
            return wire.message({"kind": "raised", "name": type(error).__name__, "arguments": _arguments(error)})

    def _lost(self, status: Status, output: Output, reason: str) -> SandboxResult:
        self._end_child()
        return SandboxResult(status, output.text(cut_off=True), f"arrêté : {reason} ; {LOST}")

    def _end_child(self) -> None:
        self._child = None
        if self._ending is not None:
            self._ending()


def _arguments(error: Exception) -> list[Any]:
    """Return what makes the same error in the child: its own arguments if they are few and plain, else what it says."""
    if len(error.args) <= MOST_ERROR_ARGUMENTS and all(
        isinstance(one, str) or (isinstance(one, int) and one.bit_length() < 64) for one in error.args
    ):
        return [one[:MOST_ERROR] if isinstance(one, str) else one for one in error.args]
    try:
        return [str(error)[:MOST_ERROR]]
    except Exception:  # an error's own __str__ may fail, such as on a number of thousands of digits
        return []
