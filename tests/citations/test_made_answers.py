"""Made answers, true and false, tell the truth about themselves, and their citations are checked as they have to be."""

import random
import re
import sys

import pytest
from support import ROOT

from legal_rag.base.text import find_folded, fold
from legal_rag.citations import Citation, CitationEnricher, EnrichedResponse

sys.path.append(str(ROOT / "benchmarks"))  # behind everything: no name there hides another

from altered_quotations import ALTERATIONS
from answer_material import Passage, find_facts, letters_of
from citation_scores import claim_outcomes, judge, outcomes_of, scores_of
from false_answers import HALVES, Case, half_of, make_cases, squash
from stated_changes import FALSE, RESPELT
from synthetic_answers import SyntheticAnswer, make_answers
from synthetic_claims import KINDS, Claim

QUOTED = re.compile(r"«\s*([^«»]+?)\s*»|\"([^\"]+)\"|“([^“”]+)”")
CUT = re.compile(r"\s*(?:\[\.\.\.\]|\[…\]|\(\.\.\.\)|\(…\)|…)\s*")
SENTENCE = "Attendu que le salarié n'est pas fondé à demander 1 000 euros pour un préjudice qu'il ne prouve pas"
CLAUSE = (
    "le 13 mai 2009, la société Pisoni a versé à M. Estrosi 20 000 euros, soit 5 % du prix, selon l'article L. 52-12"
)


@pytest.fixture(scope="module")
def texts(sample_rows):
    return {row["id"]: row["content"] for row in sample_rows}


@pytest.fixture(scope="module")
def answers(texts):
    return make_answers(texts, 80, seed=5)


def claims_of(answers, *kinds):
    return [(answer, claim) for answer in answers for claim in answer.claims if claim.kind in kinds]


def quotations(claim):
    """Return the quotations of a claim, each as its pieces between cuts, without the signs at their ends."""
    quoted = [next(filter(None, groups)) for groups in QUOTED.findall(claim.text.replace(claim.markers or "\0", ""))]
    return [[piece.strip(" .;*\u00a0\u202f") for piece in CUT.split(one) if piece.strip(" .;")] for one in quoted]


def test_every_kind_of_claim_is_made_where_it_says_of_passages_that_were_read(texts, answers):
    assert len({claim.kind for answer in answers for claim in answer.claims}) >= len(KINDS)
    assert make_answers(texts, 5, seed=5) == answers[:5] != make_answers(texts, 5, seed=6)
    for answer in answers:
        for claim in answer.claims:
            assert answer.text[claim.at : claim.at + len(claim.text)] == claim.text
            assert claim.markers in claim.text
            assert all(passage.doc_id in answer.read for passage in claim.passages)
    for _, claim in claims_of(answers, "invented id"):
        assert not any(doc_id in claim.markers for doc_id in texts)


def test_a_correct_quotation_stands_at_its_true_place_which_only_shifted_offsets_do_not_hold(texts, answers):
    marked = ("correct quotation", "correct quotation, cut", "shifted offsets")
    for _, claim in claims_of(answers, *marked, "swapped documents", "missing offsets", "quotation without marker"):
        (pieces,), (place,) = quotations(claim), claim.passages
        truth = fold(texts[place.doc_id][place.char_start : place.char_end])
        assert all(find_folded(piece, truth) for piece in pieces)
    for _, claim in claims_of(answers, *marked, "correct paraphrase"):
        (place,) = claim.passages
        start, end = map(int, re.search(r"(\d+) ?(?:-|–|à) ?(\d+)\]$", claim.markers).groups())
        assert Passage(place.doc_id, start, end).holds(place) == (claim.kind != "shifted offsets")


def test_an_altered_quotation_and_a_changed_fact_stand_nowhere_in_what_was_read(texts, answers):
    folded = {doc_id: fold(text) for doc_id, text in texts.items()}
    for answer, claim in claims_of(answers, "altered quotation"):
        (pieces,) = quotations(claim)
        assert claim.passages == ()
        assert not any(all(find_folded(piece, folded[doc_id]) for piece in pieces) for doc_id in answer.read)
    facts = {doc_id: {fact.value for fact in find_facts(doc_id, text)} for doc_id, text in texts.items()}
    for answer, claim in claims_of(answers, "changed date", "changed amount", "changed article", "fact of no document"):
        assert {fact.value for fact in find_facts("", claim.text)} - set().union(*map(facts.get, answer.read))


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=list(ALTERATIONS))
def test_an_alteration_changes_the_words_or_gives_up(alter):
    rng = random.Random(0)
    for text in (SENTENCE, "M. Dupont invoque l'article L. 52-12 du code", "", "à", "…", "123"):
        altered = {alter(text, rng) for _ in range(20)} - {None}
        assert all(letters_of(one) != letters_of(text) for one in altered)


