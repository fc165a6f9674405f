"""Sizes: integers, and integer expressions over symbols that are compared only where the answer is decided.

A `Dim` is an `int` or an `Expr`. An `Expr` is kept as a polynomial with integer coefficients over *atoms*: symbols and
floor divisions that do not simplify. It is interned, so equal polynomials are one object. Comparing two dims gives a
bool where their difference is a constant and otherwise a `Condition`, whose truth value raises `Undecided`: a shape
rule can never branch silently on something unknown. The same conditions are what the solver is told about.

Sizes, floor divisions in them and the conditions that comparing them makes define each other, so they are one file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias
from weakref import WeakValueDictionary

from superopt.errors import ShapeError, Undecided
from superopt.polynomial import Terms, degree, exact_quotient, multiplied, ordered, summed, term_text

Dim: TypeAlias = "int | Expr"
Shape: TypeAlias = "tuple[Dim, ...]"
Truth: TypeAlias = "bool | Condition"
Relation = Literal["=", "<=", "divides", "!="]

Atom: TypeAlias = "Symbol | Floor"


@dataclass(frozen=True)
class Symbol:
    """A size that is not known, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Floor:
    """`⌊numerator / denominator⌋` that did not simplify. Two are equal where they are the same, never conditionally."""

    numerator: Dim
    denominator: Dim

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Floor)
            and _identical(self.numerator, other.numerator)
            and _identical(self.denominator, other.denominator)
        )

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __str__(self) -> str:
        return f"(div {self.numerator} {self.denominator})"


_TERMS, _DEGREE = 4096, 64
"""How large a size may grow by multiplication."""


