"""Datasets of questions: what a model replies, well or badly, becomes rows that anyone can check, once and for all."""

import json
import random
import re
import subprocess
import sys
import time

import dspy
import pyarrow.parquet as pq
import pytest
from datasets import load_from_disk
from dspy.utils import DummyLM
from support import ROOT
from support.killable import Killable, run_command
from support.scripted_author import PASSING, author, context_of, good_reply, mischief_of
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import build_language_model
from legal_rag.cli import main
from legal_rag.corpus.files import is_french
from legal_rag.evaluation import caution, read_queries
from legal_rag.evaluation.questions import QuestionSettings, SourceDocuments, generate_questions
from legal_rag.evaluation.questions.dataset import (
    SPLITS,
    Checkpoint,
    CheckpointRecord,
    SeenQuestions,
    split_of,
    write_dataset,
)
from legal_rag.evaluation.questions.generate import estimate
from legal_rag.indexer import IndexConfig, add_documents, build_index, open_index
from legal_rag.library import Library
from legal_rag.llm import Price

KEY = "sk-secret-of-the-test"
COLUMNS = (
    "id doc_id question answer answer_span_start answer_span_end main_topic document_title summary key_entities score "
    "model prompt_hash"
).split()
# What becomes of a text that the scripted model does something bad about, always.
ALWAYS = {"english_always": "not_french", "ungrounded_always": "ungrounded", "empty_always": "unreadable"}


def made_up(rows, count):
    """Make as many decisions as wanted out of the sample's: each with lines of its own, in an order of its own."""
    for number in range(count):
        row = dict(rows[number % len(rows)])
        lines = [line for line in row["content"].split("\n") if line.strip()]
        turn = number % len(lines)
        content = "\n".join([f"Dossier n° {number} du rôle.", *lines[turn:], *lines[:turn]])
        yield {**row, "id": f"DECISION{number:05}", "content": content[:6000]}


def library_of(rows, folder, encoder, fill=build_index):
    config = IndexConfig(source=list(rows), index_folder=str(folder), n_bits=0)
    fill(config, encoder)
    return open_index(config)


@pytest.fixture(scope="module")
def library(sample_rows, tiny_encoder, tmp_path_factory) -> Library:
    """Return five hundred made-up decisions, indexed by their words."""
    return library_of(made_up(sample_rows, 500), tmp_path_factory.mktemp("questions-index"), tiny_encoder)


@pytest.fixture(scope="module")
def medium_library(sample_rows, tiny_encoder, tmp_path_factory) -> Library:
    return library_of(made_up(sample_rows, 30), tmp_path_factory.mktemp("medium-index"), tiny_encoder)


@pytest.fixture(scope="module")
def small_library(sample_rows, tiny_encoder, tmp_path_factory) -> Library:
    return library_of(made_up(sample_rows, 12), tmp_path_factory.mktemp("small-index"), tiny_encoder)


def model_at(server):
    return build_language_model("scripted", KEY, server.api_base, cache=False)


def rows_of(folder):
    return [row for part in load_from_disk(str(folder)).values() for row in part]


def asked_about(prompts):
    return [context for context in map(context_of, prompts) if context is not None]


def check_rows(rows, library):
    """Check accepted rows by nothing but the documents: verbatim, French, unique."""
    assert len({row["id"] for row in rows}) == len({row["question"] for row in rows}) == len(rows)
    for row in rows:
        content = library.document(row["doc_id"]).content
        assert content[row["answer_span_start"] : row["answer_span_end"]] == row["answer"] != ""
        assert is_french(row["question"])
        assert row["question"].endswith("?")
        assert all(entity in content for entity in row["key_entities"])


