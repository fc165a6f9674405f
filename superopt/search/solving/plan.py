"""When what of a search is to end: all pieces searched once, searched again, joined, and candidates judged."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from superopt.errors import OutOfTime
from superopt.search.paired import LOOK_S, LOOKS, mean_s, measuring_s

COMPARING_RUNS = 24
"""How many times an inference could run, about, until a candidate is compared with its original: three runs of six
inputs, two of them without the runtime's optimizations, which take half as long again and more.
"""

COMPARING_SESSIONS = 3
"""How many times a model could be loaded, about, until then: four sessions, of which three load without the runtime's
optimizations.
"""

TIMING = 4.0
"""How many times longer than timing the kernels of a model as it stands it may take to search its pieces once, where
that is more than their share of the limit.
"""

SEARCHED_RUNS = 40
"""A slow model may be searched for as long as so many inferences take, though that is more than the search's share of
the limit, where judging leaves it: timing its kernels takes most of that, and few graphs are seen.
"""

JUDGED_AGAIN = 1.2
"""How many times longer than the first a second judgement may take, of the time that is kept for it."""


@dataclass(frozen=True)
class Times:
    """Times of `time.monotonic`: the `end` is when whole models have to be judged, in so many `settings`; until the
    `latest` pieces may be searched again whose time was over, where judging leaves so much, or until the `patient`
    where the first searches gained nothing. All of them are searched once in `once_s` seconds, or where timing the
    kernels of the model as it stands takes long in up to `once_most_s`: timing what a search makes of them does too.
    Loading the model takes `loading_s`, and writing a candidate `writing_s`: of thousands of nodes that is much. Joined
    pieces are searched for `joined_share` of what their parts took. The original takes `original_s` for an inference,
    where that is longer than what its pieces do, as nodes of it are written otherwise.
    """

    end: float
    latest: float
    patient: float
    settings: int = 1
    once_s: float = math.inf
    once_most_s: float = math.inf
    loading_s: float = 0.0
    writing_s: float = 0.0
    joined_share: float = 0.0
    original_s: float = 0.0

    def searching_s(self, timing_s: float) -> float:
        """The seconds in which all pieces are searched once, where timing their kernels took so many."""
        return min(max(self.once_s, TIMING * timing_s), self.once_most_s)


class TooShort(OutOfTime):
    """Whatever a search finds, no time would be left to judge it."""


@dataclass(frozen=True)
class Plan:
    """When a search that begins now, at `begin`, has `searched` all pieces once, and those that are `joined`, what an
    inference takes being known; and the seconds that judging takes then, as it usually does and at least. Times of
    `time.monotonic`.
    """

    times: Times
    begin: float
    searched: float
    joined: float
    searching_s: float
    runs_s: float
    judging_s: float
    least_s: float

    def again(self, begun: float) -> float:
        """Until when pieces are searched again, of a search that had begun then: that may be judged twice."""
        answering_s = self.judging_s + self.times.settings * LOOKS * LOOK_S
        latest = max(self.times.latest, begun + self.runs_s)
        return min(latest, self.times.end - (1.0 + JUDGED_AGAIN) * answering_s)

    @property
    def last_resort(self) -> float:
        """Until when pieces are searched, and those that are joined, where nothing is gained yet."""
        return min(self.times.patient, self.times.end - self.least_s - self.times.settings * LOOK_S)

    def again_in_vain(self, started: float) -> float:
        """Until when pieces are searched again then, of a search that had started then: what gains may span them, so
        that joined ones have their share of the time before the last.
        """
        return started + (self.last_resort - started) / (1.0 + self.times.joined_share)

    def too_short(self, is_known: bool) -> TooShort:
        """What is said where no time is left to search: it is told how much is missing, if what an inference takes
        `is_known`.
        """
        if not is_known:
            return TooShort("timing its kernels took all the time that there is for a search; allow more with --time")
        more_s = self.begin + self.searching_s + self.judging_s - self.times.end
        return TooShort(
            f"comparing and measuring a candidate takes about {self.least_s:.0f} s; "
            f"allow {_said(more_s)} more with --time"
        )


def planned(times: Times, inference_s: float, started: float, ends: float) -> Plan:
    """What is done when in a search whose timing of kernels `started` then, and which `ends` then in any case."""
    now, (judging_s, least_s) = time.monotonic(), _judging(inference_s, times)
    runs_s = SEARCHED_RUNS * inference_s
    searching_s = max(times.searching_s(now - started), runs_s)
    joined = min(ends, max(times.end - judging_s, min(times.end - least_s, now + searching_s)))
    return Plan(times, now, min(joined, now + searching_s), joined, searching_s, runs_s, judging_s, least_s)


def _judging(inference_s: float, times: Times) -> tuple[float, float]:
    """The seconds that a candidate takes to be written, compared, and measured in all settings, and those at least."""
    inference_s = mean_s(times.original_s, inference_s)
    comparing_s = times.writing_s + COMPARING_SESSIONS * times.loading_s + COMPARING_RUNS * inference_s
    usual_s, least_s = (
        times.settings * measuring_s(inference_s, times.loading_s, at_least) for at_least in (False, True)
    )
    return comparing_s + usual_s, comparing_s + least_s


def _said(seconds: float) -> str:
    """Seconds in words, up to a next ten: more than they should be rather than less."""
    return f"{10 * math.ceil(max(seconds, 1.0) / 10)} s"
