"""The files of entities say the same in each form, are read by LangExtract itself, and change only as a whole."""

import json
import tracemalloc

import langextract as lx
import pytest

from legal_rag.base.files import locked
from legal_rag.extraction import ExtractionResult, build_enriched_context, format_extraction_index, outputs
from legal_rag.extraction.entities import ExtractedDocument, rule_entity
from legal_rag.extraction.outputs import write_outputs
from legal_rag.extraction.rules import find_entities

TEXT = "Arrêt du 3 mars 2021 : l’œuvre\r\n😀 vaut 100 euros."
DATE = {**rule_entity("date", TEXT, 9, 20, iso="2021-03-03")}
AMOUNT = {**rule_entity("montant", TEXT, 39, 48, valeur="100"), "alignment": "folded"}
ITEM = ExtractedDocument("A-1", "Cour d’appel", TEXT, [DATE, AMOUNT])
EMPTY = ExtractedDocument("A-2", "", "Rien.", [])


def written(folder, items=(ITEM, EMPTY)):
    return write_outputs(folder, iter(items))


def many(count):
    return [ExtractedDocument(f"D{number:04}", f"Titre {number}", "Rejet.", []) for number in range(count)]


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_four_files_are_written_and_told_without_documents_too(tmp_path):
    names = ["entities.jsonl", "entities.json", "extraction_index.txt", "entities.html"]
    assert written(tmp_path / "new" / "folder") == [tmp_path / "new" / "folder" / name for name in names]
    assert [name for name in files_in(tmp_path / "new" / "folder") if not name.startswith(".")] == sorted(names)
    written(tmp_path, [])
    assert json.loads((tmp_path / "entities.json").read_text("utf-8")) == {}
    assert (tmp_path / "entities.jsonl").read_bytes() == b""
    assert '<script type="application/json" class="document"' not in (tmp_path / "entities.html").read_text("utf-8")


def test_langextract_reads_the_entities_at_the_same_places(tmp_path):
    written(tmp_path)
    first, second = lx.io.load_annotated_documents_jsonl(tmp_path / "entities.jsonl", show_progress=False)
    assert (first.document_id, first.text, second.document_id, second.extractions) == ("A-1", TEXT, "A-2", [])
    read = [
        (one.extraction_class, one.char_interval.start_pos, one.char_interval.end_pos, one.alignment_status.value)
        for one in first.extractions
    ]
    assert read == [("date", 9, 20, "match_exact"), ("montant", 39, 48, "match_fuzzy")]
    assert [TEXT[start:end] for _, start, end, _ in read] == ["3 mars 2021", "100 euros"]
    assert first.extractions[0].attributes == {"iso": "2021-03-03"}


def test_the_lines_are_those_that_langextract_itself_writes_and_shows(tmp_path):
    written(tmp_path)
    documents = lx.io.load_annotated_documents_jsonl(tmp_path / "entities.jsonl", show_progress=False)
    lx.io.save_annotated_documents(documents, tmp_path, "again.jsonl", show_progress=False)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "entities.jsonl").read_bytes()
    page = lx.visualize(tmp_path / "entities.jsonl")
    assert '"extractionText": "3 mars 2021"' in getattr(page, "data", page)


def test_the_json_file_has_each_document_under_its_id(tmp_path):
    written(tmp_path)
    assert json.loads((tmp_path / "entities.json").read_text("utf-8")) == {
        "A-1": {
            "source_file": "A-1",
            "entity_count": 2,
            "entities": [
                {
                    "class": "date",
                    "text": "3 mars 2021",
                    "attributes": {"iso": "2021-03-03"},
                    "start_pos": 9,
                    "end_pos": 20,
                    "alignment": "MATCH_EXACT",
                },
                {
                    "class": "montant",
                    "text": "100 euros",
                    "attributes": {"valeur": "100"},
                    "start_pos": 39,
                    "end_pos": 48,
                    "alignment": "MATCH_FUZZY",
                },
            ],
        },
        "A-2": {"source_file": "A-2", "entity_count": 0, "entities": []},
    }


INDEX = """===== EXTRACTION INDEX =====
Pre-extracted structured data with source document and character offsets.

[Document: A-1]
  - date: "3 mars 2021" (chars 9-20)
  - montant: "100 euros" (chars 39-48)

[Document: A-2]
"""


def test_the_index_has_a_line_for_each_entity(tmp_path):
    written(tmp_path)
    assert (tmp_path / "extraction_index.txt").read_text("utf-8") == INDEX
    results = [ExtractionResult(doc_name=one.doc_id, extractions=list(one.entities)) for one in (ITEM, EMPTY)]
    assert format_extraction_index(results) == INDEX


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x85", "\x0b"])
def test_a_document_adds_no_line_to_the_index(end):
    text = f'a{end}[Document: faux]{end}  - date: "1"'
    entity = rule_entity(f"date{end}x", text, 0, len(text))
    lines = format_extraction_index([ExtractionResult(doc_name=f"A{end}B", extractions=[entity])]).splitlines()
    assert len(lines) == 5
    assert lines[3].startswith("[Document: A ")
    assert lines[4].startswith("  - date")
    assert lines[4].endswith(rf'- date: \"1\"" (chars 0-{len(text)})')


