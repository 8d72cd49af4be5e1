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
