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
from typing import NamedTuple

from superopt.dim import Dim, product
from superopt.operators.conv import Conv
from superopt.operators.definitions.sums import MOST_ROWS
from superopt.operators.matmul import MatMul
from superopt.search.rewriting.finders.at_once import at_once
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.items import MixedError, mixed_size
from superopt.search.rewriting.finders.steps import COMPOSED, STEPS, Steps, running
from superopt.term import Term

MOST, NEAR = 48, 16
"""So many steps are followed, and among so many there have to be two products."""

MOST_STARTS = 3
"""Of so many values may be what is one product of each."""

TIMES = 3
"""So many times the work is tried: small steps take longer than that tells."""

LARGEST = 1 << 20
"""A matrix of more elements is not made."""


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
