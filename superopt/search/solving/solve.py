"""Searching all pieces of a model: equal ones once, each for its share of the time, of alike ones mostly the first."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from superopt.errors import OutOfTime, SuperoptError
from superopt.search.cutting.pieces import Piece
from superopt.search.objectives.objective import Objective
from superopt.search.paired import LOOK_S, LOOKS, measuring_s
from superopt.search.solving.again import LAST_RESORT, WORTH_AGAIN, Again
from superopt.search.solving.searching import Search, kept
from superopt.search.solving.sharing import Groups, kind_of, of_kinds, shared
from superopt.search.solving.solution import Terms
from superopt.search.strategies.found import Progress, Solved, expected_gain

COMPARING_RUNS = 24
"""How many times an inference could run, about, until a candidate is compared with its original: three runs of six
inputs, two of them without the runtime's optimizations, which take half as long again and more.
"""

TIMING = 4.0
"""How many times longer than timing the kernels of a model as it stands it may take to search its pieces once, where
that is more than their share of the limit.
"""

STARTING_SHARE = 0.6
"""Of the time until the deadline, what pieces may take to be costed before any is searched, but for the first."""

SEARCHED_RUNS = 40
"""A slow model may be searched for as long as so many inferences take, though that is more than the search's share of
the limit, where judging leaves it: timing its kernels takes most of that, and few graphs are seen.
"""

JUDGED_AGAIN = 1.2
"""How many times longer than the first a second judgement may take, of the time that is kept for it."""

LEAST_EXPECTED = 1.01
"""Below this expected gain no whole model is written: a winner must gain 1 %, and would not."""


@dataclass(frozen=True)
class Times:
    """Times of `time.monotonic`: the `end` is when whole models have to be judged, in so many `settings`; until the
    `latest` pieces may be searched again whose time was over, where judging leaves so much, or until the `patient`
    where the first searches gained nothing. All of them are searched once in `once_s` seconds, or where timing the
    kernels of the model as it stands takes long in up to `once_most_s`: timing what a search makes of them does too.
    """

    end: float
    latest: float
    patient: float
    settings: int = 1
    once_s: float = math.inf
    once_most_s: float = math.inf

    def searching_s(self, timing_s: float) -> float:
        """The seconds in which all pieces are searched once, where timing their kernels took so many."""
        return min(max(self.once_s, TIMING * timing_s), self.once_most_s)


class TooShort(OutOfTime):
    """Whatever a search finds, no time would be left to judge it."""


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
    inference_s = objective.seconds(costs)
    judging_s, least_s = _judging(inference_s, times.settings)
    searching_ends, now = cost.bench.deadline, time.monotonic()
    searching_s, runs_s = times.searching_s(now - started), SEARCHED_RUNS * inference_s
    searching_s = max(searching_s, runs_s)
    joined_end = min(searching_ends, max(times.end - judging_s, min(times.end - least_s, now + searching_s)))
    cost.bench.deadline = deadline = min(joined_end, now + searching_s)
    if starts and time.monotonic() >= deadline:
        if solved:
            return solved
        if now >= starting_ends:  # what an inference takes is not known
            raise TooShort("timing its kernels took all the time that there is for a search; allow more with --time")
        more_s = now + searching_s + judging_s - times.end
        raise TooShort(
            f"comparing and measuring a candidate takes about {least_s:.0f} s; allow {_said(more_s)} more with --time"
        )
    begin = time.monotonic()
    took = _searched(solved, starts, unknown, search, deadline, progress)
    if search.stopped:
        return kept(solved)
    again = Again(search, (deadline - begin) / (sum(starts.values()) or 1.0), took, progress)
    answering_s = judging_s + times.settings * LOOKS * LOOK_S
    latest = max(times.latest, begin + runs_s)
    latest, worth = min(latest, times.end - (1.0 + JUDGED_AGAIN) * answering_s), WORTH_AGAIN
    if expected_gain(solved, objective.total) < LEAST_EXPECTED:  # by now there is nothing to judge
        latest, worth = min(times.patient, times.end - least_s - times.settings * LOOK_S), LAST_RESORT
    solved = again(solved, latest if judging_s else deadline, worth)
    cost.bench.deadline = max(cost.bench.deadline, joined_end)
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


def _judging(inference_s: float, settings: int) -> tuple[float, float]:
    """The seconds that a candidate takes to be compared and measured in so many settings, and those at least."""
    comparing_s = COMPARING_RUNS * inference_s
    usual_s, least_s = (settings * measuring_s(inference_s, at_least) for at_least in (False, True))
    return comparing_s + usual_s, comparing_s + least_s


def _said(seconds: float) -> str:
    """Seconds in words, up to a next ten: more than they should be rather than less."""
    return f"{10 * math.ceil(max(seconds, 1.0) / 10)} s"


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
