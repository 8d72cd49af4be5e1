"""Articles cited with the abbreviation of their code: "art. 1240 C. civ."."""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from legal_rag.corpus.legal_citations import code_abbreviations
from legal_rag.corpus.patterns.articles import ARTICLE_NUMBER, ArticleNumber, article_value
from legal_rag.corpus.patterns.scanning import BLANK, DASH, Led

# How codes are abbreviated besides the forms of `code_abbreviations`.
_OTHER_ABBREVIATIONS = {
    "code de procédure civile": ["NCPC", "C. pr. civ.", "C. proc. civ."],
    "code de procédure pénale": ["C. pr. pén.", "C. proc. pén."],
    "code de la sécurité sociale": ["C. séc. soc."],
    "code de la consommation": ["C. conso."],
    "code de l'organisation judiciaire": ["C. org. jud."],
    "livre des procédures fiscales": ["LPF"],
    "code électoral": ["C. élec."],
}
_NUMBER_IN_LIST = re.compile(ARTICLE_NUMBER, re.IGNORECASE)
_ARTICLES = rf"(?P<list>{ARTICLE_NUMBER}(?:(?:_,_(?:et |ou )?| (?:et|ou|à) ){ARTICLE_NUMBER}){{0,20}})"


def find_abbreviated_articles(text: str) -> Iterator[ArticleNumber]:
    """Yield the articles cited with an abbreviated code, lists one by one; some twice."""
    names, scans = _codes()
    for scan in scans:
        for match in scan.finditer(text):
            code = next(name for number, name in enumerate(names) if match[f"c{number}"])
            for number in _NUMBER_IN_LIST.finditer(text, match.start("list"), match.end("list")):
                yield ArticleNumber(article_value(number.group()), number.start(), number.end(), code)


class _Codes(NamedTuple):
    """Patterns of articles cited with the abbreviation of their code."""

    names: list[str]  # group 'c0' is the first one's abbreviation
    scans: tuple[Led, ...]


@cache
def _codes() -> _Codes:
    forms = {name: [form, *_OTHER_ABBREVIATIONS.get(name, [])] for name, form in code_abbreviations().items()}
    forms |= {name: some for name, some in _OTHER_ABBREVIATIONS.items() if name not in forms}
    code = "|".join(f"(?P<c{n}>{'|'.join(map(_abbreviation, some))})" for n, some in enumerate(forms.values()))
    words = sorted({form.lower().replace("\u00a0", " ")[:3].strip() for some in forms.values() for form in some})
    return _Codes(
        list(forms),
        (
            Led(rf"(?<![\w.])(?:{code})_,?_(?:articles?|art\.)_{_ARTICLES}", words),
            Led(
                rf"(?<![\w-])(?:articles?|art\.)_{_ARTICLES}(?:_,_al(?:inéa|\.)_\d+)?_,?_(?:du_)?(?:{code})(?!\w)",
                ["article", "art."],
            ),
            Led(
                rf"(?<![\w./-])(?P<list>(?-i:[LRD])\.?{BLANK}?\*?{BLANK}?\d+(?:{DASH}\d+)*)_,?_(?:du_)?(?:{code})(?!\w)",
                [f"{letter}{sign}" for letter in "lrd" for sign in ". 123456789"],
            ),
        ),
    )


def _abbreviation(form: str) -> str:
    """Make a pattern of "C. trav." that takes it without dots and blanks too, but an acronym only in capitals."""
    if form.isupper():
        return rf"(?-i:{form})"
    parts = re.findall(r"[^\W\d_]+", form)
    return r"\.?_".join(map(re.escape, parts)) + r"\.?"
