"""The functions of a deep read: what they find, how they take what programs hand over, what they write down."""

import inspect
import json
import re

import pytest
from support.indexed_corpora import indexed, indexed_sample

from legal_rag.agent import Budget
from legal_rag.agent.event_log import EventLog
from legal_rag.deep_read import MultiDocREPL, create_multi_doc_env, functions
from legal_rag.deep_read.functions import FUNCTION_NAMES, MAX_EVENTS, MAX_READ, MAX_SEEN, description_of
from legal_rag.deep_read.prompts import UNVERIFIED
from legal_rag.deep_read.receipts import COMPUTING
from legal_rag.llm import BudgetExceededError, ModelError
from legal_rag.retriever import Retriever

SOCIAL = "FICTIF0210"  # Cour de cassation, chambre sociale, 18 juin 2003, 01-43.927


@pytest.fixture(scope="module")
def corpus(sample_file, tiny_encoder, tmp_path_factory):
    return indexed_sample(tmp_path_factory.getbasetemp(), sample_file, tiny_encoder)


@pytest.fixture
def repl(corpus):
    return MultiDocREPL(corpus)


@pytest.fixture
def rows(corpus):
    """Return the documents as they are indexed: without the tags of their source."""
    return {one.id: one.row() for one in corpus.library.documents()}


class Model:
    """Answers with what it finds in the prompt."""

    def __init__(self, answer=lambda prompt: "oui"):
        self._answer, self.prompts = answer, []

    def query(self, prompt):
        self.prompts.append(prompt)
        return self._answer(prompt)


def replying(answer, *quotes):
    """Return what a model says of a document it was asked about."""
    return json.dumps({"pertinent": True, "reponse": answer, "citations": quotes})


# --- naming documents


@pytest.mark.parametrize(
    "named",
    [
        SOCIAL,
        f"{SOCIAL}-0",
        f" « {SOCIAL.lower()} » ",
        f"[Source: {SOCIAL}, chars 0-100]",
        "01-43.927",
        "pourvoi n° 01-43.927",
        [SOCIAL],
        {"doc_id": SOCIAL, "title": "Un titre"},
        {"id": SOCIAL},
        (SOCIAL, 12.5, "Un résumé"),
        [SOCIAL, 3, "x"],
    ],
)
def test_a_document_is_found_by_whatever_a_program_hands_over(repl, rows, named):
    assert repl.read_document(named) == rows[SOCIAL]["content"]
    assert repl.get_doc_meta(named)["doc_id"] == SOCIAL
    assert list(repl.get_doc_metas([named])) == [SOCIAL]


@pytest.mark.parametrize("named", ["FICTIF9999", "", None, 12, {"a": 1}, [], "\ud800", "x" * 500, "Cour de cassation"])
def test_an_unknown_document_is_answered_with_the_nearest_id(repl, named):
    for function in (repl.read_document, repl.get_doc_meta, repl.get_doc_summary, repl.get_doc_toc, repl.get_links):
        with pytest.raises(LookupError, match="(Identifiant le plus proche|Exemple d'identifiant) : « FICTIF0"):
            function(named)


@pytest.mark.parametrize(
    "named",
    [
        ["FICTIF0101", "FICTIF0210"],
        ("FICTIF0101", "FICTIF0210", "FICTIF0101"),
        "FICTIF0101, FICTIF0210",
        "FICTIF0101;FICTIF0210",
        '["FICTIF0101", "FICTIF0210"]',
        "['FICTIF0101', 'FICTIF0210']",
        {"FICTIF0101": [], "FICTIF0210": []},
        [{"doc_id": "FICTIF0101"}, ("FICTIF0210-0", 1.0, "")],
        dict.fromkeys(["FICTIF0101", "01-43.927"]).keys(),
    ],
)
def test_several_documents_are_taken_in_any_form_each_once(repl, named):
    assert list(repl.get_doc_metas(named)) == ["FICTIF0101", "FICTIF0210"]


# --- the corpus


def test_metadata_are_plain_and_say_what_the_source_says(repl, rows):
    meta = json.loads(json.dumps(repl.get_doc_meta(SOCIAL)))
    row = rows[SOCIAL]
    for name in ("title", "juridiction", "formation", "solution"):
        assert meta[name] == row[name]
    assert (meta["date"], meta["char_count"]) == (row["decision_date"], len(row["content"]))
    assert all(isinstance(meta[name], list) and meta[name] for name in ("keywords", "entities"))
    assert meta["summary"]


