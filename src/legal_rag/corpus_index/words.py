"""Words of a text as the corpus index counts them: stemmed, folded, and told apart from all that is no key term.

In: a text, or one word of it with the signs around it. Out: `Word`s. Stop words, adverbs, numbers, initials and what
holds a figure ("52-12", "2e") are no terms.
"""

import re
import unicodedata

from legal_rag.corpus_index.stems import fold_accents, stem
from legal_rag.corpus_index.stop_words import DETERMINERS, FUNCTION_WORDS, LINKS, PREFIXES, STOP_WORDS
from legal_rag.folding import APOSTROPHES, DASHES, INVISIBLE, LETTERS

LONGEST_RAW = 60  # characters: what is longer is no word
LONGEST_FIGURE = 5  # characters: longer words that hold figures are too many to be remembered, and no terms
SHORTEST, LONGEST = 3, 32  # letters of a word that can be a term
CACHED = 200_000  # words that are remembered: some 60 MB
OPENS, CLOSES = 1, 2  # a sign stands before the word, behind it
LINK, DETERMINER = 4, 8  # it may stand within an expression; a noun may follow it
CAPITAL, UPPER = 16, 32  # its first letter is a capital, which makes it no term; all its letters are

_ADVERB = re.compile(r"(?:[^cv]elle|aire|ive|euse|able|ible|ique|iere|am|em)ment$")  # no nouns, as "licenciement" is
_UNACCENTED = re.compile(r"e(e?s?)\b")  # where a word may want the accent that changes its stem: "salarie", "annulees"
_FIGURE = re.compile(r"\d")
_SIGNS = {**LETTERS, **dict.fromkeys(DASHES, "-"), **dict.fromkeys(INVISIBLE, "")}


# What one word of a text counts for; a plain tuple, for a corpus has billions:
# its stem, empty if it is no term, and two stems with a blank between them of a word such as "procès-verbal";
# how it is shown: in lower case, without the signs around it but for the apostrophe it is elided with;
# its signs, a sum of the constants above; and, of a word all in capitals, the stem that it is where it is no name.
Word = tuple[str, str, int, str]
_NOTHING: Word = ("", "", OPENS | CLOSES, "")


class Words(dict[str, Word]):
    """Words by how they are written, signs around them included: each is read once; all are forgotten when too many."""

    def __missing__(self, raw: str) -> Word:
        """Read a word."""
        if len(raw) > LONGEST_RAW or (len(raw) > LONGEST_FIGURE and _FIGURE.search(raw)):
            return _NOTHING
        if len(self) >= CACHED:
            self.clear()
        self[raw] = word = _word(raw)
        return word


WORDS = Words()


def words_by_line(text: str) -> list[list[Word]]:
    """Return the words of each line of a text: what blanks and apostrophes separate."""
    return [list(map(WORDS.__getitem__, line.split())) for line in _separated(text).split("\n")]


def raw_words(text: str) -> list[str]:
    """Split a text at blanks, and behind apostrophes; the signs around words stay with them."""
    return _separated(text).split()


def _separated(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        for sign in APOSTROPHES:
            text = text.replace(sign, "'")
    text = text.replace("rud'h", "rudh")  # prud'hommes are one word
    return text.replace("'", "' ")


def asked_terms(text: str) -> list[tuple[str, ...]]:
    """Return the terms that a question asks for, word by word, in order.

    Of each word there are as many as it may stand for: what is asked without accents ("salaries") may want some. Stop
    words are left out, case and number do not count: a question of stop words alone asks for nothing.
    """
    asked = [_possible(raw) for raw in raw_words(text.lower())]
    return list(dict.fromkeys(terms for terms in asked if terms))


def _possible(raw: str) -> tuple[str, ...]:
    stems = [WORDS[raw][0]]
    if raw.isascii():
        stems.append(WORDS[_UNACCENTED.sub("é\\1", raw)][0])
    return tuple(dict.fromkeys(one for one in stems if one))


def _word(raw: str) -> Word:
    start, end = 0, len(raw)
    while start < end and not raw[start].isalnum():
        start += 1
    while end > start and not raw[end - 1].isalnum():
        end -= 1
    core, behind = raw[start:end], raw[end:]
    shown = core.lower() if core.isascii() else "".join([_SIGNS.get(letter, letter) for letter in core.lower()])
    folded = fold_accents(shown)
    if not (folded.isalpha() or folded.replace("-", "").isalpha()):
        return _NOTHING
    signs = OPENS * (start > 0) | CLOSES * (behind not in ("", "'"))
    upper = len(core) > 1 and core.isupper()
    elided = "'" * (behind == "'" and len(core) < SHORTEST)
    if folded + elided in DETERMINERS and not upper:
        signs |= DETERMINER
    if core[0].isupper():
        acronym = _stem(shown, folded) if upper else ""  # none of "LA" and "MM"
        return "", core if upper else shown, signs | CAPITAL | UPPER * upper, acronym
    if folded + elided in LINKS and not signs & OPENS:
        signs |= LINK
    return _stem(shown, folded), shown.replace("rudh", "rud'h") + elided, signs, ""


def _stem(shown: str, folded: str) -> str:
    if "-" not in shown:
        return stem(shown) if _is_term(folded) else ""
    first, *others = shown.split("-")
    if fold_accents(first) in PREFIXES and len(others) == 1 and len(others[0]) >= SHORTEST:
        return f"{fold_accents(first)}-{stem(others[0])}"
    parts = [part for part in (first, *others) if fold_accents(part) not in FUNCTION_WORDS]
    if len(parts) == 2 and folded not in STOP_WORDS:
        return " ".join(map(stem, parts))
    return _stem(parts[0], fold_accents(parts[0])) if len(parts) == 1 else ""


def _is_term(folded: str) -> bool:
    if not SHORTEST <= len(folded) <= LONGEST or folded in STOP_WORDS:
        return False
    return not (folded.endswith("ment") and _ADVERB.search(folded))
