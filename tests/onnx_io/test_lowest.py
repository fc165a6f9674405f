"""Rows of attention that are masked by the lowest number there is: alike for all keys, as where it is written out."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from superopt.arithmetic.floats import SINGLE
from superopt.cost.runtimes import runtime_named
from superopt.demands import assuming
from superopt.evaluate import evaluate
from superopt.onnx_io import load, rewritten, understand
from superopt.onnx_io.lowest import _raised
from superopt.operators.attention.dot_product import MaskedAttention
from superopt.term import REAL, variable
from tests.models import model
from tests.onnx_io.networks import run
from tests.usable import where_usable

LOWEST = float(np.finfo(np.float32).min)
SHAPE = [2, 2, 4, 8]


def attention(masked_by: float, cleared: bool = False, mask_given: bool = False) -> onnx.ModelProto:
    """Queries over keys, added to a mask that is 0 where something is to be attended to."""
    ends = [(n, TensorProto.FLOAT, SHAPE) for n in "qkvy"]
    keep = ("m", TensorProto.FLOAT, [2, 1, 4, 4]) if mask_given else ("keep", TensorProto.BOOL, [2, 1, 4, 4])
    nodes = [] if mask_given else [helper.make_node("Where", ["keep", "nil", "low"], ["m"])]
    nodes += [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Add", ["s", "m"], ["sm"]),
        helper.make_node("Softmax", ["sm"], ["p"], axis=-1),
        helper.make_node("IsNaN", ["p"], ["none"]),
        helper.make_node("Where", ["none", "nil", "p"], ["shares"]),
        helper.make_node("MatMul", ["shares" if cleared else "p", "v"], ["y"]),
    ]
    weights = {} if mask_given else {"low": np.float32([masked_by])}
    return model(nodes, [*ends[:3], keep], ends[3:], {"nil": np.zeros(1, np.float32), **weights}, opset=23, ir=10)


def folded(given: onnx.ModelProto) -> onnx.ModelProto:
    """The same, as an Attention over what it reads."""
    program = understand(load(given))
    q, k, v = (program.values[n] for n in "qkv")
    (added,) = (step.terms[0] for step in program.steps if "sm" in step.outputs)
    (spread,) = (i for i in added.inputs if i is not program.values["s"])
    with assuming():
        made = rewritten(program, {"y": MaskedAttention(1.0)(q, k, v, spread)}, {})
    return ir.to_proto(made)


def inputs(mask_given: bool = False) -> dict[str, np.ndarray]:
    """Of the first batch nothing is attended to, of the second all, but by the last row."""
    rng = np.random.default_rng(0)
    keep = np.stack([np.zeros((1, 4, 4), bool), np.ones((1, 4, 4), bool)])
    keep[1, :, 3] = [True, False, True, False]
    mask = {"m": np.where(keep, 0, LOWEST).astype(np.float32)} if mask_given else {"keep": keep}
    return {**{n: rng.standard_normal(SHAPE).astype(np.float32) for n in "qkv"}, **mask}


CASES = [(LOWEST, False), (LOWEST, True), (0.7 * LOWEST, False), (-1e30, False), (-1e9, False), (-np.inf, True)]


@pytest.mark.parametrize("name", where_usable())
@pytest.mark.parametrize(("masked_by", "cleared"), CASES)
def test_a_row_that_attends_to_nothing_stays_what_it_was(masked_by: float, cleared: bool, name: str) -> None:
    given, runtime = attention(masked_by, cleared), runtime_named(name, 1)
    made = folded(given)
    assert "Attention" in {n.op_type for n in made.graph.node}
    (expected,) = run(given, inputs())
    (found,) = runtime.run(runtime.session(made.SerializeToString()), inputs())
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_so_it_does_where_the_mask_is_given() -> None:
    given = attention(LOWEST, mask_given=True)
    (expected,), (found,) = run(given, inputs(True)), run(folded(given), inputs(True))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masked_by", [-1e9, -np.inf])
def test_nothing_is_added_where_a_mask_never_holds_the_lowest_number(masked_by: float) -> None:
    assert {n.op_type for n in folded(attention(masked_by, cleared=True)).graph.node} == {"Where", "Attention"}


@settings(derandomize=True, deadline=None)
@drawn(st.lists(st.floats(width=32, allow_nan=False, max_value=0), min_size=2, max_size=40))
def test_masks_stay_in_order_and_above_what_a_gpu_takes_for_minus_infinity(numbers: list[float]) -> None:
    given = np.sort(np.float32(numbers))
    mask = variable("m", (len(numbers),), REAL)
    found = np.asarray(evaluate(_raised(mask), SINGLE, {mask: given}))
    with np.errstate(invalid="ignore"):  # minus infinity less itself
        assert not (np.diff(found) < 0).any()
    np.testing.assert_array_equal(found <= -1e30, np.isinf(given))
    np.testing.assert_array_equal(found[given >= -1e29], given[given >= -1e29])


USUAL = [0.0, -1e4, -1e9, -1e29, -1e30, -2e30, -3e30, -1e31, 0.7 * LOWEST, LOWEST]


def test_masks_that_people_use_and_sums_of_them_stay_apart() -> None:
    mask = variable("m", (len(USUAL),), REAL)
    found = np.asarray(evaluate(_raised(mask), SINGLE, {mask: np.float32(USUAL)}))
    assert found.dtype == np.float32
    assert (np.diff(found) < 0).all()
    assert found.min() > -1e30