def test_documents_summaries_and_metadata_come_in_the_order_of_the_corpus(repl, rows):
    assert repl.list_documents() == list(rows)
    assert repl.list_documents(limit=2, offset="58") == list(rows)[58:]
    summaries = repl.get_all_summaries(limit=5, offset=2)
    assert list(summaries) == list(rows)[2:7]
    assert repl.get_all_summaries()[SOCIAL] == repl.get_doc_summary(SOCIAL) != ""
    metas = repl.get_doc_metas()
    assert list(metas) == list(rows)
    assert metas[SOCIAL] == {name: one for name, one in repl.get_doc_meta(SOCIAL).items() if name != "entities"}
    backwards = repl.list_documents()[::-1]
    assert list(repl.get_doc_metas(backwards)) == backwards
    assert repl.get_doc_metas([]) == {}
    with pytest.raises(LookupError, match="« FICTIF99 ».*plus proche"):
        repl.get_doc_metas(["FICTIF0101", "FICTIF99"])


def test_a_keyword_is_found_whatever_its_form(repl):
    keyword = repl.get_doc_meta(SOCIAL)["keywords"][0]
    found = repl.search_by_keyword(keyword)
    assert SOCIAL in found
    assert repl.search_by_keyword(f"  {keyword.upper()} ") == found
    assert repl.search_by_keyword("zygomorphe") == repl.search_by_entity("Jean-Baptiste Poquelin de Nulle-Part") == []
    assert SOCIAL in repl.search_by_entity("la Cour de cassation")
    with pytest.raises(ValueError, match="la question est vide"):
        repl.search_by_keyword("  ")


def test_several_keywords_are_found_together_or_apart(repl):
    first, second = repl.get_doc_meta(SOCIAL)["keywords"][:2]
    either, both = repl.search_by_keywords([first, second]), repl.search_by_keywords([first, second], "all")
    ids = [set(repl.search_by_keyword(one)) for one in (first, second)]
    assert set(either) == ids[0] | ids[1]
    assert set(both) == ids[0] & ids[1]
    assert set(either[: len(both)]) == set(both)
    assert repl.search_by_keywords(f"{first}, {second}", mode="all") == both
    with pytest.raises(ValueError, match='mode doit être "any"'):
        repl.search_by_keywords([first], mode="presque")


def test_where_nothing_was_extracted_a_search_by_entity_says_so(tiny_encoder, tmp_path):
    row = {"id": "A", "content": "Vu l'article L. 1152-1 du code du travail ; condamne la société Lever."}
    bare = MultiDocREPL(indexed(tmp_path, [row], tiny_encoder, entities=False))
    for call in (lambda: bare.search_by_entity("Lever"), lambda: bare.find_documents(entites="partie=Lever")):
        with pytest.raises(ValueError, match="entité n'"):
            call()
    assert bare.get_entities("A", "article_cite")  # by the rules, now


def test_documents_are_found_by_all_the_conditions_given(repl, rows):
    rulings = [one for one, row in rows.items() if row.get("formation") == "Chambre sociale"]
    assert repl.find_documents(juridiction="Cass. soc.") == rulings
    late = [one for one in rulings if rows[one]["decision_date"] >= "2016"]
    assert repl.find_documents(formation="chambre sociale", juridiction="Cour de cassation", date_from=2016) == late
    assert repl.find_documents(number="01-43.927") == [SOCIAL]
    assert repl.find_documents(doc_ids=rulings[:2], solution="") == rulings[:2]
    assert repl.find_documents() == list(rows)


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"date_from": "un jour"}, "date_from n'est pas compris : « un jour »"),
        ({"article": "rien"}, "article n'est pas compris"),
        ({"entites": "Lever"}, "entites n'est pas compris"),
        (
            {"entites": "chose=bleue"},
            "aucune entité de cette classe n'a été extraite de ce corpus ; les classes usuelles : .*partie",
        ),
    ],
)
def test_a_condition_that_is_not_understood_is_named(repl, filters, reason):
    for call in (repl.find_documents, lambda **filters: repl.search_passages("délai", **filters)):
        with pytest.raises(ValueError, match=reason):
            call(**filters)


