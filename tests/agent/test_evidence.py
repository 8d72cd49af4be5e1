"""Evidence mode: what it writes is the corpus's own words, or one fixed sentence."""

import json
import re

import pytest
from support import ROOT

from legal_rag.agent import EvidenceAgent, Usage
from legal_rag.agent.doubt import Background, Signs
from legal_rag.agent.event_log import AnswerStream, EventLog
from legal_rag.agent.evidence import ABSENT, COMPARES, INSTEAD, INTRODUCTIONS, NO_PASSAGE, SEE_ALSO, WAY_ON
from legal_rag.agent.passages import BEST_MATCHED, JOINED_CHARS, WeighedPassage, is_cut
from legal_rag.citations import format_marker
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.law.citation import legal_citation
from legal_rag.law.parts import read_paragraphs
from legal_rag.library import Library
from legal_rag.retriever import Filters, build_retriever

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
OFF_TOPIC = ROOT / "benchmarks" / "data" / "off_topic_questions.jsonl"


@pytest.fixture(scope="module")
def agent(tiny_library, tiny_encoder):
    return EvidenceAgent(build_retriever(tiny_library, tiny_encoder))


@pytest.fixture(scope="module")
def bundled_agent(sample_library, bundled):
    return EvidenceAgent(build_retriever(sample_library, bundled))


def rebuilt(prediction, library):
    """Write down again, from the corpus and the citations alone, what the answer must be."""
    parts = [INTRODUCTIONS[prediction.grade]]
    for number, one in enumerate(prediction.citations, start=1):
        parts += [SEE_ALSO] if number == 2 else []
        document = library.document(one.doc_id)
        quote = document.content[one.char_start : one.char_end]
        marker = format_marker(one.doc_id, one.char_start, one.char_end)
        inside = [p for p in read_paragraphs(document.content) if p.start < one.char_end and one.char_start < p.end]
        around = max(inside, key=lambda p: p.end - p.start)._replace(start=inside[0].start, end=inside[-1].end)
        ended = f" ({document.solution[0].lower()}{document.solution[1:]})"
        named = f"{number}. {legal_citation(document).with_name}{ended}"
        said = ", ".join(filter(None, [named, around.in_french]))
        passage = WeighedPassage(one.char_start, one.char_end, around, 0.0)
        begun, ended = is_cut(document.content, passage)
        before, after = "[…] " * begun, " […]" * ended
        parts.append(f"{said}\n{before}« {quote} » {marker}{after}")
    return "\n\n".join(parts)


def test_an_answer_is_citations_and_verbatim_passages_and_nothing_else(agent, tiny_library):
    prediction = agent(QUESTION)
    assert (prediction.mode, prediction.status, prediction.notice) == ("evidence", "answered", None)
    assert prediction.question == QUESTION
    assert [citation.status for citation in prediction.citations] == ["verified"] * len(prediction.citations)
    assert prediction.answer == rebuilt(prediction, tiny_library)


def test_every_quotation_is_short_whole_and_part_of_the_passage_found(agent, sample_questions):
    for question in sample_questions[:5]:
        prediction = agent(question["question"])
        assert sum(len(one.quote) for one in prediction.citations) <= 1500
        for one in prediction.citations:
            assert 0 < len(one.quote) <= JOINED_CHARS
            assert one.quote == one.quote.strip()
            around = [passage for passage in prediction.evidence if passage.doc_id == one.doc_id]
            assert any(p.char_start <= one.char_start < one.char_end <= p.char_end for p in around)


def test_a_run_writes_down_its_search_and_its_answer(agent):
    prediction = agent(QUESTION)
    search, cite, answer = prediction.events
    assert (search.type, search.tool, search.input) == ("search", "search_legal_docs", {"query": QUESTION, "k": 5})
    assert set(search.output_ids) <= {passage.chunk_id for passage in prediction.evidence}
    verified = {"verified": len(prediction.citations), "removed": 0}
    assert (cite.type, cite.tool, cite.input) == ("cite", "citations", verified)
    assert (answer.type, answer.tool, answer.input) == ("answer", "evidence", {"question": QUESTION})
    cited = list(dict.fromkeys(citation.doc_id for citation in prediction.citations))
    assert cite.output_ids == answer.output_ids == cited
    assert {document.doc_id for document in prediction.documents} >= set(answer.output_ids)
    assert search.seconds > 0


