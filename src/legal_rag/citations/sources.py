"""Texts of documents: where a quotation is in them, word for word or nearly, what they state, who speaks."""

import difflib
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from cachetools import LRUCache

from legal_rag.base.text import LETTERS, Folded, Span, find_exact, fold, is_whole, widened
from legal_rag.citations.claims import BRACKETS, ClaimPart, Join, edited_reading, readings_of
from legal_rag.citations.facts import Fact, Stated, find_facts, needles_of, stated_in
from legal_rag.citations.plain import plain_words
from legal_rag.citations.wording import content_stems, cues_of
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import outcome_of
from legal_rag.law import read
from legal_rag.law.courts import find_courts, find_formations, level_of, words_of_value
from legal_rag.law.outcomes import Outcome
from legal_rag.law.reading import read_letterhead
from legal_rag.law.sentences import split_sentences
from legal_rag.law.tree import Paragraph
from legal_rag.law.words import negations
from legal_rag.library.bm25 import LexicalIndex, lexical_words
from legal_rag.library.library import Library
from legal_rag.library.outlines import make_outline

_KEY = re.compile(r"[^\W\d_]{2,}")
_SPELT_OTHERWISE = {"euro", "euros", "eme", "ème", "ère", "me", "re", "no", "nos"}
_MAY_BE_ONE = re.compile("oe|ae|fi|fl|ss")  # these letters may have been one sign before folding
SLACK = 60  # characters beyond twice the length of a quotation that its match may span: line breaks
MOST_LEFT_OUT = 1500  # characters of the document that one ellipsis may replace
MOST_REPLACED = 60  # and an editor's insertion
MOST_PLACES = 200  # of a word in one text that are tried
MOST_PARTS, MOST_SPANS = 20, 200  # of one quotation, and of each part in one text
_SENTENCE_END = re.compile(r"(?:(?<=\w\w)|(?<=[)»\"]))\s?[.;!?](?=\s)|\n\s*\n")
_DANGLING = re.compile(
    r"\b(?:que?|qu['’]|de|d['’]|à|par|pour|l[ea]s?|l['’]|des|du|et|ou|ne|n['’]|se|en|dans|sur|avec|dont|qui)\s*\Z"
)
_SENTENCE_START = re.compile(r"(?:[.;:!?]|\n|\A)[\s–—-]*(?:\d{1,3}\s?[.°)/-]+\s*)?[\s–—«\"-]*\Z")
_NUMBER_GOES_ON, _NUMBER_BEFORE = re.compile(r"[-/.]\d"), re.compile(r"\d[-/.]$")
KEYS_TRIED = 2  # longest words of a quotation; the rarest of them locates it
_HARMLESS = {"grows", "shrinks", "must"}
# What an ellipsis may not leave out besides negations: who says it, on what condition, what is asked for, the conditional.
_TURNS = re.compile(
    r"\b(?:qu(?:e|['’])|lorsqu|puisqu|quoiqu|si\b|s['’]ils?\b|dont\b|tend(?:ant|ent|ait)\b|visant\b|aux fins\b|à titre\b|condition|hypothèse|selon\b|d['’]après\b|conclusions\b|suppos|sous réserve|chef\b|éventuel|\w+r(?:ait|aient|ions|iez)\b)"
)
# The number that opens a paragraph of a decision: "12. Il résulte", at a line's start or after a sentence.
_POINT = re.compile(r"(?:\A|\n|(?<=[.;:])\s)\s*(?P<number>[1-9]\d{0,2})\.\s{0,3}(?=[A-ZÀ-Ý«\[(])")
FEWEST_POINTS = 2  # numbered paragraphs
FACT_BEFORE, FACT_AFTER = 80, 120  # characters around a fact's figures in which it is stated
HEAD_CHARS = 3000  # of a text, in which a decision names its court, date and number


