import dataclasses
import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from legal_rag.corpus import ChunkConfig, SourceOptions, read_documents
from legal_rag.encoder import EncoderConfig
from legal_rag.indexer import IndexConfig, build_index, open_index, preprocess
from legal_rag.library import Library, PlaidShards
from legal_rag.library.bm25 import LEXICAL_FOLDER
from legal_rag.library.checksums import CHECKSUMS


@pytest.fixture
def config(tmp_path, sample_file):
    return IndexConfig(source=sample_file, limit=3, index_folder=str(tmp_path / "indexes"))


def change(config, **values):
    return dataclasses.replace(config, **values)


def files_of(library):
    """Return the files' checksums; but for the index of words, whose parts tantivy names at random, and their list."""
    return {
        path.relative_to(library.path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(library.path.rglob("*"))
        if path.is_file() and not {LEXICAL_FOLDER, CHECKSUMS} & {*path.relative_to(library.path).parts}
    }


def names_in(folder):
    """List a folder of Libraries without the lock files, which stay: removing one is a race."""
    return sorted(path.name for path in Path(folder).iterdir() if not path.name.endswith(".lock"))


def ids_file(folder, *ids):
    path = folder / "ids.txt"
    path.write_text("\n".join(ids), encoding="utf-8")
    return str(path)


# --- what a build makes --------------------------------------------------------------------------------------------


def test_a_build_holds_the_documents_of_its_source(config, tiny_encoder, sample_file):
    report = build_index(config, tiny_encoder)
    opened = open_index(config)
    assert list(opened.documents()) == list(read_documents(sample_file))[:3]
    assert (report.documents, report.bad, report.missing_ids) == (3, [], [])
    assert Path(report.path) == opened.path
    assert report.encoder == tiny_encoder.identity.name
    assert set(report.overlapping()) == {"read", "chunk", "encode", "train", "write_plaid"}
    assert list(report.stages()) == ["open", "shards", "outlines", "graph", "corpus_index", "other"]
    assert sum(report.stages().values()) == pytest.approx(report.seconds["total"])


def test_an_index_finds_a_passage_by_its_own_words(tiny_library, tiny_encoder):
    shards = PlaidShards(tiny_library.shard_folders, device="cpu")
    chunks = tiny_library.chunks_of("FICTIF0101")
    found = [shards.search(tiny_encoder.encode_queries([chunk.text[:150]])[0], 1)[0] for chunk in chunks[1:6]]
    places = [(shard, position) for shard, position, _ in found]
    hits = tiny_library.chunks_at(places)
    assert sum(hit.doc_id == "FICTIF0101" for hit in hits) >= 4


@pytest.mark.slow
def test_the_bundled_encoder_finds_the_decisions_of_the_samples_questions(sample_library, bundled, sample_questions):
    shards = PlaidShards(sample_library.shard_folders, device="cpu")
    queries = bundled.encode_queries([row["question"] for row in sample_questions])
    found = 0
    for row, query in zip(sample_questions, queries, strict=True):
        hits = shards.search(query, 10)
        ids = {chunk.doc_id for chunk in sample_library.chunks_at([(shard, position) for shard, position, _ in hits])}
        found += row["doc_id"] in ids
    assert found >= 0.85 * len(sample_questions)


def test_no_chunk_is_longer_than_the_encoder_reads(tiny_library, tiny_encoder):
    chunks = [chunk.text for doc_id in tiny_library for chunk in tiny_library.chunks_of(doc_id)]
    assert max(tiny_encoder.count_tokens(chunks)) <= tiny_encoder.identity.document_length


def test_the_manifest_says_what_the_index_is(config, tiny_encoder, sample_file):
    report = build_index(change(config, seed=7, n_bits=2), tiny_encoder)
    manifest = json.loads((Path(report.path) / "manifest.json").read_text("utf-8"))
    assert len(manifest.pop("sha256")) == 64
    status = sample_file.stat()
    (shard,) = manifest.pop("shards")
    shard.pop("checksums")
    assert shard == {"path": "fast_plaid_index", "chunks": report.chunks, "tokens": report.tokens}
    assert len(manifest.pop("lineage")) == 64
    vectors = manifest.pop("chunk_vectors")
    assert [(one["file"], one["chunks"]) for one in vectors["segments"]] == [("0-1.npy", report.chunks)]
    fingerprint = json.loads(manifest["source"].pop("fingerprint"))
    assert fingerprint == {"bytes": status.st_size, "changed_ns": status.st_mtime_ns}
    assert manifest == {
        "format_version": 3,
        "commit": 1,
        "updates": [],
        "encoder": dataclasses.asdict(tiny_encoder.identity),
        "chunks": {
            "chunk_tokens": 511,
            "overlap_tokens": 0,
            "header_columns": [["Titre", "title"], ["Date", "decision_date"]],
            "header_on": "first",
            "split_at": "sentences",
        },
        "plaid": {"n_bits": 2, "seed": 7, "shard_chunks": 2560, "keep_embeddings": False},
        "source": {
            "name": "decisions.jsonl",
            "config": None,
            "split": "train",
            "id_column": "id",
            "text_column": "content",
            "html": False,
            "limit": 3,
        },
        "counts": {"documents": 3, "chunks": report.chunks, "tokens": report.tokens, "bad_records": 0},
        "built": {},
    }


def test_the_checksums_are_those_of_the_shards_files(tiny_library):
    (shard,) = tiny_library.manifest["shards"]
    folder = tiny_library.path / shard["path"]
    assert shard["checksums"] == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())
    }
    assert "0.codes.npy" in shard["checksums"]


