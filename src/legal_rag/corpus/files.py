"""Any file of one document as clean text: Markdown, plain text, HTML, DOCX with its notes, PDF; is a text French?"""

import codecs
import functools
import gzip
import html
import re
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from html.entities import html5
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from legal_rag.base.text import REPLACEMENT, normalized, read_words, storable
from legal_rag.corpus.docx import read_docx
from legal_rag.corpus.html_page import paper_of_html
from legal_rag.corpus.papers import Paper, RefusedError
from legal_rag.corpus.pdf import read_pdf
from legal_rag.corpus.plain import paper_of_mail, paper_of_text

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

ENCODING_BYTES = 2**20  # of a file, read to detect its encoding
FILE_BYTES = 200_000_000  # of a file that is not read in pieces
MOST_CONTROLS = 0.005  # share of control characters, above which a file is not text
MOST_UNDEFINED = 0.1  # share of characters that the encoding does not define
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f]")
_UNDEFINED = re.compile(r"[\x7f-\x84\x86-\x9f\ufffd]")
_HTML = re.compile(r"\s*(?:<!doctype html|<html[\s>])", re.IGNORECASE)
_PATH = re.compile(
    r"(?:\.{0,2}/|~|[A-Za-z]:[\\/])\S+|.*\w\.(?:docx?|eml|html?|md|odt|pdf|rtf|txt|xhtml)", re.IGNORECASE
)
_STRAY = re.compile("[\udc80-\udcff]")  # surrogateescape: an undecodable byte
_DECODED = re.compile("[^\x00-\x7f\udc80-\udcff]")
_STRAYS = {0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}


def read_file(path: str | Path) -> str:
    """Read a file's text, as `read_paper` does, whose errors it raises: what is indexed is what is verified."""
    return read_paper(path).text


def names_file(text: str) -> bool:
    """Is a line a path, or does it end as a file's name does, whether there is such a file or not?"""
    return _PATH.fullmatch(text.strip()) is not None


def read_paper(path: str | Path) -> Paper:
    """Read a file's text with its places, whatever its kind, which its first bytes or its name show.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is a folder, or too large, empty, scanned, encrypted, damaged, not text: `PATH: PROBLEM`.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        expected = "(expected a file: Markdown, text, HTML, DOCX, PDF or e-mail)"
        if path.is_dir():
            raise ValueError(f"{path} is a folder {expected}")
        raise FileNotFoundError(f"no such file: {path} {expected}")
    kind = "text"
    try:
        check_size(path)
        with path.open("rb") as file:
            head = file.read(1024)
        suffix = path.suffix.lower()
        if b"%PDF-" in head or suffix == ".pdf":
            kind = "PDF"
        elif head.startswith(b"PK\x03\x04") or suffix == ".docx":
            kind = "DOCX"
        elif head.startswith(b"\xd0\xcf\x11\xe0"):
            raise RefusedError("encrypted, or an old Word document (expected one saved as DOCX, without password)")
        elif head.startswith(b"{\\rtf"):
            raise RefusedError("RTF (expected it saved as DOCX)")
        elif suffix == ".eml":
            kind = "e-mail"
        paper = _READERS[kind](path)
    except RefusedError as error:
        raise ValueError(f"{path}: {error}") from error
    except Exception as error:  # arbitrary files break the parsers in every way (struct, key, recursion, zip errors…)
        raise ValueError(f"{path}: unreadable {kind} ({error_line(error)})") from error
    if not paper.text.strip():
        scanned = " (expected a PDF with text; scanned pages are read if tesseract with French is installed)" * (
            kind == "PDF"
        )
        raise ValueError(f"{path}: no text in this file{scanned}")
    return paper


def error_line(error: BaseException) -> str:
    """Describe an exception in one line of at most 300 characters."""
    return " ".join(f"{type(error).__name__}: {error}"[:300].split())


def check_size(path: Path) -> None:
    """Raise ValueError for a file of more than `FILE_BYTES`."""
    if (size := path.stat().st_size) > FILE_BYTES:
        raise RefusedError(f"{size:,} bytes (at most {FILE_BYTES:,})")


def read_plain_file(path: Path) -> str:
    """Read a file as text, whatever is in it."""
    with open_text(path, newline="") as file:
        return without_strays(file.read())


def open_text(path: Path, newline: str | None = None) -> TextIO:
    """Open a text file, optionally gzipped: UTF-8, UTF-16 with a BOM, or cp1252, which older French systems write.

    Pass the text through `without_strays`.
    """
    opener: Callable[..., Any] = gzip.open if path.name.lower().endswith(".gz") else open
    data = bytearray()
    # A damaged archive is for its reader to report.
    with opener(path, "rb") as file, suppress(EOFError, OSError, zlib.error):
        while len(data) < ENCODING_BYTES and (piece := file.read(2**16)):
            data += piece
    encoding = _encoding_of(bytes(data))
    errors = "replace" if encoding == "utf-16" else "surrogateescape"
    return cast(TextIO, opener(path, "rt", encoding=encoding, errors=errors, newline=newline))


def _encoding_of(data: bytes) -> str:
    """Detect the encoding of a file from its first bytes: cp1252 if more bytes than characters are not UTF-8's."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    text = data.decode("utf-8", "surrogateescape")
    return "cp1252" if len(_STRAY.findall(text)) > len(_DECODED.findall(text)) else "utf-8-sig"


def without_strays(text: str) -> str:
    """Decode bytes invalid in a file's encoding as cp1252, or as Latin-1 where cp1252 is undefined."""
    return text.translate(_STRAYS) if _STRAY.search(text) else text


