"""The corpus index, read: what each document is, and what leads to it."""

import json
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from support.indexed_corpora import indexed

from legal_rag.corpus_index import IncrementalIndexer
from legal_rag.corpus_index.building import CorpusIndexer
from legal_rag.corpus_index.index import CorpusIndex, has_corpus_index
from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.indexer import IndexConfig, build_index, extract_library
from legal_rag.library import Library

CANDIDATE = """Le candidat n'a pas déposé son compte de campagne dans le délai de deux mois. La commission nationale
des comptes de campagne a saisi le Conseil. Le compte de campagne d'un candidat doit être présenté par un expert.
Il est déclaré inéligible pour un an. Les élections du 25 mai 1997 ne sont pas annulées. L'élection est acquise."""
LENDER = """La société Lever a assigné M. Dupuis en paiement d'un prêt. Le prêt consenti par la banque portait intérêt.
La banque n'a pas mis en garde l'emprunteur. L'emprunteur non averti a droit à une mise en garde. Le prêt est nul.
La somme de 12 000 euros est due à la société Lever."""
ROWS = [
    {
        "id": "E1",
        "title": "Décision n° 97-2202 AN",
        "content": CANDIDATE,
        "decision_date": "1997-10-23",
        "juridiction": "Conseil constitutionnel",
        "number": "97-2202",
        "nature": "AN",
        "solution": "Inéligibilité",
        "summary": "Un candidat sans compte\nest inéligible.",
    },
    {
        "id": "E2",
        "content": CANDIDATE.replace("25 mai", "1er juin") + "\nVu la décision n° 97-2202 du Conseil constitutionnel.",
        "decision_date": "1998-02-12",
        "juridiction": "Conseil constitutionnel",
    },
    {
        "id": "B1",
        "content": LENDER + "\nVu l'article 1147 du code civil.",
        "decision_date": "1998-02-12",
        "juridiction": "Cour de cassation",
        "formation": "CHAMBRE_COMMERCIALE",
    },
    {"id": "B2", "content": LENDER.replace("Lever", "Unilor"), "author": "Me Sirot", "file_path": "pièces/b2.txt"},
    {"id": "é", "content": "Le prêt."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory, tiny_encoder):
    return indexed(tmp_path_factory.mktemp("read"), ROWS, tiny_encoder)


@pytest.fixture
def copy(index, tmp_path):
    """A Library of one's own, to damage or to change."""
    shutil.copytree(index.library.path, tmp_path / index.library.path.name)
    return Library.open(tmp_path)


def test_a_document_s_entry_says_what_its_row_and_its_text_say(index):
    meta = index.documents["E1"]
    assert (meta.doc_id, meta.title, meta.date, meta.juridiction, meta.solution, meta.number, meta.doc_type) == (
        "E1", "Décision n° 97-2202 AN", "1997-10-23", "Conseil constitutionnel", "Inéligibilité", "97-2202", "AN",
    )  # fmt: skip
    assert (meta.summary, meta.author) == ("Un candidat sans compte est inéligible.", "Conseil constitutionnel")
    assert (meta.char_count, meta.file_size) == (len(CANDIDATE), len(CANDIDATE.encode()))
    assert {"compte de campagne", "candidat"} & set(meta.keywords)
    assert (meta.has_detailed_index, meta.detailed_index_path) == (False, "")
    meta = index.documents["B2"]
    assert (meta.author, meta.file_path, meta.doc_type) == ("Me Sirot", "pièces/b2.txt", "document")
    assert index.documents["B1"].doc_type == "décision"


def test_documents_are_counted_and_streamed_in_the_order_indexed_in_bulk_as_one_by_one(index):
    ids = ["E1", "E2", "B1", "B2", "é"]
    assert (list(index.documents), len(index.documents), index.total_docs) == (ids, 5, 5)
    assert index.total_chars == sum(len(row["content"]) for row in ROWS)
    assert [meta.doc_id for meta in index.documents.values()] == ids
    assert (index.document_ids(2, 1), index.document_ids(offset=4), index.document_ids(0)) == (["E2", "B1"], ["é"], [])
    assert index.corpus_path == str(index.library.path)
    assert list(index.metas(entities=True)) == [index.documents[doc_id] for doc_id in index.documents]
    assert [meta.entities for meta in index.metas()] == [()] * 5


@pytest.mark.parametrize("doc_id", ["E3", "", "e1", "E1 ", "'; DROP TABLE documents; --", "\udce9"])
def test_an_unknown_document_is_a_key_error_that_names_the_nearest(index, doc_id):
    with pytest.raises(KeyError, match=r"no document .* \(the nearest is .+\)"):
        index.document_meta(doc_id)
    assert doc_id not in index.documents


@pytest.mark.parametrize("page", [2, 1000])
def test_entries_are_given_in_the_order_asked_each_once_without_unknown_ids(index, monkeypatch, page):
    monkeypatch.setattr("legal_rag.corpus_index.index.PAGE", page)
    assert [meta.doc_id for meta in index.metas()] == index.document_ids()
    assert [meta.doc_id for meta in index.metas(["é", "B1", "nobody", "E2", "B1"])] == ["é", "B1", "E2"]
    assert list(index.metas([])) == []


def test_summaries_are_official_or_sentences_of_the_text(index):
    summaries = dict(index.summaries())
    assert summaries["E1"] == "Un candidat sans compte est inéligible."
    sentences = summaries["B1"].split(" […] ")
    assert all(part in " ".join(ROWS[2]["content"].split()) for part in sentences)
    assert (list(summaries), summaries["é"]) == (index.document_ids(), "Le prêt.")
    assert index.summary_sources() == {"extractive": 4, "official": 1}
    assert [doc_id for doc_id, _ in index.summaries(["B2", "nobody", "E1"], limit=1)] == ["E1"]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("prêt", ["B1", "B2", "é"]),
        ("PRETS", ["B1", "B2", "é"]),
        ("compte de campagne", ["E1", "E2"]),
        ("campagnes, comptes", ["E1", "E2"]),
        ("prêt campagne", []),
        ("anticonstitutionnellement", []),
        ("de la", []),
        ("", []),
        ("%", []),
        ("'\" OR 1=1", []),
    ],
)
def test_a_keyword_is_found_in_any_number_case_and_accents(index, asked, found):
    assert index.keyword(asked) == found


