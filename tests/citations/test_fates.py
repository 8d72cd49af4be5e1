"""What `verify` says where a text states what became of a decision: it is compared with what the index knows."""

from datetime import date

import pytest
from support.small_graphs import library_of

from legal_rag.citations import verify_text
from legal_rag.law import long_date
from legal_rag.law.outcomes import find_fates


def decision(court, day, number, ruling, said="", **more):
    told = long_date(date.fromisoformat(day))
    content = f"{court.upper()}, {told}, n° {number}. {said}\n\nPAR CES MOTIFS, la Cour :\n\n{ruling} ;"
    names = {"title": f"{court}, {told}, {number}", "juridiction": court, "number": number}
    return {"id": number.replace("/", "-"), "decision_date": day, "content": content, **names, **more}


def reviewed(day, number, ruling, below, of, solution):
    told = long_date(date.fromisoformat(day))
    said = f"M. Paul Roux a formé le pourvoi contre l'arrêt rendu le {below} (n° RG {of})."
    return decision("Cour de cassation", day, number, "", formation="Chambre sociale", solution=solution) | {
        "content": f"COUR DE CASSATION\n\nAudience publique du {told}\n\nPourvoi n° C {number}\n\n{said}\n\n"
        f"PAR CES MOTIFS, la Cour :\n\n{ruling} ;"
    }


PAU, NIMES, DOUAI = (
    "8 juin 2018, entre les parties, par la cour d'appel de Pau",
    "7 juin 2018 par la cour d'appel de Nîmes",
    "21 juin 2017, entre les parties, par la cour d'appel de Douai",
)
WHOLLY, IN_PART = (
    "CASSE ET ANNULE, en toutes ses dispositions",
    "CASSE ET ANNULE, mais seulement en ce qu'il fixe la prime",
)
LILLE = "Décision déférée à la cour : Jugement du 12 mai 2014 du tribunal judiciaire de Lille - RG n° 13/00456."
ROWS = [
    decision("Tribunal judiciaire de Lille", "2014-05-12", "13/00456", "Condamne la société Valdor"),
    decision("Cour d'appel de Douai", "2017-06-21", "15/02468", "Confirme le jugement", LILLE),
    decision("Cour d'appel de Pau", "2018-06-08", "16/00002", "Confirme le jugement"),
    decision("Cour d'appel de Nîmes", "2018-06-07", "16/00001", "Infirme le jugement"),
    decision("Cour d'appel de Rennes", "2018-06-09", "16/00003", "Confirme le jugement"),
    reviewed(
        "2019-03-12", "17-31.442", f"{IN_PART}, l'arrêt rendu le {DOUAI}", DOUAI, "15/02468", "Cassation partielle"
    ),
    reviewed("2020-05-06", "18-30.000", f"{WHOLLY}, l'arrêt rendu le {PAU}", PAU, "16/00002", "Cassation"),
    reviewed("2020-05-05", "18-20.000", "REJETTE le pourvoi", NIMES, "16/00001", "Rejet"),
]
QUASHED, PARTLY, UPHELD, UNKNOWN = (
    "CA Pau, 8 juin 2018, n° 16/00002",
    "CA Douai, 21 juin 2017, n° 15/02468",
    "CA Nîmes, 7 juin 2018, n° 16/00001",
    "CA Rennes, 9 juin 2018, n° 16/00003",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("fates"), ROWS, None)


@pytest.fixture(scope="module")
def judged(library):
    """Return the status of the last decision of a text, and whether what became of it was compared."""

    def given(text):
        (*_, found) = [one for one in verify_text(text, library).references if one.kind == "decision"]
        assert ("Non comparé : sort" in found.explanation) == (
            found.status == "confirmed" and "fate" not in found.checked
        )
        return found.status, "fate" in found.checked

    return given


