"""A model's entities: what cannot be of its class is left out, and what the text gives is computed from it."""

import pytest

from legal_rag.extraction import get_schema
from legal_rag.extraction.class_tests import ClassTests
from legal_rag.extraction.engine import schema_of_classes
from legal_rag.extraction.schemas import SCHEMA_NAMES

HEAD = """LE CONSEIL CONSTITUTIONNEL a été saisi le 8 juillet 2011 par la Cour de cassation (deuxième chambre civile,
arrêt n° 1907 du 7 juillet 2011), dans les conditions prévues à l'article 61-1 de la Constitution, d'une question posée
pour la société Lever, ayant pour avocat la SCP Morvan et Quesnel, et l'association Sauvegarde du plateau.
Vu l'ordonnance n° 58-1067 du 7 novembre 1958 modifiée portant loi organique sur le Conseil constitutionnel ;
Considérant que M. Odilon R. a réclamé 2 500 euros dans un délai de deux mois ; que sa demande a été rejetée ;
Vu le pourvoi n° 17-28.604 ; le premier moyen, pris en sa seconde branche, invoque l'arrêt du 3 mai 2010 de la Cour de
cassation ; Mme Hélène Vial, président, et M. Lenoir, conseiller, ont siégé.
PAR CES MOTIFS :
REJETTE la demande ;
"""
CONSIDERANT = HEAD[HEAD.index("Considérant") : HEAD.index("Vu le pourvoi")]


def refuses(name, passage, text=HEAD, schema="jurisprudence"):
    start = text.index(passage)
    return ClassTests(text, get_schema(schema)).refuses(name, (start, start + len(passage)))


def attributes(name, passage, given, schema="jurisprudence"):
    start = HEAD.index(passage)
    return ClassTests(HEAD, get_schema(schema)).attributes(name, (start, start + len(passage)), given)


@pytest.mark.parametrize(
    ("name", "passage"),
    [
        ("solution", "LE CONSEIL CONSTITUTIONNEL"),
        ("solution", "question posée"),
        ("partie", CONSIDERANT),
        ("partie", "Cour de cassation"),
        ("partie", "SCP Morvan et Quesnel"),
        ("partie", "Mme Hélène Vial"),
        ("partie", "conditions prévues"),
        ("partie", "Vu le pourvoi"),
        ("date", "2011"),
        ("date", "SCP Morvan et Quesnel"),
        ("date", "8 juillet 2011 par la Cour de cassation"),
        ("numero", "61-1"),
        ("numero", "7 novembre 1958"),
        ("numero", "58-1067"),
        ("ecli", "17-28.604"),
        ("avocat", CONSIDERANT),
        ("texte_vise", "SCP Morvan et Quesnel"),
        ("texte_vise", "loi"),
        ("article_cite", "Constitution"),
        ("juridiction", "association Sauvegarde du plateau"),
        ("juridiction", "deuxième chambre civile"),
        ("formation", "Cour de cassation"),
        ("jurisprudence_citee", "Cour de cassation"),
        ("moyen", "question posée"),
        ("montant", "deux mois"),
        ("delai", "2 500 euros"),
        ("dispositif", "Vu le pourvoi n° 17-28.604"),
    ],
)  # fmt: skip
def test_what_cannot_be_of_its_class_is_refused(name, passage):
    assert refuses(name, passage)


@pytest.mark.parametrize(
    ("name", "passage"),
    [
        ("solution", "REJETTE"),
        ("partie", "société Lever"),
        ("partie", "association Sauvegarde du plateau"),
        ("partie", "M. Odilon R."),
        ("date", "8 juillet 2011"),
        ("date", "le 8 juillet 2011"),
        ("numero", "17-28.604"),
        ("numero", "1907"),
        ("avocat", "SCP Morvan et Quesnel"),
        ("texte_vise", "Constitution"),
        ("texte_vise", "ordonnance n° 58-1067 du 7 novembre 1958 modifiée portant loi organique"),
        ("article_cite", "article 61-1 de la Constitution"),
        ("juridiction", "LE CONSEIL CONSTITUTIONNEL"),
        ("juridiction", "Cour de cassation"),
        ("formation", "deuxième chambre civile"),
        ("jurisprudence_citee", "arrêt du 3 mai 2010"),
        ("moyen", "premier moyen, pris en sa seconde branche"),
        ("montant", "2 500 euros"),
        ("delai", "délai de deux mois"),
        ("dispositif", "REJETTE la demande"),
    ],
)  # fmt: skip
def test_what_looks_like_its_class_is_not_refused(name, passage):
    assert not refuses(name, passage)


@pytest.mark.parametrize(
    ("schema", "name", "passage", "is_refused"),
    [
        ("general", "monetary_amount", "deux mois", True),
        ("general", "monetary_amount", "2 500 euros", False),
        ("general", "deadline", "dans un délai de deux mois", False),
        ("general", "deadline", "société Lever", True),
        ("general", "organisation", "Cour de cassation", False),
        ("general", "person", "Cour de cassation", True),
        ("general", "legal_reference", "M. Odilon R.", True),
        ("general", "obligation", CONSIDERANT, False),
        ("contract", "party", CONSIDERANT, True),
    ],
)
def test_classes_of_other_schemas_have_the_forms_of_those_that_they_resemble(schema, name, passage, is_refused):
    assert refuses(name, passage, schema=schema) == is_refused


@pytest.mark.parametrize("schema", SCHEMA_NAMES)
def test_no_example_of_a_prompt_is_refused(schema):
    for example in get_schema(schema).examples:
        for shown in example.extractions:
            assert not refuses(shown.extraction_class, shown.extraction_text, example.text, schema)


def test_classes_of_ones_own_have_no_form():
    tests = ClassTests(HEAD, schema_of_classes("Relevez.", ["date", "partie"]))
    assert not tests.refuses("date", (0, 400))
    assert tests.attributes("date", (0, 20), {"iso": "jadis"}) == {"iso": "jadis"}


@pytest.mark.parametrize(
    ("name", "passage", "given", "computed"),
    [
        ("date", "8 juillet 2011", {"iso": "2011-08"}, {"iso": "2011-07-08"}),
        ("date", "8 juillet 2011", {}, {"iso": "2011-07-08"}),
        ("montant", "2 500 euros", {"valeur": "25000", "devise": "FRF"}, {"valeur": "2500", "devise": "EUR"}),
        ("article_cite", "article 61-1", {"texte": "x"}, {"numero": "61-1", "texte": "Constitution"}),
        ("delai", "deux mois", {"duration": "3 mois", "note": "bref"}, {"duration": "deux mois", "note": "bref"}),
        ("partie", "société Lever", {"role": "demandeur", "iso": "2011-07-08"}, {"role": "demandeur"}),
    ],
)  # fmt: skip
def test_dates_numbers_and_the_like_are_computed_from_the_text(name, passage, given, computed):
    assert attributes(name, passage, given) == computed
