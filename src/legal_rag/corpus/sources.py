"""Rows of every source: JSON Lines, CSV, Parquet, Judilibre, DILA's archives, folders, Hugging Face datasets."""

import csv
import itertools
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple, TextIO

from legal_rag.base.extras import require
from legal_rag.base.files import parse_json
from legal_rag.base.html import displayed
from legal_rag.base.text import json_safe, plain_text
from legal_rag.corpus.files import check_size, error_line, open_text, read_file, read_plain_file, without_strays
from legal_rag.corpus.judilibre import is_judilibre, judilibre_row

SAMPLE = "sample"  # the corpus in the package, unless a file or folder has that name
SAMPLE_FILE = Path(__file__).parent / "sample" / "decisions.jsonl"
SAMPLE_QUESTIONS = Path(__file__).parent / "sample" / "questions.jsonl"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
# Limits above which a record or a file is skipped, to bound memory and time on untrusted files.
LINE_CHARS = 16_000_000  # of a line, a CSV field, a record; Python's own limit of 131,072 is below a long decision
SKIPPED_CHARS = 500_000_000  # of an overlong line, or of blank ones in a row, after which the file is given up
LINE_COST = 500  # characters that a line counts for besides its own
RECORD_VALUES = 500_000  # numbers, texts, lists and names in one record
RECORD_LEVELS = 100  # of nested lists and objects; SQLite's JSON functions read 1,000
INTEGER_BITS = 10_000  # of a number; Python writes no more than 4,300 digits
HUB_SECONDS = 15  # until it answers
UNREACHABLE = "no such file or folder, and no dataset that can be reached"
CARD_CHARS = 1_000_000  # of a dataset's README.md
READER_SECONDS = 120.0  # for one file, or for the next row of a long one
READER_BYTES = 1_000_000_000  # of memory beyond the process's baseline
PROLOGUE = "import sys; sys.path[:] = {!r}; from legal_rag.corpus.sources import run_reader; run_reader()"
ERRORS: dict[str, type[Exception]] = {error.__name__: error for error in (FileNotFoundError, ValueError)}


@displayed
class BadRecord(NamedTuple):
    """A skipped record: its place in the source, and what is wrong with it."""

    where: str
    problem: str


class Record(NamedTuple):
    """A row as its source gives it, and its place there."""

    where: str
    row: Mapping[str, Any]
    config: str = ""
    is_file: bool = False  # one document, with no metadata except in its text


Records = Iterator[Record | BadRecord]


def open_source(source: Any, config: str | None, split: str) -> Records:
    """Stream the rows of a source of any kind that `legal_rag.corpus.read_documents` accepts.

    FileNotFoundError if the source is not a file, a folder or a reachable dataset; ValueError if it is a file of an
    unknown kind, or a folder without documents.
    """
    if not isinstance(source, str | Path):
        return (_make_record(row, f"row {index}") for index, row in enumerate(source))
    path = Path(source).expanduser()
    if str(source) == SAMPLE and not path.exists():
        path = SAMPLE_FILE
    if path.is_file():
        if not _suffix(path):
            raise ValueError(f"unknown kind of file: {path} (expected one named {', '.join(READERS)})")
        return _close_after(lambda process: _rows_of_file(path, path.parent, process))
    if path.is_dir():
        return _close_after(lambda process: _rows_of_folder(path, config, split, process))
    if HUB_ID.fullmatch(str(source)) and not _suffix(path) and not path.parent.exists():
        _require_datasets()
        _require_hub(str(source))
        return _rows_of_dataset(str(source), config, split)
    raise FileNotFoundError(
        f"no such file or folder: {source} (expected a file, a folder, a hub dataset as owner/name, or '{SAMPLE}')"
    )


def _close_after(rows: Callable[["ReaderProcess"], Records]) -> Records:
    with closing(ReaderProcess()) as process:
        yield from rows(process)


def _require_datasets() -> None:
    require("datasets", f"a file or a folder needs none: --source FILE_OR_FOLDER, or --source {SAMPLE}")


def _require_hub(name: str) -> None:
    """Ask the hub for a dataset once: `load_dataset` would try for half a minute, with twenty lines of warnings."""
    from huggingface_hub import HfApi

    try:
        HfApi().dataset_info(name, timeout=HUB_SECONDS)
    except Exception as error:  # those of its HTTP library too: requests or, from version 1, httpx
        raise FileNotFoundError(f"{UNREACHABLE}: {name} ({error_line(error)})") from error


