"""Regular expressions over a corpus: what Python's would find, in time linear to the text, and how much was read."""

import re
import shutil
import threading
import time
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from legal_rag import deadline
from legal_rag.deep_read import grep as grep_module
from legal_rag.deep_read.grep import MAX_IN_DOCUMENT, SHOWN_CHARS, CorpusGrep, GrepQuery, compile_pattern, grep_text
from legal_rag.indexer import IndexConfig, add_documents, build_index, remove_documents
from legal_rag.library import Library
from legal_rag.library.bm25 import LEXICAL_FOLDER

LETTERS = "aeéÉÀœOl_19 'n\n«-𝔘"
ATOMS = st.sampled_from([re.escape(one) for one in LETTERS]) | st.sampled_from(
    [
        ".",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        r"\b",
        "^",
        "$",
        "[aé]",
        "[^é]",
        r"[\w-]",
        "[^\\Wé]",
        "[à-öl-n]",
        r"\A",
        "(?i:é)",
        "(?-i:É)",
        "(?s:.)",
        "[^a_]",
        r"[\s\d]",
    ]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["?", "+", "*", "{1,2}", "{2}", "+?", "??", "*?"])).map(
            "({0[0]}){0[1]}".format
        ),
    ),
    max_leaves=8,
)


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


def words_in(library):
    text = "\n".join(one.content for one in library.documents())
    return st.sampled_from(sorted(set(re.findall(r"\w{3,}", text))))


@pytest.fixture(scope="module")
def words(library):
    return words_in(library)


def spans(pattern, text, **options):
    return list(compile_pattern(pattern, **options).spans(text.encode()))


@settings(deadline=None, max_examples=300)
@given(PATTERNS, st.text(LETTERS, max_size=25), st.booleans())
@example(r"\b\w+\b", "élu, à l'École_2 𝔘é", True)
@example(r"\b(?:\b\bé|x)", "réélu é", True)
@example(r"[^_]", "é_à_", False)
def test_a_pattern_finds_what_python_finds(pattern, text, ignore_case):
    assume(not re.search(pattern.replace(r"\b", ""), "", re.MULTILINE))
    assume(not re.search(r"\$.*\\b|\\b.*\^", pattern))  # `$` and `^` stand outside the borders there: never found
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    expected = [match.span() for match in re.finditer(pattern, text, flags)]
    # A border between two matches that touch belongs to the first one only: r"\b." finds the "1" of "1-" alone.
    assume("\\b" not in pattern or all(one[1] < other[0] for one, other in pairwise(expected)))
    assert spans(pattern, text, ignore_case=ignore_case) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\bélection", "réélection, élection", [(12, 20)]),
        (r"\w+", "l'été", [(0, 1), (2, 5)]),
        ("ÉLU", "élu", [(0, 3)]),
        (r"n°\s*\d+", "n°\u00a012", [(0, 5)]),
        ("^rejet$", "motif\nRejet\n", [(6, 11)]),
        (r"\Amotif", "motif\nmotif", [(0, 5)]),
        ("𝔘.", "a𝔘é𝔘", [(1, 3)]),
        (r"\x{e9}t\xe9", "ÉTÉ", [(0, 3)]),
        (r"\Qa.b\E+|\p{Lu}\PL", "a.bb É-", [(0, 4), (5, 7)]),
        (r"\b(?P<mot>élu)s?\b", "réélu élus", [(6, 10)]),
        (r"a..b\b|[[:digit:]]+\W\b", "a b 12 é", [(4, 7)]),
        ("e\u0301te", "été éte", [(4, 7)]),
        (r"\bX\b", "X\u0301 X", [(3, 4)]),
        ("a_b", "a_b aéb", [(0, 3)]),
        (r"\ba_é\b", "a_é a_éa", [(0, 3)]),
    ],
)
def test_accents_lines_and_astral_characters_keep_their_places(pattern, text, found):
    assert spans(pattern, text) == found


