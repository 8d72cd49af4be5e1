"""Programs in the sandbox: what they share, what they may call and pass, what limits and interrupts them."""

import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support import TESTS
from support.processes import children, is_running

from legal_rag.base.deadline import DeadlineError, within
from legal_rag.deep_read import Limits, Sandbox

SHORT = Limits(seconds=0.5, memory_mb=32, output_chars=1000, calls=50)
DEAF = "x = y = [1]\nfor _ in range(60): x, y = [x, x], [y, y]\nx == y"  # compares for ever, deaf to the clock
KINDS = """
from collections import Counter, deque, namedtuple
from dataclasses import dataclass
from datetime import date, datetime
Point, loop, deep, shared = namedtuple("Point", "x y"), [], [], 0
@dataclass
class Case:
    name: str
    held: dict
loop.append(loop)
for _ in range(60): deep, shared = [deep], [shared, shared]
"""
ADAPTED = {
    "import operator\nprint(sorted([(2, 1), (1, 2)], key=operator.itemgetter(1)))": "[(2, 1), (1, 2)]",
    "from operator import (\n    itemgetter,\n    add as plus,\n)  # fin\nprint(itemgetter(0, 1)('ab'))": "('a', 'b')",
    "import re, heapq as h, json; print('é', h.nlargest(1, [1, 3]), json.dumps(['a']))": 'é [3] ["a"]',
    "from heapq import (nlargest,\n nsmallest as least); print(least(2, ['ccc', 'a', 'bb'], key=len))": "['a', 'bb']",
    "def f():\n    import statistics as s, string\n    return s.mean([1, 2, 6]), string.digits\nprint(f()[0])": "3",
    "if 1: from statistics import median, stdev\nprint(median([3, 1, 2, 9]), round(stdev([1, 2, 4]), 3))": "2.5 1.528",
    "import statistics\nprint(statistics.quantiles([1, 5, 9, 2]), statistics.mode('aab'))": "[1.25, 3.5, 8.0] a",
    "from functools import reduce\nimport operator\nprint(reduce(operator.or_, [{1}, {2}]))": "{1, 2}",
    "import heapq\nh = [3, 1]\nheapq.heapify(h); heapq.heappush(h, 0); print(heapq.heappop(h), h[0])": "0 1",
    "x = '''\nimport heapq\n'''\nprint(x.strip())": "import heapq",
    "c = {'a': 1, 'b': 2}\nprint(max(c, key=c.get), sorted(['b', 'A'], key=str.lower))": "b ['A', 'b']",
    "print(list(map('é-{}'.format, [1])), next((x for x in [1, 2] if x), 0), next(x for x in [3]))": "['é-1'] 1 3",
}


class Desk:
    """A sandbox with a function `do`, which keeps what it is called with, and returns or raises `answer`."""

    def __init__(self):
        self.sandbox = Sandbox({"do": self.do}, values={"ids": ["a", "b"]})

    def do(self, *arguments, **named):
        self.called.append((*arguments, *named.items()))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def run(self, code, answer=None):
        self.called, self.answer = [], answer
        return self.sandbox.run(code)


@pytest.fixture(scope="module")
def desk():
    made = Desk()
    with made.sandbox:
        yield made


def test_a_program_finds_its_values_prints_and_leaves_its_variables_to_the_next(desk):
    assert desk.run("def more(n): return n + len(ids)\nimport re\nx = 1\nx") == ("ok", "", None)
    assert desk.run("x += more(1)\nprint(x, re.sub('a', 'b', 'aa'))") == ("ok", "4 bb\n", None)
    desk.sandbox.close()
    assert desk.run("print(ids, 'x' in locals())").output == "['a', 'b'] False\n"


@pytest.mark.parametrize(
    ("written", "arrived"),
    [
        ("1, 2.5, None, year=True", (1, 2.5, None, ("year", True))),
        ("{'b', 'a'}, (1, ('c',)), [{}]", (["a", "b"], [1, ["c"]], [{}])),
        ("{1993: {2}, (1, 2): 3, None: 4}", ({"1993": [2], "[1, 2]": 3, "None": 4},)),
        ("date(1993, 5, 12), datetime(1993, 5, 12, 8)", ("1993-05-12", "1993-05-12T08:00:00")),
        ("Point(1, 'é'), Counter('aab'), deque([1])", ([1, "é"], {"a": 2, "b": 1}, [1])),
        ("Case('A', {1: [Case('B', {})]})", ({"name": "A", "held": {"1": [{"name": "B", "held": {}}]}},)),
        ("(n for n in ids), map(len, ids), zip([1], [2]), loop", (["a", "b"], [1, 1], [[1, 2]], ["[...]"])),
    ],
)
def test_functions_are_called_with_plain_values(desk, written, arrived):
    assert desk.run(f"{KINDS}do({written})").error is None
    assert desk.called == [arrived]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("'x' * 9_000_000, 'y' * 9_000_000", "ValueError: argument trop long : plus de 16000000 caractères"),
        ("[0] * 500_000", "ValueError: argument trop grand"),
        ("deep", "ValueError: argument trop grand, ou de listes trop imbriquées"),
        ("shared", "ValueError: argument trop grand, ou de listes trop imbriquées"),
        ("1 << 10_000", "ValueError: nombre trop grand"),
        ("[1 << 9_999] * 5_000", "ValueError: argument trop long"),
        ("b'x'", "TypeError: un programme ne peut pas passer ici de bytes"),
        ("namedtuple('P', 'def', rename=True)(1)", "ValueError: Field names cannot start with an underscore"),
        ("{type('A', (), {})(): 1}", "TypeError: unhashable type"),
        ("ValueError('x')", "TypeError: un programme ne peut pas passer ici de ValueError"),
        ("{'a': 1}.keys()", "TypeError: écrivez list(…) autour de .keys()"),
        ("[range(3)]", "TypeError: écrivez list(…) autour de .keys()"),
    ],
)
def test_what_is_not_plain_or_too_large_is_refused_before_a_function_is_called(desk, written, says):
    assert says in desk.run(f"{KINDS}do({written})").error
    assert not desk.called


