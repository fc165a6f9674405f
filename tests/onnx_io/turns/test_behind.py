"""What a turn of a loop computes for what it gives alone is computed of all turns after the last; all else stays."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.errors import Undecided
from superopt.onnx_io import Program, load, understand
from superopt.onnx_io.turns import apart as apart_module
from superopt.onnx_io.turns.apart import apart
from superopt.onnx_io.turns.behind import behind
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.turns.test_ahead import FEEDS, HELD, outside, written
from tests.onnx_io.turns.test_hoisted import turns

GIVEN = "float[3, 2, 4] x, float[2, 3] z"
SHAPE = "3, 2, 3"


def scan(body: str, attributes: str = "", outputs: str = "y", gives: str = "o", shape: str = SHAPE) -> str:
    """A Scan of a state `h` that ends as `r`, and of what each turn gives."""
    others = "".join(f", float[{'3, 2, 3'}] {v}" for v in outputs.split(", ")[1:])
    return f"""g ({GIVEN}) => (float[{shape}] y{others}) {HELD} {{
      l, {outputs} = Scan<num_scan_inputs = 1{attributes}, body = p (float[2, 3] h, float[2, 4] e) =>
        (float[2, 3] r, {", ".join(f"float[s{v}, t{v}] {v}" for v in gives.split(", "))}) {{ {body} }}>(z, x) }}"""


def loop(body: str, times: str = "n", inputs: str = GIVEN, last: str = "l, y") -> str:
    """The same of a Loop."""
    return f"""g ({inputs}) => (float[f, c, d] y) {HELD} {{ {last} = Loop({times}, go, z)
      <body = p (int64 i, bool c, float[2, 3] h) => (bool d, float[2, 3] r, float[a, k] o)
        {{ d = Identity(c) {body} }}> }}"""


def moved(text: str) -> onnx.ModelProto:
    """The model with what is only given behind the turns, which computes the same under the same interface."""
    return written(model(text), behind)


NEXT = "v = Transpose(w) q = MatMul(h, v) t = Tanh(q) u = Add(t, e) r = MatMul(u, w)"


def test_a_product_that_is_only_given_is_one_of_all_turns() -> None:
    made = moved(scan(f"{NEXT} m = MatMul(u, w) s = Add(m, b) o = Softmax(s)"))
    assert turns(made) == ["Transpose", "MatMul", "Tanh", "Add", "MatMul"]
    assert outside(made) == ["Scan", "MatMul", "Add", "Softmax"]


def test_a_state_is_given_too_as_a_copy() -> None:
    made = moved(scan(f"{NEXT} k = Mul(r, r) o = Exp(r)"))
    assert turns(made)[-1] == "Identity"
    assert outside(made) == ["Scan", "Exp"]


def test_of_rows_that_come_last_first_too() -> None:
    made = moved(scan(f"{NEXT} o = MatMul(u, w)", ", scan_input_directions = [1], scan_output_directions = [1]"))
    assert outside(made) == ["Scan", "MatMul"]


def test_each_of_what_is_given() -> None:
    made = moved(scan(f"{NEXT} o = MatMul(u, w) k = Mul(u, u) p = Gemm(k, w, b)", "", "y, j", "o, p"))
    assert turns(made)[-2:] == ["MatMul", "Mul"]
    assert outside(made) == ["Scan", "MatMul", "MatMul", "Add"]


def test_two_of_the_same_value() -> None:
    made = moved(scan(f"{NEXT} k = Mul(h, h) o = Exp(k) p = Neg(k)", "", "y, j", "o, p"))
    assert turns(made)[-2:] == ["Mul", "Identity"]
    assert outside(made) == ["Scan", "Exp", "Neg"]


def test_of_a_chain_as_much_as_can_be() -> None:
    made = moved(scan(f"{NEXT} j = Constant<value_int = 0>() k = CumSum(u, j) o = MatMul(k, w)"))
    assert turns(made)[-1] == "CumSum"


def test_of_a_loop_that_surely_has_a_turn() -> None:
    made = moved(loop("a = Tanh(h) r = Add(a, b) o = Exp(r)"))
    assert turns(made) == ["Identity", "Tanh", "Add", "Identity"]


@pytest.mark.parametrize("length", [0, 2])
def test_a_loop_that_may_have_none_gives_what_it_gave(length: int) -> None:
    source = model(loop("a = Tanh(h) r = Add(a, b) v = Transpose(w) o = MatMul(r, v)", "k", f"{GIVEN}, int64 k"))
    found = behind(understand(load(source)))
    feeds = {"x": FEEDS["x"], "z": FEEDS["z"], "k": np.array(length)}
    np.testing.assert_array_equal(run(ir.to_proto(found) if found else source, feeds)[0], run(source, feeds)[0])


def test_layers_on_both_sides_of_a_cell_leave_its_turns() -> None:
    source = model(scan("a = MatMul(e, w) s = Add(a, h) r = Tanh(s) m = Mul(r, b) o = Softplus(m)"))
    found = apart(understand(load(source)))
    assert found is not None
    made = ir.to_proto(found)
    onnx.checker.check_model(made, full_check=True)
    assert turns(made) == ["Add", "Tanh", "Identity"]
    np.testing.assert_allclose(run(made, FEEDS)[0], run(source, FEEDS)[0], rtol=1e-5)


def test_a_loop_stays_where_sizes_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What else can be done apart from it is done."""

    def undecided(program: Program) -> None:
        raise Undecided("N or M")

    monkeypatch.setattr(apart_module, "ahead", undecided)
    found = apart(understand(load(model(scan(f"{NEXT} o = MatMul(u, w)")))))
    assert found is not None
    assert outside(ir.to_proto(found)) == ["Scan", "MatMul"]


def test_a_size_that_all_turns_have_need_not_be_known() -> None:
    text = loop("a = Tanh(h) r = Add(a, b) o = Exp(r)", inputs="float[3, N, 4] x, float[N, 3] z")
    assert outside(moved(text.replace("float[2, 3]", "float[N, 3]"))) == ["Loop", "Exp"]


def growing(body: str) -> str:
    """A Loop of a state that has more rows in each turn."""
    return loop(body).replace("float[2, 3] h", "float[g, 3] h").replace("float[2, 3] r", "float[j, 3] r")


def test_of_what_grows_but_that_which_has_one_shape() -> None:
    made = moved(growing("r = Concat<axis = 0>(h, h) k = Tanh(r) q = ReduceMax<axes = [0]>(k) o = Exp(q)"))
    assert turns(made) == ["Identity", "Concat", "Tanh", "ReduceMax"]


STAYING = {
    "what is of another size in each turn": growing("r = Concat<axis = 0>(h, h) o = ReduceMax<axes = [0]>(r)"),
    "what the state reads": scan("a = MatMul(e, w) o = Add(a, h) r = Tanh(o)"),
    "what two values of a turn make": scan("r = Tanh(h) a = MatMul(e, w) o = Mul(a, h)"),
    "what stands along another axis": scan("r = Tanh(h) o = Exp(h)", ", scan_output_axes = [1]", shape="2, 3, 3"),
    "what takes no time": scan("r = Tanh(h) k = Cast<to = 6>(h) o = Cast<to = 1>(k)"),
    "what is not known of rows": scan("r = Tanh(h) j = Constant<value_int = 0>() o = CumSum(h, j)"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_it_stays_in_its_turn(text: str) -> None:
    source = model(text)
    onnx.checker.check_model(source)
    assert behind(understand(load(source))) is None
