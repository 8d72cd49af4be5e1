"""Terms of entities, and the documents that facts in a question or a filter lead to."""

from contextlib import closing

import pytest

from legal_rag.corpus import Document
from legal_rag.extraction import ExtractionResult, ExtractionStore, lookup
from legal_rag.extraction.lookup import (
    MAX_SHARING,
    discriminative_documents,
    documents_with_entities,
    facts_in,
    terms_of,
    terms_of_all,
    wanted_entity,
)
from legal_rag.extraction.store import Recipe
from legal_rag.indexer import IndexConfig, add_documents
from legal_rag.library import Filters
from legal_rag.retriever import Retriever

RECIPE = Recipe("jurisprudence", "1", "rules", 1, "", 2000)


def entity(extraction_class, text, start=0, **attributes):
    return {
        "extraction_class": extraction_class,
        "extraction_text": text,
        "char_start": start,
        "char_end": start + len(text),
        "attributes": attributes,
    }


def hold(store, document, *facts):
    """Hold (class, text) facts of a document, whose text has them."""
    entities = [entity(name, text, document.content.find(text)) for name, text in facts]
    result = ExtractionResult(doc_name=document.id, extractions=entities, model_id="rules")
    terms = terms_of_all(entities, document.decision_date)
    store.hold_many([(document.id, document.content_hash, document.content, RECIPE, result, terms)])


def filled(path, facts, others=400):
    """Return a store of documents with facts, by id, and of others without any."""
    store = ExtractionStore(path)
    for doc_id, some in facts.items():
        hold(store, Document(id=doc_id, content=f"{doc_id} {some}"), *some)
    for number in range(others):
        hold(store, Document(id=f"autre-{number}", content=f"Autre {number}."))
    return store


@pytest.mark.parametrize(
    ("extraction_class", "text", "terms"),
    [
        ("date", "12 mai 1993", ["date:1993-05-12"]),
        ("date", "DOUZE MAI MIL NEUF CENT QUATRE-VINGT-TREIZE", ["date:1993-05-12"]),
        ("montant", "1 000 francs", ["amount:1000 FRF"]),
        ("montant", "1.000 F", ["amount:1000 FRF"]),
        ("montant", "mille francs", ["amount:1000 FRF"]),
        ("montant", "1 000,50 €", ["amount:1000.5 EUR"]),
        ("monetary_amount", "10 000 euros", ["amount:10000 EUR"]),
        ("partie", "la société Lever", ["partie:lever"]),
        ("partie", "M. Jean-Pierre ŒUVRARD", ["partie:jean pierre oeuvrard", "partie:oeuvrard"]),
        ("partie", "Mme Marie Dupont", ["partie:marie dupont", "partie:dupont"]),
        ("partie", "société par actions simplifiée L'Été", ["partie:ete"]),
        ("partie", "M. X...", []),
        ("partie", "la société", []),
        ("avocat", "SCP Waquet, Farge et Hazan", ["avocat:waquet farge hazan"]),
        ("article_cite", "article 1382 du code civil", ["article:1382 code civil", "article:1382"]),
        ("numero", "n° 92-12.345", ["pourvoi:92-12345"]),
        ("numero", "92-12.345", ["pourvoi:92-12345"]),
        ("texte_vise", "la loi du 6 juillet 1989", ["texte_vise:loi 6 juillet 1989"]),
        ("juridiction", "Cour d'appel de Nîmes", ["juridiction:cour appel nimes"]),
        ("solution", "REJETTE", ["solution:rejette"]),
        ("ma classe", "Été", ["ma classe:ete"]),
        ("moyen", "attendu que " * 50, []),
        ("partie", "", []),
        ("date", "?!", []),
    ],
)
def test_two_ways_of_writing_one_fact_give_one_term(extraction_class, text, terms):
    assert [term for term in terms_of(entity(extraction_class, text)) if "-mot:" not in term] == terms


def test_of_a_name_each_word_is_a_term_and_of_an_article_the_code_that_its_attribute_names():
    assert terms_of(entity("partie", "Ville de Lyon")) == ["partie:ville lyon", "partie-mot:ville", "partie-mot:lyon"]
    assert terms_of(entity("article_cite", "1382", texte="code civil")) == ["article:1382 code civil", "article:1382"]


def test_the_day_of_a_decision_is_a_term_without_a_class():
    assert terms_of_all([entity("date", "3 mai 2001")], "1993-05-12") == [
        ("date:1993-05-12", ""),
        ("date:2001-05-03", "date"),
    ]


