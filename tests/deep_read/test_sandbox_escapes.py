"""Escapes from the sandbox: each is contained, the parent unharmed, the message honest.

Attacks on files, processes and the network are run with Python's audit hook taken away, so that the kernel's walls are
tried by themselves; attacks on Python, with all walls. A program that gets through prints a word that it is given.
"""

import contextlib
import os
import platform
import socket
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from support import sandbox_attacks as attacks
from support.processes import children, open_files

import legal_rag
from legal_rag.deep_read import Limits, Sandbox, SandboxResult
from legal_rag.deep_read.sandbox import process as sandbox_process
from legal_rag.deep_read.sandbox.sandbox import walls

pytestmark = pytest.mark.skipif(bool(walls().missing), reason=f"walls are missing here: {walls().missing}")
writes = pytest.mark.skipif(not walls().quota, reason="nobody can count what is written here, so nothing can be")
SECRET = "the-canary-is-alive"  # in a file and a variable that no program must see
GOT = "ESCAPED"
LONG = Limits(memory_mb=256, output_chars=2_000, disk_mb=1)
SHORT = Limits(memory_mb=256, output_chars=2_000, disk_mb=1, cpu_s=0.15, wall_s=0.2)
UNGUARDED = (
    "from legal_rag.deep_read.sandbox.child import imports; imports.FORGOTTEN = imports.REFUSED = imports.PATHS = (); "
)


class Arena:
    """Where attacks are run, and what they must not reach."""

    def __init__(self, folder: Path) -> None:
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.canary = self.outside / "canary.txt"
        self.canary.write_text(SECRET)
        for place in (*self.outside.parents, self.outside, self.canary):
            with contextlib.suppress(PermissionError):
                place.chmod(place.stat().st_mode | (0o777 if place in (self.outside, self.canary) else 0o055))
        self.listeners = list(_listening(folder))
        self.called: list[object] = []
        self.values = {
            "GOT": GOT,
            "CANARY": str(self.canary),
            "OUTSIDE": str(self.outside),
            "PACKAGE": legal_rag.__file__,
            "PARENT": os.getpid(),
            "PORT": self.listeners[0].getsockname()[1],
            "UNIX": str(folder / "socket"),
            "ABSTRACT": f"\0legal-rag-{os.getpid()}",
        }
        self.before = children()
        self._sandboxes: dict[object, Sandbox] = {}

    def run(self, code: str, limits: Limits = LONG, kind: str = "") -> SandboxResult:
        """Run a program in the sandbox of its kind, or in one of its own."""
        sandbox = self._sandboxes.get((limits, kind)) or Sandbox({"echo": self.echo}, limits, values=self.values)
        if kind:
            self._sandboxes[limits, kind] = sandbox
        try:
            return sandbox.run(dedent(code))
        finally:
            if not kind:
                sandbox.close()

    def check(self) -> None:
        """Assert that nothing outside was reached."""
        for listener in self.listeners:
            with pytest.raises(BlockingIOError, match="temporarily unavailable"):
                listener.accept()
        assert self.canary.read_text() == SECRET
        assert [one.name for one in self.outside.iterdir()] == ["canary.txt"]
        assert len(children() - self.before) <= len(self._sandboxes)

    def close(self) -> None:
        """End all."""
        for one in (*self._sandboxes.values(), *self.listeners):
            one.close()

    def echo(self, value: object = None) -> object:
        self.called.append(value)
        return value


def _listening(folder: Path) -> Iterator[socket.socket]:
    """Listen on IPv4, in a file, under an abstract name, and on IPv6 where there is any."""
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, str(folder / "socket")),
        (socket.AF_UNIX, f"\0legal-rag-{os.getpid()}"),
        (socket.AF_INET6, ("::1", 0)),
    ):
        listener = socket.socket(family)
        with contextlib.suppress(OSError):
            listener.bind(address)
            listener.listen()
            listener.setblocking(False)
            yield listener
    (folder / "socket").chmod(0o777)


def _state_of(pid: int) -> str:
    """Return the letter by which the kernel tells what a process does: R runs, T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture(scope="module")
def whole_arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Lay out what attacks must not reach; in the end nothing of theirs is left."""
    scratch = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEGAL_RAG_CANARY", SECRET)
        patch.setattr("tempfile.tempdir", str(scratch))
        before = open_files()
        arena = Arena(tmp_path_factory.mktemp("arena"))
        yield arena
        arena.close()
        assert open_files() <= before
        assert not list(scratch.iterdir())


