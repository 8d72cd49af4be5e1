"""Deep reading against models that lie, waste, break things and never end: each run ends as it should."""

import json
import sys

import pytest
from support import ROOT
from support.rlm_scripts import in_repl, is_root, root_model
from support.scripted_server import Reply, ScriptedServer

from legal_rag.agent import Budget, build_language_model
from legal_rag.deep_read import Limits, deep_read
from legal_rag.deep_read.rlm import code_blocks, prose_of
from legal_rag.deep_read.settings import DeepReadSettings

QUESTION = "Quel est le délai, et combien de décisions le disent\ud800 ?"  # half a character is left out
TOLD = "Le délai est de deux mois à compter de la proclamation des résultats, selon une jurisprudence constante."
KEY = "cle-secrete-de-test"
SEVEN = "FINAL(len(doc_ids) - 53)"
SHORT = DeepReadSettings(plan="rlm", limits=Limits(seconds=1.0))
RLM = DeepReadSettings(plan="rlm")


@pytest.fixture
def ask(tiny_library):
    """Ask a question of the small Library, of a model that replies by a script."""

    def asking(script, *, settings=RLM, budget=None, **named):
        with ScriptedServer(script) as server:
            lm = build_language_model("m", KEY, server.api_base, cache=False, num_retries=0, timeout=20)
            given = budget or Budget(steps=6, seconds=60.0)
            return deep_read(QUESTION, library=tiny_library, lm=lm, settings=settings, budget=given, **named)

    return asking


def within(inner):
    """Script a root model whose program asks a model, which replies `inner`, and gives what that came to."""

    def script(prompt, attempt):
        return Reply(in_repl("FINAL(rlm_query('quel délai ?'))")) if is_root(prompt) else inner

    return script


@pytest.mark.parametrize(
    "program",
    [
        f"FINAL({{'réponse': {TOLD!r}}})",
        f"FINAL([[{TOLD!r}], 1])",
        "FINAL(' '.join(%r))" % [TOLD[n : n + 20] for n in range(0, len(TOLD), 20)],  # braces in it
        f"FINAL({TOLD!r} + f' ({{len(doc_ids)}} décisions lues)')",
        "FINAL(llm_query('lis').upper())",
        "FINAL(llm_query('lis').replace('deux', 'trois'))",
        "FINAL({'délai': llm_query('lis')})",
        "FINAL(f'Voici : **{llm_query(\"lis\")}**')",
        "answer['content'] = [llm_query('lis')]\nanswer['ready'] = True",
    ],
)
def test_a_model_s_own_words_are_none_in_whatever_they_are_wrapped(ask, program):
    prediction = ask(root_model([program], {"lis": TOLD}))
    assert prediction.status == "model_failed"
    assert "proclamation" not in prediction.answer.casefold()


NOTHING = "FINAL('Aucun passage pertinent n’a été trouvé dans le corpus.')"
READ = "n = count(find_documents())\nprint(n)"
CONSTANTS = [
    "FINAL(0)",
    "FINAL(60)",  # the size of the corpus, which the prompt tells
    "n = 0\nfor i in range(3):\n    n += i\nFINAL(n)",
    "n = 0\nFINAL_VAR('n')",
    "FINAL({'réponse': [17], 'reçus': ['r1']})",
    "FINAL(llm_query('lis'))",
    "answer['content'] = 0\nanswer['ready'] = True",
    NOTHING,
]


def test_a_program_that_finds_nothing_abstains(ask):
    prediction = ask(root_model([READ, NOTHING]))
    assert (prediction.status, prediction.citations) == ("abstained", [])


@pytest.mark.parametrize("program", CONSTANTS)
def test_a_constant_of_a_model_that_read_nothing_is_no_answer(ask, program):
    prediction = ask(root_model([program, program], {"lis": "17"}))
    assert prediction.status == "model_failed"
    assert prediction.answer.startswith("Passages trouvés :")
    assert "ne repose sur rien que son programme ait trouvé dans le corpus" in prediction.notice


