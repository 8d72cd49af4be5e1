"""Reproductions: each published figure is a row of one table, with the command that gives it and the value expected."""

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from fnmatch import filter as matching
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from legal_rag.base.files import parse_json, progress, sha256_of, write_whole
from legal_rag.base.html import displayed
from legal_rag.library.library import is_library

TABLE = Path("benchmarks", "reproductions.toml")
DATA = "LEGAL_RAG_DATA"  # the variable that names the folder of the shared data
LIBRARIES = "LIBRARIES"  # the one that names the folder that Libraries are built into
FIRST = "0" * 64  # what the first line of a log holds in place of the SHA-256 of the line before
PACKAGES = ("legal-rag", "numpy", "openvino", "fast-plaid", "tantivy", "ir-measures", "scikit-learn", "torch")
ROW_KEYS = {"shows", "command", "figures", "times", "needs", "libraries", "seconds", "elsewhere"}
MULTIPLIES = ("amx_int8", "avx512_vnni", "avx512f", "avx2")  # flags of processors that encode differently, best first


class ExpectedFigure(NamedTuple):
    """An expected figure: a found one is rounded to its decimals, and may differ by `tolerance`."""

    expected: Decimal
    tolerance: Decimal = Decimal(0)

    def is_met_by(self, found: float, slack: Decimal = Decimal(0)) -> bool:
        """Whether a figure found is the expected one, but for `slack` beside its tolerance."""
        return (
            isfinite(found) and abs(round(Decimal(str(found)), self.decimals) - self.expected) <= self.tolerance + slack
        )

    @property
    def decimals(self) -> int:
        """Digits after the point that the figure is written with."""
        return max(0, -int(self.expected.as_tuple().exponent))


@displayed
class Row(NamedTuple):
    """A command, and what it is expected to print: one JSON value with all `figures` and `times`.

    A figure is named by its path in that value, joined by dots. `times` are shown as ratios and decide nothing.
    `elsewhere` is what figures may differ by on another processor than the table's.
    """

    name: str
    shows: str
    command: str
    figures: Mapping[str, ExpectedFigure]
    times: Mapping[str, Decimal]
    needs: tuple[str, ...]
    libraries: tuple[str, ...]
    seconds: int
    elsewhere: Decimal


class Need(NamedTuple):
    """What a clone does not hold: a file that is there once one has it, and how to get it."""

    file: str
    how: str


class Table(NamedTuple):
    """The reproductions of a clone: rows, Libraries built before them, and what must be there."""

    root: Path
    rows: dict[str, Row]
    libraries: dict[str, Row]
    needs: dict[str, Need]
    processor: str  # one of `MULTIPLIES`, by which the figures were found

    def named(self, names: Sequence[str]) -> list[Row]:
        """Return rows by names or patterns such as 'sample-*'; all of them where none is given.

        LookupError if a name is no row's.
        """
        chosen: dict[str, Row] = {} if names else dict(self.rows)
        for name in names:
            if not (found := matching(self.rows, name)):
                near = get_close_matches(name, self.rows, n=1, cutoff=0)
                raise LookupError(f"no row {name!r} in {TABLE}" + "".join(f" (nearest: {one!r})" for one in near))
            chosen |= {one: self.rows[one] for one in found}
        return list(chosen.values())

    def needed(self, row: Row) -> list[str]:
        """Return the needs of a row and of its Libraries."""
        parts = (row, *(self.libraries[name] for name in row.libraries))
        return list(dict.fromkeys(need for part in parts for need in part.needs))

    def missing(self, row: Row, environment: Mapping[str, str]) -> str:
        """Return what a row needs and is not there, and how to get it; or nothing."""
        needs = {name: self.needs[name] for name in self.needed(row)}
        files = {name: self.root / Template(need.file).safe_substitute(environment) for name, need in needs.items()}
        return "; ".join(f"{name}: no {file}: {needs[name].how}" for name, file in files.items() if not file.exists())


class RowOutcome(NamedTuple):
    """What became of a row: `ok`, `moved`, `failed`, `skipped` (something is missing) or `done` (by the log)."""

    row: Row
    status: str
    found: Mapping[str, float] = {}
    seconds: float = 0.0
    reason: str = ""
    slack: Decimal = Decimal(0)

    @property
    def moved(self) -> list[str]:
        """Names of the figures that are not the expected ones."""
        figures = self.row.figures.items()
        return [name for name, one in figures if name in self.found and not one.is_met_by(self.found[name], self.slack)]


