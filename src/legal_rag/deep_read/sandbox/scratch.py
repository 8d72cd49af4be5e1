"""The scratch folder of a sandbox, with its disk quota."""

import errno
import fcntl
import os
import stat
import struct
import tempfile
from contextlib import suppress
from pathlib import Path

from legal_rag.deep_read.sandbox.policy import filters

PREFIX = "legal-rag-scratch-"  # not that of versions without locks
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SMALLEST_BLOCK = 4096  # bytes
NOBODY = 65534
NEEDED = 0b1110_0001  # root's capabilities to chown, kill, setgid and setuid, as bits


class Scratch:
    """A folder for one child, that no other user can look into.

    It is locked for as long as this process, or a fork of it, lives: so others know whose owner has died.
    """

    def __init__(self) -> None:
        """Make the folder.

        Raises:
            OSError: If there is no place for it.
        """
        self.path, self._folder = _made()
        self.block = max(SMALLEST_BLOCK, os.statvfs(self._folder).f_frsize)  # bytes that one byte takes
        self.user = _given_away(self._folder)  # whom the child is to become; None: it stays who it is

    def delete(self) -> None:
        """Delete it as far as that can be done, whatever is in it. May be called again."""
        folder, self._folder = self._folder, -1
        if folder >= 0:
            _delete(folder, self.path)
            os.close(folder)


def remove_leftovers() -> None:
    """Delete the folders of processes that were killed: nobody holds their locks any more."""
    owners = {os.geteuid(), NOBODY} if os.geteuid() == 0 else {os.geteuid()}
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with suppress(OSError):
                    _remove_leftover(Path(entry.path), owners)


def _remove_leftover(path: Path, owners: set[int]) -> None:
    folder = os.open(path, FOLDER)
    try:
        if os.fstat(folder).st_uid in owners:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete(folder, path)
    finally:
        os.close(folder)


def _made() -> tuple[Path, int]:
    """Return a new folder, and a descriptor of it that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            folder = os.open(path, FOLDER)
        except OSError:  # too many are open
            path.rmdir()
            raise
        with suppress(OSError):  # a disk without locks: then nobody deletes what is left there
            fcntl.flock(folder, fcntl.LOCK_EX)
        if os.fstat(folder).st_nlink:
            return path, folder
        os.close(folder)  # somebody took it for a leftover before it was locked


def _given_away(folder: int) -> int | None:
    """Make a folder that of a user without rights; returns whom, None if that cannot be done."""
    if not _may_become_others():
        return None
    try:
        os.fchown(folder, NOBODY, NOBODY)
    except OSError:  # a disk of another machine, where root is nobody special
        return None
    return NOBODY


def _may_become_others() -> bool:
    status = Path("/proc/self/status")
    if os.geteuid() != 0 or not status.exists():
        return False
    held = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return int(held, 16) & NEEDED == NEEDED


def _delete(folder: int, path: Path) -> None:
    """Delete a folder and what is in it, whatever its depth, names and modes; links are not followed.

    What lies in a folder within is moved up before that one is deleted, so that no path gets long and no depth takes
    descriptors.
    """
    with suppress(OSError):
        waiting = os.listdir(folder)
        while waiting:
            name = waiting.pop()
            with suppress(OSError):
                if not _is_unlinked(name, folder):
                    waiting += _moved_up(name, folder)
                    os.rmdir(name, dir_fd=folder)
    with suppress(OSError):
        path.rmdir()


def _is_unlinked(name: str, parent: int) -> bool:
    """Delete a file, or whatever else is no folder; returns whether it was none."""
    if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=parent)
    return True


def _moved_up(name: str, parent: int) -> list[str]:
    """Delete the files of a folder and move the folders in it to its parent; returns their names there."""
    moved, folder = [], _opened(name, parent)
    try:
        for inner in os.listdir(folder):  # noqa: PTH208 - a descriptor
            with suppress(OSError):
                if not _is_unlinked(inner, folder):
                    os.close(_opened(inner, folder))  # only what its owner may write to can be moved
                    new = f"{PREFIX}{os.urandom(16).hex()}"
                    os.rename(inner, new, src_dir_fd=folder, dst_dir_fd=parent)
                    moved.append(new)
    finally:
        os.close(folder)
    return moved


def _opened(name: str, parent: int) -> int:
    """Open a folder, whatever its mode, and make it one that may be changed."""
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:  # we are not root, and own nothing that others could exchange for a link
        os.chmod(name, stat.S_IRWXU, dir_fd=parent)
        folder = os.open(name, FOLDER, dir_fd=parent)
    os.fchmod(folder, stat.S_IRWXU)
    return folder


MOST_FILES = 1_000  # made in all, also those deleted since
MOST_FOLDERS = 32
# struct seccomp_notif: id, pid, flags, then struct seccomp_data: call, architecture, instruction, six arguments.
REQUEST, RESPONSE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
CONTINUE = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
RECEIVE, SEND = 0xC050_2100, 0xC018_2101  # SECCOMP_IOCTL_NOTIF_RECV, …_SEND


class Quota:
    """Decides on one child's writing, by the disk's blocks; what is counted is never given back."""

    def __init__(self, listener: int, most_bytes: int, block: int) -> None:
        """Begin.

        Args:
            listener: Descriptor on which the child's calls are told.
            most_bytes: Of all blocks that its writing may begin.
            block: Bytes of one.
        """
        self.listener = listener
        self._blocks, self._files, self._folders = max(1, most_bytes // block), MOST_FILES, MOST_FOLDERS
        self._block, self._calls = block, filters()

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
        n_blocks, files, folders = 1, 0, 0  # a new name may begin a block of its folder
        if call in self._calls.writing:
            n_bytes = arguments[self._calls.writing[call]]
            n_blocks = (n_bytes + self._block - 2) // self._block + 1  # it may lie across the ends of two
        elif call in self._calls.making_folders:
            folders = 1
        elif call not in self._calls.renaming:
            files = 1
        if n_blocks > self._blocks or files > self._files or folders > self._folders:
            return False
        self._blocks, self._files, self._folders = self._blocks - n_blocks, self._files - files, self._folders - folders
        return True
