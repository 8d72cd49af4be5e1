"""The version of an article that a text says it means: "dans sa rédaction issue de la loi du 8 août 2016"."""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.law.articles import ARTICLE_NUMBER, CODE_NAME, REST_OF_LIST, SHORT_CODE
from legal_rag.law.scanning import BLANK, DASH, spaced
from legal_rag.law.sentences import split_sentences
from legal_rag.law.statutes import find_statutes
from legal_rag.law.values import find_dates
from legal_rag.law.versions import ENDINGS, Act, Force, long_date
from legal_rag.law.words import FRENCH_MONTHS, MONTH_NUMBERS, MONTHS, negations

# in force: on some day of the period. before: the last that began by its last day. act: written by an act signed in it.
# former: before the one in force, no day given. current: the one in force. undated: any.
Meaning = Literal["in force", "before", "act", "former", "current", "undated"]

WITHIN = 320  # characters around an article in which a text says which version it means
UNTIL_ACT = 80  # from the words of a version to the act or the day that dates it
UNTIL_FORCE = timedelta(366)  # from an act to the version that it writes, where the source does not name its acts

_CODE = rf"(?:{CODE_NAME}|{SHORT_CODE}|(?:m[êe]me|dit|présent) code)"
_ACT = (
    r"(?:loi|ordonnance|décret|arrêté|directive|règlement)(?!\w)(?: (?:n_[°o]_)?\d[\d/-]*)?"
    r"(?: du \d\d?(?:er)? \w+ \d{4})?(?: (?-i:[A-ZÉ])\w+)?"
)
# What may stand between an article and words that are said of it alone: its list, its parts, its text.
_TIGHT = re.compile(
    spaced(
        rf"{REST_OF_LIST}(?:_,?_(?:(?:du|de la|de l['’]|dudit|d['’]un)_)?(?:{_CODE}|{_ACT}))?"
        rf"(?: (?:précité|susvisé|susmentionné)e?)?"
        rf"(?:_[,(]?_devenue?s? (?:l['’]_)?(?:article )?{ARTICLE_NUMBER}_[)]?)?_[,(]?_"
    ),
    re.IGNORECASE,
)
_NOUN = r"(?:(?:rédaction|version)s?(?!\w)|réd\.)"
_QUALIFIED = rf"(?:(?P<age>ancienne|précédente|première|nouvelle|dernière)s? )?{_NOUN}"
_WHOSE = rf"(?:(?:dans|en|selon|sous) (?:sa|son|la|leurs?|une|l['’])_|(?<=[(,])_){_QUALIFIED}"
_LOOSE = re.compile(spaced(rf"(?:[^;:«»\n]{{0,160}}?[,( ])??_(?P<whose>{_WHOSE})"), re.IGNORECASE)
_BARE = re.compile(
    spaced(
        r"(?P<whose>tel(?:le)?s? qu(?:['’]|e )_(?:(?:ils?|elles?) )?"
        r"|(?:qui était )?(?P<then>alors )?(?=en vigueur|applicable|issue?s? )"
        r"|(?P<prior>(?=avant |antérieurement |jusqu['’]))|(?<=[(])(?=(?:L|ord|décr|D)\.,? n_[°o]_\d{2,4}))"
    ),
    re.IGNORECASE,
)
_OLD_NUMBER = re.compile(  # "1382 ancien", but not "1240 (ancien 1382)" nor "de l'ancien code"
    spaced(r"_[,(]?_(?<!\w)(?:anciens?(?!\w)|anc\.)(?!_(?:(?:articles?|art\.|n[°o])_)?(?:code|[A-Z]?[.*]?_\d))"),
    re.IGNORECASE,
)
_OLD_ARTICLE = re.compile(spaced(r"\b(?:anciens? |anc\._|ex[- ])(?:(?:articles?|art\.) )?\Z"), re.IGNORECASE)
# "la version de l'article L. 1 issue de la loi", "dans sa rédaction issue de la loi, l'article L. 1".
_NOUN_BEFORE = re.compile(
    spaced(rf"(?<!\w){_QUALIFIED}(?: en vigueur| applicable)? (?:de l['’]_|des |du )(?:(?:articles?|art\.) )?\Z"),
    re.IGNORECASE,
)
_OPENS = re.compile(spaced(rf"(?<!\w)(?:(?P<whose>{_WHOSE})|{_NOUN})"), re.IGNORECASE)
_THE_ARTICLE = re.compile(spaced(r"_,?_(?:l['’]_|les |le |cet )?(?:(?:articles?|art\.) )?\Z"), re.IGNORECASE)

