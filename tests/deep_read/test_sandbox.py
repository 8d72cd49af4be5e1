"""The sandbox as it is used: its limits, its clocks, its threads, and what is left when it ends."""

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.processes import children, open_files

from legal_rag.deadline import DeadlineError, within
from legal_rag.deep_read import Limits, Sandbox
from legal_rag.deep_read.sandbox.sandbox import walls
from legal_rag.deep_read.sandbox.scratch import Scratch

pytestmark = pytest.mark.skipif(bool(walls().missing), reason=f"walls are missing here: {walls().missing}")
writes = pytest.mark.skipif(not walls().quota, reason="nobody can count what is written here, so nothing can be")


@pytest.fixture
def started():
    """Tell which processes the test has started that are not buried, whatever those before it left."""
    before = children()
    return lambda: children() - before


@pytest.fixture
def interruptible():
    """Let SIGINT interrupt also where it was being ignored when the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_output_beyond_the_limit_is_counted_not_kept():
    with Sandbox({}, Limits(output_chars=10)) as sandbox:
        assert sandbox.run("print('é' * 6)\nprint('b' * 100)") == ("ok", "éééééé\nbbb\n… [98 caractères de plus]", None)
        assert sandbox.run("print('c')").output == "c\n"


def test_an_error_that_is_no_exception_ends_the_child_and_comes_out():
    class Stop(BaseException):
        pass

    def stop():
        raise Stop("budget")

    with Sandbox({"stop": stop}) as sandbox:
        sandbox.run("x = 1")
        with pytest.raises(Stop, match="budget"):
            sandbox.run("try:\n    stop()\nexcept BaseException:\n    pass")
        assert "NameError" in sandbox.run("print(x)").error


def test_an_interruption_while_a_program_runs_ends_it_and_comes_out(started, interruptible):
    with Sandbox({"ready": lambda: signal.raise_signal(signal.SIGINT)}) as sandbox:
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("ready()\nwhile True: pass")
        assert sandbox.run("print(1)").output == "1\n"
    assert not started()


def test_a_function_cannot_run_a_program_in_the_sandbox_that_called_it():
    with Sandbox({"again": lambda: sandbox.run("1")}) as sandbox:
        assert "ValueError: this sandbox is running a program already" in sandbox.run("again()").error
        assert sandbox.run("print(1)").output == "1\n"


def test_the_clocks_stand_still_while_a_function_runs():
    pause = threading.Event()
    with Sandbox({"ask": lambda: pause.wait(0.6)}, Limits(wall_s=0.4, cpu_s=0.4)) as sandbox:
        assert sandbox.run("print(ask())") == ("ok", "False\n", None)


# --- limits


def test_what_was_printed_before_a_time_out_is_kept_and_the_state_is_lost():
    with Sandbox({}, Limits(wall_s=0.3)) as sandbox:
        sandbox.run("x = 1")
        result = sandbox.run("import time\nprint('vu')\ntime.sleep(60)")
        assert result == (
            "timeout",
            "vu\n",
            "arrêté : plus de 0.3 s ; les variables sont perdues, le prochain programme repart de zéro",
        )
        assert "NameError: name 'x' is not defined" in sandbox.run("print(x)").error


def test_computing_too_long_is_told_from_waiting_too_long():
    with Sandbox({}, Limits(cpu_s=0.3)) as sandbox:
        result = sandbox.run("while True: pass")
    assert (result.status, result.error.split(" ; ")[0]) == ("timeout", "arrêté : plus de 0.3 s de calcul")


def test_a_new_child_has_the_values_again():
    ids = ["a", "b"]
    with Sandbox({}, Limits(wall_s=0.3), values={"ids": ids}) as sandbox:
        ids.append("c")
        assert sandbox.run("ids.clear()\nimport time\ntime.sleep(60)").status == "timeout"
        assert sandbox.run("print(ids)").output == "['a', 'b']\n"


def test_memory_given_back_can_be_used_again():
    with Sandbox({}, Limits(memory_mb=64)) as sandbox:
        assert sandbox.run("x = bytearray(200_000_000)").error.endswith("MemoryError")
        assert sandbox.run("x = bytearray(30_000_000)\ndel x\nx = bytearray(30_000_000)\nprint(len(x))").status == "ok"


def test_too_much_code_is_refused():
    with Sandbox({}) as sandbox:
        result = sandbox.run("#" * 200_001)
    assert result == ("refused", "", "refusé : 200001 caractères de code, au plus 200000")


@pytest.mark.parametrize("name", ["memory_mb", "cpu_s", "wall_s", "output_chars", "disk_mb"])
def test_limits_must_be_above_nothing_and_finite(name):
    for value in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"a sandbox's {name} must be above 0 and finite, got {value}"):
            Limits(**{name: value})


def test_large_limits_limit_all_the_same():
    with Sandbox({}, Limits(memory_mb=10**6, cpu_s=1e9, wall_s=1e9, output_chars=10**9, disk_mb=10**6)) as sandbox:
        assert sandbox.run("print('x' * 100_000)") == ("ok", "x" * 100_000 + "\n", None)


def test_a_child_holds_nothing_that_it_was_not_given():
    with Sandbox({}) as sandbox:
        pid = sandbox.run("import os\nprint(os.getpid())").output.strip()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert {status[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {""}
        try:
            held = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
        except PermissionError:  # only root may look into a process that lets nobody
            return
    kinds = sorted(one.split(":")[0] for one in held)
    assert kinds == ["/dev/null", "/dev/null", "/dev/null", "pipe", "socket"]


@pytest.mark.parametrize("name", ["", "a b", "1x", "a.b"])
def test_a_name_that_no_program_can_use_is_refused(name):
    with pytest.raises(ValueError, match="not a name that a program can use"):
        Sandbox({name: print})


def test_a_value_that_is_not_plain_is_refused():
    with pytest.raises(ValueError, match="type object n'est pas une valeur JSON"):
        Sandbox({}, values={"x": object()})


# --- what is left when it ends


@writes
def test_closing_leaves_no_process_and_no_folder(tmp_path, monkeypatch, started):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox({}) as sandbox:
        sandbox.run("import os\nopen('a', 'w').write('x')\nos.mkdir('d')\nopen('d/\\udcff é\\n', 'w')")
        assert len(list(tmp_path.iterdir())) == len(started()) == 1
    assert not list(tmp_path.iterdir())
    assert not started()
    sandbox.close()


def test_a_closed_sandbox_runs_nothing():
    with Sandbox({}) as sandbox:
        pass
    with pytest.raises(ValueError, match="this sandbox is closed"):
        sandbox.run("print(1)")


def test_an_error_inside_the_with_block_closes_the_sandbox(tmp_path, monkeypatch, started):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RuntimeError, match="dehors"), Sandbox({}) as sandbox:
        sandbox.run("x = 1")
        raise RuntimeError("dehors")
    assert not list(tmp_path.iterdir())
    assert not started()


def test_a_sandbox_that_nobody_closes_goes_with_its_last_name(tmp_path, monkeypatch, started):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = Sandbox({})
    sandbox.run("x = 1")
    del sandbox
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert not started()


def test_sandboxes_leave_no_descriptors_open():
    def use():
        with Sandbox({}) as sandbox:
            sandbox.run("print(1)")

    use()
    before = open_files()
    for _ in range(8):
        use()
    assert open_files() <= before


@writes
@pytest.mark.slow
def test_fifty_sandboxes_one_killed_in_two_leave_nothing(tmp_path, monkeypatch, started):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = open_files()
    for n in range(50):
        with Sandbox({}) as sandbox:
            sandbox.run("import os\nos._exit(1)" if n % 2 else "open('x', 'w')")
    assert open_files() <= before
    assert not list(tmp_path.iterdir())
    assert not started()


@writes
@pytest.mark.parametrize("n_open", [249, 250, 251, 252, 300])
def test_a_sandbox_works_whatever_the_numbers_of_its_descriptors(n_open):
    held = []
    while not held or held[-1] < n_open:
        held.append(os.dup(0))
    try:
        with Sandbox({"add": lambda a, b: a + b}) as sandbox:
            assert sandbox.run("open('x', 'w').write('y')\nprint(add(1, 2))").output == "3\n"
    finally:
        for one in held:
            os.close(one)


def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path):
    script = (
        "import sys\nfrom legal_rag.deep_read.sandbox.sandbox import Sandbox\n"
        "def told(pid):\n    print(pid, flush=True)\n"
        "Sandbox({'told': told}).run('import os\\ntold(os.getpid())\\nwhile True: pass')\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True)
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    assert select.select([child], [], [], 10)[0]  # it can be read once the process has ended
    os.close(child)


FORKING = """
import os, sys, time
from legal_rag.deep_read.sandbox.sandbox import Sandbox
def told(pid):
    if (fork := os.fork()) == 0:  # holds all that is open here
        os.close(1)
        time.sleep(600)
    print(pid, fork, flush=True)
