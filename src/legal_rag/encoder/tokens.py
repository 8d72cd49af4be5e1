"""Texts to token ids, as a ColBERT checkpoint reads them: prompt, marker token, truncation, query expansion."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from legal_rag.base.sqlite import connect_snapshot, connect_to_write, transaction
from legal_rag.base.text import read_toml

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Kind = Literal["query", "document"]
TOKENIZER_FILE, PIECES_FILE, FRAME_FILE = "tokenizer.json", "pieces.sqlite", "tokenizer_frame.json"
FEW_WORDS = 2000  # different ones, above which the whole vocabulary is loaded
CREATE = "CREATE TABLE pieces (piece TEXT PRIMARY KEY, id INTEGER NOT NULL, score REAL NOT NULL) WITHOUT ROWID"
FIND = "SELECT piece, id, score FROM pieces WHERE piece IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, kw_only=True)
class TokenSettings:
    """How a checkpoint reads texts; the meanings are those of PyLate's `ColBERT`."""

    dim: int  # of its token vectors
    max_positions: int  # tokens its transformer takes at most
    query_length: int
    document_length: int
    query_prefix: str  # the marker token after the first special token; '' for none
    document_prefix: str
    query_prefix_id: int | None
    document_prefix_id: int | None
    query_prompt: str = ""  # written before every text
    document_prompt: str = ""
    padding_id: int  # of the shorter texts of a batch, masked
    expansion_id: int  # fills an expanded query up to `query_length`
    expands_queries: bool = False
    attends_to_expansion: bool = False
    skipped_ids: tuple[int, ...] = ()  # document tokens that get no vector, punctuation
    lower_case: bool = False

    def length(self, kind: Kind) -> int:
        """Return the number of tokens read of a text, special tokens, prompt and marker included."""
        return self.query_length if kind == "query" else self.document_length

    def prefix_id(self, kind: Kind) -> int | None:
        """Return the id of the marker token."""
        return self.query_prefix_id if kind == "query" else self.document_prefix_id

    def prompt(self, kind: Kind) -> str:
        """Return the prompt."""
        return self.query_prompt if kind == "query" else self.document_prompt


@cache
def known_encoders() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings of known encoders in `encoders.toml`, by name."""
    return read_toml("legal_rag.encoder", "encoders.toml")


def check_lengths(settings: TokenSettings) -> None:
    """Raise ValueError for a length beyond the transformer's positions, where its vectors would be meaningless."""
    longest = max(settings.query_length, settings.document_length)
    if longest > settings.max_positions:
        raise ValueError(f"this encoder reads at most {settings.max_positions} tokens, not {longest}")


class TokenBatch(NamedTuple):
    """Padded texts, each array of shape (n_texts, n_tokens)."""

    ids: np.ndarray  # int64
    attention: np.ndarray  # int64: 1 where the transformer attends
    kept: np.ndarray  # bool: tokens that get a vector


class WholeVocabulary:
    """A tokenizer that is loaded whole."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()

    def tokenizer(self, texts: Sequence[str] = ()) -> "Tokenizer":
        """Return the tokenizer, whatever the texts."""
        return self._tokenizer

    def ids(self, encoding: "Encoding") -> list[int]:
        """Return the ids of an encoding's tokens."""
        return encoding.ids


