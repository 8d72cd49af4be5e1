"""What decisions do to others: read in their texts, and found from the decision below where that is certain."""

import pytest
from support.small_graphs import document_of, library_of

from legal_rag.graph import KnowledgeGraph
from legal_rag.graph.facts import text_facts

CASSATION = {
    "id": "SOC",
    "title": "Cour de cassation, chambre sociale, 12 mars 2019, 17-31.442",
    "decision_date": "2019-03-12",
    "juridiction": "Cour de cassation",
    "formation": "Chambre sociale",
    "solution": "Cassation",
    "number": "17-31.442",
    "content": "COUR DE CASSATION, 12 mars 2019, pourvoi n° 17-31.442. Mme Orsini c/ société Valdor. LA COUR, sur "
    "le moyen unique ; PAR CES MOTIFS : CASSE ET ANNULE l'arrêt rendu le 21 juin 2017, entre les "
    "parties, par la cour d'appel de Douai.",
}
DOUAI = {
    "id": "CAD",
    "title": "Cour d'appel de Douai, 21 juin 2017, 15/02468",
    "decision_date": "2017-06-21",
    "juridiction": "Cour d'appel de Douai",
    "formation": "Chambre sociale",
    "solution": "Confirmation",
    "number": "15/02468",
    "content": "COUR D'APPEL DE DOUAI, 21 juin 2017, n° RG 15/02468. Mme Orsini c/ société Valdor. MOTIFS : la "
    "prime est un salaire. PAR CES MOTIFS, la cour confirme le jugement.",
}
NANTES = {
    "id": "CAA",
    "title": "CAA de Nantes, 14 mai 2020, 19NT04321",
    "decision_date": "2020-05-14",
    "juridiction": "Cour administrative d'appel de Nantes",
    "number": "19NT04321",
    "content": "COUR ADMINISTRATIVE D'APPEL DE NANTES, 14 mai 2020, n° 19NT04321. DÉCIDE : Article 1er : La "
    "requête est rejetée.",
}
COUNCIL = {
    "id": "CE",
    "title": "Conseil d'État, 3 juin 2021, 498765",
    "decision_date": "2021-06-03",
    "juridiction": "Conseil d'État",
    "solution": "Rejet",
    "number": "498765",
    "content": "CONSEIL D'ÉTAT, 3 juin 2021, n° 498765.\n\nVu la procédure suivante :\n\nM. Keralun a demandé "
    "l'annulation du permis. Par un jugement n° 1701234 du 3 mars 2018, le tribunal administratif de "
    "Rennes a rejeté sa demande.\n\nPar un arrêt n° 19NT04321 du 14 mai 2020, la cour administrative "
    "d'appel de Nantes a rejeté son appel.\n\nPar un pourvoi, M. Keralun demande au Conseil d'Etat "
    ":\n\n1°) d'annuler cet arrêt ;\n\nD E C I D E :\n\nArticle 1er : Le pourvoi de M. Keralun est "
    "rejeté.",
}
ELECTION = {
    "id": "AN1",
    "title": "Décision n° 93-1213 AN du 8 juin 1993",
    "decision_date": "1993-06-08",
    "juridiction": "Conseil constitutionnel",
    "solution": "Rejet",
    "number": "93-1213",
    "nature": "AN",
    "content": "Le Conseil constitutionnel, Décide : Article premier : La requête est rejetée.",
}
CORRECTION = {
    "id": "AN1R",
    "title": "A.N., Paris",
    "decision_date": "1993-12-01",
    "juridiction": "Conseil constitutionnel",
    "solution": "Rectification d'erreur matérielle",
    "number": "93-1213R",
    "nature": "AN",
    "content": "Le Conseil constitutionnel,\n\nVu la décision n° 93-1213 rendue par le Conseil constitutionnel le "
    "8 juin 1993 ;\n\nVu la décision n° 93-1210 rendue par le Conseil constitutionnel le 1er juin 1993 "
    ";\n\nDécide :\n\nArticle premier :\n\nDans les visas de la décision susvisée en date du 8 juin "
    "1993, le mot « Tarn » est remplacé par le mot « Gers ».",
}


