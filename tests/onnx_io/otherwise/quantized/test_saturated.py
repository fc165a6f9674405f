"""Hard sigmoids between quantized values are sums, which end where bytes do."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair
from tests.onnx_io.otherwise.reading import gain, operators_of

EACH = np.arange(256, dtype=np.uint8)


def gate(
    scale: float = 0.0473126, zero: int = 117, to: float = 1 / 255, many: int = 16, **said: float
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A hard sigmoid of bytes, and inputs that are each of these."""
    held: Held = {}
    nodes = [
        *pair("x", "a", held, scale, np.uint8(zero)),
        helper.make_node("HardSigmoid", ["a"], ["h"], **{"alpha": 1 / 6, "beta": 0.5, **said}),
        *pair("h", "y", held, to, np.uint8(0)),
    ]
    x = ((np.tile(EACH, many).astype(np.float32) - zero) * np.float32(scale)).reshape(1, many, 16, 16)
    return model(nodes, held, x.shape, x.shape), {"x": x}


@pytest.mark.parametrize("scale", [0.0437191, 0.0513377, 0.0619117, 0.0131933])
@pytest.mark.parametrize("zero", [0, 60, 117])
def test_all_bytes_are_the_same_as_a_sum_with_and_without_optimizations(scale: float, zero: int) -> None:
    source, fed = gate(scale, zero)
    assert operators_of(source, fed, rounds=False).count("Add") == 1


@pytest.mark.parametrize(
    "given", [gate(to=0.01), gate(alpha=-0.2), gate(many=2)], ids=["bytes beyond 1", "falling", "few"]
)
def test_others_stay(given: tuple[onnx.ModelProto, dict[str, np.ndarray]]) -> None:
    assert "HardSigmoid" in operators_of(*given, rounds=False)


def test_hard_sigmoids_are_faster_so() -> None:
    assert gain(*gate(many=1024)) > 1.5
