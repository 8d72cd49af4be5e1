import time
from datetime import date
from itertools import islice

import pytest

from legal_rag.corpus.documents import Document, read_documents
from legal_rag.law import find_dates
from legal_rag.law.citation import LegalCitation, Link, legal_citation, legal_date


def cite(*, id="X1", content="Attendu que le pourvoi est rejeté ;", **fields) -> LegalCitation:
    own = {name: fields.pop(name) for name in list(fields) if name in Document.__dataclass_fields__}
    return legal_citation(Document(id=id, content=content, **own, extra=fields))


def text_of(**fields) -> str:
    return cite(**fields).text.replace("\u00a0", " ")


def of(juridiction, decision_date, number, **more):
    return {"juridiction": juridiction, "decision_date": decision_date, "number": number, **more}


SECOND = {"formation": "Deuxième chambre civile"}
PUBLISHED = "Cour de cassation, civile, Chambre civile 2, 5 octobre 2023, 20-23.523, Publié au bulletin"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            of("Cour de cassation", "2023-10-05", "20-23523", title=PUBLISHED, **SECOND),
            "Cass. 2e civ., 5 oct. 2023, n° 20-23.523, publié",
        ),
        (
            of("Cour de cassation", "2018-03-01", "16-28333, 17-10640", **SECOND),
            "Cass. 2e civ., 1er mars 2018, nos 16-28.333 et 17-10.640",
        ),
        (
            of("Cour de cassation", "2023-10-19", "21-25274, 21-25275, 21-25276", formation="Assemblée plénière"),
            "Cass. ass. plén., 19 oct. 2023, n° 21-25.274 et a.",
        ),
        (
            of("Conseil constitutionnel", "1993-07-20", "93-1213", title="A.N., Haute-Loire (1ère circ.)", nature="AN"),
            "Cons. const., 20 juill. 1993, n° 93-1213 AN",
        ),
        (
            of("Conseil constitutionnel", "2012-10-05", "2012-4563 et autres", ecli="ECLI:FR:CC:2012:2012.4563.AN"),
            "Cons. const., 5 oct. 2012, n° 2012-4563 AN et a.",
        ),
        (
            of("Conseil constitutionnel", "2017-08-07", "2017-4977  QPC /", nature="AN"),
            "Cons. const., 7 août 2017, n° 2017-4977 QPC",
        ),
        (of("COUR D'APPEL DE TOULOUSE", "2021-05-04", "19 / 01234"), "CA Toulouse, 4 mai 2021, n° 19/01234"),
        (of("Tribunal des conflits", "2021-06-07", "C4210"), "T. confl., 7 juin 2021, n° C4210"),
        (of("Conseil d'État", "2021-03-03", 428000), "CE, 3 mars 2021, n° 428000"),
    ],
)
def test_a_decision_is_cited_from_its_columns(fields, expected):
    assert text_of(**fields) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (
            "Conseil d'État, 5ème - 6ème chambres réunies, 03/03/2021, 428000, Inédit au recueil Lebon",
            "CE, 5e et 6e ch. réun., 3 mars 2021, n° 428000, inédit",
        ),
        (
            "Conseil d'Etat, 10 / 9 SSR, du 11 juillet 2001, 221458, mentionné aux tables du recueil Lebon",
            "CE, 10e et 9e ss-sect. réun., 11 juill. 2001, n° 221458, mentionné aux tables",
        ),
        ("CAA de MARSEILLE, 3ème chambre, 19/12/2019, 18MA02345", "CAA Marseille, 3e ch., 19 déc. 2019, n° 18MA02345"),
        ("Cour d'appel d'Agen, CIV.1, du 20 août 2003, 02/118", "CA Agen, 20 août 2003, n° 02/118"),
        (
            "Cour d'appel d'Aix-en-Provence, n° 04/05640 du 16 janvier 2007",
            "CA Aix-en-Provence, 16 janv. 2007, n° 04/05640",
        ),
        (
            "Cour d'appel de Paris, pôle 5 chambre 3, 7 octobre 2020, 18/21096",
            "CA Paris, pôle 5, ch. 3, 7 oct. 2020, n° 18/21096",
        ),
        ("Cass. soc., 9 janv. 2018, n° 16-86.735", "Cass. soc., 9 janv. 2018, n° 16-86.735"),
        (
            "[Décision fictive] Cour de cassation, chambre sociale, 10 mai 2023, 21-24.106",
            "[Décision fictive] Cass. soc., 10 mai 2023, n° 21-24.106",
        ),
        ("Code du travail, article L1237-11", "C. trav., art. L. 1237-11"),
        ("Code du travail, article Annexe I à l'article R4312-1", "C. trav., annexe I à l'article R. 4312-1"),
        ("Code de procédure pénale, article R*53-8", "CPP, art. R.* 53-8"),
        ("Code électoral, article LO128", "C. élect., art. LO 128"),
        ("Code de déontologie, article L. 111-1", "Code de déontologie, art. L. 111-1"),
        ("Article 1240 du code civil", "C. civ., art. 1240"),
    ],
)
def test_a_document_without_columns_is_cited_from_its_title(title, expected):
    assert text_of(title=title) == expected


