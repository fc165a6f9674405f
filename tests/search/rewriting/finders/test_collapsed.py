"""Layers right below each other are one layer, exactly, where that is less work."""

from __future__ import annotations

import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reduce import AvgPool
from superopt.search.rewriting.finders.collapsed import Collapsing
from superopt.search.rewriting.finders.merged import Merging
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

FEW, MANY, RESULTS = 3, 12, 4
IMAGE = variable("x", (1, FEW, 7, 6))
ROWS = variable("x", (5, FEW))
PLAIN, SAME, COARSE = Conv(), Conv((1, 1), (1, 1, 1, 1)), Conv((2, 1), (1, 0, 1, 1), (1, 2))
AROUND = Pad((0, 0, 1, 1, 0, 0, 1, 1))


def weight(name: str, *shape: Dim) -> Term:
    return variable(name, shape, constant=True)


def conv(op: Conv, x: Term, name: str, results: int, places: int = 1) -> Term:
    return op(x, weight(name, results, x.shape[1], places, places))


def biased(x: Term, name: str, axis: int = 1) -> Term:
    return Add()(x, Expand((axis,), x.shape)(weight(name, x.shape[axis])))


def scaled(x: Term, name: str, axis: int = 1) -> Term:
    return Mul()(x, Expand((axis,), x.shape)(weight(name, x.shape[axis])))


def rows(x: Term, name: str, results: int) -> Term:
    return MatMul()(x, weight(name, x.shape[-1], results))


def by_channel(x: Term, name: str) -> Term:
    """A convolution of each channel by itself."""
    return Conv((1, 1), (0, 0, 0, 0), (1, 1), x.shape[1])(x, weight(name, x.shape[1], 1, 3, 3))


OPEN = variable("x", (symbol("n"), FEW, 7, 6))

COLLAPSED = {
    "a wide kernel and single places": conv(PLAIN, conv(SAME, IMAGE, "a", MANY, 3), "b", RESULTS),
    "single places and a wide kernel": conv(SAME, conv(PLAIN, IMAGE, "a", MANY), "b", RESULTS, 3),
    "both around one": conv(PLAIN, conv(COARSE, conv(PLAIN, IMAGE, "a", MANY), "b", MANY, 3), "c", RESULTS),
    "with what each adds": conv(PLAIN, biased(conv(SAME, IMAGE, "a", MANY, 3), "b"), "c", RESULTS),
    "with what the first adds, by a wide kernel": conv(
        PLAIN, biased(conv(PLAIN, IMAGE, "a", MANY), "b"), "c", RESULTS, 3
    ),
    "of zeros around": conv(PLAIN, biased(conv(PLAIN, AROUND(IMAGE), "a", MANY), "b"), "c", RESULTS, 3),
    "with a bias around": conv(PLAIN, biased(AROUND(conv(PLAIN, IMAGE, "a", MANY)), "b"), "c", RESULTS, 3),
    "zeros around single places": conv(PLAIN, biased(conv(SAME, IMAGE, "a", MANY), "b"), "c", RESULTS, 3),
    "zeros around both": conv(SAME, conv(SAME, IMAGE, "a", MANY), "c", RESULTS, 3),
    "normalized in between": conv(PLAIN, biased(scaled(conv(SAME, IMAGE, "a", MANY, 3), "s"), "b"), "c", RESULTS),
    "rows": rows(rows(ROWS, "a", MANY), "b", RESULTS),
    "rows with a bias": rows(biased(rows(ROWS, "a", MANY), "c"), "b", RESULTS),
    "rows of what is one operator": rows(
        Gemm()(ROWS, weight("a", FEW, MANY), Expand((1,), (5, MANY))(weight("c", MANY))), "b", RESULTS
    ),
}

OTHERS = {
    "one layer": conv(SAME, IMAGE, "a", RESULTS, 3),
    "few channels in between": conv(PLAIN, conv(SAME, IMAGE, "a", 1, 3), "b", RESULTS),
    "two wide kernels": conv(PLAIN, conv(SAME, IMAGE, "a", MANY, 3), "b", RESULTS, 3),
    "what bends in between": conv(PLAIN, Relu()(conv(SAME, IMAGE, "a", MANY, 3)), "b", RESULTS),
    "zeros around a bias": conv(SAME, biased(conv(PLAIN, IMAGE, "a", MANY), "b"), "c", RESULTS, 3),
    "what differs from place to place": conv(
        PLAIN, Add()(conv(SAME, IMAGE, "a", MANY, 3), weight("b", 1, MANY, 7, 6)), "c", RESULTS
    ),
    "each channel by itself": by_channel(conv(PLAIN, IMAGE, "a", MANY), "b"),
}

ADDED = {
    "each channel by itself beside a layer of all": Add()(
        conv(PLAIN, IMAGE, "w", RESULTS, 3), by_channel(biased(conv(PLAIN, IMAGE, "a", RESULTS), "b"), "c")
    ),
    "what is added between two, beside a layer": Add()(
        conv(PLAIN, IMAGE, "w", RESULTS, 3),
        biased(conv(PLAIN, biased(conv(PLAIN, IMAGE, "a", MANY), "b"), "c", RESULTS, 3), "d"),
    ),
    "a mean of windows of a layer, beside a layer": Add()(
        conv(SAME, IMAGE, "w", RESULTS, 3),
        scaled(AvgPool((3, 3))(biased(AROUND(conv(PLAIN, IMAGE, "a", RESULTS)), "b")), "s"),
    ),
    "the middle of what a kernel reads": Add()(conv(PLAIN, IMAGE, "w", FEW, 3), Slice(3, 1, 5)(Slice(2, 1, 6)(IMAGE))),
    "the middle, off the middle": Add()(conv(PLAIN, IMAGE, "w", FEW, 3), Slice(3, 0, 4)(Slice(2, 2, 7)(IMAGE))),
    "a bias around, beside zeros around": Add()(
        conv(SAME, IMAGE, "w", RESULTS, 3),
        conv(PLAIN, biased(AROUND(conv(PLAIN, IMAGE, "a", MANY)), "b"), "c", RESULTS, 3),
    ),
}


def layers(term: Term) -> int:
    """How many layers are not of constants alone."""
    return sum(isinstance(t.operator, MatMul | Conv | Gemm) and not t.constant for t in subterms(term))


def assert_one_layer(old: Term, new: Term | None) -> None:
    assert new is not None
    assert layers(new) == 1
    env = sample((old, new), FIELD, 1)
    assert (evaluate(old, FIELD, env) == evaluate(new, FIELD, env)).all()


@pytest.mark.parametrize("name", COLLAPSED)
def test_layers_below_each_other_are_exactly_as_much_as_one(name: str) -> None:
    assert_one_layer(COLLAPSED[name], Collapsing().of(COLLAPSED[name]))


def test_an_open_batch_is_no_obstacle() -> None:
    with assuming():
        old = conv(PLAIN, biased(conv(SAME, OPEN, "a", MANY, 3), "b"), "c", RESULTS)
    new = Collapsing().of(old)
    assert new is not None
    assert layers(new) == 1


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_to_channels_on_the_way_belongs_to_layers_that_are_added_up(name: str) -> None:
    assert_one_layer(ADDED[name], Merging().of(ADDED[name]))


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_one_or_would_be_more_work_stays(name: str) -> None:
    assert Collapsing().of(OTHERS[name]) is None


def test_a_search_tries_it() -> None:
    assert Less(Collapsing) in rewrites_of((), ["conv"])