def test_topics_hold_documents_and_are_found_by_their_names(repl):
    topics = repl.get_topics()
    assert 50 <= sum(topics.values()) <= 60  # what shares no term with another is in no topic
    name, size = next(iter(topics.items()))
    assert size == max(topics.values())
    assert len(repl.documents_in_topic(name)) == size
    with pytest.raises(LookupError, match="aucun thème « pêche à la ligne » ; les plus proches : «"):
        repl.documents_in_topic("pêche à la ligne")


def test_links_go_both_ways(tiny_encoder, tmp_path):
    cited = {"id": "A", "number": "90-41.231", "juridiction": "Cour de cassation", "content": "Rejette le pourvoi."}
    citing = {"id": "B", "number": "99-40.001", "content": "Vu l'arrêt du 3 mars 1993, pourvoi n° 90-41.231."}
    repl = MultiDocREPL(indexed(tmp_path, [cited, citing], tiny_encoder, entities=False))
    assert repl.get_links("A") == {"cites": [], "cited_by": ["B"]}
    assert repl.get_links("99-40.001") == {"cites": ["A"], "cited_by": []}
    assert repl.documents_citing("90-41.231") == ["B"]


def test_who_cites_an_article_is_found(repl):
    found = repl.documents_citing("article L. 114-17 du code de la sécurité sociale")
    assert "FICTIF0101" in found
    assert repl.documents_citing("article L. 9999-99 du code de la route") == []
    with pytest.raises(ValueError, match="« la pêche » n'est ni un article ni une décision"):
        repl.documents_citing("la pêche")


# --- texts


