"""What a notebook needs, in one place: build a Library, search it, ask it, check a text against it, measure it.

A `library` is an open one, or its folder.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from difflib import get_close_matches
from functools import cached_property
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.base.html import Rows
from legal_rag.corpus.documents import Document, SourceOptions
from legal_rag.extraction.entities import Entity
from legal_rag.extraction.schemas import AUTO, RULES
from legal_rag.law.tree import TreeNode
from legal_rag.library.filters import Filters, read_day
from legal_rag.library.library import DEFAULT_FOLDER, DEFAULT_NAME, Library

if TYPE_CHECKING:
    from legal_rag.agent.agent import LegalReActAgent
    from legal_rag.agent.evidence import EvidenceAgent
    from legal_rag.agent.prediction import Prediction
    from legal_rag.citations.verdicts import Verification
    from legal_rag.evaluation.metrics import Evaluation
    from legal_rag.evaluation.trec import Qrels, Query
    from legal_rag.graph.graph import KnowledgeGraph
    from legal_rag.indexer.config import IndexConfig
    from legal_rag.retriever.ranking import Mode
    from legal_rag.retriever.retriever import Retriever, SearchHit

FILTERS = tuple(each.name for each in fields(Filters))
DEFAULT_INDEX = f"{DEFAULT_FOLDER}/{DEFAULT_NAME}"


class SearchableLibrary(Library):
    """A Library with the rooms that read it at hand: what `build`, `add` and `open` return."""

    @cached_property
    def retriever(self) -> "Retriever":
        """Its search; the encoder is loaded when it is first needed."""
        from legal_rag.retriever.retriever import Retriever

        return Retriever(self)

    @cached_property
    def graph(self) -> "KnowledgeGraph":
        """Who cites what: decisions, articles, courts, parties; FileNotFoundError if there is none."""
        from legal_rag.graph.graph import KnowledgeGraph

        return KnowledgeGraph(self)

    @cached_property
    def _agents(self) -> list[tuple[Any, "LegalReActAgent | EvidenceAgent"]]:
        return []  # with the settings of each

    def agent(self, model: str | None = None, **settings: Any) -> "LegalReActAgent | EvidenceAgent":
        """Return the agent that `ask` asks, made once for the same settings; see `legal_rag.agent.build_agent`."""
        from legal_rag.agent.agent import build_agent
        from legal_rag.retriever.search_box import NO_FILTERS

        conditions = {name: settings.pop(name) for name in FILTERS if name in settings}
        known = [name for name in signature(build_agent).parameters if name != "lm_settings"]
        if not settings.keys() <= set(known) and find_spec("dspy"):  # of a model, which the core does without
            from legal_rag.llm import build_language_model

            known += signature(build_language_model).parameters
        _refuse_unknown(settings, known, FILTERS)
        settings |= {"filters": Filters(**conditions)} if conditions else {}
        self.check_values(settings.get("filters", NO_FILTERS))
        # These may be set later.
        asked = [os.environ.get(f"GENERATOR_{name}") for name in ("MODEL_ID", "API_BASE", "API_KEY")]
        key = (model, asked, settings)
        if made := next((agent for made_for, agent in self._agents if made_for == key), None):
            return made
        agent = build_agent(self, model=model, encoder=self.retriever.encoder, **settings)
        self._agents.append((key, agent))
        return agent

    def search(
        self,
        query: str,
        k: int = 5,
        *,
        mode: "Mode | None" = None,
        by_document: bool = False,
        diverse: bool = False,
        filters: Filters | None = None,
        infer_filters: bool = True,
        **conditions: Any,
    ) -> "Rows[SearchHit]":
        """Rank the passages that answer what is typed; see `search`."""
        from legal_rag.retriever.search_box import search_typed, unmet_filter

        _refuse_unknown(conditions, FILTERS, signature(self.search).parameters)
        filters = filters or Filters(**conditions)
        self.check_values(filters)
        how: Any = {"infer_filters": infer_filters, "mode": mode, "by_document": by_document, "diverse": diverse}
        results = search_typed(self.retriever, query, k, filters=filters, **how)
        hits = Rows(results.hits)
        hits.remarks = results.remarks if hits else (*results.remarks, *unmet_filter(self, results.filters))
        return hits

    def outline(self, doc_id: str) -> TreeNode:
        """Return the sections of a document; LookupError if there is none."""
        from legal_rag.library.outlines import outline_of

        return outline_of(self, doc_id)

    def entities(self, doc_id: str) -> Rows[Entity]:
        """Return the entities extracted from a document, in text order.

        LookupError if there is no such document; ValueError if none were extracted from its present text.
        """
        extracted = self.entities_of(doc_id)
        if extracted is None:
            raise ValueError(f"no entities of {doc_id!r:.200} in {self.path}: 'legal-rag extract' extracts them")
        return Rows(extracted)


def build(
    source: Any = "sample",
    index: str | Path = DEFAULT_INDEX,
    *,
    encoder: str = "auto",
    limit: int | None = None,
    entities: bool = True,
    **settings: Any,
) -> SearchableLibrary:
    """Build a Library of decisions, and open it; one already there is replaced when the new one is complete.

    >>> library = build([{"id": "d1", "content": "La cour rejette le pourvoi."}], "index/little", n_bits=0)
    >>> len(library)
    1

    Args:
        source: A file, a folder, a hub dataset as owner/name, 'sample' (sixty fictional decisions), or rows: a list of
            dicts with `id` and `content`, a `datasets.Dataset`, a pandas DataFrame.
        index: The Library's folder.
        encoder: 'auto', 'bundled', a hub id, a folder.
        limit: How many documents at most.
        entities: Extract dates, sums, parties and the like too, by rules.
        settings: Of `legal_rag.indexer.IndexConfig` and `legal_rag.corpus.SourceOptions`, e.g. `n_bits`, `text_column`.

    Raises:
        FileNotFoundError: If the source or the encoder does not exist.
        ValueError: If no document is left, a column or a setting is unknown, or the folder holds something else.
    """
    from legal_rag.encoder.encoder import EncoderConfig
    from legal_rag.extraction.schemas import ExtractionSettings
    from legal_rag.indexer.build import build_index

    config = _config(source, index, settings, encoder=EncoderConfig(name=encoder), limit=limit)
    build_index(config, extraction=ExtractionSettings() if entities else None)
    return _complete(open(index), entities=entities)


def add(library: Library | str | Path, source: Any, *, entities: bool = True, **settings: Any) -> SearchableLibrary:
    """Add the documents of a source to a Library, and return it with them; those that changed are replaced.

    >>> library = add(library, [{"id": "d9", "content": "La cour casse et annule l'arrêt attaqué."}])
    >>> "d9" in library
    True

    `source` is as for `build`; `settings` are of `legal_rag.corpus.SourceOptions`, all else is as it was built.

    Raises:
        FileNotFoundError: If there is no Library, or the source does not exist.
        ValueError: If another process is writing to it.
    """
    from legal_rag.indexer.build import add_documents

    path = library.path if isinstance(library, Library) else Path(library).expanduser()
    add_documents(_config(source, path, settings))
    return _complete(open(path), entities=entities)


def open(index: str | Path = DEFAULT_INDEX) -> SearchableLibrary:
    """Open a Library as it is now; later commits are not seen.

    >>> open(library.path)
    Library(...)

    Raises:
        FileNotFoundError: If there is no complete Library in the folder.
        ValueError: If it is damaged, or of a later format.
    """
    return SearchableLibrary(index)


def search(library: Library | str | Path, query: str, k: int = 5, **settings: Any) -> "Rows[SearchHit]":
    """Rank the passages that answer what is typed, best first: words, phrases, ET, OU, NON, numbers, articles.

    >>> hits = search(library, "clause de non-concurrence", k=3, date_from="1990")
    >>> hits[0].rank
    1

    `settings` are `mode` ('hybrid', 'colbert', 'bm25', 'bm25+rerank'), `by_document`, `diverse`, `filters`, or fields
    of `Filters`: `juridiction`, `date_from`, `article`, `at` (the day whose law is searched), …; with `infer_filters`
    (the default) a court with a time, an article or a statute is a filter too. `hits.remarks` say in French how the
    text was read.

    Raises:
        ValueError: If the question is empty or too long for the encoder, k is below 1, a setting is unknown, or a
            filter is unusable, such as a court that no document has.
    """
    return _opened(library).search(query, k, **settings)


def ask(library: Library | str | Path, question: str, *, model: str | None = None, **settings: Any) -> "Prediction":
    """Answer a question by quotations, each checked against its decision; a model makes it an agent that reads.

    >>> answer = ask(library, "Une clause de non-concurrence doit-elle être limitée dans le temps ?")
    >>> answer.status
    'answered'

    Without a model's id, here or in the environment with its key, it answers by passages alone. `settings` are of
    `legal_rag.agent.build_agent`: `api_key`, `api_base`, `lm`, `budget`, `infer_filters`, …; or fields of `Filters`.

    Raises:
        ValueError: If the question is empty or too long, or a model is named and there is nowhere to ask it.
    """
    return _opened(library).agent(model, **settings)(question)


def verify(
    text: str | Path,
    libraries: "Library | str | Path | Sequence[Library | str | Path]",
    *,
    at: str | date | None = None,
) -> "Verification":
    """Check every decision, article and quotation that a text names against one or several Libraries.

    >>> verify("Voir Cass. soc., 10 juillet 2002, n° 00-45.135.", library).counts["absent"]
    1

    `text` is a text, or a file (Markdown, text, HTML, DOCX, PDF) as a path. An article is compared with its version of
    the day that the text gives for it, else of the day `at`, today by default.

    Raises:
        FileNotFoundError: If there is no file of that path, or of that name ("conclusions.docx").
        ValueError: If the text is blank, the file is a folder or not text, or `at` is no day.
    """
    from legal_rag.citations.verifier import verify_text
    from legal_rag.corpus.files import read_paper

    several = [libraries] if isinstance(libraries, Library | str | Path) else libraries
    paper = read_paper(text) if _is_file(text) else str(text)
    return verify_text(paper, [*map(_opened, several)], at=read_day("at", at))


def extract(text: str | Path | Document, *, model: str = RULES, schema: str = AUTO, **settings: Any) -> Rows[Entity]:
    """Extract dates, sums, articles, parties and the like from one text, each with its place.

    >>> [entity["extraction_text"] for entity in extract("Arrêt du 4 mai 2010, condamne à payer 1 000 euros.")]
    ['4 mai 2010', '1 000 euros']

    `text` is a file as a path, a text, or a `Document`; `model` is 'rules' or a model's id; `schema` is what is looked
    for, see `legal_rag.extraction.get_schema`; `settings` are of `legal_rag.extraction.run_extraction`.

    Raises:
        ValueError: If there is no such schema, or the model refuses requests.
        ConnectionError: If the model's server does not answer.
    """
    from legal_rag.corpus.files import read_file
    from legal_rag.extraction.engine import run_extraction

    if isinstance(text, Document):
        content, name = text.content, text.id
    else:
        content, name = (read_file(text), Path(text).name) if _is_file(text) else (str(text), "text")
    return Rows(run_extraction(content, name, schema, model, **settings).extractions)


def evaluate(
    library: Library | str | Path,
    queries: "str | Path | Mapping[str, str] | Sequence[Query]",
    qrels: "str | Path | Qrels | None" = None,
    *,
    k: int = 100,
    mode: "Mode | None" = None,
    filters: Filters | None = None,
) -> "Evaluation":
    """Rank documents for many questions, and measure the ranking, with 95 % confidence intervals.

    >>> evaluate(library, {"q1": "clause de non-concurrence"}, {"q1": {"d9": 1}}, k=5).figures[0].measure
    'R@1'

    Args:
        queries: A file as `legal_rag.evaluation.read_queries` reads it, texts by id, or `Query` values.
        qrels: A file of judgements in TREC's form, or grades by document by query; None takes those of the file of
            queries.
        k: Documents ranked for each question; `mode` and `filters` are as for `search`.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If there are no judgements, or a question cannot be encoded.
    """
    from legal_rag.evaluation import metrics, trec

    own: Qrels = {}
    if isinstance(queries, str | Path):
        queries, own = trec.read_queries(queries)
    elif isinstance(queries, Mapping):
        queries = [trec.Query(qid, text) for qid, text in queries.items()]
    judged = own if qrels is None else trec.read_qrels(qrels) if isinstance(qrels, str | Path) else qrels
    opened = _opened(library)
    if filters:
        opened.check_values(filters)
    run = metrics.batch_query(opened.retriever, queries, k, mode=mode, filters=filters)
    return metrics.evaluate_run(judged, run, metrics.measures(k))


def show(value: Any, name: str = "", *, library: Library | None = None, height: int = 720) -> Any:
    """Show an answer, a checked text, a document of a Library or a name of its graph as a page in the notebook.

    Outside a notebook, a document's outline is printed.

    >>> show(ask(library, "Que devient un compte de campagne déposé en retard ?"), library=library)
    NotebookFrame('Réponse et sources')

    Args:
        value: A `Prediction`, a `Verification`, a Library or its `graph`.
        name: The document's id, of a Library; a number, an article, a court or a name, of a graph.
        library: Where an answer's decisions are read in full.
        height: Of the frame, in pixels.

    Raises:
        LookupError: If there is no such document or name.
        TypeError: If it is nothing of these.
    """
    from legal_rag.agent.prediction import Prediction
    from legal_rag.citations import Verification, show_verification
    from legal_rag.graph.graph import KnowledgeGraph
    from legal_rag.graph.page import view_graph
    from legal_rag.report import show_answer, show_outline

    if isinstance(value, Prediction):
        return show_answer(value, height, corpus=library)
    if isinstance(value, Verification):
        return show_verification(value, height)
    if isinstance(value, KnowledgeGraph):
        return view_graph(value.library, name, height)
    if isinstance(value, Library):
        return show_outline(value, name, height)
    raise TypeError(f"cannot show {type(value).__name__} (expected an answer, a verification, a Library or a graph)")


def _opened(library: Library | str | Path) -> SearchableLibrary:
    if isinstance(library, SearchableLibrary):
        return library
    return SearchableLibrary(library.path if isinstance(library, Library) else library)


def _is_file(text: str | Path) -> bool:
    """Does a text name a file or a folder, be it there or not?"""
    from legal_rag.corpus.files import names_file

    if isinstance(text, Path):
        return True
    if "\n" in text or not text.strip():
        return False
    return names_file(text) or (len(text) < 255 and Path(text).exists())


def _config(source: Any, index: str | Path, settings: Mapping[str, Any], **given: Any) -> "IndexConfig":
    from legal_rag.indexer.config import IndexConfig

    path = Path(index).expanduser()
    options = {name: value for name, value in settings.items() if name in SourceOptions._fields}
    rest = {name: value for name, value in settings.items() if name not in options}
    _refuse_unknown(rest, [field.name for field in fields(IndexConfig)], SourceOptions._fields)
    return IndexConfig(
        source=_rows(source),
        options=SourceOptions(**options),
        index_folder=str(path.parent),
        index_name=path.name,
        **given,
        **rest,
    )


def _refuse_unknown(settings: Iterable[str], *known: Iterable[str]) -> None:
    names = sorted({name for several in known for name in several} - {"self", "query", "conditions"})
    for name in set(settings).difference(names):
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown setting: {name}{hint} (expected of {', '.join(names)})")


def _rows(source: Any) -> "str | Path | Iterable[Mapping[str, Any]]":
    return source.to_dict("records") if hasattr(source, "iterrows") else source  # a DataFrame iterates over columns


def _complete(library: SearchableLibrary, *, entities: bool) -> SearchableLibrary:
    if not entities:
        return library
    from legal_rag.extraction.schemas import ExtractionSettings
    from legal_rag.indexer.entities import extract_library

    extract_library(library, ExtractionSettings(), keep_models=True)
    return open(library.path)
