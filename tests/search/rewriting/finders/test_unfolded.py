"""Products of windows that are laid out are convolutions, exactly, however they are laid out."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.arithmetic.field import FIELD
from superopt.demands import assuming
from superopt.dim import Shape, symbol
from superopt.evaluate import evaluate, sample
from superopt.operators.conv import Conv
from superopt.operators.definitions.runs import in_runs
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Relu
from superopt.search.rewriting.finders import unfolded
from superopt.search.rewriting.finders.unfolded import Unfolding
from superopt.search.rewriting.rewrites import Less, rewrites_of
from superopt.term import Term, subterms, variable

N, C, RESULTS = 2, 3, 4


def picture(*shape: int) -> Term:
    return variable("x", shape or (N, C, 9, 8))


def weight(*shape: int) -> Term:
    return variable("w", shape, constant=True)


def places(size: int, window: int, step: int = 1, apart: int = 1) -> tuple[int, ...]:
    """Of each place of a window, where it is in all of them."""
    count = (size - apart * (window - 1) - 1) // step + 1
    return tuple(i * apart + p * step for i in range(window) for p in range(count))


def windows(x: Term, window: int = 3, step: int = 1, apart: int = 1) -> Term:
    """Windows as `unfold` lays them out: (n, c, i, p, j, q)."""
    n, c, h, w = x.shape
    assert isinstance(h, int)
    assert isinstance(w, int)
    rows = Take(2, places(h, window, step, apart))(x)
    down = rows.shape[2] // window
    columns = Take(4, places(w, window, step, apart))(Reshape((n, c, window, down, w))(rows))
    return Reshape((n, c, window, down, window, columns.shape[4] // window))(columns)


def laid_out(x: Term, order: tuple[int, ...], to: Shape) -> Term:
    return Reshape(to)(Transpose(order)(x))


def times(x: Term) -> Term:
    """A product of a stack of rows with one matrix."""
    w = weight(*(d for d in x.shape[-1:] if isinstance(d, int)), RESULTS)
    return MatMul()(x, Expand((1, 2), (*x.shape[:-2], *w.shape))(w) if x.type.rank > 2 else w)


ROWS = laid_out(windows(picture()), (0, 3, 5, 1, 2, 4), (N, 42, 27))
COLUMNS = laid_out(windows(picture()), (0, 1, 2, 4, 3, 5), (N, 27, 42))
SLICED = in_runs(Take(2, places(9, 3)), picture())
assert SLICED is not None
CHANNELS_LAST = Reshape((N, 3, 7, 8, C))(Take(1, places(9, 3))(picture(N, 9, 8, C)))

CONVOLVED = {
    "rows": times(ROWS),
    "rows of all pictures": times(Reshape((N * 42, 27))(ROWS)),
    "columns that are transposed": times(Transpose((0, 2, 1))(COLUMNS)),
    "columns": MatMul()(Expand((1, 2), (N, RESULTS, 27))(weight(RESULTS, 27)), COLUMNS),
    "columns of one picture": MatMul()(
        weight(1, RESULTS, 27), laid_out(windows(picture(1, C, 9, 8)), (0, 1, 2, 4, 3, 5), (1, 27, 42))
    ),
    "channels behind the places": times(laid_out(windows(picture()), (0, 3, 5, 2, 4, 1), (N, 42, 27))),
    "in steps": times(laid_out(windows(picture(), step=2), (0, 3, 5, 1, 2, 4), (N, 12, 27))),
    "places apart": times(laid_out(windows(picture(), apart=2), (0, 3, 5, 1, 2, 4), (N, 20, 27))),
    "windows that are as well those of a long kernel": times(
        laid_out(windows(picture()), (0, 2, 5, 1, 3, 4), (N, 18, 63))
    ),
    "in slices": times(laid_out(Reshape((N, C, 3, 7, 8))(SLICED), (0, 3, 4, 1, 2), (N, 56, 9))),
    "a picture with its channels last": times(laid_out(CHANNELS_LAST, (0, 2, 3, 1, 4), (N, 56, 9))),
    "a signal": times(
        laid_out(Reshape((N, C, 3, 7))(Take(2, places(9, 3))(picture(N, C, 9))), (0, 3, 1, 2), (N, 7, 9))
    ),
}
LEFT = {
    "places that are not in order": times(laid_out(windows(picture()), (0, 5, 3, 1, 2, 4), (N, 42, 27))),
    "some of the channels": times(laid_out(windows(Slice(1, 0, 2)(picture())), (0, 3, 5, 1, 2, 4), (N, 42, 18))),
    "some of the windows": times(Slice(1, 0, 41)(ROWS)),
    "places at no equal distances": times(
        laid_out(
            Reshape((N, C, 3, 4, 8))(Take(2, (0, 1, 2, 3, 1, 2, 3, 4, 3, 4, 5, 6))(picture())),
            (0, 3, 4, 1, 2), (N, 32, 9),
        )
    ),
    "bent": times(Relu()(ROWS)),
    "weights of each picture": MatMul()(ROWS, weight(N, 27, RESULTS)),
    "weights that are computed": MatMul()(Reshape((N * 42, 27))(ROWS), variable("v", (27, RESULTS))),
    "nothing is picked": times(Reshape((N * 9, C * 8))(picture())),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLVED)
def test_windows_are_convolved_where_they_are(name: str) -> None:
    term = CONVOLVED[name]
    made = Unfolding().of(term)
    assert made is not None
    assert made.type == term.type
    assert any(isinstance(t.operator, Conv) for t in subterms(made))
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


def test_signals_of_one_channel_are_convolved() -> None:
    frames = Reshape((N, 3, 4))(Take(1, tuple(2 * i + j for i in range(3) for j in range(4)))(picture(N, 9)))
    term = times(frames)
    made = Unfolding().of(term)
    assert made is not None
    assert any(isinstance(t.operator, Conv) for t in subterms(made))
    values = sample((made, term), FIELD, 0)
    np.testing.assert_array_equal(evaluate(made, FIELD, values), evaluate(term, FIELD, values))


def test_there_may_be_as_many_pictures_as_a_symbol_stands_for() -> None:
    with assuming():
        count = symbol("n")
        taken = Reshape((count, C, 3, 7, 8))(Take(2, places(9, 3))(variable("x", (count, C, 9, 8))))
        term = times(Reshape((count, 56, C * 3))(Transpose((0, 3, 4, 1, 2))(taken)))
        made = Unfolding().of(term)
    assert made is not None
    assert made.type == term.type
    (conv,) = (t for t in subterms(made) if isinstance(t.operator, Conv))
    assert conv.inputs[0].is_variable


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_window_of_all_channels_stays(name: str) -> None:
    assert Unfolding().of(LEFT[name]) is None


def test_of_very_many_elements_it_is_not_asked_where_they_are_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfolded, "MOST", N * 42 * 27 - 1)
    assert Unfolding().of(CONVOLVED["rows"]) is None


def test_a_search_looks_for_it_with_definitions() -> None:
    assert Less(Unfolding) in rewrites_of((), ["relu"])
    assert Less(Unfolding) not in rewrites_of((), [])
