"""Models that add up rows in few computed places: as a product with rows of ones in these places, and zeros elsewhere.

What the edges of a small graph say is added up at its nodes (`scatter_add` of torch, by which PyTorch Geometric does
it; Fey and Lenssen 2019), and exporters repeat the number of a row for each of its elements: ScatterElements, which
onnxruntime 1.32 adds one by one: 870 rows of 64 numbers to 30 nodes take it 252 µs, and 49 as a product. A product
takes as long for each row as there are nodes, so it pays for molecules and skeletons, and not for maps of cities. No
ScatterND does it: `scattered.py` tells why.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.places.repeats import Repeated, repeated
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, told
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number, text
from superopt.relations import equal_shapes
from superopt.substitution import TYPICAL, elements
from superopt.term import Term

TYPE = "float32"
"""Of what has it is known that runtimes multiply it fast; onnxruntime has no OneHot of 64 bits."""

ADDED_NS, PLACE_NS, NUMBER_NS = 4.5, 0.6, 0.03
"""What an element that is added by itself takes, about; and in a product each place of a row, and that for each of its
elements, where vectors are short.
"""

WORTH = 0.8
"""Of the time of adding one by one, what a product is to take at most."""

LEAST = 2**10
"""So many elements are added up at least; edges whose number is open are taken to be as many as nodes."""


def added(program: Program) -> dict[int, Put]:
    """How to add up rows as a product, by the places of what adds one element after the other."""
    made = program.made if any(_is_adding(node) for node in program.model.graph) else {}
    return of_nodes(program, lambda node: _put(program, made, node) if _is_adding(node) else None)


def _is_adding(node: ir.Node) -> bool:
    return is_a(node, "ScatterElements") and text(node, "reduction") == "add"


def _put(program: Program, made: Mapping[str, Term], node: ir.Node) -> Put | None:
    """How to add up rows that go to few places, along the first axis or the last but one."""
    x, indices, rows = (program.term(v) for v in node.inputs)
    if x is None or indices is None or rows is None or x.type.dtype != TYPE or x.type.rank < 2:
        return None
    rank, axis = x.type.rank, number(node, "axis", 0) % x.type.rank
    size, others, own = x.shape[axis], _without(x.shape, axis), _without(indices.shape, axis)
    fills = equal_shapes(others, own) and equal_shapes(indices.shape, rows.shape)
    is_laid = (axis == rank - 2) or (axis == 0 and all(isinstance(d, int) for d in others))
    if not fills or not is_laid or not isinstance(size, int) or elements(rows.shape, max(TYPICAL, size)) < LEAST:
        return None
    width = elements(others if axis == 0 else others[-1:])
    if size * (PLACE_NS + NUMBER_NS * width) > WORTH * ADDED_NS * width:
        return None
    places = repeated(program, made, node, 1, (axis,))
    if places is None or places.held is not None:
        return None
    begun = data_of(program, node.inputs[0])
    return partial(_multiply, places, x, axis, begun is not None and not begun.any())


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _multiply(places: Repeated, x: Term, axis: int, is_nothing: bool, draft: Draft, node: ir.Node) -> bool:
    """Let rows be multiplied by those that say where they go."""
    before, _, rows = node.inputs
    assert before is not None
    assert rows is not None
    made = draft.nodes("sums")
    numbers = places.reshaped(made, node, (-1,))
    ends = (made.held(np.array(x.shape[axis], np.int64)), made.held(np.array([0, 1], np.float32)))
    hot = made.node("OneHot", [numbers, *ends], [ir.AttrInt64("axis", 0)])
    if flat := axis == 0 and len(x.shape[1:]) > 1:
        rows = made.reshaped(rows, (-1, elements(x.shape[1:])))
    result = made.node("MatMul", [hot, rows])
    if flat:
        result = made.reshaped(result, told(x.shape) or ())
    if not is_nothing:
        result = made.node("Add", [before, result])
    return draft.replace(node, made, [result])
