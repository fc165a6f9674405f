"""Softmax over two: of each the sigmoid of how much it is more than the other.

Detectors of faces and masks of one thing have two classes for each box or place. onnxruntime 1.32 takes 143 µs for
16,800 boxes, and 22 so; for two maps of 256 by 256 1,193, and 54.
"""

from __future__ import annotations

from superopt.dim import product
from superopt.operators.constant import matrix
from superopt.operators.differences import Sub
from superopt.operators.functions import Sigmoid
from superopt.operators.layout import Concat, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.meanings import defines
from superopt.operators.normalize import Softmax
from superopt.operators.picks import Slice
from superopt.relations import are_equal
from superopt.term import Term

MANY = 64
"""Of fewer twos a softmax is as fast."""


@defines("softmax", "over two", rounds=True)
def over_two(op: Softmax, x: Term) -> Term | None:
    """`sigmoid(x − x')`, of x' with both exchanged. What is little beside the other rounds more."""
    axis, shape = op.axis, x.shape
    rows = product((*shape[:axis], *shape[axis + 1 :]))
    if x.constant or not are_equal(shape[axis], 2) or (isinstance(rows, int) and rows < MANY):
        return None
    if axis == x.type.rank - 1:
        return reshaped(Sigmoid()(MatMul()(reshaped(x, (rows, 2)), matrix([[1, -1], [-1, 1]]))), shape)
    first, second = Slice(axis, 0, 1)(x), Slice(axis, 1, 2)(x)
    return Sigmoid()(Sub()(x, Concat(axis)(second, first)))
