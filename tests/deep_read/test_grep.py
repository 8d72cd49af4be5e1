"""Regular expressions over a corpus: what is found, how much was read, and that none takes longer than it may."""

import math
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.base import deadline
from legal_rag.deep_read import grep as grep_module
from legal_rag.deep_read.grep import MAX_IN_DOCUMENT, SHOWN_CHARS, CorpusGrep, GrepQuery, compile_pattern, grep_text
from legal_rag.indexer import IndexConfig, add_documents, build_index, remove_documents
from legal_rag.library import Library
from legal_rag.library.bm25 import LEXICAL_FOLDER


def library_of(folder, source, encoder, **settings):
    build_index(IndexConfig(source=source, n_bits=0, index_folder=str(folder), **settings), encoder)
    return Library.open(folder)


def search(library, pattern, seconds=None, **query):
    return CorpusGrep(library, seconds).search(GrepQuery(pattern, **query))


def by_reading_all(library, pattern):
    """Search without any index, each document by itself."""
    found = {one.id: grep_text(one.content, pattern) for one in library.documents()}
    return {doc_id: matches for doc_id, matches in found.items() if matches}


@pytest.fixture(scope="module")
def library(sample_file, tiny_encoder, tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("grep"), sample_file, tiny_encoder)


@pytest.fixture(scope="module")
def words(library):
    text = "\n".join(one.content for one in library.documents())
    return st.sampled_from(sorted(set(re.findall(r"\w{3,}", text))))


def spans(pattern, text, **options):
    return compile_pattern(pattern, **options).spans(text, 1000, math.inf)[0]


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\bélection", "réélection, élection", [(12, 20)]),
        ("ÉLU", "élu", [(0, 3)]),
        (r"n°\s*\d+", "n°\u00a012", [(0, 5)]),
        ("^rejet$", "motif\nRejet\n", [(6, 11)]),
        (r"\Amotif", "motif\nmotif", [(0, 5)]),
        (r"\b(?P<mot>élu)s?\b", "réélu élus", [(6, 10)]),
        ("e\u0301te", "été éte", [(4, 7)]),
        (r"(?<=art\. )\d+(?=-1)", "art. 12-1, art. 13-2", [(5, 7)]),
        (r"(\w+) et \1", "oui et non, oui et oui", [(12, 22)]),
        (r"\p{Lu}\w+", "la Cour", [(0, 2), (3, 7)]),
        (r"\bcour\b|x*", "xx, la cour", None),
    ],
)
def test_a_pattern_is_python_s_and_more_and_its_places_are_characters(pattern, text, found):
    if found is None:
        with pytest.raises(ValueError, match="texte vide"):
            spans(pattern, text)
    else:
        assert spans(pattern, text) == found