class SourceText:
    """One document's text, with cached searches."""

    def __init__(self, doc_id: str, content: str, document: Document | None = None, passages: Any = None) -> None:
        """Take a text, with its document's metadata where there are any.

        `passages` is a function that returns who speaks where; None reads the text.
        """
        self.doc_id, self.content = doc_id, content
        self._document, self._read_passages = document, passages
        self._spans_by_quotation: dict[str, list[Span]] = {}
        self._stems: dict[int, frozenset[str]] = {}  # of sentences, by their number

    @property
    def title(self) -> str:
        """The document's title; empty if it is not known."""
        return self._document.title if self._document else ""

    def quotation_spans(self, quotation: str) -> list[Span]:
        """Return where the text holds a quotation, whole words only, in order.

        Words are compared up to case, typography, line breaks and hyphens at them. An ellipsis may not replace a word
        that changes the meaning, nor lead from the middle of one sentence to that of another.
        """
        if quotation not in self._spans_by_quotation:
            readings = readings_of(quotation)
            self._spans_by_quotation[quotation] = next(filter(None, map(self._spans_in_order, readings)), [])
        return self._spans_by_quotation[quotation]

    def edited_spans(self, quotation: str) -> list[Span]:
        """Return where the text holds a quotation whose words in brackets are an editor's."""
        parts = edited_reading(quotation)
        return self._spans_in_order(parts) if len(parts) > 1 else []

    def sentences_in(self, start: int, end: int) -> list[Span]:
        """Return the sentences that share a character with a span."""
        return self.sentence_spans[slice(*self.sentence_numbers(start, end))]

    def sentence_numbers(self, start: int, end: int) -> Span:
        """Return the numbers of the sentences that share a character with a span: the first, and one past the last."""
        first = max(bisect_right(self.sentence_spans, (start, len(self.content))) - 1, 0)
        return first, max(bisect_left(self.sentence_spans, (end, 0)), first + 1)

    def stems_of_sentences(self, first: int, last: int) -> list[frozenset[str]]:
        """Return the stems of what each of the sentences from `first` to before `last` says, as far as there are any."""
        for number in range(max(first, 0), min(last, len(self.sentence_spans))):
            if number not in self._stems:
                start, end = self.sentence_spans[number]
                self._stems[number] = content_stems(plain_words(self.content[start:end]))
        return [self._stems[number] for number in range(max(first, 0), min(last, len(self.sentence_spans)))]

    def stated(self, start: int, end: int) -> Stated:
        """Return what a span of the text states."""
        return stated_in(plain_words(self.content[start:end]))

    def states(self, fact: Fact, start: int, end: int) -> bool:
        """Does a span of the text, widened to whole words, state a fact?"""
        start, end = widened(self.content, (max(start, 0), min(end, len(self.content))))
        return self.stated(start, end).holds(fact)

    def states_somewhere(self, fact: Fact) -> bool:
        """Does the text state a fact anywhere? Only the text around its figures, or its words, is read."""
        if fact.kind == "name":
            return any(is_whole(self.content, span) for span in find_exact(fact.value[0], self.lower)[:MOST_PLACES])
        places = [at for needle in needles_of(fact) for at, _ in find_exact(needle, self.lower)[:MOST_PLACES]]
        return any(self.states(fact, at - FACT_BEFORE, at + FACT_AFTER) for at in sorted(places)[:MOST_PLACES])

    def names_court(self, words: frozenset[str]) -> bool:
        """Does the text name a court by all these words, as `words_of_value` gives them?"""
        return any(words <= court for court in self._courts_named)

    @cached_property
    def _courts_named(self) -> set[frozenset[str]]:
        spans = [*find_courts(self.content), *find_formations(self.content)]
        return {words_of_value(self.content[slice(*span)]) for span in spans}

    def sentence_around(self, span: Span) -> Span:
        """Return the sentence, or the sentences, that a span lies in."""
        inside = self.sentences_in(*span)
        return inside[0][0], inside[-1][1]

    @cached_property
    def lower(self) -> str:
        """The text in lower case, character by character."""
        lower = self.content.lower()
        if len(lower) == len(self.content):
            return lower
        return "".join(low if len(low := letter.lower()) == 1 else letter for letter in self.content)

    @cached_property
    def own(self) -> "Known":
        """What is known of the decision itself."""
        return known_of(self._document, self.content)

    @cached_property
    def outcome(self) -> Outcome:
        """How the decision ended, by its metadata, else by its ruling."""
        return outcome_of(self.own.solution, level_of(self.own.court, "", self.own.title), self.content, None)

    @cached_property
    def passages(self) -> Sequence[Paragraph]:
        """Who speaks where, in order."""
        if self._read_passages is not None:
            return self._read_passages()
        return (self._document.reading if self._document else read(self.content)).paragraphs

    def passage_at(self, span: Span) -> Paragraph | None:
        """Return the stretch by one speaker that holds most of a span."""
        inside = [passage for passage in self.passages if passage.start < span[1] and span[0] < passage.end]
        return max(inside, key=lambda passage: min(passage.end, span[1]) - max(passage.start, span[0]), default=None)

    def court_speaks_at(self, span: Span) -> bool:
        """Does the court itself speak in a span, possibly in the words of a statute?"""
        paragraph = self.passage_at(span)
        return paragraph is not None and paragraph.speaker in ("court", "text") and not paragraph.censured

    @cached_property
    def points(self) -> dict[int, Span]:
        """The numbered paragraphs of a decision, by number; empty where they are not numbered from 1 on without gaps."""
        starts: list[int] = []
        for match in _POINT.finditer(self.content):
            if int(match["number"]) == len(starts) + 1:
                starts.append(match.start("number"))
        if len(starts) < FEWEST_POINTS:
            return {}
        return dict(enumerate(zip(starts, [*starts[1:], len(self.content)], strict=True), start=1))

    @cached_property
    def sentence_spans(self) -> list[Span]:
        """The sentences of the text."""
        return split_sentences(self.content)

    @cached_property
    def _other_words(self) -> str:
        """Words that a quotation may spell otherwise: hyphenated at a line's end, hidden characters, accented capitals."""
        words = {self.content[slice(*self._word_around(match.span()))] for match in _ODD_SIGN.finditer(self.content)}
        both = " ".join(sorted(words | {word.translate(_CAPITALS) for word in words}))
        return " ".join(
            _HIDDEN_OR_HYPHEN.sub("", fold(word).text) for word in re.findall(r"\S+(?:[-\u2010\u2011]\s+\S+)?", both)
        )

    def _word_around(self, span: Span) -> Span:
        start, end = span
        while start and self.content[start - 1].isalnum() and span[0] - start < LONGEST_WORD:
            start -= 1
        while end < len(self.content) and self.content[end].isalnum() and end - span[1] < LONGEST_WORD:
            end += 1
        return start, end

    def _may_contain(self, text: str) -> bool:
        return all(key in self.lower or key in self._other_words for key in _needle(text)[1])

    def _spans_in_order(self, parts: Sequence[ClaimPart]) -> list[Span]:
        if not all(self._may_contain(part.text) for part in parts):
            return []
        runs = [(hit, hit) for hit in self._find_spans(parts[0].text)[:MOST_SPANS]]  # first and last part found so far
        for before, part in pairwise(parts[:MOST_PARTS]):
            spans = self._find_spans(part.text)[:MOST_SPANS] if runs else []
            following = ((first, self._next_span(last[1], spans, before.then)) for first, last in runs)
            runs = [(first, span) for first, span in following if span]
        return [(first[0], last[1]) for first, last in runs]

    def _next_span(self, start: int, spans: Sequence[Span], join: Join) -> Span | None:
        """Return the first span from `start` on, if the ellipsis or insertion before it is allowed."""
        number = bisect_left(spans, (start, 0))
        if number == len(spans):
            return None
        end = spans[number][0]
        allowed = self._may_be_cut(start, end) if join == "cut" else self._may_be_replaced(start, end, join)
        return spans[number] if allowed else None

    def _may_be_cut(self, start: int, end: int) -> bool:
        if end - start > MOST_LEFT_OUT:
            return False
        if _SENTENCE_END.search(self.lower, start, end) and (
            not _SENTENCE_START.search(self.lower, start, end) or _DANGLING.search(self.lower, max(0, start - 8), start)
        ):
            return False
        return not self._turns_meaning(start, end)

    def _may_be_replaced(self, start: int, end: int, join: Join) -> bool:
        if join == "nothing":
            return not self.content[start:end].strip()
        return (
            end - start <= MOST_REPLACED
            and not _SENTENCE_END.search(self.lower, start, end)
            and not self._turns_meaning(start, end)
        )

    def _turns_meaning(self, start: int, end: int) -> bool:
        """Does the text left out have a word that changes the meaning of the rest?"""
        return bool(cues_of(self.content[start:end]) - _HARMLESS or _TURNS.search(self.lower, start, end))

    def _find_spans(self, passage: str) -> list[Span]:
        """Find spans equal to `passage` up to squeezing, or else up to accents of capitals too."""
        if spans := self._search_spans(passage, self.content, self.lower):
            return spans
        content, lower = self._without_accents
        if content == self.content and not _ACCENTED_CAPITAL.search(passage):
            return []
        return self._search_spans(passage.translate(_CAPITALS), content, lower)

    @cached_property
    def _without_accents(self) -> tuple[str, str]:
        """The text without accents on its capitals, and that in lower case."""
        if not _ACCENTED_CAPITAL.search(self.content):
            return self.content, self.lower
        content = self.content.translate(_CAPITALS)
        return content, content.lower()

    def _search_spans(self, passage: str, content: str, lower: str) -> list[Span]:
        folded, keys = _needle(passage)
        if not folded:
            return []
        if not keys:  # signs and figures alone
            return self._keep_whole_words(find_exact(passage.strip(), content)[:MOST_SPANS])
        present = [key for key in keys if key in lower]
        key = min(present[:KEYS_TRIED], key=lower.count, default="")
        places = find_exact(key, lower)
        around = SLACK + 2 * len(folded)
        windows = [(max(0, at - around), end + around) for at, end in places]
        if not key or len(present) < len(keys) or len(places) > MOST_PLACES:
            near = windows or [(0, len(content))]
        else:
            near = [window for window in windows if all(other in lower[slice(*window)] for other in present)]
        spans = [span for first, last in _merge_windows(near) for span in _find_squeezed(folded, content, first, last)]
        return self._keep_whole_words(spans)

    def _keep_whole_words(self, spans: Sequence[Span]) -> list[Span]:
        return [span for span in spans[:MOST_SPANS] if is_whole(self.content, span) and not self._cuts_number(span)]

    def _cuts_number(self, span: Span) -> bool:
        """Does a span end or begin within a number such as 'L. 1232-6' or '12-34.567'?"""
        start, end = span
        behind = self.content[end - 1].isdigit() and _NUMBER_GOES_ON.match(self.content, end)
        ahead = self.content[start].isdigit() and _NUMBER_BEFORE.search(self.content, max(0, start - 2), start)
        return bool(behind or ahead)