def _rows_of_dataset(name: str, config: str | None, split: str) -> Records:
    """Stream comma-separated configurations of a Hugging Face dataset, by hub id or folder."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    for config_name in config.split(",") if config else [None]:
        label = f"{name}, config {config_name}, split {split}" if config_name else f"{name}, split {split}"
        try:
            rows = load_dataset(name, config_name.strip() if config_name else None, split=split, streaming=True)
        except (ConnectionError, DatasetNotFoundError, FileNotFoundError, OSError) as error:
            raise FileNotFoundError(f"{UNREACHABLE}: {name} ({error_line(error)})") from error
        for index, row in enumerate(rows):
            record = _check_row(row, f"{label}, row {index}")
            yield record._replace(config=(config_name or "").strip()) if isinstance(record, Record) else record


def _rows_of_folder(folder: Path, config: str | None, split: str, process: "ReaderProcess") -> Records:
    """Stream a folder: saved by `datasets`, laid out like a hub dataset, or any tree of documents."""
    if (folder / "dataset_info.json").is_file() or (folder / "dataset_dict.json").is_file():
        require("datasets")
        yield from _rows_of_process(process, "saved", [str(folder), split], folder.name)
        return
    readme = folder / "README.md"
    if readme.is_file() and re.search(r"^(configs|dataset_info):", card := _card_of(readme), re.MULTILINE):
        _require_datasets()
        if outside := _path_outside(card):
            raise ValueError(f"{readme} names data outside its folder: {outside!r}")
        yield from _rows_of_process(process, "dataset", [str(folder), config or "", split], folder.name)
        return
    paths = sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    root = os.path.realpath(folder)
    problems = {path: problem for path in paths if (problem := _why_skipped(path, root))}
    files = [path for path in paths if _suffix(path) and path not in problems]
    if not files and not problems:
        raise ValueError(f"no document in folder {folder} (expected files named {', '.join(READERS)})")
    for path in files:
        if _suffix(path) not in DILA_SUFFIXES:
            yield from _rows_of_file(path, folder, process)
    dila = [str(path) for path in files if _suffix(path) in ARCHIVE_SUFFIXES]
    dila += [str(folder)] if any(_suffix(path) == ".xml" for path in files) else []
    if dila:  # at once, since a later archive replaces what an earlier one holds
        yield from _rows_of_process(process, "dila", dila, folder.name)
    for path, problem in problems.items():
        yield BadRecord(path.relative_to(folder).as_posix(), problem)
    others = [path for path in paths if not (_suffix(path) or path.name.startswith(".") or path in problems)]
    if kinds := Counter(path.suffix for path in others):
        listed = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in kinds.most_common(5))
        yield BadRecord(f"{folder.name}/", f"files of kinds that are not read: {listed}")


def _why_skipped(path: Path, root: str) -> str:
    """Return why a path is skipped, '' if it is a readable file inside the folder."""
    if path.is_symlink():
        target = os.path.realpath(path)
        if os.path.commonpath([root, target]) != root:
            return "a link out of the folder"
        if Path(target).is_dir():
            return "a link to a folder"
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if is_file else "a pipe, a socket or a device, not a file"


def _card_of(readme: Path) -> str:
    with readme.open(encoding="utf-8", errors="replace") as file:
        return file.read(CARD_CHARS)


def _path_outside(card: str) -> str | None:
    """Return a data file named in a dataset's card that is outside its folder (elsewhere on disk, or a URL)."""
    import yaml

    try:
        waiting = [(yaml.safe_load(card.split("---")[1] if card.startswith("---") else card), False, 0)]
    except (yaml.YAMLError, RecursionError, ValueError):
        return "no readable card"
    n_values = 0
    while waiting:
        value, named, level = waiting.pop()
        n_values += 1
        if n_values > RECORD_VALUES or level > RECORD_LEVELS:
            return "a card of too many values"
        if isinstance(value, Mapping):
            below = (
                (item, named or name in ("data_files", "data_dir", "path"), level + 1) for name, item in value.items()
            )
            waiting.extend(below)
        elif isinstance(value, list):
            waiting.extend((item, named, level + 1) for item in value)
        elif named and isinstance(value, str):
            path = PureWindowsPath(value)
            if (
                "://" in value
                or "::" in value
                or ".." in path.parts
                or path.drive
                or path.root
                or value.startswith("~")
            ):
                return value
    return None


