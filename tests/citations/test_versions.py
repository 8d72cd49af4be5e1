"""What `verify` says of articles in versions: words of another version are never called wrong, nor in force."""

import json
from datetime import date
from pathlib import Path

import pytest

from legal_rag.citations import verify_text
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library

FIXTURES = Path(__file__).parents[1] / "fixtures" / "versions"
REFERENCES = [json.loads(line) for line in (FIXTURES / "references.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    build_index(IndexConfig(source=str(FIXTURES / "code.jsonl"), index_folder=str(folder), index_name="code", n_bits=0))
    return Library.open(folder, "code")


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
def laws(tmp_path_factory):
    deposit = "Loi n° 89-462 du 6 juillet 1989 tendant à améliorer les rapports locatifs"
    rows = [
        ("A1", deposit, "Le dépôt ne peut être supérieur à deux mois de loyer.", "1989-07-08", "2008-02-09"),
        ("A2", deposit, "Le dépôt ne peut être supérieur à un mois de loyer.", "2008-02-09", ""),
        ("B1", "Loi n° 89-463 du 6 juillet 1989 portant diverses mesures", "Le décret est publié.", "1989-07-08", ""),
    ]
    folder = tmp_path_factory.mktemp("laws")
    documents = [
        {"id": f"LEGIARTI{one}", "content": words, "title": f"{text}, article 22", "number": "22", "text_title": text,
         "text_id": text[:14], "article_id": one[0], "valid_from": first} | ({"valid_until": end} if end else {})
        for one, text, words, first, end in rows
    ]  # fmt: skip
    (folder / "laws.jsonl").write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    build_index(IndexConfig(source=str(folder / "laws.jsonl"), index_folder=str(folder), index_name="laws", n_bits=0))
    return Library.open(folder, "laws")


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
