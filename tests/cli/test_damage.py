"""Commands on a damaged index: an answer or one line that names the file, never a traceback."""

import os

import pytest

from legal_rag.cli import main
from legal_rag.library import Library
from legal_rag.library.manifest import write_manifest


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("corpus.sqlite", ("search", "bail", "--mode", "bm25")),
        ("corpus.sqlite", ("info",)),
        ("corpus.sqlite", ("lookup", "FICTIF0108")),
        ("lexical/chunks/meta.json", ("search", "bail", "--mode", "bm25")),
        ("fast_plaid_index/doclens.0.json", ("search", "bail")),
        ("chunk_vectors/frame.npy", ("search", "bail")),
        ("graph.sqlite", ("graph", "most-cited")),
    ],
)
@pytest.mark.parametrize("content", [b"", b"[" * 50_000, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_file_that_is_no_longer_one_is_named(copied, refused, name, command, content):
    (copied / name).write_bytes(content)
    line = refused(*command, "--index-folder", copied.parent)
    assert name.split("/")[0].removesuffix(".sqlite") in line
    assert "legal-rag " in line or "build" in line


def test_no_shards_are_no_silence_and_an_error_of_any_length_is_cut(copied, refused):
    write_manifest(copied, Library(copied).manifest | {"shards": []})
    line = refused("search", "bail", "--index-folder", copied.parent)
    assert "manifest.json" in line
    assert "its 0 shards hold 0" in line
    assert len(refused("lookup", "x" * 100_000, "--index-folder", copied.parent)) < 2_100


class PanicException(BaseException):
    """The panic of a library written in Rust."""


@pytest.mark.parametrize(
    "error", [KeyError("x"), IndexError(3), TypeError("x"), RecursionError(), PanicException("index out of bounds")]
)
def test_whatever_fails_for_a_damaged_file_names_it_and_keeps_its_traceback_where_the_files_are_whole(
    copied, refused, monkeypatch, error
):
    """Damage shows in every way: here as the error of a bug."""
    monkeypatch.setattr("legal_rag.cli.options.Place.open", lambda *place: _raise(error))
    for folder in (copied.parent, copied.parent / "absent"):
        with pytest.raises(type(error)):
            main(["info", "--index-folder", str(folder)])
    (copied / "outlines.sqlite").write_bytes(b"damaged")
    line = refused("info", "--index-folder", copied.parent)
    assert "outlines.sqlite: not what was written" in line
    assert "rebuild --only trees" in line


@pytest.mark.parametrize(
    ("name", "harm", "command"),
    [
        ("avg_residual.npy", lambda file: os.truncate(file, 150), ("export", "--pylate", "exported")),
        ("bucket_cutoffs.npy", lambda file: file.write_bytes(b""), ("export", "--pylate", "exported")),
        ("bucket_cutoffs.npy", lambda file: file.unlink(), ("compact",)),
    ],
)
def test_what_numpy_or_the_system_says_of_a_shard_names_its_file_and_a_remedy(
    copied, refused, monkeypatch, tmp_path, name, harm, command
):
    monkeypatch.chdir(tmp_path)
    harm(copied / "fast_plaid_index" / name)
    line = refused(*command, "--index-folder", copied.parent)
    assert f"fast_plaid_index/{name}" in line
    assert "'legal-rag index' builds all anew" in line or "'legal-rag doctor' says what mends it" in line


def _raise(error):
    raise error
