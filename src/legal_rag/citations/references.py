"""Find what a French text refers to: decisions and what it says of them, articles of codes, quotations."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.citations.claims import Quotation, find_quotations
from legal_rag.citations.wording import CONTENT_WORD
from legal_rag.law import (
    SERIES,
    Identifier,
    LegalDate,
    find_courts,
    find_dates,
    find_formations,
    find_identifiers,
)
from legal_rag.law.articles import ArticleNumber, find_abbreviated_articles, find_texts
from legal_rag.law.courts import find_short_courts, parse_court
from legal_rag.law.outcomes import ELIGIBLE, STATED
from legal_rag.law.scanning import BLANK, spaced
from legal_rag.law.sentences import split_sentences
from legal_rag.law.words import negations

QUOTED_WORDS = 4  # content words of a quotation that is looked for without a source
MOST_BACK = 5000  # characters from an article without a code back to one of the same code
FEWEST_SAID = 4  # content words that a sentence says beside its citation
MOST_GAP = 160  # characters between two parts of one citation

_JOINS_COURT = re.compile(spaced(r"_[,(]?_(?:(?:de la|de l['’]|de|du|d['’])_)?"), re.IGNORECASE)

# Words that may stand between the court, the date and the number of one citation.
_NOUN = r"arr[êe]ts?|d[ée]cisions?|jugements?|ordonnances?|avis"
_DELIVERED = "a|été|est|rendue?s?|prononcée?s?|lue?s?|statué"
_VERBS = (
    "ont|jugé|juge|décidé|décide|retenu|retient|rejeté|rejette|cassé|casse|annulé|annule|confirmé|confirme"
    "|infirmé|infirme|estimé|estime|considéré|considère|énoncé|énonce|rappelé|rappelle|affirmé|affirme|dit|statue"
    "|précisé|précise|admis|admet|posé|pose|déclaré|ainsi|ensuite|également|encore|notamment"
)
_SMALL = (
    "du|de|des|la|le|les|en|date|par|dans|sa|son|cette|cet|ce|un|une|sous|au|aux|pourvois?|requ[êe]tes?|req|affaires?|aff"
    "|numéros?|nos?|n|rg|rôle|répertoire|général|publiée?s?|publ|inédite?|bulletin|bull|arr|déc|préc|précitée?|audience"
    "|publique|séance|voir|v|cf|fs|fp|fd|f|p|b|r|i|d|pb|pbi|pbri|qpc|section|sect|chambres?|ch|civ|soc|plén|ass|jcp|jurisdata"
    "|et|sociales?|commerciales?|civiles?|criminelle|correctionnelle|mixte|réun|réunies"
    "|an|sen|dc|formation|plénière|lecture|réf|ord|ordre|public|solennelle|et autres?|grande"
)


def _only_pattern(words: str) -> re.Pattern[str]:
    """Compile a pattern that matches only these words, abbreviations, signs, ordinals and small numbers; linear."""
    return re.compile(
        rf"(?:[\s,.:()\[\]*_+°º/|–—-]|(?:l|d|s)['’]|(?:{words})(?!\w)|[^\W\d_]{{1,10}}\.(?!\w)|[A-Z](?![\w'’.])"
        r"|\d{1,2}(?:er|[èe]re|re|nde?|[èe]me|e)s?(?!\w)|\d{1,4}(?![\w/-]))*+",
        re.IGNORECASE,
    )


_FILLER = _only_pattern(f"{_NOUN}|{_DELIVERED}|{_VERBS}|{_SMALL}")
_BEFORE_DATE = _only_pattern(f"{_NOUN}|{_DELIVERED}|{_SMALL}")  # the decision under review may have a date too
# Parties between the date, or the court, and the number: "CE, 3 juin 2021, Commune de Saint-Aubrac, req. n° 498765".
_PARTIES = re.compile(
    r"\s*,\s(?![^,]*\b(?:contre|form[ée]|pourvoi|requête|décision|arrêt)\b)(?:[^,;:()«»“”|\n]{2,90},\s*){1,2}"
    r"(?:\b(?:req(?:u[êe]tes?|\.)?|pourvois?|aff(?:aires?|\.)|RG)\W{0,3})?(?:n\W{0,3})?(?:[A-Z]\s)?",
    re.IGNORECASE,
)
# A court, and a decision of it named in other words: "La Cour de cassation, dans un arrêt remarqué du".
_LOOSELY = re.compile(
    rf"(?=[^.;:«»“”()|\n]{{0,99}}\b(?:{_NOUN})(?!\w))"
    r"(?![^.;:]*\b(?:contre|form[ée]|attaqu|cass[ée]|annul|infirm|confirm|appel|pourvoi|moyen|déféré|la cour|le tribunal|conseil))"
    r"[^.;:«»“”()|\n]{1,100}\(?\s*(?:n\W{0,3})?",
    re.IGNORECASE,
)
_LIST = re.compile(
    rf"[\s,]*(?:et|ou|&|à|,|/)?[\s,(]*(?:pourvois?)?\s*(?:n{BLANK}?[°os.]{{0,3}})?\s*(?:[A-Z]\s)?", re.IGNORECASE
)
_ANOTHER_DECISION = re.compile(
    rf"(?<!\()(?:\b(?:l['’]|un|le|la|les|une|cette?|du|d['’]|de l['’])\s{{0,3}})(?:{_NOUN})(?!\w)", re.IGNORECASE
)
# What happened on a day that is not the decision's own.
_OTHER_DAY = re.compile(
    r"\b(?:enregistr|dépos|introdui|saisi|notifi|signifi|reçu|form|interjet|intent|présent|modifi|conclu|licenci|assign)"
    r"\w*[^.;]{0,100}$",
    re.IGNORECASE,
)
# What stands between a citation and an outcome that is its own: "n° 17-31.442 (rejet)", "cassé par Cass. soc.".
_SAID_AFTER = re.compile(
    r"[\s,:(\[|)–—-]*(?:qui\s|lequel\s|laquelle\s|(?:arrêt|décision)\sde\s)?(?:(?:publié|inédit)\w*\W{0,4})?",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    rf"\s(?:par|:)\s(?:(?:l['’]|un\s|la\s|une\s)?(?:{_NOUN})\s(?:de\s(?:la\s)?|du\s|rendue?\spar\s(?:la\s)?)?)?",
    re.IGNORECASE,
)
# A court whose decision another one reviews: "a cassé l'arrêt de la cour d'appel de Lyon".
_JUDGED = re.compile(
    r"\b(?:contre|encontre|cass\w+|censur\w+|attaqu\w+|annul\w+|déféré\w*|infirm\w+|approuv\w+)\b(?![^.;,()]*\bpar\b)[^.;,()]{0,60}$",
    re.IGNORECASE,
)
_APPEALED = re.compile(r"pourvoi", re.IGNORECASE)
_DECISION_NOUN = re.compile(rf"(?<!\w)(?:{_NOUN})(?!\w)[^.;\n]{{0,60}}$", re.IGNORECASE)
_DECISION_OF_DAY = re.compile(
    rf"(?<!\w)(?:{_NOUN})\s(?:(?:précitée?s?|préc\.|susvisée?s?|susmentionnée?s?|de principe|commentée?)\s)?"
    r"(?:rendue?\s)?(?:du|le|en date du)\s$",
    re.IGNORECASE,
)
_CASE_NAME = re.compile(
    r"\b(?:[Aa]rrêts?|[Jj]urisprudences?)\s(?:dite?s?\s)?(?:«\s?)?"
    r"(?P<name>(?:(?:société|Sté|Mme|M\.|époux|consorts)\s)?[A-ZÉ][a-zà-ÿ][\w'’-]+(?:\s[A-ZÉ][\w'’&-]+){0,2})"
)
# What looks like a decision's number, of whatever form, or a year after an abbreviated court.
_LOOKS_CITED = re.compile(
    r"(?<!\w)(?:n\s?[°ºo]s?|pourvois?|req(?:uêtes?|\.)|RG|aff\.)\s?(?:n\s?[°ºo]s?\s?)?[A-Z]{0,3}\s?\d[\d\s./–-]*\d[A-Z]{0,3}"
)
_OF_ANOTHER_THING = re.compile(
    r"\b(?:pièces?|factures?|contrats?|devis|commandes?|dossiers?|sinistre|police|cotes?|annexes?|lots?|réf(?:érence)?s?\.?)"
    r"(?:\s(?:adverses?|client|interne))?\s?:?\s?(?:n\W{0,3})?$",
    re.IGNORECASE,
)
_OTHER_NUMBER = re.compile(
    r"\b(?:pièces?|factures?|contrats?|lois?|décrets?|ordonnances?|arrêtés?|règlements?|directives?|dossiers?|sinistre|police"
    r"|comptes?|cotes?|annexes?|bull\w*\.?|chroniques?|obs|p\.|page|lot|titre|brevet|permis|téléphone|réf\w*)(?:\W\w+){0,3}\W*$",
    re.IGNORECASE,
)
_RULING = re.compile(
    r"arr[êe]t\sn\W{0,3}(\d{1,4})\s(?:[A-Z][A-Z+\s-]{0,14}\s)?(?:rendue?\s)?(?:du|le|en date du)\s$", re.IGNORECASE
)
_LAW = re.compile(r"(?:loi|ordonnance|décret)\b(?=.*\d)", re.IGNORECASE)
_PART_OF_ARTICLE = re.compile(r"\bart(?:icles?|\.)\s{0,3}(?:[LRD]\.?\s?)?$", re.IGNORECASE)
_WEAK_CONTEXT = re.compile(
    r"\bcour |tribunal|arr[êe]t|jugement|\bRG\b|décision|requ[êe]te|\breq\.|pourvoi", re.IGNORECASE
)

FORMER = re.compile(
    r"\bancien(?:ne)?s?\b|\babrogé|\bantérieure?|alors (?:en vigueur|applicable)|\brédaction\b|\bdevenue?s?\b"
    r"|\brecodifi|\bd['’]alors\b|\bnouveau code\b",
    re.IGNORECASE,
)

# What precedes an outcome that is not the decision's: it is denied, or asked for.
_NEGATED = re.compile(rf"(?:{negations(verb=True)}|\b(?:sans|faut-il|si)\b)[^.;,]{{0,20}}$", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:tend\w*|demand\w+|conclu\w+|sollicit\w+|soutien\w+|soutenai\w+|reproch\w+|grief|susceptible)\b[^.;]{0,80}$",
    re.IGNORECASE,
)

# A sentence that continues about the decision named before it.
_GOES_ON = re.compile(
    r"\W*(?:elle|il|la (?:haute )?(?:cour|juridiction)|le conseil|les (?:sages|juges)|(?:l['’]|cet |cette |la |le )"
    rf"(?:{_NOUN})|la chambre)(?!\w)|\W*(?:aux termes|selon|d['’]après) (?:de )?(?:cet|cette|l['’])",
    re.IGNORECASE,
)
_SAME = re.compile(
    rf"[\s.,;]*[(\[]\s?(?:(?:l['’]|cet\s|cette\s|même\s)?(?:{_NOUN})\s)?(?:ibid|idem|id\.|préc|op\. cit|même|susvis)",
    re.IGNORECASE,
)
_IBID = re.compile(r"(?<!\w)(?:ibid(?:em)?\.?|id(?:em)?\.(?=[\s,)]))", re.IGNORECASE)
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
# A numbered paragraph of the decision named before or after it.
_POINT = r"(?:points?|pts?\.?|§{1,2}|considérants?|consid\.|cons\.|paragraphes?|par(?:ag?r?)?\.)\s?(?:n°\s?)?(?P<point>\d{1,3})(?![\w/])"
_POINT_AFTER = re.compile(
    rf"(?:,\s[^,;:()«»“”\n]{{2,60}}(?=,)){{0,2}}[\s,;()]*(?:aux?\s|spéc\.\s|not\.\s)*{_POINT}", re.IGNORECASE
)
_POINT_BEFORE = re.compile(
    rf"{_POINT}\s(?:de\s(?:cet\s|la\s|l['’]|sa\s|son\s)?|du\s)(?:même\s)?(?:{_NOUN})?\W{{0,3}}(?:n\W{{0,3}})?$",
    re.IGNORECASE,
)
# The day on which the version of an article that is meant was in force.
_VERSION = re.compile(
    r"\b(?:rédaction|version)\b[^.;«»“”\d]{0,40}?(?:(?P<until>antérieure?)\s(?:à|au)|\b(?:applicable|en\svigueur))",
    re.IGNORECASE,
)
_UNTIL_DAY = re.compile(r"[^.;«»“”]{0,60}")
_SAME_CODE = re.compile(r"[\s,]*(?:du|dudit|de ce|dans ce)\s(?:même\s|dit\s)?code\b", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[\s.,;»”\"]*[(\[]")
# A line break inside a citation or before its code, as in a cell.
_UNFINISHED = re.compile(
    r"(?<=[,(])\n(?!\n)|(?<=\b(?:n°|du|le|la))\n(?!\n)|(?<=\b(?:de|et|au))\n(?!\n)|(?<=\bart\.)\n(?!\n)"
)
_MARKS = re.compile(r"[*_`~\\]")


class StatedOutcome(NamedTuple):
    """An outcome that a text states."""

    kind: str  # see `legal_rag.law.outcomes`
    start: int  # characters
    end: int
    court: str  # named last before it in its sentence; may be empty


class StatedDecision(NamedTuple):
    """A decision that a text names, and what it says of it."""

    start: int  # characters: with court and date, or of the number alone where there are several
    end: int
    names: tuple[Identifier, ...]  # of one number: joined cases have several; none: named by court and date
    court: str  # as written; empty if none is stated
    date: LegalDate | None
    outcomes: tuple[StatedOutcome, ...]
    citation: Span  # with court, date and its other numbers
    sentence: int  # its number in the text
    supports: Span = (0, 0)  # what the text says that it is cited for: its sentence, or the one before
    ruling: str = ""  # the arrêt's own number, which is not the case's: of "l'arrêt n° 1153 FS-P+B du 25 novembre 2020"
    party: str = ""  # by whose name alone it is called: of "l'arrêt Derichebourg"
    point: int = 0  # numbered paragraph that is meant: of "§ 12"; 0: none is stated


class StatedArticle(NamedTuple):
    """An article of a code that a text names."""

    start: int  # characters, of the number
    end: int
    value: str  # normalised: 'L1152-1'
    code: str  # 'code du travail'
    former: bool  # said to be of an earlier version of the code
    sentence: int
    day: date | None = None  # on which the version meant was in force, if that is said
    is_guess: bool = False  # its code is not named with it, but before


Source = StatedDecision | StatedArticle


class StatedQuotation(NamedTuple):
    """A quotation, and what the text gives as its source, the likeliest first."""

    start: int  # characters, marks included
    end: int
    words: str
    sources: tuple[Source, ...]
    introduced: bool  # by "que", a colon, or followed by its source in parentheses
    of_a_text: bool  # named last before it: a statute, an article, a contract, not a decision
    speaker: str  # the court named last before it in its sentence; may be empty
    sentence: Span  # that it stands in, with a source in parentheses after it


class StatedLaw(NamedTuple):
    """A law, an ordinance or a decree that a text names by its number, or by its date."""

    start: int  # characters
    end: int
    name: str  # as the text has it: "loi n° 85-677 du 5 juillet 1985"
    date: LegalDate | None


class UnreadReference(NamedTuple):
    """Words that look like a reference to a decision and could not be read as one."""

    start: int  # characters
    end: int


class References(NamedTuple):
    """What a text refers to, each in text order."""

    decisions: list[StatedDecision]
    articles: list[StatedArticle]
    laws: list[StatedLaw]
    quotations: list[StatedQuotation]
    unread: list[UnreadReference]


def find_references(text: str, quoted: Sequence[Span] = ()) -> References:
    """Find decisions, articles with their codes and quotations; linear in the text.

    `quoted` are the spans set off as quotations without marks of their own.
    """
    return _ReferenceReader(text, quoted).read()


class _CitationPart(NamedTuple):
    kind: str  # 'court', 'date' or 'number'
    start: int
    end: int


def _date_first(part: _CitationPart) -> bool:
    return part.kind != "date"


class _ReferenceReader:
    """Parses one text; parts of a citation are joined where only citation words separate them."""

    def __init__(self, text: str, quoted: Sequence[Span]) -> None:
        self.text = text
        self.quotations = _with_blocks(text, find_quotations(text), quoted)
        self.plain = _UNFINISHED.sub(" ", _MARKS.sub(" ", text).replace("º", "°"))
        self.outside = _mask_quotations(self.plain, self.quotations)  # the text without what it quotes
        self.sentences = split_sentences(self.outside)
        self.dates = {date.start: date for date in find_dates(self.plain)}
        self.names: dict[int, list[Identifier]] = {}
        self.numbered_articles: list[Identifier] = []
        for identifier in find_identifiers(self.plain):
            if identifier.kind == "article":
                self.numbered_articles.append(identifier)
            else:
                self.names.setdefault(identifier.start, []).append(identifier)
        self.courts = _find_cited_courts(self.plain)
        self.short_courts = {start for start, _ in find_short_courts(self.plain)}
        self.court_starts = [start for start, _ in self.courts]
        self.date_starts = sorted(self.dates)
        self.named_starts = sorted(self.names)
        self.sentence_starts = [start for start, _ in self.sentences]

    def read(self) -> References:
        decisions = sorted(self._read_decisions(), key=lambda decision: decision.start)
        decisions = sorted([*decisions, *self._read_again(decisions)], key=lambda decision: decision.start)
        articles = self._read_articles()
        quotations = self._read_quotations(decisions, articles)
        unread = list(self._find_unread(decisions))
        return References(decisions, articles, list(self._read_laws()), quotations, unread)

    def _read_laws(self) -> Iterator[StatedLaw]:
        dates = list(self.dates.values())
        for text in find_texts(self.plain, dates):
            name = " ".join(self.plain[text.start : text.end].split())
            if text.kind == "statute" and _LAW.match(name) and not self._in_quotation(text.start):
                yield StatedLaw(
                    text.start, text.end, name, next((day for day in dates if text.start < day.start < text.end), None)
                )

    def _find_unread(self, decisions: Sequence[StatedDecision]) -> Iterator[UnreadReference]:
        """Yield numbers beside a court, and abbreviated courts before a year, that belong to no citation."""
        read = sorted(span for decision in decisions for span in (decision.citation, (decision.start, decision.end)))
        done = -1
        for match in _LOOKS_CITED.finditer(self.outside):
            start, end = match.span()
            number = bisect_left(read, (end, 0))
            in_read = any(begin < end and start < stop for begin, stop in read[max(number - 4, 0) : number])
            near = self.courts[max(bisect_left(self.court_starts, start) - 1, 0) : bisect_right(self.court_starts, end)]
            beside = any(
                begin < end + 40 and start < stop + 40 and self._sentence_at(begin) == self._sentence_at(start)
                for begin, stop in near
            )
            if not in_read and beside and start >= done and not _OTHER_NUMBER.search(self.outside[:start][-40:]):
                done = end
                yield UnreadReference(start, end)

    def _sentence_at(self, place: int) -> int:
        return max(bisect_right(self.sentence_starts, place) - 1, 0)

    def _find_parts(self) -> list[_CitationPart]:
        numbers = [_CitationPart("number", start, group[0].end) for start, group in self.names.items()]
        dates = [_CitationPart("date", start, date.end) for start, date in self.dates.items()]
        courts = [_CitationPart("court", start, end) for start, end in self.courts]
        return sorted([*numbers, *dates, *courts], key=lambda part: (part.start, -part.end))

    def _read_decisions(self) -> Iterator[StatedDecision]:
        citations = [parts for parts in map(self._select_parts, self._group_parts()) if parts]
        outcomes = self._outcomes_by_run(citations)
        of_day: dict[date, list[StatedDecision]] = {}  # read so far
        for parts in citations:
            for decision in self._build_decisions(parts, outcomes.get(id(parts), ())):
                meant = of_day.setdefault(decision.date.value, []) if decision.date else []
                same = [other for other in meant if other.names and _may_be_same(decision, other)]
                if not decision.names and len({other.names for other in same}) == 1:  # cited in full before
                    decision = decision._replace(names=same[0].names)
                if decision.names or decision.court or decision.ruling:
                    meant.append(decision)
                    yield decision
                elif meant:  # "l'arrêt du 25 octobre 2023"
                    yield decision._replace(court=meant[0].court)
                elif decision.date and not meant:
                    yield decision  # of a day on which one cited by its number alone may have been given
        yield from self._read_case_names(citations)

    def _read_again(self, decisions: Sequence[StatedDecision]) -> Iterator[StatedDecision]:
        """Yield the decision cited last again for each "ibid."."""
        starts = [decision.start for decision in decisions]
        for match in _IBID.finditer(self.outside):
            if number := bisect_left(starts, match.start()):
                last = decisions[number - 1]
                span, sentence = match.span(), self._sentence_at(match.start())
                again = last._replace(start=span[0], end=span[1], outcomes=(), citation=span, sentence=sentence)
                yield again._replace(supports=self._supported_by(span), point=self._find_point(*span))

    def _read_case_names(self, citations: Sequence[list[_CitationPart]]) -> Iterator[StatedDecision]:
        """Yield decisions called by a party's name alone: "l'arrêt Derichebourg"."""
        starts = [run[0].start for run in citations]
        for match in _CASE_NAME.finditer(self.outside):
            start, end = match.span("name")
            following = bisect_left(starts, start)
            cited = following < len(starts) and starts[following] - end < MOST_GAP
            cited = cited and self._sentence_at(starts[following]) == self._sentence_at(start)
            inside = following > 0 and citations[following - 1][-1].end > match.start()
            is_court = any(begin < end and start < stop for begin, stop in self.courts)
            if not (cited or inside or is_court):
                span, sentence = (match.start(), end), self._sentence_at(start)
                yield StatedDecision(
                    *span, (), "", None, (), span, sentence, self._supported_by(span), party=match["name"]
                )

    def _group_parts(self) -> Iterator[list[_CitationPart]]:
        """Yield runs of parts, one per citation: at most one court, one date and one list of numbers in each."""
        run: list[_CitationPart] = []
        for part in self._find_parts():
            if run and part.start < run[-1].end:
                continue  # inside the previous part
            if run and self._belongs_to_run(run, part):
                run.append(part)
                continue
            moved: list[_CitationPart] = []
            if run and part.kind == "date" and self._dates_its_own(run, part):
                moved = [run.pop()]
            if run:
                yield run
            run = [*moved, part]
        if run:
            yield run

    def _belongs_to_run(self, run: Sequence[_CitationPart], part: _CitationPart) -> bool:
        last, gap = run[-1], self.plain[run[-1].end : part.start]
        if len(gap) > MOST_GAP or "\n\n" in gap or self._in_quotation(last.end) != self._in_quotation(part.start):
            return False
        if self._sentence_at(last.end - 1) != self._sentence_at(part.start):
            # Court, date and number may stand on lines of their own.
            begun = last.kind == "court" or (part.kind == "number" and not any(one.kind == "number" for one in run))
            if not begun or not _FILLER.fullmatch(gap):
                return False
        if part.kind == "number" and last.kind == "number":
            return _LIST.fullmatch(gap) is not None or _FILLER.fullmatch(gap) is not None
        filler = _BEFORE_DATE if last.kind == "number" and part.kind == "date" else _FILLER
        if any(other.kind == part.kind for other in run):
            return False
        parties = last.kind != "number" and part.kind == "number" and _PARTIES.fullmatch(gap)
        if not (filler.fullmatch(gap) or parties or (last.kind == "court" and _LOOSELY.fullmatch(gap))):
            return False
        if last.kind == "number" and _ANOTHER_DECISION.search(gap):
            return False
        if {last.kind, part.kind} == {"date", "number"} and self._is_of_another_day(min(last, part, key=_date_first)):
            return False
        if part.kind == "number" and self.names[part.start][0].kind == "pourvoi" and self._is_judged(run):
            return False
        between_court_and_number = {last.kind, part.kind} == {"court", "number"}
        court = self.plain[slice(*(last if last.kind == "court" else part)[1:])]
        return not (between_court_and_number and _APPEALED.search(gap) and not _may_be_cassation(court))

    def _is_judged(self, run: Sequence[_CitationPart]) -> bool:
        court = next((part.start for part in run if part.kind == "court"), None)
        if court is None:
            return False
        before = max(self.sentences[self._sentence_at(court)][0], court - 100)
        return _JUDGED.search(self.plain[before:court]) is not None

    def _is_of_another_day(self, date: _CitationPart) -> bool:
        start = self.sentences[self._sentence_at(date.start)][0]
        return _OTHER_DAY.search(self.plain[max(start, date.start - 120) : date.start]) is not None

    def _dates_its_own(self, run: Sequence[_CitationPart], date: _CitationPart) -> bool:
        """Does a second date follow the last of several numbers: "9 janvier 2018, n° A, n° B du 3 mars 2015"?"""
        numbers = [part for part in run if part.kind == "number"]
        gap = self.plain[run[-1].end : date.start]
        return (
            len(numbers) > 1 and run[-1].kind == "number" and re.fullmatch(r"\W*(?:du|en date du)\W*", gap) is not None
        )

    def _select_parts(self, run: list[_CitationPart]) -> list[_CitationPart] | None:
        kinds = {part.kind for part in run}
        if "number" in kinds:
            strong = [part for part in run if part.kind != "number" or self._is_certain_number(part, kinds)]
            return strong if any(part.kind == "number" for part in strong) else None
        if kinds == {"date"}:
            before = self.plain[max(run[0].start - 60, 0) : run[0].start]
            return run if _DECISION_OF_DAY.search(before) or _RULING.search(before) else None
        if kinds != {"court", "date"}:
            return None
        court = next(part for part in run if part.kind == "court")
        abbreviated = court.start in self.short_courts
        before = self.plain[max(run[0].start - 80, 0) : run[0].start] + self.plain[run[0].end : run[1].start]
        return run if abbreviated or _DECISION_NOUN.search(before) or re.search(_NOUN, before) else None

    def _is_certain_number(self, part: _CitationPart, kinds: set[str]) -> bool:
        identifier = self.names[part.start][0]
        if identifier.kind == "number" and _PART_OF_ARTICLE.search(self.plain[max(part.start - 20, 0) : part.start]):
            return False
        if _OF_ANOTHER_THING.search(self.plain[max(part.start - 40, 0) : part.start]):
            return False
        if identifier.kind in ("ecli", "pourvoi", *SERIES) or "court" in kinds:
            return True
        start, end = self.sentences[self._sentence_at(part.start)]
        first, last = max(start, part.start - 200), min(end, part.end + 200)
        names_court = bisect_left(self.court_starts, first) < bisect_left(self.court_starts, last)
        return names_court or _WEAK_CONTEXT.search(self.plain, first, last) is not None

    def _build_decisions(
        self, run: Sequence[_CitationPart], outcomes: Sequence[StatedOutcome]
    ) -> Iterator[StatedDecision]:
        court = next((self.plain[part.start : part.end] for part in run if part.kind == "court"), "")
        date = next((self.dates[part.start] for part in run if part.kind == "date"), None)
        span, sentence = (run[0].start, run[-1].end), self._sentence_at(run[0].start)
        point = self._find_point(*span)
        ruling = _RULING.search(self.plain[max(run[0].start - 60, 0) : run[0].start]) if run[0].kind == "date" else None
        decision = StatedDecision(
            *span,
            (),
            " ".join(court.split()),
            date,
            tuple(outcomes),
            span,
            sentence,
            self._supported_by(span),
            ruling[1] if ruling else "",
            point=point,
        )
        numbers = [part for part in run if part.kind == "number"]
        if len(numbers) == 1:
            yield decision._replace(names=tuple(self.names[numbers[0].start]))
            return
        for part in numbers:
            yield decision._replace(start=part.start, end=part.end, names=tuple(self.names[part.start]))
        if not numbers:
            yield decision

    def _find_point(self, start: int, end: int) -> int:
        match = _POINT_AFTER.match(self.outside, end) or _POINT_BEFORE.search(self.outside[max(start - 60, 0) : start])
        return int(match["point"]) if match else 0

    def _supported_by(self, citation: Span) -> Span:
        """Return the sentence of a citation; the one before it, if it says nothing beside its citations."""
        number = self._sentence_at(citation[0])
        start, end = self.sentences[number]
        rest = f"{self.plain[start : citation[0]]} {self.plain[citation[1] : end]}"
        if number and len(CONTENT_WORD.findall(rest)) < FEWEST_SAID and "\n\n" not in self.plain[:start][-2:]:
            return self.sentences[number - 1]
        return start, end

    def _outcomes_by_run(self, citations: Sequence[list[_CitationPart]]) -> dict[int, tuple[StatedOutcome, ...]]:
        """Return the outcomes that each citation's sentence states of it, by `id` of its run.

        An outcome belongs to the citation that it stands beside, else to the only one of its sentence.
        """
        in_sentence: dict[int, list[list[_CitationPart]]] = {}
        for run in citations:
            if not self._in_quotation(run[0].start):
                in_sentence.setdefault(self._sentence_at(run[0].start), []).append(run)
        outcomes: dict[int, list[StatedOutcome]] = {}
        for sentence, runs in in_sentence.items():
            numbered = [run for run in runs if any(part.kind == "number" for part in run)] or runs
            for outcome in self._find_outcomes(*self.sentences[sentence]):
                beside = next((run for run in runs if self._stands_beside(outcome, run)), None)
                if beside is not None:
                    outcomes.setdefault(id(beside), []).append(outcome._replace(court=""))
                elif len(numbered) == 1:
                    outcomes.setdefault(id(numbered[0]), []).append(outcome)
        return {number: tuple(stated) for number, stated in outcomes.items()}

    def _stands_beside(self, outcome: StatedOutcome, run: Sequence[_CitationPart]) -> bool:
        start, end = run[0].start, run[-1].end
        if outcome.start >= end:
            return _SAID_AFTER.fullmatch(self.outside, end, outcome.start) is not None
        return outcome.end <= start and _SAID_BEFORE.fullmatch(self.outside, outcome.end, start) is not None

    def _find_outcomes(self, start: int, end: int) -> Iterator[StatedOutcome]:
        end = min(end, start + 3000)
        text, taken = self.outside[start:end], [(0, 0)]
        for kind, pattern in STATED:
            for match in pattern.finditer(text):
                if any(match.start() < stop and begin < match.end() for begin, stop in taken):
                    continue
                taken.append(match.span())
                if _ASKED.search(text[max(match.start() - 100, 0) : match.start()]):
                    continue
                if kind != ELIGIBLE and _NEGATED.search(text[max(match.start() - 30, 0) : match.start()]):
                    continue
                before = bisect_left(self.court_starts, start + match.start()) - 1
                known = before >= 0 and self.court_starts[before] >= start
                court = self.plain[slice(*self.courts[before])] if known else ""
                yield StatedOutcome(kind, start + match.start(), start + match.end(), court)

    def _read_articles(self) -> list[StatedArticle]:
        named: dict[int, ArticleNumber | Identifier] = {}
        named |= {name.start: name for name in find_abbreviated_articles(self.plain)}
        named |= {name.start: name for name in self.numbered_articles if name.code or name.start not in named}
        articles: list[StatedArticle] = []
        for start, name in sorted(named.items()):
            code = name.code or self._find_code(name, articles)
            if code:
                former = FORMER.search(self.plain, *self._sentence_context(start)) is not None
                version = self._find_version(name.end)
                row = name.end, name.value, code, former, self._sentence_at(start), version, not name.code
                articles.append(StatedArticle(start, *row))
        return articles

    def _find_code(self, name: ArticleNumber | Identifier, before: Sequence[StatedArticle]) -> str:
        """Return the code of an article named without one: that of the last one of its kind before it; "" if unsure."""
        same = [article for article in before if not article.is_guess and name.start - article.end < MOST_BACK]
        if not same:
            return ""
        if _SAME_CODE.match(self.plain, name.end):
            return same[-1].code
        lettered = [article.code for article in same if article.value[:1].isalpha()]
        return lettered[-1] if name.value[:1].isalpha() and len(set(lettered)) == 1 else ""

    def _find_version(self, end: int) -> date | None:
        """Return a day on which the version of the article before `end` that the text means was in force."""
        last = min(self.sentences[self._sentence_at(end - 1)][1], end + 200)
        behind = self.outside[end:last]
        match = _VERSION.search(behind)
        if match is None:
            return None
        stated = next((day for start, day in sorted(self.dates.items()) if end + match.end() <= start < last), None)
        year = re.match(r"\W{0,3}(\d{4})(?!\d)", behind[match.end() :])
        gap = stated and self.plain[end + match.end() : stated.start]
        day = stated.value if stated and _UNTIL_DAY.fullmatch(gap or "") else date(int(year[1]), 1, 1) if year else None
        return day - timedelta(days=1) if day and match["until"] else day

    def _sentence_context(self, place: int) -> Span:
        start, end = self.sentences[self._sentence_at(place)]
        return max(start, place - 200), min(end, place + 200)

    def _read_quotations(
        self, decisions: Sequence[StatedDecision], articles: Sequence[StatedArticle]
    ) -> list[StatedQuotation]:
        both: list[Source] = [*decisions, *articles]
        sources = sorted((each for each in both if not self._in_quotation(each.start)), key=lambda each: each.start)
        starts = [source.start for source in sources]
        stated = []
        for quote in self.quotations:
            number = self._sentence_at(quote.start)
            first, last = self._lead_start(quote.start, number), self._source_end(quote.end)
            near = sources[bisect_left(starts, first) : bisect_left(starts, last)][-50:]
            if not near and ((number and _GOES_ON.match(self.outside, first)) or _SAME.match(self.outside, quote.end)):
                near = self._source_before(sources, starts, first)
            near = sorted(near, key=lambda source: self._source_distance(quote, source))
            introduced = bool(_INTRODUCED.search(self.outside[max(quote.start - 30, 0) : quote.start])) or bool(
                near and near[0].start >= quote.end and _PARENTHESIS.match(self.outside, quote.end)
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
        first = self.sentences[number][0]
        begins = number and not self.outside[first:start].strip(" \t\n-–—")
        return self.sentences[number - 1][0] if begins and self.outside[:first].rstrip()[-1:] == ":" else first

    def _has_date(self, start: int, end: int) -> bool:
        number = bisect_left(self.date_starts, start)
        within = self.date_starts[number : number + 20]
        return any(place < end and not self._in_quotation(place) for place in within)

    def _find_speaker(self, first: int, start: int) -> tuple[bool, str]:
        """Return whether a text, not a decision, is named last in the sentence before `start`, and the last court."""
        lead_start = max(first, start - 300)
        lead = self.outside[lead_start:start]
        text = max((match.end() for match in _TEXT.finditer(lead)), default=-1)
        decider = max((match.end() for match in _DECIDER.finditer(lead)), default=-1)
        number = bisect_left(self.court_starts, start) - 1
        known = number >= 0 and self.court_starts[number] >= lead_start
        court = self.plain[slice(*self.courts[number])] if known else ""
        last_named = bisect_left(self.named_starts, start) - 1
        named = self.named_starts[last_named] - lead_start if last_named >= 0 else -1
        return text > max(decider, named), court

    def _source_end(self, end: int) -> int:
        """Return the end of the sentence that a quotation closes, and of a source in parentheses after it."""
        number = self._sentence_at(max(end - 1, 0))
        last = self.sentences[number][1] if self.sentences else len(self.text)
        if number + 1 < len(self.sentences) and self.outside[last : last + 1] in "([" and last - end <= 5:
            return self.sentences[number + 1][1]
        return last

    def _source_before(self, sources: Sequence[Source], starts: Sequence[int], place: int) -> list[Source]:
        number = bisect_left(starts, place) - 1
        if number < 0 or "\n\n" in self.text[sources[number].end : place] or place - sources[number].end > 1500:
            return []
        return [sources[number]] if isinstance(sources[number], StatedDecision) else []

    def _source_distance(self, quotation: Quotation, source: Source) -> int:
        """Rank sources: in parentheses after the quotation, before it, after it; the nearest first."""
        if source.start >= quotation.end:
            gap = self.outside[quotation.end : source.start]
            near = _PARENTHESIS.match(gap) is not None and ")" not in gap
            return source.start - quotation.end + (0 if near else 100_000)
        return 1000 + quotation.start - source.end

    def _in_quotation(self, place: int) -> bool:
        return self.outside[place : place + 1] != self.plain[place : place + 1]


def _may_be_same(decision: StatedDecision, other: StatedDecision) -> bool:
    return not parse_court(decision.court).contradicts(parse_court(other.court))


def _with_blocks(text: str, quotations: Sequence[Quotation], blocks: Iterable[Span]) -> list[Quotation]:
    """Add what is set off as a quotation, unless it has quotation marks inside."""
    starts = [quotation.start for quotation in quotations]
    alone = [
        Quotation(start, end, text[start:end])
        for start, end in blocks
        if bisect_left(starts, start) == bisect_left(starts, end) and text[start:end].strip()
    ]
    return sorted([*quotations, *alone])


def _mask_quotations(text: str, quotations: Iterable[Quotation]) -> str:
    """Replace quoted characters by a noncharacter; the length stays."""
    pieces, done = [], 0
    for start, end, _ in quotations:
        pieces += [
            text[done : start + 1],
            re.sub(r"[^\n]", "\ufdd0", text[start + 1 : end - 1]),
            text[max(start + 1, end - 1) : end],
        ]
        done = end
    return "".join([*pieces, text[done:]])


def _find_cited_courts(text: str) -> list[Span]:
    """Find courts with their chambers: 'Cass. soc.', 'la chambre sociale de la Cour de cassation'."""
    spans = [*find_courts(text), *find_formations(text), *find_short_courts(text)]
    courts: list[Span] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if courts and start < courts[-1][1]:
            continue
        if courts and _JOINS_COURT.fullmatch(text, courts[-1][1], start) and start > courts[-1][1]:
            courts[-1] = (courts[-1][0], end)
        else:
            courts.append((start, end))
    return courts


def _may_be_cassation(court: str) -> bool:
    name = parse_court(court)
    return "cassation" in name.types or bool(name.chambers and not name.types)
