"""The retriever over the sample, with a small encoder for its rules and the bundled one for its quality."""

import dataclasses
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest

from legal_rag.encoder import ColbertEncoder
from legal_rag.encoder.encoder import check_encoder
from legal_rag.law import keys as names
from legal_rag.library import Filters, Library
from legal_rag.retriever import Retriever, build_retriever

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"


@pytest.fixture(scope="module")
def retriever(tiny_library: Library, tiny_encoder: ColbertEncoder) -> Retriever:
    return build_retriever(tiny_library, tiny_encoder)


def test_hits_are_ranked_from_one_by_falling_score_and_hold_the_text_at_their_offsets(retriever, tiny_library):
    hits = retriever.search(QUESTION, 20)
    assert [hit.rank for hit in hits] == list(range(1, 21))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.chunk_id for hit in hits}) == 20
    for hit in hits:
        document = tiny_library.document(hit.doc_id)
        assert hit.text == document.content[hit.char_start : hit.char_end]
        assert (hit.title, hit.decision_date) == (document.title, document.decision_date)
        assert hit.chunk_id.rpartition("-")[0] == hit.doc_id
        assert type(hit.score) is float


def test_the_same_question_gives_the_same_hits(retriever, tiny_library, tiny_encoder):
    hits = retriever.search(QUESTION, 10)
    assert retriever.search(QUESTION, 10) == hits
    assert build_retriever(tiny_library.path, tiny_encoder).search(QUESTION, 10) == hits
    assert build_retriever(tiny_library.path).search(QUESTION, 10) == hits  # with the encoder its manifest names


def test_by_document_each_document_appears_once_by_its_best_chunk(retriever, tiny_library):
    hits = retriever.search(QUESTION, 60, by_document=True)
    assert [hit.rank for hit in hits] == list(range(1, 61))
    assert {hit.doc_id for hit in hits} == set(tiny_library)
    best, everything = {}, retriever.search(QUESTION, 10**9)
    for hit in everything:
        best.setdefault(hit.doc_id, hit.chunk_id)
    assert [hit.chunk_id for hit in hits] == list(best.values())
    assert len(everything) == tiny_library.manifest["counts"]["chunks"]
    assert len(retriever.search(QUESTION, 10**9, by_document=True)) == 60


def test_doc_ids_restrict_a_search(retriever, tiny_library):
    some = ["FICTIF0101", "FICTIF0102", "INCONNU"]
    hits = retriever.search(QUESTION, 50, filters=Filters(doc_ids=some))
    assert {hit.doc_id for hit in hits} == {"FICTIF0101", "FICTIF0102"}
    assert len(hits) == sum(len(tiny_library.chunks_of(doc_id)) for doc_id in some)
    assert [hit.rank for hit in retriever.search(QUESTION, 9, by_document=True, filters=Filters(doc_ids=some))] == [
        1,
        2,
    ]
    assert retriever.search(QUESTION, 5, filters=Filters(doc_ids=["INCONNU"])) == []
    assert retriever.search(QUESTION, 5, by_document=True, filters=Filters(doc_ids=iter([]))) == []


@pytest.mark.parametrize(
    ("question", "k", "problem"),
    [
        (QUESTION, 0, "k must be at least 1, got 0"),
        ("\n\u00a0", 5, "the question is empty"),
        ("délai " * 100, 5, "the question is too long: [0-9]+ tokens, and this encoder reads 64"),
    ],
)
def test_a_question_that_is_empty_or_would_be_cut_and_k_below_one_are_refused(retriever, question, k, problem):
    with pytest.raises(ValueError, match=problem):
        retriever.search(question, k)


def test_bm25_reads_a_question_longer_than_the_encoder(retriever):
    short, long = (retriever.search("délai " * n, 3, mode="bm25") for n in (1, 100))
    assert [hit.chunk_id for hit in long] == [hit.chunk_id for hit in short] != []
    with pytest.raises(ValueError, match="the question is empty"):
        retriever.search(" ", mode="bm25")


def test_a_query_made_once_finds_what_its_text_finds(retriever):
    text = unicodedata.normalize("NFD", QUESTION)
    query = retriever.query(text)
    assert (query.text, retriever.query(query)) == (QUESTION, query)
    assert retriever.search(query, 10) == retriever.search(text, 10)
    assert retriever.search_batch([query, query], 10) == retriever.search_batch([text, text], 10)
    assert retriever.search(query, 10, mode="bm25") == retriever.search(text, 10, mode="bm25")
    with pytest.raises(ValueError, match="the question is too long"):
        retriever.query("délai " * 100)


