"""Layers of several images or signals at once, each with weights of its own: convolutions as groups of channels, and
what pools windows, or gives another shape, as it is.

As `layers` these have one more axis in front. A grouped convolution has the groups behind the rows instead, so rows of
more than one are moved there; what stands between two convolutions is moved past that by the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.at_once.forms import Form
from superopt.onnx_io.at_once.rows import Nodes, Row
from superopt.onnx_io.said import number


def _convolved(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """A convolution of each value with its own kernel, of one value with several, or of several with one."""
    (x, kernel, *bias), shape = rows, _all_known(nodes.shape_of(node.outputs[0]))
    sizes, window = _all_known(x.shape), _all_known(kernel.shape)
    if shape is None or sizes is None or window is None:
        return None
    if kernel.turns is None:
        return _of_all(nodes, node, rows) if all(b.turns is None for b in bias) else None
    groups, count = number(node, "group", 1), kernel.turns
    if any(b.turns is None for b in bias) or not isinstance(count, int) or (x.turns is None and groups > 1):
        return None
    read = [
        x.value if x.turns is None else _behind(nodes, x.value, count, sizes),
        nodes.reshaped(kernel.value, [count * window[0], *window[1:]]),
        *(nodes.reshaped(b.value, [count * window[0]]) for b in bias),
    ]
    said = [a for name, a in node.attributes.items() if name != "group"]
    each = groups if x.turns is None else groups * count
    made = nodes.node("Conv", read, [*said, ir.AttrInt64("group", each)])
    return [Row(_in_front(nodes, made, count, shape), tuple(shape), count)]


def _behind(nodes: Nodes, value: ir.Value, count: int, sizes: Sequence[int]) -> ir.Value:
    """The axis in front as one of channels."""
    rows, channels, *places = sizes
    if rows > 1:
        value = nodes.transposed(value, [1, 0, *range(2, len(sizes) + 1)])
    return nodes.reshaped(value, [rows, count * channels, *places])


def _in_front(nodes: Nodes, value: ir.Value, count: int, sizes: Sequence[int]) -> ir.Value:
    """The channels of each value behind an axis in front again."""
    rows, *others = sizes
    if rows == 1:
        return nodes.reshaped(value, [count, *sizes])
    parted = nodes.reshaped(value, [rows, count, *others])
    return nodes.transposed(parted, [1, 0, *range(2, len(sizes) + 1)])


def _of_all(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """What is computed of each row of a batch alike, of all values as one batch."""
    (x, *others), shape = rows, _all_known(nodes.shape_of(node.outputs[0]))
    sizes = _all_known(x.shape)
    if shape is None or sizes is None or not isinstance(x.turns, int):
        return None
    batch = nodes.reshaped(x.value, [x.turns * sizes[0], *sizes[1:]])
    made = nodes.node(node.op_type, [batch, *(row.value for row in others)], list(node.attributes.values()))
    return [Row(nodes.reshaped(made, [x.turns, *shape]), tuple(shape), x.turns)]


def _reshaped(nodes: Nodes, node: ir.Node, rows: Sequence[Row]) -> Sequence[Row] | None:
    """The same elements in a shape that is known."""
    x, shape = rows[0], _all_known(nodes.shape_of(node.outputs[0]))
    if shape is None or not isinstance(x.turns, int) or any(row.turns is not None for row in rows[1:]):
        return None
    return [Row(nodes.reshaped(x.value, [x.turns, *shape]), tuple(shape), x.turns)]


def _all_known(shape: Shape | None) -> list[int] | None:
    """Sizes that are all numbers."""
    found = [d for d in shape or () if isinstance(d, int)]
    return found if shape is not None and len(found) == len(shape) else None


IMAGE_LAYERS: Mapping[str, Form] = {
    "Conv": _convolved,
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), _of_all),
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze"), _reshaped),
}
"""By the operators that they are of."""
