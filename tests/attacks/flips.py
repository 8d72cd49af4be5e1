"""Change bytes of every file of a Library: `doctor` names the file, and commands answer or say one line.

A file is changed 500 times, each time in one way at a place drawn anew: a bit flipped, a byte replaced, bytes cut out
or off the end, zeros written, bytes added. Each time the files are examined as `doctor` does it. Now and then commands
run on the damaged Library too. What they print is counted as the same as before, one line that says what is wrong, or
another answer: a search reads vectors and words as they are, and only `doctor` reads all bytes.
"""

import contextlib
import gc
import io
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

from attacks.cases import Case, Outcome, Place
from legal_rag.cli import main
from legal_rag.indexer.doctor import damage_of
from legal_rag.library.manifest import OF_A_DATABASE

CHANGES = 500  # of each file
USED_EVERY = 50  # changes, on which commands run too
SEARCHED_EVERY = 5  # of those, searched by vectors: that loads the encoder
FILES = (
    "manifest.json", "checksums.sha256", "corpus.sqlite", "corpus_index.sqlite", "outlines.sqlite", "graph.sqlite",
    "entities.sqlite", "doc_mapping.json", "entities.html", "entities.json", "entities.jsonl", "extraction_index.txt",
    "chunk_vectors/frame.npy", "chunk_vectors/0-1.npy",
    *(f"fast_plaid_index/{name}.npy" for name in (
        "0.codes", "0.residuals", "avg_residual", "bucket_cutoffs", "bucket_weights", "centroids", "cluster_threshold",
        "ivf", "ivf_lengths",
    )),
    *(f"fast_plaid_index/{name}.json" for name in ("0.metadata", "doclens.0", "metadata", "plan")),
    *(f"lexical/{part}/{name}" for part in ("chunks", "documents") for name in (
        ".managed.json", "meta.json", "*.fast", "*.fieldnorm", "*.idx", "*.pos", "*.store", "*.term",
    )),
)  # fmt: skip
QUERY = "délai de préavis du bail"
COMMANDS = (
    ("info",), ("lookup", "FICTIF0108-0"), ("search", QUERY, "--mode", "bm25"), ("search", "préavis", "--mode", "bm25",
    "--speaker", "court"), ("graph", "most-cited"), ("doctor",), ("search", QUERY, "--mode", "bm25", "--entity",
    "montant"), ("lookup", "FICTIF0108", "--outline"), ("info", "--json"), ("ask", QUERY),
)  # fmt: skip
BY_VECTORS = (("search", QUERY), ("search", QUERY, "--by-document"), ("search", QUERY, "--mode", "late"))

Change = Callable[[bytes, random.Random], bytes]


def cases(seed: int) -> Iterator[Case]:
    """Yield a case for each file, and one for files that are not in the list."""
    for name in FILES:
        yield Case(name.replace("*", "x"), partial(_changed_often, name, seed), seconds=90.0, attempts=CHANGES)
    yield Case("no other file", _all_are_listed, seconds=5.0)


def prepare(place: Place) -> None:
    """Load what commands load once: the encoder, compiled kernels, threads that stay."""
    _note_answers(place.copy())


def _changed_often(pattern: str, seed: int, place: Place) -> Outcome:
    """Change one file of a copy `CHANGES` times, and put it right again each time."""
    library, drawn = place.copy(), random.Random(f"{seed} {pattern}")
    _note_answers(library)
    (file,) = library.glob(pattern)
    name, whole = file.relative_to(library).as_posix(), file.read_bytes()
    contained, first, uses = 0, "", Counter[str]()
    for number, change in enumerate(_distinct(whole, drawn)):
        _write(file, change)
        problem = damage_of(library)
        held = problem is not None and name in problem
        if held and number % USED_EVERY == 0:
            commands = BY_VECTORS if number // USED_EVERY % SEARCHED_EVERY == 0 else COMMANDS
            command = commands[drawn.randrange(len(commands))]
            came = _came_of(command, library, _before[command])
            uses[came] += 1
            held = not came.startswith("crash")
            problem = problem if held else f"{command}: {came}"
        contained += held
        if not held and not first:
            first = f"change {number} of {name}: {problem}"
    _write(file, whole)
    return Outcome(contained, first or f"{problem} ({', '.join(f'{n} {what}' for what, n in sorted(uses.items()))})")


