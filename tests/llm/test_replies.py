"""Stored replies: what was asked before costs no request, whatever else differs makes another; JSON in replies."""

import sqlite3
import time
from contextlib import closing

import pytest
from support.agent_scripts import STEPPED, wants_step
from support.scripted_server import Reply, ScriptedServer, answer, step

from legal_rag.agent import build_agent, build_language_model
from legal_rag.cli import main
from legal_rag.cli.evaluate import _language_model
from legal_rag.llm import Budget, Completion, ReplyStore, UsageTracker, ask, json_in, model_of, unfenced
from legal_rag.llm.replies import without_thoughts

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
KEY = "sk-tres-secret-0123"


def nth(_prompt, attempt):
    return Reply(f"réponse {attempt}")


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """Give each test a store of its own."""
    monkeypatch.setenv("DSPY_CACHEDIR", str(tmp_path / "replies"))
    for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("legal_rag.llm.asking.store", ReplyStore())
    return tmp_path / "replies" / "replies.sqlite"


@pytest.fixture
def server():
    with ScriptedServer(nth) as serving:
        yield serving


def said(server, text="Bonjour ?", attempt=0, **settings):
    model = model_of(build_language_model("m", KEY, server.api_base, **settings))
    return ask(model, [{"role": "user", "content": text}], attempt=attempt).text


def test_what_was_asked_before_is_not_asked_again(server):
    assert [said(server), said(server), said(server, "Bonsoir ?")] == ["réponse 0", "réponse 0", "réponse 0"]
    assert len(server.requests) == 2
    assert [said(server, attempt=n) for n in (0, 1, 0, 1)] == ["réponse 0", "réponse 1"] * 2
    server.api_base += "/"
    assert said(server) == "réponse 0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<think>Hmm</think>Oui", "Oui"),
        ("Hmm</think>Oui", "Oui"),
        ("<think>Hmm", ""),
        ("<think>Hmm\n[[ ## answer ## ]]\nOui", "[[ ## answer ## ]]\nOui"),
        ("Oui<thinking>Hmm</thinking> !", "Oui !"),
        ("Oui", "Oui"),
    ],
)
def test_thoughts_end_where_a_reply_begins(text, said):
    assert without_thoughts(text) == said


def test_a_stored_reply_costs_nothing(server):
    said(server)
    tracker, model = UsageTracker(Budget(model_calls=1)), model_of(build_language_model("m", KEY, server.api_base))
    for _ in range(3):
        assert ask(model, [{"role": "user", "content": "Bonjour ?"}], tracker=tracker).usage == (0, 1, 0, 0, 0.0)
    assert tracker.usage == (0, 3, 0, 0, 0.0)


@pytest.mark.parametrize("temperature", [0.0, 0.2])
def test_each_seed_has_replies_of_its_own_and_is_sent(server, temperature):
    replies = [said(server, seed=seed, temperature=temperature) for seed in (None, 0, 1, 0, None, -1)]
    assert replies == ["réponse 0", "réponse 1", "réponse 2", "réponse 1", "réponse 0", "réponse 3"]
    assert [said(server, max_tokens=100), said(server, cache=False)] == ["réponse 4", "réponse 5"]
    assert [request.get("seed") for request in server.requests][:4] == [None, 0, 1, -1]


def test_servers_of_one_model_name_do_not_give_each_other_s_replies():
    replies = []
    for name in ("un", "deux", "un"):
        with ScriptedServer(lambda _prompt, _attempt, name=name: Reply(name)) as server:
            replies += [said(server), said(server)]
            assert len(server.prompts) == 1
    assert replies == ["un", "un", "deux", "deux", "un", "un"]


def test_only_what_a_server_understands_is_sent(server):
    said(server, temperature=0.0, seed=1)
    assert list(server.requests[0]) == ["model", "messages", "max_tokens", "temperature", "seed"]


@pytest.mark.parametrize("text", ["", "rien"])
def test_a_reply_that_is_of_no_use_is_not_stored(text):
    with ScriptedServer(lambda prompt, attempt: Reply(text if attempt == 0 else "oui")) as server:
        model = model_of(build_language_model("m", KEY, server.api_base))
        asked = [ask(model, [{"role": "user", "content": "?"}], keeps=lambda said: said == "oui") for _ in range(3)]
        assert [one.text for one in asked] == [text, "oui", "oui"]
        assert len(server.prompts) == 2


def test_the_store_holds_no_key_no_address_and_no_pickle(server, own_store):
    said(server)
    data = own_store.read_bytes()
    assert KEY.encode() not in data
    assert server.api_base.encode() not in data
    with sqlite3.connect(own_store) as connection:
        assert connection.execute("SELECT text, cut_off FROM replies").fetchall() == [("réponse 0", 0)]


