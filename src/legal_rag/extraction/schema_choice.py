"""Which schema suits a document: told from the words that it opens and closes with.

In: a document's text. Out: a schema's name. No model, no schema file: well under a millisecond.
"""

import re
import unicodedata
from functools import cache

_HEAD, _TAIL = 2000, 700  # characters: titles, parties and salutations, then operative part and signatures
_WEIGHTS = {"title": 6, "told": 3, "hinted": 1}  # a title counts once, of the other cues each different one
_ENOUGH = 3
# Without accents or any letter but a to z, as the text is when they are looked for; ^ is the beginning of a line.
# First what a document of the kind is titled, then what tells the kind, then what hints at it.
_CUES = {
    "jurisprudence": (
        "^au nom du peuple francais|^la cour de cassation|^le conseil constitutionnel(?:,| a ete saisi)",
        "par ces motifs|au nom du peuple francais|a rendu (?:l'arret|la decision|le jugement)|d e c i d e"
        "|ainsi (?:fait et )?(?:juge|delibere|prononce)|vu la requete|vu le pourvoi|au vu des textes suivants"
        "|present arret|entiers depens|article 700 du|delibere (?:par|dans)|statuant (?:sur|en|au)|attendu que?"
        r"|repertoire general|r\.?g\.?[ :]|nrg[ :]|audience publique|sur le (?:premier |second )?moyen|pourvoi n"
        "|arret n|appel d'une decision|prud'homale|composition de la cour|rendu public le|au pourvoi"
        "|presente decision sera|jugement (?:dont appel|entrepris|defere)",
        "cour de cassation|cour d'appel|conseil d'etat|conseil constitutionnel|appelante?s?|intimee?s?"
        "|demanderesse|defenderesse|pourvoi|greffier|tribunal|condamne|decide|jugement|arret|requete"
        "|vu l(?:'article|es articles|'ordonnance|a loi)|moyen|c/",
    ),
    "correspondence": (
        "^lettre recommandee",
        "^(?:de|a|objet|cc|cci|from|to|subject|sent|envoye|re) ?:|veuillez (?:agreer|recevoir|croire)"
        "|salutations distinguees|sentiments (?:distingues|devoues|les meilleurs)|(?:bien |tres )?cordialement"
        "|meilleures salutations|je vous prie d(?:'agreer|e croire|e recevoir)|bien a vous|votre bien devouee?"
        "|^bonjour|^madame, monsieur,"
        "|^(?:chere?s?|mon cher|ma chere) (?:maitre|monsieur|madame|confrere|consoeur|client)",
        r"^(?:madame|monsieur|maitre)[ \w]{0,30},|^(?:nos|vos|n\.|v\.)/? ?ref|^(?:p\.j\.|pj|date|copie) ?:"
        "|mise en demeure|par la presente|accuse de reception|suite a (?:notre|votre)|lettre recommandee|mail"
        "|votre (?:courrier|lettre)|pieces? jointes?",
    ),
    "corporate": (
        "^(?:extrait du )?proces-verbal d[eu]|^statuts|^decisions? (?:de l'associe|du president|unanime)"
        "|^extrait (?:du )?kbis",
        "proces-verbal (?:de l'assemblee|des? deliberations|des? decisions|de la reunion|du conseil)"
        "|(?:premiere|deuxieme|troisieme|derniere) resolution|resolution n|resolution est adoptee"
        "|resolutions? adoptee|decisions? de l'associee? unique|feuille de presence"
        "|statuts (?:mis a jour|constitutifs|de la societe)|article 1(?:er)? ?[-:.]? ?forme"
        "|assemblee generale (?:ordinaire|extraordinaire|mixte|constitutive)",
        "assemblee generale|resolution|ordre du jour|capital social|siege social|rcs|associes?|actionnaires?"
        "|conseil d'administration|commissaire aux comptes|statuts|gerante?|quorum|denomination sociale"
        "|proces-verbal",
    ),
    "regulation": (
        "^(?:reglement interieur|note de service|charte|livret d'accueil|accord (?:d'entreprise|collectif))"
        "|^guide du salarie",
        "conges payes|titres?[- ]restaurant|tickets?[- ]restaurant|evenements? familia(?:l|ux)"
        "|heures supplementaires|horaires? (?:de travail|collectifs?|variables?|individualises?)|jours? de rtt"
        "|regles applicables au personnel|accord (?:d'entreprise|collectif)|duree du travail|temps de travail"
        "|plages? (?:fixe|mobile|variable)",
        "(?:les|des|aux) salaries|le salarie|du personnel|jours ouvr|anciennete|conges?|rtt|teletravail"
        "|periode d'essai|l'employeur|la direction|hierarchi|absences?|mutuelle|prime|reglement interieur"
        "|note de service",
    ),
    "contract": (
        "^(?:contrat|convention|bail|avenant|protocole|promesse|accord de confidentialite|conditions generales)",
        "entre les soussigne|il (?:a ete|est) (?:prealablement |ensuite |expressement )?(?:expose|arrete|convenu)"
        "|ci-apres (?:denomm|designe|appel)"
        "|(?:le present|au present|du present) (?:contrat|accord|bail|protocole)|la presente convention"
        "|les parties (?:conviennent|declarent|s'engagent)|(?:contrat|bail) est (?:consenti|soumis|regi)"
        "|lu et approuve|exemplaires originaux",
        "d'une part|d'autre part|les parties|(?:aux|des) presentes|loi applicable|force majeure|confidentialite"
        "|resiliation|preavis|tacite reconduction|droit (?:applicable|francais)|prestataire|bailleur|preneur"
        "|cedant|cessionnaire|acheteur|vendeur|concedant|exemplaires|originaux"
        "|contrat de (?:travail|bail|prestation|vente|licence|location)",
    ),
}


def choose_schema(text: str) -> str:
    """Return the name of the schema for a document, which is what `auto` takes: `general` where nothing tells its kind.

    Only the beginning and the end are read, so that a decision that tells of a contract stays a decision.
    """
    read = _plain(text)
    scores = {name: _score(pattern, read) for name, pattern in _patterns()}
    best = max(scores, key=lambda name: scores[name])  # of equal ones the first, as `_CUES` has them
    return best if scores[best] >= _ENOUGH else "general"


def _plain(text: str) -> str:
    text = text.strip()
    read = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    letters = unicodedata.normalize("NFKD", read.lower().replace("’", "'")).encode("ascii", "ignore").decode()
    return "\n" + "\n".join(" ".join(words) for line in letters.splitlines() if (words := line.split()))


def _score(pattern: re.Pattern[str], read: str) -> int:
    cues = {(found.lastgroup or "", found.group()[1:]) for found in pattern.finditer(read)}
    kinds = ["title" for kind, _ in cues if kind == "title"][:1] + [kind for kind, _ in cues if kind != "title"]
    return sum(_WEIGHTS[kind] for kind in kinds)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(name, _compiled(*cues)) for name, cues in _CUES.items()]


def _compiled(title: str, told: str, hinted: str) -> re.Pattern[str]:
    # A blank may be the end of a line. What stands before a word comes first: a set of letters at the front lets the
    # search skip over all others.
    cues = f"(?P<title>{title})|(?P<told>{told})|(?P<hinted>{hinted})".replace(" ", r"\s").replace("^", r"(?<=\n)")
    return re.compile(rf"[ \n'\"(>*#-](?:{cues})")
