"""What is said around a reference, and which of several documents it is, against small Libraries made up for this."""

import pytest

from legal_rag.citations import verify_text
from legal_rag.extraction import ExtractionSettings
from legal_rag.extraction.schemas import RULES
from legal_rag.indexer import IndexConfig, build_index, extract_library
from legal_rag.library import Library

SOCIAL = """COUR DE CASSATION, CHAMBRE SOCIALE

Arrêt n° 412 FS-B

La société Valdor, dont le siège est 3 rue Verte, 59000 Lille, a formé le pourvoi n° 17-31.442 contre l'arrêt rendu le \
21 juin 2017 par la cour d'appel de Douai (RG n° 15/02468), dans le litige l'opposant à Mme Irma Orsini, défenderesse.

Faits et procédure

1. Selon l'arrêt attaqué (cour d'appel de Douai, 21 juin 2017), la salariée a été engagée par la société Valdor.

Examen du moyen

Énoncé du moyen

2. La salariée fait grief à l'arrêt de rejeter sa demande, alors « que la prime de panier constitue toujours un \
complément de salaire dû pendant la suspension ».

Réponse de la Cour

3. La prime de panier, qui rembourse une dépense exposée, n'entre pas dans l'assiette des dommages, \
sauf clause contraire de la convention collective.

4. Si l'employeur soutient que la prime compensait la pénibilité du poste, une telle circonstance, à la supposer \
établie, est sans incidence sur l'assiette.

PAR CES MOTIFS, la Cour :

REJETTE le pourvoi ;
"""
APPEAL = """COUR D'APPEL DE DOUAI

ARRÊT DU 21 JUIN 2017 - RG n° 15/02468

MOTIFS

La cour retient que l'obligation de reclassement pèse sur l'employeur avant toute rupture du contrat de travail.

PAR CES MOTIFS, la cour confirme le jugement.
"""


def row(doc_id, number, day, court, formation, solution, content):
    names = {"juridiction": court, "formation": formation, "title": f"{court}, {day}, {number}"}
    return {"id": doc_id, "number": number, "decision_date": day, "solution": solution, "content": content, **names}


DECISIONS = [
    row("SOC", "17-31.442", "2019-03-12", "Cour de cassation", "Chambre sociale", "Rejet", SOCIAL),
    row("DOUAI", "15/02468", "2017-06-21", "Cour d'appel de Douai", "", "Confirmation", APPEAL),
]
ARTICLES = [
    {
        "id": f"LEGIARTI00000000000{n}",
        "number": "L9002-1",
        "title": "Code du travail, article L9002-1",
        "valid_from": first,
        "valid_until": last,
        "content": f"Le délai de prévenance du salarié est de {days} jours avant la rupture du contrat.",
    }
    for n, first, last, days in (
        (1, "2008-05-01", "2016-08-10", "quinze"),
        (2, "2016-08-10", None, "huit"),
    )
]
HERE = "Cass. soc., 12 mars 2019, n° 17-31.442"


def indexed(folder, name, rows):
    build_index(IndexConfig(source=rows, index_folder=str(folder), index_name=name, n_bits=0))
    extract_library(Library.open(folder, name), ExtractionSettings(model_id=RULES))
    return Library.open(folder, name)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    return [indexed(folder, name, rows) for name, rows in (("decisions", DECISIONS), ("codes", ARTICLES))]


@pytest.fixture(scope="module")
def judged(libraries):
    """Return the first reference of a kind, or every one."""

    def judge(text, kind, *, every=False):
        references = [one for one in verify_text(text, libraries).references if one.kind == kind]
        return references if every else references[0]

    return judge


def test_each_reference_is_looked_up_in_every_library(libraries):
    found = verify_text(f"{HERE} ; C. trav., art. L. 9002-1 ; CA Douai, 21 juin 2017, n° 15/02468", libraries)
    assert [(one.status, one.source.library) for one in found.references] == [
        ("confirmed", "decisions"),
        ("confirmed", "codes"),
        ("confirmed", "decisions"),
    ]
    assert found.status == 0


