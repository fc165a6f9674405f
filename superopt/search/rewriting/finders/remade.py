"""Linear steps made anew, on other values in place of those that they begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from superopt.dim import Dim, Shape
from superopt.operators.constant import filled
from superopt.operators.conv import Conv
from superopt.operators.differences import Neg, Sub
from superopt.operators.layout import Concat, Expand, Reshape, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add
from superopt.search.rewriting.finders.items import Axes, batches_of
from superopt.search.rewriting.finders.steps import Steps, beside, opened
from superopt.search.rewriting.narrow import narrowed
from superopt.term import Operator, Term, make


def remade(steps: Steps, term: Term, given: Mapping[Term, Term], counts: Mapping[int, Dim]) -> Term | None:
    """A value over others in place of some starts, whose batches have so many places, and nothing in place of other
    starts and of constants that are added; of these alone where none are given. None where nothing is left.
    """
    return _Remade(steps, given, counts).of(term)


class _Remade:
    """Values over others."""

    def __init__(self, steps: Steps, given: Mapping[Term, Term], counts: Mapping[int, Dim]) -> None:
        self._steps, self._counts, self._added = steps, counts, not given
        self._made: dict[Term, Term | None] = {start: given.get(start) for start in steps.starts}

    def of(self, term: Term) -> Term | None:
        """A value; None where nothing is left of it."""
        if term not in self._made:
            self._made[term] = self._of(opened(term))
        return self._made[term]

    def _of(self, x: Term) -> Term | None:
        op, to = x.operator, self._steps.sizes(x, self._counts)
        if x in self._made:
            return self._made[x]
        constants = beside(x, self._steps.of(x))
        inputs = [_repeated(i, _around(x, i, to), constants) if i.constant else self.of(i) for i in x.inputs]
        if isinstance(op, Add | Sub):
            return self._sum(op, x, inputs)
        left = [i for i in inputs if i is not None]
        if isinstance(op, Concat) and 0 < len(left) < len(inputs):
            sizes = [self._steps.sizes(i, self._counts) for i in x.inputs]
            left = [filled(0.0, size) if i is None else i for i, size in zip(inputs, sizes, strict=True)]
        if len(left) < len(inputs):
            return None
        return reshaped(left[0], to) if isinstance(op, Reshape) else make(_of_size(op, to), left)

    def _sum(self, op: Add | Sub, x: Term, inputs: Sequence[Term | None]) -> Term | None:
        one, other = (None if own.constant and not self._added else i for own, i in zip(x.inputs, inputs, strict=True))
        if other is None:
            return one
        if one is None:
            return Neg()(other) if isinstance(op, Sub) else other
        return make(op, (one, other))


def _of_size(op: Operator, to: Shape) -> Operator:
    return Expand(op.axes, to) if isinstance(op, Expand) else op


def _around(x: Term, c: Term, to: Shape) -> Shape:
    """The shape of a constant beside a value of a shape."""
    if isinstance(x.operator, Conv):
        return c.shape
    return (*to[:-2], *c.shape[-2:]) if isinstance(x.operator, MatMul) else to


def _repeated(c: Term, to: Shape, axes: Axes) -> Term:
    """A constant that is the same for all of a batch, for as many as there are."""
    batched = {a for a, axis in enumerate(axes) if batches_of((axis,))}
    if not batched:
        return c
    (c,) = narrowed((c,))
    repeat = c.operator
    own, inner = (repeat.axes, c.inputs[0]) if isinstance(repeat, Expand) else (range(c.type.rank), c)
    kept = tuple(a for a in own if a not in batched)
    return Expand(kept, to)(reshaped(inner, tuple(c.shape[a] for a in kept)))
