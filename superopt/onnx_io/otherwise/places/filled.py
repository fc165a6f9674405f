"""Models that fill a value box by box: the boxes beside each other, and zeros around them.

Stereo networks shift the features of one picture against those of the other, and a script puts what it makes of each
shift into a volume of zeros: `volume[:, :, i, :, i:] = f(left[..., i:], right[..., :-i])`. Torch's older exporter
writes a ScatterND of the whole volume for that, which is told the place of each row, and its newer one several of parts
of it, between transposes. What there is in the end is told by the boxes that parts of other values are in, whatever
joins, cuts and moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import onnx_ir as ir

from superopt.onnx_io.naming import by_name
from superopt.onnx_io.otherwise.places.assignments import is_known
from superopt.onnx_io.otherwise.places.beside import Beside
from superopt.onnx_io.otherwise.places.boxes import Parts, UntoldError, parts_by_name
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of

LEAST = 3
"""So many assignments that are not needed any more are worth it: networks that shift channels through time put those
of either way and all others (TSM, Lin et al. 2019), and some shift them four ways (S²-MLP, Yu et al. 2022).
"""

MOST_PARTS = 3
"""So many parts for each of them, at most: what is cut finer is joined more slowly than it is put. Of three single
numbers the four parts for each took a third longer.
"""

LEAST_OPSET = 11
"""Before it, widths of zeros around a value were attributes."""

PADDED = ("float16", "float32", "float64", "int32", "int64")
"""What is padded in all opsets."""


def filled(program: Program) -> dict[int, Put]:
    """How to put boxes beside each other, by the places of what gives a value with all of them."""
    graph = program.model.graph
    scatters = {node.outputs[0].name or "" for node in graph if is_a(node, "ScatterND", "ScatterElements")}
    if len(scatters) < LEAST or opset_of(program.model) < LEAST_OPSET:
        return {}
    known = parts_by_name(program)
    put = _put_into(program, known, scatters)
    values = {value.name or "": value for node in graph for value in node.outputs}
    ends = {name for name in known if put[name] and _is_end(program, known, values[name])}
    found = dict[int, Put]()
    for i, node in enumerate(graph):
        name = node.outputs[0].name or "" if node.outputs else ""
        if name not in ends or program.values[name].type.dtype not in PADDED:
            continue
        if len(put[name] - (ends - {name})) < LEAST:
            continue
        beside = Beside(program, program.values[name].shape, known[name])
        if beside.count <= MOST_PARTS * len(put[name]):
            found[i] = partial(_put, beside)
    return found


def _put_into(program: Program, known: Mapping[str, Parts], scatters: set[str]) -> dict[str, frozenset[str]]:
    """The assignments that values come from of which the parts are known."""
    put = dict[str, frozenset[str]]()
    for step in program.steps:
        for name in known.keys() & set(step.outputs):
            before = [put[given] for given in step.inputs if given in put]  # what is covered is not read any more, too
            put[name] = frozenset[str]().union(*before, {name} & scatters)
    return put


def _is_end(program: Program, known: Mapping[str, Parts], value: ir.Value) -> bool:
    """Whether something else reads a value than what joins, cuts and moves it."""
    users = [user for user, _ in value.uses()]
    return value.is_graph_output() or any(
        not is_known(program, user) and all((v.name or "") not in known for v in user.outputs) for user in users
    )


def _put(beside: Beside, draft: Draft, node: ir.Node) -> bool:
    """Join the boxes."""
    made = draft.nodes("filled")
    try:
        joined = beside.written(made, by_name(draft.model.graph))
    except UntoldError:
        return False
    return draft.replace(node, made, [joined])
