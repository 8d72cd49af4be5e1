"""Schemas hold sound examples, are told apart by a document's own words, and may be one's own."""

import timeit

import pytest
from langextract.prompt_validation import (
    AlignmentPolicy,
    PromptValidationLevel,
    handle_alignment_report,
    validate_prompt_alignment,
)

from legal_rag.corpus import read_documents
from legal_rag.extraction import entities as classes
from legal_rag.extraction import get_schema
from legal_rag.extraction.schemas import SCHEMA_NAMES, choose_schema

OWN = """
prompt = "Relève les parcelles."

[classes]
parcelle = "une parcelle cadastrale"
surface = "sa contenance"

[[examples]]
text = "La parcelle AB 12 contient trois ares, la parcelle AB 13 trois ares."

[[examples.extractions]]
class = "parcelle"
text = "AB 12"
attributes = { section = "AB" }

[[examples.extractions]]
class = "surface"
text = "trois ares"

[[examples.extractions]]
class = "surface"
text = "trois ares"
"""


@pytest.fixture
def own_file(tmp_path):
    def write(text):
        path = tmp_path / "parcelles.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return write


def extractions_of(schema):
    return [one for example in schema.examples for one in example.extractions]


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_a_schemas_classes_are_explained_and_shown_by_few_short_examples(name):
    schema = get_schema(name)
    assert schema.classes == classes.CLASSES[name]
    assert {one.extraction_class for one in extractions_of(schema)} == set(schema.classes)
    for one in schema.classes:
        assert f"\n- {one} : " in schema.prompt
    schema = get_schema(name)
    assert 2 <= len(schema.examples) <= 3
    assert all(300 <= len(example.text) <= 700 for example in schema.examples)
    assert any(one.attributes for one in extractions_of(schema))


@pytest.mark.parametrize("policy", [AlignmentPolicy(), AlignmentPolicy(False, accept_match_lesser=False)])
@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_langextract_finds_every_extraction_of_an_example_exactly(name, policy):
    report = validate_prompt_alignment(get_schema(name).lx_examples(), policy=policy)
    handle_alignment_report(report, PromptValidationLevel.ERROR, strict_non_exact=True)
    assert report.issues == []


def test_examples_tell_a_rule_with_its_duration_and_pay_each_number_of_articles_and_a_partys_role():
    rules = [one for one in extractions_of(get_schema("regulation")) if one.attributes.get("event")]
    assert (rules[0].extraction_class, rules[0].extraction_text) == ("LeaveRule", "cinq jours ouvrés rémunérés")
    assert rules[0].attributes == {
        "rule_type": "special_leave",
        "event": "mariage ou PACS du salarié",
        "duration": "cinq jours ouvrés",
        "pay_status": "rémunéré",
    }
    articles = [one.extraction_text for one in extractions_of(get_schema("jurisprudence"))]
    assert articles.index("1383 du code civil") == articles.index("articles 1382") + 1
    first = get_schema("contract").lx_examples()[0].extractions[0]  # LangExtract's own kind
    assert (first.extraction_class, first.extraction_text) == ("party", "société Brumes & Fils")
    assert first.attributes == {"role": "prestataire"}


@pytest.mark.parametrize("name", ["", "Contract", "auto", "contract.tom", "../contract", "contrat"])
def test_an_unknown_schema_is_told_with_the_names_that_there_are(name):
    assert SCHEMA_NAMES == ("contract", "corporate", "correspondence", "general", "jurisprudence", "regulation")
    assert get_schema("general") is get_schema("general")  # which is read once
    with pytest.raises(ValueError, match="no schema named .* contract, corporate, correspondence, general, jurisp"):
        get_schema(name)