@pytest.mark.slow
def test_five_hundred_decisions_give_rows_that_hold_whatever_the_model_does(library, tmp_path, capsys):
    with ScriptedServer(author(slow_seconds=0.05)) as server:
        report = generate_questions(library, model_at(server), workers=8, output=tmp_path / "set")
        n_asked = len(server.prompts)
    rows = rows_of(tmp_path / "set")
    check_rows(rows, library)
    assert report.accepted == len(rows) > 380
    assert report.accepted + report.duplicates + sum(report.rejected.values()) == report.documents == 500
    kinds = [mischief_of(library.document(doc_id).content.strip()) for doc_id in library]
    assert report.rejected.keys() >= set(ALWAYS.values())
    kept = {row["doc_id"] for row in rows}
    hopeless = {doc for doc, kind in zip(library, kinds, strict=True) if kind in ALWAYS}
    assert len(hopeless) > 20
    assert not kept & hopeless
    recovered = [doc for doc, kind in zip(library, kinds, strict=True) if kind in PASSING | {"no_json", "cut_off"}]
    assert len(kept.intersection(recovered)) > 0.8 * len(recovered)
    assert report.failed == {}
    assert 500 < report.replies < n_asked  # some requests got no reply
    assert "Attempt failed" not in capsys.readouterr().out


def test_a_dataset_has_its_columns_splits_card_and_parquet(small_library, tmp_path):
    with ScriptedServer(author(with_mischief=False)) as server:
        report = generate_questions(small_library, model_at(server), output=tmp_path / "set", seed=4)
    saved = load_from_disk(str(tmp_path / "set"))
    assert list(saved) == list(SPLITS)
    for split, part in saved.items():
        assert part.column_names == COLUMNS
        assert report.splits[split] == len(part)
        assert all(split_of(row["doc_id"], 4) == split for row in part)
        assert pq.read_table(tmp_path / "set" / "data" / f"{split}.parquet").to_pylist() == list(part)
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    for shown in (
        "language: fr",
        "| modèle | openai/scripted |",
        "| `seed` | 4 |",
        f"| documents | {report.documents} |",
    ):
        assert shown in card
    (prompt_hash,) = {row["prompt_hash"] for row in rows_of(tmp_path / "set")}
    assert len(prompt_hash) == 16
    queries, qrels = read_queries(tmp_path / "set")
    assert {query.qid: [*qrels[query.qid]] for query in queries} == {
        row["id"]: [row["doc_id"]] for row in rows_of(tmp_path / "set")
    }


def test_a_finished_run_asks_nothing_again_and_gives_the_same_files(small_library, tmp_path):
    with ScriptedServer(author()) as server:
        first = generate_questions(small_library, model_at(server), output=tmp_path / "set")
        asked = len(server.prompts)
        files = {path.name: path.read_bytes() for path in (tmp_path / "set" / "data").iterdir()}
        assert generate_questions(small_library, model_at(server), output=tmp_path / "set") == first
        assert len(server.prompts) == asked
    assert {path.name: path.read_bytes() for path in (tmp_path / "set" / "data").iterdir()} == files
    assert not any(KEY.encode() in path.read_bytes() for path in (tmp_path / "set").rglob("*") if path.is_file())


def test_the_documents_drawn_grow_with_the_limit_and_depend_on_the_seed(medium_library, tmp_path):
    def drawn(limit, seed, folder):
        with ScriptedServer(author(with_mischief=False)) as server:
            report = generate_questions(
                medium_library, model_at(server), limit=limit, seed=seed, output=tmp_path / folder
            )
            return report.documents, {row["doc_id"] for row in rows_of(tmp_path / folder)}, len(server.prompts)

    n_few, few, _ = drawn(10, 1, "set")
    n_more, more, asked = drawn(20, 1, "set")  # the same folder: the first ten are there already
    _, others, _ = drawn(10, 2, "other")
    assert (n_few, n_more) == (10, 20)
    assert few <= more
    assert asked <= 10 * 5
    assert others != few


def test_a_model_that_goes_away_stops_the_run_and_another_run_goes_on(medium_library, tmp_path):
    with ScriptedServer(author()) as server:
        generate_questions(medium_library, model_at(server), limit=30, output=tmp_path / "whole")
    good, count = author(), 0

    def refuses_after_a_while(prompt, attempt):
        nonlocal count
        count += 1
        return good(prompt, attempt) if count <= 25 else Reply(status=401, raw_body='{"error": {"message": "no"}}')

    refused = pytest.raises(ConnectionError, match="the key was refused.*run it again")
    with ScriptedServer(refuses_after_a_while) as server, refused:
        generate_questions(medium_library, model_at(server), limit=30, output=tmp_path / "set")
    kept = (tmp_path / "set" / "progress.jsonl").read_text("utf-8").splitlines()[1:]
    finished = {record["doc_id"] for record in map(json.loads, kept) if record["status"] != "failed"}
    assert 5 < len(finished) < 30
    assert not (tmp_path / "set" / "dataset_dict.json").exists()

    with ScriptedServer(author()) as server:
        generate_questions(medium_library, model_at(server), limit=30, output=tmp_path / "set")
        contexts = set(asked_about(server.prompts))
    assert not contexts & {medium_library.document(doc_id).content.strip() for doc_id in finished}
    assert rows_of(tmp_path / "set") == rows_of(tmp_path / "whole")


