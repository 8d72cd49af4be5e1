"""What became of a decision, and its case; only what texts of the Library say."""

import json
import sqlite3
from contextlib import closing

import pytest
from support.small_graphs import document_of, library_of

from legal_rag.agent.event_log import EventLog
from legal_rag.citations.checks import Citation
from legal_rag.citations.enricher import EnrichedResponse
from legal_rag.cli import main
from legal_rag.corpus.documents import document_of_row
from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.fates import (
    NO_LATER,
    chronology,
    fates_of,
    history_in_french,
    read_effects,
    standing_in_french,
    steps_in_french,
)
from legal_rag.indexer import IndexConfig, add_documents, compact_index, examine, remove_documents
from legal_rag.library.filters import Filters, UnsupportedFilterError
from legal_rag.library.library import Library
from legal_rag.library.manifest import record_checksums
from legal_rag.retriever.retriever import Retriever

PARTIES = "Mme Aline Orsini c/ société Valdor"
FIRST = {
    "id": "TJ",
    "title": "TJ de Lille, 12 mai 2014, 13/00456",
    "decision_date": "2014-05-12",
    "juridiction": "Tribunal judiciaire de Lille",
    "number": "13/00456",
    "content": f"TRIBUNAL JUDICIAIRE DE LILLE, 12 mai 2014, n° RG 13/00456. {PARTIES}. PAR CES MOTIFS, le tribunal "
    "condamne la société Valdor.",
}
DOUAI = {
    "id": "CAD",
    "title": "Cour d'appel de Douai, 21 juin 2017, 15/02468",
    "decision_date": "2017-06-21",
    "juridiction": "Cour d'appel de Douai",
    "number": "15/02468",
    "content": f"COUR D'APPEL DE DOUAI, 21 juin 2017, n° RG 15/02468. {PARTIES}. Décision déférée à la cour : Jugement "
    "du 12 mai 2014 du tribunal judiciaire de Lille - RG n° 13/00456. PAR CES MOTIFS, la cour : Confirme le jugement ;",
}
HEADS = "CASSE ET ANNULE, mais seulement en ce qu'il fixe la prime, l'arrêt rendu le 21 juin 2017"
SOC = {
    "id": "SOC",
    "title": "Cour de cassation, chambre sociale, 12 mars 2019, 17-31.442",
    "decision_date": "2019-03-12",
    "juridiction": "Cour de cassation",
    "formation": "Chambre sociale",
    "solution": "Cassation partielle",
    "number": "17-31.442",
    "content": f"COUR DE CASSATION\n\nAudience publique du 12 mars 2019\n\nArrêt n° 1153 FS-P+B\n\nPourvoi n° C "
    f"17-31.442\n\n{PARTIES} a formé le pourvoi contre l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai (n° "
    f"RG 15/02468).\n\nPAR CES MOTIFS, la Cour :\n\n{HEADS}, entre les parties, par la cour d'appel de Douai ;\n\n"
    "Remet, sur ce point, l'affaire et les parties dans l'état où elles se trouvaient avant cet arrêt et les renvoie "
    "devant la cour d'appel d'Amiens ;",
}
AMIENS = {
    "id": "CAM",
    "title": "Cour d'appel d'Amiens, 4 mai 2021, 19/03333",
    "decision_date": "2021-05-04",
    "juridiction": "Cour d'appel d'Amiens",
    "number": "19/03333",
    "content": f"COUR D'APPEL D'AMIENS, 4 mai 2021, n° RG 19/03333. {PARTIES}. Sur renvoi après cassation. Par "
    "arrêt du 12 mars 2019, la Cour de cassation a cassé partiellement l'arrêt rendu le 21 juin 2017 par la cour "
    "d'appel de Douai. Décision déférée à la cour : Jugement du 12 mai 2014 du tribunal judiciaire de Lille - RG n° "
    "13/00456.\n\n"
    "PAR CES MOTIFS, la cour : Infirme le jugement en ce qu'il fixe la prime ;",
}
CASE = (FIRST, DOUAI, SOC, AMIENS)


@pytest.fixture
def case(tmp_path, tiny_encoder):
    return KnowledgeGraph(library_of(tmp_path, CASE, tiny_encoder))


