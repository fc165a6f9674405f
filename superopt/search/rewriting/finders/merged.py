"""Linear layers of one value that are added up, as one layer: adapters that were never merged into their weights.

A low-rank adapter (LoRA, Hu et al. 2021) adds to a layer a second one, through a few channels: `x·W + s·(x·A)·B` is
`x·(W + s·A·B)`, and so are convolutions of which one or the other is of single places. Rules say each step, but not
that it pays: the two products of an adapter become one as dear as the layer itself before that is no more of its own.
So layers are followed down to what both are of, and all of their weights become one at once.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add, Mul
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.gathered import Product, multiplied, product_of
from superopt.term import Term, make

MOST_ADDED, MOST_BELOW = 8, 4
"""Of more summands, and layers below each other, nothing is looked for."""


class Key(NamedTuple):
    """What two layers have in common that are one: what they are of, and how that is convolved, if it is."""

    x: Term
    conv: Conv | None
    places: Shape


class Layer(NamedTuple):
    """A linear layer of constant weights: of rows (channels, results), or a convolution's kernel."""

    key: Key
    weights: Term
    merged: bool = False
    """Whether it was several."""


class Merging(Fewer):
    """Finds sums of layers of the same value, of which some go through others."""

    name = "several linear layers as one"
    heads = (Add,)

    def made(self, term: Term) -> Term | None:
        """The sum, of fewer layers; None where none becomes part of another one, which is as large anyway."""
        summands = _summands(term)
        if len(summands) > MOST_ADDED:
            return None
        layers = [{layer.key: layer for layer in _layers(s)} for s in summands]
        for key, count in Counter(key for each in layers for key in each).items():
            same = [each[key] for each in layers if key in each]
            if count > 1 and {layer.merged for layer in same} == {True, False}:
                rest = [s for s, each in zip(summands, layers, strict=True) if key not in each]
                return reduce(Add(), [_applied(key, reduce(Add(), [s.weights for s in same])), *rest])
        return None


def _summands(term: Term) -> list[Term]:
    """What is added up; where that is too much, some of it."""
    found, left = list[Term](), [term]
    while left and len(found) + len(left) <= MOST_ADDED:
        one = left.pop()
        if isinstance(one.operator, Gemm):
            one = one.operator.definition(*one.inputs)
        if isinstance(one.operator, Add):
            left += reversed(one.inputs)
        else:
            found.append(one)
    return [*found, *left]


def _layers(term: Term, below: int = MOST_BELOW) -> list[Layer]:
    """A value as a layer of what is right below, of what is below that, and so on."""
    if isinstance(term.operator, Mul):
        for value, factor in (term.inputs, term.inputs[::-1]):
            if factor.constant and isinstance(factor.operator, Expand) and not factor.operator.axes:
                return [_scaled(layer, *factor.inputs) for layer in _layers(value, below)]
    if (own := _own(term)) is None:
        return []
    deeper = _layers(own.key.x, below - 1) if below else []
    return [own, *(layer for inner in deeper if (layer := _through(inner, own)) is not None)]


def _own(term: Term) -> Layer | None:
    """A value as a layer of what is right below."""
    op = term.operator
    if not isinstance(op, MatMul | Conv) or term.inputs[0].constant or not term.inputs[1].constant:
        return None
    if isinstance(op, Conv):
        x, kernel = term.inputs
        return Layer(Key(x, op, kernel.shape[2:]), kernel) if is_one(op.group) else None
    whole = product_of(term)
    return None if whole is None else Layer(Key(whole.x, None, ()), whole.weights)


def _scaled(layer: Layer, factor: Term) -> Layer:
    """A layer times a number."""
    return layer._replace(weights=Mul()(layer.weights, Expand((), layer.weights.shape)(factor)))


def _through(inner: Layer, outer: Layer) -> Layer | None:
    """A layer of another one as one; None of convolutions where neither is of single places."""
    a, b = inner.weights, outer.weights
    if inner.key.conv is None or outer.key.conv is None:
        are_rows = inner.key.conv is None and outer.key.conv is None
        return Layer(inner.key, MatMul()(a, b), merged=True) if are_rows else None
    (middle, before), after = a.shape[:2], b.shape[0]
    if _is_single(outer):
        rows = MatMul()(reshaped(b, (after, middle)), reshaped(a, (middle, product(a.shape[1:]))))
        return Layer(inner.key, reshaped(rows, (after, *a.shape[1:])), merged=True)
    if not _is_single(inner):
        return None
    last = b.type.rank - 1
    rows = reshaped(Transpose((0, *range(2, last + 1), 1))(b), (after * product(outer.key.places), middle))
    mixed = reshaped(MatMul()(rows, reshaped(a, (middle, before))), (after, *outer.key.places, before))
    kernel = Transpose((0, last, *range(1, last)))(mixed)
    return Layer(Key(inner.key.x, outer.key.conv, outer.key.places), kernel, merged=True)


def _is_single(layer: Layer) -> bool:
    """Whether a convolution reads, for each place, that place alone."""
    assert layer.key.conv is not None
    return product_of(make(layer.key.conv, (layer.key.x, layer.weights))) is not None


def _applied(key: Key, weights: Term) -> Term:
    """A layer's value."""
    if key.conv is not None:
        return make(key.conv, (key.x, weights))
    return multiplied(Product(key.x, key.x.type.rank - 1, weights))
