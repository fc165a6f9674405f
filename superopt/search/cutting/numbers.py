"""Constants of one element as the numbers that they are, so that rules and definitions about numbers see them.

So are constants of one value that are chosen where a mask says so, −∞ too: torch writes `full_like(e, −9·10¹⁵)` out.
And matrices and larger ones that add nothing are left out, as those of filters whose window is flat (kornia's dilation
and erosion); a bias, which is trained, stays whatever it is.
"""

from __future__ import annotations

import math

from superopt.arithmetic.floats import FLOAT
from superopt.demands import assuming
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate
from superopt.onnx_io.program import Program
from superopt.operators.constant import filled
from superopt.operators.differences import Sub
from superopt.operators.layout import Expand
from superopt.operators.logic import Where
from superopt.operators.pointwise import Add
from superopt.relations import is_one
from superopt.term import Term, replace_all, running, subterms, variables

_FLOATS = ("float32", "float64")


def with_numbers(program: Program, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a step with its constants of one element as numbers; as they are where a type would be lost."""
    below = subterms(*terms)
    chosen = dict.fromkeys(i for t in below if isinstance(t.operator, Where) for i in t.inputs[1:])
    with assuming():  # what was assumed of symbolic sizes when they were read still is
        new = {t: filled(value, t.shape) for t in below if math.isfinite(value := _number(program, t))}
        new |= {t: filled(value, t.shape) for t in chosen if (value := _chosen(program, t)) < math.inf}
        if not new:
            return terms
        made = replace_all(terms, new)
    before, after = ([t.type.dtype for t in running(*side)] for side in (terms, made))
    return made if before == after else terms


def without_zeros(program: Program, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a step without constants of several axes that are zeros, where these are added or taken away."""
    sums = [t for t in subterms(*terms) if isinstance(t.operator, Add | Sub)]
    new = {t: left for t in sums if (left := _without_zeros(program, t)) is not None}
    with assuming():
        return replace_all(terms, new) if new else terms


def _without_zeros(program: Program, term: Term) -> Term | None:
    """What a sum or a difference is whose other term is zeros."""
    for x, y in (term.inputs, term.inputs[::-1]) if isinstance(term.operator, Add) else (term.inputs,):
        constant = y.inputs[0] if isinstance(y.operator, Expand) else y
        if constant.type.rank > 1 and not x.constant and _value(program, constant) == 0.0:
            return x
    return None


def _number(program: Program, term: Term) -> float:
    """The one element of a constant, by the values of the model's constants; of others NaN."""
    if not term.constant or term.type.dtype not in _FLOATS or not all(map(is_one, term.shape)):
        return math.nan
    leaves = variables(term)
    if not leaves or not all(is_one(d) for v in leaves for d in v.shape):
        return math.nan
    try:
        return float(evaluate(term, FLOAT, {v: program.data(v.label) for v in leaves}).item())
    except SuperoptError:
        return math.nan


def _chosen(program: Program, term: Term) -> float:
    """What all elements of a constant of the model are, or the one that it repeats; of others NaN."""
    one = term.inputs[0] if isinstance(term.operator, Expand) else term
    value = _number(program, one)
    return _value(program, one) if math.isnan(value) else value


def _value(program: Program, constant: Term) -> float:
    """What all elements of a constant of the model are; of others NaN."""
    if not constant.constant or not constant.is_variable or constant.type.dtype not in _FLOATS:
        return math.nan
    try:
        data = program.data(constant.label)
    except SuperoptError:
        return math.nan
    is_one_value = data.size and data.flat[0] == data.flat[-1] and bool((data == data.flat[0]).all())
    return float(data.flat[0]) if is_one_value else math.nan
