"""Near misses: a changed question is kept where no passage that a search finds holds the change or answers it."""

import json
import re

import pytest
from datasets import load_from_disk
from support.scripted_author import author
from support.scripted_server import Reply, ScriptedServer, fields

from legal_rag.agent import build_language_model
from legal_rag.cli import main
from legal_rag.evaluation import read_queries
from legal_rag.evaluation.questions import QuestionSettings, SourceDocuments, generate_questions
from legal_rag.evaluation.questions.dataset import CheckpointRecord, schema, split_of, write_dataset
from legal_rag.evaluation.questions.generate import estimate
from legal_rag.evaluation.questions.near_misses import holds_change, near_miss_problem

QUESTION = "Quelle indemnité la cour d'appel de Lyon alloue-t-elle au salarié licencié en 2015 sans cause réelle ?"


@pytest.fixture(scope="module")
def library(index_of, sample_rows):
    return index_of([dict(row) for row in sample_rows[:12]], n_bits=0)


def field_of(prompt, name):
    return re.search(rf".*\[\[ ## {name} ## \]\]\n(.*?)\n\n", prompt, re.DOTALL).group(1)


NO = fields(answers="non")


def changes(near=lambda question: question.replace("dossier ", "dossier zz"), verdict=NO):
    """Return the script of a model that writes good questions, changes them as told, and gives one verdict."""
    write = author(with_mischief=False)

    def script(prompt, attempt):
        if "[[ ## near_question ## ]]" in prompt:
            changed = near(field_of(prompt, "question"))
            return changed if isinstance(changed, Reply) else fields(near_question=changed)
        return verdict if "[[ ## answers ## ]]" in prompt else write(prompt, attempt)

    return script


def made(library, folder, script, **settings):
    with ScriptedServer(script) as server:
        lm = build_language_model("scripted", "sk-key", server.api_base, cache=False)
        report = generate_questions(library, lm, output=folder, **{"unanswerable": 1.0, **settings})
        return report, len(server.prompts)


def rows_of(folder):
    return [(split, row) for split, part in load_from_disk(str(folder)).items() for row in part]


def test_a_near_miss_has_no_document_and_lies_in_the_split_of_the_one_it_is_near_to(library, tmp_path, capsys):
    report, asked = made(library, tmp_path / "set", changes())
    rows = rows_of(tmp_path / "set")
    near = [row for _, row in rows if not row["answerable"]]
    assert len(near) == report.unanswerable == report.accepted == 12
    assert (asked, report.replies) == (12 * (1 + 1 + 6), 12 * (1 + 1 + 6))
    assert all(split == split_of(row["near_doc_id"] or row["doc_id"], 0) for split, row in rows)
    sources = {row["doc_id"]: row for _, row in rows if row["answerable"]}
    for row in near:
        assert row["question"] == sources[row["near_doc_id"]]["question"].replace("dossier ", "dossier zz")
        assert (row["doc_id"], row["answer"], row["answer_span_start"], row["score"]) == (None,) * 4
    queries, qrels = read_queries(tmp_path / "set")
    assert {query.qid for query in queries} - qrels.keys() == {row["id"] for row in near}
    assert "| questions sans réponse | 12 |" in (tmp_path / "set" / "README.md").read_text("utf-8")

    assert made(library, tmp_path / "set", changes()) == (report, 0)
    place = ["--index-folder", str(library.path.parent), "--index-name", library.path.name]
    assert main(["evaluate", *place, "--abstention", "--queries", str(tmp_path / "set"), "--json"]) == 0
    assert sum(json.loads(capsys.readouterr().out)["outcomes"]["unanswerable"].values()) == 12


def test_a_share_of_the_questions_gets_a_near_miss_the_same_at_each_run_and_among_more_documents(library, tmp_path):
    def near(folder, **settings):
        made(library, tmp_path / folder, changes(), unanswerable=0.5, **settings)
        return {row["near_doc_id"] for _, row in rows_of(tmp_path / folder)} - {None}

    few, more = near("few", limit=6), near("more")
    assert few <= more
    assert 2 <= len(more) <= 10
    drawn = {row["doc_id"] for _, row in rows_of(tmp_path / "few")} - {None}
    assert few == more & drawn


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (changes(lambda question: question), "not_near"),
        (changes(lambda question: "Quelle pâte faut-il laisser lever avant de la mettre au four ?"), "not_near"),
        (changes(lambda question: "Which rule does the court apply to the claim of 1987?"), "not_french"),
        (changes(lambda question: question.rstrip(" ?")), "wrong_form"),
        (changes(lambda question: question.replace("dossier ", "dossier zz de cet arrêt ")), "refers_to_text"),
        (changes(lambda question: Reply("Voici.")), "unreadable"),
        (changes(lambda question: re.sub(r"dossier \w+", "dossier de la cour", question)), "stated"),
        (changes(verdict=fields(answers="oui")), "answered"),
        (changes(verdict=Reply("Peut-être.")), "answered"),
    ],
)
def test_a_change_that_may_have_an_answer_or_is_none_is_counted_by_reason(library, tmp_path, script, reason):
    report, _ = made(library, tmp_path / "set", script, limit=3, tries=2)
    assert (report.accepted, report.unanswerable, report.near_rejected) == (3, 0, {reason: 3})
    assert "## Questions sans réponse écartées\n\n| raison" in (tmp_path / "set" / "README.md").read_text("utf-8")


