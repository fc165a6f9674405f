"""Operators that onnxruntime's tools fuse others into are read as what they mean, and come back as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from numpy.typing import NDArray
from onnx import helper

from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import Program, load, rewritten, understand
from superopt.term import variables
from tests.onnx_io.fused_nodes import HEADS, NODES, ROW, Node, X, drawn
from tests.onnx_io.models import terms
from tests.onnx_io.networks import run

SMALL = 1e-6 * X
MAP, KERNEL, BIAS = drawn(2, 3, 5, 5), drawn(4, 3, 3, 3), drawn(4)
PADS = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}

READ = {
    **{name: NODES[name] for name in (
        "a bias and gelu", "gelu by tanh", "gelu by a sigmoid", "gelu", "a sum and its norm",
        "a sum and its norm by squares", "a norm by squares", "attention", "attention of queries", "a product",
        "a product with the transposed",
    )},
    "a sum of small numbers and its norm": Node("SkipLayerNormalization", (SMALL, SMALL, ROW)),
    "a sum with what is broadcast": Node("SkipLayerNormalization", (X, drawn(1, 3, 8), ROW, ROW)),
    "a sum with rows": Node("SkipLayerNormalization", (X, drawn(3, 8), ROW, None, ROW), {"epsilon": 0.1}),
    "a sum of small numbers and its norm by squares": Node(
        "SkipSimplifiedLayerNormalization", (SMALL, SMALL, ROW, ROW)
    ),
    "a norm by squares of small numbers": Node("SimplifiedLayerNormalization", (1000 * SMALL, ROW), domain=""),
    "gelu by tanh without a bias": Node("FastGelu", (X,)),
    "gelu by a sigmoid of another slope": Node("QuickGelu", (X,), {"alpha": 0.5}),
    "a scaled product of the transposed": Node("FusedMatMul", (drawn(2, 8, 3), drawn(2, 5, 8)),
        {"transA": 1, "transB": 1, "alpha": -2.0}),
    "attention with a scale and narrow values": Node(
        "Attention", (X, drawn(8, 20), drawn(20)), HEADS | {"qkv_hidden_sizes": [8, 8, 4], "scale": 0.3}
    ),
    "attention without a bias": Node("Attention", (X, drawn(8, 24)), HEADS),
    "attention with something added": Node(
        "Attention", (X, drawn(8, 24), drawn(24), None, None, drawn(1, 2, 3, 3)), HEADS
    ),
    "attention of queries with biases": Node(
        "MultiHeadAttention", (X, drawn(2, 5, 8), drawn(2, 5, 8), drawn(24)), HEADS | {"scale": 0.7}
    ),
    "attention of queries with something added": Node(
        "MultiHeadAttention", (X, drawn(2, 5, 8), drawn(2, 5, 6), None, None, drawn(2, 2, 3, 5)), HEADS
    ),
    "a convolution": Node("FusedConv", (MAP, KERNEL), PADS | {"activation": "Relu"}),
    "a convolution and a map": Node(
        "FusedConv", (MAP, KERNEL, BIAS, drawn(2, 4, 5, 5)), PADS | {"activation": "Relu"}
    ),
    **{
        f"a convolution and {name}": Node(
            "FusedConv", (MAP, KERNEL, BIAS), PADS | {"activation": name} | ({"activation_params": n} if n else {})
        )
        for name, n in (
            ("Tanh", ()), ("Sigmoid", ()), ("LeakyRelu", (0.3,)), ("Clip", (-0.5, 0.4)), ("HardSigmoid", (0.3, 0.4))
        )
    },
    "a linear layer": Node(
        "FusedGemm", (drawn(3, 8), drawn(5, 8), drawn(5)),
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1, "alpha": 0.5},
    ),
}  # fmt: skip


def declared(node: Node) -> tuple[onnx.ModelProto, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The node's model with its outputs declared, what it is given and what it gives."""
    source = node.model()
    given = {f"i{n}": array for n, array in enumerate(node.inputs) if array is not None}
    made = dict(zip((n for n in node.outputs if n), run(source, given), strict=True))
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in made.items()}
    del source.graph.output[:]
    source.graph.output.extend(helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in made.items())
    return source, given, made


def valued(program: Program, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]]:
    """The values of the program's outputs, in 64-bit floats."""
    found = {}
    for name, term in terms(program).items():
        leaves = {v: given[v.label] if v.label in given else program.data(v.label) for v in variables(term)}
        found[name] = evaluate(term, FLOAT, {v: a.astype(np.float64) for v, a in leaves.items()})
    return found


@pytest.mark.parametrize("node", READ.values(), ids=READ)
def test_a_fused_node_is_read_as_what_the_runtime_computes(node: Node) -> None:
    source, given, made = declared(node)
    program = understand(load(source))
    assert program.summary.opaque == {}
    found = valued(program, given)
    for name in made:
        np.testing.assert_allclose(found[name], made[name], rtol=1e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("node", READ.values(), ids=READ)
def test_a_fused_node_of_which_nothing_is_rewritten_stays(node: Node) -> None:
    source, _, _ = declared(node)
    made = ir.to_proto(rewritten(understand(load(source)), {}, {}))
    assert list(made.graph.node) == list(source.graph.node)


@pytest.mark.parametrize("node", READ.values(), ids=READ)
def test_a_fused_node_that_is_written_anew_computes_what_the_runtime_does(node: Node) -> None:
    source, given, made = declared(replace(node, opset=23))
    program = understand(load(source))
    written = rewritten(program, terms(program), {})
    assert all(n.domain == "" for n in written.graph)
    for (name, expected), found in zip(made.items(), run(ir.to_proto(written), given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5, err_msg=name)


OPAQUE = {
    "a look ahead": Node("MultiHeadAttention", (X, X, X), HEADS | {"unidirectional": 1}),
    "lengths": Node("MultiHeadAttention", (X, X, X, None, np.int32([3, 2])), HEADS),
    "a mask": Node("Attention", (X, drawn(8, 24), drawn(24), np.int32([[1, 1, 1], [1, 1, 0]])), HEADS),
    "queries with an axis for heads": Node("MultiHeadAttention", (X, drawn(2, 2, 5, 4), drawn(2, 2, 5, 4)), HEADS),
    "a transposed matrix and a vector": Node("FusedMatMul", (drawn(3, 3), drawn(3)), {"transA": 1}),
    "batches that are transposed": Node("FusedMatMul", (drawn(3, 2, 8), drawn(2, 8, 5)), {"transBatchA": 1}),
}


@pytest.mark.parametrize("node", OPAQUE.values(), ids=OPAQUE)
def test_a_fused_node_that_means_more_is_carried_through(node: Node) -> None:
    source, _, _ = declared(node)
    assert understand(load(source)).summary.opaque


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_a_sum_that_is_larger_than_its_first_input_is_carried_through(kind: str) -> None:
    node = Node(kind, (drawn(1, 3, 8), drawn(2, 3, 8), ROW))
    source, _, made = declared(node)
    assert made["y"].shape == (1, 3, 8)
    source.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "B"
    program = understand(load(source))
    assert set(program.summary.opaque) == {kind}
    assert program.values["y"].shape == (1, 3, 8)
