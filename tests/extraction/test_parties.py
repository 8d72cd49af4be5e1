"""Parties and counsel are found by name, wherever they stand; those who sit in court are neither."""

import time

import pytest

from legal_rag.extraction.parties import find_counsel, find_parties


def _parties(text):
    return [one["extraction_text"] for one in find_parties(text, find_counsel(text))]


def _counsel(text):
    return [one["extraction_text"] for one in find_counsel(text)]


def _roles(text):
    return {one["extraction_text"]: one["attributes"].get("role") for one in find_parties(text, find_counsel(text))}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("la requête présentée par M. Jean Lavigne, demeurant à Nice", ["M. Jean Lavigne"]),
        ("Considérant que MM. Colin, Petit et Morel soutiennent", ["MM. Colin", "Petit", "Morel"]),
        ("le sieur Durand (Gabriel) a formé un recours", ["sieur Durand (Gabriel)"]),
        ("Mme [E], épouse [K], a été engagée", ["Mme [E], épouse [K]"]),
        ("les consorts A... et les époux Z... demandent", ["consorts A...", "époux Z..."]),
        ("la somme due à Evelyne X... par elle", ["Evelyne X..."]),
        ("M. Henri de Richemont et M. d'Arcy ont répliqué", ["M. Henri de Richemont", "M. d'Arcy"]),
        ("Monsieur Jean-Jacques\n\nX...\n\nné à Nîmes", ["Monsieur Jean-Jacques\n\nX..."]),
        ("un contrat avec la société Lever France et la SARL Dupont", ["société Lever France", "SARL Dupont"]),
        ("les sociétés Alpha et Beta France", ["sociétés Alpha", "Beta France"]),
        ("la CPAM du Rhône et l'URSSAF ont conclu", ["CPAM du Rhône", "URSSAF"]),
        ("la caisse primaire d'assurance maladie de l'Ain a refusé", ["caisse primaire d'assurance maladie de l'Ain"]),
        ("le syndicat UD CGT 63 a désigné", ["syndicat UD CGT 63"]),
        ("INTIMEE : COMPAGNIE AXA ASSURANCES 233 cours Lafayette", ["COMPAGNIE AXA ASSURANCES"]),
    ],
)
def test_a_party_is_named_with_title_or_form_and_without_what_follows(text, named):
    assert _parties(text) == named


def test_a_name_given_in_full_once_is_found_in_full_everywhere():
    text = (
        "dans le litige l'opposant à l'association Pierres anciennes du lac, dont le siège est à Annecy.\n\n"
        "Attendu que l'association Pierres anciennes du lac fait grief"
    )
    assert _parties(text) == ["association Pierres anciennes du lac"] * 2


def test_a_short_name_that_the_text_gives_stands_for_the_long_one_but_letters_in_brackets_for_none():
    text = "la Caisse autonome de retraite des dentistes (la CARDENT) soutient. La CARDENT conclut."
    assert _parties(text)[-2:] == ["CARDENT", "CARDENT"]
    assert _parties("la société Durand Frères (SDF), dont le siège est à Pau") == ["société Durand Frères"]


@pytest.mark.parametrize(
    "text",
    [
        "où siégeaient : MM. Roger FREY, président, MONNERVILLE, JOXE, GROS.\n\n",
        "Sur le rapport de Mme Champ, conseiller référendaire,",
        "assistés de Madame Krolak, greffier, Madame Krolak ayant signé",
        "devant M. Colin et Mme Petit, conseillers, qui en ont délibéré",
        "l'expert M. Bertin, puis le docteur Morel et Me Z..., notaire à Lyon,",
        "la société, le salarié, la caisse et le préfet ont conclu ; la Cour",
        "Attendu que la commune est tenue ; que l'association a soutenu",
        "facture n° 12 [Localité 4], [Adresse 2]",
    ],
)
def test_who_sits_in_court_or_has_no_name_is_no_party(text):
    assert _parties(text) == []