# "disposait en 2012", "En 2012, l'article L. 1 disposait": a verb in the imperfect, and a day.
_DISPOSED = re.compile(
    spaced(
        r"_,?_(?:(?:dispos|dis|prévoy|énonç|précis|impos|fix|exige|interdis|permett|s['’]appliqu)ai(?:en)?t(?:-ils?)?"
        r"|étai(?:en)?t(?:-ils?)?(?: \w+)? (?:en vigueur|applicables?|rédigée?s?|libellée?s?))(?!\w)"
    ),
    re.IGNORECASE,
)
# "Que disait l'article L. 1 au 3 mars 2012 ?", "En 2012, que disait l'article L. 1 ?", "le texte de l'article L. 1 en
# 2012", or an article and a day alone; `@` is the day.
_LEADS = (
    r"(?:(?P<before{0}>avant|antérieurement à|jusqu['’](?:à|au|en))(?= )[^,;:?@]{{0,60}}?"
    r"|(?:au(?: cours de)?|en|le(?: jour d[ue])?|courant|pendant|durant|début|fin|dès|entre"
    r"|à (?:la date|compter) d[ue])(?: le| l['’]_année| mois de| \w+di)?) _"
)
_SAYS = r"(?:dit|dis\w+|dispos\w+|prévo\w+|énon\w+|précis\w+|impos\w+|fix\w+|exig\w+|interdi\w+|permet\w*|contena\w+)"
_ASKS = (
    r"(?:(?:quel(?:le)?s? (?:étai(?:en)?t|est|sont) (?:les? |la |l['’]_))?"
    rf"(?:(?:qu(?:e_|oi_|['’]_|['’]_est-ce que_)|quel(?:le)?s?(?: \w+){{1,4}} ){_SAYS}"
    r"|comment (?:étai(?:en)?t|est|sont)(?: (?:rédig|libell|formul)ée?s?)?"
    r"|(?:textes?|teneur|contenu|libellé|formulation|lettre|état) (?:\w+ )?(?:de|des|du)(?!\w)"
    r"|(?:donne|cite|montre|affiche|rappelle|trouve|lire)[rsz]?(?:-(?:moi|nous|les?))?))"
)
_ARTICLE_ASKED = r"_,?_(?:l['’]_|les |cet )?(?:anciens? |ex[- ])?(?:(?:articles?|art\.)_)?"
_ASKED = re.compile(
    spaced(
        rf"_(?:(?P<first>{_LEADS.format(1)})@_,?_{_ASKS}|(?P<asks>[^@]*?(?<!\w){_ASKS})(?:_,?_(?P<then>{_LEADS.format(2)})@_)?"
        rf"|(?:[^@]*?(?<!\w))?(?P<past>{_LEADS.format(3)})@_|){_ARTICLE_ASKED}"
    ),
    re.IGNORECASE,
)
_QUESTION = re.compile(spaced(_ASKS), re.IGNORECASE)
_ASKED_OF = re.compile(spaced(rf"(?P<about>[^,;:?!@]*?)_,?_(?<!\w){_LEADS.format('')}"), re.IGNORECASE)
_ON_THE_DAY = re.compile(spaced("_(?:au|à la date du) _"), re.IGNORECASE)
_ON_A_DAY = re.compile(spaced("_,?_(?:au|à la date du|en|le) _"), re.IGNORECASE)
# "Dans sa rédaction de 2012, que dit l'article L. 1 ?", "la version de 2012 de l'article L. 1"
_SAYS_THE_ARTICLE = re.compile(spaced(rf"(?:_,?_{_ASKS})?{_ARTICLE_ASKED}"), re.IGNORECASE)
_OF_THE_ARTICLE = re.compile(spaced(r" (?:de l['’]_|des |du )(?:(?:articles?|art\.) )?"), re.IGNORECASE)
_ENDS, _ENDS_QUESTION = re.compile(r"\s*(?:[?!.,;:)]|\Z)"), re.compile(r"\s*(?:[?]|\Z)")
# What a day right behind is of, rather than of the article: "sur un salarié licencié le 3 mars 2012".
_OF_FACTS = re.compile(
    r"(?:é|u|[iu]s|i|[iu]t|ert|ort)e?s?\s*\Z|(?<!\w)(?:arrêt|décision|jugement|avis|accord|avenant)", re.IGNORECASE
)
# What is said of the version, tried in this order.
_UP_TO = r"[^;:«»\n]{0,60}?(?<!\w)"
_CHANGE = re.compile(r"modif|réform|réécri|abrog|entrée|recodif|interven", re.IGNORECASE)
_CURRENT = re.compile(
    spaced(
        r"(?: qui est)? (?:actuel\w*|consolidée?|d['’]aujourd['’]hui|à ce jour|présente"
        r"|(?:aujourd['’]hui|désormais|encore|toujours|actuellement) (?:applicables?|en vigueur)"
        r"|en vigueur(?: (?:à ce jour|actuellement|aujourd['’]hui))?(?=_[,;:.)«»\n]|_\Z| dispos| prévo| énonc))(?!\w)"
    ),
    re.IGNORECASE,
)
_FORMER = re.compile(
    spaced(
        r" (?:\w+ )?(?:antérieure?|ancienne?|initiale?|originelle|originale|d['’]origine|précédente|abrogée?)s?(?!\w)"
        r"(?! (?:à|au|aux)(?!\w))"
    ),
    re.IGNORECASE,
)
_BEFORE = re.compile(
    spaced(rf"{_UP_TO}(?:antérieure?s?(?:ment)? (?:à|au|aux)|avant|précédant|jusqu['’](?:à|au|en))(?!\w)"),
    re.IGNORECASE,
)
_OF_ACT = re.compile(
    spaced(
        rf"{_UP_TO}(?:issue?s?|résult\w+|découl\w+|proven\w+|modifiée?s?|donnée?s?|créée?s?|introduite?s?|rétablie?s?)"
        r"(?= (?:par|de|des|du|en|la|le)(?!\w)| [dl]['’])"
        r"|_(?:de (?:la |l['’])|du )?(?=loi|ordonnance|décret|(?:L|ord|décr|D)\.,? n)"
    ),
    re.IGNORECASE,
)
_IN_FORCE = re.compile(
    spaced(
        rf"(?:{_UP_TO}(?:applicables?|en vigueur|consolidée?s?|rédigée?s?)(?!\w)"
        r"|_(?:étai(?:en)?t|existai(?:en)?t)(?= (?:au|en|le) ))"
    ),
    re.IGNORECASE,
)
_LATER = re.compile(spaced(r"(?<!\w)(?:après|postérieur\w*)(?!\w)"), re.IGNORECASE)
_FROM = r"(?:depuis|dès|à (?:compter|partir) (?:de|du))(?!\w)"
_SINCE = re.compile(spaced(rf"{_FROM}(?: le| la| l['’](?:ann[ée]e)?)?_\Z"), re.IGNORECASE)
IN_FORCE_SINCE = re.compile(spaced(rf"(?<!\w)en vigueur {_SINCE.pattern}"), re.IGNORECASE)  # up to a day
_AT = re.compile(
    spaced(
        r"[^,;:«»\n]{0,60}?(?:_,_(?=soit|surven|commis|datant|le \d|en \d)[^,;:«»\n]{0,40}?)?"
        r"(?:(?<!\w)(?:du|le|au|en|de|depuis|courant|dès|entre(?: le)?)(?: l['’]_ann[ée]e| mois de| \w+di)? |[(]_)"
    ),
    re.IGNORECASE,
)
_AT_ONCE = re.compile(
    spaced(
        r"(?: (?:au cours|à la date|au jour|au moment|à l['’]_époque|lors)(?: (?:des? (?:la |l['’]_)?|du )\w+)?"
        r"| aux (?:faits|contrats|licenciements|procédures)(?: (?:surv|comm|concl|prononc|introd|engag)\w+)?)?"
        r"_,?_"
        r"(?:(?:(?:depuis|dès|entre) (?:le )?|à (?:compter|partir) du |(?:du|le|au|en|de|courant) )"
        r"(?:l['’]_ann[ée]e |mois de |\w+di )?|[(]_)"
    ),
    re.IGNORECASE,
)
_DATED = re.compile(spaced(r"_[,(:]?_(?:du |de |au |en |d['’]_|datée du |le )?"), re.IGNORECASE)
_ACT_NOUN = re.compile(r"\b(?:loi|ordonnance|décret)s?\b", re.IGNORECASE)
_NUMBER_BEFORE = re.compile(spaced(rf"n_[°o]_(\d{{2,4}}{DASH}\d+)_,? (?:du )?\Z"), re.IGNORECASE)
_NEXT_ACT = re.compile(spaced(r"_,?_(?:et )?(?:de (?:la |l['’]))?(?:n_°_[\d-]+ )?(?:du )?"), re.IGNORECASE)
# From an act to the one that changed it, or may be meant in its place.
_AMENDED = re.compile(
    spaced(r"[^;:.«»\n]{0,30}?(?<!\w)(?:modifiée?s?|complétée?s?|ratifiée?s?|puis|ou|et de)(?!\w)[^;:.«»\n]{0,30}"),
    re.IGNORECASE,
)
_CENTURY = re.compile(r"\A(?:19|20)(?=\d\d-)")  # of an act's number, written or not
_RANGE = re.compile(spaced(r" (?:au|jusqu['’]au|et(?: \w+)?(?: le)?|à) "), re.IGNORECASE)
# "applicable au litige", "en vigueur à l'époque des faits": a preposition and a noun, as often as there are.
_CIRCUMSTANCE = re.compile(
    spaced(
        r"(?:_,?_(?:alors |rendue )?(?:applicables?|en vigueur))?"
        r"(?: (?:aux?|à|en|des?|du|lors|dans|l['’])(?: (?:la|l['’]_|le|les|cette|présente?)|l['’]_)*_\w+){0,4}"
    ),
    re.IGNORECASE,
)
_OTHER_ARTICLES = re.compile(rf"\barticles?{BLANK}(?:[LRD]\.?{BLANK}?)?\d", re.IGNORECASE)  # of another list
# "et l'article 2": one article more, of the same list as that before it.
_JOINED = re.compile(
    spaced(r"(?:,|(?<!\w)(?:et|ensemble|ainsi que|ou)(?!\w))_(?:(?:de|à) )?l['’]_article(?!\w)"), re.IGNORECASE
)
_OTHER_ARTICLE = re.compile(rf"{_OTHER_ARTICLES.pattern}|\b[LRD]\.{BLANK}?\d|\d{DASH}\d", re.IGNORECASE)
# Numbers that are none of another article: of an act, and that which this article has taken since.
_NO_OTHER = re.compile(
    spaced(
        rf"(?:n_[°o]s?_|lois? |ordonnances? |décrets? )\d+(?:{DASH}\d+)+"
        r"|articles? \d+(?:er)? (?:de la |de l['’]_|du )(?=loi|ordonnance|décret)"
        rf"|(?<!\w)devenue?s? (?:l['’]_)?(?:(?:articles?|art\.) )?(?:{ARTICLE_NUMBER})"
    ),
    re.IGNORECASE,
)
_BECOMES = re.compile(spaced(r"(?<!\w)devenue?s? (?:l['’]_)?(?:(?:articles?|art\.) )?\Z"), re.IGNORECASE)
_OF_THE_FIRST = re.compile(spaced(r"\b(?:premi[eè]re?s?|seconde?) \Z"), re.IGNORECASE)
_HINT = re.compile(
    r"rédaction|\bréd\.|[(](?:L|ord|décr|D)\.,? n"
    r"|version|vigueur|applicable|\btel|issue?s? d|avant|antérieure|jusqu|\banc|\bex\b|ai(?:en)?t\b"
    r"|\b(?:au|en|le|à la date d[ue])\s+(?:\w+\s+){0,3}\d",
    re.IGNORECASE,
)
_MONTH_OR_YEAR = re.compile(
    spaced(
        rf"(?<![\w/.-])(?:(?P<month>{'|'.join(FRENCH_MONTHS)}) )?(?P<year>(?:1[89]|20)\d\d)(?![\d/]|{DASH}\d|[.]\d)"
    ),
    re.IGNORECASE,
)


