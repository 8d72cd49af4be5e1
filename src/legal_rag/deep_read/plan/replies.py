"""Replies read: what a model says of a part of a document, written as JSON or as something near it.

In: a reply. Out: whether the part is pertinent, what it brings, its quotations; or, in French, what is wrong with it.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from legal_rag.citation_markers import take_out_markers
from legal_rag.citations import is_abstention
from legal_rag.claims import QUOTED_BLANKS
from legal_rag.cleaning import storable

MOST_CHARS = (
    60_000  # of a reply that are looked at: one asked for is 20 times shorter, a model that ran wild may not be
)
MOST_BRACKETS = 300  # of one that is mended: thousands left open take minutes
MOST_TRIES = 100  # places where an object may begin
DEEPEST = 4  # objects within objects: {"resultat": [{…}]}
MOST_QUOTES, MOST_ANSWER_CHARS = 8, 1500  # of one reply; what goes beyond is dropped, and counted
PERTINENT = ("pertinent", "pertinente", "pertinence", "est_pertinent", "relevant", "is_relevant")
ANSWER = ("reponse", "answer", "response", "constat", "resume", "reponse_courte")
QUOTES = ("citations", "citation", "quotes", "quote", "extraits", "extrait", "passages", "passage", "preuves")
TEXTS = ("citation", "texte", "text", "quote", "extrait", "passage", "phrase")  # of a quotation given as an object
YES = frozenset("oui vrai true yes 1 pertinent pertinente partiellement".split())
NO = frozenset("non faux false no 0 aucun aucune null none".split())
MARKS = "«»“”„\"'`" + QUOTED_BLANKS  # around a quotation

EMPTY = "elle est vide"
NO_JSON = "ce n'est pas l'objet JSON demandé"
NO_KEYS = 'l\'objet JSON n\'a ni "pertinent", ni "reponse", ni "citations"'


class Reading(NamedTuple):
    """What a model says of a part of a document."""

    pertinent: bool
    answer: str = ""
    quotes: tuple[str, ...] = ()  # as the model writes them
    left_out: int = 0  # quotations beyond `MOST_QUOTES`
    problem: str = ""  # in French, for the model: why the reply cannot be read


def read_reply(text: str) -> Reading:
    """Read a reply; several objects are taken together."""
    text = storable(text[:MOST_CHARS]).strip()
    if not text:
        return Reading(False, problem=EMPTY)
    values = list(_values(text))
    if not values:
        return Reading(False, problem=NO_JSON)
    readings = [_reading(one) for value in values for one in _objects(value)]
    return _joined(readings) if readings else Reading(False, problem=NO_KEYS)


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON values of a text that say something: those that are well written, else what can be mended."""
    decoder, at, found = json.JSONDecoder(), 0, False
    for _ in range(MOST_TRIES):
        at = min((place for place in (text.find("{", at), text.find("[", at)) if place >= 0), default=-1)
        if at < 0:
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # no JSON here; or brackets within brackets
            at += 1
            continue
        if any(True for _ in _objects(value)):
            found = True
            yield value
    if not found and (value := _mended(text)):
        yield value


def _mended(text: str) -> Any:
    import json_repair

    if "{" not in text or text.count("{") + text.count("[") > MOST_BRACKETS:
        return None
    try:
        value = json_repair.loads(text[text.index("{") :])
    except (ValueError, RecursionError):  # brackets within brackets, deeper than it goes
        return None
    return value if isinstance(value, dict | list) else None


def _objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what in a value says something of the document, wherever it stands."""
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        known = _folded(value)
        if any(name in known for name in (*PERTINENT, *ANSWER, *QUOTES)):
            yield known
            return
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _objects(one, depth + 1)


def _reading(known: Mapping[str, Any]) -> Reading:
    quotes = list(dict.fromkeys(_quotes(_first(known, QUOTES))))
    answer = _plain(_first(known, ANSWER))
    said = _truth(_first(known, PERTINENT))
    pertinent = bool(quotes or answer) if said is None else said
    if not quotes and answer and is_abstention(answer):
        pertinent = False  # "le document ne contient pas …" is no answer, whatever the flag says
    if not pertinent:
        return Reading(False)
    return Reading(True, answer[:MOST_ANSWER_CHARS], tuple(quotes[:MOST_QUOTES]), max(0, len(quotes) - MOST_QUOTES))


def _joined(readings: Sequence[Reading]) -> Reading:
    """Take several readings together; one that says nothing, such as the form itself copied, counts alone only."""
    telling = [one for one in readings if one.quotes or one.answer]
    if not telling:
        return readings[-1]
    quotes = list(dict.fromkeys(quote for one in telling for quote in one.quotes))
    answer = "\n".join(dict.fromkeys(one.answer for one in telling if one.answer))
    left_out = sum(one.left_out for one in telling) + max(0, len(quotes) - MOST_QUOTES)
    return Reading(True, answer[:MOST_ANSWER_CHARS], tuple(quotes[:MOST_QUOTES]), left_out)


def _quotes(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip(MARKS + "…. "):
            yield value.strip()
    elif isinstance(value, dict):
        yield from _quotes(_first(_folded(value), TEXTS))
    elif isinstance(value, list):
        for one in value:
            if not isinstance(one, list):
                yield from _quotes(one)


def _plain(value: Any) -> str:
    """Return an answer as plain text, without markers: only ours point at what was checked."""
    if isinstance(value, list):
        value = "\n".join(filter(None, map(_plain, (one for one in value if not isinstance(one, list)))))
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    text = str(value).strip()
    return take_out_markers(text, lambda name: None).plain.strip() if text.strip("…. ") else ""


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool | int | float):
        return bool(value)
    words = _key(value).replace("_", " ").split() if isinstance(value, str) else []
    first = words[0] if words else ""
    return True if first in YES else False if first in NO or words[:2] == ["pas", "pertinent"] else None


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _folded(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {_key(str(name)): value for name, value in values.items()}


def _key(name: str) -> str:
    """Fold a key to small letters without accents."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    return "_".join("".join(one if one.isalnum() else " " for one in plain).split())
