"""Nodes that compute each row of a batch of that row alone, where the rows stand along the first axis.

Each is right whatever the numbers are. What is not known to be so, as products of sizes that differ, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape, are_equal, is_one
from superopt.onnx_io.program import Program
from superopt.onnx_io.skeleton import ONNX_DOMAIN
from superopt.onnx_io.turns.forms import ELEMENTWISE, REDUCES
from superopt.onnx_io.turns.rows import number

Keeps: TypeAlias = "Callable[[Batch, ir.Node], bool]"
"""Whether a node that reads rows gives rows, each of that row alone."""


@dataclass
class Batch:
    """The values of a graph whose first axis is that of a batch of some size, and of each row computed alone."""

    program: Program
    graph: ir.Graph
    size: Dim
    opset: int
    rows: set[ir.Value] = field(default_factory=set)

    def take(self, node: ir.Node) -> bool:
        """Whether a node computes rows of rows, and which these are is known from now on."""
        keeps = _KEEPS.get(node.op_type) if node.domain in ONNX_DOMAIN else None
        given = [v for v in node.outputs if v.uses() or v.is_graph_output()]
        if keeps is None or not given or not all(map(self.begins, given)) or not keeps(self, node):
            return False
        self.rows.update(given)
        return True

    def shape(self, value: ir.Value | None) -> Shape | None:
        """The shape of a value, where it is known."""
        known = self.program.values.get(value.name or "") if value is not None and value.graph is self.graph else None
        return None if known is None else known.shape

    def begins(self, value: ir.Value) -> bool:
        """Whether the first axis of a value has the size of the batch."""
        shape = self.shape(value)
        return bool(shape) and shape is not None and are_equal(shape[0], self.size)

    def told(self, node: ir.Node, name: str, place: int) -> list[float]:
        """Numbers that an attribute says or, in later opsets, an input at a place; none where they are not known."""
        if (attribute := node.attributes.get(name)) is not None:
            return list(attribute.value)
        value = node.inputs[place] if len(node.inputs) > place else None
        name = "" if value is None else value.name or ""
        return self.program.data(name).flatten().tolist() if name in self.program.constants else []

    def row_shape(self, node: ir.Node) -> list[int] | None:
        """What tells a Reshape the shape that one row has as a batch; None where that depends on other sizes."""
        name = node.inputs[1].name or "" if node.inputs[1] is not None else ""
        if name in self.program.constants:
            return [1, *map(int, self.program.data(name).flat[1:])]
        known = self.program.sizes[name].dims.flat[1:] if name in self.program.sizes else [None]
        return None if not all(isinstance(d, int) for d in known) else [1, *map(int, known)]

    def reads(self, node: ir.Node) -> list[ir.Value]:
        """What a node reads."""
        return [v for v in node.inputs if v is not None]

    def is_alike(self, value: ir.Value, rank: int) -> bool:
        """Whether a value that is no row broadcasts to all rows alike, in a result of a rank."""
        shape = self.shape(value)
        return shape is not None and (len(shape) < rank or (len(shape) == rank and is_one(shape[0])))


def _of_first(batch: Batch, node: ir.Node) -> bool:
    """What is computed of its first input, by others that are no rows: a convolution and its weights."""
    first, *others = batch.reads(node)
    return first in batch.rows and batch.rows.isdisjoint(others)


def _one_of_first(batch: Batch, node: ir.Node) -> bool:
    """The same of what gives one value: where the largest of a map is it counts in all rows."""
    return _of_first(batch, node) and not any(v.uses() or v.is_graph_output() for v in node.outputs[1:])


def _elementwise(batch: Batch, node: ir.Node) -> bool:
    """What broadcasts: rows to rows, and to these what is the same for all."""
    rank = len(batch.shape(node.outputs[0]) or ())
    read = [(v in batch.rows, v, batch.shape(v)) for v in batch.reads(node)]
    return all(shape is not None and len(shape) == rank if own else batch.is_alike(v, rank) for own, v, shape in read)


def _along(default: Callable[[int], int]) -> Keeps:
    """What goes along another axis than that of rows, by an attribute and a default that depends on the opset."""

    def keeps(batch: Batch, node: ir.Node) -> bool:
        axis, shape = number(node, "axis", default(batch.opset)), batch.shape(node.inputs[0])
        return _of_first(batch, node) and shape is not None and axis % max(len(shape), 1) != 0

    return keeps


def _of_all(batch: Batch, node: ir.Node) -> bool:
    """What reads the same row of each of its inputs."""
    return batch.rows.issuperset(batch.reads(node))


def _joined(batch: Batch, node: ir.Node) -> bool:
    """Rows side by side."""
    shape = batch.shape(node.outputs[0])
    return _of_all(batch, node) and bool(number(node, "axis", 0) % len(shape or (1,)))


def _axes(batch: Batch, node: ir.Node) -> bool:
    """What goes along axes that are known, and not along that of rows."""
    axes, rank = batch.told(node, "axes", 1), len(batch.shape(node.inputs[0]) or ())
    return _of_first(batch, node) and bool(axes) and all(axis % rank for axis in axes)


def _unsqueezed(batch: Batch, node: ir.Node) -> bool:
    """Rows with more axes, all behind the first."""
    axes, rank = batch.told(node, "axes", 1), len(batch.shape(node.outputs[0]) or ())
    return _of_first(batch, node) and all(axis % rank for axis in axes)


def _turned(batch: Batch, node: ir.Node) -> bool:
    """Rows whose further axes are in another order."""
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
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return _of_first(batch, node) and not number(node, "transA", 0) and (bias is None or batch.is_alike(bias, 2))


def _resized(batch: Batch, node: ir.Node) -> bool:
    """Maps of another size, by factors that are known."""
    factors = batch.told(node, "scales", 2 if node.op_type == "Resize" and batch.opset >= 11 else 1)
    is_whole = not {"axes", "keep_aspect_ratio_policy"} & set(node.attributes) and len(node.inputs) < 4
    return _of_first(batch, node) and is_whole and not _is_cropped(node) and factors[:1] == [1]


def _is_cropped(node: ir.Node) -> bool:
    told = node.attributes.get("coordinate_transformation_mode")
    return told is not None and told.as_string() == "tf_crop_and_resize"


def _padded(batch: Batch, node: ir.Node) -> bool:
    """Rows with more around each of them."""
    pads = batch.told(node, "pads", 1)
    return _of_first(batch, node) and len(node.inputs) < 4 and bool(pads) and not (pads[0] or pads[len(pads) // 2])


def _sliced(batch: Batch, node: ir.Node) -> bool:
    """Parts of each row."""
    axes, rank = batch.told(node, "axes", 3), len(batch.shape(node.inputs[0]) or ())
    return _of_first(batch, node) and bool(axes) and all(axis % rank for axis in axes)


def _reshaped(batch: Batch, node: ir.Node) -> bool:
    """Rows of another shape: as many elements before the first axis ends."""
    return _of_first(batch, node) and not number(node, "allowzero", 0) and batch.row_shape(node) is not None


def _flattened(batch: Batch, node: ir.Node) -> bool:
    """Rows as rows of a matrix."""
    return number(node, "axis", 1) % len(batch.shape(node.inputs[0]) or (1, 1)) == 1


def _normalized(batch: Batch, node: ir.Node) -> bool:
    """What is normalized by means that are known."""
    return _one_of_first(batch, node) and not number(node, "training_mode", 0)


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
_KEEPS: Mapping[str, Keeps] = {
    **dict.fromkeys((*ELEMENTWISE, *_FURTHER), _elementwise),
    **dict.fromkeys(_OF_ROWS, _one_of_first),
    **dict.fromkeys(REDUCES, _axes),
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
    "Slice": _sliced,
    "Squeeze": _axes,
    "Transpose": _turned,
    "Unsqueeze": _unsqueezed,
    "Upsample": _resized,
}
"""By ONNX's operators."""
