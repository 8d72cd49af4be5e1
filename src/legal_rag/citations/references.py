"""Find what a French text refers to: decisions and what it says of them, articles of codes, laws, quotations."""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from legal_rag.base.text import Span
from legal_rag.citations.cited_decisions import MOST_GAP, MOST_ON, find_decisions, find_unread
from legal_rag.citations.cited_text import DECISION, CitedText
from legal_rag.citations.claims import Quotation
from legal_rag.citations.stated import (
    References,
    Source,
    StatedArticle,
    StatedDecision,
    StatedLaw,
    StatedQuotation,
)
from legal_rag.citations.wording import CONTENT_WORD
from legal_rag.law import Identifier
from legal_rag.law.articles import (
    ArticleNumber,
    article_value,
    find_abbreviated_articles,
    find_article_citations,
    is_of_another_text,
    named_no_law,
)
from legal_rag.law.statutes import find_statute_articles
from legal_rag.law.wordings import IN_FORCE_SINCE, StatedEnding, StatedWording, stated_ending, stated_wording

QUOTED_WORDS = 4  # content words of a quotation that is looked for without a source
MOST_BACK = 5000  # characters from an article without a code back to one of the same code
MOST_BEFORE_QUOTED = 80  # characters from an article to the words quoted of it
MOST_BEFORE = 50  # articles before one without a code

_OTHER_ARTICLE = re.compile(r"\b(?:articles?|art\.)\s|\b[LRD]\.\s?\d", re.IGNORECASE)
_FIGURES = re.compile(r"\d")
# Said right behind an article of which no version is named: it has another number or none today.
_FORMER = re.compile(
    r"[^.;:«»\d]{0,40}?(?:\babrogé|\brecodifi|\bnouveau code\b|\bdevenue?s? (?:l['’]\s?)?(?:art|[LRD]\.|\d))",
    re.IGNORECASE,
)

_REPEAL = re.compile(r"\babrog\w+", re.IGNORECASE)

