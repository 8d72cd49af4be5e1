"""The sandbox's child process: started, held while idle, ended with all that it leaves."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import legal_rag
from legal_rag.deep_read.sandbox.channel import Channel, ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox.child import wire
from legal_rag.deep_read.sandbox.policy import FIRST_KEPT, filters
from legal_rag.deep_read.sandbox.scratch import Quota, Scratch, remove_leftovers

START_S = 30.0  # for the child to be ready, on however busy a machine
ENDING_S = 0.5  # for a child to be gone that has closed its end
BURYING_S = 5.0  # for a child to be gone that was killed, on however busy a machine
MOST_TOLD = 500  # characters of why a child did not start
MOST_CPU_S = 10**9  # that a kernel is asked for
LIFE_PROGRAMS = 30  # programs' worth of processor time in a child's whole life, even if nobody watches it
CODE = (
    "import sys; sys.path.append({root!r}); "
    "from legal_rag.deep_read.sandbox.child.main import main; main({channel}, {lifeline}, {parent})"
)
# Hashes alike in every child, so that a program run again walks through its sets in the same order.
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
NEEDED = ("LD_LIBRARY_PATH",)  # without which some Pythons do not start; programs see no variable at all


class StartError(Exception):
    """The child did not come to be ready; the message says why, in French."""


class _Closable(Protocol):
    def close(self) -> None: ...


class _Starter:
    """A thread that starts a process and lives until it is closed.

    The kernel kills a process, if it wants so, when the thread that started it ends; forks of us do not count.
    """

    def __init__(self) -> None:
        self._over, self._thread = threading.Event(), threading.Thread()

    def start(self, command: list[str], **settings: Any) -> "subprocess.Popen[bytes]":
        """Start a process.

        Raises:
            OSError: If none can be had, or no thread.
        """
        started: Future[subprocess.Popen[bytes]] = Future()

        def run() -> None:
            try:
                started.set_result(subprocess.Popen(command, **settings))  # noqa: S603
            except BaseException as error:  # whatever it is, it belongs to the thread that waits for it
                started.set_exception(error)
            self._over.wait()

        self._thread = threading.Thread(target=run, name="sandbox", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            raise OSError(str(error)) from error
        return started.result()

    def close(self) -> None:
        """Let the thread end."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(BURYING_S)


