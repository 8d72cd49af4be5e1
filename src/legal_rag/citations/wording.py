"""Compare two sentences word by word: content words, negation and direction.

Lexical, not logical: equal words with equal polarity, whatever they mean.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from legal_rag.base.text import fold_text
from legal_rag.citations.plain import legible
from legal_rag.law.words import MONTH_NUMBERS, TITLES_OF_MEN, TITLES_OF_WOMEN, negations

TABLES = tomllib.loads((files("legal_rag.citations") / "words.toml").read_text("utf-8"))
_NUMBER_SIGN = re.compile(r"\bn ?[°º]s?")
_WORD = re.compile(r"[^\W_]+|[,;:.!?()\n]")
CONTENT_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are mostly grammar
_GRAMMAR = MONTH_NUMBERS.keys() | TITLES_OF_MEN | TITLES_OF_WOMEN | set(TABLES["grammar"])
_REPORTING = frozenset(TABLES["reporting"])  # what answers say of a decision in any case: "la Cour rappelle que"
_SILENT = _GRAMMAR | _REPORTING
_CUES = {kind: re.compile(negations(kind=kind)) for kind in ("not", "except")} | {
    name: re.compile(rf"(?:{'|'.join(words)})\Z") for name, words in TABLES["cues"].items()
}
_SAYING = frozenset({"", *TABLES["saying_cues"]})
_CLAUSE_OPENERS = frozenset({"que", "qu", "qui", "dont", "où", "si", "lorsque", "lorsqu", "quand", "mais"})
_MODALS = frozenset({"must", "maybe"})
_OPPOSITE_MODALS = {frozenset({modal}) for modal in _MODALS}
_AFTER_A_VERB = re.compile(rf"{negations(after=True)}|(?:que|qu)\b")  # "que": "ne paie que"
_OPPOSITES = {word: frozenset(row) - {word} for row in TABLES["opposites"] for word in row}
_PREFIXES = ("in", "im", "ir", "il", "non", "dé", "dés", "més", "mal", "anti", "contre", "sur", "sous")
STEM = 5  # first letters that the forms of a word share: "condamne", "condamnée"
_SYNONYMS: dict[str, frozenset[str]] = {}
for _row in TABLES["synonyms"]:
    for _word in _row:
        _SYNONYMS[_word[:STEM]] = _SYNONYMS.get(_word[:STEM], frozenset()) | {word[:STEM] for word in _row}
LEAST_SHARE = 0.7  # of a sentence's content words that the place cited must hold
# Words before a word, and after, within which a negation bears on it: "n'est pas tenu", "ne paie pas".
BEFORE, AFTER = 3, 2
NEIGHBOURS = 9  # words between two matches that are compared
LEADING = 7  # words before the first match that are compared
NEARBY = 6  # words around all that are shared, in which a negation may bear on them
_DENYING = frozenset({"not", "refuses", "except"})
GOVERNING = 14  # words before the first match in which "soutient que" still governs it


class Word(NamedTuple):
    """A word of a sentence."""

    stem: str
    text: str  # folded
    cues: frozenset[str]  # kinds of cue that bear on it
    cue: str  # the kind of cue that it is itself, or ""


@lru_cache(4096)
def words_of_sentence(text: str) -> tuple[Word, ...]:
    """Return a sentence's words, with the negations and the like that bear on each within its clause."""
    tokens = _tokenize(text)
    cues = list(_token_cues(tokens))
    words = []
    for at, token in enumerate(tokens):
        if token[0].isalnum():
            words.append(Word(stem_of(token), token, frozenset(_cues_bearing_on(tokens, cues, at)), cues[at]))
    return tuple(words)


def content_words(text: str) -> list[str]:
    """Return the words of four letters and more, folded in case."""
    return [word.casefold() for word in CONTENT_WORD.findall(text)]


@lru_cache(4096)
def cues_of(text: str) -> frozenset[str]:
    """Return the kinds of words in a text that turn a meaning: negation, exception, refusal, claim…"""
    return frozenset(cue for cue in _token_cues(_tokenize(text)) if cue)


