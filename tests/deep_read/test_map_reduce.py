"""Map-reduce: documents answer one by one with quotations, and one answer is written from those that stand."""

import re
from itertools import islice

import pytest
from support.plan_models import (
    BAIL,
    ELECTIONS,
    NONE,
    QUESTION,
    QUOTE,
    WANTS_JSON,
    Decisions,
    Model,
    campaign,
    finding,
    planned,
    quotes_of,
    replying,
    served,
    shown_text,
    sound,
)

from legal_rag.agent.evidence import NO_PASSAGE
from legal_rag.citations import CitationEnricher
from legal_rag.corpus import read_documents
from legal_rag.deep_read.map_reduce import MAX_QUOTES, MapReduceSettings, map_reduce, read_reply
from legal_rag.law import split_sentences

# --- the whole run
from legal_rag.llm import ModelError


def test_each_document_is_asked_once_and_the_answer_cites_what_stands():
    result, prompts = served(replying())
    places = {
        (doc_id, text.index(QUOTE), text.index(QUOTE) + len(QUOTE))
        for doc_id, text in ELECTIONS.texts.items()
        if QUOTE in text
    }
    assert quotes_of(result) == places
    assert (result.read, result.unread, result.failed) == (("a", "bail", "b"), (), {})
    assert (result.notice, bool(result.quoted)) == ("", False)
    assert [prompt.count(WANTS_JSON) for prompt in prompts] == [1, 1, 1, 0]
    assert "posée à 3 décisions, une à une ; 2 contiennent" in prompts[-1]
    assert "bail" not in prompts[-1].replace("bailleur", "")
    checked = CitationEnricher(ELECTIONS.texts).enrich(result.text, read=result.read)
    assert [one.status for one in checked.citations] == ["verified", "verified"]
    assert checked.ungrounded_claims == []


def test_nothing_pertinent_is_an_abstention_and_the_root_model_is_not_asked():
    root = Model()
    assert planned(decisions=Decisions()).text == NO_PASSAGE
    result = planned(root=root, decisions=Decisions(bail=BAIL, vide=" \n "))
    assert (result.text, result.read, root.prompts) == (NO_PASSAGE, ("bail", "vide"), [])


def test_a_document_named_twice_is_read_once():
    sub = Model()
    map_reduce(QUESTION, ["a", "a", "a"], library=ELECTIONS, root=Model(), sub=sub)
    assert len(sub.prompts) == 1


def test_a_document_that_is_gone_is_told_and_the_others_are_read():
    library = Decisions(a=campaign("A..."))
    result = map_reduce(QUESTION, ["a", "partie"], library=library, root=Model(), sub=Model())
    assert result.failed == {"partie": "document absent du corpus"}
    assert result.read == ("a",)
    assert result.notice == "1 décision n'a pas pu être lue (partie)"


def test_events_tell_each_document_and_the_answer():
    events = []
    result, _ = served(replying(), on_event=events.append)
    assert sorted(event.output_ids for event in events if event.type == "read") == [["a"], ["b"], ["bail"]]
    assert [event.input for event in events if event.output_ids == ["a"]] == [
        {"document": "a", "pertinent": True, "quotes": 1}
    ]
    assert [event.input for event in events if event.type == "think"] == [{"thought": "réponse"}]
    assert all(event.seconds > 0 for event in events)
    assert result.text


@pytest.mark.shared
def test_what_a_model_copies_from_real_decisions_stands_in_them(shared_data):
    """Quotations as models write them: apostrophes, dashes and ligatures plain, blanks single."""
    library = Decisions()
    for document in islice(read_documents(shared_data / "decisions.jsonl.gz"), 80):
        library[document.id] = document
    copied = []

    def copying(prompt):
        text = shown_text(prompt)
        sentences = [text[start:end] for start, end in split_sentences(text) if 60 < end - start < 800][::7]
        quotes = [" ".join(re.sub("[’‘]", "'", one).replace("œ", "oe").split()) for one in sentences[:MAX_QUOTES]]
        copied.extend(dict.fromkeys(quotes))
        return finding(*quotes) if quotes else NONE

    result = planned(sub=copying, root=lambda prompt: ModelError("server"), decisions=library)
    cited = [citation for one in result.findings for citation in one.citations]
    assert len(copied) == len(cited) > 200
    assert [library[one.doc_id].content[one.char_start : one.char_end] for one in cited] == [one.quote for one in cited]


# --- long documents


LONG = "\n".join(
    f"Considérant que le moyen n° {number} ; qu'il n'est pas fondé. Il y a lieu de l'écarter." for number in range(400)
)


def test_the_model_is_shown_every_character_of_a_long_document():
    sub = Model()
    planned(sub=sub, decisions=Decisions(long=LONG), settings=MapReduceSettings(window_chars=3000, overlap_chars=200))
    seen = bytearray(len(LONG))
    for prompt in sub.prompts:
        start, end = map(int, re.search(r"Texte, caractères (\d+) à (\d+) sur", prompt).groups())
        assert shown_text(prompt) == LONG[start:end]
        seen[start:end] = b"1" * (end - start)
    assert seen.count(b"1") == len(LONG)
    assert len(sub.prompts) > 10


