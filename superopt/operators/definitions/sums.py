"""Sums and means along axes that others follow, as products: runtimes have their best kernels for these.

Where few numbers follow, runtimes add them up one after the other. onnxruntime 1.32 takes 248 µs for 4 rows of 16 in
each of 4,096 groups, and 38 as products of the groups with 4 identities below each other; and for 131,072 rows of 2
361 µs, and 27 where 64 of them are added up at the side of each other. An axis of one place behind 1,024 by 26 numbers
makes it 195 µs for 10, and one before 64 by 1,536 rows 206 for 15.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.constant import Band, filled
from superopt.operators.layout import Expand, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Div
from superopt.operators.reductions import Mean, Reduction, Sum
from superopt.relations import is_one
from superopt.term import Term, make

MOST_ROWS = 1 << 12
"""Of no more the identity is made, of which a row of ones, or of shares, is made."""

FEW, LARGEST, MANY = 16, 2**7, 2**6
"""So many numbers follow at most, so many are in a group with them, and so many groups there are at least."""

ABREAST, COLUMNS = 2**6, 4
"""So many rows are added up at the side of each other, of no more columns."""


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


@defines("mean", "of groups by a product", rounds=True)
@defines("sum", "of groups by a product", rounds=True)
def of_groups(op: Sum | Mean, x: Term) -> Term | None:
    """Of few short rows in each of many groups: the identity, or a share of it, for each of the rows below each other.
    What is infinite spreads over its group.
    """
    axes, shape = op.axes, x.shape
    if len(axes) != 1 or axes[0] == 0 or x.constant:
        return None
    axis = axes[0]
    groups, count, after = product(shape[:axis]), shape[axis], product(shape[axis + 1 :])
    if not isinstance(count, int) or not isinstance(after, int) or count < 2 or not 1 < after <= FEW:
        return None
    if count * after > LARGEST or (isinstance(groups, int) and groups < MANY):
        return None
    each = reshaped(Expand((1, 2), (count, after, after))(make(Band(after), ())), (count * after, after))
    weights = each if isinstance(op, Sum) else Div()(each, filled(float(count), each.shape))
    return reshaped(MatMul()(reshaped(x, (groups, count * after)), weights), (*shape[:axis], *shape[axis + 1 :]))


@defines("mean", "at the side of each other")
@defines("sum", "at the side of each other")
def abreast(op: Sum | Mean, x: Term) -> Term | None:
    """Of many short rows: of every so many-th first, all of these at once."""
    if op.axes != (0,):
        return None
    (first, *others), count = x.shape, product(x.shape[1:])
    if not isinstance(first, int) or not isinstance(count, int) or count > COLUMNS:
        return None
    if first % ABREAST or first // ABREAST < MANY or x.constant:
        return None
    several = op(reshaped(x, (first // ABREAST, ABREAST * count)))
    return reshaped(op(reshaped(several, (ABREAST, count))), tuple(others))


@defines("largest", "without axes of one place")
@defines("mean", "without axes of one place")
@defines("smallest", "without axes of one place")
@defines("sum", "without axes of one place")
def without_ones(op: Reduction, x: Term) -> Term | None:
    """Runtimes take axes of one place for rows of one number, or for groups of one row."""
    counted = [a for a, d in enumerate(x.shape) if not is_one(d)]
    axes = tuple(i for i, a in enumerate(counted) if a in op.axes)
    if x.constant or not axes or len(counted) == x.type.rank:
        return None
    return reshaped(op.of(axes)(reshaped(x, tuple(x.shape[a] for a in counted))), op.shape(x.shape))
