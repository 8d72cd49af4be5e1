"""The collections as tasks of MTEB: `mteb.evaluate(model, tasks=[PretoireDecisions()])`.

They load from the folder that `make_collection.py` made if PRETOIRE names it, else from the hub.
"""

import os
from typing import Any

from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

HUB = "legal-rag/pretoire"  # where nothing is published yet
LICENCE_OUVERTE = "https://www.etalab.gouv.fr/licence-ouverte-open-licence/"

ON_DECISIONS = {
    "date": ("1958-12-04", "2026-07-08"),
    "task_subtypes": ["Question Answering Retrieval"],
    "license": LICENCE_OUVERTE,
    "sample_creation": "created",
}


def _metadata(collection: str, name: str, description: str, **differing: Any) -> TaskMetadata:
    folder = os.environ.get("PRETOIRE")
    path = f"{folder}/{collection}/hub" if folder else f"{HUB}-{collection}"
    return TaskMetadata(
        name=name,
        description=description,
        dataset={"path": path, "revision": "main"},
        reference=f"https://huggingface.co/datasets/{HUB}-{collection}",
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["fra-Latn"],
        main_score="ndcg_at_10",
        domains=["Legal", "Government", "Written"],
        annotations_creators="derived",
        dialect=[],
        bibtex_citation="",
        **differing,
    )


class PretoireDecisions(AbsTaskRetrieval):
    """Questions on court decisions."""

    metadata = _metadata(
        "decisions",
        "PretoireDecisionsRetrieval",
        "Find the French court decision that a question was written from, mostly without its wording.",
        **ON_DECISIONS,
    )


class PretoireDecisionsPooled(AbsTaskRetrieval):
    """Questions on court decisions, with the makers' judgements of what several systems rank first."""

    metadata = _metadata(
        "decisions-pooled",
        "PretoireDecisionsPooledRetrieval",
        "Find the French court decisions that answer a question, by judgements of the collection's makers, 0 to 3.",
        **ON_DECISIONS,
    )


class PretoireTravail(AbsTaskRetrieval):
    """Questions of the Labour Ministry's fact sheets on the Code du travail."""

    metadata = _metadata(
        "travail",
        "PretoireTravailRetrieval",
        "Find the articles of the French Code du travail that a section of a Labour Ministry sheet cites.",
        date=("2026-03-29", "2026-03-29"),
        task_subtypes=["Article retrieval"],
        license="multiple",
        sample_creation="found",
    )


class PretoireServicePublic(AbsTaskRetrieval):
    """Titles of the public-service guide on the Code du travail."""

    metadata = _metadata(
        "service-public",
        "PretoireServicePublicRetrieval",
        "Find the articles of the French Code du travail that a sheet of the public-service guide names.",
        date=("2018-02-27", "2020-11-03"),
        task_subtypes=["Article retrieval"],
        license=LICENCE_OUVERTE,
        sample_creation="found",
    )


TASKS = {
    "decisions": PretoireDecisions,
    "decisions-pooled": PretoireDecisionsPooled,
    "travail": PretoireTravail,
    "service-public": PretoireServicePublic,
}
