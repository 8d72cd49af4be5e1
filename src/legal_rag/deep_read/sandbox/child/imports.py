"""Modules that programs may import, and the audit hook that guards the rest."""

import importlib
import io
import marshal  # noqa: TID251 - of Python's own library, as importing it reads it
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import ModuleType
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


OFFERED = (
    "abc array ast base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime decimal difflib "
    "enum fnmatch fractions functools graphlib hashlib heapq html inspect io itertools json keyword locale math "
    "numbers operator os pathlib pprint random re reprlib statistics string struct sys textwrap time traceback types "
    "typing unicodedata urllib.parse warnings weakref zlib"
).split()
# What those import in turn, on any Python from 3.11 to 3.13, and what Python itself imports to read a date or a text.
COMPILED = (
    "_ast _bisect _blake2 _collections _csv _datetime _decimal _functools _heapq _json _locale _md5 _opcode _operator "
    "_random _sha1 _sha2 _sha256 _sha3 _sha512 _sre _statistics _string _struct _suggestions _symtable _tokenize "
    "_typing _warnings _weakref array atexit binascii cmath errno importlib.machinery itertools math ntpath time "
    "unicodedata zlib"
).split()
WRITTEN = (
    *(name for name in OFFERED if name not in COMPILED),
    *"__future__ _colorize _compat_pickle _markupbase _opcode_metadata _strptime _weakrefset codeop copyreg".split(),
    *"dis encodings.ascii encodings.cp1252 encodings.idna encodings.iso8859_15 encodings.latin_1".split(),
    *"encodings.utf_16 encodings.utf_16_be encodings.utf_16_le encodings.utf_8_sig glob html.entities".split(),
    *"html.parser importlib ipaddress json.decoder json.encoder json.scanner linecache opcode pathlib._abc".split(),
    *"pathlib._local re._casefix re._compiler re._constants re._parser stringprep token tokenize urllib".split(),
)
CODE_STARTS = 16  # bytes of a .pyc file before its code


def offer_only() -> None:
    """Let programs import what is named above and nothing else from now on; reads files for the last time."""
    time.localtime()  # reads which time zone this is
    for name in COMPILED:
        _load(name)
    kept = {name: code for name in WRITTEN if name not in sys.modules and (code := _code(name)) is not None}
    sys.meta_path, sys.path_hooks, sys.path = [_Shelf(kept)], [], []
    sys.path_importer_cache.clear()


def _code(name: str) -> bytes | None:
    """Return a module's code as its cache file holds it; None if it has none, or is loaded now for want of one."""
    place = f"{os.path.dirname(os.__file__)}/{name.replace('.', '/')}"  # noqa: PTH120 (pathlib is slow to load)
    for source in (f"{place}.py", f"{place}/__init__.py"):
        with suppress(OSError), io.FileIO(cache_from_source(source)) as file:
            data = file.readall()
            if data.startswith(MAGIC_NUMBER):
                return data[CODE_STARTS:]
    _load(name)
    return None


def _load(name: str) -> None:
    with suppress(ImportError):  # not every Python has every module
        importlib.import_module(name)


class _Shelf:
    """Finds the modules that were kept, and says of others that there are none."""

    def __init__(self, kept: dict[str, bytes]) -> None:
        self._kept = kept

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec:
        if name not in self._kept:
            shown = ", ".join(OFFERED)
            raise ModuleNotFoundError(
                f"le module {name!r} n'existe pas dans le bac à sable ; il y a : {shown}", name=name
            )
        is_package = any(other.startswith(f"{name}.") for other in self._kept)
        return ModuleSpec(name, self, origin="sandbox", is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        exec(marshal.loads(self._kept[module.__name__]), vars(module))  # noqa: S102, S302
        if module.__name__ == "random":  # a program run again shall draw alike
            module.seed(0)
