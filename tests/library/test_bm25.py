"""BM25 with French analysis over a Library, against a plain count over the same chunks."""

import math
import os
import random
import shutil
from collections import Counter

import numpy as np
import pytest

from legal_rag.indexer import IndexConfig, add_documents, build_index, open_index, remove_documents
from legal_rag.law.keys import ParsedQuery, all_reference_keys, document_keys, relaxed_key
from legal_rag.library import LexicalIndex
from legal_rag.library.bm25 import HEADER_COLUMNS, LEXICAL_FOLDER, lexical_words
from legal_rag.retriever import Retriever


@pytest.fixture(scope="module")
def index(tiny_library) -> LexicalIndex:
    return tiny_library.lexical_index()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'employeur n’a pas à l'écouter", ["employeur", "a", "ecout"]),
        ("licenciée ÉCONOMIQUEMENT economique", ["licenci", "econom", "econom"]),
        ("l'œuvre d'une Œuvre", ["oeuvr", "oeuvr"]),
        ("_" * 60, []),
        ("", []),
    ],
)
def test_words_lose_elision_stop_words_endings_and_accents(text, words):
    assert lexical_words(text) == words


def plain_bm25(library, query, k1=1.2, b=0.75):
    """Score every chunk as Lucene and tantivy do, without their rounding of lengths, by (shard, position)."""
    bags = {}
    for doc_id in library:
        document = library.document(doc_id)
        header = " ".join(str(document.row().get(name) or "") for name in HEADER_COLUMNS)
        for chunk in library.chunks_of(doc_id):
            bags[doc_id, chunk.chunk_index] = (
                Counter(lexical_words(f"{header} {chunk.text}")),
                Counter(ParsedQuery(chunk.text).keys),
            )
    scores = Counter()
    for part, terms in enumerate((lexical_words(query), ParsedQuery(query).keys)):
        average = sum(bag[part].total() for bag in bags.values()) / len(bags)
        for term in terms:
            holders = [key for key, bag in bags.items() if term in bag[part]]
            idf = math.log(1 + (len(bags) - len(holders) + 0.5) / (len(holders) + 0.5))
            for key in holders:
                bag = bags[key][part]
                tf = bag[term]
                scores[key] += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * bag.total() / average))
    return scores


@pytest.mark.parametrize(
    "query", ["trouble anormal de voisinage", "indemnité de licenciement d'un salarié protégé", "l'article L. 114-17"]
)
def test_scores_are_those_of_bm25(index, tiny_library, query):
    expected = plain_bm25(tiny_library, query)
    found = index.search(query, 10**9)
    assert len(found) == len(expected)
    chunks = tiny_library.chunks_at([one[:2] for one in found])
    for (_, _, score), chunk in zip(found, chunks, strict=True):
        assert score == pytest.approx(expected[chunk.doc_id, chunk.chunk_index], rel=0.06)  # lengths in one byte


def test_the_best_come_first(index):
    found = index.search("le juge et la décision", 50)
    assert [one[2] for one in found] == sorted((one[2] for one in found), reverse=True)
    assert index.search("le juge et la décision", 7) == found[:7]


@pytest.mark.parametrize("query", ["", "?!", "le la les", "xyzzyx", 'zzz AND zzy:* "', "(" * 100, "a" * 5000])
def test_a_query_without_a_known_word_finds_nothing_and_syntax_is_no_syntax(index, query):
    assert index.search(query, 5) == []


def test_places_restrict_a_search_and_keep_its_scores(index):
    everything = {one[:2]: one[2] for one in index.search("la décision du juge", 10**6)}
    some = [np.arange(0, 60, 3)]
    found = index.search("la décision du juge", 10**6, some)
    assert {one[:2] for one in found} == {place for place in everything if place[1] in set(some[0].tolist())}
    assert all(score == pytest.approx(everything[shard, position]) for shard, position, score in found)
    assert index.search("la décision du juge", 5, [np.empty(0, dtype=np.int64)]) == []