def says_the_same(claim: str, source: str, *, known: frozenset[str] = frozenset(), reworded: bool = False) -> bool:
    """Does a source, one or two neighbouring sentences, say what a claim does, in most of its words?

    It must deny what the claim denies and nothing else. It need not have the stems `known`: of the decision's own
    court. `reworded`: other words, not opposite ones, may stand in the place of its own.
    """
    claim_words, source_words = words_of_sentence(claim), words_of_sentence(source)
    telling = [at for at, word in enumerate(claim_words) if _is_telling(word) and word.stem not in known]
    if not telling:
        return True
    pairs = _align_words(claim_words, telling, source_words)
    if len(pairs) < LEAST_SHARE * len(telling):
        return False
    return _same_sense(claim_words, source_words, telling, pairs, reworded=reworded)


def denies_otherwise(claim: str, source: str) -> bool:
    """Does a claim deny, in one of its clauses, a word that a source has in clauses without a negation only?"""
    return bool(_denied_stems(claim) & telling_stems(source) - _denied_stems(source))


def denies_alike(claim: str, source: str) -> bool:
    """Do a claim, and the words of a source around those that it shares, both deny something, or neither?"""
    claim_words, source_words = words_of_sentence(claim), words_of_sentence(source)
    telling = [at for at, word in enumerate(claim_words) if _is_telling(word)]
    places = _align_words(claim_words, telling, source_words).values()
    near = source_words[max(0, min(places) - NEARBY) : max(places) + NEARBY] if places else source_words
    mine, theirs = ({word.cue for word in words} & _DENYING for words in (claim_words, near))
    return bool(mine) == bool(theirs)


def _denied_stems(text: str) -> set[str]:
    """Return the stems of the telling words in clauses with a negation."""
    tokens = _tokenize(text)
    clauses: list[list[tuple[str, str]]] = [[]]
    for token, cue in zip(tokens, _token_cues(tokens), strict=True):
        if token in _CLAUSE_OPENERS or not token[0].isalnum():
            clauses.append([])
        clauses[-1].append((token, cue))
    denied = (clause for clause in clauses if any(cue == "not" for _, cue in clause))
    return {stem for clause in denied for stem in telling_stems(" ".join(token for token, _ in clause))}


def is_grammar(word: str) -> bool:
    """Is a folded word one of four letters and more that is grammar?"""
    return word in _GRAMMAR


@lru_cache(2048)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of what a text says: `telling_stems`, and those of verbs such as "annule" and "refuse"."""
    words = (word for word in _tokenize(text) if len(word) >= 4 and word.isalpha() and word not in _SILENT)
    return frozenset(stem_of(word) for word in words if _cue_of_word(word) in _SAYING)


def is_shared(stem: str, stems: Set[str]) -> bool:
    """Is a stem, or that of a synonym, among others?"""
    return stem in stems or not _SYNONYMS.get(stem, frozenset()).isdisjoint(stems)


@lru_cache(2048)
def telling_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, without those that answers use to report."""
    return frozenset(word.stem for word in words_of_sentence(text) if _is_telling(word))


def _tokenize(text: str) -> list[str]:
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


def _is_telling(word: Word) -> bool:
    return len(word.text) >= 4 and not word.cue and word.text.isalpha() and word.text not in _SILENT


