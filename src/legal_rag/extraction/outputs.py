"""Extraction results as files: LangExtract JSONL, JSON, extraction index, the HTML page."""

import json
import os
import shutil
import webbrowser
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from hashlib import file_digest, sha256
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO
from urllib.parse import quote

from legal_rag.corpus.documents import Document
from legal_rag.extraction import entities as classes
from legal_rag.extraction.entities import ENTITIES, Entity, ExtractionResult
from legal_rag.files import beside, locked, put_in_place, sync
from legal_rag.html import (
    frame_of_page,
    french_number,
    in_notebook,
    notebook_frame,
    own_script,
    own_style,
    page_template,
    plain_json,
    safe_json,
)

if TYPE_CHECKING:
    from markupsafe import Markup


PACKAGE = "legal_rag.extraction"
JSONL, PAGE = "entities.jsonl", "entities.html"  # what `legal_rag.extraction.outputs` writes, read here
HEADING = "Entités extraites"
PALETTE = 24  # colours in `page.css`
PAGE_DOCUMENTS = 500
PAGE_CHARACTERS = 8_000_000  # of the texts of a page that has more than one document
LISTED_DOCUMENTS = 50_000  # beyond that, the index page names only the first and the last document of each page
MOST_SHOWN = 50  # documents below a notebook's cell: they are saved with it
READ_ALIGNMENTS: Mapping[str | None, Any] = {"match_exact": "exact", "match_fuzzy": "folded"}


ALIGNMENT_LABELS = {
    "exact": "mot pour mot",
    "folded": "retrouvée malgré la graphie",
    "rules": "trouvée par règle",
}


class OutputItem(NamedTuple):
    """A document and what was extracted of it."""

    doc_id: str
    title: str
    content: str
    entities: Sequence[Entity]


class PageLink(NamedTuple):
    """A way to another page."""

    address: str
    label: str


class IndexRow(NamedTuple):
    """A row of the index page: one page of documents."""

    address: str  # as seen from the index page
    number: int  # from 1
    documents: int
    entities: int
    first: str  # what its first and its last document are called
    last: str
    listed: list[tuple[str, str, int]]  # id, title and number of entities of each document; or nothing


def page_parts(items: Iterable[OutputItem], links: Iterable[PageLink] = (), note: str = "") -> Iterator[str]:
    """Stream a page of documents as text.

    Args:
        items: The documents.
        links: To other pages; read after the last document.
        note: A sentence at the top.
    """
    documents = (_block(item) for item in items)
    named: dict[str, Mapping[str, Any]] = {"labels": LABELS, "colours": colours(), "alignments": ALIGNMENT_LABELS}
    settings = safe_json({**{name: list(of.items()) for name, of in named.items()}, "palette": PALETTE})
    values = {"note": note, "documents": documents, "links": links, "settings": settings}
    yield from page_template(PACKAGE, "page.html.j2").generate(**_own("page.js"), **values)


def index_parts(rows: Sequence[IndexRow]) -> Iterator[str]:
    """Stream the index page as text."""
    counts = (sum(row.documents for row in rows), sum(row.entities for row in rows), len(rows))
    summary = "{} documents, {} entités, {} pages".format(*map(french_number, counts))
    pages = [
        row._asdict()
        | {
            "documents": french_number(row.documents),
            "entities": french_number(row.entities),
            "data": safe_json(row.listed),
        }
        for row in rows
    ]
    yield from page_template(PACKAGE, "index.html.j2").generate(**_own("index.js"), summary=summary, pages=pages)


def _block(item: OutputItem) -> dict[str, Any]:
    counts = Counter(one["extraction_class"] for one in item.entities)
    entities = sorted(item.entities, key=lambda one: (one["char_start"], -one["char_end"], one["extraction_class"]))
    data = safe_json({"text": item.content, "entities": [_row(one) for one in entities]})
    return {"id": item.doc_id, "title": item.title, "counts": plain_json(list(counts.items())), "data": data}


def _row(one: Entity) -> tuple[str, int, int, list[tuple[str, str]], str]:
    attributes = [(str(name), _value(value)) for name, value in (one["attributes"] or {}).items()]
    return one["extraction_class"], one["char_start"], one["char_end"], attributes, one.get("alignment", "")


