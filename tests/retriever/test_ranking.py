"""Modes of ranking, and what a question names."""

import unicodedata
from itertools import product

import numpy as np
import pytest

from legal_rag.corpus.chunking import chunk_id
from legal_rag.indexer import IndexConfig, build_index, remove_documents
from legal_rag.law.keys import own_keys
from legal_rag.library import Filters, Library, SearchSettings
from legal_rag.retriever import Retriever, ranking
from legal_rag.retriever.ranking import (
    FUSED_CHUNKS,
    LENGTH_PRIOR_PER_CHUNK,
    LENGTH_PRIOR_WEIGHT,
    MAXSIM_WEIGHT,
    RERANKED_CHUNKS,
    fuse,
    tiered_merge,
)
from legal_rag.retriever.retriever import deduplicate_near_duplicates

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"
MODES = ["colbert", "bm25", "hybrid", "bm25+rerank"]


@pytest.fixture(scope="module")
def retriever(tiny_library, tiny_encoder):
    return Retriever(tiny_library, tiny_encoder)


def scores_of(retriever, mode):
    return {hit.chunk_id: hit.score for hit in retriever.search(QUESTION, 10**6, mode=mode)}


def test_hybrid_is_the_weighted_sum_of_both_parts(tiny_library, tiny_encoder, monkeypatch):
    monkeypatch.setattr(ranking, "WINDOW_WEIGHT", 0.0)
    retriever = Retriever(tiny_library, tiny_encoder, SearchSettings(exhaustive=True))
    late, words, both = (scores_of(retriever, mode) for mode in ("colbert", "bm25", "hybrid"))
    assert both.keys() == late.keys()
    chunks = sorted(both)
    late_scores, word_scores = (np.array([some.get(chunk, 0.0) for chunk in chunks]) for some in (late, words))
    best, nothing = np.sort(late_scores)[-FUSED_CHUNKS:], np.zeros(len(chunks))
    first = (late_scores >= best[0]) | ((word_scores > 0) & (word_scores >= np.sort(word_scores)[-FUSED_CHUNKS]))
    alone = fuse(np.array([late_scores, nothing, nothing + 1]), first)
    assert alone == pytest.approx(MAXSIM_WEIGHT * (late_scores - best.mean()) / best.std())
    library = retriever.corpus
    places = library.places_in(range(len(library.manifest["shards"])))
    ids = [chunk_id(one.doc_id, one.chunk_index) for one in library.chunks_at(places)]
    by_id = dict(zip(ids, places, strict=True))
    wholes, n_chunks = library.lexical_index().document_scores(QUESTION, [by_id[chunk] for chunk in chunks])
    expected = fuse(np.array([late_scores, wholes, n_chunks]), first)
    assert np.array([both[chunk] for chunk in chunks]) == pytest.approx(expected, abs=5e-3)  # equals at the bound


def test_a_document_of_many_chunks_has_to_score_higher_for_its_many_chances():
    scores, nothing, first = np.array([2.0, 2.0, 1.0]), np.zeros(3), np.ones(3, dtype=bool)
    few, many, worse = fuse(np.array([scores, nothing, [1, 9, 1]]), first)
    assert few - many == pytest.approx(LENGTH_PRIOR_WEIGHT * np.log(1 + 8 * LENGTH_PRIOR_PER_CHUNK))
    assert few - worse == pytest.approx(MAXSIM_WEIGHT / np.std(scores))


def test_reranking_orders_what_bm25_found_by_max_sim(retriever, monkeypatch):
    monkeypatch.setattr(ranking, "WINDOW_WEIGHT", 0.0)
    late, words, reranked = (scores_of(retriever, mode) for mode in ("colbert", "bm25", "bm25+rerank"))
    assert reranked.keys() == words.keys()
    first = list(reranked)[:RERANKED_CHUNKS]
    assert set(first) == set(list(words)[:RERANKED_CHUNKS])
    assert [late[chunk] for chunk in first] == pytest.approx(
        sorted((late[one] for one in first), reverse=True), abs=1e-4
    )
    assert list(reranked)[RERANKED_CHUNKS:] == list(words)[RERANKED_CHUNKS:]


@pytest.mark.parametrize("mode", MODES)
def test_fewer_hits_are_the_first_of_more_in_every_mode_and_another_is_refused(retriever, mode):
    few, more, most = (retriever.search(QUESTION, k, mode=mode) for k in (5, 20, FUSED_CHUNKS + 20))
    assert few == more[:5] == most[:5]
    with pytest.raises(ValueError, match="no such mode: 'dense' .*hybrid"):
        retriever.search(QUESTION, 5, mode="dense")


