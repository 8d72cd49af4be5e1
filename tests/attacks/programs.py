# ruff: noqa: E501 - a program a line
"""Programs that mean harm: run in the sandbox, they must reach, hang, fill, crash and leave nothing.

Each runs through `Sandbox` with a few functions, or as a block of a deep read; then the next program must work.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from support.processes import is_running

from attacks.cases import Case, Outcome, Place
from legal_rag.base.deadline import DeadlineError, within
from legal_rag.deep_read import Limits, Sandbox, SandboxResult
from legal_rag.deep_read.rlm import ProgramEnvironment, RunSetup
from legal_rag.deep_read.sandbox import MAX_ERROR
from legal_rag.llm import Budget, UsageTracker

SECRET = "the-canary-is-alive"  # in a file and a variable that no program must see
USUAL = Limits(seconds=0.3, memory_mb=64, output_chars=2_000, calls=2_000)
ENDS = "ok error stopped"  # how a program may end

# Kind of programs → how they may end, and the programs.
LISTED: Mapping[str, tuple[str, Sequence[str]]] = {
    "loops": ("stopped", (
        "while True: pass", "while True:\n try:\n  while True: pass\n except BaseException: pass", "for _ in iter(int, 1): pass", "sum(iter(int, 1))",
        "import itertools\nsum(itertools.count())", "import itertools\nfor _ in itertools.cycle([1]): pass", "max(range(10**12))", "list(map(lambda n: n, range(10**12)))",
        "any(False for _ in range(10**12))", "[x for x in range(10**9) for y in range(10**9) if x > y + 10**10]", "def f():\n while True: pass\nf()",
        "try:\n while True: pass\nfinally:\n while True: pass", "import re\nwhile True: re.compile(str(id(1)))", "def g(n): return g if n else g\nwhile True: g(1)",
        "while True:\n def f(): pass", "while True:\n class A: pass", "while True: '%s' % 'x'",
    )),
    "numbers": (ENDS, (
        "3 ** 10**9", "10**10**8", "1 << 10**12", "pow(3, 10**8)", "x = 3\nwhile True: x = x * x", "x = 1\nwhile True: x <<= 10**6", "str(1 << 30_000_000)", "int('9' * 10**7)",
        "import math\nmath.factorial(10**7)", "import math\nmath.comb(10**7, 10**6)", "import math\nmath.gcd(*[3**10**5] * 10**4)", "import math\nmath.lcm(*range(1, 10**6))", "pow(3, 10**6, 10**9000)",
        "x = 10**4000\nwhile True: x = x * 10**4000 // 7", "float('1e999') // 1", "round(10**5000, -10**9)", "-(10**400) % 1e308", "(-1) ** 0.5 ** 1e9", "divmod(10**10**6, 7**10**5)", "hash(10**10**6)",
        "from decimal import Decimal, getcontext\ngetcontext().prec = 10**6\nDecimal(2).sqrt()", "from decimal import Decimal\nDecimal(10) ** 10**9", "import random\nrandom.getrandbits(10**10)",
    )),
    "texts": (ENDS, (
        "'x' * 10**10", "b'x' * 10**10", "x = 'x'\nwhile True: x += x", "'%*d' % (10**9, 1)", "'%.*f' % (10**9, 1.0)", "f'{1:{10**9}d}'", "f'{1.5:.{10**9}f}'", "'{:>1000000000}'.format('x')", "'{0:{1}}'.format(1, 10**9)",
        "'x'.ljust(10**10)", "'x'.center(10**9)", "'x'.zfill(10**10)", "('a' * 10**6).replace('a', 'b' * 10**6)", "'x'.join(['y' * 10**6] * 10**6)", "'%s' * 10**6 % (('x' * 10**5,) * 10**6)",
        "('ß' * 10**7).upper()", "import unicodedata\nunicodedata.normalize('NFKD', '\\ufdfa' * 10**6)", "('a ' * 10**8).split()", "list('a' * 10**8)", "'a' * 10**7 in 'a' * 10**7 + 'b'", "('a' * 10**6 + 'b').find('a' * 10**5 + 'c')",
        "('x\\n' * 10**7).splitlines()", "'\\t'.expandtabs(10**10)", "'a'.encode() * 10**10", "bytes(10**11)", "str([['x' * 1000] * 1000] * 1000)", "repr('\\x00' * 10**8)", "'x'.translate({120: 'y' * 10**9})", "import base64\nbase64.b64encode(b'x' * 10**8)", "import hashlib\nhashlib.sha256(b'x' * 10**9)",
        "import hashlib\nhashlib.pbkdf2_hmac('sha512', b'x', b'y', 10**9)", "import csv\nlist(csv.reader(['a,' * 10**7]))", "import json\njson.dumps([['x' * 10**6] * 10**5])", "import json\njson.dumps(1, indent=10**9)", "import json\njson.dumps([[1]], indent='x' * 10**8)",
    )),
    "memory": (ENDS, (
        "x = []\nwhile True: x.append('x' * 10**6)", "x = ()\nwhile True: x = (x, [0] * 1000)", "x = {}\nfor n in range(10**9): x[n << 59] = n", "x = {}\nfor n in range(10**9): x[n * (2**61 - 1)] = n",
        "x = set()\nfor n in range(10**9): x.add(str(n))", "x = []\nfor _ in range(9):\n try:\n  while True: x.append(b'x' * 10**6)\n except BaseException: print('plein')", "[0] * 10**10", "(0,) * 10**10", "list(range(10**10))", "dict.fromkeys(range(10**9))",
        "x = [[]]\nwhile True: x.extend(x)", "x = [0]\nfor one in x: x.append(one)", "x = [0] * 10**6\nx[::2] = x * 100", "x = 'a' * 10**6\n[x[n:] for n in range(10**6)]", "import itertools\nlist(itertools.product(range(100), repeat=9))", "import itertools\nlist(itertools.permutations(range(30)))",
        "import itertools\nlist(itertools.combinations(range(60), 30))", "import itertools\na, b = itertools.tee(itertools.count())\nsum(a)", "import itertools\nlist(itertools.accumulate(itertools.count(), lambda a, b: [a, b]))", "import collections\ncollections.Counter(range(10**9))", "import collections\ncollections.deque(range(10**9))",
        "import functools\nf = functools.reduce(lambda f, _: lambda: f(), range(10**6), int)\nf()", "import functools\n@functools.lru_cache(None)\ndef f(n): return [n] * 1000\nfor n in range(10**9): f(n)", "import random\nrandom.sample(range(10**9), 10**8)", "x = []\nwhile True: x.append(lambda: x)", "x = []\nclass A:\n def __init__(self): self.x = [self] * 999\nwhile True: x.append(A())",
        "for n in range(10**9): exec(f'v{n} = {n}')", "import copy\nx = [0]\nwhile True: x = [x, copy.deepcopy(x)]", "async def f(): pass\nx = []\nwhile True: x.append(f())",
    )),
    "expressions": (ENDS, (
        "import re\nre.match('(a|aa)+$', 'a' * 200 + 'b')", "import re\nre.match(r'(a+)+\\1$', 'a' * 5000 + 'b')", "import re\nre.search(r'(.*)*(?=Z)\\1Q', 'a' * 3000)", "import re\nre.findall(r'(x+x+)+y(?=z)', 'x' * 3000)", "import re\nre.sub('', 'x' * 1000, 'a' * 10**6)", "import re\nre.sub('a', 'x' * 10**6, 'a' * 10**6)", "import re\nre.split('', 'a' * 10**7)", "import re\nre.findall('(?:)', 'a' * 10**7)",
        "import re\nre.compile('(a{1,60000}){1,60000}')", "import re\nre.compile('((a{100}){100}){100}')", "import re\nre.compile('(' * 100000)", "import re\nre.compile('(a|' * 5000 + 'b' + ')' * 5000)", "import re\nre.compile(r'\\w{1000}{100}')", "import re\nre.compile('|'.join(str(n) for n in range(10**5)))", "import re\nre.compile('[' + 'a-z' * 10**6 + ']')",
        "import re\nre.fullmatch('(?i)' + '(a|b|ab)*' * 50 + 'c', 'ab' * 5000)", "import re\nre.sub('(a)', r'\\1' * 10**6, 'a' * 1000)", "import re\nlist(re.finditer('.', 'x' * 10**7))", "import re\nre.match('(?=(a+))a*b(?<!x)\\\\1', 'a' * 5000)", "import re\nfor n in range(10**9): re.compile('a' * 100 + str(n))", "import re\nre.search('(?:a?){500}' + 'a' * 500, 'a' * 499 + 'b')", "import re\nre.escape('(' * 10**8)",
    )),
    "depth": (ENDS, (
        "def f(): f()\nf()", "def a(): b()\ndef b(): a()\na()", "f = lambda: f()\nf()", "class A:\n def __repr__(self): return repr(self)\nprint(A())", "class A:\n def __eq__(self, other): return self == other\nA() == A()", "class A:\n def __getattr__(self, name): return getattr(self, name)\nA().x",
        "x = []\nfor _ in range(10**5): x = [x]\nprint(x)", "x = []\nfor _ in range(10**5): x = [x]\nx == [x]", "x = []\nfor _ in range(10**5): x = [x]\nimport copy\ncopy.deepcopy(x)", "x = []\nfor _ in range(10**5): x = [x]\nimport json\njson.dumps(x)", "x = ()\nfor _ in range(10**5): x = (x,)\nhash(x)", "x = {}\nfor _ in range(10**5): x = {'a': x}\nstr(x)", "x = []\nfor _ in range(10**5): x = [x]\nraise ValueError(x)",
        "x = [1]\nfor _ in range(60): x = [x, x]\nprint(x)", "x = y = [1]\nfor _ in range(60): x, y = [x, x], [y, y]\nx == y", "x = (1,)\nfor _ in range(60): x = (x, x)\nhash(x)", "x = [1]\nfor _ in range(60): x = [x, x]\nimport json\njson.dumps(x)", "x = [1]\nfor _ in range(60): x = [x, x]\nsorted([x, x])", "x = []\nx.append(x)\nprint(x, x == x)", "x = {}\nx[1] = x\nprint(x)", "x = []\nx.append(x)\nimport json\njson.dumps(x)",
        "import json\njson.loads('[' * 10**6)", "import json\njson.loads('{\"a\":' * 10**5)", "import tomllib\ntomllib.loads('a=[' * 10**5)", "def f(n): return f(n - 1) if n else 0\nprint(f(900), f(10**6))", "import functools\n@functools.lru_cache(None)\ndef f(n): return f(n + 1)\nf(0)", "sorted([1, 2], key=lambda n: sorted([n], key=lambda n: f(n)))", "f = int\nfor _ in range(10**5): f = (lambda f: lambda: f())(f)\nf()",
    )),
    "prints": (ENDS, (
        "while True: print('x' * 1000)", "while True: print('x', end='')", "print('x' * 10**7)", "print(*range(10**6))", "print('x', sep='y' * 10**8)", "print(*['x'] * 1000, sep='y' * 10**5)", "print('\\ud800', '\\x00', '\\x1b]52;c;aGk=\\x07', '\\u202e', '\\r')", "import sys\nwhile True: print('x', file=sys.stderr)", "print(end='\\n' * 10**7)", "print(print(print))", "print('x', file=1)", "print(flush=1, end=None)", "for n in range(10**5): print(n)",
    )),
    "errors": ("error stopped", (
        "raise ValueError('x' * 10**7)", "raise KeyError('x\\n' * 10**5)", "raise SystemExit(3)", "raise KeyboardInterrupt", "raise GeneratorExit", "raise BaseException('adieu')", "raise TimeoutError('feed time limit exceeded')", "raise MemoryError('memory limit')", "raise RuntimeError('suspension limit 3 exceeded')", "raise 3", "raise ValueError from ValueError", "exit()", "quit()", "import sys\nsys.exit()",
        "last = None\nfor n in range(2000):\n try:\n  try: raise ValueError(n)\n  finally: raise KeyError(n)\n except KeyError as error: last = error\nraise last", "assert [1] * 10**6 == [2] * 10**6", "assert 0, 'x' * 10**7", "class A: pass\nraise A()", "1 / 0", "x" * 5000, "[].x", "{}[('x' * 10**6,)]", "[][10**30]", "fail('x')", "fail()", "try: fail('x')\nfinally: fail('y')", "def f():\n try: f()\n finally: f()\nf()", "''.join([1] * 10**6)", "int('x' * 10**7)",
    )),
    "classes": (ENDS, (
        "class A:\n def __iter__(self): return self\n def __next__(self): return 1\nlist(A())", "class A:\n def __len__(self): return 10**18\nprint(len(A()), list(A()))", "class A:\n def __len__(self): return -1\nlen(A())", "class A:\n def __bool__(self):\n  while True: pass\nif A(): pass", "class A:\n def __hash__(self): return 1\n def __eq__(self, o): return False\n{A(): n for n in range(10**5)}", "class A:\n def __repr__(self): return 'x' * 10**8\nprint(A())", "class A:\n def __str__(self): raise SystemExit\nprint(A())",
        "class A:\n def __lt__(self, o): return True\nsorted([A() for _ in range(10**5)])", "class A:\n def __getitem__(self, n): return n\nfor _ in A(): pass", "class A:\n def __contains__(self, o):\n  while True: pass\n1 in A()", "class A:\n def __call__(self): return self()\nA()()", "class A:\n def __init__(self): A()\nA()", "class A:\n def __enter__(self): return self\n def __exit__(self, *_): return True\nwith A(): raise KeyboardInterrupt", "class A:\n def __add__(self, o): return A() + A()\nA() + 1", "class A:\n def __del__(self):\n  while True: pass\nA()\nA()",
        "class A:\n __slots__ = ['x'] * 10**5\nA()", "class A:\n def __format__(self, spec): return 'x' * 10**9\nf'{A()}'", "class A:\n def __index__(self): return 10**12\n[0] * A()", "type('A', (), {str(n): n for n in range(10**6)})()", "type(type(1))('A', (type(1),), {})", "class A:\n x = property(lambda self: self.x)\nA().x", "class A:\n def __setattr__(self, k, v): setattr(self, k, v)\nA().x = 1", "sorted(range(10**5), key=lambda n: [n] * 10**4)", "x = [3, 1, 2] * 1000\nx.sort(key=lambda _: x.append(0))", "x = {1: 1}\nfor n in x: x[n + 1] = 1", "max([[0] * 10**6] * 10**6)",
    )),
    "escapes": (ENDS, (
        "eval('__import__(\"os\").system(\"id\")')", "exec('import socket')", "exec('import os\\nprint(os.environ)')", "compile('1', 'x', 'exec')", "__import__('os')", "__builtins__", "import builtins", "globals()['x']", "vars()", "dir()", "().__class__.__base__.__subclasses__()", "int.__subclasses__()", "type(1).__mro__", "(1).__class__", "echo.__globals__", "echo.__code__", "echo.__self__", "getattr(echo, '__glo' + 'bals__')", "setattr(echo, 'x', 1)",
        "(lambda: 1).__globals__", "(lambda: 1).__code__.co_code", "try: 1 / 0\nexcept Exception as e: print(e.__traceback__.tb_frame)", "'{0.__class__.__mro__}'.format(1)", "f'{echo.__globals__}'", "'{.__globals__}'.format(echo)", "import sys\nsys.modules", "import sys\nsys._getframe()", "import sys\nsys.settrace(print)", "import sys\nprint(sys.path, sys.executable, sys.argv)", "import gc", "import inspect", "import ctypes", "import _ctypes", "import socket", "import subprocess", "import multiprocessing", "import threading", "import _thread",
        "import signal", "import importlib", "import pickle", "import marshal", "import code", "import cffi", "import pydantic_monty", "import legal_rag", "from legal_rag.deep_read import sandbox", "from . import x", "import urllib.request", "import ssl", "import http.client", "import sqlite3", "import shutil", "import tempfile", "import platform", "import site", "import resource", "import mmap", "import fcntl", "import atexit",
        "open(CANARY).read()", "open(CANARY, 'w').write('x')", "open(OUTSIDE + '/new', 'x')", "open('/proc/self/environ', 'rb').read()", "open('/proc/1/mem', 'rb')", "open(0)", "open('/dev/tty')", "from pathlib import Path\nPath(CANARY).read_text()", "from pathlib import Path\nPath(OUTSIDE).joinpath('x').mkdir()", "from pathlib import Path\nprint(list(Path('/').iterdir()))", "from pathlib import Path\nPath(CANARY).unlink()", "from pathlib import Path\nprint(Path.home(), Path.cwd())", "import os\nos.remove(CANARY)", "import os\nos.listdir('/')", "import os\nprint(os.environ['ATTACK_CANARY'])", "import os\nprint(os.getenv('ATTACK_CANARY'))", "import os\nos.system('id')",
        "import os\nos.fork()", "import os\nos.kill(PARENT, 9)", "import os\nos._exit(1)", "import os\nos.open(CANARY, 0)", "import os\nprint(os.getpid(), os.getcwd(), os.uname())", "import os\nos.chdir(OUTSIDE)\nopen('canary.txt')", "import os\nos.urandom(10**12)", "import os\nos.rename(CANARY, CANARY + 'x')", "import io\nio.open(CANARY)", "input()", "breakpoint()", "help()", "license()", "memoryview(b'x')", "object.__reduce__(1)", "print(__file__, __name__, __loader__)", "import string\nprint(string.__file__)", "import statistics\nstatistics.__loader__", "class A(type): pass", "__build_class__", "import typing\ntyping.sys", "import json\njson.codecs", "import re\nre.sys", "import collections\ncollections._sys",
    )),
    "names": (ENDS, (
        "echo = ask = None\necho(1)", "def echo(x):\n while True: pass\necho(1)", "print = echo\nprint('x')", "list = dict = str = len = None", "locals()['x'] = 1\nprint(x)", "for name in list(locals()): exec(f'{name} = None')", "_operator = _heapq = _statistics = _string = None\nimport heapq\nheapq.nlargest(1, [1])", "ids.clear()\nids.append(ids)", "global ids\nids = ids * 10**9", "kept = echo\nfor _ in range(9): kept = kept(kept)", "a = b = c = echo\na(b(c(1)))", "True_ = not True\nNone_ = None\nassert True_",
        "[echo, ask, fail][1]('x')", "x = {'f': echo}\nx['f'](x)", "class A:\n f = echo\nA.f(1)", "class A:\n f = echo\nA().f(1)", "import functools\nfunctools.partial(echo, 1)()", "(lambda f: f(f))(lambda f: f(f))", "echo.x = 1", "del echo", "nonlocal echo", "lambda echo: echo(1)", "with echo(1): pass", "for x in echo([1] * 100): echo(x)", "@echo\ndef f(): pass\nf()", "match echo(1):\n case int(): echo(2)", "[echo(n) for n in range(100) if echo(n)]", "echo(echo(echo))", "async def f(): return echo(1)\nimport asyncio\nasyncio.run(f())",
    )),
    "calls": (ENDS, (
        "while True: echo(1)", "while True:\n try: echo(1)\n except BaseException: pass", "while True:\n try: nobody\n except NameError: pass", "while True:\n try: fail('x')\n except ValueError: pass", "while True:\n try: open('x')\n except OSError: pass", "while True:\n try: import numpy\n except ImportError: pass", "while True: eval('1')", "while True: ask('x' * 10**6)", "x = 'x' * 15_000_000\nwhile True: ask(x)", "while True: echo([[0] * 1000] * 20)", "while True: echo([0] * 10**4)", "def f(): echo(1); f()\nf()", "sorted(range(9), key=echo)", "list(map(echo, range(9)))", "class A:\n def __eq__(self, o): return echo(1)\nA() == A()", "import functools\nfunctools.reduce(echo, [1, 2, 3])", "max([1, 2], key=ask)",
        "import asyncio\nasync def f(n): return echo(n)\nasync def g(): return await asyncio.gather(*[f(n) for n in range(500)])\nasyncio.run(g())", "await echo(1)", "async def f(): await f()\nimport asyncio\nasyncio.run(f())", "import asyncio\nasyncio.run(asyncio.sleep(60))", "import asyncio\nasync def f():\n while True: await asyncio.sleep(0)\nasyncio.run(f())", "import time\ntime.sleep(60)", "import time\nwhile True:\n try: time.sleep(1e9)\n except Exception: pass", "import time\nwhile time.time() < 1e12: pass", "import datetime\nwhile True: datetime.datetime.now()", "import time\ntime.sleep(float('nan'))", "yield 1",
        "import statistics\nstatistics.quantiles([1, 2], n=10**9)", "import statistics\nstatistics.mean([1 << 10**6] * 10**4)", "import statistics\nstatistics.mode([[]])", "import statistics\nstatistics.stdev([1e308] * 3)", "import heapq\nheapq.nlargest(10**9, range(10**9))", "import operator\noperator.itemgetter(*range(10**6))([1])", "import string\nstring.printable * 10**8", "from operator import *",
    )),
    "syntax": (ENDS, (
        "(" * 50_000, "[" * 5_000 + "]" * 5_000, "{" * 49_000, "(\n" * 20_000, "-" * 45_000 + "1", "not " * 12_000 + "1", "a" + ".a" * 20_000, "a" + "()" * 20_000, "1" + "+1" * 20_000, "lambda:" * 7_000 + "1", "1 if 1 else " * 4_000 + "1", "f'{" * 16_000, "f'{'" * 9_000, "f'{f\"{f'{1}'}\"}'\n" * 2_500, "x = 1\n" * 8_000, "x = '" + "é" * 45_000 + "'", "#" * 10**6, "x = 1\n" * 200_000, "a=" * 20_000 + "1", "'" * 49_999, "\0", "x = 1\0", "x = '\0'", "\ud800", "x = '\ud800'",
        "".join(" " * n + "if 1:\n" for n in range(280)), "try:\n" * 99, "x = [" + "0," * 22_000 + "]", "x = {" + "0:0," * 12_000 + "}", "9" * 45_000, "0x" + "f" * 45_000, "1e" + "9" * 45_000, "x" * 45_000, "def f(" + ",".join(f"a{n}" for n in range(8_000)) + "): pass", "f(" + "**a," * 12_000 + ")", "global " + ",".join(f"a{n}" for n in range(8_000)), "import " + "a." * 20_000 + "a", "@a\n" * 15_000 + "def f(): pass", "match x:\n case " + "[" * 150 + "]" * 150 + ": pass", "a" + "[a" * 200 + "]" * 200,
        "import heapq\n" + "(" * 150 + "!", "import heapq as " + "h" * 45_000, "from heapq import (" + "nlargest,\n" * 4_000 + ")", "import heapq; " * 3_000, "if 1:\n import heapq\n else", "import heapq\n\\", "x = \\", "'''", "\ufeffx = 1", "# -*- coding: utf-7 -*-\n+AGE-", "x = 1\x0cy = 2", "ﬁ = 1\nfi", "print('\u2028\x85')", "\u202e = 1", "x\u200b = 1", "𝐞𝐜𝐡𝐨(1)", "\r\rx = (\r", "eval('1+' * 20_000 + '1')", "eval('[' * 5_000)", "exec('x = 1\\n' * 10**6)", "exec('exec(' * 90)", "x: (y := 1) = 2", "async def f(): yield", "return", "break", "*a, *b = 1", "type X = X", "def f[T: T](): pass", "except: pass",
    )),
}  # fmt: skip

# What is hard to pass to a function, or to take for an answer.
VALUES = (
    "[{n}]", "'x' * {n}", "'é' * {n}", "'\\0' * {n}", "'\\ud800' * {n}", "b'x' * {n}", "1 << {n}", "-(1 << {n})", "[0] * {n}", "[[]] * {n}", "[{{}}] * {n}", "[0.1] * {n}", "['x' * {n}] * {n}", "nested({n})", "{{str(n): n for n in range({n})}}", "{{n: n for n in range({n})}}", "{{(n, 1): n for n in range({n})}}", "set(range({n}))", "tuple(range({n}))", "frozenset(['x' * {n}])", "range({n})", "(n for n in range({n}))",
    "shared({n})", "{{C(1): 1}}", "{{C(1)}}", "namedtuple('P', 'def x', rename=True)(1, 2)", "KeyError(1)", "[1 << 9_999] * {n}", "[P(n, n) for n in range({n})]", "[C(n) for n in range({n})]", "[date(2000, 1, 1)] * {n}", "loop()", "{{'a': loop()}}", "C(loop())", "echo", "len", "lambda: 1", "int", "C", "type", "...", "NotImplemented", "1j", "float('nan')", "float('inf')", "-0.0", "1e308", "{{None: 1, True: 2, 1.5: 3}}", "{{1: 'a', '1': 'b'}}", "{{'a': 1}}.keys()", "{{'a': {{'a': 1}}.items()}}", "iter([])", "map(len, [1])", "zip([1] * {n})", "reversed([1] * {n})", "slice({n})", "ValueError('x' * {n})",
    "Decimal('1e{n}')", "Path('/' * {n})", "timedelta({n})", "re.match('a*', 'a' * {n})", "re", "re.compile('a')", "Counter('a' * {n})", "deque([1] * {n})", "{{P({n}, 2): 1}}", "'dict_keys([1])'", "'range(0, 3)'", "'<x object>'", "type('A' * {n}, (), {{}})()", "namedtuple('P' * {n}, 'x')(1)", "[namedtuple(f'P{{n}}', 'x')(n) for n in range(min({n}, 3_000))]", "'\\u0301' * {n}", "'1 ' * {n}", "[None] * {n}", "[{{'id': ['x'] * 99}}] * {n}",
)  # fmt: skip
SHAPES = """
from collections import Counter, deque, namedtuple
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
import re
P = namedtuple("P", "x y")
class C:
    def __init__(self, x): self.x, self.me = x, self
