"""Sizes: integers, and integer expressions over symbols that are compared only where the answer is decided.

A `Dim` is an `int` or an `Expr`. An `Expr` is kept as a polynomial with integer coefficients over *atoms*: symbols and
floor divisions that do not simplify. It is interned, so equal polynomials are one object. Comparing two dims gives a
bool where their difference is a constant and otherwise a `Condition`, whose truth value raises `Undecided`: a shape
rule can never branch silently on something unknown. The same conditions are what the solver is told about.

All of it is one file, though a long one: sizes, floor divisions in them and conditions between them define each other.
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

Dim: TypeAlias = "int | Expr"
Shape: TypeAlias = "tuple[Dim, ...]"
Truth: TypeAlias = "bool | Condition"
Relation = Literal["=", "<=", "divides", "!="]

# A monomial is a sorted tuple of atoms; a polynomial maps monomials to non-zero coefficients.
Atom: TypeAlias = "Symbol | Floor"
Monomial: TypeAlias = "tuple[Atom, ...]"


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
    terms: tuple[tuple[Monomial, int], ...]
    name: str | None
    """Of a single symbol; None of anything else."""
    _hash: int
    _text: str
    _interned: ClassVar[WeakValueDictionary[tuple[tuple[Monomial, int], ...], Expr]] = WeakValueDictionary()

    def __new__(cls, terms: tuple[tuple[Monomial, int], ...]) -> Expr:
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

    def __reduce__(self) -> tuple[type[Expr], tuple[tuple[tuple[Monomial, int], ...]]]:
        return Expr, (self.terms,)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        total = dict(self.terms)
        for monomial, coefficient in _terms(other):
            total[monomial] = total.get(monomial, 0) + coefficient
        return _polynomial(total)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        total = dict(self.terms)
        for monomial, coefficient in _terms(other):
            total[monomial] = total.get(monomial, 0) - coefficient
        return _polynomial(total)

    def __rsub__(self, other: Dim) -> Dim:
        return self * -1 + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return Expr(tuple((monomial, other * coefficient) for monomial, coefficient in self.terms)) if other else 0
        total: dict[Monomial, int] = {}
        theirs = _terms(other)
        if len(self.terms) * len(theirs) > _TERMS or len(self.terms[0][0]) + len(theirs[:1] and theirs[0][0]) > _DEGREE:
            raise ShapeError(f"a size of more than {_TERMS} terms, or of more than {_DEGREE} factors in one")
        for m1, c1 in self.terms:
            for m2, c2 in theirs:
                monomial = tuple(sorted(m1 + m2, key=str))
                total[monomial] = total.get(monomial, 0) + c1 * c2
        return _polynomial(total)

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
            parts = [_monomial_text(m, c) for m, c in self.terms]
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
    if isinstance(divisor, Expr) and isinstance(_exact_quotient(dividend, divisor), int | Expr):
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
    quotient = _exact_quotient(left, right)
    if quotient is not None:
        return quotient
    if isinstance(right, int):
        return _floor_by_number(_terms(left), right)
    return Expr((((Floor(left, right),), 1),))


def is_one(dim: Dim) -> bool:
    """Whether a size is the number 1."""
    return isinstance(dim, int) and dim == 1


def nonnegative(dim: Dim, least: int = 1) -> bool:
    """Whether a size is at least 0 for all symbols of at least `least`: False where its terms do not tell."""
    return _exceeds(dim if isinstance(dim, int) else rebuild(dim, lambda name: symbol(name) + least), 1)


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


def _exceeds(dim: Dim, slack: int) -> bool:
    """Whether a size is more than `-slack` for all symbols of at least 0, as its terms tell. A quotient is at most what
    is divided over the divisor; where that is not enough, it is less than one below it.
    """
    if isinstance(dim, int):
        return dim > -slack
    quotients = [(m, c, m[0]) for m, c in dim.terms if len(m) == 1 and isinstance(m[0], Floor)]
    constant = next((c for m, c in dim.terms if not m), 0)
    falls = any(c < 0 for m, c in dim.terms if m) or constant <= -slack
    for monomial, coefficient, floor in sorted(quotients, key=lambda found: found[1] > 0):
        top, bottom = floor.numerator, floor.denominator
        if isinstance(bottom, int) and falls:
            least = top if coefficient < 0 else top - (bottom - 1)
            return _exceeds((dim - Expr(((monomial, coefficient),))) * bottom + least * coefficient, slack * bottom)
    floors = [atom for monomial, _ in dim.terms for atom in monomial if isinstance(atom, Floor)]
    return not falls and all(_exceeds(part, 1) for floor in floors for part in (floor.numerator, floor.denominator))


def _atom_value(atom: Atom, of_symbol: Callable[[str], Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return of_symbol(atom.name)
    parts = (atom.numerator, atom.denominator)
    top, bottom = (p if isinstance(p, int) else rebuild(p, of_symbol) for p in parts)
    return floor_div(top, bottom)


def _identical(a: Dim, b: Dim) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, Expr):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def _polynomial(terms: Mapping[Monomial, int]) -> Dim:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if list(kept) == [()]:
        return kept[()]
    return Expr(tuple(kept.items() if len(kept) == 1 else sorted(kept.items(), key=_place)))


def _place(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    """By degree, then by name, so that one polynomial has one order."""
    return -len(term[0]), tuple(map(str, term[0]))


def _floor_by_number(terms: tuple[tuple[Monomial, int], ...], by: int) -> Dim:
    """The quotient by a positive number, in one form for what exporters write in many.

    What is divided by exactly stands outside, and so do the multiples of `by` in the constant; a common factor is
    cancelled, `⌊(g·x + c) / (g·n)⌋ = ⌊(x + ⌊c / g⌋) / n⌋`; and a quotient of a quotient is one,
    `⌊(⌊x / m⌋ + y) / n⌋ = ⌊(x + m·y) / (m·n)⌋`.
    """
    whole = _polynomial({m: c // by for m, c in terms if c % by == 0 or m == ()})
    rest = {m: c % by if m == () else c for m, c in terms if c % by}
    common = math.gcd(by, *(c for m, c in rest.items() if m))
    if common > 1:
        rest, by = {m: c // common for m, c in rest.items()}, by // common
    numerator = _polynomial(rest)
    for monomial, coefficient in rest.items():
        match monomial:
            case (Floor(numerator=top, denominator=int(bottom)),) if coefficient == 1:
                others = numerator - Expr(((monomial, 1),))
                return whole + floor_div(top + others * bottom, bottom * by)
    if isinstance(numerator, int):
        return whole + numerator // by
    return whole + Expr((((Floor(numerator, by),), 1),))


def _exact_quotient(left: Dim, right: Dim) -> Dim | None:
    """`left / right` where it is exact, by long division of polynomials, else None."""
    divisor = _terms(right)
    if not divisor:
        return None
    if len(divisor) > 1 and _terms(left):
        # The terms stand in a graded order, so that each step leaves a smaller first term.
        first = _exact_quotient(_polynomial(dict(_terms(left)[:1])), _polynomial(dict(divisor[:1])))
        others = None if first is None else _exact_quotient(left - first * right, right)
        return None if first is None or others is None else first + others
    if len(divisor) > 1:
        return 0
    ((monomial, coefficient),) = divisor
    quotient: dict[Monomial, int] = {}
    for m, c in _terms(left):
        rest = list(m)
        for atom in monomial:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coefficient:
            return None
        quotient[tuple(rest)] = c // coefficient
    return _polynomial(quotient)


def _monomial_text(monomial: Monomial, coefficient: int) -> str:
    factors = [str(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})"
