"""What users write in a filter, and the documents that pass it."""

import random
from datetime import date, datetime

import pytest

from legal_rag.corpus import Document
from legal_rag.indexer import IndexConfig, build_index, open_index
from legal_rag.law.courts import words_of_value
from legal_rag.law.keys import document_keys, own_keys
from legal_rag.library import Filters
from legal_rag.library.filters import fitting
from legal_rag.retriever import Retriever

COURTS = [
    ("Cour de cassation", "Chambre sociale"),
    ("Cour de cassation", "Deuxième chambre civile"),
    ("Cour de cassation", "CHAMBRE_CIVILE_2"),
    ("Cour de cassation", "Chambre commerciale financière et économique"),
    ("Cour d'appel de Lyon", ""),
    ("Cour administrative d'appel de Lyon", ""),
    ("Conseil constitutionnel", ""),
    ("Conseil d'État", ""),
]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ("Cass. soc.", [0]),
        ("chambre sociale", [0]),
        ("SOCIALE", [0]),
        ("Cass.", [0, 1, 2, 3]),
        ("cour de cassation", [0, 1, 2, 3]),
        ("2e civ.", [1, 2]),
        ("Civ. 2", [1, 2]),
        ("com.", [3]),
        ("CA Lyon", [4]),
        ("cour d’appel", [4]),
        ("CAA", [5]),
        ("Cons. const.", [6]),
        ("CE", [7]),
        ("tribunal de commerce", []),
    ],
)
def test_courts_are_understood_as_they_are_usually_written(wanted, numbers):
    assert fitting(wanted, COURTS) == [COURTS[number] for number in numbers]


def test_days_are_read_in_all_the_usual_ways():
    assert Filters(date_from="8 novembre 2023", date_to="2023-12-01") == Filters(
        date_from=date(2023, 11, 8), date_to="01/12/2023"
    )
    assert Filters(date_from="2015").date_from == date(2015, 1, 1)
    assert Filters(date_to="2015").date_to == date(2015, 12, 31)


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        *(
            ({"date_to": day}, "date_to is no day")
            for day in ("", "hier", "31/02/2020", "du 1er mai 2020 au 2 mai 2020", "0000")
        ),
        *(
            ({name: value}, f"{name} .* names none")
            for name in ("juridiction", "formation", "solution")
            for value in ("", "cour", " - ")
        ),
        ({"article": "le licenciement"}, "not an article: 'le licenciement'"),
        ({"article": "articles 1240 et 1241 du code civil"}, "several articles: 'articles 1240 et 1241 du code civil'"),
    ],
)
def test_what_is_no_day_no_article_or_names_nothing_is_refused(filters, problem):
    with pytest.raises(ValueError, match=problem):
        Filters(**filters)


def test_filters_are_true_where_any_is_set():
    assert not Filters()
    assert Filters(doc_ids=[])
    assert Filters(entity=())


@pytest.fixture(scope="module")
def library(tiny_library):
    return tiny_library


def passing(library, filters):
    """Return the ids of the documents that pass, found through the index."""
    places = [(shard, int(place)) for shard, some in enumerate(library.positions(filters)) for place in some]
    return {chunk.doc_id for chunk in library.chunks_at(places)}


def test_each_court_chamber_and_outcome_of_the_corpus_is_found_by_its_own_name(library):
    documents = list(library.documents())
    for name in ("juridiction", "formation", "solution"):
        for value in {getattr(document, name) for document in documents} - {""}:
            words = words_of_value(value)
            expected = {
                one.id
                for one in documents
                if words <= words_of_value(one.solution if name == "solution" else f"{one.juridiction} {one.formation}")
            }
            assert passing(library, Filters(**{name: value})) == expected
            assert expected


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("rejetées", "Rejet"), ("REJETTE", "Rejet"), ("casse et annule", "Cassation"), ("infirmation", "Infirme")],
)
def test_an_outcome_in_another_form_of_the_word_is_every_one_of_its_kind(library, asked, meant):
    documents = list(library.documents())
    expected = {one.id for one in documents if one.solution.startswith(meant)}
    found = passing(library, Filters(solution=asked))
    assert expected
    assert expected <= found
    assert all(one.solution.startswith((meant, "Réforme")) for one in documents if one.id in found)


@pytest.mark.parametrize("asked", ["relaxe", "cassation totale", "pas de cassation", "cassation ou rejet"])
def test_an_outcome_that_no_decision_has_finds_none(library, asked):
    assert passing(library, Filters(solution=asked)) == set()


