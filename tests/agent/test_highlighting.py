"""Evidence for a reader: passages in their surroundings, what was cited, and which word answers which."""

import re
from types import SimpleNamespace
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pytest

from legal_rag.agent.passages import SURROUNDINGS, complete_evidence, match_words
from legal_rag.agent.prediction import Passage
from legal_rag.citations import Citation
from legal_rag.corpus import Document

QUESTION = "Dans quel délai le candidat doit-il déposer son compte de campagne ?"


class Identity(NamedTuple):
    document_length: int = 64


class WordEncoder:
    """Gives each word a direction of its own; a special token stands at either end."""

    identity = Identity()

    def count_tokens(self, texts):
        return [len(self.encode_with_offsets(text)[0]) for text in texts]

    def encode_with_offsets(self, text, *, as_query=False):
        spans = [(0, 0), *(match.span() for match in re.finditer(r"\w+", text)), (0, 0)]
        rows = np.zeros((len(spans), 4096), dtype=np.float32)
        for row, (start, end) in enumerate(spans):
            rows[row, crc32(text[start:end].encode()) % 4096] = 1.0
        return rows, np.array(spans)


class Shelf:
    """A corpus of a few texts, whose words are all rare."""

    def __init__(self, **texts):
        self.texts = texts

    def document(self, doc_id):
        if doc_id not in self.texts:
            raise LookupError(f"no document {doc_id!r}")
        return Document(id=doc_id, title=f"Titre {doc_id}", content=self.texts[doc_id], decision_date="2020-01-02")

    def lexical_index(self):
        return self

    def rarity(self, word):
        return 1.0


LONG = "".join(f"{number:04d} " for number in range(400))  # 2,000 characters


def passage_of(shelf, doc_id, start, end, score=1.0):
    document = shelf.document(doc_id)
    text = document.content[start:end]
    return Passage(doc_id, f"{doc_id}-0", start, end, text, score, document.title, document.decision_date)


def citation_of(shelf, doc_id, start, end, status="verified"):
    return Citation(doc_id, start, end, shelf.document(doc_id).content[start:end], status)


def asking(question, encoder):
    """Encode a question as a retriever does."""
    return SimpleNamespace(text=question, tokens=encoder.encode_with_offsets(question, as_query=True))


def completed(shelf, passages, citations=(), **settings):
    encoder = WordEncoder()
    return complete_evidence(passages, citations, shelf, asking("juge bail", encoder), encoder, **settings)


def test_a_passage_gets_what_stands_before_and_after_it():
    shelf = Shelf(A=LONG)
    (one,) = completed(shelf, [passage_of(shelf, "A", 500, 600)])
    assert (one.before, one.after) == (LONG[300:500], LONG[600:800])
    (first,) = completed(shelf, [passage_of(shelf, "A", 0, 2000)])
    assert (first.before, first.after) == ("", "")


def test_a_citation_seen_with_its_surroundings_adds_no_passage():
    shelf = Shelf(A=LONG)
    passages = [passage_of(shelf, "A", 500, 600)]
    shown = completed(shelf, passages, [citation_of(shelf, "A", 500, 600), citation_of(shelf, "A", 520, 540)])
    assert [(one.char_start, one.char_end) for one in shown] == [(500, 600)]


@pytest.mark.parametrize(("start", "end"), [(499, 600), (500, 601), (1500, 1600)])
def test_a_citation_from_elsewhere_is_added_last_without_a_score(start, end):
    shelf = Shelf(A=LONG)
    shown = completed(shelf, [passage_of(shelf, "A", 500, 600)], [citation_of(shelf, "A", start, end)] * 2)
    assert len(shown) == 2
    assert shown[1][:8] == ("A", "", start, end, LONG[start:end], None, "Titre A", "2020-01-02")
    assert shown[1].before == LONG[start - SURROUNDINGS : start]
    assert shown[1].after == LONG[end : end + SURROUNDINGS]


@pytest.mark.parametrize(
    ("doc_id", "start", "end"),
    [("B", 0, 10), ("A", 0, 0), ("A", 10, 5), ("A", -5, 5), ("A", 0, 2001), ("\ud800", 0, 5), ("", 0, 10**12)],
)
def test_a_citation_of_no_text_adds_nothing(doc_id, start, end):
    shelf = Shelf(A=LONG)
    assert completed(shelf, [], [Citation(doc_id, start, end, "x", "unverified")]) == []


def test_a_passage_whose_document_is_gone_or_has_changed_stays_as_it_is():
    shelf = Shelf(A=LONG)
    gone = passage_of(shelf, "A", 0, 4)._replace(doc_id="B", score=None)
    changed = passage_of(shelf, "A", 0, 4)._replace(text="autre")
    shown = completed(shelf, [gone, changed])
    assert [one._replace(matches=()) for one in shown] == [changed, gone]


