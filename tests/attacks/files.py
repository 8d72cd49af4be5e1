"""Files that a stranger made: sources, folders, zips, manifests, parts of a Library, questions, runs, answers, ids.

A source is read beside two good documents: both must come out, and what is left out is told in one line. A Library with
a strange manifest or part is asked by a command: it answers, or says one line and ends with status 1.
"""

import contextlib
import gc
import gzip
import io
import json
import os
import random
import shutil
import socket
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from support.pdf_files import pdf_of_a_page

from attacks.cases import Case, Outcome, Place
from attacks.flips import FILES as PARTS
from legal_rag.assets import ZipLimits, extract_zip
from legal_rag.cli import main
from legal_rag.corpus import SourceOptions, read_documents
from legal_rag.library.manifest import CHECKSUMS, MANIFEST

GOOD = ({"id": "bon-1", "content": "La cour rejette le pourvoi."}, {"id": "bon-2", "content": "Casse et annule."})
ROW = {"id": "X", "content": "Attendu que le bail est résilié.", "title": "Titre", "decision_date": "2020-01-02"}
Content = Callable[[], bytes | Iterator[bytes]]
STYLES = ("\x1b[2m", "\x1b[0m")


def cases(seed: int) -> Iterator[Case]:
    """Yield all cases."""
    drawn = random.Random(f"files {seed}")
    for name, line in _lines(drawn):
        yield Case(f"line, {name}", partial(_read_line, line), seconds=20.0)
    for name, row in _rows(drawn):
        yield Case(f"row, {name}", partial(_read_row, row), seconds=10.0)
    for name, file, content in _files(drawn):
        yield Case(f"file, {name}", partial(_read_file, file, content), seconds=40.0)
    for name, fill in _FOLDERS.items():
        yield Case(f"folder, {name}", partial(_read_folder, fill), seconds=10.0)
    for name, fill in _zips(drawn):
        yield Case(f"zip, {name}", partial(_unpacked, fill), seconds=10.0)
    for number, (name, change) in enumerate(_manifests(drawn)):
        yield Case(f"manifest {number}, {name}", partial(_asked_with_manifest, change, number), seconds=10.0)
    for name in PARTS:
        run = partial(_asked_without, name, seed)
        yield Case(f"part, {name.replace('*', 'x')}", run, seconds=30.0, attempts=len(_HARMS))
    for name, argv, content in _inputs(drawn):
        yield Case(f"input, {name}", partial(_given, argv, content), seconds=20.0)


def prepare(place: Place) -> None:
    """Load what commands load once: the encoder, compiled kernels, threads that stay."""
    library = place.copy()
    for argv in _ASKED:
        _asked([*argv], library)
    _read([GOOD[0]])


# --- sources ---------------------------------------------------------------------------------------------------------


def _lines(drawn: random.Random) -> Iterator[tuple[str, Content]]:
    """Yield lines of JSON; they are made when they are needed."""
    for depth in (99, 101, 900, 4_000, drawn.randint(5_000, 200_000)):
        for field in ("content", "extra", "id", "title", "applied_laws"):
            yield f"lists {depth} deep in {field}", partial(_nested, field, "[", "]", depth)
        yield f"objects {depth} deep", partial(_nested, "extra", '{"a":', "}", depth)
        yield f"unclosed lists {depth} deep", lambda depth=depth: b"[" * depth
    for size in (16_000_001, 40_000_000, 250_000_000):
        yield f"{size} letters", partial(_repeated, b"a", size, b'{"id": "X", "content": "', b'"}')
        yield f"{size} blanks", partial(_repeated, b" ", size)
    for n in (500_001, 1_000_000, drawn.randint(600_000, 2_000_000)):
        yield f"{n} keys", lambda n=n: ("{" + ",".join(f'"{i}":{i}' for i in range(n)) + "}").encode()
        yield f"{n} empty lists", lambda n=n: b'{"id": "X", "content": "x", "e": [' + b"[]," * n + b"0]}"
        yield f"{n} numbers", lambda n=n: b'{"id": "X", "content": "x", "e": [' + b"1.5," * n + b"0]}"
    for digits in (4_299, 4_301, 5_000, drawn.randint(6_000, 1_000_000)):
        yield f"{digits} digits", lambda digits=digits: b'{"id": %b, "content": "x"}' % (b"9" * digits)
        yield f"{digits} digits beside", lambda digits=digits: b'{"id": 1, "content": "x", "n": %b}' % (b"9" * digits)
    for value in ("NaN", "Infinity", "-Infinity", "1e999", "-0.0", "true", "null", "[]", "{}", '""', '"\\u0000"'):
        for field in ("id", "content", "decision_date"):
            rest = {name: one for name, one in ROW.items() if name != field}
            text = json.dumps(rest)[:-1] + f', "{field}": {value}}}'
            yield f"{field} {value}", lambda text=text: text.encode()
    for _ in range(8):
        junk = drawn.randbytes(drawn.randint(1, 5_000)).replace(b"\n", b"")
        yield f"{len(junk)} bytes {junk[:6].hex()}", lambda junk=junk: junk
        yield (
            f"text of {len(junk)} bytes {junk[:6].hex()}",
            lambda junk=junk: b'{"id": "X", "content": "' + junk.replace(b'"', b"") + b'"}',
        )
    yield "a NUL", lambda: b'{"id": "X\x00", "content": "x\x00"}'
    yield "half a pair", lambda: b'{"id": "X\\ud800", "content": "x\\udfff", "\\ud800": 1}'
    yield "keys twice", lambda: b'{"id": "X", "id": "Y", "content": "x", "content": ""}'
    yield "no object", lambda: b'["id", "content"]'
    yield "blank lines", lambda: b"\n" * 200_000
    yield "a byte order mark within", lambda: "\ufeff".join(json.dumps(ROW)).encode()


