"""Where networks that stand side by side end in a stack that is weighed and summed: by numbers for each, or their mean.

So scripts write mixtures of experts: `torch.einsum("be,bed->bd", gates, torch.stack(experts, 1))`, or `(…).sum(1)`.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.networks.ends import Ends
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import concat_axis, listed, number, text
from superopt.onnx_io.skeleton import ONNX_DOMAIN


class _Stack(NamedTuple):
    """Values that are stacked along an axis, of the rank that the stack has, and the nodes that do so."""

    values: tuple[ir.Value, ...]
    axis: int
    rank: int
    nodes: tuple[ir.Node, ...]


def stacked_ends(program: Program, node: ir.Node) -> list[Ends]:
    """The stack that a node weighs and sums, or takes the mean of."""
    read = [v for v in node.inputs if v is not None]
    if node.domain not in ONNX_DOMAIN or not read or len(node.outputs) != 1:
        return []
    if node.op_type == "Einsum" and len(read) == 2:
        return _contracted(program, node, read)
    if node.op_type not in ("ReduceMean", "ReduceSum") or number(node, "keepdims", 1):
        return []
    axes, summed = listed(node, "axes") or [], read[0].producer()
    if (stack := _stack(program, read[0])) is not None and axes in ([stack.axis], [stack.axis - stack.rank]):
        mean = node.op_type == "ReduceMean"
        return [Ends(stack.values, (node, *stack.nodes), None, factor=1.0 / len(stack.values) if mean else 1.0)]
    if node.op_type == "ReduceMean" or summed is None or summed.op_type != "Mul" or not is_read_once(read[0]):
        return []
    for one, other in (summed.inputs, summed.inputs[::-1]):
        stack, column = _stack(program, one), None if other is None else other.producer()
        if stack is None or column is None or stack.axis != stack.rank - 2 or column.op_type != "Unsqueeze":
            continue
        are_last = axes in ([stack.axis], [-2]) and (listed(column, "axes") or []) in ([-1], [stack.rank - 1])
        if are_last and column.inputs[0] is not None:
            return [Ends(stack.values, (node, summed, *stack.nodes), None, weighed=column.inputs[0])]
    return []


def _contracted(program: Program, node: ir.Node, read: list[ir.Value]) -> list[Ends]:
    """The stack whose values a sum of products weighs, each row of them by a number."""
    equation = text(node, "equation").replace(" ", "")
    given, _, made = equation.partition("->")
    told = given.split(",")
    for which in (0, 1):
        stack, labels, gates = _stack(program, read[which]), told[which], told[1 - which]
        if stack is None or "." in equation or len(labels) != stack.rank:
            continue
        along = labels[stack.axis]
        is_rest = labels[: stack.axis] + labels[stack.axis + 1 :] == made and along not in made
        if is_rest and gates == made[:-1] + along and len({*labels}) == len(labels):
            return [Ends(stack.values, (node, *stack.nodes), None, weighed=read[1 - which])]
    return []


def _stack(program: Program, value: ir.Value | None) -> _Stack | None:
    """The values that are stacked in one that but one node reads."""
    join = None if value is None else value.producer()
    known = program.term(value)
    if join is None or value is None or known is None or join.op_type != "Concat" or not is_read_once(value):
        return None
    rank, inputs = known.type.rank, [v for v in join.inputs if v is not None]
    axis, nodes = concat_axis(join) % rank, [v.producer() for v in inputs]
    new = [n for n in nodes if n is not None and n.op_type == "Unsqueeze"]
    values = [n.inputs[0] for n in new if n.inputs[0] is not None]
    are_alike = all(listed(n, "axes") in ([axis], [axis - rank]) for n in new)
    if len(values) < len(join.inputs) or not are_alike or not all(map(is_read_once, inputs)):
        return None
    return _Stack(tuple(values), axis, rank, (join, *new))
