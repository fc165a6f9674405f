"""From a model to a faster one that is the same: search, write, compare, measure, accept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from superopt.errors import NoRoom, OutOfTime, VerificationFailed
from superopt.onnx_io import left_to_chance
from superopt.search.accepting.anew import as_it_stands, with_anew
from superopt.search.accepting.as_read import as_read_if_faster
from superopt.search.accepting.judge import Unusable, judged, original
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.deciding import changes_more, decided, too_little
from superopt.search.piecewise import SEARCH_SHARE, searched
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Rewrite
from superopt.search.runnable import demand_runs
from superopt.search.solving.cuttings import cuttings_of
from superopt.search.solving.plan import TooShort
from superopt.search.solving.remembered import Memory
from superopt.search.solving.searching import Search
from superopt.search.solving.spelled import may_differ, without_differences
from superopt.search.strategies.found import Strategy, forget_terms


def attempt(
    trial: Trial,
    rewrites: Callable[[], Sequence[Rewrite]],
    strategy: Strategy,
    alpha: float,
    memory: Memory | None = None,
) -> Attempt:
    """Search for a faster program, where the memory does not hold what an earlier search found, and judge it.

    The rewrites are asked for if anything is to be searched.

    Raises `VerificationFailed` for a candidate that is not the same, `OutOfTime` where the limit passes before anything
    is known.
    """
    cut, cost = cuttings_of(trial.program, memory), trial.cost
    tried = Attempt(cut.pieces)
    demand_runs(trial)
    given, start = () if cut.all_known else rewrites(), time.monotonic()
    cost.bench.deadline = start + SEARCH_SHARE * trial.left
    if chance := left_to_chance(trial.program):
        reason = (
            f"output {chance[0]!r} is drawn anew in each run, so nothing could be compared; give what draws it a seed"
        )
        return original(tried, trial, reason)
    try:
        searched(tried, trial, cut, Search(Matching(given, cost.bench.sizes), trial.objective, strategy, alpha, memory))
    except TooShort as error:
        return original(tried, trial, str(error))
    if cost.bench.unwritable and not any(s.gain > 1.0 for s in tried.cover):
        raise NoRoom(cost.bench.unwritable)
    del given  # and what the search saw: the models need the memory
    cost.forget_terms()
    forget_terms()
    tried.search_seconds = time.monotonic() - start
    try:
        return _answered(tried, trial, memory)
    except VerificationFailed as error:
        if may_differ(tried.cover):
            own, fewer = memory and memory.without_differences, lambda: without_differences(rewrites())
            return _without_differences(tried, trial, lambda: attempt(trial, fewer, strategy, alpha, own))
        if changes_more(trial) and any(s.gain > 1.0 for s in tried.cover):
            return _as_read(tried, trial, memory, error)
        if memory is not None and cut.forget(memory):
            # What was remembered may have been damaged, and so what began with it: what is found anew is judged anew.
            return attempt(trial, rewrites, strategy, alpha, memory)
        if isinstance(error, Unusable):
            return original(tried, trial, f"what was found cannot be used, which is a bug: {error}")
        raise


def _without_differences(tried: Attempt, trial: Trial, again: Callable[[], Attempt]) -> Attempt:
    """What another search comes to that leaves operators as the model spells them out, rounds no more and spreads
    nothing, and says so.
    """
    try:
        found = again()
    except OutOfTime as error:
        found = original(tried, trial, str(error))
    why = tried.agreement.reason if tried.agreement else "the result is no valid model"
    found.reason += (
        f"; what is spelled out in it stays so, and nothing rounds more or spreads what is no number: else {why}"
    )
    return found


def _as_read(tried: Attempt, trial: Trial, memory: Memory | None, error: VerificationFailed) -> Attempt:
    """Judge the model as it is read, where that alone is no longer what its file has: in a model that quantizes what it
    computes, each rewrite that rounds otherwise changes some of it by a step. Raises the error where that differs, too.
    """
    cover = [as_it_stands(s) for s in tried.cover]
    try:
        found = judged(replace(tried.again(cover), candidates=tried.candidates), trial, [], memory)
    except VerificationFailed:
        raise error from None
    found.reason += f"; no piece of it is replaced: else {str(error).removesuffix('; nothing was written')}"
    return found


def _answered(tried: Attempt, trial: Trial, memory: Memory | None) -> Attempt:
    """Judge what was found. Who interrupts that, and has not interrupted the search, gets what it comes to; and ends it
    by another interrupt. Raises `VerificationFailed`.
    """
    try:
        tried.cover = with_anew(as_read_if_faster(tried.cover, trial, memory), trial, memory)
        reason = too_little(tried, trial)
        return original(tried, trial, reason) if reason else decided(tried, trial, memory)
    except KeyboardInterrupt:
        if tried.interrupted:
            raise
    tried.interrupted = True
    return _answered(tried, trial, memory)
