"""When evidence mode abstains: by what the corpus's own encoder makes of questions that the corpus cannot answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from legal_rag.agent import doubt
from legal_rag.agent.doubt import CLOSE, OFF_TOPIC, SURE, Background, Signs, background_of, is_relevant, signs_of
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.retriever import build_retriever

MEASURE = doubt._measure_background  # not that of tests/conftest.py
BACKGROUND = Background(Signs(0.5, 0.6, 0.0), Signs(0.1, 0.1, 1.0))
HYBRID = SimpleNamespace(default_mode="hybrid")


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return build_retriever(tiny_library, tiny_encoder)


@pytest.fixture
def measured(retriever, monkeypatch, tmp_path):
    """Count the searches that measure a background, kept in a cache folder of the test's own."""
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setattr(doubt, "_measure_background", MEASURE)
    monkeypatch.setattr(doubt, "OFF_TOPIC", OFF_TOPIC[:4])
    searches = []
    search = retriever.search
    monkeypatch.setattr(retriever, "search", lambda *args, **kwargs: searches.append(1) or search(*args, **kwargs))
    return searches


def hit(text, start=0, score=1.0):
    return SimpleNamespace(text=text, char_start=start, char_end=start + len(text), score=score)


@pytest.mark.parametrize(
    ("nearest", "relevant"), [(0.9, True), (0.63, True), (0.6, False), (0.5, False), (-1.0, False)]
)
def test_passages_are_relevant_if_nearer_to_the_question_than_those_of_off_topic_questions(nearest, relevant):
    assert is_relevant(Signs(nearest, 0.0, 0.0), BACKGROUND) is relevant


@pytest.mark.parametrize(("shift", "stretch"), [(0.3, 0.2), (-0.5, 2.0)])
def test_the_rule_is_the_same_for_encoders_whose_cosines_are_shifted_and_stretched(shift, stretch):
    moved = Background(
        Signs(*(mean * stretch + shift for mean in BACKGROUND.mean)),
        Signs(*(deviation * stretch for deviation in BACKGROUND.deviation)),
    )
    for cosine in (0.4, 0.55, 0.65, 0.78, 0.9):
        signs, others = Signs(cosine, cosine, cosine), Signs(*[cosine * stretch + shift] * 3)
        assert is_relevant(others, moved) == is_relevant(signs, BACKGROUND)
        assert moved.grade(others) == BACKGROUND.grade(signs)


def test_passages_are_graded_by_their_cosine_and_the_score_of_their_decision():
    graded = {
        surety: BACKGROUND.grade(Signs(0.0, 0.6 + surety * 0.1, 0.0))
        for surety in (CLOSE - 0.1, CLOSE + 0.1, SURE + 0.1)
    }
    assert list(graded.values()) == ["unsure", "close", "answers"]
    assert BACKGROUND.grade(Signs(0.0, 0.6 + (CLOSE - 0.1) * 0.1, 9.0)) == "answers"
    assert BACKGROUND.grade(Signs(0.0, 0.6, 99.0)) == "unsure"  # a name alone makes no answer


def test_a_background_is_measured_once_for_a_build_and_read_afterwards(retriever, measured):
    first = background_of(retriever)
    assert len(measured) >= 4
    searches = len(measured)
    assert background_of(retriever) == first
    assert len(measured) == searches
    assert min(first.deviation) > 0


@pytest.mark.parametrize("kept", ["", '["a", "b"]', "[0.5, 0.1]"])
def test_a_damaged_file_is_measured_again(retriever, measured, tmp_path, kept):
    expected = background_of(retriever)
    (path,) = (tmp_path / "abstention").iterdir()
    path.write_text(kept, encoding="utf-8")
    assert background_of(retriever) == expected
    assert json.loads(path.read_text(encoding="utf-8")) == [list(signs) for signs in expected]


def test_a_cache_folder_that_cannot_be_written_costs_a_warning_alone(retriever, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "file"))
    assert min(background_of(retriever).deviation) > 0
    assert "cannot be written" in caplog.text


def test_nearness_is_of_the_tokens_of_the_passage_and_the_words_of_the_question():
    query = SimpleNamespace(tokens=TokenVectors(np.eye(3, dtype=np.float32), np.array([[0, 0], [0, 6], [6, 12]])))
    read = TokenVectors(np.eye(3, dtype=np.float32)[1:], np.array([[0, 4], [10, 14]]))
    first, second, nothing = (
        signs_of(HYBRID, query, [hit(*at)], [read]) for at in (("licencié",), ("autre", 10), ("rien", 50))
    )
    assert (first.maxsim, second.maxsim) == (0.5, 0.5)
    assert first.cosine == pytest.approx(0.5**0.5)
    assert nothing[:2] == (-1.0, -1.0)
    assert signs_of(HYBRID, query, [], [])[:2] == (-1.0, -1.0)


def test_surety_is_of_the_two_best_documents_and_nearness_of_the_first():
    query = SimpleNamespace(tokens=TokenVectors(np.eye(2, dtype=np.float32)[:1], np.array([[0, 6]])))
    read = [TokenVectors(np.eye(2, dtype=np.float32)[[at]], np.array([[0, 8]])) for at in (0, 1, 0)]
    signs = signs_of(HYBRID, query, [hit("licencié", score=score) for score in (2.0, 1.0, 9.0)], read)
    assert signs == pytest.approx((1.0, 0.5, 1.5))


def test_a_question_of_one_word_is_measured_by_that_word(retriever):
    query = retriever.query("bail")
    hits = retriever.search(query, 1)
    read = [retriever.document_tokens(hits[0].doc_id, near=hits[0].char_start)]
    assert signs_of(retriever, query, hits, read).maxsim > -1.0


def test_questions_that_find_no_passage_are_measured_against_any(retriever, measured, monkeypatch):
    monkeypatch.setattr(retriever, "search", lambda *_, **__: [])
    background = background_of(retriever)
    assert -1.0 < background.mean.maxsim < 1.0
    assert 0 < background.deviation.maxsim < 0.5


def test_a_corpus_that_has_changed_is_measured_again(retriever, measured, monkeypatch):
    background_of(retriever)
    searches = len(measured)
    monkeypatch.setattr(retriever.corpus, "commit", 99)
    background_of(retriever)
    assert len(measured) > searches
