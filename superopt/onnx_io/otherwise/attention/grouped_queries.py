"""Attention in which several heads of queries share keys and values: these are not repeated for each of the heads.

Exporters repeat them (`repeat_kv` of transformers; grouped-query attention, Ainslie et al. 2023), which is all of the
cache in each step of a decoder. The rows of r heads lie one after the other, so that `x[g·r + i] · y[g]` for all i
below r is one product of r times as many rows. `search/rewriting/finders/grouped.py` finds that in pieces; here it is
told by the nodes of a whole model, however little time there is to search. Of 512 tokens, two heads of keys of 64 and
eight of queries onnxruntime 1.32 takes 139 µs for a step's attention, 80 as ONNX's Attention and 48 so; of 2,048 tokens
935, 325 and 197. Of 64 queries and more it takes the same in all three ways.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import data_of, shape_of
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number
from superopt.onnx_io.surgery import bury
from superopt.relations import equal_shapes

MOST = 63
"""Of more queries, where so many are known, nothing is gained."""

_SWAPPED = [0, 1, 3, 2]

_FAR = 8
"""No more operators stand between what is repeated and a product."""


class Repeated(NamedTuple):
    """Matrices of `batch heads rows columns`, each repeated for several heads of the other factor."""

    once: ir.Value
    many: ir.Value
    """All of them, heads and repetitions on one axis."""
    heads: int
    times: int
    is_turned: bool
    """Whether rows and columns change places."""
    scales: tuple[tuple[str, ir.Value], ...]
    """By which numbers all of it is multiplied or divided."""


class Grouped(NamedTuple):
    """A product of the rows of all heads that share a matrix."""

    factor: Repeated
    rows: list[int]
    """As what its first factor is viewed, as a Reshape takes it."""
    apart: list[int]
    """As what its result is."""


def grouped_queries(program: Program) -> dict[int, Put]:
    """How to multiply the rows of several heads at once, by the places of the products."""
    found = of_nodes(program, lambda node: _grouped(program, node) if is_a(node, "MatMul") else None)
    return dict.fromkeys(found, partial(_put, program))


def _grouped(program: Program, node: ir.Node) -> Grouped | None:
    """What a product is one of, with more rows; None where its second factor is not repeated."""
    x, y = (shape_of(program, value) for value in node.inputs)
    if x is None or y is None or len(x) != 4 or len(y) != 4 or not equal_shapes(x[:2], y[:2]):
        return None
    found = _repeated(program, node.inputs[1])
    if found is None or (isinstance(x[2], int) and x[2] > MOST):
        return None
    each, many = (x[2], found.times * x[2]) if isinstance(x[2], int) else (-1, -1)
    rows = [_left(x[0]), found.heads, many, _left(x[3])]
    return Grouped(found, rows, [_left(x[0]), found.heads * found.times, each, _left(y[3])])


def _left(size: Dim) -> int:
    """A size as a Reshape takes it that stays where it is."""
    return size if isinstance(size, int) else 0


def _repeated(program: Program, value: ir.Value | None) -> Repeated | None:
    """How a value repeats matrices; None where it does not."""
    scales, is_turned = list[tuple[str, ir.Value]](), False
    for _ in range(_FAR):
        node = None if value is None else value.producer()
        if node is None:
            return None
        if is_a(node, "Transpose") and "perm" in node.attributes:
            if list(node.attributes["perm"].as_ints()) != _SWAPPED:
                return None
            is_turned, value = not is_turned, node.inputs[0]
        elif (scaled := _scaled(program, node)) is not None:
            value, scale = scaled
            scales.append((node.op_type, scale))
        else:
            once = _once(program, node)
            return None if once is None else Repeated(*once, is_turned, tuple(scales))
    return None


def _scaled(program: Program, node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """What a node makes smaller, and by which one number."""
    pairs = ((0, 1), (1, 0)) if is_a(node, "Mul") else ((0, 1),) if is_a(node, "Div") else ()
    for of, by in pairs:
        value, scale = node.inputs[of], node.inputs[by]
        data, shape = data_of(program, scale), shape_of(program, value)
        if value is None or scale is None or data is None or data.size != 1 or shape is None or data.ndim > len(shape):
            continue
        size = abs(float(data.reshape(())))
        return (value, scale) if (0.0 < size <= 1.0 if node.op_type == "Mul" else size >= 1.0) else None
    return None


def _once(program: Program, merged: ir.Node) -> tuple[ir.Value, ir.Value, int, int] | None:
    """What is repeated along an axis of its own behind heads, which a node merges with these, and what it gives; how
    many heads there are, and how often each.
    """
    wide = _read(merged, "Reshape")
    apart = None if wide is None else _read(wide.producer(), "Expand")
    once = None if apart is None else _read(apart.producer(), "Unsqueeze", "Reshape")
    shapes = [s for v in (once, apart, wide, merged.outputs[0]) if (s := shape_of(program, v)) is not None]
    if once is None or [len(s) for s in shapes] != [4, 5, 5, 4]:
        return None
    (x, viewed, spread, result) = shapes
    heads, times = spread[1:3]
    if not isinstance(heads, int) or not isinstance(times, int) or times < 2:
        return None
    fits = (
        equal_shapes(viewed, _inserted(x, 1))
        and equal_shapes(spread, _inserted(x, times))
        and equal_shapes(result, (x[0], heads * times, *x[2:]))
    )
    return (once, merged.outputs[0], heads, times) if fits else None


def _read(node: ir.Node | None, *op_types: str) -> ir.Value | None:
    """The first input of a node, if it is of one of these operators."""
    return node.inputs[0] if is_a(node, *op_types) else None


def _inserted(shape: Shape, size: Dim) -> Shape:
    return (*shape[:2], size, *shape[2:])


def _put(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let a node multiply the rows of all heads that share a matrix."""
    grouped, (x, read) = _grouped(program, node), node.inputs
    if grouped is None or x is None or read is None:  # another has changed it
        return False
    made, factor = draft.nodes("grouped"), grouped.factor
    rows = made.reshaped(x, grouped.rows)
    for op_type, scale in reversed(factor.scales):
        rows = made.node(op_type, [rows, scale])
    matrices = made.transposed(factor.once, _SWAPPED) if factor.is_turned else factor.once
    result = made.reshaped(made.node("MatMul", [rows, matrices]), grouped.apart)
    draft.replace(node, made, [result])
    users = [user for user, _ in factor.many.uses() if is_a(user, "Shape") and user.graph is draft.model.graph]
    for user in users:
        _measure_once(factor, draft, user)
    bury(draft.model, [read])
    return True


def _measure_once(factor: Repeated, draft: Draft, node: ir.Node) -> None:
    """Let the shape of what is repeated be told by what is there once: exporters read sizes from where they are."""
    made, part = draft.nodes("measured"), slice(number(node, "start", 0), number(node, "end", len(_SWAPPED)))
    once = made.node("Shape", [factor.once], list(node.attributes.values()))
    shape = made.node("Mul", [once, made.integers([1, factor.times, 1, 1][part])])
    draft.replace(node, made, [shape])
