"""The operative part of a French decision and its statements; outcomes, from `outcomes.toml`; grounds of appeal."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import pairwise
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span, words_of
from legal_rag.law.courts import APPEAL, SUPREME, Level
from legal_rag.law.scanning import BLANK, SPACE, Around, read_table, spaced
from legal_rag.law.words import negations, phrases, spelt

CASSATION, REJET, ANNULATION = "cassation", "rejet", "annulation"
CONFIRMATION, INFIRMATION = "confirmation", "infirmation"
CONFORMITY, NON_CONFORMITY, RESERVATION = "conformité", "non-conformité", "réserve"
INELIGIBLE, ELIGIBLE = "inéligibilité", "non-lieu à inéligibilité"


class OutcomeKind(NamedTuple):
    """A row of `outcomes.toml`, which says what each field means."""

    kind: str
    example: str
    verbs: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    adjective: str = ""
    phrases: tuple[str, ...] = ()
    object: str = ""
    subject: str = ""
    stated: tuple[str, ...] = ()
    by: str = ""
    opposes: tuple[str, ...] = ()
    subordinate: tuple[str, ...] = ()


_TABLE = read_table("outcomes.toml")
OUTCOME_KINDS = tuple(OutcomeKind(**row) for row in _TABLE["outcome"])
_ACCENTS = str.maketrans({"é": "[ée]", "è": "[èe]", "ç": "[çc]"})
_OF_A_CASE = {level: frozenset(row.kind for row in OUTCOME_KINDS if row.by == level) for level in (SUPREME, APPEAL)}
_STATED = [row for row in OUTCOME_KINDS if row.by and (row.verbs or row.stated)]
STATED_KINDS = frozenset(row.kind for row in _STATED)  # what a text may state of a decision
_OPPOSITES = {frozenset((row.kind, kind)) for row in OUTCOME_KINDS for kind in row.opposes}


class Outcome(NamedTuple):
    """Outcome of a decision."""

    kinds: frozenset[str]  # empty if none was recognised
    words: str  # from the source, else the kinds

    def opposes(self, other: "Outcome") -> bool:
        """Tell whether two outcomes are opposite."""
        pairs = (frozenset((kind, other_kind)) for kind in self.kinds for other_kind in other.kinds)
        return not self.kinds & other.kinds and any(pair in _OPPOSITES for pair in pairs)


def kinds_of(words: str, *, reported: bool = False) -> frozenset[str]:
    """Return the kinds of outcome in a source's words or a ruling: 'cassation' for 'Cassation partielle sans renvoi'.

    `reported`: the words are what others say of a decision, where "censure" is a cassation too.
    """
    return _kinds_and_rest(words, reported=reported)[0]


def of_its_kinds(wanted: str, solutions: Iterable[str]) -> list[str]:
    """Return the solutions with all kinds of outcome in a text, if it holds nothing else ("rejetées")."""
    kinds, rest = _kinds_and_rest(wanted)
    return [solution for solution in solutions if kinds and not rest and kinds <= kinds_of(solution)]


def kinds_of_case(words: Iterable[str], level: Level) -> frozenset[str]:
    """Return the kinds that are of a whole case where a court of this level rules so; others concern single claims."""
    return kinds_of(" ; ".join(words)) & _OF_A_CASE.get(level, frozenset())


def kinds_named(text: str) -> set[str]:
    """Return the kinds whose verbs or nouns occur anywhere in a text, such as an operative part."""
    folded = " ".join(words_of(text))
    return {row.kind for row, sourced, _ in _KINDS if row in _STATED and sourced.search(folded)}


def constitutionality(text: str) -> frozenset[str]:
    """Return what a text states of statutes: conformity to the Constitution, non-conformity, and with reservations.

    What is asked ("si la loi est contraire…") or argued by a party is not stated.
    """
    lower, kinds = text.lower(), set()
    for match in _CONFORMS.finditer(lower):
        clause = re.split(r"[.;:]", lower[max(match.start() - _LOOK_BACK, 0) : match.start()])[-1]
        if _ASKED.search(clause):
            continue
        is_denied = _DENIED.search(clause) is not None
        kinds.add(CONFORMITY if bool(match["conforms"]) != is_denied else NON_CONFORMITY)
    return frozenset(kinds | ({RESERVATION} if kinds and _RESERVED.search(lower) else set()))


def decides(statement: str) -> bool:
    """Does a statement of an operative part decide the case, and not what follows from that, such as payments?"""
    return _DECIDES.search(statement) is not None


def _any(stems: Iterable[str]) -> str:
    return f"(?:{'|'.join(stems)})".translate(_ACCENTS)


_STEMS = _any(stem for row in OUTCOME_KINDS for stem in (*row.verbs, *row.reported))
_DECIDING_STEMS = _any(stem for row in OUTCOME_KINDS if row.kind != "condamnation" for stem in row.verbs)
_DECIDES = re.compile(
    rf"\b(?:{_DECIDING_STEMS}(?:e|ons|ée?s?)|cassation|inéligib\w+|irrecevables?|désistement|rectifiée?|rectifie)\b",
    re.IGNORECASE,
)
_NOUNS = "|".join(row.kind for row in OUTCOME_KINDS if row.verbs)
# What others say of a decision in one word, in lower case: no infinitive, which tells what was asked for.
REPORTED = re.compile(rf"\b(?:{_STEMS}(?:e|é|ée|és|ées|ent|ant)|{_NOUNS}|inéligib\w+)\b(?! que| qu['’])")
_IT = (
    r"(?:(?:donc|ainsi|alors|toutefois|également|en conséquence|purement et simplement)[ ,]+){0,2}"
    r"(?:le|les|ce|ces|leurs?|son|sa|la|l['’]|cette)\s{0,2}"
)


_OF_CONSTITUTION = r"(?:à la constitution|aux (?:droits|exigences|dispositions|normes)[^.;]{0,40}constitution)"
_CONFORMS = re.compile(
    rf"\b(?:(?P<conforms>(?<!non )(?<!non-)conformes?)|contraires?|non[ -]conformes?)(?= {_OF_CONSTITUTION})"
    r"|\binconstitutionnel(?:le)?s?\b"
)
_ASKED = re.compile(
    r"\b(?:si\b|s['’](?:ils?|elles?)\b|question\b|f(?:ai|on)\w* valoir|selon l[ea]s? "
    r"|(?:soutien|souten|préten|invoqu|reproch|allègu|allégu|argu|grief)\w*)"
)
_DENIED = re.compile(rf"(?:\bne |\bn['’])(?:\w+ ){{1,3}}?{negations(after=True)}[^,]{{0,40}}\Z")
_RESERVED = re.compile(r"\bréserves?\b")


_TAIL = r"(?: (?:partielle?|totale?|sans renvoi|avec renvoi|non spécialement motivé|et annulation)){0,3}"
# Where a noun stands alone: in parentheses, between commas, behind a colon, as a line or a table's cell.
_BEFORE_NOUN, _AFTER_NOUN = r"(?:\A|[(\[|:–—,\t\n]|[ ]-)[ \t]*", r"[ \t]*(?=\Z|[)\]|,.;:\t\n])"
_A_CHAMBER = r"(?!,?[ ](?:ch\w*\b|soc|civ|com|crim|ass|[1-3](?:re|e|ère|ème)\b))"  # "Cassation, soc., 12 mars 2019"
# ", n° 17-31.442, qui casse", "(Cass. soc., 12 mars 2019) qui casse": said of what is cited just before.
_RELATIVE = r"(?:(?<=, qui )|(?<=[\d)A-Z] qui ))"
# "casse l'arrêt du 4 mai 2017, qui infirme le jugement": said of the decision under review.
_UNDER_REVIEW = re.compile(
    rf"\b{_STEMS}\w*\b[^.;]{{0,80}}\b(?:arrêt|jugement|ordonnance|décision)\b|\bcontre\b", re.IGNORECASE
)
CLAUSE_CHARS = 300  # of a clause that say whether all of a decision is meant
_LOOK_BACK = 200  # characters before a statement in which what it is said of, or by whom, is named


class Stating:
    """What a text says of a decision: "casse", "a rejeté le pourvoi", "le jugement est confirmé", "(rejet)"."""

    def __init__(self, row: OutcomeKind) -> None:
        stems, acted_on = _any(row.verbs), _TABLE["objects"].get(row.object, "")
        patterns = list(row.stated)
        if row.verbs:
            behind = rf"(?:,[^,;.]{{1,20}},)?\s+{_IT}(?:{acted_on})" if acted_on else r"\b"
            done = (
                rf"(?<!\w)(?:a(?:urait)? (?:(?:aussi|également|ainsi|donc|déjà|bien) )?{stems}é|{stems}(?:e|a|ant|ait))"
            )
            subject = (
                rf"(?:{row.subject or acted_on})(?: (?:de |du |des |d['’])[^,;.:]{{1,40}})?\s+" if acted_on else ""
            )
            patterns += [
                rf"(?<!qui )(?<!avoir ){done}{behind}",
                rf"(?P<relative>{_RELATIVE}(?:a {stems}é|{stems}e)(?:{behind}|(?=\s*(?:[.;)]|\Z))))",
                rf"c['’]est (?:\w+ )?une? {row.kind}\b",
                rf"\b{subject}(?:a été|est|fut|ayant été) {stems}ée?\b(?! par)",
                # Of the decision named next: "cassé par Cass. soc., 12 mars 2019".
                rf"\b{stems}ée?s?(?= par [^;()\n]{{0,80}}\d)",
                rf"(?:arrêt|décision|jugement) d(?:e |['’]){row.kind}\b",
                rf"{_BEFORE_NOUN}{row.kind}{_TAIL}{_A_CHAMBER}{_AFTER_NOUN}",
                rf"(?<=[\dN][ ])(?-i:{row.kind.capitalize()}){_TAIL}(?=[ \t]*(?:\Z|\n))",  # a row without cells
                rf"(?:\A|[(\[|:–—\t\n])[ \t]*{row.kind}{_TAIL} d(?:u|e la|e l['’])\s?(?:{acted_on or 'arrêt'})",
            ]
        if row.adjective:
            patterns.append(rf"arrêt {row.adjective}\b")
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in text order, without what is said of a decision under review."""
        for match in self._pattern.finditer(text):
            before = text[max(match.start() - _LOOK_BACK, 0) : match.start()].rpartition(";")[2]
            if not (match.groupdict().get("relative") and _UNDER_REVIEW.search(before)):
                yield match


