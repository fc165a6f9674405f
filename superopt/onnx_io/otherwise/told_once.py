"""Models with constants that say the same again and again along an axis: told once, as ONNX's operators broadcast.

Scripts expand a weight to what it is subtracted from, and exporters fold that: of 64 centres of 128 numbers, repeated
for 196 places, six megabytes, of which a file may have a copy for each centre. What is repeated is read as that then,
which what computes with differences from it needs to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import product
from superopt.onnx_io.operator_kinds import ELEMENTWISE
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of
from superopt.onnx_io.surgery import bury
from superopt.relations import are_equal, is_one

FIRST_OPSET = 7
"""Before it, values are broadcast where an attribute says so."""

LEAST, LEAST_TIMES, LEAST_RUN = 2**10, 8, 128
"""Fewer elements, said less often, are left; and where fewer of them stand in a row or are the same beside each other:
runtimes broadcast short rows slowly.
"""

LARGE, LEAST_RUN_OF_LARGE = 2**18, 48
"""Of so many elements, reading all takes longer than broadcasting rows that are not so short. Of fewer, sums are left,
which are no differences: onnxruntime 1.32 takes 22 µs to add one row of 384 to 128, and 20 to add as many; to 512 rows
of 768 it takes 242, and 297.
"""


def told_once(program: Program) -> dict[int, Put]:
    """How to let constants say once what they repeat, by the places of what reads them."""
    if opset_of(program.model) < FIRST_OPSET:
        return {}
    found = of_nodes(program, partial(_repeated, program))
    return {place: partial(_put, constants) for place, constants in found.items() if constants}


def _repeated(program: Program, node: ir.Node) -> dict[int, Array]:
    """Which inputs of a node are constants that are repeated along axes that another one has, and what they repeat."""
    names = [v.name or "" for v in node.inputs if v is not None] if is_a(node, *ELEMENTWISE) else []
    if len(names) < max(len(node.inputs), 2) or any(name not in program.values for name in names) or _masks(node):
        return {}
    shapes = {name: program.values[name].shape for name in names}
    others = [shapes[name] for name in names if name not in program.constants]
    found = dict[int, Array]()
    for which, name in enumerate(names):
        rank, size = len(shapes[name]), product(shapes[name])
        is_long = isinstance(size, int) and size >= (LARGE if node.op_type == "Add" else LEAST)
        if name not in program.constants or not is_long or sum(not is_one(d) for d in shapes[name]) < 2:
            continue
        along = [
            a
            for a, d in enumerate(shapes[name])
            if not is_one(d) and any(len(o) >= rank - a and are_equal(o[a - rank], d) for o in others)
        ]
        if along and (data := data_of(program, node.inputs[which])) is not None:
            once = _once(data, along)
            several = once.size > 1  # a number that is everywhere is folded as any other weight is
            least = LEAST_RUN if data.size < LARGE else LEAST_RUN_OF_LARGE
            if several and once.size * LEAST_TIMES <= data.size and _run(data.shape, once.shape) >= least:
                found[which] = once.copy()
            program.constants.forget(name)  # of which little is kept
    return found


def _masks(node: ir.Node) -> bool:
    """Whether a node gives scores of which shares are made: runtimes know masks of these as exporters write them."""
    return any(is_a(user, "Softmax") for user, _ in node.outputs[0].uses())


def _once(data: Array, axes: list[int]) -> Array:
    """What is the same along some axes to the last bit, at one place of these."""
    bits = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}")  # zeros have signs
    for a in axes:
        first, second = (bits.take([i], axis=a) for i in (0, 1))
        if (first == second).all() and (first == bits).all():
            bits = first
    return bits.view(data.dtype)


def _run(shape: tuple[int, ...], once: tuple[int, ...]) -> int:
    """How many elements beside each other are the same, or none of them."""
    last = [a for a, d in enumerate(shape) if d > 1][::-1]
    alike = [once[a] != shape[a] for a in last]
    count = alike.index(not alike[0]) if (not alike[0]) in alike else len(alike)
    return int(np.prod([shape[a] for a in last[:count]]))


def _put(constants: Mapping[int, Array], draft: Draft, node: ir.Node) -> bool:
    """Let a node read what is said once."""
    made, given = draft.nodes("once"), [v for i, v in enumerate(node.inputs) if i in constants]
    for which, data in constants.items():
        node.replace_input_with(which, made.held(data))
    draft.model.graph.insert_before(node, made.nodes)
    bury(draft.model, [v for v in given if v is not None])
    return True
