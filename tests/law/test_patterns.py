"""Names of decisions and articles, and dates, as French legal texts write them."""

import time
from datetime import date
from decimal import Decimal

import pytest

from legal_rag.law import (
    article_value,
    decision_identifiers,
    find_amounts,
    find_article_citations,
    find_dates,
    find_durations,
    find_identifiers,
    find_texts,
)
from legal_rag.law.articles import find_abbreviated_articles


def found(text):
    return [(one.kind, one.value) for one in find_identifiers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pourvoi n° 16-86.735", [("pourvoi", "16-86735")]),
        ("Pourvoi n° X 22-18.784", [("pourvoi", "22-18784")]),
        ("16-86735 et 16\u201186.736", [("pourvoi", "16-86735"), ("pourvoi", "16-86736")]),
        *(
            (text, [("pourvoi", "16-86735")])  # whose check letter is no article's
            for text in ("n° R 16-86.735", "R 16-86735", "pourvois n° L 16-86.735", "avis n° 16-86.735")
        ),
        ("19-60.222, 19-60.223", [("pourvoi", "19-60222"), ("pourvoi", "19-60223")]),
        ("QPC 2016-561", [("qpc", "2016-561")]),
        ("décision n° 2016-561 QPC du 1er avril", [("qpc", "2016-561")]),
        ("la décision 2016-741 DC", [("dc", "2016-741")]),
        ("AN 2001-2589", [("an", "2001-2589")]),
        ("A.N., n° 97-2285", [("an", "1997-2285")]),
        ("n° 58-21 A.N.", [("an", "1958-21")]),
        ("n° 2007-3742/3947 AN", [("an", "2007-3742/3947"), ("an", "2007-3742"), ("an", "2007-3947")]),
        ("enregistrée sous le n° 97-2285", [("number", "1997-2285")]),
        ("n° RG 15/00452", [("rg", "15/452")]),
        ("RG : 04/123", [("rg", "04/123")]),
        ("R.G. N° 2015/00452", [("rg", "15/452")]),
        ("Rôle No 99/12345", [("rg", "99/12345")]),
        ("l'affaire 15/00452", [("rg", "15/452")]),
        ("n° 85/1274", [("rg", "85/1274")]),
        ("la décision n° 441873", [("number", "441873")]),
        ("20LY01234", [("number", "20LY01234")]),
        ("ECLI:FR:CCASS:2023:SO02020.", [("ecli", "ECLI:FR:CCASS:2023:SO02020")]),
        ("ecli:fr:cc:1997:97.2285.an", [("ecli", "ECLI:FR:CC:1997:97.2285.AN")]),
        *((f"{sign} 498765", [("number", "498765")]) for sign in ("nº", "N°", "no", "№", "n˚", "numéro", "req.")),
        *((f"{sign} 08/01234", [("rg", "08/1234")]) for sign in ("nº", "N°", "no", "№", "n˚", "RG n°", "n° RG :")),
        *((f"n° 17{dash}31.442", [("pourvoi", "17-31442")]) for dash in "-\u00ad\u2010\u2011\u2013\u2014\u2212"),
        *(
            (text, [("pourvoi", "17-31442")])
            for text in ("n° S 17-31.442", "17-31 442", "17-\n31.442", "17- 31.442", "pourvoi n° 17.31.442")
        ),
        ("Cass. soc., 12 mars 2019, n° 17 31 442", [("pourvoi", "17-31442")]),
        ("Soc. 12 mars 2019, n° 17.31442", [("pourvoi", "17-31442")]),
        ("n° 17-31.442 et 17-31.443", [("pourvoi", "17-31442"), ("pourvoi", "17-31443")]),
        ("n° 498765 et 498 766", [("number", "498765"), ("number", "498766")]),
        ("CE, 3 juin 2021, n° 498 765", [("number", "498765")]),
        ("Conseil d'État, 5e et 6e chambres réunies, 03/06/2021, 498765", [("number", "498765")]),
        ("TA Rennes, 3 mai 2023, n° 2217919", [("number", "2217919")]),
        ("TA de Rennes, 3 mai 2023, 2217919", [("number", "2217919")]),
        ("TA Paris, 3 mai 2023, n° 2217919/3-1", [("number", "2217919")]),
        ("TA Paris, 3 mai 2023, n° 22-17919", [("number", "2217919")]),
        ("T. com. Paris, 3 mai 2021, n° 2020012345", [("number", "2020012345")]),
        ("RG n° 2020012345", [("number", "2020012345")]),
        *((f"CAA Lyon, n° {text}", [("number", "19LY04321")]) for text in ("19LY04321", "19 LY 04321", "19.LY.04321")),
        *(
            (f"{court}, 8 févr. 2021, Mme Lemazou, {number}", [("conflits", "4987")])
            for court in ("T. confl.", "TC", "TdC", "Trib. confl.", "Tribunal des conflits", "TRIBUNAL DES CONFLITS")
            for number in ("n° C4987", "n° C 4987", "n° C-4987", "n° 4987", "C4987", "4987", "n° 04987")
        ),
        ("Tribunal des conflits, 16 mai 1891, n° C00087", [("conflits", "87")]),
        ("Tribunal des conflits, 16 mai 1891, 00087", [("conflits", "87")]),
        ("décision n° 93-1213 AN", [("an", "1993-1213")]),
        ("décision n° 93-1213R AN", [("an", "1993-1213R")]),
        ("décision n° 93-1213R1 AN", [("an", "1993-1213R1")]),
        ("n° 2002-2620/2716R AN", [("an", "2002-2620/2716R"), ("an", "2002-2620R"), ("an", "2002-2716R")]),
        ("n° 58-36i AN", [("an", "1958-36I")]),
        ("décision n° 2015-258 L du 3 mai", [("l", "2015-258")]),
    ],
)
def test_numbers_of_decisions_have_one_form(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize("court", ["TJ Rennes", "CA Lyon, 4e ch. soc.", "Trib. jud. Rennes", "CPH Lyon", "Paris"])
@pytest.mark.parametrize("number", ["n° 26-00038", "RG 26-00038", "n° RG 26/00038", "26-00038", "RG n° 26‑00038"])
def test_a_number_with_a_dash_after_a_court_of_first_instance_or_of_appeal_is_a_roll_number(court, number):
    assert found(f"{court}, 6 juin 2026, {number}") == [("rg", "26/38")]


def test_a_roll_number_may_follow_the_parties():
    assert found("CA Lyon, 6 juin 2026, Soc. du Moulin et autres c/ M. Orsini, n° 26-00038") == [("rg", "26/38")]


@pytest.mark.parametrize(
    "text",
    [
        "Cass. soc., 3 mai 2010, n° 09-12345",
        "CA Lyon, 3 mai 2009, cassé par Cass. soc., 3 mai 2010, n° 09-12345",
        "l'arrêt de la cour d'appel de Lyon, pourvoi n° 09-12345",
        "Cour d'appel de Lyon, 3 mai 2010, 09-12.345",
        "CA Lyon, 3 mai 2009 ; n° 09-12345",
        "la CA Lyon retient 09-12345",
    ],
)
def test_a_pourvoi_stays_one_near_a_court_of_appeal(text):
    assert found(text) == [("pourvoi", "09-12345")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "loi n° 85-677 du 5 juillet 1985",
        "loi nº 85-677 du 5 juillet 1985",
        *("pièce 12-04.500", "pièce n° 12-04.500", "pièce adverse n° 12-04.500", "pièces n° 12-04.500 et 12-04.501"),
        *("facture n° 201912", "facture nº 2019-123", "chèque n° 1234567", "contrat n° 17-31.442", "PV n° 2019/12345"),
        *("Réf. client : 06-12-34-56-78", "tél. 06-12-34-56-78", "tél : 04-72 102 030", "RCS Paris n° 552 100 554"),
        *("IBAN FR76 3000 4000 0312 3456 7890 143", "RCS DE PARIS sous le numéro 310 499", "n° 17 31 442", "150 000"),
        *(
            "le 13-11-2026",
            "le 2021-06-03",
            "le 12-05-98",
            "la marque verbale française « Valdor » n° 3149429",
            "CE, 2021, 150 000 €",
        ),
        *("Tribunal des conflits, 3 mai 2021", "TC Paris, 3 mai 2021, n° 2020012345", "Compte n° 123456"),
        "n° 2020012345",
        "l'ordonnance n° 58-1067 du 7 novembre 1958",
        "les ordonnances nos 58-1067 et 59-224",
        "le décret no 2004-1234",
        "la directive 85/374/CEE",
        "les années 2019-2020",
        "le 12/05/1998",
        "facture 2016-561-3",
        "téléphone 01-23-45-67-89",
    ],
)
def test_numbers_of_statutes_and_of_other_things_are_no_decisions(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l'article L. 1152-1 du code du travail", [("L1152-1", "code du travail")]),
        ("articles L. 1152-1, L1152-2 et R. 1153-1-2 du code du travail",
         [("L1152-1", "code du travail"), ("L1152-2", "code du travail"), ("R1153-1-2", "code du travail")]),
        ("1240 du code civil", [("1240", "code civil")]),
        ("Code du travail, article L1237-11", [("L1237-11", "code du travail")]),
        ("Code civil - Art. 1240 et 1241", [("1240", "code civil"), ("1241", "code civil")]),
        ("code du travail L3141-3", [("L3141-3", "code du travail")]),
        ("code du travail, articles L. 1 et L. 2 du code civil", [("L1", "code civil"), ("L2", "code civil")]),
        ("le code du travail, article 5 de la loi", [("5", "")]),
        ("code du travail, article 23-10 d’une loi", [("23-10", "")]),
        ("code du travail, article 5, alinéa 2, de la loi", [("5", "")]),
        ("Le code du travail a 110 ans, le code civil a 2 siècles", []),
        ("l'article L. 1152-1 a été abrogé ; l'article 1240 y renvoie", [("L1152-1", ""), ("1240", "")]),
        ("article 16 B du code civil", [("16 B", "code civil")]),
        ("article 700 du code de procédure civile et aux dépens", [("700", "code de procédure civile")]),
        ("L. 52-12", [("L52-12", "")]),
        ("L1152-1", [("L1152-1", "")]),
        ("l'article L.O. 128 du code électoral", [("LO128", "code électoral")]),
        ("article 1er de la loi du 6 juillet 1989", [("1", "")]),
        ("l’article L. 441-1 du code de l’entrée et du séjour des étrangers et du droit d’asile, relatif",
         [("L441-1", "code de l'entrée et du séjour des étrangers et du droit d'asile")]),
        ("les articles 6 et 13 de la Convention", [("6", ""), ("13", "")]),
        ("un article de presse", []),
        ("A 13", []),
        ("article L. 1152-1 du code précité", [("L1152-1", "")]),
        ("article L. 1152-1 du code prévoit que", [("L1152-1", "")]),
        ("L.1232-1du code du travail", [("L1232-1", "code du travail")]),
        ("l'article1240 du code civil", [("1240", "code civil")]),
        ("art 1240 du code civil", [("1240", "code civil")]),
        ("L. 1232-1, L. 1232-2 et R. 1232-3 du code du travail",
         [("L1232-1", "code du travail"), ("L1232-2", "code du travail"), ("R1232-3", "code du travail")]),
        ("articles L. 1232-1 à L. 1232-5 du code du travail",
         [("L1232-1", "code du travail"), ("L1232-5", "code du travail")]),
        ("articles 620, alinéa 1er, et 625 du code de procédure civile",
         [("620", "code de procédure civile"), ("625", "code de procédure civile")]),
        ("articles L. 411-31, II, 1° et 3°, L. 411-35 du code rural",
         [("L411-31", "code rural et de la pêche maritime"), ("L411-35", "code rural et de la pêche maritime")]),
        ("l'article L. 2315-94, 2°, du code du travail", [("L2315-94", "code du travail")]),
        ("art. 1240 et s. du code civil", [("1240", "code civil")]),
        ("articles R. 4127-3 et suivants du code de la santé publique", [("R4127-3", "code de la santé publique")]),
        ("article L. 122-14-4 de l'ancien code du travail", [("L122-14-4", "code du travail")]),
        ("article 700 du nouveau code de procédure civile", [("700", "code de procédure civile")]),
        ("article 9 (ancien) du code civil", [("9", "code civil")]),
        ("l'article 1240 du code civil et l'article 9 du même code", [("1240", "code civil"), ("9", "code civil")]),
        ("l'article 1240 du code civil, et l'article 9 dudit code", [("1240", "code civil"), ("9", "code civil")]),
        ("l'article 9 du même code", [("9", "")]),
        ("l'article 2 alinéa 3 du code civil", [("2", "code civil")]),
        ("le livre 2 du code civil, § 5 du code civil", []),
        ("l'article 39, 1, 5° du code général des impôts", [("39", "code général des impôts")]),
        ("l'article 1382 ancien (devenu 1240) du code civil", [("1382", "code civil"), ("1240", "code civil")]),
        ("L. 1152-1 du Code du travail", [("L1152-1", "code du travail")]),
        ("ARTICLE L. 111-1 DU CODE DE LA SECURITE SOCIALE", [("L111-1", "code de la sécurité sociale")]),
        ("l'article L. 311-3 bis A du code du travail", [("L311-3 BIS A", "code du travail")]),
        ("article 1649 quater B quinquies du code général des impôts",
         [("1649 QUATER B QUINQUIES", "code général des impôts")]),
        ("l'annexe 1-2 du code de l'action sociale et des familles",
         [("ANNEXE 1-2", "code de l'action sociale et des familles")]),
        ("Code de l'action sociale et des familles, article Annexe 1-2",
         [("ANNEXE 1-2", "code de l'action sociale et des familles")]),
        ("une annexe 1 au contrat", []),
    ],
)  # fmt: skip
def test_articles_have_one_form_each_with_its_code(text, expected):
    assert [(one.value, one.code) for one in find_identifiers(text) if one.kind == "article"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("art. L. 111-3 COJ, L. 113-4 CJPM, L. 57 LPF, 414-1 C. civ., 700 CPC et 706-3 CPP",
         [("L111-3", "code de l'organisation judiciaire"), ("L113-4", "code de la justice pénale des mineurs"),
          ("L57", "livre des procédures fiscales"), ("414-1", "code civil"), ("700", "code de procédure civile"),
          ("706-3", "code de procédure pénale")]),
        ("1240 c. civ.", [("1240", "code civil")]),
        ("C. civ. art. 1240", [("1240", "code civil")]),
        ("Code civ., art. 1240 et 1241", [("1240", "code civil"), ("1241", "code civil")]),
        ("art. 1240 C. civ., art. 700 CPC", [("1240", "code civil"), ("700", "code de procédure civile")]),
        ("CPC, art. 700 ; C. civ., art. 1240", [("700", "code de procédure civile"), ("1240", "code civil")]),
        ("art. 1240 et s. C. civ.", [("1240", "code civil")]),
        ("art. 1240 anc. C. civ.", [("1240", "code civil")]),
        ("art. 700, al. 2, CPC", [("700", "code de procédure civile")]),
        ("art. L. 121-1, I, 2° C. consom.", [("L121-1", "code de la consommation")]),
        ("C. trav. L. 1237-11", [("L1237-11", "code du travail")]),
        ("art L. 1237-11 C trav", [("L1237-11", "code du travail")]),
        ("art. L 1232-1 et L 1232-2 C.trav.", [("L1232-1", "code du travail"), ("L1232-2", "code du travail")]),
        ("L. 32 C. postes et R. 1 C. transp.",
         [("L32", "code des postes et des communications électroniques"), ("R1", "code des transports")]),
        ("art. 311-1 CP", [("311-1", "code pénal")]),
        ("art. 6 § 1 CEDH, art. 66 de la Constitution ; DDHC, art. 16",
         [("6", "convention européenne des droits de l'homme"), ("66", "constitution"),
          ("16", "déclaration des droits de l'homme et du citoyen")]),
        ("n° 17-31.442, C. trav., art. L. 1237-11", [("L1237-11", "code du travail")]),
        ("311-1 CP", []),
        *((text, []) for text in ("le 12 mai 2010 CGI", "en 2019 CPI", "p. 39 CGI", "2010, CGI", "12 cpc")),
    ],
)  # fmt: skip
def test_an_article_is_read_before_and_after_an_abbreviated_code(text, expected):
    assert [(one.value, one.code) for one in find_abbreviated_articles(text)] == expected


