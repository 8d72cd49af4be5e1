"""Outlines of a Library as files of a folder, and back; their summaries by a model."""

import json
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from legal_rag.base.files import made_once, progress
from legal_rag.corpus.documents import Document
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index
from legal_rag.corpus_index.keywords import TermStatistics
from legal_rag.corpus_index.sections import SummaryRequests, summarised, summary_requests, without_extracts
from legal_rag.indexer.commit import library_locked
from legal_rag.law.tree import (
    SUFFIX,
    TreeFile,
    TreeNode,
    file_name,
    name_in,
    tree_from_json,
    tree_to_json,
    walk,
    with_summaries,
)
from legal_rag.library.library import STORE, Library
from legal_rag.library.outlines import BY_RULES, Outline, fill_outlines, make_outline, put_outlines
from legal_rag.llm import TextModel, Throttle

MOST_BYTES = 100_000_000  # of a file that is read
AT_ONCE = 8  # documents that a model summarises at once
MOST_FAILURES = 5  # requests that fail in a row, after which the model is not asked any more
IMPORTED = "imported"


def export_trees(
    library: Library, folder: str | Path, doc_ids: Collection[str] = (), *, with_text: bool = False
) -> int:
    """Write the outlines of documents, those named or all, as `<id>_tree.json` into a new folder; return how many.

    Sections without a summary get an extractive one; `with_text`, all get their text. ValueError if the folder exists;
    LookupError if there is no such document.
    """
    target = Path(folder).expanduser()
    if target.exists():
        raise ValueError(f"will not overwrite {target} (expected a new folder)")
    ids = list(dict.fromkeys(doc_ids))
    documents = map(library.document, ids) if ids else library.documents()
    statistics_of = _term_statistics(library)
    with made_once(target) as scratch:
        for document in progress("Exporting", iterable=documents, total=len(ids) or library.n_documents):
            outline = _load_outline(library, document)
            tree = summarised(outline.tree, document, statistics_of(document))
            content = document.content if with_text else None
            value = tree_to_json(tree, document.id, outline.description or tree.summary, content)
            (scratch / file_name(document.id)).write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
    return len(ids) or library.n_documents


def check_trees(library: Library, folder: str | Path) -> list[Path]:
    """Return the tree files of a folder, each of which is an outline of another document of the Library.

    FileNotFoundError if there is no file `…_tree.json` in the folder; ValueError if a file is not the outline of its
    document, or of the same document as another; LookupError if a file names no document of the Library.
    """
    paths = sorted(Path(folder).expanduser().glob(f"*{SUFFIX}"))
    if not paths:
        raise FileNotFoundError(f"no file that ends in {SUFFIX} in {folder}")
    seen: dict[str, str] = {}
    for path in progress("Checking", iterable=paths, unit=" files"):
        document, _ = _read_tree(library, path)
        if document.id in seen:
            raise ValueError(f"{path.name}: document {document.id!r} is also that of {seen[document.id]}")
        seen[document.id] = path.name
    return paths


def import_trees(library: Library, folder: str | Path) -> int:
    """Store the outlines of a folder, replacing those made by rules; return how many. Who speaks stays by rules.

    What `export_trees` wrote and nobody changed stays as it was: extractive summaries do not count as written.

    Raises:
        FileNotFoundError: See `check_trees`.
        ValueError: See `check_trees`; nothing is stored. Also if another process is writing to the Library.
        LookupError: See `check_trees`.
    """
    paths = check_trees(library, folder)
    statistics_of = _term_statistics(library)
    read = (_read_tree(library, path) for path in progress("Storing", iterable=paths, unit=" files"))
    with library_locked(library.path):
        fill_outlines(library.path, library.path / STORE)
        return put_outlines(library.path, (_import_tree(library, *entry, statistics_of) for entry in read))


class SummaryReport(NamedTuple):
    """What `summarise_trees` did."""

    documents: int  # that got summaries
    lacking: int  # requests whose replies are still lacking, about


