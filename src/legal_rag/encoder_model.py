"""Load the PyLate model behind an encoder, in OpenVINO or torch; refuse code it brings unless allowed."""

import copy
import json
import warnings
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from legal_rag.device import best_device
from legal_rag.folders import write_whole
from legal_rag.model_code import refuse_own_code
from legal_rag.openvino_model import OpenVinoError, convert_into, converted_folder, fingerprint

# What changes the table of tokens, or the texts that a conversion is calibrated on.
TABLE_SETTINGS = ("query_prefix", "document_prefix", "query_length", "document_length")

if TYPE_CHECKING:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer

    from legal_rag.encoder import EncoderConfig


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
