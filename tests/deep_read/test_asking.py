"""Asking documents one question: short and long ones, many at once; what fails, and what a spent budget leaves."""

import re
import threading

import pytest
from support.plan_models import NONE, QUOTE, Decisions, Model, campaign, finding

from legal_rag.agent import Budget
from legal_rag.citations import CitationEnricher
from legal_rag.deep_read.map_reduce import MapReduceSettings, answer_each
from legal_rag.deep_read.prompts import NO_ANSWER, UNVERIFIED
from legal_rag.llm import BudgetExceededError, ModelError

QUESTION = "Quel est le délai ?"
SMALL = MapReduceSettings(window_chars=3000, overlap_chars=300)
LONG = "\n".join(f"La requête n° {number} est rejetée comme tardive." for number in range(400))


def cited(doc_id, text, quote):
    return f"« {quote} » [Source: {doc_id}, chars {text.index(quote)}-{text.index(quote) + len(quote)}]"


def days(prompt):
    """Read as a good model does: quote the sentence about the time limit."""
    sentence = re.search(r"Le délai de recours est de (\d+) jours", prompt)
    return finding(sentence[0], answer=f"{sentence[1]} jours.") if sentence else NONE


def rejected(prompt):
    """Quote the first rejection of each window."""
    return finding(re.search(r"La requête n° \d+ est rejetée comme tardive", prompt)[0], answer="Rejet.")


ABSENT = ModelError("server").reason


def failing(kind="server"):
    return ModelError(kind)


def spent():
    return BudgetExceededError("model_calls", Budget(model_calls=3))


def short(*numbers):
    return Decisions(**{f"d{number}": f"Le délai de recours est de {number} jours." for number in numbers})


def asked(model, decisions, doc_ids=None, **more):
    model = model if hasattr(model, "query") else Model(model)
    return answer_each(QUESTION, list(doc_ids or decisions), library=decisions, model=model, **more)


def test_an_answer_is_followed_by_its_quotation_where_it_stands():
    decisions = Decisions(a=campaign("A..."))
    done = asked(lambda prompt: finding(f"« {QUOTE.upper()} »", answer="Deux mois [Source: a, chars 0-3]."), decisions)
    assert done == ({"a": f"Deux mois : {cited('a', decisions['a'].content, QUOTE)}"}, ["a"], None)
    checked = CitationEnricher(decisions.texts).enrich(done.answers["a"], read=["a"])
    assert ([one.status for one in checked.citations], checked.grounding_rate) == (["verified"], 1.0)


def test_an_invented_quotation_leaves_an_answer_that_says_it_is_not_verified():
    model = Model(lambda prompt: finding("Le délai est de six mois selon la loi", answer="Six mois."))
    assert asked(model, Decisions(a=campaign("A..."))).answers == {"a": f"Six mois.\n{UNVERIFIED}"}
    assert len(model.prompts) == 2


def test_only_the_quotations_that_stand_are_given():
    model = Model(lambda prompt: finding("Le délai est de six mois selon la loi", QUOTE))
    answer = asked(model, Decisions(a=campaign("A..."))).answers["a"]
    assert "six mois" not in answer
    assert answer.count("[Source: ") == 1


@pytest.mark.parametrize(
    ("reply", "text"), [({"nom": "Aé"}, '{"nom": "Aé"}'), ([["a", 1], []], '[["a", 1], []]'), (["a", 2], "a\n2")]
)
def test_an_answer_in_another_form_is_given_as_json(reply, text):
    def structured(prompt):
        return finding(QUOTE, answer=reply)

    assert asked(structured, Decisions(a=campaign("A..."))).answers["a"].startswith(f"{text} : « ")


def test_an_answer_that_is_too_long_is_cut_where_a_reader_sees_it():
    answer = asked(lambda prompt: finding(QUOTE, answer="mot " * 2000), Decisions(a=campaign("A..."))).answers["a"]
    said, _ = answer.split(" : « ")
    assert (said[:4000], said[4000:]) == ("mot " * 1000, " […]")


@pytest.mark.parametrize("content", ["Attendu que le bailleur doit délivrer un logement décent.", " \n "])
def test_a_document_that_does_not_answer_says_so(content):
    assert asked(days, Decisions(a=content)).answers == {"a": NO_ANSWER}


NAME = "Martelin Distribution"


@pytest.mark.parametrize("reply", [NAME, f"« {NAME} »", f"```\n{NAME}\n```"])
def test_a_reply_in_words_alone_is_asked_for_again_and_then_is_the_answer(reply):
    model = Model(lambda prompt: reply)
    answer = asked(model, Decisions(a=campaign("A..."))).answers["a"]
    assert answer.splitlines()[0].strip("«» ") == NAME
    assert answer.endswith(UNVERIFIED)
    assert len(model.prompts) == 2


