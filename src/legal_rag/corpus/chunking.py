"""Split texts: into encoder-sized chunks whose offsets point back into the text, into windows that models read."""

import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from legal_rag.base.html import displayed
from legal_rag.base.text import Span
from legal_rag.law.sentences import cut_at_blanks, split_sentences, without_blanks

if TYPE_CHECKING:
    from chonkie import SentenceChunker


MAX_CHUNK_TOKENS = 511
MIN_BODY_TOKENS = 16  # of text, that fit a chunk next to the prefix and the header
HEADER_SHARE = 0.5  # of a chunk's tokens; a longer header is cut at a word

TokenCounter = Callable[[Sequence[str]], list[int]]


@displayed
@dataclass(frozen=True, kw_only=True)
class ChunkConfig:
    """How documents are split; saved in the manifest."""

    chunk_tokens: int = MAX_CHUNK_TOKENS  # of a chunk at most: special tokens, prefix, header and text
    overlap_tokens: int = 0  # of whole sentences repeated from the previous chunk
    header_columns: tuple[tuple[str, str], ...] = (("Titre", "title"), ("Date", "decision_date"))  # (label, column)
    header_on: Literal["first", "every", "none"] = "first"  # which chunks are encoded with the header
    split_at: Literal["sentences", "sections"] = "sentences"  # or no chunk spans two top sections of an outline

    def __post_init__(self) -> None:
        if not MIN_BODY_TOKENS * 2 <= self.chunk_tokens <= MAX_CHUNK_TOKENS:
            expected = f"{MIN_BODY_TOKENS * 2} to {MAX_CHUNK_TOKENS}"
            raise ValueError(f"chunk_tokens must be {expected}, got {self.chunk_tokens}")
        if not 0 <= self.overlap_tokens <= self.chunk_tokens // 2:
            raise ValueError(f"overlap_tokens must be 0 to {self.chunk_tokens // 2}, got {self.overlap_tokens}")
        if self.header_on not in ("first", "every", "none"):
            raise ValueError(f"header_on must be 'first', 'every' or 'none', got {self.header_on!r}")
        if self.split_at not in ("sentences", "sections"):
            raise ValueError(f"split_at must be 'sentences' or 'sections', got {self.split_at!r}")


@displayed
class Chunk(NamedTuple):
    """A span of a document: `text` is `content[char_start:char_end]`."""

    doc_id: str
    chunk_index: int  # from 0, in document order
    char_start: int
    char_end: int
    text: str
    header: str = ""  # encoded before the text; not part of the document

    @property
    def id(self) -> str:
        """The chunk's id, `<doc_id>-<index>`."""
        return chunk_id(self.doc_id, self.chunk_index)


def chunk_id(doc_id: str, index: int) -> str:
    """Format a chunk id, e.g. `JURITEXT000007022836-0`."""
    return f"{doc_id}-{index}"


def parse_chunk_id(chunk_id: str) -> tuple[str, int]:
    """Parse a chunk id: `JURITEXT000007022836-0` is `("JURITEXT000007022836", 0)`.

    Raises:
        ValueError: If it is not a document id, a dash and an index of ASCII digits.
    """
    doc_id, dash, index = chunk_id.rpartition("-")
    if not (doc_id and dash and index.isascii() and index.isdecimal()):
        raise ValueError(
            f"not a chunk id: {chunk_id!r:.200} (expected '<doc_id>-<index>', e.g. 'JURITEXT000007022836-0')"
        )
    return doc_id, int(index)


def build_chunker(
    config: ChunkConfig, count_tokens: TokenCounter, document_length: int = MAX_CHUNK_TOKENS
) -> "Chunker":
    """Build the chunker for an encoder, of texts of at most `document_length` tokens.

    `count_tokens` gives its token count of each text, prefix and special tokens included.

    Raises:
        ValueError: If the encoder's prefix and special tokens leave no room for text.
    """
    limit = min(config.chunk_tokens, document_length)
    overhead = count_tokens([""])[0]
    if limit - overhead < MIN_BODY_TOKENS:
        raise ValueError(f"no room for text: {limit} tokens a chunk, of which the encoder itself takes {overhead}")
    if config.overlap_tokens >= limit - overhead:
        raise ValueError(f"overlap_tokens must be less than {limit - overhead}, got {config.overlap_tokens}")
    return Chunker(config, count_tokens, limit, overhead)


