"""Constants are added apart from products of bytes that give numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)


def layer(
    op: str = "MatMul",
    rows: Sequence[int] = (2, 4),
    behind: Sequence[onnx.NodeProto] = (),
    added: Sequence[int] = (8,),
    of: str = "a",
    opset: int = 17,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A layer of bytes whose steps are powers of two, so that no sum is rounded, and what it reads."""
    held: Held = {"b": RNG.integers(-99, 99, added).astype(np.float32) / 2**5}
    data = RNG.integers(-50, 50, (16, 8)).astype(np.int8)
    nodes = [*pair("x", "a", held, 2**-4, np.int8(-3))]
    nodes += [weights("w", held, data, np.int8(0))]
    held["w_scale"] = np.asarray(2**-7, np.float32)
    if op == "Gemm":
        nodes += [helper.make_node("Gemm", [of, "w", "b"], ["s"])]
    else:
        nodes += [helper.make_node("MatMul", [of, "w"], ["p"]), helper.make_node("Add", ["b", "p"], ["s"])]
    nodes += behind or [helper.make_node("Tanh", ["s"], ["y"])]
    shape = (*rows, 16)
    made = model(nodes, held, shape, (*rows, 8), opset)
    return made, {"x": RNG.standard_normal(shape).astype(np.float32)}


FRONT = ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear"]


@pytest.mark.parametrize("rows", [(4,), (2, 4)])
@pytest.mark.parametrize("opset", [10, 13, 21])
def test_a_constant_is_taken_off_a_product(rows: Sequence[int], opset: int) -> None:
    assert operators_of(*layer(rows=rows, opset=opset), rounds=False) == [*FRONT, "MatMul", "Sub", "Tanh"]


AGAIN: Held = {}
QUANTIZED = [*pair("s", "d", AGAIN, 2**-3, np.int8(-128)), helper.make_node("Tanh", ["d"], ["y"])]


@pytest.mark.parametrize(
    "given",
    [
        layer("Gemm", (4,)),
        layer(added=(2, 4, 8)),
        layer(rows=(4,), added=(4, 1)),
        layer(of="x"),
    ],
    ids=["one operator", "no row", "a column", "of numbers"],
)
def test_others_stay(given: tuple[onnx.ModelProto, dict[str, np.ndarray]]) -> None:
    assert "Sub" not in operators_of(*given, rounds=False)


def test_sums_that_are_quantized_stay() -> None:
    made, fed = layer(behind=QUANTIZED)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in AGAIN.items())
    assert "Sub" not in operators_of(made, fed, rounds=False)


def test_products_that_something_else_reads_stay() -> None:
    both = [helper.make_node("Tanh", ["p"], ["t"]), helper.make_node("Mul", ["s", "t"], ["y"])]
    assert "Sub" not in operators_of(*layer(behind=both), rounds=False)


def test_this_takes_less_time() -> None:
    held: Held = {"b": RNG.standard_normal(512).astype(np.float32)}
    nodes = [*pair("x", "a", held, 0.05, np.uint8(128))]
    nodes += [weights("w", held, RNG.integers(-50, 50, (256, 512)).astype(np.int8), np.int8(0))]
    nodes += [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    source = model(nodes, held, (1, 16, 256), (1, 16, 512))
    assert gain(source, {"x": RNG.standard_normal((1, 16, 256)).astype(np.float32)}) > 2.0
