"""The corpus index, built: the same however it is built, and whatever stops it."""

import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from legal_rag.corpus_index import building, summaries
from legal_rag.corpus_index.building import CorpusIndexer
from legal_rag.corpus_index.index import CorpusIndex
from legal_rag.indexer import IndexConfig, add_documents, compact_index
from legal_rag.library import Library

INDEX = "corpus_index.sqlite"
TABLES = (
    "meta", "documents", "keywords", "postings", "terms", "clusters", "features", "totals", "model_records", "sections",
)  # fmt: skip


def tables_of(library):
    """All that the index's file holds."""
    with closing(sqlite3.connect(library.path / INDEX)) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in TABLES}  # noqa: S608


def assert_same(tables, others):
    for name in TABLES:
        assert tables[name] == others[name], name


@pytest.fixture(scope="module")
def home(index_of, sample_rows):
    return index_of(sample_rows[:24], n_bits=0).path.parent


@pytest.fixture
def library(home, tmp_path):
    """A Library of twenty-four decisions, to work on."""
    shutil.copytree(home / "legal_french_index", tmp_path / "legal_french_index")
    return Library.open(tmp_path)


@pytest.fixture
def library_of(index_of, tmp_path):
    return partial(index_of, folder=tmp_path, n_bits=0)


def test_an_index_built_again_is_the_same_whatever_the_batches(library):
    before = tables_of(library)
    assert [len(before[name]) > 0 for name in TABLES] == [True] * 8 + [False] * 2
    (library.path / INDEX).unlink()
    assert CorpusIndexer(library).build_corpus_index(batch_size=5).total_docs == 24
    assert_same(tables_of(library), before)
    assert [path.name for path in library.path.iterdir() if path.name.startswith((".corpus", INDEX))] == [INDEX]


def test_processes_build_what_one_does(library, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    before = tables_of(library)
    CorpusIndexer(library).build_corpus_index(parallel=True, batch_size=7)
    assert_same(tables_of(library), before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, sqlite3.OperationalError("database or disk is full")])
def test_a_build_that_stops_leaves_the_index_as_it_was_and_the_next_one_begins_anew(library, monkeypatch, error):
    before = tables_of(library)
    with monkeypatch.context() as patch, pytest.raises(error if isinstance(error, type) else type(error)):
        patch.setattr(building, "copy_model_texts", lambda *_: (_ for _ in ()).throw(error))
        CorpusIndexer(library).build_corpus_index(batch_size=4)
    assert_same(tables_of(library), before)
    (unfinished,) = library.path.glob(f".{INDEX}.building")
    unfinished.with_name(f"{unfinished.name}-wal").write_bytes(b"what a kill left")
    CorpusIndexer(library).build_corpus_index()
    assert_same(tables_of(library), before)


class Author:
    """A model that sums up by what a text begins with, unless a reply is set for texts that hold a word."""

    name = "author-1"

    def __init__(self, **replies):
        self.replies, self.asked = replies, []

    def query(self, prompt):
        self.asked.append(prompt)
        for word, reply in self.replies.items():
            if word in prompt:
                if isinstance(reply, BaseException):
                    raise reply
                return reply
        return f"Le juge a rejeté la demande du requérant\n(lue en {len(prompt)} signes)."


TEXTS = [
    {"id": "a", "content": "Le bailleur réclame les loyers. Le preneur ne les doit pas.", "summary": "Officiel."},
    {"id": "b", "content": "Le vendeur réclame le prix. L'acheteur ne le doit pas."},
    {"id": "c", "content": "Le salarié réclame une indemnité. L'employeur la doit."},
]


def test_a_model_sums_up_what_has_no_official_summary_but_no_library_built_anew_meanwhile(library_of):
    library, author = library_of(TEXTS), Author()
    index = CorpusIndexer(library, author).build_corpus_index()
    summaries = dict(index.summaries())
    assert (summaries["a"], index.summary_sources()) == ("Officiel.", {"author-1": 2, "official": 1})
    assert summaries["b"].startswith("Le juge a rejeté la demande du requérant (lue en ")
    assert len(author.asked) == 2
    library = library_of(TEXTS)
    library_of(TEXTS[:2])
    with pytest.raises(ValueError, match="was built anew since it was opened"):
        CorpusIndexer(library).build_corpus_index()


