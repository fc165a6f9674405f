"""Sums of weighed differences, as differences of sums.

Descriptors of places add up how far each local feature is from each of some centres, weighed by how much it belongs
there (NetVLAD, Arandjelović et al. 2016): `Σ_p a[k,p]·(x[p,c] − m[k,c])`, which is `Σ_p a[k,p]·x[p,c]`, a product of
matrices, less `(Σ_p a[k,p])·m[k,c]`. Runtimes write out the differences of all pairs, the weighed ones, and add these
up: of 196 places, 64 centres and 128 channels, six megabytes each. So do fields that a kernel of differences of places
smoothes, and all that is added up of two values that are repeated for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.constant import filled
from superopt.operators.differences import Neg, Sub
from superopt.operators.element_types import FLOATS
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.pointwise import Add, Div, Mul
from superopt.operators.reductions import Mean, Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.contractions import (
    Factor,
    Parts,
    contracted,
    joined,
    moved,
    parted,
    parts_of,
    unsqueezed,
)
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.narrow import narrowed
from superopt.term import Term

MOST_SUMMANDS, MOST_FACTORS = 4, 4
"""Of more nothing is looked for."""

DEEPEST = 32
"""What takes more steps one after the other is taken as it stands: each is read within the one behind it."""

NOWHERE = -1
"""Where an axis of one place is that none of all is."""


class Summand(NamedTuple):
    """A product of values that have some of the axes each, added or taken away."""

    factors: tuple[Factor, ...]
    negative: bool = False

    @property
    def axes(self) -> frozenset[int]:
        """Along which axes it is not the same everywhere."""
        return frozenset(a for f in self.factors for a in f.axes)


class Weighing(Fewer):
    """Finds sums of products with differences or sums of what is repeated."""

    name = "weighed differences as differences of products"
    heads = (Sum, Mean)

    def may_be(self, term: Term) -> bool:
        """Whether products are added up, of numbers that matrices may be of."""
        return term.type.dtype in FLOATS and isinstance(term.inputs[0].operator, Mul)

    def made(self, term: Term) -> Term | None:
        """The sums of the summands, added up; None where there is one alone, or one would be summed as it stands."""
        op, x = term.operator, term.inputs[0]
        assert isinstance(op, Sum | Mean)
        summands = _Summands(x.shape).of(x, tuple(range(x.type.rank)))
        if not 1 < len(summands) <= MOST_SUMMANDS:
            return None
        summed = [_summed(s.factors, op.axes, x.shape) for s in sorted(summands, key=lambda s: s.negative)]
        first, *others = [reshaped(s, term.shape) for s in summed if s is not None]
        if len(others) + 1 < len(summands):
            return None
        signs = sorted(s.negative for s in summands)
        made = Neg()(first) if signs[0] else first
        for other, negative in zip(others, signs[1:], strict=True):
            made = (Sub if negative else Add)()(made, other)
        if not isinstance(op, Mean):
            return made
        count = product([x.shape[a] for a in op.axes])
        return Div()(made, filled(float(count), term.shape)) if isinstance(count, int) else None


class _Summands:
    """What values along some axes are sums of, each read once: a residual is there twice in each layer."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._whole = frozenset(a for a, d in enumerate(shape) if not is_one(d))
        self._known: dict[tuple[Term, tuple[int, ...]], Sequence[Summand]] = {}
        self._deep = 0

    def of(self, x: Term, at: tuple[int, ...]) -> Sequence[Summand]:
        """The summands of a value whose axes are these of all, in any order."""
        if (x, at) not in self._known:
            self._deep += 1
            self._known[x, at] = self._read(x, at) if self._deep <= DEEPEST else [Summand((self._factor(x, at),))]
            self._deep -= 1
        return self._known[x, at]

    def _read(self, x: Term, at: tuple[int, ...]) -> Sequence[Summand]:
        (x,) = narrowed((x,)) if x.constant else (x,)
        op, inputs = x.operator, x.inputs
        if isinstance(op, Expand):
            return self.of(inputs[0], tuple(at[a] for a in op.axes))
        if isinstance(op, Transpose):
            return self.of(inputs[0], tuple(at[op.perm.index(a)] for a in range(len(at))))
        if isinstance(op, Reshape) and (own := unsqueezed(x)) is not None:
            return self.of(inputs[0], tuple(NOWHERE if a is None else at[a] for a in own))
        if isinstance(op, Neg):
            return [s._replace(negative=not s.negative) for s in self.of(inputs[0], at)]
        if isinstance(op, Mul):
            one, other = (self.of(i, at) for i in inputs)
            if min(len(one), len(other)) == 1 and _most(one) + _most(other) <= MOST_FACTORS:
                return [Summand(s.factors + t.factors, s.negative != t.negative) for s in one for t in other]
        if isinstance(op, Add | Sub) and not x.constant:
            one, other = (self.of(i, at) for i in inputs)
            if self._makes_more(one, other):
                less = isinstance(op, Sub)
                return [*one, *(s._replace(negative=s.negative != less) for s in other)]
        return [Summand((self._factor(x, at),))]

    def _makes_more(self, one: Sequence[Summand], other: Sequence[Summand]) -> bool:
        """Whether a sum has all axes, and one of what is added has not."""
        sides = [frozenset[int]().union(*(s.axes for s in side)) for side in (one, other)]
        return sides[0] | sides[1] == self._whole and min(map(len, sides)) < len(self._whole)

    def _factor(self, x: Term, at: Sequence[int]) -> Factor:
        """A value with its axes in the order of all, without those of one place."""
        kept = [a for a in at if a != NOWHERE and not is_one(self._shape[a])]
        squeezed = Factor(reshaped(x, tuple(self._shape[a] for a in kept)), tuple(kept))
        return Factor(moved(squeezed, sorted(kept)), tuple(sorted(kept)))


