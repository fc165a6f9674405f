"""Functions of bytes that take many operators: what they give of each of the 256 bytes is looked up.

Quantizers leave a GELU as five operators, with pairs between some: of a byte another byte all the same. Of it
onnxruntime 1.32 takes 1.0 ns for each number, more where it is written by a tanh, and 0.62 for a GatherElements of one
axis and the cast in front of it; a Gather takes 3. What the table holds is what the nodes themselves give, each run on
all bytes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from superopt.arithmetic.carrier import Array
from superopt.dim import product
from superopt.onnx_io.constants import run_node
from superopt.onnx_io.otherwise.quantized.stepping import Steps, steps_of
from superopt.onnx_io.otherwise.quantized.unsigned_values import becomes_unsigned
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of, told
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a
from superopt.onnx_io.skeleton import opset_of

LEAST, LEAST_NS, OPSET = 2**13, 1.0, 11
"""Of so many numbers at least, that take so many nanoseconds each, from the opset that has GatherElements."""

MOST_BETWEEN = 64
"""Of more nodes no table is made: each place is asked for its own."""

DEEPEST = 32
"""So many nodes are gone through, one above the other."""

_NS = {
    **dict.fromkeys(("Abs", "Add", "Clip", "LeakyRelu", "Max", "Min", "Neg", "Relu", "Sub"), 0.1),
    **dict.fromkeys(("Div", "Mul", "Reciprocal", "Sqrt", "HardSigmoid"), 0.17),
    **dict.fromkeys(("Exp", "HardSwish", "Sigmoid", "Tanh"), 0.25),
    **dict.fromkeys(("Erf", "Log", "Gelu", "Softsign"), 0.35),
    **dict.fromkeys(("Celu", "Elu", "Selu", "Pow"), 0.8),
    **dict.fromkeys(("Mish", "Softplus"), 2.0),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), 0.03),
}
"""What operators take for each number, about: those that quantize are one with others mostly."""

_PAIRS = ("DequantizeLinear", "QuantizeLinear")


class _Table(NamedTuple):
    """Bytes, the nodes that make others of them in order, the last of which quantizes, and what both stand for."""

    given: ir.Value
    nodes: list[ir.Node]
    steps: Steps


def tabled(program: Program) -> dict[int, Put]:
    """How to look up such bytes, by the places of what quantizes to them."""
    if opset_of(program.model) < OPSET:
        return {}
    found = of_nodes(program, partial(_table, _Sources(program), wait=True))
    return dict.fromkeys(found, partial(_put, program))


def _table(sources: _Sources, node: ir.Node, wait: bool = False) -> _Table | None:
    """What a node that quantizes comes to, if that is a function of bytes that takes long, and no part of one; not yet
    where these become bytes without a sign, if that is waited for.
    """
    program, is_quantizing = sources.program, is_a(node, "QuantizeLinear") and steps_of(node) is not None
    shape = shape_of(program, node.outputs[0]) if is_quantizing else None
    many, source = product(shape or (0,)), None if shape is None else sources.of(node.inputs[0])
    if source is None or shape_of(program, source) != shape or (isinstance(many, int) and many < LEAST):
        return None
    if all(sources.goes_on(user, source) for user, _ in node.outputs[0].uses()):
        return None
    nodes = _between(program, source, node)
    steps = next((steps_of(each) for each in nodes or () if each.inputs[0] is source), None)
    if nodes is None or steps is None:
        return None
    if wait and any(becomes_unsigned(program, value) for value in (source, node.outputs[0])):
        return None
    return _Table(source, nodes, steps)


class _Sources:
    """Of which bytes values are made, number by number."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[ir.Value, ir.Value | None] = {}

    def of(self, value: ir.Value | None, depth: int = DEEPEST) -> ir.Value | None:
        """The bytes of which each number is made, and of constants; None where it is made of anything else."""
        if value is None or not depth:
            return None
        if value not in self._known:
            self._known[value] = self._seen(value, depth - 1)
        return self._known[value]

    def _seen(self, value: ir.Value, depth: int) -> ir.Value | None:
        maker = value.producer()
        if maker is None or not is_a(maker, *_NS):
            return None
        if not is_a(maker, *_PAIRS):
            given = [v for v in maker.inputs if v is not None]
            held = {v: data for v in given if (data := data_of(self.program, v)) is not None}
            found = {self.of(v, depth) for v in given if v not in held}
            return found.pop() if len(found) == 1 and all(data.size == 1 for data in held.values()) else None
        read = maker.inputs[0]
        if read is None or steps_of(maker) is None or data_of(self.program, read) is not None:
            return None
        deeper = self.of(read, depth)
        return deeper if deeper is not None or is_a(maker, "QuantizeLinear") else read

    def goes_on(self, user: ir.Node, source: ir.Value) -> bool:
        """Whether all that is made of the numbers that a node makes of bytes is a function of the same source."""
        if not is_a(user, "DequantizeLinear") or user.outputs[0].is_graph_output():
            return False
        after = [each.outputs[0] for each, _ in user.outputs[0].uses()]
        return bool(after) and all(self.of(value) is source for value in after)


def _between(program: Program, source: ir.Value, last: ir.Node) -> list[ir.Node] | None:
    """The nodes that make a value of bytes, in order, if they take long; None where something else needs what they
    give, or they are too many.
    """
    left, found = [last], dict[ir.Node, None]()
    while left:
        node = left.pop()
        if node in found:
            continue
        found[node] = None
        if len(found) > MOST_BETWEEN:
            return None
        read = [v for v in node.inputs if v is not None and v is not source and data_of(program, v) is None]
        left += [maker for v in read if (maker := v.producer()) is not None]
    for node in found:
        users = [user for user, _ in node.outputs[0].uses()]
        is_first, is_shown = node.inputs[0] is source, node.outputs[0].is_graph_output()
        if node is not last and not is_first and (is_shown or any(user not in found for user in users)):
            return None
    takes_long = last.graph is not None and sum(_NS[node.op_type] for node in found) >= LEAST_NS
    return [node for node in last.graph or () if node in found] if takes_long else None


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Look up what a node quantizes to."""
    found = _table(_Sources(program), node)
    sizes = shape_of(program, node.outputs[0])
    if found is None or sizes is None:
        return False
    made, table = draft.nodes("table"), _looked_up(program, found, draft.model)
    places = made.cast(found.given, ir.DataType.INT32)
    flat = made.reshaped(places, [-1])
    taken = made.node("GatherElements", [made.held(table), flat], [ir.AttrInt64("axis", 0)])
    known = told(sizes)
    shape = made.node("Shape", [found.given]) if known is None else made.integers(known)
    result = made.node("Reshape", [taken, shape])
    return draft.replace(node, made, [result])


def _looked_up(program: Program, found: _Table, model: ir.Model) -> Array:
    """What the nodes give of each byte, from 0 on, and then of those below 0, which count from the end."""
    low, high = found.steps.ends
    values: dict[str, Array] = {found.given.name or "": np.arange(low, high + 1).astype(found.steps.dtype)}
    for node in found.nodes:
        for value in node.inputs:
            data = data_of(program, value)
            if value is not None and data is not None:
                values[value.name or ""] = data.reshape(())
        values |= run_node(node, {v.name or "": values[v.name or ""] for v in node.inputs if v is not None}, model)
    return np.roll(values[found.nodes[-1].outputs[0].name or ""], low)