def test_where_a_model_fails_sentences_of_the_text_stand_in(library_of, caplog):
    replies = {
        "vendeur0": RuntimeError("no route to host"),
        "vendeur1": "",
        "vendeur2": "Non.",
        "vendeur3": "The court dismissed the claim of the seller because it was not founded.",
        "vendeur4": "Le juge a rejeté la demande. " * 200,
        "vendeur5": '{"summary": ',
        "vendeur6": "[{}]",
        "vendeur7": '{"summary": {"a": 1}}',
        "vendeur8": '{"title": "Un titre seul"}',
        "vendeur9": "{" * 9999,
    }
    texts = [f"Le {name} réclame le prix. L'acheteur ne le doit pas." for name in replies]
    library = library_of([*TEXTS, *({"id": text, "content": text} for text in texts)])
    index = CorpusIndexer(library, Author(**replies)).build_corpus_index()
    summaries = dict(index.summaries())
    assert [summaries[text] for text in texts] == texts
    assert index.summary_sources() == {"author-1": 2, "extractive": 10, "official": 1}
    assert "the model gave no usable summary of 10 of 12 documents" in caplog.text


def test_a_long_text_is_read_whole_and_its_summaries_are_merged(library_of, monkeypatch):
    monkeypatch.setattr(summaries, "READ_CHARS", 2000)
    author = Author(résumés="Le juge a condamné le vendeur à rendre le prix.")
    library = library_of([{"id": "long", "content": " ".join(f"Le vendeur {n} réclame le prix." for n in range(200))}])
    index = CorpusIndexer(library, author).build_corpus_index()
    assert dict(index.summaries()) == {"long": "Le juge a condamné le vendeur à rendre le prix."}
    read = " ".join(author.asked).split()
    assert all(str(n) in read for n in range(200))


def test_a_model_s_summaries_outlive_a_new_build_of_the_index_which_asks_for_the_missing_ones_alone(library_of):
    library = library_of(TEXTS)
    CorpusIndexer(library, Author(vendeur=RuntimeError("down"))).build_corpus_index()
    before = dict(CorpusIndex.open(library).summaries())
    assert dict(CorpusIndexer(library).build_corpus_index().summaries()) == before
    author = Author()
    index = CorpusIndexer(library, author).build_corpus_index()
    assert (len(author.asked), index.summary_sources()) == (1, {"author-1": 2, "official": 1})
    assert dict(index.summaries()) | {"b": before["b"]} == before


RECORD = {
    "summary": "Le vendeur réclame à l'acheteur le prix de la vente, que celui-ci ne doit pas.",
    "title": "Mise en demeure de payer",
    "keywords": ["prix de vente", "Recouvrement de créances", "vendeur"],
    "date": "12 novembre 2024",
    "author": "Maître Claire Rouvière",
}
NOTE = {"id": "notes/b.md", "title": "b", "content": f"{TEXTS[1]['content']} Vu le 12/11/2024, maître Claire Rouvière."}


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "Voici la fiche :\n{}\nVoilà."])
def test_a_model_s_record_gives_summary_title_keywords_date_and_author(library_of, form):
    author = Author(vendeur=form.replace("{}", json.dumps(RECORD, ensure_ascii=False)))
    index = CorpusIndexer(library_of([TEXTS[0], NOTE]), author).build_corpus_index()
    meta = index.documents["notes/b.md"]
    assert (meta.summary, meta.title, meta.date, meta.author) == (
        RECORD["summary"], "Mise en demeure de payer", "2024-11-12", "Maître Claire Rouvière",
    )  # fmt: skip
    assert meta.keywords[:3] == tuple(RECORD["keywords"])
    assert index.keyword("créance") == ["notes/b.md"]
    assert (index.keyword("prix"), index.keyword_index["prix de vente"]) == (["notes/b.md"], ["notes/b.md"])
    assert index.date_index == {"2024-11-12": ["notes/b.md"]}


