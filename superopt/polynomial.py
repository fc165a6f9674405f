"""Integer polynomials as terms: monomials, which are sorted tuples of atoms, each with its coefficient.

Terms stand in one order, by degree and then by the text of their atoms, so that equal polynomials are equal tuples. Of
atoms nothing else is asked than to be hashable and to have a text each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias, TypeVar

Atom = TypeVar("Atom", bound=Hashable)
Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = tuple[tuple[Monomial[Atom], int], ...]


def ordered(total: Mapping[Monomial[Atom], int]) -> Terms[Atom]:
    """The terms of these coefficients; those of 0 are none."""
    kept = {m: c for m, c in total.items() if c}
    return tuple(kept.items() if len(kept) == 1 else sorted(kept.items(), key=_place))


def summed(left: Terms[Atom], right: Iterable[tuple[Monomial[Atom], int]], sign: int = 1) -> Terms[Atom]:
    """The sum of two polynomials, or with a sign of -1 their difference."""
    total = dict(left)
    for monomial, coefficient in right:
        total[monomial] = total.get(monomial, 0) + sign * coefficient
    return ordered(total)


def multiplied(left: Terms[Atom], right: Terms[Atom]) -> Terms[Atom]:
    """The product of two polynomials."""
    total: dict[Monomial[Atom], int] = {}
    for m1, c1 in left:
        for m2, c2 in right:
            monomial = tuple(sorted(m1 + m2, key=str))
            total[monomial] = total.get(monomial, 0) + c1 * c2
    return ordered(total)


def exact_quotient(left: Terms[Atom], right: Terms[Atom]) -> Terms[Atom] | None:
    """`left / right` where it is exact, by long division, else None; so for a division by 0."""
    if not left or not right:
        return () if right else None
    # Terms stand in a graded order, so that each step leaves a smaller first term.
    first = _quotient_by_monomial(left[:1] if len(right) > 1 else left, right[0])
    if first is None or len(right) == 1:
        return first
    others = exact_quotient(summed(left, multiplied(first, right), -1), right)
    return None if others is None else summed(first, others)


def degree(terms: Terms[Atom]) -> int:
    """How many factors the largest term has, which is the first."""
    return len(terms[0][0]) if terms else 0


def term_text(monomial: Monomial[Atom], coefficient: int) -> str:
    """A term in prefix notation."""
    factors = [str(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})"


def _place(term: tuple[Monomial[Atom], int]) -> tuple[int, tuple[str, ...]]:
    return -len(term[0]), tuple(map(str, term[0]))


def _quotient_by_monomial(left: Terms[Atom], by: tuple[Monomial[Atom], int]) -> Terms[Atom] | None:
    divisor, number = by
    quotient: dict[Monomial[Atom], int] = {}
    for monomial, coefficient in left:
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % number:
            return None
        quotient[tuple(rest)] = coefficient // number
    return ordered(quotient)