# "abrogé le 1er janvier 2010", "n'a pas été abrogé", "toujours en vigueur", "n'est plus en vigueur".
_SINCE_THEN = (
    r"(?:depuis(?: lors)?|aujourd['’]hui|désormais|toujours|encore|actuellement|bien|pas|jamais|plus|nullement)"
)
_IN_FORCE_OR_NOT = re.compile(
    spaced(
        rf"_[,(]?_(?:(?:qui|et|mais|est) )?(?P<said>(?:(?:n['’])?a (?:{_SINCE_THEN} ){{0,3}}été (?:{_SINCE_THEN} )?|"
        rf"(?:n['’])?(?:est|fut|était) (?:{_SINCE_THEN} ){{0,2}})?(?:{_SINCE_THEN} ){{0,2}}abrogée?s?(?!\w)"
        rf"(?: {_SINCE_THEN}(?!\w)(?! (?:le|la|l['’]|\d)))?"
        rf"|(?P<force>(?:(?:n['’])?est |sont |demeure(?:nt)? |reste(?:nt)? )(?:{_SINCE_THEN} ){{0,2}}en vigueur"
        rf"|(?:{_SINCE_THEN} ){{1,2}}en vigueur|(?P<alone>(?:{_WHOSE} )?en vigueur(?= {_FROM})))(?!\w))"
    ),
    re.IGNORECASE,
)
_NOT = re.compile(rf"{negations(verb=True, after=True)}|\bplus\b", re.IGNORECASE)
_ENDS_ON = re.compile(
    spaced(
        r"_[,(]?_(?:(?P<act>par |en vertu |en application |suite |à la suite )"
        r"(?:[^.;:«»]|(?<=\b[LD])\.|(?<=\b(?:ord|déc))\.|(?<=décr)\.){0,60}?"
        r"|(?:que )?(?:depuis|dès|à (?:compter|partir)|avec effet|à effet)?_"
        r"(?:le |la |au |du |en |de (?:la |l['’])?|l['’](?:ann[ée]e )?)?)"
    ),
    re.IGNORECASE,
)
_BY_ACT = re.compile(spaced(r"_,?_(?:par|en vertu|en application|suite|à la suite)(?!\w)"), re.IGNORECASE)
_AGAIN = re.compile(
    spaced(
        r"[^.;:«»]{0,60}?(?<!\w)(?:puis|rétabli|remplac|recodif|devenu|avant d|partiel|en partie|implicite|en ce qu)"
    ),
    re.IGNORECASE,
)
_PART = re.compile(r"alin|\bal\.|§|\d\s?°|paragraphe|phrase|tiret|\b[IVX]+\b", re.IGNORECASE)
DAY, UNTIL_PUBLISHED = timedelta(1), timedelta(7)  # the latter: from an act to the day from which it repeals, at least


