"""What `verify` says of articles in versions: words of another version are never called wrong, nor in force."""

import json
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from legal_rag.citations import verify_text

FIXTURES = Path(__file__).parents[1] / "fixtures" / "versions"
REFERENCES = [json.loads(line) for line in (FIXTURES / "references.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def library(index_of):
    return index_of(str(FIXTURES / "code.jsonl"), n_bits=0)


@pytest.mark.parametrize("given", REFERENCES, ids=lambda given: f"{given['at']} {given['text'][:90]}")
def test_a_reference_is_judged_by_its_day(library, given):
    verified = verify_text(given["text"], library, at=date.fromisoformat(given["at"]))
    judged = next(one for one in verified.references if one.kind == given["kind"])
    assert (judged.status, [fix.what for fix in judged.corrections]) == (given["status"], given["what"])
    if given["version"]:
        assert judged.doc_id == given["version"]


def test_words_of_another_version_are_said_to_be_of_which(library):
    words = "Le délai de prévenance du salarié avant la rupture de la période d'essai est fixé à dix jours"
    text = f"L'article L. 9001-1 du code du travail dispose : « {words} »."
    (quotation,) = verify_text(text, library, at=date(2026, 11, 26)).of_status("ambiguous")
    assert quotation.explanation.replace("\xa0", " ") == (
        "Ces mots sont dans C. trav., art. L. 9001-1, en vigueur du 1er mai 2008 au 9 août 2016 ; "
        "la version en vigueur depuis le 1er avril 2018 ne les a pas : à comparer."
    )


@pytest.mark.parametrize(
    ("named", "days", "status"),
    [
        ("L'ancien article L. 9001-1 du code du travail disposait", "quarante jours", "ambiguous"),
        (
            "L'article L. 9001-1 du code du travail, dans sa rédaction antérieure, disposait",
            "quarante jours",
            "ambiguous",
        ),
        (
            "L'ancien article L. 9001-1 du code du travail disposait",
            "dix jours, sauf accord plus favorable",
            "confirmed",
        ),
        ("L'article L. 9001-1 du code du travail, dans sa rédaction actuelle, dispose", "quarante jours", "confirmed"),
    ],
)
def test_words_in_force_are_not_confirmed_as_those_of_a_version_before(library, named, days, status):
    words = f"Le délai de prévenance du salarié avant la rupture de la période d'essai est fixé à {days}"
    verified = verify_text(f"{named} : « {words} ».", library, at=date(2026, 11, 26))
    assert [one.status for one in verified.references if one.kind == "quotation"] == [status]


@pytest.fixture(scope="module")
def laws(index_of):
    deposit = "Loi n° 89-462 du 6 juillet 1989 tendant à améliorer les rapports locatifs"
    rows = [
        ("A1", deposit, "Le dépôt ne peut être supérieur à deux mois de loyer.", "1989-07-08", "2008-02-09"),
        ("A2", deposit, "Le dépôt ne peut être supérieur à un mois de loyer.", "2008-02-09", ""),
        ("B1", "Loi n° 89-463 du 6 juillet 1989 portant diverses mesures", "Le décret est publié.", "1989-07-08", ""),
    ]
    documents = [
        {"id": f"LEGIARTI{one}", "content": words, "title": f"{text}, article 22", "number": "22", "text_title": text,
         "text_id": text[:14], "article_id": one[0], "valid_from": first} | ({"valid_until": end} if end else {})
        for one, text, words, first, end in rows
    ]  # fmt: skip
    return index_of(documents, n_bits=0)


@pytest.mark.parametrize(
    ("law", "status", "version"),
    [
        ("la loi n° 89-462 du 6 juillet 1989", "confirmed", "LEGIARTIA2"),
        ("la loi n° 89-462, dans sa rédaction applicable au 1er mars 2005,", "confirmed", "LEGIARTIA1"),
        ("la loi n° 89-463 du 6 juillet 1989", "confirmed", "LEGIARTIB1"),
        ("la loi du 6 juillet 1989", "ambiguous", ""),
        ("la loi n° 86-1290 du 23 décembre 1986", "out_of_scope", ""),
    ],
)
def test_an_article_of_a_law_is_found_whatever_the_law_s_subject(laws, law, status, version):
    verified = verify_text(f"L'article 22 de {law} le prévoit.", laws, at=date(2026, 11, 26))
    judged = next(one for one in verified.references if one.kind == "article")
    assert (judged.status, judged.doc_id or "") == (status, version)


def test_words_of_another_version_of_a_law_s_article_are_wrong_where_the_day_is_stated(laws):
    text = (
        "L'article 22 de la loi n° 89-462 du 6 juillet 1989, dans sa rédaction applicable au 1er mars 2005, dispose : "
        "« le dépôt ne peut être supérieur à un mois de loyer »."
    )
    (quotation,) = verify_text(text, laws, at=date(2026, 11, 26)).wrong
    assert [fix.what for fix in quotation.corrections] == ["version"]


NOTICE = "Le délai de prévenance du salarié avant la rupture de la période d'essai est fixé à"
FIRST, SECOND, THIRD = (
    f"{NOTICE} dix jours, sauf accord plus favorable",
    f"{NOTICE} huit jours, sauf stipulation plus favorable d'une convention collective",
    f"{NOTICE} quarante jours",
)
HERE = "article L. 9001-1 du code du travail"


def judged(library, text, kind):
    verified = verify_text(text, library, at=date(2026, 11, 26))
    (one,) = [one for one in verified.references if one.kind == kind]
    return one, one.explanation.replace("\xa0", " ")


@pytest.mark.parametrize(
    ("said", "status", "told"),
    [
        (
            "dans sa rédaction issue de la loi de 2002",
            "ambiguous",
            "(un acte de 2002), mais : en vigueur du 1er mai 2008",
        ),
        ("dans sa rédaction issue de la loi du 27 janvier 2014", "ambiguous", "en vigueur du 10 août 2016"),
        ("dans sa rédaction issue de la loi de 2016", "confirmed", "en vigueur du 10 août 2016 au 31 mars 2018"),
        ("dans sa rédaction issue de la loi n° 2016-1088", "confirmed", "en vigueur du 10 août 2016"),
        ("en vigueur en 2012", "confirmed", "en vigueur du 1er mai 2008 au 9 août 2016"),
        ("en vigueur en 2016", "ambiguous", "au 9 août 2016, en vigueur du 10 août 2016 au 31 mars 2018"),
        ("en vigueur en 2001", "absent", "(en 2001), mais : en vigueur du 1er mai 2008"),
        ("tel qu'en vigueur le 1er janvier 2017", "confirmed", "en vigueur du 10 août 2016 au 31 mars 2018"),
        ("dans sa rédaction actuelle", "confirmed", "en vigueur depuis le 1er avril 2018"),
    ],
)
def test_an_article_is_confirmed_in_a_version_that_fits_what_the_text_says(library, said, status, told):
    article, explanation = judged(library, f"L'{HERE}, {said}, est cité.", "article")
    assert article.status == status
    assert told in explanation


@pytest.mark.parametrize(
    ("said", "words", "status", "version"),
    [
        ("en vigueur en 2012", FIRST, "confirmed", "11"),
        ("en vigueur en 2012", THIRD, "wrong", "13"),
        ("en vigueur en 2016", SECOND, "ambiguous", "12"),
        ("en vigueur en 2016", f"{NOTICE}", "confirmed", "12"),
        ("dans sa rédaction issue de la loi du 8 août 2016", THIRD, "ambiguous", "13"),  # it may be deferred
        ("dans sa rédaction postérieure à la loi du 8 août 2016", THIRD, "ambiguous", "13"),
        ("dans sa rédaction applicable aux instances introduites avant la loi du 8 août 2016", SECOND, "wrong", "12"),
        ("dans sa rédaction applicable jusqu'au 1er avril 2018", THIRD, "wrong", "13"),
        ("dans sa rédaction applicable jusqu'au 1er avril 2018", SECOND, "confirmed", "12"),
        ("dans sa rédaction toujours en vigueur", FIRST, "ambiguous", "11"),
        ("dans sa rédaction issue de la loi de 2002", FIRST, "ambiguous", "11"),
        ("dans sa rédaction antérieure à la loi du 29 mars 2018", FIRST, "ambiguous", "11"),
        ("dans sa rédaction antérieure à la loi du 29 mars 2018", THIRD, "wrong", "13"),
        ("dans sa rédaction actuelle", FIRST, "ambiguous", "11"),
    ],
)
def test_words_are_those_of_the_version_that_the_text_means(library, said, words, status, version):
    quotation, _ = judged(library, f"L'{HERE}, {said}, dispose : « {words} ».", "quotation")
    assert (quotation.status, quotation.doc_id) == (status, f"LEGIARTI9000000000{version}")


def test_the_version_before_an_article_s_name_counts_too(library):
    text = f"Dans sa rédaction issue de la loi n° 2016-1088 du 8 août 2016, l'{HERE} dispose : « {FIRST} »."
    assert judged(library, text, "quotation")[0].status == "wrong"


def test_the_version_of_one_article_is_not_that_of_another_of_its_sentence(library):
    other = "l'article L. 9001-3 du code du travail, dans sa rédaction issue de la loi du 8 août 2016"
    text = f"Aux termes de l'{HERE}, « {FIRST} », et {other}, n'y change rien."
    assert judged(library, text, "quotation")[0].status == "ambiguous"


@pytest.mark.parametrize("said", ["dans sa rédaction issue de la loi du 8 août 2016", "(version en vigueur en 2017)"])
def test_the_version_right_behind_the_words_quoted_counts_too(library, said):
    text = f"L'{HERE} dispose : « {{}} » {said}."
    assert judged(library, text.format(FIRST), "quotation")[0].status == "wrong"
    assert judged(library, text.format(SECOND), "quotation")[0].status == "confirmed"


def test_words_of_another_version_than_the_act_s_are_said_to_be_of_which(library):
    text = f"L'{HERE}, dans sa rédaction issue de la loi du 8 août 2016, dispose : « {FIRST} »."
    quotation, explanation = judged(library, text, "quotation")
    assert explanation == (
        "Ces mots sont d'une autre version de l'article, en vigueur du 1er mai 2008 au 9 août 2016, et non de celle "
        "que le texte vise (l'acte du 8 août 2016 : en vigueur du 10 août 2016 au 31 mars 2018)."
    )
    assert quotation.corrections[0].right == "en vigueur du 1er mai 2008 au 9 août 2016"


@pytest.mark.parametrize(
    "opening",
    [
        "2. En 2010, l'",
        "§ 3. En 2010, l'",
        "a) Le 3 mars 2010, l'",
        "En effet, en 2010, l'",
        "Au jour du licenciement, le 3 mars 2012, l'",
        "Entre 2009 et 2014, l'",
        "Depuis le 1er mai 2008, l'",
        "4. Avant le 10 août 2016, l'",
        "Il convient de rappeler que, dans sa rédaction en vigueur en 2012, l'",
    ],
)
def test_the_day_before_an_article_counts_behind_other_words_too(library, opening):
    for words, status in ((FIRST, "confirmed"), (THIRD, "wrong")):
        text = f"{opening}{HERE} disposait que « {words} »."
        assert judged(library, text, "quotation")[0].status == status


@pytest.mark.parametrize(
    "said",
    ["La rédaction de la lettre respecte l'", "L'ancien salarié invoque l'", "Malgré la décision antérieure, l'"],
)
def test_words_on_something_else_mean_no_version(library, said):
    quotation, _ = judged(library, f"{said}{HERE}, qui dispose : « {FIRST} ».", "quotation")
    assert quotation.status == "ambiguous"


@pytest.mark.parametrize(
    ("said", "words", "version"),
    [
        # Words that two versions have: the one nearest to the day stated, else to today.
        ("", f"{NOTICE} huit jours", "12"),
        # Altered words: the version nearest in words, not the latest.
        ("", FIRST.replace("dix jours", "onze jours"), "11"),
        (", en vigueur le 1er mars 2024,", SECOND.replace("du salarié", "de la salariée"), "12"),
    ],
)
def test_the_version_named_is_the_one_whose_words_they_are(library, said, words, version):
    quotation, _ = judged(library, f"L'{HERE}{said} dispose : « {words} ».", "quotation")
    assert quotation.doc_id == f"LEGIARTI9000000000{version}"
    assert quotation.status in ("wrong", "ambiguous")


@pytest.fixture(scope="module")
def unchanged(index_of):
    """Return a Library of an article whose first two versions have the same words."""
    same, other = "Le préavis du cadre dirigeant est de trois mois.", "La durée du préavis est fixée par décret."
    days = [("2001-01-01", "2005-01-01", same), ("2005-01-01", "2010-01-01", same), ("2010-01-01", "", other)]
    rows = [
        {"id": f"LEGIARTI00000000010{n}", "content": words, "title": "Code du travail, article L9003-1",
         "number": "L9003-1", "article_id": "A", "valid_from": first} | ({"valid_until": until} if until else {})
        for n, (first, until, words) in enumerate(days)
    ]  # fmt: skip
    return index_of(rows, n_bits=0)


def test_words_without_a_source_are_of_the_version_nearest_to_today(unchanged):
    quotation, _ = judged(unchanged, "On lit : « Le préavis du cadre dirigeant est de trois mois ».", "quotation")
    assert (quotation.status, quotation.doc_id) == ("ambiguous", "LEGIARTI000000000101")


@pytest.mark.parametrize(("said", "version"), [("", "1"), (", en vigueur le 3 mars 2012,", "1")])
def test_of_versions_with_the_same_words_the_nearest_in_time_is_named(unchanged, said, version):
    text = (
        f"L'article L. 9003-1 du code du travail{said} dispose : « Le préavis du cadre dirigeant est de trois mois »."
    )
    quotation, _ = judged(unchanged, text, "quotation")
    assert (quotation.status, quotation.doc_id) == ("wrong" if said else "ambiguous", f"LEGIARTI00000000010{version}")


@pytest.fixture(scope="module")
def acts(index_of):
    """Return a Library of versions whose source names the acts that wrote them, one by its number in the title only."""
    links = [
        {"date": "2014-12-20", "title": "LOI n°2014-1545 du 20 décembre 2014 - art. 1"},
        {"date": "2016-08-08", "title": "LOI du 8 août 2016 - art. 8 (V)", "text_number": "2016-1088"},
        {"date": "2017-09-22", "title": "Ordonnance du 22 septembre 2017"},
    ]
    days = ["2008-05-01", "2016-07-01", "2016-08-10", "2017-09-24", ""]
    rows = [
        {"id": f"LEGIARTI00000000020{n}", "content": f"Le préavis du cadre logé est de {n + 2} mois.",
         "title": "Code du travail, article L9004-1", "number": "L9004-1", "valid_from": first}
        | ({"valid_until": until} if until else {})
        | ({"links": [{"type": "MODIFIE", "direction": "cible"} | links[n - 1]]} if n else {})
        for n, (first, until) in enumerate(pairwise(days))
    ]  # fmt: skip
    return index_of(rows, n_bits=0)


@pytest.mark.parametrize(
    ("said", "status", "version"),
    [
        ("dans sa rédaction issue de la loi du 20 décembre 2014", "confirmed", "201"),
        ("dans sa rédaction issue de la loi n° 2014-1545 du 20 décembre 2014", "confirmed", "201"),
        ("dans sa rédaction issue de la loi n° 2014-1554 du 20 décembre 2014", "wrong", "201"),
        ("dans sa rédaction issue de la loi n° 2016-1088 du 8 août 2016", "confirmed", "202"),
        ("dans sa rédaction issue de la loi n° 2016-1188 du 8 août 2016", "wrong", "202"),
        ("dans sa rédaction issue de la loi n° 2016-731", "ambiguous", ""),
        ("dans sa rédaction issue de la loi Travail", "confirmed", "202"),
        ("dans sa rédaction issue de la loi n° 2016-1088 du 9 août 2016", "wrong", "202"),
        ("dans sa rédaction issue de la loi Travail du 8 août 2016", "confirmed", "202"),
        ("dans sa rédaction issue de la loi Travail du 8 août 2015", "wrong", "202"),
        ("dans sa rédaction antérieure à la loi n° 2016-1088 du 8 août 2016", "confirmed", "201"),
        ("dans sa rédaction antérieure à la loi n° 16-1088 du 8 août 2016", "confirmed", "201"),
        ("dans sa rédaction antérieure à la loi n° 2016-1999 du 8 août 2016", "confirmed", "201"),
        ("dans sa rédaction antérieure à la loi n° 2016-1088 du 9 août 2016", "wrong", "201"),
        ("dans sa rédaction antérieure à la loi n° 2015-990 du 6 août 2015", "confirmed", "200"),
        # The source or the text gives no number: the day decides.
        ("dans sa rédaction issue de l'ordonnance n° 2017-1387 du 22 septembre 2017", "confirmed", "203"),
        ("dans sa rédaction antérieure à la loi du 8 août 2016", "confirmed", "201"),
        ("dans sa rédaction issue de la loi n° 2014-1545 du 20 décembre 2014, modifiée par la loi n° 2015-990 du 6 août"
         " 2015", "confirmed", "201"),
        ("dans sa rédaction issue de la loi du 8 juin 2016", "ambiguous", ""),
        ("(L. n° 2016-1088 du 8 août 2016, art. 8)", "confirmed", "202"),
        ("(L. no 2016-1188 du 8 août 2016, art. 8)", "wrong", "202"),
    ],
)  # fmt: skip
def test_a_version_s_act_is_that_of_its_source_s_links_by_day_and_number(acts, said, status, version):
    before = "" if said.startswith("(") else ","
    article, explanation = judged(acts, f"L'article L. 9004-1 du code du travail{before} {said}, est cité.", "article")
    assert (article.status, article.doc_id[-3:]) == (status, version)
    assert ("Le texte dit « acte n°" in explanation) == (status == "wrong")


def test_words_are_those_of_the_version_written_on_the_day_whatever_the_act_s_number(acts):
    said = "L'article L. 9004-1 du code du travail, dans sa rédaction issue de la loi n° 2016-1188 du 8 août 2016,"
    for months, status in ((4, "confirmed"), (3, "wrong")):
        words = f"{said} dispose : « Le préavis du cadre logé est de {months} mois »."
        assert judged(acts, words, "quotation")[0].status == status


@pytest.mark.parametrize("said", ["dans sa rédaction issue de la loi de 2002", "en vigueur en 2001"])
def test_words_near_to_those_of_another_version_are_not_called_wrong_where_the_one_meant_is_not_held(library, said):
    text = f"L'{HERE}, {said}, dispose : « {FIRST.replace('dix jours', 'neuf jours')} »."
    assert judged(library, text, "quotation")[0].status in ("ambiguous", "absent")


@pytest.fixture(scope="module")
def undated(index_of):
    row = {"id": "A", "title": "Code du travail, article L9005-1", "number": "L9005-1"}
    row["content"] = "Le préavis du salarié logé par son employeur est de trois mois."
    return index_of([row], n_bits=0)


@pytest.mark.parametrize("said", ["en vigueur en 2012", "dans sa rédaction issue de la loi du 8 août 2016",
                                  "dans sa rédaction applicable au litige"])  # fmt: skip
@pytest.mark.parametrize("months", ["trois", "deux"])
def test_an_article_without_dates_is_not_compared_with_the_version_stated(undated, said, months):
    words = f"Le préavis du salarié logé par son employeur est de {months} mois"
    verified = verify_text(f"L'article L. 9005-1 du code du travail, {said}, dispose : « {words} ».", undated)
    assert {one.status for one in verified.references if one.kind != "law"} == {"ambiguous"}


@pytest.fixture(scope="module")
def ended(index_of):
    """Return a Library of an article in force since 2008 in two versions, one repealed, and one replaced since."""
    rows = [
        ("301", "L9006-1", "2008-05-01", "2016-07-01", "MODIFIE"),
        ("302", "L9006-1", "2016-07-01", "", "VIGUEUR"),
        ("311", "L9006-2", "2008-05-01", "2010-01-01", "ABROGE"),
        ("321", "L9006-3", "2008-05-01", "2010-01-01", "MODIFIE"),
    ]
    documents = [
        {"id": f"LEGIARTI000000000{end}", "content": f"Le registre {end} est tenu à jour.", "number": number,
         "title": f"Code du travail, article {number}", "valid_from": first, "state": state}
        | ({"valid_until": until} if until else {})
        for end, number, first, until, state in rows
    ]  # fmt: skip
    return index_of(documents, n_bits=0)


@pytest.mark.parametrize(
    ("said", "in_force", "repealed"),
    [
        (", abrogé le 1er janvier 2010,", "wrong", "confirmed"),
        (", abrogé le 31 décembre 2009,", "wrong", "confirmed"),
        (", abrogé depuis le 1er janvier 2012,", "wrong", "wrong"),
        (", abrogé en 2010,", "wrong", "confirmed"),
        (", abrogé en 2011,", "wrong", "wrong"),
        (", abrogé depuis,", "wrong", "confirmed"),
        (" (abrogé)", "wrong", "confirmed"),
        (", aujourd'hui abrogé,", "wrong", "confirmed"),
        (" n'est plus en vigueur et", "wrong", "confirmed"),
        (" a été abrogé et", "wrong", "confirmed"),
        (" est toujours en vigueur et", "confirmed", "wrong"),
        (", toujours en vigueur,", "confirmed", "wrong"),
        (" demeure en vigueur et", "confirmed", "wrong"),
        (" n'a pas été abrogé et", "confirmed", "wrong"),
        (" n'a jamais été abrogé et", "confirmed", "wrong"),
        # An act before is perhaps the one that did it; one after is not.
        (", abrogé par la loi n° 2009-1500 du 5 décembre 2009,", "wrong", "unchecked"),
        (", abrogé par la loi du 5 décembre 2012,", "wrong", "wrong"),
        (" (abrogé par L. n° 2009-1500 du 5 déc. 2009)", "wrong", "unchecked"),
    ],
)
def test_an_article_said_to_be_in_force_or_repealed_is_compared_with_what_the_index_knows(
    ended, said, in_force, repealed
):
    for number, expected in ((1, in_force), (2, repealed), (3, "unchecked")):
        text = f"L'article L. 9006-{number} du code du travail{said} est cité."
        article, explanation = judged(ended, text, "article")
        if number == 3:  # another version followed, of which the index does not know
            assert article.status in ("confirmed", "ambiguous")
            assert "fate" not in article.checked
            continue
        status = "confirmed" if expected == "unchecked" else expected
        assert (article.status, "fate" in article.checked) == (status, expected == "confirmed"), number
        assert ("Non comparé : sort" in explanation) == (expected == "unchecked")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # The day on which a version, or the article itself, began.
        (" est en vigueur depuis le 1er juillet 2016", "true"),
        (", en vigueur depuis le 1er mai 2008,", "true"),
        (" (en vigueur depuis 2008)", "true"),
        (", dans sa version en vigueur à compter du 1er juillet 2016,", "true"),
        (", en vigueur depuis juillet 2016,", "true"),
        (" n'est en vigueur que depuis le 1er juillet 2016", "true"),
        (" est en vigueur depuis le 1er janvier 2019", "wrong"),
        (", toujours en vigueur depuis le 1er janvier 2019,", "wrong"),
        (", en vigueur depuis 2012,", "wrong"),
        (" (en vigueur dès le 2 mai 2008)", "wrong"),
        (", dans sa rédaction en vigueur depuis le 1er janvier 2019,", "wrong"),
        # Of what was before the versions that the index has, and of what else began on a day, nothing is known.
        (", en vigueur depuis 1973,", "unread"),
        (", en vigueur depuis la loi du 5 mars 2014,", "unread"),
        (" n'est pas en vigueur depuis le 1er janvier 2019", "unread"),
        (", modifié par la loi du 5 mars 2014, est en vigueur depuis le 1er janvier 2019", "unread"),
        (" renvoie au décret en vigueur depuis le 1er janvier 2019", "unread"),
    ],
)
def test_an_article_is_in_force_since_the_day_on_which_a_version_of_it_began(ended, said, expected):
    article, explanation = judged(ended, f"L'article L. 9006-1 du code du travail{said} et est cité.", "article")
    assert article.status == ("wrong" if expected == "wrong" else "confirmed")
    assert ("fate" in article.checked, "Non comparé" in explanation) == (expected == "true", expected == "unread")
    if expected == "wrong":
        assert "« en vigueur depuis le 1er juillet 2016 ; première version : le 1er mai 2008 »" in explanation


