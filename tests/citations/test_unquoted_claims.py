"""Claims put together otherwise than their passage: its words with another date or person, or without a condition."""

import pytest

from legal_rag.citations import CitationEnricher
from legal_rag.citations.checks import HOLDING, WITHOUT_CONDITION

QPC = """Le Conseil constitutionnel a été saisi d'une question relative à la conformité aux droits et libertés que la \
Constitution garantit de l'article 12 du code de la voirie.

La société requérante soutient que l'article 12 du code de la voirie est contraire à la Constitution.

L'article 12 du code de la voirie est conforme à la Constitution.

Sous cette réserve, l'article 15 du code de la voirie est conforme à la Constitution.
"""
PARTIAL = """L'article 12 du code de la voirie est contraire à la Constitution.

L'article 15 du code de la voirie n'est pas contraire à la Constitution.
"""


def state(text, sentence):
    """Return how the claim is cited: its status, or "reworded", or "refused"."""
    (citation,) = CitationEnricher({"A": text}).enrich(f"{sentence} [Source: A].").citations
    return "reworded" if citation.reworded else "refused" if citation.status == "unverified" else citation.status


@pytest.mark.parametrize(
    ("text", "sentence", "expected"),
    [
        (QPC, "L'article 12 du code de la voirie est conforme à la Constitution", "supported"),
        (QPC, "La décision juge l'article 12 du code de la voirie conforme à la Constitution", "supported"),
        (QPC, "L'article 12 du code de la voirie est contraire à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie a été déclaré contraire à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie n'est pas conforme à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie est non conforme à la Constitution", "refused"),
        (QPC, "L'article 12 du code de la voirie est inconstitutionnel", "refused"),
        (
            QPC,
            "Le Conseil a jugé contraire à la Constitution ceci : « L'article 12 du code de la voirie est»",
            "refused",
        ),
        (QPC, "La société soutient que l'article 12 du code de la voirie est contraire à la Constitution", "supported"),
        (QPC, "Sous cette réserve, l'article 15 du code de la voirie est conforme à la Constitution", "supported"),
        (QPC, "L'article 15 du code de la voirie est conforme à la Constitution", "reworded"),
        (PARTIAL, "L'article 12 du code de la voirie est contraire à la Constitution", "supported"),
        (PARTIAL, "L'article 15 du code de la voirie n'est pas contraire à la Constitution", "supported"),
        (PARTIAL, "L'article 12 du code de la voirie est conforme à la Constitution", "reworded"),
    ],
)
def test_a_statute_is_said_to_conform_to_the_constitution_only_where_the_decision_says_so(text, sentence, expected):
    assert state(text, sentence) == expected


COMPTE = """Considérant que le délai expirait donc le 28 mai 1993 à minuit ; que le compte du candidat n'est parvenu \
à la préfecture que le 9 juin 1993, soit avec douze jours de retard."""
LICENCIE = """La société Immobilière du Midi, créée le 3 mars 2001, a embauché le salarié le 5 mai 2003 et l'a \
licencié pour faute grave par lettre du 7 juin 2009, avec une indemnité de 1 200 euros et un rappel de salaire de 900 \
euros, après un préavis de deux mois et une mise à pied de trois mois."""


@pytest.mark.parametrize(
    ("text", "sentence", "expected"),
    [
        (COMPTE, "Le délai expirait le 28 mai 1993 à minuit", "supported"),
        (COMPTE, "Le délai expirait le 9 juin 1993 à minuit", "reworded"),
        (COMPTE, "Le 9 juin 1993 à minuit, le délai expirait", "reworded"),
        (LICENCIE, "La société Immobilière du Midi a été créée le 3 mars 2001", "supported"),
        (LICENCIE, "La société Immobilière du Midi a embauché le salarié le 5 mai 2003", "supported"),
        (LICENCIE, "Le 5 mai 2003, la société Immobilière du Midi a embauché le salarié", "supported"),
        (LICENCIE, "Le salarié a été licencié pour faute grave par lettre du 7 juin 2009", "supported"),
        (LICENCIE, "La société Immobilière du Midi a été créée le 5 mai 2003", "reworded"),
        (LICENCIE, "La société Immobilière du Midi a licencié le salarié pour faute grave le 5 mai 2003", "reworded"),
        (LICENCIE, "Le salarié a été licencié avec une indemnité de 1 200 euros", "supported"),
        (LICENCIE, "Le salarié a été licencié avec une indemnité de 900 euros", "reworded"),
        (LICENCIE, "Le salarié a été licencié après un préavis de deux mois", "supported"),
        (LICENCIE, "Le salarié a été licencié après un préavis de trois mois", "reworded"),
    ],
)
def test_a_date_an_amount_or_a_duration_stands_by_the_words_that_it_stands_by_in_the_source(text, sentence, expected):
    assert state(text, sentence) == expected


RAPPORT = """Le rapport écrit de M. Vasseur, conseiller, et l'avis écrit de Mme Lemercier, avocat général, ont été mis \
à la disposition des parties."""
BAUX = """La société Valdor a donné à bail à la société Borel un local commercial, et M. Quillerou a consenti à \
Mme Morel un prêt de trésorerie."""


@pytest.mark.parametrize(
    ("text", "sentence", "expected"),
    [
        (RAPPORT, "Le rapport écrit de M. Vasseur a été mis à la disposition des parties", "supported"),
        (RAPPORT, "L'avis écrit de Mme Lemercier a été mis à la disposition des parties", "supported"),
        (RAPPORT, "Le rapport écrit de Mme Lemercier a été mis à la disposition des parties", "reworded"),
        (RAPPORT, "L'avis écrit de M. Vasseur a été mis à la disposition des parties", "reworded"),
        (BAUX, "M. Quillerou a consenti à Mme Morel un prêt de trésorerie", "supported"),
        (BAUX, "La société Valdor a donné à bail à la société Borel un local commercial", "supported"),
        (BAUX, "La société Valdor a consenti à Mme Morel un prêt de trésorerie", "reworded"),
        (BAUX, "La société Valdor a donné à bail à Mme Morel un local commercial", "reworded"),
    ],
)
def test_a_person_or_a_company_stands_by_the_words_that_it_stands_by_in_the_source(text, sentence, expected):
    assert state(text, sentence) == expected


RULE = "La salariée peut se prévaloir de tout autre mode d'envoi, si l'employeur a reçu le certificat dans le délai."
CONFORMS = "Sous la réserve énoncée au considérant 7, l'article 12 du code de la voirie est conforme à la Constitution."


@pytest.mark.parametrize(
    ("text", "sentence", "warned"),
    [
        (RULE, "« La salariée peut se prévaloir de tout autre mode d'envoi »", True),
        (RULE, f"« {RULE[:-1]} »", False),
        (RULE, "« La salariée peut se prévaloir de tout autre mode d'envoi », à condition qu'il soit reçu", False),
        (RULE, "« l'employeur a reçu le certificat dans le délai »", False),
        (CONFORMS, "« l'article 12 du code de la voirie est conforme à la Constitution »", True),
        (CONFORMS, f"« {CONFORMS[:-1]} »", False),
        (CONFORMS, "Sous une réserve, « l'article 12 du code de la voirie est conforme à la Constitution »", False),
    ],
)
def test_a_quotation_cut_off_from_its_condition_is_warned_of(text, sentence, warned):
    (citation,) = CitationEnricher({"A": text}).enrich(f"{sentence} [Source: A].").citations
    assert (citation.status in HOLDING, WITHOUT_CONDITION in citation.warnings) == (True, warned)