class Known(NamedTuple):
    """What is known of a decision itself, by its metadata, else by its head."""

    date: str = ""  # ISO 8601
    numbers: frozenset[str] = frozenset()  # normalised
    court: str = ""  # juridiction and formation
    solution: str = ""
    title: str = ""

    @property
    def court_words(self) -> frozenset[str]:
        """The words that distinguish its court and chamber."""
        return words_of_value(f"{self.court} {self.title}")


def known_of(document: Document | None, content: str) -> Known:
    """Return what is known of a decision."""
    head = content[:HEAD_CHARS]
    if document is None:
        return Known(date=read_letterhead(head).date)
    names = "\n".join(
        str(name) for name in (document.extra.get("number"), document.extra.get("ecli"), document.title) if name
    )
    numbers = frozenset(fact.value for fact in find_facts(f"n° {names}") if fact.kind == "case")
    date = document.decision_date or read_letterhead(head).date
    court = " ".join(filter(None, (document.juridiction, document.formation)))
    return Known(date, numbers, court, document.solution, document.title)


_ACCENTED_CAPITAL = re.compile("[ÀÂÄÉÈÊËÎÏÔÖÙÛÜÇ]")
# Where a word may be spelt otherwise than in a quotation.
_ODD_SIGN = re.compile(
    r"[ÀÂÄÉÈÊËÎÏÔÖÙÛÜÇ\u00ad\u200b-\u200d\u2060œæŒÆﬁﬂß\u0300-\u036f]|[-\u2010\u2011][ ]?\n\s{0,4}(?=[^\W\d_])"
)
_HIDDEN_OR_HYPHEN = re.compile(r"[-\s]")
LONGEST_WORD = 40  # letters
_CAPITALS = str.maketrans("ÀÂÄÉÈÊËÎÏÔÖÙÛÜÇ", "AAAEEEEIIOOUUUC")
# What typography and line breaks change in a folded text; replaced by its `_EVENED` form, or removed.
_UNEVEN = re.compile(
    r"(?P<dropped>[ \"*_`])|(?P<hyphen>(?<=[^\W\d_])-[ ]?(?=[^\W\d_]))|(?P<thousands>(?<=\d)\.(?=\d{3}(?!\d)))"
    r"|(?P<prefix>(?<=\b[lrda])\.(?=[ ]?o?\.?[ ]?\*?\d))|(?P<euros>€|(?<=\d )euros?\b|(?<=\d)euros?\b)|(?P<ordinal>(?<=\d)[eè]?me\b|(?<=1)[eè]re\b)|(?P<no>[°º])"
)
_EVENED = {"euros": "€", "no": "o"}


