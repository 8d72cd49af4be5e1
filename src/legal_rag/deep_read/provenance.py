"""Where an answer comes from: a program computed it, or a model told it, in its code or in a sub-model's reply.

In: the answer and the run's code and replies. Out: whether it may stand without a citation. A count over a corpus
rests on no passage; a sentence that a model wrote must. A sentence that a program filled in is computed, a label that
a model gave to what a program counted is none; an answer in a list or a table is held to the same.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from legal_rag.deep_read.answer_texts import answer_text

SHORTEST = 25  # characters of an answer that is a piece of a model's text; shorter ones are labels, units, names
GRAM = 4  # words in a row that show that a text is from another one, whatever was replaced or cut around them
MOST_LABEL = 8  # words in a row of a reply, or of a sentence that stands in the code; from there on they are told
MOST_TEMPLATE = 16  # words in a row of a sentence in the code that a program filled in
MOST_TOLD = 0.5  # share of an answer's words that may be told
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")  # in a reply that is JSON: \u00e9, \n
END = re.compile(r"[.!?;]\s|\s:\s|\n")  # of a sentence, of a line, of what a line of a table is about


def is_computed(value: Any, codes: Iterable[str], replies: Iterable[str]) -> bool:
    """Tell whether a program computed an answer, as far as it can be told.

    Args:
        value: The answer: a text, or a plain value.
        codes: All that was run.
        replies: All that sub-models replied, and root models where no program answered.
    """
    text = answer_text(value)
    written, replies = [constants for code in codes if (constants := _constants(code))], list(map(_unescaped, replies))
    if not text or (isinstance(value, str) and _is_piece(text, (*(one for all_ in written for one in all_), *replies))):
        return False
    words = _words(text)
    places = _places_of_grams(words)
    in_reply = _covered(places, len(words), replies)
    in_code = _covered(places, len(words), (" ".join(constants) for constants in written))
    told = {n for start, end in _runs(in_reply, MOST_LABEL) for n in range(start, end)}
    told |= {n for start, end in _runs(in_code, MOST_TEMPLATE) for n in range(start, end)}
    for start, end in _sentences(text):
        if end - start >= MOST_LABEL and all(in_code[n] or in_reply[n] for n in range(start, end)):
            told.update(range(start, end))
    return len(told) <= MOST_TOLD * len(words)


def _unescaped(reply: str) -> str:
    """Return a reply with the escapes of JSON decoded, so that its words are those that a program reads in it."""
    return ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", reply)


def _is_piece(text: str, told: Iterable[str]) -> bool:
    squeezed = " ".join(text.split())
    return len(squeezed) >= SHORTEST and any(squeezed in " ".join(one.split()) for one in told)


def _constants(code: str) -> list[str]:
    """Return the texts that stand in a program, in its order."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it did not run either
        return []
    found = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [str(one.value) for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


def _words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def _places_of_grams(words: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for n in range(len(words) - GRAM + 1):
        places.setdefault(tuple(words[n : n + GRAM]), []).append(n)
    return places


def _covered(places: dict[tuple[str, ...], list[int]], n_words: int, told: Iterable[str]) -> list[bool]:
    """Tell which words of an answer stand in what was told, with their neighbours."""
    covered = [False] * n_words
    for text in told:
        words = _words(text)
        for gram in {tuple(words[n : n + GRAM]) for n in range(len(words) - GRAM + 1)} & places.keys():
            for place in places[gram]:
                covered[place : place + GRAM] = [True] * GRAM
    return covered


def _runs(covered: Sequence[bool], shortest: int) -> Iterator[tuple[int, int]]:
    start = 0
    for n, is_covered in enumerate([*covered, False]):
        if not is_covered:
            if n - start >= shortest:
                yield start, n
            start = n + 1


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends, in words."""
    begin = 0
    for sentence in END.split(text):
        end = begin + len(_words(sentence))
        yield begin, end
        begin = end