def chunk_document(
    content: str,
    doc_id: str,
    title: str = "",
    decision_date: str = "",
    chunker: "Chunker | SentenceChunker | None" = None,
    *,
    columns: Mapping[str, object] | None = None,
) -> list[Chunk]:
    """Split a document into chunks within the token limit that cover every non-blank character, in order.

    Args:
        content: The document's text; a blank one has no chunk.
        doc_id: Its id.
        title: For the header, as `decision_date` and any further `columns`, e.g. `{"section": "Livre II"}`.
        decision_date: See `title`.
        chunker: Required: from `build_chunker`, or one of chonkie's, whose limit does not count the header.
        columns: See `title`.

    Raises:
        ValueError: If there is no chunker, or chonkie's offsets do not match its chunks' text.
    """
    if chunker is None:
        raise ValueError("chunk_document needs a chunker (expected one made by build_chunker, or one of chonkie's)")
    if not isinstance(chunker, Chunker):
        header = _uncut_header(ChunkConfig(), {"title": title, "decision_date": decision_date})
        return _chunks_of_chonkie(chunker, content, doc_id, header and f"{header}\n")
    header = document_header(chunker, {**(columns or {}), "title": title, "decision_date": decision_date})
    spans = _chunk_spans(content, chunker, header)
    return [
        Chunk(doc_id, index, start, end, content[start:end], header if has_header(chunker.config, index) else "")
        for index, (start, end) in enumerate(spans)
    ]


def _chunk_spans(content: str, chunker: "Chunker", header: str) -> list[Span]:
    on_every_chunk = chunker.config.header_on == "every"
    if chunker.config.split_at == "sentences":
        return chunker.spans(content, header, on_every_chunk=on_every_chunk)
    from legal_rag.law.outline import build_tree

    sections = (node.char_start for node in build_tree(content).children if node.kind not in ("number", "part"))
    spans: list[Span] = []
    for start, end in pairwise(dict.fromkeys([0, *sections, len(content)])):
        own_header = header if on_every_chunk or not spans else ""
        inside = chunker.spans(content[start:end], own_header, on_every_chunk=on_every_chunk)
        spans += [(start + first, start + last) for first, last in inside]
    return spans


def _chunks_of_chonkie(chunker: "SentenceChunker", content: str, doc_id: str, header: str) -> list[Chunk]:
    chunks: list[Chunk] = []
    for chunk in chunker.chunk(content) if content.strip() else []:
        start, end = chunk.start_index, chunk.end_index
        if content[start:end] != chunk.text:
            raise ValueError(f"{type(chunker).__name__} gave a chunk of {doc_id} at {start}-{end}, where it is not")
        chunks.append(Chunk(doc_id, len(chunks), start, end, chunk.text, "" if chunks else header))
    return chunks


def chunks_recorded(manifest: Mapping[str, Any]) -> ChunkConfig:
    """Read the settings from a manifest; ValueError if they are missing or invalid."""
    try:
        columns = tuple((label, column) for label, column in manifest["chunks"]["header_columns"])
        return ChunkConfig(**{**manifest["chunks"], "header_columns": columns})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"damaged manifest: its settings of chunks are none ({error})") from error


def has_header(config: ChunkConfig, index: int) -> bool:
    """Is a document's chunk of this index encoded with the header?"""
    return config.header_on == "every" or (config.header_on == "first" and index == 0)


