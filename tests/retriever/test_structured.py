"""Structured retrieval: entities, sections that a model names and chunks, on one scale, each at its exact place."""

import gzip
import json
import re
import shutil

import pytest
from support.scripted_server import Reply, ScriptedServer, fields

from legal_rag.agent import build_language_model, tree_reasoner
from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import IndexConfig, build_index, extract_library, open_index, remove_documents
from legal_rag.library import Filters, Library
from legal_rag.library.outlines import OUTLINES
from legal_rag.retriever import ChosenNode, StructuredProvider, build_retriever

HANDBOOK = """# Livret d'accueil

## Bienvenue
L'entreprise est heureuse de vous accueillir parmi ses équipes, sur ses trois sites.

## Arrivée en cours d'année
Le salarié entré en cours de période a droit à une part de ses congés, selon les mois travaillés.

## Restauration
Un titre-restaurant de 9 euros par jour travaillé est remis à chaque salarié.
"""
ARTICLES = {
    "L3141-3": "Le salarié a droit à un congé de deux jours et demi ouvrables par mois de travail effectif chez le "
    "même employeur. La durée totale du congé exigible ne peut excéder trente jours ouvrables.",
    "L3141-12": "Les congés peuvent être pris dès l'embauche, sans préjudice des règles sur la période.",
    "L1221-19": "Le contrat peut comporter une période d'essai dont la durée maximale est : 1° Pour les ouvriers, de "
    "deux mois ; 2° Pour les techniciens, de trois mois ; 3° Pour les cadres, de quatre mois.",
    "L3121-27": "La durée légale de travail effectif des salariés à temps complet est fixée à trente-cinq heures par "
    "semaine.",
    "L1152-1": "Aucun salarié ne doit subir les agissements répétés de harcèlement moral.",
    "L6222-1": "Nul ne peut être engagé en qualité d'apprenti s'il n'est âgé de seize ans au moins.",
}
DECISION = (
    "Attendu, selon l'arrêt attaqué, que M. X... a été engagé par la société Alpha ; qu'il a saisi le juge ;\n"
    "Sur le moyen unique :\nAttendu que M. X... fait grief à l'arrêt de le débouter, alors que le congé est dû ;\n"
    "Mais attendu que la cour d'appel a retenu que le congé de trente jours avait été pris en entier ;\n"
    "PAR CES MOTIFS :\nREJETTE le pourvoi ;\n"
)
ROWS = [
    {"id": "livret", "title": "Livret d'accueil", "content": HANDBOOK, "juridiction": "Entreprise"},
    *(
        {"id": number, "title": f"Code du travail, article {number}", "content": text}
        for number, text in ARTICLES.items()
    ),
    {"id": "arret", "title": "Un arrêt", "content": DECISION, "juridiction": "Cour de cassation"},
]
QUESTION = "Combien de jours de congé le salarié acquiert-il par mois ?"


@pytest.fixture(scope="module")
def library(tiny_encoder, tmp_path_factory):
    config = IndexConfig(source=ROWS, index_folder=str(tmp_path_factory.mktemp("structured")))
    build_index(config, tiny_encoder)
    extract_library(open_index(config), ExtractionSettings(schema_name="regulation"))
    return open_index(config)


@pytest.fixture(scope="module")
def retriever(library, tiny_encoder):
    return build_retriever(library, tiny_encoder)


@pytest.fixture
def copied(library, tmp_path):
    """A copy of the Library, to be changed."""
    return shutil.copytree(library.path, tmp_path / library.path.name)


def names(*chosen):
    """Return a reasoner that names these sections."""
    return lambda question, outlines: [ChosenNode(*one) for one in chosen]


def oracle(prompt, attempt):
    """Find the section of the handbook on arrivals in the outlines shown."""
    plans = prompt.rpartition("[[ ## plans ## ]]")[2]
    document = re.search(r"Document (\d+) : Livret d'accueil", plans)[1]
    node = re.search(r"(\d{4}) Arrivée en cours d'année", plans)[1]
    return fields(sections=json.dumps([{"document": int(document), "node_id": node, "reason": "arrivée"}]))


