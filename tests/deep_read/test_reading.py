"""Deep reading from question to checked answer: a scripted root model, real programs in the real sandbox."""

import json
import re
import textwrap

import pytest
from support.rlm_scripts import in_repl, root_model
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import Budget, build_language_model
from legal_rag.deep_read import DEEP_READ_BUDGET, Limits, deep_read, read_trace
from legal_rag.deep_read.reading import most_in_french
from legal_rag.deep_read.settings import DeepReadSettings
from legal_rag.law import split_sentences
from legal_rag.law.sentences import without_blanks
from legal_rag.llm import tokens_in

QUESTION = "Combien de décisions de la Cour de cassation y a-t-il dans le corpus, et laquelle est la plus ancienne ?"
COUNTING = "ids = find_documents(juridiction='Cour de cassation')\nFINAL({'nombre': count(ids)})"


@pytest.fixture
def ask(tiny_library):
    """Ask a question of the small Library, of a model that replies by a script; `ask.prompts` are what it was sent."""

    def asking(script, question=QUESTION, doc_ids=None, *, seed=None, window=None, **settings):
        with ScriptedServer(script) as server:
            sampling = {"num_retries": 0, "timeout": 20, "seed": seed, "window": window}
            lm = build_language_model("root", api_base=server.api_base, cache=False, **sampling)
            try:
                return deep_read(question, doc_ids, library=tiny_library, lm=lm, **settings)
            finally:
                asking.prompts = server.prompts

    return asking


def test_a_program_counts_over_the_corpus(ask, sample_rows):
    expected = sum(row.get("juridiction") == "Cour de cassation" for row in sample_rows)
    prediction = ask(root_model([COUNTING]))
    assert (prediction.mode, prediction.status) == ("deep_read", "answered")
    assert prediction.answer == f"- **nombre** : {expected}"
    assert prediction.events[-1].input["value"] == {"nombre": expected}
    assert re.search(rf"Réponse calculée .* : r\d+ : nombre des décisions rendues .* = {expected}", prediction.notice)
    (receipt,) = prediction.events[-1].input["receipts"]
    assert (receipt["value"], receipt["n"], len(receipt["first"])) == (str(expected), expected, 3)
    assert prediction.usage.calls == 1


def test_what_programs_printed_is_cut_to_what_the_model_takes(ask):
    told = "Le compte de campagne est rejeté."
    printing = f"for n in range(300):\n    print('Attendu que le moyen', n, 'manque en fait.')\nprint({told!r})"
    window = 12_000
    prediction = ask(root_model([printing, printing, COUNTING]), "Quel compte de campagne est rejeté ?", window=window)
    assert prediction.status == "answered"
    assert all(tokens_in(prompt) <= window for prompt in ask.prompts)
    assert "(observation abrégée : " in ask.prompts[-1]
    assert ask.prompts[-1].count(told) == 2 + 2  # printed twice, by two programs that say it


CITED_VALUES = """
found = grep_corpus("compte de campagne", max_docs=None)
doc_id, places = next(iter(found.items()))
said = f"« {places[0]['text']} » [Source: {doc_id}, chars {places[0]['start']}-{places[0]['end']}]"
"""


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("FINAL({'Un motif': said, 'nombre': count(found)})", "answered"),
        ("FINAL({'Un motif': said, 'nombre': len(found)})", "unverified"),
        ("FINAL({'Un motif': [said, said]})", "answered"),
        ("FINAL([said])", "answered"),
        ("FINAL({'Un motif': said, 'nombre': 4217})", "unverified"),
        ("FINAL([said, 'Tout est permis.'])", "unverified"),
        ("FINAL({'Un motif': [said, 'Tout est permis.']})", "unverified"),
        ("FINAL([['Tout est permis.', said], said])", "unverified"),
        ("FINAL([said, said.replace('campagne', 'régate')])", "unverified"),
    ],
)
def test_values_next_to_texts_that_cite_are_judged_apart(ask, program, status):
    prediction = ask(root_model([CITED_VALUES + program]))
    assert prediction.status == status
    assert any(citation.holds for citation in prediction.citations)


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("{'37 annulations en 1850': said}", False),
        ("{'37 annulations en 1850': {'motif': [said]}}", False),
        ("{list_documents()[0]: said}", False),
        ("{doc_id: said}", True),
        ("{'motifs': {doc_id: [said]}}", True),
        ("{get_doc_meta(doc_id)['date']: said}", True),
    ],
)
def test_a_key_stands_where_the_citation_below_it_holds_it_up(ask, value, holds):
    prediction = ask(root_model([CITED_VALUES + f"FINAL({{'nombre': count(found), **{value}}})"]))
    assert (prediction.status == "answered") is holds
    assert holds or "Réponse calculée" not in prediction.notice


