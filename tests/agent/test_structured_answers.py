"""Answers that begin with rules: verbatim without a model, and in two calls of one that reads outlines first."""

import json
import re

import pytest
from support.scripted_server import Reply, ScriptedServer, answer, fields, step

from legal_rag.agent import EvidenceAgent, build_agent, build_language_model
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import IndexConfig, build_index, extract_library, open_index

RULES = """# Règlement du personnel

## Article 1 – Congés

Chaque salarié a droit à 26 jours de congé par an. La période d'essai est comptée pour le calcul des congés.

## Article 2 – Prêts

L'entreprise prête au personnel jusqu'à 7 000 euros, sans intérêts.

## Article 3 – Vêtements

Le port du casque est obligatoire sur le chantier.
"""
MENU = "# Cantine\n\nLa cantine sert des repas chauds à midi, et des fruits de saison toute l'année.\n"
LOAN = "L'entreprise prête au personnel jusqu'à 7 000 euros, sans intérêts."


@pytest.fixture(scope="module")
def library(bundled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    (folder / "reglement.md").write_text(RULES, "utf-8")
    (folder / "cantine.md").write_text(MENU, "utf-8")
    config = IndexConfig(source=str(folder), index_folder=str(tmp_path_factory.mktemp("index")))
    build_index(config, bundled)
    extract_library(open_index(config), ExtractionSettings(schema_name="regulation"))
    return open_index(config)


def ask(library, encoder, question, script, **settings):
    with ScriptedServer(script) as server:
        lm = build_language_model("scripted", api_base=server.api_base, num_retries=0, cache=False)
        return build_agent(library, lm=lm, encoder=encoder, **settings)(question), server


def name_section(prompt, title):
    """Name a section of the outlines shown by its title."""
    plans = prompt.rpartition("[[ ## plans ## ]]")[2]
    document = re.search(r"Document (\d+) : reglement", plans)[1]
    node = re.search(rf"(\d{{4}}) Article \d – {title}", plans)[1]
    return fields(sections=json.dumps([{"document": int(document), "node_id": node, "reason": "le titre le dit"}]))


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        ("Combien peut-on emprunter ?", LOAN),
        ("Combien de jours de congé ?", "Chaque salarié a droit à 26 jours de congé par an."),
        ("L'essai compte-t-il pour les congés ?", "La période d'essai est comptée pour le calcul des congés."),
    ],
)
def test_without_a_model_the_rule_that_answers_is_quoted_whole_with_its_sections(library, bundled, question, rule):
    prediction = build_agent(library, encoder=bundled, structured=True)(question)
    assert (prediction.mode, prediction.status, prediction.grade) == ("evidence", "answered", "answers")
    first = prediction.citations[0]
    assert (first.quote, first.status) == (rule, "verified")
    assert library.document(first.doc_id).content[first.char_start : first.char_end] == rule
    assert f"« {rule} »" in prediction.answer
    assert any(rule in passage.text for passage in prediction.evidence)


def test_a_rule_does_not_answer_for_a_decision_that_is_not_there(library, bundled):
    question = "Que dit l'arrêt n° 19-99.999 sur les jours de congé ?"
    prediction = build_agent(library, encoder=bundled, structured=True)(question)
    assert prediction.grade == "unsure"
    assert prediction.answer.startswith("Ce corpus n'a pas la décision demandée : 19-99.999.")


def test_a_rule_that_shares_a_word_with_a_question_off_the_topic_is_not_its_answer(library, bundled, monkeypatch):
    monkeypatch.setattr("legal_rag.agent.evidence.is_relevant", lambda *_: False)
    prediction = build_agent(library, encoder=bundled, structured=True)("Combien peut-on emprunter ?")
    assert (prediction.citations[0].quote, prediction.grade) == (LOAN, "unsure")


def test_where_no_rule_answers_evidence_mode_says_what_it_says_otherwise(library, bundled):
    question = "Comment réussir une mayonnaise ?"
    plain, structured = (build_agent(library, encoder=bundled, structured=kind)(question) for kind in (False, True))
    assert (structured.status, structured.answer) == (plain.status, plain.answer)


def test_a_model_reads_the_outlines_and_answers_from_the_section_it_named_in_two_calls(library, bundled):
    def script(prompt, attempt):
        if "[[ ## plans ## ]]" in prompt:
            return name_section(prompt, "Vêtements")
        piece, text = re.search(r"\[(P\d+)\] (Le port du casque[^\n]*)", prompt).groups()
        return answer(f"« {text} » [{piece}]")

    prediction, server = ask(library, bundled, "Que faut-il porter sur la tête ?", script, structured=True)
    assert len(server.prompts) == 2
    assert (prediction.mode, prediction.status, prediction.usage.calls) == ("agent", "answered", 2)
    assert prediction.citations[0].quote == "Le port du casque est obligatoire sur le chantier."
    assert "Vêtements (le titre le dit" in server.prompts[-1]
    assert prediction.citations[0].status == "verified"


@pytest.mark.parametrize("reply", [Reply("Je ne sais pas."), Reply("[]"), fields(sections='[{"document": 99}]')])
def test_a_model_that_names_no_section_is_shown_the_rules(library, bundled, reply):
    def script(prompt, attempt):
        if "[[ ## plans ## ]]" in prompt:
            return reply
        piece = re.search(r"\[(P\d+)\] L'entreprise prête", prompt)[1]
        return answer(f"« {LOAN} » [{piece}]")

    prediction, server = ask(library, bundled, "Combien peut-on emprunter ?", script, structured=True)
    assert (prediction.status, prediction.citations[0].quote) == ("answered", LOAN)
    assert "amount : 7 000 euros" in server.prompts[-1]


def test_the_outlines_hold_sentences_of_sections_that_nobody_summarised(library, bundled):
    _, server = ask(library, bundled, "Que sert la cantine ?", lambda *_: Reply("[]"), structured=True)
    plans = server.prompts[0].rpartition("[[ ## plans ## ]]")[2]
    assert re.search(r"\d{4} Article 3 – Vêtements : Le port du casque est obligatoire", plans)


def test_the_agent_finds_entities_in_all_documents_by_a_tool(library, bundled):
    def script(prompt, attempt):
        if '"tool": "find_entities"' not in prompt.partition("\nQuestion :")[2]:
            return step("find_entities", query="prêt au personnel, montant")
        piece = re.search(r"\[(P\d+)\] L'entreprise prête", prompt)[1]
        return answer(f"« {LOAN} » [{piece}]")

    prediction, server = ask(library, bundled, "Quelle aide en cas de difficulté ?", script)
    assert (prediction.status, prediction.citations[0].quote) == ("answered", LOAN)
    assert [event.output_ids for event in prediction.events if event.tool == "find_entities" and event.type == "search"]
    assert "BenefitRule (rule_type : loan" in server.prompts[-1]


@pytest.mark.parametrize("query", ["", "zyxwvut", None, 3, "prêt " * 3000])
def test_words_that_find_nothing_or_cannot_be_read_are_answered_in_a_sentence(library, bundled, query):
    from legal_rag.agent.tools import build_tools
    from legal_rag.retriever import build_retriever

    *_, find_entities = build_tools(library, build_retriever(library, bundled))
    assert re.match(r"Aucun élément|Recherche impossible|Appel refusé", find_entities(query))


def test_a_library_without_entities_has_no_such_tool(tiny_library, tiny_encoder):
    agent = build_agent(tiny_library, encoder=tiny_encoder, structured=True)
    assert isinstance(agent, EvidenceAgent)
    assert agent("Dans quel délai le candidat doit-il déposer son compte de campagne ?").answer
