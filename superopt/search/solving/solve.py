"""Searching all pieces of a model: equal ones once, each for its share of the time, of alike ones mostly the first."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress

from superopt.errors import OutOfTime, SuperoptError
from superopt.search.cutting.pieces import Piece
from superopt.search.objectives.objective import Objective
from superopt.search.solving.again import LAST_RESORT, WORTH_AGAIN, Again
from superopt.search.solving.plan import Times, planned
from superopt.search.solving.searching import Search, kept
from superopt.search.solving.sharing import Groups, kind_of, of_kinds, shared
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import Progress, Solved, expected_gain

STARTING_SHARE = 0.6
"""Of the time until the deadline, what pieces may take to be costed before any is searched, but for the first."""

LEAST_EXPECTED = 1.01
"""Below this expected gain no whole model is written: a winner must gain 1 %, and would not."""


def solve(
    groups: Groups, known: Mapping[Terms, Solved], search: Search, times: Times, progress: Progress
) -> list[Solved]:
    """Search each distinct piece that is not known, and once more those whose time was over, and those that were taken
    as others that are alike, if time is left for that; those that were done, where somebody interrupts it when
    something is gained already.

    Raises `OutOfTime` where nothing is known, and not even one piece could be costed before the cost's own deadline;
    `TooShort` where no time is left for a search after that.
    """
    objective, cost = search.objective, search.objective.machine
    solved = [known[key] for key in groups if key in known]
    unknown = {key: places for key, places in groups.items() if key not in known}
    started = time.monotonic()
    starting_ends = started + STARTING_SHARE * (cost.bench.deadline - started)
    try:
        starts = _start_costs(unknown, objective, progress, starting_ends)
    except OutOfTime:
        if not solved:
            raise
        return solved
    costs = [
        *starts.values(),
        *(known[key].at_stake for key in groups if key in known),
    ]
    plan = planned(times, objective.seconds(costs), started, cost.bench.deadline)
    cost.bench.deadline = plan.searched
    if starts and time.monotonic() >= plan.searched:
        if solved:
            return solved
        raise plan.too_short(is_known=plan.begin < starting_ends)
    begin = time.monotonic()
    took = _searched(solved, starts, unknown, search, plan.searched, progress)
    if search.stopped:
        return kept(solved)
    again = Again(search, (plan.searched - begin) / (sum(starts.values()) or 1.0), took, progress)
    latest, worth, joined = plan.again(begin), WORTH_AGAIN, plan.joined
    if expected_gain(solved, objective.total) < LEAST_EXPECTED:  # by now there is nothing to judge
        latest, worth, joined = plan.again_in_vain(started), LAST_RESORT, max(joined, plan.last_resort)
    solved = again(solved, latest if plan.judging_s else plan.searched, worth)
    cost.bench.deadline = max(cost.bench.deadline, joined)
    return solved


def _searched(
    solved: list[Solved],
    starts: Mapping[Terms, float],
    groups: Groups,
    search: Search,
    deadline: float,
    progress: Progress,
) -> dict[int, float]:
    """Search each piece once, after those that are solved, and put it behind them; the seconds that each took, by where
    it stands there. Once the first of those that are alike was searched, the others have their whole share.
    """
    for one in solved:
        search.gained.learn(one)
    took, alike = dict[int, float](), defaultdict[Hashable, list[Terms]](list)
    stakes = of_kinds(starts, groups)
    for key in starts:
        alike[kind_of(groups[key])].append(key)
    for key, seconds in shared(stakes, deadline, progress, "search"):
        start = time.monotonic()
        with search.stoppable():
            solved.append(search(groups[key], seconds))
        if search.stopped:
            break
        took[len(solved) - 1] = time.monotonic() - start
        stakes |= {k: starts[k] for k in alike.pop(kind_of(groups[key]), ())}
    return took


def _start_costs(groups: Groups, objective: Objective, progress: Progress, until: float) -> dict[Terms, float]:
    """The costs of all places of each distinct piece that are measured until a time of `time.monotonic`: of those first
    that are expected to take most.

    A piece that the runtime cannot run, or not at the sizes given, is left out, and so is one that is too deep. Raises
    `OutOfTime` where none is known.
    """
    starts: dict[Terms, float] = {}
    for i, (key, places) in enumerate(sorted(groups.items(), key=lambda g: -_expected(g[1], objective))):
        if starts and time.monotonic() >= until:
            break
        progress("measure kernels", i / len(groups))
        try:
            each = objective.cost(places[0].place).cost(places[0].canonical)
        except OutOfTime as error:
            if not starts:
                raise OutOfTime(
                    f"no piece of the model could be measured in time: {error}; allow more with --time"
                ) from None
            break
        except (SuperoptError, RecursionError):  # of a thousand operators below each other
            continue
        if 0.0 < each < math.inf:
            starts[key] = len(places) * each
    if starts:
        with suppress(SuperoptError):  # estimates are rougher without it
            objective.machine.learn_streaming()
    return {key: starts[key] for key in groups if key in starts}


def _expected(places: Sequence[Piece], objective: Objective) -> float:
    """What all places of a piece may cost, before anything of it is measured; 0 where that cannot be told."""
    try:
        return len(places) * objective.cost(places[0].place).estimate(places[0].canonical)
    except (SuperoptError, RecursionError):
        return 0.0
