"""What a text refers to: decisions with what is said of them, articles with their codes, quotations with sources."""

import time

import pytest

from legal_rag.citations.references import find_references


def only(text):
    (decision,) = find_references(text).decisions
    return decision


def said(decision):
    names = [one.value for one in decision.names]
    return names, decision.court, str(decision.date.value) if decision.date else ""


@pytest.mark.parametrize(
    ("text", "court"),
    [
        ("(Cass. soc., 9 janv. 2018, n° 16-86.735)", "Cass. soc."),
        ("Par un arrêt du 9 janvier 2018 (pourvoi n° 16-86.735), la chambre sociale statue.", "chambre sociale"),
        ("L'arrêt n° 16-86.735 rendu par la chambre sociale le 9 janvier 2018 est publié.", "chambre sociale"),
        ("Soc., 9 janvier 2018, pourvoi n° 16-86.735, Bull. V, n° 12", "Soc."),
        ("**Cass. soc.**, 9 **janvier** 2018, *n° 16-86.735*", "Cass. soc."),
        ("C. cass., soc., 09/01/2018, n°16-86735", "C. cass., soc."),
        (
            "la Cour de cassation, chambre sociale, a jugé le 9 janvier 2018 (n° 16-86.735)",
            "Cour de cassation, chambre sociale",
        ),
        (
            "La chambre sociale de la Cour de cassation juge par arrêt du 9 janvier 2018, pourvoi n° 16-86.735, que",
            "chambre sociale de la Cour de cassation",
        ),
    ],
)
def test_court_date_and_number_of_one_citation_belong_together(text, court):
    assert said(only(text)) == (["16-86735"], court, "2018-01-09")


@pytest.mark.parametrize(
    "text",
    [
        "La cour d'appel de Nîmes, 7 juin 2019, l'a jugé.",
        "La cour d'appel de Nîmes (7 juin 2019) l'admet.",
        "La cour d'appel de Nîmes, le 7 juin 2019, a jugé que le bail est nul.",
        "La cour d'appel de Nîmes a jugé le 7 juin 2019 que le bail est nul.",
        "La cour d’appel de Nîmes a, le 7 juin 2019, clairement rejeté la demande.",
        "La cour d'appel de Nîmes, qui l'a confirmé en référé le vendredi 7 juin 2019, en tire les conséquences.",
        "La cour d'appel de Nîmes n'a jamais dit le 7 juin 2019 que le bail est nul.",
        "La cour d'appel de Nîmes s'est prononcée le 7 juin 2019.",
        "La cour d'appel de Nîmes jugeait déjà le 07/06/2019 que le bail est nul.",
        "Le bail est nul, ainsi que l'a rappelé la cour d'appel de Nîmes le 7 juin 2019 : « La nullité »",
        "La solution retenue par la cour d'appel de Nîmes le 7 juin 2019 est isolée.",
        "Il a été jugé le 7 juin 2019 par la cour d'appel de Nîmes que le bail est nul.",
        "Le 7 juin 2019, la cour d'appel de Nîmes a jugé que le bail est nul.",
    ],
)
def test_prose_that_says_when_a_court_judged_names_a_decision(text):
    names, court, day = said(only(text))
    assert (names, court.replace("’", "'"), day) == ([], "cour d'appel de Nîmes", "2019-06-07")