# Codes in force, and former ones that briefs cite.
CODES = """
code civil; code de commerce; code de déontologie des architectes; code de déontologie médicale
code de justice administrative; code de justice militaire; code de l'action sociale et des familles; code de l'artisanat
code de l'aviation civile; code de l'éducation; code de l'énergie; code de l'environnement; code de l'urbanisme
code de l'entrée et du séjour des étrangers et du droit d'asile
code de l'expropriation pour cause d'utilité publique
code de l'organisation judiciaire; code de la commande publique; code de la consommation; code de la défense
code de la construction et de l'habitation; code de la justice pénale des mineurs; code de la mutualité
code de la Légion d'honneur, de la Médaille militaire et de l'ordre national du Mérite; code de la nationalité française
code de la propriété intellectuelle; code de la santé publique; code de la sécurité intérieure; code des assurances
code de la sécurité sociale; code de la voirie routière; code de procédure civile; code de procédure pénale
code des communes; code des communes de la Nouvelle-Calédonie; code des douanes; code des débits de boissons
code des douanes de Mayotte; code des impositions sur les biens et services; code des juridictions financières
code des instruments monétaires et des médailles; code des pensions civiles et militaires de retraite; code du sport
code des pensions de retraite des marins français du commerce, de pêche ou de plaisance; code des marchés publics
code des pensions militaires d'invalidité et des victimes de guerre; code des ports maritimes; code des transports
code des postes et des communications électroniques; code des procédures civiles d'exécution; code du tourisme
code des relations entre le public et l'administration; code disciplinaire et pénal de la marine marchande
code du cinéma et de l'image animée; code du domaine de l'État; code du patrimoine; code du service national
code du domaine public fluvial et de la navigation intérieure; code du travail; code du travail maritime
code électoral; code forestier; code du sport; code général des collectivités territoriales; code de la route
code général de la propriété des personnes publiques; code général des impôts; code minier; code pénal
code général de la fonction publique
code monétaire et financier; code pénitentiaire; code rural et de la pêche maritime; livre des procédures fiscales
"""


