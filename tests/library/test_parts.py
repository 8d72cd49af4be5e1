"""Parts of a Library: documents read once for all, and a pool that keeps order and leaves no process behind."""

import os
import signal
import subprocess
import sys
from itertools import islice

import pytest

from legal_rag.library.library import STORE
from legal_rag.library.parts import LibraryPart, bring_up_to_date, parallel_map, process_pool


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_each_document_is_read_once_for_the_parts_that_lack_it(tiny_library, batch):
    read, stored = {}, {"first": [], "second": []}

    def making(name):
        def make(document):
            read.setdefault(document.key, set()).add(id(document.document))
            return name, document.key

        return make

    parts = [
        LibraryPart(lacking, making(name), lambda rows, name=name: stored[name].append(rows))
        for name, lacking in (("first", [1, 2, 5]), ("second", [2, 3]))
    ]
    assert bring_up_to_date(tiny_library.path / STORE, parts, batch=batch) == 4
    assert [row for rows in stored["first"] for row in rows] == [("first", key) for key in (1, 2, 5)]
    assert [row for rows in stored["second"] for row in rows] == [("second", key) for key in (2, 3)]
    assert {key: len(documents) for key, documents in read.items()} == dict.fromkeys((1, 2, 3, 5), 1)
    assert max(map(len, stored["first"])) <= batch
    assert bring_up_to_date(tiny_library.path / STORE, [LibraryPart([], len, print)]) == 0


@pytest.fixture(scope="module")
def two():
    with process_pool(2, 2) as pool:
        yield pool


class Things(list):
    """Tells how many of it were taken."""

    taken = 0

    def __iter__(self):
        for one in super().__iter__():
            self.taken += 1
            yield one


def test_results_come_in_the_order_of_the_things_with_an_error_in_its_turn(two):
    assert list(parallel_map(two, abs, range(-20, 0))) == list(range(20, 0, -1))
    assert list(parallel_map(two, abs, [])) == []
    results = parallel_map(two, len, ["a", "bb", 3, "dddd"])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)"):
        next(results)


def test_things_are_taken_only_as_results_are(two):
    things = Things(range(1000))
    assert list(islice(parallel_map(two, abs, things), 3)) == [0, 1, 2]
    assert things.taken <= 3 + 2 * os.cpu_count()


@pytest.mark.parametrize(("n", "things", "others"), [(1, "abc", False), (2, "a", False), (2, "ab", True)])
def test_other_processes_work_only_where_there_is_work_for_two(n, things, others):
    with process_pool(n, len(things)) as pool:
        assert (pool is not None) is others
        assert (os.getpid() in set(parallel_map(pool, _process_of, things))) is not others


def _process_of(_):
    return os.getpid()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX systems do")
def test_processes_end_with_the_one_that_was_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
from legal_rag.library.parts import parallel_map, process_pool
if __name__ == "__main__":
    with process_pool(2, 10) as pool:
        print(next(parallel_map(pool, abs, range(10))), flush=True)
        sys.stdin.read()
""",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"0\n"
    process.send_signal(signal.SIGKILL)
    # Its processes write where it did: the end is read when the last of them has ended.
    assert process.communicate(timeout=60) == (b"", None)