def test_a_schema_of_ones_own_is_read_from_its_file(own_file):
    schema = get_schema(own_file(OWN))
    assert (schema.name, schema.classes) == ("parcelles", ("parcelle", "surface"))
    assert schema.prompt == "Relève les parcelles.\n\n- parcelle : une parcelle cadastrale\n- surface : sa contenance"
    assert [one.extraction_text for one in extractions_of(schema)] == ["AB 12", "trois ares", "trois ares"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Relève les", "Relève toutes les"),
        ("une parcelle cadastrale", "une parcelle"),
        ('section = "AB"', 'section = "A"'),
        ("AB 13 trois", "AB 14 trois"),
        (
            'parcelle = "une parcelle cadastrale"\nsurface = "sa contenance"',
            'surface = "sa contenance"\nparcelle = "une parcelle cadastrale"',
        ),
    ],
)
def test_the_version_is_another_one_once_anything_but_the_layout_is_changed(own_file, before, after):
    version = get_schema(own_file(OWN)).version
    assert get_schema(own_file(f"\ufeff# mes parcelles\r\n{OWN}\n\n")).version == version
    assert get_schema(own_file(OWN.replace(before, after))).version != version


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('prompt = "Relève les parcelles."', "", "parcelles.toml: 'prompt' must be text, not empty, got None"),
        ('prompt = "Relève les parcelles."', 'prompt = ""', "'prompt' must be text, not empty, got ''"),
        ('prompt = "Relève les parcelles."', 'prompt = " "', "'prompt' must be text, not empty, got ' '"),
        ("[classes]", "[klasses]", "parcelles.toml: 'classes' must be a table, not empty, got None"),
        ('"sa contenance"', "3", "every class needs its explanation, a string"),
        ("[[examples]]", "[[exemples]]", "parcelles.toml: 'examples' must be a list of tables"),
        ('text = "La parcelle', 'texte = "La parcelle', "example 1: 'text' must be text, not empty, got None"),
        ('class = "parcelle"', 'klass = "parcelle"', "example 1: 'class' must be text, not empty, got None"),
        ('class = "parcelle"', 'class = "lot"', r"unknown class 'lot' \(expected one of parcelle, surface\)"),
        ('text = "AB 12"', 'text = "ab 12"', "example 1: 'ab 12' stands nowhere in the example's text"),
        ("AB 13 trois ares", "AB 13 deux ares", "'trois ares' stands nowhere from the extraction ahead of it on"),
        ('text = "AB 12"', 'text = "AB 13"', "'trois ares' stands nowhere from the extraction ahead of it on"),
        ('{ section = "AB" }', "{ section = 1 }", "attributes of 'AB 12' must be a table of strings"),
        ('{ section = "AB" }', '"AB"', "attributes of 'AB 12' must be a table of strings"),
        ("[classes]", "[classes", "parcelles.toml is no TOML"),
    ],
)
def test_a_fault_in_a_file_is_told_in_one_line(own_file, before, after, message):
    assert before in OWN
    with pytest.raises(ValueError, match=message) as error:
        get_schema(own_file(OWN.replace(before, after)))
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_text_or_not_there_is_told(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="x.toml is no TOML"):
        get_schema(str(tmp_path / "x.toml"))
    with pytest.raises(FileNotFoundError, match="no schema file .*none.toml"):
        get_schema(str(tmp_path / "none.toml"))


