"""Extraction results as files (LangExtract JSONL, JSON, extraction index, HTML pages), and `view_entities`."""

import json
import os
import shutil
import webbrowser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TextIO
from urllib.parse import quote

from legal_rag.base.files import beside, locked, sync
from legal_rag.base.html import NotebookFrame, in_notebook, plain_json
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractedDocument, ExtractionResult
from legal_rag.extraction.pages import HEADING, index_parts, page_parts, write_pages, write_parts

JSONL, JSON, INDEX, PAGE = "entities.jsonl", "entities.json", "extraction_index.txt", "entities.html"
PAGES = "entities_pages"  # folder, if there are several pages
OUTPUTS = (JSONL, JSON, INDEX, PAGE, PAGES)
MAX_SHOWN = 50  # documents in a notebook's output, which is saved with it
INDEX_HEAD = "===== EXTRACTION INDEX =====\nPre-extracted structured data with source document and character offsets.\n"
# Characters that some readers take as line ends and JSON does not escape.
LINE_ENDS = {ord(sign): " " for sign in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


class DocumentSource(Protocol):
    """The part of a Library that `view_entities` reads."""

    path: Path

    def document(self, doc_id: str) -> Document:
        """Return a document by its id."""

    def documents(self) -> Iterator[Document]:
        """Stream all documents."""


def write_outputs(folder: Path, items: Iterable[ExtractedDocument]) -> list[Path]:
    """Write documents and their entities, holding one document at a time.

    The files of an earlier call are replaced only when all new ones are complete.

    Args:
        folder: Created if missing.
        items: The documents, with distinct ids.

    Returns:
        The four files; then, if there are too many documents for one page, the folder of the pages.

    Raises:
        ValueError: If an entity's text is not at its offsets, or another process is writing the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = beside(folder / "entities", "new")
    with locked(folder / "entities"):
        shutil.rmtree(scratch, ignore_errors=True)  # left by a kill
        scratch.mkdir()
        try:
            _write_all(scratch, items)
            return _put_all_in_place(scratch, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def outputs_in(folder: Path) -> list[Path]:
    """Return the files that `write_outputs` wrote into a folder."""
    return [folder / name for name in (JSONL, JSON, INDEX, PAGE) if (folder / name).is_file()]


def delete_outputs(folder: Path) -> None:
    """Delete what `write_outputs` wrote into a folder."""
    for file in outputs_in(folder):
        file.unlink()
    shutil.rmtree(folder / PAGES, ignore_errors=True)


def format_extraction_index(results: Sequence[ExtractionResult]) -> str:
    """Format the extraction index that models plan with: one line per entity, its text quoted as in JSON."""
    lines = [line for result in results for line in _index_lines(result.doc_name, result.extractions)]
    return "".join([INDEX_HEAD, *lines])


def build_enriched_context(docs: Iterable[Mapping[str, str]], extraction_results: Sequence[ExtractionResult]) -> str:
    """Join the extraction index and the full texts.

    Args:
        docs: Each with `name` and `text`.
        extraction_results: For some or all of them.
    """
    texts = (
        f"\n===== DOCUMENT {number}: {_without_line_ends(doc['name'])} =====\n{doc['text']}\n"
        for number, doc in enumerate(docs, start=1)
    )
    return "".join([format_extraction_index(extraction_results), *texts])


def view_entities(shown: DocumentSource | str | Path, doc_id: str | None = None) -> Any:
    """Show entities in their texts.

    Args:
        shown: A Library, the folder of one, or a folder that `legal-rag extract --output` or `run_extraction` wrote.
        doc_id: The first document to show; in a notebook the only one.

    Returns:
        In a notebook what it displays, with the first documents; elsewhere the path of the page, opened in the browser.

    Raises:
        FileNotFoundError: If the folder has no extracted entities yet.
        LookupError: If there is no such document.
    """
    folder = Path(shown).expanduser() if isinstance(shown, str | Path) else shown.path
    if in_notebook():
        extracted = _of_folder(folder) if isinstance(shown, str | Path) else _of_library(shown, doc_id)
        items = list(islice((item for item in extracted if doc_id in (None, item.doc_id)), MAX_SHOWN + 1))
        if doc_id is not None and not items:
            raise LookupError(f"no document {doc_id!r} among those extracted")
        is_cut = len(items) > MAX_SHOWN
        note = f"Les {MAX_SHOWN} premiers documents ; tous sont dans le fichier {PAGE}." if is_cut else ""
        return NotebookFrame("".join(page_parts(items[:MAX_SHOWN], note=note)), HEADING)
    page = folder / PAGE
    if not page.is_file():
        raise FileNotFoundError(f"no {PAGE} in {folder}: 'legal-rag extract' writes it")
    webbrowser.open(page.resolve().as_uri() + (f"#{quote(doc_id, safe='')}" if doc_id else ""))
    return page


def _of_library(library: DocumentSource, doc_id: str | None) -> Iterator[ExtractedDocument]:
    from legal_rag.extraction.store import ExtractionStore

    path = library.path / ENTITIES
    if not path.is_file():
        raise FileNotFoundError(f"no entities in {library.path}: 'legal-rag extract' finds them")
    with ExtractionStore(path) as store:
        for document in library.documents() if doc_id is None else [library.document(doc_id)]:
            entities = store.entities_of(document.id, document.content_hash) or []
            yield ExtractedDocument.of(document, entities)


def _of_folder(folder: Path) -> Iterator[ExtractedDocument]:
    path = folder / JSONL
    if not path.is_file():
        raise FileNotFoundError(f"no {JSONL} in {folder}: 'legal-rag extract' writes it")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            entities = [_entity_of_row(extraction) for extraction in row["extractions"] if extraction["char_interval"]]
            yield ExtractedDocument(row["document_id"], "", row["text"], entities)


def _entity_of_row(row: dict[str, Any]) -> Entity:
    return Entity(
        extraction_class=row["extraction_class"],
        extraction_text=row["extraction_text"],
        char_start=row["char_interval"]["start_pos"],
        char_end=row["char_interval"]["end_pos"],
        attributes=row["attributes"] or {},
        alignment="folded" if row["alignment_status"] == "match_fuzzy" else "exact",
    )


def _write_all(scratch: Path, items: Iterable[ExtractedDocument]) -> None:
    pages_folder = scratch / PAGES
    pages_folder.mkdir()
    with ExitStack() as stack:
        paths = [scratch / name for name in (JSONL, JSON, INDEX)]
        files = [
            stack.enter_context(path.open("w", encoding="utf-8", errors="replace", newline="\n")) for path in paths
        ]
        pages = write_pages(pages_folder, _write_text_files(items, *files), f"../{PAGE}")
    if len(pages) == 1:
        os.replace(pages_folder / pages[0].address, scratch / PAGE)
        pages_folder.rmdir()
    else:
        write_parts(scratch / PAGE, index_parts([page._replace(address=f"{PAGES}/{page.address}") for page in pages]))
    for path in scratch.rglob("*"):
        sync(path)


def _write_text_files(
    items: Iterable[ExtractedDocument], jsonl: TextIO, by_document: TextIO, index: TextIO
) -> Iterator[ExtractedDocument]:
    """Write each document to the three text files, and yield it for the pages."""
    index.write(INDEX_HEAD)
    before = "{"
    for item in items:
        _check_offsets(item)
        jsonl.write(_annotated_line(item))
        by_document.write(f"{before}\n{plain_json(item.doc_id)}: {plain_json(_json_record(item))}")
        index.writelines(_index_lines(item.doc_id, item.entities))
        before = ","
        yield item
    by_document.write("{}\n" if before == "{" else "\n}\n")


def _put_all_in_place(scratch: Path, folder: Path) -> list[Path]:
    shutil.rmtree(folder / PAGES, ignore_errors=True)
    written = [name for name in OUTPUTS if (scratch / name).exists()]
    for name in reversed(written):  # pages before the index page that links them
        os.replace(scratch / name, folder / name)
    sync(folder)
    return [folder / name for name in written]


def _check_offsets(item: ExtractedDocument) -> None:
    for entity in item.entities:
        start, end, text = entity["char_start"], entity["char_end"], entity["extraction_text"]
        if not 0 <= start < end or item.content[start:end] != text:
            raise ValueError(
                f"entity of {item.doc_id!r} not at its place: at {start}-{end} stands "
                f"{item.content[max(start, 0) : end]!r}, expected {text!r}"
            )


def _annotated_line(item: ExtractedDocument) -> str:
    """Format a document like LangExtract's `save_annotated_documents`."""
    extractions = [
        {
            "extraction_class": entity["extraction_class"],
            "extraction_text": entity["extraction_text"],
            "char_interval": {"start_pos": entity["char_start"], "end_pos": entity["char_end"]},
            "alignment_status": _alignment(entity),
            "extraction_index": number,
            "group_index": number,
            "description": None,
            "attributes": entity["attributes"],
        }
        for number, entity in enumerate(item.entities)
    ]
    return plain_json({"extractions": extractions, "text": item.content, "document_id": item.doc_id}) + "\n"


def _json_record(item: ExtractedDocument) -> dict[str, Any]:
    entities = [
        {
            "class": entity["extraction_class"],
            "text": entity["extraction_text"],
            "attributes": entity["attributes"],
            "start_pos": entity["char_start"],
            "end_pos": entity["char_end"],
            "alignment": _alignment(entity).upper(),
        }
        for entity in item.entities
    ]
    return {"source_file": item.doc_id, "entity_count": len(entities), "entities": entities}


def _alignment(entity: Entity) -> str:
    return "match_fuzzy" if entity.get("alignment") == "folded" else "match_exact"


def _index_lines(name: str, entities: Sequence[Entity]) -> Iterator[str]:
    yield f"\n[Document: {_without_line_ends(name)}]\n"
    for entity in entities:
        quoted = json.dumps(entity["extraction_text"], ensure_ascii=False)
        place = f"(chars {entity['char_start']}-{entity['char_end']})"
        yield f"  - {_without_line_ends(entity['extraction_class'])}: {_without_line_ends(quoted)} {place}\n"


def _without_line_ends(text: str) -> str:
    return text.translate(LINE_ENDS)
