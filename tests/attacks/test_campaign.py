"""The campaign's own measuring: what it must see of a case, and what it makes of a worker that is lost."""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from attacks import campaign
from attacks.cases import Case, Outcome


@pytest.fixture
def home(tmp_path, monkeypatch):
    campaign._make_folders(tmp_path)
    (tmp_path / "library" / "sample").mkdir()
    (tmp_path / "library" / "sample" / "file").write_text("x")
    (tmp_path / "library" / "built").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def attacked(home, work, seconds=5.0, attempts=1):
    return campaign.attacked("group", Case("case", work, seconds, attempts), home)


def test_a_case_that_leaves_nothing_holds(home):
    assert attacked(home, lambda place: Outcome(True, "refusé : …")).holds


def _leaves_a_thread(place):
    threading.Thread(target=time.sleep, args=(3,), name="left", daemon=True).start()
    return Outcome(True, "x")


def _leaves_a_process(place):
    _leaves_a_process.held = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3)"])
    return Outcome(True, "x")


def _leaves_a_file(place):
    Path(tempfile.mkdtemp(), "file").touch()
    return Outcome(True, "x")


def _changes_the_library(place):
    (place.library / "file").write_text("xy")
    return Outcome(True, "x")


def _takes_memory(place):
    return Outcome(bool(bytearray(400_000_000)), "x")


def _takes_long(place):
    time.sleep(1.1)
    return Outcome(True, "x")


def _raises(place):
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        (_leaves_a_thread, "left the thread left"),
        (_leaves_a_process, "left the process"),
        (_leaves_a_file, "left or changed tmp/"),
        (_changes_the_library, "left or changed library/sample/file"),
        (_takes_memory, "MB"),
        (_takes_long, " s of 0"),
        (_raises, "raised"),
        (lambda place: Outcome(False, "x"), "not contained"),
        (lambda place: Outcome(True, " "), "said nothing"),
    ],
)
def test_what_a_case_does_wrong_is_seen(home, monkeypatch, work, fault):
    monkeypatch.setattr(campaign, "GRACE_S", 0.05)
    seconds = 0.0 if work is _takes_long else 5.0
    assert fault in "; ".join(attacked(home, work, seconds).faults)


def test_a_case_of_many_attempts_holds_if_all_are_contained(home):
    assert attacked(home, lambda place: Outcome(7, "x"), attempts=7).holds
    assert not attacked(home, lambda place: Outcome(6, "x"), attempts=7).holds


def test_what_is_in_its_folder_goes_with_the_case_however_deep_it_is(home):
    def deep(place):
        import os

        here = os.open(place.folder, os.O_RDONLY)
        for _ in range(300):
            os.mkdir("d" * 200, dir_fd=here)
            inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(here)
        return Outcome(True, "x")

    assert attacked(home, deep).holds
    assert not (home / "case").exists()


LOST = """
import os, time
from attacks.cases import Case, Outcome
def cases(seed):
    yield Case("ends the process", lambda place: os._exit(7), 60)
    yield Case("hangs", lambda place: time.sleep(60), 0)
    yield Case(f"is well, seed {seed}", lambda place: Outcome(True, "x"), 60)
"""


def test_a_worker_that_is_lost_is_a_result_and_the_others_go_on_and_are_taken_up(home, tmp_path, monkeypatch):
    import importlib.util

    (tmp_path / "lost.py").write_text(LOST)
    spec = importlib.util.spec_from_file_location("attacks.lost", tmp_path / "lost.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "attacks.lost", module)
    monkeypatch.setattr(campaign, "HUNG_S", 0.2)
    monkeypatch.setattr(campaign, "GRACE_S", 0.1)
    monkeypatch.setattr(
        campaign, "_command", lambda home, seed: [sys.executable, "-c", WORKER, str(tmp_path), str(home), str(seed)]
    )
    results = campaign.run(home, 3, ["lost"], None)
    assert [(one.name, one.holds) for one in results] == [
        ("ends the process", False),
        ("hangs", False),
        ("is well, seed 3", True),
    ]
    assert "ended the worker (7)" in results[0].faults
    assert "hung: the worker was killed" in results[1].faults
    monkeypatch.setattr(campaign, "_command", lambda home, seed: ["false"])  # nothing is left to do
    assert len(campaign.run(home, 3, ["lost"], None)) == 3


WORKER = """
import importlib.util, json, sys
from pathlib import Path
from attacks import campaign
campaign.GRACE_S = 0.1
spec = importlib.util.spec_from_file_location("attacks.lost", sys.argv[1] + "/lost.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["attacks.lost"] = module
campaign.GROUPS = ("lost",)
campaign.work(Path(sys.argv[2]), int(sys.argv[3]), json.loads(sys.stdin.read()))
"""
