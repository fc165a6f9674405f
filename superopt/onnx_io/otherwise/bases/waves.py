"""Cosines and sines of whole multiples of an angle, by products of those of the angle itself, and whole powers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.bases.layout import TYPE
from superopt.onnx_io.otherwise.bases.views import same_numbers
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.said import is_a
from superopt.substitution import TYPICAL, elements

MOST, FEWEST = 8, 3
"""Of the largest multiple, as a cosine's error grows with its square where it turns; and so many are worth it."""

TURNED, COMPUTED, RAISED = 100, 32, 16
"""Waves, Chebyshev's polynomials and powers of so many numbers are worth it, times the largest multiple or exponent: of
fewer the nodes take longer to start than the functions. Waves are turned to all below, and each that is one saves time:
of 64 numbers five cosines and sines take onnxruntime 1.32 12 µs and 19 by turns, of 4,096 205 and 78.
"""


class Multiples:
    """Whole multiples of numbers, some for each."""

    def __init__(self, of: ir.Value, numbers: list[int]) -> None:
        self.of, self.numbers = of, numbers


def multiples(program: Program, value: ir.Value | None) -> Multiples | None:
    """The numbers of which a value is whole multiples, the same for each; None of others."""
    node = None if value is None else value.producer()
    if not is_a(node, "Mul") or value is None:
        return None
    shape = shape_of(program, value)
    for by, of in (node.inputs, node.inputs[::-1]):
        found = None if of is None or shape is None else whole_numbers(program, by, shape[-1])
        if of is not None and found is not None:
            return Multiples(same_numbers(program, of), found)
    return None


def whole_numbers(program: Program, value: ir.Value | None, many: Dim) -> list[int] | None:
    """So many small whole numbers in a row, that a constant is; None of others."""
    data = data_of(program, value)
    if data is None or not data.ndim or data.size != data.shape[-1] or data.size != many:
        return None
    found = [float(d) for d in data.reshape(-1)]
    return [int(d) for d in found] if all(d.is_integer() and 0 <= d <= MOST for d in found) else None


def are_many(rows: Shape, each: int, numbers: list[int]) -> bool:
    """Whether rows have so many numbers for each step to the largest of some multiples or exponents."""
    return elements(rows, TYPICAL) >= each * max(numbers)


def powers(made: NewNodes, x: ir.Value, most: int) -> list[ir.Value]:
    """Powers of numbers, from the first on, each the product of two of half as much: for any but squares and cubes
    runtimes take their time, and for these more than for products.
    """
    found = [x]
    while (k := len(found) + 1) <= most:
        found.append(made.node("Mul", [found[k // 2 - 1], found[(k + 1) // 2 - 1]]))
    return found


def polynomials(made: NewNodes, x: ir.Value, most: int, is_bounded: bool) -> list[ir.Value]:
    """Chebyshev's polynomials of numbers, from the first on: `Tₖ(cos a) = cos k a`, `Tₖ = 2x Tₖ₋₁ − Tₖ₋₂`.

    What is beyond 1 is no cosine, and onnxruntime 1.32 gives hyperbolic tangents of up to 1 + 2·10⁻⁷. Where numbers may
    be so, `T₂ = 2x² − 1` is written as `1 − (√(2 − 2x²))²`, which is not a number then, and so are all that follow.
    """
    one, two = (made.held(np.array(n, TYPE)) for n in (1, 2))
    twice = made.node("Add", [x, x])
    squared = made.node("Mul", [twice, x])
    if is_bounded:
        found = [x, made.node("Sub", [squared, one])]
    else:
        root = made.node("Sqrt", [made.node("Sub", [two, squared])])
        found = [x, made.node("Sub", [one, made.node("Mul", [root, root])])]
    while len(found) < most:
        found.append(made.node("Sub", [made.node("Mul", [twice, found[-1]]), found[-2]]))
    return found


def is_bounded(program: Program, value: ir.Value) -> bool:
    """Whether numbers were clipped to what cosines may be."""
    node = value.producer()
    ends = [data_of(program, v) for v in node.inputs[1:]] if is_a(node, "Clip") else []
    return len(ends) == 2 and all(end is not None and bool((np.abs(end) <= 1).all()) for end in ends)


class Turns:
    """Cosines and sines of multiples of angles, each of the one before turned by the angle once more, so that errors
    do not grow but add up.
    """

    def __init__(self, made: NewNodes, angle: ir.Value) -> None:
        self._made = made
        self.cosines, self.sines = [made.node("Cos", [angle])], [made.node("Sin", [angle])]

    def of(self, multiple: int, op_type: str) -> ir.Value:
        """The cosine or sine of a multiple of the angle."""
        while len(self.cosines) < multiple:
            self._turn()
        return (self.cosines if op_type == "Cos" else self.sines)[multiple - 1]

    def _turn(self) -> None:
        (c, *_), (s, *_), last, risen = self.cosines, self.sines, self.cosines[-1], self.sines[-1]
        self.cosines.append(self._made.node("Sub", [self._times(last, c), self._times(risen, s)]))
        self.sines.append(self._made.node("Add", [self._times(risen, c), self._times(last, s)]))

    def _times(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self._made.node("Mul", [one, other])
