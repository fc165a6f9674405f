"""What nodes read that compute what stands beside each other along an axis apart from each other, alike for any size.

The nodes that compute fewer places are the same ones. `superopt/operators/along.py` says as much of terms.
"""

from __future__ import annotations

import onnx_ir as ir

from superopt.onnx_io.operator_kinds import ELEMENTWISE, REDUCES
from superopt.onnx_io.otherwise.unread.cuts import Need
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import LAST_BY_ITSELF, data_of, integers_of, reduction, shape_of
from superopt.onnx_io.said import input_of, is_a, number, permuted, text
from superopt.onnx_io.skeleton import opset_of
from superopt.relations import are_equal, is_one

_OTHERS = (
    "BatchNormalization", "Cast", "Clip", "Concat", "Dropout", "Greater", "GreaterOrEqual", "Identity", "PRelu",
    "Split", "Squeeze", "Sum", "Tan", "ThresholdedRelu", "Transpose", "Unsqueeze",
)  # fmt: skip
EACH = ELEMENTWISE.union(_OTHERS)
"""What gives each place along most axes of the same place of what it reads, and is written alike for any number."""

PRODUCTS = ("Einsum", "Gemm", "MatMul")
"""What gives each row of the same row of a first factor."""

BYTES = ("DequantizeLinear", "QuantizeLinear")
ROWS = (*REDUCES, *BYTES, "LayerNormalization", "LogSoftmax", "Softmax")
"""What gives each place along some axes of the same place."""


def of_each(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    """The same of what gives each place of the same place."""
    shapes = [shape_of(program, value) for value in node.inputs]
    given = shape_of(program, node.outputs[0])
    if given is None or shapes[0] is None:
        return None
    if is_a(node, "Concat", "Split") and number(node, "axis", int(is_a(node, "Concat"))) % len(given) == of.axis:
        return None
    if is_a(node, "BatchNormalization", "Dropout") and _trains(program, node):
        return None
    if is_a(node, "BatchNormalization") and of.axis < 2:
        return None
    if is_a(node, "Transpose"):
        return {0: of._replace(axis=permuted(node, len(given))[of.axis])}
    if is_a(node, "Squeeze", "Unsqueeze"):
        axes, rank = integers_of(program, node, "axes", 1), max(len(given), len(shapes[0]))
        gone = sorted(axis % rank for axis in axes or ())
        kept = [axis for axis in range(rank) if axis not in gone]
        if not gone or (is_a(node, "Unsqueeze") and of.axis in gone):
            return None
        return {0: of._replace(axis=kept[of.axis] if is_a(node, "Squeeze") else kept.index(of.axis))}
    found = dict[int, Need]()
    alone = is_a(node, "BatchNormalization", "Dropout", "Split", "Clip")
    for place, shape in enumerate(shapes[:1] if alone else shapes):
        if shape is None:
            return None
        axis = of.axis - len(given) + len(shape)
        if axis >= 0 and are_equal(shape[axis], given[of.axis]):
            found[place] = Need(axis, of.places)
        elif axis >= 0 and not is_one(shape[axis]):
            return None
    return found


def _trains(program: Program, node: ir.Node) -> bool:
    """Whether a norm may be by means of the very batch, or a Dropout may draw what it drops, or either says so."""
    told = input_of(node, 2) if is_a(node, "Dropout") else None
    data = data_of(program, told)
    draws = told is not None and (data is None or bool(data.any()))
    return draws or bool(number(node, "training_mode", 0)) or any(value.uses() for value in node.outputs[1:])


def of_rows(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    """The same of what is computed along other axes: reductions, norms, softmaxes, and layers of bytes."""
    given = shape_of(program, node.outputs[0])
    if given is None or any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return None
    if (found := reduction(program, node, *REDUCES)) is not None:
        kept = [a for a in range(len(found.shape)) if found.keeps or a not in found.axes]
        return None if kept[of.axis] in found.axes else {0: of._replace(axis=kept[of.axis])}
    axis = number(node, "axis", 1 if is_a(node, *BYTES) else -1) % max(len(given), 1)
    if is_a(node, "LayerNormalization"):
        ranks = [len(shape_of(program, value) or given) for value in node.inputs[1:] if value is not None]
        return {0: of} if of.axis < axis and max(ranks, default=0) <= len(given) - axis else None
    if is_a(node, *BYTES):
        scale = shape_of(program, node.inputs[1])
        apart = scale is not None and (not scale or (len(scale) == 1 and axis != of.axis))
        return {0: of} if apart and not number(node, "block_size", 0) else None
    is_row = is_a(node, "Softmax", "LogSoftmax") and opset_of(program.model) >= LAST_BY_ITSELF
    return {0: of} if is_row and axis != of.axis else None


def of_products(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    """The same of products of matrices: rows of the first, stacks of both; of an einsum what has the same letter."""
    shapes = [shape_of(program, value) for value in node.inputs]
    given = shape_of(program, node.outputs[0])
    if given is None or None in shapes:
        return None
    if is_a(node, "MatMul"):
        back, ranks = of.axis - len(given), [len(shape or ()) for shape in shapes]
        if min(ranks) < 2 or back == -1:
            return None
        axes = [back + rank if -back <= rank and (place == 0 or back < -2) else -1 for place, rank in enumerate(ranks)]
    elif is_a(node, "Gemm"):
        if of.axis:
            return None
        axes = [number(node, "transA", 0), -1, len(shapes[2] or ()) - 2 if len(shapes) > 2 else -1][: len(shapes)]
    else:
        read, _, result = text(node, "equation").replace(" ", "").partition("->")
        if "." in read or len(result) != len(given) or len(set(result)) < len(result):
            return None
        words = read.split(",")
        if any(word.count(result[of.axis]) > 1 for word in words):
            return None
        axes = [word.find(result[of.axis]) for word in words]
    found = {place: Need(axis, of.places) for place, axis in enumerate(axes) if axis >= 0}
    sizes = {place: (shapes[place] or ())[need.axis] for place, need in found.items()}
    as_many = {place for place, size in sizes.items() if are_equal(size, given[of.axis])}
    if any(place not in as_many and not is_one(size) for place, size in sizes.items()):
        return None
    return {place: need for place, need in found.items() if place in as_many}