def test_folding_makes_accents_apostrophes_dashes_and_blanks_the_same():
    text = "L’élection  prud‑homale"
    assert spans("l'election prud-homale", text) == []
    assert spans("l'election prud-homale", text, fold=True) == [(0, len(text))]
    assert spans("L'ÉLECTION", text, fold=True, ignore_case=False) == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", r"motif mal formé \(missing \)"),
        ("a*", "texte vide"),
        ("", "texte vide"),
        ("(?:a{101}b){101}", "répétitions comptées"),
        ("(" * 999 + "a" + ")" * 999, "motif mal formé"),
        ("a" * 2001, "2001 caractères, 2000 au plus"),
        ("a\ud800", "demi-caractère"),
    ],
)
def test_what_is_no_pattern_is_said_in_french(pattern, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        compile_pattern(pattern)
    assert len(str(refused.value)) < 400


def test_a_long_match_is_shown_in_part_and_placed_exactly():
    (match,) = grep_text("é" * 1000, "é+")
    assert (match["start"], match["end"], match["text"]) == (0, 1000, "é" * SHOWN_CHARS + "…")


def test_what_stands_around_a_match_is_shown_where_asked_for():
    (match,) = grep_text("Annule l'élection du 3 mai.", "élection", context=4)
    assert match == {"start": 9, "end": 17, "text": "élection", "context": "e l'élection du "}


def test_one_document_gives_all_its_matches_or_says_that_there_are_too_many():
    assert len(grep_text("é" * MAX_IN_DOCUMENT, "é")) == MAX_IN_DOCUMENT
    with pytest.raises(ValueError, match="plus de 10000 occurrences"):
        grep_text("é" * (MAX_IN_DOCUMENT + 1), "é")


def word_patterns(word):
    """Draw patterns of whole words and parts of words, beside one another and in alternatives."""
    whole = st.one_of(
        word.map(r"\b{}\b".format),
        word.map(lambda one: rf"\b{re.escape(one[:4])}\w*"),
        word.map(lambda one: rf"\b{re.escape(one[:-1])}{re.escape(one[-1])}?\b"),
        word.map(lambda one: rf"(?:^|\s){re.escape(one.upper())}[\s,.;]"),
        word.map(lambda one: re.escape(one[1:3]) + "x?"),
        st.tuples(word, word).map(r"\b(?:{0[0]}|{0[1]})s?\b".format),
        st.tuples(word, word).map(r"\b{0[0]}\b(?s:.{{0,80}})\b{0[1]}\b".format),
        st.tuples(word, word).map(r"{0[0]}\W+{0[1]}".format),
        st.tuples(word, word).map(r"'{0[0]}\s*{0[1]} ".format),
    )
    return st.one_of(whole, st.tuples(whole, whole).map("(?:{0[0]}|{0[1]})".format))


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_the_index_of_words_loses_no_match(data, library, words):
    pattern = data.draw(word_patterns(words))
    found = search(library, pattern, max_docs=None, max_matches_per_doc=None)
    assert found.matches == by_reading_all(library, pattern)
    assert (found.is_complete, found.total) == (True, 60)


@pytest.mark.parametrize(
    "pattern",
    [r"\bétrangère\b", "d'un (?:.*) pénalité de", r"\bPénalité\b", r"\bétrangère\s+au\b"],
)
def test_whole_words_spare_the_reading_of_documents_without_them(library, pattern):
    found = search(library, pattern)
    assert found.matches == by_reading_all(library, pattern)
    assert found.scanned < library.n_documents // 2
    assert found.is_complete


@pytest.mark.parametrize(
    "pattern", ["étrangèr", r"\bétrangèr", r"\w+rangère\b", r"\b(de|la)\b", r"\bpénalité\b|x", r"(?x)\b étrangère \b"]
)
def test_parts_of_words_and_stop_words_are_looked_for_everywhere(library, pattern):
    assert search(library, pattern, max_docs=None).scanned == library.n_documents


def test_a_missing_index_of_words_costs_time_alone(library, tmp_path):
    before = search(library, r"\bétrangère\b")
    shutil.copytree(library.path, tmp_path / "copy", ignore=shutil.ignore_patterns(LEXICAL_FOLDER))
    after = search(Library(tmp_path / "copy"), r"\bétrangère\b")
    assert after.matches == before.matches != {}
    assert before.scanned < after.scanned == 60


def test_documents_found_are_those_of_the_commit_at_hand(sample_rows, tiny_encoder, tmp_path):
    old = library_of(tmp_path, sample_rows[:12], tiny_encoder)
    removed = next(iter(search(old, r"\bétrangère\b").matches))
    row = {"id": "neuf", "content": "Une étrangère."}
    add_documents(IndexConfig(source=[row], index_folder=str(tmp_path)), tiny_encoder)
    remove_documents([removed], tmp_path)
    before, after = (search(one, r"\bétrangère\b").matches for one in (old, old.reload()))
    assert "neuf" not in before
    assert after["neuf"] == [{"start": 4, "end": 13, "text": "étrangère"}]
    assert set(before) - set(after) == {removed}


def test_a_search_stops_at_so_many_documents_and_says_so(library):
    everywhere = by_reading_all(library, "cour")
    found = search(library, "cour", max_docs=3)
    assert list(found.matches) == list(everywhere)[:3]
    assert not found.is_complete
    assert found.scanned < found.total == 60
    exactly = search(library, "cour", max_docs=len(everywhere))
    assert (exactly.is_complete, exactly.scanned, len(exactly.matches)) == (True, 60, len(everywhere))


def test_only_the_documents_asked_for_are_looked_at(library):
    wanted = [*list(library)[5:9], "inconnu", next(iter(library))]
    for pattern in ("cour", r"\bétrangère\b"):
        found = search(library, pattern, doc_ids=wanted)
        expected = {doc_id: one for doc_id, one in by_reading_all(library, pattern).items() if doc_id in wanted}
        assert found.matches == expected
        assert found.total == 6


# --- what a pattern may take

SLOW = "(?:a|aa)+$"


def test_a_pattern_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(grep_module, "DOCUMENT_SECONDS", 0.2)
    with pytest.raises(ValueError, match="motif trop lent : plus de 0.2 s"):
        grep_text("a" * 60 + "b", SLOW)


@pytest.fixture
def slow_library(tmp_path, tiny_encoder):
    return library_of(tmp_path, [{"id": name, "content": "a" * 60 + "b"} for name in ("un", "deux")], tiny_encoder)


def test_a_search_that_is_stopped_within_a_document_says_so(slow_library):
    found = search(slow_library, SLOW, seconds=0.2)
    assert (found.is_complete, found.out_of_time) == (False, True)
    assert found.scanned < found.total


def test_the_deadline_ends_a_search(slow_library):
    with pytest.raises(deadline.DeadlineError), deadline.within(0.1):
        search(slow_library, SLOW)


def test_the_text_shown_of_all_matches_is_bounded(tiny_library, monkeypatch):
    monkeypatch.setattr(grep_module, "MAX_CHARS", 5000)
    found = CorpusGrep(tiny_library).search(GrepQuery("e", max_docs=None, context=100))
    assert (found.is_complete, bool(found.shortened)) == (False, True)
    assert sum(len(one["text"]) + len(one["context"]) for some in found.matches.values() for one in some) < 5300
    with pytest.raises(ValueError, match="plus de 5000 caractères d'occurrences : demandez moins de contexte"):
        grep_text("e " * 300, "e", context=100)