def test_documents_that_the_model_fails_on_are_counted_and_tried_again_by_the_next_run(small_library, tmp_path):
    unlucky = small_library.document("DECISION00003").content.strip()

    def refuses_one(prompt, attempt):
        refused = Reply(status=400, raw_body='{"error": {"message": "too long for me"}}')
        return refused if context_of(prompt) == unlucky else author(with_mischief=False)(prompt, attempt)

    with ScriptedServer(refuses_one) as server:
        report = generate_questions(small_library, model_at(server), output=tmp_path / "set")
    assert report.failed == {"request": 1}
    assert report.accepted + report.duplicates + sum(report.rejected.values()) == 11
    with ScriptedServer(author(with_mischief=False)) as server:
        report = generate_questions(small_library, model_at(server), output=tmp_path / "set")
        assert set(asked_about(server.prompts)) == {unlucky}
    assert report.failed == {}


def test_too_many_failures_in_a_row_stop_the_run(medium_library, tmp_path):
    with ScriptedServer(lambda *_: Reply(status=400, raw_body='{"error": {"message": "no"}}')) as server:
        with pytest.raises(ConnectionError, match="the model cannot be asked"):
            generate_questions(medium_library, model_at(server), output=tmp_path / "set", workers=2)
        assert len(server.prompts) < 40


