"""Texts to token ids, as a ColBERT checkpoint reads them: prompt, marker token, truncation, query expansion."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from legal_rag.encoder.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Encoding

Kind = Literal["query", "document"]


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
    return tomllib.loads(Path(__file__).with_name("encoders.toml").read_text(encoding="utf-8"))


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


class Tokens:
    """A checkpoint's tokenizer with its settings; any number of threads may share one."""

    def __init__(self, vocabulary: Vocabulary, settings: TokenSettings) -> None:
        self.vocabulary, self.settings = vocabulary, settings
        self._n_special = vocabulary.tokenizer().num_special_tokens_to_add(is_pair=False)
        self._skipped = np.array(settings.skipped_ids, dtype=np.int64)

    def encode(self, texts: Sequence[str], kind: Kind) -> "list[Encoding]":
        """Tokenize texts without special tokens and without truncation; white space around them is not read."""
        return self._encode_inputs([self._input(text, kind).strip() for text in texts])

    def count(self, texts: Sequence[str], kind: Kind) -> list[int]:
        """Count each text's tokens, white space around it included, so that counts of parts add up; see `length_of`."""
        inputs = [self._input(text, kind) for text in texts]
        # `encode_batch_fast` leaves the offsets out.
        encodings = self.vocabulary.tokenizer(inputs).encode_batch_fast(inputs, add_special_tokens=False)
        return [self.length_of(encoding, kind) for encoding in encodings]

    def length_of(self, encoding: "Encoding", kind: Kind) -> int:
        """Return the tokens of a text, special tokens and marker included, expansion excluded, without truncation."""
        return len(encoding) + self._n_special + (self.settings.prefix_id(kind) is not None)

    def offsets(self, text: str, kind: Kind) -> np.ndarray:
        """Return each token's character span in `text`, shape (n_tokens, 2), int64; start equals end if none."""
        # In one pass: a second one would trim byte-level offsets again.
        read = self._input(text, kind).strip()
        encoding = self.vocabulary.tokenizer([read]).encode(read)
        prompt, full = self.settings.prompt(kind), self.settings.prompt(kind) + text
        shift = len(full) - len(full.lstrip()) - len(prompt)
        # The first word's piece may begin with the blank that ends the prompt.
        offsets = [
            (max(0, start + shift), end + shift) if end + shift > 0 and end > start else (0, 0)
            for start, end in encoding.offsets
        ]
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

    def _encode_inputs(self, inputs: Sequence[str]) -> "list[Encoding]":
        return self.vocabulary.tokenizer(inputs).encode_batch(inputs, add_special_tokens=False)

    def _input(self, text: str, kind: Kind) -> str:
        whole = self.settings.prompt(kind) + text
        return whole.lower() if self.settings.lower_case else whole

    def _finished(self, encoding: "Encoding") -> "Encoding":
        return self.vocabulary.tokenizer().post_process(encoding)
