"""Linear layers of one value that are added up, as one layer: adapters that were never merged into their weights.

A low-rank adapter (LoRA, Hu et al. 2021) adds to a layer a second one, through a few channels: `x·W + s·(x·A)·B` is
`x·(W + s·A·B)`, and so are convolutions of which one or the other is of single places. Rules say each step, but not
that it pays: the two products of an adapter become one as dear as the layer itself before that is no more of its own.
So layers are followed down to what both are of, and all of their weights become one at once. Of two beside each other
(LoHa, Hyeon-Woo et al. 2022, whose product of constants is a whole matrix) rules take more than one step, of which the
first may copy more than it saves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from superopt.operators.normalize import Gemm
from superopt.operators.pointwise import Add
from superopt.search.rewriting.finders.affine import applied, layers
from superopt.search.rewriting.finders.composed import Layer, added, work_of
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term

MOST_ADDED = 8
"""Of more summands nothing is looked for."""


class Merging(Fewer):
    """Finds sums of layers of the same value."""

    name = "several linear layers as one"
    heads = (Add,)

    def made(self, term: Term) -> Term | None:
        """The sum, of fewer layers; None where these are no less work."""
        summands = _summands(term)
        if len(summands) > MOST_ADDED:
            return None
        found = [{layer.key: layer for layer in layers(s)} for s in summands]
        for key, count in Counter(key for each in found for key in each).items():
            same = [each[key] for each in found if key in each]
            if count > 1 and _is_less(same, term):
                rest = [s for s, each in zip(summands, found, strict=True) if key not in each]
                return reduce(Add(), [applied(reduce(_sum, same)), *rest])
        return None


def _is_less(layers: Sequence[Layer], whole: Term) -> bool:
    """Whether layers of the same are less work as one: also where some become part of another, as large anyway."""
    return {layer.merged for layer in layers} == {True, False} or (
        work_of(reduce(_sum, layers), whole.shape) < sum(layer.work for layer in layers)
    )


def _sum(one: Layer, other: Layer) -> Layer:
    """Two layers of the same, added up."""
    return one._replace(weights=Add()(one.weights, other.weights), bias=added(one.bias, other.bias))


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
