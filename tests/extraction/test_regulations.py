"""Rules of a company's regulations: which sentences are rules, of which type, what they set, what a question asks."""

import time

import pytest

from legal_rag.extraction import run_extraction
from legal_rag.extraction.regulations import asked_rule, rule_of, topics_of


def rules(text):
    found = run_extraction(text, "règlement", "regulation", "rules").extractions
    assert all(text[rule["char_start"] : rule["char_end"]] == rule["extraction_text"] for rule in found)
    return [(rule["extraction_class"], rule["attributes"]) for rule in found]


def only_rule(text):
    """Return the attributes of the only rule of a text."""
    ((_, attributes),) = rules(text)
    return attributes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Le salarié a droit à un congé de deux jours et demi ouvrables par mois de travail effectif.",
            [("LeaveRule", {"rule_type": "annual_leave_entitlement", "duration": "deux jours et demi ouvrables",
                            "value": "2.5", "unit": "jour", "period": "mois"})],
        ),
        (
            "La durée légale du travail est fixée à trente-cinq heures par semaine.",
            [("WorkingTimeRule", {"rule_type": "working_time", "duration": "trente-cinq heures", "value": "35",
                                  "unit": "heure", "period": "semaine"})],
        ),
        (
            "Une prime de vacances de 300 euros est versée en juin.",
            [("BenefitRule", {"rule_type": "bonus", "amount": "300 euros", "currency": "EUR"})],
        ),
        (
            "La période d'essai est : 1° Pour les ouvriers, de deux mois ; 2° Pour les cadres, de quatre mois.",
            [
                ("WorkingTimeRule", {"rule_type": "probation", "duration": "deux mois", "value": "2", "unit": "mois"}),
                ("WorkingTimeRule", {"rule_type": "probation", "duration": "quatre mois", "value": "4",
                                     "unit": "mois"}),
            ],
        ),
        ("Le congé est fixé par décret.", []),  # sets nothing
        ("L'action se prescrit par deux ans.", []),  # on no known subject
        ("", []),
    ],
)  # fmt: skip
def test_a_rule_is_a_sentence_that_sets_a_figure_for_a_known_subject(text, expected):
    assert rules(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Salarié présent depuis 12 mois : 18 jours de congé par an.",
            {"duration": "18 jours", "period": "an", "condition": "Salarié présent depuis 12 mois"},
        ),
        (
            "Après deux ans d'ancienneté, le congé est de 27 jours ouvrables.",
            {"duration": "27 jours ouvrables", "condition": "Après deux ans d'ancienneté"},
        ),
        ("Le congé se demande 10 jours à l'avance.", {"rule_type": "leave_request", "notice": "10 jours"}),
        (
            "Le prêt ne dépasse pas trois mois de salaire, ni 9 000 euros.",
            {"amount": "9 000 euros", "limit": "trois mois de salaire"},
        ),
        ("Le prêt ne dépasse pas trois mois de salaire.", {"amount": "trois mois de salaire"}),
        (
            "Chacun a 24 jours de congé par an, soit 2 jours par mois.",
            {"duration": "24 jours", "monthly_equivalent": "2 jours"},
        ),
        ("Le forfait de télétravail est de 20 euros par mois.", {"amount": "20 euros", "period": "mois"}),
        ("La mutuelle est payée à 60 % par l'employeur.", {"rule_type": "health_insurance", "rate": "60 %"}),
        (
            "Les congés de l'année incomplète sont dus au prorata des mois travaillés.",
            {"rule_type": "prorated_leave", "calculation_method": "au prorata des mois travaillés"},
        ),
        ("Mariage du salarié : 4 jours non rémunérés.", {"rule_type": "special_leave", "pay_status": "non rémunérés"}),
    ],
)
def test_what_is_due_is_told_from_its_condition_its_notice_and_its_limit(text, expected):
    attributes = only_rule(text)
    assert {name: attributes.get(name) for name in expected} == expected
    assert "duration" in expected or attributes.get("duration") in (None, "4 jours")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Horaires : de 8 h 15 à 12 h et de 13 h à 16 h 45.", "8 h 15", "16 h 45"),
        ("L'horaire est de 9h à 17h30.", "9h", "17h30"),
        ("Horaires de l'équipe : 06:00 - 14:00.", "06:00", "14:00"),
        ("Le magasin ouvre à 10 heures et ferme à 19 heures.", "10 heures", "19 heures"),
    ],
)
def test_hours_of_the_day_are_read(text, start, end):
    attributes = only_rule(text)
    assert (attributes["rule_type"], attributes["start"], attributes["end"]) == ("working_hours", start, end)


