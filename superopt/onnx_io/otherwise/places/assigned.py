"""Models that put parts of a value in their places one after the other: the parts beside each other.

A script makes a tensor of zeros, or copies one, and assigns to its rows or columns in a loop: `y[:, i] = f(x[:, i])`.
Exporters write each assignment as a node that copies the whole. What is there in the end is told by the last that was
put in each place.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.places.assignments import Assigned, Assignments
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import are_equal, equal_shapes

LEAST = 2
"""So many assignments one after the other are worth it."""

LEAST_OPSET = 10
"""Before it, slices had their bounds as attributes."""


class _Piece(NamedTuple):
    """Places along an axis, and a value that is there, from one of its own places on; what was there where it is no
    assignment.
    """

    start: int
    end: int
    of: Assigned | None
    first: int


def assigned(program: Program) -> dict[int, Put]:
    """How to put parts beside each other, by the places of what puts the last of several; and how to read one that was
    put before, by the places of what reads it.
    """
    nodes = [(i, n) for i, n in enumerate(program.model.graph) if is_a(n, "ScatterND", "ScatterElements")]
    if len(nodes) < LEAST or opset_of(program.model) < LEAST_OPSET:
        return {}
    own, places = Assignments(program), {node: i for i, node in enumerate(program.model.graph)}
    last = [(i, node) for i, node in nodes if not own.goes_on(node)]
    found: dict[int, Put] = {i: partial(_put, program) for i, node in last if len(own.chain(node)) >= LEAST}
    reading = [user for _, node in nodes for user in own.readers(node)]
    return found | {places[node]: partial(_read, program) for node in reading}


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Join what stands in all places in the end."""
    chain = Assignments(program).chain(node)
    if len(chain) < LEAST:  # what another one changed
        return False
    axis, made = chain[0].axis, draft.nodes("assigned")
    size = program.values[chain[0].to.name or ""].shape[axis]
    pieces = [_Piece(0, size if isinstance(size, int) else 0, None, 0)]
    for one in chain:
        before = [piece._replace(end=min(piece.end, one.start)) for piece in pieces if piece.start < one.start]
        behind = [_from(piece, max(piece.start, one.end)) for piece in pieces if piece.end > one.end]
        pieces = [*before, _Piece(one.start, one.end, one, 0), *behind]
    values = [_value(program, made, chain[0], piece) for piece in pieces]
    joined = made.joined(values, axis)
    return draft.replace(node, made, [joined])


def _read(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Read what was put in a place itself, or what was there before anything was put elsewhere."""
    taken, known = Assignments(program).read(node), program.term(node.outputs[0])
    sizes, at = None if known is None else told(known.shape), node.inputs[1]
    if taken is None or sizes is None or at is None:
        return False
    made = draft.nodes("assigned")
    if taken.is_whole:
        result = made.node("Gather", [taken.of, at], list(node.attributes.values()))
    else:
        result = made.reshaped(taken.of, sizes)
    return draft.replace(node, made, [result])


def _from(piece: _Piece, start: int) -> _Piece:
    """What a piece has from a place on."""
    return piece._replace(start=start, first=piece.first + start - piece.start)


def _value(program: Program, made: NewNodes, first: Assigned, piece: _Piece) -> ir.Value:
    """What stands in places of a piece."""
    value = first.to if piece.of is None else piece.of.what
    shape = program.values[value.name or ""].shape
    if piece.of is not None and not equal_shapes(shape, piece.of.shape):
        shape = piece.of.shape
        value = made.reshaped(value, told(shape) or [])
    length = piece.end - piece.start
    if are_equal(shape[first.axis], length):
        return value
    return made.sliced(value, piece.first, piece.first + length, first.axis)
