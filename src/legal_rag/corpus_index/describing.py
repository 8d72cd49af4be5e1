"""Describe one document: kind, summary, keywords."""

import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from legal_rag.corpus.documents import Document
from legal_rag.corpus_index.keywords import N_KEYWORDS, TermStatistics, index_terms, keywords_of
from legal_rag.corpus_index.summaries import CENTROID, SummaryModel, extractive_summary, model_summary
from legal_rag.corpus_index.tables import Described, read_meta, write_meta
from legal_rag.corpus_index.terms import TextTerms, read_terms
from legal_rag.files import progress
from legal_rag.sqlite import connect_to_read

logger = logging.getLogger(__name__)

OFFICIAL, EXTRACTIVE = "official", "extractive"  # sources of a summary; else a model's id
DECISION, OTHER = "décision", "document"  # kinds of a document, where its source names none
ASKED_TO = "asked_to"  # in `meta` of an unfinished build: the last document_key sent to the model
AT_ONCE = 8  # documents sent to the model


def describe(document: Document, statistics: TermStatistics, terms: TextTerms | None = None) -> Described:
    """Describe a document; of the corpus' statistics, those of the document's own terms suffice."""
    terms = terms or read_terms(document.content)
    weighed = keywords_of(terms, statistics, CENTROID)
    keywords = weighed[:N_KEYWORDS]
    official = " ".join(document.summary.split())
    summary = official or extractive_summary(document.content, statistics, terms=terms, keywords=weighed).text
    return Described(
        document.content_hash,
        len(document.content),
        len(document.content.encode()),
        doc_type_of(document),
        OFFICIAL if official else EXTRACTIVE,
        summary,
        [(one.term, one.shown, one.weight) for one in keywords],
        index_terms(keywords),
    )


def doc_type_of(document: Document) -> str:
    """Return the kind that a document's source names (`nature`), else a decision if it names a court."""
    named = str(document.extra.get("nature") or "").strip()
    return named or (DECISION if document.juridiction else OTHER)


def write_model_summaries(connection: sqlite3.Connection, store: Path, sub_llm: SummaryModel) -> None:
    """Replace extractive summaries by a model's; they stay where it fails. A resumed build goes on after the last."""
    last = int(read_meta(connection).get(ASKED_TO, 0))
    wanted = "FROM documents WHERE summary_source = ? AND document_key > ?"
    (total,) = connection.execute(f"SELECT COUNT(*) {wanted}", (EXTRACTIVE, last)).fetchone()
    next_keys = f"SELECT document_key {wanted} ORDER BY document_key LIMIT {AT_ONCE}"
    failed = 0
    name = str(getattr(sub_llm, "name", "model"))
    with (
        closing(connect_to_read(store)) as documents,
        ThreadPoolExecutor(AT_ONCE) as pool,
        progress("Summarizing", total=total, unit=" docs") as bar,
    ):
        while keys := [key for (key,) in connection.execute(next_keys, (EXTRACTIVE, last))]:
            last = keys[-1]
            texts = [documents.execute("SELECT content FROM documents WHERE document_key = ?", (key,)) for key in keys]
            replies = list(pool.map(lambda text: model_summary(sub_llm, text), [row.fetchone()[0] for row in texts]))
            rows = [(reply, name, key) for key, reply in zip(keys, replies, strict=True) if reply]
            failed += len(keys) - len(rows)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("UPDATE documents SET summary = ?, summary_source = ? WHERE document_key = ?", rows)
            write_meta(connection, {ASKED_TO: last})
            connection.execute("COMMIT")
            bar.update(len(keys))
    connection.execute("DELETE FROM meta WHERE name = ?", (ASKED_TO,))
    if failed:
        logger.warning("the model gave no usable summary of %d of %d documents: theirs stay extractive", failed, total)


def copy_model_texts(connection: sqlite3.Connection, earlier: Path) -> None:
    """Copy the summaries and sections that a model wrote from an earlier index of the same documents and keys."""
    connection.execute("ATTACH ? AS earlier", (str(earlier),))
    try:
        _copy_from_earlier(connection)
    except sqlite3.DatabaseError as error:  # a damaged index is a reason for a new build
        logger.warning("cannot reuse the model's summaries in %s: %s", earlier, error)
    connection.execute("DETACH earlier")


def _copy_from_earlier(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE main.documents AS i SET summary = e.summary, summary_source = e.summary_source"
        " FROM earlier.documents AS e WHERE e.document_key = i.document_key AND e.id = i.id"
        " AND i.summary_source = ? AND e.summary_source NOT IN (?, ?)",
        (EXTRACTIVE, EXTRACTIVE, OFFICIAL),
    )
    connection.execute(
        "INSERT OR REPLACE INTO main.sections SELECT s.* FROM earlier.sections AS s"
        " JOIN earlier.documents AS e USING (document_key) JOIN main.documents AS i USING (document_key)"
        " WHERE e.id = i.id AND s.made_by <> ''"
    )
