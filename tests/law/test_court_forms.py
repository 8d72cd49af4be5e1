"""Courts and their chambers as citations abbreviate them, and which names can be of one court."""

import time

import pytest

from legal_rag.law import find_dates
from legal_rag.law.courts import find_cited_courts, parse_court

DAYS = ("4 mars 2008", "1er mars 2008", "04/03/2008", "4-3-2008", "2008-03-04")
COURTS = (
    *("CA Toulouse, 4e ch. soc.", "CA Toulouse, ch. soc.", "CA de Toulouse, 4ème chambre sociale", "CA Pau, ch. réun."),
    *("CA Paris, pôle 6, ch. 3", "CA Paris, Pôle 6 - chambre 3", "CA Paris, pôle 6 - 3e ch.", "CA Paris, P. 6, ch. 3"),
    *("CA Paris, 1re ch., sect. A", "CA Paris, 18e ch. C", "CA Aix-en-Provence, 17e ch. B", "CA Agen, ch. soc. A"),
    *("CA Aix-en-Provence, ch. 1-5", "CA Aix-en-Provence, ch. 4-9 A", "CA Nîmes, ch. civ., 1re sect.", "C. app. Metz"),
    *("CA Rennes, 7e ch. prud'h.", "CA Douai, ch. instr.", "CA Douai, ch. 8, sect. 1", "CA Lyon, soc. A", "CPH Lyon"),
    *("cour d'appel de Caen, chambre sociale", "la 4e ch. soc. de la CA de Toulouse", "cons. prud'h. Lyon", "TI Sète"),
    *("C. cass. soc.", "Cass. Soc", "Cass, soc", "Cour de cass. soc.", "Cass. 2e civ", "Cass. civ. 2"),
    *("Cass. 2ème ch. civ.", "Civ. 2ème", "Civ. 2"),
    *("2ème Civ", "2e Civ.", "Civ. 1re", "Soc.", "Soc", "Com.", "Com", "Crim.", "Cass. civ.", "Civ."),
    *("Ass. plén.", "Cass. ass. plén.", "Ch. mixte", "Cass. ch. mixte"),
    *("CE", "CE, ass.", "CE Sect.", "CE, sect.", "CE, ord."),
    *("CE, 5e et 6e ch. réun.", "CE, 5e-6e ch. réun.", "CE, 9e et 10e ss-sect. réun.", "CE, 10e/9e SSR", "CE, réf."),
    *("TJ Rennes", "TJ Paris, 18e ch., 2e sect.", "TGI Paris, ord. réf.", "T. com. Paris, 15e ch.", "TC Paris"),
    *("TC", "TdC", "T. confl.", "Trib. confl.", "Tribunal des conflits", "TA Rennes, 3e ch.", "CAA Nantes"),
    *("JEX Paris", "CAA de Lyon", "TGI du Mans", "CPH Lyon, sect. encadrement"),
    *("Cons. const.", "C. comptes", "JAF Lyon", "TASS Bobigny", "CEDH, gr. ch.", "CJUE, gde ch."),
)  # fmt: skip


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("between", [", ", " "])
@pytest.mark.parametrize("court", COURTS)
def test_a_court_ends_before_the_day_that_follows_it(court, between, day):
    text = f"Selon {court}{between}{day}, n° 17-31.442"
    assert [text[start:end] for start, end in find_cited_courts(text)] == [court.removeprefix("la ")]
    assert [text[date.start : date.end] for date in find_dates(text)] == [day]


@pytest.mark.parametrize("text", ["CC, 3 mai 2010, n° 2010-1 QPC", "CC n° 2010-1 QPC", "CC 3 déc. 2009, 2009-595 DC"])
def test_two_letters_are_the_conseil_constitutionnel_before_its_number(text):
    assert [text[start:end] for start, end in find_cited_courts(text)] == ["CC"]


@pytest.mark.parametrize(
    ("text", "court"),
    [
        ("Paris, 4 mars 2020, n° 17/08123", "Paris"),
        ("Lyon, ch. soc., 4 mars 2020, RG n° 17/08123", "Lyon, ch. soc."),
        ("Aix-en-Provence, 4 mars 2020, n° 17-08123", "Aix-en-Provence"),
    ],
)
def test_a_town_before_day_and_roll_number_is_its_court_of_appeal(text, court):
    assert [text[start:end] for start, end in find_cited_courts(text)] == [court]
    assert parse_court(court).types == {"appel"}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Paris, le 4 mars 2020",
            "Fait à Paris, 4 mars 2020",
            "Paris, 4 mars 2020, n° 123456",
            "à Lyon, 3 mai 2010, 12/2",
        ),
        *("art. 1240 C.C., 3 mai 2010", "JCP G 2019, 345", "la société Com a dit", "le ch. 3 du livre", "soc, 12 mars"),
        *("ce 3 mai 2010", "Selon la 4e ch. Paris", "la société CC, le 3 mai", "Req. 12 mars 2019", "Soc. gén., 3 %"),
    ],
)
def test_what_only_looks_like_a_court_is_none(text):
    assert find_cited_courts(text) == []


