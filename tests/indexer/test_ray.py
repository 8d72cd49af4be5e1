"""Builds on a local Ray cluster of two workers, against a build in this process."""

import dataclasses
import hashlib
import os
import shutil
import signal
import sqlite3
import sys
import threading
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from legal_rag.base.files import beside
from legal_rag.encoder import EncoderConfig, build_encoder
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.indexer.config import library_path
from legal_rag.indexer.pipeline import CODEBOOK, install_shard
from legal_rag.indexer.ray import build_index_on_ray
from legal_rag.library.bm25 import LEXICAL_FOLDER
from legal_rag.library.library import STORE
from legal_rag.library.manifest import CHECKSUMS
from legal_rag.library.ray import ray_cluster, share_out

pytestmark = pytest.mark.slow
pytest.importorskip("ray")

CODES = "fast_plaid_index/0.codes.npy"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Start one cluster for all tests: each build would otherwise start and end its own."""
    with ray_cluster(n_cpus=2):
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory, sample_file, tiny_model_folder):
    return IndexConfig(
        source=sample_file,
        encoder=EncoderConfig(name=str(tiny_model_folder)),
        shard_chunks=30,
        index_folder=str(tmp_path_factory.mktemp("local")),
    )


@pytest.fixture(scope="module")
def local(config):
    """Build in this process what the tests build on Ray."""
    build_index(config)
    return open_index(config)


@pytest.fixture
def elsewhere(config, tmp_path):
    return dataclasses.replace(config, index_folder=str(tmp_path / "indexes"))


def files_of(library):
    """Return the files' checksums; but for the store, the index of words, whose parts tantivy names at random, and what
    is recorded of these.
    """
    return {
        path.relative_to(library.path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(library.path.rglob("*"))
        if path.is_file()
        and path.name not in (STORE, CHECKSUMS)
        and LEXICAL_FOLDER not in path.relative_to(library.path).parts
    }


def rows_of(library):
    with closing(sqlite3.connect(library.path / "corpus.sqlite")) as store:
        return [store.execute(f"SELECT * FROM {table}").fetchall() for table in ("documents", "chunks")]  # noqa: S608


def assert_same(library, other):
    assert rows_of(library) == rows_of(other)
    assert files_of(library) == files_of(other)


def complete_shards(scratch):
    """List the shards that are in place in the folder of a build."""
    return list(scratch.glob(f"shards/*/{CODES}"))


class Once:
    """A thread that waits for something to be there, and then does something with it."""

    def __init__(self, find, act):
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(find, act))
        self.found = None

    def _run(self, find, act):
        while not self._over.wait(0.005):
            if found := find():
                self.found = found
                act(found)
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def test_a_build_on_two_workers_gives_the_library_of_one_process(elsewhere, local):
    report = build_index_on_ray(elsewhere, workers=2)
    library = open_index(elsewhere)
    assert_same(library, local)
    assert len(library.manifest["shards"]) >= 5
    assert report.to_json() | library.manifest["counts"] == report.to_json() | {"bad_records": 0}
    assert set(report.overlapping()) == {"read", "chunk", "encode", "train", "write_plaid"}
    assert list(report.stages()) == ["open", "shards", "parts", "other"]
    assert sum(report.stages().values()) == pytest.approx(report.seconds["total"])
    names = sorted(path.name for path in library.path.parent.iterdir())
    assert names == [".legal_french_index.lock", "legal_french_index"]


def test_a_worker_killed_half_way_changes_nothing(elsewhere, local):
    scratch = beside(library_path(elsewhere), "building")

    def workers():
        return complete_shards(scratch) and [int(path.name) for path in Path("/proc").glob("[0-9]*") if makes(path)]

    def makes(process):
        try:
            return (process / "comm").read_text() == "ray::make_shard\n"
        except OSError:  # it has ended
            return False

    with Once(workers, lambda found: os.kill(found[0], signal.SIGKILL)) as killed:
        build_index_on_ray(elsewhere, workers=2)
    assert killed.found
    assert_same(open_index(elsewhere), local)


def test_a_build_interrupted_on_ray_is_taken_up_in_one_process_with_the_shards_it_made(elsewhere, local, monkeypatch):
    """Raised where a shard other than the first is there: a real signal would reach the runner of the tests too."""
    scratch = beside(library_path(elsewhere), "building")

    def interrupt(*_):
        if complete_shards(scratch):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        bar = SimpleNamespace(update=interrupt)
        patched.setattr("legal_rag.indexer.ray.progress", lambda *_, **__: nullcontext(bar))
        build_index_on_ray(elsewhere, workers=2)
    made = complete_shards(scratch)[0]
    number, before = made.parents[1].name, made.stat().st_ino
    build_index(elsewhere)
    library = open_index(elsewhere)
    assert_same(library, local)
    assert (library.path / "shards" / number / CODES).stat().st_ino == before
    assert not (library.path / CODEBOOK).exists()


def test_a_worker_without_the_encoder_ends_the_build_with_one_line_and_what_was_done_stays(
    elsewhere, tiny_model_folder, tmp_path
):
    model = shutil.copytree(tiny_model_folder, tmp_path / "model")
    encoder = build_encoder(str(model))
    shutil.rmtree(model)
    with pytest.raises(OSError, match=r"^the encoder cannot be used on .*: no encoder .*model'[^\n]*$"):
        build_index_on_ray(elsewhere, encoder, workers=2)
    assert beside(library_path(elsewhere), "building").is_dir()


def test_wrong_sources_and_numbers_of_workers_are_told_before_any_starts(elsewhere, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        build_index_on_ray(dataclasses.replace(elsewhere, source=tmp_path / "nowhere.jsonl"), workers=2)
    for workers in (0, 3):
        with pytest.raises(ValueError, match=f"workers must be 1 to 2, the cluster's processors; got {workers}"):
            build_index_on_ray(elsewhere, workers=workers)
    assert share_out(None) == (1, 2, 0)
    assert share_out(2) == (2, 1, 0)


def test_without_ray_one_line_says_what_to_install(elsewhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"the engine 'ray' needs Ray: pip install 'legal-rag\[ray\]'"):
        build_index_on_ray(elsewhere)


def test_a_shard_made_twice_stays_the_first_one(local, tmp_path):
    home, late = (shutil.copytree(local.path / "shards" / "1", tmp_path / name) for name in ("home", "late"))
    (late / CODES).write_bytes(b"late")
    install_shard(late, home, 30)
    assert (home / CODES).read_bytes() == (local.path / "shards" / "1" / CODES).read_bytes()
