"""Kinds of outcome in words, which of them are opposite, and the outcome of a whole case."""

import pytest

from legal_rag.extraction.entities import outcome_of
from legal_rag.law.courts import level_of
from legal_rag.law.outcomes import Outcome, kinds_of


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("Cassation partielle sans renvoi", {"cassation"}),
        ("Casse ; rejette le surplus", {"cassation"}),
        ("Rejet - non lieu à statuer [QPC]", {"rejet"}),
        ("Annulation et Inéligibilité", {"annulation", "inéligibilité"}),
        ("QPC renvoi", {"renvoi de la QPC"}),
        ("Infirme partiellement, réforme ou modifie certaines dispositions", {"infirmation"}),
        ("Non lieu à statuer", set()),
        ("Irrecevabilité", set()),
        ("cassis", set()),
        ("", set()),
    ],
)
def test_the_words_of_an_outcome_have_kinds(words, kinds):
    assert kinds_of(words) == kinds


@pytest.mark.parametrize(
    ("one", "other", "opposite"),
    [
        ("Rejet", "Cassation partielle", True),
        ("Annulation", "Rejet", True),
        ("Infirme", "Confirme", True),
        ("Confirme et infirme", "Confirme", False),
        ("Cassation", "Annulation", False),
        ("Inéligibilité", "Rejet", False),
        ("Conformité", "Non-conformité", True),
        ("", "Rejet", False),
    ],
)
def test_some_outcomes_are_opposite(one, other, opposite):
    outcomes = Outcome(kinds_of(one), one), Outcome(kinds_of(other), other)
    assert (outcomes[0].opposes(outcomes[1]), outcomes[1].opposes(outcomes[0])) == (opposite, opposite)


def test_what_a_level_of_appeal_says_of_single_claims_is_not_its_outcome():
    text = "Motifs.\nPAR CES MOTIFS :\nConfirme le jugement ;\nRejette la demande de sursis ;\nCondamne M. X..."
    expected = Outcome(frozenset({"confirmation"}), "confirmation")
    assert outcome_of("", level_of("Cour d'appel d'Agen", ""), text, None) == expected