@pytest.mark.parametrize(
    "text",
    [
        "La cour d'appel de Nîmes, saisie le 7 juin 2019, est compétente.",
        "La cour d'appel de Nîmes, le 7 juin 2019, était saisie.",
        "L'audience de la cour d'appel de Nîmes a eu lieu le 7 juin 2019.",
        "Appel devant la cour d'appel de Nîmes, 7 juin 2019.",
        "La cour d'appel de Nîmes a retenu le 7 juin 2019 comme date de la rupture.",
        "La cour d'appel de Nîmes a rappelé que le bail du 7 juin 2019 est nul.",
        "La cour d'appel de Nîmes a annulé le contrat conclu le 7 juin 2019.",
        "Le bail a été rompu le 7 juin 2019, la cour d'appel de Nîmes a jugé que c'est à tort.",
        "Le 7 juin 2019, la cour d'appel de Nîmes a été saisie.",
        "Le grief présenté à la cour d'appel de Nîmes le 7 juin 2019, a été écarté.",
        "La solution de la cour d'appel de Nîmes, cassée le 7 juin 2019, est isolée.",
        "La solution de la cour d'appel de Nîmes, le 7 juin 2019, cassée depuis, est isolée.",
        "La mesure d'instruction ordonnée le 7 juin 2019 par la cour d'appel de Nîmes est achevée.",
    ],
)
def test_a_day_on_which_a_court_did_not_judge_names_no_decision(text):
    assert find_references(text).decisions == []


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        (
            "V. Cass. soc., 9 janv. 2018, n° 16-86.735, Cass. com., 3 mars 2015, n° 14-12.345.",
            [(["16-86735"], "Cass. soc.", "2018-01-09"), (["14-12345"], "Cass. com.", "2015-03-03")],
        ),
        (
            "Pourvois n° 16-86.735 du 9 janvier 2018, n° 14-12.345 du 3 mars 2015.",
            [(["16-86735"], "", "2018-01-09"), (["14-12345"], "", "2015-03-03")],
        ),
        (
            "Cass. 2e civ., 1er déc. 2022, nos 20-20.123 et 20-20.124",
            [(["20-20123"], "Cass. 2e civ.", "2022-12-01"), (["20-20124"], "Cass. 2e civ.", "2022-12-01")],
        ),
        (
            "Cons. const., 29 nov. 2007, n° 2007-3888/3964 AN",
            [(["2007-3888/3964", "2007-3888", "2007-3964"], "Cons. const.", "2007-11-29")],
        ),
        (
            "La Cour de cassation a cassé l'arrêt de la cour d'appel de Lyon (n° 16-86.735).",
            [(["16-86735"], "", "")],
        ),
        ("l'arrêt de la cour d'appel de Paris du 3 mars 2016", [([], "cour d'appel de Paris", "2016-03-03")]),
        (
            "| CA Nîmes | 2 oct. 2007 | 05/01403 |\n| Cass. soc. | 9 janv. 2018 | 16-86.735 |",
            [(["05/1403"], "CA Nîmes", "2007-10-02"), (["16-86735"], "Cass. soc.", "2018-01-09")],
        ),
        ("CA Nîmes\n2 octobre 2007\nn° 05/01403", [(["05/1403"], "CA Nîmes", "2007-10-02")]),
        ("CE, 3 juin 2021, Commune de Saint-Aubrac, n° 498765", [(["498765"], "CE", "2021-06-03")]),
        (
            "La Cour de cassation, dans un arrêt très remarqué du 9 janvier 2018 (n° 16-86.735), le dit.",
            [(["16-86735"], "Cour de cassation", "2018-01-09")],
        ),
        (
            "CA Douai, 21 juin 2017, n° 15/02468, cassé par Cass. soc., 9 janv. 2018, n° 16-86.735",
            [(["15/2468"], "CA Douai", "2017-06-21"), (["16-86735"], "Cass. soc.", "2018-01-09")],
        ),
    ],
)
def test_each_decision_of_a_sentence_has_its_own_names_court_and_date(text, decisions):
    assert [said(one) for one in find_references(text).decisions] == decisions


@pytest.mark.parametrize(
    ("rest", "names"),
    [
        ("Cass. soc., 9 janv. 2018, préc.", ["16-86735"]),
        ("L'arrêt du 9 janvier 2018 le dit.", ["16-86735"]),
        ("Ibid.", ["16-86735"]),
        ("Cass. com., 9 janv. 2018, préc.", []),  # of another chamber
        ("L'arrêt du 3 mars 2016 est attaqué.", []),
    ],
)
def test_a_decision_cited_in_full_before_is_known_again(rest, names):
    *_, last = find_references(f"Cass. soc., 9 janv. 2018, n° 16-86.735. {rest}").decisions
    assert [name.value for name in last.names] == names


