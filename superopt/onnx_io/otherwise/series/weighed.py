"""Values that are sums of steps of one series, each times a number, however they are computed.

What is computed of steps is followed through sums and products with numbers: each value is a row of such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.errors import InvalidModel
from superopt.onnx_io.otherwise.series.steps import step_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN

LONGEST = 512
"""A series has so many steps, at most."""

SMALLEST, LARGEST = 1e-20, 1e4
"""Between these are the largest number that a step is multiplied by, and what is added below the latter."""


@dataclass(frozen=True, eq=False)
class Sum:
    """Steps of a series along an axis, each times a number, and a number that is added."""

    series: ir.Value
    axis: int
    times: Array
    more: float

    def alike(self, other: Sum) -> bool:
        """Whether both are of the same series."""
        return self.series is other.series and self.axis == other.axis


def sums_of(program: Program, graph: ir.Graph) -> dict[ir.Value, Sum]:
    """The values of a graph that are linear in a series."""
    found: dict[ir.Value, Sum] = {}
    for node in graph:
        if node.domain not in ONNX_DOMAIN:
            continue
        made = _begun(program, node) if node.op_type == "Gather" else _made(program, found, node)
        if made is not None and _is_exact(made):
            found[node.outputs[0]] = made
    return found


def _is_exact(made: Sum) -> bool:
    """Whether its numbers are such that what it loses on the way, as all that is small beside what is added to it, or
    what is scaled down below the least number, is lost by the matrix too.
    """
    largest = np.abs(made.times).max()
    return bool(SMALLEST <= largest <= LARGEST and abs(made.more) <= LARGEST) or not (made.times.any() or made.more)


def _begun(program: Program, node: ir.Node) -> Sum | None:
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
    return Sum(step.series, step.axis, times, 0.0)


def _made(program: Program, found: Mapping[ir.Value, Sum], node: ir.Node) -> Sum | None:
    """What a node makes of sums of one series, and of single numbers."""
    combine = WAYS.get(node.op_type)
    if combine is None or not any(v in found for v in node.inputs if v is not None):
        return None
    read: list[Sum | float] = []
    for value in node.inputs:
        number = found.get(value) if value is not None else None
        one = number if number is not None else _number(program, found, node, value)
        if one is None:
            return None
        read.append(one)
    own = [one for one in read if isinstance(one, Sum)]
    pairs = [(s.times, s.more) if isinstance(s, Sum) else (np.zeros_like(own[0].times), s) for s in read]
    if not all(own[0].alike(s) for s in own) or (made := combine(pairs, [isinstance(s, Sum) for s in read])) is None:
        return None
    times, more = made
    if not (np.isfinite(times).all() and np.isfinite(more)):
        return None
    return Sum(own[0].series, own[0].axis, times, more)


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


WAYS: dict[str, Callable[[list[_Pair], list[bool]], _Pair | None]] = {
    "Add": lambda read, _: (read[0][0] + read[1][0], read[0][1] + read[1][1]),
    "Div": _divided,
    "Identity": lambda read, _: read[0],
    "Mul": _scaled,
    "Neg": lambda read, _: (-read[0][0], -read[0][1]),
    "Sub": lambda read, _: (read[0][0] - read[1][0], read[0][1] - read[1][1]),
}
"""How values are combined, by the operators that do so; None where that is no sum."""


def _number(program: Program, found: Mapping[ir.Value, Sum], node: ir.Node, value: ir.Value | None) -> float | None:
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
