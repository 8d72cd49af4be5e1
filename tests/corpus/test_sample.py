"""The sample corpus: fictional and marked so, as varied as real collections, its questions answered by its text."""

from collections import Counter

import pytest

from legal_rag.corpus import read_documents
from legal_rag.corpus.files import TAG
from legal_rag.law.parts import read_paragraphs


@pytest.fixture(scope="module")
def documents(sample_file):
    bad = []
    documents = {item.id: item for item in read_documents(sample_file, on_bad=bad.append)}
    assert bad == []
    return documents


def test_every_document_says_that_it_is_fictional_and_a_court_speaks_in_decisions_alone(documents):
    assert len(documents) == 60
    for item in documents.values():
        assert item.id.startswith("FICTIF")
        assert item.title.startswith(("[Décision fictive] ", "[Document fictif] "))
        assert item.extra["fictif"] is True
        assert "ecli" not in item.extra or item.extra["ecli"].startswith("ECLI:FR:FICTIF:")
    for item in documents.values():
        speakers = {one.speaker for one in read_paragraphs(item.content)}
        assert ("court" in speakers) == item.title.startswith("[Décision fictive] "), item.id


def test_the_documents_are_of_every_kind_court_and_chamber(documents):
    natures = Counter(item.extra["nature"] for item in documents.values())
    expected = {"ARRET": 29, "DECISION": 10, "AN": 9, "QPC": 4, "DC": 3, "CONTRAT": 3, "COURRIEL": 1, "ACTE": 1}
    assert natures == expected
    courts = Counter(item.juridiction.split(" d'appel ")[0] for item in documents.values())
    assert courts == {
        **{"Cour de cassation": 17, "Conseil constitutionnel": 16, "Cour": 12, "Conseil d'État": 10, "": 5},
    }
    assert {item.formation for item in documents.values() if item.juridiction == "Cour de cassation"} == {
        *("Première chambre civile", "Deuxième chambre civile", "Troisième chambre civile", "Chambre commerciale"),
        *("Chambre sociale", "Chambre criminelle", "Assemblée plénière"),
    }


def test_documents_are_of_middling_length_and_decisions_have_a_date_a_solution_and_laws(documents):
    for item in documents.values():
        assert 2_000 <= len(item.content) <= 12_000
        assert item.decision_date[:2] in ("19", "20")
        assert bool(item.juridiction) == bool(item.formation) == bool(item.solution) == bool(item.applied_laws)


def test_the_texts_are_as_awkward_as_real_ones_and_hold_no_markup_once_cleaned(documents, sample_rows):
    contents = [row["content"] for row in sample_rows]
    n_with = {mark: sum(mark in content for content in contents) for mark in ("’", "œ", "\u00a0", "&", "<br")}
    assert sum(bool(TAG.search(content)) for content in contents) >= 10
    assert min(n_with.values()) >= 5, n_with
    assert [item.id for item in documents.values() if TAG.search(item.content) or "&nbsp;" in item.content] == []


def test_every_question_names_the_passage_that_answers_it_and_does_not_repeat_it(documents, sample_questions):
    assert len({question["qid"] for question in sample_questions}) == len(sample_questions) == 40
    assert len({question["doc_id"] for question in sample_questions}) == 40
    assert {question["kind"] for question in sample_questions} == {"rule", "fact", "outcome"}
    for question in sample_questions:
        content = documents[question["doc_id"]].content
        assert content[question["char_start"] : question["char_end"]] == question["answer"]
        assert content.count(question["answer"]) == 1
        assert question["answer"] not in question["question"]
