"""Nodes that compute each row of a batch of that row alone, where the rows stand along the first axis.

Each is right whatever the numbers are. What is not known to be so, as products of sizes that differ, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from superopt.onnx_io.operator_kinds import ELEMENTWISE, REDUCES
from superopt.onnx_io.order import is_read
from superopt.onnx_io.said import concat_axis, input_of, number, text
from superopt.onnx_io.turns.batch import Batch, Keeps


def _of_first(batch: Batch, node: ir.Node) -> bool:
    """What is computed of its first input, by others that are no rows: a convolution and its weights."""
    first, *others = batch.reads(node)
    return first in batch.rows and batch.rows.isdisjoint(others)


def _one_of_first(batch: Batch, node: ir.Node) -> bool:
    """The same of what gives one value: where the largest of a map is it counts in all rows."""
    return _of_first(batch, node) and not any(map(is_read, node.outputs[1:]))


def _elementwise(batch: Batch, node: ir.Node) -> bool:
    """What broadcasts: rows to rows, and to these what is the same for all."""
    rank = len(batch.shape(node.outputs[0]) or ())
    read = [(v in batch.rows, v, batch.shape(v)) for v in batch.reads(node)]
    return all(shape is not None and len(shape) == rank if own else batch.is_alike(v, rank) for own, v, shape in read)


def _along(default: Callable[[int], int]) -> Keeps:
    """What goes along another axis than that of rows, by an attribute and a default that depends on the opset; and by
    factors and the like that are the same for all.
    """

    def keeps(batch: Batch, node: ir.Node) -> bool:
        axis, shape = number(node, "axis", default(batch.opset)), batch.shape(node.inputs[0])
        alike = shape is not None and all(batch.is_alike(v, len(shape)) for v in batch.reads(node)[1:])
        return alike and _of_first(batch, node) and axis % len(shape or (1,)) != 0

    return keeps


def _of_all(batch: Batch, node: ir.Node) -> bool:
    """What reads the same row of each of its inputs."""
    return batch.rows.issuperset(batch.reads(node))


def _joined(batch: Batch, node: ir.Node) -> bool:
    """Rows side by side."""
    shape = batch.shape(node.outputs[0])
    return _of_all(batch, node) and bool(concat_axis(node) % len(shape or (1,)))


def _axes(place: int) -> Keeps:
    """What goes along axes that are known, by an attribute or an input at a place, and not along that of rows."""

    def keeps(batch: Batch, node: ir.Node) -> bool:
        axes, rank = batch.told(node, "axes", place), len(batch.shape(node.inputs[0]) or ())
        return _of_first(batch, node) and bool(axes) and all(axis % rank for axis in axes)

    return keeps


def _unsqueezed(batch: Batch, node: ir.Node) -> bool:
    """Rows with more axes, all behind the first."""
    axes, rank = batch.told(node, "axes", 1), len(batch.shape(node.outputs[0]) or ())
    return _of_first(batch, node) and all(axis % rank for axis in axes)


def _turned(batch: Batch, node: ir.Node) -> bool:
    """Rows, the one input, whose further axes are in another order."""
    told = node.attributes.get("perm")
    return told is not None and not told.as_ints()[0]


def _product(batch: Batch, node: ir.Node) -> bool:
    """Products of rows with a matrix that is the same for all, or with matrices of the same rows."""
    left, right = batch.reads(node)
    ours, theirs = (len(batch.shape(v) or ()) for v in (left, right))
    if left in batch.rows and right in batch.rows:
        return ours == theirs >= 3
    if left in batch.rows:
        return ours == theirs == 2 or (ours >= theirs and batch.is_alike(right, ours))
    return theirs >= max(ours, 3) and batch.is_alike(left, theirs)


def _linear(batch: Batch, node: ir.Node) -> bool:
    """A product with a matrix that is the same for all, and what is added to each row alike."""
    bias = input_of(node, 2)
    return _of_first(batch, node) and not number(node, "transA", 0) and (bias is None or batch.is_alike(bias, 2))


def _resized(batch: Batch, node: ir.Node) -> bool:
    """Maps of another size, by factors that are known."""
    factors = batch.told(node, "scales", 2 if node.op_type == "Resize" and batch.opset >= 11 else 1)
    is_whole = not {"axes", "keep_aspect_ratio_policy"} & set(node.attributes) and len(node.inputs) < 4
    is_cropped = text(node, "coordinate_transformation_mode") == "tf_crop_and_resize"
    return _of_first(batch, node) and is_whole and not is_cropped and factors[:1] == [1]


def _padded(batch: Batch, node: ir.Node) -> bool:
    """Rows with more around each of them."""
    pads = batch.told(node, "pads", 1)
    return _of_first(batch, node) and len(node.inputs) < 4 and bool(pads) and not (pads[0] or pads[len(pads) // 2])


def _reshaped(batch: Batch, node: ir.Node) -> bool:
    """Rows of another shape: as many elements before the first axis ends."""
    return _of_first(batch, node) and not number(node, "allowzero", 0) and batch.row_shape(node) is not None


def _flattened(batch: Batch, node: ir.Node) -> bool:
    """Rows, the one input, as rows of a matrix."""
    return number(node, "axis", 1) % len(batch.shape(node.inputs[0]) or (1, 1)) == 1


def _normalized(batch: Batch, node: ir.Node) -> bool:
    """What is normalized by means that are known."""
    trains = number(node, "training_mode", 0) or any(v.name for v in node.outputs[1:])
    return _of_first(batch, node) and not trains


def _dropped(batch: Batch, node: ir.Node) -> bool:
    """What drops nothing, as it does but in training."""
    return _one_of_first(batch, node) and len(node.inputs) < 3


def _looked_up(batch: Batch, node: ir.Node) -> bool:
    """What numbers of rows choose from a table, or a table's numbers of all rows."""
    table, at = node.inputs
    if table in batch.rows:
        return at not in batch.rows and number(node, "axis", 0) % len(batch.shape(table) or (1,)) != 0
    return number(node, "axis", 0) == 0


_FURTHER = (
    *("Atan", "Cast", "Clip", "Greater", "GreaterOrEqual", "Identity", "IsInf", "Mean", "Mod", "PRelu", "Sum", "Tan"),
    *("ThresholdedRelu", "Xor"),
)
_OF_ROWS = (
    *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace", "GlobalAveragePool"),
    *("GlobalLpPool", "GlobalMaxPool", "GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "MaxPool"),
    *("QLinearConv", "SpaceToDepth"),
)
KEEPS: Mapping[str, Keeps] = {
    **dict.fromkeys((*ELEMENTWISE, *_FURTHER), _elementwise),
    **dict.fromkeys(_OF_ROWS, _one_of_first),
    **dict.fromkeys((*REDUCES, "Squeeze"), _axes(1)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _along(lambda opset: -1 if opset >= 13 else 1)),
    **dict.fromkeys(("LayerNormalization", "LpNormalization", "TopK"), _along(lambda _: -1)),
    **dict.fromkeys(("ArgMax", "ArgMin", "Split"), _along(lambda _: 0)),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _along(lambda _: 1)),
    "BatchNormalization": _normalized,
    "Concat": _joined,
    "GridSample": _of_all,
    "Dropout": _dropped,
    "Flatten": _flattened,
    "Gather": _looked_up,
    "Gemm": _linear,
    "MatMul": _product,
    "Pad": _padded,
    "Reshape": _reshaped,
    "Resize": _resized,
    "Slice": _axes(3),
    "Transpose": _turned,
    "Unsqueeze": _unsqueezed,
    "Upsample": _resized,
}
"""By ONNX's operators."""