class Expr:
    """An integer polynomial over atoms; never a constant (that is an `int`). Make one with `symbol` and arithmetic."""

    __slots__ = ("__weakref__", "_hash", "_text", "name", "terms")
    terms: Terms[Atom]
    name: str | None
    """Of a single symbol; None of anything else."""
    _hash: int
    _text: str
    _interned: ClassVar[WeakValueDictionary[Terms[Atom], Expr]] = WeakValueDictionary()

    def __new__(cls, terms: Terms[Atom]) -> Expr:
        known = cls._interned.get(terms)
        if known is not None:
            return known
        self = super().__new__(cls)
        self.terms = terms
        match terms:
            case (((Symbol(name),), 1),):
                self.name = name
            case _:
                self.name = None
        # -1 and -2 have one hash, and what collides is compared, which symbols may leave open: so not by them alone.
        self._hash = hash(tuple((monomial, coefficient, 3 * coefficient) for monomial, coefficient in terms))
        cls._interned[terms] = self
        return self

    def __reduce__(self) -> tuple[type[Expr], tuple[Terms[Atom]]]:
        return Expr, (self.terms,)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        return _dim(summed(self.terms, terms_of(other)))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return _dim(summed(self.terms, terms_of(other), -1))

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return Expr(tuple((monomial, other * coefficient) for monomial, coefficient in self.terms)) if other else 0
        theirs = terms_of(other)
        if len(self.terms) * len(theirs) > _TERMS or degree(self.terms) + degree(theirs) > _DEGREE:
            raise ShapeError(f"a size of more than {_TERMS} terms, or of more than {_DEGREE} factors in one")
        return _dim(multiplied(self.terms, theirs))

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floor_div(self, other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return floor_div(other, self)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return equal(self, other) if isinstance(other, int | Expr) else NotImplemented

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        if not isinstance(other, int | Expr):
            return NotImplemented
        answer = equal(self, other)
        return (not answer) if isinstance(answer, bool) else Condition("!=", self, other)

    def __le__(self, other: Dim) -> Truth:
        return at_most(self, other)

    def __ge__(self, other: Dim) -> Truth:
        return at_most(other, self)

    def __lt__(self, other: Dim) -> Truth:
        return at_most(self + 1, other)

    def __gt__(self, other: Dim) -> Truth:
        return at_most(other + 1, self)

    def __bool__(self) -> bool:
        raise Undecided(f"the size {self} is used as a truth value; compare it instead")

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:  # each operator puts the shapes that it is applied to into words, in case they are wrong
            parts = [term_text(m, c) for m, c in self.terms]
            self._text = parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"
            return self._text

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Condition:
    """A relation between two sizes that symbols leave open: `left relation right`."""

    relation: Relation
    left: Dim
    right: Dim

    def __bool__(self) -> bool:
        raise Undecided(f"whether {self} holds depends on the sizes; it cannot be branched on")

    @property
    def key(self) -> tuple[str, str, str]:
        """What two equal conditions have in common."""
        return self.relation, str(self.left), str(self.right)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"({self.relation} {self.left} {self.right})"


def symbol(name: str) -> Expr:
    """The size called `name`."""
    return Expr((((Symbol(name),), 1),))


def symbol_name(dim: Dim) -> str | None:
    """The name of a size that is a single symbol; None for any other."""
    return dim.name if isinstance(dim, Expr) else None


def equal(left: Dim, right: Dim) -> Truth:
    """Whether two sizes are equal for all values of their symbols, or for none; else the condition that they are."""
    if left is right:
        return True
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    difference = left - right
    return difference == 0 if isinstance(difference, int) else Condition("=", left, right)


def at_most(left: Dim, right: Dim) -> Truth:
    """Whether `left <= right`, or the condition that it is."""
    difference = right - left
    return difference >= 0 if isinstance(difference, int) else Condition("<=", left, right)


def floor_div(left: Dim, right: Dim) -> Dim:
    """`⌊left / right⌋`, simplified where the division is exact or the divisor is a number that divides a part.

    Raises `ShapeError` for a division by 0.
    """
    if isinstance(right, int) and right <= 0:  # the solver rounds down for positive divisors only
        if right == 0:
            raise ShapeError(f"the size {left} is divided by 0")
        return floor_div(left * -1, -right)
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    quotient = exact_quotient(terms_of(left), terms_of(right))
    if quotient is not None:
        return _dim(quotient)
    if isinstance(right, int):
        return _floor_by_number(terms_of(left), right)
    return Expr((((Floor(left, right),), 1),))


def product(dims: Sequence[Dim]) -> Dim:
    """The product of sizes; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def _identical(a: Dim, b: Dim) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def terms_of(dim: Dim) -> Terms[Atom]:
    """A size as a polynomial, a number too; 0 has no terms."""
    if isinstance(dim, Expr):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def _dim(terms: Terms[Atom]) -> Dim:
    if not terms:
        return 0
    return Expr(terms) if terms[0][0] else terms[0][1]


def _floor_by_number(terms: Terms[Atom], by: int) -> Dim:
    """The quotient by a positive number, in one form for what exporters write in many.

    What is divided by exactly stands outside, and so do the multiples of `by` in the constant; a common factor is
    cancelled, `⌊(g·x + c) / (g·n)⌋ = ⌊(x + ⌊c / g⌋) / n⌋`; and a quotient of a quotient is one,
    `⌊(⌊x / m⌋ + y) / n⌋ = ⌊(x + m·y) / (m·n)⌋`.
    """
    whole = _dim(ordered({m: c // by for m, c in terms if c % by == 0 or m == ()}))
    rest = {m: c % by if m == () else c for m, c in terms if c % by}
    common = math.gcd(by, *(c for m, c in rest.items() if m))
    if common > 1:
        rest, by = {m: c // common for m, c in rest.items()}, by // common
    numerator = _dim(ordered(rest))
    for monomial, coefficient in rest.items():
        match monomial:
            case (Floor(numerator=top, denominator=int(bottom)),) if coefficient == 1:
                others = numerator - Expr(((monomial, 1),))
                return whole + floor_div(top + others * bottom, bottom * by)
    if isinstance(numerator, int):
        return whole + numerator // by
    return whole + Expr((((Floor(numerator, by),), 1),))