def test_a_second_try_may_pass(library, tmp_path):
    script = changes()
    report, _ = made(
        library,
        tmp_path / "set",
        lambda prompt, attempt: Reply("") if "near_question" in prompt and not attempt else script(prompt, attempt),
        limit=3,
    )
    assert (report.unanswerable, report.near_rejected) == (3, {})


def test_a_document_whose_near_miss_failed_is_asked_about_again_by_the_next_run(library, tmp_path):
    refused = Reply(status=400, raw_body='{"error": {"message": "too long for me"}}')
    report, _ = made(library, tmp_path / "set", changes(lambda question: refused), limit=3)
    assert (report.accepted, report.failed) == (0, {"request": 3})
    report, _ = made(library, tmp_path / "set", changes(), limit=3)
    assert (report.accepted, report.unanswerable, report.failed) == (3, 3, {})


def test_what_is_added_is_looked_for_in_any_form_and_amounts_by_their_value():
    def added(question, text):
        return holds_change(text, question, QUESTION)

    year = QUESTION.replace("2015", "2011")
    assert near_miss_problem(year, QUESTION) == ""
    assert added(year, "Cour d'appel de Lyon, 3 mars 2011 ; le salarié")
    assert not added(year, "Cour d'appel de Lyon, 3 mars 2015 ; le salarié")
    role = QUESTION.replace("salarié licencié", "dirigeant révoqué")
    assert added(role, "Les dirigeants ont été révoqués.")
    assert not added(role, "Les dirigeants ont été remplacés.")
    amount = QUESTION.replace("en 2015", "pour 12 000 euros")
    assert added(amount, "une somme de douze mille euros")
    assert not added(amount, "une somme de treize mille euros")
    assert near_miss_problem(QUESTION.replace("sans", "avec"), QUESTION) == "not_near"  # words that a search drops


def test_a_near_miss_that_another_document_answers_is_not_kept(tmp_path):
    def record(doc_id, question, near):
        row = {"doc_id": doc_id, "question": question, "key_entities": []}
        columns = dict.fromkeys(schema(settings)) | row
        near_miss = columns | {"doc_id": None, "question": near, "near_doc_id": doc_id}
        return CheckpointRecord(doc_id=doc_id, content_hash="", status="accepted", row=columns, near_miss=near_miss)

    settings, other = QuestionSettings(unanswerable=1.0), QUESTION.replace("2015", "2016")
    records = [record("a", QUESTION, other), record("b", other, other.replace("Lyon", "Metz"))]
    splits, n_near, n_repeated = write_dataset(tmp_path, records, settings)
    assert (sum(splits.values()), n_near, n_repeated) == (3, 1, 0)
    assert {row["near_doc_id"] for _, row in rows_of(tmp_path)} == {None, "b"}


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ("index", {"unanswerable": 1.5}, "unanswerable must be a share from 0 to 1, got 1.5"),
        ("rows", {"unanswerable": 0.5}, "unanswerable searches an index, and a source has none"),
        ("no model", {"unanswerable": 0.5}, "questions without an answer are written by a model"),
    ],
)
def test_what_near_misses_need_is_said_before_anything_is_asked(
    library, sample_rows, tmp_path, source, settings, message
):
    lm = None if source == "no model" else build_language_model("m", "sk-key", "http://127.0.0.1:9/v1")
    documents = SourceDocuments(sample_rows) if source == "rows" else library
    with pytest.raises(ValueError, match=message):
        generate_questions(documents, lm, output=tmp_path / "set", **settings)
    assert not (tmp_path / "set").exists()


def test_an_estimate_holds_the_requests_for_near_misses(library, tmp_path):
    settings = {"unanswerable": 1.0, "strategy": "best-of-n", "tries": 1}
    lm = build_language_model("m", "sk-key", "http://127.0.0.1:9/v1")
    found = estimate(library, lm, settings=QuestionSettings(**settings))
    assert found.requests == (12, made(library, tmp_path / "set", changes(), **settings)[1])
