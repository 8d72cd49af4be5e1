"""Pooled judgements: sheets of what several systems rank first, two judges' marks, their agreement, merged qrels."""

import csv
import hashlib
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from legal_rag.agent.passages import choose_passages, weigh_documents
from legal_rag.base.files import progress, write_whole
from legal_rag.base.html import Rows, displayed, frame_of_page, own_script, own_style, page_template, safe_json
from legal_rag.evaluation.trec import Qrels, Query, Run, read_qrels, read_text
from legal_rag.law.tree import speaker_in_french
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import Retriever

PACKAGE = "legal_rag.evaluation"
GRADES: Final = {  # relevance: what it means, in French; all above 0 are relevant to binary measures
    0: "n’aide pas à répondre",
    1: "répond en partie, ou par analogie",
    2: "répond à la question",
    3: "y répond en entier, par ce que juge la juridiction elle-même",
}
SOURCE_GRADE = 3  # of the document that a question was written from
COLUMNS: Final = ("qid", "question", "doc_id", "title", "passage", "relevance")
PASSAGES, CHARS = 4, 1200  # of a document that are shown to a judge, at most, and of them together


@displayed
class PooledPair(NamedTuple):
    """A row of a sheet: a question and a document to judge."""

    qid: str
    question: str
    doc_id: str
    title: str
    passage: str  # the document's best passages for the question, each after who speaks, in brackets


@displayed
class Disagreement(NamedTuple):
    """A pair that two judges graded differently."""

    qid: str
    doc_id: str
    first: int
    second: int


@displayed
class Agreement(NamedTuple):
    """How far two judges agree: Cohen's kappa, 1 for equal marks, 0 for chance; None where all marks are one grade."""

    pairs: int
    same: int  # pairs with equal grades
    kappa: float | None  # every difference counts the same
    linear: float | None  # weighted by the difference of grades
    quadratic: float | None  # by its square
    binary: float | None  # of relevant (1 to 3) or not (0)
    disagreements: Rows[Disagreement]  # the widest first


def pool_runs(runs: Sequence[Run], qrels: Qrels, depth: int = 10) -> dict[str, list[str]]:
    """Return for each query the unjudged documents among the first `depth` of any run.

    Their order is by a hash of the pair, so that it shows neither system nor rank.
    """
    pooled: dict[str, set[str]] = {}
    for run in runs:
        for qid, ranked in run.items():
            pooled.setdefault(qid, set()).update(doc_id for doc_id, _ in ranked[:depth])
    unjudged = {qid: doc_ids - qrels.get(qid, {}).keys() for qid, doc_ids in pooled.items()}
    return {
        qid: sorted(ids, key=lambda doc_id: hashlib.sha256(f"{qid} {doc_id}".encode()).digest())
        for qid, ids in unjudged.items()
    }


def make_sheet(retriever: Retriever, queries: Sequence[Query], pooled: dict[str, list[str]]) -> Rows[PooledPair]:
    """Return the rows of a sheet, in the order of the queries, each with its document's best passages.

    Documents that the index lacks are left out.
    """
    rows = Rows[PooledPair]()
    with progress("Reading", unit=" queries", total=len(queries)) as bar:
        for query in queries:
            doc_ids = [doc_id for doc_id in pooled.get(query.qid, []) if doc_id in retriever.corpus]
            rows += _pairs_of(retriever, query, doc_ids) if doc_ids else []
            bar.update()
    return rows


def _pairs_of(retriever: Retriever, query: Query, doc_ids: list[str]) -> list[PooledPair]:
    encoded, corpus = retriever.query(query.text), retriever.corpus
    hits = retriever.search(encoded, len(doc_ids), filters=Filters(doc_ids=tuple(doc_ids)), by_document=True)
    near = {hit.doc_id: hit.char_start for hit in hits}
    documents = [corpus.document(doc_id) for doc_id in doc_ids]
    texts = [(one.content, retriever.document_tokens(one.id, near.get(one.id, 0))) for one in documents]
    weighed = weigh_documents(encoded.tokens, texts, [one.extra.get("zones") for one in documents])
    pairs = []
    for document, passages in zip(documents, weighed, strict=True):
        chosen = sorted(passage for _, passage in choose_passages([passages], [0.0], PASSAGES, CHARS))
        shown = (
            f"[{speaker_in_french(one.paragraph.speaker, censured=one.paragraph.censured) or 'passage'}] "
            f"{document.content[one.start : one.end].strip()}"
            for one in chosen
        )
        title = document.title or document.id
        pairs.append(PooledPair(query.qid, query.text, document.id, title, "\n\n".join(shown)))
    return pairs