def rulings(row, **changes):
    kinds = ("overrules", "upholds", "rectifies", "interprets")
    facts = text_facts(document_of({**row, **changes}))
    named = [(fact.source.key, fact.type, fact.target.key) for fact in facts if fact.type in kinds]
    return {(source.rpartition(":")[2], kind, target.rpartition(":")[2]) for source, kind, target in named}


def details(row):
    return [fact.detail for fact in text_facts(document_of(row)) if fact.type in ("overrules", "upholds")]


def ruled(row, words):
    """Return a decision whose operative part has these words."""
    return {**row, "content": f"{row['content'].partition('PAR CES MOTIFS')[0]}PAR CES MOTIFS :\n\n{words}"}


@pytest.mark.parametrize(
    ("solution", "words", "expected"),
    [
        ("Cassation", "CASSE ET ANNULE l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai.", "overrules"),
        (
            "",
            "CASSE ET ANNULE, en toutes ses dispositions, l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai ;",
            "overrules",
        ),
        (
            "Rejet",
            "REJETTE le pourvoi formé contre l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai.",
            "upholds",
        ),
    ],
)
def test_the_operative_part_alone_names_the_decision_below(solution, words, expected):
    below = "appel douai 2017-06-21 @SOC"
    assert rulings(ruled(CASSATION, words), solution=solution) == {("SOC", expected, below)}


@pytest.mark.parametrize(
    "words",
    [
        "CASSE ET ANNULE l'arrêt attaqué.",
        "CASSE ET ANNULE l'arrêt rendu par la cour d'appel de Douai.",
        "CASSE ET ANNULE l'arrêt rendu le 21 juin 2017.",
        "RENVOIE l'affaire devant la cour d'appel de Douai, qui a statué le 21 juin 2017.",
        "CASSE ET ANNULE, en ce qu'il confirme le jugement rendu le 3 mai 2014 par le tribunal de commerce de "
        "Lille, l'arrêt susvisé de la cour d'appel de Douai.",
    ],
)
def test_a_decision_below_that_is_not_named_by_court_and_day_is_not_guessed(words):
    assert rulings(ruled(CASSATION, words)) == set()


def test_each_of_two_decisions_below_has_what_its_own_statement_says():
    row = ruled(
        CASSATION,
        "REJETTE le pourvoi formé contre l'arrêt rendu le 3 mai 2016 par la cour d'appel de Douai ;\n\nCASSE ET "
        "ANNULE, mais seulement en ce qu'il fixe la prime, l'arrêt rendu le 21 juin 2017 par la cour d'appel de "
        "Douai ;",
    )
    assert rulings(row) == {
        ("SOC", "upholds", "appel douai 2016-05-03 @SOC"),
        ("SOC", "overrules", "appel douai 2017-06-21 @SOC"),
    }
    assert details(row)[0].startswith("CASSE ET ANNULE, mais seulement en ce qu'il fixe la prime")


def test_the_operative_part_prevails_over_the_term_that_the_source_gives():
    quashes = "CASSE ET ANNULE l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai ;"
    words = f"REJETTE le pourvoi de Mme Orsini ;\n\n{quashes}"
    assert rulings(ruled(CASSATION, words), solution="Rejet") == {("SOC", "overrules", "appel douai 2017-06-21 @SOC")}


def test_a_decision_that_is_quashed_on_one_pourvoi_is_quashed_though_the_other_is_rejected():
    below = "l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai"
    for words in (
        f"REJETTE le pourvoi de M. Petit formé contre {below} ;\n\nCASSE ET ANNULE l'arrêt attaqué ;",
        f"REJETTE le pourvoi de M. Petit formé contre {below} ;\n\nCASSE ET ANNULE {below} ;",
    ):
        assert rulings(ruled(CASSATION, words)) == {("SOC", "overrules", "appel douai 2017-06-21 @SOC")}


def test_a_quashing_in_part_keeps_its_words_and_one_in_full_those_of_the_source():
    words = (
        "CASSE ET ANNULE, sauf en ce qu'il fixe la prime, l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai ;"
    )
    assert details(ruled(CASSATION, words)) == [f"Cassation : {words.removesuffix(' ;')}"]
    assert details(CASSATION) == ["Cassation"]