def _read_text(path: Path) -> Paper:
    text, lost = _UNDEFINED.subn(REPLACEMENT, read_plain_file(path))
    if len(_CONTROLS.findall(text)) > MOST_CONTROLS * len(text) or lost > MOST_UNDEFINED * len(text):
        raise RefusedError("no text in a known encoding (expected UTF-8, UTF-16 or Windows-1252)")
    is_html = path.suffix.lower() in (".html", ".htm", ".xhtml") or _HTML.match(text)
    paper = paper_of_html(text) if is_html else paper_of_text(text)
    notice = f"{lost} caractère(s) de ce fichier sont illisibles : son encodage ne les définit pas."
    return paper._replace(notices=(*paper.notices, notice)) if lost else paper


_READERS: dict[str, Callable[[Path], Paper]] = {
    "PDF": read_pdf,
    "DOCX": read_docx,
    "e-mail": lambda path: paper_of_mail(path.read_bytes()),
    "text": _read_text,
}

_LISTS = read_words("legal_rag.corpus")

BLOCK_TAGS, INLINE_TAGS = frozenset(_LISTS["block_tags"]), frozenset(_LISTS["inline_tags"])

MAX_PASSES = 10  # text escaped or nested more often is adversarial

_TAG_NAMES = "|".join(sorted(BLOCK_TAGS | INLINE_TAGS, key=len, reverse=True))

# Up to the ">" that closes a tag, not one inside a quoted value. Possessive: linear time.
_REST_OF_TAG = r"""(?:=\s*"[^"<]*"|=\s*'[^'<]*'|[^<>])*+>"""

# A closed comment, or a closed element that is not rendered; none contains its own opening, so that a page of openings
# takes linear time.
_COMMENT = r"<!--(?:(?!<!--).)*?-->"

UNRENDERED = re.compile(
    rf"{_COMMENT}|<(script|style|title)(?=[\s/>]){_REST_OF_TAG}(?:(?!<\1[\s/>]).)*?</\1\s*>", re.IGNORECASE | re.DOTALL
)

# "<" opens a tag only before a known tag name, so that "a < b" and "<X...>" stay text.
TAG = re.compile(
    rf"</?({_TAG_NAMES})(?=[\s/>]){_REST_OF_TAG}|{_COMMENT}|<!doctype[^<>]*>|<\?xml[^<>]*>", re.IGNORECASE | re.DOTALL
)

REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


def clean_text(text: str, *, is_html: bool = False) -> str:
    """Remove HTML tags, decode character references, and normalise to NFC; idempotent.

    Only known tags count, and only references that end in ";". Text escaped twice is decoded twice; what is still
    markup after `MAX_PASSES` loses its "<" and "&" to U+FFFD.

    Args:
        text: A record's text.
        is_html: Treat blank lines as in HTML even without a tag.
    """
    for _ in range(MAX_PASSES):
        cleaned = _clean_once(text, is_html=is_html)
        if cleaned == text:
            return cleaned
        text, is_html = cleaned, False
    return re.sub("[<&]", "\ufffd", text)


def _clean_once(text: str, *, is_html: bool) -> str:
    if is_html or TAG.search(text):
        text = _text_of_html(text)
    # U+0085 is the ellipsis of Windows-1252, read as Latin-1.
    return normalized(storable(REFERENCE.sub(_decode_reference, text))).replace("\x85", "…")


def _decode_reference(match: re.Match[str]) -> str:
    name = match.group()[1:]
    # html.unescape would read "&notit;" as "¬it;".
    return html.unescape(match.group()) if name.startswith("#") else html5.get(name, match.group())


def _text_of_html(text: str) -> str:
    """Render an HTML fragment: one line a block, `<br>` as a line break, no script, style or title."""
    text = TAG.sub(_blank_of_tag, UNRENDERED.sub("", text))
    lines = (line.strip(" \t\r") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _blank_of_tag(match: re.Match[str]) -> str:
    name = (match.group(1) or "").lower()
    if name == "br" or name in BLOCK_TAGS:
        return "\n"
    return " " if name in ("td", "th") and not match.group().startswith("</") else ""


# Languages that models answer in, and enough others; with all hundred, a few French questions come out as Walloon.
LANGUAGES = "fr en de es it pt nl ca ro la pl sv tr ru el ar zh".split()
FEWEST_LETTERS = 15  # below this, "Oui." or "60 jours :" could be any language
MAX_CHARS = 5000  # of an answer that are classified

_QUOTED = re.compile(r"«[^»]*»|“[^”]*”|\"[^\"]*\"|\[[^\[\]]*\]|`[^`]*`|\bhttps?://\S+|\b[A-Z]{4,}\d*\b")
_LETTER = re.compile(r"[^\W\d_]")

_loading = threading.Lock()


@functools.lru_cache(maxsize=1024)
def is_french(text: str) -> bool:
    """Is French the likeliest language of a text, however short? "What is unique?" is not French."""
    with _loading:  # else each thread would load its own model
        identifier = _identifier()
    return bool(identifier.classify(text)[0] == "fr")


def is_french_answer(answer: str) -> bool:
    """Is an answer French, apart from its quotations and markers?"""
    prose = " ".join(_QUOTED.sub(" ", answer[:MAX_CHARS]).split())
    return len(_LETTER.findall(prose)) < FEWEST_LETTERS or is_french(prose)


@functools.cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(LANGUAGES)
    return identifier
