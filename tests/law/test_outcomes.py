"""Kinds of outcome in words, which of them are opposite, and the outcome of a whole case."""

import time

import pytest

from legal_rag.extraction.entities import outcome_of
from legal_rag.law.courts import level_of
from legal_rag.law.outcomes import STATED, Outcome, constitutionality, kinds_of, operative_part


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
        ("Irrecevabilité", {"irrecevabilité"}),
        ("Non-admission", {"non-admission"}),
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


CITED = "Cass. soc., 12 mars 2019, n° 17-31.442"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        *((CITED + rest, ["rejet"]) for rest in (", qui rejette le pourvoi", " : rejet.", " (rejet)")),
        *((CITED + rest, ["rejet"]) for rest in (", rejet", "\tRejet", ", rejetant le pourvoi", " | Rejet | ")),
        *((CITED + rest, ["cassation"]) for rest in (", qui casse l'arrêt", " a cassé l'arrêt", ", qui a cassé")),
        *((CITED + rest, ["cassation"]) for rest in (", arrêt de cassation", " (cassation sans renvoi)")),
        ("l'arrêt du 12 mars 2019 qui rejette le pourvoi", ["rejet"]),
        (f"{CITED}, arrêt de rejet", ["rejet"]),
        ("Rejet du pourvoi (12 mars 2019)", ["rejet"]),
        ("CA Lyon, 4 mai 2017, n° 15/02468, qui infirme le jugement", ["infirmation"]),
        ("CA Lyon, 4 mai 2017, confirmant le jugement", ["confirmation"]),
        ("La Cour casse l'arrêt du 4 mai 2017, qui infirme le jugement", ["cassation"]),
        ("CE, 3 juin 2021, annule la décision", ["annulation"]),
        ("La Cour a déclaré irrecevable le pourvoi", ["irrecevabilité"]),
        ("CE, 3 juin 2021 (non-admission)", ["non-admission"]),
        ("La décision déclare l'article 5 contraire à la Constitution", ["non-conformité"]),
        ("Cons. const., 3 mai 2010, n° 2010-1 QPC : non-conformité totale", ["non-conformité"]),
        ("La décision déclare conformes à la Constitution ces mots", ["conformité"]),
        ("La Cour renvoie la question au Conseil constitutionnel", ["renvoi de la QPC"]),
        ("La Cour refuse de transmettre la QPC", ["non-renvoi de la QPC"]),
        *((text, []) for text in ("la demande de rejet", "un moyen de cassation", "un pourvoi en cassation", "")),
        *((text, []) for text in ("un recours en annulation", "rejette la demande de dommages-intérêts")),
        *((text, []) for text in ("Cour de cassation, chambre sociale", "Cassation, soc., 12 mars 2019")),
        *((text, []) for text in ("l'arrêt attaqué qui rejette le recours", "il refuse de transmettre les pièces")),
        *((text, []) for text in ("poursuit la cassation de l'arrêt", "qui avait déclaré le recours irrecevable")),
        *((text, []) for text in ("un lot non conforme", "la loi abrogée", "un envoi conforme, de suite")),
    ],
)  # fmt: skip
def test_a_text_states_how_a_decision_ended(text, kinds):
    assert [kind for kind, pattern in STATED for _ in pattern.finditer(text)] == kinds


def test_an_outcome_by_another_court_ends_before_that_court():
    text = "CA Lyon, 4 mai 2017, n° 15/02468, cassé par Cass. soc., 12 mars 2019"
    found = [(kind, text[match.end() :]) for kind, pattern in STATED for match in pattern.finditer(text)]
    assert found == [("cassation", " par Cass. soc., 12 mars 2019")]


def test_outcomes_are_read_in_time_linear_to_the_text():
    def seconds(times):
        started = time.process_time()
        for _, pattern in STATED:
            list(pattern.finditer("déclare casse l'arrêt du 4 mai 2017, qui infirme le jugement, " * times))
        return time.process_time() - started

    seconds(10)
    few, many = min(seconds(400), seconds(401)), min(seconds(3200), seconds(3201))
    assert many < 24 * few + 0.05


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("L'article 1er est conforme à la Constitution.", {"conformité"}),
        ("Sous cette réserve, l'article 1er est conforme à la Constitution.", {"conformité", "réserve"}),
        ("Les mots « six mois » sont contraires à la Constitution.", {"non-conformité"}),
        ("Ils ne sont donc pas contraires à la Constitution.", {"conformité"}),
        ("Il n'est pas conforme aux droits et libertés que la Constitution garantit.", {"non-conformité"}),
        ("La loi est inconstitutionnelle ; l'autre est conforme à la Constitution.", {"conformité", "non-conformité"}),
        ("Il demande si la loi est contraire à la Constitution.", set()),
        ("Le requérant soutient que la loi est contraire à la Constitution.", set()),
        ("Une question relative à la conformité de la loi à la Constitution.", set()),
        ("Un lot non conforme au contrat ; le Conseil constitutionnel.", set()),
    ],
)
def test_a_statute_conforms_to_the_constitution_or_does_not(text, kinds):
    assert constitutionality(text) == kinds


def test_an_operative_part_quoted_in_annexed_grounds_is_not_that_of_the_decision():
    text = "PAR CES MOTIFS :\n\nREJETTE le pourvoi ;\n\nMOYENS ANNEXES\n\nPAR CES MOTIFS, infirme le jugement.\n"
    part = operative_part(text)
    assert part is not None
    assert text[part.start : part.end].strip(" :;\n") == "REJETTE le pourvoi"
