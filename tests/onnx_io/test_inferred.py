"""What an opaque node gives has the sizes that follow from its inputs, so that what comes after it is understood."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from superopt.dim import Dim, symbol
from superopt.onnx_io import load, rewritten, understand
from superopt.onnx_io.inferred import Known, inferred
from superopt.relations import are_equal
from superopt.term import Type
from tests.onnx_io.models import model, terms
from tests.onnx_io.networks import run

MASKED = """g (int64[B, S] m, float[B, 2, S, S] x) => (float[B, 2, S, S] y)
  <int64 i0 = {0}, int64 i1 = {1}, int64[1] at = {0}, int64[1] one = {1}, float nil = {0}, float low = {-1e9}>
  { s = Shape(m) b = Gather(s, i0) t = Gather(s, i1) bu = Unsqueeze(b, at) tu = Unsqueeze(t, at)
    to = Concat<axis = 0>(bu, one, one, tu) keep = Cast<to = 9>(m) r = Reshape(keep, to) again = Cast<to = 9>(r)
    w = Where(again, nil, low) a = Add(x, w) y = Softmax<axis = 3>(a) }"""
"""How transformers masks attention, as torch writes it."""

B, S, R = symbol("B"), symbol("S"), symbol("R")
X, LONGER, AXIS = Type("int64", (B, S)), Type("int64", (B, R + S)), np.array(1)

NODES: dict[str, tuple[str, dict[str, Any], list[Known], tuple[Dim | None, ...]]] = {
    "a cast": ("Cast", {"to": 9}, [X], (B, S)),
    "a cast of what has a sum of sizes": ("Cast", {"to": 9}, [LONGER], (B, R + S)),
    "sums along an axis": ("CumSum", {}, [X, AXIS], (B, S)),
    "broadcasting": ("Mul", {}, [Type("int64", (B, 1, 1)), Type("int64", (1, S))], (B, 1, S)),
    "a product of sizes": ("Flatten", {"axis": 0}, [X], (1, B * S)),
    "sizes that are computed": ("ConstantOfShape", {}, [(B, 1, S)], (B, 1, S)),
    "as many as are found": ("NonZero", {}, [X], (2, None)),
    "the first five, or as many as there are": (
        "Slice",
        {},
        [X, np.int64([0]), np.int64([5]), np.int64([1])],
        (B, None),
    ),
    "a sum that is none of the sizes given": ("Concat", {"axis": 1}, [X, Type("int64", (B, R))], (B, None)),
}
"""A node, and the sizes of what it gives; None where those given do not tell."""


def test_attention_behind_a_mask_that_is_opaque_is_understood() -> None:
    program = understand(load(model(MASKED)))
    assert set(program.summary.opaque) == {"Cast"}
    made = rewritten(program, terms(program), {})
    rng = np.random.default_rng(0)
    for b, s in ((2, 3), (1, 1)):
        given = {"m": rng.integers(0, 2, (b, s)), "x": rng.standard_normal((b, 2, s, s)).astype(np.float32)}
        np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(model(MASKED), given)[0])


@pytest.mark.parametrize(("op_type", "attributes", "inputs", "sizes"), NODES.values(), ids=NODES)
def test_a_node_alone_tells_the_sizes_of_what_it_gives(
    op_type: str, attributes: dict[str, Any], inputs: list[Known], sizes: tuple[Dim | None, ...]
) -> None:
    given = {f"i{n}": known for n, known in enumerate(inputs)}
    node = ir.from_proto(helper.make_node(op_type, list(given), ["y"], **attributes))
    assert inferred(node, 17, given)["y"][1] == sizes


def test_nothing_is_told_of_sizes_that_do_not_fit() -> None:
    node = ir.from_proto(helper.make_node("Mul", ["a", "b"], ["y"]))
    assert inferred(node, 17, {"a": Type("int64", (B,)), "b": Type("int64", (S,))}) == {}


@pytest.mark.parametrize("known", [Type("int64", (15 * B * S * R,)), (15 * B * S * R,)], ids=["a type", "sizes"])
def test_nothing_is_told_of_products_of_more_sizes_than_have_room(known: Known) -> None:
    node = ir.from_proto(helper.make_node("Identity", ["a"], ["y"]))
    assert inferred(node, 17, {"a": known}) == {}


def test_a_shape_among_sizes_may_have_a_part_without_elements() -> None:
    """`x.unflatten(-1, (2, 3))`: what follows the last axis is nothing."""
    text = """g (float[B, 6] x) => (float[B, 2, 3] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
      int64[1] end = {9223372036854775807}, int64[2] parts = {2, 3}>
      { s = Shape(x) before = Slice(s, zero, one) after = Slice(s, two, end)
        to = Concat<axis = 0>(before, parts, after) y = Reshape(x, to) }"""
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
    assert str(program.values["y"].shape[0]) == "B"


def test_pads_by_widths_that_are_computed_are_understood() -> None:
    """Half an image, enlarged and padded to the size that it had: `F.pad(up, [0, w % 2])`, whose pads torch turns."""
    text = """g (float[B, W] x) => (float[B, V] y)
      <int64 i1 = {1}, int64 two = {2}, int64[1] at = {0}, int64[1] zero = {0}, int64[1] axis = {1},
       int64[2] rest = {0, 0}, int64[2] pairs = {-1, 2}, int64[1] last = {-1}, int64[1] flat = {-1},
       int64[1] first = {-9223372036854775807}>
      { s = Shape(x) w = Gather(s, i1) h = Div(w, two) e = Mul(h, two) eu = Unsqueeze(e, at)
        cut = Slice(x, zero, eu, axis) d = Sub(w, e) du = Unsqueeze(d, at)
        p = Concat<axis = 0>(zero, du, rest) q = Reshape(p, pairs) r = Slice(q, last, first, at, last)
        t = Transpose(r) u = Reshape(t, flat) c = Cast<to = 7>(u) padded = Pad(cut, c) y = Add(padded, x) }"""
    program = understand(load(model(text)))
    assert program.summary.opaque == {}
    made = rewritten(program, terms(program), {})
    for w in (4, 5):
        given = {"x": np.arange(2.0 * w, dtype=np.float32).reshape(2, w)}
        np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(model(text), given)[0])


def test_a_model_behind_whose_reshapes_onnx_loses_sizes_is_told_from_one_whose_sizes_have_names() -> None:
    lost = """g (float[B, S, 4] x, float[2, 2] w) => (float[P, Q, R, T] y)
      <int64 i0 = {0}, int64 i1 = {1}, int64[1] at = {0}, int64[2] two = {2, 2}>
      { s = Shape(x) n = Size(x) b = Gather(s, i0) t = Gather(s, i1) m = Mul(b, t) k = Div(m, b)
        bu = Unsqueeze(b, at) tu = Unsqueeze(k, at) to = Concat<axis = 0>(bu, tu, two) r = Reshape(x, to)
        u = MatMul(r, w) y = Relu(u) }"""
    kept = "g (float[unk__3, S, 4] x) => (float[B, S, 4] y) { r = Relu(x) y = Sqrt(r) }"
    fixed = "g (float[2, 4] x) => (float[2, 4] y) { r = Relu(x) y = Sqrt(r) }"
    assert [understand(load(model(text))).loses_sizes for text in (lost, kept, fixed)] == [True, False, False]


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_what_is_cut_of_an_open_size_is_of_another(opset: int) -> None:
    bounds = "(x, at, end, axis)" if opset > 9 else "<starts = [0], ends = [4], axes = [1]>(x)"
    text = f"""g (float[B, S] x) => (float[B, T] y) <int64[1] at = {{0}}, int64[1] end = {{4}}, int64[1] axis = {{1}}>
      {{ cut = Slice{bounds} y = Relu(cut) }}"""
    program = understand(load(model(text, opset)))
    (batch, length), given = program.values["cut"].shape, program.values["x"].shape
    assert are_equal(batch, given[0])
    assert not are_equal(length, given[1])


def test_what_is_cut_of_what_may_have_fewer_than_no_elements_is_read() -> None:
    text = """g (float[B, S] x) => (float[B, T] y)
      <int64[1] at = {0}, int64[1] one = {1}, int64[1] last = {-1}>
      { within = Slice(x, one, last, one) first = Slice(within, at, one, one) y = Relu(first) }"""
    program = understand(load(model(text)))
    assert set(program.summary.opaque) == {"Slice"}
    assert are_equal(program.values["first"].shape[0], program.values["x"].shape[0])
