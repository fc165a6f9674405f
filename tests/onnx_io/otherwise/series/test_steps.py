"""A layer that each step of a series has for itself is one of the series, before the steps or behind them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DRAWN = np.random.default_rng(0)
HELD = """<float[3, 2] w = {1, 2, -1, 0.5, 3, -2}, float[2, 3] v = {1, 2, -1, 0.5, 3, -2}, float[2] b = {1, -3},
  float[2, 2] c = {1, -3, 2, 5}, int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64 i3 = {-1},
  int64[1] one = {1}, int64[1] two = {2}>"""
JOINED = "float[5, 2] l = {1, 2, -1, 0.5, 3, -2, 0, 1, 2, -3}, float[2, 5] t = {1, 2, -1, 0.5, 3, -2, 0, 1, 2, -3},"
LINEAR, GEMM = "MatMul({x}, w)", "Gemm<transB = 1>({x}, v, b)"


def cell(layer: str, axis: int = 0, x: str = "4, 2, 3", most: int = 4) -> str:
    """A recurrent cell over a series, each step of which has this layer, written out."""
    lines, state = "", "z"
    for i in range(most):
        lines += f" e{i} = Gather<axis = {axis}>(x, i{i}) a{i} = {layer.format(x=f'e{i}')}"
        lines, state = f"{lines} s{i} = Add(a{i}, {state}) h{i} = Sigmoid(s{i})", f"h{i}"
    return f"g (float[{x}] x, float[2, 2] z) => (float[2, 2] y) {HELD} {{ {lines} y = Identity({state}) }}"


def textbook(join: str, layer: str) -> str:
    """A recurrent cell that multiplies each step together with its state."""
    lines, state = "", "z"
    for i in range(4):
        lines += f" e{i} = Gather(x, i{i}) j{i} = Concat<axis = -1>({join.format(x=f'e{i}', h=state)})"
        lines, state = f"{lines} s{i} = {layer.format(x=f'j{i}')} h{i} = Sigmoid(s{i})", f"h{i}"
    held = HELD.replace("<", f"<{JOINED} ", 1)
    return f"g (float[4, 2, 3] x, float[2, 2] z) => (float[2, 2] y) {held} {{ {lines} y = Identity(h3) }}"


def stack(layer: str, spread: str = "one", axis: int = 1, y: str = "2, 4, 2") -> str:
    """What this layer makes of each of four states, side by side, each with an axis of one more where that is told."""
    lines, state, joined = "", "x", "u0, u1, u2, u3" if spread else "a0, a1, a2, a3"
    for i in range(4):
        lines += f" h{i} = Tanh({state}) n{i} = Neg(h{i}) a{i} = {layer.format(x=f'h{i}')}"
        lines, state = lines + (f" u{i} = Unsqueeze(a{i}, {spread})" if spread else ""), f"n{i}"
    return f"g (float[2, 3] x) => (float[{y}] y) {HELD} {{ {lines} y = Concat<axis = {axis}>({joined}) }}"


def products(text: str) -> int:
    """How many products of matrices a model has as it is read, which computes the same."""
    source = model(text)
    onnx.checker.check_model(source, full_check=True)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    sizes = {i.name: [d.dim_value or 2 for d in i.type.tensor_type.shape.dim] for i in source.graph.input}
    feeds = {name: DRAWN.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()}
    np.testing.assert_allclose(run(made, feeds)[0], run(source, feeds)[0], rtol=1e-5)
    counted = Counter(node.op_type for node in made.graph.node)
    return counted["MatMul"] + counted["Gemm"]


ONE = {
    "steps along the first axis": cell(LINEAR),
    "along another one": cell(LINEAR, 1, "2, 4, 3"),
    "counted from the end": cell(LINEAR, -2, "2, 4, 3"),
    "with a bias, and the matrix turned": cell(GEMM),
    "of an open batch": cell(LINEAR, 0, "4, B, 3"),
    "most of the steps": cell(LINEAR, 0, "5, 2, 3"),
    "stacked": stack(LINEAR),
    "stacked with a bias": stack(GEMM),
    "one behind the other": stack(GEMM, "", 0, "8, 2"),
}


@pytest.mark.parametrize("text", ONE.values(), ids=ONE)
def test_there_is_one_product(text: str) -> None:
    assert products(text) == 1


def test_there_is_one_on_each_side_of_a_state() -> None:
    both = cell(LINEAR).replace("y = Identity(h3)", """o0 = MatMul(h0, c) o1 = MatMul(h1, c) o2 = MatMul(h2, c)
      o3 = MatMul(h3, c) y = Concat<axis = 0>(o0, o1, o2, o3)""").replace("float[2, 2] y", "float[8, 2] y")  # fmt: skip
    assert products(both) == 2


APART = {
    "in front of its state": textbook("{x}, {h}", "Gemm<transB = 1>({x}, t, b)"),
    "behind it": textbook("{h}, {x}", "Gemm({x}, l, b)"),
    "without a bias": textbook("{x}, {h}", "MatMul({x}, l)"),
    "between two halves": textbook("{h}, {x}, {h}", "MatMul({x}, m)")
    .replace("float[5, 2] l", "float[7, 2] m")
    .replace("3, -2, 0, 1, 2, -3}", "3, -2, 0, 1, 2, -3, 1, 5, -2, 3}", 1),
}


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_a_step_that_is_joined_with_a_state_is_multiplied_apart_from_it(text: str) -> None:
    assert products(text) == 1 + 4


def test_what_two_ways_find_is_done_by_one_after_the_other() -> None:
    joined = "".join(
        f" e{i} = Gather(x, i{i}) j{i} = Concat<axis = 1>(e{i}, z) a{i} = MatMul(j{i}, l)" for i in range(4)
    )
    spread = "".join(f" u{i} = Unsqueeze(a{i}, one)" for i in range(4))
    held = HELD.replace("<", f"<{JOINED} ", 1)
    end = "y = Concat<axis = 1>(u0, u1, u2, u3)"
    text = f"g (float[4, 2, 3] x, float[2, 2] z) => (float[2, 4, 2] y) {held} {{ {joined} {spread} {end} }}"
    assert products(text) < 4


SEVERAL = {
    "too few steps": (cell(LINEAR, most=3), 3),
    "few of many steps": (cell(LINEAR, x="9, 2, 3"), 4),
    "of many rows": (
        cell(LINEAR, x="4, 64, 3").replace("float[2, 2] z", "float[1, 2] z").replace("[2, 2] y", "[64, 2] y"),
        4,
    ),
    "of an open length": (cell(LINEAR, x="T, 2, 3").replace("i2 = {2}", "i2 = {1}"), 4),
    "a bias that rows do not share": (cell("Gemm({x}, w, c)"), 4),
    "another factor": (cell("Gemm<alpha = 0.5>({x}, w, b)"), 4),
    "side by side along the rows": (stack(LINEAR, axis=2, y="2, 1, 8"), 4),
    "spread over the rows": (stack(LINEAR, "two", y="2, 8, 1"), 4),
    "given too": (stack(LINEAR).replace("4, 2] y)", "4, 2] y, float[2, 2] a0)"), 4),
}


@pytest.mark.parametrize(("text", "count"), SEVERAL.values(), ids=SEVERAL)
def test_there_are_as_many_as_before(text: str, count: int) -> None:
    assert products(text) == count