def test_state_is_kept_output_is_shown_and_rlms_own_protocol_is_understood(ask):
    last = "answer['content'] = [len(ids), llm_query('lis')[:6]]\nanswer['ready'] = True"
    prediction = ask(root_model(["ids = list_documents()\nprint('témoin', 6 * 7)", last], {"lis": Reply(status=500)}))
    assert prediction.answer == "- 60\n- Erreur"  # of the sub-model, which failed
    assert "témoin 42" in ask.prompts[1]


def test_a_question_about_some_documents_finds_them_in_the_context(ask, tiny_library):
    first, second = list(tiny_library)[:2]
    code = "print(context[:40])\nFINAL([name in context for name in ('EXTRACTION INDEX', 'FICTIF')])"
    prediction = ask(root_model([code]), doc_ids=[first, second])
    assert prediction.events[-1].input["value"] == [True, True]
    assert {one.doc_id for one in prediction.documents} >= {first, second}
    assert "les 2 décisions sur lesquelles porte la question" in " ".join(ask.prompts[0].split())


def test_an_unknown_document_and_an_empty_question_are_errors_before_anything_is_asked(ask):
    with pytest.raises(LookupError, match="no document 'INCONNU'"):
        ask(root_model([]), doc_ids=["INCONNU"])
    with pytest.raises(ValueError, match="the question is empty"):
        ask(root_model([]), question="  ")
    assert ask.prompts == []


def test_the_prompt_is_ours_then_the_user_s_and_all_in_french(ask):
    programs = ["print(1)", "FINAL(len(doc_ids))"]
    ask(root_model(programs), settings=DeepReadSettings(instructions="Répondez {en vers}."))
    first, second = ask.prompts
    parts = ("grep_corpus", "[Analysis]", "Répondez {en vers}.", f"Question : {QUESTION}", "Tour 1/")
    assert sorted(parts, key=first.index) == list(parts)
    assert "Sortie :\n1\n" in second
    assert second.rpartition("\n\n")[2].startswith("Tour 2/10 : si ce qui est affiché répond")
    assert not any(word in second for word in ("REPL", "Turn", "You are", "sub-LLM", "500K"))


@pytest.mark.parametrize(
    ("window", "read", "is_told", "most"), [(8_192, 12_288, False, 1_800), (131_072, 40_000, True, 3_300)]
)
def test_the_prompt_tells_the_model_s_own_sizes_and_leaves_out_what_is_optional(ask, window, read, is_told, most):
    ask(root_model(["FINAL(len(doc_ids))"]), window=window)
    (prompt,) = ask.prompts
    assert f"{read} caractères au plus" in prompt
    assert ("get_doc_toc" in prompt, "Résumés des premières" in prompt) == (is_told, is_told)
    assert tokens_in(prompt) < most


