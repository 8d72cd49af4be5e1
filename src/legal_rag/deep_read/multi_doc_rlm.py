"""`MultiDocRLM`: deep reading over a folder or a Library from Python."""

import code
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.agent.prediction import Prediction
from legal_rag.corpus_index.building import CorpusIndexer
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.deep_read.functions import create_multi_doc_env
from legal_rag.deep_read.reading import DEFAULT_SETTINGS, deep_read
from legal_rag.deep_read.settings import DEEP_READ_BUDGET, DeepReadSettings
from legal_rag.indexer.build import IncrementalIndexer
from legal_rag.library.library import Library
from legal_rag.library.manifest import MANIFEST
from legal_rag.llm import UNLIMITED, Budget, ChatModel, UsageTracker, model_of
from legal_rag.retriever.retriever import Retriever

if TYPE_CHECKING:
    import dspy


INDEX_SUFFIX = ".index"  # of the Library that is built of a folder of texts, next to it
BANNER = """Les fonctions du corpus sont là : {functions}…
demander("question") lit en profondeur. exit() termine."""


class MultiDocRLM:
    """A Recursive Language Model over many documents.

    Args:
        corpus_path: A Library's folder, a folder of texts, or any source that `legal_rag.corpus.read_documents` reads.
        root_model: Writes the programs: a model's id, or a `dspy.LM`; None takes GENERATOR_MODEL_ID.
        sub_model: Reads the parts; None takes the root model.
        api_key: See `legal_rag.agent.build_language_model`.
        api_base: Likewise.
        budget: How much each question may take.
        settings: How questions are answered.
    """

    def __init__(
        self,
        corpus_path: str | Path,
        root_model: "str | dspy.BaseLM | None" = None,
        sub_model: "str | dspy.BaseLM | None" = None,
        *,
        api_key: str | None = None,
        api_base: str | None = None,
        budget: Budget | None = None,
        settings: DeepReadSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.corpus_path = Path(corpus_path).expanduser()
        self._models, self._endpoint = (root_model, sub_model), (api_key, api_base)
        self._budget, self._settings = budget or DEEP_READ_BUDGET, settings
        self._library: Library | None = None

    @property
    def library(self) -> Library:
        """The open Library.

        Raises:
            FileNotFoundError: If none was built or loaded.
        """
        if self._library is None:
            if not (self.corpus_path / MANIFEST).is_file():
                raise FileNotFoundError(
                    f"no index of {self.corpus_path} yet (expected build_index or load_index first)"
                )
            self._library = Library(self.corpus_path)
        return self._library

    def build_index(
        self,
        parallel: bool = True,
        batch_size: int = 100,
        save_path: str | Path | None = None,
        *,
        entities: bool = True,
        by_model: bool = False,
    ) -> CorpusIndex:
        """Build the corpus index; of a folder of texts, first a Library that is searched by words.

        Args:
            parallel: On all cores.
            batch_size: Documents handed to a core at once.
            save_path: The Library's folder, if the corpus is not one yet; None puts it next to the texts.
            entities: Extract entities by rules, if nothing was extracted yet.
            by_model: The sub-model describes documents without an official summary; see `CorpusIndexer`.

        Raises:
            FileNotFoundError: If there is no such source.
            ValueError: If no document is left, `batch_size` is below 1, no model can be asked for `by_model`, or
                `save_path` is given for a Library, which keeps its place.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        sub_llm = ChatModel(model_of(self._require_models()[1]), UsageTracker(UNLIMITED)) if by_model else None
        if (self.corpus_path / MANIFEST).is_file():
            if save_path is not None:
                raise ValueError(f"{self.corpus_path} is a Library: its index is built in it (expected no save_path)")
            self._library = Library(self.corpus_path)
        else:
            self._library = _library_of_texts(self.corpus_path, save_path)
        if entities and self._library.entity_store is None:
            _extract_by_rules(self._library)
        CorpusIndexer(self._library, sub_llm).build_corpus_index(parallel=parallel, batch_size=batch_size)
        return self._reopen()

    def load_index(self, path: str | Path) -> CorpusIndex:
        """Open a Library whose corpus index was built before; this is instant.

        Raises:
            FileNotFoundError: If it does not exist.
            ValueError: If it is damaged or stale.
        """
        self._library = Library(Path(path).expanduser())
        return CorpusIndex.open(self._library)

    def query(
        self, question: str, doc_ids: Sequence[str] | str | None = None, *, trace: str | Path | None = None
    ) -> Prediction:
        """Answer a question; see `legal_rag.deep_read.deep_read`.

        Raises:
            ValueError: If no model can be asked, or as there.
        """
        root, sub = self._require_models()
        return deep_read(
            question,
            doc_ids,
            library=self.library,
            lm=root,
            sub_lm=sub,
            budget=self._budget,
            settings=self._settings,
            retriever=Retriever(self.library),
            trace=trace,
        )

    def environment(self) -> dict[str, Any]:
        """Return the functions and values that programs find, to be called by hand.

        Those that call a model use the sub-model, as in programs, and raise ValueError if no model is configured.
        """
        models = self._build_root_and_sub()
        sub = ChatModel(model_of(models[1]), UsageTracker(self._budget)) if models else None
        retriever = Retriever(self.library)
        return dict(create_multi_doc_env(CorpusIndex.open(self.library), sub, retriever))

    def repl(self) -> None:
        """Start an interactive Python session with the functions; `demander(question)` reads deeply."""
        names = {**self.environment(), "demander": lambda question: print(self.query(question).answer)}
        shown = ", ".join(sorted(name for name, value in names.items() if callable(value))[:8])
        code.interact(banner=BANNER.format(functions=shown), local=names, exitmsg="")

    def add_document(self, source: str | Path | Mapping[str, Any]) -> CorpusIndex:
        """Add a document: a file, or a row; one of the same id is replaced.

        Its entities are extracted where those of the others were, by rules; where a model extracted them, the command
        `legal-rag extract` completes them.
        """
        by_rules = _extracted_by_rules(self.library)
        IncrementalIndexer(self.library).add_document(source)
        index = self._reopen()
        if by_rules and (added := index.last_id()):
            _extract_by_rules(index.library, [added])
        return index

    def remove_document(self, doc_id: str) -> CorpusIndex:
        """Remove a document.

        Raises:
            LookupError: If it is not there.
        """
        IncrementalIndexer(self.library).remove_document(doc_id)
        return self._reopen()

    def save_index(self, path: str | Path | None = None) -> Path:
        """Return the Library's folder, which every change was written to at once; or copy it to `path` first.

        Raises:
            FileExistsError: If there is something at `path`.
        """
        if path is None:
            return self.library.path
        target = Path(path).expanduser()
        if target.exists():
            raise FileExistsError(f"will not overwrite {target} (expected a path where nothing is)")
        unfinished = target.with_name(f"{target.name}.copying")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self.library.path, unfinished)
        os.replace(unfinished, target)
        return target

    def _reopen(self) -> CorpusIndex:
        self._library = self.library.reload()
        return CorpusIndex.open(self._library)

    def _build_root_and_sub(self) -> "tuple[dspy.BaseLM, dspy.BaseLM] | None":
        """Return root model and sub-model; None if no endpoint is configured."""
        from legal_rag.llm import build_language_model, has_endpoint

        (root, sub), endpoint = self._models, self._endpoint
        if isinstance(root, str | None) and not has_endpoint(*endpoint, root):
            return None
        named = (root, sub or root)
        first, second = (build_language_model(lm, *endpoint) if isinstance(lm, str | None) else lm for lm in named)
        return first, second

    def _require_models(self) -> "tuple[dspy.BaseLM, dspy.BaseLM]":
        if (models := self._build_root_and_sub()) is None:
            raise ValueError("no model can be asked (expected GENERATOR_API_BASE or GENERATOR_API_KEY, or a dspy.LM)")
        return models


def _library_of_texts(source: Path, save_path: str | Path | None) -> Library:
    """Build a Library for lexical search: nothing is encoded."""
    from legal_rag.indexer.build import build_index
    from legal_rag.indexer.config import IndexConfig

    if not source.exists():
        raise FileNotFoundError(f"no corpus at {source} (expected a Library, a folder of texts, or a file of rows)")
    beside = source.with_name(source.name + INDEX_SUFFIX)
    target = beside if save_path is None else Path(save_path).expanduser()
    build_index(IndexConfig(source=source, n_bits=0, index_folder=str(target.parent), index_name=target.name))
    return Library(target)


def _extract_by_rules(library: Library, doc_ids: Sequence[str] | None = None) -> None:
    from legal_rag.extraction.schemas import RULES, ExtractionSettings
    from legal_rag.indexer.entities import complete_documents, extract_library

    settings = ExtractionSettings(model_id=RULES)
    extract_library(library, settings) if doc_ids is None else complete_documents(library, doc_ids, settings)


def _extracted_by_rules(library: Library) -> bool:
    """Tell by the first document whether a Library's entities were extracted by rules."""
    from legal_rag.extraction.schemas import RULES

    first = next(library.content_hashes(), None)
    if library.entity_store is None or first is None:
        return False
    recipe = library.entity_store.held_recipe(*first)
    return recipe is not None and recipe.model_id.startswith(RULES)
