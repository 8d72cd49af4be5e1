"""Which version of an article a text says it means, and which of the versions held that is."""

from datetime import date

import pytest

from legal_rag.law.keys import ParsedQuery
from legal_rag.law.versions import Act, Force
from legal_rag.law.wordings import is_former, stated_wording

ARTICLE = "L. 1237-11"
OF_CODE = f"l'article {ARTICLE} du code du travail"


def read(text):
    start = text.index(ARTICLE)
    return stated_wording(text, start, start + len(ARTICLE))


@pytest.mark.parametrize(
    ("said", "meaning", "first", "last"),
    [
        # In force on a day, in a month, a year or a span.
        (", dans sa rédaction applicable au 3 mars 2012,", "in force", "2012-03-03", "2012-03-03"),
        (", dans sa version en vigueur le 1er mai 2008,", "in force", "2008-05-01", "2008-05-01"),
        (" dans sa version consolidée au 1er mai 2008", "in force", "2008-05-01", "2008-05-01"),
        (" (version en vigueur au 1er mai 2008)", "in force", "2008-05-01", "2008-05-01"),
        (" (rédaction du 10 août 2016)", "in force", "2016-08-10", "2016-08-10"),
        (", version 2012,", "in force", "2012-01-01", "2012-12-31"),
        (", dans sa version de 2012,", "in force", "2012-01-01", "2012-12-31"),
        (" en vigueur en 2012", "in force", "2012-01-01", "2012-12-31"),
        (" alors en vigueur (2012)", "in force", "2012-01-01", "2012-12-31"),
        (", alors applicable en 2012,", "in force", "2012-01-01", "2012-12-31"),
        (", en vigueur au cours de l'année 2012,", "in force", "2012-01-01", "2012-12-31"),
        (" applicable au mois de février 2012", "in force", "2012-02-01", "2012-02-29"),
        (", applicable au 3 mars 2012,", "in force", "2012-03-03", "2012-03-03"),
        (", tel qu'en vigueur le 3 mars 2012,", "in force", "2012-03-03", "2012-03-03"),
        (", tel qu'applicable à la date du 3 mars 2012,", "in force", "2012-03-03", "2012-03-03"),
        (", dans sa version en vigueur depuis le 24 septembre 2017", "in force", "2017-09-24", "2017-09-24"),
        (", dans sa version en vigueur du 1er janvier 2014 au 31 mars 2018,", "in force", "2014-01-01", "2018-03-30"),
        (" (version en vigueur du 1er janvier 2014 au 01 avril 2018)", "in force", "2014-01-01", "2018-03-31"),
        (", dans sa rédaction en vigueur depuis 2018", "in force", "2018-12-31", "2018-12-31"),
        (" disposait en 2012", "in force", "2012-01-01", "2012-12-31"),
        (", tel qu'il était rédigé en 2012,", "in force", "2012-01-01", "2012-12-31"),
        (", tel qu'il était en 2012,", "in force", "2012-01-01", "2012-12-31"),
        (" au 3 mars 2012", "in force", "2012-03-03", "2012-03-03"),
        (" à la date du 3 mars 2012", "in force", "2012-03-03", "2012-03-03"),
        (" s'appliquait-il le 3 mars 2012 ou", "in force", "2012-03-03", "2012-03-03"),
        (", applicable aux faits survenus en 2012,", "in force", "2012-01-01", "2012-12-31"),
        (", dans sa rédaction en vigueur entre 2008 et 2016,", "in force", "2008-01-01", "2015-12-31"),
        (", en vigueur entre le 1er janvier 2014 et le 31 mars 2018,", "in force", "2014-01-01", "2018-03-30"),
        (", dans sa rédaction applicable aux faits, survenus le 3 mars 2012,", "in force", "2012-03-03", "2012-03-03"),
        # By an act.
        (", dans sa rédaction issue de la loi du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (", dans sa rédaction issue de la loi de 2002,", "act", "2002-01-01", "2002-12-31"),
        (", dans sa rédaction issue de la loi n° 2016-1099,", "act", "2016-01-01", "2016-12-31"),
        (", dans sa rédaction issue de la loi n° 89-999,", "act", "1989-01-01", "1989-12-31"),
        (", dans sa rédaction issue de la loi El Khomri,", "act", "2016-08-08", "2016-08-08"),
        (
            ", dans sa rédaction résultant de l'ordonnance n° 2017-1387 du 22 septembre 2017,",
            "act",
            "2017-09-22",
            "2017-09-22",
        ),
        (" dans la rédaction que lui a donnée la loi du 8 août 2016", "act", "2016-08-08", "2016-08-08"),
        (
            ", dans sa rédaction issue de l'article 67 de la loi n° 2016-1088 du 8 août 2016,",
            "act",
            "2016-08-08",
            "2016-08-08",
        ),
        (", dans sa version modifiée par l'ordonnance du 22 septembre 2017,", "act", "2017-09-22", "2017-09-22"),
        (", dans sa version de la loi du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (", issu de la loi du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (
            ", dans sa rédaction issue de la loi du 8 août 2016, antérieure à l'ordonnance du 22 septembre 2017,",
            "act",
            "2016-08-08",
            "2016-08-08",
        ),
        (", réd. L. n° 2016-1088 du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (" dans sa rédaction issue des lois du 8 août 2016 et du 29 mars 2018", "act", "2018-03-29", "2018-03-29"),
        (", tel qu'issu de la loi du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (", tel qu'il résulte de la loi du 8 août 2016,", "act", "2016-08-08", "2016-08-08"),
        (" tel que modifié par la loi du 8 août 2016", "act", "2016-08-08", "2016-08-08"),
        (", dans sa rédaction postérieure à la loi du 8 août 2016,", "in force", "2016-08-09", "9999-12-31"),
        (", dans sa rédaction applicable après le 9 août 2016,", "in force", "2016-08-10", "9999-12-31"),
        (
            ", dans sa rédaction applicable aux contrats modifiés avant le 10 août 2016,",
            "before",
            "2016-08-09",
            "2016-08-09",
        ),
        (
            ", dans sa rédaction issue de la loi du 8 août 2016, modifiée par l'ordonnance du 29 mars 2018,",
            "act",
            "2016-08-08",
            "2018-03-29",
        ),
        (
            " et l'article L. 1237-12 du même code, dans leur rédaction antérieure à la loi du 8 août 2016,",
            "before",
            "2016-08-07",
            "2016-08-07",
        ),
        # Before a day or an act.
        (", dans sa rédaction antérieure à 2008,", "before", "2007-12-31", "2007-12-31"),
        (", dans sa rédaction antérieure au 1er mai 2008,", "before", "2008-04-30", "2008-04-30"),
        (
            ", dans sa rédaction antérieure à celle issue de la loi du 8 août 2016,",
            "before",
            "2016-08-07",
            "2016-08-07",
        ),
        (", dans sa version en vigueur avant le 9 septembre 2016,", "before", "2016-09-08", "2016-09-08"),
        (", en vigueur jusqu'au 9 août 2016,", "before", "2016-08-08", "2016-08-08"),
        (", dans sa rédaction applicable jusqu'en 2016,", "before", "2015-12-31", "2015-12-31"),
        (", avant 2016, disposait", "before", "2015-12-31", "2015-12-31"),
        (", avant la loi du 8 août 2016,", "before", "2016-08-07", "2016-08-07"),
        (", avant sa modification par la loi du 8 août 2016,", "before", "2016-08-07", "2016-08-07"),
        # No day.
        (", dans sa rédaction antérieure,", "former", None, None),
        (", dans son ancienne rédaction,", "former", None, None),
        (", dans sa version initiale,", "former", None, None),
        (", dans sa rédaction actuelle,", "current", None, None),
        (", dans sa version en vigueur,", "current", None, None),
        (", dans sa rédaction applicable au litige,", "undated", None, None),
        (", alors en vigueur,", "undated", None, None),
    ],
)
@pytest.mark.parametrize("article", [OF_CODE, f"L'art. {ARTICLE}, al. 2, C. trav."])
def test_the_version_meant_is_read_behind_an_article(article, said, meaning, first, last):
    wording = read(f"{article}{said} le prévoit.")
    assert wording is not None
    days = [day and day.isoformat() for day in (wording.first, wording.last)]
    assert (wording.meaning, *days) == (meaning, first, last)


@pytest.mark.parametrize(
    ("text", "meaning", "year"),
    [
        (f"{OF_CODE}, devenu L. 9, dans sa rédaction de 2012,", "in force", 2012),
        (f"{OF_CODE}, alors applicable, ensemble la Constitution de 1946,", "undated", None),
        (f"Dans sa rédaction issue de la loi n° 2016-1088 du 8 août 2016, {OF_CODE} dispose", "act", 2016),
        (f"Dans sa version issue de l'article 2 de la loi du 8 août 2016, {OF_CODE} dispose", "act", 2016),
        (f"l'article {ARTICLE} de la loi n° 89-462, dans sa rédaction de 2012,", "in force", 2012),
        (f"l'article {ARTICLE} de la loi n° 89-462 du 6 juillet 1989 en vigueur en 2012", "in force", 2012),
        (f"Or, dans sa version applicable en 2012, {OF_CODE} disposait", "in force", 2012),
        (f"La version de {OF_CODE} en vigueur en 2012 disposait", "in force", 2012),
        (f"La rédaction de {OF_CODE} issue de la loi du 8 août 2016 dispose", "act", 2016),
        (f"L'ancien article {ARTICLE} disposait", "former", None),
        (f"Selon l'anc. art. {ARTICLE} C. trav., il faut", "former", None),
        (f"Avant la loi du 8 août 2016, {OF_CODE} disposait", "before", 2016),
        (f"En 2012, {OF_CODE} disposait", "in force", 2012),
        (f"Au 1er janvier 2017, {OF_CODE} prévoyait", "in force", 2017),
        (f"L'article {ARTICLE} ancien du code du travail disposait", "former", None),
        (f"les articles {ARTICLE} et L. 1237-12 du code du travail, dans leur rédaction de 2012,", "in force", 2012),
    ],
)
def test_the_version_meant_is_read_before_and_around_an_article(text, meaning, year):
    wording = read(text)
    assert wording is not None
    assert (wording.meaning, wording.first and wording.first.year) == (meaning, year)


@pytest.mark.parametrize(
    ("text", "is_old"),
    [
        ("l'article 1382 ancien du code civil", True),
        ("l'article 1382, ancien, du code civil", True),
        ("l'article 1382 du code civil ancien", True),
        ("l'article 1240 du code civil (ancien 1382)", False),
        ("l'article 1240 (ancien article 1382) du code civil", False),
        ("l'article L. 1234-1 (anc. L. 122-6) du code du travail", False),
        ("l'article 1240 de l'ancien code civil", False),
    ],
)
def test_an_old_article_is_not_one_beside_which_its_old_number_stands(text, is_old):
    article = ParsedQuery(text).identifiers[0]
    assert is_former(text, article.start, article.end) is is_old


@pytest.mark.parametrize(
    ("question", "meaning", "last"),
    [
        (f"Que disait {OF_CODE} au 1er mars 2016 ?", "in force", "2016-03-01"),
        (f"Que dit {OF_CODE} le 1er mars 2016 ?", "in force", "2016-03-01"),
        (f"Que prévoyait {OF_CODE} en mars 2016 ?", "in force", "2016-03-31"),
        (f"Que disait, en 2012, {OF_CODE} ?", "in force", "2012-12-31"),
        (f"En 2012, que disait {OF_CODE} ?", "in force", "2012-12-31"),
        (f"À la date du 3 mars 2014, quelle était la teneur de {OF_CODE} ?", "in force", "2014-03-03"),
        (f"Quel délai fixait {OF_CODE} en 2012 ?", "in force", "2012-12-31"),
        (f"Qu'est-ce que {OF_CODE} imposait à l'employeur en 2012 ?", "in force", "2012-12-31"),
        (f"Que disait {OF_CODE} sur le reclassement en 2012 ?", "in force", "2012-12-31"),
        (f"Que disait l'ancien article {ARTICLE} du code du travail en 2012 ?", "in force", "2012-12-31"),
        (f"Donne-moi {OF_CODE} au 01/03/2016", "in force", "2016-03-01"),
        (f"le texte de {OF_CODE} en 2012", "in force", "2012-12-31"),
        (f"{ARTICLE} C. trav. en 2012", "in force", "2012-12-31"),
        (f"{ARTICLE} C. trav. au 2016-03-01", "in force", "2016-03-01"),
        (f"Que dit l'art. {ARTICLE} de la loi n° 89-462 du 6 juillet 1989 au 1er mai 2010 ?", "in force", "2010-05-01"),
        (f"Quelle était la version en vigueur de {OF_CODE} le 12 mai 2014 ?", "in force", "2014-05-12"),
        (f"la version du 12 mai 2014 de {OF_CODE}", "in force", "2014-05-12"),
        (f"Dans sa version en vigueur au 1er mars 2016, que dit {OF_CODE} ?", "in force", "2016-03-01"),
        (f"Dans sa rédaction issue de la loi du 8 août 2016, que dit {OF_CODE} ?", "act", "2016-08-08"),
        (f"Que disait {OF_CODE} avant le 8 août 2016 ?", "before", "2016-08-07"),
        (f"Avant la loi du 8 août 2016, que disait {OF_CODE} ?", "before", "2016-08-07"),
        (f"Que disait {OF_CODE} avant la réforme de 2016 ?", "before", "2015-12-31"),
    ],
)  # fmt: skip
def test_a_question_states_the_day_of_the_law_that_it_asks_for(question, meaning, last):
    wording = read(question)
    assert wording is not None
    assert (wording.meaning, wording.last and wording.last.isoformat()) == (meaning, last)


@pytest.mark.parametrize(
    "text",
    [
        f"Que dit {OF_CODE} selon l'arrêt du 3 mars 2016 ?",
        f"Que disait l'arrêt du 3 mars 2016 sur {OF_CODE} ?",
        f"Que dit {OF_CODE} modifié par la loi du 8 août 2016 ?",
        f"J'ai été licencié le 3 mars 2016, que dit {OF_CODE} ?",
        f"Licencié en 2012, que disait {OF_CODE} ?",
        f"Que prévoit {OF_CODE} pour un licenciement en 2012 ?",
        f"Que prévoyait {OF_CODE} pour un salarié licencié en 2012 ?",
        f"Que jugeait la chambre sociale en 2014 sur {OF_CODE} ?",
        f"Quelles décisions appliquent {OF_CODE} en 2014 ?",
        f"Un bail signé au 1er mars 2016 relève-t-il de {OF_CODE} ?",
        f"Que dit {OF_CODE} ? Mon accident a eu lieu le 3 mars 2016.",
        f"{OF_CODE}, Cass. soc., 12 mai 2014",
        f"Ce que prévoit {OF_CODE}, le 3 mars 2012 l'employeur l'a fait.",
        f"Selon {OF_CODE}, l'employeur remet le contrat avant le 3 mars 2012.",
        f"Selon {OF_CODE}, saisi le 3 mars 2012, le juge statue.",
        f"{OF_CODE} est d'ordre public. Dans sa rédaction issue de la loi du 8 août 2016, l'article 3 diffère.",
        f"{OF_CODE} et l'article L. 1237-12, dans sa rédaction de 2012,",
        f"Vu l'article L. 122-14, devenu {ARTICLE}, du code du travail, dans sa rédaction antérieure à 2008,",
        f"Vu les articles L. 1 et {ARTICLE} du code du travail, le premier dans sa rédaction de 2012,",
        f"Saisi en application de {OF_CODE}, avant le 3 mars 2012, le juge statue.",
        f"Dans sa rédaction antérieure à 2012, l'accord renvoyait à {OF_CODE}.",
        f"{OF_CODE}, en vigueur depuis 2008, dispose désormais",
        f"{OF_CODE}, issu de la recodification de 2008, dispose",
        f"Le 3 mars 2012, {OF_CODE} est invoqué.",
        f"{OF_CODE} disposait qu'en 2012 le délai court.",
        f"{OF_CODE}, modifié par la loi du 8 août 2016, dispose",
        f"Vu l'article L. 1 du code civil, dans sa rédaction issue de la loi du 8 août 2016, et {OF_CODE},",
        f"{OF_CODE}, applicable à la procédure suivie depuis 2012 devant le conseil,",
        f"Selon {OF_CODE}, « dans sa rédaction de 2012 ».",
    ],
)
def test_words_of_something_else_are_not_of_the_article(text):
    assert read(text) is None


def test_the_day_of_another_thing_s_version_is_not_the_article_s():
    wording = read(f"Selon {OF_CODE}, le contrat est remis au salarié, dans sa version du 3 mars 2012,")
    assert wording is not None
    assert wording.meaning == "undated"


@pytest.mark.parametrize(
    "said", ["dans sa rédaction applicable au litige", "dans sa version en vigueur à l'époque des faits",
             "dans sa rédaction applicable en la cause", "dans leur rédaction alors applicable",
             "dans sa rédaction issue de la loi du 8 août 2016", "dans sa version applicable aux faits de l'espèce"],
)  # fmt: skip
def test_the_words_are_shown_whole(said):
    text = f"Vu {OF_CODE}, {said} dispose que"
    wording = read(text)
    assert wording is not None
    assert text[wording.start : wording.end] == said


DAYS = ["2008-05-01", "2015-08-08", "2016-08-10", "2017-09-24"]
VERSIONS = [
    Force(date.fromisoformat(first), date.fromisoformat(until) if until else date.max)
    for first, until in zip(DAYS, [*DAYS[1:], None], strict=True)
]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("dans sa rédaction issue de la loi du 6 août 2015", [1]),
        ("dans sa rédaction issue de la loi de 2015", [1]),
        ("dans sa rédaction issue de la loi de 2002", []),
        ("dans sa rédaction issue de la loi du 27 janvier 2014", []),
        ("dans sa rédaction issue de la loi du 8 août 2016", [2]),
        ("en vigueur en 2012", [0]),
        ("en vigueur en 2016", [1, 2]),
        ("dans sa rédaction antérieure à la loi du 8 août 2016", [1]),
        ("dans sa rédaction antérieure à 2008", []),
    ],
)
def test_the_versions_meant_fit_the_day_or_the_act(said, meant):
    wording = read(f"{OF_CODE}, {said}, dispose")
    assert wording is not None
    assert wording.versions(VERSIONS) == [VERSIONS[n] for n in meant]


def test_the_acts_that_a_source_names_decide():
    act = date(2016, 8, 8)
    named = [VERSIONS[2]._replace(acts=(Act(date(2016, 2, 1)),)), VERSIONS[3]._replace(acts=(Act(act),))]
    wording = read(f"{OF_CODE}, dans sa rédaction issue de la loi du 8 août 2016, dispose")
    assert wording is not None
    assert wording.versions([*VERSIONS[:2], *named]) == [named[1]]


@pytest.mark.parametrize(
    ("said", "french"),
    [
        ("en vigueur le 3 mars 2012", "le 3 mars 2012"),
        ("en vigueur en mars 2012", "en mars 2012"),
        ("en vigueur en 2012", "en 2012"),
        ("en vigueur du 3 mars 2012 au 1er avril 2013", "entre le 3 mars 2012 et le 31 mars 2013"),
        ("dans sa rédaction antérieure à la loi du 8 août 2016", "avant le 8 août 2016"),
        ("dans sa rédaction issue de la loi du 8 août 2016", "l'acte du 8 août 2016"),
        ("dans sa rédaction issue de la loi de 2016", "un acte de 2016"),
        ("dans sa rédaction issue d'une loi d'août 2016", "un acte d'août 2016"),
        ("dans sa rédaction applicable au litige", ""),
    ],
)
def test_the_days_stated_are_told(said, french):
    wording = read(f"{OF_CODE}, {said}, dispose")
    assert wording is not None
    assert wording.in_french == french
