"""Whether what was found is the answer: whether a whole model need be tried, and what is left where it disappoints."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from superopt.errors import VerificationFailed
from superopt.onnx_io import hidden_constants
from superopt.search.accepting.anew import placed
from superopt.search.accepting.judge import Rounding, judged, original
from superopt.search.accepting.rounding import without_rounding
from superopt.search.accepting.surest import surest
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.solving.plan import JUDGED_AGAIN
from superopt.search.solving.remembered import Memory
from superopt.search.solving.solve import LEAST_EXPECTED
from superopt.search.solving.spelled import may_differ
from superopt.search.strategies.found import OUT_OF_TIME


def too_little(tried: Attempt, trial: Trial) -> str:
    """Why no whole model need be tried; empty where one is to be."""
    if changes_more(trial):
        return ""
    if not any(s.gain > 1.0 for s in tried.cover):
        said = f"no rewrite makes a piece of it {trial.objective.better}"
        if any(s.outcome.reason == OUT_OF_TIME for s in tried.solved):
            said += ", of those that the share of --time for searching was enough for; a longer one may find some"
        return said
    if tried.expected_gain(trial.objective.total) < LEAST_EXPECTED:
        return "what its pieces gain is too little of the whole to be told from noise"
    return ""


def changes_more(trial: Trial) -> bool:
    """Whether candidates differ from the original by more than their pieces tell: by other branches, by nodes that are
    written otherwise or that nothing needs, by constants that were hidden, or by the casts that a runtime puts around
    what has 16 bits.
    """
    by_nodes = trial.branched or trial.program.otherwise
    return by_nodes or trial.wide is not None or bool(hidden_constants(trial.program))


def decided(tried: Attempt, trial: Trial, memory: Memory | None) -> Attempt:
    """Judge what was found; where its gain is not confirmed, what is left of it without pieces that gain nothing in the
    whole model. Raises `VerificationFailed` where all of it does not agree.
    """
    start = time.monotonic()
    try:
        judged(tried, trial, placed(trial.program, tried.cover), memory)
    except Rounding as error:
        if may_differ(tried.cover):
            raise
        return _steadier(tried, trial, memory, error, time.monotonic() - start)
    if tried.accepted or tried.weighed or len(tried.pairs) != 1:
        return tried
    took = time.monotonic() - start
    cover = surest(tried, trial, trial.end - JUDGED_AGAIN * took, memory)
    if cover is None:
        return tried
    try:
        again = judged(tried.again(cover), trial, placed(trial.program, cover), memory)
    except VerificationFailed as error:  # the first did not, and is no gain: the original is the answer
        tried.reason += f"; without pieces that gain nothing in the whole model, {error}"
        return tried
    return again if again.accepted else tried


def _steadier(tried: Attempt, trial: Trial, memory: Memory | None, error: Rounding, took: float) -> Attempt:
    """Judge what is left without pieces that round more than they may; the original is the answer where that is
    nothing, or rounds too much as well. Judging all of it took so many seconds.
    """
    cover = without_rounding(tried, trial, trial.end - JUDGED_AGAIN * took)
    why = str(error).removesuffix("; nothing was written")
    if cover is not None:
        with suppress(Rounding):
            left = replace(tried.again(cover), candidates=tried.candidates)
            again = judged(left, trial, placed(trial.program, cover), memory)
            again.reason += f"; pieces stay as they were that round more than they may: with them {why}"
            return again
    tried.agreement = None
    return original(tried, trial, f"what was found rounds more than it may: {why}")
