"""What a loop appends to a list that is stacked in the end is an output of its own."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

FEEDS = {"h0": np.float32([[1, -1, 2, 0]]), "w": np.float32([[1, 3, -2, 0.5]])}
APPENDS = "r = Add(h, w) k = Mul(r, r) o = SequenceInsert(s, k)"


def loop(body: str = APPENDS, after: str = "y = ConcatFromSequence<axis = 0, new_axis = 1>(s)", more: str = "") -> str:
    """A Loop of a tensor and a list of tensors, of which more may be collected by itself."""
    given, left = (", e", ", float[1, 4] p") if more else ("", "")
    return f"""g (float[1, 4] h0, float[1, 4] w) => (float[a, b, c] y{more}) <bool go = {{1}}, int64 n = {{3}}> {{
      s0 = SequenceEmpty<dtype = 1>() h, s{given} = Loop<body = t (int64 i, bool c, float[1, 4] h, seq(float[1, 4]) s)
        => (bool d, float[1, 4] r, seq(float[1, 4]) o{left}) {{ d = Identity(c) {body} }}>(n, go, h0, s0) {after} }}"""


CASES = {
    "what is made in a turn": loop(),
    "a state": loop("r = Add(h, w) o = SequenceInsert(s, h)"),
    "an outer value": loop("r = Add(h, w) o = SequenceInsert(s, w)"),
    "stacked along another axis": loop(after="y = ConcatFromSequence<axis = 1, new_axis = 1>(s)"),
    "along the last one": loop(after="y = ConcatFromSequence<axis = -1, new_axis = 1>(s)"),
    "beside what is collected already": loop(f"{APPENDS} p = Exp(h)", more=", float[l, m, q] e"),
    "which is collected too": loop("r = Add(h, w) p = Exp(h) o = SequenceInsert(s, p)", more=", float[l, m, q] e"),
    "beside its last state": loop().replace("c] y", "c] y, float[1, 4] h"),
    "stacked twice": loop(after="""u = ConcatFromSequence<axis = 0, new_axis = 1>(s)
      v = ConcatFromSequence<axis = 0, new_axis = 1>(s) y = Add(u, v)"""),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_no_list_goes_from_turn_to_turn(text: str) -> None:
    source = model(text)
    onnx.checker.check_model(source)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    assert not any("Sequence" in node.op_type for node in made.graph.node)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    for ours, theirs in zip(run(made, FEEDS), run(source, FEEDS), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_two_lists_of_the_same_are_two_outputs() -> None:
    source = model("""g (float[1, 4] h0, float[1, 4] w) => (float[a, b, c] y) <bool go = {1}, int64 n = {3}> {
      s0 = SequenceEmpty<dtype = 1>() h, s, u = Loop<body = p
        (int64 i, bool c, float[1, 4] h, seq(float[1, 4]) s, seq(float[1, 4]) t) =>
        (bool d, float[1, 4] r, seq(float[1, 4]) o, seq(float[1, 4]) f)
        { d = Identity(c) r = Add(h, w) o = SequenceInsert(s, r) f = SequenceInsert(t, r) }>(n, go, h0, s0, s0)
      v = ConcatFromSequence<axis = 0, new_axis = 1>(u) z = ConcatFromSequence<axis = 0, new_axis = 1>(s)
      y = Mul(v, z) }""")
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    assert [node.op_type for node in made.graph.node] == ["Loop", "Identity", "Identity", "Mul"]
    np.testing.assert_array_equal(run(made, FEEDS)[0], run(source, FEEDS)[0])


STAYING = {
    "joined along an axis that they have": loop(
        after="z = ConcatFromSequence<axis = 0>(s) a = Constant<value = int64[1] {0}>() y = Unsqueeze(z, a)"
    ),
    "put in front": loop("r = Add(h, w) f = Constant<value_int = 0>() o = SequenceInsert(s, r, f)"),
    "read in a turn": loop(f"{APPENDS} q = SequenceLength(s)"),
    "of which one is taken": loop(after="f = Constant<value_int = 0>() k = SequenceAt(s, f) a = Constant<value ="
                                        " int64[1] {0}>() y = Unsqueeze(k, a)"),
    "that is stacked in a branch": loop(after="""
      y = If(q) <then_branch = p () => (float[d, e, f] u) { u = ConcatFromSequence<axis = 0, new_axis = 1>(s) },
        else_branch = o () => (float[l, m, n] v) { k = ConcatFromSequence<axis = 0, new_axis = 1>(s) v = Neg(k) }>
      """).replace("w) =>", "w, bool q) =>"),
    "that nothing reads": loop(after="a = Constant<value = int64[1] {0}>() y = Unsqueeze(h, a)"),
    "that begins with something": loop().replace("SequenceEmpty<dtype = 1>()", "SequenceConstruct(w)"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_another_list_stays(text: str) -> None:
    source = model(text)
    onnx.checker.check_model(source)
    found = understand(load(source)).model
    assert any("Sequence" in node.op_type for node in found.graph)