def _distinct(whole: bytes, drawn: random.Random) -> Iterator[bytes]:
    """Yield `CHANGES` changed contents of a file."""
    for number in range(CHANGES):
        changed = whole
        while changed == whole:
            changed = KINDS[number % len(KINDS)](whole, drawn)
        yield changed


def _flip(whole: bytes, drawn: random.Random) -> bytes:
    at = drawn.randrange(len(whole))
    return whole[:at] + bytes([whole[at] ^ (1 << drawn.randrange(8))]) + whole[at + 1 :]


def _replace(whole: bytes, drawn: random.Random) -> bytes:
    at = drawn.randrange(len(whole))
    return whole[:at] + bytes([drawn.randrange(256)]) + whole[at + 1 :]


def _cut_off(whole: bytes, drawn: random.Random) -> bytes:
    return whole[: drawn.randrange(len(whole))]


def _cut_out(whole: bytes, drawn: random.Random) -> bytes:
    at = drawn.randrange(len(whole))
    return whole[:at] + whole[at + drawn.randint(1, 64) :]


def _zero(whole: bytes, drawn: random.Random) -> bytes:
    at = drawn.randrange(len(whole))
    end = min(at + drawn.choice((4, 512, 4096)), len(whole))
    return whole[:at] + bytes(end - at) + whole[end:]


def _add(whole: bytes, drawn: random.Random) -> bytes:
    at = drawn.randint(0, len(whole))
    return whole[:at] + drawn.randbytes(drawn.randint(1, 32)) + whole[at:]


KINDS: Sequence[Change] = (_flip, _flip, _flip, _replace, _cut_off, _cut_out, _zero, _add)


def _write(file: Path, content: bytes) -> None:
    """Replace a file by another of its name: what still maps the old one keeps it whole."""
    new = file.with_name(f"{file.name}.changed")
    new.write_bytes(content)
    os.replace(new, file)


def _came_of(command: tuple[str, ...], library: Path, before: tuple[int, str]) -> str:
    """Say what came of a command on a damaged Library."""
    try:
        status, out = _said(command, library)
    except BaseException as error:
        return f"crash: {type(error).__name__}: {error}"
    if status == 1 and command != ("doctor",) and out.count("\n") != 1:
        return f"crash: status 1 and {out.count(chr(10))} lines: {out[-300:]}"
    return "one line" if status else "as before" if (status, out) == before else "another answer"


def _said(command: tuple[str, ...], library: Path) -> tuple[int, str]:
    """Run a command in this process; return its status and what it printed, or, where it failed, its last words."""
    gc.collect()  # else two encoders are held at once
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*command, "--index-folder", str(library.parent), "--index-name", library.name])
    failed = [line for line in err.getvalue().splitlines() if line.startswith("legal-rag: ")]
    if status and command != ("doctor",):
        return status, "".join(f"{line}\n" for line in failed)
    return status, out.getvalue().replace(str(library), "")


_before: dict[tuple[str, ...], tuple[int, str]] = {}  # what commands say of the whole Library


def _note_answers(library: Path) -> None:
    for command in (*COMMANDS, *BY_VECTORS):
        if command not in _before:
            _before[command] = _said(command, library)


@cache
def _matched(library: Path) -> frozenset[Path]:
    return frozenset(path for pattern in FILES for path in library.glob(pattern))


def _all_are_listed(place: Place) -> Outcome:
    found = {path for path in place.library.rglob("*") if path.is_file() and path.stat().st_size}
    logs = {path for path in found if path.name.endswith(OF_A_DATABASE)}  # of readers that are open
    others = sorted(path.relative_to(place.library).as_posix() for path in found - logs - _matched(place.library))
    return Outcome(not others, f"not in the list: {', '.join(others)}" if others else f"{len(found)} files are changed")
