"""The decisions that apply or cite an article, each with the version of the article that it means."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.corpus.documents import Document
from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
from legal_rag.law.values import find_dates
from legal_rag.law.versions import Force
from legal_rag.law.wordings import stated_wording
from legal_rag.library.library import Library

MOST_READ = 5000  # decisions of one article

Rule = Literal["act", "day", "decision", "undated", "none"]
RULES_IN_FRENCH: dict[Rule, str] = {
    "act": "rédaction issue d'un texte que la décision date",
    "day": "rédaction que la décision date",
    "decision": "au jour de la décision",
    "undated": "au jour de la décision, qui dit une rédaction sans la dater",
    "none": "aucune version ce jour-là",
}


@displayed
class ArticleVersion(NamedTuple):
    """A version of an article that the Library holds."""

    doc_id: str
    force: Force


@displayed
class Application(NamedTuple):
    """A decision that applies or cites an article, and the version of it that the decision means."""

    edge: Edge
    doc_id: str  # of the version; empty: none that the Library holds
    rule: Rule  # by which the version was found
    day: str  # ISO 8601: of the decision, or that it states; empty: it has none
    stated: str  # the decision's words on the version; empty: none


def article_versions(library: Library, doc_ids: Iterable[str]) -> list[ArticleVersion]:
    """Return those of some documents that are versions of an article, in order of days."""
    forces = ((doc_id, library.document(doc_id).force) for doc_id in doc_ids)
    versions = (ArticleVersion(doc_id, force) for doc_id, force in forces if force)
    return sorted(versions, key=lambda version: (version.force, version.doc_id))


def applications(graph: KnowledgeGraph, node: Node | str) -> tuple[list[ArticleVersion], list[Application]]:
    """Return the versions of an article, and the decisions on it, by date.

    A decision means the version that it dates ("dans sa rédaction issue de la loi du 8 août 2016"; see
    `legal_rag.law.wordings`), else the one in force on its own day. Raises as `KnowledgeGraph.find` does.

    Raises:
        LookupError: If the Library has no versions of it, or it is no article.
    """
    node = graph.find(node) if isinstance(node, str) else node
    versions = article_versions(graph.library, graph.documents_of_article(node))
    if not versions:
        raise LookupError(
            f"no versions of {node.name!r} in {graph.library.path} (expected an article's documents with valid_from or"
            " valid_until)"
        )
    edges = [edge for edge in graph.citing(node, MOST_READ) if edge.source.type == "decision"]
    edges.sort(key=lambda edge: (edge.source.decision_date, edge.source.key))
    return versions, [_application(edge, graph.library.document(edge.source.doc_id), versions) for edge in edges]


def _application(edge: Edge, document: Document, versions: Sequence[ArticleVersion]) -> Application:
    stated = stated_wording(document.content, edge.char_start, edge.char_end) if edge.char_start >= 0 else None
    words = document.content[stated.start : stated.end] if stated else ""
    rule: Rule = "undated" if stated else "decision"
    days = find_dates(document.decision_date)
    day = days[0].value if days else None
    held = [version for version in versions if day and version.force.holds(day)]
    if stated and stated.first:
        rule, day = "act" if stated.meaning == "act" else "day", stated.first
        forces = stated.versions(version.force for version in versions)
        held = [version for version in versions if version.force in forces]
        rule = "undated" if len(held) > 1 else rule
    written = day.isoformat() if day else ""
    found, rule = (held[0].doc_id, rule) if held else ("", "none")
    return Application(edge, found, rule, written, words)