def test_several_decisions_of_one_day_are_not_taken_for_one():
    text = "Cass. soc., 9 janv. 2018, n° 16-86.735. Cass. soc., 9 janv. 2018, n° 16-86.736. L'arrêt du 9 janvier 2018."
    assert find_references(text).decisions[-1].names == ()


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("Cass. soc., 9 janv. 2018, n° 16-86.735, § 12", 12),
        ("Cass. soc., 9 janv. 2018, n° 16-86.735, FS-P+B, pt. 4 : « le salarié doit être payé »", 4),
        ("le considérant 5 de l'arrêt n° 16-86.735", 5),
        ("Cass. soc., 9 janv. 2018 (n° 16-86.735), points 7 et 8", 7),
        ("Cass. soc., 9 janv. 2018, n° 16-86.735, p. 4", 0),
    ],
)
def test_the_numbered_paragraph_that_is_meant_is_read(text, point):
    assert find_references(text).decisions[0].point == point


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Depuis l'arrêt Derichebourg, la règle est claire.", ["Derichebourg"]),
        ("L'arrêt Perruche (Cass. ass. plén., 17 nov. 2000, n° 99-13.701) est connu.", []),
        ("Arrêt Cour de cassation.", []),
        ("L'arrêt attaqué.", []),
    ],
)
def test_a_decision_may_be_called_by_a_party(text, names):
    assert [one.party for one in find_references(text).decisions if one.party] == names


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("Cass. soc., 9 janv. 2018, n° 16-867-35", ["n° 16-867-35"]),
        ("La Cour de cassation, pièce n° 12-04.", []),
        ("La facture n° 123456-789 est due.", []),
        ("Cass. soc., 9 janv. 2018, n° 16-86.735", []),
    ],
)
def test_what_looks_like_a_number_of_a_decision_and_is_none_is_unread(text, unread):
    assert [text[one.start : one.end] for one in find_references(text).unread] == unread


@pytest.mark.parametrize(
    "text",
    [
        "Le pourvoi n° 16-86.735 formé contre l'arrêt du 3 mars 2016 est rejeté.",
        "La décision, enregistrée le 3 mars 2016 sous le n° 2007-3888 AN, est rendue.",
        "Sous le n° 16-86.735, l'arrêt rendu le 3 mars 2016 est contesté.",
        "L'arrêt n° 16-86.735 a jugé que le salarié, licencié le 3 mars 2016, l'était sans cause.",
        "Le salarié a été licencié le 3 mars 2016. L'arrêt n° 16-86.735 est clair.",
    ],
)
def test_a_date_of_something_else_is_not_the_decisions(text):
    numbered = [one for one in find_references(text).decisions if one.names]
    assert [one.date for one in numbered] == [None]


@pytest.mark.parametrize(
    "text",
    [
        "La loi n° 2016-1088 du 8 août 2016 et le décret n° 2019-1234.",
        "Article 29-4° de la loi du 5 juillet 1985.",
        "La facture n° 123456 du 3 mars 2016.",
        "Le 3 mars 2016, la cour d'appel de Paris tenait audience.",
    ],
)
def test_numbers_and_dates_of_other_things_name_no_decision(text):
    assert find_references(text).decisions == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("La Cour de cassation a rejeté le pourvoi (n° 16-86.735).", ["rejet"]),
        ("La Cour de cassation a cassé l'arrêt qui avait rejeté la demande (n° 16-86.735).", ["cassation"]),
        ("Le pourvoi en cassation n° 16-86.735 est connu.", []),
        ("La Cour n'a pas cassé l'arrêt (n° 16-86.735).", []),
        ("« Elle casse l'arrêt », écrit-il (n° 16-86.735).", []),
        ("Le Conseil a annulé l'élection (n° 2007-3888 AN).", ["annulation"]),
        ("La Cour a cassé l'arrêt (n° 16-86.735), puis rejeté (n° 14-12.345).", []),
        ("Cass. soc., 9 janv. 2018, n° 16-86.735 (rejet) ; Cass. com., 3 mars 2015, n° 14-12.345.", ["rejet"]),
        ("cassé par Cass. soc., 9 janv. 2018, n° 16-86.735", ["cassation"]),
    ],
)
def test_outcomes_are_those_that_the_text_itself_states_of_one_decision(text, kinds):
    assert [one.kind for one in find_references(text).decisions[0].outcomes] == kinds


