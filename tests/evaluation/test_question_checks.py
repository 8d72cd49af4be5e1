"""What makes a question and its answer worth keeping."""

import json
import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from legal_rag.corpus.files import is_french
from legal_rag.evaluation.questions import QAPair, find_span, qa_reward, span_grounding_reward
from legal_rag.evaluation.questions.checks import breaks_off, judge

TEXT = (
    "LA COUR,\nAttendu que l’exploitant d’une carrière de Saint-Julien doit, sans faute prouvée, réparer le trouble "
    "anormal de\u00a0voisinage ;\nQu'elle lui alloue 3\u202f000 euros – dont 500 d'intérêts – en réparation ; que "
    "l'œuvre du temps n'y change rien."
)
GOOD = {
    "question": "Quelle somme répare le trouble anormal de voisinage causé par la carrière de Saint-Julien ?",
    "answer": "3\u202f000 euros",
    "summary": "La cour condamne l'exploitant de la carrière à réparer le trouble causé à ses voisins.",
    "main_topic": "Trouble anormal de voisinage",
}


def pair(**changes):
    return SimpleNamespace(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("sans faute prouvée", "sans faute prouvée"),
        ("l'exploitant d'une carrière", "l’exploitant d’une carrière"),
        ("Trouble anormal de voisinage", "trouble anormal de\u00a0voisinage"),
        ("3 000 euros - dont 500", "3\u202f000 euros – dont 500"),
        ("voisinage ; Qu'elle lui", "voisinage ;\nQu'elle lui"),
        ("L'oeuvre du temps", "l'œuvre du temps"),
        ("« 500 d'intérêts »", "500 d'intérêts"),
        (unicodedata.normalize("NFD", "réparer"), "réparer"),
    ],
)
def test_an_answer_is_found_as_the_text_writes_it(answer, found):
    start, end = find_span(TEXT, answer)
    assert TEXT[start:end] == found


@pytest.mark.parametrize("answer", ["4 000 euros", "repare", "", "  ", "«»", "une faute prouvée"])
def test_an_answer_that_is_not_there_has_no_span(answer):
    assert find_span(TEXT, answer) is None


def test_the_exact_is_preferred_to_the_folded_and_a_whole_word_to_part_of_one():
    assert find_span("Les articles de l'article", "article") == (18, 25)
    assert find_span("LA COUR. La cour", "La cour") == (9, 16)
    assert find_span("inarticulé", "articul") == (2, 9)


@given(st.integers(0, len(TEXT)), st.integers(1, 60))
def test_any_piece_of_a_text_has_a_span_that_is_that_piece(start, length):
    piece = TEXT[start : start + length]
    span = find_span(TEXT, piece)
    assert (span is None) == (not piece.strip())
    if span:
        assert TEXT[slice(*span)] in (piece, piece.strip())


def test_a_grounded_french_pair_has_the_whole_reward_and_less_when_folded():
    assert qa_reward({"context": TEXT}, pair()) == 1.0
    assert judge(TEXT, pair()).problems == ()
    context = {"context": TEXT}
    assert span_grounding_reward(context, pair(answer="sans faute prouvée")) == 1.0
    assert span_grounding_reward(context, pair(answer="SANS FAUTE PROUVÉE")) == 0.8
    assert span_grounding_reward(context, pair(answer="avec faute prouvée")) == 0.0
    assert span_grounding_reward(context, pair(answer="")) == 0.0


@pytest.mark.parametrize(
    ("changes", "problem", "reward"),
    [
        ({"answer": "4 000 euros"}, "ungrounded", 0.5),
        ({"question": "What is unique?"}, "not_french", 0.4),
        ({"summary": "The court orders the operator of the quarry to pay for the nuisance."}, "not_french", 0.5),
        ({"question": "Quelle somme répare le trouble causé par la carrière de Saint-Julien"}, "wrong_form", 0.5),
        ({"question": "Pourquoi ?"}, "names_no_matter", 0.9),
        ({"question": "Quel trouble de voisinage " + "très " * 40 + "anormal ?"}, "wrong_form", 0.5),
        ({"answer": TEXT[10:140]}, "wrong_form", 0.5),
        ({"question": "La carrière doit-elle 3 000 euros aux voisins ?"}, "given_away", 0.9),
        ({"question": "Selon le texte, quelle somme répare le trouble de voisinage ?"}, "refers_to_text", 0.9),
        ({"question": "Quelle somme répare le trouble de voisinage dans cette décision ?"}, "refers_to_text", 0.9),
        ({"question": "En l’espèce, quelle somme répare le trouble de voisinage ?"}, "refers_to_text", 0.9),
        ({"question": "Que décide la Cour de cassation sur le pourvoi ?"}, "names_no_matter", 0.9),
        ({"question": "Quelle somme est allouée ?"}, "names_no_matter", 0.9),
        ({"question": "Quel trouble de voisinage l'arrêt retient-il ?"}, "refers_to_text", 0.9),
        ({"question": "Que mentionne le document sur le trouble de voisinage ?"}, "refers_to_text", 0.9),
        ({"question": "Quel trouble de voisinage retient l'arrêt attaqué ?"}, "refers_to_text", 0.9),
        ({"question": "Quelle peine le braconnier a-t-il encourue ?"}, "names_no_matter", 0.9),
        ({"question": ""}, "unreadable", 0.0),
        ({"answer": None}, "unreadable", 0.0),
    ],
)
def test_each_fault_is_named_and_costs_its_share(changes, problem, reward):
    assert problem in judge(TEXT, pair(**changes)).problems
    assert qa_reward({"context": TEXT}, pair(**changes)) == pytest.approx(reward)


