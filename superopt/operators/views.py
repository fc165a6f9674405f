"""Moves that leave every element where it is in memory: however many there are, they are one reshape, or none."""

from __future__ import annotations

from superopt.dim import is_one
from superopt.operators.declare import defines
from superopt.operators.layout import Reshape, Transpose, reshaped
from superopt.term import Term


@defines("transpose", "as a reshape")
def as_a_reshape(op: Transpose, x: Term) -> Term | None:
    """Where only axes of one place change their order with others, as the heads of a single row do."""
    moved = [a for a in op.perm if not is_one(x.shape[a])]
    return reshaped(_viewed(x), tuple(x.shape[a] for a in op.perm)) if moved == sorted(moved) else None


@defines("reshape", "of a reshape")
def of_a_reshape(op: Reshape, x: Term) -> Term | None:
    """The last shape is what counts."""
    return reshaped(_viewed(x), op.to) if isinstance(x.operator, Reshape) else None


def _viewed(x: Term) -> Term:
    """What a reshape gives another shape."""
    return x.inputs[0] if isinstance(x.operator, Reshape) else x