@pytest.mark.parametrize("code", [name.strip() for name in CODES.replace("\n", ";").split(";") if name.strip()])
def test_the_name_of_every_code_is_read_whole(code):
    for written in (code, code.replace("'", "’"), code.upper()):
        text = f"l'article L. 111-1 du {written}, dans sa rédaction"
        (article,) = find_identifiers(text)
        assert article.code.startswith(code.lower())
        (name,) = find_texts(text, [])
        assert text[name.start : name.end] == written


def test_identifiers_come_in_the_order_of_the_text_and_an_article_s_number_has_one_form():
    text = "Vu l'article 1240 du code civil ; pourvoi n° 16-86.735 ; décision 2016-561 QPC"
    identifiers = find_identifiers(text)
    assert [text[one.start : one.end] for one in identifiers] == ["1240", "16-86.735", "2016-561 QPC"]
    assert [article_value(one) for one in ("L. 1152-1", "l1152\u20111", "1er", "R.* 13", "LO 128", "L. 1 bis")] == [
        "L1152-1", "L1152-1", "1", "R13", "LO128", "L1 BIS",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "nature", "expected"),
    [
        ("97-2285", "AN", [("an", "1997-2285")]),
        ("2007-3742/3947", "AN", [("an", "2007-3742/3947"), ("an", "2007-3742"), ("an", "2007-3947")]),
        ("93-1213R", "AN", [("an", "1993-1213R")]),
        ("93-1213 R2 AN", "AN", [("an", "1993-1213R2")]),
        ("58-61bis AN", "AN", [("an", "1958-61BIS")]),
        ("2017-5126/2018-5625", "AN", [("an", "2017-5126"), ("an", "2018-5625")]),
        ("C4987", "", [("conflits", "4987")]),
        ("00087", "", [("conflits", "87")]),
        ("2217919", "", [("number", "2217919")]),
        ("16-86.735", "ARRET", [("pourvoi", "16-86735")]),
        ("19-60222, 19-60223", "", [("pourvoi", "19-60222"), ("pourvoi", "19-60223")]),
        ("04/01234", "", [("rg", "04/1234")]),
        ("85/1274", "", [("rg", "85/1274")]),
        ("412345", "", [("number", "412345")]),
        ("", "AN", []),
    ],
)
def test_a_decision_s_own_number_is_read_with_its_series(number, nature, expected):
    assert [(one.kind, one.value) for one in decision_identifiers(number, nature)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8 novembre 2023", date(2023, 11, 8)),
        ("1er avril 2016", date(2016, 4, 1)),
        ("08/11/2023", date(2023, 11, 8)),
        ("8.11.23", date(2023, 11, 8)),
        ("5/7/85", date(1985, 7, 5)),
        ("2023-11-08", date(2023, 11, 8)),
        ("22 nov. 2019", date(2019, 11, 22)),
        ("3 AOUT 1994", date(1994, 8, 3)),
        ("vingt-deux novembre deux mille dix-neuf", date(2019, 11, 22)),
        ("VINGT ET UN JUIN MIL NEUF CENT QUATRE-VINGT-DIX-HUIT", date(1998, 6, 21)),
        ("premier mars deux mille", date(2000, 3, 1)),
        ("trente et un décembre mille neuf cent soixante et onze", date(1971, 12, 31)),
        ("huit novembre deux mil vingt-trois", date(2023, 11, 8)),
        ("huit novembre deux milles vingt trois", date(2023, 11, 8)),
        ("8 novembre deux mille vingt-trois", date(2023, 11, 8)),
        ("L'AN DEUX MILLE VINGT-TROIS, LE HUIT NOVEMBRE", date(2023, 11, 8)),
        ("1 April 2024", date(2024, 4, 1)),
        ("April 1, 2024", date(2024, 4, 1)),
        ("1st of April, 2024", date(2024, 4, 1)),
    ],
)
def test_a_day_is_read_in_figures_and_in_words(text, expected):
    assert [one.value for one in find_dates(f"Fait le {text}.")] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        *("31/02/2020", "99/99/2020", "8 novembre", "novembre 2023", "n° 12/05/1998/3", "2023-13-01"),
        *("huit novembre deux cents", "vingt trente mars 2010", "ſept janvier 2020"),
    ],
)
def test_what_is_no_day_is_left_out(text):
    assert find_dates(text) == []


