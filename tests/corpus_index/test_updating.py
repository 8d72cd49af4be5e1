"""The corpus index kept right: after each commit it is what a build by the same frozen numbers would make."""

import dataclasses
import random
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from legal_rag.corpus import Document
from legal_rag.corpus_index import IncrementalIndexer, building
from legal_rag.corpus_index.building import CorpusIndexer, read_centres
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index, read_statistics
from legal_rag.corpus_index.keywords import TermCounter, TermStatistics
from legal_rag.encoder import EncoderConfig
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index, examine, remove_documents
from legal_rag.library import Library
from legal_rag.library.manifest import write_manifest

INDEX = "corpus_index.sqlite"
KINDS = ("bail", "vente", "licenciement", "expropriation", "succession", "brevet")


def row(name, kind, times=2):
    text = f"La demande porte sur un {kind}. Le {kind} est contesté par le demandeur. " * times
    return {"id": name, "content": f"{text}Le juge de {name} a rejeté la demande.", "juridiction": "Cour de cassation"}


ROWS = [row(f"d{n}", KINDS[n % 4], 1 + n % 3) | {"decision_date": f"1993-05-{1 + n % 9:02}"} for n in range(22)]


@pytest.fixture(scope="module")
def home(index_of):
    return index_of(ROWS, n_bits=0).path.parent


@pytest.fixture
def library(home, tmp_path):
    shutil.copytree(home / "legal_french_index", tmp_path / "a" / "legal_french_index")
    return Library.open(tmp_path / "a")


@pytest.fixture
def add(tiny_encoder):
    def adding(library, *rows):
        add_documents(IndexConfig(source=list(rows), index_folder=str(library.path.parent)), tiny_encoder)
        return library.reload()

    return adding


def remove(library, *doc_ids):
    remove_documents(doc_ids, library.path.parent)
    return library.reload()


def present_rows(library):
    """All that the index holds of the documents of its Library's commit, table by table."""
    there = f"WHERE added <= {library.commit} AND (removed IS NULL OR removed > {library.commit})"
    columns = "document_key, id, content_hash, added, char_count, file_size, doc_type, cluster, summary_source, summary"
    queries = {
        "documents": f"SELECT {columns} FROM documents {there}",  # noqa: S608
        "keywords": f"SELECT keywords.* FROM keywords JOIN documents USING (document_key) {there}",  # noqa: S608
        "postings": f"SELECT postings.* FROM postings JOIN documents USING (document_key) {there}",  # noqa: S608
        "terms": "SELECT * FROM terms",
        "clusters": "SELECT * FROM clusters",
        "features": "SELECT * FROM features",
        "totals": f"SELECT documents, chars FROM totals WHERE at_commit = {library.commit}",  # noqa: S608
        "counted": "SELECT value FROM meta WHERE name = 'counted'",
    }
    with closing(sqlite3.connect(library.path / INDEX)) as connection:
        return {name: sorted(connection.execute(query), key=repr) for name, query in queries.items()}


@pytest.fixture
def built_anew(tmp_path, monkeypatch):
    """Build the index of a copy of a Library by the frozen numbers of the one that it has."""

    def building_anew(library):
        with closing(sqlite3.connect(library.path / INDEX)) as connection:
            statistics, centres = read_statistics(connection), read_centres(connection)
            topics = [topic for (topic,) in connection.execute("SELECT topic FROM clusters ORDER BY cluster")]

        shutil.rmtree(tmp_path / "anew", ignore_errors=True)
        shutil.copytree(library.path, tmp_path / "anew" / library.path.name)
        copy = Library.open(tmp_path / "anew")
        (copy.path / INDEX).unlink()
        with monkeypatch.context() as patch:
            patch.setattr(TermCounter, "freeze", lambda _: statistics)
            patch.setattr(building, "fit_centres", lambda drawn: centres)
            patch.setattr(type(centres), "labels", lambda *_: topics)
            CorpusIndexer(copy).build_corpus_index()
        return present_rows(copy)

    return building_anew


def assert_kept_right(library, anew):
    kept = present_rows(library)
    assert kept["documents"]
    for name, rows in anew.items():
        assert kept[name] == rows, name


