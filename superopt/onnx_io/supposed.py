"""Which sizes are equal whenever a model runs, though nothing else tells it.

Networks resize maps by whole factors and join them to those of an earlier layer: of a height h to 2·⌊h/2⌋, which is
joined to h. Where these differ the model fails, so it may be taken for granted that they do not. Only what a Resize
gives is read as of the other size: that which it is joined to.

Of what is added, and so broadcast to each other, it does not hold: one of the sizes may be 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import onnx_ir as ir

from superopt.dim import Dim, Shape
from superopt.onnx_io.said import concat_axis
from superopt.relations import are_equal
from superopt.substitution import symbols

Supposed: TypeAlias = dict[tuple[str, int], Dim]
"""For what a Resize gives, and an axis, the size that it has whenever the model runs."""

MAPS_FROM = 2
"""The first axis along which maps are resized, after sample and channels."""


class Joins:
    """What one reading of a model tells of the maps that it joins: what was `met` is of those sizes."""

    def __init__(self, surely_run: Collection[ir.Node]) -> None:
        """The nodes that are `surely_run`, as `Bounds` has them."""
        self._surely_run = surely_run
        self.met = Supposed()

    def join(self, node: ir.Node, shapes: Sequence[Shape], given: Collection[str]) -> Shape | None:
        """The shape of a Concat that was not read, of the shapes of its inputs; None where it is not known.

        Other sizes than those of what is resized are of the `given` symbols, which mean the same in each reading.
        """
        ranks = {len(shape) for shape in shapes}
        if node.op_type != "Concat" or node.domain or node not in self._surely_run or len(ranks) != 1 or ranks == {0}:
            return None
        (rank,) = ranks
        along = concat_axis(node) % rank
        found = [sum((s[along] for s in shapes), 0) if a == along else shapes[0][a] for a in range(rank)]
        met = Supposed()
        for axis in set(range(rank)) - {along}:
            told = [s[axis] for s, v in zip(shapes, node.inputs, strict=True) if not _is_resized(v)]
            if not told or not symbols(told[0]) <= set(given):
                return None
            found[axis] = told[0]
            for shape, value in zip(shapes, node.inputs, strict=True):
                if not are_equal(shape[axis], told[0]):
                    if value is None or axis < MAPS_FROM or not _is_resized(value):
                        return None
                    met[value.name or "", axis] = told[0]
        self.met |= met
        return tuple(found)


def _is_resized(value: ir.Value | None) -> bool:
    producer = value.producer() if value is not None else None
    return producer is not None and not producer.domain and producer.op_type in ("Resize", "Upsample")