def test_a_liquidator_is_a_party_and_no_counsel_and_neither_counsel_nor_a_judge_is_a_party_anywhere():
    text = "Condamne Me Morel ès qualités de liquidateur de la SARL Dupont à payer ; Me Morel conclut"
    assert (_parties(text)[0], _counsel(text)) == ("Me Morel", [])
    assert _parties("M. Roux, représenté par Me Vidal. Me Vidal plaide pour M. Roux.") == ["M. Roux", "M. Roux"]
    text = "M. Vigneau, président. M. Colin conclut. La minute est remise à M. Vigneau."
    assert _parties(text) == ["M. Colin"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("observations de la SCP Colin, Petit et Morel, avocat de M. X...", ["SCP Colin, Petit et Morel"]),
        ("représentée par la SCP DURAND C. - GILLES C., avoués à la Cour", ["SCP DURAND C. - GILLES C."]),
        ("assisté de Me Anne REBAUD substituant Me LEROY, avocats", ["Me Anne REBAUD", "Me LEROY"]),
        ("les observations de la SARL Lambert, avocat de M. Y...", ["SARL Lambert"]),
        ("Mme Claire Vidal, avocate au barreau de Nice, pour M. Roux", ["Mme Claire Vidal"]),
        ("ayant Maître Jean DUBOIS\npour avocat", ["Maître Jean DUBOIS"]),
        ("un contrat conclu avec la SARL Lambert le 3 mai", []),
        ("l'avis de M. Salomon, avocat général", []),
        ("acte reçu par Me Faure, notaire à Gap", []),
    ],
)
def test_counsel_are_firms_and_masters_that_plead(text, named):
    assert _counsel(text) == named


def test_counsel_tell_for_whom_they_act_and_a_role_told_once_holds_at_every_mention():
    (one,) = find_counsel("les observations de la SCP Colin, avocat de la société Lever, et l'avis")
    assert one["attributes"] == {"role": "avocat", "client": "société Lever"}
    text = (
        "la requête présentée par M. Jean Roux, enregistrée le 3 mai ; les observations en défense présentées par "
        "M. Vidal, député ; que M. Roux soutient"
    )
    assert _roles(text) == {"M. Jean Roux": "requérant", "M. Vidal": "défendeur", "M. Roux": "requérant"}


def test_captions_give_roles_and_every_entity_is_the_text_at_its_place():
    under = "APPELANT :\nMonsieur Jean Roux\nINTIMEE :\nMadame Vidal\nFAITS"
    over = "ENTRE :\nMonsieur Jean Roux\nAPPELANT d'un jugement\nET :\nMadame Vidal\nINTIMEE\nFAITS"
    expected = {"Monsieur Jean Roux": "appelant", "Madame Vidal": "intimé"}
    assert (_roles(under), _roles(over)) == (expected, expected)
    text = "\u00a0M.\u00a0É.\u00a0D’Œuvre et Mme\nLEROY-À-L’EAU c/ SCP « X »… İ société İstanbul"
    for one in find_parties(text, find_counsel(text)):
        assert text[one["char_start"] : one["char_end"]] == one["extraction_text"]


@pytest.mark.parametrize("text", ["", " ", "M.", "MM. ", "SCP", "société", "...", "X", "…", "] [", "(la ", "époux\n"])
def test_a_title_or_a_form_without_a_name_names_nobody(text):
    assert (_parties(text), _counsel(text)) == ([], [])


@pytest.mark.parametrize(
    "unit",
    [
        "A A ",
        "M. ",
        "MM. Aa, ",
        "X... ",
        "SCP Aa, ",
        "époux Aa épouse ",
        "société « ",
        "] [X] [",
        "opposant à la SA Aa, ",
    ],
)
def test_long_monotonous_text_takes_time_in_proportion_to_its_length(unit):
    def seconds(characters):
        text = unit * (characters // len(unit))
        start = time.process_time()
        find_parties(text, find_counsel(text))
        return time.process_time() - start

    assert min(seconds(80_000) for _ in range(3)) < 10 * seconds(20_000) + 0.2
