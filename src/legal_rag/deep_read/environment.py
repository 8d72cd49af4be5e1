"""The environment of programs: functions by name, a few values, caches."""

import copy
import hashlib
import inspect
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin

from cachetools import LRUCache, cached
from cachetools.keys import hashkey

from legal_rag.agent.event_log import EventLog
from legal_rag.corpus.documents import Document
from legal_rag.corpus_index.lookups import QueryMapping
from legal_rag.deep_read.functions import MultiDocREPL, Searcher
from legal_rag.deep_read.grep import SECONDS, Grepped
from legal_rag.deep_read.map_reduce.run import WORKERS
from legal_rag.deep_read.models import SubModel
from legal_rag.extraction.entities import Entity

if TYPE_CHECKING:
    from legal_rag.corpus_index.index import CorpusIndex

T = TypeVar("T")

# What programs may call, and nothing else; prompts list them in this order.
FUNCTION_NAMES = tuple(
    """
    list_documents get_doc_meta get_doc_metas get_doc_summary get_all_summaries find_documents search_by_keyword
    search_by_keywords search_by_entity grep_corpus rank_documents search_passages get_topics documents_in_topic
    get_links documents_citing
    read_document read_document_chunk grep_document get_entities get_doc_toc get_doc_sections get_section_details
    read_doc_section
    llm_query llm_query_batched ask_about_document ask_across_documents on_demand_extract parallel_document_search
    """.split()
)
DESCRIBED_BY_RLMS = frozenset({"llm_query", "llm_query_batched"})
SAMPLES = 20  # summaries among the values
MAX_IDS = 10_000  # in a sandbox's list of all ids; programs over a larger corpus call `list_documents`
DOCUMENTS, SEARCHES, REPLIES = 50, 100, 200  # cached, least recently used dropped
MAX_IDS_KEPT, MAX_MATCHES_KEPT = 10_000, 5_000  # of one search; larger results are not cached


class MultiDocEnv:
    """The names that a program finds: `env["grep_corpus"]`, or all of them by `dict(env)`.

    A sandbox is given `functions`, and `values`, which JSON can hold; `doc_ids` is not among them in a corpus of more
    than `MAX_IDS` documents. `extraction_index` maps each document to its entities; a sandbox makes its own.
    `descriptions` tell a model about each function, except for those that rlms describes.
    """

    def __init__(self, repl: MultiDocREPL) -> None:
        self.repl = repl
        self.functions: dict[str, Callable[..., Any]] = {name: getattr(repl, name) for name in FUNCTION_NAMES}
        corpus = repl.corpus
        self.values: dict[str, Any] = {
            "corpus_path": corpus.corpus_path,
            "total_docs": corpus.total_docs,
            "total_chars": corpus.total_chars,
            "doc_summaries": dict(corpus.summaries(limit=SAMPLES)),
        }
        if corpus.total_docs <= MAX_IDS:
            self.values["doc_ids"] = corpus.document_ids()

    @property
    def descriptions(self) -> dict[str, str]:
        """Signature and docstring of each function, by name."""
        return {name: description_of(one) for name, one in self.functions.items() if name not in DESCRIBED_BY_RLMS}

    def __getitem__(self, name: str) -> Any:
        if name == "doc_ids" and name not in self.values:
            return self.repl.corpus.document_ids()
        if name == "extraction_index":
            corpus = self.repl.corpus
            return QueryMapping("document", self._entities, lambda: iter(corpus.documents), lambda: corpus.total_docs)
        return self.functions[name] if name in self.functions else self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"<MultiDocEnv: {', '.join(self)}>"

    def keys(self) -> Sequence[str]:
        """Return all names."""
        return list(dict.fromkeys([*self.values, "doc_ids", "extraction_index", *self.functions]))

    def _entities(self, doc_id: str) -> list[Entity] | None:
        return self.repl.get_entities(doc_id) if doc_id in self.repl.library else None


