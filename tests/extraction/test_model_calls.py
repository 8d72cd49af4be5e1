"""Asking a model: what its server does wrong costs what it must, and no more; the key is told to nobody else."""

import json
import logging
import time

import pytest
from support.scripted_extractor import finding, piece_of, reply_with
from support.scripted_server import Reply, ScriptedServer

from legal_rag.extraction import ExtractionSettings, ExtractionStore, run_extraction
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.langextract import Extraction, extractions_of

KEY = "sk-tres-secret-0123456789"
DAYS = range(2, 29)
TEXT = "\n".join(f"Le {day} mai 1993, la société Lever a payé." for day in DAYS)
WORDS = [("date", f"{day} mai 1993") for day in DAYS]
WELL = finding(WORDS)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("LANGEXTRACT_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("legal_rag.llm.asking.FIRST_WAIT", 0.001)


@pytest.fixture
def store(tmp_path):
    with ExtractionStore(tmp_path / "store.sqlite") as opened:
        yield opened


def extracted(server, store=None, *, text=TEXT, workers=1, **more):
    return run_extraction(
        text, "a", "jurisprudence", "scripted", KEY, 220, 1, workers, api_base=server.api_base, store=store, **more
    )


def days(result):
    return [int(one["extraction_text"].split()[0]) for one in result.extractions]


# --- replies


@pytest.mark.parametrize(
    "reply",
    [
        '<think>{"extractions": [] ?</think>\n{"extractions": [{"date": "3 mai 1993"}]}',
        'Voici :\n```json\n{"extractions": [{"date": "3 mai 1993"}]}\n```\nBonne lecture.',
        '{"extractions": [{"extraction_class": "date", "extraction_text": "3 mai 1993", "attributes": {}}]}',
        '{"extractions": [{"date": "3 mai 1993"}, {"date": ""}, {"date": null}, {"date": {}}, {"": "x"}, [], 7]}',
        '{"extractions": [{"date": "3 mai 1993", "montant": "10 francs"}]}',
        '{"extractions": [{"date": "3 mai 1993", "date_attributes": {"note": "\\ud800"}}]}',
    ],
)
def test_a_reply_of_another_form_is_read_and_kept(reply, store):
    with ScriptedServer(lambda prompt, attempt: Reply(reply)) as server:
        result = extracted(server, store, text="Le 3 mai 1993.")
        assert days(result) == [3]
        assert extracted(server, store, text="Le 3 mai 1993.") == result
    assert len(server.prompts) == 1


@pytest.mark.parametrize(
    "reply",
    ["", "{", "null", "7", '{"autre": []}', "[" * 100_000, '{"extractions": [{"date": ' + "1" * 5000 + "}]}", "\x00"],
)
def test_a_reply_that_says_nothing_is_a_gap(reply):
    with ScriptedServer(lambda prompt, attempt: Reply(reply)) as server:
        result = extracted(server, text="Le 3 mai 1993.")
    assert (result.extractions, result.chunks, result.dropped_chunks) == ([], 1, 1)
    assert len(server.prompts) == 2


@pytest.mark.parametrize("reply", ['{"extractions": [{"date": " "}]}', '{"extractions": [{"date": "\\u241f"}]}'])
def test_an_extraction_of_nothing_is_no_gap(reply):
    with ScriptedServer(lambda prompt, attempt: Reply(reply)) as server:
        result = extracted(server, text="Le 3 mai 1993.")
    assert (result.extractions, result.complete) == ([], True)


@pytest.mark.parametrize("text", ["", " \n", "\0", "…"])
def test_a_text_without_words_needs_no_harm(text):
    with ScriptedServer(WELL) as server:
        result = extracted(server, text=text)
    assert (result.extractions, result.complete) == ([], True)


def test_two_classes_in_one_item_are_two_entities():
    assert extractions_of('{"extractions": [{"date": "a", "montant": "b", "date_attributes": {"x": 1}}]}') == [
        Extraction("date", "a", {"x": "1"}),
        Extraction("montant", "b", {}),
    ]


# --- servers


def test_a_piece_that_the_server_never_answers_is_a_gap_and_alone_asked_for_later(store):
    is_ill = True

    def script(prompt, attempt):
        return Reply(status=503) if is_ill and "9 mai" in piece_of(prompt) else WELL(prompt, attempt)

    with ScriptedServer(script) as server:
        result = extracted(server, store)
        n_ill = sum("9 mai" in piece_of(prompt) for prompt in set(server.prompts))
        assert result.dropped_chunks == n_ill > 0
        assert 3 in days(result)
        is_ill = False
        server.prompts.clear()
        assert days(extracted(server, store)) == list(DAYS)
    assert len(server.prompts) == n_ill


def test_a_server_that_goes_away_ends_the_run_and_what_it_replied_is_kept(store):
    n_replies, is_well = 0, False

    def script(prompt, attempt):
        nonlocal n_replies
        n_replies += 1
        return WELL(prompt, attempt) if n_replies <= 2 or is_well else Reply(status=503)

    text = "\n".join([TEXT] * 2)
    with ScriptedServer(script) as server:
        with pytest.raises(ConnectionError, match=r"^the model cannot be asked: the server failed \(503\)"):
            extracted(server, store, text=text)
        assert len(server.prompts) == 2 + 5 * 8  # five pieces, eight attempts each
        is_well, before = True, server.prompts[:2]
        server.prompts.clear()
        assert extracted(server, store, text=text).complete
        assert not {piece_of(prompt) for prompt in before} & {piece_of(prompt) for prompt in server.prompts}


def test_a_refusal_is_told_at_once_also_while_another_request_waits():
    def script(prompt, attempt):
        if "2 mai" in piece_of(prompt):
            return Reply(status=429, headers=(("Retry-After", "600"),))
        return Reply(status=401, seconds=0.2)

    started = time.monotonic()
    with ScriptedServer(script) as server, pytest.raises(ValueError, match="the key was refused"):
        extracted(server, workers=2)
    assert time.monotonic() - started < 60


# --- the key


def test_the_key_is_in_no_file_repr_error_or_log(tmp_path, store, caplog):
    caplog.set_level(logging.DEBUG)
    refusal = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
    spoilt = [Reply(status=500, raw_body=refusal), Reply(f"La clé est {KEY}"), Reply(status=401, raw_body=refusal)]
    with ScriptedServer(lambda prompt, attempt: spoilt[min(attempt, 2)]) as server:
        settings = ExtractionSettings(
            schema_name="jurisprudence", model_id="scripted", api_key=KEY, api_base=server.api_base
        )
        extractor = Extractor(settings, store)
        with pytest.raises(ValueError, match="the key was refused") as caught:
            extractor.extract("Le 3 mai 1993.", "a")
    shown = [repr(settings), repr(vars(extractor)), repr(vars(extractor._pieces)), str(caught.value), caplog.text]
    assert caught.value.__cause__ is None
    assert KEY not in "".join(shown)
    store.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("model_id", ["gemini-2.5-flash", "gpt-4o", "openai/gpt-4o"])
def test_a_hosted_model_without_a_key_says_which_variable_to_set(model_id):
    with pytest.raises(ValueError, match="LANGEXTRACT_API_KEY"):
        run_extraction("Le 3 mai 1993.", "a", model_id=model_id)


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match="no model 'perroquet'"):
        run_extraction("Le 3 mai 1993.", "a", model_id="perroquet")


def test_entities_of_all_passes_are_counted_once(store):
    ill = [reply_with([("date", "2 mai 1993")]), Reply("rien"), Reply("rien")]
    with ScriptedServer(lambda prompt, attempt: ill[attempt]) as server:
        result = run_extraction(
            "Le 2 mai 1993.", "a", "jurisprudence", "scripted", KEY, 220, 2, 1, api_base=server.api_base, store=store
        )
    assert (days(result), result.chunks, result.dropped_chunks) == ([2], 1, 1)