def nested(n):
    x = 0
    for _ in range(min(n, 10**5)): x = [x]
    return x
def shared(n):
    x = 0
    for _ in range(min(n, 60)): x = [x, x]
    return x
def loop():
    x = []
    x.append(x)
    return x
"""
PASSED = ("echo({})", "echo(value={})", "echo({0}, {0})", "echo(*[{}] * 3)", "echo([{}, ('y',)])", "echo(**{{'value': {}}})", "echo(**{{'a b': {}}})", "ask({})", "fail({})", "echo(*{})", "echo({{'k': {}}})")  # fmt: skip
# Of a deep read: its own functions, and the answer.
ANSWERED = (
    "FINAL({})", "FINAL(value={})", "FINAL_VAR({})", "x = {}\nFINAL_VAR('x')", "answer['content'] = {}\nanswer['ready'] = True", "answer['content'] = {}", "answer = {}", "_take_state({}, {})", "_take_state({{'ready': 1, 'content': {}}}, [1])", "SHOW_VARS({})", "rlm_query({})", "rlm_query_batched({})", "llm_query_batched({})", "history = context = {}", "FINAL = FINAL_VAR = _take_state = None\nx = {}", "locals = list = {}", "def _take_state(*a): FINAL({})",
    "while True: FINAL({})", "FINAL({})\nwhile True: pass", "FINAL_VAR('_operator')\nx = {}", "FINAL_VAR('while')\nx = {}", "answer['ready'] = {}", "answer = None\nraise ValueError({})",
)  # fmt: skip


def prepare(place: Place) -> None:
    """Start the first workers: what stays after it is not the cases'."""
    os.environ["ATTACK_CANARY"] = SECRET
    for run in (_run, _read):
        run("print(1)", USUAL, ENDS, place)


