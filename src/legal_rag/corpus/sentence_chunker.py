"""Chunk spans that end at sentence ends, by chonkie's `SentenceChunker`."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

from chonkie import SentenceChunker
from chonkie.types import Chunk as ChonkieChunk
from chonkie.types import Sentence

from legal_rag.base.text import Span
from legal_rag.corpus.chunking import TokenCounter
from legal_rag.law.sentences import split_sentences, without_blanks

PIECE = re.compile(r"\S{1,64}\s{0,64}|\s{1,64}")  # a word with the blanks after it; long ones are split
KNOWN_PIECES = 100_000  # with cached counts: about 15 MB
SENTENCES_AT_ONCE = 1_000  # chonkie's time grows with the square of their number
CHUNKS_AT_ONCE = 64  # tokenized together
# What a tokenizer that cuts at blanks reads alike alone and among other words; other texts are counted whole.
_UNUSUAL = re.compile(r"[^ \n!-;=-~\u00a0«»°§·À-ÿŒœ€‘’“”–—…]|\S{64}")
_SAMPLE = (
    "Titre: Cour d’appel, 1re chambre | Date: 2023-08-01\nAttendu que M. [X]\u00a0... a été licencié (n° 21-12.345) ;\n"
    "\nqu'en vertu de l'article L. 1152-1 du code pénal «\u00a0aucun salarié…\u00a0»,  1\u00a0500,50 € — \"d'Œuvre\".\n"
)


class PieceCounter:
    """Token counts of texts as sums over their words, each tokenized once.

    Exact where the encoder's tokenizer cuts at blanks first, as those of BERT and of XLM-RoBERTa do, which a sample
    shows; else an estimate.
    """

    def __init__(self, count_tokens: TokenCounter, overhead: int) -> None:
        self._count_tokens, self._overhead = count_tokens, overhead
        self._known: dict[str, int] = {}
        self._adds_up = self.counts([_SAMPLE]) == [count_tokens([_SAMPLE])[0] - overhead]

    def exact_counts(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as the encoder does, prefix and special tokens included; whole where in doubt."""
        doubtful = [text for text in texts if not self._adds_up or _UNUSUAL.search(text)]
        whole = dict(zip(doubtful, self._count_tokens(doubtful), strict=True)) if doubtful else {}
        return [
            whole[text] if text in whole else count + self._overhead
            for text, count in zip(texts, self.counts(texts), strict=True)
        ]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens, without the encoder's prefix and special tokens."""
        pieces = [PIECE.findall(text) for text in texts]
        self._count_new_pieces(set(chain.from_iterable(pieces)))
        return [sum(map(self._known.__getitem__, text_pieces)) for text_pieces in pieces]

    def borders(self, text: str) -> tuple[list[int], list[int]]:
        """Return the offsets at which pieces end, 0 first, and the number of tokens up to each."""
        pieces = PIECE.findall(text)
        self._count_new_pieces(set(pieces))
        ends = accumulate(map(len, pieces), initial=0)
        return list(ends), list(accumulate(map(self._known.__getitem__, pieces), initial=0))

    def _count_new_pieces(self, pieces: set[str]) -> None:
        if len(self._known) > KNOWN_PIECES:
            self._known.clear()
        if new := sorted(pieces.difference(self._known)):
            self._known |= zip(new, (max(0, count - self._overhead) for count in self._count_tokens(new)), strict=True)