def test_an_article_that_was_in_force_since_a_day_is_not_said_to_be_so_today(ended):
    for year, status in ((2008, "confirmed"), (2009, "wrong")):
        said = (
            f"L'article L. 9006-2 du code du travail, en vigueur depuis mai {year}, a été abrogé le 1er janvier 2010."
        )
        assert (judged(ended, said, "article")[0].status == "wrong") == (status == "wrong"), year


@pytest.fixture(scope="module")
def repealed(index_of):
    """Return a Library of an article created in 2008 and repealed in 2016, by the acts that its source names."""
    acts = [("CREE", "2007-03-12", "2007-329"), ("ABROGE", "2016-02-10", "2016-131")]
    links = [{"type": kind, "direction": "cible", "date": day, "text_number": number} for kind, day, number in acts]
    row = {"id": "LEGIARTI000000000401", "number": "L9007-1", "title": "Code du travail, article L9007-1"}
    row |= {"content": "Le carnet est tenu.", "valid_from": "2008-05-01", "valid_until": "2016-10-01"}
    return index_of([row | {"state": "ABROGE", "links": links}], n_bits=0)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("abrogé par l'ordonnance n° 2016-131 du 10 février 2016", "true"),
        ("abrogé par l'article 4 de l'ordonnance du 10 février 2016", "true"),
        ("abrogé par une ordonnance de 2016", "true"),
        ("abrogé le 1er octobre 2016", "true"),
        ("abrogé par l'ordonnance n° 2016-999 du 10 février 2016", "wrong"),
        ("abrogé par la loi n° 2015-990 du 6 août 2015", "wrong"),
        ("abrogé par l'ordonnance n° 2016-131 du 11 février 2016", "wrong"),
        ("en vigueur depuis 1973", "wrong"),  # its source says by which act it was created
        ("abrogé par l'effet de la réforme au 1er octobre 2016", "unread"),
        ("abrogé implicitement par la loi du 6 août 2015", "unread"),
        ("que la loi du 6 août 2015 a abrogé", "unread"),
        ("dont l'abrogation résulte de la loi du 6 août 2015", "unread"),
    ],
)
def test_the_act_that_repealed_an_article_is_the_one_its_source_names(repealed, said, expected):
    text = f"L'article L. 9007-1 du code du travail, {said}, est cité."
    article = verify_text(text, repealed, at=date(2016, 6, 1)).references[0]
    assert article.status == ("wrong" if expected == "wrong" else "confirmed")
    assert ("fate" in article.checked, "Non comparé : sort" in article.explanation.replace("\xa0", " ")) == (
        expected == "true",
        expected == "unread",
    )
    if said.startswith("abrogé") and expected == "wrong":
        assert "acte n° 2016-131 du 10 février 2016" in article.explanation.replace("\xa0", " ")


