"""The functions of a deep read: a corpus searched, read and asked, from Python or by programs in the sandbox.

In: a corpus index, a sub-model. Out: an object whose methods are the functions, or an environment of names for a
program. Arguments and results are plain values, so that they go through the sandbox's channel; offsets are characters
of `Document.content`.
"""

from collections.abc import Callable, Iterator, KeysView, Sequence
from typing import TYPE_CHECKING, Any, overload

from legal_rag.deep_read.corpus_functions import CorpusFunctions
from legal_rag.deep_read.document_functions import DocumentFunctions
from legal_rag.deep_read.function_base import Searcher
from legal_rag.deep_read.function_texts import RLMS_OWN, description_of
from legal_rag.deep_read.grep import SECONDS
from legal_rag.deep_read.model_functions import ModelFunctions
from legal_rag.deep_read.models import SubModel
from legal_rag.deep_read.plan.run import WORKERS
from legal_rag.run_log import RunLog

if TYPE_CHECKING:
    from legal_rag.corpus_index import CorpusIndex

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
    log: RunLog | None = None,
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
    from legal_rag.deep_read.cached import CachedCorpusREPL

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
