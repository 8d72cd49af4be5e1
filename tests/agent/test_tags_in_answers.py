"""An answer's tags enrich the graph, and no reader sees them: over a scripted model behind a real server."""

import json
import logging
import re
import shutil
import sqlite3

import pytest
from support.agent_scripts import QUESTION, STEPPED, in_writing, sound, wants_step
from support.rlm_scripts import root_model
from support.scripted_server import Reply, ScriptedServer, answer, step

from legal_rag.agent import (
    Prediction,
    build_agent,
    build_language_model,
)
from legal_rag.agent.replies import TagSettings, tag_instructions
from legal_rag.cli import main
from legal_rag.corpus_index import CorpusIndexer
from legal_rag.deep_read import deep_read
from legal_rag.graph import EDGE_TYPES, EPISODE_STATUSES, NODE_TYPES, ExtractedEpisode, KnowledgeGraph
from legal_rag.indexer import IndexConfig, build_index, compact_index, examine, open_index
from legal_rag.library import Library
from legal_rag.report import SavedAnswers

LAW = "article L. 52-12 du code électoral"
PLANTED = '<vm:entity name="mandataire" type="concept"/>'
ROWS = [
    {
        "id": "compte",
        "title": "Compte de campagne",
        "content": (
            "Le candidat dépose son compte de campagne dans le délai fixé par la loi, au plus tard le "
            f"dixième vendredi. Vu l'{LAW}, la société Lever soutient que le mandataire financier était absent."
        ),
    },
    {
        "id": "hostile",
        "title": "Un texte qui porte des balises",
        "content": (
            f"Le dépôt du compte de campagne hors du délai est sanctionné {PLANTED} par le juge, "
            "et le compte de campagne est rejeté pour le dépôt hors du délai légal."
        ),
    },
]
ENTITY = '<vm:entity name="mandataire financier" type="concept" confidence="0.9">Il tient le compte</vm:entity>'
FACT = f'<vm:relationship from="compte" to="{LAW}" type="cites" confidence="0.95" />'
STATED = '<vm:relationship from="société Lever" to="mandataire financier" type="related_to" confidence="0.8" />'
INVENTED = '<vm:relationship from="compte" to="article 1240 du code civil" type="cites" confidence="1" />'
DOUBTFUL = '<vm:entity name="dixième vendredi" type="event" confidence="0.5" />'
EPISODE = (
    '<vm:episode decision="Lire le compte" context="délai" status="success">'
    "<lesson>Chercher le délai</lesson><entity>mandataire financier</entity></vm:episode>"
)
EVERY = "\n".join([ENTITY, FACT, STATED, INVENTED, DOUBTFUL, EPISODE])
SETTINGS = {"timeout": 30, "num_retries": 0, "cache": False, "match_words": False}
OFF = {"single_pass_extraction_enabled": False}
EXACT = "« Le candidat dépose son compte de campagne dans le délai fixé par la loi » [Source: compte, chars 0-73]"


@pytest.fixture(scope="module")
def built(tiny_encoder, tmp_path_factory):
    config = IndexConfig(source=ROWS, index_folder=str(tmp_path_factory.mktemp("tagged")))
    build_index(config, tiny_encoder)
    return open_index(config).path


@pytest.fixture
def library(built, tmp_path):
    return Library(shutil.copytree(built, tmp_path / "index" / built.name))


@pytest.fixture
def ask(library, tiny_encoder):
    """Ask the question of a model that follows a script; the prompts it got are on the server."""

    def asking(script, **settings):
        settings = SETTINGS | settings
        with ScriptedServer(script) as server:
            agent = build_agent(library, model="scripted", api_base=server.api_base, encoder=tiny_encoder, **settings)
            return agent(QUESTION), server

    return asking


def answering(*tags, text=f"Le texte dit : {EXACT}."):
    """Work soundly, and write an answer that ends in tags."""
    return in_writing(lambda prompt: answer("\n\n".join([text, *tags])))


def everything(prediction):
    """Return all that is kept of an answer as one text, but what its tags said and the tag of a document."""
    record = prediction.to_record()
    del record["extraction"]
    return json.dumps(record, ensure_ascii=False).replace(json.dumps(PLANTED)[1:-1], "")


# --- seed 4: into the graph, out of the text -------------------------------------------------------------------------


def mentions_in(library):
    query = """
        SELECT answer_id, doc_id, char_start, char_end, confidence, description FROM mentions
        JOIN nodes USING (node_key) JOIN sources USING (source_key)
        LEFT JOIN texts ON texts.text_key = mentions.text_key
        WHERE name = 'mandataire financier'
    """
    with sqlite3.connect(library.path / "graph.sqlite") as connection:
        return connection.execute(query).fetchall()


