"""The BM25 index of chunks and documents, in Tantivy."""

import math
import os
import shutil
import sqlite3
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tantivy

from legal_rag.base.files import beside, put_in_place
from legal_rag.base.html import displayed
from legal_rag.base.sqlite import connect_to_write, transaction
from legal_rag.base.text import storable
from legal_rag.law.citation import is_published
from legal_rag.law.keys import ParsedQuery, canonical_key, document_keys, relaxed_key
from legal_rag.library.manifest import record_checksums
from legal_rag.library.parts import LibraryPart, StoredDocument
from legal_rag.library.store import write_published

LEXICAL_FOLDER = "lexical"
MAKE_COMMAND = "'legal-rag rebuild --only words --force' makes it anew"
HEADER_COLUMNS = ("title", "section")  # indexed with every chunk of a document
WRITER_BYTES = 100_000_000  # of memory, before a segment is written
POSITION_BITS = 32  # low bits of a place written as one integer; the shard is above them
SHOWN_CHARS = 200  # of a Tantivy error
LONGEST_WORD = 40  # bytes; longer ones are lines of underscores
CHUNKS, DOCUMENTS = "chunks", "documents"  # the two Tantivy indexes in the folder
FEW_PLACES = 20_000  # up to which a restriction is part of the query; larger ones filter its hits
LONGEST_QUERY = 1_000_000  # characters: a whole decision may be searched by
MAX_TERMS = 10_000  # different ones of a query: each takes some 3 kB
FEW_TERMS = 4_000  # places looked up one by one; more are found in one pass over the dictionary of places

SHORTEST_STEM, OTHER_END = 3, 2  # letters: of a stem; at its end, which the word it is of may not have

Ranked = list[tuple[int, int, float]]  # shard, position, score
ChunkRow = tuple[int, int, int, int]  # first character, end, shard, position


class Clause(NamedTuple):
    """What one entry of the index must have, all of it."""

    words: str = ""  # in any form
    names: tuple[str, ...] = ()  # relaxed reference keys
    prefixes: tuple[str, ...] = ()  # beginnings of words, lower case without accents; entries that lack it may come


@displayed
class Occurrences(NamedTuple):
    """Entries of an index: documents by the place of their first chunk, the best by BM25 first."""

    documents: list[int]
    passages: dict[int, int]  # chunks by place, with their documents


class _Words(NamedTuple):
    """What is indexed of a document."""

    key: int
    header: str
    content: str
    references: list[tuple[int, str]]  # place and relaxed key, in the order of places
    keys: dict[str, bool]  # see `document_keys`
    is_published: bool


@contextmanager
def word_part(library: Path, store: Path, first_shard: int = 0) -> Iterator[LibraryPart]:
    """Open the index of words for all documents of a store, to replace its entries from `first_shard` on.

    A new store gets its documents' reference keys too: both are made of the references in a text. Every store gets
    which documents are published. OSError if the disk is full; what the folder held before is untouched.
    """
    folder = library / LEXICAL_FOLDER
    target = folder if first_shard else beside(folder, "building")
    if not first_shard:
        shutil.rmtree(target, ignore_errors=True)
    chunks, documents = (_open_bm25(target / name).writer(WRITER_BYTES, num_threads=1) for name in (CHUNKS, DOCUMENTS))
    for writer in (chunks, documents):  # one thread each: segments in the order of chunks
        writer.delete_documents_by_query(_match_shards(first_shard))
    with closing(connect_to_write(store)) as connection:
        keys = [key for (key,) in connection.execute("SELECT document_key FROM documents ORDER BY document_key")]
        is_new = connection.execute("SELECT 1 FROM names LIMIT 1").fetchone() is None
        published: list[int] = []

        def put(rows: Sequence[_Words]) -> None:
            if is_new:
                with transaction(connection):
                    named = ((term, row.key, own) for row in rows for term, own in row.keys.items())
                    connection.executemany("INSERT INTO names VALUES (?, ?, ?)", named)
            published.extend(row.key for row in rows if row.is_published)
            for row in rows:
                _index_words(row, _read_chunk_rows(row.key, connection), chunks, documents)

        yield LibraryPart(keys, _read_words, put)
        write_published(connection, published)
    try:
        for writer in (chunks, documents):
            writer.commit()
            writer.wait_merging_threads()
    except ValueError as error:  # how Tantivy says that the disk is full
        raise OSError(f"cannot write in {folder}: {error}") from error
    if not first_shard:
        put_in_place(target, folder)
    record_checksums(library, LEXICAL_FOLDER)


def _read_words(stored: StoredDocument) -> _Words:
    row, reading = stored.document.row(), stored.document.reading
    header = "\n".join(str(row.get(name) or "") for name in HEADER_COLUMNS)
    references = [(name.start, relaxed_key(canonical_key(name))) for name in reading.identifiers]
    references += [(day.start, f"date:{day.value.isoformat()}") for day in reading.dates]
    keys, document = document_keys(stored.document), stored.document
    return _Words(stored.key, header, reading.text, sorted(references), keys, is_published(document))