def test_the_enriched_context_is_the_index_and_then_every_text():
    docs = [{"name": "A-1", "text": TEXT}, {"name": "sans.pdf", "text": "Rien."}]
    context = build_enriched_context(docs, [ExtractionResult(doc_name="A-1", extractions=[DATE])])
    assert context == (
        "===== EXTRACTION INDEX =====\n"
        "Pre-extracted structured data with source document and character offsets.\n\n"
        '[Document: A-1]\n  - date: "3 mars 2021" (chars 9-20)\n\n'
        f"===== DOCUMENT 1: A-1 =====\n{TEXT}\n\n"
        "===== DOCUMENT 2: sans.pdf =====\nRien.\n"
    )


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(8, 19, "' 3 mars 202'"), (-2, 9, "'Arrêt du '"), (9, 9, "''"), (9, 2000, "'3 mars 2021 : l’œuvre")],
)
def test_an_entity_that_stands_elsewhere_is_refused(tmp_path, start, end, found):
    moved = {**DATE, "char_start": start, "char_end": end}
    with pytest.raises(ValueError, match=f"entity of 'A-1' not at its place: at {start}-{end} stands {found}"):
        written(tmp_path, [ITEM._replace(entities=[moved])])


def test_an_error_leaves_the_earlier_files_as_they_were_and_what_a_kill_left_is_cleared_away(tmp_path):
    def broken():
        yield ITEM._replace(doc_id="B-1")
        raise OSError("the disk is gone")

    written(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(OSError, match="the disk is gone"):
        write_outputs(tmp_path, broken())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / ".entities.new" / "entities_pages").mkdir(parents=True)
    (tmp_path / ".entities.new" / "entities_pages" / "0001.html").write_text("half")
    written(tmp_path)
    assert not (tmp_path / ".entities.new").exists()
    with locked(tmp_path / "entities"), pytest.raises(ValueError, match="another process is making"):
        written(tmp_path)


def test_the_same_documents_make_the_same_files(tmp_path):
    for name in ("a", "b"):
        written(tmp_path / name, [ITEM, *many(501)])
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
    for name in files_in(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_five_hundred_documents_are_one_page_and_not_every_title_of_more_is_on_the_index_page(tmp_path, monkeypatch):
    written(tmp_path, many(500))
    page = (tmp_path / "entities.html").read_text("utf-8")
    assert page.count('<script type="application/json" class="document"') == 500
    assert '<nav id="pages" aria-label="Pages"></nav>' in page
    assert not (tmp_path / "entities_pages").exists()
    monkeypatch.setattr(outputs, "LISTED_DOCUMENTS", 600)
    written(tmp_path, many(1001))
    index = (tmp_path / "entities.html").read_text("utf-8")
    assert "Titre 500" in index
    assert "Titre 501" not in index


def test_more_documents_are_pages_that_the_index_page_names(tmp_path):
    assert written(tmp_path, many(1001))[-1] == tmp_path / "entities_pages"
    folder = tmp_path / "entities_pages"
    index = (tmp_path / "entities.html").read_text("utf-8")
    for number, documents in ((1, 500), (2, 500), (3, 1)):
        page = (folder / f"000{number}.html").read_text("utf-8")
        assert page.count('class="document"') == documents
        assert f'<a href="entities_pages/000{number}.html">Page {number}</a>' in index
        assert '<a href="../entities.html">Toutes les pages</a>' in page
        assert ('href="0002.html">Page suivante' in page) == (number == 1)
        assert ('href="0002.html">Page précédente' in page) == (number == 3)


def test_new_pages_take_the_place_of_the_old_ones(tmp_path):
    written(tmp_path, many(1001))
    written(tmp_path, many(502))
    assert [path.name for path in sorted((tmp_path / "entities_pages").iterdir())] == ["0001.html", "0002.html"]
    written(tmp_path, many(3))
    assert not (tmp_path / "entities_pages").exists()


def test_a_page_ends_before_its_texts_are_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "PAGE_CHARACTERS", 10)
    items = [ExtractedDocument(name, "", text, []) for name, text in (("a", "x" * 30), ("b", "x" * 5), ("c", "x" * 5))]
    written(tmp_path, items)
    pages = [path.read_text("utf-8") for path in sorted((tmp_path / "entities_pages").iterdir())]
    assert [[f'data-id="{name}"' in page for name in "abc"] for page in pages] == [
        [True, False, False],
        [False, True, True],
    ]


def test_one_document_at_a_time_is_in_memory(tmp_path):

    def big():
        for number in range(40):
            yield ExtractedDocument(f"D{number}", "", f"{number} " + "x" * 1_000_000, [])

    written(tmp_path / "warm")  # what jinja and its template take once
    tracemalloc.start()
    write_outputs(tmp_path, big())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000  # a third of that, but other threads may allocate too


@pytest.mark.parametrize("text", ["\ud83d seul", "a\x00b", "\u2028\u2029", '"\\', "</script>"])
def test_any_text_comes_back_as_it_was(tmp_path, text):
    written(tmp_path, [ExtractedDocument(text, text, text, [rule_entity("x", text, 0, len(text), a=text)])])
    (line,) = (tmp_path / "entities.jsonl").read_bytes().decode().split("\n")[:-1]
    row = json.loads(line)
    assert (row["document_id"], row["text"], row["extractions"][0]["extraction_text"]) == (text, text, text)
    assert list(json.loads((tmp_path / "entities.json").read_text("utf-8"))) == [text]


@pytest.mark.shared
def test_real_decisions_are_read_by_langextract(tmp_path, shared_decisions):
    documents = list(shared_decisions[:40])
    items = [ExtractedDocument(one.id, one.title, one.content, find_entities(one.content)) for one in documents]
    written(tmp_path, items)
    loaded = list(lx.io.load_annotated_documents_jsonl(tmp_path / "entities.jsonl", show_progress=False))
    assert [one.text for one in loaded] == [one.content for one in documents]
    spans = [
        (doc.text[one.char_interval.start_pos : one.char_interval.end_pos], one)
        for doc in loaded
        for one in doc.extractions
    ]
    assert len(spans) > 500
    assert all(found == one.extraction_text for found, one in spans)