def read_table(folder: Path) -> Table:
    """Read the table of the clone that a folder is in.

    FileNotFoundError if it is in none; ValueError if a row lacks something, or has something unknown.
    """
    root = next((one for one in (folder, *folder.parents) if (one / TABLE).is_file()), None)
    if root is None:
        raise FileNotFoundError(f"no {TABLE} in {folder} or above (expected a clone of the repository)")
    try:
        content = tomllib.loads((root / TABLE).read_text("utf-8"), parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{TABLE}: {error}") from error
    needs = {name: Need(**one) for name, one in content.get("needs", {}).items()}
    libraries = {name: _row(name, one) for name, one in content.get("libraries", {}).items()}
    rows = {name: _row(name, one) for name, one in content.get("rows", {}).items()}
    for row in (*rows.values(), *libraries.values()):
        for kind, known, used in (("need", needs, row.needs), ("Library", libraries, row.libraries)):
            if unknown := set(used) - set(known):
                raise ValueError(f"{TABLE}: row {row.name!r}: no {kind} {min(unknown)!r} (expected {', '.join(known)})")
    return Table(root, rows, libraries, needs, content.get("processor", ""))


def _row(name: str, given: dict[str, Any]) -> Row:
    if missing := {"shows", "command", "seconds"} - set(given):
        raise ValueError(f"{TABLE}: row {name!r} has no {min(missing)!r}")
    if unknown := set(given) - ROW_KEYS:
        raise ValueError(f"{TABLE}: row {name!r}: unknown {min(unknown)!r} (expected {', '.join(sorted(ROW_KEYS))})")
    figures = {figure: _figure(name, figure, value) for figure, value in given.get("figures", {}).items()}
    needs, libraries = (tuple(given.get(key, ())) for key in ("needs", "libraries"))
    times = {key: Decimal(value) for key, value in given.get("times", {}).items()}
    said, elsewhere = (given["shows"], given["command"]), Decimal(given.get("elsewhere", 0))
    return Row(name, *said, figures, times, needs, libraries, given["seconds"], elsewhere)


def _figure(row: str, name: str, value: Any) -> ExpectedFigure:
    given = value if isinstance(value, dict) else {"expected": value}
    try:
        return ExpectedFigure(**{key: Decimal(one) for key, one in given.items()})
    except (ArithmeticError, TypeError, ValueError) as error:
        expected = "a number, or { expected = …, tolerance = … }"
        raise ValueError(f"{TABLE}: row {row!r}: figure {name!r} is {value!r} (expected {expected})") from error


def reproduce(table: Table, rows: Sequence[Row], libraries: Path, log: Path | None = None) -> Iterator[RowOutcome]:
    """Run rows and compare what they print with what is expected.

    Args:
        table: The clone's table.
        rows: Those to run, in this order.
        libraries: Where the Libraries are that rows need; those that are not there are built first.
        log: A file of JSON lines. It gets one for each row that ran; what it holds as right for this commit, a clean
            tree and the same data is not run again.
    """
    libraries.mkdir(parents=True, exist_ok=True)
    environment = _environment(libraries)
    state = _state(table.root, environment)
    lines = read_log(log) if log is not None else []
    done = {line["row"] for line in lines if state["clean"] and line["ok"] and state.items() <= line.items()}
    with progress("Reproducing", total=len(rows), unit=" rows") as bar:
        for row in rows:
            bar.set_postfix_str(row.name)
            outcome = RowOutcome(row, "done") if row.name in done else _run(table, row, environment)
            if log is not None and outcome.status in ("ok", "moved", "failed"):
                append_to_log(log, {**state, **_logged(outcome)})
            bar.update()
            yield outcome


def _run(table: Table, row: Row, environment: Mapping[str, str]) -> RowOutcome:
    if missing := table.missing(row, environment):
        return RowOutcome(row, "skipped", reason=missing)
    try:
        for name in row.libraries:
            if not is_library(Path(environment[LIBRARIES], name)):
                _output_of(table.libraries[name].command, table.root, environment, shown=True)
        started = time.perf_counter()
        printed = _output_of(row.command, table.root, environment)
        seconds = time.perf_counter() - started
        found = _figures_of(printed, [*row.figures, *row.times])
    except (ValueError, LookupError, OSError) as error:
        return RowOutcome(row, "failed", reason=str(error))
    slack = Decimal(0) if table.processor in ("", _multiplies()) else row.elsewhere
    outcome = RowOutcome(row, "ok", found, seconds, slack=slack)
    return outcome._replace(status="moved") if outcome.moved else outcome


def _environment(libraries: Path) -> dict[str, str]:
    """The variables of commands: `legal-rag` and `python` are this environment's, folders are absolute."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    data = {DATA: str(Path(os.environ[DATA]).absolute())} if os.environ.get(DATA) else {}
    return {**os.environ, **data, LIBRARIES: str(libraries.absolute()), "PATH": path}


def _output_of(command: str, root: Path, environment: Mapping[str, str], *, shown: bool = False) -> str:
    """Run a command and return what it prints; its progress on stderr is shown, or kept for an error's last line."""
    words = [Template(word).safe_substitute(environment) for word in shlex.split(command)]
    kept = {"stdout": subprocess.PIPE, "stderr": None if shown else subprocess.PIPE}
    ran = subprocess.run(words, cwd=root, env=environment, text=True, check=False, **kept)  # type: ignore[call-overload]  # noqa: S603
    if ran.returncode:
        last = ((ran.stderr or "").strip() or ran.stdout.strip() or "see above").splitlines()[-1]
        raise ValueError(f"{words[0]} ended with status {ran.returncode}: {last}")
    return ran.stdout


def _figures_of(printed: str, names: Iterable[str]) -> dict[str, float]:
    try:
        found = dict(_flat(parse_json(printed)))
    except ValueError as error:
        raise ValueError(f"printed no JSON value: {printed[:60]!r}") from error
    for name in names:
        if name not in found:
            near = get_close_matches(name, found, n=1, cutoff=0)
            raise LookupError(f"printed no figure {name!r}" + "".join(f" (nearest: {one!r})" for one in near))
    return {name: found[name] for name in names}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value by their paths."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, int | float):
        yield path, value


def _state(root: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what figures depend on: the commit, whether files differ from it, and the data's SHA-256."""
    commit, changes = (_git(root, *words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    files = sorted(Path(environment[DATA]).glob("*")) if environment.get(DATA) else []
    digests = "".join(sha256_of(file) for file in files if file.is_file())
    data = sha256(digests.encode()).hexdigest() if digests else None
    return {"commit": commit, "clean": bool(commit) and not changes, "data": data}


def _git(root: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return ran.stdout.strip()


def _logged(outcome: RowOutcome) -> dict[str, Any]:
    return {
        "row": outcome.row.name,
        "ok": outcome.status == "ok",
        "figures": dict(outcome.found),
        "moved": outcome.moved,
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 1),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
    }


def _machine() -> dict[str, Any]:
    model = re.search(r"model name\s*: (.*)", _cpu_info())
    cpu = f"{model[1] if model else platform.processor()}, {_multiplies()}"
    packages = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "packages": packages}


def _cpu_info() -> str:
    place = Path("/proc/cpuinfo")
    return place.read_text("utf-8") if place.exists() else ""


def _multiplies() -> str:
    """Return how this processor multiplies: the first of `MULTIPLIES` that it has, or nothing."""
    flags = set(_cpu_info().split())
    return next((flag for flag in MULTIPLIES if flag in flags), "")


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read a log, of which each line holds the SHA-256 of the one before; a missing one is empty.

    ValueError if a line was changed, added or taken out.
    """
    before, lines = FIRST, list[dict[str, Any]]()
    for number, text in enumerate(path.read_text("utf-8").splitlines() if path.exists() else [], start=1):
        with suppress(ValueError):
            line = parse_json(text)
            if isinstance(line, dict) and line.get("before") == before:
                lines.append(line)
                before = sha256(text.encode()).hexdigest()
        if len(lines) < number:
            raise ValueError(f"{path}, line {number}: not what followed the line before: the log was changed")
    return lines


def append_to_log(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a log, atomically."""
    written = path.read_text("utf-8") if path.exists() else ""
    before = sha256(written.splitlines()[-1].encode()).hexdigest() if written else FIRST
    write_whole(path, written + json.dumps({**line, "before": before}, ensure_ascii=False) + "\n")


def update_table(table: Table, outcomes: Iterable[RowOutcome]) -> None:
    """Write what was found into the table as expected, with as many decimals as were expected."""
    text = (table.root / TABLE).read_text("utf-8")
    for row, found in ((one.row, one.found) for one in outcomes):
        start = text.find(f"[rows.{row.name}.figures]\n")
        end = text.find("\n[", start) if "\n[" in text[start:] else len(text)
        section = text[start:end]
        for name, figure in row.figures.items() if found else ():
            value = f"{found[name]:.{figure.decimals}f}"
            pattern = rf"(?m)^(\"?{re.escape(name)}\"? = (?:\{{ *expected = )?)[-+.\d]+"
            section = re.sub(pattern, rf"\g<1>{value}", section)
        text = text[:start] + section + text[end:]
    write_whole(table.root / TABLE, text)
