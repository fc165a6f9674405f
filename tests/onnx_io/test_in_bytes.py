"""What runtimes compute in bytes is left to them: a search would take it for what it is in numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model

QUANTIZED = {
    "a sum": ("y = Add(d, d)", True),
    "a product of matrices": ("y = MatMul(d, v)", True),
    "what is within bounds": ("p = Add(d, d) y = Relu(p)", True),
    "what is moved": ("y = Transpose<perm = [1, 0]>(d)", True),
    "what is no operator on bytes": ("y = Exp(d)", False),
    "a sum with a number": ("y = Add(d, x)", False),
}


def source(steps: str, ends: str = "q2 = QuantizeLinear(y, s, o) e = DequantizeLinear(q2, s, o)") -> onnx.ModelProto:
    """Steps on numbers that are made of bytes, which become bytes again."""
    text = f"""g (float[8, 8] x) => (float[8, 8] e) <float s = {{0.1}}, uint8 o = {{128}}, int8 n = {{0}}> {{
        q = QuantizeLinear(x, s, o)
        d = DequantizeLinear(q, s, o)
        v = DequantizeLinear(w, s, n)
        {steps}
        {ends} }}"""
    made = model(text, 17)
    weights = np.random.default_rng(0).integers(-60, 60, (8, 8)).astype(np.int8)
    made.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return made


def left_to_bytes(made: onnx.ModelProto) -> set[str]:
    return {s.node.op_type for s in understand(load(made)).steps if "in bytes" in s.reason}


@pytest.mark.parametrize(("steps", "left"), QUANTIZED.values(), ids=QUANTIZED)
def test_operators_between_what_dequantizes_and_quantizes_are_left(steps: str, left: bool) -> None:
    assert bool(left_to_bytes(source(steps))) == left


def test_a_product_of_bytes_is_left_though_it_gives_numbers() -> None:
    assert left_to_bytes(source("y = MatMul(d, v)", "e = Exp(y)")) == {"MatMul"}


def test_a_sum_of_bytes_that_gives_numbers_is_understood() -> None:
    assert not left_to_bytes(source("y = Add(d, d)", "e = Exp(y)"))


def test_a_sum_that_is_read_as_a_number_too_is_understood() -> None:
    both = "q2 = QuantizeLinear(y, s, o) h = DequantizeLinear(q2, s, o) z = Exp(y) e = Sub(h, z)"
    assert not left_to_bytes(source("y = Add(d, d)", both))


@pytest.mark.parametrize("many", [3, 2000])
def test_what_bounds_numbers_again_and_again_is_read(many: int) -> None:
    steps = " ".join(f"p{i + 1} = Relu(p{i})" for i in range(many))
    made = source(f"p0 = Add(d, d) {steps} y = Relu(p{many})")
    assert left_to_bytes(made) == ({"Add", "Relu"} if many < 64 else set())
