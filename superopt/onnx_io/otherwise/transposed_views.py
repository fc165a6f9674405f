"""Models that merge axes, transpose, and take the axes apart again: transposed at once.

torch's newer exporter views keys as a stack of matrices, transposes these and views them as heads again, as often as an
attention is called (`Reshape(x, [-1, tokens, width])`, 0 2 1, `Reshape`). Where sizes are open runtimes do not see that a
product takes in what is transposed: each step of a decoder copies all of its cache, one number after the other. 512
tokens of eight heads of 64 take 138 µs in onnxruntime 1.32, twice as long as their product with a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.reading import shape_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import is_a
from superopt.onnx_io.surgery import bury, replace_node
from superopt.relations import are_equal, equal_shapes

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


def transposed_views(program: Program) -> dict[int, Put]:
    """How to transpose at once, by the places of what takes axes apart again."""
    found = ((place, _perm(program, node)) for place, node in enumerate(program.model.graph))
    return {place: partial(_put, perm) for place, perm in found if perm is not None}


def _perm(program: Program, node: ir.Node) -> list[int] | None:
    """How the axes of what is viewed first are permuted in the end; None where they are not, or also taken apart."""
    moved = _made(node, *_VIEWS)
    before = None if moved is None else _made(moved, "Transpose")
    if moved is None or before is None or not is_a(before, *_VIEWS):
        return None
    shapes = [shape_of(program, value) for value in (before.inputs[0], before.outputs[0], node.outputs[0])]
    (x, merged, result) = shapes
    groups = None if x is None or merged is None else _groups(x, merged)
    if x is None or result is None or groups is None:
        return None
    order = moved.attributes["perm"].as_ints() if "perm" in moved.attributes else range(len(groups))[::-1]
    perm = list(chain.from_iterable(groups[a] for a in order))
    return perm if equal_shapes(tuple(x[a] for a in perm), result) else None


def _made(node: ir.Node, *op_types: str) -> ir.Node | None:
    """What makes the first input of a node of these operators, for that alone where it is a Transpose."""
    value = node.inputs[0] if is_a(node, *op_types) else None
    made = None if value is None else value.producer()
    if value is None or made is None or made.graph is not node.graph:
        return None
    is_own = len(value.uses()) == 1 and not value.is_graph_output()
    return made if is_own or not is_a(made, "Transpose") else None


def _groups(x: Shape, merged: Shape) -> list[list[int]] | None:
    """Which axes of x one after the other make each of what they are merged to; None where one is taken apart."""
    groups, left = list[list[int]](), list(range(len(x)))
    for size in merged:
        group = list[int]()
        while left and not are_equal(product([x[a] for a in group]), size):
            group.append(left.pop(0))
        if not are_equal(product([x[a] for a in group]), size):
            return None
        groups.append(group)
    if not groups or not are_equal(product([x[a] for a in left]), 1):
        return None
    groups[-1] += left
    return groups


def _put(perm: Sequence[int], draft: Draft, node: ir.Node) -> bool:
    """Let what was viewed first be transposed."""
    moved = _made(node, *_VIEWS)
    before = None if moved is None else _made(moved, "Transpose")
    if moved is None or before is None or before.inputs[0] is None:  # another has changed it
        return False
    made, read = NewNodes("transposed", draft.taken), [v for v in node.inputs if v is not None]
    turned = made.node("Transpose", [before.inputs[0]], [ir.AttrInt64s("perm", perm)])
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [turned])
    bury(draft.model, read)
    return True