DECISION = """RÉPUBLIQUE FRANÇAISE
AU NOM DU PEUPLE FRANÇAIS
COUR D’APPEL D’ANGERS – Chambre sociale – N° RG 19/00412
APPELANTE : SARL Le Relais. INTIMÉ : M. X...
Le contrat de travail prévoyait des congés payés, un horaire de travail variable et des heures supplémentaires."""
LABOUR_CONTRACT = """CONTRAT DE TRAVAIL À DURÉE INDÉTERMINÉE
Entre les soussignés : la société Le Relais, d'une part, et Mme Zoé Ferrand, d'autre part, il a été convenu :
La période d'essai est de deux mois. La durée du travail est de 35 heures. Les congés payés sont ceux de la loi."""
LETTER = """Maître Paul Vigne
Angers, le 3 mai 2021

Madame,
Par jugement du 2 avril 2021, le tribunal judiciaire d'Angers a condamné la société Le Relais.
Je vous prie d'agréer, Madame, l'expression de mes sentiments dévoués."""
RULES = """RÈGLEMENT INTÉRIEUR
Article 1er – Objet. Le présent règlement s'applique à tous les salariés.
Article 2 – Horaires de travail. L'atelier ouvre à 8 h."""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (DECISION, "jurisprudence"),
        ("Vu la requête, enregistrée le 3 mai 2019, présentée pour Mme Y... ;\nD E C I D E :", "jurisprudence"),
        (LABOUR_CONTRACT, "contract"),
        ("CONDITIONS GÉNÉRALES DE VENTE\n1. Le vendeur livre sous huit jours.", "contract"),
        ("PROTOCOLE D’ACCORD TRANSACTIONNEL\nLa société A et M. B, en litige devant le tribunal,", "contract"),
        (LETTER, "correspondence"),
        ("De : a@exemple.fr\nÀ : b@exemple.fr\nObjet : réunion\n\nà demain", "correspondence"),
        ("From: a@example.org\nTo: b@example.org\nSubject: projet de bail\n", "correspondence"),
        ("Chers Confrères,\nmerci de vos pièces.\nBien cordialement,", "correspondence"),
        ("Statuts\nARTICLE 1 – FORME\nLa société est une SAS.\nARTICLE 4 - Siège social", "corporate"),
        ("Première résolution\nL'assemblée générale approuve les comptes.", "corporate"),
        ("PROCÈS-VERBAL DU CONSEIL D’ADMINISTRATION\nMe Vigne lit la lettre recommandée.", "corporate"),
        (RULES, "regulation"),
        ("NOTE DE SERVICE\nDe : direction\nObjet : congés payés\nLes salariés posent leurs congés.", "regulation"),
        ("Les titres-restaurant valent 9 euros par jour travaillé.", "regulation"),
        ("Je soussigné reconnais devoir 300 euros à Mme Z...", "general"),
        ("La recette demande trois œufs.", "general"),
        ("", "general"),
        ("\n\t \u00a0", "general"),
        (" " * 1_000_000, "general"),
        ("\0" * 5000, "general"),
        ("de de de a a a " * 100_000, "general"),
        (" " * 100_000 + RULES, "regulation"),
        (DECISION.replace(" ", "\u00a0"), "jurisprudence"),
        (DECISION.replace("É", "E\u0301"), "jurisprudence"),
        (LABOUR_CONTRACT + "\nSelon la Cour de cassation, cette clause est licite.", "contract"),
        (LABOUR_CONTRACT + "\nChaque mois, le salarié travaille." * 2000 + "\nLu et approuvé", "contract"),
        ("La parcelle est bornée. " * 500 + "\nPAR CES MOTIFS, rejette", "jurisprudence"),
        ("Cour de cassation", "general"),
        ("Il exprime la surprise des enfants et supprime la prime.", "general"),
    ],
)
def test_a_documents_own_words_tell_its_schema(text, name):
    assert choose_schema(text) == name


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_the_schemas_own_examples_are_told_apart(name):
    assert {choose_schema(example.text) for example in get_schema(name).examples} == {name}


def test_the_samples_documents_get_their_schema_as_they_are_read_and_as_they_stand(sample_file, sample_rows):
    kinds = {"CONTRAT": "contract", "COURRIEL": "correspondence", "ACTE": "corporate"}
    for item, row in zip(read_documents(sample_file), sample_rows, strict=True):
        for content in (item.content, row["content"]):
            assert choose_schema(content) == kinds.get(row["nature"], "jurisprudence"), row["title"]


@pytest.mark.shared
def test_real_decisions_get_the_schema_of_decisions(shared_decisions):
    for item in shared_decisions[::13]:
        assert choose_schema(item.content) == "jurisprudence", item.title


def test_a_choice_takes_about_a_millisecond():
    text = DECISION + "Attendu que le pourvoi est formé. " * 600
    best = min(timeit.repeat(lambda: choose_schema(text), number=1, repeat=20))
    assert len(text) > 20_000
    assert best < 0.005  # half a millisecond, and a margin for a busy machine
