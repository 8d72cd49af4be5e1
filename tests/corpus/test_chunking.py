"""Chunks: they hold the whole text, point back into it, and fit the encoder, header and all."""

import dataclasses
import re
import time
from itertools import pairwise

import chonkie
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from legal_rag.corpus import ChunkConfig, build_chunker, chunk_document, chunking, parse_chunk_id
from legal_rag.corpus.chunking import PieceCounter, chunk_id
from legal_rag.law import split_sentences

OVERHEAD = 3
CONFIGS = [
    ChunkConfig(chunk_tokens=limit, overlap_tokens=overlap, header_on=header_on)
    for limit in (32, 128, 511)
    for overlap in (0, 64)
    for header_on in ("first", "every", "none")
    if overlap <= limit // 2
] + [
    ChunkConfig(chunk_tokens=32, overlap_tokens=16, header_on="every"),
    ChunkConfig(chunk_tokens=128, split_at="sections"),
    ChunkConfig(chunk_tokens=64, overlap_tokens=16, header_on="every", split_at="sections"),
]
LEGAL_TEXT = st.lists(
    st.sampled_from(
        ["M. X... ", "Attendu que ", "la cour ", "rejette. ", "Vu ; ", "\n\n", "   ", "œ’", "anticonstitution", "1°"]
    ),
    max_size=400,
).map("".join)


def count_tokens(texts):
    """Count letters by fours and every other mark alone, as a small tokenizer would."""
    return [OVERHEAD + len(re.findall(r"\w{1,4}|[^\w\s]", text)) for text in texts]


def assert_sound(chunks, content, config, count=count_tokens):
    """Check what holds of the chunks of any text."""
    covered = bytearray(len(content))
    for index, chunk in enumerate(chunks):
        assert chunk.chunk_index == index
        assert chunk.text == content[chunk.char_start : chunk.char_end]
        assert chunk.text == chunk.text.strip() != ""
        assert not chunk.header or config.header_on == "every" or (config.header_on == "first" and index == 0)
        covered[chunk.char_start : chunk.char_end] = b"\1" * len(chunk.text)
    assert all(covered[place] or content[place].isspace() for place in range(len(content)))
    for before, after in pairwise(chunks):
        assert before.char_start < after.char_start
        assert before.char_end < after.char_end
        assert config.overlap_tokens or before.char_end <= after.char_start
    assert max(count([chunk.header + chunk.text for chunk in chunks]), default=0) <= config.chunk_tokens


@settings(deadline=None)
@given(st.text() | LEGAL_TEXT, st.text(max_size=60) | LEGAL_TEXT, st.sampled_from(CONFIGS))
def test_chunks_of_any_text_are_sound(content, title, config):
    chunker = build_chunker(config, count_tokens)
    assert_sound(chunk_document(content, "A", title, "2020-01-02", chunker), content, config)


@settings(deadline=None)
@given(st.text() | LEGAL_TEXT, st.text(max_size=60) | LEGAL_TEXT, st.sampled_from(CONFIGS))
def test_chunks_of_any_text_are_sound_for_the_bundled_encoder(bundled, content, title, config):
    chunker = build_chunker(config, bundled.count_tokens, bundled.identity.document_length)
    chunks = chunk_document(content, "A", title, "2020-01-02", chunker)
    assert_sound(chunks, content, config, bundled.count_tokens)


