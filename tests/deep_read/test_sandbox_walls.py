"""Where a wall is missing, the sandbox says which, and runs nothing unless the user accepts."""

import platform
from dataclasses import replace

import pytest

from legal_rag.deep_read import Sandbox
from legal_rag.deep_read.sandbox import policy as sandbox_filters
from legal_rag.deep_read.sandbox.sandbox import Walls, walls

WHOLE = Walls("x", seccomp=True, landlock=7, limits=True, user=True, lifeline=True)


def test_no_program_runs_where_a_wall_is_missing(monkeypatch):
    def without_library():
        raise OSError("libseccomp: not found")

    monkeypatch.setattr("legal_rag.deep_read.sandbox.process.filters", without_library)
    with Sandbox({}) as sandbox:
        result = sandbox.run("print(1)")
    assert (result.status, result.output) == ("refused", "")
    assert result.error.startswith(f"refusé : sur ce système ({platform.system()} ")
    assert "il manque : seccomp (libseccomp.so.2)" in result.error
    assert "accept_no_walls=True" in result.error


def test_a_user_may_accept_that_a_wall_is_missing(monkeypatch):
    def without_library():
        raise OSError("libseccomp: not found")

    monkeypatch.setattr("legal_rag.deep_read.sandbox.process.filters", without_library)
    with Sandbox({}, accept_no_walls=True) as sandbox:
        assert sandbox.run("print(1)").output == "1\n"
        for attack in ("import os\nos.fork()", "open('/etc/passwd')", "import socket", "import os\nos.kill(1, 0)"):
            assert sandbox.run(attack).status == "error"


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        ({"landlock": 0}, "Landlock ou espaces de noms d'utilisateur"),
        ({"seccomp": False}, "seccomp (libseccomp.so.2)"),
        ({"limits": False}, "limites de ressources"),
        ({"user": False}, "utilisateur sans droits"),
        ({"lifeline": False}, "fin avec le processus parent"),
    ],
)
def test_what_is_missing_is_named(without, missing):
    walls = replace(WHOLE, **without)
    assert walls.missing == (missing,)
    assert f"il manque : {missing}." in walls.refusal()


@pytest.mark.parametrize("files", [{"landlock": 1}, {"root": True}])
def test_one_wall_around_files_is_enough(files):
    assert replace(WHOLE, **{"landlock": 0, **files}).refusal() is None


def test_windows_is_refused(monkeypatch):
    monkeypatch.setattr("legal_rag.deep_read.sandbox.sandbox.sys.platform", "win32")
    result = Sandbox({}, accept_no_walls=True).run("print(1)")
    assert (result.status, result.output) == ("refused", "")
    assert result.error.startswith("refusé : sous Windows il n'y a pas de bac à sable ; ")


def test_a_system_on_which_no_child_starts_is_refused(monkeypatch):
    monkeypatch.setattr("legal_rag.deep_read.sandbox.process.sys.executable", "/nonexistent/python")
    with Sandbox({}) as sandbox:
        result = sandbox.run("print(1)")
    assert result.status == "refused"
    assert result.error == "refusé : [Errno 2] No such file or directory: '/nonexistent/python'"


def test_a_child_that_cannot_begin_says_why(monkeypatch):
    monkeypatch.setattr("legal_rag.deep_read.sandbox.process.CODE", "raise OSError('mal installé')")
    with Sandbox({}) as sandbox:
        result = sandbox.run("print(1)")
    assert result.status == "refused"
    assert result.error == "refusé : le bac à sable n'a pas démarré : OSError: mal installé"


@pytest.mark.skipif(bool(walls().missing), reason=f"walls are missing here: {walls().missing}")
def test_where_nobody_can_count_what_is_written_nothing_is(monkeypatch):
    compiled = sandbox_filters.filters()._replace(counted=b"not a filter")
    monkeypatch.setattr("legal_rag.deep_read.sandbox.process.filters", lambda: compiled)
    with Sandbox({}) as sandbox:
        assert "Operation not permitted" in sandbox.run("open('x', 'w')").error
        assert sandbox.run("print(1)").output == "1\n"
