"""Names of natural persons, and the offices that set judges, clerks and experts apart from parties."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from legal_rag.corpus.cleaning import read_words
from legal_rag.corpus.patterns.scanning import lowered, positions

BLANK = "[ \u00a0\u202f]"
CAPITAL = "A-ZÀ-ÖØ-ÞŒ"
# "X...", "XX…", "Y***" and "[N]": what stands for a name left out; "[Localité 4]" and "[5]" are no persons.
ANONYMOUS = r"(?:[A-Z]{1,2}(?:\.{3}|\.\.(?!\.)|…|\*{2,3})|\[[A-Z]{1,3}(?:[ -][A-Z]{1,3}){0,2}\])"
_WORD = rf"[{CAPITAL}](?:[^\W\d_]|['’‑-](?=[^\W\d_])){{0,60}}"
PARTICLE = (
    rf"(?:(?:de{BLANK}la|de{BLANK}l['’]|d['’]|de|du|des|le|la|les|van{BLANK}de[nr]?|van|von|el|al|ben|bel|di|da|dos|"
    rf"del|della)(?:{BLANK}|(?<=['’])))"
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
LISTS = read_words("legal_rag.extraction.rules")
_CAPITAL_PARTICLES, NO_NAME = frozenset(LISTS["capital_particles"]), frozenset(LISTS["no_name"])
# Titles that begin with a capital M, and the others, found by their words.
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
# A name left out that the next line goes on with, and a first name behind one: "Monsieur Jean\nX...", "Y... Philippe".
_NEXT_LINE = re.compile(rf"\n{{1,2}}(?P<particle>(?!))?(?P<word>(?P<left_out>{ANONYMOUS}))")
_FIRST_NAME_AFTER = re.compile(
    rf"{BLANK}(?P<first>[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)?)(?=,| demeurant| né| domicil)"
)
# Passages that name the members of the court: cue, signs that end it, most characters.
_BENCH: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("siégeai", ("\n\n", "ecli"), 1500),
    ("étaient présent", ("\n", " ; ", "sur le rapport", "les observations"), 1500),
    ("était présent", ("\n", " ; ", "sur le rapport"), 300),
    ("délibéré par", ("\n\n",), 600),
    ("en présence de m", (",", ";", "\n", "."), 100),
    ("rédacteur :", (), 10_000),
    ("rapporteur : m", ("\n", "avocat :", "avocats :", ";"), 200),
    ("avocat général : m", ("\n", "avocats", ";"), 200),
    ("président : m", ("\n", ";"), 200),
    ("ont signé", ("\n", ". "), 200),
    ("a signé la minute", ("\n\n",), 200),
    ("cour composée", ("\n\n\n", "délibéré", "arrêt", "ayant pour", "appelant", "demande", "faits"), 500),
    ("cassation, composée", ("\n",), 1500),
    ("composée lors", ("\n\n",), 500),
    (
        "composition de la cour",
        ("\n\n\n", "délibéré.", "délibéré con", "ont délibéré", "faits", "exposé", "appelant", "attendu", "consid"),
        500,
    ),
    ("composition du tribunal", ("\n\n\n", "faits", "exposé", "appelant", "attendu"), 500),
    ("composition lors", ("\n\n\n", "faits", "exposé"), 500),
)
_OFFICES = (
    r"(?:(?:premi|prés|Prem|Pr[ée]s|PR[ÉE]S|vice|Vice|VICE)[\w-]*\s?(?:pr[ée]s\w+)?|[Cc]onseill\w+(?! (?:génér|région|"
    r"munic|départ|territ|techn|commun|comm))|CONSEILL\w+|[Gg]reffi\w+|GREFFI\w+|[Ss]ubstitut\w*|[Pp]rocureur\w*|"
    r"(?:[Pp]remier )?[Aa]vocate?s?[- ][Gg]énéra\w+|[Jj]uges?\b(?! de)|[Mm]agistrat\w*|[Rr]apporteur\w*|[Aa]uditeur\w*|"
    r"[Aa]djoint\w* administrati\w+|[Ff]aisant fonction|f\.f\.|[Ee]xperts?\b(?! ?-?comptable)|[Nn]otaires?\b|"
    r"[Hh]uissiers?\b|[Cc]ommissaire(?:s|-priseur)|[Mm]édecins?\b(?! généraliste)|[Dd]octeur|[Pp]rofesseur|"
    r"[Ss]ecrétaire[ -][Gg]reff|[Pp]sychiatre|[Dd]oyen|[Aa]gent de police|[Gg]ardien de la paix|[Oo]fficier de police|"
    r"[Ii]nspecteur|[Bb]rigadier|[Gg]éomètre|[Ss]apiteur|[Aa]ttachée?\b de justice|[Vv]ice-procureur|"
    r"désignés? par le juge|désignés? en qualité)"
)
_AFTER = re.compile(
    rf"[\s,:(–-]{{0,4}}(?:(?:(?:le|la|son|sa|qui|désignée?|nommée?|en qualité d[e'’])|l['’]|Mme|"
    rf"M\.)\s?){{0,2}}{_OFFICES}(?P<of>[^,;\n]{{0,30}})"
)
_OF_A_BODY = re.compile(
    r"\s*(?:directeur|d[eu](?:s|\s?la|\s?l['’])?\s(?:la\s|l['’])?(?:soci|assoc|conseil d|conseil g|conseil r|syndic|"
    r"commission|comité|sarl|SA|bureau|groupe|fédé|union|directoire|mutuelle|caisse))"
)
_JOINING = re.compile(
    r"(?: (?:lors des débats|de chambre|judiciaire|en chef|cheff?|placée?|de justice|audiencier|général|doyen|"
    r"référendaire|le|la|et par|et|faisant fonction|associée?))*[\s,:–-]{0,4}$"
)
# An office of several persons, behind the last of them.
PLURAL_OFFICE = re.compile(
    r"[\s,:(–-]{0,4}(?:[Cc]onseill[eè]re?s|[Jj]uges|[Pp]résidents|[Gg]reffiers|[Ee]xperts|[Mm]agistrats|"
    r"[Aa]ssesseurs|CONSEILLERS|[Dd]octeurs|[Mm]édecins|[Nn]otaires)\b"
)
_NAMES = re.compile(rf"{ANONYMOUS}(?:[ -]{ANONYMOUS}){{0,2}}")
_FIRST_NAMES = re.compile(rf"(?:(?<![\w.-])[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)*{BLANK}){{1,3}}$")
_REACH = 50  # characters of first names
# Words before a name within a sentence; at its beginning, letters with dots may stand for anything.
_WITHIN_SENTENCE = re.compile(
    r"(?:\b(?:à|que|qu['’]|de|d['’]|et|par|contre|pour|dont|si|entre|chez|lequel|avec|ou|envers|donc|où|dame|MM\.|"
    r"époux),? ?|[a-zé]{3,} )$"
)
_OFFICE_BEFORE = re.compile(r"(?:octeurs?|Dr\.?|xperts?|rofesseur|OCTEUR|XPERT) $")
# Captions set the parties against each other by 'C/'.
_AGAINST = re.compile(r"(?<!\w)[Cc] ?/")
_ALONE = re.compile(r"\s{0,4}(?:\n|[Cc] ?/)")


@lru_cache(maxsize=8)
def titles(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the titles of persons, sorted: 'M.', 'Maître', 'consorts'."""
    small = (_SMALL_TITLE.match(text, place) for place in positions(text, lowered(text) or text, _SMALL_WORDS))
    found = {one.span() for one in (*_CAPITAL_TITLE.finditer(text), *small) if one}
    return tuple(sorted(one for one in found if not (one[0] and text[one[0] - 1].isalnum())))


