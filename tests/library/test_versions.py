"""Articles in versions: which is seen on a day, by search, by name and by id; what changed from one to the next."""

import json
from datetime import date
from pathlib import Path

import pytest

import legal_rag as lr
from legal_rag.agent.tool_arguments import resolve_id
from legal_rag.cli import main
from legal_rag.indexer import IndexConfig, add_documents, build_index, compact_index
from legal_rag.law import force_of, long_date
from legal_rag.library import Library, version_at, versions_of
from legal_rag.library.versions import word_changes

FIXTURES = Path(__file__).parents[1] / "fixtures" / "versions"


def rows(name):
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


CODE, QUESTIONS = rows("code"), rows("questions")
NINTH_1 = "L. 9001-1 du code du travail"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    build_index(IndexConfig(source=CODE, index_folder=str(folder), index_name="code", n_bits=0))
    return folder


@pytest.fixture(scope="module")
def library(folder):
    return lr.open(folder / "code")


def run(capsys, *arguments):
    status = main([*map(str, arguments)])
    return status, capsys.readouterr()


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: f"{asked['article']} {asked['at']}")
def test_the_text_in_force_on_a_day_is_the_one_that_is_found(library, asked):
    version = version_at(asked["article"], date.fromisoformat(asked["at"]), library)
    assert (version and version.id) == asked["expected"]
    hits = lr.search(library, asked["article"], mode="bm25", at=asked["at"])
    articles = {row["id"]: f"{row['number']} du code du travail" for row in CODE if "text_title" in row}
    asked_number = asked["article"].replace(". ", "")
    named = [hit.doc_id for hit in hits if articles.get(hit.doc_id) == asked_number]  # its words may be another's since
    assert named == ([asked["expected"]] if asked["expected"] else [])


def test_lookup_prints_the_text_in_force_on_a_day(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code"]
    for asked in QUESTIONS:
        status, (out, err) = run(capsys, "lookup", *place, "--json", "--at", asked["at"], asked["article"])
        if asked["expected"]:
            assert json.loads(out)["doc_id"] == asked["expected"]
        else:
            assert (status, out) == (1, "")
            assert "n'est en vigueur le" in err


@pytest.mark.parametrize(
    ("columns", "in_french"),
    [
        ({"valid_from": "2008-05-01", "valid_until": "2016-08-10"}, "en vigueur du 1er mai 2008 au 9 août 2016"),
        ({"valid_from": "2018-04-01", "state": "VIGUEUR"}, "en vigueur depuis le 1er avril 2018"),
        ({"valid_from": "2030-01-01", "state": "VIGUEUR_DIFF"}, "en vigueur à compter du 1er janvier 2030"),
        ({"valid_from": "2018-04-01", "valid_until": "2999-01-01"}, "en vigueur depuis le 1er avril 2018"),
        ({"valid_from": "2222-02-22", "state": "VIGUEUR_DIFF"}, "entrée en vigueur différée, sans date"),
        ({"state": "VIGUEUR_DIFF"}, "entrée en vigueur différée, sans date"),
        ({"valid_from": "2014-01-01", "valid_until": "2014-01-01", "state": "MODIFIE_MORT_NE"}, "jamais en vigueur"),
        ({"valid_until": "2016-08-10"}, "en vigueur jusqu'au 9 août 2016"),
        ({"state": "VIGUEUR"}, None),
        ({"valid_from": "un jour"}, None),
        (
            {"valid_from": "2008-05-01", "valid_until": "2016-08-10", "state": "ABROGE"},
            "en vigueur du 1er mai 2008 au 9 août 2016, article abrogé le 10 août 2016",
        ),
        (
            {"valid_from": "2008-05-01", "valid_until": "2016-08-10", "state": "TRANSFERE"},
            "en vigueur du 1er mai 2008 au 9 août 2016, article transféré le 10 août 2016",
        ),
        (
            {"valid_until": "2016-08-10", "state": "PERIME"},
            "en vigueur jusqu'au 9 août 2016, article périmé le 10 août 2016",
        ),
        (
            {"valid_from": "2014-01-01", "valid_until": "2999-06-01", "state": "ABROGE_DIFF"},
            "en vigueur du 1er janvier 2014 au 31 mai 2999, article qui sera abrogé le 1er juin 2999",
        ),
        (
            {"valid_from": "2014-01-01", "valid_until": "2020-06-01", "state": "ABROGE_DIFF"},
            "en vigueur du 1er janvier 2014 au 31 mai 2020, article abrogé le 1er juin 2020",
        ),
        (
            {"valid_from": "2014-01-01", "valid_until": "2222-02-22", "state": "ABROGE_DIFF"},
            "en vigueur depuis le 1er janvier 2014, abrogation différée, sans date",
        ),
        ({"valid_from": "2014-01-01", "valid_until": "2014-01-01", "state": "ANNULE"}, "article annulé"),
        ({"valid_from": "2014-01-01", "state": "ABROGE"}, "article abrogé"),
        ({"state": "ABROGE"}, "article abrogé"),
        ({"valid_from": "2018-04-01", "links": ["https://example.org"]}, "en vigueur depuis le 1er avril 2018"),
    ],
)
def test_force_is_said_in_french(columns, in_french):
    force = force_of(columns)
    assert (force and force.in_french) == in_french


@pytest.mark.parametrize(
    ("columns", "in_french"),
    [
        ({"valid_from": "2018-04-01"}, "version en vigueur depuis le 1er avril 2018"),
        ({"valid_from": "2014-01-01", "valid_until": "2014-01-01", "state": "ANNULE"}, "version de l'article annulé"),
        ({"state": "VIGUEUR_DIFF"}, "version à l'entrée en vigueur différée, sans date"),
        ({"state": "MODIFIE_MORT_NE"}, "version jamais en vigueur"),
    ],
)
def test_force_is_said_of_a_version(columns, in_french):
    assert force_of(columns).version_in_french == in_french


@pytest.mark.parametrize("day", ["1990-01-01", "2014-06-01", "2026-11-26"])
def test_what_ended_on_an_unknown_day_is_in_force_on_none(day):
    assert not force_of({"valid_from": "2014-01-01", "state": "ABROGE"}).holds(date.fromisoformat(day))


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("2007-12-31", "pas encore en vigueur le 31 décembre 2007 : en vigueur du 1er mai 2008 au 9 août 2016"),
        ("2012-03-03", "en vigueur du 1er mai 2008 au 9 août 2016"),
        ("2016-08-10", "plus en vigueur le 10 août 2016 : en vigueur du 1er mai 2008 au 9 août 2016"),
    ],
)
def test_force_is_said_of_a_day(day, said):
    assert force_of({"valid_from": "2008-05-01", "valid_until": "2016-08-10"}).on(date.fromisoformat(day)) == said


