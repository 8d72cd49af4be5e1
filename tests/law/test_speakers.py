"""Main parts and speakers: fictional decisions, a paragraph a line, each with the part and speaker a reader tells."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legal_rag.law.parts import main_parts, read_paragraphs
from legal_rag.law.tree import PART_KINDS, SPEAKERS

MARKED = sorted((Path(__file__).parent / "marked").glob("*.txt"))


def _expected(marked: Path) -> list[tuple[str, str, str]]:
    rows = (line.split("|", 1) for line in marked.read_text("utf-8").splitlines())
    return [(*marks.split(), words.strip()) for marks, words in rows]


@pytest.mark.parametrize("marked", MARKED, ids=lambda path: path.stem)
def test_parts_and_speakers_are_those_that_a_reader_tells(marked):
    expected = _expected(marked)
    text = "\n\n".join(words for _, _, words in expected)
    read = [
        (one.part, (one.speaker or "none") + "!" * one.censured, text[one.start : one.end])
        for one in read_paragraphs(text)
    ]
    assert read == expected


def test_a_decision_that_lost_its_line_breaks_is_cut_at_its_headings():
    text = (
        "COUR D'APPEL DE LIMOGES EXPOSÉ DU LITIGE : M. Charme a été blessé. SUR CE : Attendu que la faute est établie. "
        "PAR CES MOTIFS, la cour confirme le jugement."
    )
    parts = [
        (part.kind, text[part.start : part.end].split()[0]) for part in main_parts(read_paragraphs(text), len(text))
    ]
    assert parts == [("header", "COUR"), ("statement", "EXPOSÉ"), ("reasons", "SUR"), ("ruling", "PAR")]


def _read(text: str) -> list[tuple[str | None, str | None]]:
    return [(one.part, one.speaker) for one in read_paragraphs(text)]


HEAD, TAIL = "COUR D'APPEL DE LIMOGES\n", "\nPAR CES MOTIFS\nConfirme le jugement."


@pytest.mark.parametrize(
    ("account", "speakers"),
    [
        (  # claims over several paragraphs, until the court tells of the proceedings
            "EXPOSÉ DU LITIGE\nMme Saule soutient que le camion roulait vite.\nElle ajoute qu'il pleuvait.\n"
            "Jamais le chauffeur n'a freiné.\nL'ordonnance de clôture est intervenue le 3 mai 2004.",
            [None, "party", "party", "party", "court"],
        ),
        (  # a list belongs to the one who is announced
            "EXPOSÉ DU LITIGE\nM. Charme demande à la cour de :\n- condamner Mme Saule ;\n* 900 euros de frais ;\n"
            "Dire et juger que la faute est prouvée.",
            [None, "party", "party", "party", "party"],
        ),
        (
            "EXPOSÉ DU LITIGE\nPar jugement du 4 mai 2003, le tribunal a statué comme suit :\nCondamne Mme Saule ;\n"
            "* 12 000 euros au titre du préjudice moral,\nM. Charme a relevé appel de cette décision.",
            [None, "lower_court", "lower_court", "lower_court", "court"],
        ),
        (
            "EXPOSÉ DU LITIGE\nLe tribunal de Tulle a :\n"
            "- 9 000 euros au titre du préjudice moral de Mlle Houx, déduction faite des provisions\n"
            "a déclaré le jugement commun à la caisse ;\nIl a d'autre part ordonné une expertise.",
            [None, "lower_court", "lower_court", "lower_court", "lower_court"],
        ),
        (  # a name that stands alone between two lines of a sentence changes nothing
            "EXPOSÉ DU LITIGE\nLes appelants demandent que soit versé à Mlle\nY...\nla somme de 3 000 euros.",
            [None, "party", None, "party"],
        ),
        (  # what was filed is nobody's words
            "EXPOSÉ DU LITIGE\nVu l'ordonnance de clôture du 3 mai 2004 ;\n- les pièces produites ;",
            [None, None, None],
        ),
    ],
)
def test_a_statement_tells_claims_and_orders_over_several_paragraphs(account, speakers):
    assert _read(HEAD + account + "\nMOTIFS\nAttendu que l'appel est fondé." + TAIL)[1 : len(speakers) + 1] == [
        ("statement", speaker) for speaker in speakers
    ]


@pytest.mark.parametrize(
    ("reason", "speaker"),
    [
        ("Qu'il convient de réformer le jugement en ce qu'il a alloué 900 euros à M. Charme ;", "court"),
        ("Attendu que la Cour, réformant en cela le jugement déféré, retient l'entier droit de Mme Saule ;", "court"),
        ("Attendu qu'une offre d'indemnité doit être faite dans un délai de huit mois ;", "court"),
        ("M. Charme a déclaré qu'il marchait sur le trottoir lorsque la moto l'a heurté.", "party"),
        ("Considérant, d'autre part, qu'en vertu de l'article 9 du code, la preuve est libre ;", "text"),
        ("Attendu qu'en application de l'article 9 du code, M. Charme a réclamé le salaire ;", "court"),
        ("Attendu qu'il résulte de l'ensemble de ces éléments que la moto est impliquée ;", "court"),
        ("Considérant que, s'il affirme avoir voté, M. Charme n'en apporte pas la preuve ;", "court"),
        ("Le rejet du premier moyen rend sans portée la critique de la seconde branche.", "court"),
        ("La Commission nationale des comptes a rejeté son compte au motif qu'il était tardif.", "lower_court"),
        ("Attendu que l'État français demande d'imputer sa créance sur ce poste de préjudice ;", "party"),
        ("Par requête, le syndicat a saisi le tribunal de Limoges afin qu'il constate la fraude.", "court"),
        ("Considérant que la plainte vise le parti qui soutenait la candidature de Mme Saule ;", "court"),
        ("Considérant qu'il ne résulte pas de l'instruction, comme il le soutient, que le vote fut faussé ;", "court"),
        ("Attendu, selon le premier de ces textes, que tout jugement doit être motivé ;", "text"),
        ("L'article 9 du code fait obligation au syndicat de choisir un candidat.", "text"),
        (
            "Aux termes de l'article 9 du code : « Il convient de rejeter, dès lors qu'elles sont tardives, les "
            "requêtes des électeurs. »",
            "text",
        ),
        ("Attendu, dès lors, que le moyen par lequel il est fait grief à l'arrêt de se taire est inopérant ;", "court"),
        ("Vu l'ordonnance de radiation du 11 décembre 2006 ;", None),
        ("Vu les conclusions déposées le 8 mars 2005 par Mme Saule ;", None),
        ("Sur le remboursement des salaires de la société C.M.I.D.", None),
        ("Mme Saule invoque la prescription. Le contrat fut rompu en mai ; l'action fut exercée en juin.", "court"),
    ],
)
def test_a_reason_is_its_courts_unless_it_reports(reason, speaker):
    assert _read(HEAD + "EXPOSÉ DU LITIGE\nUn fait.\nMOTIFS\n" + reason + TAIL)[4] == ("reasons", speaker)


@pytest.mark.parametrize(
    "reason",
    [
        "Attendu qu'il résulte de l'article 9 du code que la preuve est libre ;",
        "Il résulte de la combinaison des articles 9 et 10 du code que celui qui réclame une somme doit la prouver.",
        "S'il invoque, par ailleurs, un différend avec le garage, il n'en apporte pas la preuve.",
        "Ce défaut, alors qu'aucun reproche ne peut être adressé au chauffeur, est la cause de l'accident.",
        "Attendu que l'article 2 de la loi interdit à l'appelante de se prévaloir de la force majeure ;",
        "M. Charme fait valoir à juste titre que la route était large et que rien ne gênait la vue.",
    ],
)
def test_what_a_court_draws_from_a_text_or_answers_is_its_own(reason):
    assert _read(HEAD + "EXPOSÉ DU LITIGE\nUn fait.\nMOTIFS\nM. Charme soutient que non.\n" + reason + TAIL)[5] == (
        "reasons",
        "court",
    )


def test_a_text_is_given_even_where_it_speaks_of_one_who_claims():
    reason = "Selon l'article 9 du code, celui qui réclame l'exécution d'une obligation doit la prouver."
    assert _read(HEAD + "EXPOSÉ DU LITIGE\nUn fait.\nMOTIFS\n" + reason + TAIL)[4] == ("reasons", "text")


@pytest.mark.parametrize(
    ("paragraph", "stretches"),
    [
        (
            "Selon l'article 9 du code électoral, le Conseil statue sur la régularité de l'élection. "
            "|Il y a lieu, en raison de l'inéligibilité de M. Aulne, d'annuler l'élection de Mme Saule.",
            ["text", "court"],
        ),
        (
            "L'article 9 du code dispose que le candidat qui n'a pas déposé son compte est inéligible. "
            "|Le dépôt tardif d'un compte constitue, en principe, un manquement de nature à justifier cette sanction.",
            ["text", "court"],
        ),
        (
            "Considérant que M. Aulne fait grief à Mme Saule d'avoir fait pression sur les locataires de l'office ; "
            "|que, toutefois, il ne ressort pas des pièces du dossier que ses propos aient pesé sur leur vote ;",
            ["party", "court"],
        ),
        (
            "L'arrêt ajoute que l'employeur pouvait prendre des mesures pour préserver les passagers. "
            "Il considère qu'en l'absence d'essai, l'employeur n'a pas pris les précautions qui s'imposaient.|",
            ["lower_court"],
        ),
        (
            "Attendu que Mme Saule, qui marchait sur le même trottoir, a déclaré le soir des faits : "
            "|« Je marchais sur le trottoir avec mon frère lorsque j'ai entendu un grand bruit. Je me suis retournée "
            "et j'ai vu le camion. Il convient de dire que la rue était noire et que nul ne le voyait venir. » ;",
            ["court", "None"],
        ),
        (
            "M. Aulne soutient que des tracts ont été distribués la veille du scrutin dans les boîtes aux lettres. "
            "Il en résulterait une atteinte à la sincérité du scrutin. "
            "|Toutefois, eu égard au nombre de voix qui séparent les candidats, cette distribution est sans effet.",
            ["party", "court"],
        ),
        (
            "Attendu que, pour rejeter la demande, l'arrêt retient que le bail était échu et le congé valable ; "
            "|Qu'en statuant ainsi, alors que le bail courait encore, la cour d'appel a violé l'article 9 du code ;",
            ["lower_court!", "court"],
        ),
        (
            "Attendu que, pour annuler le contrôle, l'arrêt retient que son report n'a pas donné lieu "
            "à un avis régulier ; qu'il résulte d'un message que la société en avait été prévenue ; "
            "|Qu'en statuant ainsi, alors que l'avis avait été délivré, la cour d'appel a violé l'article 9 du code ;",
            ["lower_court!", "court"],
        ),
        (
            "Attendu que, pour imputer la faute à M. Charme, le tribunal a retenu qu'il roulait sans lumière ; "
            "|Mais attendu que la Cour ne saurait retenir une faute dont la preuve n'est pas rapportée aux débats ;",
            ["lower_court", "court"],
        ),
    ],
)
def test_a_paragraph_is_cut_where_another_begins_to_speak(paragraph, stretches):
    text = HEAD + "EXPOSÉ DU LITIGE\nUn fait.\nMOTIFS\n" + paragraph.replace("|", "") + TAIL
    read = read_paragraphs(text)[4:-2]
    assert [text[one.start : one.end] for one in read] == [words.strip() for words in paragraph.split("|") if words]
    assert [f"{one.speaker}{'!' * one.censured}" for one in read] == stretches


def test_grounds_and_the_reasons_they_quote_are_set_out_line_by_line():
    text = (
        "COUR DE CASSATION\nSur le moyen unique :\nM. Charme fait grief à l'arrêt de rejeter sa demande ;\n"
        "\"aux motifs que le syndicat sollicite une somme ;\nqu'il soutient avoir subi un préjudice ;\n"
        "\"1°) alors que l'arrêt a retenu un fait inexact ;\nAttendu que le moyen n'est pas fondé ;\n"
        "PAR CES MOTIFS\nREJETTE le pourvoi ;\nMOYEN ANNEXÉ\nAUX MOTIFS QUE le prêt était échu ;\n"
        "ET QUE la banque demande 3 000 euros ;\nALORS QUE le juge doit répondre aux conclusions ;"
    )
    assert [speaker for _, speaker in _read(text)][1:] == [
        *(None, "party", "lower_court", "lower_court", "party", "court"),
        *(None, "court", None, "lower_court", "lower_court", "party"),
    ]


def test_a_ground_opens_the_reasons_and_is_its_partys_from_its_first_line():
    text = (
        "COUR DE CASSATION\nAttendu qu'il résulte de l'arrêt attaqué que M. Charme a acquis une officine ;\n"
        "Sur le premier moyen de cassation, pris de la violation des articles 6 de la Convention européenne et 593 du "
        "code de procédure pénale, défaut de motifs, manque de base légale ;\n"
        "\"en ce que la chambre de l'instruction a confirmé l'ordonnance ;\n"
        '"alors que l\'arrêt ne fait pas la preuve de sa régularité" ;\n'
        "Attendu que la Cour de cassation est en mesure de s'en assurer ;\nPAR CES MOTIFS\nREJETTE le pourvoi ;"
    )
    assert _read(text)[1:-2] == [("statement", "court"), *[("reasons", "party")] * 3, ("reasons", "court")]


def test_an_answer_that_begins_in_the_line_of_the_ground_is_the_courts():
    text = (
        "COUR DE CASSATION\nFaits et procédure\n1. Mme Saule a formé un pourvoi.\nExamen du moyen\nEnoncé du moyen\n"
        "2. Mme Saule fait grief à l'arrêt de rejeter la demande, alors « que le juge statue. » Réponse de la Cour\n"
        "3. Le constat vaut preuve dès lors qu'il est discuté.\nPAR CES MOTIFS\nREJETTE le pourvoi ;"
    )
    assert _read(text)[5:8] == [("reasons", "party"), ("reasons", None), ("reasons", "court")]


def test_each_sentence_under_a_partys_heading_is_the_partys():
    text = HEAD + "MOTIFS\nMoyens de la société\nElle invoque la prescription. Le contrat fut rompu en mai 2003."
    assert _read(text + "\nRéponse de la cour\nLe contrat fut rompu en juin." + TAIL)[3:6] == [
        ("reasons", "party"),
        ("reasons", None),
        ("reasons", "court"),
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("SUD. FAITS PROCÉDURE Un fait. MOYENS DES PARTIES Elle nie. MOTIFS Non.", "statement claims reasons"),
        ("EXPOSÉ DU LITIGE\nElle fait valoir :\n* Sur la vitesse :\nBasse. [*\nMOTIFS\nNon.", "statement reasons"),
        ("Mme Saule est appelante du jugement rendu à Tulle.\nMOTIFS DE L'ARRET\nEn droit, non.", "statement reasons"),
        ("Le 3 mai, M. Houx a été blessé.\nAttendu que la faute est prouvée.\nSur la rente\nNon.", "statement reasons"),
        ("Vu le jugement du 3 mai 2004\nElle soutient que non.\nAux termes de l'article 9, si.", "statement reasons"),
    ],
)  # fmt: skip
def test_main_parts_open_inside_lines_and_without_headings(text, kinds):
    whole = HEAD + text + TAIL
    assert [part.kind for part in main_parts(read_paragraphs(whole), len(whole))] == [
        "header",
        *kinds.split(),
        "ruling",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Attendu que Mme Saule soutient que non.",  # no ruling
        "Le bailleur soutient que :\n- condamner\n- dire\n1°) alors que",
        "\n".join(["Vu", "-", "Y...", '"', "A... ce", "«"]),
    ],
)
def test_a_few_lines_of_a_decision_are_read_without_an_error(text):
    assert len(read_paragraphs(text)) == len(text.splitlines())


LINES = [words for marked in MARKED for _, _, words in _expected(marked)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=30)), max_size=12).map("\n".join))
def test_paragraphs_follow_one_another_and_parts_cover_any_text(text):
    read = read_paragraphs(text)
    assert all(one.end <= after.start for one, after in pairwise(read))
    assert "".join("".join(text[one.start : one.end] for one in read).split()) == "".join(text.split())
    is_decision = any(one.part in ("reasons", "ruling") for one in read)
    assert {one.part for one in read} <= (set(PART_KINDS) if is_decision else {None})
    assert {one.speaker for one in read} <= {*SPEAKERS, None}
    parts = main_parts(read, len(text))
    assert "".join(text[part.start : part.end] for part in parts) == (text if is_decision else "")


@pytest.mark.parametrize(
    "unit",
    [
        "Attendu que ",
        "« 1°/ ",
        "P A R ",
        "il fait valoir, ",
        ". ",
        "l'arrêt a ",
        "la cour, ",
        ". MOTIFS ",
        "\nVu",
        "1--",
    ],
)
def test_reading_takes_time_in_proportion_to_the_text(unit):
    def seconds(times: int) -> float:
        started = time.process_time()
        read_paragraphs(unit * times)
        return time.process_time() - started

    seconds(100)
    once, eight_times = (min(seconds(times) for _ in range(3)) for times in (2_000, 16_000))
    assert eight_times < 30 * max(once, 0.005)


@pytest.mark.parametrize(
    "text",
    [
        "Bonjour,\nVoici ce que nous ferons :\n1. Le scanner sera loué.\n2. L'équipe travaillera le soir.\nAmitiés,",
        "CONTRAT\nConsidérant que le client numérise ses fonds,\n1. Objet\nLe prestataire numérise.\n"
        "2. Litiges\nTOUT LITIGE SERA SOUMIS AU TRIBUNAL DE COMMERCE DE TULLE.",
        "Le maire de Tulle,\nVu le code de la route ;\nConsidérant que le pont menace ruine,\nDÉCIDE :\n"
        "Article 1er : Le pont est fermé.",
        "# Rédiger un jugement\n## Motifs\n1. Répondre à chaque moyen.\n## Dispositif\nCommencer par « Dit ».",
        "CONCLUSIONS D'APPELANT\nCOUR D'APPEL DE LIMOGES\nPLAISE À LA COUR\nFAITS ET PROCÉDURE\nUn fait.\nDISCUSSION\n"
        "Attendu que la faute est prouvée ;\nPAR CES MOTIFS\nInfirmer le jugement.",
        "La Cour de cassation a tranché hier.\nSon arrêt énonce : « Attendu que la clause est obscure ;\n"
        "Attendu qu'elle est nulle ;\nPAR CES MOTIFS, casse et annule »\nLe bailleur est déçu.",
        "CONCLUSIONS\n\nPLAISE AU TRIBUNAL\n\nAttendu qu'il doit ;\n\nPAR CES MOTIFS\n\nCondamner le défendeur.",
        "Article 9\nI. - La cour d'appel statue en droit.\n1. Le délai est de trois mois.\n2. Il est franc.",
        "Maître,\nLe tribunal a rejeté nos demandes.\n1. Il faut faire appel.\nEn droit, la faute est établie.",
    ],
    ids="e-mail contract mayors-order handbook pleading press-article short-pleading statute letter".split(),
)
def test_in_a_text_that_is_no_decision_no_court_speaks(text):
    assert {(one.part, one.speaker) for one in read_paragraphs(text)} == {(None, None)}


@pytest.mark.parametrize(
    "text",
    [
        "COUR DE CASSATION\n1. M. Charme a été licencié.\nPAR CES MOTIFS\nREJETTE le pourvoi.",  # no court's form
        "Attendu que la faute est prouvée ;\nPAR CES MOTIFS\nConfirme le jugement.",  # its head is lost
        "COUR D'APPEL DE LIMOGES\nMOTIFS\nAttendu que la faute est prouvée ;",  # its ruling is lost
        "La cour avait dit : « non.\n" + "Un fait.\n" * 300 + "Attendu que oui ;\nPAR CES MOTIFS\nConfirme.",
    ],
)
def test_two_signs_of_three_make_a_decision(text):
    assert {"reasons", "ruling"} & {one.part for one in read_paragraphs(text)}


ZONED = "Pourvoi 20-10.001\n\nLe bailleur demande le loyer.\n\nLe bail est nul.\n\nRejette le pourvoi."
ZONES = {
    "introduction": [{"start": 0, "end": 19}],
    "moyens": [{"start": 19, "end": 50}],
    "motivations": [{"start": 50, "end": 68}],
    "dispositif": [{"start": 68, "end": 87}],
}


def test_the_zones_of_a_judilibre_record_are_the_main_parts_of_a_decision_without_headings():
    assert [one.part for one in read_paragraphs(ZONED)] == [None] * 4
    read = read_paragraphs(ZONED, ZONES)
    assert [one.part for one in read] == ["header", "claims", "reasons", "ruling"]
    assert [one.speaker for one in read] == [None, "party", "court", "court"]


@pytest.mark.parametrize(
    "zones",
    [
        None, {}, [], "motivations", {"motivations": 3}, {"motivations": [[0, 5]]},
        {"motivations": [{"start": "0", "end": "9"}]}, {"motivations": [{"start": 0, "end": 999}]},
        {"motivations": [{"start": 9, "end": 3}]}, {"autres": [{"start": 0, "end": 9}]},
        {"moyens": [{"start": 0, "end": 40}], "motivations": [{"start": 30, "end": 60}]},
    ],
    ids=str,
)  # fmt: skip
def test_zones_that_do_not_fit_the_text_are_passed_over(zones):
    assert read_paragraphs(ZONED, zones) == read_paragraphs(ZONED)
