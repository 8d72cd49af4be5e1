"""What an answer says without citing it: verbatim quotations get a marker, facts never do."""

import pytest

from legal_rag.citations import Citation, CitationEnricher, is_abstention
from legal_rag.extraction import ExtractionResult, run_batch_extraction
from legal_rag.extraction.entities import rule_entity

JUGEMENT = (
    "Par jugement du 1er avril 2024, la société Lever a été condamnée à verser mille euros à M. Durand, soit 6,50 % du "
    "prix, en application de l'article L. 1152-1 du code du travail (pourvoi n° 22-11.369)."
)
ARRET = "Le 12 mai 1993, la société Hévéa a vendu l’œuvre pour 2.500 francs. Le bailleur doit délivrer la chose louée."
CONTENTS = {"J": JUGEMENT, "K": ARRET}


def enrich(text, contents=CONTENTS, read=("J", "K")):
    return CitationEnricher(contents).enrich(text, read)


def cited(answer):
    return [(one.doc_id, one.quote, one.status) for one in answer.citations]


@pytest.mark.parametrize(
    ("quotation", "quote"),
    [
        ("« le bailleur doit délivrer la chose »", "Le bailleur doit délivrer la chose"),
        ('"a vendu l\'oeuvre pour 2.500 francs"', "a vendu l’œuvre pour 2.500 francs"),
        ("« La société Hévéa a vendu [...] pour 2.500 francs »", "la société Hévéa a vendu l’œuvre pour 2.500 francs"),
        ("« [L]e bailleur (…) la chose louée. »", "Le bailleur doit délivrer la chose louée"),
        ("« Le bailleur… la chose louée »", "Le bailleur doit délivrer la chose louée"),
    ],
)
def test_a_quotation_without_a_marker_is_cited_where_it_stands(quotation, quote):
    answer = enrich(f"Le texte dit {quotation}.")
    assert cited(answer) == [("K", quote, "verified")]
    assert answer.text.endswith("].")
    assert answer.grounding_rate == 1.0


def test_a_quotation_is_cited_where_one_document_of_those_read_has_it():
    text = "« Le bailleur doit délivrer la chose »"
    answer = enrich(text, CONTENTS | {"L": ARRET}, read=("K", "L"))
    assert answer.citations == []
    assert len(answer.ungrounded_claims) == 1
    assert enrich(text, read=("J",)).citations == []
    assert len(CitationEnricher(CONTENTS).enrich(text).citations) == 1


def test_citations_count_by_status():
    answer = enrich(
        "« Le bailleur doit délivrer » [Source: K, chars 0-9]. « Nul ne ment jamais ici » [Source: J, chars 0-9]."
    )
    assert answer.counts == {"relocated": 1, "unverified": 1}
    assert isinstance(answer.citations[0], Citation)


@pytest.mark.parametrize(
    "text",
    [
        "La société Lever fut condamnée par jugement du 01/04/2024.",
        "La société Lever fut condamnée à verser 1 000 € à Durand.",
        "La société fut condamnée à verser 6,5 % du prix.",
        "La condamnation est prononcée en application de l'article L1152-1 du code du travail.",
        "La société fut condamnée à verser (pourvoi 22-11369) la somme.",
        "La société fut condamnée à verser 1.000 euros par jugement du premier avril 2024.",
    ],
)
def test_no_fact_however_true_gets_a_marker_by_itself(text):
    answer = enrich(text)
    assert (answer.citations, answer.text, answer.ungrounded_claims) == ([], text, [text])


@pytest.mark.parametrize(
    "text",
    [
        "La société Lever fut condamnée par jugement du 02/04/2024.",
        "La société Lever fut condamnée à verser 1 000 francs.",
        "La société Lever fut condamnée à verser 10 000 €.",
        "Condamnée en application de l'article L. 1152-1 du code de commerce.",
        "Condamnée en application de l'article L. 1152-2 du code du travail.",
        "Un navire arriva au port de Brest le 1er avril 2024.",
        "La société Lever fut condamnée à verser 1 000 euros par jugement du 12 mai 1993.",
    ],
)
def test_a_fact_that_is_changed_or_out_of_place_is_listed_and_not_cited(text):
    answer = enrich(text)
    assert (answer.citations, answer.ungrounded_claims, answer.grounding_rate) == ([], [text], 0.0)
    assert answer.text == text


def test_an_analysis_keeps_its_mark_and_claims_no_fact_nor_do_numbers_of_lists():
    text = "[Analyse] La solution du 3 mai 1999 surprend. Elle vaut 12 €.\nLe 3 mai 1999 est passé."
    answer = enrich(text)
    assert answer.text == text
    assert answer.ungrounded_claims == ["Le 3 mai 1999 est passé."]
    assert enrich("[Analysis] Ceci se discute.").grounding_rate is None
    assert enrich("1. Oui.\n2) Non.\n## 3. Peut-être.\n- 4° Jamais.").grounding_rate is None