def _most(summands: Sequence[Summand]) -> int:
    """How many factors one of some summands has at most."""
    return max(len(s.factors) for s in summands)


def _summed(factors: Sequence[Factor], axes: Sequence[int], shape: Shape) -> Term | None:
    """The sum of a product along some axes; None where something of all axes has to be written for it."""
    found = _contraction(factors, axes, shape) if len(factors) <= MOST_FACTORS else None
    times = product([d for a, d in enumerate(shape) if a in axes and not any(a in f.axes for f in factors)])
    if found is None or not isinstance(times, int):
        return None
    x = found.x if times == 1 else Mul()(found.x, filled(float(times), found.x.shape))
    kept = [a for a in range(len(shape)) if a not in axes]
    return Expand(tuple(map(kept.index, found.axes)), tuple(shape[a] for a in kept))(x)


def _contraction(factors: Sequence[Factor], axes: Sequence[int], shape: Shape) -> Factor | None:
    """The same, along the axes that it has, and as often as it is repeated for the sum."""
    whole, ways = sum(not is_one(d) for d in shape), list[tuple[Factor, Factor, Parts]]()
    if len(factors) == 1:
        return _alone(factors[0], axes) if len(factors[0].axes) < whole else None
    for pair in parted(factors, shape):
        one, other = (_alone(f, [a for a in axes if a not in g.axes]) for f, g in (pair, pair[::-1]))
        parts = parts_of(one, other, axes)
        if all(len(f.axes) < whole for f in pair) or (parts.inner and (parts.rows or parts.columns)):
            ways.append((one, other, parts))
    best = min(ways, key=lambda way: len(way[0].axes) + len(way[1].axes), default=None)
    if best is None:
        return None
    one, other, parts = best
    kept = tuple(sorted((*parts.stack, *parts.rows, *parts.columns)))
    return Factor(contracted(*best, shape), kept) if parts.inner else joined((one, other), shape)


def _alone(f: Factor, axes: Sequence[int]) -> Factor:
    """A value, added up along those of its axes that are among some."""
    own = tuple(n for n, a in enumerate(f.axes) if a in axes)
    return Factor(Sum(own)(f.x), tuple(a for a in f.axes if a not in axes)) if own else f
