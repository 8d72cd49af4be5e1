"""Parties of a decision and their counsel: every mention by name, with roles and clients."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from legal_rag.base.text import Span
from legal_rag.extraction.entities import AVOCAT, PARTIE, Entity, rule_entity
from legal_rag.extraction.names import (
    BLANK,
    CAPITAL,
    LEAD,
    LEAD_CAPITALS,
    LISTS,
    NO_NAME,
    PARTICLE,
    PLURAL_OFFICE,
    bench,
    first_sign,
    has_office,
    office_behind,
    organisation_names,
    person_name,
    titles,
    untitled_names,
)
from legal_rag.law.scanning import lowered, positions

_BODY = (
    r"(?:soci[ée]t[ée]s?|association|syndicat|caisse|mutuelle|compagnie|f[ée]d[ée]ration|union|conf[ée]d[ée]ration|"
    r"comit[ée]|commune|ville|fondation|fonds|groupement|coop[ée]rative|office|institut|département|région|agence|"
    r"ordre|établissement|banque|clinique|centre|cpam|collectivité|métropole|communauté|ligue|section|mutualité)"
)
# Particulars that follow a party's full name.
_PARTICULARS = re.compile(
    ", (?:dont le|domicili|soci[ée]té|syndicat|association|ayant|pris|représent|venant|demeurant|établissement|"
    "agissant|anciennement|union|groupement|exerçant|aux droits|défend)"
)
_NAME_CUES = ("opposant ", "formé", "droits d", "présentée par ", "avocat")
_INNER_CUES = ("opposant ", "formé par ", "formée par ", "présentée par ", "droits ")
_MAX_NAMES = 100  # searched in the whole text
_REACH = 220  # characters of a name and its introduction
_LEADING = re.compile(
    r"[ \u00a0]*(?:[-–] )?(?:(?P<number>\d+°?[/)]|\d+°) ?)?"
    r"(?:(?:à|aux?|de|du|des|par|contre) ?)?(?:l['’]|[Ll]a |[Ll]es? |L['’]|d['’])?"
)
_NAME = re.compile(rf"(?:{_BODY} |[A-ZÀ-Þ\[])[^;\n()]{{1,150}}")
_BRACKETED = re.compile(r" ?\([^()\n]{1,60}\)$")
_OF = re.compile(
    r"(?:opposant|formée?s? par|droits|présentée par|avocats?) (?:(?:à|aux?|de|du|des|d['’]|par) ?)?(?:l['’]|[Ll]a |"
    r"[Ll]es? )?"
)
_MORE = re.compile(
    rf" venant | et (?:l['’]avis|(?:de |du |des |d['’]|à |aux? |la |l['’]|les? ){{1,2}}(?:{_BODY}|MM?\.|M(?:me|lle)|"
    rf"[A-Z]))"
    r"| ayant | pris(?:e|es)? en | représenté| dont | sis | demeurant| avocat| C ?/ | à (?=[a-zé]+(?:er|ir|"
    r"re)(?!\w))| et (?:l[ae]s?|l['’]|à|au) ?(?=[a-z])| demand|(?<=\]) (?=[a-zé])| à (?:la|l['’]|le|ce|son|sa|ses|"
    r"leur|un)(?!\w)| en (?:cause|date|paiement)| poursuites"
)
_FORMS = frozenset("sci sarl sas sa ues société sur eurl snc gie scp".split())
_NO_PARTY = re.compile(
    r"(?i:^(?:appelant|intim|intervenant|demande|défende|volontaire|incident)|^(?:et|sur|fait|dit|vu|que|attendu|en|il|"
    r"elle|le|les|condamne|déboute|statuant|par|considérant) |^ues\b|pourvoi|\bmoyens?\b|requête| contre | et M\.|"
    r" le conseil\b|plaidant|^soci[ée]t[ée] (?:anonyme|civile|compagnie)$|élection|procureur|ministre|préfet|directeur|"
    r"président|avocat|\bcour\b|tribunal|ministère|conseil constitutionnel|commission nationale des comptes|barreau|"
    r"^article|^arrêt|chambre (?:sociale|civile|commerciale|criminelle)|république|assemblée nationale|"
    r"journal officiel|^conseil d['’]|^chambre$|^[ée]tat$|agent judiciaire|lecture|^français|^droit)"
)
_TITLED = re.compile(r"(?:MM?\.|Mmes?|Mlle|Monsieur|Madame|Me|Maître|SCP)(?!\w)|(?:MADAME|MONSIEUR) ")
_ALIAS = re.compile(
    r"\((?:la |le |l['’]|les |ci-après |ci-après dénommée? |dite? |"
    r"devenue? ){1,3}[\"«“]?[ \u00a0]?(?P<alias>[A-Z][\w.' -]{1,40}?)[ \u00a0]?[\"»”]?\)"
)
_CAPTION = re.compile(
    r"(?:APPELANT|INTIM[EÉ]|DEMANDE|D[EÉ]FENDE|INTERVENANT)[A-ZÉ]{0,9}(?: ?\([EeSs/]{1,4}\))?(?: INCIDENTE?S?|"
    r" PRINCIPALE?S?)?[ :\n]{1,4}(?P<name>(?:L[AE]S? )?(?:[A-ZÉÈ][A-ZÉÈ'&.-]{2,30} ){0,8}[A-ZÉÈ][A-ZÉÈ'&.-]{1,30})"
    r"(?= ?[\n,]| prise?\b| \d| repr[ée]s)"
)
_CAPTIONS = ("APPELANT", "INTIM", "DEMANDE", "DEFENDE", "DÉFENDE", "INTERVENANT")
_LITIGATION = ("litige l'", "litige l’", "litige les ", "instance les ", "instance l'")
# Cues of a role: required text before them, role, signs that end the passage, its maximum length in characters.
_ROLE_CUES: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...], int], ...] = (
    ("la situation de", ("de ", "à "), "candidat", (",", ";", "\n"), 120),
    ("formé par", ("pourvoi ",), "demandeur", (", contre", " contre ", "\n\ncontre", ":\n"), 800),
    ("formés par", ("pourvois ",), "demandeur", ("\n\ncontre", " contre "), 800),
    ("opposant", _LITIGATION, "défendeur", ("à la cassation", "invoque", "dossier"), 6000),
    ("posée par", ("constitutionnalité ",), "requérant", (",", " dans "), 200),
)
_APPLIES = ("formé le pourvoi", "formé un pourvoi", "est pourvu", "ont formulé une question")
_HEADINGS = ("\narrêt de la cour", "du peuple français", "l'arrêt suivant", "la cour de cassation")
_CAPTION_ROLE = re.compile(
    r"(?P<appelant>APPELANTE?S?|APPELANT ?\(E/S\))|(?P<intimé>INTIM[EÉ]E?S?)|(?P<demandeur>DEMANDE(?:UR|RESSE)S?)|"
    r"(?P<défendeur>D[EÉ]FENDE(?:UR|RESSE)S?)"
    r"|(?P<intervenant>INTERVENANTE?S?)|(?P<end>COMPOSITION|D[EÉ]BATS|FAITS|EXPOS[EÉ]|D[’']AUTRE PART)"
)
_CAPTIONS_AND_ENDS = (*_CAPTIONS, "COMPOSITION", "DEBATS", "DÉBATS", "FAITS", "EXPOS")
_MAX_ZONES = 100
_HEAD = 6000  # characters that may hold captions
_BEHIND = re.compile(
    r",? (?:(?P<candidat>candidate?)|(?P<partie_civile>partie civile)|(?P<intervenant>intervenante?)|"
    r"(?P<prévenu>prévenue?))(?!\w)"
)
_TITLE = re.compile(
    r"(?:MM?\.|Mmes?\.?|Mlles?|M|(?i:monsieur|madame|mademoiselle|messieurs|mesdames|sieurs?|dame|demoiselle|"
    r"sociétés?|s\.?a\.?r\.?l\.?|s\.?a\.?s?\.?|sci|compagnie))[ \n\u00a0]?(?![a-z])"
)
_PRESENTED = re.compile(r"présentée?s? p(?P<by>ar|our) ")
_PAPERS = (("requête ", "requérant"), ("requêtes ", "requérant"), ("défense ", "défendeur"))
_REGISTERED = ("ladite", "lesdites", "ledit", "lesdits", "enregistr", "tendant", ";")
_SEVERAL = frozenset("mm. mmes messieurs mesdames sieurs époux consorts mlles".split())
_AND = re.compile(
    rf"{BLANK}?(?:,{BLANK}?(?:et{BLANK})?|{BLANK}(?:et|ET|ou){BLANK})(?!M\.|M[lm])(?:d['’]|de{BLANK})?(?=[{CAPITAL}\[])"
)
_FORM_ALONE = re.compile(r"soci[ée]t[ée]\s(?:anonyme|civile|compagnie)", re.IGNORECASE)  # a legal form, not a name
_NEXT = re.compile(r"\s*,?\s*(?:et )?")
_LEGISLATORS = re.compile(r",? (?:députés|sénateurs)\b")
_ESTATE = re.compile(
    r"(?i:liquidat|mandataire|administrat(?:eur|rice)|curateur|syndic\b|représentant des créanciers|commissaire à l)"
)
_FIRST_NAME_BEHIND = re.compile(rf"{BLANK}\([{CAPITAL}][a-zà-ÿ]+(?:[ -][{CAPITAL}][a-zà-ÿ]+)*\)")
_WIDOW = re.compile(rf"{BLANK}(?:veuve|Veuve|VEUVE|épouse)(?!\w)")
_CAPITALS = re.compile(r"[A-Z][A-Z.]+")  # candidates for a legal form
# Law firms and Maîtres are counsel unless the context gives them another office; other firms and persons only if it
# calls them counsel.
_COUNSEL_LEAD = re.compile(
    r"(?P<firm>S\.?C\.?P(?:\.|(?!\w))A?|AARPI(?!\w)|ASSOCIATION D['’]AVOCATS)"
    r"|(?P<other>SELA(?:RL|FA|S)U?(?!\w)|S\.?E\.?L\.?A\.?R\.?L(?:\.|(?!\w))|SARL(?!\w)|S\.A\.R\.L\.|SAS(?!\w)|"
    r"CABINET(?!\w)|Cabinet(?!\w))"
)
_FIRM_WORDS = "scp|s.c.p|aarpi|association d|selarl|selaf|selas|s.e.l.a.r.l|SARL|S.A.R.L|SAS |cabinet ".split("|")
_MASTERS = frozenset(("me", "mes", "maître", "maîtres", "maitre", "maitres"))
_SEVERAL_COUNSEL = frozenset(("mes", "maîtres", "maitres", "mm.", "mmes"))
_FIRM_WORD = re.compile(
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
_AND_COUNSEL = re.compile(rf"{BLANK}?(?:,|et|ET|&){BLANK}(?:et{BLANK})?(?=[{CAPITAL}])")
_AT_A_BAR = re.compile(rf"{BLANK}(?:au|à|aux|du|inscrit|postulant|plaidant)\b")


class _Mention(NamedTuple):
    """A name that may be a party's."""

    start: int  # characters
    end: int
    key: str  # shared by a person's mentions; empty for an anonymised surname
    official: bool  # the context makes it a judge's, an expert's or the like


