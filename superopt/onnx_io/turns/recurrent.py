"""Models whose loops are recurrent networks, a cell in each turn, as one operator for all turns of a cell."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from superopt.errors import InvalidModel
from superopt.onnx_io.bodies import bodies, kept_states
from superopt.onnx_io.branches import lifted
from superopt.onnx_io.choices import BODY, Branch
from superopt.onnx_io.files import load
from superopt.onnx_io.importer import understand
from superopt.onnx_io.naming import deep_values, itself
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.cells.cell import Cell
from superopt.onnx_io.otherwise.cells.kinds import cells
from superopt.onnx_io.otherwise.cells.series import Series, before_layer
from superopt.onnx_io.otherwise.cells.written import all_steps
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import scanned
from superopt.onnx_io.skeleton import clone, opset_of
from superopt.onnx_io.surgery import replace_node
from superopt.onnx_io.turns.slices import Slice, slices_of

_BEFORE = {"Scan": (0, 0), "Loop": (2, 1)}
"""So many inputs and outputs of a body come before its states."""


def recurrent(program: Program) -> ir.Model | None:
    """The model with loops as operators of ONNX's, in a copy, where what a turn leaves is a cell's state, and what it
    gives is that, too; None where there is no such loop. The interface stays as it is.
    """
    loops = bodies(program) if program.model.ir_version >= 4 else []
    model = clone(program.model)
    nodes, taken = list(model.graph), {v.name or "" for v in deep_values(model.graph)}
    done = [_Loop(program, model, nodes[body.position], body).put(taken) for body in loops]
    return model if any(done) else None


class _Loop:
    """A loop of a copy of a model, with its states, by name, as they come into a turn and leave it."""

    def __init__(self, program: Program, model: ir.Model, loop: ir.Node, branch: Branch) -> None:
        self._program, self._model, self._loop, self._branch = program, model, loop, branch
        self._body = loop.attributes[BODY].as_graph()
        inputs, outputs = _BEFORE[loop.op_type]
        states = self._body.inputs[inputs : len(loop.inputs) - scanned(loop)]
        left = [itself(v).name or "" for v in self._body.outputs[outputs:]]
        self._states = dict(zip((v.name or "" for v in states), left, strict=False))
        self._collected = left[len(states) :]
        self._begins = {v.name or "": outer for v, outer in zip(self._body.inputs, loop.inputs, strict=True)}
        self._kept = {v.name or "" for v, _ in kept_states(loop, self._body)}

    def put(self, taken: set[str]) -> bool:
        """Have a node for each cell in the place of the loop; whether there is nothing else in it."""
        slices = slices_of(self._program, self._model.graph, self._loop, self._body)
        own = self._cells() if slices is not None and _is_forwards(self._loop) else []
        if slices is None or not own:
            return False
        made, left = NewNodes("recurrent", taken, opset_of(self._model)), dict[str, ir.Value]()
        there = {found.value.name or "": self._slices(made, found) for found in slices.found}
        while own:
            cell = next((one for one in own if all(there.get(v.name or "") for v in one.read)), own[0])
            own.remove(cell)
            read = [one for v in cell.read if (one := there.get(v.name or "")) is not None]
            begins = [outer for v in cell.begins if (outer := self._begins[v.name or ""]) is not None]
            if len(read) < len(cell.read) or len(begins) < len(cell.begins):
                return False
            width, (every, *ends) = cell.gates[0].width, all_steps(made, cell, read, begins)
            for value, end in zip(cell.ends, ends, strict=True):
                left[value.name or ""] = made.reshaped(end, [-1, width])
            every = made.reshaped(every, [0, -1, width])
            there[cell.ends[0].name or ""] = Series(every, width)
        results = [self._result(made, there, left, place) for place in range(len(self._loop.outputs))]
        given = [value for value in results if value is not None]
        if len(given) < len(results):
            return False
        self._model.graph.insert_before(self._loop, made.nodes)
        replace_node(self._model, self._loop, given)
        return True

    def _cells(self) -> list[Cell]:
        """The cells whose states all states are that a turn may change; none where there are other states."""
        try:
            model = lifted(self._program, self._branch)
            inner = None if model is None else understand(load(model), plainly=True)
        except InvalidModel:
            return []
        values = {} if inner is None else {v.name or "": v for node in inner.model.graph for v in node.outputs}
        own, found = dict(self._states), list[Cell]()
        for end in self._states.values():
            every = [] if inner is None or end not in values else cells(inner, values[end])
            found += [one for one in every if inner and self._is_of_states(one) and _is_of_rows(inner, one)][:1]
        for cell in found:
            for begin in cell.begins:
                own.pop(begin.name or "", None)
        is_all = not set(own) - self._kept and len(own) + sum(len(c.begins) for c in found) == len(self._states)
        return found if is_all else []

    def _is_of_states(self, cell: Cell) -> bool:
        """Whether what a cell begins with are states, and it leaves those."""
        pairs = zip(cell.begins, cell.ends, strict=True)
        return all(self._states.get(begin.name or "") == end.name for begin, end in pairs)

    def _slices(self, made: NewNodes, found: Slice) -> Series | None:
        """All slices that turns have of a value, rows behind the axis of turns."""
        known = self._program.values[found.outer.name or ""].shape
        width = known[-1]
        if len(known) != 3 or found.axis == 2 or not isinstance(width, int):
            return None
        value, matrix, more = before_layer(self._program, found.outer)
        if found.axis:
            value = made.transposed(value, [1, 0, 2])
        return Series(value, width, matrix, more)

    def _result(
        self, made: NewNodes, there: Mapping[str, Series | None], left: Mapping[str, ir.Value], place: int
    ) -> ir.Value | None:
        """What the loop gives in a place, by a node of its own."""
        states = list(self._states.items())
        if place < len(states):
            state, end = states[place]
            given = left.get(end) or self._begins[state]
        else:
            series = there.get(self._collected[place - len(states)])
            given = series.value if series is not None and series.matrix is None else None
        return None if given is None else made.node("Identity", [given])


def _is_of_rows(program: Program, cell: Cell) -> bool:
    """Whether a cell reads something, and its states have no axis but those of rows and numbers."""
    return bool(cell.read) and not cell.fed and program.values[cell.ends[0].name or ""].type.rank == 2


def _is_forwards(loop: ir.Node) -> bool:
    """Whether turns go through rows from the first to the last, and what they give stands behind each other so."""
    named = ("scan_input_directions", "scan_output_directions", "scan_output_axes")
    return not any(any(loop.attributes[name].as_ints()) for name in named if name in loop.attributes)