@pytest.mark.parametrize(
    ("programs", "budget", "limit"),
    [
        (["print(1)"] * 9, {"steps": 3}, "3 étapes"),
        (["for n in range(9):\n    llm_query(f'lis {n}')"], {"model_calls": 4}, "4 appels"),
        (["llm_query('lis')", "print(1)"], {"tokens": 2}, "2 jetons"),
        (["while True:\n    get_doc_summary(doc_ids[0])"], {"seconds": 0.5}, "0,5 seconde"),
    ],
)
def test_a_limit_ends_a_run_and_says_so(ask, programs, budget, limit):
    last = Reply("Rien de sûr.")
    prediction = ask(root_model(programs, {"lis": "lu"}, last), budget=Budget(**{"seconds": 60.0, **budget}))
    assert prediction.status == "exhausted"
    assert f"Budget épuisé : {limit}" in prediction.notice


def test_a_run_cut_short_gives_what_its_answer_held(ask):
    programs = ["answer['content'] = {'vues': len(doc_ids)}"] + ["print(1)"] * 5
    prediction = ask(root_model(programs), budget=Budget(steps=3))
    assert prediction.status == "exhausted"
    assert prediction.answer == "- **vues** : 60"


def test_a_run_cut_short_shows_the_passages_that_it_found(ask):
    programs = ["grep_document(doc_ids[0], 'x')\nsearch_passages('compte de campagne', 3)"] + ["print(1)"] * 5
    prediction = ask(root_model(programs, last=Reply("Rien.")), budget=Budget(steps=2))
    assert prediction.answer.startswith("Passages trouvés :")
    assert {citation.status for citation in prediction.citations} == {"verified"}