def _rows_of_saved_dataset(folder: str, split: str) -> Records:
    from datasets import DatasetDict, load_from_disk

    dataset = load_from_disk(folder)
    if isinstance(dataset, DatasetDict):
        if split not in dataset:
            raise ValueError(f"no split {split!r} in {folder} (its splits: {', '.join(dataset)})")
        dataset = dataset[split]
    for index, row in enumerate(dataset):
        yield Record(f"{Path(folder).name}, row {index}", row)


def _rows_of_file(path: Path, root: Path, process: "ReaderProcess") -> Records:
    """Read a file of a known kind; a file-level error becomes one bad record."""
    suffix, name = _suffix(path), path.relative_to(root).as_posix()
    where = path.name if suffix in TABLE_READERS else name
    try:
        if suffix not in PROCESS_SUFFIXES:
            yield from _rows_of_file_here(path, root)
            return
        if suffix == ".parquet":
            require("pyarrow")
        elif suffix not in DILA_SUFFIXES:
            check_size(path)
        yield from _rows_of_process(process, "file", [str(path), str(root)], where)
    except ModuleNotFoundError:
        raise
    except (OSError, ValueError) as error:
        yield BadRecord(where, f"cannot be read ({error})")


def _rows_of_file_here(path: Path, root: Path) -> Records:
    if _suffix(path) in TABLE_READERS:
        yield from TABLE_READERS[_suffix(path)](path)
    else:
        yield _row_of_file(path, root)


def _rows_of_process(process: "ReaderProcess", reader: str, arguments: list[str], where: str) -> Records:
    """Stream the records of a reader in the reader process; see `PROCESS_READERS`."""
    try:
        for line in process.lines(reader, arguments, 2 * LINE_CHARS):
            place, problem, row, config, is_file = json.loads(line)
            record = BadRecord(place, problem) if row is None else _check_row(row, place)
            yield record if isinstance(record, BadRecord) else Record(place, record.row, config, is_file)
    except (ChildProcessError, RecursionError) as error:
        yield BadRecord(where, f"unreadable file ({error})")


def _serialise_records(records: Records) -> Iterator[list[Any]]:
    """Serialise records for `_rows_of_process`; any other exception of a parser becomes one bad record."""
    last = ""
    try:
        for record in records:
            last = record.where
            if isinstance(record, BadRecord):
                yield [record.where, record.problem, None, "", False]
                continue
            problem = record_problem(record.row)
            row = None if problem else json_safe(record.row, text_of=plain_text)
            yield [record.where, problem, row, record.config, record.is_file]
    except (FileNotFoundError, ValueError):
        raise
    except Exception as error:  # parsers of arbitrary files break in every way
        yield [last or "the file", f"it breaks off ({error_line(error)})", None, "", False]


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in sorted(READERS, key=len, reverse=True) if name.endswith(suffix)), "")


def _read_lines(file: TextIO) -> Iterator[str | None]:
    """Yield a file's lines; None for a line longer than `LINE_CHARS`, which is skipped.

    EOFError at an endless line, or an endless run of blank ones: a small archive may hold either.
    """
    n_skipped, is_whole = 0, True
    while line := file.readline(LINE_CHARS if is_whole else 2**16):
        was_whole, is_whole = is_whole, line.endswith("\n") or len(line) < (LINE_CHARS if is_whole else 2**16)
        if was_whole and is_whole and line.strip():
            n_skipped = 0
            yield without_strays(line)
            continue
        n_skipped += len(line) + LINE_COST
        if n_skipped > SKIPPED_CHARS:
            raise EOFError(f"more than {SKIPPED_CHARS:,} characters without a record")
        if is_whole:
            yield line if was_whole else None
    if not is_whole:
        yield None


def _rows_of_jsonl(path: Path) -> Records:
    with open_text(path) as file:
        try:
            for number, line in enumerate(_read_lines(file), start=1):
                where = f"{path.name}, line {number}"
                if line is None:
                    yield BadRecord(where, TOO_LONG)
                elif line.strip():
                    yield _parse_row(line, where)
        except (EOFError, OSError, zlib.error) as error:
            yield BadRecord(path.name, f"the file breaks off ({error})")


def _parse_row(line: str, where: str) -> Record | BadRecord:
    if sum(map(line.count, ",[{")) > RECORD_VALUES:  # before parsing: each value takes many bytes
        return BadRecord(where, TOO_MANY)
    try:
        row = parse_json(line)
    except ValueError as error:  # ValueError: also a number of more than 4,300 digits
        return BadRecord(where, f"broken JSON ({json_problem(error)})")
    return _make_record(row, where)


