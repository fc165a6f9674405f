"""Several steps that are linear in one value, as one matrix: what they make of the identity.

Layers of a tensor train (Novikov et al. 2015) multiply by one small core after the other, between which axes are
reshaped and transposed; so do weights that are Kronecker products, butterflies (Monarch, Dao et al. 2022) or of low
rank, and personalized PageRank takes ten steps on one graph (APPNP, Klicpera et al. 2019). Few numbers are fewer
operations, but not where ranks are high, and runtimes move elements slowly. No single step of the way pays, as cores
are multiplied into ever larger ones; so all steps are followed down to a value of which some axes are read place by
place. Applied to the identity they are a constant, and one product with that takes their place where that is less work.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import reduce
from typing import NamedTuple

from superopt.dim import Dim, product
from superopt.operators.constant import Band
from superopt.operators.conv import Conv
from superopt.operators.definitions.sums import MOST_ROWS
from superopt.operators.layout import Expand, Transpose, reshaped
from superopt.operators.matmul import MatMul
from superopt.operators.pointwise import Add
from superopt.relations import is_one
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.gathered import Product, multiplied
from superopt.search.rewriting.finders.items import Axes, MixedError, batches_of, mixed_size, sizes_of
from superopt.search.rewriting.finders.remade import remade
from superopt.search.rewriting.finders.steps import COMPOSED, STEPS, Steps, running
from superopt.search.rewriting.finders.turned import turned
from superopt.term import Term, make

MOST, NEAR = 48, 16
"""So many steps are followed, and among so many there have to be two products."""

MOST_STARTS = 3
"""Of so many values may be what is one product of each."""

TIMES = 3
"""So many times the work is tried: small steps take longer than that tells."""

LARGEST = 1 << 20
"""A matrix of more elements is not made."""


FEWEST_COLUMNS = 16
"""A product of fewer columns takes as long as of so many."""


class Way(NamedTuple):
    """Steps, and how much less work a matrix is."""

    steps: Steps
    saved: int


class Densing(Fewer):
    """Finds steps that are one matrix."""

    name = "several linear steps as one matrix"
    spreads = True
    heads = STEPS

    def may_be(self, term: Term) -> bool:
        """Whether it is a step, and there are two products among those next below."""
        return bool(running(term)) and sum(multiplies(t) for t in steps_below(term, NEAR)) > 1

    def made(self, term: Term) -> Term | None:
        """The product with one matrix, of the value from where that saves most; None where it is too much."""
        region = steps_below(term, MOST)
        ways = [way for starts in _starts(term, region) if (way := _from(starts, term)) is not None]
        best = max(ways, key=lambda way: way.saved, default=None)
        return None if best is None else at_once(best.steps, term)


def multiplies(term: Term) -> bool:
    """Whether it is a product of matrices, or a convolution."""
    return isinstance(term.operator, (MatMul, Conv, *COMPOSED))


def steps_below(term: Term, most: int) -> list[Term]:
    """So many steps at and below a term, those next to it first."""
    found = dict.fromkeys([term])
    for step in (left := [term]):
        below = [i for i in running(step) if i not in found and running(i)]
        found |= dict.fromkeys(below[: max(most - len(found), 0)])
        left += below[: max(most - len(left), 0)]
    return list(found)


def _starts(term: Term, region: Sequence[Term]) -> list[list[Term]]:
    """The values below that alone all steps of a term begin with, the farthest first; and all that they begin with."""
    steps = set(region)
    below = dict.fromkeys(i for step in region for i in running(step))
    first = [i for i in below if i not in steps]
    alone = [[start] for start in reversed(below) if _begins(term, start, steps)]
    return [*alone, first] if 1 < len(first) <= MOST_STARTS and len({i.type for i in first}) == 1 else alone


def _begins(term: Term, start: Term, steps: Container[Term]) -> bool:
    """Whether all ways down from a term meet a start, and there is more than one product before that."""
    seen, stack, products = {start}, [term], 0
    while stack:
        one = stack.pop()
        if one not in steps:
            return False
        products += multiplies(one)
        below = [i for i in running(one) if i not in seen]
        seen.update(below)
        stack += below
    return products > 1


def _from(starts: Sequence[Term], term: Term) -> Way | None:
    """The way from some starts to a term; None where these are not mixed by places, or one matrix is too much."""
    steps = apart_from(starts, term)
    if steps is None:
        return None
    rows, columns = mixed_size(steps.begin), mixed_size(steps.of(term))
    works = [steps.work(t) for t in steps.taken]
    products = sum(isinstance(t.operator, MatMul | Conv) for t in steps.taken)
    if not isinstance(rows, int) or not isinstance(columns, int) or not 1 < rows * columns <= LARGEST:
        return None
    if not _may_be_rows(rows):
        return None
    work, whole = sum(w for w in works if isinstance(w, int)), 2 * rows * columns * len(starts)
    return Way(steps, work - whole) if products > len(starts) and whole <= TIMES * work else None


def apart_from(starts: Sequence[Term], term: Term) -> Steps | None:
    """The steps from some starts to a term, with as many batches as there can be; None where there are none, or where
    more is mixed than the rows that an identity may have.
    """
    mixing, shape = frozenset[int](), starts[0].shape
    while len(mixing) < len(shape) and _may_be_rows(product([shape[a] for a in mixing])):
        steps = Steps(starts, mixing)
        try:
            steps.of(term)
        except MixedError as e:
            if not e.batches:
                return None
            mixing |= e.batches
        else:
            return steps
    return None


def _may_be_rows(size: Dim) -> bool:
    """Whether an identity may have so many: a matrix is what steps make of one."""
    return isinstance(size, int) and size <= MOST_ROWS


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
