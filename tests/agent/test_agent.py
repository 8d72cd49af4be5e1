"""The agent, against a scripted model behind a real server."""

import re
import shutil

import dspy
import pytest
from support.agent_scripts import QUESTION, SEARCHED, STEPPED, diligent, first_passage, quotation, sound, wants_step
from support.scripted_server import Reply, ScriptedServer, answer, step

from legal_rag.agent import (
    EvidenceAgent,
    LegalReActAgent,
    build_agent,
    instructions_of,
)
from legal_rag.agent.evidence import NO_PASSAGE
from legal_rag.library import Library
from legal_rag.report import render_answer


def calls_of(prediction, *types):
    """Return the run's events of some types."""
    return [event for event in prediction.events if event.type in types]


@pytest.fixture
def ask(tiny_library, tiny_encoder):
    """Ask the question of a model that follows a script."""

    def asking(script, library=tiny_library, **settings):
        settings = {"timeout": 30, "num_retries": 0, "cache": False} | settings
        with ScriptedServer(script) as server:
            agent = build_agent(library, model="scripted", api_base=server.api_base, encoder=tiny_encoder, **settings)
            return agent(QUESTION), server

    return asking


def test_a_run_searches_reads_and_cites_what_it_read(ask, tiny_library):
    prediction, _ = ask(diligent)
    assert (prediction.mode, prediction.status, prediction.notice) == ("agent", "answered", None)
    (citation,) = prediction.citations
    content = tiny_library.document(citation.doc_id).content
    assert citation.status == "verified"
    assert citation.quote == content[citation.char_start : citation.char_end]
    assert [(event.type, event.tool) for event in prediction.events] == [
        ("search", "search_legal_docs"),
        ("think", "search_legal_docs"),
        ("search", "search_legal_docs"),
        ("think", "lookup_legal_doc"),
        ("read", "lookup_legal_doc"),
        ("think", "finish"),
        ("cite", "citations"),
        ("answer", "react"),
    ]
    first, thought, search = prediction.events[:3]
    assert first.input == {"query": QUESTION, "k": 5}
    assert thought.input == {"thought": "J'appelle search_legal_docs.", "arguments": {"query": SEARCHED, "k": 3}}
    assert search.input == {"query": SEARCHED, "k": 3}
    assert len(search.output_ids) == 3
    assert {*first.output_ids, *search.output_ids} <= {passage.chunk_id for passage in prediction.evidence}
    assert citation.doc_id in {document.doc_id for document in prediction.documents}
    assert sum(bool(passage.matches) for passage in prediction.evidence) >= 3
    trajectory = prediction.trajectory
    assert list(trajectory)[:4] == ["thought_0", "tool_name_0", "tool_args_0", "observation_0"]
    assert (trajectory["thought_0"], trajectory["tool_args_0"]) == ("", {"query": QUESTION})
    assert (trajectory["thought_1"], trajectory["tool_name_1"]) == (thought.input["thought"], "search_legal_docs")
    assert first.output_ids[0].rpartition("-")[0] in trajectory["observation_0"]


@pytest.mark.parametrize("script", [diligent, lambda prompt, attempt: Reply(status=500, raw_body="{}")])
def test_words_are_matched_only_where_they_are_asked_for(ask, script):
    prediction, _ = ask(script, match_words=False)
    assert prediction.evidence
    assert all(passage.matches == () and passage.before + passage.after for passage in prediction.evidence)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (lambda prompt, attempt: Reply(""), "réponse vide"),
        (lambda prompt, attempt: Reply(status=500, raw_body="{}"), "erreur du serveur"),
        (lambda prompt, attempt: Reply(status=401, raw_body='{"error": {"message": "bad key"}}'), "clé refusée"),
        (lambda prompt, attempt: Reply(hangs=True), "délai dépassé"),
    ],
    ids=["nothing", "500", "401", "silence"],
)
def test_a_failing_model_leaves_an_evidence_answer_and_a_french_notice(ask, script, reason):
    prediction, _ = ask(script, timeout=2)
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert prediction.notice.startswith("Le modèle de langage n'a pas pu répondre (")
    assert reason in prediction.notice
    assert {citation.status for citation in prediction.citations} == {"verified"}
    assert "[Source: " in prediction.answer


