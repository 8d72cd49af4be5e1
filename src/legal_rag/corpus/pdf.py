"""PDF files as papers: columns, paragraphs, footnotes, headers, line numbers by their places; scanned pages by OCR."""

import ctypes
import math
import os
import re
import shutil
import subprocess
import threading
import time
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from legal_rag.corpus.papers import (
    EDGE_NUMBER,
    PAGE_NUMBER,
    SYMBOLS,
    UNITS,
    Gap,
    Line,
    Paper,
    PaperWriter,
    RefusedError,
    displayed,
    is_item,
    is_unfinished,
    join,
    key_of_margin,
    vocabulary_of,
)

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

# Lengths are in sizes of the font, if no unit is said.
WORD_GAP = 1.4  # a wider one separates columns or cells
CELL_GAP = 2.5  # a wider one within a line becomes a tab
GUTTER = 0.9  # between columns, at least
WIDE_GUTTER = 2.0  # a narrower one must go through twice as many rows
FLUSH = 0.6  # share of the lines of a column that start at one place
FEWEST_ROWS = 3  # of two columns side by side
ONE_SIDED = 0.35  # share of the rows of two columns that have a line on one side alone, above which it is a table
CONTINUED = 0.3  # share of a column's lines that go on, from which it is prose; of half as many it may be
SAME_LINE = 0.45  # between the baselines of letters of one line, at most
NEW_PARAGRAPH = 1.25  # of the usual distance between lines
LEADING = 1.15  # between the baselines of two lines, at least
FAR = 1.7  # between the baselines of lines that do not belong together
INDENT = 0.9
DEEPER = 1.5  # of a quotation set off
RAISED = 0.15  # above the baseline
SMALL = 0.95  # of the page's size: footnotes
EDGE_ROWS = 3  # at the top and bottom of a page, that may be repeated on others
FEWEST_NUMBERED = 3  # lines with numbers in the margin
FEWEST_LETTERS = 100  # on a page that an image covers: fewer are a stamp on a scanned page
COVERED = 0.5  # of a page, by images: it is a scanned one
MOST_PAGES = 10_000  # a page may be named any number of times
OCR_DPI = 300
OCR_PIXELS = 25_000_000  # a page, about A2: a larger one is read at a lower resolution
LEAST_DPI = 70  # that tesseract takes
OCR_SECONDS = 120.0  # a page
OCR_FILE_SECONDS = 600.0  # all pages of a file
ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}  # more wait for each other

MIXED = "La page {} a peut-être plusieurs colonnes : leurs lignes peuvent être mêlées."
RECOGNISED = "Texte reconnu par OCR, qui peut se tromper d'un caractère : {}."
INSTALL = "pour les lire, installez tesseract et sa langue française (tesseract-ocr-fra)"
FAILED = "l'OCR a échoué ou aurait pris trop de temps"

