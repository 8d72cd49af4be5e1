"""Rows of every source: JSON Lines, CSV, Parquet, Judilibre, folders of files, Hugging Face datasets."""

import codecs
import csv
import gzip
import json
import logging
import re
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

from legal_rag.lazy import require

SAMPLE = "sample"  # the corpus in the package, unless a file or folder has that name
SAMPLE_FILE = Path(__file__).parent / "sample" / "decisions.jsonl"
JUDILIBRE = Path(__file__).parent / "judilibre.toml"  # names of its courts and chambers, by their codes
SAMPLE_QUESTIONS = Path(__file__).parent / "sample" / "questions.jsonl"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
ENCODING_BYTES = 2**24  # of a file, read to tell its encoding
MAX_FIELD = 2**31 - 1  # characters in one CSV field; Python's own limit of 131,072 is below a long decision


class BadRecord(NamedTuple):
    """A skipped record: its place in the source, and what is wrong with it."""

    where: str
    problem: str


class Record(NamedTuple):
    """A row as its source gives it, and its place there."""

    where: str
    row: Mapping[str, Any]
    config: str = ""
    is_html: bool = False
    is_file: bool = False  # one document, without metadata but those that its text states


Records = Iterator[Record | BadRecord]


def open_source(source: Any, config: str | None, split: str) -> Records:
    """Stream the rows of a source, as `legal_rag.corpus.read_documents` takes it.

    Raises:
        FileNotFoundError: If the source is not a file, a folder or a reachable dataset.
        ValueError: If it is a file of an unknown kind, or a folder without documents.
    """
    if not isinstance(source, str | Path):
        return (_record(row, f"row {index}") for index, row in enumerate(source))
    path = Path(source).expanduser()
    if str(source) == SAMPLE and not path.exists():
        path = SAMPLE_FILE
    if path.is_file():
        if not _suffix(path):
            raise ValueError(f"unknown kind of file: {path} (expected one named {', '.join(READERS)})")
        return _rows_of_file(path, path.parent)
    if path.is_dir():
        return _rows_of_folder(path, config, split)
    if HUB_ID.fullmatch(str(source)) and not _suffix(path) and not path.parent.exists():
        return _rows_of_dataset(str(source), config, split)
    raise FileNotFoundError(
        f"no such file or folder: {source} (expected a file, a folder, a hub dataset as owner/name, or '{SAMPLE}')"
    )


def _rows_of_dataset(name: str, config: str | None, split: str) -> Records:
    """Stream comma-separated configurations of a Hugging Face dataset, by hub id or folder."""
    require("datasets", f"a file or a folder needs none: --source FILE_OR_FOLDER, or --source {SAMPLE}")
    from datasets import load_dataset
    from datasets.exceptions import DatasetNotFoundError

    for one in config.split(",") if config else [None]:
        label = f"{name}, config {one}, split {split}" if one else f"{name}, split {split}"
        try:
            rows = load_dataset(name, one.strip() if one else None, split=split, streaming=True)
        except (ConnectionError, DatasetNotFoundError, FileNotFoundError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise FileNotFoundError(
                f"no such file or folder, and no dataset that can be reached: {name} ({reason})"
            ) from error
        for index, row in enumerate(rows):
            yield Record(f"{label}, row {index}", row, config=(one or "").strip())


def _rows_of_folder(folder: Path, config: str | None, split: str) -> Records:
    """Stream a folder: saved by `datasets`, laid out like a hub dataset, or any tree of documents."""
    if (folder / "dataset_info.json").is_file() or (folder / "dataset_dict.json").is_file():
        yield from _rows_of_saved_dataset(folder, split)
        return
    readme = folder / "README.md"
    if readme.is_file() and re.search(r"^(configs|dataset_info):", readme.read_text("utf-8", "replace"), re.MULTILINE):
        yield from _rows_of_dataset(str(folder), config, split)
        return
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in found if _suffix(path)]
    if not files:
        raise ValueError(f"no document in folder {folder} (expected files named {', '.join(READERS)})")
    for path in files:
        yield from _rows_of_file(path, folder)
    others = Counter(path.suffix for path in found if not (_suffix(path) or path.name.startswith(".")))
    if others:
        kinds = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in others.most_common(5))
        yield BadRecord(f"{folder.name}/", f"files of kinds that are not read: {kinds}")


