"""The text of a file of any kind: Markdown, plain text, HTML, Word with its notes and text boxes, PDF."""

import codecs
import gzip
import logging
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from legal_rag.corpus.cleaning import clean_text

if TYPE_CHECKING:
    from lxml.etree import _Element

TEXT_SUFFIXES = (".txt", ".md", ".html", ".htm", ".pdf", ".docx")
ENCODING_BYTES = 2**24  # of a file, read to detect its encoding
FILE_BYTES = 200_000_000  # of a file that is read whole
PLAIN_BYTES = 50_000_000  # of one without a format of its own
MAX_UNPACKED = 200 * 2**20  # declared size of all parts of a DOCX, bytes
MAX_PAGES = 3000  # of a PDF
MOST_CONTROLS = 0.005  # share of control characters above which a file is not text
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd]")
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # a text box again
_SIGNS = {f"{_WORD}tab": "\t", f"{_WORD}br": "\n", f"{_WORD}cr": "\n", f"{_WORD}noBreakHyphen": "-"}


def read_file(path: str | Path) -> str:
    """Read a file's text, whatever its kind, which its first bytes show.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is too large, empty, scanned, encrypted, damaged or not text; one line says which.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path} (expected Markdown, text, HTML, DOCX or PDF)")
    with path.open("rb") as file:
        head = file.read(1024)
    if not head:
        raise ValueError(f"{path} is empty")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise ValueError(f"{path} is encrypted, or an old Word document (expected one saved as DOCX, without password)")
    suffix = path.suffix.lower()
    is_pdf, is_zip = b"%PDF-" in head or suffix == ".pdf", head.startswith(b"PK\x03\x04") or suffix == ".docx"
    reader = _pdf_text if is_pdf else _docx_text if is_zip else _plain_text
    most = PLAIN_BYTES if reader is _plain_text else FILE_BYTES
    if (size := path.stat().st_size) > most:
        raise ValueError(f"{path} is too large: {size:,} bytes (at most {most:,})")
    text = reader(path)
    if not text.strip():
        raise ValueError(f"no text in {path}")
    return text


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a text file, optionally gzipped: UTF-8, UTF-16 with a BOM, or cp1252, which older French systems write.

    Pass the text through `without_strays`.
    """
    opener: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        encoding = _encoding_of(file)
    errors = "replace" if encoding == "utf-16" else "surrogateescape"
    return cast(TextIO, opener(path, "rt", encoding=encoding, errors=errors, newline=newline))


def without_strays(text: str) -> str:
    """Decode bytes invalid in a file's encoding as cp1252, or as Latin-1 where cp1252 is undefined."""
    return text.translate(_STRAYS) if _STRAY.search(text) else text


_STRAY = re.compile("[\udc80-\udcff]")  # surrogateescape: an undecodable byte
_STRAYS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
_ACCENTED = re.compile("[\x80-\ud7ff\ue000-\U0010ffff]")


def _encoding_of(file: BinaryIO) -> str:
    """Detect the encoding from the first bytes: cp1252 if fewer letters beyond ASCII are UTF-8 than are not.

    A few strays do no harm: `without_strays` reads them as cp1252 too.
    """
    data = bytearray()
    with suppress(EOFError, OSError, zlib.error):  # a damaged archive: its reader reports it
        while len(data) < ENCODING_BYTES and (piece := file.read(min(2**16, ENCODING_BYTES - len(data)))):
            data += piece
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    text = data.decode("utf-8", "surrogateescape")
    n_strays, n_letters = (sum(1 for _ in pattern.finditer(text)) for pattern in (_STRAY, _ACCENTED))
    return "cp1252" if n_strays > n_letters + 3 else "utf-8-sig"  # 3: of a last letter that was cut


def read_plain(path: Path) -> str:
    """Read a text file as it is, in the encoding it shows."""
    with open_text(path, newline="") as file:
        return without_strays(file.read())


def _plain_text(path: Path) -> str:
    text = read_plain(path)
    if len(_CONTROLS.findall(text)) > MOST_CONTROLS * len(text) + 1:
        raise ValueError(f"{path} is no text in a known encoding (expected UTF-8, UTF-16 or Windows-1252)")
    is_html = path.suffix.lower() in (".html", ".htm", ".xhtml") or _HTML.match(text)
    return clean_text(text, is_html=True) if is_html else text


def _pdf_text(path: Path) -> str:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # repairs are not worth a warning; unreadable files raise
    try:
        reader = PdfReader(path)
        is_open = not reader.is_encrypted or bool(reader.decrypt(""))
        n_pages = len(reader.pages) if is_open else 0
        text = "\n\n".join(page.extract_text() for page in reader.pages) if 0 < n_pages <= MAX_PAGES else ""
    except Exception as error:  # a damaged file breaks the parser in any way
        raise _damage(path, "PDF", error) from error
    if not is_open:
        raise ValueError(f"{path} is encrypted (expected a PDF without password)")
    if n_pages > MAX_PAGES:
        raise ValueError(f"{path} is too large: {n_pages} pages (at most {MAX_PAGES})")
    if not text.strip():
        raise ValueError(f"no text in {path}: {n_pages} scanned pages (expected a PDF with text: run OCR on it first)")
    return text


def _docx_text(path: Path) -> str:
    """Read paragraphs, tables, text boxes and insertions, without deletions; then the notes, where lawyers cite."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        with zipfile.ZipFile(path) as parts:
            names, unpacked = parts.namelist(), sum(part.file_size for part in parts.infolist())
            fits = "word/document.xml" in names and unpacked <= MAX_UNPACKED
            read = [name for name in ("document", "footnotes", "endnotes") if fits and f"word/{name}.xml" in names]
            roots = [etree.fromstring(parts.read(f"word/{name}.xml"), parser) for name in read]
    except Exception as error:  # zipfile and lxml raise their own, and more
        raise _damage(path, "DOCX", error) from error
    if "word/document.xml" not in names:
        raise ValueError(f"{path} is a ZIP archive, no Word document (expected DOCX)")
    if not fits:
        raise ValueError(f"{path} is too large: {unpacked:,} bytes when unpacked (at most {MAX_UNPACKED:,})")
    blocks = (block for root in roots for holder in root for block in _blocks(holder))
    return "\n\n".join(filter(str.strip, blocks))


def _blocks(holder: "_Element") -> Iterator[str]:
    """Yield the text of the paragraphs and table rows of a body, a cell or a note."""
    for block in holder:
        if block.tag == f"{_WORD}tbl":
            for row in block.iter(f"{_WORD}tr"):
                yield "\t".join("\n".join(_blocks(cell)) for cell in row.iter(f"{_WORD}tc"))
        elif block.tag == f"{_WORD}p":
            yield "".join(_pieces(block))
        else:
            yield from _blocks(block)  # a content control, an insertion of paragraphs


def _pieces(element: "_Element") -> Iterator[str]:
    for child in element:
        if child.tag == f"{_WORD}t":
            yield child.text or ""
        elif child.tag in _SIGNS:
            yield _SIGNS[child.tag]
        elif child.tag == f"{_WORD}txbxContent":
            yield from (f"\n{block}\n" for block in _blocks(child))
        elif child.tag not in (_FALLBACK, f"{_WORD}del", f"{_WORD}moveFrom", f"{_WORD}pPr"):
            yield from _pieces(child)


def _damage(path: Path, kind: str, error: Exception) -> ValueError:
    problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ValueError(f"{path} is no {kind} that can be read ({problem})")
