"""The checksums of a Library's files: what they cover, when they are renewed, and what is read of a stranger's."""

import hashlib
import sqlite3
import subprocess
from contextlib import closing

import pytest

from legal_rag.library.manifest import CHECKSUMS, checksum_problems, read_checksums, record_all, record_checksums


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "meta.json").write_text("{}")
    (tmp_path / "words" / "a.idx").write_text("a")
    (tmp_path / "text.jsonl").write_text("x")
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
    record_all(tmp_path, ["notes.md"])
    return tmp_path


def problems(folder, parts=()):
    return dict(checksum_problems(folder, parts))


def test_sha256sum_reads_the_file(folder):
    assert subprocess.run(["sha256sum", "--check", "--quiet", CHECKSUMS], cwd=folder, check=True).returncode == 0
    assert sorted(read_checksums(folder)) == ["a.sqlite", "text.jsonl", "words/a.idx", "words/meta.json"]
    assert problems(folder) == {}


@pytest.mark.parametrize("name", ["a.sqlite", "text.jsonl", "words/a.idx", "words/meta.json"])
def test_any_changed_byte_is_found(folder, name):
    file = folder / name
    whole = file.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 100, 1)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert list(problems(folder)) == [name]
    file.write_bytes(whole[:-1])
    assert list(problems(folder)) == [name]
    file.unlink()
    assert problems(folder) == {name: "missing"}


def test_any_changed_byte_of_the_checksums_themselves_is_found(folder):
    file = folder / CHECKSUMS
    whole = file.read_bytes()
    for at in range(0, len(whole), 3):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert CHECKSUMS in problems(folder)
    file.write_bytes(whole + b"\n")
    assert problems(folder) == {CHECKSUMS: "not what was written"}


def test_only_what_is_named_is_recorded_anew_and_single_files_of_a_library_of_before_not(folder):
    (folder / "text.jsonl").write_text("y")
    (folder / "words" / "meta.json").write_text("[]")
    record_checksums(folder, "words")
    assert list(problems(folder)) == ["text.jsonl"]
    record_checksums(folder, "text.jsonl")
    assert problems(folder) == {}
    (folder / CHECKSUMS).unlink()
    record_checksums(folder, "text.jsonl")
    assert not (folder / CHECKSUMS).exists()


def test_the_files_of_a_folder_are_written_once_and_keep_their_record(folder):
    """A damaged segment is not made good by recording the next one."""
    (folder / "words" / "a.idx").write_text("damaged")
    (folder / "words" / "b.idx").write_text("b")
    record_checksums(folder, "words")
    assert list(problems(folder)) == ["words/a.idx"]
    (folder / "words" / "a.idx").unlink()
    record_checksums(folder, "words")
    assert problems(folder) == {}


def test_what_a_kill_left_unrecorded_is_found_and_the_next_writer_records_it(folder):
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection, connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert list(problems(folder)) == ["a.sqlite"]
    record_checksums(folder, "a.sqlite")
    assert problems(folder) == {}
    (folder / "words" / "new.idx").write_text("x")
    assert problems(folder, ["words", "a.sqlite"]) == {"words/new.idx": "no checksum of it was recorded"}


def test_a_database_is_recorded_whole_though_others_have_it_open(folder):
    with (
        closing(sqlite3.connect(folder / "a.sqlite")) as reader,
        closing(sqlite3.connect(folder / "a.sqlite")) as writer,
    ):
        reader.execute("SELECT * FROM t").fetchall()
        with writer:
            writer.execute("INSERT INTO t VALUES (1)")
        record_checksums(folder, "a.sqlite")
        assert problems(folder) == {}
    assert problems(folder) == {}  # closing them writes nothing more


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b"])
def test_a_record_of_a_file_outside_is_not_followed(folder, name):
    lines = f"{hashlib.sha256(b'x').hexdigest()}  {name}\n"
    (folder / CHECKSUMS).write_text(f"# {hashlib.sha256(lines.encode()).hexdigest()}\n{lines}")
    assert read_checksums(folder) == {}
    assert problems(folder) == {CHECKSUMS: "not what was written"}