_pdfium = threading.Lock()  # not thread-safe
_NOTE_START = re.compile(r"\s*[\[(]?(\d{1,4})[\])]?[.)]?\s+(?=\S)")
# Hyphens at the ends of lines as the reader marks them, ligatures, and signs of symbol fonts.
_LETTERS = SYMBOLS | {0xFFFE: "-", 0x02: "-", 0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl"}


class _Char(NamedTuple):
    text: str
    left: float
    right: float
    base: float  # the baseline's height above the bottom
    size: float  # of the font


class _Piece(NamedTuple):
    """Letters of one line that follow each other without a wide gap."""

    text: str
    left: float
    right: float
    base: float
    size: float
    calls: tuple[tuple[int, str], ...] = ()  # raised numbers: offset, number
    is_note: bool = False  # does a raised number open it?
    is_cell: bool = False  # does it begin a cell of a table?


Row = list[_Piece]  # from left to right


class _Page(NamedTuple):
    number: int
    rows: list[Row]


def read_pdf(file: Path) -> Paper:
    """Read a PDF: the pages' text, then footnotes, then headers and footers; scanned pages by OCR where there is one.

    RefusedError if it needs a password or has more than `MOST_PAGES`.
    """
    import pypdfium2

    with _pdfium:
        try:
            document = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError as error:
            if "assword" in str(error):
                raise RefusedError("encrypted (expected a PDF without password)") from error
            raise
        try:
            return _read_document(document)
        finally:
            document.close()


def _read_document(document: "PdfDocument") -> Paper:
    if len(document) > MOST_PAGES:
        raise RefusedError(f"{len(document):,} pages (at most {MOST_PAGES:,})")
    import pypdfium2

    pages: list[_Page] = []
    recognised: list[int] = []
    unread: list[int] = []
    damaged: list[int] = []
    ocr_seconds = OCR_FILE_SECONDS
    for number in range(1, len(document) + 1):
        try:
            page = document[number - 1]
        except pypdfium2.PdfiumError:
            damaged.append(number)
            continue
        chars = _chars(page)
        if _is_scanned(page, chars):
            start = time.monotonic()
            scanned = _recognised(page, min(OCR_SECONDS, ocr_seconds)) if has_ocr() and ocr_seconds > 0 else None
            ocr_seconds -= time.monotonic() - start
            if scanned is None:
                unread.append(number)
            else:
                chars = scanned
                recognised.append(number)
        pages.append(_Page(number, _rows(_pieces(chars))))
        page.close()
    paper = _paper_of(pages)
    notices, missing = list(paper.notices), list(paper.unread)
    if recognised:
        notices.append(RECOGNISED.format(_pages(recognised)))
    if unread:
        verb = "n'ont" if len(unread) > 1 else "n'a"
        reason = FAILED if has_ocr() else INSTALL
        missing.append(f"{_pages(unread).capitalize()} {verb} pas de texte, mais une image : {reason}.")
    if damaged:
        verb = "n'ont pu être lues" if len(damaged) > 1 else "n'a pu être lue"
        missing.append(f"{_pages(damaged).capitalize()} {verb}.")
    return paper._replace(notices=tuple(notices), unread=tuple(missing))


def _pages(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"la page {numbers[0]}"
    return f"les pages {', '.join(map(str, numbers[:-1]))} et {numbers[-1]}"


def _chars(page: "PdfPage") -> list[_Char]:
    """Return the letters of a page in the order of its file, blanks that its reader adds included, upright."""
    from pypdfium2 import raw

    text = page.get_textpage()
    count = text.count_chars()
    angles = Counter(round(raw.FPDFText_GetCharAngle(text, at) / (math.pi / 2)) % 4 for at in range(0, count, 50))
    turns = angles.most_common(1)[0][0] if angles else 0
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
    to_box, to_matrix, to_x, to_y = map(ctypes.byref, (box, matrix, x, y))
    chars = []
    level = size = 0.0
    for at in range(count):
        code = raw.FPDFText_GetUnicode(text, at)
        raw.FPDFText_GetLooseCharBox(text, at, to_box)
        raw.FPDFText_GetCharOrigin(text, at, to_x, to_y)
        left, right, base = _upright(box, x.value, y.value, turns)
        if code > 32 and (base != level or not size):  # the size changes with the line, and where a letter is raised
            raw.FPDFText_GetMatrix(text, at, to_matrix)
            level, size = base, raw.FPDFText_GetFontSize(text, at) * math.hypot(matrix.c, matrix.d)
        chars.append(_Char(_LETTERS.get(code) or chr(code), left, right, base, size))
    text.close()
    return chars


def _upright(box: Any, x: float, y: float, turns: int) -> tuple[float, float, float]:
    """Return the left, the right and the baseline of a letter that stands turned clockwise by quarters of a circle."""
    if turns == 0:
        return box.left, box.right, y
    if turns == 1:
        return -box.top, -box.bottom, x
    return (-box.right, -box.left, -y) if turns == 2 else (box.bottom, box.top, -x)


def _is_scanned(page: "PdfPage", chars: list[_Char]) -> bool:
    """Is a page an image, but for a few letters?"""
    from pypdfium2 import raw

    letters = sum(not char.text.isspace() for char in chars)
    if letters >= FEWEST_LETTERS:
        return False
    width, height = page.get_size()
    covered = 0.0
    for image in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,)):
        left, bottom, right, top = image.get_bounds()
        covered += max(0, right - left) * max(0, top - bottom)
    return covered > COVERED * width * height


@cache
def has_ocr() -> bool:
    """Is tesseract installed, with French?"""
    program = shutil.which("tesseract")
    if not program:
        return False
    languages = subprocess.run([program, "--list-langs"], capture_output=True, text=True, check=False)  # noqa: S603
    return "fra" in languages.stdout.split()


