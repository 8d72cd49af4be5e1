"""Numba kernels of late interaction: MaxSim from packed codes in integers, decompression, packing.

Residuals are decoded to 8-bit integers, a query's tokens are rounded to 8 bits, and their products are summed in 32
bits: exactly, whatever the order. The dtype of `Tables.lookup` decides how: uint8 by AVX-512 VNNI, 64 dimensions in an
instruction; int8 by 16-bit arithmetic, which every processor has. Scores are the same to the last bit.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic as numba_intrinsic

FAST = {"reassoc", "contract"}  # sums may be taken in another order; infinities keep their meaning
LANES = 16  # query tokens in a vector, a block
WORD = 4  # bytes of a decoded token that are multiplied in one step
TILE = 8  # tokens multiplied in one go, their sums in registers
TOKENS = 4 * TILE  # decoded in one go, into the processor's cache
VECTOR = 64  # bytes
I8, I16, I32, I64, F32 = *(ir.IntType(n) for n in (8, 16, 32, 64)), ir.FloatType()
START = I64(0)
intrinsic: Any = numba_intrinsic  # its functions take one argument less than they declare
INTEGERS, FLOATS = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)


class Tables(NamedTuple):
    """A codebook in integers; its dimensions come in the order in which residuals are decoded."""

    lookup: np.ndarray  # (16,), the residuals by their bits: int8; or uint8, raised by 128
    n_bits: int
    zero: np.ndarray  # (1,), what a residual of 0 is decoded to: 0, int16; or 128, uint8
    unit: np.float32  # of residuals
    centroids: np.ndarray  # (n_centroids, dim padded to VECTOR), int8
    units: np.ndarray  # (n_centroids,), float32: of a row's numbers
    squares: np.ndarray  # (n_centroids,), float32: the squared lengths
    excess: np.ndarray  # (n_centroids,), int32: what a row's product with a decoded residual is too high by


class Query(NamedTuple):
    """A query in integers, its dimensions in the same order; its tokens are padded to a multiple of LANES."""

    n_tokens: int
    words: np.ndarray  # (n_padded / LANES, n_words, VECTOR bytes: a word of each token), int16 or int8, as decoded
    units: np.ndarray  # (n_padded,), float32: of a product
    excess: np.ndarray  # (n_padded,), int32: what a product with a decoded residual is too high by
    centroid_scores: np.ndarray  # (n_centroids, n_padded), float32


def has_vnni() -> bool:
    """Tell whether kernels are compiled for a processor with AVX-512 VNNI."""
    return {"avx512f", "avx512bw", "avx512vnni"} <= _processor_features()


@cache
def _processor_features() -> frozenset[str]:
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return frozenset(one[1:] for one in features.split(",") if one.startswith("+"))


@njit(nogil=True, cache=True)
def max_sim(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    tables: Tables,
    query: Query,
    out: np.ndarray,
) -> bool:
    """Score passages by MaxSim, straight from packed codes.

    Args:
        codes: As for `decompress`, and so are the next three.
        residuals: See `decompress`.
        starts: See `decompress`.
        ends: See `decompress`.
        tables: The codebook.
        query: The query, for that codebook.
        out: Shape (n_passages,), float32, filled with scores.

    Returns:
        Whether all centroids exist.
    """
    n_query_tokens, words, units, excess, centroid_scores = query
    n_blocks = len(words)
    best = np.empty(n_blocks * LANES, dtype=np.float32)
    decoded = np.empty((TOKENS, tables.centroids.shape[1]), dtype=tables.zero.dtype)
    decoded[:] = tables.zero[0]
    rows, scales = np.empty(TOKENS, dtype=np.int64), np.empty(TOKENS, dtype=np.float32)
    for passage in range(len(starts)):
        best[:] = -np.inf
        end = ends[passage]
        for first in range(starts[passage], end, TOKENS):
            n_tokens = -(-min(TOKENS, end - first) // TILE) * TILE
            for t in range(n_tokens):
                token = min(first + t, end - 1)  # once more the same token changes no maximum
                code = np.int64(codes[token])
                if code < 0 or code >= len(tables.centroids):
                    return False
                _decode(residuals, token, tables.lookup, tables.n_bits, decoded, t)
                rows[t], scales[t] = code, _scale(tables, code, *_products(decoded, t, tables.centroids, code))
            for t in range(0, n_tokens, TILE):
                block = 0
                while block < n_blocks:
                    left = n_blocks - block
                    if left == 1:
                        block = _score(1, decoded, t, words, block, units, excess, centroid_scores, rows, scales, best)
                    elif left == 2 or left == 4:
                        block = _score(2, decoded, t, words, block, units, excess, centroid_scores, rows, scales, best)
                    else:
                        block = _score(3, decoded, t, words, block, units, excess, centroid_scores, rows, scales, best)
        total = np.float32(0.0)
        for q in range(n_query_tokens):
            total += best[q]
        out[passage] = total
    return True


@njit(nogil=True, cache=True)
def _scale(tables: Tables, code: int, product: int, square: int) -> np.float32:
    """Return what brings a token to unit length, from its residual's products with its centroid and with itself."""
    cross = np.float32(2.0) * tables.units[code] * np.float32(product - tables.excess[code])
    length = tables.squares[code] + tables.unit * (cross + tables.unit * np.float32(square))
    return np.float32(1.0) / max(np.sqrt(length), np.float32(1e-12))


