"""Articles in versions: which is seen on a day, by search, by name and by id; what changed from one to the next."""

import json
from datetime import date
from pathlib import Path

import pytest

import legal_rag as lr
from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index
from legal_rag.law import force_of
from legal_rag.library import Library, version_at, versions_of
from legal_rag.library.versions import word_changes

FIXTURES = Path(__file__).parents[1] / "fixtures" / "versions"


def rows(name):
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


CODE, QUESTIONS = rows("code"), rows("questions")
NINTH_1 = "L. 9001-1 du code du travail"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    build_index(IndexConfig(source=CODE, index_folder=str(folder), index_name="code", n_bits=0))
    return folder


@pytest.fixture(scope="module")
def library(folder):
    return lr.open(folder / "code")


def run(capsys, *arguments):
    status = main([*map(str, arguments)])
    return status, capsys.readouterr()


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: f"{asked['article']} {asked['at']}")
def test_the_text_in_force_on_a_day_is_the_one_that_is_found(library, asked):
    version = version_at(asked["article"], date.fromisoformat(asked["at"]), library)
    assert (version and version.id) == asked["expected"]
    hits = lr.search(library, asked["article"], mode="bm25", at=asked["at"])
    named = [hit.doc_id for hit in hits if hit.doc_id.startswith("LEGIARTI")]
    assert named == ([asked["expected"]] if asked["expected"] else [])