def cases(seed: int) -> Iterator[Case]:
    """Yield the programs: those of the list, then those drawn, then sessions and processes."""
    draw = random.Random(seed)
    for kind, (ends, codes) in LISTED.items():
        for n, code in enumerate(codes):
            yield _case(f"{kind} {n}", _run, code, USUAL, ends)
    for n, value in enumerate(VALUES):
        for run, calls in ((_run, PASSED), (_read, ANSWERED)):
            written = value.format(n=draw.choice((1, 49, 51, 1_000, 10**5, 10**6, 10**7)))
            code = SHAPES + draw.choice(calls).replace("{}", "{0}").format(written)
            yield _case(f"{run.__name__[1:]} value {n}", run, code, _some_limits(draw))
    everything = [code for _, codes in LISTED.values() for code in codes if len(code) < 1_000]
    for n in range(60):
        run = draw.choice((_run, _read))
        yield _case(f"mixture {n}", run, _mixed(draw, draw.sample(everything, 3)), _some_limits(draw))
    for n in range(40):
        yield _case(f"broken {n}", _run, _broken(draw, draw.choice(everything)), _some_limits(draw))
    for work in (_many_sessions, _within_one_another, _interrupted, _late, _killed):
        yield Case(work.__name__[1:].replace("_", " "), work, 10.0)


