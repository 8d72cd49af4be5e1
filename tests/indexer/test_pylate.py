"""Indexes of PyLate and fast-plaid, imported once into a Library: each form of mapping, searched for real."""

import dataclasses
import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from fast_plaid.search import FastPlaid

from legal_rag.indexer import IndexConfig, add_documents, examine, import_pylate
from legal_rag.library import Filters, Library, PlaidShards
from legal_rag.retriever import Retriever, build_retriever

N_DOCUMENTS = 12
PASSAGE_CHARS = 500
EVIL = b"cos\nsystem\n(S'touch EVIL'\ntR."  # unpickling it makes a file


@pytest.fixture(scope="module")
def rows(sample_rows):
    return sample_rows[:N_DOCUMENTS]


@pytest.fixture(scope="module")
def passages(rows):
    """Two passages of each document, the first of all documents before the second of all."""
    return [(row["id"], row["content"][start : start + PASSAGE_CHARS]) for start in (0, 500) for row in rows]


@pytest.fixture(scope="module")
def written(passages, tiny_encoder, tmp_path_factory):
    """An index folder as `FastPlaid.create` leaves it, `embeddings.npy` and all."""
    folder = tmp_path_factory.mktemp("written")
    with torch.random.fork_rng(), FastPlaid(str(folder / "fast_plaid_index"), device="cpu") as plaid:
        torch.manual_seed(0)  # `seed` alone does not fix what k-means sees
        vectors = tiny_encoder.encode_documents([text for _, text in passages])
        plaid.create([torch.from_numpy(matrix) for matrix in vectors], nbits=4, seed=1)
    return folder


@pytest.fixture
def index(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "colbert"))


@pytest.fixture
def imported(index, rows, tiny_encoder, tmp_path):
    """Import the index with the documents given, and open the Library."""

    def imported(source=rows, folder=index, **settings):
        cfg = IndexConfig(source=source, index_folder=str(tmp_path / "libraries"), corpus_index=False, **settings)
        return Library(import_pylate(folder, cfg, tiny_encoder).path)

    return imported


def _question(passage):
    return passage[200:320]  # past the opening, which decisions share


def _map(index, entries, **names):
    (index / "doc_mapping.json").write_text(json.dumps({**names, "entries": entries}), encoding="utf-8")


def _by_position(values):
    return {str(position): value for position, value in enumerate(values)}


def _forms(passages, rows):
    """Every form of entries that says the same: passage n belongs to document n modulo the number of documents."""
    numbers = [position % len(rows) for position in range(len(passages))]
    return {
        "document ids": [doc_id for doc_id, _ in passages],
        "chunk ids": [f"{doc_id}-{position // len(rows)}" for position, (doc_id, _) in enumerate(passages)],
        "row numbers": numbers,
        "row numbers as text": [str(number) for number in numbers],
    }


@pytest.mark.parametrize("form", ["document ids", "chunk ids", "row numbers", "row numbers as text"])
def test_a_search_finds_the_document_of_a_passage(index, imported, passages, rows, tiny_encoder, form):
    _map(index, _by_position(_forms(passages, rows)[form]))
    library = imported(shard_chunks=7)
    retriever = build_retriever(library, tiny_encoder)
    for position in (3, 17):
        doc_id, text = passages[position]
        hit = retriever.search(_question(text), mode="colbert")[0]
        content = rows[position % N_DOCUMENTS]["content"]
        assert (hit.doc_id, hit.chunk_id) == (doc_id, f"{doc_id}-{position // N_DOCUMENTS}")
        assert (hit.char_start, hit.char_end, hit.text) == (0, len(content), content)
    assert (library.n_documents, examine(library)) == (N_DOCUMENTS, [])


def test_what_was_imported_is_a_library_to_which_documents_are_added(
    index, imported, passages, sample_rows, tiny_encoder
):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    library = imported()
    cfg = IndexConfig(source=sample_rows[N_DOCUMENTS : N_DOCUMENTS + 2], index_folder=str(library.path.parent))
    assert add_documents(cfg, tiny_encoder).documents == 2
    library = library.reload()
    retriever = Retriever(library, tiny_encoder)
    added = sample_rows[N_DOCUMENTS]
    assert retriever.search(added["content"][200:320])[0].doc_id == added["id"]
    hits = retriever.search("La cour", k=50, filters=Filters(doc_ids=[passages[2][0]]))
    assert sorted(hit.chunk_id for hit in hits) == [f"{passages[2][0]}-{n}" for n in (0, 1)]


def test_without_a_mapping_positions_are_the_documents_of_the_source_if_they_are_as_many(
    imported, rows, passages, tiny_encoder
):
    with pytest.raises(ValueError, match=r"no entries in .*24 passages cannot be the source's 12 documents"):
        imported()
    library = imported([{**rows[n % N_DOCUMENTS], "id": f"row{n}"} for n in range(len(passages))])
    assert Retriever(library, tiny_encoder).search(_question(passages[17][1]), mode="colbert")[0].chunk_id == "row17-0"


