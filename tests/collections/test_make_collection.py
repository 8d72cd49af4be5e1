"""`collections/`: every form of a small collection is read back; what does not fit together is refused."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import ROOT

from legal_rag.corpus import SourceOptions, read_documents
from legal_rag.evaluation import read_qrels, write_run

PROGRAM = ROOT / "collections" / "make_collection.py"
MAKE = SimpleNamespace(**runpy.run_path(str(PROGRAM)))

DOCUMENTS = [
    {
        "id": "JURI1",
        "title": "Cour d'Æa, 2001",
        "content": "Le mât\tbrisé n'est pas « réparé ».\n\nPAR CES MOTIFS, rejette.",
    },
    {
        "id": "JURI2",
        "title": "Cour de Bée",
        "content": 'Il dit : "non".\u2028Puis œuvre.',
        "section": "Livre Ier >\nTitre II",
    },
    {"id": "JURI3", "title": "", "content": "Une seule ligne"},
]
QUERIES = [
    {"qid": "q-1", "question": "Qui paie\tle mât ?", "doc_id": "JURI1"},
    {"qid": "q-2", "question": "Qu'a-t-il dit ?", "doc_id": ["JURI2", "JURI3"]},
]
TABLE = """
withdrawn = {withdrawn}
[collections.decisions]
title = "Essai : deux questions"
about = "Deux questions."
licenses = ["etalab-2.0"]
documents = "decisions.jsonl"
queries = "questions.jsonl"
splits = "splits.tsv"
{more}
"""


def write_lines(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def data(tmp_path):
    write_lines(tmp_path / "decisions.jsonl", DOCUMENTS)
    write_lines(tmp_path / "questions.jsonl", QUERIES)
    (tmp_path / "splits.tsv").write_text("qid\tsplit\nq-1\tdev\nq-2\ttest\n", "utf-8")
    return tmp_path


def read(data: Path, withdrawn: str = "[]", more: str = ""):
    (data / "table.toml").write_text(TABLE.format(withdrawn=withdrawn, more=more), "utf-8")
    (collection,) = MAKE.read_collections(data, data / "table.toml")
    return collection


def texts(collection) -> dict[str, tuple[str, str]]:
    return {passage.doc_id: (passage.title, passage.text) for passage in collection.documents}


def test_the_form_of_beir_holds_documents_questions_and_judgements_by_split(data):
    collection = read(data)
    MAKE.write_collection(collection, data / "made")
    folder = data / "made" / "beir"
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert {row["_id"]: (row["title"], row["text"]) for row in corpus} == texts(collection)
    options = SourceOptions(id_column="_id", text_column="text")
    again = {document.id: document.content for document in read_documents(folder / "corpus.jsonl", options)}
    assert again == {doc_id: text for doc_id, (_, text) in texts(collection).items()}
    assert texts(collection)["JURI2"][0] == "Cour de Bée – Livre Ier > Titre II"
    assert json.loads((folder / "queries.jsonl").read_text("utf-8").splitlines()[0])["_id"] == "q-1"
    judged = (folder / "qrels" / "test.tsv").read_text("utf-8")
    assert judged == "query-id\tcorpus-id\tscore\nq-2\tJURI2\t1\nq-2\tJURI3\t1\n"


def test_the_form_of_trec_has_a_line_for_each_topic_and_judgement(data):
    MAKE.write_collection(read(data), data / "made")
    folder = data / "made" / "trec"
    assert (folder / "topics.tsv").read_text("utf-8") == "q-1\tQui paie le mât ?\nq-2\tQu'a-t-il dit ?\n"
    assert read_qrels(folder / "qrels.dev.txt") == {"q-1": {"JURI1": 1}}
    assert read_qrels(folder / "qrels.test.txt") == {"q-2": {"JURI2": 1, "JURI3": 1}}
    assert (data / "made" / "ids.txt").read_text("utf-8").split() == ["JURI1", "JURI2", "JURI3"]


def test_datasets_reads_the_form_of_the_hub_and_sees_what_was_made_anew(data):
    from datasets import load_dataset

    collection = read(data)
    folder = data / "made" / "hub"
    MAKE.write_collection(collection, data / "made")
    place = {"cache_dir": str(data / "cache")}
    corpus = load_dataset(str(folder), "corpus", split="corpus", **place)
    assert {row["_id"]: (row["title"], row["text"]) for row in corpus} == texts(collection)
    assert load_dataset(str(folder), "queries", split="queries", **place)["_id"] == ["q-1", "q-2"]
    assert load_dataset(str(folder), "qrels", split="dev", **place).to_list() == [
        {"query-id": "q-1", "corpus-id": "JURI1", "score": 1}
    ]
    (data / "made").rename(data / "old")
    (data / "grades.txt").write_text("q-1 0 JURI1 3\nq-1 0 JURI2 0\nq-2 0 JURI2 2\n", "utf-8")
    MAKE.write_collection(read(data, more='judgements = "grades.txt"'), data / "made")
    assert load_dataset(str(folder), "qrels", split="dev", **place)["score"] == [3, 0]


def test_with_ids_only_no_text_is_written_but_all_that_makes_the_same_with_the_texts(data):
    collection = read(data)
    made = data / "made"
    MAKE.write_collection(collection, made, ids_only=True)
    written = [path for path in made.rglob("*") if path.is_file()]
    assert not any(b"rejette" in path.read_bytes() for path in written)
    assert not any(path.name.startswith("corpus") for path in written)
    assert '"corpus"' not in (made / "hub" / "README.md").read_text("utf-8")
    for name in ("decisions.jsonl", "splits.tsv"):
        (data / name).rename(made / "data" / name)
    (made / "ids.txt").rename(made / "data" / "ids.txt")
    again = read(made / "data", more='ids = "ids.txt"')
    assert (again.documents, again.queries, again.qrels) == (collection.documents, collection.queries, collection.qrels)


def test_a_withdrawn_text_leaves_with_its_judgements_and_the_question_that_only_it_answers(data):
    collection = read(data, withdrawn='["JURI1", "JURI3"]')
    assert list(texts(collection)) == ["JURI2"]
    assert [query.qid for query in collection.queries] == ["q-2"]
    assert collection.qrels == {"dev": {}, "test": {"q-2": {"JURI2": 1}}}


def test_documents_are_taken_by_ids_from_a_larger_file(data):
    (data / "ids.txt").write_text("JURI1\nJURI2\nJURI3\n", "utf-8")
    write_lines(data / "decisions.jsonl", [*DOCUMENTS, {"id": "JURI4", "content": "Autre."}])
    assert list(texts(read(data, more='ids = "ids.txt"'))) == ["JURI1", "JURI2", "JURI3"]


SPLITS = "qid\tsplit\n"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("splits.tsv", SPLITS + "q-1\tdev\nq-2\ttest\nq-9\ttest\n", "splits.tsv: 'q-9' has no question"),
        ("splits.tsv", SPLITS + "q-1\tdev\n", "questions.jsonl: 'q-2' has no split in splits.tsv"),
        ("grades.txt", "q-1 0 JURI1 1\nq-3 0 JURI2 1\n", "grades.txt: 'q-3' has no question"),
        ("grades.txt", "q-1 0 JURI9 1\n", "grades.txt: 'JURI9' has no document"),
        ("ids.txt", "JURI1\nJURI2\nJURI3\nJURI8\n", "lacks 1 of 4 documents, e.g. 'JURI8'"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(data, file, content, message):
    (data / "grades.txt").write_text("q-1 0 JURI1 1\nq-2 0 JURI2 1\n", "utf-8")
    (data / "ids.txt").write_text("JURI1\nJURI2\nJURI3\n", "utf-8")
    (data / file).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=message):
        read(data, more='ids = "ids.txt"\njudgements = "grades.txt"')


def test_an_id_that_comes_twice_is_refused(data):
    write_lines(data / "decisions.jsonl", [*DOCUMENTS, DOCUMENTS[0]])
    with pytest.raises(ValueError, match=r"decisions\.jsonl.*duplicate id 'JURI1'"):
        read(data)


def test_a_folder_without_the_data_is_one_line_and_status_1(tmp_path, capsys):
    assert MAKE.main(["--data", str(tmp_path), "--output", str(tmp_path / "made")]) == 1
    assert capsys.readouterr().err == f"decisions: no such file: {tmp_path / 'decisions.jsonl.gz'}\n"
    assert not (tmp_path / "made").exists()


@pytest.mark.shared
@pytest.mark.slow
def test_the_collections_are_made_and_no_decision_and_no_sheet_is_in_both_splits(shared_data, tmp_path, capsys):
    assert MAKE.main(["--data", str(shared_data), "--output", str(tmp_path), "--ids-only"]) == 0
    counts = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert counts == [
        *["4097 documents, 60 questions (20 dev, 40 test)"] * 2,
        "11455 documents, 126 questions (42 dev, 84 test)",
        "11455 documents, 175 questions (58 dev, 117 test)",
    ]
    splits: dict[str, set[str]] = {}  # of each decision, of each sheet
    for name in ("decisions", "travail"):
        lines = (tmp_path / name / "trec" / "topics.tsv").read_text("utf-8").splitlines()
        sheets = {qid: text.split(" : ")[0] for qid, text in (line.split("\t") for line in lines)}
        for split in ("dev", "test"):
            for qid, judged in read_qrels(tmp_path / name / "trec" / f"qrels.{split}.txt").items():
                splits.setdefault(sheets[qid] if name == "travail" else min(judged), set()).add(split)
    assert len(splits) == 60 + 56
    assert {len(of) for of in splits.values()} == {1}


@pytest.mark.slow
def test_four_libraries_read_the_forms_and_give_our_figures(data, monkeypatch):
    if not MAKE.READERS.is_file():
        pytest.skip("no .venv-collections: `make collections` makes it")
    monkeypatch.setenv("HF_HOME", str(data / "hub-cache"))
    monkeypatch.setenv("IR_DATASETS_HOME", str(data / "ir-datasets"))
    (data / "grades.txt").write_text("q-1 0 JURI1 3\nq-1 0 JURI3 1\nq-2 0 JURI2 2\nq-2 0 JURI1 0\n", "utf-8")
    (data / "splits.tsv").write_text("qid\tsplit\nq-1\ttest\nq-2\ttest\n", "utf-8")
    collection = read(data, more='judgements = "grades.txt"')
    MAKE.write_collection(collection, data / "made" / "decisions")
    run = {"q-1": [("JURI3", 3.0), ("JURI1", 2.0)], "q-2": [("JURI1", 1.5), ("JURI2", 1.25), ("JURI3", 1.0)]}
    (data / "runs" / "decisions" / "essai").mkdir(parents=True)
    write_run(data / "runs" / "decisions" / "essai" / "run.txt", run)
    assert MAKE.check([collection], data / "made", data / "runs") == 0
    (data / "made" / "decisions" / "trec" / "qrels.test.txt").write_text("q-1 0 JURI1 1\nq-2 0 JURI2 2\n", "utf-8")
    assert MAKE.check([collection], data / "made", data / "runs") == 1
    with pytest.raises(FileNotFoundError, match="no run in .*made"):
        MAKE.check([collection], data / "made", data / "made")