def summarise_trees(library: Library, sub_llm: TextModel) -> SummaryReport:
    """Summarise the long sections that have no summary by a model, and store the summaries by content hash.

    What was written before a kill or a failure stays and is not asked for again; sections of which the model gave
    nothing usable stay without a summary, and the next call asks for theirs alone. ConnectionError if the model fails
    several times in a row; ValueError if another process is writing to the Library.
    """
    throttle, statistics_of = Throttle(most_failures=MOST_FAILURES), _term_statistics(library)
    model = _Throttled(sub_llm, throttle)
    name, lacking = str(getattr(sub_llm, "name", "model")), 0

    def written() -> Iterator[tuple[Document, Outline]]:
        nonlocal lacking
        with ThreadPoolExecutor(AT_ONCE) as pool, ExitStack() as leaving:
            leaving.callback(throttle.stop)  # before the pool waits for its threads
            asked = iter(progress("Summarising", iterable=_unsummarised(library), unit=" documents"))
            while group := list(islice(asked, AT_ONCE)):
                for (document, outline, _), tree in zip(group, pool.map(write, group), strict=True):
                    lacking += summary_requests(tree, document).requests
                    if tree != outline.tree:
                        description = outline.description or tree.summary
                        yield document, outline._replace(tree=tree, description=description, made_by=name)
                if throttle.is_stopped:
                    raise ConnectionError(
                        f"the model failed too often: {throttle.error}"
                        " (the summaries written are kept: the same command asks for the others)"
                    )

    def write(entry: tuple[Document, Outline, SummaryRequests]) -> TreeNode:
        document, outline, _ = entry
        known = statistics_of(document)
        return without_extracts(summarised(outline.tree, document, known, model), document, known)

    with library_locked(library.path):
        fill_outlines(library.path, library.path / STORE)
        return SummaryReport(put_outlines(library.path, written(), batch=1), lacking)


class SummaryPlan(NamedTuple):
    """What `summarise_trees` would ask for."""

    documents: int
    requests: int  # about
    characters: int  # that the model reads, prompts left out


def plan_summaries(library: Library) -> SummaryPlan:
    """Estimate what `summarise_trees` would ask a model."""
    documents = requests = characters = 0
    for _, _, asked in _unsummarised(library):
        documents, requests, characters = documents + 1, requests + asked.requests, characters + asked.characters
    return SummaryPlan(documents, requests, characters)


def _unsummarised(library: Library) -> Iterator[tuple[Document, Outline, SummaryRequests]]:
    for document in library.documents():
        outline = _load_outline(library, document)
        asked = summary_requests(outline.tree, document)
        if asked.requests:
            yield document, outline, asked


def _load_outline(library: Library, document: Document) -> Outline:
    return library.stored_outline(document) or make_outline(document)


def _term_statistics(library: Library) -> Callable[[Document], TermStatistics | None]:
    """Return what looks up the statistics by which a document's sentences are chosen; None without a corpus index."""
    return CorpusIndex(library).statistics_of if has_corpus_index(library) else lambda _: None


class _Throttled(NamedTuple):
    """A model that is no longer asked once `MOST_FAILURES` requests have failed in a row."""

    model: TextModel
    throttle: Throttle

    def query(self, prompt: str) -> str:
        return self.throttle.call(lambda: self.model.query(prompt))


def _read_tree(library: Library, path: Path) -> tuple[Document, TreeFile]:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path.name}: larger than {MOST_BYTES} bytes")
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
        document = library.document(name_in(value))
        return document, tree_from_json(value, len(document.content))
    except LookupError as error:
        raise LookupError(f"{path.name}: {error.args[0]}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _import_tree(
    library: Library,
    document: Document,
    file: TreeFile,
    statistics_of: Callable[[Document], TermStatistics | None],
) -> tuple[Document, Outline]:
    """Return what is stored of a tree file: not the summaries that this Library would extract itself.

    Sections without a summary keep the one that is stored.
    """
    by_rules, stored = make_outline(document), library.stored_outline(document)
    known = {_locate_node(node): node.summary for node in walk(stored.tree)} if stored else {}
    tree = without_extracts(file.tree, document, statistics_of(document))
    tree = with_summaries(tree, lambda node: node.summary or known.get(_locate_node(node), ""))
    made_by = BY_RULES if tree == by_rules.tree else IMPORTED
    return document, by_rules._replace(tree=tree, description=tree.summary, made_by=made_by)


def _locate_node(node: TreeNode) -> tuple[int, int, int]:
    return node.char_start, node.heading[1], node.char_end
