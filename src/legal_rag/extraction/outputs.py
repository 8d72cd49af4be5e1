"""Extraction results as files (LangExtract JSONL, JSON, extraction index, HTML pages), and `view_entities`."""

import json
import os
import shutil
import webbrowser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO
from urllib.parse import quote

from legal_rag.base.files import beside, locked, sync
from legal_rag.base.html import (
    NotebookFrame,
    frame_of_page,
    french_number,
    in_notebook,
    own_script,
    own_style,
    page_template,
    plain_json,
    safe_json,
)
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import (
    ARTICLE_CITE,
    CLASSES,
    ENTITIES,
    JURISPRUDENCE,
    LABELS,
    LEGAL_REFERENCE,
    TEXTE_VISE,
    Entity,
    ExtractedDocument,
    ExtractionResult,
    entity_order,
    outcome_of,
)
from legal_rag.law.courts import level_of

JSONL, JSON, INDEX, PAGE = "entities.jsonl", "entities.json", "extraction_index.txt", "entities.html"
PAGES = "entities_pages"  # folder, if there are several pages
OUTPUTS = (JSONL, JSON, INDEX, PAGE, PAGES)
PACKAGE = "legal_rag.extraction"
HEADING = "Entités extraites"
PALETTE = 24  # colours in `page.css`
PAGE_DOCUMENTS = 500
PAGE_CHARACTERS = 8_000_000  # of text per page, unless a single document is longer
LISTED_DOCUMENTS = 50_000  # above that, the index page lists only the first and last document of each page
MAX_SHOWN = 50  # documents in a notebook's output, which is saved with it
INDEX_HEAD = "===== EXTRACTION INDEX =====\nPre-extracted structured data with source document and character offsets.\n"
# Characters that some readers take as line ends and JSON does not escape.
LINE_ENDS = {ord(sign): " " for sign in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
ALIGNMENT_LABELS = {
    "exact": "mot pour mot",
    "folded": "retrouvée malgré la graphie",
    "rules": "trouvée par règle",
}


class DocumentSource(Protocol):
    """The part of a Library that `view_entities` reads."""

    path: Path

    def document(self, doc_id: str) -> Document:
        """Return a document by its id."""

    def documents(self) -> Iterator[Document]:
        """Stream all documents."""


def write_outputs(folder: Path, items: Iterable[ExtractedDocument]) -> list[Path]:
    """Write documents with distinct ids and their entities, one in memory at a time; return the files and the pages'
    folder.

    The files of an earlier call are replaced only when all new ones are complete. ValueError if an entity's text is not
    at its offsets, or another process is writing the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = beside(folder / "entities", "new")
    with locked(folder / "entities"):
        shutil.rmtree(scratch, ignore_errors=True)  # left by a kill
        scratch.mkdir()
        try:
            _write_all(scratch, items)
            shutil.rmtree(folder / PAGES, ignore_errors=True)
            written = [name for name in OUTPUTS if (scratch / name).exists()]
            for name in reversed(written):  # pages before the index page that links them
                os.replace(scratch / name, folder / name)
            sync(folder)
            return [folder / name for name in written]
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
    """Join the extraction index of some or all documents and the full texts, given as `{"name": …, "text": …}`."""
    texts = (
        f"\n===== DOCUMENT {number}: {_without_line_ends(doc['name'])} =====\n{doc['text']}\n"
        for number, doc in enumerate(docs, start=1)
    )
    return "".join([format_extraction_index(extraction_results), *texts])


def view_entities(shown: DocumentSource | str | Path, doc_id: str | None = None) -> Any:
    """Show the entities of a Library, or of a folder that `legal-rag extract` or `run_extraction` wrote, in their
    texts.

    A notebook shows the first documents, or only `doc_id`; elsewhere the browser opens the page, at `doc_id`.

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
    page = _existing(folder / PAGE)
    webbrowser.open(page.resolve().as_uri() + (f"#{quote(doc_id, safe='')}" if doc_id else ""))
    return page


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"no {path.name} in {path.parent}: 'legal-rag extract' writes it")
    return path


def _of_library(library: DocumentSource, doc_id: str | None) -> Iterator[ExtractedDocument]:
    from legal_rag.extraction.store import ExtractionStore

    with ExtractionStore(_existing(library.path / ENTITIES)) as store:
        for document in library.documents() if doc_id is None else [library.document(doc_id)]:
            entities = store.entities_of(document.id, document.content_hash) or []
            yield ExtractedDocument.of(document, entities)


def _of_folder(folder: Path) -> Iterator[ExtractedDocument]:
    with _existing(folder / JSONL).open(encoding="utf-8") as lines:
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
        files = [stack.enter_context(_open(path)) for path in paths]
        pages = _write_pages(pages_folder, _write_text_files(items, *files))
    if len(pages) == 1:
        os.replace(pages_folder / _page_name(1), scratch / PAGE)
        pages_folder.rmdir()
    else:
        _write_parts(scratch / PAGE, _index_parts(pages))
    for path in scratch.rglob("*"):
        sync(path)


def _open(path: Path) -> TextIO:
    """Open a text file to write; what UTF-8 cannot encode becomes a question mark."""
    return path.open("w", encoding="utf-8", errors="replace", newline="\n")


def _write_parts(path: Path, parts: Iterable[str]) -> None:
    with _open(path) as out:
        out.writelines(parts)


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


class PageLink(NamedTuple):
    """A link to another page."""

    address: str
    label: str


Listed = list[tuple[str, str, int]]  # id, title and number of entities of each document of a page


class _PageRow(NamedTuple):
    """What the index page says of a page."""

    first: str  # title or id of its first document
    last: str
    n_documents: int
    n_entities: int
    listed: str  # its documents as JSON; empty beyond `LISTED_DOCUMENTS`


