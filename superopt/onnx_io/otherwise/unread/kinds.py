"""What nodes read for some of the places of what they give, and the nodes that give these alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.unread.cuts import CUTS, Known, Need, cut_of, size_of
from superopt.onnx_io.otherwise.unread.each import EACH, PRODUCTS, ROWS, of_each, of_products, of_rows
from superopt.onnx_io.otherwise.unread.evenly import Places, evenly, whole
from superopt.onnx_io.otherwise.unread.views import VIEWS, of_view, view
from superopt.onnx_io.otherwise.unread.windows import attributes, axes_of, read_by
from superopt.onnx_io.program import Program
from superopt.onnx_io.reading import integers_of, shape_of
from superopt.onnx_io.said import is_a, number, text

MOST = 7 / 8
"""What windows leave unread at an edge is not worth its being left out: they read so much at most where they do."""


def needs(known: Known, node: ir.Node, of: Need) -> dict[int, Need] | None:
    """What a node reads for places of what it gives, by the places of its inputs, of others all of it; None where that
    cannot be told.
    """
    if is_a(node, "Conv"):
        return _of_windows(known.program, node, of)
    if is_a(node, "Pad"):
        return _of_padded(known.program, node, of)
    if is_a(node, *VIEWS):
        return of_view(known.program, node, of)
    if is_a(node, *PRODUCTS):
        return of_products(known.program, node, of)
    if is_a(node, *ROWS):
        return of_rows(known.program, node, of)
    if is_a(node, *CUTS):
        if (cut := cut_of(known, node)) is None:
            return None
        axis = of.axis + (cut.gone and of.axis >= cut.axis)
        if axis != cut.axis:
            return {0: of._replace(axis=axis)}
        first, last = (cut.places.first + place * cut.places.step for place in (of.places.first, of.places.last))
        return {0: Need(axis, evenly(first, last, of.places.step * cut.places.step))}
    return of_each(known.program, node, of) if is_a(node, *EACH) else None


def least_needs(known: Known, node: ir.Node) -> dict[int, Need]:
    """The same for all that a node gives, where that is less than all that it reads, along the first such axis."""
    for of in _all(known, node):
        for place, need in (needs(known, node, of) or {}).items():
            size = size_of(known.program, node.inputs[place], need.axis)
            if size is not None and need.places.many < size * (MOST if is_a(node, "Conv") else 1):
                return {place: need}
    if is_a(node, "Gather") and (cut := cut_of(known, node)) is not None and cut.gone:
        return {0: Need(cut.axis, cut.places)}
    return {}


def _all(known: Known, node: ir.Node) -> Iterator[Need]:
    """All places along each axis along which a node may read fewer than there are."""
    shape = shape_of(known.program, node.outputs[0])
    if shape is None or not is_a(node, "Conv", *CUTS):
        return
    cut = cut_of(known, node) if is_a(node, *CUTS) else None
    for axis, size in enumerate(shape):
        if isinstance(size, int) and (axis > 1 if cut is None else axis == cut.axis and not cut.gone):
            yield Need(axis, whole(size))


def _of_windows(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    kernel, size = shape_of(program, node.inputs[1]), size_of(program, node.inputs[0], of.axis)
    axes = None if kernel is None else axes_of(node, kernel)
    if axes is None or size is None or of.axis < 2:
        return None
    inside = read_by(axes.along(of.axis - 2), of.places).within(size)
    return None if inside is None else {0: Need(of.axis, inside)}


def _pads(program: Program, node: ir.Node) -> list[int] | None:
    """What a Pad puts before and behind each axis; None where that is computed, or it cuts, or puts what is there."""
    pads = integers_of(program, node, "pads", 1)
    is_plain = text(node, "mode", "constant") == "constant" and len(node.inputs) < 4
    return pads if is_plain and pads and min(pads) >= 0 else None


def _of_padded(program: Program, node: ir.Node, of: Need) -> dict[int, Need] | None:
    pads, size = _pads(program, node), size_of(program, node.inputs[0], of.axis)
    if pads is None or size is None:
        return None
    inside = _before(of.places, pads[of.axis]).within(size)
    return None if inside is None else {0: Need(of.axis, inside)}


def _before(places: Places, pad: int) -> Places:
    return places._replace(first=places.first - pad)


def written(
    known: Known, node: ir.Node, of: Need | None, read: dict[int, Need], inputs: Sequence[ir.Value | None],
    made: NewNodes,
) -> Sequence[ir.Value]:  # fmt: skip
    """The results of a node at some places, of inputs that have only those that these need."""
    program, (x, *others), need = known.program, inputs, read.get(0)
    assert x is not None
    if is_a(node, "Conv") and need is not None:
        kernel, size = shape_of(program, node.inputs[1]), size_of(program, node.inputs[0], need.axis)
        axes = axes_of(node, kernel) if kernel is not None else None
        results = of.places if of is not None else whole(size_of(program, node.outputs[0], need.axis) or 0)
        assert axes is not None
        assert size is not None
        said = attributes(axes, need.axis - 2, results, size)
        return made.several("Conv", inputs, [*said, ir.AttrInt64("group", number(node, "group", 1))])
    if is_a(node, "Pad") and of is not None and need is not None and (pads := _pads(program, node)) is not None:
        size, rank = size_of(program, node.inputs[0], need.axis), len(pads) // 2
        before = _before(of.places, pads[of.axis])
        pads[of.axis] = (need.places.first - before.first) // before.step
        pads[of.axis + rank] = of.places.many - need.places.many - pads[of.axis]
        said = [a for a in node.attributes.values() if a.name != "pads"]
        if "pads" in node.attributes:
            return made.several("Pad", [x], [*said, ir.AttrInt64s("pads", pads)])
        return made.several("Pad", [x, made.integers(pads), *others[1:]], said)
    if is_a(node, *VIEWS) and of is not None:
        return [view(program, node, of, x, made)]
    cut = cut_of(known, node) if is_a(node, *CUTS) else None
    if cut is not None and need is not None and need.axis == cut.axis:
        return [made.over(x, "Squeeze", [cut.axis]) if cut.gone else made.node("Identity", [x])]
    return made.several(node.op_type, inputs, list(node.attributes.values()), len(node.outputs))
