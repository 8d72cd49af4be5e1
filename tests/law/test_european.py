"""European texts and cases, as briefs and decisions cite them: their identifiers and pages, and nothing else."""

import pytest

from legal_rag.corpus import Document
from legal_rag.law.european import celex_of_act, celex_of_case, european_link, european_links
from legal_rag.law.keys import own_keys


@pytest.mark.parametrize(
    ("citation", "celex"),
    [
        # Directives: year/number, whatever the suffix.
        ("directive 2003/88/CE", "32003L0088"),
        ("la directive 93/13/CEE du Conseil du 5 avril 1993", "31993L0013"),
        ("directive n° 89/391", "31989L0391"),
        ("directive (UE) 2019/1158", "32019L1158"),
        ("directive du Conseil 2000/78/CE", "32000L0078"),
        # Regulations until 2014: number/year.
        ("règlement (CE) n° 44/2001", "32001R0044"),
        ("règlement CE 44/2001", "32001R0044"),
        ("règlement (CEE) n° 1408/71", "31971R1408"),
        ("règlement (CE) n° 2201/2003 du Conseil du 27 novembre 2003", "32003R2201"),
        ("Règlement UE n° 1215/2012", "32012R1215"),
        ("règlement n° 561/2006", "32006R0561"),
        ("règlement (CE) n° 2015/2006", "32006R2015"),
        # Since 2015: year/number, some still with "n°".
        ("règlement (UE) 2016/679", "32016R0679"),
        ("règlement (UE) n° 2016/679", "32016R0679"),
        ("règlement (UE) 2015/2012", "32015R2012"),
        ("règlement d'exécution (UE) 2015/2447", "32015R2447"),
        # None of the Union's.
        ("règlement intérieur 12/2003", ""),
        ("règlement n° 3/84 de la commune", ""),
        ("directive 2003", ""),
        ("règlement n° 99-02", ""),
        ("loi n° 85-677", ""),
    ],
)
def test_an_act_has_its_celex_number_by_where_its_year_stands(citation, celex):
    assert celex_of_act(citation) == celex


@pytest.mark.parametrize(
    ("number", "celex"),
    [("C-131/12", "62012CJ0131"), ("T-12/19", "62019TJ0012"), ("F-3/08", "62008FJ0003"), ("26/62", "61962CJ0026")],
)
def test_a_case_has_the_celex_number_of_its_judgment(number, celex):
    assert celex_of_case(number) == celex


def test_an_order_has_another_celex_number_than_a_judgment():
    assert celex_of_case("C-185/12", is_order=True) == "62012CO0185"
    assert european_link("CJUE, ordonnance du 3 mai 2012, C-185/12").url.endswith("CELEX:62012CO0185")


@pytest.mark.parametrize(
    ("citation", "end"),
    [
        ("CJUE, 13 mai 2014, Google Spain, aff. C-131/12", "CELEX:62012CJ0131"),
        ("CJCE, arrêt du 9 mars 1978, Simmenthal, 106/77", "CELEX:61977CJ0106"),
        ("ECLI:EU:C:2014:317", "ECLI:EU:C:2014:317"),
        ("article 267 TFUE", "CELEX:12016E267"),
        ("art. 6, § 1, du traité sur l'Union européenne", "CELEX:12016M006"),
        ("article 47 de la Charte des droits fondamentaux de l'Union européenne", "CELEX:12016P047"),
        ("l'article 6 du RGPD", "CELEX:32016R0679"),
        ("CEDH, 12 mars 2019, n° 12345/16", "fre#%7B%22appno%22:[%2212345/16%22]%7D"),
        ("Dupont et autres c. France [GC], n° 12345/06", "fre#%7B%22appno%22:[%2212345/06%22]%7D"),
        ("Cour européenne des droits de l'homme, requête n° 5493/72", "fre#%7B%22appno%22:[%225493/72%22]%7D"),
    ],
)
def test_a_european_citation_has_its_page(citation, end):
    assert european_link(citation).url.endswith(end)


@pytest.mark.parametrize(
    "text",
    [
        "article 1240 du code civil", "RG n° 12/00123", "pourvoi n° 16-86.735", "M. Dupont c. Mme France, n° 12/00123",
        "la charte de l'environnement, article 7", "article 3 du règlement intérieur", "Constitution, article 66", "",
        "l'article 47 du code de procédure civile et la Charte des droits fondamentaux", "5/6 des voix", "C-3PO",
    ],
)  # fmt: skip
def test_what_is_not_european_has_none(text):
    assert european_link(text) is None


def test_the_links_of_a_text_are_in_its_order_and_do_not_overlap():
    text = "Voir l'article 7 de la directive 2003/88/CE, CJUE, C-37/18 et CEDH, n° 34797/02."
    assert [text[slice(*span)] for span, _ in european_links(text)] == ["directive 2003/88/CE", "C-37/18", "34797/02"]


@pytest.mark.parametrize(
    ("juridiction", "title", "number", "key"),
    [
        ("Cour de justice de l'Union européenne", "Google Spain", "C-131/12", "cjue:C-131/12"),
        ("", "CJUE, 13 mai 2014, aff. C-131/12", "", "cjue:C-131/12"),
        ("Cour européenne des droits de l'homme", "Dupont c. France", "12345/06", "cedh:12345/06"),
    ],
)
def test_a_european_decision_goes_by_its_number(juridiction, title, number, key):
    document = Document(id="D1", content="Texte.", juridiction=juridiction, title=title, extra={"number": number})
    assert key in own_keys(document)


def test_a_french_decision_is_none_that_its_title_cites():
    document = Document(
        id="D1", content="Texte.", juridiction="Cour de cassation", title="Suites de CJUE, aff. C-131/12"
    )
    assert "cjue:C-131/12" not in own_keys(document)
