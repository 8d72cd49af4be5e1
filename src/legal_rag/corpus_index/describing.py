"""Describe one document: kind, summary, keywords."""

import json
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from legal_rag.base.files import progress
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.documents import Document
from legal_rag.corpus.sources import is_text_file
from legal_rag.corpus_index.keywords import N_KEYWORDS, Keyword, TermStatistics, index_terms, keywords_of
from legal_rag.corpus_index.summaries import CENTROID, extractive_summary, model_record
from legal_rag.corpus_index.tables import Described, read_meta, write_meta
from legal_rag.corpus_index.terms import TextTerms, query_terms, read_terms
from legal_rag.extraction.schemas import choose_schema
from legal_rag.llm import TextModel

logger = logging.getLogger(__name__)

OFFICIAL, EXTRACTIVE = "official", "extractive"  # sources of a summary; else a model's id
DECISION = "décision"
# Kinds of a text file by the extraction schema chosen for it; the last is any other document's.
KINDS = {
    "jurisprudence": DECISION,
    "contract": "contrat",
    "correspondence": "courrier",
    "corporate": "acte de société",
    "regulation": "texte",
    "general": "document",
}
ASKED_TO = "asked_to"  # in `meta` of an unfinished build: the last document_key sent to the model
AT_ONCE = 8  # documents sent to the model at a time


def describe(document: Document, statistics: TermStatistics, terms: TextTerms | None = None) -> Described:
    """Describe a document; `statistics` need only cover the document's own terms."""
    terms = terms or read_terms(document.content)
    weighed = keywords_of(terms, statistics, CENTROID)
    keywords = weighed[:N_KEYWORDS]
    official = " ".join(document.summary.split())
    summary = official or extractive_summary(document.content, statistics, terms=terms, keywords=weighed)
    return Described(
        document.content_hash,
        len(document.content),
        len(document.content.encode()),
        doc_type_of(document),
        OFFICIAL if official else EXTRACTIVE,
        summary,
        [(keyword.term, keyword.shown, keyword.weight) for keyword in keywords],
        index_terms(keywords),
    )


def doc_type_of(document: Document) -> str:
    """Return a document's kind: its `nature` in the source, a decision if it names a court, else by a file's text."""
    if named := str(document.extra.get("nature") or "").strip():
        return named
    if document.juridiction:
        return DECISION
    return KINDS[choose_schema(document.content) if is_text_file(document.id) else "general"]


def write_model_records(connection: sqlite3.Connection, store: Path, sub_llm: TextModel) -> None:
    """Replace extractive summaries by a model's, with its title, date, author and keywords; keep them where it fails.

    A resumed build continues after the last document sent.
    """
    last = int(read_meta(connection).get(ASKED_TO, 0))
    pending = "FROM documents WHERE summary_source = ? AND document_key > ?"
    (total,) = connection.execute(f"SELECT COUNT(*) {pending}", (EXTRACTIVE, last)).fetchone()
    next_keys = f"SELECT document_key {pending} ORDER BY document_key LIMIT {AT_ONCE}"
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
            replies = pool.map(lambda text: model_record(sub_llm, text), [row.fetchone()[0] for row in texts])
            kept = [(key, reply) for key, reply in zip(keys, replies, strict=True) if reply.summary]
            failed += len(keys) - len(kept)
            connection.execute("BEGIN IMMEDIATE")
            rows = [(reply.summary, name, key) for key, reply in kept]
            connection.executemany("UPDATE documents SET summary = ?, summary_source = ? WHERE document_key = ?", rows)
            records = [(key, reply.title, reply.date, reply.author, json.dumps(reply.keywords)) for key, reply in kept]
            connection.executemany("INSERT OR REPLACE INTO model_records VALUES (?, ?, ?, ?, ?)", records)
            write_meta(connection, {ASKED_TO: last})
            connection.execute("COMMIT")
            bar.update(len(keys))
    connection.execute("DELETE FROM meta WHERE name = ?", (ASKED_TO,))
    if failed:
        logger.warning("the model gave no usable summary of %d of %d documents: theirs stay extractive", failed, total)


def put_model_keywords(connection: sqlite3.Connection) -> None:
    """Insert a model's keywords before a document's own; the caller has begun a transaction."""
    query = "SELECT document_key, keywords FROM model_records WHERE keywords <> '[]' ORDER BY document_key"
    keyword_query = "SELECT term, shown, weight FROM keywords WHERE document_key = ? ORDER BY place"
    for key, given in connection.execute(query).fetchall():
        own_keywords = [Keyword(*row) for row in connection.execute(keyword_query, (key,))]
        weight = max((keyword.weight for keyword in own_keywords), default=1.0)
        terms = ((" ".join(stems[0] for stems in query_terms(shown)), shown) for shown in json.loads(given))
        first = {term: Keyword(term, shown, weight) for term, shown in terms if term}
        keywords = [*first.values(), *(keyword for keyword in own_keywords if keyword.term not in first)]
        connection.execute("DELETE FROM keywords WHERE document_key = ?", (key,))
        rows = [(key, place, *keyword) for place, keyword in enumerate(keywords)]
        connection.executemany("INSERT INTO keywords VALUES (?, ?, ?, ?, ?)", rows)
        postings = [(term, key, weight) for term, weight in index_terms(keywords).items()]
        connection.executemany("INSERT OR REPLACE INTO postings VALUES (?, ?, ?)", postings)


def copy_model_texts(connection: sqlite3.Connection, earlier: Path) -> None:
    """Copy what a model wrote, records and sections, from an earlier index of the same documents and keys."""
    connection.execute("ATTACH ? AS earlier", (str(earlier),))
    try:
        _copy_from_earlier(connection)
    except sqlite3.DatabaseError as error:  # a damaged index is rebuilt anyway
        logger.warning("cannot reuse the model's summaries in %s: %s", earlier, error)
    connection.execute("DETACH earlier")


def _copy_from_earlier(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE main.documents AS i SET summary = e.summary, summary_source = e.summary_source"
        " FROM earlier.documents AS e WHERE e.document_key = i.document_key AND e.id = i.id"
        " AND i.summary_source = ? AND e.summary_source NOT IN (?, ?)",
        (EXTRACTIVE, EXTRACTIVE, OFFICIAL),
    )
    if connection.execute("SELECT 1 FROM earlier.sqlite_master WHERE name = 'model_records'").fetchone():
        connection.execute(
            "INSERT OR REPLACE INTO main.model_records SELECT r.* FROM earlier.model_records AS r"
            " JOIN main.documents AS i USING (document_key) JOIN earlier.documents AS e USING (document_key)"
            " WHERE e.id = i.id AND i.summary_source NOT IN (?, ?)",
            (EXTRACTIVE, OFFICIAL),
        )
    connection.execute(
        "INSERT OR REPLACE INTO main.sections SELECT s.* FROM earlier.sections AS s"
        " JOIN earlier.documents AS e USING (document_key) JOIN main.documents AS i USING (document_key)"
        " WHERE e.id = i.id AND s.made_by <> ''"
    )
