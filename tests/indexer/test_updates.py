"""Adding, replacing, removing and compacting: what searches, look-ups and the disk show after each."""

import dataclasses
import hashlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from legal_rag.base.files import locked
from legal_rag.cli import main
from legal_rag.corpus import ChunkConfig, read_documents
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import (
    IndexConfig,
    add_documents,
    build_index,
    compact_index,
    examine,
    open_index,
    remove_documents,
)
from legal_rag.indexer.build import plan_rebuild, rebuild
from legal_rag.indexer.commit import SHARED_BY_SHARDS
from legal_rag.library import Filters, Library
from legal_rag.library.library import STORE
from legal_rag.library.outlines import count_outlines
from legal_rag.retriever import Retriever

SHARD_CHUNKS = 24
WRITTEN = {"checksums.sha256", "corpus.sqlite", "corpus_index.sqlite", "manifest.json"}  # by each commit
QUERY = "trouble anormal de voisinage"


@pytest.fixture
def config(tmp_path, sample_rows):
    return IndexConfig(source=sample_rows[:10], shard_chunks=SHARD_CHUNKS, index_folder=str(tmp_path / "indexes"))


def change(config, **values):
    return dataclasses.replace(config, **values)


@pytest.fixture(scope="module")
def built(sample_rows, tiny_encoder, tmp_path_factory):
    config = IndexConfig(
        source=sample_rows[:10], shard_chunks=SHARD_CHUNKS, index_folder=str(tmp_path_factory.mktemp("built"))
    )
    build_index(config, tiny_encoder)
    return Path(config.index_folder)


@pytest.fixture
def library(config, built):
    """Return a Library of the test's own: a copy of the one that was built."""
    shutil.copytree(built, config.index_folder)
    return open_index(config)


