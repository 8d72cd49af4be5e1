"""Patterns made of the lists in cues.toml."""

import re

from legal_rag.corpus.words import read_words

BEFORE_HEADING = r"(?:[-–—•*#§\s]|[IVX]{1,4}+\s?[-–—.)/]|[A-H]\s?[-–—.)/]|\d{1,2}+\s?[-–—.)°/]{1,2}+)*"
NUMBER = r"(?:\d{1,3}\s?\.\s?[-–]?\s?)?"  # of a paragraph
_FORMS = {"É": "[EÉÈ]", "È": "[EÉÈ]", "Ê": "[EÊÉ]", "Ô": "[OÔ]", "Ç": "[CÇ]", "'": "['’ ]"}


def cues(*names: str) -> str:
    """Return one pattern of the alternatives in some lists; a blank in them is any white space."""
    found = [one for name in names for one in read_words("legal_rag.corpus.structure", "cues.toml")[name]]
    return f"(?:{'|'.join(found)})".replace(" ", r"\s")


def heading_letters(phrase: str) -> str:
    """Return a pattern for a phrase in capitals, whose letters may be spaced, lack accents or be pseudonymised."""
    words = [[_FORMS.get(letter, re.escape(letter)) for letter in word] for word in phrase.split()]
    unread = r"|[A-Z]\.{3}"
    spelt = [[f"(?:{one}{unread if n or m else ''})" for m, one in enumerate(word)] for n, word in enumerate(words)]
    return r"\s{1,4}".join(r"\s?".join(word) for word in spelt)


def headings(name: str) -> str:
    """Return a pattern for the headings of a list: in capitals at a line's beginning, in any case as a whole line."""
    known = "|".join(map(heading_letters, read_words("legal_rag.corpus.structure", "cues.toml")[name]))
    more = r"(?:\s(?i:de la cour|de l['’]arrêt|et motifs))?\s*[:;,.]?\s*\Z"
    return rf"{BEFORE_HEADING}(?:(?:{known})(?![\w'’])|(?i:{known}){more})"
