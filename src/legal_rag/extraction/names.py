"""Names of persons and organisations in decisions."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from legal_rag.base.text import Span, read_words
from legal_rag.law.scanning import lowered, positions
from legal_rag.law.words import MONTHS, WEEKDAYS

BLANK = "[ \u00a0\u202f]"
CAPITAL = "A-ZÀ-ÖØ-ÞŒ"
# Placeholders of anonymised names: "X...", "XX…", "Y***", "[N]"; but "[Localité 4]" and "[5]" are not persons.
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
LISTS = read_words("legal_rag.extraction")
_CAPITAL_PARTICLES, NO_NAME = (
    frozenset(LISTS["capital_particles"]),
    frozenset((*MONTHS, *WEEKDAYS)).union(LISTS["no_name"]),
)
# Titles with a capital M; the others are found by their words.
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
# A placeholder on the next line, and a first name after a placeholder: "Monsieur Jean\nX...", "Y... Philippe".
_NEXT_LINE = re.compile(rf"\n{{1,2}}(?P<particle>(?!))?(?P<word>(?P<left_out>{ANONYMOUS}))")
_FIRST_NAME_AFTER = re.compile(
    rf"{BLANK}(?P<first>[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)?)(?=,| demeurant| né| domicil)"
)
# Passages that name the members of the court: cue, signs that end it, maximum length in characters.
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
# An office of several persons, after the last name.
PLURAL_OFFICE = re.compile(
    r"[\s,:(–-]{0,4}(?:[Cc]onseill[eè]re?s|[Jj]uges|[Pp]résidents|[Gg]reffiers|[Ee]xperts|[Mm]agistrats|"
    r"[Aa]ssesseurs|CONSEILLERS|[Dd]octeurs|[Mm]édecins|[Nn]otaires)\b"
)
_NAMES = re.compile(rf"{ANONYMOUS}(?:[ -]{ANONYMOUS}){{0,2}}")
_FIRST_NAMES = re.compile(rf"(?:(?<![\w.-])[{CAPITAL}][a-zà-ÿ]+(?:-[{CAPITAL}][a-zà-ÿ]+)*{BLANK}){{1,3}}$")
_REACH = 50  # characters of first names
# Words before a name within a sentence; at its start, letters with dots are ambiguous.
_WITHIN_SENTENCE = re.compile(
    r"(?:\b(?:à|que|qu['’]|de|d['’]|et|par|contre|pour|dont|si|entre|chez|lequel|avec|ou|envers|donc|où|dame|MM\.|"
    r"époux),? ?|[a-zé]{3,} )$"
)
_OFFICE_BEFORE = re.compile(r"(?:octeurs?|Dr\.?|xperts?|rofesseur|OCTEUR|XPERT) $")
# 'C/' separates opposing parties in captions.
_AGAINST = re.compile(r"(?<!\w)[Cc] ?/")
_ALONE = re.compile(r"\s{0,4}(?:\n|[Cc] ?/)")


@lru_cache(maxsize=8)
def titles(text: str) -> tuple[Span, ...]:
    """Return the spans of the titles of persons, sorted: 'M.', 'Maître', 'consorts'."""
    small = (_SMALL_TITLE.match(text, place) for place in positions(text, lowered(text) or text, _SMALL_WORDS))
    spans = {match.span() for match in (*_CAPITAL_TITLE.finditer(text), *small) if match}
    return tuple(sorted(span for span in spans if not (span[0] and text[span[0] - 1].isalnum())))


class Name(NamedTuple):
    """A person's name, without title."""

    end: int  # characters
    surname: str  # lower case; the first of names joined by marriage
    anonymous: bool  # the surname is a placeholder


def person_name(text: str, start: int) -> Name | None:
    """Read the person's name at `start`; None if there is none."""
    name = _read_name_words(text, start, 6)
    married = _MARRIED.match(text, name.end) if name else None
    if name is None or married is None:
        return name
    other = _read_name_words(text, married.end(), 1 if married.group().isupper() else 4)
    return name._replace(end=other.end) if other else name