def write_sheet(path: str | Path, rows: Sequence[PooledPair]) -> None:
    """Write a sheet to fill in: CSV, a row a pair, with an empty column `relevance`."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS, *((*row, "") for row in rows)])
    write_whole(Path(path).expanduser(), text.getvalue().encode("utf-8-sig"))  # by its mark Excel knows UTF-8


def render_sheet(rows: Sequence[PooledPair], name: str) -> str:
    """Make the page in which a judge marks a sheet, offline; `name` is that of the CSV that it saves.

    The browser keeps the marks, under the sheet's digest.
    """
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    data = {"digest": digest, "name": name, "columns": COLUMNS, "rows": rows}
    frame = frame_of_page("Feuille de jugement", own_script(PACKAGE, "pool.js"), own_style(PACKAGE, "pool.css"))
    return page_template(PACKAGE, "pool.html.j2").render(**frame, data=safe_json(data), grades=GRADES, pairs=len(rows))


def read_marks(path: str | Path) -> Qrels:
    """Read a judge's marks: a filled sheet, or `.qrels`, lines `qid 0 doc_id relevance`.

    ValueError if a grade is not 0 to 3, a pair comes twice or has none, or the file is no sheet.
    """
    marks: Qrels = {}
    empty: list[str] = []
    for place, qid, doc_id, grade in _read_rows(path):
        if grade not in ("", *map(str, GRADES)):
            raise ValueError(f"{path}{place}: relevance {grade!r:.60} of {qid} {doc_id} (expected 0, 1, 2 or 3)")
        if doc_id in marks.setdefault(qid, {}):
            raise ValueError(f"{path}{place}: {qid} {doc_id} comes twice")
        marks[qid][doc_id] = int(grade or 0)
        empty += [f"{qid} {doc_id}"] * (not grade)
    if empty:
        total = sum(map(len, marks.values()))
        raise ValueError(
            f"{path}: {len(empty)} of {total} pairs have no relevance yet, the first is {empty[0]} "
            "(nothing was changed: the same file, filled, or its page, takes the rest)"
        )
    if not marks:
        raise ValueError(f"{path} holds no pair")
    return marks


def _read_rows(path: str | Path) -> list[tuple[str, str, str, str]]:
    """Return place in the file, query id, document id and grade as written."""
    if Path(path).suffix == ".qrels":
        return [("", qid, doc_id, str(n)) for qid, judged in read_qrels(path).items() for doc_id, n in judged.items()]
    text = read_text(path)
    head = text.partition("\n")[0]
    reader = csv.DictReader(StringIO(text), delimiter=";" if ";" in head else ",")  # Excel's, in French
    if missing := {"qid", "doc_id", "relevance"}.difference(reader.fieldnames or ()):
        raise ValueError(f"{path} is no sheet: no column {min(missing)!r} (expected {', '.join(COLUMNS)})")
    try:
        return [
            (f", line {reader.line_num}", row["qid"] or "", row["doc_id"] or "", (row["relevance"] or "").strip())
            for row in reader
        ]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error


def agreement(first: Qrels, second: Qrels) -> Agreement:
    """Compare two judges' marks of the same pairs; ValueError if their pairs differ.

    Kappa is Cohen's (1960), weighted as Cohen's of 1968.
    """
    pairs = [(qid, doc_id) for qid, judged in first.items() for doc_id in judged]
    others = {(qid, doc_id) for qid, judged in second.items() for doc_id in judged}
    if alone := sorted(others.symmetric_difference(pairs)):
        raise ValueError(
            f"the judges marked different pairs, {len(pairs)} and {len(others)}: {len(alone)} are in one sheet only, "
            f"such as {' '.join(alone[0])} (expected two copies of one sheet)"
        )
    marks = [(first[qid][doc_id], second[qid][doc_id]) for qid, doc_id in pairs]
    relevant = [(one > 0, other > 0) for one, other in marks]
    apart = [Disagreement(*pair, *both) for pair, both in zip(pairs, marks, strict=True) if both[0] != both[1]]
    apart.sort(key=lambda pair: -abs(pair.first - pair.second))
    return Agreement(
        pairs=len(pairs),
        same=len(pairs) - len(apart),
        kappa=_kappa(marks),
        linear=_kappa(marks, "linear"),
        quadratic=_kappa(marks, "quadratic"),
        binary=_kappa(relevant),
        disagreements=Rows(apart),
    )


def _kappa(marks: Sequence[tuple[int, int]], weights: str | None = None) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if len({mark for both in marks for mark in both}) < 2:
        return None
    return float(cohen_kappa_score(*zip(*marks, strict=True), labels=sorted(GRADES), weights=weights))


def merge_judgements(qrels: Qrels, first: Qrels, second: Qrels) -> Qrels:
    """Add two judges' marks of the same pairs to present judgements, which stay; where they differ, the lower.

    So a document is relevant only if both find it so: an error of one gains no system anything.
    """
    merged = {qid: dict(judged) for qid, judged in qrels.items()}
    for qid, judged in first.items():
        for doc_id, grade in judged.items():
            merged.setdefault(qid, {}).setdefault(doc_id, min(grade, second[qid][doc_id]))
    return merged