@pytest.mark.parametrize(
    ("condition", "extraction_class", "terms"),
    [
        ("partie=Société Lever", "partie", ("partie-mot:lever",)),
        (" Partie = lever FRÈRES ", "partie", ("partie-mot:lever", "partie-mot:freres")),
        ("montant=1 000 francs", "montant", ("amount:1000 FRF",)),
        ("date=12 mai 1993", "date", ("date:1993-05-12",)),
        ("Numéro=92-12.345", "numero", ("pourvoi:92-12345",)),
        ("article_cite=L. 1152-1 du code du travail", "article_cite", ("article:L1152-1 code du travail",)),
        ("article_cite=article 1382", "article_cite", ("article:1382",)),
        ("LeaveRule=25 jours", "LeaveRule", ("LeaveRule:25 jours",)),
        ("mienne=a=b", "mienne", ("mienne:b",)),
    ],
)
def test_a_condition_is_read_as_entities_are(condition, extraction_class, terms):
    found = wanted_entity(condition)
    assert (found.extraction_class, found.terms) == (extraction_class, terms)
    assert Filters(entity=condition).entity == (condition,)
    assert Filters(entity=[condition, "montant=3 F"]).entity == (condition, "montant=3 F")


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        *(
            (condition, "not an entity: .*expected CLASS=VALUE")
            for condition in ("", "partie", "=Lever", "partie=", " = ")
        ),
        ("date=mai 1993", "names no day"),
        ("partie=la société", "names nothing"),
        ("solution=?!", "names nothing"),
    ],
)
def test_a_condition_that_is_none_or_says_nothing_is_refused(condition, problem):
    with pytest.raises(ValueError, match=problem):
        Filters(entity=(condition,))


FACTS = {
    "lever": [("partie", "la société Lever"), ("date", "12 mai 1993"), ("montant", "1 000 francs")],
    "dupont": [("partie", "M. Jean DUPONT"), ("date", "12 mai 1993"), ("montant", "45 300 euros")],
    "ville": [("partie", "Ville de Lyon"), ("montant", "1 000 francs"), ("article_cite", "article 1382 du code civil")],
    "general": [("partie", "Société Générale"), ("partie", "ministère public"), ("partie", "M. Petit")],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with closing(filled(tmp_path_factory.mktemp("store") / "entities.sqlite", FACTS)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "doc_ids"),
    [
        ("Que doit la société Lever ?", ["lever"]),
        ("Que doit la SOCIÉTÉ LÉVER depuis mil neuf cent ?", ["lever"]),
        ("Quelle somme Jean Dupont réclame-t-il ?", ["dupont"]),
        ("Quelle somme Mme Dupont réclame-t-elle ?", ["dupont"]),
        ("Que vaut l'indemnité de 45.300 € ?", ["dupont"]),
        ("Que s'est-il passé le douze mai mil neuf cent quatre-vingt-treize ?", ["dupont", "lever"]),
        ("Pourquoi mille francs le 12/05/1993 ?", ["lever"]),
        ("La ville de Lyon doit-elle mille francs ?", ["ville"]),
        ("Selon l'article 1382 du code civil, pourquoi 1 000 F ?", ["ville"]),
    ],
)
def test_facts_in_a_question_tell_documents_apart(store, question, doc_ids):
    assert discriminative_documents(question, store) == doc_ids


@pytest.mark.parametrize(
    "question",
    [
        "Quelles sont les conditions de la responsabilité du fait des choses ?",
        "Que prévoit l'article 1382 du code civil ?",
        "La cour d'appel de Lyon a-t-elle bien jugé ?",
        "Que peut lever le ministère public ?",
        "Un petit commerçant peut-il saisir le juge ?",
        "L'Assemblée Générale peut-elle être annulée ?",
        "Que prévoit la loi du 12 mai 1993 ?",
        "Que prévoit la loi n° 93-121 du 12 mai 1993 ?",
        "Que s'est-il passé le 13 mai 1993 ?",
        "",
        "M. ?",
        "' OR 1=1 --",
        "\0",
    ],
)
def test_an_ordinary_question_tells_none_apart(store, question):
    assert discriminative_documents(question, store) == []


def test_more_facts_and_rarer_ones_count_more(store):
    question = "Le 12 mai 1993, la société Lever devait-elle 1 000 francs ?"
    facts = {fact.term: fact.doc_ids for fact in facts_in(question, store)}
    assert list(facts) == ["amount:1000 FRF", "date:1993-05-12", "partie:lever"]
    assert all("lever" in doc_ids for doc_ids in facts.values())
    assert frozenset.union(*facts.values()) == {"lever", "dupont", "ville"}
    assert discriminative_documents(question, store) == ["lever"]


def test_a_document_with_less_than_half_of_what_is_named_is_no_find(store):
    assert discriminative_documents("Le 1er mai 1990, le 2 mai 1990 ou le 3 mai 1990 pour 45 300 euros ?", store) == []


def test_what_leads_to_many_documents_is_no_name(tmp_path, monkeypatch):
    facts = {f"d{number}": [("partie", "la société Lever")] for number in range(8)}
    with closing(filled(tmp_path / "e.sqlite", facts, others=400)) as store:
        assert discriminative_documents("Que doit la société Lever ?", store) == []
        assert [len(fact.doc_ids) for fact in facts_in("Que doit la société Lever ?", store)] == [8]
        monkeypatch.setattr(lookup, "MAX_SHARING", 8)
        assert facts_in("Que doit la société Lever ?", store)
        monkeypatch.setattr(lookup, "MAX_SHARING", 7)
        assert facts_in("Que doit la société Lever ?", store) == []