def test_folding_makes_accents_apostrophes_dashes_and_blanks_the_same():
    text = "L’élection  prud‑homale"
    assert spans("l'election prud-homale", text) == []
    assert spans("l'election prud-homale", text, fold=True) == [(0, len(text))]
    assert spans("L'ÉLECTION", text, fold=True, ignore_case=False) == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(?=b)", r"RE2, moteur à temps linéaire, n'a pas les assertions .*; cherchez le texte entier"),
        ("(?!b)a", "les assertions"),
        ("(?<=b)a", "les assertions"),
        ("(?<!b)a", "les assertions"),
        (r"(a)\1", r"les références arrière .*écrivez les cas possibles : \(\?:a…a\|b…b\)"),
        ("(?P<x>a)(?P=x)", "les références arrière"),
        ("(a)?(?(1)b|c)", "les conditions .*écrivez les deux cas"),
        ("(?>a)b", r"les groupes atomiques .*écrivez \(\?:…\)"),
        ("a++b", "les répétitions possessives ou doubles"),
        ("a**", r"écrivez a\+ ou a\*"),
        ("(?x) a # commentaire", "les options sont i, m, s et U"),
        ("(?a)a", "les options sont"),
        (r"a\Z", r"n'a pas \\Z ; écrivez \\z"),
        (r"\u00e9", r"écrivez la lettre même, ou \\x\{E9\}"),
        ("a{,3}b", r"RE2 lit \{,3\} comme un texte ; écrivez \{0,3\}"),
        (r"a\Bb", r"\\B n'est pas pris en charge"),
        (r"[\PL]", r"écrivez \[\^…\]"),
        ("(a", r"motif mal formé \(RE2 : missing \): \(a\)"),
        ("[b-a]", r"motif mal formé \(RE2 : invalid character class range: b-a\)"),
        ("a*", "texte vide"),
        ("", "texte vide"),
        (r"\b", "texte vide"),
        ("a{1001}", "trop de répétitions comptées"),
        (r"(?:\w{1,40}){40}", "trop de répétitions comptées"),
        ("(?:(?:(?:a{9}b){9}c){9}d){9}", "trop de répétitions comptées"),
        ("a{1000}b{1000}c{1000}d", "trop de répétitions comptées"),
        ("(" * 999 + "a" + ")" * 999, "trop de parenthèses"),
        ("a" * 2001, "2001 caractères, 2000 au plus"),
        ("a\ud800", "demi-caractère"),
    ],
)
def test_what_the_engine_does_not_know_is_said_in_french(pattern, reason):
    with pytest.raises(ValueError, match=reason):
        compile_pattern(pattern)


def test_a_pattern_that_hangs_others_ends_at_once():
    content = "a" * 100_000 + "b"
    ended = threading.Event()

    def searching():
        assert grep_text(content, r"(a+)+$") == []
        assert grep_text(content, r"(?:a|aa)+c") == []
        ended.set()

    threading.Thread(target=searching, daemon=True).start()
    assert ended.wait(20)


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


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_the_index_of_words_loses_no_match(data, library, words):
    pattern = data.draw(word_patterns(words))
    found = search(library, pattern, max_docs=None, max_matches_per_doc=None)
    assert dict(found) == by_reading_all(library, pattern)
    assert (found.complete, found.total) == (True, 60)


@pytest.mark.parametrize(
    "pattern",
    [r"\bétrangère\b", "d'un (étrangère|pénalité) de", r"\bPénalité\b", r"\bétrangères?\s+au\b"],
)
def test_whole_words_spare_the_reading_of_documents_without_them(library, pattern):
    found = search(library, pattern)
    assert dict(found) == by_reading_all(library, pattern)
    assert found.scanned < library.n_documents // 2
    assert found.complete


@pytest.mark.parametrize("pattern", ["étrangèr", r"\bétrangèr", r"\w+rangère\b", r"\b(de|la)\b", r"\bpénalité\b|x"])
def test_parts_of_words_and_stop_words_are_looked_for_everywhere(library, pattern):
    assert search(library, pattern, max_docs=None).scanned == library.n_documents


def test_a_missing_index_of_words_costs_time_alone(library, tmp_path):
    before = search(library, r"\bétrangère\b")
    shutil.copytree(library.path, tmp_path / "copy", ignore=shutil.ignore_patterns(LEXICAL_FOLDER))
    after = search(Library(tmp_path / "copy"), r"\bétrangère\b")
    assert dict(after) == dict(before) != {}
    assert before.scanned < after.scanned == 60


def test_documents_found_are_those_of_the_commit_at_hand(sample_rows, tiny_encoder, tmp_path):
    old = library_of(tmp_path, sample_rows[:12], tiny_encoder)
    removed = next(iter(search(old, r"\bétrangère\b")))
    row = {"id": "neuf", "content": "Une étrangère."}
    add_documents(IndexConfig(source=[row], index_folder=str(tmp_path)), tiny_encoder)
    remove_documents([removed], tmp_path)
    before, after = (search(one, r"\bétrangère\b") for one in (old, old.reload()))
    assert "neuf" not in before
    assert after["neuf"] == [{"start": 4, "end": 13, "text": "étrangère"}]
    assert set(before) - set(after) == {removed}


def test_a_search_stops_at_so_many_documents_and_says_so(library):
    everywhere = by_reading_all(library, "cour")
    found = search(library, "cour", max_docs=3)
    assert list(found) == list(everywhere)[:3]
    assert not found.complete
    assert found.scanned < found.total == 60
    exactly = search(library, "cour", max_docs=len(everywhere))
    assert (exactly.complete, exactly.scanned, len(exactly)) == (True, 60, len(everywhere))


