"""When evidence mode abstains: by what the corpus's own encoder makes of questions that the corpus cannot answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from legal_rag.agent import abstention
from legal_rag.agent.abstention import (
    AbstentionFeatures,
    Background,
    abstention_features,
    background_of,
    coverage,
    is_relevant,
)
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.retriever import build_retriever

BACKGROUND = Background(mean=0.5, deviation=0.1)


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return build_retriever(tiny_library, tiny_encoder)


@pytest.fixture
def measured(retriever, monkeypatch, tmp_path):
    """Count the searches that measure a background, kept in a cache folder of the test's own."""
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path))
    searches = []
    search = retriever.search
    monkeypatch.setattr(retriever, "search", lambda *args, **kwargs: searches.append(1) or search(*args, **kwargs))
    return searches


def hit(text, start=0):
    return SimpleNamespace(text=text, char_start=start, char_end=start + len(text))


@pytest.mark.parametrize(
    ("features", "relevant"),
    [
        (AbstentionFeatures(0.9, 0.0), True),
        (AbstentionFeatures(0.5, 1.0), False),
        (AbstentionFeatures(0.6, 1.0), True),
        (AbstentionFeatures(-1.0, 0.0), False),
    ],
)
def test_passages_are_relevant_if_nearer_to_the_question_than_those_of_off_topic_questions(features, relevant):
    assert is_relevant(features, BACKGROUND) is relevant


def test_the_rule_is_the_same_for_encoders_whose_cosines_are_shifted_and_stretched():
    for shift, stretch in ((0.0, 1.0), (0.3, 0.2), (-0.5, 2.0)):
        moved = Background(BACKGROUND.mean * stretch + shift, BACKGROUND.deviation * stretch)
        answers = [is_relevant(AbstentionFeatures(x * stretch + shift, 0.5), moved) for x in (0.4, 0.55, 0.65, 0.9)]
        assert answers == [is_relevant(AbstentionFeatures(x, 0.5), BACKGROUND) for x in (0.4, 0.55, 0.65, 0.9)]


def test_a_background_is_measured_once_for_a_build_and_read_afterwards(retriever, measured):
    first = background_of(retriever)
    assert len(measured) >= len(abstention.WORDS["off_topic"])
    searches = len(measured)
    assert background_of(retriever) == first
    assert len(measured) == searches
    assert first.deviation > 0


@pytest.mark.parametrize("kept", ["", "[1]", '["a", "b"]', "null", "{}"])
def test_a_damaged_file_is_measured_again(retriever, measured, tmp_path, kept):
    expected = background_of(retriever)
    (path,) = (tmp_path / "abstention").iterdir()
    path.write_text(kept, encoding="utf-8")
    assert background_of(retriever) == expected
    assert json.loads(path.read_text(encoding="utf-8")) == list(expected)


def test_a_cache_folder_that_cannot_be_written_costs_a_warning_alone(retriever, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LEGAL_RAG_CACHE", str(tmp_path / "file"))
    assert background_of(retriever).deviation > 0
    assert "cannot be written" in caplog.text


def test_features_are_of_the_tokens_of_the_passage_and_the_words_of_the_question():
    query = SimpleNamespace(
        text="licenciement", tokens=TokenVectors(np.eye(3, dtype=np.float32), np.array([[0, 0], [0, 6], [6, 12]]))
    )
    read = TokenVectors(np.eye(3, dtype=np.float32)[1:], np.array([[0, 4], [10, 14]]))
    assert abstention_features(query, [hit("licencié")], [read]) == AbstentionFeatures(0.5, 1.0)
    assert abstention_features(query, [hit("autre", 10)], [read]) == AbstentionFeatures(0.5, 0.0)
    assert abstention_features(query, [hit("rien", 50)], [read]) == AbstentionFeatures(-1.0, 0.0)
    assert abstention_features(query, [], []) == AbstentionFeatures(-1.0, 0.0)


@pytest.mark.parametrize(
    ("question", "passages", "share"),
    [
        ("Quel licenciement à l'Œuvre ?", ["LICENCIÉ", "l'oeuvre"], 1.0),
        ("Licenciement du préfet", ["licencié"], 0.5),
        ("licenciement", ["a", "b", "c", "licencié"], 0.0),
        ("?", ["licencié"], 0.0),
        ("licenciement", [], 0.0),
    ],
)
def test_coverage_compares_words_by_their_beginnings_without_accents_or_question_words(question, passages, share):
    assert coverage(question, passages) == share
