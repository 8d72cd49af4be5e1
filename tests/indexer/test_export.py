"""A Library as an index of PyLate's form: PyLate and fast-plaid open it, and so do we."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from legal_rag.indexer import (
    IndexConfig,
    add_documents,
    build_index,
    compact_index,
    examine,
    export_pylate,
    import_pylate,
    open_index,
    remove_documents,
)
from legal_rag.indexer import commit as commits
from legal_rag.library import Library, PlaidShards
from legal_rag.library.plaid.files import open_files
from legal_rag.retriever import Retriever

REMOVED = "FICTIF0104"
QUESTIONS = ["Le compte de campagne a été déposé hors délai.", "La faute du chirurgien", "trouble anormal de voisinage"]


@pytest.fixture(scope="module")
def library(sample_rows, tiny_encoder, tmp_path_factory):
    """Three shards, a document of which was removed."""
    folder = str(tmp_path_factory.mktemp("index"))
    config = IndexConfig(source=sample_rows[:24], index_folder=folder, shard_chunks=60)
    build_index(config, tiny_encoder)
    remove_documents([REMOVED], folder)
    return open_index(config)


def scores(library, query):
    """Score all chunks by exact MaxSim over the Library's shards."""
    found = PlaidShards(library.shards).search(query, 10_000)
    chunks = library.chunks_at([(shard, position) for shard, position, _ in found])
    return {f"{chunk.doc_id}-{chunk.chunk_index}": score for chunk, (*_, score) in zip(chunks, found, strict=True)}


def opened_by_pylate(folder, name="legal_french_index", **settings):
    from pylate import indexes

    return indexes.PLAID(str(folder), name, override=False, device="cpu", show_progress=False, **settings)


def test_pylate_gives_the_scores_of_a_library_of_one_shard(tiny_library, tiny_encoder, tmp_path):
    index = export_pylate(tiny_library, tmp_path / "out")
    assert (index.index_name, index.n_ivf_probe) == (tiny_library.path.name, 8)
    plaid = opened_by_pylate(tmp_path / "out", index.index_name)
    queries = tiny_encoder.encode_queries(QUESTIONS)
    for query, found in zip(queries, plaid(queries, k=10), strict=True):
        ours = scores(tiny_library, query)
        assert [one["score"] for one in found] == pytest.approx([ours[one["id"]] for one in found], abs=0.1)
        assert found[0]["score"] == pytest.approx(max(ours.values()), abs=0.1)


def test_pylate_finds_in_one_index_what_several_shards_hold(library, tiny_encoder, tmp_path):
    assert len(library.shards) >= 3
    index = export_pylate(library, tmp_path / "out")
    plaid = opened_by_pylate(tmp_path / "out", n_ivf_probe=index.n_ivf_probe)
    queries = tiny_encoder.encode_queries(QUESTIONS)
    for query, found in zip(queries, plaid(queries, k=10), strict=True):
        ours = scores(library, query)
        assert [one["score"] for one in found] == pytest.approx([ours[one["id"]] for one in found], rel=0.02)
        assert found[0]["score"] == pytest.approx(max(ours.values()), rel=0.02)
    assert index.chunks == len(list(library.chunk_ids()))
    assert REMOVED not in {doc_id for doc_id, _ in library.chunk_ids()}


def test_the_export_opens_here_too_by_the_mapping_at_its_root(library, sample_rows, tiny_encoder, tmp_path):
    export_pylate(library, tmp_path / "out")
    mapping = json.loads((tmp_path / "out" / "doc_mapping.json").read_text("utf-8"))
    assert list(mapping) == ["dataset", "split", "config", "entries"]
    assert list(mapping["entries"].values()) == [doc_id for doc_id, _ in library.chunk_ids()]
    cfg = IndexConfig(source=sample_rows, index_folder=str(tmp_path / "again"))
    imported = Library(import_pylate(tmp_path / "out" / "legal_french_index", cfg, tiny_encoder).path)
    hits = [Retriever(one, tiny_encoder).search(QUESTIONS[0], 1, mode="colbert")[0] for one in (library, imported)]
    assert hits[0].chunk_id == hits[1].chunk_id


