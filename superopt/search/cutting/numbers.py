"""Constants of one element as the numbers that they are, so that rules and definitions about numbers see them.

So are constants of one value that are chosen where a mask says so: torch writes `full_like(e, −9·10¹⁵)` out.
"""

from __future__ import annotations

import math

from superopt.arithmetic import FLOAT
from superopt.dim import assuming, is_one
from superopt.errors import SuperoptError
from superopt.evaluate import evaluate
from superopt.onnx_io.program import Program
from superopt.operators.constant import filled
from superopt.operators.logic import Where
from superopt.term import Term, replace_all, running, subterms, variables

_FLOATS = ("float32", "float64")


def with_numbers(program: Program, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a step with its constants of one element as numbers; as they are where a type would be lost."""
    below = subterms(*terms)
    new = {t: filled(value, t.shape) for t in below if (value := _number(program, t)) is not None}
    chosen = dict.fromkeys(i for t in below if isinstance(t.operator, Where) for i in t.inputs[1:])
    new |= {t: filled(value, t.shape) for t in chosen if (value := _value(program, t)) is not None}
    if not new:
        return terms
    with assuming():  # what was assumed of symbolic sizes when they were read still is
        made = replace_all(terms, new)
    before, after = ([t.type.dtype for t in running(*side)] for side in (terms, made))
    return made if before == after else terms


def _number(program: Program, term: Term) -> float | None:
    """The one element of a constant that is a finite number, by the values of the model's constants."""
    if not term.constant or term.type.dtype not in _FLOATS or not all(map(is_one, term.shape)):
        return None
    leaves = variables(term)
    if not leaves or not all(is_one(d) for v in leaves for d in v.shape):
        return None
    try:
        value = float(evaluate(term, FLOAT, {v: program.data(v.label) for v in leaves}).item())
    except SuperoptError:
        return None
    return value if math.isfinite(value) else None


def _value(program: Program, constant: Term) -> float | None:
    """The finite number that all elements of a constant of the model are."""
    if not constant.constant or not constant.is_variable or constant.type.dtype not in _FLOATS:
        return None
    try:
        data = program.data(constant.label)
    except SuperoptError:
        return None
    value = float(data.flat[0]) if data.size else math.nan
    return value if math.isfinite(value) and bool((data == data.flat[0]).all()) else None
