"""Keys, values and queries that are not made where those that they meet are few.

What few queries attend to is multiplied by matrices of its own for keys and values, parted into heads and moved behind
these, all of which takes as long as there are rows. But `q·(x·w)ᵀ` is `(q·wᵀ)·xᵀ`, and `p·(x·w)` is `(p·x)·w`: of a few
queries, each head's is multiplied by its weights, and all of them meet the rows themselves. So with pools that attend
(Lee et al. 2019), decoders of masks (Segment Anything, Kirillov et al. 2023), and classifiers of whose last layer one
row is read. As much holds the other way round, where many queries meet few keys: `(x·w)·k` is `x·(w·k)`.
"""

from __future__ import annotations

from superopt.dim import Dim, Shape, product
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.layered import Layered, layered
from superopt.term import Term

WORTH = 0.8
"""Of the multiplications that there are, those that are left at most."""


class Unmaking(Fewer):
    """Finds products with a view of what a layer makes of more rows than there are on the other side."""

    name = "products with what a layer would make, with its weights first"
    heads = (MatMul,)

    def may_be(self, term: Term) -> bool:
        """Whether no side is constant."""
        return not any(i.constant for i in term.inputs)

    def made(self, term: Term) -> Term | None:
        """A product with the weights, and one with the rows; None where that is not clearly less."""
        x, y = term.inputs
        rank = term.type.rank
        for of, other, few in ((y, x, -2), (x, y, -1)):
            view = layered(of)
            if view is None or view.batch != tuple(range(len(view.batch))) or view.row not in (rank - 2, rank - 1):
                continue
            if not _is_less(view, other.shape[few]):
                continue
            if of is y:
                return _of_keys(view, x, term) if view.row == rank - 1 else _of_values(view, x, term)
            if view.row == rank - 2:
                return _of_queries(view, y, term)
        return None


def _is_less(view: Layered, few: Dim) -> bool:
    """Whether so few on the other side are multiplied less often by the weights and by the rows than rows are by the
    weights, and what that makes by them.
    """
    rows, channels = view.rows.shape[-2:]
    made = _inner(view)
    if not isinstance(few, int) or not isinstance(channels, int) or not isinstance(made, int):
        return False
    sizes = (rows,) if isinstance(rows, int) else (few, 16 * few)
    heads = _heads(view)
    return all(heads * few * channels * (made + n) <= WORTH * heads * n * made * (channels + few) for n in sizes)


def _heads(view: Layered) -> int:
    """How many matrices of weights there are."""
    found = product(view.weights.shape[:-2])
    assert isinstance(found, int)
    return found


def _inner(view: Layered) -> Dim:
    """How many numbers the layer makes of a row for each head."""
    return view.weights.shape[-1 if view.row == view.weights.type.rank - 2 else -2]


def _stacked(view: Layered, x: Term) -> Term:
    """The other side: (batches.., heads, rows, columns)."""
    return reshaped(x, (*view.batches, _heads(view), *x.shape[-2:]))


def _repeated(view: Layered, x: Term) -> Term:
    """Weights or bias, for each of the batches: (batches.., heads, rows, columns)."""
    once = reshaped(x, (_heads(view), *x.shape[-2:]))
    count = len(view.batches)
    return Expand((count, count + 1, count + 2), (*view.batches, *once.shape))(once) if count else once


def _of_keys(view: Layered, x: Term, term: Term) -> Term:
    """`x·(r·w + b)ᵀ`: what is multiplied by the weights of its head, times the rows."""
    stacked, rows = _stacked(view, x), view.rows
    few = MatMul()(stacked, _repeated(view, view.weights))
    all_ = reshaped(few, (*view.batches, _heads(view) * few.shape[-2], few.shape[-1]))
    result = reshaped(MatMul()(all_, _turned(rows)), term.shape)
    if view.bias is None:
        return result
    added = MatMul()(stacked, _repeated(view, view.bias))
    return Add()(result, _along_last(reshaped(added, term.shape[:-1]), term.shape))


def _of_values(view: Layered, x: Term, term: Term) -> Term:
    """`x·(r·w + b)`: what is multiplied by the rows, times the weights of its head."""
    heads, few = _heads(view), x.shape[-2]
    all_ = reshaped(x, (*view.batches, heads * few, x.shape[-1]))
    met = reshaped(MatMul()(all_, view.rows), (*view.batches, heads, few, view.rows.shape[-1]))
    result = reshaped(MatMul()(met, _repeated(view, view.weights)), term.shape)
    if view.bias is None:
        return result
    last = term.type.rank - 1
    once = reshaped(view.bias, tuple(d for a, d in enumerate(view.bias.shape) if a not in (*view.batch, last - 1)))
    kept = tuple(a for a in range(last + 1) if a not in (*view.batch, last - 1))
    bias = Expand(kept, term.shape)(once)
    if isinstance(x.operator, Softmax) and x.operator.axis == last:  # which adds up to one
        return Add()(result, bias)
    return Add()(result, Mul()(_along_last(Sum((last,))(x), term.shape), bias))


def _of_queries(view: Layered, y: Term, term: Term) -> Term:
    """`(r·w + b)·y`: the rows, times the weights of each head multiplied by what they meet."""
    stacked, count = _stacked(view, y), len(view.batches)
    weights = MatMul()(_repeated(view, view.weights), stacked)
    heads, few = _heads(view), weights.shape[-1]
    front = tuple(range(count))
    moved = weights if heads == 1 else Transpose((*front, count + 1, count, count + 2))(weights)
    met = MatMul()(view.rows, reshaped(moved, (*view.batches, weights.shape[-2], heads * few)))
    parted = reshaped(met, (*view.batches, met.shape[-2], heads, few))
    result = reshaped(parted if heads == 1 else Transpose((*front, count + 1, count, count + 2))(parted), term.shape)
    if view.bias is None:
        return result
    added = MatMul()(_repeated(view, view.bias), stacked)
    kept = tuple(a for a in range(term.type.rank) if a != term.type.rank - 2)
    return Add()(result, Expand(kept, term.shape)(reshaped(added, tuple(term.shape[a] for a in kept))))


def _turned(rows: Term) -> Term:
    """Matrices on their sides."""
    rank = rows.type.rank
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(rows)


def _along_last(x: Term, to: Shape) -> Term:
    """What is the same along the last axis."""
    return x if is_one(to[-1]) else Expand(tuple(range(len(to) - 1)), to)(x)
