"""The tools, alone and as an agent gets them, over the sample and over ids that are hard to tell apart."""

import re
from contextlib import closing

import datasets
import dspy
import pytest

from legal_rag.agent import build_tools
from legal_rag.agent.event_log import EventLog
from legal_rag.agent.tool_arguments import find_chunk
from legal_rag.corpus.documents import document_of
from legal_rag.encoder import ColbertEncoder
from legal_rag.extraction import ExtractionResult, ExtractionStore
from legal_rag.extraction.store import Recipe
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.library import Library
from legal_rag.retriever import Retriever, build_retriever
from legal_rag.tools import lookup_legal_doc, search_legal_docs

ROWS = {
    "2001": "Le premier texte parle du bail rural.",
    "2001-25": "Le second texte parle du vote des électeurs.",
    "n° 4/5, AN": "Le troisième texte parle d'une route.",
    "LONG": "Chaque phrase de ce long texte dit la même chose. " * 1000,
}


@pytest.fixture(scope="module")
def library(tiny_encoder: ColbertEncoder, tmp_path_factory: pytest.TempPathFactory) -> Library:
    rows = [{"id": doc_id, "content": content, "title": f"Titre {doc_id}"} for doc_id, content in ROWS.items()]
    config = IndexConfig(source=rows, index_folder=str(tmp_path_factory.mktemp("hard-ids")))
    build_index(config, tiny_encoder)
    return open_index(config)


@pytest.fixture(scope="module")
def retriever(library: Library, tiny_encoder: ColbertEncoder) -> Retriever:
    return build_retriever(library, tiny_encoder)


def as_dataset(library: Library) -> datasets.Dataset:
    return datasets.Dataset.from_list(
        [{"id": one, "content": text, "title": f"Titre {one}"} for one, text in ROWS.items()]
    )


def as_mapping(library: Library) -> dict:
    return {one: {"content": text, "title": f"Titre {one}"} for one, text in ROWS.items()}


def as_rows(library: Library) -> list:
    return list(as_dataset(library))


HOLDERS = pytest.mark.parametrize(
    "held", [lambda library: library, as_dataset, as_mapping, as_rows], ids=["library", "dataset", "mapping", "rows"]
)


def test_searching_as_a_plain_function_takes_the_retriever_and_a_passage_found_twice_keeps_its_best_score(retriever):
    assert search_legal_docs("vote des électeurs", 3, retriever=retriever) == retriever.search("vote des électeurs", 3)
    log = EventLog()
    (hit,) = retriever.search("vote des électeurs", 1)
    for score in (1.0, 3.0, 2.0):
        log.saw(hit._replace(score=score))
    assert [passage.score for passage in log.passages.values()] == [3.0]


@HOLDERS
@pytest.mark.parametrize(
    ("identifier", "doc_id"),
    [
        ("2001-0", "2001"),
        ("2001", "2001"),
        ("2001-25-0", "2001-25"),
        ("  n° 4/5, AN-0 ", "n° 4/5, AN"),
        ("n° 4/5, AN", "n° 4/5, AN"),
        ("LONG-999", "LONG"),
    ],
)
def test_a_chunk_id_or_a_document_id_gives_the_whole_text_as_it_is_in_the_source(library, held, identifier, doc_id):
    text = lookup_legal_doc(identifier, held(library))
    assert text == f"Décision : {doc_id}\nTitre : Titre {doc_id}\n\n{document_of(library, doc_id).content}"
    assert text.endswith(ROWS[doc_id])


def test_what_is_known_of_a_decision_comes_before_its_text():
    row = {
        **{"id": "A-1", "content": "Rejette.", "title": "Arrêt", "decision_date": "3/2/1998"},
        **{"juridiction": "Cour de cassation", "formation": "Chambre sociale", "solution": "Rejet"},
        "applied_law": "Code du travail, L. 1152-1; Code civil, 1240",
    }
    assert lookup_legal_doc("A-1-0", [row], 2.5) == (
        "Décision : A-1\nCitation : Cass. soc., 3 févr. 1998, Arrêt\nJuridiction : Cour de cassation\n"
        "Formation : Chambre sociale\nSolution : Rejet\n"
        "Droit appliqué : Code du travail, L. 1152-1 ; Code civil, 1240\nScore : 2.50\n\nRejette."
    )


