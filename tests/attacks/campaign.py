"""Run the attacks of this folder one after the other, and measure what they leave; `make attack` is this.

A worker runs the cases in its own process, around a Library of twenty decisions; this process watches it from outside,
so that a case that kills or hangs the worker is a line of the table too. Results are written as they come: the same
command takes up a campaign that was cut off. A case holds if all its attempts are contained, it comes back within its
limit and a second, takes no more memory than its group may, leaves no file, thread or process, and says one line.
"""

import argparse
import hashlib
import importlib
import json
import os
import queue
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from support import ROOT, TESTS
from support.processes import children
from tqdm import tqdm

from attacks.cases import Case, Outcome, Place
from legal_rag.base.files import cache_folder

MODULES = ("programs", "arguments", "servers", "files", "flips", "injection", "protocol")  # of this folder
GROUPS = tuple(name for name in MODULES if (TESTS / "attacks" / f"{name}.py").exists())
MOST_MEMORY = {"programs": 150_000_000, "arguments": 150_000_000}  # bytes above what the process had before
MOST_USUALLY = 300_000_000  # of the other groups
GRACE_S = 5.0  # beyond a case's limit, on a busy machine; for what it started to be gone
HUNG_S = 30.0  # beyond that, before a worker is killed
START_S = 300.0  # for a worker to be ready, and for a group's preparation
MOST_LINE = 400  # characters
N_DOCUMENTS = 20
SHARED_MEMORY = "/dev/shm"  # noqa: S108
HOME = ROOT / "build" / "attack"
SEED = 14


@dataclass(frozen=True)
class Result:
    """What a case came to."""

    group: str
    name: str
    attempts: int
    contained: int
    seconds: float
    megabytes: float  # at its peak, above before
    line: str
    faults: tuple[str, ...] = ()  # all that is wrong with it

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def __str__(self) -> str:
        return f"{self.group}/{self.name}: {'; '.join(self.faults)}: {self.line}"


# --- the worker ------------------------------------------------------------------------------------------------------


def work(home: Path, seed: int, names: list[str]) -> None:
    """Run the cases named `group/name`, in their order, and tell of each on what was standard output."""
    told = os.fdopen(os.dup(1), "w")
    log = os.open(home / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    cases = {f"{group}/{case.name}": (group, case) for group, case in all_cases(seed, GROUPS)}
    prepared: set[str] = set()
    for name in names:
        group, case = cases[name]
        if group not in prepared:
            prepared.add(group)
            _tell(told, preparing=group)
            prepare = getattr(importlib.import_module(f"attacks.{group}"), "prepare", None)
            if prepare is not None:
                with _place(home) as place:
                    prepare(place)
        _tell(told, begun=name, limit=case.seconds + GRACE_S)
        _tell(told, result=vars(attacked(group, case, home)))


def attacked(group: str, case: Case, home: Path) -> Result:
    """Run a case and look at all that it may have left."""
    before = _Traces(home)
    _forget_peak()
    memory, started = _memory("VmRSS"), time.monotonic()
    with _place(home) as place:
        try:
            outcome = case.run(place)
        except BaseException as error:  # whatever comes out here has come out at the user
            outcome = Outcome(0, f"{type(error).__name__}: {error}")
            faults = ["raised"]
        else:
            faults = []
    seconds, peak = time.monotonic() - started, max(0, _memory("VmHWM") - memory)
    contained, line = int(outcome.contained), " ".join(str(outcome.line).split())[:MOST_LINE]
    if contained < case.attempts:
        faults.append("not contained")
    if not line:
        faults.append("said nothing")
    if seconds > case.seconds + GRACE_S:
        faults.append(f"{seconds:.1f} s of {case.seconds:g}")
    if peak > MOST_MEMORY.get(group, MOST_USUALLY):
        faults.append(f"{peak / 1e6:.0f} MB")
    faults += before.left_since()
    return Result(group, case.name, case.attempts, contained, seconds, peak / 1e6, line, tuple(faults))


class _Traces:
    """Threads, processes and files that are there at one time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._threads, self._processes, self._files = set(threading.enumerate()), children(), set(_files(home))

    def left_since(self) -> list[str]:
        """Say what is there now and was not, once it has had a moment to go."""
        ends = time.monotonic() + GRACE_S
        while (left := self._left()) and time.monotonic() < ends:
            time.sleep(0.02)
        return left

    def _left(self) -> list[str]:
        threads = [one.name for one in threading.enumerate() if one not in self._threads]
        changed = set(_files(self._home)) ^ self._files
        return [
            *(f"left the thread {name}" for name in threads),
            *(f"left the process {pid}" for pid in children() - self._processes),
            *(f"left or changed {name}" for name in sorted({name for name, _ in changed})[:3]),
        ]


class _place:  # noqa: N801 - reads as the function that it stands for
    """A folder for one case, deleted after it whatever is in there."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / "case"

    def __enter__(self) -> Place:
        self._folder.mkdir()
        return Place(self._home / "library" / "sample", self._folder)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["rm", "-rf", str(self._folder)], check=True)


