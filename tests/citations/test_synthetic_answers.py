"""Synthetic answers tell the truth about themselves; and citations of them are checked as well as they have to be."""

import random
import re
import sys

import pytest
from support import ROOT

from legal_rag.base.text import find_folded, fold
from legal_rag.citations import Citation, CitationEnricher, EnrichedResponse

sys.path.append(str(ROOT / "benchmarks"))  # behind everything: no name there hides another

from altered_quotations import ALTERATIONS, change_negation, delete_word, swap_words
from answer_material import Material, Passage, find_facts, letters_of
from citation_scores import claim_outcomes, outcomes_of, scores_of
from synthetic_answers import SyntheticAnswer, make_answers
from synthetic_claims import KINDS, Claim, Scene, unmarked_fact

QUOTED = re.compile(r"«\s*([^«»]+?)\s*»|\"([^\"]+)\"|“([^“”]+)”")
CUT = re.compile(r"\s*(?:\[\.\.\.\]|\[…\]|\(\.\.\.\)|\(…\)|…)\s*")
SENTENCE = "Attendu que le salarié n'est pas fondé à demander 1 000 euros pour un préjudice qu'il ne prouve pas"


@pytest.fixture(scope="module")
def texts(sample_rows):
    return {row["id"]: row["content"] for row in sample_rows}


@pytest.fixture(scope="module")
def answers(texts):
    return make_answers(texts, 40, seed=5)


def claims_of(answers, *kinds):
    return [(answer, claim) for answer in answers for claim in answer.claims if claim.kind in kinds]


def quotations(claim):
    """Return the quotations of a claim, each as its pieces between cuts, without the signs at their ends."""
    found = [next(filter(None, groups)) for groups in QUOTED.findall(claim.text.replace(claim.markers or "\0", ""))]
    return [[piece.strip(" .;*\u00a0\u202f") for piece in CUT.split(one) if piece.strip(" .;")] for one in found]


def test_every_kind_of_claim_is_made_more_than_once_and_a_seed_gives_the_same_answers(texts, answers):
    made = [claim.kind for answer in make_answers(texts, 120, seed=0) for claim in answer.claims]
    assert len(set(made)) >= len(KINDS)
    assert min(made.count(kind) for kind in set(made)) >= 2
    assert make_answers(texts, 40, seed=5) == answers
    assert make_answers(texts, 40, seed=6) != answers


def test_an_answer_has_three_to_eight_claims_that_stand_where_they_say(answers):
    for answer in answers:
        assert 3 <= len(answer.claims) <= 8
        assert len(answer.read) == 20
        for claim in answer.claims:
            assert answer.text[claim.at : claim.at + len(claim.text)] == claim.text
            assert claim.markers in claim.text


def test_every_true_passage_lies_in_a_document_that_was_read_and_an_invented_id_is_no_documents(texts, answers):
    for answer in answers:
        for passage in (passage for claim in answer.claims for passage in claim.passages):
            assert passage.doc_id in answer.read
            assert texts[passage.doc_id][passage.char_start : passage.char_end].strip(" \n.;,:") != ""
    for _, claim in claims_of(answers, "invented id"):
        assert not any(doc_id in claim.markers for doc_id in texts)


def test_a_correct_quotation_stands_at_its_true_place(texts, answers):
    kinds = ("correct quotation", "correct quotation, cut", "shifted offsets", "swapped documents", "missing offsets")
    for _, claim in claims_of(answers, *kinds, "quotation without marker", "invented id"):
        (pieces,), (place,) = quotations(claim), claim.passages
        truth = fold(texts[place.doc_id][place.char_start : place.char_end])
        assert all(find_folded(piece, truth) for piece in pieces)


def test_a_correct_marker_points_at_what_holds_the_passage_and_shifted_offsets_leave_out_part_of_it(answers):
    kinds = ("correct quotation", "correct quotation, cut", "correct paraphrase", "shifted offsets")
    for _, claim in claims_of(answers, *kinds):
        (place,) = claim.passages
        start, end = map(int, re.search(r"(\d+) ?(?:-|–|à) ?(\d+)\]$", claim.markers).groups())
        assert place.doc_id in claim.markers
        assert Passage(place.doc_id, start, end).holds(place) == (claim.kind != "shifted offsets")
        assert start <= place.char_start < place.char_end <= end or claim.kind == "shifted offsets"


def test_an_altered_quotation_stands_nowhere_in_what_was_read(texts, answers):
    altered = claims_of(answers, "altered quotation")
    assert len(altered) > 10
    folded = {doc_id: fold(text) for doc_id, text in texts.items()}
    for answer, claim in altered:
        (pieces,) = quotations(claim)
        assert claim.passages == ()
        assert not any(all(find_folded(piece, folded[doc_id]) for piece in pieces) for doc_id in answer.read)


