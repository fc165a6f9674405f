"""ReduceProd along few places: the products of these that it is, one after the other. It declares no operator."""

from __future__ import annotations

import math
from functools import reduce

from superopt.dim import Dim
from superopt.operators.declare import reads
from superopt.operators.layout import Reshape, reshaped
from superopt.operators.nodes import NotUnderstood, Source, concrete
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.reductions import Sum
from superopt.relations import are_equal, equal_shapes
from superopt.term import Term

MOST = 16
"""Of more places it is not written out."""


@reads("ReduceProd")
def reduce_prod(node: Source) -> Term:
    """The product of all places along the axes that a sum would be taken along, of known sizes."""
    x, total = node.inputs[0], Sum.from_onnx(node)
    if x is None or total is x:
        return total
    op = total.operator if isinstance(total.operator, Sum) else total.inputs[0].operator
    assert isinstance(op, Sum)
    if math.prod(concrete(tuple(x.shape[a] for a in op.axes), "a product")) > MOST:
        raise NotUnderstood(f"a product of more than {MOST} places")
    return reshaped(reduce(_along, sorted(op.axes, reverse=True), x), total.shape)


def _along(x: Term, axis: int) -> Term:
    """The product of the places along an axis of known size."""
    (count,), to = concrete(x.shape[axis : axis + 1], "a product"), (*x.shape[:axis], *x.shape[axis + 1 :])
    return reduce(Mul(), [reshaped(Slice(axis, i, i + 1)(x), to) for i in range(count)])


def multiplied(term: Term) -> tuple[Term, int] | None:
    """Of what a product along an axis is read as: what is multiplied, and along which axis; None of all else."""
    factors, left = list[Term](), term
    while isinstance(left.operator, Mul):
        left, right = left.inputs
        factors.append(right)
    places = [_place(factor) for factor in (left, *reversed(factors))]
    if (first := places[0]) is None or not factors or not are_equal(first[0].shape[first[1]], len(places)):
        return None
    return first[:2] if places == [(*first[:2], i) for i in range(len(places))] else None


def _place(term: Term) -> tuple[Term, int, Dim] | None:
    """What a term is one place of, along an axis that it has not, and which; None of others."""
    cut = term.inputs[0] if isinstance(term.operator, Reshape) else term
    op = cut.operator
    if not isinstance(op, Slice) or not isinstance(op.start, int) or not are_equal(op.stop, op.start + 1):
        return None
    without = (*cut.shape[: op.axis], *cut.shape[op.axis + 1 :])
    return (cut.inputs[0], op.axis, op.start) if equal_shapes(term.shape, without) else None
