"""The document or passage that is meant: by its id, or by what a model sends in its place.

In: an id, an id with quotes around it, a whole marker, a title, a decision's number. Out: the document; nothing is
guessed, and what names none is answered with a French sentence that gives the nearest id.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from legal_rag.chunking import chunk_id, parse_chunk_id
from legal_rag.citation_markers import Reference, take_out_markers
from legal_rag.corpus import Document
from legal_rag.filters import Filters
from legal_rag.folding import DASHES, fold_text
from legal_rag.library import StoredChunk
from legal_rag.retriever import Corpus
from legal_rag.rows import document_of, nearest_id
from legal_rag.tool_inputs import MOST_SENT, SHOWN_CHARS, shown, text_of

AROUND = " \t\r\n\u00a0\u202f«»“”„\"'’`*<>()[]{},;:."  # signs that models put around an id
PLAIN_DASHES = str.maketrans(dict.fromkeys(DASHES, "-"))
SHORTEST_WORD = 6  # characters of an id that is recognised among other words
MOST_WORDS = 40
MOST_PLACES = 300  # passages looked at of the documents that go by a name
MOST_PASSAGES = 2**16  # of one document
MOST_SHOWN = 5  # ids of documents that share a name


def find_document(identifier: str, dataset: Any) -> Document:
    """Return the document that a chunk id or a document id names.

    Raises:
        LookupError: If there is none; the message is a French sentence with the nearest valid form.
    """
    identifier = identifier.strip()
    try:
        doc_id, _ = parse_chunk_id(identifier)
    except ValueError:
        candidates = [identifier]
    else:
        candidates = [doc_id, identifier]
    for candidate in candidates:
        if hasattr(dataset, "__contains__") and hasattr(dataset, "document") and not _holds(dataset, candidate):
            continue  # a look-up that fails searches for the nearest id
        try:
            return document_of(dataset, candidate)
        except LookupError:
            continue
    nearest = nearest_id(dataset, candidates[0][:SHOWN_CHARS])
    hint = f" Identifiant le plus proche : « {chunk_id(nearest, 0)} »." if nearest else ""
    expected = " (forme attendue : « identifiant-numéro », par exemple « JURITEXT000007022836-0 »)"
    raise LookupError(
        f"Aucune décision pour « {shown(identifier[:SHOWN_CHARS])} »{'' if len(candidates) > 1 else expected}.{hint}"
    )


def find_chunks(identifier: str, context_chunks: int, corpus: Corpus) -> list[StoredChunk]:
    """Return the chunk that an id names (of a document, its first), with its neighbours on either side, in order.

    Raises:
        LookupError: If there is none; the message is a French sentence.
    """
    identifier = identifier.strip()
    document = find_document(identifier, corpus)
    _, _, number = identifier.rpartition("-")
    index = int(number) if number.isascii() and number.isdecimal() and document.id != identifier else 0
    index = min(index, 2**31)  # SQLite's own numbers end somewhere; no decision has as many passages
    around = min(max(context_chunks, 0), 2**31)
    chunks = corpus.chunks_of(document.id, max(index - around, 0), index + around)
    if not any(chunk.chunk_index == index for chunk in chunks):
        last = chunk_id(document.id, len(corpus.chunks_of(document.id)) - 1)
        raise LookupError(f"Pas de passage « {identifier} » : cette décision va de « {document.id}-0 » à « {last} ».")
    # In an index of the old form every passage stands for the whole document: it is shown once.
    return list({(chunk.char_start, chunk.char_end): chunk for chunk in chunks}.values())


def meant_id(sent: object, corpus: Corpus, titles: Mapping[str, str]) -> str:
    """Return the document id or chunk id that a model means; where none is certain, what it sent.

    Args:
        sent: What it sent.
        corpus: Whose document it is.
        titles: Titles of the documents that the model has seen, by their ids.

    Raises:
        LookupError: If several documents go by the name; the French sentence gives their ids.
    """
    text = text_of(sent)
    if not text or _is_id(text, corpus):
        return text
    short = text[:MOST_SENT]
    for candidate in _written_ids(short):
        if _is_id(candidate, corpus):
            return candidate
    return (
        _in_marker(short, corpus)
        or _among_words(short, corpus)
        or _titled(short, titles)
        or _named(short, corpus)
        or text.strip(AROUND)
        or text
    )


def _written_ids(text: str) -> Iterator[str]:
    bare = text.strip(AROUND)
    yield bare
    yield bare.translate(PLAIN_DASHES)
    yield bare.translate(PLAIN_DASHES).upper()


def _is_id(identifier: str, corpus: Corpus) -> bool:
    return _document_id(identifier, corpus) is not None


def _document_id(identifier: str, corpus: Corpus) -> str | None:
    """Return the id of the document that a chunk id or document id names exactly, or None."""
    identifier = identifier.strip()
    try:
        doc_id, _ = parse_chunk_id(identifier)
    except ValueError:
        doc_id = identifier
    return next((one for one in dict.fromkeys((doc_id, identifier)) if _holds(corpus, one)), None)


def _holds(corpus: Corpus, doc_id: str) -> bool:
    try:
        doc_id.encode()
        return doc_id in corpus if hasattr(corpus, "__contains__") else bool(corpus.document(doc_id))
    except (LookupError, UnicodeEncodeError):  # halves of characters are in no store
        return False


def _in_marker(text: str, corpus: Corpus) -> str | None:
    """Return the passage that a marker points to, or its document where it gives no place."""
    marked = take_out_markers(
        text if "[" in text else f"[Source: {text}]", lambda name: _document_id(name.strip(AROUND), corpus)
    )
    found = [one for marker in marked.markers for one in marker.references]
    return _passage(found[0], corpus) if len({one.doc_id for one in found}) == 1 else None


def _passage(reference: Reference, corpus: Corpus) -> str:
    """Return the id of the passage that holds a marker's place; it is looked for by halves, as long texts have many."""
    if reference.place is None:
        return reference.doc_id

    def end_of(number: int) -> int:
        chunks = corpus.chunks_of(reference.doc_id, number, number)
        return chunks[0].char_end if chunks else sys.maxsize

    number = bisect_right(range(MOST_PASSAGES), reference.place[0], key=end_of)
    return chunk_id(reference.doc_id, number) if end_of(number) < sys.maxsize else reference.doc_id


