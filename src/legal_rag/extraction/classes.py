"""The names of the classes that entities have, schema by schema: the only place where they are spelt."""

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
