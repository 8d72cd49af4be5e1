"""The `Entity` and `ExtractionResult` values, and the entity classes with their French labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal, NamedTuple, NotRequired, TypedDict

from legal_rag.base.html import displayed
from legal_rag.base.text import read_toml
from legal_rag.corpus.documents import Document
from legal_rag.law.courts import Level
from legal_rag.law.outcomes import Outcome, kinds_of, kinds_of_case, operative_part, solutions, statements

ENTITIES = "entities.sqlite"  # `ExtractionStore` of a Library, in its folder

# How an entity was grounded: verbatim, in folded text, or by the rules.
Alignment = Literal["exact", "folded", "rules"]


class Entity(TypedDict):
    """A classified span of a document: `content[char_start:char_end] == extraction_text`, always."""

    extraction_class: str  # one of `KNOWN_CLASSES`, or the caller's own
    extraction_text: str
    char_start: int  # characters of the document's content
    char_end: int
    attributes: dict[str, str]  # e.g. {"role": "demandeur"}
    alignment: NotRequired[Alignment]


@displayed
@dataclass(frozen=True, kw_only=True)
class ExtractionResult:
    """The entities of one document, and counts of what was dropped."""

    doc_name: str
    extractions: list[Entity] = field(default_factory=list)  # by start, the longer first
    raw_jsonl_path: str | None = None  # the LangExtract file, if one was written
    schema_name: str = "general"
    model_id: str = ""
    chunks: int = 0  # pieces of the document
    dropped_chunks: int = 0  # pieces without a usable reply
    ungrounded: int = 0  # dropped: the text is not in the document
    echoed: int = 0  # dropped: copies of the prompt's examples
    wrong_class: int = 0  # dropped: not a class of the schema, or no passage of that class
    error: str | None = None  # why the extraction failed, if it did
    text: str = field(default="", repr=False, compare=False)  # the document's, of `run_extraction`; not stored

    @property
    def complete(self) -> bool:
        """Whether every piece of the document was read."""
        return not self.dropped_chunks and self.error is None


class ExtractedDocument(NamedTuple):
    """A document and its entities, as `write_outputs` and the pages take it."""

    doc_id: str
    title: str
    content: str
    entities: Sequence[Entity]
    document: Document | None = None  # source of the pages' filters; without it, the head of the text

    @classmethod
    def of(cls, document: Document, entities: Sequence[Entity]) -> "ExtractedDocument":
        """Build one from a document with its columns."""
        return cls(document.id, document.title, document.content, entities, document)


def rule_entity(extraction_class: str, text: str, start: int, end: int, **attributes: str) -> Entity:
    """Build an entity from a span found by the rules."""
    return Entity(
        extraction_class=extraction_class,
        extraction_text=text[start:end],
        char_start=start,
        char_end=end,
        attributes=attributes,
        alignment="rules",
    )


def in_order(entities: Iterable[Entity]) -> list[Entity]:
    """Sort entities by start, the longer first, without duplicates."""
    return [next(same) for _, same in groupby(sorted(entities, key=entity_order), key=entity_order)]


def entity_order(entity: Entity) -> tuple[int, int, str]:
    """Return the key by which entities are sorted: by start, the longer first."""
    return entity["char_start"], -entity["char_end"], entity["extraction_class"]


# Labels on the pages, by schema and class.
CLASS_LABELS: dict[str, dict[str, str]] = read_toml("legal_rag.extraction", "classes.toml")
CLASSES = {name: tuple(labels) for name, labels in CLASS_LABELS.items()}
JURISPRUDENCE = CLASSES["jurisprudence"]
REGULATION = CLASSES["regulation"]
LABELS = {name: label for labels in CLASS_LABELS.values() for name, label in labels.items()}
KNOWN_CLASSES = tuple(LABELS)

# Classes that the rules find; the last eight belong to other schemas.
JURIDICTION = "juridiction"
FORMATION = "formation"
DATE = "date"
NUMERO = "numero"
ECLI = "ecli"
PARTIE = "partie"
AVOCAT = "avocat"
TEXTE_VISE = "texte_vise"
ARTICLE_CITE = "article_cite"
JURISPRUDENCE_CITEE = "jurisprudence_citee"
MOYEN = "moyen"
SOLUTION = "solution"
MONTANT = "montant"
DELAI = "delai"
DISPOSITIF = "dispositif"
DEADLINE = "deadline"
LEGAL_REFERENCE = "legal_reference"
MONETARY_AMOUNT = "monetary_amount"
ORGANISATION = "organisation"
PERSON = "person"


def outcome_of(solution: str, level: Level, text: str, entities: Iterable[Entity] | None) -> Outcome:
    """Read a decision's outcome from the source's own term (`solution`), else its entities, else its text."""
    if solution.strip():
        return Outcome(kinds_of(solution), solution.strip())
    known = entities or ()
    words = [item["extraction_text"] for item in known if item["extraction_class"] == SOLUTION]
    # A statement's first word is its verb; the rest may report another court's ruling.
    words = words or [item["extraction_text"].split()[0] for item in known if item["extraction_class"] == DISPOSITIF]
    if not words and (part := operative_part(text)):
        words = [text[start:end] for start, end in solutions(text, part, statements(text, part))]
    kinds = kinds_of_case(words, level)
    return Outcome(kinds, " et ".join(sorted(kinds)))
