"""The table of headings: what a heading looks like, how high it ranks, and what must hold beside.

In: nothing. Out: `RULES` for lines, in the order in which they are tried, and `INLINE` for what may stand within one.
A further rule is one more line of the table.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from legal_rag.legal_patterns.parts import BLANK
from legal_rag.structure.marks import (
    ARTICLE,
    BOOK,
    CAPITALS,
    HEADING_CHARS,
    MESSAGE,
    PART,
    STEP,
    SUBJECT,
    WEAK,
)

Match = re.Match[str]

_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞŒŸ", "a-zß-öø-ÿœ"
_END = r"[ \t\u00a0\u202f\r]{0,4}$"
_LINE = rf"[^\n]{{0,{HEADING_CHARS}}}$"  # the rest of a line that is no paragraph


class Rule(NamedTuple):
    """One kind of heading."""

    rank: int
    pattern: re.Pattern[str]  # at the first letter of a line, behind its bullet; its match is the heading
    holds: Callable[[Match], bool] = lambda match: True
    over_text: bool = False  # running text must stand below it, or a heading of a lower rank
    deciding: bool = False  # it opens the operative part


def _line(rank: int, pattern: str, holds: Callable[[Match], bool], *, over_text: bool = False) -> Rule:
    """Return the rule of headings that are whole lines of a certain look."""
    return Rule(rank, re.compile(pattern, re.MULTILINE), holds, over_text)


def _lead(
    rank: int, pattern: str, holds: Callable[[Match], bool] = lambda match: True, *, deciding: bool = False
) -> Rule:
    """Return the rule of headings behind which their line may go on with text."""
    return Rule(rank, re.compile(pattern, re.MULTILINE), holds, deciding=deciding)


# Further words in capitals; the last is no beginning of one in small letters.
_MORE = rf"(?:,?{BLANK}{{1,2}}(?:[{_UPPER}'’/]{{2,30}}|[AÀ])(?![\w'’])){{0,16}}"


def _known(rank: int, phrases: str, *, more: bool = False, alone: bool = False, deciding: bool = False) -> Rule:
    """Return the rule of headings with known words: in capitals whatever else is in their line, in small letters as a
    line of their own.

    Args:
        rank: Their rank.
        phrases: In capitals, with their accents, one from the next by a bar; the longer before those it begins with.
        more: Further words in capitals belong to the heading.
        alone: Nothing but a colon follows them in their line, in capitals too.
        deciding: They open the operative part.
    """
    known = phrases.split(" | ")
    _SPELT.update((_letters(words), words) for words in known)
    spelt = "|".join(map(_phrase, known))
    capitals = rf"(?:{spelt})(?![\w'’]|{BLANK}QU[E'’]){_MORE if more else ''}{BLANK}?[:,.]?"
    line, led = rf"(?i:{spelt}){BLANK}?[:;,.]?(?={_END})", rf"(?i:{spelt}){BLANK}?:"
    return Rule(rank, re.compile(f"{line}|{led if alone else capitals}", re.MULTILINE), deciding=deciding)


_SPELT: dict[str, str] = {}  # the known headings, by their letters alone


def _letters(words: str) -> str:
    return "".join(filter(str.isalpha, words)).upper().translate(str.maketrans("ÉÈÔ", "EEO"))


def put_together(title: str) -> str:
    """Return a known heading whose letters stand apart as it is written otherwise; another title as it is."""
    return _SPELT.get(_letters(title), title)


def _phrase(words: str) -> str:
    """Return a pattern of words in capitals, with accents or without, their letters together or apart."""
    letters = dict(zip("ÉÈEACÔ'", ("[EÉÈ]", "[EÉÈ]", "[EÉÈÊ]", "[AÀ]", "[CÇ]", "[OÔ]", "['’]"), strict=True))
    spelt = [f"{BLANK}?".join(letters.get(letter, letter) for letter in word) for word in words.split()]
    return f"{BLANK}{{1,4}}".join(spelt)


def _is_open(match: Match) -> bool:
    """Tell whether a line ends as no sentence does."""
    line = match.group().rstrip()
    return line[-1] not in ".;," or line.endswith("...")


def _is_title(match: Match) -> bool:
    """Tell whether a line reads as a title: it ends with a colon, or is short and ends with no other sign."""
    line = match.group().rstrip()
    return line.endswith(":") or (len(line) <= 120 and _is_open(match))


_NO_HEADING = re.compile(
    r"R[EÉ]PUBLIQUE|AU NOM DU PEUPLE|COUR|TRIBUNAL|CONSEIL D['’][EÉ]TAT|(?:LE )?CONSEIL (?:DE|CONSTITUTIONNEL,)"
    r"|\w+ ?CHAMBRE|CHAMBRE|AUDIENCE|ARR[EÊ]T|R[OÔ]LE|L[AE] (?:COUR|GREFFI|PR[EÉ]SID)|GREFFI|PR[EÉ]SIDEN|GROSSE|COPIE"
    r"|M\.|MM\.|MMES?\b|MADAME|MONSIEUR|MA[IÎ]TRE|S\.?[AC]\.? |SARL|SAS\b|SC[IP]\b|C ?/|[A-Z]\.[ -]"
    r"|AUX MOTIFS|ALORS|ATTENDU|CONSID[EÉ]RANT|VU\b|QU['’E]|EN CE QU|DIT\b|MAIS\b|ET\b"
)


def _in_capitals(match: Match) -> bool:
    """Tell whether a line in capitals is words, and not the letterhead of a court, a party or a signature."""
    line = match.group()
    letters = sum(map(str.isalpha, line))
    return letters >= 5 and letters >= 0.6 * len(line.strip()) and not _NO_HEADING.match(line) and "..." not in line


def _is_title_in_capitals(match: Match) -> bool:
    return _is_title(match) and _in_capitals(match)


_SAYS = re.compile(
    r"^(?:Vu|Après|Ont)\b|\b(?:a|ont|est|sont|était|étaient|avait|avaient|sera|seront|fait|font|doit|dit|demande"
    r"|demandent|conclut|concluent|sollicite|sollicitent|soutient|soutiennent|prétend|expose|exposent|invoque|oppose"
    r"|réplique|rappelle"
    r"|se|je|il|elle|ils|elles|nous|vous|qui|que)\b|\bqu['’]"
    r"|(?: de| du| des| à| le| la| les| par| pour| avec) ?:?$"
)


def _names_a_part(match: Match) -> bool:
    """Tell whether a short line names what follows rather than says something of it."""
    first, *others = match.group().split()
    small = sum(word[0].islower() for word in others)
    return (
        2 * small > len(others)
        and not first.endswith(("ant", "..."))
        and "...," not in first
        and not _SAYS.search(match.group())
    )


_ORDINAL = (
    r"(?:[Pp]remi[eè]re?|[Ss]econde?|[A-ZÀ-Ý]?[a-zà-ÿ]{2,9}i[eè]me|[Dd]erni[eè]re?|[Uu]nique"
    r"|PREMI[EÈ]RE?|SECONDE?|[A-Z]{3,9}I[EÈ]ME|DERNI[EÈ]RE?|UNIQUE)"
)
_STEPS = "(?i:résolution|resolution|moyen|partie|branche|grief|question|point|délibération)s?"
_ORDER = r"(?:\d{1,3}(?:er|ER)?|[IVXLC]{1,7}|[A-Z]|(?i:premier|première|préliminaire|unique))(?![\w'’])"
_BOOKS = ("PARTIE", "LIVRE", "TITRE", "SOUS-TITRE", "CHAPITRE", "SECTION", "SOUS-SECTION", "PARAGRAPHE")
_ARTICLE_N = rf"(?:ARTICLE|Article|Art\.){BLANK}{{1,3}}{_ORDER}{BLANK}?"
_ABOUT = r"(?:(?:(?:Mais|MAIS|Et|ET) )?(?i:sur)|(?i:en ce qui concerne|quant à|quant aux?))\b"
_MAIL = "(?:À|A|To|Date|Envoyé|Sent|Cc|Copie)"

RULES: tuple[Rule, ...] = (
    *(_lead(n, rf"#{{{n}}}(?!#){BLANK}+[^\n]{{1,{HEADING_CHARS}}}") for n in range(1, 7)),
    _lead(MESSAGE, rf"(?:De|From|Expéditeur){BLANK}?:{_LINE}(?=\n{_MAIL}{BLANK}?:)"),
    _lead(CAPITALS, rf"(?:Objet|OBJET|Subject|Sujet){BLANK}?:{BLANK}?\S{_LINE}"),
    *(_line(BOOK + n, rf"(?i:{book}){BLANK}{{1,3}}{_ORDER}{_LINE}", _is_title) for n, book in enumerate(_BOOKS)),
    _known(PART, "PAR CES MOTIFS", deciding=True),
    _lead(PART, rf"Par{BLANK}ces{BLANK}motifs\b", deciding=True),
    _known(PART, "LE CONSEIL CONSTITUTIONNEL DÉCIDE | DÉCIDE | ORDONNE | DISPOSITIF", alone=True, deciding=True),
    _lead(PART, rf"(?i:moyens? (?:de cassation )?annex[ée]e?s?)\b{_LINE}(?:\s{{1,4}}Moyens? produits?\b{_LINE})?"),
    _line(PART, rf"(?i:moyens? produits?)\b{_LINE}", _is_title),
    _known(PART, "MOTIFS DE LA DÉCISION | MOTIFS DE L'ARRÊT | MOTIFS | VISAS | DISCUSSION", more=True),
    _known(
        PART,
        "FAITS ET PROCÉDURE | EXPOSÉ DU LITIGE | EXPOSÉ DES FAITS | EXPOSÉ | RAPPEL DES FAITS | LES FAITS | FAITS",
        more=True,
    ),
    _known(PART, "LA PROCÉDURE | PROCÉDURE | PRÉTENTIONS DES PARTIES | PRÉTENTIONS", more=True),
    _known(PART, "EXAMEN DU MOYEN | EXAMEN DES MOYENS | EXAMEN DES QUESTIONS | EXAMEN DU POURVOI"),
    _known(PART, "PORTÉE ET CONSÉQUENCES DE LA CASSATION | SUR CE | SUR QUOI | CONSIDÉRANT CE QUI SUIT"),
    _line(PART, rf"(?:ANNEXE|Annexe)S?(?:{BLANK}{_ORDER})?{_LINE}", _is_title),
    _known(STEP, "ÉNONCÉ DU MOYEN | ÉNONCÉ DES MOYENS | RÉPONSE DE LA COUR"),
    _known(STEP, "RECEVABILITÉ DU MOYEN | BIEN-FONDÉ DU MOYEN"),
    _known(WEAK, "APPELANT | APPELANTE | APPELANTS | APPELANTES | INTIMÉ | INTIMÉE | INTIMÉS | INTIMÉES"),
    _known(WEAK, "DEMANDEUR | DEMANDEURS | DEMANDERESSE | DÉFENDEUR | DÉFENDEURS | DÉFENDERESSE | PARTIES"),
    _known(WEAK, "COMPOSITION DE LA COUR | COMPOSITION DU TRIBUNAL | DÉBATS", more=True),
    _line(WEAK, rf"(?:ARR[ÊE]T|(?i:entre(?: les soussign[ée]e?s)?)){BLANK}?:?(?={_END})", _is_title),
    _line(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|[{_UPPER}]|(?={_END})){_LINE}", _is_title),
    _lead(ARTICLE, rf"{_ARTICLE_N}(?:[.:–—-]|(?={BLANK}[{_UPPER}]))"),
    _line(SUBJECT, rf"{_ABOUT}{_LINE}(?!\n[{_LOWER}])", _is_open),
    _lead(SUBJECT, rf"{_ABOUT}[^\n:;]{{3,150}}:(?={BLANK}[{_UPPER}«])"),
    _lead(SUBJECT, rf"SUR{_MORE}(?={BLANK}[{_UPPER}][{_LOWER}])"),
    _lead(SUBJECT, rf"(?i:au fond|en la forme){BLANK}?[:,](?={_END})"),
    _line(SUBJECT, rf"(?:{_ORDINAL}{BLANK}{_STEPS}|(?i:moyen){BLANK}{_ORDINAL})\b[^\n]{{0,60}}$", _is_title),
    _line(CAPITALS, rf"[{_UPPER}][^{_LOWER}\n]{{3,159}}$", _is_title_in_capitals, over_text=True),
    _lead(CAPITALS, rf"[{_UPPER}][^{_LOWER}\d\n:]{{4,120}}:(?={BLANK}\S)", _in_capitals),
    _line(WEAK, rf"[{_UPPER}][^\n:;]{{3,80}}:(?={_END})", _names_a_part),
    _line(WEAK, rf"[{_UPPER}][{_LOWER}]+(?:[ '’-][^\W\d_]+){{1,9}}(?={_END})", _names_a_part, over_text=True),
)

# Known headings that stand within a line where a text has lost its line breaks: in capitals, behind a sentence.
INLINE: tuple[Rule, ...] = (
    _known(PART, "PAR CES MOTIFS", deciding=True),
    _known(PART, "EXPOSÉ DU LITIGE | EXPOSÉ DES FAITS | FAITS ET PROCÉDURE | SUR QUOI | SUR CE"),
    _known(PART, "MOTIFS DE LA DÉCISION | MOTIFS DE L'ARRÊT"),
    _lead(PART, "(?:MOYENS? ANNEXES?|Moyens? annexés?) au présent arrêt"),
)