def test_a_long_text_of_numbers_is_read_in_a_moment():
    hostile = "articles " + "L. 1-1, " * 5000 + "1-" * 20_000 + " du code " * 5000
    assert len(find_identifiers(hostile)) >= 5000


@pytest.mark.parametrize("start", ["RG", "article 5", "n°", "article 5,", "le huit"])
def test_a_page_of_blanks_takes_no_longer_than_its_length(start):
    text = start + " " * 20_000 + "x"
    started = time.process_time()
    find_identifiers(text), find_dates(text)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "value", "currency"),
    [
        ("EUR 1,000,000", 1_000_000, "EUR"),
        ("1,000,000 EUR", 1_000_000, "EUR"),
        ("€ 1 500,50", 1500.5, "EUR"),
        ("US$ 5,000", 5000, "USD"),
        ("$15,000.00", 15_000, "USD"),
        ("20000 USD", 20_000, "USD"),
        ("£ 1,000.50", 1000.5, "GBP"),
        ("CHF 3 000", 3000, "CHF"),
        ("12 € 50", 12, "EUR"),
    ],
)
def test_a_sum_is_read_with_its_currency_on_either_side_and_commas_between_thousands(text, value, currency):
    assert [(one.value, one.currency) for one in find_amounts(f"Elle doit {text}.")] == [(value, currency)]