# A sentence that continues about the decision named before it.
_GOES_ON = re.compile(
    r"\W*(?:elle|il|la (?:haute )?(?:cour|juridiction)|le conseil|les (?:sages|juges)|(?:l['’]|cet |cette |la |le )"
    rf"(?:{DECISION})|la chambre)(?!\w)|\W*(?:aux termes|selon|d['’]après) (?:de )?(?:cet|cette|l['’])",
    re.IGNORECASE,
)
_SAME = re.compile(
    rf"[\s.,;]*[(\[]\s?(?:(?:l['’]|cet\s|cette\s|même\s)?(?:{DECISION})\s)?(?:ibid|idem|id\.|préc|op\. cit|même|susvis)",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"(?:\bqu(?:e|['’])|:|\bénonc\w+|\bjug\w+|\bretien\w*|\bselon lequel|\baffirm\w+|\bdispos\w+)\W{0,4}$",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"\b(?:articles?|art\.|alinéas?|lois?|ordonnances?|décrets?|arrêtés?|directives?|règlements?|conventions?|charte"
    r"|déclaration|codes?|constitution|traité|contrats?|clauses?|accords?|avenants?|courriels?|lettres?|courriers?|statuts"
    r"|bail|circulaires?|préambule|procès-verbal|annexe|conclusions|mémoires?|requérante?|demandeur|moyens?)(?!\w)",
    re.IGNORECASE,
)
_DECIDER = re.compile(
    r"(?<!\w)(?:arr[êe]ts?|d[ée]cisions?|jugements?|cour|juges?|juge|conseil|tribunal|chambre|juridiction|énonc\w+|jug\w+|attendu|considérant|motifs?)"
    r"(?!\w)",
    re.IGNORECASE,
)
_OF_CODE = re.compile(r"\s?\)?,?\s(?:du|de la|des)\s", re.IGNORECASE)
# What stands between the two numbers of one article: "L. 122-14-4, devenu L. 1235-3".
_RENUMBERED = re.compile(
    r"[^.;«»()]{0,80}?[\s,(]+(?:aujourd['’]hui|devenue?|désormais|actuel(?:lement)?|anciennement|anc(?:ien(?:ne)?s?|\.)|ex)\W{1,3}"
    r"(?:(?:l['’])?art(?:icle|\.)\s?)?",
    re.IGNORECASE,
)
_YEAR_OF_REVIEW = re.compile(r"D(?:19|20)\d\d")  # "D. 2023. 1841": a page of the Recueil Dalloz
_OLD = re.compile(r"\b(?:anc(?:ien\w*|\.)|ex)\W", re.IGNORECASE)
_OTHER_NUMBER = re.compile(
    r"[\s,(]+(?:aujourd['’]hui|devenue?|désormais|anciennement|ex)\s(?:l['’]article\s|art\.\s)?"
    r"(?P<number>(?:[LRD]\.?\s?)?\d{1,4}(?:-\d{1,4}){0,3})(?![\w-])",
    re.IGNORECASE,
)
_ARTICLE_WORD = re.compile(r"(?<!\w)(?:articles?|art\.)\s{0,3}$", re.IGNORECASE)
_LAWS = ("loi", "ordonnance", "décret", "directive", "règlement")
_SAME_CODE = re.compile(r"[\s,]*(?:du|dudit|de ce|dans ce)\s(?:même\s|dit\s)?code\b", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[\s.,;»”\"]*[(\[]")


def find_references(text: str, quoted: Sequence[Span] = ()) -> References:
    """Find decisions, articles with their codes, laws and quotations; linear in the text.

    `quoted` are the spans set off as quotations without marks of their own.
    """
    cited = CitedText(text, quoted)
    decisions = find_decisions(cited)
    articles = list(_with_days(cited, _find_articles(cited), decisions))
    quotations = _QuotationReader(cited, decisions, articles).read()
    return References(decisions, articles, list(_find_laws(cited)), quotations, list(find_unread(cited, decisions)))


def _find_laws(text: CitedText) -> Iterator[StatedLaw]:
    for law, namesakes in groupby(text.statutes, key=lambda law: (law.start, law.end)):
        named = list(namesakes)
        is_law = named[0].nature in _LAWS and not text.in_quotation(law[0])
        if is_law:
            days = text.days_in(*law)
            keys = tuple(statute.key for statute in named)
            yield StatedLaw(law[0], law[1], keys, text.dates[days[0]] if days else None)


def _find_articles(text: CitedText) -> list[StatedArticle]:
    named: dict[int, ArticleNumber | Identifier] = {}
    named |= {name.start: name for name in find_abbreviated_articles(text.plain)}
    named |= {name.start: name for name in text.articles if name.code or name.start not in named}
    of_statutes = find_statute_articles(text.plain, list(text.dates.values()))
    for article in of_statutes:
        named.setdefault(article.start, article)  # "article premier" has no figure
    for name in [*named.values()]:
        if match := _OTHER_NUMBER.match(text.plain, name.end):  # "l'article 1382, devenu 1240, du code civil"
            value = article_value(match["number"])
            named.setdefault(match.start("number"), ArticleNumber(value, *match.span("number"), ""))
    names = [name for _, name in sorted(named.items())]
    behind = {code.start: code.end for code in text.texts if code.kind == "code"}
    others = _other_texts(text, of_statutes)
    codes = [
        name.code or _code_behind(text, name, behind) or others.get(name.start) or _no_law(text, name) for name in names
    ]
    renumbered = [_RENUMBERED.fullmatch(text.plain, one.end, other.start) for one, other in pairwise(names)]
    for number, match in enumerate(renumbered):
        if match:  # both are of one code: "L. 122-14-4, devenu L. 1235-3"
            codes[number] = codes[number] or codes[number + 1]
            codes[number + 1] = codes[number + 1] or codes[number]
    wordings = [_find_wording(text, name) for name in names]
    articles: list[StatedArticle] = []
    for number, (name, code, wording) in enumerate(zip(names, codes, wordings, strict=True)):
        links = [link for link in (*renumbered[max(number - 1, 0) : number], *renumbered[number : number + 1]) if link]
        if links:  # one of the two numbers is the old one
            former = (_OLD.search(links[0].group()) is not None) == (links[0].end() <= name.start)
        else:
            former = _FORMER.match(text.outside, name.end) is not None
        guess = "" if code else _code_before(text, name, articles[-MOST_BEFORE:])
        if code or guess or (name.value[:1].isalpha() and not _YEAR_OF_REVIEW.fullmatch(name.value)):
            word = _ARTICLE_WORD.search(text.before(name.start, 12))
            if ending := stated_ending(text.outside, name.start, name.end):
                former = former if ending.in_force is None else not ending.in_force
            row = name.end, name.value, code or guess, former
            start = name.start - len(word.group()) if word else name.start
            articles.append(StatedArticle(start, *row, wording, not code, ending))
    return articles


def _with_days(
    text: CitedText, articles: Sequence[StatedArticle], decisions: Sequence[StatedDecision]
) -> Iterator[StatedArticle]:
    """Yield articles with what their sentence says that was read as nothing: a day, and words of a repeal."""
    said = (one for article in articles for one in (article.wording, article.ending) if one)
    spans = {*(decision.citation for decision in decisions), *((one.start, one.end) for one in said)}
    read = text.days_of_texts.union(*(text.days_in(*span) for span in spans))
    read.update(word.start() for span in spans for word in _REPEAL.finditer(text.outside, *span))
    for article in articles:
        sentence = text.sentence_around(article.start, MOST_GAP)
        days = [day for day in text.days_in(*sentence) if day not in read and not text.in_quotation(day)]
        since = [day for day in days if IN_FORCE_SINCE.search(text.outside, max(day - 40, 0), day)]
        day = next(iter(since or days[: not article.dated]), None)
        repeal = next((one for one in _REPEAL.finditer(text.outside, *sentence) if one.start() not in read), None)
        ending = article.ending or (StatedEnding(None, None, *repeal.span()) if repeal else None)
        yield article._replace(day=None if day is None else text.dates[day].value, is_since=bool(since), ending=ending)


def _find_wording(text: CitedText, name: ArticleNumber | Identifier) -> StatedWording | None:
    """Return which version of an article is meant, said beside it or right behind the words quoted of it."""
    if stated := stated_wording(text.outside, name.start, name.end):
        return stated
    quote = text.quotation_behind(name.end, MOST_BEFORE_QUOTED)
    if quote is None or _OTHER_ARTICLE.search(text.outside, name.end, quote.start):
        return None
    stated = stated_wording(text.outside, name.start, quote.end)
    return stated if stated and quote.end <= stated.start <= quote.end + 3 else None


def _other_texts(text: CitedText, of_statutes: Sequence[ArticleNumber]) -> dict[int, str]:
    """Return the statutes and treaties whose articles are named, by where the article's number begins."""
    named = {article.start: article.code for article in of_statutes}
    treaties = [other for other in text.texts if other.kind in ("treaty", "constitution")]
    for article in find_article_citations(text.plain, treaties):
        number = _FIGURES.search(text.plain, article.start, article.end)
        if number and article.text_end > article.text_start:
            named.setdefault(number.start(), " ".join(text.plain[article.text_start : article.text_end].split()))
    return named


def _no_law(text: CitedText, name: ArticleNumber | Identifier) -> str:
    """Return what is no law of which an article is named: "convention collective"; of numbers alone nothing is said."""
    return named_no_law(text.outside, name.start, name.end) if name.value[:1].isalpha() else ""


def _code_behind(text: CitedText, name: ArticleNumber | Identifier, codes: Mapping[int, int]) -> str:
    """Return the code named right behind an article, after a parenthesis or an apposition; "" if there is none."""
    match = _OF_CODE.match(text.plain, name.end)
    end = codes.get(match.end()) if match else None
    return " ".join(text.plain[match.end() : end].lower().split()) if match and end else ""


def _code_before(text: CitedText, name: ArticleNumber | Identifier, before: Sequence[StatedArticle]) -> str:
    """Return the code of an article named without one: that of the last one of its kind before it; "" if unsure."""
    same = [article for article in before if not article.is_guess and name.start - article.end < MOST_BACK]
    if not same or _YEAR_OF_REVIEW.fullmatch(name.value) or is_of_another_text(text.outside, name.end):
        return ""
    if _SAME_CODE.match(text.plain, name.end):
        return same[-1].code
    lettered = [article.code for article in same if article.value[:1].isalpha()]
    return lettered[-1] if name.value[:1].isalpha() and len(set(lettered)) == 1 else ""


def _is_in(place: int, spans: Sequence[Span]) -> bool:
    """Is a place in one of some spans, in text order, of which none overlaps another?"""
    number = bisect_right(spans, (place, sys.maxsize))
    return number > 0 and place < spans[number - 1][1]


class _QuotationReader:
    """Finds what a text gives as the sources of its quotations."""

    def __init__(self, text: CitedText, decisions: Sequence[StatedDecision], articles: Sequence[StatedArticle]) -> None:
        self._text = text
        both: list[Source] = [*decisions, *articles]
        dated = ((one.dated, one) for one in articles)
        wordings = sorted((said.start, said.end) for said, one in dated if said and said.start >= one.end)
        # "dans sa rédaction issue de l'article 2 de la loi": that is not where the words quoted are.
        outside = (one for one in both if not text.in_quotation(one.start) and not _is_in(one.start, wordings))
        self._sources = sorted(outside, key=lambda source: source.start)

    def read(self) -> list[StatedQuotation]:
        """Find the quotations that are long enough to be looked for, or introduced."""
        sources, starts = self._sources, [source.start for source in self._sources]
        stated = []
        for quote in self._text.quotations:
            number = self._text.sentence_at(quote.start)
            first, last = self._lead_start(quote.start, number), self._source_end(quote.end)
            begin = bisect_left(starts, first)
            begin -= bool(begin and sources[begin - 1].end > first)  # a citation that goes on from the line before
            near = sources[begin : bisect_left(starts, last)][-50:]
            if not near and (
                (number and _GOES_ON.match(self._text.outside, first)) or _SAME.match(self._text.outside, quote.end)
            ):
                near = self._source_before(sources, starts, first)
            near = sorted(near, key=lambda source: self._source_distance(quote, source))
            introduced = bool(_INTRODUCED.search(self._text.outside[max(quote.start - 30, 0) : quote.start])) or bool(
                near and near[0].start >= quote.end and _PARENTHESIS.match(self._text.outside, quote.end)
            )
            n_words = len(CONTENT_WORD.findall(quote.text))
            if n_words >= QUOTED_WORDS or (near and introduced and n_words):
                of_a_text, court = self._find_speaker(first, quote.start)
                of_a_text |= not near and self._has_date(first, last)  # of a letter, or of a citation of unknown form
                stated.append(
                    StatedQuotation(
                        quote.start,
                        quote.end,
                        quote.text,
                        tuple(near),
                        introduced,
                        of_a_text,
                        court,
                        (first, last),
                    )
                )
        return stated

    def _lead_start(self, start: int, number: int) -> int:
        """Return where the sentence begins that leads into a quotation: the one before, if it ends in a colon."""
        first = self._text.sentences[number][0]
        begins = number and not self._text.outside[first:start].strip(" \t\n-–—")
        return (
            self._text.sentences[number - 1][0]
            if begins and self._text.outside[max(first - 5, 0) : first].rstrip()[-1:] == ":"
            else first
        )

    def _has_date(self, start: int, end: int) -> bool:
        return any(not self._text.in_quotation(place) for place in self._text.days_in(start, end)[:20])

    def _find_speaker(self, first: int, start: int) -> tuple[bool, str]:
        """Return whether a text, not a decision, is named last in the sentence before `start`, and the last court."""
        lead_start = max(first, start - 300)
        lead = self._text.outside[lead_start:start]
        text = max((match.end() for match in _TEXT.finditer(lead)), default=-1)
        decider = max((match.end() for match in _DECIDER.finditer(lead)), default=-1)
        named = self._text.last_named(start) - lead_start
        return text > max(decider, named), self._text.last_court(lead_start, start)

    def _source_end(self, end: int) -> int:
        """Return the end of the sentence that a quotation closes, and of a source in parentheses after it."""
        number = self._text.sentence_at(max(end - 1, 0))
        last = self._text.sentences[number][1] if self._text.sentences else len(self._text.plain)
        if number + 1 < len(self._text.sentences) and self._text.outside[last : last + 1] in "([" and last - end <= 5:
            return self._text.sentences[number + 1][1]
        return last

    def _source_before(self, sources: Sequence[Source], starts: Sequence[int], place: int) -> list[Source]:
        before = sources[max(bisect_left(starts, place) - 10, 0) : bisect_left(starts, place)]
        named = [source for source in before if not (isinstance(source, StatedDecision) and source.is_reviewed)]
        if not named or place - named[-1].end > MOST_ON or "\n\n" in self._text.plain[named[-1].end : place]:
            return []
        return named[-1:] if isinstance(named[-1], StatedDecision) else []

    def _source_distance(self, quotation: Quotation, source: Source) -> int:
        """Rank sources: in parentheses after the quotation, before it, after it; the nearest first."""
        if source.start >= quotation.end:
            gap = self._text.outside[quotation.end : source.start]
            near = _PARENTHESIS.match(gap) is not None and ")" not in gap
            return source.start - quotation.end + (0 if near else 100_000)
        return 1000 + quotation.start - source.end
