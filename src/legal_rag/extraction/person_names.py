"""The grammar of persons' names in French decisions: titles, surnames, particles, names made anonymous."""

import re
from functools import lru_cache
from typing import NamedTuple

from legal_rag.legal_patterns.scanning import lowered, places

BLANK = "[ \u00a0\u202f]"
CAPITAL = "A-ZÀ-ÖØ-ÞŒ"
# "X...", "XX…", "Y***" and "[N]": what stands for a name left out; "[Localité 4]" and "[5]" are no persons.
ANONYMOUS = r"(?:[A-Z]{1,2}(?:\.{3}|\.\.(?!\.)|…|\*{2,3})|\[[A-Z]{1,3}(?:[ -][A-Z]{1,3}){0,2}\])"
_WORD = rf"[{CAPITAL}](?:[^\W\d_]|['’‑-](?=[^\W\d_])){{0,60}}"
PARTICLE = (
    rf"(?:(?:de{BLANK}la|de{BLANK}l['’]|d['’]|de|du|des|le|la|les|van{BLANK}de[nr]?|van|von|el|al|ben|bel|di|da|dos|"
    rf"del|della)"
    rf"(?:{BLANK}|(?<=['’])))"
)
_PIECE = re.compile(
    rf"{BLANK}{{0,2}}(?P<particle>{PARTICLE})?(?P<word>(?P<left_out>{ANONYMOUS})|"
    rf"(?:[A-Z]\.[ -]?){{1,3}}(?=[{CAPITAL}\[])|{_WORD})"
)
_MARRIED = re.compile(
    rf"{BLANK}?,?{BLANK}(?:(?:et{BLANK})?(?:épouse|veuve|divorcée|née|ép\.|épse|vve)|EPOUSE|ÉPOUSE|VEUVE|NEE|NÉE|"
    rf"Epouse|Veuve){BLANK}"
    rf"(?:(?:de{BLANK})?(?:M\.|Mme){BLANK})?"
)
_FIRST_NAME_BEHIND = re.compile(rf"{BLANK}\([{CAPITAL}][a-zà-ÿ]+(?:[ -][{CAPITAL}][a-zà-ÿ]+)*\)")
# Small words that names have in capitals, and which end none.
_CAPITAL_PARTICLES = frozenset(
    "DE DU DES LA LE LES D L VAN VON EL AL BEN De Du Des La Le Les Van Von El Al Ben".split()
)
# Words with a capital letter that a name is followed by, and is not made of.
NO_NAME = frozenset(
    """république republique plaidant
    attendu considérant considerant que qu qui mais sur vu et ou où a à ont est en au aux par pour dans avec
    contre il elle ce cette ces son sa ses un une alors ainsi aussi puis or donc car si ne se dit déboute
    condamne rejette confirme infirme ordonne président presidente présidente president conseiller conseillère
    conseillers conseillere greffier greffière greffiere greffiers avocat avocats avocate avoué avoués avoue
    avoues maître maîtres maitre me mes monsieur madame mademoiselle messieurs mesdames mm mme mmes mlle mr scp
    selarl selas cabinet toque appelant appelante appelants appelantes intimé intimée intimés intimées intime
    intimee intimes intimees demandeur demanderesse demandeurs défendeur défenderesse défendeurs defendeur
    defenderesse defendeurs requérant intervenant intervenante représenté représentée représentés représentant
    represente representee ayant assisté assistée assistés assiste assistee demeurant domicilié domiciliée
    domicilie né née ne nee cour tribunal chambre arrêt arret jugement ordonnance débats debats composition
    plaidant substitué substituée comparant comparante dont siège faits procédure procedure décision decision
    rue avenue boulevard chemin route article articles expert docteur dr professeur magistrat vice-président
    vice-présidente substitut procureur premier première secrétaire rapporteur juge juges adjoint ministre
    préfet maire bâtonnier doyen général caisse société compagnie défaillant défaillante non rg n° no bp cedex
    date minute grosse copie notifié signé prononcé délibéré mise profession nationalité statuant sans sous
    après avant lors selon son leur leurs nous vous je on dès comme lequel laquelle lesquels dernier dernière
    pris prise exposé audience lecture liquidateur mandataire administrateur notaire huissier d'une d'autre
    lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août
    septembre octobre novembre décembre ministère public parquet état français nom peuple république motifs""".split()
)


