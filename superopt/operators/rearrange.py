"""Elements taken, repeated and moved between axes: Gather, Tile, DepthToSpace, SpaceToDepth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array, Carrier
from superopt.demands import require
from superopt.dim import Dim, Shape
from superopt.operators.attributes import attr
from superopt.operators.declare import operator, reads
from superopt.operators.declared import Declared
from superopt.operators.layout import Expand, Transpose, positive_axis, reshaped, spread
from superopt.operators.nodes import NotUnderstood, Source, concrete, present
from superopt.operators.picks import taken
from superopt.relations import is_one
from superopt.term import Term, Type, make


@operator("gather", onnx="Gather")
class Gather(Declared):
    """`y[.., j.., ..] = x[.., i[j..] mod n, ..]` along an axis of n elements: negative indices count from its end."""

    linear = (0,)
    zero = True
    moves = True
    axis: int = attr(sample=[0, 1], onnx="axis")

    def dtype(self, inputs: Sequence[Type]) -> str:
        """That of what is taken from."""
        return inputs[0].dtype

    def shape(self, x: Shape, i: Shape) -> Shape:  # type: ignore[override]
        """The axes of the indices in place of the axis."""
        require(self.axis < len(x), f"gather: no axis {self.axis} in {x}")
        return (*x[: self.axis], *i, *x[self.axis + 1 :])

    def eval(self, ring: Carrier, x: Array, i: Array) -> Array:  # type: ignore[override]
        """What stands there."""
        return np.asarray(np.take(x, np.asarray(i, np.int64) % x.shape[self.axis], axis=self.axis))


@reads("Gather")
def gather(node: Source) -> Term:
    """By constant indices a take, or a slice where they follow each other; else by the indices that there will be."""
    x, given = present(node.inputs, 2)
    axis, indices = positive_axis(int(node.attributes.get("axis", 0)), x.type.rank), node.constant(1)
    if indices is None:
        return make(Gather(axis), (x, given))
    flat = [int(i) for i in indices.ravel()]
    if any(i < 0 for i in flat):
        (size,) = concrete((x.shape[axis],), "gather by negative indices")
        flat = [i + size if i < 0 else i for i in flat]
    return reshaped(taken(x, axis, flat), (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def repeated(x: Term, counts: Shape, *, within: bool) -> Term:
    """Each axis so many times: each element beside itself (`within`), or the whole over and over."""
    if all(is_one(d) or is_one(count) for d, count in zip(x.shape, counts, strict=True)):
        return spread(x, tuple(d * count for d, count in zip(x.shape, counts, strict=True)))
    shape: list[Dim] = []
    kept = []
    for d, count in zip(x.shape, counts, strict=True):
        kept.append(len(shape) + (0 if within else 1))
        shape += [d, count] if within else [count, d]
    to = tuple(d * count for d, count in zip(x.shape, counts, strict=True))
    return reshaped(make(Expand(tuple(kept), tuple(shape)), (x,)), to)


@reads("Tile")
def tile(node: Source) -> Term:
    """The whole over and over along each axis."""
    x, counts = node.inputs[0], node.sizes(1)
    if x is None or counts is None:
        raise NotUnderstood("the repeats are computed while the model runs")
    if any(isinstance(c, int) and c < 1 for c in counts):
        raise NotUnderstood("the result is empty")
    return repeated(x, counts, within=False)


@reads("DepthToSpace")
def depth_to_space(node: Source) -> Term:
    """Channels (place, place, c), or in mode CRD (c, place, place), become places of an image."""
    (x,), side = present(node.inputs, 1), int(node.attributes["blocksize"])
    by_channel = node.attributes.get("mode", "DCR") == "CRD"
    n, c, h, w = x.shape
    c = c // side**2
    split = (n, c, side, side, h, w) if by_channel else (n, side, side, c, h, w)
    perm = (0, 1, 4, 2, 5, 3) if by_channel else (0, 3, 4, 1, 5, 2)
    return reshaped(Transpose(perm)(reshaped(x, split)), (n, c, h * side, w * side))


@reads("SpaceToDepth")
def space_to_depth(node: Source) -> Term:
    """Places of an image become channels (place, place, c), or in mode CRD (c, place, place)."""
    (x,), side = present(node.inputs, 1), int(node.attributes["blocksize"])
    n, c, h, w = x.shape
    split = reshaped(x, (n, c, h // side, side, w // side, side))
    perm = (0, 1, 3, 5, 2, 4) if node.attributes.get("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    return reshaped(Transpose(perm)(split), (n, c * side**2, h // side, w // side))
