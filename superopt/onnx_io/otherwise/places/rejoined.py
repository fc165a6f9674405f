"""Models that join the same values many times over: they are joined once, and places of that are taken.

Recommenders multiply each pair of their features' embeddings (PNN, Qu et al. 2016; AFM, Xiao et al. 2017), and scripts
join the first of all pairs, and the second, from a list of features: of 26 there are 325 pairs, and so many inputs has
a Concat. onnxruntime 1.32 takes 71 µs for that, as long as for all else, and 4 for a Gather of 325 of 26 rows. What is
made of pairs is then seen to be made of places of one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import onnx_ir as ir

from superopt.onnx_io.naming import by_name
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.said import concat_axis, is_a

LEAST, TIMES = 8, 2
"""A join has so many inputs at least, each of them so often in the mean."""

MOST = 2**10
"""Values of more elements, as far as these are known, are joined as fast as they are taken."""


def rejoined(program: Program) -> dict[int, Put]:
    """How to join values once, by the places of what joins them often. What several join is one join for all of them,
    where all of it is there before the first.
    """
    nodes = {i: node for i, node in enumerate(program.model.graph) if _joins_often(program, node)}
    before = {output: i for i, node in enumerate(program.model.graph) for output in node.outputs}
    found = dict[int, Put]()
    for place, node in nodes.items():
        own, axis = _own([node]), concat_axis(node)
        others = [
            other for other in nodes.values() if concat_axis(other) == axis and not own.keys().isdisjoint(other.inputs)
        ]
        every = _own(others)
        joined = list(every if all(before.get(value, -1) < place for value in every) else own)
        widths = [program.values[value.name or ""].shape[axis] for value in joined]
        chosen = [joined.index(value) for value in node.inputs if value is not None]
        sizes = [width for width in widths if isinstance(width, int)]
        found[place] = partial(_put, [value.name or "" for value in joined], _places(chosen, sizes))
    return found


def _own(nodes: Sequence[ir.Node]) -> dict[ir.Value, None]:
    """What nodes read, each once, in the order of first sight."""
    return dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)


def _joins_often(program: Program, node: ir.Node) -> bool:
    """Whether a node joins values that are small, each of a known number of places, and often there."""
    if not is_a(node, "Concat") or "axis" not in node.attributes:
        return False
    own = _own([node])
    known = [program.term(value) for value in own]
    shapes = [term.shape for term in known if term is not None]
    return (
        len(node.inputs) >= max(LEAST, TIMES * len(own))
        and len(shapes) == len(own)
        and all(isinstance(shape[concat_axis(node)], int) for shape in shapes)
        and all(prod(d for d in shape if isinstance(d, int)) <= MOST for shape in shapes)
    )


def _places(chosen: Sequence[int], widths: Sequence[int]) -> list[int]:
    """The places of parts of these widths that are chosen, one part after the other."""
    ends = np.cumsum(widths).tolist()
    return [place for part in chosen for place in range(ends[part] - widths[part], ends[part])]


def _put(names: Sequence[str], places: Sequence[int], draft: Draft, node: ir.Node) -> bool:
    """Let values of these names be joined once."""
    made, axis = draft.nodes("rejoined"), ir.AttrInt64("axis", concat_axis(node))
    there = by_name(draft.model.graph)
    if not all(name in there for name in names):  # another has changed it
        return False
    own = [there[name] for name in names]
    joined = made.joined(own, concat_axis(node))
    taken = made.node("Gather", [joined, made.integers(places)], [axis])
    return draft.replace(node, made, [taken])
