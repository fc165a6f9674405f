"""Elements put in the place of others, where they fill a box, as exporters write assignments to slices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from superopt.arithmetic.carrier import Array
from superopt.operators.declare import reads
from superopt.operators.layout import Concat, reshaped
from superopt.operators.nodes import NotUnderstood, Source, concrete, present
from superopt.operators.picks import Slice
from superopt.relations import equal_shapes
from superopt.term import Term

Box = Sequence[tuple[int, int]]
"""Along each of the first axes, the first place and the one after the last."""


@reads("ScatterND")
def scatter_nd(node: Source) -> Term:
    """At constant indices that fill a box: what is around it beside what is put into it."""
    x, _, updates = present(node.inputs, 3)
    if node.attributes.get("reduction", "none") != "none":
        raise NotUnderstood("what stands there is reduced with what is put there")
    indices = node.constant(1)
    if indices is None:
        raise NotUnderstood("the indices are computed while the model runs")
    sizes = concrete(x.shape[: indices.shape[-1]], "scattering")
    box = box_of(np.asarray(indices), sizes)
    if box is None:
        raise NotUnderstood("the indices fill no box, one after the other")
    inside = tuple(end - start for start, end in box)
    return _placed(x, box, reshaped(updates, (*inside, *x.shape[len(box) :])))


@reads("ScatterElements")
def scatter_elements(node: Source) -> Term:
    """At constant places along one axis, one after the other: what is around them beside what is put there."""
    x, indices, updates = present(node.inputs, 3)
    if node.attributes.get("reduction", "none") != "none":
        raise NotUnderstood("what stands there is reduced with what is put there")
    axis = node.attributes.get("axis", 0) % x.type.rank
    places = node.constant(1)
    if places is None:
        raise NotUnderstood("the indices are computed while the model runs")
    around, beside = (t.shape[:axis] + t.shape[axis + 1 :] for t in (x, updates))
    if not equal_shapes(around, beside) or not equal_shapes(indices.shape, updates.shape):
        raise NotUnderstood("not all along the other axes is put there")
    (size,) = concrete((x.shape[axis],), "scattering")
    if (run := run_of(places, axis, size)) is None:
        raise NotUnderstood("the indices are not one after the other")
    return _beside(x, axis, *run, updates)


def run_of(indices: Array, axis: int, size: int) -> tuple[int, int] | None:
    """The first of places of an axis of a size that are one after the other, wherever along the other axes, and that
    behind the last; negative ones count from the end. None where they are not.
    """
    along = np.moveaxis(indices, axis, -1).reshape(-1, indices.shape[axis])
    if not along.size:
        return None
    along = np.where(along < 0, along + size, along)
    start, end = int(along[0, 0]), int(along[0, -1]) + 1
    is_run = 0 <= start < end <= size and end - start == along.shape[1]
    return (start, end) if is_run and (along == np.arange(start, end)).all() else None


def box_of(indices: Array, sizes: Sequence[int]) -> Box | None:
    """The box whose places these are, row by row; each is a vector along the last axis, negative from the end."""
    places = indices.reshape(-1, len(sizes)) if sizes else np.zeros((0, 0))
    if not places.size:
        return None
    places = np.where(places < 0, places + np.asarray(sizes), places)
    first, last = places.min(axis=0), places.max(axis=0)
    if (first < 0).any() or (last >= sizes).any() or math.prod(map(int, last - first + 1)) != len(places):
        return None
    if not np.array_equal(np.indices(last - first + 1).reshape(len(sizes), -1).T + first, places):
        return None
    return [(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]


def _placed(x: Term, box: Box, inside: Term, axis: int = 0) -> Term:
    """A term with what is inside a box put into it, from an axis on."""
    if axis == len(box):
        return inside
    (start, end), size = box[axis], x.shape[axis]
    within = x if (start, end) == (0, size) else Slice(axis, start, end)(x)
    return _beside(x, axis, start, end, _placed(within, box, inside, axis + 1))


def _beside(x: Term, axis: int, start: int, end: int, inside: Term) -> Term:
    """What a term has along an axis before and behind some places, and what is put there between."""
    (size,) = concrete((x.shape[axis],), "scattering")
    parts = [Slice(axis, 0, start)(x), inside] if start else [inside]
    parts = [*parts, Slice(axis, end, size)(x)] if end < size else parts
    result = parts[0]
    for part in parts[1:]:
        result = Concat(axis)(result, part)
    return result
