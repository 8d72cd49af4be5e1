"""The types of nodes and edges, with their French labels, and the values that an answer's tags are read into."""

from dataclasses import dataclass, field
from typing import NamedTuple

# Types of nodes: those of any field, then those of law.
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
# Types of edges, each read as "source … target".
EDGE_TYPES: dict[str, str] = {
    "related_to": "est lié à",
    "part_of": "fait partie de",
    "depends_on": "dépend de",
    "uses": "utilise",
    "located_in": "se trouve à",
    "cites": "cite",
    "applies": "applique",
    "interprets": "interprète",
    "follows": "suit",
    "distinguishes": "se distingue de",
    "upholds": "maintient",
    "overrules": "casse, annule ou infirme",
    "party_to": "est partie à",
    "represents": "représente",
    "pleads_in": "plaide dans",
    "decided_by": "est rendu par",
}
# The same, read from the target.
REVERSED_EDGE_TYPES: dict[str, str] = {
    "related_to": "est lié à",
    "part_of": "comprend",
    "depends_on": "est nécessaire à",
    "uses": "est utilisé par",
    "located_in": "est le lieu de",
    "cites": "est cité par",
    "applies": "est appliqué par",
    "interprets": "est interprété par",
    "follows": "est suivi par",
    "distinguishes": "est distingué par",
    "upholds": "est maintenu par",
    "overrules": "est cassé, annulé ou infirmé par",
    "party_to": "a pour partie",
    "represents": "est représenté par",
    "pleads_in": "est plaidé par",
    "decided_by": "a rendu",
}
EPISODE_STATUSES: dict[str, str] = {
    "pending": "en attente",
    "success": "réussi",
    "partial": "réussi en partie",
    "failure": "échoué",
    "abandoned": "abandonné",
}
DEFAULT_STATUS = "pending"


@dataclass(frozen=True)
class ExtractedEntity:
    """`<vm:entity>`: something that an answer names."""

    name: str
    type: str  # one of `NODE_TYPES`
    confidence: float = 1.0  # the model's own, 0 to 1
    description: str = ""


@dataclass(frozen=True)
class ExtractedRelationship:
    """`<vm:relationship>`: a directed edge between two names; never from a name to itself."""

    source: str  # attribute `from`
    target: str  # attribute `to`
    type: str  # one of `EDGE_TYPES`
    confidence: float = 1.0  # the model's own, 0 to 1


@dataclass(frozen=True)
class ExtractedEpisode:
    """`<vm:episode>`: what was decided in the work on an answer, how it went, and what it teaches."""

    decision: str
    context: str = ""
    status: str = DEFAULT_STATUS  # one of `EPISODE_STATUSES`
    lessons: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()  # names


@dataclass(frozen=True)
class ExtractionResult:
    """What the tags of one answer say, in text order."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    episodes: list[ExtractedEpisode] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.entities or self.relationships or self.episodes)

    def confident(self, threshold: float) -> "ExtractionResult":
        """Return it without the entities and relationships whose confidence is below a threshold, 0 to 1."""
        return ExtractionResult(
            [entity for entity in self.entities if entity.confidence >= threshold],
            [relationship for relationship in self.relationships if relationship.confidence >= threshold],
            self.episodes,
        )


class AnswerFacts(NamedTuple):
    """What the graph took from an answer."""

    entities: int = 0  # that stand in a document read
    facts: int = 0  # relationships that a text says by itself
    stated: int = 0  # of which one sentence holds both names
    unsupported: int = 0  # entities and relationships that no text supports; kept apart
    episodes: int = 0
