"""How functions of numbers are laid out: in which shape, and in parts."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim, Shape, product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of, sizes_of
from superopt.relations import are_equal

TYPE = "float32"
"""What is computed in other types runtimes lack operators for."""

DEEPEST = 80
"""What takes more steps one after the other is not read: each is read within the one behind it."""


class NotLaidError(ValueError):
    """A value is none that can be laid out."""


class Part(NamedTuple):
    """Some of the functions, which are to be multiplied by a number, in a shape that broadcasts to that of all; or a
    number that so many functions are.
    """

    value: ir.Value | None
    shape: Shape
    many: Dim
    scale: float = 1.0


class Layout:
    """Shapes with the axis of functions before that of numbers (-2), or behind it (-1), and numbers in such."""

    def __init__(self, program: Program, made: NewNodes, axis: int) -> None:
        self.program, self.made, self.axis = program, made, axis
        self._viewed: dict[tuple[ir.Value, Shape], ir.Value] = {}

    def shape(self, value: ir.Value) -> Shape:
        """The shape that a value has in the model. Raises `NotLaidError` where it has no such axes."""
        shape = shape_of(self.program, value)
        if shape is None or len(shape) < 2:
            raise NotLaidError
        return shape

    def laid(self, rows: Shape, many: Dim) -> Shape:
        """The shape of so many functions of rows of numbers."""
        return (*rows[:-1], many, rows[-1]) if self.axis == -2 else (*rows, many)

    def numbers(self, value: ir.Value, rows: Shape) -> ir.Value:
        """The elements of a value as numbers, each for one function."""
        return self.viewed(value, self.shape(value), self.laid(rows, 1))

    def viewed(self, value: ir.Value, of: Shape, shape: Shape) -> ir.Value:
        """The elements of a value of a shape in another. Raises `NotLaidError` where its sizes are not told."""
        if (value, shape) not in self._viewed:
            sizes = sizes_of(of, shape)
            if sizes is None:
                raise NotLaidError
            self._viewed[value, shape] = self.made.reshaped(value, sizes)
        return self._viewed[value, shape]

    def are_of(self, value: ir.Value, rows: Shape) -> bool:
        """Whether a value has one number for all functions, in the type that is computed with."""
        known = self.program.term(value)
        is_float = known is not None and known.type.dtype == TYPE
        return known is not None and is_float and are_equal(product(known.shape), product(rows))
