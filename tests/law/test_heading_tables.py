"""Every row of the tables of headings, outcomes and negations, by its own example: all that read a table know it."""

import re

import pytest

from legal_rag.citations.wording import cues_of
from legal_rag.law import build_tree, read_paragraphs, walk
from legal_rag.law.outcomes import OUTCOME_KINDS, STATED, STATED_KINDS, OutcomeKind, kinds_of, operative_part
from legal_rag.law.words import HEADINGS, NEGATIONS, Heading, Negation, letters_of, negations

HEAD = "COUR D'APPEL DE LIMOGES"
ACCOUNT = "EXPOSÉ DU LITIGE\nMme Saule a assigné M. Charme."
REASONS = "MOTIFS\nAttendu que la faute est établie."
RULING = "PAR CES MOTIFS\nConfirme le jugement."
# What stands before and after a heading of each part.
AROUND = {
    "statement": (HEAD, f"Mme Saule a assigné M. Charme.\n{REASONS}\n{RULING}"),
    "claims": (f"{HEAD}\n{ACCOUNT}", f"Elle demande 300 euros.\n{REASONS}\n{RULING}"),
    "reasons": (f"{HEAD}\n{ACCOUNT}", f"Attendu que la faute est établie.\n{RULING}"),
    "ruling": (f"{HEAD}\n{ACCOUNT}\n{REASONS}", "Article premier.- La requête de Mme Saule est rejetée."),
    None: (HEAD, f"M. Charme, demeurant à Tulle\n{ACCOUNT}\n{REASONS}\n{RULING}"),
}


def _part_at(text: str, start: int) -> str | None:
    return next(paragraph.part for paragraph in read_paragraphs(text) if start < paragraph.end)


@pytest.mark.parametrize("heading", HEADINGS, ids=lambda heading: heading.words)
def test_the_example_of_a_heading_opens_what_its_row_says(heading: Heading):
    before, after = AROUND[heading.part]
    text, start = f"{before}\n{heading.example}\n{after}", len(before) + 1
    assert _part_at(text, start) == (heading.part or "header")
    titles = [node.title for node in walk(build_tree(text)) if node.char_start <= start < node.char_end]
    assert heading.section == "none" or any(letters_of(heading.words) in letters_of(title) for title in titles)
    operative = operative_part(text)
    if heading.part == "ruling" and heading.section != "none":
        assert operative
        assert start < operative.start <= start + len(heading.example) + 1
        assert operative.in_articles == heading.articles


@pytest.mark.parametrize("heading", [row for row in HEADINGS if row.part], ids=lambda heading: heading.words)
def test_a_heading_that_is_a_whole_line_titles_its_main_part_in_any_case(heading: Heading):
    before, after = AROUND[heading.part]
    start, written = len(before) + 1, f"{heading.words.capitalize()} :"
    parts = build_tree(f"{before}\n{written}\n{after}").children
    part = next(part for part in parts if part.char_start == start)
    assert heading.section == "none" or (part.kind, part.heading[0]) == (heading.part, start)


@pytest.mark.parametrize("heading", [row for row in HEADINGS if row.inline], ids=lambda heading: heading.words)
def test_an_inline_heading_is_read_within_a_line(heading: Heading):
    before, after = AROUND[heading.part]
    text = f"{before}.\n{heading.words} : {after}".replace("\n", " ")
    assert _part_at(text, len(before) + 2) == heading.part


@pytest.mark.parametrize("heading", [row for row in HEADINGS if row.part], ids=lambda heading: heading.words)
def test_a_headings_letters_may_be_spaced_without_accents_or_pseudonymised(heading: Heading):
    before, after = AROUND[heading.part]
    unaccented = heading.words.translate(str.maketrans("ÉÈÊÔ", "EEEO"))
    spaced = " ".join(heading.words.replace(" ", ""))
    pseudonymised = heading.words[0] + heading.words[1:].replace("S", "C...")
    for written in (unaccented, spaced, pseudonymised):
        assert _part_at(f"{before}\n{written} :\n{after}", len(before) + 1) == heading.part


@pytest.mark.parametrize("outcome", OUTCOME_KINDS, ids=lambda outcome: outcome.kind)
def test_the_example_of_an_outcome_is_read_as_its_kind(outcome: OutcomeKind):
    assert kinds_of(outcome.example) == ({outcome.kind} if outcome.kind else frozenset())
    first = next((kind for kind, pattern in STATED if any(pattern.finditer(outcome.example))), None)
    assert first == (outcome.kind if outcome.kind in STATED_KINDS else None)


@pytest.mark.parametrize("negation", NEGATIONS, ids=lambda negation: negation.word)
def test_the_example_of_a_negation_is_read_as_its_kind(negation: Negation):
    assert re.search(negations(word=negation.word), negation.example.lower())
    assert negation.kind in cues_of(negation.example)


@pytest.mark.parametrize(
    ("before", "denies"), [("la cour n'", True), ("la cour n'a jamais ", True), ("sur ce point, ", False)]
)
def test_a_negation_is_read_before_the_verb_it_denies(before, denies):
    assert (re.search(negations(verb=True), before) is not None) == denies
