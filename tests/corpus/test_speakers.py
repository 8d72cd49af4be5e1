"""Main parts and speakers: fictional decisions, a paragraph a line, each with the part and speaker a reader tells."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.corpus.structure.speakers import main_parts, read_paragraphs
from legal_rag.corpus.structure.tree import PART_KINDS, SPEAKERS

MARKED = sorted((Path(__file__).parent / "marked").glob("*.txt"))


def _expected(marked: Path) -> list[tuple[str, str, str]]:
    rows = (line.split("|", 1) for line in marked.read_text("utf-8").splitlines())
    return [(*marks.split(), words.strip()) for marks, words in rows]


@pytest.mark.parametrize("marked", MARKED, ids=lambda path: path.stem)
def test_parts_and_speakers_are_those_that_a_reader_tells(marked):
    expected = _expected(marked)
    text = "\n\n".join(words for _, _, words in expected)
    read = [
        (one.part, (one.speaker or "none") + "!" * one.censured, text[one.start : one.end])
        for one in read_paragraphs(text)
    ]
    assert read == expected


def test_a_decision_that_lost_its_line_breaks_is_cut_at_its_headings():
    text = (
        "COUR D'APPEL DE LIMOGES EXPOSÉ DU LITIGE : M. Charme a été blessé. SUR CE : Attendu que la faute est établie. "
        "PAR CES MOTIFS, la cour confirme le jugement."
    )
    parts = [
        (part.kind, text[part.start : part.end].split()[0]) for part in main_parts(read_paragraphs(text), len(text))
    ]
    assert parts == [("header", "COUR"), ("statement", "EXPOSÉ"), ("reasons", "SUR"), ("ruling", "PAR")]


LINES = [words for marked in MARKED for _, _, words in _expected(marked)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=30)), max_size=12).map("\n".join))
def test_paragraphs_follow_one_another_and_parts_cover_any_text(text):
    read = read_paragraphs(text)
    assert all(one.end <= after.start for one, after in pairwise(read))
    assert "".join("".join(text[one.start : one.end] for one in read).split()) == "".join(text.split())
    is_decision = any(one.part in ("reasons", "ruling") for one in read)
    assert {one.part for one in read} <= (set(PART_KINDS) if is_decision else {None})
    assert {one.speaker for one in read} <= {*SPEAKERS, None}
    parts = main_parts(read, len(text))
    assert "".join(text[part.start : part.end] for part in parts) == (text if is_decision else "")


@pytest.mark.parametrize(
    "unit", ["Attendu que ", "« 1°/ ", "pour ", "- ", "P A R ", "il fait valoir, ", ". ", "l'arrêt a "]
)
def test_reading_takes_time_in_proportion_to_the_text(unit):
    def seconds(times: int) -> float:
        started = time.process_time()
        read_paragraphs(unit * times)
        return time.process_time() - started

    seconds(100)
    once, eight_times = min(seconds(2_000) for _ in range(3)), seconds(16_000)
    assert eight_times < 30 * max(once, 0.005)
