"""Sums and means along axes that others follow are products, or sums of several rows at once; of no others are they."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, Shape, symbol
from superopt.evaluate import evaluate
from superopt.operators.definitions.sums import (
    ABREAST,
    COLUMNS,
    FEW,
    LARGEST,
    MANY,
    MOST_ROWS,
    abreast,
    by_a_product,
    of_groups,
    without_ones,
)
from superopt.operators.matmul import MatMul
from superopt.operators.reductions import Largest, Mean, Reduction, Smallest, Sum
from superopt.term import subterms, variable
from tests.models import assert_same, model
from tests.operators.definitions.equality import assert_equal

KINDS: list[type[Reduction]] = [Mean, Sum]
SHAPES = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@pytest.mark.parametrize("kind", KINDS)
@given(SHAPES, st.data())
def test_a_reduction_by_a_product_is_the_reduction(
    kind: type[Reduction], sizes: list[int], data: st.DataObject
) -> None:
    """Of random elements of a prime field: two that differ agree once in 2³⁰ times."""
    first = data.draw(st.integers(0, len(sizes) - 1))
    axes = tuple(range(first, data.draw(st.integers(first + 1, len(sizes)))))
    term = kind.of(axes)(x := variable("x", tuple(sizes)))
    made = by_a_product(term.operator, x)
    if made is None:
        assert np.prod(sizes[axes[0] : axes[-1] + 1]) == 1 or np.prod(sizes[axes[-1] + 1 :]) == 1
        return
    assert any(isinstance(t.operator, MatMul) for t in subterms(made))
    values = {x: np.random.default_rng(0).integers(0, 2**30, sizes).astype(FIELD.dtype)}
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


@pytest.mark.parametrize("axes", [(1,), (0, 2), ()], ids=str)
def test_rows_that_lie_in_memory_one_after_the_other_stay_and_so_do_axes_apart(axes: tuple[int, ...]) -> None:
    shape = (3, 4, 5) if len(axes) > 1 else (3, 4)
    assert by_a_product(Mean(axes), variable("x", shape)) is None


def test_of_more_places_than_an_identity_may_have_it_stays() -> None:
    assert by_a_product(Sum((0,)), variable("x", (MOST_ROWS, 3))) is not None
    assert by_a_product(Sum((0,)), variable("x", (MOST_ROWS + 1, 3))) is None


def test_how_many_images_there_are_and_of_which_size_may_be_symbols() -> None:
    n, h = symbol("n"), symbol("h")
    x = variable("x", (n, 3, h, h))
    with assuming():
        made = by_a_product(Mean((1,)), x)
    assert made is not None
    assert str(made.shape) == str(Mean((1,))(x).shape)


def test_along_as_many_places_as_a_symbol_says_it_stays() -> None:
    assert by_a_product(Mean((1,)), variable("x", (2, symbol("c"), 4))) is None


def test_the_mean_over_channels_is_within_the_rounding_of_its_sum() -> None:
    x = variable("x", (1, 64, 8, 8))
    made = by_a_product(Mean((1,)), x)
    assert made is not None
    values = {x: np.random.default_rng(0).standard_normal((1, 64, 8, 8))}
    np.testing.assert_allclose(evaluate(made, FLOAT, values), values[x].mean(axis=1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((MANY, 4, 16), 1), ((4, MANY, 3, 5), 2), ((1, MANY, 2, 2, 3), 2)], ids=str
)
def test_of_groups_of_short_rows_it_is_a_product_with_identities(
    kind: type[Reduction], shape: tuple[int, ...], axis: int
) -> None:
    wanted = kind.of((axis,))(variable("x", shape))
    found = assert_equal(of_groups(wanted.operator, *wanted.inputs), wanted)
    assert any(isinstance(t.operator, MatMul) for t in subterms(found))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((MANY, 4, 2 * FEW), (1,)),
        ((MANY - 1, 4, 4), (1,)),
        ((MANY, LARGEST, 2), (1,)),
        ((MANY, 4, 1), (1,)),
        ((MANY, 4, 4), (0,)),
        ((MANY, 4, 4), (2,)),
        ((MANY, 4, 4, 4), (1, 2)),
        ((MANY, symbol("k"), 4), (1,)),
    ],
    ids=[
        "long rows",
        "few groups",
        "large groups",
        "of one",
        "the first axis",
        "the last",
        "two axes",
        "of open size",
    ],
)
def test_of_other_groups_it_is_no_such_product(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> None:
    assert of_groups(Sum(axes), variable("x", shape)) is None


def test_how_many_groups_there_are_may_be_a_symbol() -> None:
    n = symbol("n")
    with assuming():
        found = of_groups(Sum((2,)), variable("x", (n, 64, 4, 8)))
    assert found is not None
    assert found.shape == (n, 64, 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rest", [(), (1,), (2,), (2, 2), (COLUMNS,)], ids=str)
def test_many_short_rows_are_added_up_at_the_side_of_each_other(kind: type[Reduction], rest: tuple[int, ...]) -> None:
    wanted = kind.of((0,))(variable("x", (3 * ABREAST * MANY, *rest)))
    found = assert_equal(abreast(wanted.operator, *wanted.inputs), wanted)
    assert len([t for t in subterms(found) if isinstance(t.operator, kind)]) == 2


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((ABREAST * MANY, COLUMNS + 1), (0,)),
        ((ABREAST * (MANY - 1), 2), (0,)),
        ((ABREAST * MANY + 1, 2), (0,)),
        ((ABREAST * MANY, 2), (1,)),
        ((symbol("n"), 2), (0,)),
    ],
    ids=["long rows", "few", "not that many-th", "along rows", "how many is open"],
)
def test_other_rows_are_added_up_one_after_the_other(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> None:
    assert abreast(Sum(axes), variable("x", shape)) is None


@pytest.mark.parametrize(("shape", "axis"), [([4096, 4, 16], 1), ([131072, 2], 0)], ids=str)
def test_short_rows_are_added_up_faster_and_are_the_same(shape: list[int], axis: int, options: Options) -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    to = [d for a, d in enumerate(shape) if a != axis]
    ends = [("x", TensorProto.FLOAT, shape), ("y", TensorProto.FLOAT, to)]
    whole = model([node], ends[:1], ends[1:], {"axes": np.array([axis], np.int64)})
    result = superopt.optimize(whole, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), whole)


@pytest.mark.parametrize("kind", [Largest, Mean, Smallest, Sum])
@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 3, 1), (1,)), ((1, 5, 3), (1,)), ((5, 1, 3, 1), (0, 1)), ((3, 1, 1), (0, 2))], ids=str
)
def test_without_axes_of_one_place_the_same_is_reduced(
    kind: type[Reduction], shape: Shape, axes: tuple[int, ...]
) -> None:
    opened = variable("x", tuple(symbol("n") if d == 5 else d for d in shape), "float32")
    x = variable("x", shape, "float32")
    made = assert_equal(without_ones(kind.of(axes), x), kind.of(axes)(x))
    (inner,) = (t for t in subterms(made) if isinstance(t.operator, kind))
    assert 1 not in inner.inputs[0].shape
    with assuming():
        found = without_ones(kind.of(axes), opened)
    assert found is not None
    assert found.type == kind.of(axes)(opened).type


def test_what_has_no_axes_of_one_place_or_reduces_no_others_is_left() -> None:
    for shape, axes in (((3, 4, 2), (1,)), ((3, symbol("n")), (0,)), ((3, 1), (1,)), ((3, 1), ())):
        assert without_ones(Sum(axes), variable("x", shape, "float32")) is None


def test_a_sum_with_an_axis_of_one_place_behind_is_faster(options: Options) -> None:
    """Alone about 20 times, as of the weights of a wide model."""
    nodes = [helper.make_node("ReduceSum", ["x", "axis"], ["y"], keepdims=0)]
    io = [("x", TensorProto.FLOAT, (4096, 8, 1))], [("y", TensorProto.FLOAT, (4096, 1))]
    whole = model(nodes, *io, {"axis": np.array([1])})
    result = superopt.optimize(whole, options)
    assert result.report.outcome == "faster"
    assert_same(result.proto(), whole)
