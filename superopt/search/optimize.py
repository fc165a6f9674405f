"""From a model to a faster one that is the same: search, write, compare, measure, accept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from superopt.cost.measured import MeasuredCost
from superopt.cost.runtime import Feeds, RuntimeFailed
from superopt.errors import InvalidModel, UsageError, VerificationFailed
from superopt.onnx_io import Program, check, left_to_chance, rewritten, save
from superopt.search.found import Solved, Strategy
from superopt.search.paired import Latency, Paired, compare, faster, latency, loses
from superopt.search.pieces import Piece, cut_into_pieces, distinct
from superopt.search.reference import reference_of
from superopt.search.remembered import Memory
from superopt.search.replay import Placement, placement, placements
from superopt.search.rewrites import Rewrite
from superopt.search.same import LONGEST_S, Agreement, examine, run_once
from superopt.search.settings import Setting
from superopt.search.solve import Progress, solve
from superopt.term import Term

SEARCH_SHARE = 0.45
"""Of the time limit, what the search may take; the rest is for comparing and measuring whole models."""


_NO_ROOM = ("bad_alloc", "llocate memory")
"""What onnxruntime says where memory is lacking."""


LEAST_EXPECTED = 1.01
"""Below this expected speed-up no whole model is written: a winner must gain 1 %, and would not."""


@dataclass
class Attempt:
    """What an optimization came to. `accepted` says whether `candidate` is the answer, `reason` why or why not.

    `paired` is measured in the first setting, `elsewhere` in the others.
    """

    pieces: list[Piece]
    solved: list[Solved] = field(default_factory=list)
    candidate: Path | None = None
    agreement: Agreement | None = None
    paired: Paired | None = None
    elsewhere: list[tuple[Setting, Paired]] = field(default_factory=list)
    alone: Latency | None = None
    accepted: bool = False
    reason: str = ""
    search_seconds: float = 0.0


@dataclass(frozen=True)
class Trial:
    """What is optimized, and within which bounds: a program whose model lies at `original`.

    Candidates are written into `folder`, and measured beside `working`: the same model, its weights in a file that
    sessions map into memory, as the candidate's are. It is to be faster in the first of the `settings`, and in none of
    the others slower. `limit` is in seconds from when this is made.
    """

    program: Program
    original: Path
    working: Path
    folder: Path
    cost: MeasuredCost
    limit: float
    seed: int
    inputs: Sequence[Feeds]
    progress: Progress
    settings: Sequence[Setting] = (Setting(),)
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self.limit - (time.monotonic() - self.start), 0.0)


def attempt(
    trial: Trial,
    rewrites: Callable[[], Sequence[Rewrite]],
    strategy: Strategy,
    alpha: float,
    memory: Memory | None = None,
) -> Attempt:
    """Search for a faster program, where the memory does not hold what an earlier search found, and judge it.

    The rewrites are asked for if anything is to be searched; the time that takes does not count.

    Raises `VerificationFailed` for a candidate that is not the same, `OutOfTime` where the limit passes before anything
    is known.
    """
    tried, cost = Attempt(cut_into_pieces(trial.program)), trial.cost
    _demand_runs(trial)
    groups = distinct(tried.pieces)
    known = memory.recalled(groups) if memory else {}
    given = rewrites() if len(known) < len(groups) else ()
    trial = replace(trial, start=time.monotonic())
    cost.deadline = trial.start + SEARCH_SHARE * trial.limit
    if chance := left_to_chance(trial.program):
        reason = (
            f"output {chance[0]!r} is drawn anew in each run, so nothing could be compared; give what draws it a seed"
        )
        return _original(tried, trial, reason)
    if tried.pieces:
        tried.solved = solve(groups, known, given, cost, strategy, alpha, cost.deadline, trial.progress, memory)
    tried.search_seconds = time.monotonic() - trial.start
    winners = [s for s in tried.solved if s.gain > 1.0]
    if not winners:
        return _original(tried, trial, "no rewrite makes a piece of it faster")
    if expected_speedup(tried.solved) < LEAST_EXPECTED:
        return _original(tried, trial, "what its pieces gain is too little of the whole to be told from noise")
    found = [placement(piece, s.winner.graph.outputs) for s in winners for piece in s.places]
    try:
        return _judged(tried, trial, found)
    except VerificationFailed:
        if memory is None or not known:
            raise
        memory.forget(known, groups)  # it may have been damaged: what is found anew is judged anew
        return attempt(trial, rewrites, strategy, alpha, memory)


def replay(trial: Trial, solutions: Sequence[str]) -> Attempt:
    """Put what another search found in its places, and judge that. Raises as `attempt`, and `UsageError` where nothing
    of it fits this model.
    """
    _demand_runs(trial)
    tried = Attempt(cut_into_pieces(trial.program))
    found = placements(tried.pieces, solutions)
    if not found:
        raise UsageError("nothing of the report fits this model: it is about another one")
    return _judged(tried, trial, found)


def _demand_runs(trial: Trial) -> None:
    """Raise `UsageError` where the original does not run at sizes that were asked for."""
    standard = trial.cost.runtime.standard
    for setting in trial.settings if trial.settings[0].shapes else ():
        try:
            trial.cost.child.call(LONGEST_S, run_once, standard, trial.working, setting.draw())
        except RuntimeFailed as error:
            raise UsageError(f"shape: the model does not run at {setting}: {error}") from None


def _judged(tried: Attempt, trial: Trial, found: Sequence[Placement]) -> Attempt:
    """Write the model with its pieces replaced, compare it with the original, and measure both."""
    cost, program = trial.cost, trial.program
    trial.progress("write", 0.0)
    tried.candidate = _written(program, found, trial.folder / "candidate.onnx")
    program.release_weights()
    trial.progress("compare", 0.0)
    try:
        reference = reference_of(program)
        tried.agreement = examine(
            trial.original,
            tried.candidate,
            cost.runtime,
            reference,
            trial.seed,
            trial.inputs,
            settings=trial.settings,
            caller=cost.child,
            working=trial.working,
        )
    except RuntimeFailed as error:
        return _original(tried, trial, f"nothing could be compared: {error}")
    differs = not tried.agreement.agrees and (tried.agreement.examined or tried.agreement.outputs)
    if not tried.agreement.examined and not differs:
        why = tried.agreement.reason
        return _original(tried, trial, f"nothing could be compared: {why}; give inputs on which the outputs differ")
    if differs:
        raise VerificationFailed(
            f"the optimized model differs from the original: {tried.agreement.reason}; nothing was written"
        )
    if not trial.left:
        reason = f"{trial.limit:.0f} s passed before a candidate could be measured; allow more with --time"
        return _original(tried, trial, reason)
    program.release_weights()  # two sessions are alive from here on, each with weights of its own
    tried.paired = _measured(trial, tried.candidate, 0)
    tried.accepted = faster(tried.paired)
    tried.reason = "confirmed in fresh sessions" if tried.accepted else "the gain was not confirmed in fresh sessions"
    for number in range(1, len(trial.settings) if tried.accepted else 0):
        there = _measured(trial, tried.candidate, number)
        tried.elsewhere.append((trial.settings[number], there))
        if loses(there):
            tried.accepted, tried.reason = False, f"it is no gain at {trial.settings[number]}"
            break
    return tried


def _measured(trial: Trial, candidate: Path, number: int) -> Paired:
    """Both models in one of the settings, each of which has its share of the time."""
    return compare(
        trial.working,
        candidate,
        trial.cost.runtime,
        budget_s=0.9 * trial.left / (len(trial.settings) - number),
        seed=trial.seed,
        progress=lambda done, all_: trial.progress("measure", done / all_),
        draw=trial.settings[number].draw(),
        caller=trial.cost.child,
    )


def expected_speedup(solved: Sequence[Solved]) -> float:
    """How many times faster the whole should be, by what its pieces were measured to gain."""
    before = sum(len(s.places) * s.outcome.start.cost for s in solved)
    after = sum(len(s.places) * s.outcome.start.cost / s.gain for s in solved)
    return before / after if after else 1.0


def _original(tried: Attempt, trial: Trial, reason: str) -> Attempt:
    """The attempt where the original is the answer: measured, unless the runtime does not run it.

    Raises `RuntimeFailed` for want of memory: that says nothing about the model.
    """
    tried.reason, cost = reason, trial.cost
    try:
        budget, draw = min(0.3 * trial.left, 2.0), trial.settings[0].draw()
        tried.alone = latency(
            trial.working, cost.runtime, budget_s=budget, seed=trial.seed, draw=draw, caller=cost.child
        )
    except RuntimeFailed as error:
        if any(sign in str(error) for sign in _NO_ROOM):
            raise
        tried.reason += "" if str(error) in reason else f"; it could not be measured: {error}"
        if cost.deadly:
            tried.reason += f"; so does this kernel alone: {cost.deadly[0]}"
    return tried


def _written(program: Program, found: Sequence[Placement], path: Path) -> Path:
    """The model with pieces replaced, saved and checked by ONNX's own checker."""
    new: dict[str, Term] = {}
    origins: dict[Term, str] = {}
    for placed in found:
        new |= placed.new
        origins |= placed.origins
    model = rewritten(program, new, origins)
    try:
        check(model, "the optimized model")
        save(model, path, external_data=True)
    except InvalidModel as error:  # our doing, not the user's
        raise VerificationFailed(f"{error}; nothing was written") from None
    return path
