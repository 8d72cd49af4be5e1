"""The outline of a document: its sections are spans of its text, inside one another, and have titles."""

import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from legal_rag.law import TreeNode, build_tree, walk
from legal_rag.law.outline import PART_CHARS

LINES = [
    "SUR LA RECEVABILITÉ :",
    "- Sur le grief tiré de l’article 3 :",
    "EXPOSÉ DU LITIGE",
    "M O T I F S",
    "PAR CES MOTIFS, la Cour :",
    "Décide :",
    "Article premier :",
    "Article 2 - Durée",
    "I. Sur la faute",
    "A. Le retard",
    "B - La perte",
    "1. Considérant que la requête est recevable ;",
    "2. Considérant qu'elle doit être rejetée,",
    "1°/ que le juge a omis de répondre ;",
    "2.1 Le preneur paie le loyer.",
    "a) les intérêts",
    "# Titre",
    "## Sous-titre",
    "De : Iseult",
    "Objet : retard",
    "À : Côme",
    "***",
    "« Chaque candidat",
    "Attendu que M. X... a été assigné ; qu'il conclut au rejet\u00a0; ",
    "Les dépenses de santé :",
    "Faits et procédure",
    "",
    " ",
    "\u00a0",
    "-",
    "mot " * 300,
]
DOCUMENTS = st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)

DECISION = """Le Conseil constitutionnel,

Vu la Constitution ;

1. Considérant que M. Durand demande l'annulation des opérations auxquelles il a été procédé le 21 mars 1993 ;

- SUR LES GRIEFS RELATIFS À LA CAMPAGNE ÉLECTORALE :

2. Considérant, en premier lieu, que les tracts diffusés n'ont pas altéré la sincérité du scrutin, contrairement aux
allégations du requérant ;

3. Considérant, en second lieu, que l'affichage est demeuré limité ; que la requête doit donc être rejetée,

D É C I D E :

Article premier.- La requête de M. Durand est rejetée.

Article 2.- La présente décision sera notifiée à l'Assemblée nationale.

Délibéré par le Conseil constitutionnel dans sa séance du 4 mai 1993."""


def outline(text: str) -> list[tuple[int, str]]:
    """Return level and title of each section, in reading order."""
    return [(node.level, node.title) for node in walk(build_tree(text))][1:]


def titles(text: str) -> list[str]:
    return [title for _, title in outline(text)]


def check(tree: TreeNode, text: str) -> None:
    """Require what holds of every tree."""
    assert (tree.char_start, tree.char_end, tree.level, tree.kind) == (0, len(text), 0, "document")
    nodes = list(walk(tree))
    assert [node.node_id for node in nodes] == [f"{number:04d}" for number in range(len(nodes))]
    for node in nodes:
        assert node.char_start <= node.heading[0] <= node.heading[1] <= node.char_end
        spans = [(child.char_start, child.char_end) for child in node.children]
        assert all(start < end for start, end in spans)
        assert all(before[1] == after[0] for before, after in pairwise(spans))  # no gap, no overlap, in order
        if spans:
            assert node.char_start <= spans[0][0]
            assert spans[-1][1] == node.char_end
            # what precedes the first child is the node's own: so children and own text are the whole of it
            assert node.heading[1] <= spans[0][0]
        else:
            assert node.char_end - node.heading[1] <= PART_CHARS
        assert all(child.level == node.level + 1 for child in node.children)
        assert "\n" not in node.title
        assert len(node.title) <= 251
        assert node is tree or node.title


@settings(deadline=None, max_examples=60)
@given(st.text() | DOCUMENTS)
@example("\n1. x\n\nA")
@example("I. a\nII. b\n1. c\n2. d\nI. e")
@example("Délibéré par x")
@example("PAR CES MOTIFS\nDélibéré par")
def test_sections_lie_inside_one_another_in_order_and_cover_the_text(text):
    tree = build_tree(text)
    check(tree, text)
    assert tree == build_tree(text)


