"""What a value is as a layer of constant weights: of what is right below, of what is below that, and so on.

What is added to each channel, and what multiplies it, between two layers and behind them, belongs to the layer, and so
do zeros around what is convolved; a layer of a layer is one again where either reads, for each place, that place alone.
"""

from __future__ import annotations

from typing import NamedTuple

from superopt.dim import Shape, product
from superopt.operators.conv import Conv
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import BatchNorm, Gemm
from superopt.operators.padding import Pad
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.gathered import Product, multiplied, product_of
from superopt.search.rewriting.finders.sizes import elements
from superopt.term import Term, make

MOST_BELOW, MOST_BETWEEN = 4, 8
"""Of more layers below each other, and of more between two of them, nothing is looked for."""


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
    """Whether it was several."""


def layers(term: Term, below: int = MOST_BELOW) -> list[Layer]:
    """A value as a layer of what is right below, of what is below that, and so on; the nearest first."""
    op = term.operator
    if isinstance(op, BatchNorm | Gemm):
        return layers(op.definition(*term.inputs), below)
    if isinstance(op, Add | Mul):
        for value, other in (term.inputs, term.inputs[::-1]):
            if other.constant and not value.constant:
                change = _scaled if isinstance(op, Mul) else _shifted
                return [c for layer in layers(value, below) if (c := change(layer, other)) is not None]
    if (own := _own(term)) is None:
        return []
    nearer = _of_what_is_below(own)
    deeper = layers(nearer.key.x, below - 1) if below else []
    through = [layer for inner in deeper if (layer := _through(inner, nearer)) is not None]
    return [own, *([nearer] if nearer is not own else []), *through]


def applied(layer: Layer) -> Term:
    """A layer's value."""
    key = layer.key
    if key.conv is not None:
        value = make(key.conv, (key.x, layer.weights))
    else:
        value = multiplied(Product(key.x, key.axis, layer.weights))
    return value if layer.bias is None else Add()(value, Expand((key.axis,), value.shape)(layer.bias))


def added(one: Term | None, other: Term | None) -> Term | None:
    """The sum of what two layers add."""
    return Add()(one, other) if one is not None and other is not None else one or other


def work_of(layer: Layer, results: Shape) -> int:
    """How many numbers a layer multiplies as it is now, for results of this shape."""
    taken = layer.weights.shape[1:] if layer.key.conv is not None else layer.weights.shape[:1]
    return elements((*results, *taken))


def _own(term: Term) -> Layer | None:
    """A value as a layer of what is right below."""
    op = term.operator
    if not isinstance(op, MatMul | Conv) or term.inputs[0].constant or not term.inputs[1].constant:
        return None
    if isinstance(op, Conv):
        x, kernel = term.inputs
        known = is_one(op.group) or _is_by_channel(op, x, kernel)
        layer = Layer(Key(x, op, kernel.shape[2:]), kernel, 0) if known else None
    else:
        whole = product_of(term)
        layer = None if whole is None else Layer(Key(whole.x, None, ()), whole.weights, 0)
    return layer and layer._replace(work=work_of(layer, term.shape))


def _is_by_channel(op: Conv, x: Term, kernel: Term) -> bool:
    """Whether each channel is convolved by itself, to one."""
    return all(are_equal(op.group, d) for d in (x.shape[1], kernel.shape[0])) and is_one(kernel.shape[1])


def _of_what_is_below(layer: Layer) -> Layer:
    """A layer of what is below the numbers that are added to its channels or multiply them, and below zeros around."""
    for _ in range(MOST_BETWEEN):
        below = _of_next(layer)
        if below is None:
            break
        layer = below
    return layer


