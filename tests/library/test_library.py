import json
import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from legal_rag.corpus import ChunkConfig, build_chunker, chunk_document, read_documents
from legal_rag.indexer.commit import building, finish_library, updating
from legal_rag.library import Filters, Library
from legal_rag.library.manifest import write_manifest
from legal_rag.library.store import StoreWriter

ODD_IDS = [
    "l'arrêt",
    'le "premier"',
    "100 %_sûr",
    "2001-2589 AN/2001-2590 AN",
    "a;DROP TABLE documents;--",
    "avec  deux espaces",
    "ünïcödé 日本 😀",
    "C:\\dossier\\x.txt",
    "x" * 5000,
    "-1",
    "0",
]


SOURCE = {"name": "owner/name", "split": "train", "config": "juri"}


def write_library(folder, rows, name="lib", shard_chunks=1000, key="", **manifest):
    """Write a Library of one chunk a sentence without vectors: the store and the manifest are what is tested."""
    chunker = build_chunker(ChunkConfig(chunk_tokens=40), lambda texts: [len(text.split()) for text in texts])
    with (
        building(folder, name, {"key": key}) as path,
        closing(StoreWriter(path / "corpus.sqlite", shard_chunks=shard_chunks)) as store,
    ):
        for document in read_documents(rows):
            chunks = chunk_document(document.content, document.id, document.title, chunker=chunker)
            store.add(document, chunks)
        finish(path, store, **manifest)
    return Path(folder) / name


def finish(path, store, **manifest):
    """Write the manifest of a Library without PLAID files."""
    store.finish()
    counts = {"documents": store.n_documents, "chunks": store.n_chunks, "bad_records": 0}
    plaid = {"n_bits": 0}
    encoder = {"name": "none", "revision": "", "dim": 0, "query_length": 0, "document_length": 0}
    made = {"encoder": encoder, "chunks": {"chunk_tokens": 40, "header_on": "none", "header_columns": []}}
    whole = {"commit": 1, "counts": counts, "plaid": plaid, "source": SOURCE, **made, **manifest}
    finish_library(path, whole, store.n_shards)


def rows(*ids, content="La cour. Casse et annule."):
    return [{"id": one, "content": content, "title": f"Titre {one}"} for one in ids]


@pytest.fixture(scope="session")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    return Library(write_library(folder, [{"id": one, "content": f"Texte de {one}."} for one in ODD_IDS]))


def test_every_document_is_stored_as_its_source_gives_it_in_a_mapping_from_ids_to_rows(
    tiny_library, sample_file, sample_rows
):
    expected = list(read_documents(sample_file))
    assert list(tiny_library.documents()) == expected
    assert [tiny_library.document(document.id) for document in expected] == expected
    assert len(tiny_library) == tiny_library.n_documents == len(expected) == 60
    assert list(tiny_library) == [row["id"] for row in sample_rows]
    assert "FICTIF0101" in tiny_library
    assert "FICTIF9999" not in tiny_library
    assert tiny_library["FICTIF0101"]["content"] == sample_rows[0]["content"]
    assert tiny_library["FICTIF0101"]["title"] == sample_rows[0]["title"]


def test_a_chunk_is_the_slice_of_its_documents_text_and_together_they_hold_all_that_is_not_blank(tiny_library):
    for document in tiny_library.documents():
        chunks = tiny_library.chunks_of(document.id)
        assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
        for chunk in chunks:
            assert chunk.text == document.content[chunk.char_start : chunk.char_end]
            assert chunk[4:] == (chunk.text, document.title, document.decision_date)
    for document in tiny_library.documents():
        together = "".join(chunk.text for chunk in tiny_library.chunks_of(document.id))
        assert "".join(together.split()) == "".join(document.content.split())


