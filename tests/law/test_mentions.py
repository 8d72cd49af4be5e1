"""Ids, addresses, cases of European courts and pinpoints, as briefs cite them."""

import time

import pytest

from legal_rag.law import find_identifiers, find_mentions, find_pinpoints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((one, [("id", one)]) for one in ("JURITEXT000048176166", "LEGIARTI000006419320", "CETATEXT000043213456")),
        *((one, [("id", one)]) for one in ("CONSTEXT000017664427", "LEGITEXT000006072050", "5fca25d9cbbf603303c4ff89")),
        ("V. https://www.legifrance.gouv.fr/juri/id/JURITEXT000048176166.", [("id", "JURITEXT000048176166")]),
        ("(legifrance.gouv.fr/juri/id/JURITEXT000048176166)", [("id", "JURITEXT000048176166")]),
        ("https://www.courdecassation.fr/decision/5fca25d9cbbf603303c4ff89?n=1", [("id", "5fca25d9cbbf603303c4ff89")]),
        ("https://www.conseil-constitutionnel.fr/decision/2021/2021952QPC.htm", [("qpc", "2021-952")]),
        ("https://www.conseil-constitutionnel.fr/decision/1971/7144DC.htm", [("dc", "1971-44")]),
        ("https://www.conseil-etat.fr/fr/arianeweb/CE/decision/2021-03-03/428000", [("number", "428000")]),
        ("<https://example.org/a>, <https://example.org/b>",
         [("address", "https://example.org/a"), ("address", "https://example.org/b")]),
        ("JurisData n° 2019-003456", [("jurisdata", "2019-003456")]),
        ("Juris-Data : 2019\u2011003456", [("jurisdata", "2019-003456")]),
        ("CJUE, 3 oct. 2019, aff. C\u201118/18", [("cjue", "C-18/18")]),
        ("aff. jtes C-18/18 et C-19/18 P", [("cjue", "C-18/18"), ("cjue", "C-19/18")]),
        ("Trib. UE, aff. T-12/19", [("cjue", "T-12/19")]),
        ("CJCE, 5 févr. 1963, aff. 26/62, Van Gend", [("cjue", "26/62")]),
        ("CEDH, 12 mars 2019, n° 12345/16, X c. France", [("cedh", "12345/16")]),
        ("Cour européenne des droits de l'homme, requête n° 12345/16", [("cedh", "12345/16")]),
        ("l'arrêt n° 2036 F-B du 21 novembre 2012", [("arrêt", "2036 F-B")]),
        ("l'arrêt n° 1153 FS-P+B+I", [("arrêt", "1153 FS-P+B+I")]),
        *((text, []) for text in ("arrêt n° 17-31.442", "arrêt n° 498765", "RG 18/00012", "5fca25d9", "")),
    ],
)  # fmt: skip
def test_a_reference_of_a_system_of_its_own_is_read(text, expected):
    assert [(one.kind, one.value) for one in find_mentions(text)] == expected


@pytest.mark.parametrize("text", ["CEDH, n° 12345/16", "aff. C-18/18", "JurisData n° 2019-003456", "arrêt n° 2036 F-B"])
def test_such_a_reference_is_no_case_number(text):
    assert find_identifiers(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, [("point", 12, 12)]) for text in ("§ 12", "§12", "§§ 12 et s.", "point 12", "point n° 12", "pt 12")),
        *((text, [("point", 12, 12)]) for text in ("cons. 12", "considérant 12", "Considérant n° 12", "par. 12")),
        *((text, [("point", 5, 5)]) for text in ("5e considérant", "cinquième considérant", "au 5ème point")),
        ("vingt et unième considérant", [("point", 21, 21)]),
        ("points 3 et 5", [("point", 3, 3), ("point", 5, 5)]),
        ("cons. 5 à 7 et 9", [("point", 5, 7), ("point", 9, 9)]),
        ("§§ 12-15", [("point", 12, 15)]),
        ("p. 4", [("page", 4, 4)]),
        ("pp. 4-6", [("page", 4, 6)]),
        *((text, [("alinéa", 2, 2)]) for text in ("al. 2", "alinéa 2", "2e alinéa", "deuxième alinéa")),
        *((text, []) for text in ("Considérant que", "point de départ", "point 3.2", "10 points", "Cons. const.")),
        *((text, []) for text in ("§ 3 %", "dernier alinéa", "le point 5 %", "un point 12 000 euros", "")),
    ],
)  # fmt: skip
def test_a_pinpoint_is_read_with_its_number(text, expected):
    assert [(one.kind, one.first, one.last) for one in find_pinpoints(text)] == expected


def test_items_of_a_list_have_places_of_their_own():
    text = "V. points 3 et 5."
    assert [text[one.start : one.end] for one in find_pinpoints(text)] == ["points 3", "5"]


@pytest.mark.parametrize(
    "text", ["points 1, 2 et ", "https://a.fr/b ", "CEDH, n° ", "C-1/1 ", "arrêt n° 2036 F-P+", "f0" * 12]
)
def test_mentions_and_pinpoints_are_found_in_time_linear_to_the_text(text):
    def seconds(times):
        started = time.process_time()
        find_mentions(text * times), find_pinpoints(text * times)
        return time.process_time() - started

    seconds(10)
    few, many = min(seconds(400), seconds(401)), min(seconds(3200), seconds(3201))
    assert many < 24 * few + 0.05
