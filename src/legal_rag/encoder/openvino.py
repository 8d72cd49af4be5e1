"""Convert an encoder's transformer to OpenVINO, quantised to int8."""

import contextlib
import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legal_rag.encoder import runtime
from legal_rag.encoder.runtime import MODEL_FILE, OpenVinoError, first_line, import_openvino
from legal_rag.files import made_once, sha256_of

if TYPE_CHECKING:
    from pylate.models import ColBERT


CONVERTER_VERSION = 2  # raise it when the converted files change: older conversions are then ignored
CALIBRATION_TEXTS = 32  # of each kind; twice as many passages changed the cosine with float32 by 0.0005
PASSAGE_CHARACTERS = slice(1000, 2400)  # of a decision: past the heading that all have in common
QUESTION_CHARACTERS = slice(300, 380)
# Share of the activations' scale moved into the weights before both are rounded (SmoothQuant's alpha, Xiao et al.,
# 2023). nncf's own 0.95 gave a mean cosine with float32 of 0.993 on questions, this one 0.999.
SMOOTHING = 0.75


def converted_folder(cache: Path, facts: Sequence[str | int | None]) -> Path:
    """Return the cache folder of a conversion, which need not exist.

    `facts` are what it depends on: the source of the weights, and settings that change the token table.
    """
    tools = [version(name) for name in ("openvino", "nncf", "transformers")]
    whole = json.dumps([*facts, *tools, CONVERTER_VERSION, runtime.PRECISION])
    return cache / "openvino" / hashlib.sha256(whole.encode()).hexdigest()[:32]


def fingerprint(folder: Path) -> str:
    """Hash the names and contents of a model folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{sha256_of(path)}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def convert_into(target: Path, model: "ColBERT") -> None:
    """Convert `model`, which is unusable afterwards, into the folder `target`, which appears only when complete.

    Raises:
        OpenVinoError: If OpenVINO cannot convert the model.
    """
    with made_once(target) as scratch:
        _write(scratch, model)


def _write(folder: Path, model: "ColBERT") -> None:
    from legal_rag.encoder.openvino_module import OpenVinoTransformer

    body = model[0].auto_model
    model[0].__class__ = OpenVinoTransformer  # saved without weights, loaded as this class
    model.save(str(folder), create_model_card=False)
    try:
        converted = _trace(body)
        if runtime.PRECISION == "int8":
            with contextlib.redirect_stdout(sys.stderr):  # nncf shows its progress where results belong
                converted = _quantise(converted, list(_calibration_inputs(model)))
        import_openvino().save_model(converted, folder / MODEL_FILE, compress_to_fp16=False)
    except Exception as error:  # tracing runs the model's own code and three libraries: anything can come
        raise OpenVinoError(f"OpenVINO cannot convert this encoder: {first_line(error)}") from error


def _trace(body: Any) -> Any:
    import torch

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body.float()

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    openvino = import_openvino()
    names = ("input_ids", "attention_mask")
    example = {name: torch.ones(2, 16, dtype=torch.long) for name in names}
    shapes = [(name, [-1, -1], openvino.Type.i64) for name in names]
    with warnings.catch_warnings(), torch.no_grad(), _root_logger_kept():
        warnings.simplefilter("ignore")  # the tracer's, about branches that do not depend on the input
        return openvino.convert_model(States().eval(), example_input=example, input=shapes)


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Restore the root logger, which OpenVINO's converter limits to errors."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def _quantise(converted: Any, inputs: list[dict[str, np.ndarray]]) -> Any:
    import_openvino()  # before nncf, which would load the telemetry
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, AdvancedSmoothQuantParameters

    logging.getLogger("nncf").setLevel(logging.ERROR)  # `nncf.set_log_level` touches others' handlers
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
