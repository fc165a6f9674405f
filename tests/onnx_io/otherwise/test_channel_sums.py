"""Sums and means over the channels of one image are products of a row with a matrix, where nothing else is lost."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from superopt.onnx_io.otherwise.channel_sums import FOLLOWING, LEAST
from tests.onnx_io.models import model
from tests.onnx_io.networks import Array
from tests.onnx_io.otherwise.reading import gain, operators_of


def reducing(
    shape: tuple[int, ...], axes: list[int], op: str = "ReduceMean", keeps: int = 1, dtype: str = "float"
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one reduction, and what it is run on, some of which is infinite."""
    rest = [1 if a in axes else d for a, d in enumerate(shape) if keeps or a not in axes]
    sizes, result = (", ".join(map(str, s)) for s in (shape, rest))
    of = ", ".join(map(str, axes))
    made = model(
        f"g ({dtype}[{sizes}] x) => ({dtype}[{result}] y) <int64[{len(axes)}] axes = {{{of}}}> "
        f"{{ y = {op}<keepdims = {keeps}>(x, axes) }}",
        opset=18,
    )
    x = np.random.default_rng(0).standard_normal(shape)
    x.flat[:3] = np.inf, -np.inf, np.nan
    return made, {"x": x.astype({"float": np.float32, "double": np.float64}[dtype])}


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((1, 32, 32, 64), [1]), ((1, 1, 40, 1000), [2]), ((1, 8, 8, 1024), [1, 2])]
)
def test_what_is_added_up_over_channels_is_a_product(
    shape: tuple[int, ...], axes: list[int], op: str, keeps: int
) -> None:
    assert operators_of(*reducing(shape, axes, op, keeps)) == ["Reshape", "MatMul", "Reshape"]


def test_what_is_told_is_of_one_image_many_places_and_32_bits() -> None:
    for shape, axes, dtype in (
        ((2, 32, 32, 64), [1], "float"),
        ((1, 32, 32, 64), [1, 3], "float"),
        ((1, 32, 32, 64), [2, 3], "float"),
        ((1, LEAST // 64 - 1, 64), [1], "float"),
        ((1, LEAST // 16, FOLLOWING // 2), [1], "float"),
        ((1, 1, 256, 256), [1], "float"),
        ((64, 1024), [0], "float"),
        ((1, 32, 32, 64), [1], "double"),
    ):
        assert operators_of(*reducing(shape, axes, dtype=dtype)) == ["ReduceMean"], (shape, axes, dtype)
    assert operators_of(*reducing((1, 32, 32, 64), [1], "ReduceMax")) == ["ReduceMax"]


def test_an_image_of_any_size_is_left_as_it_is() -> None:
    made = model("g (float[1, 64, h, w] x) => (float[1, 1, h, w] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }", 18)
    x = np.random.default_rng(0).standard_normal((1, 64, 32, 32)).astype(np.float32)
    assert operators_of(made, {"x": x}) == ["ReduceMean"]


def test_a_norm_over_channels_gains() -> None:
    made = model(
        "g (float[1, 64, 64, 64] x) => (float[1, 64, 64, 64] y) <int64[1] one = {1}, float e = {0.000001}> { "
        "m = ReduceMean(x, one) d = Sub(x, m) s = Mul(d, d) v = ReduceMean(s, one) w = Add(v, e) r = Sqrt(w) "
        "y = Div(d, r) }",
        opset=18,
    )
    x = np.random.default_rng(0).standard_normal((1, 64, 64, 64)).astype(np.float32)
    assert gain(made, {"x": x}) > 1.3


def test_axes_that_an_attribute_tells_are_as_good() -> None:
    made = model("g (float[1, 64, 512] x) => (float[1, 512] y) { y = ReduceMean<axes = [-2], keepdims = 0>(x) }", 13)
    x = np.random.default_rng(0).standard_normal((1, 64, 512)).astype(np.float32)
    assert operators_of(made, {"x": x}) == ["Reshape", "MatMul", "Reshape"]
