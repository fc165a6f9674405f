"""Images that are resampled by products along each axis."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic import FIELD
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.onnx_io import load, understand
from superopt.operators.resampling import LARGEST, Cubic, interpolate_by_products
from superopt.operators.resize import PLACES, Interpolate
from superopt.search.accepting.reference import reference_of
from superopt.term import Term, variable
from tests.models import assert_same, model
from tests.onnx_io.networks import run

SIZES = [((5,), (9,)), ((5, 7), (9, 4)), ((8, 3), (8, 6)), ((4, 6), (1, 1)), ((2, 3, 4), (3, 5, 2))]


@pytest.mark.parametrize("by", PLACES)
@pytest.mark.parametrize(("given", "to"), SIZES, ids=str)
def test_linear_products_are_the_interpolation_exactly(given: tuple[int, ...], to: tuple[int, ...], by: str) -> None:
    x = variable("x", (2, 3, *given))
    op = Interpolate(to, by)
    made = interpolate_by_products(op, x)
    assert made is not None
    assert made.type == op(x).type
    values = sample((made,), FIELD, seed=1)
    assert (evaluate(made, FIELD, values) == evaluate(op(x), FIELD, values)).all()


CUBIC = [*itertools.product((*PLACES, "pytorch_half_pixel"), ((9, 4), (16, 16), (5, 13)), (0, 1), (-0.75, -0.5))]


@pytest.mark.parametrize(("by", "to", "within", "a"), CUBIC)
def test_a_cubic_is_what_the_runtime_computes(
    by: str, to: tuple[int, int], within: int, a: float, tmp_path: Path
) -> None:
    given = resized(
        {"mode": "cubic", "coordinate_transformation_mode": by, "cubic_coeff_a": a, "exclude_outside": within}, to
    )
    onnx.save(given, tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    assert [t.operator.name for s in program.steps for t in s.terms] == ["cubic"]
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)
    reference = reference_of(program)
    assert reference is not None
    (found,) = reference({"x": x})
    np.testing.assert_allclose(found, run(given, {"x": x})[0], atol=2e-5)


def resized(how: dict[str, object], to: tuple[int, int], x: tuple[int, ...] = (2, 3, 5, 7)) -> onnx.ModelProto:
    node = helper.make_node("Resize", ["x", "", "", "to"], ["y"], **how)
    ends = [("x", TensorProto.FLOAT, list(x)), ("y", TensorProto.FLOAT, [*x[:2], *to])]
    return model([node], ends[:1], ends[1:], {"to": np.array([*x[:2], *to], np.int64)})


@pytest.mark.parametrize("size", [symbol("h"), LARGEST // 12 + 1])
def test_sizes_that_are_no_numbers_or_too_many_stay(size: Dim) -> None:
    x: Term = variable("x", (1, 3, size, 4))
    assert interpolate_by_products(Interpolate((12, 8)), x) is None
    assert (Cubic((12, 8)).definition(x) is None) == (not isinstance(size, int))


def test_a_cubic_of_no_coefficient_is_carried_through(tmp_path: Path) -> None:
    """Its weights are no linear ones, by which 0 is taken here."""
    onnx.save(resized({"mode": "cubic", "cubic_coeff_a": 0.0}, (9, 4)), tmp_path / "m.onnx")
    assert understand(load(tmp_path / "m.onnx")).summary.opaque == {
        "Resize": {"cubic resize with a coefficient of 0": 1}
    }


def test_elements_that_do_not_count_beyond_the_ends_are_read_for_cubics_alone(tmp_path: Path) -> None:
    onnx.save(resized({"mode": "linear", "exclude_outside": 1}, (9, 4)), tmp_path / "m.onnx")
    assert understand(load(tmp_path / "m.onnx")).summary.opaque == {
        "Resize": {"resize in which elements beyond the ends do not count": 1}
    }


def test_a_cubic_resize_is_faster_by_products_and_the_same(options: Options) -> None:
    """As vision transformers resize images for a second branch, or positions."""
    given = resized({"mode": "cubic", "coordinate_transformation_mode": "half_pixel"}, (48, 48), (1, 16, 32, 32))
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert {"MatMul"} == {n.op_type for n in result.proto().graph.node}
    assert_same(result.proto(), given)
