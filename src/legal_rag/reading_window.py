"""Reading by window: what one reading of a long decision shows, in pieces that can each be cited.

In: a decision's text and where to begin. Out: spans of that text, cut where a reader may pause.
"""

from collections.abc import Iterator
from typing import NamedTuple

from legal_rag.sentences import cut_at_blanks, split_sentences, without_blanks

Span = tuple[int, int]  # characters: start, end

READ_CHARS = 20_000  # of one reading: 97 decisions in 100 are shorter; some 5,750 of a model's tokens
PIECE_CHARS = 800  # sentences are put together up to here: their marks then cost 5 tokens in 100 of the text's
LONGEST_SENTENCE = 1200  # characters; what is longer is cut at a blank


class Window(NamedTuple):
    """A part of a text, in pieces: together they hold all of it but the blanks between them."""

    start: int
    end: int
    pieces: list[Span]  # of the whole text, in order


def window_of(content: str, start: int = 0, most: int = READ_CHARS) -> Window:
    """Return what one reading shows.

    Args:
        content: The whole text.
        start: Where the window begins, within the text.
        most: Characters that it has at most; it ends before them, behind a sentence, unless the text itself does.
    """
    limit = min(start + most, len(content))
    sentences = [
        part
        for first, last in split_sentences(content[start:limit])
        for part in cut_at_blanks(content, start + first, start + last, LONGEST_SENTENCE)
    ]
    if limit < len(content) and len(sentences) > 1:
        limit, _ = sentences.pop()  # it may go on behind the limit
    return Window(start, limit, without_blanks(content, _together(sentences)))


def _together(sentences: list[Span]) -> Iterator[Span]:
    """Put neighbours together as long as they stay within a piece."""
    if not sentences:
        return
    begun, done = sentences[0]
    for start, end in sentences[1:]:
        if end - begun > PIECE_CHARS:
            yield begun, done
            begun = start
        done = end
    yield begun, done
