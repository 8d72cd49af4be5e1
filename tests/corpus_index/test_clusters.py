"""Clusters of documents by their key terms: the same centres each time, the same cluster alone as among others."""

import numpy as np
import pytest

from legal_rag.corpus_index.building import MAX_CLUSTERS, Centres, fit_centres, n_clusters
from legal_rag.corpus_index.keywords import TermCounter, keywords_of, read_terms

LEASES = [{"bail": 3.0, "preneur": 2.0, "conge": weight} for weight in (0.5, 1.0, 1.5, 2.0)]
ELECTIONS = [{"vote": 3.0, "urne": 2.0, "tract": weight} for weight in (0.5, 1.0)]
DOCUMENTS = [*ELECTIONS, *LEASES]
SHOWN = {"bail": "baux", "vote": "votes"}


def centres_of(*rows, terms=("bail", "conge", "urne", "vote")):
    matrix = np.array(rows, dtype=np.float32)
    return Centres(terms, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("documents", "clusters"), [(0, 1), (1, 1), (8, 2), (4097, 45), (80_000, 200), (10_000_000, MAX_CLUSTERS)]
)
def test_there_are_as_many_clusters_as_the_root_of_half_the_documents(documents, clusters):
    assert n_clusters(documents) == clusters


def test_documents_that_share_key_terms_are_one_cluster_and_equal_ones_give_equal_centres():
    centres = fit_centres(DOCUMENTS, 2)
    assert [centres.assign(document) for document in DOCUMENTS] == [1, 1, 0, 0, 0, 0]
    assert centres.labels(SHOWN) == ["baux, preneur, conge", "votes, urne, tract"]
    assert np.allclose(np.linalg.norm(centres.matrix, axis=1), 1.0)
    rng = np.random.default_rng(1)
    documents = [{f"terme{n}": float(rng.random()) + 0.1 for n in rng.integers(0, 200, 20)} for _ in range(500)]
    first, second = fit_centres(iter(documents)), fit_centres(documents)
    assert first.terms == second.terms
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert len(first.matrix) <= n_clusters(500)


def test_centres_are_read_back_from_their_bytes_and_assign_whatever_the_order_of_terms():
    centres = fit_centres(DOCUMENTS, 2)
    again = Centres.from_bytes(centres.terms, centres.matrix.tobytes())
    assert again.terms == centres.terms
    assert again.matrix.dtype == np.float32
    assert (again.matrix == centres.matrix).all()
    for document in DOCUMENTS:
        assert again.assign(document) == centres.assign(document) == centres.assign(dict(reversed(document.items())))


def test_a_document_without_any_term_that_a_centre_holds_is_in_no_cluster_and_of_two_as_near_the_first_is_taken():
    assert [fit_centres(DOCUMENTS, 2).assign(weights) for weights in ({}, {"autre": 1.0})] == [None, None]
    centres = centres_of([1, 0, 1, 0], [1, 0, 0, 1])
    assert (centres.assign({"bail": 1.0}), centres.assign({"conge": 1.0})) == (0, None)


@pytest.mark.parametrize("documents", [[], [{}], [{"bail": 1.0}], [{"bail": 1.0}, {"vote": 1.0}]])
def test_documents_that_share_nothing_have_no_centres_and_those_alike_one(documents):
    centres = fit_centres(documents)
    assert centres.matrix.shape[0] == 0
    assert centres.labels({}) == []
    assert centres.assign({"bail": 1.0}) is None
    assert Centres.from_bytes(centres.terms, centres.matrix.tobytes()).assign({"bail": 1.0}) is None
    assert fit_centres([{"bail": 1.0}] * 10, 5).matrix.tolist() == [[1.0]]


def test_labels_tell_clusters_apart_and_leave_out_what_all_share():
    terms = ("bail", "bail commercial", "conge", "preneur", "refus", "vote")
    rows = [[1, 9, 8, 7, 6, 5], [1, 9, 8, 7, 6, 5], [1, 9, 8, 7, 6, 5]]
    labels = centres_of(*rows, terms=terms).labels({})
    assert len(set(labels)) == 3
    assert labels[0] == "bail commercial, conge, preneur, refus"  # "bail" is said already
    centres = centres_of([9, 5, 0, 0], [9, 0, 0, 5])
    assert [label.split(", ")[0] for label in centres.labels({})] == ["conge", "vote"]


@pytest.mark.parametrize("data", [b"1234567", b"12345678" * 3])
def test_bytes_that_are_no_rows_are_refused(data):
    with pytest.raises(ValueError, match=f"not centres: {len(data)} bytes for 4 terms"):
        Centres.from_bytes(("bail", "conge", "urne", "vote"), data)


@pytest.mark.shared
def test_real_decisions_on_one_ground_come_together(shared_decisions):
    documents = shared_decisions[::5]
    read = [read_terms(document.content) for document in documents]
    counter = TermCounter()
    for terms in read:
        counter.add(terms.shown)
    statistics = counter.freeze()
    vectors = [{one.term: one.weight for one in keywords_of(terms, statistics, 30)} for terms in read]
    centres = fit_centres(vectors)
    clusters = [centres.assign(vector) for vector in vectors]
    courts = [document.juridiction.split()[0] == "Conseil" for document in documents]
    mixed = 0
    for cluster in set(clusters):
        members = [court for court, of in zip(courts, clusters, strict=True) if of == cluster]
        mixed += min(sum(members), len(members) - sum(members))
    assert mixed < 0.02 * len(documents)
    labels = centres.labels(statistics.shown)
    assert len(set(labels)) == len(labels) == len(centres.matrix)
    assert any("comptes de campagne" in label for label in labels)