def _recognised(page: "PdfPage", seconds: float) -> list[_Char] | None:
    """Read the image of a page by OCR, as letters with places; None if that fails or takes longer."""
    import pypdfium2

    width, height = page.get_size()
    dpi = min(OCR_DPI, 72 * math.sqrt(OCR_PIXELS / (width * height)))
    bitmap = page.render(scale=dpi / 72, grayscale=True)
    pixels = bitmap.to_numpy()
    image = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + pixels.tobytes()
    resolution = str(max(round(dpi), LEAST_DPI))
    command = ["tesseract", "stdin", "stdout", "-l", "fra", "--dpi", resolution, "-c", "textonly_pdf=1", "pdf"]
    try:
        run = subprocess.run(  # noqa: S603
            command, input=image, capture_output=True, check=True, timeout=seconds, env=os.environ | ONE_THREAD
        )
    except (OSError, subprocess.SubprocessError):
        return None
    document = pypdfium2.PdfDocument(run.stdout)
    try:
        chars = _chars(document[0])
    finally:
        document.close()
    # The size is measured line by line: what is nearly the usual one is that.
    usual = Counter(round(char.size) for char in chars).most_common(1)[0][0] if chars else 0
    return [char._replace(size=usual) if abs(char.size - usual) < 0.2 * usual else char for char in chars]


def _pieces(chars: list[_Char]) -> list[_Piece]:
    """Join letters that follow each other on a line."""
    pieces: list[_Piece] = []
    current: list[_Char] = []
    is_blank = False
    last: _Char | None = None
    for char in chars:
        if char.text.isspace() or char.text == "\0":
            is_blank = True
            continue
        if last and not _follows(last, char):
            pieces.append(_piece(current))
            current, is_blank = [], False
        if is_blank and current:
            current.append(_Char(" ", char.left, char.left, char.base, char.size))
        current.append(char)
        last, is_blank = char, False
    if current:
        pieces.append(_piece(current))
    return pieces


def _follows(last: _Char, char: _Char) -> bool:
    size = max(last.size, char.size)
    return abs(char.base - last.base) < SAME_LINE * size and -size < char.left - last.right < WORD_GAP * size


def _piece(chars: list[_Char]) -> _Piece:
    """Make a piece of letters; raised numbers are calls of notes, and "n" with a raised "o" is "n°"."""
    bases = Counter(char.base for char in chars if char.text != " ")
    base = max(bases, key=lambda base: (bases[base], -base))
    size = next(char.size for char in chars if char.base == base)
    text = ""
    calls: list[tuple[int, str]] = []
    is_note = False
    for is_raised, group in groupby(chars, key=lambda char: char.text != " " and char.base > base + RAISED * size):
        run = displayed("".join(char.text for char in group))
        if not is_raised:
            text += run
        elif run.strip().isdecimal() and not UNITS.search(text.rstrip()):
            text = text.rstrip()
            if text:
                calls.append((len(text), run.strip()))
            else:
                is_note = True
                text = f"{run.strip()} "
        else:
            text = text.rstrip() + ("°" if run.strip() in ("o", "os") and text[-1:] in ("n", "N") else run)
    return _Piece(text, chars[0].left, chars[-1].right, base, size, tuple(calls), is_note)


def _rows(pieces: list[_Piece]) -> list[Row]:
    """Group pieces side by side to rows, from the top to the bottom of a page."""
    rows: list[Row] = []
    for piece in sorted(pieces, key=lambda piece: -piece.base):
        first = rows[-1][0] if rows else None
        if first and first.base - piece.base < SAME_LINE * max(first.size, piece.size):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [sorted(row, key=lambda piece: piece.left) for row in rows]


def _text(row: Row) -> str:
    return _joined(row)[0]