def page_parts(items: Iterable[ExtractedDocument], links: Iterable[PageLink] = (), note: str = "") -> Iterator[str]:
    """Stream a page of documents as text, with a note on top; `links` is read after the last document."""
    named: dict[str, Mapping[str, Any]] = {"labels": LABELS, "colours": colours(), "alignments": ALIGNMENT_LABELS}
    lists = {name: list(of.items()) for name, of in named.items()}
    settings = safe_json({**lists, "palette": PALETTE, "articles": [ARTICLE_CITE, TEXTE_VISE, LEGAL_REFERENCE]})
    values = {"note": note, "documents": map(_document_values, items), "links": links, "settings": settings}
    yield from page_template(PACKAGE, "page.html.j2").generate(**_page_values("page.js"), **values)


def colours() -> dict[str, int]:
    """Return the palette number of each known class, distinct within a schema."""
    numbers: dict[str, int] = {}
    for names in (JURISPRUDENCE, *CLASSES.values()):  # `jurisprudence` takes the first colours
        taken = {numbers[name] for name in names if name in numbers}
        free = (number for number in range(len(names) + len(taken)) if number not in taken)
        numbers.update({name: next(free) for name in names if name not in numbers})
    return numbers


class _Ahead:
    """A stream of documents with one read ahead, so that a page knows whether another follows."""

    def __init__(self, items: Iterable[ExtractedDocument]) -> None:
        self._items = iter(items)
        self.next = next(self._items, None)

    def take_page(self, listed: Listed) -> Iterator[ExtractedDocument]:
        characters = 0
        while self.next is not None and len(listed) < PAGE_DOCUMENTS:
            item = self.next
            characters += len(item.content)
            if listed and characters > PAGE_CHARACTERS:
                return
            listed.append((item.doc_id, _title_of(item), len(item.entities)))
            yield item
            self.next = None  # never two documents in memory
            del item
            self.next = next(self._items, None)


def _write_pages(folder: Path, items: Iterable[ExtractedDocument]) -> list[_PageRow]:
    """Write documents as browser-sized pages into an empty folder; return what each lists, of one page at least."""
    rows: list[_PageRow] = []
    ahead, n_documents = _Ahead(items), 0
    while not rows or ahead.next is not None:
        listed: Listed = []
        number = len(rows) + 1
        parts = page_parts(ahead.take_page(listed), _navigation_links(number, ahead))
        _write_parts(folder / _page_name(number), parts)
        n_documents += len(listed)
        first, last = [title or doc_id for doc_id, title, _ in (*listed[:1], *listed[-1:])] or ["", ""]
        data = safe_json(listed) if n_documents <= LISTED_DOCUMENTS else ""
        rows.append(_PageRow(first, last, len(listed), sum(n for *_, n in listed), data))
    return rows


def _navigation_links(number: int, ahead: _Ahead) -> Iterator[PageLink]:
    """Yield the links of a page; read after its documents, when it is known whether another page follows."""
    has_more = ahead.next is not None
    if number > 1 or has_more:
        yield PageLink(f"../{PAGE}", "Toutes les pages")
    if number > 1:
        yield PageLink(_page_name(number - 1), "Page précédente")
    if has_more:
        yield PageLink(_page_name(number + 1), "Page suivante")


def _index_parts(pages: Sequence[_PageRow]) -> Iterator[str]:
    n_documents, n_entities = sum(row.n_documents for row in pages), sum(row.n_entities for row in pages)
    rows = [
        {
            "address": f"{PAGES}/{_page_name(number)}",
            "number": number,
            "first": row.first,
            "last": row.last,
            "documents": french_number(row.n_documents),
            "entities": french_number(row.n_entities),
            "data": row.listed if n_documents <= LISTED_DOCUMENTS else "",
        }
        for number, row in enumerate(pages, start=1)
    ]
    summary = "{} documents, {} entités, {} pages".format(*map(french_number, (n_documents, n_entities, len(pages))))
    yield from page_template(PACKAGE, "index.html.j2").generate(**_page_values("index.js"), summary=summary, pages=rows)


def _page_name(number: int) -> str:
    return f"{number:04}.html"


def _document_values(item: ExtractedDocument) -> dict[str, Any]:
    document = item.document or Document(id=item.doc_id, content=item.content, title=item.title)
    level = level_of(document.juridiction, document.formation, document.title)
    outcome = outcome_of(document.solution, level, document.content, item.entities).words
    # What a page filters by: court as cited, ISO 8601 date, outcome.
    facets = document.citation.court, document.citation.date, outcome[:1].upper() + outcome[1:]
    entities = list(map(_entity_values, sorted(item.entities, key=entity_order)))
    return {
        "id": item.doc_id,
        "title": _title_of(item),
        "facets": plain_json(facets),
        "counts": plain_json(list(Counter(entity["extraction_class"] for entity in item.entities).items())),
        "data": safe_json({"text": item.content, "entities": entities}),
    }


def _title_of(item: ExtractedDocument) -> str:
    cited = item.document.citation if item.document else None
    return cited.with_name if cited and cited.court else item.title


def _entity_values(entity: Entity) -> tuple[str, int, int, list[tuple[str, str]], str]:
    given: dict[str, Any] = {**(entity["attributes"] or {})}  # a file may hold lists
    attributes = [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for name, value in given.items()
    ]
    return entity["extraction_class"], entity["char_start"], entity["char_end"], attributes, entity.get("alignment", "")


@cache
def _page_values(script_name: str) -> dict[str, Any]:
    script, style = own_script(PACKAGE, "folding.js", script_name), own_style(PACKAGE, "page.css")
    return frame_of_page(HEADING, script, style)
