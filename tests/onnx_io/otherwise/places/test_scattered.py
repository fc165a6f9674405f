"""Rows that are put in places one number after the other are put there as rows."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

DRAWN = np.random.default_rng(0)


def scattering(
    attributes: str = 'reduction = "add"',
    x: tuple[str, ...] = ("5", "4"),
    rows: tuple[str, ...] = ("7", "4"),
    column: str = "m = Unsqueeze(i, one)",
    kind: str = "float",
) -> str:
    """A model that puts rows where i says, as PyTorch Geometric does it."""
    of, put, out = (", ".join(sizes) for sizes in (x, rows, [f"d{a}" for a in range(len(x))]))
    return f"""g ({kind}[{of}] x, int64[{rows[0]}] i, {kind}[{put}] rows) => ({kind}[{out}] y) {{
        one = Constant<value_ints = [{", ".join(str(a) for a in range(1, len(x)))}]>()
        {column} to = Shape(rows)
        places = Expand(m, to)
        y = ScatterElements<{attributes}>(x, places, rows) }}"""


STAYS = {
    "where places are computed": scattering(),
    "where places are computed, and none is added": scattering('reduction = "none"'),
    "along the last axis": scattering('axis = 1, reduction = "add"', x=("7", "9")),
    "integers": scattering(kind="int64"),
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_others_stay(text: str) -> None:
    """Computed places may be the same, and onnxruntime's ScatterND loses rows that meet in several threads."""
    assert not understand(load(model(text, 18))).otherwise


def test_rows_of_single_numbers_stay() -> None:
    """Their places are repeated once, which is left out."""
    given = load(model(scattering(x=("5", "1"), rows=("7", "1")), 18))
    assert [n.op_type for n in understand(given).model.graph] == ["Constant", "Unsqueeze", "ScatterElements"]


def of_constants(index: np.ndarray, reduction: str = "add", x: str = "5, 4", rows: str = "7, 4") -> onnx.ModelProto:
    """A model that puts rows in places that are written out for each number."""
    text = f"""g (float[{x}] x, float[{rows}] rows) => (float[{x}] y) {{
        y = ScatterElements<reduction = "{reduction}">(x, places, rows) }}"""
    given = model(text, 18)
    given.graph.initializer.append(numpy_helper.from_array(index, "places"))
    return given


def repeated(column: list[int], *to: int, dtype: type = np.int64) -> np.ndarray:
    return np.broadcast_to(np.array(column, dtype).reshape(-1, *[1] * len(to)), (len(column), *to)).copy()


PLACES, APART = [0, 3, 3, -1, -5, 4, 2], [4, -5, -3]
ALONE = {
    "added": (of_constants(repeated(APART, 4), rows="3, 4"), (5, 4), (3, 4)),
    "put there": (of_constants(repeated(APART, 4), "none", rows="3, 4"), (5, 4), (3, 4)),
    "the smallest": (of_constants(repeated(APART, 4), "min", rows="3, 4"), (5, 4), (3, 4)),
    "a single row": (of_constants(repeated([-2], 4), rows="1, 4"), (5, 4), (1, 4)),
}
ADDED = {
    "rows": (of_constants(repeated(PLACES, 4)), (5, 4), (7, 4)),
    "of 32 bits": (of_constants(repeated(PLACES, 4, dtype=np.int32)), (5, 4), (7, 4)),
    "of two axes": (of_constants(repeated(PLACES, 2, 3), x="5, 2, 3", rows="7, 2, 3"), (5, 2, 3), (7, 2, 3)),
    "all in one place": (of_constants(repeated([0, 0, 0], 4), x="1, 4", rows="3, 4"), (1, 4), (3, 4)),
}  # fmt: skip
UNLIKE = repeated(PLACES, 4)
UNLIKE[2, 1] = 1
CONSTANT_STAYS = {
    "where numbers differ along rows": of_constants(UNLIKE),
    "to a part of each row": of_constants(repeated(PLACES, 4), x="5, 6"),
    "put there, two in one place": of_constants(repeated([0, 2, -5], 4), "none", rows="3, 4"),
    "the smallest, two in one place": of_constants(repeated([0, 2, -5], 4), "min", rows="3, 4"),
    "among an open number": of_constants(repeated(APART, 4), "add", "n, 4", "3, 4"),
    "most in one place of many": of_constants(repeated([0, 0, 0], 4), x="99, 4", rows="3, 4"),
    "of no place": of_constants(repeated([5], 4), rows="1, 4"),
    "no row": of_constants(repeated([], 4), rows="0, 4"),
}


@pytest.mark.parametrize(
    ("given", "x", "rows", "kinds"),
    [
        *((*case, ["ScatterND"]) for case in ALONE.values()),
        *((*case, ["Concat", "Gather", "ReduceSum", "Add"]) for case in ADDED.values()),
    ],
    ids=[*ALONE, *(f"added {name}" for name in ADDED)],
)
def test_rows_are_put_in_constant_places_as_rows(
    given: onnx.ModelProto, x: tuple[int, ...], rows: tuple[int, ...], kinds: list[str]
) -> None:
    made = ir.to_proto(understand(load(given)).model)
    onnx.checker.check_model(made, full_check=True)
    assert [n.op_type for n in made.graph.node if n.op_type != "Constant"] == kinds
    assert not made.graph.initializer
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    feeds = {name: DRAWN.standard_normal(s).astype(np.float32) for name, s in (("x", x), ("rows", rows))}
    (before,), (after,) = run(given, feeds), run(made, feeds)
    np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given", CONSTANT_STAYS.values(), ids=CONSTANT_STAYS)
def test_others_in_constant_places_stay(given: onnx.ModelProto) -> None:
    assert not understand(load(given)).otherwise


def test_a_constant_column_that_is_repeated_is_what_is_read() -> None:
    text = (
        scattering()
        .replace("int64[7] i, ", "")
        .replace("{", "{ i = Constant<value_ints = [0, 3, 3, -1, -5, 4, 2]>()", 1)
    )
    given = model(text, 18)
    made = ir.to_proto(understand(load(given)).model)
    kinds = [n.op_type for n in made.graph.node if n.op_type != "Constant"]
    assert kinds == ["Concat", "Gather", "ReduceSum", "Add"]
    feeds = {"x": np.ones((5, 4), np.float32), "rows": DRAWN.standard_normal((7, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(given, feeds)[0], run(made, feeds)[0], rtol=1e-5)