@pytest.mark.parametrize(
    ("head", "number"),
    [
        (
            "Décision déférée à la Cour : Jugement du 12 mai 2014 du Tribunal de grande instance de LILLE - RG n° "
            "13/00456",
            "13/456",
        ),
        ("APPELANTE d'un jugement du Tribunal de grande instance de Lille en date du 12 mai 2014", "@CAD"),
    ],
)
def test_a_court_of_appeal_says_in_its_head_what_it_rules_on(head, number):
    row = {**DOUAI, "content": DOUAI["content"].replace("MOTIFS", f"{head}\n\nMOTIFS", 1)}
    assert rulings(row) == {("CAD", "upholds", f"lille tgi 2014-05-12 {number}")}
    other = row["content"].replace("confirme le jugement", "confirme le jugement du 3 mai 2013")
    assert rulings(row, content=other) == set()  # the two do not agree


def test_the_cour_de_cassation_names_the_parties_before_the_decision_below():
    below = "contre le jugement rendu le 1er août 2016 par le tribunal d'instance de Maubeuge, dans le litige."
    content = (
        f"Statuant sur le pourvoi formé par l'union CGT, dont le siège est [...],\n\n{below}\n\nREJETTE le pourvoi ;"
    )
    assert rulings(CASSATION, content=content, solution="Rejet") == {
        ("SOC", "upholds", "instance maubeuge 2016-08-01 @SOC")
    }


def test_the_council_of_state_rules_on_the_decision_that_it_was_asked_to_annul():
    assert rulings(COUNCIL) == {("CE", "upholds", "caa nantes 2020-05-14 19NT04321")}
    annulled = COUNCIL["content"].replace(
        "Le pourvoi de M. Keralun est rejeté",
        "L'arrêt du 14 mai 2020 de la cour administrative d'appel de Nantes est annulé",
    )
    assert rulings(COUNCIL, content=annulled, solution="") == {("CE", "overrules", "caa nantes 2020-05-14 19NT04321")}


def test_a_correction_names_what_it_corrects_and_its_refusal_nothing():
    assert rulings(CORRECTION) == {("AN1R", "rectifies", "constitutionnel 1993-06-08 1993-1213")}
    assert rulings(CORRECTION, solution="Rejet") == set()
    ruling = "Article 1er :\n\nLa décision n° 93-1213 AN du 8 juin 1993 est rectifiée comme suit : « Gers »."
    plain = f"Le Conseil constitutionnel,\n\nDécide :\n\n{ruling}"
    assert rulings(CORRECTION, solution="", content=plain) == rulings(CORRECTION)
    assert rulings(ELECTION) == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "RECTIFIE l'arrêt n° 245 du 6 février 2019 (pourvoi n° 17-31.442) ;",
            "rectifies cassation 2019-02-06 17-31442",
        ),
        ("ORDONNE la rectification de l'arrêt du 6 février 2019 ;", "rectifies cassation 2019-02-06 @SOC"),
        ("RABAT l'arrêt rendu le 3 mai 2018 par la Cour de cassation ;", "overrules cassation 2018-05-03 @SOC"),
        ("DIT que l'arrêt du 6 février 2019 doit être interprété en ce sens ;", "interprets cassation 2019-02-06 @SOC"),
        ("DIT n'y avoir lieu à rectification de l'arrêt du 6 février 2019 ;", ""),
        ("REJETTE la requête en rectification de l'arrêt du 6 février 2019 ;", ""),
    ],
)
def test_a_court_corrects_or_interprets_its_own_decision(words, expected):
    kind, _, below = expected.partition(" ")
    assert rulings(ruled(CASSATION, words), solution="") == ({("SOC", kind, below)} if kind else set())


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Par arrêt du 12 mars 2019, la Cour de cassation a cassé et annulé l'arrêt rendu le 21 juin 2017 par "
            "la cour d'appel de Douai.",
            ("cassation 2019-03-12 @R", "overrules", "appel douai 2017-06-21 @R"),
        ),
        (
            "L'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai (n° RG 15/02468) a été partiellement "
            "cassé par la Cour de cassation (Soc., 12 mars 2019, pourvoi n° 17-31.442).",
            ("17-31442", "overrules", "appel douai 2017-06-21 15/2468"),
        ),
        (
            "Le jugement du 3 mai 2014 du tribunal de commerce de Lille, confirmé par un arrêt de la cour d'appel "
            "de Douai du 21 juin 2017, a condamné la société.",
            ("appel douai 2017-06-21 @R", "upholds", "commerce lille 2014-05-03 @R"),
        ),
        ("La Cour de cassation n'a pas cassé l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai.", None),
        ("La société demande que soit cassé l'arrêt rendu le 21 juin 2017 par la cour d'appel de Douai.", None),
        ("Par arrêt du 12 mars 2019, la Cour de cassation a cassé cet arrêt.", None),
        ("La cour d'appel de Douai a infirmé, le 21 juin 2017, le jugement du 12 mai 2014.", None),
        (
            "Il est écrit : « Par arrêt du 12 mars 2019, la Cour de cassation a cassé l'arrêt rendu le 21 juin "
            "2017 par la cour d'appel de Douai. »",
            None,
        ),
    ],
)
def test_what_a_later_text_reports_plainly_is_known(sentence, expected):
    row = {
        "id": "R",
        "juridiction": "Cour d'appel d'Amiens",
        "decision_date": "2021-05-04",
        "content": f"FAITS\n\n{sentence}\n",
    }
    assert rulings(row) == ({expected} if expected else set())


