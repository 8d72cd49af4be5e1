"""Register the collections that `make_collection.py` made with ir_datasets, from the folder that PRETOIRE names.

Importing this module registers `pretoire/decisions`, `pretoire/decisions/dev`, `pretoire/decisions/test` and so on.
"""

import os
from pathlib import Path
from typing import NamedTuple

import ir_datasets
import yaml
from ir_datasets.datasets.base import Dataset, FilteredQueries
from ir_datasets.formats import JsonlDocs, TrecQrels, TsvQueries
from ir_datasets.util import Lazy, LocalDownload

NAME = "pretoire"
GRADES = {
    0: "does not help to answer",
    1: "answers in part, or only by analogy; where editors cited articles, cited",
    2: "answers the question",
    3: "answers it in full in the court's own holding",
}
DOCUMENTATION = yaml.safe_load((Path(__file__).parent / "pretoire.yaml").read_text("utf-8"))


class PretoireDoc(NamedTuple):
    """A decision or an article."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """Return title and text, which systems index."""
        return f"{self.title}\n{self.text}"


class Documentation:
    """What `ir_datasets` says of a dataset; its own class reads files of its package alone."""

    def __init__(self, key: str) -> None:
        self.key = key

    def documentation(self) -> dict[str, str]:
        """Return the entry of the YAML file, none for a split."""
        return DOCUMENTATION.get(self.key, {})


def register(folder: Path) -> None:
    """Register every collection in a folder; one that is registered already is a RuntimeError."""
    for place in sorted(path for path in folder.iterdir() if (path / "trec").is_dir()):
        columns = {"doc_id": "_id", "title": "title", "text": "text"}
        corpus = LocalDownload(place / "trec" / "corpus" / "corpus.jsonl", mkdir=False)
        docs = JsonlDocs(corpus, PretoireDoc, columns, namespace=NAME, lang="fr")
        topics = TsvQueries(LocalDownload(place / "trec" / "topics.tsv", mkdir=False), namespace=NAME, lang="fr")
        name = f"{NAME}/{place.name}"
        files = {path.suffixes[0][1:]: LocalDownload(path) for path in sorted((place / "trec").glob("qrels.*.txt"))}
        judged = TrecQrels(list(files.values()), GRADES)
        ir_datasets.registry.register(name, Dataset(docs, topics, judged, Documentation(place.name)))
        for split, file in files.items():
            qrels = TrecQrels(file, GRADES)
            queries = FilteredQueries(topics, Lazy(lambda qrels=qrels: set(qrels.qrels_dict())))
            ir_datasets.registry.register(f"{name}/{split}", Dataset(docs, queries, qrels, Documentation(split)))


register(Path(os.environ["PRETOIRE"]))
