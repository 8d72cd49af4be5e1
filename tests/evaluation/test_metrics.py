"""TREC files and figures: what is written, what trec_eval makes of it, and how sure a figure is."""

import json
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest
from datasets import Dataset
from support import ROOT

from legal_rag.cli import main
from legal_rag.evaluation import (
    Query,
    batch_query,
    compare_runs,
    evaluate_run,
    find_trec_python,
    hardest,
    measures,
    plot_runs,
    read_qrels,
    read_queries,
    read_run,
    sampled,
    save_plot,
    trec_eval,
    write_qrels,
    write_run,
)
from legal_rag.evaluation.metrics import first_hit_ranks, recall_curve
from legal_rag.retriever import Retriever

QRELS = {"a": {"d1": 1}, "b": {"d2": 1, "d3": 1}, "c": {"d9": 1}, "d": {"d4": 1}}
RUN = {
    "a": [("d1", 3.0), ("d2", 2.0)],
    "b": [("d1", 3.0), ("d2", 3.0), ("d3", 3.0)],  # equal scores: the order given is what counts
    "c": [("d1", 1.0)],
}


@pytest.fixture(scope="module")
def analysis():
    """The functions of the script that looks into runs."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "analyze_retrieval_results.py")))


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return Retriever(tiny_library, tiny_encoder)


def test_run_and_qrels_have_the_forms_that_trec_eval_reads(tmp_path):
    write_run(tmp_path / "run.txt", RUN, "essai")
    write_qrels(tmp_path / "qrels.txt", QRELS)
    assert (tmp_path / "run.txt").read_text("utf-8").splitlines() == [
        "a Q0 d1 1 3.0000 essai",
        "a Q0 d2 2 2.0000 essai",
        "b Q0 d1 1 3.0000 essai",
        "b Q0 d2 2 2.9999 essai",
        "b Q0 d3 3 2.9998 essai",
        "c Q0 d1 1 1.0000 essai",
    ]
    assert (tmp_path / "qrels.txt").read_text("utf-8").splitlines() == [
        "a 0 d1 1",
        "b 0 d2 1",
        "b 0 d3 1",
        "c 0 d9 1",
        "d 0 d4 1",
    ]


def test_files_read_again_give_the_same_figures_and_a_picture_of_runs_is_a_png(tmp_path):
    write_run(tmp_path / "run.txt", RUN)
    write_qrels(tmp_path / "qrels.txt", QRELS)
    assert read_qrels(tmp_path / "qrels.txt") == QRELS
    assert evaluate_run(QRELS, read_run(tmp_path / "run.txt")) == evaluate_run(QRELS, RUN)
    save_plot(plot_runs(QRELS, {"un": RUN, "deux": {}}), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("value", ["", "a b", "a\tb", "a\u00a0b"])
def test_an_id_with_a_blank_is_refused_and_nothing_is_written(tmp_path, value):
    with pytest.raises(ValueError, match="not a column of a TREC file"):
        write_run(tmp_path / "run.txt", {value: [("d1", 1.0)]})
    with pytest.raises(ValueError, match="not a column of a TREC file"):
        write_qrels(tmp_path / "qrels.txt", {"a": {value: 1}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("read", "lines", "message"),
    [
        *(
            (read_run, f"a Q0 d1 1 1.0 run\n{line}\n", "line 2: .*expected 'qid Q0")
            for line in ("a Q0 d1 1 x run", "a Q0 d1 1 1.0", "a b")
        ),
        *((read_qrels, f"{line}\n", "line 1: .*expected 'qid 0") for line in ("a 0 d1", "a 0 d1 x", "a 0 d 1 1")),
        (
            read_run,
            '{"content": "' + "long " * 200 + '"}',
            r"line 1: '[^']{60}…' \(expected 'qid Q0 doc_id rank score run_name'\)$",
        ),
    ],
)
def test_a_damaged_line_of_a_run_or_of_judgements_is_named_by_its_beginning(tmp_path, read, lines, message):
    (tmp_path / "file.txt").write_text(lines, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "file.txt")


def test_questions_come_from_jsonl_and_from_a_saved_dataset(tmp_path):
    rows = [{"id": "q1", "question": "Qui ?", "doc_id": "d1"}, {"id": "q2", "question": "Quoi ?", "doc_id": "d2"}]
    Dataset.from_list(rows).save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "q.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n", encoding="utf-8")
    expected = ([Query("q1", "Qui ?"), Query("q2", "Quoi ?")], {"q1": {"d1": 1}, "q2": {"d2": 1}})
    assert read_queries(tmp_path / "saved") == read_queries(tmp_path / "q.jsonl") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no question"),
        ("{", "line 1: not JSON"),
        ("[1]", "expected a JSON object"),
        ('{"question": "Qui ?"}', "row 1: .*expected a qid"),
        ('{"qid": "a b", "question": "Qui ?"}', "row 1: .*expected a qid without blanks, and a question"),
        ('{"qid": "a"}', "and a question"),
        ('{"qid": "a", "question": "Q"}\n{"qid": "a", "question": "R"}', "'a' comes twice"),
    ],
)
def test_damaged_questions_are_named(tmp_path, text, message):
    (tmp_path / "q.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_queries(tmp_path / "q.jsonl")


@pytest.mark.parametrize("read", [read_queries, read_qrels, read_run])
def test_a_file_that_is_not_text_is_named(tmp_path, read):
    (tmp_path / "file").write_bytes("qid Q0 été".encode("latin-1"))
    with pytest.raises(ValueError, match=r"file is not text in UTF-8 \(byte 7 is not\)") as caught:
        read(tmp_path / "file")
    assert not isinstance(caught.value, UnicodeError)  # which the command line takes for a fault of its own


@pytest.mark.parametrize(
    ("line", "queries", "qrels"),
    [
        ('{"qid": "a", "question": "Qui\u2028quoi ?"}\r\n', [Query("a", "Qui\u2028quoi ?")], {}),
        (
            '\ufeff{"qid": 0, "question": "Quoi ?", "doc_id": ["a", "b"]}\n',
            [Query("0", "Quoi ?")],
            {"0": {"a": 1, "b": 1}},
        ),
    ],
)
def test_a_question_may_hold_a_line_separator_be_numbered_0_and_name_several_documents(tmp_path, line, queries, qrels):
    (tmp_path / "q.jsonl").write_text(line, encoding="utf-8")
    assert read_queries(tmp_path / "q.jsonl") == (queries, qrels)


def test_figures_are_means_over_all_judged_questions_those_without_an_answer_too():
    found = evaluate_run(QRELS, RUN)
    means = {figure.measure: figure.mean for figure in found.figures}
    assert means["R@1"] == pytest.approx((1 + 0 + 0 + 0) / 4)
    assert means["R@5"] == pytest.approx((1 + 1 + 0 + 0) / 4)
    assert means["RR"] == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    assert means["AP"] == pytest.approx((1 + (1 / 2 + 2 / 3) / 2) / 4)
    assert found.by_query["d"] == dict.fromkeys(means, 0.0)
    for figure in found.figures:
        assert 0 <= figure.low <= figure.mean <= figure.high <= 1
    assert evaluate_run(QRELS, RUN) == found


def test_bpref_ignores_what_nobody_judged_and_judged_is_its_share_of_the_first_ten():
    run = {"q": [("unjudged", 3.0), ("right", 2.0), ("wrong", 1.0)]}
    alone = {one.measure: one.mean for one in evaluate_run({"q": {"right": 1}}, run).figures}
    assert (alone["Bpref"], alone["Judged@10"]) == (1, pytest.approx(1 / 3))  # without a judged wrong one: recall
    pooled = {one.measure: one.mean for one in evaluate_run({"q": {"right": 1, "wrong": 0}}, run).figures}
    assert (pooled["Bpref"], pooled["Judged@10"], pooled["RR"]) == (1, pytest.approx(2 / 3), 0.5)
    below = evaluate_run({"q": {"right": 1, "unjudged": 0}}, run).figures
    assert {one.measure: one.mean for one in below}["Bpref"] == 0


def test_a_difference_is_tested_question_by_question():
    qrels = {str(i): {"d": 1} for i in range(12)}
    good = evaluate_run(qrels, {qid: [("d", 2.0), ("e", 1.0)] for qid in qrels})
    bad = evaluate_run(qrels, {qid: [("e", 2.0), ("d", 1.0)] for qid in qrels})
    first = {one.measure: one for one in compare_runs(good, bad)}["RR"]
    assert first.difference == pytest.approx(0.5)
    assert first.p_value == pytest.approx(2 / 2**12, rel=0.3)  # all signs equal: two of all their combinations
    assert {one.p_value for one in compare_runs(good, good)} == {1.0}
    with pytest.raises(ValueError, match="different queries"):
        compare_runs(good, evaluate_run({"x": {"d": 1}}, {}))
    with pytest.raises(ValueError, match="no judgements"):
        evaluate_run({}, RUN)


def test_a_run_ranks_documents_up_to_k_and_a_question_that_cannot_be_asked_is_named(retriever):
    queries = [Query("a", "trouble anormal de voisinage"), Query("b", "licenciement")]
    run = batch_query(retriever, queries, 55, mode="colbert")
    for ranked in run.values():
        assert len({doc_id for doc_id, _ in ranked}) == len(ranked) == 55
        assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert {len(ranked) for ranked in batch_query(retriever, queries, 1000, mode="hybrid").values()} == {60}
    with pytest.raises(ValueError, match="query 'b': the question is too long"):
        batch_query(retriever, [Query("a", "Qui ?"), Query("b", "mot " * 2000)], 5)


def test_the_command_prints_the_figures_of_the_run_it_writes(place, tmp_path, capsys):
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    arguments = ["evaluate", *place, "--queries", "sample", "--k", "20"]
    assert main([*arguments, "--output", str(tmp_path), "--mode", "bm25", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = evaluate_run(read_qrels(qrels), read_run(run), measures(20))
    assert {name: one["mean"] for name, one in printed["figures"].items()} == {
        one.measure: one.mean for one in expected.figures
    }
    assert (printed["queries"], printed["documents"], printed["absent_documents"]) == (40, 60, [])
    assert main([*arguments, "--mode", "hybrid", "--compare", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "40 queries over 60 documents"
    assert all("(p = " in line for line in lines[1:])
    assert len(lines) == 1 + len(measures(20))


def test_no_measure_looks_below_the_rank_that_is_searched_and_a_filter_that_none_meets_is_named(place, capsys):
    assert main(["evaluate", *place, "--queries", "sample", "--k", "10", "--mode", "bm25", "--json"]) == 0
    printed = list(json.loads(capsys.readouterr().out)["figures"])
    assert printed == ["R@1", "R@5", "R@10", "nDCG@10", "RR", "AP", "Bpref", "Judged@10"]
    assert [str(one) for one in measures(5)] == ["R@1", "R@5", "RR", "AP", "Bpref"]
    arguments = ["evaluate", *place, "--queries", "sample", "--mode", "bm25"]
    assert main([*arguments, "--date-from", "2099"]) == 0
    assert "caution: no passage found: no document meets --date-from '2099-01-01'" in capsys.readouterr().out
    assert main([*arguments, "--date-from", "1900"]) == 0
    assert "no passage found" not in capsys.readouterr().out
    assert main([*arguments, "--solution", "zzz"]) == 1
    assert "no document has the solution 'zzz' (there are: " in capsys.readouterr().err


def test_where_a_run_fails_is_told(analysis):
    ranks = {"a": 1, "b": 2, "c": None, "d": None}
    assert first_hit_ranks(QRELS, RUN) == ranks
    assert recall_curve(QRELS, RUN, (1, 2, 3)) == [(1, 0.25), (2, 0.375), (3, 0.5)]
    worst = hardest(QRELS, RUN, n=3)
    assert [(one.qid, one.first_rank) for one in worst] == [("c", None), ("d", None), ("b", 2)]
    found = {one.qid: one for one in sampled(QRELS, RUN, n=9)}
    assert {qid: one.first_rank for qid, one in found.items()} == ranks
    assert (found["c"].wanted, found["c"].returned) == (worst[0].wanted, worst[0].returned) == (["d9"], ["d1"])
    assert sampled(QRELS, RUN, n=2) == sampled(QRELS, RUN, n=2)
    assert analysis.scores_by_relevance({"b": QRELS["b"]}, RUN) == {"relevant": [3.0, 3.0], "others": [3.0]}
    assert analysis.scores_by_relevance(QRELS, {}) == {"relevant": [], "others": []}


def test_documents_that_are_not_indexed_are_explained(tiny_library, analysis):
    qrels = {"a": {"FICTIF0101": 1, "FICTIF0102-3": 1, "fictif0103": 1, "AUTRE": 1, "HORS": 0}}
    why = {one.doc_id: one.why for one in analysis.absences(qrels, tiny_library)}
    assert why.keys() == {"FICTIF0102-3", "fictif0103", "AUTRE"}
    assert "id of a chunk" in why["FICTIF0102-3"]
    assert why["fictif0103"] == "indexed as 'FICTIF0103'"
    assert why["AUTRE"].startswith("not indexed")


def test_ids_that_differ_in_form_alone_are_told_apart_from_others(analysis):
    qrels = {"q1": {"JURITEXT1": 1}, "q2": {"CETA2-0": 1}, "Q3": {"const3": 1}, "q4": {"absent": 1, "HORS": 0}}
    run = {"q1": [("JURITEXT1-4", 3.0)], "q2": [("CETA2", 2.0)], "q3": [("CONST3", 1.0)], "q4": [("HORS", 1.0)]}
    assert analysis.id_mismatches(qrels, run) == [
        analysis.Mismatch("query ids differ in case", 1, "Q3", "q3"),
        analysis.Mismatch("document ids differ in case", 1, "const3", "CONST3"),
        analysis.Mismatch("document ids are the run's chunk ids less their numbers", 1, "JURITEXT1", "JURITEXT1-4"),
        analysis.Mismatch("document ids are chunk ids, the run's are not", 1, "CETA2-0", "CETA2"),
    ]
    assert (
        analysis.id_mismatches(QRELS, RUN)
        == analysis.id_mismatches({"q": {"arret-1": 1}}, {"q": [("arret-2", 1.0)]})
        == []
    )
    assert analysis.overlap(qrels, run) == analysis.Overlap(queries=3, only_judged=1, only_run=1, wanted=4, returned=0)
    assert analysis.overlap(QRELS, RUN) == analysis.Overlap(queries=3, only_judged=1, only_run=0, wanted=5, returned=3)


@pytest.fixture
def script(monkeypatch, tmp_path, capsys):
    """Run a script in an empty folder; return its status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def running(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")
        return left.value.code, *capsys.readouterr()

    return running


def test_batch_query_writes_run_and_qrels_and_replaces_them_only_if_told(place, tmp_path, script):
    place = [*place, "--mode", "bm25"]
    status, printed, _ = script("batch_query", *place, "--queries", "sample")
    assert status == 0
    assert sum(line.startswith(("HIT ", "MISS ")) for line in printed.splitlines()) == 5
    assert {path.name for path in tmp_path.iterdir()} == {"run.txt", "qrels.txt"}
    assert len(read_run("run.txt")) == len(read_qrels("qrels.txt")) == 40
    (tmp_path / "run.txt").write_text("mine")
    status, printed, error = script("batch_query", *place, "--queries", "sample")
    assert (status, printed, error.count("\n")) == (1, "", 1)
    assert "there already: run.txt, qrels.txt (expected --force" in error
    assert (tmp_path / "run.txt").read_text() == "mine"
    assert script("batch_query", *place, "--queries", "sample", "--force", "--show", "0")[0] == 0
    assert script("batch_query", *place, "--queries", "sample", "--output", "a/b")[0] == 0
    assert read_run("a/b/run.txt") == read_run("run.txt") != {}


def test_bare_run_and_qrels_files_are_analysed_without_an_index(tmp_path, script):
    write_run(tmp_path / "one.txt", RUN)
    write_run(tmp_path / "chunks.txt", {qid: [(f"{doc}-0", score) for doc, score in some] for qid, some in RUN.items()})
    write_qrels(tmp_path / "qrels.txt", QRELS)
    status, printed, _ = script("analyze_retrieval_results", "--qrels", "qrels.txt", "one.txt", "chunks.txt")
    assert status == 0
    for line in (
        "queries    3 in both, 1 only judged, 0 only in the run",
        "relevant   3 of 5 documents in the run, at any rank",
        "relevant   0 of 5 documents in the run, at any rank",
        "mismatch   3 judged document ids are the run's chunk ids less their numbers: d1, d1-0",
        "scores     relevant      3  3.000  3.000  3.000  3.000  3.000  (least, quartiles, highest)",
    ):
        assert line in printed.splitlines()
    assert "R@1        0.2500" in printed
    status, _, error = script("analyze_retrieval_results", "one.txt")
    assert (status, error.count("\n")) == (1, 1)
    assert "no judgements: give --qrels, or --queries that name a doc_id" in error
    wrong = ["--qrels", "qrels.txt", "one.txt", "--index-name", "absent"]
    assert "no index at" in script("analyze_retrieval_results", *wrong)[2]


def test_an_analysis_takes_citations_from_the_index_and_texts_from_the_questions(place, tmp_path, script):
    write_run(tmp_path / "run.txt", {"exemple-01": [("FICTIF0101", 1.0)]})
    _, printed, _ = script("analyze_retrieval_results", *place, "--queries", "sample", "--show", 40, "run.txt")
    assert printed.count("Cons. const.") + printed.count("Cass.") >= 1
    assert read_queries("sample")[0][0].text in printed


def test_an_index_with_none_of_the_runs_documents_is_named_once(place, tiny_library, tmp_path, script):
    write_run(tmp_path / "run.txt", RUN)
    write_qrels(tmp_path / "qrels.txt", QRELS)
    status, printed, error = script("analyze_retrieval_results", *place, "--qrels", "qrels.txt", "run.txt")
    assert (status, "not in the index" in printed, "absent: " in printed) == (0, False, False)
    assert error.startswith(f"no document of the runs is in {tiny_library.path}: no titles (--index-name names ")
    assert error.count("\n") == 1


def test_an_environment_without_pyserini_is_one_line_before_the_search(place, tmp_path, script, monkeypatch):
    monkeypatch.setattr("legal_rag.retriever.retriever.build_retriever", lambda *_, **__: pytest.fail("searched"))
    monkeypatch.setenv("LEGAL_RAG_TREC", str(tmp_path / "python"))
    status, _, error = script("batch_query", *place, "--queries", "sample", "--pyserini")
    assert (status, error.count("\n")) == (1, 1)
    assert f"no Python with pyserini at {tmp_path / 'python'} ('make trec' makes .venv-trec" in error
    monkeypatch.setenv("LEGAL_RAG_TREC", sys.executable)
    with pytest.raises(OSError, match="ran no trec_eval: .*pyserini"):
        trec_eval(QRELS, RUN)


def test_the_environment_is_found_where_the_work_is_done(tmp_path, monkeypatch):
    monkeypatch.delenv("LEGAL_RAG_TREC", raising=False)
    monkeypatch.chdir(tmp_path)
    python = tmp_path / ".venv-trec" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert find_trec_python() == python


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_trec_eval_prints_the_same_figures(retriever, place, trec_python, script, monkeypatch):
    monkeypatch.setenv("LEGAL_RAG_TREC", str(trec_python))
    queries, qrels = read_queries("sample")
    run = batch_query(retriever, queries, 100, mode="hybrid")
    ours = {figure.measure: figure.mean for figure in evaluate_run(qrels, run).figures}
    theirs = trec_eval(qrels, run)
    assert theirs.keys() == ours.keys() - {"Judged@10"}
    for name, value in theirs.items():
        assert value == pytest.approx(ours[name], abs=5e-5), name
    status, printed, _ = script("batch_query", *place, "--queries", "sample", "--pyserini")
    assert status == 0
    assert f"trec_eval {theirs['R@5']:.4f}" in printed
    command = [trec_python, "-m", "pyserini.eval.trec_eval", "-c", "-m", "recall.5", "qrels.txt", "run.txt"]
    assert subprocess.check_output(command, text=True).split() == ["recall_5", "all", f"{theirs['R@5']:.4f}"]
    analysed = script("analyze_retrieval_results", "--pyserini", "--qrels", "qrels.txt", "run.txt")[1]
    assert f"trec_eval {theirs['R@5']:.4f}" in analysed


def test_a_run_is_read_in_the_order_of_its_scores_alone_as_trec_eval_does(tmp_path):
    (tmp_path / "run.txt").write_text("q1 Q0 b 1 1.0 x\nq1 Q0 a 2 2.0 x\nq2 Q0 a 1 5 x\nq2 Q0 b 2 5.00000001 x\n")
    assert [[doc_id for doc_id, _ in ranked] for ranked in read_run(tmp_path / "run.txt").values()] == [
        ["a", "b"],
        ["b", "a"],
    ]


@pytest.mark.parametrize("highest", [30.0, 1500.0, 90_000.0])
def test_written_scores_fall_in_single_precision(tmp_path, highest):
    write_run(tmp_path / "run.txt", {"q": [(f"d{i}", highest - i * 1e-6) for i in range(100)]})
    (ranked,) = read_run(tmp_path / "run.txt").values()
    assert [doc_id for doc_id, _ in ranked] == [f"d{i}" for i in range(100)]


def test_what_would_lose_the_run_is_told_before_the_search(place, tmp_path, refused, monkeypatch):
    monkeypatch.setattr("legal_rag.retriever.retriever.build_retriever", lambda *_, **__: pytest.fail("searched"))
    (tmp_path / "q.jsonl").write_text('{"qid": "1", "question": "Quoi ?"}\n')
    assert "names no doc_id" in refused("evaluate", *place, "--queries", tmp_path / "q.jsonl")
