"""Sizes: integers, and integer expressions over symbols that are compared only where the answer is decided.

A `Dim` is an `int` or an `Expr`. An `Expr` is kept as a polynomial with integer coefficients over *atoms*: symbols and
floor divisions that do not simplify. It is interned, so equal polynomials are one object. Comparing two dims gives a
bool where their difference is a constant and otherwise a `Condition`, whose truth value raises `Undecided`: a shape
rule can never branch silently on something unknown. The same conditions are what the solver is told about.

Sizes, floor divisions in them and conditions between them define each other, so they are one file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
        return _dim(summed(self.terms, _terms(other)))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return _dim(summed(self.terms, _terms(other), -1))

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return Expr(tuple((monomial, other * coefficient) for monomial, coefficient in self.terms)) if other else 0
        theirs = _terms(other)
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


def are_equal(left: Dim, right: Dim) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return left is right or equal(left, right) is True


def equal_shapes(left: Shape, right: Shape) -> bool:
    """Whether two shapes are of as many axes, whose sizes are equal for all values of their symbols."""
    return len(left) == len(right) and all(map(are_equal, left, right))


def at_most(left: Dim, right: Dim) -> Truth:
    """Whether `left <= right`, or the condition that it is."""
    difference = right - left
    return difference >= 0 if isinstance(difference, int) else Condition("<=", left, right)


def divides(divisor: Dim, dividend: Dim) -> Truth:
    """Whether `dividend` is a multiple of `divisor`, or the condition that it is. Only 0 is a multiple of 0."""
    if isinstance(divisor, int) and divisor == 0:
        return equal(dividend, 0)
    if isinstance(divisor, int) and all(c % divisor == 0 for _, c in _terms(dividend)):
        return True
    if isinstance(divisor, int) and isinstance(dividend, int):
        return False
    if isinstance(divisor, Expr) and exact_quotient(_terms(dividend), _terms(divisor)) is not None:
        return True
    common = math.gcd(*(c for side in (divisor, dividend) for _, c in _terms(side)))
    return Condition("divides", floor_div(divisor, common), floor_div(dividend, common))


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
    quotient = exact_quotient(_terms(left), _terms(right))
    if quotient is not None:
        return _dim(quotient)
    if isinstance(right, int):
        return _floor_by_number(_terms(left), right)
    return Expr((((Floor(left, right),), 1),))


def is_one(dim: Dim) -> bool:
    """Whether a size is the number 1."""
    return isinstance(dim, int) and dim == 1


def product(dims: Sequence[Dim]) -> Dim:
    """The product of sizes; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


_collected: ContextVar[list[Condition] | None] = ContextVar("collected", default=None)


@contextmanager
def assuming() -> Iterator[list[Condition]]:
    """Within this block an undecided `require` is noted in the list that is given, instead of raising."""
    conditions: list[Condition] = []
    token = _collected.set(conditions)
    try:
        yield conditions
    finally:
        _collected.reset(token)


def require(truth: Truth, message: str) -> None:
    """Demand something of sizes. Raises `ShapeError` where it is false, `Undecided` where that is not known and no
    `assuming` block notes it.
    """
    if isinstance(truth, Condition):
        conditions = _collected.get()
        if conditions is None:
            raise Undecided(f"{message} (undecided: {truth})")
        conditions.append(truth)
    elif not truth:
        raise ShapeError(message)


def symbols(dim: Dim) -> frozenset[str]:
    """The names of all symbols in a size."""
    if isinstance(dim, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in dim.terms:
        for atom in monomial:
            if isinstance(atom, Symbol):
                found.add(atom.name)
            else:
                found |= symbols(atom.numerator) | symbols(atom.denominator)
    return frozenset(found)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replace symbols by sizes; names without a value stay."""
    return dim if isinstance(dim, int) else rebuild(dim, lambda n: values[n] if n in values else symbol(n))


def rebuild(dim: Expr, of_symbol: Callable[[str], Dim]) -> Dim:
    """Evaluate a size, with symbols given by a function."""
    total: Dim = 0
    for monomial, coefficient in dim.terms:
        part: Dim = coefficient
        for atom in monomial:
            value = _atom_value(atom, of_symbol)
            # What the solver has is multiplied by 1 as well: its terms are not simplified, and proofs depend on them.
            plain = isinstance(part, int) and isinstance(value, int | Expr)
            part = value if plain and part == 1 else part * value
        total = total + part
    return total


def substitute_condition(condition: Condition, values: Mapping[str, Dim]) -> Truth:
    """A condition with symbols replaced: decided now, or still a condition."""
    left, right = substitute(condition.left, values), substitute(condition.right, values)
    return relate(condition.relation, left, right)


def relate(relation: Relation, left: Dim, right: Dim) -> Truth:
    """The relation between two sizes: decided, or as a condition."""
    if relation == "=":
        return equal(left, right)
    if relation == "<=":
        return at_most(left, right)
    if relation == "divides":
        return divides(left, right)
    answer = equal(left, right)
    return (not answer) if isinstance(answer, bool) else Condition("!=", left, right)


def _atom_value(atom: Atom, of_symbol: Callable[[str], Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return of_symbol(atom.name)
    parts = (atom.numerator, atom.denominator)
    top, bottom = (p if isinstance(p, int) else rebuild(p, of_symbol) for p in parts)
    return floor_div(top, bottom)


def _identical(a: Dim, b: Dim) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _terms(dim: Dim) -> Terms[Atom]:
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