def _case(name: str, run: Callable[..., Outcome], code: str, limits: Limits, ends: str = ENDS) -> Case:
    arriving = limits.memory_mb / 50  # seconds, for what it passes to functions: that cannot be interrupted
    return Case(name, partial(run, code, limits, ends), limits.seconds + arriving)


def _some_limits(draw: random.Random) -> Limits:
    return Limits(
        seconds=draw.choice((0.1, 0.2, 0.5)),
        memory_mb=draw.choice((16, 64, 128)),
        output_chars=draw.choice((1, 100, 20_000)),
        calls=draw.choice((1, 10, 2_000)),
    )


def _mixed(draw: random.Random, codes: Sequence[str]) -> str:
    """Put programs one after the other, in a loop or a function, all errors caught."""
    tried = "\n".join(f"try:\n{_indented(code)}\nexcept BaseException as error: print(error)" for code in codes)
    return draw.choice(("{0}", "while True:\n{1}", "def f():\n{1}\n f()\nf()", "for _ in range(3):\n{1}")).format(
        tried, _indented(tried)
    )


def _indented(code: str) -> str:
    return "\n".join(f" {line}" for line in code.split("\n"))


def _broken(draw: random.Random, code: str) -> str:
    """Replace, leave out and repeat some characters."""
    letters = list(code)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(letters) + 1)
        letters[at : at + draw.randint(0, 3)] = draw.choice(("", "(", ")", "\n", "'", ":", " ", "{", "\\", "\0", "é", "9" * 50, "".join(letters[at : at + 9]) * 99))  # fmt: skip
    return "".join(letters)


