# ruff: noqa: E501 - a program a line
"""Programs that mean harm: they are run in the sandbox, and must reach, hang, fill, crash and leave nothing."""

import contextlib
import os
import platform
import random
import select
import signal
import subprocess
import sys
import tempfile
import zlib
from base64 import b85encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

from support import sandbox_attacks as attacks

import legal_rag
from attacks.cases import Case, Outcome, Place
from legal_rag.deep_read import Limits, Sandbox, SandboxResult
from legal_rag.deep_read.sandbox import process

SCRATCH = "legal-rag-scratch-*"  # folders of programs
GOT, SECRET = "ESCAPED", "the-canary-is-alive"
USUAL = Limits(memory_mb=256, output_chars=2_000, disk_mb=1, cpu_s=1, wall_s=2)
SHORT = Limits(memory_mb=256, output_chars=2_000, disk_mb=1, cpu_s=0.2, wall_s=0.3)
STARTING_S = 1.0  # for a child to begin, beyond its program's time
# Takes Python's own wall away from a child: the kernel's must do.
UNGUARDED = (
    "from legal_rag.deep_read.sandbox.child import imports; imports.FORGOTTEN = imports.REFUSED = imports.PATHS = (); "
)


def cases(seed: int) -> Iterator[Case]:
    """Yield the programs: those of the list, then those drawn."""
    yield from _listed()
    draw, seen = random.Random(seed), {""}
    for kind, (make, number) in DRAWN.items():
        for n in range(number):
            code = ""
            while code in seen:
                code, limits, guarded = make(draw)
            seen.add(code)
            yield _case(f"{kind} {n}", code, limits, guarded=guarded)
    for name, code in PARENTS.items():
        yield Case(name, partial(_orphaned, code), 15.0)


def _listed() -> Iterator[Case]:
    """Yield what `test_sandbox_escapes.py` runs too, here each in a child of its own."""
    for name, code in attacks.FILES.items():
        yield _case(f"file: {name}", code, guarded=False, status="error")
    for name, code in attacks.PROCESSES.items():
        yield _case(f"process: {name}", attacks.REACH + dedent(code), guarded=False, status="error")
    if platform.machine() == "x86_64":  # the calls are numbered so
        for name, call in attacks.SYSTEM_CALLS.items():
            yield _case(f"system call: {name}", f"{attacks.REACH}raw({call})", guarded=False, status="ok")
    for kind, table in (("Python", attacks.PYTHON), ("exhaustion", attacks.EXHAUSTION)):
        for name, (code, status, _) in table.items():
            yield _case(f"{kind}: {name}", dedent(code), _limits(status), status=status)
    for name, (message, _) in attacks.FORGERIES.items():
        yield _case(f"forgery: {name}", _sending(message), status="killed")
    for name, (code, status, _) in attacks.FORGING.items():
        yield _case(f"channel: {name}", attacks.REACH + dedent(code), _limits(status), guarded=False, status=status)


def _limits(status: str) -> Limits:
    return SHORT if "timeout" in status else USUAL


def _case(
    name: str,
    code: str,
    limits: Limits = USUAL,
    *,
    guarded: bool = True,
    status: str = "ok error timeout killed",
) -> Case:
    return Case(name, partial(_run, code, limits, guarded, status), limits.wall_s + STARTING_S)


# --- one program -----------------------------------------------------------------------------------------------------


def _run(code: str, limits: Limits, guarded: bool, status: str, place: Place) -> Outcome:
    outside = place.folder / "outside"
    outside.mkdir()
    canary = outside / "canary.txt"
    canary.write_text(SECRET)
    outside.chmod(0o777)
    canary.chmod(0o666)
    values = {
        "GOT": GOT,
        "CANARY": str(canary),
        "OUTSIDE": str(outside),
        "PACKAGE": legal_rag.__file__,
        "PARENT": os.getpid(),
        "PORT": 1,
        "UNIX": str(place.folder / "socket"),
        "ABSTRACT": "\0nobody",
    }
    called: list[Any] = []
    given = {"echo": lambda value=None: called.append(value) or value, "ask": lambda value=None: len(str(value)[:9])}
    most = {"ask": 16_000_000}
    with _walls(guarded), Sandbox(given, limits, values=values, most_bytes=most) as one:
        result = one.run(code)
        filled = sum(map(_blocks, Path(tempfile.gettempdir()).glob(SCRATCH)))
    faults = [
        *_told_badly(result, limits),
        *([] if result.status in status.split() else [f"ended as {result.status}"]),
        *([] if canary.read_text() == SECRET else ["changed a file outside"]),
        *([] if len(list(outside.iterdir())) == 1 else ["made a file outside"]),
        *([] if filled <= limits.disk_mb << 20 else [f"filled {filled} bytes"]),
        *([] if all(map(_is_plain, called)) else ["called with what is not plain"]),
    ]
    return Outcome(not faults, "; ".join([*faults, _line(result)]))


