"""The second wall: which modules a program may import, and what Python itself refuses it.

In: the names of modules, the scratch folder. Out: ImportError and PermissionError in the program. What the kernel
refuses it refuses in any case; this wall says so sooner and in plain words, and stands where the kernel has none.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

MODULES = (
    "abc array base64 bisect calendar cmath collections collections.abc contextlib copy csv dataclasses datetime "
    "decimal difflib enum fractions functools hashlib heapq html io itertools json keyword linecache math numbers "
    "operator os os.path pathlib pprint random re reprlib statistics string struct sys textwrap time traceback types "
    "typing unicodedata warnings weakref zlib"
).split()
# Loaded unasked, when a date is parsed or a text decoded, and then no file can be read any more.
UNASKED = ["_strptime", "encodings.ascii", "encodings.cp1252", "encodings.idna", "encodings.latin_1", "stringprep"]
# What the walls were built with; a program that names them shall meet the gate.
FORGOTTEN = ("ctypes", "_ctypes", "fcntl", "resource", "socket", "_socket", "selectors", "select", "signal", "_signal")
REFUSED = (
    "ctypes.", "socket.", "subprocess.", "signal.", "fcntl.", "resource.", "pty.", "mmap.", "gc.", "marshal.",
    "syslog.", "sys.addaudithook", "sys.setprofile", "sys.settrace", "sys._current_", "cpython.", "code.__new__",
    "os.system", "os.fork", "os.exec", "os.posix_spawn", "os.spawn", "os.kill", "os.symlink", "os.link", "os.chmod",
    "os.chown", "os.chflags", "os.lockf", "os.setxattr", "os.removexattr", "os.getxattr", "os.listxattr", "os.putenv",
    "os.unsetenv", "os.startfile", "_thread.start_new_thread", "os.add_dll_directory", "setopencodehook",
)  # fmt: skip


def load_modules() -> None:
    """Import what a program may import, while files can be read."""
    for name in (*MODULES, *UNASKED):
        importlib.import_module(name)


def shut(scratch: str) -> None:
    """Let no further module in, and let Python refuse what a program has no business with.

    Args:
        scratch: The only folder whose files may be opened.
    """
    for name in list(sys.modules):
        if name.split(".")[0] in (*FORGOTTEN, "legal_rag"):
            del sys.modules[name]
    sys.path, sys.meta_path, sys.path_hooks = [], [_Gate()], []
    sys.path_importer_cache.clear()
    os.environ.clear()
    sys.argv[1:] = []
    sys.addaudithook(_guard(scratch))


class _Gate:
    """Finds no module, and says so."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> NoReturn:
        shown = ", ".join(one for one in MODULES if "." not in one)
        raise ImportError(f"le module {name!r} n'existe pas dans le bac à sable ; il y a : {shown}", name=name)


def _guard(scratch: str) -> Any:
    """Return the audit hook; it holds all that it needs, so that a program cannot take it away by name."""
    join, normal, separator, refused = os.path.join, os.path.normpath, os.sep, REFUSED
    decode, as_path = os.fsdecode, os.fspath

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(arguments[0], int):
                raise PermissionError("ouvrir un descripteur est interdit dans le bac à sable")
            path = normal(join(scratch, decode(as_path(arguments[0]))))
            if path != scratch and not path.startswith(scratch.rstrip(separator) + separator):
                raise PermissionError(f"le bac à sable n'a pas d'autres fichiers que les siens : {path}")
        elif event.startswith(refused):
            raise PermissionError(f"interdit dans le bac à sable : {event}")

    return guard