def _files(home: Path) -> Iterator[tuple[str, Any]]:
    """List what attacks must not change: temporary files, the home, the folder that they run in, the Library."""
    for name in ("tmp", "home", "work", "library"):
        for folder, names, files in os.walk(home / name):
            for one in (*names, *files):
                path = Path(folder, one)
                with suppress(FileNotFoundError):
                    status = path.lstat()
                    yield str(path.relative_to(home)), one in names or (status.st_size, status.st_mtime_ns)
    for one in os.listdir(SHARED_MEMORY):  # noqa: PTH208
        if not one.startswith("sem."):  # semaphores are anybody's: each is unlinked by the process that made it
            yield f"{SHARED_MEMORY}/{one}", None


def _forget_peak() -> None:
    with suppress(OSError):  # "5" resets the peak: proc(5)
        Path("/proc/self/clear_refs").write_text("5")


def _memory(field: str) -> int:
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(found.split()[1]) * 1024


def _tell(told: Any, **content: Any) -> None:
    told.write(json.dumps(content) + "\n")
    told.flush()


# --- the process that watches it -------------------------------------------------------------------------------------


def all_cases(seed: int, groups: Iterable[str]) -> Iterator[tuple[str, Case]]:
    """Yield the cases of all groups."""
    for group in groups:
        names: set[str] = set()
        for case in importlib.import_module(f"attacks.{group}").cases(seed):
            if case.name in names:
                raise ValueError(f"two cases of {group} are called {case.name!r}")
            names.add(case.name)
            yield group, case


def run(home: Path, seed: int, groups: Iterable[str], seconds: float | None) -> list[Result]:
    """Run all cases that have no result yet, or those of some seconds, drawn from all groups alike."""
    _build_library(home)
    results = _Results(home, seed)
    cases = list(all_cases(seed, groups))
    limits = {f"{group}/{case.name}": case for group, case in cases}
    names = [name for name in limits if name not in results.done]
    if seconds is not None:
        names = _shuffled_in_turn(names, limits, seed)
    ends = None if seconds is None else time.monotonic() + seconds
    with tqdm(total=len(limits), initial=len(limits) - len(names), unit=" cases", file=sys.stderr) as bar:
        while names and (ends is None or time.monotonic() < ends):
            n_before = len(results.done)
            for result in _worked(home, seed, names, limits, ends):
                results.add(result)
                bar.update()
                if not result.holds:
                    bar.write(
                        f"{result.group}/{result.name}: {'; '.join(result.faults)}: {result.line}", file=sys.stderr
                    )
            names = [name for name in names if name not in results.done]
            if len(results.done) == n_before and names and (ends is None or time.monotonic() < ends):
                raise SystemExit(f"the worker does not start: see {home / 'worker.log'}")
    return [one for name, one in results.done.items() if name in limits]


def _worked(home: Path, seed: int, names: list[str], limits: dict[str, Case], ends: float | None) -> Iterator[Result]:
    """Yield the results of one worker until it has done all, or has ended, was killed, or the time is over."""
    worker = subprocess.Popen(
        _command(home, seed),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(home),
        cwd=home / "work",
        text=True,
    )
    assert worker.stdin is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_pass_on, args=(worker.stdout, lines), daemon=True).start()
    begun, patience = "", START_S
    try:
        worker.stdin.write(json.dumps(names))
        worker.stdin.close()
        while True:
            started = time.monotonic()
            try:
                line = lines.get(timeout=patience)
            except queue.Empty:
                if begun:
                    yield _lost(begun, limits, time.monotonic() - started, "hung: the worker was killed")
                return
            if not line:
                if begun:
                    yield _lost(begun, limits, time.monotonic() - started, f"ended the worker ({worker.wait()})")
                return
            told = json.loads(line)
            if "preparing" in told:
                begun, patience = "", START_S
            elif "begun" in told:
                if ends is not None and time.monotonic() > ends:
                    return
                begun, patience = told["begun"], told["limit"] + HUNG_S
            else:
                begun = ""
                yield Result(**{**told["result"], "faults": tuple(told["result"]["faults"])})
    finally:
        worker.kill()
        worker.wait()
        for name in ("case", "tmp", "work"):
            subprocess.run(["rm", "-rf", str(home / name)], check=True)
        _make_folders(home)


def _command(home: Path, seed: int) -> list[str]:
    return [sys.executable, "-m", "attacks.campaign", "--worker", str(home), "--seed", str(seed)]