def create_multi_doc_env(
    corpus_index: "CorpusIndex",
    sub_llm: SubModel | None = None,
    retriever: Searcher | None = None,
    *,
    log: EventLog | None = None,
    workers: int = WORKERS,
    grep_seconds: float | None = SECONDS,
) -> MultiDocEnv:
    """Return the environment of a program over a corpus, whose results are cached; see `MultiDocREPL`.

    Raises:
        ValueError: If there are no workers.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    repl = CachedCorpusREPL(corpus_index, sub_llm, retriever, log=log, workers=workers, grep_seconds=grep_seconds)
    return MultiDocEnv(repl)


def description_of(function: Callable[..., Any]) -> str:
    """Return a function's arguments, what it returns, and its docstring, in one line."""
    signature = inspect.signature(function)
    doc = " ".join((inspect.getdoc(function) or "").split())
    arguments = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    bare = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return f"{bare} -> {_type_text(signature.return_annotation)} : {doc}"


def _type_text(annotation: Any) -> str:
    """Write a type as Python's own: a subclass of dict is a dict."""
    if parts := get_args(annotation):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_type_text, parts))}]"
    if isinstance(annotation, type):
        return "dict" if issubclass(annotation, dict) else annotation.__name__
    return str(annotation).removeprefix("typing.")


class CacheInfo(NamedTuple):
    """Statistics of a cache."""

    hits: int
    misses: int
    size: int
    maxsize: int


class _CachedModel:
    """Sub-model that is asked the same prompt once."""

    def __init__(self, model: SubModel) -> None:
        self.query = _cached(model.query, LRUCache(REPLIES), key=_digest)


class CachedCorpusREPL(MultiDocREPL):
    """The functions, with three caches: `doc_content_cache`, `search_result_cache`, `llm_response_cache`."""

    def __init__(
        self, corpus_index: Any, sub_llm: SubModel | None = None, retriever: Searcher | None = None, **settings: Any
    ) -> None:
        """See `MultiDocREPL`."""
        model = None if sub_llm is None else _CachedModel(sub_llm)
        self.doc_content_cache = _cached(super()._load, LRUCache(DOCUMENTS))
        self.search_result_cache = _cached(_found, LRUCache(SEARCHES, _cache_size), key=lambda key, find: _digest(key))
        self.llm_response_cache = model.query if model else _cached(str, LRUCache(REPLIES))
        super().__init__(corpus_index, model, retriever, **settings)

    @property
    def cache_info(self) -> dict[str, CacheInfo]:
        """Statistics of each cache."""
        caches = {
            "documents": self.doc_content_cache,
            "searches": self.search_result_cache,
            "replies": self.llm_response_cache,
        }
        infos = {name: one.cache_info() for name, one in caches.items()}
        return {name: CacheInfo(one.hits, one.misses, one.currsize, one.maxsize) for name, one in infos.items()}

    def reload(self) -> None:
        """See `MultiDocREPL.reload`; the model's replies stay cached."""
        super().reload()
        self.doc_content_cache.cache_clear()
        self.search_result_cache.cache_clear()

    def _load(self, doc_id: str) -> Document:
        return self.doc_content_cache(doc_id)

    def _once(self, key: Hashable, find: Callable[[], T]) -> T:
        return copy.deepcopy(self.search_result_cache(key, find))


def _cached(function: Callable[..., Any], cache: Any, key: Callable[..., Hashable] = hashkey) -> Any:
    """Cache what a function returns; threads may share it, and none waits for another's call."""
    return cached(cache, key, threading.Lock(), info=True)(function)


def _digest(value: Any) -> bytes:
    """Return a hash of plain values: a key may name all documents of a corpus, a prompt hold a million characters."""
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).digest()


def _found(key: Hashable, find: Callable[[], T]) -> T:
    return find()


def _cache_size(found: Any) -> int:
    """Return the share of the cache that a result takes: one, or more than there is if it is not worth caching.

    A search that ran out of time may come further the next time.
    """
    if isinstance(found, Grepped):
        is_kept = not found.out_of_time and sum(map(len, found.values())) <= MAX_MATCHES_KEPT
    else:
        is_kept = len(found) <= MAX_IDS_KEPT
    return 1 if is_kept else SEARCHES + 1
