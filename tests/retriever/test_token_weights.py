"""Token vectors of a question, as long as they count."""

import math

import numpy as np
import pytest

from legal_rag.retriever import Retriever
from legal_rag.retriever.ranking import idf_weighted_query

RARITIES = {"le": 0.0, "juge": 1.0, "taxation": 9.0}


def test_rare_words_weigh_more_and_stop_words_signs_and_special_tokens_nothing():
    question = "le juge, taxation"
    offsets = np.array([(0, 0), (0, 2), (3, 7), (7, 8), (9, 13), (13, 17), (0, 0)])
    vectors = np.eye(7, dtype=np.float32)
    weighed = idf_weighted_query(question, vectors, offsets, RARITIES.__getitem__)
    mean = (1 + 3 + 3) / 3
    np.testing.assert_allclose(weighed, vectors[[2, 4, 5]] * np.array([[1], [3], [3]]) / mean, rtol=1e-6)


def test_a_question_of_stop_words_stays_as_it_is_and_rows_that_an_encoder_adds_weigh_one():
    two = np.eye(2, dtype=np.float32)
    assert idf_weighted_query("le", two, np.array([(0, 0), (0, 2)]), RARITIES.__getitem__) is two
    offsets = np.array([(0, 0), (0, 4), (-1, -1), (-1, -1)])
    vectors = np.eye(4, dtype=np.float32)
    np.testing.assert_allclose(idf_weighted_query("juge", vectors, offsets, RARITIES.__getitem__), vectors[1:])


@pytest.mark.slow
def test_late_interaction_is_max_sim_of_the_weighed_tokens(sample_library, bundled):
    question = "Le trouble anormal de voisinage suppose-t-il une faute ?"
    hit = Retriever(sample_library, bundled).search(question, 1, mode="colbert")[0]
    lexical = sample_library.lexical_index()
    ((vectors, offsets),) = bundled.query_tokens([question])
    weighed = idf_weighted_query(question, vectors, offsets, lexical.rarity)
    assert 3 < len(weighed) < len(vectors)
    header = "" if hit.char_start else f"Titre: {hit.title} | Date: {hit.decision_date}\n"
    (document,) = bundled.encode_documents([header + hit.text])
    assert hit.score == pytest.approx((weighed @ document.T).max(axis=1).sum(), rel=0.02)  # its vectors are 4-bit


def test_rarity_is_the_inverse_document_frequency(tiny_library):
    index = tiny_library.lexical_index()
    n = index.n_chunks
    assert index.rarity("les") == 0.0
    assert index.rarity("xyzzyx") == pytest.approx(math.log(1 + (n + 0.5) / 0.5))
    assert 0 < index.rarity("décision") < index.rarity("voisinage") < index.rarity("xyzzyx")