def test_a_search_sees_of_each_article_what_is_in_force_today_by_default(library):
    hits = lr.search(library, "délai de prévenance du salarié période d'essai", k=50, mode="bm25")
    found = {hit.doc_id for hit in hits}
    assert found >= {"LEGIARTI900000000013", "DECISION-1"}
    in_force = {row["id"] for row in CODE if force_of(row) is None or force_of(row).holds(date.today())}
    assert found <= in_force
    older = lr.search(library, "délai de prévenance du salarié période d'essai", k=50, mode="bm25", at="3 mars 2012")
    assert "LEGIARTI900000000011" in {hit.doc_id for hit in older}
    assert "LEGIARTI900000000013" not in {hit.doc_id for hit in older}


def test_a_version_is_read_by_its_own_id_on_any_day(library):
    assert [hit.doc_id for hit in lr.search(library, "LEGIARTI900000000011", mode="bm25")] == ["LEGIARTI900000000011"]


def test_an_article_of_which_no_version_is_in_force_is_said_to_be_so(library):
    hits = lr.search(library, "L. 9001-13 du code du travail", mode="bm25", at="2026-11-26")
    assert [hit.doc_id for hit in hits] == []
    (said, *_) = hits.remarks
    assert said.startswith(
        "Aucune version de « L. 9001-13 du code du travail » n'est en vigueur le 26 novembre 2026 : article abrogé"
        " depuis le 1er janvier 2020. L'index a : "
    )
    assert "LEGIARTI900000000133 (C. trav., art. L. 9001-13, en vigueur du 1er avril 2018 au 31 décembre 2019," in said


@pytest.mark.parametrize("command", [["search", NINTH_1], ["lookup", NINTH_1], ["ask", NINTH_1]])
@pytest.mark.parametrize("day", ["2019", "31/02/2019", "hier"])
def test_a_day_that_is_none_is_one_line(folder, capsys, command, day):
    status, (out, err) = run(capsys, *command, "--index-folder", folder, "--index-name", "code", "--at", day)
    assert (status, out) == (1, "")
    assert err.strip().splitlines() == [
        f"legal-rag: --at is no day: {day!r} (expected e.g. '2023-11-08' or '8 novembre 2023')"
    ]


