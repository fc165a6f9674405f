"""Shares that are masked before a softmax and once more behind it: by a sum and a product.

Encoders of speech mask scores by −∞ and clear the shares of the same places, as ESPnet and WeNet have it,
`where(c, 0, softmax(where(c, −∞, s)))`: a row that is masked as a whole has no shares, and becomes 0. A softmax of what
is masked by a finite number that no score comes near to gives 0 for the same places, and numbers for such rows, that a
product with the mask clears. Both take a third of choosing, and a product may go to what the shares weigh.
"""

from __future__ import annotations

import math

from superopt.operators.constant import filled, number_of
from superopt.operators.logic import Where
from superopt.operators.normalize import Softmax
from superopt.operators.pointwise import Add, Mul
from superopt.search.rewriting.finders.fewer import Fewer
from superopt.search.rewriting.finders.masked import as_numbers, is_of_products, opposite
from superopt.term import Term, make

LOW = -1e30
"""What is added to scores that are masked: no score comes near to it."""


class Remasking(Fewer):
    """Finds shares that are cleared where what they are of is masked."""

    name = "masked shares by a product"
    spreads = True
    heads = (Where,)

    def may_be(self, term: Term) -> bool:
        """Whether shares are chosen."""
        return any(isinstance(i.operator, Softmax) for i in term.inputs[1:])

    def made(self, term: Term) -> Term | None:
        """The softmax of a sum, times the mask."""
        c, *sides = term.inputs
        place = next((i for i, side in enumerate(sides) if number_of(side) == 0.0), None)
        if place is None:
            return None
        shares = sides[1 - place]
        scores = _scores(shares, c, place)
        if scores is None or not is_of_products(scores):
            return None
        low = [filled(0.0, term.shape)] * 2
        low[place] = filled(LOW, term.shape)
        summed = make(shares.operator, (Add()(scores, Where()(c, *low)),))
        return Mul()(summed, as_numbers(c if place else opposite(c), summed))


def _scores(shares: Term, c: Term, place: int) -> Term | None:
    """What is masked by −∞ at the same places, chosen or added, and a softmax is of; None where it is of others."""
    if not isinstance(shares.operator, Softmax):
        return None
    masked = shares.inputs[0]
    if isinstance(masked.operator, Add):
        for scores, added in (masked.inputs, masked.inputs[::-1]):
            if _is_low(added, c, place) and number_of(added.inputs[2 - place]) == 0.0:
                return scores
    return masked.inputs[2 - place] if _is_low(masked, c, place) else None


def _is_low(term: Term, c: Term, place: int) -> bool:
    """Whether it is −∞ at the places that a mask chooses."""
    return isinstance(term.operator, Where) and term.inputs[0] is c and number_of(term.inputs[1 + place]) == -math.inf