@pytest.mark.parametrize("mode", MODES)
def test_several_questions_get_what_each_gets_alone(retriever, mode):
    questions = [QUESTION, "trouble anormal de voisinage", "décision 2011-9218 QPC"]
    together = retriever.search_batch(questions, 5, mode=mode, by_document=True)
    for question, hits in zip(questions, together, strict=True):
        alone = retriever.search(question, 5, mode=mode, by_document=True)
        assert [hit.chunk_id for hit in hits] == [hit.chunk_id for hit in alone]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in alone], abs=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_a_decision_named_by_its_number_comes_first(retriever, tiny_library, mode):
    numbered = [(doc_id, own_keys(tiny_library.document(doc_id))) for doc_id in tiny_library]
    numbered = [(doc_id, names) for doc_id, names in numbered if names]
    assert len(numbered) > 20
    for _, names in numbered[::4]:
        kind, _, value = names[0].partition(":")
        question = f"Que décide l'arrêt {'n°' if kind == 'number' else kind.upper()} {value} sur l'intérêt à agir ?"
        hits = retriever.search(question, 3, mode=mode, by_document=True)
        holders = [one for one, others in numbered if names[0] in others]
        assert {hit.doc_id for hit in hits[: len(holders)]} <= set(holders), question
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_name_does_not_lead_outside_a_filter(retriever, tiny_library):
    doc_id = next(iter(tiny_library))
    name = own_keys(tiny_library.document(doc_id))[0].partition(":")[2]
    others = [one for one in tiny_library if one != doc_id]
    hits = retriever.search(f"décision {name}", 10**6, filters=Filters(doc_ids=others))
    assert doc_id not in {hit.doc_id for hit in hits}


def test_tiers_are_put_one_above_the_other_with_falling_scores():
    tiers = [[(0, 4, 0.1)], [], [(0, 1, 9.0), (0, 4, 8.0), (0, 2, 7.0)]]
    result = tiered_merge(tiers)
    assert [one[:2] for one in result] == [(0, 4), (0, 1), (0, 2)]
    assert [one[2] for one in result] == [10.0, 9.0, 7.0]
    assert tiered_merge([]) == tiered_merge([[], []]) == []


def test_texts_that_nearly_repeat_one_another_are_told_and_diverse_hits_do_not(retriever):
    text = " ".join(f"mot{i}" for i in range(100))
    nearly = text.replace("mot50", "autre")
    assert deduplicate_near_duplicates([text, nearly, "tout autre chose que cela", text]) == [0, 2]
    assert deduplicate_near_duplicates(["", ""]) == [0]
    assert deduplicate_near_duplicates([]) == []
    hits = retriever.search(QUESTION, 30, diverse=True, by_document=True)
    assert deduplicate_near_duplicates([hit.text for hit in hits]) == list(range(30))


def test_a_named_decision_is_found_though_its_text_shares_no_word_with_the_question(tiny_encoder, tmp_path):
    rows = [
        {"id": "nommé", "number": "16-86.735", "content": "La chambre rejette cette demande."},
        {"id": "autre", "number": "15-10.000", "content": "Le pourvoi est formé contre un arrêt."},
    ]
    build_index(IndexConfig(source=rows, index_folder=str(tmp_path)), tiny_encoder)
    retriever = Retriever(Library.open(tmp_path), tiny_encoder)
    for mode, question in product(MODES, ("pourvoi n° 16-86.735", "pourvoi R 16-86735")):
        assert retriever.search(question, 2, mode=mode)[0].doc_id == "nommé"


def test_a_name_held_by_a_removed_document_leads_to_the_one_that_is_left(tiny_encoder, tmp_path):
    rows = [
        {"id": "a", "number": "2016-561", "nature": "QPC", "content": "Le Conseil décide."},
        {"id": "b", "number": "2016-561", "nature": "DC", "content": "Une autre décision."},
        {"id": "c", "number": "2016-562", "nature": "DC", "content": "Une décision encore."},
    ]
    build_index(IndexConfig(source=rows, index_folder=str(tmp_path)), tiny_encoder)
    remove_documents(["a"], tmp_path)
    assert Retriever(Library.open(tmp_path), tiny_encoder).search("2016-561 QPC", 1)[0].doc_id == "b"


def test_reranking_orders_as_many_passages_however_many_are_asked_for(retriever, monkeypatch):
    monkeypatch.setattr("legal_rag.retriever.ranking.RERANKED_CHUNKS", 5)
    some, many = (retriever.search(QUESTION, k, mode="bm25+rerank") for k in (3, 40))
    assert [hit.chunk_id for hit in many[:3]] == [hit.chunk_id for hit in some]
    words = [hit.chunk_id for hit in retriever.search(QUESTION, 40, mode="bm25")]
    assert [hit.chunk_id for hit in many[5:]] == words[5:]
    assert {hit.chunk_id for hit in many[:5]} == set(words[:5])


@pytest.mark.parametrize("mode", MODES)
def test_a_question_in_decomposed_letters_is_the_same_question(retriever, mode):
    question = "La procédure était-elle régulière à l'égard du requérant ?"
    assert retriever.search(unicodedata.normalize("NFD", question), 5, mode=mode) == retriever.search(
        question, 5, mode=mode
    )