@pytest.mark.parametrize(
    ("text", "status", "said_by"),
    [
        ("La Cour juge que « {court} » ({here}).", "confirmed", "la juridiction"),
        ("« {party} » ({here}).", "confirmed", "argument d'une partie"),
        ("Selon le moyen, « {party} » ({here}).", "confirmed", "argument d'une partie"),
        ("La Cour de cassation juge que « {party} » ({here}).", "wrong", "argument d'une partie"),
        ("La Cour de cassation n'a jamais jugé que « {court} » ({here}).", "wrong", "la juridiction"),
        ("La Cour de cassation juge que « {pleaded}, {answered} » ({here}).", "wrong", "la juridiction"),
        ("« {pleaded}, {answered} » ({here}).", "confirmed", "la juridiction"),
        ("La Cour de cassation juge que « {answered} » ({here}).", "confirmed", "la juridiction"),
    ],
)
def test_who_speaks_is_told_and_compared_with_what_the_text_says(judged, text, status, said_by):
    court = "La prime de panier, qui rembourse une dépense exposée, n'entre pas dans l'assiette"
    party = "la prime de panier constitue toujours un complément de salaire dû pendant la suspension"
    pleaded = "la prime compensait la pénibilité du poste"
    answered = "une telle circonstance, à la supposer établie, est sans incidence sur l'assiette"
    said = text.format(court=court, party=party, pleaded=pleaded, answered=answered, here=HERE)
    quotation = judged(said, "quotation")
    assert (quotation.status, quotation.said_by) == (status, said_by)


def test_a_quotation_that_ends_before_an_exception_is_not_confirmed(judged):
    rule = "La prime de panier, qui rembourse une dépense exposée, n'entre pas dans l'assiette des dommages"
    cut = judged(f"« {rule} » ({HERE}).", "quotation")
    assert (cut.status, cut.corrections[0].right[:20]) == ("wrong", ", sauf clause contra")
    assert judged(f"« {rule} […] » ({HERE}).", "quotation").status == "confirmed"


@pytest.mark.parametrize(
    ("point", "status", "right"),
    [("point 3", "confirmed", []), ("point 2", "wrong", ["3"]), ("§ 72", "wrong", ["3"])],
)
def test_words_are_looked_for_in_the_paragraph_that_is_named(judged, point, status, right):
    text = f"{HERE}, {point} : « La prime de panier, qui rembourse une dépense exposée »."
    quotation = judged(text, "quotation")
    assert quotation.status == status
    assert [one.right for one in quotation.corrections if one.what == "point"] == right


@pytest.mark.parametrize(
    ("text", "status", "what"),
    [
        (f"{HERE}, § 72", "wrong", ["point"]),
        (f"{HERE}, qui casse l'arrêt", "wrong", ["outcome"]),
        (f"{HERE} (cassation)", "wrong", ["outcome"]),
        ("| Cass. soc. | 12 mars 2019 | 17-31.442 | Cassation |", "wrong", ["outcome"]),
        ("| Cass. soc. | 12 mars 2019 | 17-31.442 | Rejet |", "confirmed", []),
        ("CA Lille, 4e ch. soc., 21 juin 2017, n° 15/02468", "wrong", ["court"]),
        ("L'arrêt n° 413 FS-B du 12 mars 2019 (n° 17-31.442)", "wrong", ["number"]),
        ("l'arrêt Valdor", "confirmed", []),
        ("l'arrêt Dupuis", "unread", []),
        ("SOC", "", []),
        ("CE, 3 juin 2021, n° 498765", "out_of_scope", []),
        ("CJUE, 14 mars 2017, aff. C-188/15", "out_of_scope", []),
        ("V. le pourvoi n° 17-31.443.", "absent", []),
    ],
)
def test_what_a_text_says_of_a_decision_is_compared(libraries, text, status, what):
    references = [one for one in verify_text(text, libraries).references if one.kind == "decision"]
    assert [one.status for one in references] == [status] * bool(status)
    assert [fix.what for one in references for fix in one.corrections] == what