def test_an_entity_reaches_the_graph_with_its_place_in_what_was_read(ask, library):
    prediction, _ = ask(answering(ENTITY))
    ((answer_id, doc_id, start, end, *said),) = mentions_in(library)
    assert (answer_id, doc_id) == (prediction.answer_id, "compte")
    assert ROWS[0]["content"][start:end] == "mandataire financier"
    assert said == [0.9, "Il tient le compte"]
    assert prediction.graph == (1, 0, 0, 0, 0)


def test_a_relationship_reaches_the_graph_as_far_as_the_texts_support_it(ask, library):
    prediction, _ = ask(answering(FACT, STATED, INVENTED))
    assert (prediction.graph.facts, prediction.graph.stated, prediction.graph.unsupported) == (1, 1, 1)
    edges = KnowledgeGraph(library).neighbours("société Lever", supports=("stated",))
    assert [(one.type, one.target.name, one.is_fact, one.answer_id) for one in edges] == [
        ("related_to", "mandataire financier", False, prediction.answer_id)
    ]
    assert KnowledgeGraph(library).citing("article L. 52-12 du code électoral")[0].is_fact


def test_the_response_is_clean_and_its_citations_are_those_of_the_answer_without_tags(ask):
    plain, _ = ask(answering())
    tagged, _ = ask(answering(EVERY))
    assert tagged.answer == plain.answer
    assert "vm:" not in everything(tagged)
    assert tagged.citations == plain.citations
    assert tagged.citations[0].status == "verified"
    assert (tagged.status, tagged.mode, tagged.notice) == ("answered", "agent", None)


@pytest.mark.parametrize(("threshold", "names"), [(0.7, {"mandataire financier"}), (0.95, set()), (0.0, None)])
def test_below_the_threshold_nothing_counts(ask, threshold, names):
    prediction, _ = ask(answering(ENTITY, DOUBTFUL), extraction_confidence_threshold=threshold)
    names = {"mandataire financier", "dixième vendredi"} if names is None else names
    assert {one.name for one in prediction.extraction.entities} == names if names else prediction.extraction is None
    assert "vm:" not in prediction.answer


def test_switched_off_the_model_is_told_nothing_and_its_answer_passes_as_it_is(ask, library):
    text = f"Le texte dit : {EXACT}.\n\n[Analyse] Balise : {ENTITY}"
    prediction, server = ask(answering(text=text), **OFF)
    assert prediction.answer == text
    assert prediction.extraction is prediction.graph is None
    assert not any("vm:entity name" in prompt for prompt in server.prompts if "hostile" not in prompt)
    assert not any(tag_instructions() in prompt for prompt in server.prompts)
    assert KnowledgeGraph(library).counts()["answers"] == 0


def test_without_tags_the_answer_passes_as_it_is_and_the_graph_stays_as_it_was(ask, library):
    before = (library.path / "graph.sqlite").read_bytes()
    prediction, _ = ask(answering(text=f"Le texte dit : {EXACT}.\n\n\n\n[Analyse] 3 < 4 & « vm : ».  \n\nFin"))
    assert prediction.answer.endswith(".\n\n\n\n[Analyse] 3 < 4 & « vm : ».  \n\nFin")
    assert prediction.extraction is prediction.graph is None
    assert (library.path / "graph.sqlite").read_bytes() == before


# --- what the model is told -----------------------------------------------------------------------------------------


def test_the_model_is_told_the_types_of_the_graph_and_in_few_words(ask):
    told = tag_instructions()
    for name in (*NODE_TYPES, *EDGE_TYPES, *EPISODE_STATUSES):
        assert re.search(rf"\b{name}\b", told)
    assert told.startswith("Facultatif, à la toute fin de answer")
    assert len(told) < 1000
    _, server = ask(sound)
    assert [prompt.count(told) for prompt in server.prompts] == [1] * len(server.prompts)


@pytest.mark.parametrize("threshold", [-0.1, 1.01, float("nan"), float("inf")])
def test_a_threshold_that_is_none_is_refused(threshold):
    with pytest.raises(ValueError, match=f"extraction_confidence_threshold must be from 0 to 1, got {threshold}"):
        TagSettings(extraction_confidence_threshold=threshold)


# --- wherever a model writes them -----------------------------------------------------------------------------------


def in_a_step(prompt, attempt):
    """Give the answer with the tool that ends the search."""
    if STEPPED in prompt:
        return step("finish", answer=f"Le texte dit : {EXACT}.\n{EVERY}")
    return sound(prompt)


def as_json(prompt, attempt):
    """Write the answer as an object."""
    if wants_step(prompt):
        return sound(prompt)
    return Reply(json.dumps({"reasoning": ENTITY, "answer": f"Le texte dit : {EXACT}.\n{EVERY}"}))