def squeezed(text: str) -> Folded:
    """Fold a text and even out typography: blanks, quotation marks, hyphens, "L. 1" and "L 1", "20.000" and "20 000"."""
    folded = fold(text)
    pieces: list[str] = []
    starts = array("q")
    done = 0
    for match in _UNEVEN.finditer(folded.text):
        kind = match.lastgroup or ""
        evened = _EVENED.get(kind, "")
        if kind == "ordinal":
            evened = "re" if match.group().endswith("re") else "e"
        pieces += [folded.text[done : match.start()], evened]
        starts.extend(folded.starts[done : match.start()])
        starts.extend([folded.starts[match.start()]] * len(evened))
        done = match.end()
    pieces.append(folded.text[done:])
    starts.extend(folded.starts[done:])
    return Folded("".join(pieces), starts)


def _find_squeezed(folded: str, content: str, first: int, last: int) -> list[Span]:
    text = squeezed(content[first:last])
    spans = []
    for start, end in find_exact(folded, text.text):
        # The end is that of the last letter, not the start of the next one after a blank.
        stop = first + text.starts[end - 1] + 1
        if folded.endswith("€") or folded[-2:-1].isdecimal():  # for "euros", "2ème"
            while stop < len(content) and content[stop].isalpha() and content[stop - 1].isalpha():
                stop += 1
        spans.append((first + text.starts[start], stop))
    return spans


