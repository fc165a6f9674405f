"""Signals that are made longer linearly are products of three neighbours each, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.operators.definitions.drawn_out import by_phases, turned_by_phases
from superopt.operators.interpolate import Interpolate
from superopt.operators.layout import Transpose
from superopt.operators.matmul import MatMul
from superopt.substitution import symbols
from superopt.term import Term, running, variable
from tests.models import assert_same, model
from tests.operators.definitions.equality import assert_equal

TURN = Transpose((0, 2, 1))
PLACES = ("half_pixel", "asymmetric")


@pytest.mark.parametrize("by", PLACES)
@pytest.mark.parametrize("factor", [2, 3, 4, 7])
@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 3, 5)], ids=str)
def test_a_longer_signal_is_one_product_of_three_neighbours(shape: tuple[int, ...], factor: int, by: str) -> None:
    wanted = Interpolate((factor * shape[2],), by)(variable("x", shape))
    found = assert_equal(by_phases(wanted.operator, *wanted.inputs), wanted)
    assert len([t for t in running(found) if isinstance(t.operator, MatMul)]) == 1


@pytest.mark.parametrize("by", PLACES)
@pytest.mark.parametrize("factor", [2, 3, 7])
@pytest.mark.parametrize("shape", [(1, 2, 1), (2, 5, 3)], ids=str)
def test_with_channels_behind_it_is_one_without_transposes(shape: tuple[int, ...], factor: int, by: str) -> None:
    wanted = TURN(Interpolate((factor * shape[1],), by)(TURN(variable("x", shape))))
    found = assert_equal(turned_by_phases(TURN, *wanted.inputs), wanted)
    assert not any(isinstance(t.operator, Transpose) for t in running(found))


def test_how_long_the_signal_is_may_be_open() -> None:
    t = symbol("t")
    with assuming() as conditions:
        whole = Interpolate((4 * t,))(variable("x", (symbol("b"), 3, t)))
        found = by_phases(whole.operator, *whole.inputs)
    assert found is not None
    assert found.shape == whole.shape
    assert {name for d in found.shape for name in symbols(d)} == {"b", "t"}
    assert all(c.relation == "<=" for c in conditions)


@pytest.mark.parametrize(
    "whole",
    [
        Interpolate((10,))(variable("x", (1, 2, 4))),
        Interpolate((2,))(variable("x", (1, 2, 4))),
        Interpolate((4,))(variable("x", (1, 2, 4))),
        Interpolate((8,))(variable("x", (1, 2, 1))),
        Interpolate((8,), "align_corners")(variable("x", (1, 2, 4))),
        Interpolate((8, 8))(variable("x", (1, 2, 4, 4))),
    ],
    ids=["no whole factor", "shorter", "as long", "no neighbours", "from end to end", "a picture"],
)
def test_what_has_other_weights_at_each_place_is_no_such_product(whole: Term) -> None:
    assert by_phases(whole.operator, *whole.inputs) is None
    if whole.type.rank == 3:
        (x,) = whole.inputs
        turned = variable("y", (1, *x.shape[:0:-1]))
        assert turned_by_phases(TURN, whole.operator(TURN(turned))) is None


def test_a_signal_is_made_longer_faster_and_is_the_same(options: Options) -> None:
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")]
    ends = [("x", TensorProto.FLOAT, [1, 24, 200]), ("y", TensorProto.FLOAT, [1, 24, 200 * 64])]
    given = model(nodes, ends[:1], ends[1:], {"scales": np.array([1, 1, 64], np.float32)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
