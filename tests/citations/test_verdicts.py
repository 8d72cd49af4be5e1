"""Verdicts on what a text refers to, against a small Library of decisions and articles made up for this."""

import time

import pytest

from legal_rag.citations import render_verification, verifier, verify_text
from legal_rag.indexer import IndexConfig, build_index, remove_documents
from legal_rag.library import Library

RULE = "le salarié qui signe une rupture conventionnelle sous la menace d'une sanction peut en demander la nullité"
OTHER = "l'employeur doit remettre au salarié un exemplaire de la convention signée par les deux parties"
ARTICLE = "La rupture conventionnelle, exclusive de la démission, ne peut être imposée par l'une des parties"


def decision(number, day, court="Cour de cassation", formation="Chambre sociale", **more):
    says = more.pop("says", "")
    ruling = {"Cassation": "CASSE ET ANNULE", "Rejet": "REJETTE le pourvoi"}.get(more.get("solution", ""), "Vu")
    content = f"Pourvoi n° {more.pop('head', number)}\n\nLa Cour retient que {says}.\n\nPAR CES MOTIFS :\n{ruling} ;"
    names = {"juridiction": court, "formation": formation, "title": f"{court}, {day}, {number}"}
    return {"id": f"{number} {day}", "number": number, "decision_date": day, "content": content, **names, **more}