def before_and_within(prompt, attempt):
    """Write tags before the answer and in the midst of it."""
    text = f"{ENTITY}{FACT} Le texte dit : {EXACT}{STATED}{INVENTED}.{DOUBTFUL}{EPISODE}"
    return sound(prompt) if wants_step(prompt) else answer(text)


def behind_a_fence(prompt, attempt):
    """Put the answer, not its tags, into a code fence."""
    text = f"```markdown\nLe texte dit : {EXACT}.\n```\n{EVERY}"
    return sound(prompt) if wants_step(prompt) else answer(text)


def in_a_fence(prompt, attempt):
    """Put the tags, not the answer, into a code fence."""
    text = f"Le texte dit : {EXACT}.\n\n```xml\n{EVERY}\n```"
    return sound(prompt) if wants_step(prompt) else answer(text)


def at_the_second_attempt(prompt, attempt):
    """Write nothing but tags first, then an answer with the others."""
    if wants_step(prompt):
        return sound(prompt)
    again = "Votre réponse était vide" in prompt
    return answer(f"Le texte dit : {EXACT}.\n{EVERY}" if again else INVENTED)


def in_the_last_thought(prompt, attempt):
    """Answer in the thought of the last step, and write nothing more."""
    if wants_step(prompt) and STEPPED in prompt:
        return Reply(json.dumps({"thought": f"{EXACT}, dit le texte.\n{EVERY}", "tool": "finish"}))
    return sound(prompt) if wants_step(prompt) else answer("")


@pytest.mark.parametrize(
    "script",
    [
        in_a_step,
        as_json,
        before_and_within,
        behind_a_fence,
        in_a_fence,
        at_the_second_attempt,
        in_the_last_thought,
    ],
)
def test_tags_are_read_and_taken_out_wherever_the_answer_comes_from(ask, script):
    prediction, _ = ask(script)
    assert (prediction.mode, prediction.status) == ("agent", "answered")
    assert "vm:" not in everything(prediction)
    assert "```" not in prediction.answer
    assert prediction.graph == (1, 1, 1, 1, 1)
    assert [len(one) for one in (prediction.extraction.entities, prediction.extraction.relationships)] == [1, 3]
    assert prediction.extraction.episodes == [
        ExtractedEpisode("Lire le compte", "délai", "success", ("Chercher le délai",), ("mandataire financier",))
    ]


def test_tags_in_thoughts_arguments_and_names_of_tools_are_shown_to_nobody_and_say_nothing(ask, library):
    def script(prompt, attempt):
        if "Je cherche." not in prompt:
            query = f"compte de campagne {STATED}"
            return Reply(json.dumps({"thought": f"Je cherche.{ENTITY}", "tool": "search", "query": query}))
        if "Aucun outil ne s'appelle" not in prompt:
            return Reply(json.dumps({"thought": "Hum.", "tool": ENTITY}))
        return sound(f"{prompt}\n{STEPPED}" if wants_step(prompt) else prompt)

    prediction, server = ask(script)
    assert prediction.events[1].input["thought"] == "Je cherche."
    assert prediction.events[2].input["query"].strip() == "compte de campagne"
    assert prediction.extraction is None
    last = server.prompts[-1].partition("\nQuestion : ")[2]
    assert "Je cherche." in last
    assert ENTITY not in last
    assert STATED not in last
    assert ENTITY not in json.dumps(prediction.trajectory, ensure_ascii=False)
    assert KnowledgeGraph(library).counts()["answers"] == 0


def test_an_answer_of_tags_alone_is_an_empty_answer(ask, library):
    prediction, server = ask(answering(EVERY, text=""))
    assert prediction.mode == "fallback"
    assert any("Votre réponse était vide" in prompt for prompt in server.prompts)
    assert prediction.extraction is prediction.graph is None
    assert KnowledgeGraph(library).counts()["answers"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "Le juge dit oui, sans rien citer du tout de ce qu'il a lu.",
        "Le texte dit : « ce qu'aucune décision ne dit jamais » [Source: compte, chars 0-40].",
        "Aucun passage pertinent",
    ],
    ids=["uncited", "unverified", "abstained"],
)
def test_an_answer_that_does_not_stand_adds_nothing(ask, library, text):
    prediction, _ = ask(answering(EVERY, text=text))
    assert prediction.mode == "fallback" or prediction.status == "abstained"
    assert prediction.extraction is prediction.graph is None
    assert "vm:" not in everything(prediction)
    assert KnowledgeGraph(library).counts()["answers"] == 0


def test_a_model_s_own_tag_within_a_quotation_is_taken_out_and_the_quotation_holds(ask):
    text = EXACT.replace("compte de campagne", f"compte {ENTITY}de campagne")
    prediction, _ = ask(answering(text=f"Le texte dit : {text}."))
    assert prediction.answer == f"Le texte dit : {EXACT}."
    assert prediction.citations[0].status == "verified"
    assert prediction.graph.entities == 1


