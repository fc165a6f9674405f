"""Of places that exclude each other those are chosen that gain most together."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from superopt.search.solving.schedule import best_apart

STEPS = 12

SPANS = st.dictionaries(
    st.tuples(st.integers(0, STEPS - 1), st.integers(1, 5)).map(lambda s: (s[0], s[0] + s[1])),
    st.integers(0, 9).map(float),
    max_size=9,
).map(lambda weights: [(range(*ends), weight) for ends, weight in weights.items()])

Spans = list[tuple[range, float]]


def are_apart(spans: Spans) -> bool:
    return all(a.stop <= b.start for a, b in pairwise(sorted((s for s, _ in spans), key=lambda s: s.start)))


@given(SPANS)
def test_what_is_chosen_does_not_overlap(spans: Spans) -> None:
    assert are_apart([spans[i] for i in best_apart(spans)])


@given(SPANS)
def test_no_other_choice_weighs_more(spans: Spans) -> None:
    """As every choice shows."""
    every = chain.from_iterable(combinations(spans, n) for n in range(len(spans) + 1))
    best = max(sum(weight for _, weight in some) for some in every if are_apart(list(some)))
    assert sum(spans[i][1] for i in best_apart(spans)) == best


@given(SPANS, st.data())
def test_without_some_that_are_not_chosen_the_same_are(spans: Spans, data: st.DataObject) -> None:
    """So a replay, which knows of those alone that were chosen somewhere, chooses alike."""
    chosen = [spans[i] for i in best_apart(spans)]
    left = [s for s in spans if s in chosen or data.draw(st.booleans())]
    assert [left[i] for i in best_apart(left)] == chosen


@given(SPANS)
def test_what_weighs_nothing_is_not_chosen(spans: Spans) -> None:
    assert all(spans[i][1] > 0 for i in best_apart(spans))
