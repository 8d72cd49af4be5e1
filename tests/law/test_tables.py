"""Every row of the tables of courts, codes, formations, publication and links reads its own example."""

import pytest

from legal_rag.corpus.documents import Document
from legal_rag.law.articles import find_abbreviated_articles
from legal_rag.law.citation import LegalCitation, legal_citation
from legal_rag.law.courts import find_named_courts, level_of, parse_court, words_of_value
from legal_rag.law.scanning import read_table

CITATION, COURTS = read_table("citation.toml"), read_table("courts.toml")


def cite(*, id="X1", **fields) -> LegalCitation:
    own = {name: fields.pop(name) for name in list(fields) if name in Document.__dataclass_fields__}
    return legal_citation(Document(id=id, content="Attendu que…", decision_date="2021-03-03", **own, extra=fields))


def rows(table):
    return pytest.mark.parametrize("row", table, ids=lambda row: str(row["example"]))


@rows(COURTS["courts"])
def test_a_court_is_found_compared_cited_and_ranked(row):
    text, words = row["example"], set(row["key"].split())
    assert (0, len(text)) in find_named_courts(f"{text}, 3 mars 2021")
    assert words <= words_of_value(text)
    assert parse_court(text).types & words
    assert bool(parse_court(text).town) == row.get("town", False)
    if "cite" in row:
        assert cite(juridiction=text).court.startswith(row["cite"])
    for form in (*row.get("short", ()), *filter(None, [row.get("cite")])):
        assert words <= words_of_value(f"{form} Lyon" if row.get("town") else form)
    assert level_of(text, "") == row.get("level", "")


@rows(COURTS["chambers"])
def test_a_chamber_is_compared_and_cited_by_its_name_its_abbreviations_and_its_ecli(row):
    for form in (row["example"], *row["names"], *row.get("short", ()), row["cite"]):
        assert set(row["key"].split()) <= words_of_value(form)
        assert cite(juridiction="Cour de cassation", formation=form).formation == row["cite"]
    ecli = f"ECLI:FR:CCASS:2021:{row['ecli']:0<3}00123"
    assert cite(juridiction="Cour de cassation", ecli=ecli).formation == row["cite"]


@rows(read_table("codes.toml")["codes"])
def test_a_code_is_read_and_cited(row):
    assert {article.code for article in find_abbreviated_articles(row["example"])} == {row["name"]}
    for form in (*row.get("short", ()), row["cite"]):
        assert {article.code for article in find_abbreviated_articles(f"art. 12 {form}")} == {row["name"]}
    assert cite(title=f"{row['name'].capitalize()}, article 12").court == row["cite"]


@rows(read_table("codes.toml")["texts"])
def test_another_text_is_read_by_its_abbreviations(row):
    for text in (row["example"], *(f"art. 12 {form}" for form in row["short"])):
        assert {article.code for article in find_abbreviated_articles(text)} == {row["name"]}
    assert not list(find_abbreviated_articles(f"12 {row['short'][0]}, 12 mars 2019"))


@rows(CITATION["formations"])
def test_a_formation_is_abbreviated(row):
    written, expected = row["example"]
    assert cite(juridiction="Conseil d'État", formation=written).formation == expected


@rows([*CITATION["publication"], *CITATION["publication_codes"]])
def test_publication_is_read_from_words_and_codes(row):
    assert cite(juridiction="Cour de cassation", publication=row["example"]).publication == row["form"]


@rows(CITATION["links"])
def test_a_link_leads_from_an_id_or_a_number(row):
    fields = dict(row["example"])
    url = fields.pop("url")
    assert (row["name"], url) in cite(**fields).links