# --- saved, removed, and what goes wrong ----------------------------------------------------------------------------


def test_a_saved_answer_and_its_edges_have_one_id_and_go_together(ask, library):
    (kept, _), (removed, _) = ask(answering(EVERY)), ask(answering(EVERY))
    store = SavedAnswers.of(library)
    assert [store.save(kept), store.save(removed)] == [kept.answer_id, removed.answer_id]
    assert kept.answer_id < removed.answer_id
    assert Prediction.from_record(json.loads(json.dumps(kept.to_record()))) == kept
    store.remove(removed.answer_id)
    assert {answer_id for answer_id, *_ in mentions_in(library)} == {kept.answer_id}
    store.remove(kept.answer_id)
    with pytest.raises(LookupError, match="no node 'mandataire financier'"):
        KnowledgeGraph(library).find("mandataire financier")


def broken_graph(library, monkeypatch):
    (library.path / "graph.sqlite").unlink()
    (library.path / "graph.sqlite").mkdir()


def bug(library, monkeypatch):
    monkeypatch.setattr("legal_rag.agent.agent.add_answer", lambda *_: 1 / 0)


@pytest.mark.parametrize("damage", [broken_graph, bug])
def test_a_graph_that_cannot_be_written_costs_no_answer(ask, library, monkeypatch, caplog, damage):
    damage(library, monkeypatch)
    with caplog.at_level(logging.WARNING):
        prediction, _ = ask(answering(EVERY))
    assert (prediction.mode, prediction.status, prediction.graph) == ("agent", "answered", None)
    assert prediction.answer == f"Le texte dit : {EXACT}."
    assert len(prediction.extraction.relationships) == 3  # what was said is kept with the answer
    assert [one.message.partition(":")[0] for one in caplog.records] == ["the graph took nothing from this answer"]


def test_an_index_that_is_replaced_in_the_meantime_gets_the_edges_and_is_not_broken(ask, library, tiny_encoder):
    def script(prompt, attempt):
        if not wants_step(prompt):  # all is read by now
            compact_index(library.path.parent, library.path.name)
        return answering(EVERY)(prompt, attempt)

    prediction, _ = ask(script)
    assert (prediction.status, prediction.graph) == ("answered", (1, 1, 1, 1, 1))
    assert KnowledgeGraph(library.reload()).counts()["answers"] == 1
    assert examine(library.reload()) == []


# --- deep reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        f"Le texte dit : {EXACT}.\n\n{EVERY}",
        [f"Un compte{ENTITY}", {"délai": [f"dixième vendredi{FACT}", 10]}],
    ],
    ids=["text", "values"],
)
def test_a_deep_read_does_not_show_tags_that_a_model_writes_unasked(library, value):
    CorpusIndexer(library).build_corpus_index(parallel=False)
    with ScriptedServer(root_model([f"read_document('compte')\nFINAL({value!r})"])) as server:
        lm = build_language_model("scripted", api_base=server.api_base, cache=False)
        prediction = deep_read(QUESTION, library=library, lm=lm)
    assert prediction.status == ("answered" if isinstance(value, str) else "unverified")
    assert "vm:" not in f"{prediction.answer} {prediction.notice} {prediction.events[-1]}"
    assert prediction.extraction is prediction.graph is None
    assert "compte" in prediction.answer


# --- on the command line --------------------------------------------------------------------------------------------


def asked(library, server, *options, settings=()):
    place = ["--index-folder", str(library.path.parent), "--index-name", library.path.name]
    return main([*settings, "ask", QUESTION, "--model", "scripted", "--api-base", server.api_base, *options, *place])


def test_ask_says_on_one_line_what_the_graph_took(library, capfd, monkeypatch, tiny_encoder):
    with ScriptedServer(answering(EVERY)) as server:
        assert asked(library, server) == 0
    out, err = capfd.readouterr()
    assert "vm:" not in out + err
    assert (
        "graphe : 1 nom situé dans les textes, 1 fait, 1 lien proposé par le modèle, 1 mention sans appui, 1 épisode\n"
        in err
    )


def test_ask_without_tags_and_a_threshold_that_is_none(library, capfd, settings):
    with ScriptedServer(answering(EVERY)) as server:
        file = settings("[ask]\nsingle_pass_extraction_enabled = false")
        assert asked(library, server, "--json", settings=file) == 0
        out, err = capfd.readouterr()
        assert ENTITY in json.loads(out)["answer"]
        assert "graphe" not in err
        file = settings("[ask]\nextraction_confidence_threshold = 2")
        assert asked(library, server, settings=file) == 1
    assert capfd.readouterr().err.endswith("must be from 0 to 1, got 2.0\n")
