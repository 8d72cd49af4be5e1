"""What a text is about: its words and expressions, counted, weighed against a corpus, shown as the corpus writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legal_rag.corpus_index.keywords import (
    SAMPLE_SIZE,
    Keyword,
    TermCounter,
    TermStatistics,
    index_terms,
    is_sampled,
    keywords_of,
    query_terms,
    read_terms,
    stem,
)

LEASE = "Le bail commercial est résilié. Le preneur quitte le bail commercial et perd le droit au renouvellement."
CORPUS = [
    LEASE,
    "Le bailleur délivre un congé. Le congé vaut refus de renouvellement, le bailleur doit une indemnité d'éviction.",
    "Le salarié conteste son licenciement. Le licenciement est sans cause réelle, le salarié perçoit une indemnité.",
    "Le compte de campagne est déposé. Le compte de campagne retrace une dépense du candidat.",
    "Les comptes de campagne retracent les dépenses. Un candidat tient les comptes de campagne.",
]


def statistics_of(texts):
    counter = TermCounter()
    for text in texts:
        counter.add(read_terms(text).shown)
    return counter.freeze()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("élection élections", "election"),
        ("électoral électorale électorales électoraux", "electoral"),
        ("contentieux contentieuse contentieuses", "contentieus"),
        ("législatif législative législatives", "legislatif"),
        ("financier financière financières", "financier"),
        ("salarié salariée salariés salariées", "salarie"),
        ("travail travaux", "travail"),
        ("bail baux", "bail"),
        ("bureau bureaux", "bureau"),
        ("directeur directrice directrices", "directeur"),
        ("professionnel professionnelle professionnels", "professionnel"),
        ("procès", "proce"),
        ("dol", "dol"),
    ],
)
def test_forms_of_one_word_have_one_stem_and_words_that_the_law_tells_apart_their_own(words, expected):
    assert {stem(word) for word in words.split()} == {expected}
    apart = "délai délit commune communication communiste marché marche organe organique don donnée".split()
    assert len({stem(word) for word in apart}) == 11


def test_a_term_is_sampled_in_all_its_forms_and_an_expression_is_two_words_that_come_together_again():
    terms = read_terms("Les élections eurent lieu. L’élection est annulée ; l'élection suivante aussi.")
    assert terms.counts["election"] == 3
    assert terms.shown["election"] == "élections"
    terms = read_terms(CORPUS[4])
    assert terms.counts["compt campagn"] == 2
    assert terms.shown["compt campagn"] == "comptes de campagne"
    assert "campagn retrac" not in terms.counts  # it stands there once only


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n\t ",
        "Le la les, et de ce que qui dont où.",
        "12 345,67 — 52-12 ; 2e ; 1er",
        "Considérant qu'aux termes de l'article L. 52-12, alinéa 2, et de l'article R. 42 : attendu que",
        "M. X... contre Mme Y..., M. [P] [E], domicilié [Adresse 2], [...]",
        "Jean DUPONT, Marie-Claude Le Goff, Paris, SAS Martin & Fils",
        "le 3 mars 1993, deux mois après le onzième janvier",
        "jean.dupont@exemple.fr https://exemple.fr/election?x=1 pourvoi_n°_12",
        "vingt-neuvième celui-ci peut-être",
    ],
)
def test_what_is_no_key_term_is_not_counted(text):
    assert read_terms(text).counts == {}


def test_names_are_no_terms_but_acronyms_behind_an_article_and_a_text_all_in_capitals_are():
    terms = read_terms("L'URSSAF poursuit M. DURAND. La TVA est due à l’URSSAF, selon Mme LE CORRONC et LA POSTE.")
    assert terms.counts == {"urssaf": 2, "poursuit": 1, "tva": 1}
    assert terms.shown["urssaf"] == "URSSAF"
    assert read_terms("LE BAIL COMMERCIAL EST RESILIE. LE BAIL COMMERCIAL").counts["bail commercial"] == 2
    assert read_terms("le conseil de prud’hommes").shown == {"prudhomm": "prud'hommes"}


@pytest.mark.parametrize(
    "text",
    [
        "Le bail, commercial. Le bail ; commercial",
        "le bail\ncommercial, le bail\ncommercial",
        "le bail (commercial) le bail : commercial",
        "le bail que commercial, le bail dont commercial",
        "le bail de la à commercial, le bail de la à commercial",
    ],
)
def test_no_expression_goes_over_a_sign_a_line_or_other_words(text):
    assert [term for term in read_terms(text).counts if " " in term] == []


def test_hyphens_make_one_term_of_two_words_and_accents_and_ligatures_count_composed_or_not():
    terms = read_terms("Le procès-verbal et le procès verbal. Un procès verbal. La clause de non-concurrence.")
    assert terms.counts["proce verbal"] == 3
    assert terms.counts["non-concurrenc"] == 1
    assert terms.shown["proce verbal"] == "procès-verbal"
    composed = read_terms("La manœuvre du député.").counts
    assert composed == {"manoeuvr": 1, "depute": 1}
    assert read_terms("La manoeuvre du de\u0301pute\u0301.").counts == composed
    assert read_terms("La man\u00adœuvre du député.").counts == composed


@pytest.mark.parametrize("apostrophe", "'’‘ʼ")
def test_elided_articles_are_left_off_whatever_their_apostrophe(apostrophe):
    text = f"l{apostrophe}indemnité d{apostrophe}éviction, l{apostrophe}indemnité d{apostrophe}éviction"
    terms = read_terms(text)
    assert terms.counts == {"indemnite": 2, "eviction": 2, "indemnite eviction": 2}
    assert terms.shown["indemnite eviction"] == "indemnité d'éviction"


@given(st.text(alphabet="abé' ’-.,;\n\r\u2028\u0301\u00a0ÉM1[]"))
def test_any_text_has_as_many_lines_of_words_as_lines(text):
    assert len(read_terms(text).lines) == len(text.split("\n"))


def test_a_word_of_more_letters_than_any_has_is_no_term():
    assert read_terms("le " + "a" * 1_000_000 + " du bail").counts == {"bail": 1}
    read = read_terms("mot " + " ".join(f"{'x' * n}bail" for n in range(1, 251)))
    assert len(read.counts) == 29


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Élections", [("election",)]),
        ("ÉLECTIONS", [("election",)]),
        ("comptes de campagne", [("compt", "compte"), ("campagn", "campagne")]),
        ("salaries licencies", [("salari", "salarie"), ("licenci", "licencie")]),
        ("inéligibilité", [("ineligibilite",)]),
        ("ineligibilite", [("ineligibilit", "ineligibilite")]),
        ("l'article de la loi", []),
        ("12 345", []),
        ("", []),
    ],
)
def test_what_is_asked_for_is_stemmed_word_by_word(asked, expected):
    assert query_terms(asked) == expected


def test_document_frequencies_count_documents_and_a_term_is_shown_as_most_write_it():
    statistics = statistics_of(CORPUS)
    assert statistics.n_documents == 5
    assert statistics.frequencies["campagn"] == 2
    assert statistics.frequencies["indemnite"] == 2
    assert "bail" not in statistics.frequencies  # one document is too few to be kept
    texts = ["le compte", "les comptes", "les comptes", "le délit", "les délits"]
    assert statistics_of(texts).shown == {"compt": "comptes", "delit": "délit"}  # of two as frequent, the shorter


def test_a_large_corpus_is_sampled_by_a_sample_of_its_documents():
    ids = [f"JURITEXT{number:012d}" for number in range(40_000)]
    counted = [doc_id for doc_id in ids if is_sampled(doc_id, 10 * SAMPLE_SIZE)]
    assert len(counted) == pytest.approx(4000, rel=0.1)
    assert set(counted) >= {doc_id for doc_id in ids if is_sampled(doc_id, 20 * SAMPLE_SIZE)}
    assert all(is_sampled(doc_id, SAMPLE_SIZE) for doc_id in ids)


def test_keywords_tell_a_text_from_the_others_and_unknown_words_are_some_only_if_repeated():
    statistics = statistics_of([*CORPUS] * 5)
    assert [one.shown for one in keywords_of(LEASE, statistics, 3)] == ["bail commercial", "droit", "preneur"]
    assert [one.shown for one in keywords_of(CORPUS[4], statistics, 1)] == ["compte de campagne"]
    statistics = statistics_of(CORPUS * 5)
    found = keywords_of("Le bail du transpalette. Un transpalette, et une faute de frape. Le bail.", statistics)
    assert [one.term for one in found] == ["transpalet", "bail"]


def test_without_statistics_a_text_s_own_frequent_terms_are_its_keywords_in_other_languages_too():
    assert keywords_of(LEASE, most=1) == [Keyword("bail commercial", "bail commercial", pytest.approx(1.524, abs=0.01))]
    text = "The Supplier shall indemnify the Customer. The liability of the Supplier and the liability cap survive."
    assert [one.shown for one in keywords_of(text, most=1)] == ["liability"]


def test_what_most_documents_hold_is_no_keyword_however_often_a_text_says_it():
    texts = [f"La candidature, le vote. La candidature, le vote. Une {word}." for word in ["urne", "liste"] * 20]
    assert [one.shown for one in keywords_of(texts[0], statistics_of(texts))] == ["urne"]
    boilerplate = "Les opérations électorales, les opérations électorales."
    texts = [*[boilerplate] * 15, *["les opérations", "les électorales"] * 10, *["une urne"] * 5]
    assert keywords_of(boilerplate, statistics_of(texts[:-15])) == []


def test_a_noun_comes_first_and_a_word_of_an_expression_alone_is_no_keyword_beside_it():
    found = [one.term for one in keywords_of("Le bail commercial et le bail commercial. Le commercial.")]
    assert "bail commercial" in found
    assert "bail" not in found
    assert [one.shown for one in keywords_of("Il réclame, exigeant, la provision.")] == [
        "provision", "exigeant", "réclame",
    ]  # fmt: skip


def test_a_text_without_terms_has_no_keywords_and_a_corpus_of_one_document_has_some():
    assert [keywords_of(text, statistics_of(CORPUS)) for text in ("", "Le la les.", "12 13 14")] == [[], [], []]
    assert [one.shown for one in keywords_of(LEASE, statistics_of([LEASE]), 1)] == ["bail commercial"]


def test_statistics_need_only_know_the_terms_asked_of_them():
    class Known(dict):
        def __iter__(self):
            raise AssertionError("read as a whole")

    whole = statistics_of(CORPUS * 5)
    lazy = TermStatistics(whole.n_documents, Known(whole.frequencies), Known(whole.shown))
    assert keywords_of(LEASE, lazy) == keywords_of(LEASE, whole)


def test_a_text_is_found_by_its_keywords_and_by_the_words_they_hold():
    keywords = [Keyword("claus non-concurrenc", "clause de non-concurrence", 2.0), Keyword("claus", "clause", 3.0)]
    assert index_terms(keywords) == {
        "claus non-concurrenc": 2.0, "claus": 3.0, "non-concurrenc": 2.0, "concurrenc": 2.0,
    }  # fmt: skip


@pytest.mark.shared
def test_real_decisions_have_the_keywords_that_a_lawyer_would_give_them(shared_decisions):
    documents = shared_decisions
    some = [document for at, document in enumerate(documents) if at % 10 == 0 or document.id in EXPECTED]
    statistics = statistics_of(document.content for document in some)
    for document in some:
        found = {one.shown for one in keywords_of(document.content, statistics)}
        assert EXPECTED.get(document.id, set()) <= found, document.id
        assert not found & {"article", "considérant", "alinéa", "mars", "arrêt", "M", "X"}


EXPECTED = {
    "JURITEXT000048211099": {"clause résolutoire", "commandement de payer", "bailleur", "locataire"},
    "JURITEXT000048242199": {"vices cachés", "vendeur"},
    "CONSTEXT000017939297": {"sincérité", "manoeuvre", "dénomination"},
    "JURITEXT000006942802": {"tramway", "accident", "blessures"},
}