def kinds(graph, doc_id):
    return [(fate.kind, fate.by_id) for fate in fates_of(graph, doc_id)]


def test_a_decision_quashed_in_part_says_by_what_which_heads_and_where_the_case_goes(case):
    (fate,) = fates_of(case, "CAD")
    assert (fate.kind, fate.by_id, fate.day, fate.referred_to) == (
        "quashed_in_part",
        "SOC",
        "2019-03-12",
        "cour d'appel d'Amiens",
    )
    assert fate.words.startswith(HEADS)
    assert case.library.document(fate.doc_id).content[fate.char_start : fate.char_end].startswith(HEADS)
    assert standing_in_french([fate]).startswith("cassé en partie par Cass.\u00a0soc., 12\u00a0mars\u00a02019")


def test_a_case_runs_from_first_instance_to_remand(case):
    steps = chronology(case, "CAD")
    assert [(step.stage, step.doc_id) for step in steps] == [
        ("première instance", "TJ"),
        ("appel", "CAD"),
        ("cassation", "SOC"),
        ("renvoi", "CAM"),
    ]
    assert steps == chronology(case, "TJ")
    assert "statue sur renvoi après Cass.\u00a0soc." in steps_in_french(steps)[-1]


def test_a_confirmed_judgment_stands_and_one_reversed_in_part_does_not(case):
    assert kinds(case, "TJ") == [("confirmed", "CAD"), ("reversed_in_part", "CAM")]
    assert kinds(case, "SOC") == []
    assert history_in_french(case, "CAM")[0].startswith("Chronologie de l'affaire, à la connaissance de cet index")


def test_a_ruling_that_was_itself_quashed_makes_nothing_fall(tmp_path, tiny_encoder):
    reversing = {**DOUAI, "content": DOUAI["content"].replace("Confirme le jugement", "Infirme le jugement")}
    quashed = {**SOC, "content": SOC["content"].replace("mais seulement en ce qu'il fixe la prime", "en entier")}
    graph = KnowledgeGraph(library_of(tmp_path, [FIRST, reversing, {**quashed, "solution": "Cassation"}], tiny_encoder))
    (fate,) = fates_of(graph, "TJ")
    assert fate.kind == "reversed"
    assert fate.undone_by.startswith("cassé par Cass.\u00a0soc.")
    assert not fate.is_fall


def test_nothing_known_is_said_to_be_no_more_than_that(tmp_path, tiny_encoder):
    graph = KnowledgeGraph(library_of(tmp_path, [FIRST], tiny_encoder))
    assert fates_of(graph, "TJ") == []
    assert history_in_french(graph, "TJ") == [NO_LATER]


def test_a_decision_known_by_reference_only_is_a_step_without_a_document(tmp_path, tiny_encoder):
    graph = KnowledgeGraph(library_of(tmp_path, [SOC], tiny_encoder))
    first, last = chronology(graph, "SOC")
    assert (first.doc_id, first.day, first.stage) == ("", "2017-06-21", "appel")
    assert last.doc_id == "SOC"


def test_a_number_is_shown_as_the_text_writes_it(tiny_encoder, tmp_path):
    graph = KnowledgeGraph(library_of(tmp_path, (DOUAI,), tiny_encoder))
    (first,) = graph.described("TJ Lille", "2014-05-12")
    assert first.name.replace("\xa0", " ") == "tribunal judiciaire de Lille, 12 mai 2014, n° 13/00456"