def checksums(library):
    return {
        path.relative_to(library.path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in library.path.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def hits(library, encoder, k=1000, **filters):
    """Search by the token vectors alone: a score is a chunk's own, whatever else the Library holds."""
    return Retriever(library, encoder).search(QUERY, k, mode="colbert", **filters)


def scores_of(found):
    return {hit.chunk_id: hit.score for hit in found}


def assert_alike(scores, others):
    """Check that two searches give the same chunks scores that differ as two quantisations of one vector do."""
    assert scores.keys() == others.keys()
    differences = [abs(scores[chunk_id] - others[chunk_id]) / others[chunk_id] for chunk_id in scores]
    assert sum(differences) / len(differences) < 0.06  # one bit a dimension, 32 dimensions


def found_ids(library, encoder, **filters):
    return {hit.doc_id for hit in hits(library, encoder, **filters)}


def test_added_documents_are_found_and_the_others_are_not_written_again(config, library, tiny_encoder, sample_rows):
    before = checksums(library)
    report = add_documents(change(config, source=sample_rows[10:13]), tiny_encoder)
    opened, after = open_index(config), checksums(library)
    assert (report.documents, report.unchanged, report.replaced) == (3, 0, 0)
    assert list(opened.documents()) == list(read_documents(sample_rows[:13]))
    assert found_ids(opened, tiny_encoder) == {row["id"] for row in sample_rows[:13]}
    changed = {name for name in before if after[name] != before[name]}
    assert {name for name in changed if not name.startswith("lexical/")} == {
        *WRITTEN,
        *SHARED_BY_SHARDS,
        "graph.sqlite",
        "outlines.sqlite",
    }
    assert examine(opened) == []


def test_an_index_that_grew_finds_what_one_built_at_once_finds(config, library, tiny_encoder, sample_rows, tmp_path):
    add_documents(change(config, source=sample_rows[10:15]), tiny_encoder)
    whole = change(config, source=sample_rows[:15], index_folder=str(tmp_path / "whole"))
    build_index(whole, tiny_encoder)
    grown, built = (hits(open_index(one), tiny_encoder) for one in (config, whole))
    assert {hit.chunk_id: (hit.char_start, hit.char_end) for hit in grown} == {
        hit.chunk_id: (hit.char_start, hit.char_end) for hit in built
    }
    assert_alike(scores_of(grown), scores_of(built))


def test_documents_that_are_there_unchanged_are_passed_over_and_a_changed_one_replaced(
    config, library, tiny_encoder, sample_rows
):
    before = checksums(library)
    report = add_documents(change(config, source=sample_rows[5:10]), tiny_encoder)
    assert (report.documents, report.unchanged) == (0, 5)
    assert checksums(library) == before
    changed = {**sample_rows[4], "content": "Le trouble anormal de voisinage se passe de faute. " * 3}
    report = add_documents(change(config, source=[changed, sample_rows[5]]), tiny_encoder)
    opened = open_index(config)
    assert (report.documents, report.unchanged, report.replaced) == (1, 1, 1)
    assert (len(opened), opened.manifest["counts"]["documents"]) == (10, 10)
    assert opened.document(changed["id"]).content == changed["content"]
    texts = [hit.text for hit in hits(opened, tiny_encoder) if hit.doc_id == changed["id"]]
    assert texts == [changed["content"].strip()]
    assert examine(opened) == []


def test_an_addition_is_chunked_as_the_library_was(config, tiny_encoder, sample_rows):
    build_index(change(config, chunks=ChunkConfig(chunk_tokens=64, header_on="every")), tiny_encoder)
    add_documents(change(config, source=sample_rows[20:21]), tiny_encoder)
    opened = open_index(config)
    assert opened.manifest["chunks"]["chunk_tokens"] == 64
    chunks = [chunk.text for chunk in opened.chunks_of(sample_rows[20]["id"])]
    assert max(tiny_encoder.count_tokens(chunks)) <= 64


def test_the_manifest_tells_of_each_addition(config, library, tiny_encoder, sample_rows):
    rows = [*sample_rows[10:12], {"id": "", "content": "sans identifiant"}]
    report = add_documents(change(config, source=rows), tiny_encoder)
    manifest = open_index(config).manifest
    (update,) = manifest["updates"]
    assert (manifest["commit"], update["commit"], update["added"], update["removed"]) == (2, 2, 2, 0)
    assert manifest["counts"]["bad_records"] == update["bad_records"] == len(report.bad) == 1
    assert (library.path / "bad_records.jsonl").read_text("utf-8").count("\n") == 1
    assert report.tokens == manifest["shards"][-1]["tokens"]


def test_counts_are_those_of_the_present_documents(config, library, tiny_encoder, sample_rows):
    ids = [row["id"] for row in sample_rows[:10]]
    add_documents(change(config, source=[{**sample_rows[4], "content": "Le trouble anormal."}]), tiny_encoder)
    remove_documents(ids[:3], config.index_folder, config.index_name)
    left = open_index(config)
    counted = left.manifest["counts"], count_outlines(left.path, left.path / STORE)
    compact_index(config.index_folder, config.index_name)
    whole = open_index(config)
    assert counted == (whole.manifest["counts"], 7)
    remove_documents(ids[3:], config.index_folder, config.index_name)
    assert open_index(config).manifest["counts"] == {"documents": 0, "chunks": 0, "tokens": 0, "bad_records": 0}


@pytest.mark.parametrize("change_library", [add_documents, lambda config, encoder: compact_index(config.index_folder)])
def test_nothing_can_be_changed_where_there_is_no_library(config, tiny_encoder, change_library):
    with pytest.raises(FileNotFoundError, match="no index at"):
        change_library(config, tiny_encoder)
    assert list(Path(config.index_folder).glob(".*.lock")) == []


def test_neither_another_encoder_nor_a_second_writer_can_add(config, library, bundled, sample_rows, tiny_encoder):
    with pytest.raises(ValueError, match="wrong encoder for this index"):
        add_documents(change(config, source=sample_rows[10:12]), bundled)
    assert len(open_index(config)) == 10
    with locked(library.path), pytest.raises(ValueError, match=r"another process is making .*: wait for it to end"):
        add_documents(change(config, source=sample_rows[10:12]), tiny_encoder)


def test_an_open_reader_stays_at_its_commit_until_it_reloads(config, library, tiny_encoder, sample_rows):
    reader = Retriever(library, tiny_encoder)
    before = reader.search(QUERY, 100)
    changed = {**sample_rows[0], "title": "Un autre titre"}
    add_documents(change(config, source=[changed, sample_rows[12]]), tiny_encoder)
    remove_documents([sample_rows[1]["id"]], config.index_folder, config.index_name)
    assert reader.search(QUERY, 100) == before
    assert library.document(sample_rows[0]["id"]).title == sample_rows[0]["title"]
    assert sample_rows[12]["id"] not in library
    assert sample_rows[1]["id"] in list(library)
    again = reader.reload()
    assert again.corpus.document(sample_rows[0]["id"]).title == "Un autre titre"
    ids = {hit.doc_id for hit in again.search(QUERY, 1000)}
    assert ids == {row["id"] for row in (*sample_rows[:10], sample_rows[12])} - {sample_rows[1]["id"]}


def test_rows_of_a_commit_without_its_manifest_are_not_seen_and_the_next_writer_drops_them(
    config, library, tiny_encoder, sample_rows
):
    manifest = (library.path / "manifest.json").read_bytes()
    add_documents(change(config, source=[{**sample_rows[0], "title": "Nouveau"}, sample_rows[11]]), tiny_encoder)
    (library.path / "manifest.json").write_bytes(manifest)  # as if killed before the manifest was put in place
    opened = open_index(config)
    assert list(opened.documents()) == list(library.documents())
    assert hits(opened, tiny_encoder) == hits(library, tiny_encoder)
    remove_documents([sample_rows[2]["id"]], config.index_folder, config.index_name)
    opened = open_index(config)
    assert len(list(opened)) == len(opened) == 9
    assert opened.document(sample_rows[0]["id"]).title == sample_rows[0]["title"]
    assert examine(opened) == []


def test_records_left_out_are_listed_once_though_a_commit_was_killed(
    config, library, tiny_encoder, sample_rows, monkeypatch
):
    source = [*sample_rows[10:12], {"id": "sans texte", "content": ""}]
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.commit.LibraryUpdate._write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            add_documents(change(config, source=source), tiny_encoder)
    add_documents(change(config, source=source), tiny_encoder)
    nothing_new = [sample_rows[10], {"id": "sans texte non plus", "content": ""}]
    add_documents(change(config, source=nothing_new), tiny_encoder)
    opened = open_index(config)
    listed = (opened.path / "bad_records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["where"] for line in listed] == ["row 2", "row 1"]
    assert opened.manifest["counts"]["bad_records"] == 2
    assert examine(opened) == []


def killed(*_, **__):
    raise KeyboardInterrupt


def test_removed_documents_are_found_no_longer(config, library, tiny_encoder, sample_rows):
    gone = [sample_rows[3]["id"], sample_rows[7]["id"]]
    before = checksums(library)
    assert remove_documents(gone, config.index_folder, config.index_name) == 2
    opened, after = open_index(config), checksums(library)
    left = {row["id"] for row in sample_rows[:10]} - set(gone)
    assert set(opened) == found_ids(opened, tiny_encoder) == left
    assert found_ids(opened, tiny_encoder, filters=Filters(doc_ids=[*gone, sample_rows[0]["id"]])) == {
        sample_rows[0]["id"]
    }
    assert opened.chunks_of(gone[0]) == []
    with pytest.raises(LookupError, match=f"no document '{gone[0]}'"):
        opened.document(gone[0])
    assert {name for name in before if after[name] != before[name]} == {*WRITTEN, "graph.sqlite"}
    assert examine(opened) == []


def test_what_is_removed_does_not_shorten_a_list_of_hits_of_which_none_may_be_left(config, library, tiny_encoder):
    best = hits(library, tiny_encoder, 5)
    remove_documents([best[0].doc_id], config.index_folder, config.index_name)
    left = hits(open_index(config), tiny_encoder, 5)
    assert len(left) == 5
    assert all(hit.doc_id != best[0].doc_id for hit in left)
    remove_documents(list(open_index(config)), config.index_folder, config.index_name)
    opened = open_index(config)
    assert list(opened) == hits(opened, tiny_encoder) == []
    with pytest.raises(ValueError, match="no document is left in"):
        compact_index(config.index_folder)


def test_a_document_can_be_added_again_after_its_removal(config, library, tiny_encoder, sample_rows):
    remove_documents([sample_rows[3]["id"]], config.index_folder, config.index_name)
    report = add_documents(change(config, source=[sample_rows[3]]), tiny_encoder)
    assert (report.documents, report.replaced) == (1, 0)
    assert found_ids(open_index(config), tiny_encoder) == {row["id"] for row in sample_rows[:10]}


@pytest.mark.parametrize("absent", ["absent", "\udcff"])
def test_an_unknown_document_removes_nothing(config, library, sample_rows, absent):
    with pytest.raises(LookupError, match="no document '.*' in .*: nothing was removed"):
        remove_documents([sample_rows[0]["id"], absent], config.index_folder, config.index_name)
    assert len(open_index(config)) == len(list(open_index(config))) == 10


@pytest.fixture
def worn(config, library, tiny_encoder, sample_rows):
    """Return a Library after three small additions, a replacement and two removals."""
    for start in (10, 12, 14):
        add_documents(change(config, source=sample_rows[start : start + 2]), tiny_encoder)
    add_documents(change(config, source=[{**sample_rows[1], "title": "Un autre titre"}]), tiny_encoder)
    remove_documents([sample_rows[2]["id"], sample_rows[11]["id"]], config.index_folder, config.index_name)
    return open_index(config)


def test_a_compacted_library_answers_as_before_and_so_does_a_reader_of_the_one_before(config, worn, tiny_encoder):
    (worn.path / "instructions.md").write_text("Réponds en français.", encoding="utf-8")
    documents, chunks = list(worn.documents()), {one: worn.chunks_of(one) for one in worn}
    reader, before = Retriever(worn, tiny_encoder), hits(worn, tiny_encoder)
    first = reader.search(QUERY, 50)
    report = compact_index(config.index_folder)
    opened = open_index(config)
    assert list(opened.documents()) == documents
    assert {one: opened.chunks_of(one) for one in opened} == chunks
    assert scores_of(hits(opened, tiny_encoder)) == scores_of(before)
    assert reader.search(QUERY, 50) == first
    assert report.dropped_chunks > report.requantised_chunks == 0
    assert (report.shards_before, report.shards) == (len(worn.manifest["shards"]), len(opened.manifest["shards"]))
    assert report.shards < report.shards_before
    assert opened.removed_positions() == [pytest.approx([])] * report.shards
    assert examine(opened) == []
    assert (opened.path / "instructions.md").read_text(encoding="utf-8") == "Réponds en français."
    assert sorted(path.name for path in Path(config.index_folder).iterdir() if path.suffix != ".lock") == [
        "legal_french_index"
    ]


@pytest.mark.parametrize("retrain", [False, True])
def test_a_compaction_cut_off_leaves_the_library_as_it_was(config, worn, tiny_encoder, monkeypatch, retrain):
    def full_disk(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.compaction._compacted_manifest", full_disk)
        with pytest.raises(OSError, match="No space left"):
            compact_index(config.index_folder, retrain=retrain)
    assert hits(open_index(config), tiny_encoder) == hits(worn, tiny_encoder)
    compact_index(config.index_folder, retrain=retrain)
    assert list(open_index(config).documents()) == list(worn.documents())
    assert examine(open_index(config)) == []


def test_shards_are_quantised_anew_without_the_encoder(config, tiny_encoder, sample_rows):
    build_index(change(config, n_bits=4), tiny_encoder)
    add_documents(change(config, source=sample_rows[10:12]), tiny_encoder)
    remove_documents([sample_rows[5]["id"]], config.index_folder, config.index_name)
    before = scores_of(hits(open_index(config), tiny_encoder))
    report = compact_index(config.index_folder, n_bits=2)
    opened = open_index(config)
    assert report.requantised_chunks == opened.manifest["counts"]["chunks"]
    assert opened.manifest["plaid"]["n_bits"] == 2
    metadata = [json.loads((shard.folder / "metadata.json").read_text()) for shard in opened.shards]
    assert {one["nbits"] for one in metadata} == {2}
    assert_alike(scores_of(hits(opened, tiny_encoder)), before)
    compact_index(config.index_folder, n_bits=4)
    assert open_index(config).manifest["plaid"]["n_bits"] == 4


def codebooks(library):
    return {shard["checksums"]["centroids.npy"] for shard in library.manifest["shards"]}


def test_all_shards_share_one_codebook_until_it_is_trained_anew(config, worn):
    assert len(codebooks(worn)) == 1
    compact_index(config.index_folder)
    assert codebooks(open_index(config)) == codebooks(worn)
    compact_index(config.index_folder, retrain=True)
    assert len(codebooks(open_index(config))) == 1
    assert codebooks(open_index(config)) != codebooks(worn)


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda file: file.unlink(), r"incomplete PLAID index: no centroids.npy"),
        (lambda file: file.write_bytes(file.read_bytes()[:-8]), "damaged PLAID index: .*centroids.npy"),
    ],
)
def test_nothing_is_added_with_a_damaged_codebook(config, library, tiny_encoder, sample_rows, harm, problem):
    before = open_index(config).manifest
    harm(library.path / "fast_plaid_index" / "centroids.npy")
    with pytest.raises((OSError, ValueError), match=problem):
        add_documents(change(config, source=sample_rows[10:12]), tiny_encoder)
    assert open_index(config).manifest == before


def test_chunk_vectors_are_made_of_the_stored_codes(config, library):
    made = {file.name: file.read_bytes() for file in (library.path / "chunk_vectors").iterdir()}
    manifest = library.manifest
    shutil.rmtree(library.path / "chunk_vectors")
    plan = plan_rebuild(library, ["vectors"], ExtractionSettings())
    assert [one.documents for one in plan] == [10]
    rebuild(library, plan, ExtractionSettings())
    assert {file.name: file.read_bytes() for file in (library.path / "chunk_vectors").iterdir()} == made
    assert open_index(config).manifest == manifest
    assert [one.documents for one in plan_rebuild(open_index(config), ["vectors"], ExtractionSettings())] == [0]


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(file.read_bytes()[:-1] + b"!"),
    ],
)
@pytest.mark.parametrize("name", ["frame.npy", "0-*.npy"])
def test_damaged_chunk_vectors_are_named_and_made_anew(config, library, tiny_encoder, name, harm):
    before = hits(library, tiny_encoder)
    (file,) = (library.path / "chunk_vectors").glob(name)
    harm(file)
    (problem,) = examine(open_index(config))
    assert file.name in problem
    assert "legal-rag rebuild --only vectors" in problem
    plan = plan_rebuild(library, ["vectors"], ExtractionSettings())
    rebuild(library, plan, ExtractionSettings())
    assert examine(open_index(config)) == []
    assert hits(open_index(config), tiny_encoder) == before