class _Period(NamedTuple):
    """Days that a text names: one, or those of a month or a year."""

    first: date
    last: date
    start: int  # characters
    end: int
    is_act: bool  # the day, or the year of the number, of an act
    numbers: tuple[str, ...] = ()  # of the act; several where the text names one of several; empty: none is stated


@displayed
class StatedWording(NamedTuple):
    """Which version of an article a text says it means."""

    meaning: Meaning
    first: date | None  # of the days stated: one, or those of a month, a year or a span; None: none is stated
    last: date | None
    start: int  # characters of the words that say so
    end: int
    numbers: tuple[str, ...] = ()  # of the act, or the acts, stated: "2016-1088"; empty: none is known

    @property
    def in_french(self) -> str:
        """The days stated: "le 3 mars 2012", "en 2012", "avant le 8 août 2016", "l'acte du 8 août 2016"."""
        if self.first is None or self.last is None:
            return ""
        if self.meaning == "before":
            return f"avant le {long_date(self.last + timedelta(days=1))}"
        if self.last == date.max:
            return f"après le {long_date(self.first - timedelta(days=1))}"
        number = f" n° {' ou '.join(self.numbers)}" if self.numbers else ""
        is_act = self.meaning == "act"
        if self.first == self.last:
            return f"l'acte{number} du {long_date(self.first)}" if is_act else f"le {long_date(self.first)}"
        first, last = (self.first.year, self.first.month, self.first.day), (self.last.year, self.last.month)
        is_year, is_month = first == (last[0], 1, 1) and last[1] == 12, first == (*last, 1)
        if is_year or is_month:
            period = f"{self.first.year}" if is_year else f"{MONTHS[self.first.month - 1]} {self.first.year}"
            of = "d'" if period[0] in "ao" else "de "
            return f"un acte{number} {of}{period}" if is_act else f"en {period}"
        return f"entre le {long_date(self.first)} et le {long_date(self.last)}"

    def last_by(self, today: date) -> date | None:
        """Return the last of the days stated, today at the latest if some are past."""
        return self.last and min(self.last, max(today, self.first or today))

    def versions(self, forces: Iterable[Force]) -> list[Force]:
        """Return those of an article's versions that the text may mean, by the days or the act that it states.

        Of an act: the versions that it wrote by their source; where that names no acts, those that began within a year
        of it, of which the first if its day is stated. Before an act or a day: the last version that began before it,
        or before the first version that the act wrote.
        """
        forces = sorted(forces)
        if self.first is None or self.last is None:
            return forces
        if self.meaning == "before":
            day = self.last + DAY
            act = self._replace(first=day, last=day)
            start = min((force.first for force in forces if act.names(force.acts)), default=day)
            return [force for force in forces if force.first < start and not force.is_empty][-1:]
        meant = [force for force in forces if not self.excludes(force)]
        if self.meaning != "act":
            return meant
        is_day = self.first == self.last
        until = self.last + (UNTIL_FORCE if is_day or not self._is_year else timedelta(days=1))
        named = [force for force in meant if force.acts]
        near = [force for force in meant if force.first <= until]
        return named or (near[:1] if is_day else near)

    @property
    def _is_year(self) -> bool:
        return self.first is not None and (self.first.month, self.first.day) == (1, 1) and self.first != self.last

    def excludes(self, force: Force) -> bool:
        """Tell whether a version is certainly not one that the text may mean, whatever others there are."""
        if self.first is None or self.last is None:
            return False
        if self.meaning == "act" and force.acts:
            return not self.names(force.acts)
        if self.meaning == "act":
            return force.first < self.first
        if self.first == self.last and self.names(force.acts):
            return False  # "rédaction du 8 août 2016": in force on that day, or written on it
        return not (force.first <= self.last and self.first < force.until)

    def states(self, day: date) -> bool:
        """Is a day one of those stated?"""
        return self.first is not None and self.last is not None and self.first <= day <= self.last

    def names(self, acts: Iterable[Act]) -> bool:
        """Is one of some acts that of the day and the number stated?"""
        return any(self.states(act.day) and self._has_number(act) for act in acts)

    def _has_number(self, act: Act) -> bool:
        numbers = {_CENTURY.sub("", one) for one in self.numbers if act.number}
        return not numbers or _CENTURY.sub("", act.number) in numbers

    def mistaken(self, forces: Iterable[Force]) -> tuple[Act, Act, "StatedWording"] | None:
        """Return an act as it is stated, the one that wrote a version and is meant, and the wording of that one's day.

        None unless the act is stated by number and day, of which the one meant has only one. "Antérieure à" may be said
        of any act of the right day.
        """
        if not self.numbers or self.first is None or self.first != self.last:
            return None
        lag = (self.meaning == "before") * DAY
        day, acts = self.first + lag, [act for force in forces for act in force.acts]
        alike = [act for act in acts if act.day == day or (act.number and self._has_number(act))]
        right = max(alike, key=lambda act: (self._has_number(act) + (act.day == day), act.day == day), default=None)
        if right is None or (right.day == day and (lag or self._has_number(right))):
            return None
        meant = self._replace(first=right.day - lag, last=right.day - lag, numbers=())
        return Act(day, " ou ".join(self.numbers)), right, meant

    def is_misnumbered(self, forces: Iterable[Force]) -> bool:
        """Is it before an act that has another number than those of its day that wrote a version?"""
        day = self.last + DAY if self.last and self.meaning == "before" else None
        acts = [act for force in forces for act in force.acts if act.day == day]
        return bool(acts) and not any(map(self._has_number, acts))


