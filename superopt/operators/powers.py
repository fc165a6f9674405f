"""Powers by a number, in steps that runtimes compute fast, each over many elements at once.

onnxruntime 1.32 has such steps for squares and cubes alone: of any other power it takes one element after the other,
6 to 8 ns each, and of each of these steps 0.1 to 0.3, a logarithm 1.4.
"""

from __future__ import annotations

import math

from superopt.operators.activations import times
from superopt.operators.constant import filled, number_of
from superopt.operators.functions import Exp, Log, Pow
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Div, Mul, Sqrt
from superopt.term import Term

LARGEST = 64
"""Up to this power there are so few products that they pay."""


@defines("pow", "by products and roots")
def by_products_and_roots(op: Pow, x: Term, y: Term) -> Term | None:
    """`x⁵ = (x²)² · x`, `x^2.25 = x² · √√x`, `x^−0.5 = 1 / √x`: of a power that is a whole number of quarters."""
    exponent = number_of(y)
    return None if exponent is None else power(x, exponent)


@defines("pow", "by an exponential", rounds=True)
def by_an_exponential(op: Pow, x: Term, y: Term) -> Term | None:
    """`x^p = exp(p · ln x)`, for p that is not whole: then of x below 0 neither is a number, and of 0 both are 0, or
    infinite where p is negative. What the logarithm rounds counts p times.
    """
    exponent = number_of(y)
    if exponent is None or not math.isfinite(exponent) or exponent.is_integer():
        return None
    return Exp()(times(Log()(x), exponent))


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
