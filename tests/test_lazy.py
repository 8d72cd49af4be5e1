"""Lazy exports: every public name of a package is there when it is asked for, and no other."""

import runpy
import sys
import types
from importlib import import_module

import pytest
from support import ROOT

from legal_rag.lazy import MissingExtraError, lazy_exports

DOORS = sorted(
    path.parent
    for path in (ROOT / "src" / "legal_rag").rglob("__init__.py")
    if "lazy_exports(" in path.read_text("utf-8")
)


@pytest.mark.parametrize("folder", DOORS, ids=lambda folder: folder.name)
def test_a_room_has_every_name_that_it_exports(folder):
    room = import_module(".".join(folder.relative_to(ROOT / "src").parts))
    assert all(getattr(room, exported) is not None for exported in room.__all__)


def test_a_name_is_imported_when_it_is_asked_for_and_no_other_is_there(tmp_path, monkeypatch):
    (tmp_path / "lazy_package").mkdir()
    door = tmp_path / "lazy_package" / "__init__.py"
    door.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lazy_package.home import Thing\n")
    (tmp_path / "lazy_package" / "home.py").write_text("Thing = 7")
    monkeypatch.syspath_prepend(tmp_path)
    names, get = lazy_exports("lazy_package", str(door))
    assert names == ["Thing"]
    assert "lazy_package.home" not in sys.modules
    assert get("Thing") == 7
    with pytest.raises(AttributeError, match="module 'lazy_package' has no attribute 'Other'"):
        get("Other")


@pytest.mark.parametrize("name", ["build_language_model", "check_model"])
def test_a_model_asked_without_its_extra_is_one_line_that_names_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "dspy", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "legal_rag.llm.dspy_models", raising=False)
    with pytest.raises(MissingExtraError, match=r"^dspy is not installed: pip install 'legal-rag\[agent\]'"):
        getattr(import_module("legal_rag.agent"), name)


@pytest.mark.parametrize(("module", "extra"), [("bm25s", "eval"), ("Stemmer", "eval"), ("torch", "colbert")])
def test_a_script_without_its_extra_is_one_line_that_names_it(monkeypatch, module, extra):
    for name in ("bm25s", "Stemmer", "torch"):
        monkeypatch.setitem(sys.modules, name, None if name == module else types.ModuleType(name))
    with pytest.raises(SystemExit, match=rf"train_projection: {module} is not installed: .*legal-rag\[{extra}\]"):
        runpy.run_path(str(ROOT / "scripts" / "train_projection.py"))
