"""Files that runtimes alone take: nodes in any order, and operators that they have among ONNX's own."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from superopt.errors import InvalidModel
from superopt.onnx_io import load, rewritten, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

UNORDERED = """g (float[2] x, bool c) => (float[2] y)
  { y = Neg(b) b = If(c) <then_branch = t () => (float[2] p) { p = Relu(a) }, else_branch = e () => (float[2] q) {
    q = Identity(a) }> a = Exp(x) }"""


def test_nodes_in_any_order_are_read_in_one_that_runs() -> None:
    read = load(model(UNORDERED))
    assert [node.op_type for node in read.graph] == ["Exp", "If", "Neg"]
    assert [node.name for node in read.graph] == [None] * 3
    given = {"x": np.float32([1, -1]), "c": np.array(True)}
    np.testing.assert_allclose(run(ir.to_proto(read), given)[0], -np.exp(given["x"]), rtol=1e-6)


EXPERIMENTAL = {
    "a norm before ONNX had it": ("y = LayerNormalization <axis = -1, stash_type = 1> (x, s)", 11),
    "a norm that ONNX never had": ("y = SimplifiedLayerNormalization <axis = -1> (x, s)", 21),
    "a scaled image": ("v = ImageScaler <scale = 0.5, bias = [0.1]> (x) y = Scale <scale = 2.0> (v)", 9),
}


@pytest.mark.parametrize(("nodes", "opset"), EXPERIMENTAL.values(), ids=EXPERIMENTAL)
def test_operators_that_runtimes_have_among_those_of_onnx_are_read(nodes: str, opset: int) -> None:
    source = model(f"g (float[1,1,2,4] x) => (float[1,1,2,4] y) <float[4] s = {{1, 2, 3, 4}}> {{ {nodes} }}", opset)
    given = {"x": np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)}
    made = rewritten(understand(load(source)), {}, {})
    np.testing.assert_array_equal(run(ir.to_proto(made), given)[0], run(source, given)[0])


def test_beside_an_operator_that_only_runtimes_have_the_rest_is_checked() -> None:
    nodes = "{ y = SimplifiedLayerNormalization <axis = -1> (x, s) v = Relu(x) }"
    with pytest.raises(InvalidModel, match="output 'v'"):
        load(model(f"g (float[2,4] x, float[4] s) => (float[2,4] y, float[2,5] v) {nodes}", 21))


def test_of_experimental_operators_nothing_is_said_where_a_report_is_read(capfd: pytest.CaptureFixture[str]) -> None:
    load(model("g (float[2,4] x) => (float[2,4] y) { v = Relu(x) y = Scale <scale = 2.0> (v) }", 11))
    assert capfd.readouterr().out == ""


CHOICE = """y = If (c) <
    then_branch = one () => (float[2] %s) { t = Neg(x) %s = Relu(t) },
    else_branch = other () => (float[2] %s) { %s = Abs(x) }
>"""


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        (f"z = Add(t, y) t = Sqrt(y) {CHOICE % (('y',) * 4)}", ["If", "Sqrt", "Add"]),
        (f"{CHOICE % (('u',) * 4)} a = Abs(x) t = Sqrt(a) z = Add(t, y)", ["If", "Abs", "Sqrt", "Add"]),
    ],
    ids=["read before", "made behind"],
)
def test_values_of_branches_may_have_names_of_others_behind_them(nodes: str, order: list[str]) -> None:
    source = model(f"g (bool c, float[2] x) => (float[2] z) {{ {nodes} }}")
    assert [node.op_type for node in load(source).graph] == order
