"""The Library of `support.graph_cases`, and its graph with an answer's record."""

import pytest
from support.graph_cases import linked_library, with_answer

from legal_rag.graph import KnowledgeGraph


@pytest.fixture(scope="session")
def library(tiny_encoder, tmp_path_factory):
    return linked_library(tmp_path_factory.mktemp("linked"), tiny_encoder)


@pytest.fixture(scope="session")
def graph(library, tmp_path_factory):
    return KnowledgeGraph(with_answer(library, tmp_path_factory.mktemp("answered")))
