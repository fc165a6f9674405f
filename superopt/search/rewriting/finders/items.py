"""Axes as what they are made of, while reshapes merge and split them: which sizes stay apart, and which are mixed.

Of steps that are linear some axes of what they start with, as a batch's, are read place by place, and all others are
mixed. A batch may be merged with what stands beside it and come apart again; so each axis is a row of items, each a
batch or a size of the others, and a batch is never split.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from superopt.dim import Dim, Shape, product
from superopt.relations import are_equal, is_one


class Item(NamedTuple):
    """A factor of an axis: a size, and which axis of the start is read place by place there, if any is."""

    size: Dim
    batch: int | None = None


Items: TypeAlias = "tuple[Item, ...]"

Axes: TypeAlias = "tuple[Items, ...]"
"""Of each axis its items, outermost first; sizes that are mixed are one beside each other, and not where that is 1."""


class MixedError(Exception):
    """Some axes are not read place by place."""

    def __init__(self, items: Sequence[Item] = ()) -> None:
        super().__init__()
        self.batches = {i.batch for i in items if i.batch is not None}


def batches_of(axes: Sequence[Items]) -> list[Item]:
    """The batches among axes, in order."""
    return [i for axis in axes for i in axis if i.batch is not None]


def simple(items: Sequence[Item]) -> Items:
    """An axis with mixed sizes beside each other as one, if it is not of one place."""
    found: list[Item] = []
    for mixed, group in groupby(items, key=lambda i: i.batch is None):
        own = list(group)
        size = product([i.size for i in own])
        if not mixed:
            found += own
        elif not is_one(size):
            found.append(Item(size))
    return tuple(found)


def mixed(axis: Sequence[Item]) -> Item | None:
    """What all of an axis is as one size; None where it is of one place. Raises `MixedError` of batches."""
    if any(i.batch is not None for i in axis):
        raise MixedError(axis)
    return axis[0] if axis else None


def mixed_size(axes: Sequence[Items]) -> Dim:
    """How many elements axes have for one place of each batch."""
    return product([i.size for axis in axes for i in axis if i.batch is None])


def sizes_of(items: Sequence[Item], counts: Mapping[int, Dim]) -> list[Dim]:
    """The sizes of items, of batches as many as are said."""
    return [i.size if i.batch is None else counts[i.batch] for i in items]


def regrouped(axes: Axes, to: Shape) -> Axes:
    """The axes of a reshape to a shape. Raises `MixedError` where that splits a batch, or a size in no known way."""
    left, found = [i for axis in axes for i in axis], list[Items]()
    for d in to:
        own: list[Item] = []
        while not are_equal(product([i.size for i in own]), d):
            own.append(_taken(left, own, d))
        while left and is_one(d) and is_one(left[0].size) and not own:
            own.append(left.pop(0))
        found.append(tuple(own))
    if left and not found:
        raise MixedError(left)
    if left:
        found[-1:] = [(*found[-1], *left)]
    return tuple(map(simple, found))


def _taken(left: list[Item], own: Sequence[Item], whole: Dim) -> Item:
    """The next item, or as much of it as an axis has room for."""
    if not left:
        raise MixedError(own)
    first = left.pop(0)
    size = product([i.size for i in own])
    if not isinstance(whole, int) or not isinstance(first.size, int) or not isinstance(size, int):
        return first
    if whole % size or math.gcd(whole // size, first.size) not in (whole // size, first.size):
        raise MixedError((first, *own))
    room = whole // size
    if first.size <= room:
        return first
    if first.batch is not None:
        raise MixedError((first,))
    left.insert(0, Item(first.size // room))
    return Item(room)
