"""The `Document` value, and reading a source into documents."""

import bisect
import difflib
import hashlib
import json
import logging
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import UNPRINTABLE, json_safe, one_line, plain_text
from legal_rag.corpus.files import clean_text
from legal_rag.corpus.sources import BadRecord, Record, open_source
from legal_rag.law import Force, Reading, find_dates, force_of, read_letterhead
from legal_rag.law.reading import EMAIL
from legal_rag.law.versions import unreadable_day

if TYPE_CHECKING:
    from legal_rag.law import LegalCitation

logger = logging.getLogger(__name__)

ID_COLUMN = "id"
TEXT_COLUMN = "content"
DEFAULT_DATASET = "artefactory/Argimi-Legal-French-Jurisprudence"
DEFAULT_CONFIG = "juri"  # the dataset's others are cetat and constit
DEFAULT_SPLIT = "train"
PATIENCE = 1000  # records read before a column that none of them has is an error
TEXT_CHARS = 5_000_000  # of a document's text at most: 2,500 pages
FIELD_CHARS = 10_000  # of its id, title, date, court, chamber, outcome
MOST_BAD = 100_000  # skipped records after which reading stops, if fewer than a tenth as many documents were read
MOST_COLUMNS = 1_000  # remembered, for a message
SHOWN_COLUMNS, SHOWN_CHARS = 20, 40  # of them, and of the name of each
UNNAMEABLE = re.compile(rf"{UNPRINTABLE.pattern}|[\n\t\x85\u2028\u2029]")  # forbidden in ids
NEAR_IDS = 500  # ids on either side that an unknown one is compared with

TEXT_FIELDS = ("title", "decision_date", "juridiction", "formation", "solution", "summary")
LAW_COLUMNS = ("applied_laws", "applied_law")

_row_numbers: "weakref.WeakKeyDictionary[Any, dict[str, int]]" = weakref.WeakKeyDictionary()


@displayed
@dataclass(frozen=True, kw_only=True)
class Document:
    """One decision (or contract, article, letter): its text and its metadata.

    `content` is clean; every offset in the toolkit counts its characters. Unknown columns are kept in `extra`.
    """

    id: str
    content: str
    title: str = ""
    decision_date: str = ""  # ISO 8601 (1993-09-22) if the source's date could be parsed
    juridiction: str = ""
    formation: str = ""
    solution: str = ""
    applied_laws: tuple[str, ...] = ()
    summary: str = ""
    config: str = ""  # dataset configuration, e.g. juri
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that is indexed, in hexadecimal: equal hashes need no re-indexing."""
        return hashlib.sha256(json.dumps(self.row(), ensure_ascii=False, sort_keys=True).encode()).hexdigest()

    @cached_property
    def reading(self) -> Reading:
        """What the rules read in its text, kept as long as the document is."""
        return Reading(self.content, self.extra.get("zones"))

    @cached_property
    def citation(self) -> "LegalCitation":
        """How it is cited."""
        from legal_rag.law.citation import legal_citation  # reads its tables

        return legal_citation(self)

    @cached_property
    def force(self) -> Force | None:
        """When an article is in force as it is here; None of a document without versions: it is always seen."""
        return force_of(self.extra)

    @property
    def in_force(self) -> str:
        """The same in French: "en vigueur du 1er mai 2008 au 9 août 2016"; empty without versions."""
        return self.force.in_french if self.force else ""

    def row(self) -> dict[str, Any]:
        """Return the document as a flat row with the dataset's column names."""
        row = {name: getattr(self, name) for name in (ID_COLUMN, TEXT_COLUMN, *TEXT_FIELDS)}
        return {**self.extra, **row, "applied_laws": list(self.applied_laws), "config": self.config}


@displayed
class SourceOptions(NamedTuple):
    """How to read a source."""

    config: str | None = None  # dataset configurations, comma-separated; None: the default of the default dataset
    split: str = DEFAULT_SPLIT
    id_column: str = ID_COLUMN
    text_column: str = TEXT_COLUMN
    html: bool = False  # parse every text as HTML, even without tags


