"""Grounding: the exact span, whatever a model writes otherwise; or none."""

import unicodedata

import pytest

from legal_rag.extraction.engine import schema_of_classes
from legal_rag.extraction.langextract import Extraction, Grounded, Piece

SCHEMA = schema_of_classes("Relevez.", ["partie", "date", "solution", "dispositif"])


def extraction(text, extraction_class="partie"):
    return Extraction(extraction_class, text, {})


def grounded(text, *extractions, span=None):
    result = Grounded(text, SCHEMA)
    result.add(extractions, Piece(text, *(span or (0, len(text)))))
    return result


@pytest.mark.parametrize(
    ("text", "written", "found"),
    [
        ("devant la cour d’appel de Lyon", "cour d'appel de Lyon", "cour d’appel de Lyon"),
        ("Mme Cœur et M. Æon", "Mme Coeur", "Mme Cœur"),
        ("socie\u0301te\u0301 Lever", "société Lever", "socie\u0301te\u0301 Lever"),
        ("la Cour<br/>de cassation", "Cour de cassation", "Cour<br/>de cassation"),
        ("la Cour <BR>  de cassation", "Cour de cassation", "Cour <BR>  de cassation"),
        ("1\u00a0000\u202ffrancs", "1 000 francs", "1\u00a0000\u202ffrancs"),
        ("SOCIÉTÉ LEVER", "Société Lever", "SOCIÉTÉ LEVER"),
        ("la société\nLever", "société Lever", "société\nLever"),
    ],
)  # fmt: skip
def test_what_is_written_otherwise_is_found_at_its_exact_place(text, written, found):
    (one,) = grounded(text, extraction(written)).entities
    assert one["extraction_text"] == text[one["char_start"] : one["char_end"]] == found
    assert one["alignment"] == "folded"


def test_repeated_text_takes_one_place_after_the_other_and_more_copies_than_places_are_left_out():
    text = "M. Durand, puis M. Durand, enfin M. Durand"
    result = grounded(text, *[extraction("M. Durand")] * 5)
    assert [one["char_start"] for one in result.entities] == [0, 16, 33]
    assert result.ungrounded == 2


def test_of_equal_passages_the_one_behind_the_extraction_before_is_taken():
    text = "M. Durand, le 3 mai, M. Durand, le 5 mai"
    found = grounded(text, extraction("3 mai", "date"), extraction("M. Durand"), extraction("M. Durand")).entities
    assert [one["char_start"] for one in found] == [14, 21, 0]


@pytest.mark.parametrize("written", ["5 ans", "000 francs", "Dur", "ans", "", "   ", "autre chose"])
def test_part_of_a_word_or_number_or_nothing_is_no_place(written):
    result = grounded("15 ans, 1 000 francs, M. Durand, janséniste", extraction(written))
    assert result.entities == [] or written == "ans"
    assert result.ungrounded == 1 or written == "ans"


def test_a_piece_is_not_looked_for_in_another():
    text = "M. Durand. M. Dupond."
    result = grounded(text, extraction("M. Dupond"), span=(0, 10))
    assert (result.entities, result.ungrounded) == ([], 1)


def test_texts_that_differ_in_case_alone_have_each_their_own_place_and_a_copy_the_one_that_is_left():
    text = "M. Dupont contre M. DUPONT"
    found = grounded(text, extraction("M. Dupont"), extraction("M. DUPONT")).entities
    assert [(one["extraction_text"], one["char_start"]) for one in found] == [("M. Dupont", 0), ("M. DUPONT", 17)]
    found = grounded(text, extraction("M. Dupont"), extraction("M. Dupont")).entities
    assert [(one["char_start"], one["alignment"]) for one in found] == [(0, "exact"), (17, "folded")]


def test_one_place_may_be_of_two_classes_but_not_twice_of_one():
    both = [extraction("REJETTE", "solution"), extraction("REJETTE", "dispositif"), extraction("REJETTE", "solution")]
    result = grounded("REJETTE le pourvoi", *both)
    assert [one["extraction_class"] for one in result.entities] == ["solution", "dispositif"]
    assert result.ungrounded == 1


@pytest.mark.parametrize("written", ["arrete", "arrêt", "arr"])
def test_a_letter_is_not_cut_from_its_separate_accent(written):
    assert grounded(unicodedata.normalize("NFD", "un arrêté"), extraction(written)).entities == []