def _pass_on(stream: Any, lines: "queue.SimpleQueue[str]") -> None:
    """Pass on the lines of a stream; an empty one is its end."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put("")


def _lost(name: str, limits: dict[str, Case], seconds: float, fault: str) -> Result:
    group, _, own = name.partition("/")
    return Result(group, own, limits[name].attempts, 0, seconds, 0.0, fault, (fault,))


class _Results:
    """Results on disk, a line each; those of other code or another seed are not taken up."""

    def __init__(self, home: Path, seed: int) -> None:
        self._file = home / f"results-{seed}-{_digest()}.jsonl"
        self.done: dict[str, Result] = {}
        if self._file.exists():
            for line in self._file.read_text().splitlines():
                found = json.loads(line)
                result = Result(**{**found, "faults": tuple(found["faults"])})
                self.done[f"{result.group}/{result.name}"] = result

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.done[f"{result.group}/{result.name}"] = result
        with self._file.open("a") as file:
            file.write(json.dumps(vars(result)) + "\n")


def _digest() -> str:
    """Return a hash of the code that is attacked, and of the attacks."""
    digest = hashlib.sha256()
    for folder in (ROOT / "src", TESTS / "attacks", TESTS / "support"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _shuffled_in_turn(names: list[str], limits: dict[str, Case], seed: int) -> list[str]:
    """Shuffle the cases of each group, and take them so that every group has the same share of the stated limits."""
    by_group: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_group[name.partition("/")[0]].append(name)
    ends: dict[str, float] = {}
    for of_group in by_group.values():
        random.Random(seed).shuffle(of_group)
        ends |= zip(of_group, accumulate(limits[name].seconds for name in of_group), strict=True)
    return sorted(names, key=ends.__getitem__)


def _environment(home: Path) -> dict[str, str]:
    private = {name: value for name, value in os.environ.items() if not name.startswith(("GENERATOR_", "HF_TOKEN"))}
    return private | {
        "TMPDIR": str(home / "tmp"),
        "HOME": str(home / "home"),
        "LEGAL_RAG_CACHE": str(cache_folder()),  # the encoder, which the Library was built with
        "DSPY_CACHEDIR": str(home / "replies"),
        "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def _make_folders(home: Path) -> None:
    for name in ("tmp", "home", "work", "library", "replies"):
        (home / name).mkdir(parents=True, exist_ok=True)


def _build_library(home: Path) -> None:
    """Build the Library of twenty decisions, with entities, outlines, graph and corpus index, unless it is there."""
    if (home / "library" / "built").exists():
        return
    shutil.rmtree(home / "library", ignore_errors=True)
    _make_folders(home)
    source = ROOT / "src" / "legal_rag" / "corpus" / "sample" / "decisions.jsonl"
    program = [sys.executable, "-c", "import sys; from legal_rag.cli import main; sys.exit(main(sys.argv[1:]))"]
    where = ["--index-folder", str(home / "library"), "--index-name", "sample"]
    what = ["--source", str(source), "--limit", str(N_DOCUMENTS), "--extract-model", "rules"]
    subprocess.run([*program, "index", *where, *what], check=True, stdout=subprocess.DEVNULL)
    (home / "library" / "built").touch()


def built_library() -> Path:
    """Return the campaign's Library, built at its first use; not to be changed."""
    _build_library(HOME)
    return HOME / "library" / "sample"


def table(results: Iterable[Result]) -> str:
    """Write the table of attempts, contained, and cost, by group, as Markdown."""
    by_group: dict[str, list[Result]] = defaultdict(list)
    for one in results:
        by_group[one.group].append(one)
    lines = [
        "| attacks | cases | attempts | contained | cases that hold | seconds, median | longest | most memory, MB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for group, found in by_group.items():
        seconds = [one.seconds for one in found]
        lines.append(
            f"| {group} | {len(found)} | {sum(one.attempts for one in found)} | {sum(one.contained for one in found)}"
            f" | {sum(one.holds for one in found)} | {statistics.median(seconds):.2f} | {max(seconds):.1f}"
            f" | {max(one.megabytes for one in found):.0f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; 1 if a case does not hold."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, help="run some cases of every group for so long, not all of them")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--home", type=Path, default=HOME, help="where results are kept")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.worker:
        work(asked.worker, asked.seed, json.loads(sys.stdin.read()))
        return 0
    home = Path(tempfile.mkdtemp(prefix="attack-")) if asked.seconds else asked.home.resolve()
    print(f"seed {asked.seed}", flush=True)
    try:
        _make_folders(home)
        started = time.monotonic()
        results = run(home, asked.seed, asked.groups, asked.seconds)
        print(table(results))
        faulty = [one for one in results if not one.holds]
        for one in faulty:
            print(one)
        print(f"seed {asked.seed}: {len(results)} cases, {len(faulty)} do not hold, {time.monotonic() - started:.0f} s")
        return 1 if faulty or not results else 0
    finally:
        if asked.seconds:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