@contextlib.contextmanager
def _walls(guarded: bool) -> Iterator[None]:
    before = process.CODE
    if not guarded:
        process.CODE = before.replace("from", UNGUARDED + "from", 1)
    try:
        yield
    finally:
        process.CODE = before


def _told_badly(result: SandboxResult, limits: Limits) -> Iterator[str]:
    told = result.output + (result.error or "")
    if GOT in told or SECRET in told:
        yield "got through"
    if len(result.output) > limits.output_chars + 60 or len(result.error or "") > 10_000:
        yield "said too much"
    if (result.error is None) != (result.status == "ok"):
        yield "an error without one"
    if result.status in ("timeout", "killed", "refused") and len(result.error.splitlines()) != 1:
        yield "more than one line"
    try:
        told.encode()
    except UnicodeEncodeError:
        yield "said what cannot be written"


def _line(result: SandboxResult) -> str:
    last = (result.error or result.output).strip().splitlines()
    return f"{result.status} : {last[-1][:200] if last else ''}"


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < 64 and all(_is_plain(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return depth < 64 and all(type(key) is str and _is_plain(one, depth + 1) for key, one in value.items())
    return value is None or type(value) in (bool, int, float, str)


def _blocks(folder: Path) -> int:
    """Return the bytes on disk of all that is in a folder, whatever its names; it is small."""
    total = 0
    for parent, names, files in os.walk(folder):
        for name in (*names, *files):
            with contextlib.suppress(OSError):
                total += Path(parent, name).lstat().st_blocks * 512
    return total


def _sending(*pieces: bytes, between: str = "", after: str = "echo()") -> str:
    """Return a program that sends bytes to the parent, past the code that should."""
    lines = [f"connection.sendall(zlib.decompress(b85decode({b85encode(zlib.compress(piece))!r})))" for piece in pieces]
    return "\n".join(
        [attacks.REACH, "import time, zlib\nfrom base64 import b85decode", f"\n{between}\n".join(lines), after]
    )


# --- programs drawn --------------------------------------------------------------------------------------------------

Made = tuple[str, Limits, bool]  # code, limits, whether Python's own wall stands


def _some_limits(draw: random.Random) -> Limits:
    return Limits(
        memory_mb=draw.choice((32, 64, 128, 256)),
        cpu_s=draw.choice((0.1, 0.2, 0.4)),
        wall_s=draw.choice((0.2, 0.3, 0.6)),
        output_chars=draw.choice((1, 100, 2_000, 20_000)),
        disk_mb=draw.choice((1, 2, 4)),
    )


def _json(draw: random.Random, depth: int = 0) -> bytes:
    """Return JSON, or nearly."""
    leaves = (
        b"null", b"true", b"0", b"-1", b"1e999", b"-1e400", b"NaN", b"Infinity", b"1.5e-300", b"9" * draw.randint(1, 40),
        b'""', b'"x"', rb'"\ud83d"', rb'"\u0000"', rb'"\"\\"', b'"\xc0\x80"', b'"\xff"', b'"' + b"y" * draw.randint(0, 5_000) + b'"',
        rb'{"\u0000tuple":[1]}', rb'{"\u0000dict":[[1,2]]}', b"", b"tru", b"\x00", b"\xef\xbb\xbf1",
    )  # fmt: skip
    if depth > 3 or draw.random() < 0.5:
        return draw.choice(leaves)
    inner = [_json(draw, depth + 1) for _ in range(draw.randint(0, 4))]
    if draw.random() < 0.5:
        return b"[" + b",".join(inner) + b"]"
    return b"{" + b",".join(b'"%d":%s' % (draw.randint(0, 4), one) for one in inner) + b"}"


def _forged(draw: random.Random) -> Made:
    body = draw.choice(
        (
            lambda: b'{"arguments":[%s],"named":{}}' % _json(draw),
            lambda: b'{"arguments":[],"named":%s}' % _json(draw),
            lambda: b'{"error":%s,"beyond":%s}' % (_json(draw), _json(draw)),
            lambda: _json(draw),
            lambda: draw.randbytes(draw.randint(0, 3_000)),
            lambda: _nested(draw, draw.choice((60, 64, 65, 1_000, 60_000))),
            lambda: b'{"arguments":[%s0],"named":{}}' % (draw.choice((b"0,", b"[],", b'"",', b"{},")) * draw.choice((9, 199_999, 500_000))),
            lambda: b'{"arguments":["%s"],"named":{}}' % (draw.choice((b"x", b"\\n", "é".encode(), rb"\u00e9")) * draw.choice((9, 300_000, 900_000))),
            lambda: b'{%s}' % b",".join(b'"%d":0' % n for n in range(draw.choice((3, 50_000)))),
            lambda: draw.choice(("utf-16", "utf-7", "latin-1", "utf-32")) and '{"error":"é","beyond":0}'.encode(draw.choice(("utf-16", "latin-1", "utf-32"))),
        )
    )()  # fmt: skip
    name = draw.choice(
        (b"echo", b"echo", b"echo", b"", b"eval", b"\xff", b"echo\0", draw.randbytes(draw.randint(0, 255)))
    )
    length = draw.choice(
        (None, None, None, None, 0, len(body) - 1 if body else 1, len(body) + 1, 2_000_001, 2**31, 2**32 - 1)
    )
    data = attacks.frame(draw.choice((0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 255)), body, name, length)
    if draw.random() < 0.2:  # flip some bytes
        flipped = bytearray(data)
        for _ in range(draw.randint(1, 6)):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        data = bytes(flipped)
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice((0, 0, 1, 4))))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    between = draw.choice(("", "time.sleep(0.02)", "print('vu')", "connection.sendall(frame(1, b'x'))"))
    after = draw.choice(("echo()", "", "while True: pass", "os._exit(0)", "connection.close()", "time.sleep(60)"))
    return _sending(*pieces, between=between, after=after), _some_limits(draw), True


