"""The decisions that apply or cite an article, each with the version of the article that it means."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.corpus.documents import Document
from legal_rag.graph.graph import Edge, KnowledgeGraph, Node
from legal_rag.law.citation import legal_date
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
    valid_from: str  # ISO 8601; empty: not known
    valid_until: str  # the first day after; empty: without end

    def holds(self, day: str) -> bool:
        """Whether it is in force on a day, in ISO 8601."""
        return self.valid_from <= day and (not self.valid_until or day < self.valid_until)

    @property
    def in_french(self) -> str:
        """When it is in force: "du 1er avr. 2018 au 22 déc. 2019"; the day after the last is not counted."""
        first, until = legal_date(self.valid_from), legal_date(self.valid_until)
        return " ".join(
            filter(None, [f"depuis le {first}" if first else "", f"jusqu'au {until} exclu" if until else ""])
        )


@displayed
class Application(NamedTuple):
    """A decision that applies or cites an article, and the version of it that the decision means."""

    edge: Edge
    doc_id: str  # of the version; empty: none that the Library holds
    rule: Rule  # by which the version was found
    day: str  # ISO 8601: of the decision, or that it states; empty: it has none
    stated: str  # the decision's words on the version; empty: none


def article_versions(library: Library, doc_ids: Iterable[str]) -> list[ArticleVersion]:
    """Return the versions among some documents by their columns `valid_from` and `valid_until`, in order of days."""
    columns = ((doc_id, library.document(doc_id).extra) for doc_id in doc_ids)
    versions = (
        ArticleVersion(doc_id, str(extra.get("valid_from") or ""), str(extra.get("valid_until") or ""))
        for doc_id, extra in columns
    )
    dated = (version for version in versions if version.valid_from or version.valid_until)
    return sorted(dated, key=lambda version: (version.valid_from, version.doc_id))


def applications(graph: KnowledgeGraph, node: Node | str) -> tuple[list[ArticleVersion], list[Application]]:
    """Return the versions of an article, and the decisions on it, by date.

    A decision means the version that it dates ("dans sa rédaction issue de la loi du 8 août 2016": the first that began
    then or later), else the one in force on its own day. Raises as `KnowledgeGraph.find` does.

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
    stated = stated_wording(document.content, edge.char_end) if edge.char_start >= 0 else None
    words = document.content[stated.start : stated.end] if stated else ""
    rule: Rule = "undated" if stated else "decision"
    day = document.decision_date if legal_date(document.decision_date) else ""
    held = [version for version in versions if version.holds(day)]
    if stated and stated.day:
        rule, day = "act" if stated.of_act else "day", stated.day.isoformat()
        held = [version for version in versions if (version.valid_from >= day if stated.of_act else version.holds(day))]
    return Application(edge, held[0].doc_id, rule, day, words) if held else Application(edge, "", "none", day, words)
