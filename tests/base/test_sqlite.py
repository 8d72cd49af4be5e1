"""The opener of SQLite files: who may read, who may write, and what becomes of a transaction."""

import multiprocessing
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from legal_rag.base import deadline
from legal_rag.base.sqlite import (
    ThreadConnections,
    answers,
    connect_as_allowed,
    connect_to_read,
    connect_to_write,
    parameter,
    transaction,
)

READ = "SELECT value FROM kept"


@pytest.fixture
def file(tmp_path):
    with closing(connect_to_write(tmp_path / "kept.sqlite")) as connection:
        connection.executescript("CREATE TABLE kept (value); INSERT INTO kept VALUES (1)")
    return tmp_path / "kept.sqlite"


def test_a_reader_cannot_write_nor_make_a_missing_file_and_finds_attached_ones_by_name(file, tmp_path):
    with closing(connect_to_read(file, other=file, missing=tmp_path / "missing.sqlite")) as connection:
        assert connection.execute("SELECT value FROM other.kept").fetchall() == [(1,)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM kept")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            connection.execute("SELECT value FROM missing.kept")
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect_to_read(tmp_path / "missing.sqlite")
    assert not (tmp_path / "missing.sqlite").exists()


def test_a_transaction_that_fails_leaves_nothing_nor_does_what_the_deadline_interrupts(file):
    with closing(connect_to_write(file)) as connection:
        with pytest.raises(KeyboardInterrupt), transaction(connection):
            connection.execute("INSERT INTO kept VALUES (2)")
            raise KeyboardInterrupt
        with transaction(connection):
            connection.execute("INSERT INTO kept VALUES (3)")
        assert connection.execute(READ).fetchall() == [(1,), (3,)]
        with pytest.raises(deadline.DeadlineError), deadline.within(0.1), transaction(connection):
            connection.execute("INSERT INTO kept VALUES (2)")
            connection.execute(f"INSERT INTO kept {ENDLESS.format('n')}")
        assert connection.execute(READ).fetchall() == [(1,), (3,)]


def test_who_may_not_write_reads_a_snapshot(file, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != file.parent)
    with closing(connect_as_allowed(file)) as connection:
        assert connection.execute(READ).fetchall() == [(1,)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM kept")


def test_each_thread_has_its_own_connection_unless_it_cannot_be_used_and_all_are_closed_together(file):
    connections = ThreadConnections(file, lambda: connect_to_read(file))
    mine = connections.get()
    assert mine is connections.get()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(connections.get).result() is not mine
    connections.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        mine.execute(READ)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=r"kept\.sqlite was closed"):
        pool.submit(connections.get).result()
    unusable = ThreadConnections(file, lambda: connect_to_read(file), lambda _: False)
    held = unusable.get()
    assert unusable.get() is not held


def test_a_connection_that_is_locked_out_does_not_answer(file):
    with closing(connect_to_read(file)) as held, closing(connect_to_write(file)) as other:
        assert answers(held)
        held.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN EXCLUSIVE")
        assert not answers(held)


def _reads_by_itself(connections, inherited):
    assert connections.get() is not inherited
    assert connections.get().execute(READ).fetchall() == [(1,)]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked here")
def test_a_forked_process_opens_a_connection_of_its_own(file):
    connections = ThreadConnections(file, lambda: connect_to_read(file))
    forked = multiprocessing.get_context("fork").Process(target=_reads_by_itself, args=(connections, connections.get()))
    forked.start()
    forked.join()
    assert forked.exitcode == 0


@pytest.mark.parametrize(
    ("value", "stored"),
    [("a\ud800b", "a?b"), (2**63, None), (-(2**70), None), (2**62, 2**62), (None, None), (0.5, 0.5)],
)
def test_a_parameter_is_something_that_sqlite_takes(value, stored):
    assert parameter(value) == stored


ENDLESS = "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted) SELECT {} FROM counted"


@pytest.mark.parametrize("taken", [list, lambda rows: rows.fetchall(), sorted])
def test_the_deadline_interrupts_a_query_that_reads_on_afterwards_and_disturbs_none_that_ends_in_time(file, taken):
    with closing(connect_to_read(file)) as connection:
        for what in ("n", "COUNT(*)"):
            started = time.monotonic()
            with pytest.raises(deadline.DeadlineError), deadline.within(0.1):
                taken(connection.execute(ENDLESS.format(what)))
            assert time.monotonic() - started < 1.0
        assert connection.execute(READ).fetchone() == (1,)
        with deadline.within(60.0):
            assert len(taken(connection.execute(f"{ENDLESS.format('n')} LIMIT 100000"))) == 100_000