PROSE = Reply("Je réfléchis encore, sans rien écrire d'autre.")
FAILURES = {
    "no code": ([PROSE] * 9, "n'a écrit aucun programme qui fonctionne"),
    "broken code": (["for for"] * 9, "n'a écrit aucun programme qui fonctionne"),
    "code that raises": (["1 / 0"] * 9, "n'a écrit aucun programme qui fonctionne"),
    "empty replies": ([Reply("")] * 9, "n'a écrit aucun programme qui fonctionne"),
    "endless printing": (["while True:\n    print('x' * 1000)"] * 9, "n'a écrit aucun programme qui fonctionne"),
    "a refused key": ([Reply(status=401)], "clé refusée"),
    "a server that fails": ([Reply(status=500)], "erreur du serveur"),
    "no JSON": ([Reply(raw_body="<html>")], "n'a pas pu répondre"),
    "a lost connection": ([Reply(breaks_off=True)], "n'a pas pu répondre"),
    "an answer of nothing": (["FINAL('')"], "réponse vide"),
    "an answer of None": (["FINAL(None)"], "réponse vide"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_whatever_the_root_model_does_there_is_a_status_and_a_text(ask, name):
    programs, said = FAILURES[name]
    settings = DeepReadSettings(plan="rlm", limits=Limits(seconds=0.2))
    prediction = ask(root_model(programs, last=PROSE), settings=settings, budget=Budget(seconds=60.0))
    assert prediction.status == "model_failed"
    assert said in prediction.notice
    assert "[Source: " in prediction.answer


def test_a_model_that_fails_at_once_leaves_the_nearest_passages(ask, tiny_library):
    ids = list(tiny_library)[:2]
    prediction = ask(root_model([Reply(status=500)]), question="Quel est le délai de recours ?", doc_ids=ids)
    assert prediction.status == "model_failed"
    assert prediction.answer.startswith("Passages trouvés :")
    assert {citation.doc_id for citation in prediction.citations} <= set(ids)
    assert {citation.status for citation in prediction.citations} == {"verified"}
    for citation in prediction.citations:
        content = tiny_library.document(citation.doc_id).content
        assert citation.char_end in {end for _, end in without_blanks(content, split_sentences(content))}


@pytest.mark.parametrize("lm", [None, "gpt"])
def test_what_is_no_model_is_refused(tiny_library, lm):
    with pytest.raises(TypeError, match="not a language model"):
        deep_read(QUESTION, library=tiny_library, lm=lm)


def test_a_sub_model_that_hangs_does_not_outlast_the_budget(ask):
    prediction = ask(
        root_model(["FINAL(llm_query('lis ceci'))"], {"lis ceci": Reply(hangs=True)}), budget=Budget(seconds=0.7)
    )
    assert prediction.status == "exhausted"
    assert prediction.seconds < 15


def test_a_model_that_writes_no_program_is_asked_document_by_document(ask, tiny_library):
    doc_id = next(iter(tiny_library))
    content = tiny_library.document(doc_id).content
    start, end = next(span for span in split_sentences(content) if span[1] - span[0] > 120)
    quote = content[start:end].strip()

    def script(prompt, attempt):
        if "```repl" in prompt:
            return PROSE
        if "[Source:" not in prompt:
            return Reply(json.dumps({"pertinent": True, "reponse": "Voir le texte.", "citations": [quote]}))
        return Reply(f"Le texte dit : « {quote} » [Source: {doc_id}, chars {start}-{start + len(quote)}].")

    prediction = ask(script, doc_ids=[doc_id])
    assert prediction.status == "answered"
    assert "n'a écrit aucun programme qui fonctionne : les décisions ont été lues une à une" in prediction.notice


def test_a_trace_is_of_the_last_run_alone_and_what_is_none_is_not_replaced(ask, tmp_path):
    trace = tmp_path / "run.jsonl"
    ask(root_model(["n = 1", "FINAL(1)"]), trace=trace)
    assert len(read_trace(trace).iterations) == 2
    ask(root_model(["FINAL(len(doc_ids) - 58)"]), question="Une autre question ?", trace=trace)
    assert read_trace(trace).final_answer == "2"
    assert trace.stat().st_mode & 0o077 == 0
    trace.write_text("mes notes")
    with pytest.raises(ValueError, match="run.jsonl is no trace"):
        ask(root_model(["FINAL(1)"]), trace=trace)
    assert trace.read_text() == "mes notes"


def test_a_program_extracts_classes_of_its_own_at_their_exact_places(ask, tiny_library):
    doc_id = next(iter(tiny_library))
    word = next(word for word in tiny_library.document(doc_id).content.split() if len(word) > 9 and word.isalpha())
    code = f"found = on_demand_extract({doc_id!r}, 'Un mot long.', ['mot rare'])\nFINAL([dict(one) for one in found])"
    reply = json.dumps({"extractions": [{"mot rare": word, "mot rare_attributes": {}}]}, ensure_ascii=False)
    prediction = ask(root_model([code], lambda prompt: reply))
    content = tiny_library.document(doc_id).content
    found = prediction.events[-1].input["value"]
    assert found
    assert {content[one["char_start"] : one["char_end"]] for one in found} == {word}
    assert {one["extraction_class"] for one in found} == {"mot rare"}


@pytest.mark.parametrize("given", ["text", "{'text': text, 'doc_id': doc_ids[0], 'char_start': 40}"])
def test_a_program_extracts_from_a_text_of_its_own_or_a_passage_at_offsets_of_that_text(ask, given):
    code = f"""
        text = "Le plafond est de 60 000 euros. Hors plafond, 5 000 euros."
        found = on_demand_extract({given}, "Les plafonds.", ["plafond"])
        FINAL([[one["extraction_text"], text[one["char_start"]:one["char_end"]]] for one in found])
    """
    reply = json.dumps({"extractions": [{"plafond": "60 000 euros", "plafond_attributes": {}}]})
    prediction = ask(root_model([textwrap.dedent(code)], lambda prompt: reply))
    assert prediction.events[-1].input["value"] == [["60 000 euros", "60 000 euros"]]
    asked = ask.prompts[-1]
    assert "Le plafond est de 60 000 euros." in asked
    assert not any(event.output_ids for event in prediction.events if event.tool == "on_demand_extract")


def test_a_single_word_that_names_no_document_is_not_taken_for_a_text(ask):
    code = """
        try:
            on_demand_extract("INCONNU-9", "Un mot.", ["mot"])
        except LookupError as error:
            FINAL([word for word in str(error).split() if "INCONNU" in word])
    """
    prediction = ask(root_model([textwrap.dedent(code)]))
    assert "INCONNU-9" in prediction.events[-1].input["value"][0]
    assert prediction.usage.calls == 1


def test_a_program_finds_the_entities_of_the_documents_named_in_extraction_index(ask, tiny_library):
    ids = list(tiny_library)[1:3]
    program = "FINAL([list(extraction_index), extraction_index[doc_ids[1]] == get_entities(doc_ids[1])])"
    assert ask(root_model([program]), doc_ids=ids).events[-1].input["value"] == [ids, True]
    assert "on_demand_extract(text, " in ask.prompts[0]


def test_extraction_by_a_program_is_held_to_the_budget(ask):
    code = "FINAL(on_demand_extract(doc_ids[0], 'Un mot.', ['mot']))"
    prediction = ask(root_model([code], lambda prompt: "{}"), budget=Budget(model_calls=2))
    assert prediction.status == "exhausted"
    assert prediction.usage.calls == 2


def test_a_hundred_questions_fit_into_the_budget_of_a_deep_read(ask):
    code = """
        ids = doc_ids[:50]
        found = [ask_across_documents(f"Question {n} ?", ids) for n in (1, 2)]
        failed = [said for one in found for said in one.values() if said.startswith("Erreur")]
        FINAL({"answers": sum(map(len, found)), "failed": len(failed)})
    """
    none = '{"pertinent": false, "reponse": "", "citations": []}'
    prediction = ask(root_model([textwrap.dedent(code)], lambda prompt: none))
    assert prediction.events[-1].input["value"] == {"answers": 100, "failed": 0}
    assert (prediction.status, prediction.usage.calls > 100) == ("unverified", True)


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("openai/gpt-4o-mini", "secondes, soit moins de 1,20 $ ;"),
        ("openai/of-ones-own", "secondes ;"),
        ("", "secondes ;"),
    ],
)
def test_what_a_read_may_cost_at_most_is_said_in_dollars_where_prices_are_known(tiny_library, model, dollars):
    lm = build_language_model(model or "m", "key", None if model else "http://127.0.0.1:9/v1")
    said = most_in_french(list(tiny_library)[:2], tiny_library, DEEP_READ_BUDGET, [lm])
    assert said.startswith("Lecture approfondie (2 décisions) : au plus 400 appels au modèle, ")
    assert dollars in said
    assert most_in_french([], tiny_library, Budget(cost=0.5), [lm]).endswith(
        "600 secondes, 0,5 dollar ; un appel commencé va à son terme."
    )


