"""The functions and values that programs find in their environment."""

import copy
import inspect
import threading
from collections.abc import Callable, Hashable, Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args, get_origin, overload

from cachetools import LRUCache

from legal_rag.agent.event_log import EventLog
from legal_rag.corpus.documents import Document
from legal_rag.corpus.folding import fold_text
from legal_rag.deep_read.functions.base import Searcher
from legal_rag.deep_read.functions.corpus import CorpusFunctions
from legal_rag.deep_read.functions.documents import DocumentFunctions
from legal_rag.deep_read.functions.models import ModelFunctions
from legal_rag.deep_read.grep import SECONDS, Grepped, GrepQuery
from legal_rag.deep_read.map_reduce.run import WORKERS
from legal_rag.deep_read.models import SubModel
from legal_rag.library.filters import Filters
from legal_rag.retriever.retriever import SearchHit

if TYPE_CHECKING:
    from legal_rag.corpus_index.index import CorpusIndex


RLMS_OWN = frozenset(
    {"llm_query", "llm_query_batched"}
)  # which rlms itself tells its models of, and lets none describe


def describe_functions(functions: Mapping[str, Callable[..., Any]]) -> str:
    """Return one line about each function, in their order."""
    return "\n".join(f"- {name}{description_of(one)}" for name, one in functions.items())


def description_of(function: Callable[..., Any]) -> str:
    """Return a function's arguments, what it gives, and its docstring, in one line."""
    signature = inspect.signature(function)
    said = " ".join((inspect.getdoc(function) or "").split())
    arguments = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    bare = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return f"{bare} -> {_type_text(signature.return_annotation)} : {said}"


def _type_text(annotation: Any) -> str:
    """Write a type as Python's own: what is a dictionary, under whatever name, is a dict."""
    if parts := get_args(annotation):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_type_text, parts))}]"
    if isinstance(annotation, type):
        return "dict" if issubclass(annotation, dict) else annotation.__name__
    return str(annotation).removeprefix("typing.")


SAMPLES = 20  # summaries that an environment shows beforehand
MOST_IDS = 10_000  # in a list of all ids; of a larger corpus they are read as they are asked for
CORPUS_NAMES = (
    "list_documents",
    "get_doc_meta",
    "get_doc_metas",
    "get_doc_summary",
    "get_all_summaries",
    "find_documents",
    "search_by_keyword",
    "search_by_keywords",
    "search_by_entity",
    "grep_corpus",
    "rank_documents",
    "search_passages",
    "get_topics",
    "documents_in_topic",
    "get_links",
    "documents_citing",
)
DOCUMENT_NAMES = (
    "read_document",
    "read_document_chunk",
    "grep_document",
    "get_entities",
    "get_doc_toc",
    "get_doc_sections",
    "get_section_details",
    "read_doc_section",
)
MODEL_NAMES = (
    "llm_query",
    "llm_query_batched",
    "ask_about_document",
    "ask_across_documents",
    "on_demand_extract",
    "parallel_document_search",
)
FUNCTION_NAMES = (*CORPUS_NAMES, *DOCUMENT_NAMES, *MODEL_NAMES)


class MultiDocREPL(CorpusFunctions, DocumentFunctions, ModelFunctions):
    """All functions over one corpus; see `FunctionBase` for what it is made of.

    They are called one at a time; those that ask the model call it from several threads.
    """


class LazyIds(Sequence[str]):
    """The ids of all documents, in the order of the corpus, read from the index as they are asked for."""

    def __init__(self, corpus_index: "CorpusIndex") -> None:
        self._corpus = corpus_index

    def __len__(self) -> int:
        return self._corpus.total_docs

    def __iter__(self) -> Iterator[str]:
        return iter(self._corpus.documents)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._corpus.document_ids(1, places)[0]
        if not places:
            return []
        first, last = min(places), max(places)
        ids = self._corpus.document_ids(last - first + 1, first)
        return [ids[one - first] for one in places]


class MultiDocEnv:
    """The names that a program finds: `env["grep_corpus"]`, or all of them by `dict(env)`.

    What a sandbox needs is told apart: `functions` by name; `values`, those that JSON holds, without `doc_ids` where
    they are more than `MOST_IDS`; `descriptions`, which tell a model about each function, those apart that rlms itself
    describes.
    """

    def __init__(self, repl: MultiDocREPL) -> None:
        self.repl = repl
        self.functions: dict[str, Callable[..., Any]] = {name: getattr(repl, name) for name in FUNCTION_NAMES}
        values = _values_of(repl.corpus)
        self.values = {name: value for name, value in values.items() if not isinstance(value, LazyIds)}
        self._names = {**values, **self.functions}

    @property
    def descriptions(self) -> dict[str, str]:
        """What a model is told about each function, by name."""
        return {name: description_of(one) for name, one in self.functions.items() if name not in RLMS_OWN}

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<MultiDocEnv: {', '.join(self._names)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names)

    def keys(self) -> KeysView[str]:
        """Return all names."""
        return self._names.keys()

    def namespace(self) -> dict[str, Any]:
        """Return all names with what they stand for, as `dict(env)` does."""
        return dict(self._names)


def create_multi_doc_env(
    corpus_index: "CorpusIndex",
    sub_llm: SubModel | None = None,
    retriever: Searcher | None = None,
    *,
    log: EventLog | None = None,
    workers: int = WORKERS,
    grep_seconds: float | None = SECONDS,
) -> MultiDocEnv:
    """Return the environment of a program over a corpus: its values, and the functions, whose results are cached.

    Args:
        corpus_index: Of the Library that is read.
        sub_llm: See `FunctionBase`, as for the others.
        retriever: Likewise.
        log: Likewise.
        workers: Likewise.
        grep_seconds: Likewise.
    """

    repl = CachedCorpusREPL(corpus_index, sub_llm, retriever, log=log, workers=workers, grep_seconds=grep_seconds)
    return MultiDocEnv(repl)


def _values_of(corpus_index: "CorpusIndex") -> dict[str, Any]:
    few = corpus_index.total_docs <= MOST_IDS
    return {
        "corpus_path": corpus_index.corpus_path,
        "total_docs": corpus_index.total_docs,
        "total_chars": corpus_index.total_chars,
        "doc_ids": corpus_index.document_ids() if few else LazyIds(corpus_index),
        "doc_summaries": dict(corpus_index.summaries(limit=SAMPLES)),
    }


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
