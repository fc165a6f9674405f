"""What is rectified and quantized around 0 is quantized, and its bytes are bounded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.onnx_io import load, understand
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.quantized.quantized_nodes import Held, model, pair, weights
from tests.onnx_io.otherwise.reading import gain, operators_of

RNG = np.random.default_rng(0)
BOUNDED = import_module("superopt.onnx_io.otherwise.quantized.bounded")
UNSIGNED = import_module("superopt.onnx_io.otherwise.quantized.unsigned_values")
FED = {"x": RNG.standard_normal((1, 4, 6, 6)).astype(np.float32) * 4}


def rectified(
    zero: Array | np.generic,
    step: float = 2**-3,
    shown: bool = False,
    of_bytes: bool = True,
    to: Sequence[float | None] = (),
) -> onnx.ModelProto:
    """A convolution of bytes that is rectified, or cut at two numbers, and quantized with this byte for 0; no sum of it
    is rounded.
    """
    held: Held = {}
    data = RNG.integers(-50, 50, (4, 4, 1, 1)).astype(np.int8)
    nodes = [*pair("x", "a", held, 2**-4, np.int8(0)), weights("w", held, data, np.int8(0))]
    held["w_scale"] = np.asarray(2**-7, np.float32)
    nodes += [helper.make_node("Conv", ["a" if of_bytes else "x", "w"], ["c"])]
    ends = {name: np.float32(end) for name, end in zip("lh", to, strict=False) if end is not None}
    held |= ends
    cut = helper.make_node("Clip", ["c", *(name if name in ends else "" for name in "lh")], ["r"])
    nodes += [cut if to else helper.make_node("Relu", ["c"], ["r"])]
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


@pytest.mark.parametrize("zero", [np.int8(0), np.int8(-128), np.int8(100), np.uint8(0), np.uint8(128)])
@pytest.mark.parametrize("to", [(0, 6), (-1.7, 2.2), (None, 0.3), (-0.4, 9.0)], ids=str)
def test_bytes_are_cut_where_numbers_were(zero: np.generic, to: tuple[float | None, float | None]) -> None:
    """Of 128 steps of an eighth up to 6 some are beyond it."""
    found = operators_of(rectified(zero, to=to), FED, rounds=False)
    assert found[found.index("Conv") :] == ["Conv", "QuantizeLinear", "Clip", "DequantizeLinear", "Neg"]


@pytest.mark.parametrize("zero", [np.int8(-128), np.uint8(0)])
@pytest.mark.parametrize("step", [6 / 255, 6.0000005 / 255, 5.9 / 255, 6.01 / 255])
def test_what_bytes_cut_by_themselves_is_left_out(zero: np.generic, step: float) -> None:
    found = operators_of(rectified(zero, step, to=(0, 6)), FED, rounds=False)
    assert found[found.index("Conv") :] == ["Conv", "QuantizeLinear", "DequantizeLinear", "Neg"]


def test_numbers_that_are_cut_the_wrong_way_round_stay() -> None:
    """Then all is the higher of the ends, or the lower: ONNX did not always say which."""
    found = operators_of(rectified(np.int8(0), to=(2, -2)), FED, rounds=False)
    assert found[found.index("Conv") :] == ["Conv", "Clip", "QuantizeLinear", "DequantizeLinear", "Neg"]


def test_sums_of_bytes_are_rectified_so_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BOUNDED, "adds_up_products", lambda: False)
    source = rectified(np.int8(0))
    (conv,) = [node for node in source.graph.node if node.op_type == "Conv"]
    conv.CopyFrom(helper.make_node("Add", ["a", "a"], ["c"]))
    found = operators_of(source, FED, rounds=False)
    assert found[found.index("Add") :] == ["Add", "QuantizeLinear", "Clip", "DequantizeLinear", "Neg"]


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


def layer(to: str = "Gemm", shown: bool = False) -> onnx.ModelProto:
    """A layer of bytes that is rectified, and quantized around 0; no sum of it is rounded."""
    held: Held = {"b": np.arange(8, dtype=np.float32) / 4}
    data = RNG.integers(-50, 50, (16, 8)).astype(np.int8)
    nodes = [*pair("x", "a", held, 2**-4, np.int8(0)), weights("w", held, data, np.int8(0))]
    held["w_scale"] = np.asarray(2**-7, np.float32)
    plain = [helper.make_node("MatMul", ["a", "w"], ["c0"]), helper.make_node("Add", ["b", "c0"], ["c"])]
    nodes += [helper.make_node("Gemm", ["a", "w", "b"], ["c"])] if to == "Gemm" else plain
    nodes += [helper.make_node("Relu", ["c"], ["r"]), *pair("r", "d", held, 2**-3, np.int8(0))]
    made = model([*nodes, helper.make_node("Neg", ["d"], ["y"])], held, (4, 16), (4, 8))
    if shown:
        made.graph.output.append(helper.make_tensor_value_info("c0", onnx.TensorProto.FLOAT, (4, 8)))
    return made


ROWS = {"x": RNG.standard_normal((4, 16)).astype(np.float32) * 4}


@pytest.mark.parametrize("to", ["Gemm", "Add"])
def test_layers_are_rectified_as_bytes_too(to: str) -> None:
    found = operators_of(layer(to), ROWS, rounds=False)
    assert found[found.index(to) :] == [to, "QuantizeLinear", "Clip", "DequantizeLinear", "Neg"]


def test_layers_whose_products_are_read_elsewhere_are_rectified_as_before() -> None:
    assert "Relu" in operators_of(layer("Add", shown=True), ROWS, rounds=False)


def test_layers_are_faster_so() -> None:
    held: Held = {}
    data = RNG.integers(-50, 50, (256, 512)).astype(np.int8)
    nodes = [*pair("x", "a", held, 0.05, np.uint8(128)), weights("w", held, data, np.int8(0))]
    nodes += [helper.make_node("MatMul", ["a", "w"], ["c"]), helper.make_node("Relu", ["c"], ["r"])]
    nodes += [*pair("r", "d", held, 0.1, np.uint8(128)), helper.make_node("Softmax", ["d"], ["y"])]
    source = model(nodes, held, (32, 256), (32, 512))
    assert gain(source, {"x": RNG.standard_normal((32, 256)).astype(np.float32)}) > 1.5
