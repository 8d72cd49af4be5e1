"""Numba kernels of late interaction: MaxSim from packed codes in integers, decompression, packing.

Residuals are decoded to 8-bit integers, a query's tokens are rounded to 8 bits, and their products are summed in 32
bits: exactly, whatever the order. Where the processor has AVX-512 VNNI, one instruction decodes 64 dimensions and one
multiplies them; elsewhere 16-bit arithmetic, which LLVM has for every processor, gives the same sums. The dtype of
`Tables.lookup` decides: uint8 or int16.
"""

from functools import partial
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

FAST = {"reassoc", "contract"}  # sums may be taken in another order; infinities keep their meaning
LANES = 16  # query tokens in a vector
WORD = 4  # bytes of a decoded token that are multiplied in one step
TILE = 8  # tokens whose products are summed in registers
TOKENS = 4 * TILE  # decoded in one go, into the processor's cache
VECTOR = 64  # bytes
I8, I16, I32, I64 = (ir.IntType(n) for n in (8, 16, 32, 64))


class Tables(NamedTuple):
    """A codebook in integers; its dimensions come in the order in which residuals are decoded."""

    lookup: np.ndarray  # residuals: uint8, raised by 128, by bits: (2^bits, to 16); or int16, by byte: (256, 8 / bits)
    n_bits: int
    zero: int  # the residual 0: 128 or 0
    unit: np.float32  # of residuals
    centroids: np.ndarray  # (n_centroids, dim padded to VECTOR), int8
    units: np.ndarray  # (n_centroids,), float32: of a row's numbers
    squares: np.ndarray  # (n_centroids,), float32: the squared lengths
    excess: np.ndarray  # (n_centroids,), int32: what a row's product with a decoded residual is too high by


class Query(NamedTuple):
    """A query in integers; its tokens are padded to a multiple of LANES."""

    n_tokens: int
    words: np.ndarray  # (n_padded / LANES, n_words, LANES, WORD bytes), int8 or int16
    units: np.ndarray  # (n_padded,), float32: of a product
    excess: np.ndarray  # (n_padded,), int32: what a product with a decoded residual is too high by
    centroid_scores: np.ndarray  # (n_centroids, n_padded), float32


def has_vnni() -> bool:
    """Tell whether this processor has AVX-512 VNNI."""
    features = llvm.get_host_cpu_features()
    return all(features.get(name, False) for name in ("avx512f", "avx512bw", "avx512vnni"))


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
        query: The query, for the same codebook and dtype.
        out: Shape (n_passages,), float32, filled with scores.

    Returns:
        Whether all centroids exist.
    """
    n_blocks = len(query.words)
    best = np.empty(n_blocks * LANES, dtype=np.float32)
    decoded = np.full((TOKENS, tables.centroids.shape[1]), tables.zero, dtype=tables.lookup.dtype)
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
                rows[t] = code
                _decode(residuals, token, tables.lookup, tables.n_bits, decoded, t)
                products, squares = _products(decoded, t, tables.centroids, code)
                scales[t] = _scale(tables, code, products, squares)
            for t in range(0, n_tokens, TILE):
                for block in range(0, n_blocks - 1, 2):
                    _score_two_blocks(decoded, t, query, block, rows, scales, best)
                if n_blocks % 2:
                    _score_block(decoded, t, query, n_blocks - 1, rows, scales, best)
        total = np.float32(0.0)
        for q in range(query.n_tokens):
            total += best[q]
        out[passage] = total
    return True


@njit(nogil=True, cache=True)
def _scale(tables: Tables, code: int, products: int, squares: int) -> np.float32:
    """Return what brings a token to unit length, from its residual's products with its centroid and with itself."""
    cross = np.float32(2.0) * tables.units[code] * np.float32(products - tables.excess[code])
    square = tables.squares[code] + tables.unit * (cross + tables.unit * np.float32(squares))
    return np.float32(1.0) / max(np.sqrt(square), np.float32(1e-12))


def _decode(*_: Any) -> None:
    """Write the residual of a token into a row of `decoded`."""


@overload(_decode, strict=False)
def _decode_either_way(
    residuals: Any, token: Any, lookup: Any, n_bits: Any, decoded: Any, row: Any
) -> Any:
    if lookup.dtype == types.uint8:
        return lambda residuals, token, lookup, n_bits, decoded, row: _decode_vectors(
            residuals, token, lookup, n_bits, decoded, row
        )

    def decode(residuals: Any, token: Any, lookup: Any, n_bits: Any, decoded: Any, row: Any) -> None:
        pairs, packed, unpacked = lookup.view(np.int32), residuals[token], decoded[row].view(np.int32)
        n_pairs = pairs.shape[1]
        for byte in range(len(packed)):
            for pair in range(n_pairs):
                unpacked[byte * n_pairs + pair] = pairs[packed[byte], pair]

    return decode


