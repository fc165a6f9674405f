"""One of several parts that stand beside each other: queries, keys or values, where one product makes all three.

Vision transformers take their rows apart into parts, heads and places, bring the parts to the front, and take one after
the other. What is cut out of the rows first is not moved before.
"""

from __future__ import annotations

from superopt.dim import Shape, product
from superopt.operators.layout import Reshape, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.operators.picks import Slice
from superopt.relations import are_equal
from superopt.term import Term


@defines("slice", "of parts")
def of_parts(op: Slice, x: Term) -> Term | None:
    """One part is cut out of the rows, then taken apart into what is left, and moved."""
    moved = x.operator
    parted = x.inputs[0] if isinstance(moved, Transpose) else x
    if (
        not isinstance(parted.operator, Reshape)
        or not isinstance(op.start, int)
        or not are_equal(op.stop, op.start + 1)
    ):
        return None
    perm = moved.perm if isinstance(moved, Transpose) else tuple(range(parted.type.rank))
    at, rows = perm[op.axis], parted.inputs[0]
    axis = _parted_axis(rows.shape, parted.shape, at)
    if axis is None:
        return None
    size = rows.shape[axis] // parted.shape[at]
    part = Slice(axis, op.start * size, op.stop * size)(rows)
    left = reshaped(part, (*parted.shape[:at], *parted.shape[at + 1 :]))
    order = tuple(a - (a > at) for a in perm if a != at)
    return reshaped(left if order == tuple(sorted(order)) else Transpose(order)(left), op.shape(x.shape))


def _parted_axis(rows: Shape, parted: Shape, at: int) -> int | None:
    """The axis that falls into as many parts as an axis of a reshape has places, each of neighbours; None if none does.

    What stands before both is as much, and some axes that follow the parts make up the rest.
    """
    ends = range(at + 1, len(parted) + 1)
    for axis, size in enumerate(rows):
        before = are_equal(product(rows[:axis]), product(parted[:at]))
        if before and any(are_equal(size, product(parted[at:end])) for end in ends):
            return axis
    return None