@pytest.mark.parametrize(
    ("text", "status", "page"),
    [
        ("CJUE, 14 mars 2017, aff. C-188/15", "out_of_scope", "CELEX:62015CJ0188"),
        ("CEDH, Dupont c. France, requête n° 12345/06", "out_of_scope", "%2212345/06%22]%7D"),
        ("Selon la directive (UE) 2019/1158, il", "out_of_scope", "CELEX:32019L1158"),
        ("Selon le règlement (CE) n° 44/2001, il", "out_of_scope", "CELEX:32001R0044"),
        ("Selon l'article 267 TFUE, il", "out_of_scope", "CELEX:12016E267"),
        ("Selon l'article 7 de la directive 2003/88/CE, il", "out_of_scope", "CELEX:32003L0088"),
        ("Selon l'article 8 de la Convention européenne des droits de l'homme, il", "out_of_scope", ""),
    ],
)
def test_a_european_reference_is_out_of_scope_and_has_its_page(libraries, text, status, page):
    references = verify_text(text, libraries).references
    assert {one.status for one in references} == {status}
    assert all(one.link.url.endswith(page) if page else one.link is None for one in references)


@pytest.mark.parametrize(
    ("version", "words", "status", "what"),
    [
        ("", "quinze", "ambiguous", []),
        ("", "huit", "confirmed", []),
        (", dans sa rédaction applicable au 3 mars 2012", "quinze", "confirmed", []),
        (", dans sa rédaction applicable au 3 mars 2012", "huit", "wrong", ["version"]),
        (", dans sa rédaction antérieure à 2008", "huit", "absent", []),
        ("", "trente", "wrong", ["words"]),
    ],
)
def test_the_words_of_an_article_are_those_of_the_version_meant(judged, version, words, status, what):
    text = (
        f"L'article L. 9002-1 du code du travail{version} prévoit : « Le délai de prévenance du salarié est de {words} "
        "jours avant la rupture du contrat »."
    )
    quotation = judged(text, "quotation")
    assert (quotation.status, [fix.what for fix in quotation.corrections]) == (status, what)


@pytest.mark.parametrize(
    ("named", "of"),
    [
        ("l'article L. 9002-1 de la convention collective", "de la convention collective"),
        ("l'article L. 9002-1, alinéa 2, de la convention collective nationale", "de la convention collective"),
        ("l'article L. 9002-1 de l'accord du 3 mars 2012", "de l'accord"),
        ("l'article L. 9002-1 du même accord", "de l'accord"),
        ("les articles L. 9002-1 et L. 9002-2 du règlement intérieur", "du règlement intérieur"),
        ("l'article L. 9002-1 des statuts", "des statuts"),
        ("la convention collective, en son article L. 9002-1,", "de la convention collective"),
        ("l'article L. 9002-1 (convention collective)", "de la convention collective"),
        ("l'article L. 9002-1 de la charte informatique", "de la charte"),
        ("l'article L. 9002-1 de l'ANI du 11 janvier 2008", "de l'ANI"),
        ("l'article L. 9002-1 de leur accord", "de l'accord"),
    ],
)
def test_an_article_of_what_is_no_law_is_out_of_scope(libraries, named, of):
    text = f"L'article L. 9002-1 du code du travail, d'une part, et {named} d'autre part sont invoqués."
    first, *others = verify_text(text, libraries).references
    assert first.status == "confirmed"
    assert {(one.status, one.explanation) for one in others} == {("out_of_scope", f"L'index n'a aucun article {of}.")}


def test_an_article_of_another_text_is_not_guessed_to_be_of_the_code_before(judged):
    text = "L'article L. 9002-1 {} est invoqué."
    named = "Selon l'article L. 9002-1 du code du travail, il faut. "
    for of, status in (("de la note de service", "unread"), ("de ce code", "confirmed"), ("", "confirmed")):
        references = judged(named + text.format(of), "article", every=True)
        assert [one.status for one in references] == ["confirmed", status]


def test_an_article_after_the_name_of_an_agreement_is_not_of_it(judged):
    text = "C. trav., art. L. 9002-1. Un accord a été conclu en 2012, l'article L. 9002-1 étant respecté."
    assert judged(text.partition(". Un")[2], "article").status == "unread"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("LEGIARTI000000000002", "confirmed"),
        ("https://www.legifrance.gouv.fr/codes/article_lc/LEGIARTI000000000001", "confirmed"),
        ("LEGIARTI000000000009", "absent"),
    ],
)
def test_an_id_or_address_names_a_document(judged, text, status):
    assert judged(text, "article").status == status