def test_a_library_holds_nothing_but_its_store_indexes_mapping_manifest_and_shard(tiny_library):
    assert names_in(tiny_library.path) == [
        "checksums.sha256",
        "chunk_vectors",
        "corpus.sqlite",
        "corpus_index.sqlite",
        "doc_mapping.json",
        "fast_plaid_index",
        "graph.sqlite",
        "lexical",
        "manifest.json",
        "outlines.sqlite",
    ]
    assert names_in(tiny_library.path.parent) == ["legal_french_index"]


def test_the_mapping_names_the_document_of_every_position(tiny_library):
    mapping = json.loads((tiny_library.path / "doc_mapping.json").read_text("utf-8"))
    n_chunks = tiny_library.manifest["counts"]["chunks"]
    chunks = tiny_library.chunks_at([(0, position) for position in range(n_chunks)])
    assert mapping["entries"] == {str(position): chunk.doc_id for position, chunk in enumerate(chunks)}
    assert (mapping["dataset"], mapping["split"], mapping["config"]) == ("decisions.jsonl", "train", "")


def test_equal_settings_give_equal_files(config, tiny_encoder, tmp_path):
    build_index(config, tiny_encoder)
    build_index(change(config, index_folder=str(tmp_path / "again")), tiny_encoder)
    first, second = files_of(open_index(config)), files_of(Library.open(tmp_path / "again"))
    assert first == second


def test_another_seed_gives_another_shard(config, tiny_encoder):
    build_index(config, tiny_encoder)
    first = files_of(open_index(config))
    build_index(change(config, seed=1), tiny_encoder)
    assert files_of(open_index(config))["fast_plaid_index/centroids.npy"] != first["fast_plaid_index/centroids.npy"]


def test_an_index_is_built_from_any_iterable_of_rows(config, tiny_encoder):
    rows = ({"ref": number, "texte": f"Attendu que {number}.", "juge": "X"} for number in range(3))
    options = SourceOptions(id_column="ref", text_column="texte")
    build_index(change(config, source=rows, options=options, limit=None), tiny_encoder)
    opened = open_index(config)
    assert {one: opened[one]["content"] for one in opened} == {str(n): f"Attendu que {n}." for n in range(3)}
    assert opened["1"]["juge"] == "X"
    assert opened.manifest["source"]["name"] == "generator"
    assert opened.manifest["source"]["fingerprint"] == ""