def command(config, *arguments):
    return main([*arguments, "--index-folder", config.index_folder])


def test_the_command_line_adds_removes_and_compacts(config, library, tiny_encoder, sample_rows, tmp_path, capsys):
    source = tmp_path / "more.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in sample_rows[8:12]), "utf-8")
    assert command(config, "add", str(source), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["documents"], report["unchanged"]) == (2, 2)
    assert command(config, "remove", sample_rows[0]["id"], sample_rows[9]["id"], "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"removed": 2, "dropped_files": []}
    assert command(config, "compact", "--json") == 0
    assert json.loads(capsys.readouterr().out)["dropped_chunks"] > 0
    assert command(config, "doctor") == 0
    assert capsys.readouterr().out == "no problem found\n"
    assert set(open_index(config)) == {row["id"] for row in sample_rows[1:12]} - {sample_rows[9]["id"]}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["add"], "Missing argument 'SOURCE'"),
        (["add", "absent.jsonl"], "absent.jsonl"),
        (["remove"], "give ids"),
        (["remove", "absent"], "no document 'absent'"),
        (["compact", "--n-bits", "3"], "n_bits must be 1, 2 or 4, got 3"),
    ],
)
def test_bad_input_is_one_line_and_status_1(config, library, arguments, problem, capsys):
    before = checksums(library)
    assert command(config, *arguments) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert problem in told.err
    assert told.err.count("\n") == 1
    assert checksums(library) == before


def test_the_doctor_counts_rows_and_measures_offsets_and_an_update_that_fails_keeps_the_commit(config, library):
    with pytest.raises(LookupError, match="absent"):
        remove_documents(["absent"], config.index_folder, config.index_name)
    assert Library(library.path).commit == 1
    with sqlite3.connect(library.path / "corpus.sqlite") as connection:
        connection.execute("UPDATE chunks SET char_end = 10000000 WHERE document_key = 1 AND chunk_index = 0")
        connection.execute("DELETE FROM chunks WHERE document_key = 2 AND chunk_index = 0")
    problems = examine(open_index(config))
    assert any("is said to be characters 0 to 10000000, which it has not" in problem for problem in problems)
    assert any("the manifest says" in problem for problem in problems)