def _products(*_: Any) -> tuple[int, int]:
    """Return the product of a decoded residual with its centroid, and its square."""
    raise NotImplementedError


@overload(_products, strict=False)
def _products_either_way(decoded: Any, row: Any, centroids: Any, code: Any) -> Any:
    if decoded.dtype == types.uint8:
        return lambda decoded, row, centroids, code: _product_vectors(decoded, row, centroids, code)

    def products(decoded: Any, row: Any, centroids: Any, code: Any) -> tuple[int, int]:
        residual, centroid = decoded[row], centroids[code]
        product = square = np.int32(0)
        for d in range(len(residual)):
            product += np.int32(residual[d]) * np.int32(centroid[d])
            square += np.int32(residual[d]) * np.int32(residual[d])
        return product, square

    return products


@njit(nogil=True, cache=True)
def _score_block(
    decoded: np.ndarray, row: int, query: Query, block: int, rows: np.ndarray, scales: np.ndarray, best: np.ndarray
) -> None:
    _score_1(decoded, row, query.words, block, query.units, query.excess, query.centroid_scores, rows, scales, best)


@njit(nogil=True, cache=True)
def _score_two_blocks(
    decoded: np.ndarray, row: int, query: Query, block: int, rows: np.ndarray, scales: np.ndarray, best: np.ndarray
) -> None:
    _score_2(decoded, row, query.words, block, query.units, query.excess, query.centroid_scores, rows, scales, best)


