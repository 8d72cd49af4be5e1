"""A large Unigram vocabulary of which only the pieces that a text can be cut into are read.

`tokenizers` takes 0.7 s to build the trie of 250,000 pieces, under Python's lock; a question needs some two hundred.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legal_rag.base.sqlite import connect_snapshot, connect_to_write, transaction

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

TOKENIZER_FILE, PIECES_FILE, FRAME_FILE = "tokenizer.json", "pieces.sqlite", "tokenizer_frame.json"
FEW_WORDS = 2000  # different ones, above which the whole vocabulary is loaded
CREATE = "CREATE TABLE pieces (piece TEXT PRIMARY KEY, id INTEGER NOT NULL, score REAL NOT NULL) WITHOUT ROWID"
FIND = "SELECT piece, id, score FROM pieces WHERE piece IN (SELECT value FROM json_each(?))"


class WholeVocabulary:
    """A tokenizer that is loaded whole."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()

    def tokenizer(self, texts: Sequence[str] = ()) -> "Tokenizer":
        """Return the tokenizer, whatever the texts."""
        return self._tokenizer

    def whole(self) -> "Tokenizer":
        """Return the tokenizer."""
        return self._tokenizer

    def ids(self, encoding: "Encoding") -> list[int]:
        """Return the ids of an encoding's tokens."""
        return encoding.ids


class UnigramSubset:
    """The pieces met so far of a Unigram vocabulary; texts are cut as the whole one cuts them.

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

    def whole(self) -> "Tokenizer":
        """Load the tokenizer whole."""
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._folder / TOKENIZER_FILE))

    def tokenizer(self, texts: Sequence[str] = ()) -> "Tokenizer":
        """Return a tokenizer that cuts these texts as the whole one does."""
        with self._lock:
            if self._is_whole:
                return self._tokenizer
            words = {word for text in texts for word in self._split_words(text)} - self._words
            # A special token in a text splits it first, which changes the words.
            special = any(token in text for text in texts for token in self._specials)
            if special or len(words) + len(self._words) > FEW_WORDS:
                self._tokenizer = self.whole()
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
    from tokenizers import Tokenizer

    if (folder / FRAME_FILE).is_file():
        return UnigramSubset(folder)
    return WholeVocabulary(Tokenizer.from_file(str(folder / TOKENIZER_FILE)))


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write a tokenizer into a folder: its own JSON file and, of a Unigram one, what `UnigramSubset` reads."""
    tokenizer = vocabulary.whole()
    tokenizer.save(str(folder / TOKENIZER_FILE))
    spec = json.loads(tokenizer.to_str())
    model = spec["model"]
    if model["type"] != "Unigram" or model["byte_fallback"] or model["unk_id"] is None:
        return
    if not (spec["normalizer"] and spec["pre_tokenizer"]):
        return
    rows = {piece: (piece, number, score) for number, (piece, score) in enumerate(model["vocab"])}
    lowest, _ = min(model["vocab"], key=lambda entry: entry[1])
    unknown, _ = model["vocab"][model["unk_id"]]
    always = dict.fromkeys([unknown, lowest, *(token["content"] for token in spec["added_tokens"])])
    if not always.keys() <= rows.keys():
        return  # special tokens that are not the model's own have ids beyond it
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