def test_all_versions_are_listed_with_what_each_changed(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code"]
    status, (out, _) = run(capsys, "lookup", *place, "--versions", "L. 9101-15 du code du travail")
    assert status == 0
    assert out.replace("\xa0", " ").splitlines() == [
        "LEGIARTI900000000151  C. trav., art. L. 9001-15, en vigueur du 1er mai 2008 au 9 août 2016",
        "LEGIARTI900000000152  C. trav., art. L. 9001-15, en vigueur du 10 août 2016 au 23 septembre 2019,"
        " article transféré le 24 septembre 2019",
        "   salarié déclaré inapte est fixé à [-trente-] [+vingt+]",
        "   est fixé à trente jours, sauf [-accord-] [+stipulation+]",
        "   à trente jours, sauf accord plus [-favorable.-] [+favorable d'une convention collective.+]",
        "LEGIARTI900000000153  C. trav., art. L. 9101-15, en vigueur depuis le 24 septembre 2019",
        "   salarié déclaré inapte est fixé à [-vingt jours, sauf stipulation plus favorable d'une convention"
        " collective.-] [+soixante jours. Un décret en précise les modalités.+]",
    ]
    _, (out, _) = run(capsys, "lookup", *place, "--json", "--versions", "LEGIARTI900000000151")
    assert [version["valid_from"] for version in json.loads(out)] == ["2008-05-01", "2016-08-10", "2019-09-24"]
    status, (_, err) = run(capsys, "lookup", *place, "--versions", "DECISION-1")
    assert (status, "no article with versions" in err) == (1, True)


def test_a_lookup_says_when_what_it_prints_is_in_force(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code", "--at"]
    for named in (NINTH_1, "LEGIARTI900000000013"):
        _, (out, _) = run(capsys, "lookup", *place, "2012-03-03", named)
        assert "Version : en vigueur du 1er mai 2008 au 9 août 2016" in out
    status, (_, err) = run(capsys, "lookup", *place, "1999-01-01", "LEGIARTI900000000013")
    assert (status, "n'est en vigueur le 1er janvier 1999" in err) == (1, True)


def test_an_answer_says_which_version_it_rests_on(library):
    answer = lr.ask(library, f"Que dit l'article {NINTH_1} ?", at="2012-03-03")
    named = {document.doc_id: document.version for document in answer.documents}
    assert named["LEGIARTI900000000011"] == "version en vigueur du 1er mai 2008 au 9 août 2016"
    from legal_rag.report import render_answer

    assert "version en vigueur du 1er mai 2008 au 9 août 2016" in render_answer(answer, library)


def test_versions_are_added_removed_and_compacted_with_their_documents(tmp_path):
    decision, articles = CODE[-1], CODE[:3]
    where = {"index_folder": str(tmp_path), "index_name": "grows", "n_bits": 0}
    build_index(IndexConfig(source=[decision], **where))
    assert not Library.open(tmp_path, "grows").has_versions
    add_documents(IndexConfig(source=articles, **where))
    grown = Library.open(tmp_path, "grows")
    assert [version.document.id for version in versions_of(NINTH_1, grown)] == [row["id"] for row in articles]
    add_documents(IndexConfig(source=[articles[2] | {"valid_until": "2020-01-01", "state": "ABROGE"}], **where))
    assert version_at(NINTH_1, date(2026, 11, 26), Library.open(tmp_path, "grows")) is None
    compact_index(str(tmp_path), "grows")
    compacted = Library.open(tmp_path, "grows")
    assert version_at(NINTH_1, date(2019, 1, 1), compacted).id == articles[2]["id"]
    assert version_at(NINTH_1, date(2026, 11, 26), compacted) is None


def test_words_that_changed_are_in_text_order():
    changes = word_changes("Le délai est de dix jours.", "Le délai est porté à dix jours ouvrés.")
    assert [tuple(change) for change in changes] == [
        ("Le délai est", "de", "porté à"),
        ("Le délai est de dix", "jours.", "jours ouvrés."),
    ]
    assert word_changes("Le même texte.", "Le même texte.") == ()


CIVIL = {"text_title": "Code civil", "text_id": "LEGITEXT000006070721", "nature": "CODE"}
ORDINANCE = {"text_title": "Ordonnance n° 2016-131 du 10 février 2016", "text_id": "JORFTEXT000032004939"}
COPROPERTY = "Loi n° 65-557 du 10 juillet 1965 fixant le statut de la copropriété des immeubles bâtis"
LEASES = "Loi n° 89-462 du 6 juillet 1989 tendant à améliorer les rapports locatifs"


def article(number, name, words, text=CIVIL, **columns):
    doc_id = f"LEGIARTI8{number:011}"
    of_text = {"title": f"{text['text_title']}, article {name}", "number": name, "article_id": doc_id, **text}
    return {"id": doc_id, "content": words, "state": "VIGUEUR", **of_text, **columns}


def link(kind, row, **columns):
    return {"type": kind, "id": row["id"], "nature": "", "text_id": row["text_id"], "title": row["title"], **columns}


FAULT = "Tout fait quelconque de l'homme, qui cause à autrui un dommage, oblige à le réparer"
OLD_1240 = article(2, "1240", "Le paiement fait de bonne foi est valable.", valid_from="1804-02-17",
                   valid_until="2016-10-01", state="MODIFIE")  # fmt: skip
NEW_1240 = article(3, "1240", f"{FAULT}.", valid_from="2016-10-01", article_id=OLD_1240["id"])
ACT = article(4, "2", "Le livre III du code civil est modifié.", ORDINANCE, valid_from="2016-10-01")
OLD_1150 = article(11, "1150", "Le débiteur n'est tenu que des dommages prévus.", valid_from="1804-02-17",
                   valid_until="2016-10-01", state="TRANSFERE", links=[link("TRANSFERE", ACT)])  # fmt: skip
NOT_HELD = {"id": "LEGIARTI899999999999", "text_id": "LEGITEXT1", "title": "Code de commerce - art. L9 (V)"}
OTHERS = [
    article(1, "1382", f"{FAULT}, par sa faute.", valid_from="1804-02-19", valid_until="2016-10-01", state="TRANSFERE",
            links=[link("TRANSFERE", ACT), link("CONCORDANCE", NEW_1240), link("CITATION", OLD_1240)]),
    OLD_1240, NEW_1240, ACT,
    article(5, "2262", "Toutes les actions sont prescrites par trente ans.", valid_from="1804-03-25",
            valid_until="2008-06-19", state="ABROGE", links=[link("CONCORDE", NOT_HELD)]),
    article(6, "2263", "La prescription mort-née.", valid_from="2010-01-01", valid_until="2010-01-01",
            state="MODIFIE_MORT_NE", article_id="LEGIARTI800000000007"),
    article(7, "2263", "La prescription de dix ans.", valid_from="2009-01-01", valid_until="2010-01-01"),
    article(8, "2263", "La prescription de vingt ans.", valid_from="2010-01-01", article_id="LEGIARTI800000000007"),
    article(9, "22", "Le règlement fixe les voix des copropriétaires.", {"text_title": COPROPERTY, "text_id": "J1"},
            valid_from="1965-07-11"),
    article(10, "22", "Le dépôt de garantie n'excède pas un mois de loyer.", {"text_title": LEASES, "text_id": "J2"},
            valid_from="1989-07-08"),
    OLD_1150,
    article(12, "1231-3", "Le débiteur n'est tenu que des dommages-intérêts prévus.", valid_from="2016-10-01",
            links=[link("TRANSFERT", OLD_1150, direction="cible")]),
    article(13, "1231-4", "Le débiteur fautif.", valid_from="2016-10-01", links=[link("CITATION", OLD_1150)]),
    article(14, "1231-5", "Le débiteur d'une clause pénale.", valid_from="2016-10-02",
            links=[link("TRANSFERT", OLD_1150, direction="cible")]),
    {"id": "DECISION-2", "title": "Cour de cassation, 3 avril 2001, 99-12.345", "juridiction": "Cour de cassation",
     "decision_date": "2001-04-03", "number": "99-12.345",
     "content": "Vu l'article 2262 du code civil ;\n\nAttendu que l'action se prescrit par trente ans."},
]  # fmt: skip


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    build_index(IndexConfig(source=OTHERS, index_folder=str(folder), index_name="civil", n_bits=0))
    return folder


def quoted(answer):
    return [citation.doc_id for citation in answer.citations]


def test_an_answer_on_an_abrogated_article_is_its_last_version_and_says_so(others):
    answer = lr.ask(lr.open(others / "civil"), "Que dit l'article 2262 du code civil ?", at="2026-11-26")
    assert quoted(answer) == ["LEGIARTI800000000005", "DECISION-2"]  # which applies it; no other article
    assert "n'est en vigueur le 26 novembre 2026 : article abrogé depuis le 19 juin 2008" in answer.notice
    assert "Concordance : Code de commerce - art. L9 (V), que l'index n'a pas." in answer.notice
    head = answer.answer.replace("\xa0", " ")
    assert head.startswith("L'article demandé n'est pas en vigueur au jour demandé.")
    assert "C. civ., art. 2262 (plus en vigueur le 26 novembre 2026 : en vigueur du 25 mars 1804 au" in head
    assert answer.grade == "close"


def test_an_answer_on_an_abrogated_article_and_another_is_both(library):
    answer = lr.ask(library, "Que dit l'article L. 9001-13 du code du travail ?", at="2026-11-26")
    assert quoted(answer) == ["LEGIARTI900000000133"]
    both = lr.ask(library, f"Que disent les articles L. 9001-13 du code du travail et {NINTH_1} ?", at="2026-11-26")
    assert set(quoted(both)) == {"LEGIARTI900000000013", "LEGIARTI900000000133"}
    assert not both.answer.startswith("L'article demandé n'est pas en vigueur")


def test_an_answer_on_an_article_before_its_first_version_is_that_one_and_says_so(others):
    answer = lr.ask(lr.open(others / "civil"), "Que dit l'article 2263 du code civil ?", at="2001-01-01")
    assert quoted(answer) == ["LEGIARTI800000000007"]
    assert "n'est en vigueur le 1er janvier 2001 : pas encore en vigueur." in answer.notice
    assert "(pas encore en vigueur le 1er janvier 2001 : en vigueur du 1er janvier 2009" in answer.answer


def test_an_answer_on_a_transferred_article_goes_on_to_where_its_words_are(others):
    answer = lr.ask(lr.open(others / "civil"), "Que dit l'article 1382 du code civil ?")
    assert quoted(answer) == ["LEGIARTI800000000001", "LEGIARTI800000000003"]
    assert "Transféré à : LEGIARTI800000000003 (C. civ., art. 1240, en vigueur depuis" in answer.notice.replace(
        "\xa0", " "
    )


def test_a_transfer_is_followed_by_the_link_of_the_new_article_alone(others, capsys):
    place = ["--index-folder", others, "--index-name", "civil"]
    _, (_, err) = run(capsys, "lookup", *place, "article 1150 du code civil")
    assert "Transféré à : LEGIARTI800000000012 (C. civ., art. 1231-3, en vigueur depuis" in err.replace("\xa0", " ")
    assert "LEGIARTI800000000013" not in err
    named = versions_of("article 1150 du code civil", lr.open(others / "civil"))
    assert [one.document.id[-2:] for one in named] == ["11", "12"]


def test_a_lookup_says_to_which_article_another_was_transferred(others, capsys):
    place = ["--index-folder", others, "--index-name", "civil"]
    status, (out, err) = run(capsys, "lookup", *place, "article 1382 du code civil")
    assert (status, out) == (1, "")
    assert "article transféré depuis le 1er octobre 2016" in err
    assert "Transféré à : LEGIARTI800000000003" in err
    assert ACT["id"] not in err


def test_versions_go_on_over_a_transfer_and_stand_in_the_order_of_their_days(others):
    library = lr.open(others / "civil")
    named = {name: [one.document.id[-1] for one in versions_of(f"article {name} du code civil", library)]
             for name in ("1382", "1240", "2263")}  # fmt: skip
    assert named == {"1382": ["1", "3"], "1240": ["2", "3"], "2263": ["7", "6", "8"]}
    (*_, last) = versions_of("article 2263 du code civil", library)
    assert [(change.before, change.after) for change in last.changes] == [("dix", "vingt")]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("article 22 de la loi n° 65-557 du 10 juillet 1965", "LEGIARTI800000000009"),
        ("art. 22, L. n° 65-557 du 10 juill. 1965", "LEGIARTI800000000009"),
        ("loi du 10 juillet 1965, article 22", "LEGIARTI800000000009"),
        ("article 22 de la loi du 6 juillet 1989", "LEGIARTI800000000010"),
        ("art 22 loi 89-462", "LEGIARTI800000000010"),
        ("article 22 de la loi n° 66-1000", None),
        ("article 22 de la loi du 1er mars 1965", None),
        ("article 22 du décret n° 65-557", None),
        ("article 22 du code civil", None),
    ],
)
def test_an_article_of_a_law_is_that_of_its_number_or_day_and_of_no_other(others, capsys, named, expected):
    library, place = lr.open(others / "civil"), ["--index-folder", others, "--index-name", "civil"]
    status, (out, err) = run(capsys, "lookup", *place, "--json", named)
    hits = lr.search(library, named, mode="bm25")
    answer = lr.ask(library, f"Que dit l'{named} ?")
    if expected:
        assert json.loads(out)["doc_id"] == expected
        assert [hit.doc_id for hit in hits] == [expected]
        assert quoted(answer)[:1] == [expected]
    else:
        assert (status, out) == (1, "")
        said = "Ce corpus n'a pas l'article demandé : 22 d"
        assert all(said in text for text in (err, *hits.remarks[:1], answer.notice))
        assert not {"LEGIARTI800000000009", "LEGIARTI800000000010"} & {*quoted(answer), *(hit.doc_id for hit in hits)}