@pytest.mark.parametrize(
    ("plan", "map_documents", "read"),
    [
        ("map", 2, "2 décisions au plus sur 60, celles que les mots désignent"),
        ("map", 1, "1 décision au plus sur 60, celles que les mots désignent"),
        ("map", 60, "tout le corpus, 60 décisions"),
        ("auto", 2, "tout le corpus, 60 décisions"),
    ],
)
def test_a_read_announces_the_documents_that_its_plan_reads(tiny_library, plan, map_documents, read):
    settings = DeepReadSettings(plan=plan, map_documents=map_documents)
    assert most_in_french([], tiny_library, Budget(), [], settings).startswith(f"Lecture approfondie ({read}) : ")


def test_an_answer_whose_only_call_went_beyond_the_budget_is_given_and_marked_exhausted(ask):
    choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": in_repl(COUNTING)}}]
    usage = {"prompt_tokens": 500_000, "completion_tokens": 1}  # more than could be foreseen
    counting = Reply(raw_body=json.dumps({"model": "m", "choices": choices, "usage": usage}))
    prediction = ask(root_model([counting]), budget=Budget(tokens=400_000))
    assert (prediction.status, prediction.usage.calls) == ("exhausted", 1)
    assert prediction.answer.startswith("- **nombre** : ")
    assert prediction.notice.startswith("Budget épuisé : 400\u202f000 jetons")
