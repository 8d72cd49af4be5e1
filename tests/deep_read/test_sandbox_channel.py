"""The channel between the sandbox and its child: what passes unchanged, and what is refused before it does harm."""

import contextlib
import json
import os
import re
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sandbox_attacks as attacks

from legal_rag.deadline import DeadlineError, within
from legal_rag.deep_read.sandbox.channel import Channel, ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox.child import wire

WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
UNHALVED = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(UNHALVED, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.none() | st.booleans() | WHOLE | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.text().map(lambda text: (text + "é") * 600)
    ),
    max_leaves=12,
)


def _framed(parts: tuple[int, int, bytes]) -> bytes:
    kind, n_name, body = parts
    return attacks.frame(kind, body, b"echoechoecho"[:n_name])


class Ends:
    """A channel, and the other end of its socket, where a test plays the child."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.ours, self.channel = ours, Channel(ours, {"echo": 2_000_000, "ask": 16_000_000})

    def receive(self, wall_s: float = 5.0):
        clock = Clock(wall_s, 5.0, lambda: 0.0)
        clock.go()
        return self.channel.receive(clock)


@pytest.fixture
def ends():
    made = Ends()
    yield made
    made.ours.close()
    made.theirs.close()


WELL_MADE = ("says again that it is ready", "prints nothing", "prints more than may be printed")


@pytest.mark.parametrize("name", attacks.FORGERIES)
def test_a_forged_message_is_refused_for_what_is_wrong_with_it(name, ends):
    message, says = attacks.FORGERIES[name]
    threading.Thread(target=ends.theirs.sendall, args=(message,), daemon=True).start()
    if name in WELL_MADE:  # whoever runs the program knows what is wrong with them
        assert ends.receive()[0] in ("printed", "ready")
    else:
        with pytest.raises(ForgedMessageError, match=re.escape(says)):
            ends.receive()


@pytest.mark.parametrize(
    ("kind", "name", "most"),
    [
        (attacks.READY, b"", 64_000),
        (attacks.PRINTED, b"", 64_000),
        (attacks.CALL, b"echo", 2_000_000),
        (attacks.CALL, b"ask", 16_000_000),
        (attacks.DONE, b"", 64_000),
    ],
)
def test_a_message_that_is_too_long_is_refused_before_it_is_read(kind, name, most, ends):
    ends.theirs.sendall(attacks.frame(kind, b"", name, length=most))
    with pytest.raises(OutOfTimeError):
        ends.receive(wall_s=0.02)
    for length in (most + 1, 2**31, 2**32 - 1):
        ends = Ends()
        ends.theirs.sendall(attacks.frame(kind, b"", name, length=length))
        with pytest.raises(ForgedMessageError, match=f"de {length:,} octets"):
            ends.receive()


HOSTILE = {
    "a text full of escapes": b'["' + rb"\n" * 5_000_000 + b'"]',
    "quotes": b'["' + rb"\"" * 7_900_000 + b'"]',
    "ends of lists": b"]" * 16_000_000,
    "lists in lists": b"[" * 8_000_000 + b"]" * 8_000_000,
    "lists in lists, few enough": b"[" * 199_000 + b"]" * 199_000,
    "empty dicts": b"[" + b"{}," * 99_000 + b"{}]",
    "dicts of one": b"[" + b'{"":0},' * 66_000 + b"{}]",
    "digits": b"1" * 16_000_000,
    "numbers": b"[" + b"1e300," * 199_000 + b"0]",
    "spaces": b" " * 16_000_000,
    "one wide character": ('["' + "x" * 15_999_000 + '😀"]').encode(),
    "backslashes": b"\\" * 16_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_checking_and_decoding_the_longest_message_takes_little_time_and_memory(name):
    before = int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    started = time.process_time()
    _checked(HOSTILE[name])
    assert time.process_time() - started < 1.5
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    assert (peak - before) * 1024 < 250_000_000


@pytest.mark.parametrize("sent", [b"", b"\1", b"\1\0\0\0\0\x20", b"\1\0\0\0\0\x20{}", b"\2\4\0\0\0\2ech"])
def test_half_a_message_is_waited_for_no_longer_than_the_clock_says(sent, ends):
    ends.theirs.sendall(sent)
    with pytest.raises(OutOfTimeError, match="plus de 0.05 s"):
        ends.receive(wall_s=0.05)


@pytest.mark.parametrize("sent", [b"", b"\1", b"\1\0\0\0\0\x20", b"\1\0\0\0\0\x20{}", b"\2\4\0\0\0\2ech"])
def test_a_child_that_is_gone_is_noticed(sent, ends):
    ends.theirs.sendall(sent)
    ends.theirs.close()
    with pytest.raises(ChildGoneError):
        ends.receive()


def test_a_child_that_does_not_read_is_given_up(ends):
    clock = Clock(0.05, 5.0, lambda: 0.0)
    clock.go()
    with pytest.raises(OutOfTimeError, match="plus de 0.05 s"):
        ends.channel.send(clock, wire.message({"value": "x" * 5_000_000}))


def test_a_message_that_comes_byte_by_byte_arrives(ends):
    data = wire.frame("call", wire.body({"arguments": ["été"], "named": {}}, 99), "echo")
    for n in range(len(data)):
        ends.theirs.sendall(data[n : n + 1])
    assert ends.receive() == ("call", {"name": "echo", "arguments": ["été"], "named": {}})


def test_messages_that_come_at_once_are_told_apart(ends):
    ends.theirs.sendall(b"".join(wire.frame("printed", text) for text in (b"a", b"", b"b\n")))
    assert [ends.receive()[1]["text"] for _ in range(3)] == ["a", "", "b\n"]


def test_messages_that_are_there_already_are_not_read_beyond_the_clock(ends):
    ends.theirs.sendall(wire.frame("printed", b"a") * 100)
    assert ends.receive() == ("printed", {"text": "a"})
    with pytest.raises(OutOfTimeError, match="plus de 0 s"):
        ends.receive(wall_s=0)


def test_messages_are_waited_for_no_longer_than_the_work_around_them_has_time(ends):
    with within(0.05), pytest.raises(DeadlineError):
        ends.receive()


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_any_plain_value_arrives_in_the_child_as_it_was(value):
    expected = repr(value).encode("utf-8", "replace")
    assert repr(wire.read(wire.message({"value": value})[4:])["value"]).encode("utf-8", "replace") == expected


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_any_json_value_arrives_in_the_parent_as_it_was(value):
    arrived = wire.checked(wire.body({"value": value}, 10**6))["value"]
    assert repr(arrived).encode("utf-8", "replace") == repr(value).encode("utf-8", "replace")


@pytest.mark.parametrize(
    ("value", "arrived"),
    [
        ((1, ("a",)), [1, ["a"]]),
        ({"b", "a"}, ["a", "b"]),
        ({1993: 1, -2: {0: 0}}, {"1993": 1, "-2": {"0": 0}}),
        ({"a": 1}.keys(), ["a"]),
        (range(3), [0, 1, 2]),
        (0.00012345678901234567, 0.00012345678901234567),
        (-1.7976931348623157e308, -1.7976931348623157e308),
        (-(2**63) + 1, -(2**63) + 1),
    ],
)
def test_what_is_no_json_arrives_in_the_parent_as_the_nearest_that_is(value, arrived):
    assert wire.checked(wire.body({"value": value}, 10**6))["value"] == arrived


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({(1, 2): 3}, "une clé de type tuple ; les clés d'un dictionnaire sont des textes ou des entiers"),
        ({True: 1}, "une clé de type bool"),
        ({None: 1}, "une clé de type NoneType"),
        ({1.5: 1}, "une clé de type float"),
        ({1: "a", "1": "b"}, "deux clés d'un dictionnaire donnent le même texte : '1'"),
        ({2**64: 1}, "un nombre entier de plus de 64 bits"),
        ([0] * 200_001, "plus de 200,000 éléments"),
        ("x" * 10**6, "1,000,012 octets, au plus 1,000,000 sont admis"),
    ],
)
def test_what_the_parent_would_refuse_is_refused_by_the_child(value, told):
    with pytest.raises(wire.WireError, match=re.escape(told)):
        wire.body({"value": value}, 10**6)


def _checked(data: bytes) -> dict | wire.WireError:
    """Return a message's content, or why it is refused; any other error comes out."""
    try:
        return wire.checked(data)
    except wire.WireError as error:
        return error


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(data):
    assert isinstance(_checked(data), dict | wire.WireError)


