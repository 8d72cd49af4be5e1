"""Articles without their code: what the rest of a text says of codes gives it, or nothing does."""

import time

import pytest

from legal_rag.law import find_identifiers, with_codes


def codes_in(text):
    return [(one.value, one.code) for one in with_codes(text, find_identifiers(text)) if one.kind == "article"]


FAR = "et le compte de campagne " * 60
TRAVAIL, ELECTORAL, COMMERCE = "code du travail", "code électoral", "code de commerce"
L2314_30 = "l'article L. 2314-30 du code du travail"


@pytest.mark.parametrize(
    ("text", "article", "code"),
    [
        (f"{L2314_30} ; les prescriptions de l'article L. 2314-30 précité", "L2314-30", TRAVAIL),
        (f"{L2314_30} ; en application de l'article L. 2314-32, les juges", "L2314-32", TRAVAIL),
        (f"{L2314_30} ; les articles L. 2314-29 et L. 2314-32.", "L2314-29", TRAVAIL),
        (f"{L2314_30} ; selon l'article R. 2314-24, le juge", "R2314-24", TRAVAIL),
        ("Vu le code électoral, notamment ses articles L.O. 136-1 et L. 52-12 ;", "LO136-1", ELECTORAL),
        ("l'article 1240 du code civil ; la faute au sens de l'article 1240", "1240", "code civil"),
        (
            f"l'article 450 du code de procédure civile et l'article L. 441-1 du code de commerce ; {L2314_30} ;"
            " les articles L. 2314-32 et L. 441-6",
            "L441-6",
            COMMERCE,
        ),
        # Nothing is certain: another number of civil procedure's, two codes, another text's article, an agreement's.
        (f"{L2314_30} ; l'article 1240", "1240", ""),
        (f"{L2314_30} et l'article L. 441-1 du code de commerce ; l'article L. 511-1", "L511-1", ""),
        ("l'article L. 1 du code du travail et l'article L. 1 du code électoral ; l'article L. 1", "L1", ""),
        ("l'article 700 du code de procédure civile ; l'article 700 de la convention collective", "700", ""),
        ("l'article 6 du code civil ; au sens de l'article 6 précité", "6", ""),
        # A code named with the article itself, a road, a number that a typo splits.
        ("l'article L. 113-2 du code des assurances ; le code de la consommation (article L. 113-2)", "L113-2", ""),
        ("l'article R. 414-4 du code de la route ; il circulait sur la R. D. 559", "D559", ""),
        ("l'article L. 211-9 du code des assurances ; la sanction de l'article L. 211 -13", "L211", ""),
        ("l'article L. 211-9 du code des assurances ; l'article L. 124. 3", "L124", ""),
    ],
)
def test_an_article_gets_the_code_that_the_text_leaves_no_doubt_of(text, article, code):
    assert [other for value, other in codes_in(text) if value == article][-1] == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("l'article L. 52-12 du code électoral ; l'article L. 52-15 du code précité", ELECTORAL),
        ("l'article L. 52-12 du code électoral ; conformément à l'article L. 52-15 dudit code", ELECTORAL),
        ("l'article L. 52-12 du code électoral ; renvoyant à l'article L. 52-15 audit code", ELECTORAL),
        # A code within a quotation that has ended, one that has no article in L., one named far above.
        ("selon l'article L. 52-8 du code électoral : « L. 3 du code du travail » ; l'article L. 52-4 du même code",
         ELECTORAL),
        ("l'article L. 1 du code du travail et l'article 450 du code de procédure civile ; l'article L. 2 du même code",
         TRAVAIL),
        (f"l'article L. 52-12 du code électoral {FAR}; l'article L. 2 du même code", ELECTORAL),
        # Of two codes named far above either may be meant; "le code" alone says nothing.
        (f"le code électoral et le code du travail {FAR}; l'article 4 du même code", ""),
        ("l'article L. 52-12 du code électoral ; l'article 4 du code", ""),
    ],
)  # fmt: skip
def test_the_same_code_is_the_last_one_that_can_be_meant(text, code):
    assert find_identifiers(text)[-1].code == code


def test_codes_are_given_in_time_linear_to_the_text():
    def seconds(times):
        text = f"{L2314_30} ; l'article L. 2314-32, l'article L. 52-12 du même code, le code électoral « "
        text *= times
        names = find_identifiers(text)
        started = time.process_time()
        with_codes(text, names)
        return time.process_time() - started

    seconds(10)
    assert seconds(2000) < 24 * seconds(250) + 0.05