def test_the_best_passages_and_those_found_and_cited_are_matched():
    texts = dict.fromkeys("ABCDE", "juge " * 60)
    shelf = Shelf(**texts)
    passages = [passage_of(shelf, name, 0, 300, 10.0 - number) for number, name in enumerate("ABCDE")]
    shown = completed(shelf, passages, [citation_of(shelf, "E", 5, 9)])
    assert [bool(one.matches) for one in shown] == [True, True, True, False, True]


def test_what_was_only_cited_is_shown_where_it_stands_and_not_matched():
    shelf = Shelf(A="juge " * 400)
    (one,) = completed(shelf, [], [citation_of(shelf, "A", 500, 600)])
    assert (one.before, one.after, one.matches) == ("juge " * 40, "juge " * 40, ())


def test_without_an_encoder_passages_get_their_surroundings_alone():
    shelf = Shelf(A=LONG)
    found, cited = passage_of(shelf, "A", 500, 600), citation_of(shelf, "A", 1500, 1600)
    shown = complete_evidence([found], [cited], shelf)
    assert [(one.char_start, len(one.before), one.matches) for one in shown] == [(500, 200, ()), (1500, 200, ())]


def test_offsets_are_the_documents():
    shelf = Shelf(A="x" * 40 + " le juge du bail " + "y" * 40)
    (one,) = completed(shelf, [passage_of(shelf, "A", 40, 57)])
    content = shelf.texts["A"]
    assert [(m.query_start, m.query_end, content[m.char_start : m.char_end]) for m in one.matches] == [
        (0, 4, "juge"),
        (5, 9, "bail"),
    ]


def matched(question, text, encoder=None):
    encoder = encoder or WordEncoder()
    (found,) = match_words(asking(question, encoder), [text], Shelf(), encoder)
    return [(question[m.query_start : m.query_end], text[m.char_start : m.char_end], m.similarity) for m in found]


class TableEncoder(WordEncoder):
    """Gives each piece the vector that a table has for it."""

    def __init__(self, pieces, vectors):
        self.pieces, self.vectors = pieces, vectors

    def encode_with_offsets(self, text, *, as_query=False):
        spans = [(0, 0), *self.pieces[text]]
        rows = [self.vectors[text[start:end]] for start, end in spans]
        return np.array(rows, dtype=np.float32), np.array(spans)


def test_a_word_of_several_pieces_is_as_near_as_their_mean():
    pieces = {"dépôt": [(0, 2), (2, 5)], "déposer, pôt": [(0, 2), (2, 7), (7, 8), (9, 12)]}
    vectors = {
        "": [0, 0, 1],
        "dé": [1, 0, 0],
        "pôt": [0, 1, 0],
        "poser": [0, 0.5, 0],
        ",": [9, 9, 9],
    }
    assert matched("dépôt", "déposer, pôt", TableEncoder(pieces, vectors)) == [("dépôt", "déposer", 0.75)]


def test_special_tokens_and_signs_match_nothing():
    pieces = {"bail ?": [(0, 4), (5, 6)], "? bail": [(0, 1), (2, 6)]}
    vectors = {"": [1, 0], "bail": [0.6, 0.8], "?": [1, 0]}
    ((asked, found, similarity),) = matched("bail ?", "? bail", TableEncoder(pieces, vectors))
    assert (asked, found) == ("bail", "bail")
    assert similarity == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", " ", "?!… «»", "\n\n"])
def test_a_text_without_words_has_no_match(text):
    assert matched("juge", text) == []
    assert matched(text or "?", "juge") == []


def test_a_long_passage_is_read_in_parts():
    text = "mot " * 1000 + "bail juge" + " mot" * 1000
    assert matched("juge bail", text[: 4 * 1000 + 9]) == [("juge", "juge", 1.0), ("bail", "bail", 1.0)]


def test_words_that_count_for_nothing_are_left_out(tiny_library, tiny_encoder):
    text = "Le candidat doit déposer le compte de campagne dans le délai."
    (found,) = match_words(asking(QUESTION, tiny_encoder), [text], tiny_library, tiny_encoder)
    asked = [QUESTION[one.query_start : one.query_end] for one in found]
    assert {"le", "de", "Dans"}.isdisjoint(asked)
    assert {"délai", "candidat", "déposer", "compte", "campagne"} <= set(asked)


def test_equal_words_are_matched_by_a_real_encoder(tiny_library, tiny_encoder):
    text = "La commission examine chaque compte de campagne que le candidat dépose."
    (found,) = match_words(asking(QUESTION, tiny_encoder), [text], tiny_library, tiny_encoder)
    nearest = {QUESTION[one.query_start : one.query_end]: text[one.char_start : one.char_end] for one in found}
    assert (nearest["candidat"], nearest["campagne"], nearest["compte"]) == ("candidat", "campagne", "compte")
    assert all(-1.0 <= one.similarity <= 1.0 for one in found)