def by_model(retriever, script, **settings):
    """Return a provider that asks a scripted model, and its server."""
    server = ScriptedServer(script)
    lm = build_language_model("scripted", api_base=server.api_base, num_retries=0, cache=False)
    return StructuredProvider(retriever, tree_reasoner(lm)), server


def assert_sound(found, library, top_k):
    """Check what holds of all results: exact text, scores in order, no span twice."""
    assert 0 < len(found) <= top_k
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len({one[:3] for one in found}) == len(found)
    for one in found:
        assert one.text == library.document(one.doc_id).content[one.char_start : one.char_end] != ""
        assert one.text == one.text.strip() or one.source == "chunk"
        assert 0 <= one.score <= 1
        assert one.reason
        assert one.title == library.document(one.doc_id).title


def test_a_rule_that_shares_the_questions_words_comes_first_with_what_it_sets(library, retriever):
    found = StructuredProvider(retriever).retrieve(QUESTION, 5)
    assert_sound(found, library, 5)
    assert (found[0].doc_id, found[0].source) == ("L3141-3", "entity")
    assert found[0].text == ARTICLES["L3141-3"].partition(" La durée")[0]
    assert "duration : deux jours et demi ouvrables" in found[0].reason
    assert "passage proche" in found[0].reason  # its chunk was found too, and is no second result
    assert not any(one.source == "chunk" for one in found if one.doc_id == "L3141-3")


@pytest.mark.parametrize(
    ("question", "doc_id"),
    [
        ("Quelle est la durée légale du travail ?", "L3121-27"),
        ("DUREE LEGALE DU TRAVAIL PAR SEMAINE", "L3121-27"),
        ("Quelle est la durée de la période d'essai des cadres ?", "L1221-19"),
        ("Qu'est-ce que le harcèlement moral ?", "L1152-1"),
        ("À quel âge peut-on être apprenti ?", "L6222-1"),
        ("article L3141-12", "L3141-12"),
        ("Combien vaut un titre restaurant ?", "livret"),
    ],
)
def test_the_text_that_answers_is_first_without_a_model(library, retriever, question, doc_id):
    found = StructuredProvider(retriever, mode="bm25").retrieve(question, 3)  # the small encoder's vectors mean little
    assert_sound(found, library, 3)
    assert found[0].doc_id == doc_id


def test_a_model_that_reads_the_outlines_finds_the_section_in_one_call(library, retriever):
    question = "Quels congés pour un salarié arrivé au mois de juillet ?"
    provider, server = by_model(retriever, oracle)
    with server:
        found = provider.retrieve(question, 5)
    assert len(server.prompts) == 1
    assert_sound(found, library, 5)
    assert (found[0].doc_id, found[0].source, found[0].sections[-1]) == ("livret", "tree", "Arrivée en cours d'année")
    assert "a droit à une part de ses congés" in found[0].text
    assert "Restauration" not in found[0].text
    assert found[0].reason.startswith("arrivée")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(""),
        Reply("Aucune idée."),
        Reply('[{"document": 1, "node_id": "9999", "reason": "inventé"}]'),
        Reply('[{"document": 1, "node_id": '),
        Reply(status=500),
        Reply(raw_body="{"),
        Reply(breaks_off=True),
    ],
    ids=["silence", "prose", "invented", "broken", "error", "no JSON", "cut off"],
)
def test_a_model_that_fails_leaves_the_results_as_they_are_without_it(retriever, reply):
    provider, server = by_model(retriever, lambda prompt, attempt: reply)
    with server:
        assert provider.retrieve(QUESTION, 5) == StructuredProvider(retriever).retrieve(QUESTION, 5)
    assert server.prompts