def _long(draw: random.Random) -> Made:
    """Make a program that sends as much as it may, or a little more, to a function that takes long texts."""
    many = draw.choice((1_000_000, 2_000_000, 15_900_000, 16_000_000))
    piece = draw.choice(
        (
            "[",
            "]",
            "{",
            '"',
            "1",
            "-",
            " ",
            ",",
            ":",
            "\\",
            "\\n",
            "\\u00e9",
            '"",',
            "[],",
            "{},",
            '{"":0},',
            "1e9,",
            "null,",
            "é",
            "😀",
            "\x00",
        )
    )
    before, after = draw.choice((('["', '"]'), ("[", "0]"), ("", "")))
    n = many // len(piece.encode()) - draw.choice((0, 60))
    body = f'b\'{{"arguments":%s,"named":{{}}}}\' % ({before!r} + {piece!r} * {n} + {after!r}).encode()'
    code = draw.choice(
        (
            f"connection.sendall(frame(2, {body}, b'ask'))\necho()",
            f"print(ask({piece!r} * {n}))",
            f"print(ask([{piece!r}] * {n}))",
        )
    )
    limits = replace(USUAL, cpu_s=3, wall_s=3)
    return attacks.REACH + code, limits, True


def _nested(draw: random.Random, depth: int) -> bytes:
    opening, closing = draw.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"":', b"}]")))
    return b'{"arguments":[%s0%s],"named":{}}' % (opening * depth, closing * draw.choice((depth, depth, depth - 1)))


def _dripping(draw: random.Random) -> Made:
    data = attacks.call(b'["%s"]' % (b"x" * draw.choice((10, 1_000, 60_000))))
    step, pause = draw.choice((1, 7, 999)), draw.choice((0, 0.0001, 0.05))
    loop = (
        f"data = {data!r}\nwhile True:\n    for n in range(0, len(data), {step}):\n"
        f"        connection.sendall(data[n:n + {step}])\n        time.sleep({pause})"
    )
    return f"{attacks.REACH}import time\n{loop}", _some_limits(draw), draw.random() < 0.5


def _flood(draw: random.Random) -> Made:
    """Make a program that asks the parent for something, or for two things in turn, over and over."""
    what = draw.sample(
        (
            "connection.sendall(frame(1, b'x'))",
            "connection.sendall(frame(1, b'x' * 60_000))",
            "connection.sendall(frame(2, b'{\"arguments\":[],\"named\":{}}', b'echo'))",
            f"connection.sendall(frame(2, b'{{\"arguments\":[[%s0]],\"named\":{{}}}}' % (b'{{}},' * {draw.choice((10, 90_000))}), b'echo'))",
            f"echo({draw.choice(('1', '[0] * 100_000', repr('x' * 9) + ' * 100_000', '{str(n): n for n in range(50_000)}'))})",
            "os.open('x', os.O_CREAT | os.O_RDWR)",
            "os.write(2, b'x')",
            "os.mkdir('d')",
            "os.rename('a', 'b')",
            "os.stat(str(os.urandom(8)))",
            "os.listdir('.')",
            f"print('x' * {draw.choice((1, 1_000, 100_000))})",
            "sys.stderr.write('x')",
        ),
        k=draw.choice((1, 2)),
    )
    tries = "".join(f"\n    try: {one}\n    except OSError: pass" for one in what)
    return (
        f"{attacks.REACH}while True:{tries}",
        _some_limits(draw),
        draw.random() < 0.5,
    )


