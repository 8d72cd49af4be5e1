"""Do two sentences say the same in the same words: content words, negation and direction, word by word.

Lexical, not logical: equal words with equal polarity, whatever they mean.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from legal_rag.citations.plain import legible
from legal_rag.corpus.folding import fold_text

TABLES = tomllib.loads((files("legal_rag.citations") / "words.toml").read_text("utf-8"))
_NUMBER_SIGN = re.compile(r"\bn ?[°º]s?")
_WORD = re.compile(r"[^\W_]+|[,;:.!?()\n]")
CONTENT_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are mostly grammar
_GRAMMAR = frozenset(TABLES["grammar"])
_REPORTING = frozenset(TABLES["reporting"])  # what answers say of a decision in any case: "la Cour rappelle que"
_SILENT = _GRAMMAR | _REPORTING
_CUES = {name: re.compile(rf"(?:{'|'.join(words)})\Z") for name, words in TABLES["cues"].items()}
_OPPOSITES = {word: frozenset(row) - {word} for row in TABLES["opposites"] for word in row}
_PREFIXES = ("in", "im", "ir", "il", "non", "dé", "dés", "més", "mal", "anti", "contre", "sur", "sous")
STEM = 5  # letters by which two forms of a word are one: "condamne", "condamnée"
_SYNONYMS: dict[str, frozenset[str]] = {}
for _row in TABLES["synonyms"]:
    for _word in _row:
        _SYNONYMS[_word[:STEM]] = _SYNONYMS.get(_word[:STEM], frozenset()) | {word[:STEM] for word in _row}
LEAST_SHARE = 0.7  # of a sentence's content words that the place cited must hold
# Words before a word, and after, within which a negation bears on it: "n'est pas tenu", "ne paie pas".
BEFORE, AFTER = 3, 2
NEIGHBOURS = 9  # words between two of a sentence that go on alike
LEADING = 7  # words before the first one that a sentence repeats
GOVERNING = 14  # words before what is repeated in which "soutient que" still governs it


class Word(NamedTuple):
    """A word of a sentence."""

    stem: str
    text: str  # folded
    cues: frozenset[str]  # kinds of cue that bear on it
    cue: str  # the kind of cue that it is itself, or ""


@lru_cache(4096)
def words_of_sentence(text: str) -> tuple[Word, ...]:
    """Return a sentence's words, with the negations and the like that bear on each within its clause."""
    tokens = _tokens(text)
    cues = list(_cues(tokens))
    words = []
    for at, token in enumerate(tokens):
        if token[0].isalnum():
            words.append(Word(stem_of(token), token, frozenset(_bearing(tokens, cues, at)), cues[at]))
    return tuple(words)


def content_words(text: str) -> list[str]:
    """Return the words of four letters and more, folded in case."""
    return [word.casefold() for word in CONTENT_WORD.findall(text)]


@lru_cache(4096)
def cues_of(text: str) -> frozenset[str]:
    """Return the kinds of words in a text that turn a meaning: negation, exception, refusal, claim…"""
    return frozenset(cue for cue in _cues(_tokens(text)) if cue)


def says_the_same(claim: str, source: str, *, known: frozenset[str] = frozenset()) -> bool:
    """Does a source say what a claim does, in most of its words, denying what it denies and nothing else?

    Args:
        claim: A sentence, without what it says of its source alone.
        source: One or two neighbouring sentences.
        known: Stems that need not stand there: of the decision's own court.
    """
    said, there = words_of_sentence(claim), words_of_sentence(source)
    telling = [at for at, one in enumerate(said) if _tells(one) and one.stem not in known]
    if not telling:
        return True
    pairs = _aligned(said, telling, there)
    if len(pairs) < LEAST_SHARE * len(telling):
        return False
    return _same_direction(said, there, telling, pairs)


def is_grammar(word: str) -> bool:
    """Is a folded word one of four letters and more that is grammar?"""
    return word in _GRAMMAR


