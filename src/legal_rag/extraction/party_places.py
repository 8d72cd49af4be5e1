"""The places in a French decision where parties are named in full: captions, enumerations, 'avocat de'.

In: text. Out: names of bodies that may then be looked for in the whole text.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice

from legal_rag.legal_patterns.scanning import lowered, places

_BODY = (
    r"(?:soci[ée]t[ée]s?|association|syndicat|caisse|mutuelle|compagnie|f[ée]d[ée]ration|union|conf[ée]d[ée]ration|"
    r"comit[ée]|commune|ville|"
    r"fondation|fonds|groupement|coop[ée]rative|office|institut|département|région|agence|ordre|établissement|banque|"
    r"clinique|centre|"
    r"cpam|collectivité|métropole|communauté|ligue|section|mutualité)"
)
# What follows a party's full name.
_FOLLOWED = re.compile(
    ", (?:dont le|domicili|soci[ée]té|syndicat|association|ayant|pris|représent|venant|demeurant|établissement|"
    "agissant|anciennement|union|groupement|"
    "exerçant|aux droits|défend)"
)
_LED = ("opposant ", "formé", "droits d", "présentée par ", "avocat")
_WITHIN = ("opposant ", "formé par ", "formée par ", "présentée par ", "droits ")
MOST_NAMES = 100  # that are looked for in the whole text
_REACH = 220  # characters of a name with what leads to it
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
    r"(?i:^(?:appelant|intim|intervenant|demande|défende|volontaire|incident)|^(?:et|sur|fait|dit|vu|que|attendu|en|"
    r"il|elle|le|les|condamne|déboute|statuant|par|considérant) |^ues\b|"
    r"pourvoi|\bmoyens?\b|requête| contre | et M\.| le conseil\b|plaidant|^soci[ée]t[ée] (?:anonyme|civile|compagnie)$|"
    r"élection|procureur|ministre|préfet|directeur|président|avocat|\bcour\b|tribunal|ministère|"
    r"conseil constitutionnel|commission nationale des comptes|"
    r"barreau|^article|^arrêt|chambre (?:sociale|civile|commerciale|criminelle)|république|assemblée nationale|"
    r"journal officiel|^conseil d['’]|"
    r"^chambre$|^[ée]tat$|agent judiciaire|lecture|^français|^droit)"
)
_TITLED = re.compile(r"(?:MM?\.|Mmes?|Mlle|Monsieur|Madame|Me|Maître|SCP)(?!\w)|(?:MADAME|MONSIEUR) ")
_ALIAS = re.compile(
    r"\((?:la |le |l['’]|les |ci-après |ci-après dénommée? |dite? |"
    r"devenue? ){1,3}[\"«“]?[ \u00a0]?(?P<alias>[A-Z][\w.' -]{1,40}?)[ \u00a0]?[\"»”]?\)"
)
_CAPTION = re.compile(
    r"(?:APPELANT|INTIM[EÉ]|DEMANDE|D[EÉ]FENDE|INTERVENANT)[A-ZÉ]{0,9}(?: ?\([EeSs/]{1,4}\))?(?: INCIDENTE?S?|"
    r" PRINCIPALE?S?)?[ :\n]{1,4}"
    r"(?P<name>(?:L[AE]S? )?(?:[A-ZÉÈ][A-ZÉÈ'&.-]{2,30} ){0,8}[A-ZÉÈ][A-ZÉÈ'&.-]{1,30})(?= ?[\n,]| prise?\b| \d|"
    r" repr[ée]s)"
)
_CAPTION_WORDS = ("APPELANT", "INTIM", "DEMANDE", "DEFENDE", "DÉFENDE", "INTERVENANT")


def learned_names(text: str) -> list[str]:
    """Return names of bodies as a party's place gives them in full, and short ones that the text says stand for them.

    They stand in the order in which they were found, at most `MOST_NAMES` of them.
    """
    lower = lowered(text) or text
    whole = (_MORE.split(name)[0].strip() for name in chain(_followed(text), _led(text, lower)))
    names = (name for name in chain(whole, _captions(text), _aliases(text, lower)) if _may_be_name(name))
    return list(islice(dict.fromkeys(islice(names, 10 * MOST_NAMES)), MOST_NAMES))


def _captions(text: str) -> Iterator[str]:
    if any(word in text for word in _CAPTION_WORDS[:3]):
        captions = (_CAPTION.match(text, place) for place in places(text, text, _CAPTION_WORDS))
        yield from (caption["name"] for caption in captions if caption)


def _aliases(text: str, lower: str) -> Iterator[str]:
    aliases = (_ALIAS.match(text, place) for place in places(text, lower, ("(l", "(ci-", "(dit", "(devenu")))
    yield from (alias["alias"] for alias in aliases if alias and " et " not in alias["alias"])


def _followed(text: str) -> Iterator[str]:
    """Yield what stands before ', dont le siège' and the like: "2°/ à la société Y"."""
    for place in (match.start() for match in _FOLLOWED.finditer(text)):
        line = text[max(0, place - _REACH) : place]
        line = _BRACKETED.sub("", line[max(line.rfind("\n"), line.rfind(";")) + 1 :].rstrip(","))
        leading = _LEADING.match(line)
        start = max([leading.end() if leading else 0, *(at.end() for word in _WITHIN if (at := _last(line, word)))])
        name = _NAME.fullmatch(line, start)
        if name and ("," not in name.group() or (leading and leading["number"])):
            yield _FOLLOWED.split(name.group())[0]


def _last(line: str, word: str) -> re.Match[str] | None:
    """Return the last such word of a line, with the article that may stand behind it."""
    at = line.rfind(word)
    return _LEADING.match(line, at + len(word)) if at >= 0 else None


def _led(text: str, lower: str) -> Iterator[str]:
    """Yield what stands between 'avocat de' and the next comma, and the like."""
    for place in places(text, lower, _LED):
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
