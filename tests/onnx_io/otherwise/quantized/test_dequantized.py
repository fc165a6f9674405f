"""Weights that are quantized alone are held as the numbers that they stand for."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import run

KINDS: dict[str, tuple[int, dict[str, int]]] = {
    "8 bits": (TensorProto.INT8, {"axis": 1}),
    "8 bits without a sign": (TensorProto.UINT8, {"axis": 1}),
    "4 bits": (TensorProto.INT4, {"axis": 1}),
    "4 bits without a sign, in blocks": (TensorProto.UINT4, {"axis": 0, "block_size": 2}),
    "floating-point numbers of 8 bits": (TensorProto.FLOAT8E4M3FN, {"axis": 1}),
}


def layer(
    kind: int, attributes: dict[str, int], before: str = "", shown: bool = False, added: bool = True
) -> onnx.ModelProto:
    """A product with a matrix of 4 by 3 whose numbers are made of a type of few bits."""
    rng = np.random.default_rng(0)
    scale = rng.random((2, 3) if attributes.get("block_size") else 3).astype(np.float32)
    numbers: list[Any] = rng.integers(0, 7, 12).tolist()
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["w"], **attributes),
        helper.make_node("MatMul", [before or "x", "w"], ["m"]),
        helper.make_node("Add" if added else "Mul", ["m", "one"], ["y"]),
    ]
    if before:
        nodes.insert(0, helper.make_node("DequantizeLinear", ["b", "one"], [before]))
        nodes.insert(0, helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["b"]))
    weights = [helper.make_tensor("q", kind, (4, 3), numbers), numpy_helper.from_array(scale, "s")]
    weights += [numpy_helper.from_array(a, n) for n, a in (("one", np.float32(0.5)), ("zero", np.uint8(3)))]
    shapes = {"x": (2, 4), "y": (2, 3), "w": (4, 3)}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1 : 3 if shown else 2], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def kinds(source: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """A model as it is read, and the operators that it has then."""
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    return made, [node.op_type for node in made.graph.node]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_numbers_of_quantized_weights_are_held(kind: tuple[int, dict[str, int]]) -> None:
    source = layer(*kind)
    made, found = kinds(source)
    assert found == ["MatMul", "Add"]
    assert {"q", "s"}.isdisjoint(i.name for i in made.graph.initializer)
    given = {"x": np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(made, given)[0], run(source, given)[0], rtol=1e-6, atol=1e-6)


def test_where_values_are_quantized_too_weights_stay_so() -> None:
    source = layer(*KINDS["8 bits"], before="a")
    assert kinds(source)[1] == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul", "Add"]


@pytest.mark.parametrize(("kind", "held"), list(zip(KINDS.values(), [False] * 4 + [True], strict=True)), ids=KINDS)
def test_integers_by_which_the_runtime_multiplies_stay(kind: tuple[int, dict[str, int]], held: bool) -> None:
    """It does so where no Gemm takes their place; of floating-point numbers of 8 bits it makes others."""
    assert kinds(layer(*kind, added=False))[1] == ([] if held else ["DequantizeLinear"]) + ["MatMul", "Mul"]


def test_numbers_that_are_an_output_are_made_as_before() -> None:
    assert kinds(layer(*KINDS["8 bits"], shown=True))[1] == ["DequantizeLinear", "MatMul", "Add"]


def test_weights_that_would_take_much_stay_quantized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("superopt.onnx_io.otherwise.quantized.dequantized"), "MOST_BYTES", 4 * 12 - 1)
    assert kinds(layer(*KINDS["4 bits"]))[1] == ["DequantizeLinear", "MatMul", "Add"]


def mixed(*between: onnx.NodeProto, data: str = "x", again: bool = True) -> onnx.ModelProto:
    """A convolution with weights of 8 bits, and a layer of which values are quantized, too, as TFLite writes them; what
    the one gives may be quantized `again`.
    """
    steps = ("one", "zero")
    pair = [
        helper.make_node("QuantizeLinear", ["c", *steps], ["k"]),
        helper.make_node("DequantizeLinear", ["k", *steps], ["m"]),
    ]
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0),
        *between,
        helper.make_node("Conv", [data, "w"], ["c"]),
        *(pair if again else ()),
        helper.make_node("DynamicQuantizeLinear", ["m" if again else "c"], ["b", "bs", "bz"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["n"]),
        helper.make_node("DequantizeLinear", ["l", "one"], ["v"]),
        helper.make_node("MatMul", ["n", "v"], ["y"]),
    ]
    held = {"q": rng.integers(-99, 99, (5, 4, 1, 1)).astype(np.int8), "s": rng.random(5).astype(np.float32)}
    held |= {"z": np.zeros(5, np.int8), "l": rng.integers(-99, 99, (6, 3)).astype(np.int8), "one": np.float32(0.5)}
    held |= {"zero": np.uint8(128), "twice": np.array([0, 0, 0, 0])}
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 4, 6, 6)), ("y", (1, 5, 6, 3)))
    ]
    weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in held.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


QUANTIZED = helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["d"])
NUMBERS = helper.make_node("DequantizeLinear", ["d", "one", "zero"], ["e"])


def test_weights_beside_values_that_are_not_quantized_are_held_though_others_are() -> None:
    source = mixed(again=False)
    made, found = kinds(source)
    assert found == ["Conv", "DynamicQuantizeLinear", "DequantizeLinear", "DequantizeLinear", "MatMul"]
    given = {"x": np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype(np.float32)}
    np.testing.assert_allclose(run(made, given)[0], run(source, given)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "last", [(), (helper.make_node("Relu", ["e"], ["f"]),), (helper.make_node("Reshape", ["e", "twice"], ["f"]),)]
)
def test_those_beside_numbers_of_bytes_stay_though_these_are_moved_or_bounded(last: tuple[onnx.NodeProto, ...]) -> None:
    source = mixed(QUANTIZED, NUMBERS, *last, data="f" if last else "e")
    assert kinds(source)[1].count("DequantizeLinear") == 5


def test_those_of_convolutions_whose_numbers_are_not_quantized_are_held() -> None:
    """Runtimes convolve bytes to bytes alone."""
    source = mixed(QUANTIZED, NUMBERS, data="e", again=False)
    made, found = kinds(source)
    assert found.count("DequantizeLinear") == 3
    given = {"x": np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype(np.float32)}
    np.testing.assert_allclose(run(made, given)[0], run(source, given)[0], rtol=1e-4, atol=1e-4)


def test_numbers_that_are_quantized_again_are_made_as_before() -> None:
    source = mixed(
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0, 2, 3]),
        helper.make_node("QuantizeLinear", ["t", "one", "zero"], ["again"]),
        again=False,
    )
    source.graph.output.append(helper.make_tensor_value_info("again", TensorProto.UINT8, (4, 5, 1, 1)))
    assert kinds(source)[1].count("DequantizeLinear") == 3


MANY = 1_200
"""More than functions may call each other."""


@pytest.mark.parametrize(("first", "data"), [("w", "e"), ("e", "r0")], ids=["a weight", "bytes"])
def test_bytes_and_weights_may_be_moved_many_times(first: str, data: str) -> None:
    names = [first, *(f"r{i}" for i in reversed(range(MANY)))]
    moving = [helper.make_node("Reshape", [a, "twice"], [b]) for a, b in pairwise(names)]
    source = mixed(QUANTIZED, NUMBERS, *moving, data=data)
    if first == "w":
        next(node for node in source.graph.node if node.op_type == "Conv").input[1] = "r0"
    assert kinds(source)[1].count("DequantizeLinear") == 5
