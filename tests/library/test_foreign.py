"""Indexes of the old form: written by fast-plaid itself, read with each form of mapping, searched for real."""

import dataclasses
import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from fast_plaid.search import FastPlaid

from legal_rag.encoder import EncoderConfig
from legal_rag.library import Filters, Library
from legal_rag.library.foreign import ForeignIndex
from legal_rag.retriever import Retriever, build_retriever, open_corpus
from legal_rag.tools import lookup_chunk, lookup_legal_doc

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
    return _write_plaid(tmp_path_factory.mktemp("written"), [text for _, text in passages], tiny_encoder)


@pytest.fixture
def index(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "legal_french_index"))


@pytest.fixture
def dataset(rows):
    return _dataset(rows)


def _write_plaid(folder, texts, encoder):
    with torch.random.fork_rng(), FastPlaid(str(folder / "fast_plaid_index"), device="cpu") as plaid:
        torch.manual_seed(0)  # `seed` alone does not fix what k-means sees
        plaid.create([torch.from_numpy(matrix) for matrix in encoder.encode_documents(texts)], nbits=4, seed=1)
    return folder


def _dataset(rows):
    return Dataset.from_list([{key: row[key] for key in ("id", "title", "content", "decision_date")} for row in rows])


def _question(passage):
    return passage[200:320]  # past the opening, which decisions share


def _map(index, entries, **names):
    (index / "doc_mapping.json").write_text(json.dumps({**names, "entries": entries}), encoding="utf-8")


def _by_position(values):
    return {str(position): value for position, value in enumerate(values)}


def _files(folder):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


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
@pytest.mark.parametrize("position", [3, 17])
def test_a_search_finds_the_document_of_a_passage(index, dataset, passages, rows, tiny_encoder, form, position):
    _map(index, _by_position(_forms(passages, rows)[form]))
    doc_id, text = passages[position]
    retriever = build_retriever(open_corpus(index, dataset, encoder=tiny_encoder), tiny_encoder)

    hit = retriever.search(_question(text))[0]

    content = rows[position % N_DOCUMENTS]["content"]
    assert (hit.doc_id, hit.chunk_id) == (doc_id, f"{doc_id}-{position // N_DOCUMENTS}")
    assert (hit.char_start, hit.char_end, hit.text) == (0, len(content), content)
    assert (hit.title, hit.decision_date) == (rows[position % 12]["title"], rows[position % 12]["decision_date"])


def test_without_a_mapping_positions_are_the_rows_of_the_dataset_if_they_are_as_many(
    index, dataset, rows, passages, tiny_encoder
):
    with pytest.raises(ValueError, match=r"no entries in .*24 passages cannot be the dataset's 12 rows"):
        open_corpus(index, dataset, encoder=tiny_encoder)
    dataset = _dataset([{**rows[n % N_DOCUMENTS], "id": f"row{n}"} for n in range(len(passages))])
    retriever = build_retriever(open_corpus(index, dataset, encoder=tiny_encoder), tiny_encoder)
    assert retriever.search(_question(passages[17][1]))[0].chunk_id == "row17-0"


