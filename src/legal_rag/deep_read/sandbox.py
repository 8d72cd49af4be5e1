"""Run programs that a model wrote, in Monty: an interpreter without files, network or processes, in a worker process.

A program reaches the functions that it is given, and nothing else of this process. Monty (pydantic-monty) bounds its
memory, its time and its calls; what a program passes to a function is bounded here, before anything reads it.
"""

import ast
import logging
import statistics
import string
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from pydantic_monty import (
    ExternalModule,
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontySession,
    MontySyntaxError,
)

from legal_rag import deadline
from legal_rag.deep_read.settings import Limits

logger = logging.getLogger(__name__)

Status = Literal["ok", "error", "stopped"]
MAX_WORKERS = 64  # sessions at once in this process: deep reads in threads, and within one another
MAX_ERROR = 10_000  # characters shown of an error
# Of one call, before the function's own bounds. A text takes this process twice its size while it arrives.
MAX_CHARS, MAX_ITEMS, MAX_DEPTH, MAX_BITS = 16_000_000, 500_000, 50, 10_000
LOST = "ses variables sont perdues"
# What Monty says, and what to write instead.
ADVICE = {
    "yield": "l'interpréteur n'a pas yield : construisez une liste",
    "cannot suspend": "une fonction du corpus ne s'appelle pas dans key=, map ou filter, ni dans une méthode __…__ : "
    "calculez d'abord ses valeurs par une compréhension",
    "callable replacement": "re.sub ne prend ici qu'un texte : parcourez re.finditer",
    "'del' statement": "l'interpréteur n'a pas del : affectez None",
    "has no attribute": "une méthode ne se passe pas seule : écrivez lambda cle: valeurs[cle], ou texte.lower()",
    "not yet support": "l'interpréteur n'a pas cela : écrivez-le plus simplement",
    "No module named": "il y a re, json, math, statistics, datetime, collections, itertools, functools, operator,"
    " heapq, string, random, unicodedata, dataclasses",
    "Permission denied": "un programme n'a pas de fichiers",
}
# What Monty lacks of the standard library and models often write. Modules of plain functions and values are imported;
# `operator` and `heapq` take or give functions of the program, which cannot leave it: they are written in its language.
MODULES = {
    "statistics": ExternalModule(
        {
            name: getattr(statistics, name)
            for name in statistics.__all__
            if name.islower() and name != "linear_regression"
        }
    ),
    "string": ExternalModule({name: value for name, value in vars(string).items() if isinstance(value, str)}),
}
OWN_MODULES = ("operator", "heapq")
PRELUDE = """
class _Operator:
    def itemgetter(self, *keys):
        return (lambda row: row[keys[0]]) if len(keys) == 1 else (lambda row: tuple(row[key] for key in keys))

    def attrgetter(self, name):
        return lambda value: getattr(value, name)

class _Heapq:
    def nlargest(self, n, rows, key=None):
        return sorted(rows, key=key, reverse=True)[:n]

    def nsmallest(self, n, rows, key=None):
        return sorted(rows, key=key)[:n]

_operator = _Operator()
_heapq = _Heapq()
"""


class SandboxResult(NamedTuple):
    """How a program ended."""

    status: Status  # "stopped": by a limit, and its variables are lost
    output: str  # what it printed, up to the limit; then how many characters more there were
    error: str | None = None  # its traceback, or a French line that says what stopped it


