"""Citations: markers in every spelling, sound and unsound, against a few short texts."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.citations import Citation, CitationEnricher, format_marker
from legal_rag.citations.markers import NO_SUCH_SOURCE

BAIL = "Le bailleur doit délivrer la chose louée. Le preneur doit payer l'indemnité\nd'éviction due, sans délai."
VISITE = "L’occupant a dit : « Je refuse. Partez ! » puis il a fermé. Aucune visite ne pourra être faite."
CONTENTS = {
    "FICTIF1": BAIL,
    "n° 2001-2589 AN, 12/07": BAIL,
    "a[b]": BAIL,
    "VISITE": VISITE,
}
WHOLE = f"[Source: FICTIF1, chars 0-{len(BAIL)}]"


def check(text, read=()):
    return CitationEnricher(CONTENTS).enrich(text, read)


@pytest.mark.parametrize(
    "marker",
    [
        "[Source: FICTIF1, chars 0-41]",
        "[source : FICTIF1, chars 0-41]",
        "[Source\u00a0: FICTIF1, char. 0\u202f-\u202f41]",
        "[Sources : FICTIF1, caractères 0—41]",
        "[Source:\nFICTIF1,\nchars 0-41]",
    ],
)
def test_a_marker_in_any_usual_spelling_is_read_and_written_anew(marker):
    answer = check(f"Il faut « délivrer la chose louée » {marker}.")
    assert answer.text == "Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41]."
    assert answer.citations == [Citation("FICTIF1", 0, 41, BAIL[:41], "verified")]
    assert answer.removed == []


@pytest.mark.parametrize(
    "text",
    [
        f"« Le bailleur doit délivrer la chose louée » {WHOLE}.",
        f"« Le bailleur doit délivrer la chose louée. » {WHOLE}",
        f"« Le bailleur doit délivrer la chose louée ». {WHOLE}",
        f"“Le bailleur doit délivrer la chose louée” {WHOLE}.",
        f"« Le bailleur doit délivrer. » {WHOLE}",
        f"« Le bailleur doit délivrer… » {WHOLE}",
        f'"Le bailleur doit délivrer la chose louée" {WHOLE}.',
        f"« Le bailleur doit délivrer la chose louée {WHOLE} ».",
        f'"Le bailleur doit délivrer la chose louée {WHOLE}".',
        f"«\u00a0l’indemnité d’éviction due\u202f» {WHOLE}",
        f"« payer\nl'indemnité   d'éviction\u00a0due » {WHOLE}",
        f"Selon M. Y : « l'indemnité d'éviction » {WHOLE}",
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
        f"« Le bailleur doit délivrer » ou « s'abstenir » {WHOLE}",
        f"« Le bailleur ne doit rien délivrer {WHOLE} »",
        f'"Le bailleur ne doit rien délivrer {WHOLE}"',
        f"« Le bailleur ne doit rien délivrer ; la chose louée reste » ; Le preneur doit payer {WHOLE}",
        f"Le bailleur doit délivrer la chose louée, « à l'évêque » selon M. Le preneur {WHOLE}",
        f"« bailleur doit délivrer la chose lou » {WHOLE}",
    ],
)
def test_an_altered_quotation_is_marked_as_unverified(text):
    answer = check(text)
    assert [one.status for one in answer.citations] == ["unverified"]
    assert answer.text == text.replace("[Source:", "[Source non vérifiée:")
    assert (len(answer.ungrounded_claims), answer.grounding_rate) == (1, 0.0)


@pytest.mark.parametrize(
    ("marker", "place"),
    [
        ("[Source: FICTIF1, chars 5-41]", (3, 40)),
        ("[Source: FICTIF1, chars 41-41]", (3, 40)),
        ("[Source: FICTIF1, chars 41-0]", (3, 40)),
        ("[Source: FICTIF1, chars 0-100000]", (3, 40)),
        (f"[Source: FICTIF1, chars 0-{'9' * 12}]", (3, 40)),
        ("[Source: FICTIF1, chars 60-103]", (3, 40)),
        ("[Source: FICTIF1]", (3, 40)),
        ("[Source : FICTIF1-0]", (3, 40)),
    ],
)
def test_a_right_quotation_gets_its_own_place(marker, place):
    answer = check(f"Il dit « bailleur doit délivrer la chose louée. » {marker}")
    assert answer.citations == [Citation("FICTIF1", *place, BAIL[slice(*place)], "relocated")]
    assert answer.text.endswith("[Source: FICTIF1, chars 3-40]")


def test_a_quotation_under_the_wrong_name_goes_to_the_only_document_read_that_holds_it():
    text = "« Aucune visite ne pourra être faite » [Source: FICTIF1, chars 0-41]."
    assert check(text, ["VISITE"]).citations == [Citation("VISITE", 60, 94, VISITE[60:94], "relocated")]
    assert [one.status for one in check(text, []).citations] == ["unverified"]
    altered = text.replace("Aucune visite ne", "Et ne")
    assert [one.status for one in check(altered, ["VISITE"]).citations] == ["unverified"]
    text = "« Le bailleur doit délivrer la chose louée » [Source: VISITE, chars 0-9]."
    assert [one.status for one in check(text, ["FICTIF1", "a[b]"]).citations] == ["unverified"]


@pytest.mark.parametrize(
    "marker",
    [
        "[Source: INCONNU, chars 0-41]",
        f"[Source: FICTIF1, chars 0-{'9' * 5000}]",
        "[Source]",
        "[Source: ]",
        "[Source: , chars 0-41]",
        "[Source: FICTIF1 [sic], chars 0-41]",
        "[Sources]",
        "[Source: INCONNU]",
        "[Source: INCONNU, chars 0-4; AUTRE, chars 5-9]",
    ],
)
def test_a_marker_of_no_known_document_is_replaced_by_words_that_say_so(marker):
    answer = check(f"Il faut « délivrer la chose louée »\u00a0 {marker}. La suite.")
    assert answer.text == f"Il faut « délivrer la chose louée » {NO_SUCH_SOURCE}. La suite."
    assert (answer.citations, answer.removed) == ([], [marker])
    assert (answer.ungrounded_claims, answer.grounding_rate) == (["Il faut « délivrer la chose louée »."], 0.0)


def test_an_id_of_half_a_character_is_an_unknown_document(tiny_library):
    enricher = CitationEnricher(tiny_library)
    assert enricher.enrich("Oui [Source: \ud800, chars 0-4].").text == f"Oui {NO_SUCH_SOURCE}."
    assert enricher.enrich("Oui [Source: INCONNU, chars 0-4].").removed == ["[Source: INCONNU, chars 0-4]"]


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
    assert [one.status for one in answer.citations] == ["verified", "unverified", "verified"]
    assert [one.quote for one in answer.citations] == [BAIL[:41], BAIL[42:60], "Aucune visite"]
    assert answer.text == text.replace("[Source: FICTIF1, chars 42-60]", "[Source non vérifiée: FICTIF1, chars 42-60]")
    assert answer.grounding_rate == pytest.approx(2 / 3)


def test_a_quotation_within_a_quotation_stays_in_one_sentence_and_a_good_marker_takes_over_none_of_a_dropped_one():
    answer = check(f"« L'occupant a dit : « Je refuse. Partez ! » puis il a fermé. » {format_marker('VISITE', 0, 59)}")
    assert [citation.status for citation in answer.citations] == ["verified"]
    answer = check(f"« L'occupant a dit : « Je refuse. Restez ! » puis il a fermé. » {format_marker('VISITE', 0, 59)}")
    assert [citation.status for citation in answer.citations] == ["unverified"]
    answer = check(f"« Il doit partir » [Source: INCONNU, chars 0-9] car le bailleur doit délivrer {WHOLE}.")
    assert [one.status for one in answer.citations] == ["unverified"]
    assert answer.removed == ["[Source: INCONNU, chars 0-9]"]


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("Le bailleur doit délivrer la chose.", "supported"),
        ("Bailleur, délivrer : navire, tempête.", "unverified"),
        ("Bailleur : navire, tempête.", "unverified"),
        ("Le navire a sombré.", "unverified"),
        ("Il y a un an.", "unverified"),
        ("« »", "unverified"),
        ("« … »", "unverified"),
    ],
)
def test_a_sentence_that_quotes_nothing_needs_most_of_its_content_words(sentence, status):
    assert [one.status for one in check(f"{sentence} {WHOLE}").citations] == [status]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[Source: INCONNU, chars 0-9]", NO_SUCH_SOURCE),
        ("[Sou[Source]rce: FICTIF1]", NO_SUCH_SOURCE),
        ("[Source: [Source: INCONNU, chars 0-1], chars 3-4]", NO_SUCH_SOURCE),
        ("[1] et [Source [a] [b]]]", f"[1] et {NO_SUCH_SOURCE}]"),
        ("[Source: FICTIF1, chars 0-41", "[Source non vérifiée: FICTIF1, chars 0-41]"),
        ("[Source: FICTIF1", "[Source: FICTIF1"),
        ("[Source:  et ; [Source: INCONNU], chars 5-9", f"Source:  et ; {NO_SUCH_SOURCE}, chars 5-9"),
        ("(Source: [Source: INCONNU], chars 5-9)", f"Source: {NO_SUCH_SOURCE}, chars 5-9)"),
        ("Ressource [Sourcehut] [Analyse]", "Ressource [Sourcehut] [Analyse]"),
        ("[[Source:[Source[]],car 0-4", f"Source: {NO_SUCH_SOURCE},car 0-4"),
    ],
)
def test_no_marker_is_left_or_made_up_by_taking_others_out(text, left):
    assert check(text).text == left


def test_of_two_sources_in_one_marker_the_one_that_there_is_stays():
    answer = check("Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41; AUTRE, chars 5-9].")
    assert answer.text == f"Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41] {NO_SUCH_SOURCE}."
    assert answer.removed == ["[Source: AUTRE, chars 5-9]"]


PARTS = """[|]|[Source: |Source: |FICTIF1|a[b]|, chars 0-41|, chars 5-9|« | »|“|”|"|Le bailleur|délivrer la chose louée|
|navire| |. |; | et |M. |[source inexistante retirée]""".split("|")


@given(st.one_of(st.text(), st.lists(st.sampled_from([*PARTS, WHOLE]), max_size=40).map("".join)))
def test_any_text_is_checked_once_and_for_all(text):
    answer = check(text)
    assert all(CONTENTS[one.doc_id][one.char_start : one.char_end] == one.quote for one in answer.citations)
    for one in answer.citations:
        assert bool(one.reason) == (one.status == "unverified")
        marker = format_marker(one.doc_id, one.char_start, one.char_end, verified=one.status != "unverified")
        assert marker in answer.text
    again = check(answer.text)
    assert (again.text, again.removed) == (answer.text, [])
    assert [one[:4] for one in again.citations] == [one[:4] for one in answer.citations]
    assert [one.holds for one in again.citations] == [one.holds for one in answer.citations]


@pytest.mark.parametrize(
    "text",
    [
        "[Source:" * 25_000,
        "[Source:]" * 25_000,
        "a [Source: FICTIF1, chars 0-9999] " * 5_000,
        WHOLE * 5_000,
        "[Source:" + " " * 25_000 + "]",
        "[Source:" + ", chars " * 12_500 + "]",
        "[" * 12_500 + "]" * 12_500,
        "«" * 25_000 + WHOLE,
        "»" * 25_000 + WHOLE,
        '"' * 25_000 + WHOLE,
        "« " + " " * 25_000 + WHOLE,
        "« a. B ; » " * 5_000 + WHOLE,
        ". " * 25_000 + WHOLE,
    ],
    ids=lambda text: re.sub(r"(.{1,20}).*", r"\1", text, flags=re.DOTALL).strip(),
)
def test_hostile_text_takes_linear_time(text):
    started = time.process_time()
    check(text)
    assert time.process_time() - started < 15  # half a second on a quiet machine; quadratic: minutes


def test_a_quotation_of_one_word_proves_nothing_and_a_marker_over_a_whole_decision_is_narrowed_to_what_is_quoted():
    content = "Le voisin doit réparer le trouble anormal, une indemnité étant due à la victime."
    text = "Nul ne peut jamais exiger « une » amende [Source: A, chars 0-60]."
    assert [one.status for one in CitationEnricher({"A": content}).enrich(text).citations] == ["unverified"]
    content = "Le voisin doit réparer le trouble anormal. " * 500
    answer = CitationEnricher({"A": content}).enrich(
        f"« réparer le trouble anormal » [Source: A, chars 0-{len(content)}]"
    )
    assert [one[1:3] for one in answer.citations] == [(15, 41)]
    vague = CitationEnricher({"A": content}).enrich(f"Le voisin doit réparer [Source: A, chars 0-{len(content)}].")
    assert [(one.status, one.quote) for one in vague.citations] == [("supported", content[:43])]


BAIL_ET_DETTE = (
    "Le bailleur ne doit pas délivrer la chose louée avant le 12 mars 1998. La société Lever a été condamnée le "
    "3 décembre 1997 à payer 15 000 francs, soit 110 %, dans un délai de deux mois, sur le fondement des articles 1382 "
    "et 1384 du code civil. Il n'y a pas lieu de statuer. M. [X] habite [Localité 3], dit l'arrêt."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "La société doit payer 5 000 francs",
        "La société doit payer 15 000 euros",
        "Cela fait 10 %",
        "Elle fut condamnée le 3 décembre 1998",
        "Elle fut condamnée le 12/03/1997",
        "Elle fut condamnée en mars 1997",
        "Elle fut condamnée le 13 mars",
        "Le délai de payer est de 3 mois",
        "Le délai de payer est de trois mois",
        "Le délai de payer est de deux ans",
        "L'article 1383 du code civil fonde la condamnation",
        "L'article 1382 du code du travail fonde la condamnation",
        "« Le bailleur doit délivrer la chose louée »",
        "« Le bailleur ne doit (...) délivrer la chose louée »",
        "« Il [...] y a lieu de statuer »",
        "« payer 5 000 francs »",
        "« Le bailleur [ne] doit [certes] délivrer la chose »",
        "« a été condamnée [...] de statuer »",
        "« Le bailleur ne doit pas délivrer [...] condamnée le 3 décembre 1997 à payer »",
        "« sur le fondement des articles 1382 et 138 »",
        "Il a 12/45 des voix et doit payer 15 000 francs",
        "Elle doit payer 15 000 francs à 16h30",
        "Le délai de payer est d'un an",
        "« 5 000 francs, soit 110 % »",
        "« habite [Localité 4], dit l'arrêt »",
        "« M. [Y] habite »",
        "“Le bailleur doit délivrer”",
        "‹Le bailleur doit délivrer›",
        "**« Le bailleur doit délivrer »**",
        "Le bailleur « doit délivrer la chose",
        "« Le bailleur ne doit pas délivrer » et « il doit mentir »",
        "« Le bailleur ne doit pas délivrer » avant le 12 mars 1999",
    ],
)
def test_what_was_changed_is_never_verified(sentence):
    marker = f"[Source: D, chars 0-{len(BAIL_ET_DETTE)}]"
    for text in (f"{sentence} {marker}.", f"Selon {marker}, {sentence}."):
        answer = CitationEnricher({"D": BAIL_ET_DETTE}).enrich(text, ["D"])
        assert {one.status for one in answer.citations} == {"unverified"}


@pytest.mark.parametrize(
    "sentence",
    [
        "- **Délai** : « deux mois »",
        "| a | « Il n’y a pas lieu de statuer » |",
        "### 1. Principe\n« Il n'y a pas lieu de statuer »",
        "« Le bailleur ne doit pas [...] la chose louée avant le 12 mars »",
        "« M. [X] habite [Localité 3] »",
    ],
)
def test_what_stands_there_is_verified_however_it_is_written(sentence):
    text = f"{sentence} [Source: D, chars 0-{len(BAIL_ET_DETTE)}]."
    answer = CitationEnricher({"D": BAIL_ET_DETTE}).enrich(text, ["D"])
    assert [one.status for one in answer.citations] == ["verified"]


@pytest.mark.parametrize(
    "sentence",
    [
        "La société Lever a été condamnée le 3/12/1997 à payer 15.000 F",
        "La société a été condamnée en décembre 1997",
        "La société a un délai de 2 mois",
        "Le bailleur ne doit pas délivrer la chose louée",
    ],
)
def test_the_same_facts_in_the_same_words_are_supported_and_never_verified(sentence):
    text = f"{sentence} [Source: D, chars 0-{len(BAIL_ET_DETTE)}]."
    answer = CitationEnricher({"D": BAIL_ET_DETTE}).enrich(text, ["D"])
    assert [(one.status, one.holds) for one in answer.citations] == [("supported", False)]


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        (
            "« Le bailleur [...] renonce au loyer » {}. « Le bailleur ne doit pas [...] la chose louée » {}.",
            ["unverified", "verified"],
        ),
        ("« Le bailleur ne doit pas délivrer {} la chose prêtée ».", ["unverified"]),
    ],
)
def test_a_wrong_quotation_is_checked_to_its_end_and_does_not_spoil_a_right_one(text, statuses):
    marker = f"[Source: D, chars 0-{len(BAIL_ET_DETTE)}]"
    answer = CitationEnricher({"D": BAIL_ET_DETTE}).enrich(text.replace("{}", marker), ["D"])
    assert [one.status for one in answer.citations] == statuses
    assert len(answer.ungrounded_claims) == 1


def test_a_quotation_that_ends_before_a_name_does_not_end_its_sentence():
    content = "La requête susvisée de M. Toussaint Luciani est rejetée."
    text = f"Motif : « La requête susvisée de M. » Pierre Vasseur est rejetée [Source: A, chars 0-{len(content)}]."
    answer = CitationEnricher({"A": content}).enrich(text, ["A"])
    assert [one.status for one in answer.citations] == ["unverified"]


@pytest.mark.parametrize(
    ("seen", "status"), [(None, "verified"), ({"FICTIF1"}, "verified"), ({"VISITE"}, "unverified"), ((), "unverified")]
)
def test_a_citation_of_a_document_that_was_not_shown_is_not_verified_though_it_stands_there(seen, status):
    answer = CitationEnricher(CONTENTS).enrich(
        "Il faut « délivrer la chose louée » [Source: FICTIF1, chars 0-41].", ["VISITE"], seen=seen
    )
    assert [one.status for one in answer.citations] == [status]
    assert ("[Source non vérifiée: FICTIF1" in answer.text) == (status == "unverified")
    assert bool(answer.ungrounded_claims) == (status == "unverified")