def _rows_of_saved_dataset(folder: Path, split: str) -> Records:
    require("datasets")
    from datasets import DatasetDict, load_from_disk

    dataset = load_from_disk(str(folder))
    if isinstance(dataset, DatasetDict):
        if split not in dataset:
            raise ValueError(f"no split {split!r} in {folder} (its splits: {', '.join(dataset)})")
        dataset = dataset[split]
    for index, row in enumerate(dataset):
        yield Record(f"{folder.name}, row {index}", row)


def _rows_of_file(path: Path, root: Path) -> Records:
    if _suffix(path) in TABLE_READERS:
        yield from TABLE_READERS[_suffix(path)](path)
    else:
        yield _row_of_file(path, root)


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in sorted(READERS, key=len, reverse=True) if name.endswith(suffix)), "")


def _open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a text file, perhaps gzipped: UTF-8, UTF-16 with its mark, or cp1252, which older French systems write."""
    opener: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        encoding = _encoding_of(file)
    return cast(TextIO, opener(path, "rt", encoding=encoding, errors=STRAY_BYTES, newline=newline))


def _encoding_of(file: BinaryIO) -> str:
    """Tell the encoding by the first lines: cp1252 where more of those beyond ASCII are not UTF-8 than are."""
    n_utf8 = n_others = n_bytes = 0
    try:
        while n_bytes < ENCODING_BYTES and (line := file.readline(ENCODING_BYTES)):
            if not n_bytes and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            n_bytes += len(line)
            if not line.isascii():
                is_utf8 = _is_utf8(line)
                n_utf8, n_others = n_utf8 + is_utf8, n_others + (not is_utf8)
    except (EOFError, OSError, zlib.error):  # of a damaged archive, which its reader reports
        pass
    return "cp1252" if n_others > n_utf8 else "utf-8-sig"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(line) == ENCODING_BYTES and error.end == len(line)  # a character cut in two is no error
    return True


def _stray_bytes(error: UnicodeError) -> tuple[str, int]:
    """Read bytes that are not of a file's encoding as cp1252, or Latin-1 where that leaves them undefined."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    stray = error.object[error.start : error.end]
    return "".join(_LATIN[byte] for byte in stray), error.end


_LATIN = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256)}
STRAY_BYTES = "legal_rag.stray_bytes"  # the error handler of `_stray_bytes`
codecs.register_error(STRAY_BYTES, _stray_bytes)


def _rows_of_jsonl(path: Path) -> Records:
    with _open_text(path) as lines:
        numbered = enumerate(lines, start=1)
        while True:
            try:
                number, line = next(numbered)
            except StopIteration:
                return
            except (EOFError, OSError, zlib.error) as error:
                yield BadRecord(path.name, f"the file breaks off ({error})")
                return
            if line.strip():
                yield _parse_row(line, f"{path.name}, line {number}")


def _parse_row(line: str, where: str) -> Record | BadRecord:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of more than 4,300 digits
        return BadRecord(where, f"broken JSON ({json_problem(error)})")
    return _record(row, where)


def json_problem(error: Exception) -> str:
    """Say what is wrong with a line of JSON, and where in the line."""
    return f"{error.msg}, character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)


def _record(row: Any, where: str) -> Record | BadRecord:
    if not isinstance(row, Mapping):
        return BadRecord(where, f"not a row but {type(row).__name__} (expected an object with named columns)")
    is_judilibre = "text" in row and "jurisdiction" in row and "content" not in row
    return Record(where, _judilibre_row(row) if is_judilibre else row)


def _judilibre_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Rename a Judilibre record's fields; `zones` stay offsets into the published text."""
    renamed = ("text", "jurisdiction", "chamber", "formation", "visa")
    row = {key: value for key, value in record.items() if key not in renamed}
    court, chamber = str(record.get("jurisdiction") or ""), str(record.get("chamber") or "")
    names = _judilibre_names()
    court, chamber = names["jurisdictions"].get(court, court), names["chambers"].get(chamber, chamber)
    visas = record.get("visa") or []
    visas = visas if isinstance(visas, list) else [visas]
    if location := record.get("location"):
        court = f"{court} ({location})"
    row |= {
        "content": record["text"],
        "juridiction": court,
        "formation": chamber,
        "applied_laws": [str(visa.get("title", "") if isinstance(visa, Mapping) else visa) for visa in visas],
    }
    if record.get("formation"):
        row["judges"] = record["formation"]  # Judilibre's "formation" is the size of the bench, e.g. FS
    parts = (court, chamber.lower(), record.get("decision_date"), record.get("number"))
    row.setdefault("title", ", ".join(str(part) for part in parts if part))
    return row


