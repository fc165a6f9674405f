"""Convolutions of each channel by a column times a row, as blurs and boxes are, read as one axis after the other.

`Σ_ij x[c, p·s + i, q·t + j] · u[c,i] · v[c,j]` sums along columns first, and then along rows: i + j products for i · j.
Networks that measure how alike two images are, smooth a map of anomalies or guide a filter by an image have such
kernels. On an AMD EPYC with AVX-512 onnxruntime 1.32 takes 2.7 ms for 3 channels of 256 by 256 by 11 by 11 and 0.45 so,
9.2 ms for one channel by 33 by 33 and 0.66, 97 µs for 64 of 56 by 56 by 5 by 5 and 80; of 3 by 3 it takes longer so.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.conv import Conv
from superopt.term import Term, make, replace_all, subterms

ROUNDED = 2.0**-22
"""By how much of its largest element a kernel of 32 bits may differ from such a product, which rounds by a quarter."""

Apart: TypeAlias = "tuple[Term, Term]"
"""The columns of a kernel, and its rows."""


def may_be_product(op_type: str, k: Term) -> bool:
    """Whether an input of a node is a kernel that is known before the model runs, of each channel by itself, so large
    that along one axis and then the other less than half is multiplied.
    """
    plain = op_type == "Conv" and k.constant and k.type.rank == 4 and k.type.dtype == "float32" and k.shape[1] == 1
    if not plain or not all(isinstance(d, int) for d in k.shape):
        return False
    rows, columns = k.shape[2:]
    return bool(rows * columns > 2 * (rows + columns))


def factors(k: Array) -> tuple[Array, Array] | None:
    """Of kernels `o 1 i j` columns `o 1 i 1` and rows `o 1 1 j` whose products they are but for rounding, or None."""
    exact = k.astype(np.float64)
    if not np.isfinite(exact).all():
        return None
    o, _, _, width = k.shape
    each, at = np.arange(o), np.abs(exact).reshape(o, -1).argmax(1)
    largest = exact[each, 0, at // width, at % width].reshape(o, 1, 1, 1)
    column = exact[each, 0, :, at % width].reshape(o, 1, -1, 1).astype(k.dtype)
    row = exact[each, 0, at // width].reshape(o, 1, 1, -1) / np.where(largest == 0, 1, largest)
    row = row.astype(k.dtype)
    differs = np.abs(column.astype(np.float64) * row - exact)
    return (column, row) if (differs <= ROUNDED * np.abs(largest)).all() else None


def one_axis_after_the_other(terms: tuple[Term, ...], k: Term, parts: Apart) -> tuple[Term, ...]:
    """Terms with each convolution by a kernel as two, by its columns and by its rows."""
    found = [(t, t.operator) for t in subterms(*terms) if isinstance(t.operator, Conv) and t.inputs[1] is k]
    return replace_all(terms, {t: _in_two(conv, t.inputs[0], *parts) for t, conv in found})


def _in_two(conv: Conv, x: Term, column: Term, row: Term) -> Term:
    (down, across), (top, left, bottom, right), (gap, step) = conv.strides, conv.pads, conv.dilations
    y = make(Conv((down, 1), (top, 0, bottom, 0), (gap, 1), conv.group), (x, column))
    return make(Conv((1, across), (0, left, 0, right), (1, step), row.shape[0]), (y, row))