def test_a_model_that_fails_after_searching_keeps_what_was_found(ask):
    def script(prompt, attempt):
        return Reply(status=500, raw_body="{}") if STEPPED in prompt else step("search_legal_docs", query="bail")

    prediction, _ = ask(script)
    assert prediction.mode == "fallback"
    assert [event.input["query"] for event in calls_of(prediction, "search")] == [QUESTION, "bail", QUESTION]

    failed = prediction.events[3]
    assert (failed.type, failed.tool, failed.output_ids) == ("think", "", [])
    assert failed.input == {"error": "Le modèle de langage n'a pas pu répondre (erreur du serveur)"}
    assert (failed.usage.calls, prediction.usage.calls) == (1, 2)
    assert failed.seconds > 0
    assert [event.type for event in prediction.events[4:]] == ["search", "cite", "answer"]

    trajectory = prediction.trajectory
    assert [trajectory[f"tool_args_{n}"]["query"] for n in range(3)] == [QUESTION, "bail", QUESTION]
    assert trajectory["observation_0"].startswith("<extrait>\nDécision ")


def test_an_invented_citation_never_reaches_the_answer(ask):
    def script(prompt, attempt):
        reply = diligent(prompt, attempt)
        invented = "]. La loi « l'exige absolument » [Source: JURITEXT000000000001, chars 5-90]."
        return reply if wants_step(prompt) else answer(quotation(prompt).replace("].", invented))

    prediction, _ = ask(script)
    assert prediction.mode == "agent"
    assert "JURITEXT000000000001" not in prediction.answer
    assert prediction.notice == "Une citation a été retirée"


def test_an_answer_without_any_valid_citation_is_replaced_by_passages(ask):
    def script(prompt, attempt):
        return answer("Le délai est de deux mois [Source: INVENTE, chars 1-9].")

    prediction, _ = ask(script)
    assert prediction.mode == "fallback"
    assert prediction.notice.startswith("La réponse du modèle ne citait aucun passage vérifiable")
    assert "INVENTE" not in prediction.answer


def test_what_a_model_says_beside_its_abstention_is_not_shown(ask):
    def script(prompt, attempt):
        return answer("Aucun passage pertinent, mais le voisin doit payer [Source: FAUX, chars 0-9].")

    prediction, _ = ask(script)
    assert (prediction.status, prediction.answer) == ("abstained", NO_PASSAGE)
    assert prediction.notice == "Une citation a été retirée"


def test_a_question_too_long_for_the_fallback_is_refused_before_the_model_is_asked(tiny_library, tiny_encoder):
    with ScriptedServer(diligent) as server:
        agent = build_agent(tiny_library, api_base=server.api_base, encoder=tiny_encoder)
        with pytest.raises(ValueError, match="the question is too long"):
            agent("compte " * 500)
    assert server.prompts == []


def test_a_wrong_id_is_answered_in_french_and_the_run_goes_on(ask):
    def script(prompt, attempt):
        if STEPPED not in prompt:
            return step("lookup_legal_doc", id="FICTIF9999-0")
        return sound(prompt)

    prediction, server = ask(script)
    assert "Aucune décision pour « FICTIF9999-0 »" in server.prompts[1]
    assert (prediction.mode, prediction.status) == ("agent", "answered")
    assert [event.output_ids for event in calls_of(prediction, "read")] == [[]]


def test_the_instructions_in_an_index_replace_the_default_ones(ask, tiny_library, monkeypatch):
    monkeypatch.setattr("legal_rag.agent.instructions.INSTRUCTIONS", "manifest.json")  # any text that lies in the index
    assert instructions_of(tiny_library).startswith("{")
    _, server = ask(diligent)
    assert '"format_version": ' in server.prompts[0]


def test_without_an_endpoint_the_evidence_agent_answers(tiny_library, tiny_encoder, no_endpoint, monkeypatch):
    assert isinstance(build_agent(tiny_library, encoder=tiny_encoder), EvidenceAgent)
    with pytest.raises(ValueError, match="no endpoint to ask 'any' at .expected one of .*HF_TOKEN"):
        build_agent(tiny_library, model="any", encoder=tiny_encoder)
    monkeypatch.setenv("GENERATOR_API_BASE", "http://127.0.0.1:9/v1")
    assert isinstance(build_agent(tiny_library, encoder=tiny_encoder), LegalReActAgent)