Sandbox({"told": told}).run("import os\\ntold(os.getpid())\\nwhile True: pass")
"""


def test_a_child_does_not_outlive_its_parent_where_a_fork_of_that_lives_on(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, env=environment, text=True)
    child, fork = map(os.pidfd_open, map(int, parent.stdout.readline().split()))
    try:
        parent.kill()
        parent.communicate()
        assert select.select([child], [], [], 10)[0]
        assert not select.select([fork], [], [], 0)[0]
    finally:
        signal.pidfd_send_signal(fork, signal.SIGKILL)
        os.close(child)
        os.close(fork)


def test_what_killed_processes_left_is_deleted_at_the_next_start_and_nothing_else(tmp_path, monkeypatch):
    script = (
        "from legal_rag.deep_read.sandbox.sandbox import Sandbox\n"
        "Sandbox({'told': lambda: print(flush=True)}).run('import os\\nos.mkdir(\"d\")\\ntold()\\nwhile True: pass')\n"
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parents = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) for _ in range(2)
    ]
    for one in parents:
        one.stdout.readline()
    folders = set(tmp_path.iterdir())
    other = tmp_path / "legal-rag-scratch-link"
    other.symlink_to(tmp_path.parent)
    parents[0].kill()
    parents[0].communicate()
    with Sandbox({}):
        left = folders & set(tmp_path.iterdir())
        assert len(left) == 1
        parents[1].kill()
        parents[1].communicate()
    with Sandbox({}), Sandbox({}):
        assert not left & set(tmp_path.iterdir())
        assert len(list(tmp_path.iterdir())) == 3
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_is_deleted_whatever_its_depth_names_and_modes(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    made = Scratch()
    here = os.open(made.path, os.O_RDONLY)
    for depth in range(100):  # a path of 16,000 bytes
        name = f"{depth}" * 80
        for link in ("file", "folder"):
            os.symlink(tmp_path / "kept" / ("file" if link == "file" else ""), link, dir_fd=here)
        os.mkdir("empty", dir_fd=here)
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.fchmod(here, 0)
        os.close(here)
        here = inner
    os.close(here)
    before = open_files()
    made.delete()
    made.delete()
    assert len(before - open_files()) == 1
    assert [one.name for one in tmp_path.rglob("*")] == ["kept", "file"]


def test_what_cannot_be_deleted_is_left_and_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Scratch()
    (made.path / "a").touch()
    monkeypatch.setattr("os.unlink", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    made.delete()
    assert (made.path / "a").exists()


WRITING = {
    "a byte in each block of a file": (
        "import os\nf = os.open('x', os.O_RDWR | os.O_CREAT)\nn = 0\n"
        "while True:\n    os.lseek(f, n, 0)\n    os.write(f, b'x')\n    n = (n + 4096) % 1_000_000"
    ),
    "a byte across the ends of blocks": (
        "import os\nf = os.open('x', os.O_RDWR | os.O_CREAT)\nn = 4095\n"
        "while True:\n    os.pwrite(f, b'xy', n)\n    n = (n + 8192) % 1_000_000"
    ),
    "a byte in each of many files": ("for n in range(10**6):\n    with open(f'{n}', 'w') as f: f.write('x')"),
    "long names": "for n in range(10**6): open(f'{n}' + 'x' * 240, 'w').close()",
    "renaming over and over": (
        "import os\nopen('0', 'w').close()\n"
        "for n in range(10**6): os.rename(f'{n - 1}' + 'x' * 240 if n else '0', f'{n}' + 'x' * 240)"
    ),
    "folders": "import os\nfor n in range(10**6): os.mkdir(f'{n}' + 'x' * 240)",
}


@writes
@pytest.mark.parametrize("name", WRITING)
def test_a_program_fills_no_more_of_the_disk_than_it_may(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Sandbox({}, Limits(disk_mb=1)) as sandbox:
        assert "[Errno 2" in sandbox.run(WRITING[name]).error
        (scratch,) = tmp_path.iterdir()
        assert sum(one.lstat().st_blocks * 512 for one in (scratch, *scratch.rglob("*"))) <= 1 << 20


@writes
def test_a_refused_call_does_not_use_up_the_rest():
    with Sandbox({}, Limits(disk_mb=1)) as sandbox:
        assert "[Errno 28]" in sandbox.run("open('x', 'wb').truncate(2_000_000)").error
        assert sandbox.run("with open('x', 'w') as f: f.write('é')\nprint(open('x').read())").output == "é\n"


@writes
def test_refused_calls_without_end_do_not_stop_the_clock():
    code = "import os\nwhile True:\n    try: open('x', 'w').close()\n    except OSError: pass"
    with Sandbox({}, Limits(wall_s=0.4, disk_mb=1)) as sandbox:
        result = sandbox.run(code)
    assert (result.status, result.error.split(" ; ")[0]) == ("timeout", "arrêté : plus de 0.4 s")


def test_what_is_computed_is_limited_by_the_kernel_too(monkeypatch):
    with Sandbox({}, Limits(cpu_s=2)) as sandbox:
        pid = sandbox.run("import os\nprint(os.getpid())").output.strip()
        line = next(one for one in Path(f"/proc/{pid}/limits").read_text().splitlines() if one.startswith("Max cpu"))
    assert int(line.split()[-2]) <= 90 + 1  # of its whole life; of each program where that can be set


def test_a_process_may_be_limited_itself():
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (50, 60))\n"
        "from legal_rag.deep_read.sandbox.sandbox import Limits, Sandbox\n"
        "with Sandbox({}, Limits(cpu_s=0.3)) as sandbox:\n"
        "    print(sandbox.run('print(1)'), sandbox.run('while True: pass').error)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.startswith("SandboxResult(status='ok', output='1\\n', error=None) arrêté : plus de 0.3 s de calcul")


def test_a_program_s_own_clocks_go():
    code = "import time\nprint(time.process_time() > 0, time.thread_time() > 0, time.monotonic() > 0, time.time() > 0)"
    with Sandbox({}) as sandbox:
        assert sandbox.run(code).output == "True True True True\n"


def test_a_program_has_no_more_time_than_the_work_around_it(started):
    with Sandbox({}) as sandbox:
        with within(0.3), pytest.raises(DeadlineError):
            sandbox.run("while True: pass")
        assert sandbox.run("print(1)").output == "1\n"
    assert not started()


def test_a_function_may_close_the_sandbox_that_called_it(tmp_path, monkeypatch, started):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = Sandbox({"close": lambda: sandbox.close()})
    result = sandbox.run("close()")
    assert (result.status, result.error.split(" ; ")[0]) == ("killed", "arrêté : le bac à sable a été fermé")
    assert not started()
    assert not list(tmp_path.iterdir())


def test_no_thread_is_left_when_a_sandbox_is_closed():
    before = threading.active_count()
    with Sandbox({}) as sandbox:
        sandbox.run("import os\nos._exit(1)")
        sandbox.run("print(1)")
    assert threading.active_count() == before


def test_a_fork_of_this_process_runs_programs_in_a_child_of_its_own():
    with Sandbox({}) as sandbox:
        sandbox.run("x = 1")
        if (fork := os.fork()) == 0:
            found = sandbox.run("print('x' in globals())").output
            sandbox.close()
            os._exit(found != "False\n")
        assert os.waitpid(fork, 0)[1] == 0
        assert sandbox.run("print(x)").output == "1\n"


def test_a_fork_of_this_process_does_not_end_the_child_when_it_goes():
    with Sandbox({}) as sandbox:
        sandbox.run("x = 1")
        if (fork := os.fork()) == 0:
            sandbox.close()
            os._exit(0)
        os.waitpid(fork, 0)
        assert sandbox.run("print(x)").output == "1\n"


# --- threads


def test_a_sandbox_outlives_the_thread_that_made_it():
    made = []

    def make():
        sandbox = Sandbox({"add": lambda a, b: a + b})
        sandbox.run("x = add(1, 2)")
        made.append(sandbox)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    with made[0] as sandbox:
        assert sandbox.run("print(x, add('a', 'b'))").output == "3 ab\n"


@writes
def test_sandboxes_in_several_threads_do_not_meet():
    outputs = {}

    def use(n):
        with Sandbox({"who": lambda: n}) as sandbox:
            sandbox.run("open('mine', 'w').write(str(who()))")
            outputs[n] = sandbox.run("print(sum(who() for _ in range(200)), open('mine').read())").output

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{200 * n} {n}\n" for n in range(4)}


def test_closing_from_another_thread_ends_a_program_under_way(started):
    running = threading.Event()
    sandbox = Sandbox({"ready": running.set})
    results = []
    thread = threading.Thread(target=lambda: results.append(sandbox.run("ready()\nwhile True: pass")))
    thread.start()
    assert running.wait(30)
    sandbox.close()
    thread.join(30)
    assert [(result.status, result.error.split(" ; ")[0]) for result in results] == [
        ("killed", "arrêté : le bac à sable a été fermé")
    ]
    assert not started()


# --- the same every time


def test_a_program_run_again_in_a_new_child_walks_and_draws_alike():
    code = "import random\nprint(list({'a', 'b', 'c', 'd', 'e', 'f'}), random.random())"
    outputs = set()
    for _ in range(3):
        with Sandbox({}) as sandbox:
            outputs.add(sandbox.run(code).output)
    assert len(outputs) == 1