def _system_calls(draw: random.Random) -> Made:
    """Make a program of system calls by chance, with arguments that might mean something."""
    arguments = ("0", "1", "-1", "-100", "2**31", "2**32 + 1", "2**63 - 1", "PARENT", "connection.fileno()", "4096", "256",
                 "b'x'", "b'.'", "CANARY.encode()", "(C.c_uint64 * 64)()", "C.c_void_p(1)", "os.getpid()", "0o102", "7")  # fmt: skip
    lines = []
    for _ in range(draw.randint(5, 40)):
        number = draw.choice(
            (draw.randrange(470), draw.randrange(470), draw.randrange(100), 0x4000_0000 + draw.randrange(520))
        )
        if number not in (0, 7, 23, 34, 35, 60, 230, 231, 270, 271):  # which wait, or end the process
            lines.append(f"raw({', '.join([str(number), *draw.choices(arguments, k=draw.randint(0, 6))])})")
    kept = [f"try: {one}\nexcept BaseException: pass" for one in lines]
    head = attacks.REACH.replace("print(GOT if result >= 0 else os.strerror(C.get_errno()), result)", "pass")
    return "\n".join([head, *kept, "print('fin')"]), _some_limits(draw), False


def _scratch(draw: random.Random) -> Made:
    """Make a program that does as it likes with its folder."""
    lines = ["import os", "def t(f, *a, **k):", "    try: return f(*a, **k)", "    except (OSError, ValueError): pass"]
    names = [_name(draw) for _ in range(draw.randint(3, 30))]
    lines.append(f"N, f = {names!r}, None\ndef p(*numbers): return '/'.join(N[n] for n in numbers)")
    path = lambda: f"p({', '.join(str(draw.randrange(len(names))) for _ in range(draw.choice((1, 1, 1, 2, 5, 30))))})"  # noqa: E731
    for _ in range(draw.randint(10, 120)):
        lines.append(
            draw.choice(
                (
                    lambda: f"t(os.mkdir, {path()}, {draw.choice((0o777, 0o000, 0o300, 0o500, 0o7777))})",
                    lambda: f"t(os.rename, {path()}, {path()})",
                    lambda: f"t(os.replace, {path()}, {path()})",
                    lambda: f"t(os.remove, {path()})",
                    lambda: f"t(os.rmdir, {path()})",
                    lambda: f"t(os.truncate, {path()}, {draw.choice((0, 1, 10**6, 10**15))})",
                    lambda: f"f = t(os.open, {path()}, os.O_RDWR | os.O_CREAT, {draw.choice((0o666, 0, 0o4777))})",
                    lambda: f"if f: t(os.pwrite, f, b'x' * {draw.choice((1, 2, 4096, 50_000))}, {draw.randrange(2**draw.randint(1, 40))})",
                    lambda: f"if f: t(os.ftruncate, f, {draw.choice((0, 5_000, 999_999, 2**40))})",
                    lambda: f"for n in range({draw.randint(2, 3_000)}): t(os.pwrite, f or 99, b'x', n * {draw.choice((4096, 4095, 12_288))})",
                    lambda: f"for n in range({draw.randint(2, 1_500)}): t(os.close, t(os.open, f'{{n}}' + {path()}, os.O_CREAT) or 99)",
                    lambda: f"for n in range({draw.randint(2, 60)}): t(os.mkdir, 'd/' * n + 'd')",
                    lambda: f"for n in range({draw.randint(2, 500)}): t(os.rename, f'd{{n}}', f'd{{n + 1}}')",
                    lambda: f"t(os.symlink, CANARY, {path()})",
                    lambda: f"t(os.link, {path()}, {path()})",
                    lambda: f"t(os.chmod, {path()}, 0)",
                )
            )()
        )  # fmt: skip
    return "\n".join(lines), _some_limits(draw), draw.random() < 0.5


def _name(draw: random.Random) -> str:
    return draw.choice(
        (
            lambda: "d",
            lambda: "x" * draw.choice((1, 200, 255, 256, 5_000)),
            lambda: "é" * draw.choice((1, 127, 128)),
            lambda: "\udcff" * draw.randint(1, 9),
            lambda: draw.choice(("\n", " ", "-rf", "*", "..", ".", "\x1b]52;c;aGk=\x07", "a\tb", "\u202e", "con", "%s", "{}")),
            lambda: "".join(chr(draw.choice((draw.randrange(1, 128), draw.randrange(0x100, 0xD7FF)))) for _ in range(draw.randint(1, 60))).replace("/", "_"),
        )
    )()  # fmt: skip


