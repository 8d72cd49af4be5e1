"""The search box's operators, parsed and looked up in a Library."""

import pytest

from legal_rag.library.query_language import Leaf, Not, find_matches, leaves_of, parse, references_in

TEXTS = {
    "A": "La période d’essai a été renouvelée.\nLe salarié a été licencié pendant la grève, sans préavis.",
    "B": "La PERIODE D'ESSAI est rompue. Une indemnité de préavis est due.",
    "C": "La période de prévenance n'est pas un essai. La grève est licite ; l'indemnisation est due. Vu l'article 6.",
    "D": "La loi n° 85-677 du 5 juillet 1985 s'applique au piéton. L'article 1240 du code civil est écarté.",
    "E": "Vu la loi du 5 juillet 1985 ; l'œuvre est protégée. Les tribunaux sont saisis.",
    "F": "L'accident est du 5 juillet 1985. Son licenciement suit ; la rupture est conventionnelle."
    " Vu l'article 6 de la Convention européenne de sauvegarde des droits de l'homme.",
}


@pytest.fixture(scope="module")
def library(index_of):
    rows = [{"id": doc_id, "content": text} for doc_id, text in TEXTS.items()]
    return index_of(rows, n_bits=0, corpus_index=False)


def documents(library, typed):
    lexical = library.lexical_index()
    found = find_matches(parse(typed).condition, lexical, library.contents())
    chunks = library.chunks_at([(place >> 32, place & 0xFFFFFFFF) for place in sorted(found.documents)])
    return "".join(chunk.doc_id for chunk in chunks)


@pytest.mark.parametrize(
    ("typed", "doc_ids"),
    [
        ('"période d\'essai"', "AB"),
        ("« periode d'essai »", "AB"),
        ("“période d'essai” -préavis", ""),
        ("grève ET préavis", "A"),
        ("grève préavis OU piéton", "AD"),
        ("(grève OU piéton) ET licite", "C"),
        ("grève NON préavis", "C"),
        ("grève SAUF licite", "A"),
        ("loyer OU zzz", ""),  # "loi" has its stem
        ("tribunal ET saisi", "E"),
        ("licenci*", "AF"),
        ("indemnis*", "C"),
        ("indemnisa*", "C"),
        ("tribunau*", "E"),
        ("rupture -conventionnelle", "ABCDE"),
        ("rupture -(période essai)", "DEF"),
        ("rupture ET -(rompue OU piéton)", "F"),
        ("faute -article 1240 du code civil", "ABCEF"),
        ("faute -art. 1240 c. civ. grave", "ABCEF"),
        ("bail -loi Badinter", "ABCF"),
        ("bail -L. 1233-4", "ABCDEF"),
        ('NON "période d\'essai" ET grève', "C"),
        ("loi Badinter ET piéton", "D"),
        ("loi du 5 juillet 1985 OU zzz", "DE"),
        ("1240 c. civ. ET piéton", "D"),
        ("article 6 CEDH OU zzz", "F"),
        ('"oeuvre est protegee"', "E"),
        ('"œuvre est protégée"', "E"),
        ('"un essai. La"', "C"),
        ('"riode d\'essai"', ""),
        ('"absente"', ""),
    ],
)
def test_operators_select_documents(library, typed, doc_ids):
    assert documents(library, typed) == doc_ids


@pytest.mark.parametrize(
    ("typed", "words", "unread"),
    [
        ("faute grave", "faute grave", ()),
        ("faute ET", "faute", ("ET",)),
        ("OU faute grave", "faute grave", ("OU",)),
        ("(faute OU dol", "faute dol", ("(",)),
        ("faute) ET dol", "faute dol", (")",)),
        ('faute "grave', "faute grave", ('"',)),
        ("faute PROX/5 grave", "faute grave", ("PROX/5",)),
        ("faute~2 gr?ve", "faute gr ve", ("~2", "?")),
        ("faute NON (grave OU lourde) ET dol", "faute dol", ()),
        ("CLAUSE DE NON CONCURRENCE", "CLAUSE DE NON CONCURRENCE", ("NON",)),
        ("CSE ET RATP", "CSE RATP", ()),
        ('"faute grav*" titre:bail', "faute grav bail", ("*", "titre:")),
        ("a-t-il - enfin - commis 3-4 fautes", "a-t-il - enfin - commis 3-4 fautes", ()),
        ("", "", ()),
        ("mon voisin -un retraité- fait du bruit", "mon voisin un retraité- fait du bruit", ("-",)),
        ("salarié -en CDI", "salarié en CDI", ("-",)),
        ("rupture -même protégé-, indemnité", "rupture même protégé-, indemnité", ("-",)),
    ],
)
def test_what_ranks_and_what_is_not_read_are_told(typed, words, unread):
    assert parse(typed)[::2] == (words, unread)


def test_words_without_operators_are_no_condition():
    assert parse("le salarié et l'employeur, article 1240 du code civil ou non").condition is None


def test_words_beside_a_phrase_only_rank():
    typed = parse('préavis "faute grave" -dol')
    assert [leaf.shown for leaf in leaves_of(typed.condition)] == ["« faute grave »"]
    assert typed.words == "préavis faute grave"


def test_a_minus_excludes_the_word_or_phrase_behind_it():
    assert isinstance(parse("-dol").condition, Not)
    assert isinstance(parse('-"faute grave"').condition.node, Leaf)


def test_passages_that_hold_all_of_it_are_the_best(library):
    found = find_matches(parse("grève ET préavis").condition, library.lexical_index(), library.contents())
    assert set(found.best) == set(found.any) == found.documents


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1233-4 code du travail", "l'article 1233-4 du code du travail"),  # whose letter is not known
        ("D. 1233-4 du code du travail", "l'article D1233-4 du code du travail"),
        ("22-17.919", "22-17.919"),
    ],
)
def test_a_reference_is_shown_with_no_letter_that_was_not_typed(text, shown):
    assert [reference.shown for reference in references_in(text)] == [shown]