def test_a_long_question_asks_for_few_terms(store, monkeypatch):
    asked = []
    having = type(store).doc_ids_having
    monkeypatch.setattr(
        type(store), "doc_ids_having", lambda self, *args, **more: asked.append(args) or having(self, *args, **more)
    )
    facts_in("Monsieur Untel De Quelque Part " * 40, store)
    assert len(asked) < 1000
    assert all(args[1] == MAX_SHARING + 1 for args in asked)


@pytest.mark.parametrize(
    ("conditions", "doc_ids"),
    [
        (["partie=Lever"], ["lever"]),
        (["partie=Lyon"], ["ville"]),
        (["partie=DUPONT Jean"], ["dupont"]),
        (["montant=mille francs"], ["lever", "ville"]),
        (["date=1993-05-12", "montant=1 000 F"], ["lever"]),
        (["date=1993-05-12", "partie=Lyon"], []),
        (["avocat=Lever"], []),
        (["monetary_amount=1 000 F"], []),
    ],
)
def test_conditions_on_entities_hold_together_and_for_their_class(store, conditions, doc_ids):
    assert documents_with_entities([wanted_entity(one) for one in conditions], store) == doc_ids


ROWS = [
    {"id": "lever", "content": "Le 12 mai 1993, la société Lever devait payer une somme. Le bail est résilié."},
    {"id": "autre", "content": "Que doit payer une société ? Une société doit payer la somme qu'elle doit payer."},
    *({"id": f"bail-{n}", "content": f"Le bail numéro {n} est résilié par le preneur."} for n in range(12)),
]


@pytest.fixture
def opened(index_of, tmp_path):
    return index_of(ROWS, tmp_path)


def extract_by_hand(library):
    with closing(ExtractionStore(library.path / "entities.sqlite")) as store:
        for document in library.documents():
            is_it = document.id == "lever"
            hold(store, document, *([("partie", "la société Lever"), ("date", "12 mai 1993")] if is_it else []))


def passing(library, filters):
    places = [(shard, int(place)) for shard, some in enumerate(library.positions(filters)) for place in some]
    return {chunk.doc_id for chunk in library.chunks_at(places)}


def test_a_library_finds_entities_once_they_are_extracted_though_it_was_opened_before(opened):
    assert opened.entity_store is None
    assert opened.entities_of("lever") is None
    assert opened.positions_named("Que doit la société Lever ?").facts is None
    with pytest.raises(ValueError, match="no entities in .*legal-rag extract"):
        opened.positions(Filters(entity=("partie=Lever",)))
    extract_by_hand(opened)
    assert {one["extraction_text"] for one in opened.entities_of("lever")} == {"12 mai 1993", "la société Lever"}
    assert opened.entities_of("autre") == []
    assert passing(opened, Filters(entity=("partie=Lever", "date=12 mai 1993"))) == {"lever"}
    assert passing(opened, Filters(entity=("partie=Lever",), doc_ids=["autre"])) == set()
    with pytest.raises(LookupError, match="no document 'INCONNU'"):
        opened.entities_of("INCONNU")


@pytest.mark.parametrize("mode", ["colbert", "bm25", "hybrid", "bm25+rerank"])
def test_a_document_that_holds_the_facts_comes_first_and_nothing_else_is_disturbed(opened, tiny_encoder, mode):
    named, ordinary = "Que doit payer la société Lever ?", "Que doit payer une société ?"
    before = {one: Retriever(opened, tiny_encoder).search(one, 20, mode=mode) for one in (named, ordinary)}
    extract_by_hand(opened)
    retriever = Retriever(opened, tiny_encoder)
    assert retriever.search(ordinary, 20, mode=mode) == before[ordinary]
    hits = retriever.search(named, 20, mode=mode)
    assert hits[0].doc_id == "lever"
    others = [hit.doc_id for hit in before[named] if hit.doc_id != "lever"]
    assert [hit.doc_id for hit in hits if hit.doc_id != "lever"] == others
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_filter_bounds_what_facts_lift(opened, tiny_encoder):
    extract_by_hand(opened)
    hits = Retriever(opened, tiny_encoder).search("la société Lever", 20, filters=Filters(doc_ids=["autre", "bail-1"]))
    assert {hit.doc_id for hit in hits} <= {"autre", "bail-1"}


def test_entities_of_a_text_that_has_changed_are_not_used(opened, tiny_encoder, tmp_path):
    extract_by_hand(opened)
    changed = [{"id": "lever", "content": "Un tout autre texte."}]
    add_documents(IndexConfig(source=changed, index_folder=str(tmp_path)), tiny_encoder)
    library = opened.reload()
    assert library.entities_of("lever") is None
    assert passing(library, Filters(entity=("partie=Lever",))) == set()
    hits = Retriever(library, tiny_encoder).search("Que doit payer la société Lever ?", 5)
    assert hits[0].doc_id != "lever"
