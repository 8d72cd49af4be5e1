"""The passage that answers: the court's own words rather than what it reports, near to the question, whole."""

from pathlib import Path

import numpy as np
import pytest

from legal_rag.agent.passages import (
    LAST,
    PASSAGE_CHARS,
    WeighedPassage,
    choose_passages,
    is_cut,
    sentence_runs,
    weigh_documents,
    word_coverage,
)
from legal_rag.encoder.encoder import TokenVectors
from legal_rag.law.tree import Paragraph
from legal_rag.retriever import build_retriever

MARKED = Path(__file__).parents[1] / "law" / "marked"
DECISION = "\n\n".join(
    line.split("|", 1)[1].strip() for line in (MARKED / "cassation.txt").read_text("utf-8").splitlines()
)


def token_vectors(text, near=""):
    """One token a word: those of `near` point where the question does, the others elsewhere."""
    starts = [0, *(n + 1 for n, letter in enumerate(text[:-1]) if letter.isspace())]
    offsets = np.array([(start, start + len((text[start:].split() or [""])[0])) for start in starts])
    at = text.index(near) if near else -1
    hit = (offsets[:, 0] >= at) & (offsets[:, 0] < at + len(near))
    return TokenVectors(np.where(hit[:, None], [[1.0, 0.0]], [[0.2, 0.98]]).astype(np.float32), offsets)


QUESTION = TokenVectors(np.array([[1.0, 0.0]], dtype=np.float32), np.array([[0, 5]]))


def weigh_passages(question, content, read):
    return weigh_documents(question, [(content, read)])[0]


def best_passage(question, content, read):
    """Return the passage chosen first of one document."""
    return next((one for _, one in choose_passages([weigh_passages(question, content, read)], [0.0], 1, 600)), None)


def test_where_all_is_equally_near_the_court_speaks_in_its_reasons():
    best = best_passage(QUESTION, DECISION, token_vectors(DECISION))
    assert (best.paragraph.part, best.paragraph.in_french) == ("reasons", "la juridiction")


def test_reasoning_that_the_court_quashes_is_not_the_answer_however_near():
    quashed = "6. Pour dire le licenciement sans cause réelle et sérieuse, l'arrêt retient que la salariée n'a pas"
    best = best_passage(QUESTION, DECISION, token_vectors(DECISION, quashed))
    assert not best.paragraph.censured
    weighed = weigh_passages(QUESTION, DECISION, token_vectors(DECISION, quashed))
    (left_out,) = [one for one in weighed if DECISION.startswith(quashed, one.start)]
    assert left_out.paragraph.in_french == "décision attaquée, censurée sur ce point"


def test_the_nearest_of_the_courts_own_passages_comes_first():
    near = "Mme [V] a été engagée le 4 juin 2010 par la société Orme."
    best = best_passage(QUESTION, DECISION, token_vectors(DECISION, near))
    assert near in DECISION[best.start : best.end]


def test_passages_are_whole_sentences_within_a_length():
    text = "MOTIFS DE LA DÉCISION\n\n" + " ".join(
        f"La cour retient le point {n} de la demande du preneur." for n in range(60)
    )
    weighed = weigh_passages(QUESTION, text, token_vectors(text))
    assert max(one.end - one.start for one in weighed) <= PASSAGE_CHARS
    assert all(text[one.start : one.end].endswith((".", "DÉCISION")) for one in weighed)


def test_others_are_quoted_only_if_they_are_worth_nearly_as_much_and_do_not_overlap():
    near = "Le preneur doit réparer la chaudière de la maison louée, a dit la cour d'appel de Lyon."
    other = "Le bailleur reste tenu de réparer la chaudière, sauf faute du preneur, retient la cour."
    both = f"{near}\n\nSur la chaudière, encore :\n\n{other}"
    texts = [f"MOTIFS\n\n{both}\n\nPAR CES MOTIFS\n\nConfirme.", f"MOTIFS\n\n{near}", "Un bail."]
    read = [token_vectors(texts[0], near), token_vectors(texts[1], near), token_vectors(texts[2])]

    def choose(chars=1500):
        weighed = weigh_documents(QUESTION, list(zip(texts, read, strict=True)))
        return choose_passages(weighed, [1.0, -1.0, -2.0], 3, chars, nothing_held)

    assert [(n, texts[n][one.start : one.end]) for n, one in choose()] == [(0, near)]
    read[0] = token_vectors(texts[0], both)
    assert {texts[n][one.start : one.end] for n, one in choose()} == {near, other}
    assert len(choose(100)) == 1
    assert choose_passages(weigh_documents(QUESTION, []), [], 3, 1500) == []


def nothing_held(of, one):
    """Hold none of a question's words."""
    return 0.0


