"""Behind the operators that onnxruntime's own tools write, models are understood: their types are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import helper

from superopt.dim import symbol
from superopt.onnx_io import load, rewritten, understand
from superopt.onnx_io.fused import RUNTIMES, fused
from superopt.term import Type
from tests.onnx_io.models import terms
from tests.onnx_io.networks import run

_RNG = np.random.default_rng(0)


def _drawn(*shape: int) -> NDArray[np.float32]:
    return _RNG.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> NDArray[np.uint8]:
    return _RNG.integers(0, 255, shape).astype(np.uint8)


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
        node = helper.make_node(self.op_type, names, self.outputs, domain=self.domain, **self.attributes)
        infos = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in given.items()]
        made = [onnx.ValueInfoProto(name=n) for n in self.outputs if n]
        graph = helper.make_graph([node], "g", infos, made)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(RUNTIMES, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


X, ROW = _drawn(2, 3, 8), _drawn(8)
HEADS = {"num_heads": 2}
_IDS = _RNG.integers(0, 5, (2, 3)).astype(np.int32)
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
    "a scaled image": Node(
        "ImageScaler", (_drawn(1, 2, 3, 3),), {"scale": 0.5, "bias": [0.1, 0.2]}, domain="", opset=9
    ),
    "a scaled softplus": Node("ParametricSoftplus", (X,), {"alpha": 0.5, "beta": 0.1}, domain="", opset=9),
    "words": Node(
        "EmbedLayerNormalization", (_IDS, _IDS, _drawn(5, 8), _drawn(4, 8), _drawn(5, 8), ROW, ROW), {}, ("y", "at")
    ),
    "attention": Node("Attention", (X, _drawn(8, 24), _drawn(24)), HEADS),
    "attention of narrow values": Node(
        "Attention", (X, _drawn(8, 20), _drawn(20)), HEADS | {"qkv_hidden_sizes": [8, 8, 4]}
    ),
    "attention of queries": Node("MultiHeadAttention", (X, _drawn(2, 5, 8), _drawn(2, 5, 6)), HEADS),
    "attention of heads": Node("MultiHeadAttention", (X, _drawn(2, 2, 5, 4), _drawn(2, 2, 5, 4)), HEADS),
    "attention of groups": Node(
        "GroupQueryAttention", (_drawn(2, 3, 32), _drawn(2, 3, 16), _drawn(2, 3, 16), None, None, *_LENGTHS),
        {"num_heads": 4, "kv_num_heads": 2}, ("y", "k", "v"),
    ),
    "positions": Node(
        "RotaryEmbedding", (_drawn(2, 3, 16), _IDS.astype(np.int64), _drawn(5, 4), _drawn(5, 4)), {"num_heads": 2}
    ),
    "a product": Node("FusedMatMul", (X, _drawn(8, 5)), {"alpha": 0.5}),
    "a product with the transposed": Node("FusedMatMul", (X, _drawn(5, 8)), {"transB": 1}),
    "a product with four bits": Node(
        "MatMulNBits",
        (_drawn(2, 3, 32), _bytes(7, 1, 16), _drawn(7, 1)),
        {"K": 32, "N": 7, "bits": 4, "block_size": 32},
    ),
    "a product with eight bits": Node("DynamicQuantizeMatMul", (X, _bytes(8, 5), _SCALE, _ZERO)),
    "a product of eight bits": Node("MatMulIntegerToFloat", (_bytes(2, 3, 8), _bytes(8, 5), _SCALE, _SCALE)),
    "eight bits": Node("DequantizeLinear", (_bytes(2, 3), _SCALE, _ZERO)),
}  # fmt: skip


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_what_is_told_of_a_fused_node_is_what_the_runtime_gives(node: Node) -> None:
    types = [None if i is None else Type(i.dtype.name, i.shape) for i in node.inputs]
    told = fused(ir.from_proto(node.model().graph.node[0]), types)
    given = {f"i{n}": array for n, array in enumerate(node.inputs) if array is not None}
    found = dict(zip((n for n in node.outputs if n), run(node.model(), given), strict=True))
    assert "y" in told
    assert told == {n: (found[n].dtype.name, found[n].shape) for n in told}


def test_a_fused_node_with_an_unknown_input_tells_nothing_that_depends_on_it() -> None:
    x = Type("float32", (symbol("B"), symbol("S"), 8))
    nodes = {name: ir.from_proto(node.model().graph.node[0]) for name, node in NODES.items()}
    assert fused(nodes["a product"], [x, None]) == {}
    assert fused(nodes["a bias and gelu"], [None, x]) == {}
    assert fused(nodes["a bias and gelu"], [x, None]) == {"y": ("float32", x.shape)}


def test_a_packed_query_of_groups_tells_nothing() -> None:
    node = helper.make_node("GroupQueryAttention", ["x", "", ""], ["y"], domain=RUNTIMES, num_heads=4, kv_num_heads=2)
    assert fused(ir.from_proto(node), [Type("float32", (2, 3, 64)), None, None]) == {}


def test_products_behind_a_fused_norm_are_understood() -> None:
    nodes = [
        helper.make_node("SkipLayerNormalization", ["x", "x", "s", "s"], ["n"], domain=RUNTIMES),
        helper.make_node("MatMul", ["n", "w"], ["m"]),
        helper.make_node("Add", ["m", "s"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["B", "S", 8]) for n in ("x", "y")]
    weights = [onnx.numpy_helper.from_array(a, n) for n, a in (("s", _drawn(8)), ("w", _drawn(8, 8)))]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(RUNTIMES, 1)]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
    source = helper.make_model(graph, opset_imports=imports, ir_version=8)
    program = understand(load(source))
    assert set(program.summary.opaque) == {"SkipLayerNormalization"}
    assert [str(d) for d in program.values["y"].shape] == ["B", "S", "8"]
    made = rewritten(program, terms(program), {})
    given = {"x": _drawn(2, 3, 8)}
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(source, given)[0])
