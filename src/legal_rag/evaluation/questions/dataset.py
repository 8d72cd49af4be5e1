"""Dataset of questions: documents drawn, a record of each as it is asked about, rows, splits, Parquet files, card.

And what it is to DSPy's optimisers: examples, and a metric for programs that write queries.
"""

import hashlib
import heapq
import json
import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from legal_rag.base.extras import require
from legal_rag.base.files import sync, write_whole
from legal_rag.base.html import displayed
from legal_rag.base.text import Span, fold_text
from legal_rag.corpus.documents import Document, SourceOptions, read_documents
from legal_rag.evaluation.questions.checks import QuestionSettings
from legal_rag.evaluation.trec import NO_MODEL
from legal_rag.indexer.config import IndexConfig, source_label
from legal_rag.law import find_dates, find_identifiers
from legal_rag.library.bm25 import lexical_words
from legal_rag.library.library import Library
from legal_rag.llm import Usage
from legal_rag.retriever.ranking import Mode
from legal_rag.retriever.retriever import Retriever, jaccard

if TYPE_CHECKING:
    import dspy

logger = logging.getLogger(__name__)

SPLITS: Final = {"train": 80, "dev": 10, "test": 10}  # percent of documents
SHINGLE_CHARS: Final = 5
NEAR: Final = 0.8  # share of shingles that two questions have in common (Jaccard), from which they are one
N_PERMUTATIONS, BANDS = 126, 21  # MinHash: pairs as alike as that share a band of 6 values with a chance of 0.998
NEGATIONS: Final = {"ne", "n", "pas", "sans", "ni"}
PARQUET_FOLDER, DATASET_FILE = "data", "dataset_dict.json"

MODEL_NAME: Final = f"{NO_MODEL} (sommaires officiels)"  # of questions made without a model

# What ids are derived from: the same document, span and question have the same id, whenever and wherever.
ID_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "legal_rag/questions")
ENTITY_CHARS: Final = 400  # either side of the answer, in which names and dates are looked for
MARGIN_CHARS: Final = 60  # beyond that, so that what begins or ends there is read whole
MAX_ENTITIES: Final = 10

CARD: Final = "README.md"

T = TypeVar("T")


class SourceDocuments:
    """Documents drawn from a source while it is read, held in memory: as many as `limit` allows.

    The same documents as `draw` takes of a Library that holds the same source.
    """

    def __init__(
        self,
        source: Any,
        options: SourceOptions | None = None,
        *,
        limit: int | None = None,
        seed: int = 0,
        doc_ids: Collection[str] = (),
    ) -> None:
        """Read a source once, as `legal_rag.corpus.read_documents` does, and draw of it; see `draw`."""
        self.name = source_label(IndexConfig(source=source))
        documents = ((document.id, document) for document in read_documents(source, options))
        self._documents = dict(draw(documents, limit, seed, doc_ids))

    def __len__(self) -> int:
        return len(self._documents)

    def content_hashes(self) -> Iterator[tuple[str, str]]:
        """Return ids and content hashes, in the source's order."""
        return ((doc_id, document.content_hash) for doc_id, document in self._documents.items())

    def document(self, doc_id: str) -> Document:
        """Return a document by its id; KeyError if it was not drawn."""
        return self._documents[doc_id]


Documents = Library | SourceDocuments


def draw(
    pairs: Iterable[tuple[str, T]], limit: int | None, seed: int, doc_ids: Collection[str] = ()
) -> list[tuple[str, T]]:
    """Draw `limit` pairs (None: all) of a document's id and anything, in their order, among `doc_ids` if there are any.

    A lower limit draws some of the same. No more than `limit` pairs are held at a time. LookupError if there is no pair
    of one of `doc_ids`, ValueError if `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    if doc_ids:
        pairs = [pair for pair in pairs if pair[0] in doc_ids]
        if missing := sorted(set(doc_ids) - {doc_id for doc_id, _ in pairs}):
            raise LookupError(f"no document {missing[0]!r} ({len(missing)} of {len(set(doc_ids))} ids are unknown)")
    if limit is None:
        return list(pairs)
    lots = ((hashlib.sha256(f"{seed}:{pair[0]}".encode()).digest(), number, pair) for number, pair in enumerate(pairs))
    return [pair for _, _, pair in sorted(heapq.nsmallest(limit, lots), key=lambda lot: lot[1])]


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """Outcome of one document."""

    doc_id: str
    content_hash: str  # of the document
    status: Literal["accepted", "rejected", "failed"]  # failed: the model was not reached; a later run tries again
    reason: str = ""  # why not accepted
    row: dict[str, Any] | None = None  # of the dataset, where accepted
    near_miss: dict[str, Any] | None = None  # another row: a question near to that one, without an answer
    near_reason: str = ""  # why there is none, though it was tried
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0  # in dollars; None where the price is not known
    seconds: float = 0.0

    @property
    def usage(self) -> Usage:
        """The model's usage, as the agent counts it."""
        return Usage(self.replies, 0, self.prompt_tokens, self.completion_tokens, self.cost)


