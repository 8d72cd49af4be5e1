"""The `Entity` value, the entity classes and their French labels and colours."""

from dataclasses import dataclass, field
from typing import Literal, NotRequired, TypedDict

ENTITIES = "entities.sqlite"  # what was extracted of a Library's documents, in its folder; see `ExtractionStore`
OCCURRENCE = "legal_rag_occurrence"  # attribute on the way through LangExtract: which one, from 0, of equal texts

# How an entity came to its place: as the model gave it, found again over folded text, or by rules.
Alignment = Literal["exact", "folded", "rules"]


class Entity(TypedDict):
    """A passage of a document and what it is: `content[char_start:char_end] == extraction_text`, always."""

    extraction_class: str  # one of `legal_rag.extraction.entities`, or of the caller's own
    extraction_text: str
    char_start: int  # characters of the document's content
    char_end: int
    attributes: dict[str, str]  # e.g. {"role": "demandeur"}
    alignment: NotRequired[Alignment]


@dataclass(frozen=True, kw_only=True)
class ExtractionResult:
    """What was extracted of one document, and what was lost on the way."""

    doc_name: str
    extractions: list[Entity] = field(default_factory=list)  # by where they begin, the longer first
    raw_jsonl_path: str | None = None  # of the LangExtract file it was saved to, if it was
    schema_name: str = "general"
    model_id: str = ""
    chunks: int = 0  # pieces that the document was read in
    dropped_chunks: int = 0  # of them, those with no usable reply: what they hold is not among the extractions
    ungrounded: int = 0  # extractions left out: their text stands nowhere in the document
    echoed: int = 0  # left out: copies of the prompt's own examples
    wrong_class: int = 0  # left out: of a class that the schema does not have
    error: str | None = None  # why the document was given up, if it was

    @property
    def complete(self) -> bool:
        """Tell whether every piece of the document was read."""
        return not self.dropped_chunks and self.error is None


def rule_entity(extraction_class: str, text: str, start: int, end: int, **attributes: str) -> Entity:
    """Make an entity of a passage that the rules found."""
    return Entity(
        extraction_class=extraction_class,
        extraction_text=text[start:end],
        char_start=start,
        char_end=end,
        attributes=attributes,
        alignment="rules",
    )


def in_order(entities: list[Entity]) -> list[Entity]:
    """Return entities by where they begin, the longer first, each once."""
    ordered = sorted(entities, key=lambda one: (one["char_start"], -one["char_end"], one["extraction_class"]))
    kept: dict[tuple[int, int, str], Entity] = {}
    for one in ordered:
        kept.setdefault((one["char_start"], one["char_end"], one["extraction_class"]), one)
    return list(kept.values())


# The classes of each schema, with the labels of the pages.
CLASS_LABELS: dict[str, dict[str, str]] = {
    "contract": {
        "party": "Partie au contrat",
        "effective_date": "Date d’effet",
        "termination_date": "Date de fin",
        "governing_law": "Droit applicable",
        "dispute_resolution": "Règlement des litiges",
        "indemnity_cap": "Plafond d’indemnité",
        "liability_limitation": "Limite de responsabilité",
        "confidentiality_period": "Durée de confidentialité",
        "notice_period": "Préavis",
        "renewal_term": "Renouvellement",
        "assignment_restriction": "Limite de cession",
        "force_majeure": "Force majeure",
    },
    "correspondence": {
        "sender": "Expéditeur",
        "recipient": "Destinataire",
        "date": "Date",
        "subject": "Objet",
        "commitment": "Engagement",
        "deadline": "Échéance",
        "action_item": "Action à mener",
        "legal_reference": "Référence juridique",
    },
    "corporate": {
        "entity_name": "Dénomination",
        "resolution_date": "Date de résolution",
        "resolution_subject": "Objet de la résolution",
        "authorised_signatory": "Signataire autorisé",
        "share_capital": "Capital social",
        "registered_address": "Siège social",
        "compliance_deadline": "Échéance réglementaire",
    },
    "general": {
        "date": "Date",
        "monetary_amount": "Somme",
        "person": "Personne",
        "organisation": "Organisation",
        "legal_reference": "Référence juridique",
        "obligation": "Obligation",
        "condition": "Condition",
        "deadline": "Échéance",
    },
    "jurisprudence": {
        "juridiction": "Juridiction",
        "formation": "Formation",
        "date": "Date",
        "numero": "Numéro",
        "ecli": "ECLI",
        "partie": "Partie",
        "avocat": "Avocat",
        "texte_vise": "Texte visé",
        "article_cite": "Article cité",
        "jurisprudence_citee": "Jurisprudence citée",
        "moyen": "Moyen",
        "solution": "Solution",
        "montant": "Montant",
        "delai": "Délai",
        "dispositif": "Dispositif",
    },
    "regulation": {
        "LeaveRule": "Règle de congé",
        "WorkingTimeRule": "Règle de temps de travail",
        "BenefitRule": "Règle d’avantage",
    },
}
CLASSES = {name: tuple(labels) for name, labels in CLASS_LABELS.items()}
JURISPRUDENCE = CLASSES["jurisprudence"]
LABELS = {name: label for labels in CLASS_LABELS.values() for name, label in labels.items()}
KNOWN_CLASSES = tuple(LABELS)

# Classes that rules, terms and outcomes name; LEGAL_DATE, DEADLINE and LEGAL_REFERENCE belong to two schemas.
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
PARTY = "party"
EFFECTIVE_DATE = "effective_date"
TERMINATION_DATE = "termination_date"
INDEMNITY_CAP = "indemnity_cap"
LIABILITY_LIMITATION = "liability_limitation"
SENDER = "sender"
RECIPIENT = "recipient"
LEGAL_DATE = "date"
DEADLINE = "deadline"
LEGAL_REFERENCE = "legal_reference"
ENTITY_NAME = "entity_name"
RESOLUTION_DATE = "resolution_date"
AUTHORISED_SIGNATORY = "authorised_signatory"
SHARE_CAPITAL = "share_capital"
COMPLIANCE_DEADLINE = "compliance_deadline"
MONETARY_AMOUNT = "monetary_amount"
PERSON = "person"
ORGANISATION = "organisation"
