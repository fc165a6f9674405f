"""Fourier transforms of real numbers in other forms than they are declared in. It declares no operator.

`irfft` as torch exports it is a DFT that is `inverse` and `onesided`: of n numbers n/2 + 1 waves are given, the others
are these with another sign. So all count twice but the first, and the middle one where n is even:
`x[i] = Σ_k c_k (Re y[k] cos(2π ik/n) − Im y[k] sin(2π ik/n)) / n`.
"""

from __future__ import annotations

from copy import copy
from functools import reduce

from superopt.dim import Dim
from superopt.operators.constant import filled
from superopt.operators.declare import reads
from superopt.operators.fourier import LARGEST, Dft, Stft
from superopt.operators.layout import Concat, Expand, Transpose, positive_axis, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.nodes import NotUnderstood, Source, concrete
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Mul
from superopt.operators.waves import Waves
from superopt.relations import are_equal
from superopt.term import Term, make


@reads("DFT")
def dft(node: Source) -> Term:
    """Of an inverse of one side real numbers, by a product; all others are as they are declared."""
    if not (node.attributes.get("inverse", 0) and node.attributes.get("onesided", 0)):
        return Dft.from_onnx(node)
    x, _, axis_given = (*node.inputs, None, None)[:3]
    if x is None:
        raise NotUnderstood("an input is missing")
    asked = node.sizes(2) if axis_given is not None else None
    default = node.attributes.get("axis", 1) if node.opset < 20 else -2
    if axis_given is not None and asked is None:
        raise NotUnderstood("the axis is computed while the model runs")
    (axis,) = concrete(asked or (int(default),), "the axis of a transform")
    return _of_waves(x, positive_axis(axis, x.type.rank), _length(node, x.shape[positive_axis(axis, x.type.rank)]))


def _length(node: Source, waves: Dim) -> int:
    """How many numbers there are, of so many waves: one less than twice as many, or two."""
    given = node.sizes(1) if len(node.inputs) > 1 and node.inputs[1] is not None else (2 * (waves - 1),)
    if given is None:
        raise NotUnderstood("how many numbers there are is computed while the model runs")
    (n,) = concrete(given[:1], "an inverse transform")
    if n < 1 or not are_equal(n // 2 + 1, waves):
        raise NotUnderstood(f"{n} numbers of {waves} waves")
    if n * (n + 2) > LARGEST:
        raise NotUnderstood(f"more than {LARGEST} numbers of waves")
    return n


def _of_waves(x: Term, axis: int, n: int) -> Term:
    """The numbers in place of the waves along an axis; their parts, which stand last, are one."""
    rank = x.type.rank
    if rank < 2 or not are_equal(x.shape[-1], 2) or axis >= rank - 1:
        raise NotUnderstood(f"waves of {x.shape} along axis {axis}: two parts stand last")
    order = (*(a for a in range(rank - 1) if a != axis), axis)
    moved = _transposed(x, (*order, rank - 1))
    parts = reshaped(moved, (*moved.shape[:-2], 2 * (n // 2 + 1)))
    numbers = _multiplied(parts, _inverse(n))
    back = tuple(order.index(a) for a in range(rank - 1))
    return reshaped(_transposed(numbers, back), (*x.shape[:axis], n, *x.shape[axis + 1 : -1], 1))


def _inverse(n: int) -> Term:
    """What the parts of the waves of n numbers are multiplied by."""
    waves = Transpose((1, 0))(make(Waves(n, n // 2 + 1), ()))
    (rows, _), middle = concrete(waves.shape, "waves"), 0 if n % 2 else 2
    ends = [(0, 2, 1), (2, rows - middle, 2), (rows - middle, rows, 1)] if n > 1 else [(0, 2, 1)]
    parts = [(Slice(0, a, b)(waves), times / n) for a, b, times in ends if a < b]
    return reduce(Concat(0), [Mul()(part, filled(times, part.shape)) for part, times in parts])


def _multiplied(rows: Term, matrix: Term) -> Term:
    if rows.type.rank == 1:
        return reshaped(MatMul()(reshaped(rows, (1, *rows.shape)), matrix), matrix.shape[1:])
    rank = rows.type.rank
    to = (*rows.shape[:-2], *matrix.shape)
    return MatMul()(rows, matrix if rank == 2 else Expand((rank - 2, rank - 1), to)(matrix))


def _transposed(x: Term, perm: tuple[int, ...]) -> Term:
    return x if perm == tuple(range(len(perm))) else Transpose(perm)(x)


@reads("STFT")
def stft(node: Source) -> Term:
    """Of signals without an axis for their parts too, as torch's older exporter writes them and onnxruntime reads."""
    x = node.inputs[0] if node.inputs else None
    if x is None or x.type.rank != 2:
        return Stft.from_onnx(node)
    shaped = copy(node)
    shaped.inputs = (reshaped(x, (*x.shape, 1)), *node.inputs[1:])
    return Stft.from_onnx(shaped)
