"""Windows that are laid out to be reduced are pools, exactly."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.layout import Reshape, Transpose
from superopt.operators.picks import Take
from superopt.operators.reduce import Pool
from superopt.operators.reductions import Largest, Mean, Smallest, Sum
from superopt.search.rewriting.finders.pooled import Pooling
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import REAL, Term, subterms, variable

N, C, HEIGHT, WIDTH = 2, 3, 9, 8


def picture(count: Dim = N, dtype: str = REAL) -> Term:
    return variable("x", (count, C, HEIGHT, WIDTH), dtype)


def places(size: int, window: int, step: int) -> tuple[int, ...]:
    return tuple(i + j for i in range(0, size - window + 1, step) for j in range(window))


def windows(x: Term, window: int = 3, step: int = 2) -> Term:
    """Windows of (n, c, rows, places, columns, places)."""
    rows, columns = ((size - window) // step + 1 for size in (HEIGHT, WIDTH))
    taken = Take(3, places(WIDTH, window, step))(Take(2, places(HEIGHT, window, step))(x))
    return Reshape((*x.shape[:2], rows, window, columns, window))(taken)


def unfolded(x: Term) -> Term:
    """As `unfold` lays them out: places of a window, then all windows."""
    return Reshape((*x.shape[:2], 9, 12))(Transpose((0, 1, 3, 5, 2, 4))(windows(x)))


POOLED = {
    "the largest": Largest((3, 5))(windows(picture())),
    "the largest of 64 bits": Largest((3, 5))(windows(picture(dtype="float64"))),
    "the largest of places, and then of rows": Largest((3,))(Largest((5,))(windows(picture()))),
    "the largest of rows, and then of places": Largest((4,))(Largest((3,))(windows(picture()))),
    "the smallest": Smallest((3, 5))(windows(picture())),
    "the smallest of places, and then of rows": Smallest((3,))(Smallest((5,))(windows(picture()))),
    "means of means": Mean((3,))(Mean((5,))(windows(picture()))),
    "means of 32 bits": Mean((3, 5))(windows(picture(dtype="float32"))),
    "means": Mean((3, 5))(windows(picture())),
    "windows that meet": Mean((3, 5))(windows(picture(), 2, 1)),
    "as they are unfolded": Mean((2,))(unfolded(picture())),
    "places last": Largest((4, 5))(Transpose((0, 1, 2, 4, 3, 5))(windows(picture()))),
}


@pytest.mark.parametrize("term", POOLED.values(), ids=POOLED)
def test_windows_are_pooled_where_they_are(term: Term) -> None:
    made = Pooling().of(term)
    assert made is not None
    assert made.type == term.type
    assert sum(isinstance(t.operator, Pool) for t in subterms(made)) == 1
    assert not any(isinstance(t.operator, Take) for t in subterms(made))
    for carrier in (FIELD, FLOAT) if isinstance(term.operator, Mean) else (FLOAT,):
        values = sample((made, term), carrier, 0)
        np.testing.assert_allclose(evaluate(made, carrier, values), evaluate(term, carrier, values), rtol=1e-12)


def test_there_may_be_as_many_pictures_as_a_symbol_stands_for() -> None:
    with assuming():
        term = Mean((2,))(unfolded(picture(symbol("n"))))
        made = Pooling().of(term)
    assert made is not None
    assert made.type == term.type
    assert any(isinstance(t.operator, Pool) for t in subterms(made))


LEFT = {
    "channels among them": Mean((1, 3, 5))(windows(picture())),
    "channels behind": Largest((2, 4))(Transpose((0, 2, 3, 4, 5, 1))(windows(picture()))),
    "places at no equal distances": Mean((3, 5))(Take(5, (0, 1, 3))(windows(picture(), 4))),
    "the largest of the smallest": Largest((3,))(Smallest((5,))(windows(picture()))),
    "sums": Sum((3, 5))(windows(picture())),
    "means of 64 bits, which runtimes have no pool of": Mean((3, 5))(windows(picture(dtype="float64"))),
    "the largest of integers": Largest((3, 5))(windows(picture(dtype="int64"))),
    "nothing is picked": Mean((2, 3))(picture()),
}


@pytest.mark.parametrize("term", LEFT.values(), ids=LEFT)
def test_what_are_no_windows_of_a_channel_is_left(term: Term) -> None:
    assert Pooling().of(term) is None


def test_searches_look_for_it() -> None:
    assert Less(Pooling) in rewrites_of((), ["relu"])