def test_a_search_says_of_each_article_what_is_amiss_and_shows_the_others(others):
    library = lr.open(others / "civil")
    hits = lr.search(library, "1240 et 2262 du code civil", mode="bm25", at="2026-11-26")
    assert [hit.doc_id for hit in hits] == ["LEGIARTI800000000003"]
    assert hits.remarks[0].startswith("Aucune version de « 2262")
    hits = lr.search(library, "article 22 de la loi n° 89-462 et article 22 de la loi n° 66-879", mode="bm25")
    assert [hit.doc_id for hit in hits] == ["LEGIARTI800000000010"]
    assert hits.remarks[0] == "Ce corpus n'a pas l'article demandé : 22 de la loi n° 66-879."
    both = "dépôt de garantie, article 22 de la loi n° 89-462 et article 22 de la loi n° 66-879"
    assert "LEGIARTI800000000010" in {hit.doc_id for hit in lr.search(library, both, mode="bm25")}


def test_a_search_for_a_transferred_article_shows_the_one_that_has_its_words(others):
    hits = lr.search(lr.open(others / "civil"), "article 1382 du code civil", mode="bm25")
    assert [hit.doc_id for hit in hits] == ["LEGIARTI800000000003"]
    assert "Transféré à : LEGIARTI800000000003" in hits.remarks[0]


