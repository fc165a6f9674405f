"""Images that are resampled by products along each axis."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.evaluate import evaluate, sample
from superopt.onnx_io import load, rewritten, understand
from superopt.operators import NotUnderstood
from superopt.operators.interpolate import Interpolate
from superopt.operators.places import PLACES
from superopt.operators.resampling import LARGEST, interpolate_by_products
from superopt.search.accepting.reference import reference_of
from superopt.term import variable
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


def test_products_with_too_many_weights_stay_a_resize() -> None:
    x = variable("x", (1, 3, LARGEST // 12 + 1, 4))
    assert interpolate_by_products(Interpolate((12, 8)), x) is None


MODES = [{"mode": "linear"}, {"mode": "cubic"}, {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}]


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize(("how", "by"), [*itertools.product(MODES, PLACES)], ids=str)
def test_products_of_open_sizes_are_the_resize_at_each(
    how: dict[str, object], by: str, opset: int, tmp_path: Path
) -> None:
    """To those of another input, a height alike or not, more or fewer, and one."""
    given = like_another({**how, "coordinate_transformation_mode": by}, opset)
    onnx.save(given, tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    (step,) = [s for s in program.steps if s.outputs == ("y",)]
    (term,) = step.terms
    with assuming():  # that no size is 0
        made = MEANINGS[term.operator.name](term)
    found = ir.to_proto(rewritten(program, {"y": made}, {}))
    assert {"EyeLike", "MatMul"} <= {n.op_type for n in found.graph.node}
    rng = np.random.default_rng(0)
    for h, w in ((5, 7), (9, 4), (1, 1), (8, 3), (16, 14)):
        feeds = {"x": rng.standard_normal((2, 3, 5, 7)), "to": np.zeros((1, h, w))}
        feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
        np.testing.assert_allclose(run(found, feeds)[0], run(given, feeds)[0], atol=2e-5)


def test_weights_of_64_bits_and_open_sizes_are_not_written(tmp_path: Path) -> None:
    """They are resized in 32 bits, and would be of no more."""
    onnx.save(like_another({"mode": "linear"}, 17, TensorProto.DOUBLE), tmp_path / "m.onnx")
    program = understand(load(tmp_path / "m.onnx"))
    (step,) = [s for s in program.steps if s.outputs == ("y",)]
    with assuming():
        made = MEANINGS["interpolate"](*step.terms)
    with pytest.raises(NotUnderstood, match="32 bits"):
        rewritten(program, {"y": made}, {})


MEANINGS = {
    "interpolate": lambda term: interpolate_by_products(term.operator, *term.inputs),
    "cubic": lambda term: term.operator.definition(*term.inputs),
}


def like_another(how: dict[str, object], opset: int, type_: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """Resizes maps to the height and width of an input, all of them open."""
    nodes = [
        helper.make_node("Shape", ["x"], ["of_x"]),
        helper.make_node("Shape", ["to"], ["of_to"]),
        helper.make_node("Gather", ["of_x", "first"], ["nc"]),
        helper.make_node("Gather", ["of_to", "second"], ["hw"]),
        helper.make_node("Concat", ["nc", "hw"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "roi", "scales", "sizes"], ["y"], **how),
    ]
    ends = [("x", type_, ["n", "c", "h", "w"]), ("to", type_, ["m", "i", "j"]), ("y", type_, ["n", "c", "i", "j"])]
    indices = {"first": np.array([0, 1]), "second": np.array([1, 2])}
    empty = {name: np.zeros(0, np.float32) for name in ("roi", "scales")}
    return model(nodes, ends[:2], ends[2:], {**indices, **empty}, opset=opset)


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
    kinds = {n.op_type for n in result.proto().graph.node}
    assert "MatMul" in kinds
    assert "Resize" not in kinds
    assert_same(result.proto(), given)
