"""A build that was cut off is taken up where it stopped, and gives the index of one that never was."""

import dataclasses
import errno
import random
import time
from html import escape
from pathlib import Path

import pytest
from support.dila_files import judicial, members, write_archive
from support.killable import LONGEST_S, N_DOCUMENTS, Killable, build_and_log

from legal_rag.base.files import beside
from legal_rag.corpus import read_documents
from legal_rag.indexer import IndexConfig, add_documents, build_index, open_index, pipeline
from legal_rag.indexer.config import library_path
from legal_rag.indexer.pipeline import prefetched
from legal_rag.library import Library
from legal_rag.library.manifest import MANIFEST
from legal_rag.retriever import Retriever

SHARD_CHUNKS = 24
WINDOW = 8
QUERIES = ("trouble anormal de voisinage", "licenciement sans cause", "responsabilité du fait des choses")


def config_of(source, folder):
    return IndexConfig(source=source, limit=N_DOCUMENTS, shard_chunks=SHARD_CHUNKS, index_folder=str(folder), seed=3)


@pytest.fixture
def config(tmp_path, sample_file, monkeypatch):
    monkeypatch.setattr(pipeline, "BATCH_CHUNKS", WINDOW)
    monkeypatch.setattr(pipeline, "SAMPLE_BATCHES", 2)
    return config_of(sample_file, tmp_path / "indexes")


def change(config, **values):
    return dataclasses.replace(config, **values)


def content_of(library, encoder):
    """Return all that a user can see of a Library: rows, chunks with offsets, shards' files, ranked passages."""
    retriever = Retriever(library, encoder)
    return {
        "documents": list(library.documents()),
        "chunks": [library.chunks_of(doc_id) for doc_id in library],
        "shards": library.manifest["shards"],
        "lineage": library.manifest["lineage"],
        "hits": [retriever.search(query, 10) for query in QUERIES],
    }


class CountingEncoder:
    """An encoder that counts the chunks it encodes, and may fail or be watched meanwhile."""

    def __init__(self, encoder, fail_after=None):
        self._encoder, self.identity, self.encoded, self._fail_after = encoder, encoder.identity, 0, fail_after
        self.count_tokens, self.encode_queries = encoder.count_tokens, encoder.encode_queries

    def encode_documents(self, texts):
        if self._fail_after is not None and self.encoded >= self._fail_after:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.encoded += len(texts)
        return self._encoder.encode_documents(texts)


@pytest.fixture(scope="module")
def undisturbed(sample_file, tiny_encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "BATCH_CHUNKS", WINDOW)
        patch.setattr(pipeline, "SAMPLE_BATCHES", 2)
        build_index(config_of(sample_file, folder), tiny_encoder)
    library = Library.open(folder)
    assert len(library.manifest["shards"]) >= 3
    return library


@pytest.mark.parametrize("done", [WINDOW, 2 * WINDOW + SHARD_CHUNKS])
def test_a_shard_that_was_made_before_a_failure_is_not_made_again(config, tiny_encoder, undisturbed, done):
    failing, counting = CountingEncoder(tiny_encoder, fail_after=done), CountingEncoder(tiny_encoder)
    with pytest.raises(OSError, match="No space left"):
        build_index(config, failing)
    made = list(beside(library_path(config), "building").rglob("metadata.json"))
    build_index(config, counting)
    n_chunks = undisturbed.manifest["counts"]["chunks"]
    assert counting.encoded == n_chunks - SHARD_CHUNKS * len(made)
    assert (len(made) > 0) == (done > SHARD_CHUNKS)
    assert content_of(open_index(config), tiny_encoder) == content_of(undisturbed, tiny_encoder)
    assert sorted(path.name for path in Path(config.index_folder).iterdir() if path.suffix != ".lock") == [
        "legal_french_index"
    ]


def test_a_build_from_an_archive_that_was_cut_off_is_taken_up(config, tiny_encoder, sample_rows, tmp_path):
    files = [judicial(at, {}, text=escape(row["content"])) for at, row in enumerate(sample_rows[:N_DOCUMENTS])]
    archive = str(write_archive(tmp_path / "CASS_20260101-000000.tar.gz", members(files)))
    config = change(config, source=archive)
    failing, counting = CountingEncoder(tiny_encoder, fail_after=2 * SHARD_CHUNKS), CountingEncoder(tiny_encoder)
    with pytest.raises(OSError, match="No space left"):
        build_index(config, failing)
    made = list(beside(library_path(config), "building").rglob("metadata.json"))
    report = build_index(config, counting)
    assert len(made) > 0
    assert counting.encoded == report.chunks - SHARD_CHUNKS * len(made)
    assert list(open_index(config).documents()) == list(read_documents(archive))


