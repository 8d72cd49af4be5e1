"""Ordinary programs run in the sandbox as anywhere else: what a model writes to count, sort, compare and note down."""

from textwrap import dedent

import pytest

from legal_rag.deep_read import Sandbox, SandboxResult
from legal_rag.deep_read.sandbox.child.imports import OFFERED
from legal_rag.deep_read.sandbox.sandbox import walls

pytestmark = pytest.mark.skipif(bool(walls().missing), reason=f"walls are missing here: {walls().missing}")

# Name, program, what it prints.
PROGRAMS = [
    (
        "comprehensions",
        r"""
            print([n * n for n in range(4)], {n: str(n) for n in (1, 2)})
        """,
        "[0, 1, 4, 9] {1: '1', 2: '2'}",
    ),
    (
        "a class",
        r"""
            class A:
                def __init__(self, n): self.n = n
                def twice(self): return 2 * self.n
            print(A(4).twice())
        """,
        "8",
    ),
    (
        "a dataclass",
        r"""
            from dataclasses import dataclass
            @dataclass
            class D:
                a: int
                b: str = 'x'
            print(D(1))
        """,
        "D(a=1, b='x')",
    ),
    (
        "postponed annotations",
        r"""
            from __future__ import annotations
            x: Nothing = 1
            print(x)
        """,
        "1",
    ),
    (
        "a regular expression",
        r"""
            import re
            print(re.findall(r'\d{4}', 'le 3 mai 1993 et 1994'))
        """,
        "['1993', '1994']",
    ),
    (
        "sorting by a key",
        r"""
            print(sorted(['bb', 'a', 'ccc'], key=len, reverse=True))
        """,
        "['ccc', 'bb', 'a']",
    ),
    (
        "a formatted string",
        r"""
            n = 1234.5
            print(f'{n:,.2f} {"é":>3}')
        """,
        "1,234.50   é",
    ),
    (
        "json",
        r"""
            import json
            print(json.dumps({'a': [1, None]}), json.loads('[1.5]'))
        """,
        '{"a": [1, null]} [1.5]',
    ),
    (
        "statistics",
        r"""
            import statistics as s
            print(s.mean([1, 2, 6]), s.median([3, 1, 2]))
        """,
        "3 2",
    ),
    (
        "a date",
        r"""
            from datetime import datetime, timedelta
            d = datetime.strptime('03/05/1993', '%d/%m/%Y')
            print((d + timedelta(days=30)).date(), d.strftime('%Y'))
        """,
        "1993-06-02 1993",
    ),
    (
        "counting",
        r"""
            from collections import Counter, defaultdict
            c = Counter('abca')
            d = defaultdict(list)
            d['x'].append(1)
            print(c.most_common(1), dict(d))
        """,
        "[('a', 2)] {'x': [1]}",
    ),
    (
        "iterators",
        r"""
            import itertools as i
            print([(k, len(list(g))) for k, g in i.groupby('aab')])
        """,
        "[('a', 2), ('b', 1)]",
    ),
    (
        "a generator",
        r"""
            def g():
                yield from (1, 2)
            print(sum(g()))
        """,
        "3",
    ),
    (
        "recursion",
        r"""
            from functools import lru_cache
            @lru_cache(None)
            def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
            print(f(80))
        """,
        "23416728348467685",
    ),
    (
        "decimals and fractions",
        r"""
            from decimal import Decimal
            from fractions import Fraction
            print(Decimal('0.1') * 3, Fraction(1, 3) + 1)
        """,
        "0.3 4/3",
    ),
    (
        "named values",
        r"""
            from enum import Enum
            from typing import NamedTuple
            class E(Enum):
                A = 1
            class P(NamedTuple):
                x: int
            print(E.A, P(2))
        """,
        "E.A P(x=2)",
    ),
    (
        "comparing texts",
        r"""
            import difflib
            print(difflib.get_close_matches('arret', ['arrêt', 'loi']))
        """,
        "['arrêt']",
    ),
    (
        "folding accents",
        r"""
            import unicodedata as u
            print(''.join(c for c in u.normalize('NFD', 'élève') if not u.combining(c)))
        """,
        "eleve",
    ),
    (
        "wrapping text",
        r"""
            import textwrap
            print(textwrap.shorten('un deux trois', 8, placeholder='…'))
        """,
        "un deux…",
    ),
    (
        "reading HTML",
        r"""
            import html
            from html.parser import HTMLParser
            print(html.unescape('&eacute;'), HTMLParser)
        """,
        "é <class 'html.parser.HTMLParser'>",
    ),
    (
        "csv",
        r"""
            import csv, io
            print(list(csv.reader(io.StringIO('a;b\n1;2'), delimiter=';')))
        """,
        "[['a', 'b'], ['1', '2']]",
    ),
    (
        "hashing",
        r"""
            import hashlib
            print(hashlib.sha256(b'a').hexdigest()[:8], hashlib.md5(b'a').hexdigest()[:8])
        """,
        "ca978112 0cc175b9",
    ),
    (
        "encodings",
        r"""
            print('é'.encode('latin-1'), b'\xe9'.decode('cp1252'), 'é'.encode('utf-16-le'))
        """,
        "b'\\xe9' é b'\\xe9\\x00'",
    ),
    (
        "its own file",
        r"""
            with open('notes.txt', 'w') as f:
                f.write('été')
            with open('notes.txt', 'a') as f:
                f.write(' 93')
            print(open('notes.txt').read())
        """,
        "été 93",
    ),
    (
        "its own folder",
        r"""
            import os
            from pathlib import Path
            Path('d').mkdir()
            Path('d/f.txt').write_text('x')
            os.rename('d/f.txt', 'd/g.txt')
            print(os.listdir('d'), Path('d/g.txt').exists(), os.path.getsize('d/g.txt'))
            os.remove('d/g.txt')
            os.rmdir('d')
            print(os.path.exists('d'))
        """,
        "['g.txt'] True 1\nFalse",
    ),
    (
        "catching an error",
        r"""
            try:
                int('x')
            except ValueError as error:
                print(error)
        """,
        "invalid literal for int() with base 10: 'x'",
    ),
    (
        "its own name",
        r"""
            print(__name__)
            if __name__ == '__main__':
                print('oui')
        """,
        "__main__\noui",
    ),
]