def test_a_decision_is_outlined_by_its_headings_numbers_and_articles():
    assert outline(DECISION) == [
        (1, "En-tête"),
        (1, "Exposé du litige"),
        (1, "Motifs"),
        (2, "1. Considérant que M. Durand demande l'annulation des opérations auxquelles il a…"),
        (2, "SUR LES GRIEFS RELATIFS À LA CAMPAGNE ÉLECTORALE"),
        (3, "2. Considérant, en premier lieu, que les tracts diffusés n'ont pas altéré la…"),
        (3, "3. Considérant, en second lieu, que l'affichage est demeuré limité ; que la…"),
        (1, "DÉCIDE"),
        (2, "Article premier.- La requête de M. Durand est rejetée"),
        (2, "Article 2.- La présente décision sera notifiée à l'Assemblée nationale"),
        (2, "Délibéré par le Conseil constitutionnel dans sa séance du 4 mai 1993"),
    ]
    kinds = [node.kind for node in build_tree(DECISION).children]
    assert kinds == ["header", "statement", "reasons", "ruling"]


@pytest.mark.parametrize(("sign", "other"), [("\n", "\r\n"), (" :", "\u00a0:"), ("'", "’"), ("\n\n", "\n \n\n")])
def test_line_ends_blanks_and_apostrophes_of_any_kind_make_no_difference(sign, other):
    expected = [(level, title.replace("'", "’")) for level, title in outline(DECISION)]
    assert [(level, title.replace("'", "’")) for level, title in outline(DECISION.replace(sign, other))] == expected


def test_a_section_is_a_span_of_the_text_with_its_heading():
    node = build_tree(DECISION).children[2].children[1]
    assert DECISION[slice(*node.heading)] == "SUR LES GRIEFS RELATIFS À LA CAMPAGNE ÉLECTORALE :"
    assert DECISION[node.char_start : node.char_end].endswith("la requête doit donc être rejetée,\n\n")
    assert DECISION[slice(*node.children[0].heading)].strip() == "2."


BRANCH = "que la cour d'appel a violé l'article 1110 du code civil " * 6
LONG = "mots du texte " * 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # the reply to a ground is no part of its last branch
            f"Sur le moyen unique :\n\nX fait grief :\n\n1°/ {BRANCH};\n\n2°/ {BRANCH};\n\nMais attendu que non.",
            [(1, "Sur le moy"), (2, "1°/ que la"), (2, "2°/ que la"), (2, "Mais atten")],
        ),
        (  # titles with numbers nest in the order in which they first come
            "MOTIFS\nI - La faute\nA - Le retard\n.\nB - Le refus\n.\nII - Le dommage\nA - La perte\n.\nB - Le tort\n.",
            [
                *((1, "MOTIFS"), (2, "I - La fau"), (3, "A - Le ret"), (3, "B - Le ref")),
                *((2, "II - Le do"), (3, "A - La per"), (3, "B - Le tor")),
            ],
        ),
        (  # what a paragraph quotes, numbered anew, lies inside it
            f"1. Le juge cite :\n1. premier {LONG}\n2. deuxième {LONG}\n3. troisième {LONG}\n2. Il en déduit {LONG}",
            [(1, "1. Le juge"), (2, "1. premier"), (2, "2. deuxièm"), (2, "3. troisiè"), (1, "2. Il en d")],
        ),
    ],
)
def test_sections_nest_as_their_numbers_do(text, expected):
    assert [(level, title[:10]) for level, title in outline(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P A R C E S M O T I F S\nRejette.", ["PAR CES MOTIFS"]),
        ("Il paie les dépens. PAR CES MOTIFS LA COUR\nConfirme", ["En-tête", "PAR CES MOTIFS"]),
        ("Sur l’appel incident\nLa cour le rejette.", ["Sur l’appel incident"]),
        ("SUR LA DEMANDE DE DUPONT Le bailleur soutient que" + " non" * 30 + ".", ["SUR LA DEMANDE DE DUPONT"]),
        ("Article 1er – Objet\n\nLe bailleur loue.", ["Article 1er – Objet"]),
        ("Article premier :\n\nLa requête est rejetée.", ["Article premier : La requête est rejetée"]),
        ("TITRE II : DES LOYERS\nArticle 3\u00a0: Durée\nNeuf ans.", ["TITRE II : DES LOYERS", "Article 3 : Durée"]),
        ("# Bail\nx\n## Loyer\ny\n## Charges\nz", ["Bail", "Loyer", "Charges"]),
        ("De : Anne\nÀ : Luc\nObjet : retard\n\nBonjour", ["De : Anne", "Objet : retard"]),
        ("Première résolution\n\nElle décide.\n\nSixième résolution\n.", ["Première résolution", "Sixième résolution"]),
        ("Rejette.\nORDONNE :\nArticle 1er : Rejet.", ["En-tête", "ORDONNE", "Article 1er : Rejet"]),
        ("MOTIFS\nUn.\n***\nVu le jugement du 3 mai.", ["MOTIFS", "Vu le jugement du 3 mai"]),
        ("ANNEXE 1 - Tarifs\n12 euros", ["ANNEXE 1 - Tarifs"]),
    ],
)  # fmt: skip
def test_a_heading_is_found_however_it_is_written(text, expected):
    assert titles(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\n ",
        "Bonjour",
        "RÉPUBLIQUE FRANÇAISE\nAU NOM DU PEUPLE FRANÇAIS\nCOUR DE CASSATION",
        "Sur ce point, la cour d'appel a retenu que le contrat était nul.",
        "M. X... Pierre\nA. Dupont\nC. Martin",
        "Il a dû payer\n12. 500 euros de frais.",
        "Article 700 du code de procédure civile, la cour condamne.",
        "Elle demande à la cour :\n- de confirmer",
        "Vu le code électoral :\nbien",
        "1. pain\n2. lait\n3. sel",
        "ORDONNE la restitution des sommes versées.",
    ],
)
def test_what_only_looks_like_a_heading_is_text(text):
    assert titles(text) == []


