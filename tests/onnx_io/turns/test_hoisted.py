"""What all turns of a loop share is computed before the first; what may differ, or fail, stays in its turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import check, load, understand
from superopt.onnx_io.turns.hoisted import hoisted
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

HELD = "<bool go = {1}, int64 n = {3}, float[2] w = {0.5, -2}, float half = {0.5}>"
FEEDS = {"x": np.float32([1, -3]), "z": np.float32([2, 0.25])}


def loop(
    nodes: str, begins: str = "z", inputs: str = "float[2] x, float[2] z", more: str = "", leaves: str = ""
) -> str:
    """A Loop of a state `h` that ends as `r`, and of `more` states."""
    outputs = "y" + ("".join(f", y{i}" for i in range(more.count("float"))))
    return f"""g ({inputs}) => (float[2] y) {HELD} {{ {outputs} = Loop(n, go, {begins})
      <body = b (int64 i, bool c, float[2] h{more}) => (bool d, float[2] r{leaves}) {{ d = Identity(c) {nodes} }}> }}"""


def turns(source: onnx.ModelProto) -> list[str]:
    """The operators of the bodies of loops."""
    bodies = [a.g for node in source.graph.node for a in node.attribute if a.name == "body"]
    return [node.op_type for body in bodies for node in body.node]


def moved(text: str, feeds: Mapping[str, np.ndarray] = FEEDS) -> onnx.ModelProto:
    """The model with what turns share before them, which computes the same under the same interface."""
    source = model(text)
    found = hoisted(understand(load(source)))
    assert found is not None
    check(found)
    made = ir.to_proto(found)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    for ours, theirs in zip(run(made, feeds), run(source, feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return made


def test_what_is_made_of_outer_values_alone_is_computed_once() -> None:
    made = moved(loop("a = Mul(x, w) b = Tanh(a) m = Mul(h, b) r = Add(m, a)"))
    assert turns(made) == ["Identity", "Mul", "Add"]
    assert [n.op_type for n in made.graph.node] == ["Mul", "Tanh", "Loop"]


def test_constants_of_a_body_that_both_read_stay_there_too() -> None:
    made = moved(loop("k = Constant<value = float[2] {3, 4}>() v = Neg(k) a = Mul(x, v) m = Mul(h, v) r = Add(m, a)"))
    assert turns(made) == ["Identity", "Constant", "Neg", "Mul", "Add"]
    assert [n.op_type for n in made.graph.node] == ["Constant", "Neg", "Mul", "Loop"]


def test_states_that_are_passed_on_are_what_they_begin_with() -> None:
    text = loop("u = Identity(q) a = Exp(q) r = Add(h, a)", "z, x", more=", float[2] q", leaves=", float[2] u")
    assert turns(moved(text)) == ["Identity", "Identity", "Add"]


def test_states_that_change_places_stay() -> None:
    text = loop("a = Exp(q) r = Add(p, a) t = Identity(q) u = Identity(p)", "z, x, x", more=", float[2] q, float[2] p",
                leaves=", float[2] u, float[2] t")  # fmt: skip
    assert hoisted(understand(load(model(text)))) is None


def test_a_scan_shares_what_its_rows_do_not_tell() -> None:
    made = moved(
        f"""g (float[2] z, float[3, 2] x) => (float[2] y) {HELD} {{ a = Relu(z)
          y = Scan<num_scan_inputs = 1, body = b (float[2] h, float[2] e) => (float[2] r)
            {{ k = Exp(a) m = Mul(h, k) r = Add(m, e) }}>(z, x) }}""",
        {"z": FEEDS["z"], "x": np.arange(6, dtype=np.float32).reshape(3, 2)},
    )
    assert turns(made) == ["Mul", "Add"]


def test_a_slice_that_a_scan_gives_again_is_one_of_each_turn() -> None:
    text = f"""g (float[2] z, float[3, 2] x) => (float[2] y, float[3, 2] s) {HELD} {{
      y, s = Scan<num_scan_inputs = 1, body = b (float[2] h, float[2] e) => (float[2] r, float[2] o)
        {{ a = Exp(e) k = ReduceSum<keepdims = 0>(a) r = Add(h, k) o = Identity(e) }}>(z, x) }}"""
    assert hoisted(understand(load(model(text)))) is None


def test_a_turn_reads_its_own_state_of_the_name_that_an_outer_value_has() -> None:
    made = moved(f"""g (float[2] x, float[2] z) => (float[2] y, float[2] p) {HELD} {{ y, p = Loop(n, go, x, z)
      <body = b (int64 i, bool c, float[2] z, float[2] x) => (bool d, float[2] r, float[2] u) {{ d = Identity(c)
        a = Exp(x) m = Add(z, a) r = Sub(m, x) u = Identity(x) }}> }}""")
    assert turns(made) == ["Identity", "Add", "Sub", "Identity"]


FAILING = {
    "scattered past the end": ("a = ScatterElements(x, k, z)", "float[2] x, float[2] z, int64[2] k", {"k": [9, 9]}),
    "the largest of too few": ("a, o = TopK(x, k)", "float[2] x, float[2] z, int64[1] k", {"k": [9]}),
    "repeated to another size": ("t = Tanh(v) e = Expand(t, k) a = ReduceSum<keepdims = 0>(e)",
                                 "float[m] v, float[2] z, int64[1] k", {"v": [1, 2], "k": [3]}),
    "sizes that do not go together": ("e = Mul(v, u) a = ReduceSum<keepdims = 0>(e)",
                                      "float[m] v, float[l] u, float[2] z", {"v": [1, 2], "u": [1, 2, 3]}),
    "matrices that do not": ("e = MatMul(v, u) a = ReduceSum<keepdims = 0>(e)",
                             "float[1, m] v, float[l, 1] u, float[2] z", {"v": [[1, 2]], "u": [[1], [2], [3]]}),
    "words that are no numbers": ("e = Cast<to = 1>(v) a = ReduceSum<keepdims = 0>(e)", "string[2] v, float[2] z",
                                  {"v": ["one", "two"]}),
    "a window that does not fit": ("""k = Constant<value = float[1, 1, 3] {1, 1, 1}>() e = Conv(v, k)
      a = ReduceSum<keepdims = 0>(e)""", "float[1, 1, m] v, float[2] z", {"v": [[[1]]]}),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "inputs", "given"), FAILING.values(), ids=FAILING)
def test_a_loop_without_a_turn_does_not_fail_for_what_it_would_not_have_computed(
    nodes: str, inputs: str, given: Mapping[str, list[float]]
) -> None:
    """One turn fails."""
    source = model(loop(f"{nodes} r = Add(h, a)", inputs=f"{inputs}, int64 times").replace("Loop(n,", "Loop(times,"))
    types = {i.name: onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in source.graph.input}
    feeds = {
        name: np.array(n, types[name]) for name, n in (FEEDS | {"times": 0} | dict(given)).items() if name in types
    }
    found = hoisted(understand(load(source)))
    np.testing.assert_array_equal(run(ir.to_proto(found) if found else source, feeds)[0], FEEDS["z"])
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        run(source, feeds | {"times": np.array(1)})


def test_elements_of_16_bits_are_computed_before_the_turns_too() -> None:
    text = loop("b = Mul(x, x) e = Cast<to = 1>(b) a = Tanh(e) r = Add(h, a)", inputs="float16[2] x, float[2] z")
    assert turns(moved(text, FEEDS | {"x": FEEDS["x"].astype(np.float16)})) == ["Identity", "Add"]


def test_two_loops_whose_values_have_the_same_names_share_none() -> None:
    body = "(int64 i, bool c, float[2] h) => (bool d, float[2] r) { d = Identity(c) a = OP(x) r = Add(h, a) }"
    first, second = body.replace("OP", "Exp"), body.replace("OP", "Tanh")
    made = moved(f"""g (float[2] x, float[2] z) => (float[2] y) {HELD}
      {{ v = Loop(n, go, z) <body = p {first}> y = Loop(n, go, v) <body = q {second}> }}""")
    assert turns(made) == ["Identity", "Add"] * 2


STAYING = {
    "what a turn tells": "a = Exp(h) r = Add(a, x)",
    "what takes no time": "k = Constant<value = int64[1] {2}>() a = Reshape(x, k) r = Add(h, a)",
    "what is made of weights": "a = Exp(w) r = Add(h, a)",
    "what fails for some numbers": "k = Constant<value = int64[2] {1, 0}>() a = Gather(x, k) r = Add(h, a)",
    "what is drawn anew": "a = RandomNormalLike(x) r = Add(h, a)",
    "what a branch may compute": """k = Greater(h, x) j = Cast<to = 6>(k) t = ReduceMax<keepdims = 0>(j)
      b = Cast<to = 9>(t) a = If(b) <then_branch = e () => (float[2] f) { f = Exp(x) },
      else_branch = s () => (float[2] u) { u = Neg(x) }> r = Add(h, a)""",
}


@pytest.mark.parametrize("nodes", STAYING.values(), ids=STAYING)
def test_it_stays(nodes: str) -> None:
    assert hoisted(understand(load(model(loop(nodes))))) is None


def test_a_state_that_is_what_turns_share_is_no_turns() -> None:
    """A body computes its own outputs."""
    assert turns(moved(loop("a = Exp(x) b = Mul(a, x) r = Mul(b, x) s = Add(h, r)"))) == ["Identity", "Mul", "Add"]