@pytest.mark.parametrize("program", CONSTANTS)
def test_a_model_that_gives_a_constant_is_asked_once_more_to_read(ask, program):
    told = []

    def script(prompt, attempt):
        told.append(prompt)
        return root_model([program, f"{READ}\nFINAL(n)"], {"lis": "17"})(prompt, attempt)

    prediction = ask(script)
    assert (prediction.status, prediction.answer) == ("answered", "60")
    assert "cette valeur est écrite de tête" in told[-1]


def test_a_constant_that_was_refused_is_not_given_again_by_the_next_program(ask):
    programs = ["answer['content'] = 0\nanswer['ready'] = True", READ, "FINAL(n)"]
    assert ask(root_model(programs)).answer == "60"


@pytest.mark.parametrize(
    "program", ["FINAL(60)", "FINAL(n)", "FINAL_VAR('n')", "answer = {'content': 60, 'ready': True}"]
)
def test_what_a_program_read_may_be_given_as_a_constant_where_a_receipt_bears_it_out(ask, program):
    prediction = ask(root_model([READ, program]))
    assert (prediction.status, prediction.answer) == ("answered", "60")


def test_a_value_of_no_receipt_is_shown_and_not_vouched_for(ask):
    prediction = ask(root_model(["FINAL({'nombre': 37, 'fraudes': count(doc_ids)})"]))
    assert (prediction.status, prediction.answer) == ("unverified", "- **nombre** : 37\n- **fraudes** : 60")
    assert prediction.notice.startswith(
        "Sorti d'un programme, non vérifié : 37 ; mots du modèle : nombre, fraudes. Calculé : r"
    )
    assert prediction.events[-1].input["unverified"] == ["37", "mots du modèle : nombre, fraudes"]


def test_of_a_long_text_only_the_receipts_that_it_names_are_given(ask):
    text = "Sur {n} décisions [Calcul: {r}], le délai est toujours de deux mois et la fraude n'est jamais retenue."
    prediction = ask(root_model([f"n = count(doc_ids)\nFINAL({text!r}.format(n=n, r=receipt(n)))"]))
    assert (prediction.status, prediction.answer) == ("answered", "- r4 : 60")
    assert "Le texte du modèle, que rien ne vérifie, n'est pas donné" in prediction.notice


def test_a_program_tells_no_folder_of_the_machine(ask):
    program = "print(__file__, corpus_path)\nFINAL([__file__, corpus_path, list(locals())])"
    prediction = ask(root_model([program]))
    assert prediction.status == "unverified"
    assert not any(place in str(prediction.to_record()) for place in (sys.prefix, sys.base_prefix, str(ROOT)))


def test_a_quotation_that_is_not_where_it_is_said_to_be_is_no_answer(ask):
    program = (
        "text = read_document(doc_ids[0])\n"
        "FINAL(f'On y lit « {text[100:180]} » [Source: {doc_ids[0]}, chars 900000-900080].')"
    )
    assert ask(root_model([program])).status == "model_failed"


def test_the_key_does_not_reach_a_program_through_a_failing_model(ask):
    refusal = Reply(status=401, raw_body=json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    prediction = ask(within(refusal))
    assert KEY not in str(prediction.to_json())
    assert "clé refusée" in prediction.notice


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (in_repl("while True: pass"), 0.5),
        ("\n".join([in_repl("x = sum(range(2_000_000))")] * 400), 0.8),
        ("\n".join([in_repl("x = 1")] * 8_000), 0.8),
    ],
)
def test_programs_alone_do_not_outlast_the_budget(ask, reply, seconds):
    prediction = ask(lambda prompt, attempt: Reply(reply), budget=Budget(seconds=seconds))
    assert prediction.status == "exhausted"
    assert prediction.seconds < 12


def test_an_answer_given_before_the_limit_was_met_is_the_answer(ask):
    program = "FINAL({'nombre': count(doc_ids)})\nfor n in range(9):\n    llm_query(f'lis {n}')"
    prediction = ask(root_model([program], {"lis": "lu"}), budget=Budget(model_calls=3))
    assert (prediction.status, prediction.answer) == ("answered", "- **nombre** : 60")