def test_short_lines_of_the_operative_part_and_names_before_the_first_part_are_no_headings():
    assert titles("PAR CES MOTIFS\nStatuant à nouveau :\nLes frais irrépétibles :\nCondamne X.") == ["PAR CES MOTIFS"]
    line = (
        "prise en la personne de son gérant, dont le siège est à Lyon, représentée par la SCP Untel, avoués à la Cour"
    )
    text = f"MACIF RHONE ALPES\nS{line}\nEXPOSÉ DU LITIGE\nUn fait.\nPAR CES MOTIFS\nRejette."
    assert titles(text) == ["En-tête", "EXPOSÉ DU LITIGE", "PAR CES MOTIFS"]


def test_a_text_without_headings_is_cut_into_parts_before_its_paragraphs():
    paragraph = "La société soutient que le contrat a été rompu. " * 25 + "\n\n"
    text = paragraph * 5
    tree = build_tree(text)
    assert [node.kind for node in tree.children] == ["part"] * len(tree.children)
    assert all(node.char_start % len(paragraph) == 0 for node in tree.children)
    assert tree.children[0].title == "La société soutient que le contrat a été rompu. La société soutient que le…"


def test_a_text_of_a_single_line_is_cut_before_its_reasons():
    text = "".join(
        f"{n}. Considérant que la requête n° {n} est rejetée ; qu'il y a lieu de la joindre ; " for n in range(1300)
    )
    assert len(text) > 100_000
    tree = build_tree(text)
    assert all(node.char_end - node.char_start <= PART_CHARS for node in tree.children)
    assert all("Considérant que" in node.title[:25] for node in tree.children)


def test_a_long_word_is_cut_too_and_more_headings_than_a_reader_can_use_are_a_list():
    assert [node.char_end - node.char_start for node in build_tree("a" * 7000).children] == [3000, 3000, 1000]
    assert len(list(walk(build_tree("Article 1 - x\n" * 10_000)))) < 1000


@pytest.mark.parametrize(
    "unit", ["nlA\nA", "1. x\n", "I. x\nV. y\n", ".SUR CE", "ABC ", "\n", " ", ". ", "*\n", "1.1.1.1.1.", "« ", "1°/ "]
)
def test_a_hostile_text_takes_linear_time(unit):
    text = unit * (25_000 // len(unit))
    started = time.process_time()
    check(build_tree(text), text)
    assert time.process_time() - started < 2  # a quadratic pattern takes many


@pytest.mark.shared
@pytest.mark.slow
def test_every_shared_decision_has_a_tree(shared_decisions):
    ruled = n_documents = 0
    for document in shared_decisions:
        tree = build_tree(document.content)
        check(tree, document.content)
        n_documents += 1
        ruled += any(node.kind == "ruling" for node in tree.children)
    assert n_documents == 4097
    assert ruled > 0.97 * n_documents