class _RoleZone(NamedTuple):
    start: int
    end: int
    role: str


def find_parties(text: str, counsel: Sequence[Entity]) -> list[Entity]:
    """Find the mentions of parties by name, with `role` where the text gives it, outside the spans of `counsel`."""
    taken = [(entity["char_start"], entity["char_end"]) for entity in counsel]
    members = bench(text)
    persons = _with_colleagues(text, list(_persons(text, members)))
    lawyers = {
        entity["extraction_text"].split()[-1].lower() for entity in counsel if entity["extraction_text"].startswith("M")
    }
    officials = {person.key for person in persons if person.official and person.key} | lawyers
    kept = [(person.start, person.end) for person in persons if not person.official and person.key not in officials]
    kept += _organisations(text)
    kept += untitled_names(text)
    kept += _occurrences(text, _defined_names(text))
    kept = [span for span in kept if not _begins_within(span, members) and not _FORM_ALONE.fullmatch(text, *span)]
    kept = _outermost(kept, taken)
    return _with_roles(text, [rule_entity(PARTIE, text, *span) for span in kept])


def _defined_names(text: str) -> list[str]:
    """Collect the full names of bodies introduced as parties, and the short names defined for them."""
    lower = lowered(text) or text
    whole = (_MORE.split(name)[0].strip() for name in chain(_detailed_names(text), _names_after_cues(text, lower)))
    names = (name for name in chain(whole, _captioned_names(text), _aliases(text, lower)) if _may_be_name(name))
    return list(islice(dict.fromkeys(islice(names, 10 * _MAX_NAMES)), _MAX_NAMES))