def _merge_windows(windows: Iterable[Span]) -> Iterator[Span]:
    """Join overlapping windows, given in order."""
    first, last = 0, -1
    for start, end in windows:
        if start > last >= 0:
            yield first, last
        if last < 0 or start > last:
            first = start
        last = max(end, last)
    if last >= 0:
        yield first, last


@lru_cache(1024)
def _needle(passage: str) -> tuple[str, list[str]]:
    """Return a passage squeezed, and its words that squeezing leaves unchanged, the longest first."""
    words = set(_KEY.findall(_MAY_BE_ONE.sub(" ", fold(passage).text))) - _SPELT_OTHERWISE
    return squeezed(passage).text, sorted(words, key=lambda word: (-len(word), word))


class SourceTexts:
    """The documents that an answer may cite, each looked up once."""

    def __init__(self, documents: Any) -> None:
        """Take a Library, another corpus, or a mapping from document id to text."""
        self._documents = documents
        self._sources: dict[str, SourceText | None] = {}

    def get(self, doc_id: str) -> SourceText | None:
        """Return a document's text, or None if there is no such document."""
        if doc_id not in self._sources:
            self._sources[doc_id] = self._look_up(doc_id)
        return self._sources[doc_id]

    def all_ids(self) -> list[str]:
        """Return the ids of a mapping; of a corpus, none: it is never read as a whole."""
        return list(self._documents) if isinstance(self._documents, Mapping) else []

    def _look_up(self, doc_id: str) -> SourceText | None:
        try:
            doc_id.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no store accepts
            return None
        if hasattr(self._documents, "document"):
            return self._look_up_in_corpus(doc_id)
        content = self._documents.get(doc_id) if isinstance(self._documents, Mapping) else None
        return SourceText(doc_id, content) if isinstance(content, str) else None

    def _look_up_in_corpus(self, doc_id: str) -> SourceText | None:
        # Membership is tested first: a failed look-up searches for the nearest id.
        if hasattr(self._documents, "__contains__") and doc_id not in self._documents:
            return None
        try:
            document = self._documents.document(doc_id)
        except LookupError:
            return None

        def passages() -> Sequence[Paragraph]:
            stored = self._documents.stored_outline(document) if hasattr(self._documents, "stored_outline") else None
            return (stored or make_outline(document)).passages

        return SourceText(document.id, document.content, document, passages)