IS_QUASHED = [
    "{}, a été cassé.",
    "{}, arrêt aujourd'hui cassé, retient la faute.",
    "{} (arrêt cassé depuis)",
    "{}, retient la faute. Cet arrêt a été cassé par la Cour de cassation.",
    "{}, retient la faute. La Cour de cassation a cassé cet arrêt.",
    "{}, retient la faute. La Cour de cassation l'a cassé.",
    "L'arrêt {}, qui retient la faute, a été cassé.",
    "La Cour de cassation a cassé l'arrêt de la {}.",
    "La Cour de cassation a censuré un arrêt de la {}.",
    "La Cour de cassation a cassé {}.",
    "{}, retient la faute. Cette décision, la Cour de cassation l'a cassée.",
    "{}, a fait l'objet d'une cassation.",
    "Aujourd'hui cassé, l'arrêt {}, retient la faute.",
    "Cassé depuis, l'arrêt de la {} retient la faute.",
]
IS_NOT_QUASHED = [
    "{}, n'a pas été cassé.",
    "{}, n'a, à ce jour, jamais été cassé.",
    "{}, retient la faute. Cet arrêt n'a pas été cassé.",
    "{}, retient la faute. La Cour de cassation n'a pas cassé cet arrêt.",
    "La Cour de cassation n'a pas cassé l'arrêt de la {}.",
    "{}, n'a pas fait l'objet d'une cassation.",
    "{}, n'a fait l'objet d'aucune cassation.",
    "Jamais cassé, l'arrêt {}, retient la faute.",
]
IS_UPHELD = [
    "{} (pourvoi rejeté)",
    "{}, retient la faute. Cet arrêt a été confirmé par la Cour de cassation.",
    "{}, retient la faute. Le pourvoi formé contre cet arrêt a été rejeté.",
    "{}, retient la faute. La Cour de cassation a rejeté le pourvoi contre cet arrêt.",
    "Le pourvoi formé contre l'arrêt {} a été rejeté.",
]


@pytest.mark.parametrize(
    ("said", "quashed", "partly", "upheld"),
    [
        *((said, "confirmed", "confirmed", "wrong") for said in IS_QUASHED),
        *((said, "wrong", "wrong", "confirmed") for said in IS_NOT_QUASHED),
        *((said, "wrong", "unchecked", "confirmed") for said in IS_UPHELD),
        ("{}, partiellement cassé.", "unchecked", "confirmed", "wrong"),
        ("{}, cassé en toutes ses dispositions.", "confirmed", "wrong", "wrong"),
        ("{}, n'a été cassé qu'en ce qu'il fixe la prime.", "unchecked", "confirmed", "wrong"),
        ("{}, n'a pas été cassé sur ce point.", "wrong", "unchecked", "confirmed"),
        ("{} (cassation)", "confirmed", "confirmed", "wrong"),
        ("{}, cassé le 6 mai 2020", "confirmed", "wrong", "wrong"),
        ("Cass. soc., 12 mars 2019, n° 17-31.442, casse l'arrêt de la {}", "confirmed", "confirmed", "wrong"),
    ],
)
def test_what_is_said_to_have_become_of_a_decision_is_compared_with_what_the_index_knows(
    judged, said, quashed, partly, upheld
):
    expected = {"confirmed": ("confirmed", True), "unchecked": ("confirmed", False), "wrong": ("wrong", False)}
    for cited, status in ((QUASHED, quashed), (PARTLY, partly), (UPHELD, upheld), (UNKNOWN, "unchecked")):
        if "de la {}" in said:
            cited = cited.replace("CA", "cour d'appel de").replace(", ", " du ", 1)
        assert judged(said.format(cited)) == expected[status], cited


