"""The retriever on a local Ray cluster, against the one in this process."""

import dataclasses
import os
import signal

import pytest

from legal_rag.indexer import IndexConfig, build_index, open_index, remove_documents
from legal_rag.library import Filters, Library
from legal_rag.library.ray import ray_cluster
from legal_rag.retriever import RayRetriever, Retriever

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")

QUESTIONS = [
    "Dans quel délai le candidat doit-il déposer son compte de campagne ?",
    "licenciement sans cause réelle et sérieuse",
    "?",
]
REMOVED = ["FICTIF0101", "FICTIF0103"]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Start one cluster for all tests: each retriever would otherwise start and end its own."""
    with ray_cluster():
        yield


@pytest.fixture(scope="module")
def library(tiny_encoder, sample_file, tmp_path_factory) -> Library:
    """Index the sample in shards of twenty chunks, and remove two documents again."""
    folder = str(tmp_path_factory.mktemp("many-shards"))
    config = IndexConfig(source=sample_file, shard_chunks=20, index_folder=folder)
    build_index(config, tiny_encoder)
    remove_documents(REMOVED, folder)
    return open_index(config)


@pytest.fixture(scope="module")
def pair(library, tiny_encoder):
    with RayRetriever(library, tiny_encoder, n_actors=2) as remote:
        yield remote, Retriever(library, tiny_encoder)


def processes_of(retriever):
    """Return the process of each of a retriever's actors."""
    return ray.get([actor.process.remote() for actor in retriever._remote._actors])


@pytest.mark.parametrize("k", [1, 7, 10**6])
@pytest.mark.parametrize("question", QUESTIONS)
def test_actors_find_what_one_process_finds(pair, question, k):
    remote, local = pair
    assert remote.search(question, k) == local.search(question, k)
    assert remote.search(question, k, by_document=True) == local.search(question, k, by_document=True)


def test_a_search_may_be_restricted_to_documents_and_removed_ones_are_not_found(pair, library):
    remote, local = pair
    some = [*list(library)[::3], *REMOVED, "INCONNU"]
    hits = remote.search(QUESTIONS[0], 50, filters=Filters(doc_ids=some))
    assert hits == local.search(QUESTIONS[0], 50, filters=Filters(doc_ids=some))
    assert {hit.doc_id for hit in hits} <= set(some) - set(REMOVED)
    assert remote.search(QUESTIONS[0], 5, filters=Filters(doc_ids=["INCONNU"])) == []
    remote, _ = pair
    assert not {hit.doc_id for hit in remote.search(QUESTIONS[0], 10**6)} & set(REMOVED)


def test_a_question_that_is_refused_here_is_refused_there(pair):
    remote, _ = pair
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        remote.search(QUESTIONS[0], 0)
    with pytest.raises(ValueError, match="the question is empty"):
        remote.search(" ")


def test_a_killed_actor_is_started_again_and_the_question_answered(pair):
    remote, local = pair
    before = processes_of(remote)
    os.kill(before[0], signal.SIGKILL)
    assert remote.search(QUESTIONS[0], 9) == local.search(QUESTIONS[0], 9)
    after = processes_of(remote)
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_an_actor_started_again_refuses_an_index_built_anew_in_its_place(tiny_encoder, sample_file, tmp_path):
    config = IndexConfig(source=sample_file, limit=3, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    with RayRetriever(open_index(config), tiny_encoder, n_actors=1) as remote:
        build_index(dataclasses.replace(config, limit=4), tiny_encoder)
        os.kill(processes_of(remote)[0], signal.SIGKILL)
        with pytest.raises(ValueError, match="^[^\n]*was built anew since it was opened: open it again$"):
            remote.search(QUESTIONS[0], 3)
        with remote.reload() as again:
            assert again.search(QUESTIONS[0], 3) == Retriever(open_index(config), tiny_encoder).search(QUESTIONS[0], 3)


def test_an_actor_that_lacks_its_files_says_so_in_one_line(tiny_encoder, sample_file, tmp_path):
    config = IndexConfig(source=sample_file, limit=3, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    library = open_index(config)
    (library.path / "fast_plaid_index" / "centroids.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"^damaged PLAID index: [^\n]*$"):
        RayRetriever(library, tiny_encoder)
