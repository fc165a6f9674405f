"""Bodies of loops are taken out as models and put in again."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from superopt.onnx_io import Branch, bodies, check, lifted, load, spliced, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

WEIGHTS = "<bool go = {1}, int64 n = {3}, float[2] w = {0.5, -2}>"
LOOP = f"""g (float[2] x, float[2] z) => (float[2] y, float[3, 2] s) {WEIGHTS} {{ a = Relu(x)
  y, s = Loop(n, go, z) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r, float[2] o)
    {{ d = Identity(c) m = Mul(h, w) r = Add(m, a) o = Tanh(r) }}> }}"""
SCAN = f"""g (float[2] z, float[2, 3] x) => (float[2] y, float[3, 2] s) {WEIGHTS} {{
  y, s = Scan<num_scan_inputs = 1, scan_input_axes = [-1], body = b (float[2] h, float[2] e) => (float[2] r, float[2] o)
    {{ m = Mul(h, w) r = Add(m, e) o = Tanh(r) }}>(z, x) }}"""
GROWING = f"""g (float[1, 1] x, float[1, k] z) => (float[1, f] y) {WEIGHTS} {{
  y = Loop(n, go, x) <body = b (int64 i, bool c, float[1, 1] h) => (bool d, float[1, 2] r)
    {{ d = Identity(c) m = Neg(h) v = Relu(z) r = Concat<axis = 1>(m, v) }}> }}"""
PASSING = f"""g (float[2] x) => (float[2] y, float[2] p, float[3, 2] s, float[3, 2] t) {WEIGHTS} {{ q = Neg(x)
  y, p, s, t = Loop(n, go, x, q) <body = b (int64 i, bool c, float[2] h, float[2] u)
    => (bool c, float[2] r, float[2] u, float[2] u, float[2] r) {{ r = Mul(h, u) }}> }}"""
DECIDING = f"""g (float[2] x) => (float[2] y) {WEIGHTS} {{
  y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r) {{ d = Identity(c)
    one = Constant<value = int64 {{1}}>() is = Equal(i, one) r = If(is) <
      then_branch = p () => (float[2] e) {{ e = Mul(h, w) }},
      else_branch = q () => (float[2] f) {{ f = Neg(h) }}> }}> }}"""
COPIED = f"""g (float[2] x) => (float[2] y, float[2] p) {WEIGHTS} {{ q = Neg(x)
  y, p = Loop(n, go, x, q) <body = b (int64 i, bool c, float[2] h, float[2] u)
    => (bool c, float[2] r, float[2] v) {{ v = Identity(u) m = Mul(h, v) r = Tanh(m) }}> }}"""
EXCHANGING = f"""g (float[2, 3] x, float[3, 2] z) => (float[a, b] y, float[d, e] p, float[3] s) {WEIGHTS} {{
  y, p, s = Loop(n, go, x, z) <body = b (int64 i, bool c, float[2, 3] h, float[3, 2] u)
    => (bool c, float[f, k] v, float[j, l] t, float o) {{ v = Identity(u) t = Identity(h) m = MatMul(h, u)
      o = ReduceSum<keepdims = 0>(m) }}> }}"""
FEEDS = {"x": np.float32([1, -3]), "z": np.float32([2, 0.25])}
RUN = {
    "loop": (LOOP, FEEDS),
    "scan": (SCAN, FEEDS | {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}),
    "growing": (GROWING, {"x": np.float32([[2]]), "z": np.float32([[3]])}),
    "passing": (PASSING, {"x": FEEDS["x"]}),
    "deciding": (DECIDING, {"x": FEEDS["x"]}),
}


def taken_out(text: str) -> ir.Model | None:
    program = understand(load(model(text)))
    (body,) = bodies(program)
    return lifted(program, body)


def shapes(given: ir.Model) -> dict[str, list[str]]:
    return {v.name or "": [str(d) for d in v.shape or ()] for v in given.graph.inputs}


def test_a_body_is_a_model_of_what_its_turn_is_given_and_reads() -> None:
    found = taken_out(LOOP)
    assert found is not None
    check(found)
    assert shapes(found) == {"i": [], "c": [], "h": ["2"], "a": ["2"]}
    assert list(found.graph.initializers) == ["w"]
    feeds = {"i": np.int64(0), "c": np.bool_(True), "h": FEEDS["x"], "a": FEEDS["z"]}
    assert [v.name for v in found.graph.outputs] == ["r", "o"]  # d is what c is
    r, o = run(ir.to_proto(found), {n: np.asarray(a) for n, a in feeds.items()})
    np.testing.assert_allclose(r, FEEDS["x"] * [0.5, -2] + FEEDS["z"])
    np.testing.assert_allclose(o, np.tanh(r), rtol=1e-6)


def test_a_scan_gives_its_turn_what_it_goes_through_without_that_axis() -> None:
    found = taken_out(SCAN)
    assert found is not None
    assert shapes(found) == {"h": ["2"], "e": ["2"]}


def test_what_is_not_declared_is_of_the_sizes_that_the_loop_begins_with() -> None:
    source = model(SCAN.replace("float[2] h, float[2] e", "float h, float e"))
    for info in next(a.g for a in source.graph.node[0].attribute if a.name == "body").input:
        info.type.tensor_type.ClearField("shape")
    program = understand(load(source))
    found = lifted(program, Branch(0, "body"))
    assert found is not None
    assert shapes(found) == {"h": ["2"], "e": ["2"]}


def test_a_size_that_grows_is_open_whatever_is_declared() -> None:
    found = taken_out(GROWING)
    assert found is not None
    assert shapes(found) == {"i": [], "c": [], "h": ["1", "h_1"], "z": ["1", "k"]}
    assert str(understand(load(found)).values["m"].shape[1]) == "h_1"


@pytest.mark.parametrize(("text", "feeds"), RUN.values(), ids=RUN)
def test_a_body_put_in_again_computes_what_it_did(text: str, feeds: dict[str, np.ndarray]) -> None:
    demand_same_again(text, feeds)


def test_a_copy_that_is_passed_on_and_read_too_is_computed_for_both() -> None:
    demand_same_again(COPIED, {"x": FEEDS["x"]})


def test_a_copy_that_is_passed_on_twice_has_two_names() -> None:
    text = COPIED.replace("y, p =", "y, p, t =").replace("float[2] p)", "float[2] p, float[3, 2] t)")
    demand_same_again(text.replace("float[2] v)", "float[2] v, float[2] v)"), {"x": FEEDS["x"]})


def test_states_that_are_passed_on_to_other_places_have_open_sizes() -> None:
    found = taken_out(EXCHANGING)
    assert found is not None
    assert shapes(found) == {"i": [], "c": [], "h": ["h_0", "h_1"], "u": ["u_0", "u_1"]}
    demand_same_again(EXCHANGING, {"x": np.ones((2, 3), np.float32), "z": np.ones((3, 2), np.float32)})


def test_a_copy_for_an_output_has_a_name_of_its_own() -> None:
    found = taken_out(PASSING.replace("r = Mul(h, u)", "r_2 = Neg(u) r = Mul(h, r_2)"))
    assert found is not None
    check(found)
    assert [v.name for v in found.graph.outputs] == ["r", "r_3"]


def demand_same_again(text: str, feeds: dict[str, np.ndarray]) -> None:
    """Fail where a model is none any more, or computes another thing, with its body taken out and put in again."""
    source = model(text)
    program = understand(load(source))
    (body,) = bodies(program)
    found = lifted(program, body)
    assert found is not None
    made = spliced(program, {body: found})
    check(made)
    (inner,) = (a.g for n in ir.to_proto(made).graph.node for a in n.attribute if a.name == "body")
    (before,) = (a.g for n in source.graph.node for a in n.attribute if a.name == "body")
    assert inner.input == before.input
    for ours, theirs in zip(run(ir.to_proto(made), feeds), run(source, feeds), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_turns_number_may_be_a_vector_of_one_and_states_need_no_type_where_they_leave() -> None:
    source = model(LOOP.replace("int64 i, bool c", "int64[1] i, bool c"))
    (body,) = (a.g for n in source.graph.node for a in n.attribute if a.name == "body")
    body.output[1].ClearField("type")
    program = understand(load(source))
    found = lifted(program, Branch(1, "body"))
    assert found is not None
    check(found)
    assert shapes(found) == {"i": ["1"], "c": [], "h": ["2"], "a": ["2"]}


def test_sizes_of_what_a_loop_in_a_loop_gives_are_open() -> None:
    found = taken_out(f"""g (float[2] x) => (float[2] y) {WEIGHTS} {{
      y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r) {{ d = Identity(c)
        r = Loop(n, go, h) <body = p (int64 j, bool e, float[2] k) => (bool f, float[2] q)
          {{ f = Identity(e) q = Mul(k, w) }}> }}> }}""")
    assert found is not None
    assert shapes(found) == {"i": [], "c": [], "h": ["h_0"]}


def test_what_a_body_reads_that_is_no_tensor_or_of_no_one_rank_leaves_it() -> None:
    sequence = """g (float[2] x, seq(float[2]) z) => (float[2] y) <bool go = {1}, int64 n = {3}> {
      y = Loop(n, go, x) <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] r)
        { d = Identity(c) e = SequenceAt(z, i) r = Add(h, e) }> }"""
    ranks = """g (float[2] x) => (float y) <bool go = {1}, int64 n = {3}, int64[1] zero = {0}> {
      y = Loop(n, go, x) <body = b (int64 i, bool c, float h) => (bool d, float r)
        { d = Identity(c) r = Unsqueeze(h, zero) }> }"""
    assert taken_out(sequence) is None
    source = model(ranks)
    del source.graph.output[0].type.tensor_type.shape.dim[:]
    source.graph.output[0].type.tensor_type.ClearField("shape")
    for info in (source.graph.node[0].attribute[0].g.input[2], source.graph.node[0].attribute[0].g.output[1]):
        info.type.tensor_type.ClearField("shape")
    assert lifted(understand(load(source)), Branch(0, "body")) is None


def test_before_opset_9_no_body_is_taken_out() -> None:
    source = model(LOOP, opset=8)
    assert bodies(understand(load(source))) == []
