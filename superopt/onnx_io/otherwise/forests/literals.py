"""Values of which each number is a product of chances and of what is left of these, `d` and `1 − d`: which, place by
place, however nodes move, repeat and join them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape, product
from superopt.errors import SuperoptError
from superopt.onnx_io.otherwise.forests.places import MOVING, Places, UnreadError, aligned, joined, moved
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a, listed, number

MOST = 2**14
"""Of values of more places nothing is told."""

DEEPEST = 128
"""What takes more steps one after the other is not read: each is read within the one behind it."""

ZERO, ONE = 0, 1
"""The numbers of products that are no number of a row."""


class Literal(NamedTuple):
    """A number of each row, in a column of a value, or one less it."""

    of: str
    column: int
    is_left: bool = False


class Products:
    """The products in the places of a program's values; what is `unread` is noted, which others need not read again."""

    def __init__(self, program: Program, unread: set[str]) -> None:
        self._program, self._unread, self._deep = program, unread, 0
        self.sources: dict[str, ir.Value | None] = {}
        """What chances are logistic functions of, by the names of the values whose columns they are."""
        self._known: dict[str, Places] = {}
        self._terms: list[frozenset[Literal] | None] = [None, frozenset()]
        self._ids: dict[frozenset[Literal] | None, int] = {None: ZERO, frozenset(): ONE}

    @property
    def count(self) -> int:
        """How many values have been read that nodes compute."""
        return sum(name not in self._program.constants for name in self._known)

    def literals(self, product: int) -> frozenset[Literal] | None:
        """What is multiplied; None of nothing at all."""
        return self._terms[product]

    def of(self, value: ir.Value | None) -> Places:
        """The products in the places of a value. Raises `UnreadError`."""
        name = "" if value is None else value.name or ""
        if value is None or name not in self._program.values or name in self._unread or self._deep == DEEPEST:
            raise UnreadError
        if name not in self._known:
            self._unread.add(name)
            self._deep += 1
            try:
                found = self._read(value)
            except (SuperoptError, ValueError, IndexError) as error:
                raise UnreadError from error
            finally:
                self._deep -= 1
            if found.ids.size > MOST:
                raise UnreadError
            self._known[name] = found
            self._unread.remove(name)
        return self._known[name]

    def _read(self, value: ir.Value) -> Places:
        name, node = value.name or "", value.producer()
        shape = self._program.values[name].shape
        if name in self._program.constants:
            size = product(shape)
            is_small = isinstance(size, int) and size <= MOST  # of others no data are asked for
            return _constant(data_of(self._program, value) if is_small else None)
        if node is None:
            raise UnreadError
        if is_a(node, "Sigmoid"):
            return self._columns(name, node, shape)
        if (fill := _filled(self._program, node)) is not None:
            return _of_one_row(fill, shape)
        if is_a(node, "Mul", "Add", "Sub"):
            return self._combined(node)
        if is_a(node, "Concat"):
            return joined(node, [self.of(v) for v in node.inputs])
        if is_a(node, "ReduceProd"):
            return self._multiplied(node, self.of(node.inputs[0]))
        if not is_a(node, *MOVING):
            raise UnreadError
        return moved(self._program, node, self.of(node.inputs[0]), shape)

    def _columns(self, name: str, node: ir.Node, shape: Shape) -> Places:
        """Chances, each in a column of its own."""
        if len(shape) != 2 or not isinstance(shape[1], int) or shape[1] > MOST:
            raise UnreadError
        self.sources[name] = node.inputs[0]
        each = [self._id(frozenset({Literal(name, i)})) for i in range(shape[1])]
        return Places(np.array([each], np.int64), 0)

    def _combined(self, node: ir.Node) -> Places:
        """Sums, products and differences, element by element."""
        one, other = aligned([self.of(v) for v in node.inputs])
        a, b = np.broadcast_arrays(one.ids, other.ids)
        how = {"Mul": self._product, "Add": self._sum, "Sub": self._difference}[node.op_type]
        pairs = [how(i, j) for i, j in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
        return Places(np.array(pairs, np.int64).reshape(a.shape), one.rows)

    def _multiplied(self, node: ir.Node, x: Places) -> Places:
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
        return Places(whole, x.rows - (axis < x.rows))

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


def _constant(data: Array | None) -> Places:
    """Zeros and ones."""
    if data is None or data.size > MOST or not np.isin(data, (0, 1)).all():
        raise UnreadError
    return Places(data.astype(np.int64), None)


def _filled(program: Program, node: ir.Node) -> Array | None:
    """The constant that a node repeats over a shape that is computed."""
    if is_a(node, "ConstantOfShape"):
        told = node.attributes.get("value")
        return np.zeros(1) if told is None else np.asarray(told.as_tensor().numpy())
    return data_of(program, node.inputs[0]) if is_a(node, "Expand") else None


def _of_one_row(fill: Array, shape: Shape) -> Places:
    """A constant that is repeated over as many rows as there are."""
    rows = [a for a, d in enumerate(shape) if not isinstance(d, int)]
    if len(rows) != 1 or product([d for d in shape if isinstance(d, int)] or [1]) > MOST:
        raise UnreadError
    one = np.broadcast_to(fill, [d if isinstance(d, int) else 1 for d in shape])
    return Places(_constant(one).ids, rows[0])