def stated_wording(text: str, start: int, end: int) -> StatedWording | None:
    """Read which version a text means of the article whose number stands at a span; None if it says nothing.

    Words of another article, or of another sentence, do not count. Of "antérieure à" an act or a day, the day before.

    >>> text = "l'article 1240 du code civil, dans sa rédaction antérieure à la loi du 5 mai 2016"
    >>> stated_wording(text, 10, 14).last
    datetime.date(2016, 5, 4)
    """
    around = max(start - WITHIN, 0)
    if _BECOMES.search(text, around, start) or not _HINT.search(text, around, end + WITHIN):
        return None
    before, behind = text[around:start], text[end : end + WITHIN].replace("réd.", "réd ")
    opening = around + split_sentences(before)[-1][0] if before else start
    last = end + split_sentences(behind)[0][1] if behind else end
    stated = _after(text, start, end, last) or _before(text, opening, start)
    if stated and stated.first:
        return stated
    return _on_a_day(text, opening, (start, end), last) or stated


@displayed
class StatedEnding(NamedTuple):
    """Whether a text says that an article is in force, or was repealed, and since when or by which act."""

    in_force: bool | None  # None: that it was so since a day, or, without one, words that could not be read
    since: StatedWording | None  # the days ("in force") or the act ("act"); None: none is stated
    start: int  # characters of the words that say so
    end: int

    def against(self, forces: Iterable[Force], at: date) -> str | None:
        """Return in French what contradicts it of an article's versions; '' if they bear it out, None if neither.

        A day is that of the repeal, or the last in force; one just before it may be that of the act. What is in force
        is so since a version of it, or it itself, began.
        """
        since, forces = self.since, sorted(set(forces))
        if not forces or (self.in_force is None and since is None):
            return None
        ended = [force for force in forces if force.state in ENDINGS and force.until < date.max]
        holds = next((force for force in forces if force.holds(at)), None)
        if self.in_force is None:
            return self._against_beginning(forces, holds or forces[-1])
        if self.in_force:
            is_over = ended[-1:] == forces[-1:] and not holds and ended[-1].until <= at
            return ended[-1].ending if is_over else self._against_beginning(forces, holds) if holds else None
        if holds and not ended:
            began = holds.first
            for force in reversed(forces):
                began = force.first if force.until == began else began
            days = (day for force in forces for day in (force.first, *(act.day for act in force.acts)))
            is_old = since and since.first and (since.first <= began or any(map(since.states, days)))
            return None if is_old else holds.in_french  # "abrogé" is said of its old words
        if not ended or not since or since.first is None or since.last is None:
            return "" if ended and not holds else None
        is_then = any(since.states(force.until) or since.states(force.until - DAY) for force in ended)
        if since.meaning != "act":
            is_just_before = any(DAY < force.until - since.last <= UNTIL_PUBLISHED for force in ended)
            return "" if is_then else None if is_just_before else ended[-1].ending
        if any(since.names(force.repeals) for force in ended):
            return ""
        is_other = not is_then and all(force.repeals for force in ended)
        is_later = all(force.until < since.first for force in ended)
        by = " ou ".join(act.in_french for act in ended[-1].repeals)
        return ", ".join(filter(None, (ended[-1].ending, by))) if is_other or is_later else None

    def _against_beginning(self, forces: list[Force], holds: Force) -> str | None:
        since = self.since
        if since is None or since.first is None or since.last is None:
            return ""
        if any(since.names(force.acts) if since.meaning == "act" else since.states(force.first) for force in forces):
            return ""
        is_amid = any(date.min < force.first < since.first and since.last < force.until for force in forces)
        if since.meaning == "act" or not (is_amid or since.last < forces[0].never_before):
            return None
        first = next((force.first for force in forces if force.first > date.min), holds.first)
        return f"{holds.in_french}{f' ; première version : le {long_date(first)}' * (first != holds.first)}"


