"""What lawyers type: references in any form, and courts with a time."""

from datetime import date

import pytest

from legal_rag.law import find_decisions_of, find_typed_identifiers, find_typed_statutes
from legal_rag.law.keys import ParsedQuery, candidate_keys, rectification_keys


@pytest.mark.parametrize(
    ("typed", "value", "code"),
    [
        ("700 CPC", "700", "code de procédure civile"),
        ("700 cpc", "700", "code de procédure civile"),
        ("cpc 700", "700", "code de procédure civile"),
        ("art. 1240 c. civ.", "1240", "code civil"),
        ("1240 c civ", "1240", "code civil"),
        ("1240 cc", "1240", "code civil"),
        ("code civil 1240", "1240", "code civil"),
        ("article 1240 code civil", "1240", "code civil"),
        ("1382 ancien code civil", "1382", "code civil"),
        ("1641 et s. c. civ.", "1641", "code civil"),
        ("L1233-4", "L1233-4", ""),
        ("l. 1233-4 ct", "L1233-4", "code du travail"),
        ("c. trav. L1233-4", "L1233-4", "code du travail"),
        ("6 § 1 CEDH", "6", "convention européenne des droits de l'homme"),
    ],
)
def test_an_article_is_read_in_any_form(typed, value, code):
    assert [(name.kind, name.value, name.code) for name in find_typed_identifiers(typed)] == [("article", value, code)]


@pytest.mark.parametrize(
    ("typed", "articles"),
    [
        ("article 22 de la loi n° 65-557 du 10 juillet 1965", [("22", "loi n° 65-557")]),
        ("que dit l'article 10-1, 2°, de la loi du 10 juillet 1965 ?", [("10-1", "loi du 1965-07-10")]),
        ("loi du 10 juillet 1965, article 22", [("22", "loi du 1965-07-10")]),
        ("art 22 loi 65-557", [("22", "loi n° 65-557")]),
        ("art. 22 de la L. n° 65-557 du 10 juill. 1965", [("22", "loi n° 65-557")]),
        ("articles 3 et 4 de la loi n° 89-462", [("3", "loi n° 89-462"), ("4", "loi n° 89-462")]),
        ("article premier de la loi Badinter", [("1", "loi n° 85-677")]),
        ("article 1er du décret n° 67-223 du 17 mars 1967", [("1", "décret n° 67-223")]),
        ("article 75-I de la loi n° 91-647", [("75", "loi n° 91-647")]),
        (
            "700 cpc et article 75 de la loi du 10 juillet 1991",
            [("700", "code de procédure civile"), ("75", "loi du 1991-07-10")],
        ),
        ("article 3 de la loi Lang", [("3", "loi n° 85-660"), ("3", "loi n° 81-766")]),
        ("l'article 12 de mon contrat", [("12", "")]),
    ],
)
def test_an_article_is_of_the_law_beside_it(typed, articles):
    query = ParsedQuery(typed)
    assert [(name.value, name.code) for name in query.identifiers if name.kind == "article"] == articles
    for name, keys in zip(query.identifiers, candidate_keys(query), strict=True):
        if name.code.startswith(("loi", "décret")):  # nor by its number alone, which other laws have
            day_alone = [
                f"article:{name.value} {law.nature} n° ? du {law.date}"
                for law in query.statutes
                if law.key == name.code
            ]
            assert keys[0] == f"article:{name.value} {name.code}"
            assert keys[1:] in ([], day_alone)


def test_an_article_without_its_letter_may_be_of_any_part_of_a_code():
    assert [name.value for name in find_typed_identifiers("1233-4")] == ["L1233-4", "R1233-4", "D1233-4"]


@pytest.mark.parametrize(
    "typed",
    [
        "en 12/2018",
        "12 CP de congés",
        "réforme en 2008 code du travail",
        "150000 euros",
        "1 200 000 €",
        "on m'a versé 100000",
        "facture 1234567 impayée",
        "virement 1234567890",
    ],
)
def test_a_figure_that_counts_something_is_no_reference(typed):
    assert find_typed_identifiers(typed) == []


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("2217919", {"pourvoi:22-17919", "number:2217919"}),
        ("22.17.919", {"pourvoi:22-17919"}),
        ("22 17 919", {"pourvoi:22-17919"}),
        ("H 22-17.919", {"pourvoi:22-17919"}),
        ("H2217919", {"pourvoi:22-17919", "number:2217919"}),
        ("94-17144", {"pourvoi:94-17144", "rg:94/17144"}),
        ("93-1213", {"number:1993-1213", "cc:1993-1213"}),
        ("07/2373", {"rg:07/2373"}),
        ("2017-5126/2017-5364", {"cc:2017-5126", "cc:2017-5364"}),
        ("2022004346", {"number:2022004346"}),
        ("que juge l'arrêt 2217919 ?", {"pourvoi:22-17919"}),
        ("le pourvoi 2217919 est-il fondé", {"pourvoi:22-17919"}),
    ],
)
def test_a_decision_is_read_by_any_form_of_its_number(typed, keys):
    assert keys <= {key for tried in candidate_keys(ParsedQuery(typed)) for key in tried}


