"""European references and their identifiers: acts, treaties and cases by CELEX, those of Strasbourg by application.

A CELEX number is the sector, the year in four digits, the type and the number: 32003L0088 is directive 2003/88/CE,
32016R0679 règlement (UE) 2016/679, 62012CJ0131 case C-131/12, 12016E267 article 267 TFUE as consolidated in 2016
(EUR-Lex, "CELEX number of EUR-Lex documents", https://eur-lex.europa.eu/content/help/faq/celex-number.html).
"""

import re
from itertools import accumulate

from legal_rag.base.text import Span
from legal_rag.law.articles import AFTER_EUROPEAN_ACT
from legal_rag.law.citation import Link
from legal_rag.law.mentions import Mention, find_european_cases
from legal_rag.law.scanning import NUMBER_SIGN, Led

EUR_LEX, HUDOC = "https://eur-lex.europa.eu/legal-content/FR/TXT/?uri=", "https://hudoc.echr.coe.int/fre#"
_FIRST_YEAR = 1952  # of the Communities
# Since 1 January 2015 all acts are numbered "(UE) year/number"; before, regulations were "n° number/year" and
# directives "year/number/CE" (Publications Office, "Harmonising the numbering of EU legal acts").
_YEAR_LEADS = 2015
_ACT = Led(
    rf"(?<!\w)(?P<kind>directives?|règlements?){AFTER_EUROPEAN_ACT}(?P<sign>{NUMBER_SIGN}_)?"
    r"(?P<first>\d{1,4})/(?P<second>\d{1,4})(?![\d-])(?:/(?:CEE?|UE|Euratom)(?!\w))?",
    ["directive", "règlement"],
)
_GDPR = Led(r"RGPD(?!\w)|règlement général sur la protection des données", ["rgpd", "règlement général"])
_OF_UNION = re.compile(r"\b(?:CEE?|UE|Euratom)\b|Conseil|Parlement", re.IGNORECASE)
_TYPES = {"directive": "L", "règlement": "R"}
_COURTS = {"C": "CJ", "T": "TJ", "F": "FJ"}  # Court of Justice, General Court, Civil Service Tribunal: judgments
_ORDER = re.compile(r"\bord(?:onnance|\.)", re.IGNORECASE)
# The letter of each treaty in sector 1, as consolidated in 2016.
_TREATIES = {
    "E": r"TFUE(?!\w)|traité sur le fonctionnement de l['’]union européenne",
    "M": r"TUE(?!\w)|traité sur l['’]union européenne",
    "P": r"CDFUE(?!\w)|charte des droits fondamentaux",
}
_TREATY = "|".join(f"(?P<{letter}>{names})" for letter, names in _TREATIES.items())
_PART = r"(?:_,?_(?:§|paragraphe|alinéa|al\.)_\d{1,2})?"
_TREATY_ARTICLE = Led(
    rf"(?<!\w)art(?:icles?|\.)_(?P<number>\d{{1,3}})(?!\d){_PART}_,?_(?:(?:du|de la) )?(?:{_TREATY})", ["art"]
)
_ECLI = Led(r"ECLI:EU:[A-Z]:\d{4}:\d+", ["ecli:eu:"])


def celex_of_act(citation: str) -> str:
    """Return the CELEX number of the first directive or regulation that a citation names; empty if it names none.

    Which of a regulation's figures is the year: the second where it is one ("n° 44/2001", "n° 1408/71"), the first from
    2015 on, where the second is none or the act is given without "n°" ("(UE) 2016/679").

    >>> celex_of_act("règlement (CE) n° 44/2001"), celex_of_act("directive (UE) 2019/1158")
    ('32001R0044', '32019L1158')
    """
    act = _ACT.search(citation)
    return _celex_of_act(act) if act else ""


def _celex_of_act(act: re.Match[str]) -> str:
    kind = _TYPES[act["kind"].lower().removesuffix("s")]
    first, second = act["first"], act["second"]
    second_is_year = _year(second) and not (_is_new_year(first) and (not act["sign"] or _is_new_year(second)))
    year, number = (second, first) if kind == "R" and second_is_year else (first, second)
    is_of_union = (
        kind == "L" or len(number) > 2 or _OF_UNION.search(act.group()) is not None
    )  # "règlement n° 3/84" may be a town's
    return f"3{_year(year)}{kind}{int(number):04d}" if _year(year) and is_of_union else ""


def _year(figures: str) -> int:
    """Return the year that two or four figures are, 0 if they are none."""
    if len(figures) == 2:
        return 1900 + int(figures) if int(figures) >= _FIRST_YEAR - 1900 else 2000 + int(figures)
    return int(figures) if len(figures) == 4 and _FIRST_YEAR <= int(figures) < 2100 else 0


def _is_new_year(figures: str) -> bool:
    return len(figures) == 4 and _year(figures) >= _YEAR_LEADS


def celex_of_case(number: str, *, is_order: bool = False) -> str:
    """Return the CELEX number of a judgment or an order of the Court of Justice or of the Union's tribunals.

    Joined cases have that of the first one.

    >>> celex_of_case("C-131/12"), celex_of_case("26/62"), celex_of_case("T-12/19")
    ('62012CJ0131', '61962CJ0026', '62019TJ0012')
    """
    court, _, figures = number.rpartition("-")  # before 1989 all cases were the Court's, without a letter
    case, year = figures.split("/")
    types = _COURTS[court or "C"]
    return f"6{_year(year)}{types[0]}{'O' if is_order else types[1]}{int(case):04d}"


def european_link(citation: str) -> Link | None:
    """Return the public page of the first European text or case that a citation names; None if it names none.

    The address is built, not checked.

    >>> european_link("CEDH, 12 mars 2019, n° 12345/16").url
    'https://hudoc.echr.coe.int/fre#%7B%22appno%22:[%2212345/16%22]%7D'
    """
    return next((link for _, link in european_links(citation)), None)


def european_links(text: str) -> list[tuple[Span, Link]]:
    """Find the European texts and cases that a text names, in text order, with their pages; none overlaps another."""
    found = [(case.start, case.end, _link_of_case(case, text)) for case in find_european_cases(text)]
    found += ((*one.span(), Link("EUR-Lex", EUR_LEX + one.group().upper())) for one in _ECLI.finditer(text))
    numbers = [(*one.span(), _celex_of_act(one)) for one in _ACT.finditer(text)]
    numbers += ((*one.span(), "32016R0679") for one in _GDPR.finditer(text))
    numbers += (
        (*one.span(), f"12016{letter}{int(one['number']):03d}")
        for one in _TREATY_ARTICLE.finditer(text)
        for letter in _TREATIES
        if one[letter]
    )
    found += ((start, end, Link("EUR-Lex", f"{EUR_LEX}CELEX:{celex}")) for start, end, celex in numbers if celex)
    found.sort(key=lambda one: (one[0], -one[1]))
    ends = accumulate((end for _, end, _ in found), max, initial=0)
    return [((start, end), link) for (start, end, link), before in zip(found, ends, strict=False) if start >= before]


def _link_of_case(case: Mention, text: str) -> Link:
    if case.kind == "cedh":
        return Link("HUDOC", f"{HUDOC}%7B%22appno%22:[%22{case.value}%22]%7D")
    is_order = _ORDER.search(text, max(case.start - _SAID_BEFORE, 0), case.start) is not None
    return Link("EUR-Lex", f"{EUR_LEX}CELEX:{celex_of_case(case.value, is_order=is_order)}")


_SAID_BEFORE = 60  # characters before a case's number in which it may be called an order