# --- one program -----------------------------------------------------------------------------------------------------


class _Outside:
    """What a program must not reach: a file, and functions that are called with plain values alone."""

    def __init__(self, place: Place) -> None:
        self.folder = place.folder / "outside"
        self.folder.mkdir(exist_ok=True)
        self.canary = self.folder / "canary.txt"
        self.canary.write_text(SECRET)
        self.called: list[Any] = []
        self.functions = {"echo": self._echo, "ask": lambda value=None: len(str(value)[:9]), "fail": self._fail}
        self.values = {"CANARY": str(self.canary), "OUTSIDE": str(self.folder), "PARENT": os.getpid(), "ids": ["a"]}

    def _echo(self, value: Any = None, *rest: Any, **more: Any) -> Any:
        self.called.append(_is_plain([value, *rest, more]))
        return value

    def _fail(self, value: Any) -> None:
        raise ValueError(str(value)[:100])

    def faults(self, result: SandboxResult, limits: Limits, ends: str) -> Iterator[str]:
        told = result.output + (result.error or "")
        if result.status not in ends.split():
            yield f"ended as {result.status}"
        if SECRET in told:
            yield "told what is outside"
        if len(result.output) > limits.output_chars + 60 or len(result.error or "") > MAX_ERROR + 500:
            yield "said too much"
        if bool(result.error) == (result.status == "ok"):
            yield "an error without one"
        if result.status == "stopped" and "\n" in (result.error or ""):
            yield "more than one line"
        if self.canary.read_text() != SECRET or len(list(self.folder.iterdir())) != 1:
            yield "changed what is outside"
        if not all(self.called):
            yield "called with what is not plain"