@pytest.mark.parametrize("text", ["EUR 2019/5", "EUROPE 2000", "$5,5000", "1,000,00 EUR", "page 12,345,678"])
def test_figures_beside_letters_are_no_sum_where_they_go_on(text):
    assert find_amounts(text) == []


@pytest.mark.parametrize(
    ("text", "value", "unit", "each", "written"),
    [
        ("deux jours et demi ouvrables par mois de travail", "2.5", "jour", "mois", "deux jours et demi ouvrables"),
        ("trente-cinq heures par semaine", "35", "heure", "semaine", "trente-cinq heures"),
        ("un délai de deux mois.", "2", "mois", "", "deux mois"),
        ("2,5 jours par mois", "2.5", "jour", "mois", "2,5 jours"),
        ("15 (quinze) jours calendaires", "15", "jour", "", "15 (quinze) jours calendaires"),
        ("une année et demie", "1.5", "an", "", "une année et demie"),
        ("une quinzaine de jours", "15", "jour", "", "quinzaine de jours"),
        ("DOUZE\u00a0SEMAINES", "12", "semaine", "", "DOUZE\u00a0SEMAINES"),
    ],
)
def test_a_duration_is_read_in_words_and_figures_with_what_it_is_counted_by(text, value, unit, each, written):
    (one,) = find_durations(text)
    assert (one.value, one.unit, one.each) == (Decimal(value), unit, each)
    assert text[one.start : one.end] == written


