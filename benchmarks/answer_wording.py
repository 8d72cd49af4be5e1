"""How models word an answer in French: quotation marks, cuts, spellings of facts and markers, introductions, layouts.

In: true or altered pieces. Out: the same as a model might write them. Nothing here adds a fact.
"""

import random
import re
from typing import NamedTuple

from answer_material import MONTHS, Fact, Passage

QUOTATION_MARKS = [("« ", " »")] * 4 + [
    ("«\u00a0", "\u00a0»"),
    ("«\u00a0", "\u00a0»"),
    ("«\u202f", "\u202f»"),
    ("«", "»"),
    ('"', '"'),
    ('"', '"'),
    ("“", "”"),
    ("**« ", " »**"),
    ("*« ", " »*"),
]
TURNING = re.compile(  # a quotation may not leave these out
    r"\b(?:ne|n|pas|non|ni|sans|sauf|hormis|aucune?|jamais|que|qu|qui|dont|si|mais|refus\w*|tort|prétend\w*|soutien\w*|"
    r"rejet\w*|infirm\w*|annul\w*|contrair\w*|toutefois|cependant|seul\w*|moins|plus|excepté|exception|à)\b|[\d;.]",
    re.IGNORECASE,
)
CUTS = ["[...]", "[…]", "(...)", "(…)"]
QUOTING = [  # they name no court: the decision's own is not known here
    "Selon la décision, ",
    "Il ressort de la décision que ",
    "Il est jugé que ",
    "La décision énonce : ",
    "On lit dans la décision : ",
    "Il est précisé que ",
    "En effet, ",
    "Aux termes de la décision, ",
    "**Règle applicable.** ",
    "**Motif** : ",
    "Ainsi, d'après les motifs, ",
    "",
]
TAILS = [""] * 8 + [", selon la décision", ", ce qui commande la solution", ", rappelle la juridiction"]
STATING = [
    "La décision rappelle que ",
    "Il est relevé que ",
    "Selon les motifs, ",
    "La juridiction retient que ",
    "D’après l'arrêt, ",
    "On y apprend que ",
]
STATEMENTS = {
    "date": ["La décision se réfère à la date du {}", "L'acte en cause est daté du {}", "Les faits remontent au {}"],
    "amount": ["La somme en jeu s'élève à {}", "Le montant retenu est de {}", "Il est question de {}"],
    "article": ["La solution repose sur l'{}", "Le texte appliqué est l’{}"],
    "percentage": ["Le taux retenu est de {}", "La part en cause atteint {}"],
    "case number": ["L'affaire porte le {}", "Il s'agit du dossier {}"],
}
SYNONYMS = [
    (r"\b[Cc]onsidérant qu(?:e |')", ""),
    (r"\b[Aa]ttendu qu(?:e |')", ""),
    (r"\bdès lors\b", "par conséquent"),
    (r"\bsusvisée?\b", "précité"),
    (r"\ble sieur\b", "M."),
    (r"\bsoutient\b", "fait valoir"),
    (r"\brequête\b", "demande"),
    (r"\brequérante?\b", "demandeur"),
    (r"\bnotamment\b", "en particulier"),
    (r"\bafin de\b", "pour"),
    (r"\bainsi que\b", "et"),
]
# What models say instead, without a change of meaning; forms of verbs that change the tense alone.
OTHER_WORDS = [
    (r"\bil résulte de\b", "il ressort de"),
    (r"\bprononcer\b", "ordonner"),
    (r"\bsoutient\b|\bfait valoir\b", "affirme"),
    (r"\ben application de\b", "en vertu de"),
    (r"\bconformément à\b", "selon"),
    (r"\blorsque\b", "quand"),
    (r"\bafin de\b", "pour"),
    (r"\bnéanmoins\b|\btoutefois\b", "cependant"),
    (r"\bà compter de\b", "à partir de"),
    (r"\bdemeure\b", "reste"),
    (r"\bsusceptible de\b", "propre à"),
    (r"\bprécité(?:e?s?)\b", "mentionné"),
    (r"\bla somme de\b", "le montant de"),
    (r"\bsolliciter\b", "demander"),
    (r"\bà l'encontre de\b", "contre"),
    (r"\bdès lors que\b", "puisque"),
    (r"\bconstitue\b", "représente"),
    (r"\bintéressée?\b", "personne concernée"),
    (r"\bpréjudice\b", "dommage"),
    (r"\bsalaire\b", "rémunération"),
    (r"\bcontrat de travail\b", "contrat d'emploi"),
    (r"\bbail\b", "contrat de location"),
]
TENSES = [
    (r"\bétait\b", "est"),
    (r"\bétaient\b", "sont"),
    (r"\bavait\b", "a"),
    (r"\bavaient\b", "ont"),
    (r"\bpouvait\b", "peut"),
    (r"\bdevait\b", "doit"),
    (r"\bdevra\b", "doit"),
    (r"\bsera\b", "est"),
]
# An aside between commas that turns nothing, and a circumstance at a sentence's end that may as well begin it.
ASIDE = re.compile(r", [^,;()]{8,90}, ")
CIRCUMSTANCE = re.compile(
    r"(?P<main>[^,;]{30,}),? "
    r"(?P<when>(?:en vertu de|selon|en raison de|pour|par|dans|à partir de|depuis) [^,;]{12,80})$"
)
OPINIONS = [
    "La réponse appelle donc une certaine prudence",
    "Cette solution paraît constante",
    "Il convient de distinguer selon les circonstances",
    "Ces éléments se complètent",
    "La question reste discutée en doctrine",
    "Chaque situation doit être appréciée au cas par cas",
    "Voici les points essentiels",
]
MARKERS = [
    "[Source: {doc}, chars {start}-{end}]",
    "[Source: {doc}, chars {start}-{end}]",
    "[Source: {doc}, chars {start}-{end}]",
    "[Source : {doc}, car. {start}–{end}]",
    "[Source: {doc}, caractères {start} à {end}]",
    "[Source : {doc}, caractères {start}-{end}]",
    "[Source: {doc}, chars. {start} - {end}]",
    "[source: {doc}, char {start}-{end}]",
    "[Source : {doc},\u00a0chars\u00a0{start}–{end}]",
]
PLACELESS_MARKERS = ["[Source: {doc}]", "[Source : {doc}]", "[Sources : {doc}]"]
PAIRED_MARKERS = [
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end}; {b.doc_id}, chars {b.char_start}-{b.char_end}]",
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end}; Source: {b.doc_id}, chars {b.char_start}-{b.char_end}]",
    "[Sources : {a.doc_id}, car. {a.char_start}–{a.char_end} ; {b.doc_id}, car. {b.char_start}–{b.char_end}]",
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end}][Source: {b.doc_id}, chars {b.char_start}-{b.char_end}]",
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end}], [Source: {b.doc_id}, chars {b.char_start}-{b.char_end}]",
]
PAIRS_OF_ONE_DOCUMENT = [
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end}, {b.char_start}-{b.char_end}]",
    "[Source: {a.doc_id}, chars {a.char_start}-{a.char_end} et {b.char_start}-{b.char_end}]",
    *PAIRED_MARKERS,
]


