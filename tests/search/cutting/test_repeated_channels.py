"""Maps and kernels whose channels are all alike are seen so in pieces that add them up, and put back as they were."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.evaluate import evaluate
from superopt.onnx_io import load, understand
from superopt.search.cutting.pieces import Piece, cut_into_pieces
from superopt.term import replace_all, variables
from tests.models import assert_same

ONES = np.ones((4, 4, 3, 3), np.float32)
ROWS = np.tile(np.random.default_rng(0).standard_normal((1, 4, 3, 3)).astype(np.float32), (4, 1, 1, 1))
DRAWN = np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32)

CONVOLVED = "c = Conv <pads = [1, 1, 1, 1]> (m, k) n = Clip(c, zero, one)"
MASKS = {
    "repeated": f"m = Expand(x, to) {CONVOLVED}",
    "repeated and clipped": f"r = Clip(x, zero, one) m = Expand(r, to) {CONVOLVED}",
    "joined of two": "h = Expand(x, half) g = Clip(h, zero, one) n = Concat<axis = 1>(h, g)",
}
"""How a mask of four channels comes to be, before an opaque node that parts what is made of it from the rest."""


def masked(mask: str, kernel: np.ndarray, size: int = 8) -> onnx.ModelProto:
    """A mask, and what is known of each window of it, after another output that is opaque."""
    text = f"""<ir_version: 9, opset_import: ["": 18]>
g (float[1, 1, {size}, {size}] x) => (float[1, 4, {size}, {size}] y, float[1, 1, {size}, {size}] z)
<int64[4] to = {{1, 4, {size}, {size}}}, int64[4] half = {{1, 2, {size}, {size}}},
 float zero = {{0.0}}, float one = {{1.0}}>
{{
  {mask}
  z = Asinh(x)
  a = Conv <pads = [1, 1, 1, 1]> (n, k)
  b = Mul(a, a)
  y = Add(b, n)
}}"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(onnx.numpy_helper.from_array(kernel, "k"))
    return made


def last_piece(given: onnx.ModelProto) -> tuple[Piece, dict[str, np.ndarray]]:
    """The piece behind the opaque node, and values for what it reads, as the model computes them."""
    program = understand(load(given))
    return cut_into_pieces(program)[-1], {"k": program.data("k")}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("kernel", [ONES, ROWS], ids=["ones", "equal rows"])
def test_a_mask_and_its_kernel_are_shown_as_one_channel_repeated(mask: str, kernel: np.ndarray) -> None:
    piece, values = last_piece(masked(mask, kernel))
    assert {str(v) for v in piece.shown} == {"?k", "?n"}
    values["n"] = np.broadcast_to(np.random.default_rng(2).standard_normal((1, 1, 8, 8)), (1, 4, 8, 8))
    for v, whole in piece.shown.items():
        env = {u: values[str(u)[1:]] for u in variables(whole)}
        np.testing.assert_array_equal(evaluate(whole, FLOAT, env), values[str(v)[1:]])


def test_put_back_they_are_the_values_of_the_model() -> None:
    piece, _ = last_piece(masked(MASKS["repeated"], ONES))
    assert piece.hidden(piece.graph.outputs) == replace_all(piece.graph.outputs, {w: v for v, w in piece.shown.items()})
    assert not any("expand" in str(output) for output in piece.hidden(piece.graph.outputs))


def test_beside_other_kernels_nothing_is_shown() -> None:
    assert not last_piece(masked(MASKS["repeated"], DRAWN))[0].shown


def test_channels_that_differ_are_not_shown() -> None:
    differing = "r = Relu(x) m = Concat<axis = 1>(x, x, x, r) n = Conv <pads = [1, 1, 1, 1]> (m, drawn)"
    given = masked(differing, ONES)
    given.graph.initializer.append(onnx.numpy_helper.from_array(DRAWN, "drawn"))
    assert {str(v) for v in last_piece(given)[0].shown} == {"?k"}


def test_a_mask_is_convolved_in_one_channel(options: Options) -> None:
    source = masked(MASKS["repeated"], ONES, size=64)
    result = superopt.optimize(source, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), source)


def test_what_a_thousand_nodes_lie_before_is_not_looked_for() -> None:
    chain = " ".join(f"m{i + 1} = Neg(m{i})" for i in range(1500))
    piece, _ = last_piece(masked(f"m0 = Expand(x, to) {chain} n = Abs(m1500)", ONES))
    assert {str(v) for v in piece.shown} == {"?k"}
