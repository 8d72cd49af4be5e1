"""Texts of documents: where a quotation is in them, word for word or nearly, what they state, who speaks."""

import datetime
import difflib
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from cachetools import LRUCache

from legal_rag.base.text import LETTERS, UNSTORABLE, Folded, Span, find_exact, fold, is_whole, normalized, widened
from legal_rag.citations.claims import BRACKETS, CUT, ClaimPart, Join, edited_reading, readings_of
from legal_rag.citations.facts import Fact, Stated, find_facts, needles_of, stated_in
from legal_rag.citations.plain import plain_words
from legal_rag.citations.wording import content_stems, cues_of
from legal_rag.corpus.documents import Document
from legal_rag.extraction.entities import Entity, ExtractionResult, outcome_of
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
_NUMBERED = re.compile(r"\s*[1-9]\d{0,2}\.\s?(?=[^\W\d_])")
_GROUND = re.compile(r"\bgrief\b|\balors\s«|\bALORS\b|\bbranche\b", re.IGNORECASE)
# Words by which a sentence reports what others say.
_REPORTS = re.compile(
    r"\b(?:griefs?|soutien\w*|soutena\w*|fai(?:t|sait|re)\svaloir|font\svaloir|alors[\s,]|préten\w*|invoqu\w*|reproch\w*|demand\w+"
    r"|concl\w+|selon\sl[ea]\s(?:moyen|pourvoi|demandeur)|moyen|branche|l['’](?:arrêt|ordonnance)|le\sjugement|la\scour\sd['’]appel"
    r"|le\stribunal|le\sconseil\sde|requérante?s?|appelante?s?|intimée?s?)\b",
    re.IGNORECASE,
)
FEWEST_POINTS = 2  # numbered paragraphs
FACT_BEFORE, FACT_AFTER = 80, 120  # characters around a fact's figures in which it is stated
HEAD_CHARS = 3000  # of a text, in which a decision names its court, date and number


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


