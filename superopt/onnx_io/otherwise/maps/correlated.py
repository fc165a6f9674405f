"""Models that compare a map with another one that is shifted step by step: products of rows with rows, cut obliquely.

Stereo networks and those of optical flow (PWC-Net, Sun et al. 2018) shift one picture's features step by step, multiply
them by the other's, and sum up channels: what it costs that two places are one, for each shift. Whole maps are moved
for it. The products of a row's places with all that are as near as shifts go are one product of matrices, of which each
row has its own places one further to the right than the one above; cut into rows that are longer by one number, these
stand below each other. What is infinite in one map makes no number of what is beside the other one, where 0 stood.
"""

from __future__ import annotations

from functools import partial

import onnx_ir as ir

from superopt.dim import Shape
from superopt.onnx_io.naming import by_name
from superopt.onnx_io.otherwise.maps.oblique import Band
from superopt.onnx_io.otherwise.maps.shifted import Planes, Run, runs_of
from superopt.onnx_io.otherwise.places.boxes import Part, Parts, UntoldError, parts_of
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import told
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a
from superopt.onnx_io.skeleton import opset_of

LEAST = 4
"""So many shifts one after the other are worth it."""

LEAST_OPSET = 13
"""Before it, axes and widths were attributes."""

MOVED, COPIED = 32, 50
"""To shift, multiply and sum up a number takes as long as so many multiplications in a product of matrices, and to cut
one of what that gives as so many.
"""

LEAST_BLOCK = 16
"""So many places of a row are multiplied at once, at least."""


def correlated(program: Program) -> dict[int, Put]:
    """How to multiply so, by the places of what joins planes of products."""
    graph, opset = program.model.graph, opset_of(program.model)
    joins = [(i, node) for i, node in enumerate(graph) if is_a(node, "Concat") and len(node.inputs) >= LEAST]
    if not joins or opset < LEAST_OPSET or sum(is_a(node, "ReduceMean", "ReduceSum") for node in graph) < LEAST:
        return {}
    plain, padded = _known(program, with_zeros=False), _known(program, with_zeros=True)
    planes, found = Planes(program, plain, padded), dict[int, Put]()
    for i, node in joins:
        name = node.outputs[0].name or ""
        if name not in padded or (runs := _runs(planes, padded[name], program.values[name].shape, node)) is None:
            continue
        if all(run.length >= LEAST and _block(program, run) for run in runs):
            found[i] = partial(_put, program, runs)
    return found


def _known(program: Program, with_zeros: bool) -> dict[str, Parts]:
    """The parts of values."""
    known = dict[str, Parts]()
    for step in program.steps:
        for name, term in zip(step.outputs, step.terms, strict=False):
            try:
                known[name] = parts_of(term, known, with_zeros)
            except UntoldError:
                continue
    return known


def _runs(planes: Planes, parts: Parts, shape: Shape, node: ir.Node) -> list[Run] | None:
    """The planes that a node joins, in runs; None where something else is among them."""
    axis = concat_axis(node) % len(shape)
    ordered = sorted(parts, key=lambda part: _place(part, axis))
    if [part.box[axis] for part in ordered] != [(i, i + 1) for i in range(len(ordered))] or shape[axis] != len(ordered):
        return None
    ways = [planes.of(part, shape, axis) for part in ordered]
    pairs = {(plane.still, plane.shifted) for way in ways for plane in way}
    for pair in sorted(pairs):
        chosen = [next((plane for plane in way if (plane.still, plane.shifted) == pair), None) for way in ways]
        planes_of_both = [plane for plane in chosen if plane is not None]
        if len(planes_of_both) == len(ways):
            return runs_of(planes_of_both)
    return None


def _place(part: Part, axis: int) -> int:
    first = part.box[axis][0]
    return first if isinstance(first, int) else -1


def _block(program: Program, run: Run) -> int:
    """How many places of a row to multiply at once; 0 where that takes longer than shifting maps."""
    still = program.values[run.first.still].shape
    channels, width = still[1], still[3]
    if not isinstance(channels, int) or not isinstance(width, int) or channels % run.first.groups:
        return 0
    blocks = [d for d in range(1, width + 1) if width % d == 0 and (d >= max(LEAST_BLOCK, run.length) or d == width)]
    size, each = blocks[0] + run.length - 1, channels // run.first.groups
    return blocks[0] if size * (each + COPIED) <= MOVED * run.length * each else 0


def _put(program: Program, runs: list[Run], draft: Draft, node: ir.Node) -> bool:
    """Join the planes of each run."""
    made, there = draft.nodes("correlated"), by_name(draft.model.graph)
    known, planes = program.values[node.outputs[0].name or ""], list[ir.Value]()
    axis = concat_axis(node) % known.type.rank
    for run in runs:
        maps = [run.first.still, run.first.shifted]
        sizes = told((*known.shape[:axis], run.length, *known.shape[axis + 1 :]))
        still, shifted = (told(program.values[name].shape) for name in maps)
        if sizes is None or still is None or shifted is None:
            return False
        band = Band(run, still, shifted, _block(program, run), known.type.dtype)
        every = band.written(made, *(there[name] for name in maps))
        planes.append(made.reshaped(every, sizes))
    joined = made.joined(planes, axis)
    return draft.replace(node, made, [joined])
