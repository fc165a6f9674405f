"""A normal form of terms, up to the arithmetic of real numbers: equal forms, equal values.

Sums and products are gathered whatever their order and grouping; quotients are products with reciprocals, differences
sums, whole powers products; numbers are multiplied out, and pass through what is linear. Where an element comes from,
through repetitions, transpositions and axes of one place, is a *view* at the leaves. Composite operators count as what
they mean. So a gelu is one form however its exporter wrote it. Numbers that differ by rounding are one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from superopt.demands import assuming
from superopt.dim import Shape, equal
from superopt.operators.constant import Scalar
from superopt.operators.declared import Declared
from superopt.operators.differences import Abs, Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.functions import Pow
from superopt.operators.layout import Expand, Reshape, Transpose
from superopt.operators.pointwise import Add, Div, Mul, Relu, Sqrt
from superopt.relations import is_one
from superopt.search.rewriting.sums import Atom, Poly, Sums, View, scale_of
from superopt.term import Operator, Term, subterms

MOST_POWER = 4

_VIEWS, _BOUNDS = (Expand, Reshape, Transpose), (Relu, Abs, Max, Min)
_GATHERED = (Scalar, Add, Sub, Neg, Mul, Div, Pow)


class Forms(Sums):
    """Makes forms of terms, and remembers them."""

    def __init__(self, dtype: str = "float32") -> None:
        super().__init__(dtype)
        self._known: dict[tuple[Term, View | None], Poly] = {}

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

    def _made(self, term: Term, view: View) -> Poly:
        op, read = term.operator, self._read
        if isinstance(op, Scalar):
            return self.gathered([((), op.value)])
        if isinstance(op, _VIEWS):
            below = _through(term, view)
            if below is not None:
                return self._of(term.inputs[0], below)
        if not isinstance(op, Declared) or _is_weight(term):
            return self.of_atom(Atom(term, view=view))
        meaning = _meaning(term)
        if meaning is not None:
            return self._of(meaning, view)
        if isinstance(op, Add | Sub):
            x, y = read(term, view)
            return self.added(x, y if isinstance(op, Add) else self.times(y, -1.0))
        if isinstance(op, Neg):
            return self.times(read(term, view)[0], -1.0)
        if isinstance(op, Mul | Div):
            x, y = read(term, view)
            return self.product([(x, 1), (y, 1 if isinstance(op, Mul) else -1)])
        if isinstance(op, Pow):
            return self._power(op, *read(term, view))
        if isinstance(op, _BOUNDS):
            return self._bounded(op, read(term, view))
        if op.pointwise:
            inputs = read(term, view)
            return self.of_atom(Atom(op, tuple(sorted(inputs)) if op.commutative else inputs))
        return self._apart(op, term, view)

    def _read(self, term: Term, view: View) -> tuple[Poly, ...]:
        return tuple(self._of(i, view) for i in term.inputs)

    def _apart(self, op: Declared, term: Term, view: View) -> Poly:
        """An operator that is not point-wise: factors of what it is linear in come before it."""
        scale, inputs = 1.0, []
        for place, i in enumerate(term.inputs):
            poly = self._of(i)
            if place in op.linear and poly:
                scale, poly = scale * scale_of(poly), self.monic(poly)
            inputs.append(poly)
        return self.times(self.of_atom(Atom(op, tuple(inputs), tuple(i.shape for i in term.inputs), view)), scale)

    def _power(self, op: Pow, base: Poly, exponent: Poly) -> Poly:
        number = exponent[0][1] if len(exponent) == 1 and not exponent[0][0] else None
        if number is not None and abs(number) in range(1, MOST_POWER + 1):
            return self.product([(base, int(number))])
        if number is not None and abs(number) == 0.5:
            return self.product([(self.of_atom(Atom(Sqrt(), (base,))), 1 if number > 0 else -1)])
        return self.of_atom(Atom(op, (base, exponent)))

    def _bounded(self, op: Declared, given: tuple[Poly, ...]) -> Poly:
        """`max(c·x, c·y) = c·max(x, y)` for positive c: the scale comes out, so that a bound is 1."""
        if isinstance(op, Relu):
            given, op = (given[0], ()), Max()
        elif isinstance(op, Abs):
            given, op = (given[0], self.times(given[0], -1.0)), Max()
        whole = [self.opened(p) for p in given]
        numbers = [c for p in sorted(whole) for f, c in p if not f] or [c for p in sorted(whole) for _, c in p]
        scale = abs(numbers[0]) if numbers else 1.0
        inputs = sorted(self.product([(self.times(p, 1.0 / scale), 1)]) for p in whole)
        return self.times(self.of_atom(Atom(op, tuple(inputs))), scale)


def single(term: Term) -> Declared | None:
    """The operator of the atom that a term's form is a multiple of, where the term's own operator says; else None."""
    op = term.operator
    if not isinstance(op, Declared) or isinstance(op, _GATHERED + _VIEWS) or _is_weight(term) or _is_composite(op):
        return None
    return Max() if isinstance(op, Relu | Abs) else op


class Heads(NamedTuple):
    """The names of the operators that the atoms of a form are of, or more: those of the atoms that sums and products
    are made of, and those of all that are within these.
    """

    top: frozenset[str]
    within: frozenset[str]


class Outlook:
    """Tells the heads of forms without making these."""

    def __init__(self) -> None:
        self._known: dict[Term, Heads] = {}

    def of(self, term: Term) -> Heads:
        """Those of a term's form."""
        for below in subterms(term, known=self._known):  # inputs first: a sum may have hundreds of summands
            self._known[below] = self._told(below)
        return self._known[term]

    def _told(self, term: Term) -> Heads:
        op = term.operator
        if not isinstance(op, Declared) or isinstance(op, Scalar) or _is_weight(term):
            return Heads(_NONE, _NONE)
        if (meaning := _meaning(term)) is not None:
            return self.of(meaning)
        below = [self._known[i] for i in term.inputs]
        own = _OWN.get(type(op))
        top = frozenset({Max.name if isinstance(op, Relu | Abs) else op.name}) if own is None else own
        within = top.union(*[heads.within for heads in below])
        return Heads(top if own is None else top.union(*[heads.top for heads in below]), within)


_NONE: frozenset[str] = frozenset()
_OWN: Mapping[type[Operator], frozenset[str]] = {
    **dict.fromkeys((Add, Sub, Neg, Expand, Transpose), _NONE),
    Reshape: frozenset({Reshape.name}),
    Mul: frozenset({Mul.name}),
    Div: frozenset({Div.name}),
    Pow: frozenset({Pow.name, Sqrt.name, Mul.name, Div.name}),
}
"""As which atoms arithmetic and views may themselves come: products with 0, roots, and what is no view of its input."""


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