@HOLDERS
@pytest.mark.parametrize(
    "identifier", ["-", "-3", "2001-", "2001-x", "2002", "2002-0", "2001-٣", "\ud800", "a\0b", "x" * 100_000]
)
def test_an_id_that_names_nothing_gets_a_french_sentence_with_the_nearest_form(library, held, identifier):
    answer = lookup_legal_doc(identifier, held(library))
    assert answer.startswith("Aucune décision pour « ")
    assert "Identifiant le plus proche : « " in answer or "Exemple d'identifiant : « " in answer
    assert len(answer) < 400
    answer.encode()


def test_a_dataset_is_read_once_for_its_ids_and_then_one_row_a_look_up(monkeypatch):
    dataset = datasets.Dataset.from_list([{"id": f"D{n}", "content": f"Texte {n}."} for n in range(3000)])
    reads = []
    read = datasets.Dataset.__getitem__
    monkeypatch.setattr(datasets.Dataset, "__getitem__", lambda self, key: reads.append(key) or read(self, key))
    for number in range(20):
        assert lookup_legal_doc(f"D{number * 100}-0", dataset).endswith(f"Texte {number * 100}.")
    assert [key for key in reads if isinstance(key, int)] == list(range(0, 2000, 100))
    assert len(reads) <= 22


def test_what_holds_no_documents_or_no_ids_is_refused():
    for nothing in (["A"], [{"content": "Premier."}]):
        with pytest.raises(TypeError, match="no documents in a list .expected a Library, a dataset, a list of rows"):
            lookup_legal_doc("A-0", nothing)
    with pytest.raises(ValueError, match="no column 'id' in the dataset .its columns: content"):
        lookup_legal_doc("A-0", datasets.Dataset.from_list([{"content": "Premier."}]))


@pytest.mark.parametrize("number", ["1", "7", "9" * 30])
def test_a_chunk_out_of_range_is_told_the_range(library, number):
    told = f"Pas de passage « 2001-{number} » : cette décision va de « 2001-0 » à « 2001-0 »."
    with pytest.raises(LookupError, match=re.escape(told)):
        find_chunk(f"2001-{number}", library)


def test_the_tools_are_what_an_agent_needs(library, retriever):
    tools = {tool.name: list(tool.args) for tool in map(dspy.Tool, build_tools(library, retriever))}
    assert tools == {
        "search_legal_docs": ["query", "filters", "k"],
        "lookup_legal_doc": ["id", "part"],
        "lookup_entities": ["id", "classes"],
        "get_outline": ["id", "section"],
        "read_section": ["id", "section"],
        "graph_neighbours": ["name", "type"],
    }
    search, document, *_ = build_tools(library, retriever)
    found = search("vote des électeurs")
    assert re.search(r"^Décision LONG : Titre LONG\n\[P\d+\] Chaque phrase", found, re.MULTILINE)
    assert "\nDécision 2001-25 : Titre 2001-25\n" in found  # too short to be quoted before what is longer
    shown = f"<extrait>\nDécision : 2001\nTitre : Titre 2001\n[P1] {ROWS['2001']}\n</extrait>"
    search, document, *_ = build_tools(library, retriever)
    assert document("2001-0") == document("2001") == shown


ODD = [None, "", " ", "trois", [], {"a": 1}, -1, 0, 2.5, float("inf"), float("nan"), 10**400, "9" * 5000, b"x", True]
ODD += ["\ud800", "\0"]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: repr(value)[:12])
def test_no_argument_makes_a_tool_raise(library, retriever, odd):
    search, document, entities, outline, section, graph = build_tools(library, retriever)
    answers = [
        search(odd),
        search("bail", odd),
        search("bail", {"article": odd}),
        search("bail", {"entites": odd}),
        search("bail", None, odd),
        document(odd),
        document("2001-0", odd),
        document("2001-0", [odd]),
        entities(odd),
        entities("2001-0", odd),
        entities("2001-0", [odd]),
        outline(odd),
        outline("2001-0", odd),
        section(odd, odd),
        section("2001-0", odd),
        graph(odd),
        graph("2001-0", odd),
    ]
    assert all(answer and answer.encode() for answer in answers)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("", None, 3), "Recherche impossible : la question est vide."),
        *(
            (("bail", None, k), f"Recherche impossible : k doit être un nombre entier de 1 à 50, reçu : « {k} ».")
            for k in (0, "beaucoup")
        ),
        (("bail " * 500, None, 3), "Recherche impossible : la question est trop longue, reformulez-la en une phrase."),
    ],
)
def test_a_search_that_cannot_be_made_is_explained_in_french(library, retriever, arguments, answer):
    search, *_ = build_tools(library, retriever)
    assert search(*arguments) == answer


