"""Models of 16-bit floats in odd forms, with what they compute in 32 bits."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from superopt.onnx_io import check, load, widened
from tests.onnx_io.networks import run
from tests.onnx_io.test_carried import assert_same_interface
from tests.onnx_io.test_widened import feed, of

IF = """a = MatMul(x, w) s = If(t) <
    then_branch = one () => (float16[4] p) {then},
    else_branch = two () => (float16[4] q) {{ q = Constant<value = float16[4] {{15360, 15360, 16384, 15360}}>() }}>
    y = Mul(a, s)"""

GIVEN_AS_HELD = {
    "an input": "g (float16[3, 4] x) => (float16[3, 4] y, float16[3, 4] x) { y = Relu(x) }",
    "a weight": "g (float16[3, 4] x) => (float16[3, 4] y, float16[4, 4] w) { y = MatMul(x, w) }",
    "a weight twice": "g (float16[3, 4] x) => (float16[4, 4] w, float16[3, 4] y, float16[4, 4] w) { y = MatMul(x, w) }",
    "a constant": """g (float16[3, 4] x) => (float16[3, 4] y, float16[1] c) {
        c = Constant<value = float16[1] {16384}>() y = Mul(x, c) }""",
    "constants of branches": f"""g (float16[3, 4] x, bool t) => (float16[3, 4] y) {{
        {IF.format(then="{ p = Constant<value = float16[4] {16384, 15360, 15360, 15360}>() }")} }}""",
    "a weight of a branch": f"""g (float16[3, 4] x, bool t) => (float16[3, 4] y) {{
        {IF.format(then="<float16[4] p = {16384, 15360, 15360, 15360}> { }")} }}""",
}
"""Graphs that give what is not computed."""


@pytest.mark.parametrize("case", GIVEN_AS_HELD)
def test_what_is_given_as_it_is_held_is_the_same_beside_what_is_computed_in_32_bits(case: str) -> None:
    given = of(GIVEN_AS_HELD[case])
    wide = widened(load(given))
    assert wide is not None
    check(wide)
    made = ir.to_proto(wide)
    assert_same_interface(made, given)
    inner = [n for n in made.graph.node if n.op_type in ("MatMul", "Mul", "Relu")]
    assert inner
    types = {v.name: v.type.tensor_type.elem_type for v in onnx.shape_inference.infer_shapes(made).graph.value_info}
    assert all(types[n.input[0]] == onnx.TensorProto.FLOAT for n in inner)
    for actual, expected in zip(run(made, feed(given)), run(given, feed(given)), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=4e-3, atol=4e-3)


def test_numbers_that_become_text_keep_their_digits_of_16_bits() -> None:
    text = "g (float16[3, 4] x) => (string[3, 4] y) { a = Sqrt(x) y = Cast<to = 8>(a) }"
    assert widened(load(of(text))) is None
