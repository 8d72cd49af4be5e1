"""The second wall: what Python itself refuses a program.

In: the scratch folder. Out: PermissionError in the program. What the kernel refuses it refuses in any case; this wall
says so in plain words, and is all there is where the user has accepted to do without the kernel's.
"""

import os
import sys
from typing import Any

# Beginnings of the names of Python's audit events.
REFUSED = tuple(
    "ctypes. socket. subprocess. signal. fcntl. resource. pty. mmap. gc. shutil. syslog. cpython. sys.addaudithook "
    "sys.setprofile sys.settrace sys._current_ os.system os.chdir os.fork os.exec os.posix_spawn os.spawn os.kill "
    "os.symlink os.link os.chmod os.chown os.chflags os.lockf os.setxattr os.removexattr os.getxattr os.listxattr "
    "os.putenv os.unsetenv os.startfile os.add_dll_directory _thread.start_new_thread".split()
)
# Events of files: of all these the first argument is a path, of a renaming the second too.
PATHS = frozenset("open os.listdir os.mkdir os.remove os.rename os.rmdir os.scandir os.truncate os.utime".split())
# Loaded to put up the walls. A program that names them shall be told that there are no such modules.
FORGOTTEN = ("ctypes", "_ctypes", "fcntl", "resource", "_socket", "signal", "_signal", "legal_rag", "atexit")


def shut(scratch: str) -> None:
    """Forget the modules that reach out, the environment and the arguments, and refuse what a program has no use for.

    Args:
        scratch: The only folder whose files may be opened.
    """
    for name in list(sys.modules):
        if name.split(".")[0] in FORGOTTEN:
            del sys.modules[name]
    os.environ.clear()
    sys.argv[1:] = []
    sys.addaudithook(_guard(scratch))


def _guard(scratch: str) -> Any:
    """Return the audit hook; all that it needs is bound here, where a program cannot replace it by name."""
    join, normal, decode, as_path = os.path.join, os.path.normpath, os.fsdecode, os.fspath
    refused, paths, inside = REFUSED, PATHS, scratch.rstrip(os.sep) + os.sep

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in paths:
            for path in arguments[: 2 if event == "os.rename" else 1]:
                if isinstance(path, int):
                    raise PermissionError(f"interdit dans le bac à sable : {event} avec un descripteur")
                if path is not None and not (normal(join(scratch, decode(as_path(path)))) + "/").startswith(inside):
                    raise PermissionError(f"le bac à sable n'a pas d'autres fichiers que les siens : {path!r}")
        elif event.startswith(refused):
            raise PermissionError(f"interdit dans le bac à sable : {event}")

    return guard