class Name(NamedTuple):
    """A person's name, without title."""

    end: int  # characters
    surname: str  # in lower case; the first of names joined by marriage
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
    initials = len(surname) == 1 and "." in text[start : end + (text[start - 1 : start] == ".")]  # "M.F.B"
    if not surname or initials:
        return None
    return Name(_with_first_name(text, end) if anonymous else end, surname, anonymous)


def _with_first_name(text: str, end: int) -> int:
    behind = _FIRST_NAME_AFTER.match(text, end)
    return behind.end("first") if behind and behind["first"].lower() not in NO_NAME else end


def first_sign(lower: str, signs: Iterable[str], start: int, end: int) -> int:
    """Return where the first of some signs stands between two places; `end` where none does."""
    return min((at for sign in signs if (at := lower.find(sign, start, end)) >= 0), default=end)


def bench(text: str) -> list[tuple[int, int]]:
    """Return the passages that name the court's own members, sorted and disjoint."""
    lower = lowered(text) or text
    found = []
    for cue, signs, most in _BENCH:
        for start in positions(text, lower, (cue,)):
            found.append((start, first_sign(lower, signs, start + len(cue), start + most)))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def office_behind(text: str, end: int) -> bool:
    """Tell whether the words behind a name make it a judge's, a clerk's, an expert's or the like."""
    after = _AFTER.match(text, end)
    return after is not None and not _OF_A_BODY.match(after["of"])


def has_office(text: str, start: int, end: int) -> bool:
    """Tell whether the words around a name, or a list of names, make them judges, clerks, experts and the like."""
    if office_behind(text, end):
        return True
    before = text[max(0, start - 60) : start].rstrip(" \n\u00a0,:–-").lower()
    offices, joints = LISTS["offices"], LISTS["joints"]
    return before.endswith(offices) or (before.endswith(joints) and _JOINING.sub("", before).endswith(offices))


def untitled_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of anonymised names without a title, first names included."""
    for place in positions(text, lowered(text) or text, ("...", "…")):
        two = text[max(place - 2, 0) : place]
        start = place - (2 if len(two) == 2 and two.isalpha() and two.isupper() else 1)
        name = _NAMES.match(text, start) if start >= 0 else None
        if name and not (start and (text[start - 1].isalnum() or text[start - 1] in ".[")):
            first = _first_names(text, start)
            if _is_person(text, first, start, name.end()):
                yield first, name.end()
    yield from _bracketed(text)


def _is_person(text: str, first: int, start: int, end: int) -> bool:
    if _OFFICE_BEFORE.search(text, max(0, start - 12), start) or office_behind(text, end):
        return False
    if first < start:
        return True
    if _ALONE.match(text, end) and _AGAINST.search(text, max(0, start - 150), end + 150):
        return True
    goes_on = text[end : end + 2].strip()[:1].isupper()  # a word of which dots took the place of a letter
    return not goes_on and _WITHIN_SENTENCE.search(text, max(0, start - 12), start) is not None


def _first_names(text: str, start: int) -> int:
    """Return where the first names before a name begin; `start` where there are none."""
    found = _FIRST_NAMES.search(text, max(0, start - _REACH), start)
    words = found.group().split() if found else []
    while any(word.lower() in NO_NAME or word in ("Le", "La", "Les") for word in words):
        words.pop(0)
    return start - len(" ".join(words)) - 1 if words else start


def _bracketed(text: str) -> Iterator[tuple[int, int]]:
    at = text.find("] [")
    while at >= 0:
        start = text.rfind("[", 0, at)
        name = _NAMES.match(text, start) if start >= 0 else None
        if name and name.end() > at + 1:
            yield start, name.end()
        at = text.find("] [", at + 3)