def stated_ending(text: str, start: int, end: int) -> StatedEnding | None:
    """Read whether a text says, right behind an article whose number stands at a span, that it is in force or repealed.

    >>> stated_ending("l'article 1240 du code civil, toujours en vigueur,", 10, 14).in_force
    True
    """
    last = end + split_sentences(text[end : end + WITHIN])[0][1] if text[end:].strip() else end
    near = _near_end(text, end, last)
    if (said := _IN_FORCE_OR_NOT.match(text, near, last)) is None:
        return None
    in_force = bool(said["force"]) != (_NOT.search(said.group()) is not None)
    period = next(_periods(text, said.end(), last), None)
    on = _ENDS_ON.fullmatch(text, said.end(), period.start) if period else None
    if said["alone"] and not on:
        return None
    since, (first, until) = None, said.span("said")
    if period and on:
        period = _numbered(text, said.end(), period)
        meaning: Meaning = "act" if period.is_act or on["act"] else "in force"
        since, until = StatedWording(meaning, *period[:4], period.numbers), period.end
        is_since = _SINCE.search(text, said.end(), period.start) and (in_force or "plus" in said["said"])
        is_read = bool(is_since) if said["force"] else not in_force  # else "toujours en vigueur en 2012"
        is_read &= not (said["force"] and "," in text[said.end() : period.start])
        is_read &= meaning == "act" or not _BY_ACT.match(text, until, last)  # both would have to be right
    else:
        is_near = period is not None and not in_force and period.start - said.end() <= UNTIL_ACT
        is_read = not is_near and not _AGAIN.match(text, said.end(), last)
    if not is_read or _PART.search(text, end, near) or _OLD_ARTICLE.search(text, max(start - 30, 0), start):
        return StatedEnding(None, None, first, until)
    return StatedEnding(None if said["alone"] else in_force, since, first, until)


def _after(text: str, start: int, end: int, last: int) -> StatedWording | None:
    """Read what is said behind an article, or around it: "la version de l'article L. 1 issue de la loi"."""
    near = _near_end(text, end, last)
    noun = _NOUN_BEFORE.search(text, max(start - 60, 0), start)
    if noun and (stated := _said(text, near, last, noun.start(), age=noun["age"])):
        return stated
    whose, bare = _LOOSE.match(text, end, last), _BARE.match(text, near, last)
    if whose and not (bare and bare.start("whose") < whose.start("whose")):
        between = _NO_OTHER.sub("", text[end : whose.start("whose")])
        if re.search(r"\bleurs?\b", whose["whose"], re.IGNORECASE):
            if _OTHER_ARTICLES.search(_JOINED.sub("", between)):  # of these, and perhaps of it
                return _undated(text, *whose.span("whose"), last)
        elif _OTHER_ARTICLE.search(between):
            return None
        if _OF_THE_FIRST.search(between):
            return None  # of articles before it
        is_near = whose.start("whose") <= near
        stated = _said(text, whose.end(), last, whose.start("whose"), age=whose["age"], is_near=is_near)
        return stated or _undated(text, *whose.span("whose"), last)
    if bare and (stated := _said(text, bare.end(), last, bare.start("whose"), bare=bare)):
        return stated
    if bare and bare["then"]:
        return _undated(text, *bare.span("whose"), last)
    old = _OLD_ARTICLE.search(text, max(start - 30, 0), start) or _OLD_NUMBER.match(text, end)
    old = old or _OLD_NUMBER.search(text, start, end)
    return StatedWording("former", None, None, *old.span()) if old else None


