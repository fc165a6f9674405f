"""Sums of what is multiplied element by element, as products of matrices.

Networks that are written by hand repeat two values for all pairs of their places, multiply and sum up: the last product
of a DeepONet (Lu et al. 2021), the volume of costs that a stereo network compares, values that are pooled by weights.
Runtimes write all of the products before they sum them up; so they do where a layer of one number weighs the products,
as a trilinear attention does (Seo et al. 2017). Axes of the one value alone are rows, of the other columns,
what is summed up is contracted, and what both have otherwise is a stack of matrices; as in an einsum, which says that
much by its letters.
"""

from __future__ import annotations

from superopt.dim import Shape, product
from superopt.operators.constant import filled
from superopt.operators.element_types import FLOATS
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


class Contracting(Fewer):
    """Finds sums of products."""

    name = "sums of products as a product of matrices"
    heads = (Sum, Mean, MatMul)

    def may_be(self, term: Term) -> bool:
        """Whether it is a sum or a mean of products, or one by weights, of numbers that matrices may be of."""
        if isinstance(term.operator, MatMul) and not (is_one(term.shape[-1]) and _is_of_rows(term.inputs[1])):
            return False
        return term.type.dtype in FLOATS and isinstance(_multiplied(term).operator, Mul)

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
        best = max(fit, key=lambda way: len(way[2].rows) + len(way[2].columns), default=None)
        if best is None or not _is_whole(best[2], x.shape):
            return None
        made = reshaped(contracted(*best, x.shape), term.shape)
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
    """What is multiplied; where that is too much, some of it."""
    found = [x]
    for _ in range(MOST - 1):
        if (at := next((n for n, f in enumerate(found) if isinstance(f.operator, Mul)), None)) is not None:
            found[at : at + 1] = found[at].inputs
    return list(map(_factor, found))


def _factor(x: Term) -> Factor:
    repeat = x.operator
    own, inner = (repeat.axes, x.inputs[0]) if isinstance(repeat, Expand) else (range(x.type.rank), x)
    kept = tuple(a for a in own if not is_one(x.shape[a]))
    return Factor(reshaped(inner, tuple(x.shape[a] for a in kept)), kept)


def _is_whole(parts: Parts, shape: Shape) -> bool:
    """Whether nothing is repeated for the sum, nor summed up of one factor alone."""
    return sorted(a for part in parts for a in part) == [a for a, d in enumerate(shape) if not is_one(d)]