def test_an_answer_in_place_of_a_failed_model_keeps_the_run_so_far(agent, tiny_library, tiny_encoder):
    log = EventLog()
    with log.record("search", "search_legal_docs", query="bail"):
        pass
    stream = AnswerStream(
        agent.steps(agent._retriever.query(QUESTION), log, mode="fallback", notice="Le modèle dort."), log
    )
    prediction = stream.prediction
    assert (prediction.mode, prediction.status) == ("fallback", "model_failed")
    assert prediction.notice == f"Le modèle dort. {INSTEAD}"
    assert [event.input.get("query") for event in prediction.events[:2]] == ["bail", QUESTION]


def test_the_search_of_evidence_mode_is_a_trajectory_of_one_step(agent):
    prediction = agent(QUESTION)
    trajectory = prediction.trajectory
    assert list(trajectory) == ["thought_0", "tool_name_0", "tool_args_0", "observation_0"]
    assert (trajectory["tool_name_0"], trajectory["tool_args_0"]["query"]) == ("search_legal_docs", QUESTION)
    assert all(chunk_id in trajectory["observation_0"] for chunk_id in prediction.events[0].output_ids)


def test_passages_alone_are_wholly_grounded_and_cost_no_call(agent):
    prediction = agent(QUESTION)
    assert (prediction.grounding_rate, prediction.ungrounded_claims, prediction.usage) == (1.0, [], Usage())
    assert prediction.seconds >= sum(event.seconds for event in prediction.events) > 0


def test_the_evidence_is_shown_with_what_stands_around_it_and_the_words_that_match(agent, tiny_library):
    prediction = agent(QUESTION)
    for rank, passage in enumerate(prediction.evidence):
        content = tiny_library.document(passage.doc_id).content
        around = passage.before + passage.text + passage.after
        assert around == content[passage.char_start - len(passage.before) :][: len(around)]
        is_read = rank < BEST_MATCHED or any(map(passage.is_cited_by, prediction.citations))
        assert bool(passage.matches) == (is_read and bool(passage.chunk_id))  # without: quoted across two chunks


def test_an_answer_encodes_nothing_twice(tiny_library, tiny_encoder, agent, monkeypatch):
    encode, read = tiny_encoder.encode_with_offsets, []

    def encode_and_note(text, *, as_query=False):
        read.append(text)
        return encode(text, as_query=as_query)

    monkeypatch.setattr(tiny_encoder, "encode_with_offsets", encode_and_note)
    monkeypatch.setattr(tiny_encoder, "query_tokens", lambda texts: pytest.fail("the question is encoded twice"))
    prediction = agent(QUESTION)
    assert sorted(read) == sorted([QUESTION, *(one.text for one in prediction.evidence if one.matches)])


def test_passages_can_be_streamed(agent):
    stream = agent.stream(QUESTION)
    assert [event.type for event in stream] == ["search", "cite", "answer"]
    assert stream.prediction.answer == agent(QUESTION).answer


@pytest.mark.parametrize(("question", "problem"), [(" ", "the question is empty"), ("délai " * 100, "too long")])
def test_a_question_that_cannot_be_read_is_refused(agent, question, problem):
    with pytest.raises(ValueError, match=problem):
        agent(question)


def test_what_is_no_nearer_than_questions_of_other_fields_is_not_quoted(tiny_library, tiny_encoder):
    agent = EvidenceAgent(build_retriever(tiny_library, tiny_encoder))
    agent._background = Background(Signs(1.0, 1.0, 0.0), Signs(0.1, 0.1, 1.0))
    prediction = agent(QUESTION)
    assert (prediction.status, prediction.answer) == ("abstained", f"{NO_PASSAGE}\n\n{WAY_ON}")
    assert (prediction.citations, prediction.documents, prediction.evidence) == ([], [], [])
    assert (prediction.grounding_rate, prediction.notice) == (None, None)
    assert [event.type for event in prediction.events] == ["search", "cite", "answer"]
    assert prediction.events[1].input == {"removed": 0}


HOSTILE = {
    "A": "Le bail dit « [Source: B, chars 0-5] » et « ceci. Cela » reste. Le preneur, » dit-il, paie « le loyer.",
    "B": "Le bail. " + "mot" * 400,
    "C": "« " * 200 + "bail",
    "D": "bail\n\n\u00a0[Source : INSEE] ; \u202f« oui »",
}


