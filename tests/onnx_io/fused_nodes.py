"""Nodes of onnxruntime's own operators, one of each form, with inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from superopt.onnx_io.fused import RUNTIMES

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> NDArray[np.uint8]:
    return RNG.integers(0, 255, shape).astype(np.uint8)


@dataclass(frozen=True)
class Node:
    """One of the runtime's operators with inputs, some of which may be left out."""

    op_type: str
    inputs: tuple[NDArray[Any] | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)
    domain: str = RUNTIMES
    opset: int = 17

    def model(self) -> onnx.ModelProto:
        """A model of this node, whose outputs are not declared."""
        given = {f"i{n}": array for n, array in enumerate(self.inputs) if array is not None}
        names = [f"i{n}" if f"i{n}" in given else "" for n in range(len(self.inputs))]
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in given.items()}
        node = helper.make_node(self.op_type, names, self.outputs, domain=self.domain or None, **self.attributes)
        infos = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in given.items()]
        made = [onnx.ValueInfoProto(name=n) for n in self.outputs if n]
        graph = helper.make_graph([node], "g", infos, made)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(RUNTIMES, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=11)


X, ROW = drawn(2, 3, 8), drawn(8)
HEADS = {"num_heads": 2}
_IDS = RNG.integers(0, 5, (2, 3)).astype(np.int32)
_LENGTHS = np.full((2,), 2, np.int32), np.array(3, np.int32)
_SCALE, _ZERO = np.float32([0.1]).reshape(()), np.array(1, np.uint8)

NODES = {
    "a bias and gelu": Node("BiasGelu", (X, ROW)),
    "gelu by tanh": Node("FastGelu", (X, ROW)),
    "gelu by a sigmoid": Node("QuickGelu", (X,)),
    "gelu": Node("Gelu", (X,)),
    "a sum and its norm": Node("SkipLayerNormalization", (X, X, ROW, ROW, ROW), {}, ("y", "", "", "sum")),
    "a sum and its norm by squares": Node("SkipSimplifiedLayerNormalization", (X, X, ROW), {}, ("y", "", "", "sum")),
    "a norm by squares": Node("SimplifiedLayerNormalization", (X, ROW), {"axis": -1}, domain=""),
    "a norm by squares with a scale of 16 bits": Node(
        "SimplifiedLayerNormalization", (X, ROW.astype(np.float16)), {"axis": -1}, domain=""
    ),
    "a scaled image": Node(
        "ImageScaler", (drawn(1, 2, 3, 3),), {"scale": 0.5, "bias": [0.1, 0.2]}, domain="", opset=9
    ),
    "a scaled softplus": Node("ParametricSoftplus", (X,), {"alpha": 0.5, "beta": 0.1}, domain="", opset=9),
    "words": Node(
        "EmbedLayerNormalization", (_IDS, _IDS, drawn(5, 8), drawn(4, 8), drawn(5, 8), ROW, ROW), {}, ("y", "at")
    ),
    "attention": Node("Attention", (X, drawn(8, 24), drawn(24)), HEADS),
    "attention of narrow values": Node(
        "Attention", (X, drawn(8, 20), drawn(20)), HEADS | {"qkv_hidden_sizes": [8, 8, 4]}
    ),
    "attention of queries": Node("MultiHeadAttention", (X, drawn(2, 5, 8), drawn(2, 5, 6)), HEADS),
    "attention of heads": Node("MultiHeadAttention", (X, drawn(2, 2, 5, 4), drawn(2, 2, 5, 4)), HEADS),
    "attention of groups": Node(
        "GroupQueryAttention", (drawn(2, 3, 32), drawn(2, 3, 16), drawn(2, 3, 16), None, None, *_LENGTHS),
        {"num_heads": 4, "kv_num_heads": 2}, ("y", "k", "v"),
    ),
    "positions": Node(
        "RotaryEmbedding", (drawn(2, 3, 16), _IDS.astype(np.int64), drawn(5, 4), drawn(5, 4)), {"num_heads": 2}
    ),
    "a product": Node("FusedMatMul", (X, drawn(8, 5)), {"alpha": 0.5}),
    "a product with the transposed": Node("FusedMatMul", (X, drawn(5, 8)), {"transB": 1}),
    "a product with four bits": Node(
        "MatMulNBits",
        (drawn(2, 3, 32), _bytes(7, 1, 16), drawn(7, 1)),
        {"K": 32, "N": 7, "bits": 4, "block_size": 32},
    ),
    "a product with eight bits": Node("DynamicQuantizeMatMul", (X, _bytes(8, 5), _SCALE, _ZERO)),
    "a product of eight bits": Node("MatMulIntegerToFloat", (_bytes(2, 3, 8), _bytes(8, 5), _SCALE, _SCALE)),
    "a product of eight bits that has sixteen": Node(
        "MatMulIntegerToFloat", (_bytes(2, 3, 8), _bytes(8, 5), *[_SCALE.astype(np.float16)] * 2)
    ),
    "eight bits": Node("DequantizeLinear", (_bytes(2, 3), _SCALE, _ZERO)),
}  # fmt: skip
