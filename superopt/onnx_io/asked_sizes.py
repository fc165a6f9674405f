"""The sizes of a value that is left otherwise, as they were: exporters ask them for a batch of any size."""

from __future__ import annotations

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.said import is_a


def asks_sizes(node: ir.Node) -> bool:
    """Whether a node reads no place of a value, and all its sizes."""
    return is_a(node, "Shape") and not node.attributes


def sizes_before(made: NewNodes, value: ir.Value, axis: int, shape: Shape) -> ir.Value:
    """The sizes of a value, but for one axis, along which it had so many places as its shape says."""
    size, rank = shape[axis], len(shape)
    assert isinstance(size, int)
    left = made.node("Shape", [value])
    parts = [made.sliced(left, 0, axis, 0)] if axis else []
    parts.append(made.integers([size]))
    parts += [made.sliced(left, axis + 1, rank, 0)] if axis + 1 < rank else []
    return made.joined(parts, 0)
