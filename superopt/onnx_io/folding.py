"""Constant terms as data: which are, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.arithmetic.floats import FLOAT
from superopt.dim import product
from superopt.evaluate import evaluate
from superopt.operators import Declared, NotUnderstood
from superopt.operators.constant import Band, Scalar
from superopt.operators.layout import Expand
from superopt.operators.nodes import concrete
from superopt.term import Term, subterms

_BLOCK = 256
FILL_LIMIT = 4096
"""A constant that repeats another becomes data up to this many elements; a larger one stays an Expand."""


LARGEST_SQUARE = 2**13
"""No square matrix of more rows is made to fold it into others: of so many it takes a gigabyte while it is made."""


def is_folded(term: Term) -> bool:
    """Whether a constant term is written as data: not a number repeated over many elements, or over unknown sizes."""
    if not term.constant or term.is_variable:
        return False
    if any(not isinstance(d, int) for t in subterms(term) for d in t.shape):
        return False
    size = product(term.shape)
    return not (isinstance(term.operator, Expand) and isinstance(size, int) and size > FILL_LIMIT)


def folded(term: Term, dtype: str, given: Mapping[Term, Array]) -> Array:
    """A constant term of given data, computed in 64-bit floats; what is only moved keeps its own type.

    Raises `NotUnderstood` where it does not fit into the type that it is to have, and where it takes too much to make.
    """
    terms = subterms(term)
    if any(isinstance(t.operator, Band) and concrete(t.shape, "band")[0] > LARGEST_SQUARE for t in terms):
        raise NotUnderstood(f"weights are made of a square matrix of more than {LARGEST_SQUARE} rows")
    if not all(t.is_variable or (isinstance(t.operator, Declared) and t.operator.moves) for t in terms):
        given = {v: array if array.dtype.kind in "iu" else array.astype(np.float64) for v, array in given.items()}
    with np.errstate(over="ignore"):
        made = _laid_out(evaluate(term, FLOAT, given), dtype)
    if made.dtype.kind == "f" and all(map(_is_finite, given.values())) and not _fits(made, terms):
        raise NotUnderstood("weights are made of others that do not fit into their type")
    return made


def _laid_out(array: Array, dtype: str) -> Array:
    """A copy in row-major order. A large transposed matrix goes by blocks that fit the cache: five times faster."""
    if array.ndim != 2 or array.size < _BLOCK**2 or array.flags.c_contiguous:
        return np.array(array, dtype=dtype, order="C")
    rows = np.empty(array.shape, dtype)
    for i in range(0, array.shape[0], _BLOCK):
        for j in range(0, array.shape[1], _BLOCK):
            rows[i : i + _BLOCK, j : j + _BLOCK] = array[i : i + _BLOCK, j : j + _BLOCK]
    return rows


def _fits(made: Array, terms: Sequence[Term]) -> bool:
    """Whether what is made of some terms is finite, or is one of their numbers, as masks are −∞."""
    infinite = made[~np.isfinite(made)]
    numbers = [t.operator.value for t in terms if isinstance(t.operator, Scalar)] if infinite.size else []
    return bool(np.isin(infinite, numbers).all())


def _is_finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
