"""What programs hand to the functions, read as it is meant: ids in whatever wraps them, numbers, lists, choices.

In: any plain value. Out: what a function takes, or ValueError or LookupError with a French sentence.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from legal_rag.cleaning import storable
from legal_rag.deep_read.grep import MOST_CONTEXT
from legal_rag.filters import Filters
from legal_rag.folding import fold_text
from legal_rag.library import Library
from legal_rag.meant_documents import find_document, meant_id
from legal_rag.rows import nearest_id
from legal_rag.tool_inputs import NOTHING, SHOWN_CHARS, filters_of, parts_of, shown, text_of, whole_number

Titles = Callable[[], Mapping[str, str]]

MOST_IDS = 1_000_000  # documents named in one call
LARGEST = 2**53  # that a program's numbers tell apart
ID_KEYS = ("doc_id", "id")
LIST_SIGNS = (";", "\n", ",")
TRUE, FALSE = frozenset({"true", "vrai", "oui", "1", "yes"}), frozenset({"false", "faux", "non", "0", "no"})


def document_id(sent: object, library: Library, titles: Titles) -> str:
    """Return the id of the document that is meant: by its id, a passage's id, a result that holds one, a number.

    Args:
        sent: What a program handed over.
        library: Whose document it is.
        titles: Returns titles of documents that were found, by their ids.

    Raises:
        LookupError: If no document is meant; the French sentence gives the nearest id.
    """
    named = unwrapped(sent)
    if isinstance(named, str) and _is_text(named) and named in library:
        return named
    meant = meant_id(named, library, titles())
    try:
        return find_document(meant, library).id
    except LookupError:
        near = nearest_id(library, meant[:SHOWN_CHARS])
        hint = f" Identifiant le plus proche : « {near} »." if near else ""
        raise LookupError(f"Aucun document pour « {shown(meant[:SHOWN_CHARS])} ».{hint}") from None


def id_list(sent: object) -> list[Any]:
    """Return the names in a list of documents: a list, a dictionary by id, several in one text, or one alone."""
    if isinstance(sent, str):
        return _texts_in(sent)
    if isinstance(sent, Mapping):
        return [sent] if any(key in sent for key in ID_KEYS) else list(sent)
    if _is_scored(sent) or not isinstance(sent, Iterable):
        return [sent]
    names = list(sent)
    if len(names) > MOST_IDS:
        raise ValueError(f"{len(names)} documents en une fois, {MOST_IDS} au plus")
    return names


def document_ids(sent: object, library: Library, titles: Titles, *, keep_unknown: bool = False) -> list[str]:
    """Return the ids of the documents that are meant, each once; exact ones are looked up together.

    Args:
        sent: What a program handed over: see `id_list`.
        library: Whose documents they are.
        titles: Returns titles of documents that were found, by their ids.
        keep_unknown: Leave what means no document as it is.

    Raises:
        LookupError: If one of them means no document, and is not kept.
    """
    if isinstance(sent, str) and _is_text(sent) and sent in library:  # an id may hold commas
        return [sent]
    names = [unwrapped(one) for one in id_list(sent)]
    exact = library.contents().known([one for one in names if isinstance(one, str) and _is_text(one)])
    found: dict[str, None] = {}
    for one in names:
        try:
            found[one if isinstance(one, str) and one in exact else document_id(one, library, titles)] = None
        except LookupError:
            if not keep_unknown:
                raise
            found[text_of(one)] = None
    return list(found)


def unwrapped(sent: object) -> object:
    """Take an id out of what the functions themselves give: metadata, a passage, (id, score, summary)."""
    if isinstance(sent, Mapping):
        return next((sent[key] for key in ID_KEYS if key in sent), sent)
    if _is_scored(sent):
        assert isinstance(sent, Sequence)  # noqa: S101 - that is what it says
        return sent[0]
    return sent


def number_of(name: str, sent: object, default: int, least: int = 0, most: int = LARGEST) -> int:
    """Read a number; see `legal_rag.tool_inputs.whole_number`."""
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
    """Read filters; see `legal_rag.tool_inputs.filters_of`.

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
    if isinstance(sent, str):
        return _texts_in(sent)
    return [text for one in id_list(sent) if (text := text_of(one))]


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


def _texts_in(text: str) -> list[str]:
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            return [str(one) for one in json.loads(stripped)]
        except ValueError:
            pass  # a list in some other form, or an id in brackets
    sign = next((sign for sign in LIST_SIGNS if sign in stripped), None)
    return parts_of(stripped, sign) if sign else [stripped]


def _is_scored(sent: object) -> bool:
    """Tell whether a value is an id with something that is none, such as (id, score, summary)."""
    is_row = isinstance(sent, list | tuple) and len(sent) > 1 and isinstance(sent[0], str)
    return is_row and isinstance(sent[1], int | float)  # type: ignore[index]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, which no store takes
        return False
    return True
