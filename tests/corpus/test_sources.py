"""Sources: every format gives its rows, and a record that cannot be read is left out by name, never in silence."""

import csv
import gzip
import json

import docx
import pyarrow
import pyarrow.parquet
import pytest
from datasets import Dataset, DatasetDict
from support.pdf_files import pdf_of_a_page

from legal_rag.corpus import SourceOptions, read_documents

ROWS = [
    {"id": "A1", "title": "Arrêt", "content": "La cour rejette.", "number": "19-60.222"},
    {"id": "A2", "title": "Décision", "content": "Le Conseil décide.", "number": "2001-2589 AN"},
]


def read(source, **options):
    """Read a source; return its documents, and its bad records as 'where: problem'."""
    bad = []
    documents = list(read_documents(source, SourceOptions(**options), on_bad=bad.append))
    return documents, [f"{record.where}: {record.problem}" for record in bad]


def write_jsonl(path, rows=ROWS):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_csv(path, delimiter):
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def write_json(path, value):
    path.write_text(json.dumps(value), "utf-8")
    return path


def write_pdf(path, text):
    """Write a PDF of one page by hand, in Latin-1."""
    path.write_bytes(pdf_of_a_page(b"BT /F1 12 Tf 72 720 Td (%b) Tj ET" % text.encode("latin-1")))


def write_docx(path):
    document = docx.Document()
    document.add_paragraph("Contrat de prêt")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Montant", "3 000 €"
    document.add_paragraph("Fait à Brest")
    document.save(str(path))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.jsonl", write_jsonl),
        ("a.JSONL", write_jsonl),
        ("a.ndjson", write_jsonl),
        ("a.jsonl.gz", write_jsonl),
        ("a.json", lambda path: write_json(path, ROWS)),
        ("a.csv", lambda path: write_csv(path, ",")),
        ("b.csv", lambda path: write_csv(path, ";")),
        ("a.parquet", lambda path: pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)),
        ("saved", lambda path: Dataset.from_list(ROWS).save_to_disk(path)),
        ("splits", lambda path: DatasetDict({"train": Dataset.from_list(ROWS)}).save_to_disk(path)),
    ],
)
def test_every_table_gives_the_same_documents(tmp_path, name, write):
    write(tmp_path / name)
    documents, bad = read(tmp_path / name)
    assert [(item.id, item.title, item.content, item.extra) for item in documents] == [
        ("A1", "Arrêt", "La cour rejette.", {"number": "19-60.222"}),
        ("A2", "Décision", "Le Conseil décide.", {"number": "2001-2589 AN"}),
    ]
    assert bad == []


def test_a_csv_field_may_be_longer_than_python_reads_and_a_row_of_another_length_is_left_out(tmp_path):
    content = "La cour ; rejette,\n" * 20_000
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "content"], ["A1", content]])
    assert len(content) > 131_072
    assert read(tmp_path / "a.csv")[0][0].content == content
    (tmp_path / "a.csv").write_text("id,content\nA1,un\nA2,deux,trois\nA3\n", "utf-8")
    documents, bad = read(tmp_path / "a.csv")
    assert [item.id for item in documents] == ["A1"]
    assert bad == [
        "a.csv, line 3: more fields than columns",
        "a.csv, line 4: no text (column 'content' of A3 is empty or missing)",
    ]


def test_iterables_of_rows_are_read_once_and_in_order():
    rows = iter([*ROWS, ["A3", "trois"], "quatre", None, {"id": "A5", "content": "cinq"}])
    documents, bad = read(rows)
    assert [item.id for item in documents] == ["A1", "A2", "A5"]
    assert [line.split(" (")[0] for line in bad] == [
        "row 2: not a row but list",
        "row 3: not a row but str",
        "row 4: not a row but NoneType",
    ]


JUDILIBRE = {
    "id": "5fca25d9cbbf603303c4ff89",
    "text": "La cour rejette.",
    "jurisdiction": "cc",
    "chamber": "soc",
    "formation": "FS",
    "number": "19-60.222",
    "decision_date": "2020-11-25",
    "solution": "rejet",
    "visa": [{"title": "Article <a href='x'>L. 1152-1</a> ; du code du travail"}, "Article 6"],
    "zones": {"motivations": [{"start": 0, "end": 16}]},
    "summary": None,
}


