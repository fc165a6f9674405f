"""An If whose condition is known before the model runs gives way to the branch that runs."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import load, understand
from tests.merged import conditional
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

X = np.random.default_rng(0).standard_normal((1, 4)).astype(np.float32)

SQUEEZED = """
    zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
    s = Shape(x) d = Gather(s, zero) c = Equal(d, one)
    q = If (c) <then_branch = p () => (float[4] o) { a = Constant<value_ints = [0]>() o = Squeeze(x, a) },
                else_branch = e () => (float[m, 4] o) { o = Identity(x) }>"""

CASES = {
    "a squeeze of a size that is known": f"g (float[1, 4] x) => (float[4] y) {{ {SQUEEZED} y = Neg(q) }}",
    "an output": """g (float[1, 4] x) => (float[1, 4] y) { c = Constant<value = bool {0}>()
        y = If (c) <then_branch = p () => (float[1, 4] a) { a = Neg(x) },
                    else_branch = q () => (float[1, 4] b) { b = Exp(x) }> }""",
    "a weight of its own": """g (float[1, 4] x) => (float[1, 4] y) { c = Constant<value = bool {1}>()
        y = If (c) <then_branch = p () => (float[1, 4] a) <float[4] k = {1, 2, 3, 4}> { a = Mul(x, k) },
                    else_branch = q () => (float[1, 4] b) { b = Exp(x) }> }""",
    "one within another": """g (float[1, 4] x) => (float[1, 4] y) { c = Constant<value = bool {1}>()
        y = If (c) <else_branch = q () => (float[1, 4] b) { b = Exp(x) }, then_branch = p () => (float[1, 4] a) {
            f = Not(c) m = Neg(x)
            a = If (f) <then_branch = r () => (float[1, 4] v) { v = Exp(m) },
                        else_branch = t () => (float[1, 4] w) { w = Abs(m) }> }> }""",
    "two with the same names": """g (float[1, 4] x) => (float[1, 4] y) { c = Constant<value = bool {1}>()
        f = If (c) <then_branch = p () => (float[1, 4] a) { k = Neg(x) a = Exp(k) },
                    else_branch = q () => (float[1, 4] a) { k = Abs(x) a = Abs(k) }>
        y = If (c) <then_branch = r () => (float[1, 4] a) { k = Abs(f) a = Sqrt(k) },
                    else_branch = t () => (float[1, 4] a) { k = Neg(f) a = Neg(k) }> }""",
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_the_branch_that_runs_stands_in_the_model(text: str) -> None:
    given = model(text)
    onnx.checker.check_model(given, full_check=True)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert "If" not in [n.op_type for n in made.graph.node]
    assert not program.summary.opaque
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    for before, after in zip(run(given, {"x": X}), run(made, {"x": X}), strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_only_the_other_branch_and_the_condition_read_goes() -> None:
    given = conditional("f = Constant<value = bool {0}>() n = Abs(x) c = Identity(f)", then="a = Neg(n)")
    assert [n.op_type for n in understand(load(given)).model.graph] == ["Exp"]


def test_the_model_that_was_given_keeps_its_branches() -> None:
    source = load(model(CASES["an output"]))
    understand(source)
    assert [n.op_type for n in source.graph] == ["Constant", "If"]


def test_a_size_that_may_be_another_one_decides_nothing() -> None:
    given = model(f"g (float[n, 4] x) => (float[k, l] y) {{ {SQUEEZED} y = Neg(q) }}")
    assert "If" in [n.op_type for n in understand(load(given)).model.graph]


def test_a_branch_that_gives_a_value_twice_stays() -> None:
    """onnxruntime 1.32 decides it, and gives what was in memory: nothing is as that is."""
    given = model("""g (float[1, 4] x) => (float[1, 4] y, float[1, 4] z) { c = Constant<value = bool {1}>()
        y, z = If (c) <then_branch = p () => (float[1, 4] a, float[1, 4] a) { a = Exp(x) },
                       else_branch = q () => (float[1, 4] b, float[1, 4] e) { b = Exp(x) e = Abs(x) }> }""")
    assert "If" in [n.op_type for n in understand(load(given)).model.graph]
