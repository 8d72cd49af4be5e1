"""Encoding speed on the CPU, beside PyLate's own way, and what the speed costs in accuracy.

Run: python benchmarks/encode.py --data FOLDER [--encoder bundled|FOLDER|random-12x768] [--passages 32]

FOLDER holds `decisions.jsonl.gz`; `random-12x768` is a BERT of twelve layers, 768 wide, random weights, documents of
256 tokens, made in a temporary folder. Three ways take turns over the same passages, five times: PyLate as its user
would call it (torch, float32, batches of 32), this project's torch fallback, this project's default. A row gives the
median tokens/s, its ratio to the first row, the mean cosine of its token vectors with the first row's, and the share
of the machine's matrix-product peak (2,048 cubed, in the precision that the row multiplies in) that it reaches,
counting two operations a weight and token and four a layer, unit of width and pair of tokens for attention.
"""

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from legal_rag.encoder import ColbertEncoder, EncoderConfig, build_encoder
from legal_rag.encoder.runtime import multiplies_bfloat16

ROUNDS = 5
SIDE = 2048  # of the square matrices whose product is the machine's peak
PASSAGE_CHARACTERS = 1800
RANDOM = "random-12x768"


class Way(NamedTuple):
    """One way to encode, and the precision in which it multiplies."""

    name: str
    encode: Callable[[list[str]], list[np.ndarray]]
    precision: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="bundled")
    parser.add_argument("--passages", type=int, default=32)
    arguments = parser.parse_args()

    texts = read_texts(arguments.data, arguments.passages)
    with tempfile.TemporaryDirectory() as scratch:
        name, length = arguments.encoder, None
        if name == RANDOM:
            name, length = str(save_random_model(Path(scratch), texts)), 256
            os.environ["LEGAL_RAG_CACHE"] = f"{scratch}/cache"
        torch_way = build_encoder(EncoderConfig(name=name, document_length=length, backend="torch"))
        default = build_encoder(EncoderConfig(name=name, document_length=length))
        lengths = [min(n, default.identity.document_length) for n in default.count_tokens(texts)]
        print(f"{arguments.encoder}: {len(texts)} passages, {sum(lengths)} tokens, {os.cpu_count()} cores,", end=" ")
        print(f"load {os.getloadavg()[0]:.1f}")
        print_table(ways_of(torch_way, default), texts, lengths, operations(torch_way, lengths))


def read_texts(data: Path, n: int) -> list[str]:
    with gzip.open(data / "decisions.jsonl.gz", "rt", encoding="utf-8") as lines:
        contents = (json.loads(line)["content"] for line in lines)
        return [content[:PASSAGE_CHARACTERS] for content in islice(contents, 1000, 1000 + n)]


def ways_of(torch_way: ColbertEncoder, default: ColbertEncoder) -> list[Way]:
    model, prompt = torch_way._model, torch_way._prompts["document"]

    def pylate(texts: list[str]) -> list[np.ndarray]:
        return model.encode(texts, is_query=False, prompt=prompt, batch_size=32, show_progress_bar=False)

    half = "bf16" if multiplies_bfloat16() else "fp32"
    precision = "int8" if default.backend == "openvino" else half
    return [
        Way("PyLate, torch fp32", pylate, "fp32"),
        Way(f"torch, {half}", torch_way.encode_documents, half),
        Way(f"{default.backend}, {precision}", default.encode_documents, precision),
    ]


def print_table(ways: list[Way], texts: list[str], lengths: list[int], work: float) -> None:
    vectors = {way.name: way.encode(texts) for way in ways}  # warm, too
    seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    peaks: dict[str, list[float]] = {"fp32": [], "bf16": [], "int8": []}
    for _ in range(ROUNDS):
        for way in ways:
            seconds[way.name].append(timed(lambda way=way: way.encode(texts)))
        for precision, peak in peaks.items():
            peak.append(2 * SIDE**3 / min(timed(PRODUCTS[precision]) for _ in range(3)))
    print(f"{'':22}{'tokens/s':>10}{'ratio':>8}{'cosine':>9}{'min':>8}{'of peak':>9}")
    first = ways[0].name
    for way in ways:
        ratio = statistics.median(a / b for a, b in zip(seconds[first], seconds[way.name], strict=True))
        median = statistics.median(seconds[way.name])
        cosine = cosines(vectors[way.name], vectors[first])
        share = work / median / statistics.median(peaks[way.precision])
        print(f"{way.name:22}{sum(lengths) / median:10,.0f}{ratio:8.2f}{cosine.mean():9.4f}", end="")
        print(f"{cosine.min():8.3f}{share:9.0%}")
    print("peak, 10^9 operations a second:", end=" ")
    print(", ".join(f"{precision} {statistics.median(peak) / 1e9:,.0f}" for precision, peak in peaks.items()))


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def cosines(found: list[np.ndarray], expected: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([(a * b).sum(axis=1) for a, b in zip(found, expected, strict=True)])


def operations(encoder: ColbertEncoder, lengths: list[int]) -> float:
    """Count a pass's multiplications and additions over texts of these lengths, padding left out."""
    body = encoder._model[0].auto_model
    weights = sum(p.numel() for name, p in body.named_parameters() if p.ndim == 2 and "embeddings" not in name)
    weights += sum(p.numel() for module in list(encoder._model)[1:] for p in module.parameters())
    attention = 4 * body.config.num_hidden_layers * body.config.hidden_size
    return 2.0 * weights * sum(lengths) + attention * sum(length**2 for length in lengths)


def torch_product(dtype: torch.dtype) -> Callable[[], object]:
    matrix = torch.ones(SIDE, SIDE, dtype=dtype)
    return lambda: matrix @ matrix


def int8_product() -> Callable[[], object]:
    """Multiply as a quantised layer does: activations rounded on the way in, weights stored in int8."""
    sys.modules.setdefault("openvino_telemetry", None)
    import openvino
    from openvino import opset13 as ops

    rng = np.random.default_rng(0)
    rows = ops.parameter([SIDE, SIDE], np.float32)

    def rounded(node: object, low: float, high: float) -> object:
        return ops.fake_quantize(node, *(np.float32(limit) for limit in (low, high, low, high)), 256)

    weights = ops.constant(rng.integers(-127, 128, (SIDE, SIDE)).astype(np.int8))
    weights = ops.multiply(ops.convert(weights, np.float32), np.float32(0.01))
    product = ops.matmul(rounded(rows, -1.28, 1.27), weights, False, True)
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(openvino.Model([product], [rows]), "CPU", settings).create_infer_request()
    request.set_input_tensor(openvino.Tensor(rng.standard_normal((SIDE, SIDE)).astype(np.float32)))
    return request.infer


def save_random_model(folder: Path, texts: list[str]) -> Path:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=8000, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **roles).save_pretrained(folder / "bert")
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size())).save_pretrained(folder / "bert")
    ColBERT(str(folder / "bert"), embedding_size=128, document_length=256, device="cpu").save(str(folder / "colbert"))
    return folder / "colbert"


PRODUCTS = {"fp32": torch_product(torch.float32), "bf16": torch_product(torch.bfloat16), "int8": int8_product()}

if __name__ == "__main__":
    main()
