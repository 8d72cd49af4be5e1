"""Search patterns through a document or the corpus, by RE2: each step takes linear time, all steps a limited one."""

import math
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple, NotRequired, TypedDict

import regex

from legal_rag.agent.tool_arguments import PATTERN, quoted
from legal_rag.corpus.cleaning import normalized, storable
from legal_rag.corpus.folding import APOSTROPHES, DASHES, INVISIBLE
from legal_rag.deadline import check
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library

MAX_MATCHES = 100_000  # returned by one search, over all documents
MAX_IN_DOCUMENT = 10_000
SHOWN_CHARS = 300  # of a match
MAX_CONTEXT = 1000  # characters on either side
MAX_CHARS = 10_000_000  # shown by one search, over all matches
SECONDS = 20.0  # after which a search of the corpus stops, between two matches
DOCUMENT_SECONDS = 5.0  # likewise, of a document
MAX_CANDIDATES = 50_000  # documents from the lexical index; beyond, texts are streamed
SHARE_OF_CORPUS = 2  # one in two: where the index names more, it saves nothing

LONGEST_PATTERN = PATTERN.text  # characters
# RE2 cannot be interrupted. What it takes for a byte grows with its program, up to some 50 microseconds (measured): a
# text is handed over in stretches that take it a second at worst, each overlapping the next by half.
STEP_NS, MOST_NS = 1.1, 50_000  # of a byte: for each instruction, and at most
STRETCH_NS = 1_000_000_000
MAX_ITEMS = 3000  # of a pattern whose counted repetitions are written out; each may cost RE2 50 ns a byte
COMPILED = 16  # patterns kept; each may take RE2's 8 MB twice

MARK = "\x01"
MARKS = MARK * 3  # so many borders may follow one another, as in `\b(?:\bmot)`
_WORD = re.compile(r"([\w\u0300-\u036f]+)")
_LETTER = regex.compile(r"[\p{Alphabetic}\p{L}\p{M}\p{N}_]")

# What stands in a class for each of Perl's; control characters other than blanks, such as the mark, are in none.
_REST = r"\t-\r\x1c-\x1f\x7f-\x{9f}\p{Cf}\p{Co}"
PERL_CLASSES = {
    "w": r"\pL\pM\pN_",
    "d": r"\p{Nd}",
    "s": r"\t-\r\x1c-\x1f\x{85}\pZ",
    "W": rf"\p{{Pd}}\p{{Ps}}\p{{Pe}}\p{{Pi}}\p{{Pf}}\p{{Po}}\pS\pZ{_REST}",
    "D": rf"\pL\pM\p{{Nl}}\p{{No}}\pP\pS\pZ{_REST}",
    "S": r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}",
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

