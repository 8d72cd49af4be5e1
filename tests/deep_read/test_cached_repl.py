"""The functions with caches: the same results, sooner; nothing that a caller does reaches another."""

import threading

import pytest
from support.indexed_corpora import indexed, indexed_sample

from legal_rag.agent import Budget
from legal_rag.deep_read import CachedCorpusREPL, MultiDocREPL, create_multi_doc_env
from legal_rag.deep_read import functions as cached_module
from legal_rag.indexer import IndexConfig, add_documents, remove_documents
from legal_rag.llm import BudgetExceededError, ModelError

SOCIAL = "FICTIF0210"


class Model:
    def __init__(self, reply=str.upper):
        self._reply, self.prompts = reply, []

    def query(self, prompt):
        self.prompts.append(prompt)
        return self._reply(prompt)


@pytest.fixture(scope="module")
def corpus(sample_file, tiny_encoder, tmp_path_factory):
    return indexed_sample(tmp_path_factory.getbasetemp(), sample_file, tiny_encoder)


@pytest.fixture
def repl(corpus):
    return CachedCorpusREPL(corpus, Model())


CALLS = {
    "keyword": lambda repl: repl.search_by_keyword("élection"),
    "keywords": lambda repl: repl.search_by_keywords(["élection", "candidat"], "all"),
    "entity": lambda repl: repl.search_by_entity("30 septembre 2011"),
    "find": lambda repl: repl.find_documents(juridiction="Cass. soc."),
    "citing": lambda repl: repl.documents_citing("L. 114-17 du code de la sécurité sociale"),
    "grep": lambda repl: repl.grep_corpus("pénalité", max_docs=None, context=5),
    "rank": lambda repl: repl.rank_documents("compte de campagne", 5),
    "passages": lambda repl: repl.search_passages("compte de campagne", 5, solution="Inéligibilité"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_search_made_twice_is_looked_up_once_and_gives_the_same(corpus, repl, name):
    call, plain = CALLS[name], MultiDocREPL(corpus)
    first = call(repl)
    before = repl.cache_info["searches"]
    again = call(repl)
    after = repl.cache_info["searches"]
    assert first == again == call(plain)
    assert first
    assert (after.misses, after.hits > before.hits) == (before.misses, True)


@pytest.mark.parametrize("name", CALLS)
def test_what_a_caller_does_to_a_result_reaches_no_other(repl, name):
    call = CALLS[name]
    first = call(repl)
    kept = repr(call(repl))
    if isinstance(first, dict):
        for matches in first.values():
            matches[0]["text"] = "falsifié"
        first.clear()
    else:
        if isinstance(first[0], dict):
            first[0]["text"] = "falsifié"
        first.clear()
    assert repr(call(repl)) == kept


def test_different_questions_never_share_an_answer(repl):
    assert repl.grep_corpus("cour").keys() != repl.grep_corpus("Cour", ignore_case=False).keys()
    assert len(repl.grep_corpus("cour", max_docs=2)) == 2
    assert len(repl.grep_corpus("cour", max_docs=3)) == 3
    assert len(repl.rank_documents("compte de campagne", 1)) == 1
    assert len(repl.rank_documents("compte de campagne", 2)) == 2
    passages = repl.search_passages("recours", 5, juridiction="Cass. soc."), repl.search_passages("recours", 5)
    assert passages[0] != passages[1]
    assert repl.search_by_keyword("candidat") != repl.search_by_entity("candidat")


def test_one_question_in_two_spellings_is_looked_up_once(repl):
    repl.search_by_keyword("Élection")
    repl.search_by_keyword("  élection ")
    repl.grep_corpus("cour", max_docs="5", ignore_case=1)
    repl.grep_corpus("cour", max_docs=5, ignore_case=True)
    repl.find_documents(juridiction="Cass. soc.", solution="")
    repl.find_documents(juridiction="Cass. soc.")
    assert (repl.cache_info["searches"].hits, repl.cache_info["searches"].misses) == (3, 3)


def test_documents_are_kept_up_to_fifty(repl, corpus):
    ids = corpus.document_ids()
    for doc_id in ids:
        repl.read_document(doc_id)
    assert repl.cache_info["documents"] == (0, 60, 50, 50)
    repl.read_document(ids[-1])
    repl.read_document_chunk(ids[-2], 0, 5)
    repl.grep_document(ids[-3], "cour")
    assert repl.cache_info["documents"] == (3, 60, 50, 50)
    repl.read_document(ids[0])
    assert repl.cache_info["documents"].misses == 61


def test_searches_are_kept_up_to_a_hundred(repl):
    for n in range(105):
        repl.search_by_keyword(f"mot{n}")
    assert repl.cache_info["searches"] == (0, 105, 100, 100)


def test_replies_of_the_model_are_kept_up_to_two_hundred(corpus):
    model = Model(lambda prompt: '{"pertinent": false}' if "Oui ?" in prompt else prompt.upper())
    repl = CachedCorpusREPL(corpus, model)
    assert repl.llm_query_batched([f"q{n}" for n in range(205)]) == [f"Q{n}" for n in range(205)]
    assert repl.cache_info["replies"] == (0, 205, 200, 200)
    assert repl.llm_query("q204") == "Q204"
    repl.ask_across_documents("Oui ?", [SOCIAL])
    repl.ask_about_document("Oui ?", SOCIAL)
    assert len(model.prompts) == 206


@pytest.mark.parametrize("error", [ModelError("server"), BudgetExceededError("model_calls", Budget())])
def test_what_failed_is_tried_again(corpus, error):
    def reply(prompt):
        if len(model.prompts) == 1:
            raise error
        return "bon"

    model = Model(reply)
    repl = CachedCorpusREPL(corpus, model)
    if isinstance(error, ModelError):
        assert repl.llm_query("q") == f"Erreur : {error.reason}"
    else:
        with pytest.raises(BudgetExceededError, match="Budget épuisé"):
            repl.llm_query("q")
    assert repl.llm_query("q") == "bon"


def test_a_search_that_ran_out_of_time_is_made_again(corpus, monkeypatch):
    monkeypatch.setattr(cached_module, "SECONDS", 0.0)
    repl = CachedCorpusREPL(corpus)
    for _ in range(2):
        repl.grep_corpus("cour")
        assert not repl.search_status()["complete"]
    assert repl.cache_info["searches"] == (0, 2, 100, 0)


def test_results_too_large_to_keep_are_found_anew(repl, monkeypatch):
    monkeypatch.setattr(cached_module, "MAX_IDS_KEPT", 3)
    monkeypatch.setattr(cached_module, "MAX_MATCHES_KEPT", 3)
    for _ in range(2):
        assert len(repl.find_documents()) == 60
        assert len(repl.grep_corpus("cour")) > 3
    assert repl.cache_info["searches"] == (0, 4, 100, 0)


def test_threads_share_a_cache_without_losing_count(corpus):
    repl, wrong = CachedCorpusREPL(corpus, Model()), []

    def looking():
        for n in range(500):
            if repl.llm_query(f"q{n % 20}") != f"Q{n % 20}":
                wrong.append(n)

    threads = [threading.Thread(target=looking) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    info = repl.cache_info["replies"]
    assert wrong == []
    assert info.hits + info.misses == 8 * 500
    assert info.currsize == 20


def test_a_reply_that_takes_long_holds_up_no_other(corpus):
    entered, release = threading.Event(), threading.Event()

    def reply(prompt):
        if prompt == "a":
            entered.set()
            assert release.wait(20)
        return prompt.upper()

    repl = CachedCorpusREPL(corpus, Model(reply))
    thread = threading.Thread(target=repl.llm_query, args=("a",))
    thread.start()
    assert entered.wait(20)
    assert repl.llm_query("b") == "B"
    release.set()
    thread.join()
    assert repl.llm_query("a") == "A"


def test_an_environment_caches_what_its_functions_find(corpus):
    model = Model()
    env = create_multi_doc_env(corpus, model)
    for _ in range(2):
        assert env["llm_query"]("a") == "A"
    assert len(model.prompts) == 1


def test_a_corpus_that_changed_meanwhile_is_read_as_it_was(sample_rows, tiny_encoder, tmp_path):
    repl = CachedCorpusREPL(indexed(tmp_path, sample_rows[:12], tiny_encoder), Model())
    ids = repl.list_documents()
    before = repl.grep_corpus("compte de campagne", max_docs=None)
    row = {"id": "neuf", "title": "Neuf", "content": "Un compte de campagne tout neuf."}
    add_documents(IndexConfig(source=[row], index_folder=str(tmp_path)), tiny_encoder)
    remove_documents(["FICTIF0101"], tmp_path)
    assert repl.grep_corpus("compte de campagne", max_docs=None) == before
    assert repl.list_documents() == ids