def read_documents(
    source: Any = DEFAULT_DATASET,
    options: SourceOptions | None = None,
    *,
    on_bad: Callable[[BadRecord], None] | None = None,
) -> Iterator[Document]:
    """Stream the documents of a source, in its order.

    Unreadable records, and those without id or text or with a duplicate id, are skipped and reported to `on_bad`.

    Args:
        source: A Hugging Face dataset id; a `.jsonl`, `.jsonl.gz`, `.json` (Judilibre), `.parquet` or `.csv` file;
            an archive of DILA (`.tar.gz`, `.tgz`, `.tar`) or an `.xml` file of one; a folder of `.txt`, `.md`, `.html`,
            `.pdf`, `.docx` or of the files above; or an iterable of rows.
        options: Columns, dataset configurations, split.
        on_bad: Called with each skipped record; by default they are logged as warnings.

    Raises:
        FileNotFoundError: If the source is not a file, a folder or a reachable dataset.
        ValueError: If the source lacks the id or text column, or has no valid document.
    """
    options = options or SourceOptions()
    if options.config is None and source == DEFAULT_DATASET:
        options = options._replace(config=DEFAULT_CONFIG)
    report = on_bad or (lambda bad: logger.warning("left out %s: %s", bad.where, bad.problem))
    seen: set[bytes] = set()
    columns: dict[str, None] = {}
    bad: list[BadRecord] = []  # the first three, for the error message
    n_records = n_bad = 0

    for record in open_source(source, options.config, options.split):
        n_records += 1
        result: Document | BadRecord
        if isinstance(record, BadRecord):
            result = record
        else:
            if len(columns) < MOST_COLUMNS:
                columns.update(dict.fromkeys(record.row))
            result = _make_document(record, options, seen)
        if isinstance(result, Document):
            yield result
        else:
            result = BadRecord(one_line(result.where), one_line(result.problem))  # file names may hold any character
            if len(bad) < 3:
                bad.append(result)
            report(result)
            n_bad += 1
            if n_bad >= MOST_BAD and n_bad > 10 * len(seen):
                report(BadRecord(record.where, f"the {n_bad:,}th record left out: what follows is left out unread"))
                break
        if not seen and n_records == PATIENCE:
            _require_columns(source, columns, options)
    if not seen:
        _require_columns(source, columns, options)
        examples = "; ".join(f"{record.where}: {record.problem}" for record in bad)
        read = f"{n_records} records read" + (f" ({examples})" if bad else "")
        raise ValueError(f"no document in {source!s:.200}: {read}")


def _require_columns(source: Any, columns: Iterable[str], options: SourceOptions) -> None:
    names = list(columns)
    for option in ("id_column", "text_column"):
        if names and (column := getattr(options, option)) not in names:
            other = f"--{option.replace('_', '-')} names another"
            raise ValueError(f"no column {column!r} in {source!s} (its columns: {_list_columns(names)}): {other}")


def _list_columns(columns: Sequence[str]) -> str:
    names = [one_line(name[:SHOWN_CHARS]) for name in columns[:SHOWN_COLUMNS]]
    return ", ".join([*names, *(["…"] if len(columns) > SHOWN_COLUMNS else [])])


def _make_document(record: Record, options: SourceOptions, seen: set[bytes]) -> Document | BadRecord:
    row = dict(record.row)
    if problem := _too_long(row, options):
        return BadRecord(record.where, problem)
    identifier = clean_text(plain_text(row.pop(options.id_column, None))).strip()
    content = row.pop(options.text_column, None)
    if not identifier:
        return BadRecord(record.where, f"no id (column {options.id_column!r} is empty or missing)")
    if UNNAMEABLE.search(identifier):
        return BadRecord(record.where, f"an id with control characters or line ends: {identifier!r:.80}")
    if not isinstance(content, str) or not content.strip():
        return BadRecord(record.where, f"no text (column {options.text_column!r} of {identifier} is empty or missing)")
    # 16 bytes per id: ten million fit in memory.
    digest = hashlib.blake2b(identifier.encode(), digest_size=16).digest()
    if digest in seen:
        return BadRecord(record.where, f"duplicate id {identifier!r}")
    if problem := unreadable_day(row):
        return BadRecord(record.where, f"{problem} ({identifier})")
    clean = clean_text(content, is_html=options.html)
    if not clean.strip():
        return BadRecord(record.where, f"no text left in {identifier} once its markup is removed")
    seen.add(digest)
    laws = [law for column in LAW_COLUMNS for law in _laws(row.pop(column, None))]
    fields = {name: clean_text(plain_text(row.pop(name, None))).strip() for name in TEXT_FIELDS}
    fields["decision_date"] = _iso_date(fields["decision_date"])
    if record.is_file:
        read = read_letterhead(clean)
        fields["decision_date"] = read.date
        row.update(author=read.author, nature=EMAIL if read.is_email else "")
    return Document(
        id=identifier,
        content=clean,
        applied_laws=tuple(dict.fromkeys(laws)),
        config=plain_text(row.pop("config", None)) or record.config,
        extra={
            key: value for key, value in json_safe(row, text_of=plain_text).items() if value not in (None, "", [], {})
        },
        **fields,
    )


def _too_long(row: Mapping[str, Any], options: SourceOptions) -> str:
    """Describe the first column over its length limit; '' if there is none."""
    limits = {options.text_column: TEXT_CHARS, options.id_column: FIELD_CHARS}
    limits |= {name: FIELD_CHARS for name in (*TEXT_FIELDS, "config") if name not in (*limits, "summary")}
    for name, most in limits.items():
        if isinstance(value := row.get(name), str) and len(value) > most:
            return f"{name} of {len(value):,} characters (at most {most:,})"
    return ""


