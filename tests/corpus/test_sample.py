"""The sample corpus: fictional and marked so, as varied as real collections, its questions answered by its text."""

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
