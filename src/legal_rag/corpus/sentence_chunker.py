"""chonkie's `SentenceChunker` over sentences that are cut and counted already; importing it takes a second."""

from collections.abc import Iterator, Sequence

from chonkie import SentenceChunker
from chonkie.types import Chunk, Sentence

from legal_rag.base.text import Span

SENTENCES_AT_ONCE = 1_000  # chonkie's time grows with the square of their number


class SentencePacker(SentenceChunker):
    """Groups sentences into chunks, given their token counts; for one thread."""

    def pack(self, counts: Sequence[int], most: int, overlap: int) -> Iterator[Span]:
        """Yield of each chunk the number of its first sentence and of its last plus one.

        A chunk has at most `most` tokens, or one sentence, and repeats up to `overlap` of the one before. The last
        chunk of what is given to chonkie at once is cut anew in what follows.
        """
        self.chunk_size, self.chunk_overlap = most, overlap
        first, n_read = 0, SENTENCES_AT_ONCE
        while True:
            self._upcoming = counts[first : first + n_read]
            *whole, last = [(first + chunk.start_index, first + chunk.end_index) for chunk in self.chunk("text")]
            yield from whole
            if first + n_read >= len(counts):
                yield last
                return
            n_read = SENTENCES_AT_ONCE if whole else n_read * 2
            first = last[0]

    def _prepare_sentences(self, text: str) -> list[Sentence]:
        return [Sentence("", number, number + 1, count) for number, count in enumerate(self._upcoming)]

    def _create_chunk(self, sentences: list[Sentence]) -> Chunk:
        return Chunk(text="", start_index=sentences[0].start_index, end_index=sentences[-1].end_index, token_count=0)
