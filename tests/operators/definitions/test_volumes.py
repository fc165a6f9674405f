"""Volumes whose places are repeated are images whose places are, and then repeated themselves."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.operators.definitions.volumes import of_repeated_slices
from superopt.operators.layout import Expand
from superopt.operators.rearrange import repeated
from superopt.term import Term, subterms, variable
from tests.models import assert_same, model
from tests.operators.definitions.equality import assert_equal


def enlarged(factors: tuple[int, ...], shape: tuple[Dim, ...] = (2, 3, 2, 3, 4), within: bool = True) -> Term:
    return repeated(variable("x", shape), factors, within=within)


@pytest.mark.parametrize("factors", [(2, 2, 2), (1, 2, 2), (3, 1, 2), (2, 3, 1)], ids=str)
def test_places_of_slices_are_repeated_first(factors: tuple[int, int, int]) -> None:
    wanted = enlarged((1, 1, *factors))
    found = assert_equal(of_repeated_slices(wanted.operator, *wanted.inputs), wanted)
    assert len([t for t in subterms(found) if isinstance(t.operator, Expand)]) == 1 + (factors[0] > 1)


def test_sizes_may_be_symbols() -> None:
    n, d, h = symbol("n"), symbol("d"), symbol("h")
    with assuming():
        wanted = enlarged((1, 1, 2, 2, 2), (n, 3, d, h, h))
        found = of_repeated_slices(wanted.operator, *wanted.inputs)
    assert found is not None
    assert str(found.shape) == str(wanted.shape)


@pytest.mark.parametrize(
    "whole",
    [
        enlarged((1, 1, 2, 1, 1)),
        enlarged((1, 2, 2, 2, 2)),
        enlarged((1, 1, 2, 2, 2), within=False),
        enlarged((1, 1, 2, 2), (2, 3, 4, 4)),
    ],
    ids=["slices alone", "channels", "over and over", "an image"],
)
def test_what_is_repeated_otherwise_stays(whole: Term) -> None:
    assert of_repeated_slices(whole.operator, *whole.inputs) is None


def test_a_volume_is_made_larger_faster_and_is_the_same(options: Options) -> None:
    given = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], **given)
    ends = [("x", TensorProto.FLOAT, [1, 16, 12, 12, 12]), ("y", TensorProto.FLOAT, [1, 16, 24, 24, 24])]
    whole = model([node], ends[:1], ends[1:], {"scales": np.array([1, 1, 2, 2, 2], np.float32)})
    result = superopt.optimize(whole, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), whole)
