"""Layers of constant weights, and a layer of another one as one, where either reads, for each place, that alone."""

from __future__ import annotations

from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.sizes import elements
from superopt.term import Term


class Key(NamedTuple):
    """What two layers have in common that are one: what they are of, and how that is convolved, if it is."""

    x: Term
    conv: Conv | None
    places: Shape

    @property
    def axis(self) -> int:
        """Along which axis the channels are."""
        return self.x.type.rank - 1 if self.conv is None else 1


class Layer(NamedTuple):
    """A layer of constant weights: of rows (channels, results), or a convolution's kernel, of one group or of one for
    each channel; and what it adds to each result, if anything.
    """

    key: Key
    weights: Term
    work: int
    """How many numbers are multiplied, by the layers that it was."""

    bias: Term | None = None
    merged: bool = False
    """Whether it was several, or none: what is no layer as it stands may become a part of one."""


def added(one: Term | None, other: Term | None) -> Term | None:
    """The sum of what two layers add."""
    return Add()(one, other) if one is not None and other is not None else one or other


def work_of(layer: Layer, results: Shape) -> int:
    """How many numbers a layer multiplies as it is now, for results of this shape."""
    taken = layer.weights.shape[1:] if layer.key.conv is not None else layer.weights.shape[:1]
    return elements((*results, *taken))


def weighed(layer: Layer, vector: Term) -> Term:
    """What a layer without zeros around makes of channels of one number each."""
    weights, conv = layer.weights, layer.key.conv
    if conv is None:
        channels, results = weights.shape
        return reshaped(MatMul()(reshaped(vector, (1, channels)), weights), (results,))
    results, channels = weights.shape[:2]
    sums = Sum((2,))(reshaped(weights, (results, channels, product(weights.shape[2:]))))
    if not is_one(conv.group):
        return Mul()(reshaped(sums, (results,)), vector)
    return reshaped(MatMul()(sums, reshaped(vector, (channels, 1))), (results,))


def through(inner: Layer, outer: Layer) -> Layer | None:
    """A layer of another one as one; None of convolutions where neither is of single places, or where zeros are around
    what is not zero.
    """
    if (inner.key.conv is None) != (outer.key.conv is None):
        return None
    if inner.bias is not None and outer.key.conv is not None and any(outer.key.conv.pads):
        return None
    composed = _composed(inner, outer)
    if composed is None:
        return None
    bias = outer.bias if inner.bias is None else added(weighed(outer, inner.bias), outer.bias)
    return composed._replace(bias=bias, work=inner.work + outer.work, merged=True)


def _composed(inner: Layer, outer: Layer) -> Layer | None:
    """The weights of a layer of another one."""
    a, b = inner.weights, outer.weights
    if outer.key.conv is None or inner.key.conv is None:
        return inner._replace(weights=MatMul()(a, b))
    if not is_one(inner.key.conv.group):
        return None
    (middle, before), after = a.shape[:2], b.shape[0]
    if _is_single(outer):
        rows = MatMul()(reshaped(b, (after, middle)), reshaped(a, (middle, product(a.shape[1:]))))
        return inner._replace(weights=reshaped(rows, (after, *a.shape[1:])))
    if not _is_single(inner, with_pads=True):
        return None
    pads = tuple(one + other for one, other in zip(inner.key.conv.pads, outer.key.conv.pads, strict=True))
    conv = Conv(outer.key.conv.strides, pads, outer.key.conv.dilations)
    if not is_one(outer.key.conv.group):
        whole = (after, before, *b.shape[2:])
        repeated = Expand((0, 1), whole)(reshaped(a, (middle, before)))
        kernel = Mul()(Expand((0, *range(2, len(whole))), whole)(reshaped(b, (after, *b.shape[2:]))), repeated)
        return outer._replace(key=Key(inner.key.x, conv, outer.key.places), weights=kernel)
    last = b.type.rank - 1
    rows = reshaped(Transpose((0, *range(2, last + 1), 1))(b), (after * product(outer.key.places), middle))
    mixed = reshaped(MatMul()(rows, reshaped(a, (middle, before))), (after, *outer.key.places, before))
    return outer._replace(
        key=Key(inner.key.x, conv, outer.key.places), weights=Transpose((0, last, *range(1, last)))(mixed)
    )


def _is_single(layer: Layer, with_pads: bool = False) -> bool:
    """Whether a convolution reads, for each place, that place alone; with zeros around, too, if so."""
    conv = layer.key.conv
    assert conv is not None
    return all(map(is_one, (*layer.key.places, *conv.strides, conv.group))) and (with_pads or not any(conv.pads))
