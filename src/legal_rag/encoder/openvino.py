"""Convert an encoder to OpenVINO, quantise it, compile it."""

import contextlib
import hashlib
import json
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legal_rag.encoder.device import n_cores, product_dtype
from legal_rag.files import made_once

if TYPE_CHECKING:
    from pylate.models import ColBERT


CONVERTER_VERSION = 2  # raise it when a conversion gives other files than before
MODEL_FILE = "openvino.xml"
PRECISION = "int8"  # or "f32": nothing quantised, for comparison
CALIBRATION_TEXTS = 32  # of each kind; twice as many passages changed the cosine with float32 by 0.0005
PASSAGE_CHARACTERS = slice(1000, 2400)  # of a decision: past the heading that all have in common
QUESTION_CHARACTERS = slice(300, 380)
# How far the scales of activations are moved into the weights before both are rounded (SmoothQuant's alpha, Xiao
# et al., 2023). nncf's own 0.95 gave a mean cosine with float32 of 0.993 on questions, this one 0.999.
SMOOTHING = 0.75

_one_core = threading.Lock()


class OpenVinoError(RuntimeError):
    """OpenVINO cannot convert or run this model."""


def converted_folder(cache: Path, facts: Sequence[str | int | None]) -> Path:
    """Name the folder for a conversion, whether it exists or not.

    Args:
        cache: The cache folder.
        facts: What the converted model depends on: where its weights come from, and which settings change its table.
    """
    tools = [version(name) for name in ("openvino", "nncf", "transformers")]
    whole = json.dumps([*facts, *tools, CONVERTER_VERSION, PRECISION])
    return cache / "openvino" / hashlib.sha256(whole.encode()).hexdigest()[:32]


def fingerprint(folder: Path) -> str:
    """Hash the names and contents of a model folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def convert_into(target: Path, model: "ColBERT") -> None:
    """Convert `model`, which is of no use afterwards, into the folder `target`.

    The folder appears under its name only when complete, so a killed conversion leaves nothing that could be
    mistaken for a model, and two processes may convert at once.

    Raises:
        OpenVinoError: If the model is not one that OpenVINO takes.
    """
    with made_once(target) as scratch:
        _write(scratch, model)


def n_lanes() -> int:
    """Return how many texts, or groups of texts, are best encoded at once: one a core.

    `OMP_NUM_THREADS` says how many cores a process may take, where it is set.
    """
    return int(os.environ.get("OMP_NUM_THREADS") or n_cores())


def compile_model(path: Path) -> Any:
    """Prepare a converted model for this processor, to answer `n_lanes` calls at once.

    Returns:
        OpenVINO's compiled model, whose requests take arrays `input_ids` and `attention_mask`, give the hidden states,
        and run on one core each.

    Raises:
        OpenVinoError: If the file is damaged, or OpenVINO does not run here.
    """
    import torch

    # What is not int8 is computed in the processor's fastest precision.
    rest = "bf16" if PRECISION == "int8" and product_dtype() == torch.bfloat16 else "f32"
    settings = {"NUM_STREAMS": n_lanes(), "INFERENCE_NUM_THREADS": n_lanes(), "INFERENCE_PRECISION_HINT": rest}
    try:
        with _one_core:
            core = _core()
        return core.compile_model(path, "CPU", settings)
    except (ImportError, RuntimeError) as error:
        raise OpenVinoError(f"OpenVINO does not run {path}: {_first_line(error)}") from error


def _write(folder: Path, model: "ColBERT") -> None:
    from legal_rag.encoder.openvino_module import OpenVinoTransformer

    body = model[0].auto_model
    model[0].__class__ = OpenVinoTransformer  # it is saved without weights, and loaded as this class
    model.save(str(folder), create_model_card=False)
    try:
        converted = _trace(body)
        if PRECISION == "int8":
            with contextlib.redirect_stdout(sys.stderr):  # nncf shows its progress where results belong
                converted = _quantise(converted, list(_calibration_inputs(model)))
        _openvino().save_model(converted, folder / MODEL_FILE, compress_to_fp16=False)
    except Exception as error:  # tracing runs the model's own code, and three libraries over it: anything can come
        raise OpenVinoError(f"OpenVINO cannot convert this encoder: {_first_line(error)}") from error


def _trace(body: Any) -> Any:
    import torch

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body.float()

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    openvino = _openvino()
    names = ("input_ids", "attention_mask")
    example = {name: torch.ones(2, 16, dtype=torch.long) for name in names}
    shapes = [(name, [-1, -1], openvino.Type.i64) for name in names]
    with warnings.catch_warnings(), torch.no_grad(), _root_logger_kept():
        warnings.simplefilter("ignore")  # the tracer's, about branches that do not depend on the input
        return openvino.convert_model(States().eval(), example_input=example, input=shapes)


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what OpenVINO's converter does to the logger of all: it lets nothing below an error through any more."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def _quantise(converted: Any, inputs: list[dict[str, np.ndarray]]) -> Any:
    _openvino()  # first, so that nncf too finds no telemetry
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, AdvancedSmoothQuantParameters

    logging.getLogger("nncf").setLevel(logging.ERROR)  # its own `set_log_level` sets handlers that others put there
    smoothing = AdvancedSmoothQuantParameters(matmul=SMOOTHING)
    return nncf.quantize(
        converted,
        nncf.Dataset(inputs),
        subset_size=len(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        ignored_scope=nncf.IgnoredScope(types=["Gather"], validate=False),
        advanced_parameters=AdvancedQuantizationParameters(smooth_quant_alphas=smoothing),
    )


def _calibration_inputs(model: "ColBERT") -> Iterator[dict[str, np.ndarray]]:
    sample = Path(__file__).parents[1] / "corpus" / "sample" / "decisions.jsonl"
    rows = sample.read_text("utf-8").splitlines()[:CALIBRATION_TEXTS]
    texts = [json.loads(row)["content"] for row in rows]
    for kind, characters in (("document", PASSAGE_CHARACTERS), ("query", QUESTION_CHARACTERS)):
        prompt = model.prompts.get(kind) or ""
        for text in texts:
            found = model.tokenize([prompt + text[characters]], is_query=kind == "query")
            yield {name: found[name].numpy() for name in ("input_ids", "attention_mask")}


@cache
def _core() -> Any:
    # One, which is never let go: on Linux each gives the main thread a stack for signals of its own, and those let go
    # leave one that is no longer there. The next interruption would then end the process.
    return _openvino().Core()


def _openvino() -> Any:
    # Intel's packages report their use over the network unless this one cannot be imported.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
