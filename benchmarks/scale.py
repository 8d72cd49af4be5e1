"""Make a Library of any size out of the sentences of a real one, and measure what grows with it.

Run: python benchmarks/scale.py --index-name SOURCE --out FOLDER [--seed 0] make [--documents 150000] [--words-only]
     python benchmarks/scale.py --index-name SOURCE --out FOLDER measure --queries FILE
     python benchmarks/scale.py --index-name SOURCE --out FOLDER add [--documents 100]

A simulated document has the columns, the number of chunks and the lengths of a real one, each real one in turn. Its
chunks are filled with runs of sentences from random chunks of the same kind of court, with the codes and residuals
that the source stores for these sentences' tokens. Names, dates, amounts and case numbers become others of the same
form, the same ones throughout one turn, so that a decision cited is one that is there; articles stay, as everyone cites
the same.
`make` can be stopped and started again.

`measure` asks the source and the simulated Library the same questions by turns, question already encoded, after a first
round that warms files. Parts of a hybrid search are timed inside it. Of a Library made with --words-only, chunks that
words rank below the candidates stand for those that chunk vectors would find, and their MaxSim costs nothing. Opening
and memory are those of a process of its own, without the encoder and then with it.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legal_rag.base.files import progress, write_whole
from legal_rag.base.sqlite import connect_to_read
from legal_rag.corpus.chunking import Chunk
from legal_rag.corpus.documents import Document
from legal_rag.encoder import Encoder
from legal_rag.evaluation import read_queries
from legal_rag.indexer import IndexConfig, add_documents, commit
from legal_rag.indexer.pipeline import is_complete, shard_home
from legal_rag.law import MONTHS, find_dates, find_identifiers
from legal_rag.law.keys import ParsedQuery
from legal_rag.law.sentences import split_sentences
from legal_rag.library import DEFAULT_FOLDER, DEFAULT_NAME, Filters, Library
from legal_rag.library.bm25 import LexicalIndex, Ranked
from legal_rag.library.chunk_vectors import ChunkVectors
from legal_rag.library.library import CHUNK_VECTORS, STORE
from legal_rag.library.plaid.codec import _link_codec, _split_into_parts, _write_part, _write_rest
from legal_rag.library.plaid.files import PLAID_FOLDER, open_files
from legal_rag.library.plaid.search import SearchSettings, ShardHits, ShardSize
from legal_rag.library.store import StoreWriter
from legal_rag.retriever import MODES, Retriever
from legal_rag.retriever.ranking import FUSED_CHUNKS, Mode, QueryFeatures, Ranker, Subsets
from legal_rag.retriever.retriever import open_with_encoder

RUN_SENTENCES = 8  # that follow one another in a real chunk, at most, and so in a simulated one
SIMULATED = "simulated.json"  # counts of documents and chunks, once all are stored
TRIES = 4  # of runs that may not fit the rest of a chunk, for each CLOSE tokens of it
CLOSE = 16  # tokens by which a simulated chunk may be shorter than its model
STORED_AT_ONCE = 1000  # documents
TEXT_SHARE = 1.0  # bytes of columns, names, words and mappings for a byte of text, as measured on 4,097 decisions
IVF_BYTES = 4  # for a token, at most: its passage in the list of its centroid
FREE_SHARE = 0.9  # of the disk's free bytes that `make` will fill
N_CANDIDATES = SearchSettings().n_candidates
K, ROUNDS = 10, 3  # hits; rounds over the questions, of which the first is not counted
MORE = 4  # times the chunks of the simulated Library, among which candidates are found too
KINDS = {
    "store (corpus.sqlite)": "^corpus.sqlite$",
    "words": "^lexical/",
    "codes": "codes.npy$",
    "residuals": "residuals.npy$",
    "inverted lists": "ivf",
    "chunk vectors": "^chunk_vectors/",
    "entities, outlines, indexes": r"^(?:entities|outlines|corpus_index|extraction)",
    "codebooks, mappings, manifest": "",
}
KNOWN_NAMES = 0.5  # share of names replaced by one that occurs; the others are made of two

NAME = r"[A-ZÀ-Ý][\w'’-]+"
TITLES = r"MM?\.|M[ml]{1,2}es?|Monsieur|Madame|Ma[îi]tre|[Ss]ociété|[Ss]ieurs?|époux|consorts"
NAMED = re.compile(rf"\b(?:{TITLES})\s+({NAME}(?: {NAME}){{0,2}})")
FIGURES = re.compile(r"(?<![\w/-])\d[\d .\u00a0\u202f]*\d{2}(?![\w/-])")  # a statute's number, 58-1067, stays
YEAR = re.compile(r"(?:19|20)\d\d")
CASE_YEAR = re.compile(r"(?:(?:19|20)\d\d|\d\d)(?=\D)")
CASE_DIGITS = 4  # of a constitutional number, at most
WORD = re.compile(r"[^\W\d_]{2,}")


class Slot(NamedTuple):
    """A part of a text that another of the same form replaces."""

    start: int
    end: int
    kind: str  # 'case', 'date', 'figures' or 'name'
    key: str  # the same however it is written


class Template:
    """A part of a text, from `start` to `end`, with what changes in it: those of the text's slots that lie inside."""

    def __init__(self, text: str, slots: Sequence[Slot] | None = None, start: int = 0, end: int | None = None) -> None:
        end = len(text) if end is None else end
        slots = [slot for slot in (_slots(text) if slots is None else slots) if start <= slot.start < slot.end <= end]
        bounds = zip([start, *(slot.end for slot in slots)], [*(slot.start for slot in slots), end], strict=True)
        self.between = [text[first:last] for first, last in bounds]
        self.changing = [(text[slot.start : slot.end], slot.kind, slot.key) for slot in slots]