class Quotation(NamedTuple):
    """A quotation between its marks."""

    opening: str
    words: str
    closing: str

    def __str__(self) -> str:
        return self.opening + self.words + self.closing


def quote(rng: random.Random, text: str, spared: bool = False) -> Quotation:
    """Quote a text as models do: typography changed, a sign added at its ends; `spared`: the words as they are."""
    words = text if spared else _retyped(rng, text)
    if rng.random() < 0.15:
        words += rng.choice([".", ".", "...", "…", " […]"])
    elif rng.random() < 0.05:
        words = rng.choice(["[...] ", "… ", "(…) "]) + words
    opening, closing = rng.choice(QUOTATION_MARKS)
    return Quotation(opening, words, closing)


def cut(rng: random.Random, text: str) -> str | None:
    """Leave out words in the middle of a text of sixteen words or more, and say so; None if they turn its sense."""
    words = re.findall(r"\S+\s*", text)
    first = rng.randint(5, len(words) // 2)
    last = rng.randint(first + 2, len(words) - 5)
    if TURNING.search("".join(words[first:last])):
        return None
    return "".join(words[:first]).rstrip() + f" {rng.choice(CUTS)} " + "".join(words[last:])


def marker(rng: random.Random, place: Passage) -> str:
    """Write the marker of a place."""
    return rng.choice(MARKERS).format(doc=place.doc_id, start=place.char_start, end=place.char_end)


def placeless_marker(rng: random.Random, doc_id: str) -> str:
    """Write a marker without offsets."""
    return rng.choice(PLACELESS_MARKERS).format(doc=doc_id)


def paired_markers(rng: random.Random, a: Passage, b: Passage) -> str:
    """Write the markers of two places of one sentence."""
    return rng.choice(PAIRS_OF_ONE_DOCUMENT if a.doc_id == b.doc_id else PAIRED_MARKERS).format(a=a, b=b)


def quoting_sentence(rng: random.Random, quotation: Quotation, marks: str, introduction: str | None = None) -> str:
    """Write a sentence around a quotation; its marker inside the quotation, before or after the full stop, or first."""
    place = rng.random()
    intro, tail = rng.choice(QUOTING) if introduction is None else introduction, rng.choice(TAILS)
    if marks and place < 0.07:
        return f"{intro}{quotation._replace(words=f'{quotation.words} {marks}')}{tail}."
    if marks and place < 0.11 and introduction is None:
        return f"{rng.choice(['D’après', 'Selon', 'Voir'])} {marks}, {quotation}."
    return _ended(rng, f"{intro}{quotation}{tail}", marks)


def stating_sentence(rng: random.Random, statement: str, marks: str) -> str:
    """Write a sentence that quotes nothing."""
    return _ended(rng, statement, marks)


def reworded(rng: random.Random, clause: str) -> str:
    """Say a clause with a few other words; facts stay as they are."""
    for pattern, other in SYNONYMS:
        clause = re.sub(pattern, other, clause)
    return rng.choice(STATING) + " ".join(clause.split()).strip(" ,;")


def paraphrase(rng: random.Random, clause: str) -> str:
    """Say a clause in other words, tense and order, without its asides; facts and negations stay as they are."""
    words = " ".join(clause.split()).strip(" ,;.")
    for pattern, other in [*SYNONYMS, *OTHER_WORDS, *rng.choice([TENSES, []])]:
        words = re.sub(pattern, other, words)
    aside = ASIDE.search(words)
    if aside and not TURNING.search(aside.group()):
        words = words.replace(aside.group(), " ", 1)
    ordered = CIRCUMSTANCE.fullmatch(words)
    if ordered and not TURNING.search(ordered["when"]):
        words = f"{ordered['when']}, {ordered['main']}"
    introduction = rng.choice(["", "", "", "En effet, ", "Concrètement, ", "Selon cette décision, "])
    words = introduction + words
    return words[0].upper() + words[1:]


def respelt(rng: random.Random, fact: Fact) -> str:
    """Spell a fact in another way that says the same."""
    if fact.kind == "date":
        return rng.choice([fact.text, fact.text, fact.text.replace(" ", "\u00a0"), _in_digits(fact)])
    if fact.kind == "amount":
        return _amount_respelt(rng, fact.text)
    if fact.kind == "article":
        spellings = [fact.text, fact.text.replace(". ", "."), re.sub(r"[. ](?=[\dO. ])|\.(?= )", "", fact.text)]
        return rng.choice([fact.text, spellings[1]]) if "O" in fact.text else rng.choice(spellings)
    return rng.choice([fact.text, fact.text.replace(" ", "\u00a0")])


def _retyped(rng: random.Random, text: str) -> str:
    words = " ".join(text.split())
    words = re.sub(r"['’]", rng.choice("'’"), words)
    words = re.sub(r"[oO]eu|œu|Œu", rng.choice(["oeu", "œu"]), words)
    if rng.random() < 0.3:
        words = re.sub(r" (?=[;:!?%])|(?<=\d) (?=\d{3})|(?<=n°) ", rng.choice("\u00a0\u202f"), words)
    if rng.random() < 0.4:
        words = words[0].swapcase() + words[1:]
    return words


def _ended(rng: random.Random, sentence: str, marks: str) -> str:
    sentence = sentence[0].upper() + sentence[1:]
    if not marks:
        return f"{sentence}."
    return rng.choice([f"{sentence} {marks}.", f"{sentence} {marks}.", f"{sentence}. {marks}", f"{sentence}{marks}."])


def _in_digits(fact: Fact) -> str:
    _, day, month, year = fact.value
    return f"{int(day):02}/{MONTHS.index(month) + 1:02}/{year}"


def _amount_respelt(rng: random.Random, text: str) -> str:
    number, currency = text.rsplit(" ", 1)
    whole, _, cents = number.partition(",")
    digits = re.sub(r"\D", "", whole)
    spaced = f"{int(digits):,}".replace(",", rng.choice([" ", "\u00a0", "\u202f", ".", ""]))
    spaced += f",{cents}" if cents else rng.choice(["", "", ",00"])
    signs = {"euros": ["euros", "€"], "francs": ["francs", "F"]}
    return f"{spaced} {rng.choice(signs[currency])}"
