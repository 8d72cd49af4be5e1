"""Words of a text as the corpus index counts them: stemmed, folded, and told apart from all that is no key term.

In: a text, or one word of it with the signs around it. Out: `Word`s. Stop words, adverbs, numbers, initials and what
holds a figure ("52-12", "2e") are no terms.
"""

import re
import unicodedata
from typing import NamedTuple

from legal_rag.corpus_index.stems import fold_accents, stem
from legal_rag.corpus_index.stop_words import DETERMINERS, LINKS, PREFIXES, STOP_WORDS
from legal_rag.folding import APOSTROPHES, DASHES, INVISIBLE, LETTERS

LONGEST_RAW = 60  # characters: what is longer is no word
SHORTEST, LONGEST = 3, 32  # letters of a word that can be a term
CACHED = 200_000  # words that are remembered: some 60 MB
OPENS, CLOSES = 1, 2  # a sign stands before the word, behind it
LINK, DETERMINER = 4, 8  # it may stand within an expression; a noun may follow it
CAPITAL, UPPER = 16, 32  # its first letter is a capital; all its letters are, and there are several

_ADVERB = re.compile(r"(?:[^cv]elle|aire|ive|euse|able|ible|ique|iere|am|em)ment$")  # no nouns, as "licenciement" is
_UNACCENTED = re.compile(r"e(e?s?)\b")  # where a word may want the accent that changes its stem: "salarie", "annulees"
_SIGNS = {**LETTERS, **dict.fromkeys(DASHES, "-"), **dict.fromkeys(INVISIBLE, "")}


class Word(NamedTuple):
    """What one word of a text counts for."""

    stem: str  # empty if the word is no term; of "procès-verbal" two stems with a blank between them
    shown: str  # the word in lower case, without the signs around it
    signs: int  # a sum of the constants above


_NOTHING = Word("", "", OPENS | CLOSES)


class Words(dict[str, Word]):
    """Words by how they are written, signs around them included: each is read once; all are forgotten when too many."""

    def __missing__(self, raw: str) -> Word:
        """Read a word."""
        if len(raw) > LONGEST_RAW:
            return _NOTHING
        if len(self) >= CACHED:
            self.clear()
        self[raw] = word = _word(raw)
        return word


WORDS = Words()


def raw_words(text: str) -> list[str]:
    """Split a text at blanks, and behind apostrophes; the signs around words stay with them."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        for sign in APOSTROPHES:
            text = text.replace(sign, "'")
    text = text.replace("rud'h", "rudh")  # prud'hommes are one word
    return text.replace("'", "' ").split()


def asked_terms(text: str) -> list[tuple[str, ...]]:
    """Return the terms that a question asks for, word by word, in order.

    Of each word there are as many as it may stand for: what is asked without accents ("salaries") may want some. Stop
    words are left out, case and number do not count: a question of stop words alone asks for nothing.
    """
    asked = [_possible(raw) for raw in raw_words(text.lower())]
    return list(dict.fromkeys(terms for terms in asked if terms))


def _possible(raw: str) -> tuple[str, ...]:
    stems = [WORDS[raw].stem]
    if raw.isascii():
        stems.append(WORDS[_UNACCENTED.sub("é\\1", raw)].stem)
    return tuple(dict.fromkeys(one for one in stems if one))


def _word(raw: str) -> Word:
    start, end = 0, len(raw)
    while start < end and not raw[start].isalnum():
        start += 1
    while end > start and not raw[end - 1].isalnum():
        end -= 1
    core, behind = raw[start:end], raw[end:]
    shown = "".join(_SIGNS.get(letter, letter) for letter in core.lower())
    folded = fold_accents(shown)
    if not folded.replace("-", "").isalpha():
        return _NOTHING
    signs = OPENS * (start > 0) | CLOSES * (behind not in ("", "'"))
    signs |= CAPITAL * core[0].isupper() | UPPER * (len(core) > 1 and core.isupper())
    written = folded + "'" * behind.startswith("'")
    signs |= LINK * (written in LINKS) | DETERMINER * (written in DETERMINERS)
    return Word(_stem(shown, folded), shown.replace("rudh", "rud'h"), signs)


def _stem(shown: str, folded: str) -> str:
    if "-" not in shown:
        return stem(shown) if _is_term(folded) else ""
    if folded in STOP_WORDS:
        return ""
    first, *others = shown.split("-")
    if fold_accents(first) in PREFIXES and len(others) == 1:
        return f"{fold_accents(first)}-{of}" if (of := _stem(others[0], fold_accents(others[0]))) else ""
    stems = [of for part in (first, *others) if (of := _stem(part, fold_accents(part)))]
    return " ".join(stems) if len(stems) < 3 else ""


def _is_term(folded: str) -> bool:
    if not SHORTEST <= len(folded) <= LONGEST or folded in STOP_WORDS:
        return False
    return not (folded.endswith("ment") and _ADVERB.search(folded))