# Each alternative is one item of RE2's syntax; patterns have passed RE2 before they are read.
_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|$)
    |(?P<border>\\b) |(?P<place>\\[Az]|[$^])
    |\\(?P<perl>[wdsWDS]) |(?P<other>\\(?:[pP](?:\{[^}]*\}|.)|x\{[^}]*\}|x..|[0-7]{1,3}|[BC]))
    |\\(?P<escaped>.)
    |\[(?P<negated>\^?)(?P<body>\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*)\]
    |\((?:\?(?P<flags>[imsU-]*)(?P<ends>[:)])|\?P?<\w+>|(?!\?)) |(?P<alternative>\|) |(?P<close>\))
    |(?P<repeat>[*+?]|\{(?P<least>\d+)(?P<open>,)?(?P<most>\d*)\})(?P<lazy>\??)
    |(?P<any>\.) |(?P<char>.)""",
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(
    r"\\(?P<perl>[wdsWDS])|(?P<other>\[:\^?\w+:\]|\\(?:[pP](?:\{[^}]*\}|.)|x\{[^}]*\}|x..|[0-7]{1,3}))"
    r"|(?P<range>(?:\\.|[^\\])-(?:\\.|[^\]\\]))|\\(?P<escaped>.)|(?P<char>.)",
    re.DOTALL,
)
# By what RE2 says of a pattern: what it lacks, and what to write instead.
_LACKING = (
    (r"\(\?<?[=!]", "les assertions (?=…), (?!…), (?<=…) et (?<!…)", "cherchez le texte entier, puis triez les "
     "occurrences dans le programme, avec context=… pour voir ce qui les entoure"),
    (r"\\[1-9]|\(\?P", "les références arrière (\\1, (?P=nom))", "écrivez les cas possibles : (?:a…a|b…b)"),
    (r"\(\?\(", "les conditions (?(1)…)", "écrivez les deux cas : (?:a…|b…)"),
    (r"\(\?>", "les groupes atomiques (?>…)", "écrivez (?:…)"),
    (r"\(\?", "cette option ou ce commentaire", "les options sont i, m, s et U : (?i), (?s:…)"),
    (r"repetition operator", "les répétitions possessives ou doubles (a++, a**)", "écrivez a+ ou a*"),
    (r"\\Z", r"\Z", r"écrivez \z"),
    (r"\\[uN]", r"\u…", r"écrivez la lettre même, ou \x{E9}"),
)  # fmt: skip
_TOO_LARGE = "motif refusé : trop de répétitions comptées (1000 au plus, l'une dans l'autre comprises)"

ANY = "\uffff"  # a noncharacter: stands for any text, also an empty one
END = " "  # stands for anything that is no part of a word, and for the border of a text
MAX_VARIANTS = 64
MAX_MEMBERS = 8  # of a class that is taken apart
LONGEST_TERM = 30  # bytes; of longer words the index may know nothing
_LETTERS = r"\p{Alphabetic}\p{L}\p{M}\p{N}"  # at least what the index takes for parts of words
_WHOLE_WORD = regex.compile(rf"(?<![{_LETTERS}{ANY}])[{_LETTERS}]+(?![{_LETTERS}{ANY}])")

Alternatives = tuple[frozenset[str], ...]  # sets of terms, as `legal_rag.library.bm25.lexical_words` gives them
Variants = frozenset[str]  # texts that a part of a pattern may match, with `ANY` and `END` in them
UNKNOWN: Variants = frozenset({ANY})


class Match(TypedDict):
    """A passage that a pattern matches: `content[start:end]`."""

    start: int  # characters of the document's content
    end: int
    text: str  # the passage, or its first `SHOWN_CHARS` and "…"
    context: NotRequired[str]  # the passage and what surrounds it, where that was asked for


class Grepped(dict[str, list[Match]]):
    """Matches by document, in index order, and how far the search went.

    Of `total` documents the texts of `scanned` were read; the others were ruled out by the lexical index or never
    reached. In the latter case `complete` is false, and `out_of_time` says whether the time limit was the reason.
    `shortened` lists the documents that match more often than is shown, or may, where time was over.
    """

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total, self.scanned, self.complete, self.out_of_time = total, 0, True, False
        self.shortened: list[str] = []


@dataclass(frozen=True)
class GrepQuery:
    """A pattern, where to search, and how much to return."""

    pattern: str  # see `compile_pattern`
    max_docs: int | None = 100  # matching documents returned at most; None is all
    doc_ids: tuple[str, ...] | None = None  # documents to search; None is all, unknown ids are ignored
    ignore_case: bool = True
    fold: bool = False
    max_matches_per_doc: int | None = 50  # None is `MAX_IN_DOCUMENT`
    context: int = 0  # characters shown on either side of each match


class CorpusGrep:
    """Regular-expression search over the texts of one Library; `seconds` limits each search, None does not."""

    def __init__(self, library: Library, seconds: float | None = SECONDS) -> None:
        self._library, self._seconds = library, seconds

    def search(self, query: GrepQuery) -> Grepped:
        """Find the documents that match a pattern.

        Raises:
            ValueError: If the pattern is refused; see `compile_pattern`.
        """
        compiled = compile_pattern(query.pattern, ignore_case=query.ignore_case, fold=query.fold)
        wanted = None if query.doc_ids is None else list(dict.fromkeys(query.doc_ids))
        found = Grepped(self._library.n_documents if wanted is None else len(wanted))
        most = MAX_IN_DOCUMENT if query.max_matches_per_doc is None else query.max_matches_per_doc
        ends = math.inf if self._seconds is None else time.monotonic() + self._seconds
        left, chars_left = MAX_MATCHES, MAX_CHARS
        for doc_id, data in self._texts(compiled, wanted):
            check()
            found.out_of_time = time.monotonic() > ends
            if left <= 0 or chars_left <= 0 or found.out_of_time:
                found.complete = False
                break
            spans = list(islice(compiled.spans(data, ends), min(most, left) + 1))
            if spans and query.max_docs is not None and len(found) >= query.max_docs:
                found.complete = False
                break
            found.out_of_time = time.monotonic() > ends
            found.scanned += not found.out_of_time
            if spans:
                shown = matches_at(spans[: min(most, left)], data.decode(), query.context, chars_left)
                found[doc_id] = shown
                left -= len(shown)
                chars_left -= sum(map(_chars, shown))
                found.shortened += [doc_id] * (len(spans) > len(shown) or found.out_of_time)
            found.complete = found.complete and not found.out_of_time
        return found

    def _texts(self, pattern: "Pattern", wanted: Sequence[str] | None) -> Iterator[tuple[str, bytes]]:
        """Stream the texts that may match."""
        contents, places = self._library.contents(), self._candidates(pattern)
        if places is None or (wanted is not None and len(wanted) <= len(places)):
            return contents.all() if wanted is None else contents.of(wanted)
        if wanted is None:
            return contents.at(places)
        among = set(wanted)
        return (row for row in contents.at(places) if row[0] in among)

    def _candidates(self, pattern: "Pattern") -> list[tuple[int, int]] | None:
        """Return a position of each document that holds the required words; None if that does not help."""
        if pattern.required is None or self._lexical is None:
            return None
        most = min(self._library.n_documents // SHARE_OF_CORPUS, MAX_CANDIDATES)
        return self._lexical.documents_having(pattern.required, most)

    @cached_property
    def _lexical(self) -> LexicalIndex | None:
        try:
            return self._library.lexical_index()
        except FileNotFoundError:  # all texts are read then
            return None


def grep_text(
    content: str, pattern: str, *, ignore_case: bool = True, fold: bool = False, context: int = 0
) -> list[Match]:
    """Find all matches in one text; see `GrepQuery`.

    Raises:
        ValueError: If the pattern is refused, matches more than `MAX_IN_DOCUMENT` times, or takes too long; in French.
    """
    compiled = compile_pattern(pattern, ignore_case=ignore_case, fold=fold)
    ends = time.monotonic() + DOCUMENT_SECONDS
    spans = list(islice(compiled.spans(content.encode(), ends), MAX_IN_DOCUMENT + 1))
    if len(spans) > MAX_IN_DOCUMENT:
        raise ValueError(f"plus de {MAX_IN_DOCUMENT} occurrences dans ce document : précisez le motif")
    if time.monotonic() > ends:
        raise ValueError(f"motif trop lent : plus de {DOCUMENT_SECONDS:g} s ; évitez les répétitions sans fin")
    found = matches_at(spans, content, context, MAX_CHARS)
    if len(found) < len(spans):
        raise ValueError(f"plus de {MAX_CHARS} caractères d'occurrences : demandez moins de contexte")
    return found


def matches_at(spans: Sequence[tuple[int, int]], content: str, context: int, most_chars: int) -> list[Match]:
    """Return the passages at some spans of a text, with `context` characters on either side, up to `most_chars`."""
    found: list[Match] = []
    for start, end in spans:
        if most_chars <= 0:
            break
        text = content[start:end] if end - start <= SHOWN_CHARS else content[start : start + SHOWN_CHARS] + "…"
        match = Match(start=start, end=end, text=text)
        if context:
            match["context"] = f"{content[max(0, start - context) : start]}{text}{content[end : end + context]}"
        found.append(match)
        most_chars -= _chars(match)
    return found


def _chars(match: Match) -> int:
    return len(match["text"]) + len(match.get("context", ""))


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern.

    `loose` matches wherever `exact` may; `exact` is None where the pattern has no word borders. Each match holds all
    the terms of one of the sets in `required`, where that is known.
    """

    loose: Any
    exact: Any
    required: Alternatives | None

    def spans(self, data: bytes, ends: float = math.inf) -> Iterator[tuple[int, int]]:
        """Yield the spans of all matches, in characters, in order, without overlap; none is empty.

        Args:
            data: A text in UTF-8.
            ends: When to end early, on the monotonic clock.

        Raises:
            DeadlineError: Past the deadline.
        """
        if self.exact is None:
            yield from _spans(self.loose, data, ends)
        elif next(_matches(self.loose, data, ends), None) is not None:
            text = data.decode().replace(MARK, "\x02")
            yield from _spans(self.exact, MARKS.join(_WORD.split(text)).encode(), ends, marked=True)