@pytest.mark.parametrize("wrap", [lambda row: row, lambda row: [row], lambda row: {"total": 1, "results": [row]}])
def test_a_judilibre_export_gets_the_column_names_of_the_dataset(tmp_path, wrap):
    documents, bad = read(write_json(tmp_path / "export.json", wrap(JUDILIBRE)))
    assert bad == []
    assert documents[0].row() == {
        "id": "5fca25d9cbbf603303c4ff89",
        "title": "Cour de cassation, chambre sociale, 2020-11-25, 19-60.222",
        "content": "La cour rejette.",
        "juridiction": "Cour de cassation",
        "formation": "Chambre sociale",
        "judges": "FS",
        "number": "19-60.222",
        "decision_date": "2020-11-25",
        "solution": "rejet",
        "applied_laws": ["Article L. 1152-1 ; du code du travail", "Article 6"],
        "zones": {"motivations": [{"start": 0, "end": 16}]},
        "summary": "",
        "config": "",
    }


def test_judilibre_codes_that_are_unknown_stay_as_they_are():
    row = {**JUDILIBRE, "jurisdiction": "xx", "location": "Lyon", "chamber": "zz", "visa": "Article 6", "title": "T"}
    document = read([row])[0][0]
    assert (document.juridiction, document.formation, document.title) == ("xx (Lyon)", "zz", "T")
    assert document.applied_laws == ("Article 6",)


@pytest.mark.parametrize("changes", [{"visa": 5}, {"visa": {"title": None}}, {"chamber": ["soc"]}, {"formation": 3}])
def test_a_judilibre_record_with_a_field_of_another_type_is_read_and_one_without_text_left_out(changes):
    documents, bad = read([{**JUDILIBRE, **changes}, {**JUDILIBRE, "text": None}])
    assert [one.content for one in documents] == ["La cour rejette."]
    assert bad == ["row 1: no text (column 'content' of 5fca25d9cbbf603303c4ff89 is empty or missing)"]


def test_a_folder_gives_one_document_a_file_named_by_its_path(tmp_path):
    (tmp_path / "sous" / "dossier").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("a < b & c &lt;d", "utf-8")
    (tmp_path / "b.md").write_text("# Titre\n\nTexte", "utf-8")
    (tmp_path / "c.html").write_text("<title>T</title>\n\n\n\n<p>Œuvre&nbsp;!<br>Fin</p>", "utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    write_pdf(tmp_path / "d.pdf", "Décision rendue")
    write_docx(tmp_path / "sous" / "dossier" / "e.docx")
    write_jsonl(tmp_path / "z.jsonl")
    documents, bad = read(tmp_path)
    assert {item.id: (item.title, item.content) for item in documents} == {
        "a.txt": ("a", "a < b & c <d"),
        "b.md": ("b", "# Titre\n\nTexte"),
        "c.html": ("c", "Œuvre\u00a0!\nFin"),
        "d.pdf": ("d", "Décision rendue"),
        "sous/dossier/e.docx": ("e", "Contrat de prêt\n\nMontant\t3 000 €\n\nFait à Brest"),
        "A1": ("Arrêt", "La cour rejette."),
        "A2": ("Décision", "Le Conseil décide."),
    }
    assert bad == [f"{tmp_path.name}/: files of kinds that are not read: 1 .png"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("L’œuvre".encode("utf-8-sig"), "L’œuvre"),
        ("L’œuvre à 3 €".encode("cp1252"), "L’œuvre à 3 €"),
        (b"a\x00b" + b"c" * 300, "a\ufffdb" + "c" * 300),
    ],
)
def test_a_text_file_is_read_in_the_encoding_it_has(tmp_path, data, expected):
    (tmp_path / "a.txt").write_bytes(data)
    assert [item.content for item in read(tmp_path / "a.txt")[0]] == [expected]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.jsonl.gz", "a.json"])