def _hog(draw: random.Random) -> Made:
    n = draw.choice((10**5, 10**6, 10**7, 10**8))
    code = draw.choice(
        (
            lambda: f"x = []\nwhile True: x.append({draw.choice(('[0]', 'bytes', 'str'))}{{}} * {n})".replace("bytes{}", "b'x'").replace("str{}", "'é'").replace("[0]{}", "[0]"),
            lambda: f"x = {draw.choice(('[0]', '(0,)', 'b' + repr('x'), repr('é')))}\nwhile True: x = x + x",
            lambda: f"x = {{}}\nfor n in range(10**9): x[n << {draw.choice((0, 20, 40, 59))}] = n",
            lambda: f"x = set()\nfor n in range(10**9): x.add(n * (2**61 - 1) << {draw.choice((0, 3))})",
            lambda: f"import re\nre.{draw.choice(('match', 'search', 'sub'))[:6]}(r'{draw.choice(('(a+)+$', '(a|a)*b', '(.*a){20}$', '^(([a-z])+.)+[A-Z]$'))}', *({draw.choice(('[]',))}), 'a' * {draw.choice((40, 400))} + '!')".replace("*([]), ", "").replace("re.sub(", "re.findall("),
            lambda: f"pow(3, {n}, 10**{draw.choice((9, 9_000))})\n3 ** (10 * {n})",
            lambda: f"import sys\nsys.set_int_max_str_digits(0)\nint('9' * {n})",
            lambda: f"import zlib\nzlib.decompress(zlib.compress(bytes({n})) * 1)\n[zlib.compress(bytes({n}), 9) for _ in range(99)]",
            lambda: f"import hashlib\nhashlib.pbkdf2_hmac('sha512', b'x', b'y', {n})",
            lambda: f"import hashlib\nhashlib.scrypt(b'x', salt=b'y', n=2**{draw.choice((14, 20))}, r=8, p=1, maxmem=2**31 - 1)",
            lambda: f"from decimal import *\ngetcontext().prec = {n}\nDecimal(2).sqrt()",
            lambda: f"import itertools, collections\ncollections.deque(itertools.{draw.choice(('count()', 'cycle([1])', 'permutations(range(30))', 'product(range(99), repeat=9)'))}, maxlen={draw.choice((0, 5))})",
            lambda: f"import json\njson.loads('[' * {n} + ']' * {n})",
            lambda: f"import ast\nast.parse({draw.choice(('(', '[', '-', 'a.', 'not ', 'lambda:'))!r} * {n})",
            lambda: f"eval({draw.choice(('1+', '1,', 'a(', '[a for a in ', 'f(x)('))!r} * {n // 10} + '1')",
            lambda: f"import difflib\ndifflib.SequenceMatcher(None, 'ab' * {n // 100}, 'ba' * {n // 100}).ratio()",
            lambda: f"import unicodedata\nunicodedata.normalize({draw.choice(('NFC', 'NFKD'))!r}, 'a' + '\\u0301\\u0327' * {n // 10})",
            lambda: f"import random\n[random.randbytes({n}) for _ in range(10**4)]\nsorted(random.random() for _ in range(10**8))",
            lambda: f"def f(n): return f(n + 1) + 1\nimport sys\nsys.setrecursionlimit({n})\nf(0)",
            lambda: f"class A:\n    def __{draw.choice(('eq', 'hash', 'repr', 'len', 'bool', 'iter'))}__(self, *_):\n        while True: pass\na = A()\n{draw.choice(('a == 1', 'hash(a)', 'print(a)', 'len(a)', 'bool(a)', 'list(a)', 'echo(a)', '{a: 1}'))}\nwhile True: pass",
            lambda: f"'%{draw.choice(('', '-', '0'))}{n * 10}d' % 1\nprint(format(1, '{n}d')[:5])",
            lambda: "from fractions import Fraction\nx = Fraction(1, 3)\nwhile True: x = x * x + 1",
            lambda: f"import time\ntime.sleep({draw.choice((60, 1e9))})",
            lambda: f"import copy\nx = []\nfor _ in range({n}): x = [x]\ncopy.deepcopy(x)",
            lambda: f"x = [0] * {n}\nx.sort(key=lambda _: x.append(0))",
            lambda: "def g():\n    try:\n        while True: yield\n    finally:\n        while True: pass\nfor _ in g(): break",
            lambda: f"import array\na = array.array({draw.choice(('b', 'd', 'q'))!r})\nwhile True: a.extend(range({min(n, 10**6)}) if a.typecode != 'b' else b'x' * {n})",
            lambda: f"import io\nf = {draw.choice(('io.StringIO', 'io.BytesIO'))}()\nwhile True: f.write(f.getvalue() or {draw.choice(('b', ''))}'x')",
            lambda: f"'x'.{draw.choice(('ljust', 'center', 'zfill'))}({n} * 1000)",
            lambda: f"import textwrap\ntextwrap.wrap('a b ' * {n // 10}, {draw.choice((1, 7))})",
            lambda: f"import struct\nstruct.pack('{n * 100}x')\nstruct.unpack('{n // 10}b', bytes({n // 10}))",
            lambda: f"import functools\nf = functools.reduce(lambda f, _: lambda: f(), range({n // 100}), int)\nf()",
        )
    )()  # fmt: skip
    if draw.random() < 0.4:
        code = (
            "while True:\n    try:\n"
            + "\n".join(f"        {line}" for line in code.splitlines())
            + "\n    except BaseException: pass"
        )
    return code, _some_limits(draw), True


