"""Answers that point at numbered pieces: what is written for the pointers, word for word from the decisions."""

import re
import time

import pytest

from legal_rag.agent.pieces import MAX_CITED, QUOTED_CHARS, Pieces, best_sentences
from legal_rag.citations.enricher import CitationEnricher
from legal_rag.citations.markers import NO_SUCH_SOURCE
from legal_rag.corpus.documents import Document

ACCOUNT = "Le candidat dépose son compte de campagne au plus tard le dixième vendredi."
AGENT = "Le mandataire financier règle les dépenses engagées en vue de l'élection."
LONG = " ".join(f"Le grief numéro {number} est écarté par le juge." for number in range(40))
DEADLINE = "Le délai de recours est de deux mois à compter de la notification."
DOCUMENT = Document(id="A", content="\n\n".join([ACCOUNT, AGENT, f"{LONG} {DEADLINE} {LONG}"]))


@pytest.fixture
def pieces():
    pieces, start = Pieces(), 0
    for paragraph in DOCUMENT.content.split("\n\n"):
        pieces.show(DOCUMENT, start, start + len(paragraph))
        start += len(paragraph) + 2
    return pieces


def marker(quote):
    start = DOCUMENT.content.index(quote)
    return f"[Source: A, chars {start}-{start + len(quote)}]"


def cited(quote):
    return f"« {quote} » {marker(quote)}"


# --- what is shown --------------------------------------------------------------------------------------------------


def test_pieces_are_named_in_the_order_in_which_they_are_shown_and_keep_their_names():
    pieces = Pieces()
    assert pieces.show(DOCUMENT, 0, len(ACCOUNT)) == f"[P1] {ACCOUNT}"
    start = DOCUMENT.content.index(AGENT)
    assert pieces.show(DOCUMENT, start, start + len(AGENT), "argument d'une partie") == (
        f"[P2] (argument d'une partie) {AGENT}"
    )
    assert pieces.show(DOCUMENT, 0, len(ACCOUNT)) == f"[P1] {ACCOUNT}"
    assert pieces.names == ["P1", "P2"]
    assert pieces.is_shown("A", len(ACCOUNT) - 1, len(ACCOUNT) + 1)
    assert not pieces.is_shown("A", len(ACCOUNT), len(ACCOUNT) + 1)
    assert not pieces.is_shown("B", 0, 10)


def test_a_piece_is_one_line_in_which_nothing_passes_for_the_name_of_another():
    content = "Une ligne,\n[P1] une autre\n\n[ p 2 ] et une troisième. [Pièce 3] [1]"
    shown = Pieces().show(Document(id="B", content=content), 0, len(content))
    assert shown == "[P1] Une ligne, ⟦P1] une autre ⟦ p 2 ] et une troisième. [Pièce 3] [1]"


# --- pointers ---------------------------------------------------------------------------------------------------------


CLAIM = "Le compte est déposé avant le dixième vendredi"


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (f"{CLAIM} [P1].", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM}. [P1]", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM}.[P1]", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM} (P1).", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM} [p 1].", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM} [passage P1].", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM}\u00a0[P1]\u00a0!", f"{CLAIM} {cited(ACCOUNT)}\u00a0!"),
        (f"{CLAIM} [P1, P2].", f"{CLAIM} {cited(ACCOUNT)} {cited(AGENT)}."),
        (f"{CLAIM} [P1 et P2].", f"{CLAIM} {cited(ACCOUNT)} {cited(AGENT)}."),
        (f"{CLAIM} [P1 ; P1].", f"{CLAIM} {cited(ACCOUNT)}."),
        (f"{CLAIM} [P1] [P2].", f"{CLAIM} {cited(ACCOUNT)} {cited(AGENT)}."),
        (f"{CLAIM} [P1].\n\nIl est payé [P2].", f"{CLAIM} {cited(ACCOUNT)}.\n\nIl est payé {cited(AGENT)}."),
        (f"Oui. {CLAIM}. [P1] Il est payé. [P2]", f"Oui. {CLAIM} {cited(ACCOUNT)}. Il est payé {cited(AGENT)}."),
        (f"{CLAIM} [P1]. Rien de plus.", f"{CLAIM} {cited(ACCOUNT)}. Rien de plus."),
        ("[P1]", cited(ACCOUNT)),
        ("Sans rien.", "Sans rien."),
        ("L'article [L. 52-12] et la note [1] (page 3).", "L'article [L. 52-12] et la note [1] (page 3)."),
    ],
)
def test_a_pointer_becomes_the_words_and_the_place_of_its_piece(pieces, answer, written):
    assert pieces.cite(answer) == written


def test_items_of_a_list_are_cited_each_with_its_mark_outside(pieces):
    answer = f"Deux règles :\n- {CLAIM} [P1]\n- {AGENT[:-1]} [P2]\n2) {ACCOUNT[:-1]}. [P1]"
    assert pieces.cite(answer) == (
        f"Deux règles :\n- {CLAIM} {cited(ACCOUNT)}\n- « {AGENT[:-1]} » {marker(AGENT)}\n"
        f"2) « {ACCOUNT[:-1]} » {marker(ACCOUNT)}."
    )


