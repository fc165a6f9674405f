"""Which slices end within their axis whenever the model runs.

Exporters cut positions and types of tokens out of buffers, `x[:, :seq]` of 512, and ONNX cuts at the end of the axis
what would go past it. So what comes of it is min(seq, 512) long, and nothing that is computed of it has known sizes.
But then it is added to something of seq places, or spread over these: with more than 512 the model fails. Of two sizes
n and min(n, 512) that an operator broadcasts to each other, one is 1 or they are equal: either way n is at most 512.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape, equal, symbol_name
from superopt.operators import CATALOGUE
from superopt.operators.layout import PastTheEnd

Bound: TypeAlias = "tuple[Dim, int]"
"""Where a slice from the start of an axis ends, and how many places the axis has."""

BROADCASTING = {"Expand", *(c.onnx for c in CATALOGUE.values() if c.pointwise and c.arity > 1 and not c.domain)}


class Bounds:
    """What is known of slices in a reading of a model: those that are `held` end within their axis, and those that are
    `met` do as well, which only what was read after them told.
    """

    def __init__(self, model: ir.Model, held: Iterable[Bound]) -> None:
        self.held, self.met = frozenset(held), set[Bound]()
        self._needed = _needed(model.graph)
        self._cut: dict[str, Bound] = {}

    def cut(self, error: PastTheEnd, result: Shape) -> None:
        """Note that a slice is of what is left of an axis, where its size is a symbol of its own."""
        name = symbol_name(result[error.axis])
        if name and isinstance(error.size, int) and error.size > 1:
            self._cut[name] = error.bound, error.size

    def broadcast(self, node: ir.Node, shapes: Sequence[Shape]) -> None:
        """Note what a node says of slices that broadcasts shapes to each other."""
        if node.op_type not in BROADCASTING or node.domain or node not in self._needed:
            return
        for column in zip_longest(*(reversed(s) for s in shapes), fillvalue=1):
            cuts = [self._cut[name] for d in column if (name := symbol_name(d)) in self._cut]
            self.met.update(cut for cut in cuts if any(equal(d, cut[0]) is True for d in column))


def _needed(graph: ir.Graph) -> set[ir.Node]:
    """The nodes of which outputs are computed: a runtime need not run the others, so they need not fit."""
    stack = [node for v in graph.outputs if (node := v.producer()) is not None]
    found = set[ir.Node]()
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [p for v in node.inputs if v is not None and (p := v.producer()) is not None]
    return found