def _slots(text: str) -> list[Slot]:
    found = find_identifiers(text)
    kept = [one[2:4] for one in found if one.kind == "article"]
    slots = [Slot(one.start, one.end, "case", one.value) for one in found if one.kind != "article"]
    slots += [Slot(one.start, one.end, "date", one.value.isoformat()) for one in find_dates(text)]
    slots += [Slot(*one.span(1), "name", one.group(1)) for one in NAMED.finditer(text)]
    slots += [
        Slot(*one.span(), "figures", one.group()) for one in FIGURES.finditer(text) if not YEAR.fullmatch(one.group())
    ]
    chosen: list[Slot] = []
    for slot in slots:  # case numbers and dates go before figures
        if all(slot.end <= start or slot.start >= end for start, end in kept):
            chosen.append(slot)
            kept.append((slot.start, slot.end))
    return sorted(chosen)


class Changes:
    """Replacements of one turn: the same for the same name, number or date."""

    def __init__(self, seed: int, turn: int, names: Sequence[str]) -> None:
        self._salt, self._names, self._made = f"{seed}/{turn}/", names, {}

    def text(self, template: Template) -> str:
        """Return a template's text with its parts changed."""
        if not template.changing:
            return template.between[0]
        parts = [template.between[0]]
        for (old, kind, key), after in zip(template.changing, template.between[1:], strict=True):
            parts += (self.changed(old, kind, key), after)
        return "".join(parts)

    def changed(self, old: str, kind: str, key: str) -> str:
        """Return what replaces a part."""
        new = self._made.get((old, key))
        if new is None:
            new = self._made[old, key] = getattr(self, f"_{kind}")(old, self._number(key))
        return new

    def _number(self, key: str) -> int:
        return int.from_bytes(blake2b((self._salt + key).encode(), digest_size=8).digest())

    def _case(self, old: str, number: int) -> str:
        year = CASE_YEAR.match(old)
        head, rest = (old[: year.end()], old[year.end() :]) if year else ("", old)
        new = _with_digits(rest, number)
        if year and not re.search(r"[./ ]\d", rest) and (short := CASE_DIGITS - sum(map(str.isdecimal, rest))) > 0:
            at = max(i for i, one in enumerate(new) if one.isdecimal()) + 1 if short < CASE_DIGITS else len(new)
            new = new[:at] + str(number)[-short:] + new[at:]
        return head + new

    def _date(self, old: str, number: int) -> str:
        day, month = 1 + number % 28, number // 28 % 12
        if iso := re.fullmatch(r"(\d{4})-\d\d-\d\d", old):
            return f"{iso[1]}-{month + 1:02d}-{day:02d}"
        if figures := re.fullmatch(r"\d\d?([/.])\d\d?[/.](\d+)", old):
            return f"{day:02d}{figures[1]}{month + 1:02d}{figures[1]}{figures[2]}"
        if words := re.fullmatch(r"\d\d?(?:er)?(\s+)(\w+)(\s+)(\d{4})", old):
            name = _in_case_of(words[2], list(MONTHS)[month])
            return f"{day}{words[1]}{name}{words[3]}{words[4]}"
        return old

    def _figures(self, old: str, number: int) -> str:
        return _with_digits(old, number)

    def _name(self, old: str, number: int) -> str:
        numbers = iter(range(number, number + len(old)))
        return WORD.sub(lambda word: _in_case_of(word.group(), self._a_name(next(numbers))), old)

    def _a_name(self, number: int) -> str:
        generator = random.Random(number)
        name, other = generator.choice(self._names), generator.choice(self._names)
        return name if generator.random() < KNOWN_NAMES else name[: -(-len(name) // 2)] + other[len(other) // 2 :]


def _with_digits(text: str, number: int) -> str:
    digits = iter(str(number) + str(number)[::-1] + text)
    first = iter("123456789"[number % 9])
    return re.sub(r"\d", lambda _: next(first, None) or next(digits), text)


def _in_case_of(model: str, word: str) -> str:
    return word.upper() if model.isupper() else word.capitalize() if model[:1].isupper() else word.lower()


class Rows(NamedTuple):
    """Consecutive token vectors of the source."""

    start: int
    n: int


class Sentence(NamedTuple):
    """A sentence of the source."""

    template: Template
    rows: Rows
    ends_chunk: bool


class Shape(NamedTuple):
    """What a simulated document keeps of a real one."""

    document: Document
    columns: dict[str, Template]
    kind: str
    chunks: list[tuple[int, Rows, Rows]]  # tokens; rows before the first sentence (header, marks); rows after the last


class Material:
    """The sentences and documents of a source, and where their token vectors are.

    If their codes are wanted of a source with several codebooks, only what lies in its first shard: the codes of others
    mean something else.
    """

    def __init__(self, library: Library, seed: int, *, with_codes: bool) -> None:
        self.library, self.seed, self._with_codes = library, seed, with_codes
        _, self._encoder = open_with_encoder(library)
        one_codebook = len({shard["checksums"]["centroids.npy"] for shard in library.manifest["shards"]}) == 1
        self.shards = library.shards if one_codebook or not with_codes else library.shards[:1]
        self.files = [open_files(folder) for folder in self.shards]
        self.lengths = [files.passage_tokens for files in self.files]
        self._first_row = list(accumulate((int(some.sum()) for some in self.lengths), initial=0))
        self.shapes: list[Shape] = []
        self.sentences: list[Sentence] = []
        self.pools: dict[tuple[str, bool], list[int]] = {}  # by kind and whether of first chunks
        self._read()
        self.names = sorted(
            {word.lower() for one in self.sentences for old, kind, _ in one.template.changing if kind == "name"
             for word in WORD.findall(old)}
        )  # fmt: skip

    @cached_property
    def codes(self) -> np.ndarray:
        """All codes, shape (n_tokens,)."""
        return np.concatenate([part.codes for files in self.files for part in files.parts])

    @cached_property
    def residuals(self) -> np.ndarray:
        """All residuals, shape (n_tokens, bytes a token)."""
        return np.concatenate([part.residuals for files in self.files for part in files.parts])

    def _read(self) -> None:
        starts = [np.concatenate([[0], np.cumsum(some)]) + first
                  for some, first in zip(self.lengths, self._first_row, strict=False)]  # fmt: skip
        documents = self.library.documents()
        for document in progress("Reading sentences", iterable=documents, total=len(self.library), unit=" documents"):
            chunks = self.library.chunks_of(document.id)
            places = [self._place[document.id, chunk.chunk_index] for chunk in chunks]
            if not chunks or any(shard >= len(self.shards) for shard, _ in places):
                continue
            kind = _kind(document)
            filled = []
            for chunk, (shard, position) in zip(chunks, places, strict=True):
                rows = Rows(int(starts[shard][position]), int(self.lengths[shard][position]))
                filled.append((rows.n, *self._cut(chunk.text, rows, (kind, not chunk.chunk_index))))
            columns = {name: Template(text) for name, text in _changing_columns(document).items()}
            self.shapes.append(Shape(document, columns, kind, filled))

    @cached_property
    def _place(self) -> dict[tuple[str, int], tuple[int, int]]:
        sizes = [int(shard["chunks"]) for shard in self.library.manifest["shards"]]
        places = ((shard, position) for shard, size in enumerate(sizes) for position in range(size))
        return dict(zip(self.library.chunk_ids(), places, strict=True))

    def _cut(self, text: str, rows: Rows, pool: tuple[str, bool]) -> tuple[Rows, Rows]:
        """Take a chunk's sentences; return its rows before the first and after the last."""
        spans, slots = split_sentences(text), _slots(text)
        before, after, bounds = self._bounds(text, rows.n, [start for start, _ in spans])
        for number, (start, end) in enumerate(spans):
            first, last = bounds[number : number + 2]
            if last > first:
                self.pools.setdefault(pool, []).append(len(self.sentences))
                is_last = number == len(spans) - 1
                sentence = Sentence(Template(text, slots, start, end), Rows(rows.start + first, last - first), is_last)
                self.sentences.append(sentence)
        return Rows(rows.start, before), Rows(rows.start + rows.n - after, after)

    def _bounds(self, text: str, n_rows: int, starts: Sequence[int]) -> tuple[int, int, list[int]]:
        """Return a chunk's rows before its text, those after, and the rows at which its sentences start, and the end.

        Rows are tokens; where they are not (pooled, without punctuation) or nobody wants them, characters tell.
        """
        offsets = self._encoder.document_offsets(text) if self._with_codes else np.empty((0, 2))
        own = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
        if not len(own) or n_rows < len(offsets):
            return 0, 0, [*(round(n_rows * start / len(text)) for start in starts), n_rows]
        before, after = n_rows - len(offsets) + int(own[0]), len(offsets) - 1 - int(own[-1])
        firsts = np.searchsorted(offsets[own, 0], starts)
        return before, after, [*(before + int(first) for first in firsts), n_rows - after]


def _kind(document: Document) -> str:
    return " ".join(document.juridiction.split()[:2]) or "?"


def _changing_columns(document: Document) -> dict[str, str]:
    texts = {name: getattr(document, name) for name in ("title", "decision_date", "summary")}
    return texts | {
        name: document.extra[name] for name in ("number", "ecli") if isinstance(document.extra.get(name), str)
    }


class Simulated(NamedTuple):
    """A simulated document, its chunks, and for each the rows of the source that are its token vectors."""

    document: Document
    chunks: list[Chunk]
    rows: list[list[Rows]]


def simulate(material: Material, n_documents: int) -> Iterator[Simulated]:
    """Yield simulated documents."""
    n_shapes = len(material.shapes)
    for turn in range(math.ceil(n_documents / n_shapes)):
        changes = Changes(material.seed, turn, material.names)
        order = random.Random(f"{material.seed}/{turn}").sample(range(n_shapes), n_shapes)
        for number in order[: n_documents - turn * n_shapes]:
            generator = random.Random(f"{material.seed}/{turn}/{number}")
            yield _simulated(material, material.shapes[number], turn, changes, generator)


def _simulated(material: Material, shape: Shape, turn: int, changes: Changes, generator: random.Random) -> Simulated:
    doc_id = f"{shape.document.id}-{turn}"
    texts, rows = [], []
    for index, (n_tokens, before, after) in enumerate(shape.chunks):
        pool = material.pools.get((shape.kind, not index)) or material.pools[shape.kind, True]
        chosen = _fill(material, pool, n_tokens - before.n - after.n, generator)
        texts.append("".join(changes.text(one.template) + "\n" * one.ends_chunk for one in chosen).strip())
        rows.append([before, *(one.rows for one in chosen), after])
    ends = list(accumulate(len(text) + 2 for text in texts))
    chunks = [
        Chunk(doc_id, index, end - 2 - len(text), end - 2, text)
        for index, (end, text) in enumerate(zip(ends, texts, strict=True))
    ]
    columns = {name: changes.text(template) for name, template in shape.columns.items()}
    extra = {**shape.document.extra, **{name: columns.pop(name) for name in ("number", "ecli") if name in columns}}
    document = replace(shape.document, id=doc_id, content="\n\n".join(texts), extra=extra, **columns)
    return Simulated(document, chunks, rows)


def _fill(material: Material, pool: Sequence[int], n_tokens: int, generator: random.Random) -> list[Sentence]:
    """Choose runs of sentences of nearly `n_tokens` together, never more; at least one sentence."""
    chosen: list[Sentence] = []
    missing = n_tokens
    for _ in range(TRIES * (1 + n_tokens // CLOSE)):
        at = generator.randrange(len(pool))
        for number in pool[at : at + generator.randint(1, RUN_SENTENCES)]:
            sentence = material.sentences[number]
            if sentence.rows.n > missing:
                break
            chosen.append(sentence)
            missing -= sentence.rows.n
        if missing < CLOSE:
            break
    return chosen or [min((material.sentences[number] for number in pool), key=lambda one: one.rows.n)]


def make(source: Library, target: Path, n_documents: int, seed: int, *, words_only: bool) -> None:
    """Make a simulated Library, or go on with one; print the seconds of each part."""
    clock = Clock()
    plaid = source.manifest["plaid"] | ({"n_bits": 0} if words_only else {})
    if not (target / SIMULATED).is_file():
        counts = _simulate(source, target, n_documents, seed, plaid, clock)
        write_whole(target / SIMULATED, json.dumps(counts))
    counts = json.loads((target / SIMULATED).read_text(encoding="utf-8"))
    fields = {name: source.manifest[name] for name in ("encoder", "chunks", "source")}
    manifest = {"commit": 1, **fields, "plaid": plaid, "counts": {**counts, "bad_records": 0}, "built": {}}
    with clock.timing(commit, "fill_parts", "words"):
        n_shards = -(-counts["chunks"] // plaid["shard_chunks"])
        clock.time("words, checksums, commit", commit.finish_library, target, manifest, n_shards)
    for name, seconds in clock.seconds.items():
        print(f"{name:30}{seconds:9.1f} s")


def _simulate(
    source: Library, target: Path, n_documents: int, seed: int, plaid: Mapping[str, Any], clock: "Clock"
) -> dict[str, int]:
    """Write the store and the shards of simulated documents; return how many documents and chunks."""
    material = Material(source, seed, with_codes=bool(plaid["n_bits"]))
    share = n_documents / len(material.shapes)
    n_tokens, n_chunks = (int(share * sum(sizes)) for sizes in zip(*map(_sizes, material.shapes), strict=True))
    require_space(target, material, n_documents, n_tokens if plaid["n_bits"] else 0)
    print(
        f"about {n_documents:,} documents, {n_chunks:,} chunks, {n_tokens:,} tokens of {len(material.shapes):,}"
        f" documents and {len(material.sentences):,} sentences"
    )
    target.mkdir(parents=True, exist_ok=True)
    made = simulate(material, n_documents)
    with closing(StoreWriter(target / STORE, shard_chunks=plaid["shard_chunks"])) as writer:
        waiting: list[list[Rows]] = []  # chunks of the shard to write next
        number = 0
        with progress("Simulating", total=n_documents, unit=" documents") as bar:
            while (one := clock.time("simulating", next, made, None)) is not None:
                clock.time("store", _store, writer, one)
                waiting += one.rows
                while len(waiting) >= writer.shard_chunks:
                    own, waiting = waiting[: writer.shard_chunks], waiting[writer.shard_chunks :]
                    clock.time("shards", _write_shard, material, target, number, own, plaid)
                    number += 1
                bar.update()
        if waiting:
            clock.time("shards", _write_shard, material, target, number, waiting, plaid)
        writer.finish()
        return {"documents": writer.n_documents, "chunks": writer.n_chunks}


def _sizes(shape: Shape) -> tuple[int, int]:
    return sum(n for n, _, _ in shape.chunks), len(shape.chunks)


def _store(writer: StoreWriter, simulated: Simulated) -> None:
    writer.add(simulated.document, simulated.chunks)
    if not writer.n_documents % STORED_AT_ONCE:
        writer.commit()


def _write_shard(
    material: Material, target: Path, number: int, chunks: Sequence[Sequence[Rows]], plaid: Mapping[str, Any]
) -> None:
    """Write the PLAID files of a shard of rows of the source, unless they are there."""
    home = shard_home(target, number)
    if not plaid["n_bits"] or is_complete(home, len(chunks)):
        return
    folder, lengths = home / PLAID_FOLDER, [sum(one.n for one in rows) for rows in chunks]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _link_codec(material.shards[0].folder if number == 0 else shard_home(target, 0) / PLAID_FOLDER, folder)
    starts, counts = np.array([one for rows in chunks for one in rows if one.n]).T
    index = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    codes, at = [], 0
    parts = list(_split_into_parts(lengths))
    for part, own in enumerate(parts):
        rows = index[at : at + sum(own)]
        block = material.codes[rows], material.residuals[rows]
        codes.append(_write_part(folder, part, at, own, block[1].shape[1], [block]))
        at += sum(own)
    n_centroids = len(material.files[0].centroids)
    _write_rest(folder, np.concatenate(codes), lengths, plaid["n_bits"], n_centroids, len(parts))


def require_space(target: Path, material: Material, n_documents: int, n_tokens: int) -> None:
    """Print how many bytes a simulated Library will take; end where the disk has not so many."""
    text = sum(len(shape.document.content.encode()) for shape in material.shapes) / len(material.shapes)
    row = material.files[0].parts[0]
    codes = n_tokens * (row.residuals.shape[1] + row.codes.itemsize + IVF_BYTES)
    wanted = int(n_documents * text * (1 + TEXT_SHARE) + codes)
    there = sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) if target.exists() else 0
    free = shutil.disk_usage(next(one for one in (target, *target.parents) if one.exists())).free
    print(f"disk: {wanted / 1e9:.1f} GB wanted, {there / 1e9:.1f} GB of it there, {free / 1e9:.1f} GB free")
    if wanted - there > FREE_SHARE * free:
        sys.exit(f"no room for {target}: {wanted - there:,} bytes wanted, {free:,} free")


class Clock:
    """Sums the seconds of parts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function, and add the seconds that it takes to a part."""
        started = time.perf_counter()
        try:
            return call(*arguments, **options)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    @contextmanager
    def timing(self, module: Any, function: str, name: str) -> Iterator[None]:
        """Time a module's function by itself, whoever calls it."""
        called = getattr(module, function)
        setattr(module, function, partial(self.time, name, called))
        try:
            yield
        finally:
            setattr(module, function, called)


class StandIn:
    """Shards and chunk vectors of a Library without codes: candidates are what words rank low, scores are arbitrary."""

    dim = 1

    def __init__(self, library: Library, lexical: LexicalIndex) -> None:
        self.sizes = [ShardSize(int(shard["chunks"]), 0) for shard in library.manifest["shards"]]
        self._lexical, self._found = lexical, {}

    def prepare(self, query: ParsedQuery, vectors: np.ndarray) -> None:
        """Choose the candidates of a question, outside of what is timed."""
        ranked = self._lexical.search(query, 2 * FUSED_CHUNKS + N_CANDIDATES)[-N_CANDIDATES:]
        positions: list[list[int]] = [[] for _ in self.sizes]
        for shard, position, _ in sorted(ranked):
            positions[shard].append(position)
        self._found[id(vectors)] = [np.array(some, dtype=np.int64) for some in positions]

    def nearest(self, query: np.ndarray, n: int, subsets: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
        """Return a question's candidates."""
        found = self._found[id(query)]
        return found if subsets is None else [np.intersect1d(*pair) for pair in zip(found, subsets, strict=True)]

    def scores(
        self, queries: Sequence[np.ndarray], candidates: Sequence[Sequence[ShardHits]], window_weight: float = 0.0
    ) -> list[list[ShardHits]]:
        """Score each place by its number."""
        return [
            [ShardHits(hits.positions, (hits.positions % 97).astype(np.float32) / 9) for hits in own]
            for own in candidates
        ]


class Searched(NamedTuple):
    """A Library under measurement."""

    library: Library
    retriever: Retriever
    ranker: Ranker
    features: list[QueryFeatures]
    clock: Clock


def opened(library: Library, encoder: Encoder, texts: Sequence[str]) -> Searched:
    """Open a Library, and time the parts of its searches."""
    clock = Clock()
    if library.manifest["plaid"]["n_bits"]:
        retriever = Retriever(library, encoder)
        features = [one._replace(tiers=(), facts=None) for one in retriever._questions(texts, "hybrid")]
        ranker, shards, vectors = retriever._ranker, retriever._open_shards(), retriever._chunk_vectors
    else:
        retriever = Retriever(library)
        lexical = library.lexical_index()
        shards = vectors = StandIn(library, lexical)
        features = [QueryFeatures(ParsedQuery(text), np.zeros((1, 1), dtype=np.float32)) for text in texts]
        for one in features:
            shards.prepare(one.query, one.vectors)
        links = library.citation_links()
        ranker = Ranker(lambda: shards, SearchSettings(), lexical, links, open_vectors=lambda: vectors)
    for owner, methods in (
        (vectors, {"nearest": "candidates"}),
        (shards, {"scores": "MaxSim"}),
        (
            ranker._lexical,
            {"search": "BM25, chunks", "scores": "BM25, candidates", "document_scores": "BM25, documents"},
        ),
        (ranker._links, dict.fromkeys(("documents_at", "links_from", "places_of"), "citation links")),
    ):
        for method, name in methods.items():
            setattr(owner, method, partial(clock.time, name, getattr(owner, method)))
    return Searched(library, retriever, ranker, features, clock)


def measure(source: Library, scaled: Library, texts: Sequence[str]) -> None:
    """Print the milliseconds of searches of both Libraries, by turns, with and without filters, and of their parts."""
    _, encoder = open_with_encoder(source)
    both = [opened(library, encoder, texts) for library in (source, scaled)]
    filters = [_filters(one.library) for one in both]
    times: dict[str, list[list[float]]] = {}
    for turn in range(ROUNDS):
        for number in progress(f"Round {turn + 1} of {ROUNDS}", iterable=range(len(texts)), unit=" questions"):
            for which, one in enumerate(both):
                for name, spent in _one_question(one, number, filters[which]):
                    if turn:
                        times.setdefault(name, [[], []])[which].append(1000 * spent)
    print(f"{source.n_documents:,} documents against {scaled.n_documents:,}, load {os.getloadavg()[0]:.1f}")
    print(f"{'milliseconds':34}{'p50':>9}{'p95':>9}{'p50':>9}{'p95':>9}{'ratio':>8}")
    for name, columns in times.items():
        shown = [_percentiles(some) for some in columns]
        ratio = f"{shown[1][0] / shown[0][0]:8.1f}" if all(shown) and shown[0][0] else ""
        print(f"{name:34}" + "".join(f"{some[0]:9.2f}{some[1]:9.2f}" if some else " " * 18 for some in shown) + ratio)
    if scaled.manifest["plaid"]["n_bits"]:
        print_more_candidates(both[1], MORE)


def print_more_candidates(one: Searched, times: int) -> None:
    """Print how long finding candidates takes among several times the chunks: the same vectors, over and over."""
    manifest, queries = one.library.manifest, [features.vectors for features in one.features]
    folder, segments = one.library.path / CHUNK_VECTORS, manifest["chunk_vectors"]["segments"]
    sizes = [int(shard["chunks"]) for shard in manifest["shards"]]
    vectors = ChunkVectors(folder, segments * times, sizes * times)
    spent = [1000 * timed(vectors.nearest, query, N_CANDIDATES) for _ in range(2) for query in queries][len(queries) :]
    shown = "".join(f"{figure:9.2f}" for figure in _percentiles(spent) or ())
    print(f"{f'candidates, {times * sum(sizes):,} chunks':52}{shown}")


def _percentiles(some: Sequence[float]) -> tuple[float, float] | None:
    return (statistics.median(some), statistics.quantiles(some, n=20)[-1]) if some else None


def _filters(library: Library) -> dict[str, Filters]:
    """Return filters that 1 % and about 50 % of the documents pass."""
    ids = random.Random(0).sample(list(library), max(library.n_documents // 100, 1))
    with closing(connect_to_read(library.path / STORE)) as connection:
        middle = "SELECT decision_date FROM documents ORDER BY decision_date LIMIT 1 OFFSET ?"
        (day,) = connection.execute(middle, (library.n_documents // 2,)).fetchone()
    return {"of 1 %": Filters(doc_ids=tuple(ids)), "of 50 %": Filters(date_from=day)}


def _one_question(one: Searched, number: int, filters: Mapping[str, Filters]) -> Iterator[tuple[str, float]]:
    """Yield the seconds of a question's searches and their parts."""
    features, clock, library = one.features[number], one.clock, one.library

    def search(mode: Mode, subsets: Subsets | None) -> tuple[Ranked, float, dict[str, float]]:
        clock.seconds.clear()
        (ranked,) = clock.time("whole", one.ranker.rank, [features], K, mode, subsets)
        parts = dict(clock.seconds)
        return ranked, parts.pop("whole"), parts

    ranked, whole, parts = search("hybrid", None)
    yield "hybrid", whole
    yield from ((f"  {part}", spent) for part, spent in sorted(parts.items()))
    yield "  fusion and the rest", whole - sum(parts.values())
    yield "names in the question", timed(library.positions_named, features.query)
    yield "rows of the hits", timed(library.chunks_at, [hit[:2] for hit in ranked])
    modes = [mode for mode in MODES if mode == "bm25" or library.manifest["plaid"]["n_bits"]]
    for mode in (one for one in modes if one != "hybrid"):
        yield mode, search(mode, None)[1]
    for name, some in filters.items():
        yield f"positions {name}", timed(library.positions, some)
        subsets = library.positions(some)
        yield from ((f"{mode} {name}", search(mode, subsets)[1]) for mode in dict.fromkeys(["hybrid", *modes]))


def timed(call: Callable[..., Any], *arguments: Any) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - started


def print_sizes(library: Library) -> None:
    """Print the bytes of each kind of file, of a hard link once."""
    files = {path.stat().st_ino: path for path in library.path.rglob("*") if path.is_file()}
    sizes: dict[str, int] = {}
    for path in files.values():
        kind = next(
            name for name, pattern in KINDS.items() if re.search(pattern, path.relative_to(library.path).as_posix())
        )
        sizes[kind] = sizes.get(kind, 0) + path.stat().st_size
    n_tokens = library.manifest["counts"]["tokens"]
    for kind, size in {**sizes, "whole": sum(sizes.values())}.items():
        print(f"{kind:30}{size / 1e6:12,.1f} MB{size / library.n_documents:12,.0f} bytes a document", end="")
        print(f"{size / n_tokens:9.1f} a token" if n_tokens else "")


def print_process(folder: Path, library: Library, texts: Sequence[str]) -> None:
    """Print how long a process of its own takes to open a Library and search once, and its memory after all questions.

    Pages of the mapped files count in the second figure of memory alone.
    """
    with tempfile.TemporaryDirectory() as scratch:
        questions = Path(scratch) / "questions.npz"
        _, encoder = open_with_encoder(library)
        np.savez(questions, *encoder.encode_queries(texts), texts=np.array(texts))
        command = [sys.executable, __file__, "--out", str(folder), "search", "--questions", str(questions)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")  # noqa: S603 - itself


def search_once(folder: Path, questions: Path) -> None:
    """Search as a new process does, and print what that takes."""
    started = time.perf_counter()
    library = Library(folder)
    retriever = Retriever(library)
    mode: Mode = "hybrid" if library.manifest["plaid"]["n_bits"] else "bm25"
    with np.load(questions) as stored:
        features = [
            QueryFeatures(ParsedQuery(str(text)), stored[f"arr_{number}"])
            for number, text in enumerate(stored["texts"])
        ]
    open_ms = 1000 * (time.perf_counter() - started)
    first_ms = 1000 * timed(retriever._ranker.rank, features[:1], K, mode)
    for one in features:
        retriever._ranker.rank([one], K, mode)
    print(f"a new process: open {open_ms:.0f} ms, first search ({mode}) {first_ms:.0f} ms")
    print(f"{'memory, no encoder':30}{_memory()}")
    _ = retriever.encoder.encode_queries(["Que dit la loi ?"])
    print(f"{'memory, encoder loaded':30}{_memory()}")


def _memory() -> str:
    rollup, status = (Path(f"/proc/self/{name}").read_text(encoding="utf-8") for name in ("smaps_rollup", "status"))
    kept, mapped, peak = (
        _kilobytes(name, text) / 1e6 for name, text in (("Pss_Anon", rollup), ("Pss_File", rollup), ("VmHWM", status))
    )
    return f"{kept:8.2f} GB without mapped pages, {kept + mapped:.2f} GB with, {peak:.2f} GB at most"


def _kilobytes(name: str, text: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def add(source: Library, scaled: Path, n_documents: int, seed: int) -> None:
    """Add documents of another seed to a copy, whose shards are links, and print the seconds of each stage."""
    copy = scaled.with_name(f"{scaled.name}-added")
    shutil.rmtree(copy, ignore_errors=True)

    def linked(file: str, target: str) -> None:
        (os.link if file.endswith(".npy") else shutil.copyfile)(file, target)

    shutil.copytree(scaled, copy, copy_function=linked)
    made = simulate(Material(source, seed + 1, with_codes=False), n_documents)
    rows = [one.document.row() | {"id": f"added {number}"} for number, one in enumerate(made)]
    _, encoder = open_with_encoder(source)
    config = IndexConfig(source=rows, index_folder=str(copy.parent), index_name=copy.name)
    for name, seconds in add_documents(config, encoder).seconds.items():
        print(f"{name:30}{seconds:9.1f} s")
    shutil.rmtree(copy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index-folder", default=DEFAULT_FOLDER)
    parser.add_argument("--index-name", default=DEFAULT_NAME)
    parser.add_argument("--out", type=Path, required=True, help="The simulated Library's folder.")
    parser.add_argument("--seed", type=int, default=0)
    steps = parser.add_subparsers(dest="step", required=True)
    making = steps.add_parser("make", help="Make a simulated Library.")
    making.add_argument("--documents", type=int, default=150_000)
    making.add_argument("--words-only", action="store_true", help="No codes: a Library without PLAID files.")
    measuring = steps.add_parser("measure", help="Measure searches of it and of the source.")
    measuring.add_argument("--queries", type=Path, required=True)
    adding = steps.add_parser("add", help="Add documents to a copy of it.")
    adding.add_argument("--documents", type=int, default=100)
    searching = steps.add_parser("search", help="What a process of `measure` does.")
    searching.add_argument("--questions", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.step == "search":
        search_once(arguments.out, arguments.questions)
        return
    source = Library.open(arguments.index_folder, arguments.index_name)
    if arguments.step == "make":
        make(source, arguments.out, arguments.documents, arguments.seed, words_only=arguments.words_only)
        return
    if arguments.step == "add":
        add(source, arguments.out, arguments.documents, arguments.seed)
        return
    scaled, texts = Library(arguments.out), [query.text for query in read_queries(arguments.queries)[0]]
    measure(source, scaled, texts)
    for library in (source, scaled):
        print(f"\n{library.n_documents:,} documents, {library.manifest['counts']['chunks']:,} chunks")
        print_sizes(library)
        print_process(library.path, source, texts)


if __name__ == "__main__":
    main()
