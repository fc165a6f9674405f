"""Rows that are gathered or repeated, multiplied before: features of a graph's nodes, which each edge takes of those at
its ends; each of some things beside each of others, as scores of pairs and the joint network of a transducer (Graves
2012) join them.

`gather(x, i)·w = gather(x·w, i)`, and there are more edges than nodes. Between the two stand reshapes, transposes, and
differences and joins with the features of the node itself, repeated for all of its edges: `[x_i, x_j − x_i]·w` is
`x_i·w₁ + x_j·w₂ − x_i·w₂`, each of which is of a node. So do functions of each number: what weighs the first and the
last word of each span, rectified (GLiNER; Zaratiana et al. 2023), is a layer of the words. One step at a time it is
dear before it pays: what is taken apart is multiplied more often, until the last part is multiplied before. So all are
taken at once. What is left is multiplied once: beside a candidate that is repeated, `[q, k, q − k, q·k]·w` is
`[k, q·k]·[w₂ − w₃, w₄]` and what is made of `q` alone (as attention over what somebody did is computed; Zhou et al.
2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from superopt.dim import at_most, product
from superopt.operators.along import read_along, widened
from superopt.operators.conv import Conv
from superopt.operators.declared import Declared
from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Expand, Reshape, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add, Unary
from superopt.operators.rearrange import Gather
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.term import Term, make, subterms

MOST = 16
"""Below more operators than these nothing is looked for."""

MOVES = (Reshape, Transpose, Expand, Concat, Gather, Take)
"""What functions of each number are the same before and after."""

THROUGH = (Reshape, Transpose, Expand, Add, Sub, Concat, Unary)
"""What a gather is looked for behind."""


class Product(NamedTuple):
    """Channels along an axis of a value, and what they are multiplied by: constant weights (channels, results)."""

    x: Term
    axis: int
    weights: Term


class Gathering(Fewer):
    """Finds what is multiplied each time that it is gathered."""

    name = "multiplied before it is gathered or repeated"
    heads = (MatMul, Conv)

    def may_be(self, term: Term) -> bool:
        """Whether it is a product by constant weights, of what is no input."""
        left, right = term.inputs[:2]
        return bool(left.inputs if right.constant else _is_by_a_row(term) and right.inputs[0].inputs)

    def made(self, term: Term) -> Term | None:
        """The same of products of what is gathered; None where nothing is, or that is no less."""
        whole = product_of(term)
        if whole is None or not _gathers(whole.x):
            return None
        made = _before(whole)
        return reshaped(made, term.shape) if made is not None and _is_less(made, whole) else None


def product_of(term: Term) -> Product | None:
    """What a product of rows with one matrix, or a convolution of single places, multiplies."""
    op, (x, w) = term.operator, term.inputs
    if isinstance(op, Conv):
        single = all(map(is_one, (*w.shape[2:], *op.strides, op.group))) and not any(op.pads)
        return Product(x, 1, Transpose((1, 0))(reshaped(w, w.shape[:2]))) if single else None
    last, repeat = term.type.rank - 1, w.operator
    if not w.constant:
        return Product(w.inputs[0], 1, Transpose((1, 0))(x)) if _is_by_a_row(term) else None
    if last == 1:
        return Product(x, last, w)
    return Product(x, last, w.inputs[0]) if isinstance(repeat, Expand) and repeat.axes == (last - 1, last) else None


def _is_by_a_row(term: Term) -> bool:
    """Whether a constant row is multiplied by rows that stand beside each other, as one column of weights is."""
    left, right = term.inputs[:2]
    is_row = isinstance(term.operator, MatMul) and left.constant and left.type.rank == 2 and is_one(left.shape[0])
    return is_row and isinstance(right.operator, Transpose) and right.type.rank == 2


def _gathers(x: Term) -> bool:
    """Whether something is gathered or repeated below what moves, joins and adds up, not too far."""
    seen, gathers, stack = set[Term](), False, [x]
    while stack and len(seen) <= MOST:
        term = stack.pop()
        gathers = gathers or isinstance(term.operator, Gather | Take | Expand)
        if term not in seen and isinstance(term.operator, THROUGH):
            stack += term.inputs
            seen.add(term)
    return gathers and len(seen) <= MOST


class Part(NamedTuple):
    """A summand of a product: of what was done `before`, or the product that is left."""

    of: Term | Product
    negative: bool = False


def _before(whole: Product) -> Term | None:
    """A product, done before what is gathered and repeated is so; None where nothing is, or by channels."""
    parts = _parts(whole)
    if not any(isinstance(part.of, Term) for part in parts):
        return None
    total, *rest = sorted(_once(parts), key=lambda part: part.negative)
    made = _done(total)
    for part in rest:
        made = (Sub if part.negative else Add)()(made, _done(part))
    return None if total.negative else made


def _done(part: Part) -> Term:
    return part.of if isinstance(part.of, Term) else multiplied(part.of)


def _parts(whole: Product) -> list[Part]:
    """The summands of a product, of what is added up and joined."""
    x, axis, weights = whole
    op = x.operator
    if isinstance(op, Unary) and (before := _function_before(x)) is not None:
        return _parts(Product(before, axis, weights))
    if isinstance(op, Add | Sub):
        one, other = (_parts(Product(i, axis, weights)) for i in x.inputs)
        return [*one, *(part._replace(negative=part.negative ^ isinstance(op, Sub)) for part in other)]
    if isinstance(op, Concat) and op.axis == axis:
        rows = zip(x.inputs, _rows(weights, x.inputs, axis), strict=True)
        return [part for i, w in rows for part in _parts(Product(i, axis, w))]
    return [Part(_repeated_after(whole) or whole)]


def _function_before(x: Term) -> Term | None:
    """A function of what is moved, gathered or joined, done before that; None of what is not."""
    (moved,) = x.inputs
    if isinstance(moved.operator, Unary):
        moved = _function_before(moved) or moved
    if not isinstance(moved.operator, MOVES):
        return None
    count = len(moved.inputs) if isinstance(moved.operator, Concat) else 1
    functions = [make(x.operator, (i,)) for i in moved.inputs[:count]]
    return make(moved.operator, (*functions, *moved.inputs[count:]))


def _repeated_after(whole: Product) -> Term | None:
    """The product of what is gathered, repeated or moved, done before that; None where it is only moved, or gathered of
    no fewer rows, as of a table of words.
    """
    x, axis, weights = whole
    op = x.operator
    if (read := _read(x, axis)) is None:
        return None
    below = Product(x.inputs[0], read, weights)
    one = _before(below)
    if one is None and (isinstance(op, Reshape | Transpose) or not _are_fewer(below.x, x)):
        return None
    assert isinstance(op, Declared)
    return make(widened(op, axis, weights.shape[1]), (one or multiplied(below), *x.inputs[1:]))


def _are_fewer(below: Term, gathered: Term) -> bool:
    """Whether there are fewer rows before they are gathered; of constants it has to be known."""
    more = at_most(product(gathered.shape), product(below.shape))
    return more is False if below.constant else more is not True


def _once(parts: Sequence[Part]) -> list[Part]:
    """The same summands: of those that are left, each value multiplied once, and those of a sign as one product."""
    left: dict[Term, tuple[Product, bool]] = {}
    for of, negative in parts:
        if isinstance(of, Product):
            left[of.x] = _added(left[of.x], (of, negative)) if of.x in left else (of, negative)
    found = [part for part in parts if isinstance(part.of, Term)]
    of_signs = [(sign, [of for of, negative in left.values() if negative == sign]) for sign in (False, True)]
    return found + [Part(reduce(_beside, products), sign) for sign, products in of_signs if products]


def _added(one: tuple[Product, bool], other: tuple[Product, bool]) -> tuple[Product, bool]:
    """Two products of the same value as one, with its sign."""
    (of, negative), (more, less) = sorted((one, other), key=lambda signed: signed[1])
    return of._replace(weights=(Add if negative == less else Sub)()(of.weights, more.weights)), negative


def _beside(one: Product, other: Product) -> Product:
    """The sum of two products as one."""
    return Product(Concat(one.axis)(one.x, other.x), one.axis, Concat(0)(one.weights, other.weights))


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
