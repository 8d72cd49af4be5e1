"""A Library of words alone, whose chunks are encoded when they are ranked."""

import dataclasses
import shutil

import pytest

from legal_rag.agent import EvidenceAgent
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, examine, remove_documents
from legal_rag.indexer.ray import build_index_on_ray
from legal_rag.library import Library
from legal_rag.library.plaid.files import PLAID_FOLDER
from legal_rag.retriever import Retriever
from legal_rag.retriever.ranking import WINDOW_WEIGHT, idf_weighted_query

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"


@pytest.fixture(scope="module")
def built(sample_file, tiny_encoder, tmp_path_factory):
    config = IndexConfig(
        source=sample_file, n_bits=0, shard_chunks=50, index_folder=str(tmp_path_factory.mktemp("words"))
    )
    report = build_index(config, tiny_encoder)
    assert (report.tokens, report.chunks > 100, "encode" in report.seconds) == (0, True, False)
    return config


@pytest.fixture
def config(built, tmp_path):
    return dataclasses.replace(built, index_folder=str(tmp_path / "indexes"))


@pytest.fixture
def retriever(built, config, tiny_encoder):
    """Return a retriever of the test's own copy of what was built."""
    shutil.copytree(built.index_folder, config.index_folder)
    return Retriever(Library.open(config.index_folder), tiny_encoder)


def test_reranking_gives_what_the_plaid_index_gives_but_for_its_rounding(retriever, tiny_library, tiny_encoder):
    assert not list(retriever.corpus.path.rglob(PLAID_FOLDER))
    indexed = Retriever(tiny_library, tiny_encoder).search(QUESTION, 10**6, mode="bm25+rerank")
    hits = retriever.search(QUESTION, 10**6)
    scores = {hit.chunk_id: hit.score for hit in indexed}
    assert {hit.chunk_id for hit in hits} == scores.keys()
    assert [hit.score for hit in hits] == pytest.approx([scores[hit.chunk_id] for hit in hits], rel=0.2)


def test_a_score_is_max_sim_of_the_chunk_as_it_would_be_indexed_and_of_its_best_window(retriever, tiny_encoder):
    hit = next(hit for hit in retriever.search(QUESTION, 10**6) if hit.char_start == 0)
    header = f"Titre: {hit.title} | Date: {hit.decision_date}\n"
    (tokens,) = tiny_encoder.query_tokens([QUESTION])
    query = idf_weighted_query(QUESTION, *tokens, retriever.corpus.lexical_index().rarity)
    (document,) = tiny_encoder.encode_documents([header + hit.text])
    similar = query @ document.T
    windows = [similar[:, start : start + 64].max(axis=1).sum() for start in range(0, len(document) - 32, 32)]
    expected = (1 - WINDOW_WEIGHT) * similar.max(axis=1).sum() + WINDOW_WEIGHT * max(windows)
    assert hit.score == pytest.approx(expected, abs=1e-4)


def test_documents_come_and_go_and_the_doctor_finds_nothing(retriever, config, tiny_encoder):
    row = {"id": "neuf", "content": "Le candidat dépose son compte de campagne dans un délai de deux mois."}
    add_documents(IndexConfig(source=[row], index_folder=config.index_folder), tiny_encoder)
    reloaded = retriever.reload()
    assert "neuf" in [hit.doc_id for hit in reloaded.search(QUESTION, 10**6)]
    assert examine(reloaded.corpus) == []
    remove_documents(["neuf"], config.index_folder)
    assert "neuf" not in [hit.doc_id for hit in reloaded.reload().search(QUESTION, 10**6)]


def test_a_compacted_index_without_plaid_files_answers_as_before(retriever, config, tiny_encoder):
    rows = [{"id": f"neuf-{n}", "content": f"Le candidat n° {n} dépose son compte de campagne."} for n in range(3)]
    for row in rows:
        add_documents(IndexConfig(source=[row], index_folder=config.index_folder), tiny_encoder)
    remove_documents(["neuf-1"], config.index_folder)
    worn = retriever.reload()
    before = {hit.chunk_id: hit.score for hit in worn.search(QUESTION, 10**6)}
    report = compact_index(config.index_folder)
    compacted = worn.reload()
    after = {hit.chunk_id: hit.score for hit in compacted.search(QUESTION, 10**6)}
    assert after.keys() == before.keys()
    assert (report.dropped_chunks, report.requantised_chunks) == (1, 0)
    assert report.shards == len(compacted.corpus.manifest["shards"]) < report.shards_before
    assert examine(compacted.corpus) == []
    assert not list(compacted.corpus.path.rglob(PLAID_FOLDER))


def test_what_is_about_plaid_files_is_refused_in_one_line(retriever, config):
    for mode in ("colbert", "hybrid"):
        with pytest.raises(ValueError, match=f"mode '{mode}' needs a PLAID index, and this Library was built without"):
            retriever.search(QUESTION, mode=mode)
    with pytest.raises(ValueError, match=r"built without a PLAID index \(n_bits 0\): build it anew with 4 bits"):
        compact_index(config.index_folder, n_bits=4)
    with pytest.raises(ValueError, match="workers make PLAID shards: n_bits must be 1, 2 or 4, got 0"):
        build_index_on_ray(config)


def test_evidence_mode_counts_ranks_where_scores_are_sums_of_cosines(retriever):
    assert retriever.default_mode == "bm25+rerank"
    prediction = EvidenceAgent(retriever, match_words=False)(QUESTION)
    assert prediction.status == "answered"
    assert prediction.citations[0].doc_id in {hit.doc_id for hit in retriever.search(QUESTION, 3, by_document=True)}
