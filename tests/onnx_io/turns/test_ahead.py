"""What a turn of a loop computes of its own row alone is computed of all rows before the first; all else stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import Program, check, load, understand
from superopt.onnx_io.turns.ahead import ahead
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.turns.test_hoisted import turns

DRAWN = np.random.default_rng(0)
FEEDS = {"x": DRAWN.standard_normal((3, 2, 4)).astype(np.float32), "z": np.float32([[1, -1, 2], [0, 3, -2]])}
HELD = """<bool go = {1}, int64 n = {3}, float[4, 3] w =
  {1, 2, 3, -1, 0, 1, 2, -2, 1, 0.5, 1, -3}, float[3] b = {1, -1, 2}>"""


M = ", ".join(str(i % 7 - 3) for i in range(21))
L = ", ".join(str(i % 5 - 2) for i in range(30))
HELD = HELD.replace(">", f", float[7, 3] m7 = {{{M}}}, float[3, 7] t7 = {{{M}}}, float[10, 3] l9 = {{{L}}}>")
FRONT = "v = Transpose<perm = [1, 0, 2]>(x)"


def scan(body: str, attributes: str = "", given: str = "z, x", rows: str = "float[2, 4] e") -> str:
    """A Scan over the rows of x, of a state `h` that ends as `r`."""
    count = rows.count("float")
    return f"""g (float[3, 2, 4] x, float[2, 3] z) => (float[2, 3] y) {HELD} {{
      y = Scan<num_scan_inputs = {count}{attributes}, body = p (float[2, 3] h, {rows}) => (float[2, 3] r)
        {{ {body} }}>({given}) }}"""


def loop(body: str, times: str = "n", goes: str = "d = Identity(c)", x: str = "3, 2, 4", before: str = "") -> str:
    """A Loop of a state `h` that ends as `r`."""
    return f"""g (float[{x}] x, float[2, 3] z) => (float[2, 3] y) {HELD} {{ {before} y = Loop({times}, go, z)
      <body = p (int64 i, bool c, float[2, 3] h) => (bool d, float[2, 3] r) {{ {goes} {body} }}> }}"""


def outside(made: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node]


def moved(text: str, opset: int = 17) -> onnx.ModelProto:
    """The model with what is of rows alone before the turns, which computes the same under the same interface."""
    return written(model(text, opset), ahead)


def written(source: onnx.ModelProto, way: Callable[[Program], ir.Model | None]) -> onnx.ModelProto:
    """What a way makes of a model, which computes the same under the same interface."""
    onnx.checker.check_model(source, full_check=True)
    found = way(understand(load(source)))
    assert found is not None
    check(found)
    made = ir.to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    assert (made.graph.input, made.graph.output) == (source.graph.input, source.graph.output)
    for ours, theirs in zip(run(made, FEEDS), run(source, FEEDS), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    return made


def test_products_of_slices_are_one_before_the_turns() -> None:
    made = moved(scan("a = MatMul(e, w) s = Add(a, b) t = Tanh(h) r = Add(s, t)"))
    assert turns(made) == ["Tanh", "Add"]
    assert outside(made) == ["MatMul", "Add", "Scan"]


def test_a_slice_that_is_read_otherwise_too_stays_one() -> None:
    made = moved(scan("a = MatMul(e, w) q = ReduceMax(h) u = Mul(e, q) v = MatMul(u, w) s = Add(a, v) r = Add(s, h)"))
    assert turns(made) == ["ReduceMax", "Mul", "MatMul", "Add", "Add"]


def test_rows_are_taken_by_the_number_of_the_turn() -> None:
    made = moved(loop("e = Gather(x, i) a = Gemm(e, w, b) t = Tanh(h) r = Add(a, t)"))
    assert turns(made) == ["Gather", "Identity", "Tanh", "Add"]


def test_rows_of_another_axis_come_to_the_front() -> None:
    text = loop("e = Gather<axis = 1>(v, i) a = MatMul(e, w) r = Add(a, h)", before=FRONT)
    assert outside(moved(text)) == ["Transpose", "Transpose", "MatMul", "Loop"]
    body = scan("a = MatMul(e, w) r = Mul(a, h)", ", scan_input_axes = [1]", "z, v").replace(
        "y = Scan", f"{FRONT} y = Scan"
    )
    assert turns(moved(body)) == ["Mul"]


def test_rows_that_come_last_first_do_so_still() -> None:
    made = moved(scan("a = MatMul(e, w) t = Tanh(h) r = Sub(a, t)", ", scan_input_directions = [1]"))
    assert turns(made) == ["Tanh", "Sub"]


def test_rows_of_both_ends_are_not_mixed() -> None:
    text = scan("s = Add(e, f) a = MatMul(s, w) m = MatMul(e, w) t = Sub(a, m) r = Add(t, h)",
                ", scan_input_directions = [0, 1]", "z, x, x", "float[2, 4] e, float[2, 4] f")  # fmt: skip
    assert turns(moved(text)) == ["Add", "MatMul", "Sub", "Add"]


def test_weights_of_a_body_become_the_models_where_they_are_read() -> None:
    source = model(scan("m = Mul(e, k) a = MatMul(m, w) r = Add(a, h)"), 17)
    (body,) = (a.g for a in source.graph.node[0].attribute if a.name == "body")
    body.initializer.append(onnx.numpy_helper.from_array(np.float32([2, 1, -1, 3]), "k"))
    found = ahead(understand(load(source)))
    assert found is not None
    made = ir.to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    np.testing.assert_allclose(run(made, FEEDS)[0], run(source, FEEDS)[0], rtol=1e-5)


def test_a_branch_within_a_turn_reads_what_was_computed_before_it() -> None:
    made = moved(
        scan("""a = MatMul(e, w) k = ReduceSum<keepdims = 0>(h) j = Cast<to = 9>(k)
      r = If(j) <then_branch = q () => (float[2, 3] f) { f = Add(a, h) },
        else_branch = s () => (float[2, 3] u) { u = Sub(a, h) }>""")
    )
    assert turns(made) == ["ReduceSum", "Cast", "If"]


def test_embeddings_of_tokens_are_looked_up_at_once() -> None:
    text = loop("k = Gather(v, i) e = Gather(x, k) m = ReduceSum<keepdims = 0>(e, l) a = MatMul(m, w) r = Add(a, h)",
                before="""l = Constant<value = int64[1] {0}>()
                  v = Constant<value = int64[3, 2] {2, 0, 1, 2, 2, 1}>()""")  # fmt: skip
    assert turns(moved(text)) == ["Gather", "Identity", "Add"]


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_loop_over_all_rows_computes_the_same_of_any_number_of_these(length: int) -> None:
    text = loop("e = Gather(x, i) m = Softmax(e) a = Gemm(m, w, b) r = Add(a, h)", "t", x="T, 2, 4",
                before="s = Shape(x) k = Constant<value = int64 {0}>() t = Gather(s, k)")  # fmt: skip
    source = model(text, 17)
    found = ahead(understand(load(source)))
    assert found is not None
    feeds = FEEDS | {"x": DRAWN.standard_normal((length, 2, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(ir.to_proto(found), feeds)[0], run(source, feeds)[0], rtol=1e-5)


FAILING = {
    "integers that are divided by how many rows there are": "q = Div(n, t) f = Cast<to = 1>(q)",
    "words that are no numbers": "f = Cast<to = 1>(s)",
}


@pytest.mark.parametrize("nodes", FAILING.values(), ids=FAILING)
def test_a_loop_without_a_turn_does_not_fail_for_what_it_would_not_have_computed(nodes: str) -> None:
    text = loop(f"e = Gather(x, i) {nodes} m = Mul(e, f) a = MatMul(m, w) g = MatMul(e, w) p = Add(a, g) r = Add(p, h)",
                "t", x="T, 2, 4", before="l = Shape(x) k = Constant<value = int64 {0}>() t = Gather(l, k)")  # fmt: skip
    found = ahead(understand(load(model(text.replace("z) =>", "z, string s) =>")))))
    assert found is not None
    feeds = FEEDS | {"x": np.zeros((0, 2, 4), np.float32), "s": np.array("none")}
    np.testing.assert_array_equal(run(ir.to_proto(found), feeds)[0], FEEDS["z"])


def test_weights_of_floats_are_divided_before_the_turns() -> None:
    made = moved(scan("k = Exp(b) v = Div(w, k) a = MatMul(e, v) r = Add(a, h)"))
    assert outside(made) == ["Exp", "Div", "MatMul", "Scan"]


JOINED = {
    "in front of the state": "j = Concat<axis = 1>(e, h) a = MatMul(j, m7)",
    "behind it": "j = Concat<axis = -1>(h, e) a = Gemm(j, m7, b)",
    "the matrix turned": "j = Concat<axis = 1>(e, h) a = Gemm<transB = 1>(j, t7, b)",
    "behind two of it": "j = Concat<axis = 1>(h, z, e) a = MatMul(j, l9)",
}


@pytest.mark.parametrize("nodes", JOINED.values(), ids=JOINED)
def test_a_row_that_is_joined_with_the_state_is_multiplied_apart_from_it(nodes: str) -> None:
    made = moved(scan(f"{nodes} r = Tanh(a)"))
    assert outside(made)[-1] == "Scan"
    assert "MatMul" in outside(made)


def test_rows_that_are_joined_with_rows_alone_are_rows() -> None:
    made = moved(scan("q = MatMul(e, w) j = Concat<axis = 1>(q, e) a = MatMul(j, m7) r = Add(a, h)"))
    assert turns(made) == ["Add"]


def test_a_row_whose_product_stays_in_its_turn_is_not_multiplied_apart() -> None:
    made = moved(scan("j = Concat<axis = 1>(e, h) a = Gemm(j, m7, h) p = MatMul(e, w) r = Sub(a, p)"))
    assert turns(made) == ["Concat", "Gemm", "Sub"]


def test_a_loop_of_which_nothing_moves_stays_as_it_is_beside_one_of_which_something_does() -> None:
    """Its row's product would be much more than that."""
    made = moved(f"""g (float[3, 2, 4] x, float[2, 3] z) => (float[2, 3] y) {HELD} {{
      k = Constant<value = int64[2] {{7, 20000}}>() l = Constant<value = float {{0.5}}>() v = Expand(l, k)
      q = Scan<num_scan_inputs = 1, body = p (float[2, 3] h, float[2, 4] e) => (float[2, 3] r)
        {{ a = MatMul(e, w) r = Add(a, h) }}>(z, x)
      y = Scan<num_scan_inputs = 1, body = o (float[2, 3] h, float[2, 4] e) => (float[2, 3] r)
        {{ j = Concat<axis = 1>(e, h) u = MatMul(j, v) m = ReduceMax<axes = [1]>(u) r = Add(h, m) }}>(q, x) }}""")
    assert turns(made) == ["Add", "Concat", "MatMul", "ReduceMax", "Add"]