def test_the_keys_of_rectifications_follow_those_of_a_decision():
    assert rectification_keys(["an:1993-1213", "cc:1993-1213"])[:3] == [
        "cc:1993-1213R",
        "cc:1993-1213R1",
        "cc:1993-1213R2",
    ]
    assert rectification_keys(["pourvoi:22-17919", "cc:1993-1213R"]) == []


@pytest.mark.parametrize("typed", ["loi Badinter", "loi du 5 juillet 1985", "loi 5 juillet 1985", "loi n° 85-677"])
def test_a_statute_is_read_by_name_number_or_date(typed):
    assert [law.date for law in find_typed_statutes(typed)] == [date(1985, 7, 5)]
    assert "date:1985-07-05" in ParsedQuery(typed).keys


def year(first, last=None):
    return date(first, 1, 1), date(last or first, 12, 31)


@pytest.mark.parametrize(
    ("typed", "court", "first", "last"),
    [
        ("chambre sociale en 2018", "chambre sociale", *year(2018)),
        ("faute grave chambre sociale en 2018", "chambre sociale", *year(2018)),
        ("2018 chambre sociale", "chambre sociale", *year(2018)),
        ("cass soc 2018", "cass soc", *year(2018)),
        ("Cass. soc., 25 nov. 2020", "Cass. soc.", date(2020, 11, 25), date(2020, 11, 25)),
        ("Cour d'appel d'Aix, mars 2008", "Cour d'appel d'Aix", date(2008, 3, 1), date(2008, 3, 31)),
        ("ca aix fév. 2008", "ca aix", date(2008, 2, 1), date(2008, 2, 29)),
        ("cour d'appel de lyon 2007", "cour d'appel de lyon", *year(2007)),
        ("Conseil constitutionnel 2012-2014", "Conseil constitutionnel", *year(2012, 2014)),
        ("cour de cassation entre 2010 et 2015", "cour de cassation", *year(2010, 2015)),
        ("cour de cassation depuis 2015", "cour de cassation", date(2015, 1, 1), None),
        ("cour de cassation après 2015", "cour de cassation", date(2016, 1, 1), None),
        ("cour de cassation avant 2015", "cour de cassation", None, date(2014, 12, 31)),
        ("soc. 2018 faute", "soc.", *year(2018)),
        ("ca nimes 2018", "ca nimes", *year(2018)),
        ("chambre sociale 2018 ou 2019", "chambre sociale", *year(2018, 2019)),
        ("cour de cassation de janvier à mars 2008", "cour de cassation", date(2008, 1, 1), date(2008, 3, 31)),
        ("cour de cassation avant mars 2008", "cour de cassation", None, date(2008, 2, 29)),
        ("cour de cassation jusqu'en 2008", "cour de cassation", None, date(2008, 12, 31)),
        ("cour de cassation du 1er mai 2008 au 4 juin 2008", "cour de cassation", date(2008, 5, 1), date(2008, 6, 4)),
        ("civ. 3e, 16 nov. 2023", "civ. 3e", date(2023, 11, 16), date(2023, 11, 16)),
        (
            "Cour d'appel Aix en Provence janvier 2009",
            "Cour d'appel Aix en Provence",
            date(2009, 1, 1),
            date(2009, 1, 31),
        ),
        ("tribunal judiciaire de nanterre 2022", "tribunal judiciaire de nanterre", *year(2022)),
        ("CA Paris", "CA Paris", None, None),
        ("avant le 1er mars 2010 Cour de cassation", "Cour de cassation", None, date(2010, 2, 28)),
        ("Cour de cassation après le 1er mars 2010", "Cour de cassation", date(2010, 3, 2), None),
        ("Cour de cassation depuis le 1er mars 2010", "Cour de cassation", date(2010, 3, 1), None),
        ("Cour de cassation jusqu'au 1er mars 2010", "Cour de cassation", None, date(2010, 3, 1)),
        ("cour de cassation de novembre à janvier 2008", "cour de cassation", date(2007, 11, 1), date(2008, 1, 31)),
        ("Cour de cassation de 2015 à 2010", "Cour de cassation", *year(2010, 2015)),
        ("cour de cassation du 4 juin 2008 au 1er mai 2008", "cour de cassation", date(2008, 5, 1), date(2008, 6, 4)),
        ("cour d'appel depuis 2005", "cour d'appel", date(2005, 1, 1), None),
        ("cour d'appel avant 2006", "cour d'appel", None, date(2005, 12, 31)),
        ("cour d'appel de 2005", "cour d'appel", *year(2005)),
        ("tribunal judiciaire Nanterre 2022", "tribunal judiciaire Nanterre", *year(2022)),
        ("arrêt du 25 novembre 2020", "", date(2020, 11, 25), date(2020, 11, 25)),
    ],
)
def test_a_court_with_a_time_designates_its_decisions_where_it_is_typed(typed, court, first, last):
    assert [one[:3] for one in find_decisions_of(typed, in_prose=False)] == [(court, first, last)]


