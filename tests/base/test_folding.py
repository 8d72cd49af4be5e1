"""Folding evens out what faithful copies differ in, and leads back to the very characters of the original."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.base.text import find_folded, fold, fold_text, normalized

TEXT = (
    "La Cour  de\u00a0cassation, d’une part, relève que l’« œuvre\u202f» de M.\nDupont – né en 1950 – "
    "fut dépo\u00adsée."
)


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        ("la cour de cassation", "La Cour  de\u00a0cassation"),
        ("d'une part", "d’une part"),
        ('l\'"oeuvre"', "l’« œuvre\u202f»"),
        ("l'« Œuvre »", "l’« œuvre\u202f»"),
        ("œuvre", "œuvre"),
        ("de M. Dupont - né", "de M.\nDupont – né"),
        ("fut déposée", "fut dépo\u00adsée"),
        (unicodedata.normalize("NFD", "relève"), "relève"),
    ],
)
def test_a_passage_is_found_as_the_original_writes_it(passage, found):
    (span,) = find_folded(passage, TEXT)
    assert TEXT[slice(*span)] == found


@pytest.mark.parametrize("passage", ["releve", "depose", "Dupond", "", " \n", "\u00ad", "de  la"])
def test_what_is_not_there_is_nowhere(passage):
    assert find_folded(passage, TEXT) == []


def test_decomposed_text_is_searched_with_composed_letters_and_every_place_is_found():
    text = unicodedata.normalize("NFD", "L'arrêté préfectoral")
    (span,) = find_folded("ARRÊTÉ", text)
    assert unicodedata.normalize("NFC", text[slice(*span)]) == "arrêté"
    assert find_folded("aa", "aaa") == [(0, 2), (1, 3)]
    assert find_folded("o", "cœur") == [(1, 2)]
    assert find_folded("euvre", "œuvre") == [(0, 5)]


def test_a_span_outside_the_folded_text_is_refused():
    with pytest.raises(ValueError, match="not a span of the folded text: 0-4"):
        fold("abc").original_span(0, 4)
    with pytest.raises(ValueError, match="not a span of the folded text: 1-1"):
        fold("abc").original_span(1, 1)


LETTERS = st.text(st.sampled_from("aàâÉe\u0301œŒ’'«»\" \u00a0\n–-ßİ…\u00adﬁx1."), max_size=40)
COMPOSED = LETTERS.map(lambda text: text.replace("\u0301", ""))


@given(LETTERS)
def test_every_folded_character_leads_back_to_a_piece_that_folds_to_it(text):
    folded = fold(text)
    assert len(folded.starts) == len(folded.text) + 1
    assert list(folded.starts) == sorted(folded.starts)
    for at in range(len(folded.text)):
        start, end = folded.original_span(at, at + 1)
        assert start < end <= len(text)
        assert folded.text[at] in fold(text[start:end]).text


@given(COMPOSED)
def test_folding_a_folded_text_changes_nothing_more(text):
    assert fold(fold(text).text).text == fold(text).text


@given(COMPOSED, st.integers(0, 40), st.integers(1, 40))
def test_any_piece_of_a_text_is_found_in_it(text, start, length):
    piece = text[start : start + length]
    spans = find_folded(piece, text)
    assert bool(spans) == bool(fold(piece).text.strip())
    assert all(fold(piece).text.strip() in fold(text[slice(*span)]).text for span in spans)


@given(st.text(alphabet="aAé œŒæ«»“”’'`\u0301\u00ad<br/>\n\u00a0…ﬁß-–.\u200bİ", max_size=40) | st.text())
def test_the_text_alone_is_the_text_that_is_folded_with_its_map(text):
    assert fold_text(text) == fold(text).text


MARKS = "".join(chr(code) for code in range(0x110000) if unicodedata.combining(chr(code)))


LETTERS = st.sampled_from("eé\u01ed 1\uac00")


@given(st.text(st.sampled_from(MARKS) | LETTERS, max_size=200), st.sampled_from(["NFC", "NFKD"]))
def test_a_normal_form_is_unicode_s_however_many_marks_follow_one_another(text, form):
    assert normalized(text, form) == unicodedata.normalize(form, text)


def test_a_hundred_thousand_marks_are_normalised_and_folded_in_no_time():
    started = time.process_time()
    for marks in ("\u0301" * 100_000, "e" + "\u0301\u0323" * 50_000, "e" + "\u0301\u0316" * 50_000):
        found = normalized(marks)
        assert normalized(found) == found
        fold(f"é {marks} e")
        fold_text(marks)
    assert time.process_time() - started < 5  # unicodedata takes 6 s for one of them
    assert found == "\u00e9" + "\u0316" * 50_000 + "\u0301" * 49_999
