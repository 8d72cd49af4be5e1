"""Outlines stored with a Library: by index, add, remove, compact and rebuild; filters by who speaks and where."""

import logging
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, examine, open_index
from legal_rag.indexer.build import remove_documents
from legal_rag.law import build_tree, read_paragraphs
from legal_rag.library import Filters, Library
from legal_rag.library.filters import UnsupportedFilterError
from legal_rag.library.outlines import OUTLINES, outline_of, passages_in, whole_outline_of

CENSURING = """COUR DE CASSATION
Chambre sociale
Audience publique du 3 mai 2019

Vu l'article L. 1226-2 du code du travail ;

Attendu, selon l'arrêt attaqué, que M. Lebrun a été licencié pour inaptitude ;

Attendu que, pour débouter le salarié, l'arrêt retient que l'employeur n'avait pas à chercher un autre poste ;

Qu'en statuant ainsi, alors que l'obligation de reclassement s'imposait, la cour d'appel a violé le texte susvisé ;

PAR CES MOTIFS :

CASSE ET ANNULE l'arrêt rendu le 4 avril 2017 par la cour d'appel de Lyon."""


@pytest.fixture
def config(tmp_path, sample_rows):
    return IndexConfig(source=sample_rows[:8], n_bits=0, corpus_index=False, index_folder=str(tmp_path / "indexes"))


@pytest.fixture
def library(config, tiny_encoder):
    build_index(config, tiny_encoder)
    return open_index(config)


def run(library, *arguments):
    place = ("--index-folder", str(library.path.parent), "--index-name", library.path.name)
    return main([arguments[0], *place, *arguments[1:]])


def stored_hashes(library):
    with closing(sqlite3.connect(library.path / OUTLINES)) as connection:
        return {one for (one,) in connection.execute("SELECT content_hash FROM outlines")}


def hashes(library):
    return {one for _, one in library.content_hashes()}


def test_an_index_holds_the_outline_of_each_document_and_unknown_filters_by_it_are_refused(library, capfd):
    assert stored_hashes(library) == hashes(library)
    for document in library.documents():
        stored = library.stored_outline(document)
        assert stored.tree == build_tree(document.content) == outline_of(library, document.id)
        said = {(one.part, one.speaker, one.censured) for one in read_paragraphs(document.content)}
        assert {one[2:] for one in stored.passages} == said
        assert all(before[2:] != after[2:] for before, after in zip(stored.passages, stored.passages[1:], strict=False))
    for name, value, known in [("speaker", "avocat", "lower_court"), ("section", "milieu", "dispositif")]:
        assert run(library, "search", "loyer", f"--{name}", value) == 1
        told = capfd.readouterr().err
        assert f"unknown {name} '{value}'" in told
        assert known in told


def test_outlines_follow_added_removed_and_replaced_documents(library, config, sample_rows, tiny_encoder):
    before = library
    changed = sample_rows[0] | {"content": sample_rows[0]["content"] + "\n\nUn mot de plus."}
    add_documents(replace(config, source=[changed, sample_rows[9]]), tiny_encoder)
    remove_documents([sample_rows[1]["id"]], config.index_folder)
    now = library.reload()
    assert hashes(now) <= stored_hashes(now)
    first = sample_rows[0]["id"]
    assert outline_of(now, first).char_end == len(now.document(first).content)
    assert outline_of(before, first).char_end == len(before.document(first).content)  # the earlier snapshot still reads
    compact_index(config.index_folder)
    assert stored_hashes(library.reload()) == hashes(library.reload())
    assert examine(library.reload()) == []


