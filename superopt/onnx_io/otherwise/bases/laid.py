"""Functions of each number of rows, laid out otherwise: those that are alike of all numbers beside each other.

Scripts give numbers one more axis at the end, along which functions of each stand, as few as a grid has knots. What is
computed of numbers and of such a grid takes runtimes long there, as each number is met by few others: onnxruntime 1.32
takes 190 µs to subtract 8 knots from each of 12,544 numbers, and 12 with the axis of functions before that of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.operator_kinds import ELEMENTWISE
from superopt.onnx_io.otherwise.bases.layout import DEEPEST, TYPE, Layout, NotLaidError, Part
from superopt.onnx_io.otherwise.bases.shorter import Shorter
from superopt.onnx_io.otherwise.bases.views import same_elements, uniform
from superopt.onnx_io.otherwise.places.assignments import Assignments
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.said import concat_axis, is_a
from superopt.relations import are_equal, common, equal_shapes, is_one

POINTWISE = ELEMENTWISE | {"Acos", "Asin", "Atan", "Cast", "Clip", "Cosh", "GreaterOrEqual", "Greater", "IsInf", "Sinh"}
"""What computes each element of its own."""


class Laid:
    """Values of a program with the axis of functions before that of numbers (-2), or behind it (-1)."""

    def __init__(self, program: Program, made: NewNodes, axis: int) -> None:
        self._layout = Layout(program, made, axis)
        self._program, self._made, self._axis = program, made, axis
        self._known: dict[ir.Value, list[Part]] = {}
        self._shorter, self._assignments = Shorter(self._layout), Assignments(program)
        self._deep = self.shortened = 0
        """How often functions are computed in fewer steps."""

    def functions(self, value: ir.Value) -> list[Part]:
        """All functions of a value, in parts in a row. Raises `NotLaidError`."""
        shape, parts = self._layout.shape(value), self.parts(value)
        if not are_equal(sum(part.many for part in parts if isinstance(part.many, int)), shape[-1]):
            raise NotLaidError
        wanted = [self._layout.laid(shape[:-1], part.many) for part in parts]
        if any(p.value is not None and not equal_shapes(p.shape, w) for p, w in zip(parts, wanted, strict=True)):
            raise NotLaidError
        return parts

    def parts(self, value: ir.Value) -> list[Part]:
        """Functions in parts, which may be one for all. Raises `NotLaidError`."""
        if value not in self._known:
            if self._deep == DEEPEST:
                raise NotLaidError
            self._deep += 1
            self._known[value] = self._parts(value)
            self._deep -= 1
        return self._known[value]

    def _parts(self, value: ir.Value) -> list[Part]:
        if self._program.is_constant(value):
            return [self._constant(value)]
        shape, node = self._layout.shape(value), value.producer()
        if is_one(shape[-1]):
            numbers = self._layout.numbers(same_elements(self._program, value), shape[:-1])
            return [Part(numbers, self._layout.laid(shape[:-1], 1), 1)]
        if node is None:
            raise NotLaidError
        shorter = self._shorter.parts(value, node)
        self.shortened += bool(shorter)
        return shorter or self._computed(node, shape)

    def _constant(self, value: ir.Value) -> Part:
        """A constant, of one row where all are the same, or one number."""
        data = data_of(self._program, value)
        if data is None or not data.size:
            raise NotLaidError
        first = data.reshape(-1)[0]
        if (data == first).all():
            return Part(self._made.held(np.array(first, data.dtype)), (), 1)
        data = data.reshape((1,) * (2 - data.ndim) + data.shape)
        data = data[..., :1, :] if (data == data[..., :1, :]).all() else data
        laid = np.ascontiguousarray(np.swapaxes(data, -1, -2) if self._axis == -2 else data)
        return Part(self._made.held(laid), laid.shape, data.shape[-1])

    def _computed(self, node: ir.Node, shape: Shape) -> list[Part]:
        """What a node computes, by the same node."""
        inputs = [v for v in node.inputs if v is not None]
        if is_a(node, "Expand", "Identity"):
            return self.parts(inputs[0])
        if is_a(node, "Concat") and concat_axis(node) in (-1, len(shape) - 1):
            return [part for v in inputs for part in self._joined(v)]
        if is_a(node, "Slice"):
            return self._sliced(inputs, len(shape))
        if is_a(node, "ScatterElements", "ScatterND"):
            return self._assigned(node, shape)
        if is_a(node, "Reshape"):
            return [self._viewed(inputs[0], shape)]
        if not is_a(node, *POINTWISE) or None in node.inputs:
            raise NotLaidError
        wholes = [self._whole(v) for v in inputs]
        values = [whole.value for whole in wholes if whole.value is not None]
        made = self._made.node(node.op_type, values, list(node.attributes.values()))
        to = _broadcast([whole.shape for whole in wholes])
        return [Part(made, to, to[self._axis])]

    def _joined(self, value: ir.Value) -> list[Part]:
        """What a join of functions joins."""
        shape = self._layout.shape(value)
        if (one := uniform(self._program, value)) is not None:
            return [Part(None, (), shape[-1], one)]
        parts = self.parts(value)
        if not all(equal_shapes(p.shape, self._layout.laid(shape[:-1], p.many)) for p in parts if p.value is not None):
            raise NotLaidError
        return parts

    def _whole(self, value: ir.Value) -> Part:
        """All functions in one value."""
        parts = self.parts(value)
        (first, *others) = [self._scaled(part) for part in parts]
        if not others:
            return first
        values = [part.value for part in (first, *others) if part.value is not None]
        made = self._made.joined(values, len(first.shape) + self._axis)
        count = sum(part.many for part in parts if isinstance(part.many, int))
        return Part(made, self._layout.laid(self._layout.shape(value)[:-1], count), count)

    def _scaled(self, part: Part) -> Part:
        if part.value is None:
            raise NotLaidError
        if part.scale == 1.0:
            return part
        by = self._made.held(np.array(part.scale, TYPE))
        return part._replace(value=self._made.node("Mul", [part.value, by]), scale=1.0)

    def _sliced(self, inputs: Sequence[ir.Value], rank: int) -> list[Part]:
        """Some functions in a row."""
        parts, axes = self.parts(inputs[0]), data_of(self._program, inputs[3]) if len(inputs) > 3 else None
        bounds = [data_of(self._program, v) for v in inputs[1:]]
        if axes is None or axes.reshape(-1).tolist() not in ([-1], [rank - 1]) or any(b is None for b in bounds):
            raise NotLaidError
        start, end, _, *step = (int(b.reshape(-1)[0]) for b in bounds if b is not None)
        sizes = [part.many for part in parts if isinstance(part.many, int)]
        if not are_equal(sum(sizes), self._layout.shape(inputs[0])[-1]) or step not in ([], [1]):
            raise NotLaidError
        some, begin = range(sum(sizes))[start:end], 0
        taken = list[Part]()
        for part, size in zip(parts, sizes, strict=True):
            low, high = max(some.start - begin, 0), min(some.stop - begin, size)
            taken += [self._cut(part, low, high)] if low < high else []
            begin += size
        return taken

    def _cut(self, part: Part, low: int, high: int) -> Part:
        """Some functions of a part."""
        if part.value is None or part.many == high - low:
            return part._replace(many=high - low)
        axis = len(part.shape) + self._axis
        value = self._made.sliced(part.value, low, high, axis)
        return Part(value, (*part.shape[:axis], high - low, *part.shape[axis + 1 :]), high - low, part.scale)

    def _assigned(self, node: ir.Node, shape: Shape) -> list[Part]:
        """Functions of which one was put among those that are a number."""
        one = self._assignments.of(node)
        number = None if one is None else uniform(self._program, one.to)
        if one is None or number is None or one.axis != len(shape) - 1 or one.end != one.start + 1:
            raise NotLaidError
        laid, last = self._layout.laid(shape[:-1], 1), shape[-1]
        if not self._layout.are_of(one.what, shape[:-1]) or not isinstance(last, int):
            raise NotLaidError
        parts = [
            Part(None, (), one.start, number),
            Part(self._layout.numbers(one.what, shape[:-1]), laid, 1),
            Part(None, (), last - one.end, number),
        ]
        return [part for part in parts if part.many]

    def _viewed(self, value: ir.Value, shape: Shape) -> Part:
        """The same numbers and functions, with other axes in front."""
        before, whole = self._layout.shape(value), self._whole(value)
        is_full = equal_shapes(whole.shape, self._layout.laid(before[:-1], before[-1]))
        if not is_full or not equal_shapes(before[-2:], shape[-2:]) or whole.value is None:
            raise NotLaidError
        laid = self._layout.laid(shape[:-1], whole.many)
        return Part(self._layout.viewed(whole.value, whole.shape, laid), laid, whole.many)


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of what broadcasts. Raises `NotLaidError` where that is not told."""
    rank = max(map(len, shapes))
    dims = [common([s[-a] for s in shapes if len(s) >= a]) for a in range(rank, 0, -1)]
    if any(d is None for d in dims) or rank < 2:
        raise NotLaidError
    return tuple(d for d in dims if d is not None)
