"""The largest of several values, found before what grows with them: of neighbours in a graph, or of places in a cloud.

`max_j relu(x_j + y) = relu(max_j x_j + y)`: networks on points take what is largest among neighbours last, after a
sum with the point's own features, a bias and an activation of each edge (DGCNN, Wang et al. 2019; PointNet, Qi et al.
2017). Rules say it of relus and of sums with one row; here a largest value is looked for down through all that grows or
falls with it at once, through sums with what is the same for all of them, and through what moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from superopt.operators.activations import Celu, Elu, HardSigmoid, LeakyRelu, Selu, Softsign
from superopt.operators.along import read_along
from superopt.operators.clip import Clip
from superopt.operators.constant import number_of
from superopt.operators.differences import Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.facts import known_facts
from superopt.operators.functions import Erf, Exp, Sigmoid, Softplus, Tanh
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.pointwise import Add, Div, Mul, Relu, Sqrt
from superopt.operators.reductions import Largest, Reduction, Smallest
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term, make

MOST = 16
"""More operators than these are not passed."""

GROWING = (Relu, Sigmoid, Tanh, Exp, Erf, Softplus, Softsign, Clip, Add, Max, Min)
"""Operators whose values grow with each input, or stay."""

MOVING = (Transpose, Reshape)


class Extremes(Fewer):
    """Finds of what the largest or smallest may be found before something is computed of all."""

    name = "the largest found first"
    heads = (Largest, Smallest)

    def may_be(self, term: Term) -> bool:
        """Whether it is the largest or smallest of what is computed."""
        return bool(term.inputs[0].inputs)

    def made(self, term: Term) -> Term | None:
        """What is computed of the largest or smallest; None where it would be computed of all all the same."""
        op = term.operator
        assert isinstance(op, Largest | Smallest)
        first = Extreme(term.inputs[0], frozenset(op.axes), isinstance(op, Largest))
        *steps, last = itertools.islice(first.steps(), MOST)
        if all(isinstance(step.x.operator, MOVING) for step in steps):
            return None
        return reduce(lambda made, step: step.after(made), reversed(steps), last.whole)


@dataclass(frozen=True)
class Extreme:
    """The largest value along some axes, or the smallest."""

    x: Term
    axes: frozenset[int]
    largest: bool

    @property
    def whole(self) -> Term:
        """As a reduction of all."""
        kind: type[Reduction] = Largest if self.largest else Smallest
        return kind.of(tuple(sorted(self.axes)))(self.x)

    def steps(self) -> Iterator[Extreme]:
        """This, and what each that is computed of it may be computed of instead."""
        here: Extreme | None = self
        while here is not None:
            yield here
            here = here.below

    @cached_property
    def _followed(self) -> int | None:
        """Which input it is the result of one of: all others are the same along the axes. None where there is none."""
        different = [n for n, i in enumerate(self.x.inputs) if i.type.rank and not _is_alike(i, self.axes)]
        return different[0] if len(different) == 1 else None

    @property
    def below(self) -> Extreme | None:
        """What the operator is applied to instead of to all; None where it neither grows nor falls with one input."""
        op, n = self.x.operator, self._followed
        if n is None:
            return None
        if isinstance(op, MOVING):
            axes = _read(self.x, self.axes)
            return None if axes is None else Extreme(self.x.inputs[0], axes, self.largest)
        grows = _grows(self.x, n)
        return None if grows is None else Extreme(self.x.inputs[n], self.axes, self.largest == grows)

    def after(self, made: Term) -> Term:
        """What the operator makes of one value, for all others that are read beside it."""
        op, kept = self.x.operator, [a for a in range(self.x.type.rank) if a not in self.axes]
        if isinstance(op, Reshape):
            return reshaped(made, tuple(self.x.shape[a] for a in kept))
        if isinstance(op, Transpose):
            left = sorted(op.perm[a] for a in kept)
            return turned(made, [left.index(op.perm[a]) for a in kept])
        one = [made if n == self._followed else _at_one(i, self.axes) for n, i in enumerate(self.x.inputs)]
        return make(op, one)


def _grows(term: Term, n: int) -> bool | None:
    """Whether a value grows with its n-th input, or falls; None where that is not known, or it does neither."""
    op = term.operator
    if isinstance(op, GROWING):
        return True
    if isinstance(op, LeakyRelu | Elu | HardSigmoid | Celu):
        return True if op.alpha > 0 else None
    if isinstance(op, Selu):
        return True if op.alpha > 0 and op.gamma > 0 else None
    if isinstance(op, Sqrt):
        return True if "nonnegative" in known_facts(term.inputs[0]) else None
    if isinstance(op, Neg | Sub):
        return isinstance(op, Sub) and n == 0
    return _grows_by(term, n) if isinstance(op, Mul | Div) else None


def _grows_by(term: Term, n: int) -> bool | None:
    """Likewise of a product, or of a quotient by a number: by the sign of what is the same for all."""
    factor = term.inputs[1 - n]
    number = number_of(factor)
    if isinstance(term.operator, Div):
        return number > 0 if n == 0 and number else None
    if number is not None:
        return number >= 0
    return True if "nonnegative" in known_facts(factor) else None


def _read(term: Term, axes: frozenset[int]) -> frozenset[int] | None:
    """The axes of what is moved that become these, each whole."""
    found = [read_along(term, a) for a in axes]
    below = frozenset(read[0] for read in found if read is not None and read[0] is not None)
    return below if len(below) == len(axes) else None


def _is_alike(term: Term, axes: frozenset[int]) -> bool:
    """Whether a term repeats what is the same along some axes."""
    return isinstance(term.operator, Expand) and axes.isdisjoint(term.operator.axes)


def _at_one(term: Term, axes: frozenset[int]) -> Term:
    """What a term repeats, without the axes along which it is the same."""
    op = term.operator
    if not isinstance(op, Expand):
        return term  # a number, as bounds are
    kept = [a for a in range(term.type.rank) if a not in axes]
    (x,), own = term.inputs, tuple(kept.index(a) for a in op.axes)
    return x if len(own) == len(kept) else Expand(own, tuple(op.to[a] for a in kept))(x)
