"""What stands in the places of values, by numbers, and where nodes that compute nothing put it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape
from superopt.onnx_io.operator_kinds import MOVES, VIEWS
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import concat_axis, is_a, number, permuted
from superopt.relations import are_equal

_REPEATS = ("Expand", "Tile")

MOVING = (*MOVES, "GatherND")
"""What puts what one value holds elsewhere."""


class Places(NamedTuple):
    """What stands in the places of a value, one row for all along the axis of rows; of constants, which are the same
    for all rows, that axis is not told.
    """

    ids: Array
    rows: int | None


class UnreadError(Exception):
    """A value is none that is read."""


def aligned(several: Sequence[Places]) -> list[Places]:
    """Values of one rank, of which constants have a row for all others. Raises `UnreadError`."""
    rank = max(p.ids.ndim for p in several)
    found = [p._replace(ids=p.ids.reshape((1,) * (rank - p.ids.ndim) + p.ids.shape)) for p in several]
    at = {p.rows + rank - old.ids.ndim for p, old in zip(found, several, strict=True) if p.rows is not None}
    if len(at) != 1:
        raise UnreadError
    (rows,) = at
    for i, p in enumerate(found):
        first = p.ids.take([0], axis=rows)
        if not (p.ids == first).all():
            raise UnreadError
        found[i] = Places(first, rows)
    return found


def joined(node: ir.Node, several: Sequence[Places]) -> Places:
    """What a node joins. Raises `UnreadError`."""
    (first, *_) = found = aligned(several)
    axis = concat_axis(node) % first.ids.ndim
    return _beside_rows(np.concatenate([p.ids for p in found], axis), first.rows, axis)


def moved(program: Program, node: ir.Node, x: Places, shape: Shape) -> Places:
    """What a value of a shape holds that a node makes of another one by `MOVING`. Raises `UnreadError`."""
    ids, rows = x
    known = program.term(node.inputs[0])
    if rows is None or known is None:
        raise UnreadError
    if is_a(node, "Identity"):
        return x
    if is_a(node, "Transpose"):
        perm = permuted(node, ids.ndim)
        return Places(ids.transpose(perm), perm.index(rows))
    if is_a(node, *VIEWS):
        if rows or not shape or not are_equal(known.shape[0], shape[0]):
            raise UnreadError
        return Places(ids.reshape(1, *_numbers(shape[1:])), 0)
    if is_a(node, *_REPEATS):
        return _repeated(ids, rows, known.shape, shape)
    if is_a(node, "Gather", "GatherND"):
        return _gathered(program, node, ids, rows)
    return _sliced(program, node, x)


def _repeated(ids: Array, rows: int, before: Shape, shape: Shape) -> Places:
    """What is repeated along any axes but that of rows."""
    more = len(shape) - ids.ndim
    if not are_equal(before[rows], shape[rows + more]):
        raise UnreadError
    to = _numbers([1 if a == rows + more else d for a, d in enumerate(shape)])
    ids = ids.reshape((1,) * more + ids.shape)
    return Places(np.tile(ids, [b // a for a, b in zip(ids.shape, to, strict=True)]), rows + more)


def _gathered(program: Program, node: ir.Node, ids: Array, rows: int) -> Places:
    """What is chosen along an axis by constants."""
    at = data_of(program, node.inputs[1])
    if at is None:
        raise UnreadError
    if is_a(node, "Gather"):
        axis = number(node, "axis", 0) % ids.ndim
        to = rows + (at.ndim - 1 if axis < rows else 0)
        return _beside_rows(ids.take(at, axis), to, axis if axis == rows else None)
    if at.shape[-1:] != (1,) or number(node, "batch_dims", 0) or rows == 0:
        raise UnreadError
    return Places(ids.take(at[..., 0], 0), rows + at.ndim - 2)


def _sliced(program: Program, node: ir.Node, x: Places) -> Places:
    """Places of an axis, as a Slice has them since opset 10."""
    told = [data_of(program, v) for v in node.inputs[1:]]
    if len(told) < 2 or any(t is None or t.size != 1 for t in told):
        raise UnreadError
    numbers = [int(t.reshape(-1)[0]) for t in told if t is not None]
    axis, step = (numbers[2] if len(numbers) > 2 else 0) % x.ids.ndim, numbers[3] if len(numbers) > 3 else 1
    at = [slice(None)] * x.ids.ndim
    if step <= 0:
        raise UnreadError
    at[axis] = slice(numbers[0], numbers[1], step)
    is_whole = axis == x.rows and numbers[0] == 0 and step == 1 and numbers[1] >= np.iinfo(np.int32).max
    return x if is_whole else _beside_rows(x.ids[tuple(at)], x.rows, axis)


def _beside_rows(ids: Array, rows: int | None, axis: int | None) -> Places:
    """What was chosen or joined along an axis, which is not that of rows."""
    if axis == rows:
        raise UnreadError
    return Places(ids, rows)


def _numbers(shape: Sequence[Dim]) -> list[int]:
    """Sizes that are known."""
    sizes = [d for d in shape if isinstance(d, int)]
    if len(sizes) < len(shape):
        raise UnreadError
    return sizes
