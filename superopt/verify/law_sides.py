"""Both sides of a law, evaluated at all small sizes that it fits, or at a sample of them.

A law is tested *exactly* in each carrier that has all that its operators need. Where none has, it is *compared*: both
sides agree in 64-bit floating point up to rounding; and it may hold *for any function*: in a carrier with a keyed hash
in place of what that lacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.arithmetic.exact import EXACT
from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.dim import Dim
from superopt.operators.declared import Declared
from superopt.operators.laws.collected import Law
from superopt.operators.symbolic import all_symbols, resize
from superopt.substitution import symbols
from superopt.term import Operator, Term, subterms, variable, variables
from superopt.verify.law_sizes import LIMIT, Columns, Sizes, generator, small_sizes
from superopt.verify.law_values import Values

EVALUATIONS = 16
"""How often an instance is evaluated, at least: on other values again, where it fits fewer shapes."""

TOLERANCE = 1e-9
"""Which part of the largest element two 64-bit floats may differ by."""

Kind = Literal["exact", "any function", "compared"]


@dataclass(frozen=True)
class Tried:
    """How one instance of a law fared: on how many shapes, which may be all that it fits, and where it holds."""

    shapes: int
    complete: bool
    carriers: tuple[tuple[str, Kind], ...] = ()
    fault: str | None = None


def try_law(law: Law, limit: int = LIMIT, seed: int = 0) -> Tried:
    """Evaluate both sides of a law at small sizes, in the carriers that can tell."""
    if (unbound := _unbound(law)) is not None:
        return Tried(0, True, fault=unbound)
    sizes = small_sizes(law, limit, seed)
    tried = Tried(len(sizes.rows), sizes.complete)
    if not tried.shapes:
        found = "no shape fits it" if sizes.complete else "none of the shapes that were drawn fits it"
        return replace(tried, fault=f"{found}, so it says nothing: {law}")
    sides = _Sides(law, sizes, seed)
    fault = sides.mistyped()
    if fault is not None:
        return replace(tried, fault=fault)
    asked = needs(law)
    exact = [ring for ring in EXACT if asked <= ring.has]
    for ring in exact or [FLOAT]:
        fault = sides.difference(ring)
        if fault is not None:
            return replace(tried, fault=fault)
    if exact:
        return replace(tried, carriers=tuple((ring.name, "exact") for ring in exact))
    hashed = (ring for ring in EXACT if _can_meet(law, ring) and sides.difference(ring) is None)
    agreed: tuple[tuple[str, Kind], ...] = tuple((ring.name, "any function") for ring in itertools.islice(hashed, 1))
    return replace(tried, carriers=((FLOAT.name, "compared"), *agreed))


def _unbound(law: Law) -> str | None:
    """Of a condition that is about nothing in the law."""
    names = set(all_symbols(law.left, law.right))
    for c in law.conditions:
        if not symbols(c.left) | symbols(c.right) <= names:
            return f"its condition {c} is about a size that neither side has: {law}"
    for fact in law.facts:
        if fact.of not in variables(law.left, law.right):
            return f"its condition {fact} is about no variable of it: {law}"
    return None


def needs(law: Law) -> frozenset[str]:
    """What a carrier must have besides sums and products for a law's operators, and what these are made of."""
    found = {need for t in subterms(law.left, law.right) for need in _needs(t)}
    return frozenset(found | {"order" for fact in law.facts if fact.kind == "nonnegative"})


def _needs(term: Term) -> frozenset[str]:
    op = term.operator
    if not isinstance(op, Declared):
        return frozenset()
    with assuming():
        meaning = op.definition(*(variable(f"x{i}", t.shape, t.type.dtype) for i, t in enumerate(term.inputs)))
    return op.needs.union(*map(_needs, subterms(meaning) if meaning is not None else ()))