def _run(code: str, limits: Limits, ends: str, place: Place) -> Outcome:
    """Run a program, and the next one, which must work."""
    outside = _Outside(place)
    with Sandbox(outside.functions, limits, values=outside.values) as sandbox:
        result = sandbox.run(code)
        faults = [*outside.faults(result, limits, ends)]
        if sandbox.run("assert 6 * 7 == 42").status not in ("ok", "stopped"):  # out of memory or calls, maybe
            faults.append("broke the session")
    return _outcome(faults, f"{result.status} : {result.error or result.output}")


def _read(code: str, limits: Limits, ends: str, place: Place) -> Outcome:
    """Run a program as a block of a deep read, and the next one."""
    outside = _Outside(place)
    asked = {"llm_query": len, "llm_query_batched": lambda prompts: ["oui"] * len(prompts)}
    setup = RunSetup(
        root=_Model(),
        sub=_Model(),
        tracker=UsageTracker(Budget(seconds=60.0)),
        functions={**outside.functions, **asked},
        values=outside.values,
        prompt="",
        receipts=_Receipts(),
        limits=limits,
    )  # fmt: skip
    environment = ProgramEnvironment(setup, "le contexte")
    try:
        shown = environment.execute_code(code)
        environment.execute_code("print(1)")
    finally:
        environment.cleanup()
    status = "ok" if not shown.stderr else "stopped" if "variables sont perdues" in shown.stderr else "error"
    result = SandboxResult(status, shown.stdout, shown.stderr or None)
    line = f"{result.error or shown.stdout.strip() or environment.final or 'rien'}"
    return _outcome([*outside.faults(result, limits, ends)], f"{status} : {line}")


