"""The sandbox's child process: started, watched while it runs, stopped while it does not, and ended with all it left.

In: functions' names, values, limits. Out: a process behind the walls that the system has, and a channel to it.
"""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import legal_rag
from legal_rag.deep_read.sandbox_channel import Channel, ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox_child import wire
from legal_rag.deep_read.sandbox_filters import filters
from legal_rag.deep_read.sandbox_quota import Quota

NOBODY = 65534
START_S = 30.0  # for the child to be ready, on however busy a machine
CODE = (
    "import sys; sys.path.append({root!r}); "
    "from legal_rag.deep_read.sandbox_child.main import main; main({channel}, {lifeline})"
)
# Hashes alike in every child, so that a program run again walks through its sets in the same order.
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
FLAGS = ("-P", "-s", "-S", "-B", "-X", "utf8")
ROOT_NEEDS = 0b1110_0001  # capabilities to chown, kill, setgid, setuid


class StartError(Exception):
    """The child did not start; the message says why, in French."""


class Child:
    """A process that runs programs; it only runs between `go` and `stop`."""

    def __init__(self, setup: Mapping[str, Any], disk: int) -> None:
        """Start a process and wait until it is ready.

        Args:
            setup: The functions, values and limits that it is told.
            disk: Bytes that it may write.

        Raises:
            StartError: If it does not come to be ready.
            OSError: If no process, socket or folder can be had.
        """
        self._ends: list[Any] = []
        self.scratch = Path(tempfile.mkdtemp(prefix="legal-rag-"))
        try:
            user = _unprivileged_user(self.scratch)
            self._start()
            self.walls = self._begin({**setup, "disk": disk, "user": user}, disk)
        except (ChildGoneError, ForgedMessageError, OutOfTimeError) as error:
            self.end()
            raise StartError(f"le processus du bac à sable n'a pas démarré : {error or 'il s’est arrêté'}") from error
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._ends.append(ours)
        below, above = os.pipe()
        self._ends.append(os.fdopen(above, "wb"))
        root = str(Path(legal_rag.__file__).parents[1])
        code = CODE.format(root=root, channel=theirs.fileno(), lifeline=below)
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, *FLAGS, "-c", code],
                env=ENVIRONMENT,
                cwd=self.scratch,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), below),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(below)
        self.channel = Channel(ours)

    def _begin(self, setup: dict[str, Any], disk: int) -> dict[str, Any]:
        try:
            compiled = filters()
        except OSError:
            setup["seccomp"] = None
        else:
            programs = {name: getattr(compiled, name) for name in ("counted", "strict", "read_only")}
            setup |= {name: b64encode(program).decode() for name, program in programs.items()}
            setup["seccomp"] = compiled.seccomp
        clock = self.clock(START_S, START_S)
        clock.go()
        self.channel.send(clock, wire.message(setup, wire.MOST_BYTES))
        if setup["seccomp"] is not None and (listener := self.channel.receive_descriptor(clock)) is not None:
            quota = Quota(listener, disk)
            self._ends.append(quota)
            self.channel.listen(listener, quota.answer)
        kind, content = self.channel.receive(clock)
        if kind != "ready":
            raise ForgedMessageError(f"un message « {kind} » avant tout programme")
        self.stop()
        return dict(content["walls"])

    def clock(self, wall_s: float, cpu_s: float) -> Clock:
        """Return a clock for this child."""
        return Clock(wall_s, cpu_s, self._seconds_computed)

    def go(self) -> None:
        """Let it run."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Let it stand still, whatever it is doing."""
        self._signal(signal.SIGSTOP)

    def how_it_ended(self) -> int | None:
        """Return its exit code, negative for a signal, if it ended by itself within a moment; else None."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(1.0)
        return None

    def end(self) -> None:
        """Kill it and whatever it has started, and delete what it has written. May be called again."""
        if process := getattr(self, "_process", None):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
        while self._ends:
            self._ends.pop().close()
        _delete(self.scratch)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)

    def _seconds_computed(self) -> float:
        # The clock of another process's processor time: CPUCLOCK_SCHED of include/linux/posix-timers.h.
        with suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | 2)
        return 0.0


def _unprivileged_user(scratch: Path) -> int | None:
    """Give the folder to nobody, if this process is root and may become nobody; returns that user's number."""
    if os.geteuid() != 0:
        return None
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    if held & ROOT_NEEDS != ROOT_NEEDS:
        return None
    os.chown(scratch, NOBODY, NOBODY)
    return NOBODY


def _delete(folder: Path) -> None:
    """Delete a folder and what is in it, whatever its names and modes; links are not followed."""

    def retry(function: Any, path: str, _: Any) -> None:
        with suppress(OSError):
            for place in (Path(path).parent, Path(path)):
                if not stat.S_ISLNK(place.lstat().st_mode):
                    place.chmod(0o700)
            function(path)

    shutil.rmtree(folder, onerror=retry)
    shutil.rmtree(folder, ignore_errors=True)
