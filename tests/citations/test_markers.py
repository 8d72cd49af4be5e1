"""Markers in all the ways models write them, and what they point to."""

import pytest

from legal_rag.citations import format_marker
from legal_rag.citations.markers import MarkedReference, take_out_markers

KNOWN = {"A", "B", "2001-2589", "n° 2001-2589 AN, 12/07", "a[b]", "x; y"}


def read(text):
    return take_out_markers(text, lambda name: name if name in KNOWN else None)


@pytest.mark.parametrize(
    ("marker", "references"),
    [
        ("[Source: A, chars 0-41; B, chars 3-5]", [("A", (0, 41)), ("B", (3, 5))]),
        ("[Source: A, chars 0-41; Source: B, chars 3-5]", [("A", (0, 41)), ("B", (3, 5))]),
        ("[Sources : A, car. 0–41 et B, car. 3–5]", [("A", (0, 41)), ("B", (3, 5))]),
        ("[Source: A, chars 0-41, 50-60]", [("A", (0, 41)), ("A", (50, 60))]),
        ("[Source: A, chars 0-41 et 50-60]", [("A", (0, 41)), ("A", (50, 60))]),
        ("[Source: A, chars 0-41; 50-60]", [("A", (0, 41)), ("A", (50, 60))]),
        ("[Source: A chars 0 à 41]", [("A", (0, 41))]),
        ("[Source: A, 0-41]", [("A", (0, 41))]),
        ("[Source: A (chars 0-41)]", [("A", (0, 41))]),
        ("[Source: A, chars [0-41]]", [("A", (0, 41))]),
        ("[Source: A, chars=0-41]", [("A", (0, 41))]),
        ("[Source: A]", [("A", None)]),
        ("[Source non vérifiée: A, chars 0-41]", [("A", (0, 41))]),
        ("[Source non vérifiée: A]", [("A", None)]),
        ("[Source: 2001-2589]", [("2001-2589", None)]),
        ("[Source: 2001-2589, chars 3-9]", [("2001-2589", (3, 9))]),
        ("[Source: n° 2001-2589 AN, 12/07, chars 3-9]", [("n° 2001-2589 AN, 12/07", (3, 9))]),
        ("[Source: a[b], chars 3-9]", [("a[b]", (3, 9))]),
        ("[Source: x; y, chars 3-9]", [("x; y", (3, 9))]),
        ("(Source : A, chars 3-9)", [("A", (3, 9))]),
        ("【Source: A, chars 3-9】", [("A", (3, 9))]),
        ("[A, chars 3-9]", [("A", (3, 9))]),
    ],
)
def test_every_spelling_is_read(marker, references):
    marked = read(f"Oui {marker}.")
    assert marked.plain == "Oui ."
    assert [(one.offset, one.references) for one in marked.markers] == [
        (4, [MarkedReference(*reference) for reference in references])
    ]
    assert marked.removed == []


@pytest.mark.parametrize(
    "text", ["[1]", "[Analyse] Oui", "[sic]", "a[b] c", "[Sourcehut]", "[C, chars 3-9]", "(A)", "[A]"]
)
def test_other_brackets_are_text(text):
    assert read(text) == (text, [], [], [])


def test_of_several_references_the_unknown_ones_are_told_and_a_passage_that_does_not_hold_is_said_in_its_marker():
    marked = read("Oui [Source: A, chars 0-4; FAUX, chars 5-9].")
    assert [one.references for one in marked.markers] == [[MarkedReference("A", (0, 4))]]
    assert marked.removed == ["[Source: FAUX, chars 5-9]"]
    assert format_marker("A", 3, 9) == "[Source: A, chars 3-9]"
    assert format_marker("A", 3, 9, verified=False) == "[Source non vérifiée: A, chars 3-9]"
    assert format_marker("A", 0, 0, verified=False) == "[Source non vérifiée: A]"