def test_an_article_named_by_its_columns_and_a_decision_by_its_letterhead_are_cited():
    article = cite(id="LEGIARTI000006419320", title="Article 1240", number="1240", section="Code civil > Livre III")
    assert article.text.replace("\u00a0", " ") == "C. civ., art. 1240"
    assert article.links == (
        Link("Légifrance", "https://www.legifrance.gouv.fr/codes/article_lc/LEGIARTI000006419320"),
    )
    assert text_of(content=LETTERHEAD) == "Cass., 25 nov. 2020, n° 19-60.222, FS-P+B+I"


LETTERHEAD = """SOC.

LG

COUR DE CASSATION
______________________

Audience publique du 25 novembre 2020

Rejet

Arrêt n° 1153 FS-P+B+I

Pourvoi n° B 19-60.222

AU NOM DU PEUPLE FRANÇAIS
"""


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("A.N., Haute-Loire (1ère circ.)", "A.N., Haute-Loire (1ère circ.)"),
        ("Conseil constitutionnel, 14 novembre 2002, 2002-9589 AN, A.N., Sarthe (9e circ.)", "A.N., Sarthe (9e circ.)"),
        ("Cour de cassation, civile, Chambre sociale, 14 novembre 2002, 00-12.345, Publié au bulletin", ""),
        ("Cour d'appel de Besançon, 27 mai 2009, 08/00678, 1ère chambre civile section A", ""),
        ("Cour d'appel d'Agen, CIV.1, du 30 novembre 2006, 1160", ""),
        ("Soc., 14 novembre 2002", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_case_is_what_its_title_says_beside_the_citation(title, expected):
    cited = cite(title=title, juridiction="Conseil constitutionnel", decision_date="2002-11-14")
    assert cited.name == expected
    assert cited.with_name == ", ".join(filter(None, [cited.text, expected]))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"publication": ["b", "r"]}, "publié"),
        ({"content": LETTERHEAD}, "FS-P+B+I"),
        ({"content": LETTERHEAD, "publication": ["b"]}, "publié"),
        ({"title": "Le droit de l'auteur publié"}, ""),
        ({"content": "Le journal a publié l'arrêt n° 1153 de la cour."}, ""),
    ],
)
def test_publication_is_said_only_where_a_column_the_title_or_the_letterhead_says_it(fields, expected):
    cited = cite(juridiction="Cour de cassation", decision_date="2020-11-25", **fields)
    assert cited.publication == expected


def test_the_chamber_is_read_from_the_ecli_where_nothing_else_names_it():
    cited = cite(juridiction="Cour de cassation", decision_date="2023-11-16", ecli="ecli:fr:ccass:2023:c201125")
    assert cited.formation == "2e\u00a0civ."


@pytest.mark.parametrize(
    ("iso", "expected"),
    [
        ("2023-10-05", "5\u00a0oct.\u00a02023"),
        ("2021-05-01", "1er\u00a0mai\u00a02021"),
        ("2023-02-30", ""),
        ("hier", ""),
    ],
)
def test_a_date_is_written_with_the_months_of_law_reviews_and_no_break_spaces(iso, expected):
    assert legal_date(iso) == expected


def test_the_patterns_read_back_the_date_of_a_citation():
    for day in (date(1993, month, 20) for month in range(1, 13)):
        assert [found.value for found in find_dates(legal_date(day.isoformat()))] == [day]


def test_the_page_that_a_column_names_comes_before_those_that_follow_from_the_id():
    given = "https://www.legifrance.gouv.fr/juri/id/JURITEXT000048176166?page=1"
    fields = {"id": "JURITEXT000048176166", "juridiction": "Cour de cassation", "number": "20-23523"}
    assert [link.name for link in cite(**fields, source_url=given).links] == ["Légifrance", "Judilibre"]
    assert cite(**fields, source_url=given).links[0].url == given
    assert cite(url="https://example.org/a").links == (Link("example.org", "https://example.org/a"),)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://a b/c", 'https://a/"x']
)
def test_what_is_no_address_of_a_page_gives_no_link(url):
    assert cite(url=url).links == ()


