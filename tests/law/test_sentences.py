"""Sentences: they are the whole text, and an abbreviation ends none."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.law import split_sentences

LEGAL_TEXT = st.lists(
    st.sampled_from(
        ["M. ", "art. ", "X... ", "L. 1152-1", "Rejette.", "!", "…", " »", "\n", " ", ";", "É", "mot", "1. ", "n° "]
    )
).map("".join)


def sentences_of(text):
    return [text[start:end] for start, end in split_sentences(text)]


@settings(deadline=None)
@given(st.text() | LEGAL_TEXT)
def test_sentences_are_the_whole_text_in_order(text):
    spans = split_sentences(text)
    assert "".join(sentences_of(text)) == text
    assert all(start < end for start, end in spans)
    assert all(before[1] == after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(
    "text",
    [
        "M. Durand et Mme. Petit, MM. Roy et Me. Blanc ont comparu.",
        "Vu l'art. L. 1152-1 du code du travail, al. 2, et l'art. R. 4624-31.",
        "Voir C. civ., art. 1382, et C. trav. L. 1152-1.",
        "Le pourvoi n° 19-60.222 et le n°. 20-11.111 sont joints.",
        "Attendu que M. X... Pierre et Mme Y… Anne, époux Z... Demandent réparation.",
        "Mme A. B. Martin et J.-P. Durand ont conclu.",
        "La S.A. Aurilis et la S.A.R.L. Groupe Flauraud ont formé un pourvoi.",
        "1. Considérant que la requête est recevable.",
        "II. Sur le second moyen, pris en ses deux branches.",
        "L'arrêt (Cass. Crim. Bull. 12, p. 34, obs. Durand) est cité.",
        "Il l'a dit. et répété.",
        "Cons. const., 20 juill. 1993, n° 93-1213 AN.",
        "La somme de 3.000,50 euros est due.",
    ],
)
def test_a_full_stop_inside_a_sentence_ends_nothing(text):
    assert sentences_of(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("La cour rejette. Elle condamne.", ["La cour rejette. ", "Elle condamne."]),
        ("Est-ce fondé ? Non ! Soit… Rejet.", ["Est-ce fondé ? ", "Non ! ", "Soit… ", "Rejet."]),
        ("Il a dit : « Je refuse. » Le juge note.", ["Il a dit : « Je refuse. » ", "Le juge note."]),
        ("Vu la loi ; Vu le code ; rejette", ["Vu la loi ; ", "Vu le code ; ", "rejette"]),
        ("COUR\n\n  DE CASSATION\nRejet", ["COUR\n\n  ", "DE CASSATION\n", "Rejet"]),
        ("Vu l'art.\nRejette", ["Vu l'art.\n", "Rejette"]),
        ("Jugé en 2020. La cour", ["Jugé en 2020. ", "La cour"]),
        ("Suivent (...) Puis rien.", ["Suivent (...) ", "Puis rien."]),
        ("", []),
        (" ", [" "]),
    ],
)
def test_a_sentence_ends_at_its_mark_and_keeps_the_blanks_after_it(text, expected):
    assert sentences_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "." * 100_000,
        " " * 100_000,
        "\n" * 100_000,
        "M. " * 100_000,
        ". " * 100_000,
        ".\n" * 100_000,
        ".»" * 100_000,
        "." + " »" * 100_000,
        "A." * 100_000,
        "A" * 100_000 + ". B",
        "a" + " " * 100_000 + "b",
        ";" * 100_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_a_hostile_text_takes_linear_time(text):
    started = time.process_time()
    split_sentences(text)
    assert time.process_time() - started < 10  # a quadratic pattern takes minutes
