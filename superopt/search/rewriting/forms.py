"""A normal form of terms, up to the arithmetic of real numbers: equal forms, equal values.

Sums and products are gathered whatever their order and grouping; quotients are products with reciprocals, differences
sums, whole powers products; numbers are multiplied out, and pass through what is linear. Where an element comes from,
through repetitions, transpositions and axes of one place, is a *view* at the leaves. Composite operators count as what
they mean. So a gelu is one form however its exporter wrote it. Numbers that differ by rounding are one number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from superopt.dim import Shape, assuming, equal, is_one
from superopt.operators.constant import Scalar
from superopt.operators.declare import Declared
from superopt.operators.functions import Abs, Max, Min, Neg, Pow, Sub
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.pointwise import Add, Div, Mul, Relu, Sqrt
from superopt.term import REAL, Operator, Term, subterms

View: TypeAlias = "tuple[int | None, ...]"
"""For each axis of a result the axis of a term that it reads; None where it reads none, or one of a single place."""

Factors: TypeAlias = "tuple[tuple[int, int], ...]"
"""A product: atoms by number, each with its exponent, in the order of numbers; empty for one."""

Poly: TypeAlias = "tuple[tuple[Factors, float], ...]"
"""A sum of products, each with its coefficient, in order."""

ROUNDINGS = 8
"""How many units in the last place numbers may differ by and count as one: each was rounded a few times."""

MOST_POWER = 4

_VIEWS, _BOUNDS = (Expand, Reshape, Transpose), (Relu, Abs, Max, Min)
_GATHERED = (Scalar, Add, Sub, Neg, Mul, Div, Pow)


class Atom(NamedTuple):
    """What sums and products are made of: a leaf (no `inputs`), an operator over forms, or a sum that is a factor."""

    head: Operator | Term | None
    """The operator, or the leaf; None for a sum, which is its one input."""
    inputs: tuple[Poly, ...] = ()
    shapes: tuple[Shape, ...] | None = None
    """Those of the inputs, where the operator does not work element by element."""
    view: View | None = None
    """How elements are read of what does not work element by element."""


class Forms:
    """Makes forms. Those of one object compare by equality; what it saw first stands for numbers that are as near."""

    def __init__(self, dtype: str = "float32") -> None:
        self._near = ROUNDINGS * float(np.finfo("float32" if dtype == REAL else dtype).eps)
        self._numbers: dict[tuple[bool, int], float] = {}
        self.number(1.0)
        self._known: dict[tuple[Term, View | None], Poly] = {}
        self._atoms: dict[Atom, int] = {}
        self.atoms: list[Atom] = []
        self._axes: dict[int, frozenset[int]] = {}

    def of(self, term: Term, view: View | None = None) -> Poly:
        """The form of a term, or of what a view reads of it."""
        try:
            return self._of(term, view)
        except RecursionError:  # as of a sum with hundreds of summands: from the bottom, each finds its inputs known
            for below in subterms(term):
                self._of(below)
            return self._of(term, view)

    def _of(self, term: Term, view: View | None = None) -> Poly:
        key = term, view
        if key not in self._known:
            seen = _without_ones(range(term.type.rank) if view is None else view, term.shape)
            self._known[key] = self._made(term, seen) if seen == view else self._of(term, seen)
        return self._known[key]

    def forked(self) -> Forms:
        """Forms that begin with what these saw, and go on by themselves."""
        fork = Forms()
        fork._near, fork._numbers = self._near, dict(self._numbers)
        fork._atoms, fork.atoms = dict(self._atoms), list(self.atoms)
        return fork

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
        return poly if factor == 1.0 else self._sum((f, c * factor) for f, c in poly)

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
        rest = self._sum((without(factors, shared), c) for factors, c in poly)
        scale = scale_of(rest)
        return scale, powers([*shared, (self.atom(Atom(None, (self.times(rest, 1.0 / scale),))), 1)])

    def _made(self, term: Term, view: View) -> Poly:
        op, read = term.operator, self._read
        if isinstance(op, Scalar):
            return self._sum([((), op.value)])
        if isinstance(op, _VIEWS):
            below = _through(term, view)
            if below is not None:
                return self._of(term.inputs[0], below)
        if not isinstance(op, Declared) or _is_weight(term):
            return self._single(Atom(term, view=view))
        meaning = _meaning(term)
        if meaning is not None:
            return self._of(meaning, view)
        if isinstance(op, Add | Sub):
            x, y = read(term, view)
            return self._added(x, y if isinstance(op, Add) else self.times(y, -1.0))
        if isinstance(op, Neg):
            return self.times(read(term, view)[0], -1.0)
        if isinstance(op, Mul | Div):
            x, y = read(term, view)
            return self._product([(x, 1), (y, 1 if isinstance(op, Mul) else -1)])
        if isinstance(op, Pow):
            return self._power(op, *read(term, view))
        if isinstance(op, _BOUNDS):
            return self._bounded(op, read(term, view))
        if op.pointwise:
            inputs = read(term, view)
            return self._single(Atom(op, tuple(sorted(inputs)) if op.commutative else inputs))
        return self._apart(op, term, view)

    def _read(self, term: Term, view: View) -> tuple[Poly, ...]:
        return tuple(self._of(i, view) for i in term.inputs)

    def _single(self, atom: Atom) -> Poly:
        return ((((self.atom(atom), 1),), 1.0),)

    def _apart(self, op: Declared, term: Term, view: View) -> Poly:
        """An operator that is not point-wise: factors of what it is linear in come before it."""
        scale, inputs = 1.0, []
        for place, i in enumerate(term.inputs):
            poly = self._of(i)
            if place in op.linear and poly:
                scale, poly = scale * scale_of(poly), self.monic(poly)
            inputs.append(poly)
        return self.times(self._single(Atom(op, tuple(inputs), tuple(i.shape for i in term.inputs), view)), scale)

    def _added(self, x: Poly, y: Poly) -> Poly:
        """A sum; what both summands have as a factor comes before it, so `x + x³` is `x·(1 + x²)` whatever x is."""
        (a, ours), (b, theirs) = self.factored(x), self.factored(y)
        shares = any(a == b and e * g > 0 for a, e in ours for b, g in theirs)
        total = self._sum([(ours, a), (theirs, b)] if shares else [*self._opened(x), *self._opened(y)])
        grouped = self._grouped(total)
        return self._product([(grouped, 1)]) if len(grouped) > 1 else grouped

    def _grouped(self, poly: Poly) -> Poly:
        """`x·y + z·y + w` as `(x + z)·y + w`: what most products share comes first."""
        counted = Counter((a, e > 0) for factors, _ in poly for a, e in factors)
        most = max(counted.values(), default=0)
        if most < 2 or most == len(poly):
            return poly
        atom, above = min(key for key, count in counted.items() if count == most)
        sharing = tuple(p for p in poly if any(a == atom and (e > 0) == above for a, e in p[0]))
        scale, factors = self.factored(self._within_opened(sharing))
        return self._grouped(self._sum([*(p for p in poly if p not in sharing), (factors, scale)]))

    def _within_opened(self, poly: Poly) -> Poly:
        """Products that share factors, with sums opened in what remains of each without them."""
        shared = _shared(poly)
        rest = self._opened(self._sum((without(factors, shared), c) for factors, c in poly))
        return self._product([(rest, 1), (((shared, 1.0),), 1)])

    def _power(self, op: Pow, base: Poly, exponent: Poly) -> Poly:
        number = exponent[0][1] if len(exponent) == 1 and not exponent[0][0] else None
        if number is not None and abs(number) in range(1, MOST_POWER + 1):
            return self._product([(base, int(number))])
        if number is not None and abs(number) == 0.5:
            return self._product([(self._single(Atom(Sqrt(), (base,))), 1 if number > 0 else -1)])
        return self._single(Atom(op, (base, exponent)))

    def _bounded(self, op: Declared, given: tuple[Poly, ...]) -> Poly:
        """`max(c·x, c·y) = c·max(x, y)` for positive c: the scale comes out, so that a bound is 1."""
        if isinstance(op, Relu):
            given, op = (given[0], ()), Max()
        elif isinstance(op, Abs):
            given, op = (given[0], self.times(given[0], -1.0)), Max()
        whole = [self._opened(p) for p in given]
        numbers = [c for p in sorted(whole) for f, c in p if not f] or [c for p in sorted(whole) for _, c in p]
        scale = abs(numbers[0]) if numbers else 1.0
        inputs = sorted(self._product([(self.times(p, 1.0 / scale), 1)]) for p in whole)
        return self.times(self._single(Atom(op, tuple(inputs))), scale)

    def _product(self, parts: Iterable[tuple[Poly, int]]) -> Poly:
        given = list(parts)
        below = any(power < 0 for _, power in given)
        if (given[1:] or below) and any(not poly for poly, _ in given):  # 0 times what is not finite is no number
            return self._single(Atom(Div() if below else Mul(), tuple(poly for poly, _ in given)))
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

    def _opened(self, poly: Poly) -> Poly:
        """A form without products that are a single sum."""
        opened = list[tuple[Factors, float]]()
        for factors, scale in poly:
            opened += self.of_factors(factors, scale)
        return self._sum(opened)

    def _sum(self, products: Iterable[tuple[Factors, float]]) -> Poly:
        total: dict[Factors, float] = {}
        for factors, scale in products:
            total[factors] = total.get(factors, 0.0) + scale
        return tuple(sorted((f, self.number(c)) for f, c in total.items() if c != 0.0))


def single(term: Term) -> Declared | None:
    """The operator of the atom that a term's form is a multiple of, where the term's own operator says; else None."""
    op = term.operator
    if not isinstance(op, Declared) or isinstance(op, _GATHERED + _VIEWS) or _is_weight(term) or _is_composite(op):
        return None
    return Max() if isinstance(op, Relu | Abs) else op


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


def _without_ones(view: Iterable[int | None], shape: Shape) -> View:
    return tuple(None if a is None or is_one(shape[a]) else a for a in view)


def _through(term: Term, view: View) -> View | None:
    """What a view of a repetition, a transposition or a reshape that moves axes of one place reads of the input."""
    op, (x,) = term.operator, term.inputs
    if isinstance(op, Transpose):
        return tuple(None if a is None else op.perm[a] for a in view)
    if isinstance(op, Expand):
        return tuple(op.axes.index(a) if a in op.axes else None for a in view)
    ours, theirs = ([a for a, d in enumerate(t.shape) if not is_one(d)] for t in (term, x))
    if len(ours) != len(theirs):
        return None
    if any(equal(term.shape[a], x.shape[b]) is not True for a, b in zip(ours, theirs, strict=True)):
        return None
    place = dict(zip(ours, theirs, strict=True))
    return tuple(None if a is None else place.get(a) for a in view)


def _is_weight(term: Term) -> bool:
    """Whether a term is made of weights: it is folded to data, and what it is made of does not matter."""
    return term.constant and not all(isinstance(t.operator, Scalar | Expand) for t in (term, *term.inputs))


def _is_composite(op: Declared) -> bool:
    return type(op).definition is not Declared.definition


def _meaning(term: Term) -> Term | None:
    op = term.operator
    if not isinstance(op, Declared) or not _is_composite(op):
        return None
    with assuming():
        return op.definition(*term.inputs)