def test_chunks_are_counted_in_characters_outside_the_basic_plane_too(tmp_path):
    content = "😀 Été. " * 60 + "𝔄ttendu que é̶ tout. " * 30
    opened = Library(write_library(tmp_path, [{"id": "a", "content": content}]))
    stored = opened.document("a").content
    chunks = opened.chunks_of("a")
    assert len(chunks) > 3
    assert all(chunk.text == stored[chunk.char_start : chunk.char_end] for chunk in chunks)


def test_a_range_of_chunks_includes_both_its_ends(tiny_library):
    everything = tiny_library.chunks_of("FICTIF0101")
    assert len(everything) > 4
    assert tiny_library.chunks_of("FICTIF0101", 1, 3) == everything[1:4]
    assert tiny_library.chunks_of("FICTIF0101", 2) == everything[2:]
    assert tiny_library.chunks_of("FICTIF0101", 3, 1) == []
    assert tiny_library.chunks_of("FICTIF0101", -5, 10_000) == everything
    assert tiny_library.chunks_of("FICTIF9999") == []


def test_positions_number_all_chunks_which_come_in_the_order_asked_for_and_as_often(tiny_library):
    chunks = [chunk for doc_id in tiny_library for chunk in tiny_library.chunks_of(doc_id)]
    n_chunks = tiny_library.manifest["counts"]["chunks"]
    assert tiny_library.chunks_at([(0, position) for position in range(n_chunks)]) == chunks
    assert tiny_library.chunks_at([(0, 2), (0, 7), (0, 2)]) == [chunks[2], chunks[7], chunks[2]]
    assert tiny_library.chunks_at([]) == []


def test_positions_of_documents_lead_back_to_their_chunks(tiny_library):
    (positions,) = tiny_library.positions(Filters(doc_ids=["FICTIF0102", "FICTIF0101", "FICTIF0102", "absent"]))
    (nothing,) = tiny_library.positions(Filters(doc_ids=[]))
    assert positions.dtype == nothing.dtype == np.int64
    assert (np.diff(positions) > 0).all()
    chunks = tiny_library.chunks_at([(0, int(position)) for position in positions])
    assert chunks == tiny_library.chunks_of("FICTIF0101") + tiny_library.chunks_of("FICTIF0102")
    assert nothing.tolist() == []


@pytest.mark.parametrize(("asked", "near"), [("FICTIF0101x", "FICTIF0101"), ("fictif0102", "FICTIF0102")])
def test_an_unknown_id_names_the_nearest(tiny_library, asked, near):
    with pytest.raises(LookupError, match=rf"no document '{asked}' in .*nearest id is '{near}"):
        tiny_library.document(asked)


@pytest.mark.parametrize("asked", ["", "CA Nîmes, 6 juin 2019", "20-99.123", "zzz"])
def test_an_id_that_is_near_to_none_names_none(tiny_library, asked):
    with pytest.raises(LookupError, match=rf"no document '{asked}' in ") as refusal:
        tiny_library.document(asked)
    assert "nearest" not in str(refusal.value)


@pytest.mark.parametrize("doc_id", ODD_IDS, ids=range(len(ODD_IDS)))
def test_ids_of_any_characters_find_their_own_document(odd, doc_id):
    assert doc_id in odd
    assert odd.document(doc_id).content.startswith(f"Texte de {doc_id}")
    assert [chunk.doc_id for chunk in odd.chunks_of(doc_id)[:1]] == [doc_id]
    assert len(odd.positions(Filters(doc_ids=[doc_id]))[0]) >= 1


@pytest.mark.parametrize("doc_id", ["100 %", "%", "_", "' OR 1=1 --", '"', "A\nb", "l'", "a\x00b"])
def test_patterns_and_odd_characters_find_nothing_else(odd, doc_id):
    assert doc_id not in odd
    assert odd.chunks_of(doc_id) == []
    with pytest.raises(LookupError, match="no document"):
        odd.document(doc_id)


