"""Heads of attention that are written one by one, and joined or added up: which of them are worth computing at once.

Textbooks write them so: three layers, the scores, what hides some, a softmax and a product for each head, and graph
attention as many (Velickovic et al. 2018). A head of few rows is a dozen nodes, each of which takes as long as it takes
to start; they are two, as often as not, and their batch may be open. Of more numbers one head after the
other is faster: four heads of 16 for 16 texts of 32 rows of 64 take onnxruntime 1.32 224 µs, and 256 at once.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.known_sizes import MEASURES
from superopt.onnx_io.otherwise.linear import PRODUCTS
from superopt.onnx_io.otherwise.networks.alike import MOST_HELD
from superopt.onnx_io.otherwise.networks.small import MOST_ALONE
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import held
from superopt.substitution import elements

MOST = 2**17
"""So often what is of one head multiplies at most; what it gives has no more elements than `MOST_ALONE`."""

MOST_NODES = 16
"""So many nodes compute a constant at most, each of which is run for it."""


def attends(program: Program, node: ir.Node) -> bool:
    """Whether a node multiplies matrices that are both computed, as queries and keys are, and shares and values."""
    read = [program.term(v) for v in node.inputs[:2] if v is not None]
    return node.op_type in PRODUCTS and not any(term is None or term.constant for term in read)


def is_small_head(program: Program, node: ir.Node) -> bool:
    """Whether what a node of a head computes takes little time, of one of what is open, as a batch is."""
    names = [v.name or "" for v in (*node.outputs[:1], *node.inputs[:1]) if v is not None]
    shapes = [program.values[name].shape for name in names if name in program.values]
    if len(shapes) < 2 or elements(shapes[0]) > MOST_ALONE or node.op_type == "Conv":
        return False
    return node.op_type not in PRODUCTS or elements(shapes[0]) * elements(shapes[1][-1:]) <= MOST


def may_be_open(axis: int | None, shape: Shape) -> bool:
    """Whether sizes that are no numbers stand before the axis along which values are joined, if they are, alone."""
    return axis is None or all(isinstance(d, int) for d in shape[axis:])


def known_tensor(program: Program, value: ir.Value) -> ir.TensorProtocol | None:
    """The data of a constant, also of one that few nodes compute before the model runs, if it is not large."""
    name, tensor = value.name or "", held(value)
    if tensor is not None or value.is_graph_input() or name not in program.constants or name not in program.values:
        return tensor
    if elements(program.values[name].shape) > MOST_HELD or len(_made_by(value)) > MOST_NODES:
        return None
    return ir.tensor(data) if (data := program.data(name)).dtype.kind in "biuf" else None


def _made_by(value: ir.Value) -> set[ir.Node]:
    """The nodes that compute a value, as far as one more than are run, but for what is measured only."""
    found, stack = set[ir.Node](), [value]
    while stack and len(found) <= MOST_NODES:
        node = (read := stack.pop()).producer()
        if node is not None and node not in found and held(read) is None:
            found.add(node)
            stack.extend(v for v in node.inputs if v is not None and node.op_type not in MEASURES)
    return found
