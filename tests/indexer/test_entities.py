"""Extraction of a Library's documents: by the schema and the model of the time before, unless others are named."""

import pytest

from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import IndexConfig, add_documents, build_index, extract_library, open_index

RULE = "Chaque salarié a droit à 26 jours de congé par an."
REGULATION = ExtractionSettings(schema_name="regulation")


def config(folder, *numbers):
    rows = [{"id": f"R{number}", "content": f"Article {number}. {RULE}"} for number in numbers]
    return IndexConfig(source=rows, index_folder=str(folder))


@pytest.fixture
def extracted(tiny_encoder, tmp_path):
    """A Library whose documents were extracted by the schema of regulations."""
    build_index(config(tmp_path, 1), tiny_encoder)
    extract_library(open_index(config(tmp_path)), REGULATION)
    return config(tmp_path)


def classes_of(library, doc_id):
    return {entity["extraction_class"] for entity in library.entities_of(doc_id)}


def test_what_is_added_is_extracted_by_the_librarys_schema_and_nothing_by_another(extracted, tiny_encoder, tmp_path):
    add_documents(config(tmp_path, 2), tiny_encoder)
    report = extract_library(open_index(extracted), ExtractionSettings())
    assert (report.schema, report.extracted, report.unchanged) == ("regulation", 1, 1)
    assert [classes_of(open_index(extracted), doc_id) for doc_id in ("R1", "R2")] == [{"LeaveRule"}] * 2
    assert open_index(extracted).entity_store.made_by == ("regulation", "rules")


def test_another_schema_is_named_and_then_remembered(extracted):
    report = extract_library(open_index(extracted), ExtractionSettings(schema_name="jurisprudence"))
    assert (report.schema, report.extracted) == ("jurisprudence", 1)
    again = extract_library(open_index(extracted), ExtractionSettings())
    assert (again.schema, again.extracted) == ("jurisprudence", 0)


def test_the_default_leaves_each_documents_schema_to_a_model(tiny_encoder, tmp_path):
    build_index(config(tmp_path, 1), tiny_encoder, extraction=ExtractionSettings())
    assert open_index(config(tmp_path)).entity_store.made_by == ("auto", "rules")


def test_a_schema_that_the_rules_know_nothing_of_is_not_asked_of_them(extracted):
    open_index(extracted).entity_store.remember("corporate", "gemini-2.5-flash")
    report = extract_library(open_index(extracted), ExtractionSettings())
    assert (report.schema, report.failed) == ("jurisprudence", {})