def test_every_keyword_shown_and_each_term_of_the_entities_lead_to_documents(index):
    shown = {}
    for meta in index.metas():
        for keyword in meta.keywords:
            shown.setdefault(keyword, []).append(meta.doc_id)
    assert index.keyword_index == shown
    assert list(shown) != list(index.keyword_index) == sorted(shown)
    assert all(set(doc_ids) <= set(index.keyword(keyword)) for keyword, doc_ids in shown.items())
    assert list(index.entity_index) == sorted(index.entity_index)
    assert all(doc_ids == index.entity(term) for term, doc_ids in index.entity_index.items() if "-mot:" not in term)
    assert "société Lever" in index.documents["B1"].entities


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("société Lever", ["B1"]),
        ("LEVER", ["B1"]),
        ("12 000 euros", ["B1", "B2"]),
        ("1147 euros", []),  # no article 1147
        ("article 1147", ["B1"]),
        ("25 mai 1997", ["E1"]),
        ("date:1997-06-01", ["E2"]),
        ("Dupuis", ["B1", "B2"]),
        ("Nemo", []),
        ("", []),
        ("de la société", []),
    ],
)
def test_an_entity_is_found_as_people_write_it(index, asked, found):
    assert index.entity(asked) == found


def test_entities_cannot_be_asked_for_before_they_are_extracted_and_then_by_an_index_that_is_open(copy):
    (copy.path / "entities.sqlite").unlink()
    library = Library(copy.path)
    index = CorpusIndex.open(library)
    with pytest.raises(ValueError, match="no entities in .*: 'legal-rag extract' finds them"):
        index.entity("Lever")
    assert (index.entity_index, index.documents["B1"].entities) == ({}, ())
    extract_library(library, ExtractionSettings(model_id=RULES))
    assert index.entity("Lever") == ["B1"]


def test_dates_lead_to_documents(index):
    assert index.date_index == {"1997-10-23": ["E1"], "1998-02-12": ["E2", "B1"]}


def test_clusters_and_topics_divide_the_documents(index):
    clusters = index.clusters
    assert sorted(doc_id for some in clusters.values() for doc_id in some) == sorted(index.document_ids())
    assert list(index.topics.values()) == list(clusters.values())
    assert [index.documents[doc_id].cluster for doc_id in clusters[0]] == [0] * len(clusters[0])
    assert len(clusters) == len(index.topics)
    assert not set(index.clusters[index.documents["E1"].cluster]) & {"B1", "B2"}