def test_a_column_of_its_own_comes_back_in_the_row(tmp_path):
    extra = {"number": "98-12.345", "zones": {"motifs": [[0, 9]]}, "score": 0.5, "ok": True}
    row = {"id": "a", "content": "La cour.", "applied_laws": "L. 1 ; L. 2", **extra}
    opened = Library(write_library(tmp_path, [row]))
    assert opened.document("a").extra == extra
    assert opened["a"]["applied_laws"] == ["L. 1", "L. 2"]
    assert opened["a"]["zones"] == {"motifs": [[0, 9]]}


def test_eight_threads_read_at_once(tiny_library):
    ids = list(tiny_library)
    expected = {doc_id: (tiny_library.document(doc_id), tiny_library.chunks_of(doc_id)) for doc_id in ids}

    def read(number):
        some = ids[number:] + ids[:number]
        return all((tiny_library.document(one), tiny_library.chunks_of(one)) == expected[one] for one in some)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(32)))


@pytest.mark.parametrize("name", ["100%", "a b", "what?", "a#b", "l'été", "%41", "a&mode=rw"])
def test_a_folder_may_have_any_name(tmp_path, name):
    write_library(tmp_path / name, rows("a"), name=name)
    assert list(Library.open(tmp_path / name, name)) == list(Library(str(tmp_path / name / name))) == ["a"]


def test_a_tilde_is_the_home_folder_and_an_open_library_reads_on_from_another_working_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_library("~/indexes", rows("a"))
    assert list(Library.open("~/indexes", "lib")) == ["a"]
    assert (tmp_path / "indexes" / "lib").is_dir()
    write_library(tmp_path, rows("a"))
    monkeypatch.chdir(tmp_path)
    opened = Library.open(".", "lib")
    monkeypatch.chdir("/")
    assert "a" in opened
    assert opened.path.is_dir()


def test_a_library_cannot_be_written_through_a_reader(tiny_library):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        tiny_library._connection.execute("DELETE FROM documents")


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("", r"lib \(build one with 'legal-rag index --source"),
        ("lib", "build one with 'legal-rag index --source"),
        (".lib.building", "only an unfinished build; build it again"),
        ("half", "only an unfinished build; build it again"),
    ],
)
def test_where_there_is_no_library_it_is_said_how_to_build_one(tmp_path, left, said):
    folder = tmp_path / "indexes"
    if left == "half":
        (write_library(folder, rows("a")) / "manifest.json").unlink()
    elif left:
        (folder / left).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=said):
        Library.open(folder, "lib")
    assert folder.exists() == bool(left)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format_version": null}',
        '{"format_version": "new"}',
        '{"format_version": 3}',
        "\xff",
    ],
)
def test_a_damaged_manifest_is_one_clear_error(tmp_path, text):
    folder = write_library(tmp_path, rows("a"))
    (folder / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"damaged manifest: .*manifest\.json \(") as caught:
        Library(folder)
    assert "\n" not in str(caught.value)
    assert "Error" not in str(caught.value)


@pytest.mark.parametrize(("version", "remedy"), [(4, "update it"), (1, "build it again")])
def test_another_format_is_refused(tmp_path, version, remedy):
    folder = write_library(tmp_path, rows("a"), format_version=version)
    with pytest.raises(ValueError, match=f"has format {version}, this legal_rag reads 3: {remedy}"):
        Library(folder)


def test_a_library_without_its_store_or_its_manifest_is_told_what_it_is(tmp_path):
    folder = write_library(tmp_path, rows("a"))
    (folder / "corpus.sqlite").unlink()
    with pytest.raises(FileNotFoundError, match=r"incomplete index at .*: no corpus\.sqlite"):
        Library(folder)


def names_in(folder):
    return sorted(path.name for path in Path(folder).iterdir() if path.suffix != ".lock")


def test_a_new_build_takes_the_place_of_the_old_and_a_users_instructions_outlive_it(tmp_path):
    folder = write_library(tmp_path, rows("a"))
    assert names_in(tmp_path) == ["lib"]
    (folder / "instructions.md").write_text("Réponds en français.", encoding="utf-8")
    write_library(tmp_path, rows("b"))
    assert list(Library.open(tmp_path, "lib")) == ["b"]
    assert names_in(tmp_path) == ["lib"]
    assert (folder / "instructions.md").read_text(encoding="utf-8") == "Réponds en français."