@cache
def _judilibre_names() -> dict[str, dict[str, str]]:
    return tomllib.loads(JUDILIBRE.read_text("utf-8"))


def _rows_of_json(path: Path) -> Records:
    """Read a JSON file: a list of rows, one row, or a Judilibre response with rows under `results`."""
    try:
        with _open_text(path) as file:
            value = json.load(file)
    except (ValueError, RecursionError) as error:
        yield BadRecord(path.name, f"broken JSON ({error})")
        return
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        value = value["results"]
    for index, row in enumerate(value if isinstance(value, list) else [value]):
        yield _record(row, f"{path.name}, row {index}")


def _rows_of_csv(path: Path) -> Records:
    csv.field_size_limit(MAX_FIELD)
    with _open_text(path, newline="") as file:
        header = file.readline()
        file.seek(0)
        delimiter = max(",;\t", key=header.count)
        reader = csv.DictReader(file, delimiter=delimiter)
        try:
            for row in reader:
                where = f"{path.name}, line {reader.line_num}"
                too_long = row.pop(None, None)
                yield BadRecord(where, "more fields than columns") if too_long else Record(where, row)
        except csv.Error as error:
            yield BadRecord(f"{path.name}, line {reader.line_num}", f"broken CSV ({error})")


def _rows_of_parquet(path: Path) -> Records:
    require("pyarrow")
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            index = 0
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    yield Record(f"{path.name}, row {index}", row)
                    index += 1
    except (pyarrow.ArrowException, OSError) as error:
        yield BadRecord(path.name, f"unreadable Parquet ({str(error).splitlines()[0]})")


def _row_of_file(path: Path, root: Path) -> Record | BadRecord:
    """Read a file as one document, whose id is its path below `root`."""
    name = path.relative_to(root).as_posix()
    suffix = _suffix(path)
    try:
        text = TEXT_READERS[suffix](path)
    except Exception as error:  # arbitrary files break the parsers in every way (struct, key, recursion, zip errors…)
        return BadRecord(name, f"unreadable {suffix[1:]} file ({type(error).__name__}: {error})".replace("\n", " "))
    if not text.strip():
        return BadRecord(name, f"no text in this {suffix[1:]} file")
    row = {"id": name, "title": path.stem, "content": text}
    return Record(name, row, is_html=suffix in (".html", ".htm"), is_file=True)


def is_text_file(doc_id: str) -> bool:
    """Tell whether a document is a file of a folder, by its id: the path in the folder."""
    return Path(doc_id).suffix.lower() in TEXT_READERS


def _text_of_plain_file(path: Path) -> str:
    with _open_text(path, newline="") as file:
        return file.read()


def _text_of_pdf(path: Path) -> str:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # what it mends is no news; what it cannot read it raises
    return "\n\n".join(page.extract_text() for page in PdfReader(path).pages)


def _text_of_docx(path: Path) -> str:
    import docx
    from docx.table import Table

    document = docx.Document(str(path))
    blocks = []
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            blocks += ["\t".join(cell.text for cell in row.cells) for row in block.rows]
        else:
            blocks.append(block.text)
    return "\n".join(blocks)


TABLE_READERS: dict[str, Callable[[Path], Records]] = {
    ".jsonl": _rows_of_jsonl,
    ".jsonl.gz": _rows_of_jsonl,
    ".ndjson": _rows_of_jsonl,
    ".json": _rows_of_json,
    ".parquet": _rows_of_parquet,
    ".csv": _rows_of_csv,
}
TEXT_READERS: dict[str, Callable[[Path], str]] = {
    ".txt": _text_of_plain_file,
    ".md": _text_of_plain_file,
    ".html": _text_of_plain_file,
    ".htm": _text_of_plain_file,
    ".pdf": _text_of_pdf,
    ".docx": _text_of_docx,
}
READERS = (*TABLE_READERS, *TEXT_READERS)