def test_a_table_is_read_in_the_encoding_it_has(tmp_path, name, encoding):
    text = "L’arrêt dit « qualité\u00a0» à l’été"  # in cp1252, é, the blank and » look like one character of UTF-8
    row = json.dumps({"id": "A1", "content": text}, ensure_ascii=False)
    mark = "\ufeff" * (encoding == "utf-16-be")
    data = (mark + ("id,content\n" + f"A1,{text}\n" if name == "a.csv" else row + "\n")).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert [(item.id, item.content) for item in read(tmp_path / name)[0]] == [("A1", text)]


def test_a_stray_byte_does_not_change_how_the_other_lines_are_read(tmp_path):
    good = "".join(f'{{"id": "A{n}", "content": "décidé"}}\n' for n in range(3)).encode()
    (tmp_path / "a.jsonl").write_bytes(good + b'{"id": "B", "content": "d\xe9cid\xe9 \x81"}\n')
    documents, _ = read(tmp_path / "a.jsonl")
    assert [item.content for item in documents] == ["décidé"] * 3 + ["décidé \x81"]


def test_files_of_unknown_kinds_are_counted_in_one_line(tmp_path):
    (tmp_path / "a.txt").write_text("un", "utf-8")
    for name in ("b.jpg", "c.jpg", "d.xyz", ".cache"):
        (tmp_path / name).write_bytes(b"\xff")
    documents, bad = read(tmp_path)
    assert [item.id for item in documents] == ["a.txt"]
    assert bad == [f"{tmp_path.name}/: files of kinds that are not read: 2 .jpg, 1 .xyz"]


def test_the_parser_of_pdfs_prints_nothing_of_its_own(tmp_path, caplog):
    (tmp_path / "faux.pdf").write_bytes(b"rien\n%%EO")
    with pytest.raises(ValueError, match=r"no document in .*faux.pdf: 1 records read \(faux.pdf: unreadable PDF"):
        read(tmp_path / "faux.pdf")
    assert [one for one in caplog.records if one.name.startswith("pypdfium2")] == []


def test_files_that_cannot_be_read_are_left_out_by_name(tmp_path):
    write_pdf(tmp_path / "bon.pdf", "Un texte")
    whole = (tmp_path / "bon.pdf").read_bytes()
    (tmp_path / "coupe.pdf").write_bytes(b"%PDF-1.4\n" + whole[200:260])
    (tmp_path / "faux.docx").write_bytes(b"PK\x03\x04 rien")
    (tmp_path / "vide.pdf").write_bytes(b"")
    (tmp_path / "vide.txt").write_bytes(b" \n")
    write_pdf(tmp_path / "scan.pdf", "")
    documents, bad = read(tmp_path)
    assert [item.id for item in documents] == ["bon.pdf"]
    assert [line.split(" (")[0] for line in bad] == [
        "coupe.pdf: unreadable PDF",
        "faux.docx: unreadable DOCX",
        "scan.pdf: no text in this file",
        "vide.pdf: unreadable PDF",
        "vide.txt: no text in this file",
    ]


CARD = """---
configs:
- config_name: juri
  data_files: juri.jsonl
- config_name: cetat
  data_files: cetat.jsonl
---
"""


@pytest.fixture
def dataset_folder(tmp_path):
    (tmp_path / "README.md").write_text(CARD, "utf-8")
    write_jsonl(tmp_path / "juri.jsonl", ROWS[:1])
    write_jsonl(tmp_path / "cetat.jsonl", ROWS[1:])
    return tmp_path


def test_a_dataset_folder_gives_its_configurations_one_after_the_other(dataset_folder):
    documents, _ = read(dataset_folder, config="juri, cetat")
    assert [(item.id, item.config) for item in documents] == [("A1", "juri"), ("A2", "cetat")]


def test_a_split_that_is_not_there_is_named_with_those_that_are(tmp_path):
    DatasetDict({"train": Dataset.from_list(ROWS)}).save_to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"no split 'test' in .*its splits: train"):
        read(tmp_path / "saved", split="test")


@pytest.mark.parametrize("name", ["artefactory/Argimi-Legal-French-Jurisprudence", "personne/rien"])
def test_a_dataset_that_cannot_be_reached_is_one_clear_error(name):
    with pytest.raises(FileNotFoundError, match=f"no dataset that can be reached: {name} "):
        read(name, config="juri")


