"""Pooled judgements: what is judged, what a judge sees, what two judges' marks become."""

import csv
import json
from functools import partial
from io import StringIO

import pytest
from support import ROOT
from support.headless_browser import HeadlessBrowser
from support.html_pages import Page

from legal_rag.base.html import own_script
from legal_rag.cli import main
from legal_rag.evaluation import (
    PooledPair,
    Query,
    agreement,
    make_sheet,
    merge_judgements,
    pool_runs,
    read_marks,
    read_qrels,
    render_sheet,
    write_qrels,
    write_run,
    write_sheet,
)
from legal_rag.evaluation.pooling import CHARS
from legal_rag.retriever import Retriever

PAIRS = [
    PooledPair(
        "q1", "Qui paie, et « quand » ?", "d1", "Titre, avec virgule", '[la juridiction] Le "bailleur".\n\nÀ terme.'
    ),
    PooledPair("q1", "Qui paie, et « quand » ?", "d2", "Titre", "[décision attaquée] Le preneur."),
    PooledPair("q2", "Que juge la cour ?", "d1", "Titre", "[passage] Rejette."),
]
FIRST = {"q1": {"d1": 3, "d2": 0}, "q2": {"d1": 1}}
SECOND = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 0}}


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return Retriever(tiny_library, tiny_encoder)


@pytest.fixture
def filled(tmp_path):
    """Write a sheet with marks, as a spreadsheet would."""

    def write(name, *grades, delimiter=","):
        text = StringIO()
        rows = [(*pair, grade) for pair, grade in zip(PAIRS, grades, strict=True)]
        csv.writer(text, delimiter=delimiter).writerows([(*PooledPair._fields, "relevance"), *rows])
        (tmp_path / name).write_text(text.getvalue(), "utf-8-sig")
        return tmp_path / name

    return write


def test_the_unjudged_first_documents_of_all_runs_are_pooled_in_an_order_that_shows_neither_system_nor_rank():
    runs = [{"q": [(f"d{n}", -n) for n in range(20)]}, {"q": [("x", 2.0), ("d1", 1.0)], "r": [("y", 1.0)]}]
    pooled = pool_runs(runs, {"q": {"d1": 1, "d3": 0}}, depth=5)
    assert {qid: set(doc_ids) for qid, doc_ids in pooled.items()} == {"q": {"d0", "d2", "d4", "x"}, "r": {"y"}}
    assert pooled == pool_runs(runs[::-1], {"q": {"d1": 1, "d3": 0}}, depth=5)
    everything = pool_runs(runs, {}, depth=20)["q"]
    assert everything not in (sorted(everything), [*(f"d{n}" for n in range(20)), "x"])


def test_a_sheet_shows_each_document_by_its_own_passages_and_who_speaks(retriever, tiny_library, tmp_path):
    ids = list(tiny_library)[:12]
    queries = [Query("b", "Qui doit prouver l'heure de l'accident ?"), Query("a", "Quel est le montant de l'amende ?")]
    rows = make_sheet(retriever, queries, {"a": ids[:3], "b": [*ids[3:], "not indexed"], "c": ids})
    assert [(row.qid, row.doc_id) for row in rows] == [
        *(("b", one) for one in ids[3:]),
        *(("a", one) for one in ids[:3]),
    ]
    for row in rows:
        content = tiny_library.document(row.doc_id).content
        passages = [part.partition("] ")[2] for part in row.passage.split("\n\n[")]
        assert all(part and part.strip() in content for part in passages)
        assert sum(map(len, passages)) <= CHARS
        assert row.passage.startswith("[")
    write_sheet(tmp_path / "s.csv", rows)
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [tuple(row) for row in csv.reader(file)][1:] == [(*row, "") for row in rows]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_marks_are_read_from_a_sheet_and_from_qrels(filled, tmp_path, delimiter):
    assert read_marks(filled("a.csv", 3, " 0 ", 1, delimiter=delimiter)) == FIRST
    write_qrels(tmp_path / "a.qrels", FIRST)
    assert read_marks(tmp_path / "a.qrels") == FIRST


@pytest.mark.parametrize(
    ("grades", "message"),
    [
        ((3, "", ""), "2 of 3 pairs have no relevance yet, the first is q1 d2 \\(nothing was changed"),
        ((3, 7, 1), "line 5: relevance '7' of q1 d2 \\(expected 0, 1, 2 or 3\\)"),
        (("x" * 500, 0, 1), "relevance 'xxx"),
    ],
)
def test_a_sheet_half_filled_or_with_a_grade_that_is_none_is_refused(filled, grades, message):
    with pytest.raises(ValueError, match=message) as raised:
        read_marks(filled("a.csv", *grades))
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column"),
        ("qid,doc_id\nq,d\n", "no column 'relevance'"),
        ("qid,doc_id,relevance\n", "holds no pair"),
        ("qid,doc_id,relevance\nq,d,1\nq,d,2\n", "line 3: q d comes twice"),
        ("qid,doc_id,relevance\nq,d," + "1" * 200_000, "line 1: field larger"),
    ],
)
def test_what_is_no_sheet_is_named(tmp_path, text, message, request):
    request.addfinalizer(partial(csv.field_size_limit, csv.field_size_limit(131_072)))  # other libraries raise it
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_marks(tmp_path / "a.csv")


