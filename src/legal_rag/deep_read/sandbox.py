"""The sandbox: programs that a model wrote run in a child process, behind walls, and call only what they are given.

In: functions and values by name, limits, code. Out: what the code printed, and how it ended. State is kept from one
program to the next, in the child; a child that was killed takes it along.
"""

import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from legal_rag.deep_read.sandbox_channel import ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox_child import wire
from legal_rag.deep_read.sandbox_process import Child, StartError
from legal_rag.deep_read.sandbox_walls import Walls, system_name, walls, walls_of

__all__ = ["Limits", "Sandbox", "SandboxResult", "Walls", "walls"]
Status = Literal["ok", "error", "timeout", "killed", "refused"]
MOST_CODE = 200_000  # characters of one program
MOST_ERROR = 10_000  # characters of what a child says of an error
LOST = "les variables sont perdues, le prochain programme repart de zéro"
ABROAD = "Windows : le bac à sable n'y existe pas ; l'environnement « docker » ou WSL y suppléent"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may take; memory and disk are those of the sandbox."""

    memory_mb: int = 512  # beyond what Python itself takes
    cpu_s: float = 10.0
    wall_s: float = 20.0  # the functions' own time is not counted
    output_chars: int = 20_000
    disk_mb: int = 16  # written in all, also what was deleted since

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"a sandbox's {field.name} must be above 0, got {value}")


class SandboxResult(NamedTuple):
    """How a program ended."""

    status: Status
    output: str  # what it printed, to stdout and stderr, up to the limit; then how many characters more
    error: str | None = None  # its traceback, or one line in French that says what stopped it


class Sandbox:
    """Runs programs; a context manager."""

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        limits: Limits = Limits(),
        *,
        values: Mapping[str, Any] | None = None,
        accept_no_walls: bool = False,
    ) -> None:
        """Make a sandbox; its child starts with the first program.

        Args:
            functions: What programs may call, by name; they run here, one at a time.
            limits: Of each program.
            values: What programs find, by name: plain values.
            accept_no_walls: Run programs even where this system cannot contain them.

        Raises:
            ValueError: If a name is none, or a value is not plain.
        """
        for name in (*functions, *(values or {})):
            if not name.isidentifier():
                raise ValueError(f"not a name that a program can use: {name!r}")
        self._functions, self._limits, self._accept_no_walls = dict(functions), limits, accept_no_walls
        self._setup = {
            "functions": {name: inspect.getdoc(function) or "" for name, function in functions.items()},
            "values": dict(values or {}),
            "output_chars": limits.output_chars,
            "memory": limits.memory_mb << 20,
        }
        wire.message(self._setup, wire.MOST_BYTES)
        self._child: Child | None = None
        self._closing: weakref.finalize | None = None
        self._lock, self._closed = threading.Lock(), False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child and delete what it wrote. May be called again."""
        self._closed = True
        self._end_child()

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
            if len(code) > MOST_CODE:
                return SandboxResult("refused", "", f"refusé : {len(code)} caractères de code, {MOST_CODE} au plus")
            if reason := self._started():
                return SandboxResult("refused", "", reason)
            return self._run(code)
        except BaseException:
            self._end_child()
            raise
        finally:
            self._lock.release()

    def _started(self) -> str | None:
        """Start a child where there is none; returns why not, in French."""
        if self._child is not None:
            return None
        if sys.platform == "win32":
            return f"refusé : {system_name()} : {ABROAD}"
        try:
            child = Child(self._setup, self._limits.disk_mb << 20)
        except (StartError, OSError) as error:
            return f"refusé : {error}"
        self._child, self._closing = child, weakref.finalize(self, child.end)
        refusal = None if self._accept_no_walls else walls_of(child.walls).refusal()
        if refusal:
            self._end_child()
        return refusal

    def _run(self, code: str) -> SandboxResult:
        child = self._child
        assert child is not None  # noqa: S101
        clock = child.clock(self._limits.wall_s, self._limits.cpu_s)
        output = _Output(self._limits.output_chars)
        try:
            self._tell(child, clock, {"code": code})
            while True:
                kind, content = child.channel.receive(clock)
                if kind == "printed":
                    output.add(content["text"])
                elif kind == "call":
                    child.stop()
                    clock.stop()
                    self._tell(child, clock, self._answer(**content))
                elif kind == "done":
                    child.stop()
                    output.n_beyond += max(0, content["beyond"])
                    return _ended(output, content["error"])
                else:
                    raise ForgedMessageError(f"un message « {kind} » au milieu d'un programme")
        except OutOfTimeError as error:
            return self._lost("timeout", output, f"arrêté : {error}")
        except ForgedMessageError as error:
            return self._lost("killed", output, f"arrêté : le programme a contrefait un message ({error})")
        except ChildGoneError:
            return self._lost("killed", output, _end_in_french(child.how_it_ended()))

    def _tell(self, child: Child, clock: Clock, content: Mapping[str, Any]) -> None:
        child.go()
        clock.go()
        child.channel.send(clock, wire.message(content, wire.MOST_BYTES))

    def _answer(self, name: str, arguments: list[Any], named: dict[str, Any]) -> Mapping[str, Any]:
        if name not in self._functions:
            raise ForgedMessageError(f"l'appel d'une fonction inconnue : {name!r:.50}")
        try:
            answer = {"kind": "returned", "value": self._functions[name](*arguments, **named)}
            wire.message(answer, wire.MOST_BYTES)
        except Exception as error:  # whatever goes wrong in a function is told to the program that called it
            return _raised(error)
        return answer

    def _lost(self, status: Status, output: "_Output", reason: str) -> SandboxResult:
        self._end_child()
        return SandboxResult(status, output.text(), f"{reason} ; {LOST}")

    def _end_child(self) -> None:
        self._child = None
        if self._closing is not None:
            self._closing()


class _Output:
    """What a program printed, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most, self._pieces, self._count = most, list[str](), 0
        self.n_beyond = 0

    def add(self, text: str) -> None:
        kept = text[: self._most - self._count]
        self.n_beyond += len(text) - len(kept)
        self._count += len(kept)
        self._pieces.append(kept)

    def text(self) -> str:
        beyond = f"\n… [{self.n_beyond} caractères de plus]" if self.n_beyond else ""
        return "".join(self._pieces) + beyond


def _ended(output: _Output, error: str | None) -> SandboxResult:
    if error is None:
        return SandboxResult("ok", output.text())
    return SandboxResult("error", output.text(), error[:MOST_ERROR])


def _raised(error: Exception) -> Mapping[str, Any]:
    plain = [one for one in error.args if one is None or isinstance(one, str | int | float)]
    return {"kind": "raised", "name": type(error).__name__, "arguments": plain}


def _end_in_french(code: int | None) -> str:
    if code is None:
        return "arrêté : le programme a fermé le canal"
    return f"arrêté : le processus du programme a pris fin ({code})"
