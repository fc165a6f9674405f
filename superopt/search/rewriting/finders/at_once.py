"""Linear steps as one product with what they make of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from superopt.dim import Dim, product
from superopt.operators.constant import Band
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add
from superopt.relations import is_one
from superopt.search.rewriting.finders.gathered import Product, multiplied
from superopt.search.rewriting.finders.items import Axes, batches_of, mixed_size, sizes_of
from superopt.search.rewriting.finders.remade import remade
from superopt.search.rewriting.finders.steps import Steps
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term, make

FEWEST_COLUMNS = 16
"""A product of fewer columns takes as long as of so many."""


def at_once(steps: Steps, term: Term) -> Term:
    """The products with one matrix each, and what is added to these."""
    parts = [_product(steps, term, start, _matrix(steps, term, start)) for start in steps.starts]
    return reduce(Add(), [*parts, *_added(steps, term)])


def _matrix(steps: Steps, term: Term, start: Term) -> Term:
    """What the steps make of the identity: rows of what they begin with, columns of what they give."""
    begin, end = steps.begin, steps.of(term)
    first, *others = _numbers(begin)
    rows, columns = mixed_size(begin), mixed_size(end)
    counts = {first: rows, **dict.fromkeys(others, 1)}
    order = [first, *(a for a in range(len(begin)) if a not in (first, *others)), *others]
    sizes = steps.sizes(start, counts)
    identity = reshaped(make(Band(rows), ()), tuple(sizes[a] for a in order))
    made = remade(steps, term, {start: ordered(identity, order)}, counts)
    assert made is not None
    items = [i for axis in end for i in axis]
    at = [i.batch for i in items].index(first)
    apart = reshaped(made, tuple(sizes_of(items, counts)))
    return reshaped(turned(apart, [at, *(n for n in range(len(items)) if n != at)]), (rows, columns))


def _product(steps: Steps, term: Term, start: Term, matrix: Term) -> Term:
    """A product of a start, by rows, or of columns as they stand where it has batches behind in the same way, and
    these are not few.
    """
    begin, end = steps.begin, steps.of(term)
    (rows, columns), around = matrix.shape, _around(begin)
    before, behind = (tuple(start.shape[b] for b in side) for side in around or ((), ()))
    are_few = isinstance(wide := product(behind), int) and wide < FEWEST_COLUMNS
    if around is not None and around[1] and not are_few and _stay(around, end):
        x = reshaped(start, (*before, rows, product(behind)))
        across, last = Transpose((1, 0))(matrix), len(before) + 1
        left = Expand((last - 1, last), (*before, columns, rows))(across) if before else across
        return reshaped(MatMul()(left, x), term.shape)
    batches = _numbers(begin)
    sizes = tuple(start.shape[b] for b in batches)
    order = (*batches, *(a for a in range(len(begin)) if a not in batches))
    x = reshaped(turned(start, order), (*sizes, rows))
    items = [i for axis in end for i in axis]
    mixed_items = [n for n, i in enumerate(items) if i.batch is None]
    y = multiplied(Product(x, len(sizes), matrix))
    apart = reshaped(y, (*sizes, *(items[n].size for n in mixed_items)))
    numbers = [i.batch for i in items]
    return reshaped(ordered(apart, [*(numbers.index(b) for b in batches), *mixed_items]), term.shape)


def _stay(around: tuple[list[int], list[int]], end: Axes) -> bool:
    """Whether batches are around what is mixed at the end, or where nothing is left of that, one after the other."""
    before, behind = around
    return _around(end) == around or (is_one(mixed_size(end)) and _numbers(end) == before + behind)


def _numbers(axes: Axes) -> list[int]:
    """Of which axes of the start axes have the batches."""
    return [i.batch for i in batches_of(axes) if i.batch is not None]


def _around(axes: Axes) -> tuple[list[int], list[int]] | None:
    """The batches before and behind all that is mixed; None where there are some in between."""
    items = [i.batch for axis in axes for i in axis]
    mixed_items = [n for n, batch in enumerate(items) if batch is None]
    if not mixed_items or mixed_items != list(range(mixed_items[0], mixed_items[-1] + 1)):
        return None
    sides = items[: mixed_items[0]], items[mixed_items[-1] + 1 :]
    before, behind = ([b for b in side if b is not None] for side in sides)
    return before, behind


def _added(steps: Steps, term: Term) -> list[Term]:
    """What constants that are added on the way come to, for each place of a batch the same; nothing without any."""
    counts: dict[int, Dim] = dict.fromkeys(_numbers(steps.begin), 1)
    value = remade(steps, term, {}, counts)
    if value is None:
        return []
    items = [i for axis in steps.of(term) for i in axis]
    kept = tuple(n for n, i in enumerate(items) if i.batch is None)
    once = reshaped(value, tuple(items[n].size for n in kept))
    return [reshaped(Expand(kept, tuple(i.size for i in items))(once), term.shape)]


def ordered(x: Term, places: Sequence[int]) -> Term:
    """A term with each axis where it is to stand."""
    return turned(x, [places.index(n) for n in range(len(places))])