def test_bad_records_are_left_out_and_written_into_the_library(config, tiny_encoder, caplog):
    rows = [{"id": "a", "content": "Un."}, {"id": "", "content": "x"}, {"id": "a", "content": "x"}, {"id": "b"}]
    report = build_index(change(config, source=rows, limit=None), tiny_encoder)
    opened = open_index(config)
    assert report.documents == opened.manifest["counts"]["documents"] == 1
    assert opened.manifest["counts"]["bad_records"] == 3
    assert [record.where for record in report.bad] == ["row 1", "row 2", "row 3"]
    lines = (opened.path / "bad_records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [record._asdict() for record in report.bad]
    assert "left out row 2: duplicate id 'a'" in caplog.text


def test_no_more_than_twenty_bad_records_are_told_while_building(config, tiny_encoder, caplog):
    rows = [{"id": "a", "content": "Un."}, *({"id": str(number), "content": " "} for number in range(30))]
    report = build_index(change(config, source=rows, limit=None), tiny_encoder)
    assert len(report.bad) == 30
    assert caplog.text.count("left out") == 20


def test_a_report_is_json(config, tiny_encoder):
    report = build_index(change(config, source=[{"id": "a", "content": "Un."}, {"id": "b"}]), tiny_encoder)
    written = json.loads(json.dumps(report.to_json()))
    assert written["bad"] == [{"where": "row 1", "problem": report.bad[0].problem}]
    assert written["documents"] == 1


def test_the_default_name_and_folder_are_the_ones_opened(tiny_encoder, sample_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build_index(IndexConfig(source=sample_file, limit=1), tiny_encoder)
    assert list(Library.open()) == ["FICTIF0101"]
    assert (tmp_path / "index" / "legal_french_index" / "manifest.json").is_file()


def test_a_source_and_a_folder_under_the_home_folder_are_named_by_a_tilde(
    tiny_encoder, sample_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "d.jsonl").write_bytes(sample_file.read_bytes())
    report = build_index(IndexConfig(source="~/d.jsonl", limit=1, index_folder="~/indexes"), tiny_encoder)
    assert Path(report.path) == tmp_path / "indexes" / "legal_french_index"
    source = Library(Path(report.path)).manifest["source"]
    assert source["name"] == "d.jsonl"
    assert json.loads(source["fingerprint"])["bytes"] == sample_file.stat().st_size


def test_long_documents_are_encoded_in_several_batches(config, tiny_encoder):
    row = {"id": "long", "content": "Attendu que la cour a jugé. " * 3000}
    report = build_index(change(config, source=[row], chunks=ChunkConfig(chunk_tokens=32)), tiny_encoder)
    assert report.chunks > 2 * 256
    opened = open_index(config)
    assert [chunk.chunk_index for chunk in opened.chunks_at([(0, p) for p in range(report.chunks)])] == list(
        range(report.chunks)
    )


def test_preprocess_takes_from_a_row_what_chunking_needs():
    row = {"id": "X", "content": "a<br/>b", "title": "T", "decision_date": "3/2/1998", "solution": "Rejet"}
    assert preprocess(row) == {"content": "a\nb", "doc_id": "X", "title": "T", "decision_date": "1998-02-03"}


@pytest.mark.parametrize("content", [None, "", " ", "<br/>", float("nan")])
def test_preprocess_gives_an_empty_text_where_there_is_none(content):
    empty = {"content": "", "doc_id": "X", "title": "T", "decision_date": ""}
    assert preprocess({"id": "X", "content": content, "title": "T"}) == empty
    assert preprocess({"id": "X", "title": "T"}) == empty


def test_preprocess_takes_the_id_of_another_column():
    row = {"id": 7, "numero": "98-1", "content": " Le  texte."}
    assert preprocess(row, id_column="numero")["doc_id"] == "98-1"
    assert preprocess(row) == {"content": " Le  texte.", "doc_id": "7", "title": "", "decision_date": ""}


@pytest.mark.parametrize("row", [{"content": "x"}, {"id": " ", "content": "x"}, {}])
def test_preprocess_refuses_a_row_without_id(row):
    with pytest.raises(LookupError, match=r"no column|no document"):
        preprocess(row)


# --- which documents -----------------------------------------------------------------------------------------------


def test_documents_of_the_ids_file_come_first_and_others_fill_up_to_the_limit(config, tiny_encoder, tmp_path):
    ids = ids_file(tmp_path, "FICTIF0103", "", "  FICTIF0102  ")
    report = build_index(change(config, ids_file=ids, limit=4), tiny_encoder)
    first_two, others = list(open_index(config))[:2], list(open_index(config))[2:]
    assert first_two == ["FICTIF0102", "FICTIF0103"]
    assert len(others) == 2
    assert not set(others) & set(first_two)
    assert report.missing_ids == []


def test_ids_that_the_source_lacks_are_reported(config, tiny_encoder, tmp_path):
    ids = ids_file(tmp_path, "FICTIF0102", "zz", "absent")
    report = build_index(change(config, ids_file=ids, limit=2), tiny_encoder)
    assert report.missing_ids == ["absent", "zz"]
    assert list(open_index(config)) == ["FICTIF0102", "FICTIF0101"]


def test_ids_beyond_the_limit_are_not_reported_as_missing(config, tiny_encoder, tmp_path):
    ids = ids_file(tmp_path, "FICTIF0101", "FICTIF0102", "FICTIF0103", "absent")
    report = build_index(change(config, ids_file=ids, limit=2), tiny_encoder)
    assert list(open_index(config)) == ["FICTIF0101", "FICTIF0102"]
    assert report.missing_ids == ["absent"]


def test_an_ids_file_without_a_limit_changes_only_the_order(config, tiny_encoder, tmp_path, sample_rows):
    rows = sample_rows[:3]
    ids = ids_file(tmp_path, rows[2]["id"])
    build_index(change(config, source=rows, ids_file=ids, limit=None), tiny_encoder)
    assert list(open_index(config)) == [rows[2]["id"], rows[0]["id"], rows[1]["id"]]


def test_bad_records_are_reported_once_though_the_source_is_read_twice(config, tiny_encoder, tmp_path):
    rows = [{"id": "a", "content": "Un."}, {"id": "b"}, {"id": "c", "content": "Deux."}]
    build = change(config, source=rows, ids_file=ids_file(tmp_path, "c"), limit=None)
    assert len(build_index(build, tiny_encoder).bad) == 1


def test_an_ids_file_with_an_iterator_is_refused(config, tiny_encoder, tmp_path):
    rows = iter([{"id": "a", "content": "Un."}])
    with pytest.raises(ValueError, match="an iterator can be read only once"):
        build_index(change(config, source=rows, ids_file=ids_file(tmp_path, "a")), tiny_encoder)


def test_a_missing_ids_file_is_named(config, tiny_encoder):
    with pytest.raises(FileNotFoundError, match=r"no such ids file: .*nowhere\.txt"):
        build_index(change(config, ids_file="/nowhere.txt"), tiny_encoder)


def test_an_empty_ids_file_is_refused(config, tiny_encoder, tmp_path):
    with pytest.raises(ValueError, match=r"no id in .* \(expected one a line\)"):
        build_index(change(config, ids_file=ids_file(tmp_path, " ", "")), tiny_encoder)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(ValueError, match=f"limit must be at least 1, got {limit}"):
        IndexConfig(limit=limit)


@pytest.mark.parametrize("n_bits", [-1, 3, 8])
def test_other_numbers_of_bits_are_refused(n_bits):
    with pytest.raises(ValueError, match=f"n_bits must be 1, 2 or 4, or 0 .*, got {n_bits}"):
        IndexConfig(n_bits=n_bits)


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/abs", "a/", ".hidden"])
def test_an_index_name_that_is_no_plain_folder_name_is_refused(name):
    with pytest.raises(ValueError, match="index_name must be a plain folder name, got"):
        IndexConfig(index_name=name)


# --- what can go wrong ---------------------------------------------------------------------------------------------


def test_a_wrong_source_is_known_before_the_encoder_is_loaded(tmp_path):
    config = IndexConfig(
        source=str(tmp_path / "no.jsonl"), encoder=EncoderConfig(name="no/such"), index_folder=str(tmp_path / "i")
    )
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: .*no\.jsonl"):
        build_index(config)
    assert not (tmp_path / "i").exists()


def test_an_unknown_encoder_leaves_no_folder(tmp_path, sample_file):
    config = IndexConfig(
        source=sample_file, encoder=EncoderConfig(name=str(tmp_path / "no")), index_folder=str(tmp_path / "i")
    )
    with pytest.raises(FileNotFoundError, match="no encoder"):
        build_index(config)
    assert not (tmp_path / "i").exists()


@pytest.mark.parametrize("rows", [[], [{"id": "a", "content": ""}]])
def test_a_source_without_a_document_is_refused(config, tiny_encoder, rows):
    with pytest.raises(ValueError, match="no document in"):
        build_index(change(config, source=rows), tiny_encoder)


def test_a_column_that_is_not_there_is_named(config, tiny_encoder):
    with pytest.raises(ValueError, match=r"no column 'texte' in .*its columns: .*content"):
        build_index(change(config, options=SourceOptions(text_column="texte")), tiny_encoder)


@pytest.fixture
def built(config, tiny_encoder):
    build_index(config, tiny_encoder)
    return open_index(config)


def assert_untouched(built):
    """Check that the Library of `built` answers as before and lies there alone."""
    opened = Library(built.path)
    assert opened.manifest == built.manifest
    assert list(opened) == ["FICTIF0101", "FICTIF0102", "FICTIF0103"]
    assert opened.document("FICTIF0102").content
    assert len(PlaidShards(opened.shard_folders, device="cpu").search(np.eye(1, 32, dtype=np.float32), 5)) == 5


def test_a_source_that_breaks_off_leaves_the_previous_index_and_is_taken_up(config, built, tiny_encoder, sample_rows):
    def rows():
        yield from sample_rows[:30]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        build_index(change(config, source=rows(), limit=None), tiny_encoder)
    assert_untouched(built)
    assert (built.path.parent / ".legal_french_index.building").is_dir()
    build_index(config, tiny_encoder)
    assert_untouched(built)
    assert names_in(built.path.parent) == ["legal_french_index"]


def test_documents_that_hold_no_chunk_are_refused(config, built, tiny_encoder):
    with pytest.raises(ValueError, match=r"no document in|no chunk in"):
        build_index(change(config, source=[{"id": "a", "content": "\u00a0\u2003"}]), tiny_encoder)
    assert_untouched(built)


def test_a_folder_that_is_not_a_library_is_not_overwritten(config, tiny_encoder):
    target = Path(config.index_folder) / config.index_name
    target.mkdir(parents=True)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"will not overwrite .*: it is not a Library"):
        build_index(config, tiny_encoder)
    assert names_in(target) == ["notes.txt"]


def test_the_second_of_two_builders_gets_one_clear_line(config, tiny_encoder, sample_rows):
    waiting, go_on = threading.Event(), threading.Event()

    def rows():
        yield sample_rows[0]
        waiting.set()
        go_on.wait(60)
        yield sample_rows[1]

    first = threading.Thread(target=build_index, args=(change(config, source=rows(), limit=None), tiny_encoder))
    first.start()
    try:
        assert waiting.wait(60)
        with pytest.raises(ValueError, match=r"another process is making .*: wait for it to end"):
            build_index(config, tiny_encoder)
    finally:
        go_on.set()
        first.join()
    assert list(open_index(config)) == ["FICTIF0101", "FICTIF0102"]


OWN_MOUNTS = ("/usr/bin/env", "unshare", "-rm")  # runs a command that may mount, unseen by all others
BUILD = """
import sys
from legal_rag.encoder.encoder import build_encoder
from legal_rag.indexer.build import IndexConfig, build_index
source, model, folder = sys.argv[1:]
try:
    build_index(IndexConfig(source=source, index_folder=folder), build_encoder(model))
except OSError as error:
    print(f"OSError: {error}")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [40, 2000, 5600])
def test_a_full_disk_is_an_os_error_and_no_library(tmp_path, tiny_model_folder, sample_file, kilobytes):
    """The sample takes 6.5 MB on its way; the room ends in the store, in the vectors, or in the shard's residuals."""
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = f'mount -t tmpfs -o size={kilobytes}k tmpfs "$1" && shift && "$@"; echo "status $?"; find "$DISK"'
    command = [sys.executable, "-c", BUILD, str(sample_file), str(tiny_model_folder), str(disk)]
    probe = subprocess.run([*OWN_MOUNTS, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this system lets nobody mount a small disk of one's own")
    environment = {**os.environ, "DISK": str(disk)}
    run = subprocess.run(
        [*OWN_MOUNTS, "sh", "-c", inside, "sh", str(disk), *command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    lines = run.stdout.splitlines()
    assert lines[0].startswith("OSError: "), run.stdout + run.stderr
    assert lines[1] == "status 0"
    assert str(disk / "legal_french_index") not in lines


def test_bad_records_are_told_with_an_ids_file_too(tmp_path, tiny_encoder, sample_rows):
    source = tmp_path / "rows.jsonl"
    rows = [json.dumps(sample_rows[0]), json.dumps({"id": "B", "content": " "}), "broken", json.dumps(sample_rows[1])]
    source.write_text("\n".join(rows), "utf-8")
    (tmp_path / "ids").write_text(f"{sample_rows[0]['id']}\n{sample_rows[1]['id']}\n", "utf-8")
    config = IndexConfig(source=source, ids_file=str(tmp_path / "ids"), limit=2, index_folder=str(tmp_path / "index"))
    report = build_index(config, tiny_encoder)
    assert [record.where for record in report.bad] == ["rows.jsonl, line 2", "rows.jsonl, line 3"]
