"""Functions of exponentials in the steps that runtimes compute fast, each over many elements at once.

Further definitions, in forms in which no exponential overflows into what is no number.
"""

from __future__ import annotations

from superopt.operators.activations import Elu, Mish, plus, times
from superopt.operators.constant import filled
from superopt.operators.differences import Abs, Neg
from superopt.operators.extrema import Max, Min
from superopt.operators.functions import Exp, Log, Softplus
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Add, Div, Mul, Relu
from superopt.term import Term


@defines("softplus", "in steps", rounds=True)
def softplus_in_steps(op: Softplus, x: Term) -> Term:
    """`max(x, 0) + ln(1 + e^−|x|)`, as the operator is computed itself, but that it has its own logarithm of 1 and a
    little: far below 0 these steps are exact to the last bit of 1, and no longer to their own.

    onnxruntime 1.32 takes one element after the other: 1.1 ms for 900 rows of 128, and the steps 0.2.
    """
    return Add()(Relu()(x), Log()(plus(Exp()(Neg()(Abs()(x))), 1.0)))


@defines("elu", "by a maximum")
def elu_by_a_maximum(op: Elu, x: Term) -> Term | None:
    """`max(x, alpha (e^min(x, 0) − 1))` for alpha up to 1: the exponential is above its tangent at 0, which is x."""
    if not 0.0 < op.alpha <= 1.0:
        return None
    return Max()(x, times(plus(Exp()(Min()(x, filled(0.0, x.shape))), -1.0), op.alpha))


@defines("mish", "by an exponential")
def mish_by_an_exponential(op: Mish, x: Term) -> Term:
    """`x / (1 + 2 / (e (e + 2)))` with `e = eˣ`, since `tanh(ln y) = (y² − 1) / (y² + 1)`.

    Where e overflows that is x, and where it vanishes 0. Each step is exact to its own last bits.
    """
    e = Exp()(x)
    two = filled(2.0, x.shape)
    return Div()(x, plus(Div()(two, Mul()(e, plus(e, 2.0))), 1.0))