def _joined(row: Row, *, is_stretched: bool = False) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return the text of a row, with tabs between cells, and the notes that it calls by their offsets."""
    text = ""
    calls: list[tuple[int, str]] = []
    for before, piece in zip([None, *row], row, strict=False):
        gap = (piece.left - before.right) / piece.size if before else 0
        is_cell = piece.is_cell or (gap > CELL_GAP and not is_stretched)
        text = text.rstrip() + ("\t" if is_cell else " " if gap > 0.15 else "") if before else ""
        calls += [(len(text) + offset, name) for offset, name in piece.calls]
        text += piece.text
    return text.strip(), tuple(calls)


def _base(row: Row) -> float:
    return min(piece.base for piece in row)


def _size(rows: list[Row]) -> float:
    """Return the size of most letters."""
    lengths: Counter[float] = Counter()
    for row in rows:
        for piece in row:
            lengths[round(piece.size, 1)] += len(piece.text)
    return lengths.most_common(1)[0][0] if lengths else 1.0


def _row_size(row: Row) -> float:
    return max(row, key=lambda piece: len(piece.text)).size


def _paper_of(pages: list[_Page]) -> Paper:
    """Make a paper of pages: lines joined over columns and pages, notes behind, headers last."""
    margins = _take_margins(pages)
    size = _size([row for page in pages for row in page.rows])
    texts = [_text(row) for page in pages for row in page.rows]
    writer = PaperWriter(vocabulary_of("\n".join(texts)))
    body: list[Line] = []
    notes: list[tuple[str, str, list[Line]]] = []  # page, number, lines
    last = 0  # number of a note
    for page in pages:
        name = str(page.number)
        rows, note_rows = _split_notes(_without_line_numbers(page.rows), size, last)
        is_mixed = False
        above: list[Row] = []
        for column, is_doubtful in _columns(rows, size):
            lines = _lines(column, name, body[-1] if body else None)
            body += [lines[0]._replace(gap=_gap_between(above, column)), *lines[1:]]
            is_mixed |= is_doubtful
            above = column
        if is_mixed:
            writer.notices.append(MIXED.format(name))
        for line, row in zip(_lines(note_rows, name), note_rows, strict=True):
            match = _NOTE_START.match(line.text)
            if row[0].is_note and match:
                last, cut = int(match[1]), match.end()
                calls = tuple((offset - cut, called) for offset, called in line.calls)
                notes.append((name, match[1], [line._replace(text=line.text[cut:], calls=calls, gap="line", page="")]))
            else:
                notes[-1][2].append(line._replace(gap="line", page=""))
    writer.write_lines(body)
    for page_name, name, lines in notes:
        writer.mark("page", page_name)
        writer.mark("note", name)
        writer.write_lines(lines)
    for text in margins:
        writer.mark("margin", "")
        writer.write(text, "\n\n")
    return writer.paper()


def _gap_between(above: list[Row], rows: list[Row]) -> Gap:
    """Say what separates a column from what is read before it: a page's end, or what stands right above it."""
    if not above or _base(above[-1]) < _base(rows[0]):
        return "page"
    return "page" if _is_wide(above[-1], rows[0]) else "line"


def _take_margins(pages: list[_Page]) -> list[str]:
    """Take page numbers and what is repeated at the edges of pages out of these; return the latter, once each."""
    counts: Counter[tuple[str, int]] = Counter()  # text, height on the page
    for page in pages:
        counts.update({_margin_key(page.rows[at]) for at in _edges(page.rows)})
    margins: dict[str, str] = {}
    for page in pages:
        dropped = set()
        edges = _edges(page.rows)
        for at in edges:
            text = _text(page.rows[at])
            key, _ = _margin_key(page.rows[at])
            is_apart = (at == 0 and _gap(page.rows, 1)) or (at == edges[-1] and _gap(page.rows, at))
            if PAGE_NUMBER.fullmatch(text) or (is_apart and EDGE_NUMBER.fullmatch(text)):
                dropped.add(at)
            elif counts[_margin_key(page.rows[at])] > 1 and key:
                margins.setdefault(key, text)
                dropped.add(at)
        page.rows[:] = [row for at, row in enumerate(page.rows) if at not in dropped]
    return list(margins.values())


def _margin_key(row: Row) -> tuple[str, int]:
    return key_of_margin(_text(row)), round(_base(row) / 10)


def _edges(rows: list[Row]) -> list[int]:
    return sorted({*range(len(rows))[:EDGE_ROWS], *range(len(rows))[-EDGE_ROWS:]})


