"""The sample corpus: fictional and marked so, as varied as real collections, its questions answered by its text."""

import json
from collections import Counter
from importlib.resources import files

import pytest

from legal_rag.corpus import read_documents
from legal_rag.corpus.cleaning import TAG
from legal_rag.corpus.structure.speakers import read_paragraphs

SAMPLE = files("legal_rag.corpus") / "sample"


def rows_of(name):
    return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def documents():
    bad = []
    documents = {item.id: item for item in read_documents(SAMPLE / "decisions.jsonl", on_bad=bad.append)}
    assert bad == []
    return documents


def test_a_court_speaks_in_its_decisions_and_in_no_other_document(documents):
    for item in documents.values():
        speakers = {one.speaker for one in read_paragraphs(item.content)}
        assert ("court" in speakers) == item.title.startswith("[Décision fictive] "), item.id


@pytest.fixture(scope="module")
def questions():
    return rows_of("questions.jsonl")


def test_every_document_says_that_it_is_fictional(documents):
    assert len(documents) == 60
    for item in documents.values():
        assert item.id.startswith("FICTIF")
        assert item.title.startswith(("[Décision fictive] ", "[Document fictif] "))
        assert item.extra["fictif"] is True
        assert "ecli" not in item.extra or item.extra["ecli"].startswith("ECLI:FR:FICTIF:")


def test_the_documents_are_of_every_kind_and_court(documents):
    natures = Counter(item.extra["nature"] for item in documents.values())
    expected = {"ARRET": 29, "DECISION": 10, "AN": 9, "QPC": 4, "DC": 3, "CONTRAT": 3, "COURRIEL": 1, "ACTE": 1}
    assert natures == expected
    courts = Counter(item.juridiction.split(" d'appel ")[0] for item in documents.values())
    assert courts == {
        "Cour de cassation": 17,
        "Conseil constitutionnel": 16,
        "Cour": 12,
        "Conseil d'État": 10,
        "": 5,
    }


def test_every_chamber_of_the_cour_de_cassation_is_there(documents):
    assert {item.formation for item in documents.values() if item.juridiction == "Cour de cassation"} == {
        "Première chambre civile",
        "Deuxième chambre civile",
        "Troisième chambre civile",
        "Chambre commerciale",
        "Chambre sociale",
        "Chambre criminelle",
        "Assemblée plénière",
    }


def test_no_document_is_very_short_or_very_long(documents):
    lengths = [len(item.content) for item in documents.values()]
    assert min(lengths) >= 2_000
    assert max(lengths) <= 12_000


def test_decisions_have_a_date_a_solution_and_laws(documents):
    for item in documents.values():
        assert item.decision_date[:2] in ("19", "20")
        assert bool(item.juridiction) == bool(item.formation) == bool(item.solution) == bool(item.applied_laws)


def test_the_texts_are_as_awkward_as_real_ones():
    contents = [row["content"] for row in rows_of("decisions.jsonl")]
    n_with = {mark: sum(mark in content for content in contents) for mark in ("’", "œ", "\u00a0", "&", "<br")}
    assert sum(bool(TAG.search(content)) for content in contents) >= 10
    assert min(n_with.values()) >= 5, n_with


def test_cleaned_texts_hold_no_markup(documents):
    assert [item.id for item in documents.values() if TAG.search(item.content) or "&nbsp;" in item.content] == []


def test_every_question_names_the_passage_that_answers_it(documents, questions):
    assert len({question["qid"] for question in questions}) == len(questions) == 40
    assert len({question["doc_id"] for question in questions}) == 40
    assert {question["kind"] for question in questions} == {"rule", "fact", "outcome"}
    for question in questions:
        content = documents[question["doc_id"]].content
        assert content[question["char_start"] : question["char_end"]] == question["answer"]
        assert content.count(question["answer"]) == 1


def test_no_question_repeats_its_answer(questions):
    assert [question["qid"] for question in questions if question["answer"] in question["question"]] == []
