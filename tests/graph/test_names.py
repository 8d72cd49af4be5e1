"""Canonical keys: variants of one name have one key, different things never share one."""

import pytest

from legal_rag.graph.names import (
    court_node,
    guessed_type,
    identifier_node,
    is_of_one_document,
    is_reference,
    may_stand_for,
    node_of,
    numbered_statutes,
    person_node,
    statute_node,
    words_of_key,
)
from legal_rag.graph.types import NODE_TYPES
from legal_rag.law import Identifier

VARIANTS = [
    (
        "court",
        "Cass. soc. | Chambre sociale de la Cour de cassation | Cour de cassation (chambre sociale) | CASS. SOC.",
    ),
    (
        "court",
        "CE, 5e-6e ch. réunies | Conseil d'État, 5ème et 6ème chambres réunies | Conseil d'Etat, 5e - 6e ch. réunies",
    ),
    (
        "court",
        "CA Paris, pôle 6, ch. 3 | Cour d'appel de Paris, pôle 6 - chambre 3 | cour d'appel de PARIS, Pôle 6, ch 3",
    ),
    ("court", "TA de Lyon | tribunal administratif de Lyon | T.A. de Lyon"),
    ("court", "CAA de Lyon | cour administrative d'appel de Lyon"),
    ("court", "Cass. 1re civ. | Cass. civ. 1re | Première chambre civile de la Cour de cassation"),
    ("court", "Cons. const. | Conseil constitutionnel | Cons. constit."),
    ("court", "CJUE | Cour de justice de l'Union européenne | CJCE"),
    ("court", "CEDH | Cour européenne des droits de l'homme"),
    ("court", "CPH de Nîmes | conseil de prud’hommes de NIMES | conseil des prud'hommes de Nîmes"),
    ("article", "L. 1152-1 C. trav. | article L1152-1 du Code du travail | art. L 1152‑1 du code du travail"),
    ("article", "C. trav., art. L. 1152-1 | L1152-1 code du travail | article L.1152-1, Code du travail"),
    ("article", "1240 C. civ. | article 1240 du code civil | art. 1240 du Code civil"),
    ("article", "article 700 CPC | article 700 du nouveau code de procédure civile | 700 NCPC"),
    ("article", "article 1er de la loi n° 89-462 du 6 juillet 1989 | article premier de la loi n° 89-462"),
    ("decision", "2010-39 QPC | décision n° 2010‑39 QPC du 6 octobre 2010 | QPC 2010-39"),
    ("decision", "19-12.345 | Cass. soc., 3 mars 2021, n° 19-12.345 | pourvoi n° Q 19-12.345"),
    ("decision", "ECLI:FR:CCASS:2021:SO00300 | ecli:fr:ccass:2021:so00300"),
    ("statute", "loi n° 89-462 du 6 juillet 1989 | loi 89-462 | loi n° 1989-462 | la loi n°89-462 modifiée"),
    ("statute", "ordonnance n° 58-1065 | ordonnances nos 58-1065 du 7 novembre 1958"),
    ("statute", "loi du 5 juillet 1985 | la loi du 05/07/85"),
    ("statute", "code de procédure civile | nouveau code de procédure civile | CPC"),
    ("statute", "code du travail | Code du Travail | C. trav."),
    ("statute", "Constitution | la Constitution | Constitution du 4 octobre 1958"),
    ("statute", "règlement (CE) n° 883/2004 du 29 avril 2004 | règlement n° 883/2004 | règlement CE 883/2004"),
    ("statute", "directive 2003/88/CE du 4 novembre 2003 | directive n° 2003/88 | la directive 2003/88/CE"),
    ("statute", "CESDH | convention de sauvegarde des droits de l'homme et des libertés fondamentales | Conv. EDH"),
    ("statute", "CDFUE | charte des droits fondamentaux | Charte des droits fondamentaux de l'Union européenne"),
    ("decision", "CJUE, 13 mai 2014, aff. C-131/12 | C‑131/12 | l'arrêt C-131/12 Google Spain"),
    ("decision", "CEDH, 12 mars 2019, n° 12345/16 | Dupont c. France, n° 12345/16"),
    ("article", "article 47 CDFUE | article 47 de la charte des droits fondamentaux"),
    ("party", "S.A. Lever | SA LEVER | Société anonyme Lever"),
    ("party", "CPAM du Rhône | CPAM DU RHONE"),
    ("party", "SA Axa France IARD | Compagnie AXA FRANCE IARD | société Axa France Iard"),
    ("party", "M. Müller | Monsieur MULLER"),
    ("concept", "harcèlement moral | Harcelement moral | le harcèlement moral"),
]
DIFFERENT = [
    ("court", "TA de Lyon | CAA de Lyon | CA de Lyon | TJ de Lyon | TGI de Lyon | CPH de Lyon"),
    (
        "court",
        "CA Paris, pôle 6, ch. 3 | CA Paris, pôle 3, ch. 6 | CA Paris, pôle 6 | CA Paris, pôle 6, ch. 6 | CA Paris",
    ),
    ("court", "Cass. soc. | Cass. com. | Cass. 1re civ. | Cass. 2e civ. | Cour de cassation"),
    ("court", "CE | Conseil constitutionnel | tribunal des conflits"),
    ("article", "R. 123-4 du code de commerce | L. 123-4 du code de commerce | L. 123-4 du code de la consommation"),
    ("article", "1240 du code civil | 1240-1 du code civil | 1241 du code civil | 1240 du code de procédure civile"),
    ("article", "article 2 de la loi du 6 juillet 1989 | article 2 du décret n° 89-590 | article 2 de la Constitution"),
    ("article", "article 61-1 de la Constitution | article 61-1 du code civil"),
    ("decision", "2010-39 QPC | 2010-39 DC | 2010-39 AN"),
    ("decision", "19-12.345 | 19-12.346 | 20-12.345"),
    (
        "decision",
        "arrêt n° 19-12.345 | arrêt cassé par l'arrêt n° 19-12.345 | arrêt rendu contre la décision n° 19-12.345",
    ),
    ("statute", "loi n° 89-462 | décret n° 89-462 | ordonnance n° 89-462 | loi n° 89-463"),
    ("statute", "loi n° 89-462 | décret d'application de la loi n° 89-462"),
    ("statute", "loi n° 2008-496 | loi n° 1908-496"),
    ("statute", "code pénal | ancien code pénal | code de procédure pénale"),
    ("statute", "règlement n° 883/2004 | règlement n° 987/2009"),
    ("party", "M. Martin | Mme Martin | époux Martin | M. et Mme Martin"),
    ("party", "M. Martin | M. Saint-Martin | SARL Martin | SCI Martin | M. Martinez"),
    ("party", "société Lever | société Leverrier"),
    ("party", "Société Générale | SCI La Générale"),
    ("party", "SCI Le Clos Fleuri Bleu | SARL Le Clos Fleuri Bleu"),
    ("party", "M. Alain Y... | M. Alain Z..."),
    ("party", "Mme [V] [TX] | Mme [B] [TX]"),
    ("party", "société [Localité 3] | société [Localité 5] | association [4] [Localité 3]"),
    ("party", "M. Martin | M. Маrtin"),  # Cyrillic letters
]