def _token_cues(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the kind of cue of each token, or ""; "que" is one where it restricts: "ne … que"."""
    denied = False  # after "ne", before its "pas"
    for number, word in enumerate(tokens):
        kind = _cue_of_word(word)
        if word == "tort" and (number == 0 or tokens[number - 1] not in ("à", "a")):
            kind = ""
        if word == "ne":
            denied = True
        elif word in ("que", "qu") and denied:
            kind, denied = "only", False
        elif kind == "not" or word in ".;:!?\n":
            denied = False
        yield kind


@lru_cache(16384)
def _cue_of_word(word: str) -> str:
    """Return the kind of cue that a word is by itself, or ""."""
    return next((name for name, pattern in _CUES.items() if pattern.match(word)), "")


def _cues_bearing_on(tokens: Sequence[str], cues: Sequence[str], at: int) -> Iterator[str]:
    """Yield the kinds of cue near the token at `at`, with no punctuation between."""
    for step, most in ((-1, BEFORE), (1, AFTER)):
        for distance in range(1, most + 1):
            place = at + step * distance
            if not 0 <= place < len(tokens) or not tokens[place][0].isalnum():
                break
            if cues[place] and (step < 0 or _AFTER_A_VERB.match(tokens[place])):
                yield cues[place]


def _align_words(claim: Sequence[Word], telling: Sequence[int], source: Sequence[Word]) -> dict[int, int]:
    """Map the position of each telling word to that in the source which is nearest to the other matches."""
    places: dict[str, list[int]] = {}
    for number, word in enumerate(source):
        places.setdefault(word.stem, []).append(number)
    certain = sorted(places_of_stem[0] for at in telling if len(places_of_stem := places.get(claim[at].stem, [])) == 1)
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    last = certain[len(certain) // 2] if certain else 0
    for here in telling:
        if places_of_stem := [at for at in places.get(claim[here].stem, ()) if at not in taken]:
            same = [at for at in places_of_stem if source[at].cues == claim[here].cues] or places_of_stem
            last = pairs[here] = min(same, key=lambda at: abs(at - last))
            taken.add(last)
    return pairs


def _same_sense(
    claim: Sequence[Word], source: Sequence[Word], telling: Sequence[int], pairs: dict[int, int], *, reworded: bool
) -> bool:
    ignored = _MODALS if reworded else frozenset()
    both = [(claim[here].cues, source[at].cues) for here, at in pairs.items()]
    if any(
        (mine ^ theirs) - ignored or {mine & _MODALS, theirs & _MODALS} == _OPPOSITE_MODALS for mine, theirs in both
    ):
        return False
    if not reworded and not _same_between(claim, source, pairs):
        return False
    first, last = min(pairs.values()), max(pairs.values())
    near = source[max(0, first - BEFORE) : last + NEIGHBOURS + 1]
    claim_cues = _count_cues(claim)
    if (claim_cues - _count_cues(near)).keys() - ignored:
        return False
    begins = min(pairs)
    if _leading_cues(claim, begins) ^ _leading_cues(source, pairs[begins]):
        return False
    governed = {word.cue for word in source[max(0, first - GOVERNING) : first]} & {"claims", "wrongly"}
    if governed - set(claim_cues):
        return False
    missing = {claim[at].stem for at in telling if at not in pairs}
    unmatched = {claim[at].text for at in telling if claim[at].stem in missing}
    others = {word.text for word in (near if reworded else source[first : last + 1]) if _is_telling(word)}
    return not any(_are_opposite(word, other) for word in unmatched for other in others)


def _leading_cues(words: Sequence[Word], at: int) -> set[str]:
    """Return the cues of exception or error before a word: "sauf lorsque", "c'est à tort que"."""
    return {word.cue for word in words[max(0, at - LEADING) : at]} & {"except", "wrongly"}


def _same_between(claim: Sequence[Word], source: Sequence[Word], pairs: dict[int, int]) -> bool:
    """Between neighbouring matches, is no word replaced by another, and is the negation the same?"""
    matched = sorted(pairs.items())
    for (here, other), (here_next, other_next) in pairwise(matched):
        if here_next - here > NEIGHBOURS or not 0 < other_next - other <= NEIGHBOURS:
            continue
        mine, theirs = claim[here + 1 : here_next], source[other + 1 : other_next]
        if {word.cue for word in mine if word.cue} ^ {word.cue for word in theirs if word.cue}:
            return False
        if not _are_synonyms(mine, theirs):
            return False
    here, other = matched[-1]
    return len(claim) - here > NEIGHBOURS or _are_synonyms(claim[here + 1 :], source[other + 1 : other + NEIGHBOURS])


def _are_synonyms(mine: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Is every telling word of `mine` in `theirs`, or a synonym of one there?"""
    others = {word.stem for word in theirs}
    stems = (word.stem for word in mine if _is_telling(word))
    return all(stem in others or _SYNONYMS.get(stem, frozenset()) & others for stem in stems)


def _count_cues(words: Sequence[Word]) -> Counter[str]:
    """Count the cues of each kind; "ne" and its "pas" are one."""
    return Counter(word.cue for word in words if word.cue and word.text != "ne")


def _are_opposite(word: str, other: str) -> bool:
    """Are two words opposites: in a table, or one with a negating prefix, as "irrecevable"?"""
    if other.startswith(tuple(_OPPOSITES.get(stem_of(word), ()))):
        return True
    return any(
        second.startswith(prefix) and stem_of(first) == stem_of(second.removeprefix(prefix))
        for first, second in ((word, other), (other, word))
        for prefix in _PREFIXES
    )