@pytest.mark.parametrize("text", ["des jours", "mois", "vingt trente mois", "12.3.4 jours", "deux moissons"])
def test_what_is_no_duration_is_none(text):
    assert find_durations(text) == []


def test_a_sum_beside_one_that_another_overlaps_is_kept():
    assert [str(one.value) for one in find_amounts("$  500 un €12,50 euro")] == ["500.0", "1", "12.50"]


@pytest.mark.parametrize(
    "text",
    [
        "l'article 3, pourvois n° 90-41.231, ",
        "article L. 1-1 et § pourvoi n° 12-34.567, ",
        "\nArticle 1 : article 2 ",
        "n° 2007-1/2/3 AN, ",
        "L. 1-1-1-1-1",
        "1 000 ",
        "vingt et ",
        "n° 498765, ",
        "C. civ., art. 1240 et ",
        "1240 C. civ. ",
        "article L. 1, 2°, al. 3, et ",
        "annexe 1 du code civil, ",
        "TC, n° ",
        "pièce n° 12-04.500, ",
        "l'article 9 du même code, ",
    ],
)
def test_references_are_found_in_time_linear_to_the_text(text):
    def seconds(times):
        started = time.process_time()
        identifiers, dates = find_identifiers(text * times), find_dates(text * times)
        find_article_citations(text * times, find_texts(text * times, dates))
        find_amounts(text * times)
        list(find_abbreviated_articles(text * times))
        assert identifiers is not None
        return time.process_time() - started

    seconds(10)
    few, many = min(seconds(400), seconds(401)), min(seconds(3200), seconds(3201))
    assert many < 24 * few + 0.05  # eight times the text