def test_a_search_is_limited_to_who_speaks_and_to_a_main_part(config, tiny_encoder):
    row = {"id": "A", "title": "Cass. soc.", "content": CENSURING}
    build_index(
        replace(config, source=[row, {"id": "B", "content": "Un contrat de bail.\n\nLe loyer est payé."}]), tiny_encoder
    )
    library = open_index(config)
    for filters, found in [
        (Filters(speaker="court"), ["A"]),
        (Filters(speaker="décision attaquée"), ["A"]),
        (Filters(section="Dispositif"), ["A"]),
        (Filters(section="motifs", speaker="lower_court"), ["A"]),
        (Filters(section="annex"), []),
        (Filters(section="dispositif", speaker="partie"), []),
    ]:
        assert library.ids(filters) == found
        assert bool(sum(map(len, library.positions(filters)))) == bool(found)
    said = passages_in(library, "A", 0, len(CENSURING))
    quashed = [one for one in said if one.said.censured]
    assert [CENSURING[one.char_start : one.char_end][:30] for one in quashed] == ["Attendu que, pour débouter le "]
    assert quashed[0].to_json()["speaker"] == "lower_court"
    assert said[-1].sections[0] == "Dispositif"
    assert {one.said.speaker for one in passages_in(library, "B", 0, 50)} == {None}


def test_a_library_without_outlines_works_and_is_given_them_by_rebuild(library, capfd):
    (library.path / OUTLINES).unlink()
    library = Library(library.path)
    document = next(library.documents())
    assert outline_of(library, document.id) == build_tree(document.content)
    with pytest.raises(UnsupportedFilterError, match="rebuild --only trees"):
        library.positions(Filters(speaker="court"))
    assert run(library, "rebuild", "--only", "trees", "--dry-run") == 0
    assert "trees: 8 documents to read" in capfd.readouterr().err
    assert not (library.path / OUTLINES).exists()
    assert run(library, "rebuild", "--only", "trees") == 0
    assert stored_hashes(library) == hashes(library)
    capfd.readouterr()
    assert run(library, "rebuild", "--only", "trees", "--dry-run") == 0
    assert "trees: no documents to read" in capfd.readouterr().err


def test_a_damaged_file_is_told_and_made_anew(library, caplog):
    (library.path / OUTLINES).write_bytes(b"no database" * 500)
    library = Library(library.path)
    document = next(library.documents())
    with caplog.at_level(logging.WARNING):
        assert whole_outline_of(library, document.id).tree == build_tree(document.content)
    assert OUTLINES in caplog.text
    assert any(OUTLINES in problem for problem in examine(library))
    assert run(library, "rebuild", "--only", "trees") == 0
    assert examine(Library(library.path)) == []


def test_rebuild_renews_only_what_other_rules_made(library, monkeypatch):
    with closing(sqlite3.connect(library.path / OUTLINES)) as connection, connection:
        connection.execute("UPDATE outlines SET rules = 0 WHERE outline_key <= 3")
    made = []
    make = whole_outline_of.__globals__["make_outline"]
    monkeypatch.setattr(
        "legal_rag.library.outlines.make_outline", lambda document: made.append(document.id) or make(document)
    )
    assert run(library, "rebuild", "--only", "trees") == 0
    assert len(made) == 3
    assert run(library, "rebuild", "--only", "trees", "--force") == 0
    assert len(made) == 3 + 8


def test_rebuild_makes_the_other_parts_that_are_lacking(library, capfd):
    shutil.rmtree(library.path / "lexical")
    assert run(library, "rebuild", "--index-only", "--dry-run") == 0
    plan = capfd.readouterr().err
    planned = [line.split(" documents")[0] for line in plan.splitlines()]
    assert planned == ["words: 8", "vectors: no", "corpus-index: 8", "trees: no", "graph: no"]
    assert run(library, "rebuild", "--index-only") == 0
    assert run(library, "search", "voisinage", "--mode", "bm25") == 0
    assert run(library, "rebuild", "--extract-only", "--extract-model", "rules") == 0
    assert Library(library.path).entities_of(next(iter(library)))
    capfd.readouterr()
    assert run(library, "rebuild", "--extract-model", "rules", "--dry-run") == 0
    assert capfd.readouterr().err.count(": no documents") == 6
    assert run(library, "rebuild", "--extract-only", "--index-only") == 1
    assert examine(Library(library.path)) == []