@pytest.mark.parametrize(
    "question",
    [
        "Que juge la Cour de cassation dans l'arrêt du 12 mai 2010 sur le trouble de voisinage ?",
        "Quel texte régit le trouble anormal de voisinage ?",
        "Que retient la décision n° 71-44 DC du trouble anormal de voisinage ?",
        "Que dit l'arrêt Blanco du trouble de voisinage ?",
        "Le document unique d'évaluation recense-t-il les troubles de voisinage ?",
        "La décision de préemption répare-t-elle le trouble de voisinage ?",
        "Dans quel contexte économique le trouble de voisinage est-il réparé ?",
    ],
)
def test_a_question_may_name_a_decision_or_ask_for_a_text(question):
    assert "refers_to_text" not in judge(TEXT, pair(question=question)).problems


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("le responsable de la", True),
        ("en application d'une", True),
        ("l'auteur de l’", True),
        ("« à la charge des »", True),
        ("la preuve est libre et", True),
        ("il résulte que la société n'", True),
        ("jusqu'à", True),
        ("dans un délai de deux mois après", False),
        ("l'une ou l'autre, et non l'une", False),
        ("la faute de quelqu'un", False),
        ("celui-là", False),
        ("article 5 A", False),
        ("la clause n'est pas abusive.", False),
    ],
)
def test_an_answer_that_stops_at_an_article_or_a_preposition_is_no_answer(answer, problem):
    assert breaks_off(answer) == problem
    context = f"Il est jugé ceci : {answer} responsabilité."
    assert ("broken_off" in judge(context, pair(answer=answer)).problems) == problem


@pytest.mark.parametrize("answer", ["000 euros", "3", "00", "oi"])
def test_part_of_a_number_or_of_a_short_answer_is_no_answer_and_one_cut_within_a_word_is_widened(answer):
    assert judge(TEXT, pair(answer=answer)).span is None
    assert judge(TEXT, pair(answer="anormal de voisi")).span is not None
    start, end = judge(TEXT, pair(answer="l’exploitant d’une carr")).span
    assert TEXT[start:end] == "l’exploitant d’une carrière"


def test_a_denial_and_a_choice_say_something_though_their_words_are_in_the_question():
    context = "La clause n'est pas abusive ; la preuve en incombe à l'employeur."
    denial = pair(question="La clause de non-concurrence est-elle abusive ?", answer="n'est pas abusive")
    choice = pair(
        question="La preuve de la clause incombe-t-elle au salarié ou à l'employeur ?", answer="à l'employeur"
    )
    assert judge(context, denial).problems == judge(context, choice).problems == ()


def test_a_pair_keeps_its_limits():
    QAPair(question=GOOD["question"], answer="3 000 euros", main_topic="Voisinage")
    for changes in (
        {"question": "Quoi ?"},
        {"question": "Elle répare le trouble de voisinage."},
        {"answer": "x" * 101},
    ):
        with pytest.raises(ValidationError):
            QAPair(**{"question": GOOD["question"], "answer": "3 000 euros", **changes})
    with pytest.raises(ValidationError, match="not in French"):
        QAPair(question="Which sum repairs the nuisance?", answer="3 000 euros")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("Qui est responsable ?", "Quid de la clause pénale ?", "M. X est-il éligible ?")),
        *((text, False) for text in ("What is unique?", "Who is liable?", "Which article of le code applies?", "")),
        *((text, False) for text in ("¿Cuál es el plazo?", "Was gilt hier?", "Qual è il termine di ricorso?")),
        *((text, False) for text in ("Какой срок?", "上诉的期限是什么？", "Care este termenul de apel?")),
    ],
)
def test_short_french_is_french_and_no_other_language_is_taken_for_it(text, expected):
    assert is_french(text) == expected


@pytest.mark.shared
def test_the_questions_of_the_shared_set_are_french(shared_data):
    for name in ("questions-dev.jsonl", "travail-dev.queries.jsonl"):
        for line in (shared_data / name).read_text("utf-8").splitlines():
            assert is_french(json.loads(line)["question"])