def document_header(chunker: "Chunker", row: Mapping[str, object]) -> str:
    """Format a document's columns as `Titre: … | Date: …` and a line break; cut if too long, empty if none is set."""
    if chunker.config.header_on == "none":
        return ""
    room = int((chunker.limit - chunker.overhead) * HEADER_SHARE)
    words = _uncut_header(chunker.config, row).split(" ")
    while words and chunker.count_tokens([" ".join(words)])[0] - chunker.overhead > room:
        words = words[: len(words) * 3 // 4]
    return " ".join(words) + "\n" if words != [""] and words else ""


def _uncut_header(config: ChunkConfig, row: Mapping[str, object]) -> str:
    parts = [(label, _flat(row.get(column))) for label, column in config.header_columns]
    return " | ".join(f"{label}: {value}" for label, value in parts if value)


def _flat(value: object) -> str:
    if isinstance(value, list | tuple):
        value = " ; ".join(map(str, value))
    return " ".join(str(value).split()) if value not in (None, "") else ""


PIECE = re.compile(r"\S{1,64}\s{0,64}|\s{1,64}")  # a word with the blanks after it; long ones are split
KNOWN_PIECES = 100_000  # with cached counts: about 15 MB
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
        if len(self._known) > KNOWN_PIECES:
            self._known.clear()
        if new := sorted(set(chain.from_iterable(pieces)).difference(self._known)):
            self._known |= zip(new, (max(0, count - self._overhead) for count in self._count_tokens(new)), strict=True)
        return [sum(map(self._known.__getitem__, text_pieces)) for text_pieces in pieces]


class Chunker:
    """Packs French sentences into chunks by chonkie's `SentenceChunker`; for one thread.

    Sentences are counted word by word, and a chunk as the encoder does where the two may differ.
    """

    def __init__(self, config: ChunkConfig, count_tokens: TokenCounter, limit: int, overhead: int) -> None:
        from legal_rag.corpus.sentence_chunker import SentencePacker

        self.config, self.count_tokens, self.limit, self.overhead = config, count_tokens, limit, overhead
        self._pieces, self._packer = PieceCounter(count_tokens, overhead), SentencePacker()

    def spans(self, text: str, header: str = "", *, on_every_chunk: bool = False) -> list[Span]:
        """Return the chunks' offsets, without surrounding blanks; the header is encoded with the first, or with all."""
        if not text.strip():
            return []
        reserved = self._pieces.counts([header])[0]
        room = self.limit - self.overhead - reserved
        sentences, counts = zip(*self._bounded_sentences(text, room), strict=True)
        if on_every_chunk:
            packed = self._packer.pack(counts, room, self.config.overlap_tokens)
        else:
            packed = self._packer.pack([counts[0] + reserved, *counts[1:]], room + reserved, self.config.overlap_tokens)
        spans = [(sentences[first][0], sentences[last - 1][1]) for first, last in packed]
        spans = _without_repeats(without_blanks(text, spans))
        return _without_repeats(list(self._within_limit(text, spans, header, on_every_chunk=on_every_chunk)))

    def _bounded_sentences(self, text: str, room: int) -> Iterator[tuple[Span, int]]:
        spans = split_sentences(text)
        for span, count in zip(spans, self._pieces.counts([text[start:end] for start, end in spans]), strict=True):
            yield from _halve(text, span, count, room, self._pieces.counts)

    def _within_limit(self, text: str, spans: list[Span], header: str, *, on_every_chunk: bool) -> Iterator[Span]:
        """Yield spans within the limit as the encoder counts them, with their header."""
        for first in range(0, len(spans), CHUNKS_AT_ONCE):
            batch = spans[first : first + CHUNKS_AT_ONCE]
            headers = [header if on_every_chunk or first + number == 0 else "" for number in range(len(batch))]
            whole = [own_header + text[slice(*span)] for own_header, span in zip(headers, batch, strict=True)]
            for span, own_header, count in zip(batch, headers, self._pieces.exact_counts(whole), strict=True):
                yield from (part for part, _ in _halve(text, span, count, self.limit, self._exact_with(own_header)))

    def _exact_with(self, header: str) -> TokenCounter:
        return lambda texts: self._pieces.exact_counts([header + text for text in texts])


def _halve(text: str, span: Span, count: int, most: int, count_all: TokenCounter) -> Iterator[tuple[Span, int]]:
    """Halve a span of `count` tokens, at a blank if it has one, until each has at most `most`; yield their counts."""
    start, end = span
    if count <= most or end - start < 2:
        yield span, count
        return
    middle = _blank_near_middle(text, start, end)
    halves = without_blanks(text, [(start, middle), (middle, end)])
    for half, half_count in zip(halves, count_all([text[slice(*half)] for half in halves]), strict=True):
        yield from _halve(text, half, half_count, most, count_all)


def _blank_near_middle(text: str, start: int, end: int) -> int:
    """Return the place after the blank nearest to the middle of a span, or the middle itself."""
    middle = (start + end) // 2
    places = [text.find(blank, middle - 1, end - 1) + 1 for blank in " \n"]
    places += [text.rfind(blank, start, middle) + 1 for blank in " \n"]
    return min((place for place in places if place > start), key=lambda place: abs(place - middle), default=middle)


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


READ_CHARS = 20_000  # read at once: about 5,750 tokens; 97 % of decisions are shorter
PIECE_CHARS = 800  # sentences are joined up to here: marking the pieces then costs 5 % of the text's tokens
LONGEST_SENTENCE = 1200  # characters; longer ones are cut at a blank
# A court's reasoning or decision.
REASONS = re.compile(
    r"\b(?:mais )?attendu que\b|\bconsidérant\b|\bsur l[ea]s? (?:\w+ ){0,3}(?:moyens?|griefs?)\b|\bréponse de la cour\b"
    r"|\bmotifs (?:de la décision|propres)\b|\baux termes de\b|\bil (?:résulte|ressort|suit)\b|\bvu l'article\b"
    r"|\bpar ces motifs\b",
    re.IGNORECASE,
)
MAX_REASONS = 8  # counted in a window at most


class Window(NamedTuple):
    """A span of a text, in citable pieces that cover all but blanks."""

    start: int
    end: int
    pieces: list[Span]  # offsets in the whole text, in order


def window_at(content: str, start: int = 0, most: int = READ_CHARS) -> Window:
    """Return the window at an offset, of at most `most` characters; the next one begins at its end.

    It ends with the last sentence that fits, unless one sentence fills it.
    """
    limit = min(start + most, len(content))
    sentences = [
        part
        for first, last in split_sentences(content[start:limit])
        for part in cut_at_blanks(content, start + first, start + last, LONGEST_SENTENCE)
    ]
    if limit < len(content) and len(sentences) > 1:
        limit, _ = sentences.pop()  # it may continue after the limit
    return Window(start, limit, without_blanks(content, _join_sentences(sentences)))


def windows_of(content: str, most: int = READ_CHARS) -> list[Window]:
    """Return the windows of a text, each of at most `most` characters, the next one from its end on."""
    windows = [window_at(content, 0, most)]
    while windows[-1].end < len(content):
        windows.append(window_at(content, windows[-1].end, most))
    return windows


def window_number(windows: Sequence[Window], place: int) -> int:
    """Return the number, from 1, of the window with an offset."""
    return next(number for number, window in enumerate(windows, 1) if place < window.end or window is windows[-1])


def cut_windows(content: str, most: int, overlap: int = 0, within: Span | None = None) -> list[Span]:
    """Split a text, or a span of it, into windows of similar size that cover it, at line breaks, sentences or blanks.

    A window has at most `most` characters and shares `overlap` to twice as many with the next; `overlap` is at most a
    quarter of `most`. A blank text has none.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    if not 0 <= overlap * 4 <= most:
        raise ValueError(f"overlap must be from 0 to a quarter of {most}, got {overlap}")
    start, last = within or (0, len(content))
    if not content[start:last].strip():
        return []
    borders = [start + end for _, end in split_sentences(content[start:last])] if last - start > most else []
    windows = []
    while last - start > most:
        end = _window_end(content, borders, start, most, _window_size(last - start, most, overlap))
        windows.append((start, end))
        start = _window_start(content, borders, end, overlap)
    return [*windows, (start, last)]


def draw_window(content: str, seed: str, most: int) -> Span:
    """Draw a window of a non-blank text, pseudo-random by `seed`, favouring reasons over names and procedure."""
    windows = without_blanks(content, cut_windows(content, most))
    weights = [1 + min(len(REASONS.findall(content, start, end)), MAX_REASONS) for start, end in windows]
    return random.Random(seed).choices(windows, weights)[0]  # noqa: S311


def _join_sentences(sentences: list[Span]) -> Iterator[Span]:
    if not sentences:
        return
    begun, done = sentences[0]
    for start, end in sentences[1:]:
        if end - begun > PIECE_CHARS:
            yield begun, done
            begun = start
        done = end
    yield begun, done


def _window_size(left: int, most: int, overlap: int) -> int:
    n_windows = -(-(left - overlap) // (most - overlap))
    return -(-(left - overlap) // n_windows) + overlap


def _window_end(content: str, borders: Sequence[int], start: int, most: int, size: int) -> int:
    """Return a window's end: the line break nearest to `size`, else a sentence's end, a blank, or the limit.

    It has at least half of `most`, which is longer than the overlap.
    """
    low, limit = start + most // 2, start + most
    ends = borders[bisect_right(borders, low) : bisect_right(borders, limit)]
    lines = [end for end in ends if "\n" in content[end - 3 : end]]
    if nearest := min(lines or ends, key=lambda end: (abs(end - start - size), end), default=0):
        return nearest
    blank = content.rfind(" ", low, limit)
    return blank + 1 if blank > 0 else limit


def _window_start(content: str, borders: Sequence[int], end: int, overlap: int) -> int:
    """Return the start of the window after `end`: the last sentence or word that leaves one to two overlaps."""
    latest, earliest = end - overlap, end - 2 * overlap
    number = bisect_right(borders, latest) - 1
    if number >= 0 and borders[number] >= earliest:
        return borders[number]
    blank = content.rfind(" ", earliest, latest)
    return blank + 1 if blank >= 0 else latest
