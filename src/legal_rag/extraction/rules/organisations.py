"""Names of companies, public bodies and associations."""

import re
from collections.abc import Iterator

from legal_rag.extraction.rules.persons import BLANK, CAPITAL, LISTS, NO_NAME

_LEGAL_FORMS, _ACRONYMS, _KNOWN = LISTS["legal_forms"], LISTS["acronyms"], LISTS["known"]
_CAPITALS = "|".join(r"\.?[ ]?".join(form) + r"(?:\.|(?!\w))" for form in sorted(_LEGAL_FORMS, key=len, reverse=True))
_LETTERS = "|".join(
    r"\.?".join(name) + r"(?:\.(?=[ ,\n;)]|$)|(?![\w.]))" for name in sorted(_ACRONYMS, key=len, reverse=True)
)
_COMMON_NOUNS = frozenset(LISTS["common_nouns"])  # in lower case they begin no name
_NOUNS = "|".join(LISTS["company_nouns"] + LISTS["body_nouns"])
_UPPER_NOUNS = f"{_NOUNS}|{_NOUNS.replace('é', 'e')}".upper()
_TITLE_NOUNS = "|".join(noun.capitalize() for noun in f"{_NOUNS}|etablissements".split("|"))
LEAD = re.compile(
    rf"(?:(?P<form>{_CAPITALS})|(?P<letters>{_LETTERS})|(?P<known>(?:{'|'.join(_KNOWN)})(?!\w))"
    rf"|(?P<upper>(?:{_UPPER_NOUNS})(?!\w))|(?P<noun>(?:{_NOUNS}|{_TITLE_NOUNS})(?!\w)))"
)
# First two letters of leads in capitals: a cheap filter.
LEAD_CAPITALS = frozenset(
    word[:2] for word in (*_LEGAL_FORMS, *_ACRONYMS, *(name.upper() for name in _KNOWN), *_UPPER_NOUNS.split("|"))
) | frozenset(f"{word[0]}." for word in (*_LEGAL_FORMS, *_ACRONYMS))
_BODY_WORDS, _COMPANY_WORDS = frozenset(LISTS["body_words"]), frozenset(LISTS["company_words"])
_LINKS = frozenset("de du des d' d’ la le les l' l’ et & - – / pour DE DU DES D' D’ LA LE LES L' L’ ET POUR".split())
_WORD = re.compile(
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


def organisation_names(text: str, lead: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the names behind a form or noun: several behind 'sociétés'. The first includes the lead."""
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
    """Return where the capitalised words that continue an acronym end: 'MACIF PROVENCE MÉDITERRANÉE'."""
    found = _RUN_OF_CAPITALS.match(text, at)
    words = found.group().split() if found else []
    stopped = any(word.lower() in _STOPS or word in _OTHER_BODY for word in words)
    return found.end() if found and not stopped else None


def _name_end(text: str, at: int, *, company: bool, plural: bool = False, full_name: bool = False) -> int | None:
    """Return where a name ends; common words count only before proper ones, or after a capital (`full_name`)."""
    words = _COMPANY_WORDS if company else _BODY_WORDS
    end, common_end, commons, capitals = None, at, 0, 0
    link = ""  # the word that joins the next one to those before
    for _ in range(_MAX_WORDS):
        piece = _WORD.match(text, at)
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
    if word[0].isdecimal():  # "CGT 63", but no street's number
        return "own" if not first and not link and len(word) < 5 and not _STREET.match(text, piece.end()) else ""
    if not (word[0].isupper() or word[0] in '"“«['):
        return "common" if word in words else ""
    capitalised = first and word[1:].islower() and word.lower() in words
    if capitalised and (words is _BODY_WORDS or word.startswith("Assurance")):
        return "common"
    return "" if _ends_name(word, link, first=first) else "own"


def _ends_name(word: str, link: str, *, first: bool) -> bool:
    """Tell whether a capitalised word begins something else."""
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