def _captioned_names(text: str) -> Iterator[str]:
    if any(word in text for word in _CAPTIONS[:3]):
        captions = (_CAPTION.match(text, place) for place in positions(text, text, _CAPTIONS))
        yield from (caption["name"] for caption in captions if caption)


def _aliases(text: str, lower: str) -> Iterator[str]:
    aliases = (_ALIAS.match(text, place) for place in positions(text, lower, ("(l", "(ci-", "(dit", "(devenu")))
    yield from (alias["alias"] for alias in aliases if alias and " et " not in alias["alias"])


def _detailed_names(text: str) -> Iterator[str]:
    """Yield the names before particulars such as ', dont le siège': "2°/ à la société Y"."""
    for place in (match.start() for match in _PARTICULARS.finditer(text)):
        line = text[max(0, place - _REACH) : place]
        line = _BRACKETED.sub("", line[max(line.rfind("\n"), line.rfind(";")) + 1 :].rstrip(","))
        leading = _LEADING.match(line)
        start = max(
            [leading.end() if leading else 0, *(at.end() for word in _INNER_CUES if (at := _last_cue(line, word)))]
        )
        name = _NAME.fullmatch(line, start)
        if name and ("," not in name.group() or (leading and leading["number"])):
            yield _PARTICULARS.split(name.group())[0]


