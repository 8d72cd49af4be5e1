"""Read what programs hand to the functions: numbers, choices, patterns, prompts, filters; see `tool_arguments`."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from legal_rag.cleaning import storable
from legal_rag.deep_read.grep import MOST_CONTEXT
from legal_rag.filters import Filters
from legal_rag.folding import fold_text
from legal_rag.tool_arguments import NOTHING, SHOWN_CHARS, filters_of, items_of, shown, text_of, whole_number

LARGEST = 2**53  # that a program's numbers tell apart
TRUE, FALSE = frozenset({"true", "vrai", "oui", "1", "yes"}), frozenset({"false", "faux", "non", "0", "no"})


def number_of(name: str, sent: object, default: int, least: int = 0, most: int = LARGEST) -> int:
    """Read a number; see `legal_rag.tool_arguments.whole_number`."""
    return whole_number(name, sent, least, most, default)


def at_most(name: str, sent: object) -> int | None:
    """Read how many at most; None, 0, and what models write for them, is all."""
    if sent in (None, 0, -1, "0") or str(sent).strip().casefold() in NOTHING:
        return None
    return whole_number(name, sent, 1, LARGEST, LARGEST)


def yes_or_no(name: str, sent: object) -> bool:
    """Read a choice.

    Raises:
        ValueError: If it is none.
    """
    written = str(sent).strip().casefold()
    if written not in TRUE | FALSE:
        raise ValueError(f"{name} doit être True ou False, reçu : « {shown(written[:20])} »")
    return written in TRUE


def pattern_of(sent: object) -> str:
    """Read a regular expression; of several in a list, any of them.

    Raises:
        ValueError: If it is no text.
    """
    if isinstance(sent, list | tuple) and sent and all(isinstance(one, str) for one in sent):
        return "|".join(f"(?:{one})" for one in sent)
    if not isinstance(sent, str) or not sent:
        raise ValueError("le motif doit être une expression régulière, écrite comme un texte")
    return sent


def prompt_of(sent: object) -> str:
    """Read what a model is to be asked, as it is written.

    Raises:
        ValueError: If it is empty.
    """
    text = storable(sent) if isinstance(sent, str) else text_of(sent, "\n")
    if not text.strip():
        raise ValueError("la demande est vide")
    return text


def context_of(sent: object) -> int:
    """Read how many characters are shown around a match."""
    return number_of("context", sent, 0, 0, MOST_CONTEXT)


def filters_from(asked: Mapping[str, object], doc_ids: Sequence[str] | None) -> Filters:
    """Read filters; see `legal_rag.tool_arguments.filters_of`.

    Args:
        asked: By the names that the functions give them.
        doc_ids: Of the documents among which to look; None is all.

    Raises:
        ValueError: If one of them is not understood; the French sentence names it.
    """
    read = filters_of({name: text for name, value in asked.items() if (text := text_of(value))})
    return read if doc_ids is None else replace(read, doc_ids=tuple(doc_ids))


def texts_of(sent: object) -> list[str]:
    """Read a list of texts: a list, or several in one text, with a sign between them."""
    return [text for one in items_of(sent) if (text := text_of(one))]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the name that is meant among some, whatever its case and accents; None if none is."""
    if name in known:
        return name
    folded = {fold_text(one).strip(): one for one in reversed(known)}
    return folded.get(fold_text(name).strip())


def near_names(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return the names most like one, in quotation marks, for a sentence."""
    near = difflib.get_close_matches(name, known, most, 0.0)
    return ", ".join(f"« {shown(one[:SHOWN_CHARS])} »" for one in near)
