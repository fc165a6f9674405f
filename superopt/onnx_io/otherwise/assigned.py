"""Models that put parts of a value in their places one after the other: the parts beside each other.

A script makes a tensor of zeros, or copies one, and assigns to its rows or columns in a loop: `y[:, i] = f(x[:, i])`.
Exporters write each assignment as a node that copies the whole. What is there in the end is told by the last that was
put in each place.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.naming import itself
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.reading import data_of, is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import number
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import replace_node
from superopt.operators.scatter import box_of, run_of
from superopt.relations import are_equal, equal_shapes, is_one

LEAST = 2
"""So many assignments one after the other are worth it."""

LEAST_OPSET = 10
"""Before it, slices had their bounds as attributes."""


class _Assigned(NamedTuple):
    """Along which axis a value is put into another one, from which place to before which, and the shape that it has
    there.
    """

    to: ir.Value
    what: ir.Value
    axis: int
    start: int
    end: int
    shape: Shape


class _Piece(NamedTuple):
    """Places along an axis, and a value that is there, from one of its own places on; what was there where it is no
    assignment.
    """

    start: int
    end: int
    of: _Assigned | None
    first: int


def assigned(program: Program) -> dict[int, Put]:
    """How to put parts beside each other, by the places of what puts the last of several; and how to read one that was
    put before, by the places of what reads it.
    """
    nodes = [(i, n) for i, n in enumerate(program.model.graph) if is_a(n, "ScatterND", "ScatterElements")]
    if len(nodes) < LEAST or opset_of(program.model) < LEAST_OPSET:
        return {}
    own, places = _Assignments(program), {node: i for i, node in enumerate(program.model.graph)}
    last = [(i, node) for i, node in nodes if not own.goes_on(node)]
    found: dict[int, Put] = {i: partial(_put, program) for i, node in last if len(own.chain(node)) >= LEAST}
    reading = [user for _, node in nodes for user, _ in node.outputs[0].uses() if own.read(user) is not None]
    return found | {places[node]: partial(_read, program) for node in reading}


class _Assignments:
    """What nodes of a program put where, each read once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._of: dict[ir.Node, _Assigned | None] = {}

    def of(self, node: ir.Node | None) -> _Assigned | None:
        """What a node puts."""
        if node is None or not is_a(node, "ScatterND", "ScatterElements"):
            return None
        if node not in self._of:
            self._of[node] = _assignment(self._program, node)
        return self._of[node]

    def goes_on(self, node: ir.Node) -> bool:
        """Whether nothing reads what a node gives but what puts more into it, along the same axis."""
        own, values, further = self.of(node), [node.outputs[0]], list[_Assigned | None]()
        for value in values:
            if value.is_graph_output():
                return False
            for user, _ in value.uses():
                if is_a(user, "Identity"):
                    values.append(user.outputs[0])
                elif not _is_known(self._program, user):
                    further.append(self.of(user))
        alike = [one for one in further if one is not None and own is not None and one.axis == own.axis]
        return bool(further) and len(alike) == len(further) and all(one.to in values for one in alike)

    def chain(self, node: ir.Node | None) -> list[_Assigned]:
        """What a node and those before it put along one axis, the first in front, and nothing reads between."""
        chain = list[_Assigned]()
        while node is not None and (one := self.of(node)) is not None:
            if chain and (one.axis != chain[0].axis or not self.goes_on(node)):
                break
            chain.insert(0, one)
            node = itself(one.to).producer()
        return chain

    def read(self, node: ir.Node) -> ir.Value | None:
        """What was put in the one place that a node takes; None where it takes another one."""
        at = data_of(self._program, node.inputs[1]) if is_a(node, "Gather") else None
        given = node.inputs[0].producer() if at is not None and not at.ndim and node.inputs[0] is not None else None
        while at is not None and given is not None and (one := self.of(given)) is not None:
            size = self._program.values[one.to.name or ""].shape[one.axis]
            rank = self._program.values[one.to.name or ""].type.rank
            place = int(at) % size if isinstance(size, int) else -1
            if number(node, "axis", 0) % rank != one.axis:
                return None
            if one.start <= place < one.end:
                return one.what if one.end - one.start == 1 else None
            given = itself(one.to).producer()
        return None


def _is_known(program: Program, node: ir.Node, deepest: int = 2) -> bool:
    """Whether a node computes sizes, or what is known before the model runs, or something that only such nodes read."""
    if all((v.name or "") in program.constants or (v.name or "") in program.sizes for v in node.outputs):
        return True
    users = [user for v in node.outputs for user, _ in v.uses()]
    is_read = any(v.is_graph_output() for v in node.outputs)
    return bool(deepest and users and not is_read) and all(_is_known(program, user, deepest - 1) for user in users)


