"""Powers by a number, as products and roots."""

from __future__ import annotations

from superopt.operators.constant import filled
from superopt.operators.pointwise import Div, Mul, Sqrt
from superopt.term import Term

LARGEST = 64
"""Up to this power there are so few products that they pay."""


def power(x: Term, exponent: float) -> Term | None:
    """A power that is a whole number of quarters, by products and roots; None of others, of 0 and of large ones."""
    quarters = abs(exponent) * 4
    if not quarters.is_integer() or not 1 <= quarters <= 4 * LARGEST:
        return None
    whole, rest = divmod(int(quarters), 4)
    root = Sqrt()(x)
    parts = [root] if rest == 2 else [Sqrt()(root)] if rest == 1 else [root, Sqrt()(root)] if rest == 3 else []
    if whole:
        parts.insert(0, _product(x, whole))
    total, *others = parts
    for other in others:
        total = Mul()(total, other)
    return total if exponent > 0 else Div()(filled(1.0, x.shape), total)


def _product(x: Term, count: int) -> Term:
    """So many times the same, by squares."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    square = Mul()(half, half)
    return Mul()(square, x) if count % 2 else square