def test_a_pattern_finds_passages_with_their_places(repl, rows):
    found = repl.grep_corpus(r"\bpénalités?\b", max_docs="50", max_matches_per_doc="3")
    assert found
    for doc_id, matches in found.items():
        for one in matches:
            assert rows[doc_id]["content"][one["start"] : one["end"]] == one["text"]
    assert [repl.search_status()[name] for name in ("total", "complete")] == [60, True]
    assert repl.grep_corpus(["pénalité", "pénalités"], max_docs=None) != {}
    repl.grep_corpus("pénalité", doc_ids=[*list(found)[:1], "FICTIF0101-0"])
    assert repl.search_status()["total"] in (1, 2)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pattern": "(a"}, "motif mal formé"),
        ({"pattern": None}, "le motif doit être une expression régulière"),
        ({"pattern": "a", "max_docs": "beaucoup"}, "max_docs doit être un nombre entier"),
        ({"pattern": "a", "max_matches_per_doc": -3}, "max_matches_per_doc doit être un nombre entier"),
        ({"pattern": "a", "context": [1, 2]}, "context doit être un nombre entier"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(repl, arguments, reason):
    with pytest.raises(ValueError, match=reason):
        repl.grep_corpus(**arguments)


def test_a_part_of_a_document_is_read_by_characters(repl, rows):
    content = rows[SOCIAL]["content"]
    assert repl.read_document_chunk(SOCIAL, 5, 25) == content[5:25]
    assert repl.read_document_chunk(SOCIAL, "5", "25") == content[5:25]
    assert repl.read_document_chunk(SOCIAL, 5) == content[5:]
    assert repl.read_document_chunk(SOCIAL, 5, 10**9) == content[5:]
    assert repl.read_document_chunk(SOCIAL, 10**9) == ""
    with pytest.raises(ValueError, match=r"end \(3\) est avant start \(5\)"):
        repl.read_document_chunk(SOCIAL, 5, 3)
    with pytest.raises(ValueError, match="start doit être un nombre entier"):
        repl.read_document_chunk(SOCIAL, -1)


def test_entities_stand_where_they_say(repl, rows):
    found = repl.get_entities(SOCIAL)
    assert len(found) > 10
    for one in found:
        assert rows[SOCIAL]["content"][one["char_start"] : one["char_end"]] == one["extraction_text"]
    dates = repl.get_entities(SOCIAL, "Date, montant")
    assert {one["extraction_class"] for one in dates} <= {"date", "montant"}
    assert dates == repl.get_entities(SOCIAL, ["date", "montant"])
    assert repl.get_entities(SOCIAL, "share_capital") == []
    with pytest.raises(ValueError, match="aucune classe « planète » ; dans ce document : .*juridiction"):
        repl.get_entities(SOCIAL, ["planète"])


def test_sections_are_those_of_the_plan_and_read_as_they_stand(repl, rows):
    content = rows["FICTIF0101"]["content"]
    names, toc = repl.get_doc_sections("FICTIF0101"), repl.get_doc_toc("FICTIF0101")
    assert len(names) > 2
    assert json.loads(json.dumps(toc)) == toc
    for name in names:
        assert repl.read_doc_section("FICTIF0101", name) in content
    details = json.loads(json.dumps(repl.get_section_details("FICTIF0101")))
    assert list(details) == names
    assert all(
        content[one["start"] : one["end"]] == repl.read_doc_section("FICTIF0101", name) for name, one in details.items()
    )
    assert all(one["summary"] for one in details.values())
    toc["sections"].clear()
    assert repl.get_doc_toc("FICTIF0101") != toc
    with pytest.raises(LookupError, match="aucune section « Rien de tel » ; les plus proches : «"):
        repl.read_doc_section("FICTIF0101", "Rien de tel")


def test_documents_are_ranked_with_their_summaries(repl):
    ranked = repl.rank_documents("inéligibilité d'un candidat dont le compte de campagne est rejeté", "4")
    assert len(ranked) == len({doc_id for doc_id, _, _ in ranked}) == 4
    assert [score for _, score, _ in ranked] == sorted((score for _, score, _ in ranked), reverse=True)
    assert all(summary == repl.get_doc_summary(doc_id) for doc_id, _, summary in ranked)
    assert repl.rank_documents("pourvoi 01-43.927", 1)[0][0] == SOCIAL
    with pytest.raises(ValueError, match="la question est vide"):
        repl.rank_documents("")
    with pytest.raises(ValueError, match="top_k doit être un nombre entier de 1 à"):
        repl.rank_documents("délai", 0)


@pytest.mark.parametrize("encoder", [False, True])
def test_passages_are_found_with_filters_and_places(corpus, tiny_encoder, rows, encoder):
    retriever = Retriever(corpus.library, tiny_encoder) if encoder else None
    found = MultiDocREPL(corpus, None, retriever).search_passages("licenciement", k=5, juridiction="Cass. soc.")
    assert found
    for one in found:
        assert rows[one["doc_id"]]["content"][one["char_start"] : one["char_end"]] == one["text"]
        assert rows[one["doc_id"]]["formation"] == "Chambre sociale"
        assert set(one) == {"doc_id", "chunk_id", "char_start", "char_end", "text", "score", "title", "date", "fate"}
    assert json.loads(json.dumps(found)) == found


def test_a_question_that_no_encoder_reads_is_refused_in_french(corpus, tiny_encoder):
    repl = MultiDocREPL(corpus, None, Retriever(corpus.library, tiny_encoder))
    with pytest.raises(ValueError, match="raccourcissez la question"):
        repl.search_passages("délai " * 500)


# --- the model


def test_without_a_model_what_asks_one_says_so(repl):
    calls = (
        lambda: repl.llm_query("Bonjour"),
        lambda: repl.llm_query_batched(["Bonjour"]),
        lambda: repl.ask_about_document("Quoi ?", SOCIAL),
        lambda: repl.ask_across_documents("Quoi ?", [SOCIAL]),
    )
    for call in calls:
        with pytest.raises(ValueError, match="aucun modèle n'est branché"):
            call()


def test_a_document_is_asked_about_whole_and_its_quotation_is_verified(corpus, rows):
    content = rows[SOCIAL]["content"]
    last = content.strip().splitlines()[-1].strip()
    model = Model(lambda prompt: replying("Rejet.", last) if content[-40:].strip() in prompt else "Rejet.")
    repl = MultiDocREPL(corpus, model)
    answer = repl.ask_about_document("Quelle solution ?", "01-43.927")
    said, doc_id, start, end = re.fullmatch(r"(.*) : « .* » \[Source: (\w+), chars (\d+)-(\d+)\]", answer).groups()
    assert (said, doc_id, content[int(start) : int(end)].strip(" .")) == ("Rejet", SOCIAL, last.strip(" ."))
    assert list(repl.log.documents) == [SOCIAL]
    with pytest.raises(LookupError, match="plus proche"):
        repl.ask_about_document("Quelle solution ?", "FICTIF99")
    with pytest.raises(ValueError, match="la question est vide"):
        repl.ask_about_document(" ", SOCIAL)


def test_several_documents_are_asked_by_their_ids(corpus):
    model = Model(lambda prompt: replying(next(word for word in prompt.split() if word.startswith("FICTIF"))))
    repl = MultiDocREPL(corpus, model, workers=3)
    asked = ["FICTIF0210-0", "FICTIF0101", "FICTIF99", {"doc_id": "FICTIF0102"}]
    answers = repl.ask_across_documents("Qui ?", asked)
    assert list(answers) == ["FICTIF0210", "FICTIF0101", "FICTIF99", "FICTIF0102"]
    assert answers["FICTIF0102"] == f"FICTIF0102\n{UNVERIFIED}"
    assert answers["FICTIF99"] == "Erreur : aucun document de ce nom"
    assert repl.parallel_document_search(asked, "Qui ?") == answers
    assert list(repl.log.documents) == ["FICTIF0210", "FICTIF0101", "FICTIF0102"]


def test_documents_read_before_the_budget_ends_are_in_the_log(corpus):
    def reply(prompt):
        if "Décision : FICTIF0102" in prompt:
            raise BudgetExceededError("model_calls", Budget(model_calls=1))
        return replying("oui")

    repl = MultiDocREPL(corpus, Model(reply), workers=1)
    with pytest.raises(BudgetExceededError, match="Budget épuisé : 1 appel"):
        repl.ask_across_documents("Qui ?", ["FICTIF0101", "FICTIF0102", "FICTIF0103"])
    assert next(iter(repl.log.documents)) == repl.log.events[-1].output_ids[0] == "FICTIF0101"
    assert "FICTIF0102" not in repl.log.documents


def test_single_prompts_go_to_the_model_as_they_are(corpus):
    repl = MultiDocREPL(corpus, Model(str.upper))
    assert repl.llm_query("a", model="autre") == "A"
    assert repl.llm_query_batched(["a", "b"]) == ["A", "B"]
    assert repl.llm_query_batched("a") == ["A"]
    assert repl.llm_query(" a\n") == " A\n"
    with pytest.raises(ValueError, match="la demande est vide"):
        repl.llm_query_batched(["a", " "])


# --- caches: the same results, sooner; nothing that a caller does reaches another

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


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_search_made_twice_is_looked_up_once_and_what_a_caller_does_to_it_reaches_no_other(corpus, repl, call):
    first, before = call(repl), repl.cache_info["searches"]
    kept = repr(first)
    rows = [matches[0] for matches in first.values()] if isinstance(first, dict) else first[:1]
    for row in rows:
        if isinstance(row, dict):
            row["text"] = "falsifié"
    first.clear()
    assert repr(call(repl)) == kept == repr(call(MultiDocREPL(corpus)))
    after = repl.cache_info["searches"]
    assert (after.misses, after.hits > before.hits) == (before.misses, True)


def test_one_question_in_two_spellings_is_looked_up_once(repl):
    repl.search_by_keyword("Élection")
    repl.search_by_keyword("  élection ")
    repl.grep_corpus("cour", max_docs="5", ignore_case=1)
    repl.grep_corpus("cour", max_docs=5, ignore_case=True)
    repl.find_documents(juridiction="Cass. soc.", solution="")
    repl.find_documents(juridiction="Cass. soc.")
    assert (repl.cache_info["searches"].hits, repl.cache_info["searches"].misses) == (3, 3)


def test_fifty_documents_a_hundred_searches_and_two_hundred_replies_are_kept(corpus):
    model = Model(lambda prompt: '{"pertinent": false}' if "Oui ?" in prompt else prompt.upper())
    repl, ids = MultiDocREPL(corpus, model), corpus.document_ids()
    for doc_id in [*ids, ids[-1], ids[-2]]:
        repl.read_document(doc_id)
    for n in range(105):
        repl.search_by_keyword(f"mot{n}")
    assert repl.llm_query_batched([f"q{n}" for n in range(205)]) == [f"Q{n}" for n in range(205)]
    infos = [(2, 60, 50, 50), (0, 105, 100, 100), (0, 205, 200, 200)]
    assert [*repl.cache_info.values()] == infos
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
    repl = MultiDocREPL(corpus, model)
    if isinstance(error, ModelError):
        assert repl.llm_query("q") == f"Erreur : {error.reason}"
    else:
        with pytest.raises(BudgetExceededError, match="Budget épuisé"):
            repl.llm_query("q")
    assert repl.llm_query("q") == "bon"


def test_a_search_that_ran_out_of_time_is_made_again(corpus, monkeypatch):
    monkeypatch.setattr(functions, "SECONDS", 0.0)
    repl = MultiDocREPL(corpus)
    for _ in range(2):
        repl.grep_corpus("cour")
        assert not repl.search_status()["complete"]
    assert repl.cache_info["searches"] == (0, 2, 100, 0)


def test_results_too_large_to_keep_are_found_anew(repl, monkeypatch):
    monkeypatch.setattr(functions, "MAX_IDS_KEPT", 3)
    monkeypatch.setattr(functions, "MAX_MATCHES_KEPT", 3)
    for _ in range(2):
        assert len(repl.find_documents()) == 60
        assert len(repl.grep_corpus("cour")) > 3
    assert repl.cache_info["searches"] == (0, 4, 100, 0)


# --- the environment


def test_the_environment_has_the_values_and_functions_of_the_corpus(corpus, rows):
    env = create_multi_doc_env(corpus, Model())
    assert (env["total_docs"], env["total_chars"]) == (60, sum(len(row["content"]) for row in rows.values()))
    assert env["doc_ids"] == list(rows)
    assert list(env["doc_summaries"]) == list(rows)[:20]
    assert env["corpus_path"] == corpus.corpus_path
    values = {"corpus_path", "total_docs", "total_chars", "doc_ids", "doc_summaries", "extraction_index"}
    assert set(env) == {*values, *FUNCTION_NAMES, *COMPUTING}
    assert env["extraction_index"][SOCIAL] == env["get_entities"](SOCIAL) != []
    assert (len(env["extraction_index"]), "INCONNU" in env["extraction_index"]) == (60, False)
    assert json.loads(json.dumps(env.values)) == env.values
    assert env["llm_query"]("Bonjour") == "oui"


def test_a_sandbox_is_not_given_all_ids_of_a_large_corpus(corpus, rows, monkeypatch):
    monkeypatch.setattr(functions, "MAX_IDS", 59)
    env = create_multi_doc_env(corpus)
    assert "doc_ids" not in env.values
    assert env["doc_ids"] == dict(env)["doc_ids"] == list(rows)


def test_every_function_is_described_to_the_model_in_french(corpus):
    env = create_multi_doc_env(corpus)
    said = "\n".join(f"- {name}{description_of(one)}" for name, one in env.functions.items())
    assert said.count("\n") + 1 == len(FUNCTION_NAMES) + len(COMPUTING) >= 36
    assert "- list_documents(limit=None, offset=0) -> list[str] : Identifiants des documents" in said
    assert "- grep_document(doc_id, pattern, ignore_case=True, context=0, fold=False) -> list[dict] : " in said
    assert set(env.functions) - set(env.descriptions) == {"get_doc_summary", "parallel_document_search"}
    for name, function in env.functions.items():
        doc = inspect.getdoc(function)
        assert doc, name
        assert 1 <= len(doc.splitlines()) <= 4, name


# --- the log


def test_what_was_searched_found_and_read_is_written_down(corpus):
    repl = MultiDocREPL(corpus, log=EventLog())
    repl.grep_corpus("inéligible")
    repl.rank_documents("compte de campagne", 3)
    repl.read_document(SOCIAL)
    repl.get_doc_metas()
    assert [event.tool for event in repl.log.events] == ["grep_corpus", "rank_documents"]
    assert repl.log.sources[0] == SOCIAL
    assert len(repl.log.documents) == 4
    assert len(repl.log.passages) == 3


def test_loops_over_a_corpus_leave_a_log_of_bounded_size(corpus):
    repl = MultiDocREPL(corpus)
    for _ in range(MAX_EVENTS + 5):
        repl.find_documents(number="01-43.927")
    repl.search_passages("cour", k=200)
    assert len(repl.log.events) == MAX_EVENTS
    assert len(repl.log.passages) <= MAX_SEEN
    assert MAX_READ < 10_000