def _arguments(draw: random.Random) -> Made:
    """Make a program that calls a function with what is hard to send."""
    n = draw.choice((10, 63, 64, 65, 1_000, 10**5, 10**6))
    value = draw.choice(
        (
            f"f({n})", f"d({n})", f"{{str(n): n for n in range({n})}}", f"{{n: n for n in range({n})}}",
            f"{{(n, 1): n for n in range({n})}}", f"[0.1] * {n}", f"[[]] * {n}", f"[{{}}] * {n}", f"'x' * {2 * n}", f"'é' * {n}",
            f"'\\0' * {n}", f"'\\ud800' * {n}", f"'\\\\' * {n}", f"'\"' * {n}", f"'😀' * {n}", f"1 << {n}", f"-(1 << {n})", f"-1 << {draw.choice((62, 63, 64))}",
            "float('nan')", "float('inf')", "1e308", "5e-324", "-0.0", "1j", "b'x'", "bytearray(9)", "object()", "type", "echo",
            "lambda: 1", "...", "NotImplemented", "range(10**9)", f"range({n})", f"set(range({n}))", f"frozenset('{n}')", f"tuple(range({n}))",
            "(n for n in range(9))", "iter([])", "memoryview(b'x')", "{None: 1}", "{True: 1}", "{1.5: 1}", "{1: 1, '1': 2}",
            "{float('nan'): 1}", "{'a\\ud800': 1}", "{'a\\ud800': 1, 'a?': 2}", "{'\\0tuple': [1]}", "{'\\0dict': [[1, 2]], '\\0attributes': {}}",
            "me()", "{'a': me()}", "T('x')", "N(3)", "L([1])", "D(a=1)", "E.A", "P(1, 2)", "Exception('x')", "Path('x')", "date(2000, 1, 1)", "Decimal(1)",
        )
    )  # fmt: skip
    kinds = """
from collections import *
from datetime import date
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
import sys
def f(n):
    x = 0
    for _ in range(n): x = [x]
    return x
def d(n):
    x = 0
    for _ in range(n): x = {"a": x}
    return x
def me():
    x = []
    x.append(x)
    return x
class T(str):
    def __len__(self): return -1
    def encode(self, *_): return b"\\xff"
class N(int):
    def bit_length(self): return 1
    def __repr__(self): return "[" * 10**6
    __str__ = __repr__
class L(list):
    def __iter__(self):
        while True: yield 1
class D(dict):
    def items(self): return [("a", 1)] * 10**6
    def __iter__(self): return iter(["a"] * 10**6)
class E(IntEnum): A = 1
P = namedtuple("P", "x y")
"""
    call = draw.choice(
        (
            "echo({})",
            "echo(value={})",
            "echo({0}, {0})",
            "echo(*[{}] * 3)",
            "echo([{}, ('y',)])",
            "echo(**{{'value': {}}})",
        )
    )
    return f"{kinds}print(len(repr({call.format(value)})))", _some_limits(draw), draw.random() < 0.8