class LegalSentenceChunker(SentenceChunker):
    """chonkie's `SentenceChunker` over French legal sentences, none longer than the room a chunk has.

    Sentences are counted word by word, and a chunk as the encoder does where the two may differ. For one thread.
    """

    def __init__(self, *, count_tokens: TokenCounter, limit: int, overhead: int, overlap_tokens: int) -> None:
        super().__init__(chunk_size=limit - overhead, chunk_overlap=overlap_tokens)
        self.limit, self.overhead = limit, overhead
        self._pieces = PieceCounter(count_tokens, overhead)
        self._upcoming: list[Sentence] = []

    def spans(self, text: str, header: str = "", *, on_every_chunk: bool = False) -> list[Span]:
        """Return the chunks' offsets, without surrounding blanks.

        Args:
            text: The document.
            header: Encoded with the first chunk.
            on_every_chunk: Encode it with every chunk.
        """
        if not text.strip():
            return []
        reserved = self._pieces.counts([header])[0]
        self.chunk_size = self.limit - self.overhead - (reserved if on_every_chunk else 0)
        sentences = list(self._bounded_sentences(text, self.limit - self.overhead - reserved))
        if not on_every_chunk:
            sentences[0].token_count += reserved
        merged = _without_repeats(without_blanks(text, self._merge_sentences(text, sentences)))
        return _without_repeats(list(self._split_oversized(text, merged, header, on_every_chunk=on_every_chunk)))

    def _bounded_sentences(self, text: str, room: int) -> Iterator[Sentence]:
        spans = split_sentences(text)
        for first in range(0, len(spans), SENTENCES_AT_ONCE):
            batch = spans[first : first + SENTENCES_AT_ONCE]
            for (start, end), count in zip(batch, self._pieces.counts([text[a:b] for a, b in batch]), strict=True):
                parts = [((start, end), count)] if count <= room else self._split_sentence(text, start, end, room)
                for (part_start, part_end), tokens in parts:
                    yield Sentence(text="", start_index=part_start, end_index=part_end, token_count=tokens)

    def _split_sentence(self, text: str, start: int, end: int, room: int) -> Iterator[tuple[Span, int]]:
        """Halve a sentence, at the end of a word if it has several, until each part has at most `room` tokens."""
        ends, totals = self._pieces.borders(text[start:end])
        words = [number for number, place in enumerate(ends) if text[start + place - 1].isspace()]
        todo = [(0, len(ends) - 1)]
        while todo:
            first, last = todo.pop()
            tokens = totals[last] - totals[first]
            if tokens <= room or last - first < 2:
                yield (start + ends[first], start + ends[last]), tokens
                continue
            inner = words[bisect_left(words, first + 1) : bisect_left(words, last)]
            cut = _nearest_border(ends, inner or range(first + 1, last), (ends[first] + ends[last]) // 2)
            todo += [(cut, last), (first, cut)]

    def _merge_sentences(self, text: str, sentences: list[Sentence]) -> Iterator[Span]:
        """Yield the spans of chonkie's chunks, batch by batch; the last chunk of a batch is re-cut in the next."""
        first, n_read = 0, SENTENCES_AT_ONCE
        while True:
            self._upcoming = sentences[first : first + n_read]
            *whole, last = [(chunk.start_index, chunk.end_index) for chunk in self.chunk(text)]
            yield from whole
            if first + n_read >= len(sentences):
                yield last
                return
            n_read = SENTENCES_AT_ONCE if whole else n_read * 2
            first = bisect_left(sentences, last[0], first, key=lambda sentence: sentence.start_index)

    def _prepare_sentences(self, text: str) -> list[Sentence]:
        return self._upcoming

    def _create_chunk(self, sentences: list[Sentence]) -> ChonkieChunk:
        return ChonkieChunk(
            text="", start_index=sentences[0].start_index, end_index=sentences[-1].end_index, token_count=0
        )

    def _split_oversized(self, text: str, spans: list[Span], header: str, *, on_every_chunk: bool) -> Iterator[Span]:
        """Yield spans within the limit as the encoder counts them, with their header."""
        for first in range(0, len(spans), CHUNKS_AT_ONCE):
            batch = spans[first : first + CHUNKS_AT_ONCE]
            headers = [header if on_every_chunk or first + number == 0 else "" for number in range(len(batch))]
            counts = self._count_chunks(text, batch, headers)
            for span, own_header, count in zip(batch, headers, counts, strict=True):
                yield from self._halved(text, span, own_header, count)

    def _halved(self, text: str, span: Span, header: str, count: int) -> Iterator[Span]:
        """Halve a span of `count` tokens, at a blank if it has one, until each part is within the limit."""
        start, end = span
        if count <= self.limit or end - start < 2:
            yield span
            return
        middle = _blank_near_middle(text, start, end)
        halves = without_blanks(text, [(start, middle), (middle, end)])
        for half, half_count in zip(halves, self._count_chunks(text, halves, [header] * len(halves)), strict=True):
            yield from self._halved(text, half, header, half_count)

    def _count_chunks(self, text: str, spans: Sequence[Span], headers: Sequence[str]) -> list[int]:
        return self._pieces.exact_counts(
            [header + text[start:end] for header, (start, end) in zip(headers, spans, strict=True)]
        )


def _nearest_border(ends: Sequence[int], numbers: Sequence[int], place: int) -> int:
    """Return the index in `numbers` (ascending) whose end is nearest to `place`; the later of two."""
    after = bisect_left(numbers, place, key=ends.__getitem__)
    near = numbers[max(0, after - 1) : after + 1]
    return min(near, key=lambda number: (abs(ends[number] - place), -number))


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
