"""Run model-written programs in Monty: an interpreter without files, network or processes, in a worker process.

A program can only reach the functions it is given in this process. Monty (pydantic-monty) bounds its
memory, its time and its calls; what a program passes to a function is bounded here, before anything reads it.
"""

import ast
import math
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, Literal, NamedTuple, cast

from pydantic_monty import (
    FunctionSnapshot,
    Monty,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
)

from legal_rag.base import deadline
from legal_rag.base.html import displayed
from legal_rag.deep_read.settings import Limits

Status = Literal["ok", "error", "stopped"]
Functions = Mapping[str, Callable[..., Any]]
MAX_WORKERS = 64  # sessions at once in this process: deep reads in threads, and within one another
WAIT_S = 30.0  # for a worker where all are taken
GRACE_S = 0.5  # beyond its time, for a program to notice; then its worker is killed, whatever it does
MAX_CODE = 50_000  # characters: the parser of this process takes 500 times as many bytes
MAX_ERROR = 10_000  # characters shown of an error, its beginning and its end
# Of one call, before the function's own bounds. A text takes this process twice its size while it arrives.
MAX_CHARS, MAX_ITEMS, MAX_DEPTH, MAX_BITS = 16_000_000, 500_000, 50, 10_000
TAKEN = "_"  # appended to a variable that has a function's name
LOST = "ses variables sont perdues"
# What Monty sends in place of what it cannot send: a text, which no function should take for one.
UNLISTED = re.compile(r"dict_(keys|values|items)\(\[|range\(-?\d+, -?\d+|<[\w.]+ object>\Z")
# Names of a hundred parts, of which the parser makes a copy for each part.
ENDLESS_NAME = re.compile(r"\b(?:\w++[\s\\]*+\.[\s\\]*+){100}")
# Monty's messages, and what to write instead.
ADVICE = {
    "yield": "l'interpréteur n'a pas yield : construisez une liste",
    "cannot suspend": "une fonction du corpus ne s'appelle pas dans key=, map ou filter, ni dans une méthode __…__ : "
    "calculez d'abord ses valeurs par une compréhension",
    "callable replacement": "re.sub ne prend ici qu'un texte : parcourez re.finditer",
    "'del' statement": "l'interpréteur n'a pas del : affectez None",
    "has no attribute": "une méthode ne se passe pas seule : écrivez lambda cle: valeurs[cle], ou texte.lower()",
    "one string argument": 'une exception ne prend qu\'un texte : ValueError(f"…")',
    "not yet support": "l'interpréteur n'a pas cela : écrivez-le plus simplement",
    "No module named": "il y a re, json, math, statistics, datetime, collections, itertools, functools, operator,"
    " heapq, string, random, unicodedata, dataclasses",
    "Permission denied": "un programme n'a pas de fichiers",
}
# Modules that Monty lacks and models often write. They are programs too: within their limits, taking their functions.
# Imports of them become assignments from the names of the prelude.
OWN_MODULES = ("operator", "heapq", "statistics", "string")
PRELUDE = files("legal_rag.deep_read").joinpath("templates", "prelude.txt").read_text("utf-8")


@displayed
class SandboxResult(NamedTuple):
    """How a program ended."""

    status: Status  # "stopped": by a limit, and its variables are lost
    output: str  # what it printed, up to the limit; then how many characters more there were
    error: str | None = None  # its traceback, or a French line on what stopped it