@pytest.mark.parametrize(
    "said",
    [
        "L'ancien article L. 9006-1 du code du travail, abrogé, est cité.",
        "L'article L. 9006-1 du code du travail, alinéa 2, abrogé en 2010, est cité.",
        "L'article L. 9006-1 du code du travail a été abrogé puis rétabli.",
        "L'article L. 9006-1 du code du travail, dont un alinéa a été abrogé, est cité.",
        "L'article L. 9006-1 du code du travail sera abrogé.",
        "L'article L. 9006-1 du code du travail a été abrogé et remplacé par d'autres mots.",
        "L'article L. 9006-1 du code du travail, abrogé et recodifié par la loi du 3 mars 2012, est cité.",
        "L'article L. 9006-1 du code du travail a été partiellement abrogé.",
        "L'article L. 9006-1 du code du travail a été abrogé en partie.",
        "L'article L. 9006-2 du code du travail, toujours en vigueur en 2009, est cité.",
    ],
)
def test_a_repeal_that_is_not_said_of_the_article_today_accuses_it_of_nothing(ended, said):
    article, explanation = judged(ended, said, "article")
    assert article.status in ("confirmed", "ambiguous")
    assert "fate" not in article.checked
    assert article.status == "ambiguous" or "Non comparé : sort" in explanation