class _Model:
    name = "model"


class _Receipts:
    def news(self) -> list[Any]:
        return []


def _outcome(faults: Sequence[str], line: str) -> Outcome:
    return Outcome(not faults, "; ".join([*faults, line.strip().rpartition("\n")[2][:300]]))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(one) for key, one in value.items())
    return value is None or type(value) in (bool, int, float, str)


# --- sessions and processes ------------------------------------------------------------------------------------------


def _many_sessions(place: Place) -> Outcome:
    """Run good and bad programs in many threads: none disturbs another."""
    wrong: list[str] = []

    def use(n: int) -> None:
        with Sandbox({"who": lambda: n}, USUAL) as sandbox:
            for code in ("x = 'x' * 10**9", "while True: who()", "raise SystemExit"):
                sandbox.run(code)
                if sandbox.run("print(sum(who() for _ in range(50)))").output != f"{50 * n}\n":
                    wrong.append(f"session {n} after {code}")

    threads = [threading.Thread(target=use, args=(n,)) for n in range(24)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return _outcome(wrong, f"{len(threads)} sessions")


def _within_one_another(place: Place) -> Outcome:
    def deeper(n: int) -> str:
        with Sandbox({"deeper": deeper}, USUAL) as sandbox:
            return sandbox.run(f"print(deeper({n - 1}))" if n else "while True: pass").error or str(n)

    said = deeper(40)
    return _outcome([] if said == "40" else ["did not come back"], said)


def _interrupted(place: Place) -> Outcome:
    """Interrupt programs at any moment, as a reader does: the next one works."""
    before, faults = signal.signal(signal.SIGINT, signal.default_int_handler), []
    with Sandbox({"wait": lambda: time.sleep(0.01)}, Limits(seconds=30)) as sandbox:
        for n in range(20):
            timer = threading.Timer(0.002 * n, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
            try:
                timer.start()
                sandbox.run(("while True: pass", "while True: wait()", "x = y = [1]\nfor _ in range(60): x, y = [x, x], [y, y]\nx == y")[n % 3])  # fmt: skip
                faults.append("was not interrupted")
            except KeyboardInterrupt:
                faults += [] if sandbox.run("print(1)").output == "1\n" else ["broke the session"]
    signal.signal(signal.SIGINT, before)
    return _outcome(faults, "20 interruptions")


def _late(place: Place) -> Outcome:
    """Let deadlines pass at any moment, also as a session begins."""
    faults = []
    for n in range(20):
        with Sandbox({"wait": lambda: time.sleep(0.01)}, Limits(seconds=30)) as sandbox:
            try:
                with within(0.001 * n):
                    sandbox.run("while True: wait()" if n % 2 else "while True: pass")
                faults.append("was not interrupted")
            except DeadlineError:
                pass
            faults += [] if sandbox.run("print(1)").output == "1\n" else ["broke the session"]
    return _outcome(faults, "20 deadlines")


def _killed(place: Place) -> Outcome:
    """Kill a process in whose sandboxes programs run: no worker outlives it for long."""
    code = """
from threading import Thread
from legal_rag.deep_read.sandbox import Limits, Sandbox
from support.processes import children
run = lambda code: Sandbox({"told": lambda: print(*children(), flush=True)}, Limits(seconds=1)).run(code)
for code in ("while True: pass", "x = []\\nwhile True: x = [x]", "told()\\nwhile True: pass"): Thread(target=run, args=(code,)).start()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = parent.stdout.readline().split()
        parent.kill()
    ends = time.monotonic() + 3.0
    while (alive := [pid for pid in workers if is_running(pid)]) and time.monotonic() < ends:
        time.sleep(0.02)
    return _outcome([f"{pid} is left" for pid in alive], f"{len(workers)} workers are gone")