def test_a_changed_fact_is_none_of_those_read(texts, answers):
    changed = claims_of(answers, "changed date", "changed amount", "changed article", "fact of no document")
    assert changed
    for answer, claim in changed:
        said = {fact.value for fact in find_facts("", claim.text)}
        known = {fact.value for doc_id in answer.read for fact in find_facts(doc_id, texts[doc_id])}
        assert claim.passages == ()
        assert said - known


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=list(ALTERATIONS))
def test_an_alteration_changes_the_words_or_gives_up(alter):
    rng = random.Random(0)
    for text in (SENTENCE, "M. Dupont invoque l'article L. 52-12 du code", "", "à", "…", "123"):
        altered = {alter(text, rng) for _ in range(20)} - {None}
        assert all(letters_of(one) != letters_of(text) for one in altered)


def test_alterations_do_what_they_are_called():
    rng = random.Random(0)
    assert change_negation("il n'est pas fondé", rng) == "il est fondé"
    assert change_negation("il est fondé", rng) == "il n'est pas fondé"
    assert delete_word("la faute grave commise", rng) in ("la grave commise", "la faute commise")
    assert swap_words("faute grave", rng) == "grave faute"
    assert swap_words("faute", rng) is None


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("date", "les 1er mars 1998 et 32 mars 1998", [("1", "mars", "1998")]),
        ("amount", "1 000 euros, 12.500,50 francs, 500 euros", [("1000", "", "euros"), ("12500", "50", "francs")]),
        ("amount", "37. 752, 18 euros, 1 10 000 francs, 1000 personnes", []),
        ("article", "l'article L. 52-12 et l'article L.O. 128, article 6", [("L", "5212"), ("LO", "128")]),
        ("percentage", "13,36 % et 5%", [("1336",), ("5",)]),
        ("case number", "pourvoi n° B 19-60.222", [("B1960222",)]),
    ],
)
def test_facts_are_told_by_their_value(kind, text, values):
    assert [fact.value[1:] for fact in find_facts("A", text) if fact.kind == kind] == values


def test_a_fact_of_two_documents_is_never_one_that_stands_once():
    texts = {"A": "Le contrat est du 12 mars 1998. " * 3, "B": "La lettre est du 12 mars 1998. " * 3}
    scene = Scene(random.Random(0), Material(texts), texts)
    assert [unmarked_fact(scene) for _ in range(50)] == [None] * 50


def response(text, *citations, removed=()):
    return EnrichedResponse(text, list(citations), [], list(removed), None, False)


def test_a_citation_belongs_to_the_claim_it_stands_in():
    first = Claim(
        "correct quotation", "", "« A b c » [Source: D, car. 0–5].", "[Source: D, car. 0–5]", (Passage("D", 0, 5),)
    )
    second = Claim("altered quotation", "", "« X » [Source: D, chars 9-9].", "[Source: D, chars 9-9]", (), at=33)
    answer = SyntheticAnswer(f"{first.text} {second.text}", ("D",), (first, second))
    right, wrong = Citation("D", 0, 5, "A b c", "verified"), Citation("D", 9, 10, "x", "verified")
    checked = response("« A b c » [Source: D, chars 0-5]. « X » [Source: D, chars 9-10].", right, wrong)
    outcomes = claim_outcomes(answer, checked)
    assert [one.cells() for one in outcomes] == [["verified"], ["verified wrongly"]]
    assert [one.as_it_should_be() for one in outcomes] == [True, False]
    scores = scores_of(outcomes)
    assert (scores.precision, scores.recall, scores.altered_verified) == (0.5, 1.0, 1)


def test_a_citation_of_a_whole_document_is_not_right_and_an_answer_whose_words_were_changed_is_counted():
    claim = Claim("quotation without marker", "", "« A b c ».", "", (Passage("D", 10, 15),))
    wide = Citation("D", 0, 9000, "…", "verified")
    (outcome,) = claim_outcomes(
        SyntheticAnswer(claim.text, ("D",), (claim,)), response("« A b c » [Source: D, chars 0-9000].", wide)
    )
    assert outcome.cells() == ["verified wrongly"]
    claim = Claim("no facts", "", "Rien à dire.", "", ())
    answer = SyntheticAnswer(claim.text, (), (claim,))
    assert outcomes_of([answer], lambda text, read: response("Rien à redire."))[1] == 1
    assert outcomes_of([answer], lambda text, read: response("Rien à dire."))[1] == 0


@pytest.mark.shared
def test_citations_of_synthetic_answers_are_checked_as_a_lawyer_would(shared_decisions):
    documents = {one.id: one.content for one in shared_decisions[:1000]}
    outcomes, changed = outcomes_of(make_answers(documents, 100, seed=100), CitationEnricher(documents).enrich)
    scores = scores_of(outcomes, changed)
    assert scores.n_correct > 150
    assert scores.precision >= 0.995
    assert scores.recall >= 0.92  # its cuts are drawn at random: some leave out what turns the meaning
    assert scores.altered_verified == 0
    assert scores.changed_texts == 0
