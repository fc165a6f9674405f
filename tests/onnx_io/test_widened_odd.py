"""Models of 16-bit floats in odd forms, with what they compute in 32 bits."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, rewritten, understand, widened
from superopt.operators import Declared
from superopt.operators.layout import Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.test_widened import in_32_bits, of

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
    made = in_32_bits(of(GIVEN_AS_HELD[case]))
    inner = [n for n in made.graph.node if n.op_type in ("MatMul", "Mul", "Relu")]
    assert inner
    types = {v.name: v.type.tensor_type.elem_type for v in onnx.shape_inference.infer_shapes(made).graph.value_info}
    assert all(types[n.input[0]] == onnx.TensorProto.FLOAT for n in inner)


def test_numbers_that_become_text_keep_their_digits_of_16_bits() -> None:
    text = "g (float16[3, 4] x) => (string[3, 4] y) { a = Sqrt(x) y = Cast<to = 8>(a) }"
    assert widened(load(of(text))) is None


WEIGHTS = np.random.default_rng(3).standard_normal((64, 48)).astype(np.float16)


def folded(op: type[Declared], stored: np.ndarray = WEIGHTS) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model that multiplies by a transposed weight with itself, and the same with these two as data."""
    held = "c = Cast<to = 1>(w)" if stored.dtype == np.float16 else "c = Identity(w)"
    given = model(f"""g (float[3, 48] x) => (float[3, 64] y) {{
        {held} d = {op.__name__}(c, c) t = Transpose<perm = [1, 0]>(d) y = MatMul(x, t) }}""")
    given.graph.initializer.append(numpy_helper.from_array(stored, "w"))
    program = understand(load(given))
    c = program.values["c"]
    new = MatMul()(program.values["x"], Transpose((1, 0))(op()(c, c)))
    return given, ir.to_proto(rewritten(program, {"y": new}, {}))


def assert_same_product(given: onnx.ModelProto, made: onnx.ModelProto) -> None:
    x = np.random.default_rng(4).standard_normal((3, 48)).astype(np.float32)
    np.testing.assert_allclose(run(made, {"x": x})[0], run(given, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_weights_made_of_those_of_16_bits_are_stored_in_16_where_these_hold_them() -> None:
    given, made = folded(Add)
    (large,) = [t for t in made.graph.initializer if len(t.raw_data) > 4096]
    assert large.data_type == onnx.TensorProto.FLOAT16
    np.testing.assert_array_equal(numpy_helper.to_array(large), 2 * WEIGHTS.T)
    assert_same_product(given, made)


def test_weights_that_16_bits_would_round_are_stored_in_32() -> None:
    given, made = folded(Mul)
    (large,) = [t for t in made.graph.initializer if len(t.raw_data) > 4096]
    assert large.data_type == onnx.TensorProto.FLOAT
    assert_same_product(given, made)


def test_weights_made_of_those_of_32_bits_are_stored_in_32_even_where_16_hold_them() -> None:
    given, made = folded(Add, WEIGHTS.astype(np.float32))
    (large,) = [t for t in made.graph.initializer if len(t.raw_data) > 4096]
    assert large.data_type == onnx.TensorProto.FLOAT
    assert_same_product(given, made)