class Sandbox:
    """One session of programs, run one at a time, which share their variables; a context manager.

    Args:
        functions: What programs may call, by name. A ValueError, LookupError or TypeError is raised in the program; all
            other errors end it, and are raised by `run`.
        limits: Of programs and of the session.
        values: Variables that programs find, which JSON can hold.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        limits: Limits | None = None,
        *,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._functions, self._values = functions, dict(values or {})
        self._limits = limits or Limits()
        self._session: MontySession | None = None
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session, and forget its variables; a later `run` begins a new one."""
        if self._session is not None and self._thread is not None:
            self._thread.submit(self._session.__exit__, None, None, None)  # after the program that may be running
            self._thread.shutdown(wait=False)
        self._session = self._thread = None

    def run(self, code: str) -> SandboxResult:
        """Run a program.

        Raises:
            DeadlineError: If the deadline passed meanwhile; the session is closed.
        """
        printed = _Printed(self._limits.output_chars)
        try:
            self._drive(adapted(code), printed)
        except MontySyntaxError as error:
            return SandboxResult("error", printed.text, _advised(error))
        except MontyError as error:
            if (reason := self._why_stopped(error)) is None:
                return SandboxResult("error", printed.text, _advised(error))
            self.close()
            return SandboxResult("stopped", printed.text, f"{reason} ; {LOST}")
        except BaseException:  # of a function, the deadline, Ctrl-C: the program is left where it is
            self.close()
            raise
        return SandboxResult("ok", printed.text)

    def _drive(self, code: str, printed: "_Printed") -> None:
        session = self._session or self._begin()
        # The value of a last expression would be sent here: nobody asks for it.
        step = self._compute(lambda: session.feed_start(f"{code}\nNone", print_callback=printed.add, **self._given))
        while not isinstance(step, MontyComplete):
            if isinstance(step, FunctionSnapshot) and not step.is_os_function and step.function_name in self._functions:
                answer = self._call(step)
                step = self._compute(lambda: step.resume(answer))  # noqa: B023 - called before the next turn
            else:  # an import, a name, a file: Monty's own affair
                step = self._compute(step.resume_auto)

    def _begin(self) -> MontySession:
        limits = self._limits
        checkout = _pool().checkout(
            script_name="programme.py",
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory_mb * 1_000_000,
                "max_suspensions": limits.calls,
            },
            os_policy={"sleep": "zero", "random_start": {"seed": 0}},  # the same program gives the same
            external_modules=MODULES,
        )
        self._thread, self._session = ThreadPoolExecutor(1), checkout.__enter__()
        _confine_workers()
        self._compute(lambda: checkout.feed_run(PRELUDE, inputs=self._values))
        return checkout

    @property
    def _given(self) -> dict[str, Any]:
        return {"external_lookup": dict(self._functions)}

    def _compute(self, work: Callable[[], Any]) -> Any:
        """Have the worker compute, in a thread: neither a deadline nor Ctrl-C has to wait for it."""
        left, thread = deadline.seconds_left(), cast("ThreadPoolExecutor", self._thread)
        done = thread.submit(work)
        with suppress(TimeoutError):
            return done.result(max(0.0, left) if left != float("inf") else None)
        raise deadline.DeadlineError

    def _call(self, step: FunctionSnapshot) -> Any:
        try:
            bounded = _Plain()
            arguments = [bounded.value(one) for one in step.args]
            named = {bounded.key(name): bounded.value(one) for name, one in step.kwargs.items()}
            return {"return_value": self._functions[str(step.function_name)](*arguments, **named)}
        except (ValueError, LookupError, TypeError) as error:
            return {"exception": error}

    def _why_stopped(self, error: MontyError) -> str | None:
        """Return which limit ended a program, in French; None if it is the program's own error."""
        text, limits = str(error), self._limits
        if "time limit exceeded" in text:
            return f"arrêté après {limits.seconds:g} s de calcul"
        if "memory limit" in text:
            return f"la mémoire est épuisée ({limits.memory_mb} Mo)"
        if "suspensions" in text:
            return f"plus de {limits.calls} appels de fonctions"
        return "l'interpréteur s'est effondré" if isinstance(error, MontyCrashedError) else None


