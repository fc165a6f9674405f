"""Beam search (as PET has it, OSDI 2021): of all that one rewrite makes of the graphs at hand, go on with the cheapest.

Where backtracking goes back to a dearer graph only after all cheaper ones, a beam goes on with several at once.
"""

from __future__ import annotations

import time

from superopt.cost.model import Cost
from superopt.errors import OutOfTime
from superopt.search.strategies.found import (
    EXHAUSTED,
    LIMIT,
    OUT_OF_TIME,
    TOLD_APART,
    VAIN,
    Found,
    Limits,
    Outcome,
    keep,
    measured,
    priority,
)
from superopt.search.strategies.space import Space, strategy

WIDTH = 12
"""How many graphs are gone on with."""


@strategy
def beam(outcome: Outcome, space: Space, cost: Cost, limits: Limits) -> None:
    """Search from the start of an outcome, which is filled in."""
    start = outcome.start
    best, vain, expanded = start.cost, 0, 0
    at_hand = [start]
    if time.monotonic() > limits.deadline:
        outcome.reason = OUT_OF_TIME
    else:
        at_hand += _cheapest(list(space.simplified(start, limits.simplifying)), cost, limits.alpha * best, outcome)
    while at_hand and outcome.reason == EXHAUSTED:
        for found in at_hand[start in at_hand :]:
            keep(outcome, found, limits.keep, cost)
        least = min(found.cost for found in at_hand)
        vain = 0 if least < best - TOLD_APART * start.cost else vain + len(at_hand)
        best = min(best, least)
        if expanded >= limits.expanded or limits.enough(vain, best, start.cost):
            outcome.reason = LIMIT if expanded >= limits.expanded else VAIN
            break
        expanded += len(at_hand)
        made: list[Found] = []
        for here in at_hand:
            for found in space.neighbours(here):
                made.append(found)
                if time.monotonic() > limits.deadline:
                    outcome.reason = OUT_OF_TIME
                    break
            if outcome.reason == OUT_OF_TIME:
                break
        at_hand = _cheapest(made, cost, limits.alpha * best, outcome)
    for found in at_hand:
        keep(outcome, found, limits.keep, cost)


def _cheapest(made: list[Found], cost: Cost, most: float, outcome: Outcome) -> list[Found]:
    """Those to go on with, measured; fewer where the time is over, which the outcome then says."""
    found: list[Found] = []
    for candidate in sorted(made, key=lambda f: priority(f, outcome.start)):
        if len(found) == WIDTH:
            break
        if candidate.cost > most:
            continue
        try:
            known = measured(candidate, cost, most)
        except OutOfTime:
            outcome.reason = OUT_OF_TIME
            break
        found += [] if known is None else [known]
    return found