def key_of(node_type, written, within="D1"):
    node = node_of(node_type, written, within)
    assert node is not None
    return node.key


@pytest.mark.parametrize(("node_type", "names"), VARIANTS)
def test_variants_of_one_name_have_one_key(node_type, names):
    assert len({key_of(node_type, one) for one in names.split(" | ")}) == 1


@pytest.mark.parametrize(("node_type", "names"), DIFFERENT)
def test_different_things_have_different_keys(node_type, names):
    written = names.split(" | ")
    assert len({key_of(node_type, one) for one in written}) == len(written)


@pytest.mark.parametrize(
    ("node_type", "name"),
    [
        ("party", "M. Jean Martin"),
        ("person", "Lever"),
        ("organization", "Martin"),  # a model's type does not make it an organisation
        ("party", "société Martin"),
        ("party", "syndicat CGT"),
        ("party", "comité social et économique"),
        ("party", "comité social et économique de l'établissement de [Localité 2]"),
        ("party", "commune de Saint-Denis"),
        ("court", "la cour d'appel"),
        ("court", "tribunal de commerce"),
        ("court", "chambre sociale"),
        ("statute", "arrêté du 3 mars 2021"),
        ("statute", "décret du 3 mars 2021"),
        ("statute", "ordonnance du 7 novembre 1958"),
        ("decision", "arrêt du 3 mars 2021"),
        ("article", "articles 1240 et 1241 du code civil"),
    ],
)
def test_a_name_that_others_may_have_is_one_of_a_document(node_type, name):
    assert key_of(node_type, name, "D1") != key_of(node_type, name, "D2")