def test_kappa_is_cohens_over_grades_and_over_relevance():
    # Two raters of 50 subjects, yes or no: 20, 5, 10, 15 (a textbook's example), kappa 0.4.
    marks = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    first, second = ({"q": {f"d{n}": both[i] for n, both in enumerate(marks)}} for i in (0, 1))
    found = agreement(first, second)
    assert (found.pairs, found.same) == (50, 35)
    assert [found.kappa, found.linear, found.quadratic, found.binary] == pytest.approx([0.4] * 4)
    assert agreement(FIRST, FIRST).kappa == 1
    assert agreement({"q": {"d": 0}}, {"q": {"d": 0}}).kappa is None


def test_a_wide_disagreement_counts_more_where_weighted_and_comes_first():
    marks = {"a": 0, "b": 1, "c": 2, "d": 3}
    near, far = (agreement({"q": marks}, {"q": marks | {"b": grade}}) for grade in (2, 3))
    assert near.kappa == pytest.approx(far.kappa, abs=0.1)
    assert near.kappa < near.linear < near.quadratic
    assert far.quadratic < near.quadratic
    both = agreement({"q": {"a": 1, "b": 0, "c": 3}}, {"q": {"a": 2, "b": 3, "c": 3}})
    assert [tuple(pair) for pair in both.disagreements] == [("q", "b", 0, 3), ("q", "a", 1, 2)]


def test_judges_of_different_pairs_are_not_compared():
    with pytest.raises(ValueError, match="3 and 2: 1 are in one sheet only, such as q2 d1"):
        agreement(FIRST, {"q1": SECOND["q1"]})


def test_where_judges_differ_the_lower_grade_counts_and_present_judgements_stay():
    present = {"q1": {"d9": 3, "d1": 1}, "q3": {"d3": 1}}
    merged = merge_judgements(present, FIRST, SECOND)
    assert merged == {"q1": {"d9": 3, "d1": 1, "d2": 0}, "q3": {"d3": 1}, "q2": {"d1": 0}}
    assert present == {"q1": {"d9": 3, "d1": 1}, "q3": {"d3": 1}}


def test_the_published_judgements_are_the_two_judges_merged_and_agree_as_their_page_says():
    folder = ROOT / "collections" / "judgements"
    first, second = (read_marks(folder / f"judge-{name}.qrels") for name in "ab")
    page, found = (folder / "README.md").read_text("utf-8"), agreement(first, second)
    merged = read_qrels(folder / "questions-dev.qrels")
    assert f"are **{found.kappa:.3f}**" in page
    assert found.kappa == found.linear == found.quadratic == found.binary
    pooled = {(qid, doc_id) for qid, judged in first.items() for doc_id in judged}
    sources = [(qid, n) for qid, judged in merged.items() for one, n in judged.items() if (qid, one) not in pooled]
    assert sources == [(qid, 3) for qid in merged]
    assert f"judges {sum(map(len, merged.values())):,} pairs of the {len(merged)} questions" in page
    for qid, doc_id in pooled:
        assert merged[qid][doc_id] == min(first[qid][doc_id], second[qid][doc_id])


@pytest.fixture(scope="module")
def sheet(place, tiny_library, tmp_path_factory):
    """Make a sheet by the command line, of two questions."""
    folder = tmp_path_factory.mktemp("pool")
    ids = list(tiny_library)
    run = {f"exemple-{n:02}": [(one, 60.0 - at) for at, one in enumerate(ids[n:])] for n in (1, 2)}
    write_run(folder / "run.txt", {**run, "other": [("d", 1.0)]})
    asked = ["--queries", "sample", "--run", str(folder / "run.txt"), "--depth", "4"]
    assert main(["pool", "make", *place, *asked, "--output", str(folder / "s.csv")]) == 0
    return folder / "s.csv"


