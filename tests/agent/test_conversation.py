"""The one conversation of a run: what each request sends, and what its form lets the model write."""

import itertools
import json
import re

import pytest
from support.agent_scripts import QUESTION, SEARCHED, STEPPED, diligent, quotation, sound
from support.scripted_server import Reply, ScriptedServer, answer, fields, step

from legal_rag.agent import Budget, EvidenceAgent, LegalReActAgent, build_language_model, default_instructions
from legal_rag.retriever import build_retriever

TOO_LONG = {"error": {"message": "maximum context length is 4096 tokens", "code": "context_length_exceeded"}}


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return build_retriever(tiny_library, tiny_encoder)


@pytest.fixture
def ask(retriever):
    """Ask the question of a model that follows a script; its server keeps the requests."""

    def asking(script, window=None, budget=None, asked=QUESTION, history=(), **settings):
        with ScriptedServer(script) as server:
            lm = build_language_model("scripted", api_base=server.api_base, num_retries=0, cache=False, window=window)
            agent = LegalReActAgent(retriever, lm, default_instructions(), budget=budget or Budget(), **settings)
            return agent(asked, history), server

    return asking


def forms_of(request):
    """Return the forms of a step that a request lets the model write, by what tells them apart."""
    forms = request["response_format"]["json_schema"]["schema"].get("anyOf", [])
    return {
        form["properties"].get("tool", {}).get("const") or form["required"][-1]: form["properties"] for form in forms
    }


