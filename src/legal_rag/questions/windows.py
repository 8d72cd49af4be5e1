"""Windows: the part of a long decision that a model is shown, chosen by structure and length.

In: a document's text. Out: the span to ask about. Short texts are shown whole. A long one is cut at paragraphs into
windows of like size, and one is drawn: those that hold reasons are likelier than those that hold names and procedure,
and over many documents every part of a decision is asked about, not the head alone.
"""

import random
import re
from collections.abc import Iterator

from legal_rag.corpus import Document
from legal_rag.question_settings import QuestionSettings
from legal_rag.sentences import cut_at_blanks, split_sentences, without_blanks

# Where a court reasons or decides; each adds to the chance of the window that it stands in.
REASONS = re.compile(
    r"\b(?:mais )?attendu que\b|\bconsidérant\b|\bsur l[ea]s? (?:\w+ ){0,3}(?:moyens?|griefs?)\b|\bréponse de la cour\b"
    r"|\bmotifs (?:de la décision|propres)\b|\baux termes de\b|\bil (?:résulte|ressort|suit)\b|\bvu l'article\b"
    r"|\bpar ces motifs\b",
    re.IGNORECASE,
)
MOST_REASONS = 8  # counted in a window: beyond, more say nothing more


def window_of(document: Document, settings: QuestionSettings) -> tuple[int, int]:
    """Return the span of a document that a model is shown in a run; see `choose_window`."""
    return choose_window(document.content, f"{settings.seed}:{document.id}", settings.context_chars)


def choose_window(content: str, seed: str, max_chars: int) -> tuple[int, int]:
    """Choose what to show of a document.

    Args:
        content: The document's text.
        seed: The same text and seed give the same window.
        max_chars: The longest window.

    Returns:
        Start and end in `content`, end exclusive, blanks at either end left out.
    """
    if len(content) <= max_chars:
        return without_blanks(content, [(0, len(content))])[0]
    windows = cut_windows(content, max_chars)
    weights = [1 + min(len(REASONS.findall(content, start, end)), MOST_REASONS) for start, end in windows]
    return random.Random(seed).choices(windows, weights)[0]  # noqa: S311


def cut_windows(content: str, max_chars: int) -> list[tuple[int, int]]:
    """Cut a text into as few windows as may be, of like size: at line breaks, else at sentences, else at blanks.

    Raises:
        ValueError: If `max_chars` is below 1.
    """
    if max_chars < 1:
        raise ValueError(f"max_chars must be at least 1, got {max_chars}")
    n_windows = -(-len(content) // max_chars)
    size = -(-len(content) // n_windows)  # windows of like size, none of them a mere rest
    windows: list[tuple[int, int]] = []
    start = end = 0
    for _, stop in _pieces(content, max_chars):
        if stop - start > max_chars or end - start >= size:
            windows.append((start, end))
            start = end
        end = stop
    return without_blanks(content, [*windows, (start, end)])


def _pieces(content: str, max_chars: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences and lines of a text, those too long for a window in parts; together they are the whole."""
    for start, end in split_sentences(content):
        yield from cut_at_blanks(content, start, end, max_chars)