def test_what_other_settings_began_is_not_gone_on_with(small_library, tmp_path):
    with ScriptedServer(author(with_mischief=False)) as server:
        generate_questions(small_library, model_at(server), limit=2, output=tmp_path / "set")
        with pytest.raises(ValueError, match="was begun with tries 3, now 2: choose another folder"):
            generate_questions(small_library, model_at(server), limit=2, tries=2, output=tmp_path / "set")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"tries": 0}, "tries must be at least 1, got 0"),
        ({"threshold": 0.5}, "threshold must be above 0.5 and at most 1, got 0.5"),
        ({"context_chars": 10}, "context_chars must be at least 500, got 10"),
        ({"strategy": "pray"}, "no strategy 'pray'"),
        ({"requests_per_minute": 0}, "requests_per_minute must be above 0, got 0"),
    ],
)
def test_a_setting_out_of_range_is_refused_before_anything_is_asked(small_library, tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        generate_questions(small_library, DummyLM([]), output=tmp_path / "set", **settings)


def test_a_document_that_changed_since_is_asked_about_anew(sample_rows, tiny_encoder, tmp_path):
    rows = list(made_up(sample_rows, 3))
    library = library_of(rows, tmp_path, tiny_encoder)
    with ScriptedServer(author(with_mischief=False)) as server:
        generate_questions(library, model_at(server), output=tmp_path / "set")
        before = len(server.prompts)
        changed = {**rows[1], "content": "Arrêt rectifié.\n" + rows[1]["content"]}
        library = library_of([changed], tmp_path, tiny_encoder, fill=add_documents)
        generate_questions(library, model_at(server), output=tmp_path / "set")
        assert set(asked_about(server.prompts[before:])) == {changed["content"].strip()}
    check_rows(rows_of(tmp_path / "set"), library)


def test_a_folder_that_holds_something_else_and_a_file_in_its_place_are_left_alone(small_library, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "set").write_text("x")
    with pytest.raises(ValueError, match="holds other things: data, set"):
        generate_questions(small_library, None, output=tmp_path)
    with pytest.raises(NotADirectoryError, match="set is a file"):
        generate_questions(small_library, None, output=tmp_path / "set")
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {"data", "set"}


def replies_until_told(prompt, attempt):
    """Reply without ground until the prompt holds advice."""
    context = context_of(prompt)
    if context is None or "[[ ## hint_ ## ]]" in prompt:
        return author(with_mischief=False)(prompt, attempt)
    return Reply(good_reply(context).content.replace("## answer ## ]]\n", "## answer ## ]]\nzéro "))


@pytest.mark.parametrize(("strategy", "requests", "accepted"), [("refine", 3, 1), ("best-of-n", 3, 0)])
def test_a_strategy_that_refines_tells_the_model_what_was_wrong(
    small_library, tmp_path, caplog, strategy, requests, accepted
):
    with ScriptedServer(replies_until_told) as server:
        report = generate_questions(
            small_library, model_at(server), limit=1, strategy=strategy, output=tmp_path / "set"
        )
        assert (len(server.prompts), report.accepted) == (requests, accepted)
    assert report.rejected == ({} if accepted else {"ungrounded": 1})
    assert [record.message for record in caplog.records if record.name == "root"] == []


def test_a_lower_threshold_keeps_what_only_speaks_of_the_text(small_library, tmp_path):
    def speaks_of_the_text(prompt, attempt):
        reply = good_reply(context_of(prompt) or "rien du tout")
        return Reply(reply.content.replace("Quelle règle", "Selon le texte, quelle règle"))

    for threshold, accepted in ((0.9, 1), (1.0, 0)):
        with ScriptedServer(speaks_of_the_text) as server:
            report = generate_questions(
                small_library,
                model_at(server),
                limit=1,
                strategy="best-of-n",
                threshold=threshold,
                output=tmp_path / str(threshold),
            )
        assert report.accepted == accepted
        assert report.mean_score == (0.9 if accepted else None)


def test_a_scripted_model_without_a_server_does_as_well(small_library, tmp_path):
    doc_id = next(iter(small_library))
    content = small_library.document(doc_id).content
    reply = {
        "summary": "Le juge statue sur la demande qui lui est soumise.",
        "main_topic": "Procédure",
        "question": "Quel dossier du rôle est examiné par les magistrats ?",
        "answer": "dossier n° 0 du RÔLE",
    }
    lm = DummyLM({content[:40]: reply})
    report = generate_questions(small_library, lm, workers=1, output=tmp_path / "set", tries=1)
    (row,) = rows_of(tmp_path / "set")
    assert (row["doc_id"], row["answer"], row["answer_span_start"]) == (doc_id, "Dossier n° 0 du rôle", 0)
    assert sum(report.rejected.values()) == 11


def test_the_users_own_dspy_settings_stay_as_they_were(small_library, tmp_path):
    mine = DummyLM([{"answer": "moi"}])
    with dspy.context(lm=mine), ScriptedServer(author(with_mischief=False)) as server:
        lm = model_at(server)
        generate_questions(small_library, lm, limit=2, output=tmp_path / "set")
        assert dspy.settings.lm is mine
        assert (lm.history, mine.history) == ([], [])


def test_replies_that_no_text_store_takes_are_kept_all_the_same(small_library, tmp_path):
    def half_a_character(prompt, attempt):
        return Reply(good_reply(context_of(prompt)).content.replace("Le sujet du litige", "Le sujet \ud83d du litige"))

    with ScriptedServer(half_a_character) as server:
        generate_questions(small_library, model_at(server), limit=1, output=tmp_path / "set")
    (row,) = rows_of(tmp_path / "set")
    assert row["main_topic"] == "Le sujet \ufffd du litige"


def test_a_server_that_was_never_reached_stops_the_run_within_seconds(small_library, tmp_path, capsys):
    asked = ["--output", str(tmp_path / "set"), "--limit", "3", "--model", "m", "--api-base", "http://127.0.0.1:9/v1"]
    started = time.monotonic()
    assert main(["questions", *place(small_library), *asked]) == 1
    assert time.monotonic() - started < 20
    assert "the model cannot be asked: the server does not answer: " in capsys.readouterr().err
    with ScriptedServer(author(with_mischief=False)) as server:
        assert main(["questions", *place(small_library), *asked[:-1], server.api_base]) == 0
    assert rows_of(tmp_path / "set")


def test_without_pyarrow_nothing_is_begun(small_library, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("legal_rag.base.extras.find_spec", lambda name: None)
    assert main(["questions", *place(small_library), "--output", str(tmp_path / "set"), "--no-model"]) == 1
    assert "pyarrow is not installed: pip install 'legal-rag[datasets]'" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()


def test_a_reply_that_was_cut_off_is_no_reply(small_library, tmp_path):
    half = Reply("Il était une", finish_reason="length")
    with ScriptedServer(lambda *_: half) as server:
        report = generate_questions(small_library, model_at(server), limit=1, output=tmp_path / "set")
        assert len(server.prompts) == 3
    assert (report.accepted, report.replies) == (0, 3)


def test_each_request_about_a_document_has_a_seed_of_its_own_and_a_run_again_the_same(small_library, tmp_path):
    def seeds(folder):
        with ScriptedServer(replies_until_told) as server:
            generate_questions(
                small_library, model_at(server), limit=1, strategy="best-of-n", output=tmp_path / folder, workers=1
            )
        return [request["seed"] for request in server.requests]

    first = seeds("one")
    assert [one - first[0] for one in first] == [0, 1, 2]
    assert seeds("two") == first


def test_a_line_cut_off_by_a_kill_is_cut_away_and_the_rest_is_there(tmp_path):
    path = tmp_path / "progress.jsonl"
    first = Checkpoint(path, {"seed": 1})
    first.add(CheckpointRecord(doc_id="a", content_hash="1", status="rejected", reason="é"))
    first.add(CheckpointRecord(doc_id="b", content_hash="2", status="failed"))
    first.close()
    whole = path.read_bytes()
    for cut in (*range(1, 40, 6), *range(40, len(whole), 23), len(whole) - 1, len(whole)):
        path.write_bytes(whole[:cut])
        again = Checkpoint(path, {"seed": 1})
        again.add(CheckpointRecord(doc_id="c", content_hash="3", status="rejected"))
        assert again.is_finished("c", "3")
        again.close()
        assert json.loads(path.read_bytes().splitlines()[0]) == {"settings": {"seed": 1}}
        last = Checkpoint(path, {"seed": 1})
        assert last.is_finished("c", "3")
        assert not last.is_finished("c", "4")  # the document was changed
        assert not last.is_finished("b", "2")  # failed
        last.close()


def test_a_folder_of_unreadable_replies_starts_anew_also_with_another_model(small_library, tmp_path, caplog):
    with ScriptedServer(lambda prompt, attempt: Reply("Voici.")) as server:
        first = generate_questions(small_library, model_at(server), limit=3, tries=1, output=tmp_path / "set")
    assert first.rejected == {"unreadable": 3}
    with ScriptedServer(author(with_mischief=False)) as server:
        again = generate_questions(small_library, model_at(server), limit=3, tries=2, output=tmp_path / "set")
    assert "no reply of the last run could be read: this one starts anew" in caplog.text
    assert (again.accepted, again.rejected) == (3, {})


def test_what_a_failed_document_had_cost_is_not_forgotten(tmp_path):
    checkpoint = Checkpoint(tmp_path / "progress.jsonl", {})
    spent = {"content_hash": "1", "replies": 2, "prompt_tokens": 10, "completion_tokens": 3, "seconds": 1.5}
    checkpoint.add(CheckpointRecord(doc_id="a", status="failed", cost=0.25, **spent))
    checkpoint.add(CheckpointRecord(doc_id="a", status="rejected", cost=0.5, **spent))
    record = checkpoint.record("a")
    assert (record.replies, record.prompt_tokens, record.cost, record.seconds) == (4, 20, 0.75, 3.0)


@pytest.mark.parametrize(
    "content", [b"[1]\n", b"\xff\n", b'{"settings": {"seed": 1}}\nnonsense\n', b'{"a": 1}\n', b"notes without an end"]
)
def test_a_file_that_is_no_checkpoint_is_told_and_left_alone(tmp_path, content):
    path = tmp_path / "progress.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"does not begin with settings|damaged line in .*progress\.jsonl"):
        Checkpoint(path, {"seed": 1})
    assert path.read_bytes() == content


def test_questions_that_nearly_repeat_one_another_are_one_but_other_numbers_make_others():
    seen = SeenQuestions()
    question = "Quel délai de préavis l'article L. 1234-1 du code du travail impose-t-il à l'employeur qui licencie ?"
    assert seen.is_new(question)
    assert not seen.is_new(question.replace("'", "’").replace(" ?", "\u00a0?"))
    assert not seen.is_new(question.replace("Quel délai", "Quels délais").replace("code du", "Code du"))
    assert seen.is_new(question.replace("1234-1", "1234-5"))
    assert seen.is_new(question.replace("l'employeur", "M. Dupont"))
    assert seen.is_new(question.replace("l'employeur", "M. Durand"))
    assert seen.is_new(question.replace("impose-t-il", "n'impose-t-il pas"))
    assert seen.is_new("Qui supporte la charge de la preuve du harcèlement moral ?")


def test_a_document_keeps_its_split_whatever_others_there_are():
    parts = [split_of(f"DOC{number}", seed=0) for number in range(2000)]
    assert 1500 < parts.count("train") < 1700
    assert parts != [split_of(f"DOC{number}", seed=1) for number in range(2000)]


def test_a_dataset_without_a_row_is_still_one(tmp_path):
    written = write_dataset(
        tmp_path, [CheckpointRecord(doc_id="a", content_hash="", status="rejected")], QuestionSettings()
    )
    assert written == ({"train": 0, "dev": 0, "test": 0}, 0, 0)
    assert load_from_disk(str(tmp_path))["train"].column_names == COLUMNS


def with_summaries(rows):
    """Give the first rows summaries: good, none, one that names a case first, copied, English, of a case alone."""
    changed = [dict(row) for row in rows[:6]]
    named = "Même sens que Cass. soc., 12 mai 2019, n° 17-13.415. "
    changed[1]["summary"] = ""
    changed[2]["summary"] = named + changed[0]["summary"]
    changed[3]["summary"] = re.search(r"[^.\d\n<]{100}", changed[3]["content"]).group().strip()
    changed[4]["summary"] = "The court orders the operator of the quarry to pay damages for the nuisance."
    changed[5]["summary"] = named
    return changed


def test_official_summaries_alone_become_questions_without_a_model(sample_rows, tmp_path):
    rows = with_summaries(sample_rows)
    documents = SourceDocuments(rows)
    report = generate_questions(documents, None, output=tmp_path / "set")
    assert report.rejected == {"no_summary": 2, "copied": 1, "not_french": 1}
    assert report.duplicates == 1  # what is left of the third without the case is the first
    (made,) = rows_of(tmp_path / "set")
    assert rows[0]["summary"].startswith(made["question"][:40])
    assert documents.document(made["doc_id"]).content[made["answer_span_start"] :].startswith(made["answer"])
    assert report.replies == 0
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert "pas de sommaire officiel" in card
    assert made["score"] is report.mean_score is None  # nothing that could be compared with a threshold
    assert "threshold" not in card


def test_figures_over_summaries_come_with_a_caution(tiny_library, sample_file, tmp_path, capsys):
    generate_questions(SourceDocuments(sample_file), None, output=tmp_path / "set")
    assert caution(read_queries(tmp_path / "set")[0]).startswith("20 of 20 questions are official summaries")
    assert caution(read_queries("sample")[0]) is None
    rows = [{**row, "question": row["question"][:80]} for row in rows_of(tmp_path / "set")]  # the small encoder's limit
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = ["evaluate", *place(tiny_library), "--mode", "bm25", "--queries"]
    assert main([*asked, str(tmp_path / "set.jsonl")]) == 0
    assert "caution: 20 of 20 questions" in capsys.readouterr().out
    assert main([*asked, "sample", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["caution"] is None


def test_a_source_gives_the_documents_that_its_library_gives(small_library, sample_rows, tmp_path):
    source = list(made_up(sample_rows, 12))
    whole, few = SourceDocuments(source), SourceDocuments(source, limit=5, seed=3)
    assert list(whole.content_hashes()) == list(small_library.content_hashes())
    with ScriptedServer(author(with_mischief=False)) as server:
        generate_questions(few, model_at(server), seed=3, output=tmp_path / "source")
        generate_questions(small_library, model_at(server), limit=5, seed=3, output=tmp_path / "library")
    assert rows_of(tmp_path / "source") == rows_of(tmp_path / "library") != []
    with ScriptedServer(author()) as server:
        assert estimate(whole, model_at(server), limit=5) == estimate(small_library, model_at(server), limit=5)


def test_a_plain_text_file_is_asked_about_without_an_index(sample_rows, tmp_path, capsys):
    text = sample_rows[0]["content"].replace("<br/>", "\n")[:4000]
    (tmp_path / "note.txt").write_text(text, encoding="utf-8")
    with ScriptedServer(author(with_mischief=False)) as server:
        asked = ["--source", str(tmp_path / "note.txt"), "--api-base", server.api_base, "--model", "scripted"]
        assert main(["questions", *asked, "--output", str(tmp_path / "set"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = rows_of(tmp_path / "set")
    assert (report["corpus"], row["doc_id"]) == ("note.txt", "note.txt")
    content = SourceDocuments(tmp_path / "note.txt").document("note.txt").content
    assert content[row["answer_span_start"] : row["answer_span_end"]] == row["answer"]


def test_documents_are_drawn_among_the_ids_given_in_a_list_or_a_file(small_library, sample_rows, tmp_path, capsys):
    ids = ["DECISION00002", "DECISION00007"]
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    source = tmp_path / "decisions.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in made_up(sample_rows, 12)))
    named = ["--doc-id", ids[0], "--doc-id", ids[1]], ["--ids-file", str(tmp_path / "ids.txt")]
    for number, given in enumerate(named):
        for where in (place(small_library), ["--source", str(source)]):
            out = tmp_path / f"set-{number}-{len(where)}"
            assert main(["questions", *where, *given, "--no-model", "--output", str(out), "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["documents"] == 2
            lines = (out / "progress.jsonl").read_text("utf-8").splitlines()[1:]
            assert [json.loads(line)["doc_id"] for line in lines] == ids


def test_an_estimate_asks_nothing_and_holds_what_a_run_takes(small_library, tmp_path):
    with ScriptedServer(author(with_mischief=False)) as server:
        settings = QuestionSettings(strategy="best-of-n")
        found = estimate(small_library, model_at(server), settings=settings, price=Price(1.0, 10.0))
        assert server.prompts == []
        generate_questions(small_library, model_at(server), strategy="best-of-n", output=tmp_path / "set")
        assert found.requests[0] <= len(server.prompts) <= found.requests[1]
    assert found.documents == 12
    assert found.prompt_tokens[0] * 3 == pytest.approx(found.prompt_tokens[1], rel=1e-4)
    assert found.dollars[0] == pytest.approx((found.prompt_tokens[0] + 10 * found.completion_tokens[0]) / 1e6)
    assert estimate(small_library, model_at(server), limit=5).dollars is None  # nobody knows what this server costs
    known = build_language_model("openai/gpt-4o-mini", KEY)
    assert estimate(small_library, known, limit=5).dollars[1] > 0


def place(library):
    return ["--index-folder", str(library.path.parent), "--index-name", library.path.name]


def test_the_command_prints_what_it_made(small_library, tmp_path, capsys, settings):
    out, file = str(tmp_path / "set"), settings("[questions]\nworkers = 2\nseed = 3")
    with ScriptedServer(author(with_mischief=False)) as server:
        asked = ["--output", out, "--api-base", server.api_base, "--model", "scripted", "--limit", "5"]
        assert main([*file, "questions", *place(small_library), *asked, "--json"]) == 0
        value = json.loads(capsys.readouterr().out)
        assert (value["documents"], value["settings"]["seed"]) == (5, 3)
        assert main([*file, "questions", *place(small_library), *asked, "--dry-run"]) == 0
        assert "requests           5 to 25" in capsys.readouterr().out
    assert main(["evaluate", *place(small_library), "--queries", out, "--mode", "bm25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == value["accepted"]


def test_the_command_without_a_model_says_so_and_makes_do_with_summaries(small_library, tmp_path, capsys, monkeypatch):
    for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["questions", *place(small_library), "--output", str(tmp_path / "set"), "--json"]) == 0
    told = capsys.readouterr()
    assert "no model to ask" in told.err
    assert json.loads(told.out)["accepted"] == len(rows_of(tmp_path / "set")) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-model", "--dry-run"], "without a model nothing is asked: there is nothing to estimate"),
        (["--no-model", "--limit", "-1"], "limit must be at least 1, got -1"),
        (["--no-model", "--index-name", "absent"], "no index at"),
        (["--no-model", "--doc-id", "DECISION00001", "--doc-id", "X"], "no document 'X' (1 of 2 ids are unknown)"),
        (["--no-model", "--dataset-config", "juri"], "--dataset-config juri goes with --source"),
        (["--no-model", "--source", "absent.jsonl"], "no such file or folder: absent.jsonl"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(small_library, tmp_path, capsys, monkeypatch, arguments, message):
    for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(["questions", *place(small_library), "--output", str(tmp_path / "set"), *arguments]) == 1
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert message in told[0]
    assert not (tmp_path / "set").exists()


@pytest.mark.slow
def test_a_run_killed_twenty_times_pays_for_no_finished_document_twice_and_gives_the_same_dataset(library, tmp_path):
    with ScriptedServer(author()) as server:
        generate_questions(library, model_at(server), output=tmp_path / "whole")
    texts = {library.document(doc_id).content.strip(): doc_id for doc_id in library}
    draw = random.Random(0)
    with ScriptedServer(author(seconds=0.1)) as server:
        arguments = [*place(library), "--output", str(tmp_path / "set"), "--api-base", server.api_base]
        arguments += ["--model", "scripted"]
        for _ in range(20):
            before = len(server.prompts)
            finished = finished_in(tmp_path / "set" / "progress.jsonl")
            run = Killable(run_command, "questions", *arguments)
            at = before + draw.randint(1, 20)  # prompts: fewer in all than documents
            while len(server.prompts) < at and run.is_running():
                time.sleep(0.01)
            assert run.killed_after(0)
            assert not finished & asked_since(server, before, texts)
        before, finished = len(server.prompts), finished_in(tmp_path / "set" / "progress.jsonl")
        subprocess.run([sys.executable, str(ROOT / "scripts" / "generate_question.py"), *arguments], check=True)
        assert not finished & asked_since(server, before, texts)
    assert rows_of(tmp_path / "set") == rows_of(tmp_path / "whole")
    for path in (tmp_path / "whole" / "data").iterdir():
        assert (tmp_path / "set" / "data" / path.name).read_bytes() == path.read_bytes()


def asked_since(server, before, texts):
    """Return the documents that a model was asked about after so many prompts."""
    return {texts[context] for context in asked_about(server.prompts[before:])}


def finished_in(path):
    """Return the documents that whole lines of a checkpoint say are finished: none while no reply could be read."""
    if not path.exists():
        return set()
    records = [json.loads(line) for line in path.read_bytes().split(b"\n")[1:-1]]
    finished = [record for record in records if record["status"] != "failed"]
    if all(record["reason"] == "unreadable" for record in finished):
        return set()
    return {record["doc_id"] for record in finished}


def test_a_reply_wholly_in_a_fence_is_read_too(small_library, tmp_path):
    def fenced(prompt, attempt):
        fields = good_reply(context_of(prompt) or "rien du tout").content.partition("[[ ## completed ## ]]")[0]
        return Reply(f"```\n{fields.strip()}\n```")

    with ScriptedServer(fenced) as server:
        report = generate_questions(small_library, model_at(server), limit=3, output=tmp_path / "set")
        assert len(server.prompts) == 3
    assert report.rejected == {}


def test_a_reply_in_json_is_read_too(small_library, tmp_path):
    def replies_in_json(prompt, attempt):
        parts = re.split(r"\[\[ ## (\w+) ## \]\]\n", good_reply(context_of(prompt) or "rien du tout").content)
        values = {name: value.strip() for name, value in zip(parts[1:-2:2], parts[2:-2:2], strict=True)}
        return Reply("Voici :\n```json\n" + json.dumps(values, ensure_ascii=False) + "\n```")

    with ScriptedServer(replies_in_json) as server:
        report = generate_questions(small_library, model_at(server), limit=3, output=tmp_path / "set")
        assert len(server.prompts) == 3
    assert report.rejected == {}
