"""Lazy exports: every public name of a package is there when it is asked for, and no other."""

import sys
from importlib import import_module

import pytest

from legal_rag.lazy import lazy_exports

PACKAGES = ("corpus_index", "deep_read", "deep_read.plan", "extraction", "questions")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_every_name_that_it_exports(name):
    package = import_module(f"legal_rag.{name}")
    assert all(getattr(package, exported) is not None for exported in package.__all__)


def test_a_name_is_imported_when_it_is_asked_for_and_no_other_is_there(tmp_path, monkeypatch):
    (tmp_path / "lazy_package").mkdir()
    (tmp_path / "lazy_package" / "__init__.py").touch()
    (tmp_path / "lazy_package" / "home.py").write_text("Thing = 7")
    monkeypatch.syspath_prepend(tmp_path)
    get = lazy_exports("lazy_package", {"Thing": "home"})
    assert "lazy_package.home" not in sys.modules
    assert get("Thing") == 7
    with pytest.raises(AttributeError, match="module 'lazy_package' has no attribute 'Other'"):
        get("Other")
