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

from legal_rag.corpus import SourceOptions, read_documents
from legal_rag.encoder import EncoderConfig, build_encoder
from legal_rag.indexer import IndexConfig, build_index, open_index, preprocess
from legal_rag.library import Library, PlaidShards
from legal_rag.library.bm25 import LEXICAL_FOLDER
from legal_rag.library.manifest import CHECKSUMS


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


def test_a_build_holds_the_documents_of_its_source(config, tiny_encoder, sample_file):
    report = build_index(config, tiny_encoder)
    opened = open_index(config)
    assert list(opened.documents()) == list(read_documents(sample_file))[:3]
    assert (report.documents, report.bad, report.missing_ids) == (3, [], [])
    assert Path(report.path) == opened.path
    assert report.encoder == tiny_encoder.identity.name
    assert set(report.overlapping()) == {"read", "chunk", "encode", "train", "write_plaid"}
    assert list(report.stages()) == ["open", "shards", "parts", "other"]
    assert sum(report.stages().values()) == pytest.approx(report.seconds["total"])


def test_builds_are_equal_byte_for_byte_whatever_the_number_of_threads(
    config, tiny_model_folder, monkeypatch, tmp_path
):
    config, built = change(config, limit=None, shard_chunks=150), []
    for n_threads in (1, 3):
        monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
        folder = change(config, index_folder=str(tmp_path / str(n_threads)))
        build_index(folder, build_encoder(str(tiny_model_folder)))
        built.append(open_index(folder))
    first, second = built
    assert len(first.shards) > 1
    assert files_of(first) == files_of(second)
    ranked = [library.lexical_index().search("le juge et la décision", 100) for library in built]
    assert ranked[0] == ranked[1]


def test_an_index_finds_a_passage_by_its_own_words_and_no_chunk_is_longer_than_the_encoder_reads(
    tiny_library, tiny_encoder
):
    shards = PlaidShards(tiny_library.shards)
    chunks = tiny_library.chunks_of("FICTIF0101")
    found = [shards.search(tiny_encoder.encode_queries([chunk.text[:150]])[0], 1)[0] for chunk in chunks[1:6]]
    places = [(shard, position) for shard, position, _ in found]
    hits = tiny_library.chunks_at(places)
    assert sum(hit.doc_id == "FICTIF0101" for hit in hits) >= 4
    chunks = [chunk.text for doc_id in tiny_library for chunk in tiny_library.chunks_of(doc_id)]
    assert max(tiny_encoder.count_tokens(chunks)) <= tiny_encoder.identity.document_length


@pytest.mark.slow
def test_the_bundled_encoder_finds_the_decisions_of_the_samples_questions(sample_library, bundled, sample_questions):
    shards = PlaidShards(sample_library.shards)
    queries = bundled.encode_queries([row["question"] for row in sample_questions])
    found = 0
    for row, query in zip(sample_questions, queries, strict=True):
        hits = shards.search(query, 10)
        ids = {chunk.doc_id for chunk in sample_library.chunks_at([(shard, position) for shard, position, _ in hits])}
        found += row["doc_id"] in ids
    assert found >= 0.85 * len(sample_questions)


def test_the_manifest_says_what_the_index_is(config, tiny_encoder):
    report = build_index(change(config, seed=7, n_bits=2), tiny_encoder)
    manifest = json.loads((Path(report.path) / "manifest.json").read_text("utf-8"))
    (shard,) = manifest.pop("shards")
    shard.pop("checksums")
    assert shard == {"path": "fast_plaid_index", "chunks": report.chunks, "tokens": report.tokens}
    assert len(manifest.pop("lineage")) == 64
    vectors = manifest.pop("chunk_vectors")
    assert [(one["file"], one["chunks"]) for one in vectors["segments"]] == [("0-1.npy", report.chunks)]
    assert manifest["encoder"] == dataclasses.asdict(tiny_encoder.identity)
    assert (manifest["chunks"]["chunk_tokens"], manifest["chunks"]["header_on"]) == (511, "first")
    assert manifest["plaid"] == {"n_bits": 2, "seed": 7, "shard_chunks": 2560}
    assert (manifest["source"]["name"], manifest["source"]["limit"]) == ("decisions.jsonl", 3)
    counts = {"documents": 3, "chunks": report.chunks, "tokens": report.tokens, "bad_records": 0}
    assert (manifest["format_version"], manifest["commit"], manifest["counts"]) == (3, 1, counts)


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


