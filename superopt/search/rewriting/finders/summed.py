"""Sums along an axis, taken before what is computed of each place by itself: `Σ_m w_m·f(x_m) = f(Σ_m w_m·x_m)`.

Long convolutions transform a signal, multiply by several filters, and transform each back before these are weighed and
added up (Hyena, Poli et al. 2023), or channels mixed (S4, Gu et al. 2022): a transform is linear, and fewer are enough.
Rules carry a sum past one operator at a time and along the last axes of matrices; here it is carried at once down
through all that is linear and computes places along the axis apart: products with what is the same for all of them,
sums, joins and moves. What narrows an axis by constant weights is a sum for each of its results.
"""

from __future__ import annotations

from superopt.dim import Dim, at_most
from superopt.operators.along import Origins, read_along, widened
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Mean, Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.gathered import Product, multiplied, product_of
from superopt.term import Term, make

MOST = 48
"""Below more operators than these nothing is looked for."""

TOGETHER = (Add, Sub, Concat)
"""What is linear in both of its inputs together."""

MOVES = (Reshape, Transpose, Slice)
"""What is no less to do of one place than of a sum."""


class Summing(Fewer):
    """Finds what is computed of each of several values that are added up."""

    name = "added up before"
    heads = (Sum, Mean, MatMul, Conv)

    def may_be(self, term: Term) -> bool:
        """Whether it is a sum or a mean along one axis, or a product with constant weights, of what is computed."""
        op = term.operator
        if isinstance(op, Sum | Mean):
            return len(op.axes) == 1 and bool(term.inputs[0].inputs)
        return sum(i.constant for i in term.inputs) == 1

    def made(self, term: Term) -> Term | None:
        """What is computed of the sums; None where it is computed of no less."""
        op, x = term.operator, term.inputs[0]
        if isinstance(op, Sum | Mean):
            found = _Adding(type(op), 1).before(x, op.axes[0])
        else:
            whole = _of_columns(term) if x.constant else product_of(term)
            if whole is None or at_most(whole.weights.shape[1] + 1, whole.x.shape[whole.axis]) is not True:
                return None
            found = _Adding(Sum, whole.weights.shape[1]).before(*whole)
        return None if found is None else reshaped(found, term.shape)


def _of_columns(term: Term) -> Product | None:
    """What a product with one constant matrix on the left multiplies."""
    (w, x), last = term.inputs, term.type.rank - 1
    if not isinstance(term.operator, MatMul):
        return None
    if last > 1 and not (isinstance(w.operator, Expand) and w.operator.axes == (last - 1, last)):
        return None
    return Product(x, last - 1, Transpose((1, 0))(w if last == 1 else w.inputs[0]))


class _Adding:
    """Sums of terms along an axis, which they keep with as many places as there are `results`; by weights, if any."""

    def __init__(self, kind: type[Sum] | type[Mean], results: Dim) -> None:
        self._kind, self._results = kind, results
        self._made: dict[tuple[Term, int, Term | None], Term | None] = {}

    def before(self, x: Term, axis: int, weights: Term | None = None) -> Term | None:
        """What is computed of sums, where anything is; None where the sum is taken of the term as it is."""
        key = x, axis, weights
        if key not in self._made:
            self._made[key] = None
            if len(self._made) <= MOST and not x.constant and x.inputs:
                self._made[key] = self._before(*key)
        return self._made[key]

    def _before(self, x: Term, axis: int, weights: Term | None) -> Term | None:
        op, read = x.operator, read_along(x, axis)
        if not isinstance(op, Declared) or read is None or isinstance(op, Expand):
            return None
        if isinstance(op, TOGETHER):
            found = [self.before(i, axis, weights) for i in x.inputs]
            if found.count(None) == len(found):
                return None
            return make(op, [one or self._whole(i, axis, weights) for i, one in zip(x.inputs, found, strict=True)])
        if (weighed := _weighed(x, axis)) is not None:
            value, own = weighed
            return self.before(value, axis, own if weights is None else _scaled(weights, own))
        differing = [n for n, a in enumerate(read) if a is not None and not _is_alike(x.inputs[n], a)]
        return self._of_one(x, axis, read, differing[0], weights) if len(differing) == 1 else None

    def _of_one(self, x: Term, axis: int, read: Origins, n: int, weights: Term | None) -> Term | None:
        """An operator of the sum of its n-th input, where that is less; all others are the same at all places."""
        op, own, along = x.operator, x.inputs[n], read[n]
        if not isinstance(op, Declared) or n not in op.linear or along is None:
            return None
        found = self.before(own, along, weights)
        if found is None and (isinstance(op, MOVES) or (own.constant and not op.pointwise)):
            return None
        inputs = [i if a is None else self._alike(i, a) for i, a in zip(x.inputs, _without(read, n), strict=True)]
        inputs[n] = found or self._whole(own, along, weights)
        return make(widened(op, axis, self._results), inputs)

    def _alike(self, x: Term, axis: int) -> Term:
        """What a term repeats along an axis, for each of the results."""
        repeat, to = x.operator, (*x.shape[:axis], self._results, *x.shape[axis + 1 :])
        assert isinstance(repeat, Expand)
        whole = all(a in repeat.axes or is_one(d) for a, d in enumerate(to))
        return reshaped(x.inputs[0], to) if whole else Expand(repeat.axes, to)(x.inputs[0])

    def _whole(self, x: Term, axis: int, weights: Term | None) -> Term:
        """The sum of a term as it is."""
        if weights is not None and weights.type.rank == 2:
            return multiplied(Product(x, axis, weights))
        weighed = x if weights is None else Mul()(x, Expand((axis,), x.shape)(weights))
        return reshaped(self._kind((axis,))(weighed), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _weighed(x: Term, axis: int) -> tuple[Term, Term] | None:
    """What a term weighs, and by what, where that is one factor for each place along an axis."""
    if isinstance(x.operator, Mul):
        for value, factor in (x.inputs, x.inputs[::-1]):
            if isinstance(factor.operator, Expand) and factor.operator.axes == (axis,):
                return value, factor.inputs[0]
    return None


def _scaled(weights: Term, factors: Term) -> Term:
    """Weights, all of a place times a factor of its own."""
    return Mul()(weights, factors if weights.type.rank == 1 else Expand((0,), weights.shape)(factors))


def _is_alike(x: Term, axis: int) -> bool:
    """Whether a term repeats what is the same along an axis."""
    return isinstance(x.operator, Expand) and axis not in x.operator.axes


def _without(read: Origins, n: int) -> Origins:
    """What is read along axes but for one input."""
    return (*read[:n], None, *read[n + 1 :])
