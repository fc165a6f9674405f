"""From a model to a faster one that is the same: search, write, compare, measure, accept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from superopt.cost.child import Unending
from superopt.errors import NoRoom, OutOfTime, RuntimeFailed, UsageError, VerificationFailed
from superopt.memory import seldom_collecting
from superopt.onnx_io import hidden_constants, left_to_chance
from superopt.search.accepting.anew import placed, with_anew
from superopt.search.accepting.judge import Rounding, Unusable, advice, judged, original
from superopt.search.accepting.rounding import without_rounding
from superopt.search.accepting.runs import run_on, run_once
from superopt.search.accepting.surest import surest
from superopt.search.accepting.trial import Attempt, Trial
from superopt.search.cutting.pieces import cut_into_pieces, joined_pieces
from superopt.search.replay import Fit, fits
from superopt.search.report import Solution
from superopt.search.rewriting.matching import Matching
from superopt.search.rewriting.rewrites import Rewrite
from superopt.search.solving.across import solve_joined
from superopt.search.solving.cuttings import Cuttings, cuttings_of
from superopt.search.solving.joined import JOINED_LEAST, JOINED_SHARE, begun_of, solved_as_pieces
from superopt.search.solving.remembered import Memory
from superopt.search.solving.schedule import scheduled
from superopt.search.solving.searching import Search, kept
from superopt.search.solving.solve import JUDGED_AGAIN, LEAST_EXPECTED, Times, TooShort, solve
from superopt.search.solving.spelled import may_differ, without_differences
from superopt.search.strategies.found import OUT_OF_TIME, Strategy, forget_terms

SEARCH_SHARE, ONCE_SHARE, ONCE_MOST, SEARCH_MOST, SEARCH_PATIENT = 0.45, 0.15, 0.2, 0.23, 0.6
"""Of what reading leaves of the time limit, what the search may take with its first kernels timed; what it may without
these, and at most so where timing them takes long; with pieces whose time was over searched again; and so where nothing
is gained before that. The rest is for comparing and measuring whole models.
"""

CHOOSING_MOST = 0.65
"""What the search may take with pieces searched again where sessions choose algorithms; searching them once may take
the first of the shares above there.
"""


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
    _demand_runs(trial)
    given, start = () if cut.all_known else rewrites(), time.monotonic()
    cost.bench.deadline = start + SEARCH_SHARE * trial.left
    if chance := left_to_chance(trial.program):
        reason = (
            f"output {chance[0]!r} is drawn anew in each run, so nothing could be compared; give what draws it a seed"
        )
        return original(tried, trial, reason)
    try:
        with seldom_collecting():
            _search(
                tried, trial, cut, Search(Matching(given, cost.bench.sizes), trial.objective, strategy, alpha, memory)
            )
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


def _answered(tried: Attempt, trial: Trial, memory: Memory | None) -> Attempt:
    """Judge what was found. Who interrupts that, and has not interrupted the search, gets what it comes to; and ends it
    by another interrupt. Raises `VerificationFailed`.
    """
    try:
        tried.cover = with_anew(tried.cover, trial, memory)
        too_little = _too_little(tried, trial)
        return original(tried, trial, too_little) if too_little else _decided(tried, trial, memory)
    except KeyboardInterrupt:
        if tried.interrupted:
            raise
    tried.interrupted = True
    return _answered(tried, trial, memory)


def _too_little(tried: Attempt, trial: Trial) -> str:
    """Why no whole model need be tried; empty where one is to be."""
    if _changes_more(trial):
        return ""
    if not any(s.gain > 1.0 for s in tried.cover):
        said = f"no rewrite makes a piece of it {trial.objective.better}"
        late = any(s.outcome.reason == OUT_OF_TIME for s in tried.solved)
        return f"{said}, of those that there was time for; allow more with --time" if late else said
    if tried.expected_gain(trial.objective.total) < LEAST_EXPECTED:
        return "what its pieces gain is too little of the whole to be told from noise"
    return ""


def _changes_more(trial: Trial) -> bool:
    """Whether candidates differ from the original by more than their pieces tell: by other branches, by nodes that are
    written otherwise or that nothing needs, by constants that were hidden, or by the casts that a runtime puts around
    what has 16 bits.
    """
    by_nodes = trial.branched or trial.program.otherwise
    return by_nodes or trial.wide is not None or bool(hidden_constants(trial.program))


def _decided(tried: Attempt, trial: Trial, memory: Memory | None) -> Attempt:
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


def _search(tried: Attempt, trial: Trial, cut: Cuttings, search: Search) -> None:
    """Solve the pieces, then those that are joined of them in a share of that time, and choose among their places."""
    start, chooses = time.monotonic(), trial.bench.runtime.chooses_algorithms
    once = (SEARCH_SHARE, SEARCH_SHARE) if chooses else (ONCE_SHARE, ONCE_MOST)
    most = CHOOSING_MOST if chooses else SEARCH_MOST
    latest, patient = (start + share * trial.left for share in (most, max(most, SEARCH_PATIENT)))
    least_s, most_s = (share * trial.left for share in once)
    times = Times(trial.end, latest, patient, len(trial.settings), least_s, most_s)
    tried.solved = solve(cut.groups, cut.known, search, times, trial.progress) if cut.pieces else []
    known = cut.known_joined | solved_as_pieces(cut.joined, cut.groups, tried.solved)
    begun = begun_of(cut.joined, tried.solved, trial.program.values)
    now = time.monotonic()
    allowed_s = max(JOINED_SHARE * (now - start), JOINED_LEAST * trial.limit)
    deadline = min(now + allowed_s, trial.bench.deadline)
    search = replace(search, memory=search.memory and search.memory.of_joined)
    tried.joined = solve_joined(cut.joined, known, begun, search, deadline, trial.progress)
    tried.interrupted = search.stopped
    if search.stopped:
        kept([*tried.solved, *tried.joined])
    tried.cover = scheduled(tried.solved, tried.joined)


def replay(trial: Trial, solutions: Sequence[Solution]) -> tuple[Attempt, list[Fit]]:
    """Put what another search found in its places, and judge that; and what fitted where. Raises as `attempt`, and
    `UsageError` where nothing of it fits this model.
    """
    _demand_runs(trial)
    pieces = cut_into_pieces(trial.program)
    tried = Attempt(pieces)
    found = fits([*pieces, *joined_pieces(trial.program, pieces)], solutions)
    if not found and not trial.branched and (solutions or not _changes_more(trial)):
        raise UsageError("nothing of the report fits this model: it is about another one")
    return judged(tried, trial, [fit.placement(trial.program) for fit in found]), found


def _demand_runs(trial: Trial) -> None:
    """Raise `UsageError` where the runtime runs nothing here, or the original does not run at sizes asked for, or on a
    sample; and `RuntimeFailed` where the runtime runs other models, and not the original.
    """
    runtime, call, longest_s = trial.bench.runtime, trial.bench.child.call, trial.longest
    standard = runtime.standard
    for number, sample in enumerate(trial.inputs, start=1):
        try:
            call(longest_s, run_on, standard, trial.working, sample)
        except Unending as error:
            raise _too_slow(trial, error) from None
        except RuntimeFailed as error:
            raise UsageError(f"inputs: the model does not run on sample {number}: {error}") from None
    if standard != runtime:  # the standard itself comes with superopt
        try:
            if trial.inputs:
                call(longest_s, run_on, runtime, trial.working, trial.inputs[0], True)
            else:
                call(longest_s, run_once, runtime, trial.working, trial.settings[0].draw(), True)
        except Unending as error:
            raise _too_slow(trial, error) from None
        except RuntimeFailed as error:
            trial.cost.alone.demand_runs()
            raise RuntimeFailed(f"runtime {runtime.key.runtime} cannot run the model: {error}") from None
    for setting in trial.settings:
        if not setting.shapes or (setting.likely and setting == trial.settings[0]):
            continue  # at the likely ones it was run already
        try:
            call(longest_s, run_once, standard, trial.working, setting.draw())
        except Unending as error:
            raise _too_slow(trial, error) from None
        except RuntimeFailed as error:
            raise UsageError(f"shape: the model does not run at {setting}: {error}") from None


def _too_slow(trial: Trial, error: Unending) -> OutOfTime:
    """What tells of a model that has not ended, and what in it may never do."""
    return OutOfTime(f"the model is not run once in time: {error}{advice(error, trial.program)}")
