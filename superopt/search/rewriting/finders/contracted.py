"""Sums of what is multiplied element by element, as products of matrices.

Networks that are written by hand repeat two values for all pairs of their places, multiply and sum up: the last product
of a DeepONet (Lu et al. 2021), the volume of costs that a stereo network compares, values that are pooled by weights.
Runtimes write all of the products before they sum them up; so they do where a layer of one number weighs the products,
as a trilinear attention does (Seo et al. 2017). The length of weights that are scaled for each of their channels, by
which StyleGAN2 divides what they give (Karras et al. 2020), is one of squares: `Σ_ck (w[o,c,k]·s[c])²` is
`Σ_c (Σ_k w[o,c,k]²)·s[c]²`, of which the sum along k is constant. Axes of the one value alone are rows, of the other
columns, what is summed up is contracted, and what both have otherwise is a stack of matrices; as in an einsum, which
says that much by its letters.
"""

from __future__ import annotations

from collections.abc import Sequence

from superopt.dim import Shape, product
from superopt.operators.constant import filled, number_of
from superopt.operators.element_types import FLOATS
from superopt.operators.functions import Pow
from superopt.operators.layout import Expand, Reshape, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Div, Mul
from superopt.operators.reductions import Mean, Sum
from superopt.relations import are_equal, is_one
from superopt.search.rewriting.finders.contractions import Factor, Parts, contracted, parted, parts_of
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term

MOST = 4
"""Of more factors nothing is looked for."""

SQUARE = 2.0
"""The power that is a product of twice the same."""


class Contracting(Fewer):
    """Finds sums of products."""

    name = "sums of products as a product of matrices"
    heads = (Sum, Mean, MatMul)

    def may_be(self, term: Term) -> bool:
        """Whether it is a sum or a mean of products, or one by weights, of numbers that matrices may be of."""
        if isinstance(term.operator, MatMul) and not (is_one(term.shape[-1]) and _is_of_rows(term.inputs[1])):
            return False
        return term.type.dtype in FLOATS and _multiplies(_multiplied(term))

    def made(self, term: Term) -> Term | None:
        """The product of matrices; None where no factor has an axis alone, or none has one in common that is summed."""
        op, x = term.operator, _multiplied(term)
        axes = op.axes if isinstance(op, Sum | Mean) else (x.type.rank - 1,)
        if isinstance(op, MatMul):
            weights = term.inputs[1] if term.inputs[1].type.rank == 2 else term.inputs[1].inputs[0]
            x = Mul()(x, Expand(axes, x.shape)(reshaped(weights, x.shape[-1:])))
        ways = [(one, other, parts_of(one, other, axes)) for one, other in parted(factors_of(x), x.shape)]
        both = isinstance(op, MatMul)  # else it is one already
        fit = [(a, b, p) for a, b, p in ways if p.inner and (p.rows and p.columns if both else p.rows or p.columns)]
        whole = [way for way in fit if _is_whole(way, axes, x.shape)]
        best = max(whole, key=lambda way: len(way[2].rows) + len(way[2].columns), default=None)
        if best is None:
            return None
        one, other, parts = best
        made = reshaped(contracted(_summed(one, other, axes), _summed(other, one, axes), parts, x.shape), term.shape)
        count = product([x.shape[a] for a in axes])
        if not isinstance(op, Mean):
            return made
        return Div()(made, filled(float(count), term.shape)) if isinstance(count, int) else None


def _multiplied(term: Term) -> Term:
    """What is added up; in another shape, where weights are those of the same last axis."""
    x = term.inputs[0]
    if not isinstance(term.operator, MatMul) or not isinstance(x.operator, Reshape):
        return x
    (seen,) = x.inputs
    return seen if seen.shape and are_equal(seen.shape[-1], x.shape[-1]) else x


def _is_of_rows(matrix: Term) -> bool:
    """Whether all of a stack of matrices are the same."""
    rank, op = matrix.type.rank, matrix.operator
    return rank == 2 or (isinstance(op, Expand) and op.axes == (rank - 2, rank - 1))


def factors_of(x: Term) -> list[Factor]:
    """What is multiplied, a square by itself; where that is too much, some of it."""
    found = [x]
    for _ in range(MOST - 1):
        if (at := next((n for n, f in enumerate(found) if _multiplies(f)), None)) is not None:
            f = found[at]
            found[at : at + 1] = f.inputs if isinstance(f.operator, Mul) else f.inputs[:1] * 2
    return list(map(_factor, found))


def _multiplies(x: Term) -> bool:
    """Whether a term is a product, or the square of one."""
    if isinstance(x.operator, Pow):
        return number_of(x.inputs[1]) == SQUARE and isinstance(x.inputs[0].operator, Mul)
    return isinstance(x.operator, Mul)


def _factor(x: Term) -> Factor:
    repeat = x.operator
    own, inner = (repeat.axes, x.inputs[0]) if isinstance(repeat, Expand) else (range(x.type.rank), x)
    kept = tuple(a for a in own if not is_one(x.shape[a]))
    return Factor(reshaped(inner, tuple(x.shape[a] for a in kept)), kept)


def _is_whole(way: tuple[Factor, Factor, Parts], summed: Sequence[int], shape: Shape) -> bool:
    """Whether nothing is repeated for the sum, nor summed up of one factor alone but of what is constant."""
    one, other, parts = way
    alone = [a for f, g in ((one, other), (other, one)) if f.x.constant for a in f.axes if a in _alone(f, g, summed)]
    return sorted([*alone, *(a for p in parts for a in p)]) == [a for a, d in enumerate(shape) if not is_one(d)]


def _alone(f: Factor, other: Factor, summed: Sequence[int]) -> list[int]:
    """Along which axes a factor is summed that the other has not."""
    return [a for a in f.axes if a in summed and a not in other.axes]


def _summed(f: Factor, other: Factor, summed: Sequence[int]) -> Factor:
    """A factor, summed along those."""
    alone = _alone(f, other, summed)
    kept = tuple(a for a in f.axes if a not in alone)
    return Factor(Sum(tuple(map(f.axes.index, alone)))(f.x), kept) if alone else f
