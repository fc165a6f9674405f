"""What is rectified and quantized around 0 is quantized, and its bytes are bounded."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import operators_of

RNG = np.random.default_rng(0)
BOUNDED = import_module("superopt.onnx_io.otherwise.quantized.bounded")
UNSIGNED = import_module("superopt.onnx_io.otherwise.quantized.unsigned_values")
FED = {"x": RNG.standard_normal((1, 4, 6, 6)).astype(np.float32) * 4}


def rectified(
    zero: Array | np.generic, step: float = 2**-3, shown: bool = False, of_bytes: bool = True
) -> onnx.ModelProto:
    """A convolution of bytes that is rectified, and quantized with this byte for 0; no sum of it is rounded."""
    held: Held = {}
    data = RNG.integers(-50, 50, (4, 4, 1, 1)).astype(np.int8)
    nodes = [*pair("x", "a", held, 2**-4, np.int8(0)), weights("w", held, data, np.int8(0))]
    held["w_scale"] = np.asarray(2**-7, np.float32)
    nodes += [helper.make_node("Conv", ["a" if of_bytes else "x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["r"])]
    nodes += [*pair("r", "d", held, step, np.asarray(zero)), helper.make_node("Neg", ["d"], ["y"])]
    made = model(nodes, held, (1, 4, 6, 6), (1, 4, 6, 6))
    if shown:
        made.graph.output.append(helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, (1, 4, 6, 6)))
    return made


@pytest.fixture(autouse=True)
def adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor with room for sums of products of bytes."""
    monkeypatch.setattr(BOUNDED, "adds_up_products", lambda: True)
    monkeypatch.setattr(UNSIGNED, "all_are_exact", lambda _: True)


@pytest.mark.parametrize("zero", [np.int8(0), np.int8(-7), np.int8(127), np.uint8(128), np.uint8(3)])
def test_bytes_are_bounded_and_all_is_the_same(zero: np.generic) -> None:
    found = operators_of(rectified(zero), FED, rounds=False)
    assert "Relu" not in found
    assert found[found.index("Conv") :] == ["Conv", "QuantizeLinear", "Clip", "DequantizeLinear", "Neg"]


@pytest.mark.parametrize(
    "source",
    [rectified(np.int8(-128)), rectified(np.uint8(0)), rectified(np.int8(0), shown=True), rectified(np.int8(0), -0.1)],
    ids=["lowest is 0", "lowest is 0, without a sign", "an output", "falling"],
)
def test_what_quantizing_rectifies_or_something_else_reads_stays(source: onnx.ModelProto) -> None:
    assert "Clip" not in [node.op_type for node in understand(load(source)).model.graph]


def test_convolutions_of_numbers_are_rectified_as_before() -> None:
    source = rectified(np.int8(0), of_bytes=False)
    assert "Clip" not in [node.op_type for node in understand(load(source)).model.graph]


def test_where_processors_do_not_add_up_products_numbers_are_rectified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BOUNDED, "adds_up_products", lambda: False)
    assert "Relu" in [node.op_type for node in understand(load(rectified(np.int8(0)))).model.graph]