def test_documents_that_match_more_often_than_shown_are_named(library):
    doc_id = next(iter(library))
    found = search(library, "e", doc_ids=[doc_id], max_matches_per_doc=2)
    assert (len(found[doc_id]), found.shortened, found.complete) == (2, [doc_id], True)


def test_only_the_documents_asked_for_are_looked_at(library):
    wanted = [*list(library)[5:9], "inconnu", next(iter(library))]
    for pattern in ("cour", r"\bétrangère\b"):
        found = search(library, pattern, doc_ids=wanted)
        expected = {doc_id: found for doc_id, found in by_reading_all(library, pattern).items() if doc_id in wanted}
        assert dict(found) == expected
        assert found.total == 6


def test_a_search_out_of_time_gives_what_it_has(library):
    found = search(library, seconds=0.0, pattern="cour")
    assert (dict(found), found.scanned, found.complete) == ({}, 0, False)


def test_all_matches_together_are_bounded(library, monkeypatch):
    monkeypatch.setattr(grep_module, "MAX_MATCHES", 10)
    found = search(library, "e", max_docs=None, max_matches_per_doc=None)
    assert sum(map(len, found.values())) == 10
    assert not found.complete


@pytest.mark.slow
@pytest.mark.shared
@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_the_index_of_words_loses_no_match_in_real_decisions(data, real_library, real_words):
    pattern = data.draw(word_patterns(real_words))
    found = search(real_library, pattern, max_docs=None, max_matches_per_doc=None)
    assert dict(found) == by_reading_all(real_library, pattern)
    assert found.complete


@pytest.fixture(scope="module")
def real_library(shared_data, tiny_encoder, tmp_path_factory):
    source = shared_data / "decisions.jsonl.gz"
    return library_of(tmp_path_factory.mktemp("real"), source, tiny_encoder, limit=300)


@pytest.fixture(scope="module")
def real_words(real_library):
    return words_in(real_library)


# --- what a pattern may take


@pytest.mark.parametrize("pattern", ["e(?s:.*)ZZZ|e", r"\be(?s:.*)ZZZ|\be", r"(?s)\w.{0,900}\w.{0,900}\w.{0,900}ZZ"])
def test_a_pattern_that_would_read_the_text_again_and_again_is_stopped(pattern, monkeypatch):
    monkeypatch.setattr(grep_module, "DOCUMENT_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(ValueError, match="motif trop lent : plus de 0.3 s"):
        grep_text("été et e " * 60_000, pattern)
    assert time.monotonic() - started < 5.0


def test_a_search_that_is_stopped_within_a_document_says_so(tiny_library, monkeypatch):
    found = CorpusGrep(tiny_library, seconds=0.02).search(
        GrepQuery("e(?s:.*)ZZZ|e", max_docs=None, max_matches_per_doc=None)
    )
    assert (found.complete, found.out_of_time) == (False, True)
    assert found.scanned < found.total


def test_the_deadline_ends_a_search(tiny_library):
    with pytest.raises(deadline.DeadlineError), deadline.within(0.02):
        CorpusGrep(tiny_library).search(GrepQuery("e(?s:.*)ZZZ|e", max_docs=None, max_matches_per_doc=None))


@pytest.mark.parametrize("pattern", [r"[a-c]{1,40}x", "été.{0,60}fin", r"\bmot\b", r"^\w+$", r"e\W{1,9}f", "(?i)ÉTÉ"])
def test_a_text_in_stretches_matches_as_the_whole_does(pattern, monkeypatch):
    text = "abcabcx été, oui : la fin.\nmot\nété fin mot e  f É" * 40
    whole = grep_text(text, pattern)
    monkeypatch.setattr(grep_module, "_stretch", lambda compiled: 600)
    assert grep_text(text, pattern) == whole
    assert whole


def test_the_text_shown_of_all_matches_is_bounded(tiny_library, monkeypatch):
    monkeypatch.setattr(grep_module, "MAX_CHARS", 5000)
    found = CorpusGrep(tiny_library).search(GrepQuery("e", max_docs=None, context=100))
    assert (found.complete, bool(found.shortened)) == (False, True)
    assert sum(len(one["text"]) + len(one["context"]) for some in found.values() for one in some) < 5300
    with pytest.raises(ValueError, match="plus de 5000 caractères d'occurrences : demandez moins de contexte"):
        grep_text("e " * 300, "e", context=100)


def test_what_re2_says_of_a_pattern_is_quoted_briefly():
    with pytest.raises(ValueError, match=r"motif mal formé \(RE2 : ") as refused:
        compile_pattern("(" * 1900)
    assert len(str(refused.value)) < 400
