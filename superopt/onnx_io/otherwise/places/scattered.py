"""Models that put rows in constant places as rows, and not one number after the other.

Exporters repeat the number of a row for each of its elements: ScatterElements. Where no two rows go to the same place
it is a ScatterND, which onnxruntime 1.32 does row by row: 4,000 rows of 32 in 30 µs for 360. Where several are added up
in a place, as where cameras stand fast and what they see is added up from above (Philion and Fidler 2020), those that
go to the same are gathered, with rows of zeros where they are fewer than elsewhere, and summed.

A ScatterND that adds is no way to do so: onnxruntime 1.32 adds rows in several threads at once, and loses some where
they meet. So what goes to computed places stays, which may be the same, but for few (`added.py`): the edges of a large
graph (Fey and Lenssen 2019), of which 20,000 rows of 64 would take 240 µs for 6,900.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import product
from superopt.onnx_io.otherwise.places.repeats import Repeated, repeated
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number, text
from superopt.operators.nodes import concrete
from superopt.relations import are_equal, equal_shapes
from superopt.term import Term

TYPES = ("float32", "float64")
"""Of what has these is known that runtimes put rows of it in their places."""

MOST_ZEROS = 4
"""So many times as many rows as are put are gathered at most."""


def scattered(program: Program) -> dict[int, Put]:
    """How to put rows in their places as rows, by the places of what does it one number after the other."""
    made = program.made if any(_is_scattering(node) for node in program.model.graph) else {}
    return of_nodes(program, lambda node: _put(program, made, node) if _is_scattering(node) else None)


def _is_scattering(node: ir.Node) -> bool:
    return is_a(node, "ScatterElements") and not number(node, "axis", 0)


def _put(program: Program, made: Mapping[str, Term], node: ir.Node) -> Put | None:
    """How to put rows of more than one number, where a node puts whole ones in constant places."""
    x, indices, rows = (program.term(v) for v in node.inputs)
    if x is None or indices is None or rows is None or x.type.dtype not in TYPES or x.type.rank < 2:
        return None
    fills = equal_shapes(x.shape[1:], indices.shape[1:]) and equal_shapes(indices.shape, rows.shape)
    size = x.shape[0]
    if not fills or are_equal(product(x.shape[1:]), 1) or not isinstance(size, int):
        return None
    places = repeated(program, made, node, 1, (0,))
    if places is None or places.held is None or not (np.abs(places.held + 0.5) < size).all():
        return None
    counts = np.bincount(places.held.reshape(-1) % size, minlength=size)
    if counts.max() == 1:
        return partial(_place, places)
    adds = text(node, "reduction") == "add"
    is_much = size * counts.max() > MOST_ZEROS * places.held.size or not all(isinstance(d, int) for d in x.shape)
    return None if is_much or not adds else partial(_add, x, places.held.reshape(-1) % size)


def _place(places: Repeated, draft: Draft, node: ir.Node) -> bool:
    """Let rows be put where what is repeated along them says."""
    x, _, rows = node.inputs
    assert x is not None
    assert rows is not None
    made = draft.nodes("rows")
    column = places.reshaped(made, node, (-1, 1))
    reduction = [a for name, a in node.attributes.items() if name == "reduction"]
    placed = made.node("ScatterND", [x, column, rows], reduction)
    return draft.replace(node, made, [placed])


def _add(x: Term, places: Array, draft: Draft, node: ir.Node) -> bool:
    """Let those rows be gathered and summed that go to the same place."""
    before, _, rows = node.inputs
    assert before is not None
    assert rows is not None
    made = draft.nodes("rows")
    nothing = made.held(np.zeros((1, *concrete(x.shape[1:], "rows")), x.type.dtype))
    padded = made.joined([rows, nothing], 0)
    gathered = made.node("Gather", [padded, made.held(_table(places, *concrete(x.shape[:1], "places")))])
    summed = made.node("ReduceSum", [gathered, made.integers((1,))], [ir.AttrInt64("keepdims", 0)])
    added = made.node("Add", [before, summed])
    return draft.replace(node, made, [added])


def _table(places: Array, size: int) -> Array:
    """Of each place the rows that go there, and where they are fewer than elsewhere the one behind all."""
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=size)
    table = np.full((size, counts.max()), places.size, np.int64)
    rank = np.arange(places.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table[places[order], rank] = order
    return table