def test_bad_input_leaves_no_debris_and_a_build_left_unfinished_is_an_error(tmp_path):
    def rows_until_the_problem():
        yield from rows("b")
        raise ValueError("no such column")

    with pytest.raises(ValueError, match="no such column"):
        write_library(tmp_path, rows_until_the_problem())
    assert names_in(tmp_path) == []
    with pytest.raises(RuntimeError, match="finish_library was not called"), building(tmp_path, "lib", {}):
        pass
    assert "lib" not in names_in(tmp_path)


def test_a_full_disk_under_the_store_is_an_os_error(tmp_path):
    def fill():
        with building(tmp_path, "lib", {}) as path:
            store = StoreWriter(path / "corpus.sqlite", shard_chunks=10)
            store._connection.execute("PRAGMA max_page_count = 16")  # SQLite's own way to run out of room
            for document in read_documents(rows(*"abcdefgh", content="Attendu. " * 2000)):
                store.add(document, [])

    with pytest.raises(OSError, match=r"cannot write in .*\.lib\.building: database or disk is full"):
        fill()
    assert "lib" not in names_in(tmp_path)


def test_libraries_of_two_names_are_built_side_by_side_and_a_build_of_another_key_is_not_taken_up(tmp_path):
    with building(tmp_path, "one", {}) as path:
        write_library(tmp_path, rows("b"))
        finish(path, StoreWriter(path / "corpus.sqlite", shard_chunks=10))
    assert len(Library.open(tmp_path, "one")) == 0
    with pytest.raises(OSError, match="gone"), building(tmp_path, "lib", {"key": "one"}) as path:
        (path / "half").touch()
        raise OSError("the disk is gone")
    with pytest.raises(OSError, match="gone"), building(tmp_path, "lib", {"key": "one"}) as path:
        assert (path / "half").is_file()
        raise OSError("the disk is gone")
    with pytest.raises(ValueError, match="enough"), building(tmp_path, "lib", {"key": "two"}) as path:
        assert not (path / "half").exists()
        raise ValueError("enough")


@pytest.mark.parametrize("left", ["lib", ".lib.building"])
def test_an_empty_folder_and_what_a_killed_build_left_are_replaced(tmp_path, left):
    (tmp_path / left).mkdir()
    if left != "lib":
        (tmp_path / left / "corpus.sqlite").write_bytes(b"half")
    assert list(Library(write_library(tmp_path, rows("a")))) == ["a"]
    assert names_in(tmp_path) == ["lib"]


def swap_cut_off(folder):
    """Bring about what a kill between the two renames of a swap leaves."""
    write_library(folder, rows("old"))
    os.replace(folder / "lib", folder / ".lib.previous")
    shutil.copytree(folder / ".lib.previous", folder / ".lib.building")


def test_a_swap_cut_off_half_way_leaves_the_library_before_it_readable_and_the_next_build_mends_it(tmp_path):
    swap_cut_off(tmp_path)
    opened = Library.open(tmp_path, "lib")
    assert list(opened) == ["old"]
    assert opened.path.is_dir()
    write_library(tmp_path, rows("new"))
    assert list(Library.open(tmp_path, "lib")) == ["new"]
    assert names_in(tmp_path) == ["lib"]


def test_a_reader_never_sees_a_mixture_of_two_builds(tmp_path):
    opened = Library(write_library(tmp_path, rows("a"), built={"number": 1}))
    assert "a" in opened
    write_library(tmp_path, rows("b"), built={"number": 2})
    assert list(opened) == ["a"]  # this thread still reads the store it has open
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="was built anew since it was opened"):
        pool.submit(list, opened).result()


