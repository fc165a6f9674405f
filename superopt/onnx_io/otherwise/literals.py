"""Values of which each number is a product of chances and of what is left of these, `d` and `1 − d`: which, place by
place, however nodes move, repeat and join them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Dim, Shape, product
from superopt.errors import SuperoptError
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import listed, number
from superopt.relations import are_equal

MOST = 2**14
"""Of values of more places nothing is told."""

ZERO, ONE = 0, 1
"""The numbers of products that are no number of a row."""


class Literal(NamedTuple):
    """A number of each row, in a column of a value, or one less it."""

    of: str
    column: int
    is_left: bool = False


class Cells(NamedTuple):
    """The products that stand in the places of a value, one row for all along the axis of rows; of constants, which are
    the same for all rows, that axis is not told.
    """

    ids: Array
    rows: int | None


class UnreadError(Exception):
    """A value is none of such products."""


class Products:
    """The products in the places of a program's values."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.sources: dict[str, ir.Value] = {}
        """The values that chances are columns of, by name."""
        self._known: dict[str, Cells | None] = {}
        self._terms: list[frozenset[Literal] | None] = [None, frozenset()]
        self._ids: dict[frozenset[Literal] | None, int] = {None: ZERO, frozenset(): ONE}

    @property
    def count(self) -> int:
        """How many values have been read that nodes compute."""
        return sum(c is not None and name not in self._program.constants for name, c in self._known.items())

    def literals(self, product: int) -> frozenset[Literal] | None:
        """What is multiplied; None of nothing at all."""
        return self._terms[product]

    def of(self, value: ir.Value | None) -> Cells:
        """The products in the places of a value. Raises `UnreadError`."""
        if value is None or (value.name or "") not in self._program.values:
            raise UnreadError
        name = value.name or ""
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._read(value)
        found = self._known[name]
        if found is None or found.ids.size > MOST:
            raise UnreadError
        return found

    def _read(self, value: ir.Value) -> Cells | None:
        shape, node = self._program.values[value.name or ""].shape, value.producer()
        if (value.name or "") in self._program.constants:
            size = product(shape)
            if not isinstance(size, int) or size > MOST:  # of which no data are asked for
                return None
            return _constant(data_of(self._program, value))
        if node is None:
            return None
        if is_a(node, "Sigmoid") and len(shape) == 2 and isinstance(shape[1], int) and shape[1] <= MOST:
            self.sources[value.name or ""] = value
            each = [self._id(frozenset({Literal(value.name or "", i)})) for i in range(shape[1])]
            return Cells(np.array([each], np.int64), 0)
        if (fill := _filled(self._program, node)) is not None:
            return _of_one_row(fill, shape)
        if is_a(node, "Mul", "Add", "Sub"):
            return self._combined(node)
        x = self.of(node.inputs[0]) if node.op_type != "Concat" else Cells(np.zeros(0, np.int64), 0)
        if is_a(node, "ReduceProd"):
            return self._multiplied(node, x)
        try:
            return moved(self._program, self, node, value, x, shape)
        except (SuperoptError, ValueError, IndexError) as error:
            raise UnreadError from error

    def _combined(self, node: ir.Node) -> Cells:
        """Sums, products and differences, element by element."""
        one, other = aligned([self.of(v) for v in node.inputs])
        a, b = np.broadcast_arrays(one.ids, other.ids)
        how = {"Mul": self._product, "Add": self._sum, "Sub": self._difference}[node.op_type]
        pairs = [how(i, j) for i, j in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
        return Cells(np.array(pairs, np.int64).reshape(a.shape), one.rows)

    def _multiplied(self, node: ir.Node, x: Cells) -> Cells:
        """Products along an axis."""
        told = listed(node, "axes")
        axis = told[0] % x.ids.ndim if told and len(told) == 1 else x.rows
        if axis == x.rows or axis is None or number(node, "keepdims", 1) or x.rows is None:
            raise UnreadError
        whole = np.full(x.ids.take(0, axis).shape, ONE)
        for i in range(x.ids.shape[axis]):
            part = x.ids.take(i, axis)
            each = zip(whole.ravel().tolist(), part.ravel().tolist(), strict=True)
            whole = np.array([self._product(a, b) for a, b in each], np.int64).reshape(part.shape)
        return Cells(whole, x.rows - (axis < x.rows))

    def _id(self, literals: frozenset[Literal]) -> int:
        if literals not in self._ids:
            self._ids[literals] = len(self._terms)
            self._terms.append(literals)
        return self._ids[literals]

    def _product(self, a: int, b: int) -> int:
        one, other = self._terms[a], self._terms[b]
        if one is None or other is None:
            return ZERO
        if {(x.of, x.column) for x in one} & {(x.of, x.column) for x in other}:
            raise UnreadError
        return self._id(one | other)

    def _sum(self, a: int, b: int) -> int:
        if ZERO not in (a, b):
            raise UnreadError
        return a if b == ZERO else b

    def _difference(self, a: int, b: int) -> int:
        literals = self._terms[b]
        if b == ZERO:
            return a
        if a != ONE or literals is None or len(literals) > 1:
            raise UnreadError
        return self._id(frozenset(x._replace(is_left=not x.is_left) for x in literals)) if literals else ZERO


def _constant(data: Array | None) -> Cells:
    """Zeros and ones."""
    if data is None or data.size > MOST or not np.isin(data, (0, 1)).all():
        raise UnreadError
    return Cells(data.astype(np.int64), None)


def _filled(program: Program, node: ir.Node) -> Array | None:
    """The constant that a node repeats over a shape that is computed."""
    if is_a(node, "ConstantOfShape"):
        told = node.attributes.get("value")
        return np.zeros(1) if told is None else np.asarray(told.as_tensor().numpy())
    return data_of(program, node.inputs[0]) if is_a(node, "Expand") else None


def _of_one_row(fill: Array, shape: Shape) -> Cells:
    """A constant that is repeated over as many rows as there are."""
    rows = [a for a, d in enumerate(shape) if not isinstance(d, int)]
    if len(rows) != 1 or product([d for d in shape if isinstance(d, int)] or [1]) > MOST:
        raise UnreadError
    one = np.broadcast_to(fill, [d if isinstance(d, int) else 1 for d in shape])
    return Cells(_constant(one).ids, rows[0])


def aligned(several: list[Cells]) -> list[Cells]:
    """Values of one rank, of which constants have a row for all others."""
    rank = max(c.ids.ndim for c in several)
    found = [c._replace(ids=c.ids.reshape((1,) * (rank - c.ids.ndim) + c.ids.shape)) for c in several]
    at = {c.rows + rank - old.ids.ndim for c, old in zip(found, several, strict=True) if c.rows is not None}
    if len(at) != 1:
        raise UnreadError
    (rows,) = at
    for i, c in enumerate(found):
        first = c.ids.take([0], axis=rows)
        if not (c.ids == first).all():
            raise UnreadError
        found[i] = Cells(first, rows)
    return found


def moved(program: Program, products: Products, node: ir.Node, value: ir.Value, x: Cells, shape: Shape) -> Cells:
    """What nodes that compute nothing make of products."""
    if is_a(node, "Concat"):
        several = aligned([products.of(v) for v in node.inputs])
        axis = number(node, "axis", 0) % several[0].ids.ndim
        return _beside_rows(np.concatenate([c.ids for c in several], axis), several[0].rows, axis)
    ids, rows = x
    if rows is None:
        raise UnreadError
    if is_a(node, "Identity"):
        return x
    if is_a(node, "Transpose"):
        perm = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else list(range(ids.ndim))[::-1]
        return Cells(ids.transpose(perm), perm.index(rows))
    inner = program.values[node.inputs[0].name or ""].shape if node.inputs[0] is not None else ()
    if is_a(node, "Reshape", "Flatten", "Squeeze", "Unsqueeze"):
        if rows or not shape or not are_equal(inner[0], shape[0]):
            raise UnreadError
        return Cells(ids.reshape(1, *_numbers(shape[1:])), 0)
    if is_a(node, "Expand", "Tile"):
        more = len(shape) - ids.ndim
        to = [1 if a == rows + more else d for a, d in enumerate(shape)]
        if not are_equal(inner[rows], shape[rows + more]):
            raise UnreadError
        ids = ids.reshape((1,) * more + ids.shape)
        times = [b // a for a, b in zip(ids.shape, _numbers(to), strict=True)]
        return Cells(np.tile(ids, times), rows + more)
    if is_a(node, "Gather"):
        at, axis = data_of(program, node.inputs[1]), number(node, "axis", 0) % ids.ndim
        if at is None:
            raise UnreadError
        return _beside_rows(
            ids.take(at, axis), rows + (at.ndim - 1 if axis < rows else 0), axis if axis == rows else -1
        )
    if is_a(node, "GatherND"):
        at = data_of(program, node.inputs[1])
        if at is None or at.shape[-1:] != (1,) or number(node, "batch_dims", 0) or rows == 0:
            raise UnreadError
        return Cells(ids.take(at[..., 0], 0), rows + at.ndim - 2)
    if is_a(node, "Slice"):
        return _sliced(program, node, x)
    raise UnreadError


def _sliced(program: Program, node: ir.Node, x: Cells) -> Cells:
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
    whole = axis == x.rows and numbers[0] == 0 and step == 1 and numbers[1] >= np.iinfo(np.int32).max
    return x if whole else _beside_rows(x.ids[tuple(at)], x.rows, axis)


def _beside_rows(ids: Array, rows: int | None, axis: int) -> Cells:
    """Products of which places along an axis were chosen or joined, which is not that of rows."""
    if axis == rows:
        raise UnreadError
    return Cells(ids, rows)


def _numbers(shape: Sequence[Dim]) -> list[int]:
    """Sizes that are known."""
    sizes = [d for d in shape if isinstance(d, int)]
    if len(sizes) < len(shape):
        raise UnreadError
    return sizes