@lru_cache(COMPILED)
def compile_pattern(pattern: str, *, ignore_case: bool = True, fold: bool = False) -> Pattern:
    r"""Compile a pattern in RE2's syntax, with the Unicode classes and borders of this module.

    `^` and `$` match at line breaks; `\A` and `\z` at the ends of the text. No `\b` matches after a `$` or before a
    `^`.

    Args:
        pattern: What is looked for.
        ignore_case: Match regardless of case.
        fold: Match regardless of accents and of the kind of apostrophes, dashes and blanks.

    Raises:
        ValueError: If RE2 lacks something in it, or it is malformed, too long, too large, or matches an empty text; the
            message is French and says what to write instead.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"motif refusé : {len(pattern)} caractères, {LONGEST_PATTERN} au plus")
    if pattern != storable(pattern):
        raise ValueError("motif mal formé : il contient un demi-caractère")
    pattern = normalized(pattern)
    flags = "(?im)" if ignore_case else "(?m)"
    _compiled(pattern)
    if bounds := re.search(r"(?<!\\)\{,\d+\}", pattern):
        raise ValueError(f"motif refusé : RE2 lit {bounds.group()} comme un texte ; écrivez {{0,{bounds.group()[2:]}")
    try:
        reader = _Reader(pattern, fold)
        part = reader.alternatives()
    except RecursionError:
        raise ValueError("motif refusé : trop de parenthèses imbriquées") from None
    if part.items > MAX_ITEMS:
        raise ValueError(_TOO_LARGE)
    loose = _compiled(flags + part.loose)
    if loose.search(b"") is not None:
        raise ValueError("motif refusé : il correspond aussi à un texte vide ; précisez ce qu'il doit contenir")
    exact = _compiled(flags + part.exact) if reader.has_borders else None
    return Pattern(loose, exact, None if fold else _required_terms(part.variants))


def _compiled(written: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(written, options)
    except re2.error as error:
        raise ValueError(_in_french(error.args[0].decode(errors="replace"))) from error
    finally:
        re2.purge()  # its own cache may grow to a gigabyte


def _in_french(message: str) -> str:
    """Say in French what is wrong with a pattern, and what to write instead."""
    if "repetition size" in message or "too large" in message:
        return _TOO_LARGE
    if "unexpected )" not in message and "missing" not in message:
        for sign, what, instead in _LACKING:
            if re.search(sign, message):
                return f"motif refusé : RE2, moteur à temps linéaire, n'a pas {what} ; {instead}"
    return f"motif mal formé (RE2 : {quoted(message, SHOWN_CHARS)})"


def _spans(compiled: Any, data: bytes, ends: float, *, marked: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where a compiled pattern matches, in characters of the text without its marks."""
    at_byte = at = 0
    for first, last in _matches(compiled, data, ends):
        start = at + _length(data[at_byte:first], marked)
        at_byte, at = last, start + _length(data[first:last], marked)
        yield start, at