def test_values_of_functions_arrive_as_they_are(desk):
    value = {1993: ["a", ("b", None)], None: {True: -0.5}, (1, 2): {"é"}}
    assert desk.run("print(do())", value).output == f"{value}\n"


@pytest.mark.parametrize("kind", [ValueError, LookupError, KeyError, TypeError])
def test_an_error_of_a_function_is_raised_in_the_program(desk, kind):
    assert desk.run(f"try: do()\nexcept {kind.__name__}: print('pris')", kind("un refus")).output == "pris\n"
    result = desk.run("x = 1\ndo()", kind("un refus"))
    assert (result.status, result.error.splitlines()[-1]) == ("error", f"{kind.__name__}: un refus")
    assert str(Path(__file__).parent) not in result.error
    assert desk.run("print(x)").output == "1\n"


@pytest.mark.parametrize("kind", [RuntimeError, OSError, KeyboardInterrupt])
def test_any_other_error_of_a_function_ends_the_program_and_comes_out(desk, kind):
    with pytest.raises(kind, match="une panne"):
        desk.run("x = 1\ntry: do()\nexcept BaseException: pass", kind("une panne"))
    assert "NameError" in desk.run("print(x)").error


def test_a_function_that_returns_what_no_program_can_have_stops_it(desk):
    for answer in (object(), [range(3)], "\ud800"):
        result = desk.run("do()", answer)
        assert (result.status, "qu'un programme ne peut pas recevoir (" in result.error) == ("stopped", True)
        assert desk.run("print(1)").output == "1\n"


def test_output_beyond_the_limit_is_counted_not_kept():
    with Sandbox({}, Limits(output_chars=10)) as sandbox:
        assert sandbox.run("print('é' * 6)\nprint('b' * 100)") == ("ok", "éééééé\nbbb\n… [98 caractères de plus]", None)
        assert sandbox.run("print('c')").output == "c\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("while True: pass", "arrêté après 0.5 s de calcul"),
        ("while True:\n try:\n  while True: pass\n except BaseException: pass", "arrêté après 0.5 s de calcul"),
        ("import statistics\nstatistics.quantiles([1, 2], n=10**9)", "arrêté après 0.5 s de calcul"),
        ("x = []\nwhile True: x.append('x' * 10**6)", "la mémoire est épuisée (32 Mo)"),
        ("do('x' * 10**8)", "la mémoire est épuisée (32 Mo)"),
        (DEAF, "arrêté après 0.5 s de calcul"),
        ("while True: do(1)", "plus de 50 appels de fonctions"),
    ],
)
def test_a_limit_stops_a_program_in_a_line_and_the_next_one_works(code, says):
    with Sandbox({"do": lambda value: None}, SHORT) as sandbox:
        sandbox.run("kept = 1")
        result = sandbox.run(f"print('vu')\n{code}")
        assert result == ("stopped", result.output, f"{says} ; ses variables sont perdues")
        assert "vu" in result.output or code is DEAF  # which is killed a little later
        assert "name 'kept' is not defined" in sandbox.run("print(kept)").error


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_limits_must_be_above_nothing_and_finite(value):
    with pytest.raises(ValueError, match=f"a sandbox's calls must be above 0 and finite, got {value}"):
        Limits(calls=value)


def test_the_clock_stands_still_while_a_function_runs():
    with Sandbox({"ask": lambda: threading.Event().wait(0.7)}, SHORT) as sandbox:
        assert sandbox.run("print(ask())").output == "False\n"


@pytest.mark.parametrize("code", ["while True: pass", DEAF, "while True: wait()"])
def test_a_deadline_interrupts_a_program_and_leaves_nothing(code):
    before, threads = children(), threading.active_count()
    with Sandbox({"wait": lambda: threading.Event().wait(0.1)}, Limits(seconds=3600)) as sandbox:
        with pytest.raises(DeadlineError, match="^$"), within(0.1):
            sandbox.run(code)
        assert sandbox.run("print(1)").output == "1\n"
    _wait_until(lambda: children() <= before and threading.active_count() <= threads)