def response(text, *citations):
    return EnrichedResponse(text, list(citations), [], [], None, False)


def test_a_citation_belongs_to_the_claim_it_stands_in_and_one_of_a_whole_document_is_not_right():
    first = Claim(
        "correct quotation", "", "« A b c » [Source: D, car. 0–5].", "[Source: D, car. 0–5]", (Passage("D", 0, 5),)
    )
    second = Claim("altered quotation", "", "« X » [Source: D, chars 9-9].", "[Source: D, chars 9-9]", (), at=33)
    answer = SyntheticAnswer(f"{first.text} {second.text}", ("D",), (first, second))
    right, wrong = Citation("D", 0, 5, "A b c", "verified"), Citation("D", 9, 10, "x", "verified")
    checked = response("« A b c » [Source: D, chars 0-5]. « X » [Source: D, chars 9-10].", right, wrong)
    outcomes = claim_outcomes(answer, checked)
    assert [one.cells() for one in outcomes] == [["verified"], ["verified wrongly"]]
    scores = scores_of(outcomes)
    assert (scores.precision, scores.recall, scores.altered_verified) == (0.5, 1.0, 1)
    claim = Claim("quotation without marker", "", "« A b c ».", "", (Passage("D", 10, 15),))
    answer, wide = SyntheticAnswer(claim.text, ("D",), (claim,)), Citation("D", 0, 9000, "…", "verified")
    (outcome,) = claim_outcomes(answer, response("« A b c » [Source: D, chars 0-9000].", wide))
    assert outcome.cells() == ["verified wrongly"]
    assert outcomes_of([answer], lambda text, read: response("« A b d »."))[1] == 1  # its words were changed


@pytest.mark.shared
@pytest.mark.slow
def test_citations_of_synthetic_answers_are_checked_as_a_lawyer_would(shared_decisions):
    documents = {one.id: one.content for one in shared_decisions[:1000]}
    outcomes, changed = outcomes_of(make_answers(documents, 50, seed=100), CitationEnricher(documents).enrich)
    scores = scores_of(outcomes, changed)
    assert scores.n_correct > 75
    assert scores.precision >= 0.995
    assert scores.recall >= 0.92  # its cuts are drawn at random: some leave out what turns the meaning
    assert scores.altered_verified == 0
    assert scores.changed_texts == 0


@pytest.mark.parametrize("rules", [FALSE, RESPELT])
def test_a_changed_clause_says_another_thing_a_respelt_one_the_same_and_one_without_the_thing_stays(rules):
    for name in ("date, bold", "sum, CHF", "rate, points", "article", "company") if rules is FALSE else (
        "date, entity", "sum, joined", "rate, joined", "article, joined", "person, bold"
    ):  # fmt: skip
        change = rules[name](random.Random(0), CLAUSE)
        assert change.text != CLAUSE
        assert (squash(change.text) == squash(CLAUSE)) == (rules is RESPELT)
    assert {rule(random.Random(0), text) for rule in RESPELT.values() for text in ("", "…", "le juge", "123")} == {None}


def case(truth, text="« A b c » [Source: D, chars 0-5].", **more):
    return Case("k", truth, text, ("D",), **{"marked": True, **more})


@pytest.mark.parametrize(
    ("truth", "status", "failure"),
    [
        ("false", "verified", "vouched for"),
        ("false", "supported", "supported"),
        ("false", "unverified", ""),
        ("spoken", "verified", "no warning"),
        ("quoting", "supported", "only supported"),
        ("quoting", "verified", ""),
        ("stating", "verified", "verified without quotation"),
        ("stating", "supported", ""),
    ],
)
def test_a_case_fails_by_the_status_it_may_not_have(truth, status, failure):
    cited = Citation("D", 0, 5, "A b c", status)
    assert judge(case(truth), lambda text, read: response(text, cited), {"D": "A b c d"}).failure == failure


@pytest.mark.shared
@pytest.mark.slow
def test_every_quotation_called_honest_stands_in_what_was_read_of_the_half_that_its_case_is_of(shared_decisions):
    cases = [one for half in HALVES for one in make_cases(shared_decisions[:600], half, n=1)]
    texts = {one.id: squash(one.content) for one in shared_decisions[:600]}
    assert {one.half for one in cases} == set(HALVES)
    assert all(len({half_of(doc_id) for doc_id in one.read}) == 1 for one in cases)
    quoting = [one for one in cases if one.truth == "quoting"]
    assert len(quoting) > 100
    assert all(any(squash(piece) in texts[doc_id] for doc_id in one.read) for one in quoting for piece in one.words)
