"""Kernel interfaces of the isolation: Landlock, namespaces, resource limits."""

import ctypes
import fcntl
import os
import resource

NAMESPACES = {
    "user": 0x1000_0000,
    "network": 0x4000_0000,
    "ipc": 0x0800_0000,
    "uts": 0x0400_0000,
    "mount": 0x0002_0000,
}  # CLONE_NEW…
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER = 1, 8
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # the same on every architecture
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH = 1, 1
# Rights over files that each version of Landlock knows, as many low bits as are known; later versions add none.
LANDLOCK_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# In the scratch folder: write_file, read_file, read_dir, remove_dir, remove_file, make_dir, make_reg, refer, truncate.
SCRATCH_RIGHTS = sum(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 13, 14))
LANDLOCK_NETWORK, LANDLOCK_SCOPES = 0b11, 0b11  # bind and connect TCP; abstract Unix sockets and signals
SIGKILL = 9  # importing signal would take longer than all of this
CAPABILITY_VERSION_3 = 0x2008_0522
_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def become(user: int) -> None:
    """Be a user without rights, and so lose all of root's."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def leave_namespaces() -> list[str]:
    """Leave the host's network, users and the like for empty ones; returns those left.

    Raises:
        OSError: If not even a user namespace is allowed.
    """
    _done(_libc.unshare(NAMESPACES["user"]))
    left = ["user"]
    for name, flag in NAMESPACES.items():
        if name not in left and _libc.unshare(flag) == 0:
            left.append(name)
    return left


def shut_into(folder: int) -> None:
    """Make a folder, given by its descriptor, the root of all paths."""
    os.fchdir(folder)
    os.chroot(".")
    os.chdir("/")


def landlock_version() -> int:
    """Return the version of Landlock that the kernel has in force, 0 for none."""
    return max(0, _system_call(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION))


def restrict_files(folder: int) -> int:
    """Allow no file but those of a folder, nor TCP, abstract sockets, signals to others; returns Landlock's version."""
    version = landlock_version()
    if not version:
        raise OSError(ctypes.get_errno(), "no Landlock")
    rights = (1 << LANDLOCK_RIGHTS[min(version, max(LANDLOCK_RIGHTS))]) - 1
    rules = _Ruleset(rights, LANDLOCK_NETWORK if version >= 4 else 0, LANDLOCK_SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _done(_system_call(LANDLOCK_CREATE_RULESET, ctypes.byref(rules), size, 0))
    scratch = _PathBeneath(rights & SCRATCH_RIGHTS, folder)
    _done(_system_call(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(scratch), 0))
    _done(_system_call(LANDLOCK_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return version


def give_up_privileges() -> None:
    """Never gain rights by running a file; nobody may look into this process."""
    _done(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _done(_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))


def drop_capabilities() -> None:
    """Drop what root, or the creator of a user namespace, may do beyond others."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _done(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def filter_calls(number: int, program: bytes, *, listen: bool = False) -> int:
    """Put a seccomp filter in force.

    Args:
        number: Of the system call `seccomp` on this architecture.
        program: BPF, eight bytes an instruction.
        listen: Return a descriptor on which the calls that the filter wants decided elsewhere are told.
    """
    flags = SECCOMP_FILTER_FLAG_NEW_LISTENER if listen else 0
    filtered = _Program(len(program) // 8, program)
    return _done(_system_call(number, SECCOMP_SET_MODE_FILTER, flags, ctypes.byref(filtered)))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends, which lives as long as our parent.

    Giving up rights takes this back; forks of the parent, which hold its descriptors, do not count.
    """
    _done(_libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
    if os.getppid() != parent:  # it has happened already
        os._exit(0)


def die_with_pipe(lifeline: int, lowest: int) -> None:
    """Have the kernel kill this process also when the other end of a pipe is closed.

    That needs no rights of the parent's, which a parent may give up.

    Args:
        lifeline: Descriptor of the pipe.
        lowest: Where descriptors begin that programs cannot close; it gets the first that is free.
    """
    kept = fcntl.fcntl(lifeline, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(lifeline)
    fcntl.fcntl(kept, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(kept, fcntl.F_SETSIG, SIGKILL)
    fcntl.fcntl(kept, fcntl.F_SETFL, fcntl.fcntl(kept, fcntl.F_GETFL) | os.O_ASYNC)


def limit_resources(memory: int, file_size: int, descriptors: int, cpu_s: int) -> None:
    """Bound what this process may take.

    Args:
        memory: Bytes of its address space.
        file_size: Bytes of one file.
        descriptors: Files open at once.
        cpu_s: Seconds of processor time in its whole life.
    """
    wanted = {
        "RLIMIT_AS": memory,
        "RLIMIT_FSIZE": file_size,
        "RLIMIT_NOFILE": descriptors,
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_NPROC": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_STACK": 8 << 20,
    }
    for name, most in wanted.items():
        if (kind := getattr(resource, name, None)) is not None:
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))


def address_space() -> int:
    """Return how many bytes of addresses this process has in use; a guess where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30


def _system_call(number: int, *arguments: object) -> int:
    # Plain integers would be passed as 32 bits of a register.
    passed = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return int(_libc.syscall(ctypes.c_long(number), *passed))


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