def test_every_call_is_written_down_in_order_with_ids_and_seconds(library, retriever):
    log = EventLog()
    search, document, *_ = build_tools(library, retriever, log)
    search("vote", k=2)
    document("2001-25-0")
    document("INCONNU", 2)
    search("", {"number": "12"}, 2)
    assert [(event.type, event.tool) for event in log.events] == [
        ("search", "search_legal_docs"),
        ("read", "lookup_legal_doc"),
        ("read", "lookup_legal_doc"),
        ("search", "search_legal_docs"),
    ]
    assert [len(event.output_ids) for event in log.events] == [3, 1, 0, 0]
    assert [event.input for event in log.events] == [
        {"query": "vote", "k": 2},
        {"id": "2001-25-0"},
        {"id": "INCONNU", "part": 2},
        {"query": "", "k": 2, "number": "12"},
    ]
    assert all(event.seconds >= 0 for event in log.events)
    assert list(log.passages) == log.events[0].output_ids
    assert "2001-25" in log.documents


DECISION = "Le 12 mai 1993, le tribunal a condamné le preneur à payer 1 000 francs.\nLe 13 mai 1993, il a payé."


@pytest.fixture
def decided(tiny_encoder, tmp_path):
    config = IndexConfig(source=[{"id": "D-1", "content": DECISION}], index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    return open_index(config)


def test_what_was_not_extracted_the_rules_find_on_the_spot(decided, tiny_encoder):
    log = EventLog()
    _, _, entities, *_ = build_tools(decided, build_retriever(decided, tiny_encoder), log)
    text = entities("D-1-0", "Date, montant")
    assert text.startswith("Décision D-1, éléments repérés : 3\n<extrait>\n- date : « 12 mai 1993 »")
    assert "[Source: D-1, chars 3-14]" in text
    assert "« 1 000 francs »" in text
    assert text == entities("D-1", "montant,date")
    assert decided.entity_store is None
    assert [(event.type, event.tool, event.output_ids) for event in log.events] == [
        ("read", "lookup_entities", ["D-1"])
    ] * 2
    assert list(log.documents) == ["D-1"]


def test_what_was_extracted_is_shown_instead(decided, tiny_encoder):
    document = decided.document("D-1")
    found = [
        {
            "extraction_class": "partie",
            "extraction_text": "le preneur",
            "char_start": DECISION.index("le preneur"),
            "char_end": DECISION.index("le preneur") + 10,
            "attributes": {"role": "demandeur"},
        }
    ]
    recipe = Recipe("jurisprudence", "1", "un-modèle", 1, "", 2000)
    with closing(ExtractionStore(decided.path / "entities.sqlite")) as store:
        result = ExtractionResult(doc_name="D-1", extractions=found)
        store.hold_many(
            [("D-1", document.content_hash, document.content, recipe, result, [("partie-mot:preneur", "partie")])]
        )
    search, _, entities, *_ = build_tools(decided, build_retriever(decided, tiny_encoder))
    marker = f"[Source: D-1, chars {found[0]['char_start']}-{found[0]['char_end']}]"
    assert entities("D-1") == (
        "Décision D-1, éléments repérés : 1\n<extrait>\n"
        f"- partie : « le preneur » (role : demandeur) {marker}\n</extrait>"
    )
    assert entities("D-1", "montant") == ("Décision D-1 : aucun élément de ce genre. Classes présentes : partie.")
    assert search("paiement", {"entites": "partie=le preneur"}).startswith("<extrait>\nDécision D-1 : ")
    assert search("dette", {"entites": "partie=Lever ; partie=le preneur"}).startswith("Aucun passage ne répond")
    refusal = "Recherche impossible : entites n'est pas compris : « partie » (attendu par exemple : {})."
    assert search("paiement", {"entites": "partie"}) == refusal.format("« partie=Société Lever »")


def test_a_search_by_entities_that_were_not_extracted_is_explained(library, retriever):
    search, *_ = build_tools(library, retriever)
    assert search("bail", {"entites": "partie=Lever"}) == (
        "Recherche impossible : ce corpus n'a pas de quoi appliquer ces filtres."
    )


def test_a_long_list_of_entities_is_cut_and_says_so(tiny_encoder, tmp_path):
    content = " ".join(f"Le {day} mai {year} il a plu." for year in range(1990, 2000) for day in range(2, 30))
    config = IndexConfig(source=[{"id": "D", "content": content}], index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    _, _, entities, *_ = build_tools(open_index(config), build_retriever(open_index(config), tiny_encoder))
    text = entities("D", "date")
    assert text.count("[Source: D, chars ") == 100
    assert text.endswith("[180 autres éléments : précisez classes.]")
