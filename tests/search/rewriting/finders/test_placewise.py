"""What is reduced along few places is computed at each of them, exactly, where that leaves something out."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from superopt.arithmetic.carrier import Carrier
from superopt.arithmetic.field import FIELD
from superopt.arithmetic.order import ORDER
from superopt.demands import assuming
from superopt.dim import symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.activations import LeakyRelu
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.normalize import Softmax
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add, Mul, Relu
from superopt.operators.reductions import Largest, Mean, Reduction, Smallest, Sum
from superopt.search.rewriting.finders.placewise import MOST_JOINED, Placewise
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

ROWS, WIDTH, PARTS = 3, 4, 5
KINDS: list[type[Reduction]] = [Sum, Mean, Largest, Smallest]


def stack(axis: int, count: int = PARTS) -> Term:
    """Values of rows, as torch stacks them."""
    to = [ROWS, WIDTH]
    to.insert(axis, 1)
    return reduce(Concat(axis), [Reshape(tuple(to))(variable(f"x{i}", (ROWS, WIDTH))) for i in range(count)])


def differences(coordinates: int) -> Term:
    """Of each point and each of others."""
    a, b = variable("a", (ROWS, coordinates)), variable("b", (WIDTH, coordinates))
    to = (ROWS, WIDTH, coordinates)
    return Sub()(Expand((0, 2), to)(a), Expand((1, 2), to)(b))


def windows(x: Term, axis: int, size: int, step: int = 1) -> Term:
    """Of so many places each, side by side, which stand behind."""
    begins = range(0, int(str(x.shape[axis])) - size + 1, step)
    taken = Take(axis, tuple(i + j for i in begins for j in range(size)))(x)
    split = Reshape((*x.shape[:axis], len(begins), size, *x.shape[axis + 1 :]))(taken)
    order = [a for a in range(x.type.rank + 1) if a != axis + 1]
    return Transpose((*order, axis + 1))(split)


SHAPE = Expand((3, 4), (2, 3, 3, 3, 3))(variable("k", (3, 3), constant=True))
MOVED = Add()(windows(windows(variable("i", (2, 5, 5)), 1, 3), 2, 3), SHAPE)
SHARES = Expand((0, 3), (2, ROWS, WIDTH, PARTS))(Softmax(1)(variable("s", (2, PARTS))))
WEIGHTED = Mul()(reduce(Concat(3), [variable(f"y{i}", (2, ROWS, WIDTH, 1)) for i in range(PARTS)]), SHARES)
D = differences(3)
WEIGHTS = variable("w", (3,), constant=True)
TAKEN = {
    "weighted": Sum((3,))(WEIGHTED),
    "squared distances": Sum((2,))(Mul()(D, D)),
    "through a reshape": Sum((3,))(Reshape((1, ROWS, WIDTH, 3))(Mul()(D, D))),
    "through a transpose": Sum((0,))(Transpose((2, 1, 0))(Mul()(D, D))),
    "bent before": Sum((1,))(LeakyRelu(0.5)(stack(1))),
    "of windows": Sum((3,))(windows(variable("i", (2, 5, 4)), 1, 3)),
    "of windows of windows": Sum((3,))(MOVED),
    "of windows of windows, the inner ones": Sum((4,))(MOVED),
    "of windows of windows, of both": Sum((3, 4))(MOVED),
    "of windows of windows, one after the other": Sum((3,))(Sum((3,))(MOVED)),
    "of windows in steps": Sum((3,))(windows(variable("i", (2, 9, 4)), 1, 3, 2)),
    "of windows of as many": Sum((3,))(windows(variable("i", (3, 5, 3)), 1, 3)),
    "beside what is whole": Sum((2,))(Mul()(stack(2), variable("z", (ROWS, WIDTH, PARTS)))),
}  # fmt: skip
LEFT = {
    "nothing is joined": Sum((1,))(Relu()(variable("x", (ROWS, 3)))),
    "parts are of several places": Sum((1,))(Concat(1)(variable("x", (ROWS, 2)), variable("y", (ROWS, 3)))),
    "joined along another axis": Sum((1,))(stack(0)),
    "windows, of which the first ones": Sum((1,))(windows(variable("i", (2, 5, 4)), 1, 3)),
    "more are stacked": Sum((0,))(stack(0, MOST_JOINED + 1)),
    "rows are longer": Sum((2,))(Relu()(differences(5))),
    "only weights are repeated": Sum((1,))(Mul()(variable("x", (ROWS, 3)), Expand((1,), (ROWS, 3))(WEIGHTS))),
    "along two axes": Sum((0, 2))(stack(2)),
}  # fmt: skip


def agree(made: Term | None, term: Term, carrier: Carrier = FIELD) -> None:
    assert made is not None
    assert made.type == term.type
    values = sample((made, term), carrier, 0)
    np.testing.assert_array_equal(evaluate(made, carrier, values), evaluate(term, carrier, values))


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stacked_is_not_joined(kind: type[Reduction], axis: int) -> None:
    term = kind.of((axis,))(stack(axis))
    made = Placewise().of(term)
    agree(made, term, ORDER if "order" in kind.needs else FIELD)
    assert made is not None
    assert not any(isinstance(t.operator, Concat | Slice | Reshape | Reduction) for t in subterms(made))


@pytest.mark.parametrize("name", TAKEN)
def test_each_place_is_computed_by_itself(name: str) -> None:
    term = TAKEN[name]
    made = Placewise().of(term)
    agree(made, term)
    assert made is not None
    assert not any(isinstance(t.operator, Concat | Sum) for t in subterms(made))


@pytest.mark.parametrize("name", LEFT)
def test_what_leaves_nothing_out_or_is_of_many_places_stays(name: str) -> None:
    assert Placewise().of(LEFT[name]) is None


def test_coordinates_are_cut_out_of_what_is_small() -> None:
    made = Placewise().of(TAKEN["squared distances"])
    assert made is not None
    cuts = [t for t in subterms(made) if isinstance(t.operator, Slice)]
    assert len(cuts) == 6
    assert all(cut.inputs[0].is_variable for cut in cuts)


def test_a_difference_that_is_squared_is_computed_once_for_each_coordinate() -> None:
    made = Placewise().of(TAKEN["squared distances"])
    assert made is not None
    assert sum(isinstance(t.operator, Sub) for t in subterms(made)) == 3


def test_how_many_points_there_are_may_be_symbols() -> None:
    n, m = symbol("n"), symbol("m")
    to = (n, m, 3)
    with assuming():
        d = Sub()(Expand((0, 2), to)(variable("a", (n, 3))), Expand((1, 2), to)(variable("b", (m, 3))))
        made = Placewise().of(Sum((2,))(Mul()(d, d)))
    assert made is not None
    assert isinstance(made.operator, Add)
    assert str(made.shape) == str((n, m))


def test_along_as_many_places_as_a_symbol_says_it_stays() -> None:
    k = symbol("k")
    with assuming():
        repeated = Expand((0, 2), (ROWS, WIDTH, k))(variable("a", (ROWS, k)))
        assert Placewise().of(Sum((2,))(repeated)) is None


def test_the_search_has_it_where_it_has_definitions() -> None:
    assert Less(Placewise) in rewrites_of([], ["gelu"])
    assert Less(Placewise) not in rewrites_of([], [])
