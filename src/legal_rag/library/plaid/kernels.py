"""Numba kernels of late interaction: MaxSim from packed codes in integers.

Residuals are decoded to 8-bit integers, a query's tokens are rounded to 8 bits, and their products are summed in 32
bits: exactly, whatever the order. The dtype of `Tables.zero` decides how: uint8 by AVX-512 VNNI, 64 dimensions in an
instruction; int16 by 16-bit arithmetic, which every processor has. Scores are the same to the last bit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from legal_rag.library.plaid.search import HALF_WINDOW

LANES = 16  # query tokens in a vector, a block
WORD = 4  # bytes of a decoded token that are multiplied in one step
TILE = 8  # tokens multiplied in one go, their sums in registers
TOKENS = HALF_WINDOW  # decoded in one go, into the processor's cache; a multiple of TILE
VECTOR = 64  # bytes
Multiply = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
I8, I16, I32, I64, F32 = *(ir.IntType(n) for n in (8, 16, 32, 64)), ir.FloatType()
START = I64(0)
INTEGERS, FLOATS = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)


class Tables(NamedTuple):
    """A codebook in integers."""

    table: np.ndarray  # (256, 1 or 2), the residuals that each byte encodes, as integers of several bytes
    zero: np.ndarray  # (1,), what a residual of 0 is decoded to: 0, int16; or 128, uint8
    unit: np.float32  # of residuals
    centroids: np.ndarray  # (n_centroids, dim padded to VECTOR), int8
    units: np.ndarray  # (n_centroids,), float32: of a row's numbers
    squares: np.ndarray  # (n_centroids,), float32: the squared lengths
    excess: np.ndarray  # (n_centroids,), int32: what a row's product with a decoded residual is too high by


# Renamed, it would break the compiled kernels that numba kept beside this file: they name it.
class Query(NamedTuple):
    """A query in integers; its tokens are padded to a multiple of LANES."""

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
    return frozenset(feature[1:] for feature in features.split(",") if feature.startswith("+"))


def _make_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a numba intrinsic, which is called without the first argument that `function` declares."""
    made: Callable[..., Any] = intrinsic(prefer_literal=True)(function)
    return made


