"""Relevance: true quotations beside sentences that they bear out, or that they have nothing to do with."""

import json
from pathlib import Path

import pytest

from legal_rag.citations import CitationEnricher
from legal_rag.citations.markers import MarkedReference, format_marker
from legal_rag.corpus import read_documents
from legal_rag.corpus.sources import SAMPLE_FILE

OFF_TOPIC = "La citation ne parle pas de ce que dit la phrase."
OTHERWISE = "La phrase ne dit pas la même chose que la citation."
SEIZED = (
    "LE CONSEIL CONSTITUTIONNEL A ÉTÉ SAISI le 18 juillet 2016 par la Cour de cassation (chambre criminelle, "
    "arrêt n° 3811 du 12 juillet 2016), dans les conditions prévues à l’article 61-1 de la Constitution"
)
VISIT = (
    "aucune visite d’un local à usage d’habitation ne pourra être faite contre le gré de l’occupant sans ordonnance "
    "du juge des libertés et de la détention"
)
DUE_DATE = (
    "impose à tout candidat présent au premier tour de remettre son compte de campagne à la préfecture dans les deux "
    "mois du tour où l'élection a été acquise"
)
FORTUNE = "la preuve de ce retour à meilleure fortune pèse sur le créancier qui entend en tirer profit"
VISA = "Vu le code pénal, notamment son article 441-6"
PAIRS = Path(__file__).parents[2] / "benchmarks" / "data" / "relevance.jsonl"


@pytest.fixture(scope="module")
def check():
    texts = {document.id: document.content for document in read_documents(SAMPLE_FILE)}
    enricher = CitationEnricher(texts)

    def check(answer, doc_id):
        return enricher.enrich(answer.replace("[S]", f"[Source: {doc_id}]")).citations

    return check


@pytest.mark.parametrize(
    ("sentence", "quotation", "doc_id"),
    [
        ("Le candidat doit déposer son compte de campagne dans les deux mois de l'élection", DUE_DATE, "FICTIF0108"),
        ("Le candidat doit remettre son compte à la préfecture dans les deux mois", DUE_DATE, "FICTIF0108"),
        ("La décision énonce que", VISIT, "FICTIF0102"),
        ("Selon l'article L. 52-12 du code électoral, la loi", DUE_DATE, "FICTIF0108"),
        ("Sur le délai :", DUE_DATE, "FICTIF0108"),
        ("Le texte dit :", SEIZED, "FICTIF0102"),
        ("Le Conseil constitutionnel a été saisi le 18 juillet 2016", SEIZED, "FICTIF0102"),
    ],
)  # fmt: skip
def test_a_quotation_bears_out_what_it_speaks_of(check, sentence, quotation, doc_id):
    (citation,) = check(f"{sentence} « {quotation} » [S].", doc_id)
    assert citation.holds


@pytest.mark.parametrize(
    ("sentence", "quotation", "doc_id"),
    [
        ("Un agent ne peut entrer dans un domicile sans l'accord de l'occupant", SEIZED, "FICTIF0102"),
        ("Le Conseil constitutionnel juge que le domicile est inviolable, car", SEIZED, "FICTIF0102"),
        ("L'article 61-1 est conforme à la Constitution", SEIZED, "FICTIF0102"),
        ("Une fausse déclaration est punie d'une amende", VISA, "FICTIF0101"),
        ("Les documents saisis doivent être restitués au maître de l'ouvrage", VISIT, "FICTIF0102"),
        ("Le licenciement de la salariée enceinte est nul :", DUE_DATE, "FICTIF0108"),
        ("L'auteur a droit au respect de son œuvre", "SUR LE DROIT MORAL", "FICTIF0310"),
    ],
)
def test_a_quotation_bears_out_nothing_that_it_does_not_speak_of(check, sentence, quotation, doc_id):
    (citation,) = check(f"{sentence} « {quotation} » [S].", doc_id)
    assert (citation.status, citation.reason) == ("unverified", OFF_TOPIC)


