"""Facts: the edges that a document's own text gives, and no others."""

import pytest
from support.small_graphs import APPEAL, CASSATION, DECISIONS, EARLIER, QPC, document_of

from legal_rag.corpus.documents import Document
from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.engine import Extractor
from legal_rag.extraction.schemas import RULES
from legal_rag.graph.facts import entity_facts, node_of_document, text_facts

EXTRACTOR = Extractor(ExtractionSettings(model_id=RULES), None)


def facts_of(row, **changes):
    """Return all edges of a decision, as (source, type, target) with the places of each."""
    document = document_of({**row, **changes})
    entities = EXTRACTOR.extract(document.content, document.id).extractions
    found = [*text_facts(document), *entity_facts(document, entities)]
    return {(one.source.key, one.type, one.target.key): one for one in found}


def targets(row, edge_type, **changes):
    return {target for _, kind, target in facts_of(row, **changes) if kind == edge_type}


def with_text(row, text, old=None):
    content = row["content"].replace(old, text) if old else f"{row['content']}\n{text}\n"
    return {**row, "content": content}


def test_the_edges_of_a_decision_of_the_cour_de_cassation_are_those_of_its_text():
    assert set(facts_of(CASSATION)) == {
        ("doc:CASS1", "applies", "article:L1152-1 code du travail"),
        ("doc:CASS1", "cites", "article:2 loi 89-462"),
        ("doc:CASS1", "cites", "article:1240 code civil"),
        ("doc:CASS1", "cites", "statute:loi 89-462"),
        ("doc:CASS1", "cites", "statute:decret 2010-39"),
        ("doc:CASS1", "cites", "pourvoi:16-22168"),
        ("doc:CASS1", "decided_by", "court:cassation sociale"),
        ("doc:CASS1", "overrules", "lower:court:appel lyon 2018-05-12 @CASS1"),
        ("name:societe lever @CASS1", "party_to", "doc:CASS1"),
        ("name:m jean martin @CASS1", "party_to", "doc:CASS1"),
        ("name:mme aline martin @CASS1", "party_to", "doc:CASS1"),
        ("name:scp gatineau fattaccini", "represents", "name:societe lever @CASS1"),
    }


@pytest.mark.parametrize("row", DECISIONS, ids=lambda row: row["id"])
def test_the_place_of_an_edge_holds_what_it_names(row):
    for (_, kind, target), one in facts_of(row).items():
        if one.start >= 0:
            words = row["content"][one.start : one.end]
            assert words.strip() == words != ""
            assert (
                kind in ("overrules", "upholds")
                or not target.startswith("pourvoi")
                or words in "16-22.168 19-99.999 19-99.998"
            )


def test_numbers_that_are_joined_or_of_a_roll_and_what_a_quotation_or_no_code_names_give_no_edge():
    assert targets(CASSATION, "cites") & {"pourvoi:19-12345", "pourvoi:19-12346"} == set()
    assert {one for one in targets(QPC, "cites") if one.startswith(("qpc:", "cc:", "an:"))} == {"an:2009-12"}
    assert not {one for one in targets(APPEAL, "cites") if one.startswith(("pourvoi:04", "pourvoi:03", "rg:"))}
    assert not [key for edge in facts_of(APPEAL) for key in edge if key.endswith("?")]
    assert not [source for source, kind, _ in facts_of(APPEAL) if kind == "party_to" and "tartuffe" in source]


@pytest.mark.parametrize(
    "text",
    [
        "le décret n° 2010-39 du 5 janvier 2010",
        "le jugement n° 2010-39 du tribunal de commerce",
        "la procédure enregistrée sous le n° 2010-39",
        "sa requête n° 2010-39",
        "les saisons 2010-2011",
    ],
)
def test_a_number_that_is_not_said_of_the_conseil_constitutionnel_is_none_of_its_decisions(text):
    row = {**EARLIER, "content": EARLIER["content"].replace("n° 2010-39 QPC du 6 octobre 2010", "précitée")}
    assert not {
        one for one in targets(with_text(row, f"\n\n\nElle vise {text} ."), "cites") if one.startswith(("cc:", "qpc:"))
    }


@pytest.mark.parametrize(
    ("text", "article"),
    [
        ("Vu les articles 1134 et 1147 du code civil, la SARL Duval demande à la cour de confirmer.", "1134"),
        ("Vu l'article 1382 du code civil, M. Duval sollicite la condamnation.", "1382"),
        ("« La cour a dit :\nVu l'article 1382 du code civil,\ncondamne M. Duval »", "1382"),
    ],
)
def test_a_visa_of_a_party_or_of_a_quotation_is_not_applied(text, article):
    assert f"article:{article} code civil" not in targets(with_text(QPC, text), "applies")


@pytest.mark.parametrize(
    ("text", "edge_type", "target"),
    [
        (
            "Vu l'article 700 du code de procédure civile, rejette les demandes ;",
            "applies",
            "article:700 code de procédure civile",
        ),
        ("Vu l'article 700 du code de procédure civile :", "applies", "article:700 code de procédure civile"),
        (
            "Le Conseil constitutionnel l'a jugé dans sa décision n° 2017-686 du 19 janvier 2018.",
            "cites",
            "cc:2017-686",
        ),
        ("Il en résulte, selon l'article L. 1152-2, que le juge statue.", "cites", "article:L1152-2 code du travail"),
        ("Le juge l'a dit (CJUE, 13 mai 2014, Google Spain, C-131/12).", "cites", "cjue:C-131/12"),
        ("Le juge l'a dit (CEDH, 3 octobre 2006, Ben Naceur c. France, n° 63879/00).", "cites", "cedh:63879/00"),
        ("Selon la directive 2003/88/CE, le repos est dû.", "cites", "statute:directive 2003-88"),
    ],
)
def test_a_visa_of_the_court_is_applied_and_a_number_said_to_be_a_decisions_is_cited(text, edge_type, target):
    assert target in targets(with_text(CASSATION, text), edge_type)