SAME = (
    ("CA Toulouse, 4e ch. soc.", "CA de Toulouse", "Cour d'appel de Toulouse", "cour d’appel de Toulouse, 2e ch. civ."),
    ("CA Aix-en-Provence, 17e ch. B", "CA Aix en Provence", "Cour d'appel d'Aix-en-Provence", "C. app. Aix"),
    ("CA Paris, pôle 6, ch. 3", "Cour d'appel de Paris, Pôle 6 - Chambre 3", "CA Paris, ch. instr."),
    ("CA St-Denis", "Cour d'appel de Saint-Denis"),
    ("Cass. soc.", "Soc.", "C. cass. soc.", "Cass, soc", "Cour de cassation, chambre sociale", "Cour de cass. soc."),
    ("Cass. 2e civ.", "Civ. 2ème", "2ème Civ", "Cass. civ. 2", "Cour de cassation, deuxième chambre civile", "Civ. 2"),
    ("Com.", "Cass. com.", "Cour de cassation, chambre commerciale, financière et économique", "Cass. ch. comm."),
    ("Ass. plén.", "Cass. ass. plén.", "Cour de cassation, assemblée plénière", "Cass. Plén."),
    ("Crim.", "Cass. crim.", "Cour de cassation, chambre criminelle"),
    ("CE, 5e et 6e ch. réun.", "CE", "Conseil d'État, 5e et 6e chambres réunies", "CE Sect.", "C.E."),
    ("TC", "TdC", "T. confl.", "Trib. confl.", "Tribunal des conflits"),
    ("TC Paris", "T. com. Paris", "Trib. com. de Paris", "tribunal de commerce de Paris"),
    ("TJ Rennes", "tribunal judiciaire de Rennes", "Trib. jud. Rennes", "JEX Rennes", "JAF Rennes"),
    ("TGI Lyon", "tribunal de grande instance de Lyon", "Trib. gr. inst. Lyon"),
    ("CPH Lyon", "cons. prud'h. Lyon", "conseil de prud'hommes de Lyon", "conseil des prud’hommes de Lyon"),
    ("CAA Nantes, 3e ch.", "CAA de Nantes", "Cour administrative d'appel de Nantes"),
    ("TA Rennes", "tribunal administratif de Rennes", "T. adm. Rennes"),
    ("Cons. const.", "CC", "Conseil constitutionnel"),
)  # fmt: skip


@pytest.mark.parametrize("names", SAME, ids=lambda names: names[0])
def test_two_forms_of_one_court_do_not_contradict(names):
    for one in names:
        for other in names:
            assert not parse_court(one).contradicts(parse_court(other)), (one, other)


# One court each, and another that a name of it must not stand for.
DIFFERENT = [
    *((one[0], other[0]) for i, one in enumerate(SAME) for other in SAME[:i]),
    ("CA Toulouse, 4e ch. soc.", "CA Lyon, 4e ch. soc."),
    ("Cass. 2e civ.", "Cass. 1re civ."),
    ("Civ. 3", "Cour de cassation, deuxième chambre civile"),
    ("Soc.", "Cour de cassation, chambre commerciale"),
    ("TJ Rennes", "Tribunal judiciaire de Brest"),
    ("TJ Lyon", "TA Lyon"),
    ("CA Lyon", "CAA de Lyon"),
    ("TC Lyon", "Tribunal des conflits"),
    ("TGI Lyon", "TI Lyon"),
    ("CA Paris, ch. instr.", "CA Versailles, ch. instr."),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_of_two_courts_contradict(one, other):
    assert parse_court(one).contradicts(parse_court(other))
    assert not parse_court(one).agrees_with(parse_court(other))


@pytest.mark.parametrize("names", SAME, ids=lambda names: names[0])
def test_every_form_agrees_with_the_court_in_full(names):
    full = parse_court(max(names, key=len))
    assert full.types
    assert all(parse_court(name).agrees_with(full) for name in names)


@pytest.mark.parametrize("text", ["CA Paris, pôle 6, ch. 3, ", "ch. soc. de la ", "CE, 5e et 6e ", "Paris, 3 mai, "])
def test_courts_are_found_in_time_linear_to_the_text(text):
    def seconds(times):
        started = time.process_time()
        find_cited_courts("CA Lyon, " + text * times)
        return time.process_time() - started

    seconds(10)
    few, many = min(seconds(400), seconds(401)), min(seconds(3200), seconds(3201))
    assert many < 24 * few + 0.05
