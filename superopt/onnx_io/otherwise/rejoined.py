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

from superopt.onnx_io.new_nodes import NewNodes
from superopt.onnx_io.otherwise.reading import is_a
from superopt.onnx_io.program import Program
from superopt.onnx_io.replacing import Draft, Put
from superopt.onnx_io.surgery import replace_node
from superopt.onnx_io.turns.rows import number

LEAST, TIMES = 8, 2
"""A join has so many inputs at least, each of them so often in the mean."""

MOST = 2**10
"""Values of more elements, as far as these are known, are joined as fast as they are taken."""


def rejoined(program: Program) -> dict[int, Put]:
    """How to join values once, by the places of what joins them often."""
    found = ((i, _taken(program, node)) for i, node in enumerate(program.model.graph) if is_a(node, "Concat"))
    return {i: partial(_put, places) for i, places in found if places is not None}


def _taken(program: Program, node: ir.Node) -> list[int] | None:
    """Which places are taken of what is joined once; None where no input is small and there often."""
    own = list(dict.fromkeys(node.inputs))
    known = [None if value is None else program.values.get(value.name or "") for value in own]
    shapes = [term.shape for term in known if term is not None]
    if "axis" not in node.attributes or len(node.inputs) < max(LEAST, TIMES * len(own)) or len(shapes) < len(own):
        return None
    axis = number(node, "axis", 0)
    if any(prod(d for d in shape if isinstance(d, int)) > MOST for shape in shapes):
        return None
    sizes = [shape[axis] for shape in shapes]
    widths = [size for size in sizes if isinstance(size, int)]
    return _places([own.index(value) for value in node.inputs], widths) if len(widths) == len(sizes) else None


def _places(chosen: Sequence[int], widths: Sequence[int]) -> list[int]:
    """The places of parts of these widths that are chosen, one part after the other."""
    ends = np.cumsum(widths).tolist()
    return [place for part in chosen for place in range(ends[part] - widths[part], ends[part])]


def _put(places: Sequence[int], draft: Draft, node: ir.Node) -> bool:
    """Let values be joined once."""
    made, axis = NewNodes("rejoined", draft.taken), ir.AttrInt64("axis", node.attributes["axis"].as_int())
    own = [value for value in dict.fromkeys(node.inputs) if value is not None]
    joined = own[0] if len(own) == 1 else made.node("Concat", own, [axis])
    taken = made.node("Gather", [joined, made.integers(places)], [axis])
    draft.model.graph.insert_before(node, made.nodes)
    replace_node(draft.model, node, [taken])
    return True