@pytest.mark.parametrize("many", ["FEW_PLACES", "FEW_TERMS"])
def test_many_places_restrict_a_search_just_so(index, monkeypatch, many):
    places = [np.arange(0, index.n_chunks, 3)]
    restricted = index.search("la décision du juge", 5, places)
    monkeypatch.setattr(f"legal_rag.library.bm25.{many}", 1)
    assert index.search("la décision du juge", 5, places) == restricted
    assert index.search("la décision du juge", 5, [places[0][:2]]) == [
        one for one in index.search("la décision du juge", 10**6) if one[1] in places[0][:2]
    ]


def test_a_document_is_scored_whole_for_each_of_its_chunks(index, tiny_library):
    query, documents = "trouble de voisinage", list(tiny_library.documents())
    bags = {}
    for one in documents:
        header = " ".join(str(one.row().get(name) or "") for name in HEADER_COLUMNS)
        bags[one.id] = Counter(lexical_words(header) + lexical_words(one.content))
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    places = tiny_library.places_in(range(len(tiny_library.manifest["shards"])))
    chunks = tiny_library.chunks_at(places)
    scores, n_chunks = index.document_scores(query, places)
    assert n_chunks.tolist() == [len(tiny_library.chunks_of(chunk.doc_id)) for chunk in chunks]
    for chunk, score in zip(chunks, scores, strict=True):
        expected = 0.0
        for word in lexical_words(query):
            n, bag = sum(word in other for other in bags.values()), bags[chunk.doc_id]
            norm = 1.2 * (1 - 0.75 + 0.75 * bag.total() / mean)
            idf = math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
            expected += idf * bag[word] * 2.2 / (bag[word] + norm)
        assert score == pytest.approx(expected, rel=0.05, abs=0.01)  # lengths are rounded


def test_the_share_of_documents_that_cite_something(index, tiny_library):
    """Also where a column says so, not the text; a document's own name is no citation."""
    cited = Counter()
    for one in tiny_library.documents():
        cited.update({relaxed_key(term) for term, is_own in document_keys(one).items() if not is_own})
    for name in random.Random(0).sample(sorted(cited), 20):
        assert index.share_citing(name) == pytest.approx(cited[name] / tiny_library.n_documents)
    assert index.share_citing("article:9999") == 0


