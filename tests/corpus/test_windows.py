"""Windows hold all of a text, end where a reader may pause, and can be cited by their offsets."""

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.agent.pieces import Pieces
from legal_rag.agent.tool_outputs import window_text
from legal_rag.corpus import Document
from legal_rag.corpus.chunking import (
    LONGEST_SENTENCE,
    PIECE_CHARS,
    READ_CHARS,
    cut_windows,
    draw_window,
    window_at,
    window_number,
    windows_of,
)

SENTENCES = "".join(f"Attendu que le moyen n° {number} n'est pas fondé. " for number in range(2000)).strip()
PARAGRAPHS = "\n\n".join(f"{number}. Considérant que la requête n'est pas recevable ;" for number in range(1500))
LONG = "\n".join(
    f"Considérant que le moyen n° {number} ; qu'il n'est pas fondé. Il y a lieu de l'écarter." for number in range(400)
)
MARKED = re.compile(r"^\[(P\d+)\] ", re.MULTILINE)


def windows(content):
    """Read a text from its beginning to its end."""
    found, start = [], 0
    while start < len(content):
        found.append(window_at(content, start))
        start = found[-1].end
    return found


@pytest.mark.parametrize(
    "content",
    [
        SENTENCES,
        PARAGRAPHS,
        "mot " * 20_000,
        "x" * 50_000,
        ";" * 30_000,
        "\n" * 25_000 + "fin",
        "Une phrase brève.",
        "é\u0301" * 15_000,
        "",
    ],
    ids=["sentences", "paragraphs", "no stops", "no blanks", "marks", "blank", "short", "accents", "empty"],
)
def test_windows_hold_the_whole_text_once_and_pieces_all_of_it_but_blanks(content):
    found = windows(content)
    assert "".join(content[one.start : one.end] for one in found) == content
    assert all(0 < one.end - one.start <= READ_CHARS for one in found)
    pieces = [piece for one in found for piece in one.pieces]
    assert pieces == sorted(pieces)
    assert "".join("".join(content[slice(*piece)] for piece in pieces).split()) == "".join(content.split())
    assert all(end - start <= PIECE_CHARS + LONGEST_SENTENCE for start, end in pieces)


def test_windows_and_pieces_end_with_a_sentence_or_else_between_words():
    first, *_, last = windows(SENTENCES)
    assert SENTENCES[: first.end].endswith("n'est pas fondé. ")
    assert all(SENTENCES[slice(*piece)].endswith("fondé.") for piece in first.pieces)
    assert all(SENTENCES[slice(*piece)].startswith("Attendu") for piece in first.pieces)
    assert last.end == len(SENTENCES)
    content = "mot " * 20_000
    assert all(content[slice(*piece)].endswith("mot") for one in windows(content) for piece in one.pieces)


def test_a_window_begins_where_it_is_asked_to():
    window = window_at(SENTENCES, 1234, 300)
    assert (window.start, window.pieces[0][0]) == (1234, 1234)
    assert 1234 < window.end <= 1534


def test_the_windows_of_a_text_follow_one_another_and_each_place_is_in_one_of_them():
    parts = windows_of(SENTENCES, 5000)
    assert parts[0].start == 0
    assert all(before.end == after.start for before, after in pairwise(parts))
    assert parts[-1].end == len(SENTENCES)
    assert [window_number(parts, part.start) for part in parts] == list(range(1, len(parts) + 1))
    assert [window_number(parts, part.end - 1) for part in parts] == list(range(1, len(parts) + 1))
    assert window_number(parts, len(SENTENCES) + 9) == len(parts)
    assert [part.pieces for part in windows_of("")] == [[]]