class _Printed:
    """What a program printed, up to a limit."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._beyond = most, "", 0

    def add(self, stream: str, text: str) -> None:
        room = self._most - len(self._kept)
        self._kept += text[:room]
        self._beyond += max(0, len(text) - room)

    @property
    def text(self) -> str:
        return self._kept + (f"\n… [{self._beyond} caractères de plus]" if self._beyond else "")


class _Plain:
    """Makes plain values, within bounds, of what a program passes to a function."""

    def __init__(self) -> None:
        self._chars, self._items = MAX_CHARS, MAX_ITEMS

    def value(self, value: Any, depth: int = 0) -> Any:
        self._items -= 1
        if self._items < 0 or depth > MAX_DEPTH:
            raise ValueError("argument trop grand, ou de listes trop imbriquées")
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise ValueError("nombre trop grand")
            return value
        if isinstance(value, Mapping):
            return {self.key(key): self.value(one, depth + 1) for key, one in value.items()}
        if isinstance(value, set | frozenset):
            return sorted((self.value(one, depth + 1) for one in value), key=str)
        if isinstance(value, list | tuple):
            return [self.value(one, depth + 1) for one in value]
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(attributes := getattr(value, "attributes", None), dict):  # an object of a class of the program
            return self.value(attributes, depth + 1)
        raise TypeError(f"un programme ne peut pas passer ici de {type(value).__name__}")

    def key(self, key: Any) -> str:
        return self._text(key) if isinstance(key, str) else str(self.value(key, MAX_DEPTH - 1))

    def _text(self, text: str) -> str:
        self._chars -= len(text)
        if self._chars < 0:
            raise ValueError(f"argument trop long : plus de {MAX_CHARS} caractères")
        return text


def _advised(error: MontyError) -> str:
    """Return a program's traceback, and what to write instead where Monty lacks something."""
    text = (error.display() if hasattr(error, "display") else str(error))[:MAX_ERROR]
    advice = next((said for sign, said in ADVICE.items() if sign in text), "")
    return f"{text}\n{advice}" if advice else text


def parsed(code: str) -> ast.Module | None:
    """Parse a program; None if it is not Python."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # also of null bytes and endless brackets
        return None


def adapted(code: str) -> str:
    """Write what Monty lacks of Python in what it has, where that means the same; all lines stay where they are."""
    if (tree := parsed(code)) is None:
        return code
    data, edits = code.encode(), list[tuple[int, int, str]]()
    starts = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    for node in ast.walk(tree):
        for found, before, after in _wrappings(node):
            first = starts[found.lineno - 1] + found.col_offset
            last = starts[found.end_lineno - 1] + found.end_col_offset
            edits += [(first, first, before), (last, last, after)] if after else [(first, last, before)]
    for first, last, new in sorted(edits, reverse=True):
        data = data[:first] + new.encode() + data[last:]
    return data.decode()


def _wrappings(node: ast.AST) -> Iterator[tuple[Any, str, str]]:
    """Yield parts of a node that are written otherwise: what goes before and after, or, without after, in its place."""
    if isinstance(node, ast.ImportFrom) and node.module in OWN_MODULES:
        yield node, "; ".join(f"{one.asname or one.name} = _{node.module}.{one.name}" for one in node.names), ""
    elif isinstance(node, ast.Import) and any(one.name in OWN_MODULES for one in node.names):
        own = [f"{one.asname or one.name} = _{one.name}" for one in node.names if one.name in OWN_MODULES]
        others = [f"import {ast.unparse(one)}" for one in node.names if one.name not in OWN_MODULES]
        yield node, "; ".join([*own, *others]), ""
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "next" and node.args and isinstance(node.args[0], ast.GeneratorExp):  # which is a list in Monty
            alone = len(node.args) == 1  # then the brackets of the call are its own
            yield node.args[0], "(iter" if alone else "iter", ")" if alone else " "
        values = [one.value for one in node.keywords if one.arg == "key"] + node.args[: name in ("map", "filter")]
        for method in (one for one in values if isinstance(one, ast.Attribute)):  # no method is a value in Monty
            if isinstance(method.value, ast.Name) and method.value.id in ("str", "dict", "list"):
                yield method, f"lambda _one: _one.{method.attr}()", ""
            else:
                yield method, "lambda _one: ", "(_one)"


@cache
def _pool() -> Monty:
    """Return the process's workers; Monty clears their environment, and they end with this process."""
    return Monty(max_processes=MAX_WORKERS).__enter__()


def _confine_workers() -> None:
    """Put a second wall around the workers, on Linux: no file or socket more, no byte written, no process begun."""
    if sys.platform != "linux":
        return
    import resource

    for children in Path("/proc/self/task").glob("*/children"):
        for pid in map(int, children.read_text().split()):
            if Path(f"/proc/{pid}/comm").read_text() == "monty\n":
                for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
                    resource.prlimit(pid, limit, (0, 0))