def test_a_question_is_parsed_for_identifiers_once(retriever, monkeypatch):
    find, parsed = names.find_typed_identifiers, []
    monkeypatch.setattr(names, "find_typed_identifiers", lambda text: parsed.append(text) or find(text))
    retriever.search(QUESTION)
    assert parsed == [QUESTION]


def test_words_are_searched_without_an_encoder(retriever, tiny_library, monkeypatch):
    monkeypatch.setattr(
        "legal_rag.retriever.retriever.load_encoder", lambda *_, **__: pytest.fail("an encoder is loaded")
    )
    lazy = Retriever(tiny_library)
    for by_document in (False, True):
        expected = retriever.search(QUESTION, 20, mode="bm25", by_document=by_document)
        assert lazy.search(QUESTION, 20, mode="bm25", by_document=by_document) == expected


def test_threads_load_an_encoder_that_was_not_given_once(retriever, tiny_library, tiny_encoder, monkeypatch):
    loads = []
    monkeypatch.setattr("legal_rag.retriever.retriever.load_encoder", lambda *_, **__: loads.append(1) or tiny_encoder)
    lazy = Retriever(tiny_library)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: lazy.search(QUESTION, 5), range(8)))
    assert found == [retriever.search(QUESTION, 5)] * 8
    assert len(loads) == 1
    assert lazy.reload().encoder is tiny_encoder


def test_shards_are_loaded_while_the_encoder_is(tiny_library, tiny_encoder, retriever, monkeypatch):
    opened = threading.Event()
    monkeypatch.setattr(Retriever, "_load_shards", lambda self: (self._open_shards(), opened.set()))

    def load_encoder(*_, **__):
        assert opened.wait(timeout=60)
        return tiny_encoder

    monkeypatch.setattr("legal_rag.retriever.retriever.load_encoder", load_encoder)
    lazy = Retriever(tiny_library)
    lazy.load()
    assert lazy.encoder is tiny_encoder
    assert lazy.search(QUESTION, 5) == retriever.search(QUESTION, 5)


@pytest.mark.parametrize("question", ["?", "\0", "日本語 🙂", "[Q] [D] [CLS] [MASK]", "' OR 1=1 --"])
def test_any_other_question_gets_hits(retriever, question):
    assert len(retriever.search(question, 3)) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "other/model"), ("revision", "abc"), ("dim", 128), ("query_prefix", "query: "), ("document_prefix", "")],
)
def test_another_encoder_than_the_index_was_made_with_is_refused(tiny_encoder, name, value):
    in_folder = tiny_encoder.identity  # which is known by its dimension and prefixes alone
    made_with = dataclasses.replace(in_folder, name="maker/model", revision="1")
    with pytest.raises(ValueError, match=f"wrong encoder for this index: its {name} is .*, the index was made with"):
        check_encoder(dataclasses.replace(made_with, **{name: value}), made_with)
    check_encoder(made_with, made_with)
    check_encoder(in_folder, made_with)
    with pytest.raises(ValueError, match="wrong encoder for this index: its dim is 32, the index was made with 384"):
        check_encoder(in_folder, dataclasses.replace(made_with, dim=384))


@pytest.mark.parametrize("encoder", [None, {}, {"name": "x"}, {"martian": 1}, "bundled"])
def test_a_manifest_that_names_no_encoder_is_damaged(tiny_library, encoder):
    library = Library(tiny_library.path)
    library.manifest["encoder"] = encoder
    with pytest.raises(ValueError, match="damaged manifest: .* does not say which encoder made it"):
        build_retriever(library)


@pytest.mark.slow
def test_the_bundled_encoder_finds_the_decisions_that_answer_the_sample_questions(
    sample_library, bundled, sample_questions
):
    retriever = build_retriever(sample_library, bundled)
    found = [
        question["doc_id"] in {hit.doc_id for hit in retriever.search(question["question"], 5, by_document=True)}
        for question in sample_questions
    ]
    assert sum(found) / len(found) >= 0.95  # measured: 1.0