def test_articles_of_one_number_and_laws_without_a_number_are_told_apart(tmp_path):
    ended = {"valid_from": "1965-07-11", "valid_until": "2020-06-01", "state": "ABROGE"}
    files = {"text_title": "Loi du 6 janvier 1978 relative aux fichiers", "text_id": "J3"}
    other = {"text_title": "Loi n° 78-20 du 6 janvier 1978 relative aux ports", "text_id": "J4"}
    source = [
        article(11, "22", "Le syndic administre.", {"text_title": COPROPERTY, "text_id": "J1"}, **ended),
        article(12, "22", "Le dépôt de garantie.", {"text_title": LEASES, "text_id": "J2"}, valid_from="1989-07-08"),
        article(13, "29", "Le fichier est déclaré.", files, valid_from="1978-01-07"),
        article(14, "29", "Le port est dragué.", other, valid_from="1978-01-07"),
    ]
    build_index(IndexConfig(source=source, index_folder=str(tmp_path), index_name="laws", n_bits=0))
    library = lr.open(tmp_path / "laws")
    both = "l'article 22 de la loi n° 65-557 et l'article 22 de la loi n° 89-462"
    assert "Aucune version de « 22 de la loi n° 65-557 » n'est en" in lr.ask(library, f"Que disent {both} ?").notice
    hits = lr.search(library, "article 29 de la loi n° 78-17 du 6 janvier 1978", mode="bm25")
    assert [hit.doc_id for hit in hits] == ["LEGIARTI800000000013"]
    hits = lr.search(library, "article 29 de la loi n° 89-462 du 6 juillet 1989", mode="bm25")
    assert hits.remarks[0].startswith("Ce corpus n'a pas l'article demandé")


