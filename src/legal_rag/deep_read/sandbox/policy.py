"""Isolation policy: seccomp allow-list, Landlock, what this system supports."""

import errno
import os
import tempfile
from functools import cache
from typing import Any, NamedTuple

# Memory, clocks, the message channel, and files already open or below a folder that other walls close off.
ALLOWED = (
    "brk munmap mremap madvise futex getrandom restart_syscall rt_sigreturn sigaltstack exit exit_group sched_yield "
    "nanosleep gettimeofday time times getrusage getpid getppid gettid getuid geteuid getgid getegid getcwd recvfrom "
    "read pread64 readv lseek fstat newfstatat stat lstat statx access faccessat faccessat2 readlink readlinkat "
    "getdents64 fsync fdatasync unlink unlinkat rmdir"
).split()
CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep")
LAST_CLOCK = 11  # CLOCK_TAI; negative numbers name the clocks of other processes and of devices
MAKING_FOLDERS = ("mkdir", "mkdirat")
RENAMING = ("rename", "renameat", "renameat2")
WRITING = {"write": 2, "pwrite64": 2, "ftruncate": 1}  # which argument says how many bytes
OPENING = {"open": 1, "openat": 2}  # which argument holds the flags
O_LARGEFILE = 0o100000 | 0o400000  # on x86-64 and on ARM, where Python does not tell
READING_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | O_LARGEFILE
)
WRITING_FLAGS = READING_FLAGS | os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND
FIRST_KEPT = 256  # descriptors from this one on cannot be closed
WHOLE = 0xFFFF_FFFF  # all bits of an argument that is an int
PROT_EXEC, MAP_TYPE, MAP_PRIVATE = 4, 0xF, 2


class SyscallFilters(NamedTuple):
    """What a child is given to put in force, and how to read what the first filter then tells."""

    seccomp: int  # number of the system call that takes them
    counted: bytes  # asks the other side about every writing and making of files
    strict: bytes  # allows what is named above
    read_only: bytes  # the same without writing, for systems where nobody can be asked
    writing: dict[int, int]  # system call → argument that says how many bytes
    opening: frozenset[int]
    making_folders: frozenset[int]
    renaming: frozenset[int]


@cache
def filters() -> SyscallFilters:
    """Compile the filters.

    Raises:
        OSError: If libseccomp is missing, or cannot compile for this architecture.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError) as error:  # not installed off Linux; RuntimeError: no libseccomp.so.2
        raise OSError(errno.ENOSYS, f"libseccomp: {error}") from error
    return SyscallFilters(
        _number(pyseccomp, "seccomp"),
        _compiled(pyseccomp, pyseccomp.ALLOW, _counting_rules(pyseccomp)),
        _compiled(pyseccomp, pyseccomp.ERRNO(errno.EPERM), _allowing_rules(pyseccomp, writing=True)),
        _compiled(pyseccomp, pyseccomp.ERRNO(errno.EPERM), _allowing_rules(pyseccomp, writing=False)),
        {_number(pyseccomp, name): argument for name, argument in WRITING.items()},
        frozenset(_number(pyseccomp, name) for name in OPENING),
        frozenset(_number(pyseccomp, name) for name in MAKING_FOLDERS),
        frozenset(_number(pyseccomp, name) for name in RENAMING),
    )


def _allowing_rules(pyseccomp: Any, *, writing: bool) -> list[tuple[Any, ...]]:
    def without(argument: int, bits: int) -> Any:
        return pyseccomp.Arg(argument, pyseccomp.MASKED_EQ, bits, 0)

    allow = pyseccomp.ALLOW
    private = pyseccomp.Arg(3, pyseccomp.MASKED_EQ, MAP_TYPE, MAP_PRIVATE)
    flags = WRITING_FLAGS if writing else READING_FLAGS
    named = [*ALLOWED, *MAKING_FOLDERS, "rename", "renameat", *WRITING] if writing else ALLOWED
    renaming = [(allow, "renameat2", without(4, WHOLE))] if writing else []  # no exchanging, no devices left behind
    return [
        *((allow, name) for name in named),
        *((allow, name, pyseccomp.Arg(0, pyseccomp.LE, LAST_CLOCK)) for name in CLOCKS),
        (allow, "sendto", without(3, WHOLE), pyseccomp.Arg(4, pyseccomp.EQ, 0)),  # no flags (MSG_OOB), no address
        *renaming,
        *((allow, name, without(argument, ~flags & WHOLE)) for name, argument in OPENING.items()),
        (allow, "mmap", without(2, PROT_EXEC), private),
        (allow, "mprotect", without(2, PROT_EXEC)),
        (allow, "close", without(0, ~(FIRST_KEPT - 1) & WHOLE)),
    ]


def _counting_rules(pyseccomp: Any) -> list[tuple[Any, ...]]:
    creating = {
        name: pyseccomp.Arg(argument, pyseccomp.MASKED_EQ, os.O_CREAT, os.O_CREAT) for name, argument in OPENING.items()
    }
    return [
        *((pyseccomp.NOTIFY, name) for name in (*WRITING, *MAKING_FOLDERS, *RENAMING)),
        *((pyseccomp.NOTIFY, name, condition) for name, condition in creating.items()),
    ]


def _compiled(pyseccomp: Any, otherwise: int, rules: list[tuple[Any, ...]]) -> bytes:
    made = pyseccomp.SyscallFilter(otherwise)
    for action, name, *conditions in rules:
        if _number(pyseccomp, name) >= 0:  # some are not there on every architecture, or not known to libseccomp
            made.add_rule_exactly(action, name, *conditions)
    with tempfile.TemporaryFile() as file:
        made.export_bpf(file)
        file.seek(0)
        return file.read()


def _number(pyseccomp: Any, name: str) -> int:
    return int(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name))
