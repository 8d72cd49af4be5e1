"""Counsel and the parties they appear for."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.extraction.entities import AVOCAT, Entity, rule_entity
from legal_rag.extraction.rules.names import BLANK, CAPITAL, NO_NAME, PARTICLE, person_name, titles
from legal_rag.law.scanning import lowered, positions

# Law firms and Maîtres are counsel unless the context gives them another office; other firms and persons only if it
# calls them counsel.
_LEAD = re.compile(
    r"(?P<firm>S\.?C\.?P(?:\.|(?!\w))A?|AARPI(?!\w)|ASSOCIATION D['’]AVOCATS)"
    r"|(?P<other>SELA(?:RL|FA|S)U?(?!\w)|S\.?E\.?L\.?A\.?R\.?L(?:\.|(?!\w))|SARL(?!\w)|S\.A\.R\.L\.|SAS(?!\w)|"
    r"CABINET(?!\w)|Cabinet(?!\w))"
)
_FIRM_WORDS = "scp|s.c.p|aarpi|association d|selarl|selaf|selas|s.e.l.a.r.l|SARL|S.A.R.L|SAS |cabinet ".split("|")
_MASTERS = frozenset(("me", "mes", "maître", "maîtres", "maitre", "maitres"))
_PIECE = re.compile(
    rf"(?P<joint>(?:{BLANK}?[,&/–-]|{BLANK}(?:et|ET)(?={BLANK}))?{BLANK}{{0,2}}|\n)(?P<particle>{PARTICLE})?"
    rf"(?P<word>[A-Z]{{1,2}}(?:\.{{3}}|…)|\[[A-Z]{{1,3}}\]|(?:[A-Z]-)?[A-Z]\.(?:-?[A-Z]\.)*|[aA]ssociée?s|"
    rf"[{CAPITAL}](?:[^\W\d_]|['’‑-](?=[^\W\d_]))*)"
)
_NO_FIRM = NO_NAME - {"cabinet", "et", "de"} | frozenset("scp sarl selarl selas sas postulant vestiaire".split())
_COUNSEL = r"(?:avocat|avoué|Avocat|Avoué|AVOCAT|AVOU[EÉ])(?:[es]s?|E?S)?(?!\w)(?!\s+g[ée]n[ée]ral|\s+G[ÉE]N)"
_ROLE_AFTER = re.compile(
    rf"\s{{0,3}}(?:\([^()\n]{{1,40}}\))?[\s,:-]{{0,4}}(?:(?:les?|ses|anciens?){BLANK})?"
    rf"(?P<role>{_COUNSEL})(?P<of>[^,;\n(]{{0,120}})"
)
_ROLE_BEFORE = re.compile(
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
    """Title or legal form at the start of a lawyer's name."""

    start: int  # characters
    end: int
    kind: str  # 'firm', 'other' (a company or cabinet), 'master' or 'person'


def find_counsel(text: str) -> list[Entity]:
    """Find the parties' lawyers, with `role` ('avocat' or 'avoué') and `client` where the text gives them."""
    counsel: list[Entity] = []
    barred: set[str] = set()  # surnames of Maîtres with another office
    for lead in _counsel_leads(text):
        if counsel and lead.start < counsel[-1]["char_end"]:
            continue
        for start, end in _counsel_names(text, lead):
            role = _ROLE_AFTER.match(text, end)
            if _is_counsel(text, lead.kind, start, end, role):
                counsel.append(rule_entity(AVOCAT, text, start, end, **(_counsel_attributes(role) if role else {})))
            elif lead.kind == "master":
                barred.add(_surname(text[start:end]))
    return [entity for entity in counsel if not _is_barred(entity, barred)]


def _counsel_leads(text: str) -> list[_Lead]:
    lower = lowered(text) or text
    words = _FIRM_WORDS if "avoca" in lower or "avou" in lower else ("scp",)
    starts = (place for place in positions(text, lower, words) if not (place and text[place - 1].isalnum()))
    leads = [_Lead(*match.span(), match.lastgroup or "") for place in starts if (match := _LEAD.match(text, place))]
    pleads = "avocat" in lower
    for start, end in titles(text):
        if text[start:end].lower() in _MASTERS:
            leads.append(_Lead(start, end, "master"))
        elif pleads and "avocat" in lower[end : end + 60]:
            leads.append(_Lead(start, end, "person"))
    return sorted(leads)


def _surname(name: str) -> str:
    return name.split()[-1].lower()


def _is_barred(entity: Entity, barred: set[str]) -> bool:
    name = entity["extraction_text"]
    return name[0] == "M" and "role" not in entity["attributes"] and _surname(name) in barred


def _counsel_names(text: str, lead: _Lead) -> Iterator[Span]:
    """Yield the spans of the names after a lead, several after 'Mes'; the first includes the lead."""
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


def _is_counsel(text: str, kind: str, start: int, end: int, role: re.Match[str] | None) -> bool:
    if kind == "person":
        return role is not None and _AT_A_BAR.match(role["of"]) is not None
    before = text[max(0, start - 60) : start]
    office = _OFFICE_AFTER.match(text, end)
    if (office and _OTHER_OFFICE.search(office.group())) or _OFFICE_BEFORE.search(before):
        return False
    return role is not None or kind != "other" or _ROLE_BEFORE.search(before) is not None


def _counsel_attributes(role: re.Match[str]) -> dict[str, str]:
    attributes = {"role": "avoué" if role["role"].lower().startswith("avou") else "avocat"}
    if client := _CLIENT.match(role["of"]):
        attributes["client"] = re.split(r" et (?:d|l['’]avis)| venant | ayant ", client["who"])[0].strip()
    return attributes
