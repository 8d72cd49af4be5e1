"""Fit what a passage is worth as an answer, and measure how often the passages shown overlap the expected one.

Run: python benchmarks/passages.py DECISIONS QUERIES [--strength C]

DECISIONS is the decisions' JSONL (gzipped or not), QUERIES the questions' with doc_id, char_start and char_end. Each
question is asked of its own decision alone, read by the bundled encoder. A logistic regression tells passages that
overlap the expected answer from others. Printed are, as JSON, the shares of questions whose first passage overlaps the
expected answer, and whose first four do: by ten-fold cross-validation over questions (five draws), by nearness alone,
and by the weights kept. The weights printed are fitted to all questions; those that are kept stand in
legal_rag/agent/passages.py.
"""

import argparse
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from legal_rag.agent import passages
from legal_rag.encoder import build_encoder
from legal_rag.encoder.encoder import ColbertEncoder, TokenVectors
from legal_rag.law.tree import PART_KINDS, SPEAKERS, Paragraph

FOLDS, DRAWS, PARTS_CHARS = 10, 5, 1500
MOST, MOST_CHARS = 4, 1500
NAMES = ["nearness", *SPEAKERS, "nobody", *PART_KINDS, "states a rule", "late in reasons"]


class Case(NamedTuple):
    """A question with the passages of its decision."""

    spans: list[tuple[int, int]]
    features: np.ndarray  # (n_passages, len(NAMES))
    expected: np.ndarray  # (n_passages,), bool: overlaps the expected answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("decisions", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--strength", type=float, default=0.002, help="of the regression, the inverse of its penalty")
    arguments = parser.parse_args()
    opener = gzip.open if arguments.decisions.suffix == ".gz" else open
    with opener(arguments.decisions, "rt", encoding="utf-8") as lines:
        contents = {row["id"]: row["content"] for row in map(json.loads, lines)}
    encoder = build_encoder("bundled")
    queries = [json.loads(line) for line in arguments.queries.read_text(encoding="utf-8").splitlines()]
    cases = [_case(query, contents[query["doc_id"]], encoder) for query in queries]
    scores = [_cross_validated(cases, arguments.strength, draw) for draw in range(DRAWS)]
    found = np.mean([_hits(cases, lambda case, n, own=own: own[n]) for own in scores], axis=0)
    weights = _fit(cases, arguments.strength)
    figures = {
        "questions": len(cases),
        "nearness": _hits(cases, lambda case, _: case.features[:, 0]),
        "cross-validated": found.tolist(),
        "as kept": _hits(cases, lambda case, _: case.features @ _kept()),
        "weights": dict(zip(NAMES, (weights / weights[0]).round(3).tolist(), strict=True)),
    }
    print(json.dumps(figures, indent=1))


def _case(query: dict[str, Any], content: str, encoder: ColbertEncoder) -> Case:
    candidates = [
        (span, paragraph, place)
        for span, paragraph, place in passages._sentence_candidates(content, None)
        if passages._worth(content[slice(*span)], paragraph, place) > passages.LAST
    ]
    spans = [span for span, _, _ in candidates]
    question = TokenVectors(*encoder.encode_with_offsets(query["question"], as_query=True))
    near = passages._standardised(passages._mean_maxsim(question, _read(content, encoder), spans))
    rows = [
        [nearness, *_one_hot(paragraph), passages._RULE.search(content[slice(*span)]) is not None,
         place if paragraph.part == "reasons" else 0.0]
        for nearness, (span, paragraph, place) in zip(near, candidates, strict=True)
    ]  # fmt: skip
    overlaps = [start < query["char_end"] and end > query["char_start"] for start, end in spans]
    return Case(spans, np.array(rows, dtype=float), np.array(overlaps))


def _one_hot(paragraph: Paragraph) -> list[bool]:
    return [paragraph.speaker == one for one in (*SPEAKERS, None)] + [paragraph.part == one for one in PART_KINDS]


def _read(content: str, encoder: ColbertEncoder) -> TokenVectors:
    starts = range(0, len(content), PARTS_CHARS)
    found = [encoder.encode_with_offsets(content[start : start + PARTS_CHARS]) for start in starts]
    own = [one.offsets[:, 0] < one.offsets[:, 1] for one in found]
    offsets = [one.offsets[kept] + start for one, kept, start in zip(found, own, starts, strict=True)]
    vectors = [one.vectors[kept] for one, kept in zip(found, own, strict=True)]
    return TokenVectors(np.concatenate(vectors), np.concatenate(offsets))


def _kept() -> np.ndarray:
    speakers = [passages.OF_SPEAKER[one] for one in (*SPEAKERS, None)]
    parts = [passages.OF_PART[one] for one in PART_KINDS]
    rest = [passages.STATES_RULE, passages.LATE_IN_REASONS]
    return np.array([passages.NEARNESS, *speakers, *parts, *rest])


def _fit(cases: list[Case], strength: float) -> np.ndarray:
    features = np.concatenate([case.features for case in cases])
    expected = np.concatenate([case.expected for case in cases])
    # Each question counts alike, however long its decision.
    share = np.concatenate([np.full(len(case.expected), 50 / len(case.expected)) for case in cases])
    model = LogisticRegression(C=strength * len(cases), max_iter=2000).fit(features, expected, sample_weight=share)
    return model.coef_[0]


def _cross_validated(cases: list[Case], strength: float, seed: int) -> list[np.ndarray]:
    folds = np.array_split(np.random.default_rng(seed).permutation(len(cases)), FOLDS)
    scores: dict[int, np.ndarray] = {}
    for fold in folds:
        weights = _fit([case for n, case in enumerate(cases) if n not in set(fold.tolist())], strength)
        scores |= {n: cases[n].features @ weights for n in fold.tolist()}
    return [scores[n] for n in range(len(cases))]


def _best_apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    chosen: list[tuple[int, int]] = []
    for start, end in spans:
        is_apart = all(end <= first or last <= start for first, last in chosen)
        if is_apart and len(chosen) < MOST and sum(last - first for first, last in chosen) + end - start <= MOST_CHARS:
            chosen.append((start, end))
    return chosen


def _hits(cases: list[Case], score: Callable[[Case, int], np.ndarray]) -> tuple[float, float]:
    first = among = 0
    for number, case in enumerate(cases):
        order = np.argsort(-score(case, number), kind="stable")
        expected = {span for span, hit in zip(case.spans, case.expected, strict=True) if hit}
        found = [span in expected for span in _best_apart([case.spans[n] for n in order])]
        first, among = first + found[0], among + any(found)
    return first / len(cases), among / len(cases)


if __name__ == "__main__":
    main()