def _last_cue(line: str, word: str) -> re.Match[str] | None:
    """Match the last occurrence of a word in a line, with the article after it."""
    at = line.rfind(word)
    return _LEADING.match(line, at + len(word)) if at >= 0 else None


def _names_after_cues(text: str, lower: str) -> Iterator[str]:
    """Yield the names between 'avocat de' or another cue and the next comma."""
    for place in positions(text, lower, _NAME_CUES):
        of = _OF.match(text, place)
        name = _NAME.match(text, of.end()) if of else None
        end = text[name.end() : name.end() + 1] if name else ""
        if name and ("," in name.group() or end == "("):
            yield name.group().partition(",")[0]


def _may_be_name(name: str) -> bool:
    peculiar = " " in name or name[1:] != name[1:].lower() or name[:1] == "["
    if "... " in name or name.endswith((" DE", " DES", " DU", " LA", " ET", " de", " des", " du", " la", " et")):
        return False
    known = len(name) > 2 and peculiar and name.lower() not in _FORMS
    return known and not _NO_PARTY.search(name) and not _TITLED.match(name)


def _with_roles(text: str, parties: list[Entity]) -> list[Entity]:
    """Give all mentions of a party the `role` that the context of one of them states."""
    zones = sorted(islice(chain(_applicant_zones(text), _caption_zones(text), _zones_after_cues(text)), _MAX_ZONES))
    roles: dict[str, str] = {}
    keyed = [(_party_key(party), party) for party in parties]
    for key, party in keyed:
        if key not in roles and (role := _role_here(text, party, zones)):
            roles[key] = role
    for key, party in keyed:
        if key in roles:
            party["attributes"]["role"] = roles[key]
    return parties


