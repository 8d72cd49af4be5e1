"""The corpus: a row of any source becomes one clean document, or a bad record that says why not."""

import datetime
import json
import logging
import math

import pytest

from legal_rag.corpus import Document, SourceOptions, read_documents
from legal_rag.corpus.documents import PATIENCE


def read(rows, **options):
    return list(read_documents(rows, SourceOptions(**options), on_bad=lambda _: None))


def read_one(**columns):
    return read([{"id": "A1", "content": "texte", **columns}])[0]


def problems(rows):
    bad = []
    list(read_documents([*rows, {"id": "fin", "content": "texte"}], on_bad=bad.append))
    return [record.problem for record in bad]


def test_a_row_becomes_a_document_with_the_columns_of_the_dataset():
    row = {
        "id": "JURITEXT000007022836",
        "title": "Cour de cassation, <b>chambre sociale</b>",
        "content": "<p>Attendu&nbsp;que</p>",
        "decision_date": "1993-09-22",
        "juridiction": "Cour de cassation",
        "formation": "Chambre sociale",
        "solution": "REJET",
        "applied_laws": ["Code du travail L1152-1"],
        "summary": "L&#39;employeur",
        "number": "91-40.001",
        "config": "juri",
    }
    assert read([row]) == [
        Document(
            id="JURITEXT000007022836",
            title="Cour de cassation, chambre sociale",
            content="Attendu\u00a0que",
            decision_date="1993-09-22",
            juridiction="Cour de cassation",
            formation="Chambre sociale",
            solution="REJET",
            applied_laws=("Code du travail L1152-1",),
            summary="L'employeur",
            config="juri",
            extra={"number": "91-40.001"},
        )
    ]


def test_a_document_read_again_from_its_row_is_the_same():
    first = read_one(
        title="<p>É</p>", applied_law="a;b", zones={"x": [1]}, note="&lt;b&gt;", decision_date="22/09/1993"
    )
    again = read([first.row()])[0]
    assert again == first
    assert again.content_hash == first.content_hash
    for changes in ({"content": "autre"}, {"title": "T"}, {"applied_laws": "a"}, {"number": 2}):
        assert read_one(**changes).content_hash != read_one().content_hash


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ()),
        ({"applied_laws": None, "applied_law": None}, ()),
        ({"applied_laws": " ; ;\n"}, ()),
        ({"applied_law": "article 9 du code civil"}, ("article 9 du code civil",)),
        ({"applied_law": "article 9; article 16\narticle 9"}, ("article 9", "article 16")),
        ({"applied_laws": "article 9<br/>article 16 ;"}, ("article 9", "article 16")),
        ({"applied_laws": "articles 9 &amp; 10; article L&#39;1"}, ("articles 9 & 10", "article L'1")),
        ({"applied_laws": ["articles 9 ; 10", None, " ", "<i>16</i>", 1382]}, ("articles 9 ; 10", "16", "1382")),
        ({"applied_laws": ("a",), "applied_law": "b;a"}, ("a", "b")),
    ],
)
def test_applied_laws_are_a_list_whatever_the_source_gives(columns, expected):
    document = read_one(**columns)
    assert document.applied_laws == expected
    assert document.extra == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1993-09-22", "1993-09-22"),
        ("22/09/1993", "1993-09-22"),
        ("1.2.1993", "1993-02-01"),
        ("1993-09-22T10:00:00Z", "1993-09-22"),
        ("1993-09-22 00:00:00", "1993-09-22"),
        (datetime.date(1993, 9, 22), "1993-09-22"),
        (datetime.datetime(1993, 9, 22, 10, 30), "1993-09-22"),
        ("09/22/1993", "09/22/1993"),
        ("31/02/2020", "31/02/2020"),
        ("22 septembre 1993", "1993-09-22"),
        ("vers le 22 septembre 1993", "vers le 22 septembre 1993"),
        (1993, "1993"),
        (None, ""),
        (math.nan, ""),
    ],
)
def test_a_date_is_written_the_iso_way_when_it_can_be_read(value, expected):
    assert read_one(decision_date=value).decision_date == expected


def test_columns_of_the_source_are_kept_as_json_can_store_them():
    document = read_one(
        number=12,
        score=0.5,
        public=False,
        missing=None,
        blank="",
        none=[],
        infinite=math.inf,
        day=datetime.date(2020, 1, 2),
        raw=b"\xff",
        zones={"motivations": ({"start": 0, "at": datetime.datetime(2020, 1, 2, 3)},), 4: math.nan},
        broken="a\ud800",
    )
    assert document.extra == {
        "number": 12,
        "score": 0.5,
        "public": False,
        "day": "2020-01-02",
        "raw": "b'\\xff'",
        "zones": {"motivations": [{"start": 0, "at": "2020-01-02"}], "4": None},
        "broken": "a\ufffd",
    }
    json.dumps(document.row(), ensure_ascii=False, allow_nan=False).encode()
    assert len(document.content_hash) == 64


