"""Some examples of every door; `make fuzz` tries more of them for as long as is asked."""

import pytest

from attacks.fuzz import doors, fuzzed


@pytest.mark.slow
def test_no_door_lets_through_what_it_does_not_document(tiny_library):
    found = [fuzzed(name, door, number=14, examples=8) for name, door in doors(tiny_library.path).items()]
    assert not any(found), "\n".join(filter(None, found))


def test_a_door_that_lets_an_error_through_or_takes_long_is_found(tiny_library):
    from dataclasses import replace

    door = doors(tiny_library.path)["chunk id"]
    broken = replace(door, take=lambda text: 1 / 0)
    assert "ZeroDivisionError" in fuzzed("broken", broken, number=1, examples=3)
    assert "0.0 s" in fuzzed("slow", replace(door, seconds=0.0), number=1, examples=3)