@pytest.mark.parametrize("changes", [{"n_bits": 2}, {}])
def test_other_settings_or_another_precision_begin_anew(config, tiny_encoder, changes):
    failing, counting = CountingEncoder(tiny_encoder, fail_after=SHARD_CHUNKS), CountingEncoder(tiny_encoder)
    if not changes:
        failing.backend, counting.backend = "torch", "openvino"
    with pytest.raises(OSError, match="No space left"):
        build_index(config, failing)
    report = build_index(change(config, **changes), counting)
    assert counting.encoded == report.chunks


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["change", "drop", "insert", "shorten"])
def test_a_source_that_changed_since_is_indexed_as_it_is_now(config, tiny_encoder, sample_rows, tmp_path, edit):
    rows = [dict(row) for row in sample_rows[:12]]
    with pytest.raises(OSError, match="No space left"):
        build_index(change(config, source=rows), CountingEncoder(tiny_encoder, fail_after=2 * SHARD_CHUNKS))
    if edit == "change":
        rows[5]["title"] = "Un autre titre"
    elif edit == "drop":
        del rows[5]
    elif edit == "insert":
        rows.insert(5, dict(sample_rows[40]))
    else:
        rows = rows[:3]
    build_index(change(config, source=rows), tiny_encoder)
    again = change(config, source=rows, index_folder=str(tmp_path / "again"))
    build_index(again, tiny_encoder)
    assert content_of(open_index(config), tiny_encoder) == content_of(open_index(again), tiny_encoder)


def test_an_addition_cut_off_is_taken_up(config, tiny_encoder, sample_rows):
    build_index(change(config, source=sample_rows[:5]), tiny_encoder)
    more = change(config, source=sample_rows[5:15])
    failing, counting = CountingEncoder(tiny_encoder, fail_after=SHARD_CHUNKS), CountingEncoder(tiny_encoder)
    with pytest.raises(OSError, match="No space left"):
        add_documents(more, failing)
    before = open_index(config)
    assert len(before) == 5
    report = add_documents(more, counting)
    assert counting.encoded == report.chunks - SHARD_CHUNKS
    assert list(open_index(config).documents()) == list(read_documents(sample_rows[:15]))


def test_an_addition_given_up_leaves_nothing_once_another_one_is_made(config, tiny_encoder, sample_rows):
    build_index(change(config, source=sample_rows[:5]), tiny_encoder)
    with pytest.raises(OSError, match="No space left"):
        add_documents(change(config, source=sample_rows[5:15]), CountingEncoder(tiny_encoder, fail_after=SHARD_CHUNKS))
    add_documents(change(config, source=sample_rows[15:18]), tiny_encoder)
    opened = open_index(config)
    assert list(opened.documents()) == list(read_documents([*sample_rows[:5], *sample_rows[15:18]]))
    folders = {path.parent for path in opened.path.rglob("centroids.npy")}
    assert folders == {shard.folder for shard in opened.shards}


def _killed(*_):
    raise KeyboardInterrupt


def test_vectors_that_a_kill_left_beside_a_finished_shard_do_not_stay(config, tiny_encoder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.pipeline.discard_vectors", _killed)
        with pytest.raises(KeyboardInterrupt):
            build_index(config, tiny_encoder)
    build_index(config, tiny_encoder)
    assert not list(Path(config.index_folder).rglob("token_vectors.f16"))


def test_an_error_in_a_stage_reaches_the_end_of_the_line():
    def stage():
        yield 1
        raise OSError("the disk is gone")

    with prefetched(stage()) as items:
        assert next(items) == 1
        with pytest.raises(OSError, match="the disk is gone"):
            next(items)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_thirty_kills_at_random_moments_change_nothing(
    config, tiny_encoder, tiny_model_folder, sample_file, undisturbed, tmp_path
):
    """Builds are killed at moments spread over the time an undisturbed one takes, some after all is in place."""
    log = tmp_path / "encoded.log"
    arguments = (sample_file, tiny_model_folder, config.index_folder, SHARD_CHUNKS, WINDOW, log)
    moments = random.Random(7)
    expected = content_of(undisturbed, tiny_encoder)
    manifest = library_path(config) / MANIFEST
    kills, seconds, made = 0, 0.5, 0
    while kills < 30:
        build = Killable(build_and_log, *arguments)
        build.wait_until_ready()
        started = time.perf_counter()
        if build.killed_after(moments.uniform(0, seconds)):
            kills += 1
        else:
            seconds = time.perf_counter() - started  # of the last one: a slow one must not make kills rare ever after
        if manifest.exists() and made != (made := manifest.stat().st_mtime_ns):
            assert_only_shards_in_progress_were_encoded_twice(log, kills)
            assert content_of(open_index(config), tiny_encoder) == expected
    assert not Killable(build_and_log, *arguments).killed_after(LONGEST_S)
    assert content_of(open_index(config), tiny_encoder) == expected


def assert_only_shards_in_progress_were_encoded_twice(log, kills):
    """Check that no more was encoded than the chunks themselves and, for each kill, a shard and the sample."""
    lines = log.read_text().splitlines()
    twice = len(lines) - len(set(lines))
    log.unlink()
    assert twice <= kills * (SHARD_CHUNKS + 2 * WINDOW)