def _matches(compiled: Any, data: bytes, ends: float) -> Iterator[tuple[int, int]]:
    """Yield where a compiled pattern matches, in bytes.

    A match that begins in the first half of a stretch, and ends in it, is the one there is in the whole text. Where a
    text is longer than a stretch, which is short for a large pattern, longer matches are cut at its end, or missed.
    """
    at, size, stretch = 0, len(data), _stretch(compiled)
    while True:
        end = min(at + stretch, size)
        last = size if end == size else at + stretch // 2  # where a match may begin
        for match in compiled.finditer(data, at, end):
            span = match.span()
            if span[0] > last:
                break
            at = span[1]
            yield span
            if _is_late(ends):
                return
        if end == size or _is_late(ends):
            return
        at = max(at, _character_at(data, last))


@lru_cache(2 * COMPILED)
def _stretch(compiled: Any) -> int:
    """Return how many bytes a pattern takes some `STRETCH_NS` for at worst."""
    return int(STRETCH_NS / min(MOST_NS, STEP_NS * compiled.programsize))


def _is_late(ends: float) -> bool:
    """Tell whether a time is over; past the deadline, raise DeadlineError."""
    check()
    return time.monotonic() > ends


def _character_at(data: bytes, at: int) -> int:
    """Return where the character around a byte begins."""
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _length(piece: bytes, marked: bool) -> int:
    return len(piece.decode()) - (piece.count(MARK.encode()) if marked else 0)