def test_a_reference_after_a_quotation_leaves_its_publication_out():
    cited = cite(**of("Cour de cassation", "2023-10-05", "20-23523", title=PUBLISHED, **SECOND))
    assert cited.reference == cited.text.removesuffix(", publié")


@pytest.mark.parametrize("id", ["FICTIF0112", "JURITEXT000048176166\njavascript:alert(1)"])
def test_links_follow_from_the_whole_id(id):
    assert cite(id=id, juridiction="Conseil constitutionnel", number="2002-9589", nature="AN").links == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "X1"),
        (
            {"title": "Bail commercial, SCI Les Tilleuls", "decision_date": "2019-02-14"},
            "Bail commercial, SCI Les Tilleuls, 14 févr. 2019",
        ),
        ({"title": "Courriel du 17 avril 2024", "decision_date": "2024-04-17"}, "Courriel du 17 avril 2024"),
        (
            {"title": "CA 2023 de la société Alpha", "decision_date": "2024-01-02"},
            "CA 2023 de la société Alpha, 2 janv. 2024",
        ),
        ({"title": "Note sur la Cour de cassation", "number": "PS-2022-047"}, "Note sur la Cour de cassation"),
        (
            {
                "title": "Lettre",
                "content": "Maître,\nLa Cour de cassation a jugé le 3 mars 2020 (pourvoi n° 19-12.345) que…",
            },
            "Lettre",
        ),
        ({"title": "Loi n° 89-462 du 6 juillet 1989, article 22"}, "Loi n° 89-462 du 6 juillet 1989, article 22"),
        ({"juridiction": "tj75056", "number": "19/01234"}, "X1"),
        ({"juridiction": "Cour de cassation"}, "X1"),
    ],
)
def test_a_document_of_which_no_court_is_known_is_named_by_its_title_or_id(fields, expected):
    assert text_of(**fields) == expected


@pytest.mark.parametrize(
    "head",
    [
        "LA COUR DE CASSATION, a rendu l'arrêt suivant :\nVu l'arrêt du 3 mai 2016 (pourvoi n° 14-80.507) ;",
        "LA COUR DE CASSATION, a rendu l'arrêt suivant :\nAttendu qu'il a formé le pourvoi 14-80.507 ;",
    ],
)
def test_a_number_that_the_text_cites_is_not_taken_for_its_own(head):
    assert cite(juridiction="Cour de cassation", decision_date="2018-01-09", content=head).number == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "<img src=x onerror=alert(1)>\x00\x1b[31m\u202eArrêt\r\nNikon\ud800"},
        {"title": "a" * 1_000_000, "juridiction": "Cour de cassation " * 50_000, "number": "1" * 1_000_000},
        {"content": "COUR DE CASSATION n° 19-12.345\n" * 300_000},
        {"id": "\x00", "content": "."},
        {
            "number": {"a": ["b"]},
            "ecli": 12,
            "publication": [None, {}],
            "juridiction": "[",
            "decision_date": "0000-99-99",
        },
        {"title": "{id.__class__} {0}", "id": "{0}", "juridiction": "Cour de cassation", "number": "{number}"},
    ],
)
def test_hostile_fields_give_one_short_printable_line_in_no_time(fields):
    started = time.process_time()
    cited = cite(**fields)
    assert time.process_time() - started < 0.5
    assert 0 < len(cited.text) <= 400
    assert all(character.isprintable() or character == "\u00a0" for character in cited.text)
    assert cited.links == ()


@pytest.mark.shared
def test_shared_decisions_are_cited_with_court_and_date(shared_decisions):
    cited = [legal_citation(decision) for decision in shared_decisions[::8]]
    assert [one.text for one in cited if not (one.court and one.date)] == []
    assert sum(bool(one.number) for one in cited) >= 0.985 * len(cited)
    assert sum(bool(one.links) for one in cited) >= 0.999 * len(cited)


@pytest.mark.shared
def test_articles_of_the_shared_code_are_cited_by_its_number(shared_data):
    articles = islice(read_documents(shared_data / "code-du-travail.jsonl.gz"), 1_000)
    cited = [legal_citation(article).text for article in articles]
    assert {text[:13] for text in cited} == {"C.\u00a0trav., art", "C.\u00a0trav., ann"}