def _party_key(party: Entity) -> str:
    name = _TITLE.sub("", party["extraction_text"], count=1)
    person = name != party["extraction_text"] and party["extraction_text"][:1] in "Mms"
    short = name.partition(",")[0].partition(" épouse")[0].partition(" veuve")[0]
    return (short.split() or [name])[-1].lower() if person else " ".join(name.lower().split())


def _role_here(text: str, party: Entity, zones: list[_RoleZone]) -> str | None:
    for zone in zones:
        if zone.start <= party["char_start"] < zone.end:
            return zone.role
    behind = _BEHIND.match(text, party["char_end"])
    return behind.lastgroup.replace("_", " ") if behind and behind.lastgroup else None


def _zones_after_cues(text: str) -> Iterator[_RoleZone]:
    lower = lowered(text) or text
    for place in positions(text, lower, ("présenté",)):
        shown = _PRESENTED.match(lower, place)
        if shown and (role := next((role for before, role in _PAPERS if lower.endswith(before, 0, place)), None)):
            by_counsel = () if shown["by"] == "ar" else (" par ",)
            end = first_sign(lower, _REGISTERED + by_counsel, shown.end(), shown.end() + 400)
            yield _RoleZone(shown.end(), end, role)
    for cue, before, role, signs, most in _ROLE_CUES:
        for at in (place + len(cue) for place in positions(text, lower, (cue,)) if lower.endswith(before, 0, place)):
            yield _RoleZone(at, first_sign(lower, signs, at, at + most), role)


def _applicant_zones(text: str) -> Iterator[_RoleZone]:
    """Yield the passages from the decision's heading to 'a formé le pourvoi'."""
    lower = lowered(text) or text
    for end in positions(text, lower, _APPLIES)[:4]:
        yield _RoleZone(max(lower.rfind(heading, 0, end) for heading in _HEADINGS), end, "demandeur")


def _caption_zones(text: str) -> Iterator[_RoleZone]:
    """Yield the passage below each caption, or above it where 'ENTRE' precedes the first."""
    head = text[:_HEAD]
    if not any(word in head for word in _CAPTIONS[:3]):
        return
    cues = [match for place in positions(head, head, _CAPTIONS_AND_ENDS) if (match := _CAPTION_ROLE.match(head, place))]
    if not cues or cues[0].lastgroup == "end":
        return
    over = head.rfind("ENTRE", 0, cues[0].start())
    for i, match in enumerate(cues):
        if match.lastgroup == "end":
            return
        under = cues[i + 1].start() if i + 1 < len(cues) else min(len(head), match.end() + 1500)
        above = cues[i - 1].end() if i else over
        yield _RoleZone(*((above, match.start()) if over >= 0 else (match.end(), under)), match.lastgroup or "")


def _persons(text: str, members: list[Span]) -> Iterator[_Mention]:
    """Yield the persons with a title, each person of an enumeration separately."""
    done = 0
    for start, at in titles(text):
        if start < done:
            continue
        title = text[start:at].strip().lower()
        group = list(_listed_names(text, start, at, _AND if title in _SEVERAL else None))
        if not group:
            continue
        done = group[-1][1]
        if len(group) > 9 and _LEGISLATORS.match(text, done):
            continue
        official = _begins_within((start, done), members) or _has_office(text, title, start, done)
        for begin, end, key in group:
            yield _Mention(begin, end, key, official or (end < done and office_behind(text, end)))