class SourceText:
    """One document's text, with cached searches."""

    def __init__(
        self, doc_id: str, content: str, document: Document | None = None, library: Library | None = None
    ) -> None:
        """Take a text, its document's metadata where there are any, and the Library that has its outline."""
        self.doc_id, self.content = doc_id, content
        self._document, self._library = document, library
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

    def nearest(self, quotation: str, within: Span | None = None) -> NearPassage | None:
        """Return the passage, of the text or a span of it, with most of a quotation's words in their order.

        None if it has no rare word of it.
        """
        words, there = _quotation_words(quotation), list(_WORD.finditer(self.content, *(within or ())))
        n_cuts = sum(_CUT.fullmatch(word.group()) is not None for word in words)
        here = there[_window(words, there, SHIFT_OF_CUT if n_cuts else SHIFT)]
        matcher = difflib.SequenceMatcher(None, _folded(words), _folded(here), autojunk=False)
        if not (blocks := matcher.get_matching_blocks()[:-1]):
            return None
        first = max(blocks[0].b - blocks[0].a, 0)
        last = min(max(blocks[-1].b + len(words) - blocks[-1].a, 0), len(here))
        differences = [
            Difference(_words_text(words[a:b]), _words_text(here[max(c, first) : min(d, last)]))
            for tag, a, b, c, d in matcher.get_opcodes()
            if tag != "equal"
        ]
        cut = sum(len(difference.document.split()) for difference in differences if _CUT.fullmatch(difference.quoted))
        equal = sum(block.size for block in blocks)
        likeness = min(equal / max(len(words) - n_cuts, last - first - cut, 1), 1.0)
        span = here[first].start(), here[last - 1].end()
        reported = tuple(difference for difference in differences if any(difference) and not _only_cuts(difference))
        return NearPassage(self.doc_id, *span, self.content[slice(*span)], likeness, reported)

    def sentences_in(self, start: int, end: int) -> list[Span]:
        """Return the sentences that share a character with a span."""
        return self.sentence_spans[slice(*self.sentence_numbers(start, end))]

    def sentence_numbers(self, start: int, end: int) -> Span:
        """Return the numbers of the sentences that share a character with a span: the first, and one past the last."""
        first = max(bisect_right(self.sentence_spans, (start, len(self.content))) - 1, 0)
        return first, max(bisect_left(self.sentence_spans, (end, 0)), first + 1)

    def stems_of_sentences(self, first: int, last: int) -> list[frozenset[str]]:
        """Return the stems of what each of the sentences from `first` to before `last` says, as far as there are any."""
        numbers = range(first, min(last, len(self.sentence_spans)))
        for number in numbers:
            if number not in self._stems:
                self._stems[number] = content_stems(plain_words(self.content[slice(*self.sentence_spans[number])]))
        return [self._stems[number] for number in numbers]

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
        document = self._document
        written = (document and document.decision_date) or read_letterhead(self.content[:HEAD_CHARS]).date
        day = datetime.date.fromisoformat(written) if written else None
        if document is None:
            return Known(day)
        names = "\n".join(filter(None, (str(document.extra.get(name) or "") for name in ("number", "ecli"))))
        numbers = frozenset(fact.value for fact in find_facts(f"n° {names}\n{document.title}") if fact.kind == "case")
        court = " ".join(filter(None, (document.juridiction, document.formation)))
        return Known(day, numbers, court, document.solution, document.title)

    @cached_property
    def outcome(self) -> Outcome:
        """How the decision ended, by its metadata, else by its ruling."""
        return outcome_of(self.own.solution, level_of(self.own.court, "", self.own.title), self.content, None)

    @cached_property
    def passages(self) -> Sequence[Paragraph]:
        """Who speaks where, in order."""
        if self._document is None:
            return read(self.content).paragraphs
        stored = self._library.stored_outline(self._document) if self._library else None
        return (stored or make_outline(self._document)).passages

    def passage_at(self, span: Span) -> Paragraph | None:
        """Return the stretch by one speaker that holds most of a span."""
        inside = [passage for passage in self.passages if passage.start < span[1] and span[0] < passage.end]
        return max(inside, key=lambda passage: min(passage.end, span[1]) - max(passage.start, span[0]), default=None)

    def court_speaks_at(self, span: Span) -> bool:
        """Does the court itself speak in a span, possibly in the words of a statute?"""
        paragraph = self.passage_at(span)
        return paragraph is not None and paragraph.speaker in ("court", "text") and not paragraph.censured

    def surely_reports(self, span: Span) -> bool:
        """Is it said in the paragraph of a span that another's words are reported there?

        A paragraph without a number of its own belongs to those before it, and their speaker is taken as it is.
        """
        start, end = self.content.rfind("\n", 0, span[0]) + 1, self.content.find("\n", span[1])
        paragraph = self.content[start : end if end >= 0 else len(self.content)]
        if not _NUMBERED.match(paragraph) or _GROUND.search(paragraph):
            return True
        before = self.content[start : span[0]]
        return before.rfind("«") > before.rfind("»") or bool(_REPORTS.search(self.content, *self.sentence_around(span)))

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
    def _letters(self) -> str:
        return _letters_of(self.content)

    def _spans_in_order(self, parts: Sequence[ClaimPart]) -> list[Span]:
        words = chain.from_iterable(_needle(part.text).words for part in parts)
        if not all(word in self.lower or _letters_of(word) in self._letters for word in words):
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
        plain, content = passage.translate(_CAPITALS), self._without_accents
        same = plain == passage and content == self.content
        return [] if same else self._search_spans(plain, content, content.lower())

    @cached_property
    def _without_accents(self) -> str:
        """The text without accents on its capitals."""
        return self.content.translate(_CAPITALS) if _ACCENTED_CAPITAL.search(self.content) else self.content

    def _search_spans(self, passage: str, content: str, lower: str) -> list[Span]:
        squeezed, words = _needle(passage)
        present = [word for word in words if word in lower]
        rare = min(present[:KEYS_TRIED], key=lower.count, default="")
        around = SLACK + 2 * len(squeezed)
        windows = [(max(0, at - around), end + around) for at, end in find_exact(rare, lower)] or [(0, len(content))]
        if len(present) == len(words) and len(windows) <= MOST_PLACES:
            windows = [window for window in windows if all(word in lower[slice(*window)] for word in words)]
        spans = (span for window in _merge_windows(windows) for span in _find_squeezed(squeezed, content, *window))
        return [span for span in islice(spans, MOST_SPANS) if is_whole(content, span) and not self._cuts_number(span)]

    def _cuts_number(self, span: Span) -> bool:
        """Does a span end or begin within a number such as 'L. 1232-6' or '12-34.567'?"""
        start, end = span
        behind = self.content[end - 1].isdigit() and _NUMBER_GOES_ON.match(self.content, end)
        ahead = self.content[start].isdigit() and _NUMBER_BEFORE.search(self.content, max(0, start - 2), start)
        return bool(behind or ahead)


class Known(NamedTuple):
    """What is known of a decision itself, by its metadata, else by its head."""

    date: datetime.date | None = None
    numbers: frozenset[str] = frozenset()  # normalised
    court: str = ""  # juridiction and formation
    solution: str = ""
    title: str = ""

    @property
    def court_words(self) -> frozenset[str]:
        """The words that distinguish its court and chamber."""
        return words_of_value(f"{self.court} {self.title}")