def test_an_hour_past_which_one_is_late_is_neither_start_nor_end():
    attributes = only_rule("Horaires : de 9 h à 12 h (au-delà de 9 h 10, retard) ; de 14 h à 18 h.")
    assert [attributes[name] for name in ("start", "end", "late_threshold")] == ["9 h", "18 h", "9 h 10"]


@pytest.mark.parametrize(
    "text", ["La durée du travail est de 7 heures par jour.", "Durée du travail : 7 h 30 par jour."]
)
def test_a_length_of_time_is_no_hour_of_the_day(text):
    assert "start" not in dict(*[attributes for _, attributes in rules(text)] or [{}])


def test_days_of_the_week_are_read():
    assert only_rule("Jours travaillés : du mardi au samedi.")["days"] == "du mardi au samedi"


PROBATION = """Règlement du personnel

Vacances

Les mois d'essai comptent pour le calcul des congés. Durant l'essai, aucun congé n'est pris. Une fois l'engagement \
confirmé, le compte est ouvert.

Prêts

Le solde est rendu sous 30 jours.

Sanctions

La mise à pied ne dépasse pas cinq jours.
"""


def test_what_continues_a_rule_on_its_line_is_its_mechanism():
    leave, loan = rules(PROBATION)
    assert (leave[1]["rule_type"], loan[1]["rule_type"]) == ("probation_leave_counting", "loan")
    assert leave[1]["mechanism"].startswith("Durant l'essai, aucun congé")


def test_a_rule_without_a_subject_has_that_of_its_heading_and_no_other_sections():
    *_, (_, loan) = rules(PROBATION)
    assert loan["section"] == "Prêts"
    assert not any(
        "mise à pied" in rule["extraction_text"]
        for rule in run_extraction(PROBATION, "", "regulation", "rules").extractions
    )


@pytest.mark.parametrize(
    ("question", "key", "measure"),
    [
        ("Combien de jours de congé ?", "annual_leave_entitlement", "days"),
        ("COMBIEN DE SEMAINES DE VACANCES ?", "annual_leave_entitlement", "days"),
        ("L'essai compte-t-il pour les congés ?", "probation_leave_counting", None),
        ("Combien de temps dure l'essai ?", "probation", "duration"),
        ("Quels sont les horaires ?", "working_hours", "clock"),
        ("Combien d'heures par semaine travaille-t-on ?", "working_time", "hours"),
        ("Combien puis-je emprunter ?", "loan", "amount"),
        ("Combien de jours pour un décès ?", "special_leave", "days"),
        ("Quel préavis pour une démission ?", "notice_period", "notice"),
        ("Quand poser ses vacances ?", "leave_request", "date"),
        ("Qui préside le comité ?", "", None),
        ("", "", None),
    ],
)
def test_a_question_asks_for_a_type_of_rule_and_a_measure(question, key, measure):
    asked = asked_rule(question)
    assert (asked.key, asked.measure) == (key, measure)


def test_a_rule_that_a_model_found_is_read_by_its_own_words():
    entity = {
        "extraction_class": "LeaveRule",
        "extraction_text": "30 jours ouvrables par an",
        "char_start": 0,
        "char_end": 25,
        "attributes": {"rule_type": "congés payés annuels", "duration": "30 jours ouvrables", "period": "an"},
    }
    rule = rule_of(entity)
    assert rule.key == "annual_leave_entitlement"
    assert rule.states("days")
    assert not rule.states("amount")


def test_topics_are_whole_words():
    assert topics_of("les essais du mois") == {"probation"}
    assert topics_of("essayer un congélateur, marina") == frozenset()


@pytest.mark.parametrize(
    "text",
    ["congé un jour " * 30_000, "deux " * 100_000, "congé d'un mois ; " * 30_000, "à 8 h " * 30_000,
     "ancienneté " * 30_000 + "12 jours", "congé\n\n" * 20_000, "par an " * 30_000],
    ids=lambda text: repr(text[:16]),
)  # fmt: skip
def test_a_hostile_regulation_takes_time_in_proportion_to_its_length(text):
    started = time.process_time()
    run_extraction(text, "article", "regulation", "rules")
    assert time.process_time() - started < 40
