"""Models that merge axes, transpose, and take the axes apart again: transposed at once, as products take it in.

torch's newer exporter views keys as a stack of matrices, transposes these and views them as heads again, wherever an
attention is called (`Reshape(x, [-1, tokens, width])`, 0 2 1, `Reshape`). Where sizes are open, runtimes do not see
that a product takes in what is transposed: each step of a decoder copies all of its cache, one number after the other.
512 tokens of eight heads of 64 take 138 µs in onnxruntime 1.32, twice as long as their product with a query. Where they
are known, views are one Reshape, which also merges keys that are repeated for heads with what these are of.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape, product
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.order import is_read_once
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import shape_of, told
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, permuted
from superopt.onnx_io.surgery import bury
from superopt.relations import are_equal, equal_shapes


class Turned(NamedTuple):
    """A transpose of what is viewed first."""

    sizes: list[int] | None
    """As what it is viewed before, as a Reshape takes it; None where it is transposed as it is."""
    perm: list[int]


def transposed_views(program: Program) -> dict[int, Put]:
    """How to transpose at once, by the places of what takes axes apart again."""
    found = of_nodes(program, lambda node: _turned(program, node) if is_a(node, *VIEWS) else None)
    return dict.fromkeys(found, partial(_put, program))


def _turned(program: Program, node: ir.Node) -> Turned | None:
    """How axes are permuted that are taken apart in the end, and were so before or need not be merged; None where what
    is transposed is nothing that a product would take in.
    """
    moved = _made(node, *VIEWS)
    before = None if moved is None else _made(moved, "Transpose")
    if moved is None or not is_a(before, *VIEWS):
        return None
    values = (before.inputs[0], moved.outputs[0], node.outputs[0])
    shapes = [s for value in values if (s := shape_of(program, value)) is not None]
    groups = _groups(shapes[2], shapes[1]) if len(shapes) == len(values) else None
    if groups is None:
        return None
    x, _, result = shapes
    perm = permuted(moved, len(groups))
    axes = [axis for merged in range(len(perm)) for axis in groups[perm.index(merged)]]
    apart, order = tuple(result[axis] for axis in axes), [axes.index(axis) for axis in range(len(axes))]
    if equal_shapes(apart, x):
        return Turned(None, order)
    are_matrices = len(perm) > 2 and perm == [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2]
    sizes = told(apart) if are_matrices and len(groups[-1]) == len(groups[-2]) == 1 else None
    return None if sizes is None else Turned(sizes, order)


def _made(node: ir.Node, *op_types: str) -> ir.Node | None:
    """What makes the first input of a node of these operators, for that alone where it is a Transpose."""
    value = node.inputs[0] if is_a(node, *op_types) else None
    made = None if value is None else value.producer()
    if value is None or made is None or made.graph is not node.graph:
        return None
    return made if is_read_once(value) or not is_a(made, "Transpose") else None


def _groups(apart: Shape, merged: Shape) -> list[list[int]] | None:
    """Which axes one after the other make each of what they are merged to; None where one is taken apart."""
    groups, left = list[list[int]](), list(range(len(apart)))
    for size in merged:
        group = list[int]()
        while left and not are_equal(product([apart[a] for a in group]), size):
            group.append(left.pop(0))
        if not are_equal(product([apart[a] for a in group]), size):
            return None
        groups.append(group)
    if not groups or not are_equal(product([apart[a] for a in left]), 1):
        return None
    groups[-1] += left
    return groups


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let what was viewed first be transposed."""
    turned, moved = _turned(program, node), _made(node, *VIEWS)
    before = None if moved is None else _made(moved, "Transpose")
    if turned is None or before is None or before.inputs[0] is None:  # another has changed it
        return False
    made, read = draft.nodes("transposed"), [v for v in node.inputs if v is not None]
    x = before.inputs[0]
    if turned.sizes is not None:
        x = made.reshaped(x, turned.sizes)
    result = made.transposed(x, turned.perm)
    draft.replace(node, made, [result])
    bury(draft.model, read)
    return True