LINEAR = "e = Gather(x, i) a = MatMul(e, w) r = Add(a, h)"

WIDE = "k = Constant<value = int64[2] {4, 20000}>() j = Constant<value = float {0.5}>() v = Expand(j, k) y = Scan"

STAYING = {
    "what fewer turns read than there are rows": loop(LINEAR, "k", before="k = Constant<value = int64 {2}>()"),
    "what a turn may be the last before": loop(
        LINEAR, goes="m = ReduceSum<keepdims = 0>(h) k = Constant<value = float {9}>() d = Less(m, k)"
    ),
    "what a caller says how often": loop(LINEAR, "k").replace("float[2, 3] z)", "float[2, 3] z, int64 k)"),
    "rows that a turn takes otherwise": loop("l = Neg(i) e = Gather(x, l) a = MatMul(e, w) r = Add(a, h)"),
    "what the state goes into": scan("a = Exp(h) m = ReduceSum(a) r = Mul(h, m)"),
    "what takes no time": scan("k = Cast<to = 6>(e) l = Cast<to = 1>(k) m = ReduceMax(h) r = Gemm(l, w, m)"),
    "much more than its row": scan("u = MatMul(e, v) m = ReduceMax<axes = [1]>(u) r = Add(h, m)").replace(
        "y = Scan", WIDE),
    "what is joined of no width": loop("""u = Gather(x, i) s = Constant<value = int64[2] {0, 4}>()
      e, f = Split<axis = 1>(u, s) j = Concat<axis = 1>(h, e) a = MatMul(j, v) r = Tanh(a)""",
        before="v = Constant<value = float[3, 3] {1, 2, 3, 4, 5, 6, 7, 8, 9}>()"),
    "rows of two inputs whose lengths may differ": scan(
        "s = Add(e, f) a = MatMul(s, w) r = Add(a, h)", "", "z, x, v", "float[2, 4] e, float[2, 4] f"
    ).replace("float[3, 2, 4] x", "float[A, 2, 4] x, float[B, 2, 4] v"),
    "what the body gives": scan("r = MatMul(e, w)"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_it_stays_in_its_turn(text: str) -> None:
    source = model(text, 17)
    onnx.checker.check_model(source)
    assert ahead(understand(load(source))) is None