def test_a_server_that_is_not_there_and_sections_that_no_outline_has_leave_the_results_as_they_are(retriever):
    lm = build_language_model("scripted", api_base="http://127.0.0.1:9/v1", num_retries=0, cache=False)
    unknown = names(("livret", "9999"), ("inconnu", "0001"), ("", ""), ("arret", "x" * 1000))
    expected = StructuredProvider(retriever).retrieve(QUESTION, 5)
    assert [StructuredProvider(retriever, one).retrieve(QUESTION, 5) for one in (tree_reasoner(lm), unknown)] == [
        expected, expected
    ]  # fmt: skip


def test_one_span_found_by_all_parts_is_one_result_above_them_all(library, retriever):
    (alone, *_) = StructuredProvider(retriever).retrieve(QUESTION, 1)
    (agreed, *_) = StructuredProvider(retriever, names(("L3141-3", "0000"))).retrieve(QUESTION, 1)
    assert agreed.doc_id == alone.doc_id == "L3141-3"
    assert alone.score < agreed.score <= 1
    assert agreed.source == "tree"


def test_a_long_section_is_shown_by_its_best_chunk(tiny_encoder, tmp_path):
    filler = "La société a exposé ses comptes et ses projets pour l'année à venir devant ses associés. " * 60
    content = f"# Rapport\n\n## Gestion\n{filler}\nLe congé sabbatique est de onze mois au plus.\n{filler}"
    config = IndexConfig(source=[{"id": "rapport", "content": content}], index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    library = open_index(config)
    provider = StructuredProvider(build_retriever(library, tiny_encoder), names(("rapport", "0001")))
    found = provider.retrieve("Combien dure le congé sabbatique ?", 3)
    assert_sound(found, library, 3)
    assert len(found[0].text) <= 3000


def test_filters_apply_to_every_part(library, retriever):
    reasoner = names(("L3141-3", "0000"), ("arret", "0000"), ("livret", "0001"))
    filters = Filters(juridiction="Cour de cassation")
    found = StructuredProvider(retriever, reasoner).retrieve("congé de trente jours", 10, filters)
    assert {one.doc_id for one in found} == {"arret"}
    assert {"arret"} == {one.doc_id for one in library.entities_like("congé de trente jours", 10, filters)}


@pytest.mark.parametrize(("speaker", "sources"), [("court", {"entity", "chunk"}), ("party", {"chunk"})])
def test_a_filter_by_speaker_applies_to_what_entities_stand_in(retriever, speaker, sources):
    provider = StructuredProvider(retriever)
    found = provider.retrieve("congé de trente jours pris en entier", 10, Filters(doc_ids=("arret",), speaker=speaker))
    assert found
    assert {one.source for one in found} <= sources
    assert any("LeaveRule" in one.reason for one in found) == (speaker == "court")


def test_a_filter_by_main_part_applies_to_sections_that_a_model_names(library, retriever):
    tree = library.stored_outline(library.document("arret")).tree
    named = [("arret", node.node_id) for node in tree.children]
    filters = Filters(doc_ids=("arret",), section="ruling")
    found = StructuredProvider(retriever, names(*named)).retrieve("pourvoi", 10, filters)
    assert [one.text.strip() for one in found if one.source == "tree"] == ["PAR CES MOTIFS :\nREJETTE le pourvoi ;"]


def test_no_more_results_than_asked_for_come_back(library, tiny_encoder):
    provider = StructuredProvider(build_retriever(Library(library.path), tiny_encoder))
    assert [one.doc_id for one in provider.retrieve(QUESTION, 1)] == ["L3141-3"]
    with pytest.raises(ValueError, match="top_k must be at least 1, got 0"):
        provider.retrieve(QUESTION, 0)
    for question in ("", "   ", "congé " * 2000):
        with pytest.raises(ValueError, match="question|query"):
            provider.retrieve(question)


def test_the_health_check_says_which_parts_there_are_and_entities_by_speaker_need_outlines(retriever, copied):
    without, whole = StructuredProvider(retriever), StructuredProvider(retriever, names())
    assert without.health_check().missing == ("model",)
    assert whole.health_check().missing == ()
    assert whole.health_check().entities
    (copied / OUTLINES).unlink()
    with pytest.raises(ValueError, match="no outlines in"):
        Library(copied).entities_like(QUESTION, 5, Filters(speaker="court"))


def test_without_entities_and_outlines_the_chunks_are_found_and_damaged_entities_are_passed_over(
    tiny_encoder, copied, caplog
):
    for name in ("entities.sqlite", OUTLINES):
        (copied / name).unlink()
    provider = StructuredProvider(build_retriever(Library(copied), tiny_encoder))
    assert provider.health_check().missing == ("entities", "outlines", "model")
    found = provider.retrieve(QUESTION, 5)
    assert_sound(found, provider.corpus, 5)
    assert {one.source for one in found} == {"chunk"}
    (copied / "entities.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    provider = StructuredProvider(build_retriever(Library(copied), tiny_encoder))
    assert not provider.health_check().entities
    assert {one.source for one in provider.retrieve(QUESTION, 5)} == {"chunk"}
    assert "cannot be read" in caplog.text


def test_entities_of_a_removed_document_are_not_found(copied):
    before = Library(copied)
    remove_documents(["L3141-3"], copied.parent)
    assert "L3141-3" not in {one.doc_id for one in Library(copied).entities_like(QUESTION)}
    assert "L3141-3" not in {one.doc_id for one in before.entities_like(QUESTION)}


TOPICS = "L3141- L1221- L3121- L1152- L1233-1 L1233-2 L1233-3 L1233-4 L6222- L3131- L1234- L1225-1 L3142-".split()


@pytest.fixture(scope="module")
def code(bundled, shared_data, tmp_path_factory):
    """Index some 400 articles on leave, working time, probation, and as many on other subjects."""
    with gzip.open(shared_data / "code-du-travail.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["number"].startswith(tuple(TOPICS))]
    config = IndexConfig(source=rows, index_folder=str(tmp_path_factory.mktemp("code")))
    build_index(config, bundled)
    extract_library(open_index(config), ExtractionSettings(schema_name="regulation"))
    return build_retriever(open_index(config), bundled)


def articles(found):
    return list(dict.fromkeys(one.title.rsplit(" ", 1)[1] for one in found))


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "article"),
    [
        ("Combien de jours de congés payés le salarié acquiert-il au prorata de ses mois de travail ?", "L3141-3"),
        ("À combien de jours de congé a droit un salarié par mois de travail effectif ?", "L3141-3"),
        ("Les congés peuvent-ils être pris dès l'embauche ?", "L3141-12"),
        ("Combien dure la période d'essai d'un cadre ?", "L1221-19"),
        ("La période d'essai peut-elle être renouvelée ?", "L1221-21"),
        ("Quelle est la durée légale du travail par semaine ?", "L3121-27"),
        ("Combien d'heures de repos quotidien faut-il ?", "L3131-1"),
        ("Quelle est la durée du préavis de licenciement ?", "L1234-1"),
        ("Combien de temps dure le congé de maternité ?", "L1225-17"),
        ("Qu'est-ce que le harcèlement moral ?", "L1152-1"),
        ("À quel âge peut-on être engagé comme apprenti ?", "L6222-1"),
    ],
)
def test_the_article_that_answers_is_among_the_first_three_without_a_model(code, question, article):
    found = StructuredProvider(code).retrieve(question, 10)
    assert_sound(found, code.corpus, 10)
    assert article in articles(found)[:3]


@pytest.mark.shared
@pytest.mark.slow
def test_leave_during_probation_is_found_by_reading_the_outlines(code):
    def reading(prompt, attempt):
        plans = prompt.rpartition("[[ ## plans ## ]]")[2]
        document, node = re.search(r"Document (\d+) : .* – Les congés peuvent être pris.*\n *(\d{4})", plans).groups()
        return fields(sections=f'[{{"document": {document}, "node_id": "{node}"}}]')

    provider, server = by_model(code, reading)
    with server:
        found = provider.retrieve("Les congés peuvent-ils être pris dès l'embauche, pendant la période d'essai ?", 3)
    assert articles(found)[0] == "L3141-12"
    assert len(server.prompts) == 1
