"""Encoding cache of one run: each text is encoded once, two texts at a time."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from legal_rag.encoder import Encoder, TokenVectors
from legal_rag.retriever import EncodedQuery

THREADS = 2  # encoders read one text at a time on one core


class EncodedTexts:
    """Token vectors of one run's texts: searching and highlighting share them.

    Args:
        encoder: The index's.
        query: The run's question, if it is encoded already.
    """

    def __init__(self, encoder: Encoder, *, query: EncodedQuery | None = None) -> None:
        self.encoder = encoder
        self._questions = {query.text: query.tokens} if query is not None else {}
        self._passages: dict[str, TokenVectors] = {}

    def question(self, text: str) -> TokenVectors:
        """Return a question's tokens.

        Args:
            text: Not empty, and no longer than the encoder reads.
        """
        if text not in self._questions:
            self._questions[text] = TokenVectors(*self.encoder.encode_with_offsets(text, as_query=True))
        return self._questions[text]

    def passages(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the tokens of each text, as far as the encoder reads it."""
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            with ThreadPoolExecutor(min(THREADS, len(new)), thread_name_prefix="encode") as threads:
                found = list(threads.map(self.encoder.encode_with_offsets, new))
            self._passages |= {text: TokenVectors(*one) for text, one in zip(new, found, strict=True)}
        return [self._passages[text] for text in texts]
