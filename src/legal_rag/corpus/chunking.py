"""Split texts: into encoder-sized chunks whose offsets point back into the text, into windows that models read."""

import random
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from legal_rag.base.text import Span
from legal_rag.law.sentences import cut_at_blanks, split_sentences, without_blanks

if TYPE_CHECKING:
    from chonkie import SentenceChunker

    from legal_rag.corpus.sentence_chunker import LegalSentenceChunker


MAX_CHUNK_TOKENS = 511
MIN_BODY_TOKENS = 16  # of text, that fit a chunk next to the prefix and the header
HEADER_SHARE = 0.5  # of a chunk's tokens; a longer header is cut at a word

TokenCounter = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True, kw_only=True)
class ChunkConfig:
    """How documents are split; saved in the manifest."""

    chunk_tokens: int = MAX_CHUNK_TOKENS  # of a chunk at most: special tokens, prefix, header and text
    overlap_tokens: int = 0  # of whole sentences repeated from the previous chunk
    header_columns: tuple[tuple[str, str], ...] = (("Titre", "title"), ("Date", "decision_date"))  # (label, column)
    header_on: Literal["first", "every", "none"] = "first"  # which chunks are encoded with the header
    split_at: Literal["sentences", "sections"] = (
        "sentences"  # "sections": no chunk spans two top sections of an outline
    )

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


class Chunker(NamedTuple):
    """The settings, the encoder's token count, and chonkie's chunker built on both."""

    config: ChunkConfig
    count_tokens: TokenCounter
    sentences: "LegalSentenceChunker"


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


def build_chunker(config: ChunkConfig, count_tokens: TokenCounter, document_length: int = MAX_CHUNK_TOKENS) -> Chunker:
    """Build the chunker for an encoder.

    Args:
        config: The settings; a chunk's limit is the smaller of `chunk_tokens` and `document_length`.
        count_tokens: The encoder's token count of each text, prefix and special tokens included.
        document_length: The encoder's maximum document length, in tokens.

    Raises:
        ValueError: If the encoder's prefix and special tokens leave no room for text.
    """
    from legal_rag.corpus.sentence_chunker import LegalSentenceChunker

    limit = min(config.chunk_tokens, document_length)
    overhead = count_tokens([""])[0]
    if limit - overhead < MIN_BODY_TOKENS:
        raise ValueError(f"no room for text: {limit} tokens a chunk, of which the encoder itself takes {overhead}")
    sentences = LegalSentenceChunker(
        count_tokens=count_tokens, limit=limit, overhead=overhead, overlap_tokens=config.overlap_tokens
    )
    return Chunker(config, count_tokens, sentences)


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
        title: For the header.
        decision_date: For the header.
        chunker: Required: from `build_chunker`, or one of chonkie's, whose limit does not count the header.
        columns: Further columns for the header, e.g. `{"section": "Livre II"}`.

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


def _chunk_spans(content: str, chunker: Chunker, header: str) -> list[Span]:
    on_every_chunk = chunker.config.header_on == "every"
    if chunker.config.split_at == "sentences":
        return chunker.sentences.spans(content, header, on_every_chunk=on_every_chunk)
    from legal_rag.law.outline import build_tree

    sections = (node.char_start for node in build_tree(content).children if node.kind not in ("number", "part"))
    spans: list[Span] = []
    for start, end in pairwise(dict.fromkeys([0, *sections, len(content)])):
        own_header = header if on_every_chunk or not spans else ""
        inside = chunker.sentences.spans(content[start:end], own_header, on_every_chunk=on_every_chunk)
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
    """Read the settings from a manifest.

    Raises:
        ValueError: If they are missing or invalid.
    """
    try:
        columns = tuple((label, column) for label, column in manifest["chunks"]["header_columns"])
        return ChunkConfig(**{**manifest["chunks"], "header_columns": columns})
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"damaged manifest: its settings of chunks are none ({error})") from error


def has_header(config: ChunkConfig, index: int) -> bool:
    """Is a document's chunk of this index encoded with the header?"""
    return config.header_on == "every" or (config.header_on == "first" and index == 0)


def document_header(chunker: Chunker, row: Mapping[str, object]) -> str:
    """Format a document's columns as `Titre: … | Date: …` and a line break; cut if too long, empty if none is set."""
    if chunker.config.header_on == "none":
        return ""
    room = int((chunker.sentences.limit - chunker.sentences.overhead) * HEADER_SHARE)
    words = _uncut_header(chunker.config, row).split(" ")
    while words and chunker.count_tokens([" ".join(words)])[0] - chunker.sentences.overhead > room:
        words = words[: len(words) * 3 // 4]
    return " ".join(words) + "\n" if words != [""] and words else ""


def _uncut_header(config: ChunkConfig, row: Mapping[str, object]) -> str:
    parts = [(label, _flat(row.get(column))) for label, column in config.header_columns]
    return " | ".join(f"{label}: {value}" for label, value in parts if value)


def _flat(value: object) -> str:
    if isinstance(value, list | tuple):
        value = " ; ".join(map(str, value))
    return " ".join(str(value).split()) if value not in (None, "") else ""


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


def cut_windows(content: str, most: int, overlap: int = 0, within: Span | None = None) -> list[Span]:
    """Split a text into windows of similar size that cover it, at line breaks, else sentences, else blanks.

    Args:
        content: The text; a blank one has no window.
        most: Characters of a window at most, from 1.
        overlap: Characters that neighbours share, up to twice as many; 0 to a quarter of `most`.
        within: The span to split; None for the whole text.
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
