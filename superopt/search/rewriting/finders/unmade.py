"""Keys, values and queries that are not made where those that they meet are few.

What few queries attend to is multiplied by matrices of its own for keys and values, parted into heads and moved behind
these, all of which takes as long as there are rows. But `q·(x·w)ᵀ` is `(q·wᵀ)·xᵀ`, and `p·(x·w)` is `(p·x)·w`: of a few
queries, each head's is multiplied by its weights, and all of them meet the rows themselves. So with pools that attend
(Lee et al. 2019), decoders of masks (Segment Anything, Kirillov et al. 2023), and classifiers of whose last layer one
row is read. As much holds the other way round, where many queries meet few keys: `(x·w)·k` is `x·(w·k)`.
"""

from __future__ import annotations

from typing import NamedTuple

from superopt.dim import Shape
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add, Mul
from superopt.operators.reductions import Sum
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.layered import channels_of, layered, places_of
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term

WORTH = 0.8
"""Of the multiplications that there are, those that are left at most."""

MANY = 16
"""So many times as many rows as there are on the other side are there, where their number is open."""


class Heads(NamedTuple):
    """What a layer makes of rows (batches.., rows, channels) for each head, with weights (heads, numbers, channels) and
    perhaps a bias (heads, numbers): stacks of matrices, in which rows lie along the last axis or the one before it.
    """

    rows: Term
    weights: Term
    bias: Term | None
    by_rows: bool
    """Whether rows are rows, and not columns."""

    @property
    def batches(self) -> Shape:
        """How many there are of each."""
        return self.rows.shape[:-2]

    @property
    def number(self) -> int:
        """How many heads there are."""
        number = self.weights.shape[0]
        assert isinstance(number, int)
        return number


class Unmaking(Fewer):
    """Finds products with a view of what a layer makes of more rows than there are on the other side."""

    name = "products with what a layer would make, with its weights first"
    heads = (MatMul,)

    def may_be(self, term: Term) -> bool:
        """Whether it is no layer itself."""
        return not term.inputs[1].constant

    def made(self, term: Term) -> Term | None:
        """A product with the weights, and one with the rows; None where that is not clearly less."""
        x, y = term.inputs
        made = _heads(y)
        if made is not None and _is_less(made, x.shape[-2]):
            return (_of_values if made.by_rows else _of_keys)(made, x, term)
        made = _heads(x)
        return _of_queries(made, y, term) if made and made.by_rows and _is_less(made, y.shape[-1]) else None


def _heads(x: Term) -> Heads | None:
    """What a layer makes, as a term views it: a stack of matrices for each of some batches, and in it for each head."""
    view = layered(x)
    if view is None:
        return None
    *stack, last, behind = view.axes
    by_rows = places_of(last) != []
    row, numbers = (last, behind) if by_rows else (behind, last)
    parts = [part for axis in stack for part in axis]
    batches = places_of(parts)
    if len(row) != 1 or places_of([*numbers, *parts[len(batches) :]]) or not (own := places_of(row)):
        return None
    moved = turned(view.rows, (*batches, *own, len(batches) + 1))
    sizes = (channels_of(parts), channels_of(numbers))
    weights = reshaped(view.weights, (*sizes, view.weights.shape[-1]))
    return Heads(moved, weights, None if view.bias is None else reshaped(view.bias, sizes), by_rows)


def _is_less(made: Heads, few: object) -> bool:
    """Whether so few on the other side are multiplied less often by the weights and by the rows than rows are by the
    weights, and what that makes by them.
    """
    rows, channels, numbers = made.rows.shape[-2], *made.weights.shape[:0:-1]
    if not isinstance(few, int) or not isinstance(channels, int) or not isinstance(numbers, int):
        return False
    many = rows if isinstance(rows, int) else MANY * few
    return few * channels * (numbers + many) <= WORTH * many * numbers * (channels + few)


def _repeated(made: Heads, x: Term) -> Term:
    """Weights or bias, for each of the batches: (batches.., heads, rows, columns)."""
    count = len(made.batches)
    return Expand((count, count + 1, count + 2), (*made.batches, *x.shape))(x) if count else x


def _stacked(made: Heads, x: Term) -> Term:
    """The other side: (batches.., heads, rows, columns)."""
    return reshaped(x, (*made.batches, made.number, *x.shape[-2:]))


def _of_keys(made: Heads, x: Term, term: Term) -> Term:
    """`x·(r·w + b)ᵀ`: what is multiplied by the weights of its head, times the rows."""
    stacked, few = _stacked(made, x), x.shape[-2]
    met = MatMul()(stacked, _repeated(made, made.weights))
    all_ = reshaped(met, (*made.batches, made.number * few, met.shape[-1]))
    result = reshaped(MatMul()(all_, _on_their_sides(made.rows)), term.shape)
    if made.bias is None:
        return result
    added = MatMul()(stacked, _repeated(made, reshaped(made.bias, (*made.bias.shape, 1))))
    return Add()(result, _along_last(reshaped(added, term.shape[:-1]), term.shape))


def _of_values(made: Heads, x: Term, term: Term) -> Term:
    """`x·(r·w + b)`: what is multiplied by the rows, times the weights of its head."""
    few = x.shape[-2]
    all_ = reshaped(x, (*made.batches, made.number * few, x.shape[-1]))
    met = reshaped(MatMul()(all_, made.rows), (*made.batches, made.number, few, made.rows.shape[-1]))
    result = MatMul()(met, _repeated(made, Transpose((0, 2, 1))(made.weights)))
    if made.bias is None:
        return reshaped(result, term.shape)
    rank = result.type.rank
    bias = Expand((rank - 3, rank - 1), result.shape)(made.bias)
    if not (isinstance(x.operator, Softmax) and x.operator.axis == term.type.rank - 1):  # which adds up to one
        total = reshaped(Sum((term.type.rank - 1,))(x), result.shape[:-1])
        bias = Mul()(_along_last(total, result.shape), bias)
    return reshaped(Add()(result, bias), term.shape)


def _of_queries(made: Heads, y: Term, term: Term) -> Term:
    """`(r·w + b)·y`: the rows, times the weights of each head multiplied by what they meet."""
    stacked, count = _stacked(made, y), len(made.batches)
    weights = MatMul()(_repeated(made, Transpose((0, 2, 1))(made.weights)), stacked)
    few, exchanged = weights.shape[-1], (*range(count), count + 1, count, count + 2)
    beside = weights if made.number == 1 else Transpose(exchanged)(weights)
    met = MatMul()(made.rows, reshaped(beside, (*made.batches, weights.shape[-2], made.number * few)))
    parted = reshaped(met, (*made.batches, met.shape[-2], made.number, few))
    result = reshaped(parted if made.number == 1 else Transpose(exchanged)(parted), term.shape)
    if made.bias is None:
        return result
    heads, numbers = made.bias.shape
    added = MatMul()(_repeated(made, reshaped(made.bias, (heads, 1, numbers))), stacked)
    kept = tuple(a for a in range(term.type.rank) if a != term.type.rank - 2)
    return Add()(result, Expand(kept, term.shape)(reshaped(added, tuple(term.shape[a] for a in kept))))


def _on_their_sides(rows: Term) -> Term:
    """Matrices, with rows as columns."""
    rank = rows.type.rank
    return Transpose((*range(rank - 2), rank - 1, rank - 2))(rows)


def _along_last(x: Term, to: Shape) -> Term:
    """What is the same along the last axis."""
    return reshaped(x, to) if is_one(to[-1]) else Expand(tuple(range(len(to) - 1)), to)(x)
