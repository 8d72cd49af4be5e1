"""Read every form of the made collections by its library's own loader; print what was read, and figures, as JSON.

Run: .venv-collections/bin/python collections/read_back.py MADE [RUNS]
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures

NAMES = {"nDCG@10": "ndcg_cut_10", "R@10": "recall_10", "R@100": "recall_100", "AP@100": "map_cut_100"}
DECIMALS = 6

Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]  # query id: document id: score


class Read(NamedTuple):
    """A split, as a library gives it."""

    documents: Iterable[tuple[str, str]]  # title, text
    queries: Iterable[str]  # ids
    qrels: Grades


def read_beir(place: Path, split: str) -> Read:
    from beir.datasets.data_loader import GenericDataLoader

    corpus, queries, qrels = GenericDataLoader(str(place / "beir")).load(split)
    return Read(((one["title"], one["text"]) for one in corpus.values()), queries, qrels)


def read_ir_datasets(place: Path, split: str) -> Read:
    import ir_datasets
    import ir_datasets_pretoire  # noqa: F401 - registers them

    dataset = ir_datasets.load(f"pretoire/{place.name}/{split}")
    documents = ((doc.title, doc.text) for doc in dataset.docs_iter())
    return Read(documents, (query.query_id for query in dataset.queries_iter()), dataset.qrels_dict())


def read_datasets(place: Path, split: str) -> Read:
    from datasets import load_dataset

    folder = str(place / "hub")
    corpus = load_dataset(folder, "corpus", split="corpus")
    qrels: Grades = defaultdict(dict)
    for row in load_dataset(folder, "qrels", split=split):
        qrels[row["query-id"]][row["corpus-id"]] = row["score"]
    queries = (row["_id"] for row in load_dataset(folder, "queries", split="queries") if row["_id"] in qrels)
    return Read(((row["title"], row["text"]) for row in corpus), queries, dict(qrels))


def read_mteb(place: Path, split: str) -> Read:
    from mteb_pretoire import TASKS

    task = TASKS[place.name]()
    task.load_data()
    data = task.dataset["default"][split]
    return Read(((row["title"], row["text"]) for row in data["corpus"]), data["queries"]["id"], data["relevant_docs"])


def by_ir_measures(qrels: Grades, scores: Scores) -> dict[str, float]:
    means = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in NAMES], qrels, scores)
    return {str(measure): round(mean, DECIMALS) for measure, mean in means.items()}


def by_mteb(qrels: Grades, scores: Scores) -> dict[str, float]:
    """Return means of what MTEB's evaluator gives by query: its own means have five decimals."""
    from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

    judged = {qid: scores[qid] for qid in qrels if qid in scores}
    values = calculate_retrieval_scores(judged, qrels, [10, 100])[0].values()
    return {name: round(sum(of[key] for of in values) / len(qrels), DECIMALS) for name, key in NAMES.items()}


FORMS = {"beir": read_beir, "ir_datasets": read_ir_datasets, "datasets": read_datasets, "mteb": read_mteb}


def describe(form: str, place: Path, split: str, runs: dict[str, Scores]) -> dict[str, Any]:
    """Return counts and figures, as `make_collection.py` expects them."""
    read = FORMS[form](place, split)
    measure = by_mteb if form == "mteb" else by_ir_measures
    sizes = [len(title) + len(text) for title, text in read.documents]
    return {
        "documents": len(sizes),
        "characters": sum(sizes),
        "queries": len(set(read.queries)),
        "judgements": sum(map(len, read.qrels.values())),
        "figures": {system: measure(read.qrels, scores) for system, scores in runs.items()},
    }


def read_runs(folder: Path) -> dict[str, Scores]:
    runs: dict[str, Scores] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(folder.glob("*/run.txt")):
        for line in ir_measures.read_trec_run(str(path)):
            runs[path.parent.name][line.query_id][line.doc_id] = line.score
    return runs


def main() -> None:
    made = Path(sys.argv[1])
    os.environ.update(PRETOIRE=str(made), HF_HUB_OFFLINE="1")
    read: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for place in sorted(path for path in made.iterdir() if path.is_dir()):
        runs = read_runs(Path(sys.argv[2], place.name)) if sys.argv[2:] else {}
        for split in sorted(path.stem for path in (place / "beir" / "qrels").glob("*.tsv")):
            forms = [form for form in FORMS if form != "mteb" or split == "test"]  # its tasks have no other split
            read[place.name][split] = {form: describe(form, place, split, runs) for form in forms}
    json.dump(read, sys.stdout)


if __name__ == "__main__":
    main()
