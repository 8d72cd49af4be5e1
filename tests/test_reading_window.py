"""Windows: every character of a long text is read once, and every piece can be cited by the offsets beside it."""

import re

import pytest

from legal_rag.corpus import Document
from legal_rag.reading_window import LONGEST_SENTENCE, PIECE_CHARS, READ_CHARS, window_of
from legal_rag.tool_outputs import window_text

SENTENCES = "".join(f"Attendu que le moyen n° {number} n'est pas fondé. " for number in range(2000)).strip()
PARAGRAPHS = "\n\n".join(f"{number}. Considérant que la requête n'est pas recevable ;" for number in range(1500))
MARKED = re.compile(r"^\[chars (\d+)-(\d+)\] ", re.MULTILINE)


def windows(content):
    """Read a text from its beginning to its end."""
    found, start = [], 0
    while start < len(content):
        found.append(window_of(content, start))
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


def test_windows_and_pieces_end_with_a_sentence():
    first, *_, last = windows(SENTENCES)
    assert SENTENCES[: first.end].endswith("n'est pas fondé. ")
    assert all(SENTENCES[slice(*piece)].endswith("fondé.") for piece in first.pieces)
    assert all(SENTENCES[slice(*piece)].startswith("Attendu") for piece in first.pieces)
    assert last.end == len(SENTENCES)


def test_a_text_without_a_full_stop_is_cut_between_words():
    content = "mot " * 20_000
    assert all(content[slice(*piece)].endswith("mot") for one in windows(content) for piece in one.pieces)


def test_a_window_begins_where_it_is_asked_to():
    window = window_of(SENTENCES, 1234, 300)
    assert (window.start, window.pieces[0][0]) == (1234, 1234)
    assert 1234 < window.end <= 1534


def test_what_a_model_reads_behind_an_offset_is_what_stands_there():
    document = Document(id="D", content=PARAGRAPHS, title="Un titre\nsur deux lignes", decision_date="2024-04-01")
    text = window_text(document, window_of(PARAGRAPHS, 700))
    end = window_of(PARAGRAPHS, 700).end
    assert text.startswith(
        f"Caractères 700 à {end} sur {len(PARAGRAPHS)} ; la suite : start={end}.\n"
        "<extrait>\nDécision : D\nTitre : Un titre sur deux lignes\nDate : 2024-04-01\n[chars 700-"
    )
    _, *rest = MARKED.split(text.removesuffix("\n</extrait>"))
    shown = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    assert len(shown) > 10
    assert all(piece.rstrip("\n") == PARAGRAPHS[int(start) : int(stop)] for start, stop, piece in shown)


def test_marks_cost_little_beside_the_text():
    text = window_text(Document(id="D", content=SENTENCES), window_of(SENTENCES))
    marks = [match.group() for match in MARKED.finditer(text)]
    assert len(marks) > READ_CHARS / 1000
    assert sum(map(len, marks)) < 0.03 * READ_CHARS