_ACCENTED_CAPITAL = re.compile("[ÀÂÄÉÈÊËÎÏÔÖÙÛÜÇ]")
_CUT_WORD = re.compile(r"[-\u2010\u2011][ ]?\n\s{0,4}(?=[^\W\d_])")  # by a hyphen at its line's end
_CAPITALS = str.maketrans("ÀÂÄÉÈÊËÎÏÔÖÙÛÜÇ", "AAAEEEEIIOOUUUC")
# What typography and line breaks change in a folded text; replaced by its `_EVENED` form, or removed.
_UNEVEN = re.compile(
    r"(?P<dropped>[ \"*_`])|(?P<hyphen>(?<=[^\W\d_])-[ ]?(?=[^\W\d_]))|(?P<thousands>(?<=\d)\.(?=\d{3}(?!\d)))"
    r"|(?P<prefix>(?<=\b[lrda])\.(?=[ ]?o?\.?[ ]?\*?\d))|(?P<euros>€|(?<=\d )euros?\b|(?<=\d)euros?\b)|(?P<e>(?<=\d)[eè]?me\b)|(?P<re>(?<=1)[eè]re\b)|(?P<no>[°º])"
)
_EVENED = {"euros": "€", "e": "e", "re": "re", "no": "o"}


def _squeeze(text: str) -> Folded:
    """Fold a text and even out typography: blanks, quotation marks, hyphens, "L. 1" and "L 1", "20.000" and "20 000"."""
    folded = fold(text)
    pieces: list[str] = []
    starts = array("q")
    done = 0
    for match in _UNEVEN.finditer(folded.text):
        evened = _EVENED.get(match.lastgroup or "", "")
        pieces += [folded.text[done : match.start()], evened]
        starts.extend(folded.starts[done : match.start()])
        starts.extend([folded.starts[match.start()]] * len(evened))
        done = match.end()
    pieces.append(folded.text[done:])
    starts.extend(folded.starts[done:])
    return Folded("".join(pieces), starts)


def _find_squeezed(folded: str, content: str, first: int, last: int) -> list[Span]:
    text = _squeeze(content[first:last])
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


class _Needle(NamedTuple):
    """A passage as it is searched for."""

    squeezed: str
    words: list[str]  # those that squeezing leaves unchanged, the longest first


@lru_cache(1024)
def _needle(passage: str) -> _Needle:
    words = set(_KEY.findall(_MAY_BE_ONE.sub(" ", fold(passage).text))) - _SPELT_OTHERWISE
    return _Needle(_squeeze(passage).text, sorted(words, key=lambda word: (-len(word), word)))


def _letters_of(text: str) -> str:
    """Return a text in lower case without accents, hidden characters, and hyphens at line ends."""
    text = _CUT_WORD.sub("", text.casefold())
    for letter, letters in LETTERS.items():
        text = text.replace(letter, letters)
    return normalized(text, "NFKD").encode("ascii", "ignore").decode()


class SourceTexts:
    """The documents that an answer may cite, each looked up once."""

    def __init__(self, documents: Any) -> None:
        """Take a Library, another corpus, or a mapping from document id to text."""
        self._documents = documents
        self._sources: LRUCache[str, SourceText | None] = LRUCache(KEPT_TEXTS)

    def get(self, doc_id: str) -> SourceText | None:
        """Return a document's text, or None if there is no such document."""
        if doc_id not in self._sources:
            self._sources[doc_id] = self._look_up(doc_id)
        return self._sources[doc_id]

    def __getitem__(self, doc_id: str) -> SourceText:
        source = self.get(doc_id)
        if source is None:
            raise LookupError(f"no document {doc_id!r}")
        return source

    def all_ids(self) -> list[str]:
        """Return the ids of a mapping; of a corpus, none: it is never read as a whole."""
        return list(self._documents) if isinstance(self._documents, Mapping) else []

    def _look_up(self, doc_id: str) -> SourceText | None:
        # A lone surrogate is an id that no store accepts. A failed look-up of a document searches for the nearest id.
        if UNSTORABLE.search(doc_id) or doc_id not in self._documents:
            return None
        if not hasattr(self._documents, "document"):
            return SourceText(doc_id, self._documents[doc_id])
        document = self._documents.document(doc_id)
        library = self._documents if isinstance(self._documents, Library) else None
        return SourceText(document.id, document.content, document, library)


def texts_of(results: Iterable[ExtractionResult]) -> dict[str, str]:
    """Return the texts of extraction results by name; of one without its text its extractions, amid blanks."""
    return {result.doc_name: result.text or _extractions_in_place(result.extractions) for result in results}


def _extractions_in_place(extractions: Iterable[Entity]) -> str:
    text = ""
    for entity in extractions:
        start, end = entity["char_start"], entity["char_end"]
        text = f"{text[:start]:{start}}{entity['extraction_text']}{text[end:]}"
    return text