@pytest.mark.parametrize(
    ("sentence", "quotation", "doc_id"),
    [
        ("Le candidat présent au premier tour n'a pas à remettre son compte de campagne", DUE_DATE, "FICTIF0108"),
        ("La preuve de ce retour à meilleure fortune pèse sur le débiteur", FORTUNE, "FICTIF0208"),
        ("Un agent peut visiter un local à usage d'habitation contre le gré de l'occupant", VISIT, "FICTIF0102"),
    ],
)  # fmt: skip
def test_a_sentence_that_contradicts_its_quotation_is_not_borne_out(check, sentence, quotation, doc_id):
    (citation,) = check(f"{sentence} « {quotation} » [S].", doc_id)
    assert citation.status == "unverified"


def test_a_sentence_in_the_words_of_its_quotation_that_says_otherwise_is_told_so(check):
    quotation = "ce pliage ne constitue pas, en l'absence de concertation établie, un signe"
    (citation,) = check(f"Ce pliage constitue un signe « {quotation} » [S].", "FICTIF0115")
    assert (citation.status, citation.reason) == ("unverified", OTHERWISE)


def test_a_sentence_that_denies_what_its_quotation_denies_is_borne_out(check):
    quotation = "aucune facture ne justifiait l’achat d’affiches"
    (citation,) = check(
        f"La candidate n'a produit aucune facture pour l'achat d'affiches « {quotation} » [S].", "FICTIF0109"
    )
    assert citation.holds


def test_a_second_quotation_answers_for_the_sentence_before_the_first(check):
    sentence, quoted = "Le candidat doit déposer son compte de campagne dans les deux mois", f"« {DUE_DATE} » [S]"
    first, second = check(f"{sentence} {quoted} « Vu le code électoral » [S].", "FICTIF0108")
    assert first.holds
    assert (second.status, second.reason) == ("unverified", OFF_TOPIC)


def test_a_quotation_without_a_marker_gets_none_beside_a_sentence_that_it_does_not_speak_of():
    texts = {"A": "Le bailleur doit délivrer la chose louée. Le preneur doit payer son loyer."}
    quoted = "« Le preneur doit payer son loyer »"
    assert [
        len(CitationEnricher(texts).enrich(text).citations)
        for text in (f"Le locataire paie son loyer {quoted}.", f"La banque informe la caution {quoted}.")
    ] == [1, 0]


def test_of_the_wrong_pairs_of_the_benchmark_at_most_two_in_a_hundred_hold(check):
    pairs = [pair for pair in map(json.loads, PAIRS.read_text("utf-8").splitlines()) if pair["truth"] == "false"]
    wrong = [pair for pair in pairs if pair["kind"] != "contradiction" and pair["doc_id"].startswith("FICTIF")]
    citations = [check(f"{pair['sentence']} « {pair['quotation']} » [S].", pair["doc_id"])[0] for pair in wrong]
    assert len(wrong) > 100
    assert sum(citation.holds for citation in citations) <= 0.02 * len(wrong)


POINTED_AT = "La preuve d'une remise régulière n'est pas rapportée, et elle rendra 3 850 francs."
RULING = f"La banque ne produit aucun coupon. {POINTED_AT}"


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("La preuve d'une remise régulière n'est pas rapportée", "verified"),
        ("3 850 francs", "verified"),
        ("4 000 francs", "unverified"),
        ("Oui", "unverified"),
        ("Oui, la clause suffit à prouver la remise du coupon par la banque", "unverified"),
    ],
)
def test_a_quotation_that_was_written_for_a_sentence_must_say_all_of_it(sentence, status):
    start = RULING.index(POINTED_AT)
    place = MarkedReference("A", (start, start + len(POINTED_AT)))
    text = f"{sentence} « {POINTED_AT} » {format_marker(place.doc_id, *place.place)}."
    checked = CitationEnricher({"A": RULING}).enrich(text, pointed={place: POINTED_AT})
    assert [citation.status for citation in checked.citations] == [status]


# --- paraphrases ------------------------------------------------------------------------------------------------------