def test_equal_settings_give_equal_files_and_another_seed_another_shard(config, tiny_encoder, tmp_path):
    first, second, other = (
        Library(Path(build_index(change(config, index_folder=str(tmp_path / name), seed=seed), tiny_encoder).path))
        for name, seed in (("first", 0), ("again", 0), ("other", 1))
    )
    assert files_of(first) == files_of(second)
    centroids = "fast_plaid_index/centroids.npy"
    assert files_of(other)[centroids] != files_of(first)[centroids]


def test_an_index_is_built_from_any_iterable_of_rows(config, tiny_encoder):
    rows = ({"ref": number, "texte": f"Attendu que {number}.", "juge": "X"} for number in range(3))
    options = SourceOptions(id_column="ref", text_column="texte")
    build_index(change(config, source=rows, options=options, limit=None), tiny_encoder)
    opened = open_index(config)
    assert {one: opened[one]["content"] for one in opened} == {str(n): f"Attendu que {n}." for n in range(3)}
    assert opened["1"]["juge"] == "X"
    assert opened.manifest["source"]["name"] == "generator"


def test_bad_records_are_left_out_and_written_into_the_library(config, tiny_encoder, caplog):
    rows = [{"id": "a", "content": "Un."}, {"id": "", "content": "x"}, {"id": "a", "content": "x"}, {"id": "b"}]
    report = build_index(change(config, source=rows, limit=None), tiny_encoder)
    opened = open_index(config)
    assert report.documents == opened.manifest["counts"]["documents"] == 1
    assert opened.manifest["counts"]["bad_records"] == 3
    assert [record.where for record in report.bad] == ["row 1", "row 2", "row 3"]
    lines = (opened.path / "bad_records.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [record._asdict() for record in report.bad]
    written = json.loads(json.dumps(report.to_json()))
    assert (written["bad"], written["documents"]) == ([record._asdict() for record in report.bad], 1)
    assert "left out row 2: duplicate id 'a'" in caplog.text


def test_preprocess_takes_from_a_row_what_chunking_needs():
    row = {"id": "X", "content": "a<br/>b", "title": "T", "decision_date": "3/2/1998", "solution": "Rejet"}
    assert preprocess(row) == {"content": "a\nb", "doc_id": "X", "title": "T", "decision_date": "1998-02-03"}
    row = {"id": 7, "numero": "98-1", "content": " Le  texte."}
    assert preprocess(row, id_column="numero")["doc_id"] == "98-1"
    assert preprocess(row) == {"content": " Le  texte.", "doc_id": "7", "title": "", "decision_date": ""}


@pytest.mark.parametrize("content", [None, "", " ", "<br/>", float("nan")])
def test_preprocess_gives_an_empty_text_where_there_is_none(content):
    empty = {"content": "", "doc_id": "X", "title": "T", "decision_date": ""}
    assert preprocess({"id": "X", "content": content, "title": "T"}) == empty
    assert preprocess({"id": "X", "title": "T"}) == empty


@pytest.mark.parametrize("row", [{"content": "x"}, {"id": " ", "content": "x"}, {}])
def test_preprocess_refuses_a_row_without_id(row):
    with pytest.raises(LookupError, match=r"no column|no document"):
        preprocess(row)


def test_documents_of_the_ids_file_come_first_and_others_fill_up_to_the_limit_or_follow(
    config, tiny_encoder, tmp_path, sample_rows
):
    ids = ids_file(tmp_path, "FICTIF0103", "", "  FICTIF0102  ")
    report = build_index(change(config, ids_file=ids, limit=4), tiny_encoder)
    first_two, others = list(open_index(config))[:2], list(open_index(config))[2:]
    assert first_two == ["FICTIF0102", "FICTIF0103"]
    assert len(others) == 2
    assert not set(others) & set(first_two)
    assert report.missing_ids == []
    rows = sample_rows[:3]
    ids = ids_file(tmp_path, rows[2]["id"])
    build_index(change(config, source=rows, ids_file=ids, limit=None), tiny_encoder)
    assert list(open_index(config)) == [rows[2]["id"], rows[0]["id"], rows[1]["id"]]


@pytest.mark.parametrize(
    ("ids", "missing", "indexed"),
    [
        (["FICTIF0102", "zz", "absent"], ["absent", "zz"], ["FICTIF0102", "FICTIF0101"]),
        (["FICTIF0101", "FICTIF0102", "FICTIF0103", "absent"], ["absent"], ["FICTIF0101", "FICTIF0102"]),
    ],
)
def test_ids_that_the_source_lacks_are_reported_and_those_beyond_the_limit_are_not(
    config, tiny_encoder, tmp_path, ids, missing, indexed
):
    report = build_index(change(config, ids_file=ids_file(tmp_path, *ids), limit=2), tiny_encoder)
    assert report.missing_ids == missing
    assert list(open_index(config)) == indexed


def test_an_ids_file_that_cannot_serve_is_refused(config, tiny_encoder, tmp_path):
    rows = iter([{"id": "a", "content": "Un."}])
    with pytest.raises(ValueError, match="an iterator can be read only once"):
        build_index(change(config, source=rows, ids_file=ids_file(tmp_path, "a")), tiny_encoder)
    with pytest.raises(FileNotFoundError, match=r"no such ids file: .*nowhere\.txt"):
        build_index(change(config, ids_file="/nowhere.txt"), tiny_encoder)
    with pytest.raises(ValueError, match=r"no id in .* \(expected one a line\)"):
        build_index(change(config, ids_file=ids_file(tmp_path, " ", "")), tiny_encoder)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        *(("limit", limit, f"must be at least 1, got {limit}") for limit in (0, -1)),
        *(("n_bits", n_bits, f"must be 1, 2 or 4, or 0 .*, got {n_bits}") for n_bits in (-1, 3, 8)),
        *(
            ("index_name", name, "must be a plain folder name, got")
            for name in ("", ".", "..", "../up", "a/b", "/abs", "a/", ".hidden")
        ),
    ],
)
def test_settings_out_of_range_are_refused(name, value, problem):
    with pytest.raises(ValueError, match=f"{name} {problem}"):
        IndexConfig(**{name: value})