@njit(nogil=True, cache=True)
def score_passages(
    codes: np.ndarray,
    residuals: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    tables: Tables,
    query: Query,
    window_weight: float,
    out: np.ndarray,
) -> bool:
    """Score passages by MaxSim, straight from packed codes.

    Of one part of a shard, `codes` have shape (n_tokens,) and `residuals` (n_tokens, dim * bits / 8), uint8; the tokens
    of passage i are those from `starts[i]` to before `ends[i]`. `query` was made for the codebook `tables`. Its scores
    fill `out`, shape (n_passages,), float32; the best window of each, of 2 * TOKENS tokens, one beginning every TOKENS,
    has `window_weight` in its score. Returned is whether all centroids exist.
    """
    n_query_tokens, words, units, excess, centroid_scores = query
    n_blocks = len(words)
    best, last, previous = np.empty((3, n_blocks * LANES), dtype=np.float32)
    decoded = np.empty((TOKENS, tables.centroids.shape[1]), dtype=tables.zero.dtype)
    decoded[:] = tables.zero[0]
    rows, scales = np.empty(TOKENS, dtype=np.int64), np.empty(TOKENS, dtype=np.float32)
    for passage in range(len(starts)):
        best[:] = -np.inf
        last[:] = -np.inf
        best_window = np.float32(-np.inf)
        end = ends[passage]
        for first in range(starts[passage], end, TOKENS):
            n_tokens = -(-min(TOKENS, end - first) // TILE) * TILE
            for t in range(n_tokens):
                token = min(first + t, end - 1)  # once more the same token changes no maximum
                code = int(codes[token])
                if code < 0 or code >= len(tables.centroids):
                    return False
                rows[t] = code
                _decode(residuals[token], tables.table, decoded[t])
            for t in range(n_tokens):  # once all are stored: what was just written byte by byte is slow to read
                scales[t] = _unit_scale(tables, rows[t], *_dot_products(decoded, t, tables.centroids, rows[t]))
            previous, last = last, previous
            last[:] = -np.inf
            for t in range(0, n_tokens, TILE):
                block = 0
                while block < n_blocks:
                    left = n_blocks - block
                    if left == 1:
                        block = _score(1, decoded, t, words, block, units, excess, centroid_scores, rows, scales, last)
                    elif left == 2 or left == 4:
                        block = _score(2, decoded, t, words, block, units, excess, centroid_scores, rows, scales, last)
                    else:
                        block = _score(3, decoded, t, words, block, units, excess, centroid_scores, rows, scales, last)
            window = np.float32(0.0)
            for q in range(n_query_tokens):
                best[q] = max(best[q], last[q])
                window += max(previous[q], last[q])
            best_window = max(best_window, window)
        total = np.float32(0.0)
        for q in range(n_query_tokens):
            total += best[q]
        if window_weight:
            total += np.float32(window_weight) * (best_window - total)
        out[passage] = total
    return True


@njit(nogil=True, cache=True)
def _unit_scale(tables: Tables, code: int, product: int, square: int) -> np.float32:
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
        single = self.builder.insert_element(ir.VectorType(value.type, n)(ir.Undefined), value, I32(0))
        return self.lanes(single, [0] * n)

    def lanes(self, vector: ir.Value, lanes: Sequence[int]) -> ir.Value:
        return self.builder.shuffle_vector(vector, vector, ir.VectorType(I32, len(lanes))(list(lanes)))

    def call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def zeros(self, n: int, kind: ir.Type = INTEGERS) -> list[ir.Value]:
        sums = [cgutils.alloca_once(self.builder, kind) for _ in range(n)]
        for total in sums:
            self.builder.store(kind(None), total)
        return sums

    @contextmanager
    def steps(self, end: ir.Value, step: int) -> Iterator[ir.Value]:
        """Emit a loop; yields the position."""
        with cgutils.for_range_slice(self.builder, START, end, I64(step), I64) as (position, _):
            yield position

    def multiply_bytes(self, total: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """Add to each lane of `total` four products of 8-bit integers."""
        return self.call("llvm.x86.avx512.vpdpbusd.512", INTEGERS, total, unsigned, signed)

    def multiply_floats(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        """Add a product to each lane of `total`, rounded once: on any processor, if slowly where it has no FMA."""
        return self.call("llvm.fma.v16f32", FLOATS, left, right, total)

    def multiply_shorts(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        """Add to each lane of `total` two products of 16-bit integers."""
        builder, half = self.builder, ir.VectorType(I32, LANES // 2)
        if "avx2" not in _processor_features():
            sixteen = INTEGERS([16] * LANES)
            low = [builder.shl(factor, sixteen) for factor in (left, right)]
            for pair in (low, (left, right)):
                total = builder.add(total, builder.mul(*(builder.ashr(factor, sixteen) for factor in pair)))
            return total
        halves = []
        for lanes in (range(LANES // 2), range(LANES // 2, LANES)):
            pairs = (builder.bitcast(self.lanes(factor, lanes), ir.VectorType(I16, LANES)) for factor in (left, right))
            halves.append(self.call("llvm.x86.avx2.pmadd.wd", half, *pairs))
        both = builder.shuffle_vector(*halves, INTEGERS(list(range(LANES))))
        return builder.add(total, both)


@njit(nogil=True, cache=True)
def _decode(packed: np.ndarray, table: np.ndarray, decoded: np.ndarray) -> None:
    """Decode the residual of a token byte by byte, each to the words that `table` has for it."""
    words = decoded.view(table.dtype)
    if table.shape[1] == 1:  # one byte, one copy
        for byte in range(len(packed)):
            words[byte] = table[packed[byte], 0]
    else:
        for byte in range(len(packed)):
            words[2 * byte], words[2 * byte + 1] = table[packed[byte], 0], table[packed[byte], 1]


@_make_intrinsic
def _dot_products(typing: Any, decoded: Any, row: Any, centroids: Any, code: Any) -> Any:
    """Return the product of a decoded residual and a centroid, and the residual's with itself."""
    pair = types.UniTuple(types.int32, 2)
    return pair(decoded, types.int64, centroids, types.int64), _emit_products


def _emit_products(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    emit = _Emitter(context, builder, signature, arguments)
    _, row, _, code = arguments
    raised = signature.args[0].dtype == types.uint8
    multiply = emit.multiply_bytes if raised else emit.multiply_shorts
    kind = ir.VectorType(I8, VECTOR) if raised else ir.VectorType(I16, VECTOR // 2)
    residual, centroid = emit.row(0, row), emit.row(2, code)
    sums = emit.zeros(2)
    with emit.steps(emit.shape(0, 1), kind.count) as at:
        value = emit.load(kind, residual, builder.mul(at, I64(VECTOR // kind.count)))
        other, size = emit.load(ir.VectorType(I8, kind.count), centroid, at), value
        if raised:  # one factor of a square may have a sign, not both: take the residual's size
            signed = builder.xor(value, kind([-128] * VECTOR))
            negative = builder.sub(kind(None), signed)
            size = builder.select(builder.icmp_signed(">", signed, negative), signed, negative)
        else:
            other = builder.sext(other, kind)
        for total, pair in zip(sums, ((value, other), (size, size)), strict=True):
            left, right = (builder.bitcast(factor, INTEGERS) for factor in pair)
            builder.store(multiply(builder.load(total), left, right), total)
    results = [emit.call("llvm.vector.reduce.add.v16i32", I32, builder.load(total)) for total in sums]
    return context.make_tuple(builder, signature.return_type, results)


@_make_intrinsic
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
        rows = [builder.add(row, I64(first + i)) for i in range(n_rows)]
        for column in range(0, n_blocks, n_columns):
            _emit_tile(emit, rows, [builder.add(block, I64(column + i)) for i in range(n_columns)], raised)
    return builder.add(block, I64(n_blocks))


def _emit_tile(emit: _Emitter, rows: Sequence[ir.Value], blocks: Sequence[ir.Value], raised: bool) -> None:
    builder = emit.builder
    tokens, columns = [emit.row(1, row) for row in rows], [emit.row(3, block) for block in blocks]
    sums = _emit_sums(emit, tokens, columns, emit.shape(3, 1), emit.multiply_bytes if raised else emit.multiply_shorts)
    places = [emit.row(7, emit.load(I64, emit.row(8, row))) for row in rows]
    scales = [emit.splat(emit.load(F32, emit.row(9, row))) for row in rows]
    for block, totals in zip(blocks, zip(*sums, strict=True), strict=True):
        at = builder.mul(block, I64(VECTOR))
        unit, excess = emit.load(FLOATS, emit.row(5, START), at), emit.load(INTEGERS, emit.row(6, START), at)
        best = emit.row(10, START)
        highest = emit.load(FLOATS, best, at)
        for total, place, scale in zip(totals, places, scales, strict=True):
            product = builder.sitofp(builder.sub(total, excess), FLOATS)
            score = builder.fadd(emit.load(FLOATS, place, at), builder.fmul(unit, product))
            score = builder.fmul(score, scale)
            highest = builder.select(builder.fcmp_ordered(">", score, highest), score, highest)
        emit.store(highest, best, at)


def _emit_sums(
    emit: _Emitter, rows: Sequence[ir.Value], columns: Sequence[ir.Value], n_words: ir.Value, multiply: Multiply
) -> list[list[ir.Value]]:
    """Multiply rows of words by columns of vectors; return the sums by row and column."""
    builder = emit.builder
    kind = FLOATS if multiply == emit.multiply_floats else INTEGERS
    sums = [emit.zeros(len(columns), kind) for _ in rows]
    with emit.steps(n_words, 1) as number:
        vectors = [emit.load(kind, column, builder.mul(number, I64(VECTOR))) for column in columns]
        for row, row_sums in zip(rows, sums, strict=True):
            word = emit.splat(emit.load(kind.element, row, builder.mul(number, I64(WORD))))
            for total, vector in zip(row_sums, vectors, strict=True):
                builder.store(multiply(builder.load(total), word, vector), total)
    return [[builder.load(total) for total in row_sums] for row_sums in sums]


@njit(nogil=True, cache=True)
def score_centroids(centroids: np.ndarray, words: np.ndarray, out: np.ndarray) -> None:
    """Multiply centroids, shape (n_centroids, dim), by query tokens, (n_padded / LANES, dim, LANES), all float32.

    The products fill `out`, (n_centroids, n_padded); they do not depend on the processor, nor on how many there are.
    """
    for row in range(0, len(centroids), TILE):
        for block in range(len(words)):
            _multiply_floats(centroids, row, words, block, out)


@_make_intrinsic
def _multiply_floats(typing: Any, centroids: Any, row: Any, words: Any, block: Any, out: Any) -> Any:
    """Write the products of TILE centroids, or those left, and a block of query tokens."""
    return types.void(centroids, types.int64, words, types.int64, out), _emit_float_products


def _emit_float_products(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    emit = _Emitter(context, builder, signature, arguments)
    _, row, _, block, _ = arguments
    last = builder.sub(emit.shape(0, 0), I64(1))
    rows = [builder.add(row, I64(i)) for i in range(TILE)]
    rows = [builder.select(builder.icmp_signed("<", index, last), index, last) for index in rows]
    centroids = [emit.row(0, index) for index in rows]
    sums = _emit_sums(emit, centroids, [emit.row(2, block)], emit.shape(2, 1), emit.multiply_floats)
    for index, (total,) in zip(rows, sums, strict=True):
        emit.store(total, emit.row(4, index), builder.mul(block, I64(VECTOR)))
    return context.get_dummy_value()
