"""Models that sample maps in the one way that runtimes are fast at: from the corner, with zeros around.

GridSample looks its map up between four neighbours. In onnxruntime 1.32 that is planned once for all channels where
places count from the outer corner of the map (`align_corners=0`) and zeros stand around it, and else computed anew for
each channel, one number after the other: 32 channels of 64 by 64 take 0.18 ms, and 2 to 14. Which of these is meant is
a matter of where each place lies, and places are two numbers for all channels. With w columns, a place g that counts
from the middle of the first column to that of the last is `g·(w − 1)/w`; and a place beyond the middle of the last one
is that middle where the border is repeated, in which what stands beside it counts for nothing. Optical flow and frame
interpolation (RAFT, Teed and Deng 2020; RIFE, Huang et al. 2022) warp their maps so, and ask for corners and borders.

That is so of finite places and maps, and of places no farther than numbers tell columns apart. Of others what is given
differs, and in part runtimes' own values of these are undefined: they convert the place to an integer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put, of_nodes
from superopt.onnx_io.said import is_a, number, text
from superopt.relations import is_one

LINEAR = ("", "bilinear", "linear")
"""How a map is looked up between places, by any name that versions of the operator have for it."""


def sampled(program: Program) -> dict[int, Put]:
    """How to sample maps so, by the places of what does it otherwise."""
    return dict.fromkeys(of_nodes(program, partial(_may_be_so, program)), partial(_place_anew, program))


def _may_be_so(program: Program, node: ir.Node) -> bool:
    """Whether a node samples maps of two axes linearly, with corners or borders, and all that asks is known."""
    if not is_a(node, "GridSample") or text(node, "mode") not in LINEAR:
        return False
    x, grid = (program.term(v) for v in node.inputs)
    if x is None or grid is None or x.type.rank != 4 or grid.type.dtype not in ("float32", "float64"):
        return False
    if is_one(x.shape[1]):  # of a single channel other places take as long as what they save
        return False
    padding = text(node, "padding_mode")
    return padding in ("border", "reflection") or (padding in ("", "zeros") and _corners(node))


def _place_anew(program: Program, draft: Draft, node: ir.Node) -> bool:
    """Let a node read other places, for which it counts from the outer corner and has zeros around."""
    x, grid = node.inputs
    assert x is not None
    assert grid is not None
    shape, dtype = program.values[x.name or ""].shape, np.dtype(program.values[grid.name or ""].type.dtype)
    made = draft.nodes("places")
    share = _share(made, x, shape, dtype)
    padding = text(node, "padding_mode")
    if padding == "reflection":
        grid = _reflected(made, grid, dtype)
    if padding == "border" or (padding == "reflection" and not _corners(node)):
        most = made.held(np.ones((), dtype)) if _corners(node) else share
        grid = made.node("Max", [made.node("Min", [grid, most]), made.node("Neg", [most])])
    if _corners(node):
        grid = made.node("Mul", [grid, share])
    draft.model.graph.insert_before(node, made.nodes)
    node.replace_input_with(1, grid)
    node.attributes["align_corners"] = ir.AttrInt64("align_corners", 0)
    node.attributes["padding_mode"] = ir.AttrString("padding_mode", "zeros")
    return True


def _share(made: NewNodes, x: ir.Value, shape: Shape, dtype: np.dtype[Any]) -> ir.Value:
    """Of the width of a map and its height, what is left without half a column, or row, at both ends."""
    sizes = [d for d in shape[2:] if isinstance(d, int)]
    if len(sizes) == 2:
        shares = [(size - 1) / size for size in reversed(sizes)]
        one = shares[0] == shares[1]  # a number, as runtimes are slow at rows of two
        return made.held(np.array(shares[0] if one else shares, dtype))
    ends = [ir.AttrInt64("start", 2), ir.AttrInt64("end", 4)]
    turned = made.node("Gather", [made.node("Shape", [x], ends), made.integers((1, 0))])
    size = made.cast(turned, ir.DataType.from_numpy(dtype))
    return made.node("Div", [made.node("Sub", [size, made.held(np.ones((), dtype))]), size])


def _reflected(made: NewNodes, grid: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """Places between -1 and 1, as those beyond are seen in mirrors at both ends: `1 - |g - 4⌊(g + 1)/4⌋ - 1|`."""
    one, four = (made.held(np.array(n, dtype)) for n in (1, 4))
    turns = made.node("Floor", [made.node("Div", [made.node("Add", [grid, one]), four])])
    within = made.node("Sub", [grid, made.node("Mul", [turns, four])])
    return made.node("Sub", [one, made.node("Abs", [made.node("Sub", [within, one])])])


def _corners(node: ir.Node) -> bool:
    """Whether places count from the middle of the first element to that of the last."""
    return bool(number(node, "align_corners", 0))
