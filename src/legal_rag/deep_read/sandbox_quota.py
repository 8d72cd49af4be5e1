"""How much a program in the sandbox has written to its scratch folder, decided call by call.

In: the descriptor on which the kernel tells of each call that writes, or makes a file or folder, before it happens.
Out: leave to do it, or "no space left". Limits on single files would not do: there may be many files.
"""

import errno
import fcntl
import os
import struct

from legal_rag.deep_read.sandbox_filters import filters

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
