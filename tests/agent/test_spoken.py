"""Who speaks in what an answer cites; quashed reasoning is never shown without the court's answer."""

import re

import pytest

from legal_rag.agent.event_log import EventLog
from legal_rag.agent.passages import located, warning_of_censured
from legal_rag.agent.tools import build_tools
from legal_rag.citations import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.report import render_answer
from legal_rag.retriever import build_retriever

QUASHED = "Pour débouter le salarié, l'arrêt retient que l'employeur n'avait pas à chercher un autre poste."
ANSWER = "En statuant ainsi, alors que l'obligation de reclassement s'imposait, la cour d'appel a violé ce texte."
PARTY = "Le salarié soutient que l'employeur devait lui proposer un autre emploi adapté à son inaptitude."
RULE = "L'emploi proposé au salarié inapte est aussi comparable que possible à celui qu'il occupait."
COURT = "COUR DE CASSATION"
CONTENT = f"""{COURT}

Faits et procédure

1. Selon l'arrêt attaqué, M. Lebrun, mécanicien, a été licencié le 4 mai 2016.

Réponse de la Cour

2. Aux termes de l'article L. 1226-2 du code du travail, l'employeur propose un autre emploi au salarié inapte.

3. {QUASHED}

4. {ANSWER}

PAR CES MOTIFS, la Cour :

CASSE ET ANNULE l'arrêt rendu le 4 avril 2017 par la cour d'appel de Lyon."""


@pytest.fixture(scope="module")
def library(tiny_encoder, tmp_path_factory):
    config = IndexConfig(
        source=[
            {"id": "A", "content": CONTENT, "title": "Cass. soc."},
            {"id": "B", "content": "Un bail simple."},
            {"id": "C", "content": f"{COURT}\n\nÉnoncé du moyen\n\n1. {PARTY}\n\nRéponse de la Cour\n\n2. {RULE}"},
        ],
        index_folder=str(tmp_path_factory.mktemp("spoken")),
    )
    build_index(config, tiny_encoder)
    return open_index(config)


def cite(quote, doc_id="A", content=CONTENT, status="verified"):
    start = content.index(quote)
    return Citation(doc_id, start, start + len(quote), quote, status)


def test_a_model_reads_who_speaks_where_it_is_not_the_court(library, tiny_encoder):
    read = next(
        tool
        for tool in build_tools(library, build_retriever(library, tiny_encoder))
        if tool.__name__ == "lookup_legal_doc"
    )
    lines = read("A").splitlines()
    (quashed,) = (line for line in lines if QUASHED in line)
    assert re.match(r"\[P\d+\] \([^)]*censur", quashed)
    (answer,) = (line for line in lines if ANSWER in line)
    assert re.match(r"\[P\d+\] (?!\()", answer)
    assert " ".join(CONTENT.split()) in " ".join(re.sub(r"\[P\d+\](?: \([^)]*\))?", "", read("A")).split())


def test_a_citation_says_who_speaks_and_where(library):
    rule = "l'employeur propose un autre emploi au salarié inapte"
    text, court, ruling, quashed, bail = located(
        [cite(rule), cite(ANSWER), cite("CASSE ET ANNULE"), cite(QUASHED), cite("bail", "B", "Un bail simple.")],
        library,
    )
    assert (text.speaker, text.section[0], text.section[-1]) == ("text", "Motifs", "§ 2")
    assert (court.speaker, court.censured, court.said_by) == ("court", False, "la juridiction")
    assert (ruling.section[0], ruling.speaker) == ("Dispositif", "court")
    assert (quashed.speaker, quashed.censured) == ("lower_court", True)
    assert quashed.said_by == "décision attaquée, censurée sur ce point"
    assert (bail.speaker, bail.section, bail.said_by) == (None, (), "")


def test_quashed_reasoning_is_never_cited_without_saying_so_and_the_answer_beside_it(library):
    answer = EnrichedResponse("Un texte.", [cite(QUASHED), cite(ANSWER)], [], [], 1.0, abstained=False)
    settings = {"mode": "agent", "status": "answered", "notice": "Un mot."}
    prediction = EventLog().prediction("Quel emploi ?", answer, library, **settings)
    assert prediction.notice.startswith("Un mot. Attention : [Source: A, chars ")
    assert "que la juridiction censure sur ce point" in prediction.notice
    assert "alors que l'obligation de reclassement s'imposait" in prediction.notice
    page = render_answer(prediction)
    assert page.count("décision attaquée, censurée sur ce point") >= 2
    sound = EventLog().prediction("Quel emploi ?", answer._replace(citations=[cite(ANSWER)]), library, **settings)
    assert sound.notice == "Un mot."
    assert "censurée sur ce point" not in render_answer(sound)
    assert warning_of_censured([cite(QUASHED, status="unverified")._replace(censured=True)], library) is None


def test_a_model_is_told_who_speaks_in_what_it_finds_and_shown_no_quashed_reasoning(library, tiny_encoder):
    search = build_tools(library, build_retriever(library, tiny_encoder))[0]
    lines = search("Quel emploi pour un salarié inapte ?", k=12).splitlines()
    assert not any(QUASHED in line for line in lines)
    (party,) = [line for line in lines if PARTY in line]
    assert re.fullmatch(r"\[P\d+\] \(argument d'une partie\) 1\. " + re.escape(PARTY), party)
    (court,) = [line for line in lines if RULE in line]
    assert re.fullmatch(r"\[P\d+\] 2\. " + re.escape(RULE), court)