@pytest.mark.parametrize("reply", ["None", "None.", "N/A", "Aucune réponse", "Le document ne contient pas la réponse."])
def test_a_reply_that_is_none_in_words_is_none_as_seed_programs_test_it(reply):
    result = asked(lambda prompt: reply, Decisions(a=campaign("A..."))).answers["a"]
    assert not (result and result != "None")
    in_json = finding(answer=reply)
    assert asked(lambda prompt: in_json, Decisions(a=campaign("A..."))).answers["a"] == "None"


def test_a_long_document_is_read_to_its_last_word_and_each_window_answers_in_a_line():
    model = Model(rejected)
    done = asked(model, Decisions(long=LONG), settings=SMALL)
    spans = [tuple(map(int, re.search(r"Texte, caractères (\d+) à (\d+) sur", one).groups())) for one in model.prompts]
    assert len(spans) > 5
    assert {at for start, end in spans for at in range(start, end)} == set(range(len(LONG)))
    lines = done.answers["long"].split("\n")
    assert len(lines) == len(spans)
    assert all(re.fullmatch(r"Rejet : « .* » \[Source: long, chars \d+-\d+\]", one) for one in lines)


def test_many_documents_answer_at_once_in_the_order_they_were_asked():
    together = threading.Barrier(4, timeout=20)

    def held_up(prompt):
        together.wait()
        return days(prompt)

    wanted = ["d5", "d0", "d7", "d5", "d1", "d2", "d3", "d4", "d6"]
    answers = asked(held_up, short(*range(8)), wanted, workers=4).answers
    assert [(one, text.split(" : ")[0]) for one, text in answers.items()] == [
        (one, f"{one[1:]} jours") for one in dict.fromkeys(wanted)
    ]


def test_what_fails_is_told_in_its_place_and_the_others_answer():
    answers = asked(
        lambda prompt: failing() if "de 2 jours" in prompt else days(prompt),
        short(1, 2, 3),
        ["d1", "inconnu", "d2", "d3"],
    ).answers
    assert list(answers) == ["d1", "inconnu", "d2", "d3"]
    assert answers["inconnu"] == "Erreur : document absent du corpus"
    assert answers["d2"] == f"Erreur : {ABSENT}"
    assert answers["d3"].startswith("3 jours : ")


def test_a_refused_key_is_told_for_every_document_and_asked_no_more():
    model = Model(lambda prompt: failing("auth"))
    decisions = Decisions(long=LONG, **short(*range(20)).texts)
    done = asked(model, decisions, settings=SMALL, workers=2)
    assert set(done.answers.values()) == {"Erreur : Le modèle de langage n'a pas pu répondre (clé refusée)"}
    assert (list(done.answers), done.read) == (list(decisions), [])
    assert len(model.prompts) < 10


def test_a_window_that_could_not_be_read_is_named():
    def reply(prompt):
        return failing() if "n° 0 est" in prompt else rejected(prompt) if "n° 399 " in prompt else NONE

    answer = asked(reply, Decisions(long=LONG), settings=SMALL).answers["long"]
    assert re.fullmatch(
        r"Rejet : « .* » \[Source: .*\]\n\[Partie chars 0-\d{4} non lue : " + re.escape(ABSENT) + r"\]", answer
    )


def test_a_document_of_which_no_window_could_be_read_is_an_error():
    done = asked(lambda prompt: failing(), Decisions(long=LONG), settings=SMALL)
    assert (done.answers, done.read) == ({"long": f"Erreur : {ABSENT}"}, [])


def test_a_spent_budget_ends_all_and_tells_what_was_read():
    answered = threading.Event()

    def reply(prompt):
        if "de 1 jours" in prompt:
            answered.wait(20)
            return spent()
        if "de 2 jours" in prompt:
            answered.set()
        return days(prompt)

    model = Model(reply)
    done = asked(model, short(*range(40)), workers=3)
    assert done.exhausted.limit == "model_calls"
    assert {"d0", "d2"} <= set(done.read)
    assert done.answers["d2"].startswith("2 jours : ")
    assert "d1" not in done.answers
    assert len(model.prompts) < 40


def test_an_interruption_goes_through_once_the_calls_under_way_have_ended():
    begun, ended = threading.Event(), []

    class Interrupted(BaseException):
        pass

    def reply(prompt):
        if "de 0 jours" in prompt:
            begun.wait(20)
            raise Interrupted
        begun.set()
        ended.append(prompt)
        return days(prompt)

    with pytest.raises(Interrupted):
        asked(reply, short(0, 1), workers=2)
    assert len(ended) == 1