class _Emitter:
    """LLVM instructions that Python cannot spell, for the arguments of one intrinsic."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any) -> None:
        self.context, self.builder, self.signature = context, builder, signature

    def row(self, number: int, array: Any, index: ir.Value | None = None) -> ir.Value:
        """Return the address of a row of the array that is the intrinsic's argument `number`; of all if no index."""
        struct = self.context.make_array(self.signature.args[number])(self.context, self.builder, array)
        address = self.builder.bitcast(struct.data, I8.as_pointer())
        if index is None:
            return address
        stride = cgutils.unpack_tuple(self.builder, struct.strides)[0]
        return self.builder.gep(address, [self.builder.mul(index, stride)])

    def length(self, number: int, array: Any, axis: int) -> ir.Value:
        struct = self.context.make_array(self.signature.args[number])(self.context, self.builder, array)
        return cgutils.unpack_tuple(self.builder, struct.shape)[axis]

    def at(self, address: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
        """Return the address of a number or vector, `offset` bytes on."""
        return self.builder.bitcast(self.builder.gep(address, [offset]), kind.as_pointer())

    def load(self, address: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
        return self.builder.load(self.at(address, offset, kind), align=1)

    def store(self, value: ir.Value, address: ir.Value, offset: ir.Value) -> None:
        self.builder.store(value, self.at(address, offset, value.type), align=1)

    def splat(self, value: ir.Value, n: int) -> ir.Value:
        """Return a vector with `value` in all lanes."""
        one = self.builder.insert_element(ir.VectorType(value.type, n)(ir.Undefined), value, I32(0))
        return self.builder.shuffle_vector(one, one, ir.VectorType(I32, n)([0] * n))

    def call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Call an LLVM intrinsic."""
        kind = ir.FunctionType(result, [one.type for one in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def multiply_bytes(self, total: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
        """Add to each lane of `total` the sum of four products of bytes."""
        return self.call("llvm.x86.avx512.vpdpbusd.512", total.type, total, unsigned, signed)

    def multiply_shorts(self, total: ir.Value, some: ir.Value, others: ir.Value) -> ir.Value:
        """Add to each lane of `total` the sum of two products of 16-bit integers."""
        builder, pairs = self.builder, ir.VectorType(I16, 2 * LANES)
        some, others = builder.bitcast(some, pairs), builder.bitcast(others, pairs)
        for parity in (0, 1):
            lanes = ir.VectorType(I32, LANES)([2 * lane + parity for lane in range(LANES)])
            wide = [builder.sext(builder.shuffle_vector(one, one, lanes), total.type) for one in (some, others)]
            product = builder.mul(*wide)
            both = product if parity == 0 else builder.add(both, product)
        return builder.add(total, both)


def _emit_scores(n_blocks: int, context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    """Multiply TILE tokens with `n_blocks` blocks of query tokens, and raise these tokens' best scores."""
    decoded, row, words, block, units, excess, centroid_scores, rows, scales, best = arguments
    emit = _Emitter(context, builder, signature)
    is_bytes = signature.args[0].dtype == types.uint8
    multiply = emit.multiply_bytes if is_bytes else emit.multiply_shorts
    # As many sums as there are registers: of 512 bits, or of 256.
    n_rows, n_columns = (TILE, n_blocks) if is_bytes else (TILE // 2, 1)
    n_words = emit.length(2, words, 1)
    for first_row in range(0, TILE, n_rows):
        for column in range(0, n_blocks, n_columns):
            _emit_tile(emit, multiply, arguments, n_words, first_row, n_rows, column, n_columns)
    return context.get_dummy_value()


def _emit_tile(
    emit: _Emitter,
    multiply: Any,
    arguments: Any,
    n_words: ir.Value,
    first_row: int,
    n_rows: int,
    first_column: int,
    n_columns: int,
) -> None:
    decoded, row, words, block, units, excess, centroid_scores, rows, scales, best = arguments
    builder, sums = emit.builder, ir.VectorType(I32, LANES)
    floats = ir.VectorType(ir.FloatType(), LANES)
    numbers = [builder.add(row, I64(first_row + i)) for i in range(n_rows)]
    blocks = [builder.add(block, I64(first_column + j)) for j in range(n_columns)]
    tokens = [emit.row(0, decoded, number) for number in numbers]
    columns = [emit.row(2, words, number) for number in blocks]
    totals = [[cgutils.alloca_once(builder, sums) for _ in blocks] for _ in tokens]
    for one in sum(totals, []):
        builder.store(sums(None), one)
    with cgutils.for_range(builder, n_words) as loop:
        query = [emit.load(column, builder.mul(loop.index, I64(VECTOR)), sums) for column in columns]
        for token, own in zip(tokens, totals, strict=True):
            word = emit.splat(emit.load(token, builder.mul(loop.index, I64(WORD)), I32), LANES)
            for total, values in zip(own, query, strict=True):
                builder.store(multiply(builder.load(total), word, values), total)
    places = [emit.load(emit.row(7, rows), builder.mul(number, I64(8)), I64) for number in numbers]
    factors = [
        emit.splat(emit.load(emit.row(8, scales), builder.mul(number, I64(4)), ir.FloatType()), LANES)
        for number in numbers
    ]
    for j, number in enumerate(blocks):
        at = builder.mul(number, I64(VECTOR))
        unit, high = emit.load(emit.row(4, units), at, floats), emit.load(emit.row(5, excess), at, sums)
        highest = emit.load(emit.row(9, best), at, floats)
        for i in range(n_rows):
            product = builder.sitofp(builder.sub(builder.load(totals[i][j]), high), floats)
            centroid_score = emit.load(emit.row(6, centroid_scores, places[i]), at, floats)
            score = builder.fmul(builder.fadd(centroid_score, builder.fmul(unit, product)), factors[i])
            highest = builder.select(builder.fcmp_ordered(">", score, highest), score, highest)
        emit.store(highest, emit.row(9, best), at)


def _score(n_blocks: int, *arguments: Any) -> Any:
    decoded, _, words, _, *rest = arguments
    signature = types.void(decoded, types.int64, words, types.int64, *rest)
    return signature, partial(_emit_scores, n_blocks)


@intrinsic
def _score_1(
    typing: Any, decoded: Any, row: Any, words: Any, block: Any, units: Any, excess: Any, scores: Any, rows: Any,
    scales: Any, best: Any,
) -> Any:
    return _score(1, decoded, row, words, block, units, excess, scores, rows, scales, best)


@intrinsic
def _score_2(
    typing: Any, decoded: Any, row: Any, words: Any, block: Any, units: Any, excess: Any, scores: Any, rows: Any,
    scales: Any, best: Any,
) -> Any:
    return _score(2, decoded, row, words, block, units, excess, scores, rows, scales, best)


@intrinsic
def _decode_vectors(
    typing: Any, residuals: Any, token: Any, lookup: Any, n_bits: Any, decoded: Any, row: Any
) -> Any:
    def emit_decoding(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        residuals, token, lookup, n_bits, decoded, row = arguments
        emit = _Emitter(context, builder, signature)
        source, target, table = emit.row(0, residuals, token), emit.row(4, decoded, row), emit.row(2, lookup)
        width, start = emit.length(0, residuals, 1), I64(0)
        mask = builder.trunc(builder.sub(builder.shl(I64(1), n_bits), I64(1)), I8)
        for size in (VECTOR, 16, 1):
            end = builder.sub(width, builder.urem(width, I64(size)))
            with cgutils.for_range_slice(builder, start, end, I64(size), I64) as (byte, _):
                packed = emit.load(source, byte, ir.VectorType(I8, size))
                with cgutils.for_range_slice(builder, I64(0), I64(8), n_bits, I64) as (shift, _):
                    plane = builder.udiv(shift, n_bits)
                    bits = builder.and_(_shifted(emit, packed, shift, size), emit.splat(mask, size))
                    at = builder.add(builder.mul(plane, width), byte)
                    emit.store(_looked_up(emit, table, bits, size), target, at)
            start = end
        return context.get_dummy_value()

    return types.void(residuals, types.int64, lookup, types.int64, decoded, types.int64), emit_decoding


def _shifted(emit: _Emitter, packed: ir.Value, shift: ir.Value, size: int) -> ir.Value:
    """Shift bytes to the right; what comes in from the next byte is for the caller to mask."""
    builder = emit.builder
    if size == 1:
        return builder.lshr(packed, emit.splat(builder.trunc(shift, I8), 1))
    wide = builder.bitcast(packed, ir.VectorType(I32, size // 4))
    return builder.bitcast(builder.lshr(wide, emit.splat(builder.trunc(shift, I32), size // 4)), packed.type)


def _looked_up(emit: _Emitter, table: ir.Value, places: ir.Value, size: int) -> ir.Value:
    builder = emit.builder
    if size == 1:
        place = builder.zext(builder.extract_element(places, I32(0)), I64)
        return emit.load(table, place, places.type)
    held = emit.load(table, I64(0), ir.VectorType(I8, 16))
    lanes = ir.VectorType(I32, size)([lane % 16 for lane in range(size)])
    name = {16: "llvm.x86.ssse3.pshuf.b.128", VECTOR: "llvm.x86.avx512.pshuf.b.512"}[size]
    return emit.call(name, places.type, builder.shuffle_vector(held, held, lanes), places)


@intrinsic
def _product_vectors(typing: Any, decoded: Any, row: Any, centroids: Any, code: Any) -> Any:
    def emit_products(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        decoded, row, centroids, code = arguments
        emit, sums, vector = _Emitter(context, builder, signature), ir.VectorType(I32, LANES), ir.VectorType(I8, VECTOR)
        residual, centroid = emit.row(0, decoded, row), emit.row(2, centroids, code)
        totals = [cgutils.alloca_once(builder, sums) for _ in range(2)]
        for total in totals:
            builder.store(sums(None), total)
        with cgutils.for_range_slice(builder, I64(0), emit.length(0, decoded, 1), I64(VECTOR), I64) as (at, _):
            raised = emit.load(residual, at, vector)
            value = builder.xor(raised, vector([-128] * VECTOR))
            negative = builder.sub(vector(None), value)
            size = builder.select(builder.icmp_signed(">", value, negative), value, negative)
            size, raised = builder.bitcast(size, sums), builder.bitcast(raised, sums)
            for total, pair in zip(totals, ((raised, emit.load(centroid, at, sums)), (size, size)), strict=True):
                builder.store(emit.multiply_bytes(builder.load(total), *pair), total)
        values = [emit.call("llvm.vector.reduce.add.v16i32", I32, builder.load(total)) for total in totals]
        return context.make_tuple(builder, signature.return_type, values)

    result = types.UniTuple(types.int32, 2)
    return result(decoded, types.int64, centroids, types.int64), emit_products


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
def argmax_rows(products: np.ndarray, out: np.ndarray) -> None:
    """Find the place of each row's highest value, the first among equals.

    Floats compare as the integers of the same bits do, unless both are negative; and integers compare many at a time.

    Args:
        products: Shape (n_rows, n_columns): finite floats, seen as integers of their width.
        out: Shape (n_rows,), int32, filled with column numbers.
    """
    for i in range(len(products)):
        row = products[i]
        best = row[0]
        for value in row:
            best = max(best, value)
        if best < 0:  # all are negative: the nearest to zero is the lowest integer
            for value in row:
                best = min(best, value)
        for j in range(len(row)):
            if row[j] == best:
                out[i] = j
                break


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