def _read_name_words(text: str, start: int, most: int) -> Name | None:
    at = end = start
    surname, anonymous = "", False
    for _ in range(most):
        piece = _PIECE.match(text, at) or (_NEXT_LINE.match(text, at) if surname and not anonymous else None)
        if piece is None:
            break
        word, left_out = piece["word"], piece["left_out"] is not None
        particle = word in _CAPITAL_PARTICLES or (not left_out and "." in word)  # initials do not end a name either
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
    """Return the first position of any sign between two places; `end` if there is none."""
    return min((at for sign in signs if (at := lower.find(sign, start, end)) >= 0), default=end)


def bench(text: str) -> list[Span]:
    """Return the passages that name the court's members, sorted and disjoint."""
    lower = lowered(text) or text
    passages = []
    for cue, signs, most in _BENCH:
        for start in positions(text, lower, (cue,)):
            passages.append((start, first_sign(lower, signs, start + len(cue), start + most)))
    merged: list[Span] = []
    for start, end in sorted(passages):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def office_behind(text: str, end: int) -> bool:
    """Tell whether the words after a name make it a judge's, a clerk's, an expert's or the like."""
    after = _AFTER.match(text, end)
    return after is not None and not _OF_A_BODY.match(after["of"])


def has_office(text: str, start: int, end: int) -> bool:
    """Tell whether the words around a name, or a list of names, make them judges, clerks, experts and the like."""
    if office_behind(text, end):
        return True
    before = text[max(0, start - 60) : start].rstrip(" \n\u00a0,:–-").lower()
    offices, joints = LISTS["offices"], LISTS["joints"]
    return before.endswith(offices) or (before.endswith(joints) and _JOINING.sub("", before).endswith(offices))


def untitled_names(text: str) -> Iterator[Span]:
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
    goes_on = text[end : end + 2].strip()[:1].isupper()  # a word with a letter replaced by dots
    return not goes_on and _WITHIN_SENTENCE.search(text, max(0, start - 12), start) is not None


def _first_names(text: str, start: int) -> int:
    match = _FIRST_NAMES.search(text, max(0, start - _REACH), start)
    words = match.group().split() if match else []
    while any(word.lower() in NO_NAME or word in ("Le", "La", "Les") for word in words):
        words.pop(0)
    return start - len(" ".join(words)) - 1 if words else start


def _bracketed(text: str) -> Iterator[Span]:
    at = text.find("] [")
    while at >= 0:
        start = text.rfind("[", 0, at)
        name = _NAMES.match(text, start) if start >= 0 else None
        if name and name.end() > at + 1:
            yield start, name.end()
        at = text.find("] [", at + 3)


