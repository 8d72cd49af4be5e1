"""The retriever: a French question in, ranked chunks out.

In: an open Library (or anything with the same shards and texts) and its encoder. Out: `SearchHit`s, best first.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from legal_rag.chunking import chunk_id
from legal_rag.corpus import Document
from legal_rag.encoder import Encoder, EncoderConfig, EncoderIdentity, build_encoder
from legal_rag.foreign_index import ForeignIndex, is_foreign
from legal_rag.library import Library, StoredChunk
from legal_rag.library_encoder import load_encoder
from legal_rag.plaid import PlaidShards, SearchSettings, Shards, search_shards

__all__ = ["Corpus", "Retriever", "SearchHit", "build_encoder", "build_retriever", "open_corpus"]


class SearchHit(NamedTuple):
    """A chunk that answers a query, with all that a list of results shows."""

    rank: int  # from 1
    chunk_id: str
    doc_id: str
    score: float  # MaxSim: at most the number of the query's tokens
    title: str
    decision_date: str
    char_start: int
    char_end: int
    text: str  # content[char_start:char_end]


class Corpus(Protocol):
    """What searching asks of whoever holds the texts: a `Library`, or an index that came from elsewhere."""

    path: Path
    manifest: dict[str, Any]
    read_only: bool  # whether nothing may be written into its folder

    @property
    def shard_folders(self) -> list[Path]:
        """Return the shards' folders, in their order."""

    def document(self, doc_id: str) -> Document:
        """Return a document by its id, or raise LookupError."""

    def chunks_at(self, places: Sequence[tuple[int, int]]) -> list[StoredChunk]:
        """Return the chunks at (shard, position) places, in that order."""

    def chunks_of(self, doc_id: str, first: int = 0, last: int | None = None) -> list[StoredChunk]:
        """Return a document's chunks numbered `first` to `last`, in order."""

    def positions_of(self, doc_ids: Iterable[str]) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of the chunks of some documents."""

    def removed_positions(self) -> list[np.ndarray]:
        """Return, for each shard, the rising positions of chunks that are no longer part of the corpus."""

    def nearest_id(self, doc_id: str) -> str | None:
        """Return the document id most like the given one, or None."""

    def check_unchanged(self) -> None:
        """Raise ValueError if what was opened is no longer what lies there."""


class Retriever:
    """Late-interaction search over one corpus."""

    def __init__(
        self,
        corpus: Corpus,
        encoder: Encoder,
        settings: SearchSettings | None = None,
        device: str | None = None,
        shards: Shards | None = None,
    ) -> None:
        """Open the shards of a corpus.

        Args:
            corpus: Whose chunks are searched.
            encoder: The one its index was made with.
            settings: How thorough searches are.
            device: 'cpu' or 'cuda'; None takes the GPU where there is one.
            shards: The corpus's, if they are open already, here or elsewhere.
        """
        self.corpus, self.encoder = corpus, encoder
        self._settings, self._device = settings or SearchSettings(), device
        if corpus.read_only:
            device = "cpu"  # on a GPU, fast-plaid would write into the index's folder
        self._shards: Shards = shards or PlaidShards(
            corpus.shard_folders, self._settings, device, corpus.removed_positions()
        )
        corpus.check_unchanged()

    def reload(self) -> "Retriever":
        """Return a retriever for the last commit of the same Library; this one goes on with the commit it opened."""
        return Retriever(self._last_commit(), self.encoder, self._settings, self._device)

    def _last_commit(self) -> Corpus:
        return self.corpus.reload() if isinstance(self.corpus, Library) else self.corpus

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        by_document: bool = False,
        doc_ids: Iterable[str] | None = None,
    ) -> list[SearchHit]:
        """Rank the chunks that answer a question.

        Args:
            query: The question.
            k: How many hits at most.
            by_document: Count documents: each appears once, by its best chunk.
            doc_ids: Search these documents only.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads, or k is below 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        return self.search_vectors(self.encode(query), k, by_document=by_document, doc_ids=doc_ids)

    def encode(self, query: str) -> np.ndarray:
        """Encode a question: shape (n_query_tokens, dim), unit rows.

        Raises:
            ValueError: If the question is empty or longer than the encoder reads.
        """
        (vectors,) = self.encoder.encode_queries([query])
        return vectors

    def search_vectors(
        self, vectors: np.ndarray, k: int, *, by_document: bool = False, doc_ids: Iterable[str] | None = None
    ) -> list[SearchHit]:
        """Rank the chunks for an encoded question; see `search`."""
        subsets = None if doc_ids is None else self.corpus.positions_of(doc_ids)
        if not by_document:
            return self._hits(self._ranked(vectors, k, subsets))
        wanted = k * 4
        while True:
            ranked = self._ranked(vectors, wanted, subsets)
            hits = _best_of_each_document(self._hits(ranked))
            if len(hits) >= k or len(ranked) < wanted:
                return [hit._replace(rank=rank) for rank, hit in enumerate(hits[:k], start=1)]
            wanted *= 4

    def _ranked(
        self, vectors: np.ndarray, k: int, subsets: Sequence[np.ndarray] | None
    ) -> list[tuple[int, int, float]]:
        return search_shards(self._shards, [vectors], k, self._settings, subsets)[0]

    def _hits(self, ranked: Sequence[tuple[int, int, float]]) -> list[SearchHit]:
        chunks = self.corpus.chunks_at([(shard, position) for shard, position, _ in ranked])
        return [
            SearchHit(
                rank=rank,
                chunk_id=chunk_id(chunk.doc_id, chunk.chunk_index),
                doc_id=chunk.doc_id,
                score=score,
                title=chunk.title,
                decision_date=chunk.decision_date,
                char_start=chunk.char_start,
                char_end=chunk.char_end,
                text=chunk.text,
            )
            for rank, ((_, _, score), chunk) in enumerate(zip(ranked, chunks, strict=True), start=1)
        ]


