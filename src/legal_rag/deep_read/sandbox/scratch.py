"""The scratch folder of a sandbox, with its disk quota."""

import errno
import fcntl
import os
import shutil
import struct
import tempfile
from pathlib import Path
from typing import NamedTuple

from legal_rag.deep_read.sandbox.policy import filters

NOBODY = 65534
NEEDED = 0b1110_0001  # root's capabilities to chown, kill, setgid and setuid, as bits


class Scratch(NamedTuple):
    """A folder for one child."""

    path: Path
    user: int | None  # whom the child is to become; None: it stays who it is


def make() -> Scratch:
    """Make a folder that no other user can look into.

    Raises:
        OSError: If there is no place for it.
    """
    path = Path(tempfile.mkdtemp(prefix="legal-rag-sandbox-"))
    if not _may_become_others():
        return Scratch(path, None)
    try:
        os.chown(path, NOBODY, NOBODY)
    except OSError:  # a disk of another machine, where root is nobody special
        return Scratch(path, None)
    return Scratch(path, NOBODY)


def _may_become_others() -> bool:
    status = Path("/proc/self/status")
    if os.geteuid() != 0 or not status.exists():
        return False
    held = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return int(held, 16) & NEEDED == NEEDED


def delete(folder: Path) -> None:
    """Delete a folder and what is in it, whatever its names and modes; links are not followed."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            inside = Path(parent, name)
            if not inside.is_symlink():
                inside.chmod(0o700)  # before `walk` looks into it
    shutil.rmtree(folder, ignore_errors=True)


MOST_FILES = 1_000  # made in all, also those deleted since
MOST_FOLDERS = 32  # as many levels can be deleted without care
# struct seccomp_notif: id, pid, flags, then struct seccomp_data: call, architecture, instruction, six arguments.
REQUEST, RESPONSE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
RECEIVE, SEND = 0xC050_2100, 0xC018_2101  # SECCOMP_IOCTL_NOTIF_RECV, …_SEND


class Quota:
    """Decides on one child's writing; what is counted is never given back."""

    def __init__(self, listener: int, most_bytes: int) -> None:
        self.listener = listener
        self._bytes, self._files, self._folders = most_bytes, MOST_FILES, MOST_FOLDERS
        self._calls = filters()

    def answer(self) -> None:
        """Decide on the call that is waiting."""
        request = bytearray(REQUEST.size)
        try:
            self._ask(RECEIVE, request)
            number, _, _, call, _, _, *arguments = REQUEST.unpack(request)
            refusal = RESPONSE.pack(number, 0, -errno.ENOSPC, 0)
            if not self._takes(call, arguments):
                self._ask(SEND, refusal)
                return
            try:
                self._ask(SEND, RESPONSE.pack(number, 0, 0, CONTINUE))
            except OSError as error:
                if error.errno != errno.EINVAL:  # kernels before 5.5 let no call continue
                    raise
                self._ask(SEND, refusal)
        except FileNotFoundError:  # the child is gone meanwhile
            pass

    def _ask(self, what: int, about: bytes | bytearray) -> None:
        while True:
            try:
                fcntl.ioctl(self.listener, what, about)
            except InterruptedError:  # by a signal to this process
                continue
            return

    def close(self) -> None:
        """Let go of the descriptor; whoever waits for a decision is refused."""
        os.close(self.listener)

    def _takes(self, call: int, arguments: list[int]) -> bool:
        if call in self._calls.writing:
            self._bytes -= arguments[self._calls.writing[call]]
            return self._bytes >= 0
        if call in self._calls.making_folders:
            self._folders -= 1
            return self._folders >= 0
        self._files -= 1
        return self._files >= 0