_LEGAL_FORMS, _ACRONYMS, _KNOWN = LISTS["legal_forms"], LISTS["acronyms"], LISTS["known"]
_CAPITALS = "|".join(r"\.?[ ]?".join(form) + r"(?:\.|(?!\w))" for form in sorted(_LEGAL_FORMS, key=len, reverse=True))
_LETTERS = "|".join(
    r"\.?".join(name) + r"(?:\.(?=[ ,\n;)]|$)|(?![\w.]))" for name in sorted(_ACRONYMS, key=len, reverse=True)
)
_COMMON_NOUNS = frozenset(LISTS["common_nouns"])  # in lower case they do not start a name
_NOUNS = "|".join(LISTS["company_nouns"] + LISTS["body_nouns"])
_UPPER_NOUNS = f"{_NOUNS}|{_NOUNS.replace('é', 'e')}".upper()
_TITLE_NOUNS = "|".join(noun.capitalize() for noun in f"{_NOUNS}|etablissements".split("|"))
LEAD = re.compile(
    rf"(?:(?P<form>{_CAPITALS})|(?P<letters>{_LETTERS})|(?P<known>(?:{'|'.join(_KNOWN)})(?!\w))"
    rf"|(?P<upper>(?:{_UPPER_NOUNS})(?!\w))|(?P<noun>(?:{_NOUNS}|{_TITLE_NOUNS})(?!\w)))"
)
# First two letters of capitalised leads: a cheap filter.
LEAD_CAPITALS = frozenset(
    word[:2] for word in (*_LEGAL_FORMS, *_ACRONYMS, *(name.upper() for name in _KNOWN), *_UPPER_NOUNS.split("|"))
) | frozenset(f"{word[0]}." for word in (*_LEGAL_FORMS, *_ACRONYMS))
_BODY_WORDS, _COMPANY_WORDS = frozenset(LISTS["body_words"]), frozenset(LISTS["company_words"])
_LINKS = frozenset("de du des d' d’ la le les l' l’ et & - – / pour DE DU DES D' D’ LA LE LES L' L’ ET POUR".split())
_ORGANISATION_WORD = re.compile(
    rf"{BLANK}{{0,2}}(?P<word>[\"“«]{BLANK}?[^\"”»\n]{{1,60}}{BLANK}?[\"”»]|\[[^\]\n]{{1,20}}\]|[A-Z]{{1,2}}(?:\.{{3}}|…)"
    rf"|(?:[{CAPITAL}]\.{BLANK}?){{1,6}}(?:[A-Z](?!\w))?|[dlDL]['’]|[&–/-](?={BLANK}|[{CAPITAL}])"
    rf"|[^\W_](?:\w|['’.&‑-](?=\w)|(?<=\.[A-Z])\.(?!\w)){{0,80}})"
)
_ANONYMOUS = re.compile(r"\[|[A-Z]{1,2}(?:\.{3}|…)$")
_STOPS = NO_NAME.difference(LISTS["within_names"]).union(LISTS["behind_organisations"])
_OTHER_BODY = frozenset(_UPPER_NOUNS.split("|")) | frozenset(_TITLE_NOUNS.split("|")) | frozenset(_LEGAL_FORMS)
_FORM_BEHIND = re.compile(rf"{BLANK}(?:{_CAPITALS})(?![.\w]|{BLANK}?[A-ZÀ-Þ])")
_PLURALS = frozenset(("sociétés", "compagnies", "syndicats", "associations"))
_AND = re.compile(rf"{BLANK}?(?:,|et){BLANK}(?=[{CAPITAL}])(?!M\.|Mme|Mlle|SCP|Me )")
_FORM_IN_FULL = re.compile(
    rf"(?:{BLANK}(?:anonyme|civile|par actions simplifiée|à responsabilité limitée|en nom collectif|"
    rf"en commandite(?: simple)?|immobilière|unipersonnelle)(?!\w))*"
)
_WHOLE = frozenset(("pôle emploi", "pole emploi", "france travail"))
_COMPANIES = frozenset(LISTS["company_nouns"])
_RUN_OF_CAPITALS = re.compile(r"(?:[ -][A-ZÀ-ÖØ-Þ]{3,}(?!\w)){1,4}")
_OF_PLACE = re.compile(
    rf"{BLANK}(?:(?:de{BLANK}la|de{BLANK}l['’]|de|du|des|d['’]|DE{BLANK}LA|DE{BLANK}L['’]|DE|DU|DES|D['’]){BLANK}?)"
    rf"(?:\[[^\]\n]{{1,20}}\]|(?:(?:L[ae]|LES?){BLANK})?[{CAPITAL}](?:\w|['’-](?=\w))*(?:-?{BLANK}?(?:et|du|de|ET|DU|"
    rf"DE|en|EN)?{BLANK}?[{CAPITAL}](?:\w|['’-](?=\w))*){{0,2}})"
    r"|[ ][A-Z]\.\.\."
)
_STREET = re.compile(
    rf"{BLANK}?(?:bis|ter)?[ ,-]{{0,3}}(?:/|\d|r\.|rue|cours|avenue|av\.|boulevard|bd|place|chemin|route|quai|allée|"
    rf"impasse|square|\d{{5}}|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_MAX_WORDS = 22
_NAMED_ALONE = frozenset((*_ACRONYMS, *_KNOWN))


def organisation_names(text: str, lead: re.Match[str]) -> Iterator[Span]:
    """Yield the spans of the names after a form or noun, several after 'sociétés'; the first includes the lead."""
    noun = lead.group().lower()
    company = bool(lead["form"]) or noun in _COMPANIES
    end = _first_end(text, lead, noun, company=company)
    start = lead.start()
    while end is not None:
        yield start, end
        joint = _AND.match(text, end) if noun in _PLURALS else None
        if joint is None:
            return
        start = joint.end()
        end = _name_end(text, start, company=company, plural=True)


def _first_end(text: str, lead: re.Match[str], noun: str, *, company: bool) -> int | None:
    if lead["known"]:
        end = lead.end() if noun in _WHOLE else _capitals(text, lead.end()) or lead.end()
        form = _FORM_BEHIND.match(text, end)
        return form.end() if form else end
    if lead["letters"]:
        place = _OF_PLACE.match(text, lead.end())
        return max(place.end() if place else 0, _capitals(text, lead.end()) or 0, lead.end())
    if noun in _COMMON_NOUNS and not lead["upper"]:
        return None
    full_name = noun not in _COMMON_NOUNS and lead.group()[0].isupper() and not lead.group().isupper()
    at = _FORM_IN_FULL.match(text, lead.end()).end() if company else lead.end()  # type: ignore[union-attr]
    return _name_end(text, at, company=company, plural=noun in _PLURALS, full_name=full_name and not company)


def _capitals(text: str, at: int) -> int | None:
    """Return the end of the capitalised words that continue an acronym: 'MACIF PROVENCE MÉDITERRANÉE'."""
    match = _RUN_OF_CAPITALS.match(text, at)
    words = match.group().split() if match else []
    stopped = any(word.lower() in _STOPS or word in _OTHER_BODY for word in words)
    return match.end() if match and not stopped else None


def _name_end(text: str, at: int, *, company: bool, plural: bool = False, full_name: bool = False) -> int | None:
    """Return the end of a name; common words count only before proper ones, or after a capital (`full_name`)."""
    words = _COMPANY_WORDS if company else _BODY_WORDS
    end, common_end, commons, capitals = None, at, 0, 0
    link = ""  # the word joining the next one to the previous ones
    for _ in range(_MAX_WORDS):
        piece = _ORGANISATION_WORD.match(text, at)
        if piece is None:
            break
        word = piece["word"]
        if word in _LINKS:
            joins = word in ("et", "ET")
            if company and ((joins and (plural or end is None)) or (link in ("et", "ET") and end)):
                break
            at, link = piece.end(), word
            continue
        kind = _kind(text, piece, words, link, first=end is None)
        if not kind or (kind == "common" and ((company and link in ("et", "ET")) or (end is not None and not link))):
            break
        if capitals > 1 and not link and word.istitle():  # "LES LOGEMENTS FAMILIAUX Tour Ève"
            break
        capitals = capitals + 1 if word.isupper() and len(word) > 2 else 0
        at, link = piece.end(), ""
        if kind == "common":
            commons, common_end = commons + 1, at
            continue
        end = at - len(word) + len(word.rstrip())
        if _ANONYMOUS.match(word):
            break
    if end is None:
        return common_end if commons > 2 and full_name else None
    form = _FORM_BEHIND.match(text, end) if company else None
    return form.end() if form else end


def _kind(text: str, piece: re.Match[str], words: frozenset[str], link: str, *, first: bool) -> str:
    """Classify a word: 'own' (proper to a name), 'common' (allowed within one) or '' (ends it)."""
    word = piece["word"]
    if word == "ouvrière":  # Force ouvrière
        return "own"
    if word[0].isdecimal():  # "CGT 63", but not a street number
        return "own" if not first and not link and len(word) < 5 and not _STREET.match(text, piece.end()) else ""
    if not (word[0].isupper() or word[0] in '"“«['):
        return "common" if word in words else ""
    capitalised = first and word[1:].islower() and word.lower() in words
    if capitalised and (words is _BODY_WORDS or word.startswith("Assurance")):
        return "common"
    return "" if _ends_name(word, link, first=first) else "own"


def _ends_name(word: str, link: str, *, first: bool) -> bool:
    if word.lower().rstrip(".") in _STOPS:
        return True
    if first:
        return False
    form = "." in word and word.replace(".", "").replace(" ", "") in _LEGAL_FORMS
    another = word in _OTHER_BODY or form or _ANONYMOUS.match(word) is not None
    listed = another and link.lower() in ("la", "le", "les", "l'", "l’")  # "la caisse de X et la caisse de Y"
    joined = link in ("et", "ET") and word in _NAMED_ALONE
    quoted = word[0] in '"“«' and not word[1:].strip()[:1].isupper()
    return word in ("Le", "La", "Les") or (another and not link) or listed or joined or quoted