def _value(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _own(script_name: str) -> dict[str, Any]:
    """Return what is ours in a page."""
    return frame_of_page(HEADING, _script(script_name), own_style(PACKAGE, "page.css"))


@cache
def _script(name: str) -> "Markup":
    return own_script(PACKAGE, "folding.js", name)


def colours() -> dict[str, int]:
    """Return the number of each known class's colour: classes of one schema have different ones."""
    numbers: dict[str, int] = {}
    for names in (classes.JURISPRUDENCE, *classes.CLASSES.values()):  # a court's decisions choose first
        taken = {numbers[name] for name in names if name in numbers}
        free = (number for number in range(len(names) + len(taken)) if number not in taken)
        numbers.update({name: next(free) for name in names if name not in numbers})
    return numbers


def write_pages(folder: Path, items: Iterable[OutputItem], index_address: str) -> list[IndexRow]:
    """Write any number of documents as pages, each as large as a browser opens at once, one document in memory.

    A page that is the only one has no links, and can be moved anywhere.

    Args:
        folder: An empty one.
        items: The documents.
        index_address: Of the index page, as seen from the pages.

    Returns:
        The pages, one at least; their addresses are the names of their files.
    """
    rows: list[IndexRow] = []
    ahead = _Ahead(items)
    while not rows or ahead.has_more:
        number = len(rows) + 1
        listed: list[tuple[str, str, int]] = []
        parts = page_parts(_page_of(ahead, listed), _links(number, ahead, index_address))
        write_parts(folder / _name(number), parts)
        rows.append(_index_row(number, listed))
        if ahead.taken > LISTED_DOCUMENTS:
            rows = [row._replace(listed=[]) for row in rows]
    return rows


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text that comes in pieces; what UTF-8 has no bytes for becomes a question mark."""
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.writelines(parts)


class _Ahead:
    """A stream with one item read ahead."""

    def __init__(self, items: Iterable[OutputItem]) -> None:
        self._items = iter(items)
        self.next = next(self._items, None)
        self.taken = 0

    @property
    def has_more(self) -> bool:
        return self.next is not None

    def step(self) -> None:
        self.next = None  # not two documents at a time
        self.next = next(self._items, None)
        self.taken += 1


def _page_of(ahead: _Ahead, listed: list[tuple[str, str, int]]) -> Iterator[OutputItem]:
    """Yield the documents of one page, listing each."""
    characters = 0
    while ahead.next is not None and len(listed) < PAGE_DOCUMENTS:
        item = ahead.next
        characters += len(item.content)
        if listed and characters > PAGE_CHARACTERS:
            return
        listed.append((item.doc_id, item.title, len(item.entities)))
        yield item
        ahead.step()


def _links(number: int, ahead: _Ahead, index_address: str) -> Iterator[PageLink]:
    """Yield the links of a page; when they are asked for, its documents have been taken."""
    if number > 1 or ahead.has_more:
        yield PageLink(index_address, "Toutes les pages")
    if number > 1:
        yield PageLink(_name(number - 1), "Page précédente")
    if ahead.has_more:
        yield PageLink(_name(number + 1), "Page suivante")


def _index_row(number: int, listed: list[tuple[str, str, int]]) -> IndexRow:
    first, last = [title or doc_id for doc_id, title, _ in listed[:1] + listed[-1:]] or ["", ""]
    return IndexRow(_name(number), number, len(listed), sum(count for *_, count in listed), first, last, listed)


def _name(number: int) -> str:
    return f"{number:04}.html"


Results = Iterable[ExtractionResult | OutputItem]


class DocumentTexts(Protocol):
    """What is read of a Library."""

    path: Path

    def document(self, doc_id: str) -> Document:
        """Return a document by its id."""

    def documents(self) -> Iterator[Document]:
        """Stream all documents."""


def view_entities(
    shown: DocumentTexts | str | Path | Results,
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


def _of_library(library: DocumentTexts, doc_id: str | None) -> Iterator[OutputItem]:
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


JSON, INDEX = "entities.json", "extraction_index.txt"
PAGES = "entities_pages"  # folder for the pages of more documents than one page holds

INDEX_HEAD = "===== EXTRACTION INDEX =====\nPre-extracted structured data with source document and character offsets.\n"
# What would begin a line of its own for some reader, beyond what JSON escapes.
LINE_ENDS = {ord(one): " " for one in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


def write_outputs(folder: Path, items: Iterable[OutputItem]) -> list[Path]:
    """Write what was extracted of documents, holding one document at a time.

    Until all files are made, those of an earlier run stay as they are; after an error too.

    Args:
        folder: Where to; made if need be.
        items: The documents, with different ids.

    Returns:
        The four files; then, if there are too many documents for one page, the folder of the pages.

    Raises:
        ValueError: If an entity does not stand where it says, or another process is writing the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scratch = beside(folder / "entities", "new")
    with locked(folder / "entities"), ExitStack() as stack:
        shutil.rmtree(scratch, ignore_errors=True)  # what a kill left
        scratch.mkdir()
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        generation = _write_all(scratch, items)
        return _put_all_in_place(scratch, folder, generation)


def delete_outputs(folder: Path) -> None:
    """Delete the files that `write_outputs` wrote into a folder, as far as they are there."""
    for name in (JSONL, JSON, INDEX, PAGE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / PAGES, ignore_errors=True)


class _Texts(NamedTuple):
    """The files that are written beside the pages."""

    jsonl: TextIO
    by_document: TextIO
    in_words: TextIO


def _write_all(scratch: Path, items: Iterable[OutputItem]) -> str | None:
    """Write all files; return the name of the folder of the pages, if there are several."""
    with ExitStack() as stack:
        texts = _Texts(*(stack.enter_context(_writing(scratch / name)) for name in (JSONL, JSON, INDEX)))
        texts.in_words.write(INDEX_HEAD)
        pages_folder = scratch / PAGES
        pages_folder.mkdir()
        pages = write_pages(pages_folder, _noted(items, texts), f"../../{PAGE}")
    if len(pages) == 1:
        os.replace(pages_folder / pages[0].address, scratch / PAGE)
        generation = None
    else:
        generation = _digest(pages_folder / page.address for page in pages)
        moved = [page._replace(address=f"{PAGES}/{generation}/{page.address}") for page in pages]
        write_parts(scratch / PAGE, index_parts(moved))
    for path in scratch.rglob("*"):
        sync(path)
    return generation


def _noted(items: Iterable[OutputItem], texts: _Texts) -> Iterator[OutputItem]:
    """Write each document to the files of text, and pass it on."""
    before = "{"
    for item in items:
        _check(item)
        texts.jsonl.write(_annotated_line(item))
        texts.by_document.write(f"{before}\n{plain_json(item.doc_id)}: {plain_json(_record(item))}")
        texts.in_words.writelines(_index_lines(item.doc_id, item.entities))
        before = ","
        yield item
    texts.by_document.write("{}\n" if before == "{" else "\n}\n")


def _put_all_in_place(scratch: Path, folder: Path, generation: str | None) -> list[Path]:
    """Move the files to their places: the pages before the index page that names them, the earlier ones last."""
    pages, written = folder / PAGES, [folder / name for name in (JSONL, JSON, INDEX, PAGE)]
    if generation:
        pages.mkdir(exist_ok=True)
        put_in_place(scratch / PAGES, pages / generation)
        written.append(pages)
    for name in (PAGE, JSONL, JSON, INDEX):
        os.replace(scratch / name, folder / name)
    sync(folder)
    if not generation:
        shutil.rmtree(pages, ignore_errors=True)
    for old in pages.iterdir() if generation else ():
        if old.name != generation:
            shutil.rmtree(old, ignore_errors=True)
    return written


def _check(item: OutputItem) -> None:
    for one in item.entities:
        start, end, text = one["char_start"], one["char_end"], one["extraction_text"]
        if not 0 <= start < end or item.content[start:end] != text:
            raise ValueError(
                f"entity of {item.doc_id!r} not at its place: at {start}-{end} stands "
                f"{item.content[max(start, 0) : end]!r}, expected {text!r}"
            )


def _annotated_line(item: OutputItem) -> str:
    """Write a document as LangExtract does: the same names in the same order."""
    extractions = [
        {
            "extraction_class": one["extraction_class"],
            "extraction_text": one["extraction_text"],
            "char_interval": {"start_pos": one["char_start"], "end_pos": one["char_end"]},
            "alignment_status": _alignment(one),
            "extraction_index": number,
            "group_index": number,
            "description": None,
            "attributes": one["attributes"],
        }
        for number, one in enumerate(item.entities)
    ]
    return plain_json({"extractions": extractions, "text": item.content, "document_id": item.doc_id}) + "\n"


def _record(item: OutputItem) -> dict[str, Any]:
    entities = [
        {
            "class": one["extraction_class"],
            "text": one["extraction_text"],
            "attributes": one["attributes"],
            "start_pos": one["char_start"],
            "end_pos": one["char_end"],
            "alignment": _alignment(one).upper(),
        }
        for one in item.entities
    ]
    return {"source_file": item.doc_id, "entity_count": len(entities), "entities": entities}


def _alignment(one: Entity) -> str:
    """Return LangExtract's name of how an entity came to its place, where its text stands exactly in any case."""
    return "match_fuzzy" if one.get("alignment") == "folded" else "match_exact"


def format_extraction_index(results: Sequence[ExtractionResult]) -> str:
    """Write what was extracted of documents in plain words, for a language model to plan by.

    Each entity is one line, whatever stands in the document: its text is quoted as in JSON.
    """
    lines = [line for result in results for line in _index_lines(result.doc_name, result.extractions)]
    return "".join([INDEX_HEAD, *lines])


def build_enriched_context(docs: Iterable[Mapping[str, str]], extraction_results: Sequence[ExtractionResult]) -> str:
    """Join the index of what was extracted and the texts themselves, those that nothing was extracted of too.

    Args:
        docs: Each with `name` and `text`.
        extraction_results: Of some or all of them.
    """
    texts = (
        f"\n===== DOCUMENT {number}: {_one_line(doc['name'])} =====\n{doc['text']}\n"
        for number, doc in enumerate(docs, start=1)
    )
    return "".join([format_extraction_index(extraction_results), *texts])


def _index_lines(name: str, entities: Sequence[Entity]) -> Iterator[str]:
    yield f"\n[Document: {_one_line(name)}]\n"
    for one in entities:
        quoted = json.dumps(one["extraction_text"], ensure_ascii=False)
        place = f"(chars {one['char_start']}-{one['char_end']})"
        yield f"  - {_one_line(one['extraction_class'])}: {_one_line(quoted)} {place}\n"


def _one_line(text: str) -> str:
    return text.translate(LINE_ENDS)


def _writing(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", errors="replace", newline="\n")


def _digest(paths: Iterable[Path]) -> str:
    """Return a name that stands for the content of files."""
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
