"""Stems of French words: number and gender taken off, and nothing else.

In: one word. Out: its stem, without accents. Heavier stemmers join what the law keeps apart: Snowball's, by which
passages are searched, makes one stem of "délai" and "délit", another of "commune", "communication" and "communiste".
Light stemming does as well in retrieval (Savoy, "Light Stemming Approaches for the French, Portuguese, German and
Hungarian Languages", 2006); the rules here are of its kind, for nouns and adjectives.
"""

import re
import unicodedata

_ACCENTS = re.compile(r"[\u0300-\u036f]+")
SHORTEST_STEMMED = 4  # letters: shorter words have no ending to lose
_IRREGULAR = {
    "travaux": "travail", "baux": "bail", "vitraux": "vitrail", "aulx": "ail", "yeux": "oeil", "cieux": "ciel",
    "jeux": "jeu", "lieux": "lieu", "milieux": "milieu", "enjeux": "enjeu", "voeux": "voeu", "aveux": "aveu",
    "feux": "feu", "neveux": "neveu", "cheveux": "cheveu", "taux": "taux", "faux": "faux", "chaux": "chaux",
}  # fmt: skip
# An ending and what takes its place; the first that fits. Accents are still there.
_ENDINGS = (
    ("eaux", "eau"),  # bureaux
    ("aux", "al"),  # électoraux
    ("eux", "eus"),  # contentieux, like contentieuse
    ("trice", "teur"),  # directrice
    ("ère", "er"),  # financière
    ("ète", "et"),  # complète
    ("ève", "ef"),  # brève
    ("ive", "if"),  # législative
    ("ée", "é"),
)  # fmt: skip


def stem(word: str) -> str:
    """Return the stem of a word, which is in lower case and composed (NFC); a short one is its own.

    >>> stem("électorales"), stem("électoraux"), stem("délais"), stem("délits")
    ('electoral', 'electoral', 'delai', 'delit')
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < SHORTEST_STEMMED:
        return fold_accents(word)
    if word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    for ending, other in _ENDINGS:
        if word.endswith(ending):
            return fold_accents(word[: -len(ending)] + other)
    if word[-1] == "e" and len(word) >= SHORTEST_STEMMED:
        word = word[:-1]
        if word[-1] == word[-2] and word[-1] in "lnst":
            word = word[:-1]
    return fold_accents(word)


def fold_accents(word: str) -> str:
    """Return a word without its accents."""
    if word.isascii():
        return word
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