def _with_colleagues(text: str, persons: list[_Mention]) -> list[_Mention]:
    """Extend a plural office ('conseillers') to the names enumerated before it."""
    for i in range(len(persons) - 1, 0, -1):
        person, before = persons[i], persons[i - 1]
        together = person.start - before.end < 8 and _NEXT.fullmatch(text, before.end, person.start)
        if together and person.official and not before.official and PLURAL_OFFICE.match(text, person.end):
            persons[i - 1] = before._replace(official=True)
    return persons


def _has_office(text: str, title: str, start: int, end: int) -> bool:
    """Tell whether a name is an official's; a Maître is a party only as a debtor's proxy, such as a liquidator."""
    if title in ("me", "maître", "maitre"):
        is_proxy = _ESTATE.search(text, end, end + 70) or _ESTATE.search(text, max(0, start - 90), start)
        return not is_proxy or has_office(text, start, end)
    return has_office(text, start, end)


def _listed_names(text: str, start: int, at: int, joint_of: re.Pattern[str] | None) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and key of the names after a title, several if they are joined; the first includes the title."""
    while True:
        at += text[at : at + 1] == "\n"
        widow = _WIDOW.match(text, at)
        name = person_name(text, widow.end() if widow else at)
        if name is None:
            return
        first_name = _FIRST_NAME_BEHIND.match(text, name.end)  # "Durand (Gabriel)"
        end = first_name.end() if first_name else name.end
        yield start, end, "" if name.anonymous else name.surname
        joint = joint_of.match(text, end) if joint_of else None
        if joint is None:
            return
        start = at = joint.end()


def _organisations(text: str) -> Iterator[Span]:
    """Yield organisations recognised by a legal form, a noun such as 'société', or a known name."""
    done = 0
    for lead in _organisation_leads(text):
        if lead.start() >= done:
            for span in organisation_names(text, lead):
                done = span[1]
                if (text[span[0] - 1 : span[0]], text[done : done + 1]) != ("(", ")"):
                    yield span


def _organisation_leads(text: str) -> Iterator[re.Match[str]]:
    at = {match.start() for match in _CAPITALS.finditer(text) if match.group()[:2] in LEAD_CAPITALS}
    at.update(positions(text, lowered(text) or text, LISTS["noun_stems"]))
    before = (place for place in sorted(at) if not (place and (text[place - 1].isalnum() or text[place - 1] == "-")))
    return (lead for place in before if (lead := LEAD.match(text, place)))


def _occurrences(text: str, names: Iterable[str]) -> Iterator[Span]:
    for name in names:
        at = text.find(name)
        while at >= 0:
            end = at + len(name)
            before, after = text[at - 1 : at], text[end : end + 1]
            if not before.isalnum() and before != "-" and not after.isalnum() and (before, after) != ("(", ")"):
                yield at, end
            at = text.find(name, end)


def _begins_within(span: Span, passages: list[Span]) -> bool:
    """Tell whether a span starts in one of the passages, which are sorted and disjoint."""
    at = bisect_right(passages, span[0], key=lambda passage: passage[0]) - 1
    return at >= 0 and span[0] < passages[at][1]


def _outermost(spans: Iterable[Span], taken: Sequence[Span]) -> list[Span]:
    """Drop spans that overlap a longer or a taken one."""
    kept, last = [], -1
    marks = [(start, -end, False) for start, end in taken] + [(start, -end, True) for start, end in set(spans)]
    for start, negative_end, ours in sorted(marks):
        if start >= last:
            last = -negative_end
            if ours:
                kept.append((start, last))
    return kept


class _Lead(NamedTuple):
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
    leads = [
        _Lead(*match.span(), match.lastgroup or "") for place in starts if (match := _COUNSEL_LEAD.match(text, place))
    ]
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
    several = text[start:at].lower() in _SEVERAL_COUNSEL
    for begin, end, _ in _listed_names(text, start, at, _AND_COUNSEL if several else None):
        yield begin, end


def _firm_end(text: str, at: int) -> int | None:
    end = None
    for _ in range(16):
        piece = _FIRM_WORD.match(text, at)
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