ROWS = [
    decision("16-86.735", "2018-01-09", says=RULE, solution="Cassation"),
    decision("17-10.001", "2018-01-09", says=OTHER, solution="Rejet"),
    decision("14-12.345", "2015-03-03", formation="Chambre commerciale", says="la cession est parfaite"),
    decision("20-20.123", "2022-12-01", head="20-20.123, 20-20.124", says="les pourvois sont joints"),
    decision("23-17.506", "2024-02-14", says="la première décision porte ce numéro"),
    decision("23-17.506", "2024-09-11", says="la seconde décision porte ce numéro"),
    decision("05/01403", "2007-10-02", "Cour d'appel de Nîmes", "", says=f"il cite l'arrêt n° 11-22.333, {RULE[:40]}"),
    decision(
        "2007-3888/3964",
        "2007-11-29",
        "Conseil constitutionnel",
        "",
        nature="AN",
        solution="Rejet",
        says="rien n'y fait",
    ),
    *(
        {"id": f"L{n}", "title": f"Code du travail, article L1237-{n}", "content": f"{ARTICLE}. Alinéa numéro {n}."}
        for n in (11, 12, 13)
    ),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verified")
    build_index(IndexConfig(source=ROWS, index_folder=str(folder), index_name="small", n_bits=0))
    return Library.open(folder, "small")


@pytest.fixture(scope="module")
def verdict(library):
    """Return the verdict on the first reference of a kind."""

    def given(text, kind="decision"):
        return next(one for one in verify_text(text, library).references if one.kind == kind)

    return given


@pytest.mark.parametrize(
    "text",
    [
        "Cass. soc., 9 janv. 2018, n° 16-86.735",
        "l'arrêt de la chambre sociale du 9 janvier 2018 (n° 16-86.735), qui casse l'arrêt attaqué",
        "La Cour de cassation a cassé l'arrêt de la cour d'appel de Lyon (n° 16-86.735).",
        "pourvoi n° W 16-86735",
        "Cass. com., 3 mars 2015",
        "Cass. soc., 1er déc. 2022, n° 20-20.124",  # joined to the one that has a row
        "Cass. soc., 14 févr. 2024, n° 23-17.506",
        "Cass. soc., 11 sept. 2024, n° 23-17.506",
        "CA Nîmes, ch. soc., 2 oct. 2007, RG n° 05/01403",
        "Cour d'appel de NÎMES, 02/10/2007, n° 05/1403",
        "Cons. const., 29 nov. 2007, n° 2007-3888 AN",
        "décision n° 2007-3888/3964 AN du 29 novembre 2007 du Conseil constitutionnel",
    ],
)
def test_what_the_library_has_and_the_text_states_rightly_is_confirmed(verdict, text):
    assert verdict(text).status == "confirmed"


def test_a_decision_named_in_prose_by_court_and_day_is_looked_up_and_is_the_source_of_what_follows(library, verdict):
    assert verdict("La chambre commerciale a jugé le 3 mars 2015 que la cession est parfaite.").status == "confirmed"
    assert verdict("La Cour de cassation a jugé le 14 mars 2031 que la cession est nulle.").status == "absent"
    lead = "Elle est nulle (article L. 1237-11 du code du travail), ainsi que l'a rappelé la cour d'appel de Nîmes le"
    quoted = verdict(f"{lead} 2 octobre 2007 : « {RULE[:40]} ».", "quotation")
    assert (quoted.status, quoted.source.doc_id) == ("confirmed", "05/01403 2007-10-02")


def test_several_decisions_that_fit_are_ambiguous_and_all_named(verdict):
    reference = verdict("Cass. soc., 9 janv. 2018")
    assert reference.status == "ambiguous"
    assert {near.doc_id for near in reference.nearest} == {"16-86.735 2018-01-09", "17-10.001 2018-01-09"}
    assert verdict("Cass. soc., n° 23-17.506").status == "ambiguous"  # its date would tell


@pytest.mark.parametrize(
    ("text", "what", "right"),
    [
        ("Cass. soc., 10 janv. 2018, n° 16-86.735", "date", "9\u00a0janv.\u00a02018"),
        ("Cass. com., 9 janv. 2018, n° 16-86.735", "court", "Cour de cassation, Chambre sociale"),
        ("CA Paris, 9 janv. 2018, n° 16-86.735", "court", "Cour de cassation, Chambre sociale"),
        ("La chambre sociale a rejeté le pourvoi (n° 16-86.735).", "outcome", "Cassation"),
        ("Le Conseil constitutionnel a annulé l'élection (n° 2007-3888 AN).", "outcome", "Rejet"),
        ("CA Lyon, 2 oct. 2007, RG n° 05/01403", "court", "Cour d'appel de Nîmes"),
        ("Cass. soc., 12 mars 2024, n° 23-17.506", "date", "14\u00a0févr.\u00a02024"),  # of both that have the number
    ],
)
def test_what_is_stated_wrongly_is_told_with_what_is_right(verdict, text, what, right):
    found = verdict(text)
    assert found.status == "wrong"
    assert [(one.what, one.right) for one in found.corrections] == [(what, right)]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("Cass. soc., 9 janv. 2018, n° 16-86.736", "un chiffre d'écart"),
        ("Cass. com., 3 mars 2015, n° 19-77.001", "même juridiction, même jour"),
        ("pourvoi n° 16-86.753", "un chiffre d'écart"),
        ("pourvoi n° 11-22.333", "cite cette décision"),
        ("CA Lyon, 3 mars 2016, n° 05/01403", "même numéro"),  # another court's own count
        ("n° 2007-3888/9999 AN du Conseil constitutionnel", "n° 2007-3888 seulement"),
        ("l'arrêt de la cour d'appel de Paris du 3 mars 2016", ""),
        ("n° 2007-3888 DC", ""),
    ],
)
def test_what_is_not_in_the_library_is_not_called_wrong(verdict, text, near):
    found = verdict(text)
    assert found.status == "absent"
    assert [one.why for one in found.nearest][:1] == [near] * bool(near)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("l'article L. 1237-11 du code du travail", "confirmed"),
        ("C. trav., art. L. 1237-12", "confirmed"),
        ("l'article L. 1237-19 du code du travail", "absent"),
        ("l'ancien article L. 1237-19 du code du travail", "absent"),
        ("l'article L. 9999-1 du code du travail", "absent"),  # three articles are no whole code
        ("l'article 1240 du code civil", "out_of_scope"),
    ],
)
def test_an_article_is_looked_up_in_its_code(verdict, text, found):
    assert verdict(text, "article").status == found


@pytest.mark.parametrize(
    "text",
    [
        f"La Cour juge que « {RULE} » (Cass. soc., 9 janv. 2018, n° 16-86.735).",
        f"Il est constant que « {RULE} ».",
        f"Il est constant que “{RULE.replace(chr(39), '’')}.”",
        f"« Le salarié {RULE[10:].replace('rupture', 'rupture [du contrat]')} » (n° 16-86.735)",
        f"L'article L. 1237-11 du code du travail dispose : « {ARTICLE}. »",
        f"« {RULE} » (n° 16-86.735 et n° 17-10.001)",
    ],
)
def test_words_as_the_source_has_them_are_confirmed(verdict, text):
    found = verdict(text, "quotation")
    assert found.status == "confirmed"
    assert found.char_end > found.char_start