def _nested(field: str, opening: str, closing: str, depth: int) -> bytes:
    rest = {name: one for name, one in ROW.items() if name != field}
    inner = opening * depth + "1" + closing * depth
    return (json.dumps(rest)[:-1] + f', "{field}": {inner}}}').encode()


def _rows(drawn: random.Random) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield rows that JSON could hold, each with one strange value."""
    ids = [
        "..",
        "/",
        "../../etc/passwd",
        ".",
        "CON",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\x1b]52;c;x\x07",
        "\u202egnp",
        "\x00",
        " ",
    ]
    ids += ["x" * n for n in (1_000_000, 10_001, 9_999)] + [
        "\u0301" * 500,
        "é" * 5_000,
        "\u2028",
        "\ud800",
        "<b>",
        "&amp;",
    ]
    for number, doc_id in enumerate(ids):
        yield f"id {number}", ROW | {"id": doc_id}
    marks = [chr(one) for one in range(0x300, 0x370) if unicodedata.combining(chr(one))]
    texts = {
        "combining marks": "a" + "".join(drawn.choice(marks) for _ in range(100_000)),
        "marks in falling order": "a" + "\u0301\u0316" * 50_000,
        "Hebrew points": "\u05d0" + "\u05b0\u05bc\u0591" * 30_000,
        "Hangul": "\u1100\u1161\u11a8" * 100_000,
        "nested tags": "<div>" * 100_000 + "x" + "</div>" * 100_000,
        "nested inline tags": "<b><i>" * 100_000 + "x",
        "tables": "<table><tr><td>" * 60_000 + "x",
        "tags that do not end": "<p " * 200_000 + "x",
        "attributes that do not end": "<p a='" * 100_000 + "x",
        "comments": "<!--" * 200_000 + "x",
        "scripts": "<script>" * 100_000 + "x",
        "angle brackets": "<" * 1_000_000 + "x",
        "references": "&amp;" * 300_000 + "x",
        "references of references": "&" + "amp;" * 100_000 + "lt;b&gt;x",
        "numbers of characters": "".join(f"&#{n};" for n in range(0, 1_200_000, 37)) + "x",
        "5,000,001 letters": "a" * 5_000_001,
        "10,000,000 astral letters": "😀" * 5_000_001,
        "blanks": "x" + " " * 1_000_000,
        "line ends": "x" + "\n" * 1_000_000,
        "invisible": "x" + "\u200b" * 1_000_000,
        "directions": "x\u202e\u2066" * 1_000,
    }
    for name, text in texts.items():
        yield f"text of {name}", ROW | {"content": text}
        if len(text) < 700_000:
            yield f"title of {name}", ROW | {"title": text[:9_000]}
    dates = [
        "9999-99-99",
        "0000-00-00",
        "31/02/2099",
        "-1",
        "1" * 9_000,
        "1" * 1_000_000,
        "12 mai " * 1_400,
        "le 1er" * 1_000,
    ]
    for number, date in enumerate(dates):
        yield f"date {number}", ROW | {"decision_date": date}
    zones = [
        [{"start": -1, "end": 10**18}],
        {"motivations": "x"},
        {"motivations": [{"start": "a"}]},
        [[]],
        3,
        "x" * 1_000_000,
    ]
    for number, zone in enumerate(zones):
        yield f"zones {number}", ROW | {"zones": zone}
    laws = [["x"] * 100_000, ";" * 1_000_000, [["x"]], {"a": 1}, 7, [None], "\n" * 500_000]
    for number, law in enumerate(laws):
        yield f"laws {number}", ROW | {"applied_laws": law}
    for number, change in enumerate(
        [{"jurisdiction": [[1]]}, {"jurisdiction": {"a": []}, "visa": 3}, {"visa": [[[]]]}]
    ):
        yield f"Judilibre {number}", {"id": "X", "text": "x y", "jurisdiction": "cc"} | change
    yield "a thousand columns", ROW | {f"c{n}": n for n in range(100_000)}
    yield "a summary", ROW | {"summary": "a" * 10_000_000}
    yield "a title", ROW | {"title": "a" * 1_000_000}


def _files(drawn: random.Random) -> Iterator[tuple[str, str, Content]]:
    """Yield names of files, and what makes their content."""
    for n in (1_000_000, 20_000_000):
        yield f"JSON of {n} lists", "x.json", lambda n=n: b"[" + b"[]," * n + b"[]]"
    yield "JSON, deep", "x.json", lambda: b"[" * 1_000_000
    yield "JSON, large", "x.json", partial(_repeated, b" ", 210_000_000, b"[", b"]")
    yield "JSON, a number", "x.json", lambda: b"9" * 100_000
    yield "JSON, no rows", "x.json", lambda: b'{"results": [1, null, [], {"id": []}]}'
    for size in (20_000_000, 200_000_000):
        yield f"CSV, a field of {size}", "x.csv", partial(_repeated, b"a", size, b'id,content\nX,"', b'"\nY,y\n')
        yield f"CSV, a line of {size}", "x.csv", partial(_repeated, b"a", size, b"id,content\n", b"\nY,y\n")
    yield "CSV, a header of columns", "x.csv", lambda: b"id,content" + b",c" * 3_000_000 + b"\nX,x\n"
    yield "CSV, an open quotation", "x.csv", lambda: b'id,content\nX,"' + b"x\n" * 500_000
    yield "CSV, NUL", "x.csv", lambda: b"id,content\nX\x00,\x00\x00\n"
    yield "CSV, quotation marks", "x.csv", lambda: b"id,content\n" + b'"' * 1_000_001 + b"\n"
    for kind in ("zeros", "blank lines", "lines"):
        yield f"gzip of {kind}", "x.jsonl.gz", partial(_bomb, kind)
    yield "gzip of gzip", "x.jsonl.gz", lambda: gzip.compress(gzip.compress(b"\0" * 50_000_000))
    yield "gzip cut off", "x.jsonl.gz", lambda: gzip.compress(json.dumps(ROW).encode() * 1_000)[:-40]
    for size in (60_000_000, 250_000_000):
        yield f"text of {size}", "x.txt", partial(_repeated, b"a", size)
    yield "text of no encoding", "x.txt", lambda: bytes(range(256)) * 4_000
    yield "text, holes of cp1252", "x.txt", lambda: b"\x81\x8d" * 2_000_000
    yield "text, utf-16 cut", "x.txt", lambda: b"\xff\xfe" + "x".encode("utf-16-le") * 3 + b"\xd8"
    yield "HTML, nested", "x.html", lambda: b"<div>" * 500_000
    yield "Markdown, NUL", "x.md", lambda: b"\0" * 100_000
    yield "Word, a bomb", "x.docx", lambda: _word(_repeated(b"a", 300_000_000, b"<w:t>", b"</w:t>"))
    yield "Word, nested", "x.docx", lambda: _word(b"<w:p>" * 200_000 + b"</w:p>" * 200_000)
    yield "Word, entities", "x.docx", lambda: _word(b"<w:p>&l9;</w:p>", _LAUGHS)
    yield (
        "Word, cells",
        "x.docx",
        lambda: _word(b"<w:tbl>" + b"<w:tr><w:tc><w:p/></w:tc></w:tr>" * 20_000 + b"</w:tbl>"),
    )
    yield "Word, no zip", "x.docx", lambda: b"PK\x03\x04" + drawn.randbytes(1_000)
    for number in range(12):
        yield (
            f"Word, changed {number}",
            "x.docx",
            partial(_changed, _word(b"<w:p><w:r><w:t>Le bail.</w:t></w:r></w:p>"), number),
        )
    for number in range(12):
        yield f"PDF, changed {number}", "x.pdf", partial(_changed, _pdf(), number)
    for name, content in _PDFS.items():
        yield f"PDF, {name}", "x.pdf", content
    for number in range(25):
        yield f"Parquet, changed {number}", "x.parquet", partial(_changed_parquet, number)
    yield "Parquet, no end", "x.parquet", lambda: b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1"
    yield "Parquet, a bomb", "x.parquet", _large_parquet


def _repeated(unit: bytes, n: int, before: bytes = b"", after: bytes = b"") -> Iterator[bytes]:
    """Yield a long content in pieces, so that the attack itself takes no memory."""
    yield before
    for start in range(0, n, 1_000_000):
        yield unit * min(1_000_000, n - start)
    yield after


def _written(file: Path, content: bytes | Iterator[bytes]) -> None:
    with file.open("ab") as opened:
        opened.writelines([content] if isinstance(content, bytes) else content)


def _bomb(kind: str) -> bytes:
    """Return a gzip file of 2 GB in a few megabytes: many members, one after the other."""
    block = {"zeros": b"0", "blank lines": b"\n", "lines": b"x\n"}[kind] * (
        50_000_000 // len({"lines": "xx"}.get(kind, "x"))
    )
    return gzip.compress(block, 6) * 40


def _word(body: bytes | Iterator[bytes], head: bytes = b"") -> bytes:
    """Return a Word file with a body of XML."""
    file = io.BytesIO()
    space = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    types = (
        b'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
        b'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        b'PartName="/word/document.xml" '
        b'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    links = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        b'Target="word/document.xml"/></Relationships>'
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", links)
        with archive.open("word/document.xml", "w") as document:
            document.write(head + b"<w:document " + space + b"><w:body>")
            for piece in [body] if isinstance(body, bytes) else body:
                document.write(piece)
            document.write(b"</w:body></w:document>")
    return file.getvalue()


_LAUGHS = b"<!DOCTYPE l [<!ENTITY l0 'ha'>%b]>" % b"".join(
    b"<!ENTITY l%d '%b'>" % (n, b"&l%d;" % (n - 1) * 20) for n in range(1, 10)
)


def _pdf(stream: bytes = b"BT /F1 12 Tf (Le bail est resilie.) Tj ET", **lies: bytes) -> bytes:
    return pdf_of_a_page(stream, **lies)


def _deflated(size: int) -> bytes:
    import zlib

    packing = zlib.compressobj(9)
    return b"".join([*(packing.compress(piece) for piece in _repeated(b" ", size)), packing.flush()])


_PDFS: dict[str, Content] = {
    "pages within themselves": lambda: _pdf(pages=b"[2 0 R]"),
    "the same page": lambda: _pdf(pages=b"[" + b"3 0 R " * 20_000 + b"]"),
    "a stream of a gigabyte": lambda: _pdf(stream=_deflated(1_000_000_000), more=b"/Filter/FlateDecode"),
    "deep lists": lambda: _pdf(pages=b"[" * 100_000),
    "many operators": lambda: _pdf(stream=b"q " * 1_000_000),
    "deep texts": lambda: _pdf(stream=b"BT " * 300_000),
    "no end": lambda: b"%PDF-1.4\n" + b"1 0 obj<<" * 100_000,
    "an xref of itself": lambda: _pdf().replace(b"/Root 1 0 R", b"/Root 1 0 R/Prev 9"),
}


def _changed(whole: bytes, number: int) -> bytes:
    """Change some bytes of a file, or cut it."""
    drawn, data = random.Random(f"{number} {len(whole)}"), bytearray(whole)
    for _ in range(drawn.randint(1, 12)):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    return bytes(data[: drawn.randint(1, len(data))] if number % 3 == 0 else data)


def _parquet(rows: list[dict[str, Any]], **settings: Any) -> bytes:
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file, **settings)
    return file.getvalue()


def _changed_parquet(number: int) -> bytes:
    return _changed(_parquet([{**ROW, "id": str(n)} for n in range(50)]), number)


def _large_parquet() -> bytes:
    """Return a small file of 1,000 rows of a text of a megabyte each."""
    import pyarrow
    import pyarrow.parquet

    file = io.BytesIO()
    part = pyarrow.Table.from_pylist([{"id": str(n), "content": "a" * 1_000_000} for n in range(10)])
    with pyarrow.parquet.ParquetWriter(file, part.schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(part)
    return file.getvalue()


def _link_out(folder: Path) -> None:
    (folder / "x.txt").symlink_to("/etc/passwd")
    (folder / "y.jsonl").symlink_to(folder.parent / "elsewhere.jsonl")
    (folder.parent / "elsewhere.jsonl").write_text(json.dumps({"id": "secret", "content": "secret"}))


def _link_to_folder(folder: Path) -> None:
    (folder / "etc").symlink_to("/etc")
    (folder / "etc.txt").symlink_to("/etc")


def _loops(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "a.txt").symlink_to(folder / "b.txt")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    (folder / "nothing.txt").symlink_to(folder / "absent")


def _pipes(folder: Path) -> None:
    os.mkfifo(folder / "x.txt")
    os.mkfifo(folder / "x.jsonl")


def _socket(folder: Path) -> None:
    held = socket.socket(socket.AF_UNIX)
    held.bind(str(folder / "x.txt"))
    held.close()


def _devices(folder: Path) -> None:
    (folder / "zero.txt").symlink_to("/dev/zero")
    (folder / "random.jsonl").symlink_to("/dev/urandom")


def _sparse(folder: Path) -> None:
    for name in ("x.txt", "x.pdf", "x.docx", "x.json", "x.jsonl", "x.csv", "x.parquet"):
        with (folder / name).open("wb") as file:
            file.truncate(2**40)


def _many(folder: Path) -> None:
    for number in range(3_000):
        (folder / f"{number}.bin").touch()
        (folder / f"{number}.md").touch()


def _deep(folder: Path) -> None:
    below = folder.joinpath(*["d" * 50] * 40)
    below.mkdir(parents=True)
    (below / "x.txt").write_text("x")


def _names(folder: Path) -> None:
    for name in (b"\xff\xfe.txt", b"a\nb.txt", b"\x1b]52;c;x\x07.txt", "\u202egnp.txt".encode(), b" .txt"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("Un texte.")


def _forbidden(folder: Path) -> None:
    (folder / "x.txt").write_text("x")
    (folder / "x.txt").chmod(0)
    (folder / "y.jsonl").write_text("x")
    (folder / "y.jsonl").chmod(0)


def _card(data: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        (folder.parent / "out.jsonl").write_text(json.dumps({"id": "secret", "content": "secret"}))
        (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files: {data}\n---\n")

    return fill


_FOLDERS: dict[str, Callable[[Path], None]] = {
    "links out": _link_out, "links to folders": _link_to_folder, "loops": _loops, "pipes": _pipes, "a socket": _socket,
    "devices": _devices, "a terabyte of holes": _sparse, "many files": _many, "deep": _deep, "names": _names,
    "forbidden": _forbidden, "a card that leads out": _card("../out.jsonl"), "a card to a server": _card(
        "http://127.0.0.1:9/x.jsonl"), "a card to the system": _card("/etc/passwd"), "a card of a list": _card(
        '["good.jsonl", "../out.jsonl"]'), "a card that is no YAML": _card("{{{"), "a card of aliases": _card(
        "&a [" + "*a, " * 3 + "]"),
}  # fmt: skip


def _read_line(line: Content, place: Place) -> Outcome:
    good = [json.dumps(row).encode() for row in GOOD]
    source = place.folder / "x.jsonl"
    for content in (good[0] + b"\n", line(), b"\n" + good[1] + b"\n"):
        _written(source, content)
    return _read(source)


def _read_row(row: Mapping[str, Any], place: Place) -> Outcome:
    return _read([GOOD[0], row, GOOD[1]])


def _read_file(name: str, content: Content, place: Place) -> Outcome:
    def fill(folder: Path) -> None:
        _written(folder / name, content())

    return _read_folder(fill, place)


def _read_folder(fill: Callable[[Path], None], place: Place) -> Outcome:
    source = place.folder / "source"
    source.mkdir()
    (source / "good.jsonl").write_text("".join(json.dumps(row) + "\n" for row in GOOD))
    fill(source)
    return _read(source)


def _read(source: Any) -> Outcome:
    """Read a source; the good documents are there, nothing of elsewhere, and what was left out is one line each."""
    bad: list[Any] = []
    try:
        found = list(read_documents(source, SourceOptions(), on_bad=bad.append))
    except (ValueError, FileNotFoundError) as error:
        is_card = isinstance(source, Path) and (source / "README.md").exists()
        return Outcome(is_card and "secret" not in str(error), str(error))
    ids = [document.id for document in found]
    lines = [f"{one.where}: {one.problem}" for one in bad]
    missing = [row["id"] for row in GOOD if row["id"] not in ids]
    long = [line for line in lines if len(line) > 10_000 or "\n" in line]
    if missing or long or "secret" in ids:
        return Outcome(False, f"missing {missing}, read {ids[:5]}, {long[:1]}")
    return Outcome(True, lines[0] if lines else f"read as {len(found)} documents")


# --- zips ------------------------------------------------------------------------------------------------------------


def _zips(drawn: random.Random) -> Iterator[tuple[str, Callable[[Path], None]]]:
    names = [
        "../x",
        "/etc/x",
        "a/../../x",
        "C:\\x",
        "..\\x",
        "a\0b",
        "con",
        "a//b",
        ".",
        "",
        "x" * 300,
        "a/b/" * 100 + "x",
    ]
    for number, name in enumerate(names):
        yield f"name {number}", partial(_zip_of, {name: b"x"})
    yield "a bomb", partial(_zip_of, {f"{n}": bytes(20_000_000) for n in range(8)})
    yield "the same name", partial(_zip_of, {"a": b"x", "A": b"x"})
    yield "a file as a folder", partial(_zip_of, {"a": b"x", "a/b": b"x"})
    yield "a link", _zip_link
    yield "no entry", partial(_zip_of, {})
    for number in range(20):
        yield f"changed {number}", lambda path, number=number: path.write_bytes(_changed(_zip_bytes(), number))
    for size in (0, 4, 22, 100):
        junk = b"PK\x05\x06" + drawn.randbytes(size)
        yield f"{size} bytes of junk", lambda path, junk=junk: path.write_bytes(junk)


def _zip_of(entries: Mapping[str, bytes], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def _zip_bytes() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", "x" * 1_000)
        archive.writestr("c.txt", "y" * 1_000)
    return file.getvalue()


def _zip_link(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")


def _unpacked(fill: Callable[[Path], None], place: Place) -> Outcome:
    path, target = place.folder / "x.zip", place.folder / "inside" / "target"
    fill(path)
    try:
        extract_zip(path, target, ZipLimits(total_bytes=100_000_000))
    except ValueError as error:
        line = str(error)
        outside = [
            one for one in place.folder.rglob("*") if one.is_file() and one != path and not one.name.startswith(".")
        ]
        return Outcome("\n" not in line and not outside, line)
    outside = [
        one for one in target.rglob("*") if one.is_symlink() or not one.resolve().is_relative_to(target.resolve())
    ]
    return Outcome(not outside, f"unpacked {len(list(target.rglob('*')))} files inside")


# --- Libraries -------------------------------------------------------------------------------------------------------

_STRANGE = (
    10**18, -1, 0, 2**63, 10**400, 1.5, True, None, "", "x", "../..", "/etc", "C:\\x", "a\0b", "\ud800", "x" * 100_000,
    [], {}, [[]], {"a": {}}, [None], [{}], "\x1b]52;c;x\x07",
)  # fmt: skip
_ASKED = (
    ("info",), ("search", "bail", "--mode", "bm25"), ("lookup", "FICTIF0108-0"), ("search", "préavis"), ("doctor",),
    ("graph", "most-cited"), ("info", "--json"), ("rebuild", "--dry-run"),
)  # fmt: skip


def _manifests(drawn: random.Random) -> Iterator[tuple[str, Callable[[dict[str, Any]], bytes]]]:
    """Yield changes of a manifest: at every place some strange values, or no value; other bytes."""
    places = [
        "format_version", "lineage", "updates", "commit", "encoder", "encoder/name", "encoder/dim", "encoder/revision",
        "encoder/query_length", "encoder/query_prefix", "chunks", "chunks/chunk_tokens", "chunks/header_columns",
        "chunks/header_on", "plaid", "plaid/n_bits", "plaid/shard_chunks", "source", "source/name", "counts",
        "counts/documents", "counts/chunks", "counts/tokens", "shards", "shards/0", "shards/0/path", "shards/0/chunks",
        "shards/0/tokens", "shards/0/checksums", "shards/0/checksums/centroids.npy", "chunk_vectors",
        "chunk_vectors/segments", "chunk_vectors/segments/0", "chunk_vectors/segments/0/file",
        "chunk_vectors/segments/0/chunks", "chunk_vectors/frame", "built",
    ]  # fmt: skip
    for place in places:
        for value in drawn.sample(_STRANGE, 3):
            yield f"{place} = {value!r:.24}", partial(_with_value, place.split("/"), value)
        yield f"no {place}", partial(_without, place.split("/"))
    for name, content in {
        "empty": b"", "deep": b"[" * 200_000, "many values": b"[" + b"0," * 3_000_000 + b"0]",
        "not UTF-8": b"\xff\xfe{", "a list": b"[]", "twice": b'{"format_version": 3, "format_version": 4}',
    }.items():  # fmt: skip
        yield name, lambda manifest, content=content: content
    yield "a gigabyte of holes", lambda manifest: b""


def _with_value(place: list[str], value: Any, manifest: dict[str, Any]) -> bytes:
    *above, last = place
    inner: Any = manifest
    for one in above:
        inner = inner[int(one)] if isinstance(inner, list) else inner[one]
    inner[int(last) if isinstance(inner, list) else last] = value
    return json.dumps(manifest).encode()


def _without(place: list[str], manifest: dict[str, Any]) -> bytes:
    *above, last = place
    inner: Any = manifest
    for one in above:
        inner = inner[int(one)] if isinstance(inner, list) else inner[one]
    del inner[int(last) if isinstance(inner, list) else last]
    return json.dumps(manifest).encode()


def _asked_with_manifest(change: Callable[[dict[str, Any]], bytes], number: int, place: Place) -> Outcome:
    library = place.copy()
    manifest = json.loads((library / MANIFEST).read_text("utf-8"))
    (library / CHECKSUMS).unlink()
    content = change(manifest)
    (library / MANIFEST).write_bytes(content)
    if not content:
        os.truncate(library / MANIFEST, 10**9)
    return _asked([*_ASKED[number % len(_ASKED)]], library)


def _missing(file: Path, drawn: random.Random) -> None:
    file.unlink()


def _empty(file: Path, drawn: random.Random) -> None:
    file.write_bytes(b"")


def _a_folder(file: Path, drawn: random.Random) -> None:
    file.unlink()
    file.mkdir()


def _swapped(file: Path, drawn: random.Random) -> None:
    others = sorted(path for path in file.parent.iterdir() if path.is_file() and path != file and path.stat().st_size)
    file.write_bytes(drawn.choice(others).read_bytes() if others else b"x")


def _a_loop(file: Path, drawn: random.Random) -> None:
    file.unlink()
    file.symlink_to(file)


def _a_link_out(file: Path, drawn: random.Random) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


def _twice(file: Path, drawn: random.Random) -> None:
    file.write_bytes(file.read_bytes() * 2)


def _junk(file: Path, drawn: random.Random) -> None:
    file.write_bytes(drawn.randbytes(file.stat().st_size))


_HARMS = (_missing, _empty, _a_folder, _swapped, _a_loop, _a_link_out, _twice, _junk)


def _asked_without(pattern: str, seed: int, place: Place) -> Outcome:
    """Harm one file of a copy in every way, and ask a command each time."""
    drawn = random.Random(f"{seed} {pattern}")
    contained, first, last = 0, "", ""
    for number, harm in enumerate(_HARMS):
        library = place.copy()
        (file,) = library.glob(pattern)
        harm(file, drawn)
        outcome = _asked([*_ASKED[(number + drawn.randrange(len(_ASKED))) % len(_ASKED)]], library)
        contained += bool(outcome.contained)
        last = outcome.line
        first = first or ("" if outcome.contained else f"{harm.__name__}: {outcome.line}")
        shutil.rmtree(library)
        gc.collect()  # an encoder a command
    return Outcome(contained, first or last)


def _asked(argv: list[str], library: Path) -> Outcome:
    """Run a command on a Library: an answer, or one printable line and status 1."""
    return _came_of([*argv, "--index-folder", str(library.parent), "--index-name", library.name])


def _came_of(argv: list[str]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(argv)
    except BaseException as error:
        return Outcome(False, f"{argv[:3]}: {type(error).__name__}: {error}")
    said = out.getvalue() + err.getvalue()
    failed = [line for line in err.getvalue().splitlines() if line.startswith("legal-rag: ")]
    for style in STYLES:
        said = said.replace(style, "")
    steering = [one for one in said if unicodedata.category(one) in ("Cc", "Cs") and one not in "\n\t\r"]
    statuses, spoken = ((0, 1, 2), ("doctor", "verify")) if argv[0] == "verify" else ((0, 1), ("doctor",))
    if steering or status not in statuses or (status and argv[0] not in spoken and len(failed) != 1):
        return Outcome(False, f"{argv[:3]}: status {status}, {steering[:3]}, {err.getvalue()[-300:]}")
    return Outcome(True, failed[0] if failed else next(iter(said.splitlines()), "nothing") or "an answer")


# --- questions, judgements, runs, answers, ids -----------------------------------------------------------------------


def _inputs(drawn: random.Random) -> Iterator[tuple[str, list[str], bytes]]:
    """Yield a command, in which FILE stands for a file, and that file's content."""
    good = json.dumps({"qid": "q1", "question": "Quel préavis ?", "doc_id": "FICTIF0108"}).encode()
    evaluate = ["evaluate", "--queries", "FILE", "--mode", "bm25", "--k", "3"]
    contents = {
        "empty": b"",
        "junk": drawn.randbytes(3_000),
        "deep": b"[" * 100_000,
        "NUL": b"\0" * 1_000,
        "a long line": good[:-1] + b', "x": "' + b"a" * 30_000_000 + b'"}',
        "deep in a row": good[:-1] + b', "x": ' + b"[" * 900 + b"]" * 900 + b"}",
        "no question": b'{"qid": "q1"}',
        "a list": b"[1, 2]",
        "half a pair": good.replace(b"pr", b"\\ud800"),
        "escape": good.replace(b"Quel", b"\\u001b]52;c;x\\u0007"),
        "digits": b'{"qid": ' + b"9" * 5_000 + b"}",
        "ids": good.replace(b"q1", b"a b\\n"),
        "many": good + b"\n" + good,
    }
    for name, content in contents.items():
        yield f"questions, {name}", evaluate, content
        yield f"judgements, {name}", ["evaluate", "--queries", "QUERIES", "--qrels", "FILE", "--mode", "bm25"], content
        yield f"ids, {name}", ["remove", "--ids-file", "FILE"], content
        yield f"text to verify, {name}", ["verify", "FILE"], content
    for name, content in {"columns": b"q1 0\n", "relevance": b"q1 0 d " + b"9" * 5_000, "nan": b"q1 0 d nan\n"}.items():
        yield f"judgements, {name}", ["evaluate", "--queries", "QUERIES", "--qrels", "FILE", "--mode", "bm25"], content
    for name, content in contents.items():
        yield f"answer, {name}", ["answers", "show", "20260101-000000-000000-00000000"], content
        yield f"trace, {name}", ["trace", "FILE"], content
        yield f"outlines, {name}", ["rebuild", "--trees-from", "FOLDER"], content


def _given(argv: list[str], content: bytes, place: Place) -> Outcome:
    library, folder = place.copy(), place.folder / "given"
    folder.mkdir()
    (folder / "X_tree.json").write_bytes(content)
    (folder / "queries.jsonl").write_text('{"qid": "q1", "question": "Quel préavis ?", "doc_id": "FICTIF0108"}\n')
    (library / "runs").mkdir(exist_ok=True)
    (library / "runs" / "20260101-000000-000000-00000000.json").write_bytes(content)
    file = folder / ("x.md" if argv[0] == "verify" else "x.jsonl" if argv[0] in ("evaluate", "trace") else "x.txt")
    file.write_bytes(content)
    places = {"FILE": str(file), "FOLDER": str(folder), "QUERIES": str(folder / "queries.jsonl")}
    where = [] if argv[0] == "trace" else ["--index-folder", str(library.parent), "--index-name", library.name]
    return _came_of([places.get(one, one) for one in argv] + where)
