"""Models that put whole rows in their places as rows, and not one number after the other.

Graph networks add up what comes along the edges of each node (`scatter_add` of torch, by which PyTorch Geometric does
it; Fey and Lenssen 2019), and exporters repeat the number of the node for each of its features: ScatterElements. Where
all numbers of a row go to the same row it is a ScatterND, which onnxruntime 1.32 does row by row: 4,000 rows of 32 in
30 µs for 360, 20,000 of 64 in 240 for 6,900. Nor is anything repeated then. Where cameras stand fast, the places into
which what they see is added from above are constant (Philion and Fidler 2020), and written out for each number.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import are_equal, equal_shapes, product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.repeats import Repeated, repeated
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.surgery import replace_node
from superopt.term import Term

TYPES = ("float32", "float64")
"""Of what has these is known that runtimes put rows of it in their places."""


def scattered(program: Program) -> dict[int, Put]:
    """How to put rows in their places as rows, by the places of what does it one number after the other."""
    nodes = [(i, node) for i, node in enumerate(program.model.graph) if _is_scattering(node)]
    made = program.made if nodes else {}
    found = ((i, _places(program, made, node)) for i, node in nodes)
    return {i: partial(_place_anew, places) for i, places in found if places is not None}


def _is_scattering(node: ir.Node) -> bool:
    return node.op_type == "ScatterElements" and node.domain in ONNX_DOMAIN and not _axis(node)


def _places(program: Program, made: Mapping[str, Term], node: ir.Node) -> Repeated | None:
    """The places of rows, of more than one number, in which a node puts whole rows: they are repeated along them."""
    x, indices, rows = (program.values.get(v.name or "") if v is not None else None for v in node.inputs)
    if x is None or indices is None or rows is None or x.type.dtype not in TYPES or x.type.rank < 2:
        return None
    fills = equal_shapes(x.shape[1:], indices.shape[1:]) and equal_shapes(indices.shape, rows.shape)
    if not fills or are_equal(product(x.shape[1:]), 1):
        return None
    places = repeated(program, made, node, 1, (0,))
    return places if places is None or places.held is None or _adds(node) or _are_apart(places, x) else None


def _adds(node: ir.Node) -> bool:
    """Whether all that is put in one place counts."""
    return "reduction" in node.attributes and node.attributes["reduction"].as_string() != "none"


def _are_apart(places: Repeated, x: Term) -> bool:
    """Whether no two rows go to the same place, where one of them would stay: which, runtimes do not say."""
    size = x.shape[0]
    return places.held is not None and isinstance(size, int) and np.unique(places.held % size).size == places.held.size


def _axis(node: ir.Node) -> int:
    return node.attributes["axis"].as_int() if "axis" in node.attributes else 0


def _place_anew(places: Repeated, draft: Draft, node: ir.Node) -> bool:
    """Let rows be put where what is repeated along them says."""
    x, _, rows = node.inputs
    assert x is not None
    assert rows is not None
    made = NewNodes("rows", draft.taken)
    column = places.reshaped(made, node, (-1, 1))
    reduction = [a for name, a in node.attributes.items() if name == "reduction"]
    placed = made.node("ScatterND", [x, column, rows], reduction)
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [placed])
    return True
