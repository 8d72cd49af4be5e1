"""Chunk spans that end at sentence ends, by chonkie's `SentenceChunker`."""

from collections.abc import Callable, Iterator, Sequence

from chonkie import SentenceChunker
from chonkie.types import Chunk as ChonkieChunk
from chonkie.types import Sentence

from legal_rag.corpus.folding import Span
from legal_rag.corpus.sentences import split_sentences, without_blanks


class LegalSentenceChunker(SentenceChunker):
    """chonkie's `SentenceChunker` over French legal sentences, none longer than the room a chunk has."""

    def __init__(
        self, *, count_tokens: Callable[[Sequence[str]], list[int]], limit: int, overhead: int, overlap_tokens: int
    ) -> None:
        super().__init__(chunk_size=limit - overhead, chunk_overlap=overlap_tokens)
        self._count_tokens, self.limit, self.overhead = count_tokens, limit, overhead
        self._header_tokens, self._header_on_every_chunk = 0, False

    def spans(self, text: str, header_tokens: int = 0, *, on_every_chunk: bool = False) -> list[Span]:
        """Return the chunks' offsets, without surrounding blanks.

        Args:
            text: The document.
            header_tokens: Tokens to reserve for the header.
            on_every_chunk: Reserve them in every chunk, not only in the first.
        """
        self._header_tokens, self._header_on_every_chunk = header_tokens, on_every_chunk
        self.chunk_size = self.limit - self.overhead - (header_tokens if on_every_chunk else 0)
        merged = without_blanks(text, [(chunk.start_index, chunk.end_index) for chunk in self.chunk(text)])
        spans: list[Span] = []
        for span, count in zip(merged, self._counts(text, merged), strict=True):
            room = self.chunk_size - (header_tokens if not spans and not on_every_chunk else 0)
            spans += [part for part, _ in self._fitted(text, span, count, room)]
        return _without_repeats(without_blanks(text, spans))

    def _counts(self, text: str, spans: Sequence[Span]) -> list[int]:
        """Count the tokens of spans, without the encoder's prefix and special tokens."""
        return [count - self.overhead for count in self._count_tokens([text[start:end] for start, end in spans])]

    def _prepare_sentences(self, text: str) -> list[Sentence]:
        room = self.limit - self.overhead - self._header_tokens
        spans = split_sentences(text)
        sentences = [
            Sentence(text=text[start:end], start_index=start, end_index=end, token_count=count)
            for span, whole in zip(spans, self._counts(text, spans), strict=True)
            for (start, end), count in self._fitted(text, span, whole, room)
        ]
        if sentences and not self._header_on_every_chunk:
            sentences[0].token_count += self._header_tokens
        return sentences

    def _create_chunk(self, sentences: list[Sentence]) -> ChonkieChunk:
        # `spans` counts all chunks at once.
        return ChonkieChunk(
            text="", start_index=sentences[0].start_index, end_index=sentences[-1].end_index, token_count=0
        )

    def _fitted(self, text: str, span: Span, count: int, room: int) -> Iterator[tuple[Span, int]]:
        """Halve a span of `count` tokens, at a blank if it has one, until each part has at most `room`."""
        start, end = span
        if count <= room or end - start < 2:
            yield span, count
            return
        middle = _blank_near_middle(text, start, end)
        halves = [(start, middle), (middle, end)]
        for half, half_count in zip(halves, self._counts(text, halves), strict=True):
            yield from self._fitted(text, half, half_count, room)


def _without_repeats(spans: list[Span]) -> list[Span]:
    """Drop spans that add nothing: repeated sentences after which no new one had room."""
    kept: list[Span] = []
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
    for distance in range(end - middle):
        for cut in (middle + distance, middle - distance):
            if start < cut < end and text[cut - 1].isspace():
                return cut
    return middle