def test_a_model_s_date_and_author_that_the_text_lacks_are_dropped_and_what_the_source_says_outweighs_it(library_of):
    said = RECORD | {"date": "2023-01-01", "author": "Maître Personne", "title": ["x"], "keywords": "prix"}
    index = CorpusIndexer(library_of([NOTE]), Author(vendeur=json.dumps(said))).build_corpus_index()
    meta = index.documents["notes/b.md"]
    assert (meta.summary, meta.title, meta.date, meta.author) == (RECORD["summary"], "b", "", "")
    row = {**NOTE, "title": "Note", "decision_date": "2020-02-02", "author": "Me Sirot"}
    index = CorpusIndexer(library_of([row]), Author(vendeur=json.dumps(RECORD))).build_corpus_index()
    meta = index.documents["notes/b.md"]
    assert (meta.title, meta.date, meta.author) == ("Note", "2020-02-02", "Me Sirot")
    assert list(index.date_index) == ["2020-02-02"]


def test_a_model_s_record_outlives_a_new_build(library_of):
    library = library_of([TEXTS[0], NOTE])
    CorpusIndexer(library, Author(vendeur=json.dumps(RECORD))).build_corpus_index()
    before = tables_of(library)
    index = CorpusIndexer(library).build_corpus_index()
    for name in ("keywords", "postings", "model_records"):
        assert tables_of(library)[name] == before[name]
    assert index.documents["notes/b.md"].date == "2024-11-12"


def test_compacting_renews_the_numbers_and_keeps_what_a_model_wrote(library_of, tiny_encoder, tmp_path):
    library = library_of(TEXTS, n_bits=4)
    CorpusIndexer(library, Author()).build_corpus_index()
    CorpusIndexer(library, Author()).build_document_index("c")
    more = [{"id": "d", "content": "Le salarié réclame une prime. L'employeur la doit."}, {**TEXTS[1], "title": "B"}]
    add_documents(IndexConfig(source=more, index_folder=str(tmp_path)), tiny_encoder)
    before = dict(CorpusIndex.open(Library.open(tmp_path)).summaries())
    compact_index(str(tmp_path))
    index = CorpusIndex.open(Library.open(tmp_path))
    assert (dict(index.summaries()), index.summary_sources()) == (
        before,
        {"author-1": 1, "extractive": 2, "official": 1},
    )
    assert (index.meta["counted"], index.total_docs) == (4, 4)
    assert [doc_id for doc_id in index.documents if index.documents[doc_id].has_detailed_index] == ["c"]
    compacted = tables_of(index.library)
    CorpusIndexer(index.library).build_corpus_index()
    assert_same(tables_of(index.library), compacted)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "one", "content": "Le bail."}],
        [
            {"id": "stop", "content": "de la et du"},
            {"id": "figures", "content": "12 34 56 ; 7/8"},
            {"id": "signs", "content": "!!! ??? §§§"},
            {"id": "huge", "content": "motmotmot " * 5000},
            {"id": "line", "content": "a" * 100_000},
            {"id": "caps", "content": "LE BAIL COMMERCIAL EST RÉSILIÉ. " * 5},
            {"id": "odd", "content": "\u200bé\0🙂 \ud800"},
            *({"id": str(n), "content": "Le même texte pour toutes les décisions."} for n in range(30)),
        ],
    ],
    ids=lambda rows: rows[0]["id"],
)
def test_any_corpus_can_be_indexed_and_read(library_of, rows):
    library = library_of(rows)
    index = CorpusIndex.open(library)
    metas = list(index.metas())
    assert sorted(meta.doc_id for meta in metas) == sorted(row["id"] for row in rows)
    assert all(len(meta.summary) <= 700 for meta in metas)
    clustered = [doc_id for members in index.clusters.values() for doc_id in members]
    assert sorted(clustered) == sorted(meta.doc_id for meta in metas if meta.cluster is not None)
    before = tables_of(library)
    CorpusIndexer(library).build_corpus_index(batch_size=1)
    assert_same(tables_of(library), before)
