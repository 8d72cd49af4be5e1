"""Read any file as text: Markdown, plain text, HTML, DOCX with its notes, PDF."""

import re
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

from legal_rag.base.text import INVISIBLE, normalized, storable
from legal_rag.corpus.cleaning import clean_text
from legal_rag.corpus.sources import TEXT_READERS

MAX_BYTES = 64 * 2**20  # of a file
MAX_UNPACKED = 200 * 2**20  # declared size of all parts of a DOCX, bytes
MAX_PAGES = 3000  # of a PDF
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd]")
MOST_CONTROLS = 0.005  # share of control characters, above which a file is not text
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_WORDS = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_UNSEEN = str.maketrans(dict.fromkeys(INVISIBLE))
_OTHER_DIGIT = re.compile(r"[^\W\D0-9]")


def read_text(path: str | Path) -> str:
    """Read a file's text, whatever its kind, which its first bytes show.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is too large, empty, scanned, encrypted, damaged or not text; one line says which.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path} (expected Markdown, text, HTML, DOCX or PDF)")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{path} is too large: {size:,} bytes (at most {MAX_BYTES:,})")
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise ValueError(f"{path} is empty")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise ValueError(f"{path} is encrypted, or an old Word document (expected one saved as DOCX, without password)")
    text = _read_by_kind(path, head)
    if not text.strip():
        raise ValueError(f"no text in {path}")
    return text


def readable(text: str) -> str:
    """Normalise a text as displayed: composed, without invisible characters, its digits from 0 to 9."""
    text = normalized(storable(text)).translate(_UNSEEN).replace("\r\n", "\n").replace("\r", "\n")
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit.group(), digit.group())), text)


def _read_by_kind(path: Path, head: bytes) -> str:
    if b"%PDF-" in head:
        return _read_pdf_text(path)
    if head.startswith(b"PK\x03\x04"):
        return _read_docx_text(path)
    text = TEXT_READERS[".txt"](path)
    if len(_CONTROLS.findall(text)) > MOST_CONTROLS * len(text):
        raise ValueError(f"{path} is no text in a known encoding (expected UTF-8, UTF-16 or Windows-1252)")
    if path.suffix.lower() in (".html", ".htm", ".xhtml") or _HTML.match(text):
        return clean_text(text, is_html=True)
    return text


def _read_pdf_text(path: Path) -> str:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError(f"{path} is encrypted (expected a PDF without password)")
        if (n_pages := len(reader.pages)) > MAX_PAGES:
            raise ValueError(f"{path} is too large: {n_pages} pages (at most {MAX_PAGES})")
        text = TEXT_READERS[".pdf"](path) if not reader.is_encrypted else _join_pages(reader)
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(_explain_damage(path, "PDF", error)) from error
    # A damaged file breaks the parser in any way; one that asks for a missing package is encrypted.
    except (
        PyPdfError,
        ArithmeticError,
        AttributeError,
        ImportError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
    ) as error:
        raise ValueError(_explain_damage(path, "PDF", error)) from error
    if not text.strip():
        raise ValueError(f"no text in {path}: {n_pages} scanned pages (expected a PDF with text: run OCR on it first)")
    return text


def _join_pages(reader: object) -> str:
    return "\n\n".join(page.extract_text() for page in reader.pages)  # type: ignore[attr-defined]


def _read_docx_text(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as parts:
            if "word/document.xml" not in parts.namelist():
                raise ValueError(f"{path} is a ZIP archive, no Word document (expected DOCX)")
            if (unpacked := sum(part.file_size for part in parts.infolist())) > MAX_UNPACKED:
                raise ValueError(f"{path} is too large: {unpacked:,} bytes when unpacked (at most {MAX_UNPACKED:,})")
            notes = "\n\n".join(_read_notes(parts))
        text = TEXT_READERS[".docx"](path)
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(_explain_damage(path, "DOCX", error)) from error
    except Exception as error:  # python-docx and lxml raise their own, KeyError for a missing part, and more
        raise ValueError(_explain_damage(path, "DOCX", error)) from error
    return "\n\n".join(filter(str.strip, [text.replace("\n", "\n\n"), notes]))


def _read_notes(parts: zipfile.ZipFile) -> Iterator[str]:
    """Yield the footnotes and endnotes, where lawyers cite; python-docx leaves them out."""
    from lxml import etree

    for name in _NOTES:
        if name in parts.namelist():
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            root = etree.fromstring(parts.read(name), parser)
            for note in root.iter(f"{_WORDS}footnote", f"{_WORDS}endnote"):
                text = "".join(run.text or "" for run in note.iter(f"{_WORDS}t"))
                if text.strip():
                    yield text.strip()


def _explain_damage(path: Path, kind: str, error: Exception) -> str:
    return f"{path} is no {kind} that can be read ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
