"""Along the axes that `along` names, what is computed of two values joined is the two results joined, and of some
places those places of the result: exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from superopt.arithmetic.exact import EXACT
from superopt.arithmetic.floats import FLOAT
from superopt.dim import Shape
from superopt.evaluate import evaluate, sample
from superopt.operators import CATALOGUE
from superopt.operators.along import Origins, origins, read_along, widened
from superopt.operators.attention.dot_product import Attention
from superopt.operators.composite import Composite
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.layout import Concat, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.picks import Every, Slice, Take
from superopt.term import Term, make, variable
from tests.operators.general import examples, general_terms


def claims(name: str, count: int) -> Iterator[tuple[Term, int, Origins]]:
    """What is said of an operator: at small sizes, along which axes of its inputs an axis of its result comes about."""
    for term in (t for general in general_terms(name) for t in examples(general, count)):
        assert isinstance(term.operator, Declared)
        for axis in range(term.type.rank):
            for found in origins(term.operator, axis, term.shape, [x.shape for x in term.inputs]):
                yield term, axis, found


APART = [name for name in sorted(CATALOGUE) if next(claims(name, 1), None)]


def beside(term: Term, axis: int, found: Origins) -> tuple[Term, Term]:
    """A second term like one, twice as wide where inputs are its own, and what computes both."""
    op, wide, joined = term.operator, list[Term](), list[Term]()
    assert isinstance(op, Declared)
    for i, (x, at) in enumerate(zip(term.inputs, found, strict=True)):
        shape = [int(d) * (2 if a == at else 1) for a, d in enumerate(x.shape)]  # type: ignore[arg-type]
        wide.append(x if at is None else variable(f"other{i}", shape, x.type.dtype))
        joined.append(x if at is None else Concat(at)(x, wide[-1]))
    size = term.shape[axis]
    return make(widened(op, axis, 2 * size), wide), make(widened(op, axis, 3 * size), joined)


@pytest.mark.parametrize("name", APART)
def test_what_is_joined_before_is_joined_after(name: str) -> None:
    cls = CATALOGUE[name]
    ring = next((r for r in EXACT if cls.pointwise or cls.needs <= r.has), FLOAT)
    for term, axis, found in claims(name, 3):
        other, both = beside(term, axis, found)
        values = sample((term, other), ring, 0)
        wanted = evaluate(Concat(axis)(term, other), ring, values)
        np.testing.assert_allclose(evaluate(both, ring, values), wanted, rtol=1e-12 if ring is FLOAT else 0)


def reads(name: str, count: int) -> Iterator[tuple[Term, int, Origins]]:
    """What is said of an operator: at small sizes, which places of its inputs those along an axis are computed from."""
    for term in (t for general in general_terms(name) for t in examples(general, count)):
        for axis in range(term.type.rank):
            found = read_along(term, axis)
            if found is not None:
                yield term, axis, found


READ = [name for name in sorted(CATALOGUE) if next(reads(name, 3), None)]


@pytest.mark.parametrize("name", READ)
def test_what_is_picked_before_is_picked_after(name: str) -> None:
    cls = CATALOGUE[name]
    ring = next((r for r in EXACT if cls.needs <= r.has and not issubclass(cls, Composite)), FLOAT)
    for term, axis, found in reads(name, 3):
        op, size = term.operator, term.shape[axis]
        assert isinstance(op, Declared)
        for pick in (Slice(axis, size - 1, size), Every(axis, 2), Take(axis, (0,))):
            late = pick(term)
            inputs = [x if a is None else replace(pick, axis=a)(x) for x, a in zip(term.inputs, found, strict=True)]
            early = make(widened(op, axis, late.shape[axis]), inputs)
            assert early.type == late.type
            values = sample((term,), ring, 0)
            values = {v: np.abs(x) for v, x in values.items()} if ring is FLOAT else values  # variances are
            wanted = evaluate(late, ring, values)
            np.testing.assert_allclose(evaluate(early, ring, values), wanted, rtol=1e-12 if ring is FLOAT else 0)


def test_that_is_said_of_all_kinds_of_operators() -> None:
    assert {"matmul", "conv", "maxpool", "add", "neg", "transpose", "reshape", "expand"} <= set(APART) & set(READ)
    assert {"slice", "concat", "softmax", "mean"} <= set(APART) & set(READ)
    assert {"layernorm", "rmsnorm", "gemm", "batchnorm", "attention", "masked_attention", "clip"} <= set(READ)


def test_rows_that_are_attended_from_are_apart_and_those_attended_to_are_read_whole() -> None:
    q, k, v = (variable(n, (2, 3, rows, 8)) for n, rows in (("q", 5), ("k", 6), ("v", 6)))
    attended = Attention(0.5)(q, k, v)
    assert read_along(attended, 0) == (0, 0, 0)
    assert read_along(attended, 2) == (2, None, None)
    assert read_along(attended, 3) == (None, None, 3)
    assert read_along(Softmax(1)(variable("x", (4, 5))), 1) is None
    assert read_along(variable("x", (4, 5)), 1) is None


def test_what_is_read_in_two_ways_is_not_read_place_by_place() -> None:
    x = variable("x", (4, 4))
    assert read_along(MatMul()(x, x), 0) == (0, None), "the same value, of which one input is read whole"
    assert read_along(Reshape((2, 8))(x), 0) is None, "a place is two"


def test_channels_that_are_several_groups_are_not_joined() -> None:
    shapes: tuple[Shape, Shape] = ((1, 4, 5, 5), (6, 2, 3, 3))
    grouped, whole = (Conv((1, 1), (1,) * 4, (1, 1), g) for g in (2, 1))
    assert list(origins(grouped, 1, (1, 6, 5, 5), shapes)) == []
    assert list(origins(whole, 1, (1, 6, 5, 5), ((1, 2, 5, 5), shapes[1]))) == [(None, 0)]
    assert list(origins(whole, 2, (1, 6, 5, 5), ((1, 2, 5, 5), shapes[1]))) == []


def test_places_are_apart_where_a_convolution_is_of_single_ones() -> None:
    x, k = variable("x", (2, 3, 5, 7)), variable("k", (4, 3, 1, 1))
    for op in (Conv((1, 1), (0,) * 4, (1, 1), 1), Conv((1, 1), (0,) * 4, (2, 2), 1)):
        assert [read_along(op(x, k), axis) for axis in (2, 3)] == [(2, None), (3, None)]
        for ring in EXACT:
            values = sample((op(x, k),), ring, 0)
            early, late = op(Slice(3, 2, 4)(x), k), Slice(3, 2, 4)(op(x, k))
            np.testing.assert_array_equal(evaluate(early, ring, values), evaluate(late, ring, values))
    for op, kernel in (
        (Conv((1, 1), (0,) * 4, (1, 1), 1), (4, 3, 3, 1)),
        (Conv((2, 1), (0,) * 4, (1, 1), 1), (4, 3, 1, 1)),
        (Conv((1, 1), (0, 1, 0, 0), (1, 1), 1), (4, 3, 1, 1)),
    ):
        assert read_along(op(x, variable("k", kernel)), 2) is None


def test_heads_are_columns_of_the_rows_that_they_are_reshaped_from() -> None:
    assert list(origins(Reshape((2, 5, 6, 8)), 2, (2, 5, 6, 8), [(2, 5, 48)])) == [(2,)]
    assert list(origins(Reshape((2, 5, 6, 8)), 3, (2, 5, 6, 8), [(2, 5, 48)])) == []