RecordMaker = Callable[[str], CheckpointRecord]  # of a document's id


def usage_columns(usage: Usage) -> dict[str, Any]:
    """Write usage under the names that records and reports give it."""
    return {
        "replies": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
    }


class Checkpoint:
    """Append-only JSONL file of records, each on disk before the next document begins. Thread-safe."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Open or create a file in a folder that exists; `settings` are what decides the records.

        ValueError if the file has other settings, or is not a checkpoint.
        """
        self._records: dict[str, CheckpointRecord] = {}  # the last of each document
        self._lock = threading.Lock()
        settings = json.loads(json.dumps(settings))
        written, header = path.read_bytes() if path.exists() else b"", _json_line({"settings": settings})
        # What follows the last line end was cut off by a kill.
        first, *lines = written[: written.rfind(b"\n") + 1].splitlines(keepends=True) or [b""]
        records = [_parse_record(path, line) for line in lines]
        if records and all(record.status == "failed" or record.reason == "unreadable" for record in records):
            logger.warning("%s: no reply of the last run could be read: this one starts anew", path.parent)
            first, lines, records = b"", [], []
        elif first or not header.startswith(written):
            _check_settings(path, first or written, settings)
        self._records |= {record.doc_id: record for record in records}
        os.truncate(path, len(first) + sum(map(len, lines))) if written else path.touch()
        self._file = path.open("ab")
        if not first:
            self._append_line(header)
            sync(path.parent)

    def is_finished(self, doc_id: str, content_hash: str) -> bool:
        """Tell whether a document, as it is now, was accepted or rejected."""
        record = self._records.get(doc_id)
        return record is not None and record.status != "failed" and record.content_hash == content_hash

    def record(self, doc_id: str) -> CheckpointRecord:
        """Return a document's record; KeyError if it has none."""
        return self._records[doc_id]

    def add(self, record: CheckpointRecord) -> None:
        """Append a record and sync it to disk; the cost of an earlier failure is added to its own."""
        with self._lock:
            if before := self._records.get(record.doc_id):
                spent, seconds = record.usage.plus(before.usage), record.seconds + before.seconds
                record = replace(record, **usage_columns(spent), seconds=seconds)
            self._append_line(_json_line(asdict(record)))
            self._records[record.doc_id] = record

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append_line(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())


