"""Deep reading as a tool of the agent: called by the model, paid by the run, its citations checked."""

import json

import pytest
from support.agent_scripts import STEPPED, wants_step
from support.rlm_scripts import is_root, root_model
from support.scripted_server import ScriptedServer, answer, step

from legal_rag.agent import Budget, build_agent, build_language_model
from legal_rag.deep_read import deep_read_tool
from legal_rag.deep_read.reading import NO_ROOM

QUESTION = "Combien de décisions parlent du compte de campagne, et laquelle est la première ?"
PROGRAM = """
found = grep_corpus("compte de campagne", max_docs=5)
doc_id, places = next(iter(found.items()))
start, end = places[0]["start"], places[0]["end"]
quote = read_document_chunk(doc_id, start, end)
FINAL(f"On y lit « {quote} » [Source: {doc_id}, chars {start}-{end}].")
"""


def reading(tool_arguments, program=PROGRAM):
    """Script an agent that hands its question on, and then repeats what it was told."""
    root = root_model([program])

    def script(prompt, attempt):
        if is_root(prompt):
            return root(prompt, attempt)
        if not wants_step(prompt):
            return answer(prompt.split("<extrait>")[-1].split("</extrait>")[0].strip())
        return step("finish") if STEPPED in prompt else step("deep_read", **tool_arguments)

    return script


@pytest.fixture
def prompts():
    """Return what the model was shown."""
    return []


@pytest.fixture
def ask(tiny_library, tiny_encoder, prompts):
    def asking(script, **settings):
        with ScriptedServer(script) as server:
            lm = build_language_model("m", api_base=server.api_base, cache=False, num_retries=0, timeout=20)
            settings = {"extra_tools": [deep_read_tool], "match_words": False} | settings
            agent = build_agent(tiny_library, lm=lm, encoder=tiny_encoder, **settings)
            prediction = agent(QUESTION)
            prompts.extend(server.prompts)
            return prediction

    return asking


def test_the_agent_hands_a_question_on_within_its_budget_and_its_citation_is_verified(ask):
    prediction = ask(reading({"question": QUESTION}), budget=Budget(model_calls=20, tokens=100_000, seconds=60))
    assert (prediction.mode, prediction.status) == ("agent", "answered")
    assert [citation.status for citation in prediction.citations] == ["verified"]
    assert prediction.usage.calls == 4  # a step, a program, another step, the answer
    tools = [event.tool for event in prediction.events]
    said = next(event for event in prediction.events if event.input.get("thought", "").startswith("Lecture approf"))
    assert "(tout le corpus, 60 décisions) : au plus 16 appels au modèle, 7" in said.input["thought"]
    assert prediction.events.index(said) < tools.index("programme")
    assert "deep_read" in tools


def test_the_steps_of_a_deep_read_are_the_agent_s(ask):
    def script(prompt, attempt):
        if is_root(prompt):
            return root_model(["print(1)"] * 9, last="Rien.")(prompt, attempt)
        if not wants_step(prompt):
            return answer("Rien.")
        return step("deep_read", question=f"{QUESTION} {prompt.count(STEPPED)}")

    prediction = ask(script, budget=Budget(steps=6))
    tools = [event.tool for event in prediction.events if event.type == "think"]
    assert tools.count("programme") == 4  # a step of the agent before, and one that is kept for it
    assert [event.type for event in prediction.events if event.tool == "deep_read"].count("read") == 2
    assert prediction.notice.startswith("Budget épuisé : 6 étapes")


def test_a_budget_too_small_for_it_is_said_and_the_run_goes_on(ask, prompts):
    prediction = ask(reading({"question": QUESTION}), budget=Budget(model_calls=5))
    assert prediction.usage.calls == len(prompts) == 4  # two steps, the answer and a better one: none of a deep read
    assert NO_ROOM in prompts[1]
    assert not any(map(is_root, prompts))


def test_documents_may_be_named(ask, tiny_library):
    doc_id = next(iter(tiny_library))
    end = tiny_library.document(doc_id).content.index(" ", 60)
    quoted = f"read_document({doc_id!r})[:{end}]"
    program = f"FINAL('Le texte contient « ' + {quoted} + ' » [Source: {doc_id}, chars 0-{end}].')"
    prediction = ask(reading({"question": QUESTION, "doc_ids": doc_id}, program))
    assert prediction.citations[0].doc_id == doc_id


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"question": ""}, "Lecture impossible : "),
        ({"question": QUESTION, "doc_ids": "INCONNU-7"}, "INCONNU-7"),
    ],
)
def test_arguments_that_lead_nowhere_are_answered_in_french(ask, prompts, arguments, told):
    prediction = ask(reading(arguments))
    assert told in prompts[1].rpartition(STEPPED)[2]
    assert not any(map(is_root, prompts))
    assert prediction.notice.startswith("La réponse du modèle ne citait aucun passage vérifiable. ")


def test_the_command_line_gives_the_agent_deep_reading(tiny_library, said):
    with ScriptedServer(reading({"question": QUESTION})) as server:
        place = ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]
        value = said("ask", QUESTION, "--json", "--model", "m", "--api-base", server.api_base, *place)
    assert "deep_read" in [event["tool"] for event in json.loads(value)["events"]]