def test_a_damaged_store_is_told_once_and_does_without(server, own_store, caplog):
    own_store.parent.mkdir(exist_ok=True)
    own_store.write_bytes(b"rubbish" * 1000)
    assert [said(server), said(server), said(server, seed=1)] == ["réponse 0", "réponse 1", "réponse 2"]
    (told,) = [record.message for record in caplog.records if "replies" in record.message]
    assert told == f"replies are not kept in {own_store} (file is not a database); if it is damaged, delete it"


def test_the_oldest_replies_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.llm.replies.FORGET_EVERY", 1)
    store = ReplyStore(tmp_path / "replies.sqlite", most=3)
    for key in "abcd":
        store.put(key, Completion(key))
        time.sleep(0.002)
    assert [store.get(key) is not None for key in "abcd"] == [False, True, True, True]


def test_a_reply_is_read_while_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.llm.replies.PATIENCE_SECONDS", 0.1)
    store = ReplyStore(tmp_path / "replies.sqlite")
    store.put("a", Completion("a", cut_off=True))
    with closing(sqlite3.connect(store.file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert (store.get("a").text, store.get("a").cut_off) == ("a", True)


# --- answers


def searcher(prompt, _attempt):
    """Search once, then answer without citing."""
    if not wants_step(prompt):
        return answer("Aucun passage pertinent n'a été trouvé.")
    return step("finish") if STEPPED in prompt else step("search_legal_docs", query="compte de campagne")


@pytest.fixture
def place(tiny_library):
    return ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]


def test_a_second_identical_question_costs_no_call_of_the_model(tiny_library, tiny_encoder):
    with ScriptedServer(searcher) as server:
        settings = {"model": "m", "api_base": server.api_base, "encoder": tiny_encoder}
        first = build_agent(tiny_library, **settings)(QUESTION)
        n_asked = len(server.prompts)
        second = build_agent(tiny_library, budget=Budget(tokens=1, cost=1e-9), **settings)(QUESTION)
        assert len(server.prompts) == n_asked > 0
    assert (second.answer, second.status) == (first.answer, first.status)
    assert first.usage.calls == n_asked
    assert second.usage == (0, n_asked, 0, 0, 0.0)


def test_questions_are_never_made_of_replies_that_were_given_before(server):
    options = {"no_model": False, "model": "m", "api_base": server.api_base}
    options |= {"temperature": 0.2, "max_reply_tokens": None, "timeout": 20.0}
    options |= dict.fromkeys(("workers", "context_tokens", "model_options"))
    assert [_language_model(options)("Bonjour ?") for _ in range(2)] == [["réponse 0"], ["réponse 1"]]


def test_the_command_line_asks_again_only_where_it_is_told_to(place, capfd, settings, monkeypatch):
    monkeypatch.setenv("GENERATOR_API_KEY", KEY)
    with ScriptedServer(searcher) as server:
        asked = ["ask", QUESTION, "--model", "m", "--api-base", server.api_base, "--json", *place]
        counts = []
        for more in ("", "", "cache = false", "seed = 1", "seed = 1"):
            before = len(server.prompts)
            assert main([*settings(more), *asked]) == 0
            counts.append(len(server.prompts) - before)
    n = counts[0]
    assert n > 0
    assert counts == [n, 0, n, n, 0]
    assert KEY not in "".join(capfd.readouterr())


# --- fences and JSON in replies


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("```\n[[ ## a ## ]]\nun\n```", "[[ ## a ## ]]\nun"),
        ('```json\n{"a": 1}\n```\n', '{"a": 1}'),
        ("~~~\nun\n~~~", "un"),
        ("```\nun, coupé", "un, coupé"),
        ("```\nun\n```\npuis\n```\ndeux\n```", None),
        ("Voici :\n```\nun\n```", None),
        ("```\nun\n```\nBonne lecture.", None),
        ("`un`", None),
        ("```", None),
        ("", None),
    ],
)
def test_the_fence_around_a_whole_reply_is_stripped_and_no_other(text, within):
    assert unfenced(text) == (text if within is None else within)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Voici :\n```json\n[{"a": 1}]\n```\nBonne lecture {.', [{"a": 1}]),
        ('[[ ## sections ## ]]\n[{"a": 1}]', [{"a": 1}]),
        ('{"a": "ligne\nligne"}', {"a": "ligne\nligne"}),
        ('{"a": "b\\ud800", "c": NaN}', {"a": "b\ufffd", "c": "nan"}),
        ("{a: 'b', c: [1, 2", {"a": "b", "c": [1, 2]}),
        ("[]", []),
        ("rien", None),
        ("", None),
        ("{" * 25_000, None),
        ('{"a": ' + "1" * 5000 + "}", None),
    ],
)
def test_json_is_found_in_what_models_write(text, value):
    found = json_in(text)
    assert found == value or (value is None and not isinstance(found, list))


def test_the_time_that_repairing_takes_is_bounded():
    started = time.process_time()
    json_in("{[" * 10_000)
    json_in('{"a": "' + "x" * 100_000)
    assert json_in('{"a": [1, 2', repair=False) is None
    assert time.process_time() - started < 8