def _near_end(text: str, end: int, last: int) -> int:
    """Return where words begin that are said of an article alone: behind its list, its parts and its text."""
    tight = _TIGHT.match(text, end, last)
    return tight.end() if tight else end


def _before(text: str, opening: int, start: int) -> StatedWording | None:
    """Read what stands just before an article: "Dans sa rédaction issue de la loi du 8 août 2016, l'article L. 1"."""
    article = _THE_ARTICLE.search(text, opening, start)
    last = article.start() if article else start
    for whose in reversed(list(_OPENS.finditer(text, opening, last))):
        if _OTHER_ARTICLE.search(_NO_OTHER.sub("", text[whose.start() : last])):
            return None
        stated = _said(text, whose.end(), start, whose.start(), age=whose["age"])
        if stated is None and whose["whose"]:
            stated = _undated(text, *whose.span("whose"), last)
        closes = _SAYS_THE_ARTICLE if whose["whose"] else _OF_THE_ARTICLE
        if stated and closes.fullmatch(text, stated.end, start):  # else of an agreement that names the article
            return stated
    return None


def _on_a_day(text: str, opening: int, article: tuple[int, int], last: int) -> StatedWording | None:
    """Read the day of what an article said: "En 2012, l'article L. 1 disposait", "que disait l'article 1 en 2012"."""
    start, end = article
    near, head = _near_end(text, end, last), text[opening:start]
    disposed, asked = _DISPOSED.match(text, near, last), _ASKED.fullmatch(head)
    if disposed or asked or _ON_A_DAY.match(text, near, last):
        asks = disposed.group() if disposed else (asked and asked["asks"]) or ""
        behind = disposed.end() if disposed else near
        periods = list(_periods(text, behind, last))
        is_said = disposed and periods and _AT_ONCE.fullmatch(text, behind, periods[0].start)
        if periods and (is_said or _goes_with(text, behind, periods[0], asks, is_alone=asked is not None)):
            lead = _ASKED_OF.fullmatch(text, behind, periods[0].start)
            return _on_or_before(text, lead and lead["before"], periods, lead.end("about") if lead else behind)
    periods = list(_periods(text, opening, start)) if disposed or _QUESTION.search(head) else []
    for number, period in enumerate(periods):
        until = _in_force(text, period, periods[number:], start).end
        asked = _ASKED.fullmatch(f"{text[opening : period.start]}@{text[until:start]}")
        if asked and (disposed or asked["past"] is None):
            lead_start = opening + max(asked.start("first"), asked.start("then"), asked.start("past"))
            before = asked["before1"] or asked["before2"] or asked["before3"]
            return _on_or_before(text, before, periods[number:], lead_start)
    return None


def _goes_with(text: str, behind: int, period: _Period, asks: str, *, is_alone: bool) -> bool:
    """Tell whether a day is that of the law which a question asks for, by what stands between and what follows."""
    if period.first == period.last and _ON_THE_DAY.fullmatch(text, behind, period.start):
        return True
    if (lead := _ASKED_OF.fullmatch(text, behind, period.start)) is None:
        return False
    if about := lead["about"].strip():  # with a verb in the present the day may be that of anything
        is_past = "ai" in asks and not _OF_FACTS.search(about)
        return is_past and _ENDS_QUESTION.match(text, period.end) is not None
    if _DISPOSED.match(text, period.end):  # "l'article L. 1, en 2012, disposait"
        return True
    if not asks and (not is_alone or lead.group().strip(" ,").lower() == "le"):
        return False
    is_joined = asks and "," not in text[behind - 2 : period.start]
    return bool(is_joined) or _ENDS.match(text, period.end) is not None


def _on_or_before(text: str, before: str | None, periods: list[_Period], start: int) -> StatedWording | None:
    """Read the first of some periods as the days of a version, or as what it was before."""
    period = periods[0]
    if before:
        day = period.first - timedelta(days=1)
        return StatedWording("before", day, day, start, period.end)
    return None if period.is_act else _in_force(text, period, periods, start)


def _said(
    text: str,
    at: int,
    last: int,
    start: int,
    *,
    age: str | None = None,
    bare: re.Match[str] | None = None,
    is_near: bool = True,
) -> StatedWording | None:
    """Read what is said of a version from `at` on, in words that begin at `start`.

    Near the article a day alone will do: "version du 3 mars 2012" further on may be a contract's.
    """
    periods = list(_periods(text, at, last))
    before, act, force = (said.match(text, at, last) for said in (_BEFORE, _OF_ACT, _IN_FORCE))
    if not bare and (former := _FORMER.match(text, at, last)):
        return StatedWording("former", None, None, start, former.end())
    is_before = before and not (act and act.end() < before.end())  # of both, the words that come first count
    if before and is_before and (period := _near(periods, before.end())):
        is_of_article = (
            bare is None
            or bare["prior"] is None
            or period.is_act
            or _CHANGE.search(text, before.end(), period.start)
            or _DISPOSED.match(text, period.end, last)
        )
        day = period.first - timedelta(days=1)  # "jusqu'au" too: there the next version begins, if any does
        return StatedWording("before", day, day, start, period.end, period.numbers) if is_of_article else None
    if act and (period := _near(periods, act.end())):
        period = _numbered(text, act.end(), period)
        if bare and not (period.is_act or _ACT_NOUN.search(text, act.end(), period.start)):
            return None  # "issu de la recodification de 2008": all versions since are
        if text[act.end() : act.end() + 5].strip().startswith("des"):  # "des lois du 8 août 2016 et du 29 mars 2018"
            period = _last_listed(text, period, periods)
        following = (one for one in periods if one.start > period.end)
        if (other := next(following, None)) and _AMENDED.fullmatch(text, period.end, other.start):
            numbers = period.numbers and other.numbers and period.numbers + other.numbers
            period = period._replace(last=max(period.last, other.last), end=other.end, numbers=numbers)
        return StatedWording("act", period.first, period.last, start, period.end, period.numbers)
    for period in periods:
        in_force = force and (_AT_ONCE if bare else _AT).fullmatch(text, force.end(), max(period.start, force.end()))
        if _LATER.search(text, at, period.start):
            return StatedWording("in force", period.last + timedelta(days=1), date.max, start, period.end)
        if bare and _SINCE.search(text, at, period.start):
            return None  # "en vigueur depuis 2008": all versions since are
        if not period.is_act and (in_force or (not bare and is_near and _DATED.fullmatch(text, at, period.start))):
            return _in_force(text, period, periods, start)
    if not bare and (current := _CURRENT.match(text, at, last)):
        return StatedWording("current", None, None, start, current.end())
    if age:
        recent = age.lower() in ("nouvelle", "dernière")
        return StatedWording("current" if recent else "former", None, None, start, at)
    return None


