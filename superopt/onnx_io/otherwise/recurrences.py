"""Models that compute a recurrence of a series as one product, where each of its steps is linear.

Exponential smoothing, Holt and Winters' forecasts and linear filters are scripted step by step, and exporters write out
each: hundreds of sums of single places. All that they make is linear in the series (Kalman 1960), so it is a matrix.
Of a series with a step that is infinite or not a number all steps of the result are not numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from superopt.arithmetic import Array
from superopt.errors import InvalidModel
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.steps import step_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.surgery import replace_node

LONGEST, LEAST_NODES, MOST_EACH = 512, 16, 32
"""A series has so many steps, at most; so many nodes are left out, at least, for each of which so many elements of the
matrix come in, at most.
"""

SMALLEST, LARGEST = 1e-20, 1e4
"""Between these are the largest number that a step is multiplied by, and what is added below the latter."""


@dataclass(frozen=True, eq=False)
class _Sum:
    """Steps of a series along an axis, each times a number, and a number that is added."""

    series: ir.Value
    axis: int
    times: Array
    more: float

    def alike(self, other: _Sum) -> bool:
        """Whether both are of the same series."""
        return self.series is other.series and self.axis == other.axis


def recurrences(program: Program) -> dict[int, Put]:
    """How to compute what is linear in a series, by the places of what joins it."""
    if not any(node.op_type == "Concat" and len(node.inputs) > 1 for node in program.model.graph):
        return {}
    sums = _sums(program, program.model.graph)
    places = {i: node for i, node in enumerate(program.model.graph) if _joined(sums, program, node) is not None}
    return {i: lambda draft, node: _multiply(program, draft, node) for i in places}


def _sums(program: Program, graph: ir.Graph) -> dict[ir.Value, _Sum]:
    """The values of a graph that are linear in a series."""
    found: dict[ir.Value, _Sum] = {}
    for node in graph:
        if node.domain not in ONNX_DOMAIN:
            continue
        made = _begun(program, node) if node.op_type == "Gather" else _made(program, found, node)
        if made is not None and _is_exact(made):
            found[node.outputs[0]] = made
    return found


def _is_exact(made: _Sum) -> bool:
    """Whether its numbers are such that what it loses on the way, as all that is small beside what is added to it, or
    what is scaled down below the least number, is lost by the matrix too.
    """
    largest = np.abs(made.times).max()
    return bool(SMALLEST <= largest <= LARGEST and abs(made.more) <= LARGEST) or not (made.times.any() or made.more)


def _begun(program: Program, node: ir.Node) -> _Sum | None:
    """A step of a series of floating-point numbers along one of its last two axes."""
    step = step_of(program, node, node.outputs[0])
    if step is None:
        return None
    known = program.values[step.series.name or ""]
    length, last = known.shape[step.axis], known.type.rank - 1
    if known.type.dtype not in ("float32", "float64") or not isinstance(length, int) or length > LONGEST:
        return None
    if last < 1 or step.axis < last - 1 or not -length <= step.at < length:
        return None
    times = np.zeros(length)
    times[step.at] = 1.0
    return _Sum(step.series, step.axis, times, 0.0)


def _made(program: Program, found: Mapping[ir.Value, _Sum], node: ir.Node) -> _Sum | None:
    """What a node makes of sums of one series, and of single numbers."""
    combine = _WAYS.get(node.op_type)
    if combine is None or not any(v in found for v in node.inputs if v is not None):
        return None
    read: list[_Sum | float] = []
    for value in node.inputs:
        number = found.get(value) if value is not None else None
        one = number if number is not None else _number(program, found, node, value)
        if one is None:
            return None
        read.append(one)
    own = [one for one in read if isinstance(one, _Sum)]
    pairs = [(s.times, s.more) if isinstance(s, _Sum) else (np.zeros_like(own[0].times), s) for s in read]
    if not all(own[0].alike(s) for s in own) or (made := combine(pairs, [isinstance(s, _Sum) for s in read])) is None:
        return None
    times, more = made
    if not (np.isfinite(times).all() and np.isfinite(more)):
        return None
    return _Sum(own[0].series, own[0].axis, times, more)


_Pair = tuple[Array, float]


def _scaled(read: list[_Pair], running: list[bool]) -> _Pair | None:
    """A product with a number."""
    if all(running):
        return None
    (times, more), (_, number) = read if running[0] else read[::-1]
    return times * number, more * number


def _divided(read: list[_Pair], running: list[bool]) -> _Pair | None:
    (times, more), (_, number) = read
    return None if running[1] or not number else (times / number, more / number)


_WAYS: dict[str, Callable[[list[_Pair], list[bool]], _Pair | None]] = {
    "Add": lambda read, _: (read[0][0] + read[1][0], read[0][1] + read[1][1]),
    "Div": _divided,
    "Identity": lambda read, _: read[0],
    "Mul": _scaled,
    "Neg": lambda read, _: (-read[0][0], -read[0][1]),
    "Sub": lambda read, _: (read[0][0] - read[1][0], read[0][1] - read[1][1]),
}


def _number(program: Program, found: Mapping[ir.Value, _Sum], node: ir.Node, value: ir.Value | None) -> float | None:
    """A constant that is one number, and of no higher rank than what it meets."""
    name = value.name or "" if value is not None else ""
    known = program.values.get(name)
    if name not in program.constants or known is None or any(not isinstance(d, int) or d != 1 for d in known.shape):
        return None
    series = next(found[v].series for v in node.inputs if v is not None and v in found)
    if known.type.rank >= program.values[series.name or ""].type.rank:
        return None
    try:
        return float(program.data(name).reshape(-1)[0])
    except InvalidModel:
        return None


def _joined(sums: Mapping[ir.Value, _Sum], program: Program, join: ir.Node) -> list[_Sum] | None:
    """What a node joins, if all is linear in one series, along the axis of its steps, and many nodes compute it."""
    if join.op_type != "Concat" or join.domain not in ONNX_DOMAIN:
        return None
    found = [_spread(sums, program, value) for value in join.inputs]
    read = [one for one in found if one is not None]
    if len(read) < len(found) or not read or not all(read[0].alike(one) for one in read):
        return None
    rank = program.values[read[0].series.name or ""].type.rank
    nodes = _computing(sums, join)
    is_less = nodes >= LEAST_NODES and read[0].times.size * len(read) <= MOST_EACH * nodes
    return read if is_less and join.attributes["axis"].as_int() % rank == read[0].axis else None


def _computing(sums: Mapping[ir.Value, _Sum], join: ir.Node) -> int:
    """How many nodes combine steps to what a node joins."""
    stack, seen = [v for v in join.inputs if v is not None], set[ir.Node]()
    while stack:
        node = stack.pop().producer()
        if node is not None and node not in seen and node.op_type in (*_WAYS, "Unsqueeze"):
            seen.add(node)
            stack.extend(v for v in node.inputs if v is not None and v in sums)
    return sum(node.op_type in _WAYS for node in seen)


def _spread(sums: Mapping[ir.Value, _Sum], program: Program, value: ir.Value | None) -> _Sum | None:
    """A sum that has the axis of its series again, of one place."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Unsqueeze" or node.domain not in ONNX_DOMAIN or node.inputs[0] is None:
        return None
    made = sums.get(node.inputs[0])
    if made is None:
        return None
    axes = list(node.attributes["axes"].as_ints()) if "axes" in node.attributes else None
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if axes is None and given is not None and (given.name or "") in program.constants:
        axes = program.data(given.name or "").reshape(-1).tolist()
    rank = program.values[made.series.name or ""].type.rank
    return made if axes is not None and [a % rank for a in axes] == [made.axis] else None


def _multiply(program: Program, draft: Draft, join: ir.Node) -> bool:
    """Multiply a series by a matrix."""
    read = _joined(_sums(program, draft.model.graph), program, join)
    if read is None:  # another has left it out
        return False
    series, made = read[0].series, NewNodes("series", draft.taken)
    known = program.values[series.name or ""]
    is_last = read[0].axis == known.type.rank - 1
    dtype, more = np.dtype(known.type.dtype), np.array([one.more for one in read])
    matrix = np.stack([one.times for one in read]).astype(dtype)
    held = made.held(np.ascontiguousarray(matrix.T) if is_last else matrix)
    result = made.node("MatMul", [series, held] if is_last else [held, series])
    if more.any():
        result = made.node("Add", [result, made.held((more if is_last else more[:, None]).astype(dtype))])
    draft.model.graph.insert_before(join, made.nodes)
    replace_node(draft.model, join, [result])
    return True
