"""Texts as an encoder reads them, token by token: each text of a run once, two texts at a time.

In: texts. Out: their token vectors, and the characters that each vector stands for.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from legal_rag.encoder import Encoder

THREADS = 2  # encoders read one text at a time on one core


class Encoded(NamedTuple):
    """A text's tokens."""

    vectors: np.ndarray  # (n_tokens, dim), unit rows
    offsets: np.ndarray  # (n_tokens, 2): the characters that each row stands for


class EncodedTexts:
    """What an encoder read in one run, kept as long as the run: what finds passages also matches their words."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._questions: dict[str, Encoded] = {}
        self._passages: dict[str, Encoded] = {}

    def question(self, text: str) -> Encoded:
        """Return a question's tokens.

        Args:
            text: Not empty, and no longer than the encoder reads.
        """
        if text not in self._questions:
            self._questions[text] = Encoded(*self.encoder.encode_with_offsets(text, as_query=True))
        return self._questions[text]

    def passages(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the tokens of each text, as far as the encoder reads it."""
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            with ThreadPoolExecutor(min(THREADS, len(new)), thread_name_prefix="encode") as threads:
                found = list(threads.map(self.encoder.encode_with_offsets, new))
            self._passages |= {text: Encoded(*one) for text, one in zip(new, found, strict=True)}
        return [self._passages[text] for text in texts]
