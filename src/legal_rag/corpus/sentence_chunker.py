"""Chunk spans at sentence ends, with chonkie."""

from collections.abc import Callable, Iterator, Sequence

from chonkie import SentenceChunker
from chonkie.tokenizer import Tokenizer
from chonkie.types import Chunk as ChonkieChunk
from chonkie.types import Sentence

from legal_rag.corpus.sentences import sentence_texts, without_blanks


class EncoderTokenCount(Tokenizer):
    """The encoder's tokenizer, as far as chonkie needs it: it only ever counts."""

    def __init__(self, count_tokens: Callable[[Sequence[str]], list[int]], overhead: int) -> None:
        super().__init__()
        self._count, self._overhead = count_tokens, overhead

    def count_tokens(self, text: str) -> int:
        """Count the tokens of `text` itself, without the encoder's prefix and special tokens."""
        return self.count_tokens_batch([text])[0]

    def count_tokens_batch(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, as `count_tokens` does."""
        return [count - self._overhead for count in self._count(texts)]

    def encode(self, text: str) -> Sequence[int]:
        """Refuse: chunks are made of sentences, never of decoded tokens."""
        raise NotImplementedError("the chunker counts tokens and needs none of them")

    def decode(self, tokens: Sequence[int]) -> str:
        """Refuse, as `encode` does."""
        raise NotImplementedError("the chunker counts tokens and needs none of them")

    def tokenize(self, text: str) -> Sequence[str | int]:
        """Refuse, as `encode` does."""
        raise NotImplementedError("the chunker counts tokens and needs none of them")

    def __repr__(self) -> str:
        return f"EncoderTokenCount(overhead={self._overhead})"


class LegalSentenceChunker(SentenceChunker):
    """chonkie's `SentenceChunker` over French legal sentences, none longer than the room a chunk has."""

    def __init__(
        self, *, count_tokens: Callable[[Sequence[str]], list[int]], limit: int, overhead: int, overlap_tokens: int
    ) -> None:
        counter = EncoderTokenCount(count_tokens, overhead)
        super().__init__(tokenizer=counter, chunk_size=limit - overhead, chunk_overlap=overlap_tokens)
        self._counter, self.limit, self.overhead = counter, limit, overhead
        self._header_tokens, self._header_on_every_chunk = 0, False

    def spans(self, text: str, header_tokens: int = 0, *, on_every_chunk: bool = False) -> list[tuple[int, int]]:
        """Return the chunks' offsets, blanks at either end left out.

        Args:
            text: The document.
            header_tokens: Tokens to leave free for the header.
            on_every_chunk: Leave them free in every chunk, not in the first one only.
        """
        self._header_tokens, self._header_on_every_chunk = header_tokens, on_every_chunk
        self.chunk_size = self.limit - self.overhead - (header_tokens if on_every_chunk else 0)
        merged = without_blanks(text, [(chunk.start_index, chunk.end_index) for chunk in self.chunk(text)])
        counts = self._counter.count_tokens_batch([text[start:end] for start, end in merged])
        spans: list[tuple[int, int]] = []
        for (start, end), count in zip(merged, counts, strict=True):
            room = self.chunk_size - (header_tokens if not spans and not on_every_chunk else 0)
            spans += [(start, end)] if count <= room else self._split_to_fit(text, start, end, room)
        return _without_repeats(without_blanks(text, spans))

    def _split_text(self, text: str) -> list[str]:
        room = self.limit - self.overhead - self._header_tokens
        sentences = list(sentence_texts(text))
        counts = self._counter.count_tokens_batch(sentences)
        pieces: list[str] = []
        for sentence, count in zip(sentences, counts, strict=True):
            if count <= room:
                pieces.append(sentence)
            else:
                spans = self._split_to_fit(sentence, 0, len(sentence), room)
                pieces += [sentence[start:end] for start, end in spans]
        return pieces

    def _prepare_sentences(self, text: str) -> list[Sentence]:
        sentences = super()._prepare_sentences(text)
        if sentences and not self._header_on_every_chunk:
            sentences[0].token_count += self._header_tokens
        return sentences

    def _create_chunk(self, sentences: list[Sentence]) -> ChonkieChunk:
        # Counted by `spans`, all chunks at once.
        return ChonkieChunk(
            text="", start_index=sentences[0].start_index, end_index=sentences[-1].end_index, token_count=0
        )

    def _split_to_fit(self, text: str, start: int, end: int, room: int) -> list[tuple[int, int]]:
        """Halve a span, at a blank where there is one, until each part has at most `room` tokens."""
        if end - start < 2 or self._counter.count_tokens(text[start:end]) <= room:
            return [(start, end)]
        middle = _blank_near_middle(text, start, end)
        return [*self._split_to_fit(text, start, middle, room), *self._split_to_fit(text, middle, end, room)]


def _without_repeats(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drop spans that add nothing: sentences repeated for the overlap after which no new one had room."""
    kept: list[tuple[int, int]] = []
    for start, end in spans:
        if kept and end <= kept[-1][1]:
            continue
        while kept and kept[-1][0] >= start:
            kept.pop()
        kept.append((start, end))
    return kept


def _blank_near_middle(text: str, start: int, end: int) -> int:
    """Return the place after the blank nearest to the middle of a span, or the middle itself."""
    middle = (start + end) // 2
    return next((cut for cut in _outwards(middle, start + 1, end - 1) if text[cut - 1].isspace()), middle)


def _outwards(middle: int, low: int, high: int) -> Iterator[int]:
    for distance in range(max(middle - low, high - middle) + 1):
        if middle + distance <= high:
            yield middle + distance
        if middle - distance >= low:
            yield middle - distance