@pytest.mark.parametrize("seed", range(2))
def test_after_any_changes_the_index_is_what_a_build_by_the_same_numbers_makes(library, add, built_anew, seed):
    rng = random.Random(seed)
    texts = {one["id"]: one for one in ROWS}
    for step in range(5):
        if rng.random() < 0.4:
            gone = rng.sample(sorted(texts), rng.randint(1, 3))
            library = remove(library, *gone)
            for doc_id in gone:
                del texts[doc_id]
        else:
            names = [f"n{step}{rng.randint(0, 9)}", rng.choice(sorted(texts)), rng.choice([one["id"] for one in ROWS])]
            new = {name: row(name, rng.choice(KINDS), rng.randint(1, 4)) for name in names}
            library = add(library, *new.values())
            texts |= new
    index = CorpusIndex.open(library)
    assert (sorted(index.documents), index.total_docs) == (sorted(texts), len(texts))
    assert index.total_chars == sum(len(one["content"]) for one in texts.values())
    for kind in KINDS:
        assert sorted(index.keyword(kind)) == sorted(name for name in texts if f"un {kind}" in texts[name]["content"])
    assert_kept_right(library, built_anew(library))
    assert examine(library) == []


def test_a_document_added_or_replaced_is_found_by_what_it_says_now_and_one_by_itself_changes_nothing(library, add):
    before = present_rows(library)
    assert present_rows(add(library, ROWS[3])) == before
    index = CorpusIndex.open(add(library, row("new", "brevet"), row("d1", "brevet")))
    assert index.keyword("brevet") == ["new", "d1"]
    assert "d1" not in index.keyword("vente")
    assert index.documents["d1"].summary.count("brevet")
    assert index.document_ids()[-2:] == ["new", "d1"]


def test_a_reader_opened_before_sees_its_commit_also_from_new_threads(library, add):
    reader = CorpusIndex.open(library)
    before = list(reader.metas()), reader.keyword_index, reader.clusters
    remove(add(library, row("new", "bail"), row("d0", "brevet")), "d4")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(lambda: (list(reader.metas()), reader.keyword_index, reader.clusters))
    assert read.result() == before
    assert {"new", "d0"} <= set(reader.reload().documents)


@pytest.mark.parametrize("name", ["metas", "summaries"])
def test_who_has_read_half_of_an_index_keeps_no_commit_waiting(library, add, monkeypatch, name):
    monkeypatch.setattr("legal_rag.corpus_index.index.PAGE", 1)
    monkeypatch.setattr("legal_rag.base.sqlite.PATIENCE_SECONDS", 0.1)
    index = CorpusIndex.open(library)
    everything = list(getattr(index, name)())
    reading = getattr(index, name)()
    first = next(reading)
    add(library, row("new", "bail"))
    assert [first, *reading] == everything


def test_a_reader_older_than_a_new_build_is_told_so_where_it_must_open_it_again(library, add):
    newer = remove(library, "d4")
    CorpusIndexer(newer).build_corpus_index()
    with pytest.raises(ValueError, match="knows nothing of the Library's commit 1"):
        CorpusIndex.open(library)
    assert CorpusIndex.open(newer).total_docs == 21


def killed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("killed_at", "documents_at_once"), [("_write_totals", 1), ("_add_documents", 100)])
def test_what_a_commit_that_never_came_left_is_forgotten(
    library, add, built_anew, monkeypatch, killed_at, documents_at_once
):
    monkeypatch.setattr("legal_rag.library.parts.BATCH", documents_at_once)
    before = present_rows(library)
    with monkeypatch.context() as patch:
        patch.setattr(f"legal_rag.corpus_index.building.{killed_at}", killed)
        with pytest.raises(KeyboardInterrupt):
            add(library, row("never", "brevet"), row("d2", "brevet"))
    assert present_rows(library.reload()) == before
    assert CorpusIndex.open(library.reload()).keyword("brevet") == []
    library = remove(add(library, row("new", "brevet")), "d7")
    assert CorpusIndex.open(library).keyword("brevet") == ["new"]
    assert_kept_right(library, built_anew(library))
    assert examine(library) == []


def test_what_a_commit_without_its_manifest_left_is_not_seen_and_then_forgotten(library, add, built_anew):
    before = present_rows(library)
    add(library, row("never", "brevet"), row("d2", "brevet"))
    write_manifest(library.path, library.manifest)
    assert present_rows(library.reload()) == before
    assert examine(library.reload()) == []
    library = remove(library, "d3")
    assert "never" not in CorpusIndex.open(library).documents
    assert_kept_right(library, built_anew(library))


def test_a_model_s_sections_go_with_the_document_that_they_are_of(library, add):
    CorpusIndexer(library).build_document_index("d2")
    index = CorpusIndex.open(add(library, row("d2", "brevet")))
    assert not index.documents["d2"].has_detailed_index
    assert index.document_index("d2").doc_id == "d2"


def statistics_of(library, *terms):
    with closing(sqlite3.connect(library.path / INDEX)) as connection:
        return read_statistics(connection, terms)