@pytest.mark.parametrize(
    "text",
    [
        f"La Cour juge que « {RULE.replace('peut', 'ne peut pas')} » (n° 16-86.735).",
        f"Il est constant que « {RULE.replace('nullité', 'résolution')} ».",
        f"L'article L. 1237-11 du code du travail dispose : « {ARTICLE.replace('ne peut', 'peut')} ».",
        f"« {OTHER} » (Cass. soc., 9 janv. 2018, n° 16-86.735)",  # of another decision
        "« le contrat de travail du dirigeant est suspendu de plein droit pendant le mandat » (n° 16-86.735)",
        "Dans cet arrêt n° 16-86.735, la Cour énonce : « nul ne plaide par procureur ».",
        "Au visa de l'article 1240 du code civil, l'arrêt n° 16-86.735 énonce que « le préjudice moral se présume ».",
        "Il juge que « la clause abusive est réputée nulle » (n° 16-86.735), la cour d'appel de Paris ayant, par arrêt "
        "du 3 mars 2016, jugé le contraire.",
    ],
)
def test_words_that_the_source_named_does_not_have_are_wrong(verdict, text):
    assert verdict(text, "quotation").status == "wrong"


def test_an_altered_quotation_is_told_word_by_word_and_a_term_in_guillemets_is_none(verdict, library):
    found = verdict(f"« {RULE.replace('nullité', 'résolution')} » (n° 16-86.735)", "quotation")
    assert [(one.stated, one.right) for one in found.corrections] == [("résolution", "nullité")]
    assert RULE in found.explanation
    found = verify_text("La « théorie de l'imprévision » reste discutée (n° 16-86.735).", library)
    assert [one.kind for one in found.references] == ["decision"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"L'article 1240 du code civil dispose que « {RULE.replace('nullité', 'fin')} ».", "out_of_scope"),
        ("Par lettre du 3 mars 2016, il écrit : « je vous demande de quitter les lieux sans délai ».", "out_of_scope"),
        (f"Par courriel, il écrit : « {RULE.replace('nullité', 'fin')} ».", "out_of_scope"),  # no decision's words
        (f"« {RULE} » (Cass. soc., 5 mai 2001, n° 99-11.222)", "absent"),
        ("« le préjudice moral du salarié se présume » (n° 16-86.735 et n° 99-11.222)", "absent"),
    ],
)
def test_words_of_what_the_library_does_not_have_are_not_called_wrong(verdict, text, found):
    assert verdict(text, "quotation").status == found


def test_offsets_and_lines_are_of_the_text_as_it_was_read(library):
    found = verify_text("Un.\r\n\r\nCass. soc., 9 janv. 2018, n° 16\u00ad-86.７35\u200b.", library)
    (one,) = found.references
    assert (one.place, found.text[one.start : one.end]) == ("ligne 3", "Cass. soc., 9 janv. 2018, n° 16-86.735")


def test_the_status_says_whether_anything_is_wrong_or_unchecked(library, monkeypatch):
    with pytest.raises(ValueError, match="no text to verify"):
        verify_text(" \n", library)
    assert verify_text("Rien.", library).status == 0
    assert verify_text("Cass. com., 9 janv. 2018, n° 16-86.735", library).status == 1
    monkeypatch.setattr(verifier, "MAX_REFERENCES", 1)
    cut = verify_text("n° 16-86.735. " * 3, library)
    assert (cut.status, cut.unread) == (3, ("2 décisions citées de trop n'ont pas été vérifiées (au plus 1).",))


@pytest.mark.parametrize(
    "text",
    [
        "« La société numéro un demande que soit annulée la décision du tribunal » " * 2000,
        "\n".join(f"n° {n % 90 + 10}-{n // 90 % 90 + 10}.{n % 900 + 100}" for n in range(10_000)),
        "« »" * 30_000,
        "".join(f"« a{n} " for n in range(20_000)),
    ],
)
def test_a_hostile_text_ends_in_seconds(library, text):
    started = time.process_time()
    verification = verify_text(text, library)
    render_verification(verification)
    assert time.process_time() - started < 40  # a quadratic step takes minutes


def test_a_removed_decision_is_not_found(tmp_path):
    build_index(IndexConfig(source=ROWS, index_folder=str(tmp_path), index_name="less", n_bits=0))
    remove_documents([ROWS[0]["id"]], index_folder=str(tmp_path), index_name="less")
    text = f"« {RULE} » (Cass. soc., 9 janv. 2018, n° 16-86.735)"
    found = verify_text(text, Library.open(tmp_path, "less"))
    assert {one.status for one in found.references} == {"absent"}


def test_invisible_signs_and_other_digits_hide_nothing(library):
    assert verify_text("n° 16\u00ad-86\u200b.７35\r\n", library).status == 0
