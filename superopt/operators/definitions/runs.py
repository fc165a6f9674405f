"""Elements of given places in runs: slices, one beside the other, where places follow each other at equal distances.

`unfold` is written as a Gather of rows and one of columns, each by the places of all windows: 0 1 2 …, 1 2 3 …, and so
on. onnxruntime 1.32 takes the columns one number after the other: on an AMD EPYC windows of 7 by 7 take 5 times as long
as in slices that are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from superopt.operators.layout import Concat
from superopt.operators.meanings import defines
from superopt.operators.picks import Every, Slice, Take
from superopt.term import Term, make

SHORTEST = 4
"""So many places a run must have in the mean: each is a node, and one of a few elements takes as long as these."""

MOST = 32
"""More runs than these are not written out."""


@defines("take", "in runs")
def in_runs(op: Take, x: Term) -> Term | None:
    """A slice of each run of places, in steps where these are of more than one; None where runs are short or many."""
    runs = _runs(op.indices)
    if len(runs) > MOST or SHORTEST * len(runs) > len(op.indices):
        return None
    parts = [_part(x, op.axis, run) for run in runs]
    return reduce(lambda a, b: Concat(op.axis)(a, b), parts)


def _part(x: Term, axis: int, run: range) -> Term:
    y = make(Slice(axis, run[0], run[-1] + 1), (x,))
    return make(Every(axis, run.step), (y,)) if run.step > 1 else y


def _runs(places: Sequence[int]) -> list[range]:
    """Places that grow by the same from each to the next, as long as they do."""
    runs = [range(places[0], places[0] + 1)]
    for place in places[1:]:
        last = runs[-1]
        step = place - last[-1]
        if step > 0 and (len(last) == 1 or step == last.step):
            runs[-1] = range(last[0], place + 1, step)
        else:
            runs.append(range(place, place + 1))
    return runs
