"""Lazy exports: every public name of a package is there when it is asked for, and no other."""

import runpy
import sys
import types
from importlib import import_module

import pytest
from support import ROOT

from legal_rag.base.extras import MissingExtraError

DOORS = sorted(
    path.parent for path in (ROOT / "src" / "legal_rag").rglob("__init__.py") if "exports(" in path.read_text("utf-8")
)


@pytest.mark.parametrize("folder", DOORS, ids=lambda folder: folder.name)
def test_a_room_has_every_name_that_it_exports(folder):
    room = import_module(".".join(folder.relative_to(ROOT / "src").parts))
    assert all(getattr(room, exported) is not None for exported in room.__all__)


@pytest.mark.parametrize("name", ["build_language_model", "check_model"])
def test_a_model_asked_without_its_extra_is_one_line_that_names_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "dspy", None)  # as if it were not installed
    for module in ("legal_rag.llm.dspy_models", "legal_rag.agent.models"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for room in ("legal_rag.llm", "legal_rag.agent"):  # names found before
        monkeypatch.delitem(vars(import_module(room)), name, raising=False)
    with pytest.raises(MissingExtraError, match=r"^dspy is not installed: pip install 'legal-rag\[agent\]'"):
        getattr(import_module("legal_rag.agent"), name)


@pytest.mark.parametrize(("module", "extra"), [("bm25s", "eval"), ("Stemmer", "eval"), ("torch", "colbert")])
def test_a_script_without_its_extra_is_one_line_that_names_it(monkeypatch, module, extra):
    for name in ("bm25s", "Stemmer", "torch"):
        monkeypatch.setitem(sys.modules, name, None if name == module else types.ModuleType(name))
    with pytest.raises(SystemExit, match=rf"train_projection: {module} is not installed: .*legal-rag\[{extra}\]"):
        runpy.run_path(str(ROOT / "scripts" / "train_projection.py"))
