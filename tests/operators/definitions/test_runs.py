"""Elements of given places are slices, one beside the other: exactly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from superopt.arithmetic.field import FIELD
from superopt.evaluate import evaluate, sample
from superopt.operators.definitions.runs import MOST, SHORTEST, in_runs
from superopt.operators.picks import Every, Take
from superopt.term import subterms, variable

places = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.integers(1, 12)), min_size=1, max_size=5)


@given(places, st.integers(0, 1))
def test_wherever_it_is_offered_it_is_the_same(runs: list[tuple[int, int, int]], axis: int) -> None:
    indices = tuple(i for start, step, count in runs for i in range(start, start + step * count, step))
    x = variable("x", (46, 3) if axis == 0 else (3, 46), "float32")
    direct = Take(axis, indices)(x)
    meaning = in_runs(Take(axis, indices), x)
    assert meaning is not None or len(indices) < 2 * SHORTEST * len(runs)
    if meaning is not None:
        assert meaning.type == direct.type
        values = sample((direct,), FIELD, 0)
        assert (evaluate(meaning, FIELD, values) == evaluate(direct, FIELD, values)).all()


def test_the_places_of_windows_are_as_many_runs_as_a_window_is_long() -> None:
    x = variable("x", (1, 34), "float32")
    windows = tuple(start + 2 * p for start in range(3) for p in range(16))
    meaning = in_runs(Take(1, windows), x)
    assert meaning is not None
    assert sum(isinstance(t.operator, Every) for t in subterms(meaning)) == 3


def test_places_in_no_order_and_those_of_too_many_runs_stay() -> None:
    x = variable("x", (64,), "float32")
    assert in_runs(Take(0, (3, 1, 2, 0, 5, 4)), x) is None
    assert in_runs(Take(0, tuple(range(8)) * (MOST + 1)), x) is None
    assert in_runs(Take(0, tuple(range(8)) * MOST), x) is not None