HOSTILE = {
    "word": "a" * 5_000,
    "word between": "Vu " + "a" * 5_000 + " rejette",
    "sentence": "attendu que la cour " * 400,
    "lines": "Attendu que M. X... conclut.\n" * 100,
    "growing": "\u202f\n".join("é" * size for size in range(1, 100)),
    "symbols": "ﷺ\u2a0c👨‍👩‍👧" * 150,
    "dots": "." * 2_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_chunks_of_a_hostile_text_are_sound(bundled, content):
    assert_sound_at_every_setting(content, CONFIGS, count_tokens)
    assert_sound_at_every_setting(content, [ChunkConfig(), CONFIGS[-1]], bundled.count_tokens)


def assert_sound_at_every_setting(content, configs, count):
    for config in configs:
        chunks = chunk_document(content, "A", "Titre de la décision", "2020-01-02", build_chunker(config, count))
        assert_sound(chunks, content, config, count)


def count_two_words_as_one(texts):
    """Count as a tokenizer whose tokens reach across blanks."""
    return [OVERHEAD + -(-len(text.split()) // 2) + len(re.findall(r"\w{8}", text)) for text in texts]


def count_more_together(texts):
    """Count more tokens in a text than in its words, from the second on."""
    return [2 * count if count > OVERHEAD + 2 else count for count in count_tokens(texts)]


def count_more_after_a_header(texts):
    """Count a line break's neighbours as more tokens than they have alone."""
    return [
        count + 9 * len(re.findall(r"\w\n\w", text)) for text, count in zip(texts, count_tokens(texts), strict=True)
    ]


@pytest.fixture(scope="module")
def byte_pairs(sample_rows):
    """A byte-level BPE tokenizer, whose words begin with their blank, as a counter."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=800, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator((row["content"] for row in sample_rows[:20]), trainer)
    return lambda texts: [OVERHEAD + len(one) for one in tokenizer.encode_batch_fast(list(texts))]


@pytest.mark.parametrize("count", [count_two_words_as_one, count_more_together, count_more_after_a_header])
def test_chunks_are_within_the_limit_of_a_tokenizer_whose_counts_do_not_add_up(count):
    text = "".join(f"Attendu que M. X... conclut {number} fois ;\nVu l'article {number}. " for number in range(60))
    for content in (text, *HOSTILE.values()):
        assert_sound_at_every_setting(content, CONFIGS, count)


def test_chunks_are_within_the_limit_of_byte_pairs(byte_pairs, sample_rows):
    for content in (sample_rows[0]["content"], *HOSTILE.values()):
        assert_sound_at_every_setting(content, [ChunkConfig(), CONFIGS[-1]], byte_pairs)


@pytest.mark.slow
@pytest.mark.shared
def test_chunks_of_all_real_decisions_are_sound(shared_decisions, bundled):
    config, overlapping = ChunkConfig(), ChunkConfig(chunk_tokens=128, overlap_tokens=32, header_on="every")
    assert len(shared_decisions) == 4_097
    for number, document in enumerate(shared_decisions):
        used = overlapping if number % 2 else config
        chunker = build_chunker(used, bundled.count_tokens, bundled.identity.document_length)
        chunks = chunk_document(document.content, document.id, document.title, document.decision_date, chunker)
        assert_sound(chunks, document.content, used, bundled.count_tokens)


def chunk_texts(content, title="", date="", columns=None, **settings):
    chunker = build_chunker(ChunkConfig(**settings), count_tokens)
    return [item.header + item.text for item in chunk_document(content, "A", title, date, chunker, columns=columns)]


@pytest.mark.parametrize("content", ["", " ", "\n\t \u00a0\u2003", "\n" * 10_000])
def test_a_blank_document_has_no_chunk(content):
    assert chunk_texts(content, "Titre", "2020-01-02") == []


@pytest.mark.parametrize(
    ("title", "date", "header"),
    [
        ("Arrêt", "2020-01-02", "Titre: Arrêt | Date: 2020-01-02\n"),
        ("Arrêt", "", "Titre: Arrêt\n"),
        ("", "2020-01-02", "Date: 2020-01-02\n"),
        ("", "", ""),
        (" \n ", "", ""),
        ("Arrêt\ndu  jour ", "", "Titre: Arrêt du jour\n"),
    ],
)
def test_a_short_document_is_one_chunk_whose_header_leaves_out_what_is_missing(title, date, header):
    assert chunk_texts("\n Rejette. \n", title, date) == [header + "Rejette."]


def test_a_header_may_name_other_columns():
    columns = {"section": "Livre II", "number": 12, "laws": ["9", "16"], "empty": None}
    labels = (("Section", "section"), ("N°", "number"), ("Lois", "laws"), ("Vide", "empty"), ("Absent", "absent"))
    texts = chunk_texts("Rejette.", columns=columns, header_columns=labels)
    assert texts == ["Section: Livre II | N°: 12 | Lois: 9 ; 16\nRejette."]


@pytest.mark.parametrize(("header_on", "expected"), [("first", [0]), ("every", [0, 1, 2]), ("none", [])])
def test_a_header_stands_on_the_chunks_it_is_asked_for(header_on, expected):
    texts = chunk_texts("la cour " * 9 + "\n" + "la cour " * 20, "T", chunk_tokens=32, header_on=header_on)
    assert [index for index, text in enumerate(texts) if text.startswith("Titre: T\n")] == expected


def test_a_long_header_is_cut_at_a_word_and_leaves_half_the_room_and_one_of_an_endless_word_is_left_out():
    texts = chunk_texts("mot " * 500, "titre " * 1_000, chunk_tokens=128, header_on="every")
    header = texts[0].split("\n")[0]
    assert header.startswith("Titre: titre titre")
    assert header.endswith(" titre")
    assert 30 < count_tokens([header])[0] - OVERHEAD <= (128 - OVERHEAD) // 2
    assert count_tokens(texts)[0] > 120
    assert [text[-8:] for text in chunk_texts("Rejette.", "a" * 20_000)] == ["Rejette."]


def test_chunks_end_where_sentences_end_or_with_the_main_parts_of_a_decision():
    content = "Attendu que la cour d'appel conclut. M. X... répond que l'art. L. 1152-1 vaut. Il est débouté de tout."
    assert chunk_texts(content, chunk_tokens=32) == [
        "Attendu que la cour d'appel conclut.",
        "M. X... répond que l'art. L. 1152-1 vaut. Il est débouté de tout.",
    ]
    content = (
        "COUR D'APPEL\n\nEXPOSÉ DU LITIGE\n\nLe bail est long.\n\nMOTIFS\n\nIl finit.\n\nPAR CES MOTIFS\n\nRejette."
    )
    assert len(chunk_texts(content)) == 1
    starts = [text.split("\n")[0] for text in chunk_texts(content, split_at="sections")]
    assert starts == ["COUR D'APPEL", "EXPOSÉ DU LITIGE", "MOTIFS", "PAR CES MOTIFS"]


def test_an_overlap_repeats_whole_sentences_and_alone_is_no_chunk():
    content = " ".join(f"La phrase {word}." for word in ("un", "deux", "trois", "cinq", "six", "sept", "huit", "neuf"))
    texts = chunk_texts(content, chunk_tokens=32, overlap_tokens=12)
    assert texts[:2] == [
        "La phrase un. La phrase deux. La phrase trois. La phrase cinq. La phrase six.",
        "La phrase cinq. La phrase six. La phrase sept. La phrase huit. La phrase neuf.",
    ]
    content = "Un mot. Deux mots. Trois mots. " + "Long " * 27 + "."
    texts = chunk_texts(content, chunk_tokens=32, overlap_tokens=16)
    assert texts == ["Un mot. Deux mots. Trois mots.", "Long " * 27 + "."]


def test_a_word_too_long_is_cut_and_loses_nothing_and_the_limit_is_never_more_than_the_encoder_reads():
    texts = chunk_texts("a" * 20_000, chunk_tokens=511)
    assert "".join(texts) == "a" * 20_000
    assert len(texts) < 20_000 / 4 / 508 * 2 + 1
    chunker = build_chunker(ChunkConfig(), count_tokens, document_length=64)
    assert_sound(chunk_document("mot " * 900, "A", chunker=chunker), "mot " * 900, ChunkConfig(chunk_tokens=64))


def test_a_text_of_nothing_but_short_lines_is_chunked_in_reasonable_time():
    started = time.process_time()
    assert len(chunk_texts("mot\n" * 30_000)) > 50
    assert time.process_time() - started < 10


def test_words_are_counted_as_the_bundled_encoder_counts_whole_sentences(bundled, sample_rows):
    overhead = bundled.count_tokens([""])[0]
    counter = PieceCounter(bundled.count_tokens, overhead)
    for content in [row["content"] for row in sample_rows[:8]]:
        sentences = [content[start:end] for start, end in split_sentences(content)]
        exact = [count - overhead for count in bundled.count_tokens(sentences)]
        assert counter.counts(sentences) == exact


def test_a_document_is_tokenized_word_by_word_and_whole_only_where_the_counts_may_differ(sample_rows):
    read = []

    def counting(texts):
        read.extend(texts)
        return count_tokens(texts)

    content = max((row["content"] for row in sample_rows), key=len)
    chunker = build_chunker(ChunkConfig(), counting)
    for text, n_read in ((content, 0), (f"{content}\x85fin", 1)):
        chunk_document(text, "A", "Titre", "2020-01-02", chunker)
        read.clear()
        chunk_document(text, "A", "Titre", "2020-01-02", chunker)
        assert sum(len(piece) > 100 for piece in read) == n_read


@given(st.text(alphabet=" \n!\"#$%&'()*+,-./059:;=>?@AZ[\\]^_`az{|}~\u00a0«»°§·ÀéÿŒœ€’“”–—…<\x85\u0301", max_size=200))
def test_counts_said_to_be_exact_are(bundled, text):
    counter = PieceCounter(bundled.count_tokens, bundled.count_tokens([""])[0])
    assert counter.exact_counts([text, ""]) == bundled.count_tokens([text, ""])


@pytest.mark.parametrize("name", ["KNOWN_PIECES", "CHUNKS_AT_ONCE"])
@pytest.mark.parametrize("config", [CONFIGS[0], *CONFIGS[-3:]])
def test_chunks_do_not_depend_on_how_much_is_read_at_once(monkeypatch, sample_rows, name, config):
    texts = ["\n".join(row["content"] for row in sample_rows[:3]), "\u200b\n" * 50 + "mot. " * 90, *HOSTILE.values()]

    def chunks():
        chunker = build_chunker(config, count_tokens)
        return [chunk_document(text, "A", "Titre", "2020-01-02", chunker) for text in texts]

    before = chunks()
    monkeypatch.setattr(chunking, name, 2)
    assert chunks() == before


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "jugement," * 30_000,
        "." * 300_000,
        ". " * 30_000,
        "a\u00a0" * 60_000,
        "la cour " * 30_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_a_hostile_text_is_chunked_in_linear_time(text):
    started = time.process_time()
    chunks = chunk_texts(text, chunk_tokens=511)
    assert time.process_time() - started < 20  # a quadratic step takes minutes
    assert len("".join("".join(chunks).split())) == len("".join(text.split()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chunk_tokens": 512}, "chunk_tokens must be 32 to 511, got 512"),
        ({"chunk_tokens": 31}, "chunk_tokens must be 32 to 511, got 31"),
        ({"overlap_tokens": -1}, "overlap_tokens must be 0 to 255, got -1"),
        ({"chunk_tokens": 100, "overlap_tokens": 51}, "overlap_tokens must be 0 to 50, got 51"),
        ({"split_at": "lines"}, "split_at must be 'sentences' or 'sections', got 'lines'"),
        ({"header_on": "last"}, "header_on must be 'first', 'every' or 'none', got 'last'"),
    ],
)
def test_settings_out_of_range_are_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        ChunkConfig(**settings)


def test_an_encoder_that_leaves_no_room_and_no_chunker_are_errors():
    with pytest.raises(ValueError, match="no room for text: 18 tokens a chunk, of which the encoder itself takes 3"):
        build_chunker(ChunkConfig(), count_tokens, document_length=18)
    with pytest.raises(ValueError, match="overlap"):
        build_chunker(ChunkConfig(overlap_tokens=200), count_tokens, document_length=180)
    with pytest.raises(ValueError, match="needs a chunker"):
        chunk_document("texte", "A")


def test_a_chunker_of_chonkie_serves_with_its_own_limit(sample_rows):
    chunker = chonkie.SentenceChunker(chunk_size=1500, chunk_overlap=200)
    for row in sample_rows[:20]:
        chunks = chunk_document(row["content"], row["id"], row["title"], row["decision_date"], chunker)
        assert [chunk.id for chunk in chunks] == [f"{row['id']}-{number}" for number in range(len(chunks))]
        assert [chunk.text for chunk in chunks] == [one.text for one in chunker.chunk(row["content"])]
        assert all(row["content"][chunk.char_start : chunk.char_end] == chunk.text for chunk in chunks)
        assert chunks[0].header == f"Titre: {row['title']} | Date: {row['decision_date']}\n"
        assert {chunk.header for chunk in chunks[1:]} <= {""}
    assert chunk_document(" \n", "A", chunker=chunker) == []
    assert chunk_document("Rejette.", "A", chunker=chunker)[0].header == ""


def test_a_chunker_whose_offsets_are_wrong_is_refused():
    class Moved(chonkie.SentenceChunker):
        def chunk(self, text):
            return [dataclasses.replace(one, start_index=one.start_index + 1) for one in super().chunk(text)]

    with pytest.raises(ValueError, match="Moved gave a chunk of A at 1-8, where it is not"):
        chunk_document("Rejette.", "A", chunker=Moved())


@pytest.mark.parametrize("doc_id", ["JURITEXT000007022836", "2001-2589 AN", "sous/a.txt", "-", "é-"])
def test_a_chunk_id_is_read_as_it_was_written_and_a_chunk_knows_its_own(doc_id):
    assert parse_chunk_id(chunk_id(doc_id, 12)) == (doc_id, 12)
    (chunk,) = chunk_document("Rejette.", doc_id, chunker=build_chunker(ChunkConfig(), count_tokens))
    assert chunk.id == f"{doc_id}-0"


@pytest.mark.parametrize(
    "text", ["", "JURITEXT1", "JURITEXT1-", "-3", "JURITEXT1-x", "A-1 ", "A-1.0", "A-+1", "A-²", "A-١"]
)
def test_parse_chunk_id_rejects_a_malformed_id(text):
    with pytest.raises(ValueError, match=f"not a chunk id: {re.escape(repr(text))}"):
        parse_chunk_id(text)