@pytest.fixture
def arena(whole_arena: Arena) -> Iterator[Arena]:
    """Give the arena, and look afterwards whether an attack has reached anything."""
    yield whole_arena
    whole_arena.check()


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take Python's own wall away from children that start now: the kernel's must do."""
    monkeypatch.setattr(sandbox_process, "CODE", sandbox_process.CODE.replace("from", UNGUARDED + "from", 1))


def assert_contained(result: SandboxResult, status: str, says: str) -> None:
    told = result.output + (result.error or "")
    assert result.status in status.split(), result
    assert says in told, result
    assert GOT not in told
    assert SECRET not in told
    assert len(result.output) <= LONG.output_chars + 60
    assert len(result.error or "") <= 10_000
    assert (result.error is None) == (result.status == "ok")
    assert ("les variables sont perdues" in told) == (result.status in ("timeout", "killed"))


def each(table: dict):
    return pytest.mark.parametrize("name", table)


def skip_where_nothing_can_be_written(code: str) -> None:
    if not walls().quota and any(sign in code for sign in ("'w'", "'wb'", '"wb"', "mkdir")):
        pytest.skip("nobody can count what is written here, so nothing can be")


def limits_of(status: str) -> Limits:
    return SHORT if "timeout" in status else LONG


@each(attacks.FILES)
def test_no_other_file_is_reached(name, arena, unguarded):
    assert_contained(arena.run(attacks.FILES[name], kind="files"), "error", "Error")


@each(attacks.FILES)
def test_no_other_file_is_reached_in_python_either(name, arena):
    assert_contained(arena.run(attacks.FILES[name], kind="guarded"), "error", "Error")


@each(attacks.PROCESSES)
def test_nobody_is_started_disturbed_or_spoken_to(name, arena, unguarded):
    result = arena.run(attacks.REACH + dedent(attacks.PROCESSES[name]), kind="processes")
    assert_contained(result, "error", "rror")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls are numbered for x86-64")
@each(attacks.SYSTEM_CALLS)
def test_the_kernel_refuses_a_system_call(name, arena, unguarded):
    result = arena.run(f"{attacks.REACH}raw({attacks.SYSTEM_CALLS[name]})", kind="calls")
    assert_contained(result, "ok", "Operation not permitted -1\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call is numbered for x86-64")
def test_the_kernel_opens_no_other_file(arena, unguarded):
    result = arena.run(f"{attacks.REACH}raw(2, CANARY.encode(), 0)", kind="calls")
    assert result.output in ("No such file or directory -1\n", "Permission denied -1\n")


@each(attacks.PYTHON)
def test_python_gives_no_way_out(name, arena):
    code, status, says = attacks.PYTHON[name]
    skip_where_nothing_can_be_written(code)
    kind = "python" if status == "error" else ""  # what only fails leaves the child as it was
    assert_contained(arena.run(code, limits_of(status), kind), status, says)


@each(attacks.EXHAUSTION)
def test_what_a_program_takes_is_bounded(name, arena):
    code, status, says = attacks.EXHAUSTION[name]
    skip_where_nothing_can_be_written(code)
    assert_contained(arena.run(code, limits_of(status)), status, says)


@pytest.mark.parametrize(
    "name",  # all of them are tried on the channel itself in `test_sandbox_channel.py`
    [
        name if name.startswith(("calls", "says")) else pytest.param(name, marks=pytest.mark.slow)
        for name in attacks.FORGERIES
    ],
)
def test_a_forged_message_ends_the_child(name, arena):
    message, says = attacks.FORGERIES[name]
    before = len(arena.called)
    sending = f"import zlib\nconnection.sendall(zlib.decompress({zlib.compress(message)!r}))\necho()"
    result = arena.run(attacks.REACH + sending, kind="forgeries")
    assert_contained(result, "killed", says)
    assert result.error.startswith("arrêté : le programme a contrefait un message (")
    assert len(arena.called) == before


@each(attacks.FORGING)
def test_a_program_that_takes_over_its_channel_reaches_nothing(name, arena, unguarded):
    code, status, says = attacks.FORGING[name]
    assert_contained(arena.run(attacks.REACH + dedent(code), limits_of(status)), status, says)


def test_a_program_that_says_it_is_done_and_goes_on_stands_still(arena):
    done = attacks.REACH + f"connection.send({attacks.done()!r})\n"
    before = len(arena.called)
    with Sandbox({"echo": arena.echo}, SHORT, values=arena.values) as sandbox:
        pid = int(sandbox.run("import os\nprint(os.getpid())").output)
        assert sandbox.run(done + "while True: echo(1)").status == "ok"
        deadline = time.monotonic() + 10
        while (state := _state_of(pid)) != "T" and time.monotonic() < deadline:
            pass
        assert (state, len(arena.called)) == ("T", before)
        results = [sandbox.run("print(1)") for _ in range(3)]  # what comes first meets a child that is out of step
    assert results[-1] == ("ok", "1\n", None)
    assert legal_rag.__path__[0] not in str(results)


def test_a_program_cannot_look_at_its_parent_s_variables(arena):
    result = arena.run("import os\nprint(os.environ.get('LEGAL_RAG_CANARY'), list(os.environ), os.getenv('HOME'))")
    assert result.output == "None [] None\n"


@writes
def test_a_program_that_poisons_its_child_poisons_no_other_sandbox(arena):
    with Sandbox({}) as other:
        assert arena.run("import os\nos.getcwd = None\nopen('x', 'w').write('y')", kind="poisoned").status == "ok"
        assert "NoneType" in arena.run("import os\nos.getcwd()", kind="poisoned").error
        assert other.run("import os\nprint(os.listdir('.'), len(os.getcwd()) > 0)").output == "[] True\n"


def test_a_file_outside_cannot_be_told_from_one_that_is_not_there(arena, unguarded):
    if not walls().root:
        pytest.skip("no user namespaces here: whether a file exists can be told")
    code = "import os\nfor path in (CANARY, CANARY + 'x', PACKAGE, '/etc/passwd'): print(os.path.exists(path))"
    assert arena.run(code, kind="files").output == "False\n" * 4


@writes
def test_odd_names_and_modes_are_deleted_and_links_are_not_followed(arena, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox({}, values=arena.values) as sandbox:
        code = """
            import os
            for name in ("a b", "\\n", "é" * 60, "\\udcff", "-rf", "x" * 255):
                open(name, "w")
            os.mkdir("closed", 0o300)
            open("closed/in", "w")
            os.mkdir("locked", 0)
            for depth in range(1, 25): os.mkdir("/".join(["d"] * depth))
        """
        assert sandbox.run(dedent(code)).status == "ok"
        (scratch,) = tmp_path.iterdir()
        (scratch / "link").symlink_to(arena.outside)
    assert not list(tmp_path.iterdir())
