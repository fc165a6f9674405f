"""Sums and means along axes that others follow, as products: runtimes have their best kernels for these."""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.constant import Band
from superopt.operators.layout import Expand, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.reductions import Mean, Sum
from superopt.relations import is_one
from superopt.term import Term, make

MOST_ROWS = 1 << 12
"""Of no more the identity is made, of which a row of ones, or of shares, is made."""


@defines("mean", "by a product")
@defines("sum", "by a product")
def by_a_product(op: Sum | Mean, x: Term) -> Term | None:
    """A row of ones, or of shares, times what stands below it: both are linear, so what they make of the identity is
    that row. A norm over the channels of an image has two of these, and onnxruntime's takes ten times as long.
    """
    axes, shape = op.axes, x.shape
    first, end = (axes[0], axes[-1] + 1) if axes else (0, 0)
    count = product(shape[first:end])
    after = product(shape[end:])
    if len(axes) != end - first or not isinstance(count, int) or not 1 < count <= MOST_ROWS or is_one(after):
        return None
    before = product(shape[:first])
    row = reshaped(type(op)((0,))(make(Band(count), ())), (1, count))
    if is_one(before):
        return reshaped(MatMul()(row, reshaped(x, (count, after))), (*shape[:first], *shape[end:]))
    rows = Expand((1, 2), (before, 1, count))(row)
    return reshaped(MatMul()(rows, reshaped(x, (before, count, after))), (*shape[:first], *shape[end:]))