class Child:
    """A process that runs programs."""

    def __init__(self) -> None:
        """Start a process; it loads what it needs while others do something else.

        Raises:
            OSError: If no process, socket or folder can be had.
        """
        self._owner, self._end_lock = os.getpid(), threading.RLock()
        self._ends: list[_Closable] = []
        self._held = self._capped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = Scratch()
        try:
            self._start()
            remove_leftovers()  # while the child loads what it needs
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        starter = _Starter()
        self._connection, theirs = socket.socketpair()
        below, above = os.pipe()
        self._ends += [starter, self._connection, os.fdopen(above, "wb")]
        flags = ["-P", "-s", "-S", "-X", "utf8", *(["-B"] if sys.dont_write_bytecode else [])]
        root = str(Path(legal_rag.__file__).parents[1])
        code = CODE.format(root=root, channel=theirs.fileno(), lifeline=below, parent=self._owner)
        try:
            self._process = starter.start(
                [sys.executable, *flags, "-c", code],
                env=ENVIRONMENT | {name: os.environ[name] for name in NEEDED if name in os.environ},
                cwd=self._scratch.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), below),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(below)
        self._pid = self._process.pid

    @property
    def is_ours(self) -> bool:
        """Whether this process has started it, and is not a fork of the one that has."""
        return os.getpid() == self._owner

    def begin(self, setup: Mapping[str, Any], disk: int) -> Mapping[str, Any]:
        """Wait until it is ready; returns what its walls came to.

        Args:
            setup: The functions, values and limits that it is told.
            disk: Bytes that it may write.

        Raises:
            StartError: If it does not come to be ready.
        """
        self.channel = Channel(self._connection, setup["most_bytes"])
        child = {"disk": disk, "user": self._scratch.user, "first_kept": FIRST_KEPT}
        try:
            walls = self._prepared({**setup, **_filters(), **child}, disk)
        except (ChildGoneError, ForgedMessageError, OutOfTimeError) as error:
            raise StartError(f"le bac à sable n'a pas démarré : {self._last_words() or error}") from error
        self._close_stderr()
        self.hold()
        return walls

    def _prepared(self, setup: Mapping[str, Any], disk: int) -> Mapping[str, Any]:
        clock = Clock(START_S, START_S, self._seconds_computed)
        clock.go()
        self.channel.send(clock, wire.message(setup))
        if setup["seccomp"] is not None and (listener := self.channel.receive_descriptor(clock)) is not None:
            quota = Quota(listener, disk, self._scratch.block)
            self._ends.append(quota)
            self.channel.listen(listener, quota.answer)
        kind, content = self.channel.receive(clock)
        if kind != "ready":
            raise ForgedMessageError(f"un message « {kind} » avant tout programme")
        return dict(content["walls"])

    def clock(self, wall_s: float, cpu_s: float) -> Clock:
        """Return a clock for a program, and have the kernel end what computes much longer than that."""
        self._capped = self._cap(cpu_s)
        return Clock(wall_s, cpu_s, self._seconds_computed)

    def release(self) -> None:
        """Let it run."""
        if self._held:
            self._signal(signal.SIGCONT)
            self._held = False

    def hold(self) -> None:
        """Let it stand still, whatever it is doing."""
        self._signal(signal.SIGSTOP)
        self._held = True

    def wait_for_function(self) -> None:
        """Hold it while a function runs here, unless the kernel counts what it computes meanwhile: that is faster."""
        if not self._capped:
            self.hold()

    def exit_code(self) -> int | None:
        """Return its exit code, negative for a signal, if it ends by itself within a moment; else None."""
        if (process := self._process) is not None:  # else another thread has closed the sandbox
            with suppress(subprocess.TimeoutExpired):
                return process.wait(ENDING_S)
        return None

    def kill(self) -> None:
        """Kill it; whoever is talking to it notices, and `end` does the rest."""
        if self.is_ours:
            self._signal(signal.SIGKILL)

    def end(self) -> None:
        """Kill it and delete what it has written, as far as that can be done. May be called again."""
        if not self.is_ours:
            return
        with self._end_lock:
            self.kill()
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(BURYING_S)
                self._close_stderr()
                self._process = None
            while self._ends:
                with suppress(OSError):
                    self._ends.pop().close()
            self._scratch.delete()

    def _signal(self, number: signal.Signals) -> None:
        if (process := self._process) is not None and process.returncode is None:  # else its number may be another's
            with suppress(OSError):
                os.kill(self._pid, number)

    def _cap(self, cpu_s: float) -> bool:
        """Limit what a program computes; not every system lets another process's limit be changed."""
        import resource

        try:
            _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            soft = int(min(self._seconds_computed() + cpu_s, MOST_CPU_S)) + 2
            soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
            resource.prlimit(self._pid, resource.RLIMIT_CPU, (soft, hard))
        except (AttributeError, OSError):
            return False
        return True

    def _seconds_computed(self) -> float:
        # The clock of another process's processor time: CPUCLOCK_SCHED of include/linux/posix-timers.h.
        with suppress(OSError):
            return time.clock_gettime(~self._pid << 3 | 2)
        return 0.0

    def _last_words(self) -> str:
        """Return the last line that it wrote to stderr, which is open until it is ready."""
        if (process := self._process) is None:  # another thread has closed the sandbox
            return ""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(BURYING_S)
        if (stderr := process.stderr) is None:
            return ""
        os.set_blocking(stderr.fileno(), False)  # forks of us may hold its other end
        told = (stderr.read() or b"").decode(errors="replace").strip()
        return told.splitlines()[-1][:MOST_TOLD] if told else ""

    def _close_stderr(self) -> None:
        if (process := self._process) is not None and process.stderr is not None:
            process.stderr.close()


def _filters() -> dict[str, Any]:
    try:
        compiled = filters()
    except OSError:
        return {"seccomp": None}
    programs = {name: getattr(compiled, name).hex() for name in ("counted", "strict", "read_only")}
    return {"seccomp": compiled.seccomp, **programs}
