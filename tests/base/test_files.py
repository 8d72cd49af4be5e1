"""Progress without a terminal: lines, and few of them; folders that cannot be written in."""

import itertools
import os
import re
import threading

import pytest

from legal_rag.base import files
from legal_rag.base.files import beside, byte_bar, locked, made_once, progress, write_whole


@pytest.fixture
def lines(capsys, monkeypatch):
    """Return what was written on stderr so far, by line: one every 20 ms, of a clock that goes on 5 ms when read."""
    monkeypatch.setattr(files, "LINE_SECONDS", 0.02)
    monkeypatch.setattr("tqdm.std.time", (reading * 0.005 for reading in itertools.count()).__next__)
    return lambda: capsys.readouterr().err.splitlines()


def work(bar, n):
    with bar:
        for _ in range(n):
            bar.update(1)


def test_without_a_terminal_progress_is_lines_of_stage_count_rate_and_time_left(lines):
    before = set(threading.enumerate())
    work(progress("Indexing", total=40, unit=" chunks"), 40)
    said = lines()
    assert 3 <= len(said) < 40
    form = r"Indexing: \d+ of 40 chunks, +\d+\.\d+ chunks/s, \d\d:\d\d left"
    assert [line for line in said if not re.fullmatch(form, line)] == []
    assert said[-1].startswith("Indexing: 40 of 40 chunks")
    assert not said[-2].startswith("Indexing: 40 ")
    assert set(threading.enumerate()) <= before


def test_a_stage_that_ends_before_its_first_line_says_nothing(lines, monkeypatch):
    monkeypatch.setattr(files, "LINE_SECONDS", 30)
    work(progress("Indexing", total=40, unit=" chunks"), 4)
    assert list(progress("Reading", iterable=[1, 2], unit=" rows")) == [1, 2]
    assert lines() == []


def test_a_total_that_grows_or_is_unknown_and_bytes_are_told_as_they_are(lines):
    bar = progress("Indexing", unit=" chunks")
    bar.total = 20
    work(bar, 20)
    assert " of 20 chunks, " in lines()[0]
    for _ in progress("Reading", iterable=iter(range(20)), unit=" rows"):
        pass
    assert re.search(r"Reading: \d+ of \? rows, .*", lines()[0])
    work(byte_bar("Downloading", 2_000_000, done=1_000_000), 20)
    assert lines()[0].startswith("Downloading: 1.00M of 2.00MB, ")


def fill(target):
    with made_once(target):
        pass


def lock(target):
    with locked(target):
        pass


@pytest.mark.parametrize("write", [lock, fill, lambda target: write_whole(target, "x")])
@pytest.mark.parametrize(("number", "reason"), [(13, "Permission denied"), (30, "Read-only file system")])
def test_a_folder_that_cannot_be_written_in_is_named(write, number, reason, tmp_path, monkeypatch):

    def refuse(*arguments, **settings):  # file modes do not bind root
        raise OSError(number, reason, str(arguments[0]))

    for module, name in ((os, "open"), (os, "mkdir"), (files.Path, "open")):
        monkeypatch.setattr(module, name, refuse)
    with pytest.raises(OSError, match=rf"^cannot write in {tmp_path}: {reason}$"):
        write(tmp_path / "x")


@pytest.mark.parametrize("write", [lock, fill])
def test_a_file_in_place_of_a_folder_is_named(write, tmp_path):
    (tmp_path / "cinq.csv").write_text("id")
    with pytest.raises(FileExistsError, match=r"^cannot write in .*cinq\.csv: it is a file$"):
        write(tmp_path / "cinq.csv" / "x")


def test_a_folder_that_cannot_be_made_is_not_one_that_another_process_makes(tmp_path):
    with locked(tmp_path / "x"), pytest.raises(ValueError, match="another process is making"):
        lock(tmp_path / "x")
    beside(tmp_path / "y", "lock").mkdir()
    with pytest.raises(OSError, match="y.lock"):
        lock(tmp_path / "y")
