"""The larger of two is told by a comparison, and is the same one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import superopt
from superopt.api import Options
from superopt.onnx_io.otherwise.larger import LEAST
from tests.models import assert_same
from tests.onnx_io.models import as_read, model
from tests.onnx_io.networks import run

HALF = LEAST // 2


def finding(shape: str, axis: int = 1, kind: str = "ArgMax", keeps: int = 0, more: str = "") -> str:
    rank = len(shape.split(",")) - 1 + keeps
    to = ", ".join(f"d{i}" for i in range(rank))
    return f"g (float[{shape}] x) => (int64[{to}] y) {{ y = {kind}<axis = {axis}, keepdims = {keeps}{more}>(x) }}"


def kinds(made: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in made.graph.node}


@pytest.mark.parametrize("opset", [9, 13, 17])
@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 2, HALF), 1), ((2, HALF), 0), ((3, 2, 2, HALF), -2), ((1, 2, 64, 64), -3)], ids=str
)
def test_the_larger_of_two_is_told_by_a_comparison(
    shape: tuple[int, ...], axis: int, kind: str, keeps: int, opset: int
) -> None:
    if opset < 11:
        axis %= len(shape)
    source, made = as_read(finding(", ".join(map(str, shape)), axis, kind, keeps), opset)
    assert not kinds(made) & {"ArgMax", "ArgMin"}
    x = {"x": np.random.default_rng(0).integers(-2, 3, shape).astype(np.float32)}  # many are equal
    (expected,), (found,) = run(source, x), run(made, x)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_how_many_maps_there_are_may_be_open() -> None:
    source, made = as_read(finding("n, 2, 64, 64"))
    assert "ArgMax" not in kinds(made)
    for n in (1, 3):
        x = {"x": np.random.default_rng(n).standard_normal((n, 2, 64, 64)).astype(np.float32)}
        np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


@pytest.mark.parametrize(
    "text",
    [
        finding(f"1, 3, {LEAST}"),
        finding(f"{LEAST}, 2"),
        finding(f"1, 2, {HALF - 1}"),
        finding(f"1, 2, {HALF}", more=", select_last_index = 1"),
        finding(f"1, c, {LEAST}"),
    ],
    ids=["of three", "along the last axis", "few", "the last of equal ones", "of how many is open"],
)
def test_the_largest_of_others_stays(text: str) -> None:
    assert "ArgMax" in kinds(as_read(text)[1])


def test_a_mask_is_told_faster_and_is_the_same(options: Options) -> None:
    given = model(finding("1, 2, 256, 256"), 17)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
