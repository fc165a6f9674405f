"""Linear layers right below each other, as one: what networks are trained with, and not meant to be run with.

Collapsible linear blocks expand to many channels and come back without a function in between (SESR; Bhardwaj et al.
2022; ExpandNets, Guo et al. 2020; VanillaNet, Chen et al. 2023). Two single places below each other are one by a rule;
a wide kernel and a single place need their weights in another shape, and what was added in between weighed by all
places of the kernel.
"""

from __future__ import annotations

from superopt.operators.conv import Conv
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import BatchNorm, Gemm
from superopt.operators.padding import Pad
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.affine import applied, layers
from superopt.search.rewriting.finders.composed import work_of
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term


class Collapsing(Fewer):
    """Finds layers of layers that are less work as one."""

    name = "linear layers below each other as one"
    heads = (Conv, Gemm, MatMul)

    def may_be(self, term: Term) -> bool:
        """Whether it is a layer of what may be one."""
        x, weights = term.inputs[:2]
        return weights.constant and isinstance(x.operator, Add | BatchNorm | Conv | Gemm | MatMul | Mul | Pad)

    def made(self, term: Term) -> Term | None:
        """The layer of least work; None where that is not of several."""
        works = [(work_of(layer, term.shape), layer) for layer in layers(term) if layer.merged]
        less = [(work, layer) for work, layer in works if work <= layer.work]
        return applied(min(less, key=lambda each: each[0])[1]) if less else None
