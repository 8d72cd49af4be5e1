"""Looking at entities: in a notebook below its cell, elsewhere in the browser.

In: a Library, a folder that `legal-rag extract` wrote, or results and their texts. Out: the page, shown.
"""

import json
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Protocol
from urllib.parse import quote

from legal_rag.corpus import Document
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractionResult
from legal_rag.extraction.outputs import JSONL, PAGE, OutputItem, write_outputs
from legal_rag.extraction.page import HEADING, page_parts
from legal_rag.html_pages import in_notebook, notebook_frame

MOST_SHOWN = 50  # documents below a cell: they are saved with the notebook
READ_ALIGNMENTS: Mapping[str | None, Any] = {"match_exact": "exact", "match_fuzzy": "folded"}

Results = Iterable[ExtractionResult | OutputItem]


class Documents(Protocol):
    """What is read of a Library."""

    path: Path

    def document(self, doc_id: str) -> Document:
        """Return a document by its id."""

    def documents(self) -> Iterator[Document]:
        """Stream all documents."""


def view_entities(
    shown: Documents | str | Path | Results,
    doc_id: str | None = None,
    *,
    docs: Iterable[Mapping[str, str]] = (),
) -> Any:
    """Show entities in their texts.

    Args:
        shown: A Library, the folder of one, a folder that `legal-rag extract --output` wrote, or results.
        doc_id: The document to begin with; in a notebook the only one.
        docs: The texts of results, each with `name` and `text`, as given to `run_batch_extraction`.

    Returns:
        In a notebook what it displays, with the first documents; elsewhere the path of the page, opened in the browser.

    Raises:
        FileNotFoundError: If nothing was extracted there yet.
        LookupError: If there is no such document.
        ValueError: If a result's text is not among `docs`.
    """
    if in_notebook():
        return _framed(list(islice(_items(shown, doc_id, docs), MOST_SHOWN + 1)))
    if (folder := _folder_of(shown)) is None:
        folder = Path(mkdtemp(prefix="legal-rag-entities-"))
        write_outputs(folder, _items(shown, None, docs))
    page = folder / PAGE
    if not page.is_file():
        raise FileNotFoundError(f"no {PAGE} in {folder}: 'legal-rag extract' writes it")
    webbrowser.open(page.resolve().as_uri() + (f"#{quote(doc_id, safe='')}" if doc_id else ""))
    return page


def _framed(items: list[OutputItem]) -> Any:
    """Show documents in a frame that can reach neither the notebook nor the network."""
    more = len(items) > MOST_SHOWN
    note = f"Les {MOST_SHOWN} premiers documents ; tous sont dans le fichier {PAGE}." if more else ""
    page = "".join(page_parts(items[:MOST_SHOWN], note=note))
    return notebook_frame(page, HEADING)


def _folder_of(shown: Any) -> Path | None:
    if isinstance(shown, str | Path):
        return Path(shown).expanduser()
    path = getattr(shown, "path", None)
    return path if isinstance(path, Path) else None


def _items(shown: Any, doc_id: str | None, docs: Iterable[Mapping[str, str]]) -> Iterator[OutputItem]:
    if isinstance(shown, str | Path):
        items = _of_folder(Path(shown).expanduser())
    elif _folder_of(shown) is not None:
        items = _of_library(shown, doc_id)
    else:
        items = _of_results(shown, {doc["name"]: doc["text"] for doc in docs})
    if doc_id is None:
        yield from items
        return
    found = next((item for item in items if item.doc_id == doc_id), None)
    if found is None:
        raise LookupError(f"no document {doc_id!r} among those extracted")
    yield found


def _of_library(library: Documents, doc_id: str | None) -> Iterator[OutputItem]:
    from legal_rag.extraction.store import ExtractionStore

    path = library.path / ENTITIES
    if not path.is_file():
        raise FileNotFoundError(f"no entities in {library.path}: 'legal-rag extract' finds them")
    with ExtractionStore(path) as store:
        for document in library.documents() if doc_id is None else [library.document(doc_id)]:
            entities = store.entities_of(document.id, document.content_hash) or []
            yield OutputItem(document.id, document.title, document.content, entities)


def _of_folder(folder: Path) -> Iterator[OutputItem]:
    path = folder / JSONL
    if not path.is_file():
        raise FileNotFoundError(f"no {JSONL} in {folder}: 'legal-rag extract' writes it")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            entities = [_entity(one) for one in row["extractions"] if one["char_interval"]]
            yield OutputItem(row["document_id"], "", row["text"], entities)


def _entity(row: dict[str, Any]) -> Entity:
    return Entity(
        extraction_class=row["extraction_class"],
        extraction_text=row["extraction_text"],
        char_start=row["char_interval"]["start_pos"],
        char_end=row["char_interval"]["end_pos"],
        attributes=row["attributes"] or {},
        alignment=READ_ALIGNMENTS.get(row["alignment_status"], "exact"),
    )


def _of_results(results: Results, texts: Mapping[str, str]) -> Iterator[OutputItem]:
    for result in results:
        if isinstance(result, OutputItem):
            yield result
        elif result.doc_name in texts:
            yield OutputItem(result.doc_name, "", texts[result.doc_name], result.extractions)
        else:
            raise ValueError(f"no text of {result.doc_name!r}: pass docs=[{{'name': …, 'text': …}}, …]")