@pytest.mark.parametrize(
    ("scores", "share", "documents"),
    [
        ([2.0, 1.0], 0.0, [0, 0]),  # the first document is ahead of the other
        ([2.0, 1.9], 0.0, [0]),
        ([2.0, 1.9], 0.2, [0, 0, 1]),
        ([2.0, 1.2], 0.2, [0, 0, 1]),
        ([2.0, 0.0], 0.9, [0, 0]),  # worth too little, whatever it holds
    ],
)
def test_a_further_passage_is_of_a_decision_clearly_first_or_holds_words_of_the_question(scores, share, documents):
    weighed = [[passage(2.0), passage(1.8, 500)], [passage(1.9)]]
    chosen = choose_passages(weighed, scores, 4, 1500, lambda of, one: share)
    assert sorted(n for n, _ in chosen) == documents


def test_neighbouring_passages_are_quoted_as_one_up_to_a_length():
    paragraphs = [passage(2.0, start, chars=390) for start in (0, 392, 784, 1176)]
    ((_, first), (_, second)) = choose_passages([paragraphs], [0.0], 4, 5000, nothing_held)
    assert (first.start, first.end, second.start, second.end) == (0, 1174, 1176, 1566)


def test_a_text_holds_of_a_question_the_words_that_it_has_in_any_form_the_rarer_the_more(tiny_library):
    lexical = tiny_library.lexical_index()
    share = word_coverage("Le compte de campagne de Provins", lexical)
    assert share("À Provins, les comptes des campagnes") == pytest.approx(1.0)
    assert share("de le") == 0.0
    assert share("à Provins") > share("les campagnes") > 0.0
    assert word_coverage("de le", lexical)("de le") == 0.0


def passage(weight, start=0, speaker="court", chars=80):
    return WeighedPassage(start, start + chars, Paragraph(start, start + chars, "reasons", speaker, False), weight)


@pytest.mark.parametrize(
    ("scores", "first"), [([0.0, 0.0], 1), ([2.0, 0.5], 0), ([1.0, 0.5], 1)], ids=["equal", "far behind", "near"]
)
def test_a_lower_document_comes_first_where_its_passage_outweighs_its_score(scores, first):
    chosen = choose_passages([[passage(1.0)], [passage(2.0)]], scores, 1, 600)
    assert [n for n, _ in chosen] == [first]


@pytest.mark.parametrize(
    ("other", "span"),
    [
        (passage(1.0, 82), (0, 162)),
        (passage(1.0, 82, "text"), (0, 162)),
        (passage(1.0, 82, "party"), (0, 80)),
        (passage(-2.0, 82), (0, 80)),  # worth too little
        (passage(1.0, 120), (0, 80)),  # a heading stands between
        (passage(1.0, 82, chars=PASSAGE_CHARS), (0, 80)),
    ],
)
def test_the_first_passage_is_quoted_with_the_courts_paragraph_next_to_it(other, span):
    ((_, first), *_) = choose_passages([[passage(2.0), other]], [0.0], 1, 1500)
    assert (first.start, first.end) == (first.paragraph.start, first.paragraph.end) == span


def test_what_answers_nothing_is_chosen_only_where_there_is_nothing_else():
    assert choose_passages([[passage(1.0), passage(LAST, 100)]], [0.0], 3, 600) == [(0, passage(1.0))]
    assert choose_passages([[passage(LAST)]], [0.0], 3, 600) == [(0, passage(LAST))]


@pytest.mark.parametrize(
    "formula",
    [
        "D'où il suit que le moyen, pris en sa seconde branche, n'est pas fondé ;",
        "12. La cassation est par conséquent encourue de ce chef du dispositif de l'arrêt.",
        "En statuant ainsi, la cour d'appel, qui devait vérifier, a violé le texte susvisé.",
        "Condamne M. [B], ès qualités, et la société Chêne-vert aux dépens ; En application de l'article 700 du code de"
        " procédure civile, rejette les demandes.",
        "Portée et conséquences de la cassation sur les autres chefs du dispositif",
        "Qu'à supposer qu'une faute",
        "PAR CES MOTIFS, et sans qu'il y ait lieu de statuer sur l'autre moyen, la Cour :",
    ],
)
def test_a_formula_or_a_fragment_is_not_quoted_however_near(formula):
    reason = "En statuant ainsi, alors que le bailleur devait réparer la chaudière, la cour d'appel a violé ce texte."
    text = f"MOTIFS\n\n{formula}\n\n{reason}\n\nPAR CES MOTIFS\n\nLA COUR :\n\nCASSE ET ANNULE l'arrêt."
    best = best_passage(QUESTION, text, token_vectors(text, formula))
    assert text[best.start : best.end] == reason


