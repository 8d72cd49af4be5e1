"""Decisions that cite, quash and uphold one another, and what answers said of them."""

import shutil
from contextlib import closing
from pathlib import Path

from legal_rag.encoder import ColbertEncoder
from legal_rag.graph import (
    ExtractedEntity,
    ExtractedEpisode,
    ExtractedRelationship,
    ExtractionResult,
    add_answer,
)
from legal_rag.graph.facts import GraphFact
from legal_rag.graph.names import Named, document_node
from legal_rag.graph.store import GraphWriter
from legal_rag.indexer import IndexConfig, build_index
from legal_rag.library import Library

CASSATION, SOCIALE = "Cour de cassation", "Chambre sociale"
ROWS = [
    {
        "id": "LYON",
        "title": "Cour d'appel de Lyon, 4 avril 2017, 16/01234",
        "juridiction": "Cour d'appel de Lyon",
        "decision_date": "2017-04-04",
        "number": "16/01234",
        "content": "COUR D'APPEL DE LYON\n\nVu l'article L. 1226-2 du code du travail, la cour déboute M. Lebrun.",
    },
    {
        "id": "SOC-2016",
        "title": "Cour de cassation, chambre sociale, 23 novembre 2016, 15-12.345",
        "juridiction": CASSATION,
        "formation": SOCIALE,
        "decision_date": "2016-11-23",
        "number": "15-12.345",
        "solution": "Rejet",
        "content": "COUR DE CASSATION\n\nL'obligation de reclassement naît de l'article L. 1226-2 du code du travail."
        "\n\nPAR CES MOTIFS, REJETTE le pourvoi.",
    },
    {
        "id": "SOC-2019",
        "title": "Cour de cassation, chambre sociale, 9 janvier 2019, 17-11.111",
        "juridiction": CASSATION,
        "formation": SOCIALE,
        "decision_date": "2019-01-09",
        "number": "17-11.111",
        "solution": "Cassation",
        "content": "COUR DE CASSATION\n\nVu l'article L. 1226-2 du code du travail ;"
        "\n\nSur le pourvoi formé contre l'arrêt"
        " rendu le 4 avril 2017 par la cour d'appel de Lyon, dans le litige opposant M. Lebrun à la société Durand."
        "\n\nL'obligation de reclassement s'impose (Soc., 23 novembre 2016, pourvoi n° 15-12.345)."
        "\n\nPAR CES MOTIFS, CASSE ET ANNULE l'arrêt rendu le 4 avril 2017 par la cour d'appel de Lyon.",
    },
    {
        "id": "CIV-2021",
        "title": "Cour de cassation, deuxième chambre civile, 8 avril 2021, 19-25.640",
        "juridiction": CASSATION,
        "formation": "Deuxième chambre civile",
        "decision_date": "2021-04-08",
        "number": "19-25.640",
        "solution": "Rejet",
        "content": "COUR DE CASSATION\n\nVu l'article 1240 du code civil ;\n\nLa chambre sociale l'a jugé"
        " (Soc., 9 janvier 2019, pourvoi n° 17-11.111 ; 23 novembre 2016, pourvoi n° 15-12.345)."
        "\n\nPAR CES MOTIFS, REJETTE le pourvoi.",
    },
]  # fmt: skip
RESULT = ExtractionResult(
    [ExtractedEntity("Obligation de reclassement", "concept", 0.9, "Chercher un autre poste.")],
    [
        ExtractedRelationship("SOC-2019", "Obligation de reclassement", "interprets", 0.8),  # stated
        ExtractedRelationship("SOC-2019", "Plan de vigilance", "interprets", 0.9),  # in no text
        ExtractedRelationship("CIV-2021", "SOC-2019", "cites", 0.9),  # a fact
    ],
    [ExtractedEpisode("Suivre l'arrêt de 2019", "Reclassement", "success", ("Lire les visas.",), ("SOC-2019",))],
)


def linked_library(folder: Path, encoder: ColbertEncoder, rows: list[dict] | None = None) -> Library:
    """Index these decisions, or others, with their graph."""
    config = IndexConfig(source=ROWS if rows is None else rows, index_folder=str(folder))
    build_index(config, encoder)
    return Library.open(folder)


def with_answer(library: Library, folder: Path, result: ExtractionResult = RESULT, answer_id: str = "a1") -> Library:
    """Copy a Library, and record an answer in the copy's graph."""
    copy = Library(shutil.copytree(library.path, folder / library.path.name))
    add_answer(copy, answer_id, result, [row["id"] for row in ROWS])
    return copy


def with_stated(
    library: Library, folder: Path, *edges: tuple[str, str, str | Named], support: str = "stated", detail: str = ""
) -> Library:
    """Copy a Library, and let an answer state edges from documents to documents or others: source, type, target."""
    copy = with_answer(library, folder, ExtractionResult())
    with closing(GraphWriter(copy.path / "graph.sqlite")) as writer, writer.transaction():
        source = writer.source("answer", None, "1", "a2")
        for first, edge_type, second in edges:
            text_key = writer.text(first, copy.document(first).content_hash)
            ends = document_node(first), document_node(second) if isinstance(second, str) else second
            writer.edge(source, GraphFact(*ends, edge_type, 0, 17, detail=detail), text_key, support=support)
    return copy
