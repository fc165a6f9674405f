"""Models whose loops compute of all rows at once, before the first turn, what each turn computes of its own row alone.

A recurrent cell multiplies what it reads in a turn, and what it knows, by matrices. Of what it reads no turn has to be
waited for: one product of all rows reads the matrix once (as cuDNN has it, Appleyard et al. 2016). Exporters write the
cell as a script has it, so that each turn has its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from superopt.onnx_io.at_once.all_turns import AllTurns
from superopt.onnx_io.at_once.rows import Row
from superopt.onnx_io.bodies import bodies, kept_states
from superopt.onnx_io.choices import BODY
from superopt.onnx_io.naming import deep_values
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import clone
from superopt.onnx_io.turns.parted import Parted, parted
from superopt.onnx_io.turns.slices import Slice, slices_of
from superopt.substitution import elements

MOST_TIMES, MOST_ELEMENTS = 32, 2**13
"""What is computed of a row has this many times its elements, or so many for each batch, at most: that of all rows is
in memory at once.
"""

FREE = frozenset({"Cast", "Concat", "Constant", "Gather", "Identity", "Split", "Transpose"})
"""What takes hardly less time for all rows at once: for these alone nothing is changed."""


def ahead(program: Program) -> ir.Model | None:
    """The model with what turns of its loops compute of their own rows alone computed of all rows before them, in a
    copy; None where there is no such thing. Only of loops that read each row in one turn: it fails where one of these
    would have failed. The interface stays as it is.
    """
    loops = bodies(program) if program.model.ir_version >= 4 else []
    while loops:
        model = clone(program.model)
        nodes, taken = list(model.graph), {v.name or "" for v in deep_values(model.graph)}
        moving = [body for body in loops if _Ahead(program, model, taken).move(nodes[body.position])]
        if len(moving) == len(loops):
            return model
        loops = moving  # of the others, products may have been parted for nothing
    return None


class _Ahead:
    """Moves nodes out of a body of a copy of a model, to where they compute all turns."""

    def __init__(self, program: Program, model: ir.Model, taken: set[str]) -> None:
        self._program, self._model, self._taken = program, model, taken
        self._turns, self._slices = AllTurns(program, model, taken), set[ir.Value]()

    def move(self, loop: ir.Node) -> bool:
        """Move what turns compute of their rows alone before a loop, where that takes time; where nothing was, the copy
        is not to be used.
        """
        body, graph = loop.attributes[BODY].as_graph(), self._model.graph
        slices = slices_of(self._program, graph, loop, body)
        if slices is None:
            return False
        self._turns.enter(body, kept_states(loop, body))
        given = [row for found in slices.found if (row := self._slice(found)) is not None]
        self._slices = {found.value for found in slices.found}
        parts = [found for node in tuple(body) if (found := self._taken_or_parted(body, node)) is not None]
        moved = dict.fromkeys(node for node in body if self._is_own(node))
        apart = {v: self._turns.rows[v] for node in moved for v in node.outputs}
        read = {v: row.value for v, row in apart.items() if any(user not in moved for user, _ in v.uses())}
        matrices = [matrix for part in parts for matrix in part.matrices]
        if not read or all(node.op_type in FREE for node in moved) or not fits(apart.values(), given):
            return False
        graph.insert_before(loop, self._turns.placed([*read.values(), *matrices]))
        slices.give(self._taken, read, moved)
        for node in reversed(moved):
            body.remove(node, safe=True)
        slices.drop_unread()
        return True

    def _slice(self, found: Slice) -> Row | None:
        """What a turn's slice is outside, with the axis in front along which it is one."""
        known, axis = self._turns.row(found.outer), found.axis
        if known is None:
            return None
        order, value = [axis, *(a for a in range(len(known.shape)) if a != axis)], found.outer
        if axis:
            value = self._turns.made.transposed(value, order)
        size, *shape = (known.shape[a] for a in order)
        self._turns.rows[found.value] = Row(value, tuple(shape), size)
        return self._turns.rows[found.value]

    def _taken_or_parted(self, body: ir.Graph, node: ir.Node) -> Parted | None:
        """Let a node's rows be known where it is one of rows alone, and no output of the body; else what is of rows in
        it, if that can be parted from the rest.
        """
        known = [v for v in node.outputs if v in self._turns.rows]  # slices that a node takes
        if known or any(v.is_graph_output() for v in node.outputs) or self._turns.take(node):
            return None
        return parted(self._turns, body, node, self._taken)

    def _is_own(self, node: ir.Node) -> bool:
        """Whether a node computes rows, and does not only take them."""
        rows = [self._turns.rows.get(v) for v in node.outputs]
        is_slice = any(v in self._slices for v in node.outputs)
        return bool(rows) and not is_slice and all(r is not None and r.turns is not None for r in rows)


def fits(apart: Iterable[Row], given: Iterable[Row]) -> bool:
    """Whether rows take not much more memory than those which are there anyway."""
    most = max(MOST_ELEMENTS, MOST_TIMES * sum(elements(row.shape) for row in given))
    return all(elements(row.shape) <= most for row in apart)