@pytest.mark.parametrize(
    ("node_type", "name"),
    [
        ("party", "CPAM du Rhône"),
        ("party", "SA Axa France IARD"),
        ("party", "Fédération des services CFDT"),
        ("court", "Cass. soc."),
        ("court", "tribunal de commerce de Lyon"),
        ("statute", "loi n° 89-462"),
        ("decision", "pourvoi n° 19-12.345"),
        ("article", "article 1240 du code civil"),
    ],
)
def test_a_name_of_one_thing_alone_has_the_same_key_in_every_document(node_type, name):
    assert key_of(node_type, name, "D1") == key_of(node_type, name, "D2")


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("Mme Pailler", "Mme Aline Pailler"),
        ("Martin", "M. Jean Martin"),
        ("Jean Martin", "M. Martin Jean"),
        ("Martin", "M. MARTIN Jean"),
        ("Me Dupont", "Maître Jean Dupont"),
        ("société Lever", "SA Lever"),
        ("Lever", "société Lever"),
        ("Mme [TX]", "Mme [V] [TX]"),
    ],
)
def test_a_short_form_may_stand_for_the_full_name(short, full):
    assert may_stand_for(person_node("party", short, "D"), person_node("party", full, "D"))


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("Mme Martin", "M. Jean Martin"),
        ("M. Martin", "M. Jean Saint-Martin"),
        ("Pierre Martin", "M. Jean-Pierre Martin"),
        ("M. Jean", "M. Jean Martin"),  # whose surname may be Jean
        ("M. Martin", "société Martin"),
        ("société Martin", "M. Martin"),
        ("SCI Lever", "SA Lever"),
        ("société Verdie", "société Verdie Sud"),
        ("OGEC [2]", "CSE de l'OGEC [2]"),
        ("Lever", "M. Leverrier"),
    ],
)
def test_the_name_of_another_does_not_stand_for_it(short, full):
    assert not may_stand_for(person_node("party", short, "D"), person_node("party", full, "D"))


@pytest.mark.parametrize("name", ["", " ", "M. X...", "X…", "12 34", "la société", "Mme", "«»", "\u202e"])
def test_a_name_that_says_nothing_has_no_node(name):
    assert person_node("party", name, "D") is None
    assert statute_node("« »") is None


@pytest.mark.parametrize("name", ["court:cassation sociale", "doc:OTHER", "name:martin @D2", "statute:loi 89-462"])
@pytest.mark.parametrize("node_type", ["party", "concept", "court", "person"])
def test_a_name_written_like_a_key_is_not_that_key(node_type, name):
    assert key_of(node_type, name) != name


@pytest.mark.parametrize("node_type", NODE_TYPES)
def test_what_is_longer_than_a_name_has_no_node(node_type):
    assert node_of(node_type, "Dupont " * 100_000, "D") is None


def test_a_statute_named_by_its_date_is_the_one_with_a_number_and_an_article_is_shown_with_it():
    named = ["ordonnance n° 58-1067 du 7 novembre 1958", "ordonnance du 7 novembre 1958", "loi du 5 juillet 1985"]
    assert {key: one.key for key, one in numbered_statutes(named).items()} == {
        "statute:ordonnance 1958-11-07": "statute:ordonnance 58-1067"
    }
    assert numbered_statutes([*named, "ordonnance n° 58-1065 du 7 novembre 1958"]) == {}
    node = node_of("article", "article 2 de la loi n° 89-462 du 6 juillet 1989")
    assert node.name == "article 2, loi n° 89-462 du 6 juillet 1989"
    assert court_node("Cour de cassation", "Chambre sociale").name == "Cour de cassation, chambre sociale"
    assert court_node("Cour d'appel de Lyon", "CHAMBRE SOCIALE A").name == "Cour d'appel de Lyon, chambre sociale A"


def test_a_key_tells_its_words_its_document_and_its_series():
    assert words_of_key(person_node("party", "Mme Aline Pailler", "D 1").key) == ["aline", "pailler"]
    assert [is_reference(key) for key in ("pourvoi:19-12345", "name:martin @D")] == [True, False]
    assert [is_of_one_document(key) for key in ("name:m martin @D", "name:axa france iard")] == [True, False]
    assert identifier_node(Identifier("number", "2010-39", 0, 7)).key == "cc:2010-39"


@pytest.mark.parametrize(
    ("name", "node_type"),
    [
        ("article 1240 du code civil", "article"),
        ("2010-39 QPC", "decision"),
        ("Cass. soc.", "court"),
        ("loi n° 89-462 du 6 juillet 1989", "statute"),
        ("M. Martin", "party"),
        ("SARL Martin", "party"),
        ("harcèlement moral", "concept"),
    ],
)
def test_the_type_of_a_name_is_guessed_from_its_form(name, node_type):
    assert guessed_type(name) == node_type