def _without_line_numbers(rows: list[Row]) -> list[Row]:
    """Take the numbers of lines out of the margin: each by one more, or every fifth, below one another."""
    for side in (0, -1):
        numbered = [
            (at, row[side]) for at, row in enumerate(rows) if len(row) > 1 and row[side].text.strip().isdecimal()
        ]
        if len(numbered) < FEWEST_NUMBERED:
            continue
        edges = [piece.right for _, piece in numbered]
        steps = Counter(int(b.text) - int(a.text) for (_, a), (_, b) in pairwise(numbered))
        step, count = steps.most_common(1)[0]
        is_dense = step in (5, 10) or len(numbered) > 0.4 * (numbered[-1][0] - numbered[0][0] + 1)
        if step in (1, 5, 10) and count >= 0.7 * (len(numbered) - 1) and is_dense and max(edges) - min(edges) < 8:
            for at, number in numbered:
                rows[at] = [piece for piece in rows[at] if piece is not number]
    return rows


def _split_notes(rows: list[Row], size: float, last: int) -> tuple[list[Row], list[Row]]:
    """Split a page into its body and the footnotes at its bottom; the rows that open one are marked.

    A note opens with a raised number; if none does on the page, with the number after the last note's or one that the
    page calls, in small letters or below a gap.
    """
    called = {int(name) for row in rows for piece in row for _, name in piece.calls}
    small = len(rows)
    while small and _row_size(rows[small - 1]) < SMALL * size:
        small -= 1
    start = len(rows)
    notes: list[Row] = []
    raised = {at for at, row in enumerate(rows) if row[0].is_note or _is_raised_piece(row)}
    for at, row in enumerate(rows):
        match = _NOTE_START.match(_text(row))
        number = int(match[1]) if match else 0
        is_next = number == last + 1 or number == 1 or (last + 1 not in called and number > last)
        is_note = is_next and (at >= small or (number in called and (at > start or _gap(rows, at))))
        if number and (at in raised if raised else is_note):
            start, last = min(start, at), number
            notes.append([row[0]._replace(is_note=True), *row[1:]])
        else:
            notes.append([row[0]._replace(is_note=False), *row[1:]])
    if last and small < start and _gap(rows, small):
        start = small  # a note goes on from the page before
    return rows[:start], notes[start:]


def _gap(rows: list[Row], at: int) -> bool:
    """Is there a wide gap above a row?"""
    return 0 < at < len(rows) and _is_wide(rows[at - 1], rows[at])


def _is_wide(above: Row, row: Row) -> bool:
    return _base(above) - _base(row) > FAR * _row_size(row)


def _is_raised_piece(row: Row) -> bool:
    """Does a row open with a raised number that stands by itself?"""
    first = row[0]
    if len(row) < 2 or not first.text.strip().isdecimal():
        return False
    return first.size < SMALL * row[1].size and first.base > row[1].base + RAISED * row[1].size


def _columns(rows: list[Row], size: float) -> Iterator[tuple[list[Row], bool]]:
    """Yield the columns of a page in reading order, and whether there may be more than one.

    Rows in two columns are prose if the lines on each side go on from one to the next; else cells of a table.
    """
    wide = _side_by_side(rows)
    band = _widest_band(wide, size)
    if not band:
        if rows:
            yield rows, False
        return
    start, end, middle = band
    yield from _columns(_rows_of(wide[:start]), size)
    # Lines of two columns need not stand on the same height: each side gets its rows anew.
    pieces = [piece for row in wide[start:end] for piece in row]
    sides = [_rows([piece for piece in pieces if (piece.left < middle) == is_left]) for is_left in (True, False)]
    share = _share_continued(sides)
    gutters = _gutters(wide[start:end], size)
    is_wide = min(median(len(_text(row)) for row in side) for side in sides) > 12
    if len(gutters) > 1 or not is_wide or share < CONTINUED or _has_cells(wide[start:end], middle):
        is_doubtful = len(gutters) == 1 and is_wide and CONTINUED / 2 <= share < CONTINUED
        yield _table(_rows(pieces), gutters), is_doubtful
    else:
        for side in sides:
            yield from _columns(side, size)
    yield from _columns(_rows_of(wide[end:]), size)


def _rows_of(rows: list[Row]) -> list[Row]:
    return _rows([piece for row in rows for piece in row])