def test_other_columns_may_hold_id_and_text_and_numeric_ids_become_text():
    rows = [{"cle": "A1", "texte": "un", "id": 4, "content": "autre"}]
    document = read(rows, id_column="cle", text_column="texte")[0]
    assert (document.id, document.content) == ("A1", "un")
    assert [item.id for item in read([{"id": 7, "content": "un"}, {"id": 0, "content": "deux"}])] == ["7", "0"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"content": "texte"}, "no id (column 'id' is empty or missing)"),
        ({"id": None, "content": "texte"}, "no id (column 'id' is empty or missing)"),
        ({"id": " <br> ", "content": "texte"}, "no id (column 'id' is empty or missing)"),
        ({"id": math.nan, "content": "texte"}, "no id (column 'id' is empty or missing)"),
        ({"id": "A1"}, "no text (column 'content' of A1 is empty or missing)"),
        ({"id": "A1", "content": " \n"}, "no text (column 'content' of A1 is empty or missing)"),
        ({"id": "A1", "content": ["texte"]}, "no text (column 'content' of A1 is empty or missing)"),
        ({"id": "A1", "content": "<p>&nbsp;</p>"}, "no text left in A1 once its markup is removed"),
        ({}, "no id (column 'id' is empty or missing)"),
    ],
)
def test_a_row_without_id_or_text_is_left_out(row, problem):
    assert problems([row]) == [problem]


@pytest.mark.parametrize("ids", [("A1", "A1"), (7, "7"), ("A1", " A1 "), ("\u00e9", "e\u0301"), ("a&b", "a&amp;b")])
def test_an_id_seen_before_is_left_out(ids):
    first, second = ids
    rows = [{"id": first, "content": "un"}, {"id": second, "content": "deux"}]
    assert problems(rows) == [f"duplicate id '{first}'"]


def test_a_version_whose_day_is_none_is_left_out_as_it_would_count_as_in_force_on_any():
    rows = [{"id": "A1", "content": "Texte."}, {"id": "A2", "content": "Texte.", "valid_from": "2020-02-31"}]
    assert problems(rows) == ["valid_from is no day: '2020-02-31' (expected e.g. '2019-06-01') (A2)"]


def test_bad_records_are_logged_where_nobody_takes_them_and_an_id_without_text_is_not_a_duplicate(caplog):
    with caplog.at_level(logging.WARNING, "legal_rag"):
        list(read_documents([{"id": "A1", "content": "texte"}, {"id": "A1", "content": "texte"}]))
    assert caplog.messages == ["left out row 1: duplicate id 'A1'"]
    rows = [{"id": "A1", "content": ""}, {"id": "A1", "content": "texte"}]
    assert [item.content for item in read(rows)] == ["texte"]


def test_a_source_without_a_good_row_is_an_error_with_examples():
    with pytest.raises(ValueError, match=r"no document in .*: 5 records read \(row 0: no id .*; row 2: no id [^;]*\)$"):
        read([{"id": "", "content": "texte"}] * 5)
    with pytest.raises(ValueError, match=r"no document in \[\]: 0 records read$"):
        read([])


@pytest.mark.parametrize(
    ("options", "column"), [({"id_column": "cle"}, "cle"), ({"text_column": "texte"}, "texte"), ({}, "content")]
)
def test_an_unknown_column_is_an_error_that_names_those_there_are(options, column):
    expected = rf"no column '{column}' in .* \(its columns: id, text, title\): --(id|text)-column names another"
    with pytest.raises(ValueError, match=expected):
        read([{"id": "A1", "text": "un", "title": "T"}], **options)


def test_an_unknown_column_is_noticed_before_the_whole_source_is_read():
    def rows():
        for number in range(PATIENCE + 1):
            assert number < PATIENCE
            yield {"id": number, "text": "un"}

    with pytest.raises(ValueError, match="no column 'content'"):
        read(rows())


def test_documents_come_one_at_a_time():
    def rows():
        yield {"id": "A1", "content": "un"}
        raise RuntimeError("read too far")

    assert next(read_documents(rows())).id == "A1"


@pytest.mark.shared
def test_every_real_decision_is_read_and_keeps_its_text(shared_data, shared_decisions):
    assert len(shared_decisions) == 4_097
    questions = [json.loads(line) for line in (shared_data / "questions-dev.jsonl").read_text("utf-8").splitlines()]
    contents = {item.id: item.content for item in shared_decisions}
    assert [contents[q["doc_id"]][q["char_start"] : q["char_end"]] for q in questions] == [
        q["answer"] for q in questions
    ]


def test_the_default_dataset_is_read_in_its_default_configuration(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "legal_rag.corpus.documents.open_source", lambda *arguments: asked.append(arguments) or iter([])
    )
    with pytest.raises(ValueError, match="no document in artefactory/Argimi"):
        list(read_documents())
    assert asked == [("artefactory/Argimi-Legal-French-Jurisprudence", "juri", "train")]