@pytest.mark.parametrize(
    ("typed", "court"),
    [
        ("cour d'appel harcèlement 2005 preuve", "cour d'appel"),
        ("conseil de prud'hommes faute 2005", "conseil de prud'hommes"),
        ("tribunal de commerce Procédure 2005", "tribunal de commerce"),
        ("tribunal de commerce nanterre clause 2005", "tribunal de commerce nanterre"),
        ("Conseil constitutionnel élections législatives 2005", "Conseil constitutionnel"),
    ],
)
def test_a_word_behind_a_court_is_no_town_and_the_only_year_is_its_decisions(typed, court):
    assert [one[:3] for one in find_decisions_of(typed, in_prose=False)] == [(court, *year(2005))]


@pytest.mark.parametrize(
    "typed",
    [
        "sécurité sociale 2019",
        "responsabilité civile 2018",
        "mamoudzou 2008 accident",
        "Conseil constitutionnel élections de 1993",
        "Conseil constitutionnel loi 83-520 de 1983",
        "Conseil constitutionnel article 1993",
        "CA Lyon accident 2004 jugement 2006",
        "CC 1988 tract",
    ],
)
def test_a_year_of_something_else_designates_no_decisions(typed):
    assert find_decisions_of(typed, in_prose=False) == []


@pytest.mark.parametrize(
    "question",
    [
        "Qu'a jugé la chambre sociale en 2018 sur la faute grave ?",
        "Que disent les arrêts rendus par la chambre sociale en 2018 ?",
        "Selon la chambre sociale en 2018, que vaut ce reçu ?",
        "Faute grave, chambre sociale, 2018 : quelle preuve ?",
        "D'après les arrêts de la chambre sociale en 2018, que vaut ce reçu ?",
        "Quels arrêts de la chambre sociale en 2018 portent sur la faute grave ?",
        "Cite-moi les décisions rendues par la chambre sociale en 2018.",
        "Quelle est la jurisprudence de la chambre sociale en 2018 ?",
    ],
)
def test_a_question_designates_the_decisions_it_asks_about(question):
    assert [one[1:3] for one in find_decisions_of(question)] == [year(2018)]


def test_the_decision_of_a_court_on_a_day_is_designated_without_a_verb():
    question = "L'arrêt de la chambre sociale du 8 novembre 2016 et l'arrêt de la chambre sociale du 8 novembre 2022 ?"
    assert [(one.first, one.last) for one in find_decisions_of(question)] == [
        (date(2016, 11, 8), date(2016, 11, 8)),
        (date(2022, 11, 8), date(2022, 11, 8)),
    ]


@pytest.mark.parametrize(
    "question",
    [
        "L'arrêt de la cour d'appel de Lyon du 3 mars 2019 m'a débouté, que faire ?",
        "Licencié en mars 2018, puis-je saisir le conseil de prud'hommes ?",
        "J'ai saisi le conseil de prud'hommes de Lyon en mars 2018, que faire ?",
        "Que vaut l'arrêt du 3 mars 2021 cité par la Cour de cassation en 2022 ?",
        "Condamné par la cour d'appel d'Aix en 2008, puis-je me pourvoir ?",
        "Le tribunal de commerce de Lyon a ouvert la procédure en 2018 : qui paie ?",
        "Décision de la cour d'appel en 2007 non signifiée, est-elle exécutoire ?",
        "Un arrêt de la cour d'appel de 2007 m'a débouté, que faire ?",
        "Jugement tribunal judiciaire de Lyon 2022 : comment faire appel ?",
        "Un arrêt de cour d'appel de 2007 m'a débouté, que faire ?",
        "Les ordonnances de la cour d'appel en 2008 sont-elles susceptibles de recours ?",
        "Quel recours contre un jugement du tribunal judiciaire de Lyon en 2022 ?",
        "La Cour de cassation admet-elle la preuve déloyale ?",
    ],
)
def test_a_court_or_a_date_that_is_the_askers_designates_nothing(question):
    assert find_decisions_of(question) == []


@pytest.mark.parametrize(
    ("typed", "articles"),
    [
        ("1384 al. 1er C. civ.", [("1384", "code civil")]),
        ("art 1382 et 1383 code civil", [("1382", "code civil"), ("1383", "code civil")]),
        ("1233-3 code du travail", [(f"{letter}1233-3", "code du travail") for letter in "LRD"]),
        ("1792-4-3 code civil", [("1792-4-3", "code civil")]),
        ("CC 1988 tract", []),
        ("art. 1988 CC", [("1988", "code civil")]),
    ],
)
def test_an_article_is_read_as_lawyers_shorten_it(typed, articles):
    assert [(name.value, name.code) for name in find_typed_identifiers(typed)] == articles


def test_an_ordinance_is_read_shortened_and_by_its_usual_name():
    assert [law.key for law in find_typed_statutes("ord. 7 nov. 1958 art. 38")] == ["ordonnance du 1958-11-07"]
    assert "ordonnance n° 2017-1387" in [law.key for law in find_typed_statutes("ordonnances Macron")]
    assert find_typed_statutes("ordonnance Badinter") == []