def test_a_search_may_be_kept_to_some_documents_and_show_each_once(index, dataset, passages, rows, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    retriever = Retriever(open_corpus(index, dataset, encoder=tiny_encoder), tiny_encoder)
    some = [rows[2]["id"], rows[9]["id"]]
    hits = retriever.search(_question(passages[3][1]), k=50, filters=Filters(doc_ids=[*some, "UNKNOWN"]))
    assert sorted(hit.chunk_id for hit in hits) == sorted(f"{doc_id}-{n}" for doc_id in some for n in (0, 1))
    assert retriever.search(_question(passages[3][1]), filters=Filters(doc_ids=["UNKNOWN"])) == []
    hits = retriever.search("Le pourvoi est rejeté", k=50, by_document=True)
    assert sorted(hit.doc_id for hit in hits) == sorted(row["id"] for row in rows)


def test_nothing_is_written_into_the_index_and_no_pickle_is_read(
    index, dataset, passages, tiny_encoder, monkeypatch, tmp_path
):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    assert (index / "fast_plaid_index" / "embeddings.npy").is_file()
    for name in ("embeddings.npy", "plaid_ids_to_documents_ids.pkl"):
        (index / "fast_plaid_index" / name).write_bytes(EVIL)
        (index / name).write_bytes(EVIL)
    monkeypatch.chdir(tmp_path)
    before = _files(index)
    build_retriever(open_corpus(index, dataset, encoder=tiny_encoder), tiny_encoder, device="cuda").search("La cour")
    assert _files(index) == before
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


@pytest.mark.parametrize("kind", ["pkl", "sqlite"])
@pytest.mark.parametrize("names", [None, {"dataset": "elsewhere"}])
def test_an_index_of_pylate_says_by_its_own_map_what_its_passages_are(
    index, dataset, passages, rows, tiny_encoder, kind, names
):
    _pylate(index, passages, rows, kind)
    if names:
        (index / "doc_mapping.json").write_text(json.dumps(names), encoding="utf-8")
    corpus = open_corpus(index, dataset, encoder=tiny_encoder)
    hit = build_retriever(corpus, tiny_encoder).search(_question(passages[17][1]))[0]
    assert hit.chunk_id == f"{passages[17][0]}-1"
    assert corpus.manifest["source"]["name"] == ("elsewhere" if names else "")


def test_what_pylate_itself_wrote_opens_and_scores_as_there(rows, passages, tiny_encoder, tmp_path):
    pylate_indexes = pytest.importorskip("pylate.indexes")
    plaid = pylate_indexes.PLAID(str(tmp_path), "colbert", device="cpu", show_progress=False)
    vectors = tiny_encoder.encode_documents([text for _, text in passages])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plaid.add_documents(_forms(passages, rows)["chunk ids"], vectors)
    retriever = build_retriever(open_corpus(tmp_path / "colbert", _dataset(rows), encoder=tiny_encoder), tiny_encoder)
    question = _question(passages[17][1])
    (expected,) = plaid(tiny_encoder.encode_queries([question]), k=5)
    found = retriever.search(question, 5)
    assert [hit.chunk_id for hit in found] == [one["id"] for one in expected]
    assert [hit.score for hit in found] == pytest.approx([one["score"] for one in expected], abs=0.02)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (EVIL, r"damaged mapping: .*\.pkl .it names os\.system, expected text and numbers"),
        (pickle.dumps({0: Path("a")}), r"damaged mapping: .*it names pathlib[\w.]*\.PosixPath, expected text"),
        (pickle.dumps({0: 1.5}), r"damaged mapping: .*expected ids, found 1\.5"),
        (pickle.dumps([1]), "damaged mapping: .*'list' object has no attribute 'items'"),
        (b"\x80\x05", "damaged mapping: .*Ran out of input"),
        (b"", "damaged mapping: .*Ran out of input"),
        (pickle.dumps({0: "A"}), "maps 1 passages, the index holds 24"),
    ],
)
def test_a_map_of_pylate_with_more_than_ids_runs_nothing(
    index, dataset, tiny_encoder, monkeypatch, tmp_path, content, message
):
    monkeypatch.chdir(tmp_path)
    (index / "plaid_ids_to_documents_ids.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_corpus(index, dataset, encoder=tiny_encoder)
    assert not Path("EVIL").exists()


def test_an_array_of_objects_is_refused(index, dataset, passages, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    np.save(index / "fast_plaid_index" / "centroids.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"damaged PLAID index: .*centroids\.npy"):
        open_corpus(index, dataset, encoder=tiny_encoder)


@pytest.mark.parametrize("place", ["..", "fast_plaid_index"])
def test_the_mapping_may_lie_above_the_index_or_in_it(index, dataset, passages, tiny_encoder, place):
    _map(index / place, _by_position(doc_id for doc_id, _ in passages))
    corpus = open_corpus(index, dataset, encoder=tiny_encoder)
    assert corpus.manifest["counts"] == {"documents": N_DOCUMENTS, "chunks": len(passages)}


def test_the_index_may_be_a_bare_folder_of_its_files(index, dataset, passages, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    bare = Path(shutil.move(index / "fast_plaid_index", index.parent / "plaid"))
    shutil.move(index / "doc_mapping.json", bare)
    corpus = open_corpus(bare, dataset, encoder=tiny_encoder)
    assert corpus.shard_folders == [bare]
    assert Retriever(corpus, tiny_encoder).search(_question(passages[5][1]))[0].doc_id == passages[5][0]


def test_a_mapping_from_id_to_row_serves_as_dataset(index, rows, passages, tiny_encoder):
    _map(index, _by_position(_forms(passages, rows)["row numbers"]))
    texts = {row["id"]: {"content": row["content"]} for row in rows}
    corpus = open_corpus(index, texts, encoder=tiny_encoder)
    assert corpus.document(rows[4]["id"]).content == rows[4]["content"]
    assert [chunk.doc_id for chunk in corpus.chunks_at([(0, 14), (0, 3)])] == [rows[2]["id"], rows[3]["id"]]


@pytest.mark.parametrize("kind", ["files", "saved", "saved with splits"])
def test_the_dataset_that_the_mapping_names_is_loaded(index, dataset, rows, passages, tiny_encoder, tmp_path, kind):
    folder = tmp_path / "dataset"
    if kind == "files":
        folder.mkdir()
        dataset.to_parquet(folder / "train.parquet")
    else:
        (dataset if kind == "saved" else DatasetDict({"train": dataset})).save_to_disk(folder)
    _map(index, _by_position(doc_id for doc_id, _ in passages), dataset=str(folder), split="train", config=None)
    corpus = open_corpus(index, encoder=tiny_encoder)
    assert corpus.document(rows[1]["id"]).content == rows[1]["content"]


def test_html_of_the_dataset_is_cleaned_and_two_rows_of_one_id_are_one_document(index, rows, passages, tiny_encoder):
    _map(index, _by_position(_forms(passages, rows)["row numbers"]))
    marked = {row["id"]: {"content": "Attendu<br/>que l&#39;arrêt"} for row in rows}
    (chunk,) = open_corpus(index, marked, encoder=tiny_encoder).chunks_at([(0, 0)])
    assert (chunk.text, chunk.char_end) == ("Attendu\nque l'arrêt", 19)
    _map(index, _by_position(position % 2 for position in range(len(passages))))
    corpus = open_corpus(index, _dataset([rows[0], rows[0]]), encoder=tiny_encoder)
    assert [chunk.chunk_index for chunk in corpus.chunks_of(rows[0]["id"])] == list(range(len(passages)))


def test_the_tools_read_a_foreign_index(index, dataset, rows, passages, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    corpus = open_corpus(index, dataset, encoder=tiny_encoder)
    doc_id = rows[0]["id"]
    assert rows[0]["content"] in lookup_legal_doc(f"{doc_id}-1", corpus)
    assert f"[Source: {doc_id}, chars 0-{len(rows[0]['content'])}]" in lookup_chunk(f"{doc_id}-1", 0, dataset=corpus)


def test_passages_of_a_document_come_in_the_order_of_their_chunk_ids(index, dataset, passages, rows, tiny_encoder):
    entries = [f"{doc_id}-{7 if position < N_DOCUMENTS else 2}" for position, (doc_id, _) in enumerate(passages)]
    _map(index, _by_position(entries))
    corpus = open_corpus(index, dataset, encoder=tiny_encoder)
    doc_id = rows[5]["id"]
    assert [chunk.chunk_index for chunk in corpus.chunks_of(doc_id)] == [2, 7]
    assert [chunk.chunk_index for chunk in corpus.chunks_of(doc_id, 3, 7)] == [7]
    assert corpus.chunks_of("UNKNOWN") == []
    assert [list(positions) for positions in corpus.positions(Filters(doc_ids=[doc_id]))] == [[5, 17]]


def test_ids_that_are_or_end_in_numbers_are_ids_before_they_are_rows_or_chunks(index, rows, passages, tiny_encoder):
    backwards = {str(N_DOCUMENTS - 1 - row): {"content": rows[row]["content"]} for row in range(N_DOCUMENTS)}
    _map(index, _by_position(str(position % N_DOCUMENTS) for position in range(len(passages))))
    chunk = open_corpus(index, backwards, encoder=tiny_encoder).chunks_at([(0, 0)])[0]
    assert (chunk.doc_id, chunk.text) == ("0", rows[-1]["content"])
    texts = {f"2001-{number}": {"content": row["content"]} for number, row in enumerate(rows)}
    _map(index, _by_position(f"2001-{position % N_DOCUMENTS}" for position in range(len(passages))))
    chunk = open_corpus(index, texts, encoder=tiny_encoder).chunks_at([(0, 15)])[0]
    assert (chunk.doc_id, chunk.chunk_index) == ("2001-3", 1)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda entries: entries.pop("3"), "maps 23 passages, the index holds 24"),
        (lambda entries: entries.update({"24": entries["3"]}), "maps 25 passages, the index holds 24"),
        (lambda entries: entries.update({"24": entries.pop("3")}), "maps 24 passages, .* numbered from 0"),
        (lambda entries: entries.update({"03": entries.pop("4")}), "maps 24 passages, .* numbered from 0"),
        (lambda entries: entries.update({"-1": entries.pop("3")}), "maps '-1'"),
        (lambda entries: entries.update({"x-0": entries.pop("3")}), r"maps 'x-0' \(expected positions"),
        (lambda entries: entries.update({"3": "UNKNOWN"}), "maps position 3 to 'UNKNOWN'"),
        (lambda entries: entries.update({"3": "UNKNOWN-1"}), "maps position 3 to 'UNKNOWN-1'"),
        (lambda entries: entries.update({"0": 5}), "maps position 0 to 5"),
        (lambda entries: entries.update({"0": None}), "maps position 0 to None"),
        (lambda entries: entries.update({"0": {"a": "b"}}), "maps position 0 to {'a': 'b'}"),
        (lambda entries: entries.update(dict.fromkeys(entries, 12)), "names row 12 of a dataset of 12 rows"),
        (lambda entries: entries.update(dict.fromkeys(entries, -1)), "names row -1 of"),
        (lambda entries: entries.update(dict.fromkeys(entries, 10**30)), "names row 10+ of"),
        (lambda entries: entries.update(dict.fromkeys(entries, True)), "maps position 0 to True"),
        (lambda entries: entries.update({key: f"{value}-0" for key, value in entries.items()}), "two passages are"),
        (lambda entries: entries.update({key: f"{v}-{'9' * 30}" for key, v in entries.items()}), "maps position 0"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(index, dataset, passages, tiny_encoder, spoil, message):
    entries = _by_position(doc_id for doc_id, _ in passages)
    spoil(entries)
    _map(index, entries)
    with pytest.raises(ValueError, match=message):
        open_corpus(index, dataset, encoder=tiny_encoder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"entries": []}', "[" * 100_000, "\udcff"])
def test_a_damaged_mapping_is_refused(index, dataset, tiny_encoder, text):
    (index / "doc_mapping.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"damaged mapping: .*doc_mapping\.json"):
        open_corpus(index, dataset, encoder=tiny_encoder)


def test_an_index_whose_dataset_is_not_named_or_cannot_be_loaded_says_so(index, passages, tiny_encoder, tmp_path):
    with pytest.raises(ValueError, match="does not name its dataset"):
        open_corpus(index, encoder=tiny_encoder)
    _map(index, _by_position(doc_id for doc_id, _ in passages), dataset=str(tmp_path / "none"), config="juri")
    with pytest.raises(FileNotFoundError, match=r"cannot load the dataset .*none', config 'juri', split 'train'"):
        open_corpus(index, encoder=tiny_encoder)


def test_a_dataset_without_the_columns_needed_and_an_encoder_of_another_width_are_refused(index, dataset, tiny_encoder):
    with pytest.raises(ValueError, match=r"no column 'id' in the dataset .*doc_id, title, content"):
        open_corpus(index, dataset.rename_column("id", "doc_id"), encoder=tiny_encoder)
    with pytest.raises(ValueError, match="no column 'content' in the dataset"):
        open_corpus(index, dataset.rename_column("content", "text"), encoder=tiny_encoder)
    wide = dataclasses.replace(tiny_encoder.identity, dim=128)
    with pytest.raises(ValueError, match=r"wrong encoder .* has dim 128, .* has 32"):
        open_corpus(index, dataset, encoder=wide)


def test_what_cannot_be_read_by_id_is_no_dataset(index, dataset, rows, tiny_encoder):
    for other, name in (
        (DatasetDict({"train": dataset}), "DatasetDict with splits 'train'"),
        (dataset.to_iterable_dataset(), "IterableDataset"),
        (rows, "list"),
        ("artefactory/x", "str"),
    ):
        with pytest.raises(TypeError, match=f"not a dataset: {name}"):
            open_corpus(index, other, encoder=tiny_encoder)


def test_what_the_index_does_not_hold_is_named(index, dataset, passages, rows, tiny_encoder):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    corpus = open_corpus(index, dataset, encoder=tiny_encoder)
    with pytest.raises(LookupError, match=f"no document '{rows[3]['id']}X' .*nearest id is '{rows[3]['id']}'"):
        corpus.document(rows[3]["id"] + "X")
    for shard, position in ((0, 24), (0, -1), (1, 0)):
        with pytest.raises(LookupError, match=f"no chunk at shard {shard}, position {position}"):
            corpus.chunks_at([(shard, position)])


def test_an_encoder_may_be_given_by_its_folder_and_is_loaded_again_for_searching(
    index, dataset, passages, tiny_model_folder
):
    _map(index, _by_position(doc_id for doc_id, _ in passages))
    for encoder in (tiny_model_folder, EncoderConfig(name=str(tiny_model_folder))):
        corpus = open_corpus(index, dataset, encoder=encoder)
        assert build_retriever(corpus).search(_question(passages[4][1]))[0].doc_id == passages[4][0]


def test_the_old_form_needs_an_encoder_and_a_library_its_manifest_alone(
    index, dataset, tiny_library, tiny_encoder, tmp_path
):
    with pytest.raises(ValueError, match="does not say with which encoder it was made"):
        build_retriever(index)
    assert isinstance(open_corpus(tiny_library.path), Library)
    broken = Path(shutil.copytree(tiny_library.path, tmp_path / "broken"))
    (broken / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no index at .*broken"):
        open_corpus(broken, dataset, encoder=tiny_encoder)
    with pytest.raises(FileNotFoundError, match="no index at"):
        open_corpus(tmp_path / "none")


def test_a_retriever_is_built_from_the_folder_of_an_old_index(index, dataset, passages, tiny_encoder, tmp_path):
    dataset.save_to_disk(tmp_path / "dataset")
    _map(index, _by_position(doc_id for doc_id, _ in passages), dataset=str(tmp_path / "dataset"))
    retriever = build_retriever(index, tiny_encoder)
    assert isinstance(retriever.corpus, ForeignIndex)
    assert retriever.search(_question(passages[5][1]))[0].doc_id == passages[5][0]