def test_compacting_renews_frequencies_and_topics(tmp_path, tiny_encoder, add):
    config = IndexConfig(source=ROWS[:6], index_folder=str(tmp_path / "plaid"))
    build_index(config, tiny_encoder)
    library = add(Library.open(tmp_path / "plaid"), *(row(f"n{n}", "brevet") for n in range(4)))
    library = remove(library, "d0")
    assert statistics_of(library, "brevet").frequencies == {}
    compact_index(config.index_folder)
    index = CorpusIndex.open(library.reload())
    assert statistics_of(index.library, "brevet") == TermStatistics(9, {"brevet": 4}, {"brevet": "brevet"})
    assert (index.meta["counted"], index.total_docs, index.document_ids()[-1]) == (9, 9, "n3")
    compacted = present_rows(index.library)
    CorpusIndexer(index.library).build_corpus_index()
    assert present_rows(index.library) == compacted
    assert examine(index.library) == []


def test_a_library_without_an_index_stays_without(tmp_path, tiny_encoder, add):
    config = IndexConfig(source=ROWS[:2], n_bits=0, corpus_index=False, index_folder=str(tmp_path / "bare"))
    build_index(config, tiny_encoder)
    library = remove(add(Library.open(tmp_path / "bare"), ROWS[5]), "d0")
    assert not (library.path / INDEX).exists()
    assert (list(library), examine(library)) == (["d1", "d5"], [])
    build_index(dataclasses.replace(config, corpus_index=True), tiny_encoder)
    assert has_corpus_index(library.reload())


def test_a_damaged_index_does_not_block_a_commit(library, add, caplog):
    (library.path / INDEX).write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    library = remove(add(library, row("new", "bail")), "d1")
    assert "the corpus index is left as it is" in caplog.text
    assert ("new" in library, "d1" in library) == (True, False)
    with pytest.raises(ValueError, match=r"corpus_index\.sqlite .*corpus-index'"):
        CorpusIndex.open(library)
    assert CorpusIndexer(library).build_corpus_index().keyword("bail")[-1] == "new"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DROP TABLE meta", ""),
        ("DROP TABLE postings", ""),
        ("UPDATE meta SET value = CAST(x'ff' AS TEXT)", ""),
        ("UPDATE meta SET value = '\"another\"' WHERE name = 'lineage'", "is of another build of the Library"),
    ],
)
def test_an_index_that_is_damaged_or_stale_does_not_block_a_commit_and_is_not_taken_for_right_after_it(
    library, add, caplog, damage, told
):
    with closing(sqlite3.connect(library.path / INDEX, isolation_level=None)) as connection:
        connection.execute(damage)
    library = add(library, row("new", "bail"))
    assert "the corpus index is left as it is: " in caplog.text
    assert told in caplog.text
    assert "new" in library
    assert not has_corpus_index(library)
    assert CorpusIndexer(library).build_corpus_index().keyword("bail")[-1] == "new"


def test_an_index_that_a_commit_passed_by_is_not_taken_for_right(library, add, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.commit.update_corpus_index", lambda *_: None)  # as an earlier version writes
        library = add(library, row("new", "bail"))
    with pytest.raises(ValueError, match="knows nothing of the Library's commit 2"):
        CorpusIndex.open(library)
    assert "knows nothing of the Library's commit 2" in examine(library)[0]
    library = add(library, row("newer", "bail"))
    assert not has_corpus_index(library)
    assert CorpusIndexer(library).build_corpus_index().document_ids()[-2:] == ["new", "newer"]


def test_documents_come_and_go_one_by_one(library, tmp_path, tiny_model_folder):
    build_index(
        IndexConfig(
            source=ROWS[:3], n_bits=0, index_folder=str(tmp_path), encoder=EncoderConfig(name=str(tiny_model_folder))
        )
    )
    file = tmp_path / "courrier.txt"
    file.write_text("Le brevet est nul. Le brevet n'est pas nouveau.", encoding="utf-8")
    indexer = IncrementalIndexer(tmp_path / "legal_french_index")
    indexer.add_document(file)
    indexer.add_document(row("d0", "brevet"))
    indexer.add_document(Document(id="lettre", content="Le bail est rompu.", extra={"nature": "courriel"}))
    indexer.remove_document("d1")
    index = CorpusIndex.open(Library.open(tmp_path))
    assert index.document_ids() == ["d2", "courrier.txt", "d0", "lettre"]
    assert index.documents["lettre"].doc_type == "courriel"
    assert index.keyword("brevets") == ["courrier.txt", "d0"]
    with pytest.raises(LookupError, match="no document 'd1'"):
        indexer.remove_document("d1")
    with pytest.raises(FileNotFoundError, match=r"nothing\.txt"):
        indexer.add_document(tmp_path / "nothing.txt")