def test_a_rejection_is_told_in_the_words_of_the_operative_part_alone(tiny_encoder, tmp_path):
    reasons = (
        "Le moyen n'est donc pas fondé.\n\nPAR CES MOTIFS, la Cour :\n\nREJETTE le pourvoi ;\n\nLaisse les dépens."
    )
    content = SOC["content"].partition("PAR CES MOTIFS")[0] + reasons
    rejecting = SOC | {"solution": "Rejet", "content": content}
    (fate,) = fates_of(KnowledgeGraph(library_of(tmp_path, (DOUAI, rejecting), tiny_encoder)), "CAD")
    assert (fate.kind, fate.words) == ("upheld", "REJETTE le pourvoi")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Confirme le jugement en toutes ses dispositions ;", "confirmed"),
        ("Infirme le jugement déféré et, statuant à nouveau, déboute Mme Orsini ;", "reversed"),
        ("Réforme le jugement seulement en ce qu'il fixe la prime ;", "reversed_in_part"),
        ("Confirme le jugement sauf en ce qu'il fixe la prime ;", "reversed_in_part"),
        ("Reçoit l'appel, au fond infirme le jugement sur la prime, le confirme pour le surplus ;", "reversed_in_part"),
        ("Réformant dans la mesure utile le jugement entrepris, condamne la société ;", "reversed_in_part"),
        ("Déboute la société de son appel ;", "confirmed"),
        ("Sursoit à statuer ;", None),
    ],
)
def test_what_a_court_of_appeal_does_is_read_in_its_whole_operative_part(words, expected):
    row = {**DOUAI, "content": DOUAI["content"].replace("Confirme le jugement ;", words)}
    assert [effect.kind for effect in read_effects(document_of(row))] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("narration", "expected"),
    [
        ("Par jugement du 12 mai 2014, le tribunal judiciaire de Lille a rejeté la demande.", "2014-05-12"),
        ("Le tribunal judiciaire de Lille a, par jugement du 12 mai 2014, rejeté la demande.", "2014-05-12"),
        (
            "Par jugement du 3 mai 2013, le tribunal judiciaire de Lille a ordonné une expertise. Par jugement du 12 "
            "mai 2014, le tribunal judiciaire de Lille a statué. Mme Orsini a interjeté appel de ce jugement.",
            "2014-05-12",
        ),
        ("Le tribunal judiciaire de Lille a jugé l'accident survenu le 12 mai 2014.", None),
        ("Il est écrit : « Par jugement du 12 mai 2014, le tribunal judiciaire de Lille a statué. »", None),
    ],
)
def test_the_judgment_may_be_named_in_the_narration_alone(narration, expected):
    content = f"COUR D'APPEL DE DOUAI. {PARTIES}.\n\n{narration}\n\nPAR CES MOTIFS, la cour : Confirme le jugement ;"
    effects = read_effects(document_of({**DOUAI, "content": content}))
    assert [effect.day for effect in effects] == ([expected] if expected else [])


def test_the_cour_de_cassation_names_the_decision_by_its_town():
    content = (
        "Attendu, selon l'arrêt attaqué (Aix-en-Provence, 9 novembre 2016), que la société a été contrôlée ;\n\n"
        "PAR CES MOTIFS :\n\nREJETTE le pourvoi ;"
    )
    (effect,) = read_effects(document_of({**SOC, "solution": "Rejet", "content": content}))
    assert (effect.kind, effect.court, effect.day) == ("upheld", "cour d'appel d'Aix-en-Provence", "2016-11-09")


def test_columns_name_the_decision_below_where_the_text_does_not():
    lower = {"lower_court": "Cour d'appel de Douai", "lower_date": "2017-06-21", "lower_number": "15/02468"}
    content = "PAR CES MOTIFS :\n\nCASSE ET ANNULE, en toutes ses dispositions, l'arrêt attaqué ;"
    (effect,) = read_effects(document_of_row({**SOC, **lower, "content": content, "solution": "Cassation"}))
    assert (effect.kind, effect.day, effect.number) == ("quashed", "2017-06-21", "15/2468")


def test_a_search_may_leave_out_what_fell_and_what_is_not_published(case, tiny_encoder):
    retriever = Retriever(case.library, tiny_encoder)

    def found(**conditions):
        hits = retriever.search("la prime", 20, by_document=True, filters=Filters(**conditions))
        return {hit.doc_id for hit in hits}

    assert found(standing=True) == {"SOC", "CAM"}
    assert found(published=True) == {"SOC"}
    assert found(standing=True, published=True) == {"SOC"}


def standing(library):
    return set(Library(library.path).ids(Filters(standing=True)))


