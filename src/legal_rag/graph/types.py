"""Types of nodes and edges with French labels, and the parsed values of an answer's tags."""

from dataclasses import dataclass, field
from typing import NamedTuple

from legal_rag.base.html import displayed

# Types of nodes: general, then legal.
NODE_TYPES: dict[str, str] = {
    "person": "personne",
    "project": "projet",
    "tool": "outil",
    "concept": "notion",
    "organization": "organisation",
    "event": "événement",
    "location": "lieu",
    "document": "document",
    "decision": "décision",
    "article": "article",
    "statute": "texte",
    "court": "juridiction",
    "party": "partie",
    "judge_or_counsel": "juge ou conseil",
}
# Types of edges, each read as "source … target", and from the target.
_EDGES = {
    "related_to": ("est lié à", "est lié à"),
    "part_of": ("fait partie de", "comprend"),
    "depends_on": ("dépend de", "est nécessaire à"),
    "uses": ("utilise", "est utilisé par"),
    "located_in": ("se trouve à", "est le lieu de"),
    "cites": ("cite", "est cité par"),
    "applies": ("applique", "est appliqué par"),
    "interprets": ("interprète", "est interprété par"),
    "follows": ("suit", "est suivi par"),
    "distinguishes": ("se distingue de", "est distingué par"),
    "upholds": ("maintient", "est maintenu par"),
    "overrules": ("casse, annule ou infirme", "est cassé, annulé ou infirmé par"),
    "rectifies": ("rectifie", "est rectifié par"),
    "party_to": ("est partie à", "a pour partie"),
    "represents": ("représente", "est représenté par"),
    "pleads_in": ("plaide dans", "est plaidé par"),
    "decided_by": ("est rendu par", "a rendu"),
}
EDGE_TYPES: dict[str, str] = {name: words for name, (words, _) in _EDGES.items()}
REVERSED_EDGE_TYPES: dict[str, str] = {name: words for name, (_, words) in _EDGES.items()}
EPISODE_STATUSES: dict[str, str] = {
    "pending": "en attente",
    "success": "réussi",
    "partial": "réussi en partie",
    "failure": "échoué",
    "abandoned": "abandonné",
}
DEFAULT_STATUS = "pending"


@displayed
@dataclass(frozen=True)
class ExtractedEntity:
    """`<vm:entity>`: something named in an answer."""

    name: str
    type: str  # one of `NODE_TYPES`
    confidence: float = 1.0  # the model's own, 0 to 1
    description: str = ""


@displayed
@dataclass(frozen=True)
class ExtractedRelationship:
    """`<vm:relationship>`: a directed edge between two names; never from a name to itself."""

    source: str  # attribute `from`
    target: str  # attribute `to`
    type: str  # one of `EDGE_TYPES`
    confidence: float = 1.0  # the model's own, 0 to 1


@displayed
@dataclass(frozen=True)
class ExtractedEpisode:
    """`<vm:episode>`: a decision made while working on an answer, its outcome, and its lessons."""

    decision: str
    context: str = ""
    status: str = DEFAULT_STATUS  # one of `EPISODE_STATUSES`
    lessons: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # names


@displayed
@dataclass(frozen=True)
class ExtractionResult:
    """The parsed tags of one answer, in text order."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    episodes: list[ExtractedEpisode] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.entities or self.relationships or self.episodes)

    def confident(self, threshold: float) -> "ExtractionResult":
        """Return a copy without the entities and relationships below a confidence threshold, 0 to 1."""
        return ExtractionResult(
            [entity for entity in self.entities if entity.confidence >= threshold],
            [relationship for relationship in self.relationships if relationship.confidence >= threshold],
            self.episodes,
        )


@displayed
class ParsedTags(NamedTuple):
    """An answer's tags, and the answer without them."""

    extraction: ExtractionResult
    clean_response: str

    @property
    def entities(self) -> list[ExtractedEntity]:
        """Entities of the tags."""
        return self.extraction.entities

    @property
    def relationships(self) -> list[ExtractedRelationship]:
        """Relationships of the tags."""
        return self.extraction.relationships

    @property
    def episodes(self) -> list[ExtractedEpisode]:
        """Episodes of the tags."""
        return self.extraction.episodes


@displayed
class AnswerFacts(NamedTuple):
    """Counts of what the graph recorded from an answer."""

    entities: int = 0  # found in a document that was read
    facts: int = 0  # relationships that the rules find in a text
    stated: int = 0  # relationships with both names in one sentence
    unsupported: int = 0  # entities and relationships without support; stored separately
    episodes: int = 0