# Titles that begin with a capital M, and the others, which are looked for by their words.
_CAPITAL_TITLE = re.compile(
    r"M(?:M?\.|(?=[ \u00a0](?:[A-Z]\.\.|\[|[A-Z][a-z]))|(?:mes?|lles?|elles?|r)(?!\w)\.?|(?:onsieur|adame|"
    r"ademoiselle|essieurs|esdames)(?!\w)"
    r"|(?:ONSIEUR|ADAME|ADEMOISELLE|ESSIEURS|ESDAMES|LLE|ME|E|R)(?!\w)|es?(?=[ \u00a0\n])|(?:a[iî]tres?|"
    r"A[IÎ]TRES?)(?!\w))"
)
_SMALL_TITLE = re.compile(
    r"(?i:monsieur|madame|mademoiselle|messieurs|mesdames|[ée]poux|consorts|sieurs?|dames?|demoiselles?|"
    r"veuve)(?=[ \u00a0\n])"
)
_SMALL_WORDS = ("monsieur", "madame", "époux", "epoux", "consorts", "sieur", "dame ", "demoiselle", "veuve ")


@lru_cache(maxsize=8)
def titles(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the titles stand that persons' names follow, rising: 'M.', 'Maître', 'consorts'."""
    small = (_SMALL_TITLE.match(text, place) for place in places(text, lowered(text) or text, _SMALL_WORDS))
    found = {one.span() for one in (*_CAPITAL_TITLE.finditer(text), *small) if one}
    return tuple(sorted(one for one in found if not (one[0] and text[one[0] - 1].isalnum())))


class Name(NamedTuple):
    """A person's name as it stands at one place, without title."""

    end: int  # characters
    surname: (
        str  # what other mentions share: the last word, in small letters; the first one of names joined by marriage
    )
    anonymous: bool  # the surname is left out


def person_name(text: str, start: int) -> Name | None:
    """Read the person's name that stands at `start`; None if there is none."""
    name = _words(text, start, 6)
    married = _MARRIED.match(text, name.end) if name else None
    if name is None or married is None:
        return name
    other = _words(text, married.end(), 1 if married.group().isupper() else 4)
    return name._replace(end=other.end) if other else name


def _words(text: str, start: int, most: int) -> Name | None:
    """Read at most so many words of a name: first names, particles, surname."""
    at = end = start
    surname, anonymous = "", False
    for _ in range(most):
        piece = _PIECE.match(text, at) or (_NEXT_LINE.match(text, at) if surname and not anonymous else None)
        if piece is None:
            break
        word, left_out = piece["word"], piece["left_out"] is not None
        particle = word in _CAPITAL_PARTICLES or (not left_out and "." in word)  # initials, too, end no name
        if (anonymous and (piece["particle"] or not left_out)) or (word.lower() in NO_NAME and not particle):
            break
        at = piece.end()
        if not particle:
            end, surname, anonymous = at, word.lower(), left_out
    if not surname or (
        len(surname) == 1 and "." in text[start : end + (text[start - 1 : start] == ".")]
    ):  # "M.F.B": initials, of no one that one knows
        return None
    return Name(_with_first_name(text, end) if anonymous else end, surname, anonymous)


def _with_first_name(text: str, end: int) -> int:
    behind = _FIRST_NAME_AFTER.match(text, end)
    return behind.end("first") if behind and behind["first"].lower() not in NO_NAME else end


# A name left out that the next line goes on with, and a first name behind one: "Monsieur Jean\nX...", "Y... Philippe".
_NEXT_LINE = re.compile(rf"\n{{1,2}}(?P<particle>(?!))?(?P<word>(?P<left_out>{ANONYMOUS}))")
_FIRST_NAME_AFTER = re.compile(
    rf"{BLANK}(?P<first>[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)?)(?=,| demeurant| né| domicil)"
)


def first_name_behind(text: str, end: int) -> int:
    """Return where a name ends that is followed by a first name in brackets, as in 'Durand (Gabriel)'."""
    found = _FIRST_NAME_BEHIND.match(text, end)
    return found.end() if found else end
