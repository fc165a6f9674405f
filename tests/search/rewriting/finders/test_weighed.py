"""Sums of weighed differences are differences of sums, exactly."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from onnx import numpy_helper

import superopt
from superopt.api import Options
from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.differences import Neg, Sub
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reductions import Largest, Mean, Sum
from superopt.search.rewriting.finders.weighed import MOST_FACTORS, MOST_SUMMANDS, Weighing
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import REAL, Operator, Term, running, variable
from tests.models import assert_same
from tests.onnx_io.models import model

SIZES = (2, 3, 4, 5)
"""Batches, centres, channels and places."""


def value(name: str, *axes: int, dtype: str = REAL, constant: bool = False) -> Term:
    """A value that has some axes, repeated along all others."""
    own = variable(name, [SIZES[a] for a in axes], dtype, constant=constant)
    return own if axes == (0, 1, 2, 3) else Expand(axes, SIZES)(own)


def total(*factors: Term, axes: tuple[int, ...] = (3,)) -> Term:
    return Sum(axes)(reduce(Mul(), factors))


FEATURES, CENTRES, SHARES = value("x", 0, 2, 3), value("c", 1, 2, constant=True), value("a", 0, 1, 3)
APART = Sub()(FEATURES, CENTRES)
MOVED = Transpose((1, 0, 2, 3))(Expand((1, 2, 3), (3, 2, 4, 5))(variable("x", (2, 4, 5))))
BEHIND = Reshape(SIZES)(Reshape((2, 3, 1, 4, 5))(APART))

SUMS = {
    "of features and centres": total(APART, SHARES),
    "of shares in front": total(SHARES, APART),
    "of centres and features": total(Sub()(CENTRES, FEATURES), SHARES),
    "of sums": total(Add()(FEATURES, CENTRES), SHARES),
    "of what is turned around": total(Neg()(APART), SHARES),
    "of both turned around": total(Sub()(Neg()(CENTRES), FEATURES), SHARES),
    "of what is moved after it is repeated": total(Sub()(MOVED, CENTRES), SHARES),
    "behind axes of one place": total(BEHIND, SHARES),
    "of centres that differ": total(Sub()(FEATURES, value("c", 0, 1, 2)), SHARES),
    "of three": total(Sub()(Add()(FEATURES, value("b", 1)), CENTRES), SHARES),
    "of what is everywhere another": total(Sub()(value("w", 0, 1, 2, 3), CENTRES), SHARES),
    "by shares of two": total(APART, SHARES, value("b", 3)),
    "by a number": total(APART, SHARES, value("s")),
    "by weights alone": total(APART, value("b", 3)),
    "along two axes": total(APART, SHARES, axes=(1, 3)),
    "along channels": total(APART, value("a", 0, 1, 2), axes=(2,)),
    "of what shares leave as it is": total(APART, value("a", 0, 1)),
    "means": Mean((3,))(Mul()(APART, SHARES)),
}


def same(made: Term, term: Term) -> bool:
    env = sample((term, made), FIELD, 1)
    return bool((evaluate(made, FIELD, env) == evaluate(term, FIELD, env)).all())


@pytest.mark.parametrize("term", SUMS.values(), ids=SUMS)
def test_sums_of_weighed_differences_are_differences_of_sums(term: Term) -> None:
    made = Weighing().of(term)
    assert made is not None
    assert made.type == term.type
    assert same(made, term)


def test_nothing_of_all_axes_is_written() -> None:
    made = Weighing().of(total(APART, SHARES))
    assert made is not None
    assert not any(t.shape == SIZES for t in running(made))
    assert [type(t.operator) for t in running(made)].count(MatMul) == 1


def test_constants_that_were_repeated_are_told_as_what_they_repeat() -> None:
    moved = Transpose((1, 2, 0))(Expand((1, 2), (5, 3, 4))(variable("c", (3, 4), constant=True)))
    made = Weighing().of(total(Sub()(FEATURES, Expand((1, 2, 3), SIZES)(moved)), SHARES))
    assert made is not None
    assert [t.shape for t in running(made) if isinstance(t.operator, MatMul)] == [(2, 4, 3)]


def test_a_batch_may_be_of_a_size_that_a_symbol_stands_for() -> None:
    with assuming():
        shape = (symbol("n"), 3, 4, 5)
        x = Expand((0, 2, 3), shape)(variable("x", (shape[0], 4, 5)))
        a = Expand((0, 1, 3), shape)(variable("a", (shape[0], 3, 5)))
        made = Weighing().of(Sum((3,))(Mul()(Sub()(x, Expand((1, 2), shape)(variable("c", (3, 4)))), a)))
    assert made is not None
    assert made.shape == shape[:3]


LEFT = {
    "what is less before it is repeated": total(Sub()(FEATURES, value("c")), SHARES),
    "squares": total(APART, APART),
    "products of two": total(APART, Sub()(SHARES, CENTRES)),
    "what has all axes on both sides": total(Sub()(value("w", 0, 1, 2, 3), value("v", 0, 1, 2, 3)), SHARES),
    "what is repeated after it is taken away": total(
        Expand((0, 2, 3), SIZES)(Sub()(variable("x", (2, 4, 5)), variable("y", (2, 4, 5)))), SHARES
    ),
    "shares of all axes": total(APART, value("w", 0, 1, 2, 3), value("v", 0, 1, 2, 3)),
    "integers": total(
        Sub()(value("x", 0, 2, 3, dtype="int64"), value("c", 1, 2, dtype="int64")), value("a", 0, 1, 3, dtype="int64")
    ),
    "what is no product": Sum((3,))(Relu()(APART)),
    "the largest": Largest((3,))(Mul()(APART, SHARES)),
    "many summands": total(reduce(Sub(), [FEATURES, *(value(f"c{i}", 1, 2) for i in range(MOST_SUMMANDS))]), SHARES),
    "many factors": total(APART, *(value(f"a{i}", 0, 1, 3) for i in range(MOST_FACTORS))),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_is_no_less_is_left(term: Term) -> None:
    assert Weighing().of(term) is None


def test_any_axes_of_any_values_give_the_same() -> None:
    """Drawn: which axes each value has, in which order they were, and along which is added up."""
    rng, found = np.random.default_rng(0), 0
    for _ in range(60):
        drawn = [tuple(a for a in range(4) if rng.random() < 0.6) for _ in range(4)]
        x, y, a, b = (_moved(value(f"v{i}", *axes), rng) for i, axes in enumerate(drawn))
        way = (Sub(), Add())[rng.integers(2)]
        axes = tuple(sorted(rng.choice(4, rng.integers(1, 4), replace=False).tolist()))
        term = (Sum, Mean)[rng.integers(2)](axes)(Mul()(Mul()(a, way(x, y)), b))
        if (made := Weighing().of(term)) is not None:
            found += 1
            assert made.type == term.type
            assert same(made, term), str(term)
    assert found > 10


def _moved(x: Term, rng: np.random.Generator) -> Term:
    order = rng.permutation(4).tolist()
    return Transpose(tuple(np.argsort(order).tolist()))(Transpose(tuple(order))(x))


def test_searches_look_for_it() -> None:
    assert Less(Weighing) in rewrites_of((), ["gemm"])


def test_a_descriptor_of_places_is_faster_and_the_same(options: Options) -> None:
    given = model(
        "g (float[1, 64, 128] x) => (float[1, 32, 64] y) "
        "<int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}> "
        "{ z = MatMul(w, x) a = Softmax<axis = 1>(z) e = Unsqueeze(x, one) d = Sub(e, c) b = Unsqueeze(a, two) "
        "p = Mul(d, b) y = ReduceSum<keepdims = 0>(p, three) }",
        17,
    )
    rng = np.random.default_rng(0)
    for name, shape in (("w", (1, 32, 64)), ("c", (1, 32, 64, 1))):
        given.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    result = superopt.optimize(given, options)
    assert result.report.outcome == "faster"
    assert result.report.measured is not None
    assert result.report.measured.speedup > 1.5
    assert_same(result.proto(), given)


@pytest.mark.parametrize("op", [Add(), Mul()], ids=["added", "multiplied"])
def test_what_each_of_many_layers_reads_twice_is_read_once(op: Operator) -> None:
    x = value("x", 0, 1, 2, 3)
    for i in range(48):
        x = op(x, Mul()(x, value(f"c{i}", 0, 1, 2, 3, constant=True)))
    assert Weighing().of(total(x, SHARES)) is None