def _side_by_side(rows: list[Row]) -> list[Row]:
    """Group rows whose pieces stand beside each other, if not on the same height."""
    wide: list[Row] = []
    for row in rows:
        above = wide[-1] if wide else []
        is_beside = bool(above) and max(piece.base for piece in above) - _base(row) < LEADING * _row_size(row)
        if is_beside and all(one.right < piece.left or piece.right < one.left for one in above for piece in row):
            wide[-1] = sorted([*above, *row], key=lambda piece: piece.left)
        else:
            wide.append(row)
    return wide


def _has_cells(rows: list[Row], middle: float) -> bool:
    """Have rows in two columns the heights of a table's: one where both start, many with a line on one side alone?"""
    both = [row for row in rows if row[0].left < middle <= row[-1].left]
    level = sum(abs(row[0].base - row[-1].base) < RAISED * row[0].size for row in both)
    return level > 0.9 * len(both) and len(rows) - len(both) > ONE_SIDED * len(rows)


def _widest_band(rows: list[Row], size: float) -> tuple[int, int, float] | None:
    """Find the most rows that one gutter goes through: their first, the one after the last, the gutter's middle."""
    best: tuple[int, int, int, float] | None = None  # rows with both sides, first, end, middle
    for start, row in enumerate(rows):
        if best and best[1] <= start < best[2] and len(row) < 3:
            continue
        for before, after in pairwise(row):
            left, right = before.right, after.left
            starts: Counter[int] = Counter()  # of the right side's lines
            end = start
            last = start
            while end < len(rows):
                spaces = [(max(a, left), min(b, right)) for a, b in _spaces(rows[end])]
                space = max(spaces, key=lambda space: space[1] - space[0])
                if space[1] - space[0] < GUTTER * size:
                    break
                left, right = space
                end += 1
                if rows[end - 1][0].left < left and rows[end - 1][-1].right > right:
                    starts[round(next(piece.left for piece in rows[end - 1] if piece.left >= right) / size)] += 1
                    last = end
            # A line on one side alone, far below, is another paragraph.
            while end > last and _gap(rows[:end], end - 1):
                end -= 1
            both = starts.total()
            # The blanks of justified lines may stand below each other by chance, but not the words after them.
            is_flush = both and max(starts[at] + starts[at + 1] for at in starts) > FLUSH * both
            is_enough = both >= (FEWEST_ROWS if right - left > WIDE_GUTTER * size else 2 * FEWEST_ROWS)
            if is_enough and is_flush and (not best or both > best[0]):
                best = (both, start, end, (left + right) / 2)
    return best[1:] if best else None


def _spaces(row: Row) -> list[tuple[float, float]]:
    edges = [float("-inf"), *(edge for piece in row for edge in (piece.left, piece.right)), float("inf")]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _share_continued(sides: list[list[Row]]) -> float:
    """Return the share of the lines of columns that the next line goes on with."""
    pairs = [(_text(above), _text(below)) for side in sides for above, below in pairwise(side)]
    continued = [is_unfinished(above, below) or below[0].islower() for above, below in pairs if above and below]
    return sum(continued) / len(continued) if continued else 0.0


def _gutters(rows: list[Row], size: float) -> list[float]:
    """Return the middles of the gaps between columns, from left to right: nothing stands in them."""
    gutters: list[float] = []
    right = min(row[0].right for row in rows)
    for piece in sorted((piece for row in rows for piece in row), key=lambda piece: piece.left):
        if piece.left - right >= GUTTER * size:
            following = [next((one.left for one in row if one.left >= piece.left), None) for row in rows]
            starts = [left - piece.left for left in following if left is not None]
            if sum(start < size for start in starts) > FLUSH * len(starts):
                gutters.append((piece.left + right) / 2)
        right = max(right, piece.right)
    return gutters


