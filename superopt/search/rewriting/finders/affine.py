"""What a value is as a layer of constant weights: of what is right below, of what is below that, and so on.

What is added to each channel, and what multiplies it, between two layers and behind them, belongs to the layer, and so
do zeros around what is convolved.
"""

from __future__ import annotations

from superopt.operators.conv import Conv
from superopt.operators.layout import Expand
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import BatchNorm, Gemm
from superopt.operators.padding import Pad
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reduce import AvgPool
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.composed import Key, Layer, added, through, weighed, work_of
from superopt.search.rewriting.finders.convolved import convolved
from superopt.search.rewriting.finders.gathered import Product, multiplied, product_of
from superopt.term import Term, make

MOST_BELOW, MOST_BETWEEN = 4, 8
"""Of more layers below each other, and of more between two of them, nothing is looked for."""


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
    several = [layer for inner in deeper if (layer := through(inner, nearer)) is not None]
    return [own, *([nearer] if nearer is not own else []), *several]


def applied(layer: Layer) -> Term:
    """A layer's value."""
    key = layer.key
    if key.conv is not None:
        value = make(key.conv, (key.x, layer.weights))
    else:
        value = multiplied(Product(key.x, key.axis, layer.weights))
    return value if layer.bias is None else Add()(value, Expand((key.axis,), value.shape)(layer.bias))


def _own(term: Term) -> Layer | None:
    """A value as a layer of what is right below."""
    op = term.operator
    if isinstance(op, AvgPool | Slice):
        return convolved(term)
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
            return layer._replace(key=of_value, bias=added(weighed(layer, vector), layer.bias))
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
