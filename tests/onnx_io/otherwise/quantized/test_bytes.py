"""Whether products of bytes are added up as they are, here and elsewhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, saturates_elsewhere, understand
from superopt.onnx_io.otherwise.quantized import bytes as quantized
from tests.onnx_io.models import model


def product(largest: int, dtype: str = "int8") -> onnx.ModelProto:
    """A layer whose values are quantized to bytes, with weights up to so much."""
    source = model(
        f"""g (float[2, 8] x) => (float[2, 4] y) <float s = {{0.1}}, {dtype} z = {{0}}> {{
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        v = DequantizeLinear(w, s, z)
        y = MatMul(d, v) }}""",
        17,
    )
    weights = np.full((8, 4), largest, dtype)
    source.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return source


@pytest.mark.parametrize(("largest", "dtype", "told"), [(127, "int8", True), (64, "int8", False), (200, "uint8", True)])
def test_it_is_told_where_other_processors_cut_sums_short(
    largest: int, dtype: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantized, "adds_up_products", lambda: True)
    program = understand(load(product(largest, dtype)))
    assert program.otherwise
    assert saturates_elsewhere(program) == told


def test_what_other_processors_would_cut_short_already_is_not_told() -> None:
    source = product(127)
    plain = understand(load(source), plainly=True)
    assert not saturates_elsewhere(plain)
