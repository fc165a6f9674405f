"""Nodes that sample maps linearly, with zeros around: where maps and places lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.otherwise.maps.laid import Laid, laid
from superopt.onnx_io.otherwise.sampled import LINEAR
from superopt.onnx_io.program import Program
from superopt.onnx_io.said import number, text
from superopt.term import Term


class Sampling(NamedTuple):
    """Maps and places, and the name of these; the shape of what is found there, the sizes of each map, and whether
    places count from the middle of the first element to that of the last.
    """

    maps: Laid
    places: Laid
    grid: str
    shape: Shape
    sizes: tuple[int, int]
    corners: bool


def sampling(program: Program, made: Mapping[str, Term], node: ir.Node | None) -> Sampling | None:
    """What a node samples, in 32 bits, where its maps have two axes of several elements each, of known sizes."""
    if node is None:
        return None
    mode, padding = text(node, "mode"), text(node, "padding_mode")
    x, grid = (program.term(v) for v in node.inputs)
    if x is None or grid is None or mode not in LINEAR or padding not in ("", "zeros") or x.type.rank != 4:
        return None
    height, width = x.shape[2:]
    if not isinstance(height, int) or not isinstance(width, int) or min(height, width) < 2:
        return None
    if x.type.dtype != "float32" or grid.type.dtype != "float32":
        return None
    shape, corners = (*x.shape[:2], *grid.shape[1:3]), bool(number(node, "align_corners", 0))
    return Sampling(laid(x, made), laid(grid, made), grid.label, shape, (height, width), corners)