class _Emitter:
    """Emits LLVM instructions over the arguments of a numba intrinsic."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> None:
        self.context, self.builder = context, builder
        self._arguments = list(zip(signature.args, arguments, strict=True))

    def array(self, number: int) -> Any:
        """Return the array that is an argument of the intrinsic."""
        kind, value = self._arguments[number]
        return self.context.make_array(kind)(self.context, self.builder, value)

    def shape(self, number: int, axis: int) -> ir.Value:
        return cgutils.unpack_tuple(self.builder, self.array(number).shape)[axis]

    def row(self, number: int, index: ir.Value) -> ir.Value:
        """Return the address of an array's row."""
        array = self.array(number)
        stride = cgutils.unpack_tuple(self.builder, array.strides)[0]
        start = self.builder.bitcast(array.data, I8.as_pointer())
        return self.builder.gep(start, [self.builder.mul(index, stride)])

    def load(self, kind: ir.Type, address: ir.Value, offset: ir.Value = START) -> ir.Value:
        """Load a number or vector from `offset` bytes behind an address."""
        at = self.builder.gep(address, [offset])
        return self.builder.load(self.builder.bitcast(at, kind.as_pointer()), align=1)

    def store(self, value: ir.Value, address: ir.Value, offset: ir.Value = START) -> None:
        at = self.builder.gep(address, [offset])
        self.builder.store(value, self.builder.bitcast(at, value.type.as_pointer()), align=1)

    def splat(self, value: ir.Value, n: int = LANES) -> ir.Value:
        """Return a vector with `value` in all lanes."""
        one = self.builder.insert_element(ir.VectorType(value.type, n)(ir.Undefined), value, I32(0))
        return self.lanes(one, [0] * n)

    def lanes(self, vector: ir.Value, lanes: Sequence[int]) -> ir.Value:
        """Return some lanes of a vector."""
        return self.builder.shuffle_vector(vector, vector, ir.VectorType(I32, len(lanes))(list(lanes)))

    def call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Call an LLVM intrinsic."""
        kind = ir.FunctionType(result, [one.type for one in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def zeros(self, n: int) -> list[ir.Value]:
        """Return variables for sums."""
        sums = [cgutils.alloca_once(self.builder, INTEGERS) for _ in range(n)]
        for one in sums:
            self.builder.store(INTEGERS(None), one)
        return sums

    @contextmanager
    def steps(self, end: ir.Value, step: ir.Value, start: ir.Value = START) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Emit a loop; what is given are the position and the number of steps before it."""
        with cgutils.for_range_slice(self.builder, start, end, step, I64) as position:
            yield position

    def add_products(self, total: ir.Value, decoded: ir.Value, others: ir.Value, *, raised: bool) -> None:
        """Add to each lane of a variable the products of the 8-bit or 16-bit integers in the lanes of two vectors."""
        multiply = self._multiply_bytes if raised else self._multiply_shorts
        self.builder.store(multiply(self.builder.load(total), decoded, others), total)

    def _multiply_bytes(self, total: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        return self.call("llvm.x86.avx512.vpdpbusd.512", INTEGERS, total, unsigned, signed)

    def _multiply_shorts(self, total: ir.Value, some: ir.Value, others: ir.Value) -> ir.Value:
        builder, half = self.builder, ir.VectorType(I32, LANES // 2)
        if "avx2" not in _processor_features():
            low, sixteen = [builder.shl(one, INTEGERS([16] * LANES)) for one in (some, others)], INTEGERS([16] * LANES)
            for pair in (low, (some, others)):
                total = builder.add(total, builder.mul(*(builder.ashr(one, sixteen) for one in pair)))
            return total
        halves = []
        for lanes in (range(LANES // 2), range(LANES // 2, LANES)):
            pairs = (builder.bitcast(self.lanes(one, lanes), ir.VectorType(I16, LANES)) for one in (some, others))
            halves.append(self.call("llvm.x86.avx2.pmadd.wd", half, *pairs))
        both = builder.shuffle_vector(*halves, INTEGERS(list(range(LANES))))
        return builder.add(total, both)


@intrinsic
def _decode(typing: Any, residuals: Any, token: Any, lookup: Any, n_bits: Any, decoded: Any, row: Any) -> Any:
    """Write the residual of a token into a row of `decoded`: what all bytes' lowest bits encode, then the next bits."""
    signature = types.void(residuals, types.int64, lookup, types.int64, decoded, types.int64)
    return signature, _emit_decoding


def _emit_decoding(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    emit = _Emitter(context, builder, signature, arguments)
    _, token, _, n_bits, _, row = arguments
    source, target, lookup = emit.row(0, token), emit.row(4, row), emit.row(2, START)
    width, done, item = emit.shape(0, 1), START, I64(signature.args[4].dtype.bitwidth // 8)
    sizes = [size for size, feature in ((VECTOR, "avx512bw"), (16, "ssse3")) if feature in _processor_features()]
    for size in [*sizes, 1]:
        end = builder.sub(width, builder.urem(width, I64(size)))
        with emit.steps(end, I64(size), done) as (byte, _):
            packed = emit.load(ir.VectorType(I8, size), source, byte)
            with emit.steps(I64(8), n_bits) as (shift, plane):
                residual = _looked_up(emit, lookup, _bits(emit, packed, shift, n_bits, size), size)
                if signature.args[4].dtype == types.int16:
                    residual = builder.sext(residual, ir.VectorType(I16, size))
                at = builder.add(builder.mul(plane, width), byte)
                emit.store(residual, target, builder.mul(at, item))
        done = end
    return context.get_dummy_value()


def _bits(emit: _Emitter, packed: ir.Value, shift: ir.Value, n_bits: ir.Value, size: int) -> ir.Value:
    """Return the lowest bits of each byte, once it is shifted."""
    builder, wide = emit.builder, ir.IntType(8 if size == 1 else 32)  # no processor shifts vectors of bytes
    n_wide = max(1, size // 4)
    shifted = builder.lshr(
        builder.bitcast(packed, ir.VectorType(wide, n_wide)), emit.splat(builder.trunc(shift, wide), n_wide)
    )
    mask = builder.trunc(builder.sub(builder.shl(I64(1), n_bits), I64(1)), I8)
    return builder.and_(builder.bitcast(shifted, packed.type), emit.splat(mask, size))


def _looked_up(emit: _Emitter, lookup: ir.Value, places: ir.Value, size: int) -> ir.Value:
    if size == 1:
        place = emit.builder.zext(emit.builder.extract_element(places, I32(0)), I64)
        return emit.load(places.type, lookup, place)
    held = emit.lanes(emit.load(ir.VectorType(I8, 16), lookup), [lane % 16 for lane in range(size)])
    name = {16: "llvm.x86.ssse3.pshuf.b.128", VECTOR: "llvm.x86.avx512.pshuf.b.512"}[size]
    return emit.call(name, places.type, held, places)


@intrinsic
def _products(typing: Any, decoded: Any, row: Any, centroids: Any, code: Any) -> Any:
    """Return the product of a decoded residual and a centroid, and the residual's with itself."""
    pair = types.UniTuple(types.int32, 2)
    return pair(decoded, types.int64, centroids, types.int64), _emit_products


def _emit_products(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    emit = _Emitter(context, builder, signature, arguments)
    _, row, _, code = arguments
    raised = signature.args[0].dtype == types.uint8
    some = ir.VectorType(I8, VECTOR) if raised else ir.VectorType(I16, VECTOR // 2)
    residual, centroid = emit.row(0, row), emit.row(2, code)
    sums = emit.zeros(2)
    with emit.steps(emit.shape(0, 1), I64(some.count)) as (at, _):
        value = emit.load(some, residual, builder.mul(at, I64(VECTOR // some.count)))
        other, size = emit.load(ir.VectorType(I8, some.count), centroid, at), value
        if raised:  # one factor of a square may have a sign, not both: take the residual's size
            signed = builder.xor(value, some([-128] * VECTOR))
            negative = builder.sub(some(None), signed)
            size = builder.select(builder.icmp_signed(">", signed, negative), signed, negative)
        else:
            other = builder.sext(other, some)
        for total, pair in zip(sums, ((value, other), (size, size)), strict=True):
            emit.add_products(total, *(builder.bitcast(one, INTEGERS) for one in pair), raised=raised)
    results = [emit.call("llvm.vector.reduce.add.v16i32", I32, builder.load(total)) for total in sums]
    return context.make_tuple(builder, signature.return_type, results)


@intrinsic(prefer_literal=True)
def _score(
    typing: Any,
    n_blocks: Any,
    decoded: Any,
    row: Any,
    words: Any,
    block: Any,
    units: Any,
    excess: Any,
    centroid_scores: Any,
    rows: Any,
    scales: Any,
    best: Any,
) -> Any:
    """Score TILE tokens by some blocks of query tokens, raise their best scores, and return the next block."""
    arrays = (units, excess, centroid_scores, rows, scales, best)
    return types.int64(n_blocks, decoded, types.int64, words, types.int64, *arrays), _emit_scores


def _emit_scores(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    emit = _Emitter(context, builder, signature, arguments)
    n_blocks, raised = signature.args[0].literal_value, signature.args[1].dtype == types.uint8
    row, block = arguments[2], arguments[4]
    # As many sums as fit the registers: 32 of 512 bits, or 16 of 256.
    n_rows, n_columns = (TILE, n_blocks) if raised else (TILE // 2, 1)
    for first in range(0, TILE, n_rows):
        some = [builder.add(row, I64(first + i)) for i in range(n_rows)]
        for column in range(0, n_blocks, n_columns):
            _emit_tile(emit, some, [builder.add(block, I64(column + i)) for i in range(n_columns)], raised)
    return builder.add(block, I64(n_blocks))


def _emit_tile(emit: _Emitter, rows: Sequence[ir.Value], blocks: Sequence[ir.Value], raised: bool) -> None:
    """Score some tokens by some blocks."""
    builder = emit.builder
    tokens, columns = [emit.row(1, row) for row in rows], [emit.row(3, block) for block in blocks]
    sums = [emit.zeros(len(blocks)) for _ in rows]
    with emit.steps(emit.shape(3, 1), I64(1)) as (number, _):
        query = [emit.load(INTEGERS, words, builder.mul(number, I64(VECTOR))) for words in columns]
        for token, own in zip(tokens, sums, strict=True):
            word = emit.splat(emit.load(I32, token, builder.mul(number, I64(WORD))))
            for total, values in zip(own, query, strict=True):
                emit.add_products(total, word, values, raised=raised)
    places = [emit.row(7, emit.load(I64, emit.row(8, row))) for row in rows]
    scales = [emit.splat(emit.load(F32, emit.row(9, row))) for row in rows]
    for block, column in zip(blocks, zip(*sums, strict=True), strict=True):
        at = builder.mul(block, I64(VECTOR))
        unit, excess = emit.load(FLOATS, emit.row(5, START), at), emit.load(INTEGERS, emit.row(6, START), at)
        best = emit.row(10, START)
        highest = emit.load(FLOATS, best, at)
        for total, place, scale in zip(column, places, scales, strict=True):
            product = builder.sitofp(builder.sub(builder.load(total), excess), FLOATS)
            score = builder.fadd(emit.load(FLOATS, place, at), builder.fmul(unit, product))
            score = builder.fmul(score, scale)
            highest = builder.select(builder.fcmp_ordered(">", score, highest), score, highest)
        emit.store(highest, best, at)


@njit(nogil=True, cache=True, fastmath=FAST)
def decompress(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    centroids: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Rebuild token vectors: centroid plus residual, brought back to unit length.

    Args:
        codes: Shape (n_tokens,), of one part of a shard.
        residuals: Shape (n_tokens, dim * bits / 8), uint8, of the same part.
        starts: Shape (n_passages,), where each passage's tokens begin in the part.
        ends: Shape (n_passages,), where they end.
        centroids: Shape (n_centroids, dim), float32.
        table: Shape (256, 4 / bits), float64: the residuals that each byte stands for, two float32 in each number.
        out: Shape (n_wanted_tokens, dim), float32, filled with unit rows, passages one after the other.

    Returns:
        Whether all centroids exist.
    """
    row = 0
    for passage in range(len(starts)):
        n_tokens = ends[passage] - starts[passage]
        if not _decompress_passage(codes, residuals, starts[passage], n_tokens, centroids, table, out[row:]):
            return False
        row += n_tokens
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def decompress_means(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    centroids: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Average the token vectors of each passage; see `decompress`, but `out` has shape (n_passages, dim)."""
    vectors = np.empty((TOKENS, centroids.shape[1]), dtype=np.float32)
    for passage in range(len(starts)):
        mean = out[passage]
        mean[:] = 0
        for first in range(starts[passage], ends[passage], TOKENS):
            n_tokens = min(TOKENS, ends[passage] - first)
            if not _decompress_passage(codes, residuals, first, n_tokens, centroids, table, vectors):
                return False
            for t in range(n_tokens):
                for d in range(len(mean)):
                    mean[d] += vectors[t, d]
        for d in range(len(mean)):
            mean[d] /= np.float32(ends[passage] - starts[passage])
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _decompress_passage(
    codes: np.ndarray,
    residuals: np.ndarray,
    start: int,
    n_tokens: int,
    centroids: np.ndarray,
    table: np.ndarray,
    out: np.ndarray,
) -> bool:
    pairs = table.shape[1]
    out_pairs = out.view(np.float64)
    for row in range(n_tokens):
        code = codes[start + row]
        if code < 0 or code >= len(centroids):
            return False
        packed, unpacked = residuals[start + row], out_pairs[row]
        if pairs == 1:  # four bits, the usual: one byte, one copy
            for byte in range(len(packed)):
                unpacked[byte] = table[packed[byte], 0]
        else:
            for byte in range(len(packed)):
                for pair in range(pairs):
                    unpacked[byte * pairs + pair] = table[packed[byte], pair]
        _add_and_scale(out[row], centroids[code])
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_and_scale(vector: np.ndarray, centroid: np.ndarray) -> None:
    squares = np.float32(0.0)
    for d in range(len(vector)):
        value = vector[d] + centroid[d]
        vector[d] = value
        squares += value * value
    scale = np.float32(1.0) / max(np.sqrt(squares), np.float32(1e-12))
    for d in range(len(vector)):
        vector[d] *= scale


@njit(nogil=True, cache=True)
def add_rows(vectors: np.ndarray, places: np.ndarray, sums: np.ndarray) -> None:
    """Add each vector, shape (n, dim), to the row of `sums` that `places`, shape (n,), has for it; all float32."""
    for i in range(len(vectors)):
        row, vector = sums[places[i]], vectors[i]
        for d in range(len(row)):
            row[d] += vector[d]


@njit(nogil=True, cache=True)
def nearest_cells(vectors: np.ndarray, means: np.ndarray, n_cells: int, out: np.ndarray) -> None:
    """Find the cells with the highest dot products, the first among equals.

    Args:
        vectors: Shape (n, dim), float32.
        means: Float32, a row for each cell, filled up to a multiple of TILE.
        n_cells: How many of them are no filling; at least `out` has columns.
        out: Shape (n, n_nearest), int32, filled, nearest first; with 0 where a vector's products are no numbers.
    """
    n_nearest = out.shape[1]
    best = np.empty(n_nearest, dtype=np.float32)
    tile = np.empty((TILE, vectors.shape[1]), dtype=np.float32)
    products = np.empty((TILE, len(means)), dtype=np.float32)
    for start in range(0, len(vectors), TILE):
        n = min(TILE, len(vectors) - start)
        for k in range(n):
            tile[k] = vectors[start + k]
        _multiply_tile(tile, means, products)
        for k in range(n):
            cells = out[start + k]
            best[:] = -np.inf
            cells[:] = 0
            for cell in range(n_cells):
                product = products[k, cell]
                if product > best[-1]:
                    place = n_nearest - 1
                    while place > 0 and product > best[place - 1]:
                        best[place], cells[place] = best[place - 1], cells[place - 1]
                        place -= 1
                    best[place], cells[place] = product, cell


@njit(nogil=True, cache=True)
def nearest_rows(
    vectors: np.ndarray,
    cells: np.ndarray,
    table: np.ndarray,
    starts: np.ndarray,
    out: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Find among the rows of some cells the one with the highest dot product, the first among equals.

    Vectors are taken cell by cell, so that a cell's rows are read once for all of them.

    Args:
        vectors: Shape (n, dim), float32.
        cells: Shape (n, n_probed), int32: the cells to look into for each vector.
        table: Shape (n_rows, dim), float32, cell after cell, each a multiple of TILE rows.
        starts: Shape (n_cells + 1,), where each cell begins in `table`.
        out: Shape (n,), int32, filled with rows.
        scores: Shape (n,), float32, filled with their products; minus infinity where none is a number.
    """
    n_cells, n_probed = len(starts) - 1, cells.shape[1]
    bounds = np.zeros(n_cells + 1, dtype=np.int64)
    for i in range(len(vectors)):
        for cell in cells[i]:
            bounds[cell + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds.copy()
    members = np.empty(len(vectors) * n_probed, dtype=np.int32)
    for i in range(len(vectors)):
        for cell in cells[i]:
            members[at[cell]] = i
            at[cell] += 1
    tile = np.empty((TILE, vectors.shape[1]), dtype=np.float32)
    products = np.empty((TILE, np.diff(starts).max()), dtype=np.float32)
    out[:] = 0
    scores[:] = -np.inf
    for cell in range(n_cells):
        first, n_rows = starts[cell], starts[cell + 1] - starts[cell]
        for start in range(bounds[cell], bounds[cell + 1], TILE):
            n = min(TILE, bounds[cell + 1] - start)
            for k in range(n):
                tile[k] = vectors[members[start + k]]
            _multiply_tile(tile, table[first : first + n_rows], products)
            for k in range(n):
                row = products[k, :n_rows]
                best = row[0]
                for product in row:
                    best = max(best, product)
                if best > scores[members[start + k]]:
                    scores[members[start + k]] = best
                    for j in range(n_rows):
                        if row[j] == best:
                            out[members[start + k]] = first + j
                            break


@njit(nogil=True, cache=True, fastmath=FAST)
def _multiply_tile(tile: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Multiply TILE vectors with rows in a multiple of TILE; sixteen sums stay in registers."""
    t0, t1, t2, t3 = tile[0], tile[1], tile[2], tile[3]
    for r in range(0, len(rows), TILE):
        r0, r1, r2, r3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = np.float32(0.0)
        s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = np.float32(0.0)
        for d in range(len(t0)):
            a0, a1, a2, a3 = t0[d], t1[d], t2[d], t3[d]
            b0, b1, b2, b3 = r0[d], r1[d], r2[d], r3[d]
            s00 += a0 * b0
            s01 += a0 * b1
            s02 += a0 * b2
            s03 += a0 * b3
            s10 += a1 * b0
            s11 += a1 * b1
            s12 += a1 * b2
            s13 += a1 * b3
            s20 += a2 * b0
            s21 += a2 * b1
            s22 += a2 * b2
            s23 += a2 * b3
            s30 += a3 * b0
            s31 += a3 * b1
            s32 += a3 * b2
            s33 += a3 * b3
        out[0, r], out[0, r + 1], out[0, r + 2], out[0, r + 3] = s00, s01, s02, s03
        out[1, r], out[1, r + 1], out[1, r + 2], out[1, r + 3] = s10, s11, s12, s13
        out[2, r], out[2, r + 1], out[2, r + 2], out[2, r + 3] = s20, s21, s22, s23
        out[3, r], out[3, r + 1], out[3, r + 2], out[3, r + 3] = s30, s31, s32, s33


@njit(nogil=True, cache=True)
def pack_residuals(
    vectors: np.ndarray,
    centroids: np.ndarray,
    codes: np.ndarray,
    cutoffs: np.ndarray,
    stored: np.ndarray,
    out: np.ndarray,
) -> None:
    """Quantise what a token's centroid leaves of it, and pack it.

    Args:
        vectors: Shape (n, dim), float32.
        centroids: Shape (n_centroids, dim), float32.
        codes: Shape (n,), the tokens' centroids.
        cutoffs: Shape (2^bits - 1,), float32, rising: a residual's bucket is the number of cutoffs below it.
        stored: Shape (2^bits,), uint8: the bits that stand for each bucket, as `pack_buckets` orders them.
        out: Shape (n, dim * bits / 8), uint8, filled.
    """
    dim, width = vectors.shape[1], out.shape[1]
    per_byte = dim // width
    n_bits = 8 // per_byte
    residual = np.empty(dim, dtype=np.float32)
    buckets = np.empty(dim, dtype=np.int32)
    for i in range(len(vectors)):
        vector, centroid = vectors[i], centroids[codes[i]]
        for d in range(dim):
            residual[d] = vector[d] - centroid[d]
            buckets[d] = 0
        for cutoff in cutoffs:
            for d in range(dim):
                buckets[d] += residual[d] > cutoff
        for byte in range(width):
            packed = np.uint8(0)
            for j in range(per_byte):
                packed = np.uint8((packed << n_bits) | stored[buckets[byte * per_byte + j]])
            out[i, byte] = packed