def test_a_source_s_row_that_cannot_be_read_shifts_no_number(index, imported, rows, passages):
    _map(index, _by_position(_forms(passages, rows)["row numbers"]))
    with pytest.raises(ValueError, match="counts the source's rows, of which row 0 was left out"):
        imported([{"id": "EMPTY", "content": ""}, *rows])


def test_the_index_is_not_written_and_no_pickle_of_code_is_read(index, imported, passages, monkeypatch, tmp_path):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    for name in ("embeddings.npy", "plaid_ids_to_documents_ids.pkl"):
        (index / "fast_plaid_index" / name).write_bytes(EVIL)
        (index / name).write_bytes(EVIL)
    monkeypatch.chdir(tmp_path)
    before = {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in index.rglob("*")}
    library = imported()
    assert {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in index.rglob("*")} == before
    assert not [path for path in library.path.rglob("*") if path.name == "embeddings.npy" or path.suffix == ".pkl"]
    assert {path.stat().st_nlink for path in index.rglob("*") if path.is_file()} == {1}
    assert not Path("EVIL").exists()


def _pylate(index, passages, rows, kind):
    """Map positions to chunk ids as PyLate does: a pickled dictionary, or, before 1.4, what sqlitedict writes."""
    ids = dict(enumerate(_forms(passages, rows)["chunk ids"]))
    if kind == "pkl":
        (index / "plaid_ids_to_documents_ids.pkl").write_bytes(pickle.dumps(ids))
        return
    with closing(sqlite3.connect(index / "plaid_ids_to_documents_ids.sqlite")) as connection, connection:
        connection.execute('CREATE TABLE "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        values = [(key, pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) for key, value in ids.items()]
        connection.executemany('REPLACE INTO "unnamed" (key, value) VALUES (?,?)', values)


@pytest.mark.parametrize(("kind", "names"), [("pkl", None), ("sqlite", {"dataset": "elsewhere"})])
def test_an_index_of_pylate_says_by_its_own_map_what_its_passages_are(
    index, imported, passages, rows, tiny_encoder, kind, names
):
    _pylate(index, passages, rows, kind)
    if names:
        (index / "doc_mapping.json").write_text(json.dumps(names), encoding="utf-8")
    hit = build_retriever(imported(), tiny_encoder).search(_question(passages[17][1]), mode="colbert")[0]
    assert hit.chunk_id == f"{passages[17][0]}-1"


def test_what_pylate_itself_wrote_scores_as_there(imported, rows, passages, tiny_encoder, tmp_path):
    pylate_indexes = pytest.importorskip("pylate.indexes")
    plaid = pylate_indexes.PLAID(str(tmp_path), "made", device="cpu", show_progress=False)
    vectors = tiny_encoder.encode_documents([text for _, text in passages])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plaid.add_documents(_forms(passages, rows)["chunk ids"], vectors)
    library = imported(folder=tmp_path / "made")
    queries = tiny_encoder.encode_queries([_question(passages[17][1])])
    (expected,) = plaid(queries, k=5)
    places = PlaidShards(library.shards).search(queries[0], 5)
    chunks = library.chunks_at([place[:2] for place in places])
    assert [f"{chunk.doc_id}-{chunk.chunk_index}" for chunk in chunks] == [one["id"] for one in expected]
    assert [score for *_, score in places] == pytest.approx([one["score"] for one in expected], abs=0.02)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (EVIL, r"damaged mapping: .*\.pkl .it names os\.system, expected text and numbers"),
        (pickle.dumps({0: Path("a")}), r"damaged mapping: .*it names pathlib[\w.]*\.PosixPath, expected text"),
        (pickle.dumps([1]), "damaged mapping: .*'list' object has no attribute 'items'"),
        (b"\x80\x05", "damaged mapping: .*Ran out of input"),
        (b"", "damaged mapping: .*Ran out of input"),
        (pickle.dumps({0: "A"}), "maps 1 passages, the index holds 24"),
    ],
)
def test_a_map_of_pylate_with_more_than_ids_runs_nothing(index, imported, monkeypatch, tmp_path, content, message):
    monkeypatch.chdir(tmp_path)
    (index / "plaid_ids_to_documents_ids.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        imported()
    assert not Path("EVIL").exists()


@pytest.mark.parametrize("place", ["..", "fast_plaid_index"])
def test_the_mapping_may_lie_above_the_index_or_in_it(index, imported, passages, place):
    _map(index / place, _by_position(doc_id for doc_id, _ in passages))
    assert imported().manifest["counts"]["chunks"] == len(passages)


def test_the_index_may_be_a_bare_folder_of_its_files(index, imported, passages, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    bare = Path(shutil.move(index / "fast_plaid_index", index.parent / "plaid"))
    shutil.move(index / "doc_mapping.json", bare)
    library = imported(folder=bare)
    assert (
        Retriever(library, tiny_encoder).search(_question(passages[5][1]), mode="colbert")[0].doc_id == passages[5][0]
    )


def test_the_dataset_that_the_mapping_names_is_read(index, imported, rows, passages, tmp_path):
    kept = [{key: row[key] for key in ("id", "title", "content", "decision_date")} for row in rows]
    Dataset.from_list(kept).save_to_disk(tmp_path / "dataset")
    _map(index, _by_position(doc_id for doc_id, _ in passages), dataset=str(tmp_path / "dataset"), split="train")
    assert imported(None).document(rows[1]["id"]).content == rows[1]["content"]
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    with pytest.raises(ValueError, match=r"doc_mapping\.json names no dataset"):
        imported(None)


def test_documents_without_a_passage_are_left_out_and_chunks_keep_their_numbers(index, imported, passages, sample_rows):
    entries = [f"{doc_id}-{7 if position < N_DOCUMENTS else 2}" for position, (doc_id, _) in enumerate(passages)]
    _map(index, _by_position(entries))
    library = imported(sample_rows[: N_DOCUMENTS + 3])
    assert list(library) == [row["id"] for row in sample_rows[:N_DOCUMENTS]]
    assert [chunk.chunk_index for chunk in library.chunks_of(passages[5][0])] == [2, 7]


def test_ids_that_are_or_end_in_numbers_are_ids_before_they_are_rows_or_chunks(index, imported, rows, passages):
    backwards = [{"id": str(N_DOCUMENTS - 1 - n), "content": row["content"]} for n, row in enumerate(rows)]
    _map(index, _by_position(str(position % N_DOCUMENTS) for position in range(len(passages))))
    assert len(imported(backwards).chunks_of("0")) == 2
    _map(index, _by_position(f"2001-{position % N_DOCUMENTS}" for position in range(len(passages))))
    library = imported([{"id": f"2001-{n}", "content": row["content"]} for n, row in enumerate(rows)])
    assert [chunk.chunk_index for chunk in library.chunks_of("2001-3")] == [0, 1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda entries: entries.pop("3"), "maps 23 passages, the index holds 24"),
        (lambda entries: entries.update({"24": entries["3"]}), "maps 25 passages, the index holds 24"),
        (lambda entries: entries.update({"24": entries.pop("3")}), "maps 24 passages, .* numbered from 0"),
        (lambda entries: entries.update({"3": "UNKNOWN"}), "maps position 3 to 'UNKNOWN'"),
        (lambda entries: entries.update({"3": "UNKNOWN-1"}), "maps position 3 to 'UNKNOWN-1'"),
        (lambda entries: entries.update({"0": 5}), "maps position 0 to 5"),
        (lambda entries: entries.update({"0": None}), "maps position 0 to None"),
        (lambda entries: entries.update({"0": {"a": "b"}}), "maps position 0 to {'a': 'b'}"),
        (lambda entries: entries.update(dict.fromkeys(entries, 12)), "names row 12 of a source of 12 documents"),
        (lambda entries: entries.update(dict.fromkeys(entries, 10**30)), "names row 10+ of"),
        (lambda entries: entries.update(dict.fromkeys(entries, True)), "maps position 0 to True"),
        (lambda entries: entries.update({key: f"{value}-0" for key, value in entries.items()}), "two passages are"),
        (lambda entries: entries.update({key: f"{v}-{'9' * 30}" for key, v in entries.items()}), "maps position 0"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(index, imported, passages, spoil, message):
    entries = _by_position(doc_id for doc_id, _ in passages)
    spoil(entries)
    _map(index, entries)
    with pytest.raises(ValueError, match=message):
        imported()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"entries": []}', "[" * 100_000, "\udcff"])
def test_a_damaged_mapping_is_refused(index, imported, text):
    (index / "doc_mapping.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"damaged mapping: .*doc_mapping\.json"):
        imported()


def test_an_encoder_of_another_width_is_refused(index, rows, tiny_encoder, tmp_path):
    wide = SimpleNamespace(identity=dataclasses.replace(tiny_encoder.identity, dim=128))
    with pytest.raises(ValueError, match=r"wrong encoder .* has dim 128, .* has 32"):
        import_pylate(index, IndexConfig(source=rows, index_folder=str(tmp_path)), wide)


def test_a_folder_that_was_not_imported_says_how(index, tiny_encoder):
    with pytest.raises(FileNotFoundError, match=r"no index at .*colbert .*'legal-rag import-pylate'"):
        build_retriever(index, tiny_encoder)