class _Part(NamedTuple):
    """A part of a pattern: for texts as they are, for marked texts, and the texts that it may match."""

    loose: str
    exact: str
    variants: Variants
    items: int  # with counted repetitions written out


class _Reader:
    """Reads a pattern that RE2 accepts, and rewrites it by the rules of this module."""

    def __init__(self, pattern: str, fold: bool) -> None:
        self._tokens = list(_TOKEN.finditer(pattern))[::-1]  # the next one is the last
        self._fold, self._dot_all = fold, False
        self.has_borders = False

    def alternatives(self) -> _Part:
        """Read up to the end of the pattern or of a group; options that are set within end there."""
        dot_all, parts = self._dot_all, [self._sequence()]
        while self._tokens and self._tokens.pop()["alternative"]:
            parts.append(self._sequence())
        self._dot_all = dot_all
        variants = frozenset[str]().union(*(part.variants for part in parts))
        return _Part(
            "|".join(part.loose for part in parts),
            "|".join(part.exact for part in parts),
            variants if len(variants) <= MAX_VARIANTS else UNKNOWN,
            sum(part.items for part in parts),
        )

    def _sequence(self) -> _Part:
        whole = _Part("", "", frozenset({""}), 0)
        while self._tokens and not (self._tokens[-1]["alternative"] or self._tokens[-1]["close"]):
            part = self._item(self._tokens.pop())
            if self._tokens and self._tokens[-1]["repeat"]:
                part = _repeated(part, self._tokens.pop())
            variants = part.variants if len(whole.variants) * len(part.variants) <= MAX_VARIANTS else UNKNOWN
            joined = frozenset(before + after for before in whole.variants for after in variants)
            whole = _Part(whole.loose + part.loose, whole.exact + part.exact, joined, whole.items + part.items)
        return whole

    def _item(self, token: re.Match[str]) -> _Part:
        if (quoted := token["quoted"]) is not None:
            literal = (char if char.isalnum() else f"\\{char}" for char in quoted[::-1])
            self._tokens += [found for one in literal if (found := _TOKEN.fullmatch(one))]
            return _Part("", "", frozenset({""}), 0)
        if token["border"]:
            self.has_borders = True
            return _Part("(?:)", MARK, frozenset({END}), 1)
        if (place := token["place"]) is not None:
            return _Part(place, place if place in ("$", r"\z") else f"{place}{MARK}*", frozenset({END}), 1)
        if token["ends"] or token.group().startswith("("):
            return self._group(token)
        if token["any"]:
            return _unit(".", UNKNOWN, f"[^{MARK}]" if self._dot_all else rf"[^\n{MARK}]")
        return self._characters(token)

    def _group(self, token: re.Match[str]) -> _Part:
        opened = f"(?{token['flags']}:" if token["flags"] else "(?:"
        before = self._dot_all
        if flags := token["flags"]:
            on, _, off = flags.partition("-")
            self._dot_all = "s" not in off and (self._dot_all or "s" in on)
        if token["ends"] == ")":  # for the rest of the group around
            return _Part(token.group(), token.group(), frozenset({""}), 0)
        inner = self.alternatives()
        self._dot_all = before
        return inner._replace(loose=f"{opened}{inner.loose})", exact=f"{opened}{inner.exact})")

    def _characters(self, token: re.Match[str]) -> _Part:
        if name := token["perl"]:
            return _unit(f"[{PERL_CLASSES[name]}]", frozenset({END}) if name in "sW" else UNKNOWN)
        if (body := token["body"]) is not None:
            return self._class(body, token["negated"])
        if other := token["other"]:
            if other[1] in "BC":
                raise ValueError(rf"motif refusé : \{other[1]} n'est pas pris en charge ; écrivez \w, \W ou .")
            return _unit(f"[^\\p{other[2:]}{MARK}]" if other[1] == "P" else other, UNKNOWN)
        escaped = token["escaped"]
        char = token["char"] or _ESCAPED.get(escaped, escaped)
        if self._fold and char.isspace():
            return _unit(f"[{PERL_CLASSES['s']}{INVISIBLE}]", frozenset({END}), repeat="+")
        forms = _same().get(char, "") if self._fold else ""
        return _unit(f"[{_quoted(char)}{forms}]" if forms else _quoted(char), frozenset({_shown(char)}))

    def _class(self, body: str, negated: str) -> _Part:
        written, kinds, chars = "", set[str | None](), list[str]()
        for member in _MEMBER.finditer(body):
            kinds.add(member["perl"] or member.lastgroup)
            if member["perl"]:
                written += PERL_CLASSES[member["perl"]]
            elif member["other"] or member["range"]:
                written += member.group()
            else:
                char = member["char"] or _ESCAPED.get(member["escaped"], member["escaped"])
                chars.append(char)
                written += _quoted(char) + (_same().get(char, "") if self._fold else "")
        if re.search(r"\\P|\[:\^", written) and not negated:
            raise ValueError(r"motif refusé : \P{…} et [:^…:] ne vont pas entre crochets ; écrivez [^…]")
        variants = UNKNOWN
        if not negated and kinds <= {"s", "W", "char", "escaped"} and all(_shown(char) == END for char in chars):
            variants = frozenset({END})
        elif not negated and kinds <= {"char", "escaped"} and len(chars) <= MAX_MEMBERS:
            variants = frozenset(map(_shown, chars))
        return _unit(f"[{negated}{written}]", variants, f"[^{written}{MARK}]" if negated else "")


