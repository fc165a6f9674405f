"""What has the bias of a convolution around it is a convolution with zeros around, to which its bias is added."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.onnx_io.models import model
from tests.onnx_io.otherwise.reading import operators_of

CHANNELS = 4


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bordered(
    sides: str,
    batch: str = "1",
    side: int = 6,
    read: str = "y = Conv<kernel_shape = [3, 3]>(v, k)",
    first: str = "a, b",
) -> onnx.ModelProto:
    """A model of a convolution, what is joined to the sides of that, and another convolution."""
    text = f"""g (float[{batch}, 3, {side}, {side}] x) => (float[{batch}, 5, {side}, {side}] y) {{
        u = Conv({{}}) {sides} {read} }}"""
    made = model(text.replace("{}", "x, " + first), 17)
    wide = side + 2
    held = {
        "a": numbers(0, CHANNELS, 3, 1, 1),
        "b": numbers(1, CHANNELS),
        "k": numbers(2, 5, CHANNELS, 3, 3),
        "none": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
        "first": np.array(
            [[[[[n, c, 0, w] for w in range(wide)]] for c in range(CHANNELS)] for n in range(1)], np.int64
        ),
    }
    bias = held["b"].reshape(1, CHANNELS, 1, 1)
    held["row"], held["column"] = np.tile(bias, (1, 1, 1, side)), np.tile(bias, (1, 1, wide, 1))
    held["whole_row"], held["other"] = np.tile(bias, (1, 1, 1, wide)), np.tile(bias, (1, 1, 1, side)) + 1
    for name, data in held.items():
        made.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
    return made


JOINED = "r = Concat<axis = 2>(row, u, row) v = Concat<axis = 3>(column, r, column)"

PUT = """p = Pad(u, none) up = Transpose<perm = [2, 0, 1, 3]>(p)
    t0 = Transpose<perm = [1, 2, 0, 3]>(up) v0 = ScatterND(t0, first, whole_row) s = Slice(v0, l0, l1, l2)
    v1 = Concat<axis = 2>(s, whole_row) c = Slice(v1, l0, l1, l3) v = Concat<axis = 3>(column, c, column)"""


def put() -> onnx.ModelProto:
    made = bordered(PUT)
    for name, data in {"l0": [0], "l1": [7], "l2": [2]}.items():
        made.graph.initializer.append(numpy_helper.from_array(np.array(data, np.int64), name))
    made.graph.initializer.append(numpy_helper.from_array(np.array([3], np.int64), "l3"))
    for name, data in {"inner0": [1], "inner1": [7]}.items():
        made.graph.initializer.append(numpy_helper.from_array(np.array(data, np.int64), name))
    for node in made.graph.node:
        if node.output[0] == "c":
            node.input[1], node.input[2] = "inner0", "inner1"
    return made


WAY = ["Conv", "Pad", "Reshape", "Add", "Conv"]


def read(source: onnx.ModelProto, side: int = 6) -> list[str]:
    return operators_of(source, {"x": numbers(3, 1, 3, side, side)})


ONE_SIDE = bordered("v = Concat<axis = 2>(row, u)", read="y = Conv<kernel_shape = [3, 3], pads = [0, 1, 1, 1]>(v, k)")


@pytest.mark.parametrize("source", [bordered(JOINED), put(), ONE_SIDE], ids=["joined", "put", "one side"])
def test_the_bias_is_added_behind_zeros(source: onnx.ModelProto) -> None:
    assert read(source) == WAY


def test_a_bias_that_was_rounded_otherwise_is_one_still() -> None:
    source = bordered(JOINED)
    for held in source.graph.initializer:
        if held.name == "row":
            data = numpy_helper.to_array(held) * np.float32(1 + 2**-20)
            held.CopyFrom(numpy_helper.from_array(data, "row"))
    assert read(source) == WAY


def test_means_of_windows_read_it_so() -> None:
    source = bordered(JOINED, read="w = AveragePool<kernel_shape = [3, 3]>(v) y = Conv<kernel_shape = [1, 1]>(w, c)")
    source.graph.initializer.append(numpy_helper.from_array(numbers(5, 5, CHANNELS, 1, 1), "c"))
    assert read(source) == ["Conv", "Pad", "Reshape", "Add", "AveragePool", "Conv"]


def test_what_something_else_reads_stays_beside_it() -> None:
    source = bordered(JOINED, read="m = Relu(v) y = Conv<kernel_shape = [3, 3]>(v, k)")
    source.graph.output.append(onnx.helper.make_tensor_value_info("m", onnx.TensorProto.FLOAT, [1, CHANNELS, 8, 8]))
    assert read(source).count("Concat") == 2


OTHERS = {
    "other numbers around it": bordered(JOINED.replace("(row, u, row)", "(row, u, other)")),
    "a convolution without a bias": bordered(JOINED, first="a"),
    "what is no convolution's": bordered(JOINED.replace("u, row", "w, row").replace("r =", "w = Relu(u) r =")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_around_anything_else_stays(name: str) -> None:
    assert "Pad" not in read(OTHERS[name])
