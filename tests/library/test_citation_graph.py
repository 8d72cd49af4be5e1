"""Which documents cite which, and what those cited gain in hybrid search."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from legal_rag.base.sqlite import connect_to_read
from legal_rag.indexer import IndexConfig, add_documents, build_index, open_index, remove_documents
from legal_rag.law.keys import ParsedQuery, own_keys
from legal_rag.library import Filters
from legal_rag.library.filters import own_name_condition
from legal_rag.library.library import STORE
from legal_rag.library.store import MAX_HOLDERS, CitationLink, CitationLinks, present_at, present_keys
from legal_rag.retriever import Retriever
from legal_rag.retriever.ranking import propagate_citations

CODE = "Code du travail, article "
ROWS = [
    ("rest", f"{CODE}L1", "Le repos hebdomadaire est donné le dimanche, sauf dérogation prévue à l'article L. 9."),
    ("shops", f"{CODE}L2", "Le repos hebdomadaire peut être donné un autre jour, voir les articles L. 9 et L. 1."),
    ("far", f"{CODE}L9", "Un décret en Conseil d'Etat fixe les conditions d'application."),
    ("same-number", "Code de commerce, article L9", "Les livres sont tenus sans blanc ni altération."),
    ("other-code", "Code civil, article 5", "Il est renvoyé à l'article L. 9 du code de commerce."),
    (
        "ruling",
        "Cass. soc.",
        "La cour vise l'article L. 9 sans dire de quel code, l'article L. 2 du code du travail, et l'article L. 3 du "
        "code de commerce.",
    ),
    ("nobody", "Note", "Les congés payés annuels sont de cinq semaines."),
]
QUESTION = "repos hebdomadaire du dimanche"


@pytest.fixture(scope="module")
def library(index_of, tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    return index_of(write_rows(folder / "rows.jsonl", ROWS), folder)


def write_rows(path, rows):
    lines = (json.dumps({"id": one, "title": title, "content": text}, ensure_ascii=False) for one, title, text in rows)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def keys_of(library):
    """Map document ids to keys, by way of the documents' places."""
    links = library.citation_links()
    places = library.places_in(range(len(library.manifest["shards"])))
    keys = links.documents_at(places)
    return {chunk.doc_id: keys[place] for place, chunk in zip(places, library.chunks_at(places), strict=True)}


def cited(library, *doc_ids):
    keys = keys_of(library)
    ids = {key: doc_id for doc_id, key in keys.items()}
    links = library.citation_links().links_from([keys[one] for one in doc_ids])
    return {(ids[link.citing], ids[link.cited]): (link.name, link.share) for link in links}


def test_an_article_cites_within_its_own_code_and_what_could_be_of_two_leads_nowhere_but_counts(library):
    assert cited(library, "rest", "shops") == {
        ("rest", "far"): ("article:L9", 1.0),
        ("shops", "far"): ("article:L9", 0.5),
        ("shops", "rest"): ("article:L1", 0.5),
    }
    assert cited(library, "other-code") == {("other-code", "same-number"): ("article:L9", 1.0)}
    assert cited(library, "ruling") == {("ruling", "shops"): ("article:L2", pytest.approx(1 / 3))}
    assert cited(library, "nobody", "far") == {}