@settings(max_examples=150, deadline=None)
@given(JSON, st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_message_with_one_byte_changed_is_refused_or_is_another_message(value, place, byte):
    data = bytearray(wire.body({"value": value}, 10**6))
    data[place % len(data)] = byte
    assert isinstance(_checked(bytes(data)), dict | wire.WireError)


TOKENS = st.sampled_from(
    [bytes((one,)) for one in b'[]{},:"0159-+.eE\\/ tfn\n\xff\xc3']
    + [b"\\u", b"d800", b"true", b"null", b"NaN", b'"arguments":', b"1" * 40, "é".encode()]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(TOKENS, max_size=60).map(b"".join))
def test_no_pieces_of_json_do_more_than_be_refused(data):
    content = _checked(data)
    assert isinstance(content, wire.WireError) or content == json.loads(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40) | st.tuples(st.integers(0, 5), st.integers(0, 9), st.binary(max_size=40)).map(_framed))
def test_no_bytes_on_the_channel_do_more_than_be_refused(data):
    ends = Ends()
    ends.theirs.sendall(data)
    ends.theirs.close()
    with ends.ours, contextlib.suppress(ForgedMessageError, ChildGoneError):
        while True:
            assert ends.receive()[0] in wire.KINDS


def test_a_dict_gives_its_attributes_to_the_child():
    found = wire.AttributedDict({"a": 1})
    found.complete, found.items = False, "hidden"
    assert vars(wire.read(wire.message({"value": found})[4:])["value"]) == {"complete": False, "items": "hidden"}


