"""Sums of products are products of matrices, exactly."""

from __future__ import annotations

from functools import reduce

import pytest
from numpy.random import default_rng

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.constant import filled
from superopt.operators.functions import Pow
from superopt.operators.layout import Expand, Reshape
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Mul, Relu
from superopt.operators.reductions import Largest, Mean, Sum
from superopt.search.rewriting.finders.contracted import MOST, Contracting
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import REAL, Term, running, variable, variables

SIZES = (2, 3, 4, 5)


def value(name: str, *axes: int, dtype: str = REAL) -> Term:
    """A value that has some axes, repeated along all others."""
    return Expand(axes, SIZES)(variable(name, [SIZES[a] for a in axes], dtype))


def total(*factors: Term, axes: tuple[int, ...] = (3,)) -> Term:
    return Sum(axes)(reduce(Mul(), factors))


WHOLE = variable("w", SIZES)

SUMS = {
    "all pairs": total(value("x", 0, 1, 3), value("y", 0, 2, 3)),
    "of no stack": total(value("x", 0, 1, 3), value("y", 2, 3)),
    "along the first axis": total(value("x", 0, 1, 3), value("y", 0, 2), axes=(0,)),
    "along two": total(value("x", 0, 1, 2), value("y", 1, 2, 3), axes=(1, 2)),
    "rows of the second factor only": total(value("x", 0, 3), value("y", 0, 1, 2, 3)),
    "of what is not repeated at all": total(WHOLE, value("y", 0, 1, 3)),
    "columns between rows": total(value("x", 0, 2, 3), value("y", 1, 3)),
    "means": Mean((3,))(Mul()(value("x", 0, 1, 3), value("y", 0, 2, 3))),
    "three factors": total(value("x", 0, 1, 3), value("y", 0, 2, 3), value("z", 3)),
    "of which two are beside the last": total(value("x", 0, 1, 3), value("y", 0, 2), value("z", 2, 3)),
    "a number among them": total(value("x", 0, 1, 3), value("s"), value("y", 0, 2, 3)),
}


@pytest.mark.parametrize("term", SUMS.values(), ids=SUMS)
def test_sums_of_products_are_one_product_of_matrices(term: Term) -> None:
    made = Contracting().of(term)
    assert made is not None
    assert made.type == term.type
    assert [type(t.operator) for t in running(made)].count(MatMul) == 1
    assert not any(isinstance(t.operator, Sum | Mean) for t in running(made))
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


def weighed(*factors: Term) -> Term:
    """Products that a layer of one number weighs."""
    weights = variable("w", (SIZES[3], 1), constant=True)
    return MatMul()(reduce(Mul(), factors), Expand((2, 3), (*SIZES[:2], *weights.shape))(weights))


def test_what_a_layer_of_one_number_weighs_is_one_product_of_matrices() -> None:
    """Of all pairs, as a trilinear attention does; the rows may be in another shape."""
    pairs = value("x", 0, 1, 3), value("y", 0, 2, 3)
    flat = Reshape((24, 5))(reduce(Mul(), pairs))
    for term in (weighed(*pairs), MatMul()(flat, variable("w", (5, 1), constant=True))):
        made = Contracting().of(term)
        assert made is not None
        assert made.type == term.type
        (product,) = (t for t in running(made) if isinstance(t.operator, MatMul))
        assert product.shape[-2:] == (3, 4)
        env = sample((term, made), FIELD, 1)
        assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


KERNEL = variable("k", (3, 4, 5), constant=True)
SCALED = Mul()(KERNEL, Expand((1,), KERNEL.shape)(variable("s", (4,))))
"""Weights of which each channel is scaled."""


@pytest.mark.parametrize(
    "square", [Pow()(SCALED, filled(2.0, SCALED.shape)), Mul()(SCALED, SCALED)], ids=["a power", "a product"]
)
def test_squares_of_scaled_weights_are_squares_of_scales_by_constants(square: Term) -> None:
    """Of weights `w[o,c,k]·s[c]`, as StyleGAN2 has them: nothing that runs is as large as these."""
    term = Sum((1, 2))(square)
    made = Contracting().of(term)
    assert made is not None
    assert made.type == term.type
    assert not any(t.type.rank == KERNEL.type.rank for t in running(made) if not t.constant)
    env = {v: default_rng(0).integers(-9, 9, v.shape).astype(float) for v in variables(term)}  # a power is of numbers
    assert (evaluate(made, FLOAT, env) == evaluate(term, FLOAT, env)).all()


@pytest.mark.parametrize(
    "term",
    [
        weighed(WHOLE, WHOLE),
        weighed(WHOLE, variable("v", SIZES)),
        MatMul()(Reshape((60, 2))(reduce(Mul(), (value("x", 0, 1, 3), value("y", 0, 2, 3)))), variable("w", (2, 1))),
        MatMul()(Reshape((24, 5))(reduce(Mul(), (value("x", 0, 1, 3), value("y", 0, 2, 3)))), variable("w", (5, 2))),
    ],
    ids=["squares", "two that have all axes", "rows of another width", "several numbers"],
)
def test_what_is_weighed_otherwise_is_left(term: Term) -> None:
    assert Contracting().of(term) is None


def test_axes_of_one_place_are_none() -> None:
    shape = (1, 3, 4, 5)
    x, y = (Expand((a, 3), shape)(variable(n, (shape[a], 5))) for n, a in (("x", 1), ("y", 2)))
    term = Sum((3,))(Mul()(x, y))
    made = Contracting().of(term)
    assert made is not None
    env = sample((term, made), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all()


def test_a_stack_may_be_of_a_size_that_a_symbol_stands_for() -> None:
    with assuming():
        shape = (symbol("n"), 3, symbol("m"), 5)
        x = Expand((0, 1, 3), shape)(variable("x", (shape[0], 3, 5)))
        made = Contracting().of(Sum((3,))(Mul()(x, variable("y", shape))))
    assert made is not None
    assert made.shape == (shape[0], 3, shape[2])


LEFT = {
    "squares": total(WHOLE, WHOLE),
    "two that have all axes": total(WHOLE, variable("v", SIZES)),
    "what one factor alone is summed along": total(value("x", 0, 1), value("y", 0, 2, 3)),
    "what is repeated to be summed": total(value("x", 0, 1), value("y", 0, 2)),
    "cubes": Sum((1, 2))(Pow()(SCALED, filled(3.0, SCALED.shape))),
    "squares of weights that are computed": Sum((1, 2))(
        reduce(Mul(), [variable("k", (3, 4, 5)), Expand((1,), (3, 4, 5))(variable("s", (4,)))] * 2)
    ),
    "integers": total(value("x", 0, 1, 3, dtype="int64"), value("y", 0, 2, 3, dtype="int64")),
    "what is no product": Sum((3,))(Relu()(WHOLE)),
    "one number as a matrix": MatMul()(Reshape((1, 1))(variable("x", ())), variable("w", (1, 1))),
    "the largest": Largest((3,))(Mul()(value("x", 0, 1, 3), value("y", 0, 2, 3))),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_is_no_contraction_is_left(term: Term) -> None:
    assert Contracting().of(term) is None


def test_of_many_factors_some_are_one() -> None:
    factors = [value(f"f{i}", 0, 1 + i % 2, 3) for i in range(3 * MOST)]
    made = Contracting().of(total(*factors))
    assert made is not None
    env = sample((made,), FIELD, 1)
    assert (evaluate(made, FIELD, env) == evaluate(total(*factors), FIELD, env)).all()


def test_searches_look_for_it() -> None:
    assert Less(Contracting) in rewrites_of((), ["gemm"])
