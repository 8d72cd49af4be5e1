"""Summaries made of a text's own sentences: verbatim, bounded, and ending with what a decision decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.corpus_index.keywords import TermCounter, keywords_of, read_terms
from legal_rag.corpus_index.summaries import CUT, MAX_CHARS, OMITTED, extractive_summary

REASON = (
    "2. Considérant que M. Durand n'avait pas déposé son compte de campagne à la préfecture à l'expiration du délai ;"
)
UNTIL = "pour une durée d'un an à compter du 28 mars 1993"
DECISION = f"""Le Conseil constitutionnel,

Vu la requête enregistrée au secrétariat général du Conseil constitutionnel le 3 mai 1993 ;

Vu le code électoral ;

Le rapporteur ayant été entendu ;

1. Considérant qu'aux termes de l'article L. 52-12 du code électoral, chaque candidat dépose son compte de campagne ;

{REASON}

Décide :

Article premier :

M. Paul Durand est déclaré inéligible {UNTIL}.

Article 2 :

La présente décision sera notifiée à M. Durand et publiée au Journal officiel de la République française.

Délibéré par le Conseil constitutionnel dans sa séance du 29 septembre 1993, où siégeaient : MM. Robert BADINTER,
président, Georges ABADIE."""
CASSATION = """COUR DE CASSATION

Audience publique du 8 novembre 2023

Enoncé du moyen
3. Le salarié fait grief à l'arrêt de dire le licenciement fondé, alors « que le licenciement du salarié est nul. »

Réponse de la Cour
Vu l'article L. 1233-4 du code du travail :
4. Le licenciement du salarié est subordonné à la recherche d'un reclassement du salarié dans les entreprises du groupe.
5. En statuant ainsi, sans chercher un reclassement du salarié, la cour d'appel a violé le texte susvisé.

PAR CES MOTIFS, la Cour :

CASSE ET ANNULE, en toutes ses dispositions, l'arrêt rendu le 11 mai 2022 par la cour d'appel de Bordeaux ;

Condamne la société Brel aux dépens ;"""
CONTRACT = """CONTRAT DE MAINTENANCE

La société Alpha Conseil, SAS au capital de 50 000 euros, immatriculée au RCS de Paris, représentée par Mme Dubois,

Article 1 - Objet
Le contrat a pour objet la maintenance du matériel informatique du client par le prestataire.

Article 2 - Durée
Le contrat est conclu pour trois ans. Le prestataire s'engage à un préavis de trois mois avant la fin du contrat.

Fait à Paris, le 15 décembre 2023"""
LETTER = """Bonjour Julie,

Le bailleur délivre un congé sans offre d'indemnité d'éviction. Le preneur exploite le fonds depuis 2009.

