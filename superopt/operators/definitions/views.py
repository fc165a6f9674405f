"""Moves that leave every element where it is in memory: however many there are, they are one reshape, or none.

And what is joined only to be moved: it is moved as it is joined.
"""

from __future__ import annotations

from superopt.operators.layout import Concat, Reshape, Transpose, reshaped
from superopt.operators.meanings import defines
from superopt.relations import is_one
from superopt.term import Term, make


@defines("transpose", "as a reshape")
def as_a_reshape(op: Transpose, x: Term) -> Term | None:
    """Where only axes of one place change their order with others, as the heads of a single row do."""
    moved = [a for a in op.perm if not is_one(x.shape[a])]
    return reshaped(_viewed(x), tuple(x.shape[a] for a in op.perm)) if moved == sorted(moved) else None


@defines("reshape", "of a reshape")
def of_a_reshape(op: Reshape, x: Term) -> Term | None:
    """The last shape is what counts."""
    return reshaped(_viewed(x), op.to) if isinstance(x.operator, Reshape) else None


@defines("transpose", "of a stack")
def of_a_stack(op: Transpose, x: Term) -> Term | None:
    """Where two are joined along an axis that is parted again, as groups of channels are to be shuffled: each is
    transposed by itself, and they are joined where that axis comes to stand. What is one group is a reshape.
    """
    joined = x.inputs[0] if isinstance(x.operator, Reshape) else x
    if joined is x or not isinstance(joined.operator, Concat):
        return None
    axis = joined.operator.axis
    around = (*joined.shape[:axis], *joined.shape[axis + 1 :])
    if x.type.rank != joined.type.rank + 1 or around != (*x.shape[:axis], *x.shape[axis + 2 :]):
        return None
    size, sizes = x.shape[axis + 1], [i.shape[axis] for i in joined.inputs]
    if not isinstance(size, int) or not all(isinstance(s, int) and s % size == 0 for s in sizes):
        return None
    groups = [reshaped(i, (*x.shape[:axis], i.shape[axis] // size, *x.shape[axis + 1 :])) for i in joined.inputs]
    return make(Concat(op.perm.index(axis)), [as_a_reshape(op, g) or op(g) for g in groups])


def _viewed(x: Term) -> Term:
    """What a reshape gives another shape."""
    return x.inputs[0] if isinstance(x.operator, Reshape) else x
