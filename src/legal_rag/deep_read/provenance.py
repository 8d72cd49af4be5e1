"""Where an answer comes from: a program computed it, or a model told it, in its code or in a sub-model's reply.

In: the answer and the run's code and replies. Out: whether it may stand without a citation. A count over a corpus
rests on no passage; a sentence that a model wrote must.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import Any

SHORTEST = 25  # characters of a piece that is a model's own words; shorter ones are labels, units, names
MOST_TOLD = 0.5  # share of an answer that may be told


def is_computed(value: Any, codes: Iterable[str], replies: Iterable[str]) -> bool:
    """Tell whether a program computed an answer, as far as it can be told.

    Args:
        value: The answer: a text, or a plain value, which programs make.
        codes: All that was run.
        replies: All that sub-models replied.
    """
    if not isinstance(value, str):
        return True
    text = _squeezed(value)
    pieces = {piece for told in (*_constants(codes), *replies) if len(piece := _squeezed(told)) >= SHORTEST}
    told = sum(len(piece) for piece in pieces if piece in text)
    told = max([told, *(len(text) for piece in pieces if text in piece)])
    return bool(text) and told <= MOST_TOLD * len(text)


def _constants(codes: Iterable[str]) -> Iterator[str]:
    for code in codes:
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # it did not run either
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _squeezed(text: str) -> str:
    return " ".join(text.split())