LEASE = (
    "Le bailleur est tenu de délivrer au preneur la chose louée et de l'entretenir en état de servir à l'usage pour "
    "lequel elle a été louée. Par acte du 3 mars 2015, le loyer a été fixé à 900 euros. La clause qui exonère le "
    "bailleur de cette obligation n'est pas opposable au locataire."
)


@pytest.mark.parametrize(
    ("sentence", "denies_alike"),
    [
        ("Celui qui donne un bien à bail doit le maintenir dans un état d'entretien conforme à l'usage loué", True),
        ("En 2015, le loyer mensuel était de 900 €", True),
        ("Une clause ne peut décharger le bailleur de son obligation envers le locataire", True),
        ("Une clause peut décharger le bailleur de son obligation envers le locataire", False),
        ("C'est en premier lieu au bailleur qu'il revient d'entretenir le bien loué", True),
        ("Deux obligations pèsent sur le bailleur, qui doit entretenir ce que le CPH appelle la chose louée", True),
    ],
)
@pytest.mark.parametrize("place", [f", chars 0-{len(LEASE)}", ""])
def test_a_sentence_in_other_words_than_its_passage_stands_though_it_is_not_confirmed(sentence, denies_alike, place):
    (cited,) = CitationEnricher({"A": LEASE}).enrich(f"{sentence} [Source: A{place}].").citations
    assert (cited.status, cited.reworded, cited.stands, cited.holds) == ("unverified", True, True, False)
    assert ("nier" in cited.reason) is not denies_alike


@pytest.mark.parametrize(
    "sentence",
    [
        "Le loyer mensuel était alors de 950 €",
        "Le bail a été signé par le bailleur le 4 mars 2015",
        "Selon la cour d'appel de Rennes, le bailleur doit bien entretenir le logement",
        "La caution doit être informée chaque année par la banque",
        "Oui, en effet",
    ],
)
def test_a_sentence_that_states_another_fact_or_speaks_of_something_else_does_not_stand(sentence):
    (cited,) = CitationEnricher({"A": LEASE}).enrich(f"{sentence} [Source: A, chars 0-{len(LEASE)}].").citations
    assert (cited.status, cited.stands) == ("unverified", False)
    assert cited.reason


def test_a_sentence_in_the_words_of_its_passage_that_alone_denies_something_is_not_supported():
    texts = {"A": "Une décision prise à l'unanimité des associés ne peut être constitutive d'un abus de majorité."}
    sentence = "Il y a abus de majorité même dans une décision prise à l'unanimité des associés [Source: A]."
    (cited,) = CitationEnricher(texts).enrich(sentence).citations
    assert cited.reworded
    assert "nier" in cited.reason


def test_a_fact_of_one_of_two_documents_cited_together_contradicts_neither():
    texts = {"A": LEASE, "B": "Le congé du bailleur a été donné le 7 mai 2019 pour motif grave."}
    text = "Le bien loué 900 euros a fait l'objet d'un congé du bailleur le 7 mai 2019 {}."
    text = text.format(f"[Source: A, chars 0-{len(LEASE)}; B, chars 0-64]")
    assert [cited.stands for cited in CitationEnricher(texts).enrich(text).citations] == [True, True]


def test_a_sentence_about_a_document_that_was_not_shown_does_not_stand():
    text = f"Une clause ne peut décharger le bailleur envers le locataire [Source: A, chars 0-{len(LEASE)}]."
    enrich = CitationEnricher({"A": LEASE}).enrich
    assert [enrich(text, seen=seen).stands for seen in ({"A"}, set())] == [True, False]


def test_what_a_passage_lacks_is_no_abstention():
    texts = {"A": "Le bail conclu entre les parties ne contient aucune clause de solidarité."}
    assert (
        not CitationEnricher(texts).enrich("Ce bail ne contient pas de solidarité des parties [Source: A].").abstained
    )
    assert CitationEnricher(texts).enrich("Aucun passage pertinent [Source: A].").abstained