def test_spouses_of_one_surname_are_two_and_a_company_of_it_is_a_third():
    text = "et la SARL Martin, domiciliée [Adresse 3],\n\n3°/"
    parties = {
        key
        for key, kind, _ in facts_of(with_text(CASSATION, f"{text} à Mme Aline", "à Mme Aline"))
        if kind == "party_to"
    }
    assert {"name:m jean martin @CASS1", "name:mme aline martin @CASS1"} <= parties
    assert not {"name:martin @CASS1", "name:martin"} & parties


def test_a_witness_with_a_partys_surname_is_none_and_persons_of_two_decisions_are_two():
    row = with_text(CASSATION, "x " * 4000 + "\n\nMme Suzanne Martin, témoin, a entendu la conversation de M. Martin.")
    assert not [source for source, kind, _ in facts_of(row) if kind == "party_to" and "suzanne" in source]
    parties = [key for row in (EARLIER, QPC) for key, kind, _ in facts_of(row) if kind == "party_to" and "paul" in key]
    assert sorted(parties) == ["name:m paul martin @CASS0", "name:m paul martin @QPC1"]


def test_a_decision_that_is_rejected_is_upheld_but_not_of_two_attacked():
    assert targets(EARLIER, "upholds") == {"lower:court:appel paris 2016-06-02 @CASS0"}
    assert targets(EARLIER, "overrules") == set()
    text = (
        "CONSTATE la déchéance du pourvoi dirigé contre l'arrêt de la cour d'appel de Bastia du 2 décembre 2020 ;"
        "\n\nREJETTE le pourvoi formé contre l'arrêt du 15 décembre 2021 ;"
    )
    row = {**EARLIER, "content": f"COUR DE CASSATION\n\n{text}"}
    assert targets(row, "upholds") == set()


@pytest.mark.parametrize("solution", ["Irrecevabilité", "Désistement", "Non-lieu à statuer", "QPC - Renvoi"])
def test_a_decision_that_ends_otherwise_neither_upholds_nor_overrules(solution):
    assert not {kind for _, kind, _ in facts_of(CASSATION, solution=solution)} & {"upholds", "overrules"}


@pytest.mark.parametrize(
    "content",
    [
        "La société Lever rappelle le pourvoi n° 15-10.001 contre l'arrêt rendu le 12 mai 2014 par la cour "
        "d'appel de Paris.",
        "Elle cite : « le pourvoi formé contre l'arrêt rendu le 12 mai 2014 par la cour d'appel de Pau ».",
    ],
)
def test_the_decision_that_another_case_attacked_or_that_is_quoted_is_not_overruled(content):
    assert targets({**CASSATION, "content": content}, "overrules") == set()


@pytest.mark.parametrize(
    ("content", "parties"),
    [
        ("Pourvoi n° 17-31.442. Mme Orsini c/ société Valdor. LA COUR", {"mme orsini @A", "societe valdor @A"}),
        ("9 mai 1986, Grandval c/ Fonds commun des garages.", {"grandval @A", "fonds commun garages"}),
        ("3 juin 2021, n° 498765, Commune de Saint-Aubrac, mentionné aux tables", {"commune saint aubrac @A"}),
        ("Pourvoi n° 17-31.442. M. X... c/ Mme Y...", set()),
        ("n° 498765, à Béziers, le prix est de 3 c/ kg", set()),
    ],
)
def test_a_caption_in_one_line_names_the_parties(content, parties):
    row = {"id": "A", "juridiction": "Cour de cassation", "title": "", "content": content}
    facts = text_facts(document_of(row))
    assert {fact.source.key.removeprefix("name:") for fact in facts if fact.type == "party_to"} == parties


def test_courts_without_a_town_are_not_one_court():
    first, second = (
        facts_of({**APPEAL, "id": name, "juridiction": "Cour d'appel", "title": ""}) for name in ("A", "B")
    )
    courts = [target for found in (first, second) for _, kind, target in found if kind == "decided_by"]
    assert len(set(courts)) == 2


@pytest.mark.parametrize(
    "content", ["", "«", "»" * 50, "Vu " * 2000, "pourvoi contre l'arrêt " * 500, "Pourvois n°\n", "\x00\u202e\ud800"]
)
def test_a_text_of_nothing_gives_no_edge_but_its_court(content):
    row = {**CASSATION, "content": content}
    assert {kind for _, kind, _ in facts_of(row)} <= {"decided_by"}


@pytest.mark.parametrize(
    ("columns", "node_type"),
    [
        ({"id": "A", "juridiction": "Cour de cassation"}, "decision"),
        ({"id": "A", "title": "Cour d'appel de Lyon, 3 mai 2010"}, "decision"),
        ({"id": "A", "content": "TRIBUNAL DE COMMERCE DE PARIS\nJugement du 3 mai 2010."}, "decision"),
        ({"id": "LEGIARTI000046773080", "title": "Code du travail, article L1251-33-1"}, "article"),
        ({"id": "A", "title": "Code du travail, article L1251-33-1", "extra": {"number": "L1251-33-1"}}, "article"),
        ({"id": "A", "title": "Code civil, article 1240", "content": "Tout fait quelconque de l'homme."}, "article"),
        ({"id": "A", "title": "Bail commercial", "extra": {"number": "BC-2019-12"}}, "document"),
    ],
)
def test_a_document_is_a_decision_an_article_or_neither(columns, node_type):
    document = Document(**{"content": "Le preneur paie le loyer.", **columns})
    assert node_of_document(document).type == node_type
