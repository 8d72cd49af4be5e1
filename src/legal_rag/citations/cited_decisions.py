"""Find the decisions that a text cites: court, day and number of each, its outcome as told, and what it is cited for."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import chain
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.citations.cited_text import DECISION, CitedText
from legal_rag.citations.stated import StatedDecision, StatedOutcome, UnreadReference
from legal_rag.citations.wording import CONTENT_WORD
from legal_rag.law import SERIES, Identifier
from legal_rag.law.courts import level_of, parse_court
from legal_rag.law.outcomes import CASSATION, ELIGIBLE, STATED, SaidFate, find_fates
from legal_rag.law.scanning import BLANK
from legal_rag.law.words import negations

FEWEST_SAID = 4  # content words that a sentence says beside its citation
MOST_GAP = 160  # characters between two parts of one citation
MOST_SENTENCE = 3000  # characters of a sentence that are read for outcomes
MOST_ON = 1500  # characters from a decision to a sentence that goes on about it
MOST_AGAIN = 50  # decisions of one day, of which one may be cited again

# Words that may stand between the court, the date and the number of one citation.
_DELIVERED = "a|été|est|rendue?s?|prononcée?s?|lue?s?|statué"
# What a court does on the day of its decision.
_JUDGES = (
    "(?:juge?|décid|rejet|cass|annul|(?:ré|in|con)?firm|(?:ré)?affirm|estim|considér|énonç?c?|rappel|précis|pos|déclar"
    "|censur|approuv|condamn|ordonn|débout|prononç?c?|écart|tranch|consacr|valid|sanctionn|réform|refus|relax|homologu"
    "|renvoy|statu)(?:ée?|e|a|ait|ent|èrent)|retenue?|retient|admise?|admet|dit|rendue?|reconnue?|reconnaît|exclut?"
    "|accueillie?|interdite?"
)
_WEEKDAYS = r"(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\s"
_ADVERBS = r"ainsi|ensuite|également|encore|notamment|aussi|déjà|enfin|bien|très|récemment"
_VERBS = f"{_JUDGES}|ont|{_ADVERBS}"
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


_FILLER = _only_pattern(f"{DECISION}|{_DELIVERED}|{_VERBS}|{_SMALL}")
_BEFORE_DATE = _only_pattern(f"{DECISION}|{_DELIVERED}|{_SMALL}")  # the decision under review may have a date too
# Parties between the date, or the court, and the number: "CE, 3 juin 2021, Commune de Saint-Aubrac, req. n° 498765".
_PARTIES = re.compile(
    r"\s*,\s(?![^,]*\b(?:contre|form[ée]|pourvoi|requête|décision|arrêt)\b)(?:[^,;:()«»“”|\n]{2,90},\s*){1,2}"
    r"(?:\b(?:req(?:u[êe]tes?|\.)?|pourvois?|aff(?:aires?|\.)|RG)\W{0,3})?(?:n\W{0,3})?(?:[A-Z]\s)?",
    re.IGNORECASE,
)
# A court, and a decision of it named in other words: "La Cour de cassation, dans un arrêt remarqué du".
_LOOSELY = re.compile(
    rf"(?=[^.;:«»“”()|\n]{{0,99}}\b(?:{DECISION})(?!\w))"
    r"(?![^.;:]*\b(?:contre|form[ée]|attaqu|cass[ée]|annul|infirm|confirm|appel|pourvoi|moyen|déféré|la cour|le tribunal|conseil))"
    r"[^.;:«»“”()|\n]{1,100}\(?\s*(?:n\W{0,3})?",
    re.IGNORECASE,
)
_LIST = re.compile(
    rf"[\s,]*(?:et|ou|&|à|,|/)?[\s,(]*(?:pourvois?)?\s*(?:n{BLANK}?[°os.]{{0,3}})?\s*(?:[A-Z]\s)?", re.IGNORECASE
)
_ANOTHER_DECISION = re.compile(
    rf"(?<!\()(?:\b(?:l['’]|un|le|la|les|une|cette?|du|d['’]|de l['’])\s{{0,3}})(?:{DECISION})(?!\w)", re.IGNORECASE
)
# A court and the day of its decision in ordinary prose: "la cour d'appel de Nîmes a jugé le", "l'a rappelé la cour".
_ON = rf",?\s(?:(?:dès|encore|pas plus tard que)\s)?le\s(?:{_WEEKDAYS})?"
_ADVERB = rf"(?:{_ADVERBS}|[^\W\d]+ment)"
_HAVE = r"(?:n['’])?(?:(?:l|les|en|y)['’ ])?(?:a|ont|avait|avaient|eut|aurait)(?:\s(?:pas|jamais))?|(?:se\s|s['’])(?:est|était)"
_DONE = rf"(?:{_ADVERB}\s){{0,2}}(?:{_JUDGES})(?!\w)"
_DOES = rf"(?:(?:le|les)\s|n['’]|ne\s)?(?!\w+(?:ée?|ue?|ise?|ie?)s?\s){_DONE}"  # no participle: "la cour de Nîmes, cassée le"
_DID = rf"(?:(?:{_HAVE}),?\s{_DONE}|{_DOES})"
_DID_ON = re.compile(
    rf",?\s(?:qui\s)?{_DID}(?:\s{_ADVERB}|,?\s(?:en|dans)\s[^\W\d]+(?:\s[^\W\d]+){{0,3}})?{_ON}", re.IGNORECASE
)
_HAD_ON, _THEN_DONE = (re.compile(words, re.IGNORECASE) for words in (rf",?\s(?:{_HAVE}){_ON}", rf",?\s{_DONE}"))
_ON_DAY, _THEN_DID = (re.compile(words, re.IGNORECASE) for words in (_ON, rf",?\s{_DID}"))
_JUST_DAY = re.compile(r"\s?,\s?|\s\((?:le\s)?")
_RULED = rf"(?<!\w)(?!ordonn)(?:{_JUDGES})"  # what is ordered is a measure of the inquiry
_DONE_BY = re.compile(rf"{_RULED}\s(?:par\s|en\s)?(?:la\s|le\s|l['’])?$", re.IGNORECASE)
_DONE_ON = re.compile(rf"{_RULED}{_ON}$", re.IGNORECASE)
_BY_COURT = re.compile(r",?\spar\s(?:la\s|le\s|l['’])?", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"\W*(?:[^\W\d]+,\s)?le\s(?:{_WEEKDAYS})?$", re.IGNORECASE)
_THEN_COURT = re.compile(r",?\s(?:la\s|le\s|l['’])?", re.IGNORECASE)
# "a retenu le 7 juin 2019 comme date": the day is what is judged; "devant la cour, 7 juin 2019 à 14 h": a hearing.
_NOT_THE_DAY = re.compile(r",?\s(?:comme|pour|en tant que)\b|\s(?:à|au)\s\d|\s(?:au|et|ou)\s(?:le\s)?\d", re.IGNORECASE)
_HEARD = re.compile(r"\b(?:devant|audience|convo\w+|saisi\w*|pendant\w*)(?:\s\w+){0,2}\W{0,2}$", re.IGNORECASE)
# What happened on a day that is not the decision's own.
_OTHER_DAY = re.compile(
    r"\b(?:enregistr|dépos|introdui|saisi|notifi|signifi|reçu|form|interjet|intent|présent|modifi|conclu|licenci|assign)"
    r"\w*[^.;]{0,100}$",
    re.IGNORECASE,
)
# What stands between a citation and an outcome that is its own: "n° 17-31.442 (rejet)", "cassé par Cass. soc.".
_SAID_AFTER = re.compile(
    r"(?:,\s[^,;:()«»“”\n]{2,60}(?=,)){0,2}[\s,:(\[|)–—-]*(?:qui\s|lequel\s|laquelle\s|(?:arrêt|décision)\sde\s)?(?:(?:publié|inédit)\w*\W{0,4})?",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    rf"\s?(?:\bpar|:)\s(?:(?:l['’]|un\s|la\s|une\s)?(?:{DECISION})\s(?:de\s(?:la\s)?|du\s|rendue?\spar\s(?:la\s)?)?)?",
    re.IGNORECASE,
)
# A court whose decision another one reviews: "a cassé l'arrêt de la cour d'appel de Lyon".
_JUDGED = re.compile(
    r"\b(?:contre|(?:à l['’])?encontre d\w*|c/|attaqu(?:e|é|ée|er|ant)|déféré|(?:cass|censur|annul|infirm|approuv)(?:e|ent|é|ée|er|ant|ait))(?!\w)"
    r"(?!\spar\b)(?:(?!\b(?:selon|comme|notamment|dans|voir|v\.|et)\b)[^.;,()]){0,60}$",
    re.IGNORECASE,
)
_JUDGED_SINCE = re.compile(
    r"[^.;()\n]{0,40}?[\s,]+(?:(?:a|est|fut) (?:été )?|et )?(?:partiellement |en partie )?(?:cassée?|annulée?|infirmée?|censurée?)\b",
    re.IGNORECASE,
)
_DISPUTED = re.compile(
    r"\b(?:inexact|faux|fausse|erroné|à tort|loin|contrairement|pas (?:exact|vrai|possible|jugé)|ne saurait)\b[^;]{0,160}$",
    re.IGNORECASE,
)
_APPEALED = re.compile(r"pourvoi", re.IGNORECASE)
_DECISION_BEFORE = re.compile(rf"(?<!\w)(?:{DECISION})(?!\w)[^.;\n]{{0,60}}$", re.IGNORECASE)
_DECISION_OF_DAY = re.compile(
    rf"(?<!\w)(?:{DECISION})\s(?:(?:précitée?s?|préc\.|susvisée?s?|susmentionnée?s?|de principe|commentée?)\s)?"
    r"(?:rendue?\s)?(?:du|le|en date du)\s$",
    re.IGNORECASE,
)
_CASE_NAME = re.compile(
    r"\b(?:[Aa]rrêts?|[Jj]urisprudences?)\s(?:dite?s?\s)?(?:«\s?)?"
    r"(?P<name>(?:(?:société|Sté|Mme|M\.|époux|consorts)\s)?(?!F[SPD]?-|F[SP]\b|QPC|RG\b|CEDH|CJUE|CJCE|CE\b|CA\b|CAA\b|TA\b)"
    r"(?:L['’])?[A-ZÉ][\wà-ÿ'’&-]{2,}(?:\s[A-ZÉ][\w'’&-]+){0,2})"
)
_OF_DAY = re.compile(r"\sdu\s|,\s|\s\(")
# What looks like a decision's number, of whatever form.
_LOOKS_CITED = re.compile(
    r"(?<!\w)(?:n\s?[°ºo]s?|pourvois?|req(?:uêtes?|\.)|RG|aff\.)\s?(?:n\s?[°ºo]s?\s?)?[A-Z]{0,3}\s?\d[\d\s./–-]*\d[A-Z]{0,3}"
)
_OF_ANOTHER_THING = re.compile(
    r"\b(?:pièces?|factures?(?:\s[A-Z]{1,3})?|contrats?|avenants?|devis|commandes?|dossiers?|sinistre|polices?(?:\sd['’]assurance)?|cotes?|annexes?|lots?|réf(?:érence)?s?\.?)"
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
_PART_OF_ARTICLE = re.compile(r"\bart(?:icles?|\.)\s{0,3}(?:[LRD]\.?\s?)?$", re.IGNORECASE)
_WEAK_CONTEXT = re.compile(
    r"\bcour |tribunal|arr[êe]t|jugement|\bRG\b|décision|requ[êe]te|\breq\.|pourvoi", re.IGNORECASE
)

# What precedes an outcome that is not the decision's: it is denied, or asked for.
_NEGATED = re.compile(rf"(?:{negations(verb=True)}|\b(?:sans|faut-il|si)\b)[^.;,]{{0,20}}$", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:tend\w*|demand\w+|conclu\w+|sollicit\w+|soutien\w+|souten\w+|reproch\w+|grief|susceptible)\b[^.;]{0,80}$",
    re.IGNORECASE,
)

_SUPPOSED = re.compile(
    r"\b(?:si|s['’](?:il|elle)s?|suppos\w+|faut-il|avant que|sans que)\b[^.;]{0,100}$", re.IGNORECASE
)
# What stands between a citation and what became of it, what it is called again, and what is done to it.
_BECAME = re.compile(
    r"(?:,\s[^,;:()«»“”\n]{2,60}(?=,)){0,2}[\s,:(\[|)–—-]*(?:(?:et|mais|qui|lequel|arr[êe]ts?)\s)*", re.IGNORECASE
)
_HAS_DONE = re.compile(r"\b(?:a|ont|avait|ayant)\b")
_SUBJECT_BETWEEN = re.compile(rf"\b(?:qu(?:e|['’])|dont|selon|{DECISION})(?!\w)", re.IGNORECASE)
_THIS = re.compile(r"(?i:cet|cette|ces?|ledit|dudit)\s(?:deux\s)?(?:arr[êe]t|jugement|d[ée]cision)s?(?!\w)")
_THIS_BECAME = re.compile(
    rf"(?:{_THIS.pattern})(?:\sd(?:e|u)\s(?:(?!\s(?:et|que|qui)\s)[^,.;:()«»]){{1,40}})?,?\s(?:qui\s)?$"
)
_IT_BECAME = re.compile(r"(?:^|[;:,]\s|\bet\s|\bmais\s)(?:ils?|elles?|ce(?:ux|lui|lles?)-ci),?\s$", re.IGNORECASE)
_TO_THIS = re.compile(rf"\s(?:(?:formé|dirigé)\s)?(?:contre\s)?(?:{_THIS.pattern})")
_RENDERED = rf"(?:{DECISION})\s(?:rendue?\s)?(?:par|de|du|le)\s(?:la\s|le\s|l['’])?"
_CALLED = rf"(?:{_RENDERED}|(?:{DECISION})\s)"  # also by its number alone: "l'arrêt n° 16/00002"
_TO_NEXT = re.compile(
    rf"(?:\s\w+ment|\sen\spartie)?\s(?:(?:l['’]\s?|la\s|une?\s){_CALLED}|le\s{_RENDERED})?"
    r"|(?:(?!\s(?:par|dans|que?|comme|avant|après|malgré|selon|visant|contraires?|à|aux?)\s)[^.,;:()«»]){0,40}?"
    rf"\s(?:l['’]\s?|le\s|la\s){_RENDERED}",
    re.IGNORECASE,
)
_TO_SUBJECT = re.compile(  # "Aujourd'hui cassé, l'arrêt de"
    rf"[^.,;:()«»]{{0,40}}?,\s(?:l['’]\s?|le\s|la\s){_CALLED}", re.IGNORECASE
)
_LISTED = re.compile(
    rf"[\s,;]{{0,3}}(?:(?:et|ni|ainsi que)\s)?(?:(?:l['’]|le\s|la\s)(?:{DECISION})\s|celui\s|celle\s)?"
    r"(?:(?:de|du)\s(?:la\s|l['’])?)?",
    re.IGNORECASE,
)
# Words on what became of a decision, however they stand.
_FATE = re.compile(
    r"\b(?:cass(?:e|ée?s?|er|era|ait)|(?<!\sde\s)(?<!\sen\s)(?<!après\s)cassation|censur(?:e|ée?s?|er|era))(?!\w)",
    re.IGNORECASE,
)
_ON_THE_DAY = re.compile(r",?\s(?:par\s[^;:.()«»]{0,60}?\s)?(?:le|du)\s", re.IGNORECASE)

_IBID = re.compile(r"(?<!\w)(?:ibid(?:em)?\.?|id(?:em)?\.(?=[\s,)]))", re.IGNORECASE)
# What stands between a citation and a numbered paragraph of it: "n° 16-86.735, Sté X, point 4", "§ 12 de l'arrêt".
_UNTIL_POINT = re.compile(r"(?:,\s[^,;:()«»“”\n]{2,60}(?=,)){0,2}[\s,;()]*(?:aux?\s|spéc\.\s|not\.\s)*", re.IGNORECASE)
_OF_POINT = re.compile(
    rf"\s(?:de\s(?:cet\s|la\s|l['’]|sa\s|son\s)?|du\s)(?:même\s)?(?:{DECISION})?\W{{0,3}}(?:n\W{{0,3}})?", re.IGNORECASE
)


def find_decisions(text: CitedText) -> list[StatedDecision]:
    """Find the decisions that a text names, in text order: by number, by court and day, by a party, or again."""
    reader = _DecisionReader(text)
    decisions = sorted(reader.read(), key=lambda decision: decision.start)
    return sorted([*decisions, *reader.read_again(decisions)], key=lambda decision: decision.start)


def find_unread(text: CitedText, decisions: Sequence[StatedDecision]) -> Iterator[UnreadReference]:
    """Yield what looks like a number of a decision, beside a court, and belongs to no citation."""
    read = sorted(span for decision in decisions for span in (decision.citation, (decision.start, decision.end)))
    for match in _LOOKS_CITED.finditer(text.outside):
        start, end = match.span()
        number = bisect_left(read, (end, 0))
        in_read = any(begin < end and start < stop for begin, stop in read[max(number - 4, 0) : number])
        sentence = text.sentence_at(start)
        near = text.courts_in(max(start - MOST_GAP, 0), end + 40)
        beside = any(start < stop + 40 and text.sentence_at(begin) == sentence for begin, stop in near)
        of_ruling = text.before(start, 8).lower().endswith(("arrêt ", "arret "))  # its number is read with its day
        if not in_read and beside and not of_ruling and not _OTHER_NUMBER.search(text.before(start, 40)):
            yield UnreadReference(start, end)


class _CitationPart(NamedTuple):
    kind: str  # 'court', 'date' or 'number'
    start: int
    end: int


def _date_first(part: _CitationPart) -> bool:
    return part.kind != "date"


class _DecisionReader:
    """Joins the parts of a citation where only citation words separate them."""

    def __init__(self, text: CitedText) -> None:
        self._text = text

    def _find_parts(self) -> list[_CitationPart]:
        numbers = [_CitationPart("number", start, group[0].end) for start, group in self._text.names.items()]
        days = self._text.dates.keys() - self._text.days_of_texts
        dates = [_CitationPart("date", start, self._text.dates[start].end) for start in days]
        courts = [_CitationPart("court", start, end) for start, end in self._text.courts]
        return sorted([*numbers, *dates, *courts], key=lambda part: (part.start, -part.end))

    def read(self) -> Iterator[StatedDecision]:
        citations = [parts for parts in map(self._select_parts, self._group_parts()) if parts]
        outcomes, fates = self._outcomes_by_run(citations), self._fates_by_run(citations)
        unread = self._unread_fates(chain(*outcomes.values(), *fates.values()))
        of_day: dict[date, list[StatedDecision]] = {}  # read so far
        for parts in citations:
            for decision in self._build_decisions(parts, outcomes.get(id(parts), ())):
                said = fates.get(id(parts)) or unread.get(self._text.sentence_at(parts[0].start), [])
                decision = decision._replace(fates=tuple(said))
                meant = of_day.setdefault(decision.date.value, []) if decision.date else []
                same = [other for other in meant[-MOST_AGAIN:] if other.names and _may_be_same(decision, other)]
                if not decision.names and len({other.names for other in same}) == 1:  # cited in full before
                    decision = decision._replace(names=same[0].names)
                if decision.names or decision.court or decision.ruling:
                    meant.append(decision)
                    yield decision
                elif meant:  # "l'arrêt du 25 octobre 2023"
                    yield decision._replace(court=meant[0].court)
                elif decision.date:
                    yield decision  # of a day on which one cited by its number alone may have been given
        yield from self._read_case_names(citations)

    def read_again(self, decisions: Sequence[StatedDecision]) -> Iterator[StatedDecision]:
        """Yield the decision cited last again for each "ibid."."""
        starts = [decision.start for decision in decisions]
        for match in _IBID.finditer(self._text.outside):
            if number := bisect_left(starts, match.start()):
                last = decisions[number - 1]
                span = match.span()
                again = last._replace(start=span[0], end=span[1], outcomes=(), citation=span, fates=())
                yield again._replace(supports=self._supported_by(span), point=self._find_point(*span))

    def _read_case_names(self, citations: Sequence[list[_CitationPart]]) -> Iterator[StatedDecision]:
        """Yield decisions called by a party's name alone: "l'arrêt Derichebourg"."""
        starts = [run[0].start for run in citations]
        for match in _CASE_NAME.finditer(self._text.outside):
            start, end = match.span("name")
            following = bisect_left(starts, start)
            cited = following < len(starts) and starts[following] - end < MOST_GAP
            cited = cited and self._text.sentence_at(starts[following]) == self._text.sentence_at(start)
            inside = following > 0 and citations[following - 1][-1].end > match.start()
            is_court = any(start < stop for _, stop in self._text.courts_in(start - MOST_GAP, end))
            if not (cited or inside or is_court):
                span = match.start(), end
                day = self._text.days_in(end, end + 6)
                of = self._text.dates[day[0]] if day and _OF_DAY.fullmatch(self._text.plain, end, day[0]) else None
                support = self._supported_by(span)
                yield StatedDecision(*span, (), "", of, (), span, support, party=match["name"])

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
        last, gap = run[-1], self._text.plain[run[-1].end : part.start]
        if (
            len(gap) > MOST_GAP
            or "\n\n" in gap
            or self._text.in_quotation(last.end) != self._text.in_quotation(part.start)
        ):
            return False
        if self._text.sentence_at(last.end - 1) != self._text.sentence_at(part.start):
            # Court, date and number may stand on lines of their own.
            begun = last.kind == "court" or (part.kind == "number" and not any(one.kind == "number" for one in run))
            if not begun or not (_FILLER.fullmatch(gap) or _PARTIES.fullmatch(gap)):
                return False
        if part.kind == "number" and last.kind == "number":
            return _LIST.fullmatch(gap) is not None or _FILLER.fullmatch(gap) is not None
        filler = _BEFORE_DATE if last.kind == "number" and part.kind == "date" else _FILLER
        if any(other.kind == part.kind for other in run):
            return False
        if part.kind == "court" and last.kind == "number" and len(run) > 1 and not re.search(r"\w", gap):
            return False  # the next citation begins
        parties = last.kind != "number" and part.kind == "number" and _PARTIES.fullmatch(gap)
        loosely = last.kind == "court" and (_LOOSELY.fullmatch(gap) or (part.kind == "date" and _DID_ON.fullmatch(gap)))
        if not (filler.fullmatch(gap) or parties or loosely):
            return False
        if last.kind != "court" and _ANOTHER_DECISION.search(gap):
            return False
        is_own = run[0].kind == "court" or {last.kind, part.kind} != {"date", "number"}
        if not is_own and self._is_of_another_day(min(last, part, key=_date_first)):
            return False
        if part.kind == "number" and self._text.names[part.start][0].kind == "pourvoi" and self._is_judged(run):
            return False
        between_court_and_number = {last.kind, part.kind} == {"court", "number"}
        court = self._text.plain[slice(*(last if last.kind == "court" else part)[1:])]
        return not (between_court_and_number and _APPEALED.search(gap) and not _may_be_cassation(court))

    def _is_judged(self, run: Sequence[_CitationPart]) -> bool:
        court = next((part.start for part in run if part.kind == "court"), None)
        if court is None:
            return False
        before = max(self._text.sentences[self._text.sentence_at(court)][0], court - 100)
        return _JUDGED.search(self._text.outside[before:court]) is not None

    def _is_judged_since(self, run: Sequence[_CitationPart]) -> bool:
        """Does the sentence go on saying that the decision was quashed: "CA Paris, 28 janv. 2022, cassé par"?"""
        return _JUDGED_SINCE.match(self._text.outside, run[-1].end) is not None

    def _is_of_another_day(self, date: _CitationPart) -> bool:
        start = self._text.sentences[self._text.sentence_at(date.start)][0]
        return _OTHER_DAY.search(self._text.outside[max(start, date.start - 120) : date.start]) is not None

    def _dates_its_own(self, run: Sequence[_CitationPart], date: _CitationPart) -> bool:
        """Does a second date follow the last of several numbers: "9 janvier 2018, n° A, n° B du 3 mars 2015"?"""
        numbers = [part for part in run if part.kind == "number"]
        gap = self._text.plain[run[-1].end : date.start]
        return (
            len(numbers) > 1 and run[-1].kind == "number" and re.fullmatch(r"\W*(?:du|en date du)\W*", gap) is not None
        )

    def _select_parts(self, run: list[_CitationPart]) -> list[_CitationPart] | None:
        kinds = {part.kind for part in run}
        if "number" in kinds:
            strong = [part for part in run if part.kind != "number" or self._is_certain_number(part, kinds)]
            return strong if any(part.kind == "number" for part in strong) else None
        if kinds == {"date"}:
            before = self._text.before(run[0].start, 60)
            return run if _DECISION_OF_DAY.search(before) or _RULING.search(before) else None
        if kinds != {"court", "date"}:
            return None
        court = next(part for part in run if part.kind == "court")
        abbreviated = court.start in self._text.short_courts
        before = self._text.before(run[0].start, 80) + self._text.plain[run[0].end : run[1].start]
        named = abbreviated or _DECISION_BEFORE.search(before) or re.search(DECISION, before)
        return run if named or self._is_judged_on(*run) else None

    def _is_judged_on(self, first: _CitationPart, last: _CitationPart) -> bool:
        """Does prose say that a court judged on a day: "La cour d'appel de Nîmes a jugé le 7 juin 2019 que"?"""
        start = self._text.sentences[self._text.sentence_at(first.start)][0]
        before = self._text.plain[max(start, first.start - 60) : first.start]
        gap = self._text.plain[first.end : last.start]
        after = self._text.plain[last.end : last.end + 80]
        if _NOT_THE_DAY.match(after):
            return False
        if first.kind == "date":
            if _DONE_ON.search(before):
                return _BY_COURT.fullmatch(gap) is not None
            return bool(_DAY_FIRST.fullmatch(before) and _THEN_COURT.fullmatch(gap) and _THEN_DID.match(after))
        return bool(
            _DID_ON.fullmatch(gap)
            or (_HAD_ON.fullmatch(gap) and _THEN_DONE.match(after))
            or (_ON_DAY.fullmatch(gap) and (_THEN_DID.match(after) or _DONE_BY.search(before)))
            or (_JUST_DAY.fullmatch(gap) and not _HEARD.search(before))
        )

    def _is_certain_number(self, part: _CitationPart, kinds: set[str]) -> bool:
        identifier = self._text.names[part.start][0]
        if identifier.kind == "number" and _PART_OF_ARTICLE.search(self._text.before(part.start, 20)):
            return False
        if _OF_ANOTHER_THING.search(self._text.before(part.start, 40)):
            return False
        if identifier.kind in ("ecli", "pourvoi", "id", "cjue", "cedh", *SERIES) or "court" in kinds:
            return True
        first, last = self._text.sentence_around(part.start, 200)
        return (
            bool(self._text.courts_in(first, last)) or _WEAK_CONTEXT.search(self._text.plain, first, last) is not None
        )

    def _build_decisions(
        self, run: Sequence[_CitationPart], outcomes: Sequence[StatedOutcome]
    ) -> Iterator[StatedDecision]:
        court = self._court_of(run)
        date = next((self._text.dates[part.start] for part in run if part.kind == "date"), None)
        span = run[0].start, run[-1].end
        point = self._find_point(*span)
        ruling = _RULING.search(self._text.before(run[0].start, 60)) if run[0].kind == "date" else None
        decision = StatedDecision(
            *span,
            (),
            " ".join(court.split()),
            date,
            tuple(outcomes),
            span,
            self._supported_by(span),
            ruling[1] if ruling else "",
            is_reviewed=self._is_judged(run) or self._is_judged_since(run),
            point=point,
        )
        numbers = [part for part in run if part.kind == "number"]
        names = {part: tuple(_as_of(name, court) for name in self._text.names[part.start]) for part in numbers}
        if len(numbers) == 1:
            yield decision._replace(names=names[numbers[0]])
            return
        for part in numbers:
            yield decision._replace(start=part.start, end=part.end, names=names[part])
        if not numbers:
            yield decision

    def _court_of(self, run: Sequence[_CitationPart]) -> str:
        return next((self._text.plain[part.start : part.end] for part in run if part.kind == "court"), "")

    def _find_point(self, start: int, end: int) -> int:
        for place in self._text.points_in(end, end + MOST_GAP)[:1]:
            if _UNTIL_POINT.fullmatch(self._text.outside, end, place.start):
                return place.first
        for place in self._text.points_in(start - 60, start)[-1:]:
            if _OF_POINT.fullmatch(self._text.outside, place.end, start):
                return place.first
        return 0

    def _supported_by(self, citation: Span) -> Span:
        """Return the sentence of a citation; the one before it, if it says nothing beside its citations."""
        number = self._text.sentence_at(citation[0])
        start, end = self._text.sentences[number]
        behind = self._text.plain[citation[1] : min(end, citation[1] + MOST_GAP)]
        rest = f"{self._text.before(citation[0], min(citation[0] - start, MOST_GAP))} {behind}"
        if number and len(CONTENT_WORD.findall(rest)) < FEWEST_SAID and "\n\n" not in self._text.before(start, 2):
            return self._text.sentences[number - 1]
        return start, end

    def _outcomes_by_run(self, citations: Sequence[list[_CitationPart]]) -> dict[int, tuple[StatedOutcome, ...]]:
        """Return the outcomes that each citation's sentence states of it, by `id` of its run.

        An outcome belongs to the citation that it stands beside, else to the only one of its sentence.
        """
        in_sentence: dict[int, list[list[_CitationPart]]] = {}
        for run in citations:
            if not self._text.in_quotation(run[0].start):
                in_sentence.setdefault(self._text.sentence_at(run[0].start), []).append(run)
        outcomes: dict[int, list[StatedOutcome]] = {}
        for sentence, runs in in_sentence.items():
            numbered = [run for run in runs if any(part.kind == "number" for part in run)] or runs
            for outcome in self._find_outcomes(*self._text.sentences[sentence]):
                of_next = self._text.outside.startswith(
                    " par ", outcome.end
                )  # "cassé par Cass. soc.": not what precedes
                after = (run for run in runs if not of_next or run[0].start > outcome.start)
                beside = next((run for run in after if self._stands_beside(outcome, run)), None)
                if beside is not None:
                    outcomes.setdefault(id(beside), []).append(outcome._replace(court=""))
                elif len(numbered) == 1 and not of_next and not outcome.is_relative:
                    outcomes.setdefault(id(numbered[0]), []).append(outcome)
        return {number: tuple(stated) for number, stated in outcomes.items()}

    def _fates_by_run(self, citations: Sequence[list[_CitationPart]]) -> dict[int, list[SaidFate]]:
        """Return what is said to have become of each citation, by `id` of its run."""
        fates: dict[int, list[SaidFate]] = {}
        starts = [run[0].start for run in citations]
        for said in find_fates(self._text.outside):
            inside, behind = bisect_left(starts, said.start), bisect_left(starts, said.end)
            of = following = citations[behind : behind + 1]
            sentence = self._text.sentences[self._text.sentence_at(said.start)][0]
            lead = self._text.outside[max(sentence, said.start - 160) : said.start]
            if any(words.search(lead) for words in (_SUPPOSED, _ASKED, _DISPUTED)):
                continue
            opens = said.voice == "bare" and said.kind == CASSATION and not said.is_of_several and not lead.strip()
            to_next = _TO_NEXT if said.voice == "active" else _TO_SUBJECT
            if not ((said.voice == "active" or opens) and of and self._fits(to_next, said.end, of[0][0].start)):
                before = citations[inside:behind] or citations[max(behind - 1, 0) : behind]
                of = [run for run in before if self._is_said_of(said, run, sentence, lead)]
                if of and said.is_of_several and inside == behind:
                    of = self._listed(citations[:behind], said, sentence)
            for run in of:
                fates.setdefault(id(run), []).append(said._replace(day=self._day_of_fate(said, following)))
        return fates

    def _listed(
        self, citations: Sequence[list[_CitationPart]], said: SaidFate, sentence: int
    ) -> list[list[_CitationPart]]:
        """Return the last citations, between which only words of a list stand; none if they are of one decision.

        A semicolon separates them only before the sentence that tells of them, and "ces deux" are of a list of two.
        """
        listed = list(citations[-1:])
        for run in reversed(citations[:-1]):
            gap = run[-1].end, listed[-1][0].start
            if not self._fits(_LISTED, *gap) or (";" in self._text.outside[slice(*gap)] and gap[1] >= sentence):
                break
            listed.append(run)
        is_list = len(listed) > 1 or sum(part.kind == "number" for part in listed[0]) > 1
        is_pair = "deux" in self._text.outside[max(sentence, said.start - 30) : said.end]
        return listed if is_list and not (is_pair and len(listed) > 2) else []

    def _unread_fates(self, read: Iterable[StatedOutcome | SaidFate]) -> dict[int, list[SaidFate]]:
        """Return a fate of no kind for words of one that were read as nothing, by the number of their sentence."""
        told = {place for one in read for place in range(one.start, one.end)}
        unread = {}
        for word in _FATE.finditer(self._text.outside):
            number, start = self._text.sentence_at(word.start()), max(word.start() - 160, 0)
            lead = self._text.outside[max(self._text.sentences[number][0], start) : word.start()]
            if word.start() not in told and not _ASKED.search(lead):
                unread[number] = [SaidFate("", *word.span(), "bare", False, False, False)]
        return unread

    def _fits(self, between: re.Pattern[str], start: int, end: int) -> bool:
        return start <= end and between.fullmatch(self._text.outside, start, end) is not None

    def _is_said_of(self, said: SaidFate, run: Sequence[_CitationPart], sentence: int, lead: str) -> bool:
        """Is a fate that of a citation, the last one before it, or in its words?"""
        end, text = run[-1].end, self._text.outside
        gap = text[end : said.start]
        if said.voice == "bare" and _HAS_DONE.search(text, max(run[0].start, said.start - MOST_ON), said.start):
            return False  # "la cour d'appel de Lyon a, par arrêt du 3 mars 2016, annulé"
        if end > said.start or (said.voice in ("passive", "bare") and _BECAME.fullmatch(gap)):
            return said.voice != "active"  # "le pourvoi contre CA Lyon, 3 mars 2016, a été rejeté"
        is_single = said.voice == "passive" and said.kind == CASSATION and not said.is_of_several
        if end > sentence and is_single and not _SUBJECT_BETWEEN.search(gap):
            return len(gap) < MOST_GAP
        if len(gap) > MOST_ON or "\n\n" in gap or self._text.courts_in(end, sentence):
            return False
        subject = said.voice == "passive" and _THIS_BECAME.search(lead)
        if this := subject or _TO_THIS.match(text, said.end) or _THIS.search(text, said.start, said.end):
            if "cision" in this.group():  # it may be an authority's, but for what only courts undo
                return said.kind == CASSATION
            return (level_of(self._court_of(run), "") == "first") == ("jugement" in this.group())
        it = said.voice == "pronoun" or (said.voice == "passive" and _IT_BECAME.search(lead) is not None)
        return it and said.kind == CASSATION

    def _day_of_fate(self, said: SaidFate, following: Sequence[list[_CitationPart]]) -> date | None:
        """Return the day of the decision by which something became of one: "cassé le", "cassé par Cass. soc.,"."""
        run = following[0] if following and self._fits(_SAID_BEFORE, said.end, following[0][0].start) else []
        near = self._text.days_in(said.end, said.end + 100)[:1]
        days = [part.start for part in run if part.kind == "date"]
        days += [day for day in near if self._fits(_ON_THE_DAY, said.end, day)]
        return self._text.dates[days[0]].value if days else None

    def _stands_beside(self, outcome: StatedOutcome, run: Sequence[_CitationPart]) -> bool:
        start, end = run[0].start, run[-1].end
        if outcome.start >= end:
            return _SAID_AFTER.fullmatch(self._text.outside, end, outcome.start) is not None
        return outcome.end <= start and _SAID_BEFORE.fullmatch(self._text.outside, outcome.end, start) is not None

    def _find_outcomes(self, start: int, end: int) -> Iterator[StatedOutcome]:
        end = min(end, start + MOST_SENTENCE)
        text, taken = self._text.outside[start:end], [(0, 0)]
        for kind, pattern in STATED:
            for match in pattern.finditer(text):
                if any(match.start() < stop and begin < match.end() for begin, stop in taken):
                    continue
                taken.append(match.span())
                before = text[max(match.start() - 160, 0) : match.start()]
                if _ASKED.search(before[-100:]) or _DISPUTED.search(before):
                    continue
                if kind != ELIGIBLE and _NEGATED.search(text[max(match.start() - 30, 0) : match.start()]):
                    continue
                court = self._text.last_court(start, start + match.start())
                is_relative = bool(match.groupdict().get("relative"))
                yield StatedOutcome(kind, start + match.start(), start + match.end(), court, is_relative)


def _as_of(name: Identifier, court: str) -> Identifier:
    """Return a number as the court writes it: "n° 2219952" of the Cour de cassation is the pourvoi 22-19.952."""
    if name.kind == "number" and len(name.value) == 7 and name.value.isdecimal() and court and _may_be_cassation(court):
        return name._replace(kind="pourvoi", value=f"{name.value[:2]}-{name.value[2:]}")
    return name


def _may_be_same(decision: StatedDecision, other: StatedDecision) -> bool:
    return not parse_court(decision.court).contradicts(parse_court(other.court))


def _may_be_cassation(court: str) -> bool:
    name = parse_court(court)
    return "cassation" in name.types or bool(name.chambers and not name.types)
