"""Evaluation of abstention: what the figures are of, and what the command says of questions without an answer."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support.agent_scripts import diligent
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import EvidenceAgent
from legal_rag.base.html import Rows
from legal_rag.cli import main
from legal_rag.evaluation import (
    AbstentionEvaluation,
    Query,
    evaluate_abstention,
    read_queries,
)
from legal_rag.evaluation.abstention import SelectiveAnswer
from legal_rag.retriever import Retriever

WITHOUT = [
    {"qid": "sans-1", "question": "Quel vin servir avec des huîtres ?"},
    {"qid": "sans-2", "question": "Qui a gagné la course ?", "doc_id": "FICTIF0101", "answerable": False},
]


@pytest.fixture(scope="module")
def queries(sample_questions, tmp_path_factory):
    """Return a file of eight questions with an answer and two without."""
    rows = [{**row, "question": row["question"][:80]} for row in sample_questions[:8]]  # the small encoder's limit
    path = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [*rows, *WITHOUT]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def agent(tiny_library, tiny_encoder):
    return EvidenceAgent(Retriever(tiny_library, tiny_encoder), match_words=False)


@pytest.fixture
def place(tiny_library):
    return ["--index-folder", str(tiny_library.path.parent), "--index-name", tiny_library.path.name]


def answered(*rows):
    """Return an evaluation of answers, each given as confidence (None: abstained) and whether it is right."""
    answers = [
        SelectiveAnswer(
            f"q{number}",
            True,
            "abstained" if confidence is None else "answers",
            confidence,
            "d",
            right,
        )
        for number, (confidence, right) in enumerate(rows)
    ]
    return AbstentionEvaluation([], Rows(answers))


def test_risk_grows_from_the_surest_answer_to_the_abstentions_and_equal_ones_share_it():
    evaluation = answered((None, False), (1.0, False), (3.0, True), (1.0, True))
    assert evaluation.curve == [(0.25, 0.0), (0.5, 0.25), (0.75, pytest.approx(1 / 3)), (1.0, 0.5)]
    assert answered((1.0, True), (1.0, False)).curve == answered((1.0, False), (1.0, True)).curve


def test_the_figures_are_those_of_the_answers(agent, queries):
    questions, qrels = read_queries(queries)
    evaluation = evaluate_abstention(agent, questions, qrels)
    figures = {figure.measure: figure for figure in evaluation.figures}
    answers = evaluation.answers
    assert [answer.qid for answer in answers if not answer.answerable] == ["sans-1", "sans-2"]
    assert all(answer.right == (answer.doc_id in qrels.get(answer.qid, ())) for answer in answers)
    ranks = np.argsort(np.argsort([answer.confidence for answer in answers]))
    assert figures["AUROC"].mean == pytest.approx(roc_auc_score([answer.answerable for answer in answers], ranks))
    curve = [risk for _, risk in evaluation.curve]
    assert figures["AURC"].mean == pytest.approx(np.mean(curve))
    assert (figures["risk@0.5"].mean, figures["risk@1.0"].mean) == (curve[4], curve[9])
    assert figures["risk@1.0"].mean == figures["risk"].mean >= 0.2  # all were answered, two of ten wrongly
    assert figures["coverage"] == ("coverage", 1.0, 1.0, 1.0)
    assert all(0 <= figure.low <= figure.mean <= figure.high <= 1 for figure in evaluation.figures)
    assert sum(evaluation.outcomes(answerable=True).values()) == 8


@pytest.mark.parametrize(("qrels", "n"), [({}, 0), ({"q1": {"d": 0}}, 0), ({"q1": {"d": 1}, "q2": {"d": 2}}, 2)])
def test_questions_of_one_kind_alone_tell_nothing(agent, qrels, n):
    asked = [Query("q1", "Qui ?"), Query("q2", "Quoi ?")]
    with pytest.raises(ValueError, match=f"{n} of 2 questions have a right document .expected some with"):
        evaluate_abstention(agent, asked, qrels)


def test_a_question_that_cannot_be_asked_is_named(agent):
    with pytest.raises(ValueError, match="query 'q2': "):
        evaluate_abstention(agent, [Query("q1", "Qui ?"), Query("q2", "mot " * 5000)], {"q1": {"d": 1}})


def test_the_command_prints_outcomes_and_figures(place, queries, capsys):
    assert main(["evaluate", *place, "--abstention", "--queries", str(queries)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "10 questions over 60 documents"
    assert [line.split(":")[0] for line in lines[1:3]] == ["     8 answerable", "     2 unanswerable"]
    assert [sum(map(int, re.findall(r"(\d+) [a-z]+(?:,|$)", line))) for line in lines[1:3]] == [8, 2]
    assert [line.split()[0] for line in lines[3:]] == [
        "AUROC",
        "AURC",
        *(f"risk@{share}" for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        "coverage",
        "risk",
    ]


def test_a_model_that_fails_has_given_no_answer_and_one_that_answers_is_as_sure_as_its_passages(place, queries, capsys):
    def fails_at_one(prompt, attempt):
        refused = Reply(status=400, raw_body='{"error": {"message": "no"}}')
        return refused if "huîtres" in prompt else diligent(prompt, attempt)

    with ScriptedServer(fails_at_one) as server:
        asked = ["--queries", str(queries), "--model", "scripted", "--api-base", server.api_base, "--json"]
        assert main(["evaluate", *place, "--abstention", *asked]) == 0
    value = json.loads(capsys.readouterr().out)
    outcomes = {answer["qid"]: answer["outcome"] for answer in value["answers"]}
    assert outcomes.pop("sans-1") == "failed"
    assert set(outcomes.values()) == {"answers"}
    assert value["outcomes"]["unanswerable"]["failed"] == 1
    assert value["figures"]["coverage"]["mean"] == 0.9
    assert [answer["confidence"] for answer in value["answers"] if answer["qid"] == "sans-1"] == [None]


@pytest.mark.parametrize("option", [["--compare", "run.txt"], ["--mode", "bm25"], ["--output", "runs"]])
def test_what_makes_or_compares_a_run_is_refused(place, queries, capsys, option):
    assert main(["evaluate", *place, "--abstention", "--queries", str(queries), *option]) == 1
    assert f"makes no run: {option[0]} does not go with it" in capsys.readouterr().err