def _laws(value: Any) -> list[str]:
    """Split the laws that a decision applies: a list, or one text with semicolons or line breaks."""
    if isinstance(value, list | tuple):
        laws = [clean_text(plain_text(law)) for law in value]
    else:
        laws = re.split(r"[;\n]", clean_text(plain_text(value)))  # cleaned first: "&amp;" ends in a semicolon too
    return [law.strip() for law in laws if law.strip()]


def _iso_date(text: str) -> str:
    """Normalise a date in figures or words, or with a time, to ISO 8601; return any other text unchanged."""
    if match := re.match(r"(\d{4}-\d{2}-\d{2})[T ]\d{2}:\d{2}", text):
        return match.group(1)
    dates = find_dates(text)  # "08/11/2023", "8 novembre 2023"
    return dates[0].value.isoformat() if [date[1:] for date in dates] == [(0, len(text))] else text


def document_of(source: Any, doc_id: str) -> Document:
    """Look up a document by id; a dataset's ids are read once.

    Args:
        source: A Library, a Hugging Face dataset with an id column, or a mapping from id to row.
        doc_id: The document's id.

    Raises:
        LookupError: If the source has no such document.
        TypeError: If the source is something else.
        ValueError: If a dataset has no id column.
    """
    try:
        doc_id.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair is in no store
        raise LookupError(f"no document {doc_id!r:.200}") from error
    if hasattr(source, "document"):
        document: Document = source.document(doc_id)
        return document
    if isinstance(source, Mapping):
        return document_of_row({ID_COLUMN: doc_id, **source[doc_id]})
    if hasattr(source, "column_names"):
        return document_of_row(source[_number_rows(source)[doc_id]])
    raise _no_source(source)


def rows_by_id(source: Any) -> Any:
    """Map a list of rows by id, keeping the first of duplicates; return any other source unchanged."""
    if not (isinstance(source, list | tuple) and all(isinstance(row, Mapping) and ID_COLUMN in row for row in source)):
        return source
    return {str(row[ID_COLUMN]).strip(): row for row in reversed(source)}


def holds(source: Any, doc_id: str) -> bool:
    """Does the source (see `document_of`) have a document of this id?"""
    try:
        doc_id.encode()
        if isinstance(source, Mapping):
            return doc_id in source
        if hasattr(source, "column_names"):
            return doc_id in _number_rows(source)
        if not hasattr(source, "document"):
            raise _no_source(source)
        return doc_id in source if hasattr(source, "__contains__") else bool(source.document(doc_id))
    except (LookupError, UnicodeEncodeError):  # half a surrogate pair is in no store
        return False


def nearest_id(source: Any, doc_id: str) -> str | None:
    """Return the id most similar to `doc_id` among its neighbours in sorted order, or None."""
    doc_id = doc_id.encode(errors="replace").decode()
    if hasattr(source, "nearest_id"):
        near: str | None = source.nearest_id(doc_id)
        return near
    return nearest_among(sorted(map(str, source if isinstance(source, Mapping) else _number_rows(source))), doc_id)


def is_near(doc_id: str, near: str) -> bool:
    """Does an id begin as another one does, in any case? Otherwise the latter is only the nearest of many."""
    return doc_id.casefold().startswith(near[: (len(near) + 1) // 2].casefold())


def nearest_among(sorted_ids: Sequence[str], doc_id: str) -> str | None:
    """Return the id most similar to `doc_id` among its neighbours in a sorted sequence, or None."""
    place = bisect.bisect_left(sorted_ids, doc_id)
    near = sorted_ids[max(place - NEAR_IDS, 0) : place + NEAR_IDS]
    return most_like(doc_id, near)


def most_like(doc_id: str, near: Iterable[str]) -> str | None:
    """Return the id most similar to `doc_id`, or None without candidates."""
    matcher, best, nearest = difflib.SequenceMatcher(b=doc_id), -1.0, None
    for candidate in near:
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, nearest = ratio, candidate
    return nearest


def document_of_row(row: Mapping[str, Any]) -> Document:
    """Parse a dataset's row; LookupError if it has no id or no text."""
    try:
        (document,) = read_documents([row], on_bad=lambda record: None)
    except ValueError as error:
        raise LookupError(str(error)) from error
    return document


def _no_source(source: Any) -> TypeError:
    expected = "a Library, a dataset, a list of rows, or a mapping"
    return TypeError(f"no documents in a {type(source).__name__} (expected {expected})")


def _number_rows(dataset: Any) -> dict[str, int]:
    if ID_COLUMN not in dataset.column_names:
        raise ValueError(f"no column {ID_COLUMN!r} in the dataset (its columns: {_list_columns(dataset.column_names)})")
    if dataset not in _row_numbers:
        numbers: dict[str, int] = {}
        for number, doc_id in enumerate(dataset[ID_COLUMN][:]):
            numbers.setdefault(str(doc_id).strip(), number)  # as in an index, the first of duplicates counts
        _row_numbers[dataset] = numbers
    return _row_numbers[dataset]