STATED = [(row.kind, Stating(row)) for row in _STATED]


def _sourced(row: OutcomeKind, stems: Iterable[str]) -> re.Pattern[str]:
    """Compile what a source's words, folded, say of a kind."""
    folded = (stem.translate(str.maketrans("éèç", "eec")) + r"\w*" for stem in stems)
    return re.compile("|".join(rf"\b(?:{pattern})" for pattern in (*row.phrases, *folded)))


_KINDS = [(row, _sourced(row, row.verbs), _sourced(row, (*row.verbs, *row.reported))) for row in OUTCOME_KINDS]


def _kinds_and_rest(words: str, *, reported: bool = False) -> tuple[frozenset[str], str]:
    rest, rows = " ".join(words_of(words)), []
    for row, sourced, said in _KINDS:
        rest, n = (said if reported else sourced).subn("|", rest)
        rows += [row] if n and row.kind else []
    kinds = frozenset(row.kind for row in rows).difference(*(row.subordinate for row in rows))
    return kinds, rest.replace("|", " ").strip()


_FORMULA = spelt(phrases(part="ruling", alone=False))
_ALONE = spelt(phrases(part="ruling", section="part", alone=True, articles=False))
_IN_ARTICLES = spelt(phrases(part="ruling", articles=True))
_ENDS = rf"{BLANK}{{0,3}}(?::|\n)"
# Both begin with fixed letters, so that `re` skips the rest.
_WITHIN = re.compile(rf"{_FORMULA}(?!\w)|(?P<articles>{spelt(phrases(articles=True, inline='anywhere'))}){_ENDS}")
_AT_LINE = re.compile(rf"\n(?:(?i:{_FORMULA})(?!\w)|\s{{0,4}}(?i:{_ALONE}|(?P<articles>{_IN_ARTICLES})){_ENDS})")
# Its end: signatures, the formula of pronouncement, the grounds annexed to an arrêt.
_END = re.compile(
    r"(?:\n|[.;]\s)\s{0,4}(?:(?:Ainsi|AINSI)\s(?:fait|jugé|décidé|prononcé|FAIT|JUGE|DECIDE|PRONONCE|DÉCIDÉ|JUGÉ)"
    r"|Délibérée?\spar|Délibéré\sen|Jugée?\spar|"
    r"MOYENS?\s(?:ANNEXE|DE CASSATION|PRODUIT)|Moyens?\s(?:annexe|produit)|Moyens?\sde\scassation\sannexé|"
    r"(?:PREMIER|SECOND|DEUXIÈME)\sMOYEN|Fait\sà\s|FAIT\s(?:ET|A|À)\s|Fait\set\s(?:jugé|prononcé)|Rendu\s(?:le|à"
    r"|publiquement|en audience)|"
    r"Arrêt\s(?:signé|prononcé|rendu)|ARRET\s(?:SIGNE|PRONONCE)|(?:LE|La?|Le)\s(?:GREFFIER|PRESIDENT|PRÉSIDENT"
    r"|greffier|président)\w*\b|"
    r"Prononcé\s|PRONONCE\s(?:PUBLIQUEMENT|EN|A|À|PAR)|Et\sle\sprésent\sarrêt|Le\sprésident,|Signé|SIGNE\b"
    r"|Magistrat\srédacteur|_{5,}|-{5,})"
)
_ANNEX = re.compile(r"\n\s{0,4}(?i:moyens?\s(?:de\scassation\s)?(?:annexé?e?s?|produits?))\b")
_VERB = f"(?:{'|'.join(_TABLE['ruling_verbs'].split()).translate(_ACCENTS)})"
_PRONOUN = r"(?:(?:le|la|les|l['’]|en|y|se|s['’]|lui|leur)\s?)"
_HEAD = re.compile(rf"(?:{_PRONOUN}{{0,2}})(?<![\w]){_VERB}(?!\w)", re.IGNORECASE)
# A verb after an opening such as "Vu l'article 700 …," or "Statuant à nouveau".
_LATER_HEAD = re.compile(
    rf"(?:,|:|nouveau|ajoutant|surplus|\n|—|-)\s{{1,3}}(?P<head>{_PRONOUN}{{0,2}}(?<!\w){_VERB})(?!\w)", re.IGNORECASE
)
# Where one statement ends and another begins: a semicolon, a sentence's full stop, a line with its own verb.
_STOP = r"(?<!\b[A-Z])(?<!\.\.)(?<!\b[Mm])(?<!\bMM)(?<!\bart)(?<!\bal)\."  # a full stop, not an abbreviation
_BETWEEN = re.compile(
    rf"\s*;\s*|{_STOP}(?:(?=\s+(?-i:[A-ZÀ-Þ-])|\s*\Z)|(?=(?-i:[A-Z][a-zé]{{3}})))\s*"
    rf"|(?<=\.\.\.)\.?\s*\n\s*"
    rf"|,?{BLANK}*\n\s*(?:[-–—*•]\s*)?(?={_PRONOUN}?{_VERB}(?!\w))|\n\s*\n\s*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(rf"{_STOP}(?=\s|\Z)\s*|\s*;\s*\n\s*|\n\s*\n\s*")
# Transitions from one statement to the next.
_TRANSITION = re.compile(
    r"(?:[,;]|(?<!\.)\.)?\s*(?:\b(?:et|mais)\b\s*,?\s*)?(?:(?<!\w)statuant\s(?:à|a)\snouveau|(?<!\w)y\sajoutant"
    r"|\n\s*vu\s"
    r"|(?<!\w)(?:la|le)\s(?:réformant|infirmant|émendant)|\bet\sau\sfond\b)",
    re.IGNORECASE,
)
_ARTICLE_HEAD = re.compile(
    rf"(?:(?<=\n)|(?<=:\s))\s*(?:Article|ARTICLE|Art\.){SPACE}(?:\d{{1,2}}(?:er|ER)?|premier|PREMIER|Premier)"
    rf"{BLANK}{{0,3}}(?:[.:]?{BLANK}?[-–—:]|\.|\n|(?={BLANK}[A-Z]))\s*"
)


@displayed
class Operative(NamedTuple):
    """The operative part of a decision."""

    start: int  # characters, after its heading
    end: int
    in_articles: bool  # in numbered articles, as the Conseil constitutionnel writes it


def operative_part(text: str) -> Operative | None:
    """Find the operative part; None if the text has no heading of one."""
    heads = [match for match in _WITHIN.finditer(text) if not text[max(match.start() - 1, 0) : match.start()].isalnum()]
    heads += _AT_LINE.finditer(text)
    if not heads:
        return None
    annex = _ANNEX.search(text, min(map(re.Match.start, heads)))  # quotes those of other decisions
    last = max((head for head in heads if annex is None or head.start() < annex.start()), key=re.Match.start)
    end = _END.search(text, last.end())
    return Operative(last.end(), end.start() if end else len(text), last["articles"] is not None)


def statements(text: str, part: Operative) -> list[Span]:
    """Split an operative part into statements, each with its own main verb, without final punctuation."""
    if part.in_articles:
        bodies = _split_span(text, (part.start, part.end), _ARTICLE_HEAD)
        return [span for body in bodies for span in _split_span(text, body, _SENTENCE_END) if span[1] - span[0] > 10]
    spans = []
    for start, end in _split_span(text, (part.start, part.end), _BETWEEN):
        head = _HEAD.match(text, start, end) or _LATER_HEAD.search(text, start, end)
        if head is not None:
            group = "head" if head.re is _LATER_HEAD else 0
            over = _TRANSITION.search(text, head.end(group), end)
            spans.append((head.start(group), over.start() if over else end))
    return spans


# What a court of appeal does to the judgment, anywhere in its operative part.
_THE_JUDGMENT = r"(?:l['’]|le\s|la\s)\s?(?:jugement|ordonnance|d[ée]cision|sentence)\b"
_REVERSES = re.compile(
    r"(?<!portant\s)(?<!\bde\s)(?<!\bune\s)(?<!\bpar\s)\b(?:infirm|r[ée]form|[ée]mend)(?:e|ent|ant|ons)\b"
    rf"|\bannul(?:e|ent|ant)\s(?:[^;.:]{{0,30}}\s)?{_THE_JUDGMENT}",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(r"\bconfirm(?:e|ent|ant|ons)\b", re.IGNORECASE)
_REJECTS_APPEAL = re.compile(
    r"\b(?:rejette|d[ée]boute)(?:nt)?\b[^;.]{0,60}?\b(?:de\s)?(?:son|leurs?|cet|ces|l['’]|les?|des)\s?appels?\b(?!\s(?:incident|provoqu|en\sgarantie))",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;:.]|\n\s*\n|\bstatuant\b|\b[ée]voquant\b", re.IGNORECASE)
_LIMITS = re.compile(
    r"\b(?:sauf|seulement|uniquement|partie(?:llement)?|partiel\w*|surplus|sur|quant|concern\w+|relati(?:f|ve)s?|hormis)\b"
    r"|\bchefs?\b|\bdans\s(?:la|cette)\smesure\b|\ben\s(?:ce|tant)\squ|[àa]\sl['’]exception\b|\bautres\sdispositions\b|\bseules?\b",
    re.IGNORECASE,
)
_SAVE = re.compile(
    r"\b(?:sauf|hormis|except[ée]e?s?)\b|[àa]\sl['’]exception\b|\bstatuant\s(?:[àa]\snouveau|de\snouveau)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"«[^»]*»")


class AppealRuling(NamedTuple):
    """What a court of appeal does to the judgment below it."""

    kind: str  # INFIRMATION, ANNULATION or CONFIRMATION
    in_part: bool  # of a reversal: some of the judgment stands
    start: int  # characters of the words that say so
    end: int


def appeal_ruling(text: str, part: Operative) -> AppealRuling | None:
    """Read what the operative part of a court of appeal does to the judgment; None if it does not say so.

    It is reversed in part where something of it is confirmed, or only some of its heads are named.
    """
    words = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text[part.start : part.end])
    reversing, confirming = list(_REVERSES.finditer(words)), list(_CONFIRMS.finditer(words))
    said = reversing or confirming or list(_REJECTS_APPEAL.finditer(words))
    if not said:
        return None
    clauses = [words[match.start() : _end_of_clause(words, match.end())] for match in said]
    start = part.start + said[0].start()
    end = part.start + _end_of_clause(words, said[0].end())
    if reversing:
        kind = ANNULATION if all(match[0].lower().startswith("annul") for match in reversing) else INFIRMATION
        return AppealRuling(kind, bool(confirming) or any(map(_LIMITS.search, clauses)), start, end)
    if any(_SAVE.search(clause) for clause in clauses) or (confirming and _SAVE.search(words, confirming[0].end())):
        return AppealRuling(INFIRMATION, True, start, end)
    return AppealRuling(CONFIRMATION, False, start, end)


Voice = Literal["active", "pronoun", "passive", "bare"]  # "a cassé", "l'a cassé", "a été cassé", "depuis cassé"


class SaidFate(NamedTuple):
    """What a text says became of a decision: "n'a pas été cassé", "aujourd'hui infirmé", "le pourvoi a été rejeté"."""

    kind: str
    start: int  # characters
    end: int
    voice: Voice
    is_denied: bool
    is_limited: bool  # of some of the decision only
    is_whole: bool  # of all of it
    day: date | None = None
    is_of_several: bool = False  # "ont été cassés", "ni l'un ni l'autre n'a été cassé"

    @property
    def upholds(self) -> bool:
        """Whether the decision stands by what is said."""
        return (self.kind in UPHOLDING) != self.is_denied


UPHOLDING, UNDOING = frozenset((REJET, CONFIRMATION)), frozenset((CASSATION, ANNULATION, INFIRMATION))
_ENTIRELY = (
    r"total(?:e|ement)|entièrement|intégrale(?:ment)?|(?:en|dans) (?:totalité|intégralité|toutes ses dispositions)"
)
_HOW = (
    rf"(?:depuis(?: lors)?|à ce jour|ensuite|aujourd['’]hui|désormais|ultérieurement|par la suite|finalement|également"
    rf"|aussi|donc|déjà|tou(?:te)?s deux|partiellement|en partie|{_ENTIRELY}|(?:lui|elle)-même|{negations(verb=True)})"
)
_ADDED = rf"(?:,? {_HOW},?)"
_HAS = r"(?:n['’])?(?:a|ont|avai(?:en)?t|ayant)"
_BECAME = (
    rf"(?P<passive>{_HAS}{_ADDED}{{0,3}} été{_ADDED}{{0,2}} "
    rf"|(?:n['’]|ne )?(?:est|sont|fut|furent|étai(?:en)?t){_ADDED}{{0,3}} )?(?:{_HOW},? ){{0,2}}"
)


def _fates(row: OutcomeKind) -> Around:
    stems = _any((*row.verbs, *row.reported))
    does = rf"(?:(?:n['’]|ne )?(?P<it>l['’]_|les )?a{_ADDED}{{0,3}} {stems}ée?s?"
    does += rf"|(?:ne |n['’])?(?:l['’]_)?{stems}(?:e(?: pas)?|ant))(?!\w)"
    noun = rf"(?P<noun>{_HAS}{_ADDED}{{0,3}} (?:fait|été) l['’]_objet d['’](?:une? |aucune? ){row.kind})"
    became, behind = rf"(?P<became>{_BECAME}{stems}ée?s?|{noun})(?!\w)", ""
    if row.object == "request":  # a decision's own claims are rejected too
        became = rf"(?<!\w)pourvois?(?: [^;.:«»]{{0,160}}?)?,?_ {became}"
        behind = " les? pourvois?(?: (?:formé|dirigé)s?)?"
    words = {stem[:4] for stem in (*row.verbs, *row.reported)}
    return Around(rf"(?<!\w)(?P<active>{does}{behind})|(?<!\w){became}", sorted(words), 240, 80)


_FATES = [(row.kind, _fates(row)) for row in OUTCOME_KINDS if row.kind in UPHOLDING | UNDOING]
_DENIES = re.compile(negations(verb=True, after=True), re.IGNORECASE)
_VOICES: dict[str, Voice] = {"it": "pronoun", "active": "active", "passive": "passive", "noun": "passive"}
_NEITHER = re.compile(r"(?<!\w)(?:ni|aucune?|nulle?)(?!\w)", re.IGNORECASE)  # "ni l'un ni l'autre n'a été cassé"
_ONLY = re.compile(r"[^,;:.]{0,40}?(?<!parce )\bqu(?:e\b|['’])")
_SEVERAL = re.compile(r"\b(?:ont|sont|furent|étaient)\b|s\Z", re.IGNORECASE)
_WHOLLY = re.compile(spaced(rf"(?<!\w)(?:{_ENTIRELY})(?!\w)"), re.IGNORECASE)


def find_fates(text: str) -> list[SaidFate]:
    """Find what a text says became of decisions, in text order; of which, it does not tell."""
    found = []
    for kind, pattern in _FATES:
        for match in pattern.finditer(text):
            start = match.start("became") if match["became"] else match.start()
            ends = _CLAUSE_END.search(text, match.end(), match.end() + CLAUSE_CHARS)
            said, clause = text[start : match.end()], text[start : ends.start() if ends else match.end() + CLAUSE_CHARS]
            voice: Voice = next((voice for group, voice in _VOICES.items() if match[group]), "bare")
            denied, whole = _DENIES.search(said) is not None, _WHOLLY.search(clause) is not None
            half = not denied and said[:2].lower() in ("ne", "n'", "n’")
            only = half and _ONLY.match(text, match.end()) is not None  # "n'a été cassé qu'en ce que"
            neither = half and not only and _NEITHER.search(text, max(start - CLAUSE_CHARS, 0), match.end()) is not None
            several = neither or _SEVERAL.search(said) is not None
            is_unclear = (
                (half and not only and not neither) or (neither and voice == "active") or (denied and " deux" in said)
            )
            if not is_unclear and (several or match.group()[:8].lower() != "pourvois"):
                limited = only or _LIMITS.search(clause) is not None
                found.append(SaidFate(kind, *match.span(), voice, denied or neither, limited, whole, None, several))
    return sorted(found, key=lambda said: said.start)


def _end_of_clause(words: str, start: int) -> int:
    end = _CLAUSE_END.search(words, start)
    return end.start() if end else len(words)


def _split_span(text: str, whole: Span, between: re.Pattern[str]) -> list[Span]:
    """Split a span at the matches of `between`, and strip the pieces of blanks and signs."""
    cuts = [(whole[0], whole[0]), *(cut.span() for cut in between.finditer(text, *whole)), (whole[1], whole[1])]
    pieces = [_trim_span(text, before[1], after[0]) for before, after in pairwise(cuts)]
    return [(start, end) for start, end in pieces if start < end]


def _trim_span(text: str, start: int, end: int) -> Span:
    while start < end and text[start] in " \t\n\u00a0\u202f:,.;-–—*•'\"":
        start += 1
    while start < end and text[end - 1] in " \t\n\u00a0\u202f:,.;-–—*•" and not text.endswith("...", start, end):
        end -= 1
    return start, end


_DECLARED = r"(?:irrecevables?|recevables?|bien fondée?s?|mal fondée?s?|nulle?s?|inopérante?s?|tardive?s?|prescrite?s?)"
_DECIDED = re.compile(
    rf"(?:\A|(?<=\bet )|(?<=\bET )){_PRONOUN}{{0,2}}"
    rf"(?P<verb>casse(?:nt)? et annule|{_STEMS}e|renvoie(?= au Conseil constitutionnel))(?!\w)"
    rf"|(?<!\w)(?P<declared>(?:d[ée]clare|dit){SPACE}{_DECLARED})(?!\w)"
    rf"|\A(?P<refused>dit{SPACE}n['’]y{SPACE}avoir{SPACE}lieu{SPACE}(?:de{SPACE}renvoyer|à{SPACE}(?:renvoi|statuer)))"
    rf"(?!\w)",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    rf"(?<=est |ont )(?:déclarée?s? )?(?P<word>{_STEMS}ée?s?|irrecevables?|inéligibles?"
    r"|(?:contraires?|conformes?) à la Constitution)(?!\w)"
    r"|(?P<refused>n['’]y a (?:pas|plus) lieu (?:de|à) (?:statuer|déclarer)"
    r"|donné acte)"
    r"(?!\w)",
    re.IGNORECASE,
)
_CAPTIONS = "|".join(
    [*(row.kind for row in OUTCOME_KINDS if row.by == SUPREME and row.verbs), *_TABLE["captions"]]
).translate(_ACCENTS)
_CAPTION = re.compile(
    rf"(?<=\n)[ \t]*(?P<word>(?=[A-ZÉ])(?i:(?:{_CAPTIONS})"
    r"(?:\s(?:partielle?|totale|non admission|non spécialement motivé))?"
    r"(?:\s(?:sans|et|avec)\s(?:renvoi|désignation|déchéance|annulation|irrecevabilité))?))[ \t]*(?=\n)"
)
CAPTION_CHARS = 1500  # of a decision's beginning, with its caption


def solutions(text: str, part: Operative | None, stated: list[Span]) -> list[Span]:
    """Find the words that state the outcome, in the caption and in the statements."""
    outcomes = [match.span("word") for match in _CAPTION.finditer(text, 0, CAPTION_CHARS)][:1]
    for start, end in stated:
        statement = text[start:end]
        pattern = _PARTICIPLE if part is not None and part.in_articles else _DECIDED
        spans = (match.span(match.lastgroup or 0) for match in pattern.finditer(statement))
        outcomes += [(start + first, start + last) for first, last in spans]
    return outcomes


_ORDINAL = (
    "(?:premi[eè]re?s?|seconde?s?|deuxi[eè]mes?|troisi[eè]mes?|quatri[eè]mes?|cinqui[eè]mes?|sixi[eè]mes?"
    "|septi[eè]mes?|huiti[eè]mes?|neuvi[eè]mes?|"
    "dixi[eè]mes?|onzi[eè]mes?|douzi[eè]mes?|derni[eè]re?s?|1er|1ère|1re|\\d{1,2}(?:e|ème|è))"
)
_ORDINALS = rf"{_ORDINAL}(?:(?:,\s|\s(?:et|ou|à)\s(?:le\s|la\s)?){_ORDINAL})*"
_TAKEN = (
    rf"(?:,?\s(?:pris(?:e|es)?|pris\s(?:,\s)?)\s?(?:en|dans)\s(?:sa|ses|leurs?|chacune\sde\sses)\s(?:{_ORDINALS}\s"
    rf"|deux\s|trois\s|quatre\s|cinq\s|six\s|diverses\s)?"
    rf"branches?(?:\sréunies)?)"
)
_MOYEN = Around(
    rf"(?<!\w)(?:{_ORDINALS}\smoyens?(?:\sde\scassation)?(?:\sréunis)?{_TAKEN}?|moyens?\suniques?(?:\sde\scassation)?"
    rf"{_TAKEN}?"
    rf"|moyens?\sde\scassation\sunique{_TAKEN}?|moyens?(?:\sde\scassation)?{_TAKEN}|moyens?\s(?:de\spur\sdroit\s)?"
    rf"(?:,\s)?relevés?\sd['’]office|{_ORDINALS}\sbranches?(?:\sdu\smoyen)?)(?!\w)",
    ["moyen", "branche"],
    80,
    160,
)


def grounds(text: str) -> list[Span]:
    """Find designations of grounds of appeal, such as 'second moyen, pris en sa première branche'."""
    return [match.span() for match in _MOYEN.finditer(text)]
