"""Evaluate abstention: how well the toolkit's confidence tells questions with an answer from those without."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from legal_rag.agent.agent import LegalReActAgent
from legal_rag.agent.evidence import EvidenceAgent
from legal_rag.base.files import progress
from legal_rag.base.html import Rows, displayed
from legal_rag.evaluation.metrics import CONFIDENCE, RESAMPLES, SEED, Figure
from legal_rag.evaluation.trec import Qrels, Query

COVERAGES: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
Outcome = Literal["abstained", "unsure", "close", "answers", "failed"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("abstained", "unsure", "close", "answers", "failed")


@displayed
class SelectiveAnswer(NamedTuple):
    """How a question was answered, and how surely."""

    qid: str
    answerable: bool  # there is a right document
    outcome: Outcome  # a grade of evidence mode (a model's answer counts as "answers"), or why there is no answer
    confidence: float | None  # `EvidenceAgent.surety` of the passages found; None without an answer
    doc_id: str  # quoted first; '' without a quotation
    right: bool  # it is a right document


@displayed
@dataclass(frozen=True)
class AbstentionEvaluation:
    """Figures over questions with and without an answer, with 95 % confidence intervals.

    AUROC: the chance that a question with an answer has a higher confidence than one without (Hanley and McNeil, 1982).
    risk@c: of the share c of questions answered most surely, the share not answered from a right document, which all
    without one are not (El-Yaniv and Wiener, 2010). AURC: the mean of that risk over all coverages (Geifman and
    El-Yaniv, 2017; Geifman et al., 2019). coverage and risk: of the questions that were answered.
    """

    figures: list[Figure]
    answers: Rows[SelectiveAnswer]

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Risk by coverage, from one question to all."""
        confidence, _, wrong = _columns(self.answers)
        risks = _risk_curve(_groups(confidence), wrong)
        return [(rank / len(risks), float(risk)) for rank, risk in enumerate(risks, start=1)]

    def outcomes(self, *, answerable: bool) -> dict[Outcome, int]:
        """Count the outcomes of questions with an answer, or without."""
        counts = Counter(answer.outcome for answer in self.answers if answer.answerable == answerable)
        return {outcome: counts[outcome] for outcome in OUTCOMES}


def evaluate_abstention(
    agent: EvidenceAgent | LegalReActAgent, queries: Sequence[Query], qrels: Qrels
) -> AbstentionEvaluation:
    """Answer all questions, of which some have a right document in `qrels` and the others none.

    The confidence of an answer is evidence mode's in the passages found, whoever answers; an abstention has less than
    any answer. Equal confidences count by their mean. Intervals are by the bootstrap over questions, those with an
    answer and those without apart (percentile method, fixed seed).

    Raises:
        ValueError: If all questions have a right document or none has, or one is longer than the encoder reads.
    """
    relevant = {qid: {doc_id for doc_id, grade in judged.items() if grade > 0} for qid, judged in qrels.items()}
    n_answerable = sum(bool(relevant.get(query.qid)) for query in queries)
    if n_answerable in (0, len(queries)):
        raise ValueError(
            f"{n_answerable} of {len(queries)} questions have a right document (expected some with, and some without)"
        )
    answers = Rows[SelectiveAnswer]()
    with progress("Answering", unit=" questions", total=len(queries)) as bar:
        for query in queries:
            try:
                answers.append(_answer(agent, query, relevant.get(query.qid, set())))
            except ValueError as error:
                raise ValueError(f"query {query.qid!r}: {error}") from error
            bar.update()
    return AbstentionEvaluation(_figures(answers), answers)


def _answer(agent: EvidenceAgent | LegalReActAgent, query: Query, relevant: set[str]) -> SelectiveAnswer:
    prediction = agent(query.text)
    doc_id = prediction.citations[0].doc_id if prediction.citations else ""
    outcome: Outcome = "failed"
    if prediction.status in ("answered", "abstained"):
        outcome = "abstained" if prediction.status == "abstained" else prediction.grade or "answers"
    has_answer = outcome not in ("abstained", "failed")
    evidence = agent if isinstance(agent, EvidenceAgent) else agent.evidence
    confidence = evidence.surety(evidence.find(query.text)) if has_answer else None
    return SelectiveAnswer(query.qid, bool(relevant), outcome, confidence, doc_id, has_answer and doc_id in relevant)


def _columns(answers: Sequence[SelectiveAnswer]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each question its answer's confidence (-inf without one), whether it has one, and this is wrong."""
    lowest = -math.inf
    rows = [
        (lowest if answer.confidence is None else answer.confidence, answer.answerable, not answer.right)
        for answer in answers
    ]
    confidence, answerable, wrong = zip(*rows, strict=True)
    return np.array(confidence), np.array(answerable), np.array(wrong)


def _figures(answers: Sequence[SelectiveAnswer]) -> list[Figure]:
    columns = _columns(answers)
    having, lacking = np.flatnonzero(columns[1]), np.flatnonzero(~columns[1])
    draw, samples = np.random.default_rng(SEED), []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([draw.choice(having, len(having)), draw.choice(lacking, len(lacking))])
        samples.append(_measure(*(column[drawn] for column in columns)))
    ends = np.percentile(samples, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)], axis=0)
    names = ["AUROC", "AURC", *(f"risk@{coverage}" for coverage in COVERAGES), "coverage", "risk"]
    rows = zip(names, _measure(*columns), *ends.tolist(), strict=True)
    return [Figure(*row) for row in rows]


def _measure(confidence: np.ndarray, answerable: np.ndarray, wrong: np.ndarray) -> list[float]:
    n, group = len(confidence), _groups(confidence)
    having, lacking = np.bincount(group, answerable), np.bincount(group, ~answerable)
    less_sure = lacking.sum() - np.cumsum(lacking) + lacking / 2  # of the questions without an answer, ties by half
    auroc = float((having * less_sure).sum() / (having.sum() * lacking.sum()))
    curve, answered = _risk_curve(group, wrong), confidence > -math.inf
    risks = [float(curve[max(1, round(coverage * n)) - 1]) for coverage in COVERAGES]
    risk = float(wrong[answered].mean()) if answered.any() else 0.0
    return [auroc, float(curve.mean()), *risks, float(answered.mean()), risk]


def _groups(confidence: np.ndarray) -> np.ndarray:
    """Number the answers by confidence, from 0, the surest first; equal ones have one number."""
    return np.unique(-confidence, return_inverse=True)[1]


def _risk_curve(group: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return the share of wrong answers among the surest 1, 2, … n; in expectation, where some are equally sure."""
    share = np.bincount(group, wrong) / np.bincount(group)
    return np.cumsum(share[np.sort(group)]) / np.arange(1, len(wrong) + 1)
