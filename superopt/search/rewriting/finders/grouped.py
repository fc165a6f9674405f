"""Products with matrices of which each is repeated for several of the other factor's, as one product of more rows.

Queries of several heads share keys and values (grouped-query attention, Ainslie et al. 2023), and exporters repeat
these for each: in a step that decodes one token nothing takes as long. `x[g·r + i] · y[g]` for all i below r is one
product of the rows of r heads, which lie one after the other, with a matrix that is there once. With 1,025 keys, heads
of 64 and four of them for each key, onnxruntime 1.32 takes 632 µs for attention as torch exports it, and 182 so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from superopt.dim import Dim, product
from superopt.operators.layout import Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Div, Mul
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make


class Once(NamedTuple):
    """Matrices below each other, of which each stands for so many in a row."""

    matrices: Term
    times: Dim


class Grouping(Fewer):
    """Finds products with repeated matrices."""

    name = "products with what is repeated as one of more rows"
    heads = (MatMul,)

    def made(self, term: Term) -> Term | None:
        """A product with each matrix, of the rows of all that are multiplied by it."""
        x, y = term.inputs
        once = _once(y)
        if once is None or x.constant or y.constant:
            return None
        count, inner, columns = once.matrices.shape
        rows = reshaped(x, (count, once.times * x.shape[-2], inner))
        return reshaped(MatMul()(rows, once.matrices), (*x.shape[:-1], columns))


def _once(term: Term) -> Once | None:
    """What a stack repeats, each matrix as often as another beside itself; None where it does not, or is deeper."""
    op = term.operator
    if isinstance(op, Expand):
        return _of_repeat(term, op)
    if isinstance(op, Reshape) and _same_matrices(term, term.inputs[0]):
        return _once(term.inputs[0])
    if isinstance(op, Transpose):
        rank = len(op.perm)
        turned = (*range(rank - 2), rank - 1, rank - 2)
        return _each(_once(term.inputs[0]), Transpose((0, 2, 1))) if op.perm == turned and rank > 2 else None
    if isinstance(op, Mul | Div | Add) and is_number(term.inputs[1]):
        (number,) = term.inputs[1].inputs
        return _each(_once(term.inputs[0]), lambda once: make(op, (once, Expand((), once.shape)(number))))
    return None


def _of_repeat(term: Term, repeat: Expand) -> Once | None:
    """Of a repeat along the last of the axes before matrices, and of no other."""
    rank = term.type.rank
    if rank < 3 or repeat.axes[-2:] != (rank - 2, rank - 1) or rank - 3 in repeat.axes or is_one(term.shape[-3]):
        return None
    if not all(a in repeat.axes or is_one(term.shape[a]) for a in range(rank - 3)):
        return None
    return Once(reshaped(term.inputs[0], (product(term.shape[:-3]), *term.shape[-2:])), term.shape[-3])


def _same_matrices(one: Term, other: Term) -> bool:
    """Whether both are stacks of the same matrices, in the same order."""
    return min(one.type.rank, other.type.rank) > 2 and all(map(are_equal, one.shape[-2:], other.shape[-2:]))


def is_number(term: Term) -> bool:
    """Whether a number is repeated everywhere."""
    return isinstance(term.operator, Expand) and term.operator.axes == ()


def _each(once: Once | None, make_of: Callable[[Term], Term]) -> Once | None:
    """What becomes of each matrix."""
    return None if once is None else Once(make_of(once.matrices), once.times)
