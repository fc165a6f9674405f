"""Sums of what is joined and weighed, part by part: nothing is joined then.

Deformable attention (Zhu et al., ICLR 2021) samples a few points in each of several levels, stacks the levels, weighs
all points and adds them up. Along short rows runtimes join and add slowly: onnxruntime 1.32 takes 2.1 ms for 300
queries of 8 heads, 4 levels and 4 points, and 0.9 where each level is weighed by itself and rows of 4 are added up.
"""

from __future__ import annotations

from functools import reduce

from superopt.operators.chains import joined
from superopt.operators.definitions.padded import cut
from superopt.operators.layout import Concat, Reshape, reshaped
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term

MOST = 16
"""Of more parts than these a runtime has more nodes to run than it saves."""


class Parting(Fewer):
    """Finds sums of products with what is joined along the axis of the sum."""

    name = "weighed and added up part by part"
    heads = (Sum,)

    def may_be(self, term: Term) -> bool:
        """Whether products are added up along one axis."""
        op = term.operator
        return isinstance(op, Sum) and len(op.axes) == 1 and isinstance(term.inputs[0].operator, Mul)

    def made(self, term: Term) -> Term | None:
        """The sum of the parts, each times its weights; None where nothing is joined, or parts differ in size."""
        op, (left, right) = term.operator, term.inputs[0].inputs
        assert isinstance(op, Sum)
        (axis,) = op.axes
        parts, weights = _parts(left, axis), right
        if not parts:
            parts, weights = _parts(right, axis), left
        if not 1 < len(parts) <= MOST or any(not are_equal(p.shape[axis], parts[0].shape[axis]) for p in parts):
            return None
        size = parts[0].shape[axis]
        weighed = [Mul()(part, cut(weights, axis, i * size, (i + 1) * size)) for i, part in enumerate(parts)]
        return op(reduce(lambda a, b: Add()(a, b), weighed))


def _parts(term: Term, axis: int) -> list[Term]:
    """What is joined along an axis, or stacked before it and merged with it; nothing where it is not."""
    if isinstance(term.operator, Concat) and term.operator.axis == axis:
        return joined(term)
    stack = term.inputs[0] if isinstance(term.operator, Reshape) else term
    if not isinstance(stack.operator, Concat) or stack.operator.axis != axis or stack.type.rank != term.type.rank + 1:
        return []
    shape = stack.shape
    parts = joined(stack)
    merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    if not all(map(are_equal, merged, term.shape)) or not all(is_one(part.shape[axis]) for part in parts):
        return []
    return [reshaped(part, (*shape[:axis], *shape[axis + 1 :])) for part in parts]