def test_what_is_added_is_found_and_what_is_removed_is_not_while_a_reader_stays_at_its_commit(
    tiny_encoder, sample_rows, tmp_path
):
    def found(library, query="décision"):
        places = [one[:2] for one in library.lexical_index().search(query, 10**6)]
        return {chunk.doc_id for chunk in library.chunks_at(places)}

    config = IndexConfig(source=sample_rows[:10], index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    first = open_index(config)
    everything = "le conseil constitutionnel la cour juge décision article droit loi considérant"
    before = found(first, everything)
    add_documents(IndexConfig(source=sample_rows[10:14], index_folder=str(tmp_path)), tiny_encoder)
    remove_documents([sample_rows[0]["id"]], str(tmp_path))
    assert found(first, everything) == before
    after = found(open_index(config), everything)
    assert sample_rows[0]["id"] in before - after
    assert after - before <= {row["id"] for row in sample_rows[10:14]}
    assert after - before


def test_an_addition_cut_off_before_its_manifest_leaves_no_words(tiny_encoder, sample_rows, tmp_path, monkeypatch):
    config = IndexConfig(source=sample_rows[:5], index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.commit.LibraryUpdate._write_manifest", _killed)
        with pytest.raises(KeyboardInterrupt):
            add_documents(IndexConfig(source=sample_rows[5:12], index_folder=str(tmp_path)), tiny_encoder)
    add_documents(IndexConfig(source=sample_rows[12:14], index_folder=str(tmp_path)), tiny_encoder)
    library = open_index(config)
    whole = IndexConfig(source=[*sample_rows[:5], *sample_rows[12:14]], index_folder=str(tmp_path / "whole"))
    build_index(whole, tiny_encoder)
    query = "la décision du juge"
    assert [one[2] for one in library.lexical_index().search(query, 50)] == pytest.approx(
        [one[2] for one in open_index(whole).lexical_index().search(query, 50)]
    )


def _killed(*_):
    raise KeyboardInterrupt


def test_an_index_on_read_only_storage_is_opened(index, tiny_library, tmp_path, monkeypatch):
    folder = tmp_path / "lexical"
    shutil.copytree(tiny_library.path / LEXICAL_FOLDER, folder)
    for lock in list(folder.rglob("*.lock")):  # as another user's, it cannot be opened; modes do not bind root
        lock.unlink()
        lock.mkdir()
    assert list(folder.rglob("*.lock"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    monkeypatch.setattr(os, "access", lambda *_: False)
    opened = LexicalIndex(folder, len(tiny_library.manifest["shards"]), tiny_library.removed_positions())
    assert opened.search("compte de campagne", 10) == index.search("compte de campagne", 10)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_missing_or_damaged_index_of_words_is_told_in_one_line(tiny_library, tmp_path):
    folder = tmp_path / "lexical"
    shutil.copytree(tiny_library.path / LEXICAL_FOLDER, folder)
    for file in folder.rglob("*.idx"):
        content = file.read_bytes()
        file.write_bytes(b"\xff" * (len(content) - 200) + content[-200:])
    with pytest.raises(ValueError, match="damaged|error|Failed"):
        LexicalIndex(folder, len(tiny_library.manifest["shards"]), []).search("compte de campagne", 10)
    with pytest.raises(FileNotFoundError, match="no lexical index"):
        LexicalIndex(tmp_path / "absent", 1, [])


@pytest.mark.parametrize(
    ("text", "article"),
    [
        ("700", "700"),
        ("1er", "1"),
        ("6, § 1", "6"),
        ("1240 code civil", "1240"),
        ("700 CPC", "700"),
        ("1384 al. 1er", "1384"),
        ("3 de la loi du 29 juillet 1881", "3"),
        ("L. 1152-1 C. trav.", "L1152-1"),
        ("1240/1241 du code civil", "1240"),
        ("1240,1241", "1240"),
    ],
)
def test_an_article_may_be_named_by_its_number_alone(text, article):
    assert f"article:{article}" in all_reference_keys(text)


SUMS_DAYS_AND_DURATIONS = "3 000 €|12 000|1147 euros|2,50 euros|5 %|24 mai 2019|01/03/2019|1er mars|12 mois|2 ans|10h"


@pytest.mark.parametrize("text", SUMS_DAYS_AND_DURATIONS.split("|"))
def test_a_sum_a_day_or_a_duration_names_no_article(text):
    assert all_reference_keys(text) == []


def test_a_word_said_again_counts_again_and_one_said_a_hundred_thousand_times_is_one_word(index, tiny_library):
    query = "trouble de voisinage, trouble, trouble et voisinage"
    expected = plain_bm25(tiny_library, query)
    (best, *_) = index.search(query, 5)
    (chunk,) = tiny_library.chunks_at([best[:2]])
    assert best[2] == pytest.approx(expected[chunk.doc_id, chunk.chunk_index], rel=0.06)
    assert [one[:2] for one in index.search("voisinage " * 90_000, 5)] == [
        one[:2] for one in index.search("voisinage", 5)
    ]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (" ".join(f"mot{i}" for i in range(10_001)), "a query of 10001 different words"),
        ("1 " * 600_000, "the question is too long: 1200000 characters"),
    ],
)
def test_a_query_that_would_take_the_memory_is_refused(index, tiny_library, query, problem):
    with pytest.raises(ValueError, match=problem):
        index.search(query, 5)
    with pytest.raises(ValueError, match=problem):
        Retriever(tiny_library).search(query, 5, mode="bm25")