def _among_words(text: str, corpus: Corpus) -> str | None:
    """Return the only id among the words of a text: 'la décision JURITEXT000007022836-0'."""
    words = dict.fromkeys(word.strip(AROUND) for word in re.split(r"[\s=]+", text.translate(PLAIN_DASHES))[:MOST_WORDS])
    found = {doc_id: word for word in words if len(word) >= SHORTEST_WORD and (doc_id := _document_id(word, corpus))}
    return next(iter(found.values())) if len(found) == 1 else None


def _titled(text: str, titles: Mapping[str, str]) -> str | None:
    wanted = fold_text(text.strip(AROUND))
    found = [doc_id for doc_id, title in titles.items() if wanted and fold_text(title.strip(AROUND)) == wanted]
    return found[0] if len(found) == 1 else None


def _named(text: str, corpus: Corpus) -> str | None:
    """Return the document that goes by a decision's number or an article's in a text."""
    without_index = text.strip(AROUND).rpartition("-")[0] if text.rstrip(AROUND).endswith("-0") else text
    found = _holders(without_index, corpus)
    if len(found) > 1:
        ids = ", ".join(f"« {one} »" for one in found[:MOST_SHOWN])
        more = "" if len(found) <= MOST_SHOWN else ", etc."
        raise LookupError(f"Plusieurs documents répondent à « {shown(text[:SHOWN_CHARS])} » : {ids}{more}.")
    return found[0] if found else None


def _holders(text: str, corpus: Corpus) -> list[str]:
    """Return the ids of the documents whose own name a text gives; none of a name that far too many go by."""
    places = corpus.positions_named(text).own
    if places is None:
        try:
            places = corpus.positions(Filters(number=text))
        except ValueError:  # a corpus that is not indexed by numbers
            return []
    if sum(map(len, places)) > MOST_PLACES:
        return []
    some = [(shard, int(position)) for shard, positions in enumerate(places) for position in positions]
    return list(dict.fromkeys(chunk.doc_id for chunk in corpus.chunks_at(some)))