@pytest.fixture(scope="module")
def sandbox():
    """Return one sandbox for all: starting one takes as long as a hundred programs."""
    with Sandbox({}) as made:
        yield made


@pytest.mark.parametrize(("code", "printed"), [row[1:] for row in PROGRAMS], ids=[row[0] for row in PROGRAMS])
def test_an_ordinary_program_runs(sandbox, code, printed):
    if ("w'" in code or "mkdir" in code) and not walls().quota:
        pytest.skip("nobody can count what is written here, so nothing can be")
    assert sandbox.run(dedent(code)) == ("ok", printed + "\n", None)


def test_every_module_that_is_offered_can_be_imported(sandbox):
    code = "\n".join(f"import {name}" for name in OFFERED)
    assert sandbox.run(code + "\nprint('ok')") == ("ok", "ok\n", None)


def test_a_module_that_is_not_offered_is_refused_with_the_list_of_those_that_are(sandbox):
    error = sandbox.run("import numpy").error
    assert "ModuleNotFoundError: le module 'numpy' n'existe pas dans le bac à sable ; il y a : abc, " in error


def test_a_program_prints_and_ends(sandbox):
    assert sandbox.run("print(6 * 7)") == SandboxResult("ok", "42\n", None)


def test_the_value_of_a_last_expression_is_not_shown(sandbox):
    assert sandbox.run("6 * 7") == ("ok", "", None)


def test_what_goes_to_stderr_is_shown_in_its_place(sandbox):
    assert sandbox.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')").output == "a\nb\nc\n"


def test_names_outlive_the_program_that_made_them(sandbox):
    sandbox.run("import re\ncount = 1\ndef more(n):\n    return n + count")
    assert sandbox.run("count += more(1)\nprint(count, re.sub('a', 'b', 'aa'))").output == "3 bb\n"


def test_code_that_is_no_python_is_told_with_its_line(sandbox):
    result = sandbox.run("x = 1\ny = (1,\n")
    assert result.status == "error"
    assert "SyntaxError: '(' was never closed" in result.error
    assert '>", line 2\n' in result.error


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "raise KeyboardInterrupt", "raise GeneratorExit"])
def test_leaving_the_interpreter_ends_the_program_and_not_the_child(sandbox, code):
    assert sandbox.run("x = 1\n" + code).status == "error"
    assert sandbox.run("print(x)") == ("ok", "1\n", None)


def test_a_cause_is_told_with_its_error(sandbox):
    error = sandbox.run("try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('pire') from e").error
    assert "ZeroDivisionError: division by zero" in error
    assert error.endswith("ValueError: pire")


def test_a_long_traceback_is_cut_and_says_so(sandbox):
    error = sandbox.run("raise ValueError('x' * 100_000 + 'fin')").error
    assert len(error) < 5_000
    assert "caractères de moins]" in error
    assert error.endswith("fin")


def test_an_error_is_told_as_python_does_with_the_program_s_own_lines():
    code = "import json\ndef f(x):\n    return json.loads(x)\nf('{')"
    with Sandbox({}) as sandbox:
        result = sandbox.run("print('avant')\n" + code)
    assert (result.status, result.output) == ("error", "avant\n")
    lines = [line for line in result.error.splitlines() if line.strip("~^ ")]
    assert lines[:5] == [
        "Traceback (most recent call last):",
        '  File "<bloc 1>", line 5, in <module>',
        "    f('{')",
        '  File "<bloc 1>", line 4, in f',
        "    return json.loads(x)",
    ]
    assert lines[-1].startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert ".py" not in result.error
