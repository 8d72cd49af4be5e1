"""What part each party has in a French decision: appelant, intimé, demandeur, requérant and so on."""

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from legal_rag.extraction.entities import Entity
from legal_rag.legal_patterns.scanning import lowered, places


class _Zone(NamedTuple):
    start: int
    end: int
    role: str


# Words behind which parties of a role are named, what must stand before them, up to which signs, how many characters.
_LED: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...], int], ...] = (
    ("la situation de", ("de ", "à "), "candidat", (",", ";", "\n"), 120),
    ("formé par", ("pourvoi ",), "demandeur", (", contre", " contre ", "\n\ncontre", ":\n"), 800),
    ("formés par", ("pourvois ",), "demandeur", ("\n\ncontre", " contre "), 800),
    (
        "opposant",
        ("litige l'", "litige l’", "litige les ", "instance les ", "instance l'"),
        "défendeur",
        ("à la cassation", "invoque", "dossier"),
        6000,
    ),
    ("posée par", ("constitutionnalité ",), "requérant", (",", " dans "), 200),
)
_APPLIES = ("formé le pourvoi", "formé un pourvoi", "est pourvu", "ont formulé une question")
_HEADINGS = ("\narrêt de la cour", "du peuple français", "l'arrêt suivant", "la cour de cassation")
_CAPTION = re.compile(
    r"(?P<appelant>APPELANTE?S?|APPELANT ?\(E/S\))|(?P<intimé>INTIM[EÉ]E?S?)|(?P<demandeur>DEMANDE(?:UR|RESSE)S?)|"
    r"(?P<défendeur>D[EÉ]FENDE(?:UR|RESSE)S?)"
    r"|(?P<intervenant>INTERVENANTE?S?)|(?P<end>COMPOSITION|D[EÉ]BATS|FAITS|EXPOS[EÉ]|D[’']AUTRE PART)"
)
_CAPTIONS = (
    "APPELANT",
    "INTIM",
    "DEMANDE",
    "DEFENDE",
    "DÉFENDE",
    "INTERVENANT",
    "COMPOSITION",
    "DEBATS",
    "DÉBATS",
    "FAITS",
    "EXPOS",
)
_MOST_ZONES = 100
_HEAD = 6000  # characters in which captions stand
_BEHIND = re.compile(
    r",? (?:(?P<candidat>candidate?)|(?P<partie_civile>partie civile)|(?P<intervenant>intervenante?)|"
    r"(?P<prévenu>prévenue?))(?!\w)"
)
_TITLE = re.compile(
    r"(?:MM?\.|Mmes?\.?|Mlles?|M|(?i:monsieur|madame|mademoiselle|messieurs|mesdames|sieurs?|dame|demoiselle|"
    r"sociétés?|s\.?a\.?r\.?l\.?|s\.?a\.?s?\.?|sci|compagnie))[ \n\u00a0]?(?![a-z])"
)


def with_roles(text: str, parties: list[Entity]) -> list[Entity]:
    """Give parties their attribute `role`, where the text tells it of one of their mentions, at all of them."""
    zones = sorted(islice(chain(_applicants(text), _captions(text), _led(text)), _MOST_ZONES))
    roles: dict[str, str] = {}
    keys = [_key(one) for one in parties]
    for one, key in zip(parties, keys, strict=True):
        if key not in roles and (role := _role_here(text, one, zones)):
            roles[key] = role
    for one, key in zip(parties, keys, strict=True):
        if key in roles:
            one["attributes"]["role"] = roles[key]
    return parties


def _key(one: Entity) -> str:
    name = _TITLE.sub("", one["extraction_text"], count=1)
    person = name != one["extraction_text"] and one["extraction_text"][:1] in "Mms"
    short = name.partition(",")[0].partition(" épouse")[0].partition(" veuve")[0]
    return (short.split() or [name])[-1].lower() if person else " ".join(name.lower().split())


def _role_here(text: str, one: Entity, zones: list[_Zone]) -> str | None:
    start = one["char_start"]
    for zone in zones:
        if zone.start <= start < zone.end:
            return zone.role
    behind = _BEHIND.match(text, one["char_end"])
    return behind.lastgroup.replace("_", " ") if behind and behind.lastgroup else None


def _led(text: str) -> Iterator[_Zone]:
    lower = lowered(text) or text
    for place in places(text, lower, ("présenté",)):
        shown = _PRESENTED.match(lower, place)
        if shown and (role := next((role for before, role in _PAPERS if lower.endswith(before, 0, place)), None)):
            by_counsel = () if shown["by"] == "ar" else (" par ",)
            yield _zone(lower, shown.end(), role, _REGISTERED + by_counsel, 400)
    for cue, before, role, signs, most in _LED:
        for start in places(text, lower, (cue,)):
            if lower.endswith(before, 0, start):
                yield _zone(lower, start + len(cue), role, signs, most)


_PRESENTED = re.compile(r"présentée?s? p(?P<by>ar|our) ")
_PAPERS = (("requête ", "requérant"), ("requêtes ", "requérant"), ("défense ", "défendeur"))
_REGISTERED = ("ladite", "lesdites", "ledit", "lesdits", "enregistr", "tendant", ";")


def _zone(lower: str, at: int, role: str, signs: tuple[str, ...], most: int) -> _Zone:
    ends = [end for sign in signs if (end := lower.find(sign, at, at + most)) >= 0]
    return _Zone(at, min([*ends, at + most]), role)


def _applicants(text: str) -> Iterator[_Zone]:
    """Yield the passages before 'a formé le pourvoi', from the decision's heading on."""
    lower = lowered(text) or text
    for end in places(text, lower, _APPLIES)[:4]:
        yield _Zone(max(lower.rfind(heading, 0, end) for heading in _HEADINGS), end, "demandeur")


def _captions(text: str) -> Iterator[_Zone]:
    """Yield what stands under each caption, or over it where the decision says 'ENTRE' first."""
    head = text[:_HEAD]
    if not any(word in head for word in _CAPTIONS[:3]):
        return
    found = [one for place in places(head, head, _CAPTIONS) if (one := _CAPTION.match(head, place))]
    if not found or found[0].lastgroup == "end":
        return
    over = head.rfind("ENTRE", 0, found[0].start())
    for i, one in enumerate(found):
        if one.lastgroup == "end":
            return
        under = found[i + 1].start() if i + 1 < len(found) else min(len(head), one.end() + 1500)
        above = found[i - 1].end() if i else over
        yield _Zone(*((above, one.start()) if over >= 0 else (one.end(), under)), one.lastgroup or "")
