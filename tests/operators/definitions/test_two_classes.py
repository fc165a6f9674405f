"""A softmax over two is told by their difference, and over others it is not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.two_classes import MANY, over_two
from superopt.operators.functions import Sigmoid
from superopt.operators.normalize import Softmax
from superopt.term import subterms, variable
from tests.models import assert_same, model
from tests.onnx_io.networks import run
from tests.usable import has_avx512


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((MANY, 2), 1), ((1, MANY, 2), 2), ((2, MANY), 0), ((3, 2, MANY), 1), ((1, 2, 8, 8), 1)],
    ids=str,
)
def test_over_two_it_is_told_by_their_difference(shape: tuple[int, ...], axis: int) -> None:
    x = variable("x", shape)
    found, wanted = over_two(Softmax(axis), x), Softmax(axis)(x)
    assert found is not None
    assert found.type == wanted.type
    assert not any(isinstance(t.operator, Softmax) for t in subterms(found))
    assert not any(isinstance(t.operator, Sigmoid) for t in subterms(found)), "it is nothing below -18 on onnxruntime"
    values = {x: np.random.default_rng(0).standard_normal(shape) * 30.0}
    values[x].flat[:4] = 1000.0, -1000.0, 0.0, 1000.0
    np.testing.assert_allclose(evaluate(found, FLOAT, values), evaluate(wanted, FLOAT, values), rtol=1e-12)


def test_how_many_twos_there_are_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        found = over_two(Softmax(2), variable("x", (n, 9, 2)))
    assert found is not None
    assert found.shape == (n, 9, 2)


@pytest.mark.parametrize(
    ("shape", "axis"), [((MANY, 3), 1), ((MANY - 1, 2), 1), ((2, MANY), 1), ((MANY, symbol("c")), 1)], ids=str
)
def test_over_others_and_over_few_twos_it_stays(shape: tuple[Dim, ...], axis: int) -> None:
    assert over_two(Softmax(axis), variable("x", shape)) is None


@pytest.mark.parametrize(("shape", "axis"), [([1, 16800, 2], 2), ([1, 2, 96, 96], 1)], ids=str)
def test_scores_of_two_classes_are_computed_faster_and_are_the_same(
    shape: list[int], axis: int, options: Options
) -> None:
    ends = [(name, TensorProto.FLOAT, shape) for name in "xy"]
    given = model([helper.make_node("Softmax", ["x"], ["y"], axis=axis)], ends[:1], ends[1:])
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


@pytest.mark.parametrize(("shape", "axis"), [([1, 4096, 2], 2), ([1, 2, 64, 64], 1)], ids=str)
def test_what_is_little_beside_the_other_is_as_little_and_its_logarithm_a_number(
    shape: list[int], axis: int, options: Options
) -> None:
    ends = [(name, TensorProto.FLOAT, shape) for name in "xy"]
    given = model([helper.make_node("Softmax", ["x"], ["y"], axis=axis)], ends[:1], ends[1:])
    made = superopt.optimize(given, options).proto()
    assert "Softmax" not in {node.op_type for node in made.graph.node}
    for most, near in ((40.0, 1e-5), (50.0, 0.05)):  # from a difference of 88 on shares have few bits left
        x = {"x": np.random.default_rng(0).uniform(-most, most, shape).astype(np.float32)}
        (expected,), (found,) = run(given, x), run(made, x)
        assert found.min() > 0
        told = expected > 0  # without AVX-512, onnxruntime's own exponential is nothing from e⁻⁸⁷·⁷ on
        assert told.mean() > 0.99
        assert told.all() or (most > 40.0 and not has_avx512())
        np.testing.assert_allclose(np.log(found[told]), np.log(expected[told]), rtol=0, atol=near)