def test_what_is_cited_in_two_forms_counts_once(tiny_encoder, tmp_path):
    rows = [
        {"id": "twice", "content": "L'article L. 9 du code du travail ; cet article L. 9 renvoie à l'article 5."},
        {"id": "article", "content": "Le repos.", "title": f"{CODE}L9"},
        {"id": "ruling", "content": "Casse.", "number": "16-86.735", "ecli": "ECLI:FR:CCASS:2018:CR03217"},
        {"id": "both", "content": "Pourvoi n° 16-86.735, ECLI:FR:CCASS:2018:CR03217."},
    ]
    config = IndexConfig(source=rows, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    library = open_index(config)
    assert cited(library, "twice") == {("twice", "article"): ("article:L9", 0.5)}
    assert cited(library, "both")["both", "ruling"][1] == 1.0


def test_a_name_that_many_documents_go_by_leads_to_none(tiny_encoder, tmp_path):
    rows = [{"id": str(n), "content": f"Version {n}.", "title": f"{CODE}L9"} for n in range(MAX_HOLDERS + 1)]
    config = IndexConfig(source=[*rows, {"id": "citing", "content": "Voir l'article L. 9 du code du travail."}])
    config = replace(config, index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    assert cited(open_index(config), "citing") == {}
    remove_documents(["0"], tmp_path)
    assert len(cited(open_index(config), "citing")) == MAX_HOLDERS


def test_a_document_s_places_are_those_of_its_chunks(tiny_library):
    links, places = tiny_library.citation_links(), tiny_library.places_in(range(len(tiny_library.manifest["shards"])))
    documents = links.documents_at(places)
    assert list(documents) == places
    found = links.places_of(sorted(set(documents.values())))
    assert [place for some in found.values() for place in some] == places


def test_what_goes_by_a_name_is_found_without_reading_all_that_cites_it(tiny_library):
    """SQLite prefers the primary key, which holds every citation of a name, unless it is told."""
    connection = connect_to_read(tiny_library.path / STORE)
    seen = []
    with closing(connection):
        connection.set_trace_callback(seen.append)
        present = present_at(tiny_library.commit)
        CitationLinks(lambda: connection, present_keys(tiny_library.commit, 2**40)).links_from([1, 2, 3])
        number = own_keys(next(tiny_library.documents()))[0].partition(":")[2]
        assert own_name_condition(ParsedQuery(f"n° {number}"), connection, present)
        connection.set_trace_callback(None)
        asked = [query for query in seen if "names" in query and "own = 0" not in query]
        plans = [" ".join(str(row) for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")) for query in asked]
    assert len(plans) >= 3
    assert all("names_own" in plan and "names USING PRIMARY KEY" not in plan for plan in plans)


def test_links_take_as_many_queries_however_much_is_cited(tiny_library):
    connection = connect_to_read(tiny_library.path / STORE)
    seen = []
    with closing(connection):
        links = CitationLinks(lambda: connection, present_keys(tiny_library.commit, 2**40))
        for documents in ([1], range(1, 100)):
            seen.append([])
            connection.set_trace_callback(seen[-1].append)
            links.links_from(documents)
    assert len(seen[0]) == len(seen[1]) == 3


def test_links_are_those_of_the_commit(tiny_encoder, tmp_path):
    config = IndexConfig(source=write_rows(tmp_path / "first.jsonl", ROWS[:2]), index_folder=str(tmp_path))
    build_index(config, tiny_encoder)
    before = open_index(config)
    add_documents(replace(config, source=write_rows(tmp_path / "later.jsonl", ROWS[2:3])), tiny_encoder)
    added = before.reload()
    remove_documents(["rest"], tmp_path)
    removed = before.reload()
    assert list(cited(before, "shops")) == [("shops", "rest")]
    assert sorted(cited(added, "shops")) == [("shops", "far"), ("shops", "rest")]
    assert list(cited(removed, "shops")) == [("shops", "far")]


def test_the_best_give_what_they_have_above_the_last_to_what_they_cite_and_nothing_to_what_everybody_cites():
    scores = {1: 3.0, 2: 2.0, 3: 0.5}
    links = [
        CitationLink(1, 7, "a", 1.0),
        CitationLink(2, 7, "a", 0.5),
        CitationLink(2, 8, "b", 0.5),
        CitationLink(3, 9, "c", 1.0),
    ]
    assert propagate_citations(scores, links, {"a": 0.0, "b": 0.0, "c": 0.0}, 3) == {
        7: pytest.approx(2.5 + 0.45),  # 1.5 squared, of 2.5, is 0.9
        8: pytest.approx(0.45),
    }
    scores = {1: 3.0, 2: 2.0, 3: 0.0}
    links = [CitationLink(1, 7, "a", 0.5), CitationLink(1, 8, "b", 0.5), CitationLink(2, 7, "a", 1.0)]
    total = 3.0 + 4 / 3
    assert propagate_citations(scores, links, {"a": 1.0, "b": 0.1}, 3) == {8: pytest.approx(1.5 - 0.1 * total)}
    assert propagate_citations(scores, links, {"a": 0.0, "b": 0.0}, 2) == {7: 0.5, 8: 0.5}  # of 2, nothing
    assert propagate_citations(scores, links, {"a": 0.0, "b": 0.0}, 1) == {}


def test_only_what_is_cited_gains_though_it_shares_no_word(library, tiny_encoder, monkeypatch):
    words = Retriever(library, tiny_encoder).search(QUESTION, 20, mode="bm25")
    assert "far" not in {hit.doc_id for hit in words}
    linked = {hit.doc_id: hit.score for hit in Retriever(library, tiny_encoder).search(QUESTION, 20)}
    monkeypatch.setattr(CitationLinks, "links_from", lambda *_: [])
    alone = {hit.doc_id: hit.score for hit in Retriever(library, tiny_encoder).search(QUESTION, 20)}
    assert linked.keys() == alone.keys()
    gained = {doc_id: linked[doc_id] - alone[doc_id] for doc_id in linked}
    assert gained["far"] > gained["rest"] >= 0
    assert [gained[one] for one in ("same-number", "other-code", "ruling", "nobody")] == [0, 0, 0, 0]


def test_what_is_cited_stays_within_the_filter(library, tiny_encoder):
    retriever = Retriever(library, tiny_encoder)
    wanted = Filters(doc_ids=["rest", "shops", "nobody"])
    assert {hit.doc_id for hit in retriever.search(QUESTION, 20, filters=wanted)} == {"rest", "shops", "nobody"}
