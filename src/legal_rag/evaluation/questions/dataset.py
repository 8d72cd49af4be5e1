"""Dataset of questions: rows, near-duplicate removal, splits, Parquet files, card."""

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from legal_rag.base.extras import require
from legal_rag.base.files import sync, write_whole
from legal_rag.base.text import Span, fold_text
from legal_rag.corpus.documents import Document
from legal_rag.evaluation.questions.checkpoint import CheckpointRecord
from legal_rag.evaluation.questions.checks import QuestionSettings
from legal_rag.evaluation.trec import NO_MODEL
from legal_rag.law import find_dates, find_identifiers
from legal_rag.library.bm25 import lexical_words
from legal_rag.retriever.retriever import jaccard

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


@dataclass(frozen=True, kw_only=True)
class QuestionReport:
    """Totals of a dataset, over all runs in its folder."""

    folder: Path
    model: str
    corpus: str  # the source that the index names
    settings: QuestionSettings
    documents: int  # accepted, duplicates, rejected and failed add up to it
    accepted: int  # rows
    duplicates: int  # passed every check, but their question nearly repeats one before
    rejected: dict[str, int]  # by reason
    failed: dict[str, int]  # documents that the model failed on, by the kind of error; the next run tries them again
    splits: dict[str, int]  # rows
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None  # in dollars; None where a price is not known
    mean_score: float | None  # of what passed; None if nothing did
    seconds: float  # that documents took, added up: less than that has passed where several were under way


def schema(*, hard_negatives: bool = False) -> Any:
    """Return the columns, as `datasets.Features`."""
    require("datasets")
    from datasets import Features, Sequence, Value

    text = Value("string")
    features = Features(
        id=text,
        doc_id=text,
        question=text,
        answer=text,
        answer_span_start=Value("int64"),
        answer_span_end=Value("int64"),
        main_topic=text,
        document_title=text,
        summary=text,
        key_entities=Sequence(text),
        score=Value("float64"),
        model=text,
        prompt_hash=text,
    )
    return Features({**features, "hard_negatives": Sequence(text)}) if hard_negatives else features


def write_dataset(
    folder: Path, records: Iterable[CheckpointRecord], seed: int, *, hard_negatives: bool = False
) -> tuple[dict[str, int], int]:
    """Write the rows of accepted records in order, replacing the dataset before; other files in the folder stay.

    Return the rows by split, and how many were left out because their question nearly repeats one before.
    `load_from_disk` never sees half of it. `seed` draws the split of a document, whatever other documents there are.
    """
    scratch = folder / ".building"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / PARQUET_FOLDER).mkdir(parents=True)
    seen, n_repeated = SeenQuestions(), 0
    splits: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    for row in (record.row for record in records if record.row is not None):
        if seen.is_new(row["question"]):
            splits[split_of(row["doc_id"], seed)].append(row)
        else:
            n_repeated += 1
    _save_splits(splits, scratch, schema(hard_negatives=hard_negatives))
    _replace_dataset(scratch, folder)
    return {split: len(rows) for split, rows in splits.items()}, n_repeated


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

    `columns` are `main_topic`, `summary`, `score`, `model`, `prompt_hash`, and perhaps `hard_negatives`.
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
