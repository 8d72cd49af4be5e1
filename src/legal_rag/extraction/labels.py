"""What entities' classes are called where French readers see them, and which colour each has.

A class that the toolkit does not know is shown by its own name, in a colour that its page has left.
"""

from legal_rag.extraction import classes

LABELS = {
    classes.JURIDICTION: "Juridiction",
    classes.FORMATION: "Formation",
    classes.DATE: "Date",
    classes.NUMERO: "Numéro",
    classes.ECLI: "ECLI",
    classes.PARTIE: "Partie",
    classes.AVOCAT: "Avocat",
    classes.TEXTE_VISE: "Texte visé",
    classes.ARTICLE_CITE: "Article cité",
    classes.JURISPRUDENCE_CITEE: "Jurisprudence citée",
    classes.MOYEN: "Moyen",
    classes.SOLUTION: "Solution",
    classes.MONTANT: "Montant",
    classes.DELAI: "Délai",
    classes.DISPOSITIF: "Dispositif",
    classes.PARTY: "Partie au contrat",
    classes.EFFECTIVE_DATE: "Date d’effet",
    classes.TERMINATION_DATE: "Date de fin",
    classes.GOVERNING_LAW: "Droit applicable",
    classes.DISPUTE_RESOLUTION: "Règlement des litiges",
    classes.INDEMNITY_CAP: "Plafond d’indemnité",
    classes.LIABILITY_LIMITATION: "Limite de responsabilité",
    classes.CONFIDENTIALITY_PERIOD: "Durée de confidentialité",
    classes.NOTICE_PERIOD: "Préavis",
    classes.RENEWAL_TERM: "Renouvellement",
    classes.ASSIGNMENT_RESTRICTION: "Limite de cession",
    classes.FORCE_MAJEURE: "Force majeure",
    classes.SENDER: "Expéditeur",
    classes.RECIPIENT: "Destinataire",
    classes.SUBJECT: "Objet",
    classes.COMMITMENT: "Engagement",
    classes.ACTION_ITEM: "Action à mener",
    classes.DEADLINE: "Échéance",
    classes.LEGAL_REFERENCE: "Référence juridique",
    classes.ENTITY_NAME: "Dénomination",
    classes.RESOLUTION_DATE: "Date de résolution",
    classes.RESOLUTION_SUBJECT: "Objet de la résolution",
    classes.AUTHORISED_SIGNATORY: "Signataire autorisé",
    classes.SHARE_CAPITAL: "Capital social",
    classes.REGISTERED_ADDRESS: "Siège social",
    classes.COMPLIANCE_DEADLINE: "Échéance réglementaire",
    classes.MONETARY_AMOUNT: "Somme",
    classes.PERSON: "Personne",
    classes.ORGANISATION: "Organisation",
    classes.OBLIGATION: "Obligation",
    classes.CONDITION: "Condition",
    classes.LEAVE_RULE: "Règle de congé",
    classes.WORKING_TIME_RULE: "Règle de temps de travail",
    classes.BENEFIT_RULE: "Règle d’avantage",
}

ALIGNMENT_LABELS = {
    "exact": "mot pour mot",
    "folded": "retrouvée malgré la graphie",
    "rules": "trouvée par règle",
}


def colours() -> dict[str, int]:
    """Return the number of each known class's colour: classes of one schema have different ones."""
    numbers: dict[str, int] = {}
    for names in (classes.JURISPRUDENCE, *classes.CLASSES.values()):  # a court's decisions choose first
        taken = {numbers[name] for name in names if name in numbers}
        free = (number for number in range(len(names) + len(taken)) if number not in taken)
        numbers.update({name: next(free) for name in names if name not in numbers})
    return numbers
