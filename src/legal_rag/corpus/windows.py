"""Overlapping windows of a long text, cut at sentence ends."""

import random
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.sentences import cut_at_blanks, split_sentences, without_blanks

READ_CHARS = 20_000  # read at once: about 5,750 tokens; 97 % of decisions are shorter
PIECE_CHARS = 800  # sentences are joined up to here: marking the pieces then costs 5 % of the text's tokens
LONGEST_SENTENCE = 1200  # characters; longer ones are cut at a blank
# A court's reasoning or decision.
REASONS = re.compile(
    r"\b(?:mais )?attendu que\b|\bconsidérant\b|\bsur l[ea]s? (?:\w+ ){0,3}(?:moyens?|griefs?)\b|\bréponse de la cour\b"
    r"|\bmotifs (?:de la décision|propres)\b|\baux termes de\b|\bil (?:résulte|ressort|suit)\b|\bvu l'article\b"
    r"|\bpar ces motifs\b",
    re.IGNORECASE,
)
MAX_REASONS = 8  # counted in a window at most


class Window(NamedTuple):
    """A span of a text, in citable pieces that cover all but blanks."""

    start: int
    end: int
    pieces: list[Span]  # offsets in the whole text, in order


def window_at(content: str, start: int = 0, most: int = READ_CHARS) -> Window:
    """Return the window at an offset, of at most `most` characters; the next one begins at its end.

    It ends with the last sentence that fits, unless one sentence fills it.
    """
    limit = min(start + most, len(content))
    sentences = [
        part
        for first, last in split_sentences(content[start:limit])
        for part in cut_at_blanks(content, start + first, start + last, LONGEST_SENTENCE)
    ]
    if limit < len(content) and len(sentences) > 1:
        limit, _ = sentences.pop()  # it may continue after the limit
    return Window(start, limit, without_blanks(content, _join_sentences(sentences)))


def cut_windows(content: str, most: int, overlap: int = 0, within: Span | None = None) -> list[Span]:
    """Split a text into windows of similar size that cover it, at line breaks, else sentences, else blanks.

    Args:
        content: The text; a blank one has no window.
        most: Characters of a window at most, from 1.
        overlap: Characters that neighbours share, up to twice as many; 0 to a quarter of `most`.
        within: The span to split; None for the whole text.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    if not 0 <= overlap * 4 <= most:
        raise ValueError(f"overlap must be from 0 to a quarter of {most}, got {overlap}")
    start, last = within or (0, len(content))
    if not content[start:last].strip():
        return []
    borders = [start + end for _, end in split_sentences(content[start:last])] if last - start > most else []
    windows = []
    while last - start > most:
        end = _window_end(content, borders, start, most, _window_size(last - start, most, overlap))
        windows.append((start, end))
        start = _window_start(content, borders, end, overlap)
    return [*windows, (start, last)]


def draw_window(content: str, seed: str, most: int) -> Span:
    """Draw a window of a non-blank text, pseudo-random by `seed`, favouring reasons over names and procedure."""
    windows = without_blanks(content, cut_windows(content, most))
    weights = [1 + min(len(REASONS.findall(content, start, end)), MAX_REASONS) for start, end in windows]
    return random.Random(seed).choices(windows, weights)[0]  # noqa: S311


def _join_sentences(sentences: list[Span]) -> Iterator[Span]:
    if not sentences:
        return
    begun, done = sentences[0]
    for start, end in sentences[1:]:
        if end - begun > PIECE_CHARS:
            yield begun, done
            begun = start
        done = end
    yield begun, done


def _window_size(left: int, most: int, overlap: int) -> int:
    n_windows = -(-(left - overlap) // (most - overlap))
    return -(-(left - overlap) // n_windows) + overlap


def _window_end(content: str, borders: Sequence[int], start: int, most: int, size: int) -> int:
    """Return a window's end: the line break nearest to `size`, else a sentence's end, a blank, or the limit.

    It has at least half of `most`, which is longer than the overlap.
    """
    low, limit = start + most // 2, start + most
    ends = borders[bisect_right(borders, low) : bisect_right(borders, limit)]
    lines = [end for end in ends if "\n" in content[end - 3 : end]]
    if nearest := min(lines or ends, key=lambda end: (abs(end - start - size), end), default=0):
        return nearest
    blank = content.rfind(" ", low, limit)
    return blank + 1 if blank > 0 else limit


def _window_start(content: str, borders: Sequence[int], end: int, overlap: int) -> int:
    """Return the start of the window after `end`: the last sentence or word that leaves one to two overlaps."""
    latest, earliest = end - overlap, end - 2 * overlap
    number = bisect_right(borders, latest) - 1
    if number >= 0 and borders[number] >= earliest:
        return borders[number]
    blank = content.rfind(" ", earliest, latest)
    return blank + 1 if blank >= 0 else latest