def _index_words(
    row: _Words, places: Sequence[ChunkRow], chunks: tantivy.IndexWriter, documents: tantivy.IndexWriter
) -> None:
    """Write the entries of a document and of its chunks, each of which has the references that begin in it."""
    if not places:
        return
    first, starts, all_names = _encode_place(*places[0][2:]), [start for start, _ in row.references], dict[str, None]()
    numbers: dict[str, Any] = {"document": first, "n_chunks": len(places)}
    for start, end, *place in places:
        within = row.references[bisect_left(starts, start) : bisect_left(starts, end)]
        names = dict.fromkeys(name for _, name in within)
        all_names |= names
        entry = {"text": [row.header, row.content[start:end]], "names": list(names), "place": _encode_place(*place)}
        chunks.add_document(tantivy.Document.from_dict(numbers | entry, _bm25_schema()))
    cited = list(dict.fromkeys(relaxed_key(term) for term, own in row.keys.items() if not own))
    whole = {"text": [row.header, row.content], "names": list(all_names), "cited": cited, "place": first}
    documents.add_document(tantivy.Document.from_dict(numbers | whole, _bm25_schema()))


class LexicalIndex:
    """BM25 over the chunks and documents of a Library at one commit; its term statistics include later commits.

    Entries of shards from `n_shards` on are ignored, and those of the chunks `removed`, rising positions in each shard.

    Raises:
        FileNotFoundError: If there is no index in the folder.
    """

    def __init__(self, folder: Path, n_shards: int, removed: Sequence[np.ndarray]) -> None:
        for name in (CHUNKS, DOCUMENTS):
            if not (folder / name).is_dir() or not tantivy.Index.exists(str(folder / name)):
                raise FileNotFoundError(f"no lexical index at {folder / name}")
        with _report_damage():
            self._chunks = _open_bm25_to_read(folder / CHUNKS).searcher()
            self._documents = _open_bm25_to_read(folder / DOCUMENTS).searcher()
        self._n_shards = n_shards
        self._removed = _encode_positions(removed)

    @property
    def n_chunks(self) -> int:
        """The number of indexed chunks of this commit's shards, removed ones included."""
        with _report_damage():
            return int(self._chunks.search(_match_shards(0, self._n_shards), 1).count)  # type: ignore[attr-defined]

    @property
    def n_entries(self) -> int:
        """The number of indexed chunks, those of later commits included; read from the file's head."""
        return int(self._chunks.num_docs)

    @property
    def n_documents(self) -> int:
        """The number of indexed documents, those of later commits included; read from the file's head."""
        return int(self._documents.num_docs)

    def search(self, query: str | ParsedQuery, k: int, subsets: Sequence[np.ndarray] | None = None) -> Ranked:
        """Rank the `k` best chunks that share words or reference keys with a query; equal scores in order of place.

        `subsets` has for each shard the rising positions to search among; None searches all.
        """
        places = None if subsets is None else _encode_positions(subsets)
        compiled = _build_query(query)
        if places is not None and len(places) <= FEW_PLACES:
            compiled = _match_all([compiled, _match_places(places)])
        n_all = max(self._chunks.num_docs, 1)
        filtered = places if places is not None and len(places) > FEW_PLACES else None
        limit = min(2 * k if filtered is None else 2 * k * n_all // len(filtered), n_all)
        while True:
            numbers, scores = self._search_best(compiled, limit)
            seen = (numbers >> POSITION_BITS < self._n_shards) & ~_mask_members(numbers, self._removed)
            if filtered is not None:
                seen &= _mask_members(numbers, filtered)
            if seen.sum() >= k or len(numbers) < limit or limit == n_all:
                break
            limit = min(4 * limit, n_all)
        order = np.lexsort((numbers[seen], -scores[seen]))[:k]
        return [(*_decode_place(int(numbers[seen][i])), float(scores[seen][i])) for i in order]

    def document_scores(
        self, query: str | ParsedQuery, places: Sequence[tuple[int, int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return, of each place's document, its BM25 score (0 where it shares no word) and its number of chunks."""
        numbers = np.array([_encode_place(*place) for place in places], dtype=np.int64)
        hits = self._search_hits(self._chunks, _match_places(np.unique(numbers)), max(len(places), 1))
        addresses = [address for _, address in hits]
        with _report_damage():
            hit_places, firsts, counts = (
                self._chunks.fast_field_values(name, addresses) for name in ("place", "document", "n_chunks")
            )
        facts = dict(zip(hit_places, zip(firsts, counts, strict=True), strict=True))
        documents, n_chunks = np.array([facts[number] for number in numbers.tolist()], dtype=np.int64).reshape(-1, 2).T
        compiled = _match_all([_build_query(query), _match_places(np.unique(documents))])
        hit_documents, hit_scores = self._search_best(compiled, max(len(documents), 1), self._documents)
        scores = dict(zip(hit_documents.tolist(), hit_scores.tolist(), strict=True))
        return np.array([scores.get(number, 0.0) for number in documents.tolist()], dtype=np.float32), n_chunks

    def documents_having(self, alternatives: Iterable[Collection[str]], most: int) -> list[tuple[int, int]] | None:
        """Return the place of the first chunk of each document that has all `lexical_words` of at least one set.

        The places, in order, include those of removed documents and of later commits; None if more than `most` have it.
        """
        query = _match_any([_match_all([_match_term("text", term) for term in terms]) for terms in alternatives])
        numbers, _ = self._search_best(query, most + 1, self._documents)
        return None if len(numbers) > most else sorted(_decode_place(number) for number in numbers.tolist())

    def having(self, clauses: Sequence[Clause]) -> Occurrences:
        """Return all documents and chunks of this commit that meet one of some clauses; without any, all there are."""
        query = _match_any([_match_clause(clause) for clause in clauses]) if clauses else tantivy.Query.all_query()
        documents, passages = (self._all_hits(searcher, query) for searcher in (self._documents, self._chunks))
        return Occurrences(list(documents), passages)

    def _all_hits(self, searcher: tantivy.Searcher, query: tantivy.Query) -> dict[int, int]:
        """Return the places of all entries of this commit that match a query, with those of their documents."""
        addresses = [address for _, address in self._search_hits(searcher, query, max(searcher.num_docs, 1))]
        with _report_damage():
            places, documents = (
                np.array(searcher.fast_field_values(name, addresses), dtype=np.int64) for name in ("place", "document")
            )
        present = (places >> POSITION_BITS < self._n_shards) & ~_mask_members(places, self._removed)
        return dict(zip(places[present].tolist(), documents[present].tolist(), strict=True))

    def rarity(self, word: str) -> float:
        """Return the BM25 inverse document frequency of a word, counted in chunks; 0 for a stop word."""
        terms = lexical_words(word)
        if not terms:
            return 0.0
        n_chunks = self._chunks.num_docs
        with _report_damage():
            n = min(self._chunks.doc_freq("text", term) for term in terms)
        return math.log1p((n_chunks - n + 0.5) / (n + 0.5))

    def share_citing(self, name: str) -> float:
        """Return the share of documents, in [0, 1], that cite a key of `reference_keys`."""
        with _report_damage():
            return float(self._documents.doc_freq("cited", name) / max(self.n_documents, 1))

    def _search_best(
        self, query: tantivy.Query, limit: int, searcher: tantivy.Searcher | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return places, encoded as integers, and scores of the best entries, best first."""
        searcher = searcher or self._chunks
        hits = self._search_hits(searcher, query, limit)
        with _report_damage():
            places = searcher.fast_field_values("place", [address for _, address in hits])
        return np.array(places, dtype=np.int64), np.array([score for score, _ in hits], dtype=np.float32)

    def _search_hits(self, searcher: tantivy.Searcher, query: tantivy.Query, limit: int) -> list[Any]:
        with _report_damage():
            return list(searcher.search(query, limit, count=False).hits)


@contextmanager
def _report_damage() -> Iterator[None]:
    """Turn whatever Tantivy raises for a damaged file into a ValueError; its panics are BaseExceptions."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException" and not isinstance(error, ValueError):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:SHOWN_CHARS]
        raise ValueError(f"damaged index of words, {LEXICAL_FOLDER} ({reason}): {MAKE_COMMAND}") from None


def lexical_words(text: str) -> list[str]:
    """Return the terms BM25 counts: lower case, without French stop words and elided articles, stemmed, no accents."""
    terms: list[str] = _analyzer().analyze(storable(text))
    return terms


def bounded_query(query: str | ParsedQuery) -> ParsedQuery:
    """Parse a question; ValueError if it is longer than `LONGEST_QUERY`."""
    if isinstance(query, str) and len(query) > LONGEST_QUERY:
        raise ValueError(f"the question is too long: {len(query)} characters (expected at most {LONGEST_QUERY})")
    return ParsedQuery.of(query)


def _build_query(query: str | ParsedQuery) -> tantivy.Query:
    """Match any word or reference key; a word counts as often as the query has it."""
    query = bounded_query(query)
    words, names = lexical_words(query.text), query.keys
    terms = Counter([*(("text", word) for word in words), *(("names", name) for name in names)])
    if len(terms) > MAX_TERMS:
        raise ValueError(f"a query of {len(terms)} different words (expected at most {MAX_TERMS})")
    return _match_any([_match_term(*term) if n == 1 else _boost(_match_term(*term), n) for term, n in terms.items()])


def _boost(query: tantivy.Query, times: int) -> tantivy.Query:
    return tantivy.Query.boost_query(query, float(times))


def _match_clause(clause: Clause) -> tantivy.Query:
    terms = [*(("text", word) for word in lexical_words(clause.words)), *(("names", name) for name in clause.names)]
    beginnings = [tantivy.Query.regex_query(_bm25_schema(), "text", _stems_of(prefix)) for prefix in clause.prefixes]
    queries = [*(_match_term(*term) for term in dict.fromkeys(terms)), *beginnings]
    return _match_all(queries) if queries else tantivy.Query.all_query()


def _stems_of(prefix: str) -> str:
    """Return a regular expression of the stems that words with a beginning may have: longer, cut, or with another end.

    "indemnisa*" has the stem "indemnis", "tribunau*" has "tribunal".
    """
    prefix, cut = prefix[:LONGEST_WORD], ""
    for letter in reversed(prefix[SHORTEST_STEM:]):
        cut = f"({letter}{cut})?"
    return f"{prefix}.*|{prefix[:SHORTEST_STEM]}{cut}.{{0,{OTHER_END}}}"


def _match_term(field: str, term: str) -> tantivy.Query:
    return tantivy.Query.term_query(_bm25_schema(), field, term, "freq")


def _match_any(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _match_places(places: np.ndarray) -> tantivy.Query:
    if len(places) <= FEW_TERMS:
        terms = [tantivy.Query.term_query(_bm25_schema(), "place", place, "basic") for place in places.tolist()]
        query = _match_any(terms)
    else:
        query = tantivy.Query.term_set_query(_bm25_schema(), "place", places.tolist())
    return tantivy.Query.const_score_query(query, 0.0)


def _match_all(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])


def _match_shards(first: int, end: int | None = None) -> tantivy.Query:
    last = None if end is None else _encode_place(end, 0) - 1
    return tantivy.Query.range_query(_bm25_schema(), "place", tantivy.FieldType.Unsigned, _encode_place(first, 0), last)


def _read_chunk_rows(document_key: int, connection: sqlite3.Connection) -> list[ChunkRow]:
    return connection.execute(
        "SELECT char_start, char_end, shard, position FROM chunks WHERE document_key = ? ORDER BY chunk_index",
        (document_key,),
    ).fetchall()


def _encode_place(shard: int, position: int) -> int:
    return (shard << POSITION_BITS) | position


def _decode_place(number: int) -> tuple[int, int]:
    return number >> POSITION_BITS, number & ((1 << POSITION_BITS) - 1)


def _encode_positions(positions: Sequence[np.ndarray]) -> np.ndarray:
    """Encode the rising positions of each shard as rising integers."""
    numbers = [rising.astype(np.int64) | _encode_place(shard, 0) for shard, rising in enumerate(positions)]
    return np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)


def _mask_members(numbers: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """Mark the numbers that are in `rising`, a sorted array, which `np.isin` would sort again."""
    if not len(rising):
        return np.zeros(len(numbers), dtype=bool)
    return np.asarray(rising[np.minimum(np.searchsorted(rising, numbers), len(rising) - 1)] == numbers)


def _open_bm25(folder: Path) -> tantivy.Index:
    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(_bm25_schema(), path=str(folder))
    index.register_tokenizer("french", _analyzer())
    return index


def _open_bm25_to_read(folder: Path) -> tantivy.Index:
    """Open the index in a folder that may be read-only, through links: Tantivy writes a lock file next to it."""
    if os.access(folder, os.W_OK):
        return _open_bm25(folder)
    with tempfile.TemporaryDirectory(prefix="lexical-", ignore_cleanup_errors=True) as links:
        for file in folder.iterdir():
            if file.suffix != ".lock":  # a writer's: it could not be opened
                (Path(links) / file.name).symlink_to(file.resolve())
        return _open_bm25(Path(links))  # its files stay mapped once the links are deleted


@cache
def _bm25_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="french", index_option="freq")
    builder.add_text_field("names", tokenizer_name="raw", index_option="freq")
    builder.add_text_field("cited", tokenizer_name="raw", index_option="basic")  # of whole documents
    builder.add_unsigned_field("place", indexed=True, fast=True)
    builder.add_unsigned_field("document", fast=True)
    builder.add_unsigned_field("n_chunks", fast=True)
    return builder.build()


@cache
def _analyzer() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for token_filter in (
        tantivy.Filter.remove_long(LONGEST_WORD),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stopword("french"),  # among them l, d, qu: what an apostrophe leaves
        tantivy.Filter.stemmer("french"),
        tantivy.Filter.ascii_fold(),  # after the stemmer, which knows accents
    ):
        builder = builder.filter(token_filter)
    return builder.build()
