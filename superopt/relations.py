"""Relations between sizes, decided where they can be: which are equal, which divide which."""

from __future__ import annotations

import math
from collections.abc import Sequence

from superopt.dim import Condition, Dim, Expr, Relation, Shape, Truth, at_most, equal, floor_div, terms_of
from superopt.polynomial import exact_quotient


def are_equal(left: Dim, right: Dim) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    return left is right or equal(left, right) is True


def equal_shapes(left: Shape, right: Shape) -> bool:
    """Whether two shapes are of as many axes, whose sizes are equal for all values of their symbols."""
    return len(left) == len(right) and all(map(are_equal, left, right))


def divides(divisor: Dim, dividend: Dim) -> Truth:
    """Whether `dividend` is a multiple of `divisor`, or the condition that it is. Only 0 is a multiple of 0."""
    if isinstance(divisor, int) and divisor == 0:
        return equal(dividend, 0)
    if isinstance(divisor, int) and all(c % divisor == 0 for _, c in terms_of(dividend)):
        return True
    if isinstance(divisor, int) and isinstance(dividend, int):
        return False
    if isinstance(divisor, Expr) and exact_quotient(terms_of(dividend), terms_of(divisor)) is not None:
        return True
    common = math.gcd(*(c for side in (divisor, dividend) for _, c in terms_of(side)))
    return Condition("divides", floor_div(divisor, common), floor_div(dividend, common))


def is_one(dim: Dim) -> bool:
    """Whether a size is the number 1."""
    return isinstance(dim, int) and dim == 1


def common(dims: Sequence[Dim]) -> Dim | None:
    """The size along an axis of what broadcasts; None where these differ."""
    several = [d for d in dims if not is_one(d)]
    return None if any(not are_equal(d, several[0]) for d in several) else several[0] if several else 1


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
