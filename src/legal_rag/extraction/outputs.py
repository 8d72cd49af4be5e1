"""The files that entities are written to, and the forms of them that a language model is given.

In: documents and their entities, as a stream. Out: LangExtract's own `entities.jsonl`, `entities.json` by document,
`extraction_index.txt` in plain words, `entities.html` to look at. Each file is put in place whole, when all are made.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from legal_rag.extraction.entities import Entity, ExtractionResult
from legal_rag.extraction.pages import JSONL, PAGE, OutputItem, index_parts, write_pages, write_parts
from legal_rag.folders import beside, locked, put_in_place, sync
from legal_rag.html_pages import plain_json

__all__ = ["OutputItem", "build_enriched_context", "format_extraction_index", "write_outputs"]

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