def test_one_shard_is_copied_as_it_is(tiny_library, tmp_path):
    export_pylate(tiny_library, tmp_path / "out")
    ours = open_files(tiny_library.shards[0])
    theirs = open_files(tmp_path / "out" / tiny_library.path.name / "fast_plaid_index")
    for name in ("centroids", "bucket_weights", "passage_tokens"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    assert all(np.array_equal(a, b) for a, b in zip(ours.parts[0], theirs.parts[0], strict=True))


def test_a_folder_that_is_there_is_left_alone_and_a_library_without_plaid_has_nothing_to_export(
    tiny_library, tmp_path, sample_rows, tiny_encoder
):
    (tmp_path / "a.txt").write_text("à moi", encoding="utf-8")
    with pytest.raises(ValueError, match="will not overwrite .* .expected a new folder"):
        export_pylate(tiny_library, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    config = IndexConfig(source=sample_rows[:2], index_folder=str(tmp_path), n_bits=0)
    build_index(config, tiny_encoder)
    with pytest.raises(ValueError, match="no PLAID index to export"):
        export_pylate(open_index(config), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def config(sample_rows, tmp_path):
    return IndexConfig(source=sample_rows[:10], index_folder=str(tmp_path / "index"), shard_chunks=20)


def found_by_fast_plaid(folder, query):
    from fast_plaid.search import FastPlaid

    copied = shutil.copytree(folder, folder.with_name("opened"))  # it writes files of its own
    try:
        (found,) = FastPlaid(str(copied), device="cpu").search(query[None], top_k=20, n_ivf_probe=8)
    finally:
        shutil.rmtree(copied)
    return found


def check_whole(library, query):
    """Check that fast-plaid finds all that a Library has."""
    import torch

    found = found_by_fast_plaid(library.path / "fast_plaid_index", torch.from_numpy(query))
    mapping = json.loads((library.path / "doc_mapping.json").read_text("utf-8"))["entries"]
    n_chunks = sum(shard["chunks"] for shard in library.manifest["shards"])
    assert list(mapping) == [str(position) for position in range(n_chunks)]
    ours = scores(library, query)
    best = {doc_id: max(ours[key] for key in ours if key.rpartition("-")[0] == doc_id) for doc_id in library}
    assert found[0][1] == pytest.approx(best[mapping[str(found[0][0])]], rel=0.02)
    assert examine(library) == []
    assert not (library.path / "shards").exists()


@pytest.mark.slow
def test_fast_plaid_finds_the_chunks_of_all_shards_in_the_library_itself(config, tiny_encoder, sample_rows):
    build_index(config, tiny_encoder)
    (query,) = tiny_encoder.encode_queries(QUESTIONS[:1])
    assert len(open_index(config).shards) > 2
    check_whole(open_index(config), query)
    add_documents(replace(config, source=sample_rows[12:20]), tiny_encoder)
    check_whole(open_index(config), query)
    remove_documents([sample_rows[3]["id"]], config.index_folder)
    compact_index(config.index_folder)
    check_whole(open_index(config), query)


def test_an_addition_cut_off_before_its_commit_is_overwritten_by_the_next(
    config, tiny_encoder, sample_rows, monkeypatch
):
    build_index(config, tiny_encoder)
    (query,) = tiny_encoder.encode_queries(QUESTIONS[:1])
    before = scores(open_index(config), query)
    with monkeypatch.context() as patch:
        patch.setattr(commits, "write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            add_documents(replace(config, source=sample_rows[12:20]), tiny_encoder)
    assert scores(open_index(config), query) == before
    add_documents(replace(config, source=sample_rows[30:32]), tiny_encoder)
    assert len(open_index(config).shards) == len(
        list((open_index(config).path / "fast_plaid_index").glob("*.codes.npy"))
    )
    check_whole(open_index(config), query)