def test_what_fell_is_stored_with_each_commit_and_a_reader_before_keeps_answering(tmp_path, tiny_encoder):
    before = library_of(tmp_path, [FIRST, DOUAI], tiny_encoder)
    place = {"index_folder": str(before.path.parent), "index_name": before.path.name}
    assert standing(before) == {"TJ", "CAD"}
    add_documents(IndexConfig(source=[SOC], **place), tiny_encoder)
    assert standing(before) == {"TJ", "SOC"}
    assert set(before.ids(Filters(standing=True))) <= {"TJ", "CAD"}
    undone = {
        **SOC,
        "id": "RABAT",
        "number": "19-10.001",
        "title": "Cour de cassation, chambre sociale, 2 octobre 2019, 19-10.001",
        "decision_date": "2019-10-02",
        "content": "COUR DE CASSATION\n\nAudience du 2 octobre 2019\n\nPourvoi n° 19-10.001\n\nPAR CES MOTIFS, "
        "la Cour :\n\nRABAT l'arrêt n° 17-31.442 rendu le 12 mars 2019 par la Cour de cassation, chambre sociale ;",
    }
    add_documents(IndexConfig(source=[undone], **place), tiny_encoder)
    library = Library(before.path)
    graph = KnowledgeGraph(library)
    assert standing(library) == {doc_id for doc_id in library if not standing_in_french(fates_of(graph, doc_id))}
    remove_documents(["SOC", "RABAT"], **place)
    assert standing(before) == {"TJ", "CAD"}
    compact_index(**place)
    assert standing(before) == {"TJ", "CAD"}


@pytest.mark.parametrize(
    ("filters", "name", "part", "left"),
    [
        (Filters(standing=True), "standing", "graph", {"SOC", "CAM"}),
        (Filters(published=True), "published", "words", {"SOC"}),
    ],
)
def test_a_library_of_an_earlier_version_says_what_stores_a_filter(
    tmp_path, tiny_encoder, capsys, filters, name, part, left
):
    library = library_of(tmp_path, CASE, tiny_encoder)
    place = ["--index-folder", str(library.path.parent), "--index-name", library.path.name]
    without_filters(library)
    with pytest.raises(UnsupportedFilterError, match=f"{name}: not stored .*'legal-rag rebuild --only {part}'"):
        Library(library.path).ids(filters)
    assert main(["rebuild", "--only", part, *place]) == 0
    assert set(Library(library.path).ids(filters)) == left
    assert examine(Library(library.path)) == []
    without_filters(library)
    assert main(["compact", *place]) == 0
    assert set(Library(library.path).ids(filters)) == left


def without_filters(library):
    with closing(sqlite3.connect(library.path / "corpus.sqlite")) as connection:
        connection.executescript(
            "DROP TABLE IF EXISTS published; DROP TABLE IF EXISTS fallen; DROP TABLE IF EXISTS fallen_at"
        )
    record_checksums(library.path, "corpus.sqlite")


def test_a_library_of_an_earlier_version_does_not_pass_for_one_of_which_only_what_was_added_is_published(
    tmp_path, tiny_encoder
):
    library = library_of(tmp_path, [FIRST, DOUAI], tiny_encoder)
    place = {"index_folder": str(library.path.parent), "index_name": library.path.name}
    without_filters(library)
    add_documents(IndexConfig(source=[SOC], **place), tiny_encoder)
    with pytest.raises(UnsupportedFilterError, match="published: not stored"):
        Library(library.path).ids(Filters(published=True))
    assert standing(library) == {"TJ", "SOC"}


def test_a_commit_cut_off_before_it_stored_what_fell_says_so(tmp_path, tiny_encoder, monkeypatch):
    library = library_of(tmp_path, [FIRST, DOUAI], tiny_encoder)
    place = {"index_folder": str(library.path.parent), "index_name": library.path.name}

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("legal_rag.indexer.commit.store_fallen", killed)
        with pytest.raises(KeyboardInterrupt):
            add_documents(IndexConfig(source=[SOC], **place), tiny_encoder)
    with pytest.raises(UnsupportedFilterError, match="standing: not stored at this commit"):
        standing(library)
    assert main(["rebuild", "--only", "graph", "--index-folder", place["index_folder"],
                 "--index-name", place["index_name"]]) == 0  # fmt: skip
    assert standing(library) == {"TJ", "SOC"}


