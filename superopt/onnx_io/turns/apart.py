"""Models whose loops have turns that do nothing which could as well be done apart from them."""

from __future__ import annotations

import onnx_ir as ir

from superopt.errors import left_undone
from superopt.onnx_io.bodies import bodies
from superopt.onnx_io.files import load
from superopt.onnx_io.importer import understand
from superopt.onnx_io.program import Program
from superopt.onnx_io.turns.ahead import ahead
from superopt.onnx_io.turns.behind import behind
from superopt.onnx_io.turns.hoisted import hoisted
from superopt.onnx_io.turns.recurrent import recurrent


def apart(program: Program) -> ir.Model | None:
    """A model of a program with all of that apart: what turns share, what is of a turn's own row, and what is only
    given; and with what is left of a recurrent network as one operator. None where that is nothing. The interface stays
    as it is.
    """
    if not bodies(program):  # each way would copy the model first
        return None
    found = None
    for way in (hoisted, ahead, behind, recurrent):
        with left_undone(way.__name__):  # loops stay as they were
            if (model := way(program)) is not None:
                program, found = understand(load(model)), model
    return found