def _of_next(layer: Layer) -> Layer | None:
    """The same of what is one operator below; None where that is none of these."""
    x, conv = layer.key.x, layer.key.conv
    op = x.operator
    if isinstance(op, BatchNorm):
        return _of_next(layer._replace(key=layer.key._replace(x=op.definition(*x.inputs))))
    if isinstance(op, Pad) and conv is not None:
        before, after = op.pads[:2], op.pads[x.type.rank : x.type.rank + 2]
        if not all(isinstance(d, int) and d == 0 for d in (*before, *after)):
            return None
        around = (*op.pads[2 : x.type.rank], *op.pads[x.type.rank + 2 :])
        if not all(isinstance(d, int) and d >= 0 for d in around):
            return None
        pads = tuple(a + b for a, b in zip(conv.pads, around, strict=True))
        return layer._replace(
            key=layer.key._replace(x=x.inputs[0], conv=Conv(conv.strides, pads, conv.dilations, conv.group))
        )
    if not isinstance(op, Add | Mul):
        return None
    for value, other in (x.inputs, x.inputs[::-1]):
        vector = _by_channel(other, layer.key.axis)
        if vector is None or value.constant:
            continue
        of_value = layer.key._replace(x=value)
        if isinstance(op, Mul):
            return layer._replace(key=of_value, weights=_taken_by(layer, vector))
        if conv is None or not any(conv.pads):
            return layer._replace(key=of_value, bias=added(_weighed(layer, vector), layer.bias))
    return None


def _by_channel(other: Term, axis: int) -> Term | None:
    """What is the same for all but channels along an axis, as a vector of these; None where it is more."""
    repeat = other.operator
    if not other.constant or not isinstance(repeat, Expand) or repeat.axes not in ((), (axis,)):
        return None
    (vector,) = other.inputs
    return vector if repeat.axes else Expand((), (other.shape[axis],))(vector)


def _scaled(layer: Layer, factor: Term) -> Layer | None:
    """A layer whose results are multiplied by numbers."""
    vector = _by_channel(factor, layer.key.axis)
    if vector is None:
        return None
    of_results = 1 if layer.key.conv is None else 0
    weights = Mul()(layer.weights, Expand((of_results,), layer.weights.shape)(vector))
    return layer._replace(weights=weights, bias=layer.bias and Mul()(layer.bias, vector))


def _shifted(layer: Layer, summand: Term) -> Layer | None:
    """A layer to whose results numbers are added."""
    vector = _by_channel(summand, layer.key.axis)
    return None if vector is None else layer._replace(bias=added(layer.bias, vector))


def _taken_by(layer: Layer, vector: Term) -> Term:
    """The weights of a layer of channels that are multiplied by numbers."""
    conv = layer.key.conv
    of_channels = 0 if conv is None or not is_one(conv.group) else 1
    return Mul()(layer.weights, Expand((of_channels,), layer.weights.shape)(vector))


def _weighed(layer: Layer, vector: Term) -> Term:
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


def _through(inner: Layer, outer: Layer) -> Layer | None:
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
    bias = outer.bias if inner.bias is None else added(_weighed(outer, inner.bias), outer.bias)
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
    if not _is_single(inner):
        return None
    conv = outer.key.conv
    if not is_one(conv.group):
        whole = (after, before, *b.shape[2:])
        repeated = Expand((0, 1), whole)(reshaped(a, (middle, before)))
        kernel = Mul()(Expand((0, *range(2, len(whole))), whole)(reshaped(b, (after, *b.shape[2:]))), repeated)
        one_group = Conv(conv.strides, conv.pads, conv.dilations)
        return outer._replace(key=Key(inner.key.x, one_group, outer.key.places), weights=kernel)
    last = b.type.rank - 1
    rows = reshaped(Transpose((0, *range(2, last + 1), 1))(b), (after * product(outer.key.places), middle))
    mixed = reshaped(MatMul()(rows, reshaped(a, (middle, before))), (after, *outer.key.places, before))
    return outer._replace(
        key=Key(inner.key.x, conv, outer.key.places), weights=Transpose((0, last, *range(1, last)))(mixed)
    )


def _is_single(layer: Layer) -> bool:
    """Whether a convolution reads, for each place, that place alone."""
    assert layer.key.conv is not None
    return product_of(make(layer.key.conv, (layer.key.x, layer.weights))) is not None
