"""Other forms in which ONNX writes declared operators: Split, Sum, Mean, Squeeze, Identity, Dropout, …"""

from __future__ import annotations

import itertools

import numpy as np

from superopt.dim import Dim
from superopt.operators.activations import times
from superopt.operators.declare import reads
from superopt.operators.layout import broadcast, positive_axis, reshaped
from superopt.operators.nodes import NotUnderstood, Source, pass_over, present
from superopt.operators.picks import Slice
from superopt.operators.pointwise import Add
from superopt.term import Term, make


@reads("Identity")
def identity(node: Source) -> Term:
    """The input itself."""
    return present(node.inputs, 1)[0]


@reads("Dropout")
def dropout(node: Source) -> Term:
    """At inference, the input itself. The mask, where it is used, is not covered."""
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        training = node.constant(2)
        if training is None or bool(training):
            raise NotUnderstood("training mode")
    pass_over(node, "ratio", "seed")
    x = node.inputs[0]
    assert x is not None
    return x


@reads("Sum")
def sum_of(node: Source) -> Term:
    """A chain of additions that leans left."""
    total, *others = present(node.inputs, len(node.inputs))
    for other in others:
        total = make(Add(), broadcast(total, other))
    return total


@reads("Mean")
def mean_of(node: Source) -> Term:
    """The sum over the count."""
    return times(sum_of(node), 1.0 / len(node.inputs))


@reads("Split")
def split(node: Source) -> tuple[Term, ...]:
    """A slice for each output."""
    x = node.inputs[0]
    assert x is not None
    axis = positive_axis(node.attributes.get("axis", 0), x.type.rank)
    sizes = node.attributes.get("split")
    if sizes is None and len(node.inputs) > 1:
        sizes = node.sizes(1)
    if sizes is None and len(node.inputs) > 1:
        raise NotUnderstood("the sizes are computed while the model runs")
    if sizes is None:
        sizes = _equal_parts(x.shape[axis], node.attributes.get("num_outputs", node.outputs))
    bounds: list[Dim] = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return tuple(make(Slice(axis, a, b), (x,)) for a, b in itertools.pairwise(bounds))


def _equal_parts(size: Dim, count: int) -> list[int]:
    """Parts of equal size, the last one smaller where that does not come out."""
    if not isinstance(size, int):
        raise NotUnderstood(f"the size {size} is split evenly, and symbolic")
    part = -(-size // count)
    return [min(part, size - i * part) for i in range(count)]


@reads("Unsqueeze")
def unsqueeze(node: Source) -> Term:
    """Axes of size 1, put in."""
    x, axes = node.inputs[0], _axes(node)
    assert x is not None
    rank = x.type.rank + len(axes)
    places, rest = {positive_axis(a, rank) for a in axes}, iter(x.shape)
    return reshaped(x, tuple(1 if i in places else next(rest) for i in range(rank)))


@reads("Squeeze")
def squeeze(node: Source) -> Term:
    """Axes of size 1, taken out."""
    x = node.inputs[0]
    assert x is not None
    named = "axes" in node.attributes or len(node.inputs) > 1
    axes = _axes(node) if named else [i for i, d in enumerate(x.shape) if _is_certainly_one(d)]
    places = {positive_axis(a, x.type.rank) for a in axes}
    return reshaped(x, tuple(d for i, d in enumerate(x.shape) if i not in places))


def _axes(node: Source) -> list[int]:
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1:
        axes = node.constant(1)
    if axes is None:
        raise NotUnderstood("the axes are computed while the model runs")
    return [int(a) for a in np.ravel(axes)]  # a single one without an axis of its own is taken by runtimes too


def _is_certainly_one(d: Dim) -> bool:
    if isinstance(d, int):
        return d == 1
    raise NotUnderstood(f"whether the size {d} is 1 is not decided")