def _assignment(program: Program, node: ir.Node) -> _Assigned | None:
    """What a node puts, if it fills all along the other axes, of whose sizes a Reshape can tell one."""
    if not is_a(node, "ScatterND", "ScatterElements") or node.attributes.get("reduction", _NONE).as_string() != "none":
        return None
    to, what = node.inputs[0], node.inputs[2]
    shapes = [program.values[v.name or ""].shape for v in (to, what) if v is not None and v.name in program.values]
    if to is None or what is None or len(shapes) < 2 or sum(not isinstance(d, int) for d in shapes[0]) > 1:
        return None
    found = (
        _of_vectors(program, node, shapes[0]) if node.op_type == "ScatterND" else _of_one_axis(program, node, *shapes)
    )
    if found is None:
        return None
    axis, start, end = found
    return _Assigned(
        to, _reshaped(program, what), axis, start, end, (*shapes[0][:axis], end - start, *shapes[0][axis + 1 :])
    )


def _reshaped(program: Program, value: ir.Value) -> ir.Value:
    """What a value is, in another shape."""
    while (node := value.producer()) is not None and is_a(node, *_RESHAPES) and (inner := node.inputs[0]) is not None:
        known = [program.values.get(v.name or "") for v in (inner, value)]
        shapes = [term.shape for term in known if term is not None]
        if len(shapes) < 2 or not are_equal(*map(product, shapes)):
            break
        value = inner
    return value


_RESHAPES = ("Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""What gives as many elements in the same order, where it gives as many."""

_NONE = ir.AttrString("reduction", "none")


def _of_vectors(program: Program, node: ir.Node, shape: Shape) -> tuple[int, int, int] | None:
    """The axis along which the places that are vectors are not all, the first of them and the one behind the last."""
    indices = data_of(program, node.inputs[1])
    sizes = [d for d in shape[: indices.shape[-1]] if isinstance(d, int)] if indices is not None else []
    if indices is None or len(sizes) < indices.shape[-1] or (box := box_of(indices, sizes)) is None:
        return None
    axes = [a for a, (start, end) in enumerate(box) if (start, end) != (0, sizes[a])]
    return (axes[0], *box[axes[0]]) if len(axes) == 1 else None


def _of_one_axis(program: Program, node: ir.Node, shape: Shape, put: Shape) -> tuple[int, int, int] | None:
    """The same where places are told along one axis, of each element or of all."""
    axis = number(node, "axis", 0) % len(shape)
    if not equal_shapes(shape[:axis] + shape[axis + 1 :], put[:axis] + put[axis + 1 :]):
        return None
    size, value = shape[axis], node.inputs[1]
    indices, known = data_of(program, value), None if value is None else program.values.get(value.name or "")
    spread = None if value is None else value.producer()
    if indices is None and is_a(spread, "Expand") and is_one(put[axis]) and spread is not None:  # one place for all
        data = data_of(program, spread.inputs[0])
        indices = np.reshape(data, [1] * len(shape)) if data is not None and data.size == 1 else None
    if indices is None or known is None or not equal_shapes(known.shape, put) or not isinstance(size, int):
        return None
    run = run_of(indices, axis, size)
    return None if run is None else (axis, *run)


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Join what stands in all places in the end."""
    chain = _Assignments(program).chain(node)
    if len(chain) < LEAST:  # what another one changed
        return False
    axis, made = chain[0].axis, NewNodes("assigned", draft.taken)
    size = program.values[chain[0].to.name or ""].shape[axis]
    pieces = [_Piece(0, size if isinstance(size, int) else 0, None, 0)]
    for one in chain:
        before = [piece._replace(end=min(piece.end, one.start)) for piece in pieces if piece.start < one.start]
        behind = [_from(piece, max(piece.start, one.end)) for piece in pieces if piece.end > one.end]
        pieces = [*before, _Piece(one.start, one.end, one, 0), *behind]
    values = [_value(program, made, chain[0], piece) for piece in pieces]
    joined = made.node("Concat", values, [ir.AttrInt64("axis", axis)]) if len(values) > 1 else values[0]
    if joined.producer() not in made.nodes:  # which has a name of its own
        joined = made.node("Identity", [joined])
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [joined])
    return True


def _read(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Read what was put in a place itself."""
    what, known = _Assignments(program).read(node), program.values.get(node.outputs[0].name or "")
    if what is None or known is None or sum(not isinstance(d, int) for d in known.shape) > 1:
        return False
    made = NewNodes("assigned", draft.taken)
    sizes = made.integers([d if isinstance(d, int) else -1 for d in known.shape])
    result = made.node("Reshape", [what, sizes])
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [result])
    return True


def _from(piece: _Piece, start: int) -> _Piece:
    """What a piece has from a place on."""
    return piece._replace(start=start, first=piece.first + start - piece.start)


def _value(program: Program, made: NewNodes, first: _Assigned, piece: _Piece) -> ir.Value:
    """What stands in places of a piece."""
    value, shape = (first.to, None) if piece.of is None else (piece.of.what, piece.of.shape)
    if shape is not None and not equal_shapes(program.values[value.name or ""].shape, shape):
        value = made.node("Reshape", [value, made.integers([d if isinstance(d, int) else -1 for d in shape])])
    size = program.values[first.to.name or ""].shape[first.axis] if shape is None else shape[first.axis]
    length = piece.end - piece.start
    if are_equal(size, length):
        return value
    bounds = [made.integers([n]) for n in (piece.first, piece.first + length, first.axis)]
    return made.node("Slice", [value, *bounds])