@pytest.mark.parametrize(
    ("question", "shown", "said"),
    [
        (f"Que disait l'article {NINTH_1} au 1er mars 2016 ?", "011", "1er mars 2016, jour lu dans la question («"),
        (f"Que disait l'article {NINTH_1} en 2017 ?", "012", "31 décembre 2017, jour lu dans la question (« en"),
        (f"Que disait l'article {NINTH_1} en 2016 ?", "012", "peuvent aussi viser : LEGIARTI900000000011 (C. trav."),
        (f"Que dit l'article {NINTH_1} en {{:%Y}} ?", "013", "Articles au {}, jour lu"),
        (f"l'article {NINTH_1} issu de la loi du 8 août 2016", "012", "10 août 2016, jour lu dans la question (« issu"),
        (f"Que disait l'article {NINTH_1} avant la loi du 8 août 2016 ?", "011", "Articles au 7 août 2016"),
    ],
)  # fmt: skip
def test_a_question_is_answered_by_the_law_of_the_day_that_it_states(library, question, shown, said):
    question, said = question.format(date.today()), said.format(long_date(date.today()))
    answer = lr.ask(library, question)
    assert (answer.citations[0].doc_id[-3:], said in answer.notice.replace("\xa0", " ")) == (shown, True)
    hits = lr.search(library, question, mode="bm25")
    assert (hits[0].doc_id[-3:], said in hits.remarks[0].replace("\xa0", " ")) == (shown, True)
    assert "--at en fixe un autre" in answer.notice
    given = lr.ask(library, question, at="2019-01-01")
    assert (given.citations[0].doc_id[-3:], given.notice) == ("013", None)