def test_a_bare_hugging_face_token_turns_no_local_run_into_a_remote_one(tiny_library, tiny_encoder, monkeypatch):
    for name in ("GENERATOR_API_BASE", "GENERATOR_API_KEY", "GENERATOR_MODEL_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    assert isinstance(build_agent(tiny_library, encoder=tiny_encoder), EvidenceAgent)
    assert isinstance(build_agent(tiny_library, model="Qwen/Qwen3-4B", encoder=tiny_encoder), LegalReActAgent)
    monkeypatch.setenv("GENERATOR_MODEL_ID", "Qwen/Qwen3-4B")
    assert isinstance(build_agent(tiny_library, encoder=tiny_encoder), LegalReActAgent)


def test_an_answer_in_another_language_is_asked_for_again_in_french(ask):
    english = "The text says so, and the candidate must comply with it within the time allowed by law."

    def script(prompt, attempt):
        if wants_step(prompt) or "Récrivez-la entièrement en français" in prompt:
            return diligent(prompt, attempt)
        return answer(english)

    prediction, _ = ask(script)
    assert (prediction.status, [citation.status for citation in prediction.citations]) == ("answered", ["verified"])
    assert prediction.events[-1].usage.calls == 2
    prediction, _ = ask(lambda prompt, attempt: sound(prompt) if wants_step(prompt) else Reply(english))
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert prediction.notice.startswith("La réponse du modèle n'était pas en français. Voici, à la place, ")
    (failed,) = [event for event in prediction.events if "error" in event.input]
    assert (failed.input["error"], failed.usage.calls) == ("La réponse du modèle n'était pas en français", 2)


def test_an_unverified_citation_stays_and_is_counted_in_the_notice(ask):
    def script(prompt, attempt):
        if wants_step(prompt):
            return sound(prompt)
        _, name, _ = first_passage(prompt)
        return answer(f"{quotation(prompt)} La loi « l'exige absolument toujours » [{name}].")

    prediction, _ = ask(script)
    assert (prediction.status, prediction.mode) == ("answered", "agent")
    assert prediction.notice == "Une citation n'a pas pu être vérifiée"
    assert prediction.citation_counts == {"verified": 1, "unverified": 1}
    assert "[Source non vérifiée: " in prediction.answer
    assert ["exige absolument" in claim for claim in prediction.ungrounded_claims] == [True]
    assert 0 < prediction.grounding_rate < 1
    (cited,) = calls_of(prediction, "cite")
    assert (cited.tool, cited.input) == ("citations", {"verified": 1, "unverified": 1, "removed": 0})
    assert cited.output_ids == list(dict.fromkeys(citation.doc_id for citation in prediction.citations))


@pytest.mark.parametrize(
    ("first", "asked_again"),
    [
        ("Le délai est de deux mois.", "Votre réponse n'est pas prouvée par les passages qu'elle indique."),
        (QUESTION, "Votre réponse répète la question."),
        ("", "Votre réponse était vide."),
    ],
    ids=["nothing cited", "the question", "nothing"],
)
def test_an_answer_that_is_none_is_asked_for_again_once_in_its_own_words(ask, first, asked_again):
    def improving(prompt, attempt):
        return sound(prompt) if wants_step(prompt) or asked_again in prompt else answer(first)

    prediction, server = ask(improving)
    assert (prediction.mode, prediction.status) == ("agent", "answered")
    assert [asked_again in prompt for prompt in server.prompts] == [False] * 3 + [True]
    assert prediction.events[-1].usage.calls == 2
    prediction, server = ask(lambda prompt, attempt: sound(prompt) if wants_step(prompt) else answer(first))
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert len(server.prompts) == 4
    assert {citation.status for citation in prediction.citations} == {"verified"}


# --- paraphrases ------------------------------------------------------------------------------------------------------

PARAPHRASED = {  # of decisions of which one is shown
    "FICTIF0111": "Un expert-comptable aurait dû viser le compte avant la saisine, fût-elle urgente",
    "FICTIF0109": "Faute de facture, l'achat des affiches n'est pas prouvé par un devis produit après coup",
}


def paraphrasing(marked, again=None):
    """Answer in the model's own words, pointed at by `marked`, of document and piece; otherwise if asked `again`."""

    def script(prompt, attempt):
        if again and "n'emploie pas les mots" in prompt:
            return again(prompt)
        shown = re.search(rf"Décision ({'|'.join(PARAPHRASED)}) [^\n]*\n\[(P\d+)\]", prompt)
        return answer(f"{PARAPHRASED[shown[1]]} {marked.format(doc=shown[1], name=shown[2])}.")

    return script


@pytest.mark.parametrize("marked", ["[{name}]", "[Source: {doc}, chars 0-1800]", "[Source: {doc}]"])
@pytest.mark.parametrize(
    "again",
    [None, lambda prompt: Reply(""), lambda prompt: Reply(status=500, raw_body="{}"), lambda prompt: answer("Oui.")],
    ids=["the same", "nothing", "an error", "worse"],
)
def test_an_answer_in_the_model_s_own_words_is_shown_as_such_after_one_request_for_quotations(ask, marked, again):
    prediction, server = ask(paraphrasing(marked, again))
    assert (prediction.mode, prediction.status) == ("agent", "answered")
    assert prediction.answer.startswith(tuple(PARAPHRASED.values()))
    assert "[Source non vérifiée: " in prediction.answer
    assert prediction.notice.startswith("Le modèle a répondu avec ses propres mots : comparez-les ")
    assert [(citation.status, citation.reworded) for citation in prediction.citations] == [("unverified", True)]
    assert ["n'emploie pas les mots" in prompt for prompt in dict.fromkeys(server.prompts)] == [
        False,
        True,
    ]  # once, though a server's error is asked again


def test_a_model_that_quotes_when_asked_to_is_taken_at_its_quotation(ask):
    prediction, _ = ask(paraphrasing("[{name}]", lambda prompt: answer(quotation(prompt))))
    assert (prediction.status, prediction.notice) == ("answered", None)
    assert [citation.status for citation in prediction.citations] == ["verified"]


@pytest.mark.parametrize(
    "wrong",
    [
        "Le candidat a remis son compte de campagne à la préfecture le 3 mars 1961",
        "Le compte de campagne est déposé dans les 47 jours",
        "La tonte des moutons commence au printemps",
    ],
)
def test_an_answer_of_which_every_sentence_is_contradicted_or_beside_the_point_is_replaced(ask, wrong):
    prediction, _ = ask(lambda prompt, attempt: answer(f"{wrong} [{first_passage(prompt)[1]}]."))
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert wrong not in prediction.answer


def test_tags_after_an_answer_do_not_make_it_another_language(ask, tiny_library, tmp_path):
    library = Library(shutil.copytree(tiny_library.path, tmp_path / "index" / tiny_library.path.name))
    tags = '<vm:entity name="court" type="court">the supreme court of the country ruled on it</vm:entity>' * 3

    def script(prompt, attempt):
        return answer(f"{quotation(prompt)}\n{tags}")

    for is_asked in (True, False):
        prediction, _ = ask(script, library, single_pass_extraction_enabled=is_asked)
        assert (prediction.mode, prediction.status) == ("agent", "answered")


def test_a_cut_off_answer_is_said_to_be(ask):
    def script(prompt, attempt):
        return sound(prompt) if wants_step(prompt) else sound(prompt)._replace(finish_reason="length")

    assert ask(script)[0].notice == "La réponse du modèle a été coupée avant la fin"


# --- bugs of our own --------------------------------------------------------------------------------------------------


def test_a_bug_of_ours_is_not_blamed_on_the_model(ask, monkeypatch, caplog):
    def broken(*arguments):
        raise TypeError("a bug")

    monkeypatch.setattr("legal_rag.agent.react.read_step", broken)
    prediction, _ = ask(diligent)
    assert (prediction.mode, prediction.status) == ("fallback", "internal_error")
    assert prediction.notice.startswith("Une erreur interne de legal_rag (TypeError) a interrompu l'agent")
    assert prediction.citations
    assert "Erreur interne" in render_answer(prediction)
    assert [(one.levelname, one.exc_info[0]) for one in caplog.records if one.name == "legal_rag.agent.agent"] == [
        ("ERROR", TypeError)
    ]


def test_a_tool_that_breaks_is_logged_with_its_traceback_and_the_run_goes_on(ask, monkeypatch, caplog):
    def broken(*arguments):
        raise TypeError("a bug")

    monkeypatch.setattr("legal_rag.agent.tools.block", broken)
    _, server = ask(diligent)
    assert any("L'outil search_legal_docs n'a pas pu répondre (TypeError)" in prompt for prompt in server.prompts)
    assert [one.exc_info[0] for one in caplog.records if one.levelname == "ERROR"][:1] == [TypeError]


def test_a_client_s_own_error_is_the_model_s_failure(tiny_library, tiny_encoder):
    class Broken(dspy.BaseLM):
        def forward(self, prompt=None, messages=None, **settings):
            raise TypeError("a client's bug")

    prediction = build_agent(tiny_library, lm=Broken("broken"), encoder=tiny_encoder)(QUESTION)
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert prediction.notice.startswith("Le modèle de langage n'a pas pu répondre (erreur TypeError)")


def test_searches_give_as_many_passages_as_the_agent_was_built_for(ask):
    def n_shown(search_k):
        prediction, server = ask(sound, search_k=search_k)
        assert calls_of(prediction, "search")[0].input == {"query": QUESTION, "k": search_k}
        return len(re.findall(r"^\[P\d+\] ", server.prompts[0], re.MULTILINE))

    assert 1 <= n_shown(2) <= 2 < n_shown(9) <= 9
