"""Functions and values in the sandbox: what passes to them and back, and what their errors become."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from legal_rag.deep_read import Sandbox, SandboxResult
from legal_rag.deep_read.sandbox.child.wire import AttributedDict
from legal_rag.deep_read.sandbox.sandbox import walls

pytestmark = pytest.mark.skipif(bool(walls().missing), reason=f"walls are missing here: {walls().missing}")


class Desk:
    """One sandbox for all tests, in which `do` is whatever function a test brings."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def run(self, code: str, do: Callable[..., Any]) -> SandboxResult:
        self.do = do
        return self.sandbox.run(code)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with Sandbox({"do": lambda *given, **named: made.do(*given, **named)}) as sandbox:
        made = Desk(sandbox)
        yield made


def test_functions_are_called_by_position_and_by_name_and_give_their_values_back(desk):
    def describe(name, *rest, year=1900, **more):
        return {"name": name, "rest": rest, "year": year, "more": more}

    result = desk.run("print(do('Élan', 1, 2.5, None, year=1993, deep={'a': [True]}))", describe)
    assert result.output == "{'name': 'Élan', 'rest': (1, 2.5, None), 'year': 1993, 'more': {'deep': {'a': [True]}}}\n"


def test_values_keep_tuples_and_keys_that_are_no_strings(desk):
    value = {1993: ["a", ("b", None)], None: {True: -0.5}, "\0tuple": [1]}
    with Sandbox({"get": lambda: value}, values={"value": value, "pairs": {(1, 2): 3}}) as sandbox:
        assert sandbox.run("print(value, get() == value, pairs)").output == f"{value} True {{(1, 2): 3}}\n"


def test_arguments_become_json_with_texts_as_keys(desk):
    seen = []
    code = "do((1, ('a',)), {1993: {'x'}}, key={-1: range(2)})"
    assert desk.run(code, lambda *given, **named: seen.append((given, named))).error is None
    assert seen == [(([1, ["a"]], {"1993": ["x"]}), {"key": {"-1": [0, 1]}})]


def test_a_set_arrives_as_a_sorted_list(desk):
    seen = []
    assert desk.run("do({'b', 'a'})\ndo({'x': 1}.keys())\ndo(range(2))", seen.append).status == "ok"
    assert seen == [["a", "b"], ["x"], [0, 1]]


def test_a_dict_that_carries_attributes_carries_them_into_the_program(desk):
    def grep():
        found = AttributedDict({"J1": [{"start": 1}]})
        found.scanned, found.complete = 12, False
        return found

    assert desk.run("g = do()\nprint(g, g.scanned, g.complete)", grep).output == "{'J1': [{'start': 1}]} 12 False\n"


def test_a_function_s_documentation_can_be_read():
    def count(what):
        """Count *what*.

        Slowly.
        """

    with Sandbox({"count": count}) as sandbox:
        assert sandbox.run("print(count.__name__, count.__doc__)").output == "count Count *what*.\n\nSlowly.\n"


class NoIndexError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KeyError("JURITEXT1"), "KeyError: 'JURITEXT1'"),
        (ValueError("pas un identifiant"), "ValueError: pas un identifiant"),
        (FileNotFoundError(2, "absent"), "FileNotFoundError: [Errno 2] absent"),
        (NoIndexError("pas d'index : lancez « corpus-index »"), "RuntimeError: pas d'index : lancez « corpus-index »"),
        (json.JSONDecodeError("mal", "doc", 0), "RuntimeError: mal: line 1 column 1 (char 0)"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "mal"), "RuntimeError: 'utf-8' codec can't decode byte 0xff"),
        (ValueError("x" * 50_000), "x" * 1_000),
        (OverflowError(10**5000), "OverflowError"),
        (ValueError(float("nan"), object), "ValueError: (nan, <class 'object'>)"),
        (StopIteration(3), "StopIteration: 3"),
    ],
)
def test_what_a_function_raises_is_raised_in_the_program(raised, told, desk):
    def fail():
        raise raised

    result = desk.run("do()", fail)
    assert result.status == "error"
    assert told in result.error
    assert desk.run("try:\n    do()\nexcept Exception as e:\n    print('pris')", fail).output == "pris\n"


def test_wrong_arguments_are_a_type_error_in_the_program(desk):
    assert "TypeError" in desk.run("do()", lambda doc_id: doc_id).error
    assert "unexpected keyword argument 'limit'" in desk.run("do('a', limit=3)", lambda doc_id: doc_id).error


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("object()", "type object n'est pas une valeur JSON"),
        ("b'octets'", "type bytes"),
        ("float('nan')", "nan n'est pas une valeur JSON"),
        ("lambda: 1", "type function"),
        ("10 ** 5000", "un nombre entier de plus de 64 bits"),
        ("{(1, 2): 3}", "une clé de type tuple"),
        ("deep", "plus de 64 niveaux"),
        ("{1: 'a', '1': 'b'}", "deux clés d'un dictionnaire donnent le même texte : '1'"),
        ("'x' * 2_000_000", "2,000,029 octets, au plus 2,000,000 sont admis"),
        ("[0] * 200_001", "plus de 200,000 éléments"),
    ],
)
def test_an_argument_that_is_not_plain_is_refused_before_it_is_sent(argument, told, desk):
    called = []
    result = desk.run(f"deep = []\nfor _ in range(100): deep = [deep]\ndo({argument})", called.append)
    assert result.status == "error"
    assert told in result.error
    assert desk.run("do(1)", called.append).status == "ok"
    assert called == [1]


@pytest.mark.parametrize(
    "returned",
    [object(), b"octets", float("inf"), "x" * 65_000_000, 10**5000],
    ids=["an object", "bytes", "infinity", "too long a text", "too large a number"],
)
def test_a_result_that_is_not_plain_is_an_error_in_the_program(returned, desk):
    assert desk.run("do()", lambda: returned).error.startswith("Traceback (most recent call last):")
    assert desk.run("print(do())", lambda: 1).output == "1\n"


def test_half_a_surrogate_pair_becomes_a_question_mark_on_its_way(desk):
    seen = []
    code = "print('a\\ud800b')\ndo('c\\udfffd')\ndo('\\ud800' * 2000)\ndo({'\\ud800': 1})"
    assert desk.run(code, seen.append).output == "a?b\n"
    assert seen == ["c?d", "?" * 2000, {"?": 1}]


def test_a_program_may_call_thousands_of_times_and_pass_long_texts(desk):
    calls = []

    def length(text):
        calls.append(len(text))
        return text[:3]

    assert desk.run("for n in range(2000): do('x' * n)", length).status == "ok"
    assert desk.run("text = 'é’a' * 300_000\nprint(do(text[:100_000]), do(text))", length).output == "é’a é’a\n"
    assert (len(calls), calls[-2:]) == (2002, [100_000, 900_000])


def test_what_a_program_makes_of_a_function_s_name_is_its_own(desk):
    assert desk.run("kept, do = do, len\nprint(do([1]), kept(2))\ndo = kept", lambda n: n * 10).output == "1 20\n"


def test_a_function_takes_texts_as_long_as_it_was_told_to():
    with Sandbox({"ask": len, "tell": len}, most_bytes={"ask": 5_000_000}) as sandbox:
        assert sandbox.run("print(ask('é' * 2_400_000))").output == "2400000\n"
        assert "ask(…) : 5,000,029 octets, au plus 5,000,000 sont admis" in sandbox.run("ask('x' * 5_000_000)").error
        assert "au plus 2,000,000 sont admis" in sandbox.run("tell('x' * 2_400_000)").error