def test_sample_names_the_corpus_in_the_package_unless_a_folder_is_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(read("sample")[0]) == 60
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "a.txt").write_text("un", "utf-8")
    assert [item.id for item in read("sample")[0]] == ["a.txt"]


@pytest.mark.parametrize(
    "name",
    ["rien", "absent.jsonl", "absent/x.jsonl", "here/absent", "../absent", "absent/un/dossier", "/absent", "a b/c"],
)
def test_a_path_that_is_not_there_is_an_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(FileNotFoundError, match=rf"^no such file or folder: {name} \(expected a file, a folder, a hub"):
        read(name)


def test_a_file_of_an_unknown_kind_and_a_folder_without_a_document_are_errors(tmp_path):
    (tmp_path / "image.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"unknown kind of file: .*image\.png \(expected one named \.jsonl, "):
        read(tmp_path / "image.png")
    with pytest.raises(ValueError, match=r"no document in folder .*\.txt"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.csv", "a.parquet", "a.txt", "a.pdf", "a.docx"])
def test_an_empty_file_is_an_error(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"no document in .*: [01] records read"):
        read(tmp_path / name)


def test_broken_lines_are_left_out_by_number(tmp_path):
    lines = [
        '{"id": "A1", "content": "un"}',
        '{"id": "A2", "content":',
        "[1, 2]",
        "",
        '"texte"',
        "[" * 100_000,
        '{"id": %s, "content": "un"}' % ("9" * 5_000),
        '{"id": "A3", "content": "deux\\ud800"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), "utf-8")
    documents, bad = read(tmp_path / "a.jsonl")
    assert [(item.id, item.content) for item in documents] == [("A1", "un"), ("A3", "deux\ufffd")]
    assert bad[0] == "a.jsonl, line 2: broken JSON (Expecting value, character 25)"
    assert [line.split(" (")[0] for line in bad] == [
        "a.jsonl, line 2: broken JSON",
        "a.jsonl, line 3: not a row but list",
        "a.jsonl, line 5: not a row but str",
        "a.jsonl, line 6: broken JSON",
        "a.jsonl, line 7: broken JSON",
    ]


def test_a_truncated_or_damaged_gzip_gives_the_lines_before_the_break(tmp_path):
    rows = [{"id": f"A{n}", "content": f"{n * 7919 % 10_007} " * 20} for n in range(2_000)]
    whole = write_jsonl(tmp_path / "a.jsonl.gz", rows).read_bytes()
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    documents, bad = read(tmp_path / "a.jsonl.gz")
    assert 500 < len(documents) < 2_000
    assert [line.split(" (")[0] for line in bad] == ["a.jsonl.gz: the file breaks off"]
    whole = bytearray(write_jsonl(tmp_path / "a.jsonl.gz").read_bytes())
    whole[20:60] = b"\xff" * 40
    (tmp_path / "a.jsonl.gz").write_bytes(whole)
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip at all")
    (tmp_path / "c.txt").write_text("un", "utf-8")
    documents, bad = read(tmp_path)
    assert [item.id for item in documents] == ["c.txt"]
    assert [line.split(" (")[0] for line in bad] == [
        "a.jsonl.gz: the file breaks off",
        "b.jsonl.gz: the file breaks off",
    ]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", b'{"id": ', "a.json: broken JSON"),
        ("a.json", b"[" * 100_000, "a.json: broken JSON"),
        ("a.json", b'[{"id": %b}]' % (b"9" * 5_000), "a.json: broken JSON"),
        ("a.parquet", b"PAR1 not really PAR1", "a.parquet: unreadable Parquet"),
    ],
)
def test_a_broken_file_among_others_is_left_out_by_name(tmp_path, name, data, problem):
    (tmp_path / name).write_bytes(data)
    (tmp_path / "c.txt").write_text("un", "utf-8")
    documents, bad = read(tmp_path)
    assert [item.id for item in documents] == ["c.txt"]
    assert [line.split(" (")[0] for line in bad] == [problem]