def test_a_version_named_by_its_id_is_said_to_be_in_force_when_it_was(judged):
    said = judged("LEGIARTI000000000001", "article").explanation
    assert said == "Article de l'index, en vigueur du 1er mai 2008 au 9 août 2016."


def test_an_id_of_a_base_that_no_library_follows_is_unread(judged):
    assert judged("JURITEXT000012345678", "decision").status == "unread"


def test_a_decision_carries_what_it_is_cited_for_and_where_to_read_on(judged):
    reference = judged(f"La prime de panier rembourse une dépense de la salariée ({HERE}).", "decision")
    assert reference.supports.startswith("La prime de panier rembourse")
    assert "rembourse une dépense" in reference.to_read[0].text
    assert reference.checked == ("number", "court", "date")


def test_what_became_of_a_decision_is_said_beside_it(judged):
    reference = judged("CA Douai, 21 juin 2017, n° 15/02468", "decision")
    assert [(later.doc_id, later.why) for later in reference.fate] == [("SOC", "pourvoi rejeté par")]


@pytest.mark.parametrize(
    ("text", "status", "fate"),
    [
        ("CA Rennes, 7 novembre 2019", "out_of_scope", ["cassé par"]),
        ("CA Rennes, 5e ch., 7 novembre 2019, n° 17/00321", "out_of_scope", ["cassé par"]),
        (
            "l'arrêt rendu le 7 novembre 2019 par la cour d'appel de Rennes (RG n° 17/00321)",
            "out_of_scope",
            ["cassé par"],
        ),
        ("CA Rennes, 7 novembre 2019, n° 17/00322", "absent", []),
        ("CA Rennes, 8 novembre 2019", "absent", []),
    ],
)
def test_a_decision_known_by_what_became_of_it_is_not_absent(quashed, text, status, fate):
    (reference,) = verify_text(f"V. en ce sens {text}.", quashed).references
    assert (reference.status, [one.why for one in reference.fate]) == (status, fate)
    assert ("sait ce qu'elle est devenue : cassé par Cass." in reference.explanation) == bool(fate)


def test_words_of_a_decision_known_by_its_fate_alone_are_not_confirmed(quashed):
    said = "La cour retient que l'obligation de reclassement pèse sur le salarié après toute rupture du contrat"
    found = verify_text(f"« {said} » (CA Rennes, 7 novembre 2019).", quashed).references
    assert {one.status for one in found} == {"out_of_scope"}


@pytest.fixture(scope="module")
def quashed(tmp_path_factory):
    below = "l'arrêt rendu le 7 novembre 2019, entre les parties, par la cour d'appel de Rennes"
    content = (
        "COUR DE CASSATION\n\nLa société Valdor a formé le pourvoi n° 20-10.111 contre l'arrêt rendu le 7 novembre "
        "2019 par la cour d'appel de Rennes (RG n° 17/00321).\n\nPAR CES MOTIFS, la Cour :\n\n"
        f"CASSE ET ANNULE, en toutes ses dispositions, {below} ;"
    )
    rows = [
        row("CASS", "20-10.111", "2021-03-10", "Cour de cassation", "Chambre sociale", "Cassation", content),
        row("AUTRE", "18/00001", "2018-06-21", "Cour d'appel de Rennes", "", "Confirmation", APPEAL),
    ]
    return indexed(tmp_path_factory.mktemp("quashed"), "quashed", rows)


def test_a_law_is_compared_with_how_decisions_cite_it(tmp_path):
    says = "Vu la loi n° 85-677 du 5 juillet 1985, la cour statue sur l'accident de la circulation."
    rows = [row(f"D{n}", f"17-31.44{n}", "2019-03-12", "Cour de cassation", "", "Rejet", says) for n in range(3)]
    text = "La loi Badinter. La loi n° 85-677 du 5 juillet 1986. Le décret n° 2099-12 du 3 mars 2099."
    found = verify_text(text, indexed(tmp_path, "laws", rows))
    assert [(one.kind, one.status) for one in found.references] == [
        ("law", "confirmed"),
        ("law", "wrong"),
        ("law", "out_of_scope"),
    ]
