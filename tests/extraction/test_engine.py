"""The engine: what it does with all that a model's server can do to it; LangExtract, SQLite and HTTP are real."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import TESTS
from support.scripted_extractor import finding, piece_of, reply_with
from support.scripted_server import Reply, ScriptedServer

from legal_rag.extraction import (
    ExtractionStore,
    get_schema,
    on_demand_extract,
    run_batch_extraction,
    run_extraction,
)

KEY = "sk-tres-secret-0123456789"
TEXT = "\n".join(f"Le {day} mai 1993, M. Durand a payé {day} 000 francs à la société Lever." for day in range(2, 29))
WORDS = [("date", f"{day} mai 1993") for day in range(2, 29)] + [
    ("montant", f"{day} 000 francs") for day in range(2, 29)
]


@pytest.fixture
def store(tmp_path):
    with ExtractionStore(tmp_path / "store.sqlite") as one:
        yield one


def extracted(server, store=None, text=TEXT, **settings):
    chosen = {"schema_name": "jurisprudence", "max_char_buffer": 400, "extraction_passes": 1} | settings
    return run_extraction(
        text, "lettre", model_id="scripted", api_key=KEY, api_base=server.api_base, store=store, **chosen
    )


def texts(result, extraction_class="date"):
    return [one["extraction_text"] for one in result.extractions if one["extraction_class"] == extraction_class]


def assert_grounded(result, text=TEXT):
    for one in result.extractions:
        assert text[one["char_start"] : one["char_end"]] == one["extraction_text"]


def test_a_model_that_does_well_is_asked_once_for_each_piece_and_not_again(store):
    with ScriptedServer(finding(WORDS)) as server:
        result = extracted(server, store)
        assert extracted(server, store) == result
    assert texts(result) == [f"{day} mai 1993" for day in range(2, 29)]
    assert_grounded(result)
    assert len(server.prompts) == result.chunks > 3
    assert result.complete


def test_each_pass_adds_what_overlaps_nothing_before():
    def script(prompt, attempt):
        found = [("date", "2 mai 1993")] if attempt == 0 else [("date", "2 mai 1993"), ("date", "3 mai 1993")]
        return reply_with(found if "2 mai" in piece_of(prompt) else [])

    with ScriptedServer(script) as server:
        result = extracted(server, extraction_passes=2)
    assert texts(result) == ["2 mai 1993", "3 mai 1993"]


def test_a_piece_that_is_always_truncated_is_read_in_halves(store):
    def script(prompt, attempt):
        whole = finding(WORDS)(prompt, attempt)
        return Reply(whole.content[:80]) if len(piece_of(prompt)) > 900 else whole

    with ScriptedServer(script) as server:
        result = extracted(server, store, max_char_buffer=1500)
        assert len(texts(result)) == 27
        assert result.complete
        assert_grounded(result)
        n_requests = len(server.prompts)
        assert extracted(server, store, max_char_buffer=1500) == result
        assert len(server.prompts) == n_requests


def test_wrong_classes_are_left_out_and_counted():
    with ScriptedServer(
        lambda prompt, attempt: reply_with([("planete", "2 mai 1993"), ("solution", "mai"), ("date", "2 mai 1993")])
    ) as server:
        result = extracted(server, text="Le 2 mai 1993.")
    assert texts(result) == ["2 mai 1993"]
    assert result.wrong_class == 2


def test_what_stands_nowhere_is_left_out_and_counted():
    found = [("date", "14 juillet 1789"), ("montant", "000 francs"), ("date", "3 mai 1993")]
    with ScriptedServer(lambda prompt, attempt: reply_with(found)) as server:
        result = extracted(server, text="Le 3 mai 1993, il a payé 10 000 francs.")
    assert [one["extraction_text"] for one in result.extractions] == ["3 mai 1993"]
    assert result.ungrounded == 2  # part of a number is another number


def test_copies_of_the_prompts_own_examples_are_left_out_and_counted():
    example = get_schema("jurisprudence").examples[0].extractions[0]
    found = [(example.extraction_class, example.extraction_text), ("date", "3 mai 1993")]
    with ScriptedServer(lambda prompt, attempt: reply_with(found)) as server:
        result = extracted(server, text="Le 3 mai 1993.")
    assert texts(result) == ["3 mai 1993"]
    assert (result.echoed, result.ungrounded) == (1, 0)


@pytest.mark.parametrize(
    ("status", "why"),
    [(401, "key was refused"), (403, "key was refused"), (404, "no such model"), (400, "request was refused")],
)
def test_a_refusal_ends_all_in_one_line_without_the_key(status, why, store):
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with ScriptedServer(lambda prompt, attempt: Reply(status=status, raw_body=body)) as server:
        with pytest.raises(ValueError, match=why) as caught:
            extracted(server, store)
        assert len(server.prompts) <= 12  # those under way, each with the form asked for and without
    assert KEY not in str(caught.value)
    assert KEY.encode() not in (store.path).read_bytes()


def test_a_server_that_is_not_there_is_a_lost_connection(monkeypatch):
    monkeypatch.setattr("legal_rag.llm.asking.FIRST_WAIT", 0.01)
    with ScriptedServer(finding(WORDS)) as server:
        pass
    with pytest.raises(ConnectionError, match="does not answer"):
        extracted(server, text="Le 3 mai 1993.")


def test_a_document_that_fails_does_not_keep_the_others_from_their_results():
    def script(prompt, attempt):
        return Reply(status=403) if "4 mai" in piece_of(prompt) else finding(WORDS)(prompt, attempt)

    docs = [{"name": "a", "text": "Le 3 mai 1993."}, {"name": "b", "text": "Le 4 mai 1993."}]
    told = []
    with ScriptedServer(script) as server:
        results = run_batch_extraction(
            docs, "jurisprudence", "scripted", KEY, api_base=server.api_base, on_error=lambda *one: told.append(one)
        )
    assert [texts(one) for one in results] == [["3 mai 1993"], []]
    assert "the key was refused (403)" in results[1].error
    assert [name for name, _ in told] == ["b"]


def test_results_name_the_jsonl_that_they_are_written_to(tmp_path):
    result = run_extraction("Le 3 mai 1993.", "lettre", "general", "rules", output=tmp_path / "one")
    (line,) = Path(result.raw_jsonl_path).read_text("utf-8").splitlines()
    assert (json.loads(line)["document_id"], json.loads(line)["text"]) == ("lettre", "Le 3 mai 1993.")
    assert (tmp_path / "one" / "entities.html").is_file()


def test_a_batch_is_one_jsonl_which_langextract_reads_and_a_failure_is_in_none(tmp_path):
    from langextract.io import load_annotated_documents_jsonl

    docs = [{"name": "a", "text": "Le 3 mai 1993."}, {"name": "b"}, {"name": "c", "text": "Le 4 mai 1993."}]
    with ExtractionStore(tmp_path / "store.sqlite") as store:
        results = run_batch_extraction(docs, None, "rules", store=store, output=tmp_path, on_error=lambda *_: None)
    path = str(tmp_path / "entities.jsonl")
    assert [one.raw_jsonl_path for one in results] == [path, None, path]
    read = list(load_annotated_documents_jsonl(Path(path)))
    assert [(one.document_id, len(one.extractions)) for one in read] == [("a", 1), ("c", 1)]


def test_on_demand_classes_are_the_callers_own():
    with ScriptedServer(lambda prompt, attempt: reply_with([("navire", "Le Cygne"), ("date", "3 mai")])) as server:
        found = on_demand_extract(
            "Le navire Le Cygne, le 3 mai.",
            "Trouvez les navires.",
            ["navire"],
            "scripted",
            KEY,
            api_base=server.api_base,
        )
    assert [(one["extraction_class"], one["extraction_text"]) for one in found] == [("navire", "Le Cygne")]


def test_on_demand_the_rules_give_those_of_their_classes_that_are_asked_for():
    found = on_demand_extract("Le 3 mai 1993, 100 euros.", "Les sommes.", ["montant"], "rules")
    assert [one["extraction_text"] for one in found] == ["100 euros"]


def test_the_rules_use_the_names_of_the_schema_that_is_asked_for():
    text = "Le 3 mai 1993, M. Jean Durand assigne la société Lever ; 100 euros, article 1240 du code civil."
    result = run_extraction(text, "a", "general", "rules")
    assert {(one["extraction_class"], one["extraction_text"]) for one in result.extractions} == {
        ("date", "3 mai 1993"),
        ("person", "M. Jean Durand"),
        ("organisation", "société Lever"),
        ("monetary_amount", "100 euros"),
        ("legal_reference", "article 1240 du code civil"),
    }


def test_the_rules_take_a_lease_for_what_they_know_where_they_are_to_choose():
    text = "CONTRAT DE BAIL\nEntre les soussignés, le bailleur et le preneur, il est convenu un loyer de 500 euros."
    result = run_extraction(text, "a", "auto", "rules")
    assert result.schema_name == "jurisprudence"
    assert texts(result, "montant") == ["500 euros"]


def test_on_demand_needs_a_class():
    with pytest.raises(ValueError, match="no extraction_classes"):
        on_demand_extract("texte", "Rien.", [], "rules")


@pytest.mark.parametrize(
    "value", [{"extraction_passes": 0}, {"extraction_passes": 6}, {"max_char_buffer": 10}, {"max_workers": 0}]
)
def test_settings_out_of_range_are_refused(value):
    with pytest.raises(ValueError, match=next(iter(value))):
        run_extraction("texte", "a", model_id="rules", **value)


KILLED = """
import os, sys
sys.path[:0] = [{tests!r}]
from support.scripted_extractor import finding
from legal_rag.extraction.engine import run_extraction
from legal_rag.extraction.store import ExtractionStore
from pathlib import Path
import threading
from legal_rag.llm.asking import store as replies
store = ExtractionStore(Path({store!r}))
put, n = replies.put, 0
def put_reply(*args):
    global n
    put(*args)
    n += 1
    if n == 3:
        os._exit(9)  # as by a kill: nothing is closed or flushed
replies.put = put_reply
run_extraction({text!r}, "a", "jurisprudence", "scripted", "k", 400, 1, 1, api_base={api_base!r}, store=store)
"""


@pytest.mark.slow
def test_a_killed_run_has_kept_its_replies_and_the_next_one_asks_for_the_rest(tmp_path):
    path = tmp_path / "store.sqlite"
    with ScriptedServer(finding(WORDS)) as server:
        code = KILLED.format(tests=str(TESTS), store=str(path), text=TEXT, api_base=server.api_base)
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
        assert len(server.prompts) >= 3
        server.prompts.clear()
        with ExtractionStore(path) as store:
            result = run_extraction(
                TEXT, "a", "jurisprudence", "scripted", "k", 400, 1, 1, api_base=server.api_base, store=store
            )
        assert len(server.prompts) <= result.chunks - 3
    assert len(texts(result)) == 27
