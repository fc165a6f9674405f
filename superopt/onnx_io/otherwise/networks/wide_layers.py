"""Layers of several networks whose numbers are columns of one matrix, and what is added up of the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.linear import PRODUCTS
from superopt.onnx_io.otherwise.networks.alike import Twins
from superopt.onnx_io.otherwise.networks.ends import Ends
from superopt.onnx_io.otherwise.networks.last_layers import Last, last_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of
from superopt.onnx_io.said import held, is_scaled, number
from superopt.relations import equal_shapes
from superopt.substitution import TYPICAL, elements

MOST_IN_BLOCKS, MOST_MULTIPLIED, MOST = 2**14, 2**17, 2**16
"""Matrices with blocks have no more numbers, are multiplied no more often, and no more is computed of all at once."""

_BINARY = ("Add", "Mul", "Sub")

_BOUNDED = ("Clip", "Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softsign", "Tanh")
_GROWING = ("Abs", "Elu", "Gelu", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg", "Relu", "Selu", "Softplus")
_UNARY = frozenset((*_BOUNDED, *_GROWING))
"""What is finite where what it reads is: zeros beside blocks would make anything else of a network no number in all."""


class _Wide(NamedTuple):
    """Numbers of all networks side by side, of each so many."""

    value: ir.Value
    width: int


class WideLayers:
    """Networks whose numbers are columns of matrices. Where nothing is `made`, whether they can be is told."""

    def __init__(self, program: Program, made: NewNodes | None, found: Twins, ends: Ends) -> None:
        self._program, self._made, self._found, self._ends = program, made, found, ends
        self._count = len(ends.values)
        self._weights = {row[0]: data for row, data in found.weights.items()}
        self._own = {v for node, *_ in found.nodes for v in node.outputs} | {row[0] for row in found.read}
        self._wide = dict[ir.Value, _Wide]()

    def take(self) -> ir.Value | None:
        """What is joined or added up; None where something is computed otherwise."""
        first = [node for node, *_ in self._found.nodes]
        if self._ends.axis is not None:
            return self._wide[first[-1].outputs[0]].value if all(map(self._layer, first)) else None
        last = last_of(first, {row[0]: row for row in self._found.read})
        if last is None or not all(map(self._layer, [node for node in first if node not in last.nodes])):
            return None
        return self._added(last)

    def _layer(self, node: ir.Node) -> bool:
        """Compute what all networks compute by a node."""
        if len(node.outputs) != 1 or None in node.inputs:
            return False
        read = [v for v in node.inputs if v is not None]
        make = self._multiplied if node.op_type in PRODUCTS else self._combined if node.op_type in _BINARY else None
        if make is None and node.op_type in _UNARY and not any(v in self._own or self._data(v) for v in read[1:]):
            make = self._mapped
        made = None if make is None else make(node, read)
        if made is None or elements(self._shape(node.outputs[0])[:-1]) * made.width * self._count > MOST:
            return False
        self._wide[node.outputs[0]] = made
        return True

    def _multiplied(self, node: ir.Node, read: Sequence[ir.Value]) -> _Wide | None:
        x, matrices = read[0], self._matrices(node)
        if matrices is None or not self._shape(x):
            return None
        width, blocks = matrices[0].shape[1], x in self._wide
        if blocks:
            size = self._count**2 * matrices[0].size
            if size > MOST_IN_BLOCKS or size * elements(self._shape(x)[:-1], TYPICAL) > MOST_MULTIPLIED:
                return None
            whole = _in_blocks(matrices)
        elif x in self._own or self._data(x) is not None:
            return None
        else:
            whole = np.concatenate(matrices, 1)
        made = _Wide(self._node("MatMul", [self._wide[x].value if blocks else x, self._held(whole)]), width)
        return made if len(read) < 3 else self._beside(node, made, read[2], "Add")

    def _combined(self, node: ir.Node, read: Sequence[ir.Value]) -> _Wide | None:
        """What computes each number of two, one of which may be a row of weights."""
        both = [self._wide[v] for v in read if v in self._wide]
        if len(both) == 2:
            are_as_wide = both[0].width == both[1].width
            return _Wide(self._node(node.op_type, [w.value for w in both]), both[0].width) if are_as_wide else None
        which = 1 if read[0] in self._wide else 0
        return self._beside(node, both[0], read[which], node.op_type, which) if both else None

    def _beside(self, node: ir.Node, x: _Wide, row: ir.Value, op_type: str, at: int = 1) -> _Wide | None:
        """Numbers of all networks, and rows of weights that are repeated over those."""
        rows = self._rows(row, x.width, len(self._shape(node.outputs[0])))
        if rows is None:
            return None
        other = self._held(np.concatenate(rows))
        return _Wide(self._node(op_type, [x.value, other] if at else [other, x.value]), x.width)

    def _mapped(self, node: ir.Node, read: Sequence[ir.Value]) -> _Wide | None:
        if read[0] not in self._wide:
            return None
        x = self._wide[read[0]]
        return _Wide(self._node(node.op_type, [x.value, *read[1:]], list(node.attributes.values())), x.width)

    def _added(self, last: Last) -> ir.Value | None:
        """The sum of what last products give, each weighed."""
        x, matrices = last.product.inputs[0], self._matrices(last.product)
        if x not in self._wide or matrices is None:
            return None
        wide, shape, of = self._wide[x], self._shape(x), matrices[0].shape[1]
        given = self._shape(self._ends.values[0])
        rows = None if last.bias is None else self._rows(last.bias, of, len(given))
        if (last.bias is not None and rows is None) or not equal_shapes(given[:-1], shape[:-1]):
            return None
        value, gates = wide.value, self._ends.weighed
        if gates is not None and (last.gates or not equal_shapes(self._shape(gates), (*shape[:-1], self._count))):
            return None
        if last.gates is not None:
            if any(not equal_shapes(self._shape(v), (*shape[:-1], 1)) for v in last.gates):
                return None
            gates = self._node("Concat", last.gates, [ir.AttrInt64("axis", -1)])
        if gates is not None:
            kept = [0] * (len(shape) - 1)
            apart = self._node("Reshape", [value, self._held(np.array([*kept, self._count, wide.width]))])
            each = self._node("Reshape", [gates, self._held(np.array([*kept, self._count, 1]))])
            weighed = self._node("Mul", [apart, each])
            value = self._node("Reshape", [weighed, self._held(np.array([*kept, self._count * wide.width]))])
        scale = np.array(self._ends.factor, matrices[0].dtype)
        made = self._node("MatMul", [value, self._held(np.concatenate(matrices) * scale)])
        if rows is None:
            return made
        bias = self._held(scale * (np.sum(rows, 0) if gates is None else np.stack(rows)))
        return self._node("Add", [made, bias if gates is None else self._node("MatMul", [gates, bias])])

    def _matrices(self, node: ir.Node) -> list[Array] | None:
        """The matrices that the networks have for a product."""
        data = self._data(node.inputs[1])
        if data is None or data[0].ndim != 2 or is_scaled(node) or number(node, "transA", 0):
            return None
        return [a.T for a in data] if number(node, "transB", 0) else data

    def _rows(self, value: ir.Value, width: int, rank: int) -> list[Array] | None:
        """Weights that are added to so many numbers of each network, which have a rank."""
        data = self._data(value)
        fits = data is not None and data[0].ndim <= rank and data[0].size in (1, *data[0].shape[-1:])
        if data is None or not fits or data[0].size not in (1, width):
            return None
        return [np.broadcast_to(a.reshape(-1), width) for a in data]

    def _data(self, value: ir.Value | None) -> list[Array] | None:
        """Constants of each network, or the one of all."""
        given = None if value is None else self._found.same.get(value, value)
        if given in self._weights:
            return self._weights[given]
        return None if (tensor := held(given)) is None else [np.asarray(tensor.numpy())] * self._count

    def _shape(self, value: ir.Value | None) -> Shape:
        """The shape of a value; none of one that is not known."""
        return shape_of(self._program, value) or ()

    def _node(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr] = ()) -> ir.Value:
        return ir.Value() if self._made is None else self._made.node(op_type, inputs, attributes)

    def _held(self, data: Array) -> ir.Value:
        return ir.Value() if self._made is None else self._made.held(np.ascontiguousarray(data))


def _in_blocks(matrices: Sequence[Array]) -> Array:
    """Matrices of one shape one behind the other, each in rows and columns of its own, and zeros beside them."""
    count, (rows, columns) = len(matrices), matrices[0].shape
    whole = np.zeros((count, rows, count, columns), matrices[0].dtype)
    for i, matrix in enumerate(matrices):
        whole[i, :, i] = matrix
    return whole.reshape(count * rows, count * columns)