def test_a_reader_knows_another_library_by_its_later_shards_too(tmp_path):
    """Two histories that begin with the same build are told apart."""
    folder = write_library(tmp_path, rows("a"))
    reader = Library(folder)
    reader.check_unchanged()
    manifest = reader.manifest
    write_manifest(folder, manifest | {"commit": 0})
    with pytest.raises(ValueError, match="was built anew"):
        reader.check_unchanged()
    other = [{**manifest["shards"][0], "chunks": 7}]
    write_manifest(folder, manifest | {"shards": other})
    with pytest.raises(ValueError, match="was built anew"):
        reader.check_unchanged()


def test_the_mapping_gives_each_position_of_all_shards_its_documents_id(tmp_path):
    folder = write_library(tmp_path, rows('l\'"é"', "b", "c", content="un deux"), shard_chunks=2)
    mapping = json.loads((folder / "doc_mapping.json").read_text("utf-8"))
    assert mapping.pop("entries") == {"0": 'l\'"é"', "1": "b", "2": "c"}
    assert mapping == {"dataset": "owner/name", "split": "train", "config": "juri"}
    opened = Library(write_library(tmp_path, rows(*"abcd", content="un deux"), shard_chunks=2))
    assert [chunk.doc_id for chunk in opened.chunks_at([(1, 1), (0, 0), (1, 0), (0, 1)])] == ["d", "a", "c", "b"]
    assert [positions.tolist() for positions in opened.positions(Filters(doc_ids="dab"))] == [[0, 1], [1]]
    assert [positions.tolist() for positions in opened.removed_positions()] == [[], []]


WITHOUT_PLAID = {"n_bits": 0}
COURT = Filters(juridiction="Cour d'appel")


def of_courts(*ids):
    courts = ("Cour d'appel de Lyon", "Cour de cassation", "Cour d'appel de Riom")
    return [row | {"juridiction": court} for row, court in zip(rows(*ids), courts * len(ids), strict=False)]


def test_a_filter_that_many_documents_pass_leads_to_the_chunks_of_its_commit(tmp_path, monkeypatch):
    folder = write_library(tmp_path, of_courts(*"abcdef"), shard_chunks=4, plaid=WITHOUT_PLAID)
    chunker = build_chunker(ChunkConfig(chunk_tokens=40), lambda texts: [len(text.split()) for text in texts])
    later = StoreWriter(tmp_path / "later.sqlite", shard_chunks=4, first_shard=2)
    for document in read_documents(of_courts("g", "h")):
        later.add(document, chunk_document(document.content, document.id, chunker=chunker))
    later.finish()
    at_first = Library(folder)
    with updating(tmp_path, "lib") as update:
        update.apply(["c"])
    without_c = at_first.reload()
    with updating(tmp_path, "lib") as update:
        update.apply((), tmp_path / "later.sqlite", [2], {"source": SOURCE})
    with_g = at_first.reload()

    def passing():
        return [[some.tolist() for some in library.positions(COURT)] for library in (at_first, without_c, with_g)]

    few = passing()
    assert few == [[[0, 2, 3], [1]], [[0, 3], [1]], [[0, 3], [1], [0]]]
    monkeypatch.setattr("legal_rag.library.library.FEW_DOCUMENTS", 0)
    assert passing() == few


def test_chunks_that_the_manifest_does_not_count_are_damage(tmp_path, monkeypatch):
    monkeypatch.setattr("legal_rag.library.library.FEW_DOCUMENTS", 0)
    folder = write_library(tmp_path, of_courts(*"abc"), plaid=WITHOUT_PLAID)
    manifest = Library(folder).manifest
    shards = [one | {"chunks": 2} for one in manifest["shards"]]
    write_manifest(folder, manifest | {"shards": shards, "counts": manifest["counts"] | {"chunks": 2}})
    library = Library(folder)
    with pytest.raises(ValueError, match="damaged index: .* names 2 chunks in shard 0, corpus.sqlite has others"):
        library.positions(COURT)
