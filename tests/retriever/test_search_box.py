"""The search box over a small Library: numbers, references, courts with a time, and what is said of them."""

import pytest

from legal_rag.indexer import IndexConfig, build_index
from legal_rag.law.keys import ParsedQuery
from legal_rag.library import Library
from legal_rag.library.filters import Filters
from legal_rag.library.query_language import parse
from legal_rag.retriever import Retriever
from legal_rag.retriever.search_box import best_sentence, outcome_in_words, relevance, search_typed


def decision(doc_id, text, **columns):
    return {"id": doc_id, "content": text, "juridiction": "Cour de cassation", **columns}


ROWS = [
    decision(
        "SOC18",
        "Sur la faute grave du salarié. Vu l'article 1240 du code civil. La clause est nulle.",
        number="16-86.735", decision_date="2018-03-07", formation="Chambre sociale", solution="Rejet",
    ),
    decision(
        "SOC23",
        "La faute grave du salarié rend impossible son maintien. La cour suit le pourvoi n° 16-86.735.",
        number="22-17.919", decision_date="2023-11-08", formation="Chambre sociale", solution="Cassation",
    ),
    decision(
        "AIX",
        "Le piéton est indemnisé selon la loi du 5 juillet 1985. Le bail est résilié.",
        number="07/01422", decision_date="2008-03-04", juridiction="Cour d'appel d'Aix-en-Provence",
    ),
    decision(
        "CC", "Le compte de campagne est rejeté.",
        number="93-1213", nature="AN", decision_date="1993-12-16", juridiction="Conseil constitutionnel",
    ),
    decision(
        "CCR", "La décision n° 93-1213 est rectifiée.",
        number="93-1213R", nature="AN", decision_date="1994-01-13", juridiction="Conseil constitutionnel",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def retriever(tiny_encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("box")
    build_index(IndexConfig(source=ROWS, n_bits=0, corpus_index=False, index_folder=str(folder)), tiny_encoder)
    return Retriever(Library.open(folder))


def typed(retriever, text, **how):
    return search_typed(retriever, text, mode="bm25", **how)


def ids(results):
    return [hit.doc_id for hit in results.hits]


@pytest.mark.parametrize(
    "text", ["2217919", "22.17.919", "H 22-17.919", "pourvoi n° 22-17.919", "Cass. soc., 8 nov. 2023, n° 22-17.919"]
)
def test_a_number_alone_gives_its_decision_alone(retriever, text):
    results = typed(retriever, text)
    assert ids(results) == ["SOC23"]
    assert results.remarks == ("1 décision.",)


def test_an_id_gives_its_document_alone(retriever):
    assert ids(typed(retriever, "AIX")) == ["AIX"]


def test_a_court_and_a_time_alone_give_all_its_decisions_once(retriever):
    assert ids(typed(retriever, "chambre sociale depuis 2018")) in (["SOC18", "SOC23"], ["SOC23", "SOC18"])


def test_rectifications_follow_the_decision(retriever):
    results = typed(retriever, "93-1213")
    assert ids(results) == ["CC", "CCR"]
    assert results.remarks == ("1 décision et 1 rectification.",)
    assert [hit.rank for hit in results.hits] == [1, 2]
    assert results.hits[0].score > results.hits[1].score


def test_a_number_that_no_document_has_gives_those_that_cite_it_or_nothing(retriever):
    assert typed(retriever, "99-99.999").hits == []
    assert ids(typed(retriever, "16-86.735 OU 93-1213")) == ["SOC18", "CC", "SOC23", "CCR"]
    assert "99-99.999" in typed(retriever, "99-99.999").remarks[0]


def test_a_number_that_is_excluded_is_not_named(retriever):
    with pytest.raises(ValueError, match="il n'y a que des exclusions"):
        typed(retriever, "-pourvoi 16-86.735")
    assert "SOC18" not in ids(typed(retriever, "faute grave -pourvoi n° 16-86.735"))
    excluded = typed(retriever, "16-86.735 -grave")
    assert (excluded.hits, excluded.remarks) == ([], ("Ce qui est nommé est exclu.",))


def test_an_article_or_a_statute_is_required_and_may_be_released(retriever):
    assert ids(typed(retriever, "1240 c. civ.")) == ["SOC18"]
    assert ids(typed(retriever, "faute grave 1240 cc")) == ["SOC18"]
    assert ids(typed(retriever, "loi Badinter")) == ["AIX"]
    assert len(ids(typed(retriever, "faute grave 1240 cc", infer_filters=False))) > 1


def test_a_reference_that_nothing_cites_is_dropped_with_a_word(retriever):
    results = typed(retriever, "faute grave article 9 du code civil")
    assert set(ids(results)) == {"SOC18", "SOC23"}
    assert results.remarks == ("Aucun document ne cite : l'article 9 du code civil.",)


@pytest.mark.parametrize("text", ["L'article 1240 de mon contrat : faute grave", "Article 1240 du règlement : faute"])
def test_an_article_of_no_code_is_not_required(retriever, text):
    results = typed(retriever, text)
    assert set(ids(results)) == {"SOC18", "SOC23"}
    assert results.remarks == ()


def test_a_court_with_a_time_filters_and_says_so(retriever):
    results = typed(retriever, "faute grave chambre sociale en 2018")
    assert ids(results) == ["SOC18"]
    assert results.remarks[0].startswith("Filtre déduit de la demande : chambre sociale, du 1er")
    assert ids(typed(retriever, "cour d'appel d'aix mars 2008")) == ["AIX"]
    assert ids(typed(retriever, "soc. 2008")) == []
    assert set(ids(typed(retriever, "faute grave chambre sociale en 2018", infer_filters=False))) == {"SOC18", "SOC23"}


def test_an_inferred_filter_that_leaves_nothing_is_dropped_with_a_word(retriever):
    results = typed(retriever, "faute grave chambre sociale en 1950")
    assert set(ids(results)) == {"SOC18", "SOC23"}
    assert results.remarks[0].startswith("Filtre déduit retiré, aucune décision n'y répond : chambre sociale")


def test_inferences_that_leave_nothing_together_are_dropped_with_a_word(retriever):
    results = typed(retriever, "faute grave 1240 cc chambre sociale en 2023")
    assert results.hits
    assert results.remarks[0] == "Filtres déduits retirés : ensemble, ils ne laissent rien."


def test_a_phrase_wins_over_a_reference_that_no_document_has_beside_it(retriever):
    results = typed(retriever, '"compte de campagne" 1240 code civil')
    assert ids(results) == ["CC"]
    assert results.remarks[0] == "Filtres déduits retirés : ensemble, ils ne laissent rien."


def test_a_designation_that_filters_nothing_still_ranks(retriever):
    results = typed(retriever, "faute grave chambre sociale en 1950")
    assert results.query.text == "faute grave chambre sociale en 1950"


def test_what_is_named_is_not_shown_beyond_the_filters_given(retriever):
    assert typed(retriever, "22-17.919", filters=Filters(doc_ids=("SOC18",))).hits == []
    assert ids(typed(retriever, "22-17.919", filters=Filters(date_from="2023"))) == ["SOC23"]


def test_a_filter_that_is_given_wins(retriever):
    given = Filters(date_from="2023")
    assert ids(typed(retriever, "faute grave chambre sociale en 2018", filters=given)) == ["SOC23"]


def test_several_designations_count_each(retriever):
    found = typed(retriever, "faute grave : chambre sociale, 2018 ; chambre sociale, 2023")
    assert set(ids(found)) == {"SOC18", "SOC23"}


def test_what_no_document_holds_is_said(retriever):
    results = typed(retriever, '"faute lourde"')
    assert results.hits == []
    assert results.remarks == ('Aucun document ne répond à : "faute lourde".',)


def test_only_exclusions_are_refused(retriever):
    with pytest.raises(ValueError, match="rien à chercher dans '-faute' : il n'y a que des exclusions"):
        typed(retriever, "-faute")


def test_an_excluded_article_is_not_shown(retriever):
    assert "SOC18" not in ids(typed(retriever, "faute grave -article 1240 du code civil"))
    with pytest.raises(ValueError, match="exclusions"):
        typed(retriever, "-article 1240 du code civil")


@pytest.mark.parametrize("text", ['"', '""', "OU"])
def test_operators_of_nothing_are_refused(retriever, text):
    with pytest.raises(ValueError, match=f"rien à chercher dans '{text}'$"):
        typed(retriever, text)


@pytest.mark.parametrize("text", ["", " ", "\ud800"])
def test_what_is_no_text_is_refused(retriever, text):
    with pytest.raises(ValueError, match="question"):
        typed(retriever, text)


@pytest.mark.parametrize(
    "text", ["(" * 900 + "faute", "grave ET " + "NON " * 200 + "faute", f"{'a' * 300}*", '"faute" ' * 100, "x" * 5000]
)
def test_hostile_operators_are_read_in_time_and_without_depth(retriever, text):
    assert len(typed(retriever, text).hits) <= 5


def test_signs_that_are_not_read_are_said(retriever):
    assert typed(retriever, "faute PROX/5 grave").remarks == ("Non lu comme opérateur : « PROX/5 ».",)


def test_relevance_falls_from_100_with_the_score(retriever):
    hits = typed(retriever, "faute grave du salarié").hits
    rated = relevance(hits)
    assert rated[0] == 100
    assert rated == sorted(rated, reverse=True)
    assert relevance([]) == []
    assert relevance([hits[0]._replace(score=-0.175), hits[0]._replace(score=-1.175)]) == [100, 37]


def test_the_best_sentence_holds_the_phrase_and_names_what_matched():
    text = "La cour statue. La rupture de la période d'essai est abusive. L'essai et la rupture suivent une période."
    condition = parse('"période d\'essai"').condition
    excerpt = best_sentence(text, [(0, len(text))], ParsedQuery("rupture période d'essai"), condition)
    assert text[excerpt.start : excerpt.end].strip() == "La rupture de la période d'essai est abusive."
    assert [text[start:end] for start, end in excerpt.matched] == ["rupture", "période d'essai"]


def test_an_outcome_is_the_sources_or_read_in_the_operative_part(retriever):
    assert outcome_in_words(retriever.corpus.document("SOC23")) == "Cassation"
    assert outcome_in_words(retriever.corpus.document("AIX")) == ""
