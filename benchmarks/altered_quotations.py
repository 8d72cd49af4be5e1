"""Altered quotations: a passage changed in one way, small enough to be overlooked.

In: a passage's text. Out: the same but for one alteration, or None where it cannot be made.
"""

import random
import re
from collections.abc import Callable

OTHER_WORDS = "contrat salarié faute commune requête candidat délai jugement électeur préjudice société".split()
ADDED_WORDS = "manifestement toujours seulement jamais également gravement parfois nécessairement".split()
OTHER_NAMES = "Durandeau Lemercier Vasseur Pontignac Archambault Quillerou".split()
NEGATION = re.compile(r"\b(?:ne |n['’])(\w+) (?:pas|plus|point) ", re.IGNORECASE)
AFFIRMATIVE = re.compile(r" (est|a|ont|sont|peut|doit|était|avait|peuvent|doivent|constitue|résulte) ")
ARTICLE = re.compile(r"(?<=article )((?:L\.O\.|L\.|R\.|D\.) ?)?(\d+)")
NAME = re.compile(r"(?<=M\. )[A-Z][\w-]+|(?<=Mme )[A-Z][\w-]+|(?<=société )[A-Z][\w-]+")


def replace_word(text: str, rng: random.Random) -> str | None:
    """Put another word in the place of one."""
    return _change(text, rng, r"\b[^\W\d_]{5,}\b", lambda word: rng.choice([w for w in OTHER_WORDS if w != word]))


def delete_word(text: str, rng: random.Random) -> str | None:
    """Leave a word out, neither the first nor the last."""
    return _change(text, rng, r"(?<=\w )[^\W\d_]{3,} (?=\w)", lambda word: "")


def insert_word(text: str, rng: random.Random) -> str | None:
    """Put a word in, between two others."""
    return _change(text, rng, r"(?<=[^\W\d_]{2}) (?=[^\W\d_])", lambda blank: f" {rng.choice(ADDED_WORDS)} ")


def change_negation(text: str, rng: random.Random) -> str | None:
    """Drop a negation, or make one."""
    if NEGATION.search(text):
        return NEGATION.sub(r"\1 ", text, count=1)
    return _change(text, rng, AFFIRMATIVE.pattern, lambda verb: _negated(verb.strip()))


def change_number(text: str, rng: random.Random) -> str | None:
    """Change one digit of a number."""
    return _change(text, rng, r"\d", lambda digit: str((int(digit) + rng.randint(1, 9)) % 10))


def swap_words(text: str, rng: random.Random) -> str | None:
    """Swap two words that stand side by side."""
    swapped = _change(text, rng, r"\b[^\W\d_]{2,} [^\W\d_]{2,}\b", lambda pair: " ".join(reversed(pair.split(" "))))
    return swapped if swapped != text else None


def change_article(text: str, rng: random.Random) -> str | None:
    """Change the number of an article."""
    return _change(text, rng, ARTICLE.pattern, lambda one: re.sub(r"\d+$", lambda n: str(int(n.group()) + 1), one))


def change_name(text: str, rng: random.Random) -> str | None:
    """Change the name of a person or company."""
    return _change(text, rng, NAME.pattern, lambda name: rng.choice(OTHER_NAMES))


def change_letter(text: str, rng: random.Random) -> str | None:
    """Change one letter of a long word."""
    return _change(text, rng, r"\b[^\W\d_]{8,}\b", lambda word: _with_other_letter(word, rng))


def _change(text: str, rng: random.Random, pattern: str, changed: Callable[[str], str]) -> str | None:
    matches = list(re.finditer(pattern, text))
    if not matches:
        return None
    one = rng.choice(matches)
    return text[: one.start()] + changed(one.group()) + text[one.end() :]


def _negated(verb: str) -> str:
    return f" n'{verb} pas " if verb[0] in "aeéo" else f" ne {verb} pas "


def _with_other_letter(word: str, rng: random.Random) -> str:
    at = rng.randrange(2, len(word) - 1)
    return word[:at] + rng.choice([letter for letter in "aeinrst" if letter != word[at].lower()]) + word[at + 1 :]


ALTERATIONS = {
    "word replaced": replace_word,
    "word deleted": delete_word,
    "word inserted": insert_word,
    "negation": change_negation,
    "number": change_number,
    "words swapped": swap_words,
    "article": change_article,
    "name": change_name,
    "letter": change_letter,
}
