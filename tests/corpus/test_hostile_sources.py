"""Sources that a stranger made to fill memory, hang or lead elsewhere: one line each, and the others are read."""

import csv
import gzip
import json
import os
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.corpus import SourceOptions, read_documents, sources
from legal_rag.corpus.sources import ReaderProcess

GOOD = ({"id": "a", "content": "Un."}, {"id": "z", "content": "Deux."})


@pytest.fixture(autouse=True)
def _csv_limit():
    limit = csv.field_size_limit()  # the process's, which reading a CSV file sets
    yield
    csv.field_size_limit(limit)


def read(source, **options):
    """Read a source; return the ids, and its bad records as 'where: problem'."""
    bad = []
    documents = list(read_documents(source, SourceOptions(**options), on_bad=bad.append))
    return [document.id for document in documents], [f"{record.where}: {record.problem}" for record in bad]


def between(tmp_path, line):
    """Write a line between two good ones."""
    good = [json.dumps(row).encode() for row in GOOD]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join([good[0], line, good[1]]))
    return tmp_path / "x.jsonl"


def nested(depth):
    return b'{"id": "b", "content": "x", "e": ' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (nested(100), "nested more than 100 levels deep"),
        (nested(900), "nested more than 100 levels deep"),
        (nested(200_000), "broken JSON (nested too deeply)"),
        (b'{"id": "b", "content": "x", "e": [' + b"1," * 500_001 + b"1]}", "more than 500,000 values"),
        (b'{"id": "b", "content": "x", "n": ' + b"9" * 4_000 + b"}", "a number of too many digits"),
        (b'{"id": "b", "content": "x", "n": ' + b"9" * 5_000 + b"}", "broken JSON (Exceeds the limit"),
        (b'{"id": "b\\nc", "content": "x"}', "an id with control characters or line ends: 'b\\nc'"),
        (b'{"id": "b\\u001bc", "content": "x"}', "an id with control characters or line ends: 'b\\x1bc'"),
        (b'{"id": "b\\u202ec", "content": "x"}', "an id with control characters or line ends"),
        (b'{"id": "' + b"b" * 1_000_000 + b'", "content": "x"}', "id of 1,000,000 characters (at most 10,000)"),
        (b'{"id": "b", "content": "' + b"x" * 5_000_001 + b'"}', "content of 5,000,001 characters (at most 5,000,000)"),
        (b'{"id": "b", "content": "x", "title": "' + b"x" * 10_001 + b'"}', "title of 10,001 characters"),
    ],
)
def test_a_record_beyond_every_measure_is_one_line_and_the_others_are_read(tmp_path, line, problem):
    ids, bad = read(between(tmp_path, line))
    assert ids == ["a", "z"]
    assert len(bad) == 1
    assert bad[0].startswith(f"x.jsonl, line 2: {problem}")


def test_rows_of_python_are_bounded_too():
    cycle = []
    cycle += [cycle, cycle]
    rows = [GOOD[0], {"id": "b", "content": "x", "e": cycle}, {"id": "c", "content": "x", "n": 10**5_000}, GOOD[1]]
    ids, bad = read(rows)
    assert ids == ["a", "z"]
    assert [line.partition(": ")[0] for line in bad] == ["row 1", "row 2"]


def test_a_line_that_does_not_fit_is_never_held(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LINE_CHARS", 100_000)
    path = between(tmp_path, b'{"id": "b", "content": "' + b"x" * 30_000_000 + b'"}')
    tracemalloc.start()
    try:
        ids, bad = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (ids, len(bad)) == (["a", "z"], 1)
    assert peak < 40_000_000


@pytest.mark.parametrize("content", [b"x" * 1_000_000, b"\n" * 300_000])
def test_behind_a_line_without_end_nothing_is_looked_for(tmp_path, monkeypatch, content):
    monkeypatch.setattr(sources, "LINE_CHARS", 10_000)
    monkeypatch.setattr(sources, "SKIPPED_CHARS", 200_000)
    rows = [json.dumps(row).encode() for row in GOOD]
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b"\n".join([rows[0], content, rows[1]])))
    problem = "x.jsonl.gz: the file breaks off (more than 200,000 characters without a record)"
    assert read(tmp_path / "x.jsonl.gz") == (["a"], [problem])


def test_a_source_of_nothing_but_bad_records_is_given_up(monkeypatch):
    monkeypatch.setattr("legal_rag.corpus.documents.MOST_BAD", 50)
    ids, bad = read([GOOD[0]] * 1_000)
    assert ids == ["a"]
    assert len(bad) == 51
    assert bad[-1].endswith("the 50th record left out: what follows is left out unread")


