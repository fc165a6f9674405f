"""Powers by a number, in steps that runtimes compute fast, each over many elements at once.

onnxruntime 1.32 has such steps for squares and cubes alone: of any other power it takes one element after the other,
6 to 8 ns each, and of each of these steps 0.1 to 0.3, a logarithm 1.4.
"""

from __future__ import annotations

import math

from superopt.operators.activations import times
from superopt.operators.constant import number_of
from superopt.operators.functions import Exp, Log, Pow
from superopt.operators.meanings import defines
from superopt.operators.powers import power
from superopt.term import Term


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