def json_problem(error: Exception) -> str:
    """Describe a JSON error with its position in the line."""
    return f"{error.msg}, character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


def _make_record(row: Any, where: str) -> Record | BadRecord:
    if isinstance(record := _check_row(row, where), BadRecord):
        return record
    return Record(where, judilibre_row(row) if is_judilibre(row) else row)


def _check_row(row: Any, where: str) -> Record | BadRecord:
    if not isinstance(row, Mapping):
        return BadRecord(where, f"not a row but {type(row).__name__} (expected an object with named columns)")
    problem = record_problem(row)
    return BadRecord(where, problem) if problem else Record(where, row)


def record_problem(row: Mapping[str, Any]) -> str:
    """Describe which limit a record exceeds (values, levels, digits, characters); '' if none."""
    n_values = n_chars = 0
    waiting: list[tuple[Any, int]] = [(row, 1)]
    while waiting:
        value, level = waiting.pop()
        if isinstance(value, str):
            n_chars += len(value)
        elif isinstance(value, int):
            if value.bit_length() > INTEGER_BITS:
                return "a number of too many digits"
        elif isinstance(value, Mapping | list | tuple | set | frozenset):
            n_values += len(value)
            if level > RECORD_LEVELS:
                return f"nested more than {RECORD_LEVELS} levels deep"
            if n_values > RECORD_VALUES:
                return TOO_MANY
            names = value if isinstance(value, Mapping) else ()
            waiting.extend((name, level + 1) for name in names)
            waiting.extend((item, level + 1) for item in (value.values() if isinstance(value, Mapping) else value))
        if n_chars > LINE_CHARS:
            return TOO_LONG
    return ""


TOO_LONG = f"more than {LINE_CHARS:,} characters"
TOO_MANY = f"more than {RECORD_VALUES:,} values"


def _rows_of_json(path: Path) -> Records:
    """Read a JSON file: a list of rows, one row, or a Judilibre response with rows under `results`."""
    try:
        value = parse_json(read_plain_file(path))
    except ValueError as error:
        yield BadRecord(path.name, f"broken JSON ({error})")
        return
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        value = value["results"]
    for index, row in enumerate(value if isinstance(value, list) else [value]):
        yield _make_record(row, f"{path.name}, row {index}")


def _rows_of_csv(path: Path) -> Records:
    csv.field_size_limit(LINE_CHARS)
    with open_text(path, newline="") as file:
        header = file.readline(LINE_CHARS)
        file.seek(0)
        delimiter = max(",;\t", key=header.count)
        too_long: list[int] = []  # lines
        reader = csv.reader(_replace_long_lines(_read_lines(file), too_long), delimiter=delimiter)
        columns: list[str] | None = None
        while True:
            where = f"{path.name}, line {reader.line_num + 1}"
            try:
                fields = next(reader, None)
            except csv.Error as error:
                yield BadRecord(where, f"broken CSV ({error})")
                continue
            except EOFError as error:
                yield BadRecord(path.name, f"the file breaks off ({error})")
                return
            while too_long:
                yield BadRecord(f"{path.name}, line {too_long.pop(0)}", TOO_LONG)
            if fields is None:
                return
            if columns is None and fields:
                columns = fields
            elif fields and len(fields) > len(columns or ()):
                yield BadRecord(where, "more fields than columns")
            elif fields:
                yield _check_row(dict(itertools.zip_longest(columns or (), fields)), where)


def _replace_long_lines(lines: Iterator[str | None], too_long: list[int]) -> Iterator[str]:
    """Yield a blank line for each overlong one (None), and append its number to `too_long`."""
    for number, line in enumerate(lines, start=1):
        if line is None:
            too_long.append(number)
        yield line or ""


def _rows_of_parquet(path: Path) -> Records:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            index = 0
            for batch in file.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    yield Record(f"{path.name}, row {index}", row)
                    index += 1
    except (pyarrow.ArrowException, OSError, MemoryError) as error:
        yield BadRecord(path.name, f"unreadable Parquet ({error_line(error)})")


def _rows_of_dila(*paths: str | Path) -> Records:
    from legal_rag.corpus.dila import read_dila

    return read_dila(list(map(Path, paths)))


def _row_of_file(path: Path, root: Path) -> Record | BadRecord:
    name = path.relative_to(root).as_posix()
    try:
        row = {"id": name, "title": path.stem, "content": read_file(path)}
    except ValueError as error:
        return BadRecord(name, str(error).removeprefix(f"{path}: "))
    return Record(name, row, is_file=True)