def test_the_first_search_is_made_before_the_model_is_asked(ask):
    prediction, server = ask(lambda prompt, attempt: answer(quotation(prompt)))
    assert [event.type for event in prediction.events] == ["search", "think", "cite", "answer"]
    assert prediction.trajectory["tool_args_0"] == {"query": QUESTION}
    system, user = server.requests[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"].startswith("<extrait>\nDécision ")
    assert user["content"].endswith(f"\n</extrait>\n\nQuestion : {QUESTION}")
    assert len(server.requests) == 1
    assert [citation.status for citation in prediction.citations] == ["verified"]


def test_each_request_begins_with_all_of_the_one_before(ask):
    _, server = ask(diligent)
    assert len(server.requests) == 4
    for before, after in itertools.pairwise(request["messages"] for request in server.requests):
        assert after[: len(before) - 1] == before[:-1]
        assert after[len(before) - 1]["content"].startswith(before[-1]["content"])
    # The last one only asks for the answer: no message of the steps is put otherwise.
    roles = [message["role"] for message in server.requests[-1]["messages"]]
    assert roles == ["system", *["user", "assistant"] * 2, "user"]


def test_the_model_s_steps_stand_in_the_conversation_in_the_form_asked_for(ask):
    def script(prompt, attempt):
        if "Hmm." in prompt:
            return sound(f"{prompt}\n{STEPPED}")
        name = {"next_thought": "Hmm.", "next_tool_name": "search", "next_tool_args": {"question": SEARCHED}}
        return fields(**name)

    _, server = ask(script)
    (written,) = [message for message in server.requests[1]["messages"] if message["role"] == "assistant"]
    assert json.loads(written["content"]) == {"thought": "Hmm.", "query": SEARCHED}


def test_a_step_that_cannot_be_read_is_not_shown_again_but_corrected(ask):
    def script(prompt, attempt):
        return sound(f"{prompt}\n{STEPPED}") if "Écrivez un seul objet JSON" in prompt else Reply("n'importe quoi")

    prediction, server = ask(script)
    assert prediction.status == "answered"
    messages = server.requests[1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user"]
    assert (
        'd\'une de ces formes : {"evidence": […], "answer": "…"}, {"query": "…"}, {"id": "…"}' in messages[1]["content"]
    )
    assert not any("n'importe quoi" in prompt for prompt in server.prompts)


def test_the_form_holds_only_ids_and_pieces_that_were_shown(ask):
    _, server = ask(diligent)
    for request in server.requests[:-1]:
        shown = "\n".join(message["content"] for message in request["messages"] if message["role"] == "user")
        forms = forms_of(request)
        assert forms["answer"]["evidence"]["items"]["enum"] == list(
            dict.fromkeys(re.findall(r"^\[(P\d+)\]", shown, re.M))
        )
        assert set(forms["id"]["id"]["enum"]) == set(re.findall(r"^Décision (?::\s)?(FICTIF\d+)", shown, re.M))
        assert forms["get_outline"]["id"] == forms["id"]["id"]
    (schema,) = [request["response_format"]["json_schema"]["schema"] for request in server.requests[-1:]]
    assert list(schema["properties"]) == ["evidence", "answer"]


@pytest.mark.parametrize(
    ("settings", "tools"),
    [
        ({"window": 8192}, []),
        ({"window": 32_768}, ["lookup_entities", "get_outline", "read_section", "graph_neighbours"]),
        ({}, ["lookup_entities", "get_outline", "read_section", "graph_neighbours"]),
        ({"window": 8192, "tools": ["read_section"]}, ["read_section"]),
        ({"tools": []}, []),
    ],
    ids=["small", "large", "unknown", "small, one named", "none named"],
)
def test_a_model_has_the_tools_that_its_context_has_room_for_or_those_named(ask, settings, tools):
    _, server = ask(sound, **settings)
    forms = forms_of(server.requests[0])
    assert list(forms) == ["answer", "query", "id", *tools]
    is_small = settings.get("window") == 8192
    assert list(forms["query"]) == (["query"] if is_small else ["query", "filters", "k"])
    assert ("<vm:entity" in server.prompts[0]) is not is_small


def test_a_reply_is_no_longer_than_its_purpose_needs(ask):
    _, server = ask(sound)
    caps = [request.get("max_tokens") or request["max_completion_tokens"] for request in server.requests]
    assert caps == [1000, 1000, 2000]


def test_a_repeated_call_brings_new_passages_each_time(ask):
    def script(prompt, attempt):
        return step("search_legal_docs", query=SEARCHED, k=4)

    prediction, _ = ask(script, budget=Budget(steps=3))
    results = [prediction.trajectory[f"observation_{number}"] for number in range(4)]
    found = [re.findall(r"^Décision (\S+) :", result, re.M) for result in results[1:]]
    assert all(found)
    assert not set(found[0]) & set(found[1])
    pieces = re.findall(r"^\[(P\d+)\] ", "\n".join(results), re.M)
    assert len(pieces) == len(set(pieces))


def test_where_the_context_is_too_small_passages_are_cut_and_the_reader_is_told(ask):
    refusal = {"error": {"message": "This model's maximum context length is 3000 tokens.", "type": "x", "code": 400}}

    def script(prompt, attempt):
        is_long = len(prompt.rpartition("<extrait>")[2]) > 1300
        return Reply(status=400, raw_body=json.dumps(refusal)) if is_long else answer(quotation(prompt))

    prediction, server = ask(script)
    assert (prediction.status, [citation.status for citation in prediction.citations]) == ("answered", ["verified"])
    assert prediction.notice.startswith("Le contexte du modèle est trop petit pour tout ce qui a été trouvé")
    assert "(observation abrégée : " in server.prompts[-1]


# --- questions that follow one another --------------------------------------------------------------------------------

ELLIPTICAL = "Et pour un retard de douze jours ?"


def test_a_question_is_asked_after_those_before_and_searched_with_the_last_one_where_it_refers_to_it(ask):
    script = lambda prompt, attempt: answer(quotation(prompt))  # noqa: E731
    first, _ = ask(script)
    prediction, server = ask(script, asked=ELLIPTICAL, history=[("Bonjour ?", "Bonjour."), first])
    messages = server.requests[0]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [messages[1]["content"], messages[3]["content"]] == ["Question : Bonjour ?", f"Question : {QUESTION}"]
    told = json.loads(messages[4]["content"])["answer"]
    assert told.startswith("Le texte dit : «")
    assert "[Source" not in told
    assert messages[5]["content"].endswith(f"Question : {ELLIPTICAL}")
    assert prediction.question == ELLIPTICAL
    assert prediction.trajectory["tool_args_0"] == {"query": f"{QUESTION} {ELLIPTICAL}"}


@pytest.mark.parametrize(
    "own",
    [
        "Quelle indemnité le salarié licencié sans cause réelle obtient-il ?",
        "Mon voisin fait du bruit la nuit, cela est-il un trouble anormal de voisinage ?",
        "Quel est le délai d'appel ?",
    ],
)
def test_a_question_that_stands_by_itself_is_searched_by_its_own_words(ask, own):
    prediction, _ = ask(diligent, asked=own, history=[(QUESTION, "Deux mois.")])
    assert prediction.trajectory["tool_args_0"] == {"query": own}


def test_of_a_long_conversation_the_last_exchanges_are_shown_and_none_where_the_context_has_no_room(ask):
    history = [(f"Question {n} ?", f"Réponse {n}. {'mot ' * 2000}") for n in range(9)]
    _, server = ask(diligent, history=history)
    shown = [message["content"] for message in server.requests[0]["messages"][1:-1]]
    assert shown[::2] == [f"Question : Question {n} ?" for n in (6, 7, 8)]
    assert all(len(content) < 1600 for content in shown)

    def small(prompt, attempt):
        too_long = Reply(status=400, raw_body=json.dumps(TOO_LONG))
        return too_long if "Question 8" in prompt else diligent(prompt, attempt)

    prediction, _ = ask(small, history=history)
    assert (prediction.mode, prediction.status) == ("agent", "answered")


def test_passages_too_are_searched_with_the_question_before(retriever):
    agent = EvidenceAgent(retriever, match_words=False)
    follow_up = agent(ELLIPTICAL, history=[agent(QUESTION)])
    assert follow_up.question == ELLIPTICAL
    assert follow_up.events[0].input["query"] == f"{QUESTION} {ELLIPTICAL}"
    long_ago = [("mot " * 400, "Oui.")]  # longer with the question than the encoder reads
    assert agent(ELLIPTICAL, history=long_ago).events[0].input["query"] == ELLIPTICAL
