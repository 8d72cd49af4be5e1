"""False answers are false in what was read, honest ones are true, and both are judged by what they promise."""

import random
import re
import sys

import pytest
from support import ROOT

from legal_rag.citations import Citation, EnrichedResponse

sys.path.append(str(ROOT / "benchmarks"))  # behind everything: no name there hides another

from citation_scores import judge
from false_answers import HALVES, Case, clauses_of, false_kinds, half_of, honest_kinds, make_cases, squash
from stated_changes import FALSE, RESPELT, in_words

CLAUSE = (
    "le 13 mai 2009, la société Pisoni a versé à M. Estrosi 20 000 euros, soit 5 % du prix, selon l'article L. 52-12"
)


def case(truth, text="« A b c » [Source: D, chars 0-5].", **more):
    return Case("k", truth, text, ("D",), **{"marked": True, **more})


def answering(*citations):
    return lambda text, read: EnrichedResponse(text, list(citations), [], [], None, False)


@pytest.fixture(scope="module")
def cases(shared_decisions):
    return [one for half in HALVES for one in make_cases(shared_decisions[:1500], half, n=1)]


def test_kinds_have_names_of_their_own_and_numbers_are_spelt_in_french():
    names = [one.name for one in (*false_kinds(), *honest_kinds())]
    assert len(set(names)) == len(names) > 700
    assert [in_words(n) for n in (21, 71, 81, 93, 200)] == [
        "vingt et un", "soixante et onze", "quatre-vingt-un", "quatre-vingt-treize", "deux cents"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        *((FALSE, name) for name in ("date, bold", "sum, CHF", "rate, points", "article", "company", "person")),
        *(
            (RESPELT, name)
            for name in ("date, entity", "sum, joined", "rate, joined", "article, joined", "person, bold")
        ),
    ],
)
def test_a_changed_clause_says_another_thing_and_a_respelt_one_the_same(rules, name):
    change = rules[name](random.Random(0), CLAUSE)
    assert change.text != CLAUSE
    assert (squash(change.text) == squash(CLAUSE)) == (rules is RESPELT)


@pytest.mark.parametrize("text", ["", "…", "le juge", "l'article", "123"])
def test_a_clause_without_the_thing_is_not_changed(text):
    assert [rule(random.Random(0), text) for rule in RESPELT.values()] == [None] * len(RESPELT)


@pytest.mark.parametrize(
    ("truth", "status", "failure"),
    [
        ("false", "verified", "vouched for"),
        ("false", "relocated", "vouched for"),
        ("false", "supported", "supported"),
        ("false", "unverified", ""),
        ("spoken", "verified", "no warning"),
        ("quoting", "supported", "only supported"),
        ("quoting", "unverified", "not confirmed"),
        ("quoting", "verified", ""),
        ("stating", "verified", "verified without quotation"),
        ("stating", "supported", ""),
    ],
)
def test_a_case_fails_by_the_status_it_may_not_have(truth, status, failure):
    cited = Citation("D", 0, 5, "A b c", status)
    assert judge(case(truth), answering(cited), {"D": "A b c d"}).failure == failure


def test_a_marker_added_to_a_false_sentence_and_a_quotation_cited_at_another_place_are_failures():
    bare = case("false", "« A b c ».", marked=False)
    unverified, moved = Citation("D", 0, 5, "A b c", "unverified"), Citation("D", 6, 9, "d e", "verified")
    assert judge(bare, answering(unverified), {"D": "A b c"}).failure == "given a marker"
    assert judge(case("quoting", words=("A b c",)), answering(moved), {"D": "A b c d e"}).failure == "wrong place"
    honest = "« A b c » [Source: D, chars 0-5]."  # beside a false one
    beside = case("false", f"{honest} Le 3 mai.", marked=False, before=honest)
    assert judge(beside, answering(Citation("D", 0, 5, "A b c", "verified")), {"D": "A b c"}).failure == ""


@pytest.mark.shared
def test_a_case_is_of_the_half_of_its_first_decision_but_where_another_is_quoted(cases):
    assert {one.half for one in cases} == set(HALVES)
    assert all(len({half_of(doc_id) for doc_id in one.read}) == 1 for one in cases)


@pytest.mark.shared
def test_every_quotation_called_honest_stands_in_what_was_read(cases, shared_decisions):
    texts = {one.id: squash(one.content) for one in shared_decisions}
    quoting = [one for one in cases if one.truth == "quoting"]
    assert len(quoting) > 200
    assert all(any(squash(piece) in texts[doc_id] for doc_id in one.read) for one in quoting for piece in one.words)


@pytest.mark.shared
def test_a_seed_gives_the_same_cases(shared_decisions):
    some = shared_decisions[:300]
    assert make_cases(some, "dev", 1, seed=3) == make_cases(some, "dev", 1, seed=3)


@pytest.mark.shared
def test_clauses_are_whole_and_stand_where_they_say(shared_decisions):
    for document in shared_decisions[:200]:
        for clause in clauses_of(document):
            assert document.content[clause.place.char_start : clause.place.char_end] == clause.text
            assert not re.match(r"\W", clause.text)
