"""Channels that are blended by numbers, as one product with a matrix of these: colours in another space.

`y = 0.299·r + 0.587·g + 0.114·b` is written channel by channel: each is sliced out of the picture, multiplied by a
number, added, and the results are joined again; a dozen passes over a picture where one matrix of 3 by 3 for all places
takes one. So are grey values, complex numbers that are multiplied by known ones, and quaternions. One step at a time it
is dear before it is cheap, so all steps are followed down to the value whose channels they blend (`dense.py`, which
does that of products).
"""

from __future__ import annotations

from collections.abc import Container

from superopt.operators.differences import Sub
from superopt.operators.layout import Concat, Reshape
from superopt.operators.picks import Slice, Take
from superopt.operators.pointwise import Add
from superopt.search.rewriting.finders.at_once import at_once
from superopt.search.rewriting.finders.dense import apart_from, multiplies, steps_below
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.items import mixed_size
from superopt.search.rewriting.finders.steps import Steps, running
from superopt.term import Term

MOST = 40
"""So many steps are followed; among these there are to be two picked channels and a sum."""

LEAST = 5
"""Fewer steps are no more than the product."""

WIDEST = 16
"""Of more channels than these a matrix is not made."""


class Blending(Fewer):
    """Finds channels that are blended."""

    name = "channels blended by one matrix"
    spreads = True
    heads = (Add, Sub, Concat)

    def may_be(self, term: Term) -> bool:
        """Whether it adds or joins, and there are channels that are picked and a sum among the steps next below."""
        near = steps_below(term, MOST)
        picked = sum(isinstance(t.operator, Slice | Take) for t in near)
        return picked > 1 and any(isinstance(t.operator, Add | Sub) for t in near)

    def made(self, term: Term) -> Term | None:
        """The product, from where the most steps are taken by it; None where they are few."""
        region = steps_below(term, MOST)
        steps = set(region)
        below = dict.fromkeys(i for step in region for i in running(step))
        for start in reversed(below):  # the farthest first
            if _all_begin_with(term, start, steps) and (found := _blended(term, start)) is not None:
                return at_once(found, term)
        return None


def _all_begin_with(term: Term, start: Term, steps: Container[Term]) -> bool:
    """Whether all ways down from a term meet a start, without a product."""
    seen, stack = {start}, [term]
    while stack:
        one = stack.pop()
        if one not in steps or multiplies(one):
            return False
        below = [i for i in running(one) if i not in seen]
        seen.update(below)
        stack += below
    return True


def _blended(term: Term, start: Term) -> Steps | None:
    """The steps from a start, where these blend few channels of it, each place by itself."""
    steps = apart_from([start], term)
    if steps is None:
        return None
    sizes = mixed_size(steps.begin), mixed_size(steps.of(term))
    few = all(isinstance(d, int) and d <= WIDEST for d in sizes) and sizes[0] != 1
    taken = [t for t in steps.taken if not isinstance(t.operator, Reshape)]
    return steps if few and len(taken) >= LEAST else None