def is_text_file(doc_id: str) -> bool:
    """Is a document a file of a folder, judging by its id (its path in the folder)?"""
    return Path(doc_id).suffix.lower() in TEXT_SUFFIXES


ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz")
DILA_SUFFIXES = (*ARCHIVE_SUFFIXES, ".xml")
TABLE_READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": _rows_of_jsonl,
    ".jsonl.gz": _rows_of_jsonl,
    ".ndjson": _rows_of_jsonl,
    ".json": _rows_of_json,
    ".parquet": _rows_of_parquet,
    ".csv": _rows_of_csv,
    **dict.fromkeys(DILA_SUFFIXES, _rows_of_dila),
}
TEXT_SUFFIXES = (".txt", ".md", ".html", ".htm", ".pdf", ".docx")
READERS = (*TABLE_READERS, *TEXT_SUFFIXES)
PROCESS_SUFFIXES = (".json", ".parquet", ".pdf", ".docx", *DILA_SUFFIXES)  # whose parsers may crash, or exhaust memory
# Readers that a `ReaderProcess` runs, by name; see `_rows_of_process`.
PROCESS_READERS: dict[str, Callable[..., Iterator[list[Any]]]] = {
    "file": lambda path, root: _serialise_records(_rows_of_file_here(Path(path), Path(root))),
    "dila": lambda *paths: _serialise_records(_rows_of_dila(*paths)),
    "saved": lambda folder, split: _serialise_records(_rows_of_saved_dataset(folder, split)),
    "dataset": lambda folder, config, split: _serialise_records(_rows_of_dataset(folder, config or None, split)),
}


class ReaderProcess:
    """Runs readers in a child process, where a crash, a memory error or a timeout costs one file; for one thread."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._too_late = 0.0  # deadline on the monotonic clock; 0: not waiting
        self._was_late = False

    def lines(self, reader: str, arguments: list[str], most: int) -> Iterator[str]:
        """Yield a reader's records, one JSON value a line.

        Args:
            reader: Its name in `PROCESS_READERS`.
            arguments: Its arguments.
            most: Characters of a line at most.

        Raises:
            FileNotFoundError: As the reader does; also ValueError.
            ChildProcessError: If the reader crashes or times out; the message gives the reason.
        """
        process = self._process = self._process or self._started()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):  # detected below, by the end of its output
            process.stdin.write(json.dumps([reader, *arguments]) + "\n")
            process.stdin.flush()
        ended = False
        try:
            while not ended:
                self._too_late = time.monotonic() + READER_SECONDS
                line = process.stdout.readline(most)
                self._too_late = 0.0
                ended = line == "\n"
                if not line.endswith("\n"):
                    raise ChildProcessError(self._describe_failure())
                if line.startswith("!"):
                    name, _, message = json.loads(line[1:]).partition(" ")
                    raise ERRORS.get(name, ValueError)(message)
                if not ended:
                    yield line
        finally:
            if not ended:  # the rest of its output is not needed
                self.close()

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _started(self) -> "subprocess.Popen[str]":
        self._was_late = False
        process = subprocess.Popen(  # noqa: S603 - this interpreter and this module
            [sys.executable, "-c", PROLOGUE.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},  # its own exceeds the limit at once
        )
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()
        return process

    def _watch(self, process: "subprocess.Popen[str]") -> None:
        while process.poll() is None:
            if self._too_late and time.monotonic() > self._too_late:
                self._was_late = True
                process.kill()
            time.sleep(0.05)

    def _describe_failure(self) -> str:
        return f"it took more than {READER_SECONDS:.0f} seconds" if self._was_late else "its parser crashed"


def run_reader() -> None:
    """Answer the requests on stdin until it ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # parsers may print
    answers.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    _limit_memory()
    for request in sys.stdin:
        _limit_seconds()
        name, *arguments = json.loads(request)
        try:
            for row in PROCESS_READERS[name](*arguments):
                answers.write(json.dumps(row, ensure_ascii=False) + "\n")
                _limit_seconds()
        except tuple(ERRORS.values()) as error:
            answers.write("!" + json.dumps(f"{type(error).__name__} {error}") + "\n")
        answers.write("\n")
        answers.flush()


def _limit_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (READER_BYTES, READER_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_seconds() -> None:
    """Limit CPU time, so that the system ends this process if its parent is gone."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        used = time.process_time()
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + 2 * READER_SECONDS), hard))
