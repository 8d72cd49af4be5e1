"""Citations: markers in every spelling, sound and unsound, against a few short texts."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.citations import Citation, check_citations, format_marker

BAIL = "Le bailleur doit délivrer la chose louée. Le preneur doit payer l'indemnité\nd'éviction due, sans délai."
VISITE = "L’occupant a dit : « Je refuse. Partez ! » puis il a fermé. Aucune visite ne pourra être faite."
CONTENTS = {
    "FICTIF1": BAIL,
    "n° 2001-2589 AN, 12/07": BAIL,
    "a[b]": BAIL,
    "VISITE": VISITE,
}
WHOLE = f"[Source: FICTIF1, chars 0-{len(BAIL)}]"


def check(text):
    return check_citations(text, CONTENTS.__getitem__)


@pytest.mark.parametrize(
    "marker",
    [
        "[Source: FICTIF1, chars 0-41]",
        "[source : FICTIF1, chars 0-41]",
        "[ Source:FICTIF1,chars 0 - 41 ]",
        "[Source: FICTIF1, chars 0–41]",
        "[Source: FICTIF1, chars 0—41]",
        "[Source\u00a0: FICTIF1, char. 0\u202f-\u202f41]",
        "[Source: FICTIF1, car. 0-41]",
        "[Source: FICTIF1, caractères 0-41]",
        "[Sources : FICTIF1, chars 0-41]",
        "[Source:\nFICTIF1,\nchars 0-41]",
    ],
)
def test_a_marker_in_any_usual_spelling_is_read_and_written_anew(marker):
    answer = check(f"Il faut « délivrer la chose louée » {marker}.")
    assert answer.text == "Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41]."
    assert answer.citations == [Citation("FICTIF1", 0, 41, BAIL[:41], "verified")]
    assert answer.dropped == []


@pytest.mark.parametrize("doc_id", ["n° 2001-2589 AN, 12/07", "a[b]"])
def test_ids_may_hold_commas_slashes_blanks_and_brackets(doc_id):
    answer = check(f"Il faut « délivrer » {format_marker(doc_id, 0, 41)}.")
    assert [citation.doc_id for citation in answer.citations] == [doc_id]


@pytest.mark.parametrize(
    "text",
    [
        f"« Le bailleur doit délivrer la chose louée » {WHOLE}.",
        f"« Le bailleur doit délivrer la chose louée. » {WHOLE}",
        f"« Le bailleur doit délivrer la chose louée ». {WHOLE}",
        f"“Le bailleur doit délivrer la chose louée” {WHOLE}.",
        f'"Le bailleur doit délivrer la chose louée" {WHOLE}.',
        f"« Le bailleur doit délivrer la chose louée {WHOLE} ».",
        f'"Le bailleur doit délivrer la chose louée {WHOLE}".',
        f"«\u00a0l’indemnité d’éviction due\u202f» {WHOLE}",
        f"« payer\nl'indemnité   d'éviction\u00a0due » {WHOLE}",
        f"Selon l'art. L. 145-14 lu par M. Y : « l'indemnité d'éviction » {WHOLE}",
        f"Un autre a tort, « voilà ». « Le preneur doit payer » {WHOLE}",
    ],
)
def test_a_verbatim_quotation_is_verified_whatever_its_marks_and_blanks(text):
    answer = check(text)
    assert [citation.status for citation in answer.citations] == ["verified"]
    assert answer.text == text


@pytest.mark.parametrize(
    "text",
    [
        f"« Le bailleur peut délivrer la chose louée » {WHOLE}",
        f"« Le bailleur doit délivrer. » {WHOLE}",
        f"« Le bailleur doit délivrer » ou « s'abstenir » {WHOLE}",
        f"« Le bailleur ne doit rien délivrer {WHOLE} »",
        f'"Le bailleur ne doit rien délivrer {WHOLE}"',
        f"« Le bailleur ne doit rien délivrer ; la chose louée reste » ; Le preneur doit payer {WHOLE}",
        f"Le bailleur doit délivrer la chose louée, « à l'évêque » selon M. Le preneur {WHOLE}",
        "« Le bailleur » [Source: FICTIF1, chars 5-41]",
    ],
)
def test_an_altered_or_misplaced_quotation_loses_its_marker(text):
    answer = check(text)
    assert answer.citations == []
    assert "[Source" not in answer.text


@pytest.mark.parametrize(
    "marker",
    [
        "[Source: INCONNU, chars 0-41]",
        "[Source: FICTIF1, chars 41-41]",
        "[Source: FICTIF1, chars 41-0]",
        "[Source: FICTIF1, chars 0-100000]",
        f"[Source: FICTIF1, chars 0-{'9' * 12}]",
        f"[Source: FICTIF1, chars 0-{'9' * 5000}]",
        "[Source: FICTIF1, chars -1-41]",
        "[Source: FICTIF1, chars 0-41, 50-60]",
        "[Source: FICTIF1]",
        "[Source]",
        "[Source: ]",
        "[Source: , chars 0-41]",
        "[Source: FICTIF1, chars 0-41; VISITE, chars 0-5]",
        "[Source: FICTIF1 [sic], chars 0-41]",
        "[Sources]",
    ],
)
def test_a_marker_that_points_nowhere_is_taken_out_with_the_blank_before_it(marker):
    answer = check(f"Il faut « délivrer la chose louée »\u00a0 {marker}. La suite.")
    assert answer.text == "Il faut « délivrer la chose louée ». La suite."
    assert (answer.citations, answer.dropped) == ([], [marker])


def test_an_id_of_half_a_character_is_an_unknown_document():
    def content_of(doc_id):
        return {b"FICTIF1": BAIL}[doc_id.encode()]

    assert check_citations("Oui [Source: \ud800, chars 0-4].", content_of).text == "Oui."


@pytest.mark.parametrize("between", ["", " ", ", ", " ; ", " et ", ".\n"])
def test_markers_in_a_row_vouch_for_the_same_sentence(between):
    other = "[Source: a[b], chars 0-41]"
    answer = check(f"Il faut « délivrer la chose louée » {WHOLE}{between}{other}.")
    assert [(one.doc_id, one.status) for one in answer.citations] == [("FICTIF1", "verified"), ("a[b]", "verified")]


def test_each_sentence_answers_for_its_own_marker():
    text = (
        "Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41]. "
        "Le locataire « doit mourir » [Source: FICTIF1, chars 42-60]. "
        "Enfin, « Aucune visite » [Source: VISITE, chars 60-73]."
    )
    answer = check(text)
    assert [citation.quote for citation in answer.citations] == [BAIL[:41], "Aucune visite"]
    assert answer.dropped == ["[Source: FICTIF1, chars 42-60]"]
    assert answer.text == text.replace(" [Source: FICTIF1, chars 42-60]", "")


def test_a_quotation_within_a_quotation_and_its_full_stops_stay_in_one_sentence():
    answer = check(f"« L'occupant a dit : « Je refuse. Partez ! » puis il a fermé. » {format_marker('VISITE', 0, 59)}")
    assert [citation.status for citation in answer.citations] == ["verified"]
    answer = check(f"« L'occupant a dit : « Je refuse. Restez ! » puis il a fermé. » {format_marker('VISITE', 0, 59)}")
    assert answer.citations == []


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("Le bailleur doit délivrer la chose.", "supported"),
        ("Bailleur, délivrer : navire, tempête.", "supported"),
        ("Bailleur : navire, tempête.", None),
        ("Le navire a sombré.", None),
        ("Il y a un an.", None),
        ("« »", None),
        ("« … »", None),
    ],
)
def test_a_sentence_that_quotes_nothing_needs_half_of_its_content_words(sentence, status):
    assert [one.status for one in check(f"{sentence} {WHOLE}").citations] == ([status] if status else [])


def test_a_good_marker_does_not_take_over_the_quotation_of_a_dropped_one():
    answer = check(f"« Il doit partir » [Source: INCONNU, chars 0-9] car le bailleur doit délivrer {WHOLE}.")
    assert answer.text == "« Il doit partir » car le bailleur doit délivrer."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[Source: INCONNU, chars 0-9]", ""),
        ("[Sou[Source]rce: FICTIF1]", ""),
        ("[Source: [Source: INCONNU, chars 0-1], chars 3-4]", ""),
        ("[1] et [Source [a] [b]]]", "[1] et]"),
        ("[Source: FICTIF1, chars 0-41", "[Source: FICTIF1, chars 0-41"),
        ("Ressource [Sourcehut] [Analyse]", "Ressource [Sourcehut] [Analyse]"),
    ],
)
def test_no_marker_is_left_or_made_up_by_taking_others_out(text, left):
    assert check(text).text == left


PARTS = """[|]|[Source: |Source: |FICTIF1|a[b]|, chars 0-41|, chars 5-9|« | »|“|”|"|Le bailleur|délivrer la chose louée|
|navire| |. |; | et |M. """.split("|")


@given(st.one_of(st.text(), st.lists(st.sampled_from([*PARTS, WHOLE]), max_size=40).map("".join)))
def test_any_text_is_checked_once_and_for_all(text):
    answer = check(text)
    assert all(CONTENTS[one.doc_id][one.char_start : one.char_end] == one.quote for one in answer.citations)
    assert all(format_marker(one.doc_id, one.char_start, one.char_end) in answer.text for one in answer.citations)
    assert check(answer.text) == (answer.text, answer.citations, [])


@pytest.mark.parametrize(
    "text",
    [
        "[Source:" * 100_000,
        "[Source:]" * 100_000,
        "a [Source: FICTIF1, chars 0-9999] " * 20_000,
        WHOLE * 20_000,
        "[Source:" + " " * 100_000 + "]",
        "[Source:" + ", chars " * 50_000 + "]",
        "[" * 50_000 + "]" * 50_000,
        "«" * 100_000 + WHOLE,
        "»" * 100_000 + WHOLE,
        '"' * 100_000 + WHOLE,
        "« " + " " * 100_000 + WHOLE,
        "« a. B ; » " * 20_000 + WHOLE,
        ". " * 100_000 + WHOLE,
    ],
    ids=lambda text: re.sub(r"(.{1,20}).*", r"\1", text, flags=re.DOTALL).strip(),
)
def test_hostile_text_takes_linear_time(text):
    started = time.process_time()
    check(text)
    assert time.process_time() - started < 5


def test_a_quotation_of_one_word_proves_nothing():
    content = "Le voisin doit réparer le trouble anormal, une indemnité étant due à la victime."
    checked = check_citations(
        "Nul ne peut jamais exiger « une » amende [Source: A, chars 0-60].", {"A": content}.__getitem__
    )
    assert checked.citations == []


def test_a_marker_over_a_whole_decision_points_at_nothing():
    content = "Le voisin doit réparer le trouble anormal. " * 500
    answer = f"« réparer le trouble anormal » [Source: A, chars 0-{len(content)}]"
    assert check_citations(answer, {"A": content}.__getitem__).citations == []
