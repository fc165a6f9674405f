"""How often numbers come is counted, and not added up of rows of ones and zeros: the same, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from superopt.onnx_io import load, understand
from tests.onnx_io.models import model
from tests.onnx_io.networks import run

PLACES = 300
SIZES = (3, 4, 5)
CODES = {"float": 1, "int32": 6, "int64": 7, "double": 11}
ODD = (-1, -PLACES, -PLACES - 1, PLACES, PLACES - 1, 2**31 - 1, -(2**31))
HOT = f"int64 depth = {{{PLACES}}}"


def read(
    text: str, opset: int = 18, weights: dict[str, np.ndarray] | None = None
) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model with its weights, and as it is read."""
    source = model(text, opset)
    source.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in (weights or {}).items())
    onnx.checker.check_model(source, full_check=True)
    made = ir.to_proto(understand(load(source)).model)
    onnx.checker.check_model(made, full_check=True)
    return source, made


def kinds(of: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in of.graph.node}


def drawn(shape: tuple[int, ...], dtype: str = "int64", seed: int = 0) -> np.ndarray:
    """Numbers that are repeated, negative, and no place's."""
    draw = np.random.default_rng(seed)
    numbers = draw.integers(-3, 9, shape)
    strange = draw.choice(ODD, shape)
    return np.asarray(np.where(draw.random(shape) < 0.3, strange, numbers)).astype(dtype)


def agrees(source: onnx.ModelProto, made: onnx.ModelProto, numbers: np.ndarray) -> None:
    """Both give the same, and numbers of the same type."""
    assert "ScatterElements" in kinds(made)
    assert "OneHot" not in kinds(made)
    (expected,), (found,) = run(source, {"i": numbers}), run(made, {"i": numbers})
    assert expected.dtype == found.dtype
    np.testing.assert_array_equal(found, expected)


def reduced(kind: str, axes: tuple[int, ...], keeps: int, opset: int = 18) -> tuple[str, str]:
    """A reduction of `h`, and what is held for it."""
    listed = ", ".join(map(str, axes))
    if kind == "ReduceSum" or opset >= 18:
        return f"y = {kind}<keepdims = {keeps}>(h, axes)", f"int64[{len(axes)}] axes = {{{listed}}}"
    return f"y = {kind}<axes = [{listed}], keepdims = {keeps}>(h)", "int64[1] unread = {0}"


def named(
    kind: str, axis: int, axes: tuple[int, ...], keeps: int = 0, dtype: str = "float", opset: int = 18, given: str = ""
) -> str:
    """A OneHot along an axis of three, or of what is given, and a reduction along axes."""
    node, held = reduced(kind, axes, keeps, opset)
    rank = (given or "3, 4, 5").count(",") + 2 - (0 if keeps else len(axes))
    shape = ", ".join(f"d{i}" for i in range(rank))
    return (
        f"g (int64[{given or '3, 4, 5'}] i) => ({dtype}[{shape}] y) <{HOT}, {dtype}[2] values = {{0, 1}}, {held}> "
        f"{{ h = OneHot<axis = {axis}>(i, depth, values) {node} }}"
    )


def layouts() -> Iterator[tuple[int, tuple[int, ...]]]:
    """All places of the new axis, with all sets of others."""
    for axis in range(4):
        others = [a for a in range(4) if a != axis]
        for many in (1, 2, 3):
            yield from ((axis, axes) for axes in combinations(others, many))


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize(("axis", "axes"), list(layouts()))
def test_numbers_are_counted_along_any_axes(kind: str, axis: int, axes: tuple[int, ...]) -> None:
    source, made = read(named(kind, axis, axes))
    agrees(source, made, drawn(SIZES))


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("opset", [13, 16, 17, 18, 20])
@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_numbers_are_counted_in_any_type_and_opset(dtype: str, kind: str, opset: int, keeps: int) -> None:
    source, made = read(named(kind, -1, (1, -2), keeps, dtype, opset), opset)
    assert made.opset_import[0].version == max(opset, 16)
    agrees(source, made, drawn(SIZES))


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize(("axis", "axes"), [(-1, (1,)), (1, (2,)), (0, (2,))])
def test_any_number_of_rows_is_counted_also_none(axis: int, axes: tuple[int, ...], rows: int) -> None:
    source, made = read(named("ReduceSum", axis, axes, given="rows, 40"))
    agrees(source, made, drawn((rows, 40)))


@pytest.mark.parametrize("many", [0, 1, 40])
def test_integers_are_added_up_of_any_number_of_words_also_none(many: int) -> None:
    source, made = read(named("ReduceSum", -1, (1,), dtype="int64", given="rows, many"))
    agrees(source, made, drawn((2, many)))


def compared(dtype: str, to: str, shape: str, of: str, node: str, held: str) -> str:
    rank = "a, b" if "keepdims = 1" in node else "a"
    return (
        f"g ({dtype}[{shape}] i) => ({to}[{rank}] y) <int64[1] last = {{-1}}, {held}> "
        f"{{ e = Equal({of}) h = Cast<to = {CODES[to]}>(e) {node} }}"
    )