MAX_WORDS = 400  # of a quotation whose nearest passage is looked for
MAX_PASSAGES = 8  # by the index of words, in which a quotation is looked for
MAX_ALIGNED = 3  # of them, aligned word by word
FEW_HAVING, MANY_HAVING = 60, 1000  # documents that have all words of a quotation, read before and after the passages
MAX_READ = 20_000  # documents read for the quotations of one text, without those of the first passages
RARE_WORDS = 14  # by which passages are ranked
AROUND = 1500  # characters before and after a chunk, as long as a quotation may begin or end outside it
KEPT_TEXTS = 100  # documents, in memory
COMMON = 60  # occurrences of a word in one text, above which it is ignored
MOST_CUT = 3000  # characters of the document that an ellipsis may replace

_CUT = re.compile(r"[\[(]\s{0,3}(?:\.{3}|…)\s{0,3}[\])]|\.{3}|…")
_WORD = re.compile(rf"[^\W_]+|[%‰€$£§]|{_CUT.pattern}")
_LETTERS = str.maketrans(LETTERS)
_NEGATION = re.compile(negations(), re.IGNORECASE)
_STOP = re.compile(r"[.;!?]\s")


class Difference(NamedTuple):
    """Words of a quotation, and what the document has instead; either may be empty."""

    quoted: str
    document: str


class NearPassage(NamedTuple):
    """The passage of a document that is nearest to a quotation."""

    doc_id: str
    char_start: int
    char_end: int
    text: str
    likeness: float  # share of words that are equal, in [0, 1]
    differences: tuple[Difference, ...]  # empty: only ellipses


class _TextWord(NamedTuple):
    folded: str
    start: int  # characters
    end: int


