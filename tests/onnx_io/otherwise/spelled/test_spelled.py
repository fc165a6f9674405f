"""Activations that are spelled in steps are the operators that they spell, for each writer's spelling."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.networks import Array, run
from tests.onnx_io.otherwise.reading import gain, operators_of

SIZES = (1, 4, 6, 6)
LARGE = (1, 4, 48, 48)
CLIPS = {
    "a Min of a Max": "a = Max(x, n0) y = Min(a, n6)",
    "a Max of a Min, numbers first": "a = Min(n6, x) y = Max(n0, a)",
    "a Min of a Relu": "a = Relu(x) y = Min(a, n6)",
    "a Min behind two bounds": "a = Clip(x, n0) b = Max(n1, a) y = Min(b, n6)",
    "bounds that cross": "a = Max(x, n6) y = Min(a, n1)",
    "one-element tensors": "a = Max(x, n0e) y = Min(a, n6e)",
}
HARD = {
    "Paddle's": "a = Add(x, n3) b = Clip(a, n0, n6) y = Div(b, n6)",
    "TensorFlow's": "a = Add(n3, x) b = Relu(a) c = Min(b, n6) y = Mul(c, sixth)",
    "Keras'": "a = Mul(x, fifth) b = Add(a, half) y = Clip(b, n0, n1)",
    "of a number less x": "a = Sub(n3, x) b = Clip(a, n0, n6) y = Div(b, n6)",
    "of less than x": "a = Sub(x, n1) b = Clip(a, n0, n6) y = Div(b, n6)",
}
SWISHES = {
    "Paddle's": "a = Add(x, n3) b = Clip(a, n0, n6) c = Mul(x, b) y = Div(c, n6)",
    "MXNet's": "a = Add(x, n3) b = Clip(a, n0, n6) c = Div(b, n6) y = Mul(x, c)",
    "the step first": "a = Add(x, n3) b = Clip(a, n0, n6) c = Mul(b, x) y = Mul(sixth, c)",
}
STAYS = {
    "a number that is added to round": "a = Add(x, large) b = Clip(a, n0, n6) y = Div(b, n6)",
    "two that are added": "a = Add(x, n1) c = Add(a, n1) b = Clip(c, n0, n6) y = Div(b, n6)",
    "a share that is no sixth": "a = Add(x, n3) b = Clip(a, n0, n6) y = Div(b, n3)",
    "a number that is divided": "a = Add(x, n3) b = Clip(a, n0, n6) y = Div(n6, b)",
    "a bound alone": "y = Max(x, n1)",
    "a bound that is computed": "a = ReduceMax(x) b = Max(x, n0) y = Min(b, a)",
    "bounds for each channel": "b = Max(x, n0) y = Min(b, each)",
    "a number of higher rank": "b = Max(x, n0) y = Min(b, deep)",
}
NUMBERS: Mapping[str, object] = {
    "n0": 0.0, "n1": 1.0, "n3": 3.0, "m3": -3.0, "n6": 6.0, "n0e": [0.0], "n6e": [[[6.0]]], "sixth": 1 / 6,
    "fifth": 0.2, "half": 0.5, "steep": [[[-2.0]], [[3.0]], [[1.0]], [[0.5]]],
    "flat": [[[-2.0]], [[0.3]], [[1.0]], [[0.5]]], "tenth": 0.1, "large": 2.0**23,
    "each": [[[2.0]], [[3.0]], [[4.0]], [[5.0]]], "deep": [[[[[6.0]]]]],
    "none": [[[np.nan]], [[2.0]], [[1.0]], [[2.0]]], "endless": [[[-np.inf]], [[2.0]], [[1.0]], [[3.0]]],
}  # fmt: skip


def _source(nodes: str, rank: int = 4, more: str = "", sizes: tuple[int, ...] = SIZES) -> onnx.ModelProto:
    given_sizes, made_sizes = ", ".join(map(str, sizes)), ", ".join(f"s{i}" for i in range(rank))
    given = model(f"g (float[{given_sizes}] x) => (float[{made_sizes}] y{more}) {{ {nodes} }}")
    held = [numpy_helper.from_array(np.array(n, np.float32), name) for name, n in NUMBERS.items()]
    given.graph.initializer.extend(i for i in held if f"{i.name}," in nodes or f"{i.name})" in nodes)
    return given


def _feeds(sizes: tuple[int, ...] = SIZES) -> dict[str, Array]:
    return {"x": np.random.default_rng(0).uniform(-9, 9, sizes).astype(np.float32)}


@pytest.mark.parametrize("nodes", CLIPS.values(), ids=CLIPS)
def test_bounds_by_a_min_and_a_max_are_a_clip(nodes: str) -> None:
    assert operators_of(_source(nodes), _feeds(), rounds=False) == ["Clip"]


@pytest.mark.parametrize("step", ["y = Max(a, n0)", "c = GreaterOrEqual(n0, a) y = Where(c, n0, a)"])
def test_what_is_positive_of_a_convolution_is_the_relu_that_runtimes_compute_with_it(step: str) -> None:
    source = _source(f"a = Conv<kernel_shape = [1, 1]>(x, w) {step}")
    source.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w"))
    assert operators_of(source, _feeds()) == ["Conv", "Relu"]


@pytest.mark.parametrize("nodes", HARD.values(), ids=HARD)
def test_hard_sigmoids_in_steps_are_hard_sigmoids(nodes: str) -> None:
    assert operators_of(_source(nodes), _feeds()) == ["HardSigmoid"]


@pytest.mark.parametrize("nodes", SWISHES.values(), ids=SWISHES)
def test_hard_swishes_multiply_by_hard_sigmoids(nodes: str) -> None:
    assert operators_of(_source(nodes), _feeds()) == ["HardSigmoid", "Mul"]


@pytest.mark.parametrize(
    ("nodes", "made"),
    [
        ("a = Mul(x, tenth) y = Max(a, x)", "LeakyRelu"),
        ("a = Mul(tenth, x) y = Max(x, a)", "LeakyRelu"),
        ("y = PRelu(x, sixth)", "LeakyRelu"),
        ("c = Greater(x, n0) a = Mul(x, tenth) y = Where(c, x, a)", "LeakyRelu"),
        ("c = LessOrEqual(x, n0) a = Mul(n3, x) y = Where(c, a, x)", "LeakyRelu"),
        ("c = Less(n0, x) a = Mul(n3, x) y = Where(c, x, a)", "LeakyRelu"),
        ("a = Relu(x) b = Neg(x) c = Relu(b) d = Mul(c, n3) y = Add(a, d)", "LeakyRelu"),
        ("a = Relu(x) b = Neg(x) c = Relu(b) d = Mul(c, n3) y = Sub(a, d)", "LeakyRelu"),
    ],
)
def test_rectifiers_that_leak_alike_are_one_operator(nodes: str, made: str) -> None:
    assert operators_of(_source(nodes), _feeds()) == [made]


@pytest.mark.parametrize("nodes", STAYS.values(), ids=STAYS)
def test_what_spells_no_activation_stays(nodes: str) -> None:
    source = _source(nodes, 5 if "deep" in nodes else 4)
    ours = operators_of(source, _feeds(), rounds=False)
    assert ours == [node.op_type for node in source.graph.node]


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Mul(x, n3) y = Max(a, x)",
        "a = Mul(x, tenth) b = Neg(x) y = Max(a, b)",
        "c = Greater(x, n1) a = Mul(x, tenth) y = Where(c, x, a)",
        "c = Less(x, n0) a = Mul(x, tenth) y = Where(c, x, a)",
        "b = Neg(x) c = Greater(b, n0) a = Mul(x, tenth) y = Where(c, x, a)",
        "c = Greater(x, n0) y = Where(c, x, n1)",
        "a = Sqrt(x) c = Greater(a, n0) y = Where(c, a, n0)",
        "a = Sqrt(x) b = Add(a, n1) c = Greater(b, n0) y = Where(c, b, n0)",
        "a = Sqrt(x) y = Shrink<lambd = 1.0, bias = 1.0>(a)",
        "b = Sqrt(x) c = Greater(b, n3) a = Sub(b, n3) d = Where(c, a, n0) l = Less(b, m3) e = Add(b, n3) "
        "f = Where(l, e, n0) y = Add(d, f)",
        "y = PRelu(x, none)",
        "y = PRelu(x, endless)",
        "a = Relu(x) b = Neg(x) d = Mul(b, n3) y = Add(a, d)",
        "a = Relu(x) b = Neg(x) c = Relu(b) d = Mul(c, n3) y = Sub(d, a)",
    ],
)
def test_others_that_look_so_stay(nodes: str) -> None:
    source = _source(nodes, sizes=LARGE)
    assert operators_of(source, _feeds(LARGE)) == [node.op_type for node in source.graph.node]


def test_slopes_that_are_no_numbers_stay_with_what_is_negative() -> None:
    source = _source("y = PRelu(x, none)")
    assert np.isfinite(run(source, {"x": np.abs(_feeds()["x"])})[0]).all()


def test_slopes_of_more_axes_stay_as_runtimes_read_them() -> None:
    source = _source("y = PRelu(x, deep)", sizes=LARGE)
    assert operators_of(source, _feeds(LARGE)) == ["PRelu"]


@pytest.mark.parametrize("before", ["a = Reshape(x, rows)", "b = Sub(x, n3) a = Transpose(b)", "a = MatMul(x, w)"])
def test_thresholds_of_what_is_made_of_inputs_and_products_are_what_lies_beyond_bounds(before: str) -> None:
    source = _source(f"{before} y = Shrink<lambd = 1.0, bias = 1.0>(a)", rank=2 if "rows" in before else 4, sizes=LARGE)
    rows, w = np.array([192, 48]), np.random.default_rng(1).standard_normal((48, 48)).astype(np.float32)
    for name, held in (("rows", rows), ("w", w)):
        if f", {name})" in before:
            source.graph.initializer.append(numpy_helper.from_array(held, name))
    assert operators_of(source, _feeds(LARGE))[-2:] == ["Clip", "Sub"]


def test_a_step_that_others_read_is_computed_still() -> None:
    source = _source("a = Max(x, n0) y = Min(a, n6)", more=", float[t0, t1, t2, t3] a")
    assert operators_of(source, _feeds(), rounds=False) == ["Max", "Min"]


def test_two_spellings_that_end_in_a_row_are_both_told_apart() -> None:
    nodes = "a = Mul(x, fifth) b = Add(a, half) c = Clip(b, n0, n1) d = Add(c, n0) e = Clip(d, n0, n1) y = Mul(e, n1)"
    source = _source(nodes)
    assert "HardSigmoid" in operators_of(source, _feeds())
    assert run(source, _feeds())[0].max() == 1


@pytest.mark.parametrize(
    ("nodes", "made"),
    [
        ("y = PRelu(x, flat)", ["Mul", "Max"]),
        ("y = PRelu(x, each)", ["Mul", "Min"]),
        ("c = Less(x, n0) a = Mul(x, flat) y = Where(c, a, x)", ["Mul", "Max"]),
        ("y = PRelu(x, steep)", ["Min", "Relu", "Mul", "Add"]),
        ("a = Relu(x) b = Neg(x) c = Relu(b) d = Mul(each, c) y = Sub(a, d)", ["Mul", "Min"]),
        ("a = Relu(x) b = Neg(x) c = Relu(b) d = Mul(flat, c) y = Sub(a, d)", ["Mul", "Max"]),
    ],
)
def test_slopes_of_channels_are_products_and_the_larger_or_smaller_of_both(nodes: str, made: list[str]) -> None:
    assert operators_of(_source(nodes, sizes=LARGE), _feeds(LARGE), rounds=False) == made


@pytest.mark.parametrize(
    "nodes",
    [
        "y = PRelu(x, flat)",
        "y = PRelu(x, steep)",
        "c = Less(x, n0) a = Mul(x, steep) y = Where(c, a, x)",
        "y = Shrink<lambd = 1.0, bias = 1.0>(x)",
    ],
)
def test_of_few_elements_fewer_operators_stay(nodes: str) -> None:
    source = _source(nodes)
    assert operators_of(source, _feeds()) == [node.op_type for node in source.graph.node]


def test_slopes_of_channels_gain() -> None:
    source = _source("a = PRelu(x, flat) b = Neg(a) y = PRelu(b, flat)")
    source.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 96, 96]))
    x = np.random.default_rng(0).standard_normal((1, 4, 96, 96)).astype(np.float32)
    assert gain(source, {"x": x}) > 2


SHRINKS = {
    "an operator": "y = Shrink<lambd = 1.0, bias = 1.0>(x)",
    "of a sign": "s = Sign(x) a = Abs(x) b = Sub(a, n1) c = Relu(b) y = Mul(c, s)",
    "of two parts": "a = Sub(x, n1) b = Relu(a) c = Neg(x) d = Sub(c, n1) e = Relu(d) y = Sub(b, e)",
    "a choice": "a = Abs(x) c = Greater(a, n1) s = Sign(x) t = Mul(s, n1) m = Sub(x, t) z = Mul(x, n0) "
    "y = Where(c, m, z)",
    "two choices": "c = Greater(x, n3) a = Sub(x, n3) d = Where(c, a, n0) l = Less(x, m3) b = Add(x, n3) "
    "e = Where(l, b, n0) y = Add(e, d)",
}
OTHER_SHRINKS = {
    "an operator without a shift": "y = Shrink<lambd = 1.0, bias = 0.0>(x)",
    "a sign of something else": "n = Neg(x) s = Sign(n) a = Abs(x) b = Sub(a, n1) c = Relu(b) y = Mul(c, s)",
    "a threshold below 0": "s = Sign(x) a = Abs(x) b = Sub(a, m3) c = Relu(b) y = Mul(c, s)",
    "parts by two thresholds": "a = Sub(x, n1) b = Relu(a) c = Neg(x) d = Sub(c, n3) e = Relu(d) y = Sub(b, e)",
    "another limit": "a = Abs(x) c = Greater(a, n3) s = Sign(x) t = Mul(s, n1) m = Sub(x, t) z = Mul(x, n0) "
    "y = Where(c, m, z)",
}


@pytest.mark.parametrize("nodes", SHRINKS.values(), ids=SHRINKS)
def test_soft_thresholds_are_what_lies_beyond_two_bounds(nodes: str) -> None:
    assert operators_of(_source(nodes, sizes=LARGE), _feeds(LARGE), rounds=False) == ["Clip", "Sub"]


def test_soft_thresholds_of_channels_are_too() -> None:
    source = _source("s = Sign(x) a = Abs(x) b = Sub(a, each) c = Relu(b) y = Mul(s, c)")
    assert operators_of(source, _feeds(), rounds=False) == ["Max", "Min", "Sub"]


@pytest.mark.parametrize("nodes", OTHER_SHRINKS.values(), ids=OTHER_SHRINKS)
def test_other_thresholds_stay(nodes: str) -> None:
    source = _source(nodes, sizes=LARGE)
    assert operators_of(source, _feeds(LARGE), rounds=False) == [node.op_type for node in source.graph.node]