def test_links_follow_what_documents_cite_of_each_other(index):
    assert index.links == {"E1": [], "E2": ["E1"], "B1": [], "B2": [], "é": []}
    assert (index.cited_by("E1"), index.cited_by("E2"), index.cites("E2")) == (["E2"], [], ["E1"])
    assert index.citing("article 1147 du code civil") == ["B1"]
    with pytest.raises(KeyError, match="no document 'E9'"):
        index.cited_by("E9")
    with pytest.raises(KeyError, match="no document 'E9'"):
        index.cites("E9")


def test_sections_are_made_when_asked_for_and_kept_once_built(copy):
    made = CorpusIndex.open(copy).document_index("E1")
    assert CorpusIndexer(copy).build_document_index("E1") == made
    index = CorpusIndex.open(copy)
    assert index.document_index("E1") == made
    meta = index.documents["E1"]
    assert (meta.has_detailed_index, meta.detailed_index_path) == (True, str(index.path))
    assert not index.documents["E2"].has_detailed_index
    with pytest.raises(LookupError, match="no document 'E9'"):
        index.document_index("E9")


def test_an_index_shows_the_commit_that_its_library_was_opened_at(copy):
    before = CorpusIndex.open(copy)
    said, terms = _said(before), list(before.entity_index)
    indexer = IncrementalIndexer(copy)
    indexer.remove_document("B1")
    indexer.add_document({"id": "E1", "content": "Le bail.", "decision_date": "2020-01-01"})
    assert _said(before) == said
    assert set(before.entity_index) < set(terms)  # entities are those of the texts as they are now
    after = before.reload()
    assert after.document_ids() == ["E2", "B2", "é", "E1"]
    assert (after.date_index.get("1997-10-23"), after.date_index["2020-01-01"]) == (None, ["E1"])
    assert (after.keyword("bail"), after.entity("Lever"), after.cited_by("E1")) == (["E1"], [], [])
    assert after.total_chars == sum(len(copy.reload().document(doc_id).content) for doc_id in after.documents)
    with pytest.raises(KeyError, match="no document 'B1'"):
        after.document_meta("B1")


def _said(index):
    maps = (index.keyword_index, index.date_index, index.clusters, index.topics, index.links)
    return [list(index.metas()), index.total_docs, index.total_chars, *maps]


def test_any_number_of_threads_read_one_index_and_what_is_asked_may_hold_anything(index):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: json.dumps([index.keyword("prêt"), list(index.links)]), range(64)))) == 1
        assert len(set(pool.map(lambda _: tuple(index.metas(entities=True)), range(16)))) == 1
    many = " ".join(f"prêt{chr(97 + a)}{chr(97 + b)}x" for a in range(26) for b in range(26))
    for text in ("\0", "\udce9", "a" * 10**5, "é" * 999, many, "🙂", "prêt\0prêt"):
        assert index.keyword(text) in ([], ["B1", "B2", "é"])
        assert index.entity(text) == []
        assert list(index.metas([text])) == list(index.summaries([text])) == []


def test_a_library_without_an_index_says_which_command_builds_one(tmp_path, tiny_encoder):
    build_index(IndexConfig(source=ROWS[:1], n_bits=0, corpus_index=False, index_folder=str(tmp_path)), tiny_encoder)
    library = Library.open(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no corpus index in .* \(build one with 'legal-rag corpus-index'\)"):
        CorpusIndex.open(library)
    assert not has_corpus_index(library)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("lineage", "another", r"is of another build of the Library \(build one with .*corpus-index'\)$"),
        ("format_version", 99, "has format 99, not 1"),
    ],
)
def test_an_index_of_another_build_or_format_is_refused(copy, name, value, problem):
    with closing(sqlite3.connect(copy.path / "corpus_index.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = ?", (json.dumps(value), name))
    with pytest.raises(ValueError, match=problem):
        CorpusIndex.open(copy)
    assert not has_corpus_index(copy)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_one_line_that_says_how_to_build_it_anew(copy, content):
    path = copy.path / "corpus_index.sqlite"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"corpus_index\.sqlite .*\(build one with 'legal-rag corpus-index'\)"):
        CorpusIndex.open(copy)
    assert path.read_bytes() == content
    assert not has_corpus_index(copy)
    assert CorpusIndexer(copy).build_corpus_index().total_docs == 5


def test_opening_and_reading_load_no_model_and_no_sklearn(index):
    code = f"""
import sys
from pathlib import Path
from legal_rag.corpus_index import CorpusIndex
from legal_rag.library.library import Library
index = CorpusIndex.open(Library(Path({str(index.library.path)!r})))
assert index.keyword("prêt") and index.entity("Lever") and index.documents["E1"] and dict(index.topics)
print(sorted({{"sklearn", "torch", "dspy", "scipy", "transformers", "litellm"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