def history(graph, doc_id):
    return [(edge.treatment, edge.source.doc_id, edge.target.doc_id) for edge in graph.rulings(doc_id)]


def linked(tmp_path, tiny_encoder, *rows):
    return KnowledgeGraph(library_of(tmp_path, rows, tiny_encoder))


def test_the_decision_below_finds_what_became_of_it(tmp_path, tiny_encoder):
    graph = linked(tmp_path, tiny_encoder, CASSATION, DOUAI, NANTES, COUNCIL, ELECTION, CORRECTION)
    assert history(graph, "CAD") == [("cassé par", "SOC", "CAD")]
    assert history(graph, "CAA") == [("pourvoi rejeté par", "CE", "CAA")]
    assert history(graph, "AN1") == [("rectifié par", "AN1R", "AN1")]
    assert history(graph, "SOC") == history(graph, "AN1R") == []
    (edge,) = graph.neighbours("SOC", direction="out", types=("overrules",))
    assert edge.target.doc_id == "CAD"
    assert [edge.type for edge in graph.path("SOC", "CAD")] == ["overrules"]


COLLEAGUE = DOUAI["content"].replace("Mme Orsini", "M. Petit")
OTHER_CASE = DOUAI["content"].replace("Mme Orsini c/ société Valdor", "M. Petit c/ société Brumeval")


@pytest.mark.parametrize(
    "rows",
    [
        [{**DOUAI, "content": OTHER_CASE}],
        [DOUAI, {**DOUAI, "id": "CAD2", "title": "", "number": "15/02469", "content": OTHER_CASE}],
        [{**DOUAI, "content": COLLEAGUE}],  # of the same employer
        [{**DOUAI, "decision_date": "2017-06-22"}],
        [{**DOUAI, "juridiction": "Cour d'appel de Rouen"}],
        [{**DOUAI, "content": DOUAI["content"].replace("Mme Orsini c/ société Valdor", "M. X... c/ Mme Y...")}],
    ],
)
def test_a_decision_that_may_be_another_has_no_known_history(tmp_path, tiny_encoder, rows):
    graph = linked(tmp_path, tiny_encoder, CASSATION, *rows)
    assert [history(graph, row["id"]) for row in rows] == [[] for _ in rows]


def test_of_two_decisions_of_one_court_and_day_the_number_tells(tmp_path, tiny_encoder):
    numbered = {
        **CASSATION,
        "content": CASSATION["content"].replace("21 juin 2017", "21 juin 2017 (n° RG 15/02468)"),
    }
    other = {**DOUAI, "id": "CAD2", "title": "", "number": "15/02469", "content": OTHER_CASE}
    graph = linked(tmp_path, tiny_encoder, numbered, DOUAI, other)
    assert history(graph, "CAD") == [("cassé par", "SOC", "CAD")]
    assert history(graph, "CAD2") == []
