"""Manifests of strangers."""

import json
import os

import pytest

from legal_rag.library.manifest import MANIFEST, checksum_problems, read_manifest, record_all, write_manifest

SHARD = {"path": "fast_plaid_index", "chunks": 3, "tokens": 9, "checksums": {"0.codes.npy": "0" * 64}}
WHOLE = {
    "format_version": 3,
    "commit": 1,
    "lineage": "x",
    "counts": {"documents": 2, "chunks": 3, "tokens": 9, "bad_records": 0},
    "updates": [],
    "shards": [SHARD],
    "plaid": {"n_bits": 4, "seed": 1, "shard_chunks": 10},
    "encoder": {"name": "e", "revision": "", "dim": 8, "query_length": 4, "document_length": 4},
    "chunks": {"chunk_tokens": 40, "header_on": "none", "header_columns": []},
    "source": {"name": "é"},
    "chunk_vectors": {"frame": "0", "segments": [{"file": "0-1.npy", "chunks": 3, "sha256": "0"}]},
}


def test_what_is_written_is_read_and_its_checksum_recorded(tmp_path):
    write_manifest(tmp_path, WHOLE)
    record_all(tmp_path, [])
    write_manifest(tmp_path, WHOLE | {"commit": 2})
    assert read_manifest(tmp_path) == WHOLE | {"commit": 2}
    assert list(checksum_problems(tmp_path, [MANIFEST])) == []


def changed(place, value):
    """Return the manifest with another value at a place."""
    manifest = json.loads(json.dumps(WHOLE))
    *above, last = place.split("/")
    inner = manifest
    for one in above:
        inner = inner[int(one)] if isinstance(inner, list) else inner[one]
    inner[int(last) if isinstance(inner, list) else last] = value
    return manifest


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("commit", 10**18, r"commit is 1000000000000000000 \(expected a whole number from 0 to"),
        ("commit", -1, "commit is -1"),
        ("commit", True, "commit is True"),
        ("commit", 1.0, r"commit is 1\.0"),
        ("counts", [], r"counts is \[\] \(expected dict\)"),
        ("counts/chunks", "3", "counts.chunks is '3'"),
        ("counts/chunks", 4, "4 chunks, of which its 1 shards hold 3"),
        ("counts/tokens", 10, "10 tokens, of which its 1 shards hold 9"),
        ("shards", [], "3 chunks, of which its 0 shards hold 0"),
        ("shards", [SHARD, SHARD], "two shards of the same codes"),
        ("shards/0", None, r"shards\[0\] is None"),
        ("shards/0/path", "../x", "names a shard outside itself: '../x'"),
        ("shards/0/path", "/etc", "names a shard outside itself: '/etc'"),
        ("shards/0/path", "shard/../../secret", "names a shard outside itself"),
        ("shards/0/path", "C:\\x", "names a shard outside itself"),
        ("shards/0/path", "a\0b", "names a shard outside itself"),
        ("shards/0/checksums", {"..": ""}, "a file outside its folder: '..'"),
        ("shards/0/checksums", {"../manifest.json": ""}, "a file outside its folder"),
        ("shards/0/checksums", {"/etc/passwd": ""}, "a file outside its folder"),
        ("shards/0/checksums", {"a/b": ""}, "a file outside its folder: 'a/b'"),
        ("shards/0/checksums", {"a\\b": ""}, "a file outside its folder"),
        ("chunk_vectors/segments/0/file", "../0.npy", "a file outside its folder: '../0.npy'"),
        ("shards/0/checksums", {"x": 3}, r"shards\[0\].checksums.x is 3"),
        ("encoder/dim", 2**64, "encoder.dim is"),
        ("chunks/header_columns", ["x"], r"chunks.header_columns\[0\] is 'x'"),
        ("plaid/n_bits", None, "plaid.n_bits is None"),
        ("updates", [[]], r"updates\[0\] is \[\]"),
        ("chunk_vectors/segments", [{"file": "x"}], r"it lacks 'chunk_vectors.segments\[0\].chunks'"),
        *(("chunk_vectors/segments", value, "chunk_vectors") for value in (3, ["x"])),
        *(("chunk_vectors", value, "chunk_vectors") for value in ([], 3, {})),
        *((f"shards/0/{name}", value, name) for name, value in (("path", 3), ("chunks", "9"), ("checksums", []))),
    ],
)
def test_an_impossible_manifest_is_one_line_that_names_the_place(tmp_path, place, value, problem):
    write_manifest(tmp_path, changed(place, value))
    with pytest.raises(ValueError, match=rf"damaged manifest: .*manifest\.json \(.*{problem}"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", WHOLE)
def test_a_manifest_that_lacks_a_part_is_named(tmp_path, name):
    (tmp_path / MANIFEST).write_text(json.dumps({one: value for one, value in WHOLE.items() if one != name}))
    with pytest.raises(ValueError, match=f"it lacks '{name}'"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" * 100_000, "nested too deeply|maximum recursion"),
        (b"[" + b"0," * 2_000_001 + b"0]", "more than 2,000,000 values"),
        (b'{"format_version": ' + b"9" * 5_000 + b"}", "digits"),
    ],
)
def test_a_manifest_that_would_take_all_memory_is_refused(tmp_path, content, problem):
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match=rf"damaged manifest: .*({problem})"):
        read_manifest(tmp_path)


def test_a_manifest_of_a_gigabyte_is_refused_unread(tmp_path):
    (tmp_path / MANIFEST).touch()
    os.truncate(tmp_path / MANIFEST, 10**9)
    with pytest.raises(ValueError, match="1,000,000,000 bytes, at most"):
        read_manifest(tmp_path)