@pytest.mark.parametrize(
    ("question", "other"),
    [
        (f"Licencié le 3 mars 2012, que dit l'article {NINTH_1} ?", "2012-03-03"),
        ("Quel était le délai de prévenance du salarié avant la rupture de la période d'essai en 2012 ?", "2012-12-31"),
        (f"Article {NINTH_1} au 1er mars 2012 et l'article L. 9001-2 du code du travail au 2 mars 2018", "2012-03-01"),
        (f"Que dit l'article {NINTH_1} selon l'arrêt du 3 mars 2012 ?", None),
        (f"Que dit l'article {NINTH_1} depuis la loi du 8 août 2016 ?", None),
        (f"Que dit l'article {NINTH_1} ?", None),
    ],
)  # fmt: skip
def test_a_day_that_is_not_applied_is_named_where_articles_are_shown(library, question, other):
    said = f"Les articles sont donnés au {long_date(date.today())} ; pour leur texte d'un autre jour : --at {other}."
    answer, hits = lr.ask(library, question), lr.search(library, question, mode="bm25")
    assert (answer.notice or "").count(said) == " ".join(hits.remarks).count(said) == bool(other)


@pytest.mark.parametrize(
    "question", [f"l'ancien article {NINTH_1}", f"Que disait la version précédente de l'article {NINTH_1} ?"]
)
def test_a_former_version_of_no_day_is_said_not_to_be_the_one_shown(library, question):
    said = f"Les articles sont donnés au {long_date(date.today())} ; pour une ancienne version : --at"
    answer, hits = lr.ask(library, question), lr.search(library, question, mode="bm25")
    assert (answer.notice or "").count(said) == " ".join(hits.remarks).count(said) == 1


def test_a_lookup_reads_the_day_stated_with_an_article(folder, capsys):
    place = ["--index-folder", folder, "--index-name", "code"]
    _, (out, err) = run(capsys, "lookup", *place, "--json", f"article {NINTH_1} au 1er mars 2016")
    assert (json.loads(out)["doc_id"], "jour lu dans la question" in err) == ("LEGIARTI900000000011", True)
    named, library = f"article {NINTH_1} en vigueur le 3 mars 2012", lr.open(folder / "code")
    assert resolve_id(named, library) == "LEGIARTI900000000011"


def test_a_library_without_versions_says_that_a_day_has_no_effect(tmp_path, capsys):
    build_index(IndexConfig(source=[CODE[-1]], index_folder=str(tmp_path), index_name="plain", n_bits=0))
    place, said = ["--index-folder", tmp_path, "--index-name", "plain"], "Cet index n'a pas de versions d'articles"
    for command in (["lookup", "DECISION-1"], ["search", "délai de prévenance"]):
        assert run(capsys, *command, *place, "--at", "2012-03-03")[1].err.count(said) == 1
        assert said not in run(capsys, *command, *place)[1].err
    assert lr.ask(lr.open(tmp_path / "plain"), "délai de prévenance", at="2012-03-03").notice.count(said) == 1


