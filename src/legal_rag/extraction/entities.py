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


# jurisprudence: what a French decision is made of
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
JURISPRUDENCE = (
    JURIDICTION, FORMATION, DATE, NUMERO, ECLI, PARTIE, AVOCAT, TEXTE_VISE, ARTICLE_CITE, JURISPRUDENCE_CITEE, MOYEN,
    SOLUTION, MONTANT, DELAI, DISPOSITIF,
)  # fmt: skip

# contract
PARTY = "party"
EFFECTIVE_DATE = "effective_date"
TERMINATION_DATE = "termination_date"
GOVERNING_LAW = "governing_law"
DISPUTE_RESOLUTION = "dispute_resolution"
INDEMNITY_CAP = "indemnity_cap"
LIABILITY_LIMITATION = "liability_limitation"
CONFIDENTIALITY_PERIOD = "confidentiality_period"
NOTICE_PERIOD = "notice_period"
RENEWAL_TERM = "renewal_term"
ASSIGNMENT_RESTRICTION = "assignment_restriction"
FORCE_MAJEURE = "force_majeure"
CONTRACT = (
    PARTY, EFFECTIVE_DATE, TERMINATION_DATE, GOVERNING_LAW, DISPUTE_RESOLUTION, INDEMNITY_CAP, LIABILITY_LIMITATION,
    CONFIDENTIALITY_PERIOD, NOTICE_PERIOD, RENEWAL_TERM, ASSIGNMENT_RESTRICTION, FORCE_MAJEURE,
)  # fmt: skip

# correspondence; dates and references are those of `general`
SENDER = "sender"
RECIPIENT = "recipient"
SUBJECT = "subject"
COMMITMENT = "commitment"
ACTION_ITEM = "action_item"
LEGAL_DATE = "date"
DEADLINE = "deadline"
LEGAL_REFERENCE = "legal_reference"
CORRESPONDENCE = (SENDER, RECIPIENT, LEGAL_DATE, SUBJECT, COMMITMENT, DEADLINE, ACTION_ITEM, LEGAL_REFERENCE)

# corporate
ENTITY_NAME = "entity_name"
RESOLUTION_DATE = "resolution_date"
RESOLUTION_SUBJECT = "resolution_subject"
AUTHORISED_SIGNATORY = "authorised_signatory"
SHARE_CAPITAL = "share_capital"
REGISTERED_ADDRESS = "registered_address"
COMPLIANCE_DEADLINE = "compliance_deadline"
CORPORATE = (
    ENTITY_NAME, RESOLUTION_DATE, RESOLUTION_SUBJECT, AUTHORISED_SIGNATORY, SHARE_CAPITAL, REGISTERED_ADDRESS,
    COMPLIANCE_DEADLINE,
)  # fmt: skip

# general
MONETARY_AMOUNT = "monetary_amount"
PERSON = "person"
ORGANISATION = "organisation"
OBLIGATION = "obligation"
CONDITION = "condition"
GENERAL = (LEGAL_DATE, MONETARY_AMOUNT, PERSON, ORGANISATION, LEGAL_REFERENCE, OBLIGATION, CONDITION, DEADLINE)

# regulation: a company's rules
LEAVE_RULE = "LeaveRule"
WORKING_TIME_RULE = "WorkingTimeRule"
BENEFIT_RULE = "BenefitRule"
REGULATION = (LEAVE_RULE, WORKING_TIME_RULE, BENEFIT_RULE)

CLASSES = {
    "contract": CONTRACT,
    "correspondence": CORRESPONDENCE,
    "corporate": CORPORATE,
    "general": GENERAL,
    "jurisprudence": JURISPRUDENCE,
    "regulation": REGULATION,
}
KNOWN_CLASSES = tuple(dict.fromkeys(name for names in CLASSES.values() for name in names))