@pytest.mark.parametrize("to", CODES)
@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize(("shape", "of", "places", "axis"), [
    ((1, 70), "i, all", (PLACES, 1), 1),
    ((1, 70), "all, i", (PLACES, 1), 1),
    ((70,), "i, all", (PLACES, 1), 1),
    ((70, 1), "i, all", (PLACES,), 0),
    ((70, 1), "i, all", (1, PLACES), 0),
])  # fmt: skip
def test_numbers_that_are_compared_with_all_places_are_counted(
    dtype: str, to: str, shape: tuple[int, ...], of: str, places: tuple[int, ...], axis: int
) -> None:
    kind = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    node, held = reduced("ReduceSum", (axis,), 0)
    text = compared(dtype, to, ", ".join(map(str, shape)), of, node, held)
    source, made = read(text, weights={"all": np.arange(PLACES).reshape(places).astype(kind)})
    agrees(source, made, drawn(shape, kind))


def test_fractions_and_what_is_no_number_are_counted_nowhere() -> None:
    node, held = reduced("ReduceSum", (1,), 0)
    text = compared("float", "int64", "1, 24", "i, all", node, held)
    source, made = read(text, weights={"all": np.arange(PLACES).reshape(-1, 1).astype(np.float32)})
    odd = [0.5, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 299.00003, 299, 3.9999998, -0.5, 300]
    agrees(source, made, np.array([odd * 2], np.float32))


def test_what_is_cast_on_the_way_is_counted() -> None:
    text = (
        f"g (int64[3, 40] i) => (float[3, {PLACES}] y) <{HOT}, int64[2] values = {{0, 1}}, int64[1] axes = {{1}}> "
        "{ k = OneHot(i, depth, values) h = Cast<to = 1>(k) y = ReduceSum<keepdims = 0>(h, axes) }"
    )
    source, made = read(text)
    agrees(source, made, drawn((3, 40)))


def test_two_reductions_of_the_same_are_both_counted() -> None:
    text = (
        f"g (int64[3, 40] i) => (float[3, {PLACES}] y, float[3, {PLACES}] z) "
        f"<{HOT}, float[2] values = {{0, 1}}, int64[1] axes = {{1}}> {{ h = OneHot(i, depth, values) "
        "y = ReduceSum<keepdims = 0>(h, axes) z = ReduceMax<keepdims = 0>(h, axes) }"
    )
    source, made = read(text)
    assert "OneHot" not in kinds(made)
    for expected, found in zip(*(run(m, {"i": drawn((3, 40))}) for m in (source, made)), strict=True):
        np.testing.assert_array_equal(found, expected)


STAYING = {
    "other values": named("ReduceSum", -1, (1,)).replace("{0, 1}", "{1, 0}"),
    "zeros below zero": named("ReduceSum", -1, (1,)).replace("{0, 1}", "{-0.0, 1}"),
    "the new axis": named("ReduceSum", -1, (3,)),
    "the new axis too": named("ReduceSum", -1, (2, 3)),
    "floating-point numbers, nobody knows how many": named("ReduceSum", -1, (1,), given="rows, many"),
    "the largest of nobody knows how many, or none": named("ReduceMax", -1, (1,), dtype="int64", given="rows, many"),
    "floating-point numbers, too many": named("ReduceSum", -1, (1,), given="2, 16777216"),
    "few numbers": named("ReduceSum", -1, (1,), given="2, 3"),
    "no axes": named("ReduceSum", -1, (1,)).replace("keepdims = 0", "noop_with_empty_axes = 1, keepdims = 1")
               .replace("int64[1] axes = {1}", "int64[0] axes = {}").replace("d0, d1, d2", "d0, d1, d2, d3"),
}  # fmt: skip


@pytest.mark.parametrize("text", STAYING.values(), ids=STAYING)
def test_rows_of_ones_and_zeros_stay(text: str) -> None:
    assert "OneHot" in kinds(read(text)[1])


def test_numbers_that_are_compared_with_others_than_all_places_stay() -> None:
    node, held = reduced("ReduceSum", (1,), 0)
    text = compared("float", "float", "1, 70", "i, all", node, held)
    places = np.arange(PLACES).reshape(-1, 1).astype(np.float32)
    for others in (places + 1, places[::-1], places / 2):
        assert "ScatterElements" not in kinds(read(text, weights={"all": others})[1])


def test_a_model_whose_opset_may_not_rise_stays() -> None:
    """A RoiAlign came to mean something else in opset 16."""
    text = (
        f"g (int64[3, 40] i, float[1, 1, 8, 8] x, float[1, 4] rois, int64[1] n) => (float[3, {PLACES}] y, "
        f"float[1, 1, 2, 2] z) <{HOT}, float[2] values = {{0, 1}}, int64[1] axes = {{1}}> "
        "{ z = RoiAlign<output_height = 2, output_width = 2>(x, rois, n) h = OneHot(i, depth, values) "
        "y = ReduceSum<keepdims = 0>(h, axes) }"
    )
    _, made = read(text, 13)
    assert made.opset_import[0].version == 13
    assert "OneHot" in kinds(made)
    assert "ScatterElements" in kinds(read(text, 16)[1])