@lru_cache(2048)
def telling_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, those apart that answers use to report."""
    return frozenset(one.stem for one in words_of_sentence(text) if _tells(one))


def _tokens(text: str) -> list[str]:
    folded = fold_text(legible(text))
    folded = (
        _NUMBER_SIGN.sub("numéro ", folded).replace("d'après", "selon").replace("n'", "ne ").replace(" pour cent", " %")
    )
    return _WORD.findall(folded.replace("'", " "))


def stem_of(word: str) -> str:
    """Return the letters that a word's forms share: its first five; a shorter word without its plural's s."""
    if len(word) < STEM:
        return word.rstrip("s") or word
    return word[:STEM]


def _tells(word: Word) -> bool:
    return len(word.text) >= 4 and not word.cue and word.text.isalpha() and word.text not in _SILENT


def _cues(tokens: Sequence[str]) -> Iterator[str]:
    """Yield for each token the kind of cue that it is; "que" is one where it restricts: "ne … que"."""
    denied = False  # "ne" stands before, with no "pas" yet
    for number, word in enumerate(tokens):
        kind = next((name for name, pattern in _CUES.items() if pattern.match(word)), "")
        if word == "tort" and (number == 0 or tokens[number - 1] not in ("à", "a")):
            kind = ""
        if word == "ne":
            denied = True
        elif word in ("que", "qu") and denied:
            kind, denied = "only", False
        elif kind == "not" or word in ".;:!?\n":
            denied = False
        yield kind


def _bearing(tokens: Sequence[str], cues: Sequence[str], at: int) -> Iterator[str]:
    """Yield the kinds of cue that bear on the token at a place: near it, with no sign of punctuation between."""
    for step, most in ((-1, BEFORE), (1, AFTER)):
        for distance in range(1, most + 1):
            place = at + step * distance
            if not 0 <= place < len(tokens) or not tokens[place][0].isalnum():
                break
            if cues[place] and (step < 0 or tokens[place] in TABLES["after_a_verb"]):
                yield cues[place]


def _aligned(said: Sequence[Word], telling: Sequence[int], there: Sequence[Word]) -> dict[int, int]:
    """Return for each telling word that the source has, by its place, the place there nearest to the others'."""
    places: dict[str, list[int]] = {}
    for number, word in enumerate(there):
        places.setdefault(word.stem, []).append(number)
    certain = sorted(found[0] for at in telling if len(found := places.get(said[at].stem, [])) == 1)
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    last = certain[len(certain) // 2] if certain else 0
    for here in telling:
        if found := [at for at in places.get(said[here].stem, ()) if at not in taken]:
            same = [at for at in found if there[at].cues == said[here].cues] or found
            last = pairs[here] = min(same, key=lambda at: abs(at - last))
            taken.add(last)
    return pairs


def _same_direction(said: Sequence[Word], there: Sequence[Word], telling: Sequence[int], pairs: dict[int, int]) -> bool:
    if any(said[here].cues ^ there[at].cues for here, at in pairs.items()):
        return False
    if not _same_between(said, there, pairs):
        return False
    first, last = min(pairs.values()), max(pairs.values())
    near = there[max(0, first - BEFORE) : last + NEIGHBOURS + 1]
    wanted, found = _counted(said), _counted(near)
    if any(n > found.get(kind, 0) for kind, n in wanted.items()):
        return False
    begins = min(pairs)
    if _leading(said, begins) ^ _leading(there, pairs[begins]):
        return False
    governed = {one.cue for one in there[max(0, first - GOVERNING) : first]} & {"claims", "wrongly"}
    if governed - set(wanted):
        return False
    missing = {said[at].stem for at in telling if at not in pairs}
    unmatched = {said[at].text for at in telling if said[at].stem in missing}
    others = {one.text for one in there[first : last + 1] if _tells(one)}
    return not any(_are_opposite(one, other) for one in unmatched for other in others)


def _leading(words: Sequence[Word], at: int) -> set[str]:
    """Return the kinds of exception or reproach that stand before a word: "sauf lorsque", "c'est à tort que"."""
    return {one.cue for one in words[max(0, at - LEADING) : at]} & {"except", "wrongly"}


def _same_between(said: Sequence[Word], there: Sequence[Word], pairs: dict[int, int]) -> bool:
    """Where both go on alike, does the same stand between: no word put for another, no negation more or less?"""
    matched = sorted(pairs.items())
    for (here, other), (here_next, other_next) in pairwise(matched):
        if here_next - here > NEIGHBOURS or not 0 < other_next - other <= NEIGHBOURS:
            continue
        mine, theirs = said[here + 1 : here_next], there[other + 1 : other_next]
        if {one.cue for one in mine if one.cue} ^ {one.cue for one in theirs if one.cue}:
            return False
        if not _are_synonyms(mine, theirs):
            return False
    here, other = matched[-1]
    return len(said) - here > NEIGHBOURS or _are_synonyms(said[here + 1 :], there[other + 1 : other + NEIGHBOURS])


def _are_synonyms(mine: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Is every telling word of a few one of the others, or put for one of them?"""
    others = {one.stem for one in theirs}
    return all(one.stem in others or _SYNONYMS.get(one.stem, frozenset()) & others for one in mine if _tells(one))


def _counted(words: Sequence[Word]) -> dict[str, int]:
    """Count the cues of each kind; "ne" and its "pas" are one."""
    counts: dict[str, int] = {}
    for one in words:
        if one.cue and one.text != "ne":
            counts[one.cue] = counts.get(one.cue, 0) + 1
    return counts


def _are_opposite(one: str, other: str) -> bool:
    """Are two words contraries: in a table, or one with a prefix that denies the other, as "irrecevable"?"""
    if other.startswith(tuple(_OPPOSITES.get(stem_of(one), ()))):
        return True
    return any(
        second.startswith(prefix) and stem_of(first) == stem_of(second.removeprefix(prefix))
        for first, second in ((one, other), (other, one))
        for prefix in _PREFIXES
    )