def _can_meet(law: Law, ring: Carrier) -> bool:
    """Whether values can be drawn of which the facts hold."""
    return "order" in ring.has or all(fact.kind != "nonnegative" for fact in law.facts)


class _Sides:
    """Both sides of a law at each of its sizes."""

    def __init__(self, law: Law, sizes: Sizes, seed: int) -> None:
        self.law, self.sizes, self.seed = law, sizes, seed
        self.known = Columns(dict(zip(sizes.names, sizes.rows.T, strict=True)))
        self.terms = list(subterms(law.left, law.right))
        self.arguments = {t: self.known.table(_arguments(t)).tolist() for t in self.terms}
        self.sized: dict[tuple[Term, tuple[int, ...]], Operator] = {}

    def mistyped(self) -> str | None:
        """Where the sides are of different types, or something is empty though it is well formed."""
        left, right = self.law.left, self.law.right
        if left.type.dtype != right.type.dtype or left.type.rank != right.type.rank:
            return f"its sides are of different types, {left.type} and {right.type}: {self.law}"
        wrong = (self.known.table(left.shape) != self.known.table(right.shape)).any(axis=1)
        for t in self.terms:
            wrong |= (self.known.table(t.shape) < 1).any(axis=1)
        if not wrong.any():
            return None
        return f"its sides differ in shape, or something is empty: {self._shown(int(np.argmax(wrong)))}"

    def difference(self, ring: Carrier) -> str | None:
        """Where the sides differ in a carrier; None where they agree at all sizes."""
        values = Values(self.law, ring, generator(self.seed, str(self.law), ring.name))
        agree, examined, count = _close if ring is FLOAT else _equal, False, len(self.sizes.rows)
        for i in range(max(count, EVALUATIONS)):
            with np.errstate(all="ignore"):  # some of what is drawn has no root, no logarithm, no inverse
                left, right = self._evaluated(i % count, values)
            if left.shape != right.shape or not agree(left, right):
                return f"its sides differ ({ring.name}, seed {self.seed}): {self._shown(i % count)}"
            examined = examined or ring is not FLOAT or bool(np.isfinite(left).any())
        return None if examined else f"it has no finite value ({ring.name}, seed {self.seed}): {self.law}"

    def _evaluated(self, row: int, values: Values) -> tuple[Array, Array]:
        values.next()
        done: dict[Term, Array] = {}
        for t in self.terms:
            arguments = tuple(self.arguments[t][row])
            if t.is_variable:
                done[t] = values.of(t, arguments)
            else:
                done[t] = self._operator(t, arguments).eval(values.ring, *(done[i] for i in t.inputs))
        return done[self.law.left], done[self.law.right]

    def _operator(self, term: Term, arguments: tuple[int, ...]) -> Operator:
        if (term, arguments) not in self.sized:
            assert isinstance(term.operator, Declared)
            self.sized[term, arguments] = term.operator.with_sizes(arguments)
        return self.sized[term, arguments]

    def _shown(self, row: int) -> str:
        """The law at one of its sizes."""
        values: dict[str, Dim] = dict(zip(self.sizes.names, map(int, self.sizes.rows[row]), strict=True))
        left, right = resize((self.law.left, self.law.right), values)
        return str(replace(self.law, left=left, right=right, conditions=(), facts=()))


def _equal(left: Array, right: Array) -> bool:
    return bool((left == right).all())


def _close(left: Array, right: Array) -> bool:
    """Equal up to rounding where both are numbers; where one is none, so is the other."""
    finite = np.isfinite(left)
    if (finite != np.isfinite(right)).any():
        return False
    a, b = left[finite], right[finite]
    return bool((np.abs(a - b) <= TOLERANCE * max(1.0, np.abs(a).max(initial=0.0))).all())


def _arguments(term: Term) -> Sequence[Dim]:
    """The sizes of a variable, or those among the attributes of an operator."""
    op = term.operator
    return op.sizes() if isinstance(op, Declared) else term.shape