def test_an_article_s_end_is_that_of_the_day_asked_for(ended):
    text = "L'article L. 9006-2 du code du travail est toujours en vigueur."
    statuses = [verify_text(text, ended, at=date(year, 6, 1)).references[0].status for year in (2009, 2011)]
    assert statuses == ["confirmed", "wrong"]
    assert judged(ended, text, "article")[1] == (
        "Le texte dit « toujours en vigueur », l'index : « article abrogé le 1er janvier 2010 »."
    )


@pytest.mark.parametrize(
    ("text", "version", "unread"),
    [
        ("L'article L. 9006-1 du code du travail, au 1er mars 2012, disposait que le registre est tenu.", "301", False),
        ("L'article L. 9006-1 du code du travail, en 2012, prévoyait que le registre est tenu.", "301", False),
        ("L'article L. 9006-1 du code du travail, au 1er mars 2012, s'appliquait.", "301", False),
        ("Le salarié licencié le 1er mars 2012 invoque l'article L. 9006-1 du code du travail.", "302", True),
        ("Le salarié licencié le 1er mars 2020 invoque l'article L. 9006-1 du code du travail.", "302", False),
        ("L'article L. 9006-1 du code du travail, modifié par la loi Macron du 6 août 2015, est cité.", "302", False),
        ("La loi du 5 mars 2012 est distincte de l'article L. 9006-1 du code du travail.", "302", False),
        ("Par arrêt du 1er mars 2012 (CA Lyon, n° 11/00001), vu l'article L. 9006-1 du code du travail.", "302", False),
        ("Le licenciement est du 1er mars 2012. L'article L. 9006-1 du code du travail est cité.", "302", False),
    ],
)
def test_a_day_beside_an_article_is_read_as_that_of_its_version_or_said_not_to_be(ended, text, version, unread):
    article, explanation = judged(ended, text, "article")
    assert (article.status, article.doc_id[-3:]) == ("confirmed", version)
    assert ("n'a pas été lu comme son jour" in explanation) == unread
