"""What is largest along the last axis but one of sums with a constant matrix is found along the last, and its place."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

N, K = 40, 48
DRAWN = np.random.default_rng(0)
ONE = "axis = Constant<value_ints = [1]>()"
BEST = "y = ReduceMax<axes = [0], keepdims = 0>(s) p = ArgMax<axis = 0, keepdims = 0>(s)"
BEST_OF_EACH = "y = ReduceMax<axes = [1], keepdims = 0>(s) p = ArgMax<axis = 1, keepdims = 0>(s)"


def found(nodes: str, best: str = BEST, a: str = f"{N}", kind: str = "float", ranks: tuple[int, int] = (1, 1)) -> str:
    """A step of Viterbi's algorithm: what it finds, and where."""
    y, p = (", ".join(f"{name}{i}" for i in range(rank)) for name, rank in zip("yp", ranks, strict=True))
    return f"g ({kind}[{a}] a, {kind}[{K}] r) => ({kind}[{y}] y, int64[{p}] p) {{ {ONE} {nodes} {best} }}"


EACH = {"best": BEST_OF_EACH, "ranks": (2, 2)}
TWO = "end = Constant<value_ints = [2]>() u = Unsqueeze(a, end)"
CASES = {
    "a sum": (found("u = Unsqueeze(a, axis) s = Add(u, t)"), (N,), 13),
    "the matrix first": (found("u = Unsqueeze(a, axis) s = Add(t, u)"), (N,), 13),
    "in an opset whose axes are inputs": (
        found("u = Unsqueeze(a, axis) zero = Constant<value_ints = [-2]>() s = Add(u, t)",
              "y = ReduceMax<keepdims = 0>(s, zero) p = ArgMax<axis = -2, keepdims = 0>(s)"), (N,), 18),
    "in an opset whose axes are none": (found("u = Unsqueeze<axes = [1]>(a) s = Add(u, t)").replace(ONE, ""), (N,), 11),
    "the least, and the last of these": (
        found("u = Unsqueeze(a, axis) s = Sub(t, u)",
              "y = ReduceMin<axes = [0], keepdims = 0>(s) p = ArgMin<keepdims = 0, select_last_index = 1>(s)"),
        (N,), 13),
    "axes that are kept": (
        found("u = Unsqueeze(a, axis) s = Add(u, t)", "y = ReduceMax<axes = [0]>(s) p = ArgMax(s)", ranks=(2, 2)),
        (N,), 13),
    "of 64 bits": (found("u = Unsqueeze(a, axis) s = Add(u, t)", kind="double"), (N,), 13),
    "a column that is given": (found("s = Add(a, t)", a=f"{N}, 1"), (N, 1), 13),
    "with a row": (found("u = Unsqueeze(a, axis) m = Add(u, t) s = Add(m, r)"), (N,), 13),
    "with a constant row and a number": (
        found("two = Constant<value_float = 2.0>() u = Unsqueeze(a, axis) m = Add(t, two) n = Sub(m, b) s = Add(n, u)"),
        (N,), 13),
    "of each of a batch": (found(f"{TWO} s = Add(u, t)", a=f"3, {N}", **EACH), (3, N), 13),
    "of each of an open batch": (found(f"{TWO} m = Add(u, t) s = Add(m, r)", a=f"n, {N}", **EACH), (3, N), 13),
    "of each of none": (found(f"{TWO} m = Add(u, t) s = Add(m, r)", a=f"n, {N}", **EACH), (0, N), 13),
    "axes that are kept of each": (
        found(f"{TWO} s = Add(u, t)", "y = ReduceMax<axes = [1]>(s) p = ArgMax<axis = 1>(s)", f"n, {N}", ranks=(3, 3)),
        (3, N), 13),
}  # fmt: skip
LAST = BEST.replace("0]", "1]").replace("axis = 0", "axis = 1")
SUM = "u = Unsqueeze(a, axis) s = Add(u, t)"
STAYS = {
    "products, which are no number of none and infinity": found("u = Unsqueeze(a, axis) s = Mul(u, t)"),
    "along the last axis": found("s = Add(a, t)", LAST, f"{N}, {K}"),
    "of a matrix that is computed": found("s = Add(a, t)", a=f"{N}, {K}"),
    "read by others too": found(
        SUM, "y = ReduceMax<axes = [0], keepdims = 0>(s) q = Neg(s) p = ArgMax(q)", ranks=(1, 2)
    ),
    "along both axes": found(SUM, "y = ReduceMax<axes = [0, 1]>(s) p = ArgMax(s)", ranks=(2, 2)),
    "the place alone": found(SUM, "y = Relu(r) p = ArgMax(s)", ranks=(1, 2)),
    "of vectors alone": found("u = Unsqueeze(a, axis) s = Add(u, r)"),
}


def held(text: str, opset: int = 13) -> onnx.ModelProto:
    """A model with its weights: small integers, of which many are equal."""
    given, dtype = model(text, opset), np.float64 if "double" in text else np.float32
    weights = {"t": DRAWN.integers(-2, 3, (N, K)), "b": DRAWN.integers(-2, 3, K)}
    read = {name for node in given.graph.node for name in node.input}
    given.graph.initializer.extend(numpy_helper.from_array(w.astype(dtype), n) for n, w in weights.items() if n in read)
    return given


@pytest.mark.parametrize(("text", "a", "opset"), CASES.values(), ids=CASES)
def test_what_is_found_and_where_is_the_same_along_the_last_axis(text: str, a: tuple[int, ...], opset: int) -> None:
    given = held(text, opset)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert program.otherwise
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    inferred = onnx.shape_inference.infer_shapes(made).graph.value_info
    turned = {info.name: [d.dim_value for d in info.type.tensor_type.shape.dim][-2:] for info in inferred}
    searched = [node.input[0] for node in made.graph.node if node.op_type.startswith(("Reduce", "Arg"))]
    assert len(searched) == 2
    assert all(turned[name] == [K, N] for name in searched)
    dtype = np.float64 if "double" in text else np.float32
    for _ in range(5):
        feeds = {"a": DRAWN.integers(-2, 3, a).astype(dtype), "r": DRAWN.integers(-2, 3, K).astype(dtype)}
        for before, after in zip(run(given, feeds), run(made, feeds), strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_others_stay(text: str) -> None:
    assert not understand(load(held(text))).otherwise


def test_a_small_matrix_stays() -> None:
    few = "few = Constant<value_ints = [0, 1, 2, 3]>() w = Gather<axis = 1>(t, few)"
    assert not understand(load(held(found(f"{few} u = Unsqueeze(a, axis) s = Add(u, w)")))).otherwise
