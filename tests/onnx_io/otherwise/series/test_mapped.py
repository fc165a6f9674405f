"""A Scan whose turns know nothing of each other is computed in all of them at once."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DRAWN = np.random.default_rng(0)
X, Y = DRAWN.standard_normal((5, 4)).astype(np.float32), DRAWN.standard_normal((3, 4)).astype(np.float32)

DISTANCES = "d = Sub(s, r) e = ReduceSumSquare<axes = [1], keepdims = 0>(d) o = Identity(e)"


def scan(body: str, outputs: str = "float[3, n] y", of: str = "x, z", x: str = "n, 4", attributes: str = "") -> str:
    """A Scan over the rows of z, with x as a state that stays."""
    return f"""g (float[{x}] x, float[3, 4] z) => ({outputs}) {{
        t, y = Scan<num_scan_inputs = 1{attributes}, body = b
            (float[a, c] s, float[f] r) => (float[a, c] q, float[] o) {{ q = Identity(s) {body} }}>({of}) }}"""


CASES = {
    "distances to each row": (scan(DISTANCES), 17),
    "to any number of rows": (scan(DISTANCES, outputs="float[m, n] y").replace("[3, 4] z", "[m, 4] z"), 17),
    "of known sizes": (scan(DISTANCES, x="5, 4"), 17),
    "where axes are attributes": (scan("d = Add(s, x) e = Sub(r, d) o = ReduceL1<axes = [-1], keepdims = 0>(e)"), 11),
    "a sum along an axis that is an input": (
        scan("a = Constant<value_ints = [-1]>() d = Sub(s, r) e = Abs(d) o = ReduceSum<keepdims = 0>(e, a)"),
        18,
    ),
    "axes that stay": (scan("d = Mul(r, s) o = ReduceMax<axes = [0]>(d)", outputs="float[3, 1, 4] y", x="5, 4"), 17),
    "what only the state goes into": (
        scan("h = Exp(s) d = Mul(h, r) o = ReduceMean<axes = [0, 1]>(d)", outputs="float[3, 1, 1] y", x="5, 4"),
        17,
    ),
    "rows of which nothing is reduced": (scan("p = Tanh(r) o = Add(p, r)", outputs="float[3, 4] y"), 17),
    "a state that is given too": (scan(DISTANCES, outputs="float[n, 4] t, float[3, n] y"), 17),
    "what it reads from outside": (
        scan("d = Add(s, x) e = Sub(d, r) o = ReduceMin<axes = [1]>(e)", "float[3, n, 1] y"),
        17,
    ),
}


@pytest.mark.parametrize(("text", "opset"), CASES.values(), ids=CASES)
def test_all_turns_are_computed_at_once(text: str, opset: int) -> None:
    given = model(text, opset)
    onnx.checker.check_model(given, full_check=True)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert "Scan" not in [n.op_type for n in made.graph.node]
    assert not program.summary.opaque
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    for before, after in zip(run(given, {"x": X, "z": Y}), run(made, {"x": X, "z": Y}), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-6)


def test_a_weight_of_the_body_becomes_one_of_the_model() -> None:
    given = model(scan("d = Sub(s, r) e = Pow(d, w) o = ReduceSum<keepdims = 0>(e, a)"), 17)
    (body,) = (a.g for a in given.graph.node[0].attribute if a.name == "body")
    body.initializer.append(onnx.numpy_helper.from_array(np.float32(2.0), "w"))
    body.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "a"))
    made = ir.to_proto(understand(load(given)).model)
    assert len(made.graph.initializer) == 1  # and the axes are those of all turns
    (before, after) = (run(m, {"x": X, "z": Y})[0] for m in (given, made))
    np.testing.assert_allclose(before, after, rtol=1e-6)


STAYING = {
    "a state that changes": scan(DISTANCES).replace("q = Identity(s)", "q = Add(s, r)"),
    "the last row first": scan(DISTANCES, attributes=", scan_input_directions = [1]"),
    "columns": scan(
        "d = Exp(r) o = Identity(d)", outputs="float[4, 3] y", of="x, z", attributes=", scan_input_axes = [1]"
    ),
    "what is no row's own": scan("o = CumSum(r, a)").replace("q = ", "a = Constant<value_int = 0>() q = "),
    "a product": scan("o = MatMul(s, r)"),
}


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_other_scans_stay(text: str) -> None:
    assert "Scan" in [n.op_type for n in understand(load(model(text, 17))).model.graph]


@pytest.mark.parametrize("axis", [1, 5])
def test_a_scan_stays_whose_axes_somebody_else_may_give_or_that_has_none_of_them(axis: int) -> None:
    text = scan("d = Sub(s, r) o = ReduceSum<keepdims = 0>(d, axes)").replace("4] z)", "4] z, int64[1] axes)")
    given = model(text if axis == 1 else text.replace(", int64[1] axes)", ")"), 18)
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.array([axis]), "axes"))
    assert "Scan" in [n.op_type for n in understand(load(given)).model.graph]


def test_rows_of_many_features_are_taken_in_turns() -> None:
    wide = "g (float[n, 64] x, float[3, 64] z) =>".join(scan(DISTANCES).split("g (float[n, 4] x, float[3, 4] z) =>"))
    assert "Scan" in [n.op_type for n in understand(load(model(wide, 17))).model.graph]


def test_the_model_that_was_given_keeps_its_turns() -> None:
    source = load(model(CASES["distances to each row"][0], 17))
    understand(source)
    assert [n.op_type for n in source.graph] == ["Scan"]
