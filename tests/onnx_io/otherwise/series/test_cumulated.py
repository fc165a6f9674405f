"""Running sums along the last axis of many rows are taken along the first, and are the same bit by bit."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import superopt
from superopt.api import Options
from superopt.onnx_io.otherwise.series.cumulated import LEAST, ROWS
from tests.models import assert_same
from tests.onnx_io.models import as_read, model
from tests.onnx_io.networks import run

LONG = LEAST // ROWS


def adding(shape: str, axis: int = -1, how: str = "", dtype: str = "float") -> str:
    return f"g ({dtype}[{shape}] x) => ({dtype}[{shape}] y) <int64 a = {{{axis}}}> {{ y = CumSum{how}(x, a) }}"


def kinds(made: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node if node.op_type != "Constant"]


@pytest.mark.parametrize("how", ["", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"])
@pytest.mark.parametrize("shape", [(ROWS, LONG), (2, ROWS, LONG), (ROWS, 1, 2, LONG)], ids=str)
def test_running_sums_of_rows_are_taken_along_the_first_axis(shape: tuple[int, ...], how: str) -> None:
    for axis in (-1, len(shape) - 1):
        source, made = as_read(adding(", ".join(map(str, shape)), axis, how))
        assert kinds(made) == ["Transpose", "CumSum", "Transpose"]
        x = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
        np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


def test_how_many_there_are_may_be_open() -> None:
    source, made = as_read(adding(f"n, {ROWS}, {LONG}"))
    assert kinds(made) == ["Transpose", "CumSum", "Transpose"]
    for n in (1, 3):
        x = {"x": np.random.default_rng(n).standard_normal((n, ROWS, LONG)).astype(np.float32)}
        np.testing.assert_array_equal(run(made, x)[0], run(source, x)[0])


@pytest.mark.parametrize(
    "text",
    [
        adding(f"{ROWS}, {LONG - 1}"),
        adding(f"{ROWS - 1}, {2 * LONG}"),
        adding(f"{LEAST}"),
        adding(f"{ROWS}, {LONG}", axis=0),
        adding(f"{ROWS}, {LONG}, 2", axis=1),
    ],
    ids=["few elements", "few rows", "one row", "the first axis", "an axis between"],
)
def test_other_running_sums_stay(text: str) -> None:
    assert kinds(as_read(text)[1]) == ["CumSum"]


def test_running_sums_are_faster_and_the_same(options: Options) -> None:
    given = model(adding("256, 1024"), 17)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
