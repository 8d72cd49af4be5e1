"""A folder of contracts and an e-mail: extraction, corpus index, deep read with checked citations."""

import json
import shutil

import pytest
from support import TESTS
from support.rlm_scripts import root_models
from support.scripted_extractor import finding
from support.scripted_server import ScriptedServer

from legal_rag.deep_read import MultiDocRLM
from legal_rag.extraction import ExtractionSettings, format_extraction_index, run_batch_extraction
from legal_rag.indexer import extract_library

DOSSIER = TESTS / "fixtures" / "dossier"
BAIL, COURRIEL, CONSEIL, TRANSACTION = sorted(one.name for one in DOSSIER.iterdir())
FOUND = [
    ("party", "La SCI Les Tilleuls"),
    ("party", "La SARL Atelier Verrier"),
    ("party", "La société Orme Conseil"),
    ("party", "La société Martelin Distribution"),
    ("party", "Monsieur Lucien Faubert"),
    ("effective_date", "1er décembre 2024"),
    ("effective_date", "2 octobre 2024"),
    ("liability_limitation", "60 000 euros"),
    ("sender", "Claire Rouvière"),
    ("deadline", "21 octobre 2024"),
]
WHO, WHEN = "Quelles sociétés licencient au quatrième trimestre 2024 ?", "Quand le bail prend-il effet ?"
# As the specification of deep reading over many documents gives it, on contracts.
BY_QUARTER = """
relevant = list(set(search_by_keyword("licenciement") + search_by_keyword("licenciement économique")))
in_quarter = [doc_id for doc_id in relevant if get_doc_meta(doc_id).get("date", "").startswith("2024-1")]
print(f"{len(relevant)} documents, {len(in_quarter)} au quatrième trimestre")
companies = []
for doc_id in sorted(in_quarter)[:20]:
    result = ask_about_document("Quelle société licencie ? Donnez son seul nom.", doc_id)
    if result and result != "None":
        companies.append({"company": result.split(" :")[0], "doc_id": doc_id, "kind": get_doc_meta(doc_id)["doc_type"]})
FINAL({"companies": sorted({one["company"] for one in companies}), "details": companies})
"""
BY_ENTITY = """
parties = {one["extraction_text"]: doc_id for doc_id, found in extraction_index.items() for one in found}
lease = parties[PARTY]
date = next(one for one in extraction_index[lease] if one["extraction_class"] == "effective_date")
place = f"[Source: {lease}, chars {date['char_start']}-{date['char_end']}]"
FINAL(f"Le bail est consenti à compter du « {date['extraction_text']} » {place}.")
""".replace("PARTY", repr(FOUND[1][1]))


def said_of(prompt):
    """Answer about one document as a careful reader does."""
    for quote in ("La Société lui a notifié son licenciement économique", "la procédure de licenciement économique"):
        if quote in prompt:
            return json.dumps({"pertinent": True, "reponse": "Martelin Distribution", "citations": [quote]})
    return json.dumps({"pertinent": False, "reponse": "", "citations": []})


@pytest.fixture(scope="module")
def rlm(tmp_path_factory):
    """Index the folder, its entities found by a scripted model, its questions answered by another."""
    folder = tmp_path_factory.mktemp("dossier")
    shutil.copytree(DOSSIER, folder / "textes")
    with ScriptedServer(root_models({WHO: [BY_QUARTER], WHEN: [BY_ENTITY]}, said_of)) as server:
        rlm = MultiDocRLM(
            str(folder / "textes"), root_model="gpt-5", sub_model="gpt-5-mini", api_base=server.api_base, api_key="k"
        )
        rlm.build_index(parallel=False, entities=False)
        with ScriptedServer(finding(FOUND)) as extractor:
            extract_library(rlm.library, ExtractionSettings(model_id="m", api_base=extractor.api_base))
        rlm.prompts = server.prompts
        yield rlm


def test_documents_have_date_author_and_kind_from_their_text(rlm):
    metas = [rlm.environment()["get_doc_meta"](doc_id) for doc_id in (BAIL, COURRIEL, CONSEIL, TRANSACTION)]
    assert [(one["date"], one["author"], one["doc_type"]) for one in metas] == [
        ("2024-11-12", "La SCI Les Tilleuls", "contrat"),
        ("2024-10-14", "Claire Rouvière", "courriel"),
        ("2024-09-27", "La société Orme Conseil", "contrat"),
        ("2024-12-05", "Monsieur Lucien Faubert", "contrat"),
    ]
    assert rlm.environment()["find_documents"](date_from="2024-10-01", date_to="2024-11-30") == [BAIL, COURRIEL]
    assert {recipe.schema_name for recipe, _ in rlm.library.entity_store.held_recipes()} == {
        "contract",
        "correspondence",
    }
    assert rlm.environment()["search_by_entity"]("Martelin Distribution") == [CONSEIL, TRANSACTION]


def test_a_program_chooses_by_keyword_and_quarter_and_asks_what_is_left(rlm):
    prediction = rlm.query(WHO)
    value = prediction.events[-1].input["value"]
    assert value["companies"] == ["Martelin Distribution"]
    assert [(one["doc_id"], one["kind"]) for one in value["details"]] == [
        (COURRIEL, "courriel"),
        (TRANSACTION, "contrat"),
    ]
    assert prediction.status == "unverified"  # what a model read in each is not made again from the corpus


def test_an_answer_from_the_extraction_index_is_cited_at_its_place(rlm):
    prediction = rlm.query(WHEN, [BAIL, TRANSACTION])
    (citation,) = prediction.citations
    assert (citation.status, citation.doc_id, citation.quote) == ("verified", BAIL, "1er décembre 2024")
    assert prediction.answer.startswith(
        "Le bail est consenti à compter du « 1er décembre 2024 » [Source: bail_commercial.txt, chars "
    )
    (prompt,) = [one for one in rlm.prompts if WHEN in one]
    assert "EXTRACTION INDEX" in prompt
    assert "[Analysis]" in prompt


def test_a_batch_gives_the_same_entities_as_files_and_as_an_index(rlm, tmp_path):
    docs = [{"name": one.name, "text": one.read_text("utf-8")} for one in sorted(DOSSIER.iterdir())]
    with ScriptedServer(finding(FOUND)) as server:
        results = run_batch_extraction(docs, "auto", "m", api_base=server.api_base, output=tmp_path)
    assert [one.extractions for one in results] == [rlm.library.entities_of(one["name"]) for one in docs]
    assert {one.raw_jsonl_path for one in results} == {str(tmp_path / "entities.jsonl")}
    index = format_extraction_index(results)
    assert index == (tmp_path / "extraction_index.txt").read_text("utf-8")
    start = docs[0]["text"].index("La SCI")
    assert f'[Document: {BAIL}]\n  - party: "La SCI Les Tilleuls" (chars {start}-{start + 19})\n' in index