MAX_WORDS = 400  # of a quotation whose nearest passage is looked for
MAX_PASSAGES = 8  # by the index of words, in which a quotation is looked for
FEW_HAVING, MANY_HAVING = 60, 1000  # documents that have all words of a quotation, read before and after the passages
MAX_READ = 20_000  # documents read for the quotations of one text, without those of the first passages
RARE_WORDS = 14  # by which passages are ranked
AROUND = 1500  # characters before and after a chunk, as long as a quotation may begin or end outside it
KEPT_TEXTS = 500  # documents, in memory
SHIFT, SHIFT_OF_CUT = 40, 500  # words that a passage may have more than its quotation, and than one with an ellipsis
SHARED = 8  # words by which the distances of equal words may differ

_CUT = re.compile(rf"{CUT.pattern}|\.{{3}}|…")
_WORD = re.compile(rf"[^\W_]+|[%‰€$£§]|{_CUT.pattern}")
_LETTERS = str.maketrans(LETTERS)
_NEGATION = re.compile(negations(), re.IGNORECASE)
_STOP = re.compile(r"[.;!?]\s")


class QuotedCorpus:
    """The documents of a Library, searched for quotations through its lexical index."""

    def __init__(self, library: Library, texts: SourceTexts) -> None:
        """Take a Library, and its texts that were read so far."""
        self.library, self._texts = library, texts
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

    def find(self, quotation: str) -> tuple[str, Span] | None:
        """Return a document that has a quotation word for word, and where."""
        if quotation not in self._places_by_quotation:
            self._places_by_quotation[quotation] = self._search_quotation(quotation)
        return self._places_by_quotation[quotation]

    def nearest(self, quotation: str) -> NearPassage | None:
        """Return the most similar of the passages that share most of a quotation's rare words."""
        passages = (source.nearest(quotation, span) for source, span in self._rank_passages(quotation))
        return max(filter(None, passages), key=lambda passage: passage.likeness, default=None)

    def _search_quotation(self, quotation: str) -> tuple[str, Span] | None:
        few = self._ids_having_words(quotation, FEW_HAVING)
        if few and (match := self._first_containing(quotation, few)):
            return match
        for source, _ in self._rank_passages(quotation):
            if spans := source.quotation_spans(quotation) or source.edited_spans(quotation):
                return source.doc_id, spans[0]
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

    def _rank_passages(self, quotation: str) -> list[tuple[SourceText, Span]]:
        """Return documents, and where in them passages have most of a quotation's rare words."""
        if self._index is None:
            return []
        words = dict.fromkeys(_folded(_quotation_words(quotation)))
        rare = sorted(words, key=self._index.rarity, reverse=True)[:RARE_WORDS]
        hits = self._index.search(" ".join(rare), MAX_PASSAGES) if rare else []
        chunks = self.library.chunks_at([(shard, position) for shard, position, _ in hits])
        near = ((self._texts.get(chunk.doc_id), chunk) for chunk in chunks)
        return [
            (source, (max(chunk.char_start - AROUND, 0), chunk.char_end + AROUND)) for source, chunk in near if source
        ]


def _quotation_words(quotation: str) -> list[re.Match[str]]:
    return list(islice(_WORD.finditer(BRACKETS.sub(" ", quotation)), MAX_WORDS))


def _folded(words: Iterable[re.Match[str]]) -> list[str]:
    return [word.group().translate(_LETTERS).casefold() for word in words]


def _window(words: Sequence[re.Match[str]], there: Sequence[re.Match[str]], more: int) -> slice:
    """Return the range of a text's words that has most of a quotation's at their distances, and `more` words."""
    # Where each word stands; `difflib` leaves out those that are frequent.
    places = difflib.SequenceMatcher(None, (), _folded(there)).b2j  # type: ignore[attr-defined]
    votes: Counter[int] = Counter()
    for number, word in enumerate(_folded(words)):
        for place in places.get(word, ()):
            votes[(place - number) // SHARED] += 1 + len(word)
    best = max(votes, key=lambda shift: votes[shift] + votes[shift + 1], default=None)
    return slice(0) if best is None else slice(max(best - 1, 0) * SHARED, (best + 1) * SHARED + len(words) + more)


def _words_text(words: Sequence[re.Match[str]]) -> str:
    return " ".join(words[0].string[words[0].start() : words[-1].end()].split()) if words else ""


def _only_cuts(difference: Difference) -> bool:
    """Does an ellipsis only leave words out, hiding no negation within its sentence?"""
    if not _CUT.fullmatch(difference.quoted):
        return False
    return _STOP.search(difference.document) is not None or _NEGATION.search(difference.document) is None
