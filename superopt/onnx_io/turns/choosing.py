"""Which nodes go into turns, one for each row of a batch: those that come first, as far as that should pay."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim, Shape, product
from superopt.onnx_io.operator_kinds import VIEWS
from superopt.onnx_io.order import read_values
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import number
from superopt.onnx_io.turns.batch import Batch
from superopt.substitution import elements, substitute, symbols

LEAST_ELEMENTS = 2**20
"""The elements of all rows that the node with the most of them reads and makes, at least: fewer stay in caches anyway.
"""

LEAST_ROW = 2**13
"""The elements of one row that it reads and makes, at least: a turn takes some 10 µs by itself."""

LEAST_SHARE = 0.25
"""Of all that is read and made of rows, what goes into turns, at least: for the first layers alone, before those whose
weights are large, nothing is changed.
"""

WEIGHED = 0.25
"""How much an element of weights counts, which is read in each turn, for one of rows that is not read from memory."""

_16_BITS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_FREE = frozenset({*VIEWS, "Identity"})
"""What reads and makes nothing."""


class Chosen(NamedTuple):
    """Nodes of a graph that go into turns, and the rows that they are given."""

    batch: Batch
    given: list[ir.Value]
    nodes: dict[ir.Node, None]


def batch_size(program: Program, sizes: Mapping[str, int]) -> Dim | None:
    """The size of the first axis of the largest input, where that has several rows."""
    shapes = [v.shape for name in program.inputs if (v := program.values.get(name)) is not None and v.shape]
    shape = max(shapes, key=lambda s: _elements(s, sizes), default=())
    return shape[0] if len(shape) > 1 and _elements(shape[:1], sizes) > 1 else None


def _elements(shape: Shape, sizes: Mapping[str, int]) -> int:
    """How many elements a shape has at these sizes, where all others are one."""
    whole = product(shape)
    return elements((substitute(whole, {s: sizes[s] for s in symbols(whole) & sizes.keys()}),))


def chosen(batch: Batch, sizes: Mapping[str, int]) -> Chosen | None:
    """The nodes that should pay: of those that come first, as many as save the most."""
    batch.add(v for v in batch.graph.inputs if v.name in batch.program.inputs and batch.begins(v))
    batch.add(v for node in batch.graph if _is_outer(node) for v in node.outputs if batch.begins(v))
    given, taken = set(batch.rows), list[ir.Node]()
    for node in batch.graph:
        if not _is_outer(node):
            taken += [node] if batch.take(node) else []
        elif given.isdisjoint(node.outputs):
            batch.leave(node, read_values(node))
    passed = [_passed(batch, node, sizes) for node in taken]
    saved = list(accumulate(rows - WEIGHED * weights for rows, weights in passed))
    count = max(range(len(taken)), key=lambda i: (saved[i], i), default=-1) + 1
    rows = [rows for rows, _ in passed]
    most = max(rows[:count], default=0)
    is_little = most < LEAST_ROW or most * _elements((batch.size,), sizes) < LEAST_ELEMENTS
    if not count or is_little or saved[count - 1] < 0 or sum(rows[:count]) < LEAST_SHARE * sum(rows):
        return None
    nodes = dict.fromkeys(taken[:count])
    read = dict.fromkeys(v for node in nodes for v in batch.reads(node) if v in given)
    return Chosen(batch, list(read), nodes)


def _is_outer(node: ir.Node) -> bool:
    """Whether a node casts what the model is given, or to what it gives, from 16 bits or to them: what is within is
    looked at in 32.
    """
    if node.op_type != "Cast" or node.inputs[0] is None:
        return False
    given, (made,) = node.inputs[0], node.outputs
    to = ir.DataType(number(node, "to", 0))
    return (given.is_graph_input() and given.dtype in _16_BITS) or (made.is_graph_output() and to in _16_BITS)


def _passed(batch: Batch, node: ir.Node, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The elements of one row that a node reads and makes, and those of weights that it reads."""
    if node.op_type in _FREE:
        return 0, 0
    values = dict.fromkeys([*batch.reads(node), *node.outputs])
    rows = sum(_elements((batch.shape(v) or ())[1:], sizes) for v in values if v in batch.rows)
    held = [v for v in values if batch.program.is_constant(v)]
    return rows, sum(_elements(batch.shape(v) or (), sizes) for v in held)
