"""Calibrate when evidence mode abstains, and say how often it errs.

Run: python benchmarks/abstention.py --set NAME QUERIES [--set NAME QUERIES …] [--off-topic FILE]

Each set is a built Library's name and a file of questions that it holds the answers to; the off-topic questions, that
no Library here answers, are asked of each. They are not those of abstention.toml, by which a corpus's background is
measured. For each set, a threshold is also put where both kinds of error on all other sets are as low as they can be
together: so a set says how it does on a corpus and an encoder that it was not fitted to. A false abstention is a
question with an answer that got none; a false answer, one without that did.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from legal_rag.agent import EvidenceAgent
from legal_rag.agent.evidence import THRESHOLD, background_of
from legal_rag.library import DEFAULT_FOLDER, Library
from legal_rag.retriever import Retriever, build_retriever

OFF_TOPIC = Path(__file__).parent / "data" / "off_topic_questions.jsonl"
MOST = 60  # questions of a set, so that none outweighs the others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--set", nargs=2, action="append", required=True, metavar=("NAME", "QUERIES"), dest="sets")
    parser.add_argument("--off-topic", type=Path, default=OFF_TOPIC)
    arguments = parser.parse_args()

    near, far = {}, {}
    for name, queries in arguments.sets:
        retriever = build_retriever(Library.open(arguments.index_folder, name))
        near[name] = _signs(retriever, _questions(Path(queries))[:MOST])
        far[name] = _signs(retriever, _questions(arguments.off_topic))
    rules = {"in force": THRESHOLD, "fitted to all": _fit(near.values(), far.values())}
    print(rules)
    print(f"{'set':24}{'threshold':28}{'false abstentions':>22}{'false answers':>18}")
    for name in near:
        others = [other for other in near if other != name]
        rules["fitted to the others"] = _fit([near[other] for other in others], [far[other] for other in others])
        for rule, cut in rules.items():
            missed, wrong = int((near[name] < cut).sum()), int((far[name] >= cut).sum())
            counts = f"{f'{missed} of {len(near[name])}':>22}{f'{wrong} of {len(far[name])}':>18}"
            print(f"{name:24}{f'{rule}, {cut:.2f}':28}{counts}")


def _questions(path: Path) -> list[str]:
    return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]


def _signs(retriever: Retriever, questions: list[str]) -> np.ndarray:
    """Return each question's nearness, shape (n_questions,)."""
    agent, background = EvidenceAgent(retriever), background_of(retriever)
    return np.array([background.nearness(agent.find(question).mean_maxsim) for question in questions])


def _fit(near: Iterable[np.ndarray], far: Iterable[np.ndarray]) -> float:
    kept, refused = np.concatenate(list(near)), np.concatenate(list(far))
    cuts = np.sort(np.concatenate([kept, refused]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    errors = [(kept < cut).mean() + (refused >= cut).mean() for cut in middles]
    return float(middles[np.flatnonzero(np.isclose(errors, np.min(errors)))].mean())


if __name__ == "__main__":
    main()