def test_what_a_model_reads_behind_a_name_is_what_stands_there_and_names_cost_little():
    document = Document(id="D", content=PARAGRAPHS, title="Un titre\nsur deux lignes", decision_date="2024-04-01")
    pieces = Pieces()
    text = window_text(document, window_at(PARAGRAPHS, 700), pieces)
    assert text.startswith("Décision : D\nTitre : Un titre sur deux lignes\nDate : 2024-04-01\n[P1] ")
    _, *rest = MARKED.split(text)
    shown = dict(zip(rest[::2], rest[1::2], strict=True))
    assert list(shown) == pieces.names
    assert len(shown) > 10
    assert "".join("".join(shown.values()).split()) == "".join(
        PARAGRAPHS[slice(*window_at(PARAGRAPHS, 700)[:2])].split()
    )
    assert sum(len(name) + 3 for name in shown) < 0.03 * READ_CHARS


@pytest.mark.parametrize(
    "text",
    [LONG, "mot " * 9000, "x" * 30_000, "\n" * 30_000 + "fin", "Fin. " + "é" * 9000 + "\n\nFin." * 2000],
    ids=len,
)
@pytest.mark.parametrize(("most", "overlap"), [(16_000, 400), (1000, 250), (1000, 0), (7, 1)])
def test_cuts_show_every_character_and_overlap(text, most, overlap):
    found = cut_windows(text, most, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(end - start <= most for start, end in found)
    shared = [before[1] - after[0] for before, after in pairwise(found)]
    assert all(overlap <= one <= 2 * overlap for one in shared)
    assert len(found) <= 2 + 2 * len(text) / (most - 2 * overlap)


PIECES = st.lists(st.sampled_from(["mot ", "Attendu que ", ".\n", "x" * 30, "\n\n", " ; "]), min_size=1, max_size=120)


@given(PIECES, st.integers(1, 200))
def test_cuts_without_overlap_hold_each_character_once(pieces, most):
    text = "".join(pieces)
    found = cut_windows(text, most)
    assert "".join(text[start:end] for start, end in found) == (text if text.strip() else "")
    assert all(0 < end - start <= most for start, end in found)


def test_cuts_end_at_lines_and_begin_at_sentences_and_a_part_of_a_text_is_cut_alone():
    found = cut_windows(LONG, 4000, 300)
    assert len(found) == 9
    assert all(LONG[end - 1] == "\n" for _, end in found[:-1])
    assert all(LONG[start:].startswith(("Considérant", "qu'il", "Il y a")) for start, _ in found)
    assert all(start == 0 or LONG[start - 1] == "\n" for start, _ in cut_windows(LONG, 4000))
    found = cut_windows(LONG, 2000, 100, (5000, 9000))
    assert (found[0][0], found[-1][1]) == (5000, 9000)
    assert cut_windows("", 100, 10) == cut_windows("  \n\t ", 100, 10) == []


@pytest.mark.parametrize(
    ("most", "overlap", "problem"),
    [
        (100, 26, "overlap must be from 0 to a quarter of"),
        (100, -1, "overlap must be from 0 to a quarter of"),
        (0, 0, "most must be at least 1, got 0"),
    ],
)
def test_a_window_of_no_length_and_an_overlap_that_would_not_get_on_are_refused(most, overlap, problem):
    with pytest.raises(ValueError, match=problem):
        cut_windows(LONG, most, overlap)


def test_every_part_of_long_decisions_is_drawn_and_reasons_most():
    names = "\n".join(f"M. {letter * 8}, demeurant à Lyon" for letter in "ABCDEFGHIJ" * 10)
    reasons = "\n".join(f"Attendu que le moyen {number} n'est pas fondé ;" for number in range(80))
    text = names + "\n" + reasons
    starts = [draw_window(text, f"0:{number}", 1000)[0] for number in range(300)]
    in_names = sum(start < len(names) for start in starts)
    assert len(set(starts)) >= 5
    assert 10 < in_names < 90


def test_a_window_is_drawn_by_its_seed_alone_and_a_short_text_whole():
    text = "Attendu que la demande est recevable.\n" * 500
    random.seed(1)
    first = draw_window(text, "7:x", 2000)
    random.seed(2)
    assert draw_window(text, "7:x", 2000) == first
    assert {draw_window(text, f"{seed}:x", 2000) for seed in range(30)} != {first}
    assert draw_window("  un texte court \n", "0:a", 100) == (2, 16)
