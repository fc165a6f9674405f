"""Short rows that are repeated over many places: brought before a transpose, made longer, and written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import plus
from superopt.operators.definitions.short_rows import (
    LARGEST,
    LONGEST,
    MANY,
    SHORT,
    WORTH_WRITING,
    as_a_product_with_ones,
    before_short_rows,
    beside_all,
    in_longer_rows,
)
from superopt.operators.differences import Sub
from superopt.operators.extrema import Max
from superopt.operators.layout import Expand, Transpose
from superopt.operators.pointwise import Add, Binary, Div, Mul, Relu
from superopt.term import TRUTH, Term, subterms, variable
from tests.models import assert_same, model, weight

OPERATORS = {"add": Add(), "sub": Sub(), "mul": Mul(), "div": Div()}


def row(size: int, to: tuple[Dim, ...], axis: int = -1) -> Term:
    with assuming():
        return Expand((axis % len(to),), to)(variable("row", (size,), constant=True))


def computed(axes: tuple[int, ...], to: tuple[int, ...]) -> Term:
    """What is computed, repeated along the other axes."""
    return Expand(axes, to)(variable("computed", tuple(to[a] for a in axes)))


def assert_equal(found: Term | None, wanted: Term) -> None:
    assert found is not None
    assert found.shape == wanted.shape
    values = {v: np.abs(a) + 1.0 for v, a in sample((found, wanted), FLOAT, 0).items()}
    np.testing.assert_array_equal(evaluate(found, FLOAT, values), evaluate(wanted, FLOAT, values))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (1, 6, 7, 4)], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["row last", "row first"])
def test_a_short_row_is_repeated_in_longer_ones_whatever_is_done_with_it(
    name: str, shape: tuple[int, ...], turned: bool
) -> None:
    x, short = variable("x", shape), row(shape[-1], shape)
    inputs = (short, x) if turned else (x, short)
    assert_equal(in_longer_rows(OPERATORS[name], *inputs), OPERATORS[name](*inputs))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize(
    ("axes", "shape"), [((1,), (5, 3)), ((0, 2), (2, 4, 3)), ((0, 3), (2, 6, 7, 4)), ((2,), (1, 9, 3))], ids=str
)
@pytest.mark.parametrize("turned", [False, True], ids=["row last", "row first"])
@pytest.mark.parametrize("constant", [False, True], ids=["of what is computed", "of a constant"])
def test_a_computed_short_row_is_written_out_for_longer_ones(
    name: str, axes: tuple[int, ...], shape: tuple[int, ...], turned: bool, constant: bool
) -> None:
    x, short = variable("x", shape, constant=constant), computed(axes, shape)
    inputs = (short, x) if turned else (x, short)
    found = in_longer_rows(OPERATORS[name], *inputs)
    assert_equal(found, OPERATORS[name](*inputs))
    assert found is not None
    assert not any(isinstance(i.operator, Expand) for i in found.inputs[0].inputs)


@pytest.mark.parametrize("to", [(MANY, 3), (2, MANY, 4), (1, MANY, 2), (MANY, 1, 5), (MANY, LONGEST)], ids=str)
def test_a_number_for_each_short_row_is_a_product_with_ones(to: tuple[int, ...]) -> None:
    whole = computed(tuple(a for a, d in enumerate(to[:-1]) if d > 1), to)
    found = as_a_product_with_ones(whole.operator, *whole.inputs)
    assert found is not None
    assert found.type == whole.type
    (numbers,) = whole.inputs
    with np.errstate(invalid="ignore"):
        given = np.random.default_rng(0).standard_normal(numbers.shape)
        given.flat[:3] = np.inf, -np.inf, np.nan
        values = {numbers: given}
        np.testing.assert_array_equal(evaluate(found, FLOAT, values), evaluate(whole, FLOAT, values))


@pytest.mark.parametrize(
    "whole",
    [
        computed((0,), (MANY - 1, 3)),
        computed((0,), (MANY, LONGEST + 1)),
        computed((0,), (MANY, 1)),
        computed((1,), (MANY, 3)),
        computed((0, 1), (MANY, 3)),
        computed((), (MANY, 3)),
        row(MANY, (MANY, 3), axis=0),
        Expand((0,), (MANY, 3))(variable("mask", (MANY,), TRUTH)),
        Expand((0,), (MANY, 3))(variable("integers", (MANY,), "int8")),
    ],
    ids=["few", "long", "of one", "a row", "not repeated", "one number", "constant", "truth values", "integers"],
)
def test_what_is_no_number_for_each_of_many_short_rows_is_no_product(whole: Term) -> None:
    assert as_a_product_with_ones(whole.operator, *whole.inputs) is None


@pytest.mark.parametrize(
    "inputs",
    [
        (variable("x", (5, SHORT)), row(SHORT, (5, SHORT))),
        (variable("x", (5, 1)), row(1, (5, 1))),
        (variable("x", (1, 3)), row(3, (1, 3))),
        (variable("x", (LARGEST, 3)), row(3, (LARGEST, 3))),
        (variable("x", (5, 3)), row(5, (5, 3), axis=0)),
        (variable("x", (5, 3)), Expand((0,), (5, 3))(variable("r", (5,)))),
        (variable("x", (2, 5, 3)), Expand((1, 2), (2, 5, 3))(variable("r", (5, 3)))),
        (variable("x", (5, 2 * WORTH_WRITING)), computed((1,), (5, 2 * WORTH_WRITING))),
        (variable("x", (symbol("n"), 3)), row(3, (symbol("n"), 3))),
        (variable("x", (3,)), variable("r", (3,), constant=True)),
    ],
    ids=[
        "long",
        "of one",
        "one place",
        "much",
        "of another axis",
        "a computed number for each row",
        "many computed rows",
        "a long computed row",
        "how many is not known",
        "not repeated",
    ],
)
def test_what_is_no_short_row_over_many_places_stays(inputs: tuple[Term, Term]) -> None:
    assert in_longer_rows(Add(), *inputs) is None


@pytest.mark.parametrize("perm", list(itertools.permutations(range(4))), ids=str)
def test_a_transpose_comes_before_a_short_row_and_what_else_is_constant(perm: tuple[int, ...]) -> None:
    shape = (2, 4, 5, 3)
    x, several = variable("x", shape), Expand((1, 3), shape)(variable("several", (4, 3), constant=True))
    for other in (row(3, shape), several):
        once = Sub()(other, x)
        wanted = Transpose(perm)(Div()(once, row(3, shape)))
        found = before_short_rows(Transpose(perm), wanted.inputs[0])
        assert_equal(found, wanted)
        assert found is not None
        assert found.inputs[0] == Transpose(perm)(once)


@pytest.mark.parametrize(
    "x",
    [
        Relu()(variable("x", (2, 3))),
        plus(variable("x", (2, 3)), 1.0),
        Add()(variable("x", (2, SHORT)), row(SHORT, (2, SHORT))),
        Max()(variable("x", (2, 3)), variable("y", (2, 3))),
        Add()(variable("c", (2, 3), constant=True), computed((1,), (2, 3))),
        variable("x", (2, 3)),
    ],
    ids=["no row", "a number", "a long row", "two that are computed", "a computed row", "nothing"],
)
def test_a_transpose_stays_behind_what_repeats_no_short_row(x: Term) -> None:
    assert before_short_rows(Transpose((1, 0)), x) is None


@pytest.mark.parametrize("after", [["Transpose"], []], ids=["channels first", "channels last"])
def test_images_are_scaled_faster_and_are_the_same(after: list[str], options: Options) -> None:
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["b"]),
        helper.make_node("Div", ["b", "spread"], ["c" if after else "y"]),
        *[helper.make_node(op, ["c"], ["y"], perm=[0, 3, 1, 2]) for op in after],
    ]
    shape = [1, 224, 224, 3]
    ends = [("x", TensorProto.FLOAT, shape), ("y", TensorProto.FLOAT, [1, 3, 224, 224] if after else shape)]
    constants = {n: np.array([i + 60, 58, 57], np.float32) for i, n in enumerate(("mean", "spread"))}
    given = model(nodes, ends[:1], ends[1:], constants)
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


def test_vectors_are_divided_by_their_norms_faster_and_are_the_same(options: Options) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["a"]),
        helper.make_node("ReduceSum", ["a", "axis"], ["b"], keepdims=1),
        helper.make_node("Sqrt", ["b"], ["c"]),
        helper.make_node("Div", ["x", "c"], ["y"]),
    ]
    ends = [(name, TensorProto.FLOAT, [1, 32768, 3]) for name in "xy"]
    given = model(nodes, ends[:1], ends[1:], {"axis": np.array([2], np.int64)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)


def test_masks_of_rows_are_repeated_as_they_were(options: Options) -> None:
    nodes = [
        helper.make_node("Less", ["x", "t"], ["m"]),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("Where", ["m", "r", "t"], ["y"]),
    ]
    shapes = {"x": [1, 256, 1], "z": [1, 256, 64], "y": [1, 256, 64]}
    ends = [(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    given = model(nodes, ends[:2], ends[2:], {"t": np.array(0.5, np.float32)})
    assert_same(superopt.optimize(given, options).proto(), given)


BESIDE = {
    "levels": ((2, 3, 4, 2, 2), (2, 4), (4, 2)),
    "of all places": ((5, 3, 4, 2), (0, 2, 3), (5, 4, 2)),
    "one for each row": ((7, 6, 4), (1,), (6,)),
}


@pytest.mark.parametrize(("shape", "axes", "own"), BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("kind", [Add, Sub, Mul, Div])
@pytest.mark.parametrize("which", [0, 1])
def test_numbers_of_some_of_the_last_axes_are_data_of_all(
    shape: tuple[int, ...], axes: tuple[int, ...], own: tuple[int, ...], kind: type[Binary], which: int
) -> None:
    x, numbers = variable("x", shape), Expand(axes, shape)(variable("c", own, constant=True))
    term = kind()(*((numbers, x) if which == 0 else (x, numbers)))
    made = beside_all(kind(), *term.inputs)
    assert_equal(made, term)
    assert made is not None
    (inner,) = (t for t in subterms(made) if isinstance(t.operator, kind))
    repeat = inner.inputs[which].operator
    assert isinstance(repeat, Expand)
    assert repeat.axes == (inner.type.rank - 1,)


def test_of_open_sizes_only_those_before_are_left_open() -> None:
    with assuming():
        shape = (1, symbol("q"), 8, 4, 4, 2)
        x, numbers = variable("x", shape), Expand((3, 5), shape)(variable("c", (4, 2), constant=True))
        found = beside_all(Div(), x, numbers)
    assert found is not None
    assert found.shape == shape


@pytest.mark.parametrize(
    ("shape", "axes", "own", "constant"),
    [
        ((9, 4, 2), (2,), (2,), True),
        ((9, 4, SHORT), (0,), (9,), True),
        ((9, 4, SHORT), (0, 2), (9, SHORT), True),
        ((9, 4, 2), (0, 2), (9, 2), False),
        ((9, 4, 2), (), (), True),
    ],
    ids=["short rows", "long rows", "long rows of two", "computed", "a number"],
)
def test_numbers_that_are_repeated_fast_or_computed_are_left(
    shape: tuple[int, ...], axes: tuple[int, ...], own: tuple[int, ...], constant: bool
) -> None:
    numbers = Expand(axes, shape)(variable("c", own, constant=constant))
    assert beside_all(Mul(), variable("x", shape), numbers) is None


def test_points_of_several_levels_are_scaled_faster_and_are_the_same(options: Options) -> None:
    ends = [(name, TensorProto.FLOAT, [1, 100, 8, 4, 4, 2]) for name in "xy"]
    given = model([helper.make_node("Div", ["x", "c"], ["y"])], ends[:1], ends[1:], {"c": weight(4, 1, 2)})
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), given)