@pytest.mark.parametrize(
    ("source", "problem"), [("no.jsonl", r"no such file or folder: .*no\.jsonl"), (None, "no encoder")]
)
def test_a_wrong_source_and_then_an_unknown_encoder_leave_no_folder(tmp_path, sample_file, source, problem):
    config = IndexConfig(
        source=str(tmp_path / source) if source else sample_file,
        encoder=EncoderConfig(name=str(tmp_path / "no")),
        index_folder=str(tmp_path / "i"),
    )
    with pytest.raises(FileNotFoundError, match=problem):
        build_index(config)
    assert not (tmp_path / "i").exists()


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
    assert len(PlaidShards(opened.shards).search(np.eye(1, 32, dtype=np.float32), 5)) == 5


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt("stop")])
def test_a_build_that_breaks_off_leaves_the_previous_index_and_is_taken_up(
    config, built, tiny_encoder, sample_rows, problem
):
    def rows():
        yield from sample_rows[:30]
        raise problem

    with pytest.raises(type(problem), match="No space left on device|stop"):
        build_index(change(config, source=rows(), limit=None), tiny_encoder)
    assert_untouched(built)
    assert names_in(built.path.parent) == [
        ".legal_french_index.building", ".legal_french_index.building.json", "legal_french_index"
    ]  # fmt: skip
    build_index(config, tiny_encoder)
    assert_untouched(built)
    assert names_in(built.path.parent) == ["legal_french_index"]


def test_documents_that_hold_no_chunk_are_refused(config, built, tiny_encoder):
    with pytest.raises(ValueError, match=r"no document in|no chunk in"):
        build_index(change(config, source=[{"id": "a", "content": "\u00a0\u2003"}]), tiny_encoder)
    assert_untouched(built)


@pytest.mark.parametrize("name", ["thesis.docx", ""])
def test_what_is_not_a_library_is_not_overwritten(config, tiny_encoder, name):
    file = Path(config.index_folder) / config.index_name / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"years of work")
    with pytest.raises(ValueError, match=r"will not overwrite .*legal_french_index: it is not a Library"):
        build_index(config, tiny_encoder)
    assert file.read_bytes() == b"years of work"


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


def test_bad_records_are_told_once_with_an_ids_file_too(tmp_path, tiny_encoder, sample_rows, config):
    source = tmp_path / "rows.jsonl"
    rows = [json.dumps(sample_rows[0]), json.dumps({"id": "B", "content": " "}), "broken", json.dumps(sample_rows[1])]
    source.write_text("\n".join(rows), "utf-8")
    (tmp_path / "ids").write_text(f"{sample_rows[0]['id']}\n{sample_rows[1]['id']}\n", "utf-8")
    config = IndexConfig(source=source, ids_file=str(tmp_path / "ids"), limit=2, index_folder=str(tmp_path / "index"))
    report = build_index(config, tiny_encoder)
    assert [record.where for record in report.bad] == ["rows.jsonl, line 2", "rows.jsonl, line 3"]
    rows = [{"id": "a", "content": "Un."}, {"id": "b"}, {"id": "c", "content": "Deux."}]
    build = change(config, source=rows, ids_file=ids_file(tmp_path, "c"), limit=None)
    assert len(build_index(build, tiny_encoder).bad) == 1