def test_an_interruption_is_served_while_a_program_computes():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, maybe, where the tests were started
    interruption = threading.Timer(0.1, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    with Sandbox({"begin": interruption.start}, Limits(seconds=3600)) as sandbox:
        with pytest.raises(KeyboardInterrupt, match="^$"):
            sandbox.run("begin()\nwhile True: pass")
        assert sandbox.run("print(1)").output == "1\n"
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("def f():\n    yield 1", "construisez une liste"),
        ("sorted([1], key=do)", "calculez d'abord ses valeurs par une compréhension"),
        ("import re\nre.sub('a', lambda found: 'b', 'a')", "parcourez re.finditer"),
        ("import numpy", "il y a re, json, math, statistics"),
        ("open('/etc/passwd')", "un programme n'a pas de fichiers"),
        ("#" * 50_001, "programme trop long : 50001 caractères, au plus 50000"),
    ],
)
def test_what_the_interpreter_lacks_comes_with_advice(desk, code, advice):
    result = desk.run(code)
    assert (result.status, desk.called) == ("error", [])
    assert advice in result.error.splitlines()[-1]


@pytest.mark.parametrize("code", ADAPTED)
def test_what_monty_lacks_is_written_in_what_it_has_and_lines_stay_where_they_are(desk, code):
    result = desk.run(f"{code}\n1 / 0")
    assert result.output == f"{ADAPTED[code]}\n"
    assert f"line {code.count(chr(10)) + 2}, in <module>" in result.error


def test_a_program_run_again_draws_alike_and_does_not_sleep():
    outputs = set()
    for _ in range(3):
        with Sandbox({}) as sandbox:
            outputs.add(
                sandbox.run("import random, time\ntime.sleep(60)\nprint(random.random(), {'a', 'b', 'c'})").output
            )
    assert len(outputs) == 1


def test_a_long_error_keeps_its_beginning_and_its_end(desk):
    error = desk.run("def a(): b()\ndef b(): a()\na()").error
    assert error.partition("… [")[0].startswith("Traceback (most recent call last)")
    assert error.endswith("RecursionError: maximum recursion depth exceeded")


@pytest.mark.skipif(sys.platform != "linux", reason="the second wall is of Linux")
def test_a_worker_holds_nothing_that_it_could_use():
    before = children()
    with Sandbox({}) as sandbox:
        sandbox.run("x = 1")
        (worker,) = children() - before
        for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
            assert resource.prlimit(worker, limit) == (0, 0)
        assert Path(f"/proc/{worker}/environ").read_bytes() == b""
    _wait_until(lambda: worker not in children())


def test_sessions_in_threads_and_within_one_another_do_not_meet():
    outputs = {}

    def deeper(n):
        with Sandbox({"deeper": deeper}) as sandbox:
            return sandbox.run(f"x = {n}\nprint(x, deeper(x - 1) if x else 'fond')").output.strip()

    threads = [threading.Thread(target=lambda n=n: outputs.update({n: deeper(n)})) for n in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert outputs == {n: " ".join([*map(str, range(n, -1, -1)), "fond"]) for n in range(8)}


def test_workers_end_with_a_process_that_is_killed():
    code = (
        "from legal_rag.deep_read.sandbox import Limits, Sandbox\nfrom support.processes import children\n"
        "Sandbox({'told': lambda: print(*children(), flush=True)}, Limits(seconds=1)).run('told()\\nwhile True: pass')"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=TESTS) as parent:
        workers = parent.stdout.readline().split()
        parent.kill()
    assert workers
    _wait_until(lambda: not any(map(is_running, workers)))


def _wait_until(is_so):
    while not is_so():  # if it never is, the test's own time ends it
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("programs", "printed"),
    [
        (["count = count('abc')\nprint(count, count('ab'))", "print(f'{count}', count('a'))"], ["3 2\n", "3 1\n"]),
        (["for count in [7]: pass\nprint(count)"], ["7\n"]),
        (["def count(text):\n    return 0\nprint(count('ab'))", "print(count('ab'))"], ["2\n", "2\n"]),
        (["count = lambda x: 'mine'", "print(count('ab'))"], ["", "2\n"]),
        (["print([count(count) for count in ('a', 'bc')])"], ["[1, 2]\n"]),
        (["total = 3\nprint(dict(count=total))"], ["{'count': 3}\n"]),
    ],
)
def test_a_variable_does_not_take_the_place_of_the_function_with_its_name(programs, printed):
    with Sandbox({"count": len}) as sandbox:
        assert [sandbox.run(program).output for program in programs] == printed


def test_a_value_is_what_it_was_once_it_is_restored():
    with Sandbox({}, values={"context": "texte"}) as sandbox:
        sandbox.run("context = 'autre'")
        sandbox.restore("context")
        assert sandbox.run("print(context)").output == "texte\n"
