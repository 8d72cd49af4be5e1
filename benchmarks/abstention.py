"""Calibrate when evidence mode abstains, and say how often it errs.

Run: python benchmarks/abstention.py --index-name NAME --queries FILE [--off-topic FILE]

The Library must be built, and hold the answers to the queries. Questions with and without an answer in the corpus are
split in two halves by their order (even, odd). A linear rule is fitted to one half by logistic regression, its
threshold moved to where both kinds of error on that half are as low as they can be together; the other half is what
the figures are of. A false abstention is a question with an answer that got none; a false answer, one without that did.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Library
from legal_rag.relevance import CALIBRATIONS, Calibration, Signs, is_relevant, measure_signs
from legal_rag.retriever import Retriever, build_retriever

OFF_TOPIC = Path(__file__).parent / "data" / "off_topic_questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--off-topic", type=Path, default=OFF_TOPIC)
    arguments = parser.parse_args()

    retriever = build_retriever(Library.open(arguments.index_folder, arguments.index_name))
    encoder = retriever.encoder.identity.name
    near = [_signs(retriever, question) for question in _questions(arguments.queries)]
    far = [_signs(retriever, question) for question in _questions(arguments.off_topic)]
    fitted = _fit(near[::2], far[::2])
    print(f"fitted to one half: {fitted}")
    print(f"in force for {encoder!r}: {CALIBRATIONS.get(encoder)}")
    print(f"{'rule':10}{'half':>12}{'false abstentions':>22}{'false answers':>18}")
    for name, rule in (("fitted", fitted), ("in force", CALIBRATIONS.get(encoder))):
        for half, start in (("fitted to", 0), ("other", 1)):
            _print_errors(name, half, rule, near[start::2], far[start::2], encoder)


def _questions(path: Path) -> list[str]:
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def _signs(retriever: Retriever, question: str) -> Signs:
    vectors = retriever.encode(question)
    return measure_signs(question, retriever.search_vectors(vectors, 3, by_document=True), len(vectors))


def _fit(near: list[Signs], far: list[Signs]) -> Calibration:
    features = np.array([*near, *far])
    scale = features.std(axis=0)
    model = LogisticRegression(C=1.0).fit(features / scale, [1] * len(near) + [0] * len(far))
    weights = model.coef_[0] / scale
    weights = weights / weights[0]
    kept, refused = np.array(near) @ weights, np.array(far) @ weights
    cuts = np.sort(np.concatenate([kept, refused]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    errors = [(kept < cut).mean() + (refused >= cut).mean() for cut in middles]
    best = middles[np.flatnonzero(np.isclose(errors, np.min(errors)))]
    return Calibration(1.0, round(float(weights[1]), 4), round(float(best.mean()), 4))


def _print_errors(
    name: str, half: str, rule: Calibration | None, near: list[Signs], far: list[Signs], encoder: str
) -> None:
    def accepts(signs: Signs) -> bool:
        if name == "in force" or rule is None:
            return is_relevant(signs, encoder)
        return rule.closeness_weight * signs.closeness + rule.coverage_weight * signs.coverage >= rule.threshold

    missed = sum(not accepts(signs) for signs in near)
    wrong = sum(accepts(signs) for signs in far)
    print(f"{name:10}{half:>12}{f'{missed} of {len(near)}':>22}{f'{wrong} of {len(far)}':>18}")


if __name__ == "__main__":
    main()
