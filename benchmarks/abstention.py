"""Calibrate when evidence mode abstains, and say how often it errs.

Run: python benchmarks/abstention.py --set NAME QUERIES [--set NAME QUERIES …] [--off-topic FILE]

Each set is a built Library's name and a file of questions that it holds the answers to; the off-topic questions, that
no Library here answers, are asked of each. Questions are split in two halves by their order (even, odd). A linear rule
is fitted to one half of all sets by logistic regression, its threshold put where both kinds of error on that half are
as low as they can be together; the other half is what the figures are of. A false abstention is a question with an
answer that got none; a false answer, one without that did.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from legal_rag.agent import EvidenceAgent
from legal_rag.agent.evidence import CALIBRATIONS, AbstentionFeatures, Calibration, is_relevant
from legal_rag.library import DEFAULT_FOLDER, Library
from legal_rag.retriever import build_retriever

OFF_TOPIC = Path(__file__).parent / "data" / "off_topic_questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--set", nargs=2, action="append", required=True, metavar=("NAME", "QUERIES"), dest="sets")
    parser.add_argument("--off-topic", type=Path, default=OFF_TOPIC)
    arguments = parser.parse_args()

    near, far = {}, {}
    for name, queries in arguments.sets:
        retriever = build_retriever(Library.open(arguments.index_folder, name))
        agent, encoder = EvidenceAgent(retriever), retriever.encoder.identity.name
        near[name] = [agent.find(question).features for question in _questions(Path(queries))]
        far[name] = [agent.find(question).features for question in _questions(arguments.off_topic)]
    fitted = _fit([s for signs in near.values() for s in signs[::2]], [s for signs in far.values() for s in signs[::2]])
    print(f"fitted: {fitted}\nin force for {encoder!r}: {CALIBRATIONS.get(encoder)}")
    print(f"{'set':24}{'rule':10}{'half':>12}{'false abstentions':>22}{'false answers':>18}")
    for name in near:
        for rule_name, rule in (("fitted", fitted), ("in force", CALIBRATIONS.get(encoder))):
            for half, start in (("fitted to", 0), ("other", 1)):
                errors = _errors(rule, near[name][start::2], far[name][start::2], encoder)
                print(f"{name:24}{rule_name:10}{half:>12}{errors}")


def _questions(path: Path) -> list[str]:
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def _fit(near: list[AbstentionFeatures], far: list[AbstentionFeatures]) -> Calibration:
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


def _errors(
    rule: Calibration | None, near: list[AbstentionFeatures], far: list[AbstentionFeatures], encoder: str
) -> str:
    missed = sum(not is_relevant(signs, encoder, rule) for signs in near)
    wrong = sum(is_relevant(signs, encoder, rule) for signs in far)
    return f"{f'{missed} of {len(near)}':>22}{f'{wrong} of {len(far)}':>18}"


if __name__ == "__main__":
    main()