def test_texts_put_aside_are_there_once_and_in_order():
    value = {"b": "é" * 2_000, "a": ["x" * 3_000, ("y" * 1_500,)], 3: "z" * 999}
    assert wire.read(wire.message({"value": value})[4:]) == {"value": value}


@pytest.mark.parametrize(
    ("value", "told"),
    [(object(), "type object"), ({"a": {1, "b"}, "c": b""}, "type bytes"), (float("-inf"), "-inf n'est pas")],
)
def test_what_is_not_plain_goes_into_no_message(value, told):
    with pytest.raises(wire.WireError, match=told):
        wire.message({"value": value})


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_values_go_as_deep_as_the_other_side_takes_them_and_no_deeper(wrap):
    value = 1
    for _ in range(wire.DEEPEST - 1):
        value = wrap(value)
    assert wire.checked(wire.body({"value": value}, 1_000)) == {"value": value}
    assert wire.read(wire.message({"value": wrap(value)})[4:]) == {"value": wrap(value)}
    with pytest.raises(wire.WireError, match="plus de 64 niveaux"):
        wire.body({"value": wrap(value)}, 1_000)
    with pytest.raises(wire.WireError, match="plus de 64 niveaux"):
        wire.message({"value": wrap(wrap(value))})


def test_a_clock_counts_only_while_it_goes(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("legal_rag.deep_read.sandbox.channel.time.monotonic", lambda: now[0])
    clock = Clock(10.0, 50.0, lambda: 0.0)
    now[0] += 1_000
    assert clock.left() == 10.0
    clock.go()
    now[0] += 4
    assert clock.left() == 6.0
    clock.stop()
    now[0] += 1_000
    assert clock.left() == 6.0
    clock.go()
    now[0] += 6
    with pytest.raises(OutOfTimeError, match="plus de 10 s"):
        clock.left()


def test_a_clock_counts_what_a_child_computes_from_when_it_was_set():
    computed = [7.0]
    clock = Clock(10.0, 2.0, lambda: computed[0])
    assert clock.left() == 2.0
    computed[0] = 8.5
    assert clock.left() == 0.5
    computed[0] = 9.0
    with pytest.raises(OutOfTimeError, match="plus de 2 s de calcul"):
        clock.left()


def test_what_else_asks_is_answered_while_a_message_is_waited_for(ends):
    reading, writing = os.pipe()
    asked = []

    def answer() -> None:
        asked.append(os.read(reading, 1))
        ends.theirs.sendall(wire.frame("printed", b"a"))

    ends.channel.listen(reading, answer)
    os.write(writing, b"?")
    assert ends.receive() == ("printed", {"text": "a"})
    assert asked == [b"?"]
    os.close(reading)
    os.close(writing)


def test_a_child_whose_filter_is_gone_is_gone(ends):
    reading, writing = os.pipe()
    ends.channel.listen(reading, lambda: None)
    os.close(writing)
    with pytest.raises(ChildGoneError):
        ends.receive()
    os.close(reading)