def test_a_quotation_in_two_windows_stands_at_one_place():
    text = f"{LONG[:20_000]}\nConsidérant que {QUOTE} ;\n{LONG[:20_000]}"
    settings = MapReduceSettings(window_chars=2000, overlap_chars=500)
    result = planned(decisions=Decisions(long=text), settings=settings)
    assert quotes_of(result) == {("long", text.index(QUOTE), text.index(QUOTE) + len(QUOTE))}
    assert result.text.count(QUOTE) == 1


def test_of_equal_quotations_the_one_in_the_window_is_cited():
    text = f"{QUOTE}.\n{LONG[:3000]}\n{QUOTE}."
    result = planned(decisions=Decisions(long=text), settings=MapReduceSettings(window_chars=2000, overlap_chars=100))
    assert quotes_of(result) == {("long", place.start(), place.end()) for place in re.finditer(QUOTE, text)}


def test_a_window_too_long_for_the_model_is_read_in_halves():
    text = f"{LONG[:9000]}\nConsidérant que {QUOTE} ;\n{LONG[:9000]}"

    def small(prompt):
        too_long = len(prompt) > 8000
        return ModelError("context") if too_long else sound(prompt)

    result = planned(sub=small, decisions=Decisions(long=text))
    assert quotes_of(result) == {("long", text.index(QUOTE), text.index(QUOTE) + len(QUOTE))}
    assert result.failed == {}


def test_a_model_that_finds_everything_too_long_ends_and_says_so():
    sub = Model(lambda prompt: ModelError("context"))
    result = planned(sub=sub, decisions=Decisions(long=LONG))
    assert result.failed == {"long": ModelError("context").reason}
    assert len(sub.prompts) < 40


# --- replies


@pytest.mark.parametrize(
    "reply",
    [
        finding(QUOTE),
        f"Voici ma réponse :\n```json\n{finding(QUOTE)}\n```\nJ'espère vous avoir aidé.",
        f"[{finding(QUOTE)}]",
        f"{{'Pertinent': True, 'Réponse': 'Deux mois.', 'Citations': ['{QUOTE}']}}",
        f'{{"pertinent": "Oui", "reponse": ["Deux mois."], "citations": "{QUOTE}"}}',
        f'{{"pertinent": true, "reponse": "Deux mois.", "citations": [{{"texte": "{QUOTE}"}}, null, "…", 7]}}',
        f'{{"pertinent": true, "reponse": "Deux mois.", "citations": ["{QUOTE}"',
        f'{{"pertinent": true, "reponse": "Deux mois.",\n "citations": ["{QUOTE}",],}}',
        f'{{"pertinent": true, "reponse": "Deux mois.", "citations": ["{QUOTE}"], "note": "\\ud800"}}',
    ],
)
def test_a_reply_near_json_is_read(reply):
    found = read_reply(reply)
    assert (found.pertinent, found.answer, found.problem) == (True, "Deux mois.", "")
    assert [quote.strip("« »") for quote in found.quotes if QUOTE in quote] == [QUOTE]


@pytest.mark.parametrize(
    "reply",
    [
        NONE,
        '{"pertinent": "non", "citations": []}',
        '{"pertinent": false, "reponse": "hors sujet", "citations": ["x y z"]}',
        '{"pertinent": null, "reponse": "", "citations": []}',
        '{"pertinent": "pas pertinent"}',
        '{"pertinent": true, "reponse": "Le document ne contient aucune information sur ce délai.", "citations": []}',
    ],
)
def test_a_reply_that_finds_nothing_is_read(reply):
    assert read_reply(reply) == (False, "", (), "")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (" \n", "elle est vide"),
        ("Le délai est de deux mois.", "ce n'est pas l'objet JSON demandé"),
        ("{", "ce n'est pas l'objet JSON demandé"),
        ("[" * 100_000, "ce n'est pas l'objet JSON demandé"),
        ('{"a":' * 100_000, "ce n'est pas l'objet JSON demandé"),
        ('{"a": ' + "1" * 50_000 + "}", 'l\'objet JSON n\'a ni "pertinent", ni "reponse", ni "citations"'),
        ("{} " * 30_000, "ce n'est pas l'objet JSON demandé"),
        ('{"avis": "favorable"}', 'l\'objet JSON n\'a ni "pertinent", ni "reponse", ni "citations"'),
    ],
)
def test_a_reply_that_cannot_be_read_has_a_problem(reply, problem):
    assert read_reply(reply).problem == problem


def test_a_flood_of_quotations_is_bounded():
    assert len(read_reply(finding(*(f"phrase numéro {number} du texte" for number in range(500)))).quotes) == MAX_QUOTES
