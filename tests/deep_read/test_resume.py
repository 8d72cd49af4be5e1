"""A deep read that was killed after any of its calls is resumed, and pays for none of them twice."""

import json
import sqlite3
import threading
from contextlib import closing, contextmanager

import pytest
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import Budget, build_language_model
from legal_rag.deep_read import deep_read, read_trace
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.law import split_sentences
from legal_rag.llm import ReplyStore
from legal_rag.llm.asking import store

QUESTION = "Combien de lettres ont les réponses ?"
PROGRAMS = [
    "a = llm_query('lis un')\nprint(a, len(list_documents()))",
    "b = llm_query_batched(['lis deux', 'lis trois', 'lis deux'])\nprint(b)",
    "FINAL({'n': len(a) + sum(map(len, b))})",
]
SUB = {"lis un": "un", "lis deux": "deux", "lis trois": "trois"}
N_CALLS = 6  # the second batch asks the same twice


class Killed(BaseException):
    """Stands for a kill."""


@pytest.fixture
def kill(monkeypatch):
    """Kill a run as soon as it has paid for one more call."""

    @contextmanager
    def killing():
        put = ReplyStore.put

        def put_and_die(replies, key, reply):
            put(replies, key, reply)
            raise Killed

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(ReplyStore, "put", put_and_die)
            yield
        for thread in threading.enumerate():  # what was under way ends
            if thread.name.startswith(("ask", "ThreadPool")):
                thread.join(20)

    return killing


@pytest.fixture
def ask(tiny_library):
    def asking(server, trace=None, question=QUESTION, model="root", seed=None, doc_ids=None, **settings):
        lm = build_language_model(model, api_base=server.api_base, num_retries=0, timeout=20, seed=seed)
        settings = {"budget": Budget(), "settings": DeepReadSettings(plan="rlm", workers=1), **settings}
        return deep_read(question, doc_ids, library=tiny_library, lm=lm, trace=trace, **settings)

    return asking


def documents_read(tiny_library):
    """Return ids of documents, a script that quotes from each, and the number of calls that reading them takes."""
    ids = list(tiny_library)[:3]
    markers = {}
    for doc_id in ids:
        content = tiny_library.document(doc_id).content
        start, end = next(span for span in split_sentences(content) if span[1] - span[0] > 120)
        quote = content[start:end].strip()
        markers[quote] = f"[Source: {doc_id}, chars {start}-{start + len(quote)}]"

    def script(prompt, attempt):
        if "[Source:" in prompt:
            return Reply("\n".join(f"Le texte dit : « {quote} » {marker}." for quote, marker in markers.items()))
        quotes = [quote for quote in markers if quote in prompt]
        return Reply(json.dumps({"pertinent": bool(quotes), "reponse": "Voir le texte.", "citations": quotes}))

    return ids, script


def test_programs_killed_after_each_call_pay_for_none_twice(ask, kill, tmp_path):
    trace = tmp_path / "run.jsonl"
    with ScriptedServer(root_model(PROGRAMS, SUB)) as server:
        while len(server.prompts) < N_CALLS:  # a call under way at a kill is paid for as well
            with kill():
                ask(server, trace)
        prediction = ask(server, trace)
        assert len(server.prompts) == len(set(server.prompts)) == N_CALLS
    assert prediction.answer == "- **n** : 15"
    assert (prediction.usage.calls, prediction.usage.cached) == (0, N_CALLS)
    assert [one.number for one in read_trace(trace).iterations] == [1, 2, 3]


def test_reading_document_by_document_killed_after_each_call_pays_for_none_twice(ask, kill, tiny_library):
    ids, script = documents_read(tiny_library)
    by_documents = {"doc_ids": ids, "settings": DeepReadSettings(plan="map", workers=1)}
    with ScriptedServer(script) as server:
        expected = ask(server, **by_documents)
        n_calls = len(server.prompts)
    with ScriptedServer(script) as server:  # another address: no reply of it is stored
        while len(server.prompts) < n_calls:
            with kill():
                ask(server, **by_documents)
        prediction = ask(server, **by_documents)
        assert len(server.prompts) == len(set(server.prompts)) == n_calls
    assert (prediction.answer, prediction.status) == (expected.answer, "answered")


def test_a_run_resumed_with_more_turns_pays_only_for_what_is_new(ask, tmp_path):
    trace = tmp_path / "run.jsonl"
    with ScriptedServer(root_model(PROGRAMS, SUB, last=Reply("Je ne sais pas."))) as server:
        assert ask(server, trace, budget=Budget(steps=2)).status == "exhausted"
        asked = len(server.prompts)
        assert ask(server, trace, budget=Budget(steps=5)).answer == "- **n** : 15"
        assert len(server.prompts) == asked + 1
    assert [one.number for one in read_trace(trace).iterations] == [1, 2, 3]


def test_what_failed_is_asked_for_again(ask):
    def script(prompt, attempt):
        return Reply(status=400) if prompt == "lis un" and attempt == 0 else root_model(PROGRAMS, SUB)(prompt, attempt)

    with ScriptedServer(script) as server:
        ask(server)
        assert ask(server).answer == "- **n** : 15"
        assert server.prompts.count("lis un") == 2


def test_a_stored_reply_cannot_vouch_for_a_quotation(ask, tiny_library):
    ids, script = documents_read(tiny_library)
    by_documents = {"doc_ids": ids[:1], "settings": DeepReadSettings(plan="map")}
    with ScriptedServer(script) as server:
        first = ask(server, **by_documents)
        with closing(sqlite3.connect(store.file)) as connection, connection:
            invented = json.dumps({"pertinent": True, "reponse": "Oui.", "citations": ["une phrase tout inventée ici"]})
            connection.execute("UPDATE replies SET text = ?", (invented,))
        again = ask(server, **by_documents)
    assert (again.answer, again.usage.calls > 0) == (first.answer, True)


def test_a_refused_answer_is_not_replayed_but_asked_for_anew(ask):
    def script(prompt, attempt):
        return root_model(["FINAL(0)", "FINAL(0)"] if attempt == 0 else ["FINAL(len(list_documents()))"])(prompt, 0)

    with ScriptedServer(script) as server:
        assert [ask(server).status for _ in range(3)] == ["model_failed", "answered", "answered"]
        assert len(server.prompts) == 3  # two refused, one that stands and is stored
