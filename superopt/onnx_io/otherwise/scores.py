"""What stands between the scores of attention, a product, and what multiplies values: read, and written of a part."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.turns.rows import number

HIDDEN = np.float32(-1e8)
"""Scores are hidden by what is as low: beside one that is not, a share of it is 0 in floating-point numbers.
What has 16 bits is compared with it in 32.
"""

MOST = 24
"""So many nodes are looked at, from the shares up."""

BETWEEN = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "Neg", "IsNaN", "Not", "Identity", "Cast", "Reshape")
"""What may stand between beside a softmax: what does the same to each score, and keeps them in rows and columns."""

_LOWERING = ("Identity", "Cast", "Reshape", "Add", "Min", "Max")
"""What may be followed to what hides scores, beside what chooses these."""


class Scores:
    """One product, whose rows are queries and whose columns are keys, and the nodes to `shares` of it: one of them is a
    softmax along the keys, and all that they read beside is constant. It `is_read` where all is so.
    """

    def __init__(self, program: Program, shares: ir.Value) -> None:
        self._program = program
        self.size = self._size(shares)
        self.nodes: list[ir.Node] = []
        self._shares = shares
        self._products: list[ir.Node] = []
        self._softmaxes: list[ir.Node] = []
        followed = self.size is not None and self._follow(shares)
        self.is_read = followed and len(self._products) == len(self._softmaxes) == 1

    def hidden(self) -> Array | None:
        """Which scores count for nothing whatever they are, of each query and key; None where that is not known."""
        if not self.is_read or self.size is None or not self._leaves_nothing(self._shares):
            return None
        told = set[ir.Value]()
        found = self._hidden(self._softmaxes[0].inputs[0], told)
        # A row that is hidden as a whole has shares, which are of all its keys.
        if found is None or np.atleast_1d(found).all(-1).any() or not self._is_mild(told):
            return None
        return np.broadcast_to(_of_all(found), self.size)

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
            if node in self.nodes or node in self._products or data_of(self._program, value) is not None:
                continue
            if node is None or self._size(value) != self.size or len(self.nodes) == MOST:
                return False
            if is_a(node, "MatMul"):
                if not all(self._is_stack(v) for v in node.inputs):
                    return False
                self._products.append(node)
                continue
            if self._is_softmax(node):
                self._softmaxes.append(node)
            elif not is_a(node, *BETWEEN):
                return False
            self.nodes.append(node)
            stack += [v for v in node.inputs if v is not None]
        return True

    def _size(self, value: ir.Value) -> tuple[int, int] | None:
        """How many queries and keys a value has along its last axes; None where these are no numbers."""
        known = self._program.values.get(value.name or "")
        match known.shape[-2:] if known is not None else ():
            case (int(queries), int(keys)):
                return queries, keys
        return None

    def _is_stack(self, value: ir.Value | None) -> bool:
        """Whether a value is known to be of matrices, and no row or column."""
        known = None if value is None else self._program.values.get(value.name or "")
        return known is not None and known.type.rank > 1

    def _is_softmax(self, node: ir.Node) -> bool:
        """Whether a node is one along the last axis."""
        known = self._program.values.get(node.outputs[0].name or "")
        axis = number(node, "axis", -1 if (opset_of(self._program.model) or 1) >= 13 else 1)
        return is_a(node, "Softmax") and known is not None and axis in (-1, known.type.rank - 1)

    def _leaves_nothing(self, value: ir.Value | None) -> bool:
        """Whether a value behind the softmax, or beside it there, is 0 where a share is."""
        data, node = data_of(self._program, value), value.producer() if value is not None else None
        if data is not None:
            return not data.any()
        if node in self._softmaxes:
            return True
        if node not in self.nodes or node is None:
            return False
        of = list(map(self._leaves_nothing, node.inputs))
        match node.op_type:
            case "Identity" | "Cast" | "Reshape" | "Neg":
                return of[0]
            case "Add" | "Sub" | "Max" | "Min":
                return all(of)
            case "Mul":
                return any(of) and any(data_of(self._program, v) is not None for v in node.inputs)
            case "Div":
                by = data_of(self._program, node.inputs[1])
                return of[0] and by is not None and bool(by.all())
            case "Where":
                return all(of[1:])
        return False

    def _is_mild(self, told: Collection[ir.Value]) -> bool:
        """Whether no constant raises what is hidden, nor lowers something beside those that are told to hide it."""
        for value in {v for node in self.nodes for v in node.inputs}:
            data = data_of(self._program, value)
            if data is None or data.dtype.kind in "biu" or value is None:
                continue
            if not (data < -HIDDEN).all() or (value not in told and not (data > HIDDEN).all()):
                return False
        return True

    def _hidden(self, value: ir.Value | None, told: set[ir.Value]) -> Array | None:
        """Which elements of a value are as low as hides them; enters the constants that tell it."""
        data, node = data_of(self._program, value), value.producer() if value is not None else None
        if data is not None and data.dtype.kind == "f" and value is not None:
            told.add(value)
            return np.asarray(data <= HIDDEN)
        if node is None or node not in self.nodes or not is_a(node, "Where", *_LOWERING):
            return None
        which = data_of(self._program, node.inputs[0])
        if node.op_type == "Where" and which is None:
            return None
        of = [self._hidden(v, told) for v in node.inputs[1 if node.op_type == "Where" else 0 :]]
        known = [o for o in of if o is not None]
        match node.op_type:
            case "Identity" | "Cast":
                return of[0]
            case "Reshape" if of[0] is not None:
                alike = _of_all(of[0])
                if not (alike == of[0]).all():  # each in the stack hides others, which is not followed
                    told.clear()
                    return None
                return alike
            case "Add" | "Min" if known:
                return np.asarray(known[0] | known[-1])
            case "Max" if len(known) == len(of) == 2:
                return np.asarray(known[0] & known[1])
            case "Where" if which is not None:
                return np.where(which, *(np.zeros((1, 1), bool) if o is None else o for o in of))
        return None

    def _constant(self, made: NewNodes, value: ir.Value, part: tuple[slice, slice]) -> ir.Value:
        """The part of a constant; itself where it is the same for all queries and keys."""
        data = data_of(self._program, value)
        return value if data is None else cut_out(made, value, data.shape, part)

    def _shape(self, made: NewNodes, node: ir.Node, part: tuple[slice, slice]) -> ir.Value:
        """What a reshape makes of a part."""
        to = data_of(self._program, node.inputs[1])
        assert to is not None
        return made.integers([*map(int, to[:-2]), *(some.stop - some.start for some in part)])


def sliced(made: NewNodes, value: ir.Value, axis: int, part: slice, size: int) -> ir.Value:
    """Some of what lies along an axis of this size."""
    if part == slice(0, size):
        return value
    return made.node("Slice", [value, *(made.integers((n,)) for n in (part.start, part.stop, axis))])


def cut_out(made: NewNodes, value: ir.Value, shape: tuple[int, ...], part: tuple[slice, slice]) -> ir.Value:
    """What a constant of this shape is for some queries and keys: it stays in the file once, for all layers and blocks,
    and runtimes cut it before they run.
    """
    for axis, some in zip((-2, -1), part, strict=True):
        if len(shape) >= -axis and shape[axis] > 1:
            value = sliced(made, value, axis, some, shape[axis])
    return value


def _of_all(hidden: Array) -> Array:
    """What is hidden in all of a stack."""
    return np.asarray(hidden.all(tuple(range(hidden.ndim - 2)))) if hidden.ndim > 2 else hidden