def test_the_decision_that_quashed_is_the_one_the_index_knows(library):
    for by, statuses in (
        ("Cass. soc., 6 mai 2020, n° 18-30.000", ["confirmed", "confirmed"]),
        ("Cass. soc., 12 mars 2019, n° 17-31.442", ["wrong", "confirmed"]),
    ):
        found = verify_text(f"{QUASHED}, cassé par {by}", library).references
        assert [one.status for one in found] == statuses
    assert verify_text(f"{QUASHED}, n'a pas été cassé.", library).wrong[0].explanation.replace("\xa0", " ") == (
        "Le texte dit « n'a pas été cassé », l'index : « cassé par Cass. soc., 6 mai 2020, n° 18-30.000 »."
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{} et {} ont été cassés.", True),
        ("L'arrêt {}, et celui de {}, ont depuis été cassés.", True),
        ("{} ; {}. Ces deux arrêts ont été cassés.", True),
        ("{}, ainsi que {}, aujourd'hui cassés, retiennent la faute.", True),
        ("{} et {} (arrêts cassés)", True),
        ("{} et {} ont fait l'objet d'une cassation.", True),
        ("{} et {}. La Cour de cassation les a cassés. ", True),
        ("{} et {} n'ont pas été cassés.", False),
        ("Ni {}, ni {}, n'ont été cassés.", False),
        ("Ni {}, ni {}, n'a été cassé, de sorte que la question demeure.", False),
        ("Les pourvois formés contre {} et {} ont été rejetés.", False),
        # Of several in no list, or of one of the list, nothing is known.
        ("{} et {} ont été respectivement cassé et maintenu.", None),
        ("{}, retient la faute, {}, la nie : les jugements ont été cassés.", None),
    ],
)
def test_what_became_of_several_decisions_is_compared_of_each(library, said, expected):
    statuses = {True: ("confirmed", "wrong"), False: ("wrong", "confirmed"), None: ("confirmed", "confirmed")}[expected]
    for quashed_first in (True, False):
        cited, expected_of = (QUASHED, UPHELD), statuses
        if not quashed_first:
            cited, expected_of = cited[::-1], statuses[::-1]
        text = said.format(*cited)
        found = [one for one in verify_text(text, library).references if one.text in cited]
        assert [one.status for one in found] == list(expected_of)
        assert all("fate" in one.checked for one in found if one.status == "confirmed") == (expected is not None)


@pytest.mark.parametrize(
    "said",
    [
        "{quashed} et {partly} n'ont été cassés, par la Cour de cassation, que pour un motif de forme.",
        "{quashed} et {upheld} n'ont pas tous deux été cassés.",
        "{upheld}, {quashed} et {partly}. Ces deux arrêts ont été cassés.",
        "Voir {upheld}, {quashed} et {partly}, ces deux derniers ont été cassés.",
        "{upheld} ; {quashed} et {partly} ont été cassés.",
        "D'après {upheld} et {quashed}, les clauses ont été censurées.",
        "La cour d'appel de Nîmes a annulé la sanction dans un arrêt du 7 juin 2018 (n° 16/00001).",
        "La cour d'appel de Nîmes a annulé l'avertissement par un arrêt rendu le 7 juin 2018, n° 16/00001.",
    ],
)
def test_what_is_said_of_some_of_a_list_or_of_something_else_accuses_none(library, said):
    text = said.format(quashed=QUASHED, partly=PARTLY, upheld=UPHELD)
    assert not verify_text(text, library).wrong


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("{}, a encouru la censure de la Cour de cassation.", True),
        ("L'arrêt {}, sera cassé.", True),
        ("La cassation de l'arrêt {}, est intervenue en 2020.", True),
        ("Les arrêts cités par {}, ont été cassés.", True),
        ("Plusieurs arrêts ont été cassés, mais non {}.", True),
        ("Même cassé, l'arrêt {}, retient la faute.", True),
        ("L'appelant demande la cassation de l'arrêt {}.", False),
        ("Le pourvoi contre {}, tend à ce que l'arrêt soit cassé.", False),
        ("{}, cité par la Cour de cassation, a fait l'objet d'un pourvoi en cassation.", False),
        ("{}, infirmé le jugement déféré.", False),
    ],
)
@pytest.mark.parametrize("cited", [QUASHED, UPHELD, UNKNOWN])
def test_words_on_what_became_of_a_decision_that_were_not_read_are_said_not_to_be_compared(
    library, said, is_told, cited
):
    (found,) = [one for one in verify_text(said.format(cited), library).references if one.text == cited]
    assert (found.status, "Non comparé : sort" in found.explanation) == ("confirmed", is_told)


