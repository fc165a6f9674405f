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


CASES = {
    "added up": scattering(),
    "the largest": scattering('axis = 0, reduction = "max"'),
    "the smallest, of 64 bits": scattering('reduction = "min"', kind="double"),
    "multiplied": scattering('reduction = "mul"'),
    "put there": scattering('reduction = "none"'),
    "of open sizes": scattering(x=("n", "4"), rows=("e", "4")),
    "of repeated tiles": scattering().replace(
        "places = Expand(m, to)", "r = Constant<value_ints = [1, 4]>() places = Tile(m, r)"
    ),
    "of two axes": scattering(x=("5", "2", "4"), rows=("7", "2", "4")),
}
STAYS = {
    "along the last axis": scattering('axis = 1, reduction = "add"', x=("7", "9")),
    "to a part of each row": scattering(x=("5", "6")),
    "of single numbers": scattering(x=("5", "1"), rows=("7", "1")),
    "where numbers differ along rows": scattering(column="o = Unsqueeze(i, one) m = Concat<axis = 1>(o, o, o, o)"),
    "integers": scattering(kind="int64"),
    "where numbers have 32 bits": scattering().replace("int64[7] i", "int32[7] i"),
}  # fmt: skip


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_rows_are_put_there_as_rows(text: str) -> None:
    given = model(text, 18)
    program = understand(load(given))
    made = ir.to_proto(program.model)
    onnx.checker.check_model(made, full_check=True)
    assert program.otherwise
    kinds = {n.op_type for n in made.graph.node}
    assert "ScatterND" in kinds
    assert not kinds & {"ScatterElements", "Expand"}
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    dtype, middle = (np.float64 if "double" in text else np.float32), (2,) if "d2" in text else ()
    places = DRAWN.integers(-5, 5, 7)
    if '"none"' in text:  # whichever is the last to come to a place stays
        given, made, places = of_three(given), of_three(made), DRAWN.permutation(5)[:3]
    feeds = {
        "x": DRAWN.standard_normal((5, *middle, 4)).astype(dtype),
        "i": places,
        "rows": DRAWN.standard_normal((len(places), *middle, 4)).astype(dtype),
    }
    (before,), (after,) = run(given, feeds), run(made, feeds)
    np.testing.assert_allclose(before, after, rtol=1e-5)


def of_three(given: onnx.ModelProto) -> onnx.ModelProto:
    """The same with three rows: no two go to the same place."""
    for info in given.graph.input:
        if info.name != "x":
            info.type.tensor_type.shape.dim[0].dim_value = 3
    del given.graph.value_info[:]
    return given


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_others_stay(text: str) -> None:
    assert not understand(load(model(text, 18))).otherwise


def test_one_with_numbers_of_32_bits_keeps_no_other_as_it_is() -> None:
    text = scattering().replace("] rows)", "] rows, int32[7] j)").replace(") => (", ") => (float[e0, e1] z, ")
    more = 'k = Unsqueeze(j, one) more = Expand(k, to) z = ScatterElements<reduction = "add">(x, more, rows) }'
    made = understand(load(model(text[: text.rindex("}")] + more, 18))).model
    kinds = [n.op_type for n in made.graph]
    assert (kinds.count("ScatterND"), kinds.count("ScatterElements")) == (1, 1)


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
CONSTANT = {
    "added up": (of_constants(repeated(PLACES, 4)), (5, 4), (7, 4)),
    "of 32 bits": (of_constants(repeated(PLACES, 4, dtype=np.int32)), (5, 4), (7, 4)),
    "the smallest": (of_constants(repeated(PLACES, 4), "min"), (5, 4), (7, 4)),
    "a single row": (of_constants(repeated([-2], 4), rows="1, 4"), (5, 4), (1, 4)),
    "of two axes": (of_constants(repeated(PLACES, 2, 3), x="5, 2, 3", rows="7, 2, 3"), (5, 2, 3), (7, 2, 3)),
    "put there, each in a place of its own": (of_constants(repeated(APART, 4), "none", rows="3, 4"), (5, 4), (3, 4)),
    "of an open number of rows": (of_constants(repeated(PLACES, 4), x="n, 4"), (5, 4), (7, 4)),
}  # fmt: skip
UNLIKE = repeated(PLACES, 4)
UNLIKE[2, 1] = 1
CONSTANT_STAYS = {
    "where numbers differ along rows": of_constants(UNLIKE),
    "to a part of each row": of_constants(repeated(PLACES, 4), x="5, 6"),
    "put there, two in one place": of_constants(repeated([0, 2, -5], 4), "none", rows="3, 4"),
    "put there, among an open number": of_constants(repeated(APART, 4), "none", "n, 4", "3, 4"),
    "no row": of_constants(repeated([], 4), rows="0, 4"),
}


@pytest.mark.parametrize(("given", "x", "rows"), CONSTANT.values(), ids=CONSTANT)
def test_rows_are_put_in_constant_places_as_rows(
    given: onnx.ModelProto, x: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    made = ir.to_proto(understand(load(given)).model)
    onnx.checker.check_model(made, full_check=True)
    assert [n.op_type for n in made.graph.node] == ["Constant", "ScatterND"]
    assert not made.graph.initializer
    assert (made.graph.input, made.graph.output) == (given.graph.input, given.graph.output)
    feeds = {name: DRAWN.standard_normal(s).astype(np.float32) for name, s in (("x", x), ("rows", rows))}
    (before,), (after,) = run(given, feeds), run(made, feeds)
    np.testing.assert_allclose(before, after, rtol=1e-5)


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
    assert [n.op_type for n in made.graph.node if n.op_type != "Constant"] == ["ScatterND"]
    feeds = {"x": np.ones((5, 4), np.float32), "rows": DRAWN.standard_normal((7, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(given, feeds)[0], run(made, feeds)[0], rtol=1e-5)
