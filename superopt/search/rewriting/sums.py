"""Sums of products of atoms: the arithmetic of what terms are a normal form as (`forms.py`).

An atom is told by its number. Sums that are factors are atoms themselves, and what products share comes before them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from superopt.dim import Shape
from superopt.operators.pointwise import Div, Mul
from superopt.term import REAL, Operator, Term

View: TypeAlias = "tuple[int | None, ...]"
"""For each axis of a result the axis of a term that it reads; None where it reads none, or one of a single place."""

Factors: TypeAlias = "tuple[tuple[int, int], ...]"
"""A product: atoms by number, each with its exponent, in the order of numbers; empty for one."""

Poly: TypeAlias = "tuple[tuple[Factors, float], ...]"
"""A sum of products, each with its coefficient, in order."""

ROUNDINGS = 8
"""How many units in the last place numbers may differ by and count as one: each was rounded a few times."""


class Atom(NamedTuple):
    """What sums and products are made of: a leaf (no `inputs`), an operator over forms, or a sum that is a factor."""

    head: Operator | Term | None
    """The operator, or the leaf; None for a sum, which is its one input."""
    inputs: tuple[Poly, ...] = ()
    shapes: tuple[Shape, ...] | None = None
    """Those of the inputs, where the operator does not work element by element."""
    view: View | None = None
    """How elements are read of what does not work element by element."""


class Sums:
    """Makes sums. Those of one object compare by equality; what it saw first stands for numbers that are as near."""

    def __init__(self, dtype: str = "float32") -> None:
        self._near = ROUNDINGS * float(np.finfo("float32" if dtype == REAL else dtype).eps)
        self._numbers: dict[tuple[bool, int], float] = {}
        self.number(1.0)
        self._atoms: dict[Atom, int] = {}
        self.atoms: list[Atom] = []
        self._axes: dict[int, frozenset[int]] = {}

    def number(self, value: float) -> float:
        """A number, or the one seen before that it differs from by rounding only."""
        if value in (0.0, 1.0) or not math.isfinite(value):
            return value
        above, bucket = value > 0, round(math.log(abs(value)) / self._near)
        for i in (bucket, bucket - 1, bucket + 1):  # numbers as near are in the same bucket, or in neighbours
            known = self._numbers.get((above, i))
            if known is not None and (i == bucket or abs(known - value) <= self._near * abs(known)):
                return known
        self._numbers[above, bucket] = value
        return value

    def monic(self, poly: Poly) -> Poly:
        """A form up to a factor: the coefficient of its first product is one."""
        return self.times(poly, 1.0 / scale_of(poly)) if poly else poly

    def times(self, poly: Poly, factor: float) -> Poly:
        """A form times a number."""
        return poly if factor == 1.0 else self.gathered((f, c * factor) for f, c in poly)

    def atom(self, atom: Atom) -> int:
        """The number of an atom."""
        if atom not in self._atoms:
            self._atoms[atom] = len(self.atoms)
            self.atoms.append(atom)
        return self._atoms[atom]

    def axes(self, atom: int) -> frozenset[int]:
        """The axes of the result along which an atom differs."""
        if atom not in self._axes:
            made = self.atoms[atom]
            below = (n for poly in made.inputs for factors, _ in poly for n, _ in factors)
            told = frozenset[int]().union(*map(self.axes, below)) if made.view is None else axes_of(made.view)
            self._axes[atom] = told
        return self._axes[atom]

    def factored(self, poly: Poly) -> tuple[float, Factors]:
        """A form as one product: its coefficient and factors. What its products share is taken out."""
        if len(poly) == 1:
            return poly[0][1], poly[0][0]
        if not poly:
            return 0.0, ()
        shared = _shared(poly)
        rest = self.gathered((without(factors, shared), c) for factors, c in poly)
        scale = scale_of(rest)
        return scale, powers([*shared, (self.atom(Atom(None, (self.times(rest, 1.0 / scale),))), 1)])

    def of_atom(self, atom: Atom) -> Poly:
        """A form that is one atom."""
        return ((((self.atom(atom), 1),), 1.0),)

    def added(self, x: Poly, y: Poly) -> Poly:
        """A sum; what both summands have as a factor comes before it, so `x + x³` is `x·(1 + x²)` whatever x is."""
        (a, ours), (b, theirs) = self.factored(x), self.factored(y)
        shares = any(a == b and e * g > 0 for a, e in ours for b, g in theirs)
        total = self.gathered([(ours, a), (theirs, b)] if shares else [*self.opened(x), *self.opened(y)])
        grouped = self._grouped(total)
        return self.product([(grouped, 1)]) if len(grouped) > 1 else grouped

    def _grouped(self, poly: Poly) -> Poly:
        """`x·y + z·y + w` as `(x + z)·y + w`: what most products share comes first."""
        counted = Counter((a, e > 0) for factors, _ in poly for a, e in factors)
        most = max(counted.values(), default=0)
        if most < 2 or most == len(poly):
            return poly
        atom, above = min(key for key, count in counted.items() if count == most)
        sharing = tuple(p for p in poly if any(a == atom and (e > 0) == above for a, e in p[0]))
        scale, factors = self.factored(self._within_opened(sharing))
        return self._grouped(self.gathered([*(p for p in poly if p not in sharing), (factors, scale)]))

    def _within_opened(self, poly: Poly) -> Poly:
        """Products that share factors, with sums opened in what remains of each without them."""
        shared = _shared(poly)
        rest = self.opened(self.gathered((without(factors, shared), c) for factors, c in poly))
        return self.product([(rest, 1), (((shared, 1.0),), 1)])

    def product(self, parts: Iterable[tuple[Poly, int]]) -> Poly:
        """A product of forms, each to a whole power."""
        given = list(parts)
        below = any(power < 0 for _, power in given)
        if (given[1:] or below) and any(not poly for poly, _ in given):  # 0 times what is not finite is no number
            return self.of_atom(Atom(Div() if below else Mul(), tuple(poly for poly, _ in given)))
        scale, factors = 1.0, list[tuple[int, int]]()
        for poly, power in given:
            number, own = self.factored(poly)
            if number == 0.0:
                return ()
            scale *= number**power
            factors += [(a, e * power) for a, e in own]
        return self.of_factors(powers(factors), scale)

    def of_factors(self, factors: Factors, scale: float = 1.0) -> Poly:
        """A product; of a single sum and a number, that is a sum."""
        only = self.atoms[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 else None
        if only is not None and only.head is None:
            return self.times(only.inputs[0], scale)
        return ((factors, self.number(scale)),) if scale != 0.0 else ()

    def opened(self, poly: Poly) -> Poly:
        """A form without products that are a single sum."""
        opened = list[tuple[Factors, float]]()
        for factors, scale in poly:
            opened += self.of_factors(factors, scale)
        return self.gathered(opened)

    def gathered(self, products: Iterable[tuple[Factors, float]]) -> Poly:
        """A sum of products, in which each is there once."""
        total: dict[Factors, float] = {}
        for factors, scale in products:
            total[factors] = total.get(factors, 0.0) + scale
        return tuple(sorted((f, self.number(c)) for f, c in total.items() if c != 0.0))


def scale_of(poly: Poly) -> float:
    """The coefficient of the first product, which is the number where there is one."""
    return poly[0][1]


def axes_of(view: View | None) -> frozenset[int]:
    """The axes along which what a view reads differs."""
    return frozenset(i for i, a in enumerate(view or ()) if a is not None)


def _shared(poly: Poly) -> Factors:
    """The factors that all products of a form have."""
    shared = list(poly[0][0])
    for factors, _ in poly[1:]:
        pairs = [(a, e, g) for a, e in shared for b, g in factors if a == b and e * g > 0]
        shared = [(a, min(e, g) if e > 0 else max(e, g)) for a, e, g in pairs]
    return tuple(shared)


def powers(factors: Iterable[tuple[int, int]]) -> Factors:
    """Factors gathered, but for those below a fraction: `x / x` is no number where x is 0."""
    total: dict[tuple[int, bool], int] = {}
    for atom, exponent in factors:
        total[atom, exponent > 0] = total.get((atom, exponent > 0), 0) + exponent
    return tuple(sorted((a, e) for (a, _), e in total.items()))


def without(factors: Factors, taken: Factors) -> Factors:
    """Factors less some that are among them; one that is not is left with what it lacks."""
    total = {(a, e > 0): e for a, e in factors}
    for atom, exponent in taken:
        total[atom, exponent > 0] = total.get((atom, exponent > 0), 0) - exponent
    return tuple(sorted((a, e) for (a, _), e in total.items() if e))
