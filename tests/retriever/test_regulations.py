"""Questions of employees on Markdown regulations: the rule that answers is the first entity, without a model."""

import tomllib
from pathlib import Path

import pytest

from legal_rag.extraction import ExtractionSettings
from legal_rag.indexer import IndexConfig, build_index, extract_library, open_index

REGULATIONS = Path(__file__).parents[2] / "benchmarks" / "data" / "regulations"
QUERIES = tomllib.loads((REGULATIONS / "queries.toml").read_text("utf-8"))

# Questions in words that no rule and no table of topics has, or on a sentence nearer to another rule.
MISSED = {"lumen": ["L17"], "coop": ["C4", "C6", "C13", "C14"]}


@pytest.fixture(scope="module", params=list(QUERIES))
def company(request, tiny_encoder, tmp_path_factory):
    """A company's regulations as a Library, and the questions on them."""
    folder = str(tmp_path_factory.mktemp(request.param))
    config = IndexConfig(source=str(REGULATIONS / request.param), index_folder=folder)
    build_index(config, tiny_encoder)
    extract_library(open_index(config), ExtractionSettings(schema_name="regulation"))
    return open_index(config), QUERIES[request.param], MISSED.get(request.param, [])


def test_the_rule_that_answers_comes_first_with_its_type_and_what_it_sets(company):
    library, queries, expected_misses = company
    missed = []
    for query in queries:
        first = next((hit.entity for hit in library.entities_like(query["question"], 1)), None)
        expected = query.get("attributes", {}) | ({"rule_type": query["rule_type"]} if "rule_type" in query else {})
        is_right = first is not None and query["entity"] in first["extraction_text"]
        is_right = is_right and expected.items() <= first["attributes"].items()
        missed += [] if is_right else [query["id"]]
    assert missed == expected_misses
