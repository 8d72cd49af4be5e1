"""Those named in a French decision who are no parties: judges, clerks, prosecutors, experts, notaries, doctors.

In: text and the place of a name. Out: whether the words around it give it such an office; passages that name only them.
"""

import re

from legal_rag.legal_patterns.scanning import lowered, places

# Passages in which the persons named make up the court: how they begin, and at which of some signs they end.
# The first is a word that all of a group have.
_BENCH: tuple[tuple[str, tuple[tuple[str, tuple[str, ...], int], ...]], ...] = (
    ("siégeai", (("siégeai", ("\n\n", "ecli"), 1500),)),
    ("étai", (
        ("étaient présent", ("\n", " ; ", "sur le rapport", "les observations"), 1500),
        ("était présent", ("\n", " ; ", "sur le rapport"), 300),
    )),
    ("délibéré par", (("délibéré par", ("\n\n",), 600),)),
    ("en présence de m", (("en présence de m", (",", ";", "\n", "."), 100),)),
    ("rédacteur :", (("rédacteur :", (), 10_000),)),
    (" : m", (
        ("rapporteur : m", ("\n", "avocat :", "avocats :", ";"), 200),
        ("avocat général : m", ("\n", "avocats", ";"), 200),
        ("président : m", ("\n", ";"), 200),
    )),
    (" signé", (("ont signé", ("\n", ". "), 200), ("a signé la minute", ("\n\n",), 200))),
    ("compos", (
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
    )),
)  # fmt: skip
_OFFICES = (
    r"(?:(?:premi|prés|Prem|Pr[ée]s|PR[ÉE]S|vice|Vice|VICE)[\w-]*\s?(?:pr[ée]s\w+)?|[Cc]onseill\w+(?! (?:génér|"
    r"région|munic|départ|territ|techn|commun|comm))|CONSEILL\w+|[Gg]reffi\w+|GREFFI\w+|[Ss]ubstitut\w*|"
    r"[Pp]rocureur\w*|"
    r"(?:[Pp]remier )?[Aa]vocate?s?[- ][Gg]énéra\w+|[Jj]uges?\b(?! de)|[Mm]agistrat\w*|[Rr]apporteur\w*|"
    r"[Aa]uditeur\w*|[Aa]djoint\w* administrati\w+|[Ff]aisant fonction|f\.f\.|"
    r"[Ee]xperts?\b(?! ?-?comptable)|[Nn]otaires?\b|[Hh]uissiers?\b|[Cc]ommissaire(?:s|-priseur)|"
    r"[Mm]édecins?\b(?! généraliste)|[Dd]octeur|[Pp]rofesseur|[Ss]ecrétaire[ -][Gg]reff|[Pp]sychiatre|[Dd]oyen|"
    r"[Aa]gent de police|[Gg]ardien de la paix|[Oo]fficier de police|[Ii]nspecteur|[Bb]rigadier|[Gg]éomètre|"
    r"[Ss]apiteur|[Aa]ttachée?\b de justice|[Vv]ice-procureur|désignés? par le juge|désignés? en qualité)"
)
_AFTER = re.compile(
    rf"[\s,:(–-]{{0,4}}(?:(?:(?:le|la|son|sa|qui|désignée?|nommée?|en qualité d[e'’])|l['’]|Mme|"
    rf"M\.)\s?){{0,2}}{_OFFICES}(?P<of>[^,;\n]{{0,30}})"
)
_OF_A_BODY = re.compile(
    r"\s*(?:directeur|d[eu](?:s|\s?la|\s?l['’])?\s(?:la\s|l['’])?(?:soci|assoc|conseil d|conseil g|conseil r|syndic|"
    r"commission|comité|sarl|SA|bureau|groupe|fédé|union|directoire|mutuelle|caisse))"
)
# What stands before those who hold an office, in small letters, without the words that may join the two.
_BEFORE = tuple(
    (
        "président|présidente|president|presidente|présidents|conseiller|conseillère|conseillers|greffier|greffière|"
        "greffiers|rapporteur|rapporteure|magistrat|magistrats|substitut|procureur|avocat général|avocate générale|"
        "juge|juges|expert|experts|docteur|docteurs| dr|(dr|professeur|professeurs| pr|notaire|notaires|huissier|"
        "inspecteur|brigadier|rédacteur|assisté de|assistée de|assistés de|, présidée par|signé par|"
        "sur le rapport de|rapport de|l'avis de|l’avis de|, tenue par| tenus par|prononcé par|publique par|"
        "prorogation par|délibéré par|greffe par|devant|entendu en son rapport|lors des débats|lors du prononcé|"
        "lors du délibéré|établi par|ouï|confiée à|confié à|certificat médical de|certificat de|"
        "ministre de l'intérieur|commissaire enquêteur|exploit de|acte de|ministère de"
    ).split("|")
)
_JOINING = re.compile(
    r"(?: (?:lors des débats|de chambre|judiciaire|en chef|cheff?|placée?|de justice|audiencier|général|doyen|"
    r"référendaire|le|la|et par|et|faisant fonction|associée?))*[\s,:–-]{0,4}$"
)


def bench(text: str) -> list[tuple[int, int]]:
    """Return the passages that name the court's own members, rising."""
    lower = lowered(text) or text
    found = []
    for cue, signs, most in (row for word, group in _BENCH if word in lower for row in group):
        for start in places(text, lower, (cue,)):
            ends = [end for sign in signs if (end := lower.find(sign, start + len(cue), start + most)) >= 0]
            found.append((start, min([*ends, start + most])))
    return _merged(sorted(found))


def _merged(passages: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join passages that overlap, so that a place can be looked up among them."""
    merged: list[tuple[int, int]] = []
    for start, end in passages:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


_JOINTS = (
    " débats", " chambre", " judiciaire", " chef", " placé", " placée", " justice", " audiencier", " général", " doyen",
    " référendaire", " le", " la", " par", " fonction",
)  # fmt: skip
_PLURAL_OFFICE = re.compile(
    r"[\s,:(–-]{0,4}(?:[Cc]onseill[eè]re?s|[Jj]uges|[Pp]résidents|[Gg]reffiers|[Ee]xperts|[Mm]agistrats|"
    r"[Aa]ssesseurs|CONSEILLERS|[Dd]octeurs|[Mm]édecins|[Nn]otaires)\b"
)


def has_plural_office(text: str, end: int) -> bool:
    """Tell whether an office of several persons stands behind a name: it is that of those named before, too."""
    return _PLURAL_OFFICE.match(text, end) is not None


def office_behind(text: str, end: int) -> bool:
    """Tell whether the words behind a name give it an office of the court's, an expert's or the like."""
    after = _AFTER.match(text, end)
    return after is not None and not _OF_A_BODY.match(after["of"])


def has_office(text: str, start: int, end: int) -> bool:
    """Tell whether the words next to a name, or to a list of names, make them judges, clerks, experts and the like."""
    if office_behind(text, end):
        return True
    before = text[max(0, start - 60) : start].rstrip(" \n\u00a0,:–-").lower()
    return before.endswith(_BEFORE) or (before.endswith(_JOINTS) and _JOINING.sub("", before).endswith(_BEFORE))