SYNTEC = {"text_title": "Convention collective nationale Syntec", "text_id": "K1"}
HOTELS = {"text_title": "Convention collective nationale des hôtels, cafés, restaurants (HCR)", "text_id": "K2"}


@pytest.fixture(scope="module")
def agreements(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreements")
    source = [
        article(21, "34", "Le préavis est de trois mois.", HOTELS),
        article(22, "34", "La possession vaut titre."),
        *OTHERS,
    ]
    build_index(IndexConfig(source=source, index_folder=str(folder), index_name="one", n_bits=0))
    source.append(article(23, "34", "Le préavis Syntec est de six mois.", SYNTEC))
    build_index(IndexConfig(source=source, index_folder=str(folder), index_name="both", n_bits=0))
    return folder


@pytest.mark.parametrize("question", ["{}", "Que dit l'{} sur le préavis ?"])
def test_no_article_of_another_agreement_or_law_is_shown_as_the_one_asked_for(agreements, question):
    one, both = lr.open(agreements / "one"), lr.open(agreements / "both")
    syntec, law = question.format("article 34 de la convention collective Syntec"), "article 22 de la loi Machin"
    lacks = "de cet index n'a dans son titre le nom demandé :"
    for asked, namesakes, said in (
        (syntec, (21, 22), f"Aucun article 34 {lacks} convention collective Syntec."),
        (question.format(law), (9, 10), f"Aucun article 22 {lacks} loi Machin."),
    ):
        hits, answer = lr.search(one, asked, mode="bm25"), lr.ask(one, asked)
        assert (hits.remarks[0], said in answer.notice) == (said, True)
        assert answer.grade in ("unsure", None)  # None: it abstains
        shown = {*quoted(answer), *(hit.doc_id for hit in hits)}
        assert not shown & {f"LEGIARTI8{number:011}" for number in namesakes}
        with pytest.raises(LookupError, match="n'a dans son titre"):
            resolve_id(asked, one)
    for asked, expected in ((syntec, 23), (question.format("article 34 de la convention collective HCR"), 21)):
        hits, answer = lr.search(both, asked, mode="bm25"), lr.ask(both, asked)
        assert [hits[0].doc_id, quoted(answer)[0], resolve_id(asked, both)] == [f"LEGIARTI8{expected:011}"] * 3
        assert not any("n'a dans son titre" in said for said in (*hits.remarks, answer.notice or ""))
    mine = lr.ask(both, question.format("article 34 de mon contrat"))
    assert mine.notice is None


@pytest.mark.parametrize(
    "named", ["article 99 de la loi n° 89-462", "article 99 de la loi du 6 juillet 1989", "article 9999 du code civil"]
)
def test_an_article_that_an_indexed_text_lacks_is_said_to_be_absent(others, named):
    library, said = lr.open(others / "civil"), "Ce corpus n'a pas l'article demandé : 99"
    answer = lr.ask(library, f"Que dit l'{named} ?")
    assert (said in answer.notice, answer.grade in ("unsure", None)) == (True, True)
    assert lr.search(library, named, mode="bm25").remarks[0].startswith(said)
    with pytest.raises(LookupError, match=said):
        resolve_id(named, library)


def test_an_article_of_a_text_that_is_not_indexed_is_not_said_to_be_absent(others):
    answer = lr.ask(lr.open(others / "civil"), "Que dit l'article L. 9999-1 du code de commerce ?")
    assert "n'a pas l'article" not in (answer.notice or "")


def test_articles_of_laws_are_read_without_their_word(others):
    hits = lr.search(lr.open(others / "civil"), "22 de la loi 89-462 et 22 de la loi n° 66-879", mode="bm25")
    assert hits.remarks[0] == "Ce corpus n'a pas l'article demandé : 22 de la loi n° 66-879."
    assert [hit.doc_id for hit in hits] == ["LEGIARTI800000000010"]


def test_an_ambiguous_article_is_answered_with_the_titles_of_its_texts(others, capsys):
    status, (_, err) = run(capsys, "lookup", "--index-folder", others, "--index-name", "civil", "article 22")
    assert status == 1
    assert "« LEGIARTI800000000010 » (Loi n° 89-462 du 6 juillet 1989 tendant à améliorer les rapports" in err