def _table(rows: list[Row], gutters: list[float]) -> list[Row]:
    """Return the rows of a table, each of one line at least: cells go on where the next word had no place."""
    lines = [
        {at: list(cell) for at, cell in groupby(row, key=lambda piece: bisect(gutters, piece.left))} for row in rows
    ]
    limits = {at: max(line[at][-1].right for line in lines if at in line) for line in lines for at in line}
    table: list[dict[int, _Piece]] = []
    for line in lines:
        cells = {at: _merged(pieces) for at, pieces in line.items()}
        above = table[-1] if table else {}
        if all(at in above and _may_go_on(above[at], cell, limits[at]) for at, cell in cells.items()) and any(
            _does_go_on(above[at].text, cell.text) for at, cell in cells.items()
        ):
            for at, cell in cells.items():
                cut, blank = join(above[at].text, cell.text, frozenset())
                head = above[at].text[: len(above[at].text) - cut] + blank
                calls = (*above[at].calls, *((len(head) + offset, name) for offset, name in cell.calls))
                above[at] = cell._replace(text=head + cell.text, calls=calls, is_cell=True)
        else:
            table.append({at: cell._replace(is_cell=True) for at, cell in cells.items()})
    return [list(row.values()) for row in table]


def _merged(pieces: list[_Piece]) -> _Piece:
    text, calls = _joined(pieces, is_stretched=True)
    return pieces[0]._replace(text=text, calls=calls, right=pieces[-1].right)


def _may_go_on(above: _Piece, cell: _Piece, limit: float) -> bool:
    """Had the first word of a line no place on the line above, or does the phrase go on?"""
    width = (cell.right - cell.left) / len(cell.text) * (len(cell.text.split(maxsplit=1)[0]) + 1)
    return above.right + width > limit or _does_go_on(above.text, cell.text)


def _does_go_on(above: str, text: str) -> bool:
    return is_unfinished(above, text) and not above.endswith(".")


def _lines(rows: list[Row], page: str, before: Line | None = None) -> list[Line]:
    """Make lines of the rows of a column, after a line: their paragraphs, and those set off as quotations."""
    if not rows:
        return []
    distances = [_base(above) - _base(below) for above, below in pairwise(rows)]
    usual = sorted(distances)[len(distances) // 4] if distances else 0.0
    left = _margin(rows)
    right = sorted(row[-1].right for row in rows)[int(0.9 * (len(rows) - 1))]
    lines: list[Line] = []
    starts: list[float] = []
    ends = [abs(row[-1].right - right) < INDENT * _row_size(row) for row in rows]
    is_justified = sum(ends) > len(rows) / 3
    for row, above, ends_right in zip(rows, [None, *rows], ends, strict=False):
        is_stretched = is_justified and ends_right and not any(" " in piece.text for piece in row)
        text, calls = _joined(row, is_stretched=is_stretched)
        size = _row_size(row)
        is_apart = len(row) > 1 and "\t" in text
        is_new = False
        if above:
            distance = _base(above) - _base(row)
            is_indented = row[0].left > left + INDENT * size and above[0].left < row[0].left - INDENT * size
            is_other = not SMALL < _row_size(above) / size < 1 / SMALL
            is_new = distance > NEW_PARAGRAPH * max(usual, LEADING * size)
            is_new |= (is_indented or is_other) and not is_unfinished(lines[-1].text, text)
            is_new &= not (is_apart and lines[-1].is_apart)  # rows of a table stay together
        letters = sum(len(piece.text) for piece in row)
        width = sum(piece.right - piece.left for piece in row) / max(1, letters)
        room = (right - row[-1].right) / width if width else 0
        lines.append(
            Line(text, "block" if is_new else "line", room, is_apart=is_apart or is_item(text), page=page, calls=calls)
        )
        starts.append((row[0].left - left) / size)
    return _with_quotations(lines, starts, before)


def _margin(rows: list[Row]) -> float:
    """Return where most lines start."""
    lefts: Counter[int] = Counter(round(row[0].left) for row in rows)
    return float(lefts.most_common(1)[0][0])


def _with_quotations(lines: list[Line], starts: list[float], before: Line | None) -> list[Line]:
    """Mark paragraphs set deeper than the text after one that ends with ":"."""
    quoted: list[Line] = []
    for at, (line, start) in enumerate(zip(lines, starts, strict=True)):
        is_quoted = before is not None and before.is_quoted
        if at == 0 or line.gap == "block" or not is_quoted:
            end = next((later for later in range(at + 1, len(lines)) if lines[later].gap == "block"), len(lines))
            is_deeper = min(starts[at:end]) > DEEPER and not line.is_apart
            is_quoted = is_deeper and before is not None and (is_quoted or before.text.endswith(":"))
        before = line._replace(is_quoted=is_quoted and start > DEEPER)
        quoted.append(before)
    return quoted