def _in_force(text: str, period: _Period, periods: list[_Period], start: int) -> StatedWording:
    """Read a period, or two with what is between: "du 1er janvier 2014 au 1er avril 2018", the last day left out.

    Légifrance gives there the first day of the next version. Of "depuis 2018" the last day counts.
    """
    if _SINCE.search(text, max(period.start - 20, 0), period.start):
        return StatedWording("in force", period.last, period.last, start, period.end)
    others = (one for one in periods if one.start > period.end and _RANGE.fullmatch(text, period.end, one.start))
    until = next((one for one in others if one.first > period.last), None)
    if until:
        return StatedWording("in force", period.first, until.first - timedelta(days=1), start, until.end)
    return StatedWording("in force", period.first, period.last, start, period.end)


def _numbered(text: str, at: int, period: _Period) -> _Period:
    """Return a period as an act's, if its number stands before its day: "L. n° 2016-1088 du"."""
    number = None if period.is_act else _NUMBER_BEFORE.search(text, at, period.start)
    return period._replace(is_act=True, numbers=(re.sub(DASH, "-", number[1]),)) if number else period


def _last_listed(text: str, period: _Period, periods: list[_Period]) -> _Period:
    """Return the last of the acts that a list names from a period on."""
    for other in periods:
        if other.start > period.end and _NEXT_ACT.fullmatch(text, period.end, other.start):
            period = other
    return period


def _undated(text: str, start: int, end: int, last: int) -> StatedWording:
    said = _CIRCUMSTANCE.match(text, end, last)
    return StatedWording("undated", None, None, start, said.end() if said else end)


def is_former(text: str, start: int, end: int) -> bool:
    """Does a text mean by a reference, at some characters, a version before the one in force, of no day that it gives?

    >>> is_former("que dit l'ancien article 1382 du code civil", 18, 43)
    True
    """
    stated = stated_wording(text, start, end)
    return stated is not None and stated.meaning == "former"


def days_named(text: str) -> list[StatedWording]:
    """Return the days, months and years that a text names, those of acts left out, whatever is said of them."""
    days = (one for one in _periods(text, 0, len(text)) if not one.is_act)
    return [StatedWording("undated", one.first, one.last, one.start, one.end) for one in days]


def _near(periods: list[_Period], at: int) -> _Period | None:
    """Return the first period behind a place, if it is near."""
    near = next((period for period in periods if period.start >= at), None)
    return near if near and near.start - at <= UNTIL_ACT else None


def _periods(text: str, at: int, last: int) -> Iterator[_Period]:
    """Yield the days, months, years and acts that a passage names, in text order; of an act its day alone."""
    passage = text[at:last]
    dates = find_dates(passage)
    found: list[_Period] = []
    for span, namesakes in groupby(find_statutes(passage, dates), key=lambda law: (law.start, law.end)):
        laws = list(namesakes)
        numbers, days = tuple(law.number for law in laws if law.number), [law.date for law in laws if law.date]
        year = re.match(r"(?:(?:19|20)\d\d|\d\d)(?=-)", laws[0].number)
        if days:
            found.append(_Period(min(days), max(days), *span, is_act=True, numbers=numbers))
        elif year:
            of_year = _of_year(int(year[0]) + (1900 if len(year[0]) == 2 else 0), 0, span, True)
            found.append(of_year._replace(numbers=numbers))
    found += [_Period(day.value, day.value, day.start, day.end, is_act=False) for day in dates]
    for match in _MONTH_OR_YEAR.finditer(passage):
        month = MONTH_NUMBERS.get((match["month"] or "").lower(), 0)
        found.append(_of_year(int(match["year"]), month, match.span(), is_act=False))
    done = 0
    for period in sorted(found, key=lambda one: (one.start, -one.end)):
        if period.start >= done:
            done = period.end
            yield period._replace(start=at + period.start, end=at + period.end)


def _of_year(year: int, month: int, span: tuple[int, int], is_act: bool) -> _Period:
    first, last = date(year, month or 1, 1), date(year, month or 12, monthrange(year, month or 12)[1])
    return _Period(first, last, *span, is_act=is_act)
