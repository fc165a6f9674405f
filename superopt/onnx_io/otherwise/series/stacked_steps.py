"""Models that multiply what steps make by a matrix at once, where it stands side by side, and not each step alone.

The other half of `steps`: a script appends what a layer makes of each state to a list, and stacks it in the end.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.otherwise.linear import LEAST_STEPS, are_few, is_linear, layer, multiplied
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import integers_of
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a


def stacked_steps(program: Program) -> dict[int, Put]:
    """How to multiply at once what is joined, by the places of the joins."""
    joins = [(i, node) for i, node in enumerate(program.model.graph) if is_a(node, "Concat")]
    found = [i for i, node in joins if _is_of_a_layer(program, node)]
    return dict.fromkeys(found, partial(_multiply, program))


def _is_of_a_layer(program: Program, join: ir.Node) -> bool:
    """Whether a node joins what one layer makes of several values, for nothing else, along no axis of its rows."""
    known, layers = program.term(join.outputs[0]), [_layer(v) for v in join.inputs]
    nodes = [node for node in layers if node is not None]
    if known is None or len(nodes) < max(LEAST_STEPS, len(layers)) or len({layer(node) for node in nodes}) > 1:
        return False
    if len({_spread(program, v) for v in join.inputs}) > 1 or (axes := _spread(program, join.inputs[0])) is None:
        return False
    rank, axis = known.type.rank, concat_axis(join)
    for node in nodes:
        x = program.term(node.inputs[0])
        if (
            x is None
            or not is_read_once(node.outputs[0])
            or x.type.rank + len(axes) != rank
            or not is_linear(program, node, x.type.rank)
        ):
            return False
        if not are_few(list(x.shape[:-1])):
            return False
    return axis % rank != rank - 1 and all(a % rank != rank - 1 for a in axes)


def _layer(value: ir.Value | None) -> ir.Node | None:
    """The node whose value a join reads, with further axes of one where it has such."""
    node = None if value is None else value.producer()
    if is_a(node, "Unsqueeze") and node.inputs[0] is not None:
        if len(node.outputs[0].uses()) > 1 or node.outputs[0].is_graph_output():
            return None
        return node.inputs[0].producer()
    return node


def _spread(program: Program, value: ir.Value | None) -> tuple[int, ...] | None:
    """The further axes that a value was given; none where it was given none, None where they are not known."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Unsqueeze":
        return ()
    axes = integers_of(program, node, "axes", 1)
    return None if axes is None else tuple(axes)


def _multiply(program: Program, draft: Draft, join: ir.Node) -> bool:
    """Join what a layer reads, and multiply that."""
    if not _is_of_a_layer(program, join):  # what another one changed
        return False
    made, read, some = draft.nodes("joined"), list[ir.Value](), None
    for value in join.inputs:
        node, some = None if value is None else value.producer(), _layer(value)
        assert node is not None
        assert some is not None
        x = some.inputs[0]
        assert x is not None
        more = [v for v in node.inputs[1:] if v is not None]
        read.append(x if node is some else made.node("Unsqueeze", [x, *more], list(node.attributes.values())))
    assert some is not None
    result = multiplied(made, some, made.joined(read, concat_axis(join)))
    return draft.replace(join, made, [result])