def _check_settings(path: Path, first: bytes, settings: Mapping[str, Any]) -> None:
    try:
        stored = dict(json.loads(first)["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} does not begin with settings: {first[:60]!r}") from error
    for name, value in settings.items():
        if stored.get(name) != value:
            begun = f"{path.parent} was begun with {name} {stored.get(name)!r}"
            raise ValueError(f"{begun}, now {value!r}: choose another folder")


def _parse_record(path: Path, line: bytes) -> CheckpointRecord:
    try:
        return CheckpointRecord(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise ValueError(f"damaged line in {path}: {line[:60]!r}") from error


def _json_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


@displayed
@dataclass(frozen=True, kw_only=True)
class QuestionReport:
    """Totals of a dataset, over all runs in its folder."""

    folder: Path
    model: str
    corpus: str  # the source that the index names
    settings: QuestionSettings
    documents: int  # accepted, duplicates, rejected and failed add up to it
    accepted: int  # rows with an answer
    unanswerable: int  # rows without one: near misses of accepted questions
    duplicates: int  # passed every check, but their question nearly repeats one before
    rejected: dict[str, int]  # by reason
    near_rejected: dict[str, int]  # near misses, by reason
    failed: dict[str, int]  # documents that the model failed on, by the kind of error; the next run tries them again
    splits: dict[str, int]  # rows
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # in dollars; None where a price is not known
    mean_score: float | None  # of what passed, by `qa_reward`; None if nothing did, and without a model
    seconds: float  # that documents took, added up: less than that has passed where several were under way


def schema(settings: QuestionSettings) -> Any:
    """Return the columns, as `datasets.Features`."""
    require("datasets")
    from datasets import Features, Sequence, Value

    text = Value("string")
    columns = {
        "id": text,
        "doc_id": text,
        "question": text,
        "answer": text,
        "answer_span_start": Value("int64"),
        "answer_span_end": Value("int64"),
        "main_topic": text,
        "document_title": text,
        "summary": text,
        "key_entities": Sequence(text),
        "score": Value("float64"),
        "model": text,
        "prompt_hash": text,
    }
    columns |= {"answerable": Value("bool"), "near_doc_id": text} if settings.unanswerable else {}
    return Features(columns)


def write_dataset(
    folder: Path, records: Iterable[CheckpointRecord], settings: QuestionSettings
) -> tuple[dict[str, int], int, int]:
    """Write the rows of accepted records in order, replacing the dataset before; other files in the folder stay.

    Return the rows by split, those without an answer, and how many records were left out because their question nearly
    repeats one before; so are near misses. `load_from_disk` never sees half of it. The seed draws the split of a
    document, whatever other documents there are.
    """
    scratch = folder / ".building"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / PARQUET_FOLDER).mkdir(parents=True)
    seen, kept, n_near = SeenQuestions(), list[CheckpointRecord](), 0
    passed = [record for record in records if record.row is not None]
    splits: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    for record in passed:
        if record.row and seen.is_new(record.row["question"]):
            splits[split_of(record.doc_id, settings.seed)].append(record.row)
            kept.append(record)
    for record in kept:  # a near miss may be a question that another document answers
        if record.near_miss and seen.is_new(record.near_miss["question"]):
            splits[split_of(record.doc_id, settings.seed)].append(record.near_miss)
            n_near += 1
    _save_splits(splits, scratch, schema(settings))
    _replace_dataset(scratch, folder)
    return {split: len(rows) for split, rows in splits.items()}, n_near, len(passed) - len(kept)


def split_of(doc_id: str, seed: int) -> str:
    """Return the split that a document's rows are in: drawn by a hash of seed and id."""
    number = int.from_bytes(hashlib.sha256(f"{seed}:{doc_id}".encode()).digest()[:8], "big") % 100
    for split, share in SPLITS.items():
        if number < share:
            return split
        number -= share
    raise AssertionError("the shares are a hundred")


def make_row(document: Document, question: str, span: Span, **columns: Any) -> dict[str, Any]:
    """Make a row, whose answer is a span of the document's text.

    `columns` are `main_topic`, `summary`, `score` (None without a model), `model`, `prompt_hash`.
    """
    start, end = span
    return {
        "id": question_id(document.id, span, question),
        "doc_id": document.id,
        "question": question,
        "answer": document.content[start:end],
        "answer_span_start": start,
        "answer_span_end": end,
        "document_title": document.title,
        "key_entities": key_entities(document.content, span),
        **columns,
    }


def question_id(doc_id: str, span: Span, question: str) -> str:
    """Return the id of a question: UUID version 5 (RFC 9562) of document, span and question."""
    return str(uuid.uuid5(ID_NAMESPACE, f"{doc_id}\n{span[0]}-{span[1]}\n{question}"))


def key_entities(content: str, span: Span) -> list[str]:
    """Return the decisions, articles and dates named around an answer, as the text writes them, in its order."""
    start, end = max(0, span[0] - ENTITY_CHARS), span[1] + ENTITY_CHARS
    first = max(0, start - MARGIN_CHARS)
    text = content[first : end + MARGIN_CHARS]
    spans = [(match.start, match.end) for match in find_identifiers(text)]
    spans += [(match.start, match.end) for match in find_dates(text)]
    around = sorted(name for name in spans if start - first <= name[0] and name[1] <= end - first)
    return list(dict.fromkeys(text[slice(*name)] for name in around))[:MAX_ENTITIES]


class SeenQuestions:
    """Questions seen so far, to drop near-duplicates.

    Two questions are one when they share most of their character shingles (Jaccard) and all content words: another
    number, name or negation makes another question. MinHash with banding finds the pairs to compare (Broder, 1997;
    Leskovec et al., Mining of Massive Datasets, 3.4).
    """

    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self._empty = MinHash(num_perm=N_PERMUTATIONS, seed=1)
        self._index = MinHashLSH(num_perm=N_PERMUTATIONS, params=(BANDS, N_PERMUTATIONS // BANDS))

    def is_new(self, question: str) -> bool:
        """Tell whether a question is no near-duplicate of an earlier one, and remember it if so."""
        shingles, words = _character_shingles(question), _content_words(question)
        minhash = self._empty.copy()
        minhash.update_batch([shingle.encode() for shingle in sorted(shingles)])
        for other in self._index.query(minhash):
            if words == _content_words(other) and jaccard(shingles, _character_shingles(other)) >= NEAR:
                return False
        self._index.insert(question, minhash)
        return True


def _character_shingles(question: str) -> set[str]:
    text = fold_text(question)
    return {text[at : at + SHINGLE_CHARS] for at in range(max(1, len(text) - SHINGLE_CHARS + 1))}


def _content_words(question: str) -> set[str]:
    """Return the stems of content words, and negations, which a search engine drops."""
    return {*lexical_words(question), *NEGATIONS.intersection(re.findall(r"\w+", question.casefold()))}


def _save_splits(splits: Mapping[str, Sequence[dict[str, Any]]], scratch: Path, features: Any) -> None:
    """Save the splits as Parquet, and in the format of `datasets`, without its progress bars."""
    import datasets
    import pyarrow.parquet as pq

    had_bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        made = {
            split: datasets.Dataset.from_dict({name: [row[name] for row in rows] for name in features}, features)
            for split, rows in splits.items()
        }
        for split, dataset in made.items():
            pq.write_table(dataset.data.table, scratch / PARQUET_FOLDER / f"{split}.parquet")
        one_file = dict.fromkeys(splits, 1)  # else a split without rows gets no file and cannot be read
        datasets.DatasetDict(made).save_to_disk(str(scratch / "saved"), num_shards=one_file)
    finally:
        if had_bars:
            datasets.enable_progress_bars()


def _replace_dataset(scratch: Path, folder: Path) -> None:
    """Replace the dataset in a folder: without its file of splits, written last, it does not count as one."""
    (folder / DATASET_FILE).unlink(missing_ok=True)
    for name in (*SPLITS, PARQUET_FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)
        os.replace(scratch / (name if name == PARQUET_FOLDER else f"saved/{name}"), folder / name)
    sync(folder)
    os.replace(scratch / "saved" / DATASET_FILE, folder / DATASET_FILE)
    sync(folder)
    shutil.rmtree(scratch)


def write_card(report: QuestionReport) -> None:
    """Write the dataset card."""
    from huggingface_hub import DatasetCard, DatasetCardData

    paths = [{"split": split, "path": f"{PARQUET_FOLDER}/{split}.parquet"} for split in report.splits]
    header = DatasetCardData(
        language="fr",
        task_categories=["question-answering", "text-retrieval"],
        configs=[{"config_name": "default", "data_files": paths}],
    )
    card = DatasetCard.from_template(
        header,
        template_str=(files(__package__) / "templates" / "card.md.j2").read_text("utf-8"),
        report=report,
        settings=vars(report.settings),
        has_model=report.model != MODEL_NAME,
        date=datetime.now(UTC).date().isoformat(),
    )
    write_whole(report.folder / CARD, str(card))


def read_examples(folder: str | Path, split: str = "train") -> "list[dspy.Example]":
    """Read a split ('train', 'dev' or 'test') as examples, whose input is `question`; the other columns are labels.

    No two splits share a document. FileNotFoundError if there is no dataset in the folder, ValueError if it lacks the
    split.
    """
    require("datasets")
    require("dspy")
    import dspy
    from datasets import load_from_disk

    saved = load_from_disk(str(Path(folder).expanduser()))
    if split not in saved:
        raise ValueError(f"no split {split!r} in {folder} (there are: {', '.join(saved)})")
    return [dspy.Example(**row).with_inputs("question") for row in saved[split]]


def search_metric(retriever: Retriever, k: int = 10, *, mode: Mode | None = None) -> Callable[..., float]:
    """Return a metric of DSPy: the reciprocal rank of the right document in a search for a program's `query`.

    It is 0 where `doc_id`, of the example, is not among the first `k` documents, and for a query that is empty or
    longer than the encoder reads.
    """

    def reciprocal_rank(example: Any, prediction: Any, trace: Any = None) -> float:
        try:
            query = retriever.query(prediction.query or "")
        except ValueError:
            return 0.0
        hits = retriever.search(query, k, mode=mode, by_document=True)
        return next((1 / hit.rank for hit in hits if hit.doc_id == example.doc_id), 0.0)

    return reciprocal_rank