class Sandbox:
    """One session of programs, run one at a time, which share their variables; a context manager.

    Programs call `functions` by name: a ValueError, LookupError or TypeError is raised in the program; all other errors
    end it, and are raised by `run`. They find `values`, which JSON can hold, as variables. A variable with the name of
    a function does not take its place: `count = count(ids)` leaves `count(…)` for the next call.
    """

    def __init__(
        self, functions: Functions, limits: Limits | None = None, *, values: Mapping[str, Any] | None = None
    ) -> None:
        self._functions, self._values = functions, dict(values or {})
        self._limits = limits or Limits()
        self._session: MontySession | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._worker = 0  # its process id
        self._taken: set[str] = set()  # names of functions that are variables too
        self._ends = math.inf  # of the current program's time, on the monotonic clock

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session, and forget its variables; a later `run` begins a new one."""
        if self._worker:
            with suppress(OSError):  # it may have exited already
                os.kill(self._worker, signal.SIGTERM)
        if self._session is not None and self._thread is not None:
            self._thread.submit(self._session.__exit__, None, None, None)
            self._thread.shutdown(wait=False)
        self._session, self._thread, self._worker = None, None, 0

    def run(self, code: str) -> SandboxResult:
        """Run a program; DeadlineError if the deadline passed meanwhile, which closes the session."""
        if len(code) > MAX_CODE:
            return SandboxResult("error", "", f"programme trop long : {len(code)} caractères, au plus {MAX_CODE}")
        printed = _Printed(self._limits.output_chars)
        try:
            self._drive(adapted(self.without_taken(code)), printed)
        except (MontyError, _OutOfTimeError) as error:
            if (reason := self._explain_limit(error)) is None:
                return SandboxResult("error", printed.text, _format_error(cast("MontyError", error)))
            self.close()
            return SandboxResult("stopped", printed.text, f"{reason} ; {LOST}")
        except BaseException:  # of a function, the deadline, Ctrl-C: nobody waits for the program
            self.close()
            raise
        return SandboxResult("ok", printed.text)

    def restore(self, name: str) -> None:
        """Give a variable the value that the session began with."""
        if self._session is not None and name in self._values:
            session, inputs = self._session, {name: self._values[name]}
            self._compute(lambda: session.feed_run("None", inputs=inputs))

    def without_taken(self, code: str) -> str:
        """Rename the variables of a program that have names of functions, here or earlier; calls are the functions'."""
        if (tree := parsed(code)) is None:
            return code
        self._taken |= names_stored(tree) & self._functions.keys()
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | names_stored(tree)
        if not self._taken.isdisjoint(names):
            return ast.unparse(_Renaming(self._taken).visit(tree))
        return code

    def _drive(self, code: str, printed: "_Printed") -> None:
        session = self._session or self._begin()
        self._ends = time.monotonic() + self._limits.seconds + GRACE_S
        # The value of a last expression would be sent here, and is not needed.
        code, functions = f"{code}\nNone", dict(self._functions)
        step = self._compute(lambda: session.feed_start(code, external_lookup=functions, print_callback=printed.add))
        while not isinstance(step, MontyComplete):
            if isinstance(step, FunctionSnapshot) and not step.is_os_function and step.function_name in self._functions:
                answer = self._call(step)
                step = self._compute(lambda: step.resume(answer))  # noqa: B023 - called before the next turn
            else:  # an import, a name, a file: handled by Monty
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
        )
        self._thread, self._session, self._ends = ThreadPoolExecutor(1), checkout, math.inf
        self._compute(checkout.__enter__)
        self._worker = checkout.worker_pid or 0
        _confine(self._worker)
        self._compute(lambda: checkout.feed_run(PRELUDE, inputs=self._values))
        return checkout

    def _compute(self, work: Callable[[], Any]) -> Any:
        """Run worker calls in a thread, so that neither a deadline nor Ctrl-C has to wait for them."""

        def computed() -> Any:
            step = work()
            if isinstance(step, FunctionSnapshot):
                with suppress(Exception):  # `_call` meets it
                    _ = step.args, step.kwargs  # made when they are first read, which may take seconds
            return step

        done = cast("ThreadPoolExecutor", self._thread).submit(computed)
        program_left, left = self._ends - time.monotonic(), deadline.seconds_left()
        try:
            return done.result(max(0.0, min(program_left, left)) if min(program_left, left) < math.inf else None)
        except TimeoutError as error:
            if done.done() and done.exception() is error:  # no worker was free
                raise
            raise (deadline.DeadlineError if left < program_left else _OutOfTimeError) from None

    def _call(self, step: FunctionSnapshot) -> Any:
        bounded = _Plain()
        try:
            arguments = [bounded.value(argument) for argument in step.args]
            named = {bounded.key(name): bounded.value(argument) for name, argument in step.kwargs.items()}
        except Exception as error:  # Monty's own, too: it cannot make a value of each that a program can
            return {"exception": error}
        started = time.monotonic()
        try:
            return {"return_value": self._functions[str(step.function_name)](*arguments, **named)}
        except (ValueError, LookupError, TypeError) as error:
            return {"exception": error}
        finally:
            self._ends += time.monotonic() - started

    def _explain_limit(self, error: Exception) -> str | None:
        """Return which limit ended a program, in French; None if it is the program's own error."""
        text, limits = str(error), self._limits
        if isinstance(error, _OutOfTimeError) or text.startswith("TimeoutError: feed time limit"):
            return f"arrêté après {limits.seconds:g} s de calcul"
        if text.startswith("MemoryError: ") and "memory limit" in text:
            return f"la mémoire est épuisée ({limits.memory_mb} Mo)"
        if text.startswith("RuntimeError: suspension limit"):
            return f"plus de {limits.calls} appels de fonctions"
        if isinstance(error, MontyCrashedError):
            return "l'interpréteur s'est effondré"
        has_line = isinstance(error, MontyRuntimeError) and (error.traceback() or "Internal error in monty" in text)
        if has_line or isinstance(error, MontySyntaxError):
            return None
        return f"une fonction a donné une valeur qu'un programme ne peut pas recevoir ({text[:MAX_ERROR]})"


