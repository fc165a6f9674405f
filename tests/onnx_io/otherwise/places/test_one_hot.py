"""A product of rows that are one in one place is a choice of rows, also of numbers that are no place's."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

PLACES, WIDTH = 300, 900
DRAWN = np.random.default_rng(0)
WEIGHTS = {
    "w": DRAWN.standard_normal((PLACES, WIDTH)).astype(np.float32),
    "t": DRAWN.standard_normal((WIDTH, PLACES)).astype(np.float32),
    "b": DRAWN.standard_normal(WIDTH).astype(np.float32),
    "all": np.arange(PLACES),
    "short": np.arange(PLACES, dtype=np.int32),
    "zeros": np.zeros((4, PLACES), np.float32),
}
HELD = f"<int64 depth = {{{PLACES}}}, float[2] values = {{0, 1}}, int64[1] last = {{-1}}, float[1] one = {{1}}>"
NUMBERS = np.array([3, PLACES - 1, 0, 7])
ODD = np.array([-1, PLACES, -PLACES - 5, 2**62])
HOT = "h = OneHot(i, depth, values)"
SCATTERED = "u = Unsqueeze(i, last) s = Shape(u) e = Expand(one, s) h = ScatterElements<axis = 1>(zeros, u, e)"


def layer(nodes: str, given: str = "int64[4] i", y: str = f"4, {WIDTH}") -> str:
    return f"g ({given}) => (float[{y}] y) {HELD} {{ {nodes} }}"


def read(
    text: str, weights: dict[str, np.ndarray] = WEIGHTS, opset: int = 17
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model with its weights, and as it is read."""
    source = model(text, opset)
    used = {name for node in source.graph.node for name in node.input}
    source.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items() if n in used)
    onnx.checker.check_model(source, full_check=True)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    return source, made


CASES = {
    "one hot": (layer(f"{HOT} y = MatMul(h, w)"), [NUMBERS, ODD]),
    "with a bias": (layer(f"{HOT} y = Gemm(h, w, b)"), [NUMBERS, ODD]),
    "the matrix turned": (layer(f"{HOT} y = Gemm<transB = 1>(h, t, b)"), [NUMBERS, ODD]),
    "of integers that are cast": (layer("v = Cast<to = 7>(values) k = OneHot(i, depth, v) h = Cast<to = 1>(k) "
                                        "y = MatMul(h, w)"), [NUMBERS, ODD]),
    "of two axes": (layer(f"{HOT} y = MatMul(h, w)", "int64[2, 2] i", f"2, 2, {WIDTH}"),
                    [NUMBERS.reshape(2, 2), ODD.reshape(2, 2)]),
    "compared with all": (layer("u = Unsqueeze(i, last) e = Equal(u, all) h = Cast<to = 1>(e) y = MatMul(h, w)"),
                          [NUMBERS, ODD]),
    "all compared with them": (layer("u = Unsqueeze(i, last) e = Equal(all, u) h = Cast<to = 1>(e) y = MatMul(h, w)"),
                               [NUMBERS, ODD]),
    "of 32 bits": (layer("u = Unsqueeze(i, last) e = Equal(u, short) h = Cast<to = 1>(e) y = MatMul(h, w)",
                         "int32[4] i"),
                   [NUMBERS.astype(np.int32), np.array([-1, 2**31 - 1, 5, -(2**31)], np.int32)]),
    "ones among zeros": (layer(f"{SCATTERED} y = MatMul(h, w)"), [NUMBERS, np.array([-1, 2, -PLACES, 0])]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "samples"), CASES.values(), ids=CASES)
def test_rows_are_taken(text: str, samples: list[np.ndarray]) -> None:
    source, made = read(text)
    assert not {"MatMul", "Gemm"} & {node.op_type for node in made.graph.node}
    for numbers in samples:
        np.testing.assert_array_equal(run(made, {"i": numbers})[0], run(source, {"i": numbers})[0])


def test_the_number_of_what_is_largest_among_no_more_is_a_place() -> None:
    _, made = read(layer(f"i = ArgMax<axis = 1, keepdims = 0>(x) {HOT} y = MatMul(h, w)", f"float[4, {PLACES}] x"))
    assert [node.op_type for node in made.graph.node] == ["ArgMax", "Gather"]


def test_the_number_of_what_is_largest_among_more_may_be_none() -> None:
    _, made = read(layer(f"i = ArgMax<axis = 1, keepdims = 0>(x) {HOT} y = MatMul(h, w)", f"float[4, {PLACES + 1}] x"))
    assert "Where" in [node.op_type for node in made.graph.node]


STAYING = {
    "other values": layer(f"{HOT} y = MatMul(h, w)").replace("{0, 1}", "{1, 0}"),
    "places in front": layer("h = OneHot<axis = 0>(i, depth, values) k = Transpose(h) y = MatMul(k, w)"),
    "what is not all of zeros": layer(SCATTERED.replace("zeros", "x") + " y = MatMul(h, w)",
                                      f"int64[4] i, float[4, {PLACES}] x"),
    "added to what is there": layer(SCATTERED.replace("axis = 1", 'axis = 1, reduction = "add"') + " y = MatMul(h, w)"),
    "numbers with fractions": layer(f"{HOT} y = MatMul(h, w)", "float[4] i"),
    "a matrix that is given": layer(f"{HOT} y = MatMul(h, x)", f"int64[4] i, float[{PLACES}, {WIDTH}] x"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_a_product_stays(text: str) -> None:
    assert "MatMul" in [node.op_type for node in read(text)[1].graph.node]


def test_a_product_with_what_is_not_finite_stays() -> None:
    """Zero times infinity is no number, in each row."""
    odd = WEIGHTS["w"].copy()
    odd[5, 5] = np.inf
    _, made = read(CASES["one hot"][0], WEIGHTS | {"w": odd})
    assert "MatMul" in [node.op_type for node in made.graph.node]