class QuotedText:
    """A document's text, or a part of it, searched for quotations."""

    def __init__(self, doc_id: str, content: str, offset: int = 0) -> None:
        """Take a text that begins `offset` characters into its document."""
        self.doc_id, self.content, self._offset = doc_id, content, offset
        self._source = SourceText(doc_id, content)

    def find(self, quotation: str) -> Span | None:
        """Return the span of the first match of a quotation; an editor's words in brackets may replace others."""
        spans = self._source.quotation_spans(quotation) or self._source.edited_spans(quotation)
        return self._in_document(*spans[0]) if spans else None

    def votes(self, quotation: str) -> int:
        """Estimate how much of a quotation occurs in one place; higher is more."""
        return self._window(_quotation_words(quotation))[1]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the passage with most of a quotation's words in their order; None if it has few of them."""
        words = _quotation_words(quotation)
        (first, last), votes = self._window(words)
        here = self._text_words[first:last]
        blocks = _matcher(words, here).get_matching_blocks()[:-1] if votes else []
        if not blocks:
            return None
        last_block = blocks[-1]
        begin = max(blocks[0].b - blocks[0].a, 0)
        end = min(last_block.b + len(words) - last_block.a, len(here))
        here = here[begin : max(end, last_block.b + last_block.size)]
        differences = tuple(self._word_changes(BRACKETS.sub(" ", quotation), words, here))
        cut = sum(len(difference.document.split()) for difference in differences if _CUT.fullmatch(difference.quoted))
        n_cuts = sum(_CUT.fullmatch(word.folded) is not None for word in words)
        equal = sum(block.size for block in blocks)
        likeness = min(equal / max(len(words) - n_cuts, len(here) - cut, 1), 1.0)
        span = here[0].start, here[-1].end
        reported = tuple(difference for difference in differences if not self._is_cut(difference))
        return NearPassage(self.doc_id, *self._in_document(*span), self.content[slice(*span)], likeness, reported)

    def _is_cut(self, difference: Difference) -> bool:
        """Does an ellipsis only leave words out, hiding no negation within its sentence?"""
        if not _CUT.fullmatch(difference.quoted):
            return False
        return _STOP.search(difference.document) is not None or _NEGATION.search(difference.document) is None

    def _word_changes(self, text: str, words: Sequence[_TextWord], here: Sequence[_TextWord]) -> Iterator[Difference]:
        for tag, a, b, c, d in _matcher(words, here).get_opcodes():
            if tag != "equal":
                yield Difference(_words_text(text, words[a:b]), _words_text(self.content, here[c:d]))

    def _in_document(self, start: int, end: int) -> Span:
        return self._offset + start, self._offset + end

    @cached_property
    def _text_words(self) -> list[_TextWord]:
        return _split_words(self.content)

    @cached_property
    def _word_places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, word in enumerate(self._text_words):
            places.setdefault(word.folded, []).append(number)
        return places

    def _window(self, words: Sequence[_TextWord]) -> tuple[Span, int]:
        """Return the range of words with most of a quotation's at their distances, and its votes."""
        votes: Counter[int] = Counter()
        for number, word in enumerate(words):
            places = self._word_places.get(word.folded, ())
            if len(places) <= COMMON:
                for place in places:
                    votes[(place - number) // 8] += 1 + len(word.folded)
        if not votes:
            return (0, 0), 0
        best = max(votes, key=lambda bucket: votes[bucket] + votes[bucket + 1])
        first = max(best * 8 - 12, 0)
        # What an ellipsis leaves out shifts the rest.
        more = 44 + (MOST_CUT // 6 if any(_CUT.fullmatch(word.folded) for word in words) else 0)
        return (first, min(first + len(words) + more, len(self._text_words))), votes[best] + votes[best + 1]


class QuotedCorpus:
    """The documents of a Library, searched for quotations through its lexical index."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._texts: LRUCache[str, QuotedText] = LRUCache(KEPT_TEXTS)
        self._to_read = MAX_READ
        self._places_by_quotation: dict[str, tuple[str, Span] | None] = {}

    @cached_property
    def _index(self) -> LexicalIndex | None:
        try:
            return self.library.lexical_index()
        except FileNotFoundError:
            return None

    @property
    def has_words(self) -> bool:
        """Whether the Library has a lexical index: without one only named documents are searched."""
        return self._index is not None

    def text(self, doc_id: str) -> QuotedText:
        """Return a document's text, cached for the next quotation."""
        if (text := self._texts.get(doc_id)) is None:
            text = self._texts[doc_id] = QuotedText(doc_id, self.library.document(doc_id).content)
        return text

    def find(self, quotation: str) -> tuple[str, Span] | None:
        """Return a document that has a quotation word for word, and where."""
        if quotation not in self._places_by_quotation:
            self._places_by_quotation[quotation] = self._search_quotation(quotation)
        return self._places_by_quotation[quotation]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the most similar of the passages that share most of a quotation's rare words."""
        passages = sorted(self._rank_passages(quotation), key=lambda passage: passage.votes(quotation), reverse=True)
        candidates = (passage.nearest(quotation) for passage in passages[:MAX_ALIGNED])
        return max(filter(None, candidates), key=lambda candidate: candidate.likeness, default=None)

    def _search_quotation(self, quotation: str) -> tuple[str, Span] | None:
        few = self._ids_having_words(quotation, FEW_HAVING)
        if few and (match := self._first_containing(quotation, few)):
            return match
        for passage in self._rank_passages(quotation):
            if span := passage.find(quotation):
                return passage.doc_id, span
        # A formula that many decisions repeat, each with its own date or name.
        many = self._ids_having_words(quotation, MANY_HAVING) if few is None and self._to_read > 0 else None
        return self._first_containing(quotation, many or ())

    def _first_containing(self, quotation: str, doc_ids: Sequence[str]) -> tuple[str, Span] | None:
        for doc_id, content in self.library.contents().of(doc_ids):
            self._to_read -= 1
            source = SourceText(doc_id, content.decode("utf-8"))
            if spans := source.quotation_spans(quotation):
                return doc_id, spans[0]
        return None

    def _ids_having_words(self, quotation: str, most: int) -> list[str] | None:
        """Return the documents that have all words of a quotation; None if there are more than `most`."""
        terms = set(lexical_words(BRACKETS.sub(" ", quotation)))
        if self._index is None or not terms:
            return []
        places = self._index.documents_having([terms], most)
        if places is None:
            return None
        return list(dict.fromkeys(chunk.doc_id for chunk in self.library.chunks_at(places)))

    def _rank_passages(self, quotation: str) -> list[QuotedText]:
        if self._index is None:
            return []
        words = dict.fromkeys(word.folded for word in _quotation_words(quotation))
        rare = sorted(words, key=self._index.rarity, reverse=True)[:RARE_WORDS]
        hits = self._index.search(" ".join(rare), MAX_PASSAGES) if rare else []
        passages = []
        for chunk in self.library.chunks_at([(shard, position) for shard, position, _ in hits]):
            if chunk.doc_id in self.library:
                start, end = max(chunk.char_start - AROUND, 0), chunk.char_end + AROUND
                passages.append(QuotedText(chunk.doc_id, self.text(chunk.doc_id).content[start:end], start))
        return passages


def _quotation_words(quotation: str) -> list[_TextWord]:
    return _split_words(BRACKETS.sub(" ", quotation))[:MAX_WORDS]


def _split_words(text: str) -> list[_TextWord]:
    matches = _WORD.finditer(text)
    return [_TextWord(match.group().translate(_LETTERS).casefold(), match.start(), match.end()) for match in matches]


def _matcher(a: Sequence[_TextWord], b: Sequence[_TextWord]) -> "difflib.SequenceMatcher[str]":
    return difflib.SequenceMatcher(None, [word.folded for word in a], [word.folded for word in b], autojunk=False)


def _words_text(text: str, words: Sequence[_TextWord]) -> str:
    return " ".join(text[words[0].start : words[-1].end].split()) if words else ""
