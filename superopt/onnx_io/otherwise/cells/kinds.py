"""What is a cell of a recurrent network that one of ONNX's operators computes many steps of, and faster so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.cells.affine import Affine, NotRows
from superopt.onnx_io.otherwise.cells.cell import Cell
from superopt.onnx_io.otherwise.cells.equations import ways
from superopt.onnx_io.otherwise.cells.rows import Rows
from superopt.onnx_io.otherwise.series.unrolled import fewest_numbers
from superopt.onnx_io.program import Program
from superopt.relations import are_equal, is_one
from superopt.substitution import elements
from superopt.term import Term

MOST_ROWS = {"LSTM": 64, "GRU": 16}
"""Of more rows onnxruntime 1.32 takes as long for one node, or longer, but where they are short; an RNN, of so many
numbers as are `unrolled`.
"""

WIDEST_STATE = 2**10
"""Wider states are left: the matrices of their cells take a time to be read that no start of a node matters beside."""


def cells(program: Program, value: ir.Value, least_used: int = 1) -> list[Cell]:
    """What cells a value may be the state of whose steps are computed faster at once, by what it may be made of, and by
    matrices that so many nodes read.
    """
    found, known = list[Cell](), program.term(value)
    if known is None or not _may_be_state(known):
        return []
    way, befores = ways(value)
    for before in befores:
        with suppress(NotRows):
            rows = Rows(program, [before] if before is not value else [], least_used)
            for cell in way(rows, value, before):
                found += [one for one in (cell, *_fed(rows, cell)) if _fits(rows, one)]
    return [cell for cell in found if _is_faster(cell, known.shape)]


def _is_faster(cell: Cell, state: Shape) -> bool:
    """Whether an operator takes less for states of a shape than nodes for each of them."""
    if cell.op_type == "RNN":
        return elements(state) < fewest_numbers(cell.bounds)
    return elements(state[:-1]) <= MOST_ROWS[cell.op_type]


def _may_be_state(known: Term) -> bool:
    """Whether a value is rows of numbers, of which there is an operator, and perhaps an axis of one in front."""
    shape = known.shape
    is_rows = len(shape) == 2 or (len(shape) == 3 and is_one(shape[0]))
    return known.type.dtype == "float32" and is_rows and isinstance(shape[-1], int) and shape[-1] <= WIDEST_STATE


def _fits(rows: Rows, cell: Cell) -> bool:
    """Whether all states and gates are as wide, and nothing is the same for several rows of them."""
    count, width = rows.count(cell.ends[0]), rows.width(cell.ends[0])
    gates = (*cell.gates, cell.behind) if cell.behind is not None else cell.gates
    states = (*cell.ends, *cell.begins)
    is_as_wide = all(gate.width == width for gate in gates) and all(rows.width(v) == width for v in states)
    return is_as_wide and all(are_equal(rows.count(v), count) for v in (*states, *cell.read, *cell.fed))


def _fed(rows: Rows, cell: Cell) -> Iterator[Cell]:
    """The cell where what it reads is made of the state that it finds, as a decoder's is of what it gave before. A GRU
    resets all of the state that its candidates are made of.
    """
    if cell.op_type == "GRU":
        return
    state = cell.begins[0]
    made = {v: over for v in cell.read if (over := rows.over(v, state)) is not None}
    if made:
        gates = list[Affine]()
        for gate in cell.gates:
            whole = Affine({v: m for v, m in gate.parts.items() if v not in made}, gate.more)
            for v in (v for v in made if v in gate.parts):
                whole = whole.plus(made[v].times(gate.parts[v]))
            gates.append(whole)
        yield cell._replace(gates=tuple(gates), fed=tuple(made))
