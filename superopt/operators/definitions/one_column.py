"""One matrix times a stack of single columns: rows below each other, times the matrix transposed.

Layers that are written by hand keep features as columns, `W·x` (the cross layers of DCN, Wang et al. 2021), and a
runtime then multiplies the matrix by one vector after the other. As rows all of them are one product, and the weights
are transposed once. onnxruntime 1.32 takes half as long for 64 columns of 429.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.relations import is_one
from superopt.term import Term


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