def test_days_bound_the_decision_s_own_date_both_included(library):
    documents = [one for one in library.documents() if one.decision_date]
    days = sorted(one.decision_date for one in documents)
    low, high = days[len(days) // 4], days[len(days) // 2]
    expected = {one.id for one in documents if low <= one.decision_date <= high}
    assert passing(library, Filters(date_from=low, date_to=high)) == expected
    assert passing(library, Filters(date_to=days[-1])) == {one.id for one in documents}


def test_an_article_is_searched_in_what_is_cited_and_a_number_in_what_is_one_s_own(library):
    documents = list(library.documents())
    cited = {one.id: {term for term in document_keys(one) if term.startswith("article:")} for one in documents}
    terms = sorted({term for some in cited.values() for term in some if " " not in term})
    for term in random.Random(3).sample(terms, 20):
        value = term.removeprefix("article:")
        expected = {doc_id for doc_id, some in cited.items() if term in some}
        assert passing(library, Filters(article=f"article {value}")) == expected
    for document in documents:
        for term in own_keys(document):
            kind, _, value = term.partition(":")
            if kind == "pourvoi":
                assert document.id in passing(library, Filters(number=value))


def test_conditions_hold_together(library):
    one = next(library.documents())
    both = Filters(juridiction=one.juridiction, date_from=one.decision_date, date_to=one.decision_date)
    expected = {
        other.id
        for other in library.documents()
        if other.juridiction == one.juridiction and other.decision_date == one.decision_date
    }
    assert passing(library, both) == expected
    assert passing(library, Filters(juridiction=one.juridiction, doc_ids=["INCONNU"])) == set()


@pytest.mark.parametrize("mode", ["colbert", "bm25", "hybrid", "bm25+rerank"])
def test_a_filtered_search_returns_nothing_outside_and_loses_nothing_inside(library, tiny_encoder, mode):
    retriever = Retriever(library, tiny_encoder)
    inside = {one.id for one in library.documents() if one.juridiction == next(library.documents()).juridiction}
    filters = Filters(juridiction=next(library.documents()).juridiction)
    hits = retriever.search("le la décision du juge et de la loi", 10**6, mode=mode, filters=filters)
    assert {hit.doc_id for hit in hits} <= inside
    if mode in ("colbert", "hybrid"):
        assert {hit.doc_id for hit in hits} == inside


@pytest.mark.slow
def test_a_library_of_many_shards_filters_each(tiny_encoder, sample_file, tmp_path):
    config = IndexConfig(source=sample_file, shard_chunks=15, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    library = open_index(config)
    some = [*library][::3]
    assert passing(library, Filters(doc_ids=some)) == set(some)


@pytest.mark.parametrize(
    ("wanted", "value", "fits"),
    [
        ("9ème chambre", "9e chambre", True),
        ("4e chambre", "CHAMBRE_4", True),
        ("chambres réunies", "Chambre réunies", True),
        ("TGI Lyon", "Tribunal de grande instance de Lyon", True),
        ("TGI Lyon", "Tribunal d'instance de Lyon", False),
        ("10e chambre A", "10e chambre B", False),
        ("tribunal judiciaire à Paris", "Tribunal judiciaire de Paris", True),
        ("Non-lieu à statuer", "Non lieu à statuer", True),
    ],
)
def test_a_value_fits_where_it_has_all_the_words(wanted, value, fits):
    assert bool(fitting(wanted, [(value,)])) == fits


def test_dates_as_columns_hold_them(tiny_encoder, tmp_path):
    days = {"mots": "8 novembre 2015", "sans": "inconnue", "an": "2015", "jour": "2015-12-31", "après": "2016-01-01"}
    rows = [{"id": one, "content": "Le texte.", "decision_date": day} for one, day in days.items()]
    build_index(IndexConfig(source=rows, index_folder=str(tmp_path)), tiny_encoder)
    library = open_index(IndexConfig(index_folder=str(tmp_path)))
    assert passing(library, Filters(date_from="2015", date_to="2015")) == {"mots", "an", "jour"}
    assert passing(library, Filters(date_from=datetime(2015, 12, 31, 9, 30))) == {"jour", "après"}
    assert passing(library, Filters(date_to="2015-11-08")) == {"mots", "an"}


def test_laws_in_a_column_are_cited_too(tiny_encoder, tmp_path):
    rows = [{"id": "a", "content": "Le texte.", "applied_laws": ["Article L. 1152-1 du code du travail"]}]
    build_index(IndexConfig(source=rows, index_folder=str(tmp_path)), tiny_encoder)
    library = open_index(IndexConfig(index_folder=str(tmp_path)))
    assert passing(library, Filters(article="L1152-1 du code du travail")) == {"a"}


def test_a_decision_keeps_its_own_number_and_cites_what_its_official_summary_cites():
    title = "Loi organique portant application de l'article 68 de la Constitution"
    document = Document(id="a", content="", title=title, extra={"number": "2014-703", "nature": "DC"})
    assert own_keys(document) == ["dc:2014-703", "cc:2014-703"]
    article = Document(id="b", content="", title="Code du travail, article L1152-1", extra={"number": "L1152-1"})
    assert "article:L1152-1" in own_keys(article)
    summed_up = Document(id="a", content="Sur le moyen unique.", summary="Article L. 1152-1 du code du travail.")
    assert "article:L1152-1 code du travail" in document_keys(summed_up)