class _OutOfTimeError(Exception):
    """A program overran its time, or spent it on passing values back and forth."""


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
    """Converts what a program passes to a function to plain values, within bounds."""

    def __init__(self) -> None:
        self._chars, self._items = MAX_CHARS, MAX_ITEMS

    def value(self, value: Any, depth: int = 0) -> Any:
        self._items -= 1
        if self._items < 0 or depth > MAX_DEPTH:
            raise ValueError("argument trop grand, ou de listes trop imbriquées")
        if isinstance(value, str):
            return self._bounded_text(value)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            if value.bit_length() > MAX_BITS:
                raise ValueError("nombre trop grand")
            self._take(value.bit_length() // 3)  # digits, about
            return value
        if isinstance(value, Mapping):
            return {self.key(key): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, set | frozenset):
            return sorted((self.value(item, depth + 1) for item in value), key=str)
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(attributes := getattr(value, "attributes", None), dict):  # an object of a class of the program
            return self.value(attributes, depth + 1)
        raise TypeError(f"un programme ne peut pas passer ici de {type(value).__name__}")

    def key(self, key: Any) -> str:
        return self._bounded_text(key) if isinstance(key, str) else str(self.value(key, MAX_DEPTH - 1))

    def _bounded_text(self, text: str) -> str:
        if UNLISTED.match(text):
            raise TypeError("écrivez list(…) autour de .keys(), .values(), .items(), range ou d'un itérateur")
        self._take(len(text))
        return text

    def _take(self, chars: int) -> None:
        self._chars -= chars
        if self._chars < 0:
            raise ValueError(f"argument trop long : plus de {MAX_CHARS} caractères")


def _format_error(error: MontyError) -> str:
    """Format a program's traceback, with advice where Monty lacks something."""
    text = error.display() if hasattr(error, "display") else str(error)
    if (beyond := len(text) - MAX_ERROR) > 0:
        half = MAX_ERROR // 2
        text = f"{text[:half]}\n… [{beyond} caractères de moins] …\n{text[-half:]}"
    advice = next((hint for sign, hint in ADVICE.items() if sign in str(error)), "")
    return f"{text}\n{advice}" if advice else text


def parsed(code: str) -> ast.Module | None:
    """Parse a program; None if it is not Python, or too large."""
    if len(code) > MAX_CODE or ENDLESS_NAME.search(code):
        return None
    try:
        with warnings.catch_warnings():  # about a program's escapes, irrelevant to the user
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # also of null bytes and endless brackets
        return None


def names_stored(tree: ast.Module) -> set[str]:
    """Return the names that a program assigns or defines."""
    nodes = list(ast.walk(tree))
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return assigned | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


class _Renaming(ast.NodeTransformer):
    """Appends a sign to variables with some names, and to functions that a program defines, except in calls."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.Call:
        called = node.func
        self.generic_visit(node)
        node.func = called if isinstance(called, ast.Name) else node.func
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(node.id + TAKEN, node.ctx) if node.id in self._names else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.name += TAKEN if node.name in self._names else ""
        return node


def adapted(code: str) -> str:
    """Rewrite Python that Monty lacks as equivalent code that it has; line numbers are kept."""
    if (tree := parsed(code)) is None:
        return code
    data, edits = code.encode(), list[tuple[int, int, str]]()
    starts = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    for node in ast.walk(tree):
        for part, before, after in _iter_rewrites(node):
            first = starts[part.lineno - 1] + part.col_offset
            last = starts[part.end_lineno - 1] + part.end_col_offset
            edits += [(first, first, before), (last, last, after)] if after else [(first, last, before)]
    for first, last, new in sorted(edits, reverse=True):
        data = data[:first] + new.encode() + data[last:]
    return data.decode()


def _iter_rewrites(node: ast.AST) -> Iterator[tuple[Any, str, str]]:
    """Yield parts of a node to rewrite: the text before and after or, without after, the replacement."""
    if isinstance(node, ast.ImportFrom) and node.module in OWN_MODULES and node.names[0].name != "*":
        bound = [f"{alias.asname or alias.name} = _{node.module}.{alias.name}" for alias in node.names]
        gap = "\n" * (cast("int", node.end_lineno) - node.lineno)  # of names in brackets
        yield node, "; ".join(bound) + (f"; ({gap})" if gap else ""), ""
    elif isinstance(node, ast.Import) and any(alias.name in OWN_MODULES for alias in node.names):
        bound = [f"{alias.asname or alias.name} = _{alias.name}" for alias in node.names if alias.name in OWN_MODULES]
        others = [f"import {ast.unparse(alias)}" for alias in node.names if alias.name not in OWN_MODULES]
        yield node, "; ".join([*bound, *others]), ""
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "next" and node.args and isinstance(node.args[0], ast.GeneratorExp):  # which is a list in Monty
            alone = len(node.args) == 1  # then the brackets of the call are its own
            yield node.args[0], "(iter" if alone else "iter", ")" if alone else " "
        values = [kw.value for kw in node.keywords if kw.arg == "key"] + node.args[: name in ("map", "filter")]
        for method in (value for value in values if isinstance(value, ast.Attribute)):  # no method is a value in Monty
            if isinstance(method.value, ast.Name) and method.value.id in ("str", "dict", "list"):
                yield method, f"lambda _one: _one.{method.attr}()", ""
            else:
                yield method, "lambda _one: ", "(_one)"


@cache
def _pool() -> Monty:
    """Return the pool that starts a worker per session, without environment, until this process exits."""
    return Monty(max_processes=MAX_WORKERS, max_checkouts_per_worker=1, checkout_timeout=WAIT_S).__enter__()


def _confine(worker: int) -> None:
    """Restrict a worker further on Linux: no new file or socket, no byte written, no new process."""
    if sys.platform == "linux" and worker:  # 0 would be this process
        import resource

        for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
            resource.prlimit(worker, limit, (0, 0))