@pytest.mark.parametrize(
    "answer",
    [
        "REJETTE la demande de M. [Z] tendant à la prise en charge des frais de transport exposés le 1er octobre.",
        "Les dépens comprennent les honoraires de l'expert que le juge a commis, mais non ceux de l'avocat.",
        "Attendu que le moyen n'est pas fondé, dès lors que le bailleur avait connu le vice avant la vente ;",
    ],
)
def test_what_resembles_a_formula_but_answers_is_quoted(answer):
    text = f"MOTIFS\n\n{answer}\n\nPAR CES MOTIFS\n\nLA COUR :\n\nCASSE ET ANNULE l'arrêt."
    best = best_passage(QUESTION, text, token_vectors(text, answer))
    assert text[best.start : best.end] == answer


def test_a_long_sentence_is_whole_and_a_longer_one_is_quoted_from_what_it_holds():
    account = "Attendu qu'ayant relevé que " + "le preneur avait, en mars, " * 28
    holding = (
        "que la clause n'avait pas pour effet de priver le preneur, la cour d'appel en a déduit qu'il était libre ;"
    )
    whole = f"{account}{holding}"
    assert list(sentence_runs(whole, 0, len(whole))) == [(0, len(whole))]
    longer = f"{account}{'avant de quitter les lieux, ' * 10}{holding}"
    assert any(
        longer[a:b].startswith("en a déduit qu'il était libre") for a, b in sentence_runs(longer, 0, len(longer))
    )


def test_a_sentence_broken_over_lines_is_one_passage():
    sentence = "L'assureur est tenu de présenter dans un délai\n\nmaximal de huit mois une offre à la victime."
    text = f"MOTIFS\n\n{sentence}\n\nSignée."
    best = best_passage(QUESTION, text, token_vectors(text))
    assert text[best.start : best.end] == sentence


@pytest.mark.parametrize(
    ("content", "start", "end", "cut"),
    [
        ("Le bail est nul.", 0, 16, (False, False)),
        ("La cour juge ;\nque le bail est nul ;", 15, 36, (False, False)),
        ("La cour juge le\nbail nul.", 16, 25, (True, False)),
        ("Le bail est\nnul.", 0, 11, (False, True)),
        ("Le bail est nul. Il cesse.", 0, 16, (False, True)),
    ],
)
def test_a_passage_is_cut_where_its_sentence_goes_on(content, start, end, cut):
    line_end = content.find("\n", start)
    line = Paragraph(start, len(content) if line_end < 0 else line_end, "reasons", "court", censured=False)
    assert is_cut(content, WeighedPassage(start, end, line, 0.0)) == cut


@pytest.mark.parametrize("content", ["", "\n \n", "A"])
def test_a_text_with_nothing_to_weigh_has_no_passage_or_itself(content):
    read = TokenVectors(np.empty((0, 2), dtype=np.float32), np.empty((0, 2), dtype=np.int64))
    found = best_passage(QUESTION, content, read)
    assert (found is None) == (not content.strip())


def test_the_vectors_of_a_document_are_those_of_the_index_at_the_places_where_they_stand(tiny_library, tiny_encoder):
    retriever = build_retriever(tiny_library, tiny_encoder)
    doc_id = "FICTIF0101"
    content = tiny_library.document(doc_id).content
    read = retriever.document_tokens(doc_id)
    chunks = tiny_library.chunks_of(doc_id)
    own = [tiny_encoder.encode_with_offsets(chunk.text) for chunk in chunks]
    offsets = [
        one.offsets[one.offsets[:, 0] < one.offsets[:, 1]] + c.char_start for one, c in zip(own, chunks, strict=True)
    ]
    np.testing.assert_array_equal(read.offsets, np.concatenate(offsets))
    assert all(content[start:end].strip() for start, end in read.offsets)
    vectors = [one.vectors[one.offsets[:, 0] < one.offsets[:, 1]] for one in own]
    assert (read.vectors * np.concatenate(vectors)).sum(axis=1).mean() > 0.95  # as far as four bits keep them
    with pytest.raises(LookupError, match="no chunk of 'nowhere'"):
        retriever.document_tokens("nowhere")


@pytest.mark.parametrize("text", ["本" * 1500, "La\u00a0clause\u00a0pénale\u00a0" * 90, "mot " * 400])
def test_a_sentence_longer_than_a_passage_is_read_in_pieces_to_its_end(text):
    weighed = weigh_passages(QUESTION, text, token_vectors(text))
    spans = sorted((one.start, one.end) for one in weighed)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text.rstrip())
    assert all(0 < end - start <= PASSAGE_CHARS for start, end in spans)