def _printing(draw: random.Random) -> Made:
    text = draw.choice(
        (
            "'x'",
            "'é'",
            "'\\n'",
            "'\\ud800'",
            "'\\0'",
            "'\\x1b]52;c;aGk=\\x07'",
            "'😀\\u202e'",
            "'\\r'",
            "'\\x85\\u2028'",
        )
    )
    n = draw.choice((0, 1, 999, 1_000, 20_000, 10**6, 10**7))
    return (
        draw.choice(
            (
                f"print({text} * {n})",
                f"for _ in range({n}): print({text}, end='')",
                f"import sys\nfor _ in range({n}): sys.stderr.write({text}); sys.stdout.flush()",
                f"import sys\nsys.stdout._most = sys.stdout._n_sent = -10**9\nprint({text} * {n})",
                f"import sys\nsys.stdout._channel.print({text} * {n})",
                f"import sys\nsys.stdout._held = [{text} * {n}] * 9\nsys.stdout._n_held = 1\nprint()",
                f"import sys\nsys.stdout.n_beyond = {draw.choice(('10**30', '-1', 'None', '1.5', 'True', repr('x')))}\nprint({text} * {n})",
                f"import sys\nsys.stdout.flush = lambda: print({text})\nprint({text} * {n})",
                f"import sys, io\nsys.stdout = io.StringIO()\nprint({text} * {n})",
                f"import sys\nsys.stdout.write({draw.choice(('b' + repr('x'), '1', 'None', '[]'))})",
                f"print({text} * {n}, file=open('x', 'w'))",
                f"raise {draw.choice(('ValueError', 'SystemExit', 'KeyboardInterrupt', 'MemoryError', 'OSError', 'StopIteration', 'SyntaxError', 'UnicodeError'))}({text} * {n})",
                f"raise ExceptionGroup({text} * 9, [ValueError({text} * {n})] * {draw.choice((1, 5_000))})",
                f"e = ValueError()\nfor _ in range({min(n, 10**5)}): e.add_note({text} * 99)\nraise e",
                f"class A(Exception):\n    def __str__(self): return {text} * {n}\n    __repr__ = __str__\nraise A",
                f"class A(BaseException): pass\nA.__name__ = A.__qualname__ = {text} * {min(n, 10**6)}\nraise A",
                "e = ValueError()\ne.__context__ = e.__cause__ = e\nraise e",
                f"exec(compile({text} * {min(n, 10**6)} + '1/', {text} * {min(n, 1_000)}, 'exec'))" if text != "'\\0'" else "compile('\\0', '', 'exec')",
                f"import warnings\nfor _ in range({min(n, 10**5)}): warnings.warn({text})",
            )
        ),
        _some_limits(draw),
        True,
    )  # fmt: skip


def _forking(draw: random.Random) -> Made:
    flags = draw.getrandbits(32) & draw.choice((0xFFFF_FFFF, 0xFF, 0x7E02_0000))
    how = draw.choice(
        (
            "os.fork()", "os.forkpty()", "os.posix_spawn('/bin/sh', ['sh'], {})", "os.spawnv(os.P_NOWAIT, '/bin/sh', ['sh'])",
            "kernel._libc.fork()", "kernel._libc.vfork()", "kernel._libc.daemon(1, 1)", "kernel._libc.system(b'sleep 99')",
            "kernel._libc.popen(b'sleep 99', b'r')", f"kernel._libc.syscall(C.c_long(56), C.c_long({flags}), 0, 0, 0, 0)",
            f"kernel._libc.syscall(C.c_long(435), (C.c_uint64 * 11)({flags}, 0, 0, 0, 17), C.c_long(88))",
            "C.pythonapi.PyOS_AfterFork_Child()", "here['_socket'].socketpair()", "kernel.os.pidfd_open(PARENT)",
            "kernel._libc.pthread_create((C.c_uint64 * 1)(), None, kernel._libc.pause, None)", "os.execv('/proc/self/exe', ['x'])",
            f"kernel._libc.prctl({draw.choice((1, 2, 4, 15, 22, 36, 38, 59))}, {draw.choice((0, 1))}, 0, 0, 0)",
            f"kernel._libc.kill({draw.choice(('PARENT', '0', '-1', 'os.getpid()'))}, {draw.choice((2, 9, 15, 19, 18))})",
            f"kernel.resource.setrlimit({draw.randrange(16)}, (-1, -1))", "os.setsid()", "os.setpgid(0, 0)", "os.nice(19)",
            f"kernel.fcntl.fcntl({draw.choice((256, 257, 0, 4))}, {draw.choice((0, 1030, 10, 8, 4))}, 0)",
            f"[os.close(n) for n in range({draw.choice((3, 257, 1_000))})]", f"os.closerange(3, {draw.choice((256, 70_000))})",
            f"kernel._libc.signal({draw.randrange(1, 65)}, C.c_void_p(1))", "kernel._libc.alarm(1)", "kernel._libc.abort()",
            f"kernel._libc.raise_({draw.randrange(1, 65)})".replace("raise_", "raise"), "kernel._libc._exit(99)", "C.string_at(1)",
            f"connection.{draw.choice(('detach()', 'shutdown(1)', 'setblocking(False)', 'setsockopt(1, 8, 2**30)', 'recv(2**20)', 'listen()', 'sendmsg([b' + repr('x') + '], [(1, 1, b' + repr('aaaa') + ')])', 'recvmsg(9, 999)', 'recv(9, 1)', 'send(b' + repr('x') + ', 1)'))}",
        )
    )  # fmt: skip
    how = how.replace("kernel._libc.raise(", "getattr(kernel._libc, 'raise')(")
    tries = draw.choice((1, 1, 200))
    code = (
        f"{attacks.REACH}import os\nlast = None\nfor _ in range({tries}):\n    try: last = {how}\n"
        "    except Exception as error: last = error\nprint(type(last).__name__)"
    )
    return code + draw.choice(("", "\nwhile True: pass", "\necho()")), _some_limits(draw), False


