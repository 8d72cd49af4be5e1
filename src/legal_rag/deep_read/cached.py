"""The functions with what they found before: documents, searches, replies of the model.

In: calls. Out: the same as without, sooner. What a caller does to a result changes nothing for the next one.
"""

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from cachetools import LRUCache

from legal_rag.corpus import Document
from legal_rag.deep_read.function_base import Searcher
from legal_rag.deep_read.functions import MultiDocREPL
from legal_rag.deep_read.grep import Grepped, GrepQuery
from legal_rag.deep_read.models import SubModel
from legal_rag.filters import Filters
from legal_rag.folding import fold_text
from legal_rag.retriever import SearchHit

DOCUMENTS, SEARCHES, REPLIES = 50, 100, 200  # kept, the last ones used
MOST_IDS_KEPT, MOST_MATCHES_KEPT = 50_000, 5_000  # of one search; a larger result is found anew

Value = TypeVar("Value")


class CacheInfo(NamedTuple):
    """How a cache fared."""

    hits: int
    misses: int
    size: int
    maxsize: int


class Cache:
    """The last values used, by key; threads may share it."""

    def __init__(self, maxsize: int) -> None:
        self._values: LRUCache[Hashable, Any] = LRUCache(maxsize)
        self._lock = threading.Lock()
        self._hits = self._misses = 0

    def get(
        self, key: Hashable, make: Callable[[], Value], keeps: Callable[[Value], bool] = lambda value: True
    ) -> Value:
        """Return the value of a key, made where it is not there; what `make` raises is not kept.

        Args:
            key: Of the value.
            make: Makes it; it is not held up by others that are being made.
            keeps: Whether a value made is to be kept.
        """
        with self._lock:
            if key in self._values:
                self._hits += 1
                found: Value = self._values[key]
                return found
            self._misses += 1
        value = make()
        if keeps(value):
            with self._lock:
                self._values[key] = value
        return value

    def clear(self) -> None:
        """Forget all values, and the counts."""
        with self._lock:
            self._values.clear()
            self._hits = self._misses = 0

    @property
    def info(self) -> CacheInfo:
        """How often a value was there, how often not, how many are there, and may be."""
        with self._lock:
            return CacheInfo(self._hits, self._misses, len(self._values), int(self._values.maxsize))


class CachedModel:
    """A model that is asked the same once."""

    def __init__(self, model: SubModel, cache: Cache) -> None:
        self._model, self._cache = model, cache

    def query(self, prompt: str) -> str:
        """Return the reply to a prompt; see `SubModel.query`."""
        return self._cache.get(prompt, lambda: self._model.query(prompt))


class CachedCorpusREPL(MultiDocREPL):
    """The functions, with three caches: `doc_content_cache`, `search_result_cache`, `llm_response_cache`."""

    def __init__(
        self, corpus_index: Any, sub_llm: SubModel | None = None, retriever: Searcher | None = None, **settings: Any
    ) -> None:
        """See `FunctionBase`."""
        self.doc_content_cache = Cache(DOCUMENTS)
        self.search_result_cache = Cache(SEARCHES)
        self.llm_response_cache = Cache(REPLIES)
        model = None if sub_llm is None else CachedModel(sub_llm, self.llm_response_cache)
        super().__init__(corpus_index, model, retriever, **settings)

    @property
    def cache_info(self) -> dict[str, CacheInfo]:
        """How each cache fared."""
        caches = {
            "documents": self.doc_content_cache,
            "searches": self.search_result_cache,
            "replies": self.llm_response_cache,
        }
        return {name: cache.info for name, cache in caches.items()}

    def reload(self) -> None:
        """Go over to the Library's last commit, and forget what was found before; the model's replies stay."""
        super().reload()
        self.doc_content_cache.clear()
        self.search_result_cache.clear()

    def _load(self, doc_id: str) -> Document:
        return self.doc_content_cache.get(doc_id, lambda: super(CachedCorpusREPL, self)._load(doc_id))

    def _having_keyword(self, keyword: str) -> list[str]:
        return self._ids_found(
            ("keyword", fold_text(keyword).strip()), lambda: super(CachedCorpusREPL, self)._having_keyword(keyword)
        )

    def _having_entity(self, entity: str) -> list[str]:
        return self._ids_found(("entity", entity.strip()), lambda: super(CachedCorpusREPL, self)._having_entity(entity))

    def _found(self, filters: Filters) -> list[str]:
        return self._ids_found(("filters", filters), lambda: super(CachedCorpusREPL, self)._found(filters))

    def _citing(self, text: str) -> list[str]:
        return self._ids_found(("citing", text.strip()), lambda: super(CachedCorpusREPL, self)._citing(text))

    def _passages(self, query: str, k: int, filters: Filters) -> list[SearchHit]:
        return self._hits_found(
            ("passages", query, k, filters), lambda: super(CachedCorpusREPL, self)._passages(query, k, filters)
        )

    def _ranked(self, query: str, k: int) -> list[SearchHit]:
        return self._hits_found(("ranked", query, k), lambda: super(CachedCorpusREPL, self)._ranked(query, k))

    def _grepped(self, query: GrepQuery) -> Grepped:
        def find() -> Grepped:
            return super(CachedCorpusREPL, self)._grepped(query)

        return copy.deepcopy(self.search_result_cache.get(("grep", query), find, _is_kept))

    def _ids_found(self, key: Hashable, find: Callable[[], list[str]]) -> list[str]:
        found: tuple[str, ...] = self.search_result_cache.get(key, lambda: tuple(find()), _is_short)
        return list(found)

    def _hits_found(self, key: Hashable, find: Callable[[], list[SearchHit]]) -> list[SearchHit]:
        return list(self.search_result_cache.get(key, lambda: tuple(find())))


def _is_short(ids: tuple[str, ...]) -> bool:
    return len(ids) <= MOST_IDS_KEPT


def _is_kept(found: Grepped) -> bool:
    """Tell whether a search is worth keeping: one that ran out of time may come further the next time."""
    return not found.out_of_time and sum(map(len, found.values())) <= MOST_MATCHES_KEPT