@pytest.mark.parametrize("doc_id", HOSTILE)
def test_a_text_full_of_marks_is_quoted_as_it_is(tiny_encoder, tmp_path, doc_id):
    rows = [{"id": doc_id, "content": HOSTILE[doc_id], "title": "[Source: B, chars 1-2]"}]
    config = IndexConfig(source=rows, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    library = open_index(config)
    prediction = EvidenceAgent(build_retriever(library, tiny_encoder))("Que dit le bail ?")
    citation, *_ = prediction.citations
    content = library.document(doc_id).content
    assert citation[:5] == (doc_id, *citation[1:3], content[citation.char_start : citation.char_end], "verified")
    assert f"« {citation.quote} » {format_marker(*citation[:3])}" in prediction.answer


@pytest.mark.slow
def test_the_bundled_encoder_answers_what_the_sample_answers(bundled_agent, sample_library, sample_questions):
    predictions = [bundled_agent(question["question"]) for question in sample_questions[:6]]
    answered = [prediction for prediction in predictions if prediction.status == "answered"]
    assert len(answered) >= 4
    for prediction in answered:
        assert prediction.answer == rebuilt(prediction, sample_library)
    found = [
        question["doc_id"] in {citation.doc_id for citation in prediction.citations}
        for question, prediction in zip(sample_questions, predictions, strict=False)
    ]
    assert sum(found) >= 4


@pytest.mark.slow
def test_the_bundled_encoder_abstains_from_what_has_nothing_to_do_with_the_law(bundled_agent):
    questions = [json.loads(line)["question"] for line in OFF_TOPIC.read_text("utf-8").splitlines()][1:9]
    statuses = [bundled_agent(question).status for question in questions]
    assert statuses.count("abstained") >= 7


def test_the_fixed_sentences_say_nothing_of_the_law():
    assert not re.search(r"\d|article|loi|droit", " ".join([*INTRODUCTIONS.values(), NO_PASSAGE]))


@pytest.mark.parametrize(
    ("question", "compares"),
    [
        ("Comment la jurisprudence sur le compte de campagne a-t-elle évolué ?", True),
        ("Quelle différence entre l'inéligibilité et l'incompatibilité ?", True),
        ("Comparez ces deux décisions.", True),
        ("Un compte déposé en retard est-il rejeté ?", False),
        ("Le candidat qui refuse de comparaître perd-il son compte par rapport à un autre ?", False),
        ("L'évolution de carrière d'un candidat compte-t-elle ?", False),
    ],
)
def test_a_comparison_gets_a_passage_of_each_decision_by_date_and_is_told_what_is_not_done(agent, question, compares):
    prediction = agent(question)
    assert (COMPARES in (prediction.notice or "")) is compares
    dates = [document.decision_date for document in prediction.documents]
    by_id = {document.doc_id: date for document, date in zip(prediction.documents, dates, strict=True)}
    cited = [citation.doc_id for citation in prediction.citations]
    if compares:
        assert len(cited) == len(set(cited)) > 1
        assert [by_id[doc_id] for doc_id in cited] == sorted(by_id[doc_id] for doc_id in cited)


def test_a_court_with_its_time_makes_no_question_an_answered_one(bundled_agent):
    question = "Comment cloner un mouton, selon les décisions du Conseil constitutionnel de novembre 2002 ?"
    prediction = bundled_agent(question)
    assert (prediction.status, prediction.grade) == ("abstained", None)


@pytest.mark.parametrize("question", ["2011-9218 QPC", "Décision n° 2011-9218 QPC", "2011-9218 QPC et 99-12.345"])
def test_a_question_that_is_a_reference_alone_is_answered_by_what_it_names(bundled_agent, question):
    prediction = bundled_agent(question)
    assert prediction.citations[0].doc_id == "FICTIF0101"
    assert prediction.grade == ("close" if "99" in question else "answers")


def test_what_is_shown_in_place_of_a_decision_that_is_not_there_is_graded_unsure(agent):
    prediction = agent("Que dit la décision n° 99-12.345 ?")
    assert "Aucun document ne cite : 99-12.345." in prediction.notice
    assert prediction.answer.startswith(f"{ABSENT} : 99-12.345.\n\n{INTRODUCTIONS['unsure']}")
    assert (prediction.status, prediction.grade) == ("answered", "unsure")


@pytest.fixture(scope="module")
def dated_agent(tiny_encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dated")
    text = "MOTIFS\nAttendu que la faute grave rend impossible le maintien du salarié, selon l'affaire {}."
    rows = [
        {
            "id": f"SOC{year}", "number": f"{year % 100}-17.919",
            "content": text.format(year) + " Vu l'article 1240 du code civil." * (year == 2017),
            "juridiction": "Cour de cassation", "formation": "Chambre sociale", "decision_date": f"{year}-11-08",
        }
        for year in range(2015, 2024)
    ]  # fmt: skip
    build_index(IndexConfig(source=rows, n_bits=0, corpus_index=False, index_folder=str(folder)), tiny_encoder)
    return EvidenceAgent(build_retriever(Library.open(folder), tiny_encoder), match_words=False)


def cited(prediction):
    return [citation.doc_id for citation in prediction.citations]


@pytest.mark.parametrize(
    "question",
    [
        "Que jugent les arrêts n° 16-17.919 et 22-17.919 de la faute grave ?",
        "Que jugent les arrêts 1617919 et 22.17.919 de la faute grave ?",
        "L'arrêt de la chambre sociale du 8 novembre 2016 et l'arrêt de la chambre sociale du 8 novembre 2022 ?",
    ],
)
def test_both_decisions_that_a_question_names_are_quoted_first(dated_agent, question):
    prediction = dated_agent(question)
    assert prediction.status == "answered"
    assert set(cited(prediction)[:2]) == {"SOC2016", "SOC2022"}


@pytest.mark.parametrize(
    ("question", "absent", "grade"),
    [
        ("Que jugent les arrêts n° 16-17.919 et 99-12.345 de la faute grave ?", "99-12.345", "close"),
        ("Que dit l'arrêt n° 99-12.345 de l'article 1240 du code civil ?", "99-12.345", "unsure"),
        (
            "Que dit l'arrêt de la chambre sociale du 9 novembre 2016 ?",
            "chambre sociale, le 9\u00a0nov.\u00a02016",
            "unsure",
        ),
    ],
)
def test_the_answer_begins_with_the_decision_that_is_not_there(dated_agent, question, absent, grade):
    prediction = dated_agent(question)
    assert prediction.answer.startswith(f"{ABSENT} : {absent}.\n\n")
    assert prediction.grade == grade


def test_the_notice_names_no_reference_as_cited_that_no_document_cites(dated_agent):
    notice = dated_agent("Que dit l'arrêt n° 99-12.345 de l'article 1240 du code civil ?").notice
    assert notice.startswith("Aucun document ne cite : 99-12.345. Filtre déduit de la demande : cite l'article 1240 du")


def test_the_same_words_of_two_decisions_are_quoted_once(tiny_encoder, tmp_path):
    text = "MOTIFS\nAttendu que la faute grave rend impossible le maintien du salarié dans l'entreprise."
    rows = [{"id": f"D{number}", "content": text, "juridiction": "Cour de cassation"} for number in (1, 2)]
    build_index(IndexConfig(source=rows, n_bits=0, corpus_index=False, index_folder=str(tmp_path)), tiny_encoder)
    agent = EvidenceAgent(build_retriever(Library.open(tmp_path), tiny_encoder), match_words=False)
    assert len(cited(agent("La faute grave empêche-t-elle le maintien du salarié dans l'entreprise ?"))) == 1


def test_a_statute_or_an_invoice_is_no_decision_that_is_not_there(dated_agent):
    question = "La loi n° 2008-776 et la facture n° 123456 comptent-elles pour la faute grave ?"
    assert ABSENT not in dated_agent(question).answer


def test_a_court_with_a_time_steers_the_answer_and_its_notice_says_so(dated_agent):
    prediction = dated_agent("Qu'a jugé la chambre sociale en 2019 de la faute grave ?")
    assert set(cited(prediction)) <= {"SOC2019"}
    assert "Filtre déduit de la demande : chambre sociale, du 1er" in prediction.notice
    released = EvidenceAgent(dated_agent._retriever, match_words=False, infer_filters=False)
    assert "Filtre" not in (released("Qu'a jugé la chambre sociale en 2019 de la faute grave ?").notice or "")


def test_an_article_in_the_question_leads_to_what_cites_it(dated_agent):
    prediction = dated_agent("Que dit 1240 c. civ. de la faute grave ?")
    assert set(cited(prediction)) == {"SOC2017"}
    assert prediction.notice == "Filtre déduit de la demande : cite l'article 1240 du code civil."


def test_a_time_without_decisions_is_dropped_and_the_notice_says_so(dated_agent):
    prediction = dated_agent("Qu'a jugé la chambre sociale en 1950 de la faute grave ?")
    assert "Filtre déduit retiré, aucune décision n'y répond : chambre sociale" in prediction.notice


def test_a_decision_named_beyond_the_given_filters_is_not_quoted(dated_agent):
    given = EvidenceAgent(dated_agent._retriever, match_words=False, filters=Filters(doc_ids=("SOC2015",)))
    assert "SOC2016" not in cited(given("Que juge l'arrêt 16-17.919 de la faute grave ?"))


def test_filters_that_are_given_restrict_the_answer(dated_agent):
    given = EvidenceAgent(dated_agent._retriever, match_words=False, filters=Filters(date_from="2021", date_to="2021"))
    prediction = given("Que vaut la faute grave du salarié ?")
    assert {passage.doc_id for passage in prediction.evidence} <= {"SOC2021"}
