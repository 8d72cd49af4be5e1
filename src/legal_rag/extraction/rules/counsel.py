"""Counsel and the parties they appear for."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from legal_rag.corpus.patterns.scanning import lowered, places
from legal_rag.extraction.entities import AVOCAT, Entity, rule_entity
from legal_rag.extraction.rules.persons import BLANK, CAPITAL, NO_NAME, PARTICLE, person_name, titles

# A firm of lawyers and a Maître are counsel unless told otherwise; other firms and persons where they are told to be.
_LEAD = re.compile(
    r"(?P<firm>S\.?C\.?P(?:\.|(?!\w))A?|AARPI(?!\w)|ASSOCIATION D['’]AVOCATS)"
    r"|(?P<other>SELA(?:RL|FA|S)U?(?!\w)|S\.?E\.?L\.?A\.?R\.?L(?:\.|(?!\w))|SARL(?!\w)|S\.A\.R\.L\.|SAS(?!\w)|"
    r"CABINET(?!\w)|Cabinet(?!\w))"
)
_FIRM_WORDS = (
    "scp",
    "s.c.p",
    "aarpi",
    "association d",
    "selarl",
    "selaf",
    "selas",
    "s.e.l.a.r.l",
    "SARL",
    "S.A.R.L",
    "SAS ",
    "cabinet ",
)
_MASTERS = frozenset(("me", "mes", "maître", "maîtres", "maitre", "maitres"))
_PIECE = re.compile(
    rf"(?P<joint>(?:{BLANK}?[,&/–-]|{BLANK}(?:et|ET)(?={BLANK}))?{BLANK}{{0,2}}|\n)(?P<particle>{PARTICLE})?"
    rf"(?P<word>[A-Z]{{1,2}}(?:\.{{3}}|…)|\[[A-Z]{{1,3}}\]|(?:[A-Z]-)?[A-Z]\.(?:-?[A-Z]\.)*|[aA]ssociée?s|"
    rf"[{CAPITAL}](?:[^\W\d_]|['’‑-](?=[^\W\d_]))*)"
)
_NO_FIRM = NO_NAME - {"cabinet", "et", "de"} | frozenset("scp sarl selarl selas sas postulant vestiaire".split())
_COUNSEL = r"(?:avocat|avoué|Avocat|Avoué|AVOCAT|AVOU[EÉ])(?:[es]s?|E?S)?(?!\w)(?!\s+g[ée]n[ée]ral|\s+G[ÉE]N)"
_TOLD_AFTER = re.compile(
    rf"\s{{0,3}}(?:\([^()\n]{{1,40}}\))?[\s,:-]{{0,4}}(?:(?:les?|ses|"
    rf"anciens?){BLANK})?(?P<role>{_COUNSEL})(?P<of>[^,;\n(]{{0,120}})"
)
_TOLD_BEFORE = re.compile(
    r"(?:observations[\w ]{0,30} de(?: la)?|(?:pour )?[Aa]voca[\w ]{0,12} ?:|pour avoca\w{1,3}|pour avou\w{1,3}|"
    r"[Aa]vou[ée][\w ]{0,12} ?:|AVOCATS? ?:|[Pp]laidant|ayant|[Ss]ubstitu\w{1,6}|représent\w{1,6}|"
    r"assist\w{1,6})(?: par| de)?(?: la| le)?[ :]{0,3}$"
)
_OTHER_OFFICE = re.compile(
    r"(?i:notaire|huissier|liquidat|mandataire|administrat(?:eur|rice)|commissaire|curateur|syndic|tut(?:eur|rice)|"
    r"architecte|expert|commissaire-priseur)"
)
_OFFICE_AFTER = re.compile(
    r"[\s,(]{0,4}(?:notaire|huissier|(?:agissant |pris(?:e)? |intervenant )?(?:en (?:sa |leur |la )?qualités? |"
    r"[èeé]s[ -]qualités?)|"
    r"(?:mandataire|liquidat|administrat|commissaire|curateur|syndic|architecte|expert))[^.;\n]{0,40}"
)
_OFFICE_BEFORE = re.compile(
    r"(?i:notaires?|huissiers?|liquidat(?:eur|rice)s?|mandataires?(?: judiciaires?| liquidateurs?)?|administrat(?:eur|"
    r"rice)s?(?: judiciaires?)?|syndic|personne de|commissaires?|(?:actes?|acte reçu|testament|reçu) (?:de|"
    r"par))(?: (?:de justice|à la liquidation))?[ ,:]{0,2}(?:la |le )?$"
)
_CLIENT = re.compile(
    rf"{BLANK}(?:(?:de{BLANK}la|de{BLANK}l['’]|du|des|de|d['’])){BLANK}?(?P<who>(?!cour|Cour|barreau)\S.*)", re.DOTALL
)
_AND = re.compile(rf"{BLANK}?(?:,|et|ET|&){BLANK}(?:et{BLANK})?(?=[{CAPITAL}])")
_AT_A_BAR = re.compile(rf"{BLANK}(?:au|à|aux|du|inscrit|postulant|plaidant)\b")


class _Lead(NamedTuple):
    """What a name of counsel begins with."""

    start: int  # characters
    end: int
    kind: str  # 'firm', 'other' (a company or cabinet), 'master' or 'person'


def find_counsel(text: str) -> list[Entity]:
    """Find those who act for a party as its lawyers; attributes `role` (avocat or avoué) and `client` where told."""
    found: list[Entity] = []
    barred: set[str] = set()  # masters who hold another office
    for lead in _leads(text):
        if found and lead.start < found[-1]["char_end"]:
            continue
        for start, end in _names(text, lead):
            told = _TOLD_AFTER.match(text, end)
            if _is_counsel(text, lead.kind, start, end, told):
                found.append(rule_entity(AVOCAT, text, start, end, **_told(told)))
            elif lead.kind == "master":
                barred.add(_key(text[start:end]))
    return [one for one in found if not _is_barred(one, barred)] if barred else found


def _leads(text: str) -> list[_Lead]:
    lower = lowered(text) or text
    words = _FIRM_WORDS if "avoca" in lower or "avou" in lower else ("scp",)
    starts = (place for place in places(text, lower, words) if not (place and text[place - 1].isalnum()))
    found = [_Lead(*one.span(), one.lastgroup or "") for place in starts if (one := _LEAD.match(text, place))]
    pleads = "avocat" in lower
    for start, end in titles(text):
        if text[start:end].lower() in _MASTERS:
            found.append(_Lead(start, end, "master"))
        elif pleads and "avocat" in lower[end : end + 60]:
            found.append(_Lead(start, end, "person"))
    return sorted(found)


def _key(name: str) -> str:
    return name.split()[-1].lower()


def _is_barred(one: Entity, barred: set[str]) -> bool:
    return (
        one["extraction_text"][:1] == "M" and _key(one["extraction_text"]) in barred and "role" not in one["attributes"]
    )


def _names(text: str, lead: _Lead) -> Iterator[tuple[int, int]]:
    """Yield the places of the names behind a lead, the first with it: several behind 'Mes'."""
    start, at = lead.start, lead.end
    if lead.kind in ("firm", "other"):
        if end := _firm_end(text, at):
            yield start, end
        return
    several = text[start:at].lower() in ("mes", "maîtres", "maitres", "mm.", "mmes")
    while name := person_name(text, at + (text[at : at + 1] == "\n")):
        yield start, name.end
        joint = _AND.match(text, name.end) if several else None
        if joint is None:
            return
        start = at = joint.end()


def _firm_end(text: str, at: int) -> int | None:
    """Return where a firm's name ends: its partners' names, with all that joins them."""
    end = None
    for _ in range(16):
        piece = _PIECE.match(text, at)
        if piece is None or _ends_firm(piece, first=end is None):
            break
        at = piece.end()
        if piece["word"] not in ("DE", "LA", "LE", "DU", "D", "ET", "DES"):
            end = at
    return end


def _ends_firm(piece: re.Match[str], *, first: bool) -> bool:
    word, joint = piece["word"], piece["joint"]
    if first:
        return word.lower() in _NO_FIRM or "," in joint
    left_out = word.endswith(("...", "…")) and not joint.strip()
    stops = word.lower() in _NO_FIRM and not (word == "Maitre" and "et" in joint)
    return stops or left_out or "\n" in joint


def _is_counsel(text: str, kind: str, start: int, end: int, told: re.Match[str] | None) -> bool:
    if kind == "person":
        return told is not None and _AT_A_BAR.match(told["of"]) is not None
    before = text[max(0, start - 60) : start]
    office = _OFFICE_AFTER.match(text, end)
    if (office and _OTHER_OFFICE.search(office.group())) or _OFFICE_BEFORE.search(before):
        return False
    return told is not None or kind != "other" or _TOLD_BEFORE.search(before) is not None


def _told(told: re.Match[str] | None) -> dict[str, str]:
    if told is None:
        return {}
    attributes = {"role": "avoué" if told["role"].lower().startswith("avou") else "avocat"}
    if client := _CLIENT.match(told["of"]):
        attributes["client"] = re.split(r" et (?:d|l['’]avis)| venant | ayant ", client["who"])[0].strip()
    return attributes
