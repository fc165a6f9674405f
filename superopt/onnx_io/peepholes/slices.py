"""Slices as they are written: several along different axes as one, and with steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from superopt.dim import Dim
from superopt.onnx_io.peepholes.form import Form
from superopt.operators import Emitter
from superopt.operators.nodes import concrete
from superopt.operators.picks import END, Every, Slice
from superopt.term import Term


def slices(term: Term, inner: Callable[[Term], bool]) -> Form:
    """Slices of each other along different axes are one Slice.

    A bound at a fixed distance from the end of a symbolic axis is counted from there.
    """
    cuts: dict[int, tuple[Dim, Dim]] = {}
    while isinstance(op := term.operator, Slice) and op.axis not in cuts and (not cuts or inner(term)):
        (term,) = term.inputs
        start, stop = (_from_end(bound, term.shape[op.axis]) for bound in (op.start, op.stop))
        cuts[op.axis] = start, stop

    def write(out: Emitter, name: str) -> str:
        starts, ends = zip(*cuts.values(), strict=True)
        if out.opset >= 10:
            return out.node("Slice", (name, *map(out.integers, (starts, ends, tuple(cuts)))))
        numbers = {"starts": concrete(starts, "slice"), "ends": concrete(ends, "slice"), "axes": list(cuts)}
        return out.node("Slice", (name,), numbers)

    return Form((term,), write)


def strided(cut: Term, op: Every) -> Form | None:
    """A slice of which every so many elements are taken is one Slice with steps."""
    assert isinstance(cut.operator, Slice)
    if cut.operator.axis != op.axis:
        return None
    bounds = tuple(_from_end(b, cut.inputs[0].shape[op.axis]) for b in (cut.operator.start, cut.operator.stop))
    return Form(cut.inputs, partial(op.written, bounds=bounds))


def _from_end(bound: Dim, size: Dim) -> Dim:
    distance = bound - size
    if isinstance(bound, int) or not isinstance(distance, int) or distance > 0:
        return bound
    return distance or END