def _unit(loose: str, variants: Variants, exact: str = "", repeat: str = "") -> _Part:
    """Return the part for one character; in marked texts, marks may follow."""
    return _Part(f"(?:{loose}{repeat})" if repeat else loose, f"(?:(?:{exact or loose}{MARK}*){repeat})", variants, 1)


def _repeated(part: _Part, token: re.Match[str]) -> _Part:
    sign = token.group()
    least = int(token["least"]) if token["least"] else int(token["repeat"] == "+")
    exactly = least if token["least"] and not token["open"] else 1 if token["repeat"] == "?" else None
    most = int(token["most"]) if token["most"] else exactly
    none: Variants = frozenset() if least else frozenset({""})
    if most == 1 or part.variants == {END}:  # any number of ends is one
        variants = part.variants | none
    else:
        variants = frozenset(variant + ANY for variant in part.variants) if least else UNKNOWN
    times = max(1, most or least)
    return _Part(f"(?:{part.loose}){sign}", f"(?:{part.exact}){sign}", variants, times * max(1, part.items))


def _required_terms(variants: Variants) -> Alternatives | None:
    """Return sets of terms of which each match holds one; None if it may hold none."""
    found = {frozenset(_terms(ANY + variant + ANY)) for variant in variants}
    return tuple(sorted(found, key=sorted)) if all(found) else None


def _terms(variant: str) -> Iterable[str]:
    for word in _WHOLE_WORD.findall(variant):
        if len(word.encode()) <= LONGEST_TERM:
            yield from lexical_words(word)


def _shown(char: str) -> str:
    return char if char == ANY or _LETTER.match(char) else END


def _quoted(char: str) -> str:
    """Write a character so that RE2 reads it as itself, within a class and without."""
    return char if char.isalnum() or not char.isascii() else f"\\x{{{ord(char):x}}}"


@lru_cache(1)
def _same() -> dict[str, str]:
    """Return what folding matches for a character besides itself: accented forms, apostrophes, dashes."""
    forms: dict[str, set[str]] = {"'": set(APOSTROPHES), "-": set(DASHES)}
    for letter in map(chr, range(0xC0, 0x250)):
        base = unicodedata.normalize("NFD", letter)[0]
        if base.isascii():
            forms.setdefault(base, set()).add(letter)
    return {char: "".join(sorted(some | {base})) for base, some in forms.items() for char in {base, *some}}
