"""Windows over a long text: parts that a model is shown one at a time, and that together show every character.

In: a text. Out: spans that overlap a little, cut where a reader may pause: at a line break, a sentence, a blank.
"""

from bisect import bisect_right
from collections.abc import Sequence

from legal_rag.sentences import split_sentences

Span = tuple[int, int]  # characters: start, end


def windows_of(content: str, most: int, overlap: int, within: Span | None = None) -> list[Span]:
    """Cut a text into windows of like size; a blank one has none.

    Args:
        content: The text.
        most: Characters of a window at most.
        overlap: Characters that two neighbours share at least; at most a quarter of `most`.
        within: The part that is cut; None takes all.

    Raises:
        ValueError: If the overlap is below 0 or above a quarter of `most`.
    """
    if not 0 <= overlap * 4 <= most:
        raise ValueError(f"overlap must be from 0 to a quarter of {most}, got {overlap}")
    start, last = within or (0, len(content))
    if not content[start:last].strip():
        return []
    borders = [start + end for _, end in split_sentences(content[start:last])] if last - start > most else []
    windows = []
    while last - start > most:
        end = _end(content, borders, start, most, _size(last - start, most, overlap))
        windows.append((start, end))
        start = _start(content, borders, end, overlap)
    return [*windows, (start, last)]


def _size(left: int, most: int, overlap: int) -> int:
    """Return the size that leaves no mere rest for the last window."""
    n_windows = -(-(left - overlap) // (most - overlap))
    return -(-(left - overlap) // n_windows) + overlap


def _end(content: str, borders: Sequence[int], start: int, most: int, size: int) -> int:
    """Return where a window ends: at the line break nearest to its size, else at a sentence, a blank, or its limit.

    It is never shorter than half of `most`, which is longer than what it shares with the next one.
    """
    low, limit = start + most // 2, start + most
    ends = borders[bisect_right(borders, low) : bisect_right(borders, limit)]
    lines = [end for end in ends if "\n" in content[end - 3 : end]]
    if nearest := min(lines or ends, key=lambda end: (abs(end - start - size), end), default=0):
        return nearest
    blank = content.rfind(" ", low, limit)
    return blank + 1 if blank > 0 else limit


def _start(content: str, borders: Sequence[int], end: int, overlap: int) -> int:
    """Return where the window after one that ends at `end` begins: the last sentence or word that leaves the overlap.

    At most twice the overlap is shared.
    """
    latest, earliest = end - overlap, end - 2 * overlap
    number = bisect_right(borders, latest) - 1
    if number >= 0 and borders[number] >= earliest:
        return borders[number]
    blank = content.rfind(" ", earliest, latest)
    return blank + 1 if blank >= 0 else latest
