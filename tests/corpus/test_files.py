"""Files of every kind as text, and those that cannot be one: each refused in one line."""

import zipfile

import docx
import pytest
from pypdf import PdfWriter

from legal_rag.corpus import docx as docx_files
from legal_rag.corpus import files, read_documents, read_file

SENTENCE = "La Cour rejette le pourvoi n° 16-86.735."


def write_docx(path, text, note=""):
    document = docx.Document()
    document.add_paragraph(text)
    document.save(str(path))
    if note:
        namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
        xml = f"<w:footnotes {namespace}><w:footnote><w:p><w:r><w:t>{note}</w:t></w:r></w:p></w:footnote></w:footnotes>"
        write_zip(path, "a", "word/footnotes.xml", xml)


def write_zip(path, mode, name, text):
    with zipfile.ZipFile(path, mode) as parts:
        parts.writestr(name, text)


def write_pdf(path, *, password=""):
    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_plain_text_is_read_in_any_usual_encoding(tmp_path, encoding):
    (tmp_path / "a.md").write_bytes(f"L'arrêt énonce. {SENTENCE}".encode(encoding))
    assert read_file(tmp_path / "a.md") == f"L'arrêt énonce. {SENTENCE}"


def test_html_is_read_without_its_tags_and_a_docx_with_its_footnotes(tmp_path):
    (tmp_path / "page").write_text(f"<!doctype html><p>{SENTENCE}</p><script>alert(1)</script>", "utf-8")
    assert read_file(tmp_path / "page") == SENTENCE
    write_docx(tmp_path / "a.docx", SENTENCE, note="Cass. soc., 9 janv. 2018, n° 14-12.345")
    assert [document.content for document in read_documents(tmp_path / "a.docx")] == [read_file(tmp_path / "a.docx")]
    assert read_file(tmp_path / "a.docx") == f"{SENTENCE}\n\nCass. soc., 9 janv. 2018, n° 14-12.345"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.md", b"", "no text in this file"),
        ("blank.md", b" \n\t\n", "no text in this file"),
        ("noise.txt", bytes(range(256)) * 20, "no text in a known encoding"),
        ("damaged.pdf", b"%PDF-1.7\n" + b"x" * 500, "unreadable PDF"),
        ("scan.pdf", write_pdf, r"scan\.pdf: no text in this file \(expected a PDF with text"),
        ("secret.pdf", lambda path: write_pdf(path, password="x"), r"secret\.pdf: encrypted"),
        ("damaged.docx", b"PK\x03\x04" + b"x" * 500, "unreadable DOCX"),
        ("a.docx", lambda path: write_zip(path, "w", "hello.txt", "x"), "no Word document"),
        ("a.rtf", b"{\\rtf1 " + b"x" * 500, "RTF"),
        ("old.doc", b"\xd0\xcf\x11\xe0" + b"x" * 500, "encrypted, or an old Word document"),
    ],
)
def test_what_holds_no_text_is_refused_in_one_line(tmp_path, name, content, problem):
    if callable(content):
        content(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=problem) as caught:
        read_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_too_large_is_refused_unread_or_before_it_is_unpacked_and_a_missing_one_named(tmp_path, monkeypatch):
    monkeypatch.setattr(docx_files, "UNPACKED_BYTES", 1_000_000)
    write_docx(tmp_path / "bomb.docx", "A" * 2_000_000)
    with pytest.raises(ValueError, match=r"bomb\.docx: [\d,]+ bytes when unpacked"):
        read_file(tmp_path / "bomb.docx")
    monkeypatch.setattr(docx_files, "UNPACKED_BYTES", 3_000_000)
    monkeypatch.setattr(docx_files, "XML_BYTES", 1_000_000)
    with pytest.raises(ValueError, match=r"bomb\.docx: [\d,]+ bytes of XML when unpacked"):
        read_file(tmp_path / "bomb.docx")
    monkeypatch.setattr(files, "FILE_BYTES", 10)
    (tmp_path / "a.md").write_text(SENTENCE, "utf-8")
    with pytest.raises(ValueError, match="a.md: 41 bytes"):
        read_file(tmp_path / "a.md")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*absent\.md"):
        read_file(tmp_path / "absent.md")


def test_a_docx_is_read_with_its_text_boxes_and_insertions_and_without_deletions(tmp_path):
    word, mc = (
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://schemas.openxmlformats.org/markup-compatibility/2006",
    )
    box = "<w:txbxContent><w:p><w:r><w:t>Encadré</w:t></w:r></w:p></w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>Un</w:t><w:tab/><w:t>deux</w:t></w:r><w:ins><w:r><w:t> ajouté</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText> ôté</w:delText></w:r></w:del></w:p>"
        f"<w:p><w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>Contrôle</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    xml = f'<w:document xmlns:w="{word}" xmlns:mc="{mc}"><w:body>{body}</w:body></w:document>'
    write_zip(tmp_path / "a.docx", "w", "word/document.xml", xml)
    blocks = [block.strip() for block in read_file(tmp_path / "a.docx").split("\n\n")]
    assert blocks == ["Un\tdeux ajouté", "Encadré", "Contrôle", "a\tb"]