@pytest.mark.parametrize(
    ("text", "articles"),
    [
        ("articles L. 1152-1 et L. 1152-2 du code du travail", ["L1152-1", "L1152-2"]),
        ("C. trav., art. L. 1237-11", ["L1237-11"]),
        ("art. L. 1237-11 C. trav.", ["L1237-11"]),
        ("L. 1237-11 du C. trav.", ["L1237-11"]),
        ("l'article L. 1237-11 du code du travail et l'article L. 1235-3", ["L1237-11", "L1235-3"]),
        ("l'article L. 1237-11 du code du travail, l'article R. 1232-1 du même code", ["L1237-11", "R1232-1"]),
    ],
)
def test_articles_are_found_with_their_code(text, articles):
    found = find_references(text).articles
    assert [one.value for one in found] == articles
    assert {one.code for one in found} <= {"code du travail"}


def test_the_version_that_an_article_is_said_to_be_of_is_read():
    said = "dans sa rédaction applicable au 3 mars 2012"
    text = f"L'article L. 1237-11 du code du travail, {said}, et l'article L. 1237-12 le disent."
    first, second = find_references(text).articles
    assert first.wording is not None
    assert text[first.wording.start : first.wording.end] == said
    assert second.wording is None


def test_an_article_without_a_code_is_left_to_be_said_unread():
    assert [(article.code, article.is_guess) for article in find_references("l'article L. 1237-11").articles] == [
        ("", True)
    ]
    assert find_references("D. 2023. 1841").articles == []


def test_the_source_in_parentheses_behind_a_quotation_comes_first():
    text = (
        "Selon l'arrêt n° 14-12.345, la règle est claire : « le licenciement est privé de cause réelle et sérieuse » "
        "(Cass. soc., 9 janv. 2018, n° 16-86.735)."
    )
    (quotation,) = find_references(text).quotations
    assert [one.names[0].value for one in quotation.sources] == ["16-86735", "14-12345"]


def test_a_sentence_that_goes_on_about_the_court_quotes_the_decision_named_before():
    text = "Cass. soc., 9 janv. 2018, n° 16-86.735. Elle énonce que « le salarié doit être informé par écrit »."
    (quotation,) = find_references(text).quotations
    assert quotation.sources[0].names[0].value == "16-86735"
    assert find_references("Il parle de « faute grave ».").quotations == []  # short, and without a source


@pytest.mark.parametrize(
    "text",
    [
        "L. 1233-3, " * 2000,
        "«" * 100_000,
        "Cass. soc. " + "du de la " * 20_000,
        "1 2 3 " * 50_000,
        "\n" * 200_000,
        "[" * 100_000 + "…]",
        "cassant l'arrêt " * 4000,
    ],
)
def test_reading_takes_linear_time(text):
    started = time.process_time()
    found = find_references(text)
    assert time.process_time() - started < 15
    assert found.decisions == []


@pytest.mark.parametrize(
    ("text", "value", "code"),
    [
        ("L'article premier de la loi n° 65-557 du 10 juillet 1965 s'applique.", "1", "loi n° 65-557"),
        ("L'article premier de la loi n° 65-557 s'applique.", "1", "loi n° 65-557"),
        ("En l'absence de plan, art. L. 1255-1", "L1255-1", ""),
        ("À défaut d'accord, l'article L. 1255-1 s'applique.", "L1255-1", ""),
        ("Selon le plan, art. L. 12", "L12", "plan"),
        ("Un accord du 3 mars 2016, en son article L. 12, le prévoit.", "L12", "accord"),
    ],
)
def test_an_article_is_of_the_text_that_it_is_said_to_be_of(text, value, code):
    assert [(one.value, one.code) for one in find_references(text).articles] == [(value, code)]