@pytest.mark.parametrize(
    ("text", "abstained"),
    [
        ("Aucun passage pertinent.", True),
        ("Aucun passage pertinent n'a été trouvé.", True),
        ("Les décisions lues ne permettent pas de répondre à la question.", True),
        ("Je n'ai pas trouvé de décision sur ce point.", True),
        ("Aucune décision ne traite de cette question.", True),
        ("Aucune faute n'est exigée.", False),
        ("Le bailleur répond de la chose.", False),
        ("", False),
    ],
)
def test_an_abstention_is_known_by_its_words(text, abstained):
    assert is_abstention(text) is abstained
    assert enrich(text).abstained is abstained


def test_an_answer_that_cites_what_holds_has_not_abstained():
    assert not enrich("Aucun passage pertinent, mais « le bailleur doit délivrer la chose ».").abstained


@pytest.mark.parametrize(
    ("text", "ungrounded"),
    [
        ("Il y a 60 décisions [Calcul : r3].", []),
        ("Il y a 60 décisions [Calcul : r4].", ["Il y a 60 décisions [calcul non vérifié]."]),
        ("En 2019, il y a 60 décisions [Calcul : r3].", ["En 2019, il y a 60 décisions [Calcul : r3 = 60]."]),
        (
            "« Le bail est résilié » en 60 décisions [Calcul : r3].",
            ["« Le bail est résilié » en 60 décisions [Calcul : r3 = 60]."],
        ),
        ("Il y a 60 décisions [Calcul : r3]. Il doit 500 euros.", ["Il doit 500 euros."]),
    ],
)
def test_a_sentence_that_states_only_what_was_calculated_needs_no_source(text, ungrounded):
    def bears_out(before, name):
        return "60" if name == "r3" and before.rstrip().endswith("60 décisions") else None

    answer = CitationEnricher(CONTENTS).enrich(text, bears_out=bears_out)
    assert answer.ungrounded_claims == ungrounded
    assert answer.grounding_rate == (0.0 if ungrounded else None)


def test_a_library_is_asked_for_titles_dates_and_numbers(tiny_library):
    document = next(tiny_library.documents())
    start = document.content.index("Considérant")
    quote = " ".join(document.content[start : start + 90].split()[:9])
    said = f"Selon la décision du {document.decision_date}, « {quote} »"
    by_title = CitationEnricher(tiny_library).enrich(f"{said} [Source: {document.title}].", [document.id])
    assert [(one.doc_id, one.status) for one in by_title.citations] == [(document.id, "relocated")]
    assert by_title.text.endswith(f"[Source: {document.id}, chars {start}-{by_title.citations[0].char_end}].")
    wrong = CitationEnricher(tiny_library).enrich(
        f"{said} [Source: {document.title}].".replace("9", "8"), [document.id]
    )
    assert not any(one.holds for one in wrong.citations)


LEASE = "Le bail du 1er avril 2024 fixe le loyer à 1 000 000 €. La société Alpha paie 5 % de frais."


def test_extraction_results_are_documents_that_are_cited_by_their_name():
    results = run_batch_extraction([{"name": "bail.txt", "text": LEASE}, {"name": "b", "text": "Rien."}], None, "rules")
    answer = CitationEnricher(results).enrich(
        "Le bail fixe le loyer à 1 000 000 € [Source: bail.txt, chars 0-54]. « La société Alpha paie 5 % de frais »."
    )
    assert [(cited.doc_id, cited.status) for cited in answer.citations] == [
        ("bail.txt", "supported"),
        ("bail.txt", "verified"),
    ]
    assert answer.removed == []


def test_of_a_result_without_its_text_the_extractions_are_known_at_their_places():
    (start, end) = LEASE.index("1 000"), LEASE.index("€") + 1
    entities = [rule_entity("montant", LEASE, start, end), rule_entity("partie", LEASE, 58, 71)]
    enricher = CitationEnricher([ExtractionResult(doc_name="bail.txt", extractions=entities)])
    written = f"Le loyer est de 1 000 000 € [Source: bail.txt, chars {start}-{end}]."
    (cited,) = enricher.enrich(written).citations
    assert (cited.stands, cited.quote) == (True, LEASE[start:end])
    (cited,) = enricher.enrich(written.replace("1 000 000", "2 000 000")).citations
    assert not cited.stands
    (cited,) = enricher.enrich("« société Alpha » [Source: bail.txt, chars 58-71]").citations
    assert (cited.status, cited.quote) == ("verified", "société Alpha")