def open_corpus(
    path: str | Path,
    dataset: Any = None,
    *,
    encoder: Encoder | EncoderIdentity | EncoderConfig | str | Path | None = None,
) -> Corpus:
    """Open the index in a folder: a Library, or one of the old form, a `fast_plaid_index` and its dataset.

    Args:
        path: The Library's folder, or the folder that holds `fast_plaid_index`.
        dataset: For the old form: see `ForeignIndex`. A Library holds its own texts.
        encoder: For the old form, which does not say: what the index was made with.

    Raises:
        FileNotFoundError: If there is no complete index, or the dataset cannot be loaded.
        ValueError: If the index is damaged or does not fit dataset or encoder, or no encoder is given for the old form.
    """
    folder = Path(path).expanduser()
    if not is_foreign(folder):
        return Library(folder)
    if encoder is None:
        raise ValueError(f"{folder} does not say with which encoder it was made (expected one to be given)")
    return ForeignIndex(folder, dataset, encoder=encoder)


def build_retriever(
    corpus: Corpus | str | Path,
    encoder: Encoder | None = None,
    *,
    settings: SearchSettings | None = None,
    device: str | None = None,
    trust_remote_code: bool = False,
) -> Retriever:
    """Make a corpus searchable with the encoder that its index was made with.

    Args:
        corpus: What `open_corpus` opened, or the folder to open so.
        encoder: One already loaded; None loads the one that the manifest names.
        settings: How thorough searches are.
        device: 'cpu' or 'cuda'; None takes the GPU where there is one.
        trust_remote_code: Run code that comes with the encoder; an index cannot allow it by itself.

    Raises:
        FileNotFoundError: If there is no complete Library, or its encoder is not to be had.
        ValueError: If the encoder is not the one that the index was made with.
    """
    opened, encoder = open_with_encoder(corpus, encoder, trust_remote_code=trust_remote_code)
    return Retriever(opened, encoder, settings, device)


def open_with_encoder(
    corpus: Corpus | str | Path, encoder: Encoder | None = None, *, trust_remote_code: bool = False
) -> tuple[Corpus, Encoder]:
    """Open a corpus and load the encoder that its index was made with; see `build_retriever`."""
    opened = open_corpus(corpus, encoder=encoder) if isinstance(corpus, str | Path) else corpus
    return opened, load_encoder(opened.manifest, opened.path, encoder, trust_remote_code=trust_remote_code)


def _best_of_each_document(hits: Sequence[SearchHit]) -> list[SearchHit]:
    best: dict[str, SearchHit] = {}
    for hit in hits:
        best.setdefault(hit.doc_id, hit)
    return list(best.values())
