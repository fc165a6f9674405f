"""B-splines as scripts write them: by Cox and de Boor's recursion (1972), over a grid of knots, of each number of rows.

Each value is told as what it is of the numbers: a multiple of them with something added, which of the cells between
knots they are in, or splines over knots. However a product or a comparison is spelled, that is told by its constants.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.otherwise.bases.layout import DEEPEST
from superopt.onnx_io.otherwise.bases.recursion import WAYS, Affine, Beyond, Never, Read, Spline
from superopt.onnx_io.otherwise.bases.views import same_elements
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import is_a

FLOATS = ("float32", "float64")
"""The types that hold what splines are."""


class Splines:
    """What values of a program are of the numbers that they are computed of."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[ir.Value, Read | None] = {}
        self._deep = 0

    def spline(self, value: ir.Value) -> Spline | None:
        """The splines that a value is, of degree 1 at least: those have no jumps, and so no ends of cells."""
        found = self.of(value)
        return found if isinstance(found, Spline) and found.degree else None

    def of(self, value: ir.Value | None) -> Read | None:
        """What a value is; None of what is something else."""
        if value is None:
            return None
        if value not in self._known:
            self._deep += 1
            self._known[value] = self._found(value) if self._deep <= DEEPEST else None
            self._deep -= 1
        return self._known[value]

    def _found(self, value: ir.Value) -> Read | None:
        data = data_of(self._program, value)
        if data is not None:
            return _row_by_row(data)
        known, node = self._program.term(value), value.producer()
        if known is None or not known.type.rank:
            return None
        if known.shape[-1] == 1 and known.type.dtype in FLOATS:
            return Affine(same_elements(self._program, value), np.ones((1, 1)), np.zeros((1, 1)))
        if node is None:
            return None
        if is_a(node, "Slice"):
            return self._sliced(node)
        if is_a(node, "Expand", "Identity"):
            return self.of(node.inputs[0])
        if is_a(node, "Cast"):
            return self._cast(node, known.type.dtype)
        way = WAYS.get(node.op_type) if is_a(node, *WAYS) else None
        read = [self.of(v) for v in node.inputs] if way is not None else []
        if is_a(node, "And") and any(isinstance(one, Never) for one in read):
            return Never()
        told = [one for one in read if one is not None]
        return way(told) if way is not None and len(told) == len(read) else None

    def _cast(self, node: ir.Node, dtype: str) -> Read | None:
        """What is true or not, in any type, and numbers that stay what they are."""
        inner = self.of(node.inputs[0])
        is_truth = isinstance(inner, Beyond | Never) or (isinstance(inner, Spline) and not inner.degree)
        return inner if is_truth or dtype in FLOATS else None

    def _sliced(self, node: ir.Node) -> Read | None:
        """Some splines in a row."""
        inner = self.of(node.inputs[0])
        bounds = [data_of(self._program, v) for v in node.inputs[1:]]
        if not isinstance(inner, Spline) or any(b is None or b.size != 1 for b in bounds) or len(bounds) < 3:
            return None
        start, end, axis, *step = (int(b.reshape(-1)[0]) for b in bounds if b is not None)
        rank = self._program.values[node.outputs[0].name or ""].type.rank
        count = inner.knots.shape[1] - inner.degree - 1
        places = range(count)[slice(start, end)]
        if axis not in (-1, rank - 1) or step not in ([], [1]) or not places:
            return None
        return Spline(inner.of, inner.knots[:, places[0] : places[-1] + inner.degree + 2], inner.degree)


def _row_by_row(data: Array) -> Array | None:
    """Constants by numbers of a row and places; None of those that are others in each row."""
    if any(d != 1 for d in data.shape[:-2]):
        return None
    return np.asarray(data.reshape(data.shape[-2:] if data.ndim > 1 else (1, data.size)), np.float64)
