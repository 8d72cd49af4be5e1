"""The channel between the sandbox and its child: what passes unchanged, and what is refused before it does harm."""

import os
import re
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sandbox_attacks as attacks

from legal_rag.deep_read.sandbox.channel import Channel, ChildGoneError, Clock, ForgedMessageError, OutOfTimeError
from legal_rag.deep_read.sandbox.child import wire

WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
SCALARS = st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False, allow_infinity=False) | st.text()
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


class Ends:
    """A channel, and the other end of its socket, where a test plays the child."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.ours, self.channel = ours, Channel(ours)

    def send(self, payload: bytes) -> None:
        """Send a message as a forging child does, whatever is in it."""
        body = len(payload).to_bytes(4, "big") + payload
        self.theirs.sendall(len(body).to_bytes(4, "big") + body)

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


# These are well made: whoever runs the program knows that nothing such was given, or is due.
REFUSED_LATER = ("eval", "__class__", "echo.__globals__", "ready")


@pytest.mark.parametrize("name", attacks.FORGERIES)
def test_a_forged_message_is_refused_for_what_is_wrong_with_it(name, ends):
    message, says = attacks.FORGERIES[name]
    ends.send(message)
    if any(f'"{one}"'.encode() in message for one in REFUSED_LATER) and "genre inconnu" not in says:
        assert ends.receive()[0] in ("call", "ready")
    else:
        with pytest.raises(ForgedMessageError, match=re.escape(says)):
            ends.receive()


@pytest.mark.parametrize("length", [16_000_001, 2**31, 2**32 - 1])
def test_a_message_that_is_too_long_is_refused_before_it_is_read(length, ends):
    ends.theirs.sendall(length.to_bytes(4, "big"))
    with pytest.raises(ForgedMessageError, match=f"un message de {length:,} octets"):
        ends.receive()


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_message_without_room_for_its_own_head_is_refused(length, ends):
    ends.theirs.sendall(length.to_bytes(4, "big") + b"\0" * length)
    with pytest.raises(ForgedMessageError, match="plus court qu'il ne dit|ce n'est pas du JSON"):
        ends.receive()


def test_more_items_than_any_program_needs_are_refused_before_they_are_made(ends):
    threading.Thread(target=ends.send, args=(b"[" + b"[]," * 600_000 + b"0]",), daemon=True).start()
    with pytest.raises(ForgedMessageError, match="plus de 1,000,000 éléments"):
        ends.receive()


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x20", b"\0\0\0\x20\0\0\0\x02{}"])
def test_half_a_message_is_waited_for_no_longer_than_the_clock_says(sent, ends):
    ends.theirs.sendall(sent)
    with pytest.raises(OutOfTimeError, match="plus de 0.05 s"):
        ends.receive(wall_s=0.05)


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x20\0\0\0\x02{}"])
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
    data = wire.message_back({"kind": "printed", "text": "été"})
    for n in range(len(data)):
        ends.theirs.sendall(data[n : n + 1])
    assert ends.receive() == ("printed", {"text": "été"})


def test_messages_that_come_at_once_are_told_apart(ends):
    ends.theirs.sendall(b"".join(wire.message_back({"kind": "printed", "text": text}) for text in ("a", "", "b\n")))
    assert [ends.receive()[1]["text"] for _ in range(3)] == ["a", "", "b\n"]


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_any_plain_value_arrives_as_it_was(value):
    text_only = {"value": value}
    expected = repr(value).encode("utf-8", "replace")
    assert repr(wire.read(wire.message(text_only)[4:])["value"]).encode("utf-8", "replace") == expected
    assert repr(wire.checked(wire.message_back(text_only)[4:])["value"]).encode("utf-8", "replace") == expected


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
@given(VALUES, st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_message_with_one_byte_changed_is_refused_or_is_another_message(value, place, byte):
    data = bytearray(wire.message_back({"kind": "call", "value": value})[4:])
    data[place % len(data)] = byte
    assert isinstance(_checked(bytes(data)), dict | wire.WireError)


def test_a_dict_gives_its_attributes_to_the_child_and_takes_none_from_it():
    found = wire.AttributedDict({"a": 1})
    found.complete, found.items = False, "hidden"
    sent = wire.message({"value": found})
    assert vars(wire.read(sent[4:])["value"]) == {"complete": False, "items": "hidden"}
    back = wire.checked(sent[4:])["value"]
    assert (type(back), back) == (dict, {"a": 1})


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


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}, lambda value: (value,)])
def test_values_go_as_deep_as_the_other_side_takes_them_and_no_deeper(wrap):
    value = 1
    for _ in range(wire.DEEPEST):
        value = wrap(value)
    assert wire.checked(wire.message_back({"value": value})[4:]) == {"value": value}
    with pytest.raises(wire.WireError, match="plus de 64 niveaux"):
        wire.message({"value": wrap(value)})


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
        ends.theirs.sendall(wire.message_back({"kind": "printed", "text": "a"}))

    ends.channel.listen(reading, answer)
    os.write(writing, b"?")
    assert ends.receive() == ("printed", {"text": "a"})
    assert asked == [b"?"]
    os.close(reading)
    os.close(writing)
