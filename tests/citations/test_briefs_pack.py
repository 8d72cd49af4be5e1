"""The open pack of briefs: its key is true of the sample corpus, and our verifier does as well on it as we say."""

import sys
from pathlib import Path

import pytest

from legal_rag.citations import verify_text
from legal_rag.corpus import read_paper

BRIEFS = Path(__file__).parents[2] / "benchmarks" / "briefs"
PACK = BRIEFS / "pack"
sys.path.append(str(BRIEFS))  # behind everything: no name there hides another

from pack.score import Verdict, judge, read_lines, score, squash, touched  # noqa: E402

KEYS = read_lines(PACK / "keys.jsonl")


def test_the_pack_has_two_hundred_references_of_every_sort():
    assert len(KEYS) >= 200
    assert {key["status"] for key in KEYS} == {"confirmed", "wrong", "ambiguous", "absent", "out_of_scope", "none"}
    assert {key["document"] for key in KEYS} == {path.name for path in PACK.glob("brief-*")}


def test_every_decision_that_the_key_names_is_in_the_sample(sample_rows):
    assert {key["doc_id"] for key in KEYS} - {""} <= {row["id"] for row in sample_rows}


def test_words_that_the_key_calls_true_stand_in_their_decision(tiny_library):
    for key in KEYS:
        if key["sorts"] != ["quotation"] or key["status"] != "confirmed" or not key["doc_id"]:
            continue
        content = squash(tiny_library.document(key["doc_id"]).content)
        for part in key["text"].replace("[…]", "[...]").replace("(…)", "[...]").split("[...]"):
            assert squash(part) in content, key["text"]


def test_words_that_the_key_calls_altered_stand_in_no_decision(tiny_library):
    whole = "".join(squash(document.content) for document in tiny_library.documents())
    altered = [key for key in KEYS if key["what"] == ["words"]]
    assert altered
    assert [key["text"] for key in altered if squash(key["text"]) in whole] == []


def test_every_reference_of_the_key_stands_in_its_document():
    papers = {path.name: squash(read_paper(path).text) for path in PACK.glob("brief-*")}
    unseen = [key for key in KEYS if squash(key["text"]) not in papers[key["document"]]]
    assert {key["kind"] for key in unseen} <= {"struck out or hidden"}


def test_our_verifier_does_on_the_pack_what_the_data_card_says(tiny_library):
    verdicts = [
        {"document": path.name, "text": reference.text, "kind": reference.kind, "status": reference.status,
         "what": [correction.what for correction in reference.corrections]}
        for path in PACK.glob("brief-*")
        for reference in verify_text(read_paper(path), tiny_library).references
    ]  # fmt: skip
    failures = [result.failure for result in score(KEYS, verdicts)]
    assert failures.count("called confirmed") == 0
    assert failures.count("called wrong") == 0
    assert failures.count("not found") == 0


@pytest.mark.parametrize(
    ("expected", "verdicts", "failure"),
    [
        ("confirmed", [("confirmed", [])], ""),
        ("confirmed", [("confirmed", []), ("absent", [])], "called wrong"),
        ("confirmed", [("unread", [])], "another status"),
        ("wrong", [("confirmed", [])], "called confirmed"),
        ("wrong", [("wrong", ["date"])], ""),
        ("wrong", [("wrong", ["court"])], "not named"),
        ("absent", [], "not found"),
        ("none", [("absent", [])], "something found in nothing"),
    ],
)
def test_a_verdict_is_judged_by_what_the_reference_calls_for(expected, verdicts, failure):
    judged = judge("date", "brief.txt", expected, ["date"], [Verdict(*verdict) for verdict in verdicts])
    assert judged.failure == failure


def test_a_verdict_is_on_the_reference_that_has_its_words():
    references = ["casssoc12mars2019n1731442", "casssoc12mars2019n1731443"]
    assert touched("soc12mars2019n1731443", references) == [1]
    assert touched("ceassemblee3juin2021", references) == []
