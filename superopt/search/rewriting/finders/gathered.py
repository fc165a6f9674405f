"""Rows that are gathered, multiplied before: features of a graph's nodes, which each edge takes of those at its ends.

`gather(x, i)·w = gather(x·w, i)`, and there are more edges than nodes. Between the two stand reshapes, transposes, and
differences and joins with the features of the node itself, repeated for all of its edges: `[x_i, x_j − x_i]·w` is
`x_i·w₁ + x_j·w₂ − x_i·w₂`, each of which is of a node. One step at a time it is dear before it pays: what is taken
apart is multiplied more often, until the last part is multiplied before. So all are taken at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from superopt.dim import at_most, is_one, product
from superopt.operators.along import read_along, widened
from superopt.operators.declare import Declared
from superopt.operators.functions import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.linear import Conv, MatMul
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add
from superopt.operators.rearrange import Gather
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make, subterms

MOST = 16
"""Below more operators than these nothing is looked for."""

THROUGH = (Reshape, Transpose, Expand, Add, Sub, Concat)
"""What a gather is looked for behind."""


class Product(NamedTuple):
    """Channels along an axis of a value, and what they are multiplied by: constant weights (channels, results)."""

    x: Term
    axis: int
    weights: Term


class Gathering(Fewer):
    """Finds what is multiplied each time that it is gathered."""

    name = "multiplied before it is gathered"

    def may_be(self, term: Term) -> bool:
        """Whether it is a product by constant weights, of what is no input."""
        return isinstance(term.operator, MatMul | Conv) and term.inputs[1].constant and bool(term.inputs[0].inputs)

    def made(self, term: Term) -> Term | None:
        """The same of products of what is gathered; None where nothing is, or that is no less."""
        whole = product_of(term)
        if whole is None or not _gathers(whole.x):
            return None
        made = _before(whole)
        return made if made is not None and _is_less(made, whole) else None


def product_of(term: Term) -> Product | None:
    """What a product of rows with one matrix, or a convolution of single places, multiplies."""
    op, (x, w) = term.operator, term.inputs
    if isinstance(op, Conv):
        single = all(map(is_one, (*w.shape[2:], *op.strides, op.group))) and not any(op.pads)
        return Product(x, 1, Transpose((1, 0))(reshaped(w, w.shape[:2]))) if single else None
    last, repeat = term.type.rank - 1, w.operator
    if last == 1:
        return Product(x, last, w)
    return Product(x, last, w.inputs[0]) if isinstance(repeat, Expand) and repeat.axes == (last - 1, last) else None


def _gathers(x: Term) -> bool:
    """Whether something is gathered below what moves, joins and adds up, not too far."""
    seen, gathers, stack = set[Term](), False, [x]
    while stack and len(seen) <= MOST:
        term = stack.pop()
        gathers = gathers or isinstance(term.operator, Gather | Take)
        if term not in seen and isinstance(term.operator, THROUGH):
            stack += term.inputs
            seen.add(term)
    return gathers and len(seen) <= MOST


def _before(whole: Product) -> Term | None:
    """A product, done before what is gathered and repeated is so; None where nothing is, or by channels."""
    x, axis, weights = whole
    op = x.operator
    if isinstance(op, Add | Sub):
        both = [_before(Product(i, axis, weights)) for i in x.inputs]
        return None if None in both else make(op, [one for one in both if one is not None])
    if isinstance(op, Concat) and op.axis == axis:
        return _of_parts([Product(i, axis, w) for i, w in zip(x.inputs, _rows(weights, x.inputs, axis), strict=True)])
    if (read := _read(x, axis)) is None:
        return None
    below = Product(x.inputs[0], read, weights)
    one = _before(below)
    if one is None and isinstance(op, Reshape | Transpose):
        return None
    assert isinstance(op, Declared)
    return make(widened(op, axis, weights.shape[1]), (one or multiplied(below), *x.inputs[1:]))


def _of_parts(parts: Sequence[Product]) -> Term | None:
    """The sum of the products of what is joined; None where it is not less for any of them."""
    found = [_before(part) for part in parts]
    if found.count(None) == len(found):
        return None
    return reduce(Add(), [one or multiplied(part) for one, part in zip(found, parts, strict=True)])


def _rows(weights: Term, parts: Sequence[Term], axis: int) -> list[Term]:
    """The rows of the weights for each of two parts that are joined along an axis."""
    first, second = (part.shape[axis] for part in parts)
    return [Slice(0, 0, first)(weights), Slice(0, first, first + second)(weights)]


def _read(x: Term, axis: int) -> int | None:
    """The axis along which the channels stand in what is gathered, repeated or moved; None where it is another one."""
    op = x.operator
    if isinstance(op, Gather):
        count = x.inputs[1].type.rank
        if op.axis <= axis < op.axis + count:
            return None
        return axis if axis < op.axis else axis - count + 1
    if isinstance(op, Take):
        return axis if axis != op.axis else None
    if isinstance(op, Expand | Reshape | Transpose):
        found = read_along(x, axis)
        return None if found is None else found[0]
    return None


def multiplied(whole: Product) -> Term:
    """A product, done as it stands: as a matrix by a matrix, where that can be."""
    x, axis, weights = whole
    last = x.type.rank - 1
    if axis != last:
        order = (*(a for a in range(last + 1) if a != axis), axis)
        back = tuple(order.index(a) for a in range(last + 1))
        return Transpose(back)(multiplied(Product(Transpose(order)(x), last, weights)))
    before = x.shape[:-1]
    if sum(not isinstance(d, int) for d in before) > 1:
        repeated = Expand((last - 1, last), (*x.shape[:-2], *weights.shape))(weights)
        return MatMul()(x, repeated if last > 1 else weights)
    rows = MatMul()(reshaped(x, (product(before), x.shape[-1])), weights)
    return reshaped(rows, (*before, weights.shape[1]))


def _is_less(made: Term, whole: Product) -> bool:
    """Whether fewer elements are multiplied; where symbols leave that open a search tells, but not of constants: how
    large they become is not of its sizes.
    """
    old = set(subterms(whole.x))
    products = [t for t in subterms(made) if isinstance(t.operator, MatMul) and t not in old]
    count = sum((product(t.inputs[0].shape) for t in products), start=0)
    less = at_most(count + 1, product(whole.x.shape))
    return less is True or (less is not False and not any(t.constant for t in products))
