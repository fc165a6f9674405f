"""What whole times refute: ways to compute an operator whose kernels gain by their sums alone.

Where no promise of a piece was kept, of those that were looked at closely, the cheapest graphs by sums all share what
was priced wrong, and the search went on from those alone: graphs of the piece's own operators that gain a tenth were
dropped, because they cost more than α times the best. Such a piece is searched once more without it.
"""

from __future__ import annotations

from superopt.operators.meanings import FURTHER_DEFINITIONS
from superopt.search.objectives.objective import LEAST_LESS
from superopt.search.rewriting.rewrites import Unfold
from superopt.search.strategies.found import INTERRUPTED, OUT_OF_TIME, Found, Outcome


def refuted(outcome: Outcome, winner: Found) -> frozenset[str]:
    """The names of the rewrites by which operators were computed otherwise in graphs that promised something; none
    where one of those won, or the search was cut short.
    """
    if winner is not outcome.start or outcome.reason in (INTERRUPTED, OUT_OF_TIME):
        return frozenset()
    promising = [f for f in outcome.best if outcome.start.cost > LEAST_LESS * f.cost]
    ways = {Unfold(definition).name for definition in FURTHER_DEFINITIONS}
    return frozenset(step.name for found in promising for step in found.steps if step.name in ways)