class UnigramSubset:
    """The pieces met so far of a large Unigram vocabulary; texts are cut as the whole one cuts them.

    `tokenizers` takes 0.7 s to build the trie of 250,000 pieces, under Python's lock; a question needs some 200.
    A text's best segmentation (Kudo, subword regularization, 2018) depends on the scores of the pieces that occur in
    it, and on the lowest score of all, from which the score of an unknown character is made. A piece never spans two of
    the pre-tokenizer's words.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        frame = json.loads((folder / FRAME_FILE).read_text(encoding="utf-8"))
        self._longest: int = frame["longest"]
        self._spec: dict[str, Any] = frame["tokenizer"]
        self._specials = [token["content"] for token in self._spec["added_tokens"]]
        self._vocabulary: list[tuple[str, float]] = self._spec["model"]["vocab"]
        self._ids: dict[str, int] = frame["ids"]
        self._unknown: int = frame["unknown"]
        self._words: set[str] = set()
        self._is_whole = False
        self._lock = threading.Lock()
        self._tokenizer = self._built()

    def tokenizer(self, texts: Sequence[str] = ()) -> "Tokenizer":
        """Return a tokenizer that cuts these texts as the whole one does."""
        with self._lock:
            if self._is_whole:
                return self._tokenizer
            words = {word for text in texts for word in self._split_words(text)} - self._words
            # A special token in a text splits it first, which changes the words.
            special = any(token in text for text in texts for token in self._specials)
            if special or len(words) + len(self._words) > FEW_WORDS:
                self._tokenizer = _whole_tokenizer(self._folder)
                self._ids, self._is_whole = self._tokenizer.get_vocab(), True
            elif words:
                self._add_pieces_of(words)
            return self._tokenizer

    def ids(self, encoding: "Encoding") -> list[int]:
        """Return the ids, in the whole vocabulary, of the tokens of an encoding by any tokenizer that this returned."""
        return [self._ids.get(token, self._unknown) for token in encoding.tokens]

    def _split_words(self, text: str) -> Iterator[str]:
        normalized = self._tokenizer.normalizer.normalize_str(text)
        return (word for word, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(normalized))

    def _add_pieces_of(self, words: set[str]) -> None:
        parts = {part for word in words for part in _substrings(word, self._longest)} - self._ids.keys()
        with closing(connect_snapshot(self._folder / PIECES_FILE)) as connection:
            for piece, number, score in connection.execute(FIND, (json.dumps(list(parts)),)):
                self._ids[piece] = number
                self._vocabulary.append((piece, score))
        self._words |= words
        self._tokenizer = self._built()

    def _built(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        return Tokenizer.from_str(json.dumps(self._spec))


Vocabulary = WholeVocabulary | UnigramSubset


def read_vocabulary(folder: Path) -> Vocabulary:
    """Read what `write_vocabulary` wrote into a folder."""
    return UnigramSubset(folder) if (folder / FRAME_FILE).is_file() else WholeVocabulary(_whole_tokenizer(folder))


def _whole_tokenizer(folder: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / TOKENIZER_FILE))


def write_vocabulary(tokenizer: "Tokenizer", folder: Path, *, in_pieces: bool = False) -> None:
    """Write a tokenizer into a folder; `in_pieces`, a Unigram one with what `UnigramSubset` reads."""
    tokenizer.save(str(folder / TOKENIZER_FILE))
    if not in_pieces:
        return
    spec = json.loads(tokenizer.to_str())
    model = spec["model"]
    rows = {piece: (piece, number, score) for number, (piece, score) in enumerate(model["vocab"])}
    lowest, _ = min(model["vocab"], key=lambda entry: entry[1])
    unknown, _ = model["vocab"][model["unk_id"]]
    always = dict.fromkeys([unknown, lowest, *(token["content"] for token in spec["added_tokens"])])
    spec["model"] |= {"unk_id": 0, "vocab": [(piece, rows[piece][2]) for piece in always]}
    frame = {
        "tokenizer": spec,
        "longest": max(len(piece) for piece in rows),
        "ids": {piece: rows[piece][1] for piece in always},
        "unknown": rows[unknown][1],
    }
    with closing(connect_to_write(folder / PIECES_FILE)) as connection, transaction(connection):
        connection.execute(CREATE)
        connection.executemany("INSERT INTO pieces VALUES (?, ?, ?)", sorted(rows.values()))
    (folder / FRAME_FILE).write_text(json.dumps(frame), encoding="utf-8")


def _substrings(word: str, longest: int) -> Iterator[str]:
    for start in range(len(word)):
        for end in range(start + 1, min(start + longest, len(word)) + 1):
            yield word[start:end]


class Tokens:
    """A checkpoint's tokenizer with its settings; any number of threads may share one."""

    def __init__(self, vocabulary: Vocabulary, settings: TokenSettings) -> None:
        self.vocabulary, self.settings = vocabulary, settings
        self._n_special = vocabulary.tokenizer().num_special_tokens_to_add(is_pair=False)
        self._skipped = np.array(settings.skipped_ids, dtype=np.int64)

    def encode(self, texts: Sequence[str], kind: Kind) -> "list[Encoding]":
        """Tokenize texts without special tokens and without truncation; white space around them is not read."""
        inputs = [self._input(text, kind).strip() for text in texts]
        return self.vocabulary.tokenizer(inputs).encode_batch(inputs, add_special_tokens=False)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Count each document's tokens, white space around it included, so that counts of parts add up."""
        inputs = [self._input(text, "document") for text in texts]
        # `encode_batch_fast` leaves the offsets out.
        encodings = self.vocabulary.tokenizer(inputs).encode_batch_fast(inputs, add_special_tokens=False)
        return [self.length_of(encoding, "document") for encoding in encodings]

    def length_of(self, encoding: "Encoding", kind: Kind) -> int:
        """Return the tokens of a text, special tokens and marker included, expansion excluded, without truncation."""
        return len(encoding) + self._n_special + (self.settings.prefix_id(kind) is not None)

    def offsets(self, text: str, encoding: "Encoding", kind: Kind) -> np.ndarray:
        """Return the span in `text` of each token that `batch` makes of its encoding, (n_tokens, 2), int64.

        Start equals end where there is none: special tokens, marker and prompt.
        """
        prompt, full = self.settings.prompt(kind), self.settings.prompt(kind) + text
        shift = len(full) - len(full.lstrip()) - len(prompt)
        # Not those of the finished encoding, where byte-level offsets are trimmed again.
        spans = iter(encoding.offsets)
        offsets = []
        for special in self._finished(encoding).special_tokens_mask:
            start, end = (0, 0) if special else next(spans)
            # The first word's piece may begin with the blank that ends the prompt.
            in_text = end + shift > 0 and end > start
            offsets.append((max(0, start + shift), end + shift) if in_text else (0, 0))
        if self.settings.prefix_id(kind) is not None:
            offsets.insert(1, (0, 0))
        return np.array(offsets, dtype=np.int64).reshape(-1, 2)

    def batch(self, encodings: "Sequence[Encoding]", kind: Kind) -> TokenBatch:
        """Truncate, mark and pad tokenized texts; their encodings are truncated in place."""
        settings, prefix_id, limit = self.settings, self.settings.prefix_id(kind), self.settings.length(kind)
        rows = []
        for encoding in encodings:
            encoding.truncate(max(0, limit - self._n_special - (prefix_id is not None)))
            ids = self.vocabulary.ids(self._finished(encoding))
            rows.append(ids if prefix_id is None else [*ids[:1], prefix_id, *ids[1:]])
        expanded = kind == "query" and settings.expands_queries
        width = limit if expanded else max(map(len, rows))
        batch = np.full((len(rows), width), settings.expansion_id if expanded else settings.padding_id, dtype=np.int64)
        attention = np.zeros_like(batch)
        for row, ids in enumerate(rows):
            batch[row, : len(ids)], attention[row, : len(ids)] = ids, 1
        if expanded:
            if settings.attends_to_expansion:
                attention[:] = 1
            return TokenBatch(batch, attention, np.ones(batch.shape, dtype=bool))
        kept = attention.astype(bool)
        return TokenBatch(batch, attention, kept & ~np.isin(batch, self._skipped) if kind == "document" else kept)

    def _input(self, text: str, kind: Kind) -> str:
        whole = self.settings.prompt(kind) + text
        return whole.lower() if self.settings.lower_case else whole

    def _finished(self, encoding: "Encoding") -> "Encoding":
        return self.vocabulary.tokenizer().post_process(encoding)