def test_a_sheet_goes_to_two_judges_and_comes_back_as_judgements(sheet, tmp_path, capsys):
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) >= 1 + 7
    for name, grades in {"a.csv": "0123", "b.csv": "0113"}.items():
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([rows[0], *([*row[:5], grades[at % 4]] for at, row in enumerate(rows[1:]))])
    merge = ["pool", "merge", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    assert main([*merge, "--queries", "sample", "--output", str(tmp_path / "qrels.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{rows[3][0]}  {rows[3][2]}  2 1"
    assert [line.split()[0] for line in lines[-4:]] == ["kappa", "linear", "quadratic", "binary"]
    merged = read_qrels(tmp_path / "qrels.txt")
    assert merged["exemple-01"]["FICTIF0101"] == 3
    assert merged[rows[3][0]][rows[3][2]] == 1
    assert main([*merge, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["pairs"] == len(rows) - 1
    assert printed["binary"] == 1
    assert printed["disagreements"][0] == {"qid": rows[3][0], "doc_id": rows[3][2], "first": 2, "second": 1}


def test_bad_input_is_one_line_and_no_sheet_is_lost(sheet, place, tmp_path, refused, tiny_library):
    make = ["pool", "make", *place, "--queries", "sample", "--run"]
    before = sheet.read_bytes()
    run = str(sheet.with_name("run.txt"))
    assert "there already, perhaps with marks" in refused(*make, run, "--output", sheet)
    assert sheet.read_bytes() == before
    new = ["--output", tmp_path / "new.csv"]
    write_run(tmp_path / "queries.txt", {"zz": [(next(iter(tiny_library)), 1.0)]})
    assert "is of another collection: none of its 1 queries is in sample" in refused(
        *make, tmp_path / "queries.txt", *new
    )
    write_run(tmp_path / "documents.txt", {"exemple-01": [("zz", 1.0)]})
    assert "none of its first 10 is in" in refused(*make, tmp_path / "documents.txt", *new)
    write_run(tmp_path / "judged.txt", {"exemple-01": [("FICTIF0101", 1.0)]})
    assert "nothing to judge" in refused(*make, tmp_path / "judged.txt", *new)
    assert "does not end in .csv" in refused(*make, run, "--output", tmp_path / "new.txt")
    assert not (tmp_path / "new.csv").exists()
    assert "have no relevance yet" in refused("pool", "merge", sheet, sheet, "--output", tmp_path / "qrels.txt")
    assert not (tmp_path / "qrels.txt").exists()


def test_the_page_lets_through_its_own_script_alone_and_texts_as_texts(lets_through):
    hostile = [PAIRS[0]._replace(title="</script><img src=x onerror=alert(1)>")]
    html = render_sheet(hostile, "</script>.csv")
    lets_through(html, str(own_script("legal_rag.evaluation", "pool.js")))
    assert not [tag for tag, _ in Page(html).tags if tag == "img"]


@pytest.fixture
def opened(browser: HeadlessBrowser, tmp_path):
    (tmp_path / "sheet.html").write_text(render_sheet(PAIRS, "sheet.csv"), "utf-8")

    def reopen():
        browser.resize(1280, 850)
        browser.open((tmp_path / "sheet.html").as_uri())
        return browser

    reopen().run("localStorage.clear()")
    return reopen


def press(browser, key):
    browser.run(f"dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))")


def test_keys_mark_and_go_on_and_marks_outlive_the_page(opened):
    browser = opened()
    assert browser.text("#question") == PAIRS[0].question
    assert browser.text("#place") == "1 / 3"
    press(browser, "3")
    assert (browser.text("#title"), browser.text("#status")) == ("Titre", "notées : 1 sur 3")
    press(browser, "7")
    press(browser, "ArrowRight")
    press(browser, "0")
    assert browser.text("#status") == "notées : 2 sur 3"
    opened()
    assert (browser.text("#place"), browser.text("#status")) == ("2 / 3", "notées : 2 sur 3")
    press(browser, "ArrowLeft")
    assert browser.run("document.querySelector('[data-grade=\"3\"]').getAttribute('aria-pressed')") == "true"
    browser.click("[data-grade='1']")
    assert browser.text("#place") == "2 / 3"
    assert (browser.messages, browser.alerts) == ([], [])
    assert [one for one in browser.requests if not one.startswith("file:")] == []


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_page_saves_the_sheet_filled_and_takes_one_up_again(opened, filled, tmp_path, delimiter):
    browser = opened()
    browser.run("URL.createObjectURL = (blob) => { window.saved = blob; return '#'; }")
    half = filled("half.csv", 3, "", 9, delimiter=delimiter).read_text("utf-8-sig")
    file = f"new File([{json.dumps(half)}], 'half.csv')"
    give = f"const all = new DataTransfer(); all.items.add({file}); const to = document.querySelector('#load');"
    browser.run(f"(() => {{ {give} to.files = all.files; to.dispatchEvent(new Event('change')); }})()")
    browser.wait_for("document.querySelector('#notice').textContent !== ''")
    assert browser.text("#notice") == "Notes reprises : 1 ; refusées, d’une autre feuille ou pas de 0 à 3 : 1."
    assert browser.text("#place") == "2 / 3"
    press(browser, "0")
    press(browser, "1")
    browser.click("#save")
    browser.wait_for("!!window.saved")
    (tmp_path / "sheet.csv").write_text(browser.run("window.saved.text()"), "utf-8")
    assert read_marks(tmp_path / "sheet.csv") == FIRST
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as read:
        assert [tuple(row[:5]) for row in csv.reader(read)][1:] == [tuple(pair) for pair in PAIRS]