# Kind of programs → what makes one, and how many.
DRAWN: Mapping[str, tuple[Callable[[random.Random], Made], int]] = {
    "forges a message": (_forged, 70),
    "sends as much as it may": (_long, 30),
    "drips": (_dripping, 10),
    "floods": (_flood, 30),
    "calls the system by chance": (_system_calls, 25 if platform.machine() == "x86_64" else 0),
    "fills its folder": (_scratch, 45),
    "takes what there is": (_hog, 60),
    "calls with what is hard to send": (_arguments, 60),
    "prints and raises": (_printing, 35),
    "starts, signals and lets go": (_forking, 40),
}

# --- parents that end ------------------------------------------------------------------------------------------------

_RUN = "Sandbox({'told': told}, Limits(wall_s=60, cpu_s=60)).run('import os\\ntold(os.getpid())\\nwhile True: pass')"
_PARENT = """
import multiprocessing, os, subprocess, sys, threading, time
from legal_rag.deep_read.sandbox.sandbox import Limits, Sandbox
held = []
def told(pid):
    HOLD
    print(pid, *held, flush=True)
"""
# What a process does while a program runs in its sandbox; then it is killed, and the program must be gone.
PARENTS = {
    "outlives a parent that is killed": _PARENT.replace("HOLD", "pass") + _RUN,
    "outlives a parent whose fork lives on": _PARENT.replace(
        "HOLD", "held.append(os.fork())\n    if not held[-1]: os.close(1); time.sleep(99)"
    )
    + _RUN,
    "outlives a parent whose fork has a fork that lives on": _PARENT.replace(
        "HOLD", "held.append(os.fork())\n    if not held[-1]: os.setsid(); os.close(1); os.fork(); time.sleep(99)"
    ).replace("os.fork(); time", "time")
    + _RUN,
    "outlives a parent whose worker process lives on": _PARENT.replace(
        "HOLD",
        "one = multiprocessing.get_context('fork').Process(target=lambda: (os.close(1), time.sleep(99)))\n"
        "    one.start(); held.append(one.pid)",
    )
    + _RUN,
    "outlives a parent whose command holds all descriptors": _PARENT.replace(
        "HOLD",
        "[os.set_inheritable(int(n), True) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "    held.append(subprocess.Popen(['sleep', '99'], close_fds=False, stdout=subprocess.DEVNULL).pid)",
    )
    + _RUN,
    "outlives a parent that was started in a thread that ended": _PARENT.replace("HOLD", "pass")
    + "made = []\none = threading.Thread(target=lambda: made.append(Sandbox({'told': told}, Limits(wall_s=60, cpu_s=60))))\n"
    "one.start(); one.join()\nmade[0].run('import os\\ntold(os.getpid())\\nwhile True: pass')",
    "outlives a parent that is interrupted": _PARENT.replace("HOLD", "threading.Timer(0.1, os._exit, (3,)).start()")
    + _RUN,
}


def _orphaned(code: str, place: Place) -> Outcome:
    """Kill a process in whose sandbox a program runs; the program must be gone, its files at the next start."""
    environment = {**os.environ, "TMPDIR": str(place.folder)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, text=True)
    pids = [int(one) for one in parent.stdout.readline().split()]
    child, *held = map(os.pidfd_open, pids)
    try:
        parent.kill()
        parent.wait()
        gone = bool(select.select([child], [], [], 3)[0])
    finally:
        for one in held:
            signal.pidfd_send_signal(one, signal.SIGKILL)
        for one in (child, *held):
            os.close(one)
        parent.stdout.close()
    for _ in range(5):  # what held the lock of its folder takes a moment to go
        next_one = "from legal_rag.deep_read.sandbox.sandbox import Sandbox\nSandbox({}).close()"
        subprocess.run([sys.executable, "-c", next_one], check=True, env=environment)
        left = list(place.folder.glob(SCRATCH))
        if not left:
            break
    line = f"the program {'is gone' if gone else 'lives'}, {len(left)} folders are left"
    return Outcome(gone and not left, line)
