"""Paired measurement of whole models: is the candidate faster, beyond what chance and a session's luck give?

Two sessions of the same model differ by up to 3 %, by where their memory happens to lie, and the machine drifts. So
both models get several fresh sessions, run in turns, and each pair of sessions is one observation. Of a pair, the
session that is made first is slower, by 1 to 5 %: so each model is first in every other pair, and chance is what pairs
of the same order differ by.

Ten pairs settle most questions in a few seconds, and a second look at twice as many is taken only where they do not.
Who looks twice errs twice: so intervals are of 97.5 %, and what is claimed at either look holds with 95 % (Bonferroni).
So does who tries two candidates: those of the second are of 98.75 %.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from superopt.cost.runtime import WARM_UP
from superopt.errors import OutOfTime
from superopt.search.interval import CONFIDENCE, interval
from superopt.search.rounds import (
    FEWEST_SESSIONS,
    LEAST_RUNS,
    LEAST_SESSIONS,
    LOADING_SHARE,
    LONG_S,
    Harness,
    Model,
    Progress,
    rounds_of,
)

SESSIONS = 10
"""How many pairs of sessions a look has."""
LEAST_GAIN = 1.01
LOOK_S = 4.0
"""What a look at two models may take. Of short ones the spread is between sessions: more runs would not narrow it."""
LOOKS = 2
USUAL_RUNS = 77
"""How many times an inference could run, about, while two models that take not long are measured: in six to ten pairs
of sessions, each of them run four times and more.
"""


@dataclass(frozen=True)
class Timed:
    """One model's time for an inference: geometric mean over sessions of each one's median, and its 95 % interval."""

    seconds: float
    low: float
    high: float
    sessions: int
    runs: int


@dataclass(frozen=True)
class Paired:
    """Two models measured in turns: `ratio` is how many times faster the candidate is, with a 95 % interval.

    `runs` counts those of each model, over all sessions; `ratios` has one entry for each pair of sessions.
    """

    original: Timed
    candidate: Timed
    ratio: float
    low: float
    high: float
    sessions: int
    runs: int
    ratios: tuple[float, ...]

    @property
    def original_s(self) -> float:
        """Seconds of the original."""
        return self.original.seconds

    @property
    def candidate_s(self) -> float:
        """Seconds of the candidate."""
        return self.candidate.seconds


def faster(paired: Paired) -> bool:
    """Whether the candidate gains at least 1 %, and its interval excludes that it gains nothing."""
    return paired.ratio >= LEAST_GAIN and paired.low > 1.0


def hopeless(paired: Paired) -> bool:
    """Whether the interval excludes that the candidate gains 1 %."""
    return paired.high < LEAST_GAIN


def loses(paired: Paired) -> bool:
    """Whether the candidate is slower, by at least 1 % or with an interval that excludes that it is not."""
    return paired.ratio <= 1 / LEAST_GAIN or paired.high < 1.0


def measuring_s(inference_s: float, loading_s: float, at_least: bool = False) -> float:
    """The seconds that `compare` takes, about, for models that take so many for an inference and to be loaded; and what
    it takes at least: in as few pairs of sessions as tell anything. Loading takes as long as running where weights are
    large, and longer where nodes are thousands; and some of it is run for once more.
    """
    is_long = inference_s > LONG_S
    sessions = 2 * (FEWEST_SESSIONS if at_least else LEAST_SESSIONS)
    runs = sessions * (WARM_UP + (1 if is_long else LEAST_RUNS))
    loading_s *= 1 + LOADING_SHARE
    return (runs if at_least or is_long else USUAL_RUNS) * inference_s + sessions * loading_s


def mean_s(original_s: float, inference_s: float) -> float:
    """The seconds of an inference, of the mean of the original and a candidate: what pieces of this one take is told,
    of the other only where it takes longer.
    """
    return (max(original_s, inference_s) + inference_s) / 2


def compare(
    original: Model,
    candidate: Model,
    harness: Harness,
    sessions: int = SESSIONS,
    budget_s: float = 60.0,
    most_s: float = math.inf,
    progress: Progress | None = None,
    asked: int = 1,
) -> Paired:
    """Measure two models with the same inputs against each other, in `sessions` pairs and, where these leave it open
    whether there is a gain, in as many again. Of several candidates that are `asked` about each has to be that much
    surer.

    The budget is aimed at, but each of at least six rounds has at least two runs, or one that takes long. Where the
    first round shows that so many take longer than `most_s`, there are as many as do not. Raises `RuntimeFailed` for a
    model that does not run, and `OutOfTime` as soon as it is known that not even three rounds end in time.
    """
    both, start = (original, candidate), time.monotonic()
    measure = partial(rounds_of, both, harness, sessions, progress=progress)
    rounds = measure(min(budget_s, LOOK_S), most_s)
    found, took = _paired(rounds, harness.seed, asked), time.monotonic() - start
    if faster(found) or hopeless(found) or budget_s < 2 * took:
        return found
    with suppress(OutOfTime):  # the first look says what it does
        rounds += measure(min(budget_s - took, LOOK_S), most_s - took, before=len(rounds))
    return _paired(rounds, harness.seed, asked)


def _paired(rounds: list[list[list[float]]], seed: int, asked: int) -> Paired:
    medians = [[statistics.median(times) for times in both] for both in rounds]
    ratios = [_ratio(*both) for both in rounds]
    kinds = 2 if len(rounds) >= LEAST_SESSIONS else 1  # by order; of few, all that they differ by counts as chance
    ratio, low, high = interval(ratios, seed, 1 - (1 - CONFIDENCE) / (LOOKS * asked), kinds)
    runs = sum(len(both[0]) for both in rounds)
    ours, theirs = (_latency([m[i] for m in medians], runs, seed) for i in (0, 1))
    return Paired(ours, theirs, ratio, low, high, len(rounds), runs, tuple(ratios))


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How many times longer the one took than the other in a pair of sessions.

    Of neighbouring runs, not of the medians: what else the machine does for a while then slows down both. Turns there
    and turns back each for themselves: who comes second there finds its own in the caches when it begins on the way
    back, so that of weights as large as these the one ratio is 1.1 and the other 0.9.
    """
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    ways = [statistics.median(way) for way in (ratios[::2], ratios[1::2]) if way]
    return statistics.geometric_mean(ways)


def glance(original: Model, candidate: Model, harness: Harness, budget_s: float, most_s: float = math.inf) -> float:
    """How many times faster a candidate is in one pair of sessions, as `compare` measures them: it claims nothing.
    Raises what that does.
    """
    ((ours, theirs),) = rounds_of((original, candidate), harness, 1, budget_s, most_s, least=1)
    return _ratio(ours, theirs)


def latency(model: Model, harness: Harness, budget_s: float = 30.0, most_s: float = math.inf) -> Timed:
    """Measure one model in several sessions, as `compare` does two, but in three where the budget is over by then: it
    claims nothing. Raises what that does.
    """
    rounds = rounds_of((model,), harness, SESSIONS, budget_s, most_s, least=FEWEST_SESSIONS)
    runs = sum(len(times) for (times,) in rounds)
    return _latency([statistics.median(times) for (times,) in rounds], runs, harness.seed)


def _latency(medians: Sequence[float], runs: int, seed: int) -> Timed:
    seconds, low, high = interval(medians, seed)
    return Timed(seconds, low, high, len(medians), runs)