def test_lookup_and_search_say_what_became_of_a_decision(tmp_path, tiny_encoder, capsys):
    path = library_of(tmp_path, CASE, tiny_encoder).path
    place = ["--index-folder", str(path.parent), "--index-name", path.name]
    assert main(["lookup", "CAD", *place]) == 0
    out = capsys.readouterr().out
    assert "⚠ Cassé en partie par Cass. soc., 12 mars 2019" in out
    assert "renvoi : " in out
    assert main(["lookup", "CAD", "--json", *place]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["fate"].startswith("cassé en partie par")
    assert [fate["kind"] for fate in record["fates"]] == ["quashed_in_part"]
    assert [step["doc_id"] for step in record["case"]] == ["TJ", "CAD", "SOC", "CAM"]
    assert main(["lookup", "SOC", *place]) == 0
    assert main(["graph", "show", "CAD", *place]) == 0
    assert "⚠ Cassé en partie par" in capsys.readouterr().out


def test_a_library_without_a_graph_has_no_fates(tmp_path, tiny_encoder):
    library = library_of(tmp_path, [DOUAI], tiny_encoder)
    (library.path / "graph.sqlite").unlink()
    place = {"index_folder": str(library.path.parent), "index_name": library.path.name}
    add_documents(IndexConfig(source=[SOC], **place), tiny_encoder)
    with pytest.raises(UnsupportedFilterError, match="standing: not stored at this commit"):
        Retriever(Library(library.path), tiny_encoder).search("la prime", filters=Filters(standing=True))


def test_an_answer_that_cites_a_decision_quashed_since_says_so(case):
    cited = Citation("CAD", 0, 20, case.library.document("CAD").content[:20], "verified")
    log = EventLog()
    log.read(case.library.document("CAD"))
    answer = EnrichedResponse("…", [cited], [], [], 1.0, abstained=False)
    given = log.prediction("la prime ?", answer, case.library, mode="agent", status="answered", notice=None)
    assert given.notice.startswith("Attention : CA Douai, 21 juin 2017, n° 15/02468 a été cassé en partie par")
    (document,) = given.documents
    assert document.fate in given.notice
    assert document.fate in document.facts
    assert given.to_json()["documents"][0]["fate"] == document.fate


def test_a_precedent_quashed_elsewhere_makes_no_remand():
    cited = "Par arrêt du 12 mars 2019, la Cour de cassation a cassé un arrêt. Sur renvoi du juge de la mise en état."
    row = {
        **AMIENS,
        "content": f"COUR D'APPEL D'AMIENS. {PARTIES}.\n\n{cited}\n\nPAR CES MOTIFS, la cour : Ordonne une expertise ;",
    }
    assert read_effects(document_of(row)) == []


def test_a_roll_number_names_a_decision_and_a_pourvoi_behind_a_day_the_quashing_that_is_indexed(tmp_path, tiny_encoder):
    below = {
        "id": "CA1", "title": "Cour d'appel de Lyon, 14 septembre 2017, 15/02468", "decision_date": "2017-09-14",
        "juridiction": "Cour d'appel de Lyon", "number": "15/02468", "content": "COUR D'APPEL DE LYON\nN° RG 15/02468",
    }  # fmt: skip
    quashing = {
        "id": "CASS1", "title": "Cour de cassation, sociale, 22 janvier 2020, 17-28.345", "decision_date": "2020-01-22",
        "juridiction": "Cour de cassation", "number": "17-28345", "content": "LA COUR DE CASSATION a rendu l'arrêt.",
    }  # fmt: skip
    remand = below | {
        "id": "CA2", "title": "Cour d'appel de Grenoble, 9 novembre 2021, 20/00812", "decision_date": "2021-11-09",
        "juridiction": "Cour d'appel de Grenoble", "number": "20/00812", "content": REMAND,
    }  # fmt: skip
    graph = KnowledgeGraph(library_of(tmp_path, [below, quashing, remand], tiny_encoder))
    assert graph.find("n° 15/02468").doc_id == "CA1"
    assert [step.doc_id for step in chronology(graph, "CA2") if step.stage == "cassation"] == ["CASS1"]


def test_a_decision_known_by_day_and_by_number_is_one_step_of_its_case(tmp_path, tiny_encoder):
    remand = {
        "id": "CA2", "title": "Cour d'appel de Grenoble, 9 novembre 2021, 20/00812", "decision_date": "2021-11-09",
        "juridiction": "Cour d'appel de Grenoble", "number": "20/00812", "content": REMAND,
    }  # fmt: skip
    content = (
        "COUR DE CASSATION\n\nStatuant sur le pourvoi n° Y 21-25.111 formé par la société Valdor contre l'arrêt rendu"
        " le 9 novembre 2021 par la cour d'appel de Grenoble (n° RG 20/00812).\n\nSelon l'arrêt attaqué (Grenoble,"
        " 9 novembre 2021), rendu sur renvoi après cassation (Soc., 22 janvier 2020, pourvoi n°"
        " 17-28.345), la salariée a été licenciée.\n\nPAR CES MOTIFS, la Cour :\n\nREJETTE le pourvoi ;"
    )
    columns = {"juridiction": "Cour de cassation", "formation": "Chambre sociale", "solution": "Rejet"}
    again = {**SOC, **columns, "id": "SOC2", "title": "", "decision_date": "2023-03-01", "number": "21-25.111",
             "content": content}  # fmt: skip
    twin = {**again, "id": "SOC2-BIS"}  # the same decision, published twice
    graph = KnowledgeGraph(library_of(tmp_path, [remand, again, twin], tiny_encoder))
    for name in ("CA2", "SOC2-BIS"):
        steps = chronology(graph, name)
        assert [(step.stage, step.day) for step in steps if step.stage != "appel"] == [
            ("cassation", "2020-01-22"), ("renvoi", "2021-11-09"), ("cassation", "2023-03-01")
        ]  # fmt: skip
        keys = [step.key for step in steps]
        assert {key for step in steps for _, key in step.rules} <= set(keys)
        assert f"doc:{name}" in keys


REMAND = """N° RG 20/00812
COUR D'APPEL DE GRENOBLE
ARRÊT DU 9 NOVEMBRE 2021

suivant saisine du 18 février 2020 sur renvoi après cassation de l'arrêt rendu le 14 septembre 2017 par la cour d'appel
de Lyon par un arrêt de la Cour de cassation du 22 janvier 2020 (pourvoi n° P 17-28.345)

PAR CES MOTIFS
La cour, statuant sur renvoi après cassation,
INFIRME le jugement ;
"""


FALLEN_IN_PART = "cassé en partie par Cass. soc., 12 mars 2019"


def test_the_tools_of_other_programs_say_of_a_decision_that_it_has_fallen(case):
    from legal_rag.mcp_server import LegalTools

    tools = LegalTools([case.library])
    found = {hit.decision.doc_id: hit.decision.fate for hit in tools.search("société Valdor", k=4).hits}
    assert found["CAD"].startswith(FALLEN_IN_PART)
    assert found["CAM"] == ""
    assert tools.lookup("CAD").decision.fate == found["CAD"]
    assert tools.outline("CAD").remark == found["CAD"]
    assert tools.entities("CAD").remark.startswith(f"{found['CAD']} ; classes : ")
    assert tools.document(case.library.path.name, "CAD").startswith(f"Sort : {FALLEN_IN_PART}")
    assert tools.document(case.library.path.name, "CAM").startswith("Décision : CAM")


def test_the_programs_of_a_deep_read_are_told_of_a_decision_that_it_has_fallen(case):
    from legal_rag.corpus_index.building import CorpusIndexer
    from legal_rag.corpus_index.index import CorpusIndex
    from legal_rag.deep_read.functions import MultiDocREPL

    CorpusIndexer(case.library).build_corpus_index()
    functions = MultiDocREPL(CorpusIndex.open(case.library))
    fate = functions.get_doc_meta("CAD")["fate"]
    assert fate.replace("\xa0", " ").startswith(FALLEN_IN_PART)
    assert {doc_id: meta["fate"] for doc_id, meta in functions.get_doc_metas(["CAD", "CAM"]).items()} == {
        "CAD": fate,
        "CAM": "",
    }
    assert {hit["doc_id"]: hit["fate"] for hit in functions.search_passages("société Valdor")}["CAD"] == fate