@pytest.mark.parametrize("last", [f"{SEVEN}\n1 / 0", Reply(in_repl("1 / 0") + "\n" + in_repl(SEVEN))])
def test_the_turn_that_gives_the_answer_does_not_count_as_a_failed_one(ask, last):
    prediction = ask(root_model(["1 / 0"] * 4 + [last]))
    assert (prediction.status, prediction.answer) == ("unverified", "7")


def test_an_answer_that_hangs_when_it_is_read_does_not_take_final_along(ask):
    hanging = "class Hanging(dict):\n    def items(self):\n        while True:\n            pass\nanswer = Hanging()"
    prediction = ask(root_model([hanging, "FINAL(count(doc_ids))"]), settings=SHORT)
    assert (prediction.status, prediction.answer) == ("answered", "60")


@pytest.mark.parametrize("give", ["FINAL('ab ' * 100_000)", "answer = {'content': 'ab ' * 100_000, 'ready': True}"])
def test_an_answer_too_long_to_be_read_is_told_to_its_program(ask, give):
    told = []

    def script(prompt, attempt):
        told.append("réponse trop longue : " in prompt)
        return Reply(in_repl("FINAL('court : ' + str(len(doc_ids)))" if told[-1] else give))

    prediction = ask(script)
    assert (prediction.status, prediction.answer) == ("unverified", "court : 60")
    assert told == [False, True]


@pytest.mark.parametrize(
    "give",
    [
        "FINAL(10 ** 6000)",
        "FINAL([float('nan')])",
        "x = []\nx.append(x)\nFINAL(x)",
        "FINAL(b'ab')",
        "FINAL(FINAL)",
        "FINAL({(1, 2): {3}})",
        "FINAL('a\\ud800b')",
        "import itertools\nFINAL(itertools.count())",
        "import os\nos.kill(os.getpid(), 9)",
        "globals().clear()",
        "FINAL = _take_final = _take_state = globals = None",
        "answer = None",
        "_take_state(1, 2)",
        "raise SystemExit",
    ],
)
def test_whatever_a_program_gives_there_is_a_text_that_json_and_utf_8_hold(ask, give):
    prediction = ask(root_model([give] * 2, last=Reply("Rien.")), settings=SHORT, budget=Budget(steps=2, seconds=30.0))
    assert json.dumps(prediction.to_json(), allow_nan=False, ensure_ascii=False).encode()
    assert prediction.answer


@pytest.mark.parametrize(
    "reply",
    ["```" + "a" * 1_000_000, "FINAL(\n" * 150_000, "FINAL(\n" * 150_000 + ")\n;", "```\n" * 200_000, " " * 10**6],
)
def test_replies_of_megabytes_are_read_in_linear_time(reply):
    assert code_blocks(reply) == []
    assert prose_of(reply) in (reply.strip(), "")


def test_an_interrupt_is_an_interrupt(ask):
    def interrupted(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(root_model(["FINAL(1)"]), on_event=interrupted)


def test_a_short_text_with_a_right_marker_is_shown_and_said_to_be_the_models_words(ask):
    text = "Le corpus compte {n} décisions [Calcul: {r}] du Conseil."
    prediction = ask(root_model([f"n = count(doc_ids)\nFINAL({text!r}.format(n=n, r=receipt(n)))"]))
    assert (prediction.status, prediction.answer[:41]) == ("unverified", "Le corpus compte 60 décisions [Calcul : r")
    assert "mots du modèle : Le corpus compte 60 décisions du Conseil. Calculé : r4 : nombre" in prediction.notice
    assert "calcul non vérifié" not in prediction.notice


def test_words_of_an_ending_in_prose_end_nothing_and_names_that_a_program_took_are_whole_again(ask):
    spoiling = (
        "J'appellerai FINAL(réponse) quand j'aurai compté (environ trois décisions, sauf erreur).\n```repl\n"
        "context = 'écrasé'\nllm_query = lambda *texts: 'détourné'\nn = len(list_documents())\nprint(n)\n```\n"
        "Ensuite FINAL_VAR(n) donnera le nombre (et rien d'autre)."
    )
    prediction = ask(
        root_model([Reply(spoiling), "FINAL([count(doc_ids), len(context) > 9, llm_query('lis')])"], {"lis": "lu"})
    )
    assert prediction.answer == "- 60\n- oui\n- lu"
