"""What stands between the scores of attention, a product, and what multiplies values: read, and written of a part."""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, is_softmax_of_rows
from superopt.onnx_io.said import is_a

MOST = 24
"""So many nodes are looked at, from the shares up."""

BETWEEN = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "Neg", "IsNaN", "Not", "Identity", "Cast", "Reshape")
"""What may stand between beside a softmax: what does the same to each score, and keeps them in rows and columns."""


class Scores:
    """One product, whose rows are queries and whose columns are keys, and the nodes to `shares` of it: one of them is a
    softmax along the keys, and all that they read beside is constant. It `is_read` where all is so.

    `size` is how many queries and keys there are.
    """

    def __init__(self, program: Program, shares: ir.Value) -> None:
        self.program, self.shares = program, shares
        self.size = self._size(shares)
        self.nodes: list[ir.Node] = []
        self._products: list[ir.Node] = []
        self.softmaxes: list[ir.Node] = []
        followed = self.size is not None and self._follow(shares)
        self.is_read = followed and len(self._products) == len(self.softmaxes) == 1

    def part(
        self, made: NewNodes, value: ir.Value, part: tuple[slice, slice], done: dict[ir.Value, ir.Value]
    ) -> ir.Value:
        """A value between for some of the queries and keys; what is done of these is not done again."""
        if value not in done:
            node = value.producer()
            if node in self._products and node is not None:
                sides = zip(node.inputs, (-2, -1), part, self.size or (), strict=True)
                inputs = [sliced(made, v, axis, some, size) for v, axis, some, size in sides if v is not None]
                done[value] = made.node("MatMul", inputs)
            elif node in self.nodes and node is not None:
                told = 1 if node.op_type == "Reshape" else len(node.inputs)
                inputs = [self.part(made, v, part, done) for v in node.inputs[:told] if v is not None]
                inputs += [self._shape(made, node, part)] if node.op_type == "Reshape" else []
                done[value] = made.node(node.op_type, inputs, list(node.attributes.values()))
            else:
                done[value] = self._constant(made, value, part)
        return done[value]

    def _follow(self, shares: ir.Value) -> bool:
        """Note all nodes between; whether nothing else stands there."""
        stack = [shares]
        while stack:
            value = stack.pop()
            node = value.producer()
            if node in self.nodes or node in self._products or data_of(self.program, value) is not None:
                continue
            if node is None or self._size(value) != self.size or len(self.nodes) == MOST:
                return False
            if is_a(node, "MatMul"):
                if not all(self._is_stack(v) for v in node.inputs):
                    return False
                self._products.append(node)
                continue
            if is_softmax_of_rows(self.program, node):
                self.softmaxes.append(node)
            elif not is_a(node, *BETWEEN):
                return False
            self.nodes.append(node)
            stack += [v for v in node.inputs if v is not None]
        return True

    def _size(self, value: ir.Value) -> tuple[int, int] | None:
        """How many queries and keys a value has along its last axes; None where these are no numbers."""
        known = self.program.term(value)
        match known.shape[-2:] if known is not None else ():
            case (int(queries), int(keys)):
                return queries, keys
        return None

    def _is_stack(self, value: ir.Value | None) -> bool:
        """Whether a value is known to be of matrices, and no row or column."""
        known = self.program.term(value)
        return known is not None and known.type.rank > 1

    def _constant(self, made: NewNodes, value: ir.Value, part: tuple[slice, slice]) -> ir.Value:
        """The part of a constant; itself where it is the same for all queries and keys."""
        data = data_of(self.program, value)
        return value if data is None else cut_out(made, value, data.shape, part)

    def _shape(self, made: NewNodes, node: ir.Node, part: tuple[slice, slice]) -> ir.Value:
        """What a reshape makes of a part."""
        to = data_of(self.program, node.inputs[1])
        assert to is not None
        return made.integers([*map(int, to[:-2]), *(some.stop - some.start for some in part)])


def sliced(made: NewNodes, value: ir.Value, axis: int, part: slice, size: int) -> ir.Value:
    """Some of what lies along an axis of this size."""
    if part == slice(0, size):
        return value
    return made.sliced(value, part.start, part.stop, axis)


def cut_out(made: NewNodes, value: ir.Value, shape: tuple[int, ...], part: tuple[slice, slice]) -> ir.Value:
    """What a constant of this shape is for some queries and keys: it stays in the file once, for all layers and blocks,
    and runtimes cut it before they run.
    """
    for axis, some in zip((-2, -1), part, strict=True):
        if len(shape) >= -axis and shape[axis] > 1:
            value = sliced(made, value, axis, some, shape[axis])
    return value