def test_a_csv_line_that_does_not_fit_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LINE_CHARS", 1_000)
    (tmp_path / "x.csv").write_text(f'id,content\na,Un.\nb,{"x" * 5_000}\nz,Deux.\nc,"{"x" * 600}\n{"x" * 600}"\n')
    ids, bad = read(tmp_path / "x.csv")
    assert ids == ["a", "z"]
    assert bad[0] == f"x.csv, line 3: {sources.TOO_LONG}"
    assert "field larger than field limit" in bad[1]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.txt").write_text("Un.")
    return tmp_path / "in"


def test_links_out_pipes_and_loops_are_named_and_not_followed(folder):
    (folder.parent / "out.txt").write_text("secret")
    (folder / "link.txt").symlink_to(folder.parent / "out.txt")
    (folder / "inside.txt").symlink_to(folder / "good.txt")
    (folder / "etc").symlink_to("/etc")
    (folder / "self").symlink_to(folder)
    (folder / "a.txt").symlink_to(folder / "b.txt")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    os.mkfifo(folder / "pipe.jsonl")
    ids, bad = read(folder)
    assert ids == ["good.txt", "inside.txt"]
    assert sorted(bad) == [
        "a.txt: cannot be read (Too many levels of symbolic links)",
        "b.txt: cannot be read (Too many levels of symbolic links)",
        "etc: a link out of the folder",
        "link.txt: a link out of the folder",
        "pipe.jsonl: a pipe, a socket or a device, not a file",
        "self: a link to a folder",
    ]


def test_files_of_a_terabyte_of_holes_are_one_line_each(folder):
    for name in ("x.txt", "x.json", "x.pdf"):
        (folder / name).touch()
        os.truncate(folder / name, 2**40)
    ids, bad = read(folder)
    assert ids == ["good.txt"]
    assert bad == [
        "x.json: cannot be read (1,099,511,627,776 bytes (at most 200,000,000))",
        "x.pdf: cannot be read (1,099,511,627,776 bytes (at most 200,000,000))",
        "x.txt: 1,099,511,627,776 bytes (at most 200,000,000)",
    ]


def test_file_names_of_any_bytes_are_one_printable_line_each(folder):
    (folder / "a\nb\x1b]52;c;x\x07.txt").write_text("x")
    ids, bad = read(folder)
    assert ids == ["good.txt"]
    assert len(bad) == 1
    assert bad[0].startswith("a b\ufffd]52;c;x\ufffd.txt: an id with control characters")


@pytest.mark.parametrize(
    "data", ["../out.jsonl", "/etc/passwd", "http://127.0.0.1:9/x.jsonl", '[good.jsonl, "../x"]', "~/x"]
)
def test_a_dataset_card_cannot_lead_out_of_its_folder(folder, data):
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: default\n  data_files: {data}\n---\n")
    with pytest.raises(ValueError, match=r"README.md names data outside its folder: "):
        read(folder)


def test_a_parser_that_crashes_hangs_or_fills_memory_costs_one_file(folder, monkeypatch):
    monkeypatch.setattr("legal_rag.corpus.sources.READER_SECONDS", 3.0)
    for name in ("crash", "hang", "fill", "last"):
        (folder / f"{name}.json").write_text(json.dumps({"id": name, "content": "x"}))
    hook = (
        "import os, time, legal_rag.corpus.sources as s; real = s._rows_of_file_here\n"
        "def rows(path, root):\n"
        "    if path.stem == 'crash': os._exit(3)\n"
        "    if path.stem == 'hang': time.sleep(60)\n"
        "    if path.stem == 'fill': bytearray(2_000_000_000)\n"
        "    yield from real(path, root)\n"
        "s._rows_of_file_here = rows\n"
    )
    ours = "from legal_rag.corpus.sources import run_reader; run_reader()"
    prologue = f"import sys; sys.path[:] = {{!r}}; exec({hook!r}); {ours}"
    monkeypatch.setattr("legal_rag.corpus.sources.PROLOGUE", prologue)
    ids, bad = read(folder)
    assert ids == ["good.txt", "last"]
    assert sorted(bad) == [
        "crash.json: unreadable file (its parser crashed)",
        "hang.json: unreadable file (it took more than 3 seconds)",
        "the file: it breaks off (MemoryError:)",
    ]


def test_no_process_is_left_whether_all_was_read_or_not(folder):
    (folder / "x.json").write_text(json.dumps(list(GOOD)))
    started = []
    begin = ReaderProcess._started
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReaderProcess, "_started", lambda self: started.append(begin(self)) or started[-1])
        assert len(read(folder)[0]) == 3
        rows = read_documents(folder)
        next(rows)
        next(rows)
        rows.close()
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@given(st.binary(max_size=200))
def test_any_bytes_are_lines_that_are_read_or_named(data):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LINE_CHARS", 50)
        path = Path(folder, "x.jsonl")
        path.write_bytes(data + b"\n" + json.dumps(GOOD[0]).encode())
        ids, bad = read(path)
    assert "a" in ids
    assert not [line for line in bad if "\n" in line]