def test_lookup_prints_the_text_in_force_on_a_day(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code"]
    for asked in QUESTIONS:
        status, (out, err) = run(capsys, "lookup", *place, "--json", "--at", asked["at"], asked["article"])
        if asked["expected"]:
            assert json.loads(out)["doc_id"] == asked["expected"]
        else:
            assert (status, out) == (1, "")
            assert "n'est en vigueur le" in err


@pytest.mark.parametrize(
    ("columns", "in_french"),
    [
        ({"valid_from": "2008-05-01", "valid_until": "2016-08-10"}, "en vigueur du 1er mai 2008 au 9 août 2016"),
        ({"valid_from": "2018-04-01", "state": "VIGUEUR"}, "en vigueur depuis le 1er avril 2018"),
        ({"valid_from": "2030-01-01", "state": "VIGUEUR_DIFF"}, "en vigueur à compter du 1er janvier 2030"),
        ({"valid_from": "2018-04-01", "valid_until": "2999-01-01"}, "en vigueur depuis le 1er avril 2018"),
        ({"valid_from": "2222-02-22", "state": "VIGUEUR_DIFF"}, "entrée en vigueur différée, sans date"),
        ({"state": "VIGUEUR_DIFF"}, "entrée en vigueur différée, sans date"),
        ({"valid_from": "2014-01-01", "valid_until": "2014-01-01", "state": "MODIFIE_MORT_NE"}, "jamais en vigueur"),
        ({"valid_until": "2016-08-10"}, "en vigueur jusqu'au 9 août 2016"),
        ({"state": "VIGUEUR"}, None),
        ({"valid_from": "un jour"}, None),
        ({"valid_from": "2018-04-01", "links": ["https://example.org"]}, "en vigueur depuis le 1er avril 2018"),
    ],
)
def test_force_is_said_in_french(columns, in_french):
    force = force_of(columns)
    assert (force and force.in_french) == in_french


def test_a_search_sees_of_each_article_what_is_in_force_today_by_default(library):
    hits = lr.search(library, "délai de prévenance du salarié période d'essai", k=50, mode="bm25")
    found = {hit.doc_id for hit in hits}
    assert found >= {"LEGIARTI900000000013", "DECISION-1"}
    in_force = {row["id"] for row in CODE if force_of(row) is None or force_of(row).holds(date.today())}
    assert found <= in_force
    older = lr.search(library, "délai de prévenance du salarié période d'essai", k=50, mode="bm25", at="3 mars 2012")
    assert "LEGIARTI900000000011" in {hit.doc_id for hit in older}
    assert "LEGIARTI900000000013" not in {hit.doc_id for hit in older}


def test_a_version_is_read_by_its_own_id_on_any_day(library):
    assert [hit.doc_id for hit in lr.search(library, "LEGIARTI900000000011", mode="bm25")] == ["LEGIARTI900000000011"]


def test_an_article_of_which_no_version_is_in_force_is_said_to_be_so(library):
    hits = lr.search(library, "L. 9001-13 du code du travail", mode="bm25", at="2026-11-26")
    assert [hit.doc_id for hit in hits] == []
    (said, *_) = hits.remarks
    assert said.startswith("Aucune version de « L. 9001-13 du code du travail » n'est en vigueur le 26 novembre 2026.")
    assert "LEGIARTI900000000133 (C. trav., art. L. 9001-13, en vigueur du 1er avril 2018 au 31 décembre 2019)" in said


@pytest.mark.parametrize("command", [["search", NINTH_1], ["lookup", NINTH_1], ["ask", NINTH_1]])
@pytest.mark.parametrize("day", ["2019", "31/02/2019", "hier"])
def test_a_day_that_is_none_is_one_line(folder, capsys, command, day):
    status, (out, err) = run(capsys, *command, "--index-folder", folder, "--index-name", "code", "--at", day)
    assert (status, out) == (1, "")
    assert err.strip().splitlines() == [
        f"legal-rag: --at is no day: {day!r} (expected e.g. '2023-11-08' or '8 novembre 2023')"
    ]


def test_all_versions_are_listed_with_what_each_changed(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code"]
    status, (out, _) = run(capsys, "lookup", *place, "--versions", "L. 9101-15 du code du travail")
    assert status == 0
    assert out.replace("\xa0", " ").splitlines() == [
        "LEGIARTI900000000151  C. trav., art. L. 9001-15, en vigueur du 1er mai 2008 au 9 août 2016",
        "LEGIARTI900000000152  C. trav., art. L. 9001-15, en vigueur du 10 août 2016 au 23 septembre 2019",
        "   salarié déclaré inapte est fixé à [-trente-] [+vingt+]",
        "   est fixé à trente jours, sauf [-accord-] [+stipulation+]",
        "   à trente jours, sauf accord plus [-favorable.-] [+favorable d'une convention collective.+]",
        "LEGIARTI900000000153  C. trav., art. L. 9101-15, en vigueur depuis le 24 septembre 2019",
        "   salarié déclaré inapte est fixé à [-vingt jours, sauf stipulation plus favorable d'une convention"
        " collective.-] [+soixante jours. Un décret en précise les modalités.+]",
    ]
    _, (out, _) = run(capsys, "lookup", *place, "--json", "--versions", "LEGIARTI900000000151")
    assert [version["valid_from"] for version in json.loads(out)] == ["2008-05-01", "2016-08-10", "2019-09-24"]
    status, (_, err) = run(capsys, "lookup", *place, "--versions", "DECISION-1")
    assert (status, "no article with versions" in err) == (1, True)


def test_a_lookup_says_when_what_it_prints_is_in_force(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code", "--at"]
    for named in (NINTH_1, "LEGIARTI900000000013"):
        _, (out, _) = run(capsys, "lookup", *place, "2012-03-03", named)
        assert "Version : en vigueur du 1er mai 2008 au 9 août 2016" in out
    status, (_, err) = run(capsys, "lookup", *place, "1999-01-01", "LEGIARTI900000000013")
    assert (status, "n'est en vigueur le 1er janvier 1999" in err) == (1, True)


def test_an_answer_says_which_version_it_rests_on(library):
    answer = lr.ask(library, f"Que dit l'article {NINTH_1} ?", at="2012-03-03")
    named = {document.doc_id: document.version for document in answer.documents}
    assert named["LEGIARTI900000000011"] == "version en vigueur du 1er mai 2008 au 9 août 2016"
    from legal_rag.report import render_answer

    assert "version en vigueur du 1er mai 2008 au 9 août 2016" in render_answer(answer, library)


def test_versions_are_added_removed_and_compacted_with_their_documents(tmp_path):
    decision, articles = CODE[-1], CODE[:3]
    where = {"index_folder": str(tmp_path), "index_name": "grows", "n_bits": 0}
    build_index(IndexConfig(source=[decision], **where))
    assert not Library.open(tmp_path, "grows").has_versions
    add_documents(IndexConfig(source=articles, **where))
    grown = Library.open(tmp_path, "grows")
    assert [version.document.id for version in versions_of(NINTH_1, grown)] == [row["id"] for row in articles]
    add_documents(IndexConfig(source=[articles[2] | {"valid_until": "2020-01-01", "state": "ABROGE"}], **where))
    assert version_at(NINTH_1, date(2026, 11, 26), Library.open(tmp_path, "grows")) is None
    compact_index(str(tmp_path), "grows")
    compacted = Library.open(tmp_path, "grows")
    assert version_at(NINTH_1, date(2019, 1, 1), compacted).id == articles[2]["id"]
    assert version_at(NINTH_1, date(2026, 11, 26), compacted) is None


def test_words_that_changed_are_in_text_order():
    changes = word_changes("Le délai est de dix jours.", "Le délai est porté à dix jours ouvrés.")
    assert [tuple(change) for change in changes] == [
        ("Le délai est", "de", "porté à"),
        ("Le délai est de dix", "jours.", "jours ouvrés."),
    ]
    assert word_changes("Le même texte.", "Le même texte.") == ()
