"""Which slices end within their axis whenever the model runs.

Exporters cut positions and types of tokens out of buffers, `x[:, :seq]` of 512, and ONNX cuts at the end of the axis
what would go past it. So what comes of it is min(seq, 512) long, a size of its own, and what meets that is opaque. But
where it is added to something of seq places, or spread over these, the model fails with more than 512: of two sizes n
and min(n, 512) that are broadcast to each other one is 1, or they are equal, and either way n is at most 512.

That holds of slices of neighbours from the start of an axis of more than one place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape, symbol_name
from superopt.relations import are_equal

Cut: TypeAlias = "tuple[str, int]"
"""The value that a slice gives, and an axis along which it cuts."""

_ARITHMETIC, _TESTS = "Add Sub Mul Div Mod Pow Max Min Sum Mean PRelu", "Equal Less LessOrEqual Greater GreaterOrEqual"
BROADCASTING = frozenset(f"Expand Where And Or Xor {_ARITHMETIC} {_TESTS}".split())
"""ONNX's operators whose inputs are broadcast to each other, and fail where they cannot be."""


class Bounds:
    """What one reading of a model tells of its slices: those that were `met` end within their axis."""

    def __init__(self, surely_run: Collection[ir.Node]) -> None:
        """Nodes that are not `surely_run` need not fit."""
        self.met = set[Cut]()
        self._surely_run = surely_run
        self._ends: dict[str, tuple[Cut, Dim]] = {}

    def note(self, cut: Cut, size: Dim, end: Dim) -> None:
        """A slice to an end, of which nobody knows whether it lies within the axis; the size of what it gives is a
        symbol that nothing had before.
        """
        name = symbol_name(size)
        if name:
            self._ends[name] = cut, end

    def broadcast(self, node: ir.Node, shapes: Sequence[Shape]) -> None:
        """A node that was not read, and the shapes that it broadcasts to each other if it is one that does."""
        if node.op_type not in BROADCASTING or node.domain or node not in self._surely_run:
            return
        for column in zip_longest(*(reversed(s) for s in shapes), fillvalue=1):
            known = [self._ends[name] for d in column if (name := symbol_name(d)) in self._ends]
            self.met.update(cut for cut, end in known if any(are_equal(d, end) for d in column))


def surely_run(graph: ir.Graph) -> set[ir.Node]:
    """The nodes of which outputs are computed; not those that only branches and bodies read, which may not be run."""
    stack, found = [v.producer() for v in graph.outputs], set[ir.Node]()
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.add(node)
            stack += [v.producer() for v in node.inputs if v is not None]
    return found
