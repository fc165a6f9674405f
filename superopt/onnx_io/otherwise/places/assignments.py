"""What nodes put into parts of a value, along an axis of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.naming import itself
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, told
from superopt.onnx_io.said import is_a, number, text
from superopt.operators.scatter import box_of, run_of
from superopt.relations import are_equal, equal_shapes, is_one

_RESHAPES = (*VIEWS, "Expand", "Identity")
"""What gives as many elements in the same order, where it gives as many."""


class Assigned(NamedTuple):
    """Along which axis a value is put into another one, from which place to before which, and the shape that it has
    there.
    """

    to: ir.Value
    what: ir.Value
    axis: int
    start: int
    end: int
    shape: Shape


class Taken(NamedTuple):
    """A place that is taken of a whole value, or a value that is no more than the place."""

    of: ir.Value
    is_whole: bool


class Assignments:
    """What nodes of a program put where, each read once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._of: dict[ir.Node, Assigned | None] = {}

    def of(self, node: ir.Node | None) -> Assigned | None:
        """What a node puts."""
        if not is_a(node, "ScatterND", "ScatterElements"):
            return None
        if node not in self._of:
            self._of[node] = _assignment(self._program, node)
        return self._of[node]

    def goes_on(self, node: ir.Node) -> bool:
        """Whether nothing reads what a node gives but what puts more into it, along the same axis."""
        own, values, further = self.of(node), [node.outputs[0]], list[Assigned | None]()
        for value in values:
            if value.is_graph_output():
                return False
            for user, _ in value.uses():
                if is_a(user, "Identity"):
                    values.append(user.outputs[0])
                elif not is_known(self._program, user):
                    further.append(self.of(user))
        alike = [one for one in further if one is not None and own is not None and one.axis == own.axis]
        return bool(further) and len(alike) == len(further) and all(one.to in values for one in alike)

    def chain(self, node: ir.Node | None) -> list[Assigned]:
        """What a node and those before it put along one axis, the first in front, and nothing reads between."""
        chain = list[Assigned]()
        while node is not None and (one := self.of(node)) is not None:
            if chain and (one.axis != chain[0].axis or not self.goes_on(node)):
                break
            chain.insert(0, one)
            node = itself(one.to).producer()
        return chain

    def read(self, node: ir.Node) -> Taken | None:
        """What stands in the one place that a node takes: what was put there, or what that was before others changed;
        None where it is not told, or where nothing was changed.
        """
        at, value = data_of(self._program, node.inputs[1]) if is_a(node, "Gather") else None, node.inputs[0]
        if at is None or at.ndim or value is None:
            return None
        before = value
        while (one := self.of(itself(before).producer())) is not None:
            shape = self._program.values[one.to.name or ""].shape
            size, place = shape[one.axis], int(at)
            if number(node, "axis", 0) % len(shape) != one.axis or not isinstance(size, int):
                return None
            if one.start <= (place + size if place < 0 else place) < one.end:
                return Taken(one.what, is_whole=False) if one.end - one.start == 1 else None
            before = one.to
        return None if before is value else Taken(before, is_whole=True)

    def readers(self, node: ir.Node) -> list[ir.Node]:
        """What takes a place of what a node has put into something, and can take it elsewhere."""
        values, found = [node.outputs[0]], list[ir.Node]()
        for value in values:
            for user, _ in value.uses():
                if is_a(user, "Identity"):
                    values.append(user.outputs[0])
                elif self.read(user) is not None:
                    found.append(user)
        return found


def is_known(program: Program, node: ir.Node, deepest: int = 2) -> bool:
    """Whether a node computes sizes, or what is known before the model runs, or something that only such nodes read."""
    if all(program.is_constant(v) or (v.name or "") in program.sizes for v in node.outputs):
        return True
    users = [user for v in node.outputs for user, _ in v.uses()]
    is_read = any(v.is_graph_output() for v in node.outputs)
    return bool(deepest and users and not is_read) and all(is_known(program, user, deepest - 1) for user in users)


def _assignment(program: Program, node: ir.Node) -> Assigned | None:
    """What a node puts, if it fills all along the other axes, of whose sizes a Reshape can tell one."""
    to, what = node.inputs[0], node.inputs[2]
    shapes = [program.values[v.name or ""].shape for v in (to, what) if v is not None and v.name in program.values]
    is_put = text(node, "reduction", "none") == "none"
    if to is None or what is None or not is_put or len(shapes) < 2 or told(shapes[0]) is None:
        return None
    whole, put = shapes
    found = (
        _of_vectors(program, node, whole) if node.op_type == "ScatterND" else _of_one_axis(program, node, whole, put)
    )
    if found is None:
        return None
    axis, start, end = found
    shape = (*whole[:axis], end - start, *whole[axis + 1 :])
    return Assigned(to, _reshaped(program, what), axis, start, end, shape)


def _reshaped(program: Program, value: ir.Value) -> ir.Value:
    """What a value is, in another shape."""
    while (node := value.producer()) is not None and is_a(node, *_RESHAPES) and (inner := node.inputs[0]) is not None:
        known = [program.term(v) for v in (inner, value)]
        shapes = [term.shape for term in known if term is not None]
        if len(shapes) < 2 or not are_equal(*map(product, shapes)):
            break
        value = inner
    return value


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
    indices, known = data_of(program, value), program.term(value)
    spread = None if value is None else value.producer()
    if indices is None and is_a(spread, "Expand") and is_one(put[axis]) and spread is not None:  # one place for all
        data = data_of(program, spread.inputs[0])
        indices = np.reshape(data, [1] * len(shape)) if data is not None and data.size == 1 else None
    if indices is None or known is None or not equal_shapes(known.shape, put) or not isinstance(size, int):
        return None
    run = run_of(indices, axis, size)
    return None if run is None else (axis, *run)
