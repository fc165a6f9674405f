"""Stacks of products of few numbers each, computed as what they are sums of: one product of all elements, and a sum.

Runtimes multiply one pair of matrices of a stack after the other, and each such call takes 90 ns in onnxruntime 1.32,
whatever it multiplies: 512 pairs of a row and a column of 32 take 62 µs, and as a product and a sum 8; 4,096 of three
numbers 330 and 11. Scores of two towers, users beside items and edges beside nodes are such, written as `einsum` or
`bmm`; points in space that are turned each by a matrix of its own, as bodies and cameras have them, are small ones.
"""

from __future__ import annotations

from superopt.dim import Dim, Shape
from superopt.operators.layout import Expand, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.pointwise import Mul
from superopt.operators.reductions import Sum
from superopt.relations import is_one
from superopt.term import Term

MOST = 4
"""Matrices of more rows or columns are better multiplied as such."""


@defines("matmul", "of rows and columns")
def of_rows_and_columns(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,1,k] · y[…,k,1] = Σ_k x[…,k] y[…,k]`, of stacks that are both computed."""
    if not _are_stacks(x, y) or not (is_one(x.shape[-2]) and is_one(y.shape[-1])):
        return None
    rows = [reshaped(x, (*x.shape[:-2], x.shape[-1])), reshaped(y, y.shape[:-1])]
    return reshaped(Sum((len(rows[0].shape) - 1,))(Mul()(*rows)), (*x.shape[:-1], 1))


@defines("matmul", "of small matrices and columns")
def of_small_matrices(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,m,k] · y[…,k,1] = Σ_k x[…,m,k] y[…,k]`, of few rows and columns."""
    if not _are_stacks(x, y) or not is_one(y.shape[-1]) or not all(map(_are_few, x.shape[-2:])) or is_one(x.shape[-2]):
        return None
    last = x.type.rank - 1
    repeated = _repeated(reshaped(y, y.shape[:-1]), x.shape, last - 1)
    return reshaped(Sum((last,))(Mul()(x, repeated)), (*x.shape[:-1], 1))


@defines("matmul", "of rows and small matrices")
def of_rows_and_small_matrices(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,1,k] · y[…,k,n] = Σ_k x[…,k] y[…,k,n]`, of few rows and columns."""
    if not _are_stacks(x, y) or not is_one(x.shape[-2]) or not all(map(_are_few, y.shape[-2:])) or is_one(y.shape[-1]):
        return None
    last = y.type.rank - 1
    repeated = _repeated(reshaped(x, (*x.shape[:-2], x.shape[-1])), y.shape, last)
    return reshaped(Sum((last - 1,))(Mul()(repeated, y)), (*x.shape[:-1], y.shape[-1]))


@defines("matmul", "of few columns and rows")
def of_few_columns_and_rows(op: MatMul, x: Term, y: Term) -> Term | None:
    """`x[…,m,1] · y[…,1,n] = x[…,m] y[…,n]`, of few of them."""
    m, n = x.shape[-2], y.shape[-1]
    if not _are_stacks(x, y) or not is_one(x.shape[-1]) or not (_are_few(m) and _are_few(n)):
        return None
    to, last = (*x.shape[:-2], m, n), x.type.rank - 1
    return Mul()(
        _repeated(reshaped(x, x.shape[:-1]), to, last), _repeated(reshaped(y, (*y.shape[:-2], n)), to, last - 1)
    )


def _are_stacks(x: Term, y: Term) -> bool:
    """Whether several matrices are multiplied by as many, and neither is a weight."""
    return x.type.rank > 2 and not (x.constant or y.constant) and not all(map(is_one, x.shape[:-2]))


def _are_few(size: Dim) -> bool:
    return isinstance(size, int) and size <= MOST


def _repeated(term: Term, to: Shape, along: int) -> Term:
    """What is the same at all places along an axis."""
    return Expand(tuple(a for a in range(len(to)) if a != along), to)(term)
