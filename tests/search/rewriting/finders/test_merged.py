"""Layers of one value that are added up are one layer, exactly."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.dim import Dim
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.search.rewriting.finders.merged import MOST_ADDED, Merging
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

WIDE, FEW, RESULTS = 6, 2, 5
X, STACK = variable("x", (3, WIDE)), variable("x", (2, 3, WIDE))
IMAGE, NARROW = variable("x", (1, WIDE, 7, 7)), Conv()
CONV = Conv((1, 1), (1, 1, 1, 1))
COARSE = Conv((2, 1), (1, 1, 1, 1), (1, 2))
NUMBER = variable("s", (), constant=True)


def weight(name: str, *shape: Dim) -> Term:
    return variable(name, shape, constant=True)


def rows(x: Term, name: str, results: int) -> Term:
    """A product with one matrix."""
    w, last = weight(name, x.shape[-1], results), x.type.rank - 1
    return MatMul()(x, w if last == 1 else Expand((last - 1, last), (*x.shape[:-2], *w.shape))(w))


def conv(op: Conv, x: Term, name: str, results: int, places: int = 1) -> Term:
    return op(x, weight(name, results, x.shape[1], places, places))


def times(x: Term) -> Term:
    return Mul()(x, Expand((), x.shape)(NUMBER))


def adapter(x: Term) -> Term:
    """A second layer, through a few channels."""
    return times(rows(rows(x, "a", FEW), "b", RESULTS))


def doubled(x: Term, times: int) -> Term:
    for _ in range(times):
        x = Add()(x, x)
    return x


def test_of_many_summands_only_some_are_looked_at() -> None:
    """There would be 2⁶⁰ of them, or a thousand below each other."""
    x = rows(X, "w", RESULTS)
    assert Merging().made(doubled(x, 60)) is None
    for i in range(1000):
        x = Add()(x, variable(f"y{i}", (3, RESULTS)))
    assert Merging().made(x) is None


BIAS = Expand((1,), (3, RESULTS))(weight("c", RESULTS))
STACK_BIAS = Expand((2,), (2, 3, RESULTS))(weight("c", RESULTS))
IMAGE_BIAS = Expand((1,), (1, RESULTS, 7, 7))(weight("c", RESULTS))

ADDED = {
    "a layer and its adapter": Add()(rows(X, "w", RESULTS), adapter(X)),
    "rows of a stack": Add()(rows(STACK, "w", RESULTS), adapter(STACK)),
    "a bias between them": Add()(Add()(rows(X, "w", RESULTS), BIAS), adapter(X)),
    "a layer as one operator": Add()(Gemm(0.5, 2.0, 0, 1)(X, weight("w", RESULTS, WIDE), BIAS), adapter(X)),
    "a number in between": Add()(rows(X, "w", RESULTS), rows(times(rows(X, "a", FEW)), "b", RESULTS)),
    "two adapters": Add()(Add()(rows(X, "w", RESULTS), adapter(X)), rows(rows(X, "d", FEW), "e", RESULTS)),
    "a convolution, and one of single places last": Add()(
        Add()(conv(CONV, IMAGE, "w", RESULTS, 3), IMAGE_BIAS),
        times(conv(NARROW, conv(CONV, IMAGE, "a", FEW, 3), "b", RESULTS)),
    ),
    "one of single places first": Add()(
        conv(COARSE, IMAGE, "w", RESULTS, 3), conv(COARSE, conv(NARROW, IMAGE, "a", FEW), "b", RESULTS, 3)
    ),
    "one between two of single places": Add()(
        conv(CONV, IMAGE, "w", RESULTS, 3),
        conv(NARROW, conv(CONV, conv(NARROW, IMAGE, "a", FEW), "m", FEW, 3), "b", RESULTS),
    ),
    "all of single places": Add()(
        conv(NARROW, IMAGE, "w", RESULTS), conv(NARROW, conv(NARROW, IMAGE, "a", FEW), "b", RESULTS)
    ),
    "two beside each other, a bias between them": Add()(
        Add()(rows(STACK, "w", RESULTS), STACK_BIAS), rows(STACK, "v", RESULTS)
    ),
    "two convolutions of as many places": Add()(
        conv(CONV, IMAGE, "w", RESULTS, 3), times(conv(CONV, IMAGE, "v", RESULTS, 3))
    ),
    "adapters that are more work than a layer": Add()(adapter(X), rows(rows(X, "d", FEW), "e", RESULTS)),
    "of a value that is a layer itself": Add()(rows(rows(X, "o", WIDE), "w", RESULTS), adapter(rows(X, "o", WIDE))),
}

OTHERS = {
    "a single layer": Add()(rows(X, "w", RESULTS), BIAS),
    "layers of different values": Add()(rows(X, "w", RESULTS), adapter(variable("y", (3, WIDE)))),
    "what bends in between": Add()(rows(X, "w", RESULTS), rows(Relu()(rows(X, "a", FEW)), "b", RESULTS)),
    "two adapters of no layer, less work apart": Add()(
        rows(rows(X, "a", 1), "b", RESULTS), rows(rows(X, "d", 1), "e", RESULTS)
    ),
    "kernels of other sizes": Add()(
        conv(CONV, IMAGE, "w", RESULTS, 3), conv(NARROW, conv(NARROW, IMAGE, "a", FEW), "b", RESULTS)
    ),
    "places that are read again": Add()(
        conv(Conv((1, 1), (2, 2, 2, 2)), IMAGE, "w", RESULTS, 5),
        conv(CONV, conv(CONV, IMAGE, "a", FEW, 3), "b", RESULTS, 3),
    ),
    "groups": Add()(
        Conv((1, 1), (1, 1, 1, 1), (1, 1), 2)(IMAGE, weight("w", 4, WIDE // 2, 3, 3)),
        conv(NARROW, conv(CONV, IMAGE, "a", FEW, 3), "b", 4),
    ),
    "weights that are computed": Add()(
        rows(X, "w", RESULTS), MatMul()(rows(X, "a", FEW), Relu()(variable("b", (FEW, RESULTS))))
    ),
}


def layers(term: Term) -> int:
    """How many layers are not of constants alone."""
    return sum(isinstance(t.operator, MatMul | Conv | Gemm) and not t.constant for t in subterms(term))


@pytest.mark.parametrize("name", ADDED)
def test_one_layer_is_exactly_as_much_as_all(name: str) -> None:
    old = ADDED[name]
    new = Merging().of(old)
    assert new is not None
    assert layers(new) == (2 if name.startswith("of a value") else 1)
    env = sample((old, new), FIELD, 1)
    assert (evaluate(old, FIELD, env) == evaluate(new, FIELD, env)).all()


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_layer_of_the_same_stays(name: str) -> None:
    assert Merging().of(OTHERS[name]) is None


def test_sums_of_many_are_not_looked_at() -> None:
    term = ADDED["a layer and its adapter"]
    for i in range(MOST_ADDED):
        term = Add()(term, variable(f"y{i}", (3, RESULTS)))
    assert Merging().of(term) is None


def test_a_search_tries_it() -> None:
    assert Less(Merging) in rewrites_of((), ["matmul"])
