"""Values that are masked by a number or by each other, as products and a sum: runtimes choose one element after the
other.

Graph attention (Veličković et al. 2018) masks the scores of all pairs by the graph, `where(a > 0, e, −9·10¹⁵)`, in each
head anew. As `e·m + where(a > 0, 0, −9·10¹⁵)`, of the mask m as zeros and ones, what chooses is the same for all heads
and is computed once; what is chosen is multiplied by 1, and 0 is added, so both give the same numbers. It is not taken
apart any further: as `(1 − m)·n` rules would bring the number together with e, which is lost in it. onnxruntime 1.32
chooses among 256 by 256 scores in 46 µs where the mask is the same everywhere, in 220 where it cannot be foretold; a
product and a sum take 15. −∞ is added to what is finite as it is. Of two that are computed, `where(c, x, y)`, either is
multiplied by a mask of its own.

But 0 times an infinity is no number, and some choose to be rid of one. So it is said only of what is made of products
by steps that are finite wherever these are: what a product makes of an infinity is not to be had back by choosing. What
is no number before that, as a row of zeros divided by its length, shows in the comparison, and then it is left.
"""

from __future__ import annotations

import math

from superopt.operators.activations import Elu, LeakyRelu
from superopt.operators.casts import Cast
from superopt.operators.constant import Scalar, filled, number_of
from superopt.operators.conv import Conv
from superopt.operators.differences import Abs, Neg, Sub
from superopt.operators.extrema import Max, Min
from superopt.operators.facts import known_facts
from superopt.operators.functions import Log, Sigmoid, Softplus, Tanh
from superopt.operators.layout import Concat, Expand, Reshape, Transpose
from superopt.operators.logic import Not, Where
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm, Softmax
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Div, Mul, Relu
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import REAL, Term

PRODUCTS = (MatMul, Conv, Gemm)
"""What values are made of."""

STEPS = (
    Add,
    Sub,
    Mul,
    Neg,
    Max,
    Min,
    Relu,
    LeakyRelu,
    Elu,
    Abs,
    Sigmoid,
    Softplus,
    Tanh,
    Softmax,
    Transpose,
    Reshape,
    Expand,
    Concat,
    Slice,
)
"""What keeps finite numbers finite, short of an overflow."""

FARTHEST = 16
"""Made of products in more steps than these nothing is looked at."""


class Masking(Fewer):
    """Finds values that are chosen where a mask says so."""

    name = "masked by a product"
    spreads = True
    heads = (Where,)

    def may_be(self, term: Term) -> bool:
        """Whether a mask chooses what is computed."""
        return any(number_of(i) is None and bool(i.inputs) for i in term.inputs[1:])

    def made(self, term: Term) -> Term | None:
        """What is chosen times the mask, or as it is, and the number, or the other, times what is left of it."""
        c, x, y = term.inputs
        value = number_of(y)
        if value is None and number_of(x) is None:
            return _of_two(c, x, y) if is_of_products(x) and is_of_products(y) else None
        mask, chosen, number = (c, x, value) if value is not None else (Not()(c), y, number_of(x))
        if number is None or not number < math.inf or not is_of_products(chosen):
            return None
        nothing = filled(0.0, term.shape)
        left = Where()(c, *((nothing, y) if value is not None else (x, nothing)))
        return Add()(Mul()(chosen, as_numbers(mask, chosen)) if math.isfinite(number) else chosen, left)


def _of_two(c: Term, x: Term, y: Term) -> Term:
    """One of two, each times a mask: as `1 − c` rules would bring both together, and one is lost in the other."""
    return Add()(Mul()(x, as_numbers(c, x)), Mul()(y, as_numbers(opposite(c), y)))


def opposite(c: Term) -> Term:
    """The opposite of a mask, repeated after that where it is."""
    repeat = c.operator
    return Expand(repeat.axes, repeat.to)(Not()(*c.inputs)) if isinstance(repeat, Expand) else Not()(c)


def as_numbers(c: Term, x: Term) -> Term:
    """A mask as numbers of the type of what is masked, repeated after that where it is."""
    cast, repeat = Cast("float32" if x.type.dtype == REAL else x.type.dtype), c.operator
    return Expand(repeat.axes, repeat.to)(cast(*c.inputs)) if isinstance(repeat, Expand) else cast(c)


def is_of_products(x: Term) -> bool:
    """Whether all that a value is made of, but for numbers, are products, by steps that keep what is finite so."""
    seen, stack, found = set[Term](), [x], False
    while stack:
        term = stack.pop()
        found = found or isinstance(term.operator, PRODUCTS)
        if term in seen or isinstance(term.operator, PRODUCTS) or _is_number(term):
            continue
        is_step = isinstance(term.operator, (*STEPS, Where)) or _is_divided(term) or _is_log(term)
        if not is_step or len(seen) > FARTHEST:
            return False
        seen.add(term)
        stack += _values(term)
    return found


def _values(term: Term) -> tuple[Term, ...]:
    """What has to be finite for a step to give something finite: not what chooses, nor the number that divides."""
    if isinstance(term.operator, Where):
        return term.inputs[1:]
    return term.inputs[:1] if isinstance(term.operator, Div) else term.inputs


def _is_divided(term: Term) -> bool:
    """Whether it is divided by a number, as scores are by the root of their width."""
    return isinstance(term.operator, Div) and bool(number_of(term.inputs[1]))


def _is_log(term: Term) -> bool:
    """Whether it is the logarithm of a number above 0 and what is not below it."""
    of = term.inputs[0] if isinstance(term.operator, Log) else None
    if of is None or not isinstance(of.operator, Add):
        return False
    sides = ((number_of(one), other) for one, other in (of.inputs, of.inputs[::-1]))
    return any(n is not None and n > 0.0 and "nonnegative" in known_facts(other) for n, other in sides)


def _is_number(term: Term) -> bool:
    return isinstance(term.operator, Scalar) and math.isfinite(term.operator.value)
