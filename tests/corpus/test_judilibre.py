"""Judilibre's records: every field is kept, under its name or the table's, and an export may lack any of them."""

import pytest

from legal_rag.corpus import read_documents
from legal_rag.corpus.judilibre import _tables

TEXT = "LA COUR &amp; SON GREFFE\nMOTIVATION\nDISPOSITIF"
RECORD = {
    "id": "5fca25d9cbbf603303c4ff89",
    "source": "jurinet",
    "text": TEXT,
    "jurisdiction": "cc",
    "location": None,
    "chamber": "soc",
    "formation": "fs",
    "number": "19-60.222",
    "numbers": ["19-60.222", "19-60.223"],
    "ecli": "ECLI:FR:CCASS:2020:SO01153",
    "publication": ["b", "r"],
    "decision_date": "2020-11-25",
    "solution": "cassation",
    "solution_alt": "Cassation partielle sans renvoi",
    "type": "arret",
    "summary": None,
    "bulletin": "1153",
    "themes": ["élections professionnelles", "liste de candidats"],
    "titlesAndSummaries": [
        {"title": "ELECTIONS PROFESSIONNELLES - Liste", "summary": "Une liste suffit."},
        {"title": "SYNDICAT - Action", "summary": None},
    ],
    "visa": [{"title": "Article <a href='x'>L. 2314-30</a> du code du travail"}],
    "rapprochements": [{"title": "Sur la liste, à rapprocher : Soc., 9 mai 2018, pourvoi n° 17-14.088"}],
    "zones": {
        "introduction": [{"start": 0, "end": 25}],
        "motivations": [{"start": 25, "end": 36}],
        "dispositif": [{"start": 36, "end": None}],
    },
    "contested": {
        "id": "60000",
        "date": "2019-06-21T00:00:00.000Z",
        "title": "Tribunal d'instance de Clermont-Ferrand - 21 juin 2019",
        "number": "11-19-000123",
        "solution": "other",
        "url": "https://exemple.test/60000",
    },
    "timeline": [{"id": "60001", "title": "Soc., 25 novembre 2020", "date": "2020-11-25", "number": None}],
    "forward": {"id": "60002", "title": "CA Riom, 3 mars 2022", "date": "03/03/2022", "number": "21/00001"},
    "files": [],
    "nac": None,
    "partial": False,
    "particularInterest": True,
    "update_date": "2021-01-02",
    "legacy": {"selection": 1},
}


def document_of(record):
    (document,) = read_documents([record])
    return document


def test_a_record_is_read_with_all_that_it_says():
    assert document_of(RECORD).row() == {
        "id": "5fca25d9cbbf603303c4ff89",
        "title": "Cour de cassation, chambre sociale, 2020-11-25, 19-60.222",
        "content": "LA COUR & SON GREFFE\nMOTIVATION\nDISPOSITIF",
        "juridiction": "Cour de cassation",
        "formation": "Chambre sociale",
        "judges": "fs",
        "number": "19-60.222",
        "numbers": ["19-60.222", "19-60.223"],
        "ecli": "ECLI:FR:CCASS:2020:SO01153",
        "publication": ["b", "r"],
        "decision_date": "2020-11-25",
        "solution": "Cassation partielle sans renvoi",
        "nature": "ARRET",
        "summary": "Une liste suffit.",
        "bulletin": "1153",
        "headnotes": ["ELECTIONS PROFESSIONNELLES - Liste", "SYNDICAT - Action"],
        "themes": ["élections professionnelles", "liste de candidats"],
        "applied_laws": ["Article L. 2314-30 du code du travail"],
        "related_decisions": ["Sur la liste, à rapprocher : Soc., 9 mai 2018, pourvoi n° 17-14.088"],
        "zones": {
            "introduction": [{"start": 0, "end": 21}],
            "motivations": [{"start": 21, "end": 32}],
            "dispositif": [{"start": 32, "end": 42}],
        },
        "lower_court": "Tribunal d'instance de Clermont-Ferrand",
        "lower_date": "2019-06-21",
        "lower_number": "11-19-000123",
        "links": [
            {
                "type": "contested",
                "id": "60000",
                "title": "Tribunal d'instance de Clermont-Ferrand - 21 juin 2019",
                "number": "11-19-000123",
                "date": "2019-06-21",
                "solution": "other",
                "url": "https://exemple.test/60000",
            },
            {"type": "timeline", "id": "60001", "title": "Soc., 25 novembre 2020", "date": "2020-11-25"},
            {
                "type": "forward",
                "id": "60002",
                "title": "CA Riom, 3 mars 2022",
                "date": "2022-03-03",
                "number": "21/00001",
            },
        ],
        "source": "jurinet",
        "particularInterest": True,
        "partial": False,
        "update_date": "2021-01-02",
        "legacy": {"selection": 1},
        "config": "",
    }


def test_the_zones_of_a_cleaned_text_are_its_parts():
    document = document_of(RECORD)
    (zone,) = document.extra["zones"]["motivations"]
    assert document.content[zone["start"] : zone["end"]] == "MOTIVATION\n"


@pytest.mark.parametrize("field", [name for name in RECORD if name not in ("id", "text")])
def test_a_field_that_an_export_lacks_is_empty_and_the_others_stay(field):
    whole, without = document_of(RECORD).row(), document_of({key: RECORD[key] for key in RECORD if key != field}).row()
    column = _tables()["columns"].get(field, field)
    depending = {column, "title", "numbers", "lower_court", "lower_date", "lower_number", "links", "number", "summary"}
    assert {key for key in whole if whole[key] != without.get(key, "")} <= depending


def test_an_export_of_an_id_a_text_and_a_date_is_read():
    document = document_of({"id": "a", "text": "LA COUR", "update_date": "2021-01-02"})
    assert (document.content, document.juridiction, document.title) == ("LA COUR", "", "")
    assert document.extra == {"update_date": "2021-01-02"}


@pytest.mark.parametrize(
    ("jurisdiction", "location", "court"),
    [
        ("ca", "ca_aix_provence", "Cour d'appel d'Aix-en-Provence"),
        ("Cour d'appel", "Cour d'appel de Riom", "Cour d'appel de Riom"),
        ("tj", "tj47001", "Tribunal judiciaire (tj47001)"),
        ("ca", None, "Cour d'appel"),
        (None, "ca_riom", "Cour d'appel de Riom"),
    ],
)
def test_a_court_is_named_with_its_town(jurisdiction, location, court):
    assert document_of({**RECORD, "jurisdiction": jurisdiction, "location": location}).juridiction == court


@pytest.mark.parametrize(
    ("contested", "lower"),
    [
        ({"title": "Cour d'appel de Bordeaux, 6 février 2019"}, ("Cour d'appel de Bordeaux", "2019-02-06", "")),
        ({"jurisdiction": "ca", "date": "2019-02-06"}, ("Cour d'appel", "2019-02-06", "")),
        ({"title": "18/00001", "date": None, "number": 7}, ("18/00001", "", "7")),
        ([], ("", "", "")),
        ("CA Pau", ("", "", "")),
    ],
)
def test_the_decision_attacked_gives_its_court_date_and_number(contested, lower):
    extra = document_of({**RECORD, "contested": contested}).extra
    assert tuple(extra.get(f"lower_{name}", "") for name in ("court", "date", "number")) == lower


@pytest.mark.parametrize(
    "zones", [{"motivations": 3}, {"motivations": [None, {"start": "x"}]}, {"moyens": {"start": 0}}, []]
)
def test_zones_of_another_form_are_no_zones(zones):
    assert document_of({**RECORD, "zones": zones}).content.endswith("DISPOSITIF")
