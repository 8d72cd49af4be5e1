"""Statutes by number, date and usual name, and the articles cited of them."""

from datetime import date

import pytest

from legal_rag.corpus.documents import Document
from legal_rag.law import find_dates
from legal_rag.law.keys import own_keys
from legal_rag.law.scanning import read_table
from legal_rag.law.statutes import find_statute_articles, find_statutes


def keys(text):
    return [statute.key for statute in find_statutes(text, find_dates(text))]


def articles(text):
    return [(one.value, one.code, text[one.start : one.end]) for one in find_statute_articles(text, find_dates(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("la loi n° 85-677 du 5 juillet 1985", ["loi n° 85-677"]),
        ("la loi nº 85-677", ["loi n° 85-677"]),
        ("la loi 85\u2011677 du 5/07/1985", ["loi n° 85-677"]),
        ("la loi Badinter", ["loi n° 85-677"]),
        ("la loi dite « Informatique et Libertés »", ["loi n° 78-17"]),
        ("loi ELAN, loi Elan et loi Élan", ["loi n° 2018-1021"] * 3),
        ("la loi Sapin II", ["loi n° 2016-1691"]),
        ("la loi Lang", ["loi n° 85-660", "loi n° 81-766"]),
        ("la loi du 4 mars 2002", ["loi du 2002-03-04"]),  # two laws have that date
        ("l'ordonnance n° 2016-131 du 10 février 2016", ["ordonnance n° 2016-131"]),
        ("le règlement (UE) 2016/679 du 27 avril 2016", ["règlement n° 2016/679"]),
        ("loi n° 85-677, dite loi Badinter", ["loi n° 85-677", "loi n° 85-677"]),
        ("la loi Lagardère, la loi de finances et Me Badinter", []),
        ("la loi applicable", []),
        ("", []),
    ],
)
def test_a_statute_has_one_key_however_it_is_named(text, expected):
    assert keys(text) == expected


def test_a_law_named_without_its_date_has_that_of_the_table():
    (statute,) = find_statutes("la loi n° 89-462", [])
    assert statute.date == date(1989, 7, 6)


@pytest.mark.parametrize("row", read_table("laws.toml")["laws"], ids=lambda row: f"{row['name']} {row['number']}")
def test_a_usual_name_is_read_with_number_and_date(row):
    for written in (row["name"], row["name"].upper()):
        found = find_statutes(f"Selon la {row.get('nature', 'loi')} {written}, le bail", [])
        assert (row["number"], row["date"]) in [(statute.number, statute.date) for statute in found]
    year = row["number"].partition("-")[0]
    assert str(row["date"].year).endswith(year)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l'article 1er du décret n° 2019-111 du 3 mars 2019", [("1", "décret n° 2019-111", "1er")]),
        ("Décret n° 2019-111 du 3 mars 2019, article 1er", [("1", "décret n° 2019-111", "1er")]),
        ("l'article 3 de la loi Badinter", [("3", "loi n° 85-677", "3")]),
        ("les articles 3 et 4 de la loi n° 85-677", [("3", "loi n° 85-677", "3"), ("4", "loi n° 85-677", "4")]),
        ("art. 15, I, de la loi du 6 juillet 1989", [("15", "loi du 1989-07-06", "15")]),
        ("l'article 1240 du code civil et l'article 5 de la loi Badinter", [("5", "loi n° 85-677", "5")]),
        ("l'article 5 du contrat", []),
        ("l'article 5, puis la loi Badinter", []),
        ("", []),
    ],
)
def test_an_article_of_a_statute_has_the_statute_s_key(text, expected):
    assert articles(text) == expected


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"title": "Décret n° 2019-111 du 3 mars 2019, article 1er"}, "article:1 décret n° 2019-111"),
        ({"title": "Code du travail, article L. 311-3 bis A"}, "article:L311-3 BIS A code du travail"),
        ({"title": "Code de l'urbanisme, article Annexe 1-2"}, "article:ANNEXE 1-2 code de l'urbanisme"),
        ({"juridiction": "Tribunal des conflits", "extra": {"number": "4987"}}, "conflits:4987"),
        ({"title": "Tribunal des conflits, 16 mai 1891, 00087"}, "conflits:87"),
        (
            {"juridiction": "Conseil constitutionnel", "extra": {"number": "93-1213 R2", "nature": "AN"}},
            "an:1993-1213R2",
        ),
    ],
)
def test_a_document_has_the_key_by_which_it_is_cited(fields, key):
    assert key in own_keys(Document(id="X1", content="Texte.", **fields))


def test_the_number_of_an_article_is_no_number_of_a_decision():
    title = "Décret n° 2019-111 du 3 mars 2019, article 3"
    columns = {"number": "3", "text_title": title.partition(",")[0]}
    keys = own_keys(Document(id="X1", content="Texte.", title=title, extra=columns))
    assert all(key.startswith("article:3") for key in keys)


@pytest.mark.parametrize(
    ("subject", "number", "others"),
    [
        ("tendant à améliorer les rapports locatifs", "22", []),
        ("portant modification de la loi n° 86-1290 du 23 décembre 1986", "22-1", ["86-1290", ":2"]),
        ("modifiant l'article 1244 du code civil", "3", ["1244"]),
    ],
)
def test_an_article_is_of_the_law_that_its_text_s_title_begins_with(subject, number, others):
    text = f"Loi n° 89-462 du 6 juillet 1989 {subject}"
    columns = {"number": number, "text_title": text}
    keys = own_keys(Document(id="X1", content="Texte.", title=f"{text}, article {number}", extra=columns))
    names = {f"article:{number} loi n° 89-462", f"article:{number} loi du 1989-07-06", f"article:{number}"}
    assert names == {*keys}  # not one of unknown text, which the article of any other text of this number would be
    assert all(key.startswith(f"article:{number}") for key in keys)
    assert not [key for key in keys for other in others if other in key.replace(f":{number}", "")]
