"""Few numbers are transformed by a product with waves; many by the transform that the model has."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from superopt.onnx_io.otherwise.transformed import MOST
from tests.onnx_io.models import model
from tests.onnx_io.networks import run
from tests.onnx_io.otherwise.reading import gain, operators_of


def transforming(shape: str, axis: int, how: str = "", opset: int = 20, kind: str = "float") -> onnx.ModelProto:
    """A model of one transform, the axis of which is told as the opset does."""
    of, attributes = ("s, , axis", how) if opset >= 20 else ("s", ", ".join(filter(None, (how, f"axis = {axis}"))))
    node = f"DFT<{attributes}>({of})" if attributes else f"DFT({of})"
    to = [*shape.split(", ")[:-1], "2"]
    at = axis if axis >= 0 else len(to) + axis
    to[at] = str(int(to[at]) // 2 + 1) if "onesided" in how else to[at]
    made = model(f"g ({kind}[{shape}] x) => ({kind}[{', '.join(to)}] y) {{ s = Sin(x) y = {node} }}", opset)
    if opset >= 20:
        made.graph.initializer.append(numpy_helper.from_array(np.array(axis, np.int64), "axis"))
    return made


def given(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


WAYS = {
    "columns of a picture": ("1, 16, 8, 5, 2", 1, "", 20),
    "what comes back": ("1, 16, 8, 5, 2", 1, "inverse = 1", 20),
    "numbers of one part": ("9, 30, 7, 1", 2, "onesided = 1", 20),
    "all waves of numbers of one part": ("9, 30, 7, 1", -2, "", 20),
    "rows that stand last": ("2, 30, 8, 2", 2, "", 17),
    "columns, told as an attribute": ("2, 9, 30, 1", 1, "onesided = 1", 17),
    "as many as are few": (f"9, {MOST}, 2", 1, "", 17),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_few_numbers_are_multiplied_by_waves(way: tuple[str, int, str, int]) -> None:
    shape, axis, how, opset = way
    operators = operators_of(transforming(shape, axis, how, opset), {"x": given(*map(int, shape.split(", ")))})
    assert "DFT" not in operators
    assert operators.count("MatMul") == 1


@pytest.mark.parametrize("n", [14, 28, 56])
def test_of_no_power_of_two_the_product_rounds_no_more(n: int) -> None:
    """Beside the waves of 64-bit numbers."""
    source, x = transforming(f"1, {n}, 8, 2", 1), given(1, n, 8, 2)
    exact = np.fft.fft((np.sin(x.astype(np.float64)) * [1.0, 1j]).sum(-1), axis=1)
    made = ir.to_proto(understand(load(source)).model)
    (before,), (after,) = (run(m, {"x": x}) for m in (source, made))
    errors = [abs((found.astype(np.float64) * [1.0, 1j]).sum(-1) - exact).max() for found in (before, after)]
    assert errors[1] <= errors[0]


@pytest.mark.parametrize("batch", [1, 3])
def test_there_may_be_any_number_of_pictures(batch: int) -> None:
    assert "DFT" not in operators_of(transforming("N, 6, 50, 2", 1), {"x": given(batch, 6, 50, 2)})


def test_of_sizes_that_are_not_known_the_transform_stays() -> None:
    assert "DFT" in operators_of(transforming("2, N, 500, 2", 1), {"x": given(2, 6, 500, 2)})


def test_many_numbers_are_transformed() -> None:
    assert "DFT" in operators_of(transforming(f"9, {MOST + 1}, 2", 1), {"x": given(9, MOST + 1, 2)})


def test_little_is_transformed() -> None:
    assert "DFT" in operators_of(transforming("1, 8, 2", 1), {"x": given(1, 8, 2)})


def test_numbers_of_64_bits_are_transformed() -> None:
    source = transforming("2, 8, 80, 2", 1, kind="double")
    assert "DFT" in operators_of(source, {"x": given(2, 8, 80, 2).astype(np.float64)})


def test_columns_of_a_picture_are_transformed_faster() -> None:
    assert gain(transforming("1, 14, 8, 32, 2", 1), {"x": given(1, 14, 8, 32, 2)}) > 2.0
