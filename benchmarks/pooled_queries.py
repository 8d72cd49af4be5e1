"""The queries over which two ways of retrieving are compared: both development sets, and 500 made by machine.

In: a folder with `decisions.jsonl.gz`, `code-du-travail.jsonl.gz`, `questions-dev.jsonl`, `travail-dev.queries.jsonl`
and `travail-dev.qrels.txt`. Out: query sets. A decision's official summary asks for that decision, whose text it is not
part of; the last title of a section of the Code du travail asks for the section's articles.
"""

import gzip
import json
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from ir_measures import Qrel

DECISIONS, CODE = "decisions.jsonl.gz", "code-du-travail.jsonl.gz"
N_MADE = 500
LONGEST = 600  # characters of a query: what every encoder takes


class QuerySet(NamedTuple):
    """Queries over one of the two corpora, and the documents that answer them."""

    name: str
    source: str  # file name of the corpus
    queries: dict[str, str]  # query id: text
    qrels: list[Qrel]

    @property
    def doc_ids(self) -> set[str]:
        """The documents that answer any of the queries."""
        return {qrel.doc_id for qrel in self.qrels}


def pooled_queries(data: Path, seed: int = 0) -> list[QuerySet]:
    """Read both development sets and make the others: all official summaries, and section titles up to 500 in all."""
    summaries = _summaries(data / DECISIONS)
    return [
        _questions_dev(data / "questions-dev.jsonl"),
        _travail_dev(data / "travail-dev.queries.jsonl", data / "travail-dev.qrels.txt"),
        summaries,
        _sections(data / CODE, N_MADE - len(summaries.queries), np.random.default_rng(seed)),
    ]


def _questions_dev(path: Path) -> QuerySet:
    rows = list(_rows(path))
    qrels = [Qrel(row["qid"], row["doc_id"], 1) for row in rows]
    return QuerySet("questions-dev", DECISIONS, {row["qid"]: row["question"] for row in rows}, qrels)


def _travail_dev(queries: Path, qrels: Path) -> QuerySet:
    texts = {row["qid"]: row["question"] for row in _rows(queries)}
    return QuerySet("travail-dev", CODE, texts, list(ir_measures.read_trec_qrels(str(qrels))))


def _summaries(path: Path) -> QuerySet:
    shortened = partial(textwrap.shorten, width=LONGEST, placeholder="")
    texts = {row["id"]: shortened(row["summary"]) for row in _rows(path) if row.get("summary")}
    qrels = [Qrel(f"summary-{doc_id}", doc_id, 1) for doc_id in texts]
    return QuerySet("summaries", DECISIONS, {f"summary-{doc_id}": text for doc_id, text in texts.items()}, qrels)


def _sections(path: Path, n: int, generator: np.random.Generator) -> QuerySet:
    articles: dict[str, list[str]] = defaultdict(list)
    for row in _rows(path):
        articles[_last_title(row["section"])].append(row["id"])
    titles = generator.choice(sorted(articles.keys() - {""}), n, replace=False).tolist()
    qrels = [Qrel(f"section-{i}", doc_id, 1) for i, title in enumerate(titles) for doc_id in articles[title]]
    return QuerySet("sections", CODE, {f"section-{i}": title for i, title in enumerate(titles)}, qrels)


def _last_title(section: str) -> str:
    """Return the last part of a path such as 'Livre Ier : … > Chapitre II : Congés', without its number."""
    return section.split(" > ")[-1].partition(":")[2].strip(" .")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
