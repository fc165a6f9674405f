"""Products of single columns: what runtimes multiply one vector after the other, written as rows.

Layers that are written by hand keep features as columns, `W·x` (the cross layers of DCN, Wang et al. 2021), and a
runtime then multiplies the matrix by one vector after the other. As rows all of them are one product, and the weights
are transposed once. onnxruntime 1.32 takes half as long for 64 columns of 429. Layers of one result, as scores and
densities are, are a column of weights: as a row times all that they weigh, 1,024 by 1,024 take 51 µs for 189.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Mul
from superopt.operators.repeats import repeats_matrices
from superopt.relations import is_one
from superopt.term import Term

FEWEST = 16
"""Of fewer rows a layer of one result is as fast as it is."""


@defines("matmul", "of single columns")
def of_single_columns(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[m,k] · y[…,k,1] = reshape(y[…,k] · xᵀ)`, of a constant matrix that is repeated for each column."""
    repeat, rank = x.operator, x.type.rank
    if not x.constant or y.constant or not isinstance(repeat, Expand) or repeat.axes != (rank - 2, rank - 1):
        return None
    stack, (inner, columns) = y.shape[:-2], y.shape[-2:]
    if not is_one(columns) or all(map(is_one, stack)):
        return None
    rows = reshaped(y, (product(stack), inner))
    return reshaped(op(rows, Transpose((1, 0))(*x.inputs)), (*x.shape[:-1], 1))


@defines("matmul", "with one column")
def with_one_column(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,k] · y[k,1] = reshape(yᵀ · x[…,k]ᵀ)`, of many rows and constant weights that are the same for all."""
    weights = y.inputs[0] if repeats_matrices(y) else y
    *before, inner = x.shape
    rows = product(tuple(before))
    if x.constant or not y.constant or weights.type.rank != 2 or not is_one(y.shape[-1]) or is_one(inner):
        return None
    if isinstance(rows, int) and rows < FEWEST:
        return None
    across = Transpose((1, 0))
    return reshaped(op(across(weights), across(reshaped(x, (rows, inner)))), (*before, 1))


@defines("matmul", "of one column and one row")
def of_one_column_and_one_row(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,m,1] · y[…,1,n] = x[…,m] y[…,n]`, each number times each. State space models have stacks of these (Gu & Dao
    2023): for 32 steps of 128 channels 4,096 columns of 16, of which onnxruntime 1.32 computes one after the other. A
    model of that size takes 0.98 ms, and 0.43 without.
    """
    if not is_one(x.shape[-1]):
        return None
    shape = (*x.shape[:-1], y.shape[-1])
    axes = tuple(range(len(shape)))
    rows, columns = reshaped(x, shape[:-1]), reshaped(y, (*shape[:-2], shape[-1]))
    return Mul()(Expand(axes[:-1], shape)(rows), Expand((*axes[:-2], axes[-1]), shape)(columns))
