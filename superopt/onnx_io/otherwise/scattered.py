"""Models that put whole rows in their places as rows, and not one number after the other.

Graph networks add up what comes along the edges of each node (`scatter_add` of torch, by which PyTorch Geometric does
it; Fey and Lenssen 2019), and exporters repeat the number of the node for each of its features: ScatterElements. Where
all numbers of a row go to the same row it is a ScatterND, which onnxruntime 1.32 does row by row: 4,000 rows of 32 in
30 µs for 360, 20,000 of 64 in 240 for 6,900. Nor is anything repeated then.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from superopt.dim import are_equal, equal_shapes, product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.surgery import replace_node
from superopt.operators.layout import Expand
from superopt.term import Term

TYPES = ("float32", "float64")
"""Of what has these is known that runtimes put rows of it in their places."""

REPEAT = ("Expand", "Tile")
"""What repeats its first input."""


def scattered(program: Program) -> dict[int, Put]:
    """How to put rows in their places as rows, by the places of what does it one number after the other."""
    nodes = [(i, node) for i, node in enumerate(program.model.graph) if _is_scattering(node)]
    made = program.made if nodes else {}
    return {i: _place_anew for i, node in nodes if _is_of_rows(program, made, node)}


def _is_scattering(node: ir.Node) -> bool:
    return node.op_type == "ScatterElements" and node.domain in ONNX_DOMAIN and not _axis(node)


def _is_of_rows(program: Program, made: Mapping[str, Term], node: ir.Node) -> bool:
    """Whether a node puts whole rows, of more than one number, in places whose numbers are repeated along them."""
    x, indices, rows = (program.values.get(v.name or "") if v is not None else None for v in node.inputs)
    if x is None or indices is None or rows is None or x.type.dtype not in TYPES or x.type.rank < 2:
        return False
    fills = equal_shapes(x.shape[1:], indices.shape[1:]) and equal_shapes(indices.shape, rows.shape)
    if not fills or are_equal(product(x.shape[1:]), 1):
        return False
    repeat, numbers = made.get(indices.label), _repeated(node)
    if repeat is None or numbers is None or not isinstance(repeat.operator, Expand) or repeat.operator.axes != (0,):
        return False
    column = program.values.get(numbers.name or "")  # ScatterND takes no other numbers
    return column is not None and column.type.dtype == "int64" and are_equal(product(column.shape), indices.shape[0])


def _repeated(node: ir.Node) -> ir.Value | None:
    """What the node that gives the places repeats, if that is all that it does."""
    indices = node.inputs[1]
    repeat = None if indices is None else indices.producer()
    repeats = repeat is not None and repeat.op_type in REPEAT and repeat.domain in ONNX_DOMAIN
    return repeat.inputs[0] if repeat is not None and repeats else None


def _axis(node: ir.Node) -> int:
    return node.attributes["axis"].as_int() if "axis" in node.attributes else 0


def _place_anew(draft: Draft, node: ir.Node) -> bool:
    """Let rows be put where what is repeated along them says."""
    (x, _, rows), numbers = node.inputs, _repeated(node)
    assert x is not None
    assert rows is not None
    assert numbers is not None
    made = NewNodes("rows", draft.taken)
    column = made.node("Reshape", [numbers, made.integers((-1, 1))])
    reduction = [a for name, a in node.attributes.items() if name == "reduction"]
    placed = made.node("ScatterND", [x, column, rows], reduction)
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [placed])
    return True