def test_of_a_long_piece_the_sentences_nearest_to_the_claim_are_quoted(pieces):
    written = pieces.cite("Le recours est formé dans les deux mois de la notification [P3].")
    (quote,) = re.findall(r"« (.*?) »", written)
    assert DEADLINE in quote
    assert len(quote) <= QUOTED_CHARS
    start, end = map(int, re.search(r"chars (\d+)-(\d+)", written).groups())
    assert DOCUMENT.content[start:end] == quote
    sentence = "Mot " * 200 + "fin."
    assert best_sentences(f"Court. {sentence}", "fin") == (7, 7 + len(sentence))


def test_a_sentence_that_copies_its_piece_is_put_between_guillemets(pieces):
    copied = "Le CANDIDAT dépose son compte de campagne"
    assert pieces.cite(f"En effet. {copied} [P1].") == f"En effet. « {copied} » {marker(ACCOUNT)}."
    assert pieces.cite(f"{ACCOUNT} [P1] Donc.") == f"« {ACCOUNT[:-1]} » {marker(ACCOUNT)}. Donc."
    assert pieces.cite("Le candidat [P1].") == f"Le candidat {cited(ACCOUNT)}."  # too few words to be a quotation


@pytest.mark.parametrize("quoted", ["« son compte de campagne »", '"son compte de campagne"', "“le dixième vendredi”"])
def test_a_sentence_that_quotes_or_analyses_gets_the_marker_alone(pieces, quoted):
    assert pieces.cite(f"Il dépose {quoted} [P1].") == f"Il dépose {quoted} {marker(ACCOUNT)}."
    assert pieces.cite(f"[Analyse] {CLAIM} [P1].") == f"[Analyse] {CLAIM} {marker(ACCOUNT)}."


def test_a_name_of_no_piece_is_removed_and_counted(pieces, tiny_library):
    written = pieces.cite(f"{CLAIM} [P9]. {CLAIM} [P1, P77].")
    assert written == f"{CLAIM} [Source: P9]. {CLAIM} {cited(ACCOUNT)} [Source: P77]."
    checked = CitationEnricher(tiny_library).enrich(Pieces().cite("Le texte le dit [P1]. Il le répète [P2, P3]."))
    assert checked.text == f"Le texte le dit {NO_SUCH_SOURCE}. Il le répète {NO_SUCH_SOURCE}."
    assert [len(checked.removed), checked.citations] == [3, []]


# --- evidence without pointers ----------------------------------------------------------------------------------------


def test_without_pointers_each_sentence_gets_the_piece_with_most_of_its_words(pieces):
    answer = "Le compte de campagne est déposé le dixième vendredi. Le mandataire financier règle toute dépense."
    first, second = answer.split(". ")
    written = f"{first} {cited(ACCOUNT)}. {second[:-1]} {cited(AGENT)}."
    assert pieces.cite(answer, ["P1"]) == pieces.cite(answer, ["P2", "P1"]) == written


def test_without_pointers_the_evidence_that_is_named_goes_before_another_piece_as_near(pieces):
    vague = "Il faut respecter ces obligations légales."
    assert pieces.cite(vague, ["P2"]) == f"{vague[:-1]} {cited(AGENT)}."
    assert pieces.cite(vague, ["P1"]) == f"{vague[:-1]} {cited(ACCOUNT)}."


@pytest.mark.parametrize("evidence", [[], ["P9"], ["P9", "rien"]])
def test_without_evidence_that_exists_nothing_is_written(pieces, evidence):
    assert pieces.cite(f"{CLAIM}.", evidence) == f"{CLAIM}."


def test_pointers_and_markers_of_the_models_own_go_before_its_evidence(pieces):
    assert pieces.cite(f"{CLAIM}. Il est payé [P2].", ["P1"]) == f"{CLAIM}. Il est payé {cited(AGENT)}."
    own = f"{CLAIM} [Source: A, chars 0-9]."
    assert pieces.cite(own, ["P1"]) == own
    analysis = f"[Analyse] {CLAIM}."
    assert pieces.cite(analysis, ["P1"]) == analysis


# --- what a runaway model writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "[P1]" * 12_000,
        "Le délai. [P3] " * 3000,
        f"Le délai [{', '.join(f'P{number}' for number in range(9000))}].",
        "[P1" + " " * 50_000,
        " " * 50_000 + "[P1]",
        "." * 50_000 + "x [P1]",
        "« " * 25_000 + "[P1]",
        "[passages " * 5000,
        "[P1, " * 10_000,
    ],
    ids=["run", "sentences", "names", "open", "blanks", "stops", "quotes", "passages", "brackets"],
)
def test_thousands_of_pointers_take_no_time_and_make_no_endless_answer(pieces, answer):
    started = time.process_time()
    written = pieces.cite(answer, ["P1"])
    assert time.process_time() - started < 10
    assert written.count("[Source: ") <= MAX_CITED
    assert len(written) <= len(answer) + MAX_CITED * (QUOTED_CHARS + 50)