@pytest.mark.parametrize(
    "text",
    [
        f"L'employeur soutient que {UPHELD}, a été cassé.",
        f"Il est faux de dire que {UPHELD}, a été cassé.",
        f"Si l'arrêt {QUASHED}, n'a pas été cassé, il s'applique.",
        f"{UPHELD}, aurait été cassé.",
        f"{UPHELD}. L'arrêt de la cour d'appel de Lyon est contraire. Cet arrêt a été cassé.",
        f"{UPHELD}, retient que la sanction a été annulée.",
        f"{UPHELD}, retient la faute. Cette décision de l'inspecteur a été annulée.",
        f"{QUASHED} (jugement confirmé)",
        f"{UPHELD} (jugement infirmé)",
        f"{UPHELD}.\n\nCet arrêt a été cassé.",
        "CA de Nîmes a, par arrêt du 7 juin 2018, n° 16/00001, annulé la sanction.",
        "CA de Nîmes a, par arrêt du 7 juin 2018, n° 16/00001, partiellement annulé la sanction.",
        f"La Cour de cassation a cassé une clause validée par un arrêt {UPHELD}.",
        f"La Cour de cassation a cassé plusieurs décisions contraires à un arrêt de la {UPHELD}.",
        f"La Cour de cassation casse pour le même motif que la décision {UPHELD}.",
        f"Annulée dès l'origine, la décision {UPHELD}, le dit.",
    ],
)
def test_what_is_not_said_of_the_decision_accuses_it_of_nothing(library, text):
    found = [one for one in verify_text(text, library).references if one.text.startswith("CA")]
    assert [one.status for one in found] == ["confirmed"]
    assert "fate" not in found[0].checked


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("TJ Lille, 12 mai 2014, n° 13/00456, confirmé par CA Douai, 21 juin 2017, n° 15/02468", "confirmed"),
        ("TJ Lille, 12 mai 2014, n° 13/00456. Ce jugement a été infirmé.", "wrong"),
        (f"{PARTLY}, confirme le jugement du TJ de Lille du 12 mai 2014, n° 13/00456", "confirmed"),
        ("Cass. soc., 5 mai 2020, n° 18-20.000 (pourvoi rejeté)", "confirmed"),
        ("Cass. soc., 12 mars 2019, n° 17-31.442 (pourvoi rejeté)", "wrong"),
        ("Cass. soc., 12 mars 2019, n° 17-31.442 : l'arrêt d'appel a été cassé.", "confirmed"),
        ("CA Nîmes, 7 juin 2018, n° 16/00001, infirme le jugement", "confirmed"),
    ],
)  # fmt: skip
def test_the_level_of_the_court_says_whether_a_word_is_of_the_decision_or_of_the_one_below(library, said, status):
    assert {one.status for one in verify_text(said, library).references} >= {status}


def test_a_fate_is_compared_of_a_decision_that_the_index_knows_by_reference_only(tmp_path):
    library = library_of(tmp_path, [row for row in ROWS if row["number"] not in ("16/00002", "16/00001")], None)
    for said, status in (("a été cassé", "out_of_scope"), ("n'a pas été cassé", "wrong")):
        text = f"L'arrêt de la cour d'appel de Pau du 8 juin 2018 {said}."
        assert [one.status for one in verify_text(text, library).references] == [status]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n'a pas été cassé", ("cassation", "passive", True, False)),
        ("n'est pas annulé", ("annulation", "passive", True, False)),
        ("a été partiellement infirmé", ("infirmation", "passive", False, True)),
        ("n'a été cassé qu'en partie", ("cassation", "passive", False, True)),
        ("ni l'un ni l'autre n'a été cassé, quoi qu'on en dise", ("cassation", "passive", True, False)),
        ("n'a été cassé, par la Cour de cassation, que pour un motif de forme", None),
        ("a fait l'objet d'une cassation totale", ("cassation", "passive", False, False)),
        ("ont fait l'objet d'une annulation", ("annulation", "passive", False, False)),
        ("un pourvoi en cassation", None),
        ("casse et annule", ("cassation", "active", False, False)),
        ("le pourvoi formé contre lui a été rejeté", ("rejet", "passive", False, False)),
        ("les demandes sont rejetées", None),
        ("il casserait", None),
    ],
)
def test_words_on_what_became_of_a_decision_are_read_with_their_negation(text, said):
    found = [(one.kind, one.voice, one.is_denied, one.is_limited) for one in find_fates(text)]
    assert found[:1] == ([said] if said else [])