Cordialement,
Paul"""


def assert_verbatim(summary, text):
    """Check that a summary is passages of its text, blanks aside, and nothing else, in their order."""
    plain, at = "".join(text.split()), 0
    for part in summary.split(OMITTED):
        passage = "".join(part.split())
        passage = passage if passage in plain else passage.removesuffix(CUT)
        at = plain.find(passage, at) + len(passage)
        assert at >= len(passage)


def test_two_articles_that_decide_are_both_told_and_one_of_many_by_its_beginning_and_end():
    article = "Les opérations électorales du 28 mars 1993 sont annulées."
    summary = extractive_summary(DECISION.replace("Article 2 :", f"Article 2 :\n\n{article}\n\nArticle 3 :"))
    assert summary.endswith(f"M. Paul Durand est déclaré inéligible {UNTIL} […] {article[:-1]}")
    names = ", ".join(f"M. Paul Durand{'x' * n}" for n in range(40))
    text = DECISION.replace(f"M. Paul Durand est déclaré inéligible {UNTIL}", f"La requête de {names} est rejetée")
    summary = extractive_summary(text)
    assert "[…] La requête de M. Paul Durand, M. Paul Durandx" in summary
    assert summary.endswith("… […] est rejetée")
    assert_verbatim(summary, text)


def test_what_the_court_answers_comes_before_what_a_party_claims():
    text = extractive_summary(CASSATION)
    assert "est nul" not in text
    assert text.endswith(
        "[…] CASSE ET ANNULE, en toutes ses dispositions, l'arrêt rendu le 11 mai 2022 par la cour d'appel de Bordeaux"
    )
    assert "subordonné à la recherche d'un reclassement" in text


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            CONTRACT,
            "Le contrat a pour objet la maintenance du matériel informatique du client par le prestataire. […] Le "
            "prestataire s'engage à un préavis de trois mois avant la fin du contrat.",
        ),
        (LETTER, " ".join(LETTER.splitlines()[2].split())),
        (DECISION, f"{REASON} […] M. Paul Durand est déclaré inéligible {UNTIL}"),
    ],
)
def test_a_text_is_summed_up_by_what_it_binds_to_or_decides_without_headings_parties_and_greetings(text, summary):
    assert extractive_summary(text) == summary


@pytest.mark.parametrize(
    "text",
    ["Bail commercial - résiliation", "Le la les.", "Merci.", "12", "§", "Dit n'y avoir lieu.", "a", "…", "\u0301"],
)
def test_one_line_is_its_own_summary(text):
    assert extractive_summary(text) == text


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\u00a0\n"])
def test_a_blank_text_has_an_empty_summary(text):
    assert extractive_summary(text) == ""


@pytest.mark.parametrize("text", [DECISION, CASSATION, CONTRACT, LETTER])
def test_a_summary_is_verbatim_and_the_same_each_time(text):
    summary = extractive_summary(text)
    assert_verbatim(summary, text)
    assert summary == extractive_summary(text, terms=read_terms(text))
    assert summary == extractive_summary(text, keywords=keywords_of(text, most=30))


@given(st.text(alphabet="a bé'’-.,;:!?…\n\r\u2028\u0301\u00a0ÉM1[]«»", max_size=300), st.integers(100, 400))
def test_any_text_has_a_verbatim_summary_within_its_bounds(text, most_chars):
    summary = extractive_summary(text, most_chars=most_chars)
    assert_verbatim(summary, text)
    assert len(summary) <= most_chars
    assert bool(summary) == bool(text.strip())


@pytest.mark.parametrize("most_chars", [100, 300, 600])
def test_a_long_sentence_is_cut_behind_a_word(most_chars):
    text = "Le bailleur " + "délivre un congé au preneur " * 100 + "."
    summary = extractive_summary(text, most_chars=most_chars)
    assert summary.endswith(CUT)
    assert summary[:-1].split()[-1] in text.split()
    assert most_chars - 15 <= len(summary) <= most_chars


def test_a_sentence_said_twice_is_taken_once_and_the_corpus_decides_what_is_telling():
    text = (
        "Le bail commercial du preneur est résilié par le bailleur. " * 3
        + "Le congé vaut refus de renouveler le contrat."
    )
    assert extractive_summary(text) == (
        "Le bail commercial du preneur est résilié par le bailleur. […] Le congé vaut refus de renouveler le contrat."
    )
    first, second = "Le demandeur sollicite une rente viagère.", "Le demandeur sollicite une prime annuelle."
    text = f"{first}\n{second}"
    counter = TermCounter()
    for other in [*[first] * 30, *[second] * 3, *["Le bail est nul."] * 30]:
        counter.add(read_terms(other).shown)
    assert extractive_summary(text, counter.freeze(), most_chars=100) == f"{first} {second}"
    by_weight = keywords_of(text, counter.freeze())
    assert next(one.shown for one in by_weight) == "prime"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "grief à l" + "\n" * 300_000,
        "Il fait grief à l'arrêt. Mais attendu que non. " * 5000,
        "'" * 300_000,
    ],
)
def test_hostile_texts_have_summaries_of_bounded_length(text):
    summary = extractive_summary(text)
    assert_verbatim(summary, text)
    assert 0 < len(summary) <= MAX_CHARS


@pytest.mark.shared
def test_the_summaries_of_real_decisions_are_verbatim_and_say_what_was_decided(shared_decisions):
    documents = shared_decisions[::20]
    asked = decided = 0
    for document in documents:
        summary = extractive_summary(document.content)
        assert_verbatim(summary, document.content)
        assert len(summary) <= MAX_CHARS
        assert "Journal officiel" not in summary
        assert "siégeaient" not in summary
        if document.solution == "Inéligibilité":
            asked += 1
            decided += "inéligib" in summary
    assert decided == asked > 50
