"""Functions of numbers that can be computed in fewer steps than they are."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape
from superopt.onnx_io.otherwise.bases.cardinal import cardinal, write
from superopt.onnx_io.otherwise.bases.layout import TYPE, Layout, Part
from superopt.onnx_io.otherwise.bases.splines import Splines
from superopt.onnx_io.otherwise.bases.views import same_numbers
from superopt.onnx_io.otherwise.bases.waves import (
    COMPUTED,
    FEWEST,
    RAISED,
    TURNED,
    Turns,
    are_many,
    is_bounded,
    multiples,
    polynomials,
    powers,
    whole_numbers,
)
from superopt.onnx_io.said import is_a


class Shorter:
    """Splines, waves and powers of numbers of a program, in a layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._program, self._made = layout, layout.program, layout.made
        self._splines, self._turns = Splines(layout.program), dict[ir.Value, Turns]()

    def parts(self, value: ir.Value, node: ir.Node) -> list[Part]:
        """The functions of a value that a node gives; none where they are no such."""
        shape = self._layout.shape(value)
        return self._spline(value, shape) or self._wave(node, shape) or self._power(node, shape)

    def _spline(self, value: ir.Value, shape: Shape) -> list[Part]:
        """Splines of which all are one, moved."""
        spline = None if is_a(value.producer(), "Slice") else self._splines.spline(value)
        found = None if spline is None else cardinal(spline)
        if spline is None or found is None or not self._layout.are_of(spline.of, shape[:-1]):
            return []
        x, distance = self._layout.numbers(spline.of, shape[:-1]), found.distance
        steps = float(distance[0, 0]) if len(distance) == 1 else self._row(distance)
        made, scale = write(self._made, x, self._row(found.middles), steps, found.degree)
        return [Part(made, self._layout.laid(shape[:-1], shape[-1]), shape[-1], scale)]

    def _row(self, data: Array) -> ir.Value:
        """A constant by rows and places."""
        laid = np.swapaxes(data, 0, 1) if self._layout.axis == -2 else data
        return self._made.held(np.ascontiguousarray(laid.astype(TYPE)))

    def _wave(self, node: ir.Node, shape: Shape) -> list[Part]:
        """Waves of whole multiples of angles: of those of given cosines Chebyshev's polynomials."""
        of = multiples(self._program, node.inputs[0]) if is_a(node, "Cos", "Sin") else None
        if of is None:
            return []
        inner, laid = of.of.producer(), self._layout.laid(shape[:-1], 1)
        if is_a(node, "Cos") and is_a(inner, "Acos") and inner.inputs[0] is not None:
            x = same_numbers(self._program, inner.inputs[0])
            if not self._layout.are_of(x, shape[:-1]) or max(of.numbers) < 2:
                return []
            if not are_many(shape[:-1], COMPUTED, of.numbers):
                return []
            bounded = is_bounded(self._program, x)
            found = polynomials(self._made, self._layout.numbers(x, shape[:-1]), max(of.numbers), bounded)
            return [Part(found[k - 1], laid, 1) if k else Part(None, (), 1) for k in of.numbers]
        if len(of.numbers) < FEWEST or 0 in of.numbers or not self._layout.are_of(of.of, shape[:-1]):
            return []
        if not are_many(shape[:-1], TURNED * max(of.numbers) // len(of.numbers), of.numbers):
            return []
        return [Part(self._turned(of.of, shape[:-1]).of(k, node.op_type), laid, 1) for k in of.numbers]

    def _power(self, node: ir.Node, shape: Shape) -> list[Part]:
        """Whole powers of numbers."""
        if not is_a(node, "Pow") or node.inputs[0] is None:
            return []
        x = same_numbers(self._program, node.inputs[0])
        exponents = whole_numbers(self._program, node.inputs[1], shape[-1])
        if not exponents or max(exponents) == 0 or not self._layout.are_of(x, shape[:-1]):
            return []
        if not are_many(shape[:-1], RAISED, exponents):
            return []
        laid = self._layout.laid(shape[:-1], 1)
        found = powers(self._made, self._layout.numbers(x, shape[:-1]), max(exponents))
        return [Part(found[k - 1], laid, 1) if k else Part(None, (), 1) for k in exponents]

    def _turned(self, of: ir.Value, rows: Shape) -> Turns:
        if of not in self._turns:
            self._turns[of] = Turns(self._made, self._layout.numbers(of, rows))
        return self._turns[of]
